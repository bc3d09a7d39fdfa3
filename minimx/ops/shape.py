"""Other shapes for the same numbers: reshape, transpose, new and vanishing axes, broadcasting.

Where the order in memory stays, the result is a view and costs nothing (`View`); where it changes, the numbers are copied, block by
block, because the next kernel reads them in order (`transposed`). The codes of MXNet's reshape and its slices are resolved here by pure
functions of shapes, which arrays and symbols use as well. Book: chapter 1.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, hidden, normalize_axes, normalize_axis, register, require_ndim
from .forms import unbroadcast
from .reduce import Axes, as_axes

if TYPE_CHECKING:
    from typing_extensions import Unpack

Bounds = tuple["int | None", ...]  # one end of a slice for some axes; None: as far as it goes
BLOCK = 64  # rows of a transposition that are copied at once, so that both sides stay in cache


# ---- pure functions of shapes


@functools.lru_cache(maxsize=4096)
def resolve_reshape(shape: Shape, codes: tuple[int, ...], reverse: bool = False) -> Shape:
    """The shape that `codes` make of `shape`. Raises ShapeError if they fit no shape of the same size.

    A positive code is a length. 0 copies the length of the source at this place; -1 stands for what remains (once); -2 copies all
    lengths that are left; -3 merges two; -4, a, b splits one into a and b, of which one may be -1. `reverse` reads from the right.

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

    The bounds are for the first axes; they may be None or negative, and are cut to the array as Python's are. Raises ShapeError for
    more bounds than axes, ArgumentError for tuples of different lengths and a step of 0.

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
        slices.append(slice(start, stop if stop >= 0 else None, stride))  # -1 would count from the end again
        lengths.append(len(range(start, stop, stride)))
    return tuple(slices), tuple(lengths)


def as_bounds(bounds: int | None | Sequence[int | None]) -> Bounds:
    """What the caller wrote for one end of a slice, as an attribute: a tuple."""
    if isinstance(bounds, Sequence):
        return tuple(None if each is None else operator.index(each) for each in bounds)
    return (None if bounds is None else operator.index(bounds),)


def as_shape(shape: int | Sequence[int]) -> Shape:
    """What the caller wrote for a shape, as an attribute: a tuple."""
    return as_axes(shape) or ()


# ---- the same order in memory: views


