"""RROIAlign and DeformablePSROIPooling: regions of interest as means of points that lie in no grid of rows and columns.

A rotated region has its points along slanted lines, and in deformable pooling each bin has been moved by an offset that a network learns.
So every point is looked up by itself (points.py), and each bin is the mean of its points. In deformable pooling the offsets have a
gradient, too. Regions with straight grids are in roi_align.py. Book: chapter 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, MXNetError, OutOfRangeError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, attributes, register
from ..rules import require_ndim, same_dtype
from .checks import accurate, require_input, require_shape
from .points import Corners, corners_of, look_up, put_back, slopes, table_of
from .roi import ToData, images_of, require_lengths, require_regions, require_scale, scaled
from .roi_position import group_channels, region_lengths, require_groups
from .shape import as_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack

MOST_POINTS = 1 << 22  # of a region
TOGETHER = 1 << 16  # points to work out at a time


# ---- rotated regions


@attributes
class RotatedAligning(Op):
    """What RROIAlign and its gradient share."""

    on_host = True

    pooled_size: tuple[int, ...]
    spatial_scale: float
    sampling_ratio: int = -1

    def check(self, data: Spec, rois: Spec) -> Shape:
        """The shape of the result. Raises unless the attributes and inputs are good."""
        require_lengths(self, self.pooled_size)
        require_scale(self, self.spatial_scale)
        require_regions(self, data, rois, columns=6)
        return (rois.shape[0], data.shape[1], *self.pooled_size)

    def over_regions(self, xp: Any, rois: Array, shape: Shape, visit: Any) -> None:
        """Call `visit(region, image, corners, points)` for each region; `corners` are those of its points, so many to a bin."""
        images = images_of(xp, self, rois, shape[0]).tolist()
        wide = accurate(xp, rois)
        x, y, width, height = scaled(wide[:, 1:5], self.spatial_scale).T
        lengths = [xp.maximum(length, 1) for length in (height, width)]
        angles = (wide[:, 5] * (math.pi / 180)).astype(wide.dtype).tolist()
        for region, image in enumerate(images):
            grids = [self.grid(xp, length[region], bins) for length, bins in zip(lengths, self.pooled_size)]
            points = grids[0].shape[1] * grids[1].shape[1]
            if points * math.prod(self.pooled_size) > MOST_POINTS:
                raise OutOfRangeError(
                    f"{self.name}: row {region} of rois needs more than {MOST_POINTS} points; give a sampling_ratio"
                )
            down, across = grids[0][:, None, :, None], grids[1][None, :, None, :]
            cosine, sine = (wide.dtype.type(function(angles[region])) for function in (math.cos, math.sin))
            place_x = (across * cosine + down * sine + x[region]).ravel()
            place_y = (down * cosine - across * sine + y[region]).ravel()
            inside = (place_y >= -1) & (place_y <= shape[2]) & (place_x >= -1) & (place_x <= shape[3])
            visit(region, image, corners_of(xp, place_y, place_x, shape[2:], inside), points)

    def grid(self, xp: Any, length: Any, bins: int) -> Array:
        """The places (bins, points) along an axis of the points of bins that have a `length` together, around its middle."""
        number = length.dtype.type
        size = length / number(bins)
        count = self.sampling_ratio if self.sampling_ratio > 0 else math.ceil(min(size, MOST_POINTS))
        points = xp.arange(min(count, MOST_POINTS), dtype=length.dtype)
        return (-length / 2 + xp.arange(bins, dtype=length.dtype) * size)[:, None] + (points + number(0.5)) * size / number(count)


def tables(xp: Any, data: Array) -> Array:
    """Each image (C, H, W) of `data` as a table of pixels."""
    return table_of(xp, data.reshape(*data.shape[:2], -1).transpose(0, 2, 1))


@register("_contrib_RROIAlign")
class RotatedAlign(RotatedAligning):
    inputs: ClassVar = ("data", "rois")
    saves_inputs = (1,)
    saves_outputs = False

    def infer(self, data: Spec, rois: Spec) -> Spec:
        return data.with_shape(self.check(data, rois))

    def kernel(self, xp: Any, data: Array, rois: Array) -> Array:
        pixels = tables(xp, data)
        result = xp.empty((len(rois), *self.pooled_size, data.shape[1]), pixels.dtype)

        def visit(region: int, image: int, corners: Corners, points: int) -> None:
            values = xp.empty((len(corners.down), data.shape[1]), pixels.dtype)
            look_up(xp, pixels[image], corners, values)
            result[region] = values.reshape(*self.pooled_size, points, -1).sum(axis=2) / values.dtype.type(points)

        self.over_regions(xp, rois, data.shape, visit)
        return xp.ascontiguousarray(result.transpose(0, 3, 1, 2)).astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any, rois: Any) -> tuple[Any, ...]:
        return apply(RotatedAlignGradient(**self.__dict__, lengths=data.shape), g, rois), None


@register("_backward_RROIAlign")
class RotatedAlignGradient(RotatedAligning, ToData):
    forward = RotatedAlign

    lengths: tuple[int, ...] = ()

    def kernel(self, xp: Any, head: Array, rois: Array) -> Array:
        batch, channels, height, width = self.lengths
        wide = accurate(xp, head).transpose(0, 2, 3, 1)
        pixels = xp.zeros((batch, height * width + 1, channels), wide.dtype)

        def visit(region: int, image: int, corners: Corners, points: int) -> None:
            share = wide[region].reshape(-1, channels) / wide.dtype.type(points)
            put_back(xp, pixels[image], corners, xp.repeat(share, points, axis=0))

        self.over_regions(xp, rois, self.lengths, visit)
        return xp.ascontiguousarray(pixels[:, :-1].transpose(0, 2, 1)).reshape(self.lengths).astype(head.dtype, copy=False)


def RROIAlign(
    data: T | None = None,
    rois: T | None = None,
    pooled_size: tuple[int, ...] = (),
    spatial_scale: float | None = None,
    sampling_ratio: int = -1,
    **how: Unpack[How],
) -> T:
    """ROIAlign for regions that are rotated: the mean of a grid of points in each bin.

    **Shapes** data (N, C, H, W), rois (R, 6) with rows (number of the image, x, y, width, height, angle), result (R, C, *pooled_size).
    **Args** `rois`: x and y are the middle; the angle is in degrees, counterclockwise as the image is seen; `pooled_size`: height and width
    of the result, in bins; `spatial_scale`: what makes coordinates of the image to those of `data`, 0 to 1; `sampling_ratio`: points to a
    bin along each axis, by the bin's size if not positive. Points outside the image are 0. **Raises** OutOfRangeError for an image that
    there is not, and for numbers that are not finite (when the result is read). **Gradient** of data: to the pixels around each point, by
    their parts; MXNet has none. Of rois: 0. **Source** MXNet `contrib.RROIAlign`; Ma et al., 2018.
    """
    return apply(RotatedAlign(as_shape(pooled_size), spatial_scale, sampling_ratio), data, rois, **how)  # type: ignore[arg-type]


# ---- bins that are moved


@attributes
class DeformablePooling(Op):
    """What DeformablePSROIPooling and its gradient share."""

    on_host = True
    required = ("output_dim", "group_size", "pooled_size")

    spatial_scale: float
    output_dim: int = 0
    group_size: int = 0
    pooled_size: int = 0
    part_size: int = 0
    sample_per_part: int = 1
    trans_std: float = 0.0
    no_trans: bool = False

    @property
    def parts(self) -> int:
        """How many offsets there are along each axis."""
        return self.part_size or self.pooled_size

    def wants(self, name: str) -> bool:
        return name == "trans" and not self.no_trans

    def check(self, data: Spec, rois: Spec, trans: Spec | None) -> Shape:
        """The shape of the result. Raises unless the attributes and inputs are good."""
        require_scale(self, self.spatial_scale)
        require_regions(self, data, rois)
        require_groups(self, data, self.output_dim, self.pooled_size, self.group_size)
        if self.sample_per_part < 1 or self.part_size < 0:
            raise ArgumentError(
                f"{self.name}: sample_per_part={self.sample_per_part}, part_size={self.part_size}, wants 1 or more, and 0 or more"
            )
        if not 0 <= self.trans_std <= 1:
            raise ArgumentError(f"{self.name}: trans_std={self.trans_std}, wants 0 to 1: parts of a region to one of trans")
        require_input(self, "trans", trans, not self.no_trans, "it goes together with no_trans=False")
        if trans is not None:
            same_dtype(self, data, rois, trans)
            require_ndim(self, "trans", trans, 4, axes=("regions", "2 x classes", "parts", "parts"))
            require_shape(self, "trans", trans, (rois.shape[0], trans.shape[1], self.parts, self.parts), f"rois {rois.shape}")
            if not trans.shape[1] or trans.shape[1] % 2 or self.output_dim % (trans.shape[1] // 2):
                raise ShapeError(
                    f"{self.name}: trans has {trans.shape[1]} channels, wants two for each class of offsets, and as many results "
                    f"(output_dim={self.output_dim}) in every class"
                )
        return (rois.shape[0], self.output_dim, self.pooled_size, self.pooled_size)

    def table(self, xp: Any, data: Array, classes: int) -> Array:
        """The data as a table of pixels for each image, group of bins, and class, with a row for the results of the class."""
        batch, _, height, width = data.shape
        groups, each = self.group_size, self.output_dim // classes
        used = data[:, : self.output_dim * groups * groups].reshape(batch, classes, each, groups * groups, height * width)
        pixels = used.transpose(0, 3, 4, 1, 2).reshape(batch, groups * groups, height * width, -1)
        return table_of(xp, pixels).reshape(-1, each)

    def from_table(self, table: Array, target: Array, classes: int) -> None:
        """Write a table of pixels back into the images `target`."""
        batch, _, height, width = target.shape
        groups, each = self.group_size, self.output_dim // classes
        pixels = table.reshape(batch, groups * groups, -1, classes, each)[:, :, :-1].transpose(0, 3, 4, 1, 2)
        target[:, : self.output_dim * groups * groups] = pixels.reshape(batch, -1, height, width)

    def part(self) -> list[int]:
        """The number of the offset that each bin along an axis has."""
        return [int(np.float32(each) / np.float32(self.pooled_size) * np.float32(self.parts)) for each in range(self.pooled_size)]

    def moves(self, xp: Any, trans: Array | None, count: int, dtype: np.dtype[Any]) -> Array:
        """By how much of the region's lengths each bin is moved: (regions, classes, 2, bins, bins), x first."""
        if trans is None:
            return xp.zeros((count, 1, 2, self.pooled_size, self.pooled_size), dtype)
        part = np.array(self.part())
        own = accurate(xp, trans).reshape(count, -1, 2, self.parts, self.parts)[:, :, :, part[:, None], part]
        return own * dtype.type(self.trans_std)

    def points(self, xp: Any, rois: Array, trans: Array | None, shape: Shape) -> tuple[Corners, Array, Array]:
        """The corners, rows of the table, of all points, laid out (regions, classes, bins, bins, samples); how many points of each bin are
        inside; and the lengths of the regions, (regions, 2), x first."""
        wide = accurate(xp, rois)
        images = images_of(xp, self, rois, shape[0])
        count, bins, samples = len(rois), self.pooled_size, self.sample_per_part
        moved = self.moves(xp, trans, count, wide.dtype)
        classes = moved.shape[1]
        half, number, sample = wide.dtype.type(0.5), xp.arange(bins, dtype=wide.dtype), xp.arange(samples, dtype=wide.dtype)
        places, lengths = [], []
        for axis in (1, 0):  # x, then y
            start, length = region_lengths(xp, wide, axis, self.spatial_scale)
            size = length / wide.dtype.type(bins)
            of_bin = number * size[:, None] + (start - half)[:, None]
            of_bin = of_bin[:, None, :] if axis == 1 else of_bin[:, :, None]
            corner = of_bin[:, None] + moved[:, :, 1 - axis] * length[:, None, None, None]
            step = sample * (size / wide.dtype.type(samples))[:, None]
            step = step[:, None, :] if axis == 1 else step[:, :, None]
            place = corner[..., None, None] + step[:, None, None, None]
            places.append(xp.broadcast_to(place, (count, classes, bins, bins, samples, samples)))
            lengths.append(length)
        x, y = places
        height, width = shape[2:]
        inside = (x >= -0.5) & (x <= width - 0.5) & (y >= -0.5) & (y <= height - 0.5)
        corners = corners_of(xp, y, x, shape[2:], inside, on_pixels=True)
        group = group_channels(xp, 1, bins, self.group_size)[0]
        first = (images[:, None, None] * self.group_size**2 + group)[:, None, :, :, None, None] * (height * width + 1)
        kind = xp.arange(classes)[:, None, None, None, None]
        rows = tuple(((first + each) * classes + kind).ravel() for each in corners.rows)
        flat = Corners(rows, corners.down.ravel(), corners.across.ravel())
        return flat, inside.sum(axis=(-1, -2)), xp.stack(lengths, axis=1)

    def in_parts(self, count: int, classes: int) -> list[slice]:
        """Ranges of regions with not too many points each."""
        of_region = classes * (self.pooled_size * self.sample_per_part) ** 2
        step = max(1, TOGETHER // of_region)
        return [slice(start, start + step) for start in range(0, count, step)]


@register("_contrib_DeformablePSROIPooling")
class DeformableMean(DeformablePooling):
    inputs: ClassVar = ("data", "rois", "trans?")
    saves_outputs = False

    def infer(self, data: Spec, rois: Spec, trans: Spec | None = None) -> Spec:
        return data.with_shape(self.check(data, rois, trans))

    def kernel(self, xp: Any, data: Array, rois: Array, trans: Array | None = None) -> Array:
        classes = 1 if trans is None else trans.shape[1] // 2
        bins, samples = self.pooled_size, self.sample_per_part
        table = self.table(xp, data, classes)
        result = xp.empty((len(rois), self.output_dim, bins, bins), table.dtype)
        for part in self.in_parts(len(rois), classes):
            corners, inside, _ = self.points(xp, rois[part], None if trans is None else trans[part], data.shape)
            values = xp.empty((len(corners.down), table.shape[1]), table.dtype)
            look_up(xp, table, corners, values)
            values = values.reshape(*inside.shape, samples**2, -1).sum(axis=-2)
            values /= xp.maximum(inside, 1)[..., None]
            result[part] = values.transpose(0, 1, 4, 2, 3).reshape(len(inside), self.output_dim, bins, bins)
        return result.astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any, rois: Any, trans: Any = None) -> tuple[Any, ...]:
        found = apply(DeformableMeanGradient(**self.__dict__), g, data, rois, trans)
        return (found, None, None) if trans is None else (found[0], None, found[1])


