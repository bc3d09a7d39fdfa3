"""The attributes of operators: what is taken for each annotation, and what the errors say."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

from minimx import nd
from minimx.base import ArgumentError, DTypeError, shown
from minimx.fields import KINDS, converted, parse_attr
from minimx.op import REGISTRY, Op, attributes, hidden


@pytest.mark.parametrize(
    ("annotation", "value", "wanted"),
    [
        ("int", 3, 3), ("int", np.int8(-3), -3), ("int", "3", 3), ("int", "3L", 3), ("int", True, 1), ("int", np.array(4), 4),
        ("int", -(2**63), -(2**63)), ("int | None", None, None), ("int | None", "None", None), ("float", 2, 2), ("float", 0.5, 0.5),
        ("float", np.float32(0.5), 0.5), ("float", "1e-3", 1e-3), ("float", "7", 7), ("float", Fraction(1, 2), 0.5),
        ("float", 2**70, 2.0**70),
        ("bool", 1, True), ("bool", "False", False), ("bool", np.bool_(True), True), ("str", "a", "a"), ("str", np.str_("a"), "a"),
        ("tuple[int, ...]", [1, np.int64(2)], (1, 2)), ("tuple[int, ...]", 5, (5,)), ("tuple[int, ...]", "(1, 2)", (1, 2)),
        ("tuple[int, ...]", np.array([1, 2]), (1, 2)), ("tuple[int, ...]", range(2), (0, 1)), ("tuple[int, ...]", "[2L]", (2,)),
        ("tuple[int | None, ...]", (None, 1), (None, 1)), ("tuple[int | None, ...]", None, (None,)),
        ("tuple[float, ...]", [1, 0.5], (1, 0.5)),
        ("tuple[float, float] | None", [0, 1], (0, 1)), ("np.dtype[Any]", np.int32, np.dtype("int32")),
        ("np.dtype[Any]", None, np.dtype("float32")), ("np.dtype[Any] | None", None, None),
    ],
)  # fmt: skip
def test_what_is_taken(annotation: str, value: Any, wanted: Any) -> None:
    found = converted("op", "name", annotation, value)
    assert found == wanted
    assert type(found) is type(wanted)
    if isinstance(found, tuple):
        assert [type(each) for each in found] == [type(each) for each in wanted]


@pytest.mark.parametrize(
    ("annotation", "value", "message"),
    [
        ("int", 1.0, "op: name must be an int, got 1.0"), ("int", None, "op: name must be an int, got None"),
        ("int | None", "x", "op: name must be an int or None, got 'x'"),
        ("int", 2**64, "op: name is 18446744073709551616, which does not fit"),
        ("int", nd.ones((1,)), "op: name must be an int, got an NDArray"), ("float", 1j, "op: name must be a number, got 1j"),
        ("float", 10**400, "which is beyond all floating numbers"), ("float", [1.0], r"op: name must be a number, got \[1.0\]"),
        ("bool", None, "op: name must be True or False, got None"), ("bool", 2, "op: name must be True or False, got 2"),
        ("bool", "maybe", "op: name must be True or False, got 'maybe'"), ("str", 3, "op: name must be a str, got 3"),
        ("tuple[int, ...]", (1, "a"), r"op: name must be an int or a tuple of int, got \(1, 'a'\)"),
        ("tuple[int, ...]", {1}, "got a set"),
        ("tuple[int, ...]", "(" * 300, "op: name must be an int or a tuple of int, got"),
        ("tuple[float, float]", (1,), "a pair of numbers"),
        ("tuple[int, ...]", "__import__('os')", "op: name must be"), ("np.dtype[Any]", "int33", "op: dtype 'int33' is not supported"),
    ],
)  # fmt: skip
def test_what_is_refused(annotation: str, value: Any, message: str) -> None:
    with pytest.raises((ArgumentError, DTypeError), match=message):
        converted("op", "name", annotation, value)


def test_values_in_messages_are_short_and_ask_nobody() -> None:
    class Odd:
        __repr__ = None  # type: ignore[assignment]

    assert shown(Odd()) == "an Odd"
    assert shown(nd.random.normal(0, -1, (2,))) == "an NDArray"
    assert shown([1, None, Odd()]) == "[1, None, an Odd]"
    assert shown(tuple(range(100))) == "a tuple of 100 items"
    assert shown(10**5000) == "a number of thousands of digits"
    assert len(shown("x" * 1000)) < 50
    with pytest.raises(Exception, match="scale is -1"):
        nd.waitall()


@attributes
class Example(Op):
    """An operator with a field of each sort."""

    saves_inputs: ClassVar[bool] = False

    size: int
    rate: float = 0.5
    axes: tuple[int, ...] | None = None
    training: bool = hidden(False)


def test_operators_hold_what_their_annotations_say() -> None:
    op = Example("3", rate=np.float64(0.25), axes=[0, 1])  # type: ignore[arg-type]
    assert (op.size, op.rate, op.axes) == (3, 0.25, (0, 1))
    assert op == Example(3, 0.25, (0, 1))
    assert op.attrs() == {"size": "3", "rate": "0.25", "axes": "(0, 1)"}
    with pytest.raises(ArgumentError, match="Example: rate must be a number, got 'fast'"):
        Example(1, rate="fast")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="size"):
        Example()  # type: ignore[call-arg]
    assert Example(1, training="whatever").training == "whatever"  # type: ignore[arg-type]  # the system's own business


def test_every_attribute_of_every_operator_is_checked() -> None:
    """An annotation that is not in KINDS would let anything pass. Indices have a class of their own, and operators of users have what
    their description says."""
    kinds = {
        str(field.type).removesuffix("| None").rstrip()
        for name, cls in REGISTRY.items()
        if name != "Custom"
        for field in dataclasses.fields(cls)
        if not field.metadata.get("hidden")
    }
    unknown = kinds - set(KINDS)
    assert unknown <= {"Key"}


def test_text_of_attributes() -> None:
    assert parse_attr("(3, 3)", "tuple[int, ...]") == (3, 3)
    assert parse_attr("None", "int | None") is None
    assert parse_attr(7, "int") == 7
    with pytest.raises(ValueError, match="invalid literal"):
        parse_attr("seven", "int")
