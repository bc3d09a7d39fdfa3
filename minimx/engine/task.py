"""A Task: work that the engine starts when the Vars it reads and writes are free.

States, each guarded by the engine's one lock:

    OPEN      still being recorded (only segments); nothing may wait for it before it is closed
    QUEUED    closed; some predecessors have not finished
    READY     all predecessors have finished; it lies in its lane's queue
    RUNNING   some thread runs it
    DONE      its results, or its failure, are in its Vars

`reads` and `writes` build the edges. A task that reads a Var comes after the Var's writer; one that writes it comes after the
writer and all readers. Edges always point from older tasks to younger ones, and a segment is closed before anything
outside it may depend on it, so there are no cycles.
"""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..base import MXNetError, user_location
from ..device import Context, CopyLane
from . import writes
from .events import here, watch
from .var import Failure, Var, View, argument

if TYPE_CHECKING:
    from .lanes import Scheduler


class State(enum.Enum):
    OPEN = 0
    QUEUED = 1
    READY = 2
    RUNNING = 3
    DONE = 4


OPEN, QUEUED, READY, RUNNING, DONE = State


class Task:
    """Work with predecessors and successors. Subclasses say what to do in `run` and what to leave behind in `publish`."""

    __slots__ = (
        "context", "lane", "priority", "state", "predecessors", "successors", "read", "nbytes", "cost", "name", "interrupt",
        "origin",
    )  # fmt: skip

    def __init__(self, context: Context, name: str = "task", lane: Context | CopyLane | None = None) -> None:
        self.context = context  # where its results are
        self.lane = lane or context.lane  # which runs it
        self.priority = 0  # among the ready tasks of its lane the highest runs first, and of equals the oldest
        self.state = OPEN
        self.predecessors: set[Task] = set()  # unfinished ones only
        self.successors: list[Task] = []
        self.read: dict[Var, int] = {}  # the Vars it reads -> a number that segments use
        self.nbytes = 0  # of results that do not exist yet, and of inputs that it keeps alive: what back-pressure counts
        self.cost = 0.0  # estimated nanoseconds
        self.name = name
        self.interrupt: KeyboardInterrupt | None = None  # Ctrl-C that came while it ran: for the thread that ran it
        self.origin = here.origin if watch.on else None  # of what it is a part: only for those who watch

    @property
    def operators(self) -> int:
        """How many operators run in it; 0: it is a function that somebody pushed."""
        return 1

    @property
    def queued_by(self) -> tuple[str, int] | None:
        """The user's line that queued it, or began to."""
        return None

    @property
    def uses_blas(self) -> bool:
        """Whether its time may go into BLAS, which has threads of its own."""
        return False

    def written_vars(self) -> list[Var]:
        """The Vars that it writes and that somebody can still see. No lock is held."""
        raise NotImplementedError

    def run(self) -> None:
        """Do the work and keep the results in the task. No lock is held. Must not raise: a failure is a result."""
        raise NotImplementedError

    def abandon(self, error: BaseException) -> None:
        """`error` came in the way of `run`: the failure of what has no value yet. No lock is held."""
        raise NotImplementedError

    def publish(self) -> list[Failure]:
        """Put the results into the Vars and return new failures. The engine's lock is held."""
        raise NotImplementedError

    def forget(self) -> None:
        """Let go of arrays and functions when all is published. No lock is held: what dies now may have a finalizer that uses arrays."""
        self.read = {}

    def failed(self, error: BaseException, what: str, where: tuple[str, int] | None) -> Failure:
        """A new failure: `error` was raised by `what`, a part of this task that the line `where` queued."""
        if not isinstance(error, KeyboardInterrupt):
            return Failure(error, what, where)
        self.interrupt = error
        failure = Failure(MXNetError(f"{what}: interrupted by Ctrl-C while it ran; compute it again"), what, where)
        failure.seen = threading.current_thread() is threading.main_thread()  # it hears of it in `Scheduler._help`
        return failure

    # ---- edges; the engine's lock is held

    def after(self, other: Task | None, scheduler: Scheduler) -> None:
        """Run only when `other` has finished. Closes it if it is an open segment."""
        if other is None or other is self or other.state is DONE:
            return
        if other.state is OPEN:
            scheduler.close(other)
        if other.state is not DONE and other not in self.predecessors:
            other.successors.append(self)  # first: Ctrl-C in between must not leave it waiting for what does not know of it
            self.predecessors.add(other)

    def reads(self, variables: Iterable[Var], scheduler: Scheduler) -> None:
        """Enter this task as a reader. Memory that no queued task holds yet counts: until this one has run, it cannot be freed."""
        before = self.predecessors
        for var in variables:
            writer = var.writer
            if writer is None:
                if not var.readers and var.value is not None:
                    self.nbytes += getattr(var.value, "nbytes", 0)  # a Var of a user may hold anything
            elif writer not in before:  # of all that a task writes, the first makes the edge
                self.after(scheduler.demand(var), scheduler)
            if var.readers is None:
                var.readers = {self: None}
            else:
                var.readers[self] = None

    def writes(self, variables: Iterable[Var], scheduler: Scheduler) -> None:
        """Enter this task as the writer: after the writer before it, and all readers. What it also reads it has entered before."""
        before, read = self.predecessors, self.read
        for var in variables:
            writer = var.writer
            if writer is not None and writer is not self:
                if writer not in before:
                    self.after(writer, scheduler)
                writer.hand_on(var)
            for reader in var.readers or ():
                if reader is not self and reader not in before:
                    self.after(reader, scheduler)
            var.writer = self
            var.readers = {self: None} if var in read else None
            var.ready = False

    def hand_on(self, var: Var) -> None:
        """Another task becomes the writer of `var`, which this one writes: the value of this one is still for those that read it before."""

    def release(self, var: Var, failure: Failure | None) -> None:
        """This task's write to `var` has finished. Its readers may start."""
        var.failure = failure
        if var.writer is self:
            var.writer = None
            var.ready = failure is None

    def __repr__(self) -> str:
        return f"<{self.name} on {self.lane}: {self.state.name.lower()}>"


