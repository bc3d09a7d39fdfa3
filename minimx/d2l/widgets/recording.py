"""What the engine does while a piece of code runs: each task, what it reads and writes, and when it was queued, begun and done.

The recorder hears of these from the scheduler itself (engine.events.Recorder), with the engine's lock held, so that the order of what it
notes is the order in which it happened. It keeps no array alive: Vars are known by number. names.py finds out what the user calls them,
story.py makes steps of what is noted. Book: chapter 7.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...engine.events import Place, caller, clock, watch
from ...engine.front import block_shortcuts, close_segments
from ...engine.gate import Gate
from ...engine.lanes import scheduler
from ...engine.segment import Segment
from ...engine.single import OpTask
from ...engine.task import FunctionTask, Task
from ...engine.var import Failure, Var, View
from ...op import Op

PATIENCE = 0.2  # seconds in which no lane does anything, after which the front end sees to what is left
QUEUED, AT_ONCE, BEGUN, DONE = "queued", "at once", "begun", "done"
WAITS, GOES_ON, OPENED = "waits", "goes on", "opened"


@dataclass
class Act:
    """A task, as it was noted. `reads`, `writes`, `after`: numbers of Vars and of other tasks."""

    number: int
    name: str
    lane: str
    where: Place | None
    operators: tuple[str, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    after: frozenset[int]  # the tasks that had not ended when it was queued
    held: bool  # it waits behind the gate, too
    by_front: bool = False  # the front end ran it
    failure: str = ""

    @property
    def title(self) -> str:
        return f"#{self.number} {self.name}"


class Moment(NamedTuple):
    """Something that happened. `act`: with which task; `what`: the operator or the call; `where`: on which line of the user."""

    time: float
    kind: str
    act: int | None = None
    what: str = ""
    where: Place | None = None


class Made(NamedTuple):
    """By what a Var was written: an operator on a line of the user."""

    operator: str
    where: Place | None


@dataclass
class Recording:
    """All that was noted: tasks in the order in which they were queued, moments by time. `left_out`: tasks beyond the most."""

    acts: list[Act] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)
    made: dict[int, Made] = field(default_factory=dict)  # number of a Var -> what wrote it first
    names: dict[int, str] = field(default_factory=dict)
    left_out: int = 0


class Noting:
    """The engine's recorder: see `engine.events.Recorder`, whose methods it has."""

    def __init__(self, most: int, gate: Gate | None) -> None:
        self.recording = Recording()
        self.front = threading.get_ident()
        self.most = most
        self.gate = gate
        self.numbers: weakref.WeakKeyDictionary[Var, int] = weakref.WeakKeyDictionary()
        self.count = 0
        self.of_task: dict[Task, Act] = {}
        self.over = False  # the code has ended: what it waits for now is ours

    def number_of(self, var: Var) -> int:
        """The number of a Var, a new one if it was not seen before. The lock is held."""
        number = self.numbers.get(var)
        if number is None:
            number = self.numbers[var] = self.count
            self.count += 1
        return number

    def note(self, time: float, kind: str, act: int | None = None, what: str = "", where: Place | None = None) -> None:
        self.recording.moments.append(Moment(time, kind, act, what, where))

    # ---- what the engine tells

    def closed(self, task: Task) -> None:
        """`task` is queued. The engine's lock is held."""
        held = self.gate is not None and self.gate.hold(task)
        acts = self.recording.acts
        if len(acts) >= self.most:
            self.recording.left_out += 1
            return
        made = _made(task)
        writes = tuple(map(self.number_of, made))
        for number, maker in zip(writes, made.values()):
            self.recording.made.setdefault(number, maker)
        reads = tuple(map(self.number_of, task.read))
        after = frozenset(self.of_task[before].number for before in task.predecessors if before in self.of_task)
        names = [record.op.name for record in task.records] if isinstance(task, Segment) else [task.name]
        names = [each.strip("_") or each for each in names]
        name = names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
        act = Act(len(acts), name, str(task.lane), task.queued_by, tuple(names), reads, writes, after, held)
        self.of_task[task] = act
        acts.append(act)
        self.note(clock(), QUEUED, act.number, where=act.where)

    def ran(self, task: Task, start: float, end: float) -> None:
        """`task` has run, in the calling thread. The lock is held."""
        if task is self.gate and any(act.held for act in self.recording.acts):
            self.note(end, OPENED)
        act = self.of_task.pop(task, None)
        if act is not None:
            act.by_front = threading.get_ident() == self.front
            act.failure = _failure(task)
            self.note(start, BEGUN, act.number)
            self.note(end, DONE, act.number)

    def at_once(self, op: Op, inputs: Sequence[View | None], outputs: Sequence[Var], start: float) -> None:
        """The calling thread has run a small operation."""
        if threading.get_ident() == self.front and not scheduler.running.tasks and not self.over:
            where = caller()[1]
            with scheduler.lock:
                for var in outputs:
                    self.recording.made.setdefault(self.number_of(var), Made(op.name, where))
                self.note(start, AT_ONCE, None, op.name.strip("_"), where)

    def waited(self, task: Task | None, start: float, end: float) -> None:
        """The calling thread has waited for `task`, or for everything."""
        if threading.get_ident() != self.front or scheduler.running.tasks or self.over:
            return
        name, where = caller()
        with scheduler.lock:
            self.note(start, WAITS, None, name, where)
            self.note(end, GOES_ON, None, name, where)


