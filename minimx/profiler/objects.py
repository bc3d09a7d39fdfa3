"""What a program tells the profiler itself: its own durations, counters and marks, grouped in domains; and scopes.

They can be made and used at any time, and tell something while the profiler runs. Source: the classes of MXNet `mxnet.profiler`; `scope`
is that of MXNet 2.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from ..base import ArgumentError, MXNetError, UnknownNameError, shown
from ..engine import events
from ..engine.events import caller, clock, here
from ..engine.front import close_segments
from ..fields import converted
from .control import profiler
from .layout import SCOPE
from .log import Mark, Sample

#: For whom a mark matters, and Chrome's letter for it, which knows three kinds.
MARK_SCOPES = {"global": "g", "process": "p", "thread": "t", "task": "t", "marker": "t"}


def _named(who: str, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"{who}: name must be a str that is not empty, got {shown(name)}")
    return name


def _in_domain(who: str, domain: Any) -> Domain:
    if not isinstance(domain, Domain):
        raise ArgumentError(f"{who}: domain must be a profiler.Domain, got {shown(domain)}")
    return domain


def _row() -> str:
    """The row of the calling thread."""
    return here.row or f"thread {threading.current_thread().name}"


class Domain:
    """A group of tasks, frames, counters and marks: the category under which trace and tables show them."""

    def __init__(self, name: str) -> None:
        self.name = _named("Domain", name)

    def new_task(self, name: str) -> Task:
        """A Task of this domain."""
        return Task(self, name)

    def new_frame(self, name: str) -> Frame:
        """A Frame of this domain."""
        return Frame(self, name)

    def new_counter(self, name: str, value: int | None = None) -> Counter:
        """A Counter of this domain."""
        return Counter(self, name, value)

    def new_marker(self, name: str) -> Marker:
        """A Marker of this domain."""
        return Marker(self, name)

    def __str__(self) -> str:
        return self.name


class _Duration:
    """Something that is started and stopped, perhaps often, and by several threads: each has a row of its own."""

    def __init__(self, name: str, category: str) -> None:
        self.name = _named(type(self).__name__, name)
        self.category = category
        self._started: list[tuple[int, float]] = []  # (thread, when), of those that go on

    def start(self) -> None:
        """It begins now."""
        self._started.append((threading.get_ident(), clock()))

    def stop(self) -> None:
        """It ends now: the last that the calling thread has started, or, if it has none, the last of all.

        **Raises** MXNetError if it was not started.
        """
        end, thread = clock(), threading.get_ident()
        own = [entry for entry in self._started if entry[0] == thread]
        try:
            entry = own[-1] if own else self._started[-1]
            self._started.remove(entry)
        except (IndexError, ValueError):
            raise MXNetError(f"{type(self).__name__} {self.name!r}: stop() without start()") from None
        log = profiler.listening
        if log is not None:
            log.note(events.Event(_row(), self.name, entry[1], end, self.category, thread, caller()[1], (), here.origin))

    def __enter__(self) -> _Duration:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def __str__(self) -> str:
        return self.name


class Task(_Duration):
    """A piece of a program's work, from `start()` to `stop()`, or a `with` block.

    >>> task = Domain("training").new_task("epoch")
    >>> with task:
    ...     pass
    """

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(name, _in_domain("Task", domain).name)


class Frame(_Duration):
    """A piece of work that comes again and again, such as a picture of a film; the tables show it as `domain,frame`."""

    def __init__(self, domain: Domain, name: str) -> None:
        super().__init__(name, f"{_in_domain('Frame', domain).name},frame")


class Event(_Duration):
    """A piece of work of no domain."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "event")


class Counter:
    """A whole number that changes over time. Its value is kept while the profiler does not run; only changes while it runs are recorded.

    >>> counter = Counter(Domain("data"), "batches", 3)
    >>> counter += 2; counter.decrement(); counter.value
    4
    """

    def __init__(self, domain: Domain, name: str, value: int | None = None) -> None:
        self.name = _named("Counter", name)
        self.domain = _in_domain("Counter", domain)
        self.value = 0
        self._lock = threading.Lock()
        if value is not None:
            self.set_value(value)

    def _whole(self, what: str, value: Any) -> int:
        try:
            return int(value)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentError(f"Counter {self.name!r}: {what} must be a whole number, got {shown(value)}") from None

    def _change(self, value: int, keep: int) -> None:
        """The value becomes `keep` times itself plus `value`."""
        with self._lock:
            self.value = self.value * keep + value
            profiler.note(Sample(self.domain.name, self.name, clock(), self.value))

    def set_value(self, value: int) -> None:
        """The counter is `value` now. What comes after a decimal point is dropped, as in MXNet."""
        self._change(self._whole("value", value), 0)

    def increment(self, delta: int = 1) -> None:
        """Add `delta`; also `counter += delta`."""
        self._change(self._whole("delta", delta), 1)

    def decrement(self, delta: int = 1) -> None:
        """Subtract `delta`; also `counter -= delta`."""
        self._change(-self._whole("delta", delta), 1)

    def __iadd__(self, delta: int) -> Counter:
        self.increment(delta)
        return self

    def __isub__(self, delta: int) -> Counter:
        self.decrement(delta)
        return self

    def __str__(self) -> str:
        return self.name


class Marker:
    """Marks an instant."""

    def __init__(self, domain: Domain, name: str) -> None:
        self.name = _named("Marker", name)
        self.domain = _in_domain("Marker", domain)

    def mark(self, scope: str = "process") -> None:
        """Something happened now, for all ("global"), this process, this "thread", "task" or "marker".

        **Raises** UnknownNameError for another scope.
        """
        if not isinstance(scope, str) or scope not in MARK_SCOPES:
            raise UnknownNameError(f"Marker {self.name!r}: scope is {shown(scope)}; choose one of {', '.join(MARK_SCOPES)}")
        where = caller()[1]
        profiler.note(Mark(f"{self.domain.name},instant_marker", self.name, clock(), MARK_SCOPES[scope], _row(), where))

    def __str__(self) -> str:
        return self.name


@contextlib.contextmanager
def scope(name: str, append_mode: bool = True) -> Iterator[None]:
    """A `with` block whose work bears a name: a bar on the thread's row, and "scope" with each operator that was called inside.

    **Args** `append_mode`: inside another scope the name is `outer:name`, otherwise it is `name` alone.
    """
    name = _named("profiler.scope", name).rstrip(":") or name
    before = here.origin
    outer = before.scope if converted("profiler.scope", "append_mode", "bool", append_mode) else ""
    close_segments()  # what was recorded before is not of this scope
    here.origin = before._replace(scope=f"{outer}:{name}" if outer else name)
    start = clock()
    try:
        yield
    finally:
        full, here.origin = here.origin.scope, before
        close_segments()
        log = profiler.listening
        if log is not None:
            log.note(events.Event(_row(), full, start, clock(), SCOPE, threading.get_ident(), caller()[1], (), before))


Scope = scope  # MXNet 2 has both names
