"""Whether two arrays are equal, exactly or within a tolerance, and a message that says where they are not.

A tolerance follows from the dtypes unless it is given: the looser one of the two arrays, since a float16 result cannot be nearer to its
float64 reference than float16 allows. `a` and `b` are close where `|a - b| <= atol + rtol * |b|`, as for NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base import DTypeLike, ShapeError
from ..nd import NDArray

__all__ = [
    "almost_equal", "assert_allclose", "assert_almost_equal", "assert_almost_equal_ignore_nan", "assert_almost_equal_with_err",
    "checkShapes", "compare_ndarray_tuple", "default_atols", "default_dtype", "default_numeric_eps", "default_rtols", "effective_dtype",
    "get_atol", "get_etol", "get_rtol", "get_tolerance", "get_tols", "locationError", "same", "same_array",
]  # fmt: skip

Array = Any  # an NDArray, a NumPy array, a number, or a list of numbers
Tolerance = float | Mapping[Any, float] | None  # of every dtype, of each, or the default
DOUBLE = np.dtype(np.float64)
WHOLE = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")


class UnequalShapesError(ShapeError, AssertionError):
    """Arrays of two shapes were to be compared without broadcasting."""


def default_dtype() -> type[np.float32]:
    """float32. **Source** MXNet `test_utils.default_dtype`, like the other functions of this module by their names."""
    return np.float32


def default_rtols() -> dict[np.dtype[Any], float]:
    """Relative tolerances by dtype."""
    return _by_dtype({"float16": 1e-2, "float32": 1e-4, "float64": 1e-5})


def default_atols() -> dict[np.dtype[Any], float]:
    """Absolute tolerances by dtype."""
    return _by_dtype({"float16": 1e-1, "float32": 1e-3, "float64": 1e-20})


def _by_dtype(floating: dict[str, float]) -> dict[np.dtype[Any], float]:
    return {np.dtype(name): value for name, value in {**floating, **dict.fromkeys(WHOLE, 0)}.items()}


def default_numeric_eps() -> dict[np.dtype[Any], float]:
    """Steps of finite differences by dtype: powers of two, which adding and taking away does not round."""
    return {np.dtype(name): 2.0**power for name, power in {"float16": -6, "float32": -9, "float64": -14}.items()}


def effective_dtype(dat: Array) -> np.dtype[Any]:
    """The dtype whose tolerance fits `dat`: its own."""
    return np.dtype(dat.dtype)


def get_tolerance(dat: Array, tol: Tolerance, default_tol: Mapping[Any, float]) -> float:
    """`tol` for the dtype of `dat`: a number, an entry of a dict by dtype, or that of `default_tol` (float64's for a dtype not there)."""
    if tol is not None and not isinstance(tol, Mapping):
        return tol
    dtype = effective_dtype(dat)
    for table in ({np.dtype(key): value for key, value in (tol or {}).items()}, default_tol):
        if dtype in table:
            return table[dtype]
    return default_tol[DOUBLE]


def get_tols(x: Array, y: Array, rtol: Tolerance, atol: Tolerance) -> tuple[float, float]:
    """Relative and absolute tolerance for comparing `x` with `y`: the looser of the two, where they are not given."""
    both = [each if hasattr(each, "dtype") else np.asarray(each) for each in (x, y)]
    return (
        max(get_tolerance(each, rtol, default_rtols()) for each in both),
        max(get_tolerance(each, atol, default_atols()) for each in both),
    )


def get_atol(atol: float | None = None, dtype: DTypeLike = DOUBLE) -> float:
    """`atol`, or the default of `dtype`."""
    return default_atols()[np.dtype(dtype)] if atol is None else atol


def get_rtol(rtol: float | None = None, dtype: DTypeLike = DOUBLE) -> float:
    """`rtol`, or the default of `dtype`."""
    return default_rtols()[np.dtype(dtype)] if rtol is None else rtol


def get_etol(etol: float | None = None) -> float:
    """`etol`, the share of elements that may differ, or 0."""
    return 0 if etol is None else etol


# ---- yes or no


def values(array: Array) -> np.ndarray[Any, Any]:
    """`array` as a NumPy array, waited for."""
    return array.asnumpy() if isinstance(array, NDArray) else np.asarray(array)


def same(a: Array, b: Array) -> bool:
    """Whether shapes and all elements are equal.

    >>> same(np.ones(2), mx.nd.ones(2))
    True
    """
    return np.array_equal(values(a), values(b))


def same_array(array1: NDArray, array2: NDArray) -> bool:
    """Whether two arrays share one memory: what is written into `array1` for a moment shows in `array2`."""
    before = array1.copy()
    try:
        array1[:] = before + 1
        shows = same(array1, array2)
    finally:
        array1[:] = before
    return shows and same(array1, array2)


def checkShapes(a: Array, b: Array) -> None:
    """**Raises** AssertionError where two shapes differ."""
    if a.shape != b.shape:
        raise UnequalShapesError(f"shapes differ: {a.shape} and {b.shape}")


def almost_equal(
    a: Array,
    b: Array,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    use_broadcast: bool = True,
) -> bool:
    """Whether all elements are close, by default within the tolerance of float64. Shapes need only fit each other if `use_broadcast`."""
    a, b = values(a), values(b)
    if not use_broadcast:
        checkShapes(a, b)
    return np.allclose(a, b, rtol=get_rtol(rtol), atol=get_atol(atol), equal_nan=equal_nan)


# ---- assertions


def assert_almost_equal(
    a: Array,
    b: Array,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    names: Sequence[str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """**Raises** AssertionError, with the places of the largest differences, unless all elements are close.

    **Args** `rtol`, `atol`: numbers, dicts by dtype, or None for the defaults of the dtypes; `names`: what the arrays are called in the
    message; `equal_nan`: whether nan is equal to nan; `use_broadcast`: whether shapes need only fit each other; `mismatches`: how many
    places are listed, and how many are counted at most (0: all).

    >>> assert_almost_equal(mx.nd.array([1, 2]), np.array([1, 2.0001]))
    """
    rtol, atol = get_tols(a, b, rtol, atol)
    a, b = values(a), values(b)
    if not use_broadcast:
        checkShapes(a, b)
    exact = a.dtype == np.bool_ and b.dtype == np.bool_
    if not (np.array_equal(a, b) if exact else almost_equal(a, b, rtol, atol, equal_nan)):
        raise AssertionError(_difference(a, b, rtol, atol, names, equal_nan, mismatches))


def assert_allclose(a: Array, b: Array, rtol: Tolerance = 1e-07, atol: Tolerance = 0, equal_nan: bool = True) -> None:
    """As `assert_almost_equal`, with NumPy's tolerance."""
    assert_almost_equal(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def assert_almost_equal_with_err(
    a: Array,
    b: Array,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    etol: float | None = None,
    names: Sequence[str] = ("a", "b"),
    equal_nan: bool = False,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """As `assert_almost_equal`, but the share `etol` of all elements may differ."""
    rtol, atol = get_tols(a, b, rtol, atol)
    a, b = values(a), values(b)
    far = ~np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if far.size and far.mean() > get_etol(etol):
        raise AssertionError(_difference(a, b, rtol, atol, names, equal_nan, mismatches))


def assert_almost_equal_ignore_nan(
    a: Array, b: Array, rtol: Tolerance = None, atol: Tolerance = None, names: Sequence[str] = ("a", "b")
) -> None:
    """As `assert_almost_equal`, where neither is nan."""
    a, b = values(a), values(b)
    unknown = np.isnan(a) | np.isnan(b)
    assert_almost_equal(np.where(unknown, a.dtype.type(0), a), np.where(unknown, b.dtype.type(0), b), rtol, atol, names)


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: Tolerance = None, atol: Tolerance = None) -> None:
    """As `assert_almost_equal`, for arrays or (nested) tuples of them; None is equal to anything."""
    if t1 is None or t2 is None:
        return
    if isinstance(t1, tuple):
        for one, other in zip(t1, t2):
            compare_ndarray_tuple(one, other, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)


# ---- what the messages say


def locationError(a: Array, b: Array, index: tuple[int, ...], names: Sequence[str], maxError: bool = False) -> str:
    """A place and the two elements there, in words."""
    return f"{'largest error' if maxError else 'error'} at {_place(index)}: {names[0]}={a[index]:.8f}, {names[1]}={b[index]:.8f}"


def _place(index: Sequence[int]) -> str:
    return f"({', '.join(str(int(each)) for each in index)})"


def _difference(
    a: Any, b: Any, rtol: float, atol: float, names: Sequence[str], equal_nan: bool, mismatches: tuple[int, int]
) -> str:
    """Where and how far two arrays differ: the worst places first."""
    given = f"{names[0]} {a.dtype}{list(a.shape)} and {names[1]} {b.dtype}{list(b.shape)}"
    a, b = np.broadcast_arrays(a, b)
    wide = np.result_type(a, b, np.float64)
    with np.errstate(all="ignore"):
        gap = np.where(a == b, 0, np.abs(a.astype(wide) - b.astype(wide))) / (atol + rtol * np.abs(b.astype(wide)) + 1e-20)
    gap = np.where(np.isnan(gap), np.inf, gap)
    if equal_nan:
        gap = np.where((a != a) & (b != b), 0, gap)
    far = gap > 1
    listed, counted = mismatches
    count = int(far.sum())
    number = f"at least {counted}" if 0 < counted < count else str(count)
    worst = np.argsort(-gap, axis=None, kind="stable")[: min(max(listed, 1), count)]
    lines = [
        f"{given} differ in {number} of {far.size} elements by more than rtol={rtol:g}, atol={atol:g}; "
        f"the largest error is {gap.max(initial=0):g} times the tolerance. The places, the worst first:"
    ]
    for flat in worst:
        index = np.unravel_index(flat, gap.shape)
        lines.append(f"  {_place(index)}: {names[0]}={a[index]!r}, {names[1]}={b[index]!r}")
    return "\n".join(lines)
