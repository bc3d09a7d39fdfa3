"""Cells that change what another cell does: dropout, zoneout, a residual connection."""

from __future__ import annotations

from numbers import Real
from typing import Any

from ... import nd
from ...base import ArgumentError
from ..parameter import ParameterDict, tensor_types
from .combined_cells import BidirectionalCell
from .recurrent_cell import HybridRecurrentCell, RecurrentCell, axes_of, formatted, masked, module_of, split_steps

__all__ = ["DropoutCell", "ModifierCell", "ResidualCell", "ZoneoutCell"]


class DropoutCell(HybridRecurrentCell):
    """Dropout of the inputs, for between the cells of a stack; it has no states.

    **Shapes** inputs and output (N, C). **Args** `rate`: the fraction that becomes 0; `axes`: along these all elements share their fate.
    **Source** MXNet `rnn.DropoutCell`.
    """

    def __init__(
        self, rate: float, axes: tuple[int, ...] = (), prefix: str | None = None, params: ParameterDict | None = None
    ) -> None:
        super().__init__(prefix, params)
        if not isinstance(rate, Real):
            raise ArgumentError(f"DropoutCell: rate must be a number, got {type(rate).__name__}")
        self._rate: Any = rate
        self._axes: tuple[int, ...] = axes

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return []

    def _alias(self) -> str:
        return "dropout"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        if self._rate > 0:
            inputs = F.Dropout(data=inputs, p=self._rate, axes=self._axes, name=f"t{self._counter}_fwd")
        return inputs, states

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Drop from all steps, at once where they are one tensor."""
        self.reset()
        inputs = formatted(inputs, length, axes_of(layout)[0], merge_outputs)
        if isinstance(inputs, tensor_types):
            return self.hybrid_forward(module_of(inputs), inputs, begin_state or [])
        return super().unroll(length, inputs, begin_state, layout, merge_outputs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rate={self._rate}, axes={self._axes})"


class ModifierCell(HybridRecurrentCell):
    """The base of cells that change what another one, `base_cell`, does. That one must not be called any more, but the modifier.

    **Raises** ValueError if `base_cell` has been modified already. **Source** MXNet `rnn.ModifierCell`.
    """

    def __init__(self, base_cell: RecurrentCell) -> None:
        if base_cell._modified:
            raise ArgumentError(f"Cell {base_cell.name} is already modified. One cell cannot be modified twice")
        base_cell._modified = True
        super().__init__(prefix=base_cell.prefix + self._alias(), params=None)
        self.base_cell = base_cell

    @property
    def params(self) -> ParameterDict:
        """Those of the cell that is modified."""
        return self.base_cell.params

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return self.base_cell.state_info(batch_size)

    def begin_state(self, batch_size: int = 0, func: Any = nd.zeros, **kwargs: Any) -> list[Any]:
        """The states of the cell that is modified: see RecurrentCell."""
        self._require_unmodified()
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(batch_size=batch_size, func=func, **kwargs)
        finally:
            self.base_cell._modified = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_cell})"


class RememberingCell(ModifierCell):
    """A modifier that remembers something from step to step. A graph of a single step would not: only the cell below becomes one.

    Inside the graph of a block that does all steps it is as good as any other.
    """

    def _set_active(self, active: bool) -> None:
        super()._set_active(False)


class ZoneoutCell(RememberingCell):
    """In training, a random fraction of the outputs and of the states stays what it was at the step before.

    **Args** `zoneout_outputs`, `zoneout_states`: the fractions. **Raises** ValueError for a BidirectionalCell, whose cells it should
    modify. **Source** MXNet `rnn.ZoneoutCell`; Krueger et al., 2016.
    """

    def __init__(self, base_cell: RecurrentCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0) -> None:
        refuse_bidirectional("zoneout", "ZoneoutCell", base_cell)
        super().__init__(base_cell)
        self.zoneout_outputs = zoneout_outputs
        self.zoneout_states = zoneout_states
        self._prev_output: Any = None

    def _alias(self) -> str:
        return "zoneout"

    def reset(self) -> None:
        super().reset()
        self._prev_output = None

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        output, new_states = self.base_cell(inputs, states)
        before = F.zeros_like(output) if self._prev_output is None else self._prev_output

        def mixed(p: float, new: Any, old: Any) -> Any:
            """`new`, but `old` in a random fraction p: where dropout of ones gives 0."""
            return F.where(F.Dropout(F.ones_like(new), p=p), new, old) if p != 0 else new

        output = mixed(self.zoneout_outputs, output, before)
        self._prev_output = output
        return output, [mixed(self.zoneout_states, new, old) for new, old in zip(new_states, states)]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out={self.zoneout_outputs}, p_state={self.zoneout_states}, {self.base_cell})"


class ResidualCell(ModifierCell):
    """The input is added to the output, which must be as long. **Source** MXNet `rnn.ResidualCell`; Wu et al., 2016."""

    def hybrid_forward(self, F: Any, inputs: Any, states: Any) -> Any:
        output, states = self.base_cell(inputs, states)
        return F.elemwise_add(output, inputs, name=f"t{self._counter}_fwd"), states

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Unroll the cell, and add the inputs: see RecurrentCell. Beyond the valid length outputs are 0."""
        self.reset()
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)
        finally:
            self.base_cell._modified = True
        merge = isinstance(outputs, tensor_types) if merge_outputs is None else merge_outputs
        axis, _ = axes_of(layout)
        inputs = formatted(inputs, length, axis, merge)
        F = module_of(inputs)
        if valid_length is not None:
            inputs = masked(inputs, length, valid_length, axis, merge)
        if merge:
            return F.elemwise_add(outputs, inputs), states
        return [F.elemwise_add(one, other) for one, other in zip(outputs, split_steps(inputs, length, axis))], states


def refuse_bidirectional(what: str, name: str, cell: RecurrentCell) -> None:
    """Raise ArgumentError if a cell has no steps to modify."""
    if isinstance(cell, BidirectionalCell):
        raise ArgumentError(
            f"BidirectionalCell doesn't support {what}, as it has no single step; put {name} around the cells in it"
        )
