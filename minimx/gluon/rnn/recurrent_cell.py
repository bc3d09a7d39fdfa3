"""What a recurrent cell is: a block that does one step, from an input and states to an output and new states; and `unroll`, many steps.

A cell is written with ordinary operators, so that anything can be a cell, in Python code or in a graph; a graph has a copy of its nodes
for each step, which the names tell apart (`lstm0_t2_out`). The layers in rnn_layer.py do all steps in one operator. Book: chapter 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import nd, sym
from ...base import ArgumentError, ShapeError
from ...nd import NDArray
from ...sym import Symbol
from ..block import Block, HybridBlock
from ..nn import LeakyReLU
from ..nn.activations import require_activation
from ..parameter import Parameter, ParameterDict, tensor_types

__all__ = ["HybridRecurrentCell", "RecurrentCell"]


# ---- sequences: one tensor with an axis of time, or a list of tensors, one a step


def as_list(outputs: Any) -> list[Any]:
    """Outputs of `split`, of which there may be one."""
    return list(outputs) if isinstance(outputs, (list, tuple, Symbol)) else [outputs]


def module_of(inputs: Any) -> Any:
    """`mx.sym` for Symbols, `mx.nd` for arrays."""
    return sym if isinstance(inputs if isinstance(inputs, tensor_types) else inputs[0], Symbol) else nd


def axes_of(layout: str) -> tuple[int, int]:
    """The axes of time and of the batch in a layout such as "NTC". Raises ArgumentError if it has none."""
    if not isinstance(layout, str) or "T" not in layout or "N" not in layout:
        raise ArgumentError(f"layout={layout!r} does not say where time T and batch N are; give 'NTC' or 'TNC'")
    return layout.index("T"), layout.index("N")


def batch_size_of(inputs: Any, batch_axis: int) -> int:
    """The length of the batch; 0 if it is unknown, as in a graph."""
    if isinstance(inputs, NDArray):
        return int(inputs.shape[batch_axis])
    return 0 if isinstance(inputs, Symbol) or isinstance(inputs[0], Symbol) else int(inputs[0].shape[0])


def split_steps(inputs: Any, length: int | None, axis: int) -> list[Any]:
    """A sequence as a list of `length` steps. Raises ShapeError if it has another number of them."""
    if inputs is None or (not isinstance(inputs, tensor_types) and not len(inputs)):
        raise ArgumentError(
            "unroll: inputs are missing; give a tensor with an axis of time, or a list of tensors, one for each step"
        )
    if not isinstance(inputs, tensor_types):
        if length is not None and len(inputs) != length:
            raise ShapeError(f"unroll: length is {length}, but there are {len(inputs)} inputs")
        return list(inputs)
    if isinstance(inputs, NDArray):
        steps = inputs.shape[axis]
        if length is not None and steps != length:
            raise ShapeError(f"unroll: length is {length}, but axis {axis} of inputs, of shape {inputs.shape}, has {steps} steps")
        return as_list(nd.split(inputs, axis=axis, num_outputs=steps, squeeze_axis=True))
    if len(inputs.entries) > 1:
        raise ArgumentError("unroll: a Symbol of several outputs is no sequence; give list(symbol), a Symbol for each step")
    if length is None:
        raise ArgumentError("unroll: length is needed to split a Symbol into steps")
    return as_list(sym.split(inputs, axis=axis, num_outputs=length, squeeze_axis=True))


def merged(steps: Any, axis: int) -> Any:
    """A sequence as one tensor."""
    return steps if isinstance(steps, tensor_types) else module_of(steps).stack(*steps, axis=axis)


def formatted(sequence: Any, length: int | None, axis: int, merge: bool | None) -> Any:
    """A sequence as one tensor (`merge`), as a list of steps (False), or as it is (None)."""
    if merge is None:
        return sequence
    return merged(sequence, axis) if merge else split_steps(sequence, length, axis)


def masked(data: Any, length: int, valid_length: Any, axis: int, merge: bool | None) -> Any:
    """A sequence with 0 beyond the valid length of each example: as one tensor, or as a list of steps if `merge` is False or None."""
    F = module_of(data)
    data = F.SequenceMask(merged(data, axis), sequence_length=valid_length, use_sequence_length=True, axis=axis)
    return data if merge else as_list(F.split(data, num_outputs=length, axis=axis, squeeze_axis=True))


def reversed_steps(steps: Sequence[Any], valid_length: Any = None) -> list[Any]:
    """The steps from the last one to the first; of each example only the valid ones, the others stay behind them."""
    if valid_length is None:
        return list(reversed(steps))
    F = module_of(steps)
    turned = F.SequenceReverse(F.stack(*steps, axis=0), sequence_length=valid_length, use_sequence_length=True)
    return as_list(F.split(turned, axis=0, num_outputs=len(steps), squeeze_axis=True))


# ---- cells


class RecurrentCell(Block):
    """The base of all cells. A subclass overrides `state_info`, and `forward(inputs, states)`, which returns the output and new states.

    **Args** as Block. **Source** MXNet `rnn.RecurrentCell`.
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._modified = False  # whether another cell has taken it over, which must be called instead
        self.reset()

    def reset(self) -> None:
        """Forget how many steps were done: names of nodes begin at `t0` again. `unroll` does it at its start."""
        self._init_counter = -1
        self._counter = -1
        for cell in self._children.values():
            if isinstance(cell, RecurrentCell):
                cell.reset()

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state, as keywords for `nd.zeros` and its like."""
        raise NotImplementedError(f"{type(self).__name__} must override state_info")

    def _require_unmodified(self) -> None:
        if self._modified:
            raise ArgumentError(
                f"{self.name}: another cell (such as ZoneoutCell) has modified this one and must be called in its place"
            )

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = nd.zeros, **kwargs: Any) -> list[Any]:
        """States to begin with: `func(name=, shape=, **kwargs)` of each. For a graph give `func=mx.sym.zeros`, or `mx.sym.var`.

        **Args** `batch_size`: needed for arrays; in a graph 0 stands for any. **Raises** ValueError if the cell was modified by another.
        """
        self._require_unmodified()
        states = []
        for info in self.state_info(batch_size):
            self._init_counter += 1
            states.append(func(name=f"{self._prefix}begin_state_{self._init_counter}", **{**info, **kwargs}))
        return states

    def _first_states(self, begin_state: Any, inputs: Any, batch_size: int) -> Any:
        """`begin_state`, or zeros where and of what dtype the inputs are."""
        if begin_state is not None:
            return begin_state
        F = module_of(inputs)
        if F is sym:
            return self.begin_state(func=sym.zeros, batch_size=batch_size)
        first = inputs if isinstance(inputs, NDArray) else inputs[0]
        kind = {} if first.dtype == np.float32 else {"dtype": first.dtype}
        with first.context:
            return self.begin_state(func=nd.zeros, batch_size=batch_size, **kind)

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Do `length` steps.

        **Shapes** inputs (N, T, C), or as `layout` says, or a list of T tensors (N, C); valid_length (N,), result (N, T, H) or a list.
        **Args** `begin_state`: zeros by default. `merge_outputs`: give the outputs as one tensor (True), or as a list (False); None:
        whichever is there. `valid_length`: how many steps of each example count; beyond them outputs are 0, and the states are those
        after the last one. **Returns** the outputs and the last states. **Source** MXNet `RecurrentCell.unroll`.

        >>> from minimx.gluon import rnn
        >>> cell = rnn.LSTMCell(4)
        >>> cell.initialize()
        >>> outputs, states = cell.unroll(3, mx.nd.ones((2, 3, 5)), merge_outputs=True)
        >>> outputs.shape, [state.shape for state in states]
        ((2, 3, 4), [(2, 4), (2, 4)])
        """
        self.reset()
        axis, batch_axis = axes_of(layout)
        steps = split_steps(inputs, length, axis)
        F = module_of(steps)
        states = self._first_states(begin_state, steps, batch_size_of(inputs, batch_axis))
        outputs, history = [], []
        for step in range(length):
            output, states = self(steps[step], states)
            outputs.append(output)
            history.append(states)
        if valid_length is None:
            return formatted(outputs, length, axis, merge_outputs), states
        states = [
            F.SequenceLast(F.stack(*each, axis=0), sequence_length=valid_length, use_sequence_length=True, axis=0)
            for each in zip(*history)
        ]
        return formatted(masked(outputs, length, valid_length, axis, True), length, axis, merge_outputs), states

    def __call__(self, inputs: Any, states: Any, *args: Any) -> Any:
        """One step: the output and the new states, for inputs (N, C) and a list of states."""
        self._counter += 1
        return super().__call__(inputs, states, *args)

    def _require_activation(self, argument: str, value: Any) -> None:
        """Raise ArgumentError unless `value` is what `_get_activation` takes."""
        if not callable(value):
            require_activation(self, argument, value)

    def _get_activation(self, F: Any, inputs: Any, activation: Any, **kwargs: Any) -> Any:
        """`activation` of the inputs: the name of one, a LeakyReLU, or a block or function."""
        if isinstance(activation, str):
            if activation in ("tanh", "relu", "sigmoid", "softsign"):
                return getattr(F, activation)(inputs, **kwargs)
            return F.Activation(inputs, act_type=activation, **kwargs)
        if isinstance(activation, LeakyReLU):
            return F.LeakyReLU(inputs, act_type="leaky", slope=activation._alpha, **kwargs)
        return activation(inputs, **kwargs)


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """The base of cells that can be part of a graph. A subclass overrides `state_info` and `hybrid_forward(F, inputs, states, ...)`."""

    i2h_weight: Parameter  # if `_state` is to be used

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must override hybrid_forward")

    def _weights(self, shapes: dict[str, tuple[int, ...]], initializers: dict[str, Any]) -> None:
        """Make parameters, each an attribute of its name."""
        for name, shape in shapes.items():
            setattr(self, name, self.params.get(name, shape=shape, init=initializers.get(name), allow_deferred_init=True))

    def _state(self, *shape: int, layout: str = "NC") -> dict[str, Any]:
        """What `state_info` says of a state: in the dtype of the weights where that is not the usual one."""
        weight: Parameter = self.i2h_weight
        dtype = np.dtype(weight.dtype)
        return {"shape": shape, "__layout__": layout, **({} if dtype == np.float32 else {"dtype": dtype.name})}
