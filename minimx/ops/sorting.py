"""Order: topk, sort, argsort.

One trick serves all three. The bits of a number become an unsigned integer of the same order (`order_key`); key and position
share a 64-bit word, and words are sorted. That is several times as fast as sorting positions, and stable: of equal elements the
one at the lower index comes first, in either direction. For the best k of many, a partition comes first. NaN counts as the
greatest. Gradients go back to where the elements came from. Book: chapter 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import FLOAT32, ArgumentError
from ..op import Array, How, Op, Shape, Spec, T, apply, register
from ..rules import normalize_axis
from .indexing import PutAlongAxis, along_axis

if TYPE_CHECKING:
    from typing_extensions import Unpack

LOW = (1 << 32) - 1  # the half of a word that holds the position
BLOCK = 1 << 18  # elements that are ordered at a time

#: The largest n so that every whole number up to n has an exact value of the dtype.
EXACT = {
    "float16": 1 << 11,
    "float32": 1 << 24,
    "float64": 1 << 53,
    "uint8": (1 << 8) - 1,
    "int32": (1 << 31) - 1,
    "int64": 1 << 62,
}


# ---- what the kernels share


def order_key(xp: Any, data: Array, ascending: bool) -> Array:
    """Unsigned integers whose order is that of `data` (ascending) or the reverse. Equals have equal keys; NaN is greatest."""
    if data.dtype.kind == "b":
        data = data.view(np.uint8)
    size = data.dtype.itemsize
    unsigned = np.dtype(f"u{size}")
    top = unsigned.type(1 << (8 * size - 1))  # the sign bit
    if data.dtype.kind == "f":
        # A float is sign and magnitude: negative ones count backwards, so all their bits are flipped; of others, the sign bit.
        bits = (data + data.dtype.type(0)).view(unsigned)  # -0.0 has become 0.0, its equal
        flip = (bits.view(f"i{size}") >> (8 * size - 1)).view(unsigned)  # all ones for negative numbers
        flip |= top
        key = bits ^ flip
        unordered = data != data
        if unordered.any():
            key[unordered] = unsigned.type(2 ** (8 * size) - 1)
    else:
        key = data.view(unsigned) ^ top if data.dtype.kind == "i" else data
    return key if ascending else ~key


def ranked(xp: Any, rows: Array, ascending: bool, count: int) -> Array:
    """Positions, along the last axis, of the first `count` elements in order. Works through blocks of rows that fit the cache."""
    length = rows.shape[-1]
    result = xp.empty((*rows.shape[:-1], count), np.intp)
    if result.size:
        flat, into = rows.reshape(-1, length), result.reshape(-1, count)
        step = max(1, BLOCK // length)
        for start in range(0, len(flat), step):
            into[start : start + step] = ranked_block(xp, flat[start : start + step], ascending, count)
    return result


def ranked_block(xp: Any, rows: Array, ascending: bool, count: int) -> Array:
    """`ranked` for a matrix."""
    if count * 8 <= rows.shape[-1]:
        chosen = partitioned(xp, rows, ascending, count)
        if chosen is not None:
            values = xp.take_along_axis(rows, chosen, -1)
            return xp.take_along_axis(chosen, sorted_positions(xp, values, ascending), -1)
    return sorted_positions(xp, rows, ascending)[:, :count]


def partitioned(xp: Any, rows: Array, ascending: bool, count: int) -> Array | None:
    """Positions, in rising order, of the first `count` elements; None if ties leave it open which elements these are."""
    edge = count - 1 if ascending else rows.shape[-1] - count
    found = xp.argpartition(rows, edge, axis=-1)
    chosen = xp.sort(found[:, :count] if ascending else found[:, edge:], axis=-1)
    last = xp.take_along_axis(rows, found[:, edge : edge + 1], -1)  # the least wanted of the chosen
    if (last != last).any() or int((rows == last).sum()) != int((xp.take_along_axis(rows, chosen, -1) == last).sum()):
        return None
    return chosen


def sorted_positions(xp: Any, rows: Array, ascending: bool) -> Array:
    """The positions that sort each row of a matrix, stable."""
    key = order_key(xp, rows, ascending)
    if key.dtype.itemsize == 8:  # no room for the position beside the key
        return xp.argsort(key, axis=-1, kind="stable")
    words = key.astype(np.uint64)
    words <<= np.uint64(32)
    words |= xp.arange(rows.shape[-1], dtype=np.uint64)
    words.sort(axis=-1)
    words &= np.uint64(LOW)
    return words.view(np.int64)


def axis_last(xp: Any, data: Array, axis: int | None) -> Array:
    """`data` in memory order with `axis` last, or flat if it is None."""
    return data.reshape(-1) if axis is None else xp.ascontiguousarray(xp.moveaxis(data, axis, -1))


def axis_back(xp: Any, rows: Array, axis: int | None) -> Array:
    """Undo `axis_last`."""
    return rows if axis is None else xp.ascontiguousarray(xp.moveaxis(rows, -1, axis))


def index_dtype(op: Op, dtype: np.dtype[Any], length: int) -> np.dtype[Any]:
    """`dtype`, if it can hold every index below `length`. Raises ArgumentError otherwise."""
    if dtype.name not in EXACT:
        raise ArgumentError(f"{op.name}: dtype of the indices is {dtype.name}; choose one of {', '.join(EXACT)}")
    if length - 1 > EXACT[dtype.name]:
        raise ArgumentError(f"{op.name}: {dtype.name} cannot hold indices up to {length - 1} exactly; pass dtype='int64'")
    return dtype


def extent(op: Op, axis: int | None, shape: Shape) -> tuple[int | None, int]:
    """The axis counted from the front, and the number of elements along it (all of them if it is None)."""
    if axis is None:
        return None, math.prod(shape)
    axis = normalize_axis(op, axis, len(shape))
    return axis, shape[axis]


def back_along(axis: int | None, g: Any, indices: Any, shape: Shape) -> Any:
    """The gradient of an array of `shape` from that of its elements at `indices` along `axis` (of the flat array if None)."""
    if axis is None:
        return apply(PutAlongAxis(0, "clip", math.prod(shape)), g, indices).reshape(shape)
    axis %= len(shape)
    return apply(PutAlongAxis(axis, "clip", shape[axis]), g, indices)


# ---- the operators


@register("topk")
class TopK(Op):
    axis: int | None = -1
    k: int = 1
    ret_typ: str = "indices"
    is_ascend: bool = False
    dtype: np.dtype[Any] = FLOAT32

    saves_inputs: ClassVar[bool] = False  # the gradient needs the indices alone, so they are always an output beside values

    @property
    def num_outputs(self) -> int:
        return 2 if self.ret_typ in ("value", "both") else 1

    @property
    def num_visible(self) -> int:
        return 2 if self.ret_typ == "both" else 1

    def infer(self, data: Spec) -> Spec | tuple[Spec, ...]:
        if self.ret_typ not in ("value", "indices", "mask", "both"):
            raise ArgumentError(f"{self.name}: ret_typ {self.ret_typ!r} is unknown; choose one of value, indices, mask, both")
        axis, length = extent(self, self.axis, data.shape)
        if self.k > length:
            where = "the array" if axis is None else f"axis {axis}"
            raise ArgumentError(f"{self.name}: k is {self.k}, but {where} has {length} elements; choose k up to that")
        if self.ret_typ == "mask":
            return data
        count = self.k if self.k >= 1 else length
        shape = (count,) if axis is None else (*data.shape[:axis], count, *data.shape[axis + 1 :])
        if self.ret_typ == "value":  # hidden indices serve the gradient alone, and are exact whatever dtype says
            return Spec.of(shape, data.dtype), Spec.of(shape, np.int64)
        indices = Spec.of(shape, index_dtype(self, self.dtype, length))
        return (Spec.of(shape, data.dtype), indices) if self.ret_typ == "both" else indices

    def kernel(self, xp: Any, data: Array) -> Array | tuple[Array, ...]:
        axis, length = extent(self, self.axis, data.shape)
        rows = axis_last(xp, data, axis)
        found = ranked(xp, rows, self.is_ascend, self.k if self.k >= 1 else length)
        if self.ret_typ == "indices":
            return axis_back(xp, found, axis).astype(self.dtype, copy=False)
        places = along_axis(xp, found, rows.ndim - 1, rows.shape)
        if self.ret_typ == "mask":
            mask = xp.zeros(rows.size, data.dtype)
            mask[places] = 1
            return axis_back(xp, mask.reshape(rows.shape), axis).reshape(data.shape)
        values = axis_back(xp, xp.take(rows.reshape(-1), places), axis)
        indices = axis_back(xp, found, axis).astype(np.int64 if self.ret_typ == "value" else self.dtype, copy=False)
        return values, indices

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        if self.num_outputs == 1 or g[0] is None:
            return (None,)
        return (back_along(self.axis, g[0], y[1], data.shape),)


def topk(
    data: T,
    axis: int | None = -1,
    k: int = 1,
    ret_typ: str = "indices",
    is_ascend: bool = False,
    dtype: Any = "float32",
    **how: Unpack[How],
) -> Any:
    """The `k` greatest elements along `axis` (the least if `is_ascend`), in order.

    **Shapes** data (..., n, ...), result (..., k, ...); (k,) if `axis` is None, that is, of the flat array; data's for "mask".
    **Args** `k`: less than 1 means all. `ret_typ`: "value", "indices" (in `dtype`), "both" (a list of the two), or "mask": 1 at
    the chosen elements, 0 elsewhere. Of equal elements the first wins; NaN is the greatest.
    **Raises** ArgumentError if `dtype` cannot hold the indices exactly. **Gradient** of the values: `g` where they came from, none
    of others. **Source** MXNet `topk`.
    """
    op = TopK(axis, k, ret_typ, is_ascend, dtype)
    return apply(op, data, **how)


@register("sort")
class Sort(Op):
    axis: int | None = -1
    is_ascend: bool = True

    saves_outputs: ClassVar[bool] = False

    def infer(self, data: Spec) -> Spec:
        axis, length = extent(self, self.axis, data.shape)
        return data.with_shape((length,)) if axis is None else data

    def kernel(self, xp: Any, data: Array) -> Array:
        axis, _ = extent(self, self.axis, data.shape)
        rows = axis_last(xp, data, axis)
        found = xp.sort(rows, axis=-1)  # values alone sort faster than any way to the positions
        return axis_back(xp, found if self.is_ascend else xp.ascontiguousarray(found[..., ::-1]), axis)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        indices = argsort(data, self.axis, self.is_ascend, "int64")
        return (back_along(self.axis, g, indices, data.shape),)


def sort(data: T, axis: int | None = -1, is_ascend: bool = True, **how: Unpack[How]) -> T:
    """The elements in order along `axis`.

    **Shapes** data and result (...); (size,) if `axis` is None, that is, of the flat array. NaN is the greatest.
    **Gradient** `g` where the elements came from. **Source** MXNet `sort`.
    """
    return apply(Sort(axis, is_ascend), data, **how)


@register("argsort")
class ArgSort(Op):
    axis: int | None = -1
    is_ascend: bool = True
    dtype: np.dtype[Any] = FLOAT32

    saves_inputs: ClassVar[bool] = False
    saves_outputs: ClassVar[bool] = False

    def infer(self, data: Spec) -> Spec:
        axis, length = extent(self, self.axis, data.shape)
        dtype = index_dtype(self, self.dtype, length)
        return Spec.of((length,) if axis is None else data.shape, dtype)

    def kernel(self, xp: Any, data: Array) -> Array:
        axis, length = extent(self, self.axis, data.shape)
        found = ranked(xp, axis_last(xp, data, axis), self.is_ascend, length)
        return axis_back(xp, found, axis).astype(self.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (None,)


def argsort(data: T, axis: int | None = -1, is_ascend: bool = True, dtype: Any = "float32", **how: Unpack[How]) -> T:
    """The indices that sort `data` along `axis`; of equal elements the first comes first.

    **Shapes** data and result (...); (size,) if `axis` is None, that is, of the flat array. The result has `dtype`.
    **Raises** ArgumentError if `dtype` cannot hold the indices exactly. **Gradient** none. **Source** MXNet `argsort`.
    """
    return apply(ArgSort(axis, is_ascend, dtype), data, **how)
