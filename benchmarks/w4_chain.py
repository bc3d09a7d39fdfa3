"""W4: a chain of elementwise operators, exp(tanh(2x + 1) x - 0.5) on 4000 x 1000, limited by memory if done one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from exported import export, session
from gluon_peers import enter, function_block, hybridized
from harness import Bar, Unit, Workload, timed

COUNT = 10
SHAPE = (4000, 1000)

work = Workload(
    __file__,
    "a chain of elementwise operators on 16 MB",
    bars=(
        Bar("the chain", 1.0, variants=("eager",), against=("torch eager",)),
        Bar("the chain", 1.0, variants=("hybridized", "static"), against=("jax",)),
    ),
    quick=True,
)


def unit(function: Callable[[], Any]) -> Unit:
    """The unit of work: some calls in a row, as in a program that has more to do."""

    def run() -> None:
        for _ in range(COUNT):
            function()

    return lambda: {"the chain": timed(run) / COUNT}


def chain(F: Any, x: Any) -> Any:
    """The chain in the functions of a library, or of MXNet's F."""
    return F.exp(F.tanh(x * 2 + 1) * x - 0.5)


def in_mxnet(mx: Any, how: dict[str, bool] | None) -> Unit:
    """The unit of work in MXNet's API."""
    x = mx.nd.random.uniform(shape=SHAPE)
    block = hybridized(function_block(mx, chain), how)
    block(x).wait_to_read()

    def run() -> None:
        block(x)
        mx.nd.waitall()

    return unit(run)


enter(work, in_mxnet)


@work.peer("torch", "eager")
def _() -> Unit:
    import torch

    x = torch.rand(*SHAPE)
    return unit(lambda: chain(torch, x))


@work.peer("torch", "compiled")
def _() -> Unit:
    import torch

    x = torch.rand(*SHAPE)
    compiled = torch.compile(lambda x: chain(torch, x))
    compiled(x)
    return unit(lambda: compiled(x))


@work.peer("jax", "jit")
def _() -> Unit:
    import jax
    import jax.numpy as jnp

    x = jax.random.uniform(jax.random.key(0), SHAPE)
    compiled = jax.jit(lambda x: chain(jnp, x))
    return unit(lambda: compiled(x).block_until_ready())


@work.peer("mlx", "compiled")
def _() -> Unit:
    import mlx.core as mx

    x = mx.random.uniform(shape=SHAPE)
    mx.eval(x)
    compiled = mx.compile(lambda x: chain(mx, x))
    return unit(lambda: mx.eval(compiled(x)))


@work.files
def _(folder: Path) -> None:
    import minimx as mx

    export(function_block(mx, chain), SHAPE, folder / "chain.onnx")


@work.peer("onnxruntime", "bound")
def _() -> Unit:
    return unit(session("chain.onnx", SHAPE, bound=True))


@work.peer("numpy")
def _() -> Unit:
    import numpy as np

    x = np.random.default_rng(0).random(SHAPE, np.float32)
    return unit(lambda: chain(np, x))


if __name__ == "__main__":
    work.main()
