"""The loop's pieces: each against NumPy, and together on a line that they must find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, d2l, nd
from minimx.base import ArgumentError, ShapeError
from minimx.gluon import nn


def test_synthetic_data_lies_on_the_line():
    mx.random.seed(1)
    w = nd.array([2, -3.4])
    X, y = d2l.synthetic_data(w, 4.2, 1000)
    assert (X.shape, y.shape) == ((1000, 2), (1000, 1))
    noise = y.asnumpy()[:, 0] - (X.asnumpy() @ w.asnumpy() + 4.2)
    assert abs(noise.mean()) < 0.002
    assert 0.008 < noise.std() < 0.012
    assert abs(X.asnumpy().std() - 1) < 0.1


def test_data_iter_gives_every_example_once_with_its_label():
    X = nd.arange(10).reshape((10, 1))
    batches = list(d2l.data_iter(4, X, X * 10))
    assert [len(features) for features, _ in batches] == [4, 4, 2]
    seen = np.concatenate([features.asnumpy() for features, _ in batches])
    np.testing.assert_array_equal(np.sort(seen[:, 0]), np.arange(10))
    np.testing.assert_array_equal(np.concatenate([labels.asnumpy() for _, labels in batches]), seen * 10)
    with pytest.raises(ArgumentError, match="batch_size=0"):
        next(d2l.data_iter(0, X, X))
    with pytest.raises(ArgumentError, match="10 features, 5 labels"):
        next(d2l.data_iter(2, X, X[:5]))


def test_model_loss_and_step_against_numpy():
    rng = np.random.default_rng(0)
    X, w, b, y = (rng.normal(size=shape).astype("float32") for shape in ((6, 3), (3, 1), (1,), (6,)))
    w_, b_ = nd.array(w), nd.array(b)
    for param in (w_, b_):
        param.attach_grad()
    with autograd.record():
        loss = d2l.squared_loss(d2l.linreg(nd.array(X), w_, b_), nd.array(y))
    loss.backward()
    with pytest.raises(ArgumentError, match=r"parameter 1 has no gradient; call its attach_grad"):
        d2l.sgd([w_, nd.array(b)], lr=0.0, batch_size=6)
    error = X @ w + b - y[:, None]
    np.testing.assert_allclose(loss.asnumpy(), error**2 / 2, rtol=1e-5, atol=1e-6)  # float32 sums in another order
    d2l.sgd([w_, b_], lr=0.1, batch_size=6)
    np.testing.assert_allclose(w_.asnumpy(), w - 0.1 * X.T @ error / 6, rtol=1e-5, atol=1e-6)  # the same
    np.testing.assert_allclose(b_.asnumpy(), b - 0.1 * error.sum(0) / 6, rtol=1e-5, atol=1e-6)  # the same


def test_linear_regression_finds_the_line():
    mx.random.seed(2)
    X, y = d2l.synthetic_data(nd.array([2, -3.4]), 4.2, 500)
    w, b = nd.zeros((2, 1)), nd.zeros(1)
    for param in (w, b):
        param.attach_grad()
    for _ in range(3):
        for features, labels in d2l.data_iter(10, X, y):
            with autograd.record():
                loss = d2l.squared_loss(d2l.linreg(features, w, b), labels)
            loss.backward()
            d2l.sgd([w, b], 0.1, 10)
    np.testing.assert_allclose(w.asnumpy()[:, 0], [2, -3.4], atol=0.01)
    np.testing.assert_allclose(b.asnumpy(), [4.2], atol=0.01)


def test_accuracy():
    scores = nd.array([[1, 2, 0], [5, 1, 1], [0, 0, 9], [0, 3, 9]])
    labels = nd.array([1, 0, 1, 2], dtype="int32")
    assert d2l.accuracy(scores, labels) == 0.75
    batches = [(scores[:3], labels[:3]), (scores[3:], labels[3:])]
    assert d2l.evaluate_accuracy(batches, lambda X: X) == 0.75
    assert d2l.evaluate_accuracy(batches, lambda X: X, ctx=mx.cpu(1)) == 0.75
    with pytest.raises(ArgumentError, match="no batch"):
        d2l.evaluate_accuracy([], lambda X: X)


def test_devices_where_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr("minimx.d2l.training.num_gpus", lambda: 0)
    assert d2l.try_gpu() == mx.cpu()
    assert d2l.try_all_gpus() == [mx.cpu()]


def test_devices_where_there_are_two(monkeypatch):
    monkeypatch.setattr("minimx.d2l.training.num_gpus", lambda: 2)
    assert d2l.try_gpu(1) == mx.gpu(1)
    assert d2l.try_gpu(2) == mx.cpu()
    assert d2l.try_all_gpus() == [mx.gpu(0), mx.gpu(1)]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: d2l.accuracy(nd.ones((4, 3)), nd.zeros((4, 1))), ShapeError, r"scores have shape \(4, 3\), labels \(4, 1\)"),
        (lambda: d2l.accuracy(nd.ones((4, 3)), nd.zeros((1,))), ShapeError, r"labels \(1,\)"),
        (lambda: d2l.accuracy(np.ones((4, 3)), [0] * 4), ArgumentError, "scores and labels must be NDArrays"),
        (lambda: list(d2l.data_iter("2", nd.ones((4, 3)), [1])), ArgumentError, "labels must be an NDArray, got"),
        (lambda: list(d2l.data_iter(1.5, nd.ones((4, 3)), nd.ones((4,)))), ArgumentError, "batch_size must be an int, got 1.5"),
        (lambda: d2l.sgd(None, 0.1, 4), ArgumentError, "params must be a list of NDArrays, got None"),
        (lambda: d2l.sgd(["w"], 0.1, 4), ArgumentError, "parameter 0 must be an NDArray, got 'w'"),
        (lambda: d2l.synthetic_data([1, 2], 0, 3), ArgumentError, "w must be an NDArray"),
        (
            lambda: d2l.evaluate_accuracy(nn.Sequential(), [1]),
            ArgumentError,
            r"evaluate_accuracy\(data, net\): .* in the wrong order$",
        ),
        (
            lambda: d2l.evaluate_accuracy(len, [(1, 2)]),
            ArgumentError,
            "got a builtin_function_or_method and .*: they are in the wrong order",
        ),
        (
            lambda: d2l.evaluate_accuracy([(1, 2)], [(1, 2)]),
            ArgumentError,
            r"net be a network or a function; got .* and \[\(1, 2\)\]$",
        ),
        (lambda: d2l.evaluate_accuracy(3, len), ArgumentError, "data must yield batches, .* got 3 and"),
        (
            lambda: d2l.evaluate_accuracy(nd.ones((4, 3)), len),
            ArgumentError,
            r"a batch of data must be a pair \(X, y\), got an NDArray",
        ),
        (lambda: d2l.try_gpu("0.5"), ArgumentError, "try_gpu: i must be an int"),
    ],
)
def test_wrong_arguments(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    """Labels of another shape would be stretched to fit, and the fraction be wrong without a word."""
    with pytest.raises(error, match=text):
        call()
