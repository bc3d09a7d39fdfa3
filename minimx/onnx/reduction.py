"""Converters of reductions, and of operators that look for elements: the largest, the sorted, those at given places."""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph import Graph, Operand, UnsupportedError, Value, converts
from .layers import within


def axes_of(graph: Graph, op: Any, data: Value) -> list[int]:
    """The axes that a reduction removes."""
    if op.axis is None or op.axis == ():
        return list(range(data.ndim))
    given = op.axis if isinstance(op.axis, tuple) else (op.axis,)
    axes = sorted({graph.axis(axis, data) for axis in given})
    return [axis for axis in range(data.ndim) if axis not in axes] if getattr(op, "exclude", False) else axes


def reduced(graph: Graph, kind: str, op: Any, operand: Operand, data: Value) -> str:
    """A reduction of ONNX; what would be without axes gets the one that it has here."""
    axes = axes_of(graph, op, data)
    if not axes:  # of no axis: the elements as they are
        return graph.node("Identity", operand)
    if kind == "ReduceSum":
        result = graph.node(kind, operand, graph.ints(*axes), keepdims=int(op.keepdims))
    else:
        result = graph.node(kind, operand, axes=axes, keepdims=int(op.keepdims))
    return as_array(graph, result, len(axes) == data.ndim and not op.keepdims)


def as_array(graph: Graph, operand: str, alone: bool) -> str:
    """A number `alone` as an array of one."""
    return graph.node("Reshape", operand, graph.ints(1)) if alone else operand


@converts("sum")
def sum_(graph: Graph, op: Any, data: Value) -> Any:
    return reduced(graph, "ReduceSum", op, data, data)


@converts("mean")
def mean(graph: Graph, op: Any, data: Value) -> Any:
    return reduced(graph, "ReduceMean", op, data, data)


@converts("max")
def max_(graph: Graph, op: Any, data: Value) -> Any:
    return reduced(graph, "ReduceMax", op, data, data)


@converts("min")
def min_(graph: Graph, op: Any, data: Value) -> Any:
    return reduced(graph, "ReduceMin", op, data, data)


@converts("prod")
def prod(graph: Graph, op: Any, data: Value) -> Any:
    return reduced(graph, "ReduceProd", op, data, data)


@converts("norm")
def norm(graph: Graph, op: Any, data: Value) -> Any:
    result = reduced(graph, "ReduceL1" if op.ord == 1 else "ReduceL2", op, data, data)
    wanted = graph.outputs[0].dtype
    return result if wanted == data.dtype else graph.cast(result, wanted)


# ---- places of elements


@converts("argmax")
def argmax(graph: Graph, op: Any, data: Value) -> Any:
    return place(graph, "ArgMax", op, data)


@converts("argmin")
def argmin(graph: Graph, op: Any, data: Value) -> Any:
    return place(graph, "ArgMin", op, data)


@converts("argmax_channel")
def argmax_channel(graph: Graph, op: Any, data: Value) -> Any:
    return graph.cast(graph.node("ArgMax", data, axis=1, keepdims=0), graph.outputs[0].dtype)


def place(graph: Graph, kind: str, op: Any, data: Value) -> str:
    if op.axis is None:
        flat = graph.node("Reshape", data, graph.ints(-1))
        found = graph.node(kind, flat, axis=0, keepdims=1)
        if op.keepdims and data.ndim > 1:
            found = graph.node("Reshape", found, graph.ints(*[1] * data.ndim))
    else:
        found = graph.node(kind, data, axis=graph.axis(op.axis, data), keepdims=int(op.keepdims))
        found = as_array(graph, found, data.ndim == 1 and not op.keepdims)
    return graph.cast(found, graph.outputs[0].dtype)


@converts("topk")
def topk(graph: Graph, op: Any, data: Value) -> Any:
    if op.ret_typ not in ("value", "indices", "both"):
        raise UnsupportedError(
            f"{graph.stem}: topk with ret_typ={op.ret_typ!r} has no form in ONNX here; use 'value', 'indices' or 'both'"
        )
    operand, axis, length = along_axis(graph, op, data)
    count = graph.ints(op.k if op.k > 0 else length)
    values, indices = graph.nodes_of("TopK", [operand, count], 2, axis=axis, largest=int(not op.is_ascend), sorted=1)
    if op.ret_typ == "value":
        return values
    found = graph.cast(indices, op.dtype)
    return found if op.ret_typ == "indices" else [values, found]


@converts("sort")
def sort(graph: Graph, op: Any, data: Value) -> Any:
    operand, axis, length = along_axis(graph, op, data)
    return graph.nodes_of("TopK", [operand, graph.ints(length)], 2, axis=axis, largest=int(not op.is_ascend), sorted=1)[0]


@converts("argsort")
def argsort(graph: Graph, op: Any, data: Value) -> Any:
    operand, axis, length = along_axis(graph, op, data)
    found = graph.nodes_of("TopK", [operand, graph.ints(length)], 2, axis=axis, largest=int(not op.is_ascend), sorted=1)[1]
    return graph.cast(found, op.dtype)


def along_axis(graph: Graph, op: Any, data: Value) -> tuple[Operand, int, int]:
    """What is sorted, along which axis, and how many elements that has; without an axis the data in one row."""
    if op.axis is None:
        length = int(np.prod([graph.fixed(data, axis) for axis in range(data.ndim)]))
        return graph.node("Reshape", data, graph.ints(-1)), 0, length
    axis = graph.axis(op.axis, data)
    return data, axis, graph.fixed(data, axis)


# ---- elements at given places


@converts("take")
def take(graph: Graph, op: Any, data: Value, indices: Value) -> Any:
    axis = graph.axis(op.axis, data)
    length = graph.fixed(data, axis)
    where: Operand = graph.indices(indices)
    if op.mode == "clip":
        where = within(graph, where, length)
    elif op.mode == "wrap":
        where = graph.node("Mod", where, graph.array(length, "int64"))
    return graph.node("Gather", data, where, axis=axis)


@converts("gather_nd")
def gather_nd(graph: Graph, op: Any, data: Value, indices: Value) -> Any:
    """MXNet has the coordinates first, ONNX last."""
    order = [*range(1, indices.ndim), 0]
    return graph.node("GatherND", data, graph.permuted(graph.indices(indices), order))


@converts("pick")
def pick(graph: Graph, op: Any, data: Value, index: Value) -> Any:
    if op.axis is None or op.mode != "clip":
        raise UnsupportedError(
            f"{graph.stem}: pick with axis={op.axis}, mode={op.mode!r} has no form in ONNX here; give axis, mode='clip'"
        )
    axis = graph.axis(op.axis, data)
    where: Operand = within(graph, graph.indices(index), graph.fixed(data, axis))
    if index.ndim < data.ndim:
        where = graph.node("Unsqueeze", where, graph.ints(axis))
    found = graph.node("GatherElements", data, where, axis=axis)
    return found if op.keepdims else as_array(graph, graph.node("Squeeze", found, graph.ints(axis)), data.ndim == 1)


@converts("one_hot")
def one_hot(graph: Graph, op: Any, indices: Value) -> Any:
    values = graph.array([op.off_value, op.on_value], op.dtype)
    numbers = graph.array(np.arange(op.depth), np.int64)
    matches = graph.node("Equal", graph.node("Unsqueeze", graph.indices(indices), graph.ints(indices.ndim)), numbers)
    return graph.node("Gather", values, graph.cast(matches, np.int64), axis=0)
