"""ROIPooling: from each region of interest of a feature map a result of one size, the largest number of each of its bins.

A region is a row (number of the image, left, top, right, bottom), in pixels of the image; `spatial_scale` makes them pixels of the feature
map. It is cut into as many bins as the result has pixels, whole pixels each, so that neighbours may share some. The channels are
made the last axis: what belongs to a pixel then lies together, and a row or column of bins is picked with one index. The columns of
bins go first, then the rows, as in pool.py. Regions that are sampled rather than cut are in roi_align.py. Book: chapter 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, OutOfRangeError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, attributes, register
from ..rules import require_ndim, same_dtype
from .checks import accurate, on_all_cores, require_float, require_shape
from .shape import as_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack

LEAST = float(np.finfo(np.float32).min)  # where the search for the largest begins, in MXNet in every dtype
TOGETHER = 256  # channels at a time
FAR = float(1 << 30)  # pixels: what lies farther off is as far


# ---- regions, of whatever operator


def require_regions(op: Op, data: Spec, rois: Spec, columns: int = 5) -> None:
    """Raise unless `data` is a batch of feature maps and `rois` a table of regions with so many columns."""
    require_float(op, data)
    same_dtype(op, data, rois)
    require_ndim(op, "data", data, 4, axes=("batch", "channels", "height", "width"))
    if 0 in data.shape[2:]:
        raise ShapeError(
            f"{op.name}: data has shape {data.shape}, images without pixels; wants a height and a width of 1 or more"
        )
    require_ndim(op, "rois", rois, 2, axes=("regions", "number of the image and coordinates"))
    require_shape(op, "rois", rois, (rois.shape[0], columns), "a table of the image's number and coordinates")


def require_lengths(op: Op, lengths: Shape, what: str = "pooled_size") -> None:
    """Raise ArgumentError unless `lengths`, the attribute `what`, are a height and a width."""
    if len(lengths) != 2 or min(lengths) < 1:
        raise ArgumentError(f"{op.name}: {what}={lengths}, wants the height and the width of the result, 1 or more each")


def require_scale(op: Op, spatial_scale: float) -> None:
    """Raise ArgumentError unless `spatial_scale` makes pixels of an image to pixels of its feature map."""
    if not 0 <= spatial_scale <= 1:
        raise ArgumentError(
            f"{op.name}: spatial_scale={spatial_scale}, wants 0 to 1: pixels of the feature map to one of the image, such as 1 / 16"
        )


def images_of(xp: Any, op: Op, rois: Array, count: int, outside: bool = False, negative: bool = False) -> Array:
    """The number of each region's image. Raises OutOfRangeError for a number that is not finite, and for an image that there is not.

    `outside`: any is allowed; `negative`: those below 0 are. A number that is no image is -1 in the result.
    """
    if not xp.isfinite(rois).all():
        row = int(xp.flatnonzero(~xp.isfinite(rois).all(axis=1))[0])
        raise OutOfRangeError(f"{op.name}: rois has a number in row {row} that is not finite: {rois[row].tolist()}")
    number = rois[:, 0].clip(-1, FAR).astype(np.int64)
    number[(number < 0) | (rois[:, 0] <= -1)] = -1
    wrong = (number >= count) | ((number < 0) & (not negative))
    if wrong.any() and not outside:
        row = int(xp.flatnonzero(wrong)[0])
        raise OutOfRangeError(
            f"{op.name}: row {row} of rois is about image {rois[row, 0].item():g}, but data has {count}, from 0 on"
        )
    number[number >= count] = -1
    return number


def scaled(numbers: Array, spatial_scale: float) -> Array:
    """Coordinates of an image as those of its feature map. MXNet's attributes are float32, also for float64 data."""
    return numbers * numbers.dtype.type(np.float32(spatial_scale))


def rounded(xp: Any, numbers: Array) -> Array:
    """The nearest whole numbers; halves go away from 0, as in C."""
    size = xp.abs(numbers)
    whole = xp.floor(size)
    return xp.copysign(whole + (size - whole >= 0.5), numbers)


