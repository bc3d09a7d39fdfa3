"""The simulation from event to event: small cases worked out by hand, and what must hold for all graphs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from minimx.base import ArgumentError
from minimx.parallel import simulate
from minimx.parallel.simulate import Device, Link, Machine, Result, TaskGraph, Transfer, Work, replay


def times(result: Result) -> list[tuple[float, float]]:
    """(start, end) of all tasks, to the nanosecond."""
    return [(round(start, 9), round(end, 9)) for start, end in zip(result.start, result.end)]


# ---- lanes


def test_a_lane_runs_one_task_at_a_time_in_the_order_in_which_they_are_ready() -> None:
    graph = TaskGraph()
    a = graph.work("a", "gpu(0)", seconds=2)
    b = graph.work("b", "gpu(1)", seconds=1)
    c = graph.work("c", "gpu(0)", seconds=1, after=b)
    graph.work("d", "gpu(0)", seconds=1)
    graph.work("e", "gpu(1)", seconds=4, after=a)
    graph.work("f", "gpu(0)", seconds=1, after=[a, c])
    result = replay(graph)
    # d was ready at 0, c at 1: d comes first, though c has the smaller number
    assert times(result) == [(0, 2), (0, 1), (3, 4), (2, 3), (2, 6), (4, 5)]
    assert result.makespan == 6
    assert [(step.task.name, step.reason) for step in result.critical_path()] == [("a", "nothing"), ("e", "data")]
    assert result.busy("gpu(0)") == 5
    assert result.utilization("gpu(0)") == 5 / 6
    assert result.bounds() == (6.0, 5.0)


def test_the_highest_priority_of_those_that_are_ready_begins() -> None:
    graph = TaskGraph()
    graph.work("first", "gpu(0)", seconds=1)
    for priority in (0, 5, 2):
        graph.work(f"{priority}", "gpu(0)", seconds=1, priority=priority)
    result = replay(graph)
    assert result.start == [2, 3, 0, 1]


def test_workers_streams_and_overhead() -> None:
    graph = TaskGraph()
    for number in range(3):
        graph.work(f"{number}", "gpu(0)", seconds=1)
    graph.work("beside", "gpu(0)", seconds=1, stream="add", overhead=0.0)
    machine = Machine({"gpu(0)": Device(workers=2, overhead=0.25)})
    assert times(replay(graph, machine)) == [(0, 1.25), (0, 1.25), (1.25, 2.5), (0, 1)]


def test_what_a_lane_waits_for_is_on_the_critical_path() -> None:
    graph = TaskGraph()
    graph.work("long", "gpu(0)", seconds=3)
    graph.work("short", "gpu(0)", seconds=1)
    path = replay(graph).critical_path()
    assert [(step.number, step.start, step.end, step.reason) for step in path] == [(0, 0, 3, "nothing"), (1, 3, 4, "lane")]


def test_nothing_and_no_time() -> None:
    assert replay(TaskGraph()).makespan == 0
    assert replay(TaskGraph()).critical_path() == []
    graph = TaskGraph()
    first = graph.work("a", "gpu(0)")
    graph.work("b", "gpu(1)", after=first)
    assert times(replay(graph)) == [(0, 0), (0, 0)]
    assert replay(graph).utilization("gpu(0)") == 0


def test_the_front_end_helps_where_it_waits() -> None:
    """Two tasks of one lane, which has one worker: the waiting front end runs the second."""
    graph = TaskGraph()
    queued = graph.work("queue", "host", seconds=1)
    work = [graph.work(f"{number}", "cpu(0)", seconds=4, after=queued) for number in range(3)]
    graph.work("seen", "host", after=work)
    assert replay(graph, Machine()).makespan == 13
    helped = replay(graph, Machine(helping=True))
    assert times(helped) == [(0, 1), (1, 5), (1, 5), (5, 9), (9, 9)]
    busy_host = TaskGraph(list(graph.tasks))
    busy_host.tasks[4] = Work("seen", "host", seconds=1, after=(0,))  # it does not wait, and ends: nobody helps
    assert times(replay(busy_host, Machine(helping=True)))[:4] == [(0, 1), (1, 5), (5, 9), (9, 13)]


# ---- contention


def test_lanes_that_work_at_the_same_time_slow_each_other_down() -> None:
    graph = TaskGraph()
    graph.work("long", "cpu(0)", seconds=4)
    graph.work("short", "cpu(1)", seconds=1)
    machine = Machine(contention=(1.0, 1.5))
    # together for 1.5 s, in which each does 1 s of work; then 3 s alone
    assert times(replay(graph, machine)) == [(0, 4.5), (0, 1.5)]
    three = TaskGraph()
    for number in range(3):
        three.work(f"{number}", f"cpu({number})", seconds=1)
    assert replay(three, machine).makespan == pytest.approx(1.5 * 3 / 2)
    # what passes before a task begins is no work
    waiting = TaskGraph()
    waiting.work("a", "cpu(0)", seconds=1, overhead=1.0)
    waiting.work("b", "cpu(1)", seconds=1)
    assert times(replay(waiting, machine)) == [(0, 2), (0, 1)]


# ---- links


def transfers(*given: tuple[str, str, float], machine: Machine) -> list[tuple[float, float]]:
    """(start, end) of transfers that are all ready at 0."""
    graph = TaskGraph()
    for source, target, nbytes in given:
        graph.transfer("t", source, target, nbytes)
    return times(replay(graph, machine))


def test_fair_shares_of_a_link() -> None:
    machine = simulate.bus(3, link=Link(100.0, 0.5))
    # both at 50 bytes a second until the first has its 100; then the other at 100
    assert transfers(("gpu(0)", "gpu(1)", 100), ("gpu(1)", "gpu(2)", 200), machine=machine) == [(0, 2.5), (0, 3.5)]


def test_max_min_fair_rates() -> None:
    """What one link cannot give to a transfer, its other transfers get."""
    machine = Machine(
        {name: Device() for name in "abcd"},
        {"narrow": 10.0, "wide": 100.0},
        lambda source, target: {
            "ab": simulate.Way(("narrow",), 0.0),
            "ac": simulate.Way(("narrow", "wide"), 0.0),
            "ad": simulate.Way(("wide",), 0.0),
        }[source + target],
    )
    # 5 for each on the narrow link, so that 95 are left of the wide one
    found = transfers(("a", "b", 50), ("a", "c", 50), ("a", "d", 950), machine=machine)
    assert found == [(0, 10), (0, 10), (0, 10)]


def test_a_transfer_that_comes_later_takes_its_share_from_then_on() -> None:
    graph = TaskGraph()
    graph.transfer("long", "gpu(0)", "gpu(1)", 300)
    wait = graph.work("wait", "gpu(2)", seconds=1)
    graph.transfer("late", "gpu(0)", "gpu(2)", 50, after=wait)
    # alone for 1 s (100 bytes), together for 1 s (50 each), alone for the last 150
    assert times(replay(graph, simulate.switch(3, link=Link(100.0)))) == [(0, 3.5), (0, 1), (1, 2)]


def test_links_in_turn() -> None:
    """As the engine's simulated GPUs: a lane for copies to each device, and a transfer has all links of its way for itself."""
    machine = simulate.switch(3, link=Link(100.0, 0.5), sharing="in turn")
    found = transfers(("gpu(0)", "gpu(1)", 100), ("gpu(0)", "gpu(2)", 100), ("gpu(2)", "gpu(1)", 50), machine=machine)
    # the second waits for the link from gpu(0); the third for the lane to gpu(1)
    assert found == [(0, 1.5), (1.5, 3.0), (1.5, 2.5)]
    assert transfers(("gpu(0)", "gpu(1)", 100), ("gpu(1)", "gpu(0)", 100), machine=machine) == [(0, 1.5), (0, 1.5)]


