"""Arguments and results of blocks: tensors, None, and lists of them, nested.

A graph has flat lists of inputs and outputs. `flatten` takes a nested value apart and says how it was built, `regroup` builds it again.
The format is 0 for a tensor, n for a Symbol of n > 1 outputs, -1 for None, and a list or a tuple of formats.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from ..base import ArgumentError, DeviceError, FileFormatError, shown
from ..device import Context
from ..nd import NDArray
from ..sym import Symbol

Format: TypeAlias = Any  # int, or a list or tuple of formats


def flatten(value: Any, what: str) -> tuple[list[Any], Format]:
    """The tensors (and None) in `value`, and its format. Raises ArgumentError for anything else; `what` is named in the message."""
    if isinstance(value, NDArray):
        return [value], 0
    if isinstance(value, Symbol):
        return [value], len(value.entries) if len(value.entries) > 1 else 0
    if value is None:
        return [None], -1
    if not isinstance(value, (list, tuple)):
        raise ArgumentError(
            f"a hybridized block: the {what} must be an NDArray, a Symbol, None or a (nested) list of them, got {shown(value)}. "
            "Keep other values as attributes of the block, or do not hybridize it."
        )
    flat = []
    formats = []
    for each in value:
        parts, format_of_each = flatten(each, what)
        flat += parts
        formats.append(format_of_each)
    return flat, formats if isinstance(value, list) else tuple(formats)


def checked(form: Any) -> Format:
    """`form`, which a file gave, if it is a format. Raises FileFormatError otherwise."""
    parts = form if isinstance(form, (list, tuple)) else [] if type(form) is int and form >= -1 else None
    if parts is None:
        raise FileFormatError(f"{shown(form)} is no format of arguments: a whole number from -1, or a list of formats")
    for part in parts:
        checked(part)
    return form


def regroup(flat: Sequence[Any], form: Format) -> Any:
    """The nested value of the format `form` from its flat parts."""
    value, rest = _regroup(list(flat), form)
    assert not rest, "parts are left over"
    return value


def _regroup(flat: list[Any], form: Format) -> tuple[Any, list[Any]]:
    if isinstance(form, int):
        count = max(form, 1)
        return (flat[:count] if form > 1 else flat[0]), flat[count:]
    values = []
    for each in form:
        value, flat = _regroup(flat, each)
        values.append(value)
    return values if isinstance(form, list) else tuple(values), flat


def leaves(form: Format) -> list[int]:
    """The parts of a format in their order: 0, n or -1."""
    return [form] if isinstance(form, int) else [leaf for each in form for leaf in leaves(each)]


def with_none(outputs: Sequence[Any], form: Format) -> list[Any]:
    """Flat outputs of a graph, which have no None, with None at the places that the format says."""
    rest = iter(outputs)
    parts = ([None] if leaf == -1 else itertools.islice(rest, max(leaf, 1)) for leaf in leaves(form))
    return list(itertools.chain.from_iterable(parts))


def as_lists(form: Format) -> Format:
    """A format with lists for tuples: whether arguments came in one or the other does not matter."""
    return form if isinstance(form, int) else [as_lists(each) for each in form]


def fits(form: Format, stored: Format) -> bool:
    """Whether arguments of the format `form` can go to a graph made for `stored`: equal but for None at the end."""
    given, wanted = as_lists(form), as_lists(stored)
    common = min(len(given), len(wanted))
    return given[:common] == wanted[:common] and all(each == -1 for each in [*given[common:], *wanted[common:]])


class Survey(NamedTuple):
    """What is in the arguments of a call."""

    symbols: bool
    contexts: list[Context]  # of the arrays, in their order, each once

    def only_context(self, name: str) -> Context:
        """Where a graph computes: all arrays must be there. Raises DeviceError otherwise; `name` is the block's."""
        if len({each.lane for each in self.contexts}) > 1:
            raise DeviceError(
                f"{name}: the arguments are on several contexts, {self.contexts}; a hybridized block computes on one. "
                "Copy them with as_in_context()."
            )
        return self.contexts[0]


def survey(args: tuple[Any, ...]) -> Survey:
    """Which tensors are in the arguments of a call, nested or not."""
    if len(args) == 1 and isinstance(args[0], NDArray):  # most calls
        return Survey(False, [args[0].context])
    contexts: dict[Context, None] = {}
    symbols = False
    waiting: list[Any] = [args]
    while waiting:
        each = waiting.pop()
        if isinstance(each, NDArray):
            contexts[each.context] = None
        elif isinstance(each, Symbol):
            symbols = True
        elif isinstance(each, (list, tuple)):
            waiting.extend(reversed(each))
    return Survey(symbols, list(contexts))
