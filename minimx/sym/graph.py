"""The graph behind a Symbol: nodes, and walks over them.

A node is an operator with a name, its inputs, and its attributes as MXNet writes them; a node without an operator is a variable,
whose value comes from outside. An *entry* is one output of a node: (node, number). A graph is given by its heads, the entries that
are asked for; everything else follows from the inputs. Nodes are shared between graphs and never change their inputs.
Book: chapter 3.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ..attribute import AttrScope
from ..base import ArgumentError, MXNetError, shown
from ..name import NameManager
from ..op import Op, find, input_names, is_node_key
from ..rules import require_given
from .conventions import (
    INITIALIZERS,
    hint_of,
    in_node,
    operator_attrs,
    output_name,
    require_strings,
    stored_key,
    written_attrs,
)

Entry: TypeAlias = "tuple[Node, int]"
MOST_OUTPUTS = 1 << 20  # of a node: a file, or a mistake, may ask for any number


class Node:
    """An operator applied to entries, or a variable.

    `inputs` stand in the order of `op.inputs`; None where an optional one is absent. `attrs` are strings: the operator's own, and
    those of the node, which are called `__like_this__`. `earlier` says how often operators of no graph that is left have written to a
    variable: a file may say so of an auxiliary state, and is written again as it was. `number` counts all nodes as they are made: the
    order in which a user's code made them is one in which they can run, and in which random numbers are drawn. `broadcast` is the operator
    that broadcasts, where one of Python's operators made a node that does not: a hybridized block computes with it, as arrays do.
    """

    __slots__ = ("op", "name", "attrs", "inputs", "earlier", "number", "broadcast")
    _numbers = itertools.count()

    def __init__(self, op: Op | None, name: str, attrs: dict[str, str], inputs: Sequence[Entry | None] = ()) -> None:
        self.op = op
        self.name = name
        self.attrs = attrs
        self.inputs = list(inputs)
        self.earlier = 0
        self.number = next(self._numbers)
        self.broadcast: Op | None = None

    @property
    def outputs(self) -> list[Entry]:
        """The outputs that a user sees."""
        return [(self, index) for index in range(1 if self.op is None else self.op.num_visible)]

    def output_name(self, index: int) -> str:
        return output_name(self.op, self.name, index)

    def over(self, inputs: Sequence[Entry | None]) -> Node:
        """A copy of the node on other inputs."""
        fresh = Node(self.op, self.name, dict(self.attrs), inputs)
        fresh.broadcast = self.broadcast
        return fresh

    def set_attrs(self, attrs: Mapping[str, Any]) -> None:
        """Add attributes. Raises ArgumentError for a value that is no string, or for one that the operator does not know."""
        require_strings(dict(attrs))
        stored = {stored_key(key): text for key, text in attrs.items()}
        merged = {**self.attrs, **stored}
        if self.op is not None and operator_attrs(stored.items()):
            changed = parsed(self.name, self.op.name, merged)
            own = {
                field.name: getattr(self.op, field.name) for field in dataclasses.fields(changed) if field.metadata.get("hidden")
            }
            self.op = dataclasses.replace(changed, **own)
        self.attrs = merged

    def __repr__(self) -> str:
        return f"<{'variable' if self.op is None else self.op.name} {self.name}>"


def parsed(name: str, op_name: str, attrs: Mapping[str, str]) -> Op:
    """The operator `op_name` with the attributes `attrs` of the node `name`."""
    try:
        op = find(op_name).from_attrs(dict(attrs))
        require_possible(op)
    except MXNetError as error:
        raise in_node(name, error) from None
    return op


def require_possible(op: Op) -> None:
    """Raise ArgumentError if an attribute is missing, or for a number of outputs that no operator has."""
    require_given(op)
    if not 0 <= op.num_outputs <= MOST_OUTPUTS:
        raise ArgumentError(f"{op.name}: it would have {op.num_outputs} outputs; 0 to {MOST_OUTPUTS} are possible")


def given_attrs(op: Op, how: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a node among the keywords of a call: those in `attr`, and those that any node may have."""
    attr = how.get("attr") or {}
    if not isinstance(attr, Mapping):
        raise ArgumentError(f"{op.name}: attr must be a dict of strings, got {shown(attr)}")
    return {**attr, **{key: value for key, value in how.items() if is_node_key(key)}}


