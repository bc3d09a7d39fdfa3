"""Task graphs, machines and models: what they hold, what they refuse, and figures that are known."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import minimx as mx
from minimx.base import ArgumentError, FileFormatError, MissingFileError, UnknownNameError
from minimx.parallel import simulate
from minimx.parallel.simulate import Device, Link, Machine, TaskGraph, Transfer, Work, model


def diamond() -> TaskGraph:
    """One task, two after it, and one after both."""
    graph = TaskGraph(parameters={"weight": 8.0}, batch=4)
    first = graph.work("first", "gpu(0)", seconds=1.0, flops=4e9, read=8, written=4)
    left = graph.work("left", "gpu(0)", seconds=2.0, after=first, makes=("weight",))
    right = graph.transfer("right", "gpu(0)", "gpu(1)", 1e6, after=[first])
    graph.work("last", "gpu(1)", seconds=0.5, overhead=0.1, after=[right, left], uses=("weight",), scales=False, priority=2)
    return graph


# ---- graphs


def test_a_graph_knows_its_lanes_devices_and_longest_path() -> None:
    graph = diamond()
    assert graph.lanes == ["gpu(0)", "gpu(1) in", "gpu(1)"]
    assert graph.devices == ["gpu(0)", "gpu(1)"]
    assert graph[3].after == (1, 2)
    assert repr(graph) == "<TaskGraph: 3 works and 1 transfers in 3 lanes>"
    assert graph.longest(lambda task: 1.0) == (3.0, [0, 1, 3])
    assert graph.longest(lambda task: 5.0 if isinstance(task, Transfer) else 1.0) == (7.0, [0, 2, 3])
    assert TaskGraph().longest(lambda task: 1.0) == (0.0, [])
    assert Work("w", "gpu(0)", stream="add").lane == "gpu(0) add"
    assert Transfer("t", "gpu(1)", "cpu(0)").lane == "gpu(1) out"


def test_a_larger_batch_takes_longer_where_work_depends_on_it() -> None:
    graph = diamond().with_batch(8)
    first, left, right, last = graph
    assert isinstance(first, Work)
    assert isinstance(right, Transfer)
    assert (first.seconds, first.flops, first.read, first.written) == (2.0, 8e9, 16, 8)
    assert (left.seconds, right.nbytes, last.seconds, graph.batch) == (4.0, 2e6, 0.5, 8)
    with pytest.raises(ArgumentError, match="has no sample"):
        graph.with_batch(0)
    with pytest.raises(ArgumentError, match=r"record\(batch=64\)"):
        TaskGraph().with_batch(2)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"seconds": -1.0}, "has seconds -1.0; a number, 0 or more"),
        ({"flops": math.nan}, "has flops nan"),
        ({"read": math.inf}, "has read inf"),
        ({"after": 3}, "comes after task 3, and there are 0"),
        ({"after": [-1]}, "comes after task -1"),
    ],
)
def test_a_graph_refuses_what_cannot_be(how: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        TaskGraph().work("wrong", "gpu(0)", **how)


def test_a_graph_survives_a_file(tmp_path: Path) -> None:
    path = tmp_path / "step.json"
    graph = diamond()
    graph.save(path)
    again = TaskGraph.load(path)
    assert again == graph
    again.save(path)
    assert TaskGraph.load(path) == graph


EMPTY = {"format": "minimx task graph 1", "batch": None, "parameters": {}}


@pytest.mark.parametrize(
    "content",
    [
        {}, [], {"format": "another"}, {**EMPTY, "parameters": [], "tasks": []},
        {**EMPTY, "tasks": [{"kind": "thought", "name": "x"}]},
        {**EMPTY, "tasks": [{"kind": "work", "name": "x", "device": 3}]},
        {**EMPTY, "tasks": [{"kind": "work", "name": "x", "device": "a", "after": [0]}]},
        {**EMPTY, "tasks": [{"kind": "work", "name": "x", "device": "a", "seconds": -1}]},
        {**EMPTY, "tasks": [{"kind": "work", "name": "x", "device": "a", "colour": "red"}]},
    ],
)  # fmt: skip
def test_another_file_is_no_graph(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "step.json"
    path.write_text(json.dumps(content))
    with pytest.raises(FileFormatError, match="no task graph"):
        TaskGraph.load(path)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\x00", b"[" * 100_000])
def test_what_is_no_json_is_no_graph(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "step.json"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match="no task graph"):
        TaskGraph.load(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        TaskGraph.load(tmp_path / "absent.json")
    diamond().save(tmp_path / "step.json")
    assert json.loads((tmp_path / "step.json").read_text())["tasks"][0] == {
        "kind": "work", "name": "first", "device": "gpu(0)", "flops": 4e9, "read": 8, "written": 4, "seconds": 1.0,
    }  # fmt: skip


# ---- machines


def test_the_roofline() -> None:
    device = Device(flops=1e12, bandwidth=1e10, efficiency=0.5, overhead=1e-5)
    assert device.seconds(Work("gemm", "gpu(0)", flops=1e9, read=1e6)) == 0.002
    assert device.seconds(Work("copy", "gpu(0)", flops=1e6, read=1e8, written=1e8)) == 0.02
    assert device.seconds(Work("measured", "gpu(0)", flops=1e9, seconds=0.5)) == 0.5
    assert Device(speed=4).seconds(Work("measured", "gpu(0)", seconds=0.5)) == 0.125
    assert device.begins_after(Work("any", "gpu(0)")) == 1e-5
    assert device.begins_after(Work("any", "gpu(0)", overhead=0.0)) == 0.0
    assert Device().seconds(Work("free", "gpu(0)", flops=1e9)) == 0.0


def test_ways() -> None:
    link = Link(1e9, 1e-5)
    one = simulate.ring(5, link=link)
    assert one.way("gpu(4)", "gpu(1)") == (("gpu(4) > gpu(0)", "gpu(0) > gpu(1)"), 2e-5)
    assert one.way("gpu(1)", "gpu(4)") == (("gpu(1) > gpu(0)", "gpu(0) > gpu(4)"), 2e-5)
    assert simulate.connected(3, link=link).way("gpu(2)", "gpu(0)") == (("gpu(2) > gpu(0)",), 1e-5)
    assert simulate.bus(3, link=link).way("gpu(2)", "gpu(0)") == (("bus",), 1e-5)
    assert simulate.switch(2, link=link, servers=1).way("gpu(1)", "server(0)") == (("gpu(1) out", "server(0) in"), 1e-5)
    nodes = simulate.cluster(2, 2, inner=link, network=Link(1e8, 1e-4))
    assert nodes.way("gpu(0)", "gpu(1)") == (("gpu(0) out", "gpu(1) in"), 1e-5)
    assert nodes.way("gpu(1)", "gpu(2)") == (("node(0) out", "node(1) in"), 1e-4)
    assert nodes.link("gpu(1)", "gpu(2)") == Link(1e8, 1e-4)
    assert nodes.link("gpu(1)", "gpu(1)") == Link()
    pairs = simulate.connected(4, link=link).links
    assert len(pairs) == len(list(pairs)) == 12
    assert all(pairs[name] == 1e9 for name in pairs)
    with pytest.raises(KeyError):
        pairs["gpu(0) > gpu(0)"]


def test_simulated_gpus_are_a_machine() -> None:
    with mx.device.simulate_gpus(2, bandwidth=1e9, latency=1e-4):
        machine = simulate.of_simulated_gpus()
    assert machine.sharing == "in turn"
    assert machine.way("cpu(0)", "gpu(1)") == (("gpu(1) in",), 1e-4)
    assert machine.way("gpu(0)", "gpu(1)") == (("gpu(0) out", "gpu(1) in"), 1e-4)
    assert machine.link("gpu(0)", "cpu(0)").seconds(1e6) == 1e-3 + 1e-4
    with mx.device.simulate_gpus(1):
        assert simulate.of_simulated_gpus().link("gpu(0)", "cpu(0)").seconds(1e6) == 0.0
    with mx.device.simulate_gpus(0), pytest.raises(ArgumentError, match="no GPUs are simulated"):
        simulate.of_simulated_gpus()


def test_contention_grows_in_proportion_beyond_what_was_measured() -> None:
    machine = Machine(contention=(1.0, 1.2))
    assert [machine.slowdown(lanes) for lanes in (0, 1, 2, 4)] == [1.0, 1.0, 1.2, 2.4]
    assert Machine().slowdown(9) == 1.0


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Device(flops=0), ArgumentError, "Device: flops is 0; a number above 0"),
        (lambda: Device(overhead=-1), ArgumentError, "Device: overhead is -1"),
        (lambda: Device(workers=0), ArgumentError, "Device: workers is 0"),
        (lambda: Device(speed="fast"), ArgumentError, "Device: speed must be a number"),
        (lambda: Link(bandwidth=-1), ArgumentError, "Link: bandwidth is -1"),
        (lambda: Link(latency=math.inf), ArgumentError, "Link: latency is inf"),
        (lambda: Machine(sharing="none"), UnknownNameError, "choose one of 'fair', 'in turn'"),
        (lambda: Machine(contention=(0.5,)), ArgumentError, "contention holds 0.5"),
        (lambda: simulate.ring(0), ArgumentError, "1 device or more, got 0"),
        (lambda: simulate.cluster(1, 0), ArgumentError, "gpus_per_node is 0"),
        (lambda: simulate.switch(2).device("gpu(7)"), ArgumentError, r"no device 'gpu\(7\)'; there are gpu\(0\), gpu\(1\)"),
        (lambda: Machine().way("gpu(0)", "gpu(1)"), ArgumentError, r"no link leads from gpu\(0\) to gpu\(1\)"),
        (lambda: model("lenet6"), UnknownNameError, "no model 'lenet6'; choose one of 'mlp', 'lenet'"),
        (lambda: model("mlp").graph(0), ArgumentError, "a batch of 0 has no sample"),
    ],
)
def test_machines_and_models_refuse_what_cannot_be(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


# ---- models


@pytest.mark.parametrize(
    ("name", "parameters", "gflops", "layers"),
    [
        ("mlp", 203_530, 0.000407, 2), ("lenet", 61_706, 0.000833, 5), ("alexnet", 61_100_840, 1.43, 8),
        ("vgg16", 138_357_544, 30.9, 16), ("resnet18", 11_689_512, 3.63, 21), ("resnet50", 25_557_032, 8.18, 54),
    ],
)  # fmt: skip
def test_models_have_the_sizes_that_are_known(name: str, parameters: int, gflops: float, layers: int) -> None:
    found = model(name)
    assert (found.parameters, len(found.layers)) == (parameters, layers)
    assert found.flops / 1e9 == pytest.approx(gflops, rel=5e-3)  # published to three figures


def test_the_step_of_a_model() -> None:
    graph = model("mlp").graph(10)
    works = [task for task in graph if isinstance(task, Work)]
    assert [work.name for work in works] == ["dense0 forward", "dense1 forward", "dense1 backward", "dense0 backward", "update"]
    assert [work.flops for work in works[:4]] == [2 * 10 * 784 * 256, 2 * 10 * 256 * 10, 4 * 10 * 256 * 10, 2 * 10 * 784 * 256]
    assert [work.makes for work in works[2:4]] == [("dense1",), ("dense0",)]
    assert works[4].uses == ("dense0", "dense1")
    assert graph.parameters == {"dense0": 4.0 * 200_960, "dense1": 4.0 * 2570}
    assert graph.batch == 10


def test_parameters_are_those_of_the_network_in_gluon() -> None:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(256, in_units=784), mx.gluon.nn.Dense(10, in_units=256))
    sizes = [math.prod(param.shape) for param in net.collect_params().values()]
    assert sum(sizes) == model("mlp").parameters
