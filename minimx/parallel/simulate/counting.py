"""How many floating-point operations an operator takes: exact for products and convolutions, an estimate for the rest.

A multiply-add counts as two operations. The engine estimates time (engine/front.py), which this does not: a machine that is modelled has
its own speed. Book: chapter 11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...op import Kind, Op, Spec
from ...ops.conv import ConvolutionLayer, ConvolutionWeight, Convolving
from ...ops.deconv import DeconvolutionLayer
from ...ops.rnn import Recurrent


def flops(op: Op, read: Sequence[Spec], written: Sequence[Spec]) -> float:
    """FLOP of one run of an operator on arrays of these specs; those that are left out do not count."""
    if op.kind is not Kind.GEMM or len(read) < 2 or not written:
        return float(sum(spec.size for spec in written))
    if isinstance(op, Convolving):
        return 2.0 * _convolution(op, read, written)
    if isinstance(op, Recurrent):
        return 2.0 * _recurrent(read, written)
    return 2.0 * _product(read[0], read[1], written[0])


def _product(one: Spec, other: Spec, result: Spec) -> float:
    """Multiply-adds of (M, K) by (K, N) to (M, N): the square root of the three sizes' product is M K N, for each matrix of a batch."""
    ranks = {len(spec.shape) for spec in (one, other, result)}
    batch = math.prod(result.shape[:-2]) if ranks == {len(result.shape)} else 1
    return math.sqrt(float(one.size) * other.size * result.size / max(batch, 1))


def _convolution(op: Any, read: Sequence[Spec], written: Sequence[Spec]) -> float:
    """Each number of what a window gives is a sum over the window and the channels of its group."""
    if isinstance(op, ConvolutionLayer):
        head, weight = written[0], read[1]
    elif isinstance(op, DeconvolutionLayer):
        head, weight = read[0], read[1]
    elif isinstance(op, ConvolutionWeight):
        head, weight = read[1], written[0]
    else:
        head, weight = read[0], read[1]
    return float(head.size) * weight.size / max(weight.shape[0], 1)


def _recurrent(read: Sequence[Spec], written: Sequence[Spec]) -> float:
    """Each step uses all parameters (the largest vector) once for every sample; its gradient does so twice, for the inputs and for
    them."""
    parameters = max((spec.size for spec in read if len(spec.shape) == 1), default=0)
    data = next((spec for spec in read if len(spec.shape) == 3), read[0])
    backward = any(spec.size == parameters and len(spec.shape) == 1 for spec in written)
    return float(math.prod(data.shape[:2])) * parameters * (2 if backward else 1)


__all__ = ["flops"]
