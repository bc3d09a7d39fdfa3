"""Mirroring: what is cheap to compute again is not kept for the backward part.

The forward part hands over what gradients are computed from, and all of it lies in memory until the backward part is through: in a
network of convolutions twice the images of each layer, before the normalization and behind the activation. The second follow from the
first by a few passes over them. On request this pass lets the backward part read copies of such operators, *mirrors*, which `split` then
puts there; each stands before its first reader, and so its value lives only from there to its last.

Cheap are elementwise operators, normalizations and transposes; and Dropout, whose mask is kept, so that nothing is drawn again. A mirror
reads what is there anyway: inputs of the graph, outputs, what is handed over all the same, and other mirrors. Of these at most `CHAIN`
stand one upon the other: their values wait for each other, and where as many wait as would have been kept, nothing is gained.

The switch is MXNET_BACKWARD_DO_MIRROR=1 (of MXNet), or MXNET_MEMORY_OPT=1 (of later versions), read where a graph is made; and the
attribute `force_mirroring` asks for it of one node, whatever it computes but random numbers. A mirror gives the same bits: what would
round otherwise in a loop of another group is left alone, unless it is forced. So gradients stay the same, but for the last digits of
products and sums that are computed by another library where other kernels stand beside them (kernels/chain.py). Book: chapter 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from ...base import env_int
from ...engine.execute import TILE
from ...fields import converted
from ...kernels import fused
from ...kernels.expressions import expression_of
from ...kernels.vectormath import SIMPLE, calls
from ...op import Kind, Op
from ...ops.batchnorm import BatchNormLayer
from ...ops.binary import BroadcastMultiply, ElementwiseMultiply
from ...ops.layout import Transpose
from ...ops.nn import DropoutLayer
from ...ops.norm import StandardizingLayer
from ..graph import Entry, Node
from .fusion import LOOPED
from .gradient import forward_nodes
from .typed import Builder, TypedGraph, counted, is_view, operator

CHAIN = 8  # operators: four residual blocks, of which each waits for the one before it
CHEAP = (BatchNormLayer, StandardizingLayer, Transpose)
FORCED = "__force_mirroring__"
NEVER = 1 << 30  # the depth of what the backward part does not find


def wanted(nodes: Iterable[Node]) -> bool:
    """Whether the environment asks for mirrors in a graph of `nodes`. Raises ArgumentError for values other than 0 and 1.

    Attributes of nodes are looked at, too, so that a wrong one is an error where the graph is made.
    """
    for node in nodes:
        is_forced(node)
    return any(env_int(name, 0, maximum=1) for name in ("MXNET_BACKWARD_DO_MIRROR", "MXNET_MEMORY_OPT"))


def mirror(graph: TypedGraph, outputs: int, seeds: Sequence[Node], everywhere: bool) -> TypedGraph:
    """`graph`, in which gradients are computed from values that are cheap to make from copies of these, as far as it is worth while.

    **Args** `outputs`: the first heads, which are no gradients; `seeds`: the variables for gradients of them; `everywhere`: whether all
    nodes are meant, or only those with the attribute `force_mirroring`.
    """
    forced = {node for node in graph.order if is_forced(node)}
    if not everywhere and not forced:
        return graph
    return _Mirrors(graph, outputs, seeds, everywhere, forced).result()


def is_forced(node: Node) -> bool:
    """Whether a user wants a node to be computed again. Raises ArgumentError for an attribute that is neither true nor false."""
    text = node.attrs.get(FORCED)
    return text is not None and bool(converted(node.name, "force_mirroring", "bool", text))


class _Mirrors:
    """Decides in order of the forward part which values are made again; then goes over the rest, and makes mirrors where they are read.

    `depth` has the values that the backward part can have: 0 for those that it is given, and for others how many mirrors stand one upon
    the other. A value that is small is given, if a mirror wants it.
    """

    def __init__(self, graph: TypedGraph, outputs: int, seeds: Sequence[Node], everywhere: bool, forced: set[Node]) -> None:
        self.graph, self.everywhere, self.forced = graph, everywhere, forced
        members = forward_nodes(graph, outputs, seeds)
        self.forward = {node: place for place, node in enumerate(node for node in graph.order if node in members)}
        self.later = [node for node in graph.order if node not in members]
        self.shown = {source(entry) for entry in graph.heads[:outputs]}
        self.given = self._read_by(self.later, graph.heads[outputs:])  # what is handed over without mirrors
        self.depth: dict[Entry, int] = {}
        for node in self.forward:
            if not is_view(node):
                self._decide(node)
        self.builder = Builder(graph.specs, graph.draws)
        self.instead: dict[Entry, Entry] = {}  # mirrors, and copies of what reads them, by what they stand for

    def _read_by(self, nodes: Iterable[Node], heads: Iterable[Entry]) -> set[Entry]:
        """The values of the forward part that nodes, or heads, read."""
        read = chain(heads, (entry for node in nodes for entry in node.inputs if entry is not None))
        return {entry for entry in map(source, read) if entry[0] in self.forward}

    # ---- deciding

    def _decide(self, node: Node) -> None:
        """Enter what the backward part can have of a node's outputs."""
        for index in reversed(range(operator(node).num_outputs)):  # a mirror of the first may read the second
            entry = (node, index)
            depth = NEVER if index or entry in self.shown or not self._is_cheap(node) else self._depth_upon(node)
            if depth <= (NEVER - 1 if node in self.forced else CHAIN):
                self.depth[entry] = depth
            elif entry in self.given or entry in self.shown or self.graph.specs[entry].size < LOOPED:
                self.depth[entry] = 0

    def _depth_upon(self, node: Node) -> int:
        """The depth of a mirror of `node`."""
        return 1 + max((0 if each.op is None else self.depth.get((each, index), NEVER) for each, index in reads(node)), default=0)

    def _is_cheap(self, node: Node) -> bool:
        """Whether a mirror of a node is wanted, if what it reads is there."""
        op, spec = operator(node), self.graph.specs[node, 0]
        if op.mutates or (op.needs_key and not is_masked(node)):
            return False
        if node in self.forced and not op.needs_key:
            return True
        if not self.everywhere or spec.size < LOOPED:
            return False
        if op.kind is Kind.ELEMENTWISE:
            return op.num_outputs == 1 and rounds_alike(op, len(node.inputs), spec.size)
        return isinstance(op, CHEAP) or (is_masked(node) and (node, 1) in self.given)

    # ---- making

    def result(self) -> TypedGraph:
        """The graph with mirrors."""
        for node in self.later:
            inputs = [None if entry is None else self._found(entry) for entry in node.inputs]
            if inputs == node.inputs:
                self.builder.made.append(node)
                continue
            copy = self.builder.copy(node, inputs)
            self.instead.update(((node, index), (copy, index)) for index in range(operator(node).num_outputs))
        heads = [self._found(entry) if entry[0] not in self.forward else entry for entry in self.graph.heads]
        made = [node for node in self.builder.made if node not in self.forward]
        before, after = (
            sum(self.graph.specs[entry].nbytes for entry in given - self.shown)
            for given in (self.given, self._read_by(made, self.graph.heads))
        )
        count = sum(self.depth.get(entry, 0) > 0 and entry in self.given for entry in self.instead)
        return self.graph.replaced(
            nodes=(*self.forward, *made),
            heads=tuple(heads),
            effects=tuple(self.instead.get((node, 0), (node, 0))[0] for node in self.graph.effects),
            note=f"{counted(count, 'value')} made again; {after} bytes handed over, {before} without",
        )

    def _found(self, entry: Entry) -> Entry:
        """Where the backward part reads a value: a mirror, made if it is not there yet, or what it is given."""
        missing: dict[Node, None] = {}
        waiting = [entry]
        while waiting:
            node, index = waiting.pop()
            is_made = node in self.forward and (is_view(node) or self.depth.get((node, index), 0) > 0)
            if is_made and node not in missing and (node, index) not in self.instead:
                missing[node] = None
                waiting += reads(node)
        for node in sorted(missing, key=self.forward.__getitem__):
            self._make(node)
        return self.instead.get(entry, entry)

    def _make(self, node: Node) -> None:
        """Make a mirror of a node, or again a view of one."""
        inputs = [self.instead.get(entry, entry) for entry in reads(node)]
        if is_view(node) and inputs == node.inputs:
            return
        if is_masked(node):
            narrow = self.graph.specs[node, 1].shape != self.graph.specs[node, 0].shape
            self.builder.stem = node.name
            copy = self.builder.node(BroadcastMultiply() if narrow else ElementwiseMultiply(), inputs)
        else:
            place = iter(inputs)
            copy = self.builder.copy(node, [None if entry is None else next(place) for entry in node.inputs])
        self.instead[node, 0] = copy, 0


def source(entry: Entry) -> Entry:
    """The value of which an entry is a view, or itself: `split` makes views again where they are read."""
    while is_view(entry[0]):
        entry = entry[0].inputs[0]  # type: ignore[assignment]  # a view has one
    return entry


def is_masked(node: Node) -> bool:
    """Whether a node multiplies its data by a mask, its second output."""
    return isinstance(node.op, DropoutLayer) and node.op.active


def reads(node: Node) -> list[Entry]:
    """What a mirror of a node reads."""
    given = [entry for entry in node.inputs if entry is not None]
    return [*given, (node, 1)] if is_masked(node) else given


def rounds_alike(op: Op, operands: int, size: int) -> bool:
    """Whether an elementwise operator gives the same bits alone and in a group: a function may be NumPy's alone, and a loop's in a group.

    Beyond a tile it is a loop's in any case.
    """
    if size > TILE or not fused.compiles():
        return True
    found = expression_of(op, operands)
    return found is None or calls(found.text) <= SIMPLE
