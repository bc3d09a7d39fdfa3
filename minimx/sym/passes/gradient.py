"""Gradients as part of the graph: the same rules that autograd calls with arrays are called with tensors that make nodes.

`differentiate` walks the operators in reverse, as `autograd.backward` walks the tape, and adds up what arrives at each value. The result
is one graph that computes the outputs and the gradients, so that the passes which follow see both. `split` cuts it in two again when
they have done their work: what the outputs need runs forward; the rest runs when the gradients of the outputs have come, and reads the
values of the first part that it needs. Book: chapter 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base import MXNetError
from ..graph import Entry, Node
from .typed import Builder, Specs, Typed, TypedGraph, is_view, operator


def differentiate(graph: TypedGraph, wanted: Sequence[Node]) -> tuple[TypedGraph, list[Node], list[int]]:
    """`graph` with more heads: gradients of the variables `wanted`, as far as they depend on the outputs.

    **Returns** the graph, whose last variables are the gradients of its outputs; those variables, one for each output; and the positions
    in `wanted` of the variables that have a gradient, in the order of the new heads. **Raises** MXNetError from operators that have none.
    """
    builder = Builder(graph.specs, graph.draws)
    depends = builder.depends = {(node, 0) for node in wanted}
    for node in graph.order:
        if any(entry in depends for entry in node.inputs):
            depends.update((node, index) for index in range(operator(node).num_outputs))
    seeds = [_seed(entry, graph.specs) for entry in graph.heads]
    gradients: dict[Entry, Typed] = {}
    for head, seed in zip(graph.heads, seeds):
        if head in depends:
            _add(gradients, head, builder.tensor((seed, 0)))
    for node in reversed(graph.order):
        op = operator(node)
        arrived = [gradients.get((node, index)) for index in range(op.num_outputs)]
        if all(gradient is None for gradient in arrived):
            continue
        builder.stem = f"{node.name}_grad"
        for entry, gradient in zip(node.inputs, _pulled_back(builder, node, arrived)):
            if entry is not None and gradient is not None and entry in depends:
                _add(gradients, entry, gradient)
    reached = [position for position, node in enumerate(wanted) if (node, 0) in gradients]
    made = builder.made
    return (
        graph.replaced(
            variables=(*graph.variables, *seeds),
            nodes=(*graph.nodes, *made),
            heads=(*graph.heads, *(gradients[wanted[position], 0].entry for position in reached)),
            effects=(*graph.effects, *(node for node in made if operator(node).mutates)),
        ),
        seeds,
        reached,
    )


def _seed(entry: Entry, specs: Specs) -> Node:
    """The variable for the gradient of an output."""
    seed = Node(None, f"{entry[0].name}_head_grad", {})
    specs[seed, 0] = specs[entry]
    return seed


def _pulled_back(builder: Builder, node: Node, arrived: list[Typed | None]) -> Sequence[Any]:
    """The gradients of a node's inputs from those of its outputs."""
    op = operator(node)
    inputs = [None if entry is None else builder.tensor(entry) for entry in node.inputs]
    outputs = [builder.tensor((node, index)) for index in range(op.num_outputs)]
    try:
        if op.num_outputs == 1:
            return op.vjp(arrived[0], outputs[0], *inputs)
        return op.vjp(tuple(arrived), tuple(outputs), *inputs)
    except MXNetError as error:
        raise type(error)(f"gradient of {node.name}: {error}") from error


def _add(gradients: dict[Entry, Typed], entry: Entry, gradient: Typed) -> None:
    """Add `gradient` to what has arrived at a value."""
    before = gradients.get(entry)
    gradients[entry] = gradient if before is None else before + gradient


def split(graph: TypedGraph, outputs: int, seeds: Sequence[Node]) -> tuple[TypedGraph, TypedGraph, list[Entry]]:
    """The two parts of a graph whose first `outputs` heads are the outputs, and the others gradients that need `seeds`.

    **Returns** the forward graph, with more heads; the backward graph, which has a variable in the place of each value that it takes
    from outside; and what these are: values of the forward graph (its heads), variables, and seeds.
    """
    first = forward_nodes(graph, outputs, seeds)
    later = [node for node in graph.order if node not in first]
    # What costs nothing to make again is not handed over: a reshaped value is a view of the value before.
    second = Builder(graph.specs, graph.draws)
    handed: dict[Entry, Entry] = {}
    place: dict[Entry, Entry] = {}

    def taken(entry: Entry) -> Entry:
        """Where the backward graph finds a value."""
        if entry in place:
            return place[entry]
        node = entry[0]
        if node in first and is_view(node):
            place[entry] = second.copy(node, [taken(node.inputs[0])]), 0  # type: ignore[arg-type]  # a view has one
        elif node.op is None or node in first:
            stand_in = Node(None, node.name if node.op is None else node.output_name(entry[1]), {})
            second.specs[stand_in, 0] = graph.specs[entry]
            place[entry] = handed[entry] = stand_in, 0
        else:
            return entry
        return place[entry]

    for node in later:
        inputs = [None if entry is None else taken(entry) for entry in node.inputs]
        copy = second.copy(node, inputs)
        place.update(((node, index), (copy, index)) for index in range(operator(node).num_outputs))
    heads = tuple(taken(entry) for entry in graph.heads[outputs:])
    saved = [entry for entry in handed if entry[0].op is not None]
    forward = graph.replaced(
        variables=tuple(node for node in graph.variables if node not in set(seeds)),
        heads=(*graph.heads[:outputs], *(entry for entry in saved if entry not in graph.heads[:outputs])),
        effects=_forward_effects(graph, seeds),
    )
    backward = graph.replaced(
        name=f"{graph.name}_backward",
        variables=tuple(entry[0] for entry in handed.values()),
        nodes=tuple(second.made),
        heads=heads,
        effects=tuple(place[node, 0][0] for node in graph.effects if node not in forward.effects),
    )
    return forward, backward, list(handed)


def forward_nodes(graph: TypedGraph, outputs: int, seeds: Sequence[Node]) -> set[Node]:
    """The operators that the first `outputs` heads need, and effects that need none of the `seeds`: those that run forward."""
    return set(graph.replaced(heads=graph.heads[:outputs], effects=_forward_effects(graph, seeds)).order)


def _forward_effects(graph: TypedGraph, seeds: Sequence[Node]) -> tuple[Node, ...]:
    """Those nodes with effects that need no gradient of an output."""
    waits = set(seeds)
    for node in graph.order:
        if any(entry is not None and entry[0] in waits for entry in node.inputs):
            waits.add(node)
    return tuple(node for node in graph.effects if node not in waits)
