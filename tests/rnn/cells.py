"""Graphs of all cells of `mx.rnn`, made and filled with numbers alike by MXNet and minimx.

    python tests/rnn/cells.py

writes tests/data/mxnet-1.9.1/rnn_symbols.json where MXNet 1.9.1 is installed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).parents[1] / "data" / "mxnet-1.9.1" / "rnn_symbols.json"

Make = Callable[[Any], Any]  # from mx.rnn to a cell


def stacked(rnn: Any, *cells: Any) -> Any:
    stack = rnn.SequentialRNNCell()
    for cell in cells:
        stack.add(cell)
    return stack


def both_ways(rnn: Any) -> Any:
    return rnn.BidirectionalCell(rnn.LSTMCell(2, prefix="l_"), rnn.GRUCell(2, prefix="r_"), output_prefix="both_")


def fused(rnn: Any, mode: str, bidirectional: bool) -> Any:
    return rnn.FusedRNNCell(2, num_layers=2, mode=mode, bidirectional=bidirectional, get_next_state=True)


#: Name -> how to make the cell, how to unroll it, and the shape of the input of a step or, with an axis of time, of all.
CELLS: dict[str, tuple[Make, dict[str, Any], tuple[int, ...]]] = {
    "rnn": (lambda rnn: rnn.RNNCell(2, activation="relu"), {"merge_outputs": True}, (2, 2, 3)),
    "lstm": (lambda rnn: rnn.LSTMCell(2), {"merge_outputs": True}, (2, 2, 3)),
    "lstm TNC": (lambda rnn: rnn.LSTMCell(2), {"merge_outputs": True, "layout": "TNC"}, (2, 2, 3)),
    "gru": (lambda rnn: rnn.GRUCell(2), {"merge_outputs": True}, (2, 2, 3)),
    "gru of steps": (lambda rnn: rnn.GRUCell(2), {"merge_outputs": False}, (2, 3)),
    "stack": (
        lambda rnn: stacked(rnn, rnn.LSTMCell(3, prefix="a_"), rnn.DropoutCell(0.5), rnn.ResidualCell(rnn.GRUCell(3, prefix="b_"))),
        {"merge_outputs": True}, (2, 2, 3),
    ),
    "bidirectional": (both_ways, {"merge_outputs": True}, (2, 2, 3)),
    "bidirectional of steps": (both_ways, {"merge_outputs": None}, (2, 3)),
    "residual": (lambda rnn: rnn.ResidualCell(rnn.RNNCell(3)), {"merge_outputs": True}, (2, 2, 3)),
    **{
        f"fused {mode} {bidirectional}": (
            lambda rnn, mode=mode, bidirectional=bidirectional: fused(rnn, mode, bidirectional), {"merge_outputs": True}, (2, 2, 3)
        )
        for mode in ("lstm", "gru", "rnn_tanh", "rnn_relu")
        for bidirectional in (False, True)
    },
    "fused of steps": (lambda rnn: rnn.FusedRNNCell(2, prefix="f_"), {"merge_outputs": False, "layout": "TNC"}, (2, 3)),
    "unfused": (lambda rnn: fused(rnn, "lstm", True).unfuse(), {"merge_outputs": True}, (2, 2, 3)),
    "conv rnn": (lambda rnn: rnn.ConvRNNCell((1, 1, 3, 3), 1), {"merge_outputs": False}, (1, 1, 3, 3)),
    "conv lstm": (lambda rnn: rnn.ConvLSTMCell((1, 1, 3, 3), 1, activation="tanh"), {"merge_outputs": False}, (1, 1, 3, 3)),
    "conv gru": (lambda rnn: rnn.ConvGRUCell((1, 1, 3, 3), 1, i2h_stride=(2, 2)), {"merge_outputs": False}, (1, 1, 3, 3)),
}  # fmt: skip


def flat(symbols: Any) -> list[Any]:
    if isinstance(symbols, (list, tuple)):
        return [each for group in symbols for each in flat(group)]
    return [symbols]


def results(mx: Any, name: str) -> dict[str, Any]:
    """Names of arguments and outputs, values of outputs, and what the cell makes of its weights."""
    make, how, shape = CELLS[name]
    with mx.name.NameManager():
        cell = make(mx.rnn)
        data = mx.sym.var("data")
        steps = len(shape) == 2 or len(shape) == 4
        outputs, states = cell.unroll(2, [mx.sym.var(f"data{step}") for step in range(2)] if steps else data, **how)
        graph = mx.sym.Group([*flat(outputs), *flat(states)])
    names = [each for each in graph.list_arguments() if each.startswith("data")]
    executor = graph.simple_bind(mx.cpu(), **dict.fromkeys(names, shape))
    random = np.random.RandomState(0)
    for each in sorted(executor.arg_dict):
        executor.arg_dict[each][:] = random.randn(*executor.arg_dict[each].shape)
    values = [output.asnumpy() for output in executor.forward(is_train=False)]
    weights = {each: array for each, array in executor.arg_dict.items() if each not in names}
    apart = cell.unpack_weights(weights)
    together = cell.pack_weights(apart)
    return {
        "arguments": graph.list_arguments(), "outputs": graph.list_outputs(),
        "values": [[float(f"{number:.6g}") for number in value.ravel()] for value in values],
        "apart": {each: float(f"{float(array.asnumpy().sum()):.6g}") for each, array in sorted(apart.items())},
        "together": {each: bool((array.asnumpy() == weights[each].asnumpy()).all()) for each, array in sorted(together.items())},
    }  # fmt: skip


if __name__ == "__main__":
    import mxnet

    lines = [f"{json.dumps(name)}: {json.dumps(results(mxnet, name))}" for name in CELLS]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sys.stdout.write(f"{RECORD}: {RECORD.stat().st_size} bytes\n")
