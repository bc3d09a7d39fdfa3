"""The compiler of loops: what its language means, and what is not of it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from minimx.kernels import machine
from minimx.kernels.compiler import CompilerError, compiled

pytest.importorskip("llvmlite")


def run(source: str, x: np.ndarray, result: str = "float32", *numbers: float) -> np.ndarray:
    """What the function `loop(x, y, numbers, low, high)` of the source writes into `y`."""
    kinds = (machine.POINTER, machine.POINTER, *(ctypes.c_float for _ in numbers), machine.LONG, machine.LONG)
    code = machine.code_of(source, kinds)
    machine.wait(code)
    assert code.error is None, code.error
    y = np.zeros(x.shape, result)
    code.function(x.ctypes.data, y.ctypes.data, *numbers, 0, x.size)
    return y


def evaluated(expression: str, x: Any, kind: str = "float") -> list[float]:
    """An expression in `x`."""
    source = f"""void loop(float *a, {kind} *y, long low, long high) {{
        for (long i = low; i < high; i++) {{ float x = a[i]; y[i] = {expression}; }}
    }}"""
    return run(source, np.asarray(x, "float32"), {"float": "float32", "double": "float64", "int": "int32"}[kind]).tolist()


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("x + 2.0f * 3.0f", [7, 8]),
        ("(x + 2.0f) * 3.0f", [9, 12]),
        ("x - 1.0f - 1.0f", [-1, 0]),
        ("-x * x", [-1, -4]),
        ("x > 1.0f ? 10.0f : 20.0f", [20, 10]),
        ("x > 5.0f ? 1.0f : x > 1.0f ? 2.0f : 3.0f", [3, 2]),
        ("x == 1.0f || x == 2.0f && x > 5.0f ? 1.0f : 0.0f", [1, 0]),
        ("!(x == 1.0f) ? 1.0f : 0.0f", [0, 1]),
        ("x / 2.0f", [0.5, 1]),
        ("7 / 2 + x", [4, 5]),
        ("7 % 4 + x", [4, 5]),
        ("(1 << 4 | 1) + x", [18, 19]),
        ("(0xFF >> 4 & 6 ^ 1) + x", [8, 9]),
        ("float(int(x * 1.75f))", [1, 3]),
        ("fmaximum(x, 1.5f) + fminimum(x, 1.5f)", [2.5, 3.5]),
        ("copysign(fabs(floor(-x / 2.0f)), -1.0f)", [-1, -1]),
        ("fma(x, x, 1.0f)", [2, 5]),
        ("__int_as_float(__float_as_int(x) + (1 << 23))", [2, 4]),
        ("INFINITY * x", [np.inf, np.inf]),
    ],
)
def test_expressions(expression: str, want: list[float]) -> None:
    assert evaluated(expression, [1, 2]) == want


def test_types_are_those_of_c() -> None:
    assert evaluated("x / 3.0", [1], "double") == [1 / 3]
    assert evaluated("x / 3.0f", [1], "double") == [float(np.float32(1) / np.float32(3))]
    assert evaluated("x > 0.5f", [1, 0], "int") == [1, 0]
    assert evaluated("x", [2.75, -2.75], "int") == [2, -2]


def test_comparisons_with_nan_are_false_but_unequal() -> None:
    for sign, want in (("==", 0), ("!=", 1), ("<", 0), ("<=", 0), (">", 0), (">=", 0)):
        assert evaluated(f"x {sign} x", [np.nan], "int") == [want], sign


def test_functions_and_loops_in_loops() -> None:
    source = """
    // The mean of what came before in a row of eight.
    float half(float x) { float y = x * 0.5f; return y; }
    void loop(float *a, float *y, float s, long low, long high) {
        for (long row = low; row < high / 8; row++) {
            float sum = 0.0f;
            float most = -INFINITY;
            for (long i = 0; i < 8; i++) {
                sum += a[row * 8 + i];
                most = fmaximum(most, a[row * 8 + i]);
            }
            for (long i = 0; i < 8; i++) { y[row * 8 + i] = half(sum) + most * s; }
        }
    }"""
    x = np.arange(32, dtype="float32")
    rows = x.reshape(4, 8)
    want = np.repeat(rows.sum(1) / 2 + rows.max(1) * 10, 8)
    np.testing.assert_array_equal(run(source, x, "float32", 10.0), want)


def test_sums_of_whole_numbers() -> None:
    source = """void loop(float *a, float *y, long low, long high) {
        long many = 0;
        for (long i = low; i < high; i++) { many += a[i] > 1.5f ? i : 0; }
        y[0] = float(many);
    }"""
    assert run(source, np.arange(100, dtype="float32"), "float32")[0] == sum(range(2, 100))


@pytest.mark.parametrize("lanes", [4, 8])
def test_vectors(lanes: int) -> None:
    """Loads and stores from any element on, numbers repeated, arithmetic, and a choice between two."""
    source = f"""void loop(float *a, float *y, long low, long high) {{
        float{lanes} sum = float{lanes}(0.5f);
        for (long i = low; i < high / {lanes} - 1; i++) {{
            float{lanes} x = a[i * {lanes} + 1 : {lanes}];
            sum = fma(x, float{lanes}(2.0f), sum);
            y[i * {lanes} + 1 : {lanes}] = i > 0 ? -x * x + 1.0f : x - a[i * {lanes} + 1];
        }}
        y[high - {lanes} : {lanes}] = sum;
    }}"""
    x = np.arange(6 * lanes, dtype="float32")
    rows = x[1 : 1 + 5 * lanes].reshape(5, lanes)
    want = np.zeros_like(x)
    want[1 : 1 + lanes] = rows[0] - rows[0, 0]
    want[1 + lanes : 1 + 5 * lanes] = (1 - rows[1:] ** 2).reshape(-1)
    want[-lanes:] = 0.5 + 2 * rows.sum(0)
    np.testing.assert_array_equal(run(source, x), want)


@pytest.mark.parametrize("size", [0, 1, 2, 7, 8, 15, 16, 17, 31, 63, 64, 65, 100])
def test_every_length(size: int) -> None:
    x = np.linspace(-1, 1, size, dtype="float32")
    source = "void loop(float *x, float *y, long low, long high) { for (long i = low; i < high; i++) { y[i] = x[i] * 3.0f; } }"
    np.testing.assert_array_equal(run(source, x), x * np.float32(3))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("y[i] = z;", "z is not declared"),
        ("y[i] = sin(1.0f);", r"no function sin\(float\)"),
        ("y[i] = 1.0f", "';' is wanted"),
        ("y[i] = (1.0f;", "is wanted"),
        ("y[i] = 'a';", "not of the language"),
        ("y[i : 5] = 1.0f;", "there is no type float5"),
        ("y[i] = y[i : 4];", "a float4 is no float"),
        ("y[i : 4] = y[i : 8];", "a float8 is no float"),
        ("y[i] = y[i : 4] < y[i : 4] ? 1.0f : 0.0f;", "float4 has no <"),
    ],
)
def test_what_is_not_of_the_language(statement: str, message: str) -> None:
    with pytest.raises(CompilerError, match=message):
        compiled(f"void loop(float *y, long low, long high) {{ for (long i = low; i < high; i++) {{ {statement} }} }}")


def test_a_source_that_cannot_be_compiled_says_why() -> None:
    code = machine.code_of("void loop(float *y) { y[0] = nothing; }", (machine.POINTER,))
    machine.wait(code)
    assert code.function is None
    assert code.error == "CompilerError: nothing is not declared"


def test_the_machine_code_can_be_read() -> None:
    assert "loop" in machine.assembly("void loop(float *y) { y[0] = 1.0f; }")
