"""Data parallel training, predicted: from the graph of a step on one device, that of a step on many.

Every device computes with its part of the batch; the gradients of all become their sum on all (collectives.py), in buckets, each as soon
as it is complete or, without overlap, when all are; then every device updates, or a server does.

`Replicas` writes down all devices, with every transfer. `one_for_all` makes use of that all do the same: it writes down one device, and
of each collective the time that its formula says, in a lane of its own. Both give the same times where all links are equal and shared
fairly (a test), but the second does not grow with the number of devices. Book: chapter 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ...base import ArgumentError
from .collectives import NETWORK, After, Algorithm, Costs, Servers, Site, Tree, part_of
from .graph import HOST, Task, TaskGraph, Transfer, Work
from .machine import Device, Machine
from .topologies import gpus


@dataclass(frozen=True)
class Bucket:
    """Gradients that travel together: their parameters and bytes, and the tasks that make them."""

    name: str
    parameters: tuple[str, ...]
    nbytes: float
    makers: tuple[int, ...]


class Step:
    """A step on one device, taken apart: what comes before updates, the buckets of gradients, the updates, and what comes after them."""

    def __init__(self, graph: TaskGraph, bucket: float, overlap: bool) -> None:
        self.graph = graph
        devices = list(
            dict.fromkeys(task.device for task in graph if isinstance(task, Work) and not task.device.startswith(HOST))
        )
        if len(devices) != 1:
            raise ArgumentError(
                "data_parallel: the graph of a step on one device is wanted, this one works on "
                + (", ".join(devices) or "none: so small a step the front end runs by itself")
            )
        self.device = devices[0]
        self.updates = [number for number, task in enumerate(graph) if task.uses]
        self.second: set[int] = set()  # updates, and all that waits for one
        for number, task in enumerate(graph):
            if task.uses or not self.second.isdisjoint(task.after):
                self.second.add(number)
        makers = self._makers()
        self.buckets = list(_buckets(graph.parameters, makers, bucket))
        if not overlap:
            everything = tuple(sorted({number for each in self.buckets for number in each.makers}))
            self.buckets = [replace(each, makers=everything) for each in self.buckets]

    def _makers(self) -> dict[str, int]:
        """For each parameter the task that completes its gradient, in the order in which these end."""
        graph = self.graph
        found = {name: number for number, task in enumerate(graph) for name in task.makes if name in graph.parameters}
        makers = dict(sorted(found.items(), key=lambda item: item[1]))
        if not makers:
            raise ArgumentError(
                "data_parallel: the graph does not say which tasks make gradients; record it with record(net.collect_params()), or add "
                "tasks with makes=('weight',) to a graph with parameters={'weight': 4e6}"
            )
        late = next((name for name, number in makers.items() if number in self.second), None)
        if late is not None:
            raise ArgumentError(
                f"data_parallel: the gradient of {late!r} is made after an update; a graph of one step computes all of them first"
            )
        return makers

    def update_of(self, bucket: Bucket) -> Work | None:
        """What updating the parameters of a bucket takes in all: its part of the updates, by bytes."""
        total: Work | None = None
        for number in self.updates:
            task = self.graph[number]
            known = {name: self.graph.parameters.get(name, 0.0) for name in task.uses}
            part = sum(known[name] for name in set(known).intersection(bucket.parameters)) / (sum(known.values()) or 1.0)
            if isinstance(task, Work) and part:
                share = replace(part_of(task, part), name=f"update {bucket.name}", after=(), makes=(), uses=(), scales=False)
                total = share if total is None else _joined(total, share)
        return total


def _joined(one: Work, other: Work) -> Work:
    """Two works as one."""
    seconds = None if one.seconds is None else one.seconds + (other.seconds or 0.0)
    return replace(
        one, seconds=seconds, flops=one.flops + other.flops, read=one.read + other.read, written=one.written + other.written
    )


def _buckets(parameters: Mapping[str, float], makers: Mapping[str, int], most: float) -> list[Bucket]:
    """Parameters in the order in which their gradients are complete, as many in a bucket as make up `most` bytes; 0: each alone."""
    found: list[Bucket] = []
    names: list[str] = []
    for position, name in enumerate(makers):
        names.append(name)
        nbytes = sum(parameters[each] for each in names)
        if nbytes >= most or position == len(makers) - 1:
            title = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
            found.append(Bucket(title, tuple(names), nbytes, tuple(sorted({makers[each] for each in names}))))
            names = []
    return found


# ---- all devices


class Replicas:
    """Writes down a step of all devices.

    `elsewhere`: the updates are made where gradients come together, not on every device. `shared_host`: one front end queues the work of
    all devices in turn, as in one process; otherwise each device has its own. `per_key`: seconds that a shared one takes for each bucket.
    """

    def __init__(
        self, step: Step, site: Site, algorithm: Algorithm, elsewhere: bool, shared_host: bool = False, per_key: float = 0.0
    ) -> None:
        self.step, self.site, self.algorithm = step, site, algorithm
        self.elsewhere, self.shared_host, self.per_key = elsewhere, shared_host, per_key
        self.graph = site.graph
        self.copies: list[list[After]] = [[()] * len(step.graph) for _ in site.devices]  # [device][task] -> what stands for it
        self.summed: dict[str, list[After]] = {}  # parameter -> for each device after what it has the sum, or the weight
        self.host: After = ()  # the last work of a shared front end

    def written(self) -> TaskGraph:
        """The graph."""
        step = self.step
        waiting = list(step.buckets)
        for number, task in enumerate(step.graph):
            if number in step.second:
                continue
            for device in range(len(self.site.devices)):
                self._copy(number, task, device, ())
            if not self.shared_host:
                for bucket in [each for each in waiting if each.makers[-1] == number]:
                    waiting.remove(bucket)
                    self._collect(bucket)
        if self.shared_host:  # the Trainer's way: by parameter, the first with the highest priority
            position = {name: number for number, name in enumerate(step.graph.parameters)}
            for bucket in sorted(waiting, key=lambda each: position[each.parameters[0]]):
                self.site.priority = -position[bucket.parameters[0]]
                self._collect(bucket)
            self.site.priority = 0
        for number, task in enumerate(step.graph):
            if number in step.second:
                for device in range(len(self.site.devices)):
                    sums = tuple(after for name in task.uses for after in self.summed.get(name, [()] * len(self.copies))[device])
                    if task.uses and self.elsewhere:
                        self.copies[device][number] = tuple(sorted(set(sums + self._after(task, device, host=False))))
                    else:
                        self._copy(number, task, device, sums)
        return self.graph

    def _after(self, task: Task, device: int, host: bool = True) -> After:
        """What the copy of a task on a device waits for, the front end counted or not."""
        waits = [number for number in task.after if host or self.step.graph[number].lane != HOST]
        return tuple(each for number in waits for each in self.copies[device][number])

    def _copy(self, number: int, task: Task, device: int, more: After) -> None:
        """Enter a task once more, for `device`."""
        after = set(self._after(task, device) + more)
        chosen: Task
        if isinstance(task, Transfer):
            chosen = replace(task, source=self._name(task.source, device), target=self._name(task.target, device))
        else:
            chosen = replace(task, device=self._name(task.device, device))
        if task.lane == HOST and self.shared_host:
            after.update(self.host)
        self.copies[device][number] = (self.graph.add(replace(chosen, after=tuple(sorted(after)))),)
        if task.lane == HOST and self.shared_host:
            self.host = self.copies[device][number]

    def _name(self, name: str, device: int) -> str:
        if name == self.step.device:
            return self.site.devices[device]
        return f"{HOST}({device})" if name == HOST and not self.shared_host else name

    def _collect(self, bucket: Bucket) -> None:
        """Enter the tasks that add the gradients of a bucket."""
        ready = [tuple(each for number in bucket.makers for each in copies[number]) for copies in self.copies]
        if self.shared_host and self.per_key:
            seconds = self.per_key * len(bucket.parameters)
            self.host = (
                self.graph.work(f"queue {bucket.name}", HOST, seconds=seconds, overhead=0.0, after=self.host, scales=False),
            )
            ready = [each + self.host for each in ready]
        if isinstance(self.algorithm, (Tree, Servers)) and self.elsewhere:
            update = self.step.update_of(bucket)
            done = self.algorithm.tasks(self.site, bucket.name, bucket.nbytes, ready, update)
        else:
            done = self.algorithm.tasks(self.site, bucket.name, bucket.nbytes, ready)
        self.summed.update(dict.fromkeys(bucket.parameters, done))


# ---- one device for all


def figures_of(machine: Machine, device: str) -> Device:
    """What a machine's devices can do: those of `device` if it has one of that name, else of its first."""
    return machine.device(device if device in machine.devices else gpus(1)[0])


