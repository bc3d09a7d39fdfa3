"""Rows of minimx/ops/shape.py, layout.py and broadcast.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from minimx import nd
from minimx.base import ArgumentError, ShapeError
from minimx.ops import shape as shape_ops

from .harness import Bad, Case, integers, normal


def reshaped(op: str, source: tuple[int, ...], result: tuple[int, ...], label: str, *arguments: Any, **named: Any) -> Case:
    """A row whose result has the same numbers in another shape. `op` is a public function's name, too."""
    function = {"Reshape": shape_ops.reshape, "Flatten": nd.flatten}.get(op) or getattr(nd, op)
    return Case(op, lambda x: function(x, *arguments, **named), (normal(*source),), lambda x: x.reshape(result), label=label)


# What codes make of a shape: source, codes, read from the right, result. Checked against MXNet 1.9.1.
CODES: list[tuple[tuple[int, ...], tuple[int, ...], bool, tuple[int, ...]]] = [
    ((2, 3, 4), (4, 6), False, (4, 6)),
    ((2, 3, 4), (-1,), False, (24,)),
    ((2, 3, 4), (0, -1), False, (2, 12)),
    ((2, 3, 4), (4, 0, -1), False, (4, 3, 2)),
    ((2, 3, 4), (-1, 0, 2), False, (4, 3, 2)),
    ((2, 3, 4), (-2,), False, (2, 3, 4)),
    ((2, 3, 4), (2, -2), False, (2, 3, 4)),
    ((2, 3, 4), (-2, 1, 1), False, (2, 3, 4, 1, 1)),
    ((2, 3, 4), (-3, 4), False, (6, 4)),
    ((2, 3, 4, 5), (-3, -3), False, (6, 20)),
    ((2, 3, 4), (0, -3), False, (2, 12)),
    ((2, 3, 4), (-4, 1, 2, -2), False, (1, 2, 3, 4)),
    ((2, 3, 4), (2, -4, -1, 3, 4), False, (2, 1, 3, 4)),
    ((64, 1, 2), (-4, 16, -1, -2), False, (16, 4, 1, 2)),
    ((2, 3, 4), (-3, -1), False, (6, 4)),
    ((2, 3, 4), (-1, -3), False, (2, 12)),
    ((2, 3, 4), (0, -1), True, (3, 8)),
    ((5, 3, 4, 5), (0, -1, 0), True, (3, 20, 5)),
    ((2, 3, 5, 5), (5, 3, 0, -1), True, (5, 3, 5, 2)),
    ((2, 3, 5, 6), (-2, 1, 30), True, (2, 3, 1, 30)),
    ((2, 3, 5, 6), (-3, -3), True, (6, 30)),
    ((64,), (16, -1, -4), True, (16, 4)),
    ((1, 2, 3, 64), (-2, -1, 16, -4), True, (1, 2, 3, 4, 16)),
    ((0, 3), (-1, 3), False, (0, 3)),
    ((0, 3), (0, -1), False, (0, 3)),
    ((2, 0, 3), (0, -1, 6), False, (2, 0, 6)),
]

WRONG_CODES: list[tuple[tuple[int, ...], tuple[int, ...], bool, str]] = [
    ((2, 3, 4), (5, -1), False, "24 elements do not divide by 5"),
    ((2, 3, 4), (25,), False, r"\(25,\) has 25 elements, not 24"),
    ((2, 3, 4), (-1, -1), False, "-1 may stand only once"),
    ((2, 3, 4), (0, 0, 0, 0), False, "0 finds no axis 3"),
    ((2, 3, 4), (-3, -3), False, "-3 finds no axis 3"),
    ((2, 3, 4), (-4, 3, -1, -2), False, "an axis of length 2 does not split into 3 and 0"),
    ((2, 3, 4), (-4, -1, -1, -2), False, "does not split into -1 and -1"),
    ((2, 3, 4), (-4, 2), False, "-4 needs two lengths"),
    ((2, 3, 4), (-4, 1, 2, -2), True, "read from the right .* -4 needs two lengths"),
    ((2, 3, 4), (-5,), False, "-5 is no code"),
    ((2, 3, 4), (1, 1, -2), False, r"\(1, 1, 4\) has 4 elements, not 24"),
]

