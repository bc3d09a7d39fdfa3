"""CUDA devices through CuPy: whether there are any, and the streams in which work is queued on them.

A call of CuPy's returns when its kernels are queued, not when they have run. Each device has three queues here, called lines: one for
what it computes, one for copies to it, one for copies from it. They are CUDA streams that wait neither for each other nor for the
default stream. What orders them are *marks*, points on a line: a mark is a CUDA event, for which another line, or the host, can wait.
Which line must wait for which mark is worked out in engine/streams.py; here is what needs no knowledge of arrays and tasks.

CuPy's pool hands memory out again as soon as the host has let go of it, to the next allocation on the stream where it was allocated.
That is safe for one stream, whose kernels run in order. Memory that a line uses and another line allocated must not be let go before the
line has passed its last use: `Line.hold` keeps such arrays until the line's mark is passed, or the device has run out of memory.

CuPy is imported when a GPU is asked for, not before. Book: chapter 7.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .base import DeviceError, as_sentence, env_int

SIMULATE = (
    "minimx.device.simulate_gpus(n) makes gpu(0) to gpu(n-1) of host memory; so does `python -m minimx run --simulate-gpus n` for a "
    "script as it is"
)
MOST_HELD = env_int("MINIMX_MAX_BYTES_HELD", 1 << 30, 1)  # bytes that a line keeps from the pool before the host waits for it


class State:
    """What this process knows of CUDA. `in_use`: work has been queued on a GPU, so that whoever reads arrays may have to wait for it."""

    __slots__ = ("forked", "in_use", "lines", "lock", "module", "number")

    def __init__(self) -> None:
        self.in_use = False
        self.forked = False  # a parent process had used a GPU: CUDA does not work here
        self.module: Any = None  # cupy, when it has been found to work
        self.number = 0  # of GPUs
        self.lines: dict[tuple[int, str], Line] = {}
        self.lock = threading.Lock()


class Here(threading.local):
    """The line in which the calling thread queues work."""

    line: Line | None = None


state = State()
here = Here()


# ---- whether there is a GPU


def cupy() -> Any:
    """The module CuPy. Raises DeviceError with what to do if it is not there."""
    if state.module is not None:
        return state.module
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        if importlib.util.find_spec("cupy") is not None:
            raise DeviceError(
                f"a GPU needs CuPy, which is installed but cannot be imported: {as_sentence(error)} Without a GPU, {SIMULATE}."
            ) from error
        raise DeviceError(
            "a GPU needs CuPy, which is not installed: pip install 'minimx[cuda12]' (or 'minimx[cuda13]'). "
            f"Without a GPU, {SIMULATE}."
        ) from None


def count() -> int:
    """How many GPUs there are. Raises DeviceError if CuPy is not there, or CUDA does not start."""
    if state.forked:
        raise DeviceError(
            "a GPU cannot be used in a process that was forked from one that used it: start processes with "
            "multiprocessing.get_context('spawn'), or copy arrays to mx.cpu() first"
        )
    if not state.number:
        module = cupy()
        try:
            state.number = int(module.cuda.runtime.getDeviceCount())
        except Exception as error:  # CuPy's error for each way in which CUDA can fail to start
            version = getattr(module, "__version__", "")
            raise DeviceError(
                f"CuPy {version} is here, but CUDA does not start: {as_sentence(error)} `nvidia-smi` shows whether there is a GPU with a "
                f"driver. Without a GPU, {SIMULATE}."
            ) from error
        if state.number:
            state.module = module
    return state.number


def require(device_id: int) -> Any:
    """CuPy, for GPU `device_id`. Raises DeviceError if it is not there."""
    if state.module is None or device_id >= state.number or state.forked:
        found = count()
        if device_id >= found:
            raise DeviceError(
                f"gpu({device_id}) is not there: {found} GPU{'s are' if found != 1 else ' is'} found. "
                f"minimx.device.simulate_gpus({device_id + 1}) makes them of host memory; so does `python -m minimx run "
                f"--simulate-gpus {device_id + 1}` for a script as it is."
            )
    state.in_use = True
    return state.module


def present() -> bool:
    """Whether a GPU can be used here; False without CuPy, a driver or a device."""
    try:
        return count() > 0
    except DeviceError:
        return False


def forget() -> None:
    """Know nothing any more: the next use of a GPU looks for CuPy again."""
    state.in_use, state.module, state.number, state.lines = False, None, 0, {}


# ---- lines


class Mark(NamedTuple):
    """A point on a line: what was queued there before has run when `event` is passed."""

    line: Line
    number: int
    event: Any

    def wait(self) -> None:
        """The host waits. Raises CuPy's error if the device has failed."""
        self.event.synchronize()


