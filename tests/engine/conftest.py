"""Every test of the engine begins and ends with an idle one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from minimx import engine
from minimx.engine import front
from minimx.engine.lanes import scheduler

from .helpers import Gates


@pytest.fixture
def gates() -> Iterator[Gates]:
    """Events that hold tasks back."""
    made = Gates()
    yield made
    for gate in made.all:
        gate.set()


@pytest.fixture(autouse=True)
def idle_engine(gates: Gates) -> Iterator[None]:
    """No work, failure or scope is handed from test to test; and no test leaves a task that never ends."""
    crowded = [lane.name for lane in scheduler.lanes.values() if len(lane.threads) > lane.workers]
    assert not crowded, f"an earlier test gave these lanes more threads than they say: {crowded}"
    bulk, blocked = engine.set_bulk_size(15), front.shortcuts.blocked
    yield
    for gate in gates.all:
        gate.set()
    with contextlib.suppress(Exception):
        engine.waitall()
    engine.set_bulk_size(bulk)
    assert not scheduler.in_flight
    assert (scheduler.bytes_in_flight, scheduler.busy, scheduler.waiting, scheduler.waits) == (0, set(), 0, {})
    assert front.shortcuts.blocked == blocked
