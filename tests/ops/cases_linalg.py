"""Rows of ops/linalg.py, linalg_packing.py and linalg_factor.py: products, packing, factorizations, determinants."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, MXNetError, ShapeError
from minimx.ops import linalg, linalg_factor as factor, linalg_packing as packing

from .harness import Bad, Case, Maker, integers, normal, uniform

# LAPACK's float32 loses some digits in small, badly conditioned systems; float16 inputs are already far from the float64 oracle's.
LAPACK = {"float32": 1e-3, "float64": 1e-9, "float16": np.inf}


def t(array: np.ndarray) -> np.ndarray:
    return np.swapaxes(array, -1, -2)


def flipped(array: np.ndarray, transpose: bool) -> np.ndarray:
    return t(array) if transpose else array


# ---- dot and batch_dot


def dots(left: tuple[int, ...], right: tuple[int, ...], axes: tuple[int, int], **how: Any) -> Case:
    label = f"{len(left)}d{len(right)}d" + "".join("-" + key[-1] for key in how)
    return Case(
        "dot",
        lambda lhs, rhs: linalg.dot(lhs, rhs, **how),
        (normal(*left), normal(*right)),
        lambda lhs, rhs: np.tensordot(lhs, rhs, axes),
        label=label,
    )


def by_loop(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The products of a batch, one at a time."""
    first, second = (array.reshape(-1, *array.shape[-2:]) for array in (lhs, rhs))
    return np.array([a @ b for a, b in zip(first, second)]).reshape(*lhs.shape[:-1], rhs.shape[-1])


DOT = [
    Case(
        "dot",
        linalg.dot,
        (normal(3, 4), normal(4, 5)),
        lambda lhs, rhs: np.einsum("ik,kj->ij", lhs, rhs),
        bad=(
            Bad(
                lambda nd: nd.dot(nd.ones((2, 3)), nd.ones((2, 3))),
                ShapeError,
                r"lhs has shape \(2, 3\), rhs has \(2, 3\).* axes are 3 and 2 long",
            ),
            Bad(
                lambda nd: nd.dot(nd.ones((2, 3)), nd.ones((3, 2), dtype="float64")),
                DTypeError,
                "lhs is float32 but rhs is float64; convert",
            ),
            Bad(lambda nd: nd.dot(nd.ones((3,)), nd.ones((3,)), transpose_a=True), ShapeError, "two vectors have no transpose"),
            Bad(
                lambda nd: nd.dot(nd.ones((3,)), nd.ones((3,)), forward_stype="csr"),
                ArgumentError,
                "forward_stype='csr' is not supported; results are dense",
            ),
        ),
    ),
    dots((4, 3), (4, 5), (0, 0), transpose_a=True),
    dots((3, 4), (5, 4), (1, 1), transpose_b=True),
    dots((4, 3), (5, 4), (0, 1), transpose_a=True, transpose_b=True),
    dots((3, 4), (4,), (1, 0)),
    dots((4,), (4, 3), (0, 0)),
    dots((4,), (3, 4), (0, 1), transpose_b=True),
    dots((4, 3), (4,), (0, 0), transpose_a=True),
    dots((2, 3, 4), (4, 5, 2), (2, 0)),
    dots((4, 2, 3), (5, 2, 4), (0, 2), transpose_a=True, transpose_b=True),
    dots((1, 1), (1, 1), (1, 0)),
    Case("dot", linalg.dot, (normal(4), normal(4)), lambda lhs, rhs: (lhs * rhs).sum(keepdims=True), label="vectors"),
    Case("dot", linalg.dot, (normal(2, 0), normal(0, 3)), lambda lhs, rhs: np.zeros((2, 3)), label="empty"),
    Case("dot", linalg.dot, (normal(0, 2, 3), normal(3, 2)), lambda lhs, rhs: np.zeros((0, 2, 2)), label="empty3d"),
    Case(
        "dot",
        lambda lhs, rhs: linalg.dot(lhs, rhs, transpose_b=True),
        (integers(-9, 9, 3, 4), integers(-9, 9, 2, 4)),
        lambda lhs, rhs: (lhs[:, None] * rhs).sum(-1),
        label="integers",
    ),
]

