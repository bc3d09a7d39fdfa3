"""Parts of an array: slice, slice_axis, slice_like, and assignment to a slice.

The gradient of reading a part is an array of zeros with `g` in that place: `_backward_slice`, whose gradient is reading again.
`resolve_slice`, which turns bounds into slices, is in shape.py. Book: chapter 1.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import DTypeError, OutOfRangeError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, also_called, apply, register
from ..rules import normalize_axis, same_dtype
from .reduce import Axes
from .shape import as_bounds, as_shape, resolve_slice

if TYPE_CHECKING:
    from typing_extensions import Unpack

Slices = tuple[builtins.slice, ...]


def copied(view: Array, out: Array | None) -> Array:
    """A C-contiguous copy of `view`, in `out` if that is given."""
    if out is None:
        return view.copy()
    out[...] = view
    return out


def check_scalar(op: Op, what: str, value: float, dtype: np.dtype[Any]) -> None:
    """Raise DTypeError unless an array of `dtype` can hold `value`: nothing is cut off without a word."""
    if dtype.kind != "f":
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if not low <= value <= high or value != int(value):
            raise DTypeError(
                f"{op.name}: data is {dtype.name}, which has no {what} {value}; convert data first, astype('float32')"
            )


# ---- slices


class Selection(Op):
    """A part of the array: `select` gives the slices and the shape of what they select."""

    saves_inputs = False
    saves_outputs = False
    takes_out = True

    def select(self, shape: Shape, *like: Shape) -> tuple[Slices, Shape]:
        raise NotImplementedError

    def infer(self, data: Spec, *like: Spec) -> Spec:
        return data.with_shape(self.select(data.shape, *(spec.shape for spec in like))[1])

    def kernel(self, xp: Any, data: Array, *like: Array, out: Array | None = None) -> Array:
        return copied(data[self.select(data.shape, *(array.shape for array in like))[0]], out)

    def vjp(self, g: Any, y: Any, data: Any, *like: Any) -> tuple[Any, ...]:
        slices, _ = self.select(data.shape, *(tensor.shape for tensor in like))
        return put_back(g, slices, data.shape), *(None for _ in like)


@register("slice", "crop")
class Slicing(Selection):
    begin: tuple[int | None, ...]
    end: tuple[int | None, ...]
    step: tuple[int | None, ...] = ()

    def select(self, shape: Shape, *like: Shape) -> tuple[Slices, Shape]:
        return resolve_slice(shape, self.begin, self.end, self.step, self.name)


@register("slice_axis")
class SliceAxis(Selection):
    axis: int
    begin: int
    end: int | None

    def select(self, shape: Shape, *like: Shape) -> tuple[Slices, Shape]:
        axis = normalize_axis(self, self.axis, len(shape))
        length = shape[axis]
        low = self.begin + length if self.begin < 0 else self.begin
        high = length if self.end is None else self.end + length if self.end < 0 else self.end
        if not 0 <= low < high <= length:
            raise OutOfRangeError(
                f"{self.name}: begin {self.begin} and end {self.end} must select a part of axis {axis}, which has length {length}"
            )
        slices = [builtins.slice(None)] * len(shape)
        slices[axis] = builtins.slice(low, high, 1)
        return tuple(slices), (*shape[:axis], high - low, *shape[axis + 1 :])


@register("slice_like")
class SliceLike(Selection):
    inputs: ClassVar = ("data", "shape_like")

    axes: tuple[int, ...] = ()

    def select(self, shape: Shape, *like: Shape) -> tuple[Slices, Shape]:
        (wanted,) = like
        if not self.axes and len(shape) != len(wanted):
            raise ShapeError(
                f"{self.name}: data has shape {shape}, shape_like {wanted}; without axes they need equally many dimensions"
            )
        lengths = list(shape)
        for each in self.axes or range(len(shape)):
            axis = normalize_axis(self, each, len(shape))
            lengths[axis] = wanted[normalize_axis(self, axis, len(wanted), "of shape_like, axis")]
            if lengths[axis] > shape[axis]:
                raise ShapeError(
                    f"{self.name}: data has shape {shape}, which is shorter than shape_like {wanted} along axis {axis}"
                )
        return tuple(builtins.slice(0, length, 1) for length in lengths), tuple(lengths)


@register("_backward_slice")
class PutBack(Op):
    """An array of zeros of `shape` with the data in the place of a slice."""

    saves_inputs = False
    saves_outputs = False
    takes_out = True

    begin: tuple[int | None, ...]
    end: tuple[int | None, ...]
    step: tuple[int | None, ...]
    shape: tuple[int, ...]

    def infer(self, data: Spec) -> Spec:
        selected = resolve_slice(self.shape, self.begin, self.end, self.step, self.name)[1]
        if data.shape != selected:
            raise ShapeError(f"{self.name}: data has shape {data.shape}, wants {selected}")
        return data.with_shape(self.shape)

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        if out is None:
            out = xp.zeros(self.shape, data.dtype)
        else:
            out.fill(0)
        out[resolve_slice(self.shape, self.begin, self.end, self.step, self.name)[0]] = data
        return out

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(Slicing(self.begin, self.end, self.step), g),)


def put_back(data: T, slices: Slices, shape: Shape) -> T:
    """Zeros of `shape`, but `data` where the `slices` are."""
    begin, end, step = ([getattr(each, side) for each in slices] for side in ("start", "stop", "step"))
    return apply(PutBack(tuple(begin), tuple(end), tuple(step), shape), data)


def slice(
    data: T,
    begin: int | Sequence[int | None] | None,
    end: int | Sequence[int | None] | None,
    step: int | Sequence[int | None] | None = (),
    **how: Unpack[How],
) -> T:
    """The part of data from `begin` to `end` in steps of `step` along its first axes; as `data[b:e:s, ...]` in Python.

    **Args** a bound may be None (as far as it goes) or negative (from the end). **Returns** a copy. **Raises** ShapeError for
    more bounds than axes; ArgumentError for tuples of different lengths or a step of 0. **Gradient** `g` in its place, 0
    elsewhere. **Source** MXNet `slice`.
    """
    return apply(Slicing(as_bounds(begin), as_bounds(end), () if step is None else as_bounds(step)), data, **how)


crop = also_called("crop", slice)


def slice_axis(data: T, axis: int, begin: int | None, end: int | None, **how: Unpack[How]) -> T:
    """The part of data from `begin` to `end` along one axis.

    **Args** end: None for all that is left. **Returns** a copy. **Raises** OutOfRangeError if the bounds leave the axis or select
    nothing. **Gradient** `g` in its place, 0 elsewhere. **Source** MXNet `slice_axis`.
    """
    return apply(SliceAxis(axis, 0 if begin is None else begin, end), data, **how)


def slice_like(data: T, shape_like: T, axes: Axes = (), **how: Unpack[How]) -> T:
    """The first part of data that has the lengths of `shape_like` along `axes` (all axes if there are none).

    **Returns** a copy. **Raises** ShapeError if data is shorter. **Gradient** `g` in its place, 0 elsewhere; none for shape_like.
    **Source** MXNet `slice_like`.
    """
    return apply(SliceLike(as_shape(axes)), data, shape_like, **how)


# ---- assignment: copies with a part replaced, for `x[1:3] = value` on the tape


@register("_slice_assign", "_crop_assign")
class SliceAssign(Op):
    inputs: ClassVar = ("lhs", "rhs")
    saves_inputs = False
    saves_outputs = False
    takes_out = True

    begin: tuple[int | None, ...]
    end: tuple[int | None, ...]
    step: tuple[int | None, ...] = ()

    def infer(self, lhs: Spec, rhs: Spec) -> Spec:
        same_dtype(self, lhs, rhs)
        selected = resolve_slice(lhs.shape, self.begin, self.end, self.step, self.name)[1]
        if rhs.shape != selected:
            raise ShapeError(f"{self.name}: rhs has shape {rhs.shape}, the slice of lhs has {selected}; they must be equal")
        return lhs

    def kernel(self, xp: Any, lhs: Array, rhs: Array, out: Array | None = None) -> Array:
        out = copied(lhs, out)
        out[resolve_slice(lhs.shape, self.begin, self.end, self.step, self.name)[0]] = rhs
        return out

    def vjp(self, g: Any, y: Any, lhs: Any, rhs: Any) -> tuple[Any, ...]:
        return slice_assign_scalar(g, 0.0, self.begin, self.end, self.step), slice(g, self.begin, self.end, self.step)


@register("_slice_assign_scalar", "_crop_assign_scalar")
class SliceAssignScalar(Op):
    saves_inputs = False
    saves_outputs = False
    takes_out = True

    scalar: float = 0.0
    begin: tuple[int | None, ...] = ()
    end: tuple[int | None, ...] = ()
    step: tuple[int | None, ...] = ()

    def infer(self, data: Spec) -> Spec:
        check_scalar(self, "scalar", self.scalar, data.dtype)
        resolve_slice(data.shape, self.begin, self.end, self.step, self.name)
        return data

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        out = copied(data, out)
        out[resolve_slice(data.shape, self.begin, self.end, self.step, self.name)[0]] = self.scalar
        return out

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (slice_assign_scalar(g, 0.0, self.begin, self.end, self.step),)


def slice_assign(
    lhs: T,
    rhs: T,
    begin: int | Sequence[int | None] | None,
    end: int | Sequence[int | None] | None,
    step: int | Sequence[int | None] | None = (),
    **how: Unpack[How],
) -> T:
    """A copy of `lhs` with `rhs` in the place of a slice.

    **Shapes** lhs (...), rhs that of the slice, result that of lhs. **Gradient** for lhs `g` with zeros in the slice, for rhs the
    slice of `g`. **Source** MXNet `_slice_assign`.
    """
    return apply(SliceAssign(as_bounds(begin), as_bounds(end), () if step is None else as_bounds(step)), lhs, rhs, **how)


def slice_assign_scalar(
    data: T,
    scalar: float,
    begin: int | Sequence[int | None] | None,
    end: int | Sequence[int | None] | None,
    step: int | Sequence[int | None] | None = (),
    **how: Unpack[How],
) -> T:
    """A copy of data with a number in every place of a slice.

    **Raises** DTypeError if an array of integers cannot hold the number. **Gradient** `g` with zeros in the slice. **Source**
    MXNet `_slice_assign_scalar`.
    """
    return apply(
        SliceAssignScalar(scalar, as_bounds(begin), as_bounds(end), () if step is None else as_bounds(step)), data, **how
    )
