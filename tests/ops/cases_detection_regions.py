"""Rows of ops/roi.py and ops/roi_align.py, and of RROIAlign in ops/roi_points.py.

The oracles go bin by bin and point by point. Gradients are compared with the oracle's slopes where the operator is linear (its gradient
is then that of the oracle for unit vectors), and with finite differences by the table's own checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, OutOfRangeError, RankError, ShapeError
from minimx.op import apply
from minimx.ops.roi import RegionMaximumChosen, RegionMaximumGradient, ROIPooling
from minimx.ops.roi_align import RegionAlignGradient, ROIAlign
from minimx.ops.roi_points import RotatedAlignGradient, RROIAlign

from .cases_detection_boxes import given
from .harness import Bad, Case, Maker, distinct, normal

# ---- makers


def regions(count: int, images: int, high: float = 40, low: float = -8, fine: float = 0.25) -> Maker:
    """Regions in and around images of 32 pixels: multiples of `fine`, and a little more, and numbers of images and a half, so that small
    steps round to the same."""

    def make(rng: np.random.Generator) -> np.ndarray:
        corners = np.sort(rng.uniform(low, high, (count, 2, 2)), axis=1).reshape(count, 4)
        return np.concatenate([rng.integers(0, images, (count, 1)) + 0.5, np.round(corners / fine) * fine + 0.0625], axis=1)

    return make


def fixed(rois: Any) -> Any:
    """What is left of regions, arrays or graphs, when small steps are taken out: operators have no gradient for them."""
    return (rois * 4).round() / 4


def still(function: Callable[..., Any], *places: int) -> Callable[..., Any]:
    """`function` with those of its inputs `fixed` that are regions."""
    return lambda *inputs, **how: function(
        *[fixed(each) if place in places else each for place, each in enumerate(inputs)], **how
    )


def fixed_array(rois: np.ndarray) -> np.ndarray:
    return np.round(rois * 4) / 4


def transposed(forward: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]) -> Callable[[np.ndarray], np.ndarray]:
    """The gradient of a linear function of arrays of `shape`: its values for all unit vectors are the columns of its matrix."""

    def backward(head: np.ndarray) -> np.ndarray:
        result = np.zeros(shape)
        for place in np.ndindex(shape):
            unit = np.zeros(shape)
            unit[place] = 1
            result[place] = (forward(unit) * head).sum()
        return result

    return backward


# ---- the oracles


def c_round(x: float) -> int:
    """Halves away from zero."""
    return int(math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1))


def pooling_bins(roi: np.ndarray, size: tuple[int, int], scale: float, lengths: tuple[int, int]) -> Any:
    """For each bin its rows and columns."""
    left, top, right, bottom = (c_round(each * scale) for each in roi[1:])
    for row, column in np.ndindex(size):
        spans = []
        for number, bins, first, last, length in (
            (row, size[0], top, bottom, lengths[0]),
            (column, size[1], left, right, lengths[1]),
        ):
            extent = max(last - first + 1, 1) / bins
            low, high = math.floor(number * extent) + first, math.ceil((number + 1) * extent) + first
            spans.append(range(max(low, 0), min(high, length)))
        yield row, column, spans[0], spans[1]


def maximum_oracle(data: np.ndarray, rois: np.ndarray, size: tuple[int, int], scale: float) -> np.ndarray:
    result = np.zeros((len(rois), data.shape[1], *size))
    for region, roi in enumerate(rois):
        if not -1 < roi[0] < len(data):
            continue
        for row, column, rows, columns in pooling_bins(roi, size, scale, data.shape[2:]):
            if len(rows) and len(columns):
                part = data[int(roi[0])][:, rows.start : rows.stop, columns.start : columns.stop]
                result[region, :, row, column] = part.max(axis=(1, 2))
    return result


def places_oracle(data: np.ndarray, rois: np.ndarray, size: tuple[int, int], scale: float) -> Any:
    """(region, channel, bin) and the place of its largest element, the first one."""
    for region, roi in enumerate(rois):
        for row, column, rows, columns in pooling_bins(roi, size, scale, data.shape[2:]):
            pixels = [(y, x) for y in rows for x in columns]
            if not -1 < roi[0] < len(data) or not pixels:
                continue
            for channel in range(data.shape[1]):
                image = data[int(roi[0]), channel]
                yield (region, channel, row, column), (int(roi[0]), channel, *max(pixels, key=lambda place: image[place]))


def maximum_slope(head: np.ndarray, data: np.ndarray, rois: np.ndarray, size: tuple[int, int], scale: float) -> np.ndarray:
    result = np.zeros(data.shape)
    for where, place in places_oracle(data, rois, size, scale):
        result[place] += head[where]
    return result


def maximum_chosen(like: np.ndarray, data: np.ndarray, rois: np.ndarray, size: tuple[int, int], scale: float) -> np.ndarray:
    result = np.zeros((len(rois), data.shape[1], *size))
    for where, place in places_oracle(data, rois, size, scale):
        result[where] = like[place]
    return result


def between(image: np.ndarray, y: float, x: float) -> float:
    """The value between pixels; 0 more than a pixel outside, and the edge's otherwise."""
    height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    rows = ((top, 1 - (y - top)), (min(top + 1, height - 1), y - top))
    columns = ((left, 1 - (x - left)), (min(left + 1, width - 1), x - left))
    return sum(image[row, column] * a * b for row, a in rows for column, b in columns)


