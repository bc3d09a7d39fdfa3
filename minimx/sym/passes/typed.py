"""What passes work on: a graph whose shapes and dtypes are all known, and tensors that extend it.

A `TypedGraph` is a value: a pass takes one and returns another, made of new nodes where something changed. `rewritten` is the walk that
most passes share. A `Typed` tensor is an entry of such a graph that knows its shape and dtype: operators on it make nodes, as on a
Symbol, and infer at once, as on an array. So the gradients of operators, which are written with tensors, build graphs from it. Book:
chapter 5.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

from ...base import MXNetError, as_dtype
from ...op import Op, Shaped, Spec, Tensor
from ...ops import casting, shape as shape_ops
from ...ops.fluent import Fluent
from .. import trial
from ..conventions import hint_of, in_node
from ..graph import Entry, Node

if TYPE_CHECKING:
    from .memory import Plan

Specs = dict[Entry, Spec]
Draws = dict[Node, int]


@dataclass(frozen=True)
class TypedGraph:
    """A graph specialized to shapes, dtypes and training mode.

    `nodes` are its operators in the order in which they run; those that nothing needs are skipped (`order`). `specs` knows all entries,
    and may know more: all graphs that come from one share it, and `draws`. `groups` and `plan` are what the last passes add: which nodes
    run tile by tile together, and where values lie.
    """

    name: str
    variables: tuple[Node, ...]  # in the order in which their arrays come
    nodes: tuple[Node, ...]
    heads: tuple[Entry, ...]  # what is asked for
    specs: Specs
    draws: Draws  # the number of each operator that draws random numbers: its key is the one of that number
    effects: tuple[Node, ...] = ()  # nodes that must run although no head needs them: they change a state
    groups: tuple[tuple[Node, ...], ...] = ()
    plan: Plan | None = None
    note: str = ""  # what the last pass says of its work
    parameters: tuple[Node, ...] = ()  # those of the variables that change seldom; a backend is told
    on_gpu: bool = False  # where a group is one kernel, not a walk over tiles

    @functools.cached_property
    def order(self) -> list[Node]:
        """The operators that are needed, in order."""
        needed = reachable([*(node for node, _ in self.heads), *self.effects])
        return [node for node in self.nodes if node in needed]

    @functools.cached_property
    def uses(self) -> dict[Entry, int]:
        """How often each entry is an input or a head."""
        return Counter(chain(self.heads, (entry for node in self.order for entry in node.inputs if entry is not None)))

    @functools.cached_property
    def nbytes(self) -> int:
        """Bytes of all values that operators make."""
        return sum(self.specs[node, index].nbytes for node in self.order for index in range(operator(node).num_outputs))

    def replaced(self, **changes: Any) -> TypedGraph:
        return dataclasses.replace(self, **{"note": "", **changes})


def operator(node: Node) -> Op:
    """The operator of a node that is no variable."""
    assert node.op is not None
    return node.op


def is_view(node: Node) -> bool:
    """Whether a node makes nothing but a view of its one input, which costs nothing to make again."""
    return node.op is not None and node.op.aliases and len(node.inputs) == 1 and node.inputs[0] is not None


def counted(number: int, noun: str) -> str:
    """`1 buffer`, `2 buffers`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def reachable(roots: Iterable[Node]) -> set[Node]:
    """All nodes that `roots` depend on, and themselves."""
    found = set(roots)
    waiting = list(found)
    while waiting:
        for entry in waiting.pop().inputs:
            if entry is not None and entry[0] not in found:
                found.add(entry[0])
                waiting.append(entry[0])
    return found


Rule = Callable[["Builder", Node, "list[Entry | None]"], "Sequence[Entry] | None"]


def rewritten(graph: TypedGraph, rule: Rule) -> TypedGraph:
    """`graph` with nodes replaced by what `rule(builder, node, inputs)` gives: entries for its outputs; None keeps the node.

    `inputs` are the node's, as far as they were replaced already. New nodes are made with the builder.
    """
    builder = Builder(graph.specs, graph.draws)
    replacement: dict[Entry, Entry] = {}
    successor: dict[Node, Node] = {}  # of nodes with effects
    for node in graph.nodes:
        op = operator(node)
        inputs = [None if entry is None else replacement.get(entry, entry) for entry in node.inputs]
        builder.stem = node.name
        made = rule(builder, node, inputs)
        if made is None and inputs != node.inputs:
            copy = builder.copy(node, inputs)
            made = [(copy, index) for index in range(op.num_outputs)]
        if made is None:
            builder.made.append(node)
        else:
            replacement.update(((node, index), entry) for index, entry in enumerate(made))
            successor[node] = made[0][0]
    return graph.replaced(
        nodes=tuple(builder.made),
        heads=tuple(replacement.get(entry, entry) for entry in graph.heads),
        effects=tuple(successor.get(node, node) for node in graph.effects),
    )


