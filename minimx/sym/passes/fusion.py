"""Elementwise fusion: neighbouring elementwise operators over arrays of one shape become a group that goes over the data once.

Each operator of a chain over arrays that fit no cache would wait for memory. A group runs as one loop in machine code, if its operators
have one (minimx/kernels/fused.py): that is worth while for arrays that fit a cache, too, and operands may broadcast. Otherwise a group of
large arrays runs tile by tile: it takes a tile that fits a core's cache, applies all its operators to that, and takes the next; values that
nobody else reads exist only as tiles. An operator that does not need a group's results may run before it, so that the group can go on after
it; one that makes a number a row, for a group with sums over rows alone, becomes part of it. On a GPU a group becomes one kernel
(minimx/kernels/cupy.py), which is worth while for small arrays, too. Book: chapters 5 and 7.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

from ...engine.execute import GROUPED, TILE
from ...kernels import cupy, folds, fused, groups
from ...op import Kind, Shape
from ..graph import Entry, Node
from .typed import TypedGraph, counted, operator

LOOPED = 8192  # elements: a loop in machine code over fewer takes little longer to do than to call
Kinds: TypeAlias = Literal["kernel", "loop", "rows", "tiles"]
FOLDED = 1024  # elements: the same of a loop with sums over rows, for which NumPy would go over them several times


def fuse(graph: TypedGraph) -> TypedGraph:
    """Put elementwise operators over large arrays into groups; the order of the nodes changes so that a group's stand together."""
    order: list[Node] = []
    found: list[tuple[Node, ...]] = []
    group = Growing(graph)
    for node in graph.order:
        depends = any(entry in group.inside for entry in node.inputs)
        alone = bool(kinds_of(graph, node, row_shape(graph, node)))
        joins = bool(group.nodes) and group.takes(node, depends)
        if not joins and (depends or alone or operator(node).mutates):
            found += group.closed(order, found)
            order += group.nodes
            group = Growing(graph)
            joins = alone and group.takes(node, False)
        if not joins:
            order.append(node)
    found += group.closed(order, found)
    order += group.nodes
    count = sum(map(len, found))
    return graph.replaced(
        nodes=tuple(order),
        groups=tuple(found),
        note=f"{counted(count, 'operator')} in {counted(len(found), 'group')}",
    )


class Growing:
    """A group to which nodes are added. `kinds` says what it can become, until it is closed."""

    def __init__(self, graph: TypedGraph) -> None:
        self.graph = graph
        self.nodes: list[Node] = []
        self.inside: set[Entry] = set()
        self.operands: dict[Entry, None] = {}
        self.shape: Shape = ()
        self.kinds: set[Kinds] = set()

    def takes(self, node: Node, depends: bool) -> bool:
        """Add a node, if the group can run with it. `depends`: whether it reads what the group makes."""
        specs, first = self.graph.specs, not self.nodes
        shape = row_shape(self.graph, node) if first else self.shape
        operands = self.operands | dict.fromkeys(entry for entry in node.inputs if entry and entry not in self.inside)
        if len(self.nodes) >= groups.MOST_OPERATORS or len(operands) + len(self.nodes) >= groups.MOST_ARRAYS:
            return False
        kinds = kinds_of(self.graph, node, shape)
        if not first:
            kinds &= self.kinds
        inner = [entry for entry in node.inputs if entry in self.inside]
        if any(specs[entry].shape != shape for entry in ((node, 0), *inner)):
            kinds &= {"rows"}
            if not depends and not folds.folds(operator(node)):
                return False  # a number a row, which has nothing to do with the group
        if "loop" in kinds and fused.walk_of(shape, [specs[entry].shape for entry in operands]) is None:
            kinds.discard("loop")
        if kinds:
            self.nodes.append(node)
            self.inside.add((node, 0))
            self.operands, self.shape, self.kinds = operands, shape, kinds
        return bool(kinds)

    def closed(self, order: list[Node], found: Sequence[tuple[Node, ...]]) -> list[tuple[Node, ...]]:
        """The group, if it is worth while. `order`: the nodes before it, from which it takes some; `found`: the groups among them.

        One operator is, where the second core is gained, or several passes become one, or several launches on a GPU.
        """
        if not self.nodes:
            return []
        if any(folds.folds(operator(node)) for node in self.nodes):
            self._reach_back(order, set(itertools.chain.from_iterable(found)))
        first = operator(self.nodes[0])
        good = len(self.nodes) > 1
        if "kernel" in self.kinds:
            good = good or first.ufunc is None
        elif any(folds.folds(operator(node)) for node in self.nodes):
            good = good or isinstance(first, folds.SOFTMAX)
        elif "loop" in self.kinds or "tiles" in self.kinds:
            several = first.ufunc is None and "loop" in self.kinds
            good = good or several or self.graph.specs[self.nodes[0], 0].size > TILE
        else:
            good = False
        return [tuple(self.nodes)] if good else []

    def _reach_back(self, order: list[Node], grouped: set[Node]) -> None:
        """Take what makes a number a row for this group alone: of a loss, the gradients that arrive there."""
        for node in reversed(order.copy()):
            if operator(node).mutates:
                return
            entry = (node, 0)
            if entry not in self.operands or node in grouped or "rows" not in kinds_of(self.graph, node, self.shape):
                continue
            operands = dict.fromkeys(each for each in (*node.inputs, *self.operands) if each is not None and each != entry)
            room = len(self.nodes) < groups.MOST_OPERATORS and len(operands) + len(self.nodes) < groups.MOST_ARRAYS
            if room and self.graph.uses[entry] == sum(each.inputs.count(entry) for each in self.nodes):
                order.remove(node)
                self.nodes.insert(0, node)
                self.inside.add(entry)
                self.operands = operands