BATCH_DOT = [
    Case(
        "batch_dot",
        lambda lhs, rhs, ta=ta, tb=tb: linalg.batch_dot(lhs, rhs, ta, tb),
        (normal(2, *((4, 3) if ta else (3, 4))), normal(2, *((5, 4) if tb else (4, 5)))),
        lambda lhs, rhs, ta=ta, tb=tb: by_loop(flipped(lhs, ta), flipped(rhs, tb)),
        label=f"{ta:d}{tb:d}",
    )
    for ta in (False, True)
    for tb in (False, True)
] + [
    Case(
        "batch_dot",
        linalg.batch_dot,
        (normal(2, 3, 4, 2), normal(2, 3, 2, 1)),
        by_loop,
        label="4d",
        bad=(
            Bad(
                lambda nd: nd.batch_dot(nd.ones((2, 3)), nd.ones((3, 2))),
                ShapeError,
                "3 or more; use dot for two matrices",
            ),
            Bad(
                lambda nd: nd.batch_dot(nd.ones((1, 2, 3)), nd.ones((2, 3, 2))),
                ShapeError,
                "the batch dimensions must be equal",
            ),
            Bad(
                lambda nd: nd.batch_dot(nd.ones((2, 2, 3)), nd.ones((2, 2, 3))),
                ShapeError,
                "inner dimensions are 3 and 2, which must be equal",
            ),
        ),
    ),
]


# ---- the BLAS-3 family


def gemm_rows() -> list[Case]:
    found = [
        Case(
            "_linalg_gemm2",
            lambda a, b, ta=ta, tb=tb: linalg.linalg_gemm2(a, b, ta, tb, alpha=0.5),
            (normal(2, *((4, 3) if ta else (3, 4))), normal(2, *((5, 4) if tb else (4, 5)))),
            lambda a, b, ta=ta, tb=tb: 0.5 * by_loop(flipped(a, ta), flipped(b, tb)),
            label=f"{ta:d}{tb:d}",
        )
        for ta in (False, True)
        for tb in (False, True)
    ]
    found.append(
        Case(
            "_linalg_gemm2",
            lambda a, b: linalg.linalg_gemm2(a, b, transpose_a=True, axis=0),
            (normal(4, 2, 3), normal(4, 2, 5)),
            lambda a, b: np.einsum("kni,knj->inj", a, b),
            label="axis",
            bad=(
                Bad(
                    lambda nd: nd.linalg.gemm2(nd.ones((2, 3)), nd.ones((2, 3))),
                    ShapeError,
                    "inner dimensions are 3 and 2, which must be equal",
                ),
                Bad(
                    lambda nd: nd.linalg.gemm2(nd.ones((2, 2)), nd.ones((2, 2)), axis=-1),
                    ShapeError,
                    "axis -1 is the last axis, which holds the columns",
                ),
                Bad(
                    lambda nd: nd.linalg.gemm2(nd.ones((2, 2), dtype="int32"), nd.ones((2, 2), dtype="int32")),
                    DTypeError,
                    "A is int32, wants a floating dtype; convert",
                ),
                Bad(lambda nd: nd.linalg.gemm2(nd.ones((2,)), nd.ones((2, 2))), ShapeError, "wants 2 or more dimensions"),
                Bad(
                    lambda nd: nd.linalg.gemm2(nd.ones((1, 2, 2)), nd.ones((2, 2, 2))),
                    ShapeError,
                    r"wants the leading dimensions \(1,\)",
                ),
            ),
        )
    )
    found.append(
        Case(
            "_linalg_gemm",
            lambda a, b, c: linalg.linalg_gemm(a, b, c, transpose_b=True, alpha=2, beta=0.5),
            (normal(3, 4), normal(2, 4), normal(3, 2)),
            lambda a, b, c: 2 * a @ b.T + 0.5 * c,
            bad=(
                Bad(
                    lambda nd: nd.linalg.gemm(nd.ones((2, 3)), nd.ones((3, 4)), nd.ones((1, 4))),
                    ShapeError,
                    r"C has shape \(1, 4\), wants \(2, 4\)",
                ),
            ),
        )
    )
    found.append(
        Case(
            "_linalg_gemm",
            lambda a, b, c: linalg.linalg_gemm(a, b, c, axis=1),
            (normal(2, 3, 2, 4), normal(2, 4, 2, 1), normal(2, 3, 2, 1)),
            lambda a, b, c: np.einsum("pimk,pkmj->pimj", a, b) + c,
            label="axis",
        )
    )
    return found


def well_conditioned(*shape: int) -> Maker:
    """Square matrices whose diagonal dominates, so that both triangles are far from singular."""
    return lambda rng: rng.standard_normal(shape) * 0.5 + 2 * np.eye(shape[-1])


def triangles(lower: bool) -> Callable[[np.ndarray], np.ndarray]:
    return np.tril if lower else np.triu


TRIANGULAR = [
    (transpose, rightside, lower) for transpose in (False, True) for rightside in (False, True) for lower in (False, True)
]


