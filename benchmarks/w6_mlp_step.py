"""W6: one step of training a network of two layers, 784-256-10, on 256 images: forward, backward, update."""

from __future__ import annotations

from typing import Any

from harness import Bar, Unit, Workload
from training import RATE, data, enter_gluon, enter_torch, jax_step, steps

BATCH, INPUTS, HIDDEN, CLASSES = 256, 784, 256, 10
COUNT = 50

work = Workload(__file__, "training step, 784-256-10, 256 images", bars=(Bar("a step", 1.0),), quick=True)


def in_gluon(mx: Any) -> Any:
    """The network in MXNet's API."""
    layers = mx.gluon.nn.HybridSequential()
    layers.add(mx.gluon.nn.Dense(HIDDEN, activation="relu"), mx.gluon.nn.Dense(CLASSES))
    return layers


def in_torch(nn: Any) -> Any:
    """The network in PyTorch."""
    return nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))


enter_gluon(work, in_gluon, BATCH, (INPUTS,), COUNT)
enter_torch(work, in_torch, BATCH, (INPUTS,), COUNT)


def weights() -> list[Any]:
    """Weights and biases as NumPy arrays, inputs first."""
    import numpy as np

    random = np.random.default_rng(0)
    return [
        array
        for inputs, units in ((INPUTS, HIDDEN), (HIDDEN, CLASSES))
        for array in (random.standard_normal((inputs, units), np.float32) / inputs**0.5, np.zeros(units, np.float32))
    ]


@work.peer("jax", "jit")
def _() -> Unit:
    import jax.numpy as jnp

    def forward(parameters: Any, x: Any) -> Any:
        w, b, v, c = parameters
        return jnp.maximum(x @ w + b, 0) @ v + c

    return jax_step(forward, weights(), BATCH, (INPUTS,), COUNT)


@work.peer("mlx", "compiled")
def _() -> Unit:
    import mlx.core as mx
    from mlx import nn

    images, classes = map(mx.array, data(BATCH, INPUTS))

    def loss(parameters: Any) -> Any:
        w, b, v, c = parameters
        return nn.losses.cross_entropy(mx.maximum(images @ w + b, 0) @ v + c, classes, reduction="mean")

    @mx.compile
    def update(parameters: Any) -> Any:
        return [value - RATE * slope for value, slope in zip(parameters, mx.grad(loss)(parameters))]

    held = [[mx.array(array) for array in weights()]]

    def step() -> None:
        held[0] = update(held[0])
        mx.eval(held[0])

    return steps(step, COUNT)


@work.peer("numpy")
def _() -> Unit:
    import numpy as np

    x, classes = data(BATCH, INPUTS)
    w, b, v, c = parameters = weights()
    rows = np.arange(BATCH)

    def step() -> None:
        hidden = x @ w
        hidden += b
        np.maximum(hidden, 0, out=hidden)
        scores = hidden @ v
        scores += c
        scores -= scores.max(1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(1, keepdims=True)
        scores[rows, classes] -= 1
        scores *= 1 / BATCH
        back = scores @ v.T
        back *= hidden > 0
        slopes = (x.T @ back, back.sum(0), hidden.T @ scores, scores.sum(0))
        for parameter, slope in zip(parameters, slopes):
            slope *= RATE
            parameter -= slope

    return steps(step, COUNT)


if __name__ == "__main__":
    work.main()
