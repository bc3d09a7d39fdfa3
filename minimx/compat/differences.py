"""What MXNet 1.9.1 has and minimx has not, or has otherwise: the one table.

Its rows are in rows.py. From it come the errors for names that are absent (`mx.np`, `from mxnet import rtc`), what `python -m minimx names`
prints, and a page of the site (`table`). A test holds it against the recorded names of MXNet (names.py): each is here in the same form,
or has a row; and no row outlives what it says.
"""

from __future__ import annotations

import fnmatch
import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from opcode import opmap
from types import FrameType, ModuleType

from .rows import TABLE, Row

IMPORT_FROM = opmap["IMPORT_FROM"]

#: MXNet's second names of modules, and how the table calls them.
SECOND_NAMES = {
    "ndarray": "nd", "symbol": "sym", "numpy": "np", "numpy_extension": "npx", "init": "initializer", "opt": "optimizer",
    "viz": "visualization", "kv": "kvstore", "mod": "module", "img": "image", "mon": "monitor", "rnd": "random", "th": "torch",
}  # fmt: skip


#: What is in the files of which MXNet's packages consist is in the package, too.
SECOND_PATHS = {
    "contrib.amp.amp.": "contrib.amp.", "contrib.nd.": "nd.contrib.", "contrib.ndarray.": "nd.contrib.", "contrib.sym.": "sym.contrib.",
    "contrib.symbol.": "sym.contrib.",
    "gluon.contrib.nn.basic_layers.": "gluon.contrib.nn.", "image.image.": "image.", "io.io.": "io.", "kvstore.base.": "kvstore.",
    "kvstore.kvstore.": "kvstore.", "nd.ndarray.": "nd.", "optimizer.optimizer.": "optimizer.", "rnn.rnn_cell.": "rnn.",
    "sym.symbol.": "sym.",
}  # fmt: skip


# ---- finding


def canonical(path: str) -> str:
    """A path with the module's name that the table uses."""
    first, dot, rest = path.partition(".")
    path = SECOND_NAMES.get(first, first) + dot + rest
    for before, after in SECOND_PATHS.items():
        if path.startswith(before):
            return after + path[len(before) :]
    return path


@functools.cache
def _rows() -> tuple[dict[str, Row], tuple[tuple[str, Row], ...]]:
    """The rows by name, and those of names with a star."""
    names = [(name, row) for row in TABLE for name in row.names.split()]
    return {name: row for name, row in names if "*" not in name}, tuple((name, row) for name, row in names if "*" in name)


def find(path: str) -> Row | None:
    """The row for a name; or that of the module or class that it is in, if that is absent altogether."""
    path = canonical(path)
    row = _named(path)
    while row is None and path:
        path = path.rpartition(".")[0]
        found = _named(path)
        row = found if found is not None and found.absent else None
    return row


def _named(path: str) -> Row | None:
    exact, patterns = _rows()
    return exact.get(path) or next((row for name, row in patterns if fnmatch.fnmatchcase(path, name)), None)


def advice(path: str) -> str | None:
    """What to use instead of a name that is absent; None for any other."""
    row = find(path)
    return row.note if row is not None and row.absent else None


# ---- errors


def sentence(name: str, path: str) -> str:
    note = advice(path)
    return f"{name} is not in minimx: {note}" if note else f"{name} is neither in minimx nor in MXNet 1.9.1"


def import_error(fullname: str, path: str) -> ImportError:
    """The error for a module of MXNet that is not here. **Args** `path`: below mxnet."""
    return ModuleNotFoundError(sentence(fullname, path), name=fullname)


def missing(module: str, name: str, frame: FrameType) -> Exception:
    """The error for a name that a module of minimx lacks. **Args** `module`: "minimx.nd"; `frame`: of the code that asks for it.

    Where that is an import, `from minimx.nd import imdecode`, Python would drop the text of an AttributeError for one of its own; it lets
    other errors pass.
    """
    note = None if name.startswith("__") else advice(f"{module.partition('.')[2]}.{name}".lstrip("."))
    if note and frame.f_code.co_code[frame.f_lasti] == IMPORT_FROM:
        return ImportError(f"cannot import name {name!r} from {module!r}: {note}", name=module)
    return AttributeError(f"module {module!r} has no attribute {name!r}{f': {note}' if note else ''}", name=name)


def explaining(module: str) -> Callable[[str], object]:
    """A module's `__getattr__`, which says of a name that it lacks what to use instead.

    Modules of a package that its `LATER` names are imported when they are first asked for.
    """

    def __getattr__(name: str) -> object:
        if name in vars(sys.modules[module]).get("LATER", ()):
            return importlib.import_module(f"{module}.{name}")
        raise missing(module, name, sys._getframe(1))

    return __getattr__


def teach() -> None:
    """Let modules that lack names of the table answer for them, and files of packages for what other files have here.

    A function written into the modules themselves would make type checkers believe that they have every name.
    """
    for name in (name for row in TABLE if row.absent for name in row.names.split()):
        module = sys.modules.get(f"minimx.{name.rpartition('.')[0]}")
        if module is not None:
            vars(module).setdefault("__getattr__", explaining(module.__name__))
    for owner in ("contrib", "gluon"):  # those with LATER
        module = sys.modules.get(f"minimx.{owner}")
        if module is not None:
            vars(module).setdefault("__getattr__", explaining(module.__name__))
    for before, after in SECOND_PATHS.items():
        file, package = (sys.modules.get(f"minimx.{path}".rstrip(".")) for path in (before, after))
        if file is not None and package is not None and file is not package:
            vars(file)["__getattr__"] = _answering(package)


def _answering(package: ModuleType) -> Callable[[str], object]:
    """A `__getattr__` that gives what a package has, but for what makes it a package: a file with a `__path__` misleads completion."""

    def __getattr__(name: str) -> object:
        if name in vars(package) and not name.startswith("__"):
            return vars(package)[name]
        raise missing(package.__name__, name, sys._getframe(1))

    return __getattr__


# ---- pages


def rows(pattern: str = "*") -> Iterator[tuple[str, Row]]:
    """The names of the table that match, each with its row."""
    for row in TABLE:
        for name in row.names.split():
            if fnmatch.fnmatchcase(name, pattern):
                yield name, row


def table() -> str:
    """The table as a page of the site, in Markdown."""
    parts = [
        "# What is otherwise than in MXNet 1.9.1",
        "All other public names of MXNet 1.9.1 are here, and take the same parameters in the same order with the same defaults.",
        "`python -m minimx names PATTERN` prints how it is with a name.",
    ]
    for absent, title in ((False, "Here, and otherwise"), (True, "Not here")):
        lines = [f"## {title}", "", "| MXNet | minimx |", "| --- | --- |"]
        for row in TABLE:
            if row.absent is absent:
                names = ", ".join(f"`{'' if name.startswith('operators') else 'mx.'}{name}`" for name in row.names.split())
                lines.append(f"| {names} | {row.note} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
