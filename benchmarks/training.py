"""What the workloads of training share: steps of gluon, PyTorch, JAX and MLX on a batch of images of ten classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gluon_peers import enter, hybridized
from harness import Unit, Workload, timed

RATE = 0.1


def data(batch: int, *shape: int) -> tuple[Any, Any]:
    """Images and their classes, as NumPy arrays."""
    import numpy as np

    random = np.random.default_rng(0)
    return random.standard_normal((batch, *shape), np.float32), random.integers(0, 10, batch)


def steps(step: Callable[[], Any], count: int, finish: Callable[[], Any] = lambda: None) -> Unit:
    """The unit of work: `count` steps, after one to warm up."""

    def run() -> None:
        for _ in range(count):
            step()
        finish()

    run()
    return lambda: {"a step": timed(run) / count}


def enter_gluon(work: Workload, make: Callable[[Any], Any], batch: int, shape: tuple[int, ...], count: int) -> None:
    """Enter minimx and MXNet in all modes. `make(library)` gives the network."""

    def setup(mx: Any, how: dict[str, bool] | None) -> Unit:
        images, classes = (mx.nd.array(array) for array in data(batch, *shape))
        net = make(mx)
        net.initialize(mx.init.Xavier())
        hybridized(net, how)
        loss = hybridized(mx.gluon.loss.SoftmaxCrossEntropyLoss(), how)
        trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": RATE})

        def step() -> None:
            with mx.autograd.record():
                each = loss(net(images), classes)
            each.backward()
            trainer.step(batch)

        return steps(step, count, mx.nd.waitall)

    enter(work, setup)


def enter_torch(work: Workload, make: Callable[[Any], Any], batch: int, shape: tuple[int, ...], count: int) -> None:
    """Enter PyTorch, as it is and compiled. `make(torch.nn)` gives the network."""

    def setup(compiled: bool) -> Unit:
        import torch

        torch.set_num_threads(2)
        images, classes = (torch.from_numpy(array) for array in data(batch, *shape))
        net = make(torch.nn)
        optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
        criterion = torch.nn.CrossEntropyLoss()

        def loss(images: Any, classes: Any) -> Any:
            return criterion(net(images), classes)

        forward = torch.compile(loss) if compiled else loss

        def step() -> None:
            optimizer.zero_grad()
            forward(images, classes).backward()
            optimizer.step()

        return steps(step, count)

    work.peer("torch", "eager")(lambda: setup(False))
    work.peer("torch", "compiled")(lambda: setup(True))


def jax_step(forward: Callable[[Any, Any], Any], parameters: Any, batch: int, shape: tuple[int, ...], count: int) -> Unit:
    """`count` steps with JAX. `forward(parameters, images)` gives the scores of the classes; `shape` has the channels last."""
    import jax
    import jax.numpy as jnp

    images, classes = map(jnp.asarray, data(batch, *shape))

    def loss(parameters: Any) -> Any:
        scores = jax.nn.log_softmax(forward(parameters, images))
        return -jnp.take_along_axis(scores, classes[:, None], 1).mean()

    @jax.jit
    def update(parameters: Any) -> Any:
        return jax.tree.map(lambda value, slope: value - RATE * slope, parameters, jax.grad(loss)(parameters))

    held = [jax.tree.map(jnp.asarray, parameters)]

    def step() -> None:
        held[0] = update(held[0])

    return steps(step, count, lambda: jax.block_until_ready(held[0]))
