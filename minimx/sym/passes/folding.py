"""Constant folding: what depends on no input is computed once, when the program is made; and what changes nothing is left out.

`zeros`, `ones` and `arange` depend on no input, and neither does arithmetic between such values. They become constants, unless they are
larger than `LARGEST`: those are made again in each run, as a program must not hold on to much memory. Operators that look only at the
shape of an input, such as `zeros_like`, do not depend on it, now that the shape is known. A multiplication by one, a copy, dropout in
inference, a reshape to the same shape give their operand bit for bit, so the operand takes their place. Book: chapters 3 and 5.
"""

from __future__ import annotations

import numpy as np

from ...base import MXNetError
from ...ops.binary import ScalarDivide, ScalarMultiply
from ...ops.casting import AmpCast, CastTo, Filled, Identity, IdentityLike, Loss, StopGradient
from ...ops.creation import Full
from ...ops.nn import DropoutLayer
from ...ops.powers import ScalarPower
from ...ops.shape import ReshapeLike, Reshaping, View
from ..graph import Entry, Node
from .constant import Constant
from .typed import Builder, TypedGraph, operator, rewritten

LARGEST = 1 << 20  # bytes
UNCHANGED = (Identity, IdentityLike, StopGradient, Loss)
BY_ONE = (ScalarMultiply, ScalarDivide, ScalarPower)


def fold_constants(graph: TypedGraph) -> TypedGraph:
    """Compute what depends on no input; drop operators that give their operand."""
    folded = dropped = 0

    def rule(builder: Builder, node: Node, inputs: list[Entry | None]) -> list[Entry] | None:
        nonlocal folded, dropped
        if is_identity(graph, node):
            assert inputs[0] is not None
            dropped += 1
            return [inputs[0]]
        values = constant_outputs(graph, node, inputs)
        if values is None:
            return of_shape_alone(graph, builder, node, inputs)
        folded += 1
        return [(builder.node(Constant(value), []), 0) for value in values]

    found = rewritten(graph, rule)
    return found.replaced(note=f"{folded} computed beforehand, {dropped} without effect")


def is_identity(graph: TypedGraph, node: Node) -> bool:
    """Whether a node gives its first operand as it is."""
    op, entry = operator(node), node.inputs[0] if node.inputs else None
    if entry is None or graph.specs[entry] is not graph.specs[node, 0]:
        return False
    if isinstance(op, DropoutLayer):
        return not op.active
    return isinstance(op, (*UNCHANGED, View, ReshapeLike, CastTo, AmpCast)) or (isinstance(op, BY_ONE) and op.scalar == 1)


def of_shape_alone(graph: TypedGraph, builder: Builder, node: Node, inputs: list[Entry | None]) -> list[Entry] | None:
    """The same without the inputs of which only the shape is looked at; None for an operator that has no such input."""
    op, spec = operator(node), graph.specs[node, 0]
    if isinstance(op, Filled):
        return [(builder.node(Full(op.value, spec.shape, spec.dtype), []), 0)]
    if isinstance(op, ReshapeLike):
        return [(builder.node(Reshaping(spec.shape, exact=True), inputs[:1]), 0)]
    return None


def constant_outputs(graph: TypedGraph, node: Node, inputs: list[Entry | None]) -> list[np.ndarray] | None:
    """What a node gives if that is always the same, and small; else None."""
    op = operator(node)
    if isinstance(op, Constant) or op.needs_key or op.mutates or op.crosses_devices:
        return None
    if isinstance(op, Filled) and graph.specs[node, 0].nbytes <= LARGEST:
        return [np.full(graph.specs[node, 0].shape, op.value, graph.specs[node, 0].dtype)]
    if any(graph.specs[node, index].nbytes > LARGEST for index in range(op.num_outputs)):
        return None
    arrays = []
    for entry in inputs:
        if entry is not None and not isinstance(entry[0].op, Constant):
            return None
        arrays.append(None if entry is None else entry[0].op.value)  # type: ignore[union-attr]  # a Constant
    try:
        with np.errstate(all="ignore"):
            found = op.kernel(np, *arrays)
    except MXNetError:
        return None  # let it fail when the program runs, as it would without this pass
    listed = list(found) if type(found) is tuple else [found]
    return [np.ascontiguousarray(value).reshape(graph.specs[node, index].shape) for index, value in enumerate(listed)]
