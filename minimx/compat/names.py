"""The recorded names of MXNet 1.9.1, and how minimx compares: `python -m minimx names PATTERN`.

mxnet-1.9.1.txt has a paragraph for every module and class of MXNet, `module gluon.nn` or `class gluon.HybridBlock(gluon.Block)`, with
its public bases in the order in which Python looks a method up, and for the registry of operators. The indented lines under it are the
names in it, separated by spaces; those of a class are its own and those of bases that are not public. A callable that was not listed before
has its parameters behind it, as Python writes them: `Dense(units,activation=None,use_bias=True)`; a default that is no plain value is left
out, `(data=None,axis=)`. The parameters that every operator has, `out`, `name`, `attr`, are left out, too. Paths are those below mxnet,
with `nd` for `ndarray` and `sym` for `symbol`.

A test compares every one of them with what minimx has under the same path: it is there and takes the same parameters in the same order
with the same defaults, or it stands in the table of differences.
"""

from __future__ import annotations

import ast
import fnmatch
import functools
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ..base import near
from . import differences
from .alias import find_own

RECORD = Path(__file__).parent / "mxnet-1.9.1.txt"
UNKNOWN = object()  # a default that was not recorded
REQUIRED = inspect.Parameter.empty
OPERATORS = "operators"


class Parameter(NamedTuple):
    """A recorded parameter. `name` begins with stars as in Python; `default` is REQUIRED, UNKNOWN or the value."""

    name: str
    default: Any


class Name(NamedTuple):
    """A recorded name: `gluon.nn.Dense`, and its parameters if it is a callable that says what they are."""

    path: str
    parameters: tuple[Parameter, ...] | None


# ---- the record


def parameters_of(text: str) -> tuple[Parameter, ...] | None:
    """The parameters in "data=None,axis=,**kwargs"."""
    if text == "...":
        return None
    return tuple(_parameter(part) for part in _split(text) if part != "*")


def _parameter(part: str) -> Parameter:
    name, equals, default = part.partition("=")
    if not equals:
        return Parameter(name, REQUIRED)
    if default in ("", "inf", "nan"):
        return Parameter(name, UNKNOWN)
    return Parameter(name, ast.literal_eval(default))


def _split(text: str, separator: str = ",") -> list[str]:
    """`text` at separators that are in no bracket and no string."""
    parts, depth, quote, begin = [], 0, "", 0
    for position, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and text[position - 1] != "\\" else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == separator and depth == 0:
            parts.append(text[begin:position])
            begin = position + 1
    return [part for part in (*parts, text[begin:]) if part]


@functools.cache
def record() -> dict[str, Name]:
    """All recorded names by path; those of operators begin with "operators."."""
    found: dict[str, Name] = {}
    for head, entries in _paragraphs():
        path = head.partition(" ")[2].partition("(")[0] if head != OPERATORS else OPERATORS
        for entry in _split(entries, " "):
            name, bracket, rest = entry.partition("(")
            full = f"{path}.{name}".lstrip(".")
            found[full] = Name(full, parameters_of(rest[:-1]) if bracket else None)
    return found


@functools.cache
def modules() -> tuple[str, ...]:
    """The paths of all recorded modules, but that of mxnet itself."""
    return tuple(head.partition(" ")[2] for head, _ in _paragraphs() if head.startswith("module "))


@functools.cache
def bases() -> dict[str, tuple[str, ...]]:
    """The public bases of every recorded class, in the order in which a method is looked up."""
    heads = [head.partition(" ")[2] for head, _ in _paragraphs() if head.startswith("class ")]
    return {head.partition("(")[0]: tuple(_split(head.partition("(")[2].rstrip(")"))) for head in heads}


def inherited(pattern: str) -> dict[str, Name]:
    """The methods that classes have from a base, by their paths, `gluon.nn.Dense.initialize`, each with the name of its base's.

    **Args** `pattern`: a method of a class; the class may be the end of a path, as in `Dense.initialize`.
    """
    owner, _, method = pattern.rpartition(".")
    found = {}
    for cls, above in bases().items():
        if owner and method and f".{cls}".endswith(f".{owner}"):
            there = next((record()[f"{base}.{method}"] for base in above if f"{base}.{method}" in record()), None)
            if there is not None:
                found[f"{cls}.{method}"] = there
    return found


