"""Random programs of reads, writes, views, pushed functions and failures, and two ways to run them.

`run` executes a program on the engine as it is. `run_naively` executes it one instruction after the other under NaiveEngine,
and keeps book of what has failed: an instruction that reads something failed is skipped, and what it should have written has
failed with the same error. The engine's contract is that both end alike, value for value and error for error.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from minimx import cpu, engine, gpu, nd
from minimx.base import OutOfMemoryError
from minimx.device import capacity, copy_lane
from minimx.nd.entry import invoke
from minimx.nd.ndarray import NDArray
from minimx.op import Kind, Op, Spec, attributes
from minimx.storage import empty

REGISTERS = 5
SMALL, LARGE = 8, 40_000  # elements: run at once by the pushing thread; recorded, and fused in groups


class Boom(Exception):
    """The failure that programs inject."""


@attributes
class Reverse(Op):
    """A fresh array in reverse order. Not elementwise: a large one is a task of its own."""

    name: ClassVar[str] = "reverse_for_test"

    def infer(self, data: Spec) -> Spec:
        return data

    def kernel(self, xp: Any, data: Any) -> Any:
        return data[::-1].copy()


@attributes
class Explode(Op):
    """An elementwise operation whose kernel raises."""

    name: ClassVar[str] = "explode"
    kind = Kind.ELEMENTWISE

    number: int

    def infer(self, data: Spec) -> Spec:
        return data

    def kernel(self, xp: Any, data: Any, out: Any = None) -> Any:
        raise Boom(f"number {self.number}")


@attributes
class AddInto(Op):
    """data += value in the memory of data; with `number` >= 0 it fails half-way."""

    name: ClassVar[str] = "add_into"
    inputs: ClassVar[tuple[str, ...]] = ("data", "value")
    mutates: ClassVar[tuple[int, ...]] = (0,)

    number: int = -1

    @property
    def num_outputs(self) -> int:
        return 0

    def infer(self, data: Spec, value: Spec) -> tuple[Spec, ...]:
        return ()

    def kernel(self, xp: Any, data: Any, value: Any) -> tuple[Any, ...]:
        if self.number >= 0:
            data[: len(data) // 2] = -1
            raise Boom(f"number {self.number}")
        data += value
        return ()


@attributes
class Slow(Op):
    """data * 2 + 1 by a kernel that takes its time: a large one is a task of its own."""

    name: ClassVar[str] = "slow_for_test"

    step: Any

    def infer(self, data: Spec) -> Spec:
        return data

    def kernel(self, xp: Any, data: Any) -> Any:
        _delay(self.step)
        return data * 2 + 1


@attributes
class ExplodingCopy(Op):
    """A copy to another device that fails on the way."""

    name: ClassVar[str] = "exploding_copy"
    crosses_devices = True

    number: int
    source: Any
    target: Any

    def lane(self, context: Any) -> Any:
        return copy_lane(self.source, self.target)

    def infer(self, data: Spec) -> Spec:
        return data

    def kernel(self, xp: Any, data: Any) -> Any:
        raise Boom(f"number {self.number}")


@attributes
class Allocate(Op):
    """An operation that needs more memory than a GPU has."""

    name: ClassVar[str] = "allocate_for_test"

    number: int
    context: Any

    def infer(self, data: Spec) -> Spec:
        return data

    def kernel(self, xp: Any, data: Any) -> Any:
        if capacity(self.context) is not None:
            with contextlib.suppress(OutOfMemoryError):
                empty(Spec.of((capacity(self.context),), "float32"), self.context)
                raise AssertionError("there was memory enough")
        raise Boom(f"number {self.number}")


@dataclass(frozen=True)
class Step:
    """One instruction: what to do, with which registers, and a number that it may use."""

    what: str
    a: int
    b: int
    c: int
    number: int
    lazy: bool

    def __str__(self) -> str:
        return f"{self.what} r{self.a} r{self.b} r{self.c} {self.number}{' (lazy)' if self.lazy else ''}"


@dataclass(frozen=True)
class Program:
    steps: tuple[Step, ...]
    size: int
    lanes: int
    workers: int
    bulk: int
    gated: int  # this many registers are held back until `gate_opens`
    gate_opens: int  # position at which the gate opens
    devices: str = ""  # a letter each: c a CPU, g a GPU, between which arrays must be copied; by default all are CPUs

    def contexts(self) -> list[Any]:
        if self.devices:
            return [gpu(number) if kind == "g" else cpu(number) for number, kind in enumerate(self.devices)]
        first = 0 if self.workers == 1 else 4  # lanes keep their number of workers: two kinds of programs use other devices
        return [cpu(first + number) for number in range(self.lanes)]


Effect = tuple[list[int], Callable[[list[NDArray]], NDArray | None], str]


def at(array: NDArray, other: NDArray) -> NDArray:
    """`array` where it can be combined with `other`: itself in host memory, else a copy on the device of `other`."""
    return array if array.context.host and other.context.host else array.as_in_context(other.context)


def effect(step: Step, registers: list[NDArray]) -> Effect:
    """(registers read, function that does it, what becomes of r[a]): "new" r[a] is another array, "write" it is overwritten as a
    whole or, if r[a] is a view of an array, in part, "part" it is changed, "read" nothing."""
    a, b, c, number = step.a, step.b, step.c, step.number
    size = registers[a].size
    half, start = size // 2, number % (size // 2)
    stop = start + half

    def write(function: Callable[[list[NDArray]], Any]) -> Callable[[list[NDArray]], None]:
        def call(registers: list[NDArray]) -> None:
            function(registers)

        return call

    if step.what == "add":
        return [b, c], lambda r: r[b] + at(r[c], r[b]), "new"
    if step.what == "chain":
        return [b, c], lambda r: nd.maximum(r[b] * 0.5 + at(r[c], r[b]), r[b]) - 1, "new"
    if step.what == "reverse":
        return [b], lambda r: invoke(Reverse(), [r[b]])[0], "new"
    if step.what == "view":
        return [], lambda r: r[b].reshape((-1,)), "alias"
    if step.what == "detach":
        return [], lambda r: r[b].detach(), "alias"
    if step.what == "copy":
        return [b], lambda r: r[b].copyto(r[c].context), "new"
    if step.what == "iadd":
        return [a, b], write(lambda r: r[a].__iadd__(at(r[b], r[a]))), "write"
    if step.what == "out":
        return [b, c], write(lambda r: nd.maximum(at(r[b], r[a]), at(r[c], r[a]), out=r[a])), "write"
    if step.what == "fill":
        return [], write(lambda r: r[a].__setitem__(slice(None), number % 7)), "write"
    if step.what == "fill_part":
        return [], write(lambda r: r[a].__setitem__(slice(start, stop), number % 5)), "part"
    if step.what == "copy_part":  # r[a] and r[b] may be one array: the value is a view of what is overwritten
        return [b], write(lambda r: r[a].__setitem__(slice(start, stop), r[b][half - start : 2 * half - start] + 1)), "part"
    if step.what == "view_iadd":
        return [a, b], write(lambda r: r[a][start:stop].__iadd__(at(r[b][0:half], r[a]))), "part"
    if step.what == "index_write":
        index = [0, start, size - 1]
        return [a, b], write(lambda r: r[a].__setitem__(index, r[b][0:3])), "part"
    if step.what == "add_into":
        return [a, b], write(lambda r: invoke(AddInto(), [r[a], at(r[b], r[a])])), "part"
    if step.what == "push":
        moved = lambda r: [at(r[b], r[a]), at(r[c], r[a])]  # noqa: E731
        return [b, c, a], write(lambda r: engine.push(_combine(step), reads=moved(r), writes=[r[a]])), "part"
    if step.what == "push_view":
        part = lambda r: at(r[b][0:half], r[a])  # noqa: E731
        return [b, a], write(lambda r: engine.push(_accumulate(step), reads=[part(r)], writes=[r[a][start:stop]])), "part"
    if step.what == "heavy":
        return [b], lambda r: invoke(Slow(step), [r[b]])[0], "new"
    if step.what == "nested":
        return [b, a], write(lambda r: engine.push(_nested(step, r[a].context), reads=[at(r[b], r[a])], writes=[r[a]])), "part"
    if step.what == "explode_copy":
        return [b], lambda r: invoke(ExplodingCopy(number, r[b].context, r[c].context), [r[b]], None, r[c].context)[0], "new"
    if step.what == "out_of_memory":
        return [b], lambda r: invoke(Allocate(number, r[b].context), [r[b]])[0], "new"
    if step.what == "explode":
        return [b], lambda r: invoke(Explode(number), [r[b]])[0], "new"
    if step.what == "explode_out":
        return [b], write(lambda r: invoke(Explode(number), [at(r[b], r[a])], r[a])), "write"
    if step.what == "explode_into":
        return [a, b], write(lambda r: invoke(AddInto(number), [r[a], at(r[b], r[a])])), "part"
    assert step.what == "push_explode"
    return [b, a], write(lambda r: engine.push(_explode(step), reads=[at(r[b], r[a])], writes=[r[a]])), "part"


WHATS = (
    "add", "chain", "reverse", "view", "detach", "copy", "iadd", "out", "fill", "fill_part", "copy_part", "view_iadd", "index_write",
    "add_into", "push", "push_view", "explode", "explode_out", "explode_into", "push_explode", "read", "share", "wait_all",
)  # fmt: skip
STRESS = (*WHATS, "heavy", "nested", "explode_copy", "out_of_memory")
SYNCS = ("read", "share", "wait_all")
ON_GPUS = tuple(what for what in WHATS if what != "share")  # NumPy cannot see the memory of a GPU


def _delay(step: Step) -> None:
    if step.number % 3 == 0:
        time.sleep(step.number % 10 * 1e-4)  # a random delay is what is tested: other orders of tasks


def _combine(step: Step) -> Callable[..., None]:
    def combine(left: Any, right: Any, out: Any) -> None:
        _delay(step)
        out[...] = out * 0.5 + left - right

    return combine


def _accumulate(step: Step) -> Callable[..., None]:
    def accumulate(source: Any, out: Any) -> None:
        _delay(step)
        out += source * 1  # a copy: the two may overlap

    return accumulate


def _nested(step: Step, context: Any) -> Callable[..., None]:
    """A task that has tasks of its own on all lanes, also on the one that it runs in, and waits for them."""

    def nested(source: Any, out: Any) -> None:
        parts = [nd.full((3,), float(step.number + number), ctx=each) for number, each in enumerate((context, cpu(0), cpu(1)))]
        for part in parts:
            engine.push(_increment, writes=[part], context=part.context)
        total = parts[0] + parts[1].as_in_context(context) + parts[2].as_in_context(context)
        engine.push(_increment, writes=[total])
        total = invoke(Slow(step), [total])[0]
        out[...] = out * 0.5 + source + float(total.asnumpy()[0])

    return nested


def _increment(array: Any) -> None:
    array += 1


def _explode(step: Step) -> Callable[..., None]:
    def explode(source: Any, out: Any) -> None:
        _delay(step)
        out[: len(out) // 3] = -2
        raise Boom(f"number {step.number}")

    return explode


def start(program: Program) -> list[NDArray]:
    contexts = program.contexts()
    made = []
    for number in range(REGISTERS):
        values = np.arange(program.size, dtype=np.float32) % (number + 5)
        if number == 0 and not program.devices:
            made.append(nd.from_numpy(values))  # memory that somebody else sees: it must be written to, never replaced
        else:
            made.append(nd.array(values, ctx=contexts[number % len(contexts)]))
    return made


def told(error: BaseException) -> str:
    """What an error says, without the name that the engine puts before a kernel's message, and without notes."""
    return str(error).split("\n")[0].split(": ")[-1]


