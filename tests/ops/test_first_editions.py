"""The first editions of layers in graphs: names, auxiliary states, and the values that MXNet 1.9.1 gives."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import kernels, nd
from minimx.onnx import graph
from minimx.op import find
from minimx.sym.backends import onednn

DATA = np.array([[1, 2], [3, 5], [5, 2]], np.float32)


def test_batch_norm_in_a_graph() -> None:
    symbol = mx.sym.BatchNorm_v1(mx.sym.var("x"), output_mean_var=True, fix_gamma=False, momentum=0.5, name="bn")
    assert symbol.list_arguments() == ["x", "bn_gamma", "bn_beta"]
    assert symbol.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert symbol.list_outputs() == ["bn_output", "bn_mean", "bn_var"]
    executor = symbol.simple_bind(mx.cpu(), x=(3, 2))
    executor.copy_params_from({"bn_gamma": nd.array([1, 2]), "bn_beta": nd.array([0, 1])}, {"bn_moving_var": nd.ones((2,))})
    output, mean, variance = executor.forward(is_train=True, x=nd.array(DATA))
    executor.backward([nd.array([[1, 0], [0, 0], [0, 1]]), nd.zeros((2,)), nd.zeros((2,))])
    standard = (DATA - DATA.mean(axis=0)) / np.sqrt(DATA.var(axis=0) + 1e-3)
    np.testing.assert_allclose(output.asnumpy(), standard * [1, 2] + [0, 1], rtol=1e-5)
    np.testing.assert_allclose(mean.asnumpy(), [3, 3], rtol=1e-6)
    np.testing.assert_allclose(variance.asnumpy(), [8 / 3, 2], rtol=1e-5)
    np.testing.assert_allclose(executor.aux_dict["bn_moving_mean"].asnumpy(), [1.5, 1.5], rtol=1e-6)
    np.testing.assert_allclose(executor.aux_dict["bn_moving_var"].asnumpy(), [0.5 + 4 / 3, 1.5], rtol=1e-5)
    np.testing.assert_allclose(executor.grad_dict["bn_gamma"].asnumpy(), [standard[0, 0], standard[2, 1]], rtol=1e-5)


def test_old_files_are_read() -> None:
    convolved = mx.sym.Convolution_v1(mx.sym.var("x"), kernel=(3, 3), num_filter=2, name="conv")
    text = mx.sym.Pooling_v1(mx.sym.BatchNorm_v1(convolved, name="bn"), (2, 2), name="pool").tojson()
    assert [node["op"] for node in json.loads(text)["nodes"] if node["op"] != "null"] == [
        "Convolution_v1", "BatchNorm_v1", "Pooling_v1",
    ]  # fmt: skip
    again = mx.sym.load_json(text)
    names = [name for name in again.get_internals().list_outputs() if name.endswith("_output")]
    assert names == ["conv_output", "bn_output", "pool_output"]
    assert again.tojson() == text


def test_convolution_is_as_fast_as_todays() -> None:
    """It has the same kernels and the same place in backends, and ONNX has no other word for it."""
    old, new = find("Convolution_v1"), find("Convolution")
    for table in (kernels.ONEDNN, graph.CONVERTERS, dict.fromkeys(onednn.TAKEN), dict.fromkeys(onednn.WORTH)):
        assert table[old.name] is table[new.name]
    x, w = nd.random.normal(shape=(2, 8, 12, 12)), nd.random.normal(shape=(4, 8, 3, 3))
    found = [F(x, w, kernel=(3, 3), num_filter=4, no_bias=True).asnumpy() for F in (nd.Convolution_v1, nd.Convolution)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    # Recorded: windows of 2 x 2 that move by 2, one row and column of zeros around [[-1, -2, -3], [-4, -5, -6]], lengths rounded up.
    [
        ("max", [[0, 0, 0], [0, 0, 0]]),
        ("sum", [[-1, -5, 0], [-4, -11, 0]]),
        ("avg", [[-0.25, -1.25, 0], [-1, -2.75, 0]]),
    ],
)
def test_zeros_around_count(kind: str, wanted: Any) -> None:
    data = -nd.arange(1, 7).reshape((1, 1, 2, 3))
    result = nd.Pooling_v1(data, (2, 2), kind, stride=(2, 2), pad=(1, 1), pooling_convention="full")
    np.testing.assert_allclose(result.asnumpy()[0, 0], wanted)