class View(Op):
    """The numbers of the array in another shape, which `target` computes."""

    __slots__ = ()

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
@dataclass(frozen=True, slots=True)
class Reshaping(View):
    shape: tuple[int, ...] = ()
    reverse: bool = False
    target_shape: tuple[int, ...] = ()  # before MXNet 0.9: a single 0 stood for the remaining length
    keep_highest: bool = False
    #: `shape` holds lengths, no codes: a 0 is a length, and () an array without axes.
    exact: bool = hidden(False)

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

    **Args** shape: lengths or codes: 0 copies a length, -1 stands for what remains, -2 copies all remaining lengths, -3 merges two,
    -4, a, b splits one; reverse: read the codes from the right; target_shape, keep_highest: the older form. **Returns** a view.
    **Raises** ShapeError if no such shape has the same size. **Gradient** `g` in the shape of data. **Source** MXNet `Reshape`.
    """
    return apply(Reshaping(as_shape(shape), bool(reverse), as_shape(target_shape), bool(keep_highest)), data, **how)


Reshape = reshape


@register("reshape_like")
@dataclass(frozen=True, slots=True)
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
@dataclass(frozen=True, slots=True)
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
@dataclass(frozen=True, slots=True)
class ExpandDims(View):
    axis: int

    def target(self, shape: Shape) -> Shape:
        axis = normalize_axis(self, self.axis, len(shape) + 1)
        return (*shape[:axis], 1, *shape[axis:])


def expand_dims(data: T, axis: int, **how: Unpack[How]) -> T:
    """A new axis of length 1 before `axis`.

    **Args** axis: -n - 1 to n for an array of n dimensions. **Gradient** `g` in the shape of data. **Source** MXNet `expand_dims`.
    """
    return apply(ExpandDims(operator.index(axis)), data, **how)


@register("squeeze")
@dataclass(frozen=True, slots=True)
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


# ---- another order in memory: copies


def transposed(xp: Any, data: Array, axes: Shape, out: Array | None = None) -> Array:
    """A C-contiguous copy of `data` with its axes in the order `axes`.

    NumPy copies along the last axis of the result. If neighbours there are far apart in `data`, each of them costs a cache line of
    which the rest is evicted before its turn comes; so large arrays are copied in blocks of that axis.
    """
    view = data.transpose(axes)
    if out is None:
        out = xp.empty(view.shape, view.dtype)
    if xp is np and view.nbytes >= 1 << 18 and view.shape[-1] > BLOCK and view.strides[-1] >= 1024:
        for start in range(0, view.shape[-1], BLOCK):
            out[..., start : start + BLOCK] = view[..., start : start + BLOCK]
    else:
        out[...] = view
    return out


@register("transpose")
@dataclass(frozen=True, slots=True)
class Transpose(Op):
    saves_inputs = False
    saves_outputs = False
    takes_out = True

    axes: tuple[int, ...] = ()

    def order(self, ndim: int) -> Shape:
        """The source of each axis of the result."""
        if not self.axes:
            return tuple(range(ndim))[::-1]
        axes = tuple(normalize_axis(self, axis, ndim) for axis in self.axes)
        if sorted(axes) != list(range(ndim)):
            raise ShapeError(f"{self.name}: axes {self.axes} do not name each of the {ndim} axes of data once")
        return axes

    def infer(self, data: Spec) -> Spec:
        return data.with_shape([data.shape[axis] for axis in self.order(data.ndim)])

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return transposed(xp, data, self.order(data.ndim), out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        order = self.order(len(data.shape))
        return (apply(Transpose(tuple(order.index(axis) for axis in range(len(order)))), g),)


def transpose(data: T, axes: Sequence[int] | None = (), **how: Unpack[How]) -> T:
    """The axes in another order: axis i of the result is axis `axes[i]` of data; reversed without `axes`.

    **Returns** a copy. **Raises** ShapeError if `axes` is no permutation. **Gradient** `g` with the axes put back. **Source** MXNet
    `transpose`.
    """
    return apply(Transpose(as_axes(axes) or ()), data, **how)


@register("SwapAxis", "swapaxes")
@dataclass(frozen=True, slots=True)
class AxisSwap(Op):
    saves_inputs = False
    saves_outputs = False
    takes_out = True

    dim1: int = 0
    dim2: int = 0

    def order(self, ndim: int) -> Shape:
        axes = list(range(ndim))
        first, second = (normalize_axis(self, dim, ndim, what) for dim, what in ((self.dim1, "dim1"), (self.dim2, "dim2")))
        axes[first], axes[second] = second, first
        return tuple(axes)

    def infer(self, data: Spec) -> Spec:
        return data.with_shape([data.shape[axis] for axis in self.order(data.ndim)])

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return transposed(xp, data, self.order(data.ndim), out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(self, g),)


def swapaxes(data: T, dim1: int = 0, dim2: int = 0, **how: Unpack[How]) -> T:
    """Two axes change places.

    **Returns** a copy. **Gradient** `g` with the axes put back. **Source** MXNet `SwapAxis`.
    """
    return apply(AxisSwap(operator.index(dim1), operator.index(dim2)), data, **how)


SwapAxis = swapaxes


class Blocks(Op):
    """Moves blocks of pixels between the depth of an image and its height and width: data (N, C, H, W)."""

    __slots__ = ()

    saves_inputs = False
    saves_outputs = False

    block_size: int

    def check(self, data: Spec) -> int:
        require_ndim(self, "data", data, 4)
        if self.block_size < 1:
            raise ArgumentError(f"{self.name}: block_size is {self.block_size}, wants a positive number")
        if 0 in data.shape:
            raise ShapeError(f"{self.name}: data has shape {data.shape}, which has no pixels")
        return self.block_size


@register("depth_to_space")
@dataclass(frozen=True, slots=True)
class DepthToSpace(Blocks):
    block_size: int

    def infer(self, data: Spec) -> Spec:
        block = self.check(data)
        examples, depth, height, width = data.shape
        if depth % block**2:
            raise ShapeError(f"{self.name}: data has {depth} channels, wants a multiple of block_size ** 2 = {block**2}")
        return data.with_shape((examples, depth // block**2, height * block, width * block))

    def kernel(self, xp: Any, data: Array) -> Array:
        block = self.block_size
        examples, depth, height, width = data.shape
        apart = data.reshape(examples, block, block, depth // block**2, height, width)
        return transposed(xp, apart, (0, 3, 4, 1, 5, 2)).reshape(examples, depth // block**2, height * block, width * block)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(SpaceToDepth(self.block_size), g),)


@register("space_to_depth")
@dataclass(frozen=True, slots=True)
class SpaceToDepth(Blocks):
    block_size: int

    def infer(self, data: Spec) -> Spec:
        block = self.check(data)
        examples, depth, height, width = data.shape
        if height % block or width % block:
            raise ShapeError(f"{self.name}: data has height {height} and width {width}, wants multiples of block_size = {block}")
        return data.with_shape((examples, depth * block**2, height // block, width // block))

    def kernel(self, xp: Any, data: Array) -> Array:
        block = self.block_size
        examples, depth, height, width = data.shape
        apart = data.reshape(examples, depth, height // block, block, width // block, block)
        return transposed(xp, apart, (0, 3, 5, 1, 2, 4)).reshape(examples, depth * block**2, height // block, width // block)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(DepthToSpace(self.block_size), g),)


def depth_to_space(data: T, block_size: int, **how: Unpack[How]) -> T:
    """Channels become pixels: each pixel turns into a block of `block_size` by `block_size`.

    **Shapes** data (N, C b b, H, W), result (N, C, H b, W b). **Gradient** `space_to_depth(g)`. **Source** MXNet `depth_to_space`.
    """
    return apply(DepthToSpace(operator.index(block_size)), data, **how)


def space_to_depth(data: T, block_size: int, **how: Unpack[How]) -> T:
    """Pixels become channels: each block of `block_size` by `block_size` turns into one pixel.

    **Shapes** data (N, C, H b, W b), result (N, C b b, H, W). **Gradient** `depth_to_space(g)`. **Source** MXNet `space_to_depth`.
    """
    return apply(SpaceToDepth(operator.index(block_size)), data, **how)


# ---- more of the same: broadcasting


class Broadcast(Op):
    """Repeats an array along axes where it has length 1; `target` says to which shape."""

    __slots__ = ()

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
@dataclass(frozen=True, slots=True)
class BroadcastTo(Broadcast):
    shape: tuple[int, ...] = ()

    def target(self, shape: Shape, *like: Shape) -> Shape:
        if len(self.shape) == len(shape):
            return self.fit(shape, tuple(wanted or length for wanted, length in zip(self.shape, shape)))
        return self.fit(shape, self.shape)


def broadcast_to(data: T, shape: int | Sequence[int] = (), **how: Unpack[How]) -> T:
    """Repeats data along axes where it has length 1, and along new ones in front.

    **Args** shape: of the result; a 0 keeps the length of data. **Raises** ShapeError where the lengths differ and that of data is
    not 1. **Gradient** `g`, summed along those axes. **Source** MXNet `broadcast_to`.
    """
    return apply(BroadcastTo(as_shape(shape)), data, **how)


@register("broadcast_axis", "broadcast_axes")
@dataclass(frozen=True, slots=True)
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
    return apply(BroadcastAxis(as_axes(axis) or (), as_axes(size) or ()), data, **how)


broadcast_axes = broadcast_axis


@register("broadcast_like")
@dataclass(frozen=True, slots=True)
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

    **Args** lhs_axes, rhs_axes: only these axes of lhs take the lengths of those of rhs. **Gradient** `g`, summed along the repeated
    axes, for lhs; none for rhs. **Source** MXNet `broadcast_like`.
    """
    return apply(BroadcastLike(as_axes(lhs_axes), as_axes(rhs_axes)), lhs, rhs, **how)
