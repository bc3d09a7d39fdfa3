"""Branches of a graph: found where they are long, and nowhere else; the pieces compute what the whole does, side by side."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, engine, gluon, nd, sym
from minimx.gluon import nn
from minimx.kernels import threads
from minimx.sym import Symbol
from minimx.sym.graph import Node
from minimx.sym.passes.branches import by_branch
from minimx.sym.passes.typed import TypedGraph

from .test_passes import typed

HERE = (4, 4)


def dots(x: Any, count: int, name: str) -> Any:
    """A chain of products."""
    for number in range(count):
        x = sym.dot(x, x, name=f"{name}{number}")
    return x


def runs_of(graph: Symbol, least: float = 2) -> list[list[str]]:
    """The names of the operators of each run, where an operator costs 1."""
    found = typed(graph, **dict.fromkeys(graph.list_arguments(), HERE))
    return [[node.name for node in run] for run in by_branch(found, lambda node: 1.0, least)]


def test_two_towers_and_what_joins_them() -> None:
    x = sym.relu(sym.var("x"), name="stem")
    joined = sym.elemwise_add(dots(x, 2, "a"), dots(x, 3, "b"), name="sum")
    assert runs_of(sym.relu(joined, name="head")) == [["stem"], ["a0", "a1"], ["b0", "b1", "b2"], ["sum", "head"]]


def test_a_chain_and_short_branches_stay_whole() -> None:
    assert len(runs_of(dots(sym.var("x"), 5, "a"))) == 1
    x = sym.var("x")
    skipped = sym.elemwise_add(dots(x, 3, "a"), sym.relu(x, name="short"), name="sum")
    assert len(runs_of(skipped)) == 1


def test_a_short_branch_goes_before_the_long_ones() -> None:
    x = sym.relu(sym.var("x"), name="stem")
    joined = sym.Group([dots(x, 2, "a"), sym.sin(x, name="short"), dots(x, 2, "b")])
    assert runs_of(joined) == [["stem", "short"], ["a0", "a1"], ["b0", "b1"]]


def test_towers_of_two_inputs_without_anything_before_them() -> None:
    joined = sym.dot(dots(sym.var("x"), 2, "a"), dots(sym.var("y"), 2, "b"), name="score")
    assert runs_of(joined) == [["a0", "a1"], ["b0", "b1"], ["score"]]


def test_blocks_one_behind_the_other() -> None:
    x = sym.var("x")
    for block in "ab":
        x = sym.elemwise_add(dots(x, 2, f"{block}left"), dots(x, 2, f"{block}right"), name=f"{block}sum")
    assert [len(run) for run in runs_of(x)] == [2, 2, 1, 2, 2, 1]


def random_graph(seed: int) -> Symbol:
    draw = random.Random(seed)
    values = [sym.var("x"), sym.var("y")]
    for number in range(draw.randint(3, 20)):
        one, other = draw.choice(values[-4:]), draw.choice(values)
        values.append(
            sym.elemwise_add(one, other, name=f"n{number}") if draw.random() < 0.5 else sym.relu(one, name=f"n{number}")
        )
    return sym.Group(draw.sample(values[2:], draw.randint(1, 2)))


@pytest.mark.parametrize("seed", range(60))
def test_a_run_needs_earlier_runs_only(seed: int) -> None:
    graph = random_graph(seed)
    found: TypedGraph = typed(graph, **dict.fromkeys(graph.list_arguments(), HERE))
    runs = by_branch(found, lambda node: 1.0, 1.0)
    done: set[Node] = set(found.variables)
    for run in runs:
        for node in run:
            assert all(entry is None or entry[0] in done for entry in node.inputs)
            done.add(node)
    assert [node for node in found.order if node not in done] == []
    assert sum(map(len, runs)) == len(found.order)


# ---- programs


class Towers(gluon.HybridBlock):
    """Two towers over the same input, with BatchNorm and dropout, joined."""

    def __init__(self) -> None:
        super().__init__()
        self.towers = []
        for number in range(2):
            tower = nn.HybridSequential(prefix=f"tower{number}_")
            tower.add(nn.Dense(256, activation="relu"), nn.BatchNorm(), nn.Dropout(0.3), nn.Dense(256, activation="tanh"))
            self.register_child(tower)
            self.towers.append(tower)
        self.head = nn.Dense(3)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.head(self.towers[0](x) * self.towers[1](x))


@pytest.fixture
def spare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "SPARE", True)


def trained(hybridize: bool) -> tuple[list[Any], Any]:
    """Parameters after some steps, and the network."""
    mx.random.seed(3)
    net, x = Towers(), nd.random.normal(shape=(512, 256))
    net.initialize(mx.init.Xavier())
    net(x)
    if hybridize:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(3):
        with autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        trainer.step(1)
    values = [param.data().asnumpy() for param in net.collect_params().values()]
    return [*values, net(x).asnumpy()], net


def test_a_program_in_branches_computes_the_same(spare: None) -> None:
    wanted, _ = trained(False)
    found, net = trained(True)
    for one, other in zip(found, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    program = net.program(nd.ones((512, 256)))
    assert len(program.steps) >= 3
    assert "1: memory" in program.report()


def test_branches_are_tasks_that_need_not_wait_for_each_other(spare: None) -> None:
    _, net = trained(True)
    x = nd.ones((512, 256))
    nd.waitall()
    with engine.trace() as events:
        net(x).wait_to_read()
    assert sum("towers" in str(name) for _, name, *_ in events) >= 3


def test_a_network_on_several_devices_stays_whole(spare: None) -> None:
    x = nd.ones((512, 256))
    for devices, pieces in (([mx.cpu(0)], {3, 4, 5}), ([mx.cpu(0), mx.cpu(1)], {1})):
        net = Towers()
        net.initialize(mx.init.Xavier(), ctx=devices)
        net.hybridize()
        with autograd.record():
            net(x)
            assert len(net.program(x).steps) in pieces


def test_without_a_core_to_spare_there_is_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "SPARE", False)
    _, net = trained(True)
    assert len(net.program(nd.ones((512, 256))).steps) == 1