def trmm_oracle(transpose: bool, rightside: bool, lower: bool) -> Callable[..., np.ndarray]:
    def oracle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        factor_ = flipped(triangles(lower)(a), transpose)
        return 0.5 * (b @ factor_ if rightside else factor_ @ b)

    return oracle


def trsm_oracle(transpose: bool, rightside: bool, lower: bool) -> Callable[..., np.ndarray]:
    def oracle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        inverse = np.linalg.inv(flipped(triangles(lower)(a), transpose))
        return 0.5 * (b @ inverse if rightside else inverse @ b)

    return oracle


def triangular_rows() -> list[Case]:
    found = []
    for kind in TRIANGULAR:
        transpose, rightside, lower = kind
        label = f"{transpose:d}{rightside:d}{lower:d}"
        inputs = (well_conditioned(2, 3, 3), normal(2, *((2, 3) if rightside else (3, 2))))
        found.append(
            Case(
                "_linalg_trmm",
                lambda a, b, kind=kind: linalg.linalg_trmm(a, b, *kind, alpha=0.5),
                inputs,
                trmm_oracle(*kind),
                label=label,
            )
        )
        found.append(
            Case(
                "_linalg_trsm",
                lambda a, b, kind=kind: factor.linalg_trsm(a, b, *kind, alpha=0.5),
                inputs,
                trsm_oracle(*kind),
                rtol=LAPACK,
                label=label,
            )
        )
    large = (lambda rng: rng.standard_normal((150, 150)) * 0.1 + 3 * np.eye(150), normal(150, 2))
    found.append(
        Case(
            "_linalg_trsm",
            factor.linalg_trsm,
            large,
            lambda a, b: np.linalg.solve(np.tril(a), b),
            grad=False,
            rtol=LAPACK,
            label="blocks",
            bad=(
                Bad(
                    lambda nd: nd.linalg.trsm(nd.zeros((2, 2)), nd.ones((2, 2))),
                    MXNetError,
                    "diagonal has a zero, so it is singular",
                ),
                Bad(
                    lambda nd: nd.linalg.trsm(nd.ones((2, 2)), nd.ones((3, 2))),
                    ShapeError,
                    r"B has shape \(3, 2\), wants axis -2 of length 2",
                ),
            ),
        )
    )
    found.append(
        Case(
            "_linalg_trmm",
            linalg.linalg_trmm,
            (normal(1, 1), normal(1, 3)),
            lambda a, b: a * b,
            label="1x1",
            bad=(
                Bad(
                    lambda nd: nd.linalg.trmm(nd.ones((2, 3)), nd.ones((3, 2))),
                    ShapeError,
                    r"A has shape \(2, 3\), wants square matrices",
                ),
                Bad(
                    lambda nd: nd.linalg.trmm(nd.ones((2, 2)), nd.ones((2, 3)), rightside=True),
                    ShapeError,
                    r"B has shape \(2, 3\), wants axis -1 of length 2",
                ),
            ),
        )
    )
    return found


SYRK = [
    Case("_linalg_syrk", lambda a: linalg.linalg_syrk(a, alpha=0.5), (normal(2, 3, 4),), lambda a: 0.5 * a @ t(a)),
    Case(
        "_linalg_syrk",
        lambda a: linalg.linalg_syrk(a, transpose=True),
        (normal(3, 4),),
        lambda a: a.T @ a,
        label="transpose",
        bad=(Bad(lambda nd: nd.linalg.syrk(nd.ones((3,))), ShapeError, "wants a matrix or a stack of them"),),
    ),
]


# ---- packing


def packed(array: np.ndarray, offset: int, lower: bool) -> np.ndarray:
    """The elements of a triangle, taken in order by a loop."""
    order = array.shape[-1]
    below = offset < 0 or (offset == 0 and lower)
    picked = []
    for i in range(order):
        for j in range(order):
            row, column = (i, j) if below else (j, i)
            if (column - row <= offset) if below else (column - row >= offset):
                picked.append(array[..., row, column])
    return np.stack(picked, axis=-1)


def unpacked(array: np.ndarray, offset: int, lower: bool) -> np.ndarray:
    order = round((np.sqrt(8 * array.shape[-1] + 1) - 1) / 2) + abs(offset)
    numbers = packed(np.arange(order * order).reshape(order, order), offset, lower)
    result = np.zeros((*array.shape[:-1], order * order))
    result[..., numbers] = array
    return result.reshape(*array.shape[:-1], order, order)


