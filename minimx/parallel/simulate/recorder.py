"""The engine's listener while a step is recorded: which tasks ran, when, and what depended on what.

The engine forgets what a task depended on as soon as that has ended, since it need not wait for it any more. The recorder therefore keeps
for each Var who wrote it last and who has read it since, by the rules of engine/task.py, and so finds all dependencies, however the step
happened to be timed. recording.py makes a graph of what it has noted. Book: chapter 11.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

from ...device import CopyLane
from ...engine.events import OPERATOR, Event, clock
from ...engine.lanes import scheduler
from ...engine.segment import Segment
from ...engine.single import OpTask
from ...engine.task import FunctionTask, Task
from ...engine.var import Var, View
from ...nd.transfer import CopyTo
from ...op import Kind, Op, Spec
from .counting import flops
from .graph import HOST


class Entry:
    """What is known of one task, or of an operation that the front end ran at once."""

    __slots__ = (
        "number", "name", "lane", "device", "before", "closed", "start", "end", "flops", "read", "written", "copy", "priority", "givers",
        "inside", "sizes", "makes", "uses",
    )  # fmt: skip

    def __init__(self, number: int, name: str, lane: str, device: str, closed: float) -> None:
        self.number = number  # in the order in which they were queued
        self.name = name
        self.lane = lane
        self.device = device
        self.before: dict[Entry, None] = {}  # what it depends on
        self.closed = closed  # when it was queued
        self.start = self.end = closed
        self.flops = self.read = self.written = 0.0
        self.copy: CopyTo | None = None
        self.priority = 0
        self.givers: list[str] = []  # of a program: for each output the name of the node that makes it,
        self.inside: dict[str, float] = {}  # for each node when it had run,
        self.sizes: list[tuple[str, float, float, float]] = []  # and its FLOP and bytes
        self.makes: dict[str, float] = {}  # the parameters whose gradients it completes, and when each was complete
        self.uses: list[str] = []  # those of which it reads the gradient


class Use:
    """Who wrote a Var last, as which of his outputs, and who has read it since."""

    __slots__ = ("writer", "output", "readers")

    def __init__(self) -> None:
        self.writer: Entry | None = None
        self.output = 0
        self.readers: dict[Entry, None] = {}


class Recorder:
    """Notes what the engine tells: see `engine.events.Recorder`, whose methods it has."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()  # the front end
        self.entries: list[Entry] = []
        self.of_task: dict[Task, Entry] = {}
        self.uses: weakref.WeakKeyDictionary[Var, Use] = weakref.WeakKeyDictionary()
        self.waits: list[tuple[float, float, list[Entry]]] = []  # of the front end: from, to, for what
        self.inside: dict[int, dict[str, float]] = {}  # thread -> nodes of the program that it runs -> when they had run
        self.begin = self.end = clock()

    # ---- what the engine tells

    def closed(self, task: Task) -> None:
        """`task` is queued. The engine's lock is held."""
        device = task.lane.context if isinstance(task.lane, CopyLane) else task.lane
        entry = self._new(task.name, str(task.lane), str(device), clock())
        entry.priority = task.priority
        for before in task.predecessors:
            if before in self.of_task:
                entry.before[self.of_task[before]] = None
        self.of_task[task] = entry
        _measure(task, entry)
        self._enter(entry, task.read, _written(task))

    def ran(self, task: Task, start: float, end: float) -> None:
        """`task` has run. The engine's lock is held."""
        inside = self.inside.pop(threading.get_ident(), {})
        entry = self.of_task.get(task)
        if entry is not None:
            entry.name, entry.start, entry.end, entry.inside = task.name, start, end, inside

    def heard(self, event: Event) -> None:
        """An operator of a program has run, in the calling thread."""
        if event.kind == OPERATOR and event.node:
            self.inside.setdefault(event.thread, {})[event.node] = event.end

    def at_once(self, op: Op, inputs: Sequence[View | None], outputs: Sequence[Var], start: float) -> None:
        """The calling thread has run a small operation."""
        reads = [view.var for view in inputs if view is not None]
        mutated = [view.var for view in (inputs[position] for position in op.mutates) if view is not None]
        self.inside.pop(threading.get_ident(), None)
        with scheduler.lock:
            if threading.get_ident() == self.thread and not scheduler.running.tasks:
                entry = self._new(op.name, HOST, HOST, start)
                entry.end = clock()
                specs = [view.spec for view in inputs if view is not None]
                results = [var.value for var in outputs if var.value is not None]
                _count(entry, op, specs, [Spec.of(value.shape, value.dtype) for value in results])
            else:  # inside a task: a part of it
                running = scheduler.running.tasks
                found = self.of_task.get(running[-1]) if running else None
                if found is None:
                    return
                entry = found
            self._enter(entry, reads, [*outputs, *mutated])

    def waited(self, task: Task | None, start: float, end: float) -> None:
        """The calling thread has waited for `task`, or for everything."""
        if threading.get_ident() != self.thread or scheduler.running.tasks:
            return
        with scheduler.lock:
            if task is None:
                reasons = [entry for entry in self.entries if entry.device != HOST]
            else:
                reasons = [self.of_task[task]] if task in self.of_task else []
            self.waits.append((start, end, reasons))

    # ---- what it makes of that; the engine's lock is held

    def _new(self, name: str, lane: str, device: str, closed: float) -> Entry:
        entry = Entry(len(self.entries), name, lane, device, closed)
        self.entries.append(entry)
        return entry

    def _enter(self, entry: Entry, reads: Iterable[Var], writes: Iterable[Var]) -> None:
        """Find what `entry` depends on by what it reads and writes."""
        for var in reads:
            use = self._use(var)
            if use.writer is not None and use.writer is not entry:
                entry.before[use.writer] = None
            use.readers[entry] = None
        for output, var in enumerate(writes):
            use = self._use(var)
            if use.writer is not None and use.writer is not entry:
                entry.before[use.writer] = None
            for reader in use.readers:
                if reader is not entry:
                    entry.before[reader] = None
            use.writer, use.output, use.readers = entry, output, {}

    def _use(self, var: Var) -> Use:
        use = self.uses.get(var)
        if use is None:
            use = self.uses[var] = Use()
        return use


