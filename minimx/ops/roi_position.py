"""PSROIPooling: position-sensitive pooling, the mean of the pixels in each bin of each region, where bins have channels of their own.

A fully convolutional detector says in one channel how much a pixel looks like the upper left of a cat, in another how much like its
middle. A bin of a region looks at the channels of its place. The weight of a pixel is one divided by the number of them in its bin
(roi_weights.py); the bins that roi_points.py moves have their channels in the same way. Book: chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Kind, Op, Shape, Spec, T, apply, attributes, register
from .checks import accurate
from .roi import ToData, images_of, require_regions, require_scale, rounded, scaled
from .roi_weights import Weights, pooled_by_position, spread_by_position, weighed

if TYPE_CHECKING:
    from typing_extensions import Unpack


@attributes
class PositionPooling(Op):
    """What PSROIPooling and its gradient share."""

    on_host = True
    kind = Kind.GEMM
    required = ("output_dim", "pooled_size")

    spatial_scale: float
    output_dim: int = 0
    pooled_size: int = 0
    group_size: int = 0

    @property
    def groups(self) -> int:
        """How many different channels there are for bins along each axis."""
        return self.group_size or self.pooled_size

    def check(self, data: Spec, rois: Spec) -> Shape:
        """The shape of the result. Raises unless the attributes and inputs are good."""
        require_scale(self, self.spatial_scale)
        require_regions(self, data, rois)
        require_groups(self, data, self.output_dim, self.pooled_size, self.groups)
        return (rois.shape[0], self.output_dim, self.pooled_size, self.pooled_size)

    def weights(self, xp: Any, rois: Array, shape: Shape) -> tuple[Array, Weights, Weights, Array]:
        """The image of each region, its weights along both axes, and the channels of the bins."""
        images = images_of(xp, self, rois, shape[0])
        wide = accurate(xp, rois)
        rows, columns = (
            self.mean_weights(xp, *region_lengths(xp, wide, axis, self.spatial_scale), shape[2 + axis]) for axis in (0, 1)
        )
        return images, rows, columns, group_channels(xp, self.output_dim, self.pooled_size, self.groups)

    def mean_weights(self, xp: Any, start: Array, length: Array, pixels: int) -> Weights:
        """One divided by the number of pixels of a bin, for its pixels."""
        dtype = start.dtype.type
        size = (length / dtype(self.pooled_size))[:, None]
        number = xp.arange(self.pooled_size + 1, dtype=start.dtype)
        low = xp.floor(number[:-1] * size + start[:, None]).clip(0, pixels)
        high = xp.ceil(number[1:] * size + start[:, None]).clip(0, pixels)
        pixel = xp.arange(pixels)
        member = (pixel >= low[:, :, None]) & (pixel < high[:, :, None])
        return weighed(xp, (member / xp.maximum(high - low, 1)[:, :, None]).astype(start.dtype, copy=False))


def require_groups(op: Op, data: Spec, results: int, bins: int, groups: int) -> None:
    """Raise unless there are channels for `results` in each of `groups` x `groups` bins."""
    for what, value in (("output_dim", results), ("pooled_size", bins), ("group_size", groups)):
        if value < 1:
            raise ArgumentError(f"{op.name}: {what}={value}, wants 1 or more")
    if data.shape[1] < results * groups * groups:
        raise ShapeError(
            f"{op.name}: data has {data.shape[1]} channels, output_dim={results} in {groups} x {groups} groups of bins needs "
            f"{results * groups * groups}"
        )


def region_lengths(xp: Any, rois: Array, axis: int, spatial_scale: float) -> tuple[Array, Array]:
    """Where regions begin along an axis, in pixels of the feature map, and how long they are; the last pixel belongs to them."""
    start = scaled(rounded(xp, rois[:, 2 - axis]), spatial_scale)
    end = scaled(rounded(xp, rois[:, 4 - axis]) + 1, spatial_scale)
    return start, xp.maximum(end - start, rois.dtype.type(0.1))


def group_channels(xp: Any, results: int, bins: int, groups: int) -> Array:
    """Which channel each bin of each result has: (results, bins, bins)."""
    group = xp.arange(bins) * groups // bins
    return (xp.arange(results)[:, None, None] * groups + group[:, None]) * groups + group


@register("_contrib_PSROIPooling")
class PositionMean(PositionPooling):
    inputs: ClassVar = ("data", "rois")
    saves_inputs = (1,)
    saves_outputs = False

    def infer(self, data: Spec, rois: Spec) -> Spec:
        return data.with_shape(self.check(data, rois))

    def kernel(self, xp: Any, data: Array, rois: Array) -> Array:
        return pooled_by_position(xp, data, *self.weights(xp, rois, data.shape)).astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any, rois: Any) -> tuple[Any, ...]:
        return apply(PositionMeanGradient(**self.__dict__, lengths=data.shape), g, rois), None


@register("_backward__contrib_PSROIPooling")
class PositionMeanGradient(PositionPooling, ToData):
    forward = PositionMean

    lengths: tuple[int, ...] = ()

    def kernel(self, xp: Any, head: Array, rois: Array) -> Array:
        return spread_by_position(xp, head, *self.weights(xp, rois, self.lengths), self.lengths).astype(head.dtype, copy=False)


def PSROIPooling(
    data: T | None = None,
    rois: T | None = None,
    spatial_scale: float | None = None,
    output_dim: int = 0,
    pooled_size: int = 0,
    group_size: int = 0,
    **how: Unpack[How],
) -> T:
    """The mean of the pixels in each bin of each region of interest, where each bin has channels of its own.

    **Shapes** data (N, D G G, H, W), rois (R, 5) with rows (number of the image, left, top, right, bottom), result (R, D, P, P). **Args**
    `spatial_scale`: what makes the coordinates of `rois`, which are the image's, to those of `data`, 0 to 1; `output_dim`: D;
    `pooled_size`: P; `group_size`: G, P if it is 0: bin (y, x) of result d has the channel (d G + y G / P) G + x G / P, rounded down. A
    bin without pixels is 0; a pixel that is not finite spoils its channel. **Raises** OutOfRangeError for an image that there is not
    (when the result is read). **Gradient** of data: to each pixel of a bin its share; of rois: 0. **Source** MXNet
    `contrib.PSROIPooling`; Dai et al., 2016.
    """
    op = PositionMean(spatial_scale, output_dim, pooled_size, group_size)  # type: ignore[arg-type]  # None is refused with an error
    return apply(op, data, rois, **how)


__all__ = ["PSROIPooling"]
