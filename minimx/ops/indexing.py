"""Reading at indices along one axis: take, Embedding, pick, one_hot.

Every reading operator has an adjoint that puts or adds the gradient back where the value came from. Each of the two is the
gradient of the other, so that any order of derivative follows. All reduce to one idea: an index becomes a position in the flat
array, and one `take` reads there, or one addition accumulates there. Indices of several axes, and writing, are in scatter.py;
indexing with brackets is in subscript.py. Book: chapter 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import FLOAT32, ArgumentError, DTypeError, OutOfRangeError, ShapeError, shown
from ..op import Array, How, Op, Shape, Spec, T, Tensor, also_called, apply, beside, register
from ..rules import normalize_axis

if TYPE_CHECKING:
    from typing_extensions import Unpack

BLOCK = 1 << 16  # elements that one addition of `add_rows` handles: the positions of a block stay in the cache


# ---- what the kernels share


def resolve(xp: Any, op: Op, indices: Array, length: int, mode: str) -> Array:
    """`indices` as integers of [0, length): fractions are cut off, the rest is clipped, wrapped or refused by `mode`.

    The mode "python" counts negative indices from the end and refuses what lies outside even then.
    """
    found = indices.astype(np.intp, copy=False)
    if found.size == 0:
        return found
    if length == 0:
        raise OutOfRangeError(f"{op.name}: the axis is empty, but there are {found.size} indices into it; pass no indices")
    if mode == "clip":
        return xp.minimum(xp.maximum(found, 0), length - 1)  # sooner than xp.clip with few
    if mode == "wrap":
        return found % length
    first = -length if mode == "python" else 0
    low, high = int(found.min()), int(found.max())
    if low < first or high >= length:
        wrong = high if high >= length else low
        advice = "correct the indices" + (" or choose mode='clip' or 'wrap'" if hasattr(op, "mode") else "")
        raise OutOfRangeError(f"{op.name}: index {wrong} is out of bounds for an axis of size {length}; {advice}")
    return found + (found < 0) * length if low < 0 else found


def along_axis(xp: Any, indices: Array, axis: int, shape: Shape) -> Array:
    """Positions, in the flat array of `shape`, of the elements that `take_along_axis` with these indices would read."""
    before, length, after = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    count = indices.shape[axis]
    if count == after == 1:
        return (indices.reshape(-1) + xp.arange(before) * length).reshape(indices.shape)
    positions = indices.reshape(before, count, after) * after
    if after > 1:
        positions = positions + xp.arange(after)
    if before > 1:
        positions = positions + (xp.arange(before) * (length * after))[:, None, None]
    return positions.reshape(indices.shape)


def add_rows(xp: Any, total: int, rows: Array, values: Array) -> Array:
    """An array (total, width) of zeros, to whose rows number `rows[i]` the `values[i]` (width,) have been added.

    `ufunc.at` is fast on flat arrays only, so rows become positions, a block at a time. float16 is summed in float32.
    """
    dtype = values.dtype
    wide = np.dtype(np.float32) if dtype == np.float16 else dtype
    rows, values = rows.reshape(-1), values.astype(wide, copy=False)
    count, width = values.shape
    flat = beside(xp, values, (total * width,), wide)
    flat[...] = 0
    if width == 1:
        xp.add.at(flat, rows, values.reshape(-1))
    elif width:
        columns, step = xp.arange(width), max(1, BLOCK // width)
        for start in range(0, count, step):
            positions = (rows[start : start + step] * width)[:, None] + columns
            xp.add.at(flat, positions.reshape(-1), values[start : start + step].reshape(-1))
    return flat.reshape(total, width).astype(dtype, copy=False)


def check_mode(op: Op, mode: str, *allowed: str) -> None:
    """Raise ArgumentError unless `mode` is one of the `allowed`."""
    if mode not in allowed:
        raise ArgumentError(f"{op.name}: mode {mode!r} is unknown; choose one of {', '.join(allowed)}")


def check_scalar(op: Op, what: str, value: float, dtype: np.dtype[Any]) -> None:
    """Raise DTypeError if storing the number `value` as `dtype` would make it another one."""
    if dtype.kind in "iu" and not (float(value).is_integer() and np.iinfo(dtype).min <= value <= np.iinfo(dtype).max):
        raise DTypeError(
            f"{op.name}: {what} is {value}, which {dtype.name} cannot hold; convert the array with astype('float32')"
        )


def without_axis(shape: Shape, axis: int) -> Shape:
    """`shape` less one axis; (1,) if it was the only one, because MXNet 1.x has no arrays without axes."""
    return (shape[:axis] + shape[axis + 1 :]) or (1,)


# ---- take and its adjoint


@register("take")
class Take(Op):
    axis: int = 0
    mode: str = "clip"

    inputs: ClassVar[tuple[str, ...]] = ("a", "indices")
    saves_inputs: ClassVar[tuple[int, ...]] = (1,)
    saves_outputs: ClassVar[bool] = False

    def infer(self, a: Spec, indices: Spec) -> Spec:
        check_mode(self, self.mode, "clip", "wrap", "raise")
        axis = normalize_axis(self, self.axis, a.ndim)
        return a.with_shape(a.shape[:axis] + indices.shape + a.shape[axis + 1 :])

    def kernel(self, xp: Any, a: Array, indices: Array) -> Array:
        axis = self.axis % a.ndim
        return xp.take(a, resolve(xp, self, indices, a.shape[axis], self.mode), axis=axis)

    def vjp(self, g: Any, y: Any, a: Any, indices: Any) -> tuple[Any, ...]:
        axis = self.axis % len(a.shape)
        return apply(TakeAdjoint(axis, self.mode, a.shape[axis]), g, indices), None


@register("_backward_take")
class TakeAdjoint(Op):
    """Zeros with `length` entries along `axis`, to which the slices of `grad` are added at `indices`."""

    axis: int
    mode: str
    length: int

    inputs: ClassVar[tuple[str, ...]] = ("grad", "indices")
    saves_outputs: ClassVar[bool] = False

    def infer(self, grad: Spec, indices: Spec) -> Spec:
        rest = self.axis + indices.ndim
        if grad.shape[self.axis : rest] != indices.shape:
            raise ShapeError(f"{self.name}: grad has shape {grad.shape}, wants {indices.shape} from axis {self.axis} on")
        return grad.with_shape((*grad.shape[: self.axis], self.length, *grad.shape[rest:]))

    def kernel(self, xp: Any, grad: Array, indices: Array) -> Array:
        before, after = grad.shape[: self.axis], grad.shape[self.axis + indices.ndim :]
        rows = resolve(xp, self, indices, self.length, self.mode).reshape(-1)
        if self.axis:
            rows = (xp.arange(math.prod(before)) * self.length)[:, None] + rows
        values = grad.reshape(rows.size, math.prod(after))
        return add_rows(xp, math.prod(before) * self.length, rows, values).reshape(*before, self.length, *after)

    def vjp(self, g: Any, y: Any, grad: Any, indices: Any) -> tuple[Any, ...]:
        return apply(Take(self.axis, self.mode), g, indices), None


def take(a: T, indices: T, axis: int = 0, mode: str = "clip", **how: Unpack[How]) -> T:
    """Slices of `a` along `axis`: `result[i, ...] = a[indices[i], ...]`.

    **Shapes** a (..., length, ...), indices (...) of any dtype; the shape of `indices` replaces the axis.
    **Args** `mode`: an index outside [0, length) is set to the nearest ("clip"), counted round ("wrap") or refused ("raise").
    **Raises** OutOfRangeError when the value is read, with mode "raise". **Gradient** of `a`: `g` added at the indices.
    **Source** MXNet `take`.
    """
    return apply(Take(axis, mode), a, indices, **how)


@register("Embedding")
class EmbeddingLookup(Op):
    input_dim: int
    output_dim: int
    dtype: np.dtype[Any] = FLOAT32
    sparse_grad: bool = False

    inputs: ClassVar[tuple[str, ...]] = ("data", "weight")
    required: ClassVar[tuple[str, ...]] = ("input_dim", "output_dim")
    saves_inputs: ClassVar[tuple[int, ...]] = (0,)
    saves_outputs: ClassVar[bool] = False

    def fill(self, data: Spec | None, weight: Spec | None = None) -> tuple[Spec | None, ...]:
        return data, weight or Spec.of((self.input_dim, self.output_dim), self.dtype)

    def infer(self, data: Spec, weight: Spec) -> Spec:
        wanted = (self.input_dim, self.output_dim)
        if min(wanted) < 1:
            raise ArgumentError(f"{self.name}: input_dim and output_dim must be at least 1, got {wanted}")
        if weight.shape != wanted:
            raise ShapeError(f"{self.name}: weight has shape {weight.shape}, wants (input_dim, output_dim) = {wanted}")
        return weight.with_shape((*data.shape, self.output_dim))

    def kernel(self, xp: Any, data: Array, weight: Array) -> Array:
        rows = resolve(xp, self, data, self.input_dim, "clip")
        if xp is not np:
            return xp.take(weight, rows, axis=0)
        out = beside(np, weight, (*data.shape, weight.shape[1]), weight.dtype)
        return np.take(weight, rows, axis=0, out=out, mode="clip")  # in another mode NumPy writes into a copy of `out` first

    def vjp(self, g: Any, y: Any, data: Any, weight: Any) -> tuple[Any, ...]:
        return None, apply(TakeAdjoint(0, "clip", self.input_dim), g, data)


def Embedding(
    data: T,
    weight: T | None = None,
    input_dim: int = 0,
    output_dim: int = 0,
    dtype: Any = "float32",
    sparse_grad: bool = False,
    **how: Unpack[How],
) -> T:
    """Rows of a table: `result[...] = weight[data[...]]`.

    **Shapes** data (...), weight (input_dim, output_dim); result (..., output_dim) in weight's dtype.
    **Args** `dtype`: of a weight that is made for this layer. Indices outside the table take the nearest row. `sparse_grad`
    changes no value: gradients are dense here. **Gradient** of `weight`: `g` added to the rows that were read.
    **Source** MXNet `Embedding`.
    """
    return apply(EmbeddingLookup(input_dim, output_dim, dtype, sparse_grad), data, weight, **how)


# ---- one element a row: pick, and the pair that reads and writes along an axis


@register("_take_along_axis")
class TakeAlongAxis(Op):
    """NumPy's take_along_axis, for indices that are distinct along the axis (which its gradient relies on)."""

    axis: int
    mode: str = "clip"

    inputs: ClassVar[tuple[str, ...]] = ("data", "indices")
    saves_outputs: ClassVar[bool] = False

    def infer(self, data: Spec, indices: Spec) -> Spec:
        check_along(self, self.axis, data.shape, indices.shape)
        return data.with_shape(indices.shape)

    def kernel(self, xp: Any, data: Array, indices: Array) -> Array:
        whole = resolve(xp, self, indices, data.shape[self.axis], self.mode)
        return xp.take(data.reshape(-1), along_axis(xp, whole, self.axis, data.shape))

    def vjp(self, g: Any, y: Any, data: Any, indices: Any) -> tuple[Any, ...]:
        return apply(PutAlongAxis(self.axis, self.mode, data.shape[self.axis]), g, indices), None


