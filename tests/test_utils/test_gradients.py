"""Checks of graphs: each passes for a right operator, and fails for a wrong expectation or a wrong gradient."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import nd
from minimx.base import ArgumentError, ShapeError
from minimx.test_utils import (
    check_numeric_gradient,
    check_speed,
    check_symbolic_backward,
    check_symbolic_forward,
    numeric_grad,
    simple_forward,
)

X, Y = mx.sym.Variable("x"), mx.sym.Variable("y")
A, B = np.array([[1.0, 2], [3, 4]]), np.array([[0.5, -1], [2, 1]])


def test_simple_forward():
    np.testing.assert_array_equal(simple_forward(X * Y, x=A, y=B), A * B)
    both = simple_forward(mx.sym.Group([X + Y, X - Y]), x=A, y=B)
    np.testing.assert_array_equal(both[1], A - B)


def test_forward():
    outputs = check_symbolic_forward(X * Y, [A, B], [A * B])
    assert isinstance(outputs[0], nd.NDArray)
    product = X * Y
    check_symbolic_forward(product, {"x": A, "y": B}, {product.list_outputs()[0]: A * B}, dtype="asnumpy")
    with pytest.raises(AssertionError, match=r"EXPECTED_.* and FORWARD_.*differ in 4 of 4"):
        check_symbolic_forward(X * Y, [A, B], [A + B + 9])
    norm = mx.sym.BatchNorm(X, fix_gamma=False, name="bn")
    states = {"bn_moving_mean": np.zeros(2), "bn_moving_var": np.ones(2)}
    check_symbolic_forward(norm, [A, np.ones(2), np.zeros(2)], [A], aux_states=states, rtol=1e-2, atol=1e-2)
    check_symbolic_forward(norm, [A, np.ones(2), np.zeros(2)], [A], aux_states=list(states.values()), rtol=1e-2, atol=1e-2)


def test_backward():
    head = np.array([[1.0, 2], [0, 1]])
    grads = check_symbolic_backward(X * Y, [A, B], [head], [head * B, head * A])
    assert set(grads) == {"x", "y"}
    check_symbolic_backward(X * Y, [A, B], [nd.array(head)], {"y": head * A}, grad_req="add")
    product = X * Y
    check_symbolic_backward(product, [A, B], {product.list_outputs()[0]: head}, [head * B, head * A], grad_req=["write", "add"])
    check_symbolic_backward(X * Y, [A, B], [head], [head * B, head * A], grad_req={"x": "write", "y": "null"})
    check_symbolic_backward(mx.sym.make_loss(X * X), [A], None, [2 * A], dtype=np.float64)
    with pytest.raises(AssertionError, match=r"EXPECTED_x .* BACKWARD_x"):
        check_symbolic_backward(X * Y, [A, B], [head], [head * B + 1, head * A])
    with pytest.raises(AssertionError):
        check_symbolic_backward(X * Y, [A, B], [head], [head * B + 1, head * A], grad_req="add")


def test_numeric_gradients():
    executor = mx.sym.sum(X * X * Y).bind(mx.cpu(), {"x": nd.array(A), "y": nd.array(B)}, grad_req="null")
    found = numeric_grad(executor, {"x": A.astype(np.float32), "y": B.astype(np.float32)}, eps=2**-7)
    np.testing.assert_allclose(found["x"], 2 * A * B, atol=2e-2)
    np.testing.assert_allclose(found["y"], A * A, atol=2e-2)
    assert found["x"].dtype == np.float32
    np.testing.assert_array_equal(executor.arg_dict["x"].asnumpy(), A)  # as they were


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gradients_against_differences(dtype):
    check_numeric_gradient(mx.sym.tanh(X) * Y, [A / 4, B], dtype=dtype)
    check_numeric_gradient(X * Y, {"x": A, "y": B}, grad_nodes=["y"], dtype=dtype)
    check_numeric_gradient(X * Y, [A, B], grad_nodes={"x": "add", "y": "null"}, dtype=dtype)
    norm = mx.sym.BatchNorm(X, fix_gamma=False, name="bn")
    check_numeric_gradient(
        norm, [np.random.RandomState(0).normal(size=(6, 2)), np.ones(2), np.zeros(2)], [np.zeros(2), np.ones(2)], 1e-2, 5e-2, 5e-2,
        dtype=dtype,
    )  # fmt: skip


def test_a_wrong_gradient_is_found():
    """A gradient that is stopped is zero, where differences are not."""
    with pytest.raises(AssertionError, match=r"NUMERICAL_x .* and BACKWARD_x .*differ in 4 of 4"):
        check_numeric_gradient(mx.sym.BlockGrad(X) * X, [A])


def test_speed():
    assert check_speed(X * Y, {"x": A, "y": B}, N=2) > 0
    assert check_speed(X * Y, N=2, typ="forward", x=(2, 2), y=(2, 2)) > 0
    with pytest.raises(ArgumentError, match='"whole" or "forward"'):
        check_speed(X, {"x": A}, typ="backward")


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: check_symbolic_forward(X, {"z": A}, [A]), ArgumentError, "values are given for z; the symbol has x"),
        (lambda: check_symbolic_forward(X * Y, [A], [A]), ArgumentError, "a list of 2 arrays is wanted, for x, y"),
        (lambda: check_symbolic_forward(X, [A], [A], dtype="int32"), ArgumentError, 'float64, or "asnumpy"'),
        (lambda: check_numeric_gradient(X, [A], dtype="asnumpy"), ArgumentError, "dtype must be np.float16"),
        (lambda: check_numeric_gradient(X, [A], grad_nodes="x"), ArgumentError, "grad_nodes must be a list"),
        (lambda: check_numeric_gradient(X, [A], grad_stype_dict={"x": "csr"}), ArgumentError, "arrays are dense"),
        (lambda: check_symbolic_backward(X, [A], [A], [A], grad_stypes={"x": "csr"}), ArgumentError, "arrays are dense"),
        (lambda: check_numeric_gradient(mx.sym.Group([X, X]), [A]), ShapeError, "a symbol with one output"),
    ],
)
def test_bad_input(call, error, says):
    with pytest.raises(error, match=says):
        call()
