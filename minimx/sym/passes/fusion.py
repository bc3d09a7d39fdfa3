"""Elementwise fusion: neighbouring elementwise operators over large arrays of one shape become a group that runs tile by tile.

Each operator of a chain over arrays that fit no cache would wait for memory. A group goes over the data once: it takes a tile that fits
a core's cache, applies all its operators to that, and takes the next; values that nobody else reads exist only as tiles. An operator that
does not need a group's results may run before it, so that the group can go on after it. Book: chapter 5.
"""

from __future__ import annotations

from ...engine.execute import GROUPED, TILE
from ...op import Kind
from ..graph import Entry, Node
from .typed import TypedGraph, counted, operator


def fuse(graph: TypedGraph) -> TypedGraph:
    """Put elementwise operators over large arrays into groups; the order of the nodes changes so that a group's stand together."""
    order: list[Node] = []
    groups: list[tuple[Node, ...]] = []
    group: list[Node] = []
    inside: set[Entry] = set()

    def close() -> None:
        if len(group) > 1 or (group and graph.specs[group[0], 0].size > TILE):  # one alone gains the second core
            groups.append(tuple(group))
        order.extend(group)
        group.clear()
        inside.clear()

    for node in graph.order:
        depends = any(entry in inside for entry in node.inputs)
        if group and is_elementwise(graph, node) and graph.specs[node, 0].shape == graph.specs[group[0], 0].shape:
            fits = all(
                entry not in inside or graph.specs[entry].shape == graph.specs[node, 0].shape for entry in node.inputs if entry
            )
        else:
            fits = False
        if group and not fits and (depends or operator(node).mutates or is_elementwise(graph, node)):
            close()
        if fits or (not group and is_elementwise(graph, node)):
            group.append(node)
            inside.add((node, 0))
        else:
            order.append(node)
    close()
    count = sum(map(len, groups))
    return graph.replaced(
        nodes=tuple(order),
        groups=tuple(groups),
        note=f"{counted(count, 'operator')} in {counted(len(groups), 'group')}",
    )


def is_elementwise(graph: TypedGraph, node: Node) -> bool:
    """Whether a node can run on tiles: its output is large, and its operands are arrays of that shape, or single numbers."""
    op, spec = operator(node), graph.specs[node, 0]
    if op.kind is not Kind.ELEMENTWISE or op.num_outputs != 1 or op.mutates or op.needs_key or spec.size < GROUPED:
        return False
    if not node.inputs or any(entry is None for entry in node.inputs):
        return False
    shapes = [graph.specs[entry] for entry in node.inputs if entry is not None]
    return all(other.shape == spec.shape or other.size == 1 for other in shapes)
