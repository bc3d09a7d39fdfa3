"""Dead code: operators that no output and no state needs are left out."""

from __future__ import annotations

from .typed import TypedGraph


def drop_dead_code(graph: TypedGraph) -> TypedGraph:
    """Keep what the heads and the effects need."""
    dropped = len(graph.nodes) - len(graph.order)
    return graph.replaced(nodes=tuple(graph.order), note=f"{dropped} dropped")
