"""The GPUs of the stand-in: streams that defer, events, and a memory pool that hands out freed memory at once.

A call that a real GPU would queue is queued here, on the current stream of the calling thread. Nothing of it runs before the host waits
for something; then whatever may run does so in a random order (by a seed), which respects only the order within each stream and events.
So a missing event shows as a wrong value, sooner or later. It shows at once, too: each queued kernel says what it reads and writes, and
two of them that touch the same memory without an order between them are reported (vector clocks, as in a race detector; L. Lamport,
"Time, clocks, and the ordering of events in a distributed system", 1978).

What is modelled of CuPy 14: memory is freed by reference count, while kernels that use it may still be queued, into the list of the
stream on which it was allocated, from which the next allocation there takes it (most recently freed first); kernels on the default
stream, and arrays of another device than the current one, are refused; an error in a kernel appears at the next call that waits, and
the device is of no use from then on.
"""

from __future__ import annotations

import itertools
import random
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

GRAIN = 512  # bytes to which the pool rounds up


class CUDARuntimeError(RuntimeError):
    """What CuPy raises for an error of the CUDA runtime."""


class OutOfMemoryError(MemoryError):
    """What CuPy raises when its pool cannot grow."""


class Point:
    """A point on a stream's time line, and what has happened before it: stream -> how many of its kernels."""

    __slots__ = ("passed", "clock")

    def __init__(self, clock: dict[Any, int]) -> None:
        self.passed = False
        self.clock = clock


class Block:
    """Memory of a GPU. When nothing on the host refers to it any more, the pool has it back, whatever is queued."""

    def __init__(self, bytes_: np.ndarray, machine: Machine, device: int, arena: Any, history: History) -> None:
        self.bytes, self.machine, self.device, self.arena, self.history = bytes_, machine, device, arena, history

    def __del__(self) -> None:
        self.machine.returned.append((self.device, self.arena, self.bytes, self.history))


class History:
    """The last kernels that touched some memory: (stream, its number there) of the last write, and of the reads since."""

    __slots__ = ("written", "read")

    def __init__(self) -> None:
        self.written: tuple[Any, int] | None = None
        self.read: dict[Any, int] = {}


