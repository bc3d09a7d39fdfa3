"""Rows of ops/resize.py, warp.py and patch_correlation.py: images at another size, read through grids, compared patch by patch."""

from __future__ import annotations

from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, RankError, ShapeError
from minimx.op import apply
from minimx.ops import patch_correlation, resize, warp

from .harness import Bad, Case, distinct, normal

# ---- Crop

CROP = [
    Case(
        "Crop",
        lambda x: resize.Crop(x, h_w=(2, 3), offset=(1, 2)),
        (normal(2, 3, 4, 5),),
        lambda x: x[:, :, 1:3, 2:5],
        bad=(
            Bad(lambda nd: nd.Crop(nd.ones((1, 1, 3, 3))), ArgumentError, r"the part has \(0, 0\) rows and columns; give h_w"),
            Bad(lambda nd: nd.Crop(nd.ones((1, 1, 3, 3)), h_w=(2, 4)), ShapeError, r"the part \(2, 4\) at \(0, 0\) does not lie"),
            Bad(lambda nd: nd.Crop(nd.ones((1, 1, 3, 3)), h_w=(2, 2), offset=(2, 0)), ShapeError, "does not lie in data"),
            Bad(lambda nd: nd.Crop(nd.ones((1, 3, 3)), h_w=(2, 2)), RankError, "data needs 4 axes"),
            Bad(lambda nd: nd.Crop(*[nd.ones((1, 1, 3, 3))] * 3), ArgumentError, "3 arrays are given"),
            Bad(lambda nd: nd.Crop(nd.ones((1, 1, 3, 3)), num_args=2), ArgumentError, "num_args is 2, but 1 arrays"),
            Bad(lambda nd: nd.Crop(nd.ones((1, 1, 3, 3)), h_w=2), ArgumentError, "need two numbers each"),
        ),
    ),
    Case(
        "Crop",
        lambda x: resize.Crop(x, h_w=(2, 3), center_crop=True),
        (normal(1, 2, 5, 4),),
        lambda x: x[:, :, 1:3, 0:3],
        label="middle",
    ),
    Case(
        "Crop",
        lambda x, like: resize.Crop(x, like, offset=(0, 1)),
        (normal(1, 2, 3, 4), normal(2, 1, 3, 2)),
        lambda x, like: x[:, :, 0:3, 1:3],
        label="like",
    ),
]

# ---- BilinearResize2D


def interpolation(length: int, count: int, align_corners: bool) -> np.ndarray:
    """The matrix (count, length) of what each result along an axis has of each element."""
    positions = np.arange(count) * (length - 1) / max(count - 1, 1)
    if not align_corners:
        positions = (np.arange(count) + 0.5) * length / count - 0.5
    return np.stack([np.interp(positions, np.arange(length), row) for row in np.eye(length)], axis=1)


def resized(x: np.ndarray, height: int, width: int, align_corners: bool = True) -> np.ndarray:
    rows, columns = interpolation(x.shape[2], height, align_corners), interpolation(x.shape[3], width, align_corners)
    return rows @ x @ columns.T


def to(height: int, width: int, align_corners: bool = True, **how: Any) -> dict[str, Any]:
    """Call and oracle of a row."""
    given = how or {"height": height, "width": width}
    return {
        "call": lambda x: resize.BilinearResize2D(x, align_corners=align_corners, **given),
        "oracle": lambda x: resized(x, height, width, align_corners),
    }