class ToData(Op):
    """What the gradients share of operators that are linear in their data: from that of the result to that of the data.

    A subclass has the attributes of the operator, which is `forward`, and the shape of the data as one more, `lengths`.
    """

    inputs: ClassVar = ("head", "rois")
    saves_inputs = (1,)
    saves_outputs = False
    forward: ClassVar[type[Op]]

    lengths: tuple[int, ...]

    def check(self, data: Spec, rois: Spec) -> Shape:
        """The operator's own rule of shapes."""
        raise NotImplementedError

    def infer(self, head: Spec, rois: Spec) -> Spec:
        data = head.with_shape(self.lengths)
        require_shape(self, "head", head, self.check(data, rois), f"data of shape {self.lengths} with rois {rois.shape}")
        return data

    def vjp(self, g: Any, y: Any, head: Any, rois: Any) -> tuple[Any, ...]:
        given = {key: value for key, value in self.__dict__.items() if key != "lengths"}
        return apply(self.forward(**given), g, rois), None


# ---- the largest of each bin


@attributes
class RegionPooling(Op):
    """What ROIPooling and its gradients share: the attributes, and where the bins are."""

    on_host = True

    pooled_size: tuple[int, ...]
    spatial_scale: float

    def check(self, data: Spec, rois: Spec) -> Shape:
        """The shape of the result. Raises unless the attributes and inputs are good."""
        require_lengths(self, self.pooled_size)
        require_scale(self, self.spatial_scale)
        require_regions(self, data, rois)
        return (rois.shape[0], data.shape[1], *self.pooled_size)

    def bins(self, xp: Any, first: Array, last: Array, count: int, length: int) -> tuple[Array, Array]:
        """Along an axis of the feature map: where each of `count` bins of each region begins and ends, (regions, count) each."""
        dtype = first.dtype.type
        start, end = (rounded(xp, scaled(each, self.spatial_scale)).clip(-FAR, FAR) for each in (first, last))
        size = xp.maximum(end - start + 1, 1) / dtype(count)
        number = xp.arange(count + 1, dtype=first.dtype)
        low = xp.floor(number[:-1] * size[:, None]) + start[:, None]
        high = xp.ceil(number[1:] * size[:, None]) + start[:, None]
        return tuple(edge.clip(0, length).astype(np.int64) for edge in (low, high))

    def over_regions(self, xp: Any, data: Array, rois: Array, visit: Any) -> None:
        """Call `visit(region, image, part, channels, rows, columns)` for each region of an image, and for some channels at a time.

        `image`: its number; `part`: those channels of it, (H, W, channels); `rows` and `columns`: where bins begin and end. Calls for
        other channels may run at the same time; those for the same come in order.
        """
        numbers = images_of(xp, self, rois, len(data), outside=True).tolist()
        wide = accurate(xp, rois)
        rows = self.bins(xp, wide[:, 2], wide[:, 4], self.pooled_size[0], data.shape[2])
        columns = self.bins(xp, wide[:, 1], wide[:, 3], self.pooled_size[1], data.shape[3])

        def some(starts: list[int]) -> None:
            for start in starts:
                channels = slice(start, start + TOGETHER)
                parts = {image: channels_last(xp, data[image, channels]) for image in {*numbers} - {-1}}
                for region, image in enumerate(numbers):
                    if image >= 0:
                        down, across = ((low[region], high[region]) for low, high in (rows, columns))
                        visit(region, image, parts[image], channels, down, across)

        on_all_cores(xp, list(range(0, data.shape[1], TOGETHER)), some)


def channels_last(xp: Any, image: Array) -> Array:
    """A copy of `image` (C, H, W) as (H, W, C), in float32 for float16."""
    return xp.ascontiguousarray(accurate(xp, image).transpose(1, 2, 0))


