"""DenseNet: each layer gets the outputs of all layers before it in its stage, and adds `growth_rate` channels to them.

Huang et al., "Densely Connected Convolutional Networks", https://arxiv.org/abs/1608.06993; this is DenseNet-BC. Images (N, 3, 224, 224)
become features (N, C, 7, 7), of which the mean is taken, with C from 1024 (DenseNet-121) to 2208 (DenseNet-161); the
smallest images have 221 x 221 pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....base import UnknownNameError
from ....files import PathLike
from ... import nn
from ...block import HybridBlock
from ...weight import Devices
from .. import model_store
from .classifier import Classifier, branches, chain

__all__ = ["DenseNet", "densenet121", "densenet161", "densenet169", "densenet201"]

#: By the number of layers with weights: channels after the first convolution, the growth rate, and the layers of each stage.
densenet_spec = {
    121: (64, 32, [6, 12, 24, 16]),
    161: (96, 48, [6, 12, 36, 24]),
    169: (64, 32, [6, 12, 32, 32]),
    201: (64, 32, [6, 12, 48, 32]),
}


class DenseNet(Classifier):
    """A DenseNet. **Shapes** data (N, 3, H, W), result (N, classes).

    **Args** `num_init_features`: channels after the first convolution. `growth_rate`: channels that a layer adds. `block_config`: the
    layers of each stage. `bn_size`: a layer first makes `bn_size * growth_rate` channels of all that it gets. `dropout`: a rate, for each
    layer. **Source** MXNet `DenseNet`.
    """

    def __init__(
        self, num_init_features: int, growth_rate: int, block_config: Sequence[int], bn_size: int = 4, dropout: float = 0,
        classes: int = 1000, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = chain(
                nn.Conv2D(num_init_features, kernel_size=7, strides=2, padding=3, use_bias=False),
                *_norm_relu(),
                nn.MaxPool2D(pool_size=3, strides=2, padding=1),
            )
            channels = num_init_features
            for number, layers in enumerate(block_config, start=1):
                stage = nn.HybridSequential(prefix=f"stage{number}_")
                with stage.name_scope():
                    stage.add(*(_dense_layer(growth_rate, bn_size, dropout) for _ in range(layers)))
                self.features.add(stage)
                channels += layers * growth_rate
                if number < len(block_config):
                    channels //= 2
                    self.features.add(_transition(channels))
            self.features.add(*_norm_relu(), nn.AvgPool2D(pool_size=7), nn.Flatten())
            self.output = nn.Dense(classes)


def _norm_relu() -> tuple[nn.BatchNorm, nn.Activation]:
    return nn.BatchNorm(), nn.Activation("relu")


def _dense_layer(growth_rate: int, bn_size: int, dropout: float) -> nn.HybridConcurrent:
    """The input, and `growth_rate` new channels."""
    layers: list[HybridBlock] = [
        *_norm_relu(),
        nn.Conv2D(bn_size * growth_rate, kernel_size=1, use_bias=False),
        *_norm_relu(),
        nn.Conv2D(growth_rate, kernel_size=3, padding=1, use_bias=False),
    ]
    if dropout:
        layers.append(nn.Dropout(dropout))
    return branches(nn.Identity(), chain(*layers))


def _transition(channels: int) -> nn.HybridSequential:
    """Between two stages: fewer channels, and an image of half the size."""
    return chain(*_norm_relu(), nn.Conv2D(channels, kernel_size=1, use_bias=False), nn.AvgPool2D(pool_size=2, strides=2))


def get_densenet(
    num_layers: int, pretrained: bool = False, ctx: Devices = None, root: PathLike | None = None, **kwargs: Any
) -> DenseNet:
    """The DenseNet with `num_layers` layers: 121, 161, 169 or 201. **Args** as `vision.get_model`, and those of DenseNet."""
    if num_layers not in densenet_spec:
        raise UnknownNameError(f"get_densenet: num_layers={num_layers}; there are {', '.join(map(str, densenet_spec))}")
    net = DenseNet(*densenet_spec[num_layers], **kwargs)
    if pretrained:
        model_store.load_pretrained(net, f"densenet{num_layers}", ctx, root)
    return net


def densenet121(**kwargs: Any) -> DenseNet:
    """DenseNet of 121 layers, 8.1 million parameters."""
    return get_densenet(121, **kwargs)


def densenet161(**kwargs: Any) -> DenseNet:
    """DenseNet of 161 layers, 28.9 million parameters."""
    return get_densenet(161, **kwargs)


def densenet169(**kwargs: Any) -> DenseNet:
    """DenseNet of 169 layers, 14.3 million parameters."""
    return get_densenet(169, **kwargs)


def densenet201(**kwargs: Any) -> DenseNet:
    """DenseNet of 201 layers, 20.2 million parameters."""
    return get_densenet(201, **kwargs)
