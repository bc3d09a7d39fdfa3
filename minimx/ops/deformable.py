"""Deformable convolution: one whose windows have no fixed shape. DeformableConvolution and ModulatedDeformableConvolution.

In a convolution the points of a window lie on a grid. Here each has been moved by an offset, which another convolution predicts from the
data: for every window, and along both axes. The columns, the elements under each window, are looked up between pixels (points.py); the rest
is a product of matrices, as in every convolution (correlation.py). Backwards the product gives the gradient of the columns, which goes
back to the pixels, and, by the slopes there, to the offsets. The modulated kind multiplies each point with a number of its own.
Book: chapter 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, MXNetError, ShapeError
from ..op import Array, How, Kind, Shape, Spec, T, apply, attributes, register
from ..rules import filled, require_ndim, same_dtype
from .checks import accurate, require_float, require_input, require_shape
from .points import Corners, corners_of, look_up, put_back, slopes, table_of
from .shape import as_shape
from .windows import Windowed, axes_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


@attributes
class Deforming(Windowed):
    """What both convolutions and their gradients share."""

    required = ("kernel_size", "num_filter")
    kind = Kind.GEMM
    saves_outputs = False

    num_filter: int = 0
    num_group: int = 1
    num_deformable_group: int = 1
    workspace: int = 1024
    no_bias: bool = False
    layout: str | None = None

    #: Whether there is a number for each point, and zeros lie around the image; otherwise points outside it are zero.
    modulated: ClassVar[bool] = False

    def wants(self, name: str) -> bool:
        return name == "bias" and not self.no_bias

    @property
    def taps(self) -> int:
        """The points of a window."""
        return math.prod(self.kernel_size)

    def fill(self, data: Spec | None, offset: Spec | None, *others: Spec | None) -> tuple[Spec | None, ...]:
        if data is None or data.ndim != 4 or len(self.kernel_size) != 2 or self.num_group < 1:
            return data, offset, *others
        at = 1 if self.modulated else 0
        weight = filled(others[at], (self.num_filter, data.shape[1] // self.num_group, *self.kernel_size), data)
        bias = tuple(filled(spec, (self.num_filter,), data) for spec in others[at + 1 :])
        return (data, offset, *others[:at], weight, *bias)

    def check(self, data: Spec, offset: Spec, mask: Spec | None, weight: Spec, bias: Spec | None) -> Shape:
        """The shape of the result. Raises unless the attributes and inputs are good."""
        self.check_window()
        require_float(self, data)
        if len(self.kernel_size) != 2:
            raise ArgumentError(
                f"{self.name}: kernel={self.kernel_size}, wants 2 lengths; there is deformable convolution of images only"
            )
        if self.layout not in (None, "None", "NCHW"):
            raise ArgumentError(f"{self.name}: layout={self.layout!r} is not known; choose NCHW")
        if self.num_filter < 1:
            raise ArgumentError(f"{self.name}: num_filter={self.num_filter} is not positive; give the number of output channels")
        require_ndim(self, "data", data, 4, axes=axes_of(2))
        batch, channels, *lengths = data.shape
        if not channels:
            raise ShapeError(f"{self.name}: data has shape {data.shape}, images without channels; wants 1 or more")
        groups = (("num_group", self.num_group), ("num_deformable_group", self.num_deformable_group))
        for what, value in groups:
            if value < 1 or channels % value:
                raise ArgumentError(f"{self.name}: {what}={value} does not divide the channels of data: {channels}")
        if self.num_filter % self.num_group:
            raise ArgumentError(f"{self.name}: num_group={self.num_group} does not divide num_filter={self.num_filter}")
        require_input(self, "bias", bias, not self.no_bias, "pass it with no_bias=False, or leave it out with no_bias=True")
        same_dtype(self, *(spec for spec in (data, offset, mask, weight, bias) if spec is not None))
        counts = self.check_counts(tuple(lengths))
        points, reason = self.num_deformable_group * self.taps, f"data of shape {data.shape}"
        require_shape(self, "offset", offset, (batch, 2 * points, *counts), reason)
        if mask is not None:
            require_shape(self, "mask", mask, (batch, points, *counts), reason)
        require_shape(self, "weight", weight, (self.num_filter, channels // self.num_group, *self.kernel_size), reason)
        if bias is not None:
            require_shape(self, "bias", bias, (self.num_filter,), f"num_filter={self.num_filter}")
        return (batch, self.num_filter, *counts)

    # ---- one example

    def corners(self, xp: Any, offset: Array, lengths: Shape) -> Corners:
        """Where the points of an example are in its table: of all windows, points of the kernel and groups, in this order."""
        groups, counts, window = self.num_deformable_group, offset.shape[1:], self.window
        # (groups, points of the kernel, y and x, windows) -> y and x, (windows, points, groups) each
        moved = accurate(xp, offset).reshape(groups, self.taps, 2, -1).transpose(2, 3, 1, 0)
        starts = [xp.arange(count) * stride - pad for count, stride, pad in zip(counts, window.stride, window.pad)]
        steps = [xp.arange(length) * dilate for length, dilate in zip(window.kernel, window.dilate)]
        y = (starts[0][:, None, None, None] + steps[0][:, None]) + xp.zeros((1, counts[1], 1, window.kernel[1]), np.int64)
        x = (starts[1][:, None, None] + steps[1]) + xp.zeros((counts[0], 1, window.kernel[0], 1), np.int64)
        y, x = (place.reshape(-1, self.taps, 1).astype(moved.dtype) + part for place, part in zip((y, x), moved))
        if self.modulated:
            inside = (y > -1) & (y < lengths[0]) & (x > -1) & (x < lengths[1])
        else:
            inside = (y >= 0) & (y < lengths[0]) & (x >= 0) & (x < lengths[1])
        found = corners_of(xp, y, x, lengths, inside, framed=self.modulated)
        group = xp.arange(groups)
        return Corners(tuple((rows * groups + group).ravel() for rows in found.rows), found.down.ravel(), found.across.ravel())

    def table(self, xp: Any, image: Array) -> Array:
        """An image (C, H, W) as a table with a row for each pixel and group."""
        return table_of(xp, image.reshape(len(image), -1).T).reshape(-1, len(image) // self.num_deformable_group)

    def filters(self, xp: Any, weight: Array) -> Array:
        """The weight as matrices (groups, filters, points and channels)."""
        grouped = accurate(xp, weight).reshape(self.num_group, -1, weight.shape[1], self.taps)
        return xp.ascontiguousarray(grouped.transpose(0, 1, 3, 2)).reshape(*grouped.shape[:2], -1)

    def by_group(self, xp: Any, columns: Array) -> Array:
        """Columns (windows, points, C) as matrices (groups, points and channels, windows)."""
        windows, taps, _ = columns.shape
        return columns.reshape(windows, taps, self.num_group, -1).transpose(2, 1, 3, 0).reshape(self.num_group, -1, windows)

    def columns(self, xp: Any, table: Array, corners: Corners, mask: Array | None) -> tuple[Array, Array | None]:
        """The columns (windows, points, C) of an example, and what they were multiplied with, for each row of the table's width."""
        values = xp.empty((len(corners.down), table.shape[1]), table.dtype)
        look_up(xp, table, corners, values)
        factor = None
        if mask is not None:
            groups = self.num_deformable_group
            factor = accurate(xp, mask).reshape(groups, self.taps, -1).transpose(2, 1, 0).reshape(-1, 1)
            values *= factor
        return values.reshape(-1, self.taps, table.shape[1] * self.num_deformable_group), factor

    # ---- all of them

    def forward(self, xp: Any, data: Array, offset: Array, mask: Array | None, weight: Array, bias: Array | None) -> Array:
        filters = self.filters(xp, weight)
        result = xp.empty((len(data), self.num_filter, *offset.shape[2:]), filters.dtype)
        for example in range(len(data)):
            corners = self.corners(xp, offset[example], data.shape[2:])
            own = None if mask is None else mask[example]
            columns, _ = self.columns(xp, self.table(xp, data[example]), corners, own)
            result[example] = (filters @ self.by_group(xp, columns)).reshape(result.shape[1:])
        if bias is not None:
            result += accurate(xp, bias)[:, None, None]
        return result.astype(data.dtype, copy=False)

    def backward(
        self, xp: Any, head: Array, data: Array, offset: Array, mask: Array | None, weight: Array
    ) -> tuple[Array, Array, Array | None, Array]:
        """The gradients of data, offset, mask and weight."""
        filters, wide = self.filters(xp, weight), accurate(xp, head)
        to_filters = xp.zeros_like(filters)
        to_data, to_offset = xp.zeros(data.shape, data.dtype), xp.empty(offset.shape, offset.dtype)
        to_mask = None if mask is None else xp.empty(mask.shape, mask.dtype)
        groups, taps = self.num_deformable_group, self.taps
        for example in range(len(data)):
            corners, table = self.corners(xp, offset[example], data.shape[2:]), self.table(xp, data[example])
            columns, factor = self.columns(xp, table, corners, None if mask is None else mask[example])
            slope = wide[example].reshape(self.num_group, filters.shape[1], -1)
            to_filters += slope @ self.by_group(xp, columns).swapaxes(1, 2)
            # (groups, points and channels, windows) -> rows as in the table
            of_columns = (filters.swapaxes(1, 2) @ slope).reshape(self.num_group, taps, -1, slope.shape[2])
            values = xp.ascontiguousarray(of_columns.transpose(3, 1, 0, 2)).reshape(-1, table.shape[1])
            along_y, along_x, itself = slopes(xp, table, corners, values)
            if factor is not None and to_mask is not None:
                to_mask[example] = itself.reshape(-1, taps, groups).transpose(2, 1, 0).reshape(mask.shape[1:])  # type: ignore[union-attr]
                values *= factor
                along_y, along_x = (along * factor[:, 0] for along in (along_y, along_x))
            moved = xp.stack([along_y, along_x]).reshape(2, -1, taps, groups)
            to_offset[example] = moved.transpose(3, 2, 0, 1).reshape(offset.shape[1:])
            gradient = xp.zeros_like(table)
            put_back(xp, gradient, corners, values)
            to_data[example] = gradient[:-groups].reshape(-1, data.shape[1]).T.reshape(data.shape[1:])
        by_channel = to_filters.reshape(*to_filters.shape[:2], taps, -1).swapaxes(2, 3)
        return to_data, to_offset, to_mask, xp.array(by_channel, weight.dtype, order="C").reshape(weight.shape)

    def refuse(self) -> MXNetError:
        return MXNetError("deformable convolution has a first derivative only; its gradient cannot be differentiated again")


