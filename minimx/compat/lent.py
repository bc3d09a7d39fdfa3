"""Names that MXNet-era code uses and that Python or a package has since dropped: `np.float`, `collections.Mapping`, and so on.

`lend()` gives them back, for the process. Nothing is added to a module beforehand: the module is taught what to answer when it is asked for
a name that it lacks. So only what is used is lent, and the first time each is, standard error says what, to whom, and what to write
instead. Modules that are imported later are taught when they are. One function is there still but has lost a use, `np.fromstring` of bytes:
it is wrapped, and the wrapper answers where the function itself refuses. scalars.py lends what NumPy's arrays of one element could do.

`python -m minimx run` lends in the process of the script, before it starts, and in all that it starts; `--no-lend` leaves it out. This
file stands alone: it runs at the start of Python, when minimx itself must not be imported yet.
"""

from __future__ import annotations

import importlib
import linecache
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import Any, NamedTuple


class Lent(NamedTuple):
    """What is said of a name that is lent, and how to get what it stands for."""

    note: str
    find: Callable[[], Any]


def _gone(since: str, instead: str, find: Callable[[], Any]) -> Lent:
    """A name that is gone. **Args** `since`: a version; `instead`: what one can write now."""
    return Lent(f"gone since {since}: write {instead}", find)


def _named(path: str) -> Callable[[], Any]:
    """Finds "module:name", or a built-in "name"."""
    module, _, name = path.rpartition(":")
    return lambda: getattr(importlib.import_module(module or "builtins"), name)


def _family(since: str, module: str, names: dict[str, str], shown: str | None = None) -> dict[str, Lent]:
    """Names that another name of `module` replaces, written `shown`.name."""
    prefix = "" if module == "builtins" else f"{shown or module}."
    return {old: _gone(since, f"{prefix}{new}", _named(f"{module}:{new}")) for old, new in names.items()}


# ---- what needs a few lines


def _getargspec() -> Callable[..., Any]:
    import collections
    import inspect

    answer = collections.namedtuple("ArgSpec", "args varargs keywords defaults")  # type: ignore[name-match]  # as it was called

    def getargspec(function: Callable[..., Any]) -> Any:
        """Arguments of a function, without those that only keywords can give."""
        full = inspect.getfullargspec(function)
        return answer(full.args, full.varargs, full.varkw, full.defaults)

    return getargspec


def _in1d() -> Callable[..., Any]:
    import numpy

    def in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
        """Whether each element of the flattened `ar1` is in `ar2`."""
        return numpy.isin(numpy.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert)

    return in1d


def _asfarray() -> Callable[..., Any]:
    import numpy

    def asfarray(a: Any, dtype: Any = numpy.float64) -> Any:
        """`a` as an array of a floating dtype."""
        return numpy.asarray(a, dtype=dtype if numpy.issubdtype(dtype, numpy.inexact) else numpy.float64)

    return asfarray


def _strtobool() -> Callable[[str], int]:
    def strtobool(val: str) -> int:
        """1 for yes, true, t, y, on, 1; 0 for their opposites; ValueError for anything else."""
        word = val.lower()
        if word in ("y", "yes", "t", "true", "on", "1"):
            return 1
        if word in ("n", "no", "f", "false", "off", "0"):
            return 0
        raise ValueError(f"invalid truth value {val!r}")

    return strtobool


def _loose_version() -> type:
    import functools
    import re

    @functools.total_ordering
    class LooseVersion:
        """A version that is compared by its numbers and words."""

        def __init__(self, vstring: str | None = None) -> None:
            if vstring is not None:
                self.parse(vstring)

        def parse(self, vstring: str) -> None:
            self.vstring = vstring
            parts = re.findall(r"\d+|[a-z]+", vstring)
            self.version = [int(part) if part.isdigit() else part for part in parts]

        def _key(self, other: object) -> tuple[list[Any], list[Any]]:
            theirs = other if isinstance(other, LooseVersion) else LooseVersion(str(other))
            return self.version, theirs.version

        def __eq__(self, other: object) -> bool:
            mine, theirs = self._key(other)
            return mine == theirs

        def __lt__(self, other: object) -> bool:
            mine, theirs = self._key(other)
            return mine < theirs

        def __hash__(self) -> int:
            return hash(tuple(self.version))

        def __str__(self) -> str:
            return self.vstring

        def __repr__(self) -> str:
            return f"LooseVersion('{self.vstring}')"

    return LooseVersion


def _load_source() -> Callable[..., ModuleType]:
    import importlib.util

    def load_source(name: str, pathname: str, file: Any = None) -> ModuleType:
        """The module that the Python file `pathname` makes, entered as `name`."""
        spec = importlib.util.spec_from_file_location(name, pathname)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    return load_source