def _paragraphs() -> Iterator[tuple[str, str]]:
    """The first line of each paragraph, and what follows."""
    head, entries = "", ""
    for line in RECORD.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            entries += line[1:]
        elif not line.startswith("#"):
            yield head, entries
            head, entries = line, ""
    yield head, entries


# ---- the comparison


class Absent(Exception):
    """minimx has nothing of that name."""


def own(path: str) -> Any:
    """What minimx has under MXNet's `path`. Raises Absent."""
    if path.startswith(f"{OPERATORS}."):
        from ..op import find  # the registry

        try:
            return find(path.partition(".")[2])
        except Exception:
            raise Absent from None
    thing: Any = sys.modules["minimx"]
    parts = path.split(".")
    for position, name in enumerate(parts):
        try:
            thing = _attribute(thing, name)
        except Absent:
            module = find_own(".".join(parts[: position + 1]))  # one that nothing has imported, or that has another path here
            file = find_own(".".join(parts[:position])) if position else None  # hidden by a function of its name
            if module is None and (file is None or file is thing):
                raise
            thing = module if module is not None else _attribute(file, name)
    return thing


def _attribute(thing: Any, name: str) -> Any:
    """An attribute as it was written: of a class, a property and no value of it."""
    if not isinstance(thing, type):
        try:
            return getattr(thing, name)
        except AttributeError:
            raise Absent from None
    for cls in (*inspect.getmro(thing), *inspect.getmro(type(thing))):
        if name in vars(cls):
            return vars(cls)[name]
    if any(name in getattr(cls, "__annotations__", ()) or name in _set_in_init(cls) for cls in thing.__mro__):
        return UNKNOWN  # what its objects have
    raise Absent


@functools.cache
def _set_in_init(cls: type) -> frozenset[str]:
    """The attributes that a class gives its objects when they are made."""
    try:
        source = inspect.getsource(vars(cls)["__init__"])
    except (KeyError, TypeError, OSError):
        return frozenset()
    return frozenset(re.findall(r"\bself\.(\w+)", source))


def difference(name: Name) -> str | None:
    """How minimx differs from MXNet in a name, found by comparing; None if it does not."""
    try:
        thing = own(name.path)
    except Absent:
        return "absent"
    if isinstance(thing, (staticmethod, classmethod)):
        thing = thing.__func__
    if name.parameters is None or name.path.endswith(".forward"):
        return None  # blocks call these, and by position
    if isinstance(thing, property) or not callable(thing):
        return "not callable"
    try:
        ours = list(inspect.signature(thing).parameters.values())
    except ValueError:
        return None
    if ours and ours[0].name in ("self", "cls") and not isinstance(thing, type):
        ours = ours[1:]
    return _compare(name.parameters, ours, name.path.split(".")[0] in ("nd", "sym"))


def _compare(theirs: tuple[Parameter, ...], ours: list[inspect.Parameter], operator: bool) -> str | None:
    """What is otherwise in our parameters than in theirs; None where a call written for theirs does the same with ours."""
    by_name = {each.name: each for each in ours}
    takes_any = any(each.kind is each.VAR_KEYWORD for each in ours)
    takes_all = takes_any and any(each.kind is each.VAR_POSITIONAL for each in ours)
    asks_any = any(name.startswith("*") for name, _ in theirs)
    positional = True
    for index, (name, default) in enumerate(theirs):
        if name.startswith("*"):
            wanted = inspect.Parameter.VAR_KEYWORD if name.startswith("**") else inspect.Parameter.VAR_POSITIONAL
            positional = positional and wanted is inspect.Parameter.VAR_KEYWORD
            more = any(each.kind is wanted for each in ours) or len(ours) > index  # named, where MXNet hands them on
            if wanted is inspect.Parameter.VAR_POSITIONAL and not more:
                return f"takes no {name}"
            continue
        mine = by_name.get(name)
        if mine is None:
            if takes_all or (takes_any and default is not REQUIRED):
                continue
            return f"has no parameter {name}"
        if positional and (index >= len(ours) or ours[index].name != name or mine.kind is mine.KEYWORD_ONLY):
            return f"has the parameter {name} elsewhere"
        if default is REQUIRED or (operator and default is None):
            continue  # an operator's inputs, which MXNet gives the default None, are needed there, too
        if mine.default is REQUIRED and not operator:
            return f"needs the parameter {name}"
        usual = mine.default is None and name.endswith(("layout", "prefix"))  # as the number of axes, or the class, has it
        if default is not UNKNOWN and _plain(mine.default) and not usual and not _equal(mine.default, default):
            return f"has the default {name}={mine.default!r}, not {default!r}"
    needed = [
        each.name
        for each in ours
        if each.default is REQUIRED
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        and each.name not in {one.name for one in theirs}
    ]
    return f"needs the parameter {needed[0]}, which MXNet has not" if needed and not asks_any else None


