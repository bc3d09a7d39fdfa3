"""One step of an optimizer that has a step length for each weight: Adam and its relatives, RMSProp, AdaGrad, FTRL, FTML, LAMB.

They divide by a running size of the gradient, and differ in how that is kept. The frame, and what the arguments have in common,
is in optim.py: the operator returns the new weight and changes the states in place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Spec, T, apply, register
from .optim import Update, checked_update, clipped, updated

if TYPE_CHECKING:
    from typing_extensions import Unpack


def blend(average: Array, value: Array, keep: float) -> None:
    """A running average, in place: `average = keep average + (1 - keep) value`."""
    average *= keep
    average += value * (1 - keep)


def require_count(op: Op, t: int) -> None:
    """Raise ArgumentError unless `t`, the number of a step, is positive."""
    if t < 1:
        raise ArgumentError(f"{op.name}: t={t} is no number of a step; count steps from 1")


# ---- Adam


@register("adam_update", "_sparse_adam_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class AdamUpdate(Update):
    inputs: ClassVar = ("weight", "grad", "mean", "var")
    mutates: ClassVar = (2, 3)

    lr: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    wd: float = 0.0
    lazy_update: bool = True

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array) -> Array:
        mean, var = states
        slope = grad * self.rescale_grad
        if self.wd:
            slope += weight * self.wd
        slope = clipped(xp, slope, self.clip_gradient)
        blend(mean, slope, self.beta1)
        blend(var, xp.square(slope), self.beta2)
        size = xp.sqrt(var)
        size += self.epsilon
        move = mean / size
        move *= self.lr
        return xp.subtract(weight, move, out=move)


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
        lr=float(lr),
        beta1=float(beta1),
        beta2=float(beta2),
        epsilon=float(epsilon),
        wd=float(wd),
        rescale_grad=float(rescale_grad),
        clip_gradient=float(clip_gradient),
    )
    return apply(op, weight, grad, mean, var, **how)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoupledAdam(Op):
    """Adam whose weight decay does not pass through the averages. The factor of the gradient is an array: a loss scaler computes
    it."""

    takes_out = True
    saves_inputs = False
    saves_outputs = False

    lr: float
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    wd: float = 0.0
    eta: float
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

        def step(xp: Any, weight: Array, grad: Array, mean: Array, var: Array) -> Array:
            slope = clipped(xp, grad * scale, self.clip_gradient)
            blend(mean, slope, self.beta1)
            blend(var, xp.square(slope), self.beta2)
            size = xp.sqrt(var)
            size += self.epsilon
            return weight - (mean / size * self.lr + weight * self.wd) * self.eta

        return updated(step, xp, weight, grad, states, master, out)


@register("_adamw_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class AdamWUpdate(DecoupledAdam):
    inputs: ClassVar = ("weight", "grad", "mean", "var", "rescale_grad")
    mutates: ClassVar = (2, 3)


@register("_mp_adamw_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class MPAdamWUpdate(DecoupledAdam):
    inputs: ClassVar = ("weight", "grad", "mean", "var", "weight32", "rescale_grad")
    mutates: ClassVar = (2, 3, 4)


def as_factor(like: Any, value: Any) -> Any:
    """`value` as a tensor of one number, on the device of `like`."""
    if isinstance(value, type(like)):
        return value
    first = like.reshape((-1,)).slice_axis(axis=0, begin=0, end=1)
    return first.ones_like().astype("float32") * float(value)


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
        lr=float(lr),
        beta1=float(beta1),
        beta2=float(beta2),
        epsilon=float(epsilon),
        wd=float(wd),
        eta=float(eta),
        clip_gradient=float(clip_gradient),
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
        lr=float(lr),
        beta1=float(beta1),
        beta2=float(beta2),
        epsilon=float(epsilon),
        wd=float(wd),
        eta=float(eta),
        clip_gradient=float(clip_gradient),
    )
    return apply(op, weight, grad, mean, var, weight32, as_factor(weight, rescale_grad), **how)


# ---- AdaGrad, RMSProp


@register("_sparse_adagrad_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaGradUpdate(Update):
    inputs: ClassVar = ("weight", "grad", "history")
    mutates: ClassVar = (2,)

    lr: float
    epsilon: float = 1e-7
    wd: float = 0.0

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array) -> Array:
        (history,) = states
        slope = self.limited(xp, grad)
        history += xp.square(slope)
        move = slope / xp.sqrt(history + self.epsilon)
        if self.wd:
            move += weight * self.wd
        return weight - move * self.lr


def adagrad_update(
    weight: T,
    grad: T,
    history: T,
    lr: float,
    epsilon: float = 1e-7,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    **how: Unpack[How],
) -> T:
    """A step of AdaGrad: `g = clip(rescale_grad grad)`, `history = history + g ** 2`, `w = w - lr (g / sqrt(history + epsilon) +
    wd w)`.

    **Shapes** weight, grad, history (changed) and result (...). **Source** MXNet `sparse.adagrad_update`, here for dense arrays;
    Duchi et al., 2011.
    """
    op = AdaGradUpdate(
        lr=float(lr), epsilon=float(epsilon), wd=float(wd), rescale_grad=float(rescale_grad), clip_gradient=float(clip_gradient)
    )
    return apply(op, weight, grad, history, **how)


@register("_contrib_group_adagrad_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAdaGradUpdate(Update):
    inputs: ClassVar = ("weight", "grad", "history")
    mutates: ClassVar = (2,)

    lr: float
    epsilon: float = 1e-5

    def infer(self, weight: Spec, grad: Spec, *states: Spec) -> Spec:
        (history,) = states
        checked_update(self, ("weight", "grad"), weight, grad)
        wanted = (*weight.shape[:1], *(1 for _ in weight.shape[1:]))
        if history.shape != wanted or history.dtype != weight.dtype:
            raise ShapeError(
                f"{self.name}: history is {history}, weight of shape {weight.shape} needs {weight.dtype.name}{list(wanted)}"
            )
        return weight

    def kernel(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None = None) -> Array:
        (history,) = states
        slope = self.limited(xp, grad)
        history += xp.square(slope).mean(axis=tuple(range(1, weight.ndim)), keepdims=True)
        return xp.subtract(weight, slope / xp.sqrt(history + self.epsilon) * self.lr, out=out)


def group_adagrad_update(
    weight: T,
    grad: T,
    history: T,
    lr: float,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    epsilon: float = 1e-5,
    **how: Unpack[How],
) -> T:
    """A step of AdaGrad with one step length a row: `history = history + mean(g ** 2)`, `w = w - lr g / sqrt(history + epsilon)`.

    **Shapes** weight, grad and result (N, ...), history (N, 1, ...) (changed). **Source** MXNet `contrib.group_adagrad_update`.
    """
    op = GroupAdaGradUpdate(
        lr=float(lr), rescale_grad=float(rescale_grad), clip_gradient=float(clip_gradient), epsilon=float(epsilon)
    )
    return apply(op, weight, grad, history, **how)


@dataclass(frozen=True, slots=True, kw_only=True)
class RootMeanSquare(Update):
    """What the two forms of RMSProp share."""

    lr: float
    gamma1: float = 0.95
    epsilon: float = 1e-8
    wd: float = 0.0
    clip_weights: float = -1.0

    def decayed(self, xp: Any, weight: Array, grad: Array) -> Array:
        slope = grad * self.rescale_grad
        if self.wd:
            slope += weight * self.wd
        return clipped(xp, slope, self.clip_gradient)


@register("rmsprop_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class RMSPropUpdate(RootMeanSquare):
    inputs: ClassVar = ("weight", "grad", "n")
    mutates: ClassVar = (2,)

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array) -> Array:
        (square,) = states
        slope = self.decayed(xp, weight, grad)
        blend(square, xp.square(slope), self.gamma1)
        move = slope / xp.sqrt(square + self.epsilon)
        return clipped(xp, weight - move * self.lr, self.clip_weights)


def rmsprop_update(
    weight: T,
    grad: T,
    n: T,
    lr: float,
    gamma1: float = 0.95,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
    **how: Unpack[How],
) -> T:
    """A step of RMSProp: `g = clip(rescale_grad grad + wd w)`, `n` the running average of g squared,
    `w = clip(w - lr g / sqrt(n + epsilon))`.

    **Shapes** weight, grad, n (changed) and result (...). **Args** `gamma1`: what the average keeps of itself; `clip_weights`:
    bound of the new weights, negative for none. **Source** MXNet `rmsprop_update`; Tieleman, Hinton, 2012.
    """
    op = RMSPropUpdate(
        lr=float(lr),
        gamma1=float(gamma1),
        epsilon=float(epsilon),
        wd=float(wd),
        rescale_grad=float(rescale_grad),
        clip_gradient=float(clip_gradient),
        clip_weights=float(clip_weights),
    )
    return apply(op, weight, grad, n, **how)


@register("rmspropalex_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class RMSPropAlexUpdate(RootMeanSquare):
    inputs: ClassVar = ("weight", "grad", "n", "g", "delta")
    mutates: ClassVar = (2, 3, 4)

    gamma2: float = 0.9

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array) -> Array:
        square, mean, delta = states
        slope = self.decayed(xp, weight, grad)
        blend(square, xp.square(slope), self.gamma1)
        blend(mean, slope, self.gamma1)
        delta *= self.gamma2
        delta -= slope / xp.sqrt(square - xp.square(mean) + self.epsilon) * self.lr
        return clipped(xp, weight + delta, self.clip_weights)


def rmspropalex_update(
    weight: T,
    grad: T,
    n: T,
    g: T,
    delta: T,
    lr: float,
    gamma1: float = 0.95,
    gamma2: float = 0.9,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
    **how: Unpack[How],
) -> T:
    """A step of RMSProp, centred and with momentum: `n` and `g` the running averages of the squared gradient and of the gradient,
    `delta = gamma2 delta - lr grad / sqrt(n - g ** 2 + epsilon)`, `w = clip(w + delta)`.

    **Shapes** weight, grad, n, g and delta (changed), result (...). **Args** see rmsprop_update. **Source** MXNet
    `rmspropalex_update`; Graves, 2013.
    """
    op = RMSPropAlexUpdate(
        lr=float(lr),
        gamma1=float(gamma1),
        gamma2=float(gamma2),
        epsilon=float(epsilon),
        wd=float(wd),
        rescale_grad=float(rescale_grad),
        clip_gradient=float(clip_gradient),
        clip_weights=float(clip_weights),
    )
    return apply(op, weight, grad, n, g, delta, **how)


# ---- follow the regularised, or the moving, leader


@register("ftrl_update", "_sparse_ftrl_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class FTRLUpdate(Update):
    inputs: ClassVar = ("weight", "grad", "z", "n")
    mutates: ClassVar = (2, 3)

    lr: float
    lamda1: float = 0.01
    beta: float = 1.0
    wd: float = 0.0

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array) -> Array:
        leader, total = states
        slope = self.limited(xp, grad)
        before = xp.sqrt(total)
        total += xp.square(slope)
        after = xp.sqrt(total)
        leader += slope - (after - before) * weight / self.lr
        shrunk = xp.sign(leader) * xp.maximum(xp.abs(leader) - self.lamda1, 0)
        return -shrunk / ((after + self.beta) / self.lr + self.wd)


def ftrl_update(
    weight: T,
    grad: T,
    z: T,
    n: T,
    lr: float,
    lamda1: float = 0.01,
    beta: float = 1.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    **how: Unpack[How],
) -> T:
    """A step of follow the regularised leader: with `g = clip(rescale_grad grad)`, `z = z + g - (sqrt(n + g**2) - sqrt(n)) w /
    lr`, `n = n + g**2`, `w = -sign(z) max(|z| - lamda1, 0) / ((beta + sqrt(n)) / lr + wd)`.

    **Shapes** weight, grad, z and n (changed), result (...). **Args** `lamda1`: strength of the L1 penalty, which makes weights
    exactly 0. **Source** MXNet `ftrl_update`; McMahan et al., 2013.
    """
    op = FTRLUpdate(
        lr=float(lr),
        lamda1=float(lamda1),
        beta=float(beta),
        wd=float(wd),
        rescale_grad=float(rescale_grad),
        clip_gradient=float(clip_gradient),
    )
    return apply(op, weight, grad, z, n, **how)


@register("ftml_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class FTMLUpdate(Update):
    inputs: ClassVar = ("weight", "grad", "d", "v", "z")
    mutates: ClassVar = (2, 3, 4)

    lr: float
    beta1: float = 0.6
    beta2: float = 0.999
    epsilon: float = 1e-8
    t: int
    wd: float = 0.0
    clip_grad: float = -1.0

    def infer(self, weight: Spec, grad: Spec, *states: Spec) -> Spec:
        require_count(self, self.t)
        return checked_update(self, self.inputs, weight, grad, *states)

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array) -> Array:
        size, square, leader = states
        slope = clipped(xp, grad * self.rescale_grad + weight * self.wd, self.clip_grad)
        blend(square, xp.square(slope), self.beta2)
        new_size = xp.sqrt(square / (1 - self.beta2**self.t))
        new_size += self.epsilon
        new_size *= (1 - self.beta1**self.t) / self.lr
        blend(leader, slope, self.beta1)
        leader -= (new_size - size * self.beta1) * weight
        size[...] = new_size
        return -leader / new_size


def ftml_update(
    weight: T,
    grad: T,
    d: T,
    v: T,
    z: T,
    lr: float,
    beta1: float = 0.6,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    t: int = 0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_grad: float = -1.0,
    **how: Unpack[How],
) -> T:
    """Step number `t` (from 1) of follow the moving leader: with `g = clip(rescale_grad grad + wd w)`, `v` the running average of
    g squared, `D = (1 - beta1**t) / lr (sqrt(v / (1 - beta2**t)) + epsilon)`, `z = beta1 z + (1 - beta1) g - (D - beta1 d) w`, `d
    = D`, `w = -z / d`.

    **Shapes** weight, grad, d, v and z (changed), result (...). **Source** MXNet `ftml_update`; Zheng, Kwok, 2017.
    """
    op = FTMLUpdate(
        lr=float(lr),
        t=int(t),
        beta1=float(beta1),
        beta2=float(beta2),
        epsilon=float(epsilon),
        wd=float(wd),
        rescale_grad=float(rescale_grad),
        clip_grad=float(clip_grad),
    )
    return apply(op, weight, grad, d, v, z, **how)


# ---- LAMB: layerwise step lengths, in two phases


@dataclass(frozen=True, slots=True, kw_only=True)
class LambDirection(Update):
    """The direction of a step of LAMB, of which the caller takes the norm before it makes the step."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6
    t: int
    bias_correction: bool = True
    wd: float

    def infer(self, weight: Spec, grad: Spec, *states: Spec) -> Spec:
        require_count(self, self.t)
        return checked_update(self, self.inputs, weight, grad, *states)

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array) -> Array:
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
@dataclass(frozen=True, slots=True, kw_only=True)
class LambUpdatePhase1(LambDirection):
    inputs: ClassVar = ("weight", "grad", "mean", "var")
    mutates: ClassVar = (2, 3)


