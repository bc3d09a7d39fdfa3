"""The attributes of operators: from what a user writes, or a file says, to what the annotation of the field promises.

A user writes `axis=np.int64(1)`, `shape=[2, 3]`, `lr="0.1"`; an operator's fields hold int, tuples of int, and Python's numbers, because
they are compared, hashed, and written to files. `initializer` writes the `__init__` of an operator from the annotations of its fields, so
that whatever reaches a rule of shapes or a kernel has the type that is announced, and anything else is refused by the call itself with
an error that names operator and argument. MXNet hands all attributes over as text, so text is understood everywhere.
"""

from __future__ import annotations

import ast
import dataclasses
import numbers
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .base import CODE_OF_DTYPE, ArgumentError, DTypeError, as_dtype, shown

WORD = 1 << 63  # whole numbers go to here, as an exclusive bound may be this; in MXNet and NumPy they have 64 bits, too


# ---- one value


def as_int(value: Any) -> int:
    """`value` as an int of 64 bits. Raises TypeError, OverflowError."""
    if isinstance(value, str):
        value = int(value[:-1] if value.endswith("L") else value)
    if isinstance(value, np.bool_):
        value = bool(value)
    if hasattr(value, "asnumpy"):
        raise TypeError
    number = operator.index(value)
    if not -WORD <= number <= WORD:
        raise OverflowError
    return number


def as_float(value: Any) -> float:
    """`value` as a Python number. A whole number stays an int, so that it is written as it was read."""
    if isinstance(value, str):
        value = int(value) if value.lstrip("-").isdecimal() else float(value)
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
        value = value.item()
    if isinstance(value, int):
        number = int(value)
        return number if -WORD <= number <= WORD else float(number)
    if not isinstance(value, numbers.Real):
        raise TypeError
    return float(value)


def as_bool(value: Any) -> bool:
    if isinstance(value, str):
        value = {"true": 1, "1": 1, "false": 0, "0": 0}[value.lower()]
    if hasattr(value, "asnumpy"):
        raise TypeError
    number = int(value) if isinstance(value, np.bool_) else operator.index(value)
    if number not in (0, 1):
        raise ValueError
    return bool(number)


def as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def as_int_or_none(value: Any) -> int | None:
    return None if value is None else as_int(value)


