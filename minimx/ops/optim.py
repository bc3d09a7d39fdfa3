"""One step of an optimizer as an operator: stochastic gradient descent and its relatives with momentum.

Each operator takes a weight, its gradient and the optimizer's states, returns the new weight (the caller passes `out=weight`) and
changes the states in place. A step is several passes over arrays that may be larger than the cache, so it is made in tiles:
`updated` hands out slices that stay in cache while `step`, the formula of the optimizer, goes over them. Operators whose name
begins with `mp_` (mixed precision) keep a float32 copy of a float16 weight and make the step in float32.

Adam is in optim_adam.py, other adaptive methods in optim_adaptive.py, updates of many weights at once in optim_multi.py. None has a
gradient.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, DTypeError, ShapeError
from ..op import Array, How, Op, Spec, T, apply, attributes, register, share_out

if TYPE_CHECKING:
    from typing_extensions import Unpack

TILE = 1 << 17  # elements: the arrays of a step are near a core while it goes over them
SHARED = 1 << 20  # elements: fewer are done before another thread has begun


def tiles(xp: Any, arrays: Sequence[Array]) -> Iterator[list[Array]]:
    """Equal slices of contiguous arrays of one size, in turn. A GPU gets them whole: there, many small steps would cost more."""
    size = arrays[0].size
    flat = [array.reshape(-1) for array in arrays]
    if xp is not np or size <= TILE:
        yield flat
        return
    for low in range(0, size, TILE):
        yield [array[low : low + TILE] for array in flat]


def updated(
    step: Callable[..., Array],
    xp: Any,
    weight: Array,
    grad: Array,
    states: Sequence[Array],
    master: Array | None = None,
    out: Array | None = None,
) -> Array:
    """The new weight: `step(xp, weight, grad, *states)` on tiles. The states are changed in place, and so is `master`, the
    float32 copy of the weight, where there is one. `out` may be the weight itself."""
    result = xp.empty_like(weight) if out is None else out
    step = quickest(xp, step, weight if master is None else master, 2 + len(states))
    run(xp, [(step, master is not None, tile) for tile in parts(xp, result, weight, grad, states, master)])
    return result


def quickest(xp: Any, step: Callable[..., Array], source: Array, arrays: int) -> Callable[..., Array]:
    """A step as `step` on so many arrays: machine code (kernels/steps.py, a layer above) if there is some, else itself."""
    return compiling[0](step, arrays, source.dtype) if compiling and xp is np else step


compiling: list[Callable[[Callable[..., Array], int, np.dtype[Any]], Callable[..., Array]]] = []
#: Who computes optim_multi.Steps by one call, `function(op, arrays, copies)`: the kernels, a layer above. It returns False if it cannot.
joining: list[Callable[[Any, Sequence[Array], Sequence[Array]], bool]] = []


def parts(
    xp: Any, result: Array, weight: Array, grad: Array, states: Sequence[Array], master: Array | None
) -> Iterator[list[Array]]:
    """What one tile of a step works on, tile by tile: where the new weight goes, the weight or its copy, the gradient, the states."""
    return tiles(xp, (result, weight if master is None else master, grad, *states))


class _Spare(threading.local):
    """Memory of a tile for what lies between two passes of a step: fresh memory of this size would cost more than the passes."""

    def __init__(self) -> None:
        self.tiles: dict[tuple[np.dtype[Any], int], Any] = {}


_spare = _Spare()


def spare(xp: Any, like: Array, number: int = 0) -> Array:
    """Memory for a value of the size of the tile `like`, until the step asks for the same `number` again."""
    if xp is not np or like.size > TILE or like.ndim != 1:
        return xp.empty_like(like)
    found = _spare.tiles.get((like.dtype, number))
    if found is None:
        found = _spare.tiles[like.dtype, number] = np.empty(TILE, like.dtype)
    return found[: like.size]


def run(xp: Any, work: list[tuple[Callable[..., Array], bool, list[Array]]]) -> None:
    """Make steps on tiles, each given as (step, whether there is a float32 copy, arrays); all cores share in many."""

    def run_some(some: list[tuple[Callable[..., Array], bool, list[Array]]]) -> None:
        for step, mixed, tile in some:
            _advance(step, xp, mixed, *tile)

    if xp is np and len(work) > 1 and sum(tile[0].size for _, _, tile in work) >= SHARED:
        share_out(work, run_some)
    else:
        run_some(work)


def _advance(step: Callable[..., Array], xp: Any, mixed: bool, target: Array, source: Array, grad: Array, *states: Array) -> None:
    """One step on one tile. With `mixed`, `source` is a float32 copy of the weight, which is kept up to date."""
    if source.dtype.char != "e":
        memory = source if mixed else target
        value = step(
            xp, source, grad if grad.dtype is source.dtype else grad.astype(source.dtype, copy=False), *states, out=memory
        )
        if value is not memory:
            memory[...] = value
    else:
        # float16 has no room for squares of gradients: the step is made in float32 all the same, only the states lose digits.
        wide = [state.astype(xp.float32) for state in states]
        value = step(xp, source.astype(xp.float32), grad.astype(xp.float32), *wide, out=None)
        for state, changed in zip(states, wide):
            state[...] = changed
    if value is not target:
        target[...] = value


class Update(Op):
    """What update operators have in common. A subclass gives `step`; inputs after `grad` are states, changed in place.

    The names of inputs say the rest: a last input `weight32` makes it a step in mixed precision.
    """

    takes_out = True
    saves_inputs = False
    saves_outputs = False

    rescale_grad: float
    clip_gradient: float

    @property
    def mixed(self) -> bool:
        return self.inputs[-1] == "weight32"

    def infer(self, weight: Spec, grad: Spec, *states: Spec) -> Spec:
        return checked_update(self, self.inputs, weight, grad, *states)

    def kernel(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None = None) -> Array:
        result = xp.empty_like(weight) if out is None else out
        run(xp, self.work(xp, result, weight, grad, *states))
        return result

    def work(self, xp: Any, result: Array, weight: Array, grad: Array, *states: Array) -> list[Any]:
        """The tiles of this step, for `run`."""
        master = states[-1] if self.mixed else None
        found = parts(xp, result, weight, grad, states[:-1] if self.mixed else states, master)
        step = quickest(xp, self.step, weight if master is None else master, len(self.inputs) - self.mixed)
        return [(step, self.mixed, tile) for tile in found]

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
        """The new weight, in fresh memory or in `out`, which may be the weight's own. Changes the states, never the gradient."""
        raise NotImplementedError

    def limited(self, xp: Any, grad: Array) -> Array:
        """`grad` rescaled, and clipped to [-clip_gradient, clip_gradient] unless that is negative. It may be `grad` itself."""
        scaled = grad if self.rescale_grad == 1.0 else grad * self.rescale_grad
        return clipped(xp, scaled, self.clip_gradient)

    def move(self, xp: Any, grad: Array, lr: float) -> Array:
        """`lr` times the limited gradient, in spare memory: one pass over the data where nothing is clipped."""
        memory = spare(xp, grad)
        if self.clip_gradient < 0:
            return xp.multiply(grad, self.rescale_grad * lr, out=memory)
        return xp.multiply(self.limited(xp, grad), lr, out=memory)


