"""HybridBlock: the same values as Python code and as a graph, one trace for all shapes, what drops it, and what is refused."""

from __future__ import annotations

import os
import threading
import warnings

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, init, nd
from minimx.base import MXNetError, NotImplementedForSymbol
from minimx.gluon import nn


def array(*shape, seed=0, **kwargs):
    return nd.array(np.random.default_rng(seed).normal(size=shape), **kwargs)


def mlp(dropout=0.0, **kwargs):
    net = nn.HybridSequential(**kwargs)
    with net.name_scope():
        net.add(nn.Dense(8, activation="tanh"), nn.Dropout(dropout), nn.LayerNorm(), nn.PReLU(), nn.Dense(3))
    net.initialize(init.Normal(0.5))
    return net


def outputs_and_gradients(net, x, train_mode=True):
    """What a step gives: outputs, and gradients of the input and of all parameters."""
    x = x.copy()
    x.attach_grad()
    with autograd.record(train_mode):
        y = net(x)
        loss = (y * y).sum()
    loss.backward(train_mode=train_mode)
    gradients = [param.grad().asnumpy() for param in net.collect_params().values() if param.grad_req != "null"]
    return [y.asnumpy(), x.grad.asnumpy(), *gradients]


def assert_same(one, two):
    assert len(one) == len(two)
    for left, right in zip(one, two):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)


class Counted(gluon.HybridBlock):
    """Counts how often its Python code runs, and with what."""

    def __init__(self, function=None, **kwargs):
        super().__init__(**kwargs)
        self.runs = []
        self.function = function or (lambda F, x, *rest: F.exp(x))

    def hybrid_forward(self, F, *args):
        self.runs.append(F)
        return self.function(F, *args)


# ---- equal values


@pytest.mark.parametrize("flags", [{}, {"static_alloc": True}, {"static_alloc": True, "static_shape": True}, {"inline_limit": 0},
                                   {"forward_bulk_size": 2, "backward_bulk_size": 3}])  # fmt: skip
def test_a_graph_gives_what_python_gives(flags):
    net = mlp()
    net(array(2, 5))
    for training in (True, False):
        for batch in (2, 7, 1):
            x = array(batch, 5, seed=batch)
            net.hybridize(False)
            wanted = outputs_and_gradients(net, x, training)
            net.hybridize(**flags)
            assert_same(outputs_and_gradients(net, x, training), wanted)
            assert_same(outputs_and_gradients(net, x, training), wanted)


def test_dropout_draws_the_same_with_the_same_seed():
    net = mlp(dropout=0.5)
    x = array(6, 5)
    net(x)

    def draw():
        mx.random.seed(5)
        return outputs_and_gradients(net, x)

    wanted = draw()
    net.hybridize()
    assert_same(draw(), wanted)
    assert (outputs_and_gradients(net, x)[0] != wanted[0]).any()


@pytest.mark.parametrize("hybrid", [False, True])
def test_the_first_batch_already_counts_for_gradients(hybrid):
    net = nn.HybridSequential()
    net.add(nn.Dense(2, activation="relu", weight_initializer="ones"), nn.Dense(1, weight_initializer="ones"))
    net.initialize()
    net.hybridize(hybrid)
    with autograd.record():
        loss = net(nd.ones((3, 4))).sum()
    loss.backward()
    assert (net[0].weight.grad().asnumpy() == 3).all()
    assert (net[1].weight.grad().asnumpy() == 12).all()


def test_the_training_flag_is_the_callers():
    net = nn.HybridSequential()
    net.add(nn.Dropout(0.5))
    net.hybridize()
    x = nd.ones((100,))
    assert (net(x).asnumpy() == 1).all()
    with autograd.record():
        assert set(net(x).asnumpy()) == {0, 2}
    with autograd.record(train_mode=False):
        assert (net(x).asnumpy() == 1).all()
    with autograd.train_mode():
        assert set(net(x).asnumpy()) == {0, 2}


def test_gradients_of_gradients():
    net = Counted(lambda F, x: x**3)
    x = nd.array([1, 2])
    x.attach_grad()
    for hybrid in (False, True):
        net.hybridize(hybrid)
        with autograd.record():
            first = autograd.grad(net(x), x, create_graph=True)
            loss = first.sum()
        loss.backward()
        assert x.grad.asnumpy().tolist() == [6, 12]


