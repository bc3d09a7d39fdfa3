"""What every other module needs: errors, environment switches and dtypes.

Errors are `MXNetError` with typed children. Each child is also the built-in class that a Python user would catch
(`ShapeError` is a `ValueError`, and so on), so that `except ValueError` does what it says. A message names the operator and the
argument, what it got, what it wants, and what to do next.
"""

from __future__ import annotations

import linecache
import os
import reprlib
import sys
import types
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "ArgumentError", "DTypeError", "DeviceError", "FileFormatError", "FolderError", "MXNetError", "MissingFileError",
    "NotImplementedForSymbol", "OutOfMemoryError", "OutOfRangeError", "RankError", "ShapeError", "UnknownNameError", "data_dir",
    "data_dir_default", "integer_types", "mx_real_t", "numeric_types", "py_str", "string_types",
]  # fmt: skip

DTypeLike: TypeAlias = Any  # "float32", np.float32, np.dtype("float32"), float, None


class LongNamed(types.ModuleType):
    """A module that introduces itself by MXNet's long name, by which it can be imported, too: `minimx.symbol` for `minimx.sym`."""

    def __repr__(self) -> str:
        return f"<module {self.LONG_NAME!r} from {self.__file__!r}>"


class MXNetError(RuntimeError):
    """The base of every error that minimx raises on purpose."""

    node: str | None = None  # the name of the node of a graph that it is about


class ShapeError(MXNetError, ValueError):
    """Shapes that do not fit each other or the operator."""


class RankError(ShapeError):
    """A wrong number of axes, which no length of them could mend: a rule may say so while lengths are unknown."""


class DTypeError(MXNetError, TypeError):
    """Element types that do not fit each other or the operator."""


class ArgumentError(MXNetError, TypeError, ValueError):
    """An argument of an operator that is missing, unknown or out of its range."""


class UnknownNameError(ArgumentError, KeyError):
    """A word that is none of those that are known: a kind of device, a way to treat gradients."""

    __str__ = Exception.__str__  # KeyError would show the message as Python writes a string


class OutOfRangeError(MXNetError, IndexError):
    """An index outside the axis that it indexes."""


class DeviceError(MXNetError, ValueError):
    """A device that is absent, or arrays on devices that cannot be mixed."""


class OutOfMemoryError(MXNetError, MemoryError):
    """An allocation that a device cannot serve."""


class FileFormatError(MXNetError, ValueError):
    """A file whose bytes are not what its format says; the message has the offset."""


class MissingFileError(MXNetError, FileNotFoundError):
    """A file, or the folder to write it into, that is not there."""


class FolderError(MXNetError, IsADirectoryError):
    """A folder where a file is wanted."""


class NotImplementedForSymbol(MXNetError):
    """Something that needs a value was asked of a Symbol, which has none."""

    def __init__(self, function: Any, alias: str | None = None, *args: Any) -> None:
        name = getattr(function, "__name__", str(function))
        instead = f" (use {alias} instead)" if alias else ""
        advice = "" if alias else " In a hybridized block stay with the functions of F, or do it outside the block."
        super().__init__(f"{name} is not supported for Symbol, which has no value until it is bound{instead}.{advice}")


def env_int(names: tuple[str, ...] | str, default: int, minimum: int = 0, maximum: int = 1 << 63) -> int:
    """The first of the environment variables `names` that is set, as an integer from `minimum` to `maximum`."""
    for name in (names,) if isinstance(names, str) else names:
        text = os.environ.get(name)
        if text:
            try:
                value = int(text)
            except ValueError:
                raise ArgumentError(f"environment variable {name}={shown(text)}: an integer is wanted") from None
            if value < minimum:
                raise ArgumentError(f"environment variable {name}={shown(text)}: must be at least {minimum}")
            if value > maximum:
                raise ArgumentError(f"environment variable {name}={shown(text)}: must be at most {maximum}")
            return value
    return default


def env_text(name: str, default: str) -> str:
    """The environment variable `name`."""
    return os.environ.get(name) or default


def env_choice(names: tuple[str, ...] | str, default: str, choices: tuple[str, ...]) -> str:
    """The first of the environment variables `names` that is set; it must be one of `choices`."""
    for name in (names,) if isinstance(names, str) else names:
        text = os.environ.get(name)
        if text:
            if text not in choices:
                raise ArgumentError(f"environment variable {name}={text!r}: choose one of {', '.join(choices)}")
            return text
    return default


def data_dir() -> str:
    """Where data sets and trained parameters are looked for: the folder that MXNET_HOME names, or `.mxnet` in the user's own."""
    return os.path.expanduser(env_text("MXNET_HOME", data_dir_default()))


def data_dir_default() -> str:
    """The folder that `data_dir` gives where MXNET_HOME is not set."""
    return os.path.join(os.environ.get("APPDATA", "~"), "mxnet") if os.name == "nt" else os.path.join("~", ".mxnet")


def py_str(x: bytes | str) -> str:
    """Text as a str, from the bytes in which MXNet's library gave it."""
    return x.decode("utf-8") if isinstance(x, bytes) else x


def as_sentence(text: object) -> str:
    """A text, or an error's, with a full stop, unless it ends in one or in another mark: what is said behind it begins a sentence.

    >>> as_sentence(OSError("no network")), as_sentence("is there a network?")
    ('no network.', 'is there a network?')
    """
    said = str(text)
    return said if said.endswith((".", "!", "?")) else f"{said}."


