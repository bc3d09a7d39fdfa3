"""Factorizations, solvers and determinants of MXNet's `linalg`: Cholesky, LQ, symmetric eigenvalues, inverse.

Each takes a stack of matrices. LAPACK does the work; a matrix that has no such factorization is an error of the kernel, and so
arrives where the result is read. The gradients are the textbook's closed forms, written with the products of linalg.py, so that
they can be differentiated again. Source of the formulas: Giles, "Collected matrix derivative results", 2008; Seeger et al.,
"Auto-differentiating linear algebra", 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import MXNetError, ShapeError
from ..op import Array, How, Kind, Op, Spec, T, also_called, apply, register
from .binary import broadcast_div, broadcast_mul, broadcast_sub
from .linalg import gemm2, swapped, transposed, widened
from .linalg_packing import extractdiag, makediag, only_triangle, require_matrices, require_square
from .products import matmul

if TYPE_CHECKING:
    from typing_extensions import Unpack

SINGULAR = "it is singular, or has elements that are not finite"
BLOCK = 64  # triangles up to this order are solved by LAPACK's general solver, larger ones in halves


def attempt(op: Op, reason: str, function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)`; if LAPACK gives up, an MXNetError that says why it may have."""
    try:
        return function(*args)
    except np.linalg.LinAlgError:
        raise MXNetError(f"{op.name}: A has no result: {reason}") from None


def solve_lower(xp: Any, triangle: Array, right: Array) -> Array:
    """X of `triangle X = right`, for stacks of lower triangular matrices.

    Halves are solved one after the other: the first unknowns give, by one product, what the rest must add up to, so that nearly
    all time is spent in products.
    """
    order = triangle.shape[-1]
    if order <= BLOCK:
        return xp.linalg.solve(triangle, right)
    half = order // 2
    first = solve_lower(xp, triangle[..., :half, :half], right[..., :half, :])
    rest = right[..., half:, :] - matmul(xp, triangle[..., half:, :half], first)
    return xp.concatenate((first, solve_lower(xp, triangle[..., half:, half:], rest)), axis=-2)


def mirrored(x: Any) -> Any:
    """The symmetric matrices whose lower triangles are those of `x`; a tensor."""
    triangle = only_triangle(x)
    return triangle + transposed(triangle) - makediag(extractdiag(x))


# ---- Cholesky


@register("_linalg_potrf", "linalg_potrf")
class Potrf(Op):
    inputs: ClassVar = ("A",)
    saves_inputs: ClassVar = False

    lower: bool = True

    def infer(self, A: Spec) -> Spec:
        require_square(self, "A", A)
        return A

    def kernel(self, xp: Any, A: Array) -> Array:
        source = widened(xp, swapped(A, not self.lower))
        factor = attempt(self, "it is not positive definite; add a multiple of the identity", xp.linalg.cholesky, source)
        return xp.ascontiguousarray(swapped(factor, not self.lower).astype(A.dtype, copy=False))

    def vjp(self, g: Any, y: Any, A: Any) -> tuple[Any, ...]:
        if not self.lower:
            return (transposed(Potrf().vjp(transposed(g), transposed(y), A)[0]),)
        inner = mirrored(gemm2(y, g, transpose_a=True)) * 0.5
        return (trsm(y, trsm(y, inner, rightside=True), transpose=True),)


def potrf(A: T, lower: bool = True, **how: Unpack[How]) -> T:
    """Cholesky factors of symmetric positive definite matrices: lower triangular L with `A = L L'`.

    Only the lower triangle of A is read. **Shapes** A and result (..., N, N). **Args** lower: False reads the upper triangle, and returns
    L'. **Raises** MXNetError, where the result is read, if a matrix is not positive definite. **Gradient** `L'^-1 S L^-1 / 2`, S the
    symmetric matrix with the lower triangle of `L' g`. **Source** MXNet `linalg.potrf`.
    """
    return apply(Potrf(lower), A, **how)


