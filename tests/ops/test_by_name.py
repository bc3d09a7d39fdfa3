"""`nd._internal` and `sym._internal`: operators by MXNet's names, called as its scripts do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import nd
from minimx.base import ArgumentError
from minimx.nd import NDArray

X, Y = [[1.0, -2.0, 3.0]], [[4.0, 5.0, -6.0]]

CALLS: dict[str, tuple[Callable[[Any, Any, Any], Any], Any]] = {
    "_plus": (lambda i, x, y: i._plus(x, y), [[5, 3, -3]]),
    "_grad_add": (lambda i, x, y: i._grad_add(lhs=x, rhs=y), [[5, 3, -3]]),
    "_maximum": (lambda i, x, y: i._maximum(x, y), [[4, 5, 3]]),
    "_plus_scalar": (lambda i, x, y: i._plus_scalar(x, scalar=2), [[3, 0, 5]]),
    "_plus_scalar, by position": (lambda i, x, y: i._plus_scalar(x, 2), [[3, 0, 5]]),
    "_plus_scalar, as text": (lambda i, x, y: i._plus_scalar(data=x, scalar="2"), [[3, 0, 5]]),
    "_RMinusScalar": (lambda i, x, y: i._RMinusScalar(x, scalar=2), [[1, 4, -1]]),
    "_scatter_elemwise_div": (lambda i, x, y: i._scatter_elemwise_div(y, x), [[4, -2.5, -2]]),
    "_scatter_minus_scalar": (lambda i, x, y: i._scatter_minus_scalar(x, scalar=1), [[0, -3, 2]]),
    "_square_sum": (lambda i, x, y: i._square_sum(x, axis=1), [14]),
    "_broadcast_backward": (lambda i, x, y: i._broadcast_backward(x, axis=1, keepdims=True), [[2]]),
    "_copy": (lambda i, x, y: i._copy(x), X),
    "_identity_with_attr_like_rhs": (lambda i, x, y: i._identity_with_attr_like_rhs(x, y), X),
    "_slice_assign_scalar": (lambda i, x, y: i._slice_assign_scalar(x, scalar=7, begin=(0, 1), end=(1, 2)), [[1, 7, 3]]),
    "_zeros": (lambda i, x, y: i._zeros(shape=(1, 2)), [[0, 0]]),
    "_zeros, by position": (lambda i, x, y: i._zeros((1, 2)), [[0, 0]]),
    "_zeros_without_dtype": (lambda i, x, y: i._zeros_without_dtype(shape=(1, 2)), [[0, 0]]),
    "_full": (lambda i, x, y: i._full(shape=(2,), value=3, dtype="int32", ctx=mx.cpu()), [3, 3]),
    "_arange": (lambda i, x, y: i._arange(start=1, stop=7, step=2), [1, 3, 5]),
    "add_n": (lambda i, x, y: i.add_n(x, y, x), [[6, 1, 0]]),
}


@pytest.mark.parametrize("name", CALLS)
def test_arrays_and_graphs(name: str) -> None:
    call, wanted = CALLS[name]
    x, y = nd.array(X), nd.array(Y)
    np.testing.assert_array_equal(call(nd._internal, x, y).asnumpy(), np.array(wanted))
    symbol = call(mx.sym._internal, mx.sym.var("x"), mx.sym.var("y"))
    given = {key: value for key, value in (("x", x), ("y", y)) if key in symbol.list_arguments()}
    np.testing.assert_array_equal(symbol.eval(mx.cpu(), **given)[0].asnumpy(), np.array(wanted))


def test_writing_into_an_array() -> None:
    x, out = nd.array(X), nd.zeros((1, 3))
    assert nd._internal._set_value(2.5, out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), [[2.5, 2.5, 2.5]])
    nd._internal._copyto(x, out=out)
    np.testing.assert_array_equal(out.asnumpy(), X)
    nd._internal._mul_scalar(x, scalar=2, out=out)
    np.testing.assert_array_equal(out.asnumpy(), [[2, -4, 6]])
    hot = nd.zeros((2, 3))
    nd._internal._onehot_encode(nd.array([2, 0]), hot, out=hot)
    np.testing.assert_array_equal(hot.asnumpy(), [[0, 0, 1], [1, 0, 0]])


def test_random_numbers() -> None:
    drawn = nd._internal._random_uniform(low=2, high=3, shape=(50,), dtype="float64")
    assert drawn.dtype == np.float64
    assert 2 <= drawn.min().asscalar() <= drawn.max().asscalar() < 3
    assert 2 <= nd._internal._random_uniform(2, 3, shape=(1,)).asscalar() < 3
    classes, _ = nd._internal._sample_unique_zipfian(100, shape=(2, 5))
    assert classes.shape == (2, 5)
    assert nd._internal._sample_normal(nd.zeros((2,)), nd.ones((2,)), shape=(3,)).shape == (2, 3)


def test_names_of_nodes() -> None:
    symbol = mx.sym._internal._plus_scalar(mx.sym.var("x"), scalar=2, name="more")
    assert symbol.list_outputs() == ["more_output"]
    assert symbol.attr_dict() == {"more": {"scalar": "2"}}


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: nd._internal._nothing, AttributeError, "no operator of this name can be called"),
        (lambda x: mx.sym._internal._nothing, AttributeError, "'minimx.sym._internal' has no attribute '_nothing'"),
        (lambda x: nd._internal._foreach, AttributeError, "can be called"),
        (lambda x: nd._internal._plus_scalar(x), ArgumentError, "scalar is required"),
        (lambda x: nd._internal._plus_scalar(x, 1, 2), ArgumentError, "3 arguments are given by position; name those"),
        (lambda x: nd._internal._plus_scalar(x, shape=2), ArgumentError, "unknown argument 'shape'; it takes scalar"),
        (lambda x: nd._internal._plus(x), ArgumentError, "input 'rhs' is missing"),
        (lambda x: nd._internal._full((1, 2), 3), ArgumentError, "name those that are no inputs: value, shape, dtype"),
        (lambda x: nd._internal._zeros((1, 2), "int32", 1), ArgumentError, "name those that are no inputs: shape, dtype"),
        (lambda x: nd._internal._zeros(shape=(1, 2), out=3), ArgumentError, "out must be an NDArray"),
        (lambda x: mx.sym._internal._zeros(shape=(1, 2), out=3), ArgumentError, "unknown argument out"),
    ],
)
def test_errors(call: Callable[[NDArray], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(nd.array(X))
