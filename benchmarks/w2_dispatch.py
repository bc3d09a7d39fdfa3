"""W2: what an operation costs beside its arithmetic. b = a * a + 2 on two elements, 20,000 times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import Unit, main, peer, timed

COUNT = 20_000


def loop(a: Any, finish: Callable[[], Any] = lambda: None) -> Unit:
    """The unit of work on a peer's array `a`."""

    def run() -> None:
        for _ in range(COUNT):
            b = a * a + 2
        finish()
        del b

    return lambda: {"a * a + 2": timed(run) / COUNT}


@peer("minimx")
def _() -> Unit:
    import minimx as mx

    return loop(mx.nd.ones((1, 2)), mx.nd.waitall)


@peer("mxnet")
def _() -> Unit:
    import mxnet as mx

    return loop(mx.nd.ones((1, 2)), mx.nd.waitall)


@peer("torch")
def _() -> Unit:
    import torch

    return loop(torch.ones(1, 2))


@peer("numpy")
def _() -> Unit:
    import numpy as np

    return loop(np.ones((1, 2), np.float32))


if __name__ == "__main__":
    main("W2 dispatch of small arrays", __file__)
