"""Other shapes for the same numbers in the same order: reshape, flatten, expand_dims, squeeze. The results are views and cost
nothing.

The codes of MXNet's reshape, and the bounds of its slices, are resolved here by pure functions of shapes, which arrays and
symbols use as well. layout.py has the operators that change the order in memory, broadcast.py those that repeat numbers. Book:
chapter 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, hidden, register
from ..rules import normalize_axes, normalize_axis
from .reduce import Axes, as_axes

if TYPE_CHECKING:
    from typing_extensions import Unpack

Bounds = tuple[int | None, ...]  # one end of a slice for some axes; None: as far as it goes


# ---- pure functions of shapes


@functools.lru_cache(maxsize=4096)
def resolve_reshape(shape: Shape, codes: tuple[int, ...], reverse: bool = False) -> Shape:
    """The shape that `codes` make of `shape`. Raises ShapeError if they fit no shape of the same size.

    A positive code is a length. 0 copies the length of the source at this place; -1 stands for what remains (once); -2 copies all
    lengths that are left; -3 merges two; -4, a, b splits one into a and b, of which one may be -1. `reverse` reads from the
    right.

    >>> resolve_reshape((2, 3, 4), (0, -1)), resolve_reshape((2, 3, 4), (-4, 1, 2, -3))
    ((2, 12), (1, 2, 12))
    """
    try:
        found = _resolve(shape[::-1], codes[::-1])[::-1] if reverse else _resolve(shape, codes)
    except ShapeError as error:
        backwards = " read from the right" if reverse else ""
        raise ShapeError(f"reshape: shape {codes}{backwards} does not fit an array of shape {shape}: {error}") from None
    return found


def _resolve(shape: Shape, codes: tuple[int, ...]) -> Shape:
    result: list[int] = []
    unknown = None  # where -1 stands
    source = 0  # the axis of `shape` that comes next
    at = 0
    while at < len(codes):
        code = codes[at]
        taken = 1
        if code > 0:
            result.append(code)
        elif code == -1:
            if unknown is not None:
                raise ShapeError("-1 may stand only once")
            unknown = len(result)
            result.append(1)
        elif code == -2:
            result.extend(shape[source:])
            taken = max(len(shape) - source, 0)
        elif code == -4:
            if at + 2 >= len(codes):
                raise ShapeError("-4 needs two lengths after it")
            result.extend(_split(_length(shape, source, code), codes[at + 1], codes[at + 2]))
            at += 2
        elif code == -3:
            result.append(_length(shape, source, code) * _length(shape, source + 1, code))
            taken = 2
        elif code == 0:
            result.append(_length(shape, source, code))
        else:
            raise ShapeError(f"{code} is no code")
        source += taken
        at += 1
    if unknown is not None:
        result[unknown] = _remaining(shape, result)
    if math.prod(result) != math.prod(shape):
        raise ShapeError(f"{tuple(result)} has {math.prod(result)} elements, not {math.prod(shape)}")
    return tuple(result)


def _length(shape: Shape, axis: int, code: int) -> int:
    if axis >= len(shape):
        raise ShapeError(f"{code} finds no axis {axis}")
    return shape[axis]


def _split(length: int, first: int, second: int) -> tuple[int, int]:
    """Two lengths whose product is `length`; one of them may be -1."""
    if first == -1 and second > 0:
        first = length // second
    elif second == -1 and first > 0:
        second = length // first
    if first < 0 or second < 0 or first * second != length:
        raise ShapeError(f"an axis of length {length} does not split into {first} and {second}")
    return first, second


def _remaining(shape: Shape, result: list[int]) -> int:
    """The length that -1 stands for, if it counts as 1 in `result`."""
    size, known = math.prod(shape), math.prod(result)
    if known == 0:  # lengths of 0 that were copied from an empty array: the others decide
        size, known = math.prod(filter(None, shape)), math.prod(filter(None, result))
    if size % known:
        raise ShapeError(f"{size} elements do not divide by {known}")
    return size // known


@functools.lru_cache(maxsize=4096)
def resolve_slice(shape: Shape, begin: Bounds, end: Bounds, step: Bounds, name: str = "slice") -> tuple[tuple[slice, ...], Shape]:
    """Slices for every axis of `shape`, and the shape of what they select.

    The bounds are for the first axes; they may be None or negative, and are cut to the array as Python's are. Raises ShapeError
    for more bounds than axes, ArgumentError for tuples of different lengths and a step of 0.

    >>> resolve_slice((4, 5), (1, None), (None, -1), ())
    ((slice(1, 4, 1), slice(0, 4, 1)), (3, 4))
    """
    step = step or (None,) * len(begin)
    if not len(begin) == len(end) == len(step):
        raise ArgumentError(f"{name}: begin {begin}, end {end} and step {step} must have the same length")
    if len(begin) > len(shape):
        raise ShapeError(f"{name}: begin {begin} has bounds for {len(begin)} axes, data has shape {shape}")
    slices, lengths = [], []
    for axis, length in enumerate(shape):
        low, high, stride = (begin[axis], end[axis], step[axis]) if axis < len(begin) else (None, None, None)
        if stride == 0:
            raise ArgumentError(f"{name}: step {step} has a 0 for axis {axis}; steps are positive or negative")
        start, stop, stride = slice(low, high, stride).indices(length)
        lengths.append(len(range(start, stop, stride)))
        if not lengths[-1]:
            start = stop = 0
        slices.append(slice(start, stop if stop >= 0 else None, stride))  # -1 would count from the end again
    return tuple(slices), tuple(lengths)


def as_bounds(bounds: int | Sequence[int | None] | None) -> Bounds:
    """What the caller wrote for one end of a slice, as an attribute: a tuple."""
    return (bounds,) if bounds is None or type(bounds) is int else bounds  # type: ignore[return-value]  # the operator checks it


def as_shape(shape: int | Sequence[int] | None) -> Shape:
    """What the caller wrote for a shape, as an attribute: a tuple."""
    return () if shape is None else as_axes(shape)  # type: ignore[return-value]  # only None gives None


# ---- the same order in memory: views


class View(Op):
    """The numbers of the array in another shape, which `target` computes."""

    aliases = True
    saves_inputs = False
    saves_outputs = False

    def target(self, shape: Shape) -> Shape:
        raise NotImplementedError

    def infer(self, data: Spec) -> Spec:
        return data.with_shape(self.target(data.shape))

    def kernel(self, xp: Any, data: Array) -> Array:
        return data.reshape(self.target(data.shape))

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (reshape_to(g, data.shape),)


@register("Reshape", "reshape")
class Reshaping(View):
    shape: tuple[int, ...] = ()
    reverse: bool = False
    target_shape: tuple[int, ...] = ()  # before MXNet 0.9: a single 0 stood for the remaining length
    keep_highest: bool = False
    #: `shape` holds lengths, no codes: a 0 is a length, and () an array without axes.
    exact: bool = hidden(default=False)

    def target(self, shape: Shape) -> Shape:
        if self.exact:
            if math.prod(self.shape) != math.prod(shape):
                raise ShapeError(f"reshape: an array of shape {shape} does not fit shape {self.shape}")
            return self.shape
        if self.shape:
            return resolve_reshape(shape, self.shape, self.reverse)
        if not self.target_shape:
            raise ArgumentError(f"{self.name}: shape is (), wants at least one length or code, such as (-1,)")
        codes = tuple(-1 if length == 0 else length for length in self.target_shape)
        return resolve_reshape(shape, (0, *codes[1:]) if self.keep_highest else codes)


def reshape_to(data: T, shape: Shape) -> T:
    """`data` in exactly `shape`, whose zeros are lengths."""
    if data.shape == shape:  # type: ignore[attr-defined]  # every tensor has a shape
        return data
    return apply(Reshaping(shape, exact=not shape or 0 in shape), data)


def reshape(
    data: T,
    shape: int | Sequence[int] = (),
    reverse: bool = False,
    target_shape: int | Sequence[int] = (),
    keep_highest: bool = False,
    **how: Unpack[How],
) -> T:
    """The same numbers in the same order, in another shape.

    **Args** shape: lengths or codes: 0 copies a length, -1 stands for what remains, -2 copies all remaining lengths, -3 merges
    two, -4, a, b splits one; reverse: read the codes from the right; target_shape, keep_highest: the older form. **Returns** a
    view. **Raises** ShapeError if no such shape has the same size. **Gradient** `g` in the shape of data. **Source** MXNet
    `Reshape`.
    """
    return apply(Reshaping(as_shape(shape), reverse, as_shape(target_shape), keep_highest), data, **how)


Reshape = reshape


@register("reshape_like")
class ReshapeLike(Op):
    inputs: ClassVar = ("lhs", "rhs")
    aliases = True
    saves_inputs = False
    saves_outputs = False

    lhs_begin: int | None = None
    lhs_end: int | None = None
    rhs_begin: int | None = None
    rhs_end: int | None = None

    def span(self, side: str, begin: int | None, end: int | None, ndim: int) -> tuple[int, int]:
        """The axes from `begin` to `end`, counted from the front."""
        low = 0 if begin is None else begin + ndim if begin < 0 else begin
        high = ndim if end is None else end + ndim if end < 0 else end
        if not 0 <= low < high <= ndim:
            raise ShapeError(
                f"{self.name}: {side}_begin={begin}, {side}_end={end} select no axes of an array of {ndim} dimensions"
            )
        return low, high

    def target(self, lhs: Shape, rhs: Shape) -> Shape:
        if self == ReshapeLike():
            return rhs
        low, high = self.span("lhs", self.lhs_begin, self.lhs_end, len(lhs))
        rhs_low, rhs_high = self.span("rhs", self.rhs_begin, self.rhs_end, len(rhs))
        return lhs[:low] + rhs[rhs_low:rhs_high] + lhs[high:]

    def infer(self, lhs: Spec, rhs: Spec) -> Spec:
        shape = self.target(lhs.shape, rhs.shape)
        if math.prod(shape) != lhs.size:
            raise ShapeError(f"{self.name}: lhs has shape {lhs.shape}, which does not fit {shape} (rhs has shape {rhs.shape})")
        return lhs.with_shape(shape)

    def kernel(self, xp: Any, lhs: Array, rhs: Array) -> Array:
        return lhs.reshape(self.target(lhs.shape, rhs.shape))

    def vjp(self, g: Any, y: Any, lhs: Any, rhs: Any) -> tuple[Any, ...]:
        return reshape_to(g, lhs.shape), None


def reshape_like(
    lhs: T,
    rhs: T,
    lhs_begin: int | None = None,
    lhs_end: int | None = None,
    rhs_begin: int | None = None,
    rhs_end: int | None = None,
    **how: Unpack[How],
) -> T:
    """`lhs` in the shape of `rhs`; with bounds, its axes from lhs_begin to lhs_end take the lengths of those of rhs.

    **Returns** a view. **Raises** ShapeError if the sizes differ. **Gradient** `g` for lhs, none for rhs. **Source** MXNet
    `reshape_like`.
    """
    return apply(ReshapeLike(lhs_begin, lhs_end, rhs_begin, rhs_end), lhs, rhs, **how)


@register("Flatten", "flatten")
class Flattening(View):
    def target(self, shape: Shape) -> Shape:
        if not shape:
            raise ShapeError(f"{self.name}: data has shape (), wants at least one dimension")
        return shape[0], math.prod(shape[1:])


def flatten(data: T, **how: Unpack[How]) -> T:
    """One row for each example: all axes but the first become one.

    **Shapes** data (N, ...), result (N, M). **Gradient** `g` in the shape of data. **Source** MXNet `Flatten`.
    """
    return apply(Flattening(), data, **how)


Flatten = flatten


@register("expand_dims")
class ExpandDims(View):
    axis: int

    def target(self, shape: Shape) -> Shape:
        axis = normalize_axis(self, self.axis, len(shape) + 1)
        return (*shape[:axis], 1, *shape[axis:])


def expand_dims(data: T, axis: int, **how: Unpack[How]) -> T:
    """A new axis of length 1 before `axis`.

    **Args** axis: -n - 1 to n for an array of n dimensions. **Gradient** `g` in the shape of data. **Source** MXNet
    `expand_dims`.
    """
    return apply(ExpandDims(axis), data, **how)


@register("squeeze")
class Squeeze(View):
    axis: tuple[int, ...] | None = None

    def target(self, shape: Shape) -> Shape:
        if self.axis is None:
            return tuple(length for length in shape if length != 1) or (1,)
        if not self.axis:
            return shape
        axes = normalize_axes(self, self.axis, len(shape))
        for axis in axes:
            if shape[axis] != 1:
                raise ShapeError(
                    f"{self.name}: axis {axis} of shape {shape} has length {shape[axis]}; only length 1 can be dropped"
                )
        return tuple(length for axis, length in enumerate(shape) if axis not in axes) or (1,)


def squeeze(data: T, axis: Axes = None, **how: Unpack[How]) -> T:
    """Without the axes of length 1, all or those given; (1,) if none remains.

    **Raises** ShapeError for an axis of another length. **Gradient** `g` in the shape of data. **Source** MXNet `squeeze`.
    """
    return apply(Squeeze(as_axes(axis)), data, **how)