def one_for_all(step: Step, machine: Machine, algorithm: Algorithm, costs: Costs, elsewhere: bool) -> tuple[TaskGraph, Machine]:
    """The step of one device among many that do the same, and the machine for it: links are lanes of the device "network"."""
    graph = TaskGraph(parameters=dict(step.graph.parameters), batch=step.graph.batch)
    copies: dict[int, After] = {}
    summed: dict[str, After] = {}
    waiting = list(step.buckets)
    for number, task in enumerate(step.graph):
        if number in step.second:
            continue
        copies[number] = (graph.add(replace(task, after=_of(copies, task))),)
        for bucket in [each for each in waiting if each.makers[-1] == number]:
            waiting.remove(bucket)
            update = step.update_of(bucket) if elsewhere else None
            after = tuple(each for maker in bucket.makers for each in copies[maker])
            done = _collective(graph, machine, bucket, algorithm, costs, update, after, step.device)
            summed.update(dict.fromkeys(bucket.parameters, done))
    for number, task in enumerate(step.graph):
        if number not in step.second:
            continue
        sums = tuple(each for name in task.uses for each in summed.get(name, ()))
        if task.uses and elsewhere:
            waits = [each for each in task.after if step.graph[each].lane != HOST]
            copies[number] = tuple(sorted({*sums, *(each for before in waits for each in copies[before])}))
        else:
            copies[number] = (graph.add(replace(task, after=tuple(sorted({*_of(copies, task), *sums})))),)
    devices = {"": figures_of(machine, step.device), NETWORK: Device(), HOST: Device()}
    return graph, Machine(devices, machine.links, machine.route, machine.sharing, name=f"one device of {machine.name}")


