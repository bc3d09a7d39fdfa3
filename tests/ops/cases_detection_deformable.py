"""Rows of ops/deformable.py. The oracle goes point by point, and its gradients are differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, RankError, ShapeError
from minimx.op import apply
from minimx.ops.deformable import (
    DeformableConvolution,
    DeformableGradient,
    ModulatedDeformableConvolution,
    ModulatedGradient,
)

from .cases_detection_positions import slope_of
from .harness import Bad, Case, Maker, normal, uniform


def value(image: np.ndarray, y: float, x: float, framed: bool) -> float:
    """The value at a point: 0 outside; `framed`: also the pixels outside are 0, otherwise the edge's go on to the next pixel."""
    height, width = image.shape
    inside = y > -1 and x > -1 if framed else y >= 0 and x >= 0
    if not inside or y >= height or x >= width:
        return 0.0
    total, top, left = 0.0, math.floor(y), math.floor(x)
    for row, column in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
        share = (1 - abs(y - row)) * (1 - abs(x - column))
        if framed:
            total += share * image[row, column] if 0 <= row < height and 0 <= column < width else 0
        else:
            total += share * image[min(row, height - 1), min(column, width - 1)]
    return total


def oracle(
    data: np.ndarray,
    offset: np.ndarray,
    mask: np.ndarray | None,
    weight: np.ndarray,
    bias: np.ndarray | None = None,
    stride: Any = (1, 1),
    dilate: Any = (1, 1),
    pad: Any = (0, 0),
    groups: int = 1,
    parts: int = 1,
) -> np.ndarray:
    filters, each, *kernel = weight.shape
    result = np.zeros((len(data), filters, *offset.shape[2:]))
    taps, channels = math.prod(kernel), data.shape[1]
    for example, row, column in np.ndindex(len(data), *offset.shape[2:]):
        columns = np.zeros((channels, *kernel))
        for channel, i, j in np.ndindex(columns.shape):
            point = channel // (channels // parts) * taps + i * kernel[1] + j
            dy, dx = offset[example, 2 * point : 2 * point + 2, row, column]
            y = row * stride[0] - pad[0] + i * dilate[0] + dy
            x = column * stride[1] - pad[1] + j * dilate[1] + dx
            columns[channel, i, j] = value(data[example, channel], y, x, mask is not None)
            if mask is not None:
                columns[channel, i, j] *= mask[example, point, row, column]
        for number in range(filters):
            first = number // (filters // groups) * each
            result[example, number, row, column] = (columns[first : first + each] * weight[number]).sum()
    return result if bias is None else result + bias[:, None, None]


NAMES = {"num_group": "groups", "num_deformable_group": "parts"}


def named(how: dict[str, Any]) -> dict[str, Any]:
    """Attributes as the oracle calls them."""
    return {
        NAMES.get(key, key): value for key, value in how.items() if key not in ("kernel", "num_filter", "no_bias", "im2col_step")
    }


