"""Inception v3: modules look at the same input through windows of several sizes side by side; large windows are made of small ones.

Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", https://arxiv.org/abs/1512.00567. Images (N, 3, 299, 299)
become features (N, 2048, 8, 8), of which the mean is taken; smaller images will not do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ....files import PathLike
from ... import nn
from ...weight import Devices
from .. import model_store
from .classifier import Classifier, branches, chain

__all__ = ["Inception3", "inception_v3"]

Branches: TypeAlias = "tuple[nn.HybridSequential, ...]"


class Inception3(Classifier):
    """Inception v3. **Shapes** data (N, 3, H, W), result (N, classes). **Source** MXNet `Inception3`."""

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(
                _conv(32, 3, strides=2),
                _conv(32, 3, padding=0),
                _conv(64, 3),
                nn.MaxPool2D(pool_size=3, strides=2),
                _conv(80, 1),
                _conv(192, 3, padding=0),
                nn.MaxPool2D(pool_size=3, strides=2),
                _module("A1_", _parts, 32),
                _module("A2_", _parts, 64),
                _module("A3_", _parts, 64),
                _module("B_", _halving),
                _module("C1_", _long_windows, 128),
                _module("C2_", _long_windows, 160),
                _module("C3_", _long_windows, 160),
                _module("C4_", _long_windows, 192),
                _module("D_", _halving_again),
                _module("E1_", _split_windows),
                _module("E2_", _split_windows),
                nn.AvgPool2D(pool_size=8),
                nn.Dropout(0.5),
            )
            self.output = nn.Dense(classes)


def _module(prefix: str, make: Callable[..., Branches], *args: int) -> nn.HybridConcurrent:
    """The branches that `make(*args)` makes, in a scope of names of their own."""
    module = nn.HybridConcurrent(axis=1, prefix=prefix)
    with module.name_scope():
        module.add(*make(*args))
    return module


def _conv(channels: int, *window: int, strides: int = 1, padding: int | None = None) -> nn.HybridSequential:
    """A convolution with `window` (one number for a square). Without strides the image keeps its size, unless `padding` is given."""
    height, width = window if len(window) == 2 else window * 2
    around = (height // 2, width // 2) if padding is None and strides == 1 else (padding or 0, padding or 0)
    return chain(
        nn.Conv2D(channels, (height, width), strides, around, use_bias=False), nn.BatchNorm(epsilon=0.001), nn.Activation("relu")
    )


def _mean() -> nn.AvgPool2D:
    return nn.AvgPool2D(pool_size=3, strides=1, padding=1)


def _parts(channels: int) -> Branches:
    """Windows of 1, 3, and 5; the mean of a window. (The paper's figure 5, MXNet's A.)"""
    return (
        chain(_conv(64, 1)),
        chain(_conv(48, 1), _conv(64, 5)),
        chain(_conv(64, 1), _conv(96, 3), _conv(96, 3)),
        chain(_mean(), _conv(channels, 1)),
    )


def _halving() -> Branches:
    """From 35 x 35 to 17 x 17. (MXNet's B.)"""
    return (
        chain(_conv(384, 3, strides=2)),
        chain(_conv(64, 1), _conv(96, 3), _conv(96, 3, strides=2)),
        chain(nn.MaxPool2D(pool_size=3, strides=2)),
    )


def _long_windows(channels: int) -> Branches:
    """Windows of 7 x 7, as 1 x 7 and 7 x 1. (The paper's figure 6, MXNet's C.)"""
    return (
        chain(_conv(192, 1)),
        chain(_conv(channels, 1), _conv(channels, 1, 7), _conv(192, 7, 1)),
        chain(_conv(channels, 1), *(_conv(channels, *window) for window in ((7, 1), (1, 7), (7, 1))), _conv(192, 1, 7)),
        chain(_mean(), _conv(192, 1)),
    )


def _halving_again() -> Branches:
    """From 17 x 17 to 8 x 8. (MXNet's D.)"""
    return (
        chain(_conv(192, 1), _conv(320, 3, strides=2)),
        chain(_conv(192, 1), _conv(192, 1, 7), _conv(192, 7, 1), _conv(192, 3, strides=2)),
        chain(nn.MaxPool2D(pool_size=3, strides=2)),
    )


def _split_windows() -> Branches:
    """Windows of 3 x 3, as 1 x 3 beside 3 x 1: more channels. (The paper's figure 7, MXNet's E.)"""
    return (
        chain(_conv(320, 1)),
        chain(chain(_conv(384, 1)), _cross()),
        chain(chain(_conv(448, 1), _conv(384, 3)), _cross()),
        chain(_mean(), _conv(192, 1)),
    )


def _cross() -> nn.HybridConcurrent:
    return branches(chain(_conv(384, 1, 3)), chain(_conv(384, 3, 1)))


def inception_v3(pretrained: bool = False, ctx: Devices = None, root: PathLike | None = None, **kwargs: Any) -> Inception3:
    """Inception v3, 23.9 million parameters. **Args** as `vision.get_model`."""
    net = Inception3(**kwargs)
    if pretrained:
        model_store.load_pretrained(net, "inceptionv3", ctx, root)
    return net
