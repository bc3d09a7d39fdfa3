"""AlexNet: five convolutions with large windows, and three dense layers, which hold most of the parameters.

Krizhevsky, "One weird trick for parallelizing convolutional neural networks", https://arxiv.org/abs/1404.5997. Images (N, 3, 224, 224)
become features (N, 256, 6, 6); the smallest have 63 x 63 pixels.
"""

from __future__ import annotations

from typing import Any

from ....files import PathLike
from ... import nn
from ...weight import Devices
from .. import model_store
from .classifier import Classifier, chain

__all__ = ["AlexNet", "alexnet"]


class AlexNet(Classifier):
    """AlexNet. **Shapes** data (N, 3, H, W), result (N, classes). **Source** MXNet `AlexNet`."""

    def __init__(self, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(
                nn.Conv2D(64, kernel_size=11, strides=4, padding=2, activation="relu"),
                nn.MaxPool2D(pool_size=3, strides=2),
                nn.Conv2D(192, kernel_size=5, padding=2, activation="relu"),
                nn.MaxPool2D(pool_size=3, strides=2),
                nn.Conv2D(384, kernel_size=3, padding=1, activation="relu"),
                nn.Conv2D(256, kernel_size=3, padding=1, activation="relu"),
                nn.Conv2D(256, kernel_size=3, padding=1, activation="relu"),
                nn.MaxPool2D(pool_size=3, strides=2),
                nn.Flatten(),
                nn.Dense(4096, activation="relu"),
                nn.Dropout(0.5),
                nn.Dense(4096, activation="relu"),
                nn.Dropout(0.5),
            )
            self.output = nn.Dense(classes)


def alexnet(pretrained: bool = False, ctx: Devices = None, root: PathLike | None = None, **kwargs: Any) -> AlexNet:
    """AlexNet, 61.1 million parameters. **Args** as `vision.get_model`."""
    net = AlexNet(**kwargs)
    if pretrained:
        model_store.load_pretrained(net, "alexnet", ctx, root)
    return net