RESHAPES: list[Case] = [
    Case("Reshape", lambda x, codes=codes, reverse=reverse: nd.Reshape(x, codes, reverse), (normal(*source),),
         lambda x, result=result: x.reshape(result), label=f"{source}-{codes}{'-reverse' if reverse else ''}")
    for source, codes, reverse, result in CODES
] + [
    reshaped("Reshape", (2, 3, 4), (24,), "int", 24),
    reshaped("Reshape", (2, 3, 4), (6, 4), "list", [6, -1]),
    reshaped("Reshape", (2, 3, 4), (2, 12), "old", target_shape=(2, 0)),
    reshaped("Reshape", (2, 3, 4), (2, 12), "old-keep-highest", target_shape=(7, 0), keep_highest=True),
    Case("Reshape", lambda x: shape_ops.reshape_to(x, (3, 0, 2)), (normal(0, 2),), lambda x: x.reshape(3, 0, 2), label="exact"),
    Case("Reshape", lambda x: nd.reshape(x, shape=(3, 2)), (integers(0, 9, 6),), lambda x: x.reshape(3, 2), False,
         label="integers", bad=(
        Bad(lambda nd: nd.Reshape(nd.ones(3)), ArgumentError, r"Reshape: shape is \(\), wants at least one length"),
        Bad(lambda nd: nd.Reshape(nd.ones(3), target_shape=(0, 0)), ShapeError, "-1 may stand only once"),
        *(Bad(lambda nd, row=row: nd.Reshape(nd.ones(row[0]), row[1], row[2]), ShapeError, row[3]) for row in WRONG_CODES),
    )),
]  # fmt: skip


def like(lhs: tuple[int, ...], rhs: tuple[int, ...], result: tuple[int, ...], *bounds: int | None) -> Case:
    def call(x: Any, y: Any) -> Any:
        return nd.reshape_like(x, y, *bounds)

    label = f"{lhs}-{rhs}-{bounds}" if bounds else "whole"
    return Case("reshape_like", call, (normal(*lhs), integers(0, 9, *rhs)), lambda x, y: x.reshape(result), label=label)


LIKE: list[Case] = [
    like((4, 6), (2, 3, 4), (2, 3, 4)),
    like((30, 7), (15, 2, 4), (15, 2, 7), 0, 1, 0, 2),
    like((3, 5), (1, 15, 4), (15,), 0, None, 1, -1),
    like((30, 12), (4, 2, 2, 3), (30, 2, 2, 3), -1, None, 1, None),
    like((1, 1, 7, 3, 1, 1), (81, 1, 1, 21), (1, 1, 1, 21, 1), 1, -1, 1, None),
    Case("reshape_like", lambda x, y: nd.reshape_like(x, y), (normal(0, 4), integers(0, 9, 2, 0)), lambda x, y: x.reshape(2, 0),
         label="empty", bad=(
        Bad(lambda nd: nd.reshape_like(nd.ones((2, 3)), nd.ones((2, 2))), ShapeError,
            r"lhs has shape \(2, 3\), which does not fit \(2, 2\)"),
        Bad(lambda nd: nd.reshape_like(nd.ones((2, 3)), nd.ones(6), 1, 1), ShapeError, r"lhs_begin=1, lhs_end=1 select no axes"),
        Bad(lambda nd: nd.reshape_like(nd.ones((2, 3)), nd.ones(6), 0, 3), ShapeError,
            r"lhs_begin=0, lhs_end=3 select no axes of an array of 2"),
    )),
]  # fmt: skip

VIEWS: list[Case] = [
    reshaped("Flatten", (2, 3, 4), (2, 12), "3d"),
    reshaped("Flatten", (5,), (5, 1), "1d"),
    reshaped("Flatten", (2, 0, 3), (2, 0), "empty"),
    reshaped("expand_dims", (2, 3), (1, 2, 3), "front", 0),
    reshaped("expand_dims", (2, 3), (2, 3, 1), "back", axis=2),
    reshaped("expand_dims", (2, 3), (1, 2, 3), "negative", -3),
    reshaped("expand_dims", (0, 3), (0, 1, 3), "empty", 1),
    Case("expand_dims", lambda x: nd.expand_dims(x, -1), (normal(2),), lambda x: x[:, None], label="last", bad=(
        Bad(lambda nd: nd.expand_dims(nd.ones((2, 3)), 3), ShapeError, r"expand_dims: axis 3 is out of range"),
        Bad(lambda nd: nd.expand_dims(nd.ones((2, 3)), -4), ShapeError, r"expand_dims: axis -4 is out of range"),
    )),
    reshaped("squeeze", (1, 2, 1, 3), (2, 3), "all"),
    reshaped("squeeze", (1, 2, 1, 3), (2, 1, 3), "one", 0),
    reshaped("squeeze", (1, 2, 1, 3), (2, 3), "two", axis=(0, -2)),
    reshaped("squeeze", (1, 1), (1,), "nothing-left"),
    reshaped("squeeze", (1, 1), (1,), "nothing-left-named", (0, 1)),
    reshaped("squeeze", (1, 2), (1, 2), "no-axes", ()),
    Case("squeeze", lambda x: nd.squeeze(x), (normal(1, 0, 1),), lambda x: x.reshape(0), label="empty", bad=(
        Bad(lambda nd: nd.squeeze(nd.ones((1, 3)), 1), ShapeError, r"axis 1 of shape \(1, 3\) has length 3; only length 1"),
        Bad(lambda nd: nd.squeeze(nd.ones((1, 3)), (0, -2)), ShapeError, r"name an axis twice"),
        Bad(lambda nd: nd.squeeze(nd.ones((1, 3)), 2), ShapeError, r"squeeze: axis 2 is out of range"),
    )),
]  # fmt: skip

