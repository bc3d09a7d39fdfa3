"""A Var: one piece of memory and the queue of work that reads and writes it.

Everything the engine orders, it orders by Vars. Whoever wants to read a Var must wait for the last task that writes it (`writer`);
whoever wants to write must also wait for the tasks that read it (`readers`). Two tasks without a common Var, or that only read
it, may run at the same time. Arrays own a Var each (views of an array share it); a student can make Vars of his own and
schedule functions on them with `engine.push`.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import MXNetError, OutOfMemoryError, described
from ..op import Spec

if TYPE_CHECKING:
    from .task import Task


def add_note(error: BaseException, note: str) -> None:
    """Let `error` tell something more."""
    if hasattr(error, "add_note"):  # Python 3.11
        error.add_note(note)
    elif error.args and isinstance(error.args[0], str):
        error.args = (f"{error.args[0]}\n{note}", *error.args[1:])


class Failure:
    """An error in a task. It is shared by every Var that the task, or what depends on it, should have written."""

    __slots__ = ("error", "trace", "seen")

    def __init__(self, error: BaseException, what: str, where: tuple[str, int] | None) -> None:
        self.error = error
        self.trace = error.__traceback__
        self.seen = False  # delivered to somebody: waitall need not raise it again
        if where is not None:
            add_note(error, f"{what} was queued by {described(where)}")

    def deliver(self) -> None:
        """Raise the original error. Each delivery starts from the original traceback, so that it does not grow."""
        self.seen = True
        raise self.error.with_traceback(self.trace)

    def __repr__(self) -> str:
        return f"<Failure: {traceback.format_exception_only(type(self.error), self.error)[0].strip()}>"


class Var:
    """Memory and its queue. All fields but `value` of a ready Var are guarded by the engine's lock.

    `ready` is true if the Var holds a value that no queued task will change: exactly then may a thread read `value` without the lock.
    (The memory of a CUDA device may even then wait for its kernels: `Scheduler.wait_to_read` waits for both.)
    """

    __slots__ = (
        "value",
        "ready",
        "failure",
        "writer",
        "readers",
        "slot",
        "shared",
        "viewed",
        "unclaimed",
        "marks",
        "__weakref__",
    )

    marks: Any  # when its memory was last used on a GPU: see streams.py. Not set for host memory, so that it costs nothing there

    def __init__(self, value: Any = None) -> None:
        self.value: Any = value  # a C-contiguous array, or None: not computed yet, or a Var without memory
        self.ready = True
        self.failure: Failure | None = None  # why the last finished write left no value
        self.writer: Task | None = None  # the last unfinished task that writes it
        self.readers: dict[Task, None] | None = None  # unfinished tasks that read it since that write
        self.slot = -1  # its number in `writer`, while that is an open segment
        self.shared = False  # somebody outside sees this memory: writes must go into it, never replace it
        self.viewed = False  # several arrays see it, or did
        self.unclaimed = False  # a gradient that was made for whoever takes it: see `Array.take_over`

    def __repr__(self) -> str:
        state = "failed" if self.failure else "ready" if self.ready else "pending"
        return f"<Var {state}>"


class View:
    """What a front end holds: a Var and the part of its memory that is seen. The base of NDArray.

    The part is a contiguous run that begins `offset` elements into the memory and has the shape of `spec`; an offset of -1 means the
    whole, in its own shape, which is the common case and costs nothing to look up.
    """

    __slots__ = ("var", "offset", "spec", "context")

    def __init__(self, var: Var, spec: Spec, context: Any, offset: int = -1) -> None:
        self.var = var
        self.spec = spec
        self.context = context
        self.offset = offset


def argument(view: View, written: Sequence[Var]) -> Any:
    """The array behind `view` that a pushed function is called with: read-only (if NumPy's) unless the function says it writes."""
    array = window(view.var.value, view.offset, view.spec)
    if type(array) is np.ndarray and all(var is not view.var for var in written):
        array = array.view()
        array.flags.writeable = False
    return array


def window(memory: Any, offset: int, spec: Spec) -> Any:
    """The part of `memory` that a View with this `offset` and `spec` sees, as an array that shares it."""
    if offset < 0:
        return memory
    return memory.reshape(-1)[offset : offset + spec.size].reshape(spec.shape)


def lost() -> MXNetError:
    """The error of a value that nothing computes."""
    return MXNetError("Ctrl-C came before it was computed; compute it again")


def without_arrays(error: BaseException) -> BaseException:
    """`error`, raised by a kernel, whose traceback lets go of the arrays that the kernel worked on: a failure may live long."""
    traceback.clear_frames(error.__traceback__)
    return error


def as_error(error: BaseException, what: str) -> BaseException:
    """`error` as an MXNetError: what a kernel raised, named after its operator."""
    if isinstance(error, (MXNetError, KeyboardInterrupt, SystemExit)):
        return error
    wrapped = (OutOfMemoryError if isinstance(error, MemoryError) else MXNetError)(f"{what}: {error}")
    wrapped.__cause__ = error
    return wrapped