def test_in_turn_nobody_overtakes() -> None:
    machine = simulate.bus(4, link=Link(1.0), sharing="in turn")
    found = transfers(("gpu(0)", "gpu(1)", 2), ("gpu(2)", "gpu(3)", 3), ("gpu(1)", "gpu(2)", 1), machine=machine)
    assert found == [(0, 2), (2, 5), (5, 6)]


def test_a_transfer_without_a_link_takes_as_long_as_it_took() -> None:
    graph = TaskGraph()
    graph.add(Transfer("recorded", "cpu(0)", "gpu(0)", 100, seconds=2.0))
    assert replay(graph).makespan == 2
    assert replay(graph, Machine(sharing="in turn")).makespan == 2
    graph.transfer("unknown", "cpu(0)", "gpu(0)", 100)
    with pytest.raises(ArgumentError, match="no link leads"):
        replay(graph)


def test_infinitely_fast_links_and_nothing_to_send() -> None:
    assert transfers(("gpu(0)", "gpu(1)", 1e9), machine=simulate.switch(2)) == [(0, 0)]
    assert transfers(("gpu(0)", "gpu(1)", 0), ("gpu(0)", "gpu(0)", 5), machine=simulate.switch(2, link=Link(1.0, 1.0))) == [
        (0, 1),
        (0, 0),
    ]
    assert transfers(("gpu(0)", "gpu(1)", 0), machine=simulate.switch(2, link=Link(1.0, 1.0), sharing="in turn")) == [(0, 1)]


# ---- pictures


