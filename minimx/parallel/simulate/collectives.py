"""How gradients of many devices become their sum on all of them: each algorithm as tasks, and as a formula.

Every class here knows both. `tasks` puts all transfers and additions of all devices into a graph, which is the definition: what they take
on a machine, simulator.py finds out. `seconds` is what that comes to where all devices have equal links, begin at the same time and do
nothing else with these links; tests compare the two. In the formulas n devices add m bytes, over links with latency a and bandwidth B,
and adding takes c seconds a byte (c = 3 / bandwidth of the memory):

    ring             2 (n - 1) (a + m / (n B)) + (n - 1) m c / n
    tree             2 ceil(log2 n) (a + m / B) + ceil(log2 n) m c
    s servers        2 (a + m max(n, s) / (s B)) + (n - 1) m c / s
    nodes of g GPUs  the ring of g within a node for the first half, a ring of nodes for each m / g, and the second half within the node

R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH" (2005), for costs of this kind;
P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms" (2009), for the ring; M. Li and others, "Scaling distributed machine
learning with the parameter server" (2014). Book: chapter 11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from .graph import TaskGraph, Work
from .machine import Device, Link, Machine

After = tuple[int, ...]  # numbers of tasks that something waits for
NETWORK = "network"  # the device whose lanes stand for links, where one device stands for all

#: What two bits a number make of four bytes: see parallel/compression.py.
COMPRESSIONS = {"2bit": 1 / 16}


@dataclass(frozen=True)
class Costs:
    """What the formulas need: the link between two devices, that of a node to others, and the seconds a byte that adding takes."""

    devices: int
    link: Link
    adding: float = 0.0
    network: Link = field(default_factory=Link)


@dataclass
class Site:
    """Where the tasks of collectives go: a graph, the machine it is for, and the devices that take part.

    `stream`: the lane of a device in which it adds, beside what it computes, or its own lane (""). `ordered`: a device takes part in one
    collective after the other, and in `last` are its last tasks in the one before. `priority`: of all tasks that are entered.
    """

    graph: TaskGraph
    machine: Machine
    devices: list[str]
    servers: list[str] = field(default_factory=list)
    stream: str = "add"
    ordered: bool = True
    priority: int = 0
    last: dict[str, After] = field(default_factory=dict)

    def begins(self, device: int, ready: After) -> After:
        """What the part of a device in a collective waits for: its gradients, and the end of its part in the one before."""
        return ready + self.last.get(self.devices[device], ()) if self.ordered else ready

    def one_memory(self, source: str, target: str) -> bool:
        """Whether one device can read what the other has written: lanes of the CPU."""
        return self.machine.route(source, target) is None and source.startswith("cpu") and target.startswith("cpu")

    def send(self, name: str, source: str, target: str, nbytes: float, after: After) -> int:
        """Bytes from one device to another: over links, or by a copy that the target makes if they have one memory."""
        if self.one_memory(source, target):
            how = {"read": nbytes, "written": nbytes, "priority": self.priority}
            return self.graph.work(f"copy {name}", target, after=after, scales=False, **how)
        return self.graph.transfer(name, source, target, nbytes, after=after, scales=False, priority=self.priority)

    def add(self, name: str, device: str, nbytes: float, after: After, count: int = 1) -> After:
        """A device adds `count` arrays to one that it has. Where that takes no time it is left out."""
        if math.isinf(self.machine.device(device).bandwidth):
            return after
        moved = count * nbytes
        overhead = 0.0 if self.stream else None
        work = Work(f"add {name}", device, read=2 * moved, written=moved, overhead=overhead, stream=self.stream, scales=False)
        return self.enter(work, after)

    def enter(self, work: Work, after: After) -> After:
        """Add a work that comes after others."""
        return (self.graph.add(replace(work, after=tuple(sorted(set(after))), priority=self.priority)),)


@dataclass(frozen=True)
class Ring:
    """All-reduce around a ring: parts of m / n bytes go around twice, first to be added, then to be copied."""

    name: ClassVar[str] = "ring"

    def seconds(self, nbytes: float, costs: Costs) -> float:
        """How long it takes where all begin at the same time."""
        return self.half(nbytes, costs) + self.half(nbytes, replace(costs, adding=0.0))

    @staticmethod
    def half(nbytes: float, costs: Costs) -> float:
        """One time around, with adding."""
        part = nbytes / costs.devices
        return (costs.devices - 1) * (costs.link.seconds(part) + part * costs.adding)

    def tasks(self, site: Site, name: str, nbytes: float, ready: Sequence[After]) -> list[After]:
        """Enter all tasks; for each device those after which it has the sum. `ready`: for each when its own part is there."""
        count = len(site.devices)
        begins = [site.begins(device, each) for device, each in enumerate(ready)]
        have, sent = around(site, name, nbytes / count, list(range(count)), begins, begins, adds=True)
        have, sent_again = around(site, name, nbytes / count, list(range(count)), have, begins, adds=False)
        for device, each in enumerate(site.devices):
            site.last[each] = have[device] + sent[device] + sent_again[device]
        return have


def around(
    site: Site, name: str, part: float, ring: Sequence[int], have: Sequence[After], begins: Sequence[After], adds: bool
) -> tuple[list[After], list[After]]:
    """n - 1 rounds in which each device of `ring` sends a part to the next; what each has then, and what it has sent last.

    `have`: what each waits for before it sends its first part; `begins`: before it can take one in.
    """
    count = len(ring)
    holds: list[After] = list(have)
    sent: list[After] = [()] * count
    for _ in range(count - 1):
        arrived: list[After] = [()] * count
        for position, device in enumerate(ring):
            after = (position + 1) % count
            target = site.devices[ring[after]]
            number = site.send(name, site.devices[device], target, part, holds[position] + begins[after] + sent[position])
            sent[position] = (number,)
            arrived[after] = site.add(name, target, part, (number, *begins[after])) if adds else (number,)
        holds = arrived
    return holds, sent


@dataclass(frozen=True)
class Tree:
    """Devices add in pairs, and pairs of pairs; the sum goes the same way back. With `update` seconds for an update on the way."""

    name: ClassVar[str] = "tree"

    def seconds(self, nbytes: float, costs: Costs) -> float:
        rounds = math.ceil(math.log2(costs.devices)) if costs.devices > 1 else 0
        return rounds * (2 * costs.link.seconds(nbytes) + nbytes * costs.adding)

    def tasks(self, site: Site, name: str, nbytes: float, ready: Sequence[After], update: Work | None = None) -> list[After]:
        have = [site.begins(device, each) for device, each in enumerate(ready)]
        count, distance = len(have), 1
        sent: list[After] = [()] * count
        while distance < count:
            for first in range(0, count - distance, 2 * distance):
                source, target = site.devices[first + distance], site.devices[first]
                meets = have[first] if site.ordered else ()  # else it arrives while the other still adds
                there = have[first + distance] + meets
                if not site.one_memory(source, target):
                    there = (site.send(name, source, target, nbytes, there),)
                sent[first + distance] = there
                have[first] = site.add(name, target, nbytes, there + have[first])
            distance *= 2
        if update is not None:
            have[0] = site.enter(replace(update, device=site.devices[0], stream=site.stream), have[0])
        reached = 1
        while reached < count:
            for one in range(min(reached, count - reached)):
                other = reached + one
                after = have[one] + (have[other] + sent[one] + sent[other] if site.ordered else ready[other])
                number = site.send(name, site.devices[one], site.devices[other], nbytes, after)
                sent[one], have[other] = (number,), (number,)
            reached *= 2
        for device, each in enumerate(site.devices):
            site.last[each] = have[device] + sent[device]
        return have


@dataclass(frozen=True)
class Servers:
    """Servers of parameters: each device sends a part of m / s bytes to each of them; they add, update and send the new weights back.

    `compression`: the part of a gradient's bytes that is sent to a server; weights come back whole.
    """

    servers: int = 1
    compression: float = 1.0
    name: ClassVar[str] = "parameter_server"

    def seconds(self, nbytes: float, costs: Costs) -> float:
        there, back = (self.way(nbytes * ratio, costs) for ratio in (self.compression, 1.0))
        return there + back + self.adding(nbytes, costs)

    def way(self, nbytes: float, costs: Costs) -> float:
        """From all devices to all servers, or back: all parts share the links fairly."""
        part = nbytes / self.servers
        return costs.link.seconds(part * max(costs.devices, self.servers))

    def adding(self, nbytes: float, costs: Costs) -> float:
        """On a server."""
        return (costs.devices - 1) * nbytes / self.servers * costs.adding

    def tasks(self, site: Site, name: str, nbytes: float, ready: Sequence[After], update: Work | None = None) -> list[After]:
        part = nbytes / self.servers
        pulled: list[After] = [()] * len(site.devices)
        for server in site.servers:
            arrived = []
            for device, source in enumerate(site.devices):
                after = ready[device] + site.last.get(f"{source} to {server}", ())
                arrived.append(site.send(name, source, server, part * self.compression, after))
                site.last[f"{source} to {server}"] = (arrived[-1],)
            summed = self._served(site, name, server, part, tuple(arrived), update)
            for device, target in enumerate(site.devices):
                after = summed + site.last.get(f"{server} to {target}", ())
                number = site.send(name, server, target, part, after)
                site.last[f"{server} to {target}"] = (number,)
                pulled[device] += (number,)
        return pulled

    def _served(self, site: Site, name: str, server: str, part: float, after: After, update: Work | None) -> After:
        """A server adds what has arrived, and updates its part of the parameters: one work, so that no other comes in between."""
        count = len(site.devices) - 1
        if update is None:
            return site.add(name, server, part, after, count)
        device, share = site.machine.device(server), part_of(update, 1 / self.servers)
        seconds = count * part * device.adding + device.seconds(share)
        return site.enter(replace(share, device=server, stream=site.stream, seconds=seconds * device.speed), after)


@dataclass(frozen=True)
class Hierarchical:
    """Rings within nodes, and between nodes: GPU q of each node gets part q of the node's sum, adds it to those of the other nodes around
    a ring, and hands the result to its neighbours. The GPUs of a node share its link."""

    per_node: int
    name: ClassVar[str] = "hierarchical"

    def seconds(self, nbytes: float, costs: Costs) -> float:
        nodes, part = costs.devices // self.per_node, nbytes / self.per_node
        inside = replace(costs, devices=self.per_node)
        shared = Link(costs.network.bandwidth / self.per_node, costs.network.latency)
        between = Ring().seconds(part, replace(costs, devices=nodes, link=shared))
        return Ring.half(nbytes, inside) + between + Ring.half(nbytes, replace(inside, adding=0.0))

    def tasks(self, site: Site, name: str, nbytes: float, ready: Sequence[After]) -> list[After]:
        count, group = len(site.devices), self.per_node
        nodes = [list(range(low, low + group)) for low in range(0, count, group)]
        rings = [list(range(rank, count, group)) for rank in range(group)]
        begins = [site.begins(device, each) for device, each in enumerate(ready)]
        have: list[After] = list(begins)
        sent: list[After] = [()] * count
        inside, between = nbytes / group, nbytes / count  # bytes that are sent at a time
        for circles, part, adds in (
            (nodes, inside, True),
            (rings, between, True),
            (rings, between, False),
            (nodes, inside, False),
        ):
            for circle in circles if len(circles[0]) > 1 else ():
                first, ready_there = [have[each] + sent[each] for each in circle], [begins[each] for each in circle]
                its_have, its_sent = around(site, name, part, circle, first, ready_there, adds)
                for position, device in enumerate(circle):
                    have[device], sent[device] = its_have[position], its_sent[position]
        for device, each in enumerate(site.devices):
            site.last[each] = have[device] + sent[device]
        return have


@dataclass(frozen=True)
class Gather:
    """Compressed gradients go around a ring once, and every device adds all of them: bits cannot be added on the way."""

    compression: float
    name: ClassVar[str] = "ring"

    def seconds(self, nbytes: float, costs: Costs) -> float:
        if costs.devices < 2:
            return 0.0
        travel, adding = costs.link.seconds(nbytes * self.compression), nbytes * costs.adding
        return travel + adding + (costs.devices - 2) * max(travel, adding)  # one is added while the next is under way

    def tasks(self, site: Site, name: str, nbytes: float, ready: Sequence[After]) -> list[After]:
        count = len(site.devices)
        begins = [site.begins(device, each) for device, each in enumerate(ready)]
        have: list[After] = list(begins)
        summed: list[After] = list(begins)
        sent: list[After] = [()] * count
        for _ in range(count - 1):
            arrived: list[After] = [()] * count
            for device, source in enumerate(site.devices):
                after = (device + 1) % count
                waits = have[device] + begins[after] + sent[device]
                number = site.send(name, source, site.devices[after], nbytes * self.compression, waits)
                sent[device] = arrived[after] = (number,)
                summed[after] = site.add(name, site.devices[after], nbytes, (number, *summed[after]))
            have = arrived
        for device, each in enumerate(site.devices):
            site.last[each] = have[device] + sent[device] + summed[device]
        return [summed[device] + have[device] for device in range(count)]


Algorithm = Ring | Tree | Servers | Hierarchical | Gather


def part_of(work: Work, part: float) -> Work:
    """A part of the numbers of an update."""
    seconds = None if work.seconds is None else work.seconds * part
    return replace(work, seconds=seconds, flops=work.flops * part, read=work.read * part, written=work.written * part)


def costs_on(machine: Machine, devices: Sequence[str], per_node: int = 1) -> Costs:
    """The figures of a machine whose devices are all alike, for the formulas."""
    device: Device = machine.device(devices[0])
    link = machine.link(devices[0], devices[1]) if len(devices) > 1 else Link()
    network = machine.link(devices[0], devices[per_node]) if len(devices) > per_node else Link()
    return Costs(len(devices), link, device.adding, network)


__all__ = [
    "COMPRESSIONS", "NETWORK", "After", "Algorithm", "Costs", "Gather", "Hierarchical", "Ring", "Servers", "Site", "Tree", "costs_on",
    "part_of",
]  # fmt: skip
