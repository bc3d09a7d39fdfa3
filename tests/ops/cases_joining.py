"""Rows of minimx/ops/joining.py."""

from __future__ import annotations

import numpy as np

from minimx import nd
from minimx.base import ArgumentError, DTypeError, ShapeError
from minimx.op import apply
from minimx.ops import joining

from .harness import Bad, Case, integers, normal

JOINS: list[Case] = [
    Case("Concat", lambda x, y: nd.concat(x, y), (normal(2, 3), normal(2, 1)), lambda x, y: np.concatenate((x, y), 1),
         label="two"),
    Case("Concat", lambda x, y, z: nd.Concat(x, y, z, dim=0), (normal(2, 3), normal(0, 3), normal(1, 3)),
         lambda *data: np.concatenate(data, 0), label="three"),
    Case("Concat", lambda x, y: nd.concat(x, y, dim=-2, num_args=2), (normal(2, 1, 2), normal(2, 3, 2)),
         lambda x, y: np.concatenate((x, y), 1), label="negative"),
    Case("Concat", lambda x: nd.concat(x, dim=0), (normal(2, 3),), lambda x: x, label="one"),
    Case("Concat", lambda x, y: nd.concat(x, y, dim=0), (integers(0, 9, 2), integers(0, 9, 3)),
         lambda x, y: np.concatenate((x, y)), False,
         label="integers", bad=(
        Bad(lambda nd: nd.concat(nd.ones((3, 2)), nd.ones((2, 3))), ShapeError,
            r"input 1 has shape \(2, 3\), input 0 \(3, 2\); only dim 1 may"),
        Bad(lambda nd: nd.concat(nd.ones((3, 2)), nd.ones(2)), ShapeError, r"input 1 has shape \(2,\)"),
        Bad(lambda nd: nd.concat(nd.ones(3), nd.ones(2)), ShapeError, r"Concat: dim 1 is out of range"),
        Bad(lambda nd: nd.concat(nd.ones((1, 2)), nd.ones((1, 2), dtype="float64")), DTypeError,
            r"data0 is float32 but data1 is float64"),
        Bad(lambda nd: nd.concat(nd.ones(2), num_args=2), ArgumentError, r"num_args is 2, but 1 arrays were given"),
        Bad(lambda nd: nd.concat(), ArgumentError, r"Concat: an NDArray or a Symbol is wanted, got nothing"),
    )),
    Case("_rnn_param_concat", lambda x, y: joining.rnn_param_concat(x, y, dim=0), (normal(2), normal(3)),
         lambda x, y: np.concatenate((x, y))),
    Case("stack", lambda x, y: nd.stack(x, y), (normal(2, 3), normal(2, 3)), lambda x, y: np.stack((x, y)), label="front"),
    Case("stack", lambda x, y: nd.stack(x, y, axis=-1), (normal(2, 3), normal(2, 3)), lambda x, y: np.stack((x, y), -1),
         label="back"),
    Case("stack", lambda x: nd.stack(x, axis=1), (normal(2, 0),), lambda x: x[:, None], label="one", bad=(
        Bad(lambda nd: nd.stack(nd.ones((3, 2)), nd.ones((2, 3))), ShapeError,
            r"data0 has shape \(3, 2\), data1 has \(2, 3\); they must be equal"),
        Bad(lambda nd: nd.stack(nd.ones(3), axis=2), ShapeError, r"stack: axis 2 is out of range"),
        Bad(lambda nd: nd.stack(nd.ones(3), nd.ones(3, dtype="int32")), DTypeError, r"data0 is float32 but data1 is int32"),
        Bad(lambda nd: nd.stack(nd.ones(3), num_args=2), ArgumentError, r"num_args is 2"),
    )),
]  # fmt: skip