def outcome(array: NDArray) -> Any:
    """The value of an array, or what its failure says."""
    try:
        return array.asnumpy()
    except Exception as error:
        return told(error)


Outcome = Callable[[NDArray], Any]


def share(array: NDArray, shared: list[tuple[Any, NDArray]]) -> None:
    """Let NumPy see the memory of an array, and remember both."""
    shared.append((np.from_dlpack(array), array))


def seen_outside(shared: list[tuple[Any, NDArray]], end: Callable[[NDArray], Any]) -> list[Any]:
    """What NumPy sees of the shared arrays that have not failed in the end; that is, their values."""
    log: list[Any] = []
    for outside, array in shared:
        value = end(array)
        log += [value] if isinstance(value, str) else [value, outside.copy()]
        assert isinstance(value, str) or np.array_equal(value, outside)
    return log


def run(program: Program, outcome: Outcome = outcome) -> list[Any]:
    """All that the program reads, and all registers at its end: values, or what failures say. `outcome` reads them."""
    log: list[Any] = []
    shared: list[tuple[Any, NDArray]] = []
    gate = threading.Event()
    before = engine.set_bulk_size(program.bulk)
    try:
        registers = start(program)
        for number in range(program.gated):
            engine.push(lambda _: gate.wait(60), writes=[registers[number]], name="gate")
        for position, step in enumerate(program.steps):
            if position == program.gate_opens or step.what in SYNCS:
                gate.set()
            with engine.lazy() if step.lazy else contextlib.nullcontext():
                if step.what == "read":
                    log.append(outcome(registers[step.a]))
                elif step.what == "share":
                    with contextlib.suppress(Exception):
                        share(registers[step.a], shared)
                elif step.what == "wait_all":
                    with contextlib.suppress(Exception):
                        engine.waitall()
                else:
                    _, function, _ = effect(step, registers)
                    result = function(registers)
                    if result is not None:
                        registers[step.a] = result
        gate.set()
        log += [outcome(register) for register in registers]
        log += seen_outside(shared, outcome)
    finally:
        gate.set()
        engine.set_bulk_size(before)
        with contextlib.suppress(Exception):
            engine.waitall()
    return log


