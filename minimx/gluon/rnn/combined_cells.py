"""Cells made of cells: one on top of the other, or two that read a sequence in both directions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ... import nd
from ...base import ArgumentError
from ..block import Block
from ..parameter import ParameterDict, tensor_types
from ..utils import indented
from .recurrent_cell import (  # fmt: skip
    HybridRecurrentCell,
    RecurrentCell,
    axes_of,
    batch_size_of,
    formatted,
    masked,
    merged,
    module_of,
    reversed_steps,
    split_steps,
)

__all__ = ["BidirectionalCell", "HybridSequentialRNNCell", "SequentialRNNCell"]


class _Cells(RecurrentCell):
    """What cells of cells share: their states are those of all cells, one after the other."""

    @property
    def _cells(self) -> list[Any]:
        return list(self._children.values())

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return [info for cell in self._cells for info in cell.state_info(batch_size)]

    def begin_state(self, batch_size: int = 0, func: Any = nd.zeros, **kwargs: Any) -> list[Any]:
        """The states of all cells to begin with: see RecurrentCell."""
        self._require_unmodified()
        return [state for cell in self._cells for state in cell.begin_state(batch_size=batch_size, func=func, **kwargs)]

    def _shares(self, states: Any) -> Iterator[tuple[Any, Any]]:
        """Each cell with its part of the states. Raises ArgumentError for another number of states."""
        counts = [len(cell.state_info()) for cell in self._cells]
        if len(states) != sum(counts):
            raise ArgumentError(f"{self.name}: {len(states)} states are given, but the cells have {sum(counts)}")
        low = 0
        for cell, count in zip(self._cells, counts):
            yield cell, states[low : low + count]
            low += count


class _Stack(_Cells):
    """What SequentialRNNCell and HybridSequentialRNNCell share."""

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None, *cells: RecurrentCell) -> None:
        if any(isinstance(each, (Block, list, tuple)) for each in (prefix, params, *cells)):
            name = type(self).__name__
            raise ArgumentError(
                f"{name}: cells are not given when it is made, they are added one by one: net = {name}(); net.add(rnn.LSTMCell(3))"
            )
        super().__init__(prefix, params, *cells)

    def add(self, cell: RecurrentCell) -> None:
        """Put a cell on top: its inputs are the outputs of the one below."""
        self.register_child(cell)

    def __call__(self, inputs: Any, states: Any) -> Any:
        """One step of all cells. It is Python code even when hybridized, each cell a graph: some remember what they did the step before."""
        self._counter += 1
        found: list[Any] = []
        for cell, share in self._shares(states):
            inputs, new = cell(inputs, share)
            found.extend(new)
        return inputs, found

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Do `length` steps of the lowest cell, then those of the next one: see RecurrentCell."""
        self.reset()
        _, batch_axis = axes_of(layout)
        if not isinstance(inputs, tensor_types):
            inputs = split_steps(inputs, length, 0)
        states = self._first_states(begin_state, inputs, batch_size_of(inputs, batch_axis))
        found: list[Any] = []
        last = len(self._children) - 1
        for number, (cell, share) in enumerate(self._shares(states)):
            merge = merge_outputs if number == last else None
            inputs, new = cell.unroll(length, inputs, share, layout, merge, valid_length)
            found.extend(new)
        return inputs, found

    def __getitem__(self, key: int) -> Any:
        """The cell with this number, from below."""
        return self._cells[key]

    def __len__(self) -> int:
        return len(self._children)

    def __repr__(self) -> str:
        lines = "\n".join(f"({key}): {indented(repr(cell), 2)}" for key, cell in self._children.items())
        return f"{type(self).__name__}(\n{lines}\n)"


class SequentialRNNCell(_Stack):
    """Cells one on top of the other. **Source** MXNet `rnn.SequentialRNNCell`.

    >>> from minimx.gluon import rnn
    >>> cell = rnn.SequentialRNNCell()
    >>> cell.add(rnn.LSTMCell(8))
    >>> cell.add(rnn.GRUCell(4))
    >>> cell.initialize()
    >>> outputs, states = cell.unroll(3, mx.nd.ones((2, 3, 5)), merge_outputs=True)
    >>> outputs.shape, len(states)
    ((2, 3, 4), 3)
    """


class HybridSequentialRNNCell(_Stack, HybridRecurrentCell):
    """Hybrid cells one on top of the other. **Source** MXNet `rnn.HybridSequentialRNNCell`."""

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, **kwargs: Any) -> Any:  # type: ignore[override]  # with states
        return self(inputs, states)


class BidirectionalCell(_Cells, HybridRecurrentCell):
    """Two cells that read a sequence from both ends; at each step the result is both outputs side by side. It can only be unrolled.

    **Shapes** result (N, T, H + H'). The states are those of `l_cell`, which begins at the beginning, and then those of `r_cell`.
    **Source** MXNet `rnn.BidirectionalCell`.
    """

    def __init__(self, l_cell: RecurrentCell, r_cell: RecurrentCell, output_prefix: str = "bi_") -> None:
        super().__init__(prefix="", params=None)
        self.register_child(l_cell, "l_cell")
        self.register_child(r_cell, "r_cell")
        self._output_prefix = output_prefix

    def __call__(self, inputs: Any, states: Any, *args: Any) -> Any:
        raise NotImplementedError("Bidirectional cannot be stepped. Please use unroll")

    def unroll(
        self, length: int, inputs: Any, begin_state: Any = None, layout: str = "NTC", merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Do `length` steps in each direction: see RecurrentCell. With `valid_length` each example is reversed within its own length."""
        self.reset()
        axis, batch_axis = axes_of(layout)
        steps = split_steps(inputs, length, axis)
        F = module_of(steps)
        backwards = reversed_steps(steps, valid_length)
        states = self._first_states(begin_state, steps, batch_size_of(inputs, batch_axis))
        (left, left_states), (right, right_states) = self._shares(states)
        outputs, left_states = left.unroll(length, steps, left_states, layout, merge_outputs, valid_length)
        turned, right_states = right.unroll(length, backwards, right_states, layout, False, valid_length)
        others = reversed_steps(turned, valid_length)
        if merge_outputs is None:
            merge_outputs = isinstance(outputs, tensor_types)
        if merge_outputs:
            result = F.concat(outputs, merged(others, axis), dim=2, name=f"{self._output_prefix}out")
        else:
            pairs = zip(formatted(outputs, length, axis, False), others)
            result = [
                F.concat(one, other, dim=1, name=f"{self._output_prefix}t{step}") for step, (one, other) in enumerate(pairs)
            ]
        if valid_length is not None:
            result = masked(result, length, valid_length, axis, merge_outputs)
        return result, [*left_states, *right_states]

    def __repr__(self) -> str:
        left, right = self._cells
        return f"{type(self).__name__}(forward={left}, backward={right})"
