"""Blocks as a tree: registering, walking over it, hooks, the summary, containers, and what is refused."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import minimx as mx
from minimx import gluon, init
from minimx.base import ArgumentError
from minimx.gluon import nn, rnn


class Two(gluon.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.a = nn.Dense(3, in_units=4)
            self.b = nn.Dense(2, in_units=3)

    def forward(self, x):
        return self.b(self.a(x))


# ---- registering


def test_attributes_become_children_and_parameters():
    net = Two()
    assert list(net._children) == ["a", "b"]
    assert list(net._collect_params_with_prefix()) == ["a.weight", "a.bias", "b.weight", "b.bias"]
    assert list(net.params.keys()) == []
    net.scale = gluon.Parameter("scale", shape=(1,))
    assert next(iter(net._collect_params_with_prefix())) == "scale"


def test_attributes_do_not_change_their_kind():
    net = Two()
    with pytest.raises(TypeError, match="Changing attribute type for a"):
        net.a = (2,)
    net.scale = gluon.Parameter("scale", shape=(1,))
    with pytest.raises(TypeError, match="Changing attribute type for scale"):
        net.scale = None
    with pytest.raises(AssertionError, match="Overriding Parameter attribute scale"):
        net.scale = gluon.Parameter("scale", shape=(1,))
    net.other = None
    net.other = 3


def test_init_comes_first():
    class Hasty(gluon.Block):
        def __init__(self):
            self.a = nn.Dense(2)

    with pytest.raises(ArgumentError, match=r"Hasty: call super\(\).__init__\(\) before"):
        Hasty()


def test_a_new_block_replaces_the_child():
    net = Two()
    replacement = nn.Dense(5)
    net.a = replacement
    assert list(net._children.values()) == [replacement, net.b]


def test_register_child_counts():
    net = gluon.Block()
    net.register_child(nn.Dense(1))
    net.register_child(nn.Dense(1), "named")
    net.register_child(nn.Dense(1))
    assert list(net._children) == ["0", "named", "2"]


def test_blocks_in_lists_are_pointed_out():
    net = Two()
    net.extra = {"layers": [nn.Dense(1)], "other": 3}
    with pytest.warns(UserWarning, match=r"Two\.extra.*unregistered container"):
        net.collect_params()
    net = Two()
    net.kept = [net.a, (net.b,)]
    net.collect_params()


def test_hybrid_blocks_have_hybrid_children():
    net = nn.HybridSequential()
    with pytest.raises(ValueError, match="Children of HybridBlock must also be HybridBlock"):
        net.add(Two())

    class Net(gluon.HybridBlock):
        pass

    with pytest.raises(ValueError, match="must also be HybridBlock"):
        Net().child = Two()


# ---- over the tree


def test_collect_params_selects_by_the_beginning():
    net = Two(prefix="net_")
    assert set(net.collect_params(".*weight").keys()) == {"net_dense0_weight", "net_dense1_weight"}
    assert list(net.collect_params("net_dense0_bias|net_dense1_w").keys()) == ["net_dense0_bias", "net_dense1_weight"]
    assert net.collect_params().prefix == "net_"


def test_apply_visits_children_first():
    seen = []
    net = Two(prefix="net_")
    assert net.apply(lambda block: seen.append(block.name)) is net
    assert seen == ["net_dense0", "net_dense1", "net"]


def test_initialize_cast_and_call():
    net = Two()
    net.initialize(init.One())
    assert net(mx.nd.ones((1, 4))).asnumpy().tolist() == [[12, 12]]
    net.cast("float16")
    assert net(mx.nd.ones((1, 4), dtype="float16")).dtype == np.float16
    net.initialize("zeros", ctx=[mx.cpu(0), mx.cpu(1)], force_reinit=True)
    assert net(mx.nd.ones((1, 4), ctx=mx.cpu(1), dtype="float16")).context == mx.cpu(1)


def test_forward_must_be_written():
    with pytest.raises(NotImplementedError, match="Block must override forward"):
        gluon.Block()(mx.nd.ones((1,)))
    with pytest.raises(NotImplementedError, match="must override hybrid_forward"):
        gluon.HybridBlock()(mx.nd.ones((1,)))


def test_a_block_that_was_never_initialized():
    with pytest.raises(RuntimeError, match=r"'dense.*_weight' has not been initialized"):
        nn.Dense(2, in_units=3)(mx.nd.ones((1, 3)))


# ---- hooks


def test_hooks_see_inputs_and_outputs_until_they_are_taken_off():
    net = nn.Dense(2, in_units=3)
    net.initialize(init.One())
    calls = []
    before = net.register_forward_pre_hook(lambda block, inputs: calls.append(("before", block, inputs[0].shape)))
    after = net.register_forward_hook(lambda block, inputs, output: calls.append(("after", block, output.shape)))
    net(mx.nd.ones((4, 3)))
    assert calls == [("before", net, (4, 3)), ("after", net, (4, 2))]
    after.detach()
    after.detach()
    net(mx.nd.ones((5, 3)))
    assert len(calls) == 3
    with before:
        net(mx.nd.ones((5, 3)))
    net(mx.nd.ones((5, 3)))
    assert len(calls) == 4
    with pytest.raises(ValueError, match="attached twice"):
        before.attach({}, print)


def test_a_hook_may_take_itself_off():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    calls = []
    handle = net.register_forward_hook(lambda *_: (calls.append(1), handle.detach()))
    net(mx.nd.ones((1, 3)))
    net(mx.nd.ones((1, 3)))
    assert calls == [1]


def test_hybridizing_below_a_hook_warns():
    net = nn.Dense(2)
    net.register_forward_hook(lambda *_: None)
    with pytest.warns(UserWarning, match="hooks will not take effect"):
        net.hybridize()
    net.hybridize(False)


# ---- summary


def test_summary(capsys):
    net = nn.HybridSequential()
    shared = nn.Dense(4, in_units=4)
    net.add(nn.Dense(4), shared, nn.Dense(4, params=shared.params), nn.Dropout(0.5))
    net.initialize()
    net[0].bias.grad_req = "null"
    net.summary(mx.nd.ones((2, 3)))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == lines[-1] == "-" * 80
    assert lines[1].split() == ["Layer", "(type)", "Output", "Shape", "Param", "#"]
    assert [line.split()[0] for line in lines[3:8]] == ["Input", "Dense-1", "Dense-2", "Dense-3", "Dropout-4"]
    assert lines[4] == f"{'Dense-1':>20}  {'(2, 4)':>42} {'16':>15}"
    assert "   Total params: 56" in lines
    assert "   Trainable params: 52" in lines
    assert "   Non-trainable params: 4" in lines
    assert "Shared params in forward computation graph: 20" in lines
    assert "Unique parameters in model: 36" in lines
    assert not net[0]._forward_hooks
    net.hybridize()
    with pytest.raises(AssertionError, match=rf'"{net.name}" must not be hybridized .*; call net\.hybridize\(False\) first'):
        net.summary(mx.nd.ones((2, 3)))
    assert not net[0]._forward_hooks
    net.hybridize(False)
    net[2].hybridize()
    with pytest.raises(AssertionError, match=rf'"{net.name}" must not be hybridized .*, of which {net[2].name} is; call'):
        net.summary(mx.nd.ones((2, 3)))
    assert not net[0]._forward_hooks


def test_summary_of_several_inputs(capsys):
    class Sum(gluon.Block):
        def forward(self, x, states):
            return x + states[0], [states[1]]

    Sum().summary(mx.nd.ones((2,)), [mx.nd.ones((2,)), mx.nd.ones((3,))])
    out = capsys.readouterr().out
    assert "(2,), [(2,), (3,)]" in out
    assert "(2,), [(3,)]" in out


# ---- containers


@pytest.mark.parametrize("kind", [nn.Sequential, nn.HybridSequential])
def test_containers_are_lists(kind):
    net = kind()
    layers = [nn.Dense(3), nn.Dense(2), nn.Dropout(0.5)]
    net.add(*layers)
    assert len(net) == 3
    assert list(net) == layers
    assert net[1] is layers[1]
    assert net[-1] is layers[2]
    part = net[1:]
    assert type(part) is kind
    assert list(part) == layers[1:]
    assert part.prefix == net.prefix
    with pytest.raises(IndexError):
        net[3]
    net.initialize()
    assert net(mx.nd.ones((4, 5))).shape == (4, 2)


def test_sequential_of_hybrid_blocks_warns_once():
    net = nn.Sequential()
    net.add(nn.Dense(2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net.hybridize()
    assert len(caught) == 1
    assert "Consider using HybridSequential" in str(caught[0].message)
    net.add(Two())
    net.hybridize()


def test_concurrent_joins_outputs():
    for kind in (nn.Concurrent, nn.HybridConcurrent, gluon.contrib.nn.HybridConcurrent):
        net = kind(axis=1)
        net.add(nn.Identity(), nn.HybridLambda(lambda F, x: x * 2))
        assert net(mx.nd.array([[1, 2]])).asnumpy().tolist() == [[1, 2, 2, 4]]
        assert len(net(mx.sym.var("x")).list_arguments()) == 1


def test_text_of_blocks():
    net = nn.HybridSequential()
    net.add(nn.Dense(3, activation="relu"), nn.Dropout(0.5), nn.Flatten(), nn.LayerNorm(in_channels=4), nn.Embedding(5, 2))
    assert repr(net) == (
        "HybridSequential(\n  (0): Dense(None -> 3, Activation(relu))\n  (1): Dropout(p = 0.5, axes=())\n  (2): Flatten\n"
        "  (3): LayerNorm(eps=1e-05, axis=-1, center=True, scale=True, in_channels=4)\n  (4): Embedding(5 -> 2, float32)\n)"
    )
    outer = gluon.Block()
    outer.net = nn.Sequential()
    outer.net.add(nn.Dense(1, in_units=2))
    assert repr(outer) == "Block(\n  (net): Sequential(\n    (0): Dense(2 -> 1, linear)\n  )\n)"
    assert repr(nn.Lambda("tanh")) == "Lambda(tanh)"
    assert repr(nn.HybridLambda("tanh")) == "HybridLambda(tanh)"
    assert repr(nn.LeakyReLU(0.1)) == "LeakyReLU(0.1)"
    assert repr(nn.GroupNorm(2)) == "GroupNorm(eps=1e-05, num_groups=2, center=True, scale=True)"


# ---- copies


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
@pytest.mark.parametrize("hybrid", [False, True])
def test_a_copy_of_a_network_is_another_network(duplicate, hybrid):
    net = nn.HybridSequential()
    net.add(nn.Dense(3, activation="relu"), nn.Dense(2))
    net.initialize()
    if hybrid:
        net.hybridize()
    x = mx.nd.ones((2, 4))
    before = net(x).asnumpy()
    other = duplicate(net)
    np.testing.assert_array_equal(other(x).asnumpy(), before)
    other[0].weight.set_data(mx.nd.zeros((3, 4)))
    np.testing.assert_array_equal(net(x).asnumpy(), before)
    assert list(other.collect_params().keys()) == list(net.collect_params().keys())
    with mx.autograd.record():
        loss = other(x).sum()
    loss.backward()
    assert (other[1].bias.grad().asnumpy() == 2).all()
    assert (net[1].bias.grad().asnumpy() == 0).all()


def test_lambda_refuses_what_is_no_function():
    for kind in (nn.Lambda, nn.HybridLambda):
        with pytest.raises(AssertionError, match="nosuch is not found"):
            kind("nosuch")
        with pytest.raises(ArgumentError, match="a function or the name"):
            kind(3)


def test_the_default_device_inside_a_block_is_that_of_its_input():
    class Adds(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x + F.ones((2,))

    net = Adds()
    for outside in (mx.cpu(), mx.cpu(1)):
        for inside in (mx.cpu(), mx.cpu(1)):
            with outside:
                assert net(mx.nd.ones((2,), ctx=inside)).context == inside
                assert mx.current_context() == outside


def test_a_parameter_may_say_what_its_value_is():
    class Doubled(gluon.Parameter):
        def data(self, ctx=None):
            return super().data(ctx) * 2

    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = Doubled("weight", shape=(2,), init="ones")

        def hybrid_forward(self, F, x, weight):
            return x * weight

    net = Net()
    net.weight.initialize()
    assert net(mx.nd.array([1, 2])).asnumpy().tolist() == [2, 4]


def test_a_block_is_no_part_of_itself():
    outer, inner = nn.HybridSequential(prefix="outer_"), nn.HybridSequential(prefix="inner_")
    outer.add(inner)
    for add in (lambda: inner.add(outer), lambda: outer.add(outer), lambda: setattr(inner, "child", outer)):
        with pytest.raises(ArgumentError, match="cannot be a part of outer"):
            add()
    assert len(inner) == 0


@pytest.mark.parametrize("kind", [nn.Sequential, nn.HybridSequential])
@pytest.mark.parametrize(
    ("child", "match"),
    [
        ([nn.Dense(2)], r"a child must be a block, got \[a Dense\]; layers are added one by one, as in add\(\*layers\)"),
        ((nn.Dense(2), nn.Dense(3)), r"as in add\(\*layers\)"), (nn.Dense, r"got the type Dense; call it to make one: Dense\(...\)"),
        (lambda x: x, "got a function; nn.Lambda and nn.HybridLambda make a block of a function"), (3, "a child must be a block, got 3$"),
    ],
)  # fmt: skip
def test_a_child_is_a_block(kind, child, match):
    with pytest.raises(ValueError, match=match):
        kind().add(child)
    with pytest.raises(ValueError, match=match):
        kind().register_child(child)


@pytest.mark.parametrize(
    ("kind", "layers", "message"),
    [
        (nn.Sequential, ([nn.Dense(3)],), r"added with add\(\*layers\): net = nn.Sequential\(\); net.add\(\*layers\)$"),
        (nn.HybridSequential, ((nn.Dense(3), nn.Dense(2)),), r"net = nn.HybridSequential\(\); net.add\(\*layers\)$"),
        *(
            (kind, [nn.Dense(3)] * count, rf"{kind.__name__}\(\); net.add\(nn.Dense\(3\), nn.Dense\(2\)\)$")
            for kind in (nn.Sequential, nn.HybridSequential, nn.Concurrent, nn.HybridConcurrent) for count in (1, 2, 3)
        ),
        (nn.Sequential, ("prefix_", nn.Dense(3)), r"net = nn.Sequential\(\); net.add"),
        (nn.Concurrent, ([nn.Dense(3)],), r"net = nn.Concurrent\(\); net.add\(\*layers\)$"),
        (type("Own", (nn.Sequential,), {}), (nn.Dense(3),), r"Own: layers are not given when .*: net = Own\(\); net.add\(nn.Dense"),
        (rnn.SequentialRNNCell, ([rnn.LSTMCell(3)],), r"one by one: net = SequentialRNNCell\(\); net.add\(rnn.LSTMCell\(3\)\)$"),
        (rnn.HybridSequentialRNNCell, [rnn.LSTMCell(3)] * 3, r"net = HybridSequentialRNNCell\(\); net.add\(rnn.LSTMCell\(3\)\)$"),
    ],
)  # fmt: skip
def test_containers_are_made_without_layers(kind, layers, message):
    with pytest.raises(ArgumentError, match=message):
        kind(*layers)


@pytest.mark.parametrize(
    "kind", [gluon.Block, gluon.HybridBlock, Two, nn.Flatten, nn.Identity, nn.GELU, nn.SELU, nn.SiLU, rnn.RecurrentCell]
)
@pytest.mark.parametrize(("prefix", "text"), [(3, "3"), ([1], r"\[1\]"), (nn.Dense(3), "a Dense")])
def test_a_prefix_is_a_string(kind, prefix, text):
    with pytest.raises(ArgumentError, match=f"^{kind.__name__}: prefix must be a string, got {text}$"):
        kind(prefix=prefix)
    with pytest.raises(ArgumentError, match=r"^Dense: prefix must be a string, got 4$"):
        nn.Dense(3, prefix=4)