@register("mp_lamb_update_phase1")
@dataclass(frozen=True, slots=True, kw_only=True)
class MPLambUpdatePhase1(LambDirection):
    inputs: ClassVar = ("weight", "grad", "mean", "var", "weight32")
    mutates: ClassVar = (2, 3)

    def infer(self, weight: Spec, grad: Spec, *states: Spec) -> Spec:
        return LambDirection.infer(self, weight, grad, *states).with_dtype("float32")

    def kernel(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None = None) -> Array:
        *averages, weight32 = states
        return updated(self.step, xp, weight32, grad, averages, None, out)


@dataclass(frozen=True, slots=True, kw_only=True)
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
        return updated(lambda xp, old, move: old - move * length, xp, weight, g, (), weight32, out)


def trust_ratio(weight_norm: float, step_norm: float, lower_bound: float, upper_bound: float) -> float:
    """Norm of a weight, kept within the bounds (negative: none), over that of its step; 1 if either is 0."""
    if lower_bound >= 0:
        weight_norm = max(weight_norm, lower_bound)
    if upper_bound >= 0:
        weight_norm = min(weight_norm, upper_bound)
    return weight_norm / step_norm if weight_norm and step_norm else 1.0


@register("lamb_update_phase2")
@dataclass(frozen=True, slots=True, kw_only=True)
class LambUpdatePhase2(LambStep):
    inputs: ClassVar = ("weight", "g", "r1", "r2")


