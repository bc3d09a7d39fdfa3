"""`nd.sparse`: what scripts for sparse arrays find here. Arrays store all their elements; MXNet's sparse storages are not planned.

So there are two kinds of names. Functions that take arrays of the usual storage in MXNet, too, are those of `nd`. Those that make sparse
arrays raise an error that says what to do instead, and nothing is an instance of their classes.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..base import ArgumentError, DTypeLike, shown
from ..device import Context
from ..ops.optim_adaptive import adagrad_update
from ..ops.public import (
    ElementWiseSum,
    Embedding,
    FullyConnected,
    LinearRegressionOutput,
    LogisticRegressionOutput,
    MAERegressionOutput,
    abs,
    adam_update,
    add,
    add_n,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    broadcast_add,
    broadcast_div,
    broadcast_minus,
    broadcast_mul,
    broadcast_plus,
    broadcast_sub,
    cast_storage,
    cbrt,
    ceil,
    clip,
    concat,
    cos,
    cosh,
    degrees,
    divide,
    dot,
    elemwise_add,
    elemwise_div,
    elemwise_mul,
    elemwise_sub,
    exp,
    expm1,
    fix,
    floor,
    ftrl_update,
    gamma,
    gammaln,
    log,
    log1p,
    log2,
    log10,
    make_loss,
    mean,
    multiply,
    negative,
    norm,
    radians,
    relu,
    rint,
    round,
    rsqrt,
    sgd_mom_update,
    sgd_update,
    sigmoid,
    sign,
    sin,
    sinh,
    slice,
    sqrt,
    square,
    stop_gradient,
    subtract,
    sum,
    tan,
    tanh,
    trunc,
    where,
    zeros_like,
)
from . import creation
from .creation import ShapeLike
from .ndarray import NDArray

__all__ = [
    "BaseSparseNDArray", "CSRNDArray", "ElementWiseSum", "Embedding", "FullyConnected", "LinearRegressionOutput",
    "LogisticRegressionOutput", "MAERegressionOutput", "RowSparseNDArray", "abs", "adagrad_update", "adam_update", "add",
    "add_n", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "array", "broadcast_add", "broadcast_div",
    "broadcast_minus", "broadcast_mul", "broadcast_plus", "broadcast_sub", "cast_storage", "cbrt", "ceil", "clip", "concat",
    "cos", "cosh", "csr_matrix", "degrees", "divide", "dot", "elemwise_add", "elemwise_div", "elemwise_mul", "elemwise_sub",
    "empty", "exp", "expm1", "fix", "floor", "ftrl_update", "gamma", "gammaln", "log", "log10", "log1p", "log2", "make_loss",
    "mean", "multiply", "negative", "norm", "radians", "relu", "retain", "rint", "round", "row_sparse_array", "rsqrt",
    "sgd_mom_update", "sgd_update", "sigmoid", "sign", "sin", "sinh", "slice", "sqrt", "square", "stop_gradient", "subtract",
    "sum", "tan", "tanh", "trunc", "where", "zeros", "zeros_like",
]  # fmt: skip


def _refuse(what: str, advice: str) -> NoReturn:
    raise ArgumentError(f"nd.sparse.{what}: sparse arrays do not exist here, arrays store all their elements; {advice}")


class BaseSparseNDArray:
    """The class of sparse arrays, of which there are none: `isinstance(x, BaseSparseNDArray)` is False."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse(type(self).__name__, "make an array with nd.array(...)")


class CSRNDArray(BaseSparseNDArray):
    """The class of matrices of compressed rows, of which there are none."""


class RowSparseNDArray(BaseSparseNDArray):
    """The class of arrays most of whose rows are 0, of which there are none."""


def csr_matrix(arg1: Any, shape: ShapeLike | None = None, ctx: Context | None = None, dtype: DTypeLike = None) -> NoReturn:
    """MXNet makes a matrix of compressed rows. **Raises** ArgumentError."""
    _refuse("csr_matrix", "a matrix of scipy becomes one with nd.array(matrix.toarray()), or keep it and pass on rows of a batch")


def row_sparse_array(arg1: Any, shape: ShapeLike | None = None, ctx: Context | None = None, dtype: DTypeLike = None) -> NoReturn:
    """MXNet makes an array of which some rows are stored. **Raises** ArgumentError."""
    _refuse("row_sparse_array", "write the rows into zeros: x = nd.zeros(shape); x[indices] = rows")


def array(source_array: Any, ctx: Context | None = None, dtype: DTypeLike = None) -> NoReturn:
    """MXNet copies a sparse array or a matrix of scipy. **Raises** ArgumentError."""
    _refuse("array", "make an array with nd.array(...), of a matrix of scipy with nd.array(matrix.toarray())")


def retain(data: Any, indices: Any, **how: Any) -> NoReturn:
    """MXNet keeps some rows of a sparse array. **Raises** ArgumentError."""
    _refuse("retain", "use nd.take(data, indices) for the rows alone")


def zeros(stype: str, shape: ShapeLike, ctx: Context | None = None, dtype: DTypeLike = None, **kwargs: Any) -> NDArray:
    """Zeros of `shape` in the storage `stype`, "default". **Raises** ArgumentError for another. **Source** MXNet `sparse.zeros`."""
    _require_default("zeros", stype)
    return creation.zeros(shape, ctx, dtype, **kwargs)


def empty(stype: str, shape: ShapeLike, ctx: Context | None = None, dtype: DTypeLike = None) -> NDArray:
    """An array of `shape` in the storage `stype`, "default". **Raises** ArgumentError for another. **Source** MXNet `sparse.empty`."""
    _require_default("empty", stype)
    return creation.empty(shape, ctx, dtype)


def _require_default(what: str, stype: str) -> None:
    if not isinstance(stype, str) or stype != "default":
        _refuse(what, f"stype is {shown(stype)}, use nd.{what}(shape)")
