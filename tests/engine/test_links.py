"""Copies to and from simulated GPUs: lanes of their own, links that take time, and what they leave alone."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, engine, nd, simulated
from minimx.base import ArgumentError
from minimx.device import CopyLane, copy_lane, cpu, cpu_pinned, gpu

LARGE = 300_000
LONG = 0.08  # seconds of a transfer that a test waits for


def test_a_copy_runs_in_the_lane_of_its_direction() -> None:
    assert copy_lane(cpu(), gpu(0)) == CopyLane(gpu(0), "in") == copy_lane(gpu(1), gpu(0))
    assert str(copy_lane(gpu(1), cpu_pinned())) == "gpu(1) out"
    assert copy_lane(cpu(0), cpu(1)) is cpu(1)
    with mx.device.simulate_gpus(2), engine.trace() as events:
        x = nd.ones((LARGE,))
        back = x.as_in_context(gpu(0)).as_in_context(gpu(1)).as_in_context(cpu())
        target = nd.zeros((LARGE,), ctx=gpu(1))
        back.copyto(target)
        target[3:] = back[3:]
        assert target.asnumpy().sum() == LARGE
    assert {"gpu(0) in", "gpu(1) in", "gpu(1) out"} <= {lane for lane, *_ in events}


def test_copying_and_computing_overlap() -> None:
    """A copy is under way on the link while its GPU computes: both are seen to run at once, without a clock."""
    inside, outside = threading.Event(), threading.Event()
    with mx.device.simulate_gpus(1, latency=LONG):
        x = nd.ones((LARGE,))
        nd.waitall()

        def compute() -> None:
            inside.set()
            assert outside.wait(10)

        engine.push(compute, context=gpu(0))
        assert inside.wait(10)
        there = x.as_in_context(gpu(0))  # would wait behind `compute` if they shared a lane
        there.wait_to_read()
        outside.set()
        engine.waitall()


def test_a_transfer_takes_as_long_as_the_link_says() -> None:
    with mx.device.simulate_gpus(2, bandwidth=4 * LARGE / LONG, latency=0.01):
        x = nd.ones((LARGE,))
        x.wait_to_read()
        for move in (
            lambda: x.as_in_context(gpu(0)).wait_to_read(),
            lambda: nd.array(np.ones(LARGE, np.float32), ctx=gpu(0)).wait_to_read(),
            lambda: (there := nd.ones((LARGE,), ctx=gpu(1))).wait_to_read() or there.asnumpy(),
        ):
            start = time.perf_counter()
            move()
            assert time.perf_counter() - start >= LONG + 0.01
        start = time.perf_counter()
        x.as_in_context(gpu(0))
        assert time.perf_counter() - start < LONG  # it was only queued
        engine.waitall()


def test_transfers_of_a_link_follow_one_another_and_those_of_two_do_not() -> None:
    one, other = simulated.GPU(bandwidth=1e6), simulated.GPU(bandwidth=1e6, latency=0.5)
    for _ in range(2):
        with simulated.travelling((one.inward,), 0):
            pass
    before = one.inward.free_at
    with simulated.travelling((one.outward, one.inward), 10_000):
        pass
    assert one.inward.free_at >= before + 0.01
    assert one.outward.free_at == one.inward.free_at
    assert other.inward.free_at == 0
    assert not simulated.GPU().inward.modelled
    assert other.inward.modelled


def test_gradients_and_values_travel_back() -> None:
    with mx.device.simulate_gpus(2, bandwidth=1e9):
        x = nd.array([1.0, 2.0])
        x.attach_grad()
        with autograd.record():
            y = (x.as_in_context(gpu(0)) * 3).as_in_context(gpu(1)) * nd.array([1.0, 2.0], ctx=gpu(1))
        y.backward()
        assert x.grad.context == cpu()
        assert x.grad.asnumpy().tolist() == [3, 6]


@pytest.mark.parametrize("scope", [engine.lazy, engine.naive])
def test_in_other_modes_too(scope: Any) -> None:
    with mx.device.simulate_gpus(1, bandwidth=1e9), scope():
        x = nd.ones((LARGE,)).as_in_context(gpu(0)) + 1
        assert x.as_in_context(cpu()).asnumpy()[-1] == 2


def test_a_copy_of_what_failed_has_failed() -> None:
    with mx.device.simulate_gpus(1, memory=1 << 20):
        with pytest.raises(mx.MXNetError, match=r"gpu\(0\) is out of memory: \d+ bytes asked, \d+ of 1048576 free"):
            nd.ones((LARGE,)).as_in_context(gpu(0)).as_in_context(cpu()).asnumpy()
        assert nd.ones((10,)).as_in_context(gpu(0)).asnumpy().sum() == 10


@pytest.mark.parametrize(
    "how", [{"bandwidth": 0}, {"bandwidth": -1.0}, {"latency": -1}, {"latency": float("nan")}, {"memory": -1}]
)
def test_links_that_cannot_be(how: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="simulate_gpus"):
        mx.device.simulate_gpus(1, **how)


def test_leaving_the_simulation_finishes_what_is_queued_for_it() -> None:
    """It could not run afterwards: there is no such GPU any more."""
    with mx.device.simulate_gpus(2, latency=LONG):
        there = nd.ones((LARGE,), ctx=gpu(0)).as_in_context(gpu(1)) * 2
        here = there.as_in_context(cpu())
    assert here.asnumpy().sum() == 2 * LARGE
    with mx.device.simulate_gpus(1, latency=LONG):
        here = (nd.ones((LARGE,), ctx=gpu(0)) * 3).as_in_context(cpu())
        mx.device.simulate_gpus(0)
        assert here.asnumpy().sum() == 3 * LARGE