class Line:
    """A stream of a device, and what is known of its order."""

    __slots__ = ("device_id", "role", "stream", "lock", "number", "seen", "held", "held_bytes")

    def __init__(self, device_id: int, role: str) -> None:
        module = require(device_id)
        self.device_id = device_id
        self.role = role  # "", "in" or "out"
        with module.cuda.Device(device_id):
            self.stream = module.cuda.Stream(non_blocking=True)
        self.lock = threading.Lock()  # guards the fields below, and the order of waits and marks: several threads may queue
        self.number = 0  # of the last mark
        self.seen: dict[Line, int] = {}  # other line -> the mark of it that this one waits for already
        self.held: deque[tuple[Mark, Sequence[Any], int]] = deque()  # (when it is passed, arrays, their bytes), oldest first
        self.held_bytes = 0

    def mark(self) -> Mark:
        """A mark behind all that is queued."""
        cuda = state.module.cuda
        with self.lock, cuda.Device(self.device_id):
            self.number += 1
            event = cuda.Event(disable_timing=True)
            event.record(self.stream)
            return Mark(self, self.number, event)

    def after(self, mark: Mark) -> None:
        """Queue nothing that runs before `mark` is passed."""
        if mark.line is self:
            return
        with self.lock:  # until the wait is queued: another thread that finds it in `seen` relies on it
            if self.seen.get(mark.line, 0) < mark.number:
                self.stream.wait_event(mark.event)
                self.seen[mark.line] = mark.number

    def hold(self, mark: Mark, arrays: Sequence[Any]) -> None:
        """Keep `arrays` until this line has passed `mark`; the host waits where too much is kept."""
        nbytes = sum(array.nbytes for array in arrays)
        with self.lock:
            self.held.append((mark, arrays, nbytes))
            self.held_bytes += nbytes
        while self.held_bytes > MOST_HELD and self.release(wait=True):
            pass

    def release(self, wait: bool = False) -> bool:
        """Let go of what was held for marks that are passed; with `wait`, wait for the oldest one. Whether anything was let go."""
        found: list[Any] = []
        with self.lock:
            while self.held and ((wait and not found) or self.held[0][0].event.done):
                found.append(self.held.popleft())
                self.held_bytes -= found[-1][2]
        if wait and found:
            found[0][0].wait()
        return bool(found)

    def __repr__(self) -> str:
        return f"gpu({self.device_id}) {self.role}".rstrip()


def line(device_id: int, role: str = "") -> Line:
    """The line of a device for computing (""), copies to it ("in") or from it ("out"). Raises DeviceError."""
    found = state.lines.get((device_id, role))
    if found is None:
        with state.lock:
            found = state.lines.get((device_id, role)) or state.lines.setdefault((device_id, role), Line(device_id, role))
    return found


@contextlib.contextmanager
def queueing(on: Line) -> Iterator[None]:
    """A scope in which the calling thread queues work on a line."""
    cuda = state.module.cuda
    before = here.line
    with cuda.Device(on.device_id), on.stream, cuda.using_allocator(allocate):
        here.line = on
        try:
            yield
        finally:
            here.line = before


_nothing = contextlib.nullcontext()


def working(device_id: int) -> Any:
    """A scope for work on a device: in the line of the calling thread if that is one of the device, else in the one for computing."""
    current = here.line
    return _nothing if current is not None and current.device_id == device_id else queueing(line(device_id))


@contextlib.contextmanager
def together(lines: Sequence[Line]) -> Iterator[None]:
    """A scope for a call that queues work on several `lines` at once: all of it is after what is queued here, and before what follows."""
    current = here.line
    assert current is not None
    begin = current.mark()
    for each in lines:
        each.after(begin)
    try:
        yield
    finally:
        for each in lines:
            current.after(each.mark())


def synchronize() -> None:
    """Wait for all that is queued on any device. Raises CuPy's error if one has failed."""
    for each in list(state.lines.values()):
        each.stream.synchronize()
        each.release()


# ---- memory


def allocate(nbytes: int) -> Any:
    """Memory of the current device, from CuPy's pool; for want of it, what lines hold is waited for. Raises CuPy's OutOfMemoryError."""
    module = state.module
    pool = module.get_default_memory_pool()
    try:
        return pool.malloc(nbytes)
    except module.cuda.memory.OutOfMemoryError:
        for each in list(state.lines.values()):
            while each.release(wait=True):
                pass
        return pool.malloc(nbytes)


def to_host(array: Any, device_id: int, out: Any = None) -> Any:
    """A NumPy array of the values of `array`, in `out` if given. The host waits for the copy, and for nothing that is queued elsewhere."""
    with queueing(line(device_id, "out")):
        return array.get(out=out)


def brought(array: Any, device_id: int) -> Any:
    """A copy of a contiguous array of another device on `device_id`, queued where the calling thread works.

    CuPy lets the devices reach each other's memory if they can; if not, CUDA copies by way of the host.
    """
    copy = require(device_id).empty(array.shape, array.dtype)
    if array.nbytes:
        copy.data.copy_from_device_async(array.data, array.nbytes)
    return copy


@functools.cache
def _array_type(module: Any) -> Any:
    return module.ndarray


def is_array(value: Any) -> bool:
    """Whether `value` is an array on a GPU."""
    return state.module is not None and isinstance(value, _array_type(state.module))


_kept_alive: list[Any] = []  # by a child process, in which their finalizers would call CUDA


def _after_fork_in_child() -> None:
    state.lock = threading.Lock()
    if state.in_use:
        _kept_alive.append(dict(state.lines))
        forget()
        state.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
