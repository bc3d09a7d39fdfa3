"""Rows of minimx/ops/creation.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from minimx import nd
from minimx.base import ArgumentError, ShapeError
from minimx.op import Op
from minimx.ops import creation

from .harness import Bad, Case, integers, normal

float32, int32, uint8 = np.dtype("float32"), np.dtype("int32"), np.dtype("uint8")


def made(label: str, op: str, call: Any, want: Any, *bad: Bad) -> Case:
    """A row of an operator without inputs."""
    return Case(op, call, (), lambda: want, False, dtypes=("float32",), label=label, bad=bad)


def refused(op: Op, error: type[Exception], match: str) -> Bad:
    return Bad(lambda nd: op.infer(), error, match)


MADE: list[Case] = [
    made("2d", "_zeros", lambda: nd.zeros((2, 3)), np.zeros((2, 3)), refused(creation.Zeros((2, -1)), ShapeError,
         r"lengths cannot be negative")),
    made("int32", "_ones", lambda: nd.ones(3, dtype="int32"), np.ones(3), refused(creation.Ones((-1,)), ShapeError, "negative")),
    made("2d", "_full", lambda: nd.full((2, 2), 3.5), np.full((2, 2), 3.5)),
    made("int32", "_full", lambda: nd.full((2,), 3.7, dtype="int32"), np.array([3, 3]), refused(creation.Full(1, (-2,)),
         ShapeError, "negative")),
    made("square", "_eye", lambda: nd.eye(3), np.eye(3)),
    made("above", "_eye", lambda: nd.eye(2, 4, 1, dtype="float64"), np.eye(2, 4, 1)),
    made("below", "_eye", lambda: nd.eye(3, k=-2), np.eye(3, k=-2), refused(creation.Eye(-1), ShapeError, "negative")),
    made("stop", "_arange", lambda: nd.arange(5), np.arange(5.0)),
    made("step", "_arange", lambda: nd.arange(0, 1, 0.3), np.arange(0, 1, 0.3)),
    made("down", "_arange", lambda: nd.arange(50, -50, -2, dtype="int32"), np.arange(50, -50, -2)),
    made("repeat", "_arange", lambda: nd.arange(1, 4, repeat=3), np.repeat(np.arange(1.0, 4), 3)),
    # whole numbers: start and step are cut first, as in NumPy
    made("cut", "_arange", lambda: nd.arange(1.3, 9.6, 1.3, dtype="int32"), np.arange(1, 8)),
    made("wraps", "_arange", lambda: nd.arange(-2, 2, dtype="uint8"), np.array([254, 255, 0, 1]),
         refused(creation.Arange(5.0, 5.0), ArgumentError, r"from 5.0 to 5.0 in steps of 1.0 there are no numbers"),
         refused(creation.Arange(0.0, 5.0, 0.0), ArgumentError, r"step is 0.0 .* must not be 0"),
         refused(creation.Arange(0.0, 5.0, repeat=0), ArgumentError, r"repeat 0"),
         Bad(lambda nd: creation.Arange(0.0, infer_range=True).kernel(np), ShapeError, r"infer_range leaves the length")),
    made("closed", "_linspace", lambda: nd.linspace(0, 1, 5), np.linspace(0, 1, 5)),
    made("open", "_linspace", lambda: nd.linspace(3, 0, 4, endpoint=False), np.linspace(3, 0, 4, endpoint=False)),
    made("one", "_linspace", lambda: nd.linspace(2, 5, 1), np.array([2.0])),
    made("int32", "_linspace", lambda: nd.linspace(0, 9, 4, dtype="int32"), np.array([0, 3, 6, 9]),
         refused(creation.Linspace(0.0, 1.0, -2), ArgumentError, r"num is -2, wants 0 or more")),
]  # fmt: skip

OF_SHAPES: list[Case] = [
    Case("shape_array", lambda x: nd.shape_array(x), (normal(2, 0, 4),), lambda x: np.array(x.shape), False),
    Case("size_array", lambda x: nd.size_array(x), (normal(2, 3, 4),), lambda x: np.array([24]), False),
    Case("_contrib_arange_like", lambda x: nd.contrib.arange_like(x, start=2, step=3), (normal(2, 3),),
         lambda x: 2 + 3 * np.arange(6.0).reshape(2, 3), False, label="whole"),
    Case("_contrib_arange_like", lambda x: nd.contrib.arange_like(x, start=2, step=0.5, axis=-1), (normal(2, 3),),
         lambda x: np.array([2, 2.5, 3]), False, label="axis"),
    Case("_contrib_arange_like", lambda x: nd.contrib.arange_like(x, repeat=4), (normal(2, 3),),
         lambda x: np.array([[0, 0, 0], [0, 1, 1]]), False, label="repeat"),
    Case("_contrib_arange_like", lambda x: nd.contrib.arange_like(x), (integers(0, 9, 4),), lambda x: np.arange(4), False,
         label="int", bad=(
        Bad(lambda nd: nd.contrib.arange_like(nd.ones(3), axis=1), ShapeError, r"arange_like: axis 1 is out of range"),
        Bad(lambda nd: nd.contrib.arange_like(nd.ones(3), repeat=0), ArgumentError, r"repeat is 0, wants 1 or more"),
    )),
    Case("_contrib_index_array", lambda x: nd.contrib.index_array(x), (normal(3, 2),), lambda x: np.stack(np.mgrid[:3, :2], -1),
         False, label="all"),
    Case("_contrib_index_array", lambda x: nd.contrib.index_array(x, axes=(2, -3)), (normal(3, 2, 4),),
         lambda x: np.stack(np.mgrid[:3, :2, :4], -1)[..., [2, 0]], False, label="axes"),
    Case("_contrib_index_array", lambda x: nd.contrib.index_array(x), (normal(0, 2),), lambda x: np.zeros((0, 2, 2)), False,
         label="empty", bad=(
        Bad(lambda nd: nd.contrib.index_array(nd.ones((2, 3)), axes=(2,)), ShapeError, r"index_array: axis 2 is out of range"),
    )),
]  # fmt: skip


def columns(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, [[3], [4], [5]], (3, 20))


POSITIONS: list[Case] = [
    Case("_ravel_multi_index", lambda x: nd.ravel_multi_index(x, shape=(3, 4, 5)), (columns,),
         lambda x: np.ravel_multi_index(x, (3, 4, 5)), False,
         label="int"),
    Case("_ravel_multi_index", lambda x: nd.ravel_multi_index(x, (-1, 4, 5)), (lambda rng: columns(rng).astype(float),),
         lambda x: np.ravel_multi_index(x.astype(int), (3, 4, 5)), False, label="open", bad=(
        Bad(lambda nd: nd.ravel_multi_index(nd.ones((2, 3)), (3, 4, 5)), ShapeError, r"data has shape \(2, 3\), wants \(3, N\)"),
        Bad(lambda nd: nd.ravel_multi_index(nd.ones(2), (3, 4)), ShapeError, r"data has shape \(2,\)"),
        Bad(lambda nd: nd.ravel_multi_index(nd.ones((2, 3)), (3, 0)), ArgumentError,
            r"shape is \(3, 0\), wants positive lengths"),
        Bad(lambda nd: nd.ravel_multi_index(nd.ones((2, 3))), ArgumentError, r"shape is \(\)"),
    )),
    Case("_unravel_index", lambda x: nd.unravel_index(x, shape=(3, 4)), (integers(0, 12, 2, 5),),
         lambda x: np.stack(np.unravel_index(x, (3, 4))),
         False, label="int"),
    Case("_unravel_index", lambda x: nd.unravel_index(x, (-1, 4)), (lambda rng: rng.integers(0, 12, 9).astype(float),),
         lambda x: np.stack(np.unravel_index(x.astype(int), (3, 4))), False, label="open", bad=(
        Bad(lambda nd: nd.unravel_index(nd.ones(3)), ArgumentError, r"shape is \(\), wants positive lengths"),
    )),
]  # fmt: skip

CASES: list[Case] = [*MADE, *OF_SHAPES, *POSITIONS]
