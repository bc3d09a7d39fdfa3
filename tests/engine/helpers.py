"""What the tests of the engine share: operations that tell when they run, gates, and scripts in processes of their own."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import minimx as mx
from minimx import engine, nd
from minimx.engine import lanes
from minimx.nd.entry import invoke
from minimx.op import Kind, Op, Spec, attributes

ROOT = Path(__file__).parents[2]
PATIENT = 30.0  # seconds after which a test that waits for another thread gives up
LARGE = 40_000  # elements: too many for the pushing thread to run an operation on them at once


def examples(usual: int) -> int:
    """How many random programs or graphs to try: MINIMX_EXAMPLES, if that is set."""
    return int(os.environ.get("MINIMX_EXAMPLES", usual))


@attributes
class Call(Op):
    """data + 1, elementwise, by a kernel that calls `function` first."""

    name: ClassVar[str] = "call"
    kind = Kind.ELEMENTWISE

    function: Callable[[], Any]

    def infer(self, data: Spec) -> Spec:
        return data

    def kernel(self, xp: Any, data: Any, out: Any = None) -> Any:
        self.function()
        return xp.add(data, 1, out=out)


@attributes
class HeavyCall(Op):
    """data + 1, not elementwise: on large data a task of its own."""

    name: ClassVar[str] = "heavy_call"

    function: Callable[[], Any]

    def infer(self, data: Spec) -> Spec:
        return data

    def kernel(self, xp: Any, data: Any) -> Any:
        self.function()
        return data + 1


@attributes
class HeavyChange(Op):
    """Adds 1 to data in place; on large data a task of its own."""

    name: ClassVar[str] = "heavy_change"
    mutates = (0,)
    num_outputs = 0

    function: Callable[[], Any]

    def infer(self, data: Spec) -> tuple[Spec, ...]:
        return ()

    def kernel(self, xp: Any, data: Any) -> tuple[Any, ...]:
        self.function()
        data += 1
        return ()


def call(function: Callable[[], Any], data: Any, out: Any = None, heavy: bool = False) -> Any:
    """data + 1 as an operation whose kernel calls `function`."""
    return invoke((HeavyCall if heavy else Call)(function), [data], out)[0]


def explode() -> None:
    """What a failing kernel or function calls."""
    raise ValueError("boom")


def until(condition: Callable[[], Any]) -> None:
    """Return when `condition` holds, which another thread brings about. Fails after PATIENT seconds."""
    end = time.monotonic() + PATIENT
    while not condition():
        assert time.monotonic() < end, "what the test waits for never happened"
        time.sleep(0.0005)


class Gates:
    """Events that hold tasks back; all open when the test ends, so that no test leaves a thread behind."""

    def __init__(self) -> None:
        self.all: list[threading.Event] = []

    def event(self) -> threading.Event:
        self.all.append(threading.Event())
        return self.all[-1]

    def hold(self, *arrays: Any, context: Any = None) -> threading.Event:
        """An Event without which the arrays, or one worker of the lane of `context`, go on waiting. Its task has begun."""
        gate, begun = self.event(), threading.Event()

        def wait(*_: Any) -> None:
            begun.set()
            assert gate.wait(PATIENT)

        engine.push(wait, writes=arrays or [engine.Var()], context=context, name="gate")
        assert begun.wait(PATIENT)
        return gate


def pending(gates: Gates, size: int = 4, context: Any = None) -> tuple[Any, threading.Event]:
    """An array of ones whose value is not there before the Event is set."""
    array = nd.ones((size,), ctx=context)
    return array, gates.hold(array)


own_numbers = itertools.count(100)


def with_workers(count: int) -> Any:
    """A device of its own, whose lane has `count` workers: a lane keeps its threads, so that it cannot serve another test."""
    device = mx.cpu(next(own_numbers))
    with lanes.scheduler.lock:
        lanes.scheduler.lane(device).workers = count
    return device


def notes(error: BaseException) -> str:
    """All that an error says: its text and its notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


def script(code: str, *arguments: str, timeout: float = PATIENT, **environment: str) -> str:
    """The output of a Python program in a process of its own, which must end well. Warnings are errors there too."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        capture_output=True, text=True, timeout=timeout, env={**os.environ, **environment, "PYTHONPATH": path}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout
