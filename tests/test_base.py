"""The ground of everything: errors, switches of the environment, dtypes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import base

pytestmark = pytest.mark.timeout(30)


ITSELF: list[Any] = []
ITSELF.append(ITSELF)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([], "[]"), ((1,), "(1,)"), ([[1, 2], [3, 4]], "[[1, 2], [3, 4]]"), ([(0.5, None)], "[(0.5, None)]"), ([[]], "[[]]"),
        ([[[1]]], "[[[1]]]"), ([[[[1]]]], "[[[a list of 1 item]]]"), ([[0] * 9, 1], "[a list of 9 items, 1]"),
        ([0] * 9, "a list of 9 items"), (((1,) * 8,) * 8, "a tuple of 8 items"), (ITSELF, "[[[a list of 1 item]]]"),
        ([np.ones(2), int], "[a NumPy array, the type int]"),
    ],
)  # fmt: skip
def test_values_in_messages(value: Any, text: str) -> None:
    assert base.shown(value) == text


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (base.ShapeError, ValueError), (base.DTypeError, TypeError), (base.ArgumentError, TypeError),
        (base.ArgumentError, ValueError), (base.OutOfRangeError, IndexError), (base.DeviceError, ValueError),
        (base.OutOfMemoryError, MemoryError), (base.FileFormatError, ValueError), (base.FolderError, OSError),
        (base.NotImplementedForSymbol, RuntimeError),
    ],
)  # fmt: skip
def test_errors_are_mxnet_errors_and_what_a_python_user_would_catch(error: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(error, base.MXNetError)
    assert issubclass(error, builtin)
    assert issubclass(base.MXNetError, RuntimeError)
    assert mx.MXNetError is base.MXNetError


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: mx.nd.ones((2, 3)) + mx.nd.ones((2, 4)), ValueError, r"\(2, 3\) and \(2, 4\)"),
        (lambda: mx.nd.ones((2,)) + mx.nd.ones((2,), dtype="float64"), TypeError, "float32 .* float64.*astype"),
        (lambda: mx.nd.ones((2,))[5], IndexError, "5"),
        (lambda: mx.nd.ones((2,), dtype="complex64"), TypeError, "complex64"),
        (lambda: mx.nd.relu(3), TypeError, "NDArray"),
        (lambda: mx.nd.relu(mx.nd.ones((2,)), nonsense=1), TypeError, "nonsense"),
    ],
)
def test_bad_calls_raise_at_once_what_says_what_is_wrong(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_not_implemented_for_symbol_names_the_function() -> None:
    error = base.NotImplementedForSymbol(len, "shape", 3)
    assert str(error) == "len is not supported for Symbol, which has no value until it is bound (use shape instead)."
    assert "asnumpy is not" in str(base.NotImplementedForSymbol("asnumpy"))


def test_switches_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINIMX_TEST_A", raising=False)
    monkeypatch.delenv("MINIMX_TEST_B", raising=False)
    names = ("MINIMX_TEST_A", "MINIMX_TEST_B")
    assert base.env_int(names, 7) == 7
    assert base.env_choice(names, "x", ("x", "y")) == "x"
    monkeypatch.setenv("MINIMX_TEST_B", "3")
    assert base.env_int(names, 7) == base.env_int("MINIMX_TEST_B", 7) == 3
    monkeypatch.setenv("MINIMX_TEST_A", "4")
    assert base.env_int(names, 7) == 4
    monkeypatch.setenv("MINIMX_TEST_A", "")
    assert base.env_int(names, 7) == 3  # empty is not set
    for text, message in (("many", "an integer is wanted"), ("2.5", "an integer is wanted"), ("-1", "must be at least 0")):
        monkeypatch.setenv("MINIMX_TEST_A", text)
        with pytest.raises(base.ArgumentError, match=f"MINIMX_TEST_A='{text}': {message}"):
            base.env_int(names, 7)
    monkeypatch.setenv("MINIMX_TEST_A", "y")
    assert base.env_choice(names, "x", ("x", "y")) == "y"
    with pytest.raises(base.ArgumentError, match="MINIMX_TEST_A='y': choose one of x, z"):
        base.env_choice(names, "x", ("x", "z"))


def test_dtypes() -> None:
    assert base.as_dtype(None) == base.as_dtype("float32") == base.as_dtype(np.float32) == np.dtype("float32")
    assert base.as_dtype(None, np.dtype("int8")) == np.dtype("int8")
    assert base.as_dtype(float) == np.dtype("float64")
    assert [base.DTYPE_OF_CODE[code].name for code in range(8)] == [
        "float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool",
    ]  # fmt: skip
    assert {dtype: code for code, dtype in base.DTYPE_OF_CODE.items()} == base.CODE_OF_DTYPE


def test_dtypes_that_mxnet_has_not() -> None:
    for wrong in ("complex64", "float128", "uint16", "nonsense", object, "S3", 3.5):
        with pytest.raises(base.DTypeError, match="is not supported; use one of float32, float64"):
            base.as_dtype(wrong)


def test_the_users_line_is_found() -> None:
    found = base.user_location()
    assert found is not None
    assert Path(found[0]) == Path(__file__)
    assert "base.user_location()" in Path(__file__).read_text(encoding="utf-8").splitlines()[found[1] - 1]
    lines: list[Any] = []
    sorted([2, 1], key=lambda _: lines.append(base.user_location()) or 0)
    assert {Path(file) for file, _ in lines} == {Path(__file__)}


def test_a_place_is_described_with_its_line() -> None:
    here = base.user_location()
    assert here is not None
    assert base.described(here) == f"{__file__}, line {here[1]}: here = base.user_location()"
    assert base.described(("/tmp/ipykernel_1/2.py", 3)) == "a notebook cell, line 3"
    assert base.described(("<string>", 1)) == "<string>, line 1"


def test_errors_can_be_sent_to_other_processes() -> None:
    for error in (base.ShapeError("a"), base.OutOfMemoryError("b"), base.FileFormatError("c")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))


@pytest.mark.xfail(strict=True, raises=pytest.fail.Exception, reason="a deliberate fault: any dtype of NumPy is taken")
def test_the_twin_that_takes_any_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(base.CODE_OF_DTYPE, np.dtype("complex64"), 99)
    test_dtypes_that_mxnet_has_not()
