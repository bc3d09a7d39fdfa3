"""The engine's contract, point by point (DESIGN: the life of an operation).

Tasks are held back with events, so that what is tested does not depend on who is fast.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Iterable

import numpy as np
import pytest
import threadpoolctl

import minimx as mx
from minimx import MXNetError, cpu, engine, nd
from minimx.base import ArgumentError
from minimx.engine import front, lanes
from minimx.engine.lanes import scheduler
from minimx.engine.task import Task
from minimx.nd.entry import invoke

from .helpers import (
    LARGE,
    PATIENT,
    Call,
    Gates,
    HeavyCall,
    HeavyChange,
    call,
    explode,
    notes,
    pending,
    script,
    until,
    with_workers,
)  # fmt: skip

pytestmark = pytest.mark.timeout(60)


# ---- 1. Sequential consistency


def test_a_write_waits_for_the_reads_before_it(gates: Gates) -> None:
    x, gate = nd.ones((4,)), gates.event()
    seen: list[float] = []

    def read(value: np.ndarray) -> None:
        assert gate.wait(PATIENT)
        seen.append(float(value[0]))

    engine.push(read, reads=[x])
    x += 1
    x[:] = x * 3
    x[0:2] = 7
    gate.set()
    assert x.asnumpy().tolist() == [7, 7, 6, 6]
    assert seen == [1]


def test_a_read_waits_for_the_write_before_it(gates: Gates) -> None:
    x, gate = pending(gates)
    y = x + 1
    engine.push(lambda value: value.fill(5), writes=[x])
    z = x + 1
    gate.set()
    assert [float(each[0].asscalar()) for each in (y, z)] == [2, 6]


def test_writes_of_one_array_happen_in_order_and_one_at_a_time() -> None:
    x, order, inside = nd.zeros((4,)), [], threading.Lock()

    def write(number: int) -> None:
        assert inside.acquire(blocking=False)
        order.append(number)
        inside.release()

    for number in range(50):
        engine.push(lambda _, number=number: write(number), writes=[x], context=cpu(number % 4))
    engine.wait(x)
    assert order == list(range(50))


def test_reads_of_one_array_overlap(gates: Gates) -> None:
    x, meeting = nd.ones((4,)), threading.Barrier(2)
    for number in range(2):
        engine.push(lambda value: meeting.wait(PATIENT), reads=[x], context=cpu(number))
    engine.waitall()  # a broken barrier would raise


@pytest.mark.parametrize("bulk", [1, 15])
def test_a_value_that_is_read_and_then_overwritten_reaches_its_reader(gates: Gates, bulk: int) -> None:
    x, gate = pending(gates, LARGE)
    engine.set_bulk_size(bulk)
    y = x + 1
    z = y * 2
    y[:] = 7  # another task writes y before this y has been computed
    w = y - z
    y += w
    gate.set()
    assert [float(each[0].asscalar()) for each in (z, w, y)] == [4, 3, 10]


@pytest.mark.parametrize("size", [4, LARGE])
def test_an_operation_that_changes_its_operand_waits_for_readers_and_is_waited_for(gates: Gates, size: int) -> None:
    x, gate = pending(gates, size)
    before = call(lambda: None, x, heavy=True)
    invoke(HeavyChange(lambda: None), [x])
    between = x * 1
    part = x[1 : size - 1]
    invoke(HeavyChange(lambda: None), [part])
    gate.set()
    assert set(before.asnumpy()) == {2}
    assert set(between.asnumpy()) == {2}
    assert x.asnumpy()[[0, 1, -1]].tolist() == [2, 3, 2]
    kept = x.asnumpy()
    invoke(HeavyChange(explode), [part])
    for each in (x, part, x + 1):
        with pytest.raises(MXNetError, match="boom"):
            each.asnumpy()
    x[:] = 5
    invoke(HeavyChange(lambda: None), [x])
    assert set(x.asnumpy()) == {6}
    assert kept[0] == 2


def test_an_array_that_was_read_keeps_its_value() -> None:
    x = nd.ones((LARGE,))
    y = x + 1
    z = y * 2  # the last that reads y inside the segment; y is still visible
    assert (y.asnumpy() == 2).all()
    assert (z.asnumpy() == 4).all()


def test_views_are_the_memory_of_their_array(gates: Gates) -> None:
    x, gate = pending(gates, 6)
    view = x.reshape((2, 3))
    view[1] = 5
    row = view[1]
    x[4] = 9
    copied = row * 1
    row[:] = 0
    gate.set()
    assert copied.asnumpy().tolist() == [5, 9, 5]
    assert x.asnumpy().tolist() == [1, 1, 1, 0, 0, 0]


def _forgetful_read(self: Task, variables: Iterable[engine.Var], scheduler: object) -> None:
    """The deliberate fault: a task becomes a reader without waiting for the writer."""
    for var in variables:
        var.readers = {**(var.readers or {}), self: None}


@pytest.mark.xfail(strict=True, raises=(AssertionError, MXNetError), reason="a deliberate fault: reads do not wait for writes")
def test_the_twin_whose_reads_do_not_wait(gates: Gates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Task, "reads", _forgetful_read)
    test_a_value_that_is_read_and_then_overwritten_reaches_its_reader(gates, 1)


# ---- 2. Asynchrony


@pytest.mark.parametrize("size", [4, LARGE])
def test_pushing_returns_without_computing(gates: Gates, size: int) -> None:
    x, gate = pending(gates, size)
    ran: list[int] = []
    y = call(lambda: ran.append(1), x)
    engine.push(lambda value: ran.append(2), reads=[y])
    assert not ran
    assert y.shape == (size,)
    gate.set()
    engine.waitall()
    assert ran == [1, 2]


@pytest.mark.parametrize("heavy", [False, True])
def test_work_starts_though_nobody_syncs(heavy: bool) -> None:
    started = threading.Event()
    y = call(started.set, nd.ones((LARGE,)), heavy=heavy)
    assert started.wait(PATIENT)
    assert y.shape == (LARGE,)
    assert lanes.PATIENCE <= 0.001


def test_work_starts_though_its_thread_has_died() -> None:
    started = threading.Event()
    thread = threading.Thread(target=lambda: call(started.set, nd.ones((LARGE,))))
    thread.start()
    thread.join()
    assert started.wait(PATIENT)


# ---- 3. Helping


def test_a_thread_that_waits_runs_the_work_itself(gates: Gates) -> None:
    gates.hold(context=cpu(0))  # the lane's only worker is not to be had
    done, who = engine.Var(), []
    engine.push(lambda: who.append(threading.current_thread()), writes=[done], context=cpu(0))
    y = call(lambda: who.append(threading.current_thread()), nd.ones((LARGE,)))
    engine.wait(done)
    y.wait_to_read()
    assert who == [threading.current_thread()] * 2


def test_it_helps_only_with_what_it_waits_for(gates: Gates) -> None:
    gates.hold(context=cpu(0))
    first, second, ran = engine.Var(), engine.Var(), []
    engine.push(lambda: ran.append("a stranger"), context=cpu(0))
    engine.push(lambda: ran.append("first"), writes=[first], context=cpu(0))
    engine.push(lambda: ran.append("second"), reads=[first], writes=[second], context=cpu(0))
    engine.wait(second)
    assert ran == ["first", "second"]


def test_small_work_on_arrays_that_are_there_is_done_by_the_pushing_thread() -> None:
    who: list[threading.Thread] = []
    y = call(lambda: who.append(threading.current_thread()), nd.ones((4,)))
    assert who == [threading.current_thread()]
    assert y.var.ready


# ---- 4. Bulking


def tasks_of(gates: Gates, count: int) -> list[str]:
    """The names of the tasks that `count` operations on arrays that are not there become. The worker is kept from closing segments."""
    with engine.trace() as events:
        x, gate = pending(gates)
        for _ in range(count):
            x = x + 1
        gate.set()
        assert x.asnumpy()[0] == 1 + count
    return [name for _, name, _, _ in events if name != "gate"]


def test_bulk_bounds_the_operations_of_a_task(gates: Gates) -> None:
    assert engine.set_bulk_size(15) == 15
    assert len(tasks_of(gates, 30)) == 2
    with engine.bulk(5):
        assert tasks_of(gates, 12) == ["_plus_scalar and 4 more", "_plus_scalar and 4 more", "_plus_scalar and 1 more"]
        with engine.bulk(0):
            assert len(tasks_of(gates, 4)) == 4
    assert engine.set_bulk_size(7) == 15
    assert engine.set_bulk_size(15) == 7
    with pytest.raises(mx.base.ArgumentError, match="0 or more, is wanted, got -1"):
        engine.set_bulk_size(-1)


def test_chains_in_place_are_exact_in_bulk(gates: Gates) -> None:
    for size in (4, LARGE):
        x, gate = pending(gates, size)
        with engine.bulk(10):
            for _ in range(100):
                x += 1
                x *= 2
                x -= x * 0.5
            gate.set()
            value = x.asnumpy()
        wanted = 1.0
        for _ in range(100):
            wanted = (wanted + 1) * 2 * 0.5
        assert (value == wanted).all()


def test_what_follows_one_another_can_be_one_task_though_it_is_heavy(gates: Gates) -> None:
    def chain(waits: bool = False) -> tuple[list[str], float]:
        x, gate = pending(gates, LARGE)
        with engine.trace() as events:
            with engine.one_task(cpu(0)):
                y = call(lambda: None, x, heavy=True)
                z = call(lambda: None, y, heavy=True)
                if waits:
                    gate.set()
                    z.wait_to_read()
                z += y
                y = call(lambda: None, z, heavy=True)
                time.sleep(4 * lanes.PATIENCE)  # no idle worker may close it
                w = y * z
            gate.set()
            value = float(w[-1].asscalar())
        return [name for _, name, *_ in events if name != "gate"], value

    assert chain() == (["heavy_call and 4 more"], 30)
    names, value = chain(waits=True)
    assert (len(names), value) == (2, 30)
    with engine.bulk(1):
        names, value = chain()
    assert (len(names), value) == (5, 30)
    names, value = chain()  # what a scope of bulk(1) left behind is gone
    assert (len(names), value) == (1, 30)
    with pytest.raises(ArgumentError, match=r"one_task: a device is wanted.*'cpu'"), engine.one_task("cpu"):  # type: ignore[arg-type]
        pass


def test_the_environment_sets_the_bulk_size() -> None:
    code = "from minimx import engine; print(engine.set_bulk_size(1))"
    assert script(code, MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN="3").strip() == "3"
    assert script(code, MXNET_EXEC_BULK_EXEC_MAX_NODE_TRAIN_FWD="4").strip() == "4"


# ---- 5. Every operation runs; or, in a lazy scope, what is wanted


@pytest.mark.parametrize("size", [4, LARGE])
def test_operations_run_though_nobody_wants_their_results(size: int) -> None:
    ran: list[int] = []
    for _ in range(20):
        call(lambda: ran.append(1), nd.ones((size,)))
    engine.waitall()
    assert len(ran) == 20


def test_a_dead_intermediate_is_not_stored() -> None:
    size, nbytes = 1 << 18, 1 << 20
    x = nd.ones((size,))
    x.wait_to_read()
    before = mx.storage.stats()["live"]
    mx.storage.reset_peak()
    y = x + 1
    for _ in range(8):
        y = y * 0.5 + 0.25  # each y but the last is visible to nobody when the segment runs
    y.wait_to_read()
    assert mx.storage.stats()["peak"] - before <= 2 * nbytes


def test_in_a_lazy_scope_only_what_is_asked_for_runs() -> None:
    ran: list[str] = []
    x = nd.ones((4,))
    with engine.lazy():
        a = call(lambda: ran.append("a"), x)
        b = call(lambda: ran.append("b"), a)
        c = call(lambda: ran.append("c"), a)
        call(lambda: ran.append("dead"), a)
        assert ran == []
        assert b.asnumpy()[0] == 3
        assert ran == ["a", "b"]
        d = call(lambda: ran.append("d"), c)  # recording goes on without running what it reads
        assert ran == ["a", "b"]
    assert d.asnumpy()[0] == 4
    engine.waitall()
    assert ran == ["a", "b", "c", "d"]


def test_lazy_work_outlives_its_scope_and_its_thread() -> None:
    ran, made = [], []

    def record() -> None:
        with engine.lazy():
            made.append(call(lambda: ran.append(1), nd.ones((4,))))

    thread = threading.Thread(target=record)
    thread.start()
    thread.join()
    assert ran == []
    assert made[0].asnumpy()[0] == 2
    assert ran == [1]


def test_a_write_makes_lazy_reads_of_the_old_value_run(gates: Gates) -> None:
    x = nd.ones((4,))
    with engine.lazy():
        y = x + 1
    x[:] = 5
    assert y.asnumpy()[0] == 2
    with engine.lazy():
        z = x + 1
        x += 1  # in the lazy scope too, the order is that of the program
        w = x + 1
    assert [float(each[0].asscalar()) for each in (z, w, x)] == [6, 7, 6]


def test_large_lazy_results_take_no_memory_before_they_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "MAX_BYTES", 1 << 20)
    ran: list[int] = []
    with engine.lazy():
        kept = [call(lambda: ran.append(1), nd.ones((LARGE,))) for _ in range(20)]
        assert ran == []
    assert kept[3].asnumpy()[0] == 2
    assert ran == [1]


def test_the_environment_makes_everything_lazy() -> None:
    code = "from minimx import nd; x = nd.ones((4,)) + 1; print(x.var.ready, x.asscalar() if x.size == 1 else x.asnumpy()[0])"
    assert script(code, MINIMX_LAZY="1").split() == ["False", "2.0"]


# ---- 6. Parallelism


def meet(*contexts: mx.Context) -> None:
    """Push a function to the lane of each context; all must run at the same time."""
    meeting = threading.Barrier(len(contexts))
    for context in contexts:
        engine.push(lambda: meeting.wait(PATIENT), context=context)
    until(lambda: not scheduler.in_flight)  # without helping
    engine.waitall()  # raises if they did not meet


def test_devices_work_at_the_same_time() -> None:
    meet(cpu(0), cpu(1), cpu(2))


def test_work_beside_copies_to_a_gpu() -> None:
    with mx.device.simulate_gpus(2):
        meet(mx.gpu(0), cpu(0), mx.gpu(1))
        x = nd.ones((LARGE,)).as_in_context(mx.gpu(1))
        assert x.context == mx.gpu(1)
        assert (x + 1).as_in_context(cpu()).asnumpy()[0] == 2


def test_workers_of_one_lane_work_at_the_same_time() -> None:
    device = with_workers(2)
    meet(device, device)
    code = "from minimx.engine import lanes; print(lanes.WORKERS)"
    assert script(code, MXNET_CPU_WORKER_NTHREADS="3").strip() == "3"


def test_blas_threads_are_shared_out() -> None:
    def blas() -> int:
        return max((each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"), default=1)

    full, meeting, counted = blas(), threading.Barrier(2), []

    def count() -> None:
        meeting.wait(PATIENT)
        counted.append(blas())
        meeting.wait(PATIENT)

    for number in range(2):
        engine.push(count, context=cpu(number))
    engine.waitall()
    assert counted == [max(1, full // 2)] * 2
    assert blas() == full  # also for what the user calls without the engine


# ---- 7. Back-pressure


def test_bytes_in_flight_are_bounded(gates: Gates, monkeypatch: pytest.MonkeyPatch) -> None:
    bound, each = 1 << 20, 4 * LARGE
    monkeypatch.setattr(lanes, "MAX_BYTES", bound)
    monkeypatch.setattr(front, "MAX_BYTES", bound)
    x, gate = pending(gates, LARGE)
    pushed: list[object] = []

    def push() -> None:
        for _ in range(100):
            pushed.append(x + 1)

    thread = threading.Thread(target=push)
    thread.start()
    until(lambda: scheduler.waiting)  # it does not go on ...
    assert len(pushed) * each <= bound + bound // 4 + each
    assert scheduler.bytes_in_flight <= bound + bound // 4 + each
    gate.set()  # ... before there is room
    thread.join(PATIENT)
    assert len(pushed) == 100


def test_tasks_in_flight_are_bounded(gates: Gates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MAX_TASKS", 10)
    x, gate = pending(gates)
    pushed: list[int] = []

    def push() -> None:
        for number in range(100):
            engine.push(lambda _: None, reads=[x])
            pushed.append(number)

    thread = threading.Thread(target=push)
    thread.start()
    until(lambda: scheduler.waiting)
    assert len(scheduler.in_flight) <= 11
    gate.set()
    thread.join(PATIENT)
    assert len(pushed) == 100


def test_a_thread_that_is_held_back_goes_on_when_there_is_room_for_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MAX_TASKS", 8)
    monkeypatch.setattr(lanes, "HELD", PATIENT)
    monkeypatch.setattr(scheduler, "_any_ready", lambda: None)  # it does not help
    token, turns, pushed = engine.Var(), threading.Semaphore(0), []

    def push() -> None:
        for number in range(20):
            engine.push(lambda: turns.acquire(timeout=PATIENT), writes=[token])
            pushed.append(number)

    thread = threading.Thread(target=push)
    thread.start()
    try:
        until(lambda: scheduler.crowded)
        assert len(pushed) == 8
        for left in (8, 7):
            turns.release()
            until(lambda left=left: len(scheduler.in_flight) == left)
            time.sleep(0.02)
            assert len(pushed) == 8
        turns.release()
        until(lambda: len(pushed) > 8)
    finally:
        turns.release(30)
        thread.join(PATIENT)
    assert len(pushed) == 20


def test_a_thread_is_not_held_back_for_ever_by_what_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MAX_TASKS", 8)
    held, others, begun, gate, ended = engine.Var(), engine.Var(), threading.Event(), threading.Event(), []

    def wait() -> None:
        begun.set()
        ended.append(gate.wait(PATIENT))

    for _ in range(7):  # more than leaves room for several
        engine.push(wait, writes=[held], context=cpu(1))
    assert begun.wait(PATIENT)  # in its lane: this thread would help with it, and wait for itself
    for _ in range(3):
        engine.push(lambda: time.sleep(0.02), writes=[others], context=cpu(2))
    gate.set()
    engine.waitall()
    assert ended == [True] * 7


def test_a_thread_that_is_held_back_helps(gates: Gates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MAX_TASKS", 10)
    gates.hold(context=cpu(0))
    ran: list[threading.Thread] = []
    for _ in range(100):
        engine.push(lambda: ran.append(threading.current_thread()), context=cpu(0))
    assert set(ran) == {threading.current_thread()}


# ---- 8. Failures


def line_of(function: object, text: str) -> str:
    """`file, line n` of the line of a function that contains `text`."""
    import inspect

    source, first = inspect.getsourcelines(function)  # type: ignore[arg-type]
    return f"{__file__}, line {first + next(number for number, line in enumerate(source) if text in line)}"


@pytest.mark.parametrize("size", [4, LARGE])
@pytest.mark.parametrize("heavy", [False, True])
def test_a_failure_is_raised_by_every_read_of_what_depends_on_it_and_of_nothing_else(size: int, heavy: bool) -> None:
    x = nd.ones((size,))
    good = x + 1
    bad = invoke((HeavyCall if heavy else Call)(explode), [x])[0]  # here
    worse = bad * 2
    spared = x * 3
    view = worse.reshape((2, -1))
    for _ in range(2):
        for each in (bad, worse, view, view[0], worse + good):
            with pytest.raises(MXNetError, match="boom") as caught:
                each.asnumpy()
            here = line_of(test_a_failure_is_raised_by_every_read_of_what_depends_on_it_and_of_nothing_else, "# here")
            assert f"was queued by {here}" in notes(caught.value)
            assert isinstance(caught.value.__cause__, ValueError)
    assert (good.asnumpy() == 2).all()
    assert (spared.asnumpy() == 3).all()
    engine.waitall()  # it has been seen


def test_a_failed_function_tells_its_own_error() -> None:
    x = nd.ones((4,))
    engine.push(lambda value: explode(), writes=[x], name="mine")  # pushed
    for _ in range(2):
        with pytest.raises(ValueError, match="boom") as caught:
            x.asnumpy()
        assert f"mine was queued by {line_of(test_a_failed_function_tells_its_own_error, '# pushed')}" in notes(caught.value)
        assert len(notes(caught.value).split("queued by")) == 2


@pytest.mark.parametrize("size", [4, LARGE])
def test_writes_of_failed_values_spread_and_overwriting_heals(size: int) -> None:
    bad = call(explode, nd.ones((size,)))
    targets = [nd.ones((size,)) for _ in range(5)]
    targets[0] += bad
    nd.add(bad, 1, out=targets[1])
    targets[2][:] = bad
    targets[3][0:2] = bad[0:2]
    engine.push(lambda source, target: None, reads=[bad], writes=[targets[4]])
    for target in targets:
        with pytest.raises(MXNetError, match="boom"):
            target.wait_to_read()
        target[0:1] = 5  # a part of it: the rest is still not there
        with pytest.raises(MXNetError, match="boom"):
            target.asnumpy()
        target[:] = 5
        assert (target.asnumpy() == 5).all()
        target[0:1] = 6
        assert target[0].asscalar() == 6


def test_overwriting_heals_memory_that_somebody_shares() -> None:
    values = np.ones(4, np.float32)
    x = nd.from_numpy(values)
    call(explode, nd.ones((4,)), out=x)
    with pytest.raises(MXNetError, match="boom"):
        x.asnumpy()
    x[:] = 5
    assert x.asnumpy()[0] == 5
    assert values[0] == 5


def test_a_write_that_fails_half_way_leaves_nothing_to_read() -> None:
    x = nd.ones((4,))

    def write(value: np.ndarray) -> None:
        value[0] = 7
        explode()

    engine.push(write, writes=[x])
    y = x + 1
    for each in (x, y, x[0:1]):
        with pytest.raises(ValueError, match="boom"):
            each.asnumpy()


def test_a_var_without_memory_is_healed_by_the_next_function_that_writes_it() -> None:
    token, ran = engine.Var(), []
    engine.push(explode, writes=[token])
    engine.push(lambda: ran.append("reads"), reads=[token])
    engine.push(lambda: ran.append("writes"), writes=[token])
    engine.wait(token)
    assert ran == ["writes"]


def test_a_failure_in_a_fused_group_spares_the_other_operations(gates: Gates) -> None:
    x, gate = pending(gates, LARGE)
    ran: list[int] = []
    first = x + 1
    bad = call(explode, first)
    other = call(lambda: ran.append(1), first)
    gate.set()
    assert (other.asnumpy() == 3).all()
    assert (first.asnumpy() == 2).all()
    with pytest.raises(MXNetError, match="boom"):
        bad.asnumpy()


def test_waitall_raises_each_failure_once() -> None:
    for text in ("one", "two"):
        engine.push(lambda text=text: (_ for _ in ()).throw(ValueError(text)))
    with pytest.raises(ValueError, match="one") as caught:
        engine.waitall()
    assert "another task failed: ValueError: two" in notes(caught.value)
    engine.waitall()
    bad = call(explode, nd.ones((LARGE,)))
    del bad  # nobody can read it any more
    with pytest.raises(MXNetError, match="boom"):
        engine.waitall()
    engine.waitall()


def test_a_failure_does_not_keep_its_neighbours_alive() -> None:
    with engine.bulk(15):
        x = nd.ones((1 << 20,))
        bad = call(explode, x * 2 + 1)
        with pytest.raises(MXNetError, match="boom"):
            bad.asnumpy()
    before = mx.storage.stats()["live"]
    del x
    assert mx.storage.stats()["live"] <= before - (4 << 20)
    with pytest.raises(MXNetError, match="boom"):
        bad.asnumpy()


def test_asking_for_a_shape_raises_nothing() -> None:
    bad = call(explode, nd.ones((4,)))
    assert (bad.shape, bad.dtype, bad.context, len(bad)) == ((4,), np.float32, cpu(), 4)
    assert "failed" in bad._repr_html_()
    for sync in (bad.asnumpy, bad.wait_to_read, lambda: repr(bad), lambda: bad[0].asscalar(), lambda: engine.wait(bad)):
        with pytest.raises(MXNetError, match="boom"):
            sync()


# ---- 9. Anywhere: see also test_stress.py


def test_pushes_from_threads_that_share_an_array_all_count() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    small, large = nd.zeros((4,)), nd.zeros((LARGE,))

    def push() -> None:
        one, two = small, large
        for _ in range(50):
            one += 1  # at once, in this thread
            two += 1

    threads = [threading.Thread(target=push) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(before)
    assert (small.asnumpy() == 400).all()
    assert (large.asnumpy() == 400).all()


def test_a_task_may_push_and_wait() -> None:
    found: list[float] = []

    def task() -> None:
        x = nd.ones((LARGE,)) + 1
        engine.push(lambda value: found.append(float(value[0])), reads=[x], context=cpu(0))
        engine.waitall()
        found.append(float(x[0].asscalar()))

    engine.push(task, context=cpu(0))  # on the lane whose one worker runs it
    engine.waitall()
    assert found == [2, 2]


def test_waitall_waits_for_what_tasks_push() -> None:
    made: list[nd.NDArray] = []
    engine.push(lambda: made.append(nd.ones((LARGE,)) + 1))
    engine.waitall()
    assert made[0].var.ready


def test_naive_engine_runs_everything_at_once_and_raises_at_once() -> None:
    ran: list[threading.Thread] = []
    with engine.naive():
        y = call(lambda: ran.append(threading.current_thread()), nd.ones((LARGE,)))
        engine.push(lambda: ran.append(threading.current_thread()))
        assert ran == [threading.current_thread()] * 2
        assert y.var.ready
        with pytest.raises(MXNetError, match="boom") as caught:
            call(explode, y)
        assert isinstance(caught.value.__cause__, ValueError)
        with pytest.raises(ValueError, match="boom"):
            engine.push(explode)
    engine.waitall()


COMPUTE = """
import sys, threading
if sys.argv[1:] == ["no threads"]:
    def start(self): raise RuntimeError("can't start new thread")
    threading.Thread.start = start