# ---- offsets alone


@register("_contrib_DeformableConvolution")
class DeformableLayer(Deforming):
    inputs: ClassVar = ("data", "offset", "weight", "bias?")
    saves_inputs = (0, 1, 2)

    def infer(self, data: Spec, offset: Spec, weight: Spec, bias: Spec | None = None) -> Spec:
        return data.with_shape(self.check(data, offset, None, weight, bias))

    def kernel(self, xp: Any, data: Array, offset: Array, weight: Array, bias: Array | None = None) -> Array:
        return self.forward(xp, data, offset, None, weight, bias)

    def vjp(self, g: Any, y: Any, data: Any, offset: Any, weight: Any, bias: Any = None) -> tuple[Any, ...]:
        found = apply(DeformableGradient(**{**self.__dict__, "no_bias": True}), g, data, offset, weight)
        return (*found, *(() if bias is None else (g.sum(axis=(0, 2, 3)),)))


@register("_backward__contrib_DeformableConvolution")
class DeformableGradient(Deforming):
    """The gradients of data, offset and weight."""

    inputs: ClassVar = ("head", "data", "offset", "weight")

    @property
    def num_outputs(self) -> int:
        return 3

    def fill(self, *inputs: Spec | None) -> tuple[Spec | None, ...]:
        return inputs

    def infer(self, head: Spec, data: Spec, offset: Spec, weight: Spec) -> tuple[Spec, ...]:
        require_shape(self, "head", head, self.check(data, offset, None, weight, None), "data and weight")
        return data, offset, weight

    def kernel(self, xp: Any, head: Array, data: Array, offset: Array, weight: Array) -> tuple[Array, ...]:
        to_data, to_offset, _, to_weight = self.backward(xp, head, data, offset, None, weight)
        return to_data, to_offset, to_weight

    def vjp(self, *tensors: Any) -> tuple[Any, ...]:
        raise self.refuse()


