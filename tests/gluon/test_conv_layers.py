"""Convolution, pooling, BatchNorm and resampling as layers: values, shapes, names, files; each as a graph, too."""

from __future__ import annotations

import json

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, init, nd
from minimx.gluon import nn
from minimx.gluon.contrib import nn as contrib

from ..ops.cases_conv import convolution, deconvolution
from ..ops.cases_pool import pooling

RANDOM = np.random.default_rng(2)
LENGTHS = (7, 6, 5)


def image(ndim, channels=4):
    return RANDOM.normal(size=(2, channels, *LENGTHS[:ndim])).astype("float32")


def check(layer, wanted, x):
    """The layer's values, and that a graph has the same ones and the same gradients."""
    np.testing.assert_allclose(layer(nd.array(x)).asnumpy(), wanted, rtol=1e-4, atol=1e-4)
    results = []
    for hybrid in (False, True):
        layer.hybridize(hybrid)
        data = nd.array(x)
        data.attach_grad()
        with autograd.record():
            y = layer(data)
            loss = (y * y).sum()
        loss.backward()
        gradients = [p.grad().asnumpy() for p in layer.collect_params().values() if p.grad_req != "null"]
        results.append([y.asnumpy(), data.grad.asnumpy(), *gradients])
    for eager, graph in zip(*results):
        np.testing.assert_allclose(graph, eager, rtol=1e-5, atol=1e-5)


def last(x):
    return np.moveaxis(x, 1, -1)


# ---- convolution

CONV = {1: nn.Conv1D, 2: nn.Conv2D, 3: nn.Conv3D}
TRANSPOSE = {1: nn.Conv1DTranspose, 2: nn.Conv2DTranspose, 3: nn.Conv3DTranspose}


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("use_bias", [True, False])
def test_convolutions(ndim, use_bias):
    x = image(ndim)
    layer = CONV[ndim](
        6, 3, strides=2, padding=1, groups=2, use_bias=use_bias, bias_initializer=init.Constant(0.5), activation="relu"
    )
    assert layer.weight.shape == (6, 0, *[3] * ndim)
    layer.initialize(init.Normal(1))
    layer(nd.array(x))
    assert layer.weight.shape == (6, 2, *[3] * ndim)
    assert (layer.bias is not None) == use_bias
    bias = np.full(6, 0.5) if use_bias else None
    wanted = convolution(x, layer.weight.data().asnumpy(), bias, (2,) * ndim, None, (1,) * ndim, 2)
    check(layer, np.maximum(wanted, 0), x)


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("use_bias", [True, False])
def test_transposed_convolutions(ndim, use_bias):
    x = image(ndim)
    layer = TRANSPOSE[ndim](6, 3, strides=2, padding=1, output_padding=1, groups=2, use_bias=use_bias, in_channels=4)
    layer.initialize(init.Normal(1))
    assert layer.weight.shape == (4, 3, *[3] * ndim)
    wanted = deconvolution(x, layer.weight.data().asnumpy(), None, (2,) * ndim, None, (1,) * ndim, (1,) * ndim, groups=2)
    check(layer, wanted, x)


def test_convolutions_with_one_number_for_each_axis():
    x = image(2)
    layer = nn.Conv2D(3, (3, 2), (2, 1), (0, 1), (1, 2))
    layer.initialize(init.Normal(1))
    layer(nd.array(x))
    check(layer, convolution(x, layer.weight.data().asnumpy(), None, (2, 1), (1, 2), (0, 1)), x)


def test_convolutions_with_channels_last():
    x = image(2)
    layer = nn.Conv2D(3, 3, layout="NHWC")
    assert layer.weight.shape == (3, 3, 3, 0)
    layer.initialize(init.Normal(1))
    layer(nd.array(last(x)))
    weight = np.moveaxis(layer.weight.data().asnumpy(), -1, 1)
    check(layer, last(convolution(x, weight)), last(x))
    back = nn.Conv2DTranspose(3, 3, layout="NHWC")
    back.initialize(init.Normal(1))
    back(nd.array(last(x)))
    assert back.weight.shape == (4, 3, 3, 3)
    check(back, last(deconvolution(x, np.moveaxis(back.weight.data().asnumpy(), -1, 1))), last(x))


