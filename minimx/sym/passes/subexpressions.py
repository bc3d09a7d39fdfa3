"""Common subexpressions: what is computed twice from the same values is computed once.

Two nodes are equal if they have equal operators and the same inputs. Operators that draw random numbers or change a state are never
equal to another. Gradients ask again for much that the forward pass has computed; here they find it.
"""

from __future__ import annotations

from typing import Any

from ..graph import Entry, Node
from .typed import Builder, TypedGraph, operator, rewritten


def share_subexpressions(graph: TypedGraph) -> TypedGraph:
    """Replace each node by an earlier one that is equal."""
    seen: dict[Any, Node] = {}
    shared = 0

    def rule(builder: Builder, node: Node, inputs: list[Entry | None]) -> list[Entry] | None:
        nonlocal shared
        op = operator(node)
        if op.needs_key or op.mutates:
            return None
        try:
            key = (op, tuple(inputs))
            first = seen.get(key)
        except TypeError:  # an attribute that cannot be hashed
            return None
        if first is None:
            # The node that will stand in the new graph: this one, or a copy with other inputs, which the walk would make.
            first = node if inputs == node.inputs else builder.copy(node, inputs)
            seen[key] = first
            return None if first is node else [(first, index) for index in range(op.num_outputs)]
        shared += 1
        return [(first, index) for index in range(op.num_outputs)]

    return rewritten(graph, rule).replaced(note=f"{shared} computed already")