# Positions are float32: these sizes have steps that are sums of few powers of 2, for float64 to be exact.
RESIZE = [
    Case(
        "_contrib_BilinearResize2D",
        inputs=(normal(2, 3, 3, 5),),
        **to(5, 9),
        bad=(
            Bad(lambda nd: nd.contrib.BilinearResize2D(nd.ones((2, 3))), RankError, "data needs 4 axes"),
            Bad(
                lambda nd: nd.contrib.BilinearResize2D(nd.ones((1, 1, 2, 2)), mode="up"), ArgumentError, "mode='up' is not known"
            ),
            Bad(
                lambda nd: nd.contrib.BilinearResize2D(nd.ones((1, 1, 2, 2)), height=0),
                ShapeError,
                r"to \(0, 1\) rows and columns; both need at least one",
            ),
            Bad(
                lambda nd: nd.contrib.BilinearResize2D(nd.ones((1, 1, 2, 2)), scale_height=2),
                ArgumentError,
                "needs scale_height and scale_width, not one of them",
            ),
            Bad(lambda nd: nd.contrib.BilinearResize2D(nd.ones((1, 1, 2, 2)), mode="like"), ArgumentError, "like is missing"),
            Bad(
                lambda nd: nd.contrib.BilinearResize2D(*[nd.ones((1, 1, 2, 2))] * 2), ArgumentError, "like is given but not used"
            ),
            Bad(lambda nd: nd.contrib.BilinearResize2D(nd.ones((1, 1, 2, 2), dtype="int32")), DTypeError, "data is int32"),
        ),
    ),
    Case("_contrib_BilinearResize2D", inputs=(normal(1, 2, 4, 2),), **to(8, 4, False), label="squares"),
    Case("_contrib_BilinearResize2D", inputs=(normal(1, 2, 8, 5),), **to(4, 2, False), label="smaller", rtol={"float64": 1e-6}),
    Case("_contrib_BilinearResize2D", inputs=(normal(1, 1, 9, 5),), **to(3, 1), label="one column"),
    Case("_contrib_BilinearResize2D", inputs=(normal(1, 1, 1, 5),), **to(4, 5), label="one row"),
    Case("_contrib_BilinearResize2D", inputs=(normal(0, 2, 3, 5),), **to(5, 9), label="no examples"),
    Case(
        "_contrib_BilinearResize2D",
        inputs=(normal(1, 1, 3, 5),),
        **to(6, 2, scale_height=2, scale_width=0.5),
        label="scale",
        rtol={"float64": 1e-6},
    ),
    Case(
        "_contrib_BilinearResize2D",
        inputs=(normal(1, 1, 3, 4),),
        **to(5, 8, scale_height=2, scale_width=2, mode="odd_scale"),
        label="odd_scale",
        rtol={"float64": 1e-6},
    ),
    *(
        Case(
            "_contrib_BilinearResize2D", inputs=(normal(1, 1, 5, 4),), **to(*size, mode=mode), label=mode, rtol={"float64": 1e-6}
        )
        for mode, size in {"to_even_down": (4, 4), "to_even_up": (6, 4), "to_odd_down": (5, 3), "to_odd_up": (5, 5)}.items()
    ),
    Case(
        "_contrib_BilinearResize2D",
        lambda x, like: resize.BilinearResize2D(x, like, mode="like"),
        (normal(1, 2, 3, 3), normal(2, 1, 5, 2)),
        lambda x, like: resized(x, 5, 2),
        label="like",
    ),
    Case(
        "_backward_contrib_BilinearResize2D",
        lambda g: apply(resize.BilinearResizeBackward(3, 5), g),
        (normal(1, 2, 5, 9),),
        lambda g: interpolation(3, 5, True).T @ g @ interpolation(5, 9, True),
    ),
]

# ---- AdaptiveAvgPooling2D


def averaging(length: int, count: int) -> np.ndarray:
    """The matrix (count, length) of what each mean has of each element."""
    matrix = np.zeros((count, length))
    for number in range(count):
        start, stop = int(np.floor(number * length / count)), int(np.ceil((number + 1) * length / count))
        matrix[number, start:stop] = 1 / (stop - start)
    return matrix


def averages(x: np.ndarray, height: int, width: int) -> np.ndarray:
    return averaging(x.shape[2], height) @ x @ averaging(x.shape[3], width).T


