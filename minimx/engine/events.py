"""What happens in the engine, told to whoever listens: tasks, operators, programs, and waits of the front end.

A *listener* is a function that takes an `Event`. While there is none, each place that could tell something asks a single attribute of
`watch`, and the ways that skip the engine (nd/direct.py) are open; so to be watched costs nothing as long as nobody does. `engine.trace` is
one listener, the profiler, which lies above the engine, another.

Listeners are called by whichever thread has done the work, some with the engine's lock held: they note the event and return.
Book: chapter 2.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from .. import cuda
from ..base import PACKAGE_FOLDER, MXNetError
from ..device import Context, CopyLane
from ..op import Kind, Op, Spec

if TYPE_CHECKING:
    from .task import Task
    from .var import Var, View

clock = time.perf_counter
get_ident = threading.get_ident
R = TypeVar("R")
S = TypeVar("S", bound="Sequence[Spec]")
Place = tuple[str, int]  # file and line of the user's code
BETWEEN = (threading.__file__, contextlib.__file__)  # Python's own, which call what neither the user nor minimx calls

TASK = "task"  # what the scheduler runs: a segment or an operation of its own
FUNCTION = "function"  # a task that somebody pushed
OPERATOR = "operator"  # one run of an operator's kernel
CUSTOM = "Custom Operator"  # what runs inside an operator that a user wrote, and his own code
PROGRAM = "program"  # a compiled graph as a whole, its operators inside
GROUP = "group"  # elementwise operators that run tile by tile
WAIT = "wait"  # the front end waits


class Origin(NamedTuple):
    """Of what the work is a part: scopes of the profiler, and the user's operator that asked for it."""

    scope: str = ""
    custom: str = ""


NOTHING = Origin()


class Event(NamedTuple):
    """Something that lasted from `start` to `end`, in seconds of `time.perf_counter`."""

    row: str  # the lane that worked, or the thread that waited
    name: str
    start: float
    end: float
    kind: str = TASK
    thread: int = 0  # which ran it
    where: Place | None = None  # the user's line that asked for it
    specs: Sequence[Spec] = ()  # of the results
    origin: Origin = NOTHING
    node: str = ""  # of the graph that it is a run of
    about: str = ""  # more in words
    operators: int = 0  # in a task


Listener = Callable[[Event], None]


class Recorder(Protocol):
    """Who wants the tasks themselves, to find out what depends on what: parallel/simulate. There is one at a time: `watch.recorder`."""

    def closed(self, task: Task) -> None:
        """Nothing more comes into `task`; its inputs and outputs are known, and no earlier task depends on it. The lock is held."""

    def ran(self, task: Task, start: float, end: float) -> None:
        """It has run. The lock is held."""

    def at_once(self, op: Op, inputs: Sequence[View | None], outputs: Sequence[Var], start: float) -> None:
        """A small operation has run in the calling thread, and was no task."""

    def waited(self, task: Task | None, start: float, end: float) -> None:
        """The calling thread has waited for `task`, or for all that was queued."""


class Watch:
    """The listeners, by what they want to hear; None where nobody does. `direct`: nobody wants to hear of operators."""

    __slots__ = ("direct", "on", "operators", "programs", "recorder", "tasks", "waits", "_listeners", "_lock")

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self._listeners: dict[Listener, frozenset[str]] = {}
        self._lock = threading.Lock()
        self._settle()

    def record(self, recorder: Recorder | None) -> None:
        """Hand tasks to `recorder` from now on; None: to nobody. **Raises** MXNetError if somebody records already."""
        with self._lock:
            if recorder is not None and self.recorder is not None:
                raise MXNetError("the engine's tasks are being recorded already; end that recording first")
            self.recorder = recorder
            self._settle()

    def add(self, listener: Listener, *kinds: str) -> None:
        """Tell `listener` from now on of "tasks", "operators" that are called one by one, "programs" and what is in them, "waits"."""
        with self._lock:
            self._listeners[listener] = frozenset(kinds)
            self._settle()

    def remove(self, listener: Listener) -> None:
        """Tell it nothing more. It may be none."""
        with self._lock:
            self._listeners.pop(listener, None)
            self._settle()

    def _settle(self) -> None:
        self.tasks = self._for("tasks")
        self.operators = self._for("operators")
        self.programs = self._for("programs")
        self.waits = self._for("waits")
        self.direct = self.operators is None and self.programs is None and self.recorder is None
        self.on = bool(self._listeners) or self.recorder is not None

    def _for(self, kind: str) -> Listener | None:
        """One function that tells all who want to hear of `kind`."""
        found = [listener for listener, kinds in self._listeners.items() if kind in kinds]
        if len(found) < 2:
            return found[0] if found else None

        def tell(event: Event) -> None:
            for listener in found:
                listener(event)

        return tell

    def after_fork_in_child(self) -> None:
        """A thread that did not come along may have held the lock."""
        self._lock = threading.Lock()


class Here(threading.local):
    """What the calling thread works on: the lane of the task that it runs (None: no task), and of what its work is a part."""

    def __init__(self) -> None:
        self.row: str | None = None
        self.origin = NOTHING


watch = Watch()
here = Here()


@functools.cache
def name_of(lane: Context | CopyLane) -> str:
    """What a lane's row is called."""
    return str(lane)


# ---- tasks; see Scheduler._run


def entered(task: Task) -> tuple[float, str | None, Origin]:
    """The calling thread begins to run `task`: when that was, and what it worked on before."""
    before = (clock(), here.row, here.origin)
    here.row, here.origin = name_of(task.lane), task.origin or NOTHING
    return before


