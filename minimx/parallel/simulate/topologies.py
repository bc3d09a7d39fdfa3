"""Machines by the way in which their devices are joined: a bus, a ring, all pairs, a switch, nodes in a network.

All are symmetric: each device has the same links as every other. `of_simulated_gpus` is the one that the engine plays, too.
Book: chapter 11.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping

from ... import simulated
from ...base import ArgumentError, shown
from .machine import Device, Link, Machine, Route, Way


def gpus(count: int) -> list[str]:
    """The names of `count` devices: "gpu(0)", "gpu(1)", ..."""
    if not isinstance(count, int) or count < 1:
        raise ArgumentError(f"a machine has 1 device or more, got {shown(count)}")
    return [f"gpu({number})" for number in range(count)]


def bus(count: int, device: Device | None = None, link: Link | None = None, sharing: str = "fair") -> Machine:
    """`count` devices on one bus: everything that travels shares one link, whatever its direction."""
    link = link or Link()
    devices = _devices(count, device)
    way = Way(("bus",), link.latency)
    return Machine(devices, {"bus": link.bandwidth}, lambda source, target: way, sharing, name="bus")


def ring(count: int, device: Device | None = None, link: Link | None = None, sharing: str = "fair") -> Machine:
    """`count` devices in a circle, each with a link to the next and one to the one before; others are reached over these, the short way
    round."""
    link = link or Link()
    devices = _devices(count, device)
    names = list(devices)
    place = {name: number for number, name in enumerate(names)}
    links = {f"{one} > {names[(number + step) % count]}": link.bandwidth for number, one in enumerate(names) for step in (1, -1)}

    def route(source: str, target: str) -> Way | None:
        if source not in place or target not in place:
            return None
        ahead = (place[target] - place[source]) % count
        step, hops = (1, ahead) if ahead <= count - ahead else (-1, count - ahead)
        stops = [names[(place[source] + step * hop) % count] for hop in range(hops + 1)]
        return Way(tuple(f"{one} > {other}" for one, other in itertools.pairwise(stops)), hops * link.latency)

    return Machine(devices, links, route, sharing, name="ring")


def connected(count: int, device: Device | None = None, link: Link | None = None, sharing: str = "fair") -> Machine:
    """`count` devices, of which each two have a link of their own in each direction, as NVLink joins the GPUs of one machine."""
    link = link or Link()
    devices = _devices(count, device)
    links = _Pairs(devices, link.bandwidth)

    def route(source: str, target: str) -> Way | None:
        return Way((f"{source} > {target}",), link.latency) if source in devices and target in devices else None

    return Machine(devices, links, route, sharing, name="all pairs")


def switch(
    count: int, device: Device | None = None, link: Link | None = None, sharing: str = "fair", servers: int = 0
) -> Machine:
    """`count` devices, and `servers` of parameters ("server(0)", ...), on a switch: each has one link to it and one from it."""
    link = link or Link()
    devices = _devices(count, device)
    devices.update({f"server({number})": device or Device() for number in range(servers)})
    return Machine(devices, _ports(devices, link), _over_ports(devices, link), sharing, name="switch")


def cluster(
    nodes: int, gpus_per_node: int, device: Device | None = None, inner: Link | None = None, network: Link | None = None,
    sharing: str = "fair",
) -> Machine:  # fmt: skip
    """`nodes` machines of some GPUs each. The GPUs of a node are on a switch with links `inner`; a node has one link `network` to the
    others and one from them, which its GPUs share. GPU i is in node i // gpus_per_node."""
    inner, network = inner or Link(), network or Link()
    if not isinstance(gpus_per_node, int) or gpus_per_node < 1:
        raise ArgumentError(f"cluster: gpus_per_node is {shown(gpus_per_node)}; at least 1 is wanted")
    devices = _devices(nodes * gpus_per_node, device)
    node = {name: number // gpus_per_node for number, name in enumerate(devices)}
    links = _ports(devices, inner)
    links.update({f"node({number}) {way}": network.bandwidth for number in range(nodes) for way in ("out", "in")})
    inside = _over_ports(devices, inner)

    def route(source: str, target: str) -> Way | None:
        if source not in node or target not in node:
            return None
        if node[source] == node[target]:
            return inside(source, target)
        return Way((f"node({node[source]}) out", f"node({node[target]}) in"), network.latency)

    return Machine(devices, links, route, sharing, name="cluster")


def of_simulated_gpus() -> Machine:
    """The GPUs that `mx.device.simulate_gpus` made, with their links, and host memory, from and to which one copies over them.

    They compute with the cores of this machine: what is recorded on them takes as long as it took. **Raises** ArgumentError if there are
    none.
    """
    found = simulated.gpus
    if not found:
        raise ArgumentError("of_simulated_gpus: no GPUs are simulated; make some with mx.device.simulate_gpus(2, bandwidth=12e9)")
    names = {f"gpu({number})": gpu for number, gpu in found.items()}
    links = {f"{name} in": gpu.inward for name, gpu in names.items()} | {
        f"{name} out": gpu.outward for name, gpu in names.items()
    }

    def route(source: str, target: str) -> Way | None:
        on_way = [links[name] for name in (f"{source} out", f"{target} in") if name in links]
        chosen = tuple(name for name in (f"{source} out", f"{target} in") if name in links and links[name].modelled)
        return Way(chosen, max(link.latency for link in on_way)) if on_way else None

    bandwidths = {name: link.bandwidth or math.inf for name, link in links.items()}
    return Machine({"": Device()}, bandwidths, route, "in turn", helping=True, name="simulated GPUs")


class _Pairs(Mapping[str, float]):
    """The links between all pairs of devices, which are too many to write down."""

    def __init__(self, devices: Mapping[str, Device], bandwidth: float) -> None:
        self.devices, self.bandwidth = devices, bandwidth

    def __getitem__(self, name: str) -> float:
        source, _, target = name.partition(" > ")
        if source in self.devices and target in self.devices and source != target:
            return self.bandwidth
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (f"{source} > {target}" for source in self.devices for target in self.devices if source != target)

    def __len__(self) -> int:
        return len(self.devices) * (len(self.devices) - 1)


def _devices(count: int, device: Device | None) -> dict[str, Device]:
    return dict.fromkeys(gpus(count), device or Device())


def _ports(devices: Mapping[str, Device], link: Link) -> dict[str, float]:
    return {f"{name} {way}": link.bandwidth for name in devices for way in ("out", "in")}


def _over_ports(devices: Mapping[str, Device], link: Link) -> Route:
    def route(source: str, target: str) -> Way | None:
        return Way((f"{source} out", f"{target} in"), link.latency) if source in devices and target in devices else None

    return route


__all__ = ["bus", "cluster", "connected", "gpus", "of_simulated_gpus", "ring", "switch"]
