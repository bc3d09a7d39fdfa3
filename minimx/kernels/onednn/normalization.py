"""BatchNorm and its gradient by oneDNN. The operators are in minimx/ops/batchnorm.py.

It is three times as fast as NumPy where the channels are the last axis. Where they are not, NumPy adds up whole rows, which is faster
than what oneDNN does, and more exact: oneDNN adds up element by element in single precision, so that it may do so for as many only as
leave an error of 1e-5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ... import storage
from ...device import Context
from ...op import Array, Spec
from .layout import Layout
from .library import (
    BACKWARD,
    INFERENCE,
    MEAN,
    RESULT,
    SCALE,
    SHIFT,
    SOURCE,
    TO_RESULT,
    TO_SCALE,
    TO_SHIFT,
    TO_SOURCE,
    TRAINING,
    USE_SCALE,
    USE_SHIFT,
    USE_STATISTICS,
    VARIANCE,
)
from .primitive import Primitive, Routine, Several, primitive

if TYPE_CHECKING:
    from ...ops.batchnorm import BatchNormBackward, BatchNormLayer, Channels

MANY = 1 << 16  # elements of a channel
FEW = 1 << 12  # elements, below which NumPy is as fast


def _data(op: Channels, spec: Spec) -> Layout | None:
    """The layout of data as an image of one row whose channels are last; None for other data, which NumPy does better."""
    before, channels, after = op.seen(spec.shape)
    if after != 1 or before > MANY or spec.size < FEW:
        return None
    return Layout.plain((1, channels, before), (before * channels, 1, channels))


def _flags(op: BatchNormLayer | BatchNormBackward) -> int:
    return USE_SHIFT if op.fix_gamma else USE_SHIFT | USE_SCALE


def _forward(op: BatchNormLayer | BatchNormBackward, layout: Layout, kind: int, more: int = 0) -> Primitive | None:
    return primitive("batch_normalization_forward", kind, layout, layout, op.eps, _flags(op) | more)


def forward(op: BatchNormLayer, context: Context, data: Spec, gamma: Spec, *vectors: Spec) -> Several | None:
    layout, vector = _data(op, data), Layout.plain(gamma.shape)
    if layout is None:
        return None
    code = _forward(op, layout, TRAINING) if op.of_batch else _forward(op, layout, INFERENCE, USE_STATISTICS)
    if code is None:
        return None
    run = Routine(context)
    source, result, mean, variance, shift, scale = run.array(layout), run.array(layout), *(run.array(vector) for _ in range(4))
    arguments = {SOURCE: source, RESULT: result, MEAN: mean, VARIANCE: variance, SHIFT: shift}
    run.add(code, arguments if op.fix_gamma else {**arguments, SCALE: scale})

    def kernel(data: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array) -> tuple[Array, ...]:
        result = storage.empty(Spec.of(data.shape, data.dtype), context)
        mean, variance = moving_mean, moving_var
        if op.of_batch:
            mean, variance = np.empty_like(gamma), np.empty_like(gamma)
        run(data, result, mean, variance, beta, gamma)
        return result, mean.copy() if mean is moving_mean else mean, 1 / np.sqrt(variance + np.float32(op.eps))

    return Several(run, kernel)


def backward(op: BatchNormBackward, context: Context, head: Spec, data: Spec, gamma: Spec, *vectors: Spec) -> Several | None:
    layout, vector = _data(op, data), Layout.plain(gamma.shape)
    if layout is None:
        return None
    hint = _forward(op, layout, TRAINING)
    code = hint and primitive("batch_normalization_backward", BACKWARD, layout, layout, layout, op.eps, _flags(op), hint)
    if code is None:
        return None
    run = Routine(context)
    to_result, source, to_source = run.array(layout), run.array(layout), run.array(layout)
    mean, variance, scale, to_scale, to_shift = (run.array(vector) for _ in range(5))
    arguments = {TO_RESULT: to_result, SOURCE: source, TO_SOURCE: to_source, MEAN: mean, VARIANCE: variance, TO_SHIFT: to_shift}
    run.add(code, arguments if op.fix_gamma else {**arguments, SCALE: scale, TO_SCALE: to_scale})

    def kernel(
        head: Array, data: Array, gamma: Array, mean: Array, scale: Array, moving_mean: Array, moving_var: Array
    ) -> tuple[Array, ...]:
        variance = 1 / (scale * scale) - np.float32(op.eps)
        op.move(moving_mean, mean)
        op.move(moving_var, variance)
        result = storage.empty(Spec.of(data.shape, data.dtype), context)
        to_gamma, to_beta = np.zeros_like(gamma), np.empty_like(gamma)
        run(head, data, result, mean, variance, gamma, to_gamma, to_beta)
        return result, to_gamma, to_beta

    return Several(run, kernel)
