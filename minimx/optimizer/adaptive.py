"""Optimizers with a learning rate for each element, from the size that its gradients had: Adam and its relatives, and the earlier ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import nd
from ..nd import NDArray
from ..ops.optim import Update
from ..ops.optim_adam import AdamUpdate, AdamWStep
from ..ops.optim_adaptive import AdaGradUpdate, FTMLUpdate, FTRLUpdate, RMSPropAlexUpdate, RMSPropUpdate
from .optimizer import Optimizer, Stepwise, register, zeros_like

__all__ = ["FTML", "AdaDelta", "AdaGrad", "Adam", "AdamW", "Adamax", "Ftrl", "Nadam", "RMSProp"]


def keep(average: NDArray, value: NDArray, decay: float) -> None:
    """A running average, in place: `average = decay average + (1 - decay) value`."""
    average *= decay
    average += (1.0 - decay) * value


# ---- Adam


class Moments(Stepwise):
    """The frame of Adam and its relatives: running averages of the gradient and of its square, or of its size."""

    def __init__(
        self, learning_rate: float | None = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any
    ) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight), zeros_like(weight)

    def _correction(self, t: int) -> float:
        """At update `t` averages that began with 0 are too small: the factor for a quotient of mean and root of the variance."""
        return math.sqrt(1.0 - self.beta2**t) / (1.0 - self.beta1**t)


@register
class Adam(Moments):
    """`g = clip(rescale_grad grad + wd w)`, m and v the running averages of g and `g ** 2`, `w = w - lr c m / (sqrt(v) + epsilon)`;
    `c = sqrt(1 - beta2 ** t) / (1 - beta1 ** t)` at update t.

    **Args** `beta1`, `beta2`: what the averages keep of themselves; `lazy_update`: of sparse gradients, without effect here. **Source**
    MXNet `optimizer.Adam`; Kingma, Ba, 2014.
    """

    def __init__(
        self, learning_rate: float | None = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
        lazy_update: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.lazy_update = lazy_update

    def _operator(self, state: Any, lr: float, wd: float, t: int) -> Update:
        return AdamUpdate(
            lr=lr * self._correction(t), wd=wd, beta1=self.beta1, beta2=self.beta2, epsilon=self.epsilon, **self._limits()
        )


@register
class AdamW(Moments):
    """Adam with weight decay apart from the gradient: `g = clip(rescale_grad grad)`, m and v as in Adam,
    `w = w - lr (c m / (sqrt(v) + epsilon) + wd w)`.

    **Args** `correct_bias`: False makes c 1, as for BERT. **Source** MXNet 2 `optimizer.AdamW`, and the operator `adamw_update` of 1.9;
    Loshchilov, Hutter, 2017.
    """

    def __init__(
        self, learning_rate: float | None = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6,
        correct_bias: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.correct_bias = correct_bias

    def _operator(self, state: Any, lr: float, wd: float, t: int) -> Update:
        return AdamWStep(
            eta=lr, lr=self._correction(t) if self.correct_bias else 1.0, wd=wd, beta1=self.beta1, beta2=self.beta2,
            epsilon=self.epsilon, **self._limits(),
        )  # fmt: skip


@register
class Adamax(Moments):
    """Adam with the largest gradient, which fades, in the place of the root of a mean: `u = max(beta2 u, |g|)`,
    `w = w - lr / (1 - beta1 ** t) m / u`.

    **Source** MXNet `optimizer.Adamax`, which gives NaN where all gradients so far were 0; here such elements stay. Kingma, Ba, 2014.
    """

    def __init__(self, learning_rate: float | None = 0.002, beta1: float = 0.9, beta2: float = 0.999, **kwargs: Any) -> None:
        super().__init__(learning_rate, beta1, beta2, **kwargs)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd, t = self._begin(index)
        slope = self._limited(grad, wd, weight)
        mean, largest = state
        keep(mean, slope, self.beta1)
        largest[:] = nd.maximum(self.beta2 * largest, nd.abs(slope))
        tiny = float(np.finfo(weight.dtype).tiny)  # where the largest is 0 the mean is 0 too
        weight -= lr / (1.0 - self.beta1**t) * mean / nd.maximum(largest, tiny)


@register
class Nadam(Moments):
    """Adam with Nesterov's momentum, which grows by a schedule: at update t it is `beta1 (1 - 0.96 ** (t schedule_decay) / 2)`.

    The product of the momenta so far is one for the whole optimizer, as in MXNet: it goes on with each parameter's update. **Source**
    MXNet `optimizer.Nadam`; Dozat, 2016.
    """

    def __init__(
        self, learning_rate: float | None = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
        schedule_decay: float = 0.004, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta1, beta2, epsilon, **kwargs)
        self.schedule_decay = schedule_decay
        self._schedules: dict[int, float] = {}
        self._loaded_schedule = 1.0  # with which a device begins that had none when the states were saved

    @property
    def m_schedule(self) -> float:
        """The product of the momenta of all updates so far: on the device that is updated now, since each repeats those of the others."""
        return self._schedules.get(self._device_id, self._loaded_schedule)

    def _resume(self) -> None:
        super()._resume()
        self._loaded_schedule = min(self._schedules.values(), default=1.0)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd, t = self._begin(index)
        slope = self._limited(grad, wd, weight)
        now, after = (self.beta1 * (1.0 - 0.5 * 0.96 ** (step * self.schedule_decay)) for step in (t, t + 1))
        self._schedules[self._device_id] = self.m_schedule * now
        mean, square = state
        keep(mean, slope, self.beta1)
        keep(square, slope * slope, self.beta2)
        ahead = (1.0 - now) / (1.0 - self.m_schedule) * slope + after / (1.0 - self.m_schedule * after) * mean
        weight -= lr * ahead / (nd.sqrt(square / (1.0 - self.beta2**t)) + self.epsilon)


# ---- before Adam


@register
class AdaGrad(Stepwise):
    """`g = clip(rescale_grad grad)`, `h = h + g ** 2`, `w = w - lr (g / sqrt(h + eps) + wd w)`.

    **Source** MXNet `optimizer.AdaGrad`; Duchi et al., 2011.
    """

    def __init__(self, eps: float = 1e-7, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight)

    def _operator(self, state: Any, lr: float, wd: float, t: int) -> Update:
        return AdaGradUpdate(lr=lr, wd=wd, epsilon=self.float_stable_eps, **self._limits())


@register
class RMSProp(Stepwise):
    """`g = clip(rescale_grad grad + wd w)`, n the running average of `g ** 2`, `w = clip(w - lr g / sqrt(n + epsilon))`.

    **Args** `gamma1`: what the averages keep of themselves; `centered`: take the variance (a is the running average of g), and momentum
    `gamma2`: `d = gamma2 d - lr g / sqrt(n - a ** 2 + epsilon)`, `w = clip(w + d)`; `clip_weights`: bound of the new weights. **Source**
    MXNet `optimizer.RMSProp`; Tieleman, Hinton, 2012; Graves, 2013.
    """

    def __init__(
        self, learning_rate: float | None = 0.001, gamma1: float = 0.9, gamma2: float = 0.9, epsilon: float = 1e-8,
        centered: bool = False, clip_weights: float | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.centered = centered
        self.epsilon = epsilon
        self.clip_weights = clip_weights

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return tuple(zeros_like(weight) for _ in range(3 if self.centered else 1))

    def _operator(self, state: Any, lr: float, wd: float, t: int) -> Update:
        given: dict[str, Any] = {
            "lr": lr, "wd": wd, "gamma1": self.gamma1, "epsilon": self.epsilon, "clip_weights": self.clip_weights or -1.0,
            **self._limits(),
        }  # fmt: skip
        return RMSPropAlexUpdate(gamma2=self.gamma2, **given) if self.centered else RMSPropUpdate(**given)


@register
class AdaDelta(Optimizer):
    """Steps as large as recent steps were: `g = clip(rescale_grad grad)`, a the running average of `g ** 2`, b that of `d ** 2`,
    `d = sqrt(b + epsilon) / sqrt(a + epsilon) g`, `w = w - d - wd w`. There is no learning rate.

    **Args** `rho`: what the averages keep of themselves. **Source** MXNet `optimizer.AdaDelta`; Zeiler, 2012.
    """

    def __init__(self, rho: float = 0.90, epsilon: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rho = rho
        self.epsilon = epsilon

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight), zeros_like(weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        _, wd, _ = self._begin(index)
        slope = self._limited(grad)
        gradients, steps = state
        keep(gradients, slope * slope, self.rho)
        move = nd.sqrt(steps + self.epsilon) / nd.sqrt(gradients + self.epsilon) * slope
        keep(steps, move * move, self.rho)
        weight -= move + wd * weight


# ---- follow the leader


@register
class Ftrl(Stepwise):
    """Follow the regularized leader; see `nd.ftrl_update` for the formula. Many weights become exactly 0.

    **Args** `lamda1`: strength of the L1 penalty. **Source** MXNet `optimizer.Ftrl`; McMahan et al., 2013.
    """

    def __init__(self, lamda1: float = 0.01, learning_rate: float | None = 0.1, beta: float = 1, **kwargs: Any) -> None:
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.lamda1 = lamda1
        self.beta = beta

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight), zeros_like(weight)

    def _operator(self, state: Any, lr: float, wd: float, t: int) -> Update:
        return FTRLUpdate(lr=lr, wd=wd, lamda1=self.lamda1, beta=self.beta, **self._limits())


@register
class FTML(Stepwise):
    """Follow the moving leader; see `nd.ftml_update` for the formula. **Source** MXNet `optimizer.FTML`; Zheng, Kwok, 2017."""

    def __init__(self, beta1: float = 0.6, beta2: float = 0.999, epsilon: float = 1e-8, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight), zeros_like(weight), zeros_like(weight)

    def _operator(self, state: Any, lr: float, wd: float, t: int) -> Update:
        return FTMLUpdate(
            lr=lr, wd=wd, t=t, beta1=self.beta1, beta2=self.beta2, epsilon=self.epsilon, rescale_grad=self.rescale_grad,
            clip_grad=self.clip_gradient or -1.0,
        )  # fmt: skip