def makers(
    modulated: bool, batch: int = 2, filters: int = 4, kernel: Any = (3, 3), reach: float = 1.3, channels: int = 4, **how: Any
) -> list[Maker]:
    """Data, offsets, numbers, weight and bias for images of 5 x 6 pixels. No offset is near a whole number."""
    lengths = (5, 6)
    stride, dilate, pad = (how.get(key, default) for key, default in (("stride", (1, 1)), ("dilate", (1, 1)), ("pad", (0, 0))))
    counts = [(length + 2 * p - d * (k - 1) - 1) // s + 1 for length, k, s, d, p in zip(lengths, kernel, stride, dilate, pad)]
    points = math.prod(kernel) * how.get("num_deformable_group", 1)

    def offsets(rng: np.random.Generator) -> np.ndarray:
        shape = (batch, 2 * points, *counts)
        return np.floor(rng.uniform(-reach, reach, shape)) + rng.uniform(0.1, 0.9, shape)

    return [
        normal(batch, channels, *lengths),
        offsets,
        *([uniform(0, 1, batch, points, *counts)] if modulated else []),
        normal(filters, channels // how.get("num_group", 1), *kernel),
        normal(filters),
    ]


def row(label: str, modulated: bool, no_bias: bool = False, bad: tuple[Bad, ...] = (), **how: Any) -> Case:
    inputs = makers(modulated, **how)
    batch, filters, _ = how.pop("batch", 2), how.pop("filters", 4), how.pop("reach", 0)
    how = {"kernel": (3, 3), "num_filter": filters, "no_bias": no_bias, **how}
    function: Callable[..., Any] = ModulatedDeformableConvolution if modulated else DeformableConvolution
    if no_bias:
        inputs.pop()

    def call(*tensors: Any) -> Any:
        return function(*tensors, **how)

    def wanted(data: np.ndarray, offset: np.ndarray, *others: np.ndarray) -> np.ndarray:
        return oracle(data, offset, *(others if modulated else (None, *others)), **named(how))

    return Case(
        f"_contrib_{function.__name__}",
        call,
        tuple(inputs),
        wanted,
        second=False,
        rtol={"float16": 5e-2, "float32": 1e-4},  # offsets are rounded, and sums are of 36 products
        bad=bad,
        label=f"{label} {batch}",
    )


def bad_call(match: str, error: type[Exception] = ShapeError, change: dict[str, Any] | None = None, **how: Any) -> Bad:
    shapes = {
        "data": (1, 4, 5, 5),
        "offset": (1, 18, 3, 3),
        "mask": (1, 9, 3, 3),
        "weight": (2, 4, 3, 3),
        "bias": (2,),
        **(change or {}),
    }

    def call(nd: Any) -> Any:
        arrays = {key: nd.array(np.ones(shape)) for key, shape in shapes.items() if shape is not None}
        return nd.contrib.ModulatedDeformableConvolution(**arrays, **{"kernel": (3, 3), "num_filter": 2, **how})

    return Bad(call, error, match)


ROWS = [
    case
    for modulated in (False, True)
    for case in (
        row("default", modulated),
        row("window", modulated, stride=(2, 1), dilate=(1, 2), pad=(1, 2), filters=2),
        row("groups", modulated, num_group=2, num_deformable_group=2, kernel=(2, 3), no_bias=True),
        row("parts", modulated, num_deformable_group=4, kernel=(1, 2), filters=3, batch=1),
        row("far", modulated, reach=6, kernel=(2, 1)),
    )
]

GRADIENTS = [
    Case(
        "_backward__contrib_DeformableConvolution",
        lambda head, *tensors: apply(DeformableGradient((2, 2), (2, 2), (1, 0), num_filter=2, no_bias=True), head, *tensors),
        (normal(1, 2, 3, 3), *makers(False, 1, 2, (2, 2), channels=2, pad=(1, 0), stride=(2, 2))[:3]),
        lambda head, *arrays: tuple(
            slope_of(
                lambda x, offset, weight: oracle(x, offset, None, weight, stride=(2, 2), pad=(1, 0)), head, list(arrays), place
            )
            for place in range(3)
        ),
        grad=False,
        rtol={"float16": np.inf, "float32": 1e-4, "float64": 1e-8},  # the oracle's differences
    ),
    Case(
        "_backward__contrib_ModulatedDeformableConvolution",
        lambda head, *tensors: apply(ModulatedGradient((2, 2), (2, 2), (1, 0), num_filter=2, no_bias=True), head, *tensors),
        (normal(1, 2, 3, 3), *makers(True, 1, 2, (2, 2), channels=2, pad=(1, 0), stride=(2, 2))[:4]),
        lambda head, *arrays: tuple(
            slope_of(lambda *inputs: oracle(*inputs, stride=(2, 2), pad=(1, 0)), head, list(arrays), place) for place in range(4)
        ),
        grad=False,
        rtol={"float16": np.inf, "float32": 1e-4, "float64": 1e-8},  # the oracle's differences
    ),
]

BAD = [
    row(
        "errors",
        True,
        kernel=(1, 1),
        bad=(
            bad_call("kernel is required", ArgumentError, kernel=()),
            bad_call("wants 2 lengths; there is deformable convolution of images only", ArgumentError, kernel=(3,)),
            bad_call("num_filter=0 is not positive", ArgumentError, num_filter=0),
            bad_call("layout='NHWC' is not known; choose NCHW", ArgumentError, layout="NHWC"),
            bad_call("num_group=3 does not divide the channels of data: 4", ArgumentError, num_group=3),
            bad_call("num_group=4 does not divide num_filter=2", ArgumentError, num_group=4),
            bad_call("num_deformable_group=0 does not divide", ArgumentError, num_deformable_group=0),
            bad_call(r"offset has shape \(1, 18, 3, 3\), data of shape .* needs \(1, 36, 3, 3\)", num_deformable_group=2),
            bad_call(r"mask has shape \(1, 9, 3, 4\)", change={"mask": (1, 9, 3, 4)}),
            bad_call(r"weight has shape \(2, 4, 3, 2\)", change={"weight": (2, 4, 3, 2)}),
            bad_call(r"bias has shape \(3,\)", change={"bias": (3,)}),
            bad_call("bias is given but not used", ArgumentError, no_bias=True),
            bad_call("bias", ArgumentError, change={"bias": None}),
            bad_call("data needs 4 axes", RankError, change={"data": (4, 5, 5)}),
            bad_call("reaches over", change={"data": (1, 4, 2, 2)}),
            bad_call("images without channels", change={"data": (1, 0, 5, 5)}),
            bad_call("im2col_step=0", im2col_step=0),
            Bad(
                lambda nd: nd.contrib.DeformableConvolution(
                    *[nd.ones(shape, dtype="int32") for shape in ((1, 1, 2, 2), (1, 2, 2, 2), (1, 1, 1, 1))],
                    kernel=(1, 1), num_filter=1, no_bias=True,
                ),
                DTypeError,
                "data is int32",
            ),
        ),
    )
]  # fmt: skip

CASES = [*ROWS, *GRADIENTS, *BAD]
