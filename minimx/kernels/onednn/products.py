"""Products of matrices by oneDNN: dot, batch_dot, fully connected layers.

They are no faster than BLAS's on most processors. They are here for their threads: BLAS's keep a core busy for some milliseconds after a
product, in which OpenMP's, which compute the convolutions before and after it, would have to wait. BLAS uses one thread for a small
product, so those stay with NumPy, which starts them sooner, but where they are part of a chain (kernels/chain.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...device import Context
from ...op import Spec
from .layout import Layout
from .library import BIAS, INFERENCE, RESULT, SOURCE, WEIGHTS
from .primitive import Routine, primitive

if TYPE_CHECKING:
    from ...ops.linalg import BatchDot, Dot
    from ...ops.nn import FullyConnectedLayer

SMALL = 1 << 18  # multiplications, up to which BLAS uses one thread
FEW_ROWS = 8  # a product of so few rows and a transposed matrix is better made by the primitive of layers


def _matrix(batch: tuple[int, ...], rows: int, columns: int, transposed: bool) -> Layout:
    """The layout of (a stack of) matrices that lie in memory as they are, or as their transposes."""
    strides = [rows * columns, *((1, rows) if transposed else (columns, 1))]
    return Layout.plain((*batch, rows, columns), strides[-2 - len(batch) :])


def product(
    context: Context,
    rows: int,
    inner: int,
    columns: int,
    transpose_a: bool,
    transpose_b: bool,
    batch: int = 0,
    bias: bool = False,
) -> Routine | None:
    """The product of matrices of (rows, inner) and (inner, columns), or of stacks of `batch`."""
    if not rows or not inner or not columns:
        return None
    stack = (batch,) if batch else ()
    left, right = _matrix(stack, rows, inner, transpose_a), _matrix(stack, inner, columns, transpose_b)
    result = _matrix(stack, rows, columns, False)
    if transpose_b and rows <= FEW_ROWS and not batch and not transpose_a:
        right, shift = Layout.plain((columns, inner)), Layout.plain((columns,)) if bias else None
        code = primitive("inner_product_forward", INFERENCE, left, right, shift, result)
    else:
        shift = Layout.plain((*[1] * len(stack), 1, columns)) if bias else None
        code = primitive("matmul", left, right, shift, result)
    if code is None:
        return None
    run = Routine(context)
    run.small = float(max(batch, 1)) * rows * inner * columns <= SMALL
    arguments = {SOURCE: run.array(left), WEIGHTS: run.array(right)}
    if shift is not None:
        arguments[BIAS] = run.array(shift)
    run.add(code, {**arguments, RESULT: run.array(result)})
    return run


def fully_connected(
    op: FullyConnectedLayer, context: Context, data: Spec, weight: Spec, bias: Spec | None = None
) -> Routine | None:
    columns, inner = weight.shape
    return product(context, data.size // inner, inner, columns, False, True, bias=bias is not None)


def dot(op: Dot, context: Context, lhs: Spec, rhs: Spec) -> Routine | None:
    if lhs.ndim != 2 or rhs.ndim != 2:
        return None
    rows, inner = lhs.shape[::-1] if op.transpose_a else lhs.shape
    return product(context, rows, inner, rhs.size // inner, op.transpose_a, op.transpose_b)


def batch_dot(op: BatchDot, context: Context, lhs: Spec, rhs: Spec) -> Routine | None:
    rows, inner = lhs.shape[-2:][::-1] if op.transpose_a else lhs.shape[-2:]
    columns = rhs.shape[-2 if op.transpose_b else -1]
    return product(context, rows, inner, columns, op.transpose_a, op.transpose_b, batch=math.prod(lhs.shape[:-2]))