def tuple_of(element: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    """What makes a tuple of `element`s; one value counts as a tuple of it."""

    def convert(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = ast.literal_eval(value.replace("L", "") if element is not as_float else value)
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = value.tolist()
        if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            return tuple(element(each) for each in value)
        return (element(value),)

    return convert


def pair(value: Any) -> tuple[float, ...]:
    found = tuple_of(as_float)(value)
    if len(found) != 2:
        raise ValueError
    return found


def are_ints(value: Any) -> bool:
    """Whether `value` is a tuple of int as it should be."""
    if type(value) is not tuple:
        return False
    for each in value:  # noqa: SIM110  # all(...) with a generator takes three times as long
        if type(each) is not int or not -WORD <= each <= WORD:
            return False
    return True


def is_dtype(value: Any) -> bool:
    return isinstance(value, np.dtype) and value in CODE_OF_DTYPE


# annotation -> what converts a value, what to call it in an error, and the condition under which `{0}` needs no conversion
KINDS: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "int": (as_int, "an int", "type({0}) is int and -WORD <= {0} <= WORD"),
    "float": (as_float, "a number", "type({0}) is float or type({0}) is int and -WORD <= {0} <= WORD"),
    "bool": (as_bool, "True or False", "{0} is True or {0} is False"),
    "str": (as_text, "a str", "type({0}) is str"),
    "tuple[int, ...]": (tuple_of(as_int), "an int or a tuple of int", "are_ints({0})"),
    "tuple[int | None, ...]": (tuple_of(as_int_or_none), "an int, None, or a tuple of these", "are_ints({0})"),
    "tuple[float, ...]": (tuple_of(as_float), "a number or a tuple of numbers", "False"),
    "tuple[float, float]": (pair, "a pair of numbers", "False"),
    "np.dtype[Any]": (as_dtype, "a dtype", "is_dtype({0})"),
}


def split(annotation: str) -> tuple[str, bool]:
    """An annotation without its `| None`, and whether it had one.

    >>> split("tuple[int | None, ...] | None")
    ('tuple[int | None, ...]', True)
    """
    text = annotation.removesuffix("| None").rstrip()
    return text, text != annotation


def in_words(annotation: str) -> str:
    """What a value of this annotation is called in an error.

    >>> in_words("int | None")
    'an int or None'
    """
    kind, optional = split(annotation)
    return (KINDS[kind][1] if kind in KINDS else f"a {kind}") + " or None" * optional


def converted(owner: str, name: str, annotation: str, value: Any) -> Any:
    """`value` as `annotation` wants it. Raises ArgumentError that names the operator `owner` and its argument `name`."""
    kind, optional = split(annotation)
    if optional and (value is None or (type(value) is str and value == "None")):
        return None
    convert = KINDS[kind][0]
    try:
        return convert(value)
    except DTypeError as error:
        raise DTypeError(f"{owner}: {error}") from None
    except OverflowError:
        reason = "is beyond all floating numbers" if "float" in kind else "does not fit into 64 bits"
        raise ArgumentError(f"{owner}: {name} is {shown(value)}, which {reason}") from None
    except (TypeError, ValueError, KeyError, SyntaxError, MemoryError, RecursionError):
        raise ArgumentError(f"{owner}: {name} must be {in_words(annotation)}, got {shown(value)}") from None


# ---- all values of an operator


def spelt(field: dataclasses.Field[Any]) -> str:
    """What MXNet calls the attribute that `field` holds: its own name, but for those that op.called() made."""
    return field.metadata.get("called", field.name)


def initializer(fields: tuple[dataclasses.Field[Any], ...]) -> Any:
    """The method `__init__` of a class with these fields. It writes past the guard against changes.

    Values of other types than those of KINDS, and hidden ones, are the system's own and stay as they are.
    """
    arguments: list[str] = ["self"]
    names: dict[str, Any] = {"converted": converted, "WORD": WORD, "are_ints": are_ints, "is_dtype": is_dtype}
    positional = [field for field in fields if not field.kw_only]
    for field in (*positional, None, *(field for field in fields if field.kw_only)):
        if field is None:
            arguments += ["*"] if len(positional) < len(fields) else []
            continue
        has_default = field.default is not dataclasses.MISSING
        names[f"default_{field.name}"] = field.default
        arguments.append(f"{field.name}=default_{field.name}" if has_default else field.name)
    lines = [f"    values[{field.name!r}] = {_conversion(field)}" for field in fields]
    source = "\n".join([f"def __init__({', '.join(arguments)}):", "    values = self.__dict__", *lines])
    exec(source, names)
    return names["__init__"]


def _conversion(field: dataclasses.Field[Any]) -> str:
    """The expression for a field's value."""
    name, annotation = field.name, str(field.type)
    kind, optional = split(annotation)
    if kind not in KINDS or field.metadata.get("hidden"):
        return name
    ready = KINDS[kind][2].format(name) + f" or {name} is None" * optional
    return f"{name} if {ready} else converted(self.name or type(self).__name__, {spelt(field)!r}, {annotation!r}, {name})"


def parse_attr(text: Any, annotation: str) -> Any:
    """A value from its string in MXNet's JSON, by the field's annotation such as "int", "tuple[int, ...] | None".

    >>> parse_attr("(3, 3)", "tuple[int, ...]"), parse_attr("1", "bool"), parse_attr("None", "int | None")
    ((3, 3), True, None)
    """
    if not isinstance(text, str):
        return text
    kind, optional = split(annotation)
    if text == "None" and optional:
        return None
    return KINDS[kind][0](text) if kind in KINDS else ast.literal_eval(text)
