"""CachedOp: a graph called like a function, with the caller's autograd mode, for all shapes and devices."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, nd, sym
from minimx.base import MXNetError


def test_inputs_come_in_the_order_of_list_inputs():
    a, b = sym.var("a"), sym.var("b")
    graph = b - a * 2
    cached = nd.CachedOp(graph)
    assert graph.list_inputs() == ["b", "a"]
    assert cached(nd.array([5]), nd.array([1])).asscalar() == 3
    for shape in ((2,), (3, 2)):
        assert cached(nd.ones(shape), nd.ones(shape)).shape == shape


def test_several_outputs():
    x = sym.var("x")
    cached = nd.CachedOp(sym.Group([x, x * 2, *sym.split(x, num_outputs=2, axis=0)]))
    found = cached(nd.array([1, 2]))
    assert [each.asnumpy().tolist() for each in found] == [[1, 2], [2, 4], [1], [2]]


def test_gradients_and_the_training_flag():
    x = sym.var("x")
    cached = nd.CachedOp(sym.Dropout(x * x, p=0.5))
    data = nd.full((50,), 3)
    data.attach_grad()
    with autograd.record():
        y = cached(data)
    y.backward()
    kept = y.asnumpy() != 0
    assert 0 < kept.sum() < 50
    np.testing.assert_allclose(data.grad.asnumpy(), np.where(kept, 12, 0))
    assert (cached(data).asnumpy() == 9).all()


def test_states_are_changed_in_place():
    weight, gradient = sym.var("weight"), sym.var("grad")
    cached = nd.CachedOp(sym.op.sgd_mom_update(weight, gradient, sym.var("mom"), lr=1.0, momentum=0.5))
    momentum = nd.zeros((2,))
    assert cached(nd.ones((2,)), nd.ones((2,)), momentum).asnumpy().tolist() == [0, 0]
    assert momentum.asnumpy().tolist() == [-1, -1]


def test_out_receives_the_result():
    x = sym.var("x")
    target = nd.zeros((2,))
    assert nd.CachedOp(x + 1)(nd.ones((2,)), out=target) is target
    assert target.asnumpy().tolist() == [2, 2]
    with pytest.raises(MXNetError, match="out has 2 arrays"):
        nd.CachedOp(x + 1)(nd.ones((2,)), out=[target, target])


def test_graphs_without_inputs():
    ones = nd.CachedOp(sym.ones((2,)))
    assert ones().context == mx.cpu()
    assert ones(default_ctx=mx.cpu(1)).context == mx.cpu(1)
    with mx.cpu(2):
        assert ones().context == mx.cpu(2)


def test_open_lengths_follow_from_the_inputs():
    x = sym.var("x")
    cached = nd.CachedOp(x + sym.ones((0, 3)))
    for rows in (2, 4):
        assert cached(nd.zeros((rows, 3))).asnumpy().tolist() == [[1, 1, 1]] * rows


def test_values_are_freed_when_nobody_reads_them_any_more():
    x = sym.var("x")
    for _ in range(5):
        x = x + 1
    assert [len(dropped) for dropped in nd.CachedOp(x).graph.dropped.values()] == [1] * 5


def test_hooks():
    x = sym.var("x")
    cached = nd.CachedOp(sym.relu(sym.FullyConnected(x, num_hidden=2, name="fc"), name="act"))
    seen = []
    cached._register_op_hook(lambda name, op, value: seen.append((name, op)), True)
    arguments = nd.ones((1, 3)), nd.ones((2, 3)), nd.ones((2,))
    cached(*arguments)
    assert [name for name, _ in seen] == ["fc_data", "fc_weight", "fc_bias", "fc_output", "act_input0", "act_output"]
    assert seen[0][1] == "FullyConnected"
    cached._register_op_hook(None)
    cached(*arguments)
    assert len(seen) == 6


def test_errors_name_the_node():
    cached = nd.CachedOp(sym.FullyConnected(sym.var("x"), num_hidden=2, name="fc"))
    with pytest.raises(MXNetError, match=r"Error in operator fc: .*weight has shape"):
        cached(nd.ones((1, 3)), nd.ones((2, 4)), nd.ones((2,)))
    with pytest.raises(MXNetError, match="2 arrays are given, the graph has 3 inputs: x, fc_weight, fc_bias"):
        cached(nd.ones((1, 3)), nd.ones((2, 4)))
    with pytest.raises(TypeError, match="input x must be an NDArray, got list"):
        cached([1], nd.ones((2, 4)), nd.ones((2,)))
    with pytest.raises(MXNetError, match="unknown flag nosuch"):
        nd.CachedOp(sym.var("x") + 1, [("nosuch", 1)])
    nd.CachedOp(sym.var("x") + 1, {"static_alloc": True})


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda x: nd.CachedOp(None), "sym must be a Symbol, got None"),
        (lambda x: nd.CachedOp(x, {"inline_limit": "a"}), "inline_limit must be an int, got 'a'"),
        (
            lambda x: nd.CachedOp(x * 2)(nd.ones(3), out=nd.ones(4)),
            r"out is float32\[4\], the output of _mulscalar\d+ is float32\[3\]",
        ),
        (lambda x: nd.CachedOp(x * 2)(nd.ones(3), out=nd.ones(3, dtype="int32")), r"out is int32\[3\]"),
        (lambda x: nd.CachedOp(x * 2)(nd.ones(3), out=5), "out must hold NDArrays, got 5"),
    ],
)
def test_arguments_that_do_not_fit(call, match):
    with pytest.raises(MXNetError, match=match):
        call(sym.var("x"))
