"""`gluon.model_zoo.vision`: networks that classify images, a family a file.

All take images (N, 3, H, W), RGB, divided by 255 and normalized with the means (0.485, 0.456, 0.406) and the standard deviations
(0.229, 0.224, 0.225), of 224 x 224 pixels (Inception: 299 x 299), and return scores (N, classes). The layers, their names and the shapes
of parameters are those of MXNet 1.9.1, so that each reads the files that the other wrote.

>>> from minimx.gluon.model_zoo import vision
>>> net = vision.resnet18_v1(classes=10, thumbnail=True)
>>> net.initialize()
>>> net(mx.nd.ones((1, 3, 32, 32))).shape
(1, 10)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....base import UnknownNameError
from .alexnet import AlexNet, alexnet
from .classifier import Classifier
from .densenet import DenseNet, densenet121, densenet161, densenet169, densenet201
from .inception import Inception3, inception_v3
from .mobilenet import (  # fmt: skip
    MobileNet,
    MobileNetV2,
    get_mobilenet,
    get_mobilenet_v2,
    mobilenet0_5,
    mobilenet0_25,
    mobilenet0_75,
    mobilenet1_0,
    mobilenet_v2_0_5,
    mobilenet_v2_0_25,
    mobilenet_v2_0_75,
    mobilenet_v2_1_0,
)
from .resnet import (  # fmt: skip
    BasicBlockV1,
    BasicBlockV2,
    BottleneckV1,
    BottleneckV2,
    ResNetV1,
    ResNetV2,
    get_resnet,
    resnet18_v1,
    resnet18_v2,
    resnet34_v1,
    resnet34_v2,
    resnet50_v1,
    resnet50_v2,
    resnet101_v1,
    resnet101_v2,
    resnet152_v1,
    resnet152_v2,
)
from .squeezenet import SqueezeNet, squeezenet1_0, squeezenet1_1
from .vgg import VGG, get_vgg, vgg11, vgg11_bn, vgg13, vgg13_bn, vgg16, vgg16_bn, vgg19, vgg19_bn

__all__ = [
    "AlexNet", "BasicBlockV1", "BasicBlockV2", "BottleneckV1", "BottleneckV2", "DenseNet", "Inception3", "MobileNet", "MobileNetV2",
    "ResNetV1", "ResNetV2", "SqueezeNet", "VGG", "alexnet", "densenet121", "densenet161", "densenet169", "densenet201", "get_mobilenet",
    "get_mobilenet_v2", "get_model", "get_resnet", "get_vgg", "inception_v3", "mobilenet0_25", "mobilenet0_5", "mobilenet0_75",
    "mobilenet1_0", "mobilenet_v2_0_25", "mobilenet_v2_0_5", "mobilenet_v2_0_75", "mobilenet_v2_1_0", "resnet101_v1", "resnet101_v2",
    "resnet152_v1", "resnet152_v2", "resnet18_v1", "resnet18_v2", "resnet34_v1", "resnet34_v2", "resnet50_v1", "resnet50_v2",
    "squeezenet1_0", "squeezenet1_1", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn",
]  # fmt: skip

#: By the names of their files of parameters.
_MODELS: dict[str, Callable[..., Classifier]] = {
    "alexnet": alexnet, "inceptionv3": inception_v3, "squeezenet1.0": squeezenet1_0, "squeezenet1.1": squeezenet1_1,
    "densenet121": densenet121, "densenet161": densenet161, "densenet169": densenet169, "densenet201": densenet201,
    "mobilenet1.0": mobilenet1_0, "mobilenet0.75": mobilenet0_75, "mobilenet0.5": mobilenet0_5, "mobilenet0.25": mobilenet0_25,
    "mobilenetv2_1.0": mobilenet_v2_1_0, "mobilenetv2_0.75": mobilenet_v2_0_75, "mobilenetv2_0.5": mobilenet_v2_0_5,
    "mobilenetv2_0.25": mobilenet_v2_0_25,
    "resnet18_v1": resnet18_v1, "resnet34_v1": resnet34_v1, "resnet50_v1": resnet50_v1, "resnet101_v1": resnet101_v1,
    "resnet152_v1": resnet152_v1,
    "resnet18_v2": resnet18_v2, "resnet34_v2": resnet34_v2, "resnet50_v2": resnet50_v2, "resnet101_v2": resnet101_v2,
    "resnet152_v2": resnet152_v2,
    "vgg11": vgg11, "vgg13": vgg13, "vgg16": vgg16, "vgg19": vgg19,
    "vgg11_bn": vgg11_bn, "vgg13_bn": vgg13_bn, "vgg16_bn": vgg16_bn, "vgg19_bn": vgg19_bn,
}  # fmt: skip


def get_model(name: str, **kwargs: Any) -> Classifier:
    """The network called `name`, such as "resnet50_v1".

    **Args** `classes`: of the output, 1000 by default. `pretrained`: load trained parameters from a file in the folder `root`,
    `$MXNET_HOME/models` by default; `ctx`: onto which devices. Others, such as `prefix`, go to the network's class. **Raises** ValueError
    for an unknown name; with `pretrained` MissingFileError or FileFormatError, see `model_store.get_model_file`. **Source** MXNet
    `get_model`.
    """
    if name.lower() not in _MODELS:
        known = "\n\t".join(sorted(_MODELS))
        raise UnknownNameError(f"Model {name.lower()} is not supported. Available options are\n\t{known}")
    return _MODELS[name.lower()](**kwargs)
