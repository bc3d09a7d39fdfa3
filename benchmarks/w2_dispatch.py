"""W2: what an operation costs beside its arithmetic. b = a * a + 2 on two elements, 20,000 times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gluon_peers import enter, function_block, hybridized
from harness import Bar, Unit, Workload, timed

COUNT = 20_000

work = Workload(
    __file__, "what an operation costs: a * a + 2 on two numbers", bars=(Bar("a * a + 2", 1.0, against=("torch",)),), quick=True
)


def loop(function: Callable[[Any], Any], a: Any, finish: Callable[[], Any] = lambda: None) -> Unit:
    """The unit of work: a function, on a peer's array `a`, again and again."""

    def run() -> None:
        for _ in range(COUNT):
            b = function(a)
        finish()
        del b

    return lambda: {"a * a + 2": timed(run) / COUNT}


def inline(a: Any, finish: Callable[[], Any] = lambda: None) -> Unit:
    """The unit of work, written where it is used: no call of a function is measured."""

    def run() -> None:
        for _ in range(COUNT):
            b = a * a + 2
        finish()
        del b

    return lambda: {"a * a + 2": timed(run) / COUNT}


def in_mxnet(mx: Any, how: dict[str, bool] | None) -> Unit:
    """The unit of work in MXNet's API."""
    a = mx.nd.ones((1, 2))
    if how is None:
        return inline(a, mx.nd.waitall)
    return loop(hybridized(function_block(mx, lambda F, a: a * a + 2), how), a, mx.nd.waitall)


enter(work, in_mxnet, "eager", "hybridized", OMP_NUM_THREADS="1")


@work.peer("torch", "eager")
def _() -> Unit:
    import torch

    return inline(torch.ones(1, 2))


@work.peer("torch", "inference")
def _() -> Unit:
    import torch

    unit = inline(torch.ones(1, 2))

    def run() -> dict[str, float]:
        with torch.inference_mode():
            return unit()

    return run


@work.peer("jax", "jit")
def _() -> Unit:
    import jax
    import jax.numpy as jnp

    return loop(jax.jit(lambda a: a * a + 2), jnp.ones((1, 2)))


@work.peer("numpy")
def _() -> Unit:
    import numpy as np

    return inline(np.ones((1, 2), np.float32))


if __name__ == "__main__":
    work.main()
