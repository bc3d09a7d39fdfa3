"""Elementwise fusion: neighbouring elementwise operators over large arrays of one shape become a group that runs tile by tile.

Each operator of a chain over arrays that fit no cache would wait for memory. A group goes over the data once: it takes a tile that fits
a core's cache, applies all its operators to that, and takes the next; values that nobody else reads exist only as tiles. An operator that
does not need a group's results may run before it, so that the group can go on after it. On a GPU a group becomes one kernel
(minimx/kernels/cupy.py), which is worth while for small arrays, too. Book: chapters 5 and 7.
"""

from __future__ import annotations

from ...engine.execute import GROUPED, TILE
from ...kernels import cupy
from ...op import Kind
from ..graph import Entry, Node
from .typed import TypedGraph, counted, operator


def fuse(graph: TypedGraph) -> TypedGraph:
    """Put elementwise operators over large arrays into groups; the order of the nodes changes so that a group's stand together."""
    fits_alone = fits_kernel if graph.on_gpu else is_elementwise
    order: list[Node] = []
    groups: list[tuple[Node, ...]] = []
    group: list[Node] = []
    inside: set[Entry] = set()

    def close() -> None:
        # One alone gains the second core; on a GPU, a single launch if its own kernel consists of several.
        alone = bool(group) and (operator(group[0]).ufunc is None if graph.on_gpu else graph.specs[group[0], 0].size > TILE)
        if len(group) > 1 or alone:
            groups.append(tuple(group))
        order.extend(group)
        group.clear()
        inside.clear()

    for node in graph.order:
        depends = any(entry in inside for entry in node.inputs)
        if group and fits_alone(graph, node) and graph.specs[node, 0].shape == graph.specs[group[0], 0].shape:
            fits = all(
                entry not in inside or graph.specs[entry].shape == graph.specs[node, 0].shape for entry in node.inputs if entry
            )
            fits = fits and not (graph.on_gpu and is_full(group, node))
        else:
            fits = False
        if group and not fits and (depends or operator(node).mutates or fits_alone(graph, node)):
            close()
        if fits or (not group and fits_alone(graph, node)):
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


def fits_kernel(graph: TypedGraph, node: Node) -> bool:
    """Whether a node can be part of a kernel on a GPU: it has an expression, and its operands broadcast to its result."""
    if any(entry is None for entry in node.inputs):
        return False
    specs, result = [graph.specs[entry] for entry in node.inputs if entry is not None], graph.specs[node, 0]
    return cupy.fits(operator(node), specs, result) and all(cupy.broadcasts(spec.shape, result.shape) for spec in specs)


def is_full(group: list[Node], node: Node) -> bool:
    """Whether a group with `node` would be more than a kernel takes."""
    inside = {(each, 0) for each in group}
    operands = {entry for each in (*group, node) for entry in each.inputs if entry not in inside}
    return len(group) >= cupy.MOST_OPERATORS or len(operands) + len(group) >= cupy.MOST_ARRAYS
