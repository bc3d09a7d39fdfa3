"""What the user calls the Vars that a recording knows by number.

First comes what the code's own names hold when it has ended: arrays, Vars, lists and dicts of them, and the parameters of blocks. A value
that has no name any more, as of `y` in a loop, is called after the line that made it. Book: chapter 7.
"""

from __future__ import annotations

import itertools
import linecache
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...base import MXNetError
from ...engine.events import Place
from ...engine.var import Var, View
from .recording import Made, Noting

TARGET = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)")  # of `y = ...`; `y += ...` changes a Var that has its name
MOST_ITEMS = 64  # of a list or dict that are looked at


def name_all(noting: Noting, *namespaces: Mapping[str, Any]) -> None:
    """Give names to the Vars of a recording; of several namespaces the first that knows one decides."""
    names = noting.recording.names
    for namespace in namespaces:
        for name, value in list(namespace.items()):
            if name.startswith("_") or name in ("In", "Out"):
                continue  # what IPython keeps, and what is private
            for title, var in _vars_in(name, value):
                number = noting.numbers.get(var)
                if number is not None:
                    names.setdefault(number, title)
    taken = Counter(names.values())
    last = {made.where: made.operator for _, made in sorted(noting.recording.made.items())}  # of each line
    for number, made in sorted(noting.recording.made.items()):
        if number not in names:
            title = _after(made, made.operator == last[made.where])
            taken[title] += 1
            names[number] = title if taken[title] == 1 else f"{title} ({taken[title]})"
    for number in range(noting.count):
        names.setdefault(number, f"input {number}")


def _vars_in(name: str, value: Any) -> Iterator[tuple[str, Var]]:
    """The Vars in a value, each with what the user writes for it."""
    if isinstance(value, View):
        yield name, value.var
        yield from _gradient(name, value)
    elif isinstance(value, Var):
        yield name, value
    elif isinstance(value, (list, tuple)):
        for position, each in enumerate(value[:MOST_ITEMS]):
            if isinstance(each, (View, Var, list, tuple)):
                yield from _vars_in(f"{name}[{position}]", each)
    elif isinstance(value, dict):
        for key, each in [*itertools.islice(value.items(), MOST_ITEMS)]:
            if isinstance(each, (View, Var)):
                yield from _vars_in(f"{name}[{key!r}]", each)
    elif callable(getattr(type(value), "collect_params", None)):
        for parameter in value.collect_params().values():
            for ending, arrays in (("", parameter.list_data), (" gradient", parameter.list_grad)):
                for array in _arrays(arrays):
                    yield f"{parameter.name}{ending} {array.context}", array.var


def _gradient(name: str, value: Any) -> Iterator[tuple[str, Var]]:
    """That of an array with `attach_grad`."""
    gradient = getattr(value, "grad", None)
    if isinstance(gradient, View):
        yield f"{name}.grad", gradient.var


def _arrays(arrays: Callable[[], list[Any]]) -> list[Any]:
    """What `arrays` returns; nothing for a parameter that has none."""
    try:
        return arrays()
    except MXNetError:
        return []


def _after(made: Made, last: bool) -> str:
    """A name for a value that has none: what its line assigns to, if it is the last value of that line, or the operator."""
    operator = made.operator.strip("_")
    if made.where is None:
        return operator
    target = TARGET.match(linecache.getline(*made.where)) if last else None
    return f"{target.group(1) if target else operator}, line {made.where[1]}"


def line_of(where: Place | None) -> str:
    """A line of the user, with its number: "line 3: y = nd.dot(x, w)"."""
    if where is None:
        return ""
    text = linecache.getline(*where).strip()
    return f"line {where[1]}" + (f": {text}" if text else "")


__all__ = ["line_of", "name_all"]
