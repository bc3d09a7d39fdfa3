"""ROIAlign: from each region of interest of a feature map a result of one size, the mean of a grid of points in each of its bins.

A region is not rounded to whole pixels, as in ROIPooling (roi.py): the values of points are interpolated between the four pixels around.
Points in rows and columns make weights of rows and columns, by which regions are computed (roi_weights.py). Points of regions that lie
askew are in roi_points.py. Book: chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, OutOfRangeError, ShapeError
from ..op import Array, How, Kind, Op, Shape, Spec, T, apply, attributes, register
from .checks import accurate
from .roi import ToData, images_of, require_lengths, require_regions, require_scale, scaled
from .roi_weights import Weights, pooled, pooled_by_position, spread, spread_by_position, weighed
from .shape import as_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack

MOST_POINTS = 1 << 16  # along one axis of a bin
TOGETHER = 1 << 20  # points to weigh at a time


# ---- points on a grid


def grid_weights(xp: Any, start: Array, length: Array, bins: int, ratio: int, pixels: int) -> Weights:
    """The weights along an axis of `pixels` of the points in each of `bins` that begin at `start` and are `length` long together.

    `ratio`: points to a bin; as many as the bin has pixels, begun ones too, if it is not positive.
    """
    dtype = start.dtype.type
    size = length / dtype(bins)
    points = xp.full(len(start), ratio) if ratio > 0 else xp.ceil(size).clip(0, MOST_POINTS).astype(np.int64)
    matrix = xp.zeros((len(start), bins, pixels + 1), start.dtype)
    step = max(1, TOGETHER // max(bins * int(points.max(initial=0)), 1))
    for first in range(0, len(start), step):
        part = slice(first, first + step)
        add_grid(xp, matrix[part], start[part], size[part], points[part])
    return weighed(xp, matrix[:, :, :pixels])


def add_grid(xp: Any, matrix: Array, start: Array, size: Array, points: Array) -> None:
    """Add the weights of the points of bins, of `size`, to `matrix` (regions, bins, pixels + 1)."""
    regions, bins, pixels = matrix.shape[0], matrix.shape[1], matrix.shape[2] - 1
    number, count = xp.arange(int(points.max(initial=0))), points.astype(start.dtype)[:, None]
    corner = start[:, None] + xp.arange(bins, dtype=start.dtype) * size[:, None]
    within = (number + 0.5).astype(start.dtype) * size[:, None] / count
    place = corner[:, :, None] + within[:, None]
    weight = ((number < points[:, None])[:, None] & (place >= -1) & (place <= pixels)) / count[:, :, None]
    low, share = between(xp, place, pixels)
    line = (xp.arange(regions * bins) * (pixels + 1)).reshape(regions, bins, 1)
    for each, part in ((low, 1 - share), (low + 1, share)):
        xp.add.at(matrix.reshape(-1), (line + each).ravel(), (part * weight).ravel())


def between(xp: Any, place: Array, pixels: int) -> tuple[Array, Array]:
    """Between which pixels `place` lies: the lower one, and how much the next one counts. Beyond the edges the edge counts alone."""
    inner = place.clip(0, max(pixels - 1, 0))
    low = inner.astype(np.int64)
    return low, inner - low.astype(inner.dtype)


@attributes
class RegionAligning(Op):
    """What ROIAlign and its gradient share."""

    on_host = True
    kind = Kind.GEMM

    pooled_size: tuple[int, ...]
    spatial_scale: float
    sample_ratio: int = -1
    position_sensitive: bool = False
    aligned: bool = False

    def check(self, data: Spec, rois: Spec) -> Shape:
        """The shape of the result. Raises unless the attributes and inputs are good."""
        require_lengths(self, self.pooled_size)
        require_scale(self, self.spatial_scale)
        require_regions(self, data, rois)
        if self.sample_ratio > MOST_POINTS:
            raise ArgumentError(f"{self.name}: sample_ratio={self.sample_ratio}, wants {MOST_POINTS} at most")
        bins = self.pooled_size[0] * self.pooled_size[1]
        if self.position_sensitive and data.shape[1] % bins:
            raise ShapeError(
                f"{self.name}: data has {data.shape[1]} channels, which {bins} bins, each with its own, do not divide"
            )
        channels = data.shape[1] // bins if self.position_sensitive else data.shape[1]
        return (rois.shape[0], channels, *self.pooled_size)

    def weights(self, xp: Any, rois: Array, shape: Shape) -> tuple[Array, Weights, Weights]:
        """The image of each region, and its weights along both axes."""
        images = images_of(xp, self, rois, shape[0], negative=True)
        wide = accurate(xp, rois)
        left, top, right, bottom = (scaled(wide[:, 1:], self.spatial_scale) - wide.dtype.type(0.5 if self.aligned else 0)).T
        lengths = [bottom - top, right - left]
        if not self.aligned:
            lengths = [xp.maximum(length, 1) for length in lengths]
        elif (xp.minimum(*lengths)[images >= 0] <= 0).any():
            raise OutOfRangeError(f"{self.name}: rois has a region without height or width, which aligned=True does not allow")
        if (
            self.sample_ratio <= 0
            and max(float(each.max(initial=0)) / n for each, n in zip(lengths, self.pooled_size)) > MOST_POINTS
        ):
            raise OutOfRangeError(
                f"{self.name}: rois has a region of more than {MOST_POINTS} pixels to a bin; give a sample_ratio"
            )
        rows, columns = (
            grid_weights(xp, start, length, bins, self.sample_ratio, pixels)
            for start, length, bins, pixels in zip((top, left), lengths, self.pooled_size, shape[2:])
        )
        return images, rows, columns

    def channels(self, xp: Any, count: int) -> Array:
        """Which channels the bins of a position-sensitive result have, of `count`."""
        return xp.arange(count).reshape(-1, *self.pooled_size)


@register("_contrib_ROIAlign")
class RegionAlign(RegionAligning):
    inputs: ClassVar = ("data", "rois")
    saves_inputs = (1,)
    saves_outputs = False

    def infer(self, data: Spec, rois: Spec) -> Spec:
        return data.with_shape(self.check(data, rois))

    def kernel(self, xp: Any, data: Array, rois: Array) -> Array:
        where = self.weights(xp, rois, data.shape)
        if self.position_sensitive:
            result = pooled_by_position(xp, data, *where, self.channels(xp, data.shape[1]))
        else:
            result = pooled(xp, data, *where)
        return result.astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any, rois: Any) -> tuple[Any, ...]:
        return apply(RegionAlignGradient(**self.__dict__, lengths=data.shape), g, rois), None


@register("_backward_ROIAlign")
class RegionAlignGradient(RegionAligning, ToData):
    forward = RegionAlign

    lengths: tuple[int, ...] = ()

    def kernel(self, xp: Any, head: Array, rois: Array) -> Array:
        where = self.weights(xp, rois, self.lengths)
        if self.position_sensitive:
            result = spread_by_position(xp, head, *where, self.channels(xp, self.lengths[1]), self.lengths)
        else:
            result = spread(xp, head, *where, self.lengths)
        return result.astype(head.dtype, copy=False)


def ROIAlign(
    data: T | None = None,
    rois: T | None = None,
    pooled_size: tuple[int, ...] = (),
    spatial_scale: float | None = None,
    sample_ratio: int = -1,
    position_sensitive: bool = False,
    aligned: bool = False,
    **how: Unpack[How],
) -> T:
    """The mean of a grid of points in each bin of each region of interest; points between pixels are interpolated, nothing is rounded.

    **Shapes** data (N, C, H, W), rois (R, 5) with rows (number of the image, left, top, right, bottom), result (R, C, *pooled_size).
    **Args** `pooled_size`: height and width of the result, in bins; `spatial_scale`: what makes the coordinates of `rois`, which are the
    image's, to those of `data`, 0 to 1; `sample_ratio`: points to a bin along each axis, by the bin's size if not positive;
    `position_sensitive`: each bin has channels of its own, so that data has (C * bins) and channel c of bin b is c * bins + b; `aligned`:
    coordinates are those of the pixels' corners rather than middles, half a pixel off, and regions may be smaller than a pixel. A region
    of an image below 0 gives 0, as do points outside the image; a pixel that is not finite spoils all bins of its region. **Raises**
    OutOfRangeError for an image that there is not, coordinates that are not finite, and with `aligned` a region without area (when the
    result is read). **Gradient** of data: the transposed weights; of rois: 0. **Source** MXNet `contrib.ROIAlign`; He et al., 2017.
    """
    op = RegionAlign(as_shape(pooled_size), spatial_scale, sample_ratio, position_sensitive, aligned)  # type: ignore[arg-type]
    return apply(op, data, rois, **how)


__all__ = ["ROIAlign"]
