"""Where to draw the nodes and edges of a graph without cycles: in layers, so that all edges point one way.

Four steps, after Sugiyama and others (1981). A node's layer is the longest way to it. An edge over several layers gets a point in each
that it passes. In each layer nodes are sorted by where their neighbours stand, a few times up and down, which removes most crossings.
At last each node moves as near to its neighbours as the order and the room allow. Coordinates grow to the right and with the layers.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

Point = tuple[float, float]

SWEEPS = 8
ROOM = 24.0  # between neighbours in a layer
THIN = 10.0  # the width of an edge that passes through a layer


class Layout(NamedTuple):
    """`places`: the centre of each node; `paths`: the centres that each edge joins, its ends first and last; and the size of it all."""

    places: list[Point]
    paths: list[list[Point]]
    width: float
    layers: int


def arrange(widths: Sequence[float], edges: Sequence[tuple[int, int]]) -> Layout:
    """Nodes of `widths`, which stand in topological order, and `edges` from one to a later one. Layers are 1 apart."""
    layer = _layers(len(widths), edges)
    all_widths = list(widths)
    chains: list[list[int]] = []  # of each edge, the nodes and points that it joins
    for start, end in edges:
        points = range(len(all_widths), len(all_widths) + layer[end] - layer[start] - 1)
        layer += range(layer[start] + 1, layer[end])
        all_widths += [THIN] * len(points)
        chains.append([start, *points, end])
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for node, number in enumerate(layer):
        rows[number].append(node)
    above: list[list[int]] = [[] for _ in layer]
    below: list[list[int]] = [[] for _ in layer]
    for chain in chains:
        for lower, upper in itertools.pairwise(chain):
            above[lower].append(upper)
            below[upper].append(lower)
    _sort(rows, above, below)
    x = _spread_out(rows, all_widths, above, below)
    left = min((x[node] - all_widths[node] / 2 for node in range(len(x))), default=0)
    right = max((x[node] + all_widths[node] / 2 for node in range(len(x))), default=0)
    centres = [(x[node] - left, float(layer[node])) for node in range(len(x))]
    return Layout(centres[: len(widths)], [[centres[node] for node in chain] for chain in chains], right - left, len(rows))


def _layers(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each node: above all that it depends on; where it depends on nothing, right below the first that uses it."""
    layer = [0] * count
    for start, end in sorted(edges, key=lambda edge: edge[1]):  # all edges into a node before those out of it
        layer[end] = max(layer[end], layer[start] + 1)
    for start in set(range(count)) - {end for _, end in edges}:
        layer[start] = min((layer[end] for source, end in edges if source == start), default=1) - 1
    return layer


def _sort(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Sort each row by the mean place of the neighbours in the row before, from either side in turn."""
    place = {node: float(position) for row in rows for position, node in enumerate(row)}
    for sweep in range(SWEEPS):
        neighbours = above if sweep % 2 else below
        for row in reversed(rows) if sweep % 2 else rows:
            wanted = {node: _mean([place[other] for other in neighbours[node]], place[node]) for node in row}
            row.sort(key=wanted.__getitem__)
            place.update((node, float(position)) for position, node in enumerate(row))


def _spread_out(rows: list[list[int]], widths: Sequence[float], above: list[list[int]], below: list[list[int]]) -> list[float]:
    """A coordinate for each node, near the mean of its neighbours': of those in the row before, from either side in turn, which
    straightens long chains; and in the end of all."""
    x = [0.0] * len(widths)
    for sweep in range(SWEEPS + 2):
        for row in reversed(rows) if sweep % 2 else rows:
            wanted = []
            for node in row:
                side = above[node] if sweep % 2 else below[node]
                wanted.append(_mean([x[other] for other in (side if sweep < SWEEPS else above[node] + below[node])], x[node]))
            for node, coordinate in zip(row, _in_order(wanted, [widths[node] for node in row])):
                x[node] = coordinate
    return x


def _in_order(wanted: Sequence[float], widths: Sequence[float]) -> list[float]:
    """The coordinates nearest to `wanted` (least squares) with which neighbours of these widths do not touch.

    Where two are too near, they become a block that moves as one; blocks grow until all are far enough apart.
    """
    offset, offsets = 0.0, []
    for previous, width in zip([0.0, *widths], widths):
        offset += (previous + width) / 2 + ROOM
        offsets.append(offset)
    blocks: list[tuple[float, int]] = []  # sum of wanted places less offsets, and how many
    for coordinate, offset in zip(wanted, offsets):
        total, count = coordinate - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            other, size = blocks.pop()
            total, count = total + other, count + size
        blocks.append((total, count))
    starts = [total / count for total, count in blocks for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets)]


def _mean(numbers: Sequence[float], default: float) -> float:
    return sum(numbers) / len(numbers) if numbers else default
