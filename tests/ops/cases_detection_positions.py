"""Rows of ops/roi_position.py, ops/roi_masks.py, and of DeformablePSROIPooling in ops/roi_points.py.

The oracles go bin by bin and point by point, as those of cases_detection_regions.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minimx.base import ArgumentError, OutOfRangeError, ShapeError
from minimx.op import apply
from minimx.ops.roi_masks import mrcnn_mask_target
from minimx.ops.roi_points import DeformableMeanGradient, DeformablePSROIPooling
from minimx.ops.roi_position import PositionMeanGradient, PSROIPooling

from .cases_detection_boxes import given
from .cases_detection_regions import IMAGE, align_oracle, bad_regions, between, c_round, regions, transposed
from .harness import Case, normal, uniform

# ---- the oracles


def region_of(roi: np.ndarray, scale: float) -> tuple[float, float, float, float]:
    """Left, top, width and height, as the position-sensitive ones have it."""
    left, top = c_round(roi[1]) * scale, c_round(roi[2]) * scale
    right, bottom = (c_round(roi[3]) + 1) * scale, (c_round(roi[4]) + 1) * scale
    return left, top, max(right - left, 0.1), max(bottom - top, 0.1)


def position_oracle(data: np.ndarray, rois: np.ndarray, scale: float, results: int, bins: int, groups: int = 0) -> np.ndarray:
    groups = groups or bins
    result = np.zeros((len(rois), results, bins, bins))
    for region, roi in enumerate(rois):
        left, top, width, height = region_of(roi, scale)
        for each, row, column in np.ndindex(result.shape[1:]):
            image = data[int(roi[0]), (each * groups + row * groups // bins) * groups + column * groups // bins]
            spans = []
            for number, first, length, most in ((row, top, height, image.shape[0]), (column, left, width, image.shape[1])):
                low, high = math.floor(number * length / bins + first), math.ceil((number + 1) * length / bins + first)
                spans.append(slice(max(low, 0), max(min(high, most), 0)))
            part = image[spans[0], spans[1]]
            result[region, each, row, column] = part.mean() if part.size else 0
    return result


def deformable_oracle(
    data: np.ndarray,
    rois: np.ndarray,
    trans: np.ndarray | None,
    scale: float,
    results: int,
    groups: int,
    bins: int,
    parts: int = 0,
    samples: int = 1,
    std: float = 0.0,
) -> np.ndarray:
    parts = parts or bins
    result = np.zeros((len(rois), results, bins, bins))
    classes = 1 if trans is None else trans.shape[1] // 2
    for region, roi in enumerate(rois):
        left, top, width, height = region_of(roi, scale)
        for each, row, column in np.ndindex(result.shape[1:]):
            image = data[int(roi[0]), (each * groups + row * groups // bins) * groups + column * groups // bins]
            dx = dy = 0.0
            if trans is not None:
                kind = each // (results // classes)
                dx, dy = trans[region, 2 * kind : 2 * kind + 2, row * parts // bins, column * parts // bins] * std
            y0 = top - 0.5 + row * height / bins + dy * height
            x0 = left - 0.5 + column * width / bins + dx * width
            values = []
            for i, j in np.ndindex(samples, samples):
                y, x = y0 + i * height / bins / samples, x0 + j * width / bins / samples
                if -0.5 <= y <= image.shape[0] - 0.5 and -0.5 <= x <= image.shape[1] - 0.5:
                    values.append(between(image, y, x))
            result[region, each, row, column] = np.mean(values) if values else 0
    return result


def slope_of(function: Callable[..., np.ndarray], head: np.ndarray, inputs: list[np.ndarray], place: int) -> np.ndarray:
    """The gradient of one input by differences."""
    result, step = np.zeros_like(inputs[place]), 1e-5
    for index in np.ndindex(result.shape):
        values = []
        for change in (step, -step):
            moved = [each.copy() for each in inputs]
            moved[place][index] += change
            values.append(function(*moved))
        result[index] = ((values[0] - values[1]) * head).sum() / (2 * step)
    return result


# ---- PSROIPooling


def position(label: str, results: int = 2, bins: int = 3, groups: int = 0, scale: float = 0.25, spare: int = 0) -> Case:
    return Case(
        "_contrib_PSROIPooling",
        lambda x, rois: PSROIPooling(x, rois, scale, results, bins, groups),
        (normal(2, results * (groups or bins) ** 2 + spare, 7, 6), regions(6, 2)),
        lambda x, rois: position_oracle(x, rois, scale, results, bins, groups),
        label=label,
    )


POSITIONS = [
    position("default"),
    position("fewer groups", bins=4, groups=2),
    position("more groups", bins=2, groups=3, scale=0.125, spare=2),
    Case(
        "_contrib_PSROIPooling",
        lambda x, rois: PSROIPooling(x, rois, 1.0, 1, 2),
        (normal(1, 4, 3, 3), given([[0.5, 2, 2, 0, 0], [0.5, -9, -9, -8, -8], [-0.5, -2, 1, 9, 2]])),
        lambda x, rois: position_oracle(x, rois, 1.0, 1, 2),
        label="odd regions",
        bad=(
            bad_regions(
                "PSROIPooling", "data has 2 channels, output_dim=1 in 2 x 2 groups", ShapeError, (IMAGE, (1, 5)), 1.0, 1, 2
            ),
            bad_regions("PSROIPooling", "output_dim=0, wants 1 or more", ArgumentError, (IMAGE, (1, 5)), 1.0, 0, 2),
            bad_regions("PSROIPooling", "group_size=-1, wants 1 or more", ArgumentError, (IMAGE, (1, 5)), 1.0, 1, 1, -1),
            bad_regions("PSROIPooling", "about image 1, but data has 1", OutOfRangeError, (IMAGE, (1, 5)), 1.0, 1, 1),
        ),
    ),
    Case(
        "_backward__contrib_PSROIPooling",
        lambda head, rois: apply(PositionMeanGradient(0.25, 1, 3, 2, lengths=(2, 5, 4, 3)), head, rois),
        (normal(5, 1, 3, 3), regions(5, 2, high=24)),
        lambda head, rois: transposed(lambda x: position_oracle(x, rois, 0.25, 1, 3, 2), (2, 5, 4, 3))(head),
    ),
]

# ---- DeformablePSROIPooling


def deformable(
    label: str, classes: int = 1, results: int = 2, groups: int = 3, bins: int = 3, parts: int = 0, samples: int = 1
) -> Case:
    how = (0.25, results, groups, bins, parts, samples, 0.125)
    return Case(
        "_contrib_DeformablePSROIPooling",
        lambda x, rois, trans: DeformablePSROIPooling(x, rois, trans, *how),
        (
            normal(2, results * groups**2, 7, 6),
            regions(5, 2, fine=1),
            uniform(-2, 2, 5, 2 * classes, parts or bins, parts or bins),
        ),
        lambda x, rois, trans: deformable_oracle(x, rois, trans, *how),
        second=False,
        rtol={"float16": 5e-2},  # float16 sees other offsets, and slopes are steep
        label=label,
    )


def deformable_slope(head: np.ndarray, *inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    def function(*arrays: np.ndarray) -> np.ndarray:
        return deformable_oracle(*arrays, 0.25, 2, 1, 2, 1, 2, 0.125)

    return slope_of(function, head, list(inputs), 0), slope_of(function, head, list(inputs), 2)


MOVED = [
    deformable("default"),
    deformable("parts", groups=1, bins=4, parts=2, samples=2),
    deformable("classes", classes=2, results=4, groups=2, bins=2, parts=3, samples=3),
    Case(
        "_contrib_DeformablePSROIPooling",
        lambda x, rois: DeformablePSROIPooling(x, rois, None, 0.25, 2, 2, 4, 0, 3, 0.0, True),
        (normal(2, 8, 7, 6), regions(5, 2, fine=1)),
        lambda x, rois: deformable_oracle(x, rois, None, 0.25, 2, 2, 4, 0, 3),
        second=False,
        label="no offsets",
        bad=(
            bad_regions("DeformablePSROIPooling", "trans is missing; it goes together with no_trans=False", ArgumentError, (IMAGE, (1, 5)),
                        None, 1.0, 2, 1, 1),
            bad_regions("DeformablePSROIPooling", "trans is given but not used", ArgumentError, (IMAGE, (1, 5), (1, 2, 1, 1)),
                        1.0, 2, 1, 1, no_trans=True),
            bad_regions("DeformablePSROIPooling", "trans has 3 channels, wants two for each class", ShapeError,
                        (IMAGE, (1, 5), (1, 3, 1, 1)), 1.0, 2, 1, 1),
            bad_regions("DeformablePSROIPooling", r"trans has shape \(1, 2, 2, 2\)", ShapeError,
                        (IMAGE, (1, 5), (1, 2, 2, 2)), 1.0, 2, 1, 1),
            bad_regions("DeformablePSROIPooling", "sample_per_part=0", ArgumentError, (IMAGE, (1, 5), (1, 2, 1, 1)), 1.0, 2, 1, 1, 0, 0),
            bad_regions("DeformablePSROIPooling", "trans_std=2", ArgumentError, (IMAGE, (1, 5), (1, 2, 1, 1)), 1.0, 2, 1, 1, 0, 1, 2),
            bad_regions("DeformablePSROIPooling", "group_size=0, wants 1", ArgumentError, (IMAGE, (1, 5), (1, 2, 1, 1)), 1.0, 2, 0, 1),
        ),
    ),
    Case(
        "_backward__contrib_DeformablePSROIPooling",
        lambda head, x, rois, trans: apply(DeformableMeanGradient(0.25, 2, 1, 2, 1, 2, 0.125), head, x, rois, trans),
        (normal(3, 2, 2, 2), normal(1, 2, 5, 4), regions(3, 1, fine=1, high=20), uniform(-2, 2, 3, 2, 1, 1)),
        deformable_slope,
        grad=False,
        rtol={"float16": np.inf, "float32": 1e-4, "float64": 1e-8},  # the oracle's differences
    ),
]  # fmt: skip

# ---- mrcnn_mask_target


def mask_oracle(
    rois: np.ndarray, masks: np.ndarray, matches: np.ndarray, classes: np.ndarray, count: int, size: tuple[int, int], **how: Any
) -> tuple[np.ndarray, ...]:
    sampled = np.zeros((*rois.shape[:2], count, *size))
    own = np.zeros(sampled.shape)
    for example, region in np.ndindex(rois.shape[:2]):
        image = masks[example, int(matches[example, region])][None, None]
        sampled[example, region] = align_oracle(image, np.array([[0, *rois[example, region]]]), size, 1.0, **how)[0]
        own[example, region, :] = (classes[example, region] == np.arange(count))[:, None, None]
    return sampled, own


MASKS = [
    Case(
        "_contrib_mrcnn_mask_target",
        lambda *tensors, how=how: mrcnn_mask_target(*tensors, 3, 4, (2, 3), **how),
        (
            lambda rng: regions(6, 1, low=0, high=12)(rng)[:, 1:].reshape(2, 3, 4),
            lambda rng: rng.integers(0, 2, (2, 5, 9, 8)).astype(float),
            lambda rng: rng.integers(0, 5, (2, 3)).astype(float),
            lambda rng: rng.integers(-1, 4, (2, 3)).astype(float),
        ),
        lambda *arrays, how=how: mask_oracle(
            *arrays, 4, (2, 3), ratio=how.get("sample_ratio", 2), aligned=how.get("aligned", False)
        ),
        grad=False,
        label=str(how),
        bad=(
            bad_regions("mrcnn_mask_target", "mask_size=.., wants the height", ArgumentError, ((1, 2, 4), IMAGE, (1, 2), (1, 2)), 2, 3),
            bad_regions("mrcnn_mask_target", "num_classes=0, wants 1", ArgumentError, ((1, 2, 4), IMAGE, (1, 2), (1, 2)), 2, 0, (2, 2)),
            bad_regions("mrcnn_mask_target", r"rois has shape \(1, 2, 4\), num_rois=3", ShapeError,
                        ((1, 2, 4), IMAGE, (1, 2), (1, 2)), 3, 1, (2, 2)),
            bad_regions("mrcnn_mask_target", r"matches has shape \(1, 3\)", ShapeError, ((1, 2, 4), IMAGE, (1, 3), (1, 2)), 2, 1, (2, 2)),
            bad_regions("mrcnn_mask_target", r"gt_masks has shape \(2, 1, 4, 4\)", ShapeError,
                        ((1, 2, 4), (2, 1, 4, 4), (1, 2), (1, 2)), 2, 1, (2, 2)),
            bad_regions("mrcnn_mask_target", "none of the 2 masks of an image", OutOfRangeError,
                        ((1, 2, 4), IMAGE, lambda nd: nd.array([[0, 2]]), (1, 2)), 2, 1, (2, 2)),
        ) if not how else (),
    )
    for how in ({}, {"sample_ratio": -1}, {"aligned": True, "sample_ratio": 1})
]  # fmt: skip

CASES = [*POSITIONS, *MOVED, *MASKS]