ORDERS: list[Case] = [
    Case("transpose", lambda x: nd.transpose(x), (normal(2, 3, 4),), lambda x: x.T, label="reversed"),
    Case("transpose", lambda x: nd.transpose(x, axes=(1, 2, 0)), (normal(2, 3, 4),), lambda x: x.transpose(1, 2, 0),
         label="axes"),
    Case("transpose", lambda x: nd.transpose(x, [0, -1, 1]), (normal(2, 3, 4),), lambda x: x.transpose(0, 2, 1),
         label="negative"),
    Case("transpose", lambda x: nd.transpose(x, None), (normal(0, 4),), lambda x: x.T, label="empty"),
    # large enough to be copied in blocks, the last of which is not full
    Case("transpose", lambda x: nd.transpose(x), (normal(300, 400),), lambda x: x.T, second=False, label="blocks", bad=(
        Bad(lambda nd: nd.transpose(nd.ones((2, 3)), (0, 0)), ShapeError,
            r"transpose: axes \(0, 0\) do not name each of the 2 axes"),
        Bad(lambda nd: nd.transpose(nd.ones((2, 3)), (0,)), ShapeError, r"transpose: axes \(0,\) do not name each"),
        Bad(lambda nd: nd.transpose(nd.ones((2, 3)), (0, 2)), ShapeError, r"transpose: axis 2 is out of range"),
    )),
    Case("transpose", lambda x: nd.transpose(x, (0, 2, 1)), (normal(2, 300, 200),), lambda x: x.transpose(0, 2, 1), second=False,
         label="stack"),
    Case("SwapAxis", lambda x: nd.swapaxes(x, 0, 2), (normal(2, 3, 4),), lambda x: x.swapaxes(0, 2), label="two"),
    Case("SwapAxis", lambda x: nd.SwapAxis(x, dim1=-2, dim2=-1), (normal(2, 3, 4),), lambda x: x.swapaxes(1, 2),
         label="negative"),
    Case("SwapAxis", lambda x: nd.swapaxes(x), (normal(2, 3),), lambda x: x, label="none", bad=(
        Bad(lambda nd: nd.swapaxes(nd.ones((2, 3)), 0, 2), ShapeError, r"SwapAxis: dim2 2 is out of range"),
    )),
]  # fmt: skip


