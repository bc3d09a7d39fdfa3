"""Replaying a task graph on a machine: a simulation from event to event.

The rules are the engine's. A task is ready when all tasks that it comes after have ended; it then queues in its lane, where the highest
priority begins first, and of equals the one that was ready first (of these the one with the smaller number). A lane runs one task at a
time, or as many as its device has workers. Nothing that has begun is interrupted.

*Transfers.* Machines share links in one of two ways (`Machine.sharing`). "in turn": a transfer queues in the lane for copies of its
device, then for each link of its way, first come, first served, and has all of them for itself for latency + bytes / bandwidth. "fair":
its latency passes first; from then on all transfers under way get max-min fair rates (D. Bertsekas, R. Gallager, "Data networks", 1992,
6.5.2): the link on which the share is smallest gives each of its transfers an equal part, what these do not need elsewhere is shared out
among the others, and so on. Rates change whenever a transfer begins or ends.

*Contention.* Where lanes share what computes (`Machine.contention`), work slows down for as long as others work: arithmetic by one factor,
all else, which waits for memory most of all, by another.

Everything is decided by numbers and their order: the same graph and machine always give the same result. Book: chapter 11.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Iterable

from .graph import HOST, Task, TaskGraph, Work
from .machine import Device, Machine
from .result import Result

BEGUN, ENDED = "begun", "ended"  # kinds of events: what had to pass before a task has passed; it has ended


class Lane:
    """A queue of ready tasks, and how many of them run."""

    def __init__(self, name: str, workers: int) -> None:
        self.name = name
        self.workers = workers
        self.running = 0
        self.left = 0  # tasks that have not begun
        self.ready: list[tuple[int, float, int]] = []  # a heap: (-priority, since when, number)
        self.freed_by = -1  # the last task that ended here


class Activity:
    """What goes on at a rate that changes: a transfer on links that it shares, or work on lanes that slow each other down."""

    __slots__ = ("links", "arithmetic", "left", "rate", "since", "version")

    def __init__(self, left: float, now: float, links: tuple[str, ...] = (), arithmetic: float = 0.0) -> None:
        self.links = links
        self.arithmetic = arithmetic  # the part of work that is arithmetic
        self.left = left  # bytes, or seconds of work alone, at the time `since`
        self.rate = 0.0  # of these a second from then on
        self.since = now
        self.version = 0  # of its end: each new rate makes the old one void

    def go_on(self, rate: float, now: float) -> float:
        """From now on at another rate: when it will end."""
        if now > self.since:
            self.left = max(0.0, self.left - self.rate * (now - self.since))
        self.rate, self.since = rate, now
        self.version += 1
        return now + self.left / rate


class Replay:
    """One run. All times are seconds from its beginning."""

    def __init__(self, graph: TaskGraph, machine: Machine) -> None:
        self.tasks: list[Task] = graph.tasks
        self.machine = machine
        count = len(self.tasks)
        self.waits = [len(task.after) for task in self.tasks]
        self.successors: list[list[int]] = [[] for _ in self.tasks]
        for number, task in enumerate(self.tasks):
            for before in task.after:
                self.successors[before].append(number)
        self.start, self.end = [math.nan] * count, [math.nan] * count
        self.ready = [0.0] * count
        self.cause = [-1] * count  # the task whose end let it begin
        self.helped = [False] * count  # the front end runs it
        self.now = 0.0
        self.events: list[tuple[float, int, str, int]] = []  # a heap: (when, number, kind, version)
        self.lanes: dict[str, Lane] = {}
        self.in_lane: list[Lane | None] = [self._lane_of(task) for task in self.tasks]
        self.ways = [machine.way_of(task) for task in self.tasks]  # of transfers; None: it takes as long as it took
        self.turns: dict[str, deque[int]] = {}  # "in turn": the transfers that have or want a link
        self.active: dict[int, Activity] = {}  # all whose rate may change
        self.users: dict[str, dict[int, None]] = {}  # "fair": the transfers under way on each link,
        self.changed: dict[str, None] = {}  # and the links where one came or went
        self.computing: dict[int, None] = {}  # where lanes slow each other down: the works under way,
        self.met = 0  # and how many there were when their rates were set
        self.touched: dict[str, Lane] = dict(self.lanes)  # lanes in which something may begin

    def _lane_of(self, task: Task) -> Lane | None:
        """The lane in which a task queues; transfers on links that are shared at all times need none."""
        if isinstance(task, Work):
            device = self.machine.device(task.device)
        elif self.machine.sharing == "fair":
            return None
        else:
            device = Device()
        lane = self.lanes.get(task.lane)
        if lane is None:
            lane = self.lanes[task.lane] = Lane(task.lane, device.workers)
        lane.left += 1
        return lane

    # ---- the course of events

    def run(self) -> Result:
        """Everything from the first task to the last."""
        self._enter([number for number, waits in enumerate(self.waits) if not waits])
        while True:
            self._begin_what_can()
            self._share_lanes()
            self._share_links()
            when = self._next_time()
            if when is None:
                break
            self.now = when
            self._enter(self._end_tasks(self._due()))
        return Result(self.tasks, self.machine, self.start, self.end, self.ready, self.cause)

    def _next_time(self) -> float | None:
        """When something happens next."""
        while self.events and not self._valid(self.events[0]):
            heapq.heappop(self.events)
        return self.events[0][0] if self.events else None

    def _valid(self, event: tuple[float, int, str, int]) -> bool:
        """Whether an event is to happen; the ends of activities that have got another rate since are not."""
        _, number, kind, version = event
        if kind == BEGUN:
            return True
        activity = self.active.get(number)
        return math.isnan(self.end[number]) if activity is None else activity.version == version

    def _due(self) -> list[int]:
        """The tasks that end now. What is due to begin, begins."""
        ended: list[int] = []
        while self.events and self.events[0][0] <= self.now:
            event = heapq.heappop(self.events)
            if not self._valid(event):
                continue
            if event[2] == ENDED:
                ended.append(event[1])
            else:
                self._begun(event[1])
        return sorted(ended)

    def _enter(self, numbers: Iterable[int]) -> None:
        """Tasks have become ready."""
        for number in numbers:
            self.ready[number] = self.now
            lane = self.in_lane[number]
            if lane is None:
                self._start(number)
            else:
                heapq.heappush(lane.ready, (-self.tasks[number].priority, self.now, number))
                self.touched[lane.name] = lane

    def _end_tasks(self, numbers: list[int]) -> list[int]:
        """Tasks have ended: free what they held. The tasks that are ready now, in the order of their numbers."""
        ready = []
        for number in numbers:
            self.end[number] = self.now
            lane = self.in_lane[number]
            if lane is not None:
                taken = self.lanes[HOST] if self.helped[number] else lane
                taken.running -= 1
                taken.freed_by = number
                self.touched[taken.name] = taken
            activity = self.active.pop(number, None)
            if self.ways[number] is not None:
                self._leave_links(number, activity)
            self.computing.pop(number, None)
            for successor in self.successors[number]:
                self.waits[successor] -= 1
                self.cause[successor] = number
                if not self.waits[successor]:
                    ready.append(successor)
        return sorted(ready)

    # ---- lanes

    def _begin_what_can(self) -> None:
        """Begin the first tasks of all lanes that have room."""
        touched, self.touched = self.touched, {}
        for lane in touched.values():
            while lane.ready and lane.running < lane.workers:
                self._take(lane, lane)
        host = self.lanes.get(HOST)
        if self.machine.helping and host is not None:
            for lane in self.lanes.values():
                if host.running or host.ready or not host.left:
                    break  # it has work of its own, or has ended
                if lane.ready:
                    self._take(lane, host)

    def _take(self, lane: Lane, taken: Lane) -> None:
        """The first ready task of `lane` begins, and takes room in `taken`."""
        number = heapq.heappop(lane.ready)[2]
        lane.left -= 1
        taken.running += 1
        self.helped[number] = taken is not lane
        if self.ready[number] < self.now and taken.freed_by >= 0:
            self.cause[number] = taken.freed_by  # it waited for room, not for its data
        self._start(number)

    def _start(self, number: int) -> None:
        """A task takes its place; after its overhead or latency it begins."""
        task = self.tasks[number]
        self.start[number] = self.now
        way = self.ways[number]
        if isinstance(task, Work):
            before = self.machine.device(task.device).begins_after(task)
        elif way is None:
            before = task.seconds or 0.0
        elif self.machine.sharing == "in turn":
            self._queue_for_links(number, way.links)
            return
        else:
            before = way.latency
        if before:
            heapq.heappush(self.events, (self.now + before, number, BEGUN, 0))
        else:
            self._begun(number)

    def _begun(self, number: int) -> None:
        """What had to pass before has passed."""
        task = self.tasks[number]
        if isinstance(task, Work):
            seconds = self.machine.device(task.device).seconds(task)
            if self.machine.contention:
                self.active[number] = Activity(seconds, self.now, arithmetic=self.machine.device(task.device).arithmetic(task))
                self.computing[number] = None
            else:
                heapq.heappush(self.events, (self.now + seconds, number, ENDED, 0))
            return
        way = self.ways[number]
        if way is None or not way.links:
            heapq.heappush(self.events, (self.now, number, ENDED, 0))
            return
        self.active[number] = Activity(task.nbytes, self.now, links=way.links)
        for link in way.links:
            self.users.setdefault(link, {})[number] = None
            self.changed[link] = None

    # ---- links in turn

    def _queue_for_links(self, number: int, links: tuple[str, ...]) -> None:
        for link in links:
            self.turns.setdefault(link, deque()).append(number)
        self._go_if_first(number, links)

    def _go_if_first(self, number: int, links: tuple[str, ...]) -> None:
        """A transfer that has all links of its way for itself takes as long as they are slow."""
        task = self.tasks[number]
        assert not isinstance(task, Work)
        if all(self.turns[link][0] == number for link in links):
            self.start[number] = self.now
            seconds = self.machine.link(task.source, task.target).seconds(task.nbytes)
            heapq.heappush(self.events, (self.now + seconds, number, ENDED, 0))

    def _leave_links(self, number: int, activity: Activity | None) -> None:
        """A transfer has ended: others may use its links."""
        way = self.ways[number]
        assert way is not None
        if self.machine.sharing == "fair":
            for link in () if activity is None else activity.links:
                del self.users[link][number]
                self.changed[link] = None
            return
        for link in way.links:
            self.turns[link].popleft()
        for other in dict.fromkeys(self.turns[link][0] for link in way.links if self.turns[link]):
            self.cause[other] = number
            self._go_if_first(other, self.ways[other].links)  # type: ignore[union-attr]  # who queues for links has a way

    # ---- lanes that slow each other down

    def _share_lanes(self) -> None:
        """New rates for all works, if there are more or fewer of them than before."""
        count = len(self.computing)
        for number in self.computing:
            activity = self.active[number]
            if count != self.met or not activity.version:
                end = activity.go_on(1 / self.machine.slowdown(count, activity.arithmetic), self.now)
                heapq.heappush(self.events, (end, number, ENDED, activity.version))
        self.met = count

    # ---- links shared fairly

    def _share_links(self) -> None:
        """New rates for the transfers on links where one came or went, and for all that meet these somewhere."""
        if not self.changed:
            return
        links, numbers = self._together()
        self.changed = {}
        rates = self._fair_rates(links, numbers)
        for number in numbers:
            activity = self.active[number]
            if rates[number] != activity.rate:
                heapq.heappush(self.events, (activity.go_on(rates[number], self.now), number, ENDED, activity.version))

    def _together(self) -> tuple[list[str], list[int]]:
        """The links that the changed ones have to do with, by transfers that use both, and all transfers on them; in a fixed order."""
        links, pending = dict(self.changed), list(self.changed)
        numbers: dict[int, None] = {}
        while pending:
            for number in self.users.get(pending.pop(), ()):
                if number not in numbers:
                    numbers[number] = None
                    fresh = [link for link in self.active[number].links if link not in links]
                    links.update(dict.fromkeys(fresh))
                    pending += fresh
        return sorted(links), sorted(numbers)

    def _fair_rates(self, links: list[str], numbers: list[int]) -> dict[int, float]:
        """The max-min fair rates of the transfers `numbers`, bytes a second."""
        left = {link: self.machine.links[link] for link in links}
        waiting = {link: len(self.users.get(link, ())) for link in links}
        rates: dict[int, float] = {}
        while len(rates) < len(numbers):
            tightest = min((link for link in links if waiting[link]), key=lambda link: left[link] / waiting[link])
            share = left[tightest] / waiting[tightest]
            for number in self.users[tightest]:
                if number in rates:
                    continue
                rates[number] = share
                for link in self.active[number].links:
                    waiting[link] -= 1
                    left[link] = max(0.0, left[link] - share) if left[link] < math.inf else math.inf
        return rates


def replay(graph: TaskGraph, machine: Machine | None = None) -> Result:
    """What happens when, if the tasks of `graph` run on `machine`; without one, on the devices on which they were recorded.

    **Returns** a `Result`. **Raises** ArgumentError for a device that the machine has not, or a transfer where no link leads.

    >>> graph = TaskGraph()
    >>> first = [graph.work(f"work {number}", "gpu(0)", seconds=1) for number in range(2)]
    >>> last = graph.work("other", "gpu(1)", seconds=0.5, after=first[0])
    >>> replay(graph).makespan
    2.0
    """
    return Replay(graph, machine or Machine(name="as recorded")).run()


__all__ = ["replay"]
