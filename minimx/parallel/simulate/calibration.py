"""What this machine can do, found out by short measurements: the figures for predicting a step on lanes of the CPU, or on simulated GPUs.

Lanes share cores, caches and memory, and Python's lock. How much that costs depends on the work, so it is measured with two kinds of it:
a chain of dense layers, which is arithmetic, and a chain of sums of large arrays, which waits for memory; each on one lane, and on
several at the same time. How many times as long they take then is the *contention* of the machine. A task is taken for a mixture of the
two. Nothing of the step that is to be predicted is measured on more than one lane. Book: chapter 11.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import engine, nd, simulated
from ...base import ArgumentError, shown
from ...device import Context
from ...engine import Var
from ..kvstore import KVStore
from .graph import HOST
from .machine import Device, Machine
from .topologies import of_simulated_gpus

ROWS, WIDTH = 128, 512  # of a layer: 67 million FLOP, about a millisecond of a core
NUMBERS = 1 << 20  # of the arrays that are added: 12 MB in all, more than a core's caches hold
MOST = 1000  # layers or sums in a chain
WORSE_THAN_TURNS = 1.25  # lanes that take turns lose what caches held, but no more; beyond that something else was going on
TASKS = 50  # of no work, that tell what a task costs
KEYS, SMALL = 6, 1 << 15  # of a store: arrays that are small, and large enough to be tasks


@dataclass
class Chain:
    """The same operation again and again, each on what the one before gave: `lanes[0]` are the times on one lane, and so on.

    `length`: operations. A machine that has other things to do, too, hands out its cores in slices of milliseconds: what is short may get
    them at once where what is long has to share. So a chain should take about as long as the step that is to be predicted.
    """

    operands: list[tuple[Any, Any]]  # for each lane
    operation: Callable[[Any, Any], Any]
    length: int = 4
    lanes: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lanes = [[] for _ in self.operands]

    def run(self, lanes: int) -> float:
        """Seconds on some lanes at the same time."""
        start = time.perf_counter()
        values = [first for first, _ in self.operands[:lanes]]
        for _ in range(self.length):
            values = [self.operation(value, other) for value, (_, other) in zip(values, self.operands)]
        engine.waitall()
        return time.perf_counter() - start

    def fit(self, seconds: float) -> None:
        """Make it about so long."""
        self.run(1)
        each = min(self.run(1) for _ in range(3)) / self.length
        self.length = min(max(1, round(seconds / each)), MOST)

    def measure(self) -> None:
        """Measure it once on 1, 2, ... lanes."""
        for number, times in enumerate(self.lanes, 1):
            times.append(self.run(number))

    @property
    def each(self) -> float:
        """Seconds of an operation on one lane."""
        return statistics.median(self.lanes[0]) / self.length

    @property
    def contention(self) -> list[float]:
        """How many times as long it takes on 1, 2, ... lanes."""
        found = [1.0]
        for number, times in enumerate(self.lanes[1:], 2):
            slow = statistics.median(times) / statistics.median(self.lanes[0])
            found.append(min(max(found[-1], slow), WORSE_THAN_TURNS * number))
        return found


class Benchmarks:
    """Measurements on the lanes of `contexts`, which can be repeated: `measure` makes each once, `machine` takes medians."""

    def __init__(self, contexts: Sequence[Context]) -> None:
        self.contexts = list(contexts)
        layers = [(nd.ones((ROWS, WIDTH), ctx=each), nd.ones((WIDTH, WIDTH), ctx=each) / WIDTH) for each in self.contexts]
        self.layers = Chain(layers, lambda data, weight: nd.relu(nd.dot(data, weight)))
        self.sums = Chain([tuple(nd.ones((NUMBERS,), ctx=each) for _ in "ab") for each in self.contexts], _sum)  # type: ignore[misc]
        self.task: list[float] = []  # seconds of a task without work
        self.key: list[float] = []  # seconds that the front end takes for one key of a store
        self.values = [[nd.ones((SMALL,), ctx=each) for each in self.contexts] for _ in range(KEYS)]
        self.store = KVStore("device")
        for key, arrays in enumerate(self.values):
            self.store.init(key, arrays[0])
        engine.waitall()

    def fit(self, seconds: float) -> None:
        """Make chains that take about so long."""
        self.layers.fit(seconds)
        self.sums.fit(seconds)

    def measure(self) -> None:
        """Measure everything once."""
        self.layers.measure()
        self.sums.measure()
        self.task.append(_seconds(self._push_tasks) / TASKS)
        if len(self.contexts) > 1:
            self.key.append(_seconds(self._push_keys) / KEYS)
            engine.waitall()

    def _push_tasks(self) -> None:
        turn = Var()
        for _ in range(TASKS):
            engine.push(_nothing, writes=[turn], context=self.contexts[0])
        engine.wait(turn)

    def _push_keys(self) -> None:
        for key, arrays in enumerate(self.values):
            self.store.push(key, arrays)
            self.store.pull(key, arrays)

    def machine(self) -> Machine:
        """The machine that the medians of all measurements describe."""
        device = Device(
            flops=2 * ROWS * WIDTH * WIDTH / self.layers.each,
            bandwidth=3 * 4 * NUMBERS / self.sums.each,
            overhead=statistics.median(self.task),
        )
        on_gpus = simulated.gpus and not self.contexts[0].host
        machine = of_simulated_gpus() if on_gpus else Machine(name="this machine", sharing="in turn")
        machine.devices, machine.helping = {"": device, HOST: Device()}, True
        machine.contention, machine.memory_contention = self.layers.contention, self.sums.contention
        return machine

    @property
    def per_key(self) -> float:
        """Seconds that the front end takes for a key of a store."""
        return statistics.median(self.key) if self.key else 0.0


def _sum(one: Any, other: Any) -> Any:
    """A sum as a task of its own: together with others it would be made tile by tile, in a core's cache."""
    with engine.bulk(1):
        return one + other


def _nothing() -> None:
    """The work of a task that tells what a task costs."""


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def calibrate(contexts: Sequence[Context], repeat: int = 5) -> Machine:
    """This machine, as lanes of `contexts` see it: FLOP/s of products, bandwidth of adding, overhead of a task, contention of lanes.

    **Args** `repeat`: measurements of each, of which the medians count; about 20 ms each. **Raises** ArgumentError without contexts.
    """
    if not contexts or repeat < 1:
        raise ArgumentError(f"calibrate: contexts is {shown(contexts)}, repeat {repeat}; at least one of each is wanted")
    benchmarks = Benchmarks(list(contexts))
    for _ in range(repeat + 1):
        benchmarks.measure()
    return benchmarks.machine()


__all__ = ["Benchmarks", "calibrate"]