def test_the_timeline_is_that_of_the_profiler() -> None:
    graph = TaskGraph()
    first = graph.work("work", "gpu(0)", seconds=0.75)
    graph.work("more", "gpu(1)", seconds=0.25, after=first)
    result = replay(graph)
    assert result.bars() == [("gpu(0)", "work", 0.0, 0.75), ("gpu(1)", "more", 0.75, 1.0)]
    assert result.bars(["gpu(1)"]) == [("gpu(1)", "more", 0.75, 1.0)]
    picture = result.timeline(title="two")
    assert "gpu(0)       1           750 ms          75%" in picture.table()
    assert picture._repr_svg_().startswith("<svg")
    assert repr(result) == "<Result: 2 tasks in 1.00 s on as recorded>"
    with pytest.raises(ArgumentError, match=r"no lane belongs to a list|no lane belongs to \['gpu\(2\)'\]"):
        result.timeline(["gpu(2)"])
    with pytest.raises(ArgumentError, match="there is no lane 'gpu'"):
        result.utilization("gpu")


# ---- what must hold for all graphs

DEVICES = [f"gpu({number})" for number in range(3)]


@st.composite
def graphs(draw: Any) -> TaskGraph:
    """Works and transfers at random, each after some of those before it."""
    graph = TaskGraph()
    for number in range(draw(st.integers(1, 12))):
        after = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else ()
        how = {"after": after, "priority": draw(st.integers(0, 2))}
        if draw(st.booleans()):
            seconds = draw(st.sampled_from([0.0, 0.5, 1.0, 1.5, 3.0]))
            graph.work(f"{number}", draw(st.sampled_from([*DEVICES, "host"])), seconds=seconds, **how)
        else:
            source, target = draw(st.permutations(DEVICES))[:2]
            graph.transfer(f"{number}", source, target, draw(st.sampled_from([0.0, 1.0, 2.0, 5.0])), **how)
    return graph


def machines() -> st.SearchStrategy[Machine]:
    topologies = st.sampled_from([simulate.bus, simulate.ring, simulate.connected, simulate.switch])
    return st.builds(
        lambda make, sharing, latency, helping, slow: _with(
            make(3, Device(overhead=0.125), Link(2.0, latency), sharing), helping=helping, contention=slow
        ),
        topologies, st.sampled_from(["fair", "in turn"]), st.sampled_from([0.0, 0.25]), st.booleans(),
        st.sampled_from([(), (1.0, 1.5), (1.25,)]),
    )  # fmt: skip


def _with(machine: Machine, **changes: Any) -> Machine:
    for name, value in changes.items():
        setattr(machine, name, value)
    return machine


@given(graphs(), machines())
@settings(max_examples=300, deadline=None)
def test_what_holds_for_all_graphs(graph: TaskGraph, machine: Machine) -> None:
    result = replay(graph, machine)
    small = 1e-9
    assert not any(map(math.isnan, [*result.start, *result.end]))  # everything has run
    for number, task in enumerate(graph):
        assert all(result.start[number] >= result.end[before] - small for before in task.after)
        assert result.end[number] - result.start[number] >= machine.seconds(task) - small  # none is faster than alone
    longest, work = result.bounds()
    assert result.makespan >= longest - small
    assert result.makespan >= work - small
    for lane in result.lanes:
        tasks = [number for number, task in enumerate(graph) if task.lane == lane]
        serial = not machine.helping and (machine.sharing == "in turn" or isinstance(graph[tasks[0]], Work))
        if serial and lane != "host":  # no lane overlaps itself
            spans = sorted((result.start[number], result.end[number]) for number in tasks)
            assert all(before[1] <= after[0] + small for before, after in itertools.pairwise(spans))
    again = replay(graph, machine)
    assert (again.start, again.end) == (result.start, result.end)
    path = result.critical_path()
    assert path[-1].end == result.makespan
    assert all(before.end <= after.start + small for before, after in itertools.pairwise(path))


@given(graphs())
@settings(max_examples=100, deadline=None)
def test_with_a_lane_for_each_task_only_dependencies_count(graph: TaskGraph) -> None:
    apart = TaskGraph()
    for number, task in enumerate(graph):
        seconds = task.seconds if isinstance(task, Work) else task.nbytes
        apart.work(task.name, f"gpu({number})", seconds=seconds, after=task.after)
    assert replay(apart).makespan == pytest.approx(apart.longest(lambda task: task.seconds or 0.0)[0])


@given(graphs(), st.integers(2, 4))
@settings(max_examples=60, deadline=None)
def test_more_workers_than_tasks_are_as_good_as_lanes_of_their_own(graph: TaskGraph, factor: int) -> None:
    works = TaskGraph(
        [task if isinstance(task, Work) else Work(task.name, task.target, seconds=1.0, after=task.after) for task in graph]
    )
    wide = replay(works, Machine({"": Device(workers=12 * factor)}))
    assert wide.makespan == pytest.approx(works.longest(lambda task: task.seconds or 0.0)[0])
