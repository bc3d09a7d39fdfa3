"""Workers that make batches ahead of the loop that uses them, and what all kinds of them share: tickets and errors.

A loader has one *team*, of processes (processes.py) or of threads (threads.py). It begins with the loader's first epoch and serves all
passes over it, also several at once. `enter` hands a task to a worker and returns a ticket; `result` waits for that ticket's batch. What is
under way is bounded by the number of tickets that a pass takes.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from typing import Any, Protocol

from ...base import MXNetError
from .seeding import BatchSeeds
from .worker import Task


class WorkerError(MXNetError):
    """A worker that has ended before its time."""


class BatchTimeoutError(MXNetError, TimeoutError, multiprocessing.TimeoutError):
    """A batch that took longer than the loader's `timeout`."""


class Ticket:
    """A batch that was asked for."""

    __slots__ = ("task", "done", "value", "error", "left")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.done = False
        self.value: Any = None
        self.error: BaseException | None = None
        self.left = False  # nobody wants it any more

    def taken(self) -> Any:
        """The batch, which is done. Raises what its worker met."""
        error, self.error = self.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback has this frame: together they would keep the team alive
        value, self.value = self.value, None
        return value


class Team(Protocol):
    """Workers of either kind."""

    closed: bool

    def enter(self, owner: int, number: int, indices: Any, seeds: BatchSeeds | None) -> Ticket:
        """Ask for a batch: see `Task`. Returns at once."""

    def result(self, ticket: Ticket, timeout: float) -> Any:
        """The batch, when it is there. Raises what the worker met; BatchTimeoutError; WorkerError."""

    def leave(self, owner: int, tickets: deque[Ticket]) -> None:
        """Forget about these batches of the pass `owner`. May be called at any time, by a finalizer, too."""

    def close(self) -> None:
        """End the workers. The team is of no use any more."""


def too_slow(timeout: float, task: Task, advice: str) -> BatchTimeoutError:
    """The error for a batch that is not there in time."""
    return BatchTimeoutError(
        f"DataLoader: batch {task.number} was not there after {timeout:g} seconds. If its samples really take so long, give the loader a "
        f"larger `timeout`, or do less work in transforms; if they wait for something that never comes, {advice}. The loader can be gone "
        "through again, with new workers."
    )