def shape_of_rows(graph: TypedGraph, step: Sequence[Node]) -> Shape:
    """The shape of the rows over which a group goes."""
    return max((row_shape(graph, node) for node in step), key=math.prod)


def row_shape(graph: TypedGraph, node: Node) -> Shape:
    """The shape of a node's result, or that of the rows that it folds."""
    entry = node.inputs[0] if node.inputs else None
    return folds.row_shape(operator(node), graph.specs[node, 0], None if entry is None else graph.specs[entry])


def kinds_of(graph: TypedGraph, node: Node, shape: Shape) -> set[Kinds]:
    """As part of what a node can run: a GPU's kernel, a loop in machine code, one with folds over rows of `shape`, a walk over tiles."""
    given = [entry for entry in node.inputs if entry is not None]
    complete = len(given) == len(node.inputs) or isinstance(operator(node), folds.SOFTMAX)  # which may have no lengths
    if operator(node).num_outputs != 1 or not given or not complete:
        return set()
    if graph.on_gpu:
        return {"kernel"} if fits_kernel(graph, node) else set()
    kinds: set[Kinds] = set()
    if fits_loop(graph, node):
        kinds.add("loop")
    elif fits_tiles(graph, node):
        kinds.add("tiles")
    if fits_rows(graph, node, shape):
        kinds.add("rows")
    return kinds


def fits_rows(graph: TypedGraph, node: Node, shape: Shape) -> bool:
    """Whether a node can be part of a loop over rows of `shape`: see kernels/folds.py."""
    if math.prod(shape) < FOLDED or not fused.compiles():
        return False
    return folds.fits(operator(node), [graph.specs[entry] for entry in node.inputs if entry], graph.specs[node, 0], shape)


def fits_loop(graph: TypedGraph, node: Node) -> bool:
    """Whether a node can be part of a loop in machine code: operands may broadcast."""
    spec = graph.specs[node, 0]
    if spec.size < LOOPED or not fused.compiles():
        return False
    operands = [graph.specs[entry] for entry in node.inputs if entry is not None]
    return fused.fits(operator(node), operands, spec) and fused.walk_of(spec.shape, [each.shape for each in operands]) is not None


def fits_tiles(graph: TypedGraph, node: Node) -> bool:
    """Whether a node can run on tiles: its output is large, and its operands are arrays of that shape, or single numbers."""
    op, spec = operator(node), graph.specs[node, 0]
    if op.kind is not Kind.ELEMENTWISE or op.num_outputs != 1 or op.mutates or op.needs_key or spec.size < GROUPED:
        return False
    if not node.inputs or any(entry is None for entry in node.inputs):
        return False
    shapes = [graph.specs[entry] for entry in node.inputs if entry is not None]
    return all(other.shape == spec.shape or other.size == 1 for other in shapes)


def fits_kernel(graph: TypedGraph, node: Node) -> bool:
    """Whether a node can be part of a kernel on a GPU: it has an expression, and its operands broadcast to its result."""
    specs, result = [graph.specs[entry] for entry in node.inputs if entry is not None], graph.specs[node, 0]
    return cupy.fits(operator(node), specs, result) and all(groups.broadcasts(spec.shape, result.shape) for spec in specs)
