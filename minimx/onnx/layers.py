"""Converters of layers with weights: fully connected ones, convolutions, embeddings, and products of matrices.

ONNX has channels behind the batch, as MXNet mostly does; data whose channels come last are transposed before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .graph import Graph, Operand, UnsupportedError, Value, converts


def channels_last(op: Any, data: Value) -> bool:
    """Whether the channels of `data` are the last axis."""
    return bool(op.layout) and op.layout.endswith("C") and data.ndim > 2


def to_front(graph: Graph, operand: Operand, ndim: int) -> Operand:
    """The channels, which come last, behind the batch."""
    return graph.permuted(operand, [0, ndim - 1, *range(1, ndim - 1)])


def to_back(graph: Graph, operand: Operand, ndim: int) -> Operand:
    return graph.permuted(operand, [0, *range(2, ndim), 1])


def geometry(op: Any) -> dict[str, Any]:
    """Attributes of the window of a convolution."""
    window = op.window
    return {"kernel_shape": list(window.kernel), "strides": list(window.stride), "pads": list(window.pad) * 2}


# ---- fully connected


@converts("FullyConnected")
def fully_connected(graph: Graph, op: Any, data: Value, weight: Value, bias: Value | None = None) -> Any:
    bias = None if op.no_bias else bias
    if op.flatten or data.ndim == 2:
        flat: Operand = data if data.ndim == 2 else graph.node("Flatten", data, axis=1)
        return graph.node("Gemm", flat, weight, bias, transB=1)
    product = graph.node("MatMul", data, graph.permuted(weight, [1, 0]))
    return product if bias is None else graph.node("Add", product, bias)


@converts("dot")
def dot(graph: Graph, op: Any, lhs: Value, rhs: Value) -> Any:
    """The last axis of lhs with the first of rhs; the transposed ones have their axes turned around."""
    if lhs.ndim == rhs.ndim == 1:
        return graph.node("ReduceSum", graph.node("Mul", lhs, rhs), keepdims=1)
    left = as_matrix(graph, lhs, not op.transpose_a)
    right = as_matrix(graph, rhs, op.transpose_b)
    if op.transpose_a:
        left = graph.node("Transpose", left, perm=[1, 0])
    if op.transpose_b:
        right = graph.node("Transpose", right, perm=[1, 0])
    product = graph.node("MatMul", left, right)
    return product if lhs.ndim == rhs.ndim == 2 else graph.node("Reshape", product, graph.shape(graph.outputs[0].shape))


def as_matrix(graph: Graph, value: Value, last: bool) -> Operand:
    """The value with two axes: the last apart from the others, or the first."""
    if value.ndim == 2:
        return value
    axis = value.ndim - 1 if last else 0
    length = graph.fixed(value, axis)
    return graph.node("Reshape", value, graph.ints(-1, length) if last else graph.ints(length, -1))


@converts("batch_dot", "_linalg_gemm2")
def batch_dot(graph: Graph, op: Any, lhs: Value, rhs: Value) -> Any:
    if getattr(op, "axis", -2) != -2:
        raise UnsupportedError(f"{graph.stem}: {op.name} with axis={op.axis} has no form in ONNX here; transpose the operands")
    product = graph.node("MatMul", last_two(graph, lhs, op.transpose_a), last_two(graph, rhs, op.transpose_b))
    alpha = getattr(op, "alpha", 1.0)
    return product if alpha == 1.0 else graph.node("Mul", product, graph.number(alpha, lhs))


def last_two(graph: Graph, value: Value, turned: bool) -> Operand:
    """The value with its last two axes exchanged if they are to be `turned`."""
    axes = list(range(value.ndim))
    return graph.permuted(value, [*axes[:-2], axes[-1], axes[-2]]) if turned else value


@converts("Embedding")
def embedding(graph: Graph, op: Any, data: Value, weight: Value) -> Any:
    return graph.node("Gather", weight, within(graph, graph.indices(data), op.input_dim), axis=0)


def within(graph: Graph, indices: Operand, length: int) -> str:
    """Numbers of elements, those beyond the ends moved to the ends."""
    return graph.node("Clip", indices, graph.array(0, "int64"), graph.array(length - 1, "int64"))


# ---- convolutions


@converts("Convolution", "Convolution_v1")
def convolution(graph: Graph, op: Any, data: Value, weight: Value, bias: Value | None = None) -> Any:
    last = channels_last(op, data)
    count = len(op.kernel_size)
    result = graph.node(
        "Conv", to_front(graph, data, data.ndim) if last else data, to_front(graph, weight, weight.ndim) if last else weight,
        None if op.no_bias else bias, dilations=list(op.dilate or (1,) * count), group=op.num_group, **geometry(op),
    )  # fmt: skip
    return to_back(graph, result, data.ndim) if last else result


@converts("Deconvolution")
def deconvolution(graph: Graph, op: Any, data: Value, weight: Value, bias: Value | None = None) -> Any:
    last = channels_last(op, data)
    count = len(op.kernel_size)
    given = geometry(op)
    dilations = list(op.dilate or (1,) * count)
    adjusted = list(op.adj or (0,) * count)
    if op.target_shape and any(op.target_shape):
        pads = []
        lengths = range(1, 1 + count) if last else range(2, 2 + count)
        for number, axis in enumerate(lengths):
            full = (graph.fixed(data, axis) - 1) * given["strides"][number]
            full += dilations[number] * (given["kernel_shape"][number] - 1) + 1
            surplus = full - op.target_shape[number]
            adjusted[number] = surplus % 2
            pads.append((surplus + 1) // 2)
        given["pads"] = pads + pads
    result = graph.node(
        "ConvTranspose", to_front(graph, data, data.ndim) if last else data, to_front(graph, weight, weight.ndim) if last else weight,
        None if op.no_bias else bias, dilations=dilations, group=op.num_group, output_padding=adjusted, **given,
    )  # fmt: skip
    return to_back(graph, result, data.ndim) if last else result


@converts("UpSampling")
def upsampling(graph: Graph, op: Any, *data: Value) -> Any:
    first = data[0]
    if op.sample_type == "bilinear":
        kernel = 2 * op.scale - op.scale % 2
        pad = (op.scale - 1 + 1) // 2 if op.scale % 2 == 0 else (op.scale - 1) // 2
        channels = graph.fixed(first, 1)
        return graph.node(
            "ConvTranspose", first, data[1], kernel_shape=[kernel] * 2, strides=[op.scale] * 2, pads=[pad] * 4, group=channels,
        )  # fmt: skip
    if len(data) > 1:
        raise UnsupportedError(
            f"{graph.stem}: UpSampling of several inputs has no form in ONNX here; use one for each, and concat"
        )
    scales = graph.array([1, 1, op.scale, op.scale], "float32")
    return graph.node(
        "Resize", first, None, scales, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    )


# ---- attention, with heads side by side as GluonNLP has them


def heads_of(graph: Graph, operand: Operand, count: int, number: int, heads: int, value: Value) -> str:
    """Part `number` of `count` of each head: (batch * heads, steps, size), from an array (steps, batch, heads * count * size)."""
    size = graph.fixed(value, 2) // (heads * count)
    apart = graph.node("Reshape", operand, graph.ints(0, -1, count, size))
    chosen = graph.node("Gather", apart, graph.array(number, "int64"), axis=2)
    return graph.node("Transpose", chosen, perm=[1, 0, 2])


def scores(graph: Graph, queries: Operand, keys: Operand, size: int, like: Value) -> str:
    scaled = graph.node("Mul", queries, graph.number(size**-0.5, like))
    return graph.node("MatMul", scaled, graph.node("Transpose", keys, perm=[0, 2, 1]))


def joined(graph: Graph, attention: Operand, values: Operand, heads: int, size: int) -> str:
    """What the heads say, side by side: (steps, batch, heads * size)."""
    together = graph.node("Transpose", graph.node("MatMul", attention, values), perm=[1, 0, 2])
    return graph.node("Reshape", together, graph.ints(0, -1, heads * size))


@converts("_contrib_interleaved_matmul_selfatt_qk")
def self_attention_scores(graph: Graph, op: Any, data: Value) -> Any:
    queries, keys = (heads_of(graph, data, 3, number, op.heads, data) for number in (0, 1))
    return scores(graph, queries, keys, graph.fixed(data, 2) // (3 * op.heads), data)


@converts("_contrib_interleaved_matmul_selfatt_valatt")
def self_attention_values(graph: Graph, op: Any, data: Value, attention: Value) -> Any:
    values = heads_of(graph, data, 3, 2, op.heads, data)
    return joined(graph, attention, values, op.heads, graph.fixed(data, 2) // (3 * op.heads))


@converts("_contrib_interleaved_matmul_encdec_qk")
def encoder_decoder_scores(graph: Graph, op: Any, queries: Value, keys_values: Value) -> Any:
    asked = heads_of(graph, queries, 1, 0, op.heads, queries)
    keys = heads_of(graph, keys_values, 2, 0, op.heads, keys_values)
    return scores(graph, asked, keys, graph.fixed(queries, 2) // op.heads, queries)


@converts("_contrib_interleaved_matmul_encdec_valatt")
def encoder_decoder_values(graph: Graph, op: Any, keys_values: Value, attention: Value) -> Any:
    values = heads_of(graph, keys_values, 2, 1, op.heads, keys_values)
    return joined(graph, attention, values, op.heads, graph.fixed(keys_values, 2) // (2 * op.heads))


@converts("_contrib_div_sqrt_dim")
def div_sqrt_dim(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Div", data, graph.number(graph.fixed(data, data.ndim - 1) ** 0.5, data))


def lengths_of(graph: Graph, value: Value, axes: Sequence[int]) -> list[int]:
    return [graph.fixed(value, axis) for axis in axes]