def run_naively(program: Program) -> list[Any]:
    """The same under NaiveEngine, with the failures kept in a table: Var -> what its failure says."""
    log: list[Any] = []
    failed: dict[Any, str] = {}
    registers = start(program)
    shared: list[tuple[Any, NDArray]] = []

    def state(array: NDArray) -> Any:
        return failed.get(array.var) or array.asnumpy()

    with engine.naive():
        for step in program.steps:
            if step.what == "read":
                log.append(state(registers[step.a]))
            elif step.what == "share":
                if registers[step.a].var not in failed:
                    share(registers[step.a], shared)
            elif step.what != "wait_all":
                reads, function, becomes = effect(step, registers)
                target = registers[step.a]
                if becomes == "part" or (becomes == "write" and target.offset >= 0):
                    reads = [*reads, step.a]
                failure = next((failed[registers[n].var] for n in reads if registers[n].var in failed), None)
                result = None
                if failure is None:
                    try:
                        result = function(registers)
                    except Exception as error:
                        failure = told(error)
                if becomes in ("new", "alias"):
                    registers[step.a] = result if result is not None else nd.zeros((program.size,), ctx=target.context)
                    target = registers[step.a]
                if failure is not None:
                    failed[target.var] = failure
                elif becomes == "write":
                    failed.pop(target.var, None)
        return log + [state(register) for register in registers] + seen_outside(shared, state)


def same(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether two logs are equal, bit for bit."""
    return len(left) == len(right) and all(
        type(one) is type(other) and (one == other if isinstance(one, str) else np.array_equal(one, other))
        for one, other in zip(left, right)
    )