def clipped(xp: Any, array: Array, bound: float) -> Array:
    """`array` limited to [-bound, bound]; as it is if `bound` is negative, which means none."""
    return array if bound < 0 else xp.clip(array, -bound, bound)


def checked_update(op: Op, names: Sequence[str], weight: Spec, grad: Spec, *states: Spec) -> Spec:
    """The weight's spec, if all have its shape and fitting dtypes. With `weight32` among the names, states are float32."""
    mixed = names[-1] == "weight32"
    if weight.dtype.kind != "f":
        raise DTypeError(f"{op.name}: {names[0]} is {weight.dtype.name}, wants a floating dtype")
    for name, spec in zip(names[1:], (grad, *states)):
        if spec.shape != weight.shape:
            raise ShapeError(f"{op.name}: {name} has shape {spec.shape}, {names[0]} has {weight.shape}; they must be equal")
        wanted = np.dtype(np.float32) if mixed and name != "grad" else weight.dtype
        if spec.dtype != wanted:
            raise DTypeError(f"{op.name}: {name} is {spec.dtype.name}, wants {wanted.name}")
    return weight


def blend(average: Array, value: Array, keep: float) -> None:
    """A running average, in place: `average = keep average + (1 - keep) value`."""
    average *= keep
    average += value * (1 - keep)


