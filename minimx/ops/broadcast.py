"""Numbers repeated along axes of length 1, as if the array were larger: broadcast_to, broadcast_axis, broadcast_like.

The gradient of a repeated number is the sum of those of its copies (`unbroadcast`). Book: chapter 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, also_called, apply, register
from ..rules import normalize_axis
from .forms import unbroadcast
from .reduce import Axes, as_axes
from .shape import as_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Broadcast(Op):
    """Repeats an array along axes where it has length 1; `target` says to which shape."""

    saves_inputs = False
    saves_outputs = False
    takes_out = True

    def target(self, shape: Shape, *like: Shape) -> Shape:
        raise NotImplementedError

    def fit(self, shape: Shape, target: Shape) -> Shape:
        """`target`, if an array of `shape` can be broadcast to it."""
        new = len(target) - len(shape)
        if new < 0 or any(length not in (1, wanted) for length, wanted in zip(shape, target[new:])):
            raise ShapeError(f"{self.name}: an array of shape {shape} cannot be broadcast to {target}")
        return target

    def infer(self, data: Spec, *like: Spec) -> Spec:
        return data.with_shape(self.target(data.shape, *(spec.shape for spec in like)))

    def kernel(self, xp: Any, data: Array, *like: Array, out: Array | None = None) -> Array:
        if out is None:
            out = xp.empty(self.target(data.shape, *(array.shape for array in like)), data.dtype)
        out[...] = data
        return out

    def vjp(self, g: Any, y: Any, data: Any, *like: Any) -> tuple[Any, ...]:
        return unbroadcast(g, data), *(None for _ in like)


@register("broadcast_to")
class BroadcastTo(Broadcast):
    shape: tuple[int, ...] = ()

    def target(self, shape: Shape, *like: Shape) -> Shape:
        if len(self.shape) == len(shape):
            return self.fit(shape, tuple(wanted or length for wanted, length in zip(self.shape, shape)))
        return self.fit(shape, self.shape)


def broadcast_to(data: T, shape: int | Sequence[int] = (), **how: Unpack[How]) -> T:
    """Repeats data along axes where it has length 1, and along new ones in front.

    **Args** shape: of the result; a 0 keeps the length of data. **Raises** ShapeError where the lengths differ and that of data
    is not 1. **Gradient** `g`, summed along those axes. **Source** MXNet `broadcast_to`.
    """
    return apply(BroadcastTo(as_shape(shape)), data, **how)


@register("broadcast_axis", "broadcast_axes")
class BroadcastAxis(Broadcast):
    axis: tuple[int, ...] = ()
    size: tuple[int, ...] = ()

    def target(self, shape: Shape, *like: Shape) -> Shape:
        if len(self.axis) != len(self.size):
            raise ArgumentError(f"{self.name}: axis {self.axis} and size {self.size} must have the same length")
        lengths = list(shape)
        for axis, size in zip(self.axis, self.size):
            axis = normalize_axis(self, axis, len(shape))
            if shape[axis] != 1:
                raise ShapeError(
                    f"{self.name}: axis {axis} of shape {shape} has length {shape[axis]}; only length 1 can be repeated"
                )
            lengths[axis] = size
        return tuple(lengths)


def broadcast_axis(data: T, axis: int | Sequence[int] = (), size: int | Sequence[int] = (), **how: Unpack[How]) -> T:
    """Repeats data along `axis`, where it has length 1, `size` times.

    **Args** axis, size: an int each, or tuples of the same length. **Gradient** `g`, summed along `axis`. **Source** MXNet
    `broadcast_axis`.
    """
    return apply(BroadcastAxis(as_shape(axis), as_shape(size)), data, **how)


broadcast_axes = also_called("broadcast_axes", broadcast_axis)


@register("broadcast_like")
class BroadcastLike(Broadcast):
    inputs: ClassVar = ("lhs", "rhs")

    lhs_axes: tuple[int, ...] | None = None
    rhs_axes: tuple[int, ...] | None = None

    def target(self, shape: Shape, *like: Shape) -> Shape:
        (wanted,) = like
        if self.lhs_axes is None or self.rhs_axes is None:
            if len(shape) != len(wanted):
                raise ShapeError(
                    f"{self.name}: lhs has shape {shape}, rhs {wanted}; without axes they need equally many dimensions"
                )
            return self.fit(shape, wanted)
        if len(self.lhs_axes) != len(self.rhs_axes) or not self.lhs_axes:
            raise ArgumentError(
                f"{self.name}: lhs_axes {self.lhs_axes} and rhs_axes {self.rhs_axes} must have the same length, 1 or more"
            )
        lengths = list(shape)
        for mine, other in zip(self.lhs_axes, self.rhs_axes):
            position = normalize_axis(self, mine, len(shape), "lhs_axes")
            lengths[position] = wanted[normalize_axis(self, other, len(wanted), "rhs_axes")]
        return self.fit(shape, tuple(lengths))


def broadcast_like(lhs: T, rhs: T, lhs_axes: Axes = None, rhs_axes: Axes = None, **how: Unpack[How]) -> T:
    """Repeats `lhs` along axes where it has length 1, so that it has the shape of `rhs`.

    **Args** lhs_axes, rhs_axes: only these axes of lhs take the lengths of those of rhs. **Gradient** `g`, summed along the
    repeated axes, for lhs; none for rhs. **Source** MXNet `broadcast_like`.
    """
    return apply(BroadcastLike(as_axes(lhs_axes), as_axes(rhs_axes)), lhs, rhs, **how)
