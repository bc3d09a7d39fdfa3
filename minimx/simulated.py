"""GPUs made of host memory, so that a page written for several GPUs runs on a laptop that has none.

A simulated GPU computes with NumPy, in a lane of its own, as fast as a core does. What is modelled is the rest of it: how much memory
it has (storage.py refuses more), and the link between it and everything else, over which a copy takes `latency + bytes / bandwidth`
seconds in either direction. A copy is made at once, and its thread then sleeps until the link would have delivered it, so that copies
overlap with computing as they do on a real machine. Book: chapter 7.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from .base import ArgumentError, env_int
from .fields import converted

MOST = 1024  # GPUs that can be simulated
VARIABLE = "MINIMX_SIMULATED_GPUS"


class Link:
    """One direction of the way between a GPU and the rest of the machine. Transfers follow one another."""

    __slots__ = ("bandwidth", "latency", "free_at")

    def __init__(self, bandwidth: float | None, latency: float) -> None:
        self.bandwidth = bandwidth  # bytes a second; None: not modelled, only the latency is
        self.latency = latency  # seconds
        self.free_at = 0.0  # when what it carries now has arrived, on the clock of `time.perf_counter`

    @property
    def modelled(self) -> bool:
        return self.bandwidth is not None or self.latency > 0


class GPU:
    """A simulated GPU: its memory in bytes (None without bound) and its link, in both directions."""

    __slots__ = ("memory", "inward", "outward")

    def __init__(self, memory: int | None = None, bandwidth: float | None = None, latency: float = 0.0) -> None:
        self.memory = memory
        self.inward = Link(bandwidth, latency)
        self.outward = Link(bandwidth, latency)


#: The simulated GPUs by number.
gpus: dict[int, GPU] = {number: GPU() for number in range(env_int(VARIABLE, 0, maximum=MOST))}
#: Called before these GPUs are others: the engine finishes what is queued for them.
finish: list[Callable[[], None]] = []
_lock = threading.Lock()  # guards `free_at` of all links


def _become(new: dict[int, GPU]) -> None:
    if gpus:
        for function in finish:
            function()
    gpus.clear()
    gpus.update(new)


@contextlib.contextmanager
def _restored(before: dict[int, GPU]) -> Iterator[None]:
    try:
        yield
    finally:
        _become(before)


def simulate_gpus(count: int, memory: int | None = None, bandwidth: float | None = None, latency: float = 0.0) -> Any:
    """Make gpu(0) .. gpu(count - 1) of host memory, each with a lane for computing and one for copies in each direction.

    **Args** `memory`: capacity of each in bytes; allocating beyond it raises OutOfMemoryError. None: no bound. `bandwidth`: of the link of
    each, bytes a second in each direction (PCIe 3.0 with 16 lanes: 12e9; NVLink: 150e9), None: copies take the time they take here.
    `latency`: seconds that a copy takes besides (PCIe: 1e-5). A copy between two GPUs occupies the links of both.
    **Returns** a context manager that restores what was before when it is left; using it so is optional. Work that is queued for GPUs that
    were simulated so far is finished first. **Raises** ArgumentError.
    The environment variable MINIMX_SIMULATED_GPUS=count, or `python -m minimx run --simulate-gpus count SCRIPT`, does the same from the
    start.

    >>> with simulate_gpus(2, memory=2**30, bandwidth=12e9, latency=1e-5):
    ...     mx.num_gpus(), mx.nd.ones((2,), ctx=mx.gpu(1)).context
    (2, gpu(1))
    """
    count = converted("simulate_gpus", "count", "int", count)
    memory = converted("simulate_gpus", "memory", "int | None", memory)
    bandwidth = converted("simulate_gpus", "bandwidth", "float | None", bandwidth)
    latency = converted("simulate_gpus", "latency", "float", latency)
    if not 0 <= count <= MOST or (memory or 0) < 0:
        raise ArgumentError(f"simulate_gpus: count is {count}, memory {memory}; count must be 0 to {MOST}, memory not negative")
    if (bandwidth is not None and not bandwidth > 0) or not 0 <= latency < float("inf"):
        raise ArgumentError(
            f"simulate_gpus: bandwidth is {bandwidth}, latency {latency}; a link has some bytes a second, and takes 0 or more seconds"
        )
    before = dict(gpus)
    _become({number: GPU(memory, bandwidth, latency) for number in range(count)})
    return _restored(before)


def route(source: int | None, target: int | None) -> tuple[Link, ...]:
    """The modelled links on the way from GPU `source` to GPU `target` (None: host memory)."""
    ends = (gpus[source].outward if source in gpus else None, gpus[target].inward if target in gpus else None)
    return tuple(link for link in ends if link is not None and link.modelled)


@contextlib.contextmanager
def travelling(links: tuple[Link, ...], nbytes: int) -> Iterator[None]:
    """A scope for the copy of `nbytes` over `links`, which is left when they would have arrived."""
    with _lock:
        slowest = min((link.bandwidth for link in links if link.bandwidth is not None), default=float("inf"))
        begin = max(time.perf_counter(), *(link.free_at for link in links))
        arrival = begin + max(link.latency for link in links) + nbytes / slowest
        for link in links:
            link.free_at = arrival
    try:
        yield
    finally:
        while (left := arrival - time.perf_counter()) > 0:
            time.sleep(left)