def require_count(op: Op, t: int) -> None:
    """Raise ArgumentError unless `t`, the number of a step, is positive."""
    if t < 1:
        raise ArgumentError(f"{op.name}: t={t} is no number of a step; count steps from 1")


# ---- stochastic gradient descent


@attributes
class Descent(Update):
    """A step down the gradient, and weight decay."""

    lr: float
    wd: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0
    lazy_update: bool = True

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
        move = self.move(xp, grad, self.lr)
        if self.wd:
            weight = xp.multiply(weight, 1 - self.lr * self.wd, out=out)
        return xp.subtract(weight, move, out=out)


@register("sgd_update", "_sparse_sgd_update")
class SGDUpdate(Descent):
    inputs: ClassVar = ("weight", "grad")


@register("mp_sgd_update")
class MPSGDUpdate(Descent):
    inputs: ClassVar = ("weight", "grad", "weight32")
    mutates: ClassVar = (2,)


def sgd_update(
    weight: T,
    grad: T,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    **how: Unpack[How],
) -> T:
    """A step of stochastic gradient descent: `w = (1 - lr wd) w - lr clip(rescale_grad grad)`.

    **Shapes** weight, grad and result (...). **Args** `lr`: learning rate; `wd`: weight decay; `clip_gradient`: bound of the
    rescaled gradient, negative for none; `lazy_update`: of sparse gradients, without effect here. Pass `out=weight` to change the
    weight. **Source** MXNet `sgd_update`.
    """
    op = SGDUpdate(lr=lr, wd=wd, rescale_grad=rescale_grad, clip_gradient=clip_gradient)
    return apply(op, weight, grad, **how)


def mp_sgd_update(
    weight: T,
    grad: T,
    weight32: T,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    **how: Unpack[How],
) -> T:
    """A step of stochastic gradient descent on `weight32`, the float32 copy of `weight`: see sgd_update.

    **Shapes** weight, grad, weight32 (changed) and result (...). **Source** MXNet `mp_sgd_update`.
    """
    op = MPSGDUpdate(lr=lr, wd=wd, rescale_grad=rescale_grad, clip_gradient=clip_gradient)
    return apply(op, weight, grad, weight32, **how)


# ---- momentum


@attributes
class Momentum(Update):
    """A step along a decaying sum of steps."""

    lr: float
    momentum: float = 0.0
    wd: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0
    lazy_update: bool = True

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
        (mom,) = states
        move = self.move(xp, grad, self.lr)
        if self.wd:
            move += xp.multiply(weight, self.lr * self.wd, out=spare(xp, weight, 1))
        mom *= self.momentum
        mom -= move
        return xp.add(weight, mom, out=out)


@register("sgd_mom_update", "_sparse_sgd_mom_update")
class SGDMomUpdate(Momentum):
    inputs: ClassVar = ("weight", "grad", "mom")
    mutates: ClassVar = (2,)


@register("mp_sgd_mom_update")
class MPSGDMomUpdate(Momentum):
    inputs: ClassVar = ("weight", "grad", "mom", "weight32")
    mutates: ClassVar = (2, 3)


def sgd_mom_update(
    weight: T,
    grad: T,
    mom: T,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    **how: Unpack[How],
) -> T:
    """A step with momentum: `mom = momentum mom - lr (clip(rescale_grad grad) + wd w)`, `w = w + mom`.

    **Shapes** weight, grad, mom (changed) and result (...). **Args** see sgd_update. **Source** MXNet `sgd_mom_update`.
    """
    op = SGDMomUpdate(
        lr=lr,
        momentum=momentum,
        wd=wd,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
    )
    return apply(op, weight, grad, mom, **how)


def mp_sgd_mom_update(
    weight: T,
    grad: T,
    mom: T,
    weight32: T,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
    **how: Unpack[How],
) -> T:
    """A step with momentum on `weight32`, the float32 copy of `weight`: see sgd_mom_update.

    **Shapes** weight, grad, mom and weight32 (changed, float32), result (...). **Source** MXNet `mp_sgd_mom_update`.
    """
    op = MPSGDMomUpdate(
        lr=lr,
        momentum=momentum,
        wd=wd,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
    )
    return apply(op, weight, grad, mom, weight32, **how)


