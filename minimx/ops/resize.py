"""Images at another size: cut out (Crop), interpolated (BilinearResize2D), averaged over equal shares (AdaptiveAvgPooling2D).

Interpolation and averages go over one axis after the other. Along an axis each result is made of few neighbours, whose numbers and weights
are the same for all images: two neighbours of a point that is interpolated (`Neighbours`), or a run of them of which a mean is taken
(`shares`). Each gradient is the transpose of that, whose gradient is the operator itself. Where the points follow from data, too, the
operators are in warp.py; learned interpolation is in upsampling.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, attributes, register
from ..rules import require_ndim
from .checks import accurate, along_axis, require_choice, require_float, require_input, require_shape
from .shape import as_shape
from .slicing import Selection, Slices
from .windows import axes_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

IMAGE_AXES = (3, 2)  # width first, as in MXNet, so that sums are rounded alike


def require_images(op: Op, what: str, spec: Spec) -> None:
    """Raise DTypeError or RankError unless `spec` is a floating (N, C, H, W)."""
    require_float(op, spec, what)
    require_ndim(op, what, spec, 4, axes=axes_of(2))


# ---- Crop


@register("Crop")
class Cropping(Selection):
    inputs: ClassVar = ("data*",)

    offset: tuple[int, ...] = (0, 0)
    h_w: tuple[int, ...] = (0, 0)
    center_crop: bool = False

    def infer(self, data: Spec, *like: Spec) -> Spec:
        if len(like) > 1:
            raise ArgumentError(f"Crop: {1 + len(like)} arrays are given, it takes one to cut and one whose size counts")
        for what, spec in zip(("data", "crop_like"), (data, *like)):
            require_ndim(self, what, spec, 4, axes=axes_of(2))
        return super().infer(data, *like)

    def select(self, shape: Shape, *like: Shape) -> tuple[Slices, Shape]:
        lengths = like[0][2:] if like else self.h_w
        if len(lengths) != 2 or len(self.offset) != 2:
            raise ArgumentError(f"Crop: h_w={self.h_w} and offset={self.offset} need two numbers each, of rows and of columns")
        if min(lengths) < 1:
            raise ArgumentError(f"Crop: the part has {lengths} rows and columns; give h_w, or a second array of the wanted size")
        starts = tuple((have - want) // 2 for have, want in zip(shape[2:], lengths)) if self.center_crop else self.offset
        for start, want, have in zip(starts, lengths, shape[2:]):
            if start < 0 or start + want > have:
                raise ShapeError(f"Crop: the part {lengths} at {starts} does not lie in data of shape {shape}")
        parts = (slice(start, start + want, 1) for start, want in zip(starts, lengths))
        return (slice(0, shape[0], 1), slice(0, shape[1], 1), *parts), (*shape[:2], *lengths)


def Crop(
    *data: T,
    num_args: int = 0,
    offset: int | Sequence[int] = (0, 0),
    h_w: int | Sequence[int] = (0, 0),
    center_crop: bool = False,
    **how: Unpack[How],
) -> T:
    """A part of images: `h_w` rows and columns, or as many as a second array has.

    **Shapes** data (N, C, H, W), crop_like (..., h, w), result (N, C, h, w). **Args** `offset`: the row and column where the part begins;
    `center_crop`: the middle, whatever `offset` says; `num_args`: not needed. **Raises** ShapeError if the part does not lie in the data.
    **Gradient** `g` in its place, 0 elsewhere; none for the second array. **Source** MXNet `Crop`.
    """
    if num_args and num_args != len(data):
        raise ArgumentError(f"Crop: num_args is {num_args}, but {len(data)} arrays are given")
    return apply(Cropping(as_shape(offset), as_shape(h_w), center_crop), *data, **how)


# ---- BilinearResize2D


class Neighbours(NamedTuple):
    """For each result along an axis: its neighbours among the elements, and how much of the result is the higher one's."""

    low: Array
    high: Array
    share: Array


def neighbours(length: int, count: int, align_corners: bool) -> Neighbours:
    """The neighbours of `count` points that are spread evenly over `length` elements.

    Positions are rounded to float32, as MXNet's are, so that results are equal up to the last digits, however long the axis.
    """
    number = np.arange(count)
    if align_corners:  # the first and the last point are elements
        step = np.float32(length - 1) / np.float32(count - 1) if count > 1 else np.float32(0)
        position = step * number.astype(np.float32)
    else:  # elements and points are squares, the ends of whose rows are the same
        step = np.float32(length) / np.float32(count) if count > 1 else np.float32(0)
        position = np.maximum(np.float64(step) * (number + 0.5) - 0.5, 0).astype(np.float32)
    low = np.minimum(position.astype(np.intp), length - 1)
    return Neighbours(low, np.minimum(low + 1, length - 1), position - low.astype(np.float32))