def test_convolutions_in_other_dtypes():
    layer = nn.Conv2D(2, 1, weight_initializer="ones", bias_initializer=init.Constant(3))
    layer.cast("float16")
    layer.initialize()
    y = layer(nd.ones((1, 4, 2, 2), dtype="float16"))
    assert y.dtype == np.float16
    assert (y.asnumpy() == 7).all()


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (lambda: nn.Conv2D(6, 5), "Conv2D(None -> 6, kernel_size=(5, 5), stride=(1, 1))"),
        (
            lambda: nn.Conv2D(6, 3, 2, 1, 2, 3, activation="relu", use_bias=False, in_channels=3),
            "Conv2D(1 -> 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), dilation=(2, 2), groups=3, bias=False, Activation(relu))",
        ),
        (
            lambda: nn.Conv1DTranspose(3, 2, 2, output_padding=1),
            "Conv1DTranspose(3 -> 0, kernel_size=(2,), stride=(2,), output_padding=(1,))",
        ),
        (
            lambda: nn.AvgPool2D(3, 2, 1, ceil_mode=True),
            "AvgPool2D(size=(3, 3), stride=(2, 2), padding=(1, 1), ceil_mode=True, global_pool=False, pool_type=avg, layout=NCHW)",
        ),
        (
            lambda: nn.GlobalMaxPool3D(),
            "GlobalMaxPool3D(size=(1, 1, 1), stride=(1, 1, 1), padding=(0, 0, 0), ceil_mode=True, global_pool=True, pool_type=max, "
            "layout=NCDHW)",
        ),
        (
            lambda: nn.BatchNorm(scale=False),
            "BatchNorm(axis=1, eps=1e-05, momentum=0.9, fix_gamma=True, use_global_stats=False, in_channels=None)",
        ),
        (lambda: contrib.PixelShuffle1D(2), "PixelShuffle1D(2)"),
        (lambda: contrib.PixelShuffle2D((2, 3)), "PixelShuffle2D((2, 3))"),
    ],
)
def test_repr(layer, text):
    assert repr(layer()) == text


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: nn.Conv2D(3, (3, 3, 3)), "Conv2D: kernel_size must be a number or a list of 2 ints"),
        (lambda: nn.Conv1D(3, 3, strides=(1, 2)), "Conv1D: strides must be a number or a list of 1 ints"),
        (lambda: nn.Conv2D(3, 3, layout="NCW"), "only NCHW and NHWC are valid here"),
        (lambda: nn.Conv2D(3, 3, groups=2), "groups=2 must divide channels=3"),
        (lambda: nn.Conv3DTranspose(3, 3, output_padding=(1, 1)), "output_padding must be a number or a list of 3 ints"),
        (lambda: nn.MaxPool2D((2, 2, 2)), "MaxPool2D: pool_size must be a number or a list of 2 ints"),
        (lambda: nn.GlobalAvgPool1D(layout="NCHW"), "only NCW and NWC are valid here"),
        (lambda: nn.ReflectionPad2D((1, 2)), "padding must be a number or a list of 8 ints"),
        (lambda: contrib.PixelShuffle2D((2, 2, 2)), "factor must be a number or a list of 2 ints"),
        (lambda: contrib.PixelShuffle2D(0), "must not be less than 1"),
    ],
)
def test_what_makes_no_layer(make, match):
    with pytest.raises(AssertionError, match=match):
        make()


