"""foreach, while_loop and cond on arrays: what they compute, what they record, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from minimx import autograd, nd
from minimx.base import ArgumentError, DTypeError, MXNetError, ShapeError
from minimx.nd.nesting import StructureError, flatten, regroup


def values(result):
    return [values(each) for each in result] if isinstance(result, list) else result.asnumpy().tolist()


# ---- foreach


@pytest.mark.parametrize("length", [1, 2, 7])
def test_foreach_is_a_loop(length):
    data = np.random.default_rng(length).normal(size=(length, 2)).astype("float32")
    outputs, last = nd.contrib.foreach(lambda x, total: (x + total, x + total), nd.array(data), nd.zeros((2,)))
    np.testing.assert_allclose(outputs.asnumpy(), data.cumsum(0), rtol=1e-6)
    np.testing.assert_allclose(last.asnumpy(), data.sum(0), rtol=1e-6, atol=1e-6)


def test_foreach_gives_rows_of_one_element_where_data_have_one_axis():
    seen = []
    outputs, _ = nd.contrib.foreach(lambda x, s: (seen.append(x.shape) or x, s), nd.array([1, 2, 3]), [])
    assert seen == [(1,)] * 3
    assert outputs.shape == (3, 1)


@pytest.mark.parametrize(
    ("data", "states", "body", "expected"),
    [
        ([[1.0], [2.0]], 0, lambda x, s: ([], s + x), ([], [3.0])),
        ([[1.0], [2.0]], [0], lambda x, s: ([x], [s[0] + x]), ([[[1.0], [2.0]]], [[3.0]])),
        ([[1.0], [2.0]], [0, [1]], lambda x, s: ([x, [s[1][0]]], s), ([[[1.0], [2.0]], [[[1.0], [1.0]]]], [[0.0], [[1.0]]])),
        ([[1.0], [2.0]], [], lambda x, s: (x * 2, s), ([[2.0], [4.0]], [])),
        ([[1.0], [2.0]], 0, lambda x, s: (s, s + 1), ([[0.0], [1.0]], [2.0])),
    ],
    ids=["no outputs", "lists", "nested", "no states", "data are not used"],
)  # fmt: skip
def test_foreach_keeps_structures(data, states, body, expected):
    def arrays(value):
        return [arrays(each) for each in value] if isinstance(value, list) else nd.array([value])

    outputs, last = nd.contrib.foreach(body, nd.array(data), arrays(states))
    assert (values(outputs), values(last)) == expected


def test_foreach_over_nested_data():
    data = [nd.array([1, 2]), [nd.array([[10, 20], [30, 40]])]]
    outputs, _ = nd.contrib.foreach(lambda x, s: (x[0] * x[1][0], s), data, [])
    assert values(outputs) == [[10, 20], [60, 80]]


def test_foreach_gradient():
    data, start, w = nd.array([[1, 2], [3, 4], [5, 6]]), nd.array([1, 1]), nd.array([2, 3])
    for array in (data, start, w):
        array.attach_grad()
    with autograd.record():
        outputs, last = nd.contrib.foreach(lambda x, s: (s * x, s * w), data, start)
        total = outputs.sum() + last.sum()
    total.backward()
    # outputs: start * w**t * x[t], last: start * w**3
    assert data.grad.asnumpy().tolist() == [[1, 1], [2, 3], [4, 9]]
    assert start.grad.asnumpy().tolist() == [1 + 2 * 3 + 4 * 5 + 8, 2 + 3 * 4 + 9 * 6 + 27]
    assert w.grad.asnumpy().tolist() == [3 + 2 * 2 * 5 + 3 * 4, 4 + 2 * 3 * 6 + 3 * 9]


def test_gradient_of_data_is_put_together_once():
    """Not an array as large as the data for each step."""
    data = nd.ones((50, 2))
    data.attach_grad()
    with autograd.record():
        outputs, _ = nd.contrib.foreach(lambda x, s: (x * x, s), data, [])
    readers = [node for node in autograd.topological_order([outputs.node]) if (data.node, 0) in node.parents]
    assert [reader.op.name for reader in readers] == ["SliceChannel"]
    outputs.backward()
    assert (data.grad.asnumpy() == 2).all()


def test_second_order():
    data, w = nd.array([[1], [2], [3]]), nd.array([2])
    w.attach_grad()
    with autograd.record():
        _, last = nd.contrib.foreach(lambda x, s: ([], s * w * x), data, nd.ones((1,)))  # 6 w**3
        first = autograd.grad(last, w, create_graph=True)
    first.backward()
    assert first.asscalar() == 6 * 3 * 4
    assert w.grad.asscalar() == 6 * 6 * 2


# ---- while_loop


@pytest.mark.parametrize(("limit", "steps"), [(3, 3), (5, 5), (6, 6), (9, 6)])
def test_while_loop_stops_and_fills_up(limit, steps):
    outputs, (i, total) = nd.contrib.while_loop(
        lambda i, s: i <= 5, lambda i, s: ([i + s], [i + 1, s + i]), (nd.array([0], dtype="int64"), nd.array([1], dtype="int64")), limit
    )  # fmt: skip
    expected = [1, 2, 4, 7, 11, 16][:steps]
    assert outputs[0].asnumpy()[:, 0].tolist() == expected + [0] * (limit - steps)
    assert outputs[0].dtype == np.int64
    assert (i.asscalar(), total.asscalar()) == (steps, expected[-1])


def test_while_loop_that_does_not_begin():
    start = nd.array([7])
    outputs, last = nd.contrib.while_loop(lambda x: x < 5, lambda x: (x, x + 1), start, max_iterations=4)
    assert outputs == []
    assert last is start
    assert nd.contrib.while_loop(lambda x: x < 9, lambda x: (x, x + 1), start, max_iterations=0)[0] == []


def test_while_loop_takes_numbers_and_nested_lists():
    outputs, (count, [x]) = nd.contrib.while_loop(
        lambda n, x: n < 3, lambda n, x: (None, (n + 1, [x[0] * 2])), (0, [nd.array([1])]), max_iterations=nd.array([8])
    )
    assert outputs == []
    assert count == 3
    assert x.asscalar() == 8


def test_while_loop_gradient_ignores_the_rows_that_were_filled_up():
    x = nd.array([2])
    x.attach_grad()
    with autograd.record():
        outputs, last = nd.contrib.while_loop(lambda s: s < 10, lambda s: (1 / s, s * x), nd.array([1]), max_iterations=8)
        total = outputs.sum() + last
    total.backward()
    # 1/1 + 1/x + 1/x**2 + 1/x**3 + x**4
    assert x.grad.asscalar() == -1 / 4 - 2 / 8 - 3 / 16 + 4 * 8
    assert outputs.asnumpy()[4:].tolist() == [[0]] * 4


# ---- cond


def test_cond_calls_one_function():
    calls = []
    x = nd.array([3])
    for pred, expected in ((x > 2, "then"), (x > 5, "else"), (True, "then"), (0, "else")):
        nd.contrib.cond(pred, lambda: calls.append("then"), lambda: calls.append("else"))
        assert calls.pop() == expected
        assert not calls
    assert nd.contrib.cond(x > 2, lambda: [x, [x + 1]], lambda: x)[1][0].asscalar() == 4


def test_cond_gradient_is_that_of_the_branch():
    x = nd.array([0])
    x.attach_grad()
    with autograd.record():
        y = nd.contrib.cond(x > 0, lambda: x.log(), lambda: x * 3)
    y.backward()
    assert x.grad.asscalar() == 3


# ---- tests of numbers


def test_isinf_isfinite_isnan():
    x = nd.array([0, -1, np.inf, -np.inf, np.nan])
    assert nd.contrib.isinf(x).asnumpy().tolist() == [0, 0, 1, 1, 0]
    assert nd.contrib.isfinite(x).asnumpy().tolist() == [1, 1, 0, 0, 0]
    assert nd.contrib.isnan(x).asnumpy().tolist() == [0, 0, 0, 0, 1]


# ---- what is refused

one, two = nd.ones((1,)), nd.ones((2, 1))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: nd.contrib.foreach(lambda x, s: (x, s), 1, one), AssertionError, "data must be an NDArray or"),
        (lambda: nd.contrib.foreach(lambda x, s: (x, s), [two, "a"], one), AssertionError, "data must be .* got 'a'"),
        (lambda: nd.contrib.foreach(lambda x, s: (x, s), [], one), StructureError, "data is empty"),
        (lambda: nd.contrib.foreach(lambda x, s: (x, s), two, 1), AssertionError, "init_states must be"),
        (lambda: nd.contrib.foreach(lambda x, s: (1, s), two, one), AssertionError, "the outputs of body must be"),
        (lambda: nd.contrib.foreach(lambda x, s: x, two, one), ArgumentError, "body must return a pair"),
        (lambda: nd.contrib.foreach(lambda x: x, two, one), ArgumentError, "body cannot be called with 2 arguments"),
        (lambda: nd.contrib.foreach(5, two, one), ArgumentError, "body must be a function, got 5"),
        (lambda: nd.contrib.foreach(lambda x, s: (x, s), [two, nd.ones((3, 1))], one), ShapeError, "equally long"),
        (lambda: nd.contrib.foreach(lambda x, s: (x, s), nd.array(np.ones((0, 1))), one), ShapeError, "length 0"),
        (lambda: nd.contrib.foreach(lambda x, s: (s, s.tile((2,))), two, one), ShapeError, r"\(1,\) in the first .* \(2,\) in step 1"),
        (lambda: nd.contrib.foreach(lambda x, s: ([x] * s.size, s.tile((2,))), two, one), StructureError, "another structure in step 1"),
        (lambda: nd.contrib.while_loop(lambda x: x < 5, lambda x: (x, x), one), ValueError, "max_iterations should be specified"),
        (lambda: nd.contrib.while_loop(lambda x: x < 5, lambda x: (x, x), one, "x"), ValueError, "whole number, got 'x'"),
        (lambda: nd.contrib.while_loop(lambda x: x < 5, lambda x: (x, x), one, -1), ValueError, "wants 0 or more"),
        (lambda: nd.contrib.while_loop(lambda x: x < 5, lambda x: (x, x), [], 3), ValueError, "at least one element"),
        (lambda: nd.contrib.while_loop(lambda x: x < 5, lambda x: (x, x), "abc", 3), AssertionError, "loop_vars must be"),
        (lambda: nd.contrib.while_loop(lambda x: x < 5, lambda x: (x, [x, x]), one, 3), ValueError, "returns 2 loop_vars, it got 1"),
        (lambda: nd.contrib.while_loop(lambda x: x < 5, lambda x: (x, x), two, 3), ValueError, r"shape \(2, 1\); an array of one"),
        (lambda: nd.contrib.while_loop(lambda x: "no", lambda x: (x, x), one, 3), ValueError, "got 'no'"),
        (lambda: nd.contrib.cond(two, lambda: 1, lambda: 2), ValueError, "pred has shape"),
        (lambda: nd.contrib.cond(one, lambda x: 1, lambda: 2), ArgumentError, "then_func cannot be called with 0 arguments"),
        (lambda: nd.contrib.cond(one, None, lambda: 2), ArgumentError, "then_func must be a function, got None"),
    ],
)  # fmt: skip
def test_bad_calls(call, error, match):
    with pytest.raises(error, match=match) as caught:
        call()
    assert isinstance(caught.value, MXNetError)


def test_errors_inside_a_function_are_its_own():
    def body(x, s):
        raise TypeError("mine")

    with pytest.raises(TypeError, match=r"^mine$"):
        nd.contrib.foreach(body, two, one)
    with pytest.raises(DTypeError):
        nd.contrib.foreach(lambda x, s: (x + s, s), two, one.astype("int32"))


def test_formats():
    flat, form = flatten((one, [two, ()]), nd.NDArray, "it")
    assert form == [0, [0, []]]
    assert [id(each) for each in flat] == [id(one), id(two)]
    assert regroup("ab", form) == ["a", ["b", []]]


@pytest.mark.parametrize("limit", [2.5, nd.array([0.5]), np.float32(1.5), "some", 1j, float("nan"), float("inf")], ids=str)
def test_steps_are_whole_numbers(limit):
    with pytest.raises(ArgumentError, match="max_iterations must be a whole number"):
        nd.contrib.while_loop(lambda x: x < 9, lambda x: (x, x + 1), nd.array([1]), max_iterations=limit)
