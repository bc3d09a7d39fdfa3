"""W6: one step of training a network of two layers, 784-256-10, on 256 images: forward, backward, update."""

from __future__ import annotations

from typing import Any

from harness import Unit, main, peer, timed
from training import BATCH, RATE, data, enter_gluon, jax_step, torch_step

INPUTS, HIDDEN, CLASSES = 784, 256, 10
COUNT = 50


def net(nn: Any) -> Any:
    """The network in MXNet's API."""
    layers = nn.HybridSequential()
    layers.add(nn.Dense(HIDDEN, activation="relu"), nn.Dense(CLASSES))
    return layers


enter_gluon(net, (INPUTS,), COUNT)


def weights() -> list[Any]:
    """Weights and biases as NumPy arrays, inputs first."""
    import numpy as np

    random = np.random.default_rng(0)
    return [
        array
        for inputs, units in ((INPUTS, HIDDEN), (HIDDEN, CLASSES))
        for array in (random.standard_normal((inputs, units), np.float32) / inputs**0.5, np.zeros(units, np.float32))
    ]


@peer("torch", "eager")
def _() -> Unit:
    from torch import nn

    return torch_step(nn.Sequential(nn.Linear(INPUTS, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES)), (INPUTS,), COUNT)


@peer("jax", "jit")
def _() -> Unit:
    import jax.numpy as jnp

    def forward(parameters: Any, x: Any) -> Any:
        w, b, v, c = parameters
        return jnp.maximum(x @ w + b, 0) @ v + c

    return jax_step(forward, weights(), (INPUTS,), COUNT)


@peer("numpy")
def _() -> Unit:
    import numpy as np

    x, classes = data(INPUTS)
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

    def run() -> None:
        for _ in range(COUNT):
            step()

    return lambda: {"a step": timed(run) / COUNT}


if __name__ == "__main__":
    main("W6 training step, 784-256-10", __file__)
