"""The order of work on CUDA devices: what waits for which event.

On a CUDA device a task has finished, for the engine, when its kernels are *queued* on the stream of its lane (minimx/cuda.py calls that
a line). Its successors start then, and what they queue on the same line runs after it in any case. For other lines, and for the host,
each Var remembers the last write to its memory and the reads since, as marks: points on a line. So

    work that reads a Var waits for the mark of the last write, work that writes it also for the marks of the reads since,

if they are on other lines, by an event: no thread waits. The host waits only where somebody wants a value: `wait_to_read`, `asnumpy`,
a copy to host memory (in a lane of its own), `waitall`. An error of the device appears there, as the failure of that array.

Why memory is safe. (1) The engine starts a task when the tasks it conflicts with have finished, which have then set their marks; so the
marks of a Var that a task finds are those of all earlier work on it. (2) Memory is let go by reference count, on the host. What a line
has used of its own memory may be let go at once: its pool gives it only to work that comes later on the same line. Of any other memory
the line keeps a reference until its mark is passed (`Line.hold`). Whose the memory of a Var is, `Marks.home` says, and None wherever there
is doubt. (3) Of a Var without marks, such as one that shares another library's memory, nothing is known but that what was queued
so far on the line for computing may write it: it gets a mark there when it is first used. (4) Arrays in host memory never carry
marks. A copy to the host is waited for by the thread that queues it; a copy from the host has read its source when CuPy's function
returns, unless that is pinned memory, which the GPU reads by itself: then, too, the thread waits (nd/transfer.py).

Marks are guarded by the lock `_lock`, and by the engine's order: no two tasks that conflict run at the same time. Book: chapter 7.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import cuda
from ..base import MXNetError, as_sentence
from ..cuda import Line, Mark
from ..device import Context, CopyLane
from ..simulated import gpus as simulated_gpus
from .var import Failure, Var

if TYPE_CHECKING:
    from .task import Task

_lock = threading.Lock()


class Marks:
    """When the memory of a Var was last used, and where it was allocated (None: not known)."""

    __slots__ = ("home", "read", "what", "where", "written")

    def __init__(self, home: Line | None, written: Mark) -> None:
        self.home = home
        self.written = written
        self.read: dict[Line, Mark] = {}  # since then
        self.what = ""  # the name of the task that wrote it, and the user's line that queued that: for the message of an error
        self.where: tuple[str, int] | None = None


def line_of(lane: Context | CopyLane) -> Line | None:
    """The line of a lane; None for one in host memory. Raises DeviceError if the device is not there."""
    context = lane if isinstance(lane, Context) else lane.context
    if context.device_typeid != 2 or context.device_id in simulated_gpus:
        return None
    return cuda.line(context.device_id, lane.direction if isinstance(lane, CopyLane) else "")


def marks_of(var: Var) -> Marks | None:
    """The marks of a Var whose value is on a GPU, or will be; None for host memory."""
    found: Marks | None = getattr(var, "marks", None)
    if found is None and cuda.is_array(var.value):
        device_id = int(var.value.device.id)
        line = cuda.here.line
        found = Marks(None, (line if line is not None and line.device_id == device_id else cuda.line(device_id)).mark())
        var.marks = found
    return found


class Work:
    """A scope in which work is queued on a line: after what it depends on, and followed by its mark."""

    __slots__ = ("line", "reads", "writes", "what", "where", "mark", "_queueing")

    def __init__(
        self,
        line: Line,
        reads: Iterable[Var] = (),
        writes: Iterable[Var] = (),
        what: str = "",
        where: tuple[str, int] | None = None,
    ) -> None:
        self.line = line
        self.reads = list(reads)
        self.writes = list(writes)
        self.what = what
        self.where = where
        self.mark: Mark | None = None
        self._queueing = cuda.queueing(line)

    def __enter__(self) -> Work:
        self.line.release()
        self._queueing.__enter__()
        try:
            for var in self.reads:
                marks = marks_of(var)
                if marks is not None:
                    self.line.after(marks.written)
            for var in self.writes:
                marks = marks_of(var)
                if marks is not None:
                    with _lock:
                        before = [marks.written, *marks.read.values()]
                    for mark in before:
                        self.line.after(mark)
        except BaseException:
            self._queueing.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        """Set marks even if the work has failed: some of it may have been queued."""
        try:
            self.mark = self.line.mark()
            self._leave_marks()
        except Exception:
            if error is None:  # else that one says more: the device has failed before
                raise
        finally:
            self._queueing.__exit__(None, None, None)

    def _leave_marks(self) -> None:
        mark = self.mark
        assert mark is not None
        foreign = []
        for var in (*self.reads, *self.writes):
            marks: Marks | None = getattr(var, "marks", None)
            if cuda.is_array(var.value) and (marks is None or marks.home is not self.line):
                foreign.append(var.value)
        with _lock:
            for var in self.reads:
                marks = getattr(var, "marks", None)
                if marks is not None:
                    last = marks.read.get(self.line)
                    if last is None or last.number < mark.number:  # another thread may have been faster
                        marks.read[self.line] = mark
        for var in self.writes:
            self.made(var)
        if foreign:
            self.line.hold(mark, foreign)

    def made(self, var: Var, fresh: bool = False) -> None:
        """`var` has got, or will get, a value that was queued here. To be called before anybody else may see it.

        `fresh`: its memory is new, and was allocated here.
        """
        mark = self.mark
        assert mark is not None
        if isinstance(var.value, np.ndarray):
            return  # in host memory
        marks: Marks | None = getattr(var, "marks", None)
        if marks is None:
            marks = Marks(self.line if fresh or var.value is None else None, mark)
        else:
            # It may have been written in place, or replaced by memory of this line.
            marks = Marks(marks.home if marks.home is self.line else None, mark)
        marks.what, marks.where = self.what, self.where
        var.marks = marks


def run(task: Task) -> None:
    """Run a task: one of a GPU in its line; one of the host when the GPUs have written what it reads."""
    line = line_of(task.lane)
    if line is not None:
        # What a copy to the host writes is there when it returns, and has no marks.
        writes = [] if task.context.host else task.written_vars()
        with Work(line, task.read, writes, task.name, task.queued_by):
            task.run()
        return
    for var in task.read:
        marks = marks_of(var)
        if marks is not None:
            marks.written.wait()
    task.run()


def finish(var: Var) -> Failure | None:
    """Wait until a GPU has run what was queued to write `var`. The failure, if the device has failed: the Var has it, too."""
    marks = marks_of(var)
    if marks is None:
        return None
    try:
        marks.written.wait()
        return None
    except Exception as error:
        what = marks.what or "an operation"
        failed = MXNetError(
            f"{what}: gpu({marks.written.line.device_id}) has failed: {as_sentence(error)} This array, and whatever else was queued on "
            "that GPU, is lost; CUDA needs a new process"
        )
        failed.__cause__ = error
        failure = Failure(failed, what, marks.where)
        var.failure, var.ready = failure, False
        return failure


def finish_all() -> Failure | None:
    """Wait until all GPUs have run what was queued. The failure, if one has failed."""
    try:
        cuda.synchronize()
        return None
    except Exception as error:
        failed = MXNetError(f"a GPU has failed: {as_sentence(error)} What was queued on it is lost; CUDA needs a new process")
        failed.__cause__ = error
        return Failure(failed, "waitall", None)
