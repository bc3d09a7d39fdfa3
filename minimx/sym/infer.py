"""Shapes and dtypes of a whole graph, from the few that are given.

What is known about each entry spreads from node to node, from inputs to outputs and back, until nothing changes: a weight's shape from
its data, a batch size from a label, data from what it is added to. trial.py says what one operator makes of what is known about it.
Two sources that contradict each other are an error, with the node's name. Book: chapter 3.
"""

from __future__ import annotations

import ast
import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from ..base import DTYPE_OF_CODE, FLOAT32, ArgumentError, DTypeError, MXNetError, ShapeError, as_dtype, shown
from ..op import Op, Shape, Spec
from ..ops.custom import UserDefined
from . import dtype_trial, trial
from .composite import Composite
from .conventions import in_node
from .graph import Entry, Node, inputs_of, topological_order

Facts = dict[Entry, Any]  # what is known of entries: their shapes (0 in them for an unknown length), or their dtypes
V = TypeVar("V")


# ---- one kind of fact, spread over the graph


def _spread(
    order: Sequence[Node],
    facts: Facts,
    deduce: Callable[[Node, Op, Any, Any, trial.Present], tuple[Sequence[Any], Sequence[Any]]],
    merge: Callable[[Any, Any], Any],
    is_known: Callable[[Any], bool],
) -> None:
    """Complete `facts` in place: visit the nodes forth and back until a visit of all of them adds nothing."""
    waiting = [node for node in order if node.op is not None]
    forth = True
    changed = True
    while changed and waiting:
        changed = False
        remaining = []
        for node in waiting if forth else reversed(waiting):
            op = node.op
            assert op is not None
            entries = [*node.inputs, *((node, index) for index in range(op.num_outputs))]
            before = [None if entry is None else facts.get(entry) for entry in entries]
            count = len(node.inputs)
            present = tuple(entry is not None for entry in node.inputs)
            try:
                inputs, outputs = deduce(node, op, tuple(before[:count]), tuple(before[count:]), present)
                after = [merge(old, new) for old, new in zip(before, (*inputs, *outputs))]
            except MXNetError as error:
                raise in_node(node.name, error) from None
            for entry, old, new in zip(entries, before, after):
                if entry is not None and new is not None and (old is None or old != new):  # NumPy calls None and float64 equal
                    facts[entry] = new
                    changed = True
            if not all(is_known(old) for entry, old in zip(entries[:count], before) if entry is not None):
                remaining.append(node)  # a node whose inputs were known completely has nothing more to say
        waiting = remaining if forth else remaining[::-1]
        forth = not forth


def merged_dtype(old: np.dtype[Any] | None, new: np.dtype[Any] | None) -> np.dtype[Any] | None:
    """What two sources say about one dtype, together. Raises DTypeError if they contradict each other."""
    if old is None or new is None or old == new:
        return old if new is None else new
    raise DTypeError(f"one input or output is {old.name} according to its neighbours, and {new.name} according to this operator")


def spread_shapes(order: Sequence[Node], known: Facts, dtypes: Facts) -> Facts:
    """Shapes of all entries, as far as they follow from those `known`."""
    facts = dict(known)

    def deduce(
        node: Node, op: Op, inputs: trial.Shapes, outputs: trial.Shapes, present: trial.Present
    ) -> tuple[Sequence[Shape | None], Sequence[Shape | None]]:
        if isinstance(op, (Composite, UserDefined)):
            return op.deduced_shapes(inputs, outputs)
        kinds = tuple(None if entry is None else dtypes.get(entry) for entry in node.inputs)
        return trial.shapes(op, inputs, outputs, present, kinds)

    _spread(order, facts, deduce, trial.merged, trial.is_whole)
    return facts


def spread_dtypes(order: Sequence[Node], known: Facts, shapes: Facts) -> Facts:
    """Dtypes of all entries, as far as they follow from those `known`."""
    facts = dict(known)

    def deduce(
        node: Node, op: Op, inputs: trial.DTypes, outputs: trial.DTypes, present: trial.Present
    ) -> tuple[Sequence[np.dtype[Any] | None], Sequence[np.dtype[Any] | None]]:
        lengths = tuple(None if entry is None else shapes.get(entry) for entry in node.inputs)
        if isinstance(op, (Composite, UserDefined)):
            return op.deduced_dtypes(inputs, outputs, lengths)
        return dtype_trial.dtypes(op, inputs, outputs, present, lengths)

    _spread(order, facts, deduce, merged_dtype, lambda dtype: dtype is not None)
    return facts