def near(name: str, known: Iterable[str], most: int = 1, cutoff: float | None = None) -> list[str]:
    """Those of the names `known` that `name` was most likely meant to be, at most `most`, the most likely first.

    **Args** `cutoff`: how alike they must be at least, from 0 to 1; None: 0.7, and less for a short name, of whose letters two are a large
    part. Upper and lower case are alike.

    >>> near("rleu", ["relu", "exp"]), near("dense", ["Dense"]), near("sdg", ["sgd"]), near("nonsense", ["ones"])
    (['relu'], ['Dense'], ['sgd'], [])
    """
    import difflib  # here, as a program seldom comes to this

    if cutoff is None:
        cutoff = 0.7 if len(name) > 4 else 0.65
    spellings: dict[str, list[str]] = {}
    for each in known:
        spellings.setdefault(each.lower(), []).append(each)
    found = difflib.get_close_matches(name.lower(), spellings, most, cutoff)
    return [max(spellings[each], key=lambda one: difflib.SequenceMatcher(None, name, one).ratio()) for each in found]


def did_you_mean(name: str, known: Iterable[str], most: int = 1) -> str:
    """ "; did you mean 'relu'?" for the end of an error about the unknown `name`; nothing if none that is known is near."""
    found = near(name, known, most)
    return f"; did you mean {' or '.join(map(repr, found))}?" if found else ""


LONGEST = 80  # letters of a tuple or list in an error message


def shown(value: Any, depth: int = 3) -> str:
    """A value in an error message: short, and without waiting for an array or asking a stranger for its text.

    **Args** `depth`: how many levels of nested tuples and lists are written out; of what is deeper or longer the message has the length.

    >>> shown([[1, 2], (3,)]), shown([[1] * 9]), shown([[[[0]]]], 2)
    ('[[1, 2], (3,)]', '[a list of 9 items]', '[[a list of 1 item]]')
    """
    if isinstance(value, (str, bytes, int, float, complex, np.generic)) or value is None:
        try:
            return reprlib.repr(value)
        except ValueError:  # Python writes no number of more than 4300 digits
            return "a number of thousands of digits"
    if isinstance(value, (tuple, list)):
        if len(value) <= 8 and depth > 0:
            inner = ", ".join(shown(each, depth - 1) for each in value)
            text = f"({inner}{',' * (len(value) == 1)})" if isinstance(value, tuple) else f"[{inner}]"
            if len(text) <= LONGEST:
                return text
        return f"a {type(value).__name__} of {len(value)} item{'s' * (len(value) != 1)}"
    if isinstance(value, type):
        return f"the type {value.__name__}"
    if isinstance(value, np.ndarray):
        return "a NumPy array"  # its class is called ndarray, which reads like NDArray
    kind = type(value).__name__
    return f"{'an' if kind[:1] in 'aeioAEIO' or kind.lower() == 'ndarray' else 'a'} {kind}"


# The dtypes of MXNet 1.x, by the number that stands for each in its files.
DTYPE_OF_CODE: dict[int, np.dtype[Any]] = {
    0: np.dtype(np.float32),
    1: np.dtype(np.float64),
    2: np.dtype(np.float16),
    3: np.dtype(np.uint8),
    4: np.dtype(np.int32),
    5: np.dtype(np.int8),
    6: np.dtype(np.int64),
    7: np.dtype(np.bool_),
}
CODE_OF_DTYPE: dict[np.dtype[Any], int] = {dtype: code for code, dtype in DTYPE_OF_CODE.items()}
FLOAT32 = DTYPE_OF_CODE[0]
mx_real_t = np.float32  # MXNet's name for the default dtype

# What MXNet-era code asks `isinstance` with.
string_types = (str,)
numeric_types = (float, int, np.generic)
integer_types = (int, np.int32, np.int64)


def as_dtype(dtype: DTypeLike, default: np.dtype[Any] = FLOAT32) -> np.dtype[Any]:
    """`dtype` as one of the supported NumPy dtypes; None means `default`.

    Raises DTypeError for anything that MXNet 1.x has no arrays of.
    """
    if dtype is None:
        return default
    found = None
    if isinstance(dtype, (str, type, np.dtype)):  # NumPy would ask any object for an attribute `dtype`
        try:
            found = np.dtype(dtype)
        except (TypeError, ValueError, SyntaxError, OverflowError):
            found = None
    if found is None or found not in CODE_OF_DTYPE:
        names = ", ".join(known.name for known in CODE_OF_DTYPE)
        raise DTypeError(f"dtype {shown(dtype)} is not supported; use one of {names}")
    return found


def user_location(skip: int = 0) -> tuple[str, int] | None:
    """File and line of the innermost frame outside minimx: where the user wrote the call that runs now.

    `skip`: how many callers are ours for certain and need not be looked at.
    """
    frame = sys._getframe(1 + skip)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
    return None


def described(where: tuple[str, int]) -> str:
    """A place in the user's code in words, with the line itself where it can be read: "train.py, line 12: y = net(x)"."""
    file, line = where
    text = linecache.getline(file, line).strip()
    # A notebook's cells live in temporary files, whose names tell a reader nothing.
    name = "a notebook cell" if os.path.basename(os.path.dirname(file)).startswith("ipykernel_") else file
    return f"{name}, line {line}" + (f": {text}" if text else "")


PACKAGE_FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep
