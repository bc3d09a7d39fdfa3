"""Devices: contexts as values, the default of each thread, GPUs that are absent, simulated or mixed with other devices."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import threading

import pytest

import minimx as mx
from minimx import Context, cpu, cpu_pinned, cpu_shared, current_context, engine, gpu, nd
from minimx.base import ArgumentError, DeviceError, MXNetError
from minimx.engine import lanes

from .helpers import LARGE, script

pytestmark = pytest.mark.timeout(60)
no_cupy = pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed here")


# ---- values


def test_contexts_are_values() -> None:
    assert cpu(1) == Context("cpu", 1) == Context(cpu(1)) != cpu(2)
    assert cpu() == cpu(0) != gpu(0)
    assert len({cpu(0), cpu(0), gpu(0), cpu_pinned(0), cpu_shared(0)}) == 4
    assert str(gpu(3)) == repr(gpu(3)) == "gpu(3)"
    assert (cpu_pinned().device_type, cpu_pinned().device_typeid, cpu_pinned().device_id) == ("cpu_pinned", 3, 0)
    for same in (pickle.loads(pickle.dumps(cpu(5))), copy.copy(cpu(5)), copy.deepcopy(cpu(5))):
        assert same is cpu(5)
    assert mx.context.Context is Context


def test_bad_contexts() -> None:
    for unknown in ("tpu", "CPU", ""):
        with pytest.raises(KeyError):
            Context(unknown, 0)
    with pytest.raises(ArgumentError, match="device number -1 is negative"):
        cpu(-1)
    with pytest.raises((ArgumentError, MXNetError), match="Context"):
        nd.ones((2,), ctx="cpu")  # type: ignore[arg-type]


def test_pinned_and_shared_memory_is_worked_on_by_the_cpu() -> None:
    for context in (cpu_pinned(), cpu_shared(), cpu_pinned(3)):
        x = nd.ones((LARGE,), ctx=context)
        y = x + nd.ones((LARGE,), ctx=cpu(1))
        assert y.context == context
        assert context.lane == cpu(0)
        assert (y.asnumpy() == 2).all()
    assert cpu_pinned() not in lanes.scheduler.lanes


# ---- the default


def test_with_blocks_nest_and_restore() -> None:
    assert current_context() == cpu(0)
    with cpu(1) as one:
        assert current_context() is one
        assert nd.zeros((2,)).context == cpu(1)
        with cpu(2), cpu(1):
            assert current_context() == cpu(1)
        assert current_context() == cpu(1)
        with pytest.raises(ZeroDivisionError), cpu(3):
            1 / 0  # noqa: B018
        assert current_context() == cpu(1)
        with one:  # the same object again
            pass
        assert current_context() == cpu(1)
    assert current_context() == cpu(0)


def test_the_default_belongs_to_a_thread() -> None:
    seen: list[Context] = []

    def look() -> None:
        seen.append(current_context())
        with cpu(2):
            inside.wait(10)
            outside.wait(10)
            seen.append(current_context())

    inside, outside = threading.Barrier(2), threading.Barrier(2)
    with cpu(1):
        thread = threading.Thread(target=look)
        thread.start()
        inside.wait(10)
        seen.append(current_context())
        outside.wait(10)
        thread.join()
    assert seen == [cpu(0), cpu(1), cpu(2)]


def test_the_default_can_be_set() -> None:
    before = Context.default_ctx
    try:
        Context.default_ctx = cpu(4)
        assert current_context() == Context._default_ctx.value == cpu(4)
    finally:
        Context.default_ctx = before


# ---- GPUs


@no_cupy
def test_without_cupy_a_gpu_says_what_to_do() -> None:
    assert mx.num_gpus() == 0
    for use in (
        lambda: nd.ones((2,), ctx=gpu(0)),
        lambda: nd.array([1], ctx=gpu()),
        lambda: nd.empty((2,), ctx=gpu()),
        lambda: nd.ones((2,)).as_in_context(gpu()),
        lambda: mx.gpu_memory_info(0),
        mx.device.cupy,
    ):
        with pytest.raises(DeviceError, match=r"pip install 'minimx\[cuda12\]'.* minimx.device.simulate_gpus\(n\)") as caught:
            use()
        assert isinstance(caught.value, ValueError)
    with gpu(0), pytest.raises(DeviceError):
        nd.ones((2,))
    engine.waitall()


def test_simulated_gpus_come_and_go() -> None:
    before = mx.num_gpus()
    with mx.device.simulate_gpus(2):
        assert mx.num_gpus() == 2
        x = nd.ones((3,), ctx=gpu(1))
        assert (x + 1).context == gpu(1)
        with pytest.raises(DeviceError, match=r"gpu\(2\) is not there: 2 GPUs are simulated"):
            nd.ones((3,), ctx=gpu(2))
        with mx.device.simulate_gpus(3, memory=1 << 20):
            assert mx.num_gpus() == 3
            assert mx.gpu_memory_info(2) == (1 << 20, 1 << 20)
        assert mx.num_gpus() == 2
        free, total = mx.gpu_memory_info(0)
        assert free <= total
        assert total > 1 << 40  # no bound
    assert mx.num_gpus() == before
    with pytest.raises(ArgumentError, match="count"):
        mx.device.simulate_gpus(-1)


def test_the_environment_simulates_gpus() -> None:
    code = "import minimx as mx; print(mx.num_gpus(), (mx.nd.ones((2,), ctx=mx.gpu(1)) + 1).asnumpy().tolist())"
    assert script(code, MINIMX_SIMULATED_GPUS="2").strip() == "2 [2.0, 2.0]"


def test_copies_between_devices() -> None:
    with mx.device.simulate_gpus(2):
        x = nd.array([[1, 2], [3, 4]])
        there = x.as_in_context(gpu(0)).copyto(gpu(1))
        back = there.as_in_context(cpu_pinned())
        x[:] = 0
        assert there.context == gpu(1)
        assert back.asnumpy().tolist() == [[1, 2], [3, 4]]
        assert there.as_in_context(gpu(1)) is there
        target = nd.zeros((2, 2), ctx=gpu(0))
        assert back.copyto(target) is target
        assert target.asnumpy().tolist() == [[1, 2], [3, 4]]


def test_devices_do_not_mix() -> None:
    with mx.device.simulate_gpus(2):
        x, y, z = nd.ones((2,)), nd.ones((2,), ctx=gpu(0)), nd.ones((2,), ctx=gpu(1))
        for left, right in ((x, y), (y, x), (y, z)):
            with pytest.raises(DeviceError, match=r"operands are on .* as_in_context"):
                left + right
        assert (x + nd.ones((2,), ctx=cpu(1))).context == cpu(0)  # the memory is one


@pytest.mark.parametrize("size", [2, LARGE])
def test_results_do_not_go_to_arrays_of_another_device(size: int) -> None:
    with mx.device.simulate_gpus(1):
        x, target = nd.ones((size,)), nd.zeros((size,), ctx=gpu(0))
        with pytest.raises(DeviceError):
            nd.add(x, 1, out=target)
        with pytest.raises(DeviceError):
            x += target
        target[:] = x  # an assignment copies
        assert target.asnumpy()[0] == 1


def test_a_gpu_goes_when_its_work_is_done() -> None:
    gate = threading.Event()
    with mx.device.simulate_gpus(1):
        x = nd.ones((LARGE,), ctx=gpu(0))
        engine.push(lambda value: gate.wait(10), writes=[x])
        y = (x + 1).as_in_context(cpu())
        threading.Timer(0.05, gate.set).start()
    assert gate.is_set()
    assert y.asnumpy()[0] == 2


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a deliberate fault: every thread shares one default device")
def test_the_twin_whose_threads_share_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shared:
        value = None
        outer: list[object] = []  # noqa: RUF012

    monkeypatch.setattr(Context, "_default_ctx", Shared())
    test_the_default_belongs_to_a_thread()