PACKING = [
    case
    for offset in (-2, -1, 0, 1)
    for case in (
        Case(
            "_linalg_extractdiag",
            lambda a, offset=offset: packing.linalg_extractdiag(a, offset),
            (normal(2, 3, 3),),
            lambda a, offset=offset: np.stack([np.diag(each, offset) for each in a]),
            label=str(offset),
        ),
        Case(
            "_linalg_makediag",
            lambda a, offset=offset: packing.linalg_makediag(a, offset),
            (normal(2, 3),),
            lambda a, offset=offset: np.stack([np.diag(each, offset) for each in a]),
            label=str(offset),
        ),
        *(
            case
            for lower in (False, True)
            for case in (
                Case(
                    "_linalg_extracttrian",
                    lambda a, offset=offset, lower=lower: packing.linalg_extracttrian(a, offset, lower),
                    (normal(2, 4, 4),),
                    lambda a, offset=offset, lower=lower: packed(a, offset, lower),
                    label=f"{offset}{lower:d}",
                ),
                Case(
                    "_linalg_maketrian",
                    lambda a, offset=offset, lower=lower: packing.linalg_maketrian(a, offset, lower),
                    (normal(2, 6),),
                    lambda a, offset=offset, lower=lower: unpacked(a, offset, lower),
                    label=f"{offset}{lower:d}",
                ),
            )
        ),
    )
] + [
    Case("_linalg_extractdiag", packing.linalg_extractdiag, (normal(1, 1),), lambda a: a[0], label="1x1"),
    Case(
        "_linalg_maketrian",
        packing.linalg_maketrian,
        (normal(1),),
        lambda a: a[:, None],
        label="1",
        bad=(
            Bad(lambda nd: nd.linalg.maketrian(nd.ones((4,))), ShapeError, "wants a last axis of K .* elements, such as 3"),
            Bad(
                lambda nd: nd.linalg.extracttrian(nd.ones((3, 3)), 3), ShapeError, "no diagonal at offset 3; choose a smaller one"
            ),
            Bad(lambda nd: nd.linalg.extractdiag(nd.ones((2, 3))), ShapeError, "wants square matrices"),
            Bad(lambda nd: nd.linalg.makediag(nd.ones((3,), dtype="int32")), DTypeError, "A is int32, wants a floating dtype"),
        ),
    ),
]


# ---- factorizations


def spd(nd_like: Any) -> Any:
    """Symmetric positive definite matrices from any: the row's input is free, the operator's is not."""
    return linalg.linalg_syrk(nd_like) + packing.linalg_makediag(packing.linalg_extractdiag(nd_like) * 0 + 1)


def spd_of(a: np.ndarray) -> np.ndarray:
    return a @ t(a) + np.eye(a.shape[-1])


def signed(vectors: np.ndarray) -> np.ndarray:
    """Each row with the sign that makes its element of largest modulus positive."""
    leading = np.take_along_axis(vectors, np.abs(vectors).argmax(-1)[..., None], -1)
    return vectors * np.sign(leading)