ADAPTIVE = [
    Case(
        "_contrib_AdaptiveAvgPooling2D",
        lambda x: resize.AdaptiveAvgPooling2D(x, output_size=(2, 4)),
        (normal(2, 3, 5, 7),),
        lambda x: averages(x, 2, 4),
        bad=(
            Bad(lambda nd: nd.contrib.AdaptiveAvgPooling2D(nd.ones((1, 1, 2, 2)), (1, 2, 3)), ArgumentError, "wants one or two"),
            Bad(lambda nd: nd.contrib.AdaptiveAvgPooling2D(nd.ones((1, 1, 2, 2)), 0), ArgumentError, "lengths of at least 1"),
            Bad(lambda nd: nd.contrib.AdaptiveAvgPooling2D(nd.ones((1, 2, 2)), 1), RankError, "data needs 4 axes"),
        ),
    ),
    Case(
        "_contrib_AdaptiveAvgPooling2D",
        resize.AdaptiveAvgPooling2D,
        (normal(1, 2, 3, 4),),
        lambda x: averages(x, 1, 1),
        label="one",
    ),
    Case(
        "_contrib_AdaptiveAvgPooling2D",
        lambda x: resize.AdaptiveAvgPooling2D(x, 5),
        (normal(1, 1, 3, 2),),
        lambda x: averages(x, 5, 5),
        label="larger",
    ),
    Case(
        "_contrib_AdaptiveAvgPooling2D",
        lambda x: resize.AdaptiveAvgPooling2D(x, 2),
        (normal(2, 0, 3, 2),),
        lambda x: np.zeros((2, 0, 2, 2)),
        label="no channels",
    ),
    Case(
        "_backward_contrib_AdaptiveAvgPooling2D",
        lambda g: apply(resize.AdaptiveAvgPoolingBackward((2, 3), (5, 4)), g),
        (normal(1, 2, 2, 3),),
        lambda g: averaging(5, 2).T @ g @ averaging(4, 3),
    ),
]

# ---- grids and samplers


def grid_of(loc: np.ndarray, height: int, width: int) -> np.ndarray:
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    return np.einsum("nij,jhw->nihw", loc.reshape(-1, 2, 3), np.stack([x, y, np.ones_like(x)]))


def warped(flow: np.ndarray) -> np.ndarray:
    height, width = flow.shape[2:]
    y, x = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    return np.stack([(flow[:, 0] + x) / ((width - 1) / 2) - 1, (flow[:, 1] + y) / ((height - 1) / 2) - 1], axis=1)


