"""Where operations enter the engine: run at once, or recorded.

`submit` decides. An operation whose inputs are there and whose estimated work is below the price of writing it down
(`INLINE`) runs in the calling thread: for it, that is what returning without computing would cost. Everything else is
recorded into the thread's open segment, which is closed when it is full, when something heavy comes, at a sync, or by an
idle lane half a millisecond later.

Modes, a thread each: ASYNC (the default); LAZY, in which nothing runs until a value is asked for; NAIVE, in which every
operation runs at once and raises its own errors (MXNET_ENGINE_TYPE=NaiveEngine makes it the default, for debugging).
"""

from __future__ import annotations

import contextlib
import contextvars
import enum
import functools
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import cuda
from ..base import ArgumentError, MXNetError, env_choice, env_int, user_location
from ..device import Context, CopyLane, cpu
from ..op import Kind, Op, Spec
from . import execute, streams, writes
from .events import Event, clock, watch
from .lanes import MAX_BYTES, PATIENCE, scheduler
from .segment import Segment
from .single import OpTask
from .task import OPEN, FunctionTask
from .var import Failure, Var, View, argument, as_error, window, without_arrays

INLINE = 20_000.0  # ns: below, running costs less than recording and changing threads
HAND_OVER = 60_000.0  # ns: what it costs to have another thread run one task, and so the same limit for a program, which is one
HEAVY = 100_000.0  # ns: above, an operation that cannot be fused gets a task of its own
NS_PER_ELEMENT = {Kind.ELEMENTWISE: 0.5, Kind.REDUCTION: 0.5, Kind.OPAQUE: 4.0}
NS_PER_PRODUCT = 0.03
LONGER = 1.0  # seconds for which nobody closes a segment that shall be one task
LAZY_LIMIT = 10_000  # records of a lazy segment after which it is run all the same, so that memory is bounded


class Mode(enum.Enum):
    ASYNC = "async"
    LAZY = "lazy"
    NAIVE = "naive"


ASYNC, LAZY, NAIVE = Mode


def _first_mode() -> Mode:
    engines = ("ThreadedEnginePerDevice", "ThreadedEngine", "ThreadedEnginePooled", "NaiveEngine")
    if env_choice("MXNET_ENGINE_TYPE", engines[0], engines) == "NaiveEngine":
        return NAIVE
    return LAZY if env_int("MINIMX_LAZY", 0) else ASYNC


FIRST_MODE = _first_mode()
FIRST_BULK = env_int(
    ("MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN", "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN_FWD", "MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN_BWD"),
    15,
)


class _Thread(threading.local):
    """What the engine knows of a front-end thread."""

    def __init__(self) -> None:
        self.mode = FIRST_MODE
        self.bulk_size = FIRST_BULK
        self.priority = 0
        self.joining: Context | CopyLane | None = None  # the lane on which all is one task: see `one_task`
        self.segments: dict[Context, Segment] = {}  # the open one of each lane


class Shortcuts:
    """`blocked` counts the scopes, in all threads, in which an operation on tiny ready arrays must not take the shortcut of
    `nd`: lazy and naive scopes, recording by autograd, tracing, profiling. `traced`: somebody is inside `trace`."""

    __slots__ = ("blocked", "traced")

    def __init__(self) -> None:
        self.blocked = 0 if FIRST_MODE is ASYNC else 1
        self.traced = False


shortcuts = Shortcuts()
this_thread = _Thread()
_count = threading.Lock()


@contextlib.contextmanager
def no_shortcuts() -> Iterator[None]:
    """A scope in which every operation takes the full way."""
    block_shortcuts(1)
    try:
        yield
    finally:
        block_shortcuts(-1)


def _after_fork_in_child() -> None:
    global _count
    _count = threading.Lock()  # a thread that did not come along may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def block_shortcuts(change: int) -> None:
    """Add `change` to the number of scopes that forbid shortcuts."""
    with _count:
        shortcuts.blocked += change