@register("_put_along_axis")
class PutAlongAxis(Op):
    """Zeros with `length` entries along `axis`, with `grad` written at `indices`, which are distinct along the axis."""

    axis: int
    mode: str
    length: int

    inputs: ClassVar[tuple[str, ...]] = ("grad", "indices")
    saves_outputs: ClassVar[bool] = False

    def infer(self, grad: Spec, indices: Spec) -> Spec:
        if grad.shape != indices.shape:
            raise ShapeError(f"{self.name}: grad has shape {grad.shape}, indices {indices.shape}; they must be equal")
        return grad.with_shape((*grad.shape[: self.axis], self.length, *grad.shape[self.axis + 1 :]))

    def kernel(self, xp: Any, grad: Array, indices: Array) -> Array:
        shape = (*grad.shape[: self.axis], self.length, *grad.shape[self.axis + 1 :])
        result = xp.zeros(math.prod(shape), grad.dtype)
        whole = resolve(xp, self, indices, self.length, self.mode)
        result[along_axis(xp, whole, self.axis, shape)] = grad
        return result.reshape(shape)

    def vjp(self, g: Any, y: Any, grad: Any, indices: Any) -> tuple[Any, ...]:
        return apply(TakeAlongAxis(self.axis, self.mode), g, indices), None


