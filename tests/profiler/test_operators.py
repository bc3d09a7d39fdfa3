"""What is recorded: each run of an operator once and under its name, wherever it ran, with what the engine made of it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, cpu, engine, gluon, gpu, nd, profiler
from minimx.engine import front, lanes
from minimx.engine.events import watch
from minimx.kernels import machine

from ..fake_cupy.fixture import fake_gpus
from .helpers import LARGE, counts, events, tables

Record = Callable[..., None]


def network(width: int = 8) -> gluon.nn.HybridSequential:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(width, activation="relu"), gluon.nn.Dense(3))
    net.initialize()
    net.hybridize()
    return net


@pytest.mark.parametrize("shape", [(1,), (100, 100), (LARGE,)])
def test_each_call_counts_once_under_its_name(record: Record, shape: tuple[int, ...]) -> None:
    record()
    x = nd.zeros(shape)
    y = nd.sqrt(x)
    x = x + 1
    x = x + 1
    y += 2
    nd.waitall()
    assert counts() == {"_zeros": 1, "sqrt": 1, "_plus_scalar": 3}
    assert x.asnumpy().reshape(-1)[0] == 2


@pytest.mark.parametrize("mode", [engine.naive, engine.lazy])
def test_so_it_is_in_other_modes(record: Record, mode: Callable[[], object]) -> None:
    record()
    with mode():  # type: ignore[attr-defined]
        x = nd.exp(nd.ones((LARGE,)) * 2)
        x.wait_to_read()
    assert counts() == {"_ones": 1, "_mul_scalar": 1, "exp": 1}


def test_nothing_is_recorded_before_and_after(record: Record) -> None:
    a = nd.ones((2,))
    a + 1
    record()
    a * 2
    profiler.set_state("stop")
    a - 3
    nd.waitall()
    assert counts() == {"_mul_scalar": 1}


def test_what_was_queued_while_it_ran_is_recorded(record: Record) -> None:
    gate = threading.Event()
    record()
    engine.push(gate.wait, name="gate", context=cpu(3))
    x = nd.ones((LARGE,))
    threading.Timer(0.05, gate.set).start()
    profiler.set_state("stop")  # waits
    assert counts() == {"gate": 1, "_ones": 1}
    assert x.var.ready


def test_pause_and_resume(record: Record) -> None:
    record()
    a = nd.ones((2,))
    profiler.pause()
    assert watch.direct
    a + 1
    profiler.resume()
    a * 2
    profiler.pause()
    profiler.set_state("stop")
    profiler.resume()  # of one that is stopped: nothing
    a - 1
    assert counts() == {"_ones": 1, "_mul_scalar": 1}


def test_operators_of_a_hybridized_block_by_name(record: Record) -> None:
    net = network()
    x = nd.array(np.arange(8).reshape(2, 4))
    before = net(x).asnumpy()
    record()
    for _ in range(3):
        y = net(x)
    np.testing.assert_array_equal(y.asnumpy(), before)
    assert counts() == {"FullyConnected": 6, "Activation": 3}
    assert counts("program") == {net.name: 3}
    first, relu, second = events("operator")[:3]
    assert [event.node for event in (first, relu, second)] == [
        f"{net[0].name}_fwd",
        f"{net[0].name}_relu_fwd",
        f"{net[1].name}_fwd",
    ]
    assert first.specs[0].shape == (2, 8)
    program = events("program")[0]
    assert program.start <= first.start <= first.end <= relu.start <= second.end <= program.end
    assert program.where is not None
    assert program.where[0] == __file__
    profiler.set_state("stop")
    assert net(x).asnumpy().tolist() == before.tolist()
    assert len(events("program")) == 3


def test_a_backward_pass_is_recorded_and_the_same(record: Record) -> None:
    net, x = network(), nd.ones((5, 4))
    x.attach_grad()

    def gradient() -> np.ndarray:
        with autograd.record():
            loss = (net(x) ** 2).sum()
        loss.backward()
        return x.grad.asnumpy()

    before = gradient()
    record()
    np.testing.assert_array_equal(gradient(), before)
    found = counts()
    assert (found["FullyConnected"], found["_backward_relu"], found["dot"]) == (2, 1, 4)
    assert counts("program") == {net.name: 1, f"{net.name}_backward": 1}
    assert any(event.node.startswith(f"{net[0].name}_fwd_grad") for event in events("operator"))


def test_a_block_that_is_first_called_while_the_profiler_runs(record: Record) -> None:
    record()
    network()(nd.ones((2, 4))).wait_to_read()
    assert counts()["FullyConnected"] == 2


def test_executors(record: Record) -> None:
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    executor = mx.sym.dot(a, b).simple_bind(mx.cpu(), a=(4, 4), b=(4, 4))
    record()
    executor.forward()[0].wait_to_read()
    executor.forward()[0].wait_to_read()
    assert counts()["dot"] == 2


def test_a_group_of_elementwise_operators_shares_its_time(record: Record) -> None:
    x = nd.ones((LARGE,))
    x.wait_to_read()
    record()
    with engine.lazy():
        y = nd.log(nd.exp(x) * 3)
        y.wait_to_read()
    assert counts() == {"exp": 1, "_mul_scalar": 1, "log": 1}
    (group,) = events("group")
    parts = events("operator")
    assert [event.name for event in parts] == ["exp", "_mul_scalar", "log"]
    assert (parts[0].start, parts[-1].end) == (group.start, group.end)
    assert all(before.end == after.start for before, after in itertools.pairwise(parts))
    assert "tile by tile" in group.about
    np.testing.assert_allclose(y[:2].asnumpy(), np.log(3 * np.e), rtol=1e-6)


def test_groups_in_programs(record: Record) -> None:
    class Chain(gluon.HybridBlock):
        def hybrid_forward(self, F, x):  # type: ignore[no-untyped-def]
            return F.sqrt(F.exp(x) * 3) - 1

    net = Chain()
    net.hybridize()
    x = nd.ones((LARGE,))
    before = net(x).asnumpy()
    record()
    np.testing.assert_array_equal(net(x).asnumpy(), before)
    assert counts() == {"exp": 1, "_mul_scalar": 1, "sqrt": 1, "_minus_scalar": 1}
    assert events("group")[0].name == "group of 4"
    assert ("one loop in machine code" if machine.installed() else "tile by tile") in events("group")[0].about


def test_bulked_work_is_a_task_with_its_operators_inside(record: Record) -> None:
    gate = threading.Event()
    x = nd.ones((100, 100))
    record()
    engine.push(lambda _: gate.wait(), writes=[x], name="gate")
    for _ in range(4):
        x = nd.sin(x)
    gate.set()
    x.wait_to_read()
    (task,) = events("task")
    assert (task.name, task.operators, task.row) == ("sin and 3 more", 4, "cpu(0)")
    inside = [event for event in events("operator") if event.name == "sin"]
    assert len(inside) == 4
    assert all(task.start <= event.start <= event.end <= task.end for event in inside)
    assert all(event.where is not None and event.where[0] == __file__ for event in inside)


def test_pushed_functions_and_lanes(record: Record) -> None:
    record()
    engine.push(lambda: None, name="load", context=cpu(1))
    with mx.device.simulate_gpus(2):
        x = nd.ones((LARGE,)).as_in_context(gpu(0)) * 2
        x.as_in_context(gpu(1)).as_in_context(cpu()).wait_to_read()
        profiler.set_state("stop")
    rows = {(event.row, event.name) for event in events("operator")}
    copies = {("gpu(0) in", "_copyto"), ("gpu(1) in", "_copyto"), ("gpu(1) out", "_copyto")}
    assert rows == {("cpu(1)", "load"), ("cpu(0)", "_ones"), ("gpu(0)", "_mul_scalar"), *copies}


def test_operators_whose_output_depends_on_data(record: Record) -> None:
    record()
    nd.contrib.boolean_mask(nd.array([[1, 2], [3, 4]]), nd.array([0, 1]))
    assert counts()["_contrib_boolean_mask"] == 1


def test_an_operator_that_fails_is_not_counted(record: Record) -> None:
    record()
    bad = nd.random.normal(0, -1, (2, 2))
    with pytest.raises(mx.MXNetError):
        bad.asnumpy()
    (nd.ones((2,)) + 1).asnumpy()
    assert counts() == {"_ones": 1, "_plus_scalar": 1}


def test_operators_that_users_write(record: Record) -> None:
    class Double(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):  # type: ignore[no-untyped-def]
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):  # type: ignore[no-untyped-def]
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("profiled_double")
    class DoubleProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, shapes, dtypes):  # type: ignore[no-untyped-def]
            return Double()

    record()
    x = nd.ones((3,))
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="profiled_double")
    y.backward()
    nd.waitall()
    found = counts("Custom Operator")
    assert found["profiled_double::pure_python"] == found["_backward_profiled_double::pure_python"] == 1
    assert found["profiled_double::_mul_scalar"] == 1
    assert "_mul_scalar" not in counts()


# ---- waits


def test_waits_of_the_front_end_have_their_line(record: Record) -> None:
    gate, x = threading.Event(), nd.ones((LARGE,))
    record()
    engine.push(lambda _: gate.wait(), writes=[x], name="gate")
    threading.Timer(0.02, gate.set).start()
    x.asnumpy()  # the line of the wait
    engine.push(lambda: None)
    nd.waitall()
    waits = events("wait")
    assert [event.name for event in waits] == ["asnumpy", "copy to NumPy", "waitall"]
    assert {event.row for event in waits} == {f"thread {threading.current_thread().name}"}
    line = test_waits_of_the_front_end_have_their_line.__code__.co_firstlineno + 5
    assert all(event.where == (__file__, line) for event in waits[:2])
    assert waits[0].end - waits[0].start > 0.01
    assert counts("MXNET_C_API") == {"asnumpy": 1, "copy to NumPy": 1, "waitall": 1}


def test_back_pressure_is_a_wait(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MAX_TASKS", 1)
    gate = threading.Event()
    record()
    threading.Timer(0.02, gate.set).start()
    for _ in range(3):
        engine.push(gate.wait, context=cpu(2))
    nd.waitall()
    assert counts("MXNET_C_API")["back-pressure"] >= 1


# ---- what is asked for


@pytest.mark.parametrize(
    ("part", "left"),
    [
        ("symbolic", {"operator", "wait"}), ("imperative", {"operator", "program", "wait"}),
        ("api", {"operator", "program"}), ("memory", {"operator", "program", "wait"}),
    ],
)  # fmt: skip
def test_each_part_can_be_left_out(record: Record, part: str, left: set[str]) -> None:
    net, x = network(), nd.ones((2, 4))
    net(x).wait_to_read()
    record(**{f"profile_{part}": False})
    net(x) * 2
    (nd.ones((LARGE,)) + 1).asnumpy()
    assert {event.kind for event in events()} - {"task", "group"} == left
    assert ("FullyConnected" in counts()) is (part != "symbolic")
    assert ("_mul_scalar" in counts()) is (part != "imperative")
    assert ("Device Storage" in tables()["Memory"]) is (part != "memory")


def test_all_is_all(record: Record) -> None:
    nothing = dict.fromkeys(("profile_symbolic", "profile_imperative", "profile_api", "profile_memory"), False)
    record(**nothing)
    (nd.ones((LARGE,)) + 1).asnumpy()
    assert events() == []
    profiler.set_config(profile_all=True, aggregate_stats=True, continuous_dump=False, **nothing)
    (nd.ones((LARGE,)) + 1).asnumpy()
    assert {event.kind for event in events()} >= {"operator", "wait"}


def test_memory_is_what_arrays_take(record: Record) -> None:
    nd.waitall()
    record()
    mebibyte = nd.ones((1 << 18,))
    nd.waitall()
    del mebibyte
    samples = [sample for sample in profiler.control.profiler.contents().samples if sample.name == "Memory: cpu/0"]
    begin = samples[0].value
    assert [sample.value - begin for sample in samples] == [0, 1 << 20, 0]
    entry = tables()["Memory"]["Device Storage"]["Memory: cpu/0"]  # type: ignore[index]
    assert entry["Count"] == 3
    assert entry["Max"] == round((begin + (1 << 20)) / 1000, 6)


def test_a_trace_may_run_beside_it(record: Record) -> None:
    record()
    with engine.trace() as log:
        (nd.ones((LARGE,)) + 1).wait_to_read()
    assert {entry[1] for entry in log} >= {"_plus_scalar"}
    assert all(len(entry) == 4 for entry in log)
    assert counts() == {"_ones": 1, "_plus_scalar": 1}


def test_many_threads_count_exactly(record: Record) -> None:
    record()

    def work() -> None:
        x = nd.ones((3,))
        for _ in range(200):
            x = nd.sin(x)
        x.asnumpy()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts() == {"_ones": 4, "sin": 800}
    assert front.shortcuts.blocked


def test_on_a_gpu_each_operator_is_waited_for(record: Record) -> None:
    class Chain(gluon.HybridBlock):
        def hybrid_forward(self, F, x):  # type: ignore[no-untyped-def]
            return F.sqrt(F.exp(x) * 3) - 1

    with fake_gpus(1):
        net = Chain()
        net.hybridize()
        x = nd.ones((4, 5), ctx=gpu(0))
        before = net(x).asnumpy()
        record()
        np.testing.assert_array_equal(net(x).asnumpy(), before)
        (x + 1).wait_to_read()
        assert counts() == {"exp": 1, "_mul_scalar": 1, "sqrt": 1, "_minus_scalar": 1, "_plus_scalar": 1}
        profiler.set_state("stop")
    assert {event.row for event in events("operator")} == {"gpu(0)"}
    assert [event.name for event in events("group")] == ["group of 4"]
    assert "one kernel of the GPU" in events("group")[0].about
