"""LeNet, the network of the book's scoreboard: defined once, for arrays, Symbols and Gluon, with its parameters and its batches.

`nd`'s functions take Symbols as well, so `lenet` is the network in every chapter: called with arrays it computes, called with
Symbols it gives a graph, and `LeNet` is a Gluon block around it. Weights and batches are the same wherever they are asked for,
and asking for them moves no generator of random numbers, so that all ways to train it can be compared. Book: chapter 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import autograd, gluon, nd
from ..base import ArgumentError, ShapeError
from ..device import Context
from ..fields import converted
from ..nd import NDArray
from .datasets import load_fashion_mnist
from .training import sgd

#: The shapes of weights and biases, by their names, in the order in which `lenet` takes them.
LENET_SHAPES: dict[str, tuple[int, ...]] = {
    "w1": (6, 1, 5, 5), "b1": (6,), "w2": (16, 6, 5, 5), "b2": (16,),
    "w3": (120, 400), "b3": (120,), "w4": (84, 120), "b4": (84,), "w5": (10, 84), "b5": (10,),
}  # fmt: skip
BATCH = 16  # images
BATCHES = 10  # in a run of the scoreboard
RATE = 0.05  # of learning


def lenet(X: Any, params: Sequence[Any]) -> Any:
    """The scores of ten classes, for images (N, 1, 28, 28): two convolutions with pooling, three dense layers.

    **Args** X, params: arrays, or Symbols of which a graph is made; params: the ten of `LENET_SHAPES`, in that order.
    **Source** Y. LeCun and others, "Gradient-based learning applied to document recognition", 1998, with relu and maxima, as is
    usual now. **Book** chapter 1.
    """
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = params
    h = nd.Convolution(X, w1, b1, kernel=(5, 5), pad=(2, 2), num_filter=6)
    h = nd.Pooling(nd.relu(h), kernel=(2, 2), stride=(2, 2))
    h = nd.Convolution(h, w2, b2, kernel=(5, 5), num_filter=16)
    h = nd.Pooling(nd.relu(h), kernel=(2, 2), stride=(2, 2))
    h = nd.relu(nd.FullyConnected(h, w3, b3, num_hidden=120))
    h = nd.relu(nd.FullyConnected(h, w4, b4, num_hidden=84))
    return nd.FullyConnected(h, w5, b5, num_hidden=10)


def lenet_loss(scores: Any, y: Any) -> Any:
    """The cross-entropy of each image, of arrays or Symbols: scores (N, 10), y (N,)."""
    return -nd.pick(nd.log_softmax(scores), y)


def lenet_step(params: Sequence[NDArray], X: NDArray, y: NDArray) -> NDArray:
    """One step of training as chapter 1 does it, with arrays and autograd; `params` change in place. Returns the mean loss, pending."""
    with autograd.record():
        loss = lenet_loss(lenet(X, params), y)
    loss.backward()
    sgd(params, RATE, len(y))
    return loss.mean()


def lenet_params(ctx: Context | None = None) -> list[NDArray]:
    """Weights to begin with, and biases of 0: always the same, fresh, with room for gradients. ctx: where; the current device if None."""
    draw, made = np.random.default_rng(9), []
    for name, shape in LENET_SHAPES.items():
        scale = math.sqrt(2 / math.prod(shape[1:])) if name.startswith("w") else 0
        made.append(nd.array(draw.normal(0, 1, shape) * scale, ctx=ctx))
        made[-1].attach_grad()
    return made


def lenet_batches(count: int = BATCHES, size: int = BATCH) -> list[tuple[NDArray, NDArray]]:
    """The first `count` batches of `size` training images of the subset inside minimx, in its order, on the CPU.

    **Returns** pairs of X (size, 1, 28, 28) float32 in [0, 1] and y (size,) int32.
    """
    count = converted("lenet_batches", "count", "int", count)
    size = converted("lenet_batches", "size", "int", size)
    data = load_fashion_mnist(source="package", announce=False)
    if count < 1 or size < 1 or count * size > len(data.train_labels):
        raise ArgumentError(
            f"lenet_batches: {count} batches of {size} images are wanted; at least one of each, and {len(data.train_labels)} "
            "images in all, can be had"
        )
    batches = []
    for start in range(0, count * size, size):
        rows = slice(start, start + size)
        pixels = data.train_images[rows, None].astype("float32") / 255
        batches.append((nd.array(pixels), nd.array(data.train_labels[rows], dtype="int32")))
    return batches


class LeNet(gluon.HybridBlock):
    """`lenet` as a Gluon block, whose parameters have the names of `LENET_SHAPES` behind the prefix."""

    def __init__(self, prefix: str = "lenet_", **kwargs: Any) -> None:
        super().__init__(prefix=prefix, **kwargs)
        with self.name_scope():
            for name, shape in LENET_SHAPES.items():
                setattr(self, name, self.params.get(name, shape=shape))

    def hybrid_forward(self, F: Any, x: Any, **params: Any) -> Any:
        return lenet(x, [params[name] for name in LENET_SHAPES])


def lenet_net(ctx: Context | Sequence[Context] | None = None) -> LeNet:
    """A `LeNet` with the weights of `lenet_params`, on one device or on each of several."""
    net = LeNet()
    net.initialize(ctx=ctx)
    parameters = list(net.collect_params().values())
    values = lenet_params()
    if [each.shape for each in parameters] != [each.shape for each in values]:
        raise ShapeError(f"lenet_net: parameters of shapes {[each.shape for each in parameters]} are not those of LENET_SHAPES")
    for parameter, value in zip(parameters, values):
        parameter.set_data(value)
    return net