def check_along(op: Op, axis: int, data: Shape, indices: Shape) -> None:
    """Raise ShapeError unless the shapes agree everywhere but along `axis`."""
    if len(data) != len(indices) or data[:axis] + data[axis + 1 :] != indices[:axis] + indices[axis + 1 :]:
        raise ShapeError(f"{op.name}: indices have shape {indices}, data {data}; only axis {axis} may differ")


@register("pick", "choose_element_0index")
class Pick(Op):
    axis: int | None = -1
    keepdims: bool = False
    mode: str = "clip"

    inputs: ClassVar[tuple[str, ...]] = ("data", "index")
    saves_outputs: ClassVar[bool] = False

    def shapes(self, data: Shape) -> tuple[int, Shape, Shape]:
        """The axis, and the shape of one element a row with the axis kept (length 1) and dropped."""
        if self.axis is None:
            raise ArgumentError(f"{self.name}: axis=None is not supported; flatten data and give an axis")
        axis = normalize_axis(self, self.axis, len(data))
        return axis, (*data[:axis], 1, *data[axis + 1 :]), without_axis(data, axis)

    def fill(self, data: Spec | None, index: Spec | None = None) -> tuple[Spec | None, ...]:
        if index is None and data is not None:
            _, kept, dropped = self.shapes(data.shape)
            index = Spec.of(kept if self.keepdims else dropped, np.float32)
        return data, index

    def infer(self, data: Spec, index: Spec) -> Spec:
        check_mode(self, self.mode, "clip", "wrap")
        _, kept, dropped = self.shapes(data.shape)
        if index.shape not in (kept, dropped):
            raise ShapeError(f"{self.name}: index has shape {index.shape}, data {data.shape}; {dropped} or {kept} is needed")
        return data.with_shape(kept if self.keepdims else dropped)

    def kernel(self, xp: Any, data: Array, index: Array) -> Array:
        axis, kept, dropped = self.shapes(data.shape)
        whole = resolve(xp, self, index, data.shape[axis], self.mode).reshape(kept)
        found = xp.take(data.reshape(-1), along_axis(xp, whole, axis, data.shape))
        return found if self.keepdims else found.reshape(dropped)

    def vjp(self, g: Any, y: Any, data: Any, index: Any) -> tuple[Any, ...]:
        axis, _, _ = self.shapes(data.shape)
        if len(g.shape) < len(data.shape):
            g = g.expand_dims(axis)
        if len(index.shape) < len(data.shape):
            index = index.expand_dims(axis)
        return apply(PutAlongAxis(axis, self.mode, data.shape[axis]), g, index), None


