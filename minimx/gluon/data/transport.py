"""How a batch gets from a worker process to its parent: its arrays through shared memory, the rest through a pipe.

A worker has an *outbox*: a file without a name, in memory only, which both processes map. What it holds cannot be left behind: when the
last of the two has ended, however that came about, the system frees it. The worker lays the arrays of each batch into a gap between those
that the parent has not read yet, and makes the file longer when there is none. Through the pipe goes a pickle that says where they are
(protocol 5: buffers out of band). The parent copies them out when it reads it, into memory of the pool, and tells the worker with
its next task how many answers it has read. So an array is written once and copied once, and no lock or semaphore is needed.

Where files without a name cannot be handed to another process (Windows), everything goes through the pipe.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import tempfile
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from ... import storage
from ...base import OutOfMemoryError
from ...device import cpu
from ...engine.front import value_of
from ...nd import NDArray
from ...nd.entry import from_array
from ...op import Spec

SMALL = 1 << 12  # bytes; below, an array goes through the pipe with the rest
LINE = 64  # bytes: where arrays begin


class MemoryFile:
    """A file without a name. A process that is being started gets it by inheritance, or in the pickle that it is started with."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __reduce__(self) -> tuple[Any, ...]:
        from multiprocessing.reduction import DupFd

        return _handed_over, (DupFd(self.descriptor),)

    def twin(self) -> MemoryFile:
        """The same file, to be closed apart."""
        return MemoryFile(os.dup(self.descriptor))

    def close(self) -> None:
        descriptor, self.descriptor = self.descriptor, -1  # first, for the reason that pipe.py gives
        if descriptor >= 0:
            os.close(descriptor)


def _handed_over(duplicate: Any) -> MemoryFile:
    return MemoryFile(duplicate.detach())


class Parcel(NamedTuple):
    """What goes through the pipe: a pickle, or where it is, and where the buffers are that it refers to."""

    pickled: bytes | tuple[int, int]
    buffers: list[tuple[int, int]]  # begin and length in the outbox


# ---- the memory


def memory_file() -> MemoryFile | None:
    """A new file without a name; None where it could not be handed to another process."""
    if os.name != "posix":
        return None
    if hasattr(os, "memfd_create"):
        try:
            return MemoryFile(os.memfd_create("minimx-batches"))
        except OSError:  # a kernel, or a sandbox, that has none
            pass
    with tempfile.TemporaryFile() as file:
        return MemoryFile(os.dup(file.fileno()))


