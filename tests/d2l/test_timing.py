"""Timer, Benchmark, Accumulator."""

from __future__ import annotations

import pytest

import minimx as mx
from minimx.base import ArgumentError
from minimx.d2l import Accumulator, Benchmark, Timer, timing


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets: no test waits."""
    now = [100.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    return now


def test_a_timer_keeps_every_time(clock):
    timer = Timer()
    for seconds in (1.0, 2.0, 6.0):
        timer.start()
        clock[0] += seconds
        assert timer.stop() == seconds
    assert (timer.sum(), timer.avg(), timer.cumsum()) == (9.0, 3.0, [1.0, 3.0, 9.0])


def test_a_timer_runs_from_the_moment_it_is_made(clock):
    timer = Timer()
    clock[0] += 2
    assert timer.stop() == 2
    assert timer.times == [2]


def test_no_time_no_average():
    with pytest.raises(ArgumentError, match="before the first stop"):
        Timer().avg()


def test_a_benchmark_prints_and_keeps_its_time(clock, capsys):
    with Benchmark("ten products") as run:
        clock[0] += 1.23456
    assert capsys.readouterr().out == "ten products: 1.2346 s\n"
    assert run.seconds == pytest.approx(1.23456)


def test_a_benchmark_that_fails_prints_nothing(capsys):
    with pytest.raises(KeyError), Benchmark():
        raise KeyError("x")
    assert capsys.readouterr().out == ""


def test_sums():
    metric = Accumulator(2)
    metric.add(1, 0.5)
    metric.add(mx.nd.array([2]), 0.25)
    assert (metric[0], metric[1]) == (3.0, 0.75)
    metric.reset()
    assert metric.data == [0.0, 0.0]
    with pytest.raises(ArgumentError, match="got 1 amounts, wants 2"):
        metric.add(1)


def test_an_accumulator_of_nothing() -> None:
    for count in (0, -1, 2**40, "two", 1.5):
        with pytest.raises(ArgumentError, match="Accumulator: count"):
            Accumulator(count)  # type: ignore[arg-type]