def test_grad_req_add_over_two_calls():
    net = mlp()
    x = array(4, 5)
    net(x)
    net.hybridize()
    once = outputs_and_gradients(net, x)
    net.collect_params().setattr("grad_req", "add")
    outputs_and_gradients(net, x)
    twice = outputs_and_gradients(net, x)
    for single, double in zip(once[2:], twice[2:]):
        np.testing.assert_allclose(double, 2 * single, rtol=1e-5, atol=1e-5)


def test_nested_blocks_become_one_graph():
    inner = Counted()
    net = nn.HybridSequential()
    net.add(inner, nn.HybridSequential())
    net[1].add(Counted())
    net.hybridize()
    net(nd.ones((2,)))
    net(nd.ones((3,)))
    assert len(inner.runs) == len(net[1][0].runs) == 1
    inner(nd.ones((2,)))  # a graph of its own
    assert len(inner.runs) == 2


def test_a_plain_network_hybridizes_its_parts():
    class Net(gluon.Block):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.part = Counted()

        def forward(self, x):
            return self.part(x)

    net = Net()
    net.hybridize()
    for batch in (1, 2, 3):
        net(nd.ones((batch,)))
    assert net.part.runs == [mx.sym]


# ---- one trace


def test_python_runs_once_for_all_shapes_and_dtypes():
    net = Counted(lambda F, x: F.sqrt(x) + F.sqrt(x * 2))
    net.hybridize()
    for shape in ((2,), (3, 4), (1, 1, 1)):
        for dtype in ("float32", "float64"):
            y = net(nd.ones(shape, dtype=dtype))
            assert y.shape == shape
            assert y.dtype == np.dtype(dtype)
    assert net.runs == [mx.sym]


def test_without_hybridize_python_runs_each_time():
    net = Counted()
    net(nd.ones((2,)))
    net(nd.ones((2,)))
    assert net.runs == [mx.nd, mx.nd]


def test_a_symbol_gives_a_symbol():
    net = mlp()
    for hybrid in (False, True):
        net.hybridize(hybrid)
        graph = net(mx.sym.var("x"))
        assert isinstance(graph, mx.sym.Symbol)
        assert graph.list_arguments()[0] == "x"
        assert graph.infer_shape(x=(2, 5))[1] == [(2, 3)]


def test_inputs_that_are_outputs():
    net = Counted(lambda F, x: x)
    net.hybridize()
    x = nd.array([1, 2])
    x.attach_grad()
    with autograd.record():
        loss = (net(x) * 3).sum()
    loss.backward()
    assert x.grad.asnumpy().tolist() == [3, 3]
    assert net(x).asnumpy().tolist() == [1, 2]


def test_nodes_that_make_arrays_of_open_shapes():
    net = Counted(lambda F, x: F.broadcast_add(x, F.concat(F.zeros((1, 2)), F.ones((1, 2)), dim=0)) + F.zeros_like(x))
    net.hybridize()
    assert net(nd.ones((2, 2))).asnumpy().tolist() == [[1, 1], [2, 2]]
    assert net(nd.ones((2, 2), ctx=mx.cpu(1))).context == mx.cpu(1)
    net = Counted(lambda F, x: x + F.zeros((0, 2)) if F is mx.sym else x)
    net.hybridize()
    for batch in (3, 5):
        assert net(nd.ones((batch, 2))).shape == (batch, 2)
    assert net.runs == [mx.sym]


# ---- what drops the trace


def test_children_that_change_drop_the_graph():
    net = nn.HybridSequential()
    net.add(nn.Dense(4, weight_initializer="ones", flatten=False))
    net.initialize()
    net.hybridize()
    assert net(nd.ones((2, 3, 5))).shape == (2, 3, 4)
    net.add(nn.Flatten())
    assert net(nd.ones((2, 3, 5))).shape == (2, 12)


def test_children_of_children_that_change_drop_the_graph():
    net = nn.HybridSequential()
    net.add(nn.HybridSequential())
    net[0].add(Counted(lambda F, x: x + 1))
    net.hybridize()
    assert net(nd.ones((1,))).asscalar() == 2
    net[0].add(Counted(lambda F, x: x * 10))
    assert net(nd.ones((1,))).asscalar() == 20
    assert len(net[0][0].runs) == 2
    nn.Dense(3)  # another block somewhere changes nothing here
    net(nd.ones((1,)))
    assert len(net[0][0].runs) == 2


