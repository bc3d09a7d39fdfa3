"""Residual networks, in gluon, in PyTorch and in JAX: those of the model zoo's ResNet-50, and a ResNet-18 for images of 32 x 32."""

from __future__ import annotations

from typing import Any

#: A network: its first convolution (channels, kernel, stride), whether pooling follows, and stages of so many blocks, with so many
#: channels in a block's middle and at its end, and a stride. With two convolutions a block, or three where those numbers differ.
RESNET50 = ((64, 7, 2), True, ((3, 64, 256, 1), (4, 128, 512, 2), (6, 256, 1024, 2), (3, 512, 2048, 2)))
RESNET18 = ((64, 3, 1), False, ((2, 64, 64, 1), (2, 128, 128, 2), (2, 256, 256, 2), (2, 512, 512, 2)))


def convolutions(middle: int, end: int, stride: int) -> list[tuple[int, int, int]]:
    """The convolutions of a block: channels, kernel, stride."""
    if middle == end:
        return [(end, 3, stride), (end, 3, 1)]
    return [(middle, 1, stride), (middle, 3, 1), (end, 1, 1)]


def in_gluon(mx: Any, network: Any, classes: int) -> Any:
    """A network in MXNet's API."""
    nn = mx.gluon.nn

    class Block(mx.gluon.HybridBlock):  # type: ignore[misc]  # either library's
        def __init__(self, convs: Any, shortcut: Any) -> None:
            super().__init__()
            self.body = nn.HybridSequential()
            for place, (channels, kernel, stride) in enumerate(convs):
                self.body.add(nn.Conv2D(channels, kernel, stride, kernel // 2, use_bias=False), nn.BatchNorm())
                if place < len(convs) - 1:
                    self.body.add(nn.Activation("relu"))
            self.shortcut = None
            if shortcut is not None:
                self.shortcut = nn.HybridSequential()
                self.shortcut.add(nn.Conv2D(*shortcut, use_bias=False), nn.BatchNorm())

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return F.relu(self.body(x) + (x if self.shortcut is None else self.shortcut(x)))

    (channels, kernel, stride), pooled, stages = network
    net = nn.HybridSequential()
    net.add(nn.Conv2D(channels, kernel, stride, kernel // 2, use_bias=False), nn.BatchNorm(), nn.Activation("relu"))
    if pooled:
        net.add(nn.MaxPool2D(3, 2, 1))
    for count, middle, end, first in stages:
        for number in range(count):
            stride = first if number == 0 else 1
            net.add(Block(convolutions(middle, end, stride), (end, 1, stride) if channels != end else None))
            channels = end
    net.add(nn.GlobalAvgPool2D(), nn.Dense(classes))
    return net


def in_torch(nn: Any, network: Any, classes: int) -> Any:
    """A network in PyTorch."""

    def convolution(inputs: int, channels: int, kernel: int, stride: int) -> Any:
        return nn.Sequential(nn.Conv2d(inputs, channels, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(channels))

    class Block(nn.Module):  # type: ignore[misc]  # PyTorch's
        def __init__(self, inputs: int, convs: Any, shortcut: Any) -> None:
            super().__init__()
            layers: list[Any] = []
            for channels, kernel, stride in convs:
                layers += [convolution(inputs, channels, kernel, stride), nn.ReLU()]
                inputs = channels
            self.body = nn.Sequential(*layers[:-1])
            self.shortcut = shortcut
            self.relu = nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.relu(self.body(x) + (x if self.shortcut is None else self.shortcut(x)))

    (channels, kernel, stride), pooled, stages = network
    layers = [convolution(3, channels, kernel, stride), nn.ReLU()]
    if pooled:
        layers.append(nn.MaxPool2d(3, 2, 1))
    for count, middle, end, first in stages:
        for number in range(count):
            stride = first if number == 0 else 1
            shortcut = convolution(channels, end, 1, stride) if channels != end else None
            layers.append(Block(channels, convolutions(middle, end, stride), shortcut))
            channels = end
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


class InJax:
    """A network in JAX: `parameters`, and `forward(parameters, images)`, with the channels last. `training`: how BatchNorm works."""

    def __init__(self, network: Any, classes: int, training: bool) -> None:
        import numpy as np

        self.network, self.training = network, training
        self.random = np.random.default_rng(0)
        self.parameters: list[Any] = []
        (channels, kernel, _), _, stages = network
        self._enter(kernel, 3, channels)
        for count, middle, end, first in stages:
            for number in range(count):
                inputs = channels
                for outputs, size, _ in convolutions(middle, end, first if number == 0 else 1):
                    self._enter(size, inputs, outputs)
                    inputs = outputs
                if channels != end:
                    self._enter(1, channels, end)
                channels = end
        weight = self.random.standard_normal((channels, classes), np.float32) * np.float32(channels**-0.5)
        self.parameters.append((weight, np.zeros(classes, np.float32)))

    def _enter(self, kernel: int, inputs: int, outputs: int) -> None:
        import numpy as np

        weight = self.random.standard_normal((kernel, kernel, inputs, outputs), np.float32)
        weight *= np.float32((kernel**2 * inputs / 2) ** -0.5)
        one, zero = np.ones(outputs, np.float32), np.zeros(outputs, np.float32)
        self.parameters.append((weight, one, zero, zero, one))

    def forward(self, parameters: Any, x: Any) -> Any:
        """The scores of the classes."""
        import jax.numpy as jnp
        from jax import lax

        layers = iter(parameters)

        def convolution(x: Any, kernel: int, stride: int) -> Any:
            weight, gamma, beta, mean, var = next(layers)
            pads, layout = [(kernel // 2, kernel // 2)] * 2, ("NHWC", "HWIO", "NHWC")
            y = lax.conv_general_dilated(x, weight, (stride, stride), pads, dimension_numbers=layout)
            if self.training:
                mean, var = y.mean((0, 1, 2)), y.var((0, 1, 2))
            return (y - mean) * (gamma * lax.rsqrt(var + 1e-5)) + beta

        (channels, kernel, stride), pooled, stages = self.network
        x = jnp.maximum(convolution(x, kernel, stride), 0)
        if pooled:
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))
        for count, middle, end, first in stages:
            for number in range(count):
                stride = first if number == 0 else 1
                y = x
                convs = convolutions(middle, end, stride)
                for place, (_, size, step) in enumerate(convs):
                    y = convolution(y, size, step)
                    y = jnp.maximum(y, 0) if place < len(convs) - 1 else y
                x = jnp.maximum(y + (x if channels == end else convolution(x, 1, stride)), 0)
                channels = end
        weight, bias = next(layers)
        return x.mean((1, 2)) @ weight + bias
