"""Finding the branches of a graph that can run side by side: each becomes a piece of the program, and so a task of the engine.

A *waist* of a graph is an operator that every other one is before or after, such as the sum that joins the two sides of a residual block.
What lies between two waists may be several parts that know nothing of each other: the towers of an Inception block, the networks of two
inputs. Where at least two of them are long, each is a run of its own, in the order in which the user's code made them. Book: chapter 7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..graph import Node
from .typed import TypedGraph

#: Nanoseconds that a branch must take. A task more costs some 100 us, if another thread must be woken for it.
LEAST = 5e5


def by_branch(graph: TypedGraph, cost: Callable[[Node], float], least: float = LEAST) -> list[list[Node]]:
    """The operators of a graph as runs, of which some do not need each other; one run, where there are no long branches.

    A run needs earlier runs only.
    """
    costs = {node: cost(node) for node in graph.order}
    if sum(costs.values()) < 2 * least:
        return [graph.order]
    first, rest = _without_short_beginnings(graph.order, costs, least)
    runs = [first]
    for region, waist in _regions(rest):
        branches = _parts(region)
        long = [branch for branch in branches if sum(map(costs.__getitem__, branch)) >= least]
        if len(long) < 2:
            runs[-1] += region
        else:
            chosen = {node for branch in long for node in branch}
            runs[-1] += [node for node in region if node not in chosen]
            runs += long
            runs.append([])
        runs[-1] += waist
    return [run for run in runs if run]


def _without_short_beginnings(order: Sequence[Node], costs: dict[Node, float], least: float) -> tuple[list[Node], list[Node]]:
    """Short operators on the graph's variables, and on such as these, in order; and the others.

    A weight that is transposed is before one layer only, and beside all others: it would hide every waist in front of that layer.
    """
    first: dict[Node, None] = {}
    for node in order:
        if costs[node] < least / 10 and all(made in first or made.op is None for made in made_by(node)):
            first[node] = None
    return list(first), [node for node in order if node not in first]


def made_by(node: Node) -> list[Node]:
    """The operators and variables that a node reads."""
    return [entry[0] for entry in node.inputs if entry is not None]


def _regions(order: Sequence[Node]) -> list[tuple[list[Node], list[Node]]]:
    """What lies before each waist, in order, with the waist in a list; and what lies behind the last, with an empty one."""
    before: dict[Node, int] = {}  # a set as the bits of a number: the operators that a node needs, and itself
    after = dict.fromkeys(order, 0)  # and those that need it, and itself
    for number, node in enumerate(order):
        before[node] = 1 << number
        for made in made_by(node):
            before[node] |= before.get(made, 0)
    for number, node in reversed(list(enumerate(order))):
        after[node] |= 1 << number
        for made in made_by(node):
            if made in after:
                after[made] |= after[node]
    regions: list[tuple[list[Node], list[Node]]] = []
    region: list[Node] = []
    for node in order:
        if before[node].bit_count() + after[node].bit_count() == len(order) + 1:
            regions.append((region, [node]))
            region = []
        else:
            region.append(node)
    return [*regions, (region, [])]


def _parts(region: Sequence[Node]) -> list[list[Node]]:
    """The parts of a region that know nothing of each other, by their first operators, each in order."""
    home: dict[Node, int] = {}  # of each operator: which part it is in
    parts: dict[int, list[Node]] = {}
    for number, node in enumerate(region):
        found = {home[made] for made in made_by(node) if made in home}
        first = min(found, default=number)
        parts[first] = [member for each in sorted(found) for member in parts.pop(each)] + [node]
        home.update((member, first) for member in parts[first])
    place = {node: number for number, node in enumerate(region)}
    return [sorted(part, key=place.__getitem__) for _, part in sorted(parts.items())]
