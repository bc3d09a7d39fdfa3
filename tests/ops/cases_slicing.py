"""Rows of minimx/ops/slicing.py and padding.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from minimx import nd
from minimx.base import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from minimx.op import apply
from minimx.ops import padding, slicing

from .harness import Bad, Case, integers, normal

# begin, end, step, and the same in Python
SLICES: list[tuple[Any, Any, Any, Any]] = [
    ((0,), (1,), (), np.s_[0:1]),
    (1, 2, (), np.s_[1:2]),
    ((None, 1), (None, 3), (), np.s_[:, 1:3]),
    ((-1,), (None,), (), np.s_[-1:]),
    ((0, 0), (5, 9), (), np.s_[0:5, 0:9]),
    ((-5,), (1,), (), np.s_[-5:1]),
    ((3,), (5,), (), np.s_[3:5]),
    ((1,), (0,), (), np.s_[1:0]),
    ((0, None, 1), (2, None, 4), (1, 2, 2), np.s_[0:2:1, ::2, 1:4:2]),
    ((None,), (None,), (-1,), np.s_[::-1]),
    ((None, None, 3), (None, None, 0), (None, None, -2), np.s_[:, :, 3:0:-2]),
    ((0, 0, 9), (1, 1, None), (1, 1, -1), np.s_[0:1, 0:1, 9::-1]),
    ((1,), (-4,), (-1,), np.s_[1:-4:-1]),
    ((), (), (), np.s_[...]),
]


def assigned(x: np.ndarray, key: Any, value: Any) -> np.ndarray:
    result = x.copy()
    result[key] = value
    return result


PARTS: list[Case] = [
    Case("slice", lambda x, b=b, e=e, s=s: nd.slice(x, b, e, s), (normal(2, 3, 4),), lambda x, key=key: x[key],
         label=f"{b}-{e}-{s}")
    for b, e, s, key in SLICES
] + [
    Case("slice", lambda x: nd.crop(x, begin=(0, 1), end=(2, None)), (integers(0, 9, 2, 3),), lambda x: x[0:2, 1:], False,
         label="integers", bad=(
        Bad(lambda nd: nd.slice(nd.ones((2, 3)), (0, 0, 0), (1, 1, 1)), ShapeError,
            r"begin \(0, 0, 0\) has bounds for 3 axes, data has shape"),
        Bad(lambda nd: nd.slice(nd.ones((2, 3)), (0,), (1, 1)), ArgumentError,
            r"begin \(0,\), end \(1, 1\) .* must have the same length"),
        Bad(lambda nd: nd.slice(nd.ones((2, 3)), (0,), (1,), (1, 1)), ArgumentError, r"step \(1, 1\) must have the same length"),
        Bad(lambda nd: nd.slice(nd.ones((2, 3)), (0,), (1,), (0,)), ArgumentError, r"slice: step \(0,\) has a 0 for axis 0"),
    )),
    Case("slice_axis", lambda x: nd.slice_axis(x, axis=1, begin=0, end=2), (normal(2, 3, 4),), lambda x: x[:, 0:2],
         label="front"),
    Case("slice_axis", lambda x: nd.slice_axis(x, -1, -2, None), (normal(2, 3, 4),), lambda x: x[..., -2:], label="negative"),
    Case("slice_axis", lambda x: nd.slice_axis(x, 0, None, -1), (normal(3, 2),), lambda x: x[:-1], label="open", bad=(
        Bad(lambda nd: nd.slice_axis(nd.ones(3), 0, 2, 9), OutOfRangeError,
            r"begin 2 and end 9 must select a part of axis 0, which has length 3"),
        Bad(lambda nd: nd.slice_axis(nd.ones(3), 0, 2, 2), OutOfRangeError, r"begin 2 and end 2 must select a part"),
        Bad(lambda nd: nd.slice_axis(nd.ones(3), 0, -4, None), IndexError, r"begin -4 and end None must select a part"),
        Bad(lambda nd: nd.slice_axis(nd.ones(3), 1, 0, 1), ShapeError, r"slice_axis: axis 1 is out of range"),
    )),
    Case("slice_like", lambda x, y: nd.slice_like(x, y), (normal(2, 3, 4), integers(0, 9, 1, 2, 3)), lambda x, y: x[:1, :2, :3],
         label="all"),
    Case("slice_like", lambda x, y: nd.slice_like(x, y, axes=(0, -2)), (normal(2, 3, 4), integers(0, 9, 1, 2)),
         lambda x, y: x[:1, :2], label="axes", bad=(
        Bad(lambda nd: nd.slice_like(nd.ones((2, 3)), nd.ones(2)), ShapeError, r"without axes they need equally many dimensions"),
        Bad(lambda nd: nd.slice_like(nd.ones((2, 3)), nd.ones((2, 4))), ShapeError,
            r"shorter than shape_like \(2, 4\) along axis 1"),
        Bad(lambda nd: nd.slice_like(nd.ones((2, 3)), nd.ones(2), axes=1), ShapeError,
            r"slice_like: of shape_like, axis 1 is out of range"),
        Bad(lambda nd: nd.slice_like(nd.ones((2, 3)), nd.ones(2), axes=2), ShapeError, r"slice_like: axis 2 is out of range"),
    )),
    Case("_backward_slice", lambda x: slicing.put_back(x, (slice(1, 3, 1), slice(4, None, -2)), (4, 5)), (normal(2, 3),),
         lambda x: assigned(np.zeros((4, 5)), np.s_[1:3, 4::-2], x), label="backwards", bad=(
        Bad(lambda nd: slicing.put_back(nd.ones(3), (slice(0, 2, 1),), (4,)), ShapeError, r"data has shape \(3,\), wants \(2,\)"),
    )),
    Case("_slice_assign", lambda x, y: slicing.slice_assign(x, y, (None, 3), (1, None), (1, -2)), (normal(2, 4), normal(1, 2)),
         lambda x, y: assigned(x, np.s_[:1, 3::-2], y), label="steps"),
    Case("_slice_assign", lambda x, y: slicing.slice_assign(x, y, 1, 1), (normal(2, 4), normal(0, 4)), lambda x, y: x,
         label="nothing", bad=(
        Bad(lambda nd: slicing.slice_assign(nd.ones((2, 4)), nd.ones((1, 2)), 0, 1), ShapeError,
            r"the slice of lhs has \(1, 4\)"),
        Bad(lambda nd: slicing.slice_assign(nd.ones(2), nd.ones(1, dtype="int32"), 0, 1), DTypeError,
            r"lhs is float32 but rhs is int32"),
    )),
    Case("_slice_assign_scalar", lambda x: slicing.slice_assign_scalar(x, 7, (0, 1), (1, None)), (normal(2, 4),),
         lambda x: assigned(x, np.s_[0:1, 1:], 7), label="float"),
    Case("_slice_assign_scalar", lambda x: slicing.slice_assign_scalar(x, -3.0, 1, None), (integers(0, 9, 3),),
         lambda x: assigned(x, np.s_[1:], -3), False, label="int", bad=(
        Bad(lambda nd: slicing.slice_assign_scalar(nd.ones(3, dtype="int32"), 2.5, 0, 1), DTypeError,
            r"data is int32, which has no scalar 2.5"),
        Bad(lambda nd: slicing.slice_assign_scalar(nd.ones(3, dtype="uint8"), -1, 0, 1), DTypeError,
            r"data is uint8, which has no scalar -1"),
        Bad(lambda nd: slicing.slice_assign_scalar(nd.ones(3), 1, (0, 0), (1, 1)), ShapeError, r"bounds for 2 axes"),
    )),
]  # fmt: skip

MIRRORS: list[Case] = [
    Case("reverse", lambda x: nd.reverse(x, axis=1), (normal(2, 3, 4),), lambda x: x[:, ::-1], label="one"),
    Case("reverse", lambda x: nd.flip(x, axis=(0, -1)), (normal(2, 3, 4),), lambda x: x[::-1, :, ::-1], label="two"),
    Case("reverse", lambda x: nd.flip(x, axis=()), (normal(2, 0),), lambda x: x, label="none", bad=(
        Bad(lambda nd: nd.flip(nd.ones(3), axis=1), ShapeError, r"reverse: axis 1 is out of range"),
        Bad(lambda nd: nd.flip(nd.ones(3), axis=(0, -1)), ShapeError, r"reverse: axis \(0, -1\) names an axis twice"),
    )),
]  # fmt: skip

WIDTHS = (0, 0, 1, 0, 1, 2, 0, 2)


def framed(x: np.ndarray, widths: tuple[int, ...], mode: str, **more: Any) -> np.ndarray:
    return np.pad(x, list(zip(widths[::2], widths[1::2])), mode, **more)  # type: ignore[call-overload]


def folded(x: np.ndarray, mode: str, widths: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """Each number of the frame added where it came from: the places are padded like the numbers."""
    places = framed(np.arange(np.prod(shape)).reshape(shape), widths, mode)
    return np.bincount(places.ravel(), x.ravel(), int(np.prod(shape))).reshape(shape)


FRAMES: list[Case] = [
    Case("Pad", lambda x: nd.pad(x, "constant", WIDTHS, 5), (normal(2, 1, 4, 3),),
         lambda x: framed(x, WIDTHS, "constant", constant_values=5),
         label="constant"),
    Case("Pad", lambda x: nd.pad(x, "edge", WIDTHS), (normal(2, 1, 4, 3),), lambda x: framed(x, WIDTHS, "edge"), label="edge"),
    Case("Pad", lambda x: nd.Pad(x, mode="reflect", pad_width=WIDTHS), (normal(2, 2, 4, 3),),
         lambda x: framed(x, WIDTHS, "reflect"),
         label="reflect"),
    Case("Pad", lambda x: nd.pad(x, "reflect", (2, 2)), (normal(3),), lambda x: framed(x, (2, 2), "reflect"), label="reflect-1d"),
    Case("Pad", lambda x: nd.pad(x, "edge", [0, 0, 3, 0]), (normal(0, 1),), lambda x: np.zeros((0, 4)), label="edge-of-none"),
    Case("Pad", lambda x: nd.pad(x, "constant", (1, 1)), (normal(0),), lambda x: np.zeros(2), label="around-nothing"),
    Case("Pad", lambda x: nd.pad(x, "constant", (1, 0), -1), (integers(0, 9, 3),),
         lambda x: framed(x, (1, 0), "constant", constant_values=-1),
         False, label="int", bad=(
        Bad(lambda nd: nd.pad(nd.ones(3), "wrap", (1, 1)), ArgumentError,
            r"mode is 'wrap'; choose 'constant', 'edge' or 'reflect'"),
        Bad(lambda nd: nd.pad(nd.ones((2, 3)), "edge", (1, 1)), ShapeError,
            r"pad_width has 2 numbers, data of shape \(2, 3\) needs 4"),
        Bad(lambda nd: nd.pad(nd.ones(3), "edge", (-1, 1)), ArgumentError, r"pad_width \(-1, 1\) has a negative number"),
        Bad(lambda nd: nd.pad(nd.ones(3), "reflect", (3, 0)), ShapeError,
            r"axis 0 has length 3; mode 'reflect' and pad \(3, 0\) need 4"),
        Bad(lambda nd: nd.pad(nd.ones(3, dtype="int32"), "constant", (1, 0), 0.5), DTypeError,
            r"data is int32, which has no constant_value 0.5"),
    )),
    Case("_backward_Pad", lambda x: apply(padding.PaddingBackward("edge", (2, 1, 0, 3), (2, 2)), x), (normal(5, 5),),
         lambda x: folded(x, "edge", (2, 1, 0, 3), (2, 2)), label="edge"),
    Case("_backward_Pad", lambda x: apply(padding.PaddingBackward("reflect", (2, 1, 0, 2), (3, 3)), x), (normal(6, 5),),
         lambda x: folded(x, "reflect", (2, 1, 0, 2), (3, 3)), label="reflect", bad=(
        Bad(lambda nd: apply(padding.PaddingBackward("edge", (1, 1), (2,)), nd.ones(3)), ShapeError,
            r"data has shape \(3,\), wants \(4,\)"),
    )),
]  # fmt: skip


def on_diagonal(x: np.ndarray, k: int, shape: tuple[int, ...]) -> np.ndarray:
    """Matrices with `x` on diagonal k of the last two axes of `shape`."""
    result = np.zeros(shape)
    for i in range(x.shape[-1]):
        result[..., i - min(k, 0), i + max(k, 0)] = x[..., i]
    return result


DIAGONALS: list[Case] = [
    *(Case("diag", lambda x, k=k: nd.diag(x, k), (normal(3, 4),), lambda x, k=k: np.diag(x, k),
           label=f"matrix{k}") for k in (0, 1, -2, 3, 4)),
    *(Case("diag", lambda x, k=k: nd.diag(x, k=k), (normal(3),), lambda x, k=k: np.diag(x, k),
           label=f"vector{k}") for k in (0, 2, -1)),
    Case("diag", lambda x: nd.diag(x), (normal(3, 3, 2),), lambda x: np.diagonal(x), label="stack"),
    Case("diag", lambda x: nd.diag(x, 1, axis1=-1, axis2=0), (normal(3, 2, 4),), lambda x: np.diagonal(x, 1, -1, 0),
         label="axes", bad=(
        Bad(lambda nd: nd.diag(nd.ones((3, 4)), k=5), ShapeError,
            r"data has shape \(3, 4\), in which diagonal k=5 does not exist"),
        Bad(lambda nd: nd.diag(nd.ones((3, 4)), axis1=1, axis2=-1), ArgumentError, r"axis1 1 and axis2 -1 are the same axis"),
        Bad(lambda nd: nd.diag(nd.ones((3, 4)), axis2=2), ShapeError, r"diag: axis2 2 is out of range"),
    )),
    Case("_backward_diag", lambda x: apply(padding.DiagBackward(1, 0, 2, (3, 2, 4)), x), (normal(2, 3),),
         lambda x: on_diagonal(x, 1, (2, 3, 4)).transpose(1, 0, 2), label="above"),
    Case("_backward_diag", lambda x: apply(padding.DiagBackward(-1, 0, 1, (3, 3)), x), (normal(2),), lambda x: np.diag(x, -1),
         label="below", bad=(
        Bad(lambda nd: apply(padding.DiagBackward(0, 0, 1, (3, 3)), nd.ones(2)), ShapeError,
            r"data has shape \(2,\), wants \(3,\)"),
    )),
]  # fmt: skip

CASES: list[Case] = [*PARTS, *MIRRORS, *FRAMES, *DIAGONALS]