def DeformableConvolution(
    data: T | None = None,
    offset: T | None = None,
    weight: T | None = None,
    bias: T | None = None,
    kernel: tuple[int, ...] = (),
    stride: tuple[int, ...] = (),
    dilate: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
    num_filter: int = 0,
    num_group: int = 1,
    num_deformable_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    layout: str | None = None,
    **how: Unpack[How],
) -> T:
    """Convolution of images whose windows are deformed: each point of the kernel is moved by an offset, in every window by another.

    **Shapes** data (N, C, H, W), offset (N, 2 K D, H', W'), weight (M, C / num_group, *kernel), bias (M,), result (N, M, H', W') with
    lengths as in Convolution; K is the number of the kernel's points. **Args** as Convolution, for two axes and layout NCHW only;
    `num_deformable_group`: D; the channels of data are cut into so many groups with offsets of their own: y and x of point k of group d are
    the channels 2 (d K + k) and the next. Values between pixels are interpolated; points outside the image are 0. **Gradient** of all four
    inputs, first derivative only. **Source** MXNet `contrib.DeformableConvolution`; Dai et al., 2017.
    """
    op = DeformableLayer(
        kernel_size=as_shape(kernel), stride=as_shape(stride), dilate=as_shape(dilate), pad=as_shape(pad), num_filter=num_filter,
        num_group=num_group, num_deformable_group=num_deformable_group, workspace=workspace, no_bias=no_bias, layout=layout,
    )  # fmt: skip
    return apply(op, data, offset, weight, *(() if bias is None and op.no_bias else (bias,)), **how)


