"""Softmax and LayerNorm by oneDNN, along one axis. The operators are in minimx/ops/softmax.py and norm.py.

Not log_softmax: oneDNN's logarithm is off by 4e-6, of which a small loss would consist.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ... import storage
from ...device import Context
from ...op import Array, Spec
from .layout import Layout
from .library import INFERENCE, MEAN, RESULT, SCALE, SHIFT, SOFTMAX, SOURCE, TRAINING, USE_SCALE, USE_SHIFT, VARIANCE
from .primitive import Routine, Several, primitive

if TYPE_CHECKING:
    from ...ops.norm import LayerNormLayer
    from ...ops.softmax import Softmax


def softmax(op: Softmax, context: Context, data: Spec, length: Spec | None = None) -> Routine | None:
    """softmax without a temperature, lengths, or another dtype."""
    is_other = op.dtype is not None and op.dtype != data.dtype  # None would count as float64
    if op.temperature not in (None, 1.0) or length is not None or is_other:
        return None
    axis = op.axis % data.ndim
    layout = Layout.plain((math.prod(data.shape[:axis]), data.shape[axis], math.prod(data.shape[axis + 1 :])))
    code = primitive("softmax_forward", INFERENCE, SOFTMAX, layout, layout, 1)
    if code is None:
        return None
    run = Routine(context)
    run.add(code, {SOURCE: run.array(layout), RESULT: run.array(layout)})
    run.ordinary = 0  # NaN in a row must make NaN of all, as it does in NumPy
    return run


def layer_norm(op: LayerNormLayer, context: Context, data: Spec, gamma: Spec, beta: Spec) -> Several | None:
    """LayerNorm along the last axis."""
    length = data.shape[-1]
    if op.axis not in (-1, data.ndim - 1):
        return None
    rows = Layout.plain((data.size // length, length))
    statistics, vector = Layout.plain((data.size // length,)), Layout.plain((length,))
    code = primitive("layer_normalization_forward", TRAINING, rows, rows, statistics, op.eps, USE_SCALE | USE_SHIFT)
    if code is None:
        return None
    run = Routine(context)
    arguments = {SOURCE: run.array(rows), RESULT: run.array(rows), MEAN: run.array(statistics), VARIANCE: run.array(statistics)}
    run.add(code, {**arguments, SCALE: run.array(vector), SHIFT: run.array(vector)})

    def kernel(data: Array, gamma: Array, beta: Array) -> tuple[Array, ...]:
        result = storage.empty(Spec.of(data.shape, data.dtype), context)
        mean, variance = (np.empty(op.statistics(data.shape), np.float32) for _ in range(2))
        run(data, result, mean, variance, gamma, beta)
        variance += np.float32(op.eps)
        return result, mean, np.sqrt(variance, out=variance)

    return Several(run, kernel)