def eigen(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(a + t(a))
    return signed(t(vectors)), values


def householder(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Q and L of one LQ factorization by reflections, with LAPACK's signs."""
    rows, columns = a.shape
    left, q = a.copy(), np.eye(columns)
    for k in range(rows):
        x = left[k, k:].copy()
        if k < columns - 1:
            x[0] += np.copysign(np.linalg.norm(x), x[0])
            reflect = np.eye(columns)
            reflect[k:, k:] -= 2 * np.outer(x, x) / (x @ x)
            left, q = left @ reflect, reflect @ q
    return q[:rows], np.tril(left[:, :rows])


FACTOR = [
    Case(
        "_linalg_potrf",
        lambda a: factor.linalg_potrf(spd(a)),
        (normal(2, 3, 3),),
        lambda a: np.linalg.cholesky(spd_of(a)),
        rtol=LAPACK,
        bad=(
            Bad(
                lambda nd: nd.linalg.potrf(-nd.ones((2, 2))),
                MXNetError,
                "it is not positive definite; add a multiple",
            ),
            Bad(lambda nd: nd.linalg.potrf(nd.ones((2, 3))), ShapeError, "wants square matrices"),
        ),
    ),
    Case(
        "_linalg_potrf",
        lambda a: factor.linalg_potrf(spd(a), lower=False),
        (normal(2, 3, 3),),
        lambda a: t(np.linalg.cholesky(spd_of(a))),
        rtol=LAPACK,
        label="upper",
    ),
    Case(
        "_linalg_potri",
        lambda a: factor.linalg_potri(a, lower=False),
        (well_conditioned(2, 3, 3),),
        lambda a: np.linalg.inv(t(np.triu(a)) @ np.triu(a)),
        rtol=LAPACK,
        label="upper",
    ),
    Case(
        "_linalg_potri",
        factor.linalg_potri,
        (well_conditioned(2, 3, 3),),
        lambda a: np.linalg.inv(np.tril(a) @ t(np.tril(a))),
        rtol=LAPACK,
        bad=(
            Bad(lambda nd: nd.linalg.potri(nd.zeros((2, 2))), MXNetError, "its diagonal has a zero, so it is singular"),
            Bad(
                lambda nd: nd.linalg.potri(nd.array([[1, 0], [np.inf, 1]])),
                MXNetError,
                "potri: A has no result: it is singular",
            ),
        ),
    ),
    Case(
        "_linalg_sumlogdiag",
        factor.linalg_sumlogdiag,
        (uniform(0.5, 2, 2, 3, 3),),
        lambda a: np.array([sum(np.log(each[i, i]) for i in range(3)) for each in a]),
    ),
    Case(
        "_linalg_sumlogdiag",
        factor.linalg_sumlogdiag,
        (uniform(0.5, 2, 3, 3),),
        lambda a: np.log(np.diag(a)).sum(keepdims=True),
        label="one",
    ),
    Case(
        "_linalg_gelqf",
        factor.linalg_gelqf,
        (normal(2, 4),),
        householder,
        rtol=LAPACK,
        bad=(Bad(lambda nd: nd.linalg.gelqf(nd.ones((3, 2))), ShapeError, "at least as many columns as rows"),),
    ),
    Case(
        "_linalg_gelqf",
        lambda a: factor.linalg_gelqf(a)[1],
        (normal(2, 3, 3),),
        lambda a: np.stack([householder(each)[1] for each in a]),
        rtol=LAPACK,
        label="batch-L",
    ),
    Case(
        "_linalg_gelqf", lambda a: factor.linalg_gelqf(a)[0], (normal(3, 4),), lambda a: householder(a)[0], rtol=LAPACK, label="Q"
    ),
    Case(
        "_linalg_syevd",
        lambda a: factor.linalg_syevd(a + linalg.transposed(a)),
        (normal(2, 3, 3),),
        eigen,
        rtol=LAPACK,
    ),
    Case(
        "_linalg_syevd",
        lambda a: factor.linalg_syevd(a + linalg.transposed(a))[1],
        (normal(4, 4),),
        lambda a: np.linalg.eigvalsh(a + a.T),
        rtol=LAPACK,
        label="values",
    ),
    Case(
        "_linalg_inverse",
        factor.linalg_inverse,
        (well_conditioned(2, 3, 3),),
        lambda a: np.stack([np.linalg.solve(each, np.eye(3)) for each in a]),
        rtol=LAPACK,
        bad=(Bad(lambda nd: nd.linalg.inverse(nd.zeros((2, 2))), MXNetError, "inverse: A has no result: it is singular"),),
    ),
    Case(
        "_linalg_det",
        factor.linalg_det,
        (normal(2, 3, 3),),
        lambda a: np.einsum("nij,nij->n", a[:, :1], np.cross(a[:, 1:2], a[:, 2:])),
        rtol=LAPACK,
    ),
    Case(
        "_linalg_det",
        factor.linalg_det,
        (normal(2, 2),),
        lambda a: np.array([a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]]),
        rtol=LAPACK,
        label="one",
    ),
    Case("_linalg_slogdet", factor.linalg_slogdet, (normal(2, 3, 3),), lambda a: tuple(np.linalg.slogdet(a)), rtol=LAPACK),
    Case(
        "_linalg_slogdet",
        factor.linalg_slogdet,
        (lambda rng: np.ones((2, 2)),),
        lambda a: (np.zeros(1), np.full(1, -np.inf)),
        grad=False,
        label="singular",
    ),
]

KHATRI_RAO = [
    Case(
        "khatri_rao",
        linalg.khatri_rao,
        (normal(2, 3), normal(4, 3), normal(1, 3)),
        lambda *args: np.stack([reduce(np.kron, [each[:, k] for each in args]) for k in range(3)], axis=1),
        bad=(
            Bad(
                lambda nd: nd.khatri_rao(nd.ones((2, 3)), nd.ones((2, 2))),
                ShapeError,
                r"args1 has shape \(2, 2\), wants 3 columns",
            ),
            Bad(lambda nd: nd.khatri_rao(nd.ones((2,))), ShapeError, "wants a matrix"),
        ),
    ),
    Case("khatri_rao", linalg.khatri_rao, (normal(2, 3),), lambda a: a, label="one"),
]

CASES = DOT + BATCH_DOT + gemm_rows() + triangular_rows() + SYRK + PACKING + FACTOR + KHATRI_RAO