def picks(xp: Any, edges: tuple[Array, Array]) -> tuple[Array, list[Array]]:
    """Which bins have pixels, and places to pick, one of each of those bins at a time, until all were picked; the last ones again."""
    low, high = edges
    full = xp.flatnonzero(low < high)
    longest = int((high - low)[full].max()) if len(full) else 0
    return full, [xp.minimum(low[full] + number, high[full] - 1) for number in range(longest)]


@register("ROIPooling", "_npx_roi_pooling")
class RegionMaximum(RegionPooling):
    inputs: ClassVar = ("data", "rois")
    saves_outputs = False

    def infer(self, data: Spec, rois: Spec) -> Spec:
        return data.with_shape(self.check(data, rois))

    def kernel(self, xp: Any, data: Array, rois: Array) -> Array:
        result = xp.zeros((len(rois), data.shape[1], *self.pooled_size), data.dtype)

        def visit(region: int, image: int, part: Array, channels: slice, rows: Any, columns: Any) -> None:
            (full_rows, row_picks), (full_columns, column_picks) = picks(xp, rows), picks(xp, columns)
            if not row_picks or not column_picks:
                return
            top, end = int(rows[0][full_rows[0]]), int(rows[1][full_rows[-1]])
            part = part[top:end]
            of_columns = part[:, column_picks[0]]
            for places in column_picks[1:]:
                xp.fmax(of_columns, part[:, places], out=of_columns)
            best = of_columns[row_picks[0] - top]
            for places in row_picks[1:]:
                xp.fmax(best, of_columns[places - top], out=best)
            result[region, channels][:, full_rows[:, None], full_columns] = xp.fmax(best, LEAST).transpose(2, 0, 1)

        self.over_regions(xp, data, rois, visit)
        return result

    def vjp(self, g: Any, y: Any, data: Any, rois: Any) -> tuple[Any, ...]:
        return apply(RegionMaximumGradient(self.pooled_size, self.spatial_scale), g, data, rois), None


@attributes
class RegionPlaces(RegionPooling):
    """What the operators share that know where the largest elements are."""

    inputs: ClassVar = ("head", "data", "rois")
    saves_inputs = (1, 2)
    saves_outputs = False

    def with_places(self, xp: Any, data: Array, rois: Array, use: Any) -> None:
        """Call `use(region, image, bins, places)` for each region: which elements of its result (C, *pooled_size), laid out flat, have a
        largest element, and the place of that in its image (C, H, W), laid out flat."""
        height, width = data.shape[2:]
        count = self.pooled_size[0] * self.pooled_size[1]

        def visit(region: int, image: int, part: Array, channels: slice, rows: Any, columns: Any) -> None:
            (full_rows, row_picks), (full_columns, column_picks) = picks(xp, rows), picks(xp, columns)
            if not row_picks or not column_picks:
                return
            top, end = int(rows[0][full_rows[0]]), int(rows[1][full_rows[-1]])
            # In each row the first largest element of each column of bins, and then the first row with the largest of those.
            of_columns, column = first_largest(xp, part[top:end].swapaxes(0, 1), column_picks)
            best, row = first_largest(xp, of_columns.swapaxes(0, 1), [places - top for places in row_picks])
            row = row + row_picks[0][:, None, None]
            channel, bin_column = xp.arange(part.shape[2]), xp.arange(len(full_columns))[:, None]
            column = column[bin_column, row - top, channel] + column_picks[0][:, None]
            bins = (full_rows[:, None] * self.pooled_size[1] + full_columns)[:, :, None] + (channel + channels.start) * count
            places = row * width + column + (channel + channels.start) * (height * width)
            there = best > LEAST
            use(region, image, *((bins.ravel(), places.ravel()) if there.all() else (bins[there], places[there])))

        self.over_regions(xp, data, rois, visit)


