"""Streams and events on a stand-in for GPUs (tests/fake_cupy), which queues kernels, runs them late, and in any order that is allowed.

A missing event gives a wrong value with some seed, and is reported with every seed: two kernels that touch the same memory without an order
between them. So does memory that is handed out while another stream still uses it.
"""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import minimx as mx
from minimx import MXNetError, autograd, cuda, engine, gpu, nd
from minimx.base import DeviceError, OutOfMemoryError
from minimx.cuda import Line
from minimx.engine import streams
from minimx.engine.front import close_segments, value_of
from minimx.engine.lanes import scheduler

from ..fake_cupy.fixture import fake_gpus
from .helpers import examples, until
from .programs import LARGE, ON_GPUS, REGISTERS, SMALL, Program, Step, run, run_naively, same

pytestmark = pytest.mark.timeout(120)
SIZE = 2000


def chain(first: Any, second: Any) -> np.ndarray:
    """Work that crosses devices back and forth, with values in place and replaced, of which the host reads the last."""
    x = nd.array(np.arange(SIZE) % 7, ctx=first)
    for number in range(6):
        y = x.copyto(second)
        x[5:9] = number  # in place, while the copy may still read it
        x += 1
        y *= 0.5
        z = y.copyto(first) + x
        x = z - number
        x[10:20] = z[0:10]
    return x.asnumpy()


@pytest.mark.parametrize("seed", range(8))
def test_work_on_two_gpus_has_the_values_of_the_cpu(seed: int) -> None:
    want = chain(mx.cpu(0), mx.cpu(0))
    with fake_gpus(2, seed):
        np.testing.assert_array_equal(chain(gpu(0), gpu(1)), want)
        np.testing.assert_array_equal(chain(gpu(0), mx.cpu()), want)


def test_nobody_waits_for_kernels_before_a_value_is_wanted() -> None:
    with fake_gpus(2) as machine:
        machine.random.random = lambda: 1.0  # type: ignore[method-assign]  # the GPU does nothing before the host waits
        x = nd.ones((SIZE,), ctx=gpu(0))
        y = (x + 1).as_in_context(gpu(1)) * 2
        close_segments()
        until(lambda: not scheduler.in_flight)  # all is queued
        assert sum(len(stream.queue) for stream in machine.streams) > 4
        assert y.asnumpy()[0] == 4


def test_reading_waits_for_the_array_and_no_more() -> None:
    with fake_gpus(1, 3) as machine:
        machine.random.random = lambda: 1.0  # type: ignore[method-assign]
        x = nd.ones((SIZE,), ctx=gpu(0)) + 1
        x.wait_to_read()
        for _ in range(5):
            later = x * 3
        close_segments()
        until(lambda: not scheduler.in_flight)
        queued = sum(len(stream.queue) for stream in machine.streams)
        assert queued > 0
        assert x.asnumpy()[0] == 2
        assert sum(len(stream.queue) for stream in machine.streams) > 0  # what was queued since need not have run
        assert later.asnumpy()[0] == 6


def test_a_copy_from_the_host_may_be_followed_by_a_write_there() -> None:
    with fake_gpus(1, 1):
        for source in (
            nd.ones((SIZE * 10,)),
            nd.ones((SIZE * 10,), ctx=mx.cpu_pinned()),
            nd.ones((SIZE * 10,)).as_in_context(mx.cpu_pinned()),
        ):
            there = source.as_in_context(gpu(0))
            source[:] = 5
            source.wait_to_read()
            assert there.asnumpy().max() == 1
            assert there.as_in_context(mx.cpu_pinned()).asnumpy().sum() == SIZE * 10


def test_pinned_memory_is_pinned_where_there_is_a_gpu() -> None:
    mx.storage.pool(mx.cpu_pinned()).trim()  # what lies there may be from a time without a GPU
    with fake_gpus(1) as machine:
        x = nd.zeros((1,)).as_in_context(mx.cpu_pinned())
        assert x.asnumpy()[0] == 0
        y = nd.array(np.ones(100_000), ctx=mx.cpu_pinned())
        assert machine.is_pinned(value_of(y))
        assert machine.is_pinned(value_of(y.as_in_context(gpu(0)).as_in_context(mx.cpu_pinned())))
    mx.storage.pool(mx.cpu_pinned()).trim()


@pytest.mark.parametrize("mode", [engine.lazy, engine.naive])
def test_other_modes(mode: Any) -> None:
    want = chain(mx.cpu(0), mx.cpu(0))
    with fake_gpus(2, 5), mode():
        np.testing.assert_array_equal(chain(gpu(0), gpu(1)), want)
        np.testing.assert_array_equal(chain(gpu(0), mx.cpu()), want)


