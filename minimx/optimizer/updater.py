"""Updater: an optimizer together with the states of the parameters it has met, as a function of index, gradient and weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..device import Context
from ..nd import NDArray
from . import states
from .optimizer import Optimizer, Stepwise

__all__ = ["Updater", "get_updater"]


class Updater:
    """Calls the optimizer, and keeps its states. The states of a parameter are made when it first comes.

    **Args** `optimizer`: may be shared by several updaters, one for each device. **Source** MXNet `optimizer.Updater`.

    >>> from minimx import optimizer
    >>> update, weight = optimizer.get_updater(optimizer.create("sgd", learning_rate=0.5)), mx.nd.ones((2,))
    >>> update(0, mx.nd.array([1, 2]), weight)
    >>> weight.asnumpy().tolist()
    [0.5, 0.0]
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.states: dict[Any, Any] = {}
        self.states_synced: dict[Any, bool] = {}  # False: loaded, and perhaps not on the parameter's device yet
        self.aggregate_updates = optimizer.aggregate_num > 0

    def __call__(self, index: Any, grad: Any, weight: Any) -> None:
        """Update `weight` in place. Lists of indices, gradients and weights are updated one after the other, or together."""
        if not isinstance(index, (list, tuple)):
            index, grad, weight = [index], [grad], [weight]
        if not weight:
            return
        self.optimizer._set_current_context(weight[0].context.device_id)
        for each, array in zip(index, weight):
            self._prepare(each, array)
        if not self.aggregate_updates:
            for each, slope, array in zip(index, grad, weight):
                self.optimizer.update_multi_precision(each, array, slope, self.states[each])
            return
        by_dtype: dict[Any, list[tuple[Any, Any, Any]]] = {}
        for each, slope, array in zip(index, grad, weight):
            by_dtype.setdefault(array.dtype, []).append((each, array, slope))
        for rows in by_dtype.values():
            for begin in range(0, len(rows), self.optimizer.aggregate_num):
                indices, arrays, slopes = map(list, zip(*rows[begin : begin + self.optimizer.aggregate_num]))
                self.optimizer.update_multi_precision(indices, arrays, slopes, [self.states[each] for each in indices])

    def joins(self, weights: Sequence[NDArray]) -> bool:
        """Whether `update_copies` can be called with these weights."""
        own = self.optimizer
        if not isinstance(own, Stepwise) or own.aggregate_num < len(weights):
            return False
        if (type(own).update, type(own).update_multi_precision) != (Stepwise.update, Stepwise.update_multi_precision):
            return False
        return len({weight.dtype for weight in weights}) == 1 and weights[0].dtype is not np.float16

    def update_copies(
        self,
        index: Sequence[Any],
        grads: Sequence[Sequence[NDArray]],
        weights: Sequence[NDArray],
        copies: Sequence[Sequence[NDArray]],
    ) -> None:
        """As the call with the sum of each weight's gradients; then let its copies become equal to it. See `Stepwise.update_copies`."""
        self.optimizer._set_current_context(weights[0].context.device_id)
        for each, array in zip(index, weights):
            self._prepare(each, array)
        assert isinstance(self.optimizer, Stepwise)
        self.optimizer.update_copies(index, weights, grads, [self.states[each] for each in index], copies)

    def _prepare(self, index: Any, weight: NDArray) -> None:
        """Make the states of a parameter, or bring loaded ones to its device."""
        if index not in self.states:
            self.states[index] = self.optimizer.create_state_multi_precision(index, weight)
        elif not self.states_synced[index]:
            self.states[index] = self.sync_state_context(self.states[index], weight.context)
        self.states_synced[index] = True

    def sync_state_context(self, state: Any, context: Context) -> Any:
        """The state on another device; what is there already is not copied."""
        if isinstance(state, NDArray):
            return state.as_in_context(context)
        if isinstance(state, (tuple, list)):
            return type(state)(self.sync_state_context(each, context) for each in state)
        return state

    def set_states(self, data: bytes) -> None:
        """Take the states from bytes of `get_states`, and the optimizer if it is among them.

        **Raises** FileFormatError for other bytes; pickles of MXNet are refused.
        """
        self.states, optimizer = states.load(data, self.optimizer)
        if optimizer is not None:
            self.optimizer = optimizer
            self.aggregate_updates = optimizer.aggregate_num > 0
        self.states_synced = dict.fromkeys(self.states, False)

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """The states as bytes (states.py), with `dump_optimizer` also the optimizer. Waits for them."""
        return states.dump(self.states, self.optimizer if dump_optimizer else None)


def get_updater(optimizer: Optimizer) -> Updater:
    """An Updater of `optimizer`."""
    return Updater(optimizer)
