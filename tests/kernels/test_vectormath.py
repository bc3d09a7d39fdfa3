"""The functions of loops against double precision, over all of single precision: every 1009th number, or all with MINIMX_EXHAUSTIVE=1."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import special

from minimx.kernels import machine
from minimx.kernels.vectormath import SOURCES, computes, prelude

pytest.importorskip("llvmlite")

EXHAUSTIVE = os.environ.get("MINIMX_EXHAUSTIVE") == "1"
BLOCK = 1 << 24
LIMITS = {"tanh": 3.0}  # units in the last place; 2 for the others
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "expm1": np.expm1, "tanh": np.tanh, "log": np.log, "log1p": np.log1p, "erf": special.erf,
}  # fmt: skip
NEAR = np.concatenate(
    [
        np.linspace(-2, 2, 200_001),
        np.linspace(-20, 20, 200_001),
        np.linspace(85, 90, 50_001),
        np.linspace(-106, -85, 50_001),
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38, -3.4028235e38],
    ]
).astype(np.float32)


def samples() -> Iterator[np.ndarray]:
    """Numbers of single precision, in blocks."""
    yield NEAR
    step = 1 if EXHAUSTIVE else 1009
    for low in range(0, 1 << 32, BLOCK * step):
        yield np.arange(low, min(low + BLOCK * step, 1 << 32), step, np.uint64).astype(np.uint32).view(np.float32)


def computed(name: str, x: np.ndarray) -> np.ndarray:
    text = (
        f"void loop(float *x, float *y, long low, long high) {{ for (long i = low; i < high; i++) {{ y[i] = {name}(x[i]); }} }}"
    )
    code = machine.code_of(text, (machine.POINTER, machine.POINTER, machine.LONG, machine.LONG))
    machine.wait(code)
    assert code.error is None, code.error
    y = np.empty_like(x)
    code.function(x.ctypes.data, y.ctypes.data, 0, x.size)
    return y


def errors(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Units in the last place between float32 `got` and float64 `exact`, where both are finite."""
    rounded = exact.astype(np.float32)
    finite = np.isfinite(rounded)
    unit = np.spacing(np.maximum(np.abs(rounded[finite]), np.float32(2**-126))).astype(np.float64)
    return np.abs(got[finite] - exact[finite]) / unit


@pytest.mark.timeout(0 if EXHAUSTIVE else 120)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_and_special_values(name: str) -> None:
    for x in samples():
        got = computed(name, x)
        with np.errstate(all="ignore"):
            exact = FUNCTIONS[name](x.astype(np.float64))
            rounded = exact.astype(np.float32)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
            infinite = np.isinf(rounded)
            np.testing.assert_array_equal(got[infinite], rounded[infinite])
            assert errors(got, exact).max(initial=0) <= LIMITS.get(name, 2.0)
        zero = rounded == 0
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(rounded[zero]))


def test_the_functions_use_whole_vectors() -> None:
    """LLVM makes no calls of them, and no jumps for single elements."""
    for name in FUNCTIONS:
        text = f"void loop(float *x, float *y, long low, long high) {{ for (long i = low; i < high; i++) {{ y[i] = {name}(x[i]); }} }}"
        assert "call" not in machine.assembly(text), name


def test_a_prelude_has_what_is_needed() -> None:
    assert prelude("y = x * 2.0f") == ""
    assert prelude("y = log1p(x)").count("\nfloat ") + 1 == 2
    assert [name for name in SOURCES if f"float {name}(" in prelude("y = tanh(x)")] == ["tail", "less1", "tanh"]


def test_what_loops_compute() -> None:
    assert computes("exp(sqrt(x))", "float")
    assert not computes("exp(sqrt(x))", "double")
    assert computes("sqrt(fabs(x))", "double")
    assert not computes("pow(x, y)", "float")


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a deliberate fault: a coefficient of the polynomial is off")
def test_the_twin_with_a_wrong_coefficient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES, "tail", SOURCES["tail"].replace("8.367181e-3f", "8.467181e-3f"))
    x = NEAR[:200_000:100].copy()
    text = "void loop(float *x, float *y, long low, long high) { for (long i = low; i < high; i++) { y[i] =  exp(x[i]); } }"
    code = machine.code_of(text, (machine.POINTER, machine.POINTER, machine.LONG, machine.LONG))
    machine.wait(code)
    y = np.empty_like(x)
    code.function(x.ctypes.data, y.ctypes.data, 0, x.size)
    assert errors(y, np.exp(x.astype(np.float64))).max() <= 2.0
