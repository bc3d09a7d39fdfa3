"""Graphs with operators that are not here: which these are, at which nodes, and why, before anything is made of the graph.

Book: chapter 6.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Any

from ..base import ArgumentError
from ..op import REGISTRY

MOST = 5  # operators that a message names

#: By their names, why operators that a graph of MXNet may have are not here, and what to do.
REASONS: tuple[tuple[str, str], ...] = (
    (
        "*quantize* *calibrate_entropy",
        "operators on 8-bit integers are not planned: export the network as it was before it was quantized; cast('float16') halves it",
    ),
    (
        "_sg_* _TensorRT _trt_op",
        "a backend of MXNet has made it of several operators: export the network as it was before optimize_for() or get_backend_symbol()",
    ),
    (
        "_npi_* _npx_* _np_*",
        "it belongs to MXNet's interface of NumPy (mx.np), which is not planned: write the network with nd's functions, and export it anew",
    ),
    (
        "_sparse_* _contrib_dgl_* _contrib_edge_id _contrib_SparseEmbedding *csr* *getnnz",
        "arrays are dense here: build the network without sparse ones",
    ),
)
OTHERWISE = (
    "No network of MXNet 1.9.1 is made of it; it may come from an extension: write it with nd's functions, or as a CustomOp"
)


def require_known(graph: Any, where: str) -> None:
    """Raise ArgumentError unless all operators of a graph that JSON has are registered; `where` begins its message.

    What is malformed is left to who reads the graph.
    """
    nodes: dict[str, str] = {}
    for name, op in _operators(graph):
        if op != "null" and op not in REGISTRY:
            nodes.setdefault(op, name)
    if not nodes:
        return
    listed = [f"{op} (node {name})" for op, name in nodes.items()]
    if len(listed) > MOST:
        listed[MOST:] = [f"{len(listed) - MOST} more"]
    reasons = dict.fromkeys(reason(op) for op in nodes)
    raise ArgumentError(f"{where}: the graph has operators that are not here: {', '.join(listed)}. {'. '.join(reasons)}")


def reason(op: str) -> str:
    """Why the operator `op` is not here, and what to do."""
    for patterns, text in REASONS:
        if any(fnmatch.fnmatchcase(op, pattern) for pattern in patterns.split()):
            return text[0].upper() + text[1:]
    return OTHERWISE


def _operators(graph: Any) -> Iterator[tuple[str, str]]:
    """Name and operator of each node of a graph and of its subgraphs."""
    nodes = graph.get("nodes") if isinstance(graph, dict) else None
    for record in nodes if isinstance(nodes, list) else ():
        if isinstance(record, dict):
            if isinstance(record.get("op"), str):
                yield str(record.get("name")), record["op"]
            subgraphs = record.get("subgraphs")
            for each in subgraphs if isinstance(subgraphs, list) else ():
                yield from _operators(each)
