"""Replaying a task graph on a machine: a simulation from event to event.

The rules are the engine's. A task is ready when all tasks that it comes after have ended; it then queues in its lane, where the highest
priority begins first, and of equals the one that was ready first (of these the one with the smaller number). A lane runs one task at a
time, or as many as its device has workers. Nothing that has begun is interrupted.

*Transfers.* Machines share links in one of two ways (`Machine.sharing`). "in turn": a transfer queues in the lane for copies of its
device, then for each link of its way, first come, first served, and has all of them for itself for latency + bytes / bandwidth. "fair":
its latency passes first; from then on all transfers under way get max-min fair rates (D. Bertsekas, R. Gallager, "Data networks", 1992,
6.5.2): the link on which the share is smallest gives each of its transfers an equal part, what these do not need elsewhere is shared out
among the others, and so on. Rates change whenever a transfer begins or ends.

*Contention.* Where lanes share what computes (`Machine.contention`), work slows down for as long as others work.

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


class Flow:
    """A transfer under way on links that it shares with others."""

    __slots__ = ("links", "left", "rate", "since", "version")

    def __init__(self, links: tuple[str, ...], nbytes: float, now: float) -> None:
        self.links = links
        self.left = nbytes  # bytes, at the time `since`
        self.rate = 0.0  # bytes a second from then on
        self.since = now
        self.version = 0  # of its end: each new rate makes the old one void


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
        self.flows: dict[int, Flow] = {}  # "fair": transfers under way,
        self.users: dict[str, dict[int, None]] = {}  # those of each link,
        self.changed: dict[str, None] = {}  # and the links where one came or went
        self.progress = 0.0  # of all that computes, in seconds of work, where lanes slow each other down
        self.computing: list[tuple[float, int]] = []  # a heap: (the progress at which it ends, number)
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
            self._share_links()
            when = self._next_time()
            if when is None:
                break
            self._pass(when)
            self._enter(self._end_tasks(self._due()))
        return Result(self.tasks, self.machine, self.start, self.end, self.ready, self.cause)

    def _next_time(self) -> float | None:
        """When something happens next."""
        while self.events and not self._valid(self.events[0]):
            heapq.heappop(self.events)
        soonest = self.events[0][0] if self.events else math.inf
        if self.computing:
            slow = self.machine.slowdown(len(self.computing))
            soonest = min(soonest, self.now + max(0.0, self.computing[0][0] - self.progress) * slow)
        return None if soonest == math.inf else soonest

    def _valid(self, event: tuple[float, int, str, int]) -> bool:
        """Whether an event is to happen; the ends of flows that have got another rate since are not."""
        _, number, kind, version = event
        flow = self.flows.get(number)
        return kind == BEGUN or (flow is None and math.isnan(self.end[number])) or (flow is not None and flow.version == version)

    def _pass(self, when: float) -> None:
        """Let time go on until then."""
        if self.computing:
            self.progress += (when - self.now) / self.machine.slowdown(len(self.computing))
        self.now = when

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
        if self.computing:
            slow = self.machine.slowdown(len(self.computing))
            first = self.computing[0][0]
            if self.now + max(0.0, first - self.progress) * slow <= self.now:
                self.progress = max(self.progress, first)  # rounding must not hold it up
                while self.computing and self.computing[0][0] <= first:
                    ended.append(heapq.heappop(self.computing)[1])
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
            self._leave_links(number)
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
                heapq.heappush(self.computing, (self.progress + seconds, number))
            else:
                heapq.heappush(self.events, (self.now + seconds, number, ENDED, 0))
            return
        way = self.ways[number]
        if way is None or not way.links:
            heapq.heappush(self.events, (self.now, number, ENDED, 0))
            return
        self.flows[number] = Flow(way.links, task.nbytes, self.now)
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

    def _leave_links(self, number: int) -> None:
        """A task has ended. If it was a transfer, others may use its links."""
        way = self.ways[number]
        if way is None:
            return
        if self.machine.sharing == "fair":
            flow = self.flows.pop(number, None)
            for link in () if flow is None else flow.links:
                del self.users[link][number]
                self.changed[link] = None
            return
        for link in way.links:
            self.turns[link].popleft()
        for other in dict.fromkeys(self.turns[link][0] for link in way.links if self.turns[link]):
            self.cause[other] = number
            self._go_if_first(other, self.ways[other].links)  # type: ignore[union-attr]  # who queues for links has a way

    # ---- links shared fairly

    def _share_links(self) -> None:
        """New rates for the transfers on links where one came or went, and for all that meet these somewhere."""
        if not self.changed:
            return
        links, numbers = self._together()
        self.changed = {}
        rates = self._fair_rates(links, numbers)
        for number in numbers:
            flow, rate = self.flows[number], rates[number]
            if rate == flow.rate:
                continue
            if self.now > flow.since:
                flow.left = max(0.0, flow.left - flow.rate * (self.now - flow.since))
            flow.rate, flow.since = rate, self.now
            flow.version += 1
            heapq.heappush(self.events, (self.now + flow.left / rate, number, ENDED, flow.version))

    def _together(self) -> tuple[list[str], list[int]]:
        """The links that the changed ones have to do with, by transfers that use both, and all transfers on them; in a fixed order."""
        links, pending = dict(self.changed), list(self.changed)
        numbers: dict[int, None] = {}
        while pending:
            for number in self.users.get(pending.pop(), ()):
                if number not in numbers:
                    numbers[number] = None
                    fresh = [link for link in self.flows[number].links if link not in links]
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
                for link in self.flows[number].links:
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
