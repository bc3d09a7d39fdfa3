"""Recording a step that the engine really runs, as a task graph: its tasks with their lanes, durations and dependencies.

The front end's own time becomes work, too, in the lane "host": what it did between two tasks that it queued, and the small operations
that it ran at once. A task comes after the piece of the front end that queued it, and a piece of the front end after what it waited for.
So a replay on the machine where a step was recorded takes about as long as the step, and one on another machine knows what the front end
does not let happen sooner. (H. Zhu, A. Phanishayee, G. Pekhimenko, "Daydream: accurately estimating the efficacy of optimizations for DNN
training", 2020, makes such graphs of traces of GPUs.) Book: chapter 11.
"""

from __future__ import annotations

import bisect
import contextlib
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ... import simulated
from ...base import ArgumentError, shown
from ...device import num_gpus
from ...engine.events import clock, watch
from ...engine.front import block_shortcuts
from ...engine.lanes import scheduler
from ...nd import NDArray
from .graph import HOST, Task, TaskGraph, Transfer, Work
from .recorder import Entry, Recorder


@contextlib.contextmanager
def record(parameters: Any = None, batch: int | None = None, parts: bool = True) -> Iterator[TaskGraph]:
    """A scope whose tasks become a graph, which is there when the scope is left and everything in it has run.

    **Args** `parameters`: those whose gradients the step computes, so that `data_parallel` can add them up: a ParameterDict, a list of
    Parameters, or a dict from names to the arrays of their gradients. `batch`: the samples of the step. `parts`: cut a program where each
    gradient is complete, so that one can be sent while the rest is computed. (The engine cuts programs, too, but into fewer pieces, and
    only where gradients are added over several devices.) Small operations take the long way meanwhile, but the engine decides as always
    what becomes a task. **Raises** MXNetError if somebody records already.

    >>> x = mx.nd.ones((400, 400))
    >>> with record() as graph:
    ...     y = mx.nd.dot(mx.nd.dot(x, x), x)
    >>> [(task.name, task.flops) for task in graph if task.device != "host"]
    [('dot', 128000000.0), ('dot', 128000000.0)]
    """
    scheduler.drain()  # what came before is no part of it
    graph = TaskGraph(batch=batch)
    recorder = Recorder()
    watch.record(recorder)
    watch.add(recorder.heard, *_kinds(parts))
    block_shortcuts(1)
    try:
        yield graph
    finally:
        recorder.end = clock()
        try:
            scheduler.drain()
        finally:
            watch.remove(recorder.heard)
            watch.record(None)
            block_shortcuts(-1)
    _fill(graph, recorder, gradients_of(parameters))


def _kinds(parts: bool) -> list[str]:
    """What the recorder listens to beside tasks. A task on a GPU ends when its kernels are launched, unless somebody watches operators."""
    kinds = ["programs"] if parts else []
    return [*kinds, "operators"] if num_gpus() and not simulated.gpus else kinds


def recorded(
    step: Callable[[], object], parameters: Any = None, batch: int | None = None, repeat: int = 7, warm: int = 2
) -> TaskGraph:
    """The graph of `step`, which is called again and again: its usual form, and of each task the median of its durations.

    **Args** `warm`: calls before the first that is recorded, so that everything is compiled and allocated; the others as `record`.
    """
    if repeat < 1:
        raise ArgumentError(f"recorded: repeat is {shown(repeat)}; at least 1 is wanted")
    for _ in range(warm):
        step()
    graphs = []
    for _ in range(repeat):
        with record(parameters, batch) as graph:
            step()
        graphs.append(graph)
    return typical(graphs)


