"""The engine under load and in unusual places: many pushes, many threads, fork, exit, Ctrl-C, finalizers, tasks that push and wait."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import MXNetError, cpu, engine, nd
from minimx.engine import lanes
from minimx.engine.lanes import scheduler

from .helpers import LARGE, PATIENT, Call, Gates, call, explode, pending, script, until

pytestmark = pytest.mark.timeout(60)
posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def in_threads(count: int, function: Any) -> None:
    """Run function(0), function(1), ... in a thread each. Raises the first error of any."""
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            function(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENT)
        assert not thread.is_alive()
    for error in errors:
        raise error


@pytest.fixture
def threads_change_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


# ---- many pushes


@pytest.mark.usefixtures("threads_change_often")
def test_ten_thousand_pushes_from_eight_threads() -> None:
    """Each thread adds to shared arrays and to its own, in all the ways there are; the sums are those of any order."""
    functions, small, large = nd.zeros((4,)), nd.zeros((4,)), nd.zeros((LARGE,))
    sums: list[float] = []

    def add(value: np.ndarray) -> None:
        value += 1

    def push(number: int) -> None:
        one, two, own = small, large, nd.zeros((4,), ctx=cpu(number % 4))
        with engine.bulk(1 + number):
            for position in range(250):
                engine.push(add, writes=[functions], context=cpu(position % 4))
                one += 1
                own[number % 4 : number % 4 + 1] += 1
                own += 1
                if position % 25 == 0:
                    two += 1
                    own.wait_to_read()
                else:
                    call(lambda: None, one)
        sums.append(float(own.sum().asscalar()))

    in_threads(8, push)
    assert functions.asnumpy().tolist() == small.asnumpy().tolist() == [2000] * 4
    assert (large.asnumpy() == 80).all()
    assert sums == [250 * 5] * 8


def resident() -> int:
    """Bytes of physical memory that this process uses."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured through /proc")
def test_a_million_pushes_take_bounded_memory() -> None:
    token, count = engine.Var(), 0

    def step() -> None:
        nonlocal count
        count += 1

    queued, x = 0, nd.ones((4,))
    for position in range(1_000_000):
        if position == 50_000:
            gc.collect()
            before = resident()
        if position % 2:
            engine.push(step, writes=[token])
        else:
            x + 1
        if position % 1000 == 0:
            queued = max(queued, len(scheduler.in_flight))
    engine.waitall()
    assert count == 500_000
    assert queued <= lanes.MAX_TASKS + 1
    assert resident() - before < 32 << 20


def test_recorded_work_takes_bounded_memory() -> None:
    """Two hundred arrays of 4 MB are made, one after the other; a few are there at a time."""
    x = nd.ones((1 << 20,))
    x.wait_to_read()
    before = mx.storage.stats()["live"]
    mx.storage.reset_peak()
    for _ in range(200):
        x = x * 0.5 + 0.5
    x.wait_to_read()
    assert mx.storage.stats()["peak"] - before <= 8 * 4 << 20


def test_a_long_chain_of_tasks(gates: Gates) -> None:
    """Deeper than Python's stack: whoever walks along predecessors must not recurse."""
    x, gate = pending(gates)
    done = threading.Event()

    def task(_: np.ndarray) -> None:
        with engine.bulk(1):
            y = x
            for _ in range(lanes.MAX_TASKS - 10):
                y = call(lambda: None, y + x)  # two ways to each predecessor
        engine.waitall()  # inside a task: returns, since all that is left waits for it
        done.set()

    engine.push(task, writes=[x])
    gate.set()
    assert done.wait(PATIENT)


# ---- tasks that push and wait


def test_a_task_that_pushes_thousands_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MAX_TASKS", 10)
    token, ran = engine.Var(), []

    def task() -> None:
        for number in range(2000):
            engine.push(lambda number=number: ran.append(number), writes=[token])

    engine.push(task)
    engine.waitall()
    assert ran == list(range(2000))


