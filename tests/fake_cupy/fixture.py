"""minimx on the stand-in: a scope with GPUs, after which minimx knows nothing of them any more."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from minimx import cuda, engine

from .cupy import installed
from .machine import Machine


@contextlib.contextmanager
def fake_gpus(count: int = 2, seed: int = 0, capacity: int = 1 << 34, races: bool = False) -> Iterator[Machine]:
    """`count` GPUs that run what is queued in an order by `seed`. Kernels that lack an order they need fail the test, unless `races`."""
    engine.waitall()
    cuda.forget()
    with installed(count, seed, capacity) as machine:
        try:
            yield machine
            engine.waitall()
        finally:
            with contextlib.suppress(Exception):
                engine.waitall()
            cuda.forget()
    assert races or not machine.races, "\n".join(machine.races[:5])
