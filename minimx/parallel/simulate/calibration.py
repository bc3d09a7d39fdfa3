"""What this machine can do, found out by short measurements: the figures for predicting a step on lanes of the CPU, or on simulated GPUs.

Lanes share cores, caches and memory, and Python's lock. How much that costs depends on the work, so it is measured with work of the kind
that networks do: a chain of dense layers, on one lane, and on several at the same time. How many times as long it takes then is the
*contention* of the machine. Nothing of the step that is to be predicted is measured on more than one lane.
Book: chapter 11.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ... import engine, nd, simulated
from ...base import ArgumentError, shown
from ...device import Context
from ...engine import Var
from ..kvstore import KVStore
from .graph import HOST
from .machine import Device, Machine
from .topologies import of_simulated_gpus

ROWS, WIDTH, LAYERS = 128, 512, 4  # of the chain: about 270 million FLOP, some milliseconds of a core
MOST_LAYERS = 1000
WORSE_THAN_TURNS = 1.25  # lanes that take turns lose what caches held, but no more; beyond that something else was going on
NUMBERS = 1 << 20  # of the arrays that are added
TASKS = 50  # of no work, that tell what a task costs
KEYS, SMALL = 6, 1 << 15  # of a store: arrays that are small, and large enough to be tasks


@dataclass
class Benchmarks:
    """Measurements on the lanes of `contexts`, which can be repeated: `measure` makes each once, `machine` takes medians.

    `layers`: of the chain. A machine that has other things to do, too, hands out its cores in slices of milliseconds: what is short may
    get them at once where what is long has to share. So the chain should take about as long as the step that is to be predicted.
    """

    contexts: Sequence[Context]
    layers: int = LAYERS
    alone: list[float] = field(default_factory=list)  # seconds of the chain on the first lane
    together: list[list[float]] = field(default_factory=list)  # on 2, 3, ... lanes at the same time
    adding: list[float] = field(default_factory=list)  # seconds of adding two arrays
    task: list[float] = field(default_factory=list)  # seconds of a task without work
    key: list[float] = field(default_factory=list)  # seconds that the front end takes for one key of a store

    def __post_init__(self) -> None:
        self.together = [[] for _ in self.contexts[1:]]
        self.inputs = [nd.ones((ROWS, WIDTH), ctx=context) for context in self.contexts]
        self.weights = [nd.ones((WIDTH, WIDTH), ctx=context) / WIDTH for context in self.contexts]
        self.large = [nd.ones((NUMBERS,), ctx=self.contexts[0]) for _ in range(2)]
        self.values = [[nd.ones((SMALL,), ctx=context) for context in self.contexts] for _ in range(KEYS)]
        self.store = KVStore("device")
        for key, arrays in enumerate(self.values):
            self.store.init(key, arrays[0])
        engine.waitall()

    def fit(self, seconds: float) -> None:
        """Make the chain about so long."""
        self._chains(1)
        layer = min(self._chains(1) for _ in range(3)) / self.layers
        self.layers = min(max(1, round(seconds / layer)), MOST_LAYERS)

    def measure(self) -> None:
        """Measure everything once."""
        self.alone.append(self._chains(1))
        for number, times in enumerate(self.together, 2):
            times.append(self._chains(number))
        self.adding.append(_seconds(lambda: (self.large[0] + self.large[1]).wait_to_read()))
        turn = Var()

        def tasks() -> None:
            for _ in range(TASKS):
                engine.push(_nothing, writes=[turn], context=self.contexts[0])
            engine.wait(turn)

        self.task.append(_seconds(tasks) / TASKS)
        if len(self.contexts) > 1:
            self.key.append(_seconds(self._push_keys) / KEYS)
            engine.waitall()

    def _chains(self, lanes: int) -> float:
        """Seconds of the chain on some lanes at the same time."""

        def run() -> None:
            outputs = list(self.inputs[:lanes])
            for _ in range(self.layers):
                outputs = [nd.relu(nd.dot(x, weight)) for x, weight in zip(outputs, self.weights)]
            engine.waitall()

        return _seconds(run)

    def _push_keys(self) -> None:
        for key, arrays in enumerate(self.values):
            self.store.push(key, arrays)
            self.store.pull(key, arrays)

    def machine(self) -> Machine:
        """The machine that the medians of all measurements describe."""
        contention = [1.0]
        for lanes, times in enumerate(self.together, 2):
            slow = statistics.median(times) / statistics.median(self.alone)
            contention.append(min(max(contention[-1], slow), WORSE_THAN_TURNS * lanes))
        device = Device(
            flops=2 * ROWS * WIDTH * WIDTH * self.layers / statistics.median(self.alone),
            bandwidth=3 * 4 * NUMBERS / statistics.median(self.adding),
            overhead=statistics.median(self.task),
        )
        machine = (
            of_simulated_gpus()
            if simulated.gpus and not self.contexts[0].host
            else Machine(name="this machine", sharing="in turn")
        )
        machine.devices = {"": device, HOST: Device()}
        machine.contention, machine.helping = contention, True
        return machine

    @property
    def per_key(self) -> float:
        """Seconds that the front end takes for a key of a store."""
        return statistics.median(self.key) if self.key else 0.0


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
