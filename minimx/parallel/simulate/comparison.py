"""Predicted beside measured: a step on one lane, from which that on several is predicted, and then measured.

What is known before the prediction: the graph of the step on the first device with its part of the batch (recording.py), and what
calibration.py finds out about the machine. What it does not know is the step on several devices. Measurements of all kinds take turns,
so that what else the machine has to do meets them alike, and medians count. Book: chapter 11.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ... import engine
from ...base import ArgumentError, shown
from ...device import Context
from ...profiler import Timeline, timeline
from ...profiler.layout import in_words
from ..kvstore import KVStore
from ..reduction import one_memory
from .calibration import Benchmarks
from .collectives import Site, Tree
from .graph import TaskGraph
from .machine import Machine
from .recording import record, typical
from .replicas import Replicas, Step
from .result import Bar, Result
from .simulator import replay

Make = Callable[[Sequence[Context], int], tuple[Callable[[], object], Any]]


@dataclass(frozen=True)
class Comparison:
    """A step as it was predicted and as it was.

    `predicted`, `measured`: seconds; `alone`: of the step on the first device with its part of the batch, measured; `replayed`: the same
    step as its recorded graph predicts it. `graph` is that of one device, with times stretched so that it takes `alone`; `result` the
    simulation of all, `bars` one measured run of all.
    """

    predicted: float
    measured: float
    alone: float
    replayed: float
    graph: TaskGraph
    machine: Machine
    result: Result
    bars: list[Bar]

    @property
    def error(self) -> float:
        """By what part the prediction is too long (above 0) or too short."""
        return self.predicted / self.measured - 1

    def timelines(self) -> tuple[Timeline, Timeline]:
        """The predicted and the measured step as pictures on one scale. The front end is a lane of the predicted one only."""
        begin = min(bar[2] for bar in self.bars)
        span = max(self.predicted, *(bar[3] - begin for bar in self.bars))
        lanes = sorted({bar[0] for bar in self.bars})
        measured = timeline(self.bars, title="measured", start=0.0, end=span, lanes=lanes)
        return self.result.timeline(title="predicted", end=span), measured

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self.timelines())

    def __str__(self) -> str:
        tables = (self.machine.contention, self.machine.memory_contention)
        slow, slow_memory = (", ".join(f"{each:.2f}" for each in table) for table in tables)
        return (
            f"one device, its part of the batch: {in_words(self.replayed)} predicted, {in_words(self.alone)} measured\n"
            f"all devices: {in_words(self.predicted)} predicted, {in_words(self.measured)} measured ({self.error:+.0%})\n"
            f"contention of 1, 2, ... lanes: {slow} for arithmetic, {slow_memory} for memory"
        )


def compare(make: Make, contexts: Sequence[Context], batch: int, repeat: int = 9) -> Comparison:
    """Predict a step of a gluon Trainer whose store is of kind "device" and updates, as both are by default, and measure it.

    **Args** `make`: a function of (contexts, batch) that builds a network and its data, `batch` samples shared out among the contexts, and
    returns a step (a function that computes, updates and waits for the end of all of it) and the network's parameters.
    `contexts`: cpu(0), cpu(1), ... or simulated GPUs. `repeat`: measurements of each kind.
    Every device should have a core, and BLAS one thread (OMP_NUM_THREADS=1), or the step on one lane has more than its part.
    **Raises** ArgumentError for a batch that is not shared out evenly.
    """
    count = len(contexts)
    if repeat < 1:
        raise ArgumentError(f"compare: repeat is {shown(repeat)}; at least 1 is wanted")
    if not count or batch % count or batch < count:
        raise ArgumentError(f"compare: a batch of {shown(batch)} cannot be shared out evenly among {count} devices")
    step, parameters = make([contexts[0]], batch // count)
    whole_step, _ = make(list(contexts), batch)
    for warm in (step, whole_step, step, whole_step):
        warm()
    benchmarks = Benchmarks(list(contexts))
    benchmarks.fit(min(_timed(step) for _ in range(3)))
    graphs: list[TaskGraph] = []
    alone: list[float] = []
    measured: list[float] = []
    for _ in range(repeat):
        with record(parameters, batch // count) as graph:
            step()
        graphs.append(graph)
        alone.append(_timed(step))
        benchmarks.measure()
        measured.append(_timed(whole_step))
    graph, machine = typical(graphs), benchmarks.machine()
    replayed, one = replay(graph, machine).makespan, statistics.median(alone)
    graph = graph.stretched(one / replayed)  # recording, too, took time
    result = replay(on_lanes(graph, contexts, machine, benchmarks.per_key), machine)
    with engine.trace() as bars:
        whole_step()
    return Comparison(result.makespan, statistics.median(measured), one, replayed, graph, machine, result, bars)


def on_lanes(
    graph: TaskGraph, contexts: Sequence[Context], machine: Machine, per_key: float = 0.0, bucket: float | None = None
) -> TaskGraph:
    """The graph of a step of several devices of one process, as gluon's Trainer and a store of kind "device" make it.

    One front end queues the work of all devices in turn, then the sums, by parameter. Gradients are added along a tree, in the lanes of
    the devices; the first device updates, and the weights go back. `per_key`: seconds that the front end takes for each; `bucket`: bytes
    of gradients that are added by one task, by default the store's where devices share a memory, and 0, each alone, where not.
    """
    names = [str(context) for context in contexts]
    if len(names) == 1:
        return graph
    if bucket is None:
        bucket = KVStore.bucket if one_memory(contexts) else 0.0
    step = Step(graph, bucket, overlap=True)
    site = Site(TaskGraph(), machine, names, stream="", ordered=False)
    return Replicas(step, site, Tree(), elsewhere=True, shared_host=True, per_key=per_key).written()


def _timed(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


__all__ = ["Comparison", "compare", "on_lanes"]
