"""Where arrays live: `cpu(i)`, `gpu(i)` and the current context.

A Context is a value (compared and hashed by type and number) that names a device; making one never touches the device.
`cpu(0)`, `cpu(1)`, ... are separate devices with lanes of their own in the same memory, as in MXNet: independent work on
them runs at the same time. `gpu(i)` is a CUDA device through CuPy (cuda.py), or a simulated one made of host memory
(simulated.py). Copies from and to a GPU run in lanes of their own, one for each direction, beside what it computes. Book: chapter 2.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from . import cuda, simulated
from .base import ArgumentError, DeviceError, UnknownNameError, shown
from .cuda import cupy
from .fields import converted
from .simulated import simulate_gpus

__all__ = [
    "Context", "CopyLane", "activate", "array_module", "capacity", "copy_lane", "cpu", "cpu_pinned", "cpu_shared", "crossing", "cupy",
    "current_context", "gpu", "num_gpus", "on_empty_cache", "simulate_gpus",
]  # fmt: skip

#: What `Context.empty_cache` calls: the memory pools, a layer above this one, enter themselves here.
on_empty_cache: list[Callable[[Context], None]] = []


class _ThreadDefault(threading.local):
    def __init__(self) -> None:
        self.value: Context | None = None
        self.outer: list[Context | None] = []  # what the surrounding `with` blocks had set


class _ContextType(type):
    """Makes `Context.default_ctx` a property of the class: the default of the thread that asks."""

    @property
    def default_ctx(cls) -> Context:
        return Context._default_ctx.value or Context._first

    @default_ctx.setter
    def default_ctx(cls, context: Context) -> None:
        if not isinstance(context, Context):
            raise ArgumentError(f"Context.default_ctx must be a Context such as mx.cpu(), got {shown(context)}")
        Context._default_ctx.value = context


class Context(metaclass=_ContextType):
    """A device: its type ("cpu", "gpu", "cpu_pinned", "cpu_shared") and number.

    Used as `with mx.cpu(1):` it is the default device of the calling thread inside the block.
    **Raises** UnknownNameError (a KeyError, as in MXNet) for an unknown type; ArgumentError for a negative number.
    **Source** `mxnet.context.Context`.

    >>> Context("cpu", 1) == cpu(1), str(gpu(0))
    (True, 'gpu(0)')
    """

    __slots__ = ("device_typeid", "device_id", "lane", "host")

    device_typeid: int
    device_id: int
    #: The device whose lane runs work on this context: pinned and shared host memory belong to cpu(0).
    lane: Context
    #: Host memory for certain (a simulated GPU is host memory too, but may stop to be).
    host: bool
    devtype2str: ClassVar[dict[int, str]] = {1: "cpu", 2: "gpu", 3: "cpu_pinned", 5: "cpu_shared"}
    devstr2type: ClassVar[dict[str, int]] = {"cpu": 1, "gpu": 2, "cpu_pinned": 3, "cpu_shared": 5}
    _default_ctx: ClassVar[_ThreadDefault] = _ThreadDefault()
    _first: ClassVar[Context]
    _made: ClassVar[dict[tuple[int, int], Context]] = {}  # equal contexts are one object

    def __new__(cls, device_type: str | Context, device_id: int = 0) -> Context:
        if isinstance(device_type, Context):
            return device_type
        kind = Context.devstr2type.get(device_type) if isinstance(device_type, str) else None
        if kind is None:
            known = ", ".join(Context.devstr2type)
            raise UnknownNameError(f"Context: the device type {shown(device_type)} is unknown; choose one of {known}")
        key = (kind, converted("Context", "device_id", "int", device_id))
        found = cls._made.get(key)
        if found is None:
            if key[1] < 0:
                raise ArgumentError(f"Context: device number {device_id} is negative")
            made = object.__new__(cls)
            lane = made if key[0] in (1, 2) else cls("cpu", 0)
            for name, value in (("device_typeid", key[0]), ("device_id", key[1]), ("host", key[0] != 2), ("lane", lane)):
                object.__setattr__(made, name, value)
            found = cls._made.setdefault(key, made)
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        raise ArgumentError(
            f"Context: {self} is a value and does not change; make another, such as mx.cpu(1), for another {name}"
        )

    @property
    def device_type(self) -> str:
        return Context.devtype2str[self.device_typeid]

    def __repr__(self) -> str:
        return f"{self.device_type}({self.device_id})"

    def __enter__(self) -> Context:
        Context._default_ctx.outer.append(Context._default_ctx.value)
        Context._default_ctx.value = self
        return self

    def __exit__(self, *exc: object) -> None:
        Context._default_ctx.value = Context._default_ctx.outer.pop()

    def __reduce__(self) -> tuple[Any, ...]:
        return Context, (self.device_type, self.device_id)

    def empty_cache(self) -> None:
        """Give the pool's unused memory of this device back to the system."""
        for release in on_empty_cache:
            release(self)


