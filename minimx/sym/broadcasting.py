"""Python's operators in a graph that is to give what the same code gives with arrays.

`a + b` broadcasts arrays, while on Symbols it is MXNet's elemwise_add, which wants equal shapes. Each node that
one of Python's operators made remembers the operator that broadcasts (`Node.broadcast`). Here graphs are rewritten with those, in loops and
branches, too: everywhere, or only where the shapes of the operands differ. Blocks decide which (gluon/broadcasting.py). Book: chapter 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..op import Op
from . import trial
from .composite import Composite
from .graph import Entry, Node, topological_order
from .infer import Facts


def copies(heads: Sequence[Entry], operators: Mapping[Node, Op]) -> dict[Node, Node]:
    """Copies of the nodes that get other `operators`, and of those that depend on them."""
    fresh: dict[Node, Node] = {}
    for node in topological_order(heads):
        if node in operators or any(entry is not None and entry[0] in fresh for entry in node.inputs):
            inputs = [None if entry is None else (fresh.get(entry[0], entry[0]), entry[1]) for entry in node.inputs]
            copy = fresh[node] = Node(operators.get(node, node.op), node.name, node.attrs, inputs)
            copy.number, copy.broadcast = node.number, node.broadcast
    return fresh


def with_operators(heads: Sequence[Entry], operators: Mapping[Node, Op]) -> list[Entry]:
    """`heads` with other operators in some nodes."""
    fresh = copies(heads, operators)
    return [(fresh.get(node, node), index) for node, index in heads]


def broadcasting_operators(heads: Sequence[Entry]) -> dict[Node, Op]:
    """The nodes that Python's operators made, with operators that broadcast; and those of loops and branches that have such inside."""
    found: dict[Node, Op] = {}
    for node in topological_order(heads):
        if node.broadcast is not None:
            found[node] = node.broadcast
        elif isinstance(node.op, Composite):
            wide = node.op.broadcasting()
            if wide is not node.op:
                found[node] = wide
    return found


def add_wanted(found: dict[Node, Op], operators: Mapping[Node, Op], fresh: Mapping[Node, Node], facts: Facts) -> None:
    """Add to `found` those of `operators` whose operands have different shapes. `facts` has those of the copies `fresh`."""
    for node, op in operators.items():
        shapes = [facts.get((fresh.get(entry[0], entry[0]), entry[1])) for entry in node.inputs if entry is not None]
        before = found.get(node, node.op)
        if isinstance(before, Composite):
            fitted = before.fitted(shapes)
            if fitted is not before:
                found[node] = fitted
        elif shapes[0] != shapes[1] and trial.is_whole(shapes[0]) and trial.is_whole(shapes[1]):
            found[node] = op
