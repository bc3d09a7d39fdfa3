"""Data parallel training, predicted: formulas, one device that stands for all, and what a step takes in cases worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from minimx.base import ArgumentError, UnknownNameError
from minimx.parallel import simulate
from minimx.parallel.simulate import Device, Link, Machine, TaskGraph, Work, data_parallel, explore, model, replay, scaling

LINK = Link(bandwidth=1e6, latency=1e-3)
MEMORY = Device(bandwidth=3e7)  # adds 1e7 bytes a second
ADDING = 1e-7  # seconds a byte


def step(*nbytes: float, backward: float = 1.0, update: float = 0.0) -> TaskGraph:
    """A step of one device: forward, a second of backward for each gradient, and an update of all."""
    graph = TaskGraph(parameters={f"p{number}": each for number, each in enumerate(nbytes)}, batch=1)
    last = graph.work("forward", "gpu(0)", seconds=1.0)
    for name in graph.parameters:
        last = graph.work(f"backward {name}", "gpu(0)", seconds=backward, after=last, makes=(name,))
    graph.work("update", "gpu(0)", seconds=update, after=last, uses=tuple(graph.parameters), scales=False)
    return graph


def communication(devices: int, nbytes: float, algorithm: str, device: Device = MEMORY, **how: Any) -> float:
    """Seconds from the end of backward to that of the step, for one gradient."""
    how = {"link": LINK, **how}
    return data_parallel(step(nbytes), devices, algorithm, device=device, **how).step_time - 2.0


# ---- formulas; n devices, m bytes, latency a, bandwidth B, c seconds a byte for adding


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("n", [2, 3, 4, 7, 8])
def test_ring(n: int, whole: bool) -> None:
    m, a, b = 1e5, LINK.latency, LINK.bandwidth
    expected = 2 * (n - 1) / n * m / b + 2 * (n - 1) * a + (n - 1) / n * m * ADDING
    assert communication(n, m, "ring", whole=whole) == pytest.approx(expected, rel=1e-12)
    free = 2 * (n - 1) / n * m / b + 2 * (n - 1) * a
    assert communication(n, m, "ring", Device(), whole=whole) == pytest.approx(free, rel=1e-12)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 9])
def test_tree(n: int, whole: bool) -> None:
    m, rounds = 1e5, math.ceil(math.log2(n))
    expected = 2 * rounds * (LINK.latency + m / LINK.bandwidth) + rounds * m * ADDING
    assert communication(n, m, "tree", whole=whole) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("n", "s"), [(2, 1), (4, 1), (3, 2), (4, 4), (2, 5)])
def test_parameter_servers(n: int, s: int, whole: bool) -> None:
    m = 1e5
    expected = 2 * (LINK.latency + m * max(n, s) / (s * LINK.bandwidth)) + (n - 1) * m / s * ADDING
    assert communication(n, m, "parameter_server", servers=s, whole=whole) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("n", "g"), [(4, 2), (6, 3), (6, 2), (8, 4), (4, 4)])
def test_hierarchical(n: int, g: int, whole: bool) -> None:
    m, network, nodes = 1.2e5, Link(1e5, 5e-3), n // g
    inside = (g - 1) * (LINK.latency + m / g / LINK.bandwidth)
    between = 2 * (nodes - 1) * (network.latency + m / (g * nodes) * g / network.bandwidth)  # g rings share the link of a node
    adding = ((g - 1) * m / g + (nodes - 1) * m / n) * ADDING
    found = communication(n, m, "hierarchical", per_node=g, network=network, whole=whole)
    assert found == pytest.approx(2 * inside + between + adding, rel=1e-9)


@pytest.mark.parametrize("whole", [True, False])
def test_compressed_gradients_go_once_around_the_ring(whole: bool) -> None:
    n, m = 5, 1.6e6
    travel, adding = LINK.latency + m / 16 / LINK.bandwidth, m * ADDING
    assert adding > travel  # so that parts wait for the adding, but for the first
    expected = travel + (n - 1) * adding
    assert communication(n, m, "ring", compression="2bit", whole=whole) == pytest.approx(expected, rel=1e-9)
    free = (n - 1) * travel
    assert communication(n, m, "ring", Device(), compression="2bit", whole=whole) == pytest.approx(free, rel=1e-9)


@pytest.mark.parametrize("whole", [True, False])
def test_compressed_gradients_go_to_servers_and_weights_come_back_whole(whole: bool) -> None:
    n, m = 4, 1.6e6
    expected = 2 * LINK.latency + (m / 16 + m) / LINK.bandwidth
    found = communication(n, m, "parameter_server", Device(), compression="2bit", whole=whole)
    assert found == pytest.approx(expected, rel=1e-9)


# ---- one for all


@pytest.mark.parametrize("n", [2, 3, 5, 6, 8])
@pytest.mark.parametrize("overlap", [True, False])
@pytest.mark.parametrize("bucket", [0, 3e6, 25e6])
@pytest.mark.parametrize(
    ("algorithm", "how"),
    [
        ("ring", {}), ("ring", {"compression": "2bit"}), ("tree", {}), ("tree", {"update_on_kvstore": True}),
        ("parameter_server", {"servers": 1}), ("parameter_server", {}), ("parameter_server", {"servers": 3, "compression": "2bit"}),
        ("hierarchical", {"per_node": 2}),
    ],
)  # fmt: skip
def test_one_device_stands_for_all(n: int, overlap: bool, bucket: float, algorithm: str, how: dict[str, Any]) -> None:
    if algorithm == "hierarchical" and n % 2:
        with pytest.raises(ArgumentError, match="cannot be put into nodes of 2"):
            data_parallel(model("lenet"), n, algorithm, batch=8 * n, **how)
        return
    how = {"batch": 8 * n, "overlap": overlap, "bucket": bucket, "link": "PCIe 3.0", **how}
    one = data_parallel(model("alexnet"), n, algorithm, whole=False, **how)
    each = data_parallel(model("alexnet"), n, algorithm, whole=True, **how)
    assert one.step_time == pytest.approx(each.step_time, rel=1e-9)
    assert len(one.result.tasks) < len(each.result.tasks)


def test_thousands_of_devices_take_no_more_tasks_than_one() -> None:
    curves = [scaling(model("resnet50"), batch=32, weak=True, algorithm=algorithm) for algorithm in simulate.ALGORITHMS]
    for curve in curves:
        assert [each.devices for each in curve] == [1 << power for power in range(13)]
        assert all(0 < each.efficiency <= 1 + 1e-12 for each in curve)
        assert all(len(each.result.tasks) < 1000 for each in curve)


# ---- steps worked out by hand


def test_overlap_hides_what_is_sent_while_something_is_computed() -> None:
    graph, how = step(1e6, 1e6, update=0.5), {"link": Link(1e6), "bucket": 0}  # on 2 devices each gradient takes 1 s
    assert data_parallel(graph, 2, **how).step_time == 1 + 2 + 1 + 0.5  # the second one is not hidden
    assert data_parallel(graph, 2, overlap=False, **how).step_time == 1 + 2 + 2 + 0.5
    assert data_parallel(graph, 2, **{**how, "bucket": 2e6}).step_time == 1 + 2 + 2 + 0.5  # together, when both are there
    found = data_parallel(graph, 2, **how)
    assert (found.alone, found.single, found.communication) == (3.5, 3.5, 1.0)
    assert found.speed_up == 2 * 3.5 / 4.5
    assert found.efficiency == 3.5 / 4.5
    assert (found.batch, found.samples_per_second) == (2, 2 / 4.5)


def test_buckets() -> None:
    found = data_parallel(step(1e6, 2e6, 3e6), 2, link=Link(1e6), bucket=2.5e6)
    names = [task.name for task in found.result.tasks if isinstance(task, Work) and task.device == "network"]
    assert names == ["add p0 and 1 more", "add p2"]


def test_strong_and_weak_scaling() -> None:
    graph = step(0.0).with_batch(8)  # forward and backward take 8 s each
    strong = scaling(graph, (1, 2, 3, 8), batch=8, link=Link())
    assert [each.step_time for each in strong] == [16, 8, 6, 2]  # 3 devices: the largest part is 3 samples
    assert [each.speed_up for each in strong] == [1, 2, 16 / 6, 8]
    weak = scaling(graph, (1, 4), batch=8, weak=True, link=Link())
    assert [each.step_time for each in weak] == [16, 16]
    assert [each.speed_up for each in weak] == [1, 4]
    assert [each.batch for each in weak] == [8, 32]
    with pytest.raises(ArgumentError, match="a batch of 8 cannot be shared out among 9 devices"):
        scaling(graph, (9,), batch=8)


def test_updates_on_servers_are_shared_among_them() -> None:
    graph, how = step(1e6, update=1.0), {"link": Link(1e9)}
    each = data_parallel(graph, 4, "parameter_server", servers=4, **how)
    one = data_parallel(graph, 4, "parameter_server", servers=1, **how)
    assert each.step_time == pytest.approx(2 + 0.001 + 0.25 + 0.001)
    assert one.step_time == pytest.approx(2 + 0.004 + 1 + 0.004)
    root = data_parallel(graph, 4, "tree", update_on_kvstore=True, **how)
    assert root.step_time == pytest.approx(2 + 0.002 + 1 + 0.002)


def test_a_front_end_goes_on_with_each_device() -> None:
    """What a recorded step has beside the device: the front end, which queues, and waits at the end."""
    graph = TaskGraph(parameters={"p": 1e6})
    queue = graph.work("queue", "host", seconds=0.5, scales=False)
    backward = graph.work("backward", "cpu(0)", seconds=2, after=queue, makes=("p",))
    more = graph.work("queue", "host", seconds=0.25, after=queue, scales=False)
    update = graph.work("update", "cpu(0)", seconds=1, after=[backward, more], uses=("p",), scales=False)
    graph.work("seen", "host", after=[more, update])
    found = data_parallel(graph, 2, link=Link(1e6))
    assert found.step_time == 0.5 + 2 + 1 + 1
    assert found.batch is None
    assert found.speed_up == 2 * 3.5 / 4.5
    whole = data_parallel(graph, 2, link=Link(1e6), whole=True)
    assert whole.step_time == found.step_time
    assert {"host(0)", "host(1)"} <= set(whole.result.lanes)


def test_gradients_of_a_recorded_graph_may_be_given_other_sizes() -> None:
    found = data_parallel(step(1e6), 2, link=Link(1e6), parameters={"p0": 3e6})
    assert found.step_time == 2 + 3
    with pytest.raises(ArgumentError, match="no task makes the gradient of 'another'; there are those of p0"):
        data_parallel(step(1e6), 2, parameters={"another": 3e6})
    with pytest.raises(ArgumentError, match="the size of 'p0' is -1"):
        data_parallel(step(1e6), 2, parameters={"p0": -1})
    with pytest.raises(ArgumentError, match="does not say which tasks make gradients"):
        data_parallel(step(1e6), 2, parameters={})


def test_other_machines_are_simulated_device_by_device() -> None:
    graph = step(1e6)
    shared = data_parallel(graph, 4, machine=simulate.bus(4, link=Link(1e6)))
    assert shared.step_time == pytest.approx(2 + 6 * 4 * 0.25)  # 6 rounds in which all 4 send a quarter over one link
    apart = data_parallel(graph, 4, machine=simulate.ring(4, link=Link(1e6)), whole=True)
    assert apart.step_time == pytest.approx(2 + 6 * 0.25)
    with pytest.raises(ArgumentError, match="whole=False is for devices that all have equal links"):
        data_parallel(graph, 4, machine=simulate.bus(4, link=Link(1e6)), whole=False)
    with pytest.raises(ArgumentError, match="would take millions of tasks"):
        data_parallel(model("resnet50"), 2048, batch=2048, whole=True, bucket=0)


def test_in_turn_the_ring_is_as_fast() -> None:
    machine = simulate.switch(4, link=LINK, sharing="in turn")
    fair = simulate.switch(4, link=LINK)
    found = [data_parallel(step(1e6), 4, machine=each, whole=True).step_time for each in (machine, fair)]
    assert found[0] == pytest.approx(found[1])


def test_explore() -> None:
    found = explore(devices=16, batch=512, bandwidth=1e9, latency=1e-4, algorithm="parameter_server", model="alexnet")
    assert found.devices == 16
    assert found.batch == 512
    assert "update" in str(found.timeline().events)
    assert "network to servers" in found.timeline().table()
    assert str(found).startswith("16 devices, parameter_server: ")
    assert explore(1).speed_up == 1
    assert explore(16, algorithm="hierarchical", batch=512).step_time > 0
    assert explore(2, 64, model=model("mlp")).speed_up < 2
    faster = [explore(8, bandwidth=bandwidth).step_time for bandwidth in (1e8, 1e9, 1e10)]
    assert faster == sorted(faster, reverse=True)


def test_a_curve_prints_as_a_table() -> None:
    lines = str(scaling(step(1e6), (1, 2), batch=2, link=Link(1e7))).splitlines()
    assert lines[0].split() == ["devices", "batch", "a", "device", "step", "communication", "speed-up", "efficiency"]
    assert lines[2].split() == ["2", "2", "1", "2.10", "s", "100", "ms", "1.9", "95", "%"]


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"devices": 0}, ArgumentError, "devices is 0; at least 1"),
        ({"devices": 2.5}, ArgumentError, "devices must be an int"),
        ({"algorithm": "star"}, UnknownNameError, "no algorithm 'star'; choose one of 'ring', 'tree'"),
        ({"compression": "1bit"}, UnknownNameError, "no compression '1bit'"),
        ({"algorithm": "tree", "compression": "2bit"}, ArgumentError, "compressed gradients cannot be added"),
        ({"algorithm": "hierarchical", "compression": "2bit"}, ArgumentError, "compressed gradients cannot be added"),
        ({"algorithm": "parameter_server", "servers": 0}, ArgumentError, "servers is 0"),
        ({"algorithm": "parameter_server", "update_on_kvstore": False}, ArgumentError, "servers of parameters update them"),
        ({"update_on_kvstore": True}, ArgumentError, "update_on_kvstore=True is for 'tree'"),
        ({"algorithm": "hierarchical", "devices": 12}, ArgumentError, "12 devices cannot be put into nodes of 8"),
        ({"network": "Ethernet 10G"}, ArgumentError, "network is the link of a node"),
        ({"servers": 2}, ArgumentError, "'ring' has no servers"),
        ({"machine": simulate.switch(2), "link": LINK}, ArgumentError, "give either that, or device, link and network"),
        ({"link": "string"}, UnknownNameError, "no link 'string'; choose one of 'PCIe 3.0'"),
        ({"device": "abacus"}, UnknownNameError, "no device 'abacus'; choose one of 'core'"),
        ({"batch": 1}, ArgumentError, "a batch of 1 cannot be shared out among 2 devices"),
        ({"bucket": "large"}, ArgumentError, "bucket must be a number"),
        ({"graph": "resnet50"}, ArgumentError, "a TaskGraph or a Model is wanted, got 'resnet50'"),
        ({"graph": model("mlp")}, ArgumentError, "give the model 'mlp' a batch"),
        ({"graph": TaskGraph()}, ArgumentError, "the graph of a step on one device is wanted, this one works on none"),
    ],
)
def test_what_cannot_be_predicted(how: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"graph": step(1e6), "devices": 2, **how}
    with pytest.raises(error, match=message):
        data_parallel(given.pop("graph"), given.pop("devices"), **given)


def test_a_graph_of_two_devices_or_two_steps_is_refused() -> None:
    two = step(1e6)
    two.work("other", "gpu(1)", seconds=1)
    with pytest.raises(ArgumentError, match=r"this one works on gpu\(0\), gpu\(1\)"):
        data_parallel(two, 2)
    again = step(1e6)
    again.work("backward", "gpu(0)", seconds=1, after=2, makes=("p0",))
    with pytest.raises(ArgumentError, match="the gradient of 'p0' is made after an update"):
        data_parallel(again, 2)


def test_one_device_has_nobody_to_send_to() -> None:
    found = data_parallel(step(1e6), 1, "parameter_server")
    assert (found.step_time, found.communication, found.speed_up) == (2.0, 0.0, 1.0)


# ---- the oracle bites


@pytest.mark.xfail(strict=True, reason="a deliberate fault: a ring that forgets to send the last part")
def test_the_twin_of_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    from minimx.parallel.simulate import collectives

    right = collectives.around
    monkeypatch.setattr(
        collectives, "around", lambda site, name, part, ring, *rest: right(site, name, part * (1 - 1 / len(ring)), ring, *rest)
    )
    test_ring(4, True)


def test_a_machine_of_a_graph_with_contention() -> None:
    """Lanes that slow each other down: two devices take 1.5 times as long as one."""
    machine = simulate.switch(2, link=Link(1e9))
    machine.contention = (1.0, 1.5)
    found = data_parallel(step(0.0), 2, machine=machine)
    assert found.step_time == pytest.approx(3.0)
    assert replay(step(0.0), Machine(contention=(1.0, 1.5))).makespan == 2.0
