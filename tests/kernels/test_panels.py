"""Products of matrices in machine code against NumPy's: sizes around those of tiles, panels, blocks and sections, in either order."""

from __future__ import annotations

import numpy as np
import pytest

from minimx.kernels import machine, panels

pytest.importorskip("llvmlite")

R, W = panels.ROWS, panels.WIDTH


@pytest.fixture(autouse=True)
def _compiled() -> None:
    assert all(loop.is_compiled() for loop in panels.loops()), [loop.code.error for loop in panels.loops()]


def matrix(rows: int, columns: int, transposed: bool, seed: int = 0) -> np.ndarray:
    """A matrix of small whole numbers, whose products are exact in any order."""
    shape = (columns, rows) if transposed else (rows, columns)
    made = np.random.default_rng(seed).integers(-4, 5, shape).astype("float32")
    return made.T if transposed else made


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("inner", "columns"), [(1, 1), (3, W - 1), (5, W), (1, W + 1), (7, 1), (40, 3 * W + 5)])
def test_panels_have_the_columns_in_order_and_then_zeros(inner: int, columns: int, transposed: bool) -> None:
    given = matrix(inner, columns, transposed)
    [found] = panels.packed(given)
    assert found.shape == (panels.panels(columns), inner, W)
    flat = found.transpose(1, 0, 2).reshape(inner, -1)
    np.testing.assert_array_equal(flat[:, :columns], given)
    assert not flat[:, columns:].any()


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize(
    ("rows", "inner", "columns"),
    [
        (1, 1, 1),
        (R - 1, 2, W),
        (R + 1, 5, W + 1),
        (2 * R, 3, 2 * W - 1),
        (panels.TALL, panels.DEEP, 3),
        (panels.TALL + R + 2, panels.DEEP + 1, W + 2),
        (300, 2 * panels.DEEP + 7, 100),  # so large that threads share it
    ],
)
def test_a_product_is_that_of_numpy(rows: int, inner: int, columns: int, left: bool, right: bool) -> None:
    a, b = matrix(rows, inner, left), matrix(inner, columns, right, 1)
    found = np.full((rows, columns), np.nan, "float32")
    panels.products(a, (b, found))
    np.testing.assert_array_equal(found, a @ b)


def test_two_products_with_the_same_left_factor() -> None:
    a, b, c = matrix(50, 30, True), matrix(30, W + 3, False, 1), matrix(30, 5, True, 2)
    first, second = np.empty((50, W + 3), "float32"), np.empty((50, 5), "float32")
    panels.products(a, (b, first), (c, second))
    np.testing.assert_array_equal(first, a @ b)
    np.testing.assert_array_equal(second, a @ c)


def test_a_matrix_with_gaps_on_both_sides() -> None:
    a, b = matrix(20, 20, False)[::2, ::2], matrix(20, 12, True, 1)[::2, ::3]
    found = np.empty((10, 4), "float32")
    panels.products(a, (b, found))
    np.testing.assert_array_equal(found, a @ b)


def test_nan_stays_in_its_row() -> None:
    a, b = matrix(9, 6, False), matrix(6, 4, False, 1)
    a[5, 2] = np.nan
    found = np.empty((9, 4), "float32")
    panels.products(a, (b, found))
    assert np.isnan(found[5]).all()
    assert not np.isnan(np.delete(found, 5, axis=0)).any()


@pytest.mark.parametrize("units", [1, R, R + 1, 10 * R, 10 * R + 3])
@pytest.mark.parametrize("nanoseconds", [1.0, 1e9])
def test_shares_are_whole_tiles_and_leave_nothing_out(units: int, nanoseconds: float) -> None:
    found = panels.shares(units, R, nanoseconds)
    assert [unit for low, high in found for unit in range(low, high)] == list(range(units))
    assert all((high - low) % R == 0 for low, high in found[:-1])
    assert nanoseconds > 1 or len(found) == 1


def test_registers_are_as_wide_as_llvm_says() -> None:
    from llvmlite import binding

    assert machine.is_wide() == binding.get_host_cpu_features().get("avx512f", False)