# ---- pooling


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("ceil_mode", [True, False])
def test_pooling(ndim, ceil_mode):
    x = image(ndim)
    how = {"kernel": (3,) * ndim, "stride": (2,) * ndim, "pad": (1,) * ndim}
    how["pooling_convention"] = "full" if ceil_mode else "valid"
    largest = getattr(nn, f"MaxPool{ndim}D")(3, 2, 1, ceil_mode=ceil_mode)
    check(largest, pooling(x, **how), x)
    for count_include_pad in (True, False):
        mean = getattr(nn, f"AvgPool{ndim}D")(3, 2, 1, ceil_mode=ceil_mode, count_include_pad=count_include_pad)
        check(mean, pooling(x, **how, pool_type="avg", count_include_pad=count_include_pad), x)


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_global_pooling(ndim):
    x = image(ndim)
    axes = tuple(range(2, ndim + 2))
    check(getattr(nn, f"GlobalMaxPool{ndim}D")(), x.max(axes, keepdims=True), x)
    check(getattr(nn, f"GlobalAvgPool{ndim}D")(), x.mean(axes, keepdims=True), x)


def test_pooling_with_channels_last_and_windows_side_by_side():
    x = image(2)
    check(nn.MaxPool2D(layout="NHWC"), last(pooling(x, (2, 2), (2, 2))), last(x))
    check(nn.AvgPool2D((3, 2), layout="NHWC"), last(pooling(x, (3, 2), (3, 2), pool_type="avg")), last(x))
    check(nn.GlobalAvgPool2D("NHWC"), last(x.mean((2, 3), keepdims=True)), last(x))


# ---- BatchNorm


