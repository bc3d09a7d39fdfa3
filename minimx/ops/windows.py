"""Windows that slide over an array: what convolution, pooling, im2col and col2im have in common.

A window has a kernel (how many points along each axis), which moves by a stride, whose points lie `dilate` apart, over data that is
thought to be framed by `pad` zeros. Nothing is framed here: for each point of the kernel, `Window.places` says which results have it
inside the data, and where it lies there. Both are slices, so that a point of the kernel is handled for all results at once, and all
axes alike. The *columns* of an image have, for each result, all elements under its window: convolution is a product with them.
Book: chapter 4.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..base import ArgumentError, ShapeError
from ..op import Array, Op, Shape, attributes, called

Slices = tuple[slice, ...]
WHOLE = (slice(None), slice(None))  # all examples and channels


@dataclass(frozen=True)
class Window:
    """Kernel, stride, dilate and pad, each a length for every axis."""

    kernel: Shape
    stride: Shape
    dilate: Shape
    pad: Shape

    @property
    def spans(self) -> Shape:
        """How far the kernel reaches."""
        return tuple(dilate * (kernel - 1) + 1 for kernel, dilate in zip(self.kernel, self.dilate))

    @property
    def is_point(self) -> bool:
        """Whether the results are as many as the elements, each with one of them under its window."""
        return {*self.kernel, *self.stride} == {1} and not any(self.pad)

    def counts(self, lengths: Shape) -> Shape:
        """How many results there are for data of these lengths; not positive where the window does not fit."""
        terms = zip(lengths, self.pad, self.spans, self.stride)
        return tuple((length + 2 * pad - span) // stride + 1 for length, pad, span, stride in terms)

    def taps(self, axis: int, length: int, count: int) -> list[tuple[int, slice, slice]]:
        """For each point of the kernel along `axis`: (its number, the results that have it in the data, where it is there)."""
        found = []
        stride = self.stride[axis]
        for number in range(self.kernel[axis]):
            offset = number * self.dilate[axis] - self.pad[axis]  # of the first result's point
            first, end = max(0, -(offset // stride)), min(count, (length - 1 - offset) // stride + 1)
            if first < end:
                place = slice(first * stride + offset, (end - 1) * stride + offset + 1, stride)
                found.append((number, slice(first, end), place))
        return found

    def places(self, lengths: Shape, counts: Shape) -> list[tuple[Shape, Slices, Slices]]:
        """`taps` of all axes combined."""
        return _places(self, tuple(lengths), tuple(counts))


@functools.lru_cache(maxsize=1024)
def _places(window: Window, lengths: Shape, counts: Shape) -> list[tuple[Shape, Slices, Slices]]:
    axes = [window.taps(axis, length, count) for axis, (length, count) in enumerate(zip(lengths, counts))]
    combined = (zip(*taps) for taps in itertools.product(*axes))
    return [(tuple(numbers), tuple(results), tuple(places)) for numbers, results, places in combined]


# ---- operators with a window


@attributes
class Sliding(Op):
    """The attributes of a window. An empty tuple stands for strides of 1, and no padding."""

    kernel_size: tuple[int, ...] = called("kernel", default=())
    stride: tuple[int, ...] = ()
    pad: tuple[int, ...] = ()

    @property
    def dilation(self) -> Shape:
        """The attribute `dilate`, of those that have it."""
        return ()

    @property
    def window(self) -> Window:
        ndim = len(self.kernel_size)
        pad = self.pad if any(self.pad) else (0,) * ndim
        return Window(self.kernel_size, self.stride or (1,) * ndim, self.dilation or (1,) * ndim, pad)

    def check_window(self) -> Window:
        """The window. Raises ArgumentError unless its attributes make one."""
        ndim = len(self.kernel_size)
        if not ndim:
            raise ArgumentError(f"{self.name}: kernel is required: 1, 2 or 3 lengths, one for each axis of an image")
        if not 1 <= ndim <= 3:
            raise ArgumentError(f"{self.name}: kernel={self.kernel_size}, wants 1, 2 or 3 lengths: one for each axis of an image")
        given = (("kernel", self.kernel_size, 1), ("stride", self.stride, 1), ("dilate", self.dilation, 1), ("pad", self.pad, 0))
        for what, value, least in given:
            if value and len(value) != ndim and (what != "pad" or any(value)):  # scripts write more zeros than there are axes
                raise ArgumentError(f"{self.name}: {what}={value} has {len(value)} lengths, kernel={self.kernel_size} has {ndim}")
            if min(value, default=least) < least:
                raise ArgumentError(f"{self.name}: {what}={value} must not be less than {least}")
        return self.window

    def check_counts(self, lengths: Shape) -> Shape:
        """How many results there are. Raises ShapeError if there are none."""
        counts = self.check_window().counts(lengths)
        if min(counts) < 1:
            raise self.too_small(lengths)
        return counts

    def too_small(self, lengths: Shape) -> ShapeError:
        """The error for data in which the window has no place."""
        padded = tuple(length + 2 * pad for length, pad in zip(lengths, self.window.pad))
        return ShapeError(
            f"{self.name}: kernel={self.kernel_size} reaches over {self.window.spans}, but data has {padded} with its padding"
        )


@attributes
class Windowed(Sliding):
    """The same with `dilate`."""

    dilate: tuple[int, ...] = ()

    @property
    def dilation(self) -> Shape:
        return self.dilate


# MXNet's names for where the axes are, by their number. In the second the channels come last.
LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def channels_last(op: Op, layout: str | None, ndim: int) -> bool:
    """Whether the channels are the last axis rather than axis 1. Raises ArgumentError for an unknown layout."""
    if layout is None or layout == "None":
        return False
    if layout not in LAYOUTS[ndim]:
        raise ArgumentError(f"{op.name}: layout={layout!r} is not one for {ndim} axes; choose {' or '.join(LAYOUTS[ndim])}")
    return layout == LAYOUTS[ndim][1]


def axes_of(ndim: int, last: bool = False) -> tuple[str, ...]:
    """What the axes of a batch are whose images have `ndim`, for messages."""
    lengths = ("depth", "height", "width")[-ndim:]
    return ("batch", *lengths, "channels") if last else ("batch", "channels", *lengths)


def channels_first(xp: Any, array: Array, last: bool) -> Array:
    """A view in which the channels are axis 1, for an array in which they may be the last."""
    return xp.moveaxis(array, -1, 1) if last else array


def placed(shape: Sequence[int], last: bool) -> Shape:
    """The shape (N, C, ...) as it is with the channels at their place."""
    return (shape[0], *shape[2:], shape[1]) if last else tuple(shape)


def split(shape: Shape, last: bool) -> tuple[int, int, Shape]:
    """(examples, channels, lengths of the other axes) of a shape."""
    return (shape[0], shape[-1], shape[1:-1]) if last else (shape[0], shape[1], shape[2:])


# ---- columns


def unfold(columns: Array, data: Array, window: Window) -> None:
    """Write the columns of `data` (N, C, ...) into `columns` (N, C, *kernel, *results), whose elements outside the data stay."""
    counts = columns.shape[2 + len(window.kernel) :]
    for point, results, place in window.places(data.shape[2:], counts):
        columns[(*WHOLE, *point, *results)] = data[(*WHOLE, *place)]


def fold(data: Array, columns: Array, window: Window) -> None:
    """Add `columns` to the elements of `data` that they belong to: the adjoint of `unfold`."""
    counts = columns.shape[2 + len(window.kernel) :]
    for point, results, place in window.places(data.shape[2:], counts):
        data[(*WHOLE, *place)] += columns[(*WHOLE, *point, *results)]
