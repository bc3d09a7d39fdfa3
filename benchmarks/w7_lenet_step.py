"""W7: one step of training LeNet on 256 images of 28 x 28: convolutions, pooling, and layers that are small."""

from __future__ import annotations

from typing import Any

from harness import Bar, Unit, Workload
from training import enter_gluon, enter_torch, jax_step

BATCH, SIDE = 256, 28
COUNT = 5

work = Workload(__file__, "training step, LeNet, 256 images", bars=(Bar("a step", 1.0),), quick=True)


def in_gluon(mx: Any) -> Any:
    """The network in MXNet's API."""
    nn = mx.gluon.nn
    layers = nn.HybridSequential()
    layers.add(
        nn.Conv2D(6, 5, padding=2, activation="sigmoid"),
        nn.AvgPool2D(2, 2),
        nn.Conv2D(16, 5, activation="sigmoid"),
        nn.AvgPool2D(2, 2),
        nn.Dense(120, activation="sigmoid"),
        nn.Dense(84, activation="sigmoid"),
        nn.Dense(10),
    )
    return layers


def in_torch(nn: Any) -> Any:
    """The network in PyTorch."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.Sigmoid(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Sigmoid(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.Sigmoid(),
        nn.Linear(120, 84),
        nn.Sigmoid(),
        nn.Linear(84, 10),
    )


enter_gluon(work, in_gluon, BATCH, (1, SIDE, SIDE), COUNT)
enter_torch(work, in_torch, BATCH, (1, SIDE, SIDE), COUNT)


@work.peer("jax", "jit")
def _() -> Unit:
    import jax
    import numpy as np
    from jax import lax

    random = np.random.default_rng(0)
    shapes = ((5, 5, 1, 6), (5, 5, 6, 16), (400, 120), (120, 84), (84, 10))
    parameters = [
        (random.standard_normal(shape, np.float32) / np.prod(shape[:-1]) ** 0.5, np.zeros(shape[-1], np.float32))
        for shape in shapes
    ]

    def convolution(x: Any, weight: Any, bias: Any, pad: int) -> Any:
        product = lax.conv_general_dilated(x, weight, (1, 1), [(pad, pad)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jax.nn.sigmoid(product + bias)

    def pooling(x: Any) -> Any:
        return lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4

    def forward(parameters: Any, x: Any) -> Any:
        first, second, *dense = parameters
        x = pooling(convolution(pooling(convolution(x, *first, 2)), *second, 0)).reshape(len(x), -1)
        for weight, bias in dense[:-1]:
            x = jax.nn.sigmoid(x @ weight + bias)
        weight, bias = dense[-1]
        return x @ weight + bias

    return jax_step(forward, parameters, BATCH, (SIDE, SIDE, 1), COUNT)


if __name__ == "__main__":
    work.main()
