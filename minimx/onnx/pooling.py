"""Converters of pooling and of resizing: what makes images smaller or larger without weights.

ONNX means by rounding up (`ceil_mode`) something that its runtimes do in different ways at the edges. So a window that reaches over the
end of the data is written as padding that makes it fit, and a mean as the mean of whole windows, times what the padding takes from it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .graph import Dynamic, Graph, Operand, UnsupportedError, Value, converts
from .layers import channels_last, lengths_of, to_back, to_front

GLOBAL = {"max": "GlobalMaxPool", "avg": "GlobalAveragePool"}


@converts("Pooling")
def pooling(graph: Graph, op: Any, data: Value) -> Any:
    last = channels_last(op, data)
    front = to_front(graph, data, data.ndim) if last else data
    axes = list(range(1, data.ndim - 1)) if last else list(range(2, data.ndim))
    result = over_all(graph, op, front, data) if op.global_pool else windows(graph, op, front, data, axes)
    return to_back(graph, result, data.ndim) if last else result


def over_all(graph: Graph, op: Any, operand: Operand, data: Value) -> str:
    """One window that is all of the data."""
    axes = list(range(2, data.ndim))
    if op.pool_type in GLOBAL:
        return graph.node(GLOBAL[op.pool_type], operand)
    if op.pool_type == "sum":
        return graph.node("ReduceSum", operand, graph.ints(*axes), keepdims=1)
    total = graph.node("ReduceSum", powered(graph, op, operand, data), graph.ints(*axes), keepdims=1)
    return rooted(graph, op, total, data)


def powered(graph: Graph, op: Any, operand: Operand, data: Value) -> Operand:
    size = graph.node("Abs", operand)
    return size if op.p_value == 1 else graph.node("Pow", size, graph.number(op.p_value, data))


def rooted(graph: Graph, op: Any, operand: Operand, data: Value) -> Any:
    return operand if op.p_value == 1 else graph.node("Pow", operand, graph.number(1 / op.p_value, data))


def windows(graph: Graph, op: Any, operand: Operand, data: Value, axes: list[int]) -> Any:
    """Pooling with a window that moves."""
    window = op.window
    kernel, stride, pad = list(window.kernel), list(window.stride), list(window.pad)
    beyond = [0] * len(kernel)
    outside = any(p >= k for p, k in zip(pad, kernel))  # whether a window can lie in the padding altogether
    if op.pooling_convention != "valid":
        if any(isinstance(data.shape[axis], Dynamic) for axis in axes):
            if op.pool_type != "max" or op.pooling_convention != "full":
                raise UnsupportedError(
                    f"{graph.stem}: pooling with pooling_convention={op.pooling_convention!r} needs lengths that are fixed; fix them "
                    "in dynamic_input_shapes"
                )
            return graph.node("MaxPool", operand, kernel_shape=kernel, strides=stride, pads=pad + pad, ceil_mode=1)
        lengths = lengths_of(graph, data, axes)
        ends = [(n - 1) * s + k for n, s, k in zip(op.counts(tuple(lengths)), stride, kernel)]
        beyond = [max(end - length - 2 * p, 0) for end, length, p in zip(ends, lengths, pad)]
        outside = outside or any(end - k - p >= length for end, k, p, length in zip(ends, kernel, pad, lengths))
    pads = pad + [p + more for p, more in zip(pad, beyond)]
    given: dict[str, Any] = {"kernel_shape": kernel, "strides": stride}
    if op.pool_type == "max":
        operand, pads = padded(graph, operand, data, pads, kernel, float(np.finfo(data.dtype).min), outside)
        return graph.node("MaxPool", operand, pads=pads, **given)
    if op.pool_type == "avg" and not any(beyond) and (op.count_include_pad is False or not any(pad)):
        return graph.node("AveragePool", operand, pads=pads, count_include_pad=0, **given)
    if op.pool_type == "lp":
        operand = powered(graph, op, operand, data)
    operand, pads = padded(graph, operand, data, pads, kernel, 0.0)
    mean = graph.node("AveragePool", operand, pads=pads, count_include_pad=1, **given)
    area: Any = float(math.prod(kernel))
    if op.pool_type == "avg":
        if not any(beyond) and op.count_include_pad is not False:
            return mean
        lengths = lengths_of(graph, data, axes)
        area = np.asarray(area / op.divisors(np, tuple(lengths), op.counts(tuple(lengths)), data.dtype), data.dtype)
    total = graph.node("Mul", mean, graph.array(area, data.dtype))
    return rooted(graph, op, total, data) if op.pool_type == "lp" else total


def padded(
    graph: Graph, operand: Operand, data: Value, pads: list[int], kernel: list[int], value: float, outside: bool = False
) -> tuple[Operand, list[int]]:
    """Padding as an operator of its own where it is as long as the window, which runtimes refuse, or a window sees nothing else."""
    count = len(kernel)
    if not outside and all(pad < length for pad, length in zip(pads, kernel * 2)):
        return operand, pads
    ends = graph.ints(0, 0, *pads[:count], 0, 0, *pads[count:])
    return graph.node("Pad", operand, ends, graph.number(value, data), mode="constant"), [0] * (2 * count)


@converts("_contrib_AdaptiveAvgPooling2D")
def adaptive_average(graph: Graph, op: Any, data: Value) -> Any:
    """Each row of results is a mean of some rows: a product with a matrix for each of the two axes."""
    wanted = (op.output_size * 2)[:2] if op.output_size else (1, 1)
    if wanted == (1, 1):
        return graph.node("GlobalAveragePool", data)
    rows, columns = lengths_of(graph, data, (2, 3))
    if rows % wanted[0] == 0 and columns % wanted[1] == 0:
        size = [rows // wanted[0], columns // wanted[1]]
        return graph.node("AveragePool", data, kernel_shape=size, strides=size)
    left = graph.array(means(rows, wanted[0]), data.dtype)
    right = graph.array(means(columns, wanted[1]).T, data.dtype)
    return graph.node("MatMul", graph.node("MatMul", left, data), right)


def means(length: int, count: int) -> np.ndarray[Any, Any]:
    """The matrix that takes `length` numbers to the means of `count` runs."""
    matrix = np.zeros((count, length))
    for row in range(count):
        low, high = row * length // count, -(-(row + 1) * length // count)
        matrix[row, low:high] = 1 / (high - low)
    return matrix


@converts("_contrib_BilinearResize2D")
def bilinear_resize(graph: Graph, op: Any, data: Value, like: Value | None = None) -> Any:
    sizes = graph.shape(graph.outputs[0].shape)
    mode = "align_corners" if op.align_corners else "half_pixel"
    return graph.node("Resize", data, None, None, sizes, mode="linear", coordinate_transformation_mode=mode)


@converts("Pad")
def pad(graph: Graph, op: Any, data: Value) -> Any:
    ends = graph.ints(*op.pad_width[0::2], *op.pad_width[1::2])
    value = graph.number(op.constant_value, data) if op.mode == "constant" else None
    return graph.node("Pad", data, ends, value, mode=op.mode)
