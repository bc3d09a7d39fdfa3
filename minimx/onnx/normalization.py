"""Converters of normalizations.

ONNX has BatchNormalization and InstanceNormalization; the others are written with means and products, as their formulas are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .graph import Graph, Operand, Value, converts


@converts("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm")
def batch_norm(graph: Graph, op: Any, data: Value, gamma: Value, beta: Value, mean: Value, variance: Value) -> Any:
    axis = graph.axis(getattr(op, "axis", 1), data)
    order = list(range(data.ndim))
    if axis != 1:
        order[1], order[axis] = order[axis], order[1]
    scale: Operand = graph.array(np.ones(graph.fixed(gamma, 0), gamma.dtype)) if op.fix_gamma else gamma
    front = graph.permuted(data, order)
    mixed = data.dtype != gamma.dtype  # half precision, whose statistics are single: ONNX wants one dtype
    if mixed:
        front = graph.cast(front, gamma.dtype)
    result = graph.node("BatchNormalization", front, scale, beta, mean, variance, epsilon=float(op.eps))
    return graph.permuted(graph.cast(result, data.dtype) if mixed else result, order)


@converts("_contrib_BatchNormWithReLU")
def batch_norm_relu(graph: Graph, op: Any, *inputs: Value) -> Any:
    return graph.node("Relu", batch_norm(graph, op, *inputs))


@converts("InstanceNorm")
def instance_norm(graph: Graph, op: Any, data: Value, gamma: Value, beta: Value) -> Any:
    return graph.node("InstanceNormalization", data, gamma, beta, epsilon=float(op.eps))


@converts("LayerNorm")
def layer_norm(graph: Graph, op: Any, data: Value, gamma: Value, beta: Value) -> Any:
    axis = graph.axis(op.axis, data)
    normed, mean, deviation = standardized(graph, data, data, [axis], op.eps)
    scale, shift = (along(graph, each, axis, data.ndim) for each in (gamma, beta))
    return [graph.node("Add", graph.node("Mul", normed, scale), shift), mean, deviation]


def standardized(graph: Graph, operand: Operand, like: Value, axes: Sequence[int], eps: float) -> tuple[str, str, str]:
    """The data less their mean, divided by their deviation along `axes`; the mean; the deviation."""
    mean = graph.node("ReduceMean", operand, axes=list(axes), keepdims=1)
    rest = graph.node("Sub", operand, mean)
    variance = graph.node("ReduceMean", graph.node("Mul", rest, rest), axes=list(axes), keepdims=1)
    deviation = graph.node("Sqrt", graph.node("Add", variance, graph.number(eps, like)))
    return graph.node("Div", rest, deviation), mean, deviation


def along(graph: Graph, vector: Value, axis: int, ndim: int) -> Operand:
    """A vector that broadcasts along `axis` of an array of `ndim` axes."""
    return vector if axis == ndim - 1 else graph.node("Unsqueeze", vector, graph.ints(*range(1, ndim - axis)))


@converts("GroupNorm")
def group_norm(graph: Graph, op: Any, data: Value, gamma: Value, beta: Value) -> Any:
    groups = op.num_groups
    size = graph.fixed(data, 1) // groups
    apart = graph.node("Reshape", data, graph.ints(0, groups, -1))
    normed, mean, deviation = standardized(graph, apart, data, [2], op.eps)
    if gamma.shape == (groups,) and size != 1:  # a factor for each group
        scaled = graph.node("Mul", normed, along(graph, gamma, 1, 3))
        scaled = graph.node("Add", scaled, along(graph, beta, 1, 3))
        result = graph.node("Reshape", scaled, graph.shape(data.shape, scaled, data.shape))
    else:
        whole = graph.node("Reshape", normed, graph.shape(data.shape, normed, data.shape))
        scaled = graph.node("Mul", whole, along(graph, gamma, 1, data.ndim))
        result = graph.node("Add", scaled, along(graph, beta, 1, data.ndim))
    return [result, *(graph.node("Squeeze", each, graph.ints(2)) for each in (mean, deviation))]


@converts("L2Normalization")
def l2_normalization(graph: Graph, op: Any, data: Value) -> Any:
    axes = {"instance": list(range(1, data.ndim)), "channel": [1], "spatial": list(range(2, data.ndim))}[op.mode]
    squares = graph.node("ReduceSum", graph.node("Mul", data, data), graph.ints(*axes), keepdims=1)
    norm = graph.node("Sqrt", graph.node("Add", squares, graph.number(op.eps, data)))
    return graph.node("Div", data, norm)


@converts("LRN")
def lrn(graph: Graph, op: Any, data: Value) -> Any:
    missing = graph.ints(*range(data.ndim, 4)) if data.ndim < 4 else None  # runtimes want images
    image = data if missing is None else graph.node("Unsqueeze", data, missing)
    result = graph.node("LRN", image, alpha=float(op.alpha), beta=float(op.beta), bias=float(op.knorm), size=op.nsize)
    return result if missing is None else graph.node("Squeeze", result, missing)
