"""Rows of the recurrent layers: ops/rnn.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from minimx import autograd
from minimx.base import ArgumentError, DTypeError, MXNetError, OutOfRangeError, ShapeError
from minimx.op import apply
from minimx.ops.rnn import RNN, RecurrentAdjoint

from .cases_nn import in_training
from .cases_sequence import lengths
from .harness import Bad, Case, Maker, normal

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


# ---- the oracle: one sequence, one step, one layer at a time, with vectors


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def next_state(
    mode: str, wx: np.ndarray, uh: np.ndarray, h: np.ndarray, c: np.ndarray, clip: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The state after a step from the products with the input and the state, which have the biases in them."""
    if mode == "rnn_relu":
        return np.maximum(wx + uh, 0), c
    if mode == "rnn_tanh":
        return np.tanh(wx + uh), c
    if mode == "lstm":
        i, f, g, o = np.split(wx + uh, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        c = c if clip is None else np.clip(c, *clip)
        return sigmoid(o) * np.tanh(c), c
    (xr, xz, xn), (hr, hz, hn) = np.split(wx, 3), np.split(uh, 3)
    z = sigmoid(xz + hz)
    return (1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * h, c


def oracle(
    mode: str, units: int, layers: int, directions: int, projection: int | None, clip: Any, x: np.ndarray, params: np.ndarray,
    states: np.ndarray, cells: np.ndarray | None = None, ends: np.ndarray | None = None,
) -> list[np.ndarray]:  # fmt: skip
    steps, batch, _ = x.shape
    rows, numbers = GATES[mode] * units, iter(params)

    def take(*shape: int) -> np.ndarray:
        return np.array([next(numbers) for _ in range(int(np.prod(shape)))]).reshape(shape)

    length = projection or units
    weights, biases = [], []
    for layer in range(layers):
        for _ in range(directions):
            inputs = x.shape[2] if layer == 0 else directions * length
            weights.append((take(rows, inputs), take(rows, length), None if projection is None else take(projection, units)))
    for _ in weights:
        biases.append((take(rows), take(rows)))
    assert next(numbers, None) is None
    last = np.zeros_like(states), None if cells is None else np.zeros_like(cells)
    for layer in range(layers):
        output = np.zeros((steps, batch, directions * length))
        for direction in range(directions):
            number = layer * directions + direction
            (w, u, p), (b, d) = weights[number], biases[number]
            for n in range(batch):
                h, c = states[number, n], np.zeros(units) if cells is None else cells[number, n]
                end = steps if ends is None else int(ends[n])
                for t in range(end) if direction == 0 else range(end - 1, -1, -1):
                    h, c = next_state(mode, w @ x[t, n] + b, u @ h + d, h, c, clip)
                    h = h if p is None else p @ h
                    output[t, n, direction * length : (direction + 1) * length] = h
                last[0][number, n] = h
                if last[1] is not None:
                    last[1][number, n] = c
        x = output
    return [x, last[0]] if last[1] is None else [x, *last]


# ---- rows


def size(mode: str, units: int, inputs: int, layers: int = 1, directions: int = 1, projection: int | None = None) -> int:
    length, total = projection or units, 0
    for layer in range(layers):
        rows = GATES[mode] * units
        total += directions * (rows * ((inputs if layer == 0 else directions * length) + length + 2) + (projection or 0) * units)
    return total


def row(
    mode: str, label: str = "", steps: int = 4, batch: int = 3, inputs: int = 2, units: int = 3, layers: int = 1, directions: int = 1,
    projection: int | None = None, clip: Any = None, ends: Any = None, outputs: bool = True, trained: bool = True, op: str = "RNN",
    **fields: Any,
) -> Case:  # fmt: skip
    """A layer in a training step, or without one, against the oracle."""
    bounds = {} if clip is None else {"lstm_state_clip_min": clip[0], "lstm_state_clip_max": clip[1]}

    def call(x: Any, params: Any, *states: Any) -> Any:
        ordered = dict(zip(["state", "state_cell"] if mode == "lstm" else ["state"], states))
        if ends is not None:
            ordered["sequence_length"] = states[-1]
        return RNN(
            x, params, state_size=units, num_layers=layers, mode=mode, bidirectional=directions == 2, state_outputs=outputs,
            projection_size=projection, use_sequence_length=ends is not None, **bounds, **ordered,
        )  # fmt: skip

    def answer(x: Any, params: Any, *states: Any) -> Any:
        states = (*states[:1], *(states[1:2] if mode == "lstm" else (None,)), states[-1] if ends is not None else None)
        found = oracle(mode, units, layers, directions, projection, clip, x, params, *states)
        return found if outputs else found[0]

    number = layers * directions
    makers: list[Maker] = [normal(steps, batch, inputs), normal(size(mode, units, inputs, layers, directions, projection))]
    makers += [normal(number, batch, projection or units)] + [normal(number, batch, units)] * (mode == "lstm")
    if ends is not None:
        makers.append(ends)
    return Case(
        op,
        in_training(call) if trained else call,
        tuple(makers),
        answer,
        second=False,
        label=f"{mode}{label and '-'}{label}",
        **fields,
    )


def arrays(nd: Any, mode: str = "lstm", **changes: Any) -> tuple[Any, ...]:
    """Inputs of a layer of 2 units for 5 steps of 3 sequences of vectors of length 4."""
    shapes = {"data": (5, 3, 4), "parameters": (size(mode, 2, 4),), "state": (1, 3, 2), "state_cell": (1, 3, 2), **changes}
    return tuple(nd.ones(shape) for key, shape in shapes.items() if shape is not None and (key != "state_cell" or mode == "lstm"))


def bad(error: type[Exception], match: str, mode: str = "lstm", changes: dict[str, Any] | None = None, **attributes: Any) -> Bad:
    given: dict[str, Any] = {"state_size": 2, "num_layers": 1, "mode": mode, **attributes}
    return Bad(lambda nd: nd.RNN(*arrays(nd, mode if mode in GATES else "lstm", **(changes or {})), **given), error, match)


BADS = (
    bad(ArgumentError, "mode='foo' is not known; choose one of gru, lstm, rnn_relu, rnn_tanh", "foo"),
    bad(ArgumentError, "state_size=0 is not positive", state_size=0),
    bad(ArgumentError, "num_layers=-1 is not positive", num_layers=-1),
    bad(ShapeError, r"parameters has shape \(64,\)", num_layers=2**60),
    bad(ArgumentError, "projection_size=0 is not positive", projection_size=0),
    bad(ArgumentError, "projection_size is for mode='lstm' only, got mode='gru'", "gru", projection_size=1),
    bad(ArgumentError, "lstm_state_clip_max is for mode='lstm' only", "gru", lstm_state_clip_max=1),
    bad(ArgumentError, "lstm_state_clip_min=None and lstm_state_clip_max=1 are no interval", lstm_state_clip_max=1),
    bad(ArgumentError, "lstm_state_clip_min=2 and lstm_state_clip_max=1 are no interval", lstm_state_clip_min=2, lstm_state_clip_max=1),
    bad(ArgumentError, r"p=1 is not a fraction of \[0, 1\)", p=1),
    bad(ArgumentError, "state_cell is missing; an LSTM has it", changes={"state_cell": None}),
    bad(ArgumentError, "sequence_length is missing; pass it with use_sequence_length=True", use_sequence_length=True),
    bad(ShapeError, r"data needs 3 axes \(steps, batch, features\), got \(5, 3\)", changes={"data": (5, 3)}),
    bad(
        ShapeError, r"parameters has .*\(63,\), lstm of 1 layer, for data of shape \(5, 3, 4\) needs \(64,\)", changes={"parameters": (63,)}
    ),
    bad(ShapeError, r"state has shape \(1, 3, 1\), .* needs \(1, 3, 2\)", changes={"state": (1, 3, 1)}),
    bad(ShapeError, r"state_cell has shape \(2, 3, 2\), .* needs \(1, 3, 2\)", changes={"state_cell": (2, 3, 2)}),
    Bad(
        lambda nd: nd.RNN(*[a.astype("int32") for a in arrays(nd)], state_size=2, num_layers=1, mode="lstm"),
        DTypeError, "data is int32, wants a floating dtype",
    ),
    Bad(
        lambda nd: nd.RNN(arrays(nd)[0].astype("float64"), *arrays(nd)[1:], state_size=2, num_layers=1, mode="lstm"),
        DTypeError, "data is float64 but parameters is float32",
    ),
    Bad(
        lambda nd: nd.RNN(*arrays(nd), nd.ones((4,)), state_size=2, num_layers=1, mode="lstm", use_sequence_length=True),
        ShapeError, r"sequence_length has shape \(4,\), data of shape \(5, 3, 4\) needs \(3,\)",
    ),
    Bad(
        lambda nd: nd.RNN(*arrays(nd), nd.ones((3,)), state_size=2, num_layers=1, mode="lstm"),
        ArgumentError, "sequence_length is given but not used",
    ),
    Bad(
        lambda nd: nd.RNN(*arrays(nd), nd.array([1, 2, 6]), state_size=2, num_layers=1, mode="lstm", use_sequence_length=True),
        OutOfRangeError, r"sequence_length has numbers outside \[0, 5\]",
    ),
    Bad(lambda nd: second_order(nd), MXNetError, "RNN has no second derivative; unroll a cell of gluon.rnn"),
)  # fmt: skip


def second_order(nd: Any) -> Any:
    data, *rest = arrays(nd)
    data.attach_grad()
    with autograd.record():
        result = nd.RNN(data, *rest, state_size=2, num_layers=1, mode="lstm")
        (slope,) = autograd.grad([result], [data], create_graph=True)
        total = slope.sum()
    total.backward()
    return data.grad


def by_position(x: Any, params: Any, state: Any, ends: Any) -> Any:
    """Without a cell, the lengths come after the state."""
    return RNN(x, params, state, ends, state_size=3, num_layers=1, mode="gru", state_outputs=True, use_sequence_length=True)


def adjoint(head: Any, x: Any, params: Any, state: Any, cell: Any) -> Any:
    op = RecurrentAdjoint(3, 1, "lstm", True)
    return list(apply(op, head, None, None, x, params, state, cell, None, None, None))


def slopes(head: np.ndarray, *inputs: np.ndarray) -> list[np.ndarray]:
    """Gradients of `sum(head * output)` by central differences."""
    found = []
    for array in inputs:
        slope = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            kept, ends = array[place], []
            for step in (1e-6, -1e-6):
                array[place] = kept + step
                ends.append(np.sum(head * oracle("lstm", 3, 1, 2, None, None, *inputs)[0]))
            array[place] = kept
            slope[place] = (ends[0] - ends[1]) / 2e-6
        found.append(slope)
    return found


CASES = [
    *[row(mode, bad=BADS if mode == "lstm" else ()) for mode in GATES],
    *[row(mode, "deep", layers=3, trained=False) for mode in GATES],
    *[row(mode, "both-ways", layers=2, directions=2, inputs=4, units=2) for mode in GATES],
    *[row(mode, "lengths", ends=lengths(2, 4, 0, 1), batch=4) for mode in GATES],
    *[row(mode, "lengths-both-ways", ends=lengths(2, 4, 1, 0, dtype="int64"), batch=4, layers=2, directions=2, units=2) for mode in GATES],
    row("lstm", "projection", projection=2),
    row("lstm", "projection-both-ways", projection=4, layers=2, directions=2, units=2),
    row("lstm", "projection-lengths", projection=1, ends=lengths(2, 4, 1), directions=2),
    row("lstm", "clip", clip=(-0.3, 0.2)),
    row("lstm", "clip-projection", clip=(-0.3, 0.5), projection=2, ends=lengths(1, 3, 4), directions=2, trained=False),
    row("gru", "output", outputs=False),
    row("lstm", "output", outputs=False, trained=False),
    row("lstm", "ones", steps=1, batch=1, inputs=1, units=1),
    row("gru", "empty", batch=0),
    row("rnn_tanh", "no-steps", steps=0, grad=False),
    Case(
        "RNN", by_position, (normal(4, 3, 2), normal(size("gru", 3, 2)), normal(1, 3, 3), lengths(1, 4, 2)),
        lambda x, params, state, n: oracle("gru", 3, 1, 1, None, None, x, params, state, None, n), second=False, label="position",
    ),
    Case(
        "RNN",
        in_training(lambda x, params, h, c: RNN(x, params, h, c, state_size=3, num_layers=2, mode="lstm", bidirectional=True, p=0.4)),
        (normal(4, 3, 2), normal(size("lstm", 3, 2, 2, 2)), normal(4, 3, 3), normal(4, 3, 3)), None, second=False, label="dropout-gradient",
    ),
    Case(
        "_backward_RNN", adjoint, (normal(3, 2, 6), normal(3, 2, 2), normal(size("lstm", 3, 2, 1, 2)), normal(2, 2, 3), normal(2, 2, 3)),
        slopes, grad=False, rtol={"float64": 1e-7},  # the oracle's differences are not more exact
    ),
]  # fmt: skip
