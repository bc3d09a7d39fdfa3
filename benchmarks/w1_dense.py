"""W1: three small layers, Dense 512-256-128-2, forward, one sample at a time. Little arithmetic: what a call of a layer costs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exported import export, session
from gluon_peers import enter, hybridized
from harness import Bar, Unit, Workload, timed

SIZES = (512, 256, 128, 2)
COUNT = 500

work = Workload(
    __file__,
    "three small layers, one sample",
    bars=(
        Bar("a call", 1.2, variants=("hybridized", "static")),
        Bar("a call", 1.0, variants=("eager",), against=("torch eager",)),
        Bar("a call", 1.0, variants=("hybridized", "static"), against=("minimx eager",)),
    ),
    quick=True,
)


def loop(net: Callable[[Any], Any], x: Any, finish: Callable[[], Any] = lambda: None) -> Unit:
    """The unit of work: calls of `net`, one after the other, and then `finish`."""

    def run() -> None:
        for _ in range(COUNT):
            net(x)
        finish()

    return lambda: {"a call": timed(run) / COUNT}


def dense(mx: Any) -> Any:
    """The network in MXNet's API."""
    nn = mx.gluon.nn
    net = nn.HybridSequential()
    for units in SIZES[1:-1]:
        net.add(nn.Dense(units, activation="relu"))
    net.add(nn.Dense(SIZES[-1]))
    net.initialize()
    return net


def in_gluon(mx: Any, how: dict[str, bool] | None) -> Unit:
    """The unit of work in MXNet's API."""
    net = hybridized(dense(mx), how)
    x = mx.nd.random.normal(shape=(1, SIZES[0]))
    net(x).wait_to_read()
    return loop(net, x, mx.nd.waitall)


enter(work, in_gluon, OMP_NUM_THREADS="1")


def in_torch() -> tuple[Any, Any]:
    """The network and its input in PyTorch."""
    import torch
    from torch import nn

    layers: list[Any] = []
    for inputs, units in itertools.pairwise(SIZES):
        layers += [nn.Linear(inputs, units), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval(), torch.randn(1, SIZES[0])


@work.peer("torch", "eager", OMP_NUM_THREADS="1")
def _() -> Unit:
    return loop(*in_torch())


@work.peer("torch", "inference", OMP_NUM_THREADS="1")
def _() -> Unit:
    import torch

    net, x = in_torch()
    return loop(torch.inference_mode()(net), x)


@work.peer("torch", "traced", OMP_NUM_THREADS="1")
def _() -> Unit:
    import torch

    net, x = in_torch()
    with torch.no_grad():
        traced = torch.jit.freeze(torch.jit.trace(net, x))
    return loop(torch.inference_mode()(traced), x)


def weights() -> list[tuple[Any, Any]]:
    """Weight and bias of each layer, as NumPy arrays."""
    import numpy as np

    random = np.random.default_rng(0)
    return [
        (random.standard_normal((units, inputs), np.float32) / inputs**0.5, np.zeros(units, np.float32))
        for inputs, units in itertools.pairwise(SIZES)
    ]


@work.peer("jax", "jit")
def _() -> Unit:
    import jax
    import jax.numpy as jnp

    @jax.jit
    def net(layers: Any, x: Any) -> Any:
        for weight, bias in layers[:-1]:
            x = jnp.maximum(x @ weight.T + bias, 0)
        weight, bias = layers[-1]
        return x @ weight.T + bias

    layers = [(jnp.asarray(weight), jnp.asarray(bias)) for weight, bias in weights()]
    last: list[Any] = [None]

    def call(x: Any) -> None:
        last[0] = net(layers, x)

    return loop(call, jnp.ones((1, SIZES[0])), lambda: last[0].block_until_ready())


@work.peer("mlx", "compiled")
def _() -> Unit:
    import mlx.core as mx

    layers = [(mx.array(weight), mx.array(bias)) for weight, bias in weights()]

    @mx.compile
    def net(x: Any) -> Any:
        for weight, bias in layers[:-1]:
            x = mx.maximum(mx.addmm(bias, x, weight.T), 0)
        return mx.addmm(layers[-1][1], x, layers[-1][0].T)

    last: list[Any] = [None]

    def call(x: Any) -> None:
        last[0] = net(x)
        mx.async_eval(last[0])

    return loop(call, mx.ones((1, SIZES[0])), lambda: mx.eval(last[0]))


@work.files
def _(folder: Path) -> None:
    import minimx as mx

    export(dense(mx), (1, SIZES[0]), folder / "dense.onnx")


@work.peer("onnxruntime")
def _() -> Unit:
    call = session("dense.onnx", (1, SIZES[0]), threads=1)
    return loop(lambda x: call(), None)


@work.peer("onnxruntime", "bound")
def _() -> Unit:
    call = session("dense.onnx", (1, SIZES[0]), threads=1, bound=True)
    return loop(lambda x: call(), None)


@work.peer("numpy")
def _() -> Unit:
    import numpy as np

    layers = weights()

    def net(x: Any) -> Any:
        for number, (weight, bias) in enumerate(layers):
            x = x.dot(weight.T)
            x += bias
            if number < len(layers) - 1:
                np.maximum(x, 0, out=x)
        return x

    return loop(net, np.ones((1, SIZES[0]), np.float32))


if __name__ == "__main__":
    work.main()
