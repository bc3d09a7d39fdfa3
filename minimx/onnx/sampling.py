"""Converters of random numbers, which a runtime of ONNX draws by itself: other numbers than here, of the same distribution."""

from __future__ import annotations

from typing import Any

from .graph import TYPES, Graph, Value, converts


@converts("_random_uniform")
def uniform(graph: Graph, op: Any) -> Any:
    result = graph.outputs[0]
    lengths = [graph.fixed(result, axis) for axis in range(result.ndim)]
    return graph.node("RandomUniform", shape=lengths, dtype=TYPES[result.dtype.name], low=float(op.low), high=float(op.high))


@converts("_random_normal")
def normal(graph: Graph, op: Any) -> Any:
    result = graph.outputs[0]
    lengths = [graph.fixed(result, axis) for axis in range(result.ndim)]
    return graph.node("RandomNormal", shape=lengths, dtype=TYPES[result.dtype.name], mean=float(op.loc), scale=float(op.scale))


@converts("_random_uniform_like")
def uniform_like(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("RandomUniformLike", data, low=float(op.low), high=float(op.high))


@converts("_random_normal_like")
def normal_like(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("RandomNormalLike", data, mean=float(op.loc), scale=float(op.scale))
