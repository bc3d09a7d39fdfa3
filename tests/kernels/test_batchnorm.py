"""BatchNorm over channels that are last: the loops in machine code against NumPy's kernels in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import kernels
from minimx.kernels import batchnorm
from minimx.op import Op, Spec
from minimx.ops.batchnorm import BatchNormBackward, BatchNormLayer

Arrays = tuple[np.ndarray, ...]


def agree(op: Op, *arrays: np.ndarray) -> None:
    """The loop's outputs, and what it leaves in its operands, are those of NumPy in double precision, and nearer than NumPy's in single."""
    fast: Any = kernels.faster(op, [Spec.of(each.shape, each.dtype) for each in arrays], mx.cpu())
    assert fast is not None
    assert fast.implementation == "loops in machine code"
    exact, given = [each.astype(np.float64) for each in arrays], [each.copy() for each in arrays]
    wanted = (*op.kernel(np, *exact), *exact)
    got = (*fast(np, *given), *given)
    rows = arrays[0].size // arrays[0].shape[-1]
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == np.float32
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, 1e-5, 1e-5 if other.ndim > 1 else 1e-6 * np.sqrt(rows))


@pytest.mark.parametrize("fix_gamma", [False, True])
@pytest.mark.parametrize(
    "shape",
    [
        (700, 9), (17, 5, 6, 13), (3, 1, 8, 200), (4096, 1), (2100, 2), (1500, 3), (1025, 6), (4, 16, 16, 16), (257, 24), (511, 33),
        (3, 2000), (1, 5000), (140_000, 16), (70_001, 7),
    ],
)  # fmt: skip
def test_values_and_gradients(shape: tuple[int, ...], fix_gamma: bool) -> None:
    random = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, np.float32)

    channels = shape[-1]
    data, head = normal(*shape) * 2 + 3, normal(*shape)
    gamma, beta, mean, scale = normal(channels), normal(channels), normal(channels), np.abs(normal(channels)) + 0.5
    for training in (False, True):
        agree(BatchNormLayer(axis=-1, fix_gamma=fix_gamma, training=training), data, gamma, beta, mean, scale)
    agree(BatchNormBackward(axis=-1, fix_gamma=fix_gamma), head, data, gamma, mean, scale, normal(channels), scale + 1)


def test_running_means_with_gaps_are_moved() -> None:
    random = np.random.default_rng(0)
    data, head = random.standard_normal((2, 900, 8)).astype(np.float32)
    ones, moving = np.ones(8, np.float32), np.zeros((8, 3), np.float32)
    op = BatchNormBackward(axis=-1)
    arrays = (head, data, ones, data.mean(0), ones, moving[:, 0], moving[:, 2])
    fast: Any = kernels.faster(op, [Spec.of(each.shape, each.dtype) for each in arrays], mx.cpu())
    fast(np, *arrays)
    np.testing.assert_allclose(moving[:, 0], data.mean(0) * 0.1, 1e-4, 1e-6)
    assert (moving[:, 1] == 0).all()
    assert (moving[:, 2] != 0).all()


def test_results_go_where_they_are_wanted() -> None:
    data, ones, zeros = np.ones((900, 8), np.float32), np.ones(8, np.float32), np.zeros(8, np.float32)
    fast: Any = kernels.faster(
        BatchNormLayer(axis=-1), [Spec.of(each.shape, each.dtype) for each in (data, ones, ones, ones, ones)], mx.cpu()
    )
    out = np.full_like(data, 7)
    assert fast(np, data, ones, ones, zeros, ones, out=out)[0] is out
    np.testing.assert_allclose(out, 2, 1e-3)


def test_data_far_from_zero_keep_their_digits() -> None:
    data = (1000 + np.random.default_rng(0).standard_normal((100_000, 8))).astype(np.float32)
    ones, zeros = np.ones(8, np.float32), np.zeros(8, np.float32)
    op = BatchNormLayer(axis=-1, training=True)
    fast: Any = kernels.faster(op, [Spec.of(each.shape, each.dtype) for each in (data, ones, zeros, zeros, ones)], mx.cpu())
    result, mean, scale = fast(np, data, ones, zeros, zeros, ones)
    exact = data.astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean(0), 1e-6)
    np.testing.assert_allclose(scale, 1 / np.sqrt(exact.var(0) + op.eps), 1e-4)
    np.testing.assert_allclose(result, (exact - exact.mean(0)) / np.sqrt(exact.var(0) + op.eps), atol=2e-3)


def test_what_is_no_number_stays_in_its_channel() -> None:
    data = np.random.default_rng(0).standard_normal((800, 16), np.float32)
    data[7, 3], data[9, 5] = np.nan, np.inf
    ones, zeros = np.ones(16, np.float32), np.zeros(16, np.float32)
    op = BatchNormLayer(axis=-1, training=True)
    fast: Any = kernels.faster(op, [Spec.of(each.shape, each.dtype) for each in (data, ones, zeros, zeros, ones)], mx.cpu())
    result, mean, _ = fast(np, data, ones, zeros, zeros, ones)
    assert np.flatnonzero(np.isnan(result).any(0)).tolist() == [3, 5]
    assert np.flatnonzero(~np.isfinite(mean)).tolist() == [3, 5]


@pytest.mark.parametrize(("axis", "shape"), [(1, (16, 8, 9, 9)), (0, (40, 300)), (-1, (40, 30))])
def test_other_data_are_numpys(axis: int, shape: tuple[int, ...]) -> None:
    vector = Spec.of((shape[axis],), np.dtype(np.float32))
    op = BatchNormLayer(axis=axis, training=True)
    assert kernels.faster(op, [Spec.of(shape, np.dtype(np.float32)), vector, vector, vector, vector], mx.cpu()) is None


def test_the_blocks() -> None:
    for channels in range(1, 200):
        block = batchnorm.block_of(channels)
        assert block.width <= channels
