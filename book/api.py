"""The reference: a page for each module, written from its docstrings when the site is built, and the table of MXNet's names.

`python book/api.py FOLDER` writes the pages without Sphinx. A docstring is Markdown already; what is added is the signature above it, and a
fence around its example. A public name without a docstring is an error here, and so of `make book`.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from minimx.compat import differences
from minimx.fields import spelt
from minimx.op import REGISTRY, Op

#: Modules in the order of the contents, by chapter of the reference.
MODULES = {
    "Arrays and graphs": ("nd", "nd.random", "nd.linalg", "nd.contrib", "nd.image", "sym", "autograd", "operator"),
    "Networks": (
        "gluon", "gluon.nn", "gluon.rnn", "gluon.loss", "gluon.data", "gluon.data.vision", "gluon.data.vision.transforms",
        "gluon.model_zoo.vision", "gluon.utils", "gluon.contrib.nn", "gluon.contrib.rnn", "gluon.contrib.estimator",
    ),
    "Training": ("optimizer", "lr_scheduler", "initializer", "metric", "callback", "model", "module", "monitor", "rnn"),
    "Data": ("io", "image", "recordio", "contrib.text.vocab", "contrib.text.embedding", "contrib.text.utils"),
    "The system": (
        "engine", "kernels", "device", "storage", "random", "profiler", "visualization", "kvstore", "parallel", "parallel.simulate",
        "runtime", "util", "test_utils",
    ),
}  # fmt: skip


#: The pages of the last chapter of the reference, and what the contents of a translation call them.
COMING = {"names": "What is otherwise than in MXNet 1.9.1", "operators": "Operators"}

#: What the contents say below their title.
SOURCE = "Written from the docstrings of this version; `help(name)` shows the same."


def public(module: ModuleType) -> list[tuple[str, Any]]:
    """The names that a module exports, sorted, without modules and without second names of the same object."""
    found: dict[int, tuple[str, Any]] = {}
    names = getattr(module, "__all__", None) or [name for name, value in vars(module).items() if _own(module, name, value)]
    for name in sorted(names, key=lambda name: (name.startswith("_"), name.lower())):
        value = getattr(module, name)
        if inspect.ismodule(value) or name.startswith("_"):
            continue
        first = inspect.unwrap(value) if inspect.isfunction(value) else value  # `BlockGrad` wraps `stop_gradient`
        best = found.get(id(first))
        if best is None or getattr(first, "__name__", None) == name:
            found[id(first)] = (name, value)
    return sorted(found.values(), key=lambda pair: pair[0].lower())


def _own(module: ModuleType, name: str, value: Any) -> bool:
    return not name.startswith("_") and callable(value) and getattr(value, "__module__", "").startswith(module.__name__)


def is_named(default: Any) -> bool:
    return inspect.isroutine(default) or (inspect.isclass(default) and default is not inspect.Parameter.empty)


class Name:
    """A function or a class as the default of a parameter: shown by its name, as a reader would write it; a lambda as dots."""

    def __init__(self, value: Any) -> None:
        self.name = getattr(value, "__name__", repr(value))

    def __repr__(self) -> str:
        return self.name if self.name.isidentifier() else "..."


def signature(name: str, value: Any) -> str:
    """`name(a, b=1)` on one line, or a line a parameter if it is long."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    plain = [each.replace(annotation=each.empty) for each in found.parameters.values() if each.name != "how"]
    # A graph makes a variable for an operand that is left out; for arrays it has to be given.
    plain = [each.replace(default=each.empty) if repr(each.default) == "<a variable>" else each for each in plain]
    plain = [each.replace(default=Name(each.default)) if is_named(each.default) else each for each in plain]
    parameters = [re.sub(r"<([\w.]+)[^>]*>", r"\1", str(each)) for each in plain]
    line = f"{name}({', '.join(parameters)})"
    if len(line) <= 88:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in parameters) + ")"


def prose(text: str) -> str:
    """A docstring as Markdown: its examples in fences, and nothing that Markdown would take for something else."""
    lines: list[str] = []
    inside = False
    whole = re.sub(r"`[^`]*`", lambda code: re.sub(r"\s*\n\s*", " ", code[0]), inspect.cleandoc(text))  # code on one line each
    for line in whole.splitlines():
        example = line.startswith(">>>") or (inside and bool(line.strip()))
        if example and not inside:
            lines += ["", "```python"]
        elif inside and not example:
            lines += ["```", ""]
        inside = example
        if not example and line.startswith("    "):
            lines.append(line)
            continue
        lines.append(line if example else escaped(line))
    return "\n".join([*lines, *["```"] * inside])


