"""Names: prefixes, scopes and counters of blocks, and the names of nodes in their graphs. Expected names are MXNet 1.9.1's."""

from __future__ import annotations

import threading

import pytest

import minimx as mx
from minimx import gluon
from minimx.gluon import nn
from minimx.gluon.block import _BlockScope
from minimx.name import NameManager, Prefix


@pytest.fixture(autouse=True)
def _fresh_names():
    with NameManager():
        yield


def names(block):
    return list(block.collect_params().keys())


class Net(gluon.HybridBlock):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.first = nn.Dense(3, activation="relu")
            self.second = nn.Dense(2, use_bias=False)

    def hybrid_forward(self, F, x):
        return F.exp(self.second(self.first(x)))


def test_automatic_names_count_by_class():
    blocks = [nn.Dense(2), nn.Dense(2), nn.HybridSequential(), nn.Dropout(0.5), nn.Activation("relu"), gluon.Block()]
    assert [block.name for block in blocks] == ["dense0", "dense1", "hybridsequential0", "dropout0", "relu0", "block0"]
    assert blocks[0].prefix == "dense0_"
    with NameManager():
        assert nn.Dense(2).name == "dense0"
    with Prefix("outer_"):
        assert nn.Dense(2).prefix == "outer_dense0_"


def test_a_scope_counts_for_itself_and_adds_its_prefix():
    one, two = Net(), Net(prefix="mine_")
    assert names(one) == ["net0_dense0_weight", "net0_dense0_bias", "net0_dense1_weight"]
    assert names(two) == ["mine_dense0_weight", "mine_dense0_bias", "mine_dense1_weight"]
    with one.name_scope():
        assert nn.Dense(2).name == "net0_dense2"
        assert nn.Dense(2, prefix="fc_").prefix == "net0_fc_"
        with two.name_scope():
            assert nn.Dense(2).name == "mine_dense2"
        assert nn.Dense(2).name == "net0_dense3"
    assert nn.Dense(2).name == "dense0"


def test_names_without_an_underscore():
    assert Net(prefix="abc").name == "abc"
    assert names(Net(prefix="abc")) == ["abcdense0_weight", "abcdense0_bias", "abcdense1_weight"]


def test_an_empty_prefix_does_not_show():
    net = Net(prefix="")
    assert net.name == ""
    assert names(net) == ["dense0_weight", "dense0_bias", "dense1_weight"]
    assert nn.Dense(2).name == "dense2"


def test_children_made_outside_the_scope():
    net = nn.Sequential(prefix="net_")
    net.add(nn.Dense(2))
    with net.name_scope():
        net.add(nn.Dense(2))
    assert names(net) == ["dense0_weight", "dense0_bias", "net_dense0_weight", "net_dense0_bias"]


def test_nested_scopes():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        inner = nn.HybridSequential()
        with inner.name_scope():
            inner.add(nn.Dense(2), nn.Dense(2))
        net.add(inner)
    assert inner.prefix == "net_hybridsequential0_"
    assert names(net)[2] == "net_hybridsequential0_dense1_weight"


def test_shared_parameters_keep_their_names():
    one = Net(prefix="one_")
    two = Net(prefix="two_", params=one.collect_params())
    assert two.name == "two"
    assert names(two) == names(one)
    assert two.first.weight is one.first.weight
    dense = nn.Dense(3, params=one.first.params)
    assert dense.weight is one.first.weight
    assert dense.params.prefix == "one_dense0_"


def test_nodes_are_named_after_layers():
    net = Net(prefix="net_")
    graph = net(mx.sym.var("data"))
    assert graph.list_arguments() == ["data", "net_dense0_weight", "net_dense0_bias", "net_dense1_weight"]
    assert graph.list_outputs() == ["net_exp0_output"]
    inside = graph.get_internals().list_outputs()
    assert "net_dense0_fwd_output" in inside
    assert "net_dense0_relu_fwd_output" in inside
    assert "net_dense1_fwd_output" in inside
    assert net(mx.sym.var("data")).list_outputs() == ["net_exp0_output"]  # each trace counts from 0


@pytest.mark.parametrize(
    ("layer", "output"),
    [
        (lambda: nn.Dense(2, activation="tanh", prefix="test_"), "test_tanh_fwd_output"),
        (lambda: nn.Dropout(0.5), "dropout0_fwd_output"),
        (lambda: nn.Dropout(0), "dropout0_identity0_output"),
        (lambda: nn.Activation("sigmoid"), "sigmoid0_fwd_output"),
        (lambda: nn.LeakyReLU(0.1), "leakyrelu0_fwd_output"),
        (lambda: nn.PReLU(), "prelu0_fwd_output"),
        (lambda: nn.ELU(), "elu0_leakyrelu0_output"),
        (lambda: nn.Swish(), "swish0__mul0_output"),
        (lambda: nn.Embedding(3, 2), "embedding0_fwd_output"),
        (lambda: nn.Flatten(), "flatten0_flatten0_output"),
        (lambda: nn.LayerNorm(), "layernorm0_layernorm0_output"),
        (lambda: nn.InstanceNorm(), "instancenorm0_fwd_output"),
        (lambda: nn.GroupNorm(), "groupnorm0_groupnorm0_output"),
        (lambda: nn.HybridLambda("tanh"), "hybridlambda0_tanh0_output"),
        (lambda: nn.Identity(), "data"),
    ],
)
def test_outputs_of_layers(layer, output):
    assert layer()(mx.sym.var("data")).list_outputs() == [output]


def test_each_thread_has_its_own_scope_and_counter():
    found = []

    def work():
        found.append(nn.Dense(2).name)
        with Net(prefix="thread_").name_scope():
            entered.set()
            leave.wait(10)
            found.append(nn.Dense(2).name)

    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=work)
    nn.Dense(2)
    with Net(prefix="main_").name_scope():
        thread.start()
        assert entered.wait(10)
        assert nn.Dense(2).name == "main_dense2"
        leave.set()
        thread.join(10)
    assert found == ["dense0", "thread_dense2"]


def test_a_scope_can_be_entered_again():
    net = gluon.Block(prefix="net_")
    with net.name_scope(), net.name_scope():
        assert nn.Dense(1).name == "net_dense0"
    assert _BlockScope._current.value is None
    with pytest.raises(RuntimeError, match="inside"), net.name_scope():
        raise RuntimeError("inside")
    assert _BlockScope._current.value is None
