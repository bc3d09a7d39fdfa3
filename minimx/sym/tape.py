"""The recorded computation of an array as a Symbol: what autograd's tape and a graph have in common, made visible.

`autograd.get_symbol(y)` ends here. The tape's nodes have an operator and inputs, as a graph's nodes have; arrays without a history
become variables.
"""

from __future__ import annotations

from typing import Any

from ..autograd import Leaf, Node as TapeNode, OpNode, topological_order
from ..base import MXNetError
from .conventions import written_attrs
from .graph import Entry, Node
from .symbol import Symbol


def get_symbol(x: Any) -> Symbol:
    """The graph that `x` was computed by while autograd recorded. See `autograd.get_symbol`."""
    if x.node is None or x.node.freed:
        raise MXNetError("get_symbol: the array is not in a computational graph; compute it inside autograd.record()")
    made: dict[TapeNode, Node] = {}
    constants: dict[Any, Node] = {}
    for source in topological_order([x.node]):
        if isinstance(source, Leaf):
            made[source] = Node(None, f"var{sum(isinstance(each, Leaf) for each in made)}", {})
        elif isinstance(source, OpNode):
            entries = [_entry(parent, value, made, constants) for parent, value in zip(source.parents, source.inputs)]
            number = sum(isinstance(each, OpNode) for each in made)
            made[source] = Node(source.op, f"node_{number}", written_attrs(source.op, len(entries)), entries)
        else:
            raise MXNetError(f"get_symbol: {type(source).__name__.strip('_')} has no operator, so it has no place in a Symbol")
    return Symbol([(made[x.node], x.index)])


def _entry(
    parent: tuple[TapeNode, int] | None, value: Any, made: dict[TapeNode, Node], constants: dict[Any, Node]
) -> Entry | None:
    """Where an input comes from: a node of the tape; or a variable for an array without history, one for each array."""
    if parent is not None:
        return made[parent[0]], parent[1]
    if value is None:
        return None
    key = (id(value.var), value.offset, value.spec)
    if not value.var.ready and value.var.failure is not None:
        key = (id(value), 0, value.spec)  # a value that was not kept: nothing tells which array it was
    if key not in constants:
        constants[key] = Node(None, f"null{len(constants)}", {})
    return constants[key], 0