def standardized(x, axis=1):
    others = tuple(number for number in range(x.ndim) if number != axis)
    return (x - x.mean(others, keepdims=True)) / np.sqrt(x.var(others, keepdims=True) + 1e-5)


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("hybrid", [True, False])
def test_batch_norm(axis, hybrid):
    x = image(2) * 3 + 1
    layer = nn.BatchNorm(axis=axis, momentum=0.7, gamma_initializer=init.Constant(2), beta_initializer="ones")
    layer.initialize()
    layer.hybridize(hybrid)
    with autograd.record():
        y = layer(nd.array(x))
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), standardized(x, axis) * 2 + 1, rtol=1e-4, atol=1e-4)
    others = tuple(number for number in range(4) if number != axis)
    np.testing.assert_allclose(layer.running_mean.data().asnumpy(), 0.3 * x.mean(others), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(layer.running_var.data().asnumpy(), 0.7 + 0.3 * x.var(others), rtol=1e-4)
    mean, variance = (p.data().asnumpy() for p in (layer.running_mean, layer.running_var))
    spread = [-1 if number == axis else 1 for number in range(4)]
    wanted = (x - mean.reshape(spread)) / np.sqrt(variance.reshape(spread) + 1e-5) * 2 + 1
    np.testing.assert_allclose(layer(nd.array(x)).asnumpy(), wanted, rtol=1e-4, atol=1e-4)


def test_batch_norm_as_a_graph():
    x = image(2)
    layer = nn.BatchNorm()
    layer.initialize()
    layer(nd.array(x))
    check(layer, x / np.sqrt(1 + 1e-5), x)


def test_batch_norm_with_relu():
    x = image(2)
    layer = nn.BatchNormReLU()
    layer.initialize()
    layer(nd.array(x))
    check(layer, np.maximum(x, 0) / np.sqrt(1 + 1e-5), x)
    graph = layer(mx.sym.var("data"))
    assert graph.list_auxiliary_states() == [layer.running_mean.name, layer.running_var.name]
    assert mx.sym.load_json(graph.tojson()).tojson() == graph.tojson()


def test_synchronized_batch_norm():
    x = nd.array(image(2))
    plain, layer = nn.BatchNorm(in_channels=4), contrib.SyncBatchNorm(in_channels=4, num_devices=1, prefix="sync_")
    found = []
    for each in (plain, layer):
        each.initialize()
        x.attach_grad()
        with autograd.record():
            y = each(x)
        y.backward(nd.arange(y.size).reshape(y.shape))
        found.append([y, x.grad, each.gamma.grad(), each.running_mean.data(), each.running_var.data()])
    for mine, wanted in zip(*found):
        np.testing.assert_allclose(mine.asnumpy(), wanted.asnumpy(), rtol=1e-4, atol=1e-4)
    arguments = "eps=1e-05, momentum=0.9, fix_gamma=False, use_global_stats=False, ndev=1, key='sync_', in_channels=4"
    assert repr(layer) == f"SyncBatchNorm({arguments})"
    graph = layer(mx.sym.var("data"))
    assert graph.list_outputs() == ["sync_fwd_output"]
    assert graph.list_auxiliary_states() == ["sync_running_mean", "sync_running_var"]
    assert mx.sym.load_json(graph.tojson()).tojson() == graph.tojson()


def test_synchronized_batch_norm_of_several_devices():
    with pytest.warns(UserWarning, match="num_devices is not given and taken to be 1"):
        contrib.SyncBatchNorm()
    layer = contrib.SyncBatchNorm(num_devices=2)
    layer.initialize()
    assert layer(nd.array(image(2))).shape == image(2).shape  # with the running means; in training see tests/parallel


def test_batch_norm_learns_what_it_is_told():
    layer = nn.BatchNorm(center=False, scale=False, in_channels=4)
    assert [p.grad_req for p in layer.collect_params().values()] == ["null"] * 4
    assert [p.name.partition("_")[2] for p in layer.collect_params().values()] == ["gamma", "beta", "running_mean", "running_var"]
    layer = nn.BatchNorm()
    layer.collect_params().setattr("grad_req", "add")
    assert [p.grad_req for p in layer.collect_params().values()] == ["add", "add", "null", "null"]
    layer.initialize()
    x, y = nd.array(image(2)), None
    for _ in range(2):
        with autograd.record():
            y = layer(x)
        y.backward()
    np.testing.assert_allclose(layer.beta.grad().asnumpy(), 2 * y.size / 4)  # the sum of two passes


def test_batch_norm_with_frozen_statistics():
    x = image(2)
    layer = nn.BatchNorm(use_global_stats=True)
    layer.initialize()
    layer(nd.array(x))
    check(layer, x / np.sqrt(1 + 1e-5), x)
    assert layer.running_mean.data().asnumpy().tolist() == [0, 0, 0, 0]


def test_batch_norm_stays_float32_for_float16():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(3, 1), nn.BatchNorm())
    net.cast("float16")
    net.initialize()
    for hybrid in (False, True):
        net.hybridize(hybrid)
        with autograd.record():
            y = net(nd.array(image(2), dtype="float16"))
        y.backward()
        assert y.dtype == np.float16
    assert net[0].weight.data().dtype == np.float16
    assert {p.data().dtype for p in net[1].collect_params().values()} == {np.float32}


# ---- resampling


def test_reflection():
    x = image(2)
    check(nn.ReflectionPad2D(2), np.pad(x, [(0, 0), (0, 0), (2, 2), (2, 2)], mode="reflect"), x)
    check(nn.ReflectionPad2D((0, 0, 0, 0, 1, 0, 2, 3)), np.pad(x, [(0, 0), (0, 0), (1, 0), (2, 3)], mode="reflect"), x)


@pytest.mark.parametrize(
    ("layer", "factors"),
    [
        (lambda: contrib.PixelShuffle1D(3), (3,)),
        (lambda: contrib.PixelShuffle2D(2), (2, 2)),
        (lambda: contrib.PixelShuffle2D((3, 2)), (3, 2)),
        (lambda: contrib.PixelShuffle3D((2, 3, 1)), (2, 3, 1)),
    ],
)
def test_pixel_shuffle(layer, factors):
    block = int(np.prod(factors))
    x = image(len(factors), 2 * block)
    wanted = np.zeros((2, 2, *(f * n for f, n in zip(factors, x.shape[2:]))), "float32")
    for number, place in enumerate(np.ndindex(*factors)):  # each channel of a block is a grid of pixels
        grid = (slice(start, None, step) for start, step in zip(place, factors))
        wanted[(slice(None), slice(None), *grid)] = x[:, number::block]
    check(layer(), wanted, x)


