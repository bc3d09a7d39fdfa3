"""A team of threads: `DataLoader(..., thread_pool=True)`.

Threads share the data set and need no transport, but only one of them runs Python code at a time: they help where samples are waited for
(a disk, a network) or are made by code in C that lets others run, as NumPy's larger operations and image decoders do. What transforms draw
from `mx.random` depends on the seed alone; `numpy.random` and `random`, one generator for all threads, are given out as they come.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from ...engine import wait
from ...nd import NDArray
from .collate import Make, maker
from .seeding import BatchSeeds
from .team import Ticket, WorkerError, too_slow
from .worker import Task

GRACE = 1.0  # seconds that threads have to end what they are at, when the interpreter exits

Tickets = queue.SimpleQueue[Ticket | None]


class Threads:
    """A team of threads."""

    def __init__(self, count: int, dataset: Any, batchify_fn: Callable[[list[Any]], Any]) -> None:
        self.closed = False
        self.tickets: Tickets = queue.SimpleQueue()
        self.finished = threading.Condition()  # guards the tickets; a batch is done
        self.threads = [
            threading.Thread(
                target=_work,
                args=(self.tickets, self.finished, maker(dataset, batchify_fn)),
                name=f"minimx-data-{number}",
                daemon=True,
            )
            for number in range(count)
        ]
        # Holds no reference to the team: it runs when that has gone
        self._end = weakref.finalize(self, _end, self.tickets, count)
        _teams.add(self)
        try:
            for thread in self.threads:
                thread.start()
        except RuntimeError as error:
            self.close()
            raise WorkerError(f"DataLoader: threads cannot be started here ({error}); use num_workers=0") from error

    def enter(self, owner: int, number: int, indices: Any, seeds: BatchSeeds | None) -> Ticket:
        ticket = Ticket(Task(owner, number, indices, seeds))
        self.tickets.put(ticket)
        return ticket

    def result(self, ticket: Ticket, timeout: float) -> Any:
        with self.finished:
            self.finished.wait_for(lambda: ticket.done or self.closed, timeout)
            if not ticket.done:
                if self.closed:
                    raise WorkerError(
                        "DataLoader: another pass was too slow for its timeout, or the process was forked; begin again"
                    )
                self.close()
                raise too_slow(timeout, ticket.task, "use processes rather than threads, since these can be ended")
        return ticket.taken()

    def leave(self, owner: int, tickets: deque[Ticket]) -> None:
        for ticket in tickets:
            ticket.left = True

    def close(self) -> None:
        with self.finished:
            self.closed = True
            self.finished.notify_all()
        self._end()

    def disown(self) -> None:
        """In a forked child: the threads did not come along."""
        self.closed = True
        self.finished = threading.Condition()
        self._end.detach()


def _work(tickets: Tickets, finished: threading.Condition, make: Make) -> None:
    """The life of a worker thread."""
    while (ticket := tickets.get()) is not None:
        if not ticket.left:
            try:
                ticket.value = _made(make, ticket.task)
            except BaseException as error:  # sys.exit() in a transform is an error, too
                ticket.error = error if isinstance(error, Exception) else WorkerError(f"DataLoader: a thread met {error!r}")
        with finished:
            ticket.done = True
            finished.notify_all()
        del ticket  # a waiting thread must not keep arrays alive


def _made(make: Make, task: Task) -> Any:
    """A batch that is there, not only queued."""
    if task.seeds is None:
        batch = make(task.indices)
    else:
        with task.seeds.scope(alone=False):
            batch = make(task.indices)
    _await(batch)
    return batch


def _await(batch: Any) -> None:
    """Wait for the arrays in a batch. Raises what made them fail."""
    if isinstance(batch, NDArray):
        wait(batch)
    elif isinstance(batch, (list, tuple)):
        for part in batch:
            _await(part)
    elif isinstance(batch, dict):
        for part in batch.values():
            _await(part)


def _end(tickets: Tickets, count: int) -> None:
    """Let threads end when they have made the batch that they are at."""
    with contextlib.suppress(queue.Empty):
        while True:
            tickets.get_nowait()
    for _ in range(count):
        tickets.put(None)


_teams: weakref.WeakSet[Threads] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for team in list(_teams):
        team.disown()
    _teams.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _at_exit() -> None:
    """Threads that are in the middle of C code when the interpreter goes could take the process down with them."""
    end = time.monotonic() + GRACE
    for team in list(_teams):
        team.close()
        for thread in team.threads:
            if thread.is_alive():
                thread.join(max(0.0, end - time.monotonic()))


atexit.register(_at_exit)
