"""What happens in a training, and who wants to know: a handler has the methods of the events that it is called at.

    train_begin, (epoch_begin, (batch_begin, batch_end)*, epoch_end)*, train_end

`batch_end` and `epoch_end` may return True, and the training stops. Handlers are called in the order of their `priority`, small numbers
first, 0 for those that have none.
"""

from __future__ import annotations

from typing import Any

from ....base import ArgumentError, shown

__all__ = ["BatchBegin", "BatchEnd", "EpochBegin", "EpochEnd", "EstimatorError", "EventHandler", "TrainBegin", "TrainEnd"]


class EstimatorError(ArgumentError, AssertionError):
    """Something that an Estimator or a handler cannot work with. (MXNet asserts some of it: hence the last base.)"""


class EventHandler:
    """The base of all handlers."""


class TrainBegin(EventHandler):
    """Is called once, before the first epoch."""

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """The training begins."""


class TrainEnd(EventHandler):
    """Is called once, after the last epoch."""

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """The training has ended."""


class EpochBegin(EventHandler):
    """Is called before each epoch."""

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """An epoch begins."""


class EpochEnd(EventHandler):
    """Is called after each epoch."""

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """An epoch has ended. **Returns** whether to stop."""
        return False


class BatchBegin(EventHandler):
    """Is called before each batch, with `batch`."""

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        """A batch begins."""


class BatchEnd(EventHandler):
    """Is called after each batch, with `batch`, and the lists `pred`, `label` and `loss`, an array for each device."""

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool | None:
        """A batch has ended. **Returns** whether to stop."""
        return False


def as_handlers(handlers: Any) -> list[Any]:
    """A new list of handlers from one, several or None. Raises ValueError for anything else."""
    listed = [handlers] if isinstance(handlers, EventHandler) else list(handlers or [])
    for handler in listed:
        if not isinstance(handler, EventHandler):
            raise EstimatorError(f"event_handlers must be an EventHandler or a list of them, got {shown(handler)}")
    return listed
