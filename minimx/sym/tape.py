"""The recorded computation of an array as a Symbol: what autograd's tape and a graph have in common, made visible.

`autograd.get_symbol(y)` ends here. The tape's nodes have an operator and inputs, as a graph's nodes have; arrays without a history
become variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..autograd import Leaf, Node as TapeNode, OpNode, topological_order
from ..base import MXNetError
from ..op import Op, Spec
from .compiled import CompiledGraph, ProgramNode
from .conventions import written_attrs
from .graph import Entry, Node, copied
from .infer import forward_specs
from .symbol import Symbol


class CachedGraph(Op):
    """A graph as the operator of one node: what a hybridized block is in the recorded computation."""

    name: ClassVar[str] = "_CachedOp"
    composite: ClassVar[bool] = True
    inputs: ClassVar[tuple[str, ...]] = ("data*",)

    def __init__(self, graph: CompiledGraph) -> None:
        self.__dict__["graph"] = graph

    graph: CompiledGraph

    @property
    def num_outputs(self) -> int:
        return len(self.graph.heads)

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        specs = forward_specs(self.graph.order, dict(zip(self.graph.variables, inputs)))
        return tuple(specs[entry] for entry in self.graph.heads)

    def run(self, operands: Sequence[Any], context: Any) -> list[Any]:
        return self.graph(operands, context)


def get_symbol(x: Any) -> Symbol:
    """The graph that `x` was computed by while autograd recorded. See `autograd.get_symbol`.

    A hybridized block is one node, `_CachedOp`, or all of its nodes if they are at most `inline_limit`.
    """
    if x.node is None or x.node.freed:
        raise MXNetError("get_symbol: the array is not in a computational graph; compute it inside autograd.record()")
    made: dict[tuple[TapeNode, int], Entry] = {}
    constants: dict[Any, Node] = {}
    leaves = operators = 0
    for source in topological_order([x.node]):
        if isinstance(source, Leaf):
            made[source, 0] = Node(None, f"var{leaves}", {}), 0
            leaves += 1
        elif isinstance(source, OpNode):
            entries = [_entry(parent, value, made, constants) for parent, value in zip(source.parents, source.inputs)]
            node = Node(source.op, f"node_{operators}", written_attrs(source.op, len(entries)), entries)
            made.update(((source, index), (node, index)) for index in range(source.num_outputs))
            operators += 1
        elif isinstance(source, ProgramNode):
            parents = dict(zip(source.wanted, source.parents))
            arguments = [_entry(parents.get(number), value, made, constants) for number, value in enumerate(source.arrays)]
            heads = _heads(source.graph, arguments, f"node_{operators}")
            made.update(((source, index), entry) for index, entry in enumerate(heads))
            operators += 1
        else:
            raise MXNetError(f"get_symbol: {type(source).__name__.strip('_')} has no operator, so it has no place in a Symbol")
    return Symbol([made[x.node, x.index]])


def _heads(graph: CompiledGraph, arguments: Sequence[Entry | None], name: str) -> list[Entry]:
    """The outputs of a compiled graph: over copies of its nodes if they are few, else of one node."""
    if len(graph.order) - len(graph.variables) <= graph.inline_limit:
        values = {node: entry for node, entry in zip(graph.variables, arguments) if entry is not None}
        heads = copied(graph.heads, values)
        return [values.get(node, head) for (node, _), head in zip(graph.heads, heads)]
    node = Node(CachedGraph(graph), name, {"num_args": str(len(arguments))}, arguments)
    return [(node, index) for index in range(len(graph.heads))]


def _entry(
    parent: tuple[TapeNode, int] | None, value: Any, made: dict[tuple[TapeNode, int], Entry], constants: dict[Any, Node]
) -> Entry | None:
    """Where an input comes from: a node of the tape; or a variable for an array without history, one for each array."""
    if parent is not None:
        return made[parent]
    if value is None:
        return None
    key = (id(value.var), value.offset, value.spec)
    if not value.var.ready and value.var.failure is not None:
        key = (id(value), 0, value.spec)  # a value that was not kept: nothing tells which array it was
    if key not in constants:
        constants[key] = Node(None, f"null{len(constants)}", {})
    return constants[key], 0