class FunctionTask(Task):
    """A function that somebody pushed, with the Vars that it reads and writes."""

    __slots__ = ("function", "views", "written", "failure", "where")

    def __init__(
        self, lane: Context | CopyLane, name: str, function: Callable[..., Any], views: list[View], written: list[Var]
    ) -> None:
        super().__init__(lane if isinstance(lane, Context) else lane.context, name, lane)
        self.function = function
        self.views = views  # of the arrays that it is called with
        self.written = written
        self.failure: Failure | None = None
        self.where = user_location()

    @property
    def operators(self) -> int:
        return 0

    @property
    def queued_by(self) -> tuple[str, int] | None:
        return self.where

    @property
    def uses_blas(self) -> bool:
        return True

    def written_vars(self) -> list[Var]:
        return self.written

    def run(self) -> None:
        # A Var without memory that it only writes may have failed; of an array that it writes it sees what was there.
        for var in (*self.read, *(view.var for view in self.views)):
            if var.failure is not None:
                self.failure = var.failure
                return
        try:
            for var in self.written:
                writes.noted(var.value)
            self.function(*[argument(view, self.written) for view in self.views])
        except BaseException as error:  # whatever it is, whoever reads the result must see it
            self.failure = self.failed(error, self.name, self.where)

    def abandon(self, error: BaseException) -> None:
        self.failure = self.failed(error, self.name, self.where)

    def publish(self) -> list[Failure]:
        for var in self.written:
            self.release(var, self.failure)
        return [] if self.failure is None or self.failure.seen else [self.failure]

    def forget(self) -> None:
        super().forget()
        self.function, self.views, self.written = _nothing, [], []


def _nothing() -> None:
    """Takes the place of a finished task's function, so that what it held on to is freed."""