def test_an_attribute_that_is_replaced_drops_the_graph():
    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.part = Counted(lambda F, x: x + 1)

        def hybrid_forward(self, F, x):
            return self.part(x)

    net = Net()
    net.hybridize()
    assert net(nd.ones((1,))).asscalar() == 2
    net.part = Counted(lambda F, x: x - 1)
    assert net(nd.ones((1,))).asscalar() == 0


def test_hybridize_again_and_cast_drop_the_graph():
    net = Counted()
    net.hybridize()
    net(nd.ones((1,)))
    net.hybridize()
    net(nd.ones((1,)))
    assert len(net.runs) == 2
    net.hybridize(clear=False, static_alloc=True)
    net(nd.ones((1,)))
    assert len(net.runs) == 2
    net.cast("float64")
    net(nd.ones((1,)))
    assert len(net.runs) == 3
    net.hybridize(False)
    net(nd.ones((1,)))
    assert net.runs[-1] is mx.nd


def test_cast_of_a_hybridized_network():
    net = mlp()
    net.hybridize()
    net(array(2, 5))
    net.cast("float64")
    assert net(array(2, 5, dtype="float64")).dtype == np.float64
    with pytest.raises(MXNetError, match="dense0_fwd"):
        net(array(2, 5))


def test_parameters_may_move_and_change_between_calls():
    net = nn.Dense(1, in_units=2)
    net.initialize("ones")
    net.hybridize()
    x = nd.ones((1, 2))
    assert net(x).asscalar() == 2
    net.weight.set_data(nd.array([[3, 4]]))
    assert net(x).asscalar() == 7
    net.weight.data()[:] = 0
    assert net(x).asscalar() == 0
    net.collect_params().reset_ctx(mx.cpu(1))
    assert net(x.as_in_context(mx.cpu(1))).context == mx.cpu(1)
    with pytest.raises(RuntimeError, match="was not initialized on context cpu\\(0\\)"):
        net(x)
    net.initialize("ones", force_reinit=True)
    assert net(x).asscalar() == 2


def test_several_devices():
    net = mlp()
    net.initialize(init.One(), ctx=[mx.cpu(0), mx.cpu(1)], force_reinit=True)
    net.hybridize()
    parts = [net(nd.ones((2, 5), ctx=context)) for context in (mx.cpu(0), mx.cpu(1))]
    assert [part.context for part in parts] == [mx.cpu(0), mx.cpu(1)]
    np.testing.assert_array_equal(parts[0].asnumpy(), parts[1].asnumpy())


# ---- shapes that are learned


@pytest.mark.parametrize("hybrid", [False, True])
def test_shapes_are_inferred_from_the_first_batch(hybrid):
    net = mlp()
    if hybrid:
        net.hybridize()
    net(array(2, 3, 4))
    assert net[0].weight.shape == (8, 12)
    assert net[2].gamma.shape == (8,)
    assert net[4].weight.data().shape == (3, 8)


@pytest.mark.parametrize("hybrid", [False, True])
def test_shapes_that_do_not_follow(hybrid):
    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.w = self.params.get("w", shape=(0, 3), allow_deferred_init=True)

        def hybrid_forward(self, F, x, w):
            return F.broadcast_mul(F.sum(x), F.sum(w))

    net = Net()
    net.initialize()
    if hybrid:
        net.hybridize()
    with pytest.raises(ValueError, match="Deferred initialization failed because shape cannot be inferred"):
        net(nd.ones((2, 2)))


def test_errors_of_the_trace_while_shapes_are_inferred():
    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            self.w = self.params.get("w", shape=(0, 3), allow_deferred_init=True)

        def hybrid_forward(self, F, x, w):
            return F.dot(x, w) + x.shape[0]

    net = Net()
    net.initialize()
    with pytest.raises(ValueError, match=r"Deferred initialization failed .*shape"):
        net(nd.ones((2, 2)))


def test_infer_shape_and_type_by_hand():
    net = mlp()
    net.infer_shape(nd.ones((2, 6)))
    assert net[0].weight.shape == (8, 6)
    net.infer_type(nd.ones((2, 6)))
    assert net[0].weight.dtype == np.float32
    with pytest.raises(MXNetError, match="float64"):
        net.infer_type(nd.ones((2, 6), dtype="float64"))
    with pytest.raises(ValueError, match=r"do not follow from the arguments: .*_weight: \(2, 0\)"):
        Wide().infer_shape(nd.ones((2, 6)))


