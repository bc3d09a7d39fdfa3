"""Backends: which parts of a graph they get, what becomes of them in inference, training and files, and what a wrong use says."""

from __future__ import annotations

import copy
import dataclasses
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import minimx as mx
from minimx import autograd, gluon, nd, sym
from minimx.gluon import nn
from minimx.sym import backends
from minimx.sym.backends import Backend, Options, Prepared, backend as registry
from minimx.sym.backends.partition import join
from minimx.sym.graph import Node, topological_order
from minimx.sym.subgraph import SubgraphOp, expanded, subgraph_nodes


@dataclasses.dataclass(frozen=True)
class Level(Options):
    level: int = 1
    fast: bool = False


class Plain(Backend):
    """Runs the kernels one by one, and counts what it is asked for."""

    name = "plain"
    options = Level
    wanted: tuple[str, ...] = (
        "relu",
        "Activation",
        "FullyConnected",
        "elemwise_add",
        "broadcast_add",
        "Convolution",
        "BatchNorm",
    )

    def __init__(self) -> None:
        self.compiled: list[Any] = []
        self.runs = 0
        self.declines = False

    def takes(self, node: Node) -> bool:
        return node.op is not None and node.op.name in self.wanted

    def compile(self, graph: Any, context: Any, options: Any) -> Any:
        self.compiled.append((graph, options))
        if self.declines:
            return None

        def run(*arrays: Any) -> list[Any]:
            self.runs += 1
            values = {(variable, 0): array for variable, array in zip(graph.variables, arrays)}
            for node in graph.order:
                made = node.op.kernel(np, *[None if entry is None else values[entry] for entry in node.inputs])
                values.update(((node, index), each) for index, each in enumerate(made if isinstance(made, tuple) else (made,)))
            return [values[entry] for entry in graph.heads]

        return run


@pytest.fixture
def plain() -> Iterator[Plain]:
    before = dict(registry._backends)
    backends.register(Plain)
    yield registry._backends["plain"]  # type: ignore[misc]
    registry._backends.clear()
    registry._backends.update(before)


def small_net() -> gluon.HybridBlock:
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(4, in_units=3), nn.Activation("relu"), nn.Dense(2, in_units=4))
    net.initialize(mx.init.Uniform(1.0))
    return net


# ---- partitioning


@st.composite
def graphs(draw: Any) -> tuple[list[Node], set[Node], set[tuple[Node, Node]]]:
    """A random graph: its nodes in order, those that a backend takes, and edges that it does not join."""
    nodes = [Node(None, "x", {})]
    op = sym.relu(sym.var("x")).entries[0][0].op
    for number in range(draw(st.integers(1, 14))):
        sources = draw(st.lists(st.integers(0, number), min_size=1, max_size=3))
        nodes.append(Node(op, f"n{number}", {}, [(nodes[source], 0) for source in sources]))
    taken = {node for node in nodes[1:] if draw(st.integers(0, 3))}
    refused = {(entry[0], node) for node in nodes for entry in node.inputs if entry and not draw(st.integers(0, 5))}
    return nodes, taken, refused


def has_cycle(order: list[Node], home: dict[Node, Any]) -> bool:
    """Whether the graph of parts has a cycle: no part can run before all others that it waits for."""
    units = {home.get(node, node) for node in order}
    edges = {(home.get(entry[0], entry[0]), home.get(node, node)) for node in order for entry in node.inputs if entry is not None}
    edges = {(source, reader) for source, reader in edges if source != reader}
    while units:
        free = {unit for unit in units if all(reader != unit for _, reader in edges)}
        if not free:
            return True
        units -= free
        edges = {(source, reader) for source, reader in edges if source not in free}
    return False