@register("mp_lamb_update_phase2")
@dataclass(frozen=True, slots=True, kw_only=True)
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
        t=int(t),
        wd=float(wd),
        beta1=float(beta1),
        beta2=float(beta2),
        epsilon=float(epsilon),
        bias_correction=bool(bias_correction),
        rescale_grad=float(rescale_grad),
        clip_gradient=float(clip_gradient),
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
        t=int(t),
        wd=float(wd),
        beta1=float(beta1),
        beta2=float(beta2),
        epsilon=float(epsilon),
        bias_correction=bool(bias_correction),
        rescale_grad=float(rescale_grad),
        clip_gradient=float(clip_gradient),
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
    op = LambUpdatePhase2(lr=float(lr), lower_bound=float(lower_bound), upper_bound=float(upper_bound))
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
    op = MPLambUpdatePhase2(lr=float(lr), lower_bound=float(lower_bound), upper_bound=float(upper_bound))
    return apply(op, weight, g, r1, r2, weight32, **how)


__all__ = [
    "adagrad_update", "adam_update", "adamw_update", "ftml_update", "ftrl_update", "group_adagrad_update", "lamb_update_phase1",
    "lamb_update_phase2", "mp_adamw_update", "mp_lamb_update_phase1", "mp_lamb_update_phase2", "rmsprop_update", "rmspropalex_update",
]  # fmt: skip
