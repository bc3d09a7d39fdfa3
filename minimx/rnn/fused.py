"""FusedRNNCell: layers of cells over a whole sequence as one operator, `sym.RNN`, with all weights in one vector."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import initializer, nd, sym
from ..base import ArgumentError, shown
from ..checkpoint import Params
from ..sym import Symbol
from .combined import BidirectionalCell, DropoutCell, SequentialRNNCell
from .rnn_cell import BaseRNNCell, CellError, GRUCell, LSTMCell, RNNCell, RNNParams, as_sequence

__all__ = ["FusedRNNCell"]

GATES: dict[str, Sequence[str]] = {
    "rnn_relu": ("",), "rnn_tanh": ("",), "lstm": ("_i", "_f", "_c", "_o"), "gru": ("_r", "_z", "_o")
}  # fmt: skip


class FusedRNNCell(BaseRNNCell):
    """So many layers of RNN, LSTM or GRU cells, in one direction or both. It cannot be stepped, only unrolled.

    **Args** `mode`: "rnn_relu", "rnn_tanh", "lstm" or "gru". `dropout`: between layers. `get_next_state`: `unroll` gives the last states,
    too. `forget_bias`: with which an LSTM's bias of f begins. **Source** MXNet `rnn.FusedRNNCell`.
    """

    def __init__(
        self, num_hidden: int, num_layers: int = 1, mode: str = "lstm", bidirectional: bool = False, dropout: float = 0.0,
        get_next_state: bool = False, forget_bias: float = 1.0, prefix: str | None = None, params: RNNParams | None = None,
    ) -> None:  # fmt: skip
        if mode not in GATES:
            raise ArgumentError(f"FusedRNNCell: mode must be one of {', '.join(GATES)}, got {shown(mode)}")
        super().__init__(f"{mode}_" if prefix is None else prefix, params)
        self._num_hidden, self._num_layers, self._mode = num_hidden, num_layers, mode
        self._bidirectional = bidirectional
        self._directions = ("l", "r") if bidirectional else ("l",)
        self._dropout = dropout
        self._get_next_state = get_next_state
        first = initializer.FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias)
        self._parameter = self.params.get("parameters", init=first)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        shape = (len(self._directions) * self._num_layers, 0, self._num_hidden)
        return [{"shape": shape, "__layout__": "LNC"} for _ in range(2 if self._mode == "lstm" else 1)]

    @property
    def _gate_names(self) -> Sequence[str]:
        return GATES[self._mode]

    # ---- weights

    def _shapes(self, num_input: int) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the weights of all layers, directions and gates, in their order in the vector: biases come last."""
        hidden = self._num_hidden
        shapes: dict[str, tuple[int, ...]] = {}
        layers = [(layer, side) for layer in range(self._num_layers) for side in self._directions]
        for layer, side in layers:
            width = len(self._directions) * hidden if layer else num_input
            for group, columns in (("i2h", width), ("h2h", hidden)):
                for gate in self._gate_names:
                    shapes[f"{self._prefix}{side}{layer}_{group}{gate}_weight"] = (hidden, columns)
        for layer, side in layers:
            for group in ("i2h", "h2h"):
                for gate in self._gate_names:
                    shapes[f"{self._prefix}{side}{layer}_{group}{gate}_bias"] = (hidden,)
        return shapes

    def _parts(self, vector: nd.NDArray, num_input: int) -> Params:
        """Views of a vector as the weights. Raises CellError if it has not as many numbers as these."""
        shapes = self._shapes(num_input)
        if num_input < 1 or sum(map(math.prod, shapes.values())) != vector.size:
            raise CellError(
                f"Invalid parameters size for FusedRNNCell: {vector.size} numbers; was the cell made with other sizes?"
            )
        found, begin = {}, 0
        for name, shape in shapes.items():
            end = begin + math.prod(shape)
            found[name] = vector[begin:end].reshape(shape)
            begin = end
        return found

    def unpack_weights(self, args: Mapping[str, nd.NDArray]) -> Params:
        found = dict(args)
        vector = found.pop(self._parameter.name or "")
        sides, hidden = len(self._directions), self._num_hidden
        # Of each row of a gate, all columns of its weights, and two biases, in all layers.
        rows = vector.size // (sides * hidden * len(self._gate_names))
        num_input = rows - (self._num_layers - 1) * (hidden + sides * hidden + 2) - hidden - 2
        found.update((name, part.copy()) for name, part in self._parts(vector, num_input).items())
        return found

    def pack_weights(self, args: Mapping[str, nd.NDArray]) -> Params:
        found = dict(args)
        first = found[f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"]
        num_input = first.shape[1]
        size = sum(map(math.prod, self._shapes(num_input).values()))
        vector = nd.zeros((size,), first.context, first.dtype)
        for name, part in self._parts(vector, num_input).items():
            part[:] = found.pop(name)
        found[self._parameter.name or ""] = vector
        return found

    # ---- graphs

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None
    ) -> tuple[Any, list[Symbol]]:
        """See `BaseRNNCell.unroll`. **Returns** no states unless the cell was made with `get_next_state`."""
        self.reset()
        data, axis = as_sequence(length, inputs, layout, True)
        if axis not in (0, 1):
            raise CellError(f"FusedRNNCell: Unsupported layout {layout}; use 'NTC' or 'TNC'")
        if axis == 1:
            data = sym.swapaxes(data, dim1=0, dim2=1)
        states = self.begin_state() if begin_state is None else begin_state
        named = dict(zip(("state", "state_cell"), states))
        found = sym.RNN(
            data=data, parameters=self._parameter, state_size=self._num_hidden, num_layers=self._num_layers,
            bidirectional=self._bidirectional, p=self._dropout, state_outputs=self._get_next_state, mode=self._mode,
            name=f"{self._prefix}rnn", **named,
        )  # fmt: skip
        outputs, following = (found[0], list(found)[1:]) if self._get_next_state else (found, [])
        for state in following:
            state._set_attr(__layout__="LNC")
        if axis == 1:
            outputs = sym.swapaxes(outputs, dim1=0, dim2=1)
        return as_sequence(length, outputs, layout, merge_outputs)[0], following

    def unfuse(self) -> SequentialRNNCell:
        """The same network of single cells, whose weights `pack_weights` makes of those that `unpack_weights` gives here."""
        kinds: dict[str, Callable[[str], BaseRNNCell]] = {
            "rnn_relu": lambda prefix: RNNCell(self._num_hidden, activation="relu", prefix=prefix),
            "rnn_tanh": lambda prefix: RNNCell(self._num_hidden, activation="tanh", prefix=prefix),
            "lstm": lambda prefix: LSTMCell(self._num_hidden, prefix=prefix),
            "gru": lambda prefix: GRUCell(self._num_hidden, prefix=prefix),
        }
        stack = SequentialRNNCell()
        for layer in range(self._num_layers):
            sides = [kinds[self._mode](f"{self._prefix}{side}{layer}_") for side in self._directions]
            if self._bidirectional:
                stack.add(BidirectionalCell(sides[0], sides[1], output_prefix=f"{self._prefix}bi_l{layer}_"))
            else:
                stack.add(sides[0])
            if self._dropout > 0 and layer != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{self._prefix}_dropout{layer}_"))
        return stack