def pick(data: T, index: T, axis: int | None = -1, keepdims: bool = False, mode: str = "clip", **how: Unpack[How]) -> T:
    """One element a row: `result[i] = data[i, index[i]]`, for rows along any `axis`.

    **Shapes** data (..., length, ...), index that shape without `axis`, or with 1 there; so is the result by `keepdims`.
    **Args** `mode`: an index outside [0, length) is set to the nearest ("clip") or counted round ("wrap").
    **Gradient** of `data`: zeros with `g` at the picked places. **Source** MXNet `pick`, `choose_element_0index`.
    """
    return apply(Pick(axis, keepdims, mode), data, index, **how)


choose_element_0index = also_called("choose_element_0index", pick)


@register("batch_take")
class BatchTake(Op):
    inputs: ClassVar[tuple[str, ...]] = ("a", "indices")
    saves_outputs: ClassVar[bool] = False

    def infer(self, a: Spec, indices: Spec) -> Spec:
        if a.ndim < 2 or indices.shape != a.shape[:-1]:
            raise ShapeError(
                f"{self.name}: indices have shape {indices.shape}, a {a.shape}; a (..., N), indices (...) are needed"
            )
        return a.with_shape(indices.shape)

    def kernel(self, xp: Any, a: Array, indices: Array) -> Array:
        return Pick().kernel(xp, a, indices)

    def vjp(self, g: Any, y: Any, a: Any, indices: Any) -> tuple[Any, ...]:
        return Pick().vjp(g, y, a, indices)