class Wide(gluon.HybridBlock):
    """A parameter that nothing determines."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.weight = self.params.get("weight", shape=(2, 0), allow_deferred_init=True)

    def hybrid_forward(self, F, x, weight):
        return F.broadcast_add(F.sum(x), F.sum(weight))


def test_first_calls_of_several_threads():
    net = mlp()
    net.hybridize()
    x = array(4, 5)
    results, barrier = [], threading.Barrier(4)

    def call():
        barrier.wait(10)
        results.append(net(x).asnumpy())

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(results) == 4
    for result in results:
        np.testing.assert_array_equal(result, results[0])


# ---- arguments and results


def test_nested_results_keep_their_structure():
    net = Counted(lambda F, x: (x + 1, [x * 2, (x,)], F.split(x, num_outputs=2, axis=0), None))
    x = nd.array([1, 2])
    for hybrid in (False, True):
        net.hybridize(hybrid)
        first, (second, (third,)), halves, nothing = net(x)
        assert [type(each) for each in (net(x), net(x)[1], net(x)[1][1], halves)] == [tuple, list, tuple, list]
        assert first.asnumpy().tolist() == [2, 3]
        assert second.asnumpy().tolist() == [2, 4]
        assert third.asnumpy().tolist() == [1, 2]
        assert [half.asscalar() for half in halves] == [1, 2]
        assert nothing is None


def test_nested_arguments():
    net = Counted(lambda F, x, states: x + states[0] * states[1][0])
    ones = nd.ones((2,))
    for hybrid in (False, True):
        net.hybridize(hybrid)
        for _ in range(2):
            assert net(ones, [ones * 2, (ones * 3,)]).asnumpy().tolist() == [7, 7]
            assert net(ones, (ones * 2, [ones * 3])).asnumpy().tolist() == [7, 7]
    for args in ((ones, ones), (ones, [ones, ones]), (ones, [ones, [ones, ones]])):
        with pytest.raises(ValueError, match="argument structure"):
            net(*args)


def test_none_among_arguments():
    net = Counted(lambda F, a, b=None, c=None: a if b is None else a + b)
    ones = nd.ones((2,))
    net.hybridize()
    net(ones)
    net(ones, None)
    net(ones, None, None)
    with pytest.raises(ValueError, match="argument structure"):
        net(ones, ones)
    net.hybridize()
    net(ones, ones, None)
    assert net(ones, ones).asnumpy().tolist() == [2, 2]
    with pytest.raises(ValueError, match="argument structure"):
        net(ones)
    net = Counted(lambda F, a, b: b)
    net.hybridize()
    assert net(None, ones).asnumpy().tolist() == [1, 1]


def test_other_values_among_arguments():
    net = Counted(lambda F, a, b: a + b)
    assert net(nd.ones((2,)), 3).asnumpy().tolist() == [4, 4]
    net.hybridize()
    with pytest.raises(ValueError, match="must be an NDArray, a Symbol, None or a \\(nested\\) list"):
        net(nd.ones((2,)), 3)


@pytest.mark.parametrize("hybrid", [False, True])
def test_tensors_that_do_not_go_together(hybrid):
    net = Counted(lambda F, a, b: a + b)
    net.hybridize(hybrid)
    for args in ((nd.ones((2,)), mx.sym.var("a")), (mx.sym.var("a"), nd.ones((2,))), ([nd.ones((2,))], [[mx.sym.var("a")]])):
        with pytest.raises(ValueError, match="cannot be mixed"):
            net(*args)
    for args in ((None, None), (3, [4])):
        with pytest.raises(ValueError, match="one NDArray or one Symbol"):
            net(*args)


def test_several_devices_among_arguments():
    net = Counted(lambda F, a, b: a + b)
    net.hybridize()
    with pytest.raises(ValueError, match="several contexts"):
        net(nd.ones((2,), ctx=mx.cpu(1)), nd.ones((2,), ctx=mx.cpu(2)))
    assert net(nd.ones((2,)), nd.ones((2,), ctx=mx.cpu_pinned())).asnumpy().tolist() == [2, 2]


# ---- what a trace refuses


@pytest.mark.parametrize(
    "function",
    [lambda F, x: x.asnumpy(), lambda F, x: x if x > 0 else -x, lambda F, x: x.asscalar(), lambda F, x: x.wait_to_read()],
)
def test_values_are_not_there_in_a_trace(function):
    net = Counted(function)
    net.hybridize()
    with pytest.raises(NotImplementedForSymbol):
        net(nd.ones((1,)))
    assert not net._cached_graph


def test_results_must_be_symbols():
    net = Counted(lambda F, x: 3)
    net.hybridize()
    with pytest.raises(ValueError, match="the output must be"):
        net(nd.ones((1,)))
    for function in (lambda F, x: None, lambda F, x: nd.ones((1,))):
        net = Counted(function)
        net.hybridize()
        with pytest.raises(ValueError, match="must return a Symbol"):
            net(nd.ones((1,)))


def test_variables_from_nowhere():
    net = Counted(lambda F, x: x + mx.sym.var("stranger"))
    net.hybridize()
    with pytest.raises(AssertionError, match="Unknown input to HybridBlock: stranger"):
        net(nd.ones((1,)))


def test_inputs_and_parameters_that_are_not_used():
    net = Counted(lambda F, a, b: a)
    net.hybridize()
    with pytest.warns(UserWarning, match="The 1-th input to HybridBlock .* is not used"):
        assert net(nd.ones((1,)), nd.zeros((1,))).asscalar() == 1
    net = nn.HybridSequential()
    net.add(Counted())
    net.idle = nn.Dense(2, in_units=2, prefix="idle_")
    net._children.pop("idle")
    net[0].spare = net.idle
    net.initialize()
    net.hybridize()
    with pytest.warns(UserWarning, match="Parameter idle_weight, idle_bias is not used"):
        net(nd.ones((1,)))


@pytest.mark.parametrize("hybrid", [False, True])
def test_wrong_shapes_and_dtypes_are_errors_of_the_call(hybrid):
    net = nn.HybridSequential()
    with net.name_scope():
        net.add(nn.Dense(4, in_units=3), nn.LayerNorm(in_channels=5))
    net.initialize()
    net.hybridize(hybrid)
    with pytest.raises(MXNetError, match="weight has shape"):
        net(nd.ones((2, 6)))
    with pytest.raises(MXNetError, match="LayerNorm"):
        net(nd.ones((2, 3)))
    with pytest.raises(MXNetError, match="float64"):
        net(nd.ones((2, 3), dtype="float64"))


@pytest.mark.skipif(os.environ.get("MXNET_ENGINE_TYPE") == "NaiveEngine", reason="there the call itself raises")
@pytest.mark.parametrize("hybrid", [False, True])
def test_errors_of_kernels_wait_in_the_result(hybrid):
    net = nn.HybridSequential()
    net.add(nn.Dropout(1), nn.Dense(2, in_units=2))
    net.initialize()
    net.hybridize(hybrid)
    with autograd.train_mode():
        y = net(nd.ones((2, 2)))
    with pytest.raises(MXNetError, match="Dropout: p=1"):
        y.asnumpy()


def test_unknown_flags():
    with pytest.raises(TypeError):
        nn.Dense(2).hybridize(static=True)
    with pytest.raises(TypeError):
        nn.HybridSequential().hybridize(static=True)


# ---- watching operators


def watched(net, x, monitor_all=False):
    seen = []
    net.register_op_hook(lambda name, op, value: seen.append((name, op, value.shape)), monitor_all)
    net(x)
    net.register_op_hook(None)
    net(x)
    return seen


def test_op_hooks():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(2), nn.Activation("relu"))
    net.initialize()
    net.hybridize()
    x = nd.ones((3, 4))
    assert watched(net, x) == [
        ("net_dense0_fwd_output", "FullyConnected", (3, 2)), ("net_relu0_fwd_output", "Activation", (3, 2)),
    ]  # fmt: skip
    assert [name for name, _, _ in watched(net, x, True)] == [
        "net_dense0_fwd_data", "net_dense0_fwd_weight", "net_dense0_fwd_bias", "net_dense0_fwd_output", "net_relu0_fwd_input0",
        "net_relu0_fwd_output",
    ]  # fmt: skip


def test_op_hooks_below_a_plain_block():
    net = nn.Sequential()
    net.add(nn.Dense(2, prefix="a_"), nn.Lambda("relu"))
    net.initialize()
    net.hybridize()
    assert [name for name, _, _ in watched(net, nd.ones((3, 4)))] == ["a_fwd_output"]


def test_hooks_of_children_do_not_run_in_a_graph():
    net = nn.HybridSequential()
    net.add(Counted())
    calls = []
    net.hybridize()
    net(nd.ones((1,)))
    net[0].register_forward_hook(lambda *_: calls.append(1))
    net.register_forward_hook(lambda *_: calls.append(2))
    net(nd.ones((1,)))
    assert calls == [2]


def test_no_warning_for_a_usual_network():
    net = mlp()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net.hybridize()
        net(array(2, 5))


def test_a_small_program_is_called_directly_and_sees_every_change():
    """The short way of sym/direct.py: it must decline whatever is not the call it was made for, and never see old parameters."""
    net = nn.Dense(2, in_units=3, weight_initializer="one")
    net.initialize()
    net.hybridize()
    x = nd.array([[1.0, 2.0, 3.0]])

    def value(data=x):
        return net(data).asnumpy().tolist()

    assert [value(), value(), value()] == [[[6, 6]]] * 3
    assert net._direct
    assert value(nd.ones((2, 3))) == [[3, 3], [3, 3]]  # another shape
    net.weight.set_data(nd.ones((2, 3)) * 2)
    assert value() == [[12, 12]]
    net.bias.data()[:] = 1
    assert value() == [[13, 13]]
    net.initialize(force_reinit=True)
    assert value() == [[6, 6]] == value()
    net.cast("float64")
    assert net(x.astype("float64")).dtype == np.float64
    net.cast("float32")
    net.weight.set_data(nd.ones((2, 3)))
    assert value() == [[6, 6]] == value()
    seen = []
    handle = net.register_forward_hook(lambda block, inputs, output: seen.append(output.shape))
    value()
    assert seen == [(1, 2)]
    handle.detach()
    net.register_op_hook(lambda name, op, array: seen.append(name))
    value()
    assert len(seen) == 2
    with autograd.record():
        y = net(x)
    y.backward()
    assert net.weight.grad().asnumpy().tolist() == [[1, 2, 3]] * 2


def test_the_short_way_leaves_failures_to_those_who_read():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    net.hybridize()
    x = nd.ones((1, 3))
    net(x), net(x)
    bad = nd.random.normal(0, -1, (1, 3))
    y = net(bad)
    with pytest.raises(mx.MXNetError, match="scale"):
        y.asnumpy()
    assert np.isfinite(net(x).asnumpy()).all()


def test_gradients_are_taken_over_only_if_nobody_else_sees_them():
    """A program's gradient becomes the leaf's without a copy; two leaves, a view, or a user who has it must not notice."""
    double = nd.CachedOp(mx.sym.var("x") * 2)
    x, y = nd.ones((3,)), nd.ones((3,))
    for each in (x, y):
        each.attach_grad()
    buffer, before = x.grad, x.grad.reshape((3, 1))
    with autograd.record():
        z = double(x + y)  # one gradient for both
    z.backward()
    assert x.grad is buffer
    assert before.asnumpy().ravel().tolist() == [2, 2, 2]  # a view of the buffer sees the new gradient
    x.grad[:] = 7
    assert y.grad.asnumpy().tolist() == [2, 2, 2]
    with autograd.record():
        z = double(x)
    [gradient] = autograd.grad([z], [x])
    x.backward(gradient)
    gradient[:] = 5
    assert x.grad.asnumpy().tolist() == [2, 2, 2]
    for _ in range(3):
        with autograd.record():
            z = double(y)
        kept = y.grad
        z.backward()
        y.grad[0] = -1
        assert kept.asnumpy().tolist() == [-1, 2, 2]


def test_a_block_that_is_not_hybridized_any_more_runs_python_again():
    """Also if its graphs are kept."""
    runs = []

    class Counted(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            runs.append(F.__name__)
            return x + 1

    block = Counted()
    block.hybridize()
    x = nd.ones((2,))
    block(x), block(x), block(x)
    block.hybridize(False, clear=False)
    block(x)
    assert runs == ["minimx.sym", "minimx.nd"]


def test_a_parameter_that_is_twice_on_a_device():
    """Blocks compute with the last copy, hybridized or not."""
    net = nn.Dense(2, in_units=3)
    net.initialize(mx.init.One(), ctx=[mx.cpu(0), mx.cpu(0)])
    net.weight.list_data()[1][:] = 7
    x = nd.ones((1, 3))
    for _ in range(2):
        assert net(x).asnumpy().tolist() == [[21, 21]]
        net.hybridize()


def test_data_of_an_instances_own():
    net = nn.Dense(2, in_units=3, use_bias=False)
    net.initialize(mx.init.One())
    net.hybridize()
    assert net(nd.ones((1, 3))).asnumpy().tolist() == [[3, 3]]
    net.weight.data = lambda ctx=None: nd.ones((2, 3)) * 5
    with autograd.record():
        assert net(nd.ones((1, 3))).asnumpy().tolist() == [[15, 15]]
