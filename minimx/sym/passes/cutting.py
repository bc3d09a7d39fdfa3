"""Cutting the backward part of a program into pieces, each of which becomes a task of the engine.

As one task, all gradients would be there at once, at its end. Cut into pieces, those of the last layers are there while the first are still
computed, so that adding them over several devices, or sending them to other processes, overlaps with computing. A piece is a run of
operators in their order; what later pieces read of it, it gives as further outputs. Book: chapter 10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..graph import Entry, Node
from .typed import Builder, TypedGraph, is_view, operator


@dataclass(frozen=True)
class Piece:
    """A part of a graph. What it reads and gives are entries of the whole graph."""

    graph: TypedGraph
    reads: tuple[Entry, ...]  # in the order of its variables
    gives: tuple[Entry, ...]  # in the order of its heads


def by_number(graph: TypedGraph, size: int) -> list[list[Node]]:
    """Runs of `size` operators; of one, where that is 0."""
    size = max(1, size)
    return [graph.order[start : start + size] for start in range(0, len(graph.order), size)]


def by_cost(graph: TypedGraph, count: int, cost: Callable[[Node], float]) -> list[list[Node]]:
    """`count` runs of operators, or fewer, that take about the same time."""
    costs = [cost(node) for node in graph.order]
    share = sum(costs) / count
    runs: list[list[Node]] = [[]]
    spent = 0.0
    for node, each in zip(graph.order, costs):
        if runs[-1] and spent + each / 2 > share * len(runs):
            runs.append([])
        runs[-1].append(node)
        spent += each
    return runs


def cut(graph: TypedGraph, runs: Sequence[Sequence[Node]]) -> list[Piece]:
    """The pieces of a graph whose operators, in order, are `runs`; one piece, the graph itself, where cutting makes no sense."""
    made = [entry for entry in graph.heads if entry[0].op is not None]
    if len(runs) < 2 or len(set(made)) < len(graph.heads):  # a gradient that is an input, or that of two inputs
        return [Piece(graph, tuple((node, 0) for node in graph.variables), graph.heads)]
    home = {node: number for number, run in enumerate(runs) for node in run}

    def source(entry: Entry, number: int) -> Entry:
        """The value that piece `number` reads for `entry`: a view of another piece's value is made again, which costs nothing."""
        while home.get(entry[0], number) != number and is_view(entry[0]):
            entry = entry[0].inputs[0]  # type: ignore[assignment]  # a view has one
        return entry

    read_later: set[Entry] = set(graph.heads)
    for number, run in enumerate(runs):
        for node in run:
            for entry in node.inputs:
                if entry is not None and home.get(source(entry, number)[0], number) != number:
                    read_later.add(source(entry, number))
    return [_piece(graph, run, number, home, read_later) for number, run in enumerate(runs)]


def _piece(graph: TypedGraph, run: Sequence[Node], number: int, home: dict[Node, int], read_later: set[Entry]) -> Piece:
    builder = Builder(graph.specs, graph.draws)
    reads: dict[Entry, Node] = {}
    place: dict[Entry, Entry] = {}

    def taken(entry: Entry) -> Entry:
        """Where this piece finds a value."""
        node = entry[0]
        if entry not in place:
            if home.get(node, number) != number and is_view(node):
                place[entry] = builder.copy(node, [taken(node.inputs[0])]), 0  # type: ignore[arg-type]  # a view has one
            else:
                stand_in = node if node.op is None else Node(None, node.output_name(entry[1]), {})
                builder.specs[stand_in, 0] = graph.specs[entry]
                reads[entry] = stand_in
                place[entry] = stand_in, 0
        return place[entry]

    for node in run:
        copy = builder.copy(node, [None if entry is None else taken(entry) for entry in node.inputs])
        place.update(((node, index), (copy, index)) for index in range(operator(node).num_outputs))
    gives = [(node, index) for node in run for index in range(operator(node).num_outputs) if (node, index) in read_later]
    piece = graph.replaced(
        name=f"{graph.name}_{number + 1}",
        variables=tuple(reads.values()),
        nodes=tuple(builder.made),
        heads=tuple(place[entry] for entry in gives),
        effects=tuple(place[node, 0][0] for node in graph.effects if home.get(node) == number),
    )
    return Piece(piece, tuple(reads), tuple(gives))
