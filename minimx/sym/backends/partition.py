"""Partitioning: from a graph and a backend to a graph in which parts are single nodes.

Nodes that the backend takes are joined along edges to parts, as large as they can be without a cycle among the parts: where a value goes
from a part to a node outside and comes back, the part could neither run before that node nor after it. Whether joining two parts makes
a cycle is asked of the graph of parts, each time: is there a way from one to the other that leaves them? Book: chapter 13.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence

from ...op import input_names
from ...ops.custom import UserDefined
from ..composite import Subgraph
from ..conventions import PARAMETERS
from ..graph import Entry, Node, topological_order
from ..subgraph import SubgraphOp
from .backend import Backend, Options


def partition(
    heads: Sequence[Entry], backend: Backend, options: Options, params: Collection[str] | None = None
) -> tuple[list[Entry], list[Node]]:
    """The heads of the graph with parts for `backend`, and the nodes of the parts.

    **Args** `params`: names of the variables that are parameters; by default those that operators read as weights. Parts of a graph that
    was partitioned before stay as they are.
    """
    order = topological_order(heads)
    taken = {node for node in order if is_free(node) and backend.takes(node)}
    parts = join(order, taken, backend.joins)
    if params is None:
        params = parameters(order)
    fixed = {node for node in order if node.op is None and node.name in params}
    return _replaced(heads, order, parts, backend, options, fixed)


def is_free(node: Node) -> bool:
    """Whether a node may be in a part: not if it must know values to know what to do, draws in inference, or runs graphs or users' code."""
    op = node.op
    return (
        op is not None
        and not (op.data_dependent or op.composite or op.crosses_devices or (op.needs_key and not op.needs_training))
        and getattr(op, "mode", None) != "always"  # a Dropout that drops in inference, too
        and not isinstance(op, UserDefined)
    )


def parameters(order: Sequence[Node]) -> set[str]:
    """Names of the variables that operators read as weights, and as nothing else."""
    weights: set[str] = set()
    others: set[str] = set()
    for node in order:
        if node.op is not None:
            for entry, called in zip(node.inputs, input_names(node.op, len(node.inputs))):
                if entry is not None and entry[0].op is None:
                    is_weight = called in PARAMETERS or node.op.name == "_rnn_param_concat"
                    (weights if is_weight else others).add(entry[0].name)
    return weights - others


# ---- which nodes belong together


def join(
    order: Sequence[Node], taken: Collection[Node], joins: Callable[[Node, Node], bool] = lambda node, reader: True
) -> list[list[Node]]:
    """The parts of a graph whose nodes, in `order`, are `taken` where a part may have them. No two of them can be joined further."""
    edges = [
        (entry[0], node)
        for node in order
        if node in taken
        for entry in node.inputs
        if entry is not None and entry[0] in taken and joins(entry[0], node)
    ]
    parts = _Parts(order)
    waiting = list(dict.fromkeys(edges))
    while True:
        remaining = [(node, reader) for node, reader in waiting if not parts.joined(node, reader)]
        if len(remaining) == len(waiting):
            break
        waiting = remaining  # joining others may have brought a way around into a part
    return parts.among(taken)


class _Parts:
    """The nodes of a graph in sets, one for each node at first, and the edges among the sets."""

    def __init__(self, order: Sequence[Node]) -> None:
        self.order = order
        self.part = {node: number for number, node in enumerate(order)}
        self.members: dict[int, list[Node]] = {number: [node] for number, node in enumerate(order)}
        self.readers: dict[int, set[int]] = {number: set() for number in self.members}
        self.sources: dict[int, set[int]] = {number: set() for number in self.members}
        for node in order:
            for entry in node.inputs:
                if entry is not None:
                    self.readers[self.part[entry[0]]].add(self.part[node])
                    self.sources[self.part[node]].add(self.part[entry[0]])

    def joined(self, node: Node, reader: Node) -> bool:
        """Join the sets of two nodes, unless that makes a cycle: whether they are one now."""
        first, second = self.part[node], self.part[reader]
        if first == second:
            return True
        if self._is_way_around(first, second):
            return False
        for each in self.members.pop(second):
            self.part[each] = first
            self.members[first].append(each)
        for table, back in ((self.readers, self.sources), (self.sources, self.readers)):
            table[first] = (table[first] | table.pop(second)) - {first, second}
            for other in table[first]:
                back[other] = (back[other] - {second}) | {first}
        return True

    def _is_way_around(self, first: int, second: int) -> bool:
        """Whether a value of `first` goes to `second` through another set."""
        waiting = [each for each in self.readers[first] if each != second]
        seen = set(waiting)
        while waiting:
            following = self.readers[waiting.pop()]
            if second in following:
                return True
            waiting += following - seen
            seen |= following
        return False

    def among(self, taken: Collection[Node]) -> list[list[Node]]:
        """The sets of nodes that are `taken`, each in the order of the graph, and in that of their first nodes."""
        place = {node: number for number, node in enumerate(self.order)}
        found = [sorted(each, key=place.__getitem__) for each in self.members.values() if each[0] in taken]
        return sorted(found, key=lambda part: place[part[0]])