def _measure(task: Task, entry: Entry) -> None:
    """Estimate the arithmetic of a task, and count the bytes that it reads and writes."""
    if isinstance(task, OpTask):
        _count(entry, task.op, task.given, task.specs)
        program: Any = task.op
        entry.givers = program.givers() if program.kind is Kind.PROGRAM else []
        if isinstance(task.op, CopyTo):
            entry.copy = task.op
    elif isinstance(task, Segment):
        for record in task.records:
            written = [result.spec for result in record.outputs]
            _count(entry, record.op, [operand.spec for operand in record.inputs if operand is not None], written)
        if len(task.records) == 1 and isinstance(task.records[0].op, CopyTo):
            entry.copy = task.records[0].op
    elif isinstance(task, FunctionTask):
        entry.read = float(sum(view.spec.nbytes for view in task.views if view.var in task.read))
        entry.written = float(sum(view.spec.nbytes for view in task.views if view.var in task.written))


def _count(entry: Entry, op: Any, read: Sequence[Spec], written: Sequence[Spec]) -> None:
    """Add what one operation does."""
    if op.kind is Kind.PROGRAM:
        for node, each, its_reads, its_writes in op.operators():
            before = entry.flops, entry.read, entry.written
            _count(entry, each, its_reads, its_writes)
            entry.sizes.append((node, entry.flops - before[0], entry.read - before[1], entry.written - before[2]))
        return
    entry.flops += flops(op, read, written)
    entry.read += sum(spec.nbytes for spec in read)
    entry.written += sum(spec.nbytes for spec in written)


def _written(task: Task) -> list[Var]:
    """The Vars that a task writes."""
    if isinstance(task, OpTask):
        return task.written_vars()
    if isinstance(task, FunctionTask):
        return list(task.written)
    assert isinstance(task, Segment)
    found = (task.visible(slot) for slot in range(len(task.table)))
    return list(dict.fromkeys(var for var in found if var is not None))


__all__ = ["Entry", "Recorder"]
