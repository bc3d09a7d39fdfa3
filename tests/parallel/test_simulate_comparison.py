"""This machine's figures, and predicted beside measured. No test here says how long anything takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import minimx as mx
from minimx import autograd, engine, gluon, nd
from minimx.base import ArgumentError
from minimx.gluon import nn
from minimx.parallel import simulate
from minimx.parallel.simulate import Benchmarks, Device, Link, Machine, TaskGraph, calibrate, compare, on_lanes, replay


def make(contexts: Sequence[Any], batch: int) -> tuple[Callable[[], object], Any]:
    """A step of a small net on some devices."""
    net = nn.Dense(256, in_units=512)
    net.initialize(ctx=list(contexts))
    net.hybridize()
    parts = gluon.utils.split_and_load(nd.ones((batch, 512)), list(contexts))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})

    def step() -> None:
        with autograd.record():
            losses = [(net(x) ** 2).mean() for x in parts]
        autograd.backward(losses)
        trainer.step(batch)
        engine.waitall()

    return step, net.collect_params()


def test_calibration_measures_everything() -> None:
    machine = calibrate([mx.cpu(0), mx.cpu(1)], repeat=1)
    device = machine.device("cpu(1)")
    assert 1e6 < device.flops < 1e14
    assert 1e6 < device.bandwidth < 1e13
    assert 0 < device.overhead < 1
    assert machine.contention[0] == 1.0
    assert machine.contention[1] > 0  # how much, depends on what else the machine does
    assert machine.helping
    assert len(machine.memory_contention) == 2
    one = Benchmarks([mx.cpu(0)])
    one.measure()
    assert (list(one.machine().contention), list(one.machine().memory_contention)) == ([1.0], [1.0])
    assert one.per_key == 0.0
    with pytest.raises(ArgumentError, match="at least one of each"):
        calibrate([])


def test_chains_can_be_made_as_long_as_a_step() -> None:
    benchmarks = Benchmarks([mx.cpu(0)])
    benchmarks.fit(0.0)
    assert (benchmarks.layers.length, benchmarks.sums.length) == (1, 1)
    benchmarks.layers.fit(1e9)
    assert benchmarks.layers.length == 1000


def test_a_task_is_a_mixture_of_arithmetic_and_memory() -> None:
    """Two lanes: arithmetic takes 1.5 times as long then, waiting for memory 3 times; one work is half of each."""
    machine = Machine({"": Device(flops=1e9, bandwidth=1e9)}, contention=(1.0, 1.5), memory_contention=(1.0, 3.0))
    assert [machine.slowdown(2, part) for part in (1.0, 0.5, 0.0)] == [1.5, 2.25, 3.0]
    assert machine.slowdown(4, 0.5) == 4.5
    graph = TaskGraph()
    graph.work("half", "cpu(0)", flops=1e9, read=1e9, seconds=2.0, overhead=0.0)
    graph.work("memory", "cpu(1)", read=1e9, seconds=1.0, overhead=0.0)
    result = replay(graph, machine)
    device = Device(flops=1e9, bandwidth=1e9)
    parts = [
        device.arithmetic(simulate.Work("work", "cpu(0)", 1e9, size, 0.0, seconds))
        for size, seconds in ((1e9, 2), (0, 4), (5e9, 2))
    ]
    assert parts == [0.5, 1.0, 0.5]  # slow code that reads little does not wait for memory
    # together until the second ends, at 3; the first has then done 3 / 2.25 of its 2 seconds, and is alone for the rest
    assert result.end == pytest.approx([3 + 2 - 3 / 2.25, 3])


@pytest.mark.parametrize("gpus", [False, True])
def test_compare(gpus: bool) -> None:
    with mx.device.simulate_gpus(2, bandwidth=1e9, latency=1e-4):
        contexts = [(mx.gpu if gpus else mx.cpu)(number) for number in range(2)]
        found = compare(make, contexts, 256, repeat=2)
        assert found.predicted > 0
        assert found.measured > 0
        assert found.error == found.predicted / found.measured - 1
        assert replay(found.graph, found.machine).makespan > 0
        lanes = {str(context) for context in contexts}
        assert lanes <= set(found.result.lanes)
        predicted, measured = found.timelines()
        assert lanes <= set(measured.lanes)
        assert predicted.span == pytest.approx((0.0, measured.span[1] - measured.span[0]))
        assert found._repr_html_().count("<svg") == 2
        assert "all devices: " in str(found)
        if gpus:
            assert {"gpu(0) in", "gpu(1) in"} <= set(found.result.lanes)


@pytest.mark.parametrize(("count", "batch"), [(2, 3), (2, 0), (0, 4)])
def test_a_batch_must_be_shared_out_evenly(count: int, batch: int) -> None:
    with pytest.raises(ArgumentError, match="cannot be shared out evenly"):
        compare(make, [mx.cpu(number) for number in range(count)], batch)


def test_one_device_and_no_measurement() -> None:
    found = compare(make, [mx.cpu(0)], 128, repeat=1)
    assert found.predicted == pytest.approx(found.alone, rel=1e-6)  # its own graph, stretched to what was measured
    with pytest.raises(ArgumentError, match="repeat is 0"):
        compare(make, [mx.cpu(0)], 128, repeat=0)


# ---- the Trainer's way, by hand


def recorded_step(device: str) -> TaskGraph:
    """A second of front end, two of forward, two of backward, and half a second for an update of two parameters."""
    graph = TaskGraph(parameters={"first": 8.0, "last": 4.0})
    queue = graph.work("queue", "host", seconds=1, overhead=0.0, scales=False)
    forward = graph.work("forward", device, seconds=2, overhead=0.0, after=queue)
    last = graph.work("backward last", device, seconds=1, overhead=0.0, after=forward, makes=("last",))
    first = graph.work("backward first", device, seconds=1, overhead=0.0, after=last, makes=("first",))
    update = graph.work("update", device, seconds=0.75, overhead=0.0, after=first, uses=("first", "last"), scales=False)
    graph.work("seen", "host", seconds=0.0, overhead=0.0, after=[queue, update], scales=False)
    return graph


def test_two_lanes_of_one_memory() -> None:
    """The first lane adds and updates; weights are copied into the second, in its own lane."""
    machine = Machine({"": Device(bandwidth=24.0), "host": Device()})
    result = replay(on_lanes(recorded_step("cpu(0)"), [mx.cpu(0), mx.cpu(1)], machine, bucket=0), machine)
    bars = {(lane, name): (start, end) for lane, name, start, end in result.bars()}
    # the second front end begins a second later; both gradients are there at 4 and 5 (last), 5 and 6 (first)
    assert bars["cpu(1)", "backward last"] == (4, 5)
    assert bars["cpu(0)", "add last"] == (5, 5.5)  # 12 bytes read and written, 24 a second
    assert bars["cpu(0)", "update last"] == (5.5, 5.75)  # a third of the update, as of the bytes
    assert bars["cpu(0)", "add first"] == (6, 7)
    assert bars["cpu(0)", "update first"] == (7, 7.5)
    assert bars["cpu(1)", "copy last"] == (6, 6 + 8 / 24)  # its lane is free when backward has ended
    assert bars["cpu(1)", "copy first"] == pytest.approx((7.5, 7.5 + 16 / 24))
    assert result.makespan == pytest.approx(7.5 + 16 / 24)
    assert result.lanes == ["host", "cpu(0)", "cpu(1)"]


def test_small_gradients_are_added_by_one_task() -> None:
    machine = Machine({"": Device(bandwidth=24.0), "host": Device()})
    names = [bar[1] for bar in replay(on_lanes(recorded_step("cpu(0)"), [mx.cpu(0), mx.cpu(1)], machine), machine).bars()]
    assert [name for name in names if name.startswith("add")] == ["add last and 1 more"]


def test_two_gpus_with_links() -> None:
    """A gradient travels to the first GPU, is added and updated there, and the weight travels back."""
    machine = simulate.switch(2, Device(), Link(4.0, 0.25), sharing="in turn")
    result = replay(on_lanes(recorded_step("gpu(0)"), [mx.gpu(0), mx.gpu(1)], machine), machine)
    assert [(lane, name, start, end) for lane, name, start, end in result.bars() if lane.endswith("in")] == [
        ("gpu(0) in", "first", 6.25, 8.5),  # after the one of "last", which was ready a second sooner
        ("gpu(1) in", "first", 9.0, 11.25),
        ("gpu(0) in", "last", 5.0, 6.25),
        ("gpu(1) in", "last", 6.5, 7.75),
    ]
    assert result.makespan == 11.25


def test_the_front_end_takes_time_for_every_key() -> None:
    machine = Machine()
    graph = on_lanes(recorded_step("cpu(0)"), [mx.cpu(0), mx.cpu(1)], machine, per_key=4.0, bucket=0)
    result = replay(graph, machine)
    queued = [bar for bar in result.bars() if bar[1] in ("queue first", "queue last")]
    assert queued == [("host", "queue first", 2, 6), ("host", "queue last", 6, 10)]
    assert result.makespan == 10.25  # the update of the last


def test_one_device_needs_no_store() -> None:
    graph = recorded_step("cpu(0)")
    assert on_lanes(graph, [mx.cpu(0)], Machine()) is graph


def test_times_can_be_stretched() -> None:
    graph = recorded_step("cpu(0)").stretched(2.0)
    assert replay(graph).makespan == 2 * replay(recorded_step("cpu(0)")).makespan
    assert graph.parameters == {"first": 8.0, "last": 4.0}
