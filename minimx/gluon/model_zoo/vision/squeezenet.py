"""SqueezeNet: a "fire" module makes few channels of many before it looks at 3 x 3 windows, which saves parameters.

Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and <0.5MB model size", https://arxiv.org/abs/1602.07360;
version 1.1, which computes less than half, https://github.com/DeepScale/SqueezeNet/tree/master/SqueezeNet_v1.1. Images (N, 3, 224, 224)
become scores (N, classes, 13, 13), of which the mean is taken; images may have from 213 to 420 pixels a side.
"""

from __future__ import annotations

from typing import Any

from ....files import PathLike
from ... import nn
from ...weight import Devices, ParameterError
from .. import model_store
from .classifier import Classifier, branches, chain

__all__ = ["SqueezeNet", "squeezenet1_0", "squeezenet1_1"]

#: By version: channels and window of the first convolution; then the widths of the fire modules, with 0 for a pooling layer.
_LAYERS = {
    "1.0": ((96, 7), (0, 16, 16, 32, 0, 32, 48, 48, 64, 0, 64)),
    "1.1": ((64, 3), (0, 16, 16, 0, 32, 32, 0, 48, 48, 64, 64)),
}


class SqueezeNet(Classifier):
    """A SqueezeNet. **Shapes** data (N, 3, H, W), result (N, classes). **Args** `version`: "1.0" or "1.1".

    **Source** MXNet `SqueezeNet`.
    """

    def __init__(self, version: str, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if version not in _LAYERS:
            raise ParameterError(f"Unsupported SqueezeNet version {version}: 1.0 or 1.1 expected")
        (channels, window), widths = _LAYERS[version]
        with self.name_scope():
            self.features = chain(*_convolution(channels, window, strides=2))
            for width in widths:
                self.features.add(_fire(width) if width else nn.MaxPool2D(pool_size=3, strides=2, ceil_mode=True))
            self.features.add(nn.Dropout(0.5))
            self.output = chain(*_convolution(classes, 1), nn.AvgPool2D(13), nn.Flatten())


def _convolution(channels: int, window: int, strides: int = 1, padding: int = 0) -> tuple[nn.Conv2D, nn.Activation]:
    return nn.Conv2D(channels, window, strides, padding), nn.Activation("relu")


def _fire(width: int) -> nn.HybridSequential:
    """`width` channels, and of these, by small and by larger windows, four times as many each."""
    return chain(
        chain(*_convolution(width, 1)),
        branches(chain(*_convolution(4 * width, 1)), chain(*_convolution(4 * width, 3, padding=1))),
    )


def get_squeezenet(
    version: str, pretrained: bool = False, ctx: Devices = None, root: PathLike | None = None, **kwargs: Any
) -> SqueezeNet:
    """The SqueezeNet of this version, "1.0" or "1.1". **Args** as `vision.get_model`."""
    net = SqueezeNet(version, **kwargs)
    if pretrained:
        model_store.load_pretrained(net, f"squeezenet{version}", ctx, root)
    return net


def squeezenet1_0(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.0, 1.2 million parameters."""
    return get_squeezenet("1.0", **kwargs)


def squeezenet1_1(**kwargs: Any) -> SqueezeNet:
    """SqueezeNet 1.1, 1.2 million parameters."""
    return get_squeezenet("1.1", **kwargs)
