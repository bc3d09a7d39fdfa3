"""Every test of the profiler begins and ends with one that has never run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import minimx as mx
from minimx import profiler, storage
from minimx.engine import front
from minimx.engine.events import watch
from minimx.profiler import control


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Files go to the test's folder. Afterwards nobody listens, and small work goes the short way again."""
    monkeypatch.chdir(tmp_path)
    blocked = front.shortcuts.blocked
    mx.nd.waitall()
    yield
    profiler.set_state("stop")
    at_exit = control.profiler.at_exit
    control.profiler.__init__()  # type: ignore[misc]  # a new one
    control.profiler.at_exit = at_exit
    assert watch.direct
    assert not watch.on
    assert storage.watcher is None
    assert front.shortcuts.blocked == blocked


@pytest.fixture
def record() -> Callable[..., None]:
    """Starts a recording with tables, without files; other options can be given."""

    def start(**options: object) -> None:
        profiler.set_config(**{"aggregate_stats": True, "continuous_dump": False, **options})
        profiler.set_state("run")

    return start