def test_gradients_cross_devices() -> None:
    with fake_gpus(2, 2):
        x = nd.array([1.0, 2.0], ctx=gpu(0))
        x.attach_grad()
        with autograd.record():
            y = ((x * 3).as_in_context(gpu(1)) ** 2).as_in_context(mx.cpu())
        y.backward()
        assert x.grad.context == gpu(0)
        assert x.grad.asnumpy().tolist() == [18, 36]


def test_pushed_functions_get_arrays_of_the_gpu() -> None:
    with fake_gpus(2, 4):
        x, y = nd.ones((SIZE,), ctx=gpu(0)), nd.zeros((SIZE,), ctx=gpu(0))
        kinds = []

        def add(source: Any, target: Any) -> None:
            kinds.append(type(source).__module__)
            target += source * 2

        for _ in range(5):
            engine.push(add, reads=[x], writes=[y])
            x += 1
        assert y.asnumpy()[0] == 2 * (1 + 2 + 3 + 4 + 5)
        assert "fake_cupy" in kinds[0]
        token = engine.Var()
        engine.push(lambda: None, writes=[token], context=gpu(1))
        engine.wait(token)


def test_threads_on_one_gpu() -> None:
    with fake_gpus(1, 6):
        total = nd.zeros((SIZE,), ctx=gpu(0))
        nd.waitall()

        def add() -> None:
            for _ in range(10):
                engine.push(_increment, writes=[total])

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (total.asnumpy() == 40).all()


def _increment(array: Any) -> None:
    array += 1


# ---- memory


def churn(seed: int, rounds: int = 12) -> None:
    """Copies from one GPU to another whose source dies at once, beside work that asks for memory of the same size all the time."""
    with fake_gpus(2, seed):
        outputs = []
        for number in range(rounds):
            x = nd.full((SIZE,), number, ctx=gpu(0))
            outputs.append(x.as_in_context(gpu(1)))
            del x
            for _ in range(3):
                nd.full((SIZE,), -1, ctx=gpu(0))
            y = outputs[-1].as_in_context(gpu(0)) + 1
            outputs.append(y.as_in_context(mx.cpu()))
            del y
        for number in range(rounds):
            assert (outputs[2 * number].asnumpy() == number).all()
            assert (outputs[2 * number + 1].asnumpy() == number + 1).all()


@pytest.mark.parametrize("seed", range(5))
def test_memory_is_not_handed_out_while_another_stream_uses_it(seed: int) -> None:
    churn(seed)


def test_what_is_held_is_bounded_and_let_go() -> None:
    with fake_gpus(2) as machine, pytest.MonkeyPatch.context() as patch:
        machine.random.random = lambda: 1.0  # type: ignore[method-assign]
        patch.setattr(cuda, "MOST_HELD", 10 * SIZE * 4)
        for _ in range(100):
            nd.ones((SIZE,), ctx=gpu(0)).as_in_context(gpu(1))
            close_segments()
            until(lambda: not scheduler.in_flight)
        engine.waitall()
        assert sum(line.held_bytes for line in cuda.state.lines.values()) == 0
        machine._sort_in()
        assert machine.taken[0] <= 64 * 8192


def test_for_want_of_memory_what_is_held_is_waited_for() -> None:
    with fake_gpus(2, 1, capacity=20 * SIZE * 4) as machine:
        machine.random.random = lambda: 1.0  # type: ignore[method-assign]
        for _ in range(60):
            there = nd.ones((SIZE,), ctx=gpu(0)).as_in_context(gpu(1))
            close_segments()
            until(lambda: not scheduler.in_flight)
        assert there.asnumpy()[0] == 1


def test_out_of_memory_is_an_error_of_the_array() -> None:
    with fake_gpus(1, capacity=20 * SIZE * 4):
        x = nd.ones((SIZE,), ctx=gpu(0))
        y = nd.ones((SIZE * 30,), ctx=gpu(0)) + 1
        with pytest.raises(OutOfMemoryError, match="Out of memory allocating"):
            y.wait_to_read()
        assert (x + 1).asnumpy()[0] == 2


# ---- failures


def test_an_error_in_a_kernel_that_is_raised_at_once() -> None:
    with fake_gpus(1):
        x = nd.ones((SIZE,), ctx=gpu(0))

        def fail(array: Any) -> None:
            raise ValueError("boom")

        engine.push(fail, writes=[x])
        with pytest.raises(ValueError, match="boom"):
            (x + 1).asnumpy()
        x[:] = 3
        assert x.asnumpy()[0] == 3


