"""Python's operators in a traced graph, which broadcast as they do with arrays.

`a + b` broadcasts arrays, while on Symbols it is MXNet's elemwise_add, which wants equal shapes and tells one from the other. A block must
give the same values as Python code and as a graph: the graph that it runs broadcasts everywhere (`broadcasting`). The graph that it shows
and exports is MXNet's where that serves (`fitted`), so that files are those that MXNet writes. Used by tracing.py. Book: chapter 4.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from typing import Any

from ..base import MXNetError
from ..op import Op, Shape
from ..sym import Symbol
from ..sym.broadcasting import add_wanted, broadcasting_operators, copies, with_operators as rewritten
from ..sym.graph import Entry, Node, topological_order
from ..sym.infer import declared_shape, spread_shapes
from ..sym.passes.specialize import is_open

__all__ = ["broadcasting", "fitted"]


def with_operators(graph: Symbol, operators: Mapping[Node, Op]) -> Symbol:
    """`graph` with other operators in some nodes; itself without any."""
    return Symbol(rewritten(graph.entries, operators)) if operators else graph


def broadcasting(graph: Symbol, shapes: Mapping[str, Shape], batches: Collection[str]) -> Symbol:
    """`graph` with Python's operators broadcasting, as they do with arrays.

    What depends on an array of an open shape, zeros((0, 8)), broadcasts only where `shapes` ask for it: an operator that wants equal shapes
    tells what that one is.
    """
    operators = broadcasting_operators(graph.entries)
    dependent: set[Node] = set()
    for node in topological_order(graph.entries) if operators else ():
        if (node.op is not None and is_open(node.op)) or any(
            entry is not None and entry[0] in dependent for entry in node.inputs
        ):
            dependent.add(node)
    if dependent:
        asked = asked_for(graph, shapes, batches)
        operators = {node: asked.get(node, op) for node, op in operators.items() if node not in dependent or node in asked}
    return with_operators(graph, operators)


def fitted(graph: Symbol, shapes: Mapping[str, Shape], batches: Collection[str]) -> Symbol:
    """`graph` with Python's operators broadcasting where `shapes`, of variables by name, ask for it, and nowhere else."""
    return with_operators(graph, asked_for(graph, shapes, batches))


def asked_for(graph: Symbol, shapes: Mapping[str, Shape], batches: Collection[str]) -> dict[Node, Op]:
    """Those of Python's operators whose operands have different shapes, as ones that broadcast.

    A batch of one hides what is broadcast along it, so a longer one is tried, too, in the variables `batches`.
    """
    operators = broadcasting_operators(graph.entries)
    longer = {name: (shape[0] + 1, *shape[1:]) if name in batches and shape else shape for name, shape in shapes.items()}
    chosen: dict[Node, Op] = {}
    for lengths in (shapes, longer) if operators else ():
        add_unequal(chosen, graph, operators, lengths)
        wrong = first_misfit(graph, chosen, lengths)
        while wrong in operators and wrong not in chosen:  # what the others tell about shapes was needed to see that
            chosen[wrong] = operators[wrong]
            wrong = first_misfit(graph, chosen, lengths)
    return chosen


def add_unequal(chosen: dict[Node, Op], graph: Symbol, operators: Mapping[Node, Op], shapes: Mapping[str, Shape]) -> None:
    """Add those `operators` whose operands are known to have different shapes if all of them broadcast."""
    fresh = copies(graph.entries, operators)
    with contextlib.suppress(MXNetError):  # whoever computes with these shapes says what does not fit
        add_wanted(chosen, operators, fresh, inferred(graph, fresh, shapes))


def first_misfit(graph: Symbol, operators: Mapping[Node, Op], shapes: Mapping[str, Shape]) -> Node | None:
    """The first node whose operands do not fit, if those `operators` broadcast."""
    try:
        inferred(graph, copies(graph.entries, operators), shapes)
    except MXNetError as error:
        return next((node for node in topological_order(graph.entries) if node.name == error.node), None)
    return None


def inferred(graph: Symbol, fresh: Mapping[Node, Node], shapes: Mapping[str, Shape]) -> dict[Entry, Any]:
    """What follows for all shapes of the graph in which the copies `fresh` stand for their nodes."""
    order = topological_order((fresh.get(node, node), index) for node, index in graph.entries)
    known = {(node, 0): shapes.get(node.name) or declared_shape(node) for node in order if node.op is None}
    return spread_shapes(order, known, {})
