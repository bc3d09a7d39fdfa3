"""Cells that are made of others: in a row, in both directions, with dropout, zoneout or a residual connection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import nd, sym
from ..base import ArgumentError, shown
from ..checkpoint import Params
from ..sym import Symbol
from .rnn_cell import BaseRNNCell, CellError, RNNParams, as_sequence

__all__ = ["BidirectionalCell", "DropoutCell", "ModifierCell", "ResidualCell", "SequentialRNNCell", "ZoneoutCell"]


class _Several(BaseRNNCell):
    """A cell of cells: their states one after the other, their weights together."""

    def __init__(self, prefix: str, params: RNNParams | None) -> None:
        super().__init__(prefix, params)
        self._override_cell_params = params is not None

    def _take(self, cell: BaseRNNCell) -> None:
        self._cells.append(cell)
        if self._override_cell_params:
            if not cell._own_params:
                raise CellError(f"Either specify params for {type(self).__name__} or child cells, not both.")
            cell.params._params.update(self.params._params)
        self.params._params.update(cell.params._params)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, *args: Any, **kwargs: Any) -> list[Symbol]:
        self._require_own()
        return [state for cell in self._cells for state in cell.begin_state(*args, **kwargs)]

    def unpack_weights(self, args: Mapping[str, nd.NDArray]) -> Params:
        for cell in self._cells:
            args = cell.unpack_weights(args)
        return dict(args)

    def pack_weights(self, args: Mapping[str, nd.NDArray]) -> Params:
        for cell in self._cells:
            args = cell.pack_weights(args)
        return dict(args)

    def _states_of(self, states: Sequence[Symbol]) -> list[Sequence[Symbol]]:
        """The states of each cell."""
        found, begin = [], 0
        for cell in self._cells:
            end = begin + len(cell.state_info)
            found.append(states[begin:end])
            begin = end
        return found


class SequentialRNNCell(_Several):
    """Cells in a row: the output of each is the input of the next. **Source** MXNet `rnn.SequentialRNNCell`."""

    def __init__(self, params: RNNParams | None = None) -> None:
        super().__init__("", params)

    def add(self, cell: BaseRNNCell) -> None:
        """Put a cell at the end."""
        if not isinstance(cell, BaseRNNCell):
            raise ArgumentError(f"SequentialRNNCell.add: a cell of mx.rnn is wanted, got {shown(cell)}")
        self._take(cell)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        self._counter += 1
        following: list[Symbol] = []
        for cell, own in zip(self._cells, self._states_of(states)):
            inputs, after = cell(inputs, own)
            following += after
        return inputs, following

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None
    ) -> tuple[Any, list[Symbol]]:
        self.reset()
        states = self.begin_state() if begin_state is None else begin_state
        following: list[Symbol] = []
        for cell, own in zip(self._cells, self._states_of(states)):
            merge = merge_outputs if cell is self._cells[-1] else None
            inputs, after = cell.unroll(length, inputs, own, layout, merge)
            following += after
        return inputs, following


class BidirectionalCell(_Several):
    """Two cells, of which the second goes through the sequence from its end; outputs side by side.

    **Args** `output_prefix`: what the names of the outputs begin with. **Source** MXNet `rnn.BidirectionalCell`.
    """

    def __init__(
        self, l_cell: BaseRNNCell, r_cell: BaseRNNCell, params: RNNParams | None = None, output_prefix: str = "bi_"
    ) -> None:
        super().__init__("", params)
        self._output_prefix = output_prefix
        self._take(l_cell)
        self._take(r_cell)

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None
    ) -> tuple[Any, list[Any]]:
        """See `BaseRNNCell.unroll`. **Returns** the states of the two cells as two lists."""
        self.reset()
        steps, axis = as_sequence(length, inputs, layout, False)
        states = self._states_of(self.begin_state() if begin_state is None else begin_state)
        left, left_states = self._cells[0].unroll(length, steps, states[0], layout, merge_outputs)
        right, right_states = self._cells[1].unroll(length, steps[::-1], states[1], layout, merge_outputs)
        if merge_outputs is None:
            merge_outputs = isinstance(left, Symbol) and isinstance(right, Symbol)
            if not merge_outputs:
                left, right = (as_sequence(length, each, layout, False)[0] for each in (left, right))
        if merge_outputs:
            both = sym.Concat(left, sym.reverse(right, axis=axis), dim=2, name=f"{self._output_prefix}out")
            return both, [left_states, right_states]
        pairs = zip(left, reversed(right))
        outputs = [sym.Concat(*pair, dim=1, name=f"{self._output_prefix}t{step}") for step, pair in enumerate(pairs)]
        return outputs, [left_states, right_states]


class DropoutCell(BaseRNNCell):
    """Sets a fraction `dropout` of the inputs to zero while training. **Source** MXNet `rnn.DropoutCell`."""

    def __init__(self, dropout: float, prefix: str = "dropout_", params: RNNParams | None = None) -> None:
        super().__init__(prefix, params)
        if not isinstance(dropout, (int, float)):
            raise CellError(f"DropoutCell: dropout probability must be a number, got {shown(dropout)}")
        self.dropout = dropout

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return []

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        return sym.Dropout(inputs, p=self.dropout) if self.dropout > 0 else inputs, list(states)

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None
    ) -> tuple[Any, list[Symbol]]:
        self.reset()
        inputs, _ = as_sequence(length, inputs, layout, merge_outputs)
        if isinstance(inputs, Symbol):
            return self(inputs, [])
        return super().unroll(length, inputs, begin_state, layout, merge_outputs)


class ModifierCell(BaseRNNCell):
    """The base of cells that change what another, `base_cell`, does. That one cannot be used by itself any more.

    **Source** MXNet `rnn.ModifierCell`.
    """

    def __init__(self, base_cell: BaseRNNCell) -> None:
        super().__init__()
        base_cell._modified = True
        self.base_cell = base_cell

    @property
    def params(self) -> RNNParams:
        self._own_params = False
        return self.base_cell.params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return self.base_cell.state_info

    def reset(self) -> None:
        super().reset()
        if hasattr(self, "base_cell"):
            self.base_cell.reset()

    def begin_state(self, func: Callable[..., Symbol] = sym.zeros, **kwargs: Any) -> list[Symbol]:
        """See `BaseRNNCell.begin_state`. MXNet calls the function `init_sym` here."""
        self._require_own()
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(kwargs.pop("init_sym", func), **kwargs)
        finally:
            self.base_cell._modified = True

    def unpack_weights(self, args: Mapping[str, nd.NDArray]) -> Params:
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: Mapping[str, nd.NDArray]) -> Params:
        return self.base_cell.pack_weights(args)


class ZoneoutCell(ModifierCell):
    """Keeps a fraction of outputs and states as they were in the step before, while training. **Source** MXNet `rnn.ZoneoutCell`."""

    def __init__(self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0) -> None:
        if type(base_cell).__call__ is BaseRNNCell.__call__:
            raise CellError(
                f"{type(base_cell).__name__} doesn't support zoneout since it doesn't support step. Please add ZoneoutCell to the cells "
                "underneath, or unfuse() it first."
            )
        super().__init__(base_cell)
        self.zoneout_outputs = zoneout_outputs
        self.zoneout_states = zoneout_states
        self.prev_output: Symbol | None = None

    def reset(self) -> None:
        super().reset()
        self.prev_output = None

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        output, following = self.base_cell(inputs, states)

        def mixed(fraction: float, new: Symbol, old: Symbol) -> Symbol:
            return sym.where(sym.Dropout(sym.ones_like(new), p=fraction), new, old)

        if self.zoneout_outputs:
            output = mixed(self.zoneout_outputs, output, sym.zeros_like(output) if self.prev_output is None else self.prev_output)
        if self.zoneout_states:
            following = [mixed(self.zoneout_states, new, old) for new, old in zip(following, states)]
        self.prev_output = output
        return output, following


class ResidualCell(ModifierCell):
    """Adds the input to the output. **Source** MXNet `rnn.ResidualCell`."""

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        output, following = self.base_cell(inputs, states)
        return _with_input(output, inputs), following

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None
    ) -> tuple[Any, list[Symbol]]:
        self.reset()
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(length, inputs, begin_state, layout, merge_outputs)
        finally:
            self.base_cell._modified = True
        merge = isinstance(outputs, Symbol)
        inputs, _ = as_sequence(length, inputs, layout, merge)
        if merge:
            return _with_input(outputs, inputs), states
        return [_with_input(*pair) for pair in zip(outputs, inputs)], states


def _with_input(output: Symbol, inputs: Symbol) -> Symbol:
    return sym.elemwise_add(output, inputs, name=f"{output.name}_plus_residual")