def corners(x: np.ndarray, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pixels around each place and their shares, a place at a time."""
    batch, channels, height, width = x.shape
    found = np.zeros((batch, 4, channels, *grid.shape[2:]))
    share = np.zeros((batch, 4, 1, *grid.shape[2:]))
    for n, h, w in np.ndindex(batch, *grid.shape[2:]):
        across, along = (grid[n, 0, h, w] + 1) * (width - 1) / 2, (grid[n, 1, h, w] + 1) * (height - 1) / 2
        left, top = int(np.floor(across)), int(np.floor(along))
        for number, (down, right) in enumerate(np.ndindex(2, 2)):
            row, column = top + down, left + right
            if 0 <= row < height and 0 <= column < width:
                found[n, number, :, h, w] = x[n, :, row, column]
            share[n, number, 0, h, w] = (1 - abs(along - row)) * (1 - abs(across - column))
    return found, share


def sampled(x: np.ndarray, grid: np.ndarray) -> np.ndarray:
    found, share = corners(x, grid)
    return (found * share).sum(axis=1)


def gathered(x: np.ndarray, grid: np.ndarray) -> np.ndarray:
    return corners(x, grid)[0]


def scattered(parts: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """The transpose of `gathered` for images of 3 x 4, by a matrix."""
    batch, channels = len(parts), parts.shape[2]
    units = np.eye(12).reshape(12, 1, 3, 4)
    result = np.zeros((batch, channels, 3, 4))
    for n in range(batch):
        reads = gathered(units, np.repeat(grid[n : n + 1], 12, axis=0))[:, :, 0]  # (pixels, 4, h, w)
        result[n] = np.einsum("pkhw,kchw->cp", reads, parts[n]).reshape(channels, 3, 4)
    return result


# Places from cell to cell, none near a border, where there is no slope: 1.1 to 1.9 pixels between -1 and 4 in images of 3 x 4.
def places(rng: np.random.Generator) -> np.ndarray:
    within = rng.uniform(0.1, 0.9, (2, 2, 3, 2))
    cell = np.stack([rng.integers(-2, 5, (2, 3, 2)), rng.integers(-2, 4, (2, 3, 2))], axis=1)
    return (cell + within) / np.array([3 / 2, 2 / 2]).reshape(2, 1, 1) - 1


IDENTITY = np.array([1, 0, 0, 0, 1, 0.0])


def near_identity(rng: np.random.Generator) -> np.ndarray:
    return IDENTITY * 0.83 + rng.uniform(-0.2, 0.2, (2, 6))


WARP = [
    Case(
        "GridGenerator",
        lambda loc: warp.GridGenerator(loc, "affine", (3, 4)),
        (normal(2, 6),),
        lambda loc: grid_of(loc, 3, 4),
        bad=(
            Bad(lambda nd: nd.GridGenerator(nd.ones((1, 6)), "affine"), ArgumentError, r"target_shape=\(0, 0\), wants a height"),
            Bad(
                lambda nd: nd.GridGenerator(nd.ones((1, 6)), "affine", (1, 4)), ArgumentError, "of 2 or more, as the first pixel"
            ),
            Bad(lambda nd: nd.GridGenerator(nd.ones((1, 5)), "affine", (2, 4)), ShapeError, r"needs \(1, 6\)"),
            Bad(lambda nd: nd.GridGenerator(nd.ones((1, 3, 4, 4)), "warp"), ShapeError, r"needs \(1, 2, 4, 4\)"),
            Bad(lambda nd: nd.GridGenerator(nd.ones((1, 2, 1, 4)), "warp"), ArgumentError, "height and width of data"),
            Bad(lambda nd: nd.GridGenerator(nd.ones((1, 6)), "rotate"), ArgumentError, "transform_type='rotate' is not known"),
        ),
    ),
    Case("GridGenerator", lambda flow: warp.GridGenerator(flow, "warp"), (normal(2, 2, 3, 4),), warped, label="warp"),
    Case(
        "_backward_GridGenerator",
        lambda g: apply(warp.GridBackward("affine", (3, 4)), g),
        (normal(2, 2, 3, 4),),
        lambda g: np.einsum("nihw,jhw->nij", g, np.concatenate([grid_of(IDENTITY, 3, 4)[0], np.ones((1, 3, 4))])).reshape(2, 6),
    ),
    Case(
        "_backward_GridGenerator",
        lambda g: apply(warp.GridBackward("warp"), g),
        (normal(2, 2, 3, 4),),
        lambda g: g / np.array([3 / 2, 2 / 2]).reshape(2, 1, 1),
        label="warp",
    ),
    Case(
        "BilinearSampler",
        warp.BilinearSampler,
        (normal(2, 3, 3, 4), places),
        sampled,
        # A place in float16 is off by some thousandths of a pixel.
        rtol={"float16": 2e-2, "float32": 1e-4},
        bad=(
            Bad(lambda nd: nd.BilinearSampler(nd.ones((1, 1, 2, 2)), nd.ones((1, 3, 2, 2))), ShapeError, r"needs \(1, 2, 2, 2\)"),
            Bad(lambda nd: nd.BilinearSampler(nd.ones((1, 1, 2, 2)), nd.ones((2, 2, 2, 2))), ShapeError, r"needs \(1, 2, 2, 2\)"),
            Bad(lambda nd: nd.BilinearSampler(nd.ones((1, 2, 2)), nd.ones((1, 2, 2, 2))), RankError, "data needs 4 axes"),
            Bad(
                lambda nd: nd.BilinearSampler(nd.ones((1, 1, 2, 2)), nd.ones((1, 2, 2, 2), dtype="float64")),
                DTypeError,
                "float64",
            ),
        ),
    ),
    *(
        Case(
            "BilinearSampler",
            warp.BilinearSampler,
            (normal(batch, channels, 3, 4), lambda rng, batch=batch, height=height: np.zeros((batch, 2, height, 2))),
            lambda x, grid: np.zeros((*x.shape[:2], *grid.shape[2:])),
            label=f"empty {batch}{channels}{height}",
            grad=False,
        )
        for batch, channels, height in ((0, 2, 1), (1, 0, 1), (1, 2, 0))
    ),
    Case("_corners", lambda x, grid: apply(warp.Corners(), x, grid), (normal(2, 3, 3, 4), places), gathered),
    Case(
        "_backward_corners",
        lambda g, grid: apply(warp.CornersBackward(3, 4), g, grid),
        (normal(2, 4, 3, 3, 2), places),
        scattered,
    ),
    Case(
        "SpatialTransformer",
        lambda x, loc: warp.SpatialTransformer(x, loc, (3, 2), "affine", "bilinear"),
        (normal(2, 3, 4, 5), near_identity),
        lambda x, loc: sampled(x, grid_of(loc, 3, 2)),
        rtol={"float16": 2e-2, "float32": 1e-4},  # as above
        bad=(
            Bad(
                lambda nd: nd.SpatialTransformer(nd.ones((1, 1, 2, 2)), nd.ones((1, 6)), (2, 2), "warp", "bilinear"),
                ArgumentError,
                "transform_type='warp' is not known; choose one of affine",
            ),
            Bad(
                lambda nd: nd.SpatialTransformer(nd.ones((1, 1, 2, 2)), nd.ones((1, 6)), (2, 2), "affine"),
                ArgumentError,
                "sampler_type='' is not known",
            ),
            Bad(
                lambda nd: nd.SpatialTransformer(nd.ones((1, 1, 2, 2)), nd.ones((1, 6)), (0, 0), "affine", "bilinear"),
                ArgumentError,
                r"target_shape=\(0, 0\)",
            ),
        ),
    ),
]

# ---- Correlation


def compared(a: np.ndarray, b: np.ndarray, kernel: int, reach: int, step: int, hop: int, pad: int, value: Any) -> np.ndarray:
    """A place and a displacement at a time; `value` of two patches."""
    frame = [(0, 0), (0, 0), (pad, pad), (pad, pad)]
    a, b = np.pad(a, frame), np.pad(b, frame)
    side = 2 * (reach // hop) + 1
    border = reach + kernel // 2
    counts = [int(np.ceil((length - 2 * border) / step)) for length in a.shape[2:]]
    result = np.zeros((len(a), side * side, *counts))
    for number, i, j in np.ndindex(*result.shape[1:]):
        top, left = i * step + reach, j * step + reach
        rows, columns = (number // side - reach // hop) * hop, (number % side - reach // hop) * hop
        first = a[:, :, top : top + kernel, left : left + kernel]
        second = b[:, :, top + rows : top + rows + kernel, left + columns : left + columns + kernel]
        result[:, number, i, j] = value(first, second).mean(axis=(1, 2, 3))
    return result


def products(*setting: int) -> Any:
    return lambda a, b: compared(a, b, *setting, lambda first, second: first * second)


def distances(*setting: int) -> Any:
    return lambda a, b: compared(a, b, *setting, lambda first, second: np.abs(first - second))


def transposed(function: Any, head: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The gradient of `sum(head * function(x))` by x, for a linear function: a pixel at a time."""
    result = np.zeros_like(like)
    for place in np.ndindex(like.shape):
        unit = np.zeros_like(like)
        unit[place] = 1
        result[place] = (head * function(unit)).sum()
    return result


SETTING = (3, 2, 1, 2, 1)  # kernel_size, max_displacement, stride1, stride2, pad_size
BACK = {"kernel_size": 1, "max_displacement": 1, "stride1": 1, "stride2": 1, "pad_size": 0}
SMALL = (1, 1, 1, 1, 0)


def slopes(a: np.ndarray, b: np.ndarray) -> Any:
    """How distances grow when a and b change."""
    half = a.shape[1]

    def value(change_a: np.ndarray, change_b: np.ndarray) -> np.ndarray:
        first, second = np.concatenate([a, change_a], axis=1), np.concatenate([b, change_b], axis=1)
        return compared(first, second, *SMALL, lambda x, y: np.sign(x[:, :half] - y[:, :half]) * (x[:, half:] - y[:, half:]))

    return value


CORRELATION = [
    Case(
        "Correlation",
        lambda a, b: patch_correlation.Correlation(a, b, *SETTING),
        (normal(2, 3, 6, 7), normal(2, 3, 6, 7)),
        products(*SETTING),
        bad=(
            Bad(lambda nd: nd.Correlation(*[nd.ones((1, 1, 4, 4))] * 2, kernel_size=2), ArgumentError, "must be odd"),
            Bad(
                lambda nd: nd.Correlation(*[nd.ones((1, 1, 4, 4))] * 2, max_displacement=2),
                ShapeError,
                "has no place whose patch of kernel_size=1 can move by max_displacement=2",
            ),
            Bad(lambda nd: nd.Correlation(*[nd.ones((1, 1, 4, 4))] * 2, stride1=0), ArgumentError, "stride1=0 must not be less"),
            Bad(lambda nd: nd.Correlation(nd.ones((1, 1, 4, 4)), nd.ones((1, 2, 4, 4))), ShapeError, "they must be equal"),
            Bad(lambda nd: nd.Correlation(*[nd.ones((1, 4, 4))] * 2), RankError, "data1 needs 4 axes"),
        ),
    ),
    Case(
        "Correlation",
        lambda a, b: patch_correlation.Correlation(a, b, 1, 1, 2, 1, 2, is_multiply=False),
        (distinct(1, 2, 4, 3), lambda rng: distinct(1, 2, 4, 3)(rng) + 0.05),
        distances(1, 1, 2, 1, 2),
        label="distance",
        second=False,  # 0 between the kinks: see _backward_Correlation_distance
    ),
    Case(
        "_backward_Correlation",
        lambda g, other: apply(patch_correlation.CorrelationBackward(**BACK, height=4, width=3), g, other),
        (normal(1, 9, 2, 1), normal(1, 2, 4, 3)),
        lambda g, other: transposed(lambda x: products(*SMALL)(x, other), g, other),
    ),
    Case(
        "_backward_Correlation",
        lambda g, other: apply(patch_correlation.CorrelationBackward(**BACK, height=4, width=3, of_second=True), g, other),
        (normal(1, 9, 2, 1), normal(1, 2, 4, 3)),
        lambda g, other: transposed(lambda x: products(*SMALL)(other, x), g, other),
        label="second",
    ),
    Case(
        "_backward_Correlation_distance",
        lambda g, a, b: apply(patch_correlation.DistanceBackward(**BACK), g, a, b),
        (normal(1, 9, 2, 1), distinct(1, 2, 4, 3), lambda rng: distinct(1, 2, 4, 3)(rng) + 0.05),
        lambda g, a, b: (
            transposed(lambda x: slopes(a, b)(x, 0 * x), g, a),
            transposed(lambda x: slopes(a, b)(0 * x, x), g, b),
        ),
    ),
    Case(
        "_backward_Correlation_slope",
        lambda to_a, to_b, a, b: apply(patch_correlation.DistanceSlope(**BACK), to_a, to_b, a, b),
        (normal(1, 2, 4, 3), normal(1, 2, 4, 3), distinct(1, 2, 4, 3), lambda rng: distinct(1, 2, 4, 3)(rng) + 0.05),
        lambda to_a, to_b, a, b: slopes(a, b)(to_a, to_b),
    ),
]

CASES = [*CROP, *RESIZE, *ADAPTIVE, *WARP, *CORRELATION]
