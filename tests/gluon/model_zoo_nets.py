"""Networks of the zoo for test_model_zoo_fixtures.py, made and filled in the same way by MXNet 1.9.1 (tests/record_model_zoo.py) and by
minimx.

Those in SMALL are narrow ones, whose files of parameters are in tests/data/model_zoo. Those in LARGE cannot be narrow; of them there is the
graph only, and their parameters are filled by the rule that `fill` is.
"""

import zlib

import numpy as np

#: What makes each network from `vision`, and the side of its images.
SMALL = {
    "densenet": (lambda vision, **how: vision.DenseNet(8, 4, [2, 3], **how), 64),
    "mobilenet": (lambda vision, **how: vision.MobileNet(0.125, **how), 40),
    "mobilenetv2": (lambda vision, **how: vision.MobileNetV2(0.125, **how), 40),
    "resnet_v1": (lambda vision, **how: vision.ResNetV1(vision.BasicBlockV1, [1, 1], [8, 8, 16], **how), 40),
    "resnet_v1_bottleneck": (lambda vision, **how: vision.ResNetV1(vision.BottleneckV1, [1, 1], [8, 16, 32], **how), 40),
    "resnet_v2": (lambda vision, **how: vision.ResNetV2(vision.BasicBlockV2, [1, 1], [8, 8, 16], **how), 40),
    "resnet_v2_bottleneck": (lambda vision, **how: vision.ResNetV2(vision.BottleneckV2, [1, 1], [8, 16, 32], **how), 40),
}
LARGE = {
    "alexnet": (lambda vision, **how: vision.alexnet(**how), 63),
    "inceptionv3": (lambda vision, **how: vision.inception_v3(**how), 299),
    "squeezenet1.0": (lambda vision, **how: vision.squeezenet1_0(**how), 224),
    "squeezenet1.1": (lambda vision, **how: vision.squeezenet1_1(**how), 209),
    "vgg": (lambda vision, **how: vision.VGG([1, 1, 1, 1, 1], [8, 8, 16, 16, 16], **how), 32),
    "vgg_bn": (lambda vision, **how: vision.VGG([1, 1, 1, 1, 1], [8, 8, 16, 16, 16], batch_norm=True, **how), 32),
}


def made(mx, name):
    """The network, with ten classes and the prefix `net_`, hybridized, its parameters filled; and an image."""
    make, side = {**SMALL, **LARGE}[name]
    net = make(mx.gluon.model_zoo.vision, classes=10, prefix="net_")
    net.initialize()
    net.hybridize()
    image = mx.nd.array(np.random.RandomState(len(name)).random_sample((1, 3, side, side)) - 0.5)
    net(image)
    fill(mx, net)
    return net, image


def fill(mx, net):
    """Give each parameter values that its name decides: of a size that keeps the numbers between the layers near 1."""
    for place, param in net._collect_params_with_prefix().items():
        random = np.random.RandomState(zlib.crc32(place.encode()))
        value = random.random_sample(param.shape) - 0.5
        if place.endswith("weight"):
            value *= np.sqrt(24 / np.prod(param.shape[1:]))
        elif place.endswith(("gamma", "var")):
            value += 1
        param.set_data(mx.nd.array(value))
