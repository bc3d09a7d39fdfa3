"""What the workloads of training share: one step of gluon or PyTorch on a batch of images of ten classes, and the loss in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import Unit, peer, timed

BATCH = 256
RATE = 0.1
STATIC = {"static_alloc": True, "static_shape": True}


def data(*shape: int) -> tuple[Any, Any]:
    """Images and their classes, as NumPy arrays."""
    import numpy as np

    random = np.random.default_rng(0)
    return random.standard_normal((BATCH, *shape), np.float32), random.integers(0, 10, BATCH)


def gluon_step(mx: Any, net: Any, shape: tuple[int, ...], how: dict[str, bool] | None, count: int) -> Unit:
    """`count` steps with MXNet's API, hybridized with the options `how` unless that is None."""
    images, classes = (mx.nd.array(array) for array in data(*shape))
    loss = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    net.initialize(mx.init.Xavier())
    if how is not None:
        net.hybridize(**how)
        loss.hybridize(**how)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": RATE})

    def run() -> None:
        for _ in range(count):
            with mx.autograd.record():
                each = loss(net(images), classes)
            each.backward()
            trainer.step(BATCH)
        mx.nd.waitall()

    run()
    return lambda: {"a step": timed(run) / count}


def torch_step(net: Any, shape: tuple[int, ...], count: int) -> Unit:
    """`count` steps with PyTorch."""
    import torch

    torch.set_num_threads(2)
    images, classes = (torch.from_numpy(array) for array in data(*shape))
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    loss = torch.nn.CrossEntropyLoss()

    def run() -> None:
        for _ in range(count):
            optimizer.zero_grad()
            loss(net(images), classes).backward()
            optimizer.step()

    run()
    return lambda: {"a step": timed(run) / count}


def jax_step(forward: Callable[[Any, Any], Any], parameters: Any, shape: tuple[int, ...], count: int) -> Unit:
    """`count` steps with JAX. `forward(parameters, images)` gives the scores of the classes."""
    import jax
    import jax.numpy as jnp

    images, classes = map(jnp.asarray, data(*shape))

    def loss(parameters: Any) -> Any:
        scores = jax.nn.log_softmax(forward(parameters, images))
        return -jnp.take_along_axis(scores, classes[:, None], 1).mean()

    @jax.jit
    def step(parameters: Any) -> Any:
        return jax.tree.map(lambda value, slope: value - RATE * slope, parameters, jax.grad(loss)(parameters))

    held = [jax.tree.map(jnp.asarray, parameters)]

    def run() -> None:
        for _ in range(count):
            held[0] = step(held[0])
        jax.block_until_ready(held[0])

    run()
    return lambda: {"a step": timed(run) / count}


def enter_gluon(make: Callable[[Any], Any], shape: tuple[int, ...], count: int) -> None:
    """Register minimx and MXNet in all modes. `make(nn)` gives the network."""

    def setup(name: str, how: dict[str, bool] | None) -> Callable[[], Unit]:
        def start() -> Unit:
            import importlib

            mx = importlib.import_module(name)
            return gluon_step(mx, make(mx.gluon.nn), shape, how, count)

        return start

    for variant, how in (("eager", None), ("hybridized", {}), ("static", STATIC)):
        for name, library in (("minimx", "minimx"), ("mxnet", "mxnet")):
            peer(name, variant)(setup(library, how))