# ---- what variables say of themselves


def declared_shape(node: Node) -> Shape | None:
    """The shape that a variable was made with."""
    text = node.attrs.get("__shape__")
    if node.op is not None or text is None:
        return None
    try:
        value = ast.literal_eval(text)
        return known_shape(node.name, (value,) if isinstance(value, int) else tuple(value))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ArgumentError(f"variable {shown(node.name)}: its attribute __shape__={shown(text)} is no shape") from None


def declared_dtype(node: Node) -> np.dtype[Any] | None:
    """The dtype that a variable was made with; None for the number -1, too."""
    text = node.attrs.get("__dtype__")
    if node.op is not None or text is None or text == "-1":
        return None
    try:
        return DTYPE_OF_CODE[int(text)]
    except (ValueError, KeyError):
        known = ", ".join(f"{code} ({dtype.name})" for code, dtype in DTYPE_OF_CODE.items())
        raise ArgumentError(
            f"variable {shown(node.name)}: its attribute __dtype__={shown(text)} is no number of a dtype; there are {known}"
        ) from None


def known_shape(name: str, shape: Any) -> Shape | None:
    """A shape that somebody gave: () is no knowledge, 0 or a negative number an unknown length. Raises ArgumentError for no tuple."""
    if not isinstance(shape, tuple):
        raise ArgumentError(f"shape of {name}: a tuple is wanted, got {type(shape).__name__}")
    if not all(isinstance(length, (int, np.integer)) for length in shape):
        raise ArgumentError(f"shape of {name}: a tuple of int is wanted, got {shape}")
    return tuple(max(int(length), 0) for length in shape) if shape else None


def assigned(
    nodes: Sequence[Node], positional: Sequence[V], named: Mapping[str, V], what: str, arguments: Sequence[Node]
) -> dict[Node, V]:
    """Values by variable: those of `positional` go to `arguments` in order, those of `named` to the variables of that name.

    Raises ArgumentError for both kinds at once, too many values, or a name that no variable has.
    """
    if positional and named:
        raise ArgumentError(f"{what}: give values either in the order of list_arguments() or by name, not both")
    if len(positional) > len(arguments):
        raise ArgumentError(f"{what}: {len(positional)} values are given, the symbol has {len(arguments)} arguments")
    unknown = named.keys() - {node.name for node in nodes}
    if unknown:
        names = ", ".join(node.name for node in nodes)
        raise ArgumentError(f"{what}: no argument is called {', '.join(sorted(unknown))}; the symbol has {names}")
    found = dict(zip(arguments, positional))
    found.update((node, named[node.name]) for node in nodes if node.name in named)
    return found


# ---- the questions that a Symbol asks


def infer_shape(
    heads: Sequence[Entry], partial: bool, positional: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Any, Any, Any]:
    """Shapes of arguments, outputs and auxiliary states, as three lists. See `Symbol.infer_shape`."""
    order = topological_order(heads)
    arguments, states = inputs_of(heads)
    given = assigned([*arguments, *states], positional, named, "infer_shape", arguments)
    known: Facts = {(node, 0): declared_shape(node) for node in (*arguments, *states)}
    known.update(((node, 0), known_shape(node.name, shape)) for node, shape in given.items() if shape is not None)
    facts = spread_shapes(order, known, {})
    found = [[facts.get(entry) for entry in entries] for entries in _groups(arguments, heads, states)]
    if not partial and not all(trial.is_whole(shape) for group in found for shape in group):
        _warn("shape", "0 stands for an unknown length", arguments + states, facts, lambda shape: not trial.is_whole(shape))
        return None, None, None
    lists = [[() if shape is None else shape for shape in group] for group in found]
    return lists[0], lists[1], lists[2]


