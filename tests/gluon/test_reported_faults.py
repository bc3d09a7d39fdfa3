"""Faults that users have reported of systems like this one, each with the right value. Most are about graphs that differ from code."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, init, nd
from minimx.base import MXNetError
from minimx.gluon import nn

FLAGS = [{}, {"static_alloc": True}, {"static_alloc": True, "static_shape": True}]


class Made(gluon.HybridBlock):
    """A block of one function, `function(F, *inputs, **parameters)`."""

    def __init__(self, function, **shapes):
        super().__init__()
        self.function = function
        for name, shape in shapes.items():
            setattr(self, name, self.params.get(name, shape=shape, init="ones", allow_deferred_init=True))
        self.initialize()

    def hybrid_forward(self, F, *inputs, **params):
        return self.function(F, *inputs, **params)


def numbers(*shape, seed=0):
    return nd.array(np.random.default_rng(seed).normal(size=shape))


def quietly(net, *inputs):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The .*-th input|Parameter .* is not used")
        return net(*inputs)


def step(net, *inputs):
    """Outputs, and gradients of the inputs and parameters."""
    inputs = [each.copy() for each in inputs]
    for each in inputs:
        each.attach_grad()
    with autograd.record():
        found = quietly(net, *inputs)
        outputs = found if isinstance(found, (list, tuple)) else [found]
        loss = sum((output * output).sum() for output in outputs)
    loss.backward()
    gradients = [param.grad() for param in net.collect_params().values() if param.grad_req != "null"]
    return [array.asnumpy() for array in [*outputs, *(each.grad for each in inputs), *gradients]]


def assert_a_graph_changes_nothing(net, *inputs):
    net.hybridize(False)
    wanted = step(net, *inputs)
    for flags in FLAGS:
        net.hybridize(**flags)
        for _ in range(2):
            for got, right in zip(step(net, *inputs), wanted):
                np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-6)
    return wanted


def test_a_branch_on_is_training_is_not_frozen():
    for first in (True, False):
        net = Made(lambda F, x: x * 2 if autograd.is_training() else x * 3)
        net.hybridize()
        for training in (first, not first, first, not first):
            with autograd.record(training):
                assert net(nd.ones((1,))).asscalar() == (2 if training else 3)


@pytest.mark.parametrize("flags", FLAGS)
def test_an_unused_input_does_not_fail_in_a_graph(flags):
    net = Made(lambda F, x, y: x * 2)
    assert net(nd.ones((2,)), nd.ones((3,))).asnumpy().tolist() == [2, 2]
    net.hybridize(**flags)
    for length in (3, 4):
        assert quietly(net, nd.ones((2,)), nd.ones((length,))).asnumpy().tolist() == [2, 2]
    assert_a_graph_changes_nothing(net, numbers(2), numbers(3))


@pytest.mark.parametrize("flags", FLAGS)
def test_an_unused_parameter_does_not_fail_in_a_graph_or_in_export(flags, tmp_path):
    net = Made(lambda F, x, used, idle: F.broadcast_mul(x, used), used=(1,), idle=(0, 3))  # `idle` never learns its shape
    net.hybridize(**flags)
    with autograd.record():
        y = quietly(net, nd.ones((2,)))
    y.backward()
    assert net.used.grad().asnumpy().tolist() == [2]
    files = net.export(str(tmp_path / "net"))
    assert list(nd.load(files[1])) == [f"arg:{net.used.name}"]
    again = gluon.SymbolBlock.imports(files[0], "data", files[1])
    assert again(nd.ones((2,))).asnumpy().tolist() == [1, 1]


@pytest.mark.parametrize("flags", FLAGS)
def test_a_block_may_return_its_own_parameter(flags, tmp_path):
    for function in (lambda F, x, weight: weight, lambda F, x, weight: (x + 1, weight, weight)):
        net = Made(function, weight=(2, 2))
        assert_a_graph_changes_nothing(net, numbers(3))
        net.hybridize(**flags)
        got = quietly(net, nd.ones((3,)))
        last = got[-1] if isinstance(got, tuple) else got
        assert last.asnumpy().tolist() == [[1, 1], [1, 1]]
        net.weight.set_data(nd.zeros((2, 2)))
        got = quietly(net, nd.ones((3,)))
        assert (got[-1] if isinstance(got, tuple) else got).sum().asscalar() == 0
        files = net.export(str(tmp_path / "net"))
        again = quietly(gluon.SymbolBlock.imports(files[0], "data", files[1]), nd.ones((3,)))
        assert (again[-1] if isinstance(again, (list, tuple)) else again).shape == (2, 2)


OPERATORS = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / (b * b + 1), lambda a, b: (a * a + 1) ** b,
    lambda a, b: a % (b * b + 1), lambda a, b: (a > b) * a, lambda a, b: (a <= b) + a, lambda a, b: (a == b) + b, lambda a, b: (a != b) * b,
]  # fmt: skip


@pytest.mark.parametrize(
    "shapes", [((2, 3), (2, 3)), ((2, 3), (1, 3)), ((2, 1), (1, 3)), ((4, 2, 3), (2, 1)), ((1,), (2, 3)), ((3,), (2, 3))]
)
@pytest.mark.parametrize("number", range(len(OPERATORS)))
def test_operators_broadcast_in_a_graph_as_they_do_with_arrays(number, shapes):
    net = Made(lambda F, a, b: OPERATORS[number](a, b))
    assert_a_graph_changes_nothing(net, *(numbers(*shape, seed=seed) for seed, shape in enumerate(shapes)))


@pytest.mark.parametrize("name", ["maximum", "minimum", "power", "add", "subtract", "multiply", "divide", "broadcast_add",
                                  "broadcast_maximum", "broadcast_power", "broadcast_greater", "broadcast_hypot"])  # fmt: skip
def test_functions_broadcast_in_a_graph_as_they_do_with_arrays(name):
    net = Made(lambda F, a, b: getattr(F, name)(a * a + 1, b))
    assert_a_graph_changes_nothing(net, numbers(2, 3), numbers(2, 1, seed=1))


@pytest.mark.parametrize("flags", FLAGS)
def test_arrays_without_elements_pass_through_reshape_and_transpose(flags):
    empty = nd.array(np.zeros((0, 3, 4), np.float32))
    functions = [
        lambda F, x: F.transpose(x, (2, 0, 1)), lambda F, x: F.transpose(x), lambda F, x: x.reshape((-1, 12)),
        lambda F, x: x.transpose((1, 0, 2)).reshape((3, -1)), lambda F, x: F.relu(x) * 2 + 1,
    ]  # fmt: skip
    shapes = [(4, 0, 3), (4, 3, 0), (0, 12), (3, 0), (0, 3, 4)]
    for function, shape in zip(functions, shapes):
        net = Made(function)
        for hybrid in (False, True):
            if hybrid:
                net.hybridize(**flags)
            for _ in range(2):
                y = net(empty)
                assert (y.shape, y.size) == (shape, 0)
                assert y.asnumpy().shape == shape


def test_a_block_with_forward_alone_works_in_a_hybrid_sequence():
    class Doubled(gluon.HybridBlock):
        def forward(self, x):
            return nd.relu(x) * 2

    net = nn.HybridSequential()
    net.add(nn.Dense(3), Doubled(), nn.Dense(2))
    net.initialize(init.Normal(1))
    net(numbers(2, 4))
    assert_a_graph_changes_nothing(net, numbers(2, 4))
    assert len(mx.sym.load_json(net._cached_graph[1].tojson()).list_arguments()) == 5


def test_operators_that_differ_in_an_attribute_alone_are_not_merged():
    def triangles(F, a):
        return (
            F.linalg.extracttrian(a, offset=1),
            F.linalg.extracttrian(a, offset=-1),
            F.linalg.extracttrian(a, offset=1, lower=False),
        )

    a = nd.array(np.arange(9).reshape(3, 3))
    above, below, upper = assert_a_graph_changes_nothing(Made(triangles), a)[:3]
    assert (above.tolist(), below.tolist(), upper.tolist()) == ([1, 2, 5], [3, 6, 7], [1, 2, 5])
    net = Made(lambda F, x: (F.sum(x, axis=0), F.sum(x, axis=1), F.sum(x, axis=1, keepdims=True), x * 1.0, x * 1.5, -x))
    assert_a_graph_changes_nothing(net, a)


def test_static_shapes_do_not_change_gradients():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(3, 3, activation="tanh"), nn.BatchNorm(), nn.MaxPool2D(), nn.Dense(4), nn.Dense(2, use_bias=False))
    net.initialize(init.Normal(0.5))
    net(numbers(2, 1, 8, 8))
    for batch in (2, 3, 2):
        assert_a_graph_changes_nothing(net, numbers(batch, 1, 8, 8, seed=batch))


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(
    "value", [nd.array([[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]], ids=["nd", "numpy", "list"]
)
def test_an_array_as_initializer_works_in_both_ways(value, hybrid):
    net = nn.HybridSequential()
    net.add(nn.Dense(2, use_bias=False, weight_initializer=init.Constant(value)))
    net.initialize()
    net.hybridize(hybrid)
    assert net(nd.ones((1, 2))).asnumpy().tolist() == [[3, 7]]
    assert net[0].weight.data().asnumpy().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("flags", FLAGS)
def test_two_threads_may_make_the_first_call(flags):
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="relu"), nn.BatchNorm(), nn.Dense(3))
    net.initialize()
    net.hybridize(**flags)
    barrier, results, failures = threading.Barrier(2), [], []

    def call():
        try:
            barrier.wait(10)
            results.append(net(nd.ones((2, 5))).asnumpy())
        except Exception as error:  # shown by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not failures
    np.testing.assert_array_equal(results[0], results[1])


def test_parameters_of_another_dtype_are_loaded_when_asked_and_never_misread(tmp_path):
    path = str(tmp_path / "net.params")
    half = nn.Dense(2, in_units=2, weight_initializer=init.Constant(1.5))
    half.initialize()
    half.cast("float16")
    half.save_parameters(path)
    net = nn.Dense(2, in_units=2)
    net.initialize(init.Zero())
    net.load_parameters(path)  # nothing is lost
    assert net.weight.data().dtype == np.float32
    assert net(nd.ones((1, 2))).asnumpy().tolist() == [[3, 3]]
    net.load_parameters(path, cast_dtype=True, dtype_source="saved")
    assert net(nd.ones((1, 2), dtype="float16")).dtype == np.float16
    whole = nn.Dense(2, in_units=2, weight_initializer=init.Constant(1.5))
    whole.initialize()
    whole.save_parameters(path)
    with pytest.raises(AssertionError, match=r"expected float16 vs saved float32\. Set cast_dtype=True"):
        half.load_parameters(path)  # digits would be
    net = nn.Dense(2, in_units=2)
    net.collect_params().load_dict(nd.load(path), cast_dtype=True, restore_prefix=net.prefix)
    assert net.weight.data().asnumpy().tolist() == [[1.5, 1.5], [1.5, 1.5]]


def test_extra_parameters_are_ignored_when_asked(tmp_path):
    path = str(tmp_path / "net")
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(2), nn.Dense(3))
    net.initialize()
    net.hybridize()
    net(nd.ones((1, 4)))
    net.save_parameters(path + "-places.params")
    _, params = net.export(path)
    shorter = nn.HybridSequential(prefix="net_")
    with shorter.name_scope():
        shorter.add(nn.Dense(2))
    with pytest.raises(ValueError, match="not present"):
        shorter.load_parameters(path + "-places.params")
    shorter.load_parameters(path + "-places.params", ignore_extra=True)
    with pytest.raises(ValueError, match="not present"):
        shorter.collect_params().load(params)
    shorter.collect_params().load(params, ignore_extra=True)
    graph = shorter(mx.sym.var("data"))
    graph.save(path + "-shorter.json")
    with pytest.raises(AssertionError, match="not present"):
        gluon.SymbolBlock.imports(path + "-shorter.json", "data", params)
    block = gluon.SymbolBlock.imports(path + "-shorter.json", "data", params, ignore_extra=True)
    np.testing.assert_array_equal(block(nd.ones((1, 4))).asnumpy(), shorter(nd.ones((1, 4))).asnumpy())


@pytest.mark.parametrize("hybrid", [False, True])
def test_grad_req_set_after_initialize_counts(hybrid):
    net = nn.Dense(1, in_units=2, use_bias=False)
    net.initialize(init.One())
    net.hybridize(hybrid)

    def gradient(passes):
        for _ in range(passes):
            with autograd.record():
                loss = net(nd.array([[1, 2]])).sum()
            loss.backward()
        return net.weight.grad().asnumpy().tolist()

    assert gradient(2) == [[1, 2]]
    net.collect_params().setattr("grad_req", "add")
    assert gradient(3) == [[3, 6]]
    net.weight.grad_req = "null"
    with pytest.raises(MXNetError, match="grad_req='null'"):
        net.weight.grad()
    net.weight.grad_req = "write"
    assert gradient(2) == [[1, 2]]


@pytest.mark.parametrize("hybrid", [False, True])
def test_batchnorm_adds_up_its_gradients(hybrid):
    net = nn.BatchNorm(in_channels=3)
    net.initialize()
    net.hybridize(hybrid)
    x = numbers(4, 3)
    once = step(net, x)[2:]
    net.collect_params().setattr("grad_req", "add")
    for _ in range(2):
        twice = step(net, x)[2:]
    for single, double in zip(once, twice):
        np.testing.assert_allclose(double, 2 * single, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("flags", [None, *FLAGS])
def test_a_second_backward_over_a_kept_graph_gives_the_same(flags):
    net = nn.HybridSequential()
    net.add(nn.Dense(4, activation="tanh"), nn.BatchNorm(), nn.Dropout(0.5), nn.Dense(2))
    net.initialize(init.Normal(1))
    net(numbers(3, 5))
    if flags is not None:
        net.hybridize(**flags)
    x = numbers(3, 5)
    x.attach_grad()
    with autograd.record():
        loss = (net(x) ** 2).sum()
    found = []
    for _ in range(3):
        loss.backward(retain_graph=True)
        found.append([x.grad.asnumpy(), *(p.grad().asnumpy() for p in net.collect_params().values() if p.grad_req != "null")])
    for later in found[1:]:
        for first, again in zip(found[0], later):
            np.testing.assert_array_equal(again, first)


@pytest.mark.parametrize("devices", [1, 2])
def test_update_on_kvstore_is_what_was_asked_for(devices):
    contexts = [mx.cpu(i) for i in range(devices)]
    net = nn.Dense(1, in_units=1, use_bias=False)
    net.initialize(init.One(), ctx=contexts)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5}, kvstore="device", update_on_kvstore=False)
    with autograd.record():
        losses = [net(nd.ones((1, 1), ctx=context)).sum() for context in contexts]
    autograd.backward(losses)
    trainer.allreduce_grads()  # refused if the store updated the weights
    assert net.weight.grad(contexts[-1]).asscalar() == devices
    trainer.update(devices)
    assert [value.asscalar() for value in net.weight.list_data()] == [0.5] * devices