@given(graphs())
@settings(max_examples=150, deadline=None)
def test_parts_make_no_cycle_and_are_as_large_as_they_can_be(graph: Any) -> None:
    order, taken, refused = graph
    parts = join(order, taken, lambda node, reader: (node, reader) not in refused)
    home = {node: number for number, part in enumerate(parts) for node in part}
    assert home.keys() == taken
    assert not has_cycle(order, home)
    for node in taken:
        for entry in node.inputs:
            if entry[0] in taken and home[entry[0]] != home[node] and (entry[0], node) not in refused:
                both = {each: home[node] if number == home[entry[0]] else number for each, number in home.items()}
                assert has_cycle(order, both)  # else they should have been joined


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_a_partitioned_graph_is_the_graph_again_when_expanded(graph: Any) -> None:
    order, taken, _ = graph

    class Chosen(Backend):
        name = "chosen"

        def takes(self, node: Node) -> bool:
            return node in taken

    heads = [(order[-1], 0), (order[len(order) // 2], 0)]
    found, parts = backends.partition(heads, Chosen(), Options())
    walk = topological_order(found)  # whatever comes out is a graph: each node after its inputs
    assert len({id(node) for node in walk}) == len(walk)
    assert subgraph_nodes(walk) == [node for node in walk if node in parts]
    again = expanded(found)
    assert sym.Symbol(again).tojson() == sym.Symbol(heads).tojson()


def test_a_way_around_a_node_is_no_part() -> None:
    """relu -> exp -> add, relu -> add: with exp outside, relu and add cannot be one part."""
    a = sym.relu(sym.var("x"), name="a")
    order = topological_order(sym.elemwise_add(a, sym.exp(a, name="e"), name="b").entries)
    taken = {node for node in order if node.name in "ab"}
    assert [[node.name for node in part] for part in join(order, taken)] == [["a"], ["b"]]


def test_optimize_for_makes_nodes_of_parts(plain: Plain) -> None:
    x = sym.var("x")
    hidden = sym.FullyConnected(x, num_hidden=3, name="fc1")
    out = sym.Group([sym.exp(sym.FullyConnected(sym.relu(hidden, name="act"), num_hidden=2, name="fc2"), name="e"), hidden])
    found = out.optimize_for("plain", level=3)
    assert found.list_arguments() == out.list_arguments()
    assert found.list_outputs() == ["e_output", "plain0_output1"]
    [part] = subgraph_nodes(topological_order(found.entries))
    assert isinstance(part.op, SubgraphOp)
    assert [node.name for node in part.op.graph.order if node.op] == ["fc1", "act", "fc2"]
    assert part.op.options == '{"level": 3}'
    assert [part.op.graph.variables[place].name for place in part.op.param_locs] == [
        "fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias",
    ]  # fmt: skip
    assert found.infer_shape(x=(5, 4)) == out.infer_shape(x=(5, 4))
    assert found.infer_type(x="float16") == out.infer_type(x="float16")
    assert out.get_backend_symbol("plain").list_arguments() == out.list_arguments()
    again = sym.load_json(found.tojson())
    assert again.tojson() == found.tojson()
    assert copy.deepcopy(found).tojson() == found.tojson()


def test_values_gradients_and_executors(plain: Plain) -> None:
    x, w = sym.var("x"), sym.var("w")
    out = sym.exp(sym.relu(x) + w)
    found = out.optimize_for("plain")
    values = {"x": nd.array([[1, -2], [3, 4]]), "w": nd.array([[0.5, 0.25], [0, -4]])}
    [expected] = out.eval(**values)
    [got] = found.eval(**values)
    assert plain.runs == 1
    np.testing.assert_array_equal(got.asnumpy(), expected.asnumpy())
    for symbol in (out, found):
        grads = {name: nd.zeros((2, 2)) for name in values}
        executor = symbol.bind(mx.cpu(), values, grads)
        executor.forward(is_train=True)
        executor.backward([nd.ones((2, 2))])
        np.testing.assert_array_equal(grads["w"].asnumpy(), expected.asnumpy())
        np.testing.assert_array_equal(grads["x"].asnumpy(), expected.asnumpy() * [[1, 0], [1, 1]])
    assert plain.runs == 1  # with gradients the operators run themselves


# ---- blocks


def test_a_block_uses_a_backend_in_inference_only(plain: Plain) -> None:
    net, x = small_net(), nd.array(np.arange(6).reshape(2, 3) / 6)
    expected = net(x).asnumpy()
    net.optimize_for(x, backend="plain", level=2)
    assert len(plain.compiled) == 1
    graph, options = plain.compiled[0]
    assert options == Level(2)
    assert [node.name for node in graph.parameters] == [
        "net_dense0_weight", "net_dense0_bias", "net_dense1_weight", "net_dense1_bias",
    ]  # fmt: skip
    np.testing.assert_array_equal(net(x).asnumpy(), expected)
    assert plain.runs == 1
    assert "plain0: 3 operators by plain" in net.program(x).report()
    with autograd.record():
        loss = net(x).sum()
        assert "plain" not in net.program(x).report()
    loss.backward()
    gradient = net[0].weight.grad().asnumpy().copy()
    assert plain.runs == 1
    net.hybridize(backend=None)
    with autograd.record():
        loss = net(x).sum()
    loss.backward()
    np.testing.assert_array_equal(net[0].weight.grad().asnumpy(), gradient)
    assert np.abs(gradient).max() > 0


def test_export_writes_the_parts_and_imports_reads_them(plain: Plain, tmp_path: Any) -> None:
    net, x = small_net(), nd.ones((2, 3))
    expected = net(x).asnumpy()
    net.hybridize(backend="plain", level=5)
    net(x)
    symbol_file, param_file = net.export(tmp_path / "net")
    assert [node.op.name for node in topological_order(sym.load(symbol_file).entries) if node.op] == ["_subgraph_op"]
    block = gluon.SymbolBlock.imports(symbol_file, "data", param_file)
    np.testing.assert_array_equal(block(x).asnumpy(), expected)
    assert plain.compiled[-1][1] == Level(5)
    assert len(plain.compiled[-1][0].parameters) == 4
    del registry._backends["plain"]
    block = gluon.SymbolBlock.imports(symbol_file, "data", param_file)
    with pytest.warns(UserWarning, match="there is no backend 'plain'.*computed by minimx"):
        np.testing.assert_array_equal(block(x).asnumpy(), expected)


def test_a_backend_may_decline(plain: Plain) -> None:
    net, x = small_net(), nd.ones((2, 3))
    expected = net(x).asnumpy()
    plain.declines = True
    net.optimize_for(x, backend="plain")
    np.testing.assert_array_equal(net(x).asnumpy(), expected)
    assert "plain0: 3 operators stay here, plain declines" in net.program(x).report()


def test_hooks_see_the_operators(plain: Plain) -> None:
    net, x = small_net(), nd.ones((2, 3))
    seen: list[str] = []
    net.optimize_for(x, backend="plain")
    net.register_op_hook(lambda name, op, array: seen.append(op))
    net(x).wait_to_read()
    assert seen == ["FullyConnected", "Activation", "FullyConnected"]


def test_backends_one_after_the_other(plain: Plain) -> None:
    @backends.register
    class Exponents(Plain):
        name = "exponents"
        wanted = ("exp", "_mul_scalar")

    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return F.exp(F.relu(x)) * 2

    net, x = Net(), nd.array([1, -1])
    net.optimize_for(x, backend="plain")
    net.optimize_for(x, backend="exponents")
    report = net.program(x).report()
    assert "1 operator by plain" in report
    assert "2 operators by exponents" in report
    np.testing.assert_allclose(net(x).asnumpy(), [2 * np.e, 2], rtol=1e-6)
    net.optimize_for(x, backend="exponents", clear=True)
    assert "by plain" not in net.program(x).report()


def test_batchnorm_trains_in_an_optimized_block(plain: Plain) -> None:
    net = nn.BatchNorm(in_channels=2)
    net.initialize()
    x = nd.array([[1, 2], [3, 6]])
    net.optimize_for(x, backend="plain")
    with autograd.record():
        loss = net(x).sum()
    loss.backward()
    np.testing.assert_allclose(net.running_mean.data().asnumpy(), [0.2, 0.4], rtol=1e-6)
    assert plain.runs == 0
    net(x).wait_to_read()
    assert plain.runs == 1


def test_dropout_that_always_drops_is_never_taken(plain: Plain) -> None:
    plain.wanted = ("Dropout",)  # type: ignore[misc]
    graph = sym.Dropout(sym.Dropout(sym.var("x"), mode="always"), name="second")
    parts = subgraph_nodes(topological_order(graph.optimize_for("plain").entries))
    assert len(parts) == 1


# ---- what is kept of parameters


def test_prepared_is_made_again_when_an_array_changes() -> None:
    made: list[Any] = []

    def prepare(array: Any) -> float:
        made.append(1)
        return float(array.sum())

    prepared = Prepared(prepare)
    w = nd.array(np.arange(10000))

    def ask() -> float:
        w.wait_to_read()
        return prepared(w.var.value)

    assert ask() == ask() == 49995000
    assert len(made) == 1
    w[:] = 1
    assert ask() == 10000
    w[2:4] = 5  # a part, in place
    assert ask() == 10008
    mx.engine.push(lambda memory: memory.fill(2), writes=[w])
    assert ask() == 20000
    nd.sgd_update(w, nd.ones(w.shape), lr=1, out=w)
    assert ask() == 10000
    assert len(made) == 5
    x = nd.ones((4,))
    x[1:2] = 3  # of another array
    assert ask() == 10000
    assert len(made) == 5


def test_prepared_sees_writes_from_outside() -> None:
    prepared = Prepared(lambda array: array.copy())
    w = nd.zeros((4,))
    w.wait_to_read()
    first = prepared(w.var.value)
    outside = np.from_dlpack(w)
    assert (prepared(w.var.value) == first).all()
    memory = w.var.value  # DLPack gives a read-only view in some versions of NumPy; the memory is the same
    assert np.shares_memory(memory, outside)
    memory[0] = 7
    assert prepared(w.var.value)[0] == 7


def test_prepared_in_threads_prepares_once() -> None:
    made: list[int] = []
    prepared = Prepared(lambda array: made.append(1) or array.sum())
    array = np.ones(1000, "float32")
    gate = threading.Barrier(4)

    def ask() -> None:
        gate.wait()
        assert prepared(array) == 1000

    threads = [threading.Thread(target=ask) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(made) == 1


# ---- wrong use


def test_wrong_use(plain: Plain) -> None:
    net, x = small_net(), nd.ones((2, 3))
    with pytest.raises(ValueError, match=r"unknown option lvl; it takes level=1, fast=False"):
        net.optimize_for(x, backend="plain", lvl=3)
    with pytest.raises(TypeError, match="level must be an int, got 'much'"):
        net.hybridize(backend="plain", level="much")
    with pytest.raises(ValueError, match="must specify backend"):
        net.optimize_for(x)
    with pytest.raises(ValueError, match="there must be one NDArray"):
        net.optimize_for(3, backend="plain")
    with pytest.raises(ValueError, match=r"there is no backend 'nobody'; there are .*plain"):
        sym.var("x").optimize_for("nobody")
    with pytest.raises(ValueError, match="must be the name of one"):
        sym.var("x").optimize_for(3)
    with pytest.raises(ValueError, match="args must be a dict"):
        sym.var("x").optimize_for("plain", [nd.ones((1,))])
    with pytest.raises(ValueError, match="args must hold NDArrays, got 3 for x"):
        sym.var("x").optimize_for("plain", {"x": 3})
    with pytest.raises(ValueError, match="arrays are dense"):
        sym.var("x").optimize_for("plain", stype_dict={"x": "csr"})
    with pytest.raises(ValueError, match=r"fc1.*weight"):
        sym.FullyConnected(sym.var("x"), num_hidden=2, name="fc1").optimize_for(
            "plain", {"x": nd.ones((2, 3)), "fc1_weight": nd.ones((2, 5))}
        )
    with pytest.raises(ValueError, match="a subclass of Backend is wanted"):
        backends.register(3)  # type: ignore[type-var]
    with pytest.raises(ValueError, match="needs a name"):
        backends.register(type("Nameless", (Backend,), {}))


def test_options_may_be_annotated_with_classes(plain: Plain) -> None:
    """A notebook has no `from __future__ import annotations`: there a field's type is a class and no string."""
    fields: list[Any] = [("level", int, 1), ("fast", bool, False), ("limit", int | None, None)]
    plain.options = dataclasses.make_dataclass("Evaluated", fields, bases=(Options,), frozen=True)  # type: ignore[misc]
    chosen: Any = plain.chosen({"level": "3", "fast": 1, "limit": 2})
    assert (chosen.level, chosen.fast, chosen.limit) == (3, True, 2)
    assert plain.spelt(plain.parsed('{"limit": 4}')) == '{"limit": 4}'
    with pytest.raises(TypeError, match="limit must be an int or None, got 'much'"):
        plain.chosen({"limit": "much"})


def test_what_compile_returns_is_checked(plain: Plain) -> None:
    net, x = small_net(), nd.ones((2, 3))
    plain.compile = lambda graph, context, options: 3  # type: ignore[method-assign]
    with pytest.raises(mx.MXNetError, match="must return a function or None, it returned int"):
        net.optimize_for(x, backend="plain")
    plain.compile = lambda graph, context, options: lambda *arrays: [np.zeros((1, 1), "float32")]  # type: ignore[method-assign]
    net.hybridize(backend="plain")
    with pytest.raises(mx.MXNetError, match="plain"):
        net(x).wait_to_read()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"num_outputs": "1"', '"num_outputs": "2"'), "has 1 outputs"),
        (('"param_locs": "[1, 2]"', '"param_locs": "[1, 9]"'), "param_locs"),
        (('"num_args": "4"', '"num_args": "5"'), "num_args is 5"),
    ],
)
def test_broken_files(plain: Plain, change: tuple[str, str], message: str) -> None:
    text = sym.FullyConnected(sym.var("x"), num_hidden=2, name="fc").optimize_for("plain").tojson()
    assert change[0] in text
    with pytest.raises(mx.MXNetError, match=message):
        sym.load_json(text.replace(*change))


def test_options_in_files_are_checked(plain: Plain) -> None:
    x = nd.ones((1, 2))
    for text, message in (("[3]", "wants an object"), ('{"lvl": 2}', "unknown option lvl"), ("{", "wants an object")):
        graph = sym.relu(sym.var("x")).optimize_for("plain")
        [part] = subgraph_nodes(topological_order(graph.entries))
        part.op = dataclasses.replace(part.op, options=text)  # type: ignore[type-var]
        with pytest.raises(mx.MXNetError, match=message):
            graph.eval(x=x)
