"""Parts of matrices as vectors and back: diagonals and triangles; and the checks that all of MXNet's `linalg` shares.

Two of these operators make a mask: `only_triangle` is how a gradient keeps the triangle that its operator reads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import DTypeError, ShapeError
from ..op import Array, How, Op, Spec, T, also_called, apply, register
from ..rules import same_dtype

if TYPE_CHECKING:
    from typing_extensions import Unpack


def require_matrices(op: Op, **inputs: Spec) -> None:
    """Raise unless every input is a stack of matrices of one floating dtype, all stacks of the same shape."""
    same_dtype(op, *inputs.values())
    stack = None
    for what, spec in inputs.items():
        if spec.dtype.kind != "f":
            raise DTypeError(f"{op.name}: {what} is {spec.dtype.name}, wants a floating dtype; convert it with astype('float32')")
        if spec.ndim < 2:
            raise ShapeError(
                f"{op.name}: {what} has shape {spec.shape}, wants a matrix or a stack of them (2 or more dimensions)"
            )
        if stack is not None and stack != spec.shape[:-2]:
            raise ShapeError(f"{op.name}: {what} has shape {spec.shape}, wants the leading dimensions {stack} of the others")
        stack = spec.shape[:-2]


def require_square(op: Op, what: str, spec: Spec) -> int:
    """Raise unless `spec` is a stack of square matrices; their order."""
    require_matrices(op, **{what: spec})
    if spec.shape[-1] != spec.shape[-2]:
        raise ShapeError(f"{op.name}: {what} has shape {spec.shape}, wants square matrices")
    return spec.shape[-1]


@register("_linalg_extractdiag", "linalg_extractdiag")
class ExtractDiag(Op):
    inputs: ClassVar = ("A",)
    saves_inputs = saves_outputs = False

    offset: int = 0

    def infer(self, A: Spec) -> Spec:
        length = _length_at(self, A, self.offset)
        return A.with_shape((*A.shape[:-2], length))

    def kernel(self, xp: Any, A: Array) -> Array:
        return xp.diagonal(A, self.offset, -2, -1).copy()

    def vjp(self, g: Any, y: Any, A: Any) -> tuple[Any, ...]:
        return (makediag(g, self.offset),)


def _length_at(op: Op, A: Spec, offset: int) -> int:
    """Length of the diagonal `offset` above the main one. Raises ShapeError if the matrices have no such diagonal."""
    length = require_square(op, "A", A) - abs(offset)
    if length <= 0:
        raise ShapeError(f"{op.name}: A has shape {A.shape}, which has no diagonal at offset {offset}; choose a smaller one")
    return length


def extractdiag(A: T, offset: int = 0, **how: Unpack[How]) -> T:
    """A diagonal of each matrix of a stack: `y[..., i] = A[..., i, i + offset]`.

    **Shapes** A (..., N, N), result (..., N - |offset|). **Gradient** `makediag(g, offset)`. **Source** MXNet
    `linalg.extractdiag`.
    """
    return apply(ExtractDiag(offset), A, **how)


@register("_linalg_makediag", "linalg_makediag")
class MakeDiag(Op):
    inputs: ClassVar = ("A",)
    saves_inputs = saves_outputs = False

    offset: int = 0

    def infer(self, A: Spec) -> Spec:
        _require_vectors(self, A)
        order = A.shape[-1] + abs(self.offset)
        return A.with_shape((*A.shape[:-1], order, order))

    def kernel(self, xp: Any, A: Array) -> Array:
        order = A.shape[-1] + abs(self.offset)
        result = xp.zeros((*A.shape[:-1], order, order), A.dtype)
        along = xp.arange(A.shape[-1])
        result[..., along + max(-self.offset, 0), along + max(self.offset, 0)] = A
        return result

    def vjp(self, g: Any, y: Any, A: Any) -> tuple[Any, ...]:
        return (extractdiag(g, self.offset),)


def _require_vectors(op: Op, A: Spec) -> None:
    if A.dtype.kind != "f":
        raise DTypeError(f"{op.name}: A is {A.dtype.name}, wants a floating dtype; convert it with astype('float32')")
    if not A.ndim or not A.shape[-1]:
        raise ShapeError(f"{op.name}: A has shape {A.shape}, wants a last axis of at least 1 element")


def makediag(A: T, offset: int = 0, **how: Unpack[How]) -> T:
    """Square matrices with a given diagonal, zero elsewhere: `y[..., i, i + offset] = A[..., i]`.

    **Shapes** A (..., N), result (..., N + |offset|, N + |offset|). **Gradient** `extractdiag(g, offset)`.
    **Source** MXNet `linalg.makediag`.
    """
    return apply(MakeDiag(offset), A, **how)


def _triangle_indices(xp: Any, order: int, offset: int, lower: bool) -> tuple[Array, Array]:
    """Rows and columns of a triangle in MXNet's order: rows of a lower one, columns of an upper one, one after the other.

    A negative `offset` means the triangle below that diagonal and a positive one that above; `lower` decides only for 0.
    """
    longer, shorter = xp.tril_indices(order, -abs(offset))
    return (longer, shorter) if offset < 0 or (offset == 0 and lower) else (shorter, longer)


@register("_linalg_extracttrian", "linalg_extracttrian")
class ExtractTrian(Op):
    inputs: ClassVar = ("A",)
    saves_inputs = saves_outputs = False

    offset: int = 0
    lower: bool = True

    def infer(self, A: Spec) -> Spec:
        length = _length_at(self, A, self.offset)
        return A.with_shape((*A.shape[:-2], length * (length + 1) // 2))

    def kernel(self, xp: Any, A: Array) -> Array:
        rows, columns = _triangle_indices(xp, A.shape[-1], self.offset, self.lower)
        return xp.ascontiguousarray(A[..., rows, columns])

    def vjp(self, g: Any, y: Any, A: Any) -> tuple[Any, ...]:
        return (maketrian(g, self.offset, self.lower),)


def extracttrian(A: T, offset: int = 0, lower: bool = True, **how: Unpack[How]) -> T:
    """A triangle of each matrix of a stack, packed into a vector: rows of the lower one, or columns of the upper one.

    **Shapes** A (..., N, N), result (..., K (K + 1) / 2) with K = N - |offset|. **Args** `offset`: the triangle's diagonal; below
    the main one if negative, above if positive; `lower`: which of the two for offset 0. **Gradient** `maketrian(g)`.
    **Source** MXNet `linalg.extracttrian`.
    """
    return apply(ExtractTrian(offset, lower), A, **how)


@register("_linalg_maketrian", "linalg_maketrian")
class MakeTrian(Op):
    inputs: ClassVar = ("A",)
    saves_inputs = saves_outputs = False

    offset: int = 0
    lower: bool = True

    def _order(self, packed: int) -> int:
        return (math.isqrt(8 * packed + 1) - 1) // 2 + abs(self.offset)

    def infer(self, A: Spec) -> Spec:
        _require_vectors(self, A)
        packed, order = A.shape[-1], self._order(A.shape[-1])
        side = order - abs(self.offset)
        if side * (side + 1) // 2 != packed:
            raise ShapeError(
                f"{self.name}: A has shape {A.shape}, wants a last axis of K (K + 1) / 2 elements, such as {side * (side + 1) // 2}"
            )
        return A.with_shape((*A.shape[:-1], order, order))

    def kernel(self, xp: Any, A: Array) -> Array:
        order = self._order(A.shape[-1])
        result = xp.zeros((*A.shape[:-1], order, order), A.dtype)
        rows, columns = _triangle_indices(xp, order, self.offset, self.lower)
        result[..., rows, columns] = A
        return result

    def vjp(self, g: Any, y: Any, A: Any) -> tuple[Any, ...]:
        return (extracttrian(g, self.offset, self.lower),)


def maketrian(A: T, offset: int = 0, lower: bool = True, **how: Unpack[How]) -> T:
    """Square matrices with a given triangle, zero elsewhere: the inverse of extracttrian.

    **Shapes** A (..., K (K + 1) / 2), result (..., N, N) with N = K + |offset|. **Gradient** `extracttrian(g)`.
    **Source** MXNet `linalg.maketrian`.
    """
    return apply(MakeTrian(offset, lower), A, **how)


def only_triangle(x: Any, lower: bool = True) -> Any:
    """A stack of matrices with one triangle kept and zeros in the other; a tensor."""
    return maketrian(extracttrian(x, lower=lower), lower=lower)


# ---- the same functions in MXNet's flat namespaces: `nd.linalg_extractdiag`

linalg_extractdiag = also_called("linalg_extractdiag", extractdiag)
linalg_makediag = also_called("linalg_makediag", makediag)
linalg_extracttrian = also_called("linalg_extracttrian", extracttrian)
linalg_maketrian = also_called("linalg_maketrian", maketrian)

__all__ = [
    "extractdiag", "extracttrian", "linalg_extractdiag", "linalg_extracttrian", "linalg_makediag", "linalg_maketrian", "makediag",
    "maketrian",
]  # fmt: skip