def _equal(ours: Any, theirs: Any) -> bool:
    """Whether two defaults say the same: a number stands for as many as are wanted, None for nothing given."""
    if isinstance(theirs, (list, tuple)):
        return ours == theirs[0] if isinstance(ours, int) and len(set(theirs)) == 1 else list(ours or ()) == list(theirs)
    return bool(ours == theirs) or (ours is None and theirs == {})


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, tuple, list, dict))


# ---- the command


def main(patterns: list[str], different: bool = False) -> int:
    """Print how minimx has the names that match; **returns** the exit status: 1 if MXNet has no such name.

    A pattern with a star or a question mark is one of whole paths, as for files; another is a part of them. `mx.` or `mxnet.` may stand in
    front, and modules may have their second names, as in `mod.Module`. **Args** `different`: leave out what is as in MXNet.
    """
    spellings = {spelling for each in patterns for spelling in _spellings(each)}
    names = [
        path
        for path in record()
        if not path.startswith(OPERATORS) and (not patterns or any(_matches(path, each) for each in spellings))
    ]
    if not names:
        return _unrecorded(patterns)
    told = {path: described(path) for path in names}
    shown = {path: text for path, text in told.items() if not (different and text == AS_IN_MXNET)}
    for path, text in shown.items():
        print(f"mx.{path:<40} {text}")
    if not shown:
        print(f"{len(names)} name{'' if len(names) == 1 else 's'} like {' '.join(patterns)}: all as in MXNet")
    return 0


def _unrecorded(patterns: list[str]) -> int:
    """Answer for names that are not recorded: of a module that is absent altogether, such as mx.np, of methods that a class has from a
    base, and those that nobody has.
    """
    status = 0
    for each in patterns:
        plain = _plain_path(each)
        row = differences.find(plain)
        if row is not None and row.absent:
            print(f"mx.{plain:<40} {described(plain)}")
            continue
        methods = {path: name for spelling in _spellings(each) for path, name in inherited(spelling).items()}
        for path, name in methods.items():
            print(f"mx.{path:<40} {described_inherited(path, name)}")
        if methods:
            continue
        found = near(differences.canonical(plain), (name for name in record() if not name.startswith(OPERATORS)), 3, 0.7)
        also = (
            f" Near to it: {', '.join(found)}."
            if found
            else " Type a part of a name, such as nd.topk, or a pattern, such as 'gluon.rnn.*'."
        )
        print(f"MXNet 1.9.1 has no public name like {each}.{also}")
        status = 1
    return status


def _plain_path(pattern: str) -> str:
    """A pattern as it is below mxnet."""
    return pattern.strip().removeprefix("mx.").removeprefix("mxnet.").removesuffix("()")


def _spellings(pattern: str) -> set[str]:
    """A pattern as it was written and with the first name of its module: `mod.*` and `module.*`."""
    plain = _plain_path(pattern)
    return {plain, differences.canonical(plain)} if "." in plain else {plain}


def _matches(path: str, pattern: str) -> bool:
    if any(letter in pattern for letter in "*?["):
        return fnmatch.fnmatchcase(path, pattern)
    return pattern.lower() in path.lower()


AS_IN_MXNET = "as in MXNet"


def described(path: str) -> str:
    """In words: whether minimx has MXNet's `path`, and what is otherwise."""
    noted = differences.find(path)
    if noted is not None:
        return f"{'absent: ' if noted.absent else ''}{noted.note}"
    found = difference(record()[path])
    return AS_IN_MXNET if found is None else found


def described_inherited(path: str, name: Name) -> str:
    """In words: how minimx has a method that MXNet's class has from a base. **Args** `name`: the base's."""
    noted = differences.find(path)
    if noted is None:
        noted = differences.find(name.path)
    found = difference(Name(path, name.parameters)) if noted is None else f"{'absent: ' if noted.absent else ''}{noted.note}"
    return f"{found or AS_IN_MXNET} (it comes from {name.path.rpartition('.')[0]})"
