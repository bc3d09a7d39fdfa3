"""What a simulation found: when each task ran, how busy each lane was, and what decided how long it all took. Book: chapter 11."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...base import ArgumentError, shown
from ...profiler import Timeline, timeline
from ...profiler.layout import in_words
from .graph import HOST, Task, TaskGraph, Work
from .machine import Machine

Bar = tuple[str, str, float, float]  # lane, name, start and end in seconds


class Step(NamedTuple):
    """A task of the critical path. `reason`: what its beginning waited for, "data" of the task before, its "lane" or link, or
    "nothing"."""

    number: int
    task: Task
    start: float
    end: float
    reason: str


class Result:
    """When each task of a graph ran. `start[number]`, `end[number]`: seconds from the beginning."""

    def __init__(
        self, tasks: list[Task], machine: Machine, start: list[float], end: list[float], ready: list[float], cause: list[int]
    ) -> None:
        self.tasks = tasks
        self.machine = machine
        self.start = start
        self.end = end
        self.ready = ready  # when the last task that each waited for had ended
        self._cause = cause

    def __repr__(self) -> str:
        return f"<Result: {len(self.tasks)} tasks in {in_words(self.makespan)} on {self.machine.name}>"

    @property
    def makespan(self) -> float:
        """Seconds from the beginning to the last end."""
        return max(self.end, default=0.0)

    @property
    def lanes(self) -> list[str]:
        """The lanes of all tasks, in the order in which they first appear in the graph."""
        return list(dict.fromkeys(task.lane for task in self.tasks))

    def bars(self, devices: Iterable[str] | None = None) -> list[Bar]:
        """The tasks as (lane, name, start, end), in the order of their numbers. **Args** `devices`: only these, with their streams and
        copies."""
        wanted = None if devices is None else set(devices)
        found = [
            (task.lane, task.name, start, end)
            for task, start, end in zip(self.tasks, self.start, self.end)
            if wanted is None or task.lane in wanted or task.lane.rsplit(" ", 1)[0] in wanted
        ]
        if not found and self.tasks:
            raise ArgumentError(f"timeline: no lane belongs to {shown(devices)}; the lanes are {', '.join(self.lanes[:8])}")
        return found

    def timeline(self, devices: Iterable[str] | None = None, title: str | None = None, end: float | None = None) -> Timeline:
        """The tasks as a picture with tables, as that of the profiler: `mx.profiler.timeline`.

        **Args** `devices`: only these, with their streams and copies. `end`: seconds up to which the axis goes, the makespan by default.
        """
        return timeline(self.bars(devices), title=title, start=0.0, end=self.makespan if end is None else end)

    def busy(self, lane: str) -> float:
        """Seconds for which at least one task of a lane runs. **Raises** ArgumentError for a lane that has no task."""
        if lane not in self.lanes:
            raise ArgumentError(f"utilization: there is no lane {shown(lane)}; the lanes are {', '.join(self.lanes[:8])}")
        total = reached = 0.0
        for start, end in sorted((bar[2], bar[3]) for bar in self.bars([lane]) if bar[0] == lane):
            total += max(0.0, end - max(start, reached))
            reached = max(reached, end)
        return total

    def utilization(self, lane: str) -> float:
        """The part of the makespan for which a lane is busy, 0 to 1. **Raises** as `busy`."""
        return self.busy(lane) / self.makespan if self.makespan else 0.0

    def critical_path(self) -> list[Step]:
        """The tasks that decided the makespan, first to last: each began when the one before it ended, and could not begin sooner.

        To make one of these shorter may make the whole shorter; to shorten any other does not.
        """
        number = max(range(len(self.end)), key=lambda each: (self.end[each], each), default=-1)
        path = []
        while number >= 0:
            before = self._cause[number]
            reason = "nothing" if before < 0 else "data" if before in self.tasks[number].after else "lane"
            path.append(Step(number, self.tasks[number], self.start[number], self.end[number], reason))
            number = before
        return path[::-1]

    def bounds(self) -> tuple[float, float]:
        """What no order of the tasks could beat: the longest chain of tasks that wait for each other, and the work of the busiest lane."""
        longest, _ = TaskGraph(self.tasks).longest(self.machine.seconds)
        sums: dict[str, float] = {}
        helped = self.machine.helping and HOST in self.lanes
        for task in self.tasks:
            if isinstance(task, Work):
                workers = self.machine.device(task.device).workers + (helped and task.lane != HOST)
                sums[task.lane] = sums.get(task.lane, 0.0) + self.machine.seconds(task) / workers
        return longest, max(sums.values(), default=0.0)


__all__ = ["Bar", "Result", "Step"]