def work(op: Op, inputs: Sequence[View | None], out_specs: Sequence[Spec]) -> float:
    """Estimated nanoseconds of an operation."""
    if op.kind is Kind.PROGRAM:
        return op.cost
    if op.meets:
        return math.inf
    elements = 0
    for spec in out_specs:
        elements += spec.size
    sizes = [view.spec.size for view in inputs if view is not None]
    if op.kind is Kind.GEMM and len(sizes) >= 2:
        # (M, K) by (K, N) to (M, N): the square root of the three sizes' product is M K N.
        return NS_PER_PRODUCT * math.sqrt(float(sizes[0]) * sizes[1] * max(elements, 1))
    return NS_PER_ELEMENT.get(op.kind, 4.0) * (elements + sum(sizes))


def _free(op: Op, inputs: Sequence[View | None], targets: Sequence[View | None]) -> bool:
    """Whether an operation can run at once: its inputs have values, and nothing queued reads what it writes."""
    for view in inputs:
        if view is not None and not view.var.ready:
            return False
    for view in (*targets, *(inputs[position] for position in op.mutates)):
        if view is not None and (view.var.readers or not view.var.ready):
            return False
    return True


def submit(
    op: Op,
    inputs: Sequence[View | None],
    out_specs: Sequence[Spec],
    context: Context,
    targets: Sequence[View | None],
    key: Any = None,
) -> list[Var]:
    """Enter one operation; the Vars of its outputs (those of `targets` where they are given).

    Returns at once, in the asynchronous mode without computing what is worth a task. Raises nothing there: a failure is kept
    for whoever reads the outputs.
    """
    mode = this_thread.mode
    if mode is NAIVE or not scheduler.threads_work:
        return _run_naively(op, inputs, out_specs, context, targets, key)
    cost = work(op, inputs, out_specs)
    lane: Context | CopyLane = context.lane
    if op.crosses_devices and mode is ASYNC:
        lane = op.lane(context)
        if lane is not context.lane:
            cost = HEAVY + cost  # it may take long without computing
    on_gpu = cuda.state.in_use and streams.line_of(context) is not None  # there, what is recorded becomes fewer kernels
    if mode is ASYNC and cost <= (HAND_OVER if op.kind is Kind.PROGRAM else INLINE) and not on_gpu:
        if op.mutates or (targets and targets[0] is not None):
            with scheduler.lock:  # or of two threads that add to an array one could be lost
                if _free(op, inputs, targets):
                    return _run_inline(op, inputs, out_specs, context, targets, key)
        elif _free(op, inputs, targets):
            return _run_inline(op, inputs, out_specs, context, targets, key)
    if scheduler.inside():
        return _run_naively(op, inputs, out_specs, context, targets, key)
    meets = cost == math.inf  # it waits for another lane, which may need whatever was recorded before it
    heavy = meets or (cost >= HEAVY and op.kind is not Kind.ELEMENTWISE and mode is ASYNC and this_thread.joining is not lane)
    where = user_location(skip=2)  # this function and `invoke`
    with scheduler.lock:
        segment = this_thread.segments.get(context.lane)
        if heavy and segment is not None and segment.state is OPEN and (meets or not segment.lazy):
            scheduler.close(segment)  # a heavy operation comes: what was recorded before it need not wait for more
        if heavy and OpTask.serves(targets):
            task = OpTask(op, out_specs, context.lane, key, where, lane)
            task.priority = this_thread.priority
            variables = task.enter(inputs, scheduler, targets)
            scheduler.close(task)
        else:
            segment = _open_segment(context) if lane is context.lane else Segment(context.lane, 1, lane=lane)
            segment.priority = this_thread.priority
            variables = segment.record(op, inputs, out_specs, targets, key, where, scheduler)
            segment.cost += cost
            if heavy or segment.full or (segment.nbytes > MAX_BYTES // 4 and not segment.lazy):
                scheduler.close(segment)
    scheduler.make_room()
    return variables


def _open_segment(context: Context) -> Segment:
    """The open segment of this thread for `context`, in its mode. The engine's lock is held."""
    lazy = this_thread.mode is LAZY
    segment = this_thread.segments.get(context.lane)
    if segment is not None and segment.state is OPEN:
        if segment.lazy == lazy:
            return segment
        if not segment.lazy:
            scheduler.close(segment)
    joining = this_thread.joining is context.lane
    segment = Segment(context.lane, LAZY_LIMIT if lazy or joining else max(1, this_thread.bulk_size), lazy)
    this_thread.segments[context.lane] = segment
    scheduler.opened(segment, LONGER if joining else PATIENCE)
    return segment


def _store(results: list[Any], targets: Sequence[View | None]) -> list[Var]:
    """Put results of an operation that has run into their Vars."""
    variables = []
    for value, target in zip(results, targets):
        if target is None:
            variables.append(Var(value))
            continue
        var = target.var
        if target.offset >= 0 or var.shared:
            writes.noted(var.value)
            window(var.value, target.offset, target.spec)[...] = value
        else:
            var.value = value
        if target.offset < 0:
            var.failure, var.ready = None, True
        variables.append(var)
    return variables


def _compute(op: Op, inputs: Sequence[View | None], out_specs: Sequence[Spec], context: Context, key: Any) -> list[Any]:
    for position in op.mutates:
        view = inputs[position]
        if view is not None:
            writes.noted(view.var.value)
    arrays = [None if view is None else window(view.var.value, view.offset, view.spec) for view in inputs]
    return execute.run_now(op, arrays, list(out_specs), key, context)


def _run_inline(
    op: Op, inputs: Sequence[View | None], out_specs: Sequence[Spec], context: Context, targets: Sequence[View | None], key: Any
) -> list[Var]:
    """Run a small operation in this thread; its failure waits in the outputs as if a lane had run it."""
    recorder = watch.recorder
    start = 0.0 if recorder is None else clock()
    try:
        variables = _store(_compute(op, inputs, out_specs, context, key), targets)
        if recorder is not None:
            recorder.at_once(op, inputs, variables, start)
        return variables
    except Exception as error:
        failure = Failure(as_error(without_arrays(error), op.name), op.name, user_location())
    variables = [Var() if target is None else target.var for target in targets]
    with scheduler.lock:
        scheduler.failures[failure] = None
        for var in (*variables, *(view.var for view in (inputs[position] for position in op.mutates) if view is not None)):
            var.failure, var.ready = failure, False
    return variables


def _run_naively(
    op: Op, inputs: Sequence[View | None], out_specs: Sequence[Spec], context: Context, targets: Sequence[View | None], key: Any
) -> list[Var]:
    """Run an operation in this thread and raise what it raises, after what was queued in another mode."""
    for view in inputs:
        if view is not None and (not view.var.ready or cuda.state.in_use):
            scheduler.wait_to_read(view.var)
    for view in (*targets, *(inputs[position] for position in op.mutates)):
        if view is not None:
            scheduler.wait_to_write(view.var)
            if view.offset >= 0:
                scheduler.wait_to_read(view.var)  # raises if the memory of which it is a part has failed
    try:
        line = streams.line_of(context) if cuda.state.in_use else None
        if line is not None:
            return _run_naively_on_gpu(line, op, inputs, out_specs, context, targets, key)
        results = _compute(op, inputs, out_specs, context, key)
    except MXNetError:
        raise
    except Exception as error:
        raise as_error(error, op.name)  # noqa: B904  # its cause is `error`
    return _store(results, targets)


def _run_naively_on_gpu(
    line: cuda.Line, op: Op, inputs: Sequence[View | None], out_specs: Sequence[Spec], context: Context,
    targets: Sequence[View | None], key: Any,
) -> list[Var]:  # fmt: skip
    """Queue an operation on a GPU and wait for it: its errors are raised by the call."""
    reads = [view.var for view in inputs if view is not None]
    writes = [view.var for view in (*targets, *(inputs[position] for position in op.mutates)) if view is not None]
    with streams.Work(line, reads, writes, op.name) as work:
        variables = _store(_compute(op, inputs, out_specs, context, key), targets)
    for var in variables:
        work.made(var)
        scheduler.wait_to_read(var)
    return variables


def value_of(view: View) -> Any:
    """The array that `view` sees, when it is there: waits, and raises the failure that prevented it. It shares the memory."""
    if not view.var.ready or cuda.state.in_use:
        scheduler.wait_to_read(view.var)
    return window(view.var.value, view.offset, view.spec)


# ---- what users call


def push(
    function: Callable[..., Any],
    reads: View | Var | Sequence[View | Var] = (),
    writes: View | Var | Sequence[View | Var] = (),
    context: Context | CopyLane | None = None,
    name: str | None = None,
    nbytes: int = 0,
) -> None:
    """Schedule `function`: it runs when everything queued so far that conflicts with it has finished.

    **Args** `reads`, `writes`: arrays, or Vars made with `engine.Var()`, that the function reads and changes. It is called
    with the NumPy arrays behind the arrays among `reads`, which it cannot change, then those among `writes`; Vars only
    order. One array or Var need not be put into a list. `context`: whose lane runs it (default: that of the first array,
    else cpu(0)). `nbytes`: of memory that the function will make, which counts as in flight.
    **Returns** None, at once. An error in the function is raised by whoever reads what it writes, or by `waitall`. A function
    that would be called with an array that has failed is not called, and what it should have written has failed, too.
    **Raises** ArgumentError if `function` cannot be called or an entry is neither an array nor a Var. **Book** chapter 2.

    >>> done = Var()
    >>> push(lambda: print("work"), writes=[done]); wait(done)
    work
    """
    if not callable(function):
        raise ArgumentError(f"engine.push: the function must be callable, got {type(function).__name__}")
    reads, writes = ([entries] if isinstance(entries, (View, Var)) else list(entries) for entries in (reads, writes))
    for entry in (*reads, *writes):
        if not isinstance(entry, (View, Var)):
            raise ArgumentError(f"engine.push: reads and writes hold arrays or engine.Var(), got {type(entry).__name__}")
    views = [entry for entry in (*reads, *writes) if isinstance(entry, View)]
    lane = (context or (views[0].context if views else cpu())).lane
    read_vars = dict.fromkeys(entry.var if isinstance(entry, View) else entry for entry in reads)
    written = list(dict.fromkeys(entry.var if isinstance(entry, View) else entry for entry in writes))
    if this_thread.mode is NAIVE or not scheduler.threads_work:
        _push_naively(function, views, read_vars, written)
        return
    apart = functools.partial(_apart, function)
    task = FunctionTask(lane, name or str(getattr(function, "__name__", "function")), apart, views, written)
    task.priority = this_thread.priority
    if scheduler.inside():
        raise MXNetError("engine.push: a finalizer (__del__) that runs in the middle of the engine's work cannot push")
    task.nbytes = nbytes
    with scheduler.lock:
        task.read = dict.fromkeys(read_vars, 0)
        task.reads(task.read, scheduler)
        task.writes(written, scheduler)
        scheduler.close(task)
    scheduler.make_room()


def _apart(function: Callable[..., Any], *arrays: Any) -> None:
    """Run a pushed function, in whichever thread, in the asynchronous mode and with segments of its own: what the thread has recorded
    may wait for this very task, and must not get what the function records, and perhaps waits for."""
    before = this_thread.mode, this_thread.segments
    this_thread.mode, this_thread.segments = ASYNC, {}
    try:
        function(*arrays)
    finally:
        close_segments()
        this_thread.mode, this_thread.segments = before


def _push_naively(function: Callable[..., Any], views: Sequence[View], read: Iterable[Var], written: Sequence[Var]) -> None:
    """Run a function in this thread and raise what it raises, after what was queued in another mode."""
    for var in (*read, *(view.var for view in views)):
        scheduler.wait_to_read(var)
    for var in written:
        scheduler.wait_to_write(var)
    function(*[argument(view, written) for view in views])
    for var in written:
        writes.noted(var.value)
        var.failure, var.ready = None, True


def wait(entry: View | Var) -> None:
    """Return when what is queued to write an array or a Var has finished. Raises its failure; ArgumentError for anything else."""
    if not isinstance(entry, (View, Var)):
        raise ArgumentError(f"engine.wait: an array or an engine.Var() is wanted, got {type(entry).__name__}")
    scheduler.wait_to_read(entry.var if isinstance(entry, View) else entry)


def waitall() -> None:
    """Return when everything that was pushed, by any thread, has finished.

    **Raises** the oldest failure that nobody has seen yet; notes on it tell of the others. Each is raised once.
    """
    scheduler.wait_all()


def set_bulk_size(size: int) -> int:
    """Bound the operations of a segment for the calling thread; the previous bound. 0 or 1: no bulking."""
    if not isinstance(size, (int, np.integer)) or size < 0:
        raise ArgumentError(f"engine.set_bulk_size: a number of operations, 0 or more, is wanted, got {size!r}")
    close_segments()
    before, this_thread.bulk_size = this_thread.bulk_size, size
    return before


@contextlib.contextmanager
def bulk(size: int) -> Iterator[None]:
    """A scope in which up to `size` operations are recorded into one segment. Values are the same as without it."""
    before = set_bulk_size(size)
    try:
        yield
    finally:
        this_thread.bulk_size = before  # first, here and below: Ctrl-C in the middle must not leave the thread in the scope
        close_segments()


@contextlib.contextmanager
def priority(value: int) -> Iterator[None]:
    """A scope whose operations run, among those of their lane that are ready, before those of a lower priority. The usual one is 0."""
    if not isinstance(value, (int, np.integer)):
        raise ArgumentError(f"engine.priority: a whole number is wanted, got {value!r}")
    close_segments()
    before, this_thread.priority = this_thread.priority, int(value)
    try:
        yield
    finally:
        this_thread.priority = before
        close_segments()


@contextlib.contextmanager
def one_task(context: Context) -> Iterator[None]:
    """A scope whose operations on `context` are one task, whatever each costs.

    For work in which each operation waits for the one before: as tasks of their own they would change threads, and gain nothing. It is
    more tasks where something in the scope waits for a value, and where nothing is to be bulked.
    """
    if not isinstance(context, Context):
        raise ArgumentError(f"engine.one_task: a device is wanted, such as mx.cpu(0), got {context!r}")
    close_segments()
    before, this_thread.joining = this_thread.joining, context.lane if this_thread.bulk_size > 1 else None
    try:
        yield
    finally:
        this_thread.joining = before
        close_segments()


def close_segments() -> None:
    """Hand what this thread has recorded to its lanes; lazy work stays as it is."""
    with scheduler.lock:
        for segment in this_thread.segments.values():
            if segment.state is OPEN and not segment.lazy:
                scheduler.close(segment)


@contextlib.contextmanager
def _in_mode(mode: Mode) -> Iterator[None]:
    close_segments()
    before, this_thread.mode = this_thread.mode, mode
    block_shortcuts(1)
    try:
        yield
    finally:
        this_thread.mode = before
        block_shortcuts(-1)


def lazy() -> contextlib.AbstractContextManager[None]:
    """A scope in which nothing runs until a value is asked for, and only what that value needs runs then.

    What nobody can see any more never runs. Work that is still wanted when the scope ends stays lazy until it is read.
    **Book** chapter 2.
    """
    return _in_mode(LAZY)


def naive() -> contextlib.AbstractContextManager[None]:
    """A scope in which every operation runs at once, in the calling thread, and raises its own errors: for debugging."""
    return _in_mode(NAIVE)


@contextlib.contextmanager
def trace() -> Iterator[list[tuple[str, str, float, float]]]:
    """A scope that logs tasks: a list of (lane, name, start, end), seconds of `time.perf_counter`, which grows as tasks finish.

    The profiler tells more: operators inside tasks, and waits. **Raises** MXNetError if a trace runs already.
    """
    with _count:
        if shortcuts.traced:
            raise MXNetError("engine.trace: a trace is running already")
        shortcuts.traced = True
    log: list[tuple[str, str, float, float]] = []

    def note(event: Event) -> None:
        log.append(event[:4])

    block_shortcuts(1)
    watch.add(note, "tasks")
    try:
        yield log
    finally:
        try:
            scheduler.drain()
        finally:
            watch.remove(note)
            block_shortcuts(-1)
            shortcuts.traced = False
        log.sort(key=lambda event: event[2])


def quiet_run() -> Callable[..., Any]:
    """A function like `lambda f, *args: f(*args)` under which NumPy prints no floating-point warnings; this thread's own.

    `with np.errstate` costs more than a small operation; entering a saved context does not. It must not be nested.
    """
    if int(np.__version__.split(".")[0]) < 2:

        def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            with np.errstate(all="ignore"):
                return function(*args, **kwargs)

        return run
    context = contextvars.copy_context()
    context.run(np.seterr, all="ignore")
    return context.run