class Outbox:
    """The worker's side: where arrays are laid out for the parent."""

    def __init__(self, file: MemoryFile | None) -> None:
        self.file = file
        self.size = 0
        self.memory: mmap.mmap | None = None
        #: Begin and end of each answer that the parent may not have read; oldest first.
        self.unread: deque[tuple[int, int]] = deque()
        self.read = 0  # answers that it has read

    def forget(self, read: int) -> None:
        """The parent has read so many answers in all: their places are free."""
        while self.read < read:
            self.unread.popleft()
            self.read += 1

    def pack(self, batch: Any) -> Parcel:
        """Lay a batch out. Raises what pickling raises for values that cannot be sent, OutOfMemoryError."""
        if self.file is None:
            whole = Parcel(_pickled(batch, None), [])
            self.nothing()
            return whole
        outside: list[pickle.PickleBuffer] = []
        pickled = _pickled(batch, outside)
        views = [buffer.raw() for buffer in outside]
        if len(pickled) > SMALL:  # the pipe must take all answers that are under way
            views.append(memoryview(pickled))
        lengths = [view.nbytes for view in views]
        begins = self._room(lengths)
        for view, begin, length in zip(views, begins, lengths):
            assert self.memory is not None
            self.memory[begin : begin + length] = view
        places = list(zip(begins, lengths))
        self.unread.append((begins[0], begins[-1] + _whole_lines(lengths[-1])) if places else (0, 0))
        return Parcel(places.pop(), places) if len(pickled) > SMALL else Parcel(pickled, places)

    def nothing(self) -> None:
        """Account for an answer that has no arrays."""
        self.unread.append((0, 0))

    def _room(self, lengths: list[int]) -> list[int]:
        """Where buffers of `lengths` may begin; they are one answer."""
        begins, total = [], 0
        for length in lengths:
            begins.append(total)
            total += _whole_lines(length)
        ends = [0, *(end for _, end in self.unread)]  # behind the last of them there always is room
        begin = min(each for each in ends if all(each + total <= low or high <= each for low, high in self.unread))
        if begin + total > self.size:
            self._grow(begin + total)
        return [begin + each for each in begins]

    def _grow(self, size: int) -> None:
        """Make the file at least `size` bytes long."""
        assert self.file is not None
        descriptor = self.file.descriptor
        size = -(-max(size, self.size * 5 // 4) // mmap.PAGESIZE) * mmap.PAGESIZE
        try:
            if hasattr(os, "posix_fallocate"):  # memory that is promised but not there would kill the process that writes to it
                os.posix_fallocate(descriptor, 0, size)
            else:
                os.ftruncate(descriptor, size)
            self.memory = mmap.mmap(descriptor, size)
        except OSError as error:
            raise OutOfMemoryError(
                f"DataLoader: no shared memory for a batch, {size} bytes in all ({error}); use smaller batches, fewer workers, or a "
                "smaller `prefetch`"
            ) from error
        self.size = size


def _whole_lines(length: int) -> int:
    return -(-length // LINE) * LINE


class Inbox:
    """The parent's side of a worker's outbox."""

    def __init__(self, file: MemoryFile | None) -> None:
        self.file = file
        self.size = 0
        self.memory: Any = None  # a flat array

    def unpack(self, parcel: Parcel) -> Any:
        """The batch that the worker laid out, in memory of its own."""
        buffers = [self._copied(*place) for place in parcel.buffers]
        pickled = parcel.pickled if isinstance(parcel.pickled, bytes) else self._copied(*parcel.pickled)
        return pickle.loads(pickled, buffers=buffers)

    def _copied(self, begin: int, length: int) -> Any:
        """A copy of bytes in the outbox."""
        if begin + length > self.size:
            assert self.file is not None
            self.size = os.fstat(self.file.descriptor).st_size
            self.memory = np.frombuffer(mmap.mmap(self.file.descriptor, self.size, access=mmap.ACCESS_READ), np.uint8)
        copy = storage.empty(Spec.of((length,), np.dtype(np.uint8)), cpu())
        copy[:] = self.memory[begin : begin + length]
        return copy

    def close(self) -> None:
        self.memory = None
        if self.file is not None:
            self.file.close()


# ---- the pickle


class _Pickler(pickle.Pickler):
    """Pickles NDArrays as their memory."""

    def reducer_override(self, value: Any) -> Any:
        if type(value) is not NDArray:
            return NotImplemented
        array = np.ascontiguousarray(value_of(value))  # waits; raises what made it fail
        memory: Any = array.reshape(-1).view(np.uint8)
        return _rebuilt, (pickle.PickleBuffer(memory), array.dtype, value.shape)


def _pickled(batch: Any, outside: list[pickle.PickleBuffer] | None) -> bytes:
    """`batch` pickled. Large buffers are left out, and put into the list `outside`."""
    stream = io.BytesIO()
    if outside is None:
        _Pickler(stream, 5).dump(batch)
        return stream.getvalue()

    def keep(buffer: pickle.PickleBuffer) -> bool:
        """Whether it stays inside. (A buffer that is not contiguous never comes here.)"""
        if buffer.raw().nbytes < SMALL:
            return True
        outside.append(buffer)
        return False

    _Pickler(stream, 5, buffer_callback=keep).dump(batch)
    return stream.getvalue()


def _rebuilt(memory: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray:
    """An NDArray of memory that nobody else has, on cpu(0), on whatever device the worker made it."""
    flat = memory if isinstance(memory, np.ndarray) else np.frombuffer(memory, np.uint8)
    array = flat.view(dtype).reshape(shape)
    made: NDArray = from_array(array if array.flags.writeable else array.copy(), cpu())
    return made