class Machine:
    """Some GPUs. All state is guarded by one lock; kernels run under it, in the thread that waits."""

    def __init__(self, count: int, seed: int = 0, capacity: int = 1 << 34) -> None:
        self.count, self.capacity = count, capacity
        self.random = random.Random(seed)
        self.lock = threading.RLock()
        self.local = threading.local()
        self.streams: list[Stream] = []
        self.numbers = itertools.count(1)
        self.host: dict[Any, int] = {}  # what the host knows to have run
        self.races: list[str] = []  # pairs of kernels that should have had an order
        self.broken: dict[int, str] = {}  # device -> the error that a kernel raised on it
        self.cause: Exception | None = None
        self.free: dict[tuple[int, Any, int], list[tuple[np.ndarray, History]]] = {}
        self.returned: deque[Any] = deque()  # by finalizers, which may come at any time
        self.used = [0] * count  # bytes of each device in use, and in all
        self.taken = [0] * count
        self.pinned: list[tuple[int, int]] = []
        self.launches = 0
        self.nulls = [Stream(self, device, null=True) for device in range(count)]
        self.blocks: weakref.WeakValueDictionary[int, Block] = weakref.WeakValueDictionary()  # by address

    # ---- where the calling thread is

    @property
    def device(self) -> int:
        return int(getattr(self.local, "device", 0))

    @device.setter
    def device(self, number: int) -> None:
        self.local.device = number

    def stacks(self) -> list[list[Stream]]:
        """The streams that `with` has made current, of each device."""
        found = getattr(self.local, "stacks", None)
        if found is None:
            found = self.local.stacks = [[null] for null in self.nulls]
        return found

    def current(self, device: int | None = None) -> Stream:
        return self.stacks()[self.device if device is None else device][-1]

    def check(self, device: int) -> None:
        if device in self.broken:
            raise CUDARuntimeError(self.broken[device]) from self.cause

    # ---- queues

    def launch(
        self,
        function: Callable[[], None],
        reads: Iterable[Block],
        writes: Iterable[Block],
        name: str,
        stream: Stream | None = None,
    ) -> None:
        """Queue `function` on a stream: by default the current one."""
        with self.lock:
            stream = self.current() if stream is None else stream
            self.check(stream.device_id)
            if stream.null:
                raise AssertionError(f"{name}: a kernel on the default stream, which waits for nothing and nothing for it")
            self.launches += 1
            stream.learn(self.host)
            stream.clock[stream] = number = stream.clock.get(stream, 0) + 1
            self._touch(stream, number, name, list(reads), list(writes))
            stream.queue.append((None, function))
            if self.random.random() < 0.1:  # sometimes the GPU is faster than the host
                self._some(self.random.randrange(1, 6))

    def _touch(self, stream: Stream, number: int, name: str, reads: list[Block], writes: list[Block]) -> None:
        for block in reads:
            self._after(stream, block.history.written, f"{name} reads", "a write")
            block.history.read[stream] = number
        for block in writes:
            self._after(stream, block.history.written, f"{name} writes", "a write")
            for each in block.history.read.items():
                self._after(stream, each, f"{name} writes", "a read")
            block.history.written, block.history.read = (stream, number), {stream: number}

    def _after(self, stream: Stream, before: tuple[Any, int] | None, what: str, other: str) -> None:
        if before is not None and stream.clock.get(before[0], 0) < before[1]:
            self.races.append(f"{what} on {stream} without an order to {other} on {before[0]}")

    def record(self, stream: Stream) -> Point:
        with self.lock:
            self.check(stream.device_id)
            stream.learn(self.host)
            point = Point(dict(stream.clock))
            stream.queue.append((point, None))
            return point

    def wait_event(self, stream: Stream, point: Point) -> None:
        """What is queued on `stream` from now on comes after `point`."""
        with self.lock:
            self.check(stream.device_id)
            stream.learn(point.clock)
            stream.queue.append((point, "wait"))

    # ---- running; the lock is held

    def _runnable(self) -> list[Stream]:
        return [each for each in self.streams if each.queue and (each.queue[0][1] != "wait" or each.queue[0][0].passed)]

    def _step(self, stream: Stream) -> None:
        point, function = stream.queue.popleft()
        if function is None:
            point.passed = True
        elif function != "wait" and stream.device_id not in self.broken:
            try:
                with np.errstate(all="ignore"):
                    function()
            except Exception as error:
                self.broken[stream.device_id] = f"cudaErrorIllegalAddress: {type(error).__name__}: {error}"
                self.cause = error

    def _some(self, count: int) -> None:
        for _ in range(count):
            choices = self._runnable()
            if not choices:
                return
            self._step(self.random.choice(choices))

    def run_until(self, done: Callable[[], bool], device: int, clock: dict[Any, int] | None = None) -> None:
        """The host waits: run what may run, in any order, until `done`."""
        with self.lock:
            while not done():
                choices = self._runnable()
                assert choices, "the host waits for what can never run: an event is waited for before it is recorded"
                self._step(self.random.choice(choices))
            if clock is not None:
                for each, number in clock.items():
                    self.host[each] = max(self.host.get(each, 0), number)
            self.check(device)

    # ---- memory

    def take(self, nbytes: int, device: int, stream: Stream) -> Block:
        """Memory as CuPy's pool gives it: most recently freed first, if it was allocated on the same stream."""
        size = max(1, -(-nbytes // GRAIN)) * GRAIN
        with self.lock:
            self.check(device)
            self._sort_in()
            idle = self.free.get((device, stream, size))
            if idle:
                bytes_, history = idle.pop()
            else:
                if self.taken[device] + size > self.capacity:
                    self.free_all(device)
                if self.taken[device] + size > self.capacity:
                    raise OutOfMemoryError(
                        f"Out of memory allocating {size} bytes (allocated so far: {self.taken[device]} bytes)."
                    )
                self.taken[device] += size
                bytes_, history = np.full(size, 0xCD, np.uint8), History()
            self.used[device] += size
            block = self.blocks[bytes_.ctypes.data] = Block(bytes_, self, device, stream, history)
        return block

    def _sort_in(self) -> None:
        while self.returned:
            device, arena, bytes_, history = self.returned.popleft()
            self.used[device] -= bytes_.size
            self.free.setdefault((device, arena, bytes_.size), []).append((bytes_, history))

    def free_all(self, device: int) -> None:
        """Give idle memory back to the GPU, which waits for it: cudaFree does."""
        with self.lock:
            self._sort_in()
            for key in [key for key in self.free if key[0] == device]:
                self.taken[device] -= sum(bytes_.size for bytes_, _ in self.free.pop(key))
            self.run_until(lambda: not any(each.queue for each in self.streams if each.device_id == device), device)

    def is_pinned(self, array: np.ndarray) -> bool:
        address = array.ctypes.data
        return any(low <= address < high for low, high in self.pinned)


class Stream:
    """A queue of kernels of one device."""

    def __init__(self, machine: Machine, device: int, null: bool = False) -> None:
        self.machine, self.device_id, self.null = machine, device, null
        self.ptr = 0 if null else next(machine.numbers)
        self.queue: deque[Any] = deque()
        self.clock: dict[Any, int] = {}
        with machine.lock:
            machine.streams.append(self)

    def learn(self, clock: dict[Any, int]) -> None:
        for each, number in clock.items():
            if self.clock.get(each, 0) < number:
                self.clock[each] = number

    def __enter__(self) -> Stream:
        if self.device_id != self.machine.device:
            raise RuntimeError(
                f"The device that the stream is created on ({self.device_id}) does not match with the current device "
                f"({self.machine.device})"
            )
        self.machine.stacks()[self.device_id].append(self)
        return self

    def __exit__(self, *error: object) -> None:
        self.machine.stacks()[self.device_id].pop()

    @property
    def done(self) -> bool:
        self.machine.check(self.device_id)
        return not self.queue

    def record(self, event: Event | None = None) -> Event:
        event = Event(self.machine) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        if event.point is not None:  # one that was never recorded is no reason to wait
            self.machine.wait_event(self, event.point)

    def synchronize(self) -> None:
        with self.machine.lock:
            clock = dict(self.clock)
        self.machine.run_until(lambda: not self.queue, self.device_id, clock)

    def __repr__(self) -> str:
        return f"<stream {self.ptr} of device {self.device_id}>"


class Event:
    """A mark that streams, and the host, can wait for."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.point: Point | None = None
        self.device = machine.device

    def record(self, stream: Stream | None = None) -> None:
        stream = self.machine.current() if stream is None else stream
        self.device = stream.device_id
        self.point = self.machine.record(stream)

    @property
    def done(self) -> bool:
        self.machine.check(self.device)
        with self.machine.lock:
            if self.point is None or not self.point.passed:
                return self.point is None
            self.machine.run_until(lambda: True, self.device, self.point.clock)
            return True

    def synchronize(self) -> None:
        point = self.point
        if point is not None:
            self.machine.run_until(lambda: point.passed, self.device, point.clock)


def blocks(arrays: Iterable[Any]) -> Iterator[Block]:
    """The memory of arrays."""
    for array in arrays:
        yield array.block
