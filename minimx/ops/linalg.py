"""Products of matrices: dot, batch_dot, and the BLAS family of MXNet's `linalg`.

All time here is spent in BLAS. A transposed operand is passed on as a view (`array.T`), which BLAS reads in place: no copy is
made. The gradient of a product is two products, whichever sides were transposed: `product_vjp` says so once for the whole family.
Packing of triangles is in linalg_packing.py, factorizations and solvers are in linalg_factor.py. Book: chapter 1 (where the time
of a network goes).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Kind, Op, Shape, Spec, T, also_called, apply, register
from ..rules import filled, normalize_axis, same_dtype
from .binary import broadcast_mul
from .linalg_packing import only_triangle, require_matrices, require_square
from .products import matmul

if TYPE_CHECKING:
    from typing_extensions import Unpack


# ---- helpers


def widened(xp: Any, array: Array) -> Array:
    """`array` in a dtype that BLAS and LAPACK know: float16 becomes float32, in which the sums are also more exact."""
    return array.astype(xp.float32) if array.dtype == xp.float16 else array


def swapped(array: Array, transpose: bool) -> Array:
    """A view of a stack of matrices, each transposed if `transpose`."""
    return array.swapaxes(-1, -2) if transpose else array


def product_of(xp: Any, lhs: Array, rhs: Array, out: Array | None = None) -> Array:
    """Products of two matrices, or of two stacks of them, in their dtype; in `out` where it is given."""
    if lhs.dtype != xp.float16:
        return matmul(xp, lhs, rhs, out)
    wide = matmul(xp, lhs.astype(xp.float32), rhs.astype(xp.float32))
    if out is None:
        return wide.astype(lhs.dtype)
    out[...] = wide
    return out


def product_vjp(product: Callable[..., Any], g: Any, lhs: Any, rhs: Any, transpose_a: bool, transpose_b: bool) -> tuple[Any, Any]:
    """Gradients of `product(lhs, rhs, transpose_a, transpose_b)`: with C = A B they are g B' and A' g."""
    to_lhs = product(rhs, g, transpose_b, True) if transpose_a else product(g, rhs, False, not transpose_b)
    to_rhs = product(g, lhs, True, transpose_a) if transpose_b else product(lhs, g, not transpose_a, False)
    return to_lhs, to_rhs


def matrix_product_shape(op: Op, lhs: Spec, rhs: Spec, transpose_a: bool, transpose_b: bool) -> Shape:
    """Shape of the product of the last two axes; raises ShapeError unless the inner dimensions agree."""
    rows, inner = lhs.shape[-2:][::-1] if transpose_a else lhs.shape[-2:]
    other, columns = rhs.shape[-2:][::-1] if transpose_b else rhs.shape[-2:]
    if inner != other:
        left, right = input_pair(op)
        raise ShapeError(
            f"{op.name}: {left} has shape {lhs.shape}, {right} has {rhs.shape}; with transpose_a={transpose_a} and "
            f"transpose_b={transpose_b} the inner dimensions are {inner} and {other}, which must be equal"
        )
    return (*lhs.shape[:-2], rows, columns)


def input_pair(op: Op) -> tuple[str, str]:
    """Names of the first two inputs, for messages."""
    return op.inputs[0], op.inputs[1]


# ---- dot


def _folded(shape: Shape, contract_last: bool) -> Shape:
    """The matrix that `dot` takes a tensor for, with the contracted axis last or first."""
    return (math.prod(shape[:-1]), shape[-1]) if contract_last else (shape[0], math.prod(shape[1:]))


def _matrix(x: Any, shape: Shape) -> Any:
    return x if x.shape == shape else x.reshape(shape)


def _require_dense(op: Op, forward_stype: str | None) -> None:
    if forward_stype not in (None, "default"):
        raise ArgumentError(f"{op.name}: forward_stype={forward_stype!r} is not supported; results are dense, leave it at None")


@register("dot", "_sparse_dot")
class Dot(Op):
    kind = Kind.GEMM
    takes_out = True
    inputs: ClassVar = ("lhs", "rhs")
    saves_outputs = False

    transpose_a: bool = False
    transpose_b: bool = False
    forward_stype: str | None = None

    def infer(self, lhs: Spec, rhs: Spec) -> Spec:
        if self.forward_stype is not None:
            _require_dense(self, self.forward_stype)
        dtype = lhs.dtype if lhs.dtype is rhs.dtype else same_dtype(self, lhs, rhs)
        if not lhs.shape or not rhs.shape:
            raise ShapeError(f"dot: lhs has shape {lhs.shape}, rhs has {rhs.shape}; each wants at least 1 dimension")
        if len(lhs.shape) == len(rhs.shape) == 1 and (self.transpose_a or self.transpose_b):
            raise ShapeError("dot: two vectors have no transpose; leave transpose_a and transpose_b at False")
        left, inner = self._split(lhs.shape, not self.transpose_a)
        right, other = self._split(rhs.shape, self.transpose_b)
        if inner != other:
            raise ShapeError(
                f"dot: lhs has shape {lhs.shape}, rhs has {rhs.shape}; with transpose_a={self.transpose_a} and "
                f"transpose_b={self.transpose_b} the contracted axes are {inner} and {other} long, which must be equal"
            )
        return Spec.of(left + right or (1,), dtype)

    @staticmethod
    def _split(shape: Shape, contract_last: bool) -> tuple[Shape, int]:
        """(the axes that stay, length of the axis that is summed over)."""
        return (shape[:-1], shape[-1]) if contract_last else (shape[1:], shape[0])

    def kernel(self, xp: Any, lhs: Array, rhs: Array, out: Array | None = None) -> Array:
        if lhs.ndim == rhs.ndim == 2:
            return product_of(xp, lhs.T if self.transpose_a else lhs, rhs.T if self.transpose_b else rhs, out)
        left = lhs.reshape(_folded(lhs.shape, not self.transpose_a))
        right = rhs.reshape(_folded(rhs.shape, self.transpose_b))
        shape = self._split(lhs.shape, not self.transpose_a)[0] + self._split(rhs.shape, self.transpose_b)[0]
        left, right = left.T if self.transpose_a else left, right.T if self.transpose_b else right
        if out is None:
            return product_of(xp, left, right).reshape(shape or (1,))
        product_of(xp, left, right, out.reshape(len(left), right.shape[1]))
        return out

    def vjp(self, g: Any, y: Any, lhs: Any, rhs: Any) -> tuple[Any, ...]:
        if 0 in lhs.shape or 0 in rhs.shape:
            return lhs.zeros_like(), rhs.zeros_like()
        left = _matrix(lhs, _folded(lhs.shape, not self.transpose_a))
        right = _matrix(rhs, _folded(rhs.shape, self.transpose_b))
        head = _matrix(g, (left.shape[1 if self.transpose_a else 0], right.shape[0 if self.transpose_b else 1]))
        to_left, to_right = product_vjp(dot, head, left, right, self.transpose_a, self.transpose_b)
        return _matrix(to_left, lhs.shape), _matrix(to_right, rhs.shape)


def dot(
    lhs: T,
    rhs: T,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: str | None = None,
    **how: Unpack[How],
) -> T:
    """Product over the last axis of `lhs` and the first of `rhs`: `y[i, j] = sum_k lhs[i, k] rhs[k, j]`.

    `transpose_a` sums over the first axis of `lhs` instead, `transpose_b` over the last of `rhs`. Tensors of any number of
    dimensions keep their other axes in order; two vectors give shape (1,).

    **Shapes** lhs (..., K), rhs (K, ...), result the other axes of both. Sums of float16 are made in float32.
    **Gradient** `g rhs'` and `lhs' g`. **Source** MXNet `dot` (which knows no integers; here they work).
    """
    return apply(Dot(transpose_a, transpose_b, forward_stype), lhs, rhs, **how)


@register("batch_dot")
class BatchDot(Op):
    kind = Kind.GEMM
    takes_out = True
    inputs: ClassVar = ("lhs", "rhs")
    saves_outputs = False

    transpose_a: bool = False
    transpose_b: bool = False
    forward_stype: str | None = None

    def infer(self, lhs: Spec, rhs: Spec) -> Spec:
        _require_dense(self, self.forward_stype)
        dtype = same_dtype(self, lhs, rhs)
        if lhs.ndim < 3 or lhs.ndim != rhs.ndim:
            raise ShapeError(
                f"batch_dot: lhs has shape {lhs.shape}, rhs has {rhs.shape}; both want the same number of dimensions, 3 or more; "
                "use dot for two matrices"
            )
        if lhs.shape[:-2] != rhs.shape[:-2]:
            raise ShapeError(f"batch_dot: lhs has shape {lhs.shape}, rhs has {rhs.shape}; the batch dimensions must be equal")
        return Spec.of(matrix_product_shape(self, lhs, rhs, self.transpose_a, self.transpose_b), dtype)

    def fill(self, lhs: Spec | None, rhs: Spec | None) -> tuple[Spec | None, ...]:
        if lhs is None or rhs is None or lhs.ndim != rhs.ndim:
            return lhs, rhs
        batch = [one or other for one, other in zip(lhs.shape[:-2], rhs.shape[:-2])]
        return filled(lhs, (*batch, *lhs.shape[-2:]), lhs), filled(rhs, (*batch, *rhs.shape[-2:]), rhs)

    def kernel(self, xp: Any, lhs: Array, rhs: Array, out: Array | None = None) -> Array:
        return product_of(xp, swapped(lhs, self.transpose_a), swapped(rhs, self.transpose_b), out)

    def vjp(self, g: Any, y: Any, lhs: Any, rhs: Any) -> tuple[Any, ...]:
        return product_vjp(batch_dot, g, lhs, rhs, self.transpose_a, self.transpose_b)


def batch_dot(
    lhs: T,
    rhs: T,
    transpose_a: bool = False,
    transpose_b: bool = False,
    forward_stype: str | None = None,
    **how: Unpack[How],
) -> T:
    """A product of matrices for each element of a batch: `y[b] = lhs[b] rhs[b]`.

    **Shapes** lhs (B..., M, K), rhs (B..., K, N), result (B..., M, N); `transpose_a`, `transpose_b` swap the last two axes first.
    **Gradient** as for dot. **Source** MXNet `batch_dot`.
    """
    return apply(BatchDot(transpose_a, transpose_b, forward_stype), lhs, rhs, **how)


# ---- the BLAS-3 family


@register("_linalg_gemm2", "linalg_gemm2")
class Gemm2(Op):
    kind = Kind.GEMM
    inputs: ClassVar = ("A", "B")
    saves_outputs = False

    transpose_a: bool = False
    transpose_b: bool = False
    alpha: float = 1.0
    axis: int = -2

    def infer(self, A: Spec, B: Spec) -> Spec:
        return _gemm_spec(self, A, B)

    def kernel(self, xp: Any, A: Array, B: Array) -> Array:
        rows = _row_axis(self, A.ndim)
        left, right = A.swapaxes(rows, -2), B.swapaxes(rows, -2)
        product = product_of(xp, swapped(left, self.transpose_a), swapped(right, self.transpose_b))
        if self.alpha != 1.0:
            product *= self.alpha
        return xp.ascontiguousarray(product.swapaxes(rows, -2))

    def vjp(self, g: Any, y: Any, A: Any, B: Any) -> tuple[Any, ...]:
        def product(lhs: Any, rhs: Any, transpose_a: bool, transpose_b: bool) -> Any:
            return gemm2(lhs, rhs, transpose_a, transpose_b, self.alpha, self.axis)

        return product_vjp(product, g, A, B, self.transpose_a, self.transpose_b)


def _gemm_spec(op: Gemm | Gemm2, A: Spec, B: Spec) -> Spec:
    """The spec of the product for gemm and gemm2, whose rows may be on another axis than the last but one."""
    for what, spec in (("A", A), ("B", B)):
        if spec.ndim < 2 or spec.ndim != A.ndim:
            raise ShapeError(f"{op.name}: {what} has shape {spec.shape}, wants 2 or more dimensions, as many as the other matrix")
    rows = _row_axis(op, A.ndim)
    left, right = A.with_shape(_moved(A.shape, rows)), B.with_shape(_moved(B.shape, rows))
    require_matrices(op, A=left, B=right)
    shape = matrix_product_shape(op, left, right, op.transpose_a, op.transpose_b)
    return A.with_shape(_moved(shape, rows))


def _row_axis(op: Gemm | Gemm2, ndim: int) -> int:
    axis = normalize_axis(op, op.axis, ndim)
    if axis == ndim - 1:
        raise ShapeError(f"{op.name}: axis {op.axis} is the last axis, which holds the columns; choose an earlier one")
    return axis


def _moved(shape: Shape, rows: int) -> Shape:
    """`shape` with the axis `rows` and the last but one exchanged."""
    listed = list(shape)
    listed[rows], listed[-2] = listed[-2], listed[rows]
    return tuple(listed)


def gemm2(
    A: T,
    B: T,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    axis: int = -2,
    **how: Unpack[How],
) -> T:
    """Products of stacks of matrices, scaled: `y = alpha A B`, each operand transposed on request.

    **Shapes** A (..., M, K), B (..., K, N), result (..., M, N). **Args** `axis`: the axis that holds the rows (the columns are
    always last). **Gradient** `alpha g B'` and `alpha A' g`. **Source** MXNet `linalg.gemm2`.
    """
    return apply(Gemm2(transpose_a, transpose_b, alpha, axis), A, B, **how)


@register("_linalg_gemm", "linalg_gemm")
class Gemm(Op):
    kind = Kind.GEMM
    inputs: ClassVar = ("A", "B", "C")
    saves_outputs = False

    transpose_a: bool = False
    transpose_b: bool = False
    alpha: float = 1.0
    beta: float = 1.0
    axis: int = -2

    def _product(self) -> Gemm2:
        return Gemm2(self.transpose_a, self.transpose_b, self.alpha, self.axis)

    def infer(self, A: Spec, B: Spec, C: Spec) -> Spec:
        same_dtype(self, A, B, C)
        product = _gemm_spec(self, A, B)
        if product != C:
            raise ShapeError(f"{self.name}: C has shape {C.shape}, wants {product.shape}, that of the product")
        return product

    def kernel(self, xp: Any, A: Array, B: Array, C: Array) -> Array:
        result = self._product().kernel(xp, A, B)
        result += C if self.beta == 1.0 else self.beta * C
        return result

    def vjp(self, g: Any, y: Any, A: Any, B: Any, C: Any) -> tuple[Any, ...]:
        return (*self._product().vjp(g, y, A, B), g * self.beta)


def gemm(
    A: T,
    B: T,
    C: T,
    transpose_a: bool = False,
    transpose_b: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    axis: int = -2,
    **how: Unpack[How],
) -> T:
    """Products of stacks of matrices plus a stack: `y = alpha A B + beta C`.

    **Shapes** A (..., M, K), B (..., K, N), C and result (..., M, N). **Gradient** that of gemm2, and `beta g`.
    **Source** MXNet `linalg.gemm`.
    """
    return apply(Gemm(transpose_a, transpose_b, alpha, beta, axis), A, B, C, **how)


@register("_linalg_syrk", "linalg_syrk")
class Syrk(Op):
    kind = Kind.GEMM
    inputs: ClassVar = ("A",)
    saves_outputs = False

    transpose: bool = False
    alpha: float = 1.0

    def infer(self, A: Spec) -> Spec:
        require_matrices(self, A=A)
        order = A.shape[-1 if self.transpose else -2]
        return A.with_shape((*A.shape[:-2], order, order))

    def kernel(self, xp: Any, A: Array) -> Array:
        product = product_of(xp, swapped(A, self.transpose), swapped(A, not self.transpose))
        if self.alpha != 1.0:
            product *= self.alpha
        return product

    def vjp(self, g: Any, y: Any, A: Any) -> tuple[Any, ...]:
        both = g + transposed(g)
        return (gemm2(A, both, alpha=self.alpha) if self.transpose else gemm2(both, A, alpha=self.alpha),)


def syrk(A: T, transpose: bool = False, alpha: float = 1.0, **how: Unpack[How]) -> T:
    """Products of matrices with their own transposes: `y = alpha A A'`, or `alpha A' A` if `transpose`.

    **Shapes** A (..., M, N), result (..., M, M), or (..., N, N) if `transpose`. **Gradient** `alpha (g + g') A`.
    **Source** MXNet `linalg.syrk`.
    """
    return apply(Syrk(transpose, alpha), A, **how)


@register("_linalg_trmm", "linalg_trmm")
class Trmm(Op):
    kind = Kind.GEMM
    inputs: ClassVar = ("A", "B")
    saves_outputs = False

    transpose: bool = False
    rightside: bool = False
    lower: bool = True
    alpha: float = 1.0

    def infer(self, A: Spec, B: Spec) -> Spec:
        require_matrices(self, A=A, B=B)
        order = require_square(self, "A", A)
        side = -1 if self.rightside else -2
        if B.shape[side] != order:
            raise ShapeError(
                f"{self.name}: B has shape {B.shape}, wants axis {side} of length {order} to fit A of shape {A.shape}"
            )
        return B

    def kernel(self, xp: Any, A: Array, B: Array) -> Array:
        triangle = swapped((xp.tril if self.lower else xp.triu)(A), self.transpose)
        product = product_of(xp, B, triangle) if self.rightside else product_of(xp, triangle, B)
        if self.alpha != 1.0:
            product *= self.alpha
        return product

    def vjp(self, g: Any, y: Any, A: Any, B: Any) -> tuple[Any, ...]:
        # The factor M = triangle or its transpose gets g B' from the left and B' g from the right; if M is the transpose, so is that.
        first, second = (B, g) if self.rightside != self.transpose else (g, B)
        to_factor = gemm2(first, second, self.rightside, not self.rightside, self.alpha)
        return (
            only_triangle(to_factor, self.lower),
            trmm(A, g, not self.transpose, self.rightside, self.lower, self.alpha),
        )


def trmm(
    A: T,
    B: T,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    **how: Unpack[How],
) -> T:
    """Products with triangular matrices: `y = alpha A B`, or `alpha B A` if `rightside`; only one triangle of A is read.

    **Shapes** A (..., N, N), B and result (..., N, M), or (..., M, N) if `rightside`. **Args** `transpose`: use A'; `lower`:
    which triangle. **Gradient** the triangle of `alpha g B'`, and `alpha A' g`. **Source** MXNet `linalg.trmm`.
    """
    return apply(Trmm(transpose, rightside, lower, alpha), A, B, **how)


def transposed(x: Any) -> Any:
    """Each matrix of a stack transposed; a tensor."""
    return x.swapaxes(len(x.shape) - 2, len(x.shape) - 1)


# ---- Khatri-Rao


@register("khatri_rao")
class KhatriRao(Op):
    inputs: ClassVar = ("args*",)
    saves_outputs = False

    def infer(self, *args: Spec) -> Spec:
        dtype = same_dtype(self, *args)
        for i, spec in enumerate(args):
            if spec.ndim != 2:
                raise ShapeError(f"khatri_rao: args{i} has shape {spec.shape}, wants a matrix")
            if spec.shape[1] != args[0].shape[1]:
                raise ShapeError(
                    f"khatri_rao: args{i} has shape {spec.shape}, wants {args[0].shape[1]} columns, as many as args0"
                )
        return Spec.of((math.prod(spec.shape[0] for spec in args), args[0].shape[1]), dtype)

    def kernel(self, xp: Any, *args: Array) -> Array:
        result = args[0].copy()
        for factor in args[1:]:
            result = (result[:, None, :] * factor).reshape(len(result) * len(factor), factor.shape[1])
        return result

    def vjp(self, g: Any, y: Any, *args: Any) -> tuple[Any, ...]:
        if any(0 in factor.shape for factor in args):
            return tuple(factor.zeros_like() for factor in args)
        columns = args[0].shape[1]
        gradients = []
        for i, factor in enumerate(args):
            # Rows of g are numbered by (rows before, row of the factor, rows after): weigh by the others and sum them out.
            before = math.prod(other.shape[0] for other in args[:i])
            after = math.prod(other.shape[0] for other in args[i + 1 :])
            weighed = g.reshape((before, factor.shape[0], after, columns))
            if i:
                weighed = broadcast_mul(weighed, khatri_rao(*args[:i]).reshape((before, 1, 1, columns)))
            if i + 1 < len(args):
                weighed = broadcast_mul(weighed, khatri_rao(*args[i + 1 :]).reshape((1, 1, after, columns)))
            gradients.append(weighed.sum(axis=(0, 2)))
        return tuple(gradients)


def khatri_rao(*args: T, **how: Unpack[How]) -> T:
    """Kronecker products of the matrices' columns: column k of the result is the Kronecker product of all columns k.

    **Shapes** args (M1, K), (M2, K), ..., result (M1 M2 ..., K). **Gradient** each factor gets g weighed by the others.
    **Source** MXNet `khatri_rao` (which has no gradient).
    """
    return apply(KhatriRao(), *args, **how)


# ---- the same functions in MXNet's flat namespaces: `nd.linalg_gemm2`

linalg_gemm2 = also_called("linalg_gemm2", gemm2)
linalg_gemm = also_called("linalg_gemm", gemm)
linalg_syrk = also_called("linalg_syrk", syrk)
linalg_trmm = also_called("linalg_trmm", trmm)

__all__ = [
    "batch_dot", "dot", "gemm", "gemm2", "khatri_rao", "linalg_gemm", "linalg_gemm2", "linalg_syrk", "linalg_trmm", "syrk", "trmm",
]  # fmt: skip
