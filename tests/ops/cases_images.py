"""Rows of ops/columns.py, upsampling.py and lrn.py: im2col, col2im, UpSampling, LRN."""

from __future__ import annotations

from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, ShapeError
from minimx.ops import columns, lrn, upsampling

from .cases_conv import deconvolution
from .harness import Bad, Case, normal

# ---- columns


def im2col(x: np.ndarray, kernel: Any, stride: Any, dilate: Any, pad: Any) -> np.ndarray:
    """One window at a time."""
    framed = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pad)])
    spans = [d * (k - 1) + 1 for d, k in zip(dilate, kernel)]
    counts = [(n - span) // s + 1 for n, span, s in zip(framed.shape[2:], spans, stride)]
    found = []
    for place in np.ndindex(*counts):
        window = tuple(slice(p * s, p * s + span, d) for p, s, span, d in zip(place, stride, spans, dilate))
        found.append(framed[(slice(None), slice(None), *window)].reshape(len(x), -1))
    return np.stack(found, axis=-1)


def col2im(columns: np.ndarray, size: Any, kernel: Any, stride: Any, dilate: Any, pad: Any) -> np.ndarray:
    """Numbers the pixels, and adds each element of the columns to the pixel whose number im2col puts there."""
    channels = columns.shape[1] // int(np.prod(kernel))
    numbers = np.arange(1.0, channels * np.prod(size) + 1).reshape(1, channels, *size)  # 0 is the padding
    places = im2col(numbers, kernel, stride, dilate, pad)[0].astype(int)
    result = np.zeros((len(columns), channels * int(np.prod(size)) + 1))
    for example, row in zip(columns, result):
        np.add.at(row, places, example)
    return result[:, 1:].reshape(len(columns), channels, *size)


WINDOW = ((3, 2), (2, 1), (1, 2), (1, 0))

COLUMNS = [
    Case(
        "im2col",
        lambda x: columns.im2col(x, *WINDOW),
        (normal(2, 3, 5, 4),),
        lambda x: im2col(x, *WINDOW),
        bad=(
            Bad(
                lambda nd: nd.im2col(nd.ones((1, 2, 3)), kernel=(2, 2)),
                ShapeError,
                r"data needs 4 axes \(batch, channels, height, width\), got \(1, 2, 3\)",
            ),
            Bad(lambda nd: nd.im2col(nd.ones((1, 2, 3)), kernel=(4,)), ShapeError, r"reaches over \(4,\), but data has \(3,\)"),
            Bad(lambda nd: nd.im2col(nd.ones((1, 2, 3)), kernel=()), ArgumentError, "kernel is required: 1, 2 or 3 lengths"),
            Bad(lambda nd: nd.im2col(nd.ones((1, 2, 3), dtype="int32"), kernel=(2,)), DTypeError, "data is int32"),
        ),
    ),
    Case(
        "im2col",
        lambda x: columns.im2col(x, 2, pad=1),
        (normal(1, 2, 3),),
        lambda x: im2col(x, (2,), (1,), (1,), (1,)),
        label="1D",
    ),
    Case(
        "im2col",
        lambda x: columns.im2col(x, (2, 1, 2)),
        (normal(1, 2, 3, 2, 3),),
        lambda x: im2col(x, (2, 1, 2), (1, 1, 1), (1, 1, 1), (0, 0, 0)),
        label="3D",
    ),
    Case(
        "col2im",
        lambda x: columns.col2im(x, (5, 4), *WINDOW),
        (normal(2, 12, 6),),
        lambda x: col2im(x, (5, 4), *WINDOW),
        bad=(
            Bad(
                lambda nd: nd.col2im(nd.ones((1, 4, 3)), output_size=(3, 3), kernel=(2, 2)),
                ShapeError,
                r"data has shape \(1, 4, 3\), kernel=\(2, 2\) and output_size=\(3, 3\) need \(N, 4 C, 4\)",
            ),
            Bad(lambda nd: nd.col2im(nd.ones((1, 4, 3)), kernel=(2, 2)), ArgumentError, r"output_size=\(\) has 0 lengths"),
        ),
    ),
]

# ---- UpSampling


def repeated(x: np.ndarray, factor: int) -> np.ndarray:
    return np.kron(x, np.ones((factor, factor)))


def outside_kernel(call: Any, inputs: Any, oracle: Any, label: str) -> Case:
    """A row of a variant whose class is not the registered one: a call of that one is added, and given no weight."""

    def both(*given: Any) -> Any:
        return call(*given) + 0 * upsampling.UpSampling(given[0], scale=3, sample_type="nearest")

    return Case("UpSampling", both, inputs, oracle, label=label, rtol={"float32": 1e-4})  # sums of products whose terms cancel


UPSAMPLING = [
    Case(
        "UpSampling",
        lambda x: upsampling.UpSampling(x, scale=2, sample_type="nearest"),
        (normal(2, 3, 2, 4),),
        lambda x: repeated(x, 2),
        bad=(
            Bad(
                lambda nd: nd.UpSampling(nd.ones((1, 1, 2, 2)), sample_type="nearest"),
                ArgumentError,
                "scale=0 must not be less than 1",
            ),
            Bad(lambda nd: nd.UpSampling(nd.ones((1, 1, 2, 2)), scale=2), ArgumentError, "sample_type='' is not known"),
            Bad(
                lambda nd: nd.UpSampling(nd.ones((1, 1, 2)), scale=2, sample_type="nearest"),
                ShapeError,
                r"data0 needs 4 axes \(batch, channels, height, width\), got \(1, 1, 2\)",
            ),
            Bad(
                lambda nd: nd.UpSampling(nd.ones((1, 1, 2, 2)), nd.ones((1, 1, 3, 3)), scale=2, sample_type="nearest"),
                ShapeError,
                r"data1 has shape \(1, 1, 3, 3\), which does not fit \(4, 4\) a whole number of times",
            ),
            Bad(
                lambda nd: nd.UpSampling(nd.ones((1, 1, 2, 2)), nd.ones((2, 1, 2, 2)), scale=2, sample_type="nearest"),
                ShapeError,
                "their examples must be as many",
            ),
            Bad(
                lambda nd: nd.UpSampling(nd.ones((1, 1, 2, 2)), scale=2, sample_type="bilinear"),
                ArgumentError,
                "'weight' is missing",
            ),
            Bad(
                lambda nd: nd.UpSampling(
                    nd.ones((1, 3, 2, 2)), nd.ones((2, 1, 4, 4)), scale=2, sample_type="bilinear", num_filter=2
                ),
                ArgumentError,
                r"num_filter=2, data of shape \(1, 3, 2, 2\) needs 3",
            ),
        ),
    ),
    Case(
        "UpSampling",
        lambda x, y, z: upsampling.UpSampling(x, y, z, scale=4, sample_type="nearest", num_args=3),
        (normal(2, 3, 1, 2), normal(2, 1, 2, 4), normal(2, 2, 4, 8)),
        lambda x, y, z: np.concatenate([repeated(x, 4), repeated(y, 2), z], 1),
        label="concat",
    ),
    Case(
        "UpSampling",
        lambda x, y: upsampling.UpSampling(x, y, scale=4, sample_type="nearest", multi_input_mode="sum"),
        (normal(2, 3, 1, 2), normal(2, 3, 2, 4)),
        lambda x, y: repeated(x, 4) + repeated(y, 2),
        label="sum",
    ),
    outside_kernel(
        lambda x, w: upsampling.UpSampling(x, w, scale=3, sample_type="bilinear", num_filter=2),
        (normal(2, 2, 3, 2), normal(2, 1, 5, 5)),
        lambda x, w: deconvolution(x, w, stride=(3, 3), pad=(1, 1), groups=2),
        "bilinear",
    ),
]


# ---- LRN


def normalized(x: np.ndarray, alpha: float, beta: float, knorm: float, nsize: int) -> np.ndarray:
    """One channel at a time."""
    result = np.empty_like(x)
    for channel in range(x.shape[1]):
        beside = x[:, max(channel - nsize // 2, 0) : channel + nsize // 2 + 1]
        result[:, channel] = x[:, channel] / (knorm + alpha / nsize * (beside**2).sum(1)) ** beta
    return result


LRN = [
    Case(
        "LRN",
        lambda x: lrn.LRN(x, 0.5, 0.75, 1.5, 3),
        (normal(2, 5, 2, 3),),
        lambda x: normalized(x, 0.5, 0.75, 1.5, 3),
        bad=(
            Bad(lambda nd: nd.LRN(nd.ones((1, 2, 3, 3)), nsize=2), ArgumentError, "nsize=2 must be an odd number"),
            Bad(lambda nd: nd.LRN(nd.ones((1, 2, 3, 3))), ArgumentError, "nsize=0 must be an odd number"),
            Bad(lambda nd: nd.LRN(nd.ones((3,)), nsize=1), ShapeError, r"data has shape \(3,\), wants \(N, C, ...\)"),
            Bad(lambda nd: nd.LRN(nd.ones((1, 2), dtype="int32"), nsize=1), DTypeError, "data is int32"),
        ),
    ),
    Case("LRN", lambda x: lrn.LRN(x, nsize=5), (normal(2, 3),), lambda x: normalized(x, 1e-4, 0.75, 2, 5), label="wide"),
]

CASES = [*COLUMNS, *UPSAMPLING, *LRN]
