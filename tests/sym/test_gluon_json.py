"""The JSON of Gluon's layers: operators, names and attributes are those that MXNet 1.9.1 writes for the same layer."""

from __future__ import annotations

import json
from typing import Any

import pytest

import minimx as mx
from minimx.gluon import contrib, nn
from minimx.gluon.nn import HybridConcurrent
from minimx.name import NameManager

#: The call, and for each node of an operator what MXNet writes: operator, name, attributes.
LAYERS: dict[str, list[tuple[str, str, dict[str, str]]]] = {
    "nn.Dense(4)": [
        ("FullyConnected", "dense0_fwd", {"flatten": "True", "no_bias": "False", "num_hidden": "4"}),
    ],
    'nn.Dense(4, activation="relu", use_bias=False, flatten=False, in_units=3)': [
        ("FullyConnected", "dense0_fwd", {"flatten": "False", "no_bias": "True", "num_hidden": "4"}),
        ("Activation", "dense0_relu_fwd", {"act_type": "relu"}),
    ],
    "nn.Dropout(0.5)": [
        ("Dropout", "dropout0_fwd", {"axes": "()", "cudnn_off": "False", "p": "0.5"}),
    ],
    "nn.Dropout(0)": [
        ("_copy", "dropout0_identity0", {}),
    ],
    "nn.Dropout(0.3, axes=(1,))": [
        ("Dropout", "dropout0_fwd", {"axes": "(1,)", "cudnn_off": "False", "p": "0.3"}),
    ],
    "nn.BatchNorm()": [
        (
            "BatchNorm",
            "batchnorm0_fwd",
            {"axis": "1", "eps": "1e-05", "fix_gamma": "False", "momentum": "0.9", "use_global_stats": "False"},
        ),
    ],
    "nn.BatchNorm(axis=3, scale=False, center=False, use_global_stats=True, epsilon=1e-3, momentum=0.8)": [
        (
            "BatchNorm",
            "batchnorm0_fwd",
            {"axis": "3", "eps": "0.001", "fix_gamma": "True", "momentum": "0.8", "use_global_stats": "True"},
        ),
    ],
    "nn.BatchNormReLU()": [
        (
            "_contrib_BatchNormWithReLU",
            "batchnormrelu0_fwd",
            {"axis": "1", "eps": "1e-05", "fix_gamma": "False", "momentum": "0.9", "use_global_stats": "False"},
        ),
    ],
    "nn.InstanceNorm()": [
        ("InstanceNorm", "instancenorm0_fwd", {"eps": "1e-05"}),
    ],
    "nn.InstanceNorm(axis=2)": [
        ("SwapAxis", "instancenorm0_swapaxes0", {"dim1": "1", "dim2": "2"}),
        ("InstanceNorm", "instancenorm0_fwd", {"eps": "1e-05"}),
        ("SwapAxis", "instancenorm0_swapaxes1", {"dim1": "1", "dim2": "2"}),
    ],
    "nn.LayerNorm()": [
        ("LayerNorm", "layernorm0_layernorm0", {"axis": "-1", "eps": "1e-05"}),
    ],
    "nn.LayerNorm(axis=1, epsilon=1e-3)": [
        ("LayerNorm", "layernorm0_layernorm0", {"axis": "1", "eps": "0.001"}),
    ],
    "nn.GroupNorm()": [
        ("GroupNorm", "groupnorm0_groupnorm0", {"eps": "1e-05", "num_groups": "1"}),
    ],
    "nn.GroupNorm(2)": [
        ("GroupNorm", "groupnorm0_groupnorm0", {"eps": "1e-05", "num_groups": "2"}),
    ],
    "nn.Embedding(5, 3)": [
        ("Embedding", "embedding0_fwd", {"dtype": "float32", "input_dim": "5", "output_dim": "3", "sparse_grad": "False"}),
    ],
    'nn.Embedding(5, 3, dtype="float64", sparse_grad=True)': [
        ("Embedding", "embedding0_fwd", {"dtype": "float64", "input_dim": "5", "output_dim": "3", "sparse_grad": "True"}),
    ],
    "nn.Flatten()": [
        ("Flatten", "flatten0_flatten0", {}),
    ],
    'nn.HybridLambda("tanh")': [
        ("tanh", "hybridlambda0_tanh0", {}),
    ],
    'nn.Activation("relu")': [
        ("Activation", "relu0_fwd", {"act_type": "relu"}),
    ],
    'nn.Activation("softsign")': [
        ("Activation", "softsign0_fwd", {"act_type": "softsign"}),
    ],
    'nn.Activation("softrelu")': [
        ("Activation", "softrelu0_fwd", {"act_type": "softrelu"}),
    ],
    "nn.LeakyReLU(0.1)": [
        ("LeakyReLU", "leakyrelu0_fwd", {"act_type": "leaky", "slope": "0.1"}),
    ],
    "nn.LeakyReLU(0.25)": [
        ("LeakyReLU", "leakyrelu0_fwd", {"act_type": "leaky", "slope": "0.25"}),
    ],
    "nn.PReLU()": [
        ("LeakyReLU", "prelu0_fwd", {"act_type": "prelu"}),
    ],
    "nn.PReLU(in_channels=3)": [
        ("LeakyReLU", "prelu0_fwd", {"act_type": "prelu"}),
    ],
    "nn.ELU()": [
        ("LeakyReLU", "elu0_leakyrelu0", {"act_type": "elu", "slope": "1.0"}),
    ],
    "nn.ELU(0.5)": [
        ("LeakyReLU", "elu0_leakyrelu0", {"act_type": "elu", "slope": "0.5"}),
    ],
    "nn.SELU()": [
        ("LeakyReLU", "selu0_fwd", {"act_type": "selu"}),
    ],
    "nn.GELU()": [
        ("LeakyReLU", "gelu0_fwd", {"act_type": "gelu"}),
    ],
    "nn.Swish()": [
        ("_mul_scalar", "swish0__mulscalar0", {"scalar": "1.0"}),
        ("sigmoid", "swish0_fwd", {}),
        ("elemwise_mul", "swish0__mul0", {}),
    ],
    "nn.Swish(2.0)": [
        ("_mul_scalar", "swish0__mulscalar0", {"scalar": "2.0"}),
        ("sigmoid", "swish0_fwd", {}),
        ("elemwise_mul", "swish0__mul0", {}),
    ],
    "nn.Conv1D(4, 3)": [
        (
            "Convolution",
            "conv0_fwd",
            {
                "dilate": "(1,)",
                "kernel": "(3,)",
                "layout": "NCW",
                "no_bias": "False",
                "num_filter": "4",
                "num_group": "1",
                "pad": "(0,)",
                "stride": "(1,)",
            },
        ),
    ],
    "nn.Conv2D(4, 3)": [
        (
            "Convolution",
            "conv0_fwd",
            {
                "dilate": "(1, 1)",
                "kernel": "(3, 3)",
                "layout": "NCHW",
                "no_bias": "False",
                "num_filter": "4",
                "num_group": "1",
                "pad": "(0, 0)",
                "stride": "(1, 1)",
            },
        ),
    ],
    'nn.Conv2D(4, (3, 2), 2, 1, 2, 2, use_bias=False, activation="relu")': [
        (
            "Convolution",
            "conv0_fwd",
            {
                "dilate": "(2, 2)",
                "kernel": "(3, 2)",
                "layout": "NCHW",
                "no_bias": "True",
                "num_filter": "4",
                "num_group": "2",
                "pad": "(1, 1)",
                "stride": "(2, 2)",
            },
        ),
        ("Activation", "conv0_relu_fwd", {"act_type": "relu"}),
    ],
    "nn.Conv3D(4, 3)": [
        (
            "Convolution",
            "conv0_fwd",
            {
                "dilate": "(1, 1, 1)",
                "kernel": "(3, 3, 3)",
                "layout": "NCDHW",
                "no_bias": "False",
                "num_filter": "4",
                "num_group": "1",
                "pad": "(0, 0, 0)",
                "stride": "(1, 1, 1)",
            },
        ),
    ],
    "nn.Conv2DTranspose(4, 3)": [
        (
            "Deconvolution",
            "conv0_fwd",
            {
                "adj": "(0, 0)",
                "dilate": "(1, 1)",
                "kernel": "(3, 3)",
                "layout": "NCHW",
                "no_bias": "False",
                "num_filter": "4",
                "num_group": "1",
                "pad": "(0, 0)",
                "stride": "(1, 1)",
            },
        ),
    ],
    'nn.Conv2DTranspose(4, 3, 2, 1, 1, layout="NCHW", in_channels=2)': [
        (
            "Deconvolution",
            "conv0_fwd",
            {
                "adj": "(1, 1)",
                "dilate": "(1, 1)",
                "kernel": "(3, 3)",
                "layout": "NCHW",
                "no_bias": "False",
                "num_filter": "4",
                "num_group": "1",
                "pad": "(1, 1)",
                "stride": "(2, 2)",
            },
        ),
    ],
    "nn.Conv1DTranspose(4, 3)": [
        (
            "Deconvolution",
            "conv0_fwd",
            {
                "adj": "(0,)",
                "dilate": "(1,)",
                "kernel": "(3,)",
                "layout": "NCW",
                "no_bias": "False",
                "num_filter": "4",
                "num_group": "1",
                "pad": "(0,)",
                "stride": "(1,)",
            },
        ),
    ],
    "nn.Conv3DTranspose(4, 3)": [
        (
            "Deconvolution",
            "conv0_fwd",
            {
                "adj": "(0, 0, 0)",
                "dilate": "(1, 1, 1)",
                "kernel": "(3, 3, 3)",
                "layout": "NCDHW",
                "no_bias": "False",
                "num_filter": "4",
                "num_group": "1",
                "pad": "(0, 0, 0)",
                "stride": "(1, 1, 1)",
            },
        ),
    ],
    "nn.MaxPool1D()": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "global_pool": "False",
                "kernel": "(2,)",
                "layout": "NCW",
                "pad": "(0,)",
                "pool_type": "max",
                "pooling_convention": "valid",
                "stride": "(2,)",
            },
        ),
    ],
    "nn.MaxPool2D()": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "global_pool": "False",
                "kernel": "(2, 2)",
                "layout": "NCHW",
                "pad": "(0, 0)",
                "pool_type": "max",
                "pooling_convention": "valid",
                "stride": "(2, 2)",
            },
        ),
    ],
    "nn.MaxPool2D(3, 2, 1, ceil_mode=True)": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "global_pool": "False",
                "kernel": "(3, 3)",
                "layout": "NCHW",
                "pad": "(1, 1)",
                "pool_type": "max",
                "pooling_convention": "full",
                "stride": "(2, 2)",
            },
        ),
    ],
    "nn.MaxPool3D()": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "global_pool": "False",
                "kernel": "(2, 2, 2)",
                "layout": "NCDHW",
                "pad": "(0, 0, 0)",
                "pool_type": "max",
                "pooling_convention": "valid",
                "stride": "(2, 2, 2)",
            },
        ),
    ],
    "nn.AvgPool1D()": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "count_include_pad": "True",
                "global_pool": "False",
                "kernel": "(2,)",
                "layout": "NCW",
                "pad": "(0,)",
                "pool_type": "avg",
                "pooling_convention": "valid",
                "stride": "(2,)",
            },
        ),
    ],
    "nn.AvgPool2D()": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "count_include_pad": "True",
                "global_pool": "False",
                "kernel": "(2, 2)",
                "layout": "NCHW",
                "pad": "(0, 0)",
                "pool_type": "avg",
                "pooling_convention": "valid",
                "stride": "(2, 2)",
            },
        ),
    ],
    "nn.AvgPool2D(count_include_pad=False)": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "count_include_pad": "False",
                "global_pool": "False",
                "kernel": "(2, 2)",
                "layout": "NCHW",
                "pad": "(0, 0)",
                "pool_type": "avg",
                "pooling_convention": "valid",
                "stride": "(2, 2)",
            },
        ),
    ],
    "nn.AvgPool3D()": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "count_include_pad": "True",
                "global_pool": "False",
                "kernel": "(2, 2, 2)",
                "layout": "NCDHW",
                "pad": "(0, 0, 0)",
                "pool_type": "avg",
                "pooling_convention": "valid",
                "stride": "(2, 2, 2)",
            },
        ),
    ],
    "nn.GlobalMaxPool1D()": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "global_pool": "True",
                "kernel": "(1,)",
                "layout": "NCW",
                "pad": "(0,)",
                "pool_type": "max",
                "pooling_convention": "full",
                "stride": "(1,)",
            },
        ),
    ],
    "nn.GlobalMaxPool2D()": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "global_pool": "True",
                "kernel": "(1, 1)",
                "layout": "NCHW",
                "pad": "(0, 0)",
                "pool_type": "max",
                "pooling_convention": "full",
                "stride": "(1, 1)",
            },
        ),
    ],
    "nn.GlobalMaxPool3D()": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "global_pool": "True",
                "kernel": "(1, 1, 1)",
                "layout": "NCDHW",
                "pad": "(0, 0, 0)",
                "pool_type": "max",
                "pooling_convention": "full",
                "stride": "(1, 1, 1)",
            },
        ),
    ],
    "nn.GlobalAvgPool1D()": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "global_pool": "True",
                "kernel": "(1,)",
                "layout": "NCW",
                "pad": "(0,)",
                "pool_type": "avg",
                "pooling_convention": "full",
                "stride": "(1,)",
            },
        ),
    ],
    "nn.GlobalAvgPool2D()": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "global_pool": "True",
                "kernel": "(1, 1)",
                "layout": "NCHW",
                "pad": "(0, 0)",
                "pool_type": "avg",
                "pooling_convention": "full",
                "stride": "(1, 1)",
            },
        ),
    ],
    "nn.GlobalAvgPool3D()": [
        (
            "Pooling",
            "pool0_fwd",
            {
                "global_pool": "True",
                "kernel": "(1, 1, 1)",
                "layout": "NCDHW",
                "pad": "(0, 0, 0)",
                "pool_type": "avg",
                "pooling_convention": "full",
                "stride": "(1, 1, 1)",
            },
        ),
    ],
    "nn.ReflectionPad2D(2)": [
        ("Pad", "reflectionpad2d0_pad0", {"mode": "reflect", "pad_width": "(0, 0, 0, 0, 2, 2, 2, 2)"}),
    ],
    "contrib.nn.Identity()": [],
    "contrib.nn.PixelShuffle1D(2)": [
        ("Reshape", "pixelshuffle1d0_reshape0", {"shape": "(0, -4, -1, 2, 0)"}),
        ("transpose", "pixelshuffle1d0_transpose0", {"axes": "(0, 1, 3, 2)"}),
        ("Reshape", "pixelshuffle1d0_reshape1", {"shape": "(0, 0, -3)"}),
    ],
    "contrib.nn.PixelShuffle2D((2, 3))": [
        ("Reshape", "pixelshuffle2d0_reshape0", {"shape": "(0, -4, -1, 6, 0, 0)"}),
        ("Reshape", "pixelshuffle2d0_reshape1", {"shape": "(0, 0, -4, 2, 3, 0, 0)"}),
        ("transpose", "pixelshuffle2d0_transpose0", {"axes": "(0, 1, 4, 2, 5, 3)"}),
        ("Reshape", "pixelshuffle2d0_reshape2", {"shape": "(0, 0, -3, -3)"}),
    ],
    "contrib.nn.PixelShuffle3D(2)": [
        ("Reshape", "pixelshuffle3d0_reshape0", {"shape": "(0, -4, -1, 8, 0, 0, 0)"}),
        ("SwapAxis", "pixelshuffle3d0_swapaxes0", {"dim1": "2", "dim2": "3"}),
        ("Reshape", "pixelshuffle3d0_reshape1", {"shape": "(0, 0, 0, -4, 2, 4, 0, 0)"}),
        ("Reshape", "pixelshuffle3d0_reshape2", {"shape": "(0, 0, -3, 0, 0, 0)"}),
        ("SwapAxis", "pixelshuffle3d0_swapaxes1", {"dim1": "3", "dim2": "4"}),
        ("Reshape", "pixelshuffle3d0_reshape3", {"shape": "(0, 0, 0, 0, -4, 2, 2, 0)"}),
        ("Reshape", "pixelshuffle3d0_reshape4", {"shape": "(0, 0, 0, -3, 0, 0)"}),
        ("SwapAxis", "pixelshuffle3d0_swapaxes2", {"dim1": "4", "dim2": "5"}),
        ("Reshape", "pixelshuffle3d0_reshape5", {"shape": "(0, 0, 0, 0, -3)"}),
    ],
    "contrib.nn.SyncBatchNorm(num_devices=1)": [
        (
            "_contrib_SyncBatchNorm",
            "syncbatchnorm0_fwd",
            {
                "eps": "1e-05",
                "fix_gamma": "False",
                "key": "syncbatchnorm0_",
                "momentum": "0.9",
                "ndev": "1",
                "use_global_stats": "False",
            },
        ),
    ],
}


