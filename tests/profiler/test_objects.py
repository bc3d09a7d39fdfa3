"""What programs tell the profiler themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import minimx as mx
from minimx import MXNetError, nd, profiler
from minimx.base import ArgumentError
from minimx.profiler import control

from .helpers import LARGE, counts, events, tables, trace

Record = Callable[..., None]


def test_durations_have_the_categories_of_mxnet(record: Record) -> None:
    record()
    domain = profiler.Domain("mine")
    made = [domain.new_task("task"), domain.new_frame("frame"), profiler.Event("event")]
    for each in made:
        each.start()
        each.stop()
    with made[0]:
        pass
    assert [str(each) for each in (domain, *made)] == ["mine", "task", "frame", "event"]
    assert (counts("mine"), counts("mine,frame"), counts("event")) == ({"task": 2}, {"frame": 1}, {"event": 1})
    assert {event.row for event in events()} == {f"thread {threading.current_thread().name}"}
    assert events("event")[0].where is not None


def test_durations_of_several_threads_do_not_mix(record: Record) -> None:
    record()
    task, inside, go = profiler.Domain("d").new_task("both"), threading.Event(), threading.Event()

    def other() -> None:
        task.start()
        inside.set()
        go.wait(10)
        task.stop()

    thread = threading.Thread(target=other, name="other")
    task.start()
    thread.start()
    assert inside.wait(10)
    task.stop()  # this thread's, though the other began later
    go.set()
    thread.join()
    first, second = events("d")
    assert (first.row, second.row) == (f"thread {threading.current_thread().name}", "thread other")
    assert first.start < second.start < first.end < second.end


def test_a_duration_may_nest_and_must_begin(record: Record) -> None:
    record()
    task = profiler.Domain("d").new_task("t")
    with task, task:
        pass
    inner, outer = events("d")
    assert outer.start <= inner.start <= inner.end <= outer.end
    with pytest.raises(MXNetError, match=r"Task 't': stop\(\) without start\(\)"):
        task.stop()


def test_a_duration_that_began_before_the_profiler(record: Record) -> None:
    task = profiler.Domain("d").new_task("t")
    task.start()
    record()
    task.stop()
    assert control.profiler.log is not None
    assert events("d")[0].start == control.profiler.log.begin
    with task:
        profiler.pause()
    assert len(events("d")) == 1


def test_counters(record: Record) -> None:
    counter = profiler.Domain("d").new_counter("c", 3)
    record()
    same = counter
    counter += 4
    counter -= 2
    counter.increment()
    counter.decrement(3)
    counter.set_value(7.9)  # type: ignore[arg-type]
    assert counter is same
    assert (counter.value, str(counter)) == (7, "c")
    assert tables()["Counter"] == {"d": {"c": {"Count": 5, "Last": 7, "Min": 3, "Max": 7, "Avg": 5.6}}}
    profiler.dump()
    assert [entry["args"]["c"] for entry in trace() if entry["name"] == "c"] == [7, 5, 6, 3, 7]
    threads = [threading.Thread(target=lambda: [counter.increment() for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value == 2007


def test_marks(record: Record) -> None:
    record()
    marker = profiler.Marker(profiler.Domain("d"), "here")
    for scope in ("global", "process", "thread", "task", "marker"):
        marker.mark(scope)
    marker.mark()
    profiler.dump()
    assert [entry["s"] for entry in trace() if entry["name"] == "here"] == ["g", "p", "t", "t", "t", "p"]
    with pytest.raises(KeyError, match="choose one of global, process"):
        marker.mark("nowhere")


def test_scopes_name_what_is_called_inside(record: Record) -> None:
    record()
    with profiler.scope("model:"):
        a = nd.ones((LARGE,))
        with profiler.Scope("head"):
            b = a + 1
            with profiler.scope("alone", append_mode=False):
                c = nd.ones((2,))
        d = b * 2
    e = d - 1
    nd.waitall()
    found = {event.name: event.origin.scope for event in events("operator") if event.name != "_ones"}
    assert found == {"_plus_scalar": "model:head", "_mul_scalar": "model", "_minus_scalar": ""}
    assert sorted(event.origin.scope for event in events("operator") if event.name == "_ones") == ["alone", "model"]
    assert [event.name for event in events("scope")] == ["alone", "model:head", "model"]
    del c, e


def test_scopes_reach_into_programs_and_other_lanes(record: Record) -> None:
    net = mx.gluon.nn.Dense(3)
    net.initialize()
    net.hybridize()
    record()
    with profiler.scope("net"):
        net(nd.ones((LARGE // 100, 100)).as_in_context(mx.cpu(1)).as_in_context(mx.cpu())).wait_to_read()
    assert {event.origin.scope for event in events("operator")} == {"net"}


@pytest.mark.parametrize(
    "call",
    [
        lambda: profiler.Domain(3), lambda: profiler.Domain(""), lambda: profiler.Task("d", "t"), lambda: profiler.Frame(None, "f"),
        lambda: profiler.Event(b"e"), lambda: profiler.Counter(profiler.Domain("d"), "c", "many"),
        lambda: profiler.Counter("d", "c"), lambda: profiler.Marker("d", "m"), lambda: profiler.Task(profiler.Domain("d"), None),
        lambda: profiler.Domain("d").new_counter("c").increment(None), lambda: profiler.scope(3).__enter__(),
        lambda: profiler.Domain("d").new_counter("c").set_value(float("inf")),
    ],
)  # fmt: skip
def test_bad_objects(call: Callable[[], object]) -> None:
    with pytest.raises(ArgumentError):
        call()
