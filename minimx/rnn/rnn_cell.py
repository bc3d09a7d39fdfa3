"""What all cells for Symbols have in common, and the three that all others are made of: RNN, LSTM, GRU.

A cell is called with the input and the states of a step, and gives the output and the next states. The nodes of step 3 of a cell with the
prefix "lstm_" are called `lstm_t3_...`; its weights are variables `lstm_i2h_weight` (input to hidden), `lstm_h2h_weight` (hidden to
hidden) and two biases, in which the gates lie one below the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import initializer, nd, sym
from ..base import ArgumentError, MXNetError, shown
from ..checkpoint import Params
from ..sym import Symbol

__all__ = ["BaseRNNCell", "CellError", "GRUCell", "LSTMCell", "RNNCell", "RNNParams", "as_sequence", "gru_step", "lstm_step"]


class CellError(MXNetError, AssertionError):
    """A use of a cell that it does not allow. (MXNet asserts it: hence the second base.)"""


def as_sequence(
    length: int | None, inputs: Any, layout: str, merge: bool | None, in_layout: str | None = None
) -> tuple[Any, int]:
    """A sequence as one Symbol with an axis of time (`merge` True), as a list of one Symbol for each step (False), or as it is (None).

    **Returns** it, and the axis of time in `layout`.
    """
    axis = layout.find("T")
    in_axis = axis if in_layout is None else in_layout.find("T")
    if isinstance(inputs, Symbol):
        if merge is False:
            if len(inputs.list_outputs()) != 1:
                raise CellError("unroll: the input is a group of Symbols; pass list(inputs), or one Symbol with an axis of time")
            return list(sym.split(inputs, length or 0, axis=in_axis, squeeze_axis=True)), axis
    else:
        if not isinstance(inputs, (list, tuple)):
            raise CellError(f"unroll: inputs must be a Symbol or a list of them, one for each step, got {shown(inputs)}")
        if length is not None and len(inputs) != length:
            raise CellError(f"unroll: {len(inputs)} inputs are given for {length} steps")
        if merge is not True:
            return list(inputs), axis
        inputs = sym.Concat(*[sym.expand_dims(each, axis=axis) for each in inputs], dim=axis)
        in_axis = axis
    return (sym.swapaxes(inputs, dim1=axis, dim2=in_axis) if axis != in_axis else inputs), axis


class RNNParams:
    """The variables of one cell or several, by name. **Args** `prefix`: what their names begin with."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._params: dict[str, Symbol] = {}

    def get(self, name: str, **kwargs: Any) -> Symbol:
        """The variable `name`, made with `kwargs` if it is not there."""
        full = self._prefix + name
        if full not in self._params:
            self._params[full] = sym.var(full, **kwargs)
        return self._params[full]


