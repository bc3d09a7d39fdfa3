"""Correlation: how alike the patches of two images are, for each place in the first and each displacement in the second.

It is what a network for optical flow compares two frames with. For a displacement the second image is shifted, both are multiplied (or
their distance is taken), and the products are summed over channels and over the patch, all places at once. Products are linear in either
image, so their gradients are of the same kind: a sum over displacements of the head, spread over the patch, times the other image.
Fischer et al., 2015.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, attributes, register
from ..rules import require_ndim, same_dtype, same_shape, unified
from .checks import accurate, require_float, require_shape
from .windows import axes_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


@attributes
class PatchComparison(Op):
    """The attributes, and the geometry in the images with their padding."""

    kernel_size: int = 1
    max_displacement: int = 1
    stride1: int = 1
    stride2: int = 1
    pad_size: int = 0
    is_multiply: bool = True

    def shared(self) -> dict[str, Any]:
        """The attributes, for an operator beside this one."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(PatchComparison)}

    @property
    def reach(self) -> int:
        """How many displacements there are in one direction of an axis."""
        return self.max_displacement // self.stride2

    def places(self, lengths: Shape) -> Shape:
        """How many places there are along each axis of images of these lengths."""
        border = 2 * (self.max_displacement + self.kernel_size // 2)
        return tuple(-(-(length + 2 * self.pad_size - border) // self.stride1) for length in lengths)

    def check(self) -> None:
        """Raise ArgumentError unless the attributes are good."""
        least = {"kernel_size": 1, "max_displacement": 0, "stride1": 1, "stride2": 1, "pad_size": 0}
        for name, value in least.items():
            if getattr(self, name) < value:
                raise ArgumentError(f"{self.name}: {name}={getattr(self, name)} must not be less than {value}")
        if self.kernel_size % 2 == 0:
            raise ArgumentError(f"{self.name}: kernel_size={self.kernel_size} must be odd, so that a patch has a middle")

    def shifts(self) -> Iterator[tuple[int, int, int]]:
        """(number, rows, columns) of each displacement."""
        width = 2 * self.reach + 1
        for number in range(width * width):
            rows, columns = divmod(number, width)
            yield number, (rows - self.reach) * self.stride2, (columns - self.reach) * self.stride2

    def span(self, lengths: Shape) -> tuple[int, int]:
        """Rows and columns of all patches of the first image together."""
        rows, columns = ((count - 1) * self.stride1 + self.kernel_size for count in self.places(lengths))
        return rows, columns

    def under(self, image: Array, lengths: Shape, rows: int = 0, columns: int = 0) -> Array:
        """What all patches together cover in a framed image, shifted by so many rows and columns: a view."""
        height, width = self.span(lengths)
        top, left = self.max_displacement + rows, self.max_displacement + columns
        return image[:, :, top : top + height, left : left + width]

    def framed(self, xp: Any, image: Array) -> Array:
        """`image` within a frame of zeros."""
        pad = self.pad_size
        return xp.pad(accurate(xp, image), [(0, 0), (0, 0), (pad, pad), (pad, pad)])

    def unframed(self, image: Array) -> Array:
        """A framed image without its frame."""
        return image[:, :, self.pad_size : image.shape[2] - self.pad_size, self.pad_size : image.shape[3] - self.pad_size]

    def summed(self, xp: Any, pixels: Array, lengths: Shape) -> Array:
        """The sums (N, places) of pixels (N, rows, columns) under each patch."""
        for axis, count in zip((1, 2), self.places(lengths)):
            starts = (slice(point, point + (count - 1) * self.stride1 + 1, self.stride1) for point in range(self.kernel_size))
            parts = [pixels[(*[slice(None)] * axis, start)] for start in starts]
            pixels = sum(parts[1:], parts[0])
        return pixels

    def spread(self, xp: Any, head: Array, lengths: Shape) -> Array:
        """The transpose of `summed`: each number of `head` (N, places) added to the pixels under its patch."""
        for axis in (2, 1):
            length = self.span(lengths)[axis - 1]
            pixels = xp.zeros((*head.shape[:axis], length, *head.shape[axis + 1 :]), head.dtype)
            for point in range(self.kernel_size):
                stop = point + (head.shape[axis] - 1) * self.stride1 + 1
                pixels[(*[slice(None)] * axis, slice(point, stop, self.stride1))] += head
            head = pixels
        return head

    def share(self, image: Array) -> float:
        """What the sum over a patch is divided by."""
        return image.dtype.type(self.kernel_size * self.kernel_size * image.shape[1])


@register("Correlation")
class PatchCorrelation(PatchComparison):
    inputs: ClassVar = ("data1", "data2")
    saves_outputs: ClassVar = False

    def infer(self, data1: Spec, data2: Spec) -> Spec:
        self.check()
        for what, spec in (("data1", data1), ("data2", data2)):
            require_float(self, spec, what)
            require_ndim(self, what, spec, 4, axes=axes_of(2))
        dtype, shape = same_dtype(self, data1, data2), same_shape(self, data1, data2)
        counts = self.places(shape[2:])
        if min(counts) < 1 or not shape[1]:
            raise ShapeError(
                f"{self.name}: data of shape {shape} with pad_size={self.pad_size} has no place whose patch of kernel_size="
                f"{self.kernel_size} can move by max_displacement={self.max_displacement}"
            )
        return Spec.of((shape[0], (2 * self.reach + 1) ** 2, *counts), dtype)

    def fill(self, data1: Spec | None, data2: Spec | None) -> tuple[Spec | None, ...]:
        return unified(data1, data2)

    def kernel(self, xp: Any, data1: Array, data2: Array) -> Array:
        lengths = data1.shape[2:]
        first, second = self.under(self.framed(xp, data1), lengths), self.framed(xp, data2)
        counts = self.places(lengths)
        result = xp.empty((len(data1), (2 * self.reach + 1) ** 2, *counts), second.dtype)
        for number, rows, columns in self.shifts():
            other = self.under(second, lengths, rows, columns)
            if self.is_multiply:
                pixels = xp.einsum("nchw,nchw->nhw", first, other)
            else:
                pixels = xp.abs(first - other).sum(axis=1)
            result[:, number] = self.summed(xp, pixels, lengths)
        result /= self.share(second)
        return result.astype(data1.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data1: Any, data2: Any) -> tuple[Any, ...]:
        given, size = self.shared(), data1.shape[2:]
        if self.is_multiply:
            return (
                apply(CorrelationBackward(**given, height=size[0], width=size[1]), g, data2),
                apply(CorrelationBackward(**given, height=size[0], width=size[1], of_second=True), g, data1),
            )
        return tuple(apply(DistanceBackward(**given), g, data1, data2))


@register("_backward_Correlation")
class CorrelationBackward(PatchComparison):
    """The gradient of products to one of the images, from that of the results and the other image."""

    inputs: ClassVar = ("head", "other")
    saves_outputs: ClassVar = False

    height: int = 0
    width: int = 0
    of_second: bool = False

    def infer(self, head: Spec, other: Spec) -> Spec:
        same_dtype(self, head, other)
        require_shape(self, "other", other, (*other.shape[:2], self.height, self.width), "the image that the gradient is for")
        return other

    def kernel(self, xp: Any, head: Array, other: Array) -> Array:
        lengths = other.shape[2:]
        image, heads = self.framed(xp, other), accurate(xp, head)
        result = xp.zeros_like(image)
        for number, rows, columns in self.shifts():
            pixels = self.spread(xp, heads[:, number], lengths)[:, None]
            if self.of_second:
                self.under(result, lengths, rows, columns)[...] += pixels * self.under(image, lengths)
            else:
                self.under(result, lengths)[...] += pixels * self.under(image, lengths, rows, columns)
        result /= self.share(result)
        return xp.ascontiguousarray(self.unframed(result)).astype(other.dtype, copy=False)

    def vjp(self, g: Any, y: Any, head: Any, other: Any) -> tuple[Any, ...]:
        given = self.shared()
        images = (other, g) if self.of_second else (g, other)
        back = CorrelationBackward(**given, height=self.height, width=self.width, of_second=not self.of_second)
        return apply(PatchCorrelation(**given), *images), apply(back, head, g)


@register("_backward_Correlation_distance")
class DistanceBackward(PatchComparison):
    """The gradients of distances to both images: the sign of the difference, which is 1 where there is none, as in MXNet."""

    inputs: ClassVar = ("head", "data1", "data2")

    @property
    def num_outputs(self) -> int:
        return 2

    def infer(self, head: Spec, data1: Spec, data2: Spec) -> tuple[Spec, ...]:
        same_dtype(self, head, data1, data2)
        return data1, data2

    def kernel(self, xp: Any, head: Array, data1: Array, data2: Array) -> tuple[Array, ...]:
        lengths = data1.shape[2:]
        first, second, heads = self.framed(xp, data1), self.framed(xp, data2), accurate(xp, head)
        results = xp.zeros_like(first), xp.zeros_like(second)
        one = heads.dtype.type(1)
        for number, rows, columns in self.shifts():
            pixels = self.spread(xp, heads[:, number], lengths)[:, None]
            nearer = self.under(first, lengths) < self.under(second, lengths, rows, columns)
            slopes = xp.where(nearer, -one, one) * pixels
            self.under(results[0], lengths)[...] += slopes
            self.under(results[1], lengths, rows, columns)[...] -= slopes
        share = self.share(first)
        whole = (xp.ascontiguousarray(self.unframed(result)) / share for result in results)
        return tuple(result.astype(data1.dtype, copy=False) for result in whole)

    def vjp(self, g: Any, y: Any, head: Any, data1: Any, data2: Any) -> tuple[Any, ...]:
        pair = (data.zeros_like() if part is None else part for part, data in zip(g, (data1, data2)))
        return apply(DistanceSlope(**self.shared()), *pair, data1, data2), None, None


@register("_backward_Correlation_slope")
class DistanceSlope(PatchComparison):
    """How distances grow when both images change in the directions `change1` and `change2`: the transpose of DistanceBackward."""

    inputs: ClassVar = ("change1", "change2", "data1", "data2")
    saves_inputs: ClassVar = (2, 3)
    saves_outputs: ClassVar = False

    def infer(self, change1: Spec, change2: Spec, data1: Spec, data2: Spec) -> Spec:
        dtype, shape = same_dtype(self, change1, change2, data1, data2), data1.shape
        return Spec.of((shape[0], (2 * self.reach + 1) ** 2, *self.places(shape[2:])), dtype)

    def kernel(self, xp: Any, change1: Array, change2: Array, data1: Array, data2: Array) -> Array:
        lengths = data1.shape[2:]
        second, change = self.framed(xp, data2), self.framed(xp, change2)
        first, own = (self.under(self.framed(xp, image), lengths) for image in (data1, change1))
        result = xp.empty((len(data1), (2 * self.reach + 1) ** 2, *self.places(lengths)), second.dtype)
        for number, rows, columns in self.shifts():
            grown = own - self.under(change, lengths, rows, columns)
            nearer = first < self.under(second, lengths, rows, columns)
            result[:, number] = self.summed(xp, xp.where(nearer, -grown, grown).sum(axis=1), lengths)
        result /= self.share(second)
        return result.astype(data1.dtype, copy=False)

    def vjp(self, g: Any, y: Any, change1: Any, change2: Any, data1: Any, data2: Any) -> tuple[Any, ...]:
        return *apply(DistanceBackward(**self.shared()), g, data1, data2), None, None


def Correlation(
    data1: T,
    data2: T,
    kernel_size: int = 1,
    max_displacement: int = 1,
    stride1: int = 1,
    stride2: int = 1,
    pad_size: int = 0,
    is_multiply: bool = True,
    **how: Unpack[How],
) -> T:
    """The mean of the products of two patches, for patches of the first image and their neighbourhoods in the second.

    **Shapes** data1, data2 (N, C, H, W), result (N, D D, h, w) with `D = 2 (max_displacement // stride2) + 1` displacements along each
    axis, and `(length + 2 pad_size - 2 max_displacement - kernel_size + 1) / stride1` places, rounded up. **Args** `kernel_size`: the
    length of a patch, odd; `stride1`: from place to place; `stride2`: from displacement to displacement; `pad_size`: zeros around both
    images; `is_multiply`: False for the mean of absolute differences. **Raises** ShapeError if no patch can move so far. **Gradient** of
    products: g times the other patch; of differences: g times their signs. **Source** MXNet `Correlation`.
    """
    op = PatchCorrelation(kernel_size, max_displacement, stride1, stride2, pad_size, is_multiply)
    return apply(op, data1, data2, **how)


__all__ = ["Correlation"]
