"""Predictions: how long a step takes on n devices, and what that gains.

`data_parallel` predicts one number of devices, `scaling` a curve from one to thousands, `explore` is the short way with a model's name
and the figures of a link. Throughout, `batch` is of all devices together; each gets its part, the largest where it cannot be shared out
evenly. Book: chapter 11.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...base import ArgumentError, UnknownNameError, shown
from ...fields import converted
from ...profiler import Timeline
from ...profiler.layout import in_words
from .collectives import COMPRESSIONS, Algorithm, Gather, Hierarchical, Ring, Servers, Site, Tree, costs_on
from .graph import HOST, TaskGraph
from .hardware import device_called, link_called
from .machine import Device, Link, Machine, not_negative, some
from .models import Model, model
from .replicas import Replicas, Step, figures_of, one_for_all
from .result import Result
from .simulator import replay
from .topologies import cluster, gpus, switch

ALGORITHMS = ("ring", "tree", "parameter_server", "hierarchical")
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
MOST_TASKS = 300_000  # of a graph that is written down for all devices: some seconds and some hundred MB


@dataclass(frozen=True)
class Prediction:
    """What a step of data parallel training takes.

    `step_time`: seconds of a step on `devices` devices with `batch` samples together. `alone`: of the step that one device makes with its
    part of them, and without the others. `single`: of a step on one device with `single_batch` samples, to which the speed-up refers.
    """

    algorithm: str
    devices: int
    batch: int | None
    step_time: float
    alone: float
    single: float
    single_batch: int | None
    result: Result

    @property
    def speed_up(self) -> float:
        """How many times as many samples a second as one device."""
        if not self.step_time:
            return float(self.devices)
        known = self.batch is not None and self.single_batch is not None
        times = self.batch / self.single_batch if known else self.devices  # type: ignore[operator]  # `known` says that both are there
        return times * self.single / self.step_time

    @property
    def efficiency(self) -> float:
        """The speed-up a device, 1 at best."""
        return self.speed_up / self.devices

    @property
    def communication(self) -> float:
        """Seconds of a step in which gradients are added up and nothing else goes on."""
        return max(0.0, self.step_time - self.alone)

    @property
    def samples_per_second(self) -> float | None:
        """Throughput of all devices; None if the graph does not say of how many samples it is."""
        return None if self.batch is None else self.batch / self.step_time if self.step_time else math.inf

    def timeline(self, devices: Iterable[str] | None = None, title: str | None = None, end: float | None = None) -> Timeline:
        """The step as a picture: see `Result.timeline`. Where all devices do the same it is that of one, with the network as a lane."""
        return self.result.timeline(devices, title, end)

    def __str__(self) -> str:
        return (
            f"{self.devices} device{'s' * (self.devices > 1)}, {self.algorithm}: {in_words(self.step_time)} a step, "
            f"{in_words(self.communication)} of it communication alone; {self.speed_up:.3g} times as fast as one"
        )


def data_parallel(
    graph: TaskGraph | Model, devices: int, algorithm: str = "ring", *, batch: int | None = None,
    parameters: Mapping[str, float] | None = None, machine: Machine | None = None, device: str | Device | None = None,
    link: str | Link | None = None, network: str | Link | None = None, per_node: int = 8, servers: int | None = None,
    overlap: bool = True, bucket: float = 25e6, compression: str | None = None, update_on_kvstore: bool | None = None,
    whole: bool | None = None,
) -> Prediction:  # fmt: skip
    """Predict a step of training on `devices` devices.

    **Args** `graph`: of a step on one device, which says what makes the gradients of which parameters; or a Model. `batch`: samples of
    all devices together; None: each device makes the graph's step. `parameters`: bytes of gradients by name, if not those of the graph.
    `algorithm`: how gradients are added, one of "ring", "tree", "parameter_server" (`servers` of them, None: as many as devices) and
    "hierarchical" (nodes of `per_node` devices). `device`, `link`: figures, or names from DEVICES and LINKS; a Model runs on a V100 if
    none is given, a graph as fast as it was recorded; "PCIe 3.0" joins them. `network`: the link of a node ("hierarchical"), "Ethernet
    100G". Or a `machine` with all of these, whose devices are called gpu(0), gpu(1), ... `overlap`: send what is complete while the rest
    is computed. `bucket`: bytes of gradients that travel together at least, 0: each alone. `compression`: "2bit", for servers, and for a
    ring, around which compressed gradients then go once; what compressing takes is left out. `update_on_kvstore`: update where the sums
    are made, and send weights back ("tree"; servers always do). `whole`: simulate every device (True), or one for all, which is exact
    where all have equal links that are shared fairly (False); None: the second where it holds. **Returns** a `Prediction`. **Raises**
    ArgumentError.

    >>> print(data_parallel(model("resnet50"), 64, batch=64 * 32, link="NVLink V100"))
    64 devices, ring: 101 ms a step, 915 µs of it communication alone; 62.9 times as fast as one
    """
    devices = converted("data_parallel", "devices", "int", devices)
    if devices < 1:
        raise ArgumentError(f"data_parallel: devices is {devices}; at least 1 is wanted")
    chosen = _algorithm(algorithm, devices, per_node, servers, compression)
    elsewhere = _elsewhere(chosen, update_on_kvstore)
    local = _local(graph, devices, batch)
    if parameters is not None:
        local = dataclasses.replace(local, parameters=_sizes(parameters, local))
    single_graph = _local(graph, 1, batch) if batch is not None else local
    if machine is None:
        machine = _machine(graph, chosen, devices, device, link, network)
    elif not (device is None and link is None and network is None):
        raise ArgumentError("data_parallel: a machine has devices and links; give either that, or device, link and network")
    step = Step(local, float(converted("data_parallel", "bucket", "float", bucket)), overlap)
    alone = _alone(local, step.device, machine)
    single = alone if single_graph is local else _alone(single_graph, step.device, machine)
    if devices == 1:
        result = alone
    elif _one_stands_for_all(machine, chosen, whole):
        one, its_machine = one_for_all(step, machine, chosen, costs_on(machine, gpus(devices), _group(chosen)), elsewhere)
        result = replay(one, its_machine)
    else:
        result = replay(_whole(step, machine, chosen, devices, elsewhere), machine)
    return Prediction(
        algorithm, devices, None if local.batch is None else batch or local.batch * devices, result.makespan, alone.makespan,
        single.makespan, single_graph.batch, result,
    )  # fmt: skip


def scaling(
    graph: TaskGraph | Model, devices: Iterable[int] = COUNTS, *, batch: int, weak: bool = False,
    **how: Any,
) -> Curve:  # fmt: skip
    """Predictions for several numbers of devices.

    **Args** `batch`: of all devices together, shared out among more and more of them (strong scaling); with `weak`, of each device. All
    else as `data_parallel`. **Returns** a list of `Prediction`s that prints as a table. **Raises** ArgumentError for more devices than
    samples.

    >>> print(scaling(model("vgg16"), (1, 16), batch=256, link="Ethernet 25G"))
    devices    batch  a device        step  communication  speed-up  efficiency
          1      256       256      3.03 s           0 ns         1       100 %
         16      256        16      404 ms         212 ms       7.5        47 %
    """
    predictions = (data_parallel(graph, count, batch=batch * count if weak else batch, **how) for count in devices)
    return Curve(predictions)


class Curve(list[Prediction]):
    """Predictions for rising numbers of devices."""

    def __str__(self) -> str:
        lines = [
            f"{'devices':>7} {'batch':>8} {'a device':>9} {'step':>11} {'communication':>14} {'speed-up':>9} {'efficiency':>11}"
        ]
        for each in self:
            own = "" if each.batch is None else f"{-(-each.batch // each.devices)}"
            lines.append(
                f"{each.devices:>7} {each.batch or '':>8} {own:>9} {in_words(each.step_time):>11} "
                f"{in_words(each.communication):>14} {each.speed_up:>9.3g} {100 * each.efficiency:>9.0f} %"
            )
        return "\n".join(lines)


def explore(
    devices: int = 8, batch: int = 256, bandwidth: float = 12e9, latency: float = 1e-5, algorithm: str = "ring",
    model: str | Model | TaskGraph = "resnet50", **how: Any,
) -> Prediction:  # fmt: skip
    """Predict a step of a well-known model on V100s with links of any figures: what a slider asks.

    **Args** `batch`: of all devices together. `bandwidth`: bytes a second in each direction; `latency`: seconds. `model`: a name ("mlp",
    "lenet", "alexnet", "vgg16", "resnet18", "resnet50"), a Model or a graph. "hierarchical": the link is that of nodes of 8, inside them
    there is NVLink. All else as `data_parallel`.

    >>> slow, fast = (explore(8, bandwidth=figure).speed_up for figure in (1e9, 100e9))
    >>> slow < fast < 8
    True
    """
    source = _model(model)
    link = Link(
        float(converted("explore", "bandwidth", "float", bandwidth)), float(converted("explore", "latency", "float", latency))
    )
    links = {"network": link, "link": "NVLink V100"} if algorithm == "hierarchical" else {"link": link}
    return data_parallel(source, devices, algorithm, batch=batch, **{**links, **how})


# ---- choices


def _model(chosen: str | Model | TaskGraph) -> Model | TaskGraph:
    return model(chosen) if isinstance(chosen, str) else chosen


def _algorithm(name: str, devices: int, per_node: int, servers: int | None, compression: str | None) -> Algorithm:
    """The algorithm that a name and options mean."""
    if name not in ALGORITHMS:
        raise UnknownNameError(
            f"data_parallel: there is no algorithm {shown(name)}; choose one of {', '.join(map(repr, ALGORITHMS))}"
        )
    if compression is not None and compression not in COMPRESSIONS:
        raise UnknownNameError(f"data_parallel: there is no compression {shown(compression)}; choose '2bit' or None")
    ratio = 1.0 if compression is None else COMPRESSIONS[compression]
    if name == "parameter_server":
        count = devices if servers is None else converted("data_parallel", "servers", "int", servers)
        if count < 1:
            raise ArgumentError(f"data_parallel: servers is {count}; at least 1 is wanted")
        return Servers(count, ratio)
    if servers is not None:
        raise ArgumentError(f"data_parallel: {name!r} has no servers; servers={shown(servers)} is for 'parameter_server'")
    if name == "ring":
        return Ring() if compression is None else Gather(ratio)
    if compression is not None:
        raise ArgumentError(
            f"data_parallel: {name!r} adds on the way, and compressed gradients cannot be added; use 'parameter_server' or 'ring'"
        )
    if name == "tree":
        return Tree()
    per_node = converted("data_parallel", "per_node", "int", per_node)
    if per_node < 1 or (devices > per_node and devices % per_node):
        raise ArgumentError(
            f"data_parallel: {devices} devices cannot be put into nodes of {per_node}; the number must be a multiple"
        )
    return Hierarchical(min(per_node, devices))


def _elsewhere(algorithm: Algorithm, wanted: bool | None) -> bool:
    """Whether updates are made where gradients come together."""
    if isinstance(algorithm, Servers):
        if wanted is False:
            raise ArgumentError(
                "data_parallel: servers of parameters update them; update_on_kvstore=False is for the other algorithms"
            )
        return True
    if wanted and not isinstance(algorithm, Tree):
        raise ArgumentError(
            f"data_parallel: {algorithm.name!r} makes the sum on all devices at the same time, and each updates; "
            "update_on_kvstore=True is for 'tree' and 'parameter_server'"
        )
    return bool(wanted)


def _local(graph: TaskGraph | Model, devices: int, batch: int | None) -> TaskGraph:
    """The step of one device among `devices`."""
    if batch is not None:
        batch = converted("data_parallel", "batch", "int", batch)
        if batch < devices:
            raise ArgumentError(
                f"data_parallel: a batch of {batch} cannot be shared out among {devices} devices; each needs a sample"
            )
    if isinstance(graph, Model):
        if batch is None:
            raise ArgumentError(
                f"data_parallel: give the model {graph.name!r} a batch, of all devices together: batch={32 * devices}"
            )
        return graph.graph(-(-batch // devices))
    if not isinstance(graph, TaskGraph):
        raise ArgumentError(f"data_parallel: a TaskGraph or a Model is wanted, got {shown(graph)}")
    return graph if batch is None else graph.with_batch(-(-batch // devices))


def _sizes(parameters: Mapping[str, float], graph: TaskGraph) -> dict[str, float]:
    """Bytes of gradients that were given, each of which a task of the graph makes."""
    made = {name for task in graph for name in task.makes}
    for name in parameters:
        if name not in made:
            there = some(dict.fromkeys(sorted(made))) or "none"
            raise ArgumentError(f"data_parallel: no task makes the gradient of {shown(name)}; there are those of {there}")
    return {name: not_negative("data_parallel", f"the size of {name!r}", nbytes) for name, nbytes in parameters.items()}


def _machine(
    graph: TaskGraph | Model, algorithm: Algorithm, devices: int, device: str | Device | None, link: str | Link | None,
    network: str | Link | None,
) -> Machine:  # fmt: skip
    """The machine that the figures describe."""
    figures = device_called(device if device is not None else "V100" if isinstance(graph, Model) else Device())
    own = link_called(link if link is not None else "PCIe 3.0")
    if isinstance(algorithm, Hierarchical):
        between = link_called(network if network is not None else "Ethernet 100G")
        return cluster(devices // algorithm.per_node, algorithm.per_node, figures, own, between)
    if network is not None:
        raise ArgumentError("data_parallel: network is the link of a node, for algorithm='hierarchical'; the others use link")
    return switch(devices, figures, own, servers=algorithm.servers if isinstance(algorithm, Servers) else 0)


def _group(algorithm: Algorithm) -> int:
    return algorithm.per_node if isinstance(algorithm, Hierarchical) else 1


def _alone(graph: TaskGraph, device: str, machine: Machine) -> Result:
    """The step of one device, without collectives."""
    lone = Machine({"": figures_of(machine, device), HOST: Device()}, machine.links, machine.route, machine.sharing)
    return replay(graph, lone)


def _one_stands_for_all(machine: Machine, algorithm: Algorithm, whole: bool | None) -> bool:
    """Whether the formulas hold on a machine, and are wanted."""
    holds = {"ring": "ring", "all pairs": "ring tree", "switch": "ring tree parameter_server", "cluster": "hierarchical"}
    exact = (
        algorithm.name in holds.get(machine.name, "").split()
        and (machine.sharing == "fair" or algorithm.name in ("ring", "tree"))
        and not machine.contention
    )
    if whole is False and not exact:
        raise ArgumentError(
            f"data_parallel: whole=False is for devices that all have equal links, shared fairly; with {algorithm.name!r} on "
            f"{machine.name!r} they meet differently: leave it out, or use simulate.switch(...)"
        )
    return exact and not whole


def _whole(step: Step, machine: Machine, algorithm: Algorithm, devices: int, elsewhere: bool) -> TaskGraph:
    """All devices written down."""
    rounds = {"ring": 4 * devices, "tree": 4, "parameter_server": 3 * getattr(algorithm, "servers", 1)}.get(
        algorithm.name, 4 * devices
    )
    if devices * (len(step.graph) + rounds * len(step.buckets)) > MOST_TASKS:
        raise ArgumentError(
            f"data_parallel: to simulate each of {devices} devices would take millions of tasks; leave out whole=True, use a machine "
            "whose links are all equal, larger buckets, or fewer devices"
        )
    servers = [f"server({number})" for number in range(algorithm.servers)] if isinstance(algorithm, Servers) else []
    site = Site(TaskGraph(), machine, gpus(devices), servers)
    return Replicas(step, site, algorithm, elsewhere).written()


__all__ = ["ALGORITHMS", "Curve", "Prediction", "data_parallel", "explore", "scaling"]
