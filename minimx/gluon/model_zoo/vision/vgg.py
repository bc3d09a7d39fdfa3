"""VGG: blocks of 3 x 3 convolutions, each followed by pooling that halves the image, and three dense layers.

Simonyan and Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", https://arxiv.org/abs/1409.1556. Images
(N, 3, 224, 224) become features (N, 512, 7, 7); the smallest have 32 x 32 pixels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....base import UnknownNameError
from ....files import PathLike
from ....initializer import Xavier
from ... import nn
from ...weight import Devices, ParameterError
from .. import model_store
from .classifier import Classifier, chain

__all__ = ["VGG", "vgg11", "vgg13", "vgg16", "vgg19", "vgg11_bn", "vgg13_bn", "vgg16_bn", "vgg19_bn", "get_vgg"]

#: By the number of layers with weights: convolutions in each block, and their channels.
vgg_spec = {
    11: ([1, 1, 2, 2, 2], [64, 128, 256, 512, 512]),
    13: ([2, 2, 2, 2, 2], [64, 128, 256, 512, 512]),
    16: ([2, 2, 3, 3, 3], [64, 128, 256, 512, 512]),
    19: ([2, 2, 4, 4, 4], [64, 128, 256, 512, 512]),
}


class VGG(Classifier):
    """A VGG. **Shapes** data (N, 3, H, W), result (N, classes).

    **Args** `layers`, `filters`: convolutions in each block, and their channels. `batch_norm`: a BatchNorm behind each convolution.
    **Source** MXNet `VGG`.
    """

    def __init__(
        self, layers: Sequence[int], filters: Sequence[int], classes: int = 1000, batch_norm: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if len(layers) != len(filters):
            raise ParameterError(f"VGG: layers={layers} and filters={filters} must have a number for each block")
        with self.name_scope():
            self.features = chain()
            for number, channels in zip(layers, filters):
                for _ in range(number):
                    self.features.add(_convolution(channels))
                    if batch_norm:
                        self.features.add(nn.BatchNorm())
                    self.features.add(nn.Activation("relu"))
                self.features.add(nn.MaxPool2D(strides=2))
            for _ in range(2):
                self.features.add(_dense(4096, activation="relu"), nn.Dropout(rate=0.5))
            self.output = _dense(classes)


def _convolution(channels: int) -> nn.Conv2D:
    init = Xavier(rnd_type="gaussian", factor_type="out", magnitude=2)
    return nn.Conv2D(channels, kernel_size=3, padding=1, weight_initializer=init, bias_initializer="zeros")


def _dense(units: int, activation: str | None = None) -> nn.Dense:
    return nn.Dense(units, activation=activation, weight_initializer="normal", bias_initializer="zeros")


def get_vgg(num_layers: int, pretrained: bool = False, ctx: Devices = None, root: PathLike | None = None, **kwargs: Any) -> VGG:
    """The VGG with `num_layers` layers that have weights: 11, 13, 16 or 19. **Args** as `vision.get_model`, and those of VGG."""
    if num_layers not in vgg_spec:
        raise UnknownNameError(f"get_vgg: num_layers={num_layers}; there are {', '.join(map(str, vgg_spec))}")
    net = VGG(*vgg_spec[num_layers], **kwargs)
    if pretrained:
        model_store.load_pretrained(net, f"vgg{num_layers}{'_bn' if kwargs.get('batch_norm') else ''}", ctx, root)
    return net


def vgg11(**kwargs: Any) -> VGG:
    """VGG of 11 layers, 132.9 million parameters."""
    return get_vgg(11, **kwargs)


def vgg13(**kwargs: Any) -> VGG:
    """VGG of 13 layers, 133.0 million parameters."""
    return get_vgg(13, **kwargs)


def vgg16(**kwargs: Any) -> VGG:
    """VGG of 16 layers, 138.4 million parameters."""
    return get_vgg(16, **kwargs)


def vgg19(**kwargs: Any) -> VGG:
    """VGG of 19 layers, 143.7 million parameters."""
    return get_vgg(19, **kwargs)


def vgg11_bn(**kwargs: Any) -> VGG:
    """VGG of 11 layers with batch normalization."""
    return get_vgg(11, **{**kwargs, "batch_norm": True})


def vgg13_bn(**kwargs: Any) -> VGG:
    """VGG of 13 layers with batch normalization."""
    return get_vgg(13, **{**kwargs, "batch_norm": True})


def vgg16_bn(**kwargs: Any) -> VGG:
    """VGG of 16 layers with batch normalization."""
    return get_vgg(16, **{**kwargs, "batch_norm": True})


def vgg19_bn(**kwargs: Any) -> VGG:
    """VGG of 19 layers with batch normalization."""
    return get_vgg(19, **{**kwargs, "batch_norm": True})
