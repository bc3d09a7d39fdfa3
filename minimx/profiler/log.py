"""What the profiler has heard, in order: durations, values of memory and counters, and marks.

Threads only append to a queue (`note` and its like), which is safe from anywhere, even from a finalizer in the middle of something
else. Whoever asks for results, or adds the thousandth entry, takes the queue's contents, adds them up in the tables, and keeps them for the
trace file and the timeline: up to `MOST` of them, so that a long run cannot fill the memory; beyond, they only count.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import storage
from ..base import env_int
from ..device import Context
from ..engine.events import FUNCTION, OPERATOR, TASK, Event, Place, clock
from .statistics import CATEGORIES, MEMORY, Statistics, add

MOST = env_int("MINIMX_PROFILER_MAX_EVENTS", 500_000, 1)
OFTEN = 1000  # entries that may wait in the queue
NEVER_ADDED = (TASK, "group", "scope")  # kinds whose time is that of what is inside


class Sample(NamedTuple):
    """The value of a counter from `time` on."""

    category: str
    name: str
    time: float
    value: float


class Mark(NamedTuple):
    """An instant. `scope`: for whom it matters, one of Chrome's letters."""

    category: str
    name: str
    time: float
    scope: str
    row: str
    where: Place | None


class _Change(NamedTuple):
    """So many bytes more are in use on a device."""

    context: Context
    nbytes: int
    time: float


class Log:
    """One recording, from the first `set_state("run")` to `dump()`."""

    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics
        self.begin = clock()
        self.events: list[Event] = []
        self.samples: list[Sample] = []
        self.marks: list[Mark] = []
        self.left_out = 0  # beyond MOST
        self.finished = False
        self._waiting: deque[Any] = deque()
        self._memory: dict[Context, int] = {}  # bytes in use
        self.lock = threading.RLock()

    # ---- from any thread

    def note(self, event: Event) -> None:
        """Hear of an event: the engine's listener. A task that is one operator is told twice, and kept once."""
        if event.kind == TASK and event.operators == 1:
            return
        self._waiting.append(event)
        if len(self._waiting) > OFTEN:
            self.fold(wait=False)

    def note_memory(self, context: Context, nbytes: int) -> None:
        """Hear that memory was taken or given back: the storage's watcher. It may be called anywhere, and so only appends."""
        self._waiting.append(_Change(context, nbytes, clock()))

    def note_other(self, entry: Sample | Mark) -> None:
        """Enter a value of a user's counter, or a mark."""
        self._waiting.append(entry)
        if len(self._waiting) > OFTEN:
            self.fold(wait=False)

    # ---- results

    def begin_memory(self) -> None:
        """Enter what is in use now on each device that has a pool."""
        with self.lock:
            self.fold()
            for context in storage.contexts():
                self._memory[context] = storage.stats(context)["live"]
                self._keep(self._sample(context, clock()))

    def fold(self, wait: bool = True) -> bool:
        """Take what waits in the queue. False if another thread is at it and this one was not to `wait`."""
        if not self.lock.acquire(blocking=wait):
            return False
        try:
            while self._waiting:
                self._take(self._waiting.popleft())
        except IndexError:  # another call, in this very thread, by a finalizer, took the last one
            pass
        finally:
            self.lock.release()
        return True

    def _take(self, entry: Any) -> None:
        if type(entry) is _Change:
            self._memory[entry.context] = self._memory.get(entry.context, 0) + entry.nbytes
            entry = self._sample(entry.context, entry.time)
        elif type(entry) is Event:
            if entry.kind == FUNCTION:
                entry = entry._replace(kind=OPERATOR)
            if entry.start < self.begin:
                entry = entry._replace(start=min(self.begin, entry.end))
            if entry.kind not in NEVER_ADDED:
                add(self.statistics.times, CATEGORIES.get(entry.kind, entry.kind), entry.name, entry.end - entry.start)
        self._keep(entry)

    def _keep(self, entry: Event | Sample | Mark) -> None:
        if type(entry) is Sample:
            tables = self.statistics.memory if entry.category == MEMORY else self.statistics.counters
            add(tables, entry.category, entry.name, entry.value)
        if len(self.events) + len(self.samples) + len(self.marks) >= MOST:
            self.left_out += 1
        elif type(entry) is Event:
            self.events.append(entry)
        elif type(entry) is Sample:
            self.samples.append(entry)
        elif type(entry) is Mark:
            self.marks.append(entry)

    def _sample(self, context: Context, time: float) -> Sample:
        return Sample(MEMORY, f"Memory: {context.device_type}/{context.device_id}", time, self._memory[context])

    def contents(self) -> Contents:
        """A copy of all that is kept, from one moment."""
        with self.lock:
            self.fold()
            return Contents(self.begin, list(self.events), list(self.samples), list(self.marks), self.left_out)


@dataclass(frozen=True)
class Contents:
    """What a log has kept."""

    begin: float
    events: list[Event]
    samples: list[Sample]
    marks: list[Mark]
    left_out: int

    @property
    def count(self) -> int:
        return len(self.events) + len(self.samples) + len(self.marks)