def escaped(line: str) -> str:
    """A line of prose whose brackets and angles stay text outside of code."""
    parts = line.split("`")
    return "`".join(re.sub(r"([<>\[\]|])", r"\\\1", part) if number % 2 == 0 else part for number, part in enumerate(parts))


def methods(value: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class has itself, with docstrings."""
    for name, member in sorted(vars(value).items()):
        function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        if not name.startswith("_") and (inspect.isfunction(function) or isinstance(member, property)) and function.__doc__:
            yield name, function


def section(name: str, value: Any, where: str) -> str:
    """What a page says of one name. Raises ValueError if it has no docstring."""
    text = inspect.getdoc(value) if callable(value) else None
    if not callable(value):
        return f"## {name}\n\nA value of type `{type(value).__name__}`.\n"
    if not text:
        raise ValueError(f"minimx.{where}.{name} has no docstring: it is public, so the reference has to say what it is")
    parts = [f"## {name}\n", f"```python\n{signature(name, value)}\n```\n", prose(text), ""]
    if inspect.isclass(value) and not issubclass(value, BaseException):
        for method, function in methods(value):
            shown = method if isinstance(function, property) else signature(method, function)
            parts += [f"### {name}.{method}\n", f"```python\n{shown}\n```\n", prose(function.__doc__ or ""), ""]
    return "\n".join(parts)


def page(path: str) -> str:
    """The page of a module."""
    module = importlib.import_module(f"minimx.{path}")
    parts = [f"# mx.{path}\n", prose(module.__doc__ or ""), ""]
    if path.startswith("sym"):
        parts.append("Operators are the same functions as in {doc}`nd`: called with Symbols they give a Symbol.\n")
    operators = set(map(id, (value for _, value in public(importlib.import_module("minimx.nd"))))) if path == "sym" else set()
    parts += [section(name, value, path) for name, value in public(module) if id(value) not in operators]
    return "\n".join(parts)


def attribute(field: dataclasses.Field[Any]) -> str:
    """`axis=-1`; the name alone, if it has to be given."""
    if field.default is dataclasses.MISSING:
        return spelt(field)
    return f"{spelt(field)}={field.default.name if isinstance(field.default, np.dtype) else repr(field.default)}"


def operators() -> str:
    """The table of all registered operators: what names they have in graphs and files, what they take, and their attributes."""
    by_class: dict[type[Op], list[str]] = {}
    for name, kind in REGISTRY.items():
        by_class.setdefault(kind, []).append(name)
    lines = [
        "# Operators",
        "",
        "What the registry holds: the names by which files and graphs call an operator, its inputs (`?`: may be absent, `*`: any number),",
        "and its attributes with their defaults, if they have one. The functions that apply them are on the pages of {doc}`nd` and its",
        "parts. Names that begin with `_backward` are gradients that have an operator of their own.",
        "",
        "| names | inputs | attributes |",
        "| --- | --- | --- |",
    ]
    for kind, names in sorted(by_class.items(), key=lambda pair: pair[1][0].lower()):
        attributes = [attribute(field) for field in dataclasses.fields(kind) if not field.metadata.get("hidden")]
        inputs = kind.inputs if isinstance(kind.inputs, tuple) else ("...",)
        cells = [", ".join(f"`{each}`" for each in column) for column in (names, inputs, attributes)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def write(folder: Path, words: Mapping[str, str] | None = None) -> None:
    """Write all pages into `folder`; a page that is as it should be is left alone. `words` translates the contents."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {f"{path}.md": page(path) for paths in MODULES.values() for path in paths}
    pages["operators.md"] = operators()
    pages["names.md"] = differences.table()
    says = words or {}
    contents = [f"# {says.get('Reference', 'Reference')}\n", f"{says.get(SOURCE, SOURCE)}\n"]
    coming = [f"{says[title]} <{path}>" if title in says else path for path, title in COMING.items()]
    for title, entries in {**MODULES, "Coming from MXNet": coming}.items():
        contents += [f"```{{toctree}}\n:caption: {says.get(title, title)}\n:maxdepth: 1\n", *entries, "```\n"]
    pages["index.md"] = "\n".join(contents)
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        target = folder / name
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