def batch_take(a: T, indices: T, **how: Unpack[How]) -> T:
    """One element a row: `result[i] = a[i, indices[i]]`; the older form of `pick` along the last axis.

    **Shapes** a (..., N), indices and result (...). **Gradient** of `a`: zeros with `g` at the indices.
    **Source** MXNet `batch_take`.
    """
    return apply(BatchTake(), a, indices, **how)


# ---- one_hot


@register("one_hot")
class OneHot(Op):
    depth: int
    on_value: float = 1.0
    off_value: float = 0.0
    dtype: np.dtype[Any] = FLOAT32

    inputs: ClassVar[tuple[str, ...]] = ("indices",)
    saves_inputs: ClassVar[bool] = False
    saves_outputs: ClassVar[bool] = False

    def infer(self, indices: Spec) -> Spec:
        if self.depth < 0:
            raise ArgumentError(f"{self.name}: depth is {self.depth}, wants a number of classes that is not negative")
        check_scalar(self, "on_value", self.on_value, self.dtype)
        check_scalar(self, "off_value", self.off_value, self.dtype)
        return Spec.of((*indices.shape, self.depth), self.dtype)

    def kernel(self, xp: Any, indices: Array) -> Array:
        column = indices.reshape(-1).astype(np.intp, copy=False)
        result = xp.full((column.size, self.depth), self.off_value, self.dtype)
        row = xp.flatnonzero((column >= 0) & (column < self.depth))
        result[row, column[row]] = self.on_value
        return result.reshape(*indices.shape, self.depth)

    def vjp(self, g: Any, y: Any, indices: Any) -> tuple[Any, ...]:
        return (None,)


def one_hot(
    indices: T, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: Any = "float32", **how: Unpack[How]
) -> T:
    """A vector of `depth` entries for each index: `on_value` at the index, `off_value` elsewhere.

    **Shapes** indices (...), result (..., depth) of `dtype`. An index outside [0, depth) gives `off_value` throughout.
    **Gradient** none. **Source** MXNet `one_hot`.
    """
    return apply(OneHot(depth, on_value, off_value, dtype), indices, **how)


def onehot_encode(indices: T, out: T) -> T:
    """Write the one-hot vectors of `indices` (N,) into `out` (N, depth) and return it. **Source** MXNet `onehot_encode`."""
    shape = getattr(out, "shape", None) if isinstance(out, Tensor) else None
    if shape is None or len(shape) != 2:
        raise ArgumentError(
            f"onehot_encode: out must be an NDArray of 2 dimensions, got {shown(out) if shape is None else shape}"
        )
    return one_hot(indices, shape[1], dtype=out.dtype, out=out)  # type: ignore[attr-defined]  # every array has a dtype
