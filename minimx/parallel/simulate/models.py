"""Well-known networks, layer by layer: how many numbers each layer computes with, reads, writes and learns.

A `Model` makes the task graph of a training step for any batch, so that a machine can be tried without running anything. Per layer and
sample: a convolution or dense layer takes 2 FLOP for each multiply-add forward, as many for the gradient of its weights and, but for
the first layer, as many for that of its input. Activations and pooling are counted with the layer before them, whose output they change in
place; what they cost is memory. Biases and the scales of batch normalization count as parameters. Shapes are those of the papers: LeNet
(Y. LeCun and others, 1998, as in Dive into Deep Learning), AlexNet (A. Krizhevsky, 2014, one column), VGG-16 (K. Simonyan, A. Zisserman,
2014), ResNet-18 and -50 (K. He and others, 2015), "mlp": 784, 256, 10. Book: chapter 11.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ...base import ArgumentError, UnknownNameError, shown
from .graph import TaskGraph

BYTES = 4  # of a float32


class Layer(NamedTuple):
    """A layer that learns: multiply-adds a sample, and how many numbers it reads and writes a sample and has as parameters."""

    name: str
    products: float
    read: int
    written: int
    parameters: int


@dataclass(frozen=True)
class Model:
    """Layers in the order of the forward pass."""

    name: str
    layers: tuple[Layer, ...]

    @property
    def parameters(self) -> int:
        """How many numbers it learns."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def flops(self) -> float:
        """FLOP of a forward pass for one sample."""
        return 2 * sum(layer.products for layer in self.layers)

    def graph(self, batch: int, device: str = "gpu(0)") -> TaskGraph:
        """A training step on one device: forward, backward from the last layer to the first, and an update of all parameters by SGD.

        Backward reads what forward has read and written, and the gradient of its output, and writes that of its input.
        """
        if batch < 1:
            raise ArgumentError(f"Model.graph: a batch of {shown(batch)} has no sample")
        graph = TaskGraph(batch=batch, parameters={layer.name: float(BYTES * layer.parameters) for layer in self.layers})
        last: tuple[int, ...] = ()
        for layer in self.layers:
            read, written = BYTES * (batch * layer.read + layer.parameters), BYTES * batch * layer.written
            number = graph.work(
                f"{layer.name} forward", device, flops=2 * batch * layer.products, read=read, written=written, after=last
            )
            last = (number,)
        for position in reversed(range(len(self.layers))):
            layer = self.layers[position]
            times = 2 if position else 1
            number = graph.work(
                f"{layer.name} backward", device, flops=2 * times * batch * layer.products, after=last, makes=(layer.name,),
                read=BYTES * (batch * (layer.read + 2 * layer.written) + layer.parameters),
                written=BYTES * (batch * layer.read * (times - 1) + layer.parameters),
            )  # fmt: skip
            last = (number,)
        nbytes = BYTES * self.parameters
        names = tuple(layer.name for layer in self.layers)
        graph.work(
            "update", device, flops=2 * self.parameters, read=2 * nbytes, written=nbytes, after=last, uses=names, scales=False
        )
        return graph