SPLITS: list[Case] = [
    Case("SliceChannel", lambda x: nd.split(x, num_outputs=3), (normal(2, 6, 2),), lambda x: tuple(np.split(x, 3, 1)),
         label="three"),
    Case("SliceChannel", lambda x: nd.SliceChannel(x, 2, axis=-1), (normal(2, 4),), lambda x: tuple(np.split(x, 2, -1)),
         label="negative"),
    Case("SliceChannel", lambda x: nd.split(x, 3, squeeze_axis=True), (normal(2, 3, 4),), lambda x: (x[:, 0], x[:, 1], x[:, 2]),
         label="squeeze"),
    Case("SliceChannel", lambda x: nd.split(x, 2, 0, True), (normal(2),), lambda x: (x[:1], x[1:]), label="squeeze-1d"),
    Case("SliceChannel", lambda x: nd.split(x, 1), (normal(2, 3),), lambda x: x, label="one"),
    Case("SliceChannel", lambda x: nd.split(x, 3)[1] * 2, (normal(2, 3),), lambda x: x[:, 1:2] * 2, label="one-used"),
    Case("SliceChannel", lambda x: nd.split(x, 3, squeeze_axis=True)[2], (normal(2, 3),), lambda x: x[:, 2],
         label="one-used-squeezed", bad=(
        Bad(lambda nd: nd.split(nd.ones((2, 3)), 2), ShapeError,
            r"axis 1 has length 3, which does not divide into 2 equal parts"),
        Bad(lambda nd: nd.split(nd.ones((2, 3)), 0), ArgumentError, r"num_outputs is 0, wants 1 or more"),
        Bad(lambda nd: nd.split(nd.ones((2, 4)), 2, squeeze_axis=True), ShapeError,
            r"have lengths \[2, 2\]; squeeze_axis=True needs length 1"),
        Bad(lambda nd: nd.split(nd.ones((2, 4)), 2, axis=2), ShapeError, r"SliceChannel: axis 2 is out of range"),
    )),
    Case("_split_v2", lambda x: nd.split_v2(x, (1, 3), axis=1), (normal(2, 4),), lambda x: (x[:, :1], x[:, 1:3], x[:, 3:]),
         label="indices"),
    Case("_split_v2", lambda x: nd.split_v2(x, 2), (normal(4, 3),), lambda x: (x[:2], x[2:]), label="sections"),
    Case("_split_v2", lambda x: nd.split_v2(x, (1, 2), squeeze_axis=True), (normal(3, 2),), lambda x: (x[0], x[1], x[2]),
         label="squeeze"),
    Case("_split_v2", lambda x: nd.split_v2(x, [1, 1], axis=-1), (normal(2, 3),), lambda x: (x[:, :1], x[:, :0], x[:, 1:]),
         label="empty-part"),
    Case("_split_v2", lambda x: nd.split_v2(x, ()), (normal(2, 3),), lambda x: x, label="one"),
    Case("_split_v2", lambda x: nd.split_v2(x, (1, 3))[1], (normal(4, 2),), lambda x: x[1:3], label="one-used", bad=(
        Bad(lambda nd: nd.split_v2(nd.ones(3), 2), ValueError, r"axis 0 has length 3, which does not divide into 2 equal parts"),
        Bad(lambda nd: nd.split_v2(nd.ones(3), 0), ArgumentError, r"indices_or_sections is 0, wants 1 or more"),
        Bad(lambda nd: nd.split_v2(nd.ones(3), (1, 5)), ShapeError, r"cannot be cut into parts that begin at \(0, 1, 5\)"),
        Bad(lambda nd: nd.split_v2(nd.ones(3), (2, 1)), ShapeError, r"positions must ascend from 0 to 3"),
        Bad(lambda nd: apply(joining.PartsAt((1, 2), 0), nd.ones(3)), ShapeError, r"begin at \(1, 2\)"),
    )),
]  # fmt: skip

COPIES: list[Case] = [
    Case("tile", lambda x: nd.tile(x, reps=(2, 3)), (normal(2, 2),), lambda x: np.tile(x, (2, 3)), label="equal"),
    Case("tile", lambda x: nd.tile(x, 2), (normal(2, 3),), lambda x: np.tile(x, 2), label="int"),
    Case("tile", lambda x: nd.tile(x, (2, 1, 2)), (normal(2, 3),), lambda x: np.tile(x, (2, 1, 2)), label="longer"),
    Case("tile", lambda x: nd.tile(x, ()), (normal(2, 3),), lambda x: x, label="none"),
    Case("tile", lambda x: nd.tile(x, (2, 4, 6)), (normal(2, 0, 3),), lambda x: np.tile(x, (2, 4, 6)), label="empty", bad=(
        Bad(lambda nd: nd.tile(nd.ones((2, 3)), (1, 0)), ArgumentError, r"reps is \(1, 0\), wants positive numbers"),
        Bad(lambda nd: nd.tile(nd.ones((2, 3)), (1, 2, -3)), ArgumentError, r"reps is \(1, 2, -3\)"),
    )),
    Case("repeat", lambda x: nd.repeat(x, repeats=2), (normal(2, 3),), lambda x: np.repeat(x, 2), label="flat"),
    Case("repeat", lambda x: nd.repeat(x, 3, axis=1), (normal(2, 3),), lambda x: np.repeat(x, 3, 1), label="axis"),
    Case("repeat", lambda x: nd.repeat(x, 2, -2), (normal(2, 3),), lambda x: np.repeat(x, 2, 0), label="negative"),
    Case("repeat", lambda x: nd.repeat(x, 0, 1), (normal(2, 3),), lambda x: x[:, :0], label="never"),
    Case("repeat", lambda x: nd.repeat(x, 1), (integers(0, 9, 2, 2),), lambda x: x.ravel(), False, label="once", bad=(
        Bad(lambda nd: nd.repeat(nd.ones(3), -1), ArgumentError, r"repeats is -1, wants 0 or more"),
        Bad(lambda nd: nd.repeat(nd.ones(3), 2, 1), ShapeError, r"repeat: axis 1 is out of range"),
    )),
]  # fmt: skip

CASES: list[Case] = [*JOINS, *SPLITS, *COPIES]
