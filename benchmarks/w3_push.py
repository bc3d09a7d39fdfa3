"""W3: asynchronous push. y = dot(x, x) of 2000 x 2000: how soon the call returns, and when the result is there."""

from __future__ import annotations

from harness import Unit, main, now, peer

SIDE = 2000


@peer("minimx")
def _() -> Unit:
    import minimx as mx

    return asynchronous(mx)


@peer("mxnet")
def _() -> Unit:
    import mxnet as mx

    return asynchronous(mx)


def asynchronous(mx: object) -> Unit:
    """The unit of work in MXNet's API."""
    nd = mx.nd  # type: ignore[attr-defined]  # either library
    x = nd.random.uniform(shape=(SIDE, SIDE))
    x.wait_to_read()

    def run() -> dict[str, float]:
        start = now()
        y = nd.dot(x, x)
        pushed = now() - start
        y.wait_to_read()
        return {"call returns": pushed, "result is there": now() - start}

    return run


@peer("torch")
def _() -> Unit:
    import torch

    x = torch.rand(SIDE, SIDE)

    def run() -> dict[str, float]:
        start = now()
        torch.mm(x, x)
        return {"result is there": now() - start}

    return run


@peer("numpy")
def _() -> Unit:
    import numpy as np

    x = np.random.default_rng(0).random((SIDE, SIDE), np.float32)

    def run() -> dict[str, float]:
        start = now()
        x @ x
        return {"result is there": now() - start}

    return run


if __name__ == "__main__":
    main("W3 asynchronous push", __file__)