@contextlib.contextmanager
def recording(hold: bool, most: int) -> Iterator[Noting]:
    """A scope whose tasks are noted. When it is left, also by an error, the gate is open and everything has run.

    **Raises** MXNetError if somebody records already.
    """
    scheduler.drain()  # what came before is no part of it
    noting = Noting(most, None)
    watch.record(noting)
    block_shortcuts(1)
    try:
        noting.gate = Gate() if hold else None  # not before: it must not stay behind where somebody records already
        yield noting
    finally:
        try:
            close_segments()
            if noting.gate is not None:
                noting.gate.open()
            noting.over = True
            _let_lanes_work()
            scheduler.drain()
        finally:
            watch.record(None)
            block_shortcuts(-1)
            noting.recording.moments.sort(key=lambda moment: moment.time)


def _let_lanes_work() -> None:
    """Wait until all has run, without helping as the front end does where it waits: the code has not waited here. Whatever no lane takes is
    left to `drain`."""
    idle_since = clock()
    while scheduler.in_flight and clock() - idle_since < PATIENCE:
        time.sleep(5e-4)
        if scheduler.busy:
            idle_since = clock()


def _made(task: Task) -> dict[Var, Made]:
    """The Vars that a task writes and that somebody can see, and by which of its operators. The lock is held."""
    if isinstance(task, OpTask):
        return dict.fromkeys(task.written_vars(), Made(task.name, task.where))
    if isinstance(task, FunctionTask):
        return dict.fromkeys(task.written, Made(task.name, task.where))
    assert isinstance(task, Segment)
    found: dict[Var, Made] = {}
    for record in task.records:
        for slot in [*(result.slot for result in record.outputs), *(after for _, after in record.mutated)]:
            var = task.visible(slot)
            if var is not None:
                found[var] = Made(record.op.name, record.where)
    return found


def _failure(task: Any) -> str:
    """Why a task that has just run has left no value, in a line; "" if it has left all. The lock is held."""
    failure = getattr(task, "failure", None)
    if isinstance(task, Segment):
        failure = next((each for each in (*task.failures, *task.values) if isinstance(each, Failure)), None)
    if failure is None:
        return ""
    return f"{type(failure.error).__name__}: {failure.error}".splitlines()[0]


__all__ = [
    "AT_ONCE", "BEGUN", "DONE", "GOES_ON", "OPENED", "QUEUED", "WAITS", "Act", "Made", "Moment", "Noting", "Recording", "recording",
]  # fmt: skip
