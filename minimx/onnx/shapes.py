"""Converters of operators that give elements other places: shapes, axes, parts, copies.

Where the lengths of a result are fixed they are written as numbers; a length that is open in the file is taken from the input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .graph import Dynamic, Graph, Operand, UnsupportedError, Value, converts

FAR = np.iinfo(np.int64).max  # an end beyond every array


@converts("Reshape", "reshape_like")
def reshape(graph: Graph, op: Any, data: Value, like: Value | None = None) -> Any:
    return graph.reshaped(data, data.shape, graph.outputs[0].shape)


@converts("Flatten")
def flatten(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Flatten", data, axis=1)


@converts("expand_dims")
def expand_dims(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Unsqueeze", data, graph.ints(op.axis if op.axis >= 0 else op.axis + data.ndim + 1))


@converts("squeeze")
def squeeze(graph: Graph, op: Any, data: Value) -> Any:
    if op.axis is not None:
        axes = [graph.axis(axis, data) for axis in op.axis]
    else:
        axes = [axis for axis, length in enumerate(data.shape) if length == 1]
    if data.ndim == len(axes):  # one number stays an array of one
        axes = axes[1:]
    return graph.node("Squeeze", data, graph.ints(*axes)) if axes else data


@converts("transpose")
def transpose(graph: Graph, op: Any, data: Value) -> Any:
    axes = list(op.axes) or list(range(data.ndim))[::-1]
    return graph.permuted(data, [graph.axis(axis, data) for axis in axes])


@converts("SwapAxis")
def swap_axis(graph: Graph, op: Any, data: Value) -> Any:
    axes = list(range(data.ndim))
    first, second = graph.axis(op.dim1, data), graph.axis(op.dim2, data)
    axes[first], axes[second] = axes[second], axes[first]
    return graph.permuted(data, axes)


@converts("space_to_depth")
def space_to_depth(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("SpaceToDepth", data, blocksize=op.block_size)


@converts("depth_to_space")
def depth_to_space(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("DepthToSpace", data, blocksize=op.block_size, mode="DCR")


# ---- joining and splitting


@converts("Concat", "_rnn_param_concat")
def concat(graph: Graph, op: Any, *data: Value) -> Any:
    return graph.node("Concat", *data, axis=graph.axis(op.dim, data[0]))


@converts("stack")
def stack(graph: Graph, op: Any, *data: Value) -> Any:
    axis = op.axis if op.axis >= 0 else op.axis + data[0].ndim + 1
    return graph.node("Concat", *(graph.node("Unsqueeze", each, graph.ints(axis)) for each in data), axis=axis)


@converts("SliceChannel")
def slice_channel(graph: Graph, op: Any, data: Value) -> Any:
    axis = graph.axis(op.axis, data)
    parts: Sequence[Any] = graph.nodes_of("Split", [data], op.num_outputs, axis=axis) if op.num_outputs > 1 else [data]
    return without(graph, parts, axis, data) if op.squeeze_axis else parts


def without(graph: Graph, parts: Sequence[Any], axis: int, data: Value) -> list[Any]:
    """Parts of `data` without an axis of length 1; a number stays an array of one."""
    return list(parts) if data.ndim == 1 else [graph.node("Squeeze", part, graph.ints(axis)) for part in parts]


@converts("_split_v2")
def split_v2(graph: Graph, op: Any, data: Value) -> Any:
    axis = graph.axis(op.axis, data)
    lengths = []
    for output in graph.outputs:
        length = 1 if op.squeeze_axis else output.shape[axis]
        if isinstance(length, Dynamic):
            raise UnsupportedError(f"{graph.stem}: split needs a fixed length of axis {axis}; fix it in dynamic_input_shapes")
        lengths.append(length)
    parts = graph.nodes_of("Split", [data, graph.ints(*lengths)], len(lengths), axis=axis)
    return without(graph, parts, axis, data) if op.squeeze_axis else parts


# ---- parts


def sliced(
    graph: Graph, operand: Operand, axes: Sequence[int], parts: Sequence[tuple[int | None, int | None, int | None]]
) -> Any:
    """The run (begin, end, step) of each of `axes`; None stands for the end in the direction of the step."""
    begins, ends, steps = [], [], []
    for begin, end, step in parts:
        step = 1 if step is None else step
        begins.append((0 if step > 0 else FAR) if begin is None else begin)
        ends.append((FAR if step > 0 else -FAR) if end is None else end)
        steps.append(step)
    return graph.node("Slice", operand, graph.ints(*begins), graph.ints(*ends), graph.ints(*axes), graph.ints(*steps))


@converts("slice")
def slice_(graph: Graph, op: Any, data: Value) -> Any:
    steps = op.step or (None,) * len(op.begin)
    return sliced(graph, data, range(len(op.begin)), list(zip(op.begin, op.end, steps)))


@converts("slice_axis")
def slice_axis(graph: Graph, op: Any, data: Value) -> Any:
    return sliced(graph, data, [graph.axis(op.axis, data)], [(op.begin, op.end, 1)])


@converts("slice_like")
def slice_like(graph: Graph, op: Any, data: Value, like: Value) -> Any:
    axes = [graph.axis(axis, data) for axis in op.axes] or list(range(data.ndim))
    ends: Operand
    if all(isinstance(like.shape[axis], int) for axis in axes):
        ends = graph.ints(*[graph.fixed(like, axis) for axis in axes])
    else:
        ends = graph.node("Gather", graph.node("Shape", like), graph.ints(*axes), axis=0)
    return graph.node("Slice", data, graph.ints(*[0] * len(axes)), ends, graph.ints(*axes))


@converts("Crop")
def crop(graph: Graph, op: Any, data: Value, like: Value | None = None) -> Any:
    heights = [graph.fixed(graph.outputs[0], axis) for axis in (2, 3)]
    begins = list(op.offset)
    if op.center_crop:
        begins = [(graph.fixed(data, axis) - length) // 2 for axis, length in zip((2, 3), heights)]
    return sliced(graph, data, [2, 3], [(begin, begin + length, 1) for begin, length in zip(begins, heights)])


@converts("reverse")
def reverse(graph: Graph, op: Any, data: Value) -> Any:
    return sliced(graph, data, [graph.axis(axis, data) for axis in op.axis], [(None, None, -1)] * len(op.axis))


# ---- copies


@converts("tile")
def tile(graph: Graph, op: Any, data: Value) -> Any:
    ndim = max(data.ndim, len(op.reps))
    wide = graph.node("Unsqueeze", data, graph.ints(*range(ndim - data.ndim))) if ndim > data.ndim else data
    return graph.node("Tile", wide, graph.ints(*[1] * (ndim - len(op.reps)), *op.reps))


@converts("repeat")
def repeat(graph: Graph, op: Any, data: Value) -> Any:
    """Each element several times: an axis more, copies along it, and the axis joined with the one before."""
    flat: Operand = data
    axis, ndim = 0, 1
    if op.axis is None:
        flat = graph.node("Reshape", data, graph.ints(-1))
    else:
        axis, ndim = graph.axis(op.axis, data), data.ndim
    apart = graph.node("Unsqueeze", flat, graph.ints(axis + 1))
    copies = graph.node("Tile", apart, graph.ints(*[1] * (axis + 1), op.repeats, *[1] * (ndim - axis - 1)))
    return graph.node("Reshape", copies, graph.shape(graph.outputs[0].shape, copies, ()))


@converts("broadcast_to", "broadcast_axis", "broadcast_like")
def broadcast(graph: Graph, op: Any, data: Value, like: Value | None = None) -> Any:
    if op.name == "broadcast_like" and like is not None and op.lhs_axes is None:
        return graph.node("Expand", data, graph.node("Shape", like))
    result = graph.outputs[0].shape
    mine = (1,) * (len(result) - data.ndim) + data.shape
    wanted = [1 if before == after else after for before, after in zip(mine, result)]  # 1 leaves a length as it is
    return graph.node("Expand", data, graph.shape(wanted))


@converts("shape_array")
def shape_array(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Shape", data)


@converts("size_array")
def size_array(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Unsqueeze", graph.node("Size", data), graph.ints(0))


@converts("_contrib_arange_like")
def arange_like(graph: Graph, op: Any, data: Value) -> Any:
    if op.repeat != 1:
        raise UnsupportedError(f"{graph.stem}: arange_like with repeat={op.repeat} has no form in ONNX here; use repeat()")
    result = graph.outputs[0]
    if op.axis is None:
        count = graph.node("Size", data)
    else:
        axis = graph.axis(op.axis, data)
        count = graph.node("Gather", graph.node("Shape", data), graph.array(axis, "int64"), axis=0)
    numbers = graph.cast(graph.node("Range", graph.array(0, "int64"), count, graph.array(1, "int64")), result.dtype)
    numbers = graph.node("Add", graph.node("Mul", numbers, graph.number(op.step, result)), graph.number(op.start, result))
    return numbers if op.axis is not None else graph.node("Reshape", numbers, graph.node("Shape", data))
