"""Random arrays, shapes and matrices to test with. They are drawn from NumPy's generator, which `np.random.seed` fixes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import nd
from ..base import ArgumentError, DTypeLike, ShapeError, shown
from ..device import Context, current_context
from ..nd import NDArray
from .comparison import default_dtype

__all__ = [
    "assign_each", "assign_each2", "collapse_sum_like", "create_2d_tensor", "create_vector", "get_identity_mat", "get_identity_mat_batch",
    "new_matrix_with_real_eigvals_2d", "new_matrix_with_real_eigvals_nd", "new_orthonormal_matrix_2d",
    "new_sym_matrix_with_real_eigvals_2d", "new_sym_matrix_with_real_eigvals_nd", "np_reduce", "rand_coord_2d", "rand_ndarray",
    "rand_shape_2d", "rand_shape_3d", "rand_shape_nd", "random_arrays", "random_sample", "random_uniform_arrays",
]  # fmt: skip

Numbers = np.ndarray[Any, Any]
Shape = tuple[int, ...]


# ---- shapes


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> Shape:
    """A shape of two axes, of 1 (or 0) to `dim0` and `dim1` elements. **Source** MXNet `test_utils`, by the names of the functions."""
    return _shape((dim0, dim1), allow_zero_size)


def rand_shape_3d(dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False) -> Shape:
    """A shape of three axes."""
    return _shape((dim0, dim1, dim2), allow_zero_size)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> Shape:
    """A shape of `num_dim` axes of 1 (or 0) to `dim` elements.

    >>> len(rand_shape_nd(4))
    4
    """
    return _shape((dim,) * num_dim, allow_zero_size)


def _shape(most: Shape, allow_zero_size: bool) -> Shape:
    return tuple(int(np.random.randint(0 if allow_zero_size else 1, length + 1)) for length in most)


def rand_coord_2d(x_low: int, x_high: int, y_low: int, y_high: int) -> tuple[np.int64, np.int64]:
    """A point of a grid: x from `x_low` to below `x_high`, y alike."""
    return np.random.randint(x_low, x_high, dtype=np.int64), np.random.randint(y_low, y_high, dtype=np.int64)


# ---- arrays


def random_arrays(*shapes: Shape) -> Any:
    """Float32 arrays of normally distributed numbers: a list, or the array itself if there is one shape."""
    arrays = [np.asarray(np.random.standard_normal(shape)).astype(default_dtype()) for shape in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def random_uniform_arrays(*shapes: Shape, low: float = 0.0, high: float = 1.0, dtype: DTypeLike = np.float32) -> list[Numbers]:
    """Arrays of uniformly distributed numbers, always in a list."""
    return [np.random.uniform(low, high, size=shape).astype(dtype) for shape in shapes]


def random_sample(population: Sequence[Any], k: int) -> Any:
    """`k` different elements of `population`, in random order."""
    if not 0 <= k <= len(population):
        raise ArgumentError(f"random_sample: k={k}; from 0 to {len(population)} elements can be drawn")
    shuffled = population[:]
    np.random.shuffle(shuffled)
    return shuffled[:k]


def rand_ndarray(
    shape: Shape, stype: str = "default", density: float | None = None, dtype: DTypeLike = None, modifier_func: Any = None,
    shuffle_csr_indices: bool = False, distribution: str | None = None, ctx: Context | None = None,
) -> NDArray:  # fmt: skip
    """A dense array of normally distributed numbers.

    **Raises** ArgumentError for a sparse `stype`, or an argument that only sparse arrays have.
    """
    sparse = [density is not None, modifier_func is not None, shuffle_csr_indices, distribution is not None]
    if stype != "default" or any(sparse):
        raise ArgumentError(
            f"rand_ndarray: stype={shown(stype)}: arrays are dense here; leave out stype, density, modifier_func, "
            "shuffle_csr_indices and distribution"
        )
    return nd.array(random_arrays(shape), ctx=ctx or current_context(), dtype=dtype)


def create_2d_tensor(rows: int, columns: int, dtype: DTypeLike = np.int64) -> NDArray:
    """An array (rows, columns) each of whose elements is the number of its row."""
    return nd.array(np.repeat(np.arange(rows), columns).reshape(rows, columns), dtype=dtype)


def create_vector(size: int, dtype: DTypeLike = np.int64) -> NDArray:
    """The numbers from 0 to below `size`."""
    return nd.arange(0, size, dtype=dtype)


def get_identity_mat(size: int) -> NDArray:
    """The identity matrix (size, size)."""
    return nd.eye(size)


def get_identity_mat_batch(size: int) -> NDArray:
    """Two identity matrices (2, size, size)."""
    return nd.stack(nd.eye(size), nd.eye(size))


# ---- NumPy references


def assign_each(the_input: Numbers, function: Callable[[Any], Any] | None) -> Numbers:
    """`function` of each element (None: the elements), in float64."""
    return np.array(the_input) if function is None else _each(function, the_input)


def assign_each2(input1: Numbers, input2: Numbers, function: Callable[[Any, Any], Any] | None) -> Numbers:
    """`function` of each pair of elements (None: those of `input1`), in float64."""
    if function is None:
        return np.array(input1)
    if input1.shape != input2.shape:
        raise ShapeError(f"assign_each2: the shapes {input1.shape} and {input2.shape} must be equal")
    return _each(function, input1, input2)


def _each(function: Callable[..., Any], *arrays: Numbers) -> Numbers:
    results = [function(*elements) for elements in zip(*(each.ravel() for each in arrays))]
    return np.array(results, dtype=np.float64).reshape(arrays[0].shape)


def np_reduce(
    dat: Numbers, axis: int | Sequence[int] | None, keepdims: bool, numpy_reduce_func: Callable[..., Numbers]
) -> Numbers:
    """`numpy_reduce_func`, such as `np.sum`, along `axis`: one, several in turn, or None for all."""
    axes = [axis] if isinstance(axis, int) else list(range(dat.ndim)) if axis is None else list(axis)
    result = dat
    for each in sorted(axes, reverse=True):
        result = numpy_reduce_func(result, axis=each)
    if keepdims:
        lengths = list(dat.shape)
        for each in axes:
            lengths[each] = 1
        result = result.reshape(lengths)
    return result


def collapse_sum_like(a: Numbers, shape: Shape) -> Numbers:
    """`a` summed to `shape`, from which it could have been broadcast.

    >>> collapse_sum_like(np.ones((4, 2, 3)), (2, 1))
    array([[12.],
           [12.]])
    """
    more = a.ndim - len(shape)
    if more < 0 or any(length not in (1, have) for length, have in zip(shape, a.shape[more:])):
        raise ShapeError(f"collapse_sum_like: an array {a.shape} cannot have been broadcast from {shape}")
    axes = (*range(more), *(more + axis for axis, length in enumerate(shape) if length != a.shape[more + axis]))
    return a.sum(axis=axes, dtype=a.dtype).reshape(shape)


# ---- matrices


def new_orthonormal_matrix_2d(n: int) -> Numbers:
    """A random orthonormal matrix (n, n)."""
    return np.linalg.qr(np.random.standard_normal((n, n)))[0]


def new_sym_matrix_with_real_eigvals_2d(n: int) -> Numbers:
    """A random symmetric matrix (n, n) with eigenvalues from -10 to 10."""
    basis = new_orthonormal_matrix_2d(n)
    return basis.T * np.random.uniform(-10, 10, n) @ basis


def new_sym_matrix_with_real_eigvals_nd(shape: Shape) -> Numbers:
    """Random symmetric matrices: `shape` is (..., n, n)."""
    return _matrices(new_sym_matrix_with_real_eigvals_2d, shape)


def new_matrix_with_real_eigvals_2d(n: int) -> Numbers:
    """A random matrix (n, n) with real eigenvalues from -10 to 10; the matrix of its eigenvectors has a condition number below 3."""
    mirror = np.random.uniform(-1, 1, (n, 1))
    reflection = np.eye(n) - 2 * mirror @ mirror.T / (mirror.T @ mirror)
    lengths = np.random.uniform(0.4, 1, n) * np.random.choice([-1, 1], n)  # unequal, or the matrix would be symmetric
    vectors = reflection * lengths
    return np.linalg.inv(vectors) * np.random.uniform(-10, 10, n) @ vectors


def new_matrix_with_real_eigvals_nd(shape: Shape) -> Numbers:
    """Random matrices with real eigenvalues: `shape` is (..., n, n)."""
    return _matrices(new_matrix_with_real_eigvals_2d, shape)


def _matrices(make: Callable[[int], Numbers], shape: Shape) -> Numbers:
    count = int(np.prod(shape[:-2], dtype=int))
    return np.array([make(shape[-1]) for _ in range(count)]).reshape(shape)