@register("_linalg_potri", "linalg_potri")
class Potri(Op):
    inputs: ClassVar = ("A",)

    lower: bool = True

    def infer(self, A: Spec) -> Spec:
        require_square(self, "A", A)
        return A

    def kernel(self, xp: Any, A: Array) -> Array:
        factor = xp.tril(widened(xp, swapped(A, not self.lower)))
        _require_solvable(self, xp, factor)
        identity = xp.broadcast_to(xp.eye(A.shape[-1], dtype=factor.dtype), factor.shape)
        inverse = attempt(self, SINGULAR, solve_lower, xp, factor, identity)
        return matmul(xp, swapped(inverse, True), inverse).astype(A.dtype, copy=False)

    def vjp(self, g: Any, y: Any, A: Any) -> tuple[Any, ...]:
        if not self.lower:
            return (transposed(Potri().vjp(g, y, transposed(A))[0]),)
        outer = gemm2(y, g + transposed(g), alpha=-1.0)
        # With y = (A A')^-1 the factor that is left over is y A = A'^-1, which one triangular solve applies.
        return (only_triangle(trsm(A, outer, transpose=True, rightside=True)),)


def _require_solvable(op: Op, xp: Any, triangle: Array) -> None:
    if not xp.diagonal(triangle, 0, -2, -1).all():
        raise MXNetError(f"{op.name}: A has no result: its diagonal has a zero, so it is singular")


def potri(A: T, lower: bool = True, **how: Unpack[How]) -> T:
    """Inverses of matrices that are given by their Cholesky factors: `y = (A A')^-1`, A lower triangular.

    **Shapes** A and result (..., N, N). **Args** lower: False for upper triangular A, and `y = (A' A)^-1`. **Raises** MXNetError, where
    the result is read, if A is singular. **Gradient** the lower triangle of `-y (g + g') A'^-1`. **Source** MXNet `linalg.potri`.
    """
    return apply(Potri(lower), A, **how)


@register("_linalg_sumlogdiag", "linalg_sumlogdiag")
class SumLogDiag(Op):
    inputs: ClassVar = ("A",)
    saves_outputs = False

    def infer(self, A: Spec) -> Spec:
        require_square(self, "A", A)
        return A.with_shape(A.shape[:-2] or (1,))

    def kernel(self, xp: Any, A: Array) -> Array:
        logs = xp.log(widened(xp, xp.diagonal(A, 0, -2, -1)))
        return logs.sum(-1).astype(A.dtype, copy=False).reshape(A.shape[:-2] or (1,))

    def vjp(self, g: Any, y: Any, A: Any) -> tuple[Any, ...]:
        diagonal = extractdiag(A)
        return (makediag(broadcast_div(_beside(g, diagonal), diagonal)),)


def _beside(scalars: Any, vectors: Any) -> Any:
    """One number for each vector of a stack, shaped to be combined with it by broadcasting."""
    return scalars.expand_dims(axis=len(scalars.shape)) if len(vectors.shape) > 1 else scalars


def sumlogdiag(A: T, **how: Unpack[How]) -> T:
    """Sums of the logarithms of the diagonals: half the log determinant of `A A'` if A is a Cholesky factor.

    **Shapes** A (..., N, N), result (...), or (1,) for one matrix. **Gradient** `g / A[i, i]` on the diagonal.
    **Source** MXNet `linalg.sumlogdiag`.
    """
    return apply(SumLogDiag(), A, **how)


# ---- triangular systems


@register("_linalg_trsm", "linalg_trsm")
class Trsm(Op):
    kind = Kind.GEMM
    inputs: ClassVar = ("A", "B")

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
        # X M = B is M' X' = B', and an upper triangle read from its last row and column to the first is a lower one.
        triangle = swapped((xp.tril if self.lower else xp.triu)(widened(xp, A)), self.transpose != self.rightside)
        right = swapped(widened(xp, B), self.rightside)
        _require_solvable(self, xp, triangle)
        if self.lower != (self.transpose != self.rightside):
            solution = attempt(self, SINGULAR, solve_lower, xp, triangle, right)
        else:
            solution = attempt(self, SINGULAR, solve_lower, xp, triangle[..., ::-1, ::-1], right[..., ::-1, :])[..., ::-1, :]
        solution = xp.ascontiguousarray(swapped(solution, self.rightside).astype(B.dtype, copy=False))
        if self.alpha != 1.0:
            solution *= self.alpha
        return solution

    def vjp(self, g: Any, y: Any, A: Any, B: Any) -> tuple[Any, ...]:
        # W solves the transposed system for g; the factor M = triangle or its transpose gets -W y' from the left, -y' W from the right.
        solved = trsm(A, g, not self.transpose, self.rightside, self.lower)
        first, second = (y, solved) if self.rightside != self.transpose else (solved, y)
        to_factor = gemm2(first, second, self.rightside, not self.rightside, -1.0)
        return only_triangle(to_factor, self.lower), solved * self.alpha


def trsm(
    A: T,
    B: T,
    transpose: bool = False,
    rightside: bool = False,
    lower: bool = True,
    alpha: float = 1.0,
    **how: Unpack[How],
) -> T:
    """Solutions of triangular systems: X of `A X = alpha B`, or of `X A = alpha B` if `rightside`; one triangle of A is read.

    **Shapes** A (..., N, N), B and result (..., N, M), or (..., M, N) if `rightside`. **Args** `transpose`: solve with A';
    `lower`: which triangle. **Raises** MXNetError, where the result is read, if the diagonal has a zero (MXNet gives infinities).
    **Gradient** with `W = A'^-1 g`: the triangle of `-W y'`, and `alpha W`. **Source** MXNet `linalg.trsm`.
    """
    return apply(Trsm(transpose, rightside, lower, alpha), A, B, **how)


# ---- orthogonal factorizations


@register("_linalg_gelqf", "linalg_gelqf")
class Gelqf(Op):
    inputs: ClassVar = ("A",)
    saves_inputs = False

    @property
    def num_outputs(self) -> int:
        return 2

    def infer(self, A: Spec) -> tuple[Spec, ...]:
        require_matrices(self, A=A)
        rows, columns = A.shape[-2:]
        if rows > columns:
            raise ShapeError(f"{self.name}: A has shape {A.shape}, wants at least as many columns as rows; transpose it first")
        return A, A.with_shape((*A.shape[:-2], rows, rows))

    def kernel(self, xp: Any, A: Array) -> tuple[Array, ...]:
        # A = L Q is A' = Q' L', the QR factorization that NumPy has.
        pair = xp.linalg.qr(swapped(widened(xp, A), True))
        return tuple(xp.ascontiguousarray(swapped(factor, True).astype(A.dtype, copy=False)) for factor in pair)

    def vjp(self, g: Any, y: Any, A: Any) -> tuple[Any, ...]:
        (to_q, to_l), (q, l) = g, y
        # The part of A's change that keeps Q orthogonal is symmetric in disguise: only a lower triangle of it is free.
        inner, direct = None, None
        if to_l is not None:
            inner = gemm2(l, to_l, transpose_a=True)
        if to_q is not None:
            direct = to_q
            turned = gemm2(to_q, q, transpose_b=True)
            inner = inner - turned if inner is not None else -turned
        total = gemm2(mirrored(inner), q)
        if direct is not None:
            total = total + direct
        return (trsm(l, total, transpose=True),)


def gelqf(A: T, **how: Unpack[How]) -> list[T]:
    """LQ factorizations: [Q, L] with `A = L Q`, L lower triangular, the rows of Q orthonormal.

    **Shapes** A and Q (..., M, N) with M <= N, L (..., M, M). **Gradient** `L'^-1 (gQ + S Q)`, S the symmetric matrix with the
    lower triangle of `L' gL - gQ Q'`. **Source** MXNet `linalg.gelqf`.
    """
    return apply(Gelqf(), A, **how)


