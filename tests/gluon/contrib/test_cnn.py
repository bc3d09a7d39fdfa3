"""Deformable convolutions as layers."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, nd
from minimx.gluon import contrib, nn

DATA = np.random.RandomState(0).normal(size=(2, 4, 9, 8)).astype(np.float32)


@pytest.mark.parametrize("kind", [contrib.cnn.DeformableConvolution, contrib.cnn.ModulatedDeformableConvolution])
@pytest.mark.parametrize(
    "options", [{}, {"strides": 2, "padding": 1, "dilation": (1, 2)}, {"use_bias": False, "activation": "relu"}]
)
def test_at_first_it_is_a_convolution(kind, options):
    """Offsets begin with zeros, and factors with one."""
    layer, plain = kind(6, (3, 2), **options), nn.Conv2D(6, (3, 2), **options)
    layer.initialize(mx.init.Normal(1))
    plain.initialize()
    plain(nd.array(DATA))
    result = layer(nd.array(DATA))
    plain.weight.set_data(layer.deformable_conv_weight.data())
    np.testing.assert_allclose(result.asnumpy(), plain(nd.array(DATA)).asnumpy(), rtol=1e-5, atol=1e-5)
    layer.hybridize()
    np.testing.assert_allclose(layer(nd.array(DATA)).asnumpy(), result.asnumpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [contrib.cnn.DeformableConvolution, contrib.cnn.ModulatedDeformableConvolution])
def test_offsets_are_learned(kind):
    layer = kind(
        2, 3, num_deformable_group=2, in_channels=4, offset_use_bias=False, offset_weight_initializer=mx.init.Normal(0.1)
    )
    layer.initialize(mx.init.Normal(1))
    with autograd.record():
        loss = layer(nd.array(DATA)).square().mean()
    loss.backward()
    for param in layer.collect_params().values():
        assert np.abs(param.grad().asnumpy()).max() > 0


def test_names_and_text():
    layer = contrib.cnn.DeformableConvolution(6, 3, padding=1, in_channels=4, activation="relu", prefix="d_")
    assert list(layer.collect_params()) == [
        "d_offset_weight",
        "d_offset_bias",
        "d_deformable_conv_weight",
        "d_deformable_conv_bias",
    ]
    assert repr(layer) == "DeformableConvolution(4 -> 6, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), Activation(relu))"
    assert layer.offset_weight.shape == (18, 4, 3, 3)
    other = contrib.cnn.ModulatedDeformableConvolution(6, 3, use_bias=False)
    assert other.prefix.startswith("modulateddeformableconvolution") or other.prefix.startswith("modulated_deformable_conv")
    assert [name[len(other.prefix) :] for name in other.collect_params()] == [
        "deformable_conv_weight",
        "offset_weight",
        "offset_bias",
    ]
    assert repr(other) == "ModulatedDeformableConvolution(None -> 6, kernel_size=(3, 3), stride=(1, 1), bias=False)"
    with pytest.raises(AssertionError, match="layout='NHWC'; only NCHW"):
        contrib.cnn.DeformableConvolution(6, 3, layout="NHWC")


def test_sparse_embedding():
    layer = contrib.nn.SparseEmbedding(10, 3)
    layer.initialize()
    assert repr(layer) == "SparseEmbedding(10 -> 3, float32)"
    trainer = gluon.Trainer(layer.collect_params(), "sgd")
    with autograd.record():
        y = layer(nd.array([3, 4, 2, 0, 1]))
    y.backward()
    assert layer.weight.grad().asnumpy().sum(axis=1).tolist() == [3] * 5 + [0] * 5
    trainer.step(1)
