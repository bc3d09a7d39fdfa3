"""Where backends compute: each part of a graph is offered to its backend, for the shapes, dtypes and device of a program.

What a backend gives becomes the operator of one node; the nodes of a part that it declines return into the graph. Programs with gradients,
or in training mode, do not come here: they have the nodes themselves, so that gradients are those of the operators. Book: chapter 13.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import device
from ...base import ArgumentError, MXNetError
from ...device import Context
from ...op import Kind, Op, Spec
from .. import infer
from ..graph import Entry, Node, topological_order
from ..passes.specialize import is_open, specialize
from ..passes.typed import TypedGraph, counted
from ..subgraph import SubgraphOp, expanded, subgraph_nodes
from . import backend as registry
from .backend import Compiled
from .partition import is_free


class CompiledPart(Op):
    """A part of a graph that a backend computes, as an operator."""

    inputs = ("data*",)
    kind = Kind.OPAQUE

    def __init__(self, name: str, function: Compiled, graph: TypedGraph) -> None:
        specs = tuple(graph.specs[entry] for entry in graph.heads)
        self.__dict__.update(name=name, function=function, specs=specs, graph=graph)

    function: Compiled
    specs: tuple[Spec, ...]
    graph: TypedGraph

    @property
    def num_outputs(self) -> int:
        return len(self.specs)

    def infer(self, *specs: Spec) -> tuple[Spec, ...]:
        return self.specs

    def kernel(self, xp: Any, *arrays: Any) -> tuple[Any, ...]:
        return tuple(self.function(*arrays))

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def handed_over(
    heads: Sequence[Entry], variables: Sequence[Node], given: Sequence[Spec], context: Context
) -> tuple[list[Entry], str]:
    """The graph in which backends compute their parts, and a note of who computes what. `given`: the specs of the variables."""
    order = topological_order(heads)
    shapes = None
    if any(node.op is not None and is_open(node.op) for node in order):
        known: infer.Facts = {(node, 0): spec.shape for node, spec in zip(variables, given)}
        shapes = infer.spread_shapes(order, known, {})
    specs = infer.forward_specs(order, dict(zip(variables, given)), shapes)
    # An array of an open shape, zeros((0, 8)), cannot learn its lengths from a part.
    instead: dict[Node, Op] = {node: infer.settled(node, shapes) for node in order if node.op is not None and is_open(node.op)}
    notes = []
    for node in subgraph_nodes(order):
        made = offered(node, [specs[entry] for entry in node.inputs if entry is not None], context)
        assert isinstance(node.op, SubgraphOp)
        count = counted(sum(each.op is not None for each in node.op.graph.order), "operator")
        if isinstance(made, str):
            notes.append(f"{node.name}: {count} stay here, {made}")
        else:
            instead[node] = made
            notes.append(f"{node.name}: {count} by {made.name}")
    return expanded(heads, instead=instead), "; ".join(notes)


def offered(node: Node, specs: Sequence[Spec], context: Context) -> CompiledPart | str:
    """What the backend of a part makes of it for variables of these specs, or why it is not computed there."""
    op = node.op
    assert isinstance(op, SubgraphOp)
    part = op.graph
    try:
        backend = registry.find(op.backend)
    except ArgumentError as error:
        warnings.warn(f"{node.name}: {error}; it is computed by minimx", stacklevel=2)
        return "the backend is not registered"
    graph = specialize(node.name, part.order, part.variables, part.heads, specs, False)
    if graph.effects or not all(is_free(each) for each in graph.order):
        return "they change a state or draw random numbers"
    parameters = tuple([part.variables[place] for place in op.param_locs])
    graph = graph.replaced(parameters=parameters, on_gpu=device.array_module(context) is not np)
    function = backend.compile(graph, context, backend.parsed(op.options))
    if function is None:
        return f"{backend.name} declines"
    if not callable(function):
        raise MXNetError(f"backend {backend.name}: compile must return a function or None, it returned {type(function).__name__}")
    return CompiledPart(backend.name, function, graph)