@register("_backward__contrib_DeformablePSROIPooling")
class DeformableMeanGradient(DeformablePooling):
    """From the gradient of the result to those of the data and of the offsets."""

    inputs: ClassVar = ("head", "data", "rois", "trans?")

    @property
    def num_outputs(self) -> int:
        return 1 if self.no_trans else 2

    def infer(self, head: Spec, data: Spec, rois: Spec, trans: Spec | None = None) -> Spec | tuple[Spec, ...]:
        require_shape(self, "head", head, self.check(data, rois, trans), "data and rois")
        return data if trans is None else (data, trans)

    def kernel(self, xp: Any, head: Array, data: Array, rois: Array, trans: Array | None = None) -> Any:
        classes = 1 if trans is None else trans.shape[1] // 2
        table = self.table(xp, data, classes)
        gradient, to_trans = xp.zeros_like(table), None
        if trans is not None:
            to_trans = xp.zeros((len(rois), classes, 2, self.parts, self.parts), table.dtype)
        for part in self.in_parts(len(rois), classes):
            corners, inside, lengths = self.points(xp, rois[part], None if trans is None else trans[part], data.shape)
            shares = accurate(xp, head[part]).reshape(len(inside), classes, -1, *inside.shape[2:]).transpose(0, 1, 3, 4, 2)
            shares = shares / xp.maximum(inside, 1)[..., None].astype(table.dtype)
            shares = xp.repeat(shares.reshape(-1, shares.shape[-1]), self.sample_per_part**2, axis=0)
            put_back(xp, gradient, corners, shares)
            if to_trans is not None:
                self.add_slopes(*slopes(xp, table, corners, shares)[:2], inside.shape, lengths, to_trans[part])
        result = xp.zeros(data.shape, table.dtype)
        self.from_table(gradient, result, classes)
        result = result.astype(data.dtype, copy=False)
        if trans is None or to_trans is None:
            return result
        return result, to_trans.reshape(trans.shape).astype(trans.dtype, copy=False)

    def add_slopes(self, along_y: Array, along_x: Array, shape: Shape, lengths: Array, target: Array) -> None:
        """Add the gradients of the offsets of some regions to `target` (regions, classes, 2, parts, parts), x first."""
        part = self.part()
        for axis, slope in enumerate((along_x, along_y)):
            of_bins = slope.reshape(*shape, -1).sum(axis=-1)
            of_bins *= lengths[:, axis, None, None, None] * lengths.dtype.type(self.trans_std)
            for row, column in np.ndindex(shape[2:]):
                target[:, :, axis, part[row], part[column]] += of_bins[:, :, row, column]

    def vjp(self, *tensors: Any) -> tuple[Any, ...]:
        raise MXNetError("DeformablePSROIPooling has a first derivative only; its gradient cannot be differentiated again")


