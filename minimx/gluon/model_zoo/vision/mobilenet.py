"""MobileNets: a convolution over each channel alone, and one over all channels of a pixel, in the place of one that is both.

Version 1: Howard et al., "MobileNets: Efficient Convolutional Neural Networks for Mobile Vision Applications",
https://arxiv.org/abs/1704.04861. Version 2 widens the channels between two narrow ends, which a shortcut joins: Sandler et al.,
"Inverted Residuals and Linear Bottlenecks", https://arxiv.org/abs/1801.04381. A multiplier makes all layers narrower. Images
(N, 3, 224, 224) become features (N, 1024 multiplier, 7, 7), in version 2 (N, 1280, 7, 7), of which the mean is taken; smaller images
will do.
"""

from __future__ import annotations

from typing import Any

from ....files import PathLike
from ... import nn
from ...block import HybridBlock
from ...weight import Devices
from .. import model_store
from .classifier import Classifier, chain

__all__ = [
    "MobileNet", "MobileNetV2", "mobilenet1_0", "mobilenet_v2_1_0", "mobilenet0_75", "mobilenet_v2_0_75", "mobilenet0_5",
    "mobilenet_v2_0_5", "mobilenet0_25", "mobilenet_v2_0_25", "get_mobilenet", "get_mobilenet_v2",
]  # fmt: skip

#: Version 1: channels and stride of each pair of convolutions.
_PAIRS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1)]

#: Version 2, as the paper's table 2 has it: expansion, channels, how many, and the stride of the first.
_BOTTLENECKS = [
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
]  # fmt: skip


class RELU6(HybridBlock):
    """A relu that ends at 6: `min(max(x, 0), 6)`. **Source** MXNet `RELU6`."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.clip(x, 0, 6, name="relu6")


class LinearBottleneck(HybridBlock):
    """Three convolutions: `t` times as many channels, a window over each, few channels again; the input is added if shapes allow.

    **Shapes** data (N, in_channels, H, W), result (N, channels, H / stride, W / stride). **Source** MXNet `LinearBottleneck`.
    """

    def __init__(self, in_channels: int, channels: int, t: int, stride: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_shortcut = stride == 1 and in_channels == channels
        wide = in_channels * t
        with self.name_scope():
            self.out = nn.HybridSequential()
            self.out.add(
                *_convolution(wide), RELU6(), *_convolution(wide, 3, stride, groups=wide), RELU6(), *_convolution(channels)
            )

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        out = self.out(x)
        return F.elemwise_add(out, x) if self.use_shortcut else out


class MobileNet(Classifier):
    """A MobileNet of version 1. **Shapes** data (N, 3, H, W), result (N, classes).

    **Args** `multiplier`: of all numbers of channels, from 0.25. **Source** MXNet `MobileNet`.
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        width = int(32 * multiplier)
        with self.name_scope():
            self.features = chain(*_convolution(width, 3, 2), nn.Activation("relu"))
            for channels, stride in _PAIRS:
                self.features.add(*_convolution(width, 3, stride, groups=width), nn.Activation("relu"))
                width = int(channels * multiplier)
                self.features.add(*_convolution(width), nn.Activation("relu"))
            self.features.add(nn.GlobalAvgPool2D(), nn.Flatten())
            self.output = nn.Dense(classes)


class MobileNetV2(Classifier):
    """A MobileNet of version 2. **Shapes** data (N, 3, H, W), result (N, classes).

    **Args** `multiplier`: of all numbers of channels; the last one is not made less than 1280. **Source** MXNet `MobileNetV2`.
    """

    def __init__(self, multiplier: float = 1.0, classes: int = 1000, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        width = int(32 * multiplier)
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="features_")
            with self.features.name_scope():
                self.features.add(*_convolution(width, 3, 2), RELU6())
                for expansion, channels, number, first_stride in _BOTTLENECKS:
                    for stride in [first_stride, *[1] * (number - 1)]:
                        narrow = int(channels * multiplier)
                        self.features.add(LinearBottleneck(width, narrow, expansion, stride))
                        width = narrow
                self.features.add(*_convolution(int(1280 * max(multiplier, 1.0))), RELU6(), nn.GlobalAvgPool2D())
            self.output = nn.HybridSequential(prefix="output_")
            with self.output.name_scope():
                self.output.add(nn.Conv2D(classes, 1, use_bias=False, prefix="pred_"), nn.Flatten())


def _convolution(channels: int, window: int = 1, stride: int = 1, groups: int = 1) -> tuple[nn.Conv2D, nn.BatchNorm]:
    """A convolution that leaves the image its size, up to the stride, and batch normalization."""
    return nn.Conv2D(channels, window, stride, window // 2, groups=groups, use_bias=False), nn.BatchNorm(scale=True)


def get_mobilenet(
    multiplier: float, pretrained: bool = False, ctx: Devices = None, root: PathLike | None = None, **kwargs: Any
) -> MobileNet:
    """The MobileNet of version 1 with this multiplier; there are trained ones for 1, 0.75, 0.5 and 0.25. **Args** as `vision.get_model`."""
    net = MobileNet(multiplier, **kwargs)
    if pretrained:
        model_store.load_pretrained(net, f"mobilenet{_in_name(multiplier)}", ctx, root)
    return net


def get_mobilenet_v2(
    multiplier: float, pretrained: bool = False, ctx: Devices = None, root: PathLike | None = None, **kwargs: Any
) -> MobileNetV2:
    """The MobileNet of version 2 with this multiplier; there are trained ones for 1, 0.75, 0.5 and 0.25. **Args** as `vision.get_model`."""
    net = MobileNetV2(multiplier, **kwargs)
    if pretrained:
        model_store.load_pretrained(net, f"mobilenetv2_{_in_name(multiplier)}", ctx, root)
    return net


def _in_name(multiplier: float) -> str:
    """1.0, 0.75, 0.5, 0.25."""
    text = f"{multiplier:.2f}"
    return text[:-1] if text in ("1.00", "0.50") else text


def mobilenet1_0(**kwargs: Any) -> MobileNet:
    """MobileNet 1.0, 4.3 million parameters."""
    return get_mobilenet(1.0, **kwargs)


def mobilenet0_75(**kwargs: Any) -> MobileNet:
    """MobileNet 0.75, 2.6 million parameters."""
    return get_mobilenet(0.75, **kwargs)


def mobilenet0_5(**kwargs: Any) -> MobileNet:
    """MobileNet 0.5, 1.3 million parameters."""
    return get_mobilenet(0.5, **kwargs)


def mobilenet0_25(**kwargs: Any) -> MobileNet:
    """MobileNet 0.25, 0.5 million parameters."""
    return get_mobilenet(0.25, **kwargs)


def mobilenet_v2_1_0(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2 1.0, 3.5 million parameters."""
    return get_mobilenet_v2(1.0, **kwargs)


def mobilenet_v2_0_75(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2 0.75, 2.7 million parameters."""
    return get_mobilenet_v2(0.75, **kwargs)


def mobilenet_v2_0_5(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2 0.5, 2.0 million parameters."""
    return get_mobilenet_v2(0.5, **kwargs)


def mobilenet_v2_0_25(**kwargs: Any) -> MobileNetV2:
    """MobileNet v2 0.25, 1.5 million parameters."""
    return get_mobilenet_v2(0.25, **kwargs)
