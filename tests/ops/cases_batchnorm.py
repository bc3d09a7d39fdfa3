"""Rows of ops/batchnorm.py. What it does to the running means is in test_batchnorm.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from minimx import autograd, nd
from minimx.base import ArgumentError, DTypeError, ShapeError
from minimx.op import apply
from minimx.ops import batchnorm, sync_batchnorm

from .harness import Bad, Case, normal, uniform

MEAN, VAR = np.array([0.5, -1.0, 0.25]), np.array([1.0, 0.5, 2.0])


def states(dtype: Any) -> tuple[Any, Any]:
    return nd.array(MEAN, dtype=dtype), nd.array(VAR, dtype=dtype)


def training(x: Any, gamma: Any, beta: Any, **given: Any) -> Any:
    """BatchNorm as in training, with fresh running means."""
    with autograd.train_mode():
        return batchnorm.BatchNorm(x, gamma, beta, *states(gamma.dtype), **{"fix_gamma": False, **given})


def inference(x: Any, gamma: Any, beta: Any, **given: Any) -> Any:
    with autograd.predict_mode():
        return batchnorm.BatchNorm(x, gamma, beta, *states(gamma.dtype), **{"fix_gamma": False, **given})


def across(vector: np.ndarray, ndim: int, axis: int) -> np.ndarray:
    return vector.reshape([-1 if position == axis % ndim else 1 for position in range(ndim)])


def normalized(
    x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, eps: float = 1e-3, axis: int = 1, frozen: bool = False
) -> list[np.ndarray]:
    """Result, mean and reciprocal deviation."""
    others = tuple(position for position in range(x.ndim) if position != axis % x.ndim)
    mean, variance = (MEAN, VAR) if frozen else (x.mean(others), x.var(others))
    scale = 1 / np.sqrt(variance + eps)
    vectors = [across(vector, x.ndim, axis) for vector in (mean, scale, gamma, beta)]
    return [(x - vectors[0]) * vectors[1] * vectors[2] + vectors[3], mean, scale]


def bad(match: str, error: type[Exception], data: tuple[int, ...] = (2, 3, 4), gamma: Any = None, **given: Any) -> Bad:
    """A bad call of BatchNorm."""
    dtype = given.pop("dtype", "float32")

    def call(nd: Any) -> Any:
        vectors = [nd.ones((3,)) for _ in range(4)]
        if gamma is not None:
            vectors[0] = nd.ones(*gamma)
        return nd.BatchNorm(nd.ones(data, dtype=dtype), *vectors, **given)

    return Bad(call, error, match)


BAD = (
    bad("data is int32, wants a floating dtype", DTypeError, dtype="int32"),
    bad("data is float64 but gamma is float32", DTypeError, dtype="float64"),
    bad("gamma is float64 but beta is float32", DTypeError, gamma=((3,), None, "float64")),
    bad("axis 3 is out of range for an array of 3 dimensions", ShapeError, axis=3),
    bad(r"gamma has shape \(4,\), axis 1 of data \(2, 3, 4\) needs \(3,\)", ShapeError, gamma=((4,),)),
    bad(r"gamma has shape \(3,\), axis -1 of data \(2, 3, 4\) needs \(4,\)", ShapeError, axis=-1),
    bad("eps must be a number, got 'a'", ArgumentError, eps="a"),
    Bad(lambda nd: nd.BatchNorm(nd.ones((2, 3)), nd.ones((3,))), ArgumentError, "'beta' is missing"),
)
INPUTS = (normal(2, 3, 4, 5), uniform(0.5, 1.5, 3), normal(3))
ROUGH = {"float32": 1e-4, "float16": 5e-2}  # differences from a mean, divided by a deviation

LAYER = [
    Case(
        "BatchNorm",
        lambda x, gamma, beta: training(x, gamma, beta),
        INPUTS,
        lambda x, gamma, beta: normalized(x, gamma, beta)[0],
        rtol=ROUGH,
        bad=BAD,
    ),
    Case(
        "BatchNorm",
        lambda x, gamma, beta: training(x, gamma, beta, fix_gamma=True, eps=0.1),
        INPUTS,
        lambda x, gamma, beta: normalized(x, np.ones(3), beta, 0.1)[0],
        rtol=ROUGH,
        label="fix-gamma",
    ),
    Case(
        "BatchNorm",
        lambda x, gamma, beta: training(x, gamma, beta, output_mean_var=True),
        INPUTS,
        lambda x, gamma, beta: normalized(x, gamma, beta),
        rtol=ROUGH,
        label="mean-var",
    ),
    Case(
        "BatchNorm",
        lambda x, gamma, beta: training(x, gamma, beta, axis=-1),
        (normal(4, 5, 3), uniform(0.5, 1.5, 3), normal(3)),
        lambda x, gamma, beta: normalized(x, gamma, beta, axis=-1)[0],
        rtol=ROUGH,
        label="channels-last",
    ),
    Case(
        "BatchNorm",
        training,
        (normal(5, 3), uniform(0.5, 1.5, 3), normal(3)),
        lambda x, gamma, beta: normalized(x, gamma, beta)[0],
        rtol=ROUGH,
        label="rows",
    ),
    Case(
        "BatchNorm",
        lambda x, gamma, beta: inference(x, gamma, beta, output_mean_var=True),
        INPUTS,
        lambda x, gamma, beta: normalized(x, gamma, beta, frozen=True),
        rtol=ROUGH,
        label="inference",
    ),
    Case(
        "BatchNorm",
        lambda x, gamma, beta: inference(x, gamma, beta, fix_gamma=True, axis=0),
        (normal(3, 2), uniform(0.5, 1.5, 3), normal(3)),
        lambda x, gamma, beta: normalized(x, np.ones(3), beta, axis=0, frozen=True)[0],
        rtol=ROUGH,
        label="inference-fix-gamma",
    ),
    Case(
        "BatchNorm",
        lambda x, gamma, beta: training(x, gamma, beta, use_global_stats=True),
        INPUTS,
        lambda x, gamma, beta: normalized(x, gamma, beta, frozen=True)[0],
        rtol=ROUGH,
        label="global",
    ),
    Case(
        "BatchNorm",
        lambda x, gamma, beta: inference(x, gamma, beta, axis=0),
        (normal(3), uniform(0.5, 1.5, 3), normal(3)),
        lambda x, gamma, beta: normalized(x, gamma, beta, axis=0, frozen=True)[0],
        rtol=ROUGH,
        label="vector",
    ),
]


def with_relu(x: Any, gamma: Any, beta: Any, **given: Any) -> Any:
    with autograd.train_mode():
        return batchnorm.BatchNormWithReLU(x, gamma, beta, *states(gamma.dtype), fix_gamma=False, **given)


WITH_RELU = [
    Case(
        "_contrib_BatchNormWithReLU",
        lambda x, gamma, beta: with_relu(x, gamma, beta, output_mean_var=True),
        INPUTS,
        lambda x, gamma, beta: [np.maximum(found, 0) if found.ndim > 1 else found for found in normalized(x, gamma, beta)],
        rtol=ROUGH,
    ),
    Case(
        "_contrib_BatchNormWithReLU",
        lambda x, gamma, beta: with_relu(x, gamma, beta, use_global_stats=True),
        INPUTS,
        lambda x, gamma, beta: np.maximum(normalized(x, gamma, beta, frozen=True)[0], 0),
        rtol=ROUGH,
        label="global",
    ),
]


# ---- over several devices


def in_step(x: Any, gamma: Any, beta: Any, is_training: bool = True, **given: Any) -> Any:
    with autograd.train_mode() if is_training else autograd.predict_mode():
        given = {"fix_gamma": False, "key": "layer", **given}
        return sync_batchnorm.SyncBatchNorm(x, gamma, beta, *states(gamma.dtype), **given)


SYNCHRONIZED = [
    Case(
        "_contrib_SyncBatchNorm",
        lambda x, gamma, beta: in_step(x, gamma, beta, output_mean_var=True),
        INPUTS,
        lambda x, gamma, beta: [*normalized(x, gamma, beta)[:2], x.var((0, *range(2, x.ndim)))],
        rtol=ROUGH,
        bad=(
            Bad(
                lambda nd: in_step(nd.ones((2, 3)), nd.ones((3,)), nd.ones((3,)), key=""),
                ArgumentError,
                "key is missing; pass a text",
            ),
            Bad(
                lambda nd: in_step(nd.ones((2, 3)), nd.ones((3,)), nd.ones((3,)), ndev=0),
                ArgumentError,
                "ndev is 0; it must be 1",
            ),
        ),
    ),
    Case(
        "_contrib_SyncBatchNorm",
        lambda x, gamma, beta: in_step(x, gamma, beta, is_training=False, ndev=4),
        INPUTS,
        lambda x, gamma, beta: normalized(x, gamma, beta, frozen=True)[0],
        rtol=ROUGH,
        label="inference",
    ),
]


# ---- its gradient


def backward(head: Any, x: Any, gamma: Any, mean: Any, scale: Any, fix_gamma: bool = False) -> Any:
    op = batchnorm.BatchNormBackward(1, 1e-3, 0.9, fix_gamma)
    return apply(op, head, x, gamma, mean, scale, *states(gamma.dtype))


def gradients(head: np.ndarray, x: np.ndarray, gamma: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> list[np.ndarray]:
    """Those of data, gamma and beta, each projection on 1 and on z taken away by itself."""
    z = (x - across(mean, 4, 1)) * across(scale, 4, 1)
    count = x.size / 3
    rest = head.copy()
    for direction in (np.ones_like(z), z):
        rest -= direction * across((head * direction).sum((0, 2, 3)) / count, 4, 1)
    return [rest * across(gamma * scale, 4, 1), (head * z).sum((0, 2, 3)), head.sum((0, 2, 3))]


GRADIENT_INPUTS = (normal(2, 3, 4, 2), normal(2, 3, 4, 2), normal(3), normal(3), uniform(0.5, 1.5, 3))
GRADIENTS = [
    Case(
        "_backward_BatchNorm",
        backward,
        GRADIENT_INPUTS,
        gradients,
        rtol=ROUGH,
        bad=(
            Bad(
                lambda nd: backward(nd.ones((2, 3, 1)), nd.ones((2, 3)), *[nd.ones((3,)) for _ in range(3)]),
                ShapeError,
                r"head has shape \(2, 3, 1\), data needs \(2, 3\)",
            ),
        ),
    ),
    Case(
        "_backward_BatchNorm",
        lambda *given: backward(*given, fix_gamma=True),
        GRADIENT_INPUTS,
        lambda head, x, gamma, mean, scale: [
            found * keep for found, keep in zip(gradients(head, x, np.ones(3), mean, scale), (1, 0, 1))
        ],
        rtol=ROUGH,
        label="fix-gamma",
    ),
    Case(  # over several devices: tests/parallel
        "_backward_SyncBatchNorm",
        lambda head, x, gamma, mean, scale: apply(
            sync_batchnorm.SyncBatchNormBackward(1, 1e-3, 0.9, False, 1, "key"), head, x, gamma, mean, scale, *states(gamma.dtype)
        ),
        GRADIENT_INPUTS,
        gradients,
        rtol=ROUGH,
    ),
]

CASES = [*LAYER, *WITH_RELU, *SYNCHRONIZED, *GRADIENTS]
