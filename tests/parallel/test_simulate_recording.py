"""Graphs of steps that the engine runs: tasks, what they depend on, whose gradients they make, and what the front end did."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, engine, gluon, nd
from minimx.base import ArgumentError, MXNetError
from minimx.engine import front
from minimx.engine.events import watch
from minimx.gluon import nn
from minimx.parallel import simulate
from minimx.parallel.simulate import HOST, Machine, TaskGraph, Transfer, Work, record, recorded, replay, typical

SIDE = 300  # a product of such matrices is a task of its own
ADDITIONS = ("elemwise_add", "broadcast_add")


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """A recording leaves nothing behind, however it ended."""
    blocked = front.shortcuts.blocked
    yield
    engine.waitall()
    assert watch.recorder is None
    assert not watch.on
    assert front.shortcuts.blocked == blocked


def tasks(graph: TaskGraph) -> list[tuple[int, Work]]:
    """The works of lanes, with their numbers."""
    return [(number, task) for number, task in enumerate(graph) if isinstance(task, Work) and task.device != HOST]


def comes_after(graph: TaskGraph, later: int, earlier: int) -> bool:
    """Whether one task waits for another, over any number of others."""
    return any(number == earlier or comes_after(graph, number, earlier) for number in graph[later].after if number >= earlier)


def test_tasks_with_their_figures() -> None:
    x, other = nd.ones((SIDE, 2 * SIDE)), nd.ones((2 * SIDE, SIDE))
    with record(batch=5) as graph:
        y = nd.dot(x, other)
    ((_, product),) = tasks(graph)
    assert graph.batch == 5
    assert (product.name, product.lane, product.scales) == ("dot", "cpu(0)", True)
    assert product.flops == 2 * SIDE * 2 * SIDE * SIDE
    assert product.read == 2 * 4 * SIDE * 2 * SIDE
    assert product.written == 4 * SIDE * SIDE
    assert product.seconds is not None
    assert product.seconds > 0
    assert y.shape == (SIDE, SIDE)


@pytest.mark.parametrize("waits", [True, False])
def test_dependencies_do_not_depend_on_timing(waits: bool) -> None:
    """The engine needs no edge to a task that has ended; the graph does."""
    x, other = nd.ones((SIDE, SIDE)), nd.ones((SIDE, SIDE), ctx=mx.cpu(1))
    with record() as graph:
        y = nd.dot(x, x)
        if waits:
            y.wait_to_read()
        beside = nd.dot(other, other)
        if waits:
            beside.wait_to_read()
        nd.dot(y, x)
        if waits:
            engine.waitall()
        engine.push(lambda data: data.fill(0), writes=[x], name="overwrite")
    (first, _), (second, at_the_side), (third, _), (last, overwrite) = tasks(graph)
    assert at_the_side.lane == "cpu(1)"
    assert comes_after(graph, third, first)
    assert first in graph[third].after
    assert third in graph[last].after  # it reads what the last one writes
    assert first in graph[last].after
    assert second not in graph[third].after
    assert overwrite.name == "overwrite"
    assert overwrite.written == 4 * SIDE * SIDE


def test_what_the_front_end_runs_at_once_is_its_work() -> None:
    """A task, a small operation on what it gave, and a task that reads that: in this order, over the front end's lane."""
    x, weight = nd.ones((SIDE, SIDE)), nd.ones((1, SIDE))
    with record() as graph:
        y = nd.dot(x, x)
        y.wait_to_read()
        small = y[0:1] + weight
        small.wait_to_read()
        nd.dot(nd.broadcast_add(x, small), x).wait_to_read()
    at_once = [number for number, task in enumerate(graph) if task.lane == HOST and task.name in ADDITIONS]
    first, last = tasks(graph)[0][0], tasks(graph)[-1][0]
    assert len(at_once) == 1
    assert comes_after(graph, at_once[0], first)
    assert comes_after(graph, last, at_once[0])


