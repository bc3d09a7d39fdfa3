"""A part of a graph as one node: what partitioning makes for a backend (backends/), and `export` writes.

`_subgraph_op` holds the nodes that it stands for as a subgraph, with the name of the backend that is to compute them. Whoever cannot or
may not use the backend puts the nodes back in its place (`expanded`), so that such a node never changes what a graph means: programs
with gradients, hooks that watch operators, and programs for shapes that the backend declines all have the nodes themselves. Which of them
a backend computes is decided where a program is made (backends/compiling.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from ..base import MXNetError
from ..op import Op, Spec, called, hidden, register
from . import infer, trial
from .composite import Composite, DTypes, Shapes, Subgraph
from .graph import Entry, Node, topological_order
from .infer import Facts

V = TypeVar("V")


@register("_subgraph_op")
class SubgraphOp(Composite):
    """The nodes of `subgraphs[0]`, to be computed by `backend`. Input i is the value of variable i.

    `options` are those of the backend, as JSON; `param_locs` the inputs that are parameters, which change seldom.
    """

    num_args: int
    count: int = called("num_outputs", default=1)
    backend: str = ""
    options: str = ""
    param_locs: tuple[int, ...] = ()
    subgraphs: tuple[Subgraph, ...] = hidden(default=())

    @property
    def num_outputs(self) -> int:
        return self.count

    @property
    def graph(self) -> Subgraph:
        return self.subgraphs[0]

    def places(self, number: int) -> tuple[int, ...]:
        return tuple(range(len(self.graph.variables)))

    def check(self, inputs: int) -> None:
        super().check(inputs)
        self.require(self.count == len(self.graph.heads), f"the subgraph has {len(self.graph.heads)} outputs")
        self.require(len(self.graph.variables) == inputs, f"the subgraph has {len(self.graph.variables)} variables")
        self.require(all(0 <= place < inputs for place in self.param_locs), f"param_locs is {self.param_locs}")

    def broadcasting(self) -> Composite:
        return self  # the graph was one that broadcasts when it was partitioned

    def fitted(self, shapes: Shapes) -> Composite:
        return self

    def infer(self, *specs: Spec) -> tuple[Spec, ...]:
        graph = self.graph
        shapes = None
        if any(not node.inputs and node.op is not None for node in graph.order):
            shapes = infer.spread_shapes(graph.order, {(node, 0): spec.shape for node, spec in zip(graph.variables, specs)}, {})
        found = infer.forward_specs(graph.order, dict(zip(graph.variables, specs)), shapes)
        return tuple([found[entry] for entry in graph.heads])

    def deduced_shapes(self, inputs: Shapes, outputs: Shapes) -> tuple[Shapes, Shapes]:
        return self._deduced(lambda known: infer.spread_shapes(self.graph.order, known, {}), trial.merged, inputs, outputs)

    def deduced_dtypes(self, inputs: DTypes, outputs: DTypes, shapes: Shapes) -> tuple[DTypes, DTypes]:
        facts: Facts = {}
        with contextlib.suppress(MXNetError):  # shapes that do not fit are found by another question
            known = {(node, 0): shape for node, shape in zip(self.graph.variables, shapes)}
            facts = infer.spread_shapes(self.graph.order, known, {})
        return self._deduced(
            lambda known: infer.spread_dtypes(self.graph.order, known, facts), infer.merged_dtype, inputs, outputs
        )

    def _deduced(
        self,
        spread: Callable[[Facts], Facts],
        merge: Callable[[V | None, V | None], V | None],
        inputs: Sequence[V | None],
        outputs: Sequence[V | None],
    ) -> tuple[list[V | None], list[V | None]]:
        known: Facts = {(node, 0): value for node, value in zip(self.graph.variables, inputs)}
        for entry, value in zip(self.graph.heads, outputs):
            known[entry] = merge(known.get(entry), value)
        facts = spread(known)
        return [facts.get((node, 0)) for node in self.graph.variables], [facts.get(entry) for entry in self.graph.heads]


def subgraph_nodes(order: Sequence[Node]) -> list[Node]:
    """The nodes among `order` that stand for a part of a graph."""
    return [node for node in order if isinstance(node.op, SubgraphOp)]


def expanded(heads: Sequence[Entry], kept: Collection[Node] = (), instead: dict[Node, Op] | None = None) -> list[Entry]:
    """`heads` with the parts that were taken out put back in the places of their nodes.

    **Args** `kept`: nodes that stay as they are; `instead`: nodes that get another operator. Copies keep the numbers of their nodes, so
    that they run in the order in which the user's code made them.
    """
    instead = instead or {}
    found: dict[Entry, Entry] = {}

    def current(entry: Entry | None) -> Entry | None:
        return None if entry is None else found.get(entry, entry)

    def over(node: Node, inputs: list[Entry | None], op: Op | None) -> Node:
        if inputs == node.inputs and op is node.op:
            return node
        copy = node.over(inputs)
        copy.op, copy.number = op, node.number
        return copy

    for node in topological_order(heads):
        if node.op is None:
            continue
        inputs = [current(entry) for entry in node.inputs]
        if isinstance(node.op, SubgraphOp) and node not in instead and node not in kept:
            graph = node.op.graph
            inner: dict[Entry, Entry | None] = {(variable, 0): entry for variable, entry in zip(graph.variables, inputs)}
            for each in graph.order:
                if each.op is not None:
                    made = over(each, [None if entry is None else inner[entry] for entry in each.inputs], each.op)
                    inner.update(((each, index), (made, index)) for index in range(each.op.num_outputs))
            outputs: list[Any] = [inner[entry] for entry in graph.heads]
        else:
            made = over(node, inputs, instead.get(node, node.op))
            outputs = [(made, index) for index in range(node.op.num_outputs)]
        found.update(((node, index), entry) for index, entry in enumerate(outputs) if entry != (node, index))
    return [found.get(entry, entry) for entry in heads]