def align_oracle(
    data: np.ndarray,
    rois: np.ndarray,
    size: tuple[int, int],
    scale: float,
    ratio: int = -1,
    by_position: bool = False,
    aligned: bool = False,
) -> np.ndarray:
    bins = size[0] * size[1]
    result = np.zeros((len(rois), data.shape[1] // bins if by_position else data.shape[1], *size))
    for region, roi in enumerate(rois):
        if roi[0] < 0:
            continue
        left, top, right, bottom = roi[1:] * scale - (0.5 if aligned else 0)
        lengths = (bottom - top, right - left) if aligned else (max(bottom - top, 1), max(right - left, 1))
        extents = [length / number for length, number in zip(lengths, size)]
        counts = [ratio if ratio > 0 else math.ceil(extent) for extent in extents]
        for channel, row, column in np.ndindex(result.shape[1:]):
            image = data[int(roi[0]), channel * bins + row * size[1] + column if by_position else channel]
            total = 0.0
            for i, j in np.ndindex(*counts):
                y = top + row * extents[0] + (i + 0.5) * extents[0] / counts[0]
                x = left + column * extents[1] + (j + 0.5) * extents[1] / counts[1]
                total += between(image, y, x)
            result[region, channel, row, column] = total / (counts[0] * counts[1])
    return result


def rotated_oracle(data: np.ndarray, rois: np.ndarray, size: tuple[int, int], scale: float, ratio: int = -1) -> np.ndarray:
    result = np.zeros((len(rois), data.shape[1], *size))
    for region, roi in enumerate(rois):
        middle_x, middle_y, width, height = roi[1:5] * scale
        lengths = (max(height, 1), max(width, 1))
        extents = [length / number for length, number in zip(lengths, size)]
        counts = [ratio if ratio > 0 else math.ceil(extent) for extent in extents]
        angle = math.radians(roi[5])
        for channel, row, column in np.ndindex(result.shape[1:]):
            total = 0.0
            for i, j in np.ndindex(*counts):
                v = -lengths[0] / 2 + row * extents[0] + (i + 0.5) * extents[0] / counts[0]
                u = -lengths[1] / 2 + column * extents[1] + (j + 0.5) * extents[1] / counts[1]
                x = u * math.cos(angle) + v * math.sin(angle) + middle_x
                y = v * math.cos(angle) - u * math.sin(angle) + middle_y
                total += between(data[int(roi[0]), channel], y, x)
            result[region, channel, row, column] = total / (counts[0] * counts[1])
    return result


# ---- ROIPooling


def bad_regions(function: str, match: str, error: type[Exception], shapes: Any, *values: Any, **how: Any) -> Bad:
    def call(nd: Any) -> Any:
        arrays = [each if hasattr(each, "shape") else nd.ones(each) for each in (s(nd) if callable(s) else s for s in shapes)]
        return getattr(nd if function == "ROIPooling" else nd.contrib, function)(*arrays, *values, **how)

    return Bad(call, error, match)


IMAGE = (1, 2, 4, 4)

MAXIMA = [
    *[
        Case(
            "ROIPooling",
            lambda x, rois, size=size, scale=scale: ROIPooling(x, rois, size, scale),
            (distinct(2, 3, 8, 9), regions(9, 2, fine=1)),
            lambda x, rois, size=size, scale=scale: maximum_oracle(x, rois, size, scale),
            label=f"{size} {scale}",
        )
        for size, scale in (((2, 3), 0.25), ((1, 1), 1.0), ((7, 7), 0.125), ((3, 2), 0.0))
    ],
    # Turned round, outside, and of images that there are not; many channels.
    Case(
        "ROIPooling",
        lambda x, rois: ROIPooling(x, rois, (2, 2), 1.0),
        (
            distinct(2, 300, 4, 5),
            given([[0.5, 3, 3, 1, 1], [1.5, -9, -9, -5, -5], [1.5, 2, 2, 99, 99]]
                  + [[-1.5, 0, 0, 3, 3], [2.5, 0, 0, 3, 3], [-0.5, -2, 1, 1, 2]]),
        ),
        lambda x, rois: maximum_oracle(x, rois, (2, 2), 1.0),
        label="odd regions",
        bad=(
            bad_regions("ROIPooling", "pooled_size=.2,., wants the height", ArgumentError, (IMAGE, (1, 5)), (2,), 1.0),
            bad_regions("ROIPooling", "pooled_size=.0, 2., wants", ArgumentError, (IMAGE, (1, 5)), (0, 2), 1.0),
            bad_regions("ROIPooling", "spatial_scale=1.5, wants 0 to 1", ArgumentError, (IMAGE, (1, 5)), (2, 2), 1.5),
            bad_regions("ROIPooling", "spatial_scale must be a number, got None", ArgumentError, (IMAGE, (1, 5)), (2, 2)),
            bad_regions("ROIPooling", r"data needs 4 axes", RankError, ((2, 4, 4), (1, 5)), (2, 2), 1.0),
            bad_regions("ROIPooling", r"rois has shape \(1, 4\), a table", ShapeError, (IMAGE, (1, 4)), (2, 2), 1.0),
            bad_regions("ROIPooling", "images without pixels", ShapeError,
                        (lambda nd: nd.array(np.ones((1, 2, 0, 3))), (1, 5)), (2, 2), 1.0),
            bad_regions("ROIPooling", "rois has a number in row 0 that is not finite", OutOfRangeError,
                        (IMAGE, lambda nd: nd.array([[0, np.nan, 0, 1, 1]])), (2, 2), 1.0),
            bad_regions("ROIPooling", "data is float32 but rois is float64", DTypeError,
                        (IMAGE, lambda nd: nd.ones((1, 5), dtype="float64")), (2, 2), 1.0),
        ),
    ),
    Case(
        "ROIPooling",
        lambda x, rois: ROIPooling(x, rois, (2, 2), 1.0),
        (normal(1, 2, 3, 3), lambda rng: np.zeros((0, 5))),
        lambda x, rois: np.zeros((0, 2, 2, 2)),
        label="no regions",
    ),
    Case(
        "_backward_ROIPooling",
        lambda head, x, rois: apply(RegionMaximumGradient((2, 3), 0.25), head, x, rois),
        (normal(9, 3, 2, 3), lambda rng: rng.integers(0, 3, (2, 3, 8, 9)) + 1e-3 * rng.random((2, 3, 8, 9)), regions(9, 2, fine=1)),
        lambda head, x, rois: maximum_slope(head, x, rois, (2, 3), 0.25),
        rtol={"float16": np.inf},  # sees equal elements where there are none
    ),
    Case(
        "_backward_ROIPooling_chosen",
        lambda like, x, rois: apply(RegionMaximumChosen((2, 3), 0.25), like, x, rois),
        (normal(2, 3, 8, 9), distinct(2, 3, 8, 9), regions(9, 2, fine=1)),
        lambda like, x, rois: maximum_chosen(like, x, rois, (2, 3), 0.25),
    ),
]  # fmt: skip

# ---- ROIAlign


def align(label: str, channels: int = 3, count: int = 6, **how: Any) -> Case:
    how = {"pooled_size": (2, 3), "spatial_scale": 0.25, **how}
    names = {"pooled_size": "size", "spatial_scale": "scale", "sample_ratio": "ratio", "position_sensitive": "by_position"}
    return Case(
        "_contrib_ROIAlign",
        lambda x, rois: ROIAlign(x, fixed(rois), **how),
        (normal(2, channels, 8, 9), regions(count, 2)),
        lambda x, rois: align_oracle(x, fixed_array(rois), **{names.get(key, key): value for key, value in how.items()}),
        label=label,
    )


SHAPE = (2, 3, 6, 5)

ALIGNED = [
    align("by size"),
    align("two points", sample_ratio=2),
    align("aligned", sample_ratio=2, aligned=True),
    align("aligned, by size", aligned=True, pooled_size=(3, 3), spatial_scale=1.0),
    align("by position", 12, position_sensitive=True),
    align("by position, aligned", 12, sample_ratio=3, position_sensitive=True, aligned=True),
    align("many channels", 150, 2, sample_ratio=1),
    # At edges and corners, beyond them, turned round, and of no image.
    Case(
        "_contrib_ROIAlign",
        still(lambda x, rois: ROIAlign(x, rois, (2, 2), 1.0, 2), 1),
        (
            normal(1, 2, 4, 4),
            given(
                [[0, -1, -1, 1, 1], [0, 3, 3, 5, 5], [0, -3, -3, 9, 9], [0, 2, 2, 2, 2]]
                + [[0, 3, 3, 1, 1], [0, -4, -4, -2, -2], [-1, 0, 0, 3, 3]]
            ),
        ),
        lambda x, rois: align_oracle(x, rois, (2, 2), 1.0, 2),
        label="odd regions",
        bad=(
            bad_regions("ROIAlign", "row 0 of rois is about image 1, but data has 1", OutOfRangeError, (IMAGE, (1, 5)), (2, 2), 1.0),
            bad_regions("ROIAlign", "a region without height or width", OutOfRangeError, (IMAGE, lambda nd: nd.zeros((1, 5))), (2, 2), 1.0,
                        aligned=True),
            bad_regions("ROIAlign", "which 4 bins, each with its own, do not divide", ShapeError, (IMAGE, (1, 5)), (2, 2), 1.0,
                        position_sensitive=True),
            bad_regions("ROIAlign", "a region of more than 65536 pixels to a bin", OutOfRangeError,
                        (IMAGE, lambda nd: nd.array([[0, 0, 0, 1e9, 1]])), (2, 2), 1.0),
            bad_regions("ROIAlign", "sample_ratio=100000, wants 65536 at most", ArgumentError, (IMAGE, (1, 5)), (2, 2), 1.0, 100000),
            bad_regions("ROIAlign", "rois has a number in row 0", OutOfRangeError, (IMAGE, lambda nd: nd.array([[np.inf, 0, 0, 1, 1]])),
                        (2, 2), 1.0),
        ),
    ),
    Case(
        "_contrib_ROIAlign",
        lambda x, rois: ROIAlign(x, rois, (2, 2), 1.0),
        (normal(1, 2, 3, 3), lambda rng: np.zeros((0, 5))),
        lambda x, rois: np.zeros((0, 2, 2, 2)),
        label="no regions",
    ),
    Case(
        "_backward_ROIAlign",
        still(lambda head, rois: apply(RegionAlignGradient((2, 2), 0.25, 2, lengths=SHAPE), head, rois), 1),
        (normal(5, 3, 2, 2), regions(5, 2, high=30)),
        lambda head, rois: transposed(lambda x: align_oracle(x, fixed_array(rois), (2, 2), 0.25, 2), SHAPE)(head),
    ),
    Case(
        "_backward_ROIAlign",
        still(lambda head, rois: apply(RegionAlignGradient((2, 1), 0.25, -1, True, lengths=(2, 4, 3, 5)), head, rois), 1),
        (normal(5, 2, 2, 1), regions(5, 2, high=30)),
        lambda head, rois: transposed(lambda x: align_oracle(x, fixed_array(rois), (2, 1), 0.25, by_position=True), (2, 4, 3, 5))(head),
        label="by position",
    ),
]  # fmt: skip

# ---- RROIAlign


def turned(count: int, images: int) -> Maker:
    def make(rng: np.random.Generator) -> np.ndarray:
        numbers = np.concatenate(
            [rng.uniform(0, 30, (count, 2)), rng.uniform(-2, 30, (count, 2)), rng.uniform(-200, 200, (count, 1))], 1
        )
        return np.concatenate([rng.integers(0, images, (count, 1)), np.round(numbers)], axis=1)

    return make


ROTATED = [
    *[
        Case(
            "_contrib_RROIAlign",
            still(lambda x, rois, ratio=ratio: RROIAlign(x, rois, (2, 3), 0.25, ratio), 1),
            (normal(2, 3, 7, 8), turned(6, 2)),
            lambda x, rois, ratio=ratio: rotated_oracle(x, rois, (2, 3), 0.25, ratio),
            label=f"{ratio}",
        )
        for ratio in (-1, 2)
    ],
    Case(
        "_contrib_RROIAlign",
        still(lambda x, rois: RROIAlign(x, rois, (2, 2), 1.0, 1), 1),
        (normal(1, 1, 4, 4), given([[0, 2, 2, 3, 1, 0], [0, 2, 2, 3, 1, 30], [0, 1, 2, 2, 2, -45], [0, 9, 9, 2, 2, 10]])),
        lambda x, rois: rotated_oracle(x, rois, (2, 2), 1.0, 1),
        label="small",
        bad=(
            bad_regions("RROIAlign", r"rois has shape \(1, 5\)", ShapeError, (IMAGE, (1, 5)), (2, 2), 1.0),
            bad_regions("RROIAlign", "about image 1, but data has 1", OutOfRangeError, (IMAGE, (1, 6)), (2, 2), 1.0),
            bad_regions("RROIAlign", "row 0 of rois needs more than", OutOfRangeError,
                        (IMAGE, lambda nd: nd.array([[0, 0, 0, 1e6, 1e6, 1]])), (2, 2), 1.0),
        ),
    ),
    Case(
        "_backward_RROIAlign",
        still(lambda head, rois: apply(RotatedAlignGradient((2, 2), 0.25, 2, lengths=SHAPE), head, rois), 1),
        (normal(4, 3, 2, 2), turned(4, 2)),
        lambda head, rois: transposed(lambda x: rotated_oracle(x, rois, (2, 2), 0.25, 2), SHAPE)(head),
    ),
]  # fmt: skip

CASES = [*MAXIMA, *ALIGNED, *ROTATED]