def infer_into(specs: Specs, node: Node) -> None:
    """Enter the specs of a node's outputs. Raises what its operator's rule of shapes raises, with the node's name."""
    try:
        found = trial.infer(operator(node), [None if entry is None else specs[entry] for entry in node.inputs])
    except MXNetError as error:
        raise in_node(node.name, error) from None
    specs.update(((node, index), spec) for index, spec in enumerate(found))


def brief(op: Op) -> str:
    """What a node that a pass makes is called: `mul` for broadcast_mul, elemwise_mul and _mul_scalar."""
    return re.sub(r"^_?(broadcast|elemwise|backward)_|_scalar$|^_+", "", hint_of(op))


# ---- tensors that build a graph


class Builder:
    """Where new nodes are entered: their specs, their order, and what their names begin with.

    `depends` are the entries through which gradients flow, if the nodes are those of a gradient: see `is_constant` in op.py.
    """

    def __init__(self, specs: Specs, draws: Draws) -> None:
        self.specs = specs
        self.draws = draws
        self.stem = ""
        self.depends: set[Entry] | None = None
        self.made: list[Node] = []

    def tensor(self, entry: Entry) -> Typed:
        return Typed(self, entry)

    def node(self, op: Op, inputs: Sequence[Entry | None]) -> Node:
        """A new node, whose outputs' specs are inferred."""
        node = Node(op, f"{self.stem}_{brief(op)}", {}, inputs)
        infer_into(self.specs, node)
        self.made.append(node)
        return node

    def copy(self, node: Node, inputs: Sequence[Entry | None]) -> Node:
        """A node like `node` that reads `inputs`, which have the specs of the old ones."""
        copy = Node(node.op, node.name, node.attrs, inputs)
        for index in range(operator(node).num_outputs):
            self.specs[copy, index] = self.specs[node, index]
        if node in self.draws:
            self.draws[copy] = self.draws[node]
        self.made.append(copy)
        return copy


class Typed(Shaped, Fluent):
    """An entry of a typed graph as a tensor: `shape` and `dtype` are known, operators make nodes, and two of them broadcast."""

    __slots__ = ("builder", "entry")

    broadcasts: ClassVar[bool] = True
    __hash__ = object.__hash__  # by identity: == makes a node

    def __init__(self, builder: Builder, entry: Entry) -> None:
        self.builder = builder
        self.entry = entry

    @property
    def spec(self) -> Spec:  # type: ignore[override]  # read-only here
        return self.builder.specs[self.entry]

    @property
    def node(self) -> Node | None:
        """None if nobody asks for the gradient of this value: see `is_constant`."""
        depends = self.builder.depends
        return self.entry[0] if depends is None or self.entry in depends else None

    def __len__(self) -> int:
        return self.shape[0]

    # ---- methods that arrays and Symbols define each in its own way

    def reshape(self, *shape: Any) -> Typed:
        return shape_ops.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)

    def flatten(self) -> Typed:
        return shape_ops.flatten(self)

    def expand_dims(self, axis: int) -> Typed:
        return shape_ops.expand_dims(self, axis)

    def squeeze(self, axis: Any = None) -> Typed:
        return shape_ops.squeeze(self, axis)

    def astype(self, dtype: Any) -> Typed:
        return self if as_dtype(dtype) == self.spec.dtype else casting.cast(self, dtype)

    def copy(self) -> Typed:
        return casting.identity(self)

    def detach(self) -> Typed:
        return casting.stop_gradient(self)

    @classmethod
    def _apply(cls, op: Op, operands: Sequence[Any], how: Any) -> Any:
        """A node that applies `op`: a tensor, or a list where it has several outputs."""
        builder = next(operand for operand in operands if isinstance(operand, Typed)).builder
        for operand in operands:
            if operand is not None and not isinstance(operand, Typed):
                kind = type(operand).__name__
                raise MXNetError(
                    f"{op.name}: a {kind} is mixed with values of a program" if isinstance(operand, Tensor) else kind
                )
        node = builder.node(op, [None if operand is None else operand.entry for operand in operands])
        found = [builder.tensor((node, index)) for index in range(op.num_outputs)]
        return found[0] if op.num_visible == 1 else found[: op.num_visible]
