"""Reading and writing at indices of several axes or rows: gather_nd, scatter_nd, boolean_mask, index_copy.

The companion of indexing.py. Operators that write return a changed copy; the gradient of what was overwritten is zero, and that
of what was written is read at the same place. Book: chapter 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, DTypeError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, register
from ..rules import same_dtype
from .indexing import add_rows, pick, resolve, take
from .shape import as_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


# ---- indices of several axes


def flat_rows(xp: Any, op: Op, indices: Array, shape: Shape) -> Array:
    """Row numbers for indices (M, ...) into the first M axes of `shape`, the other axes making up a row."""
    rows = xp.zeros(indices.shape[1:], np.intp)
    for axis_indices, length in zip(indices, shape):  # the index may be shorter than the shape
        rows = rows * length + resolve(xp, op, axis_indices, length, "python")
    return rows


def check_nd(op: Op, data: Shape, indices: Shape, shape: Shape) -> None:
    """Raise ShapeError unless `data` has one slice of an array of `shape` for each column of `indices` (M, ...)."""
    if len(indices) < 2 or indices[0] > len(shape):
        raise ShapeError(f"{op.name}: indices have shape {indices}; (M, ...) with M up to {len(shape)} axes is needed")
    wanted = indices[1:] + shape[indices[0] :]
    if data != wanted:
        raise ShapeError(f"{op.name}: data has shape {data}; for indices {indices} and shape {shape} it must be {wanted}")


@register("gather_nd")
class GatherND(Op):
    inputs: ClassVar[tuple[str, ...]] = ("data", "indices")
    saves_outputs: ClassVar[bool] = False

    def infer(self, data: Spec, indices: Spec) -> Spec:
        if indices.ndim < 2:
            raise ShapeError(f"{self.name}: indices have shape {indices.shape}; at least 2 dimensions are needed")
        shape = indices.shape[1:] + data.shape[indices.shape[0] :]
        check_nd(self, shape, indices.shape, data.shape)
        return data.with_shape(shape)

    def kernel(self, xp: Any, data: Array, indices: Array) -> Array:
        count = len(indices)
        rows = flat_rows(xp, self, indices, data.shape)
        flat = data.reshape(math.prod(data.shape[:count]), math.prod(data.shape[count:]))
        return xp.take(flat, rows, axis=0).reshape(indices.shape[1:] + data.shape[count:])

    def vjp(self, g: Any, y: Any, data: Any, indices: Any) -> tuple[Any, ...]:
        return _backward_gather_nd(g, indices, data.shape), None


@register("_backward_gather_nd")
class GatherNDAdjoint(Op):
    shape: tuple[int, ...]

    inputs: ClassVar[tuple[str, ...]] = ("data", "indices")
    saves_outputs: ClassVar[bool] = False

    def infer(self, data: Spec, indices: Spec) -> Spec:
        check_nd(self, data.shape, indices.shape, self.shape)
        return data.with_shape(self.shape)

    def kernel(self, xp: Any, data: Array, indices: Array) -> Array:
        count = len(indices)
        rows = flat_rows(xp, self, indices, self.shape)
        values = data.reshape(rows.size, math.prod(self.shape[count:]))
        return add_rows(xp, math.prod(self.shape[:count]), rows, values).reshape(self.shape)

    def vjp(self, g: Any, y: Any, data: Any, indices: Any) -> tuple[Any, ...]:
        return gather_nd(g, indices), None


@register("scatter_nd")
class ScatterND(GatherNDAdjoint):
    def kernel(self, xp: Any, data: Array, indices: Array) -> Array:
        return scatter_into(xp, self, xp.zeros(self.shape, data.dtype), data, indices)


@register("_scatter_set_nd")
class ScatterSetND(Op):
    shape: tuple[int, ...]

    inputs: ClassVar[tuple[str, ...]] = ("lhs", "rhs", "indices")
    saves_outputs: ClassVar[bool] = False

    def infer(self, lhs: Spec, rhs: Spec, indices: Spec) -> Spec:
        if lhs.shape != self.shape:
            raise ShapeError(f"{self.name}: lhs has shape {lhs.shape}, the argument shape is {self.shape}; they must be equal")
        check_nd(self, rhs.shape, indices.shape, self.shape)
        same_dtype(self, lhs, rhs)
        return lhs

    def kernel(self, xp: Any, lhs: Array, rhs: Array, indices: Array) -> Array:
        return scatter_into(xp, self, lhs.copy(), rhs, indices)

    def vjp(self, g: Any, y: Any, lhs: Any, rhs: Any, indices: Any) -> tuple[Any, ...]:
        return _scatter_set_nd(g, rhs.zeros_like(), indices, self.shape), gather_nd(g, indices), None


def scatter_into(xp: Any, op: Op, result: Array, data: Array, indices: Array) -> Array:
    """`result`, with `data` written at `indices` (M, ...); of several values for a place the last one stays."""
    count = len(indices)
    rows = flat_rows(xp, op, indices, result.shape).reshape(-1)
    width = math.prod(result.shape[count:])
    result.reshape(math.prod(result.shape[:count]), width)[rows] = data.reshape(rows.size, width)
    return result


def gather_nd(data: T, indices: T, **how: Unpack[How]) -> T:
    """Elements or slices of `data`: `result[...] = data[indices[0, ...], ..., indices[M - 1, ...]]`.

    **Shapes** data (X1, ..., XN), indices (M, ...) with M <= N; result (..., X(M+1), ..., XN). Negative indices count from the
    end. **Raises** OutOfRangeError when the value is read. **Gradient** of `data`: `g` added at the indices.
    **Source** MXNet `gather_nd`.
    """
    return apply(GatherND(), data, indices, **how)


def _backward_gather_nd(data: T, indices: T, shape: Shape = (), **how: Unpack[How]) -> T:
    """Zeros of `shape`, to which `data` is added at `indices` (M, ...): what `gather_nd` reads there becomes a sum.

    **Shapes** as in `scatter_nd`. **Gradient** of `data`: `gather_nd(g, indices)`. **Source** MXNet `_backward_gather_nd`.
    """
    return apply(GatherNDAdjoint(as_shape(shape)), data, indices, **how)


def scatter_nd(data: T, indices: T, shape: Shape = (), **how: Unpack[How]) -> T:
    """Zeros of `shape`, with `data` written at `indices`: `result[indices[0, ...], ..., indices[M - 1, ...]] = data[...]`.

    **Shapes** data (..., X(M+1), ..., XN), indices (M, ...), result `shape` (X1, ..., XN).
    **Raises** OutOfRangeError when the value is read. **Gradient** of `data`: `gather_nd(g, indices)`, which is right only if no
    place is named twice (the last value stays then). **Source** MXNet `scatter_nd`.
    """
    return apply(ScatterND(as_shape(shape)), data, indices, **how)


def _scatter_set_nd(lhs: T, rhs: T, indices: T, shape: Shape = (), **how: Unpack[How]) -> T:
    """A copy of `lhs` (or `lhs` itself, given as `out`) with `rhs` written at `indices`; otherwise like `scatter_nd`.

    **Gradient** of `lhs`: `g` with the written places zeroed; of `rhs`: `g` there. **Source** MXNet `_scatter_set_nd`.
    """
    return apply(ScatterSetND(as_shape(shape)), lhs, rhs, indices, **how)


# ---- rows of an array


@register("_contrib_boolean_mask")
class BooleanMask(Op):
    axis: int = 0

    inputs: ClassVar[tuple[str, ...]] = ("data", "index")
    data_dependent: ClassVar[bool] = True
    saves_outputs: ClassVar[bool] = False

    def infer(self, data: Spec, index: Spec) -> Spec:
        """Spec of the largest possible result: how many rows remain, only the kernel can tell."""
        self.check(data.shape, index.shape)
        return data

    def check(self, data: Shape, index: Shape) -> None:
        """Raise ArgumentError or ShapeError unless `index` has a number for each row."""
        if self.axis != 0:
            raise ArgumentError(f"{self.name}: axis is {self.axis}; only axis 0 is supported, move it there with swapaxes")
        if not data or index != data[:1]:
            raise ShapeError(f"{self.name}: index has shape {index}, data {data}; index {data[:1]} is needed")

    def kernel(self, xp: Any, data: Array, index: Array) -> Array:
        self.check(data.shape, index.shape)  # nobody has inferred anything before
        return data[index != 0]

    def vjp(self, g: Any, y: Any, data: Any, index: Any) -> tuple[Any, ...]:
        return apply(BooleanMaskAdjoint(), g, index), None


@register("_backward_contrib_boolean_mask")
class BooleanMaskAdjoint(Op):
    """The rows of `grad` where `index` is not zero, in order, and zeros in the other rows."""

    inputs: ClassVar[tuple[str, ...]] = ("grad", "index")
    saves_outputs: ClassVar[bool] = False

    def infer(self, grad: Spec, index: Spec) -> Spec:
        return grad.with_shape(index.shape + grad.shape[1:])

    def kernel(self, xp: Any, grad: Array, index: Array) -> Array:
        result = xp.zeros(index.shape + grad.shape[1:], grad.dtype)
        result[index != 0] = grad
        return result

    def vjp(self, g: Any, y: Any, grad: Any, index: Any) -> tuple[Any, ...]:
        return apply(BooleanMask(), g, index), None


def boolean_mask(data: T, index: T, axis: int = 0, **how: Unpack[How]) -> T:
    """The rows of `data` where `index` is not zero.

    **Shapes** data (N, ...), index (N,), result (count, ...): the shape depends on the values, so the call waits for them.
    **Gradient** of `data`: zeros with `g` in the chosen rows. **Source** MXNet `contrib.boolean_mask`.
    """
    return apply(BooleanMask(axis), data, index, **how)


@register("_contrib_index_copy")
class IndexCopy(Op):
    inputs: ClassVar[tuple[str, ...]] = ("old_tensor", "index_vector", "new_tensor")
    saves_outputs: ClassVar[bool] = False

    def infer(self, old_tensor: Spec, index_vector: Spec, new_tensor: Spec) -> Spec:
        if index_vector.ndim != 1 or new_tensor.shape != index_vector.shape + old_tensor.shape[1:] or not old_tensor.ndim:
            raise ShapeError(
                f"{self.name}: shapes are old_tensor {old_tensor.shape}, index_vector {index_vector.shape}, new_tensor "
                f"{new_tensor.shape}; (N, ...), (M,) and (M, ...) are needed"
            )
        if old_tensor.dtype != new_tensor.dtype:
            kinds = f"old_tensor is {old_tensor.dtype.name} but new_tensor is {new_tensor.dtype.name}"
            raise DTypeError(f"{self.name}: {kinds}; convert one with astype()")
        return old_tensor

    def kernel(self, xp: Any, old_tensor: Array, index_vector: Array, new_tensor: Array) -> Array:
        result = old_tensor.copy()
        result[resolve(xp, self, index_vector, len(result), "raise")] = new_tensor
        return result

    def vjp(self, g: Any, y: Any, old_tensor: Any, index_vector: Any, new_tensor: Any) -> tuple[Any, ...]:
        return index_copy(g, index_vector, new_tensor.zeros_like()), None, take(g, index_vector)


def index_copy(old_tensor: T, index_vector: T, new_tensor: T, **how: Unpack[How]) -> T:
    """A copy of `old_tensor` in which rows are replaced: `result[index_vector[i]] = new_tensor[i]`.

    **Shapes** old_tensor and result (N, ...), index_vector (M,) of distinct rows, new_tensor (M, ...).
    **Raises** OutOfRangeError when the value is read. **Gradient** of `old_tensor`: `g` with the replaced rows zeroed; of
    `new_tensor`: those rows. **Source** MXNet `contrib.index_copy`.
    """
    return apply(IndexCopy(), old_tensor, index_vector, new_tensor, **how)


@register("fill_element_0index")
class FillElement(Op):
    inputs: ClassVar[tuple[str, ...]] = ("lhs", "mhs", "rhs")
    saves_outputs: ClassVar[bool] = False

    def infer(self, lhs: Spec, mhs: Spec, rhs: Spec) -> Spec:
        if lhs.ndim != 2 or mhs.shape != lhs.shape[:1] or rhs.shape != lhs.shape[:1]:
            shapes = f"lhs {lhs.shape}, mhs {mhs.shape}, rhs {rhs.shape}"
            raise ShapeError(f"{self.name}: shapes are {shapes}; lhs (N, C), mhs (N,) and rhs (N,) are needed")
        same_dtype(self, lhs, mhs)
        return lhs

    def kernel(self, xp: Any, lhs: Array, mhs: Array, rhs: Array) -> Array:
        column = rhs.astype(np.intp, copy=False)
        row = xp.flatnonzero((column >= 0) & (column < lhs.shape[1]))
        result = lhs.copy()
        result[row, column[row]] = mhs[row]
        return result

    def vjp(self, g: Any, y: Any, lhs: Any, mhs: Any, rhs: Any) -> tuple[Any, ...]:
        column = rhs.astype("int32")
        inside = ((column >= 0) * (column < lhs.shape[1])).astype(g.dtype)
        return fill_element_0index(g, mhs.zeros_like(), rhs), pick(g, rhs) * inside, None


def fill_element_0index(lhs: T, mhs: T, rhs: T, **how: Unpack[How]) -> T:
    """A copy of `lhs` in which one element a row is replaced: `result[i, rhs[i]] = mhs[i]`.

    **Shapes** lhs and result (N, C), mhs and rhs (N,). Rows whose index is outside [0, C) stay as they are.
    **Gradient** of `lhs`: `g` with the replaced elements zeroed; of `mhs`: those elements.
    **Source** MXNet `fill_element_0index`.
    """
    return apply(FillElement(), lhs, mhs, rhs, **how)