def typical(graphs: Sequence[TaskGraph]) -> TaskGraph:
    """One graph for many of the same step.

    Which small operations share a task depends on how fast the front end happens to be, so that graphs can differ in their form. Of those
    of the most frequent form each task gets the median of its durations.
    """
    if not graphs:
        raise ArgumentError("typical: there are no graphs")
    forms = [tuple((task.lane, task.after, task.makes, task.uses) for task in graph) for graph in graphs]
    usual, _ = Counter(forms).most_common(1)[0]
    chosen = [graph for graph, form in zip(graphs, forms) if form == usual]
    first = chosen[0]
    tasks: list[Task] = []
    for number, task in enumerate(first):
        others = [graph[number] for graph in chosen]
        task = replace(task, seconds=statistics.median(each.seconds or 0.0 for each in others))
        if isinstance(task, Work):
            task = replace(task, overhead=statistics.median(each.overhead or 0.0 for each in others if isinstance(each, Work)))
        tasks.append(task)
    return TaskGraph(tasks, dict(first.parameters), first.batch)


def gradients_of(parameters: Any) -> dict[str, list[NDArray]]:
    """The arrays of the gradient of each parameter, by its name. **Raises** ArgumentError for what has none."""
    if parameters is None:
        return {}
    if isinstance(parameters, Mapping) or callable(getattr(parameters, "values", None)):
        items = list(parameters.items())
    elif isinstance(parameters, (list, tuple)):
        items = [(getattr(each, "name", f"{number}"), each) for number, each in enumerate(parameters)]
    else:
        raise ArgumentError(
            f"record: parameters are net.collect_params(), a list, or a dict of gradients by name; got {shown(parameters)}"
        )
    found: dict[str, list[NDArray]] = {}
    for name, each in items:
        if getattr(each, "grad_req", "write") == "null":
            continue
        arrays = each.list_grad() if callable(getattr(each, "list_grad", None)) else each
        listed = list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]
        if not listed or not all(isinstance(array, NDArray) for array in listed):
            raise ArgumentError(f"record: {name!r} is neither a Parameter nor an array with a gradient, but {shown(each)}")
        found[str(name)] = listed
    return found


# ---- from entries to a graph


def _fill(graph: TaskGraph, recorder: Recorder, gradients: Mapping[str, Sequence[NDArray]]) -> None:
    """Put what was recorded into the graph. `gradients`: the arrays of each parameter's gradient, one for each device."""
    graph.parameters = {name: float(arrays[0].spec.nbytes) for name, arrays in gradients.items()}
    _find_roles(recorder, gradients)
    overheads = _overheads(recorder)
    number_of: dict[Entry, int] = {}
    host = _Host(graph, recorder, number_of)
    for entry in recorder.entries:
        if entry.device == HOST:
            host.until(entry.closed, "front end")
            number_of[entry] = host.ran(entry)
            continue
        pushed = host.until(entry.closed, f"queue {entry.name}")
        after = tuple(sorted({number_of[before] for before in entry.before} | set(pushed)))
        for task in _tasks(entry, overheads[entry]):
            number_of[entry] = graph.add(replace(task, after=after))
            after = (number_of[entry],)
    host.until(recorder.end, "front end")
    host.finish()


class _Host:
    """The front end as a chain of works, which is cut wherever it queues, runs or waits for something."""

    def __init__(self, graph: TaskGraph, recorder: Recorder, number_of: dict[Entry, int]) -> None:
        self.graph = graph
        self.number_of = number_of
        self.waits = recorder.waits
        self.reached = recorder.begin  # up to where it has been written down
        self.last: tuple[int, ...] = ()  # its last work
        self.pending: list[Entry] = []  # what it has waited for since

    def until(self, when: float, name: str) -> tuple[int, ...]:
        """Write down what it did before `when`; its last work."""
        while self.waits and self.waits[0][0] <= when:
            start, end, reasons = self.waits.pop(0)
            self._write(start, name)
            self.reached = max(self.reached, end)
            self.pending += reasons
            if end > when:
                return self.last  # a lane queued it while it waited
        self._write(when, name)
        return self.last

    def _write(self, when: float, name: str) -> None:
        if when > self.reached:
            self._add(Work(name, HOST, seconds=when - self.reached, overhead=0.0, scales=False))
            self.reached = when

    def _add(self, work: Work) -> None:
        """Its next work comes after its last one, and after what it has waited for."""
        waited = {self.number_of[entry] for entry in self.pending}
        self.pending = []
        self.last = (self.graph.add(replace(work, after=tuple(sorted(waited | set(self.last))))),)

    def ran(self, entry: Entry) -> int:
        """An operation that it ran at once."""
        self.pending += entry.before
        seconds = max(0.0, entry.end - max(entry.start, self.reached))
        sizes = (entry.flops, entry.read, entry.written)
        roles = (tuple(entry.makes), tuple(entry.uses))
        self._add(Work(entry.name, HOST, *sizes, seconds, 0.0, "", (), 0, *roles, scales=False))
        self.reached = max(self.reached, entry.end)
        return self.last[0]

    def finish(self) -> None:
        """It ends when it has seen the last that it waited for."""
        if self.pending:
            self._add(Work("front end", HOST, seconds=0.0, overhead=0.0, scales=False))


