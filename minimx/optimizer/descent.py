"""Stochastic gradient descent and its relatives: one learning rate for all elements of a weight. What changes is the direction."""

from __future__ import annotations

import math
from typing import Any

from .. import nd, random
from ..nd import NDArray
from .optimizer import Optimizer, as_lists, register, zeros_like

__all__ = ["DCASGD", "NAG", "SGD", "SGLD", "Signum", "Test", "ccSGD"]


@register
class SGD(Optimizer):
    """Stochastic gradient descent: `g = clip(rescale_grad grad) + wd w`, `m = momentum m - lr g`, `w = w + m`.

    **Args** `momentum`: what the next step keeps of this one; `lazy_update`: of sparse gradients, without effect here; others as
    Optimizer. `update` also takes lists. **Source** MXNet `optimizer.SGD`.
    """

    master_last = True

    def __init__(self, momentum: float = 0.0, lazy_update: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.lazy_update = lazy_update

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight) if self.momentum else None

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        indices, weights, grads, states = as_lists(index, weight, grad, state)
        limits = self._limits()
        self._update_count(indices)
        for array, slope, mom, lr, wd in zip(weights, grads, states, self._get_lrs(indices), self._get_wds(indices)):
            if mom is None:
                nd.sgd_update(array, slope, out=array, lr=lr, wd=wd, **limits)
            else:
                nd.sgd_mom_update(array, slope, mom, out=array, lr=lr, wd=wd, momentum=self.momentum, **limits)

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        if not self._is_mixed(weight if isinstance(weight, NDArray) else weight[0]):
            self.update(index, weight, grad, state)
            return
        indices, weights, grads, states = as_lists(index, weight, grad, state)
        self._update_count(indices)
        for array, slope, both, lr, wd in zip(weights, grads, states, self._get_lrs(indices), self._get_wds(indices)):
            descend(array, slope, both, lr, wd, self.momentum, self._limits())


def descend(weight: NDArray, grad: NDArray, state: Any, lr: float, wd: float, momentum: float, limits: dict[str, Any]) -> None:
    """A step in mixed precision. `state`: the momentum or None, and the float32 copy of the weight."""
    mom, master = state
    if mom is None:
        nd.mp_sgd_update(weight, grad, master, out=weight, lr=lr, wd=wd, **limits)
    else:
        nd.mp_sgd_mom_update(weight, grad, mom, master, out=weight, lr=lr, wd=wd, momentum=momentum, **limits)


@register
class ccSGD(SGD):
    """An old name of SGD."""


@register
class NAG(Optimizer):
    """Nesterov's accelerated gradient: `g = clip(rescale_grad grad) + wd w`, `m = momentum m - lr g`, `w = w + momentum m - lr g`.

    **Source** MXNet `optimizer.NAG`, which takes the new weight in g when that goes into m.
    """

    master_last = True

    def __init__(self, momentum: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight) if self.momentum else None

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        if state is None:
            nd.sgd_update(weight, grad, out=weight, lr=lr, wd=wd, **self._limits())
        else:
            nd.nag_mom_update(weight, grad, state, out=weight, lr=lr, wd=wd, momentum=self.momentum, **self._limits())


@register
class SGLD(Optimizer):
    """Stochastic gradient Langevin dynamics: `w = w - lr / 2 (clip(rescale_grad grad) + wd w) + noise`, the noise normal with
    variance lr. Weights become samples of their distribution, given the data.

    **Source** MXNet `optimizer.SGLD`; Welling, Teh, 2011.
    """

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        noise = random.normal(0, math.sqrt(lr), shape=weight.shape, dtype=weight.dtype, ctx=weight.context)
        weight[:] = weight - lr / 2 * (self._limited(grad) + wd * weight) + noise


@register
class Signum(Optimizer):
    """Steps of one length, along the sign of the momentum: `m = momentum m - (1 - momentum) (clip(rescale_grad grad) + wd w)`,
    `w = (1 - lr wd_lh) w + lr sign(m)`; without momentum `w = (1 - lr wd) w - lr sign(grad)`.

    **Source** MXNet `optimizer.Signum`; Bernstein et al., 2018.
    """

    def __init__(self, learning_rate: float | None = 0.01, momentum: float = 0.9, wd_lh: float = 0.0, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.wd_lh = wd_lh

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight) if self.momentum else None

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        if state is None:
            nd.signsgd_update(weight, grad, out=weight, lr=lr, wd=wd, **self._limits())
        else:
            nd.signum_update(
                weight, grad, state, out=weight, lr=lr, wd=wd, momentum=self.momentum, wd_lh=self.wd_lh, **self._limits()
            )


@register
class DCASGD(Optimizer):
    """Asynchronous descent that makes up for gradients computed at older weights v: `g = clip(rescale_grad grad)`,
    `m = momentum m - lr (g + wd w + lamda g ** 2 (w - v))`, `v = w`, `w = w + m`.

    **Source** MXNet `optimizer.DCASGD`, where momentum fails; Zheng et al., 2017.
    """

    def __init__(self, momentum: float = 0.0, lamda: float = 0.04, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum
        self.weight_previous: dict[Any, NDArray] = {}
        self.lamda = lamda

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return (zeros_like(weight) if self.momentum else None, weight.copy())

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        slope = self._limited(grad)
        mom, previous = state
        move = -lr * (slope + wd * weight + self.lamda * slope * slope * (weight - previous))
        if mom is not None:
            mom[:] = self.momentum * mom + move
            move = mom
        previous[:] = weight
        weight += move


@register
class Test(Optimizer):
    """For tests of what uses optimizers: `w = w + rescale_grad grad`, and the state is w. **Source** MXNet `optimizer.Test`."""

    __test__ = False  # pytest need not look for tests in it

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        weight += grad * self.rescale_grad
        state[:] = weight
