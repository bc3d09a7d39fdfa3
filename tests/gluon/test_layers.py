"""Layers: their values against NumPy, and each as a graph against itself as Python code."""

from __future__ import annotations

import math

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, init, nd
from minimx.base import ArgumentError, MXNetError
from minimx.gluon import nn, rnn
from minimx.gluon.contrib import cnn, rnn as contrib_rnn

RANDOM = np.random.default_rng(1)
X = RANDOM.normal(size=(2, 4, 6)).astype("float32")


def value(layer, x=X):
    layer.initialize(init.Normal(0.5))
    return layer(nd.array(x)).asnumpy()


def check(layer, wanted, x=X):
    """The layer's values, and that a graph has the same ones and the same gradients."""
    np.testing.assert_allclose(value(layer, x), wanted, rtol=1e-5, atol=1e-5)
    results = []
    for hybrid in (False, True):
        layer.hybridize(hybrid)
        data = nd.array(x)
        data.attach_grad()
        with autograd.record(train_mode=False):
            y = layer(data)
            loss = (y * y).sum()
        loss.backward(train_mode=False)
        gradients = [p.grad().asnumpy() for p in layer.collect_params().values() if p.grad_req != "null"]
        results.append([y.asnumpy(), data.grad.asnumpy(), *gradients])
    for eager, graph in zip(*results):
        np.testing.assert_allclose(graph, eager, rtol=1e-5, atol=1e-5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# ---- Dense, Embedding, Dropout, Flatten


@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("activation", [None, "relu"])
def test_dense(flatten, use_bias, activation):
    layer = nn.Dense(5, activation, use_bias, flatten, bias_initializer=init.Constant(0.5))
    rows = X.reshape(2, -1) if flatten else X
    mx.random.seed(1)
    value(layer)
    wanted = rows @ layer.weight.data().asnumpy().T + (0.5 if use_bias else 0)
    mx.random.seed(1)
    fresh = nn.Dense(5, activation, use_bias, flatten, bias_initializer=init.Constant(0.5))
    check(fresh, np.maximum(wanted, 0) if activation else wanted)
    assert layer.weight.shape == (5, rows.shape[-1])
    assert (layer.bias is None) == (not use_bias)


def test_dense_in_other_dtypes_and_with_initializers():
    layer = nn.Dense(2, dtype="float16", weight_initializer="ones", bias_initializer=init.Constant(3), in_units=4)
    layer.initialize()
    y = layer(nd.ones((1, 4), dtype="float16"))
    assert y.dtype == np.float16
    assert y.asnumpy().tolist() == [[7, 7]]


@pytest.mark.parametrize("sparse_grad", [True, False])
def test_embedding(sparse_grad):
    layer = nn.Embedding(5, 3, sparse_grad=sparse_grad)
    layer.initialize(init.Normal(1))
    numbers = nd.array([[3, 0], [3, 4]])
    for hybrid in (False, True):
        layer.hybridize(hybrid)
        with autograd.record():
            y = layer(numbers)
        y.backward()
        np.testing.assert_array_equal(y.asnumpy(), layer.weight.data().asnumpy()[[[3, 0], [3, 4]]])
        np.testing.assert_array_equal(layer.weight.grad().asnumpy(), np.array([[1], [0], [0], [2], [1]]) * np.ones((5, 3)))


def test_embedding_in_float64():
    layer = nn.Embedding(5, 3, dtype=np.float64)
    layer.initialize()
    assert layer(nd.array([1, 2])).dtype == np.float64
    assert repr(layer) == "Embedding(5 -> 3, float64)"


def test_dropout():
    layer = nn.Dropout(0.25)
    check(layer, X)
    with autograd.train_mode():
        kept = layer(nd.ones((1000,))).asnumpy()
        assert set(np.round(kept, 5)) == {0, np.float32(1.33333)}
        assert abs((kept == 0).mean() - 0.25) < 0.06
        shared = nn.Dropout(0.5, axes=(1,))(nd.ones((20, 5))).asnumpy()
    assert (shared == shared[:, :1]).all()
    check(nn.Dropout(0), X)


def test_flatten_and_identity():
    check(nn.Flatten(), X.reshape(2, -1))
    check(nn.Identity(), X)


def test_functions_as_layers():
    check(nn.HybridLambda("tanh"), np.tanh(X))
    check(nn.HybridLambda(lambda F, x: F.broadcast_mul(x, F.sum(x, axis=0, keepdims=True))), X * X.sum(0, keepdims=True))
    np.testing.assert_allclose(value(nn.Lambda("tanh")), np.tanh(X), rtol=1e-6)
    np.testing.assert_allclose(value(nn.Lambda(lambda x: x + 1)), X + 1)
    assert nn.Lambda(lambda a, b: a + b)(nd.ones((1,)), nd.ones((1,))).asscalar() == 2


# ---- activations


@pytest.mark.parametrize(
    ("layer", "function"),
    [
        (lambda: nn.Activation("relu"), lambda x: np.maximum(x, 0)),
        (lambda: nn.Activation("sigmoid"), sigmoid),
        (lambda: nn.Activation("tanh"), np.tanh),
        (lambda: nn.Activation("softrelu"), lambda x: np.log1p(np.exp(x))),
        (lambda: nn.Activation("softsign"), lambda x: x / (1 + abs(x))),
        (lambda: nn.LeakyReLU(0.1), lambda x: np.where(x > 0, x, 0.1 * x)),
        (lambda: nn.PReLU(), lambda x: np.where(x > 0, x, 0.25 * x)),
        (lambda: nn.PReLU("ones"), lambda x: x),
        (lambda: nn.ELU(0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(x))),
        (lambda: nn.SELU(), lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
        (lambda: nn.GELU(), lambda x: x * 0.5 * (1 + np.vectorize(math.erf)(x / np.sqrt(2)))),
        (lambda: nn.Swish(), lambda x: x * sigmoid(x)),
        (lambda: nn.Swish(2), lambda x: x * sigmoid(2 * x)),
        (lambda: nn.SiLU(), lambda x: x * sigmoid(x)),
    ],
)
def test_activations(layer, function):
    check(layer(), function(X))


def test_prelu_for_each_channel():
    slopes = np.array([0.1, 0.2, 0.3, 0.4], "float32")
    check(nn.PReLU(init.Constant(slopes), in_channels=4), np.where(X > 0, X, slopes[:, None] * X))


def test_activations_refuse_what_they_cannot_use():
    with pytest.raises(AssertionError, match="must not be negative"):
        nn.LeakyReLU(-1)
    with pytest.raises(ValueError, match="beta must be a number"):
        nn.Swish("x")


NAMES = "choose one of 'relu', 'sigmoid', 'softrelu', 'softsign', 'tanh'"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Activation("nosuch"), f"Activation: activation is 'nosuch'; {NAMES}$"),
        (lambda: nn.Dense(3, activation="rleu"), f"Dense: activation is 'rleu'; {NAMES}$"),
        (lambda: nn.Dense(10, 5), f"Dense: activation is 5; {NAMES}$"),
        (
            lambda: nn.Dense(3, activation=nn.LeakyReLU(0.1)),
            f"Dense: activation is .*; {NAMES}; add such a layer behind this one",
        ),
        (lambda: nn.Conv2D(3, 3, activation="gelu"), f"Conv2D: activation is 'gelu'; {NAMES}$"),
        (lambda: cnn.DeformableConvolution(3, activation=""), f"DeformableConvolution: activation is ''; {NAMES}$"),
        (lambda: rnn.RNNCell(3, activation="rleu"), f"RNNCell: activation is 'rleu'; {NAMES}$"),
        (lambda: rnn.LSTMCell(3, recurrent_activation=2), f"LSTMCell: recurrent_activation is 2; {NAMES}$"),
        (lambda: contrib_rnn.Conv1DGRUCell((2, 5), 3, 3, 3, activation="tahn"), f"Conv1DGRUCell: activation is 'tahn'; {NAMES}$"),
    ],
)
def test_unknown_activations_are_refused_when_the_layer_is_made(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Dense(-1), "Dense: units is -1, wants 1 or more"),
        (lambda: nn.Dense(2.5), "Dense: units must be an int, got 2.5"), (lambda: nn.Dense(2.0), "Dense: units must be an int, got 2.0"),
        (lambda: nn.Dense(None), "Dense: units must be an int, got None"),
        (lambda: nn.Embedding(0, 3), "Embedding: input_dim is 0"), (lambda: nn.Embedding(3, 1.5), "Embedding: output_dim must be an int"),
        (lambda: nn.Conv2D(0, 3), "Conv2D: channels is 0"), (lambda: nn.Conv1DTranspose(2.5, 3), "Conv1DTranspose: channels must be"),
        (lambda: cnn.DeformableConvolution(0), "DeformableConvolution: channels is 0"),
        (lambda: rnn.LSTM(0), "LSTM: hidden_size is 0"), (lambda: rnn.GRUCell(2.5), "GRUCell: hidden_size must be an int, got 2.5"),
        (lambda: contrib_rnn.Conv1DRNNCell((2, 5), 0, 3, 3), "Conv1DRNNCell: hidden_channels is 0"),
        (lambda: nn.Dropout(2), "Dropout: rate is 2; a number from 0 to below 1"),
        (lambda: nn.Dropout(1.5), "Dropout: rate is 1.5; a number"),
        (lambda: nn.Dropout("a"), "Dropout: rate is 'a'; a number"), (lambda: nn.Dropout(None), "Dropout: rate is None; a number"),
    ],
)  # fmt: skip
def test_sizes_and_rates_that_no_call_could_use_are_refused_when_the_layer_is_made(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_dense_layer_of_no_units_can_be_made_and_not_used():
    layer = nn.Dense(0)
    layer.initialize()
    with pytest.raises(MXNetError, match="FullyConnected: num_hidden is required, got 0"):
        layer(nd.ones((2, 3)))


def test_rates_that_some_call_can_use():
    x = nd.ones((2, 3))
    for rate in (1, -0.5, np.float32(0.5)):  # MXNet, too, does nothing in prediction
        assert (nn.Dropout(rate)(x).asnumpy() == 1).all()
    assert nn.Dense(np.int64(3), in_units=2).weight.shape == (3, 2)


# ---- normalization


def standardized(x, axes, epsilon=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


@pytest.mark.parametrize("axis", [-1, 1])
def test_layer_norm(axis):
    layer = nn.LayerNorm(axis=axis, epsilon=1e-3, gamma_initializer=init.Constant(2), beta_initializer=init.One())
    check(layer, standardized(X, axis, 1e-3) * 2 + 1)
    assert layer.gamma.shape == (X.shape[axis],)


@pytest.mark.parametrize("axis", [1, 2])
def test_instance_norm(axis):
    layer = nn.InstanceNorm(axis=axis)
    check(layer, standardized(X, 3 - axis))
    assert layer.gamma.grad_req == "null"
    assert layer.beta.shape == (X.shape[axis],)
    assert nn.InstanceNorm(scale=True, center=False).gamma.grad_req == "write"


def test_group_norm():
    groups = X.reshape(2, 2, 12)
    layer = nn.GroupNorm(2, gamma_initializer=init.Constant(np.array([1, 2])))
    check(layer, (standardized(groups, 2) * np.array([[1], [2]])).reshape(X.shape))


def test_containers_as_graphs():
    net = nn.HybridConcurrent(axis=2)
    net.add(nn.Identity(), nn.HybridLambda("tanh"))
    check(net, np.concatenate([X, np.tanh(X)], 2))
