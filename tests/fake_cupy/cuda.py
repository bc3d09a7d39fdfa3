"""The names of `cupy.cuda`: devices, streams, events, memory."""

from __future__ import annotations

import contextlib
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from .arrays import here
from .machine import CUDARuntimeError, Event, Machine, OutOfMemoryError, Stream


class Device:
    """A GPU. `with` makes it the current one of the thread."""

    def __init__(self, device: int | None = None) -> None:
        self.id = here.machine.device if device is None else int(device)
        if not 0 <= self.id < here.machine.count:
            raise CUDARuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        self.before: list[int] = []

    def __enter__(self) -> Device:
        self.before.append(here.machine.device)
        here.machine.device = self.id
        return self

    def __exit__(self, *error: object) -> None:
        here.machine.device = self.before.pop()

    def use(self) -> None:
        here.machine.device = self.id

    def synchronize(self) -> None:
        for stream in here.machine.streams:
            if stream.device_id == self.id:
                stream.synchronize()

    compute_capability = "90"


def make_stream(null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: Any = None) -> Stream:
    assert non_blocking, "a stream that waits for the default one"
    return Stream(here.machine, here.machine.device)


def make_event(block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> Event:
    assert disable_timing, "an event that takes the time costs more"
    return Event(here.machine)


def alloc_pinned_memory(size: int) -> Any:
    """Pinned memory of the host, which the GPU reads and writes by itself: a buffer."""
    memory = np.zeros(size, np.uint8)
    place = (memory.ctypes.data, memory.ctypes.data + size)
    here.machine.pinned.append(place)
    weakref.finalize(memory, here.machine.pinned.remove, place)
    return memory


class Runtime:
    """Functions of the CUDA runtime."""

    CUDARuntimeError = CUDARuntimeError

    @staticmethod
    def getDeviceCount() -> int:
        return here.machine.count

    @staticmethod
    def getDevice() -> int:
        return here.machine.device

    @staticmethod
    def memGetInfo() -> tuple[int, int]:
        return here.machine.capacity - here.machine.taken[here.machine.device], here.machine.capacity


class Pool:
    """The pool of the current device."""

    @staticmethod
    def malloc(size: int) -> Any:
        return here.machine.take(size, here.machine.device, here.machine.current())

    @staticmethod
    def free_all_blocks(stream: Any = None) -> None:
        here.machine.free_all(here.machine.device)


@contextlib.contextmanager
def using_allocator(allocator: Callable[[int], Any] | None = None) -> Iterator[None]:
    before = getattr(here.machine.local, "allocator", None)
    here.machine.local.allocator = allocator
    try:
        yield
    finally:
        here.machine.local.allocator = before


class Communicator:
    """One GPU's part in sums over several, by NCCL. A sum begins when the streams of all have come to it."""

    calls: ClassVar[list[tuple[int, int, int, Any]]] = []  # since `groupStart`

    def __init__(self, device: int) -> None:
        self.device = device

    @staticmethod
    def initAll(devices: list[int]) -> list[Communicator]:
        return [Communicator(device) for device in devices]

    def allReduce(self, send: int, receive: int, size: int, kind: str, op: str, stream: int) -> None:
        assert send == receive
        assert op == "sum"
        assert here.machine.device == self.device
        Communicator.calls.append((send, size, stream, kind))

    @staticmethod
    def group_start() -> None:
        Communicator.calls.clear()

    @staticmethod
    def group_end() -> None:
        machine = here.machine
        streams = [next(each for each in machine.streams if each.ptr == number) for _, _, number, _ in Communicator.calls]
        blocks = [machine.blocks[address] for address, _, _, _ in Communicator.calls]
        views = [block.bytes.view(call[3])[: call[1]] for block, call in zip(blocks, Communicator.calls)]
        for point in [machine.record(stream) for stream in streams]:
            for stream in streams:
                machine.wait_event(stream, point)

        def add() -> None:
            total = sum(view.copy() for view in views)
            for view in views:
                view[...] = total

        machine.launch(add, blocks, blocks, "all-reduce", streams[0])
        done = machine.record(streams[0])
        for stream in streams[1:]:
            machine.wait_event(stream, done)


nccl = types.SimpleNamespace(
    NcclCommunicator=Communicator, groupStart=Communicator.group_start, groupEnd=Communicator.group_end, NCCL_SUM="sum",
    NCCL_FLOAT16="float16", NCCL_FLOAT32="float32", NCCL_FLOAT64="float64", NCCL_INT32="int32", NCCL_INT64="int64", NCCL_INT8="int8",
    NCCL_UINT8="uint8",
)  # fmt: skip

cuda = types.SimpleNamespace(
    Device=Device, Stream=make_stream, Event=make_event, runtime=Runtime, using_allocator=using_allocator,
    memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError), get_current_stream=lambda device_id=-1: here.machine.current(
        None if device_id < 0 else device_id
    ), alloc_pinned_memory=alloc_pinned_memory, nccl=nccl,
)  # fmt: skip


def start(count: int, seed: int, capacity: int) -> Machine:
    """Begin with new GPUs, on which nothing has happened."""
    here.machine = Machine(count, seed, capacity)
    return here.machine
