"""W10: automatic parallelism. Two independent chains of ten 1000 x 1000 products, BLAS on one thread: one after the other, and together."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness import Bar, Unit, Workload, timed

SIDE, LENGTH = 1000, 10
ONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

work = Workload(
    __file__,
    "two independent chains of products, BLAS on one thread",
    bars=(Bar("parallel / serial (ratio)", round(1 / 1.8, 3), absolute=True),),
)


def ratio(serial: Callable[[], Any], parallel: Callable[[], Any]) -> Unit:
    """A unit that times both and says what part of the serial time the parallel run takes."""

    def run() -> dict[str, float]:
        one, two = timed(serial), timed(parallel)
        return {"serial": one, "parallel": two, "parallel / serial (ratio)": two / one}

    return run


def in_mxnet(mx: Any, second: Any) -> Unit:
    """The unit of work in MXNet's API, on cpu(0) and the device `second`."""
    nd = mx.nd
    first, other = (nd.random.uniform(shape=(SIDE, SIDE), ctx=ctx) / 500 for ctx in (mx.cpu(0), second))
    nd.waitall()

    def chain(x: Any) -> Any:
        y = x
        for _ in range(LENGTH):
            y = nd.dot(y, x)
        return y

    def serial() -> None:
        chain(first).wait_to_read()
        chain(other).wait_to_read()

    def parallel() -> None:
        chain(first), chain(other)
        nd.waitall()

    return ratio(serial, parallel)


@work.peer("minimx", "cpu(0), cpu(1)", **ONE)
def _() -> Unit:
    import minimx as mx

    return in_mxnet(mx, mx.cpu(1))


@work.peer("minimx", "cpu(0), 2 workers", MXNET_CPU_WORKER_NTHREADS="2", **ONE)
def _() -> Unit:
    import minimx as mx

    return in_mxnet(mx, mx.cpu(0))


@work.peer("mxnet", "cpu(0), cpu(1)", **ONE)
def _() -> Unit:
    import mxnet as mx

    return in_mxnet(mx, mx.cpu(1))


def with_threads(multiply: Callable[[Any, Any], Any], first: Any, other: Any) -> Unit:
    """The unit of work written by hand with two threads."""
    pool = ThreadPoolExecutor(2)

    def chain(x: Any) -> Any:
        y = x
        for _ in range(LENGTH):
            y = multiply(y, x)
        return y

    return ratio(lambda: (chain(first), chain(other)), lambda: list(pool.map(chain, (first, other))))


@work.peer("torch", "two threads", **ONE)
def _() -> Unit:
    import torch

    torch.set_num_threads(1)
    return with_threads(torch.mm, *(torch.rand(SIDE, SIDE) / 500 for _ in range(2)))


@work.peer("numpy", "two threads", **ONE)
def _() -> Unit:
    import numpy as np

    draw = np.random.default_rng(0)
    return with_threads(np.matmul, *(draw.random((SIDE, SIDE), np.float32) / 500 for _ in range(2)))


if __name__ == "__main__":
    work.main()
