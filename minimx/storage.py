"""Memory for arrays: a pool for each device.

The system hands out large memory page by page, at the first touch of each, which costs more than computing on it. So memory of an
array that nobody sees any more goes to the device's pool, and the next array of its size class takes it over, pages and all.

Memory is returned by reference count: a Block owns the bytes, every NumPy view of them keeps the Block alive through its `base`,
and when the last view has gone the Block puts the bytes into the pool. So a view that NumPy, DLPack or a kernel still holds can never be
handed out twice. Arrays below `SMALL` bytes are left to NumPy, whose allocator is faster than any pool; they are not counted.

Size classes (MXNET_GPU_MEM_POOL_TYPE or MINIMX_MEM_POOL_TYPE): `Round` rounds up to a power of two or, beyond
`ROUND_LINEAR`, to a multiple of it; `Naive` rounds up to whole pages; `Unpooled` keeps nothing. Book: chapter 2.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from . import cuda, device
from .base import ArgumentError, OutOfMemoryError, env_choice, env_int, shown
from .device import Context
from .op import Spec, pooling

__all__ = ["Block", "Pool", "gpu_memory_info", "pool", "reset_peak", "set_pool_type", "stats"]

SMALL = 1 << 15  # bytes; below, NumPy's own allocator serves
PAGE = 1 << 12
PINNED = 3  # the type of `cpu_pinned`: memory that a GPU, if there is one, reads and writes by itself
ROUND_LINEAR = 1 << 25  # bytes; beyond, classes are multiples of this, so that at most 32 MiB are wasted

#: Who is told how many bytes more (or less) a device has in use: the profiler enters itself here. It may be called at any point of any
#: thread, like `Block.__del__`: it appends to a list, and does no more.
watcher: Callable[[Context, int], None] | None = None
POOL_TYPES = ("Naive", "Round", "Unpooled")


def address(array: np.ndarray[Any, Any]) -> int:
    """Where the elements of a NumPy array begin. By way of a ctypes object, in a third of the time that `array.ctypes` takes."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]  # it is a buffer
    except (TypeError, ValueError):  # it is read-only, has gaps, or is empty
        return int(array.__array_interface__["data"][0])


class Block:
    """Bytes of the system's memory that one array and its views use; when the last view dies the pool gets them back.

    Memory that a kernel took from the system itself goes back there: the next such kernel would not ask the pool either.
    """

    __slots__ = ("memory", "owner", "address", "adopted")

    def __init__(self, memory: Any, owner: Pool, adopted: bool = False) -> None:
        self.memory = memory  # a flat uint8 array
        self.owner = owner
        self.address = address(memory)
        self.adopted = adopted

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's protocol: an array made from it has this Block as its base."""
        return {"version": 3, "shape": self.memory.shape, "typestr": "|u1", "data": (self.address, False)}

    def __del__(self) -> None:
        # This can run at any point of any thread, even while that thread holds the pool's lock: append only.
        if watcher is not None:
            watcher(self.owner.context, -self.memory.size)
        self.owner.returned.append(self.memory.size if self.adopted else self.memory)