def _tasks(entry: Entry, overhead: float) -> list[Task]:
    """An entry as a task: a copy over a link is a transfer, and a program with gradients is cut where each of them is complete."""
    stream = entry.lane.removeprefix(entry.device).strip()
    makes, uses = tuple(entry.makes), tuple(entry.uses)
    seconds = entry.end - entry.start
    if entry.copy is not None and stream:
        source, target = str(entry.copy.source), str(entry.copy.target)
        return [Transfer(entry.name, source, target, entry.read, seconds, (), entry.priority, makes, uses)]
    whole = Work(
        entry.name, entry.device, entry.flops, entry.read, entry.written, seconds, overhead, stream, (), entry.priority, makes, uses,
        scales=not uses,
    )  # fmt: skip
    cuts = sorted({when for when in entry.makes.values() if entry.start < when < entry.end})
    if not cuts:
        return [whole]
    pieces: list[Task] = []
    for low, high in zip([entry.start, *cuts], [*cuts, entry.end]):
        sizes = [size for node, *size in entry.sizes if low < min(entry.inside.get(node, low), entry.end) <= high]
        flops, read, written = (sum(column) for column in zip(*sizes)) if sizes else (0.0, 0.0, 0.0)
        done = tuple(name for name, when in entry.makes.items() if low < when <= high or (high == entry.end < when))
        pieces.append(
            replace(
                whole, name=f"{entry.name}, part {len(pieces) + 1}", flops=flops, read=read, written=written, seconds=high - low,
                overhead=0.0 if pieces else overhead, makes=done,
            )
        )  # fmt: skip
    return pieces


def _overheads(recorder: Recorder) -> dict[Entry, float]:
    """For each task what passed between the moment at which it could have begun, and its beginning."""
    found: dict[Entry, float] = {}
    tasks = [entry for entry in recorder.entries if entry.device != HOST]
    ends: dict[str, list[float]] = {}  # of the tasks of each lane
    for entry in sorted(tasks, key=lambda each: each.end):
        ends.setdefault(entry.lane, []).append(entry.end)
    for entry in tasks:
        ready = max([entry.closed, *(before.end for before in entry.before)])
        ended = bisect.bisect_right(ends[entry.lane], entry.start)  # as many as had when it began
        lane_free = ends[entry.lane][ended - 1] if ended else 0.0
        found[entry] = max(0.0, entry.start - max(ready, lane_free))
    return found


def _find_roles(recorder: Recorder, gradients: Mapping[str, Sequence[NDArray]]) -> None:
    """Which entries complete the gradients of which parameters, and when; and which read them then."""
    for name, arrays in gradients.items():
        for array in arrays:
            use = recorder.uses.get(array.var)
            if use is None or use.writer is None:
                continue
            writer = use.writer
            giver = writer.givers[use.output] if use.output < len(writer.givers) else ""
            writer.makes[name] = writer.inside.get(giver, writer.end)
            for reader in use.readers:
                reader.uses.append(name)


__all__ = ["gradients_of", "record", "recorded", "typical"]