def infer_type(
    heads: Sequence[Entry], partial: bool, positional: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Any, Any, Any]:
    """Dtypes of arguments, outputs and auxiliary states, as three lists of NumPy's classes. See `Symbol.infer_type`."""
    order = topological_order(heads)
    arguments, states = inputs_of(heads)
    given = assigned([*arguments, *states], positional, named, "infer_type", arguments)
    known: Facts = {(node, 0): declared_dtype(node) for node in (*arguments, *states)}
    known.update(((node, 0), as_dtype(dtype)) for node, dtype in given.items() if dtype is not None)
    shapes = spread_shapes(order, {(node, 0): declared_shape(node) for node in (*arguments, *states)}, {})
    facts = spread_dtypes(order, known, shapes)
    found = [[facts.get(entry) for entry in entries] for entries in _groups(arguments, heads, states)]
    if not partial and any(dtype is None for group in found for dtype in group):
        _warn("dtype", "None is unknown", arguments + states, facts, lambda dtype: dtype is None)
        return None, None, None
    lists = [[None if dtype is None else dtype.type for dtype in group] for group in found]
    return lists[0], lists[1], lists[2]


def _groups(arguments: Sequence[Node], heads: Sequence[Entry], states: Sequence[Node]) -> list[list[Entry]]:
    return [[(node, 0) for node in arguments], list(heads), [(node, 0) for node in states]]


def _warn(what: str, legend: str, nodes: Sequence[Node], facts: Facts, is_unknown: Callable[[Any], bool]) -> None:
    """Warn which variables are not known completely."""
    unknown = [f"{node.name}: {facts.get((node, 0))}" for node in nodes if is_unknown(facts.get((node, 0)))]
    listed = ", ".join(unknown) or "none of the arguments, but some of what follows from them"
    warnings.warn(f"Cannot decide {what} of {listed} ({legend}). Give the {what} of more arguments.", stacklevel=4)


# ---- complete knowledge, for executing


def complete(heads: Sequence[Entry], shapes: Mapping[Node, Shape], dtypes: Mapping[Node, np.dtype[Any]]) -> dict[Entry, Spec]:
    """Specs of all entries. A variable whose dtype follows from nothing is float32; raises ShapeError where a shape does not follow."""
    order = topological_order(heads)
    found = [node for node in order if node.op is None]
    known_dtypes: Facts = {(node, 0): dtypes.get(node) or declared_dtype(node) for node in found}
    known_shapes: Facts = {(node, 0): shapes.get(node) or declared_shape(node) for node in found}
    shape_facts = spread_shapes(order, known_shapes, {})
    while True:
        dtype_facts = spread_dtypes(order, known_dtypes, shape_facts)
        undecided = [node for node in found if dtype_facts.get((node, 0)) is None]
        if not undecided:
            break
        known_dtypes[undecided[0], 0] = FLOAT32
    missing = [node for node in found if not trial.is_whole(shape_facts.get((node, 0)))]
    if missing:
        listed = ", ".join(f"{node.name}: {shape_facts.get((node, 0))}" for node in missing)
        raise ShapeError(
            f"cannot decide the shapes of {listed} (0 stands for an unknown length); give the shapes of more arguments"
        )
    return forward_specs(order, {node: Spec.of(shape_facts[node, 0], dtype_facts[node, 0]) for node in found}, shape_facts)


def forward_specs(order: Sequence[Node], variables: Mapping[Node, Spec], shapes: Facts | None = None) -> dict[Entry, Spec]:
    """Specs of all entries from those of the variables, by the operators' rules. `shapes` has what else is known (see `settled`)."""
    specs: dict[Entry, Spec] = {}
    for node in order:
        if node.op is None:
            specs[node, 0] = variables[node]
            continue
        try:
            found = trial.infer(settled(node, shapes), [None if entry is None else specs[entry] for entry in node.inputs])
        except MXNetError as error:
            raise in_node(node.name, error) from None
        specs.update(((node, index), spec) for index, spec in enumerate(found))
    return specs


def settled(node: Node, shapes: Facts | None) -> Op:
    """The operator of a node. One without inputs whose shape has open lengths, such as zeros((0, 8)), gets those that its use needs."""
    op = node.op
    assert op is not None
    shape = getattr(op, "shape", None)
    if (
        node.inputs
        or shapes is None
        or not isinstance(shape, tuple)
        or 0 not in shape
        or not trial.is_whole(shapes.get((node, 0)))
    ):
        return op
    made: Op = op.of_shape(shapes[node, 0]) if hasattr(op, "of_shape") else dataclasses.replace(op, shape=shapes[node, 0])
    return made