class Pool:
    """The free memory of one device, by size class, and the account of its bytes."""

    def __init__(self, context: Context, kind: str, limit: int) -> None:
        self.context = context
        self.kind = kind
        self.limit = limit  # bytes that may lie idle
        self.live = self.peak = self.pooled = 0
        self.free: OrderedDict[int, list[Any]] = OrderedDict()  # size class -> idle memory; least recently used first
        self.returned: deque[Any] = deque()  # memory of dead Blocks that is not sorted in yet; of adopted ones only its size
        self.lock = threading.RLock()  # a finalizer may allocate while its thread is in the middle of `take`

    def size_class(self, nbytes: int) -> int:
        """The bytes that are really taken for an array of `nbytes`."""
        if self.kind == "Round":
            if nbytes > ROUND_LINEAR:
                return -(-nbytes // ROUND_LINEAR) * ROUND_LINEAR
            return 1 << (nbytes - 1).bit_length()
        return -(-nbytes // PAGE) * PAGE

    def _sort_in(self) -> None:
        """Move the memory of dead Blocks to the free lists. The lock is held."""
        while True:
            try:
                memory = self.returned.popleft()
            except IndexError:
                break
            if isinstance(memory, int):
                self.live -= memory
                continue
            size = memory.size
            self.live -= size
            if self.kind != "Unpooled" and size <= self.limit and self.size_class(size) == size:
                self.free.setdefault(size, []).append(memory)
                self.free.move_to_end(size)
                self.pooled += size
        self._drop_to(self.limit)

    def _drop_to(self, limit: int) -> None:
        """Give idle memory back to the system, least recently used classes first, until `limit` bytes are left."""
        while self.pooled > limit and self.free:
            self._reuse(next(iter(self.free)))

    def _reuse(self, size: int) -> Any:
        """Idle memory of a size class, taken from its list; None if there is none. The lock is held."""
        idle = self.free.get(size)
        if not idle:
            return None
        memory = idle.pop()
        self.pooled -= size
        if not idle:
            self.free.pop(size, None)
        return memory

    def take(self, nbytes: int) -> Block:
        """Memory for `nbytes` bytes. Raises OutOfMemoryError."""
        size = self.size_class(nbytes)
        bound = device.capacity(self.context)
        if bound is not None and not self._fits(size, bound):
            gc.collect()  # an error that was raised holds arrays by its traceback, often in a cycle
        with self.lock:
            self._sort_in()
            if bound is not None and self.live + size > bound:  # even if idle memory is there: the bound may be newer
                raise OutOfMemoryError(
                    f"{self.context} is out of memory: {size} bytes asked, {max(0, bound - self.live)} of {bound} free"
                )
            memory = self._reuse(size)
            if memory is None and bound is not None:
                self._drop_to(max(0, bound - self.live - size))
            self.live += size
            self.peak = max(self.peak, self.live)
        if memory is None:
            memory = self._from_system(size)
        if watcher is not None:
            watcher(self.context, size)
        return Block(memory, self)

    def _fits(self, size: int, bound: int) -> bool:
        """Whether `bound` leaves room for `size` bytes more than are in use."""
        with self.lock:
            self._sort_in()
            return self.live + size <= bound

    def _from_system(self, size: int) -> Any:
        """New memory of `size` bytes, which are in the account already. Raises OutOfMemoryError."""
        try:
            if self.context.device_typeid == PINNED and cuda.present():
                return np.frombuffer(cuda.cupy().cuda.alloc_pinned_memory(size), np.uint8, size)
        except (
            MemoryError,
            RuntimeError,
        ):  # as much as the system pins is pinned already: ordinary memory serves, too, only slower
            gc.collect()
        try:
            return np.empty(size, np.uint8)
        except (MemoryError, ValueError):
            gc.collect()
            for each in list(_pools.values()):
                each.trim(0)  # what lies idle here may be what the system lacks
        try:
            return np.empty(size, np.uint8)
        except (MemoryError, ValueError):
            with self.lock:
                self.live -= size
            raise OutOfMemoryError(f"{self.context} is out of memory: {size} bytes asked") from None

    def trim(self, limit: int = 0) -> None:
        """Give idle memory back to the system until at most `limit` bytes are left."""
        with self.lock:
            self._sort_in()
            self._drop_to(limit)

    def stats(self) -> dict[str, int]:
        with self.lock:
            self._sort_in()
            return {"live": self.live, "peak": self.peak, "pooled": self.pooled}


_pools: dict[Context, Pool] = {}
_kind = env_choice(("MINIMX_MEM_POOL_TYPE", "MXNET_GPU_MEM_POOL_TYPE"), "Round", POOL_TYPES)
_limit = env_int("MINIMX_MEM_POOL_LIMIT", 2 << 30)


def pool(context: Context) -> Pool:
    """The pool of a device."""
    if not isinstance(context, Context):
        raise ArgumentError(f"storage: a Context such as mx.cpu() is wanted, got {shown(context)}")
    found = _pools.get(context)
    return found if found is not None else _pools.setdefault(context, Pool(context, _kind, _limit))


def set_pool_type(kind: str) -> str:
    """Choose the size classes of all pools from now on: "Round", "Naive" or "Unpooled". Returns the previous choice."""
    global _kind
    if not isinstance(kind, str) or kind not in POOL_TYPES:
        raise ArgumentError(f"pool type {shown(kind)}: choose one of {', '.join(POOL_TYPES)}")
    before, _kind = _kind, kind
    for each in _pools.values():
        each.kind = kind
        each.trim(0)
    return before


def empty(spec: Spec, context: Context) -> Any:
    """An uninitialized array of `spec` on `context`. Raises OutOfMemoryError, DeviceError."""
    module = device.array_module(context)
    if module is not np:
        with device.activate(context):
            return module.empty(spec.shape, spec.dtype)  # CuPy has a pool of its own
    if spec.nbytes < SMALL:
        return np.empty(spec.shape, spec.dtype)
    block = pool(context).take(spec.nbytes)
    return np.ndarray(spec.shape, spec.dtype, np.asarray(block))


def beside(array: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """An uninitialized array in the pool that has the memory of `array`; NumPy's own memory if none has, or if it is small."""
    if math.prod(shape) * np.dtype(dtype).itemsize < SMALL:
        return np.empty(shape, dtype)
    owner = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return empty(Spec.of(shape, dtype), owner.owner.context) if isinstance(owner, Block) else np.empty(shape, dtype)


def is_pinned(array: Any) -> bool:
    """Whether `array` lies in the pool of pinned memory."""
    owner = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return isinstance(owner, Block) and owner.owner.context.device_typeid == PINNED


pooling.append(beside)  # for kernels that need more memory than their result's


def adopt(array: Any, context: Context) -> Any:
    """`array`, whose memory NumPy took from the system itself, entered into the account of `context` until it dies.

    On a device with a bound, and into pinned memory, it is moved into the pool's memory. Raises OutOfMemoryError.
    """
    if array.nbytes < SMALL or type(array) is not np.ndarray or not array.flags.owndata:
        return array
    owner = pool(context)
    if device.capacity(context) is not None or (context.device_typeid == PINNED and cuda.present()):
        moved = empty(Spec.of(array.shape, array.dtype), context)
        moved[...] = array
        return moved
    with owner.lock:
        owner.live += array.nbytes
        owner.peak = max(owner.peak, owner.live)
    if watcher is not None:
        watcher(context, array.nbytes)
    block = Block(array.reshape(-1).view(np.uint8), owner, adopted=True)
    return np.asarray(block).view(array.dtype).reshape(array.shape)


def contexts() -> list[Context]:
    """The devices that have, or had, arrays in a pool."""
    return list(_pools)


def stats(context: Context | None = None) -> dict[str, int]:
    """Bytes on a device (default: all together): `live` in use, `peak` the most that was, `pooled` idle in the pool.

    Counts arrays of at least `SMALL` bytes, by what was really taken for them (their size class).
    """
    chosen = [pool(context)] if context is not None else list(_pools.values())
    each = [one.stats() for one in chosen]
    return {key: sum(one[key] for one in each) for key in ("live", "peak", "pooled")}


def reset_peak(context: Context | None = None) -> None:
    """Begin to measure `peak` anew from what is in use now."""
    for one in [pool(context)] if context is not None else list(_pools.values()):
        one.trim(one.limit)
        one.peak = one.live


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Free and total bytes of GPU `device_id`. Raises DeviceError if it is not there."""
    context = device.gpu(device_id)
    module = device.array_module(context)
    if module is np:
        total = device.capacity(context) or 1 << 62
        return total - stats(context)["live"], total
    with device.activate(context):
        free, total = module.cuda.runtime.memGetInfo()
    return int(free), int(total)


def _after_fork_in_child() -> None:
    for each in _pools.values():
        each.lock = threading.RLock()  # a thread that did not come along may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

device.on_empty_cache.append(lambda context: pool(context).trim(0))
