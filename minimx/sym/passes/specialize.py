"""The first pass: a graph as the user made it becomes one for given shapes, dtypes and training mode.

Every operator is settled: one that behaves differently in training knows the mode, one that makes an array of an open shape, zeros((0, 8)),
knows its lengths. The specs of all values are inferred, so that a shape which does not fit is an error here, with the name of the node.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ...op import Op, Spec
from .. import infer
from ..graph import Entry, Node
from .typed import Specs, TypedGraph, infer_into


def specialize(
    name: str,
    order: Sequence[Node],
    variables: Sequence[Node],
    heads: Sequence[Entry],
    given: Sequence[Spec],
    training: bool | None,
) -> TypedGraph:
    """The graph of `order` (variables too, each after its inputs) for variables of the specs `given`.

    **Args** `training`: the mode, or None to leave operators as they are. **Raises** ShapeError, DTypeError or ArgumentError with the
    node's name for inputs that do not fit.
    """
    specs: Specs = {(node, 0): spec for node, spec in zip(variables, given)}
    shapes = _open_shapes(order, specs)
    settled: dict[Node, Node] = {}

    def current(entry: Entry | None) -> Entry | None:
        return None if entry is None else (settled.get(entry[0], entry[0]), entry[1])

    for node in order:
        if node.op is None:
            continue
        op = infer.settled(node, shapes)
        if op.needs_training and training is not None:
            op = dataclasses.replace(op, training=training)
        inputs = [current(entry) for entry in node.inputs]
        settled[node] = made = node if op is node.op and inputs == node.inputs else Node(op, node.name, node.attrs, inputs)
        infer_into(specs, made)
    random = [node for node in settled.values() if node.op is not None and node.op.needs_key]
    return TypedGraph(
        name, tuple(variables), tuple(settled.values()), tuple((settled.get(node, node), index) for node, index in heads), specs,
        {node: number for number, node in enumerate(random)},
        effects=tuple(node for node in settled.values() if node.op is not None and node.op.mutates),
    )  # fmt: skip


def _open_shapes(order: Sequence[Node], specs: Specs) -> infer.Facts | None:
    """What follows for all shapes, if some operator makes an array of an open one."""
    if not any(node.op is not None and is_open(node.op) for node in order):
        return None
    return infer.spread_shapes(
        order, {entry: spec.shape for entry, spec in specs.items()}, {entry: spec.dtype for entry, spec in specs.items()}
    )


def is_open(op: Op) -> bool:
    """Whether an operator without inputs makes an array of a shape that is not known completely."""
    shape = getattr(op, "shape", None)
    return not op.inputs and isinstance(shape, tuple) and 0 in shape
