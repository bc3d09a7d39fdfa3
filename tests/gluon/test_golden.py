"""Networks that MXNet 1.9.1 made, exported, ran and differentiated: the same values here, and the same files, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, nd
from minimx.gluon import nn
from minimx.name import NameManager
from minimx.op import REGISTRY

TESTS = Path(__file__).parents[1]
GRAPHS = TESTS / "sym" / "golden"  # written by MXNet, as is what is in DATA
DATA = TESTS / "data" / "mxnet-1.9.1"


class Residual(gluon.HybridBlock):
    def __init__(self, channels, strides=1, project=False, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.conv1 = nn.Conv2D(channels, 3, strides, 1, use_bias=False)
            self.bn1 = nn.BatchNorm()
            self.conv2 = nn.Conv2D(channels, 3, 1, 1)
            self.bn2 = nn.BatchNorm()
            self.proj = nn.Conv2D(channels, 1, strides) if project else None

    def hybrid_forward(self, F, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (self.proj(x) if self.proj is not None else x))


def sequence(*blocks):
    net = nn.HybridSequential()
    net.add(*blocks)
    return net


def networks():
    """The networks, made in the order in which MXNet made them: their names are counted."""
    with NameManager():
        return {
            "mlp": sequence(nn.Dense(8, activation="relu"), nn.Dense(4, activation="sigmoid"), nn.Dense(2)),
            "lenet": sequence(
                nn.Conv2D(6, 5, padding=2, activation="sigmoid"), nn.AvgPool2D(2, 2), nn.Conv2D(16, 5, activation="relu"),
                nn.MaxPool2D(3, 2, ceil_mode=True), nn.Flatten(), nn.Dense(12, activation="tanh"), nn.Dropout(0), nn.Dense(10),
            ),
            "resnet": sequence(
                nn.Conv2D(8, 3, 1, 1, use_bias=False), nn.BatchNorm(), nn.Activation("relu"), Residual(8), Residual(16, 2, True),
                nn.GlobalAvgPool2D(), nn.Dense(5),
            ),
        }  # fmt: skip


NAMES = ["mlp", "lenet", "resnet", "words"]


def recorded(name):
    """Input, outputs in inference and in training, and gradients by parameter."""
    found = np.load(DATA / f"{name}.npz")
    gradients = {key.removeprefix("grad:"): found[key] for key in found if key.startswith("grad:")}
    return nd.array(found["x0"]), found["y0"], found["t0"], gradients


def imported(name, **kwargs):
    graph = GRAPHS / f"{name}-symbol.json"
    absent = {node["op"] for node in json.loads(graph.read_text())["nodes"]} - REGISTRY.keys() - {"null"}
    if absent:
        pytest.skip(f"without {', '.join(sorted(absent))}")
    return gluon.SymbolBlock.imports(graph, "data", DATA / f"{name}-0000.params", **kwargs)


def assert_close(got, wanted, tolerance=1e-5):
    """To within `tolerance` of the largest value: sums of the same numbers in another order."""
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got.asnumpy(), wanted, rtol=0, atol=tolerance * max(1e-6, np.abs(wanted).max()))


def gradients_of(net, x):
    with autograd.record():
        y = net(x)
        loss = (y**2).sum()
    loss.backward()
    return y


#: Biases before a BatchNorm: the gradient is 0, and what was recorded is rounding (MXNet itself gives other digits elsewhere).
NOISE = ("residual0_conv1_bias", "residual1_conv1_bias")


@pytest.mark.parametrize("flags", [None, {}, {"static_alloc": True, "static_shape": True}])
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients_of_mxnets_files(name, flags):
    net = imported(name)
    if flags is not None:
        net.hybridize(**flags)
    x, inference, training, gradients = recorded(name)
    assert_close(net(x), inference)
    for param in net.collect_params().values():
        if "running" in param.name:
            param.grad_req = "null"
    for _ in range(2):
        assert_close(gradients_of(net, x), training)
        for key, wanted in gradients.items():
            got = net.collect_params()[key].grad()
            if key in NOISE:
                assert np.abs(got.asnumpy()).max() < 1e-4
                continue
            assert_close(got, wanted, 1e-4)


@pytest.mark.parametrize("name", NAMES[:3])
def test_our_layers_export_mxnets_files_byte_for_byte(name, tmp_path):
    net = networks()[name]
    net.initialize()
    net.hybridize()
    x, inference, training, gradients = recorded(name)
    net(x)
    net.load_parameters(str(DATA / f"{name}.params"))
    assert_close(net(x), inference)
    files = net.export(str(tmp_path / "net"))
    assert files == (str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0000.params"))
    # MXNet counts how often graphs have been made that write to a running mean. There it was the second one.
    wanted = (GRAPHS / f"{name}-symbol.json").read_text().replace(", 0, 2]", ", 0, 1]")
    assert (tmp_path / "net-symbol.json").read_text() == wanted
    assert (tmp_path / "net-0000.params").read_bytes() == (DATA / f"{name}-0000.params").read_bytes()
    net.save_parameters(str(tmp_path / "places.params"))
    assert (tmp_path / "places.params").read_bytes() == (DATA / f"{name}.params").read_bytes()
    assert_close(gradients_of(net, x), training)
    for key, wanted in gradients.items():
        if key not in NOISE:
            assert_close(net.collect_params()[key].grad(), wanted, 1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_imported_is_exported_again(name, tmp_path):
    net = imported(name)
    net.hybridize()
    x, inference, _, _ = recorded(name)
    net(x)
    net.export(str(tmp_path / "net"))
    assert (tmp_path / "net-symbol.json").read_text() == (GRAPHS / f"{name}-symbol.json").read_text()
    before, after = mx.nd.load(str(DATA / f"{name}-0000.params")), mx.nd.load(str(tmp_path / "net-0000.params"))
    assert list(before) == list(after)
    for key, array in before.items():
        np.testing.assert_array_equal(after[key].asnumpy(), array.asnumpy())
    again = gluon.SymbolBlock.imports(tmp_path / "net-symbol.json", ["data"], tmp_path / "net-0000.params")
    assert_close(again(x), inference)
