"""Parts of an array and frames around it: slice, slice_axis, slice_like, assignment to a slice, reverse, Pad, diag.

Each reads some places of its input once (a pad may read them several times), so each gradient writes or adds to those places of an array
of zeros; `_backward_slice`, `_backward_Pad` and `_backward_diag` do that, and their gradient is the operator itself again.
`resolve_slice`, which turns bounds into slices, is in shape.py. Book: chapter 1.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, normalize_axis, register, same_dtype
from .reduce import Axes, as_axes
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

    __slots__ = ()

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
@dataclass(frozen=True, slots=True)
class Slice(Selection):
    begin: tuple[int | None, ...]
    end: tuple[int | None, ...]
    step: tuple[int | None, ...] = ()

    def select(self, shape: Shape, *like: Shape) -> tuple[Slices, Shape]:
        return resolve_slice(shape, self.begin, self.end, self.step, self.name)


@register("slice_axis")
@dataclass(frozen=True, slots=True)
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
                f"{self.name}: begin {self.begin} and end {self.end} select nothing, or more than there is, of axis {axis}, which has "
                f"length {length}"
            )
        slices = [builtins.slice(None)] * len(shape)
        slices[axis] = builtins.slice(low, high, 1)
        return tuple(slices), (*shape[:axis], high - low, *shape[axis + 1 :])


@register("slice_like")
@dataclass(frozen=True, slots=True)
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
@dataclass(frozen=True, slots=True)
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
        return (apply(Slice(self.begin, self.end, self.step), g),)


def put_back(data: T, slices: Slices, shape: Shape) -> T:
    """Zeros of `shape`, but `data` where the `slices` are."""
    begin, end, step = ([getattr(each, side) for each in slices] for side in ("start", "stop", "step"))
    return apply(PutBack(tuple(begin), tuple(end), tuple(step), shape), data)


def slice(
    data: T,
    begin: int | None | Sequence[int | None],
    end: int | None | Sequence[int | None],
    step: int | None | Sequence[int | None] = (),
    **how: Unpack[How],
) -> T:
    """The part of data from `begin` to `end` in steps of `step` along its first axes; as `data[b:e:s, ...]` in Python.

    **Args** a bound may be None (as far as it goes) or negative (from the end). **Returns** a copy. **Raises** ShapeError for more
    bounds than axes; ArgumentError for tuples of different lengths or a step of 0. **Gradient** `g` in its place, 0 elsewhere.
    **Source** MXNet `slice`.
    """
    return apply(Slice(as_bounds(begin), as_bounds(end), as_bounds(step)), data, **how)


crop = slice


def slice_axis(data: T, axis: int, begin: int | None, end: int | None, **how: Unpack[How]) -> T:
    """The part of data from `begin` to `end` along one axis.

    **Args** end: None for all that is left. **Returns** a copy. **Raises** OutOfRangeError if the bounds leave the axis or select
    nothing. **Gradient** `g` in its place, 0 elsewhere. **Source** MXNet `slice_axis`.
    """
    last = None if end is None else operator.index(end)
    return apply(SliceAxis(operator.index(axis), 0 if begin is None else operator.index(begin), last), data, **how)


def slice_like(data: T, shape_like: T, axes: Axes = (), **how: Unpack[How]) -> T:
    """The first part of data that has the lengths of `shape_like` along `axes` (all axes if there are none).

    **Returns** a copy. **Raises** ShapeError if data is shorter. **Gradient** `g` in its place, 0 elsewhere; none for shape_like.
    **Source** MXNet `slice_like`.
    """
    return apply(SliceLike(as_axes(axes) or ()), data, shape_like, **how)


# ---- assignment: copies with a part replaced, for `x[1:3] = value` on the tape


@register("_slice_assign", "_crop_assign")
@dataclass(frozen=True, slots=True)
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
@dataclass(frozen=True, slots=True)
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
    begin: int | None | Sequence[int | None],
    end: int | None | Sequence[int | None],
    step: int | None | Sequence[int | None] = (),
    **how: Unpack[How],
) -> T:
    """A copy of `lhs` with `rhs` in the place of a slice.

    **Shapes** lhs (...), rhs that of the slice, result that of lhs. **Gradient** for lhs `g` with zeros in the slice, for rhs the
    slice of `g`. **Source** MXNet `_slice_assign`.
    """
    return apply(SliceAssign(as_bounds(begin), as_bounds(end), as_bounds(step)), lhs, rhs, **how)


def slice_assign_scalar(
    data: T,
    scalar: float,
    begin: int | None | Sequence[int | None],
    end: int | None | Sequence[int | None],
    step: int | None | Sequence[int | None] = (),
    **how: Unpack[How],
) -> T:
    """A copy of data with a number in every place of a slice.

    **Raises** DTypeError if an array of integers cannot hold the number. **Gradient** `g` with zeros in the slice. **Source** MXNet
    `_slice_assign_scalar`.
    """
    return apply(SliceAssignScalar(float(scalar), as_bounds(begin), as_bounds(end), as_bounds(step)), data, **how)


# ---- reverse


@register("reverse", "flip")
@dataclass(frozen=True, slots=True)
class Reverse(Op):
    saves_inputs = False
    saves_outputs = False
    takes_out = True

    axis: tuple[int, ...]

    def infer(self, data: Spec) -> Spec:
        axes = [normalize_axis(self, axis, data.ndim) for axis in self.axis]
        if len(set(axes)) != len(axes):
            raise ShapeError(f"{self.name}: axis {self.axis} names an axis twice")
        return data

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        slices = [builtins.slice(None)] * data.ndim
        for axis in self.axis:
            slices[axis] = builtins.slice(None, None, -1)
        return copied(data[tuple(slices)], out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(self, g),)


def reverse(data: T, axis: int | Sequence[int], **how: Unpack[How]) -> T:
    """The elements in reverse order along `axis`, an int or several.

    **Returns** a copy. **Gradient** `g` reversed. **Source** MXNet `reverse`.
    """
    return apply(Reverse(as_axes(axis) or ()), data, **how)


flip = reverse


# ---- pad


class Frame(Op):
    """What Pad and its gradient share: the widths of the frame, two for each axis."""

    __slots__ = ()

    saves_inputs = False
    saves_outputs = False

    mode: str
    pad_width: tuple[int, ...]

    def widths(self) -> list[tuple[int, int]]:
        return list(zip(self.pad_width[::2], self.pad_width[1::2]))

    def framed(self, shape: Shape) -> Shape:
        """The shape of an array of `shape` within its frame. Raises if the frame does not fit it."""
        if self.mode not in ("constant", "edge", "reflect"):
            raise ArgumentError(f"{self.name}: mode is {self.mode!r}; choose 'constant', 'edge' or 'reflect'")
        if len(self.pad_width) != 2 * len(shape):
            raise ShapeError(
                f"{self.name}: pad_width has {len(self.pad_width)} numbers, data of shape {shape} needs {2 * len(shape)}: "
                "before and after each axis"
            )
        for axis, (length, (before, after)) in enumerate(zip(shape, self.widths())):
            if before < 0 or after < 0:
                raise ArgumentError(f"{self.name}: pad_width {self.pad_width} has a negative number; use slice to cut")
            needed = {"constant": 0, "edge": min(before + after, 1), "reflect": max(before, after) + 1}[self.mode]
            if before + after and length < needed:
                raise ShapeError(
                    f"{self.name}: axis {axis} has length {length}, padding it by ({before}, {after}) in mode {self.mode!r} needs {needed}"
                )
        return tuple(length + before + after for length, (before, after) in zip(shape, self.widths()))

    def inside(self, shape: Shape) -> Slices:
        """Where the array of `shape` is within its frame."""
        return tuple(builtins.slice(before, before + length, 1) for length, (before, _) in zip(shape, self.widths()))


@register("Pad", "pad")
@dataclass(frozen=True, slots=True)
class Padding(Frame):
    mode: str
    pad_width: tuple[int, ...]
    constant_value: float = 0.0

    def infer(self, data: Spec) -> Spec:
        check_scalar(self, "constant_value", self.constant_value, data.dtype)
        return data.with_shape(self.framed(data.shape))

    def kernel(self, xp: Any, data: Array) -> Array:
        if self.mode != "constant":
            return xp.pad(data, self.widths(), mode=self.mode)
        framed = xp.full(self.framed(data.shape), self.constant_value, data.dtype)
        framed[self.inside(data.shape)] = data
        return framed

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        if self.mode == "constant":
            inside = self.inside(data.shape)
            return (slice(g, [each.start for each in inside], [each.stop for each in inside]),)
        return (apply(PaddingBackward(self.mode, self.pad_width, data.shape), g),)


@register("_backward_Pad")
@dataclass(frozen=True, slots=True)
class PaddingBackward(Frame):
    """Adds the frame of an array to the places that it was copied from."""

    mode: str
    pad_width: tuple[int, ...]
    shape: tuple[int, ...]

    def infer(self, data: Spec) -> Spec:
        if self.framed(self.shape) != data.shape:
            raise ShapeError(f"{self.name}: data has shape {data.shape}, wants {self.framed(self.shape)}")
        return data.with_shape(self.shape)

    def kernel(self, xp: Any, data: Array) -> Array:
        if data.dtype == np.float16:
            return self.kernel(xp, data.astype(np.float32)).astype(np.float16)
        for axis, (length, (before, after)) in enumerate(zip(self.shape, self.widths())):
            first = xp.moveaxis(data, axis, 0)  # a view with this axis in front
            folded = first[before : before + length].copy()
            if self.mode == "edge":
                folded[:1] += first[:before].sum(axis=0)
                folded[length - 1 :] += first[before + length :].sum(axis=0)
            else:  # reflect: the edge itself is not repeated
                folded[1 : before + 1] += first[:before][::-1]
                folded[length - 1 - after : length - 1] += first[before + length :][::-1]
            data = xp.moveaxis(folded, 0, axis)
        return xp.ascontiguousarray(data)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(Padding(self.mode, self.pad_width), g),)


def pad(data: T, mode: str, pad_width: Sequence[int], constant_value: float = 0.0, **how: Unpack[How]) -> T:
    """A frame around data: of a constant, of copies of the nearest edge, or of the inside reflected at the edge.

    **Args** mode: 'constant', 'edge' or 'reflect'; pad_width: numbers before and after each axis, (before_0, after_0, before_1, ...).
    **Raises** ShapeError if pad_width does not fit data, or if data is too small to reflect so far. Unlike MXNet's, data may
    have any number of axes, any of which may be padded. **Gradient** `g` without the frame, whose copies are added to their
    sources. **Source** MXNet `Pad`.
    """
    return apply(Padding(mode, as_shape(pad_width), float(constant_value)), data, **how)


Pad = pad


# ---- diag


@register("diag")
@dataclass(frozen=True, slots=True)
class Diag(Op):
    saves_inputs = False
    saves_outputs = False

    k: int = 0
    axis1: int = 0
    axis2: int = 1

    def axes(self, ndim: int) -> tuple[int, int]:
        """The two axes of the matrices, in an array of at least two dimensions."""
        first, second = normalize_axis(self, self.axis1, ndim, "axis1"), normalize_axis(self, self.axis2, ndim, "axis2")
        if first == second:
            raise ArgumentError(f"{self.name}: axis1 {self.axis1} and axis2 {self.axis2} are the same axis; a diagonal needs two")
        return first, second

    def infer(self, data: Spec) -> Spec:
        if data.ndim < 1:
            raise ShapeError(f"{self.name}: data has shape (), wants at least one dimension")
        if data.ndim == 1:
            return data.with_shape((data.size + abs(self.k),) * 2)
        first, second = self.axes(data.ndim)
        length = min(data.shape[first] + min(self.k, 0), data.shape[second] - max(self.k, 0))
        if length < 0:
            raise ShapeError(f"{self.name}: data has shape {data.shape}, in which diagonal k={self.k} does not exist")
        return data.with_shape([n for axis, n in enumerate(data.shape) if axis not in (first, second)] + [length])

    def kernel(self, xp: Any, data: Array) -> Array:
        if data.ndim == 1:
            return xp.diag(data, self.k)
        return xp.diagonal(data, self.k, self.axis1, self.axis2).copy()

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        if len(data.shape) == 1:
            return (apply(Diag(self.k), g),)
        return (apply(DiagBackward(self.k, self.axis1, self.axis2, data.shape), g),)


@register("_backward_diag")
@dataclass(frozen=True, slots=True)
class DiagBackward(Op):
    """An array of zeros of `shape` with the data on a diagonal."""

    saves_inputs = False
    saves_outputs = False

    k: int
    axis1: int
    axis2: int
    shape: tuple[int, ...]

    def infer(self, data: Spec) -> Spec:
        wanted = Diag(self.k, self.axis1, self.axis2).infer(data.with_shape(self.shape))
        if data != wanted:
            raise ShapeError(f"{self.name}: data has shape {data.shape}, wants {wanted.shape}")
        return data.with_shape(self.shape)

    def kernel(self, xp: Any, data: Array) -> Array:
        whole = xp.zeros(self.shape, data.dtype)
        matrices = xp.moveaxis(whole, (self.axis1, self.axis2), (-2, -1))  # a view
        places = xp.arange(data.shape[-1])
        matrices[..., places - min(self.k, 0), places + max(self.k, 0)] = data
        return whole

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(Diag(self.k, self.axis1, self.axis2), g),)


def diag(data: T, k: int = 0, axis1: int = 0, axis2: int = 1, **how: Unpack[How]) -> T:
    """The diagonal `k` of a matrix, or of those along axis1 and axis2; of a vector, the matrix that has it on this diagonal.

    **Shapes** data (M, N) to (K,); (..., M, ..., N, ...) to (..., K); (K,) to (K + |k|, K + |k|). **Args** k: 0 is the main
    diagonal, positive ones are above it. **Raises** ShapeError if there is no such diagonal. **Gradient** `g` on the diagonal, or the
    diagonal of `g`. **Source** MXNet `diag`.
    """
    return apply(Diag(operator.index(k), operator.index(axis1), operator.index(axis2)), data, **how)