def to_space(x: np.ndarray, block: int) -> np.ndarray:
    n, c, h, w = x.shape
    result = np.zeros((n, c // block**2, h * block, w * block), x.dtype)
    for i in range(block):
        for j in range(block):
            at = (i * block + j) * (c // block**2)
            result[:, :, i::block, j::block] = x[:, at : at + c // block**2]
    return result


def to_depth(x: np.ndarray, block: int) -> np.ndarray:
    return np.concatenate([x[:, :, i::block, j::block] for i in range(block) for j in range(block)], axis=1)


SPACES: list[Case] = [
    Case("depth_to_space", lambda x: nd.depth_to_space(x, 2), (normal(2, 8, 3, 2),), lambda x: to_space(x, 2), bad=(
        Bad(lambda nd: nd.depth_to_space(nd.ones((1, 6, 2, 2)), 2), ShapeError,
            r"data has 6 channels, wants a multiple of block_size \*\* 2 = 4"),
        Bad(lambda nd: nd.depth_to_space(nd.ones((1, 4, 2, 2)), 0), ArgumentError, r"block_size is 0, wants a positive"),
        Bad(lambda nd: nd.depth_to_space(nd.ones((4, 2, 2)), 2), ShapeError,
            r"data needs 4 axes \(batch, channels, height, width\), got \(4, 2, 2\)"),
        Bad(lambda nd: nd.depth_to_space(nd.array(np.zeros((1, 4, 0, 2))), 2), ShapeError, r"has no pixels"),
    )),
    Case("space_to_depth", lambda x: nd.space_to_depth(x, 3), (normal(2, 2, 6, 3),), lambda x: to_depth(x, 3), bad=(
        Bad(lambda nd: nd.space_to_depth(nd.ones((1, 2, 3, 4)), 2), ShapeError,
            r"height 3 and width 4, wants multiples of block_size = 2"),
        Bad(lambda nd: nd.space_to_depth(nd.ones((1, 2, 4, 4)), -1), ArgumentError, r"block_size is -1"),
    )),
]  # fmt: skip

BROADCASTS: list[Case] = [
    Case("broadcast_to", lambda x: nd.broadcast_to(x, (3, 2, 4)), (normal(1, 2, 1),), lambda x: np.broadcast_to(x, (3, 2, 4)),
         label="all"),
    Case("broadcast_to", lambda x: nd.broadcast_to(x, shape=(3, 0, 4)), (normal(1, 2, 1),),
         lambda x: np.broadcast_to(x, (3, 2, 4)), label="zero"),
    Case("broadcast_to", lambda x: nd.broadcast_to(x, [2, 3]), (normal(3),), lambda x: np.broadcast_to(x, (2, 3)),
         label="new-axis"),
    Case("broadcast_to", lambda x: nd.broadcast_to(x, 4), (normal(1),), lambda x: np.broadcast_to(x, 4), label="int", bad=(
        Bad(lambda nd: nd.broadcast_to(nd.ones((1, 2)), (3, 3)), ShapeError, r"shape \(1, 2\) cannot be broadcast to \(3, 3\)"),
        Bad(lambda nd: nd.broadcast_to(nd.ones((1, 2)), (2,)), ShapeError, r"cannot be broadcast to \(2,\)"),
        Bad(lambda nd: nd.broadcast_to(nd.ones((1, 2))), ShapeError, r"cannot be broadcast to \(\)"),
    )),
    Case("broadcast_axis", lambda x: nd.broadcast_axis(x, axis=0, size=3), (normal(1, 2, 1),),
         lambda x: np.broadcast_to(x, (3, 2, 1)), label="one"),
    Case("broadcast_axis", lambda x: nd.broadcast_axes(x, (0, -1), (3, 2)), (normal(1, 2, 1),),
         lambda x: np.broadcast_to(x, (3, 2, 2)), label="two"),
    Case("broadcast_axis", lambda x: nd.broadcast_axis(x, 0, 0), (normal(1, 2),), lambda x: x[:0], label="to-nothing", bad=(
        Bad(lambda nd: nd.broadcast_axis(nd.ones((1, 2)), 1, 3), ShapeError,
            r"axis 1 of shape \(1, 2\) has length 2; only length 1"),
        Bad(lambda nd: nd.broadcast_axis(nd.ones((1, 2)), (0, 1), 3), ArgumentError,
            r"axis \(0, 1\) and size \(3,\) must have the same length"),
        Bad(lambda nd: nd.broadcast_axis(nd.ones((1, 2)), 2, 3), ShapeError, r"broadcast_axis: axis 2 is out of range"),
    )),
    Case("broadcast_like", lambda x, y: nd.broadcast_like(x, y), (normal(1, 2, 1), integers(0, 9, 3, 2, 4)),
         lambda x, y: np.broadcast_to(x, y.shape), label="whole"),
    Case("broadcast_like", lambda x, y: nd.broadcast_like(x, y, lhs_axes=(0, -1), rhs_axes=(-1, 0)),
         (normal(1, 2, 1), integers(0, 9, 7, 9)),
         lambda x, y: np.broadcast_to(x, (9, 2, 7)), label="axes", bad=(
        Bad(lambda nd: nd.broadcast_like(nd.ones((1, 2)), nd.ones((3, 1, 2))), ShapeError,
            r"without axes they need equally many dimensions"),
        Bad(lambda nd: nd.broadcast_like(nd.ones((1, 2)), nd.ones((3, 3))), ShapeError, r"cannot be broadcast to \(3, 3\)"),
        Bad(lambda nd: nd.broadcast_like(nd.ones((1, 2)), nd.ones(3), (0,), (0, 1)), ArgumentError,
            r"must have the same length, 1 or more"),
        Bad(lambda nd: nd.broadcast_like(nd.ones((1, 2)), nd.ones(3), (), ()), ArgumentError,
            r"must have the same length, 1 or more"),
        Bad(lambda nd: nd.broadcast_like(nd.ones((1, 2)), nd.ones(3), (0,), (1,)), ShapeError, r"rhs_axes 1 is out of range"),
    )),
]  # fmt: skip

CASES: list[Case] = [*RESHAPES, *LIKE, *VIEWS, *ORDERS, *SPACES, *BROADCASTS]