Context._first = Context("cpu", 0)


def cpu(device_id: int = 0) -> Context:
    """The CPU. Each number is a device of its own, with its own lane, in the same memory."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Host memory from which copies to a GPU are fast."""
    return Context("cpu_pinned", device_id)


def cpu_shared(device_id: int = 0) -> Context:
    """Host memory that worker processes share."""
    return Context("cpu_shared", device_id)


def gpu(device_id: int = 0) -> Context:
    """GPU `device_id`. Naming it always works; allocating on it raises DeviceError if it is not there."""
    return Context("gpu", device_id)


def current_context() -> Context:
    """The default device of the calling thread: that of the innermost `with ctx:`, else cpu(0)."""
    return Context._default_ctx.value or Context._first


# ---- what a context is made of


def capacity(context: Context) -> int | None:
    """Bytes that a simulated GPU holds; None where there is no bound of ours."""
    gpu = simulated.gpus.get(context.device_id) if context.device_typeid == 2 else None
    return None if gpu is None else gpu.memory


def num_gpus() -> int:
    """How many GPUs there are: the simulated ones if any, else those that CuPy finds; 0 without CuPy, or without a driver."""
    if simulated.gpus:
        return len(simulated.gpus)
    return cuda.count() if cuda.present() else 0


def array_module(context: Context) -> Any:
    """numpy for devices in host memory, cupy for a CUDA device. Raises DeviceError if the device is absent."""
    if context.device_typeid != 2 or context.device_id in simulated.gpus:
        return np
    if simulated.gpus:
        raise DeviceError(f"{context} is not there: {len(simulated.gpus)} GPUs are simulated; simulate {context.device_id + 1}")
    return cuda.require(context.device_id)


def activate(context: Context) -> Any:
    """A context manager inside which CuPy works on `context`; nothing to do for host memory."""
    return contextlib.nullcontext() if array_module(context) is np else cuda.working(context.device_id)


# ---- copies between devices


class CopyLane(NamedTuple):
    """Where copies to a GPU ("in"), or from it ("out"), queue: beside its lane for computing."""

    context: Context
    direction: str

    @property
    def lane(self) -> CopyLane:
        return self

    def __str__(self) -> str:
        return f"{self.context} {self.direction}"


@functools.cache
def copy_lane(source: Context, target: Context) -> Context | CopyLane:
    """The lane for copies from `source` to `target`: that of the target, where both are host memory."""
    if target.device_typeid == 2:
        return CopyLane(target, "in")
    return CopyLane(source, "out") if source.device_typeid == 2 else target.lane


def crossing(source: Context, target: Context, nbytes: int) -> Any:
    """A scope for the copy of `nbytes` from `source` to `target`: as long as a modelled link takes, where there is one."""
    if (source.host and target.host) or source is target:
        return contextlib.nullcontext()
    links = simulated.route(*(each.device_id if each.device_typeid == 2 else None for each in (source, target)))
    return simulated.travelling(links, nbytes) if links else contextlib.nullcontext()