def left(before: tuple[float, str | None, Origin]) -> None:
    """It works on again with what it did before."""
    _, here.row, here.origin = before


def finished(task: Task, start: float) -> None:
    """Tell of a task. The engine's lock is held."""
    if watch.recorder is not None:
        watch.recorder.ran(task, start, clock())
    tell = watch.tasks
    if tell is not None:
        kind, operators = (FUNCTION, 0) if task.operators == 0 else (TASK, task.operators)
        tell(
            Event(
                name_of(task.lane), task.name, start, clock(), kind, get_ident(), task.queued_by, (), task.origin or NOTHING,
                operators=operators,
            )
        )  # fmt: skip


# ---- operators


def watched(
    run: Callable[[Op, Any, list[Any], S, Any, Context], R], op: Op, xp: Any, arrays: list[Any], specs: S, key: Any, context: Context,
    where: Place | None = None,
) -> R:  # fmt: skip
    """`run(op, xp, ...)`, and tell of it. `where`: the line that queued it; None if it is the line that runs now."""
    program = op.kind is Kind.PROGRAM
    tell = watch.programs if program else watch.operators
    if tell is None:
        return run(op, xp, arrays, specs, key, context)
    start = clock()
    results = run(op, xp, arrays, specs, key, context)
    if xp is not np:
        synchronize()
    told(tell, op.name, start, clock(), PROGRAM if program else OPERATOR, context, where or caller()[1], specs)
    return results


def told(
    tell: Listener, name: str, start: float, end: float, kind: str, context: Context, where: Place | None, specs: Sequence[Spec] = (),
    node: str = "", about: str = "",
) -> None:  # fmt: skip
    """Tell of work in the lane of the running task, or on `context` if there is none. An operator may be a part of a user's operator."""
    origin = here.origin
    if origin.custom and kind == OPERATOR:
        name, kind = f"{origin.custom}::{name}", CUSTOM
    tell(Event(here.row or name_of(context.lane), name, start, end, kind, get_ident(), where, specs, origin, node, about))


def synchronize() -> None:
    """Wait for what the calling thread has queued on a GPU: CuPy's functions return when their kernels are queued."""
    line = cuda.here.line
    if line is not None:
        line.mark().wait()


@contextlib.contextmanager
def custom(name: str, context: Context) -> Iterator[None]:
    """A scope in which the code of a user's operator runs. Told as MXNet does: `name::pure_python`, and `name::operator` inside."""
    if watch.operators is None:
        yield
        return
    before, start = here.origin, clock()
    here.origin = before._replace(custom=name)
    try:
        yield
    finally:
        here.origin = before
        tell = watch.operators
        if tell is not None:
            told(tell, f"{name}::pure_python", start, clock(), CUSTOM, context, None)


class GroupClock:
    """Measures the operators of a group that runs tile by tile, on several cores: each tile's time counts for the operator that took it.
    Of a group that is one kernel only the whole can be measured; there the operators have equal shares.

    The group is told as one event with its operators one after the other inside, for as long as their shares of its time are, although
    they have taken turns.
    """

    def __init__(self, members: Sequence[Member], start: float | None = None, how: str = "") -> None:
        self.members = members
        self.sums: list[list[float]] = []  # of each thread, what each operator took
        self.start = clock() if start is None else start
        self.how = how  # it ran, if not tile by tile

    def lap(self) -> Callable[[int], None]:
        """For the calling thread: a function to be called with the number of the operator that has just treated a tile."""
        sums = [0.0] * len(self.members)
        self.sums.append(sums)
        before = clock()

        def note(number: int) -> None:
            nonlocal before
            now = clock()
            sums[number] += now - before
            before = now

        return note

    def tell(self, tell: Listener, context: Context) -> None:
        """Tell of the group, which has ended, and of its operators."""
        end = clock()
        names = ", ".join(member[0] for member in self.members)
        about = self.how or f"tile by tile, on {len(self.sums)} thread{'s' * (len(self.sums) > 1)}"
        if len(self.members) > 1:
            place = self.members[0][2]
            told(tell, f"group of {len(self.members)}", self.start, end, GROUP, context, place, about=f"{about}: {names}")
            about = "its share of a group"
        taken = [sum(each) for each in zip(*self.sums)] or [1.0] * len(self.members)
        scale = (end - self.start) / (sum(taken) or 1.0)
        low = self.start
        for number, (name, specs, where, node) in enumerate(self.members, 1):
            high = end if number == len(self.members) else low + taken[number - 1] * scale
            told(tell, name, low, high, OPERATOR, context, where, specs, node, about)
            low = high


Member = tuple[str, "Sequence[Spec]", "Place | None", str]  # an operator's name, the specs of its results, the line, the node


# ---- waits


def caller() -> tuple[str, Place | None]:
    """Which function of minimx the user has called, and on which line."""
    frame = sys._getframe(1)
    name = "minimx"
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(PACKAGE_FOLDER):
            name = frame.f_code.co_name
        elif file not in BETWEEN:
            return name, (file, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
    return name, None


def waited(start: float, name: str = "", about: str = "", task: Task | None = None) -> None:
    """Tell that the calling thread has waited since `start`, for `task`: in the call `name`, by default the user's."""
    if watch.recorder is not None:
        watch.recorder.waited(task, start, clock())
    tell = watch.waits
    if tell is not None:
        called, where = caller()
        row = here.row or f"thread {threading.current_thread().name}"
        tell(Event(row, name or called, start, clock(), WAIT, get_ident(), where, (), here.origin, about=about))