def first_largest(xp: Any, lines: Array, picks: list[Array]) -> tuple[Array, Array]:
    """Of each bin of lines the largest elements, and in which line of the bin the first of them is: (bins, ...) both.

    `picks`: the first lines of all bins, the second ones, and so on.
    """
    best = lines[picks[0]]
    for places in picks[1:]:
        xp.fmax(best, lines[places], out=best)
    xp.fmax(best, LEAST, out=best)
    # A number for each line that is as large, the highest for the first: to keep the highest is much faster than to write under a mask.
    count = len(picks)
    kind = np.uint8 if count < 256 else np.uint32
    highest = xp.zeros(best.shape, kind)
    for number, places in enumerate(picks):
        xp.maximum(highest, (lines[places] == best) * kind(count - number), out=highest)
    return best, count - xp.maximum(highest, 1).astype(np.int64)


@register("_backward_ROIPooling")
class RegionMaximumGradient(RegionPlaces):
    """From the gradient of the result to that of the data: the first largest element of each bin gets it."""

    def infer(self, head: Spec, data: Spec, rois: Spec) -> Spec:
        require_shape(self, "head", head, self.check(data, rois), "data and rois")
        return data

    def kernel(self, xp: Any, head: Array, data: Array, rois: Array) -> Array:
        wide = accurate(xp, head)
        result = xp.zeros(data.shape, wide.dtype)
        flat, heads = (each.reshape(len(each), math.prod(each.shape[1:])) for each in (result, wide))

        def use(region: int, image: int, bins: Array, places: Array) -> None:
            xp.add.at(flat[image], places, heads[region][bins])

        self.with_places(xp, data, rois, use)
        return result.astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, head: Any, data: Any, rois: Any) -> tuple[Any, ...]:
        return apply(RegionMaximumChosen(self.pooled_size, self.spatial_scale), g, data, rois), None, None


@register("_backward_ROIPooling_chosen")
class RegionMaximumChosen(RegionPlaces):
    """Of an array like the data, the elements at the places of the largest: the transpose of RegionMaximumGradient."""

    def infer(self, head: Spec, data: Spec, rois: Spec) -> Spec:
        require_shape(self, "head", head, data.shape, "data")
        return data.with_shape(self.check(data, rois))

    def kernel(self, xp: Any, head: Array, data: Array, rois: Array) -> Array:
        result = xp.zeros((len(rois), data.shape[1], *self.pooled_size), data.dtype)
        flat, heads = (each.reshape(len(each), math.prod(each.shape[1:])) for each in (result, head))

        def use(region: int, image: int, bins: Array, places: Array) -> None:
            flat[region][bins] = heads[image][places]

        self.with_places(xp, data, rois, use)
        return result

    def vjp(self, g: Any, y: Any, head: Any, data: Any, rois: Any) -> tuple[Any, ...]:
        return apply(RegionMaximumGradient(self.pooled_size, self.spatial_scale), g, data, rois), None, None


def ROIPooling(
    data: T | None = None,
    rois: T | None = None,
    pooled_size: tuple[int, ...] = (),
    spatial_scale: float | None = None,
    **how: Unpack[How],
) -> T:
    """The largest number in each bin of each region of interest, so that regions of all sizes give results of one.

    **Shapes** data (N, C, H, W), rois (R, 5) with rows (number of the image, left, top, right, bottom), result (R, C, *pooled_size).
    **Args** `pooled_size`: height and width of the result, in bins; `spatial_scale`: what makes the coordinates of `rois`, which are the
    image's, to those of `data`, 0 to 1; the products are rounded, and the last row and column belong to the region. A bin without pixels,
    and a region of an image that there is not, gives 0. **Raises** OutOfRangeError for coordinates that are not finite (when the result is
    read). **Gradient** of data: to the first element that is its bin's largest; of rois: 0. **Source** MXNet `ROIPooling`; Girshick, 2015.

    **Example**

    >>> from minimx import nd
    >>> x = nd.arange(16).reshape((1, 1, 4, 4))
    >>> nd.ROIPooling(x, nd.array([[0, 0, 0, 2, 2]]), (2, 2), 1.0).asnumpy().tolist()
    [[[[5.0, 6.0], [9.0, 10.0]]]]
    """
    return apply(RegionMaximum(as_shape(pooled_size), spatial_scale), data, rois, **how)  # type: ignore[arg-type]  # None is refused


__all__ = ["ROIPooling"]