def interpolated(xp: Any, data: Array, axis: int, found: Neighbours) -> Array:
    share = xp.asarray(found.share.astype(data.dtype)).reshape(along_axis((len(found.share),) * data.ndim, axis))
    result = data.take(xp.asarray(found.low), axis)
    result *= 1 - share
    higher = data.take(xp.asarray(found.high), axis)
    higher *= share
    result += higher
    return result


def spread_back(xp: Any, head: Array, axis: int, found: Neighbours, length: int) -> Array:
    """The transpose of `interpolated`: each element of `head` shared out to the neighbours that it was made of."""
    result = xp.zeros((*head.shape[:axis], length, *head.shape[axis + 1 :]), head.dtype)
    target, source = xp.moveaxis(result, axis, 0), xp.moveaxis(head, axis, 0)
    for number, (low, high, share) in enumerate(zip(*found)):
        target[low] += source[number] * head.dtype.type(1 - share)
        target[high] += source[number] * head.dtype.type(share)
    return result


@register("_contrib_BilinearResize2D")
class BilinearResize(Op):
    inputs: ClassVar = ("data", "like?")
    saves_inputs: ClassVar = False
    saves_outputs: ClassVar = False

    height: int = 1
    width: int = 1
    scale_height: float | None = None
    scale_width: float | None = None
    mode: str = "size"
    align_corners: bool = True

    def wants(self, name: str) -> bool:
        return name == "like" and self.mode == "like"

    def scaled(self, lengths: Shape) -> Shape:
        """`lengths` times the scales. A scale is a float32, as in MXNet, which decides how a product near a whole number is rounded."""
        if self.scale_height is None or self.scale_width is None:
            raise ArgumentError(f"{self.name}: mode={self.mode!r} needs scale_height and scale_width, not one of them")
        scales = (np.float32(self.scale_height), np.float32(self.scale_width))
        return tuple(int(scale * np.float32(length)) for scale, length in zip(scales, lengths))

    def size(self, lengths: Shape, like: Shape | None) -> Shape:
        """Height and width of the results for data of these lengths."""
        if self.mode == "like" and like is not None:
            return like[2:]
        if self.mode == "odd_scale":
            even = self.scaled(tuple(length - length % 2 for length in lengths))
            return tuple(scaled + length % 2 for scaled, length in zip(even, lengths))
        if self.mode == "size":
            scales = self.scale_height is not None or self.scale_width is not None
            return self.scaled(lengths) if scales else (self.height, self.width)
        wrong, step = self.mode.startswith("to_even"), -1 if self.mode.endswith("down") else 1
        return tuple(length + step * (length % 2 == wrong) for length in lengths)

    def infer(self, data: Spec, like: Spec | None = None) -> Spec:
        modes = ("size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up")
        require_choice(self, "mode", self.mode, *modes)
        require_images(self, "data", data)
        require_input(self, "like", like, self.mode == "like", "mode='like' takes a second array, the other modes do not")
        if like is not None:
            require_ndim(self, "like", like, 4, axes=axes_of(2))
        size = self.size(data.shape[2:], None if like is None else like.shape)
        if min(size) < 1 or min(data.shape[2:]) < 1:
            raise ShapeError(f"{self.name}: from data of shape {data.shape} to {size} rows and columns; both need at least one")
        return data.with_shape((*data.shape[:2], *size))

    def kernel(self, xp: Any, data: Array, like: Array | None = None) -> Array:
        size = self.size(data.shape[2:], None if like is None else like.shape)
        result = accurate(xp, data)
        for axis in IMAGE_AXES:
            result = interpolated(xp, result, axis, neighbours(data.shape[axis], size[axis - 2], self.align_corners))
        return result.astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any, like: Any = None) -> tuple[Any, ...]:
        return apply(BilinearResizeBackward(data.shape[2], data.shape[3], self.align_corners), g), None


@register("_backward_contrib_BilinearResize2D")
class BilinearResizeBackward(Op):
    """From the gradient of the results to that of images of `height` and `width`."""

    saves_inputs = False
    saves_outputs = False

    height: int
    width: int
    align_corners: bool = True

    def infer(self, data: Spec) -> Spec:
        require_images(self, "data", data)
        return data.with_shape((*data.shape[:2], self.height, self.width))

    def kernel(self, xp: Any, data: Array) -> Array:
        result, lengths = accurate(xp, data), (self.height, self.width)
        for axis in reversed(IMAGE_AXES):
            length = lengths[axis - 2]
            result = spread_back(xp, result, axis, neighbours(length, data.shape[axis], self.align_corners), length)
        return result.astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(BilinearResize(data.shape[2], data.shape[3], align_corners=self.align_corners), g),)


