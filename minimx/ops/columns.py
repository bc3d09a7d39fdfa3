"""im2col and col2im: an image as the matrix whose products are its convolutions, and back.

Each is the transpose of the other, so each is the other's gradient. Convolution makes columns of its own, of which it never keeps all
(correlation.py). Book: chapter 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Shape, Spec, T, apply, register
from ..rules import require_ndim
from .checks import accurate, require_float
from .shape import as_shape
from .windows import Windowed, axes_of, fold, unfold

if TYPE_CHECKING:
    from typing_extensions import Unpack


@register("im2col")
class Im2col(Windowed):
    required = ("kernel_size",)
    saves_inputs = False
    saves_outputs = False

    def infer(self, data: Spec) -> Spec:
        self.check_window()
        require_float(self, data)
        require_ndim(self, "data", data, 2 + len(self.kernel_size), axes=axes_of(len(self.kernel_size)))
        counts = self.check_counts(data.shape[2:])
        return data.with_shape((data.shape[0], data.shape[1] * math.prod(self.kernel_size), math.prod(counts)))

    def kernel(self, xp: Any, data: Array) -> Array:
        counts = self.window.counts(data.shape[2:])
        columns = xp.zeros((*data.shape[:2], *self.kernel_size, *counts), data.dtype)
        unfold(columns, data, self.window)
        return columns.reshape(data.shape[0], data.shape[1] * math.prod(self.kernel_size), math.prod(counts))

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(Col2im(self.kernel_size, self.stride, self.pad, self.dilate, data.shape[2:]), g),)


@register("col2im")
class Col2im(Windowed):
    required = ("output_size", "kernel_size")
    saves_inputs = False
    saves_outputs = False

    output_size: tuple[int, ...] = ()

    def _channels(self, data: Shape) -> int:
        return data[1] // math.prod(self.kernel_size)

    def infer(self, data: Spec) -> Spec:
        self.check_window()
        require_float(self, data)
        require_ndim(self, "data", data, 3, axes=("batch", "columns", "windows"))
        if len(self.output_size) != len(self.kernel_size):
            raise ArgumentError(
                f"col2im: output_size={self.output_size} has {len(self.output_size)} lengths, kernel={self.kernel_size} has "
                f"{len(self.kernel_size)}"
            )
        points, positions = math.prod(self.kernel_size), math.prod(self.check_counts(self.output_size))
        if data.shape[1] % points or data.shape[2] != positions:
            raise ShapeError(
                f"col2im: data has shape {data.shape}, kernel={self.kernel_size} and output_size={self.output_size} need "
                f"(N, {points} C, {positions})"
            )
        return data.with_shape((data.shape[0], self._channels(data.shape), *self.output_size))

    def kernel(self, xp: Any, data: Array) -> Array:
        counts = self.window.counts(self.output_size)
        shape = (data.shape[0], self._channels(data.shape))
        columns = accurate(xp, data).reshape(*shape, *self.kernel_size, *counts)
        image = xp.zeros((*shape, *self.output_size), columns.dtype)
        fold(image, columns, self.window)
        return image.astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(Im2col(self.kernel_size, self.stride, self.pad, self.dilate), g),)


def im2col(
    data: T,
    kernel: tuple[int, ...] = (),
    stride: tuple[int, ...] = (),
    dilate: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
    **how: Unpack[How],
) -> T:
    """The elements under each window, as the columns of a matrix: a product with filters as rows is a convolution.

    **Shapes** data (N, C, ...) with one to three axes, result (N, C k, P): k elements under each of P windows. **Args** as Convolution.
    **Gradient** col2im. **Source** MXNet `im2col`.
    """
    return apply(Im2col(as_shape(kernel), as_shape(stride), as_shape(pad), as_shape(dilate)), data, **how)


def col2im(
    data: T,
    output_size: tuple[int, ...] = (),
    kernel: tuple[int, ...] = (),
    stride: tuple[int, ...] = (),
    dilate: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
    **how: Unpack[How],
) -> T:
    """The sum of columns at the places that im2col takes them from.

    **Shapes** data (N, C k, P), result (N, C, *output_size). **Args** as Convolution. **Raises** ShapeError unless data is as im2col makes
    it. **Gradient** im2col. **Source** MXNet `col2im`.
    """
    op = Col2im(as_shape(kernel), as_shape(stride), as_shape(pad), as_shape(dilate), as_shape(output_size))
    return apply(op, data, **how)


__all__ = ["col2im", "im2col"]
