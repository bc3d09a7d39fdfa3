"""W4: a chain of elementwise operators, exp(tanh(2x + 1) x - 0.5) on 4000 x 1000, limited by memory if done one by one."""

from __future__ import annotations

from harness import Unit, main, peer, timed

SHAPE = (4000, 1000)


def in_mxnet(mx: object) -> Unit:
    """The unit of work in MXNet's API."""
    nd = mx.nd  # type: ignore[attr-defined]  # either library
    x = nd.random.uniform(shape=SHAPE)
    x.wait_to_read()

    def run() -> None:
        nd.exp(nd.tanh(x * 2 + 1) * x - 0.5)
        nd.waitall()

    return lambda: {"chain": timed(run)}


@peer("minimx", "eager")
def _() -> Unit:
    import minimx as mx

    return in_mxnet(mx)


@peer("mxnet", "eager")
def _() -> Unit:
    import mxnet as mx

    return in_mxnet(mx)


@peer("torch", "eager")
def _() -> Unit:
    import torch

    x = torch.rand(*SHAPE)
    return lambda: {"chain": timed(lambda: torch.exp(torch.tanh(x * 2 + 1) * x - 0.5))}


@peer("numpy")
def _() -> Unit:
    import numpy as np

    x = np.random.default_rng(0).random(SHAPE, np.float32)
    return lambda: {"chain": timed(lambda: np.exp(np.tanh(x * 2 + 1) * x - np.float32(0.5)))}


if __name__ == "__main__":
    main("W4 elementwise chain", __file__)
