"""One step of Adam and of what was made of it: AdamW, whose weight decay stands apart, and LAMB, with a step length for each layer.

The frame, and what the arguments have in common, is in optim.py: the operator returns the new weight and changes the states, running
averages of the gradient and of its square, in place.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ShapeError
from ..fields import converted
from ..op import Array, How, Op, Spec, T, Tensor, apply, attributes, register
from .optim import Update, blend, checked_update, require_count, spare, updated

if TYPE_CHECKING:
    from typing_extensions import Unpack


# ---- Adam


def direction(op: Any, xp: Any, slope: Array, mean: Array, var: Array) -> Array:
    """`mean / (sqrt(var) + epsilon)`, in spare memory, after the averages have taken in `slope`, clipped, which is used up."""
    if op.clip_gradient >= 0:
        xp.clip(slope, -op.clip_gradient, op.clip_gradient, out=slope)
    move = xp.multiply(slope, 1 - op.beta1, out=spare(xp, slope, 1))
    mean *= op.beta1
    mean += move
    xp.square(slope, out=slope)
    slope *= 1 - op.beta2
    var *= op.beta2
    var += slope
    xp.sqrt(var, out=move)
    move += op.epsilon
    return xp.divide(mean, move, out=move)


@register("adam_update", "_sparse_adam_update")
class AdamUpdate(Update):
    inputs: ClassVar = ("weight", "grad", "mean", "var")
    mutates: ClassVar = (2, 3)

    lr: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    wd: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0
    lazy_update: bool = True

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
        mean, var = states
        slope = xp.multiply(grad, self.rescale_grad, out=spare(xp, grad))
        if self.wd:
            slope += xp.multiply(weight, self.wd, out=spare(xp, grad, 1))
        move = direction(self, xp, slope, mean, var)
        move *= self.lr
        return xp.subtract(weight, move, out=out)


def adam_update(
    weight: T,
    grad: T,
    mean: T,
    var: T,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    **how: Unpack[How],
) -> T:
    """A step of Adam: `g = clip(rescale_grad grad + wd w)`, `mean` and `var` running averages of g and g squared,
    `w = w - lr mean / (sqrt(var) + epsilon)`.

    The correction for the first steps is the caller's, in `lr`. **Shapes** weight, grad, mean and var (changed), result (...).
    **Args** `beta1`, `beta2`: what the averages keep of themselves. **Source** MXNet `adam_update`; Kingma, Ba, 2014.
    """
    op = AdamUpdate(
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wd=wd,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
    )
    return apply(op, weight, grad, mean, var, **how)


@attributes
class DecoupledAdam(Op):
    """Adam whose weight decay does not pass through the averages. The factor of the gradient is an array: a loss scaler computes
    it."""

    takes_out = True
    saves_inputs = False
    saves_outputs = False

    lr: float
    eta: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    wd: float = 0.0
    clip_gradient: float = -1.0

    def infer(self, *inputs: Spec) -> Spec:
        weight = checked_update(self, self.inputs[:-1], *inputs[:-1])
        if inputs[-1].size != 1:
            raise ShapeError(f"{self.name}: rescale_grad has shape {inputs[-1].shape}, wants a single number")
        return weight

    def kernel(self, xp: Any, weight: Array, grad: Array, *others: Array, out: Array | None = None) -> Array:
        *states, rescale_grad = others
        master = states.pop() if self.inputs[-2] == "weight32" else None
        return self.advance(xp, weight, grad, states, master, float(rescale_grad.reshape(-1)[0]), out)

    def advance(
        self,
        xp: Any,
        weight: Array,
        grad: Array,
        states: list[Array],
        master: Array | None,
        scale: float,
        out: Array | None = None,
    ) -> Array:
        """The new weight. A factor that is not finite, or 0, means that the gradient overflowed: nothing changes."""
        if scale == 0 or not math.isfinite(scale):
            if out is None:
                return weight.copy()
            out[...] = weight
            return out

        return updated(partial(decoupled_step, self, scale), xp, weight, grad, states, master, out)


def decoupled_step(
    op: Any, scale: float, xp: Any, weight: Array, grad: Array, mean: Array, var: Array, out: Array | None
) -> Array:
    """A step of AdamW, whose settings are the attributes of `op`, with the gradient times `scale`."""
    move = direction(op, xp, xp.multiply(grad, scale, out=spare(xp, grad)), mean, var)
    move *= op.lr * op.eta
    if op.wd:
        weight = xp.multiply(weight, 1 - op.eta * op.wd, out=out)
    return xp.subtract(weight, move, out=out)


@attributes
class AdamWStep(Update):
    """AdamW with a number as the factor of the gradient: what the optimizer of this name does. No name of MXNet's finds it."""

    name = "adamw_update"
    inputs: ClassVar = ("weight", "grad", "mean", "var")
    mutates: ClassVar = (2, 3)

    lr: float
    eta: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    wd: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
        mean, var = states
        if self.rescale_grad == 0 or not math.isfinite(self.rescale_grad):  # the gradient overflowed: nothing changes
            return weight
        return decoupled_step(self, self.rescale_grad, xp, weight, grad, mean, var, out=out)