class _Stack:
    """Layers on top of each other; knows the shape of what comes out, (channels, height, width)."""

    def __init__(self, channels: int, height: int, width: int) -> None:
        self.shape = (channels, height, width)
        self.layers: list[Layer] = []

    def conv(
        self, name: str, out: int, kernel: int, stride: int = 1, pad: int = 0, bias: bool = True, norm: bool = False
    ) -> None:
        channels, height, width = self.shape
        rows, columns = ((size + 2 * pad - kernel) // stride + 1 for size in (height, width))
        weights = out * channels * kernel * kernel
        read = channels * height * width
        self.shape = (out, rows, columns)
        self.layers.append(
            Layer(name, weights * rows * columns, read, out * rows * columns, weights + out * bias + 2 * out * norm)
        )

    def pool(self, kernel: int, stride: int, pad: int = 0) -> None:
        channels, height, width = self.shape
        self.shape = (channels, (height + 2 * pad - kernel) // stride + 1, (width + 2 * pad - kernel) // stride + 1)

    def dense(self, name: str, out: int) -> None:
        inputs = self.shape[0] * self.shape[1] * self.shape[2]
        self.shape = (out, 1, 1)
        self.layers.append(Layer(name, inputs * out, inputs, out, inputs * out + out))

    def model(self, name: str) -> Model:
        return Model(name, tuple(self.layers))


def _mlp() -> Model:
    stack = _Stack(1, 28, 28)
    stack.dense("dense0", 256)
    stack.dense("dense1", 10)
    return stack.model("mlp")


def _lenet() -> Model:
    stack = _Stack(1, 28, 28)
    stack.conv("conv0", 6, 5, pad=2)
    stack.pool(2, 2)
    stack.conv("conv1", 16, 5)
    stack.pool(2, 2)
    for number, out in enumerate((120, 84, 10)):
        stack.dense(f"dense{number}", out)
    return stack.model("lenet")


def _alexnet() -> Model:
    stack = _Stack(3, 224, 224)
    stack.conv("conv0", 64, 11, 4, 2)
    stack.pool(3, 2)
    stack.conv("conv1", 192, 5, pad=2)
    stack.pool(3, 2)
    for number, out in enumerate((384, 256, 256), 2):
        stack.conv(f"conv{number}", out, 3, pad=1)
    stack.pool(3, 2)
    for number, out in enumerate((4096, 4096, 1000)):
        stack.dense(f"dense{number}", out)
    return stack.model("alexnet")


def _vgg16() -> Model:
    stack = _Stack(3, 224, 224)
    number = iter(range(13))
    for count, out in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(count):
            stack.conv(f"conv{next(number)}", out, 3, pad=1)
        stack.pool(2, 2)
    for position, out in enumerate((4096, 4096, 1000)):
        stack.dense(f"dense{position}", out)
    return stack.model("vgg16")


def _resnet(name: str, counts: tuple[int, ...], bottleneck: bool) -> Model:
    stack = _Stack(3, 224, 224)
    stack.conv("conv0", 64, 7, 2, 3, bias=False, norm=True)
    stack.pool(3, 2, 1)
    for stage, count in enumerate(counts):
        width = 64 << stage
        for block in range(count):
            for each in _block(f"stage{stage + 1}_{block}", width, bottleneck, 2 if stage and not block else 1, not block):
                each(stack)
    stack.pool(7, 7)
    stack.dense("dense0", 1000)
    return stack.model(name)


def _block(name: str, width: int, bottleneck: bool, stride: int, first: bool) -> Iterator[Callable[[_Stack], None]]:
    """A residual block: what it does to the stack, one after the other. The first of a stage has a convolution beside it where shapes
    change."""
    out = 4 * width if bottleneck else width
    shapes = [(width, 1, 1), (width, 3, stride), (out, 1, 1)] if bottleneck else [(width, 3, stride), (width, 3, 1)]
    if first and (bottleneck or stride > 1):
        yield lambda stack: _beside(stack, f"{name}_short", out, stride)
    for number, (channels, kernel, step) in enumerate(shapes):
        yield functools.partial(
            _Stack.conv,
            name=f"{name}_conv{number}",
            out=channels,
            kernel=kernel,
            stride=step,
            pad=kernel // 2,
            bias=False,
            norm=True,
        )


def _beside(stack: _Stack, name: str, out: int, stride: int) -> None:
    """A convolution of the shortcut: what comes out of it does not go on."""
    shape = stack.shape
    stack.conv(name, out, 1, stride, bias=False, norm=True)
    stack.shape = shape


MAKERS: dict[str, Callable[[], Model]] = {
    "mlp": _mlp,
    "lenet": _lenet,
    "alexnet": _alexnet,
    "vgg16": _vgg16,
    "resnet18": functools.partial(_resnet, "resnet18", (2, 2, 2, 2), False),
    "resnet50": functools.partial(_resnet, "resnet50", (3, 4, 6, 3), True),
}


@functools.cache
def model(name: str) -> Model:
    """A well-known network: "mlp", "lenet", "alexnet", "vgg16", "resnet18", "resnet50". **Raises** UnknownNameError for another.

    >>> model("resnet50").parameters, round(model("resnet50").flops / 1e9, 1)
    (25557032, 8.2)
    """
    if name not in MAKERS:
        raise UnknownNameError(f"simulate.model: there is no model {shown(name)}; choose one of {', '.join(map(repr, MAKERS))}")
    return MAKERS[name]()


__all__ = ["MAKERS", "Layer", "Model", "model"]
