"""One step of an optimizer that has a step length for each weight: Adam and its relatives, RMSProp, AdaGrad, FTRL, FTML, LAMB.

They divide by a running size of the gradient, and differ in how that is kept. The frame, and what the arguments have in common,
is in optim.py: the operator returns the new weight and changes the states in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Spec, T, apply, attributes, register
from .optim import Update, blend, checked_update, clipped, require_count

if TYPE_CHECKING:
    from typing_extensions import Unpack


# ---- AdaGrad, RMSProp


@register("_sparse_adagrad_update")
class AdaGradUpdate(Update):
    inputs: ClassVar = ("weight", "grad", "history")
    mutates: ClassVar = (2,)

    lr: float
    epsilon: float = 1e-7
    wd: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
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
    op = AdaGradUpdate(lr=lr, epsilon=epsilon, wd=wd, rescale_grad=rescale_grad, clip_gradient=clip_gradient)
    return apply(op, weight, grad, history, **how)


@register("_contrib_group_adagrad_update")
class GroupAdaGradUpdate(Update):
    inputs: ClassVar = ("weight", "grad", "history")
    mutates: ClassVar = (2,)

    lr: float
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0
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
    op = GroupAdaGradUpdate(lr=lr, rescale_grad=rescale_grad, clip_gradient=clip_gradient, epsilon=epsilon)
    return apply(op, weight, grad, history, **how)


@attributes
class RootMeanSquare(Update):
    """What the two forms of RMSProp share."""

    lr: float
    gamma1: float = 0.95
    epsilon: float = 1e-8
    wd: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0
    clip_weights: float = -1.0

    def decayed(self, xp: Any, weight: Array, grad: Array) -> Array:
        slope = grad * self.rescale_grad
        if self.wd:
            slope += weight * self.wd
        return clipped(xp, slope, self.clip_gradient)


@register("rmsprop_update")
class RMSPropUpdate(RootMeanSquare):
    inputs: ClassVar = ("weight", "grad", "n")
    mutates: ClassVar = (2,)

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
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
        lr=lr,
        gamma1=gamma1,
        epsilon=epsilon,
        wd=wd,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
        clip_weights=clip_weights,
    )
    return apply(op, weight, grad, n, **how)


@register("rmspropalex_update")
class RMSPropAlexUpdate(RootMeanSquare):
    inputs: ClassVar = ("weight", "grad", "n", "g", "delta")
    mutates: ClassVar = (2, 3, 4)

    gamma2: float = 0.9

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
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
        lr=lr,
        gamma1=gamma1,
        gamma2=gamma2,
        epsilon=epsilon,
        wd=wd,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
        clip_weights=clip_weights,
    )
    return apply(op, weight, grad, n, g, delta, **how)


# ---- follow the regularized, or the moving, leader


@register("ftrl_update", "_sparse_ftrl_update")
class FTRLUpdate(Update):
    inputs: ClassVar = ("weight", "grad", "z", "n")
    mutates: ClassVar = (2, 3)

    lr: float
    lamda1: float = 0.01
    beta: float = 1.0
    wd: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
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
    """A step of follow the regularized leader: with `g = clip(rescale_grad grad)`, `z = z + g - (sqrt(n + g**2) - sqrt(n)) w /
    lr`, `n = n + g**2`, `w = -sign(z) max(|z| - lamda1, 0) / ((beta + sqrt(n)) / lr + wd)`.

    **Shapes** weight, grad, z and n (changed), result (...). **Args** `lamda1`: strength of the L1 penalty, which makes weights
    exactly 0. **Source** MXNet `ftrl_update`; McMahan et al., 2013.
    """
    op = FTRLUpdate(
        lr=lr,
        lamda1=lamda1,
        beta=beta,
        wd=wd,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
    )
    return apply(op, weight, grad, z, n, **how)


@register("ftml_update")
class FTMLUpdate(Update):
    inputs: ClassVar = ("weight", "grad", "d", "v", "z")
    mutates: ClassVar = (2, 3, 4)

    lr: float
    t: int
    beta1: float = 0.6
    beta2: float = 0.999
    epsilon: float = 1e-8
    wd: float = 0.0
    rescale_grad: float = 1.0
    clip_grad: float = -1.0

    def infer(self, weight: Spec, grad: Spec, *states: Spec) -> Spec:
        require_count(self, self.t)
        if self.lr == 0:
            raise ArgumentError(f"{self.name}: lr is 0, and the step divides by it; leave the step out, or give a small number")
        return checked_update(self, self.inputs, weight, grad, *states)

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
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
        lr=lr,
        t=t,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wd=wd,
        rescale_grad=rescale_grad,
        clip_grad=clip_grad,
    )
    return apply(op, weight, grad, d, v, z, **how)


__all__ = ["adagrad_update", "ftml_update", "ftrl_update", "group_adagrad_update", "rmsprop_update", "rmspropalex_update"]
