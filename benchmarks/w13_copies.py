"""W13: copies beside computing: a chain of products on a simulated GPU, and copies to it and from it, apart and together.

What is computed does not depend on what is copied, so that the longer of the two could hide all of the other. The link is made so slow
that the copies of each direction take about as long as the products, where an overlap is worth most. BLAS has one thread.

"together / longer" is 1 where the overlap is perfect, and 2 where there is none (3 with both directions).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import Bar, Unit, Workload, timed

SIDE, COUNT = 1000, 8  # of the matrices; how many products there are, and copies in each direction
ONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
RATIO = "together / longer (ratio)"
WAYS = {"copies to the GPU": ("in",), "copies from the GPU": ("out",), "copies both ways": ("in", "out")}

work = Workload(
    __file__,
    "copies beside computing on a simulated GPU",
    bars=tuple(Bar(RATIO, 1.1, variants=(way,), absolute=True) for way in WAYS),
)


def overlap(*directions: str) -> Unit:
    """The unit of work with copies in these directions, "in" and "out"."""
    import minimx as mx

    nd, gpu = mx.nd, mx.gpu(0)

    def waited(*work: Callable[[], Any]) -> float:
        def run() -> None:
            for each in work:
                each()
            nd.waitall()

        return timed(run)

    def compute() -> Any:
        y = x
        for _ in range(COUNT):  # each from the one before: the thread that waits cannot help to compute it twice as fast
            y = nd.dot(y, x)
        return y

    def copy() -> None:
        for _ in range(COUNT):
            if "in" in directions:
                here.copyto(gpu)
            if "out" in directions:
                there.copyto(mx.cpu())

    mx.device.simulate_gpus(1)
    x = nd.random.uniform(shape=(SIDE, SIDE), ctx=gpu) / 500
    product = min(waited(compute) for _ in range(5)) / COUNT
    mx.device.simulate_gpus(1, bandwidth=4 * SIDE * SIDE / product)
    x = nd.random.uniform(shape=(SIDE, SIDE), ctx=gpu) / 500
    there, here = nd.ones((SIDE, SIDE), ctx=gpu), nd.ones((SIDE, SIDE))
    nd.waitall()

    def run() -> dict[str, float]:
        computing, copying, together = waited(compute), waited(copy), waited(compute, copy)
        ratio = together / max(computing, copying)
        return {"computing": computing, "copying": copying, "together": together, RATIO: ratio}

    return run


def entered(directions: tuple[str, ...]) -> Callable[[], Unit]:
    """The set-up for copies in these directions."""
    return lambda: overlap(*directions)


for way, directions in WAYS.items():
    work.peer("minimx", way, **ONE)(entered(directions))

if __name__ == "__main__":
    work.main()
