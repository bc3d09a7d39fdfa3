"""W3: asynchronous push. y = dot(x, x) of 2000 x 2000: how soon the call returns, and when the result is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gluon_peers import enter
from harness import Bar, Unit, Workload, now, timed

SIDE = 2000
RETURNS, THERE = "the call returns", "the result is there"

work = Workload(
    __file__,
    "asynchronous push: a product of 2000 x 2000",
    bars=(Bar(RETURNS, 1e-4, absolute=True), Bar(THERE, 1.05, against=("numpy",))),
)


def in_mxnet(mx: Any, how: object) -> Unit:
    """The unit of work in MXNet's API."""
    x = mx.nd.random.uniform(shape=(SIDE, SIDE))
    x.wait_to_read()

    def run() -> dict[str, float]:
        start = now()
        y = mx.nd.dot(x, x)
        pushed = now() - start
        y.wait_to_read()
        return {RETURNS: pushed, THERE: now() - start}

    return run


enter(work, in_mxnet, "eager")


def waiting(function: Callable[[], Any]) -> Unit:
    """The unit of work of a library whose calls return when they are done."""
    return lambda: {THERE: timed(function)}


@work.peer("torch")
def _() -> Unit:
    import torch

    x = torch.rand(SIDE, SIDE)
    return waiting(lambda: torch.mm(x, x))


@work.peer("jax")
def _() -> Unit:
    import jax
    import jax.numpy as jnp

    x = jax.random.uniform(jax.random.key(0), (SIDE, SIDE)).block_until_ready()

    def run() -> dict[str, float]:
        start = now()
        y = jnp.dot(x, x)
        pushed = now() - start
        y.block_until_ready()
        return {RETURNS: pushed, THERE: now() - start}

    return run


@work.peer("numpy")
def _() -> Unit:
    import numpy as np

    x = np.random.default_rng(0).random((SIDE, SIDE), np.float32)
    return waiting(lambda: x @ x)


if __name__ == "__main__":
    work.main()
