"""Write minimx/compat/mxnet-1.9.1.txt: the public names of real MXNet 1.9.1, and their signatures.

    python record_names.py > mxnet-1.9.1.txt

It is run by hand, from a folder outside this tree, by a Python that has MXNet (`pip install mxnet==1.9.1 numpy==1.23.5`, Python 3.11 or
older). minimx/compat/names.py describes the file's form, and reads it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import inspect
import itertools
import pkgutil
import re
import sys
import textwrap
import types
from collections.abc import Iterable, Mapping
from typing import Any

import mxnet

#: Parts of MXNet that are no interface: generated, of its build, or of the NumPy interface, which the table has as a whole.
LEFT_OUT = re.compile(
    r"(.*\.)?_.*|(.*\.)?gen_.*|(numpy|numpy_extension|np_symbol|cython|api|tvmop|numpy_op_signature|numpy_dispatch_protocol"
    r"|numpy_op_fallback|ndarray\.numpy|ndarray\.numpy_extension|symbol\.numpy|symbol\.numpy_extension|ndarray\.register"
    r"|symbol\.register|ndarray_doc|symbol_doc|space|misc|contrib\.onnx\.onnx2mx|onnx\.mx2onnx|onnx\.setup)(\..*)?"
)
PLUMBING = {"string_types", "integer_types", "numeric_types", "py_str", "tensor_types", "pi"}  # imported for a module's own use
SHORT = {"ndarray": "nd", "symbol": "sym"}
OPERATORS = re.compile(
    r"_np|_backward|_sg_|_contrib_backward|_sparse_|_FusedOp|_TensorRT|_CachedOp|_NoGradient|_image_backward|backward_"
)


def short(path: str) -> str:
    """A path as users write it."""
    first, dot, rest = path.partition(".")
    return SHORT.get(first, first) + dot + rest


def modules() -> dict[str, types.ModuleType]:
    """Every public module by its path below mxnet; mxnet itself, nd and sym first."""
    for each in pkgutil.walk_packages(mxnet.__path__, "mxnet.", onerror=lambda name: None):
        with contextlib.suppress(ImportError, SystemExit):
            importlib.import_module(each.name)
    found = {name[len("mxnet.") :]: module for name, module in sys.modules.items() if name.startswith("mxnet.") and module}
    public = sorted(
        (path for path in found if not LEFT_OUT.fullmatch(path)),
        key=lambda path: (short(path)[:3] not in ("nd", "nd.", "sym"), path),
    )
    return {"": mxnet, **{path: found[path] for path in public}}


# ---- signatures


def literal(value: Any) -> str:
    """A default that reads the same everywhere, or nothing."""
    plain = value is None or isinstance(value, (bool, int, float, str))
    if plain or isinstance(value, (tuple, list, dict)):
        text = repr(value).replace(", ", ",")
        if not re.search(r"[ /<\n]", text) and len(text) < 60:
            return text
    return ""


def signature(thing: Any, method: bool = False) -> str:
    """The parameters of a callable, without those that every operator has, or "" if it does not say."""
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except (TypeError, ValueError):
        return ""
    if method and parameters and parameters[0].name in ("self", "cls", "klass"):
        parameters = parameters[1:]
    names = [each.name for each in parameters]
    if names[-3:] in (["out", "name", "kwargs"], ["attr", "out", "kwargs"]):
        parameters = [each for each in parameters if each.name not in ("out", "name", "attr", "kwargs")]
    parts, star = [], False
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            star = star or each.kind is each.VAR_POSITIONAL
            parts.append(("*" if each.kind is each.VAR_POSITIONAL else "**") + each.name)
        else:
            parts.append(each.name + ("" if each.default is each.empty else f"={literal(each.default)}"))
    return "(...)" if parts == ["*args", "**kwargs"] else f"({','.join(parts)})"


def members(cls: type, public: Mapping[type, str]) -> list[str]:
    """The public members that a class defines, itself or in bases before the first public one, with their signatures."""
    found = []
    above = itertools.takewhile(lambda each: each not in public and ours(each), cls.__mro__[1:])
    own: dict[str, Any] = {}
    for each in reversed((cls, *above)):
        own |= vars(each)
    for name, value in sorted(own.items()):
        if (name.startswith("_") and name != "__call__") or name == "hybrid_forward":
            continue
        if isinstance(value, (staticmethod, classmethod)):
            found.append(name + signature(value.__func__, isinstance(value, classmethod)))
        else:
            found.append(name + (signature(value, True) if inspect.isfunction(value) else ""))
    return found


def ours(cls: type) -> bool:
    """Whether a class is MXNet's."""
    return cls.__module__.split(".")[0] == "mxnet"