# ---- one node for a part


def _replaced(
    heads: Sequence[Entry],
    order: Sequence[Node],
    parts: Sequence[Sequence[Node]],
    backend: Backend,
    options: Options,
    params: Collection[Node],
) -> tuple[list[Entry], list[Node]]:
    """The graph with a node for each part that the backend accepts, and those nodes."""
    home = {node: number for number, part in enumerate(parts) for node in part}
    asked: list[dict[Entry, None]] = [{} for _ in parts]  # what others read of each part, in order
    for reader, entry in [*((node, entry) for node in order for entry in node.inputs), *((None, head) for head in heads)]:
        if entry is not None and entry[0] in home and (reader is None or home.get(reader) != home[entry[0]]):
            asked[home[entry[0]]][entry] = None
    fresh: dict[Node, Node] = {}
    found: dict[Entry, Entry] = {}
    made: list[Node] = []
    names = {node.name for node in order}
    sources: dict[Node, list[Entry | None]] = {}  # of new nodes: inputs in the graph as it was
    for part, outputs in zip(parts, asked):
        graph, inputs = _cut(part, list(outputs))
        if not outputs or not backend.accepts(graph):
            continue
        places = tuple([place for place, entry in enumerate(inputs) if entry[0] in params])
        op = SubgraphOp(
            num_args=len(inputs) + 1, count=len(graph.heads), backend=backend.name, options=backend.spelt(options), param_locs=places,
            subgraphs=(graph,),
        )  # fmt: skip
        name = next(each for number in itertools.count() if (each := f"{backend.name.lower()}{number}") not in names)
        names.add(name)
        node = Node(op, name, op.attrs())
        node.number = max(each.number for each in part)
        made.append(node)
        sources[node] = list(inputs)
        fresh.update(dict.fromkeys(part, node))
        found.update((entry, (node, index)) for index, entry in enumerate(outputs))
    for node in order:
        if node.op is not None and node not in fresh:
            copy = fresh[node] = node.over([])
            copy.number = node.number
            sources[copy] = node.inputs
            found.update(((node, index), (copy, index)) for index in range(node.op.num_outputs))
    for node, entries in sources.items():  # last, for the nodes of a part stand between others in the order
        node.inputs = [None if entry is None else found.get(entry, entry) for entry in entries]
    return [found.get(entry, entry) for entry in heads], made


def _cut(part: Sequence[Node], outputs: Sequence[Entry]) -> tuple[Subgraph, list[Entry]]:
    """A part as a graph of its own whose heads are `outputs`, and what its variables stand for, in their order."""
    fresh: dict[Node, Node] = {}
    outside: dict[Entry, Node] = {}
    names: set[str] = set()

    def inner(entry: Entry | None) -> Entry | None:
        if entry is None or entry[0] in fresh:
            return None if entry is None else (fresh[entry[0]], entry[1])
        if entry not in outside:
            name = stem = entry[0].name if entry[0].op is None else entry[0].output_name(entry[1])
            for number in itertools.count(1):
                if name not in names:
                    break
                name = f"{stem}_{number}"
            names.add(name)
            outside[entry] = Node(None, name, dict(entry[0].attrs) if entry[0].op is None else {})
            outside[entry].number = entry[0].number
        return outside[entry], 0

    for node in part:
        fresh[node] = node.over([inner(entry) for entry in node.inputs])
        fresh[node].number = node.number  # the order in which they run stays that of the user's code
    graph = Subgraph([(fresh[node], index) for node, index in outputs])
    source = {node: entry for entry, node in outside.items()}
    return graph, [source[node] for node in graph.variables]
