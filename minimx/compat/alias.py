"""`import mxnet` means minimx: every module `mxnet.X` is the very object `minimx.X`.

A finder in front of `sys.meta_path` answers for `mxnet` and all below it. It gives the import system a throw-away module and then puts
minimx's own in its place in `sys.modules`, so that no module is loaded twice and none is changed: its `__spec__`, its source and the
classes' `__module__` still say minimx, and reloading, pickling and inspecting do what they do without the alias.

MXNet's long names and short ones both lead there (`mxnet.ndarray` and `mxnet.nd`), and so do the files of which its packages consist
(`mxnet.ndarray.ndarray`, `mxnet.io.io`). A name that minimx lacks is an ImportError that says what to use instead (differences.py).
A real MXNet that is installed, too, is hidden; one that is imported already makes `install` refuse.

Modules get a few names more while they stand for MXNet's: private ones that toolkits take from it (private.py), and, for the command
`run`, its version (`lend_version`), as many programs refuse to run with one that they take for too old.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType

import minimx

from . import differences, lent, private, scalars

ALIAS, OWN = "mxnet", "minimx"

#: Modules of MXNet whose counterpart has another path. A name that leads to a module's own attribute needs no entry.
ELSEWHERE = {
    "executor": "sym.executor",
    "img": "image",
    "mon": "monitor",
    "rnd": "random",
    "contrib.amp.amp": "contrib.amp",
    "contrib.ndarray": "contrib.nd",
    "contrib.symbol": "contrib.sym",
    "gluon.contrib.nn.basic_layers": "gluon.contrib.nn",
    "io.io": "io",
    "io.utils": "io",
    "kvstore.base": "kvstore",
    "kvstore.kvstore": "kvstore",
}
FIRST = {
    "ndarray": "nd",
    "symbol": "sym",
    "init": "initializer",
    "opt": "optimizer",
    "viz": "visualization",
    "kv": "kvstore",
    "mod": "module",
}

#: The version of MXNet that minimx follows.
MXNET_VERSION = "1.9.1"

_lock = threading.Lock()  # guards installing and uninstalling
_own_version: list[str] = []  # while another is lent


class MXNetImportedError(ImportError):
    """The real MXNet was imported before minimx could stand in for it."""


def own_path(path: str) -> str:
    """The path below minimx of the module that stands for `mxnet.<path>`."""
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    first, dot, rest = path.partition(".")
    return FIRST.get(first, first) + dot + rest


def find_own(path: str) -> ModuleType | None:
    """minimx's module for `mxnet.<path>`, imported; None if there is none."""
    name = f"{OWN}.{own_path(path)}"
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name and not name.startswith(f"{error.name}."):
            raise  # it is there, and something that it needs is not
    parent, _, last = name.rpartition(".")
    module = getattr(sys.modules.get(parent), last, None)  # a module under a second name, such as contrib.nd
    return module if isinstance(module, ModuleType) and module.__name__.split(".")[0] == OWN else None


def own_module(path: str) -> ModuleType:
    """minimx's module for `mxnet.<path>`, which is known to be there."""
    module = find_own(path) if path else minimx
    assert module is not None, path
    return module


class Alias(MetaPathFinder, Loader):
    """Finds and loads `mxnet` and what is below it."""

    def __init__(self) -> None:
        self.set: list[tuple[ModuleType, str]] = []  # attributes that importing a module added to the one it is in

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if package != ALIAS:
            return None
        if rest and find_own(rest) is None:
            raise differences.import_error(fullname, rest)
        return spec_from_loader(fullname, self, is_package=True)

    def add(self, path: str, name: str, value: object) -> None:
        """Give a module of minimx an attribute until `uninstall`, unless it has one of the name."""
        module = own_module(path)
        if name not in vars(module):
            self.set.append((module, name))
            setattr(module, name, value)

    def create_module(self, spec: ModuleSpec) -> None:
        """The throw-away module is the import system's own."""

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        name = module.__spec__.name
        rest = name.partition(".")[2]
        enter(name, own_module(rest))
        differences.teach()  # it, if it has just been loaded
        if rest:
            parent, last = sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2]
            if last not in vars(parent):
                self.set.append((parent, last))


def enter(name: str, module: ModuleType) -> None:
    """Enter a module as `name`, and what is loaded below it likewise.

    Importing the latter would set an attribute of the module that they are in, and that may have something else of the name: the
    function `vision.alexnet` beside the file alexnet.py.
    """
    sys.modules[name] = module
    for own, child in sys.modules.copy().items():
        if own.startswith(f"{module.__name__}."):
            path = name + own[len(module.__name__) :]
            rest = path.partition(".")[2]
            if child is not None and (name != ALIAS or own_path(rest) == rest):
                sys.modules.setdefault(path, child)


def installed() -> Alias | None:
    """The finder, if it is in place."""
    return next((finder for finder in sys.meta_path if isinstance(finder, Alias)), None)


def install() -> None:
    """Let `import mxnet` mean minimx in this process. Doing it again changes nothing.

    A real MXNet that is installed, too, is hidden until `uninstall`. **Raises** MXNetImportedError (an ImportError) if it is imported.
    """
    with _lock:
        real = sys.modules.get(ALIAS)
        if real is not None and real is not minimx and not hasattr(real, "stands_for_minimx"):
            version, place = getattr(real, "__version__", "?"), getattr(real, "__file__", "?")
            raise MXNetImportedError(
                f"MXNet {version} ({place}) is imported already, so `import mxnet` cannot mean minimx in this process; "
                "import minimx.compat.mxnet before anything that imports mxnet"
            )
        if installed() is None:
            finder = Alias()
            sys.meta_path.insert(0, finder)
            for path, names in private.NAMES.items():
                for name, value in names.items():
                    finder.add(path, name, value)
            for path in ELSEWHERE:  # no finder is asked for what is below a plain module, so all are entered now
                place, _, name = path.rpartition(".")
                sys.modules[f"{ALIAS}.{path}"] = module = own_module(path)
                finder.add(place, name, module)
        enter(ALIAS, minimx)


def lend_version() -> None:
    """Let `mx.__version__` be MXNet's until `uninstall`; standard error says so when it is asked for first."""
    version = vars(minimx).pop("__version__", None)
    if version is not None:
        note = f"the version of MXNet that it follows; its own is {version}"
        for module in (minimx, minimx.libinfo):
            vars(module).pop("__version__", None)
            lent.teach(module, {"__version__": lent.Lent(note, lambda: MXNET_VERSION)})
        _own_version.append(version)


def uninstall() -> None:
    """Undo `install`: `import mxnet` means the real MXNet again, if there is one. Modules that were imported go on working."""
    with _lock:
        finder = installed()
        if finder is None:
            return
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name == ALIAS or name.startswith(f"{ALIAS}.")]:
            del sys.modules[name]
        for module, name in finder.set:
            vars(module).pop(name, None)
        scalars.take_back()
        if _own_version:
            minimx.__version__ = minimx.libinfo.__version__ = _own_version.pop()
            for module in (minimx, minimx.libinfo):
                lent.unteach(module)
