"""Readers of recurrent layers: the gates of ONNX in the order that they have here, and all weights in one vector."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import sym
from .reading import Reader, reads
from .recurrent import GATES


@reads("LSTM", "GRU", "RNN")
def recurrent(reader: Reader) -> Any:
    """data (T, N, C); outputs (T, directions, N, H), and the last states (directions, N, H)."""
    mode = mode_of(reader)
    to_gates, from_state = reader.numbers(1), reader.numbers(2)
    directions, units = to_gates.shape[0], from_state.shape[-1]
    biases = reader.numbers(3) if reader.has(3) else np.zeros((directions, 2 * len(GATES[mode]) * units), to_gates.dtype)
    name = f"{reader.name}_parameters"
    reader.constants[name] = packed(mode, to_gates, from_state, biases)
    states = [reader.input(place) for place in ((5, 6) if mode == "lstm" else (5,)) if reader.has(place)]
    if not states:
        batch = sym.slice_axis(sym.slice_axis(reader.input(), axis=0, begin=0, end=1), axis=2, begin=0, end=1) * 0  # (1, N, 1)
        zeros = sym.tile(batch, reps=(directions, 1, units))
        states = [zeros] * (2 if mode == "lstm" else 1)
    result = reader.made(
        sym.RNN, reader.input(), sym.var(name), *states, mode=mode, state_size=units, num_layers=1, bidirectional=directions == 2,
        state_outputs=True,
    )  # fmt: skip
    output = sym.reshape(result[0], shape=(0, 0, directions, units))
    return [sym.transpose(output, axes=(0, 2, 1, 3)), *[result[number] for number in range(1, len(states) + 1)]]


def mode_of(reader: Reader) -> str:
    """What the layer is called here. Raises UnsupportedError for what it cannot do here."""
    kind, attrs = reader.node.op_type.lower(), reader.attrs
    names = [each.decode() if isinstance(each, bytes) else each for each in attrs.get("activations", ())]
    lowered = [each.lower() for each in names]
    if reader.has(4) or "clip" in attrs or attrs.get("direction", "forward") == "reverse" or attrs.get("layout", 0):
        raise reader.unsupported("lengths of sequences, clip, direction='reverse' and layout=1 have no reader")
    if kind == "gru" and not attrs.get("linear_before_reset", 0):
        raise reader.unsupported("here the reset gate comes after the product, linear_before_reset=1")
    usual = {"lstm": ["sigmoid", "tanh", "tanh"], "gru": ["sigmoid", "tanh"]}.get(kind)
    if usual is None and len(set(lowered)) <= 1 and (lowered or ["tanh"])[0] in ("tanh", "relu"):
        return f"rnn_{(lowered or ['tanh'])[0]}"
    if usual is None or (lowered and lowered[: len(usual)] != usual):
        raise reader.unsupported(f"activations={names}")
    return kind


def packed(mode: str, to_gates: Any, from_state: Any, biases: Any) -> np.ndarray[Any, Any]:
    """The vector of parameters: all weights, and then all biases, direction by direction."""
    count = len(GATES[mode])

    def ordered(array: Any) -> Any:
        parts = np.split(array, count)
        return np.concatenate([parts[GATES[mode].index(number)] for number in range(count)])

    pieces = [ordered(each).reshape(-1) for pair in zip(to_gates, from_state) for each in pair]
    pieces += [ordered(half) for each in biases for half in np.split(each, 2)]
    return np.concatenate(pieces)