def _fromstring(original: Callable[..., Any]) -> Callable[..., Any]:
    import functools

    @functools.wraps(original)
    def fromstring(string: Any, dtype: Any = float, count: int = -1, *, sep: str = "", **how: Any) -> Any:
        try:
            return original(string, dtype, count, sep=sep, **how)
        except ValueError as error:
            if sep or "binary mode" not in str(error):
                raise
        import numpy

        tell("np.fromstring", "gone since NumPy 2.3 for bytes: write np.frombuffer(data, dtype).copy()")
        return numpy.frombuffer(string.encode() if isinstance(string, str) else string, dtype, count).copy()

    return fromstring


# ---- the tables

_ABCS = (
    "Awaitable", "Coroutine", "AsyncIterable", "AsyncIterator", "AsyncGenerator", "Hashable", "Iterable", "Iterator", "Generator",
    "Reversible", "Sized", "Container", "Callable", "Collection", "Set", "MutableSet", "Mapping", "MutableMapping", "MappingView",
    "KeysView", "ItemsView", "ValuesView", "Sequence", "MutableSequence", "ByteString",
)  # fmt: skip

_NUMPY = {
    **_family(
        "NumPy 1.24",
        "builtins",
        {
            "bool": "bool", "int": "int", "float": "float", "complex": "complex", "object": "object", "str": "str", "long": "int",
            "unicode": "str",
        },
    ),
    **_family(
        "NumPy 2.0",
        "numpy",
        {
            "float_": "float64", "complex_": "complex128", "cfloat": "complex128", "singlecomplex": "complex64", "longfloat": "longdouble",
            "longcomplex": "clongdouble", "string_": "bytes_", "unicode_": "str_", "Inf": "inf", "Infinity": "inf", "infty": "inf",
            "PINF": "inf", "NaN": "nan", "product": "prod", "cumproduct": "cumprod", "sometrue": "any", "alltrue": "all", "round_": "round",
            "mat": "asmatrix", "row_stack": "vstack", "trapz": "trapezoid", "int0": "intp", "uint0": "uintp",
            "bool8": "bool_", "bytes0": "bytes_", "str0": "str_", "void0": "void", "object0": "object_",
        },
        "np",
    ),
    "NINF": _gone("NumPy 2.0", "-np.inf", lambda: float("-inf")),
    "PZERO": _gone("NumPy 2.0", "0.0", lambda: 0.0),
    "NZERO": _gone("NumPy 2.0", "-0.0", lambda: -0.0),
    "in1d": _gone("NumPy 2.4", "np.isin(np.ravel(a), b)", _in1d),
    "asfarray": _gone("NumPy 2.0", "np.asarray(a, dtype=float)", _asfarray),
    "asscalar": _gone("NumPy 1.23", "a.item()", lambda: lambda a: a.item()),
    "msort": _gone("NumPy 2.0", "np.sort(a, axis=0)", lambda: lambda a: importlib.import_module("numpy").sort(a, axis=0)),
    "rank": _gone("NumPy 1.18", "np.ndim(a)", _named("numpy:ndim")),
    "typeDict": _gone("NumPy 1.24", "np.sctypeDict", _named("numpy:sctypeDict")),
    "warnings": _gone("NumPy 1.25", "import warnings", lambda: importlib.import_module("warnings")),
}  # fmt: skip

_IMAGE = "PIL.Image"

#: What is lent to which module.
LENT: dict[str, dict[str, Lent]] = {
    "collections": _family("Python 3.10", "collections.abc", {name: name for name in _ABCS}),
    "inspect": {"getargspec": _gone("Python 3.11", "inspect.getfullargspec", _getargspec)},
    "time": {"clock": _gone("Python 3.8", "time.perf_counter", _named("time:perf_counter"))},
    "fractions": {"gcd": _gone("Python 3.9", "math.gcd", _named("math:gcd"))},
    "base64": _family("Python 3.9", "base64", {"encodestring": "encodebytes", "decodestring": "decodebytes"}),
    "numpy": _NUMPY,
    "IPython.display": _family(
        "IPython 8",
        "matplotlib_inline.backend_inline",
        {"set_matplotlib_formats": "set_matplotlib_formats", "set_matplotlib_close": "set_matplotlib_close"},
    ),
    "matplotlib.cm": _family("Matplotlib 3.9", "matplotlib.pyplot", {"get_cmap": "get_cmap"}, "plt"),
    _IMAGE: _family("Pillow 10", _IMAGE, {"ANTIALIAS": "LANCZOS", "LINEAR": "BILINEAR", "CUBIC": "BICUBIC"}, "Image"),
}

#: Modules that are gone altogether, and what is lent of them.
GONE: dict[str, dict[str, Lent]] = {
    "distutils": {},
    "distutils.version": {"LooseVersion": _gone("Python 3.12", "packaging.version.Version", _loose_version)},
    "distutils.util": {"strtobool": _gone("Python 3.12", 'text.lower() in ("yes", "true", "1")', _strtobool)},
    "imp": {
        "reload": _gone("Python 3.12", "importlib.reload", _named("importlib:reload")),
        "load_source": _gone("Python 3.12", "importlib.util.spec_from_file_location", _load_source),
    },
}

#: What is wrapped in which module, and in what.
WRAPPED: dict[str, dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]]] = {"numpy": {"fromstring": _fromstring}}

# ---- lending

_told: set[str] = set()
_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _caller() -> str:
    """The file and line of the code that asked for a name; in a notebook the line itself, as the file is a temporary one."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (frame.f_code.co_filename.startswith(_FOLDER) or "importlib" in frame.f_code.co_filename):
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    if os.path.basename(os.path.dirname(file)).startswith("ipykernel_"):
        return f"a notebook cell, line {line}: {linecache.getline(file, line).strip()}"
    return f"{file}, line {line}"


def tell(written: str, note: str) -> None:
    """Say once what is lent, as a script writes it; a process that multiprocessing started is silent, as its parent has said it or will."""
    processes = sys.modules.get("multiprocessing.process")
    if written in _told or (processes is not None and processes.parent_process() is not None):
        return
    _told.add(written)
    if sys.stderr is not None:
        print(f"minimx lends {written}, {note} ({_caller()})", file=sys.stderr)


def teach(module: ModuleType, names: dict[str, Lent]) -> None:
    """Let `module` answer for `names` that it lacks."""
    before = vars(module).get("__getattr__")

    def __getattr__(name: str) -> Any:
        lent = names.get(name)
        if lent is not None:
            try:
                value = lent.find()
            except (ImportError, AttributeError):  # what it became is not there either, in a version older or newer still
                pass
            else:
                tell(f"{'np' if module.__name__ == 'numpy' else module.__name__}.{name}", lent.note)
                return value
        if before is not None:
            return before(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    __getattr__.lent_before = before  # type: ignore[attr-defined]  # what `unteach` restores
    vars(module)["__getattr__"] = __getattr__
    for name, wrap in WRAPPED.get(module.__name__, {}).items():
        if name in vars(module):
            vars(module)[name] = wrap(vars(module)[name])


def unteach(module: ModuleType) -> None:
    """Undo `teach`."""
    taught = vars(module).get("__getattr__")
    if taught is not None and hasattr(taught, "lent_before"):
        if taught.lent_before is None:
            del vars(module)["__getattr__"]
        else:
            vars(module)["__getattr__"] = taught.lent_before
        for name in WRAPPED.get(module.__name__, {}):
            if name in vars(module):
                vars(module)[name] = getattr(vars(module)[name], "__wrapped__", vars(module)[name])


class Lender:
    """Teaches modules as they are imported (in front of `sys.meta_path`), and makes those that are gone (at its end)."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in LENT:
            return None
        finders = [finder for finder in sys.meta_path if finder is not self]
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in finders)), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                teach(module, LENT[fullname])

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


class Maker:
    """Makes the modules that are gone, where nobody else has them."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=fullname == "distutils") if fullname in GONE else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        teach(module, GONE[module.__name__])


# ---- what cannot be lent

REFUSED = "only 0-dimensional arrays can be converted to Python scalars"
INSTEAD = (
    "minimx: NumPy 2.4 and newer convert no array of shape (1,) to a number: write a.item(), or x.asscalar() of an NDArray; or install "
    "'numpy<2.4'"
)


D2LZH = (
    "minimx: d2lzh holds the helpers of the Chinese edition of Dive into Deep Learning; install it (pip install d2lzh), and under this "
    "command its `import mxnet` means minimx, too. minimx.d2l is another thing: the helpers of minimx's own book"
)


def advice(kind: str, text: str) -> str | None:
    """What to do about an error that has ended an old script. **Args** the name of its class, and what it says."""
    if kind == "TypeError" and REFUSED in text:
        return INSTEAD
    return D2LZH if kind == "ModuleNotFoundError" and text == "No module named 'd2lzh'" else None


def _excepthook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    _before[-1](kind, error, trace)
    said = advice(kind.__name__, str(error))
    if said and sys.stderr is not None:
        print(said, file=sys.stderr)


_before: list[Callable[..., Any]] = []  # what sys.excepthook was
_lender, _maker = Lender(), Maker()


def lend() -> None:
    """Lend, in this process, until `take_back`."""
    if _lender in sys.meta_path:
        return
    _before.append(sys.excepthook)
    sys.excepthook = _excepthook
    sys.meta_path.insert(0, _lender)
    sys.meta_path.append(_maker)
    for name, names in LENT.items():
        if name in sys.modules:
            teach(sys.modules[name], names)


def take_back() -> None:
    """Undo `lend`. What was taken meanwhile stays with who took it."""
    if sys.excepthook is _excepthook:
        sys.excepthook = _before.pop()
    for finder in (_lender, _maker):
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
    for name in LENT:
        if name in sys.modules:
            unteach(sys.modules[name])
    for name in GONE:
        module = sys.modules.get(name)
        if module is not None and isinstance(getattr(module.__spec__, "loader", None), Maker):
            del sys.modules[name]
    _told.clear()