def test_an_error_of_the_device_appears_where_a_value_is_wanted() -> None:
    with fake_gpus(2) as machine:
        x, other = nd.ones((SIZE,), ctx=gpu(0)), nd.ones((SIZE,), ctx=gpu(1))
        nd.waitall()

        def fault(array: Any) -> None:
            machine.launch(lambda: 1 // 0, [], [array.block], "a kernel with a fault")

        engine.push(fault, writes=[x], name="faulty")
        y = x * 2
        with pytest.raises(
            MXNetError, match=r"faulty: gpu\(0\) has failed: cudaErrorIllegalAddress.*CUDA needs a new process"
        ) as caught:
            x.asnumpy()
        assert any("queued by" in note for note in getattr(caught.value, "__notes__", ["queued by"]))
        with pytest.raises(MXNetError, match=r"gpu\(0\) has failed"):
            x.asnumpy()
        with pytest.raises(MXNetError, match="cudaErrorIllegalAddress"):
            y.wait_to_read()
        assert (other + 1).asnumpy()[0] == 2
        with pytest.raises(MXNetError, match="cudaErrorIllegalAddress"):
            nd.waitall()
        machine.broken.clear()


def test_arrays_of_simulated_and_of_real_gpus_do_not_mix() -> None:
    with fake_gpus(1):
        real = nd.ones((SIZE,), ctx=gpu(0))
        real.wait_to_read()
        with mx.device.simulate_gpus(1):
            with pytest.raises(DeviceError, match=r"made on a real GPU, and gpu\(0\) is a simulated one now"):
                (real + 1).asnumpy()
            assert real.asnumpy()[0] == 1  # it can still be read
            simulated = nd.ones((SIZE,), ctx=gpu(0))
            simulated.wait_to_read()
        with pytest.raises(DeviceError, match=r"made on a simulated GPU, and gpu\(0\) is a real one now"):
            (simulated + 1).asnumpy()
        assert (real + 1).asnumpy()[0] == 2


# ---- random programs

register = st.integers(0, REGISTERS - 1)
steps = st.builds(
    Step,
    st.sampled_from((*ON_GPUS, "heavy", "nested", "explode_copy")),
    register,
    register,
    register,
    st.integers(0, 99),
    st.booleans(),
)
programs = st.builds(
    Program,
    st.lists(steps, min_size=1, max_size=20).map(tuple),
    size=st.sampled_from((SMALL, LARGE // 10)),
    lanes=st.just(1),
    workers=st.just(1),
    bulk=st.sampled_from((1, 5, 15)),
    gated=st.integers(0, REGISTERS),
    gate_opens=st.integers(0, 20),
    devices=st.sampled_from(("g", "gg", "cg", "ggg", "gcgc")),
)
thorough = settings(max_examples=examples(40), deadline=None, report_multiple_bugs=False, suppress_health_check=list(HealthCheck))


def check(program: Program, seed: int) -> None:
    wanted = run_naively(dataclasses.replace(program, devices="c" * len(program.devices)))
    with fake_gpus(len(program.devices), seed):
        got = run(program)
    assert same(got, wanted), "\n".join(str(step) for step in program.steps)


def test_random_programs_equal_the_cpu() -> None:
    thorough(given(programs, st.integers(0, 1 << 30))(check))()


# ---- deliberate faults: they show that the stand-in bites


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a deliberate fault: lines do not wait for each other")
@pytest.mark.parametrize("races", [False, True], ids=["reported", "wrong value"])
def test_the_twin_without_events(monkeypatch: pytest.MonkeyPatch, races: bool) -> None:
    monkeypatch.setattr(Line, "after", lambda self, mark: None)
    want = chain(mx.cpu(0), mx.cpu(0))
    for seed in range(20):
        with fake_gpus(2, seed, races=races):
            np.testing.assert_array_equal(chain(gpu(0), gpu(1)), want)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a deliberate fault: writes do not wait for reads on other lines")
def test_the_twin_whose_writes_do_not_wait_for_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    right = streams.Work._leave_marks

    def forgetful(self: streams.Work) -> None:
        self.reads = []
        right(self)

    monkeypatch.setattr(streams.Work, "_leave_marks", forgetful)
    with fake_gpus(2, 1):
        chain(gpu(0), gpu(1))


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a deliberate fault: memory is let go while another line uses it")
@pytest.mark.parametrize("races", [False, True], ids=["reported", "wrong value"])
def test_the_twin_that_holds_nothing(monkeypatch: pytest.MonkeyPatch, races: bool) -> None:
    monkeypatch.setattr(Line, "hold", lambda self, mark, arrays: None)
    for seed in range(20):
        if races:
            churn_quietly(seed)
        else:
            churn(seed)


def churn_quietly(seed: int) -> None:
    with fake_gpus(2, seed, races=True), pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{__name__}.fake_gpus", lambda *args: _Nothing())
        churn(seed)


class _Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None
