"""The families of the model zoo as ONNX files, with batches of any length: their numbers in ONNX Runtime, and when they are read back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minimx import gluon, init, nd
from minimx.contrib import onnx as reading
from minimx.gluon.model_zoo import vision

from .support import exported, session

#: One of each family, with the smallest pictures that it takes.
FAMILIES = {
    "alexnet": 64, "densenet121": 224, "inceptionv3": 299, "mobilenet0.25": 32, "mobilenetv2_0.25": 32, "resnet18_v1": 32,
    "resnet18_v2": 32, "squeezenet1.1": 224, "vgg11_bn": 32,
}  # fmt: skip


def scaled(net: gluon.HybridBlock) -> None:
    """Weights with which values neither vanish nor explode on their way through many layers."""
    rng = np.random.default_rng(0)
    for name, param in net.collect_params().items():
        if name.endswith("weight"):
            fan = int(np.prod(param.shape[1:]))
            param.set_data(nd.array(rng.standard_normal(param.shape, "float32") * np.float32((2 / fan) ** 0.5)))


@pytest.mark.timeout(240)  # initializing and running the large ones takes most of it, on a busy machine
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "inceptionv3" else name for name in FAMILIES]
)
def test_family(name: str, tmp_path: Any) -> None:
    net = vision.get_model(name, classes=10)
    net.initialize(init.Zero())
    x = nd.array(np.random.default_rng(0).standard_normal((1, 3, FAMILIES[name], FAMILIES[name]), "float32"))
    net(x)
    scaled(net)
    expected = net(x).asnumpy()
    assert np.abs(expected).max() > 1e-3
    path = exported(net, [x], tmp_path, dynamic=True, dynamic_input_shapes=[("n", *x.shape[1:])])
    running = session(path)
    assert running.get_inputs()[0].shape == ["n", *x.shape[1:]]
    assert running.get_outputs()[0].shape == ["n", 10]
    twice = np.concatenate([x.asnumpy(), x.asnumpy()])
    [got] = running.run(None, {"data": twice})
    scale = np.abs(expected).max()
    np.testing.assert_allclose(got, np.concatenate([expected, expected]), rtol=1e-4, atol=1e-4 * scale)
    again = reading.import_to_gluon(path)
    np.testing.assert_allclose(again(x).asnumpy(), expected, rtol=1e-4, atol=1e-4 * scale)
