"""The book's LeNet: its scores against NumPy, one definition for arrays, Symbols and Gluon, and data that is always the same."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, d2l, nd, sym
from minimx.base import ArgumentError
from minimx.d2l.network import LENET_SHAPES, RATE


def conv(x: np.ndarray, w: np.ndarray, b: np.ndarray, pad: int) -> np.ndarray:
    """A convolution with 5 x 5 filters, relu and 2 x 2 maxima, one filter place at a time."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    height = x.shape[2] - 4
    y = b.reshape((1, -1, 1, 1)) + sum(
        np.einsum("nchw,oc->nohw", x[:, :, i : i + height, j : j + height], w[:, :, i, j]) for i in range(5) for j in range(5)
    )
    y = np.maximum(y, 0)
    return np.maximum.reduce([y[:, :, i::2, j::2] for i in (0, 1) for j in (0, 1)])


def scores_of(X: np.ndarray, params: list[np.ndarray]) -> np.ndarray:
    w1, b1, w2, b2, w3, b3, w4, b4, w5, b5 = params
    h = conv(conv(X, w1, b1, 2), w2, b2, 0).reshape((len(X), -1))
    h = np.maximum(np.maximum(h @ w3.T + b3, 0) @ w4.T + b4, 0)
    return h @ w5.T + b5


def test_scores_and_losses_are_those_of_numpy():
    params = d2l.lenet_params()
    X, y = d2l.lenet_batches(1)[0]
    wanted = scores_of(X.asnumpy(), [each.asnumpy() for each in params])
    scores = d2l.lenet(X, params)
    np.testing.assert_allclose(scores.asnumpy(), wanted, atol=1e-4)  # float32, sums of 400 products
    exps = np.exp(wanted)
    losses = -np.log(exps[np.arange(16), y.asnumpy()] / exps.sum(axis=1))
    np.testing.assert_allclose(d2l.lenet_loss(scores, y).asnumpy(), losses, atol=1e-4)  # the same


def test_a_step_goes_down_the_gradient_of_the_mean_loss():
    params, again = d2l.lenet_params(), d2l.lenet_params()
    X, y = d2l.lenet_batches(1)[0]
    loss = d2l.lenet_step(params, X, y)
    with autograd.record():
        mean = d2l.lenet_loss(d2l.lenet(X, again), y).mean()
    mean.backward()
    assert loss.asscalar() == pytest.approx(mean.asscalar(), abs=1e-6)
    for moved, start in zip(params, again):
        np.testing.assert_allclose(moved.asnumpy(), (start - RATE * start.grad).asnumpy(), atol=1e-6)  # float32
    assert d2l.lenet_loss(d2l.lenet(X, params), y).mean() < mean


def test_arrays_symbols_and_gluon_are_one_network():
    params, (X, _) = d2l.lenet_params(), d2l.lenet_batches(1)[0]
    wanted = d2l.lenet(X, params).asnumpy()
    graph = d2l.lenet(sym.var("X"), [sym.var(name) for name in LENET_SHAPES])
    (found,) = graph.eval(X=X, **dict(zip(LENET_SHAPES, params)))
    np.testing.assert_allclose(found.asnumpy(), wanted, atol=1e-5)  # float32
    net = d2l.lenet_net()
    assert list(net.collect_params()) == [f"lenet_{name}" for name in LENET_SHAPES]
    for _ in range(2):
        np.testing.assert_allclose(net(X).asnumpy(), wanted, atol=1e-5)  # float32
        net.hybridize()


def test_a_block_on_several_devices_has_the_same_weights_on_each():
    with mx.device.simulate_gpus(2):
        places = [mx.gpu(0), mx.gpu(1)]
        net = d2l.lenet_net(places)
        assert net.w1.list_ctx() == places
        for place in places:
            np.testing.assert_array_equal(net.w1.data(place).asnumpy(), d2l.lenet_params()[0].asnumpy())
        assert d2l.lenet_params(mx.gpu(1))[0].context == mx.gpu(1)


def test_weights_and_batches_are_always_the_same_and_move_no_generator():
    mx.random.seed(5)
    np.random.seed(5)
    first = nd.random.normal(shape=3).asnumpy(), np.random.rand()
    mx.random.seed(5)
    np.random.seed(5)
    params, batches = d2l.lenet_params(), d2l.lenet_batches()
    again = nd.random.normal(shape=3).asnumpy(), np.random.rand()
    np.testing.assert_array_equal(first[0], again[0])
    assert first[1] == again[1]
    assert [each.shape for each in params] == list(LENET_SHAPES.values())
    assert sum(each.size for each in params) == 61_706
    for one, other in zip(params, d2l.lenet_params()):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())
    assert [(X.shape, y.shape) for X, y in batches] == [((16, 1, 28, 28), (16,))] * 10
    data = d2l.load_fashion_mnist(source="package", announce=False)
    X, y = batches[3]
    np.testing.assert_allclose(X.asnumpy()[:, 0] * 255, data.train_images[48:64], atol=1e-4)  # float32 of a byte
    np.testing.assert_array_equal(y.asnumpy(), data.train_labels[48:64])


@pytest.mark.parametrize(("count", "size"), [(0, 16), (1, 0), (400, 16)])
def test_batches_that_cannot_be_had(count, size):
    with pytest.raises(ArgumentError, match=f"{count} batches of {size} images are wanted"):
        d2l.lenet_batches(count, size)
