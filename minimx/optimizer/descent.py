"""Stochastic gradient descent and its relatives: one learning rate for all elements of a weight. What changes is the direction."""

from __future__ import annotations

import math
from typing import Any

from .. import random
from ..nd import NDArray
from ..ops.optim import (
    MPSGDMomUpdate,
    MPSGDUpdate,
    NAGMomUpdate,
    SGDMomUpdate,
    SGDUpdate,
    SignSGDUpdate,
    SignumUpdate,
    Update,
)
from .optimizer import Optimizer, Stepwise, register, zeros_like

__all__ = ["DCASGD", "NAG", "SGD", "SGLD", "Signum", "Test", "ccSGD"]


@register
class SGD(Stepwise):
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

    def _operator(self, state: Any, lr: float, wd: float, t: int) -> Update:
        if state is None:
            return SGDUpdate(lr=lr, wd=wd, **self._limits())
        return SGDMomUpdate(lr=lr, wd=wd, momentum=self.momentum, **self._limits())

    def _mixed_operator(self, state: Any, lr: float, wd: float, t: int) -> Update:
        """The operator in mixed precision. `state`: the momentum or None, and the float32 copy of the weight."""
        if state[0] is None:
            return MPSGDUpdate(lr=lr, wd=wd, **self._limits())
        return MPSGDMomUpdate(lr=lr, wd=wd, momentum=self.momentum, **self._limits())


@register
class ccSGD(SGD):
    """An old name of SGD."""


@register
class NAG(Stepwise):
    """Nesterov's accelerated gradient: `g = clip(rescale_grad grad) + wd w`, `m = momentum m - lr g`, `w = w + momentum m - lr g`.

    **Source** MXNet `optimizer.NAG`, which takes the new weight in g when that goes into m.
    """

    master_last = True

    def __init__(self, momentum: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.momentum = momentum

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight) if self.momentum else None

    def _operator(self, state: Any, lr: float, wd: float, t: int) -> Update:
        if state is None:
            return SGDUpdate(lr=lr, wd=wd, **self._limits())
        return NAGMomUpdate(lr=lr, wd=wd, momentum=self.momentum, **self._limits())


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
class Signum(Stepwise):
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

    def _operator(self, state: Any, lr: float, wd: float, t: int) -> Update:
        if state is None:
            return SignSGDUpdate(lr=lr, wd=wd, **self._limits())
        return SignumUpdate(lr=lr, wd=wd, momentum=self.momentum, wd_lh=self.wd_lh, **self._limits())


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
