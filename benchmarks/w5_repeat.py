"""W5: y = x + 1 again and again on 2000 x 2000, waiting after each operation, or once at the end. Seconds for a thousand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from exported import export, session
from gluon_peers import enter, function_block
from harness import Bar, Unit, Workload, timed

SHAPE = (2000, 2000)
COUNT = 200
EACH, END = "waiting each time", "waiting at the end"

work = Workload(
    __file__, "x + 1 a thousand times on 16 MB", bars=(Bar(END, 1.1, against=("onnxruntime", "torch", "jax", "mxnet")),)
)


def thousand(function: Callable[[], Any]) -> float:
    """Seconds for a thousand operations, of which `function` does COUNT."""
    return timed(function) * 1000 / COUNT


def in_mxnet(mx: Any, how: object) -> Unit:
    """The unit of work in MXNet's API."""
    x = mx.nd.ones(SHAPE)
    x.wait_to_read()

    def each() -> None:
        for _ in range(COUNT):
            y = x + 1
            y.wait_to_read()

    def end() -> None:
        for _ in range(COUNT):
            y = x + 1  # noqa: F841  # computed, and not used: that is the workload
        mx.nd.waitall()

    return lambda: {EACH: thousand(each), END: thousand(end)}


enter(work, in_mxnet, "eager")


def waiting(function: Callable[[], Any]) -> Unit:
    """The unit of work of a library whose calls return when they are done: they have been waited for at the end, too."""

    def run() -> None:
        for _ in range(COUNT):
            y = function()  # noqa: F841

    return lambda: {END: thousand(run)}


@work.peer("torch")
def _() -> Unit:
    import torch

    x = torch.ones(*SHAPE)
    return waiting(lambda: x + 1)


@work.peer("jax", "jit")
def _() -> Unit:
    import jax
    import jax.numpy as jnp

    x = jnp.ones(SHAPE)
    add = jax.jit(lambda x: x + 1)

    def end() -> None:
        for _ in range(COUNT):
            y = add(x)
        y.block_until_ready()

    return lambda: {END: thousand(end)}


@work.files
def _(folder: Path) -> None:
    import minimx as mx

    export(function_block(mx, lambda F, x: x + 1), SHAPE, folder / "add.onnx")


@work.peer("onnxruntime", "bound")
def _() -> Unit:
    return waiting(session("add.onnx", SHAPE, bound=True))


@work.peer("numpy", "out=")
def _() -> Unit:
    import numpy as np

    x, y, one = np.ones(SHAPE, np.float32), np.empty(SHAPE, np.float32), np.float32(1)
    return waiting(lambda: np.add(x, one, out=y))


if __name__ == "__main__":
    work.main()