def apply_node(
    op: Op,
    operands: Sequence[Entry | None],
    name: str | None = None,
    hint: str | None = None,
    attr: Mapping[str, str] | None = None,
    given: Mapping[str, str] | None = None,
) -> Node:
    """A new node that applies `op`. Inputs that are missing become variables named after it: `fc1_weight`.

    **Args** `hint`: what an automatic name begins with, if that is not the operator's; `attr`: further attributes of the node;
    `given`: the operator's attributes as the caller wrote them, if they are to be kept in that form.
    """
    require_possible(op)
    if name is not None and not isinstance(name, str):
        raise ArgumentError(f"{op.name}: name must be a str, got {shown(name)}")
    own = dict(AttrScope.current.get(dict(attr) if attr else None))
    for key in own:
        if not is_node_key(key):
            raise ArgumentError(
                f"{op.name}: unknown attribute {key!r}; an attribute of a node is called __{key.strip('_')}__, one of the "
                "operator is passed to its function"
            )
    named = NameManager.current.get(name, hint or hint_of(op))
    attrs = written_attrs(op, len(operands), name) if given is None else dict(given)
    attrs.update((stored_key(key), str(value)) for key, value in own.items())
    return Node(op, named, attrs, completed(op, operands, named, attrs))


def completed(op: Op, operands: Sequence[Entry | None], name: str, attrs: Mapping[str, str]) -> list[Entry | None]:
    """The operands with variables for those that are missing; optional ones that the operator does not want stay None."""
    entries = list(operands)
    wanted = input_names(op, max(len(op.inputs), len(entries)))
    if op.inputs and op.inputs[-1].endswith("*"):
        wanted = wanted[: len(entries)]
    elif len(entries) > len(wanted):
        raise ArgumentError(f"{op.name}: {len(entries)} inputs are given; it takes {', '.join(wanted) or 'none'}")
    entries += [None] * (len(wanted) - len(entries))
    for position, (entry, each) in enumerate(zip(entries, wanted)):
        optional = position < len(op.inputs) and op.inputs[position].endswith("?")
        if entry is None and (not optional or op.wants(each)):
            entries[position] = made_variable(op, each, name, attrs), 0
    return entries


def made_variable(op: Op, wanted: str, name: str, attrs: Mapping[str, str]) -> Node:
    """The variable for the input `wanted` of the node `name`. It carries the node's attributes, as in MXNet."""
    own = dict(attrs)
    initializer = INITIALIZERS.get((op.name, wanted))
    if initializer is not None:
        own.setdefault("__init__", initializer)
    return Node(None, f"{name}_{wanted}", own)


# ---- walks


def topological_order(heads: Iterable[Entry]) -> list[Node]:
    """All nodes that `heads` depend on, each after its inputs: depth first, inputs in their order."""
    order: list[Node] = []
    seen: set[int] = set()
    for head, _ in heads:
        if id(head) in seen:
            continue
        seen.add(id(head))
        stack = [(head, 0)]
        while stack:
            node, position = stack.pop()
            while position < len(node.inputs):
                entry = node.inputs[position]
                position += 1
                if entry is not None and id(entry[0]) not in seen:
                    seen.add(id(entry[0]))
                    stack.append((node, position))
                    stack.append((entry[0], 0))
                    break
            else:
                order.append(node)
    return order


def variables(heads: Iterable[Entry]) -> list[Node]:
    """The variables that `heads` depend on, in the order in which a depth-first walk leaves them."""
    return [node for node in topological_order(heads) if node.op is None]


def auxiliary(order: Iterable[Node]) -> set[Node]:
    """Those variables among the nodes `order` that some operator keeps as its state, such as running means."""
    states: set[Node] = set()
    for node in order:
        if node.op is not None:
            for position in node.op.aux:
                entry = node.inputs[position] if position < len(node.inputs) else None
                if entry is not None and entry[0].op is None:
                    states.add(entry[0])
    return states


def inputs_of(heads: Iterable[Entry]) -> tuple[list[Node], list[Node]]:
    """The variables of a graph: its arguments, and its auxiliary states."""
    order = topological_order(heads)
    states = auxiliary(order)
    found = [node for node in order if node.op is None]
    return [node for node in found if node not in states], [node for node in found if node in states]


def copied(heads: Sequence[Entry], values: Mapping[Node, Entry] | None = None) -> list[Entry]:
    """`heads` over new nodes. Where a variable of `values` is an input, its entry takes its place, and that one is not copied."""
    values = values or {}
    fresh: dict[Node, Node] = {}

    def renewed(entry: Entry | None) -> Entry | None:
        if entry is None:
            return None
        return values[entry[0]] if entry[0] in values else (fresh[entry[0]], entry[1])

    for node in sorted(topological_order(heads), key=lambda each: each.number):  # so that the copies come in the same order
        fresh[node] = node.over([renewed(entry) for entry in node.inputs])
    return [values.get(node) or (fresh[node], index) for node, index in heads]
