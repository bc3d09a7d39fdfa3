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

from ..base import did_you_mean
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
    looks_for_a_module = frame.f_globals.get("__name__") == "importlib._bootstrap"  # it catches the error
    said = "" if looks_for_a_module else _instead(module, name)
    if said and frame.f_code.co_code[frame.f_lasti] == IMPORT_FROM:
        return ImportError(f"cannot import name {name!r} from {module!r}{said}", name=module)
    return AttributeError(f"module {module!r} has no attribute {name!r}{said}", name=name)


def _instead(module: str, name: str) -> str:
    """What to use instead of a name that a module lacks, for the end of an error: from the table, or the name that is nearest."""
    if name.startswith("__"):
        return ""
    note = advice(f"{module.partition('.')[2]}.{name}".lstrip("."))
    return f": {note}" if note else did_you_mean(name, public(sys.modules[module]))


def explaining(module: str) -> Callable[[str], object]:
    """A module's `__getattr__`, which says of a name that it lacks what to use instead.

    Modules of a package that its `LATER` names are imported when they are first asked for.
    """

    def __getattr__(name: str) -> object:
        if name in vars(sys.modules[module]).get("LATER", ()):
            found = importlib.import_module(f"{module}.{name}")
            teach()
            return found
        raise missing(module, name, sys._getframe(1))

    return __getattr__


def public(module: ModuleType) -> set[str]:
    """The names that a module has for its users: those of its `__all__`, or what it defines, and the modules of its `LATER`."""
    names = vars(module)
    if "__all__" in names:
        return {*names["__all__"], *names.get("LATER", ())}
    owner = module.__name__
    return {name for name, value in list(names.items()) if name[0] != "_" and getattr(value, "__module__", None) == owner}


def _listing(module: ModuleType) -> Callable[[], list[str]]:
    """A module's `__dir__`: its public names, and those that Python gives every module. What it imports is none of them."""

    def __dir__() -> list[str]:
        return sorted({*(name for name in vars(module) if name.startswith("__")), *public(module)})

    return __dir__


def public_modules() -> list[ModuleType]:
    """minimx, and those of its modules that are loaded and that public names lead to."""
    found = [sys.modules["minimx"]]
    for module in found:
        inner = [each for each in list(vars(module).items()) if isinstance(each[1], ModuleType) and each[0][0] != "_"]
        names = public(module) if inner else ()
        for name, value in inner:
            if name in names and value.__name__.startswith("minimx.") and value not in found:
                found.append(value)
    return found


class Package(ModuleType):
    """A package of which modules are loaded after the others: these, too, answer for names that they lack."""

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if isinstance(value, ModuleType):  # Python enters a module that it has loaded into its package
            teach()


def teach() -> None:
    """Let modules show their public names and answer for those that they lack, and files of packages for what other files have here.

    A function written into the modules themselves would make type checkers believe that they have every name.
    """
    for module in public_modules():
        vars(module).setdefault("__getattr__", explaining(module.__name__))
        vars(module).setdefault("__dir__", _listing(module))
        if hasattr(module, "__path__") and not isinstance(module, Package):
            kind = type(module)  # some have a class of their own already
            module.__class__ = Package if kind is ModuleType else type(kind.__name__, (Package, kind), {})
    for name in (name for row in TABLE if row.absent for name in row.names.split()):
        owner = sys.modules.get(f"minimx.{name.rpartition('.')[0]}")
        if owner is not None:
            vars(owner).setdefault("__getattr__", explaining(owner.__name__))
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