@register("_linalg_syevd")
class Syevd(Op):
    inputs: ClassVar = ("A",)
    saves_inputs = False

    @property
    def num_outputs(self) -> int:
        return 2

    def infer(self, A: Spec) -> tuple[Spec, ...]:
        require_square(self, "A", A)
        return A, A.with_shape(A.shape[:-1])

    def kernel(self, xp: Any, A: Array) -> tuple[Array, ...]:
        values, vectors = attempt(self, "the iteration for the eigenvalues did not converge", xp.linalg.eigh, widened(xp, A))
        rows = xp.ascontiguousarray(swapped(vectors, True))
        if rows.size:
            # A sign is free in each eigenvector: the element of largest modulus is made positive, as MXNet does.
            leading = xp.take_along_axis(rows, abs(rows).argmax(-1)[..., None], -1)
            rows *= xp.where(leading < 0, rows.dtype.type(-1), rows.dtype.type(1))
        return rows.astype(A.dtype, copy=False), values.astype(A.dtype, copy=False)

    def vjp(self, g: Any, y: Any, A: Any) -> tuple[Any, ...]:
        (to_vectors, to_values), (vectors, values) = g, y
        inner = makediag(to_values) if to_values is not None else None
        if to_vectors is not None:
            last = len(values.shape)
            # row i, column j: 1 / (value i - value j), and 0 where they coincide, where the vectors have no derivative
            gaps = broadcast_sub(values.expand_dims(axis=last), values.expand_dims(axis=last - 1))
            turned = gemm2(to_vectors, vectors, transpose_b=True) * gaps / (gaps * gaps + (gaps == 0))
            symmetric = (turned + transposed(turned)) * 0.5
            inner = symmetric if inner is None else inner + symmetric
        return (gemm2(gemm2(vectors, inner, transpose_a=True), vectors),)


def syevd(A: T, **how: Unpack[How]) -> list[T]:
    """Eigenvectors and eigenvalues of symmetric matrices: [U, L] with `A = U' diag(L) U`, L ascending, the rows of U orthonormal.

    Only the lower triangle of A is read. **Shapes** A and U (..., N, N), L (..., N).
    **Gradient** `U' (diag(gL) + sym((gU U')_ij / (L_i - L_j))) U`. **Source** MXNet `linalg.syevd`.
    """
    return apply(Syevd(), A, **how)


# ---- inverse and determinants


@register("_linalg_inverse", "linalg_inverse")
class Inverse(Op):
    inputs: ClassVar = ("A",)
    saves_inputs = False

    def infer(self, A: Spec) -> Spec:
        require_square(self, "A", A)
        return A

    def kernel(self, xp: Any, A: Array) -> Array:
        inverse = attempt(self, "it is singular", xp.linalg.inv, widened(xp, A))
        return xp.ascontiguousarray(inverse.astype(A.dtype, copy=False))

    def vjp(self, g: Any, y: Any, A: Any) -> tuple[Any, ...]:
        return (gemm2(gemm2(y, g, transpose_a=True), y, transpose_b=True, alpha=-1.0),)


def inverse(A: T, **how: Unpack[How]) -> T:
    """Inverses of square matrices.

    **Shapes** A and result (..., N, N). **Raises** MXNetError, where the result is read, if a matrix is singular.
    **Gradient** `-y' g y'`. **Source** MXNet `linalg.inverse`.
    """
    return apply(Inverse(), A, **how)


def _inverse_transposed(A: Any, determinant: Any) -> Any:
    """`A'^-1`, and the identity where the determinant (or its sign) is 0, so that there is something to multiply by it."""
    singular = _for_matrices(determinant == 0, A)
    identity = makediag(extractdiag(A).ones_like())
    solvable = broadcast_mul(A, 1 - singular) + broadcast_mul(identity, singular)
    return transposed(inverse(solvable))


