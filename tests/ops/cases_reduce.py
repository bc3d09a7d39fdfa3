"""Rows of minimx/ops/reduce.py and statistics.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minimx import autograd, nd
from minimx.base import ArgumentError, DTypeError, ShapeError
from minimx.op import apply
from minimx.ops import reduce, statistics

from .harness import Bad, Case, distinct, integers, normal, uniform


def with_nan(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Numbers of [0.5, 2) of which every third is missing."""

    def make(rng: np.random.Generator) -> np.ndarray:
        array = rng.uniform(0.5, 2, shape)
        array.reshape(-1)[::3] = np.nan
        return array

    return make


def constant(*values: Any, dtype: Any = np.float64) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: np.array(values, dtype)


AXES: list[tuple[str, dict[str, Any]]] = [
    ("all", {}),
    ("empty-axis", {"axis": ()}),
    ("one", {"axis": 1}),
    ("negative", {"axis": -1, "keepdims": True}),
    ("two", {"axis": (2, 0)}),
    ("list", {"axis": [0, 1], "keepdims": True}),
    ("exclude", {"axis": 1, "exclude": True}),
    ("exclude-all", {"axis": (0, 1, 2), "exclude": True}),  # nothing is reduced
]


def reduction(op: str, oracle: Callable[..., Any], make: Any, **more: Any) -> list[Case]:
    """A row for every way to name axes, and one for an array with an empty axis."""
    function = getattr(nd, op)

    def numpy_axes(axis: Any = (), keepdims: bool = False, exclude: bool = False) -> dict[str, Any]:
        axes = tuple(a % 3 for a in ([axis] if isinstance(axis, int) else axis))
        if exclude:
            return {"axis": tuple(set(range(3)) - set(axes)), "keepdims": keepdims}
        return {"axis": axes or None, "keepdims": keepdims}

    rows = [
        Case(
            op,
            lambda x, arguments=arguments: function(x, **arguments),
            (make(2, 3, 4),),
            lambda x, arguments=arguments: oracle(x, **numpy_axes(**arguments)),
            label=label,
            **more,
        )
        for label, arguments in AXES
    ]
    rows.append(Case(op, lambda x: function(x), (make(1),), lambda x: oracle(x), label="one-element", **more))
    return rows


def empty_rows(op: str, oracle: Callable[..., Any]) -> list[Case]:
    """Sums over nothing, and nothing to sum."""
    function = getattr(nd, op)
    return [
        Case(op, lambda x: function(x, axis=1), (normal(2, 0, 3),), lambda x: oracle(x, axis=1), label="of-none"),
        Case(op, lambda x: function(x, axis=0), (normal(2, 0, 3),), lambda x: oracle(x, axis=0), label="none-left"),
    ]


def of_dtype(op: str, dtype: str, oracle: Callable[..., Any], low: int = 1, high: int = 4) -> Case:
    """Integers keep their dtype."""
    function = getattr(nd, op)

    def make(rng: np.random.Generator) -> np.ndarray:
        return rng.integers(low, high, (3, 4)).astype(dtype)

    return Case(
        op,
        lambda x: function(x, axis=0),
        (make,),
        lambda x: oracle(x, axis=0).astype(dtype),
        False,
        dtypes=("float32",),
        label=dtype,
    )


