"""What a step of training consists of: work on devices, transfers between them, and what has to wait for what.

A graph is built by hand, task by task, each after those that it names; or recorded from a step that the engine ran (recording.py). It says
nothing about speed but what was measured: how long a task takes on which machine is asked in machine.py, what then happens when is worked
out in simulator.py, and replicas.py makes the graph of many devices from that of one. Book: chapter 11.

Units are SI throughout: seconds, bytes, floating-point operations (FLOP).
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ... import files
from ...base import ArgumentError, FileFormatError, shown
from ...files import PathLike

HOST = "host"  #: the front end: the thread that runs the user's program and queues work for the devices


@dataclass(frozen=True)
class Work:
    """Computing on one device.

    **Args** `device`: whose lane runs it, such as "gpu(0)"; `stream`: another lane of the same device, beside its own. `flops`: FLOP;
    `read`, `written`: bytes, for a machine that works out the time. `seconds`: how long it took where it was recorded, which counts
    instead; `overhead`: what passed there between the moment at which it could have begun and its beginning. `after`: numbers of the tasks
    it waits for. `priority`: of tasks that are ready in a lane the highest begins. `makes`: the parameters whose gradients are complete
    when it ends; `uses`: those that it updates, for which it needs the sums of gradients. `scales`: it takes longer for a larger batch.
    """

    name: str
    device: str
    flops: float = 0.0
    read: float = 0.0
    written: float = 0.0
    seconds: float | None = None
    overhead: float | None = None
    stream: str = ""
    after: tuple[int, ...] = ()
    priority: int = 0
    makes: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    scales: bool = True

    @property
    def lane(self) -> str:
        """The lane that runs it: "gpu(0)", or "gpu(0) copy" for the stream "copy"."""
        return f"{self.device} {self.stream}" if self.stream else self.device

    def with_batch(self, factor: float) -> Work:
        """The same for a batch `factor` times as large."""
        if not self.scales or factor == 1:
            return self
        seconds = None if self.seconds is None else self.seconds * factor
        return dataclasses.replace(
            self, flops=self.flops * factor, read=self.read * factor, written=self.written * factor, seconds=seconds
        )


@dataclass(frozen=True)
class Transfer:
    """`nbytes` on their way from the device `source` to `target`. `seconds`: how long that took where it was recorded."""

    name: str
    source: str
    target: str
    nbytes: float = 0.0
    seconds: float | None = None
    after: tuple[int, ...] = ()
    priority: int = 0
    makes: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    scales: bool = True

    @property
    def lane(self) -> str:
        """The row in which it is drawn, and the lane in which the engine would copy: see `device.copy_lane`."""
        return f"{self.target} in" if not self.target.startswith("cpu") else f"{self.source} out"

    def with_batch(self, factor: float) -> Transfer:
        """The same for a batch `factor` times as large."""
        if not self.scales or factor == 1:
            return self
        seconds = None if self.seconds is None else self.seconds * factor
        return dataclasses.replace(self, nbytes=self.nbytes * factor, seconds=seconds)


Task: TypeAlias = "Work | Transfer"


@dataclass
class TaskGraph:
    """Tasks by number, each after tasks of smaller numbers.

    **Args** `parameters`: bytes of the gradient of each parameter, by name. `batch`: the samples of which it is a step.

    >>> graph = TaskGraph()
    >>> forward = graph.work("forward", "gpu(0)", seconds=0.002)
    >>> there = graph.transfer("result", "gpu(0)", "gpu(1)", nbytes=1e6, after=forward)
    >>> len(graph), graph[there].after
    (2, (0,))
    """

    tasks: list[Task] = field(default_factory=list)
    parameters: dict[str, float] = field(default_factory=dict)
    batch: int | None = None

    def work(self, name: str, device: str, *, after: int | Iterable[int] = (), **how: Any) -> int:
        """Add a `Work`, after one or several tasks; its number. **Raises** as `add`."""
        return self.add(Work(name, device, after=numbers(after), **how))

    def transfer(self, name: str, source: str, target: str, nbytes: float, *, after: int | Iterable[int] = (), **how: Any) -> int:
        """Add a `Transfer`, after one or several tasks; its number. **Raises** as `add`."""
        return self.add(Transfer(name, source, target, nbytes, after=numbers(after), **how))

    def add(self, task: Task) -> int:
        """Add a task; its number. **Raises** ArgumentError for a figure that is negative or no number, or a task to wait for that is
        not there."""
        for what in ("flops", "read", "written", "seconds", "overhead", "nbytes"):
            value = getattr(task, what, None)
            if value is not None and not 0 <= value < math.inf:
                raise ArgumentError(f"TaskGraph: {task.name!r} has {what} {shown(value)}; a number, 0 or more, is wanted")
        for number in task.after:
            if not 0 <= number < len(self.tasks):
                raise ArgumentError(
                    f"TaskGraph: {task.name!r} comes after task {number}, and there are {len(self.tasks)}; add what it waits for first"
                )
        self.tasks.append(task)
        return len(self.tasks) - 1

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, number: int) -> Task:
        return self.tasks[number]

    def __repr__(self) -> str:
        works = sum(isinstance(task, Work) for task in self)
        return f"<TaskGraph: {works} works and {len(self) - works} transfers in {len(self.lanes)} lanes>"

    @property
    def lanes(self) -> list[str]:
        """The lanes of all tasks, in the order in which they first appear."""
        return list(dict.fromkeys(task.lane for task in self))

    @property
    def devices(self) -> list[str]:
        """The devices that work or take part in transfers, the front end not counted."""
        found: dict[str, None] = {}
        for task in self:
            found.update(dict.fromkeys([task.device] if isinstance(task, Work) else [task.source, task.target]))
        return [device for device in found if not device.startswith(HOST)]

    def longest(self, seconds: Callable[[Task], float]) -> tuple[float, list[int]]:
        """The critical path if every task had a lane of its own: its length in seconds, and its tasks.

        No machine of any number of lanes is faster. **Args** `seconds`: how long a task takes.

        >>> graph = TaskGraph()
        >>> a = graph.work("a", "gpu(0)", seconds=1); b = graph.work("b", "gpu(1)", seconds=3)
        >>> c = graph.work("c", "gpu(0)", seconds=1, after=[a, b])
        >>> graph.longest(lambda task: task.seconds)
        (4.0, [1, 2])
        """
        ends: list[float] = []
        before: list[int] = []
        for task in self:
            latest = max(task.after, key=lambda number: ends[number], default=-1)
            ends.append((ends[latest] if latest >= 0 else 0.0) + seconds(task))
            before.append(latest)
        number = max(range(len(ends)), key=lambda each: ends[each], default=-1)
        length, path = ends[number] if ends else 0.0, []
        while number >= 0:
            path.append(number)
            number = before[number]
        return length, path[::-1]

    def with_batch(self, batch: int) -> TaskGraph:
        """The graph of the same step for another batch: what depends on the batch takes longer in proportion.

        **Raises** ArgumentError if the graph does not say of how many samples it is.
        """
        if self.batch is None:
            raise ArgumentError("TaskGraph.with_batch: for how many samples are the tasks? Give it a batch: record(batch=64)")
        if batch < 1:
            raise ArgumentError(f"TaskGraph.with_batch: a batch of {batch} has no sample")
        tasks: list[Task] = [task.with_batch(batch / self.batch) for task in self]
        return TaskGraph(tasks, dict(self.parameters), batch)

    def stretched(self, factor: float) -> TaskGraph:
        """The same graph with all measured times `factor` times as long."""
        tasks: list[Task] = []
        for task in self:
            times = {name: getattr(task, name, None) for name in ("seconds", "overhead")}
            tasks.append(dataclasses.replace(task, **{name: time * factor for name, time in times.items() if time is not None}))
        return TaskGraph(tasks, dict(self.parameters), self.batch)

    # ---- files

    def save(self, fname: PathLike) -> None:
        """Write the graph to a file of JSON, replaced when the new one is complete: to record here and predict elsewhere."""
        entries = [{"kind": type(task).__name__.lower(), **_given(task)} for task in self]
        content = {"format": FORMAT, "batch": self.batch, "parameters": self.parameters, "tasks": entries}
        files.replace_file(fname, [json.dumps(content, indent=1).encode()])

    @staticmethod
    def load(fname: PathLike) -> TaskGraph:
        """Read a file that `save` wrote. **Raises** FileFormatError for another one; MissingFileError."""
        file, size = files.open_file(fname)
        with file:
            data = file.read(size)
        try:
            content = json.loads(data)
            if content["format"] != FORMAT:
                raise ValueError(f"its format is {shown(content['format'])}, {FORMAT!r} is wanted")
            graph = TaskGraph([], {str(name): float(each) for name, each in content["parameters"].items()}, content["batch"])
            for entry in content["tasks"]:
                graph.add(_task_of(entry))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FileFormatError(f"{files.as_path(fname)}: no task graph: {type(error).__name__}: {error}") from None
        return graph


FORMAT = "minimx task graph 1"


def _given(task: Task) -> dict[str, Any]:
    """The fields of a task that are not at their defaults."""
    values = ((each, getattr(task, each.name)) for each in dataclasses.fields(task))
    return {each.name: value for each, value in values if value != each.default}


def _task_of(entry: Mapping[str, Any]) -> Task:
    """A task from its entry in a file. Raises ValueError, TypeError, KeyError for what is none."""
    given = dict(entry)
    kind: type[Work] | type[Transfer] = {"work": Work, "transfer": Transfer}[given.pop("kind")]
    wanted = {"name": str, "device": str, "source": str, "target": str, "stream": str, "priority": int, "scales": bool}
    for key, value in given.items():
        if key == "after":
            given[key] = numbers(value)
        elif key in ("makes", "uses"):
            given[key] = tuple(str(each) for each in value)
        elif not isinstance(value, wanted.get(key, (int, float))):
            raise TypeError(f"{key} is {shown(value)}")
    return kind(**given)


def numbers(after: int | Iterable[int]) -> tuple[int, ...]:
    """The numbers of tasks, each once, in rising order."""
    return (after,) if isinstance(after, int) else tuple(sorted({int(number) for number in after}))


__all__ = ["HOST", "Task", "TaskGraph", "Transfer", "Work", "numbers"]