def test_the_front_end_is_a_chain_that_waits() -> None:
    x = nd.ones((SIDE, SIDE))
    with record() as graph:
        y = nd.dot(x, x)
        y.wait_to_read()
        nd.dot(y, y)
    host = [number for number, task in enumerate(graph) if task.lane == HOST]
    for before, after in itertools.pairwise(host):
        assert before in graph[after].after
    (first, _), (second, _) = tasks(graph)
    queued = [number for number in graph[second].after if graph[number].lane == HOST]
    assert comes_after(graph, queued[0], first)  # it queued the second when it had seen the first
    assert graph[first].after == (0,)


def test_a_replay_takes_as_long_as_what_was_recorded() -> None:
    x = nd.ones((2 * SIDE, 2 * SIDE))
    with record() as graph:
        y = x
        for _ in range(4):
            y = nd.dot(y, x)
        y.wait_to_read()
    elapsed = sum(task.seconds or 0.0 for _, task in tasks(graph))
    result = replay(graph, Machine(helping=True))
    assert result.makespan >= elapsed  # a chain
    assert result.makespan <= elapsed + sum((task.seconds or 0) + (getattr(task, "overhead", 0) or 0) for task in graph)
    assert result.utilization("cpu(0)") > 0


# ---- training


def trained(device: Any, hybridize: bool = True) -> tuple[Any, Any]:
    """A step of a net of two layers, and its parameters."""
    net = nn.HybridSequential()
    net.add(nn.Dense(256, activation="relu", in_units=128), nn.Dense(128, in_units=256))
    net.initialize(ctx=device)
    if hybridize:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    loss = gluon.loss.L2Loss()
    x, y = nd.ones((64, 128), ctx=device), nd.ones((64, 128), ctx=device)

    def step() -> None:
        with autograd.record():
            each = loss(net(x), y)
        each.backward()
        trainer.step(64)
        engine.waitall()

    step()
    return step, net.collect_params()


@pytest.mark.parametrize("hybridize", [True, False])
def test_gradients_and_updates_of_a_step(hybridize: bool) -> None:
    step, parameters = trained(mx.cpu(), hybridize)
    with record(parameters, batch=64) as graph:
        step()
    names = set(parameters)
    assert graph.parameters == {name: float(4 * np.prod(parameters[name].shape)) for name in names}
    makes = [name for task in graph for name in task.makes]
    uses = [name for task in graph for name in task.uses]
    assert sorted(makes) == sorted(names) == sorted(set(uses))
    maker = {name: number for number, task in enumerate(graph) for name in task.makes}
    for number, task in enumerate(graph):
        assert all(comes_after(graph, number, maker[name]) for name in task.uses)
        assert not (task.uses and task.scales)
    prediction = simulate.data_parallel(graph, 4, link="PCIe 3.0")
    assert prediction.batch == 256
    assert 0 < prediction.efficiency <= 1


def test_a_program_is_cut_where_gradients_are_complete() -> None:
    """Backward begins with the last layer: its gradients can be sent while the first layer's are computed."""
    step, parameters = trained(mx.cpu())
    step()
    with record(parameters) as graph:
        step()
    parts = [task for _, task in tasks(graph) if task.makes]
    order = [name for task in parts for name in task.makes]
    first, last = sorted({name.rsplit("_", 1)[0] for name in parameters})
    assert {name.rsplit("_", 1)[0] for name in order[:2]} == {last}
    assert {name.rsplit("_", 1)[0] for name in order[2:]} == {first}
    assert len(parts) > 1
    assert all(task.name.startswith("hybridsequential") and ", part " in task.name for task in parts)
    backward = 2 * 64 * (2 * 256 * 128 + 128 * 256)  # products: two gradients of the last layer, one of the first
    assert sum(task.flops for _, task in tasks(graph) if ", part " in task.name) == pytest.approx(backward, rel=0.05)  # and sums
    with record(parameters, parts=False) as whole:
        step()
    (one,) = (task for _, task in tasks(whole) if task.makes)
    assert set(one.makes) == set(parameters)
    assert one.flops == pytest.approx(sum(task.flops for _, task in tasks(graph) if ", part " in task.name))