@register("_linalg_det", "linalg_det")
class Det(Op):
    inputs: ClassVar = ("A",)

    def infer(self, A: Spec) -> Spec:
        require_square(self, "A", A)
        return A.with_shape(A.shape[:-2] or (1,))

    def kernel(self, xp: Any, A: Array) -> Array:
        return xp.asarray(xp.linalg.det(widened(xp, A))).astype(A.dtype, copy=False).reshape(A.shape[:-2] or (1,))

    def vjp(self, g: Any, y: Any, A: Any) -> tuple[Any, ...]:
        return (broadcast_mul(_for_matrices(g * y, A), _inverse_transposed(A, y)),)


def _for_matrices(scalars: Any, matrices: Any) -> Any:
    """One number for each matrix of a stack, shaped to be combined with it by broadcasting."""
    return scalars.reshape((*matrices.shape[:-2], 1, 1))


def det(A: T, **how: Unpack[How]) -> T:
    """Determinants of square matrices.

    **Shapes** A (..., N, N), result (...), or (1,) for one matrix. **Gradient** `g y A'^-1`, 0 where the determinant is 0 (as in
    MXNet). **Source** MXNet `linalg.det`.
    """
    return apply(Det(), A, **how)


@register("_linalg_slogdet", "linalg_slogdet")
class SLogDet(Op):
    inputs: ClassVar = ("A",)

    @property
    def num_outputs(self) -> int:
        return 2

    def infer(self, A: Spec) -> tuple[Spec, ...]:
        require_square(self, "A", A)
        result = A.with_shape(A.shape[:-2] or (1,))
        return result, result

    def kernel(self, xp: Any, A: Array) -> tuple[Array, ...]:
        pair = xp.linalg.slogdet(widened(xp, A))
        return tuple(xp.asarray(part).astype(A.dtype, copy=False).reshape(A.shape[:-2] or (1,)) for part in pair)

    def vjp(self, g: Any, y: Any, A: Any) -> tuple[Any, ...]:
        if g[1] is None:
            return (A.zeros_like(),)
        sign = y[0]
        return (broadcast_mul(_for_matrices(g[1] * sign * sign, A), _inverse_transposed(A, sign)),)


def slogdet(A: T, **how: Unpack[How]) -> list[T]:
    """Signs and logarithms of the moduli of determinants: [sign, log |det A|], (0, -inf) for a singular matrix.

    **Shapes** A (..., N, N), results (...), or (1,) for one matrix. **Gradient** `g A'^-1` from the logarithm, 0 where the sign
    is 0; none from the sign. **Source** MXNet `linalg.slogdet`.
    """
    return apply(SLogDet(), A, **how)


# ---- the same functions in MXNet's flat namespaces: `nd.linalg_potrf`

linalg_potrf = also_called("linalg_potrf", potrf)
linalg_potri = also_called("linalg_potri", potri)
linalg_sumlogdiag = also_called("linalg_sumlogdiag", sumlogdiag)
linalg_trsm = also_called("linalg_trsm", trsm)
linalg_gelqf = also_called("linalg_gelqf", gelqf)
linalg_syevd = also_called("linalg_syevd", syevd)
linalg_inverse = also_called("linalg_inverse", inverse)
linalg_det = also_called("linalg_det", det)
linalg_slogdet = also_called("linalg_slogdet", slogdet)

__all__ = [
    "det", "gelqf", "inverse", "linalg_det", "linalg_gelqf", "linalg_inverse", "linalg_potrf", "linalg_potri", "linalg_slogdet",
    "linalg_sumlogdiag", "linalg_syevd", "linalg_trsm", "potrf", "potri", "slogdet", "sumlogdiag", "syevd", "trsm",
]  # fmt: skip