@register("_adamw_update")
class AdamWUpdate(DecoupledAdam):
    inputs: ClassVar = ("weight", "grad", "mean", "var", "rescale_grad")
    mutates: ClassVar = (2, 3)


@register("_mp_adamw_update")
class MPAdamWUpdate(DecoupledAdam):
    inputs: ClassVar = ("weight", "grad", "mean", "var", "weight32", "rescale_grad")
    mutates: ClassVar = (2, 3, 4)


def as_factor(like: Any, value: Any) -> Any:
    """`value` as a tensor of one number, on the device of `like`."""
    if isinstance(value, Tensor) or not isinstance(like, Tensor):
        return value
    number = converted("adamw_update", "rescale_grad", "float", value)
    first: Any = like.reshape((-1,)).slice_axis(axis=0, begin=0, end=1)  # type: ignore[attr-defined]  # every tensor has the methods
    return first.ones_like().astype("float32") * number


def adamw_update(
    weight: T,
    grad: T,
    mean: T,
    var: T,
    rescale_grad: T | float,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    clip_gradient: float = -1.0,
    **how: Unpack[How],
) -> T:
    """A step of AdamW: `g = clip(rescale_grad grad)`, `w = w - eta (lr mean / (sqrt(var) + epsilon) + wd w)`.

    **Shapes** weight, grad, mean and var (changed), result (...), rescale_grad (1,) or a number; if that is not finite or 0,
    nothing changes. **Args** `eta`: the schedule's factor of the whole step. **Source** MXNet `contrib.adamw_update`; Loshchilov,
    Hutter, 2017.
    """
    op = AdamWUpdate(
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wd=wd,
        eta=eta,
        clip_gradient=clip_gradient,
    )
    return apply(op, weight, grad, mean, var, as_factor(weight, rescale_grad), **how)


def mp_adamw_update(
    weight: T,
    grad: T,
    mean: T,
    var: T,
    weight32: T,
    rescale_grad: T | float,
    lr: float,
    eta: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    clip_gradient: float = -1.0,
    **how: Unpack[How],
) -> T:
    """A step of AdamW on `weight32`, the float32 copy of `weight`: see adamw_update.

    **Shapes** weight, grad, mean, var and weight32 (changed, float32), result (...), rescale_grad (1,) or a number.
    **Source** MXNet `contrib.mp_adamw_update`.
    """
    op = MPAdamWUpdate(
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wd=wd,
        eta=eta,
        clip_gradient=clip_gradient,
    )
    return apply(op, weight, grad, mean, var, weight32, as_factor(weight, rescale_grad), **how)


# ---- LAMB: layerwise step lengths, in two phases


@attributes
class LambDirection(Update):
    """The direction of a step of LAMB, of which the caller takes the norm before it makes the step."""

    t: int
    wd: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6
    bias_correction: bool = True
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0

    def infer(self, weight: Spec, grad: Spec, *states: Spec) -> Spec:
        require_count(self, self.t)
        return checked_update(self, self.inputs, weight, grad, *states)

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
        mean, var = states
        slope = self.limited(xp, grad)
        blend(mean, slope, self.beta1)
        blend(var, xp.square(slope), self.beta2)
        size = xp.sqrt(var / (1 - self.beta2**self.t) if self.bias_correction else var)
        size += self.epsilon
        if self.bias_correction:
            size *= 1 - self.beta1**self.t
        return mean / size + weight * self.wd


@register("lamb_update_phase1")
class LambUpdatePhase1(LambDirection):
    inputs: ClassVar = ("weight", "grad", "mean", "var")
    mutates: ClassVar = (2, 3)


@register("mp_lamb_update_phase1")
class MPLambUpdatePhase1(LambDirection):
    inputs: ClassVar = ("weight", "grad", "mean", "var", "weight32")
    mutates: ClassVar = (2, 3)

    def infer(self, weight: Spec, grad: Spec, *states: Spec) -> Spec:
        return LambDirection.infer(self, weight, grad, *states).with_dtype("float32")

    def kernel(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None = None) -> Array:
        *averages, weight32 = states
        return updated(self.step, xp, weight32, grad, averages, None, out)