def BilinearResize2D(
    data: T,
    like: T | None = None,
    height: int = 1,
    width: int = 1,
    scale_height: float | None = None,
    scale_width: float | None = None,
    mode: str = "size",
    align_corners: bool = True,
    **how: Unpack[How],
) -> T:
    """Images of another height and width, each pixel interpolated between the four around its place.

    **Shapes** data (N, C, H, W), like (..., h, w), result (N, C, h, w). **Args** `mode`: "size" makes `height` rows and `width` columns, or
    `scale_height` times as many rows and `scale_width` times as many columns, rounded down; "odd_scale" the same, but of an odd length one
    element stays apart, `(length - 1) scale + 1`; "like" takes the size of a second array; "to_even_down", "to_even_up", "to_odd_down",
    "to_odd_up" make a length even or odd by one element less or more. `align_corners`: the pixels at the corners stay where they are;
    otherwise pixels are squares, and the borders of the images stay. **Raises** ShapeError for a result without pixels. **Gradient** `g`
    shared out to the four; none for `like`. **Source** MXNet `contrib.BilinearResize2D`.
    """
    return apply(BilinearResize(height, width, scale_height, scale_width, mode, align_corners), data, like, **how)


# ---- AdaptiveAvgPooling2D


def shares(length: int, count: int) -> list[slice]:
    """`count` runs that cover `length` elements; where they are not of equal length, neighbours share an element."""
    return [slice(number * length // count, -(-(number + 1) * length // count)) for number in range(count)]


@attributes
class AdaptivePooling(Op):
    saves_inputs: ClassVar = False
    saves_outputs: ClassVar = False

    output_size: tuple[int, ...] = ()

    @property
    def size(self) -> Shape:
        """Height and width of the results; one number stands for both."""
        return (self.output_size or (1,)) * (2 if len(self.output_size) < 2 else 1)

    def check(self, data: Spec) -> None:
        require_images(self, "data", data)
        if len(self.size) != 2 or min(self.size) < 1:
            raise ArgumentError(f"{self.name}: output_size={self.output_size}, wants one or two lengths of at least 1")
        if min(data.shape[2:]) < 1:
            raise ShapeError(f"{self.name}: data has shape {data.shape}; there are no elements to take means of")


@register("_contrib_AdaptiveAvgPooling2D")
class AdaptiveAvgPoolingLayer(AdaptivePooling):
    def infer(self, data: Spec) -> Spec:
        self.check(data)
        return data.with_shape((*data.shape[:2], *self.size))

    def kernel(self, xp: Any, data: Array) -> Array:
        result = accurate(xp, data)
        for axis in (2, 3):  # height first: its elements lie in long runs
            source, count = result, self.size[axis - 2]
            result = xp.empty((*source.shape[:axis], count, *source.shape[axis + 1 :]), source.dtype)
            for number, share in enumerate(shares(source.shape[axis], count)):
                before = (slice(None),) * axis
                source[(*before, share)].mean(axis=axis, out=result[(*before, number)])
        return result.astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(AdaptiveAvgPoolingBackward(self.size, data.shape[2:]), g),)


@register("_backward_contrib_AdaptiveAvgPooling2D")
class AdaptiveAvgPoolingBackward(AdaptivePooling):
    """From the gradient of the means to that of images of `lengths`."""

    lengths: tuple[int, ...] = ()

    def infer(self, data: Spec) -> Spec:
        self.check(data)
        require_shape(self, "data", data, (*data.shape[:2], *self.size), f"output_size={self.output_size}")
        return data.with_shape((*data.shape[:2], *self.lengths))

    def kernel(self, xp: Any, data: Array) -> Array:
        result = accurate(xp, data)
        for axis in (3, 2):
            source, length = result, self.lengths[axis - 2]
            result = xp.zeros((*source.shape[:axis], length, *source.shape[axis + 1 :]), source.dtype)
            for number, share in enumerate(shares(length, source.shape[axis])):
                before = (slice(None),) * axis
                part = source[(*before, slice(number, number + 1))]
                result[(*before, share)] += part / source.dtype.type(share.stop - share.start)
        return result.astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(AdaptiveAvgPoolingLayer(self.size), g),)


def AdaptiveAvgPooling2D(data: T, output_size: int | Sequence[int] = (), **how: Unpack[How]) -> T:
    """The means of images over equal shares, so many that the results have the size `output_size`, whatever that of the images.

    **Shapes** data (N, C, H, W), result (N, C, h, w). **Args** `output_size`: h and w, one number for both, 1 without one. **Returns**
    means over the rows `floor(i H / h)` to `ceil((i + 1) H / h)`, and columns likewise. **Gradient** g in equal parts to the elements of a
    share. **Source** MXNet `contrib.AdaptiveAvgPooling2D`.
    """
    return apply(AdaptiveAvgPoolingLayer(as_shape(output_size)), data, **how)


__all__ = ["AdaptiveAvgPooling2D", "BilinearResize2D", "Crop"]