def nodes_of(block: Any, *names: str) -> list[dict[str, Any]]:
    return json.loads(block(*[mx.sym.var(name) for name in names]).tojson())["nodes"]


@pytest.mark.parametrize("call", LAYERS)
def test_layer(call: str) -> None:
    with NameManager():
        nodes = nodes_of(eval(call, {"nn": nn, "contrib": contrib}), "data")
    found = [(node["op"], node["name"], node.get("attrs", {})) for node in nodes if node["op"] != "null"]
    assert found == LAYERS[call]
    assert all(list(node["attrs"]) == sorted(node["attrs"]) for node in nodes if "attrs" in node)


def test_concurrent() -> None:
    """`dim` is written although it is Concat's default."""
    with NameManager():
        block = HybridConcurrent(axis=1)
        block.add(nn.Flatten(), nn.Dense(2))
        last = nodes_of(block, "data")[-1]
    assert (last["op"], last["attrs"]) == ("Concat", {"dim": "1", "num_args": "2"})


def test_axes() -> None:
    """One axis is written as a number, several as a tuple."""
    data = mx.sym.var("data")
    texts = [mx.sym.mean(data, axis=axis).attr("axis") for axis in (0, (1,), (0, 2), None)]
    assert texts == ["0", "1", "(0, 2)", None]
    assert mx.sym.load_json(mx.sym.mean(data, axis=1).tojson()).infer_shape(data=(2, 3))[1] == [(2,)]


def test_plain_calls_write_what_differs_from_the_defaults() -> None:
    data = mx.sym.var("data")
    for graph, wanted in (
        (mx.sym.Convolution(data, kernel=(3, 3), num_filter=4), {"kernel": "(3, 3)", "num_filter": "4"}),
        (mx.sym.FullyConnected(data, num_hidden=4), {"num_hidden": "4"}),
        (mx.sym.Dropout(data, p=0.3), {"p": "0.3"}),
        (mx.sym.BatchNorm(data), {}),
        (mx.sym.Pooling(data, kernel=(2, 2), pool_type="max", stride=(2, 2)), {"kernel": "(2, 2)", "stride": "(2, 2)"}),
    ):
        assert graph.list_attr() == wanted