class BaseRNNCell:
    """The base of all cells. A subclass overrides `__call__`, `state_info`, and `_gate_names` if it has gates.

    **Args** `prefix`: what names of nodes and weights begin with; `params`: those of another cell, to share them. **Source** MXNet
    `rnn.BaseRNNCell`.
    """

    _num_hidden: int

    def __init__(self, prefix: str = "", params: RNNParams | None = None) -> None:
        self._own_params = params is None
        self._prefix = prefix
        self._params = RNNParams(prefix) if params is None else params
        self._modified = False  # another cell has taken it over
        self._cells: list[BaseRNNCell] = []
        self.reset()

    def reset(self) -> None:
        """Begin to count steps anew, before the cell is used in another graph."""
        self._init_counter = -1
        self._counter = -1
        for cell in self._cells:
            cell.reset()

    def _step_name(self) -> str:
        """What the names of the next step begin with."""
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """The output of a step, and the states after it."""
        raise NotImplementedError(f"{type(self).__name__} cannot be stepped; unroll() it")

    # ---- weights and states

    @property
    def params(self) -> RNNParams:
        """The variables. Who asks may share them."""
        self._own_params = False
        return self._params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """For each state its shape, in which the batch size is 0, and its layout."""
        raise NotImplementedError(f"{type(self).__name__} must override state_info")

    @property
    def state_shape(self) -> list[Any]:
        """The shapes of the states."""
        return [info["shape"] for info in self.state_info]

    @property
    def _gate_names(self) -> Sequence[str]:
        """What the weights of each gate are called when they are taken apart."""
        return ()

    def _require_own(self) -> None:
        if self._modified:
            raise CellError(
                "After applying modifier cells (e.g. ZoneoutCell) the base cell cannot be called directly. Call the modifier cell instead."
            )

    def begin_state(self, func: Callable[..., Symbol] = sym.zeros, **kwargs: Any) -> list[Symbol]:
        """Symbols for the states before the first step, each `func(name=..., shape=..., **kwargs)`: zeros, or variables with sym.var."""
        self._require_own()
        states = []
        for info in self.state_info:
            self._init_counter += 1
            states.append(func(name=f"{self._prefix}begin_state_{self._init_counter}", **kwargs, **info))
        return states

    def unpack_weights(self, args: Mapping[str, nd.NDArray]) -> Params:
        """Parameters with those of each gate apart: `lstm_i2h_f_weight` for a part of `lstm_i2h_weight`."""
        found = dict(args)
        for whole, parts in self._packed_names():
            packed = found.pop(whole)
            for number, part in enumerate(parts):
                found[part] = packed[number * self._num_hidden : (number + 1) * self._num_hidden].copy()
        return found

    def pack_weights(self, args: Mapping[str, nd.NDArray]) -> Params:
        """Parameters with those of all gates together again."""
        found = dict(args)
        for whole, parts in self._packed_names():
            found[whole] = nd.concatenate([found.pop(part) for part in parts])
        return found

    def _packed_names(self) -> list[tuple[str, list[str]]]:
        """Each weight and bias of all gates, with the names of its parts."""
        if not self._gate_names:
            return []
        return [
            (f"{self._prefix}{group}_{kind}", [f"{self._prefix}{group}{gate}_{kind}" for gate in self._gate_names])
            for group in ("i2h", "h2h")
            for kind in ("weight", "bias")
        ]

    # ---- many steps

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None
    ) -> tuple[Any, list[Symbol]]:
        """Outputs and last states of `length` steps.

        **Args** `inputs`: a Symbol with an axis of time as `layout` says, or a list of one for each step. `begin_state`: by default zeros.
        `merge_outputs`: one Symbol (True), a list (False), or what is less work (None). **Source** MXNet `BaseRNNCell.unroll`.
        """
        self.reset()
        steps, _ = as_sequence(length, inputs, layout, False)
        states = self.begin_state() if begin_state is None else begin_state
        outputs = []
        for step in steps:
            output, states = self(step, states)
            outputs.append(output)
        return as_sequence(length, outputs, layout, merge_outputs)[0], states

    def _get_activation(self, inputs: Symbol, activation: Any, **kwargs: Any) -> Symbol:
        """An activation by its name, or by a function."""
        return (
            sym.Activation(inputs, act_type=activation, **kwargs) if isinstance(activation, str) else activation(inputs, **kwargs)
        )


class _DenseCell(BaseRNNCell):
    """A cell whose input and state go through a fully connected layer each."""

    def __init__(self, num_hidden: int, prefix: str, params: RNNParams | None, **bias: Any) -> None:
        super().__init__(prefix, params)
        if not isinstance(num_hidden, int):
            raise ArgumentError(f"{type(self).__name__}: num_hidden must be an int, got {shown(num_hidden)}")
        self._num_hidden = num_hidden
        self._iW, self._hW = self.params.get("i2h_weight"), self.params.get("h2h_weight")
        self._iB, self._hB = self.params.get("i2h_bias", **bias), self.params.get("h2h_bias")

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"}]

    def _connected(self, inputs: Symbol, state: Symbol, name: str) -> tuple[Symbol, Symbol]:
        size = self._num_hidden * len(self._gate_names)
        return (
            sym.FullyConnected(inputs, self._iW, self._iB, num_hidden=size, name=f"{name}i2h"),
            sym.FullyConnected(state, self._hW, self._hB, num_hidden=size, name=f"{name}h2h"),
        )


