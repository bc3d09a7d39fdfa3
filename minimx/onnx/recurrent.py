"""Converters of recurrent layers and of sequences: LSTM, GRU and plain ones, with several layers and in both directions.

A layer here is one operator over all of its layers, its weights one vector. ONNX has an operator a layer, with other names for the same
gates and another order of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.recurrence import Weights
from .graph import Graph, Operand, UnsupportedError, Value, converts

KINDS = {"lstm": "LSTM", "gru": "GRU", "rnn_tanh": "RNN", "rnn_relu": "RNN"}
#: For each gate of ONNX the number of ours: input, output, forget, cell; update, reset, new.
GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}


@converts("RNN")
def recurrent(
    graph: Graph, op: Any, data: Value, parameters: Value, state: Value, cell: Value | None = None, length: Value | None = None
) -> Any:
    """data (T, N, C), state (layers * directions, N, H)."""
    require_possible(graph, op)
    directions = 2 if op.bidirectional else 1
    vector = parameters.array
    if vector is None:  # weights that are computed, or an input: their numbers, by which they are gathered
        vector = np.arange(graph.fixed(parameters, 0))
    weights = op.unpacked(vector, graph.fixed(data, 2))
    if op.mode != "lstm":
        cell = None
    lengths = graph.cast(length, np.int32) if op.use_sequence_length and length is not None else None
    operand: Operand = data
    last: list[list[str]] = [[], []]
    for layer in range(op.num_layers):
        packed = [pack(each, op.mode) for each in weights[layer]]
        given = [graph.array(np.stack(arrays)) for arrays in zip(*packed)]
        if parameters.array is None:
            given = [graph.node("Gather", parameters, numbers, axis=0) for numbers in given]
        first = [begin(graph, each, layer, directions) for each in (state, cell)]
        outputs = graph.nodes_of(
            KINDS[op.mode], [operand, *given, lengths, *first], 3 if op.mode == "lstm" else 2, hidden_size=op.state_size,
            direction="bidirectional" if op.bidirectional else "forward", linear_before_reset=1 if op.mode == "gru" else None,
            activations=["Relu"] * directions if op.mode == "rnn_relu" else None,
        )  # fmt: skip
        for kept, output, before in zip(last, outputs[1:], first):
            kept.append(output if lengths is None or before is None else unless_empty(graph, lengths, before, output))
        together = graph.node("Transpose", outputs[0], perm=[0, 2, 1, 3])  # (T, N, directions, H)
        operand = graph.node("Reshape", together, graph.ints(0, 0, directions * op.state_size))
    results: list[Any] = [operand]
    if op.state_outputs:
        results += [graph.node("Concat", *each, axis=0) if len(each) > 1 else each[0] for each in last if each]
    return results


def require_possible(graph: Graph, op: Any) -> None:
    if op.projection_size:
        raise UnsupportedError(f"{graph.stem}: ONNX has no LSTM with a projection; set projection_size=None")
    if op.lstm_state_clip_min is not None or op.lstm_state_clip_max is not None:
        raise UnsupportedError(f"{graph.stem}: ONNX does not clip the state of an LSTM; leave lstm_state_clip_min and _max out")


def pack(weights: Weights, mode: str) -> list[np.ndarray[Any, Any]]:
    """Weights of inputs and states, and all biases, of one layer in one direction, with the gates in the order of ONNX."""

    def ordered(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        parts = np.split(array, len(GATES[mode]))
        return np.concatenate([parts[number] for number in GATES[mode]])

    biases = np.concatenate([ordered(weights.i2h_bias), ordered(weights.h2h_bias)])
    return [ordered(weights.i2h), ordered(weights.h2h), biases]


def begin(graph: Graph, state: Value | None, layer: int, directions: int) -> Operand:
    """The first state of a layer; None for zeros, with which ONNX begins by itself."""
    if state is None or state.fill == 0 or (state.array is not None and not state.array.any()):
        return None
    if state.shape[0] == directions:
        return state
    low = layer * directions
    return graph.node("Slice", state, graph.ints(low), graph.ints(low + directions), graph.ints(0))


def unless_empty(graph: Graph, lengths: str, before: Operand, after: str) -> str:
    """The last states; of an empty sequence the first ones, for which ONNX has zeros."""
    empty = graph.node("Equal", lengths, graph.array(0, np.int32))
    return graph.node("Where", graph.node("Unsqueeze", empty, graph.ints(0, 2)), before, after)


# ---- sequences


@converts("SequenceMask")
def sequence_mask(graph: Graph, op: Any, data: Value, length: Value | None = None) -> Any:
    if not op.use_sequence_length or length is None:
        return data
    steps = graph.array(np.arange(graph.fixed(data, op.axis)), np.int64)
    numbers = graph.node("Unsqueeze", steps, graph.ints(1 - op.axis))
    lengths = graph.node("Unsqueeze", graph.indices(length), graph.ints(op.axis))
    beyond = graph.node("GreaterOrEqual", numbers, lengths)
    if data.ndim > 2:
        beyond = graph.node("Unsqueeze", beyond, graph.ints(*range(2, data.ndim)))
    return graph.node("Where", beyond, graph.number(op.value, data), data)


@converts("SequenceReverse")
def sequence_reverse(graph: Graph, op: Any, data: Value, length: Value | None = None) -> Any:
    if op.use_sequence_length and length is not None:
        steps = graph.array(graph.fixed(data, 0), "int64")
        lengths = graph.node("Clip", graph.indices(length), graph.array(0, "int64"), steps)
        return graph.node("ReverseSequence", data, lengths, time_axis=0, batch_axis=1)
    low = np.iinfo(np.int64).min
    return graph.node("Slice", data, graph.ints(-1), graph.ints(low), graph.ints(0), graph.ints(-1))


@converts("SequenceLast")
def sequence_last(graph: Graph, op: Any, data: Value, length: Value | None = None) -> Any:
    if not op.use_sequence_length or length is None:
        return graph.node("Gather", data, graph.array(-1, "int64"), axis=op.axis)
    front = graph.permuted(data, [1, 0, *range(2, data.ndim)]) if op.axis == 0 else data  # (batch, steps, ...)
    place = graph.node("Sub", graph.indices(length), graph.array(1, "int64"))
    return graph.node("GatherND", front, graph.node("Unsqueeze", place, graph.ints(1)), batch_dims=1)