@attributes
class Nesterov(Update):
    """A step with momentum as it would be felt one step ahead."""

    lr: float
    momentum: float = 0.0
    wd: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
        (mom,) = states
        move = self.move(xp, grad, self.lr)
        if self.wd:
            move += xp.multiply(weight, self.lr * self.wd, out=spare(xp, weight, 1))
        mom *= self.momentum
        mom -= move
        xp.subtract(xp.multiply(mom, self.momentum, out=spare(xp, mom, 1)), move, out=move)
        return xp.add(weight, move, out=out)


@register("nag_mom_update")
class NAGMomUpdate(Nesterov):
    inputs: ClassVar = ("weight", "grad", "mom")
    mutates: ClassVar = (2,)


@register("mp_nag_mom_update")
class MPNAGMomUpdate(Nesterov):
    inputs: ClassVar = ("weight", "grad", "mom", "weight32")
    mutates: ClassVar = (2, 3)


def nag_mom_update(
    weight: T,
    grad: T,
    mom: T,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    **how: Unpack[How],
) -> T:
    """A step of Nesterov's accelerated gradient: `d = lr (clip(rescale_grad grad) + wd w)`, `mom = momentum mom - d`,
    `w = w + momentum mom - d`.

    **Shapes** weight, grad, mom (changed) and result (...). **Args** see sgd_update. **Source** MXNet `nag_mom_update`.
    """
    op = NAGMomUpdate(
        lr=lr,
        momentum=momentum,
        wd=wd,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
    )
    return apply(op, weight, grad, mom, **how)


def mp_nag_mom_update(
    weight: T,
    grad: T,
    mom: T,
    weight32: T,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    **how: Unpack[How],
) -> T:
    """A step of Nesterov's accelerated gradient on `weight32`, the float32 copy of `weight`: see nag_mom_update.

    **Shapes** weight, grad, mom and weight32 (changed, float32), result (...). **Source** MXNet `mp_nag_mom_update`.
    """
    op = MPNAGMomUpdate(
        lr=lr,
        momentum=momentum,
        wd=wd,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
    )
    return apply(op, weight, grad, mom, weight32, **how)


# ---- only the sign of the gradient


@register("signsgd_update")
class SignSGDUpdate(Update):
    inputs: ClassVar = ("weight", "grad")

    lr: float
    wd: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
        return weight * (1 - self.lr * self.wd) - xp.sign(grad) * self.lr


def signsgd_update(
    weight: T,
    grad: T,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    **how: Unpack[How],
) -> T:
    """A step of one length for all: `w = (1 - lr wd) w - lr sign(grad)`.

    **Shapes** weight, grad and result (...). **Args** `rescale_grad` and `clip_gradient` change no sign and have no effect.
    **Source** MXNet `signsgd_update`.
    """
    op = SignSGDUpdate(lr=lr, wd=wd, rescale_grad=rescale_grad, clip_gradient=clip_gradient)
    return apply(op, weight, grad, **how)


@register("signum_update")
class SignumUpdate(Update):
    inputs: ClassVar = ("weight", "grad", "mom")
    mutates: ClassVar = (2,)

    lr: float
    momentum: float = 0.0
    wd: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0
    wd_lh: float = 0.0

    def step(self, xp: Any, weight: Array, grad: Array, *states: Array, out: Array | None) -> Array:
        (mom,) = states
        mom *= self.momentum
        mom -= (self.limited(xp, grad) + weight * self.wd) * (1 - self.momentum)
        return weight * (1 - self.lr * self.wd_lh) + xp.sign(mom) * self.lr


def signum_update(
    weight: T,
    grad: T,
    mom: T,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    wd_lh: float = 0.0,
    **how: Unpack[How],
) -> T:
    """A step along the sign of the momentum: `mom = momentum mom - (1 - momentum) (clip(rescale_grad grad) + wd w)`,
    `w = (1 - lr wd_lh) w + lr sign(mom)`.

    **Shapes** weight, grad, mom (changed) and result (...). **Args** `wd_lh`: weight decay of Loshchilov and Hutter, apart from
    the gradient. **Source** MXNet `signum_update`; Bernstein et al., 2018.
    """
    op = SignumUpdate(
        lr=lr,
        momentum=momentum,
        wd=wd,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
        wd_lh=wd_lh,
    )
    return apply(op, weight, grad, mom, **how)


__all__ = [
    "mp_nag_mom_update", "mp_sgd_mom_update", "mp_sgd_update", "nag_mom_update", "sgd_mom_update", "sgd_update", "signsgd_update",
    "signum_update",
]  # fmt: skip
