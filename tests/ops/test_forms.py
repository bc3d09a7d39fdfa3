"""The forms of elementwise operators: which form a call takes, on tensors that broadcast and on tensors that do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

from minimx.base import ArgumentError
from minimx.op import REGISTRY, Op, Spec, Tensor, find
from minimx.ops import binary, logic, powers
from minimx.ops.forms import as_number, unbroadcast


class Array(Tensor):
    """A tensor that only remembers how operators were applied."""

    @classmethod
    def _apply(cls, op: Op, operands: Sequence[Any], how: Any) -> Any:
        return op, len(operands), how.get("_hint")


class Graph(Array):
    """The same with the rule of Symbol."""

    broadcasts: ClassVar[bool] = False


a, b, s, t = Array(), Array(), Graph(), Graph()


@pytest.mark.parametrize(
    ("call", "name", "hint"),
    [
        (lambda: binary.ADD.operator(a, b), "broadcast_add", None),
        (lambda: binary.ADD.operator(s, t), "elemwise_add", "_plus"),
        (lambda: binary.ADD(s, t), "broadcast_add", None),
        (lambda: binary.ADD.operator(2, s), "_plus_scalar", "_plusscalar"),
        (lambda: binary.SUBTRACT.operator(2, a), "_rminus_scalar", None),
        (lambda: binary.SUBTRACT.operator(2, s), "_rminus_scalar", "_rminusscalar"),
        (lambda: binary.DIVIDE.operator(s, 2), "_div_scalar", "_divscalar"),
        (lambda: binary.divide(2, s), "_rdiv_scalar", None),
        (lambda: logic.GREATER.operator(2, s), "_lesser_scalar", None),
        (lambda: logic.GREATER.operator(s, t), "_greater", None),
        (lambda: powers.maximum(s, t), "_maximum", "_maximum"),
        (lambda: powers.maximum(a, b), "broadcast_maximum", None),
        (lambda: powers.power(2, s), "_rpower_scalar", "_rpowerscalar"),
    ],
)
def test_form(call: Any, name: str, hint: str | None) -> None:
    op, _, given = call()
    assert (op.name, given) == (name, hint)


def test_two_numbers_need_no_operator() -> None:
    assert binary.add(2, 3) == 5
    assert powers.maximum(2, 3.5) == 3.5
    assert powers.hypot(3, 4) == 5
    assert logic.greater(np.float32(2), 1)


@pytest.mark.parametrize(
    ("value", "number"), [(True, 1), (np.float32(0.5), 0.5), (np.int8(-3), -3), (np.bool_(1), 1), (2.5, 2.5)]
)
def test_numbers_are_plain(value: Any, number: float) -> None:
    found = as_number(value)
    assert found == number
    assert type(found) is type(number)


@pytest.mark.parametrize("value", [None, "1", 1j, [1.0], np.ones(1), np.complex64(1)])
def test_no_number(value: Any) -> None:
    with pytest.raises(ArgumentError, match="a number is wanted"):
        as_number(value)


@pytest.mark.parametrize(("number", "text"), [(1, "1"), (-1.0, "-1.0"), (2.5, "2.5"), (1e-30, "1e-30"), (float("inf"), "inf")])
def test_numbers_in_json_are_written_as_they_were_read(number: float, text: str) -> None:
    op = binary.ScalarAdd(number)
    assert op.attrs() == {"scalar": text}
    read = find("_PlusScalar").from_attrs({"scalar": text, "is_int": "1"})
    assert read == op
    assert read.attrs() == op.attrs()


def test_unbroadcast_is_the_adjoint_of_broadcasting() -> None:
    rng = np.random.default_rng(0)
    for shape, wide in [
        ((3, 1), (3, 4)),
        ((4,), (2, 3, 4)),
        ((1,), (2, 3)),
        ((1, 3, 1), (5, 2, 3, 4)),
        ((0, 3), (2, 0, 3)),
        ((2, 3), (2, 3)),
    ]:
        x, g = rng.standard_normal(shape), rng.standard_normal(wide)
        back = unbroadcast(g, x)
        assert back.shape == shape
        np.testing.assert_allclose(np.sum(back * x), np.sum(g * np.broadcast_to(x, wide)))


def test_unknown_specs_of_one_shape_follow_from_known_ones() -> None:
    known = Spec.of((2, 3), "float32")
    assert REGISTRY["elemwise_add"]().fill(None, known) == (known, known)
    assert REGISTRY["add_n"]().fill(None, known, None) == (known, known, known)
    assert REGISTRY["broadcast_add"]().fill(None, known) == (None, known)