def DeformablePSROIPooling(
    data: T | None = None,
    rois: T | None = None,
    trans: T | None = None,
    spatial_scale: float | None = None,
    output_dim: int = 0,
    group_size: int = 0,
    pooled_size: int = 0,
    part_size: int = 0,
    sample_per_part: int = 1,
    trans_std: float = 0.0,
    no_trans: bool = False,
    **how: Unpack[How],
) -> T:
    """The mean of points in each bin of each region of interest, where bins have channels of their own and are moved by learned offsets.

    **Shapes** data (N, D G G, H, W), rois (R, 5) with rows (number of the image, left, top, right, bottom), trans (R, 2 K, S, S), result
    (R, D, P, P). **Args** `spatial_scale`: what makes the coordinates of `rois`, which are the image's, to those of `data`, 0 to 1;
    `output_dim`: D; `group_size`: G, the channels of bins as in PSROIPooling; `pooled_size`: P; `part_size`: S, P if it is 0: bin (y, x)
    has the offsets (y S / P, x S / P), rounded down; `trans`: K classes of offsets, x and y of each, for D / K results; `trans_std`: parts
    of the region's lengths to an offset of 1; `sample_per_part`: points to a bin along each axis, from its corner on; `no_trans`: there
    are no offsets. Points outside the image do not count, and a bin without points is 0. **Raises** OutOfRangeError for an image that
    there is not (when the result is read). **Gradient** of data and trans, first derivative only; of rois: 0. **Source** MXNet
    `contrib.DeformablePSROIPooling`; Dai et al., 2017.
    """
    op = DeformableMean(
        spatial_scale,  # type: ignore[arg-type]  # None is refused with an error
        output_dim, group_size, pooled_size, part_size, sample_per_part, trans_std, no_trans,
    )  # fmt: skip
    return apply(op, data, rois, trans, **how)


__all__ = ["DeformablePSROIPooling", "RROIAlign"]