# ---- offsets and numbers to multiply with


@attributes
class Modulating(Deforming):
    modulated = True

    im2col_step: int = 64

    def check(self, data: Spec, offset: Spec, mask: Spec | None, weight: Spec, bias: Spec | None) -> Shape:
        found = super().check(data, offset, mask, weight, bias)
        if self.im2col_step < 1 or (data.shape[0] > self.im2col_step and data.shape[0] % self.im2col_step):
            raise ShapeError(
                f"{self.name}: data has {data.shape[0]} examples, of which im2col_step={self.im2col_step} is to be a divisor"
            )
        return found


@register("_contrib_ModulatedDeformableConvolution")
class ModulatedLayer(Modulating):
    inputs: ClassVar = ("data", "offset", "mask", "weight", "bias?")
    saves_inputs = (0, 1, 2, 3)

    def infer(self, data: Spec, offset: Spec, mask: Spec, weight: Spec, bias: Spec | None = None) -> Spec:
        return data.with_shape(self.check(data, offset, mask, weight, bias))

    def kernel(self, xp: Any, data: Array, offset: Array, mask: Array, weight: Array, bias: Array | None = None) -> Array:
        return self.forward(xp, data, offset, mask, weight, bias)

    def vjp(self, g: Any, y: Any, data: Any, offset: Any, mask: Any, weight: Any, bias: Any = None) -> tuple[Any, ...]:
        found = apply(ModulatedGradient(**{**self.__dict__, "no_bias": True}), g, data, offset, mask, weight)
        return (*found, *(() if bias is None else (g.sum(axis=(0, 2, 3)),)))


@register("_backward__contrib_ModulatedDeformableConvolution")
class ModulatedGradient(Modulating):
    """The gradients of data, offset, mask and weight."""

    inputs: ClassVar = ("head", "data", "offset", "mask", "weight")

    @property
    def num_outputs(self) -> int:
        return 4

    def fill(self, *inputs: Spec | None) -> tuple[Spec | None, ...]:
        return inputs

    def infer(self, head: Spec, data: Spec, offset: Spec, mask: Spec, weight: Spec) -> tuple[Spec, ...]:
        require_shape(self, "head", head, self.check(data, offset, mask, weight, None), "data and weight")
        return data, offset, mask, weight

    def kernel(self, xp: Any, head: Array, data: Array, offset: Array, mask: Array, weight: Array) -> tuple[Any, ...]:
        return self.backward(xp, head, data, offset, mask, weight)

    def vjp(self, *tensors: Any) -> tuple[Any, ...]:
        raise self.refuse()


def ModulatedDeformableConvolution(
    data: T | None = None,
    offset: T | None = None,
    mask: T | None = None,
    weight: T | None = None,
    bias: T | None = None,
    kernel: tuple[int, ...] = (),
    stride: tuple[int, ...] = (),
    dilate: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
    num_filter: int = 0,
    num_group: int = 1,
    num_deformable_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    im2col_step: int = 64,
    layout: str | None = None,
    **how: Unpack[How],
) -> T:
    """Deformable convolution in which each point of the kernel, in every window, is also multiplied with a number.

    **Shapes** as DeformableConvolution; mask (N, K D, H', W'), the number of point k of group d in channel d K + k. **Args** as
    DeformableConvolution; `im2col_step`: for more examples than that, a divisor of their number; it changes nothing. The image is framed
    with zeros, towards which values are interpolated. **Gradient** of all five inputs, first derivative only; MXNet has it on GPUs.
    **Source** MXNet `contrib.ModulatedDeformableConvolution`; Zhu et al., 2019.
    """
    op = ModulatedLayer(
        kernel_size=as_shape(kernel), stride=as_shape(stride), dilate=as_shape(dilate), pad=as_shape(pad), num_filter=num_filter,
        num_group=num_group, num_deformable_group=num_deformable_group, workspace=workspace, no_bias=no_bias, im2col_step=im2col_step,
        layout=layout,
    )  # fmt: skip
    return apply(op, data, offset, mask, weight, *(() if bias is None and op.no_bias else (bias,)), **how)


__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]