def gradient_of(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """x -> the gradient of sum(function(x)): for rows whose value is a gradient at a special place."""

    def call(x: Any) -> Any:
        x.attach_grad()
        with autograd.record():
            y = function(x)
        y.backward()
        return [y, x.grad]

    return call


def others(x: np.ndarray) -> np.ndarray:
    """For each number of a row, the product of the others."""
    return np.array([[np.prod(np.delete(row, i)) for i in range(len(row))] for row in x])


BAD_AXES = (
    Bad(lambda nd: nd.sum(nd.ones((2, 3)), axis=2), ShapeError, r"sum: axis 2 is out of range for an array of 2"),
    Bad(lambda nd: nd.sum(nd.ones((2, 3)), axis=(0, -2)), ShapeError, r"sum: axes .* name an axis twice"),
    Bad(
        lambda nd: nd.sum(nd.ones((2, 3)), axes=1),
        ArgumentError,
        r"sum: unknown argument axes; did you mean 'axis'\? It takes data, axis, keepdims",
    ),
)

SUMS: list[Case] = [
    *reduction("sum", np.sum, normal),
    Case("sum", lambda x: nd.sum_axis(x, axis=0), (normal(2, 3),), lambda x: x.sum(0), label="alias", bad=BAD_AXES),
    # 4096 ones in float16: adding one by one would end at 2048
    Case("sum", lambda x: nd.sum(x), (lambda rng: np.ones(4096),), np.sum, dtypes=("float16", "float32"), grad=False,
         label="wide"),
    # Many rows are added up in groups: with rows that are left over, over two axes, for few numbers that cancel.
    Case("sum", lambda x: nd.sum(x, axis=0), (normal(1000, 3),), lambda x: x.sum(0), label="many rows", second=False),
    Case("sum", lambda x: nd.sum(x, axis=(0, 1), keepdims=True), (normal(23, 40, 2),), lambda x: x.sum((0, 1), keepdims=True),
         label="many rows of two axes", second=False),
    Case("sum", lambda x: nd.sum(x, axis=0), (normal(1000, 0),), lambda x: np.zeros(0), label="many rows of nothing"),
    Case("mean", lambda x: nd.mean(x, axis=0), (normal(1024, 2),), lambda x: x.mean(0), label="many rows", second=False),
    *empty_rows("sum", np.sum),
    *(of_dtype("sum", dtype, np.sum) for dtype in ("int8", "uint8", "int32", "int64")),
    *reduction("mean", np.mean, normal),
    Case("mean", lambda x: nd.mean(x, axis=0), (normal(2, 0, 3),), lambda x: x.mean(0), label="none-left"),
    of_dtype("mean", "int32", lambda x, axis: np.trunc(x.mean(axis)), -9, 9),
    Case("mean", lambda x: nd.mean(x), (constant(200, 201, dtype=np.uint8),), lambda x: np.uint8([200]), False,
         label="uint8-wide"),
    *reduction("nansum", np.nansum, normal),
    Case("nansum", lambda x: nd.nansum(x, axis=1), (with_nan(3, 4),), lambda x: np.nansum(x, 1), False, label="nan"),
    Case("nansum", gradient_of(lambda x: nd.nansum(x, axis=1)), (with_nan(3, 4),),
         lambda x: (np.nansum(x, 1), 1.0 - np.isnan(x)), False, label="nan-gradient"),
    *empty_rows("nansum", np.nansum),
    Case("_backward_sum", lambda x: reduce.spread(x, (0, 2), (4, 3, 5)), (normal(3),),
         lambda x: np.broadcast_to(x[:, None], (4, 3, 5)), label="dropped"),
    Case("_backward_sum", lambda x: reduce.spread(x, (1,), (2, 3)), (normal(2, 1),), lambda x: np.broadcast_to(x, (2, 3)),
         label="kept"),
    Case("_backward_sum", lambda x: reduce.spread(x, (), (2, 0, 3)), (normal(3, 0, 2),), lambda x: x.reshape(2, 0, 3),
         label="empty",
         bad=(Bad(lambda nd: reduce.spread(nd.ones((2, 3)), (1,), (3, 3)), ShapeError,
         r"data has shape \(2, 3\), wants one that"),)),
]  # fmt: skip

PRODUCTS: list[Case] = [
    *reduction("prod", np.prod, lambda *shape: uniform(0.5, 1.5, *shape)),
    *empty_rows("prod", np.prod),
    of_dtype("prod", "int32", np.prod),
    # zero, one and two zeros in a row: the gradient is the product of the others, never 0 / 0
    Case("prod", gradient_of(lambda x: nd.prod(x, axis=1)), (lambda rng: np.array([[2, -3, 4], [0, 5, 6], [0, 7, 0]], float),),
         lambda x: (x.prod(1), others(x)), False, label="zeros"),
    *reduction("nanprod", np.nanprod, lambda *shape: uniform(0.5, 1.5, *shape)),
    Case("nanprod", gradient_of(lambda x: nd.nanprod(x, axis=1)),
         (lambda rng: np.array([[2, np.nan, 4], [0, np.nan, 6], [0, 7, 0]], float),),
         lambda x: (np.nanprod(x, 1), np.where(np.isnan(x), 0, others(np.where(np.isnan(x), 1, x)))), False, label="nan"),
]  # fmt: skip

NOTHING = (
    Bad(lambda nd: nd.max(nd.array(np.zeros((2, 0))), axis=1), ShapeError, r"max: data has shape \(2, 0\); axes \(1,\) have no"),
)

EXTREMES: list[Case] = [
    *reduction("max", np.max, distinct),
    Case("max", lambda x: nd.max_axis(x, axis=0), (distinct(2, 0),), lambda x: x.max(0), label="none-left", bad=NOTHING),
    Case("max", gradient_of(lambda x: nd.max(x, axis=1)), (lambda rng: np.array([[1, 3, 3], [2, 2, 2]], float),),
         lambda x: (x.max(1), np.array([[0, 1, 1], [1, 1, 1]])), False, label="ties"),
    Case("max", lambda x: nd.max(x, axis=1), (with_nan(4, 3),), lambda x: x.max(1), False, label="nan"),
    of_dtype("max", "int32", np.max, -9, 9),
    of_dtype("max", "uint8", np.max),
    *reduction("min", np.min, distinct),
    Case("min", gradient_of(lambda x: nd.min(x)), (lambda rng: np.array([[1, 3, 3], [2, 1, 2]], float),),
         lambda x: (x.min(), np.array([[1, 0, 0], [0, 1, 0]])), False, label="ties"),
    Case("min", lambda x: nd.min_axis(x), (lambda rng: np.array([-65504.0, 65504]),), np.min, False, dtypes=("float16",),
         label="float16-limit"),
    of_dtype("min", "int8", np.min, -9, 9),
]  # fmt: skip


def euclidean(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
    return np.sqrt((x * x).sum(axis=axis, keepdims=keepdims))


NORMS: list[Case] = [
    Case("norm", lambda x: nd.norm(x), (normal(2, 3, 4),), euclidean, label="all"),
    Case("norm", lambda x: nd.norm(x, keepdims=True), (normal(2, 3),), lambda x: euclidean(x, keepdims=True), label="all-kept"),
    Case("norm", lambda x: nd.norm(x, axis=1), (normal(2, 3, 4),), lambda x: euclidean(x, 1), label="one"),
    Case("norm", lambda x: nd.norm(x, axis=(0, -1), keepdims=True), (normal(2, 3, 4),), lambda x: euclidean(x, (0, 2), True),
         label="two"),
    Case("norm", lambda x: nd.norm(x, ord=1), (distinct(2, 3, 4),), lambda x: np.abs(x).sum(), label="ord1"),
    Case("norm", lambda x: nd.norm(x, 1, -1, keepdims=True), (distinct(2, 3),), lambda x: np.abs(x).sum(-1, keepdims=True),
         label="ord1-axis"),
    Case("norm", lambda x: nd.norm(x, axis=0, out_dtype="float64"), (normal(3, 4),), lambda x: euclidean(x, 0),
         label="out-dtype"),
    # the squares of 300 are beyond float16
    Case("norm", lambda x: nd.norm(x), (lambda rng: np.array([300.0, 400]),), euclidean, False, dtypes=("float16",),
         label="float16-range"),
    Case("norm", lambda x: nd.norm(x), (constant(1, 2, 4, dtype=np.int32),), lambda x: np.int32([4]), False, label="int32", bad=(
        Bad(lambda nd: nd.norm(nd.ones((2, 2)), ord=3), ArgumentError, r"norm: ord is 3; only 1 .* and 2"),
        Bad(lambda nd: nd.norm(nd.ones((2, 2)), axis=2), ShapeError, r"norm: axis 2 is out of range"),
    )),
]  # fmt: skip

POSITIONS: list[Case] = [
    Case("argmax", lambda x: nd.argmax(x), (distinct(3, 4),), np.argmax, False, label="all"),
    Case("argmax", lambda x: nd.argmax(x, keepdims=True), (distinct(3, 4),), lambda x: x.argmax().reshape(1, 1), False,
         label="all-kept"),
    Case("argmax", lambda x: nd.argmax(x, axis=1), (distinct(3, 4, 2),), lambda x: x.argmax(1), False, label="one"),
    Case("argmax", lambda x: nd.argmax(x, axis=-1, keepdims=True), (distinct(3, 4),), lambda x: x.argmax(-1)[:, None], False,
         label="kept"),
    Case("argmax", lambda x: nd.argmax(x, axis=1), (lambda rng: np.array([[1, 3, 3], [2, 2, 2], [1, np.nan, np.nan]]),),
         lambda x: np.array([1, 0, 1]), False, label="ties", bad=(
        Bad(lambda nd: nd.argmax(nd.ones((2, 3)), axis=2), ShapeError, r"argmax: axis 2 is out of range"),
        Bad(lambda nd: nd.argmax(nd.zeros((1, 300), dtype="uint8"), axis=1), DTypeError,
            r"argmax: uint8 cannot hold all positions among 300"),
        Bad(lambda nd: nd.argmax(nd.zeros(3000, dtype="float16")), DTypeError,
            r"argmax: float16 cannot hold all positions among 3000"),
        Bad(lambda nd: nd.argmax(nd.array(np.zeros((2, 0))), axis=1), ShapeError, r"argmax: data has shape \(2, 0\)"),
    )),
    # positions have the dtype of the data
    Case("argmax", lambda x: nd.argmax(x, axis=0), (integers(0, 99, 5, 2),), lambda x: x.argmax(0), False, label="int64"),
    Case("argmin", lambda x: nd.argmin(x, axis=0), (distinct(3, 4),), lambda x: x.argmin(0), False, label="one"),
    Case("argmin", lambda x: nd.argmin(x), (distinct(2, 3),), np.argmin, False, label="all"),
    Case("argmax_channel", lambda x: nd.argmax_channel(x), (distinct(3, 4, 2),), lambda x: x.argmax(1), False, bad=(
        Bad(lambda nd: nd.argmax_channel(nd.ones(3)), ShapeError, r"argmax_channel: the channels' axis 1 is out of range"),
    )),
]  # fmt: skip


def variance(axes: Any, keepdims: bool = False) -> Callable[..., Any]:
    return lambda x: (x.mean(axes, keepdims=keepdims), x.var(axes, keepdims=keepdims))


def histogram(x: np.ndarray, *arguments: Any) -> tuple[np.ndarray, ...]:
    return np.histogram(x[~np.isnan(x)], *arguments)


STATISTICS: list[Case] = [
    Case("moments", lambda x: nd.moments(x, axes=(0, 2)), (normal(2, 3, 4),), variance((0, 2)), label="two"),
    Case("moments", lambda x: nd.moments(x, axes=-1, keepdims=True), (normal(2, 3),), variance(-1, True), label="kept"),
    Case("moments", lambda x: nd.moments(x, axes=[0, 1]), (normal(2, 3),), variance((0, 1)), label="all", bad=(
        Bad(lambda nd: nd.moments(nd.ones((2, 3))), ArgumentError, r"moments: axes is None; name at least one axis"),
        Bad(lambda nd: nd.moments(nd.ones((2, 3)), axes=2), ShapeError, r"moments: axis 2 is out of range"),
    )),
    Case("moments", lambda x: nd.moments(x, axes=0)[1], (normal(4, 3),), lambda x: x.var(0), label="variance-alone"),
    Case("moments", lambda x: nd.moments(x, axes=0)[0], (normal(4, 3),), lambda x: x.mean(0), label="mean-alone"),
    Case("_np_cumsum", lambda x: nd.cumsum(x), (normal(2, 3),), np.cumsum, label="flat"),
    Case("_np_cumsum", lambda x: nd.cumsum(x, axis=1), (normal(2, 3, 4),), lambda x: x.cumsum(1), label="one"),
    Case("_np_cumsum", lambda x: nd.cumsum(x, axis=-1), (normal(2, 0),), lambda x: x.cumsum(-1), label="empty"),
    Case("_np_cumsum", lambda x: nd.cumsum(x, axis=0, dtype="float64"), (normal(4),), lambda x: x.cumsum(0), label="dtype"),
    Case("_np_cumsum", lambda x: nd.cumsum(x), (constant(True, True, False, dtype=bool),), lambda x: np.cumsum(x), False,
         label="bool"),
    Case("_np_cumsum", lambda x: nd.cumsum(x, 0), (constant(100, 100, 100, dtype=np.uint8),), lambda x: np.uint8([100, 200, 44]),
         False,
         label="uint8-wraps", bad=(
        Bad(lambda nd: nd.cumsum(nd.ones(3), axis=1), ShapeError, r"_np_cumsum: axis 1 is out of range"),
        Bad(lambda nd: nd.cumsum(nd.ones(3), dtype="complex64"), DTypeError, r"complex64"),
    )),
    Case("_np_cumsum", lambda x: apply(statistics.CumSum(0, reverse=True), x), (normal(4, 2),),
         lambda x: x[::-1].cumsum(0)[::-1], label="back"),
    Case("_histogram", lambda x: nd.histogram(x, bins=4, range=(-1, 1)), (normal(50),), lambda x: histogram(x, 4, (-1, 1)),
         False, label="range"),
    Case("_histogram", lambda x: nd.histogram(x, bins=5), (normal(5, 4),), lambda x: histogram(x, 5), False, label="open-range"),
    Case("_histogram", lambda x: nd.histogram(x, 3, (2, 2)), (constant(1, 2, 3.0),), lambda x: histogram(x, 3, (2, 2)), False,
         label="no-width"),
    Case("_histogram", lambda x: nd.histogram(x, 2, (0, 2)), (with_nan(9),), lambda x: histogram(x, 2, (0, 2)), False,
         label="nan"),
    Case("_histogram", lambda x, b: nd.histogram(x, b), (normal(40), constant(-1, 0, 0.5, 2)), histogram, False, label="edges"),
    # the edges between whole numbers are none
    Case("_histogram", lambda x: nd.histogram(x, 4, (0, 10)), (integers(0, 11, 30),),
         lambda x: histogram(x.astype(float), 4, (0, 10)), False,
         label="integers", bad=(
        Bad(lambda nd: nd.histogram(nd.ones(3), bins=[0, 1]), ValueError,
            r"histogram: bins is a list, wants an int, or an NDArray"),
        Bad(lambda nd: nd.histogram(nd.ones(3), bins=0, range=(0, 1)), ArgumentError, r"the number of bins is 0"),
        Bad(lambda nd: nd.histogram(nd.ones(3), bins=2, range=(1, 0)), ArgumentError,
            r"range is \(1, 0\), wants \(low, high\)"),
        Bad(lambda nd: nd.histogram(nd.ones(3), bins=nd.ones(1)), ShapeError, r"bins has shape \(1,\), wants at least two edges"),
        Bad(lambda nd: nd.histogram(nd.ones(3), bins=nd.ones(2, dtype="float64")), DTypeError,
            r"data is float32 but bins is float64"),
    )),
    Case("_contrib_allclose", nd.contrib.allclose, (normal(3, 4), normal(3, 4)), lambda a, b: np.uint8(np.allclose(a, b)), False),
    Case("_contrib_allclose", lambda a: nd.contrib.allclose(a, a + 0.05, rtol=0, atol=0.1), (with_nan(9),), lambda a: np.uint8(1),
         False, label="nan"),
    Case("_contrib_allclose", lambda a: nd.contrib.allclose(a, a, equal_nan=False), (with_nan(9),), lambda a: np.uint8(0),
         False, label="no-nan", bad=(
        Bad(lambda nd: nd.contrib.allclose(nd.ones(3), nd.ones(4)), ShapeError, r"a has shape \(3,\), b has \(4,\)"),
    )),
]  # fmt: skip

CASES: list[Case] = [*SUMS, *PRODUCTS, *EXTREMES, *NORMS, *POSITIONS, *STATISTICS]