@attributes
class LambStep(Op):
    """The step of LAMB: as long, relative to the weight, as the learning rate says."""

    takes_out = True
    saves_inputs = False
    saves_outputs = False

    lr: float
    lower_bound: float = -1.0
    upper_bound: float = -1.0

    def infer(self, weight: Spec, g: Spec, r1: Spec, r2: Spec, *weight32: Spec) -> Spec:
        for name, spec in (("r1", r1), ("r2", r2)):
            if spec.size != 1:
                raise ShapeError(f"{self.name}: {name} has shape {spec.shape}, wants a single number")
        if weight32:
            checked_update(self, ("weight", "g", "weight32"), weight, g, *weight32)
            return weight
        return checked_update(self, ("weight", "g"), weight, g)

    def kernel(
        self, xp: Any, weight: Array, g: Array, r1: Array, r2: Array, weight32: Array | None = None, out: Array | None = None
    ) -> Array:
        length = self.lr * trust_ratio(float(r1.reshape(-1)[0]), float(r2.reshape(-1)[0]), self.lower_bound, self.upper_bound)
        return updated(partial(stride, length), xp, weight, g, (), weight32, out)


def stride(length: float, xp: Any, weight: Array, direction: Array, out: Array | None) -> Array:
    """The weight moved against `direction`."""
    return xp.subtract(weight, direction * length, out=out)


def trust_ratio(weight_norm: float, step_norm: float, lower_bound: float, upper_bound: float) -> float:
    """Norm of a weight, kept within the bounds (negative: none), over that of its step; 1 if either is 0."""
    if lower_bound >= 0:
        weight_norm = max(weight_norm, lower_bound)
    if upper_bound >= 0:
        weight_norm = min(weight_norm, upper_bound)
    return weight_norm / step_norm if weight_norm and step_norm else 1.0


@register("lamb_update_phase2")
class LambUpdatePhase2(LambStep):
    inputs: ClassVar = ("weight", "g", "r1", "r2")


@register("mp_lamb_update_phase2")
class MPLambUpdatePhase2(LambStep):
    inputs: ClassVar = ("weight", "g", "r1", "r2", "weight32")
    mutates: ClassVar = (4,)


def lamb_update_phase1(
    weight: T,
    grad: T,
    mean: T,
    var: T,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    t: int = 0,
    bias_correction: bool = True,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    **how: Unpack[How],
) -> T:
    """The direction of step number `t` (from 1) of LAMB: `g = clip(rescale_grad grad)`, `mean` and `var` running averages of g
    and g squared, `result = mean / (1 - beta1**t) / (sqrt(var / (1 - beta2**t)) + epsilon) + wd w`.

    **Shapes** weight, grad, mean and var (changed), result (...). **Args** `bias_correction`: divide as above, or not.
    **Source** MXNet `lamb_update_phase1`; You et al., 2019.
    """
    op = LambUpdatePhase1(
        t=t,
        wd=wd,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        bias_correction=bias_correction,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
    )
    return apply(op, weight, grad, mean, var, **how)


def mp_lamb_update_phase1(
    weight: T,
    grad: T,
    mean: T,
    var: T,
    weight32: T,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    t: int = 0,
    bias_correction: bool = True,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    **how: Unpack[How],
) -> T:
    """The direction of a step of LAMB from `weight32`, the float32 copy of `weight`: see lamb_update_phase1. The result is
    float32.

    **Source** MXNet `mp_lamb_update_phase1`.
    """
    op = MPLambUpdatePhase1(
        t=t,
        wd=wd,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        bias_correction=bias_correction,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
    )
    return apply(op, weight, grad, mean, var, weight32, **how)


def lamb_update_phase2(
    weight: T,
    g: T,
    r1: T,
    r2: T,
    lr: float,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
    **how: Unpack[How],
) -> T:
    """The step of LAMB in the direction `g`: `w = w - lr clip(r1) / r2 g`, r1 and r2 the norms of w and g; a ratio with a 0 is 1.

    **Shapes** weight, g and result (...), r1 and r2 (1,). **Args** `lower_bound`, `upper_bound`: of r1, negative for none.
    **Source** MXNet `lamb_update_phase2`.
    """
    op = LambUpdatePhase2(lr=lr, lower_bound=lower_bound, upper_bound=upper_bound)
    return apply(op, weight, g, r1, r2, **how)


def mp_lamb_update_phase2(
    weight: T,
    g: T,
    r1: T,
    r2: T,
    weight32: T,
    lr: float,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
    **how: Unpack[How],
) -> T:
    """The step of LAMB on `weight32`, the float32 copy of `weight`: see lamb_update_phase2. **Source** MXNet
    `mp_lamb_update_phase2`."""
    op = MPLambUpdatePhase2(lr=lr, lower_bound=lower_bound, upper_bound=upper_bound)
    return apply(op, weight, g, r1, r2, weight32, **how)


__all__ = [
    "adam_update", "adamw_update", "lamb_update_phase1", "lamb_update_phase2", "mp_adamw_update", "mp_lamb_update_phase1",
    "mp_lamb_update_phase2",
]  # fmt: skip
