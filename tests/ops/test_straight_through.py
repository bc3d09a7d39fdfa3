"""Gradients that are not those of the value: estimators that pass them on, a factor, a penalty; and that they go through graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, nd

X = np.array([[0.5, -1.5, 2.4], [0.0, -0.2, 1.6]], np.float32)


@pytest.mark.parametrize(
    ("call", "value", "factor"),
    [
        (nd.contrib.round_ste, [[1, -2, 2], [0, 0, 2]], 1.0),
        (nd.contrib.sign_ste, [[1, -1, 1], [0, -1, 1]], 1.0),
        (lambda x: nd.contrib.gradientmultiplier(x, scalar=-3), X, -3.0),
        (lambda x: nd.contrib.gradientmultiplier(x, 0.25, is_int=False), X, 0.25),
        (nd.contrib.gradientmultiplier, X, 1.0),
    ],
)
def test_value_and_gradient(call: Callable[[Any], Any], value: Any, factor: float) -> None:
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = call(x)
        (slope,) = autograd.grad((y * y * 0.5).sum(), [x], create_graph=True)  # y * factor
        total = slope.sum()
    total.backward()
    np.testing.assert_array_equal(y.asnumpy(), np.array(value, np.float32))
    np.testing.assert_allclose(slope.asnumpy(), factor * np.array(value, np.float32), rtol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), np.full_like(X, factor * factor), rtol=1e-6)


def test_hybridized() -> None:
    """Rounding in a graph learns like the identity."""

    class Rounded(mx.gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return F.contrib.gradientmultiplier(F.contrib.round_ste(x), scalar=2)

    net = Rounded()
    net.hybridize()
    x = nd.array(X)
    x.attach_grad()
    with autograd.record():
        y = net(x)
    y.backward(nd.array(X))
    np.testing.assert_array_equal(y.asnumpy(), nd.round(x).asnumpy())
    np.testing.assert_array_equal(x.grad.asnumpy(), 2 * X)


ACTIVATIONS = np.array([[0.2, 0.9], [0.4, 0.7]], np.float32)


def bound(penalty: float = 0.5) -> Any:
    symbol = mx.sym.IdentityAttachKLSparseReg(mx.sym.var("x"), sparseness_target=0.2, penalty=penalty, momentum=0.75, name="kl")
    assert symbol.list_auxiliary_states() == ["kl_moving_avg"]
    assert symbol.attr_dict()["kl_moving_avg"]["__init__"] == '["zero", {}]'
    executor = symbol.simple_bind(mx.cpu(), x=(2, 2))
    assert executor.aux_dict["kl_moving_avg"].shape == (2,)
    executor.aux_dict["kl_moving_avg"][:] = nd.array([0.1, 0.4])
    return executor


def test_penalty() -> None:
    """The mean moves to 0.75 [0.1, 0.4] + 0.25 [0.3, 0.8]; the penalty's gradient is 0.5 (0.8 / (1 - mean) - 0.2 / mean)."""
    executor = bound()
    for _ in range(2):  # forward passes alone leave the mean as it is, even in training
        outputs = executor.forward(is_train=True, x=nd.array(ACTIVATIONS))
    executor.backward([nd.array([[1, 2], [3, 4]])])
    np.testing.assert_array_equal(outputs[0].asnumpy(), ACTIVATIONS)
    np.testing.assert_allclose(executor.aux_dict["kl_moving_avg"].asnumpy(), [0.15, 0.5], rtol=1e-6)
    slope = 0.5 * (0.8 / np.array([0.85, 0.5]) - 0.2 / np.array([0.15, 0.5]))
    np.testing.assert_allclose(executor.grad_dict["x"].asnumpy(), [[1, 2], [3, 4]] + slope, rtol=1e-6)


def test_penalty_on_arrays() -> None:
    x, mean = nd.array(ACTIVATIONS), nd.array([0.1, 0.4])
    x.attach_grad()
    with autograd.record():
        y = nd.IdentityAttachKLSparseReg(x, 0.2, 0.5, 0.75, moving_avg=mean)
    y.backward()
    np.testing.assert_allclose(mean.asnumpy(), [0.15, 0.5], rtol=1e-6)
    np.testing.assert_allclose(
        x.grad.asnumpy()[0], 1 + 0.5 * (0.8 / np.array([0.85, 0.5]) - 0.2 / np.array([0.15, 0.5])), rtol=1e-6
    )
