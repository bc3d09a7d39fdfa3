"""A modelled machine: how fast its devices are, which links join them, and who shares what.

A device takes for work the longer of two times, that of its arithmetic and that of its memory, and something for every task that is begun
(the roofline: S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model", 2009). A transfer over a way
takes the latency of the way, and its bytes at the bandwidth of the slowest link, if it has all links for itself; simulator.py says what
happens if not. topologies.py makes machines, hardware.py has figures of real ones. Book: chapter 11.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...base import ArgumentError, UnknownNameError, shown
from ...fields import converted
from .graph import HOST, Task, Work

SHARINGS = ("fair", "in turn")


def positive(who: str, name: str, value: float) -> float:
    """A figure above 0; infinity will do. Raises ArgumentError that names it."""
    number = float(converted(who, name, "float", value))
    if not number > 0:
        raise ArgumentError(f"{who}: {name} is {shown(value)}; a number above 0 is wanted")
    return number


def not_negative(who: str, name: str, value: float) -> float:
    """A figure, 0 or more and finite. Raises ArgumentError that names it."""
    number = float(converted(who, name, "float", value))
    if not 0 <= number < math.inf:
        raise ArgumentError(f"{who}: {name} is {shown(value)}; a number, 0 or more, is wanted")
    return number


def some(names: Mapping[str, object]) -> str:
    """The first few of many names."""
    listed = [name or "any" for name in names]
    return ", ".join(listed[:4]) + (f" and {len(listed) - 4} more" if len(listed) > 4 else "")


@dataclass(frozen=True)
class Device:
    """What computes.

    **Args** `flops`: FLOP a second at most; `efficiency`: the part of it that real kernels reach. `bandwidth`: of its memory, bytes a
    second. `overhead`: seconds between the moment at which a task could begin and its beginning. `speed`: how many times as fast it is as
    the device on which measured seconds were measured. `workers`: tasks of a lane that run at the same time. **Raises** ArgumentError.
    """

    flops: float = math.inf
    bandwidth: float = math.inf
    overhead: float = 0.0
    efficiency: float = 1.0
    speed: float = 1.0
    workers: int = 1

    def __post_init__(self) -> None:
        for name in ("flops", "bandwidth", "efficiency", "speed"):
            positive("Device", name, getattr(self, name))
        not_negative("Device", "overhead", self.overhead)
        if not isinstance(self.workers, int) or self.workers < 1:
            raise ArgumentError(f"Device: workers is {shown(self.workers)}; at least 1 is wanted")

    def seconds(self, work: Work) -> float:
        """How long the work takes without what comes before it: measured, or by the roofline.

        >>> Device(flops=1e12, bandwidth=1e9).seconds(Work("dot", "gpu(0)", flops=2e9, read=8e6))
        0.008
        """
        if work.seconds is not None:
            return work.seconds / self.speed
        return max(work.flops / (self.flops * self.efficiency), (work.read + work.written) / self.bandwidth)

    def begins_after(self, work: Work) -> float:
        """How long it takes to begin the work."""
        return self.overhead if work.overhead is None else work.overhead

    def arithmetic(self, work: Work) -> float:
        """The part of the time of a work in which it does not wait for memory: all but what its bytes would take at the memory's speed, and
        at least what its arithmetic would take at the speed of products.

        >>> Device(flops=1e9, bandwidth=1e9).arithmetic(Work("layer", "cpu(0)", flops=1e6, read=1e6, seconds=0.004))
        0.75
        """
        seconds = self.seconds(work)
        if not seconds:
            return 1.0
        computing = work.flops / (self.flops * self.efficiency) / seconds
        moving = (work.read + work.written) / self.bandwidth / seconds
        return min(1.0, max(computing, 1.0 - moving))

    @property
    def adding(self) -> float:
        """Seconds a byte for adding one array to another: two bytes are read and one is written for each."""
        return 3 / self.bandwidth


@dataclass(frozen=True)
class Link:
    """One direction of a link: `bandwidth` in bytes a second, `latency` in seconds. **Raises** ArgumentError."""

    bandwidth: float = math.inf
    latency: float = 0.0

    def __post_init__(self) -> None:
        positive("Link", "bandwidth", self.bandwidth)
        not_negative("Link", "latency", self.latency)

    def seconds(self, nbytes: float) -> float:
        """How long a transfer takes that has the link for itself."""
        return self.latency + nbytes / self.bandwidth


class Way(NamedTuple):
    """From one device to another: the names of the links, which a transfer occupies all at once, and the latency of the whole."""

    links: tuple[str, ...]
    latency: float


Route = Callable[[str, str], "Way | None"]


@dataclass
class Machine:
    """Devices and links.

    **Args** `devices`: by name; "" stands for all others. `links`: bandwidths, bytes a second, by name. `route`: from the names of two
    devices to the way between them; None where there is none. `sharing`: what transfers do that meet on a link. "fair": all go on at
    the same time, and the link's bandwidth is shared out. "in turn": each lane for copies makes one at a time, and a transfer
    begins when it has all links of its way for itself, as simulated GPUs do it. `contention`: for each number of lanes that work at
    the same time, from 1 on, how many times as long arithmetic takes as alone; beyond the last it grows in proportion. () is: not at all.
    `memory_contention`: the same for what is no arithmetic (`Device.arithmetic`); () is: as arithmetic.
    `helping`: the front end, where it waits, runs tasks of others, as the engine does.
    """

    devices: Mapping[str, Device] = field(default_factory=lambda: {"": Device()})
    links: Mapping[str, float] = field(default_factory=dict)
    route: Route = lambda source, target: None
    sharing: str = "fair"
    contention: Sequence[float] = ()
    memory_contention: Sequence[float] = ()
    helping: bool = False
    name: str = "machine"

    def __post_init__(self) -> None:
        if self.sharing not in SHARINGS:
            raise UnknownNameError(f"Machine: sharing is {shown(self.sharing)}; choose one of {', '.join(map(repr, SHARINGS))}")
        for slow in (*self.contention, *self.memory_contention):
            if not 1 <= slow < math.inf:
                raise ArgumentError(f"Machine: contention holds {shown(slow)}; work that shares takes 1 times as long, or more")

    def device(self, name: str) -> Device:
        """A device. The front end is one without figures if none is given. **Raises** ArgumentError for one that is not there."""
        found = self.devices.get(name) or self.devices.get("")
        if found is None:
            if name.startswith(HOST):
                return Device()
            raise ArgumentError(f"{self.name}: there is no device {name!r}; there are {some(self.devices)}")
        return found

    def way(self, source: str, target: str) -> Way:
        """The way between two devices. **Raises** ArgumentError if there is none."""
        for name in (source, target):
            self.device(name)
        if source == target:
            return Way((), 0.0)
        found = self.route(source, target)
        if found is None:
            raise ArgumentError(f"{self.name}: no link leads from {source} to {target}; simulate.switch(...), for one, joins all")
        return found

    def way_of(self, task: Task) -> Way | None:
        """The way of a transfer; None for work, and for a transfer that takes as long as it took where it was recorded, as no link
        leads there."""
        if isinstance(task, Work):
            return None
        if task.seconds is not None and task.source != task.target and self.route(task.source, task.target) is None:
            return None
        return self.way(task.source, task.target)

    def link(self, source: str, target: str) -> Link:
        """The way between two devices as one link, for a transfer that is alone on it."""
        way = self.way(source, target)
        return Link(min((self.links[name] for name in way.links), default=math.inf), way.latency)

    def seconds(self, task: Task) -> float:
        """How long a task takes that is alone on the machine."""
        if isinstance(task, Work):
            device = self.device(task.device)
            return device.begins_after(task) + device.seconds(task)
        if self.way_of(task) is None:
            return task.seconds or 0.0
        return self.link(task.source, task.target).seconds(task.nbytes)

    def slowdown(self, lanes: int, arithmetic: float = 1.0) -> float:
        """How many times as long work takes while `lanes` lanes work. **Args** `arithmetic`: the part of it that is arithmetic."""
        tables = self.contention, self.memory_contention or self.contention
        slow, slow_memory = (
            1.0 if not table or lanes < 1 else table[min(lanes, len(table)) - 1] * max(1.0, lanes / len(table))
            for table in tables
        )
        return arithmetic * slow + (1 - arithmetic) * slow_memory


__all__ = ["Device", "Link", "Machine", "Route", "Way", "not_negative", "positive"]