# ---- in networks


def lenet():
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(6, 5, padding=2, activation="sigmoid"), nn.AvgPool2D(2, 2), nn.Conv2D(16, 5), nn.BatchNorm(),
        nn.Activation("relu"), nn.MaxPool2D(2, 2), nn.Flatten(), nn.Dense(10),
    )  # fmt: skip
    return net


def test_names_in_graphs():
    net = lenet()
    net.initialize()
    graph = net(mx.sym.var("data"))
    nodes = {node["name"].partition("_")[2]: node for node in json.loads(graph.tojson())["nodes"]}
    assert {"weight", "bias", "fwd", "sigmoid_fwd", "gamma", "beta", "running_mean", "running_var"} <= set(nodes)
    assert graph.list_auxiliary_states() == [f"{net[3].prefix}running_mean", f"{net[3].prefix}running_var"]
    written = [node for node in json.loads(graph.tojson())["nodes"] if node["op"] == "Pooling"]
    assert written[0]["attrs"] == {
        "count_include_pad": "True", "global_pool": "False", "kernel": "(2, 2)", "layout": "NCHW", "pad": "(0, 0)", "pool_type": "avg",
        "pooling_convention": "valid", "stride": "(2, 2)",
    }  # fmt: skip
    assert "count_include_pad" not in written[1]["attrs"]


def test_a_network_learns_alike_in_both_ways():
    x, head = nd.array(RANDOM.normal(size=(4, 1, 28, 28))), nd.array(RANDOM.normal(size=(4, 10)))
    found = []
    for hybrid in (False, True):
        mx.random.seed(3)
        net = lenet()
        net.initialize(init.Xavier())
        net.hybridize(hybrid)
        for _ in range(3):
            with autograd.record():
                y = net(x)
            y.backward(head)
            for parameter in net.collect_params().values():
                if parameter.grad_req != "null":
                    parameter.set_data(parameter.data() - 0.1 * parameter.grad())
        found.append([net(x).asnumpy(), *[p.data().asnumpy() for p in net.collect_params().values()]])
    for eager, graph in zip(*found):
        np.testing.assert_allclose(graph, eager, rtol=1e-3, atol=1e-4)


# ---- data of another number of axes


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: nn.Conv1D(6, 3, prefix="a_"), r"a_fwd: Convolution: data needs 3 axes \(batch, channels, width\), got \(3, 4\)"),
        (lambda: nn.Conv2D(6, 3, prefix="a_"), r"a_fwd: Convolution: data needs 4 axes \(batch, channels, height, width\), got \(3, 4\)"),
        (lambda: nn.Conv2D(6, 3, layout="NHWC"), r"4 axes \(batch, height, width, channels\), got \(3, 4\)"),
        (lambda: nn.Conv2D(6, 3, in_channels=4), r"4 axes \(batch, channels, height, width\), got \(3, 4\)"),
        (lambda: nn.Conv3DTranspose(6, 3), r"5 axes \(batch, channels, depth, height, width\), got \(3, 4\)"),
        (lambda: nn.MaxPool2D(), r"Pooling: data needs 4 axes \(batch, channels, height, width\), got \(3, 4\)"),
        (lambda: nn.GlobalAvgPool2D(), r"3 or 4 or 5 axes \(batch, channels, and those of the image\), got \(3, 4\)"),
        (lambda: nn.BatchNorm(axis=3), "BatchNorm: axis 3 is out of range for an array of 2 dimensions"),
    ],
)  # fmt: skip
def test_data_of_another_number_of_axes(make, wanted, hybrid):
    layer = make()
    layer.initialize()
    layer.hybridize(hybrid)
    with pytest.raises(ValueError, match=wanted):
        layer(mx.nd.ones((3, 4)))
