"""Operators whose gradient is not that of their value.

Rounding has no slope to learn from, so a *straight-through estimator* passes the gradient on as if nothing had happened (Bengio et al.,
2013). Two others pass the value on and change the gradient: one multiplies it, as networks that are to unlearn something do with a negative
factor (Ganin and Lempitsky, 2015), one adds the gradient of a penalty for activations whose mean is not the wanted one (Hinton, 2010).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError
from ..op import NOT_GIVEN, Array, How, Op, Spec, T, apply, attributes, register
from ..rules import filled, require_ndim, same_dtype
from .checks import accurate, require_float, require_shape
from .forms import ANY, Unary, copy
from .unary import Round, Sign

if TYPE_CHECKING:
    from typing_extensions import Unpack


@register("_contrib_round_ste")
class RoundStraight(Round):
    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g,)


def round_ste(data: T, **how: Unpack[How]) -> T:
    """Whole numbers, rounded half away from zero, with the gradient of the identity.

    **Shapes** data and result (...). **Gradient** `g`. **Source** MXNet `contrib.round_ste`.
    """
    return apply(RoundStraight(), data, **how)


@register("_contrib_sign_ste")
class SignStraight(Sign):
    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g,)


def sign_ste(data: T, **how: Unpack[How]) -> T:
    """1, 0 or -1 for each element, with the gradient of the identity.

    **Shapes** data and result (...). **Gradient** `g`. **Source** MXNet `contrib.sign_ste`.
    """
    return apply(SignStraight(), data, **how)


@register("_contrib_gradientmultiplier")
class GradientMultiplier(Unary):
    accepts: ClassVar = ANY
    saves_inputs: ClassVar = False
    saves_outputs: ClassVar = False

    scalar: float = 1.0

    @classmethod
    def ignored_attrs(cls) -> tuple[str, ...]:
        return (*Op.ignored_attrs(), "is_int")  # MXNet's note whether the number was an int

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return copy(xp, data, out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * self.scalar,)


def gradientmultiplier(data: T, scalar: float = 1.0, is_int: bool = True, **how: Unpack[How]) -> T:
    """A copy of data, whose gradient is multiplied by `scalar`; by a negative one it is turned round.

    **Shapes** data and result (...). **Args** `is_int` changes nothing. **Gradient** `scalar * g`. **Source** MXNet
    `contrib.gradientmultiplier`.
    """
    return apply(GradientMultiplier(scalar), data, **how)


# ---- a penalty


@attributes
class SparsePenalty(Op):
    """The attributes, and the rule of shapes: the mean activation of each unit, a running mean over batches, is an auxiliary state."""

    sparseness_target: float = 0.1
    penalty: float = 0.001
    momentum: float = 0.9

    def check(self, data: Spec, moving_avg: Spec) -> None:
        for name in ("sparseness_target", "momentum"):
            if not 0 <= getattr(self, name) <= 1:
                raise ArgumentError(f"{self.name}: {name}={getattr(self, name)} must be from 0 to 1")
        require_float(self, data)
        require_ndim(self, "data", data, 2, axes=("batch", "units"))
        require_shape(self, "moving_avg", moving_avg, data.shape[1:], f"data of shape {data.shape}")
        same_dtype(self, data, moving_avg)


@register("IdentityAttachKLSparseReg")
class SparseRegularization(SparsePenalty):
    inputs: ClassVar = ("data", "moving_avg")
    aux: ClassVar = (1,)
    saves_outputs: ClassVar = False

    def infer(self, data: Spec, moving_avg: Spec) -> Spec:
        self.check(data, moving_avg)
        return data

    def fill(self, data: Spec | None, moving_avg: Spec | None) -> tuple[Spec | None, ...]:
        known = data is not None and data.ndim == 2
        return data, filled(moving_avg, data.shape[1:], data) if known and data is not None else moving_avg

    def kernel(self, xp: Any, data: Array, moving_avg: Array) -> Array:
        return data.copy()

    def vjp(self, g: Any, y: Any, data: Any, moving_avg: Any) -> tuple[Any, ...]:
        op = SparseRegularizationBackward(self.sparseness_target, self.penalty, self.momentum)
        return apply(op, g, data, moving_avg), None


@register("_backward_IdentityAttachKLSparseReg")
class SparseRegularizationBackward(SparsePenalty):
    """The head and the gradient of the penalty, `KL(target || mean)` of each unit; the running means are moved on the way."""

    inputs: ClassVar = ("head", "data", "moving_avg")
    mutates: ClassVar = (2,)
    saves_inputs: ClassVar = False
    saves_outputs: ClassVar = False

    def infer(self, head: Spec, data: Spec, moving_avg: Spec) -> Spec:
        self.check(data, moving_avg)
        return head

    def kernel(self, xp: Any, head: Array, data: Array, moving_avg: Array) -> Array:
        moving_avg *= moving_avg.dtype.type(self.momentum)
        moving_avg += (accurate(xp, data).mean(axis=0) * (1 - self.momentum)).astype(moving_avg.dtype, copy=False)
        mean, target = accurate(xp, moving_avg), self.sparseness_target
        slope = self.penalty * ((1 - target) / (1 - mean) - target / mean)
        return (head + slope).astype(head.dtype, copy=False)

    def vjp(self, g: Any, y: Any, head: Any, data: Any, moving_avg: Any) -> tuple[Any, ...]:
        return g, None, None  # MXNet has no second derivative either; the penalty counts as constant


def IdentityAttachKLSparseReg(
    data: T | None = NOT_GIVEN,
    sparseness_target: float = 0.1,
    penalty: float = 0.001,
    momentum: float = 0.9,
    moving_avg: T | None = None,
    **how: Unpack[How],
) -> T:
    """A copy of activations, whose gradient gets that of a penalty unless each unit's mean activation is the wanted one.

    **Shapes** data and result (N, C), moving_avg (C,), an auxiliary state: the backward pass moves it towards the means over the batch,
    `moving = momentum moving + (1 - momentum) mean`. **Args** data: between 0 and 1, as a sigmoid makes them; `sparseness_target`: the
    wanted mean t; `penalty`: the weight of the penalty. **Gradient** `g + penalty ((1 - t) / (1 - moving) - t / moving)`. **Source** MXNet
    `IdentityAttachKLSparseReg` (for Symbols only; 0 is where its moving mean starts).
    """
    op = SparseRegularization(sparseness_target, penalty, momentum)
    return apply(op, data, moving_avg, **how)


__all__ = ["IdentityAttachKLSparseReg", "gradientmultiplier", "round_ste", "sign_ste"]