def test_copies_over_links_are_transfers() -> None:
    with mx.device.simulate_gpus(2, bandwidth=1e9, latency=1e-4):
        x = nd.ones((SIDE, SIDE), ctx=mx.gpu(0))
        with record() as graph:
            y = nd.dot(x, x).as_in_context(mx.gpu(1))
            nd.dot(y, y).as_in_context(mx.cpu()).wait_to_read()
        machine = simulate.of_simulated_gpus()
        found = [task for task in graph if isinstance(task, Transfer)]
        assert [(task.source, task.target, task.nbytes, task.lane) for task in found] == [
            ("gpu(0)", "gpu(1)", 4 * SIDE * SIDE, "gpu(1) in"), ("gpu(1)", "cpu(0)", 4 * SIDE * SIDE, "gpu(1) out"),
        ]  # fmt: skip
        modelled = 1e-4 + 4 * SIDE * SIDE / 1e9
        assert all((task.seconds or 0) >= modelled for task in found)
        assert machine.seconds(found[0]) == pytest.approx(modelled)
        result = replay(graph, machine)
        number = next(number for number, task in enumerate(graph) if task is found[0])
        assert result.end[number] - result.start[number] == pytest.approx(modelled)
        assert simulate.replay(graph).makespan > 2 * modelled  # as it was recorded


def test_pushes_of_other_threads_belong_to_the_step() -> None:
    x = nd.ones((SIDE, SIDE))
    engine.waitall()
    with record() as graph:
        thread = threading.Thread(target=lambda: nd.dot(x, x).wait_to_read())
        thread.start()
        thread.join()
    assert [task.name for _, task in tasks(graph)] == ["dot"]


# ---- several recordings


def test_the_typical_graph_has_the_medians_of_the_usual_form() -> None:
    graphs = []
    for seconds in (3.0, 1.0, 2.0):
        graph = TaskGraph(parameters={"w": 4.0}, batch=2)
        first = graph.work("a", "cpu(0)", seconds=seconds, overhead=seconds / 10)
        graph.add(Transfer("t", "cpu(0)", "gpu(0)", 8.0, seconds=2 * seconds, after=(first,)))
        graphs.append(graph)
    odd = TaskGraph()
    odd.work("a", "cpu(1)", seconds=100.0)
    found = typical([odd, *graphs])
    assert [(task.seconds, getattr(task, "overhead", None)) for task in found] == [(2.0, 0.2), (4.0, None)]
    assert (found.parameters, found.batch) == ({"w": 4.0}, 2)
    with pytest.raises(ArgumentError, match="there are no graphs"):
        typical([])


def test_a_step_is_recorded_again_and_again() -> None:
    step, parameters = trained(mx.cpu())
    calls = []
    graph = recorded(lambda: calls.append(step()), parameters, batch=64, repeat=3, warm=1)
    assert len(calls) == 4
    assert graph.batch == 64
    assert sorted(name for task in graph for name in task.makes) == sorted(parameters)
    with pytest.raises(ArgumentError, match="repeat is 0"):
        recorded(step, repeat=0)


# ---- what cannot be recorded


def test_only_one_records() -> None:
    with record(), pytest.raises(MXNetError, match="being recorded already"):
        with record():
            pass


def test_an_error_ends_the_recording() -> None:
    with pytest.raises(ZeroDivisionError), record():
        1 / 0  # noqa: B018  # the error


def test_a_failed_task_is_recorded_and_its_failure_stays() -> None:
    x = nd.ones((SIDE, SIDE))

    def fail(data: Any, out: Any) -> None:
        raise RuntimeError("on purpose")

    target = nd.zeros((SIDE, SIDE))
    with record() as graph:
        engine.push(fail, reads=[x], writes=[target], name="failing")
    assert [task.name for _, task in tasks(graph)] == ["failing"]
    with pytest.raises(RuntimeError, match="on purpose"):
        target.asnumpy()


@pytest.mark.parametrize("parameters", [3, "weight", ["weight"], {"weight": 3}, [None]])
def test_parameters_have_gradients(parameters: Any) -> None:
    with pytest.raises(ArgumentError, match="record: "), record(parameters):
        pass


def test_gradients_may_be_given_by_name() -> None:
    weight = nd.ones((SIDE, SIDE))
    weight.attach_grad()
    with record({"w": weight.grad}) as graph:
        with autograd.record():
            y = nd.dot(weight, weight).sum()
        y.backward()
    assert graph.parameters == {"w": 4.0 * SIDE * SIDE}
    assert sum("w" in task.makes for task in graph) == 1
