"""BatchNorm and its running means: when they move, and in which dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minimx import autograd, cpu, nd, sym
from minimx.ops import batchnorm

X = np.random.default_rng(5).normal(2, 3, (4, 3, 2, 5))
BATCH_MEAN, BATCH_VAR = X.mean((0, 2, 3)), X.var((0, 2, 3))


def arrays(dtype: str = "float32", vectors: str = "float32") -> list[Any]:
    """Data, gamma, beta, and the running means."""
    values = ([2.0, 3.0, 4.0], [0.0, 1.0, -1.0], [0.0, 1.0, 0.5], [1.0, 2.0, 0.5])
    return [nd.array(X, dtype=dtype), *[nd.array(value, dtype=vectors) for value in values]]


def moved(old: list[float], new: np.ndarray, momentum: float = 0.9) -> np.ndarray:
    return np.array(old) * momentum + new * (1 - momentum)


def test_the_backward_pass_of_training_moves_the_running_means() -> None:
    given = arrays()
    for array in given[:3]:
        array.attach_grad()
    with autograd.record():
        y = nd.BatchNorm(*given, momentum=0.8)
    assert given[3].asnumpy().tolist() == [0.0, 1.0, 0.5]
    y.backward()
    np.testing.assert_allclose(given[3].asnumpy(), moved([0, 1, 0.5], BATCH_MEAN, 0.8), rtol=1e-5)
    np.testing.assert_allclose(given[4].asnumpy(), moved([1, 2, 0.5], BATCH_VAR, 0.8), rtol=1e-5)


@pytest.mark.parametrize(("record", "how"), [(True, {"use_global_stats": True}), (False, {}), (True, {})])
def test_nothing_else_moves_them(record: bool, how: dict[str, Any]) -> None:
    given = arrays()
    given[0].attach_grad()
    with autograd.record(train_mode=record and not how) if record else autograd.pause(train_mode=True):
        y = nd.BatchNorm(*given, **how)
    if how:
        y.backward()
    y.wait_to_read()
    assert given[3].asnumpy().tolist() == [0.0, 1.0, 0.5]
    assert given[4].asnumpy().tolist() == [1.0, 2.0, 0.5]


def test_gamma_that_is_fixed_counts_as_one_and_has_no_gradient() -> None:
    given = arrays()
    for array in given[:3]:
        array.attach_grad()
    with autograd.record():
        y = nd.BatchNorm(*given)
    y.backward()
    assert given[1].grad.asnumpy().tolist() == [0, 0, 0]
    np.testing.assert_allclose(given[2].grad.asnumpy(), [40, 40, 40], rtol=1e-5)
    np.testing.assert_allclose(y.asnumpy().std((0, 2, 3)), [1, 1, 1], rtol=1e-3)


@pytest.mark.parametrize("train", [True, False])
def test_float16_data_has_float32_vectors(train: bool) -> None:
    """They are exact enough to be summed up, and so are their gradients, to the second order."""
    found = []
    for dtype in ("float16", "float32"):
        given = arrays(dtype)
        for array in given[:3]:
            array.attach_grad()
        with autograd.record(train_mode=train):
            y = nd.BatchNorm(*given, fix_gamma=False)
            assert y.dtype == np.dtype(dtype)
            (slope,) = autograd.grad(y, [given[0]], [nd.array(X * X / 50, dtype=dtype)], create_graph=True, train_mode=train)
            total = slope * slope
        total.backward(train_mode=train)
        assert [array.grad.dtype for array in given[:2]] == [np.dtype(dtype), np.float32]
        found.append([each.asnumpy().astype("float32") for each in (y, *[array.grad for array in given[:2]], given[3], given[4])])
    for half, single in zip(*found):
        np.testing.assert_allclose(half, single, rtol=2e-2, atol=2e-2 * abs(single).max())


def test_a_far_mean_costs_no_digits() -> None:
    data = nd.array(X + 10000)
    with autograd.train_mode():
        y = nd.BatchNorm(data, *arrays()[1:])
    exact = data.asnumpy().astype("float64")
    wanted = (exact - exact.mean((0, 2, 3), keepdims=True)) / exact.std((0, 2, 3), keepdims=True)
    np.testing.assert_allclose(y.asnumpy() - np.array([0, 1, -1]).reshape(3, 1, 1), wanted, atol=2e-3)


@pytest.mark.parametrize("lengths", [(200, 200), (9, 8), (3, 2)])  # long, short and very short runs of a channel
@pytest.mark.parametrize("together", [batchnorm.TOGETHER, 40])
def test_large_data_is_done_in_parts(lengths: tuple[int, int], together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batchnorm, "TOGETHER", together)
    x = np.random.default_rng(6).normal(1, 2, (9, 3, *lengths)).astype("float32")
    given = [nd.array(x), *arrays()[1:]]
    given[0].attach_grad()
    with autograd.record():
        y = nd.BatchNorm(*given, fix_gamma=False, eps=1e-5)
        loss = (y * y * y).sum()
    loss.backward()
    exact = x.astype("float64")
    z = (exact - exact.mean((0, 2, 3), keepdims=True)) / np.sqrt(exact.var((0, 2, 3), keepdims=True) + 1e-5)
    gamma, beta = (np.array(each).reshape(3, 1, 1) for each in ([2, 3, 4], [0, 1, -1]))
    np.testing.assert_allclose(y.asnumpy(), z * gamma + beta, rtol=1e-4, atol=1e-4)
    head = 3 * (z * gamma + beta) ** 2 * gamma
    rest = head - head.mean((0, 2, 3), keepdims=True) - z * (head * z).mean((0, 2, 3), keepdims=True)
    wanted = rest / np.sqrt(exact.var((0, 2, 3), keepdims=True) + 1e-5)
    np.testing.assert_allclose(given[0].grad.asnumpy(), wanted, rtol=1e-3, atol=1e-3)


def test_shapes_and_dtypes_of_graphs() -> None:
    net = sym.BatchNorm(sym.var("data"), name="bn")
    assert net.list_arguments() == ["data", "bn_gamma", "bn_beta"]
    assert net.list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]
    assert net.list_outputs() == ["bn_output"]
    assert net.infer_shape(data=(2, 3, 4)) == ([(2, 3, 4), (3,), (3,)], [(2, 3, 4)], [(3,), (3,)])
    assert net.infer_shape_partial(bn_gamma=(3,), data=(2, 0, 4))[0] == [(2, 3, 4), (3,), (3,)]
    assert net.infer_type(data="float16")[0] == [np.float16, np.float32, np.float32]
    assert sym.BatchNorm(sym.var("x"), output_mean_var=True, name="bn").list_outputs() == ["bn_output", "bn_mean", "bn_var"]


def test_an_executor_moves_its_auxiliary_states() -> None:
    executor = sym.BatchNorm(sym.var("data"), name="bn", fix_gamma=False).simple_bind(cpu(), data=X.shape)
    executor.arg_dict["data"][:] = X
    executor.arg_dict["bn_gamma"][:] = 1
    executor.forward(is_train=True)
    executor.backward(nd.ones(X.shape))
    np.testing.assert_allclose(executor.aux_dict["bn_moving_mean"].asnumpy(), moved([0, 0, 0], BATCH_MEAN), rtol=1e-5)
    before = executor.aux_dict["bn_moving_var"].asnumpy()
    np.testing.assert_allclose(before, moved([0, 0, 0], BATCH_VAR), rtol=1e-5)
    executor.forward(is_train=False)
    np.testing.assert_array_equal(executor.aux_dict["bn_moving_var"].asnumpy(), before)