import minimx as mx
x = mx.nd.array([[1, 2], [3, 4]]); y = mx.nd.dot(x, x); y += x; y[0] = y[1] * 2
log = []
mx.engine.push(lambda value: log.append(value.sum()), reads=[y])
z = mx.nd.ones((300, 300)); z = mx.nd.dot(z, z) + 1
print(y.asnumpy().tolist(), z.asnumpy().sum()); mx.nd.waitall(); print(log, threading.active_count())
"""


def test_results_are_equal_without_threads() -> None:
    usual, naive, none = script(COMPUTE), script(COMPUTE, MXNET_ENGINE_TYPE="NaiveEngine"), script(COMPUTE, "no threads")
    assert naive.split("]")[:-1] == none.split("]")[:-1] == usual.split("]")[:-1]
    assert naive.split()[-1] == none.split()[-1] == "1"
    assert int(usual.split()[-1]) > 1


def test_bad_calls_of_push() -> None:
    with pytest.raises(mx.base.ArgumentError, match="must be callable, got int"):
        engine.push(3)  # type: ignore[arg-type]
    with pytest.raises(mx.base.ArgumentError, match="hold arrays or"):
        engine.push(print, reads=[np.ones(2)])  # type: ignore[list-item]


def test_trace_logs_tasks() -> None:
    with engine.trace() as events:
        engine.push(lambda: None, name="first", context=cpu(1))
        (nd.ones((LARGE,)) + 1).wait_to_read()
        with pytest.raises(MXNetError, match="a trace is running already"), engine.trace():
            pass
        engine.push(lambda: None, name="unwaited")
    assert {name for _, name, _, _ in events} >= {"first", "_plus_scalar", "unwaited"}
    assert ("cpu(1)", "first") in [event[:2] for event in events]
    assert all(start <= end for _, _, start, end in events)
    assert events == sorted(events, key=lambda event: event[2])


def test_a_task_may_trace() -> None:
    logs: list[list[tuple[str, str, float, float]]] = []

    def task() -> None:
        with engine.trace() as events:
            engine.push(lambda: None, name="inner", context=cpu(0))
        logs.append(events)

    engine.push(task, context=cpu(0))
    engine.waitall()
    assert [name for _, name, _, _ in logs[0]] == ["inner"]


def test_a_pushed_function_cannot_change_what_it_only_reads() -> None:
    x, y = nd.ones((4,)), nd.zeros((4,))

    def careless(source: np.ndarray, target: np.ndarray) -> None:
        target += 1
        source += 1

    engine.push(careless, reads=x, writes=y)
    with pytest.raises(ValueError, match="read-only"):
        y.asnumpy()
    assert x.asnumpy().tolist() == [1, 1, 1, 1]
    with engine.naive(), pytest.raises(ValueError, match="read-only"):
        engine.push(careless, reads=[x], writes=[nd.zeros((4,))])


def test_what_cannot_be_waited_for() -> None:
    with pytest.raises(mx.base.ArgumentError, match=r"an array or an engine\.Var"):
        engine.wait([nd.ones((2,))])  # type: ignore[arg-type]
    with pytest.raises(mx.base.ArgumentError, match="number of operations"):
        engine.set_bulk_size("a")  # type: ignore[arg-type]


def test_what_a_task_pushes_to_its_own_lane_runs_beside_it() -> None:
    """The worker that runs it is not free to take it, so somebody else must be found: here a thread that waits."""
    done = threading.Event()

    def outer() -> None:
        engine.push(done.set, name="inner")
        assert done.wait(30), "nobody ran what the task pushed"

    engine.push(outer, name="outer")
    engine.waitall()


def test_urgent_work_goes_first() -> None:
    """Of what is ready in a lane the highest priority runs first, and of equals the oldest."""
    device, held = cpu(8), threading.Event()
    order: list[str] = []
    engine.push(lambda: held.wait(PATIENT), context=device)
    for name, value in (("a", 0), ("b", -1), ("c", 2), ("d", 0), ("e", 2), ("f", -1)):
        with engine.priority(value):
            engine.push(functools.partial(order.append, name), context=device, name=name)
    held.set()
    until(lambda: not scheduler.in_flight)  # without helping
    assert order == ["c", "e", "a", "d", "b", "f"]
    with pytest.raises(ArgumentError, match=r"engine\.priority"), engine.priority("high"):  # type: ignore[arg-type]
        pass


def test_with_several_workers_threads_take_turns_more_often_unless_the_program_has_chosen() -> None:
    code = """
import sys
import minimx as mx
from minimx import engine
if len(sys.argv) > 1:
    sys.setswitchinterval(float(sys.argv[1]))
for number in range(3):
    done = engine.Var()
    engine.push(lambda: None, writes=[done], context=mx.cpu(number))
    while not done.ready:
        pass
    print(round(1e6 * sys.getswitchinterval()), end=" ")
"""
    assert script(code) == "5000 200 200 "
    assert script(code, "0.5") == "500000 500000 500000 "
