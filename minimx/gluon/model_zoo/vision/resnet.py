"""ResNets: blocks of convolutions that learn what to add to their input, so that a hundred layers can be trained.

Version 1: He et al., "Deep Residual Learning for Image Recognition", https://arxiv.org/abs/1512.03385: relu after the sum. Version 2:
He et al., "Identity Mappings in Deep Residual Networks", https://arxiv.org/abs/1603.05027: normalization and relu before each convolution,
so that nothing stands in the way of the sums. Images (N, 3, 224, 224) become features (N, 512, 7, 7), with bottlenecks (N, 2048, 7, 7),
of which the mean is taken; smaller images will do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ....files import PathLike
from ... import nn
from ...block import HybridBlock
from ...weight import Devices, ParameterError
from .. import model_store
from .classifier import Classifier, chain

__all__ = [
    "ResNetV1", "ResNetV2", "BasicBlockV1", "BasicBlockV2", "BottleneckV1", "BottleneckV2", "resnet18_v1", "resnet34_v1", "resnet50_v1",
    "resnet101_v1", "resnet152_v1", "resnet18_v2", "resnet34_v2", "resnet50_v2", "resnet101_v2", "resnet152_v2", "get_resnet",
]  # fmt: skip

BlockClass: TypeAlias = "Callable[..., HybridBlock]"  # called with channels, stride, downsample and in_channels


def _conv3x3(channels: int, stride: int, in_channels: int) -> nn.Conv2D:
    return nn.Conv2D(channels, kernel_size=3, strides=stride, padding=1, use_bias=False, in_channels=in_channels)


def _conv1x1(channels: int, stride: int = 1, in_channels: int = 0, use_bias: bool = False) -> nn.Conv2D:
    return nn.Conv2D(channels, kernel_size=1, strides=stride, use_bias=use_bias, in_channels=in_channels)


class _BlockV1(HybridBlock):
    """`relu(body(x) + x)`; with `downsample` the shortcut has a convolution that gives x the shape of the sum."""

    def __init__(self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.body = self._make_body(channels, stride, in_channels)
        self.downsample = chain(_conv1x1(channels, stride, in_channels), nn.BatchNorm()) if downsample else None

    def _make_body(self, channels: int, stride: int, in_channels: int) -> nn.HybridSequential:
        raise NotImplementedError

    def _shortcut(self, x: Any) -> Any:
        return x if self.downsample is None else self.downsample(x)


class BasicBlockV1(_BlockV1):
    """Two convolutions of 3 x 3, for ResNet-18 and 34 of version 1.

    **Shapes** data (N, in_channels, H, W), result (N, channels, H / stride, W / stride). **Source** MXNet `BasicBlockV1`.
    """

    def _make_body(self, channels: int, stride: int, in_channels: int) -> nn.HybridSequential:
        return chain(
            _conv3x3(channels, stride, in_channels), nn.BatchNorm(), nn.Activation("relu"),
            _conv3x3(channels, 1, channels), nn.BatchNorm(),
        )  # fmt: skip

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        out = self.body(x)
        return F.Activation(self._shortcut(x) + out, act_type="relu")


class BottleneckV1(_BlockV1):
    """Convolutions of 1 x 1 to a quarter of the channels, 3 x 3, and 1 x 1, for ResNet-50 to 152 of version 1. **Shapes** as
    BasicBlockV1. **Source** MXNet `BottleneckV1`; its 1 x 1 convolutions have biases, and the first one has the stride.
    """

    def _make_body(self, channels: int, stride: int, in_channels: int) -> nn.HybridSequential:
        narrow = channels // 4
        return chain(
            _conv1x1(narrow, stride, use_bias=True), nn.BatchNorm(), nn.Activation("relu"),
            _conv3x3(narrow, 1, narrow), nn.BatchNorm(), nn.Activation("relu"),
            _conv1x1(channels, use_bias=True), nn.BatchNorm(),
        )  # fmt: skip

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        out = self.body(x)
        return F.Activation(out + self._shortcut(x), act_type="relu")


class BasicBlockV2(HybridBlock):
    """Two convolutions of 3 x 3, for ResNet-18 and 34 of version 2. **Shapes** as BasicBlockV1. **Source** MXNet `BasicBlockV2`."""

    def __init__(self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bn1 = nn.BatchNorm()
        self.conv1 = _conv3x3(channels, stride, in_channels)
        self.bn2 = nn.BatchNorm()
        self.conv2 = _conv3x3(channels, 1, channels)
        self.downsample = _conv1x1(channels, stride, in_channels) if downsample else None

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        residual = x
        x = F.Activation(self.bn1(x), act_type="relu")
        if self.downsample is not None:
            residual = self.downsample(x)
        x = self.conv1(x)
        x = self.conv2(F.Activation(self.bn2(x), act_type="relu"))
        return x + residual


class BottleneckV2(HybridBlock):
    """Convolutions of 1 x 1 to a quarter of the channels, 3 x 3, and 1 x 1, for ResNet-50 to 152 of version 2. **Shapes** as
    BasicBlockV1. **Source** MXNet `BottleneckV2`.
    """

    def __init__(self, channels: int, stride: int, downsample: bool = False, in_channels: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        narrow = channels // 4
        self.bn1 = nn.BatchNorm()
        self.conv1 = _conv1x1(narrow)
        self.bn2 = nn.BatchNorm()
        self.conv2 = _conv3x3(narrow, stride, narrow)
        self.bn3 = nn.BatchNorm()
        self.conv3 = _conv1x1(channels)
        self.downsample = _conv1x1(channels, stride, in_channels) if downsample else None

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        residual = x
        x = F.Activation(self.bn1(x), act_type="relu")
        if self.downsample is not None:
            residual = self.downsample(x)
        x = self.conv1(x)
        x = self.conv2(F.Activation(self.bn2(x), act_type="relu"))
        x = self.conv3(F.Activation(self.bn3(x), act_type="relu"))
        return x + residual


class _ResNet(Classifier):
    """What both versions share: all but the first and the last layers."""

    def __init__(
        self, block: BlockClass, layers: Sequence[int], channels: Sequence[int], classes: int = 1000, thumbnail: bool = False, **kwargs: Any
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        if len(layers) != len(channels) - 1:
            raise ParameterError(
                f"{type(self).__name__}: channels={channels} must be one more than layers={layers}: those before the first stage, too"
            )
        with self.name_scope():
            self.features = chain(*self._first_layers())
            if thumbnail:
                self.features.add(_conv3x3(channels[0], 1, 0))
            else:
                self.features.add(
                    nn.Conv2D(channels[0], 7, 2, 3, use_bias=False), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(3, 2, 1)
                )
            for number, (count, before, width) in enumerate(zip(layers, channels, channels[1:]), start=1):
                stage = nn.HybridSequential(prefix=f"stage{number}_")
                with stage.name_scope():
                    stage.add(block(width, 1 if number == 1 else 2, width != before, in_channels=before, prefix=""))
                    stage.add(*(block(width, 1, False, in_channels=width, prefix="") for _ in range(count - 1)))
                self.features.add(stage)
            self.features.add(*self._last_layers())
            self.output = nn.Dense(classes, in_units=channels[-1])

    def _first_layers(self) -> list[HybridBlock]:
        raise NotImplementedError

    def _last_layers(self) -> list[HybridBlock]:
        raise NotImplementedError


class ResNetV1(_ResNet):
    """A ResNet of version 1. **Shapes** data (N, 3, H, W), result (N, classes).

    **Args** `block`: the class of its blocks, BasicBlockV1 or BottleneckV1. `layers`: blocks of each stage. `channels`: those before the
    first stage, and those of each. `thumbnail`: for small images, begin with a convolution of 3 x 3 alone. **Source** MXNet `ResNetV1`.
    """

    def _first_layers(self) -> list[HybridBlock]:
        return []

    def _last_layers(self) -> list[HybridBlock]:
        return [nn.GlobalAvgPool2D()]


class ResNetV2(_ResNet):
    """A ResNet of version 2. **Shapes** and **Args** as ResNetV1, with BasicBlockV2 or BottleneckV2. **Source** MXNet `ResNetV2`."""

    def _first_layers(self) -> list[HybridBlock]:
        return [nn.BatchNorm(scale=False, center=False)]

    def _last_layers(self) -> list[HybridBlock]:
        return [nn.BatchNorm(), nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Flatten()]


#: By the number of layers with weights: the kind of block, the blocks of each stage, and their channels.
resnet_spec = {
    18: ("basic_block", [2, 2, 2, 2], [64, 64, 128, 256, 512]),
    34: ("basic_block", [3, 4, 6, 3], [64, 64, 128, 256, 512]),
    50: ("bottle_neck", [3, 4, 6, 3], [64, 256, 512, 1024, 2048]),
    101: ("bottle_neck", [3, 4, 23, 3], [64, 256, 512, 1024, 2048]),
    152: ("bottle_neck", [3, 8, 36, 3], [64, 256, 512, 1024, 2048]),
}
resnet_net_versions: list[type[ResNetV1] | type[ResNetV2]] = [ResNetV1, ResNetV2]
resnet_block_versions: list[dict[str, BlockClass]] = [
    {"basic_block": BasicBlockV1, "bottle_neck": BottleneckV1},
    {"basic_block": BasicBlockV2, "bottle_neck": BottleneckV2},
]


def get_resnet(
    version: int, num_layers: int, pretrained: bool = False, ctx: Devices = None, root: PathLike | None = None, **kwargs: Any
) -> Any:
    """The ResNet of version 1 or 2 with `num_layers` layers: 18, 34, 50, 101 or 152. **Args** as `vision.get_model`, and those of ResNetV1.

    **Raises** AssertionError for another version or number.
    """
    if num_layers not in resnet_spec:
        raise ParameterError(f"Invalid number of layers: {num_layers}. Options are {', '.join(map(str, resnet_spec))}")
    if version not in (1, 2):
        raise ParameterError(f"Invalid resnet version: {version}. Options are 1 and 2.")
    kind, layers, channels = resnet_spec[num_layers]
    net = resnet_net_versions[version - 1](resnet_block_versions[version - 1][kind], layers, channels, **kwargs)
    if pretrained:
        model_store.load_pretrained(net, f"resnet{num_layers}_v{version}", ctx, root)
    return net


def resnet18_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-18 of version 1, 11.7 million parameters."""
    return get_resnet(1, 18, **kwargs)


def resnet34_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-34 of version 1, 21.8 million parameters."""
    return get_resnet(1, 34, **kwargs)


def resnet50_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-50 of version 1, 25.6 million parameters."""
    return get_resnet(1, 50, **kwargs)


def resnet101_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-101 of version 1, 44.7 million parameters."""
    return get_resnet(1, 101, **kwargs)


def resnet152_v1(**kwargs: Any) -> ResNetV1:
    """ResNet-152 of version 1, 60.4 million parameters."""
    return get_resnet(1, 152, **kwargs)


def resnet18_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-18 of version 2, 11.7 million parameters."""
    return get_resnet(2, 18, **kwargs)


def resnet34_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-34 of version 2, 21.8 million parameters."""
    return get_resnet(2, 34, **kwargs)


def resnet50_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-50 of version 2, 25.6 million parameters."""
    return get_resnet(2, 50, **kwargs)


def resnet101_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-101 of version 2, 44.6 million parameters."""
    return get_resnet(2, 101, **kwargs)


def resnet152_v2(**kwargs: Any) -> ResNetV2:
    """ResNet-152 of version 2, 60.4 million parameters."""
    return get_resnet(2, 152, **kwargs)