class RNNCell(_DenseCell):
    """h' = activation(W x + U h + b). **Args** `num_hidden`: units; `activation`: a name, or a function. **Source** MXNet `rnn.RNNCell`."""

    def __init__(self, num_hidden: int, activation: Any = "tanh", prefix: str = "rnn_", params: RNNParams | None = None) -> None:
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    @property
    def _gate_names(self) -> Sequence[str]:
        return ("",)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._connected(inputs, states[0], name)
        output = self._get_activation(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


class LSTMCell(_DenseCell):
    """A long short-term memory, with the gates i, f, c, o. **Args** `forget_bias`: with which the bias of f begins. **Source** MXNet
    `rnn.LSTMCell`."""

    def __init__(self, num_hidden: int, prefix: str = "lstm_", params: RNNParams | None = None, forget_bias: float = 1.0) -> None:
        super().__init__(num_hidden, prefix, params, init=initializer.LSTMBias(forget_bias=forget_bias))

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return super().state_info * 2

    @property
    def _gate_names(self) -> Sequence[str]:
        return ("_i", "_f", "_c", "_o")

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._connected(inputs, states[0], name)
        return lstm_step(i2h + h2h, states[1], name, lambda x, **how: sym.Activation(x, act_type="tanh", **how))


def lstm_step(
    gates: Symbol, memory: Symbol, name: str, activation: Callable[..., Symbol], axis: int = 1
) -> tuple[Symbol, list[Symbol]]:
    """Output and states (output, memory) of an LSTM from the sums that its gates get, one after the other along `axis`."""
    parts = sym.SliceChannel(gates, num_outputs=4, axis=axis, name=f"{name}slice")
    let_in = sym.Activation(parts[0], act_type="sigmoid", name=f"{name}i")
    keep = sym.Activation(parts[1], act_type="sigmoid", name=f"{name}f")
    new = activation(parts[2], name=f"{name}c")
    let_out = sym.Activation(parts[3], act_type="sigmoid", name=f"{name}o")
    memory = sym.elemwise_add(keep * memory, let_in * new, name=f"{name}state")
    output = sym.elemwise_mul(let_out, activation(memory), name=f"{name}out")
    return output, [output, memory]


class GRUCell(_DenseCell):
    """A gated recurrent unit, with the gates r, z, o, in cuDNN's form. **Source** MXNet `rnn.GRUCell`."""

    def __init__(self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None) -> None:
        super().__init__(num_hidden, prefix, params)

    @property
    def _gate_names(self) -> Sequence[str]:
        return ("_r", "_z", "_o")

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._connected(inputs, states[0], f"{name}_")
        return gru_step(i2h, h2h, states[0], name, lambda x, **how: sym.Activation(x, act_type="tanh", **how))


def gru_step(
    i2h: Symbol, h2h: Symbol, state: Symbol, name: str, activation: Callable[..., Symbol]
) -> tuple[Symbol, list[Symbol]]:
    """Output and state of a GRU from what its gates get of the input and of the state."""
    i2h_r, i2h_z, i2h_o = sym.SliceChannel(i2h, num_outputs=3, name=f"{name}_i2h_slice")
    h2h_r, h2h_z, h2h_o = sym.SliceChannel(h2h, num_outputs=3, name=f"{name}_h2h_slice")
    reset = sym.Activation(i2h_r + h2h_r, act_type="sigmoid", name=f"{name}_r_act")
    update = sym.Activation(i2h_z + h2h_z, act_type="sigmoid", name=f"{name}_z_act")
    new = activation(i2h_o + reset * h2h_o, name=f"{name}_h_act")
    output = sym.elemwise_add((1.0 - update) * new, update * state, name=f"{name}out")
    return output, [output]