def _of(copies: Mapping[int, After], task: Task) -> After:
    return tuple(sorted({each for number in task.after for each in copies[number]}))


def _collective(
    graph: TaskGraph, machine: Machine, bucket: Bucket, algorithm: Algorithm, costs: Costs, update: Work | None, after: After, device: str,
) -> After:  # fmt: skip
    """A collective as work of the network; servers have a lane for each direction, and one to add and update in."""
    figures = figures_of(machine, device)
    updating = 0.0 if update is None else figures.begins_after(update) + figures.seconds(update)
    if not isinstance(algorithm, Servers):
        seconds = algorithm.seconds(bucket.nbytes, costs) + updating
        return (graph.work(f"add {bucket.name}", NETWORK, seconds=seconds, after=after, scales=False),)
    if update is not None:
        overhead = figures.begins_after(update)
        updating = overhead + (updating - overhead) / algorithm.servers
    there = algorithm.way(bucket.nbytes * algorithm.compression, costs)
    serving = algorithm.adding(bucket.nbytes, costs) + updating
    stages = (("to servers", there), ("servers", serving), ("from servers", algorithm.way(bucket.nbytes, costs)))
    for stream, seconds in stages:
        name = {"to servers": "push", "servers": "update", "from servers": "pull"}[stream]
        after = (graph.work(f"{name} {bucket.name}", NETWORK, stream=stream, seconds=seconds, after=after, scales=False),)
    return after


__all__ = ["Bucket", "Replicas", "Step", "figures_of", "one_for_all"]
