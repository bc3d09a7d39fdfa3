"""Loops for max pooling, and for sums over all axes but one: what NumPy's kernels give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import kernels, nd
from minimx.kernels import sums, windows
from minimx.kernels.fused import Loop
from minimx.op import Op, Spec
from minimx.ops.pool import PoolingFirst, PoolingLayer
from minimx.ops.reduce import Sum

pytest.importorskip("llvmlite")


def pooling(kernel: tuple[int, int], stride: tuple[int, int] | None = None, **how: Any) -> PoolingLayer:
    return PoolingLayer(kernel_size=kernel, stride=kernel if stride is None else stride, **how)


def loop_for(make: Any, op: Op, *arrays: np.ndarray) -> Loop | None:
    loop = make(op, mx.cpu(), *(Spec.of(each.shape, each.dtype) for each in arrays))
    if loop is not None:
        loop.wait()
        assert loop.state == "compiled"
    return loop


def images(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Few different values, so that the largest comes several times, with NaN and infinities among them."""
    random = np.random.default_rng(sum(shape))
    data = random.integers(-4, 4, shape).astype(dtype)
    flat = data.reshape(-1)
    for value in (np.nan, np.inf, -np.inf):
        flat[random.integers(0, flat.size, max(1, flat.size // 50))] = value
    return data


GEOMETRIES = [
    ((2, 2), None, (3, 4, 24, 24)),
    ((2, 2), None, (2, 3, 7, 9)),  # a row and a column are left over
    ((3, 2), None, (2, 3, 9, 8)),
    ((1, 1), None, (1, 2, 5, 3)),
    ((1, 2), (2, 3), (2, 1, 6, 9)),  # elements between the windows
    ((2, 2), (3, 3), (2, 2, 9, 12)),
    ((2, 2), None, (1, 1, 2, 2)),
    ((4, 4), None, (2, 5, 16, 16)),
    ((2, 2), None, (64, 16, 56, 56)),  # shared among threads
]


@pytest.mark.parametrize(("kernel", "stride", "shape"), GEOMETRIES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_max_pooling_and_its_gradient(
    kernel: tuple[int, int], stride: tuple[int, int] | None, shape: tuple[int, ...], dtype: str
) -> None:
    op, data = pooling(kernel, stride), images(*shape, dtype=dtype)
    back = PoolingFirst(**op.shared())
    result = op.kernel(np, data)
    loop = loop_for(windows.largest, op, data)
    if loop is not None:
        got = np.full_like(result, 7)
        assert loop(data, got)
        np.testing.assert_array_equal(got, result)
    else:
        assert dtype == "float64" or shape[3] % op.window.stride[1] != 0 or kernel != op.window.stride
    head = np.random.default_rng(1).standard_normal(result.shape).astype(dtype)
    loop = loop_for(windows.first, back, head, data, result)
    assert loop is not None
    got = np.full_like(data, 7)
    assert loop(head, data, result, got)
    np.testing.assert_array_equal(got, back.kernel(np, head, data, result))


@pytest.mark.parametrize(
    "op",
    [
        pooling((3, 3), (2, 2)), pooling((2, 2), pad=(1, 1)), pooling((2, 2), pool_type="avg"), pooling((2, 2), layout="NHWC"),
        pooling((2, 2), global_pool=True), pooling((5, 5)), pooling((2, 2), pooling_convention="full"),
    ],
)  # fmt: skip
def test_other_windows_have_no_loop(op: PoolingLayer) -> None:
    data = images(2, 3, 11, 11)
    assert loop_for(windows.largest, op, data) is None
    if op.pool_type == "max":
        result = op.kernel(np, data)
        assert loop_for(windows.first, PoolingFirst(**op.shared()), result, data, result) is None


def test_the_gradient_of_an_infinite_head_is_zero_beside_the_largest() -> None:
    data, head = np.array([[[[1.0, 2.0], [0.0, -1.0]]]], np.float32), np.full((1, 1, 1, 1), np.inf, np.float32)
    for kernel, stride in (((2, 2), (2, 2)), ((2, 2), (1, 1))):
        op = pooling(kernel, stride)
        got = PoolingFirst(**op.shared()).kernel(np, head, data, op.kernel(np, data))
        np.testing.assert_array_equal(got, [[[[0, np.inf], [0, 0]]]])


def test_arrays_with_gaps_are_pooled_by_numpy() -> None:
    whole = nd.array(images(4, 6, 8, 8))
    op = pooling((2, 2))
    fast = kernels.faster(op, [Spec.of((4, 3, 8, 8), np.dtype(np.float32))], mx.cpu())
    assert fast is not None
    gaps = whole.asnumpy()[:, ::2]
    np.testing.assert_array_equal(fast(np, gaps), op.kernel(np, gaps))


@pytest.mark.parametrize(
    ("shape", "op"),
    [
        ((300, 40), Sum(axis=(0,))), ((300, 40), Sum(axis=(1,))), ((8, 5, 12, 13), Sum(axis=(0, 2, 3))),
        ((8, 5, 12, 13), Sum(axis=(1,), exclude=True)), ((8, 5, 7, 9), Sum(axis=(0, 1, 2))),
        ((8, 5, 12, 13), Sum(axis=(0, 2, 3), keepdims=True)), ((64, 32, 40, 40), Sum(axis=(0, 2, 3))),
        *(((rows, channels), Sum(axis=(0,))) for rows in (1, 3, 17, 255, 1030) for channels in (2, 6, 16, 48, 84, 129, 256, 3000)),
        ((16, 60, 60, 32), Sum(axis=(0, 1, 2))), ((16, 60, 60, 6), Sum(axis=(0, 1, 2))),
    ],
)  # fmt: skip
def test_sums_over_all_axes_but_one(shape: tuple[int, ...], op: Sum) -> None:
    data = np.random.default_rng(0).standard_normal(shape, np.float32)
    assert sums.fits(op, [Spec.of(shape, data.dtype)])
    loop = sums.loop_of(op, [Spec.of(shape, data.dtype)])
    loop.wait()
    exact = op.kernel(np, data.astype(np.float64))
    got = np.full(exact.shape, 7, np.float32)
    assert loop(data, got)
    count = data.size / got.size
    np.testing.assert_allclose(got, exact, 1e-6, 1e-7 * count if loop.source == sums.VECTORS else 1e-6 * np.sqrt(count))
    assert len(op.plan(shape)[0]) == len(shape) - 1


@pytest.mark.parametrize(("shape", "axes"), [((1, 2, 3000, 1000), (0, 2, 3)), ((3_000_000, 1), (0,)), ((1_000_003, 3), (0,))])
def test_a_long_sum_is_as_exact_as_numpys(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    data = np.random.default_rng(0).random(shape, np.float32)
    loop = sums.loop_of(Sum(axis=axes), [Spec.of(shape, data.dtype)])
    loop.wait()
    exact = data.sum(axes, np.float64)
    got = np.empty(exact.shape, np.float32)
    assert loop(data, got)
    np.testing.assert_allclose(got, exact, 3e-7)


@pytest.mark.parametrize(
    ("op", "shape", "dtype"),
    [
        (Sum(axis=(0,)), (30, 40, 5), "float32"), (Sum(axis=(0,)), (300, 40), "float64"), (Sum(axis=(0,)), (0, 4), "float32"),
        (Sum(), (300, 40), "float32"), (Sum(axis=()), (2000,), "float32"),
    ],
)  # fmt: skip
def test_other_sums_have_no_loop(op: Sum, shape: tuple[int, ...], dtype: str) -> None:
    assert not sums.fits(op, [Spec.of(shape, np.dtype(dtype))])
