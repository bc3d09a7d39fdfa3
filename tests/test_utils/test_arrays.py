"""Random arrays and shapes, NumPy references, matrices with known properties."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import nd, test_utils as tu
from minimx.base import ArgumentError, ShapeError


def test_shapes():
    np.random.seed(1)
    for _ in range(50):
        assert all(1 <= length <= 4 for length in tu.rand_shape_2d(4, 4))
        assert len(tu.rand_shape_3d()) == 3
        assert all(1 <= length <= 3 for length in tu.rand_shape_nd(5, 3))
    assert (0,) in {tu.rand_shape_nd(1, 1, allow_zero_size=True) for _ in range(50)}
    assert all(isinstance(length, int) for length in tu.rand_shape_nd(3))
    x, y = tu.rand_coord_2d(3, 4, 7, 9)
    assert x == 3
    assert y in (7, 8)


def test_arrays():
    one = tu.random_arrays((2, 3))
    assert (one.shape, one.dtype) == ((2, 3), np.float32)
    several = tu.random_arrays((2,), (), (1, 1))
    assert [each.shape for each in several] == [(2,), (), (1, 1)]
    uniform = tu.random_uniform_arrays((100,), (3,), low=2, high=3, dtype="float64")
    assert len(uniform) == 2
    assert uniform[0].dtype == np.float64
    assert 2 <= uniform[0].min() <= uniform[0].max() <= 3
    assert isinstance(tu.random_uniform_arrays((2,)), list)
    array = tu.rand_ndarray((3, 4), dtype="float16", ctx=mx.cpu(1))
    assert (array.shape, array.dtype, array.context) == ((3, 4), np.float16, mx.cpu(1))
    assert tu.create_2d_tensor(3, 2).asnumpy().tolist() == [[0, 0], [1, 1], [2, 2]]
    assert tu.create_2d_tensor(3, 2).dtype == np.int64
    assert tu.create_vector(4, dtype="float32").asnumpy().tolist() == [0, 1, 2, 3]


def test_samples_of_a_population():
    population = list(range(10))
    drawn = tu.random_sample(population, 4)
    assert len(set(drawn)) == 4
    assert population == list(range(10))
    with pytest.raises(ArgumentError, match="k=11; from 0 to 10"):
        tu.random_sample(population, 11)


@pytest.mark.parametrize(
    "options", [{"stype": "csr"}, {"density": 0.5}, {"distribution": "uniform"}, {"shuffle_csr_indices": True}]
)
def test_sparse_arrays_are_refused(options):
    with pytest.raises(ArgumentError, match="arrays are dense here"):
        tu.rand_ndarray((2, 2), **options)


def test_numpy_references():
    a = np.arange(24.0).reshape(2, 3, 4)
    assert tu.np_reduce(a, 1, True, np.sum).shape == (2, 1, 4)
    np.testing.assert_array_equal(tu.np_reduce(a, (0, 2), False, np.max), a.max((0, 2)))
    assert tu.np_reduce(a, None, False, np.sum) == a.sum()
    assert tu.np_reduce(a, None, True, np.sum).shape == (1, 1, 1)
    np.testing.assert_array_equal(tu.assign_each(a, lambda x: x + 1), a + 1)
    np.testing.assert_array_equal(tu.assign_each2(a, a, lambda x, y: x * y), a * a)
    np.testing.assert_array_equal(tu.assign_each(a, None), a)
    np.testing.assert_array_equal(tu.assign_each2(a, a, None), a)
    with pytest.raises(ShapeError):
        tu.assign_each2(a, a[0], lambda x, y: x)
    np.testing.assert_array_equal(tu.collapse_sum_like(a, (3, 1)), a.sum(0).sum(-1, keepdims=True))
    assert tu.collapse_sum_like(a, ()).shape == ()
    assert tu.collapse_sum_like(np.zeros((2, 0)), (1, 0)).shape == (1, 0)
    with pytest.raises(ShapeError, match=r"cannot have been broadcast from \(2,\)"):
        tu.collapse_sum_like(a, (2,))


def test_matrices():
    assert isinstance(tu.get_identity_mat(3), nd.NDArray)
    assert tu.get_identity_mat(3).asnumpy().tolist() == np.eye(3).tolist()
    assert tu.get_identity_mat_batch(2).shape == (2, 2, 2)
    q = tu.new_orthonormal_matrix_2d(4)
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-12)
    symmetric = tu.new_sym_matrix_with_real_eigvals_nd((2, 3, 4, 4))
    assert symmetric.shape == (2, 3, 4, 4)
    np.testing.assert_allclose(symmetric, np.swapaxes(symmetric, -1, -2), atol=1e-9)
    other = tu.new_matrix_with_real_eigvals_nd((5, 6, 6))
    eigenvalues = np.linalg.eigvals(other)
    assert np.abs(np.imag(eigenvalues)).max() < 1e-6
    assert np.abs(eigenvalues).max() <= 10 + 1e-6
    assert not np.allclose(other, np.swapaxes(other, -1, -2))
    assert tu.new_matrix_with_real_eigvals_nd((4, 4)).shape == (4, 4)