def test_a_task_that_is_held_back_does_not_run_strangers(gates: Gates, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that waits for this task must not run on top of it: it would wait for ever, and be told so."""
    monkeypatch.setattr(lanes, "MAX_TASKS", 5)
    result, found = engine.Var(), []

    def stranger() -> None:
        engine.wait(result)
        found.append("after the result")

    def task() -> None:
        for _ in range(20):
            engine.push(stranger, context=cpu(1))

    in_main = gates.hold(context=cpu(1))
    engine.push(task, writes=[result], context=cpu(0))
    until(lambda: not any(each.name == "task" for each in scheduler.in_flight))
    in_main.set()
    engine.waitall()
    assert found == ["after the result"] * 20


def test_tasks_that_wait_for_each_others_results_in_order() -> None:
    """Each function waits inside for what the previous one wrote, on lanes with one worker."""
    x = nd.zeros((4,))

    def step(number: int, target: np.ndarray) -> None:
        target[:] = (previous[number].asnumpy() if number else 0) + 1

    previous = [nd.zeros((4,)) for _ in range(21)]
    for number in range(20):
        engine.push(lambda target, number=number: step(number, target), writes=[previous[number + 1]], context=cpu(number % 2))
    assert previous[20].asnumpy().tolist() == [20] * 4
    assert x.asnumpy().tolist() == [0] * 4


def test_a_task_that_waits_for_what_waits_for_it_raises() -> None:
    x = nd.ones((4,))
    later: list[nd.NDArray] = []
    pushed = threading.Event()

    def task(_: np.ndarray) -> None:
        assert pushed.wait(PATIENT)
        later[0].asnumpy()

    engine.push(task, writes=[x], name="selfish")
    later.append(x + 1)
    pushed.set()
    with pytest.raises(MXNetError, match="selfish waits for an array that it, or work queued behind it, writes"):
        x.asnumpy()
    with pytest.raises(MXNetError, match="selfish"):
        later[0].asnumpy()
    fresh = nd.ones((4,))
    engine.push(lambda value: fresh.wait_to_write(), writes=[fresh])
    with pytest.raises(MXNetError, match="would wait for ever"):
        fresh.asnumpy()


def test_two_tasks_that_wait_for_each_other_raise() -> None:
    x, y, both = nd.ones((4,)), nd.ones((4,)), threading.Barrier(2)

    def task(other: nd.NDArray) -> None:
        both.wait(PATIENT)
        other.asnumpy()

    engine.push(lambda _: task(y), writes=[x], context=cpu(0))
    engine.push(lambda _: task(x), writes=[y], context=cpu(1))
    until(lambda: not scheduler.in_flight)
    with pytest.raises(MXNetError, match="would wait for ever"):
        engine.waitall()


# ---- threads that die, Ctrl-C, finalizers


def test_threads_that_die_with_open_segments(gates: Gates) -> None:
    x, gate = pending(gates)
    made: list[nd.NDArray] = []
    in_threads(8, lambda number: made.append(x + number))
    gate.set()
    assert sorted(float(each[0].asscalar()) for each in made) == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("sync", ["asnumpy", "waitall", "wait"])
def test_ctrl_c_while_waiting_leaves_the_engine_usable(gates: Gates, sync: str) -> None:
    x, gate = pending(gates)
    y = x + 1
    waits = {"asnumpy": y.asnumpy, "waitall": engine.waitall, "wait": lambda: engine.wait(y)}[sync]

    def press() -> None:
        until(lambda: scheduler.waiting)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        waits()
    thread.join()
    gate.set()
    assert y.asnumpy()[0] == 2
    engine.waitall()


@pytest.mark.parametrize("heavy", [False, True])
def test_ctrl_c_while_helping_is_raised_and_loses_only_that_result(gates: Gates, heavy: bool) -> None:
    gates.hold(context=cpu(0))
    x = nd.ones((LARGE,))
    bad = call(lambda: os.kill(os.getpid(), signal.SIGINT), x, heavy=heavy)
    fine = call(lambda: None, x, heavy=heavy)
    with pytest.raises(KeyboardInterrupt):
        bad.asnumpy()
    engine.wait(fine)
    for _ in range(2):
        with pytest.raises(MXNetError, match="interrupted by Ctrl-C while it ran; compute it again"):
            bad.asnumpy()
    assert fine.asnumpy()[0] == 2


@pytest.mark.parametrize("sync", ["asnumpy", "waitall"])
@pytest.mark.parametrize("ready", [False, True])
def test_ctrl_c_between_closing_a_task_and_its_lane_loses_nothing(
    gates: Gates, monkeypatch: pytest.MonkeyPatch, ready: bool, sync: str
) -> None:
    x = nd.ones((LARGE,))
    x.wait_to_read()
    gate = gates.hold(context=cpu(0))  # no worker closes the segment
    y = x + 1

    def interrupted(task: Any, *_: Any, **__: Any) -> None:
        task.state = lanes.READY if ready else task.state
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(scheduler, "_make_ready", interrupted)
        with pytest.raises(KeyboardInterrupt):
            y.asnumpy()
    if sync == "waitall":
        gate.set()
        engine.waitall()
    assert y.asnumpy()[0] == 2
    gate.set()
    engine.waitall()
    assert not scheduler.in_flight


def test_an_interrupted_recording_can_still_be_waited_for(gates: Gates, monkeypatch: pytest.MonkeyPatch) -> None:
    from minimx.engine import segment

    x = nd.ones((LARGE,))
    y = x + 1

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(segment, "Record", interrupted)
        with pytest.raises(KeyboardInterrupt):
            x += y
    with pytest.raises(MXNetError, match="Ctrl-C"):
        x.asnumpy()
    x[:] = 3
    assert x.asnumpy()[0] == 3
    assert y.asnumpy()[0] == 2


def test_finalizers_that_use_arrays() -> None:
    """The collector may run one at any point of the engine, even while its lock is held; it computes, or is told that it cannot."""
    told: list[str] = []
    ran = 0

    class Cycle:
        def __init__(self, what: int) -> None:
            self.myself = self
            self.what = what

        def __del__(self) -> None:
            nonlocal ran
            ran += 1
            try:
                if self.what == 0:
                    assert (nd.ones((LARGE,)) * 2 + 1).asnumpy()[0] == 3
                elif self.what == 1:
                    wanted.asnumpy()
                elif self.what == 2:
                    engine.push(lambda: None)
                elif self.what == 3:
                    engine.waitall()
                else:
                    small.__iadd__(1)
            except MXNetError as error:
                told.append(str(error))

    x, small = nd.ones((LARGE,)), nd.ones((4,))
    thresholds = gc.get_threshold()
    try:
        for distance in range(1, 60):
            for what in range(5):
                gc.disable()
                wanted = x * 3
                Cycle(what)
                gc.set_threshold(gc.get_count()[0] + distance, 1000, 1000)
                gc.enable()  # collects when `distance` more objects have been made: somewhere in the next lines
                x = x * 0.5 + 0.5
                y = x[0:100] + 1
                small *= 1
                gc.disable()
                assert (x.asnumpy() == 1).all()
                assert (wanted.asnumpy() == 3).all()
                assert (y.asnumpy() == 2).all()
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()
    engine.waitall()
    gc.collect()
    assert ran == 59 * 5
    assert all("finalizer (__del__) that runs in the middle of the engine's work cannot" in text for text in told)


def test_what_a_finished_task_held_is_freed_without_the_lock() -> None:
    """Its finalizer may wait even for what waits for the task."""
    found: list[float] = []
    x = nd.ones((4,))

    class Held:
        def __del__(self) -> None:
            found.append(float(later[0][0].asscalar()))

    held = Held()
    begin = threading.Event()

    def task(value: np.ndarray, held: Held = held) -> None:
        assert begin.wait(PATIENT)
        value += 1

    engine.push(task, writes=[x])
    later = [x + 1]
    del held, task
    begin.set()
    engine.waitall()
    assert found == [3]


# ---- fork


def in_child(function: Any) -> None:
    """Run `function` in a forked child, which must return True within seconds."""
    with warnings.catch_warnings():
        # Python 3.12 warns that a process with threads may not fork; that it may, after the engine's preparation, is what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)
            os._exit(0 if function() else 1)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def compute(x: nd.NDArray) -> bool:
    """Whether the engine works: at once, on lanes, with functions, large memory and random numbers."""
    y = nd.ones((LARGE,), ctx=cpu(1))
    for _ in range(20):
        y = y + 1
    engine.push(lambda value: value.fill(5), writes=[y])
    z = nd.dot(nd.ones((300, 300)), nd.ones((300, 300)))
    return bool(
        (y.asnumpy() == 5).all()
        and z.asnumpy()[0, 0] == 300
        and (x.asnumpy() == 2).all()
        and (nd.ones((1 << 20,)) + 1).sum().asscalar()
    )


@posix
@pytest.mark.usefixtures("threads_change_often")
def test_fork_with_work_queued() -> None:
    ran: list[int] = []
    for _ in range(5):
        x = nd.ones((LARGE,))
        for number in range(50):
            engine.push(lambda number=number: ran.append(number), context=cpu(number % 3))
            x = x * 2 - 1
        x = x + 1
        in_child(lambda: compute(x) and len(ran) % 50 == 0)  # noqa: B023  # it is called here
        assert compute(x)
    assert len(ran) == 250


@posix
def test_fork_while_other_threads_push() -> None:
    stop = threading.Event()
    x = nd.ones((4,)) + 1

    def push(number: int) -> None:
        mine = nd.ones((LARGE,), ctx=cpu(number))
        while not stop.is_set():
            mine = mine * 0.5 + 0.5
            engine.push(lambda: None, context=cpu(number))
        assert (mine.asnumpy() == 1).all()

    threads = [threading.Thread(target=push, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            in_child(lambda: compute(x))
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENT)


@posix
def test_fork_inside_a_task() -> None:
    x = nd.ones((4,))
    results: list[int] = []

    def task(value: np.ndarray) -> None:
        value += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os._exit(0 if (nd.ones((LARGE,)) + 1).asnumpy()[0] == 2 else 1)
        results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    engine.push(task, writes=[x])
    y = x + 1
    assert y.asnumpy().tolist() == [3] * 4
    assert results == [0]


def _child(x: Any, answers: Any, folder: Any) -> None:
    answers.put(compute(x))
    gate = threading.Event()
    engine.push(lambda: gate.wait(PATIENT), writes=[token := engine.Var()])
    engine.push(lambda: (folder / f"{os.getpid()}").touch(), reads=[token])
    gate.set()  # the process ends with work queued


@posix
def test_multiprocessing_fork(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    x = nd.ones((LARGE,)) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        children = [context.Process(target=_child, args=(x, answers, tmp_path)) for _ in range(2)]
        for child in children:
            child.start()
    assert [answers.get(timeout=PATIENT) for _ in children] == [True, True]
    for child in children:
        child.join(PATIENT)
        assert child.exitcode == 0
    assert {path.name for path in tmp_path.iterdir()} == {str(child.pid) for child in children}


# ---- exit


def test_exit_with_work_queued() -> None:
    """What was pushed has happened when the process ends, also what tasks push, and what no thread was there to close."""
    code = """
import os, time
from minimx import cpu, engine, nd
def say(text): os.write(1, text.encode() + b"\\n")
x = nd.ones((40000,))
engine.push(lambda _: time.sleep(0.2), writes=[x])
for number in range(100):
    x = x + 1
    engine.push(lambda value, number=number: say(f"function {number} {int(value[0])}"), reads=[x], context=cpu(number % 3))
engine.push(lambda _: engine.push(lambda: say("pushed by a task")), reads=[x])
"""
    printed = script(code).splitlines()
    assert sorted(printed) == sorted(["pushed by a task"] + [f"function {number} {number + 2}" for number in range(100)])


def test_exit_with_failures_and_lazy_work() -> None:
    code = """
import sys
from minimx import engine, nd
sys.stderr = sys.stdout
def fail(): raise ValueError("never seen")
engine.push(fail)
with engine.lazy():
    y = nd.ones((4,)) + 1
"""
    assert "at exit, a failure that nobody had seen: ValueError: never seen" in script(code)


def test_exit_from_a_thread_and_by_an_error() -> None:
    code = """
import os, sys, threading
from minimx import engine, nd
x = nd.ones((40000,))
def push():
    y = x
    for _ in range(100): y = y + 1
    engine.push(lambda value: os.write(1, b"%d" % value[0]), reads=[y])
threading.Thread(target=push).start()
sys.exit(0)
"""
    assert script(code) == "101"


def test_exit_while_a_daemon_pushes_for_ever() -> None:
    code = """
import itertools, os, threading
from minimx import engine, nd
x, started = nd.ones((40000,)), threading.Event()
def push():
    for number in itertools.count():
        engine.push(lambda value: None, reads=[x])
        y = x + 1
        if number == 3000: started.set()
threading.Thread(target=push, daemon=True).start()
started.wait()
engine.push(lambda value: os.write(1, b"done"), writes=[x])
"""
    assert script(code) == "done"


# ---- random programs of many threads


@pytest.mark.usefixtures("threads_change_often")
def test_threads_with_programs_of_their_own_do_not_disturb_each_other() -> None:
    def program(number: int) -> None:
        choice = random.Random(number)
        ours = [nd.ones((choice.choice((4, LARGE)),), ctx=cpu(choice.randrange(4))) for _ in range(3)]
        wanted = [1.0] * 3
        for _ in range(60):
            a, b = choice.randrange(3), choice.randrange(3)
            what = choice.randrange(6)
            if what == 0:
                ours[a] = ours[a] * 0.5 + 2
                wanted[a] = wanted[a] * 0.5 + 2
            elif what == 1:
                ours[a] += 1
                wanted[a] += 1
            elif what == 2:
                engine.push(lambda value: np.multiply(value, 0.5, out=value), writes=[ours[a]], context=cpu(b))
                wanted[a] *= 0.5
            elif what == 3:
                half = ours[a].size // 2
                ours[a][:half] = 3
                ours[a][half:] = 3
                wanted[a] = 3
            elif what == 4:
                bad = call(explode, ours[b])
                with pytest.raises(MXNetError, match="boom"):
                    bad.asnumpy()
            else:
                with engine.lazy():
                    ours[a] = ours[a] - ours[b].sum() * 0
            if what == b:
                assert (ours[a].asnumpy() == wanted[a]).all()
        for array, value in zip(ours, wanted):
            assert (array.asnumpy() == value).all()

    in_threads(6, program)
    assert Call is not None