# ---- the file


def belongs(name: str, thing: Any, path: str, module: types.ModuleType) -> bool:
    """Whether a name is the module's own, and not one that it imported for itself."""
    if name.startswith(("_", "backward_")) or (name in PLUMBING and path != "base") or thing is None:
        return False
    if isinstance(thing, types.ModuleType):
        target = thing.__name__.partition(".")[2]
        inside = thing.__name__.startswith(f"{module.__name__}.")
        return inside and (not LEFT_OUT.fullmatch(target) or (not path and name in ("np", "npx")))
    if not callable(thing):
        return type(thing).__module__ != "__future__" and name not in ("logger",)
    home = getattr(thing, "__module__", None) or ""
    if home in ("ndarray", "symbol"):  # operators, which MXNet enters so
        return path in ("ndarray", "symbol")
    here = f"mxnet.{path}".rstrip(".")
    inside = hasattr(module, "__path__") and (not path or home.startswith(f"{here}."))
    exported = name in getattr(module, "__all__", ()) or (path == "random" and home == "mxnet.ndarray.random")
    return home.split(".")[0] == "mxnet" and (home == here or inside or exported)


def emit(title: str, entries: Iterable[str]) -> None:
    print(title)
    text = " ".join(entries)
    if text:
        print(
            textwrap.fill(text, 130, initial_indent="  ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        )


def operators() -> list[str]:
    """The names in the registry of operators."""
    from mxnet.base import _LIB, check_call, py_str

    size, names = ctypes.c_uint(), ctypes.POINTER(ctypes.c_char_p)()
    check_call(_LIB.MXListAllOpNames(ctypes.byref(size), ctypes.byref(names)))
    return sorted(name for name in (py_str(names[number]) for number in range(size.value)) if not OPERATORS.match(name))


def main() -> None:
    print("# The public names of MXNet 1.9.1, recorded by tests/compat/record_names.py. Form: see names.py.")
    seen: set[int] = set()
    of_nd: dict[str, str] = {}
    contents = {
        path: {name: thing for name, thing in sorted(vars(module).items()) if belongs(name, thing, path, module)}
        for path, module in modules().items()
    }
    public: dict[type, str] = {}
    for path, own in contents.items():
        for name, thing in own.items():
            if inspect.isclass(thing):
                public.setdefault(thing, f"{short(path)}.{name}".lstrip("."))
    for path, own in contents.items():
        entries, classes = [], []
        for name, thing in own.items():
            known = id(thing) in seen or not callable(thing)
            text = "" if known else signature(thing)
            if callable(thing) and not known:
                seen.add(id(thing))
                if inspect.isclass(thing):
                    classes.append(thing)
            if path.startswith(("ndarray", "symbol", "contrib.ndarray", "contrib.symbol")):
                key = (
                    path.replace("contrib.ndarray", "ndarray.contrib")
                    .replace("contrib.symbol", "symbol.contrib")
                    .partition(".")[2]
                )
                if of_nd.setdefault(f"{key}:{name}", text) == text and path.partition(".")[0] != "ndarray":
                    text = ""  # as in nd
            entries.append(name + text)
        emit(f"module {short(path)}".rstrip(), entries)
        for thing in classes:
            found = members(thing, public)
            bases = [public[each] for each in thing.__mro__[1:] if each in public]
            if found or bases:
                emit(f"class {public[thing]}" + (f"({','.join(bases)})" if bases else ""), found)
    emit("operators", operators())


main()
