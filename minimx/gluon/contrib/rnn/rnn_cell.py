"""An LSTM with a projection, dropout that is the same at all steps, and unrolling as a loop of the graph."""

from __future__ import annotations

from typing import Any

from ...parameter import Parameter, ParameterDict, tensor_types
from ...rnn.modifier_cells import RememberingCell, refuse_bidirectional
from ...rnn.recurrent_cell import RecurrentCell, axes_of, batch_size_of, formatted, masked, merged, module_of
from ...rnn.rnn_cell import GatedCell

__all__ = ["LSTMPCell", "VariationalDropoutCell", "dynamic_unroll"]


class VariationalDropoutCell(RememberingCell):
    """Dropout of a cell's inputs, states and outputs that leaves out the same units at all steps.

    What is left out is drawn at the first step, and again after `reset()`, which `unroll` calls. **Args** `drop_inputs`, `drop_states`
    (of the first state), `drop_outputs`: the fractions. **Raises** ValueError for states of a BidirectionalCell, whose cells it should
    modify. **Source** MXNet `contrib.rnn.VariationalDropoutCell`; Gal and Ghahramani, 2016.
    """

    def __init__(
        self, base_cell: RecurrentCell, drop_inputs: float = 0.0, drop_states: float = 0.0, drop_outputs: float = 0.0
    ) -> None:
        if drop_states:
            refuse_bidirectional("variational state dropout", "VariationalDropoutCell", base_cell)
        super().__init__(base_cell)
        self.drop_inputs = drop_inputs
        self.drop_states = drop_states
        self.drop_outputs = drop_outputs
        self._forget()

    def _forget(self) -> None:
        self.drop_inputs_mask: Any = None
        self.drop_states_mask: Any = None
        self.drop_outputs_mask: Any = None

    def _alias(self) -> str:
        return "vardrop"

    def reset(self) -> None:
        super().reset()
        self._forget()

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        def mask(like: Any, p: float, before: Any) -> Any:
            return F.Dropout(F.ones_like(like), p=p) if p and before is None else before

        self.drop_states_mask = mask(states[0], self.drop_states, self.drop_states_mask)
        self.drop_inputs_mask = mask(inputs, self.drop_inputs, self.drop_inputs_mask)
        if self.drop_states:
            states = [states[0] * self.drop_states_mask, *states[1:]]
        if self.drop_inputs:
            inputs = inputs * self.drop_inputs_mask
        output, states = self.base_cell(inputs, states)
        self.drop_outputs_mask = mask(output, self.drop_outputs, self.drop_outputs_mask)
        return (output * self.drop_outputs_mask if self.drop_outputs else output), states

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Do `length` steps: see RecurrentCell. Without dropout of states the whole sequence is dropped from at once."""
        if self.drop_states:
            return super().unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)
        self.reset()
        axis, batch_axis = axes_of(layout)
        inputs = formatted(inputs, length, axis, True)
        F = module_of(inputs)
        states = self._first_states(begin_state, inputs, batch_size_of(inputs, batch_axis))
        if self.drop_inputs:
            inputs = F.Dropout(inputs, p=self.drop_inputs, axes=(axis,))
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(length, inputs, states, layout, True, valid_length)
        finally:
            self.base_cell._modified = True
        if self.drop_outputs:
            outputs = F.Dropout(outputs, p=self.drop_outputs, axes=(axis,))
        merge = merge_outputs is None or merge_outputs
        outputs = formatted(outputs, length, axis, merge)
        if valid_length is not None:
            outputs = masked(outputs, length, valid_length, axis, merge)
        return outputs, states

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out = {self.drop_outputs}, p_state = {self.drop_states})"


class LSTMPCell(GatedCell):
    """One step of an LSTM whose state is a projection of the hidden units: `r' = P h'`, with h' as in LSTMCell, and r in the place of h.

    **Shapes** inputs (N, C), states r (N, R) and c (N, H), output r' (N, R), i2h_weight (4 H, C), h2h_weight (4 H, R), h2r_weight P
    (R, H), i2h_bias and h2h_bias (4 H,). **Args** as LSTMCell; `projection_size`: R. **Source** MXNet `contrib.rnn.LSTMPCell`; Sak et
    al., 2014.
    """

    gates = 4

    h2r_weight: Parameter

    def __init__(
        self, hidden_size: int, projection_size: int, i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
        h2r_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros", input_size: int = 0,
        prefix: str | None = None, params: ParameterDict | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            hidden_size, i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, input_size, prefix,
            params, projection_size,
        )  # fmt: skip
        self._projection_size = projection_size
        self._weights({"h2r_weight": (projection_size, hidden_size)}, {"h2r_weight": h2r_weight_initializer})

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return [self._state(batch_size, self._projection_size), self._state(batch_size, self._hidden_size)]

    def _alias(self) -> str:
        return "lstmp"

    def _mapping(self) -> str:
        return f"{super()._mapping()} -> {self._projection_size}"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, **params: Any) -> Any:  # type: ignore[override]  # with states
        stem = f"t{self._counter}_"
        i2h, h2h = self._products(F, inputs, states[0], params, stem)
        gates = F.split(i2h + h2h, num_outputs=4, name=f"{stem}slice")
        in_gate = F.Activation(gates[0], act_type="sigmoid", name=f"{stem}i")
        forget_gate = F.Activation(gates[1], act_type="sigmoid", name=f"{stem}f")
        transform = F.Activation(gates[2], act_type="tanh", name=f"{stem}c")
        out_gate = F.Activation(gates[3], act_type="sigmoid", name=f"{stem}o")
        cell = F.elemwise_add(forget_gate * states[1], in_gate * transform, name=f"{stem}state")
        hidden = F.elemwise_mul(out_gate, F.Activation(cell, act_type="tanh"), name=f"{stem}hidden")
        output = F.FullyConnected(
            data=hidden, num_hidden=self._projection_size, weight=params["h2r_weight"], no_bias=True, name=f"{stem}out"
        )
        return output, [output, cell]


def dynamic_unroll(
    cell: RecurrentCell, inputs: Any, begin_state: Any, drop_inputs: float = 0, drop_outputs: float = 0, layout: str = "TNC",
    valid_length: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Do as many steps as the inputs have, by `contrib.foreach`: a graph has the cell once, for any number of steps.

    **Shapes** inputs (T, N, C), or as `layout` says; valid_length (N,), result (T, N, H). **Args** `begin_state`: must be given.
    `drop_inputs`, `drop_outputs`: fractions of units to leave out, the same ones at all steps. `valid_length`: how many steps of each
    example count; beyond them outputs are 0, and the states are those after the last one. **Returns** the outputs and the last states.
    **Source** MXNet `contrib.rnn.dynamic_unroll`.

    >>> from minimx.gluon import contrib, rnn
    >>> cell = rnn.GRUCell(4)
    >>> cell.initialize()
    >>> x = mx.nd.ones((3, 2, 5))
    >>> outputs, states = contrib.rnn.dynamic_unroll(cell, x, cell.begin_state(batch_size=2))
    >>> outputs.shape
    (3, 2, 4)
    """
    axis, _ = axes_of(layout)
    inputs = merged(inputs, axis)
    F = module_of(inputs)
    if axis != 0:
        inputs = F.swapaxes(inputs, 0, axis)
    if drop_inputs:
        inputs = F.Dropout(inputs, p=drop_inputs, axes=(0,))
    states = [begin_state] if isinstance(begin_state, tensor_types) else list(begin_state)
    if valid_length is None:
        outputs, states = F.contrib.foreach(cell, inputs, states)
    else:

        def step(data: Any, states: Any) -> Any:
            """A step of those examples that are not over yet; the last state is its number."""
            *before, number = states
            output, after = cell(data, before)
            goes_on = F.broadcast_greater(valid_length, number)
            return output, [*(F.where(goes_on, new, old) for new, old in zip(after, before)), number + 1]

        outputs, states = F.contrib.foreach(step, inputs, [*states, F.zeros((1,))])
        states = states[:-1]
    if drop_outputs:
        outputs = F.Dropout(outputs, p=drop_outputs, axes=(0,))
    if valid_length is not None:
        outputs = F.SequenceMask(outputs, sequence_length=valid_length, use_sequence_length=True, axis=0)
    return (F.swapaxes(outputs, 0, axis) if axis != 0 else outputs), states
