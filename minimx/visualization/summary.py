"""The table that `print_summary(symbol)` prints: the operators of a graph in the order in which they run, with shapes and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..base import ArgumentError, ShapeError, shown
from ..op import input_names
from ..sym import Symbol
from ..sym.graph import Entry, Node, auxiliary, topological_order

HEADINGS = ("Layer (type)", "Output Shape", "Param #", "Previous Layer")
NO_PARAMETERS = frozenset(("label", "state", "state_cell"))  # inputs of operators that a user feeds, as the data


def print_summary(
    symbol: Symbol,
    shape: Mapping[str, Sequence[int]] | None = None,
    line_length: int = 120,
    positions: Sequence[float] = (0.44, 0.64, 0.74, 1.0),
) -> None:
    """Print a table of the operators in `symbol`: name, shape of the first output without the batch, parameters, and inputs.

    **Args** `shape`: shapes of the data by name. Without them shapes are left out, and of the parameters only those are counted whose size
    follows from the operators alone (biases, embeddings). `line_length`: characters in a line; `positions`: where the columns end, in
    characters or as fractions of the line. **Raises** TypeError for anything but a Symbol; ValueError if the shapes do not follow from
    those given. **Source** MXNet `visualization.print_summary`, which guesses the numbers of parameters from the operators' attributes;
    here they are those of the variables, each counted where it is used first.
    """
    if not isinstance(symbol, Symbol):
        raise ArgumentError(f"print_summary: symbol must be a Symbol, got {shown(symbol)}")
    shapes = shapes_of(symbol, shape, "print_summary")
    order = topological_order(symbol.entries)
    ends = [int(line_length * each) for each in positions] if positions[-1] <= 1 else [int(each) for each in positions]
    size = _sizes(order, shapes, shape)
    total = 0
    print("_" * line_length)
    print(_line(HEADINGS, ends))
    print("=" * line_length)
    shown_nodes = [node for number, node in enumerate(order) if node.op is not None or number == 0]
    for node in shown_nodes:
        sources = [entry[0] for entry in node.inputs if entry is not None]
        before = [each.name for each in sources if each.op is not None or each is order[0] or (shape and each.name in shape)]
        own = size(node)
        total += own
        layer = f"{node.name}({'null' if node.op is None else node.op.name})"
        output = "x".join(map(str, shapes[node, 0][1:])) if shape is not None else ""
        print(_line((layer, output, own, before[0] if before else ""), ends))
        for each in before[1:]:
            print(_line(("", "", "", each), ends))
        print(("=" if node is shown_nodes[-1] else "_") * line_length)
    print(f"Total params: {total}")
    print("_" * line_length)


def shapes_of(symbol: Symbol, shape: Mapping[str, Sequence[int]] | None, who: str) -> dict[Entry, tuple[int, ...]]:
    """The shape of every entry in the graph, as far as it follows; of all if some are given. Raises ShapeError if those do not suffice."""
    internals = symbol.get_internals()
    if shape is None:
        found = internals.infer_shape_partial()[1]
    else:
        found = internals.infer_shape(**shape)[1]
    if found is None:
        raise ShapeError(f"{who}: the shapes given, of {', '.join(shape or ()) or 'nothing'}, do not determine all others")
    return dict(zip(internals.entries, found))


def _sizes(order: Sequence[Node], shapes: Mapping[Entry, Any], given: Mapping[str, Any] | None) -> Callable[[Node], int]:
    """A function that says how many elements the parameters have that a node uses and no node before it did."""
    seen = auxiliary(order)
    for node in order:
        names = [] if node.op is None else input_names(node.op, len(node.inputs))
        for position, entry in enumerate(node.inputs):
            is_data = position == 0 if given is None else entry is not None and entry[0].name in given
            if entry is not None and (is_data or names[position] in NO_PARAMETERS):
                seen.add(entry[0])

    def size(node: Node) -> int:
        total = 0
        for position, entry in enumerate(node.inputs):
            if entry is not None and entry[0].op is None and entry[0] not in seen:
                seen.add(entry[0])
                known = shapes[entry[0], 0]
                total += math.prod(known) if known else _bias_size(node, position)
        return total

    return size


def _bias_size(node: Node, position: int) -> int:
    """The size of a bias whose shape is unknown, since that of the data is; 0 for other inputs."""
    assert node.op is not None
    is_bias = input_names(node.op, len(node.inputs))[position] == "bias"
    return int(getattr(node.op, "num_hidden", getattr(node.op, "num_filter", 0))) if is_bias else 0


def _line(fields: Sequence[Any], ends: Sequence[int]) -> str:
    """The fields in columns that end at `ends`; what is too long is cut."""
    line = ""
    for field, end in zip(fields, ends):
        line = f"{line}{field}"[:end].ljust(end)
    return line
