"""Reductions: many numbers folded into one, along some axes or all: sum, mean, prod, max, min, norm, argmax.

What they share is in two places. `Reduction` holds MXNet's arguments and turns them into axes and shapes, so that each operator
says only how it folds and what its gradient is. `Spread` is the reverse of a sum: it repeats a reduced array along the axes that
were folded, and it is half of every gradient here. Sums of float16 are made in float32. statistics.py has moments, cumsum and
histogram. Book: chapter 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import ArgumentError, DTypeError, DTypeLike, ShapeError
from ..op import Array, How, Kind, Op, Shape, Spec, T, also_called, apply, attributes, register
from ..rules import normalize_axes, normalize_axis
from .binary import broadcast_mul
from .logic import broadcast_equal

if TYPE_CHECKING:
    from typing_extensions import Unpack

Axes = int | Sequence[int] | None  # what a caller may write for `axis`
MANY_ROWS = 512  # from which on it pays to add them up in groups
float16, float32, float64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)


# ---- axes and shapes


def as_axes(axis: Axes) -> tuple[int, ...] | None:
    """What the caller wrote for `axis`, as an attribute: a tuple, or None. What is neither is left for the operator to refuse."""
    if type(axis) is int:
        return (axis,)
    return tuple(axis) if isinstance(axis, list) else axis  # type: ignore[return-value]


@functools.lru_cache(maxsize=4096)  # asked several times for each call
def reduced(name: str, axis: tuple[int, ...] | None, exclude: bool, keepdims: bool, shape: Shape) -> tuple[Shape, Shape, Shape]:
    """The axes to fold, the shape in which they have length 1, and the shape of the result.

    >>> reduced("sum", (-1,), False, False, (2, 3))
    ((1,), (2, 1), (2,))
    """
    axes = normalize_axes(name, axis, len(shape))
    if exclude and axis:
        axes = tuple(i for i in range(len(shape)) if i not in axes)
    kept = tuple(1 if i in axes else length for i, length in enumerate(shape))
    if keepdims:
        return axes, kept, kept
    dropped = tuple(length for i, length in enumerate(shape) if i not in axes)
    return axes, kept, dropped or (1,)  # MXNet has no arrays without axes: everything folded is an array of one


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which numbers of `dtype` are added up or multiplied."""
    return float32 if dtype == float16 else dtype


def added(data: Array, axes: Shape, dtype: np.dtype[Any]) -> Array:
    """The sum along `axes`, which stay with length 1, made in `dtype`.

    Along the last axis NumPy adds in pairs, along others one number after the other, which loses digits where there are many. So many
    rows are added in groups first, of as many rows as there are groups.
    """
    rows = math.prod(data.shape[: len(axes)])
    if rows < MANY_ROWS or dtype.kind != "f" or axes != tuple(range(len(axes))) or len(axes) == data.ndim:
        return data.sum(axis=axes, dtype=dtype, keepdims=True)
    width, size = math.prod(data.shape[len(axes) :]), math.isqrt(rows)
    flat, groups = data.reshape(rows, width), rows // size
    total = flat[: groups * size].reshape(groups, size, width).sum(axis=1, dtype=dtype).sum(axis=0)
    if groups * size < rows:
        total += flat[groups * size :].sum(axis=0, dtype=dtype)
    return total.reshape((1,) * len(axes) + data.shape[len(axes) :])


# ---- the reverse of a sum


@register("_backward_sum")
class Spread(Op):
    """Repeats an array that was reduced from `shape` along `axis`, so that it has that shape again."""

    saves_inputs = False
    saves_outputs = False
    takes_out = True

    axis: tuple[int, ...]
    shape: tuple[int, ...]

    def infer(self, data: Spec) -> Spec:
        kept = tuple(1 if i in self.axis else length for i, length in enumerate(self.shape))
        if math.prod(kept) != data.size:
            raise ShapeError(
                f"{self.name}: data has shape {data.shape}, wants one that {self.shape} has when reduced over {self.axis}"
            )
        return data.with_shape(self.shape)

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        if out is None:
            out = xp.empty(self.shape, data.dtype)
        out[...] = data.reshape([1 if i in self.axis else length for i, length in enumerate(self.shape)])
        return out

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        total = apply(Sum(self.axis, keepdims=True), g) if self.axis else g
        return (spread(total, (), data.shape),)


def spread(data: T, axis: tuple[int, ...], shape: Shape) -> T:
    """`data`, reduced along `axis` before, repeated to `shape`. Without axes: `data` in exactly this shape, zeros in it
    included."""
    return data if data.shape == shape else apply(Spread(axis, shape), data)  # type: ignore[attr-defined]  # tensors have shapes


# ---- sum, mean, prod, max, min and their like


@attributes
class Reduction(Op):
    """Folds along `axis` (None or (): along all; with `exclude`: along all others). Subclasses say how: `fold` keeps the axes."""

    kind = Kind.REDUCTION

    axis: tuple[int, ...] | None = None
    keepdims: bool = False
    exclude: bool = False

    def plan(self, shape: Shape) -> tuple[Shape, Shape, Shape]:
        """Axes to fold, shape with length 1 in their place, shape of the result."""
        return reduced(self.name, self.axis, self.exclude, self.keepdims, shape)

    def infer(self, data: Spec) -> Spec:
        return data.with_shape(self.plan(data.shape)[2])

    def fold(self, xp: Any, data: Array, axes: Shape) -> Array:
        """The result with folded axes kept as length 1, in a dtype that may be wider."""
        raise NotImplementedError

    def kernel(self, xp: Any, data: Array) -> Array:
        axes, _, shape = self.plan(data.shape)
        return self.fold(xp, data, axes).reshape(shape).astype(data.dtype, copy=False)


@register("sum", "sum_axis", "_broadcast_backward")
class Sum(Reduction):
    saves_inputs = False
    saves_outputs = False

    def fold(self, xp: Any, data: Array, axes: Shape) -> Array:
        return added(data, axes, accumulator(data.dtype))

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (spread(g, self.plan(data.shape)[0], data.shape),)


@register("mean")
class Mean(Reduction):
    saves_inputs = False
    saves_outputs = False

    def fold(self, xp: Any, data: Array, axes: Shape) -> Array:
        total = added(data, axes, accumulator(data.dtype) if data.dtype.kind == "f" else float64)
        total /= math.prod(data.shape[axis] for axis in axes)
        return total

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        axes = self.plan(data.shape)[0]
        count = math.prod(data.shape[axis] for axis in axes)
        return (spread(g / (count or 1), axes, data.shape),)


@register("nansum")
class NanSum(Reduction):
    saves_outputs = False

    def fold(self, xp: Any, data: Array, axes: Shape) -> Array:
        return xp.nansum(data, axis=axes, dtype=accumulator(data.dtype), keepdims=True)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (spread(g, self.plan(data.shape)[0], data.shape) * (data == data),)  # NaN alone differs from itself


def product_vjp(op: Reduction, g: Any, data: Any) -> Any:
    """Gradient of a product: for each factor the product of the others.

    Dividing the product by the factor would be 0 / 0 at a factor of 0. So zeros count as 1 here, and their number decides: with
    one zero, only that factor has others without zeros; with two, none has.
    """
    axes = op.plan(data.shape)[0]
    if not axes:  # each element is its own product
        return spread(g, (), data.shape)
    zero = data == 0
    factors = data + zero
    others = apply(Prod(axes, keepdims=True), factors)
    zeros = apply(Sum(axes, keepdims=True), zero)
    alone = broadcast_mul(zeros == 1, zero) + spread(zeros == 0, axes, data.shape)
    return broadcast_mul(others, spread(g, axes, data.shape) * alone) / factors


@register("prod")
class Prod(Reduction):
    saves_outputs = False

    def fold(self, xp: Any, data: Array, axes: Shape) -> Array:
        return data.prod(axis=axes, dtype=accumulator(data.dtype), keepdims=True)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (product_vjp(self, g, data),)


@register("nanprod")
class NanProd(Reduction):
    saves_outputs = False

    def fold(self, xp: Any, data: Array, axes: Shape) -> Array:
        return xp.nanprod(data, axis=axes, dtype=accumulator(data.dtype), keepdims=True)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        missing = data != data
        # nansum over an axis of length 1 puts 0 where NaN is
        present = spread(apply(NanSum((0,)), spread(data, (), (1, *data.shape))), (), data.shape)
        return (product_vjp(self, g, present + missing) * (1 - missing),)


@attributes
class Extremum(Reduction):
    """The largest or the smallest number. Equal ones all receive the gradient, as in MXNet."""

    def infer(self, data: Spec) -> Spec:
        axes, _, shape = self.plan(data.shape)
        if data.size == 0 and 0 not in shape:
            raise ShapeError(f"{self.name}: data has shape {data.shape}; axes {axes} have no element to choose from")
        return data.with_shape(shape)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        _, kept, _ = self.plan(data.shape)
        return (broadcast_mul(spread(g, (), kept), broadcast_equal(data, spread(y, (), kept))),)


@register("max", "max_axis")
class Max(Extremum):
    def fold(self, xp: Any, data: Array, axes: Shape) -> Array:
        return data.max(axis=axes, keepdims=True)


@register("min", "min_axis")
class Min(Extremum):
    def fold(self, xp: Any, data: Array, axes: Shape) -> Array:
        return data.min(axis=axes, keepdims=True)


# ---- norm


@register("norm")
class Norm(Op):
    kind = Kind.REDUCTION

    ord: int = 2
    axis: tuple[int, ...] | None = None
    out_dtype: np.dtype[Any] | None = None
    keepdims: bool = False

    def plan(self, shape: Shape) -> tuple[Shape, Shape, Shape]:
        return reduced(self.name, self.axis, False, self.keepdims, shape)

    def infer(self, data: Spec) -> Spec:
        if self.ord not in (1, 2):
            raise ArgumentError(f"{self.name}: ord is {self.ord}; only 1 (sum of absolute values) and 2 (Euclidean) are known")
        return Spec.of(self.plan(data.shape)[2], self.out_dtype or data.dtype)

    def kernel(self, xp: Any, data: Array) -> Array:
        axes, _, shape = self.plan(data.shape)
        dtype = self.out_dtype or data.dtype
        wide = float64 if data.dtype.kind != "f" or dtype == float64 else accumulator(data.dtype)
        data = data.astype(wide, copy=False)
        if self.ord == 1:
            result = xp.abs(data).sum(axis=axes, keepdims=True)
        elif len(axes) == data.ndim:
            flat = data.reshape(-1)
            result = xp.sqrt(xp.dot(flat, flat)).reshape(1)
        else:
            result = xp.sqrt(xp.square(data).sum(axis=axes, keepdims=True))
        return result.reshape(shape).astype(dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        slope = g if self.ord == 1 else g / y
        if slope.dtype != data.dtype:
            slope = slope.astype(data.dtype)
        return ((data.sign() if self.ord == 1 else data) * spread(slope, self.plan(data.shape)[0], data.shape),)


# ---- argmax, argmin


@attributes
class Position(Op):
    """The position of the largest or the smallest number along `axis`; in the flattened array if that is None."""

    kind = Kind.REDUCTION
    saves_inputs = False
    saves_outputs = False

    axis: int | None = None
    keepdims: bool = False

    def plan(self, shape: Shape) -> tuple[Shape, Shape, Shape]:
        return reduced(self.name, None if self.axis is None else (self.axis,), False, self.keepdims, shape)

    def infer(self, data: Spec) -> Spec:
        axes, _, shape = self.plan(data.shape)
        length = math.prod(data.shape[axis] for axis in axes)
        if not length:
            raise ShapeError(f"{self.name}: data has shape {data.shape}; axes {axes} have no element to choose from")
        dtype = data.dtype
        last = 0 if dtype.kind == "b" else 2 ** (np.finfo(dtype).nmant + 1) if dtype.kind == "f" else np.iinfo(dtype).max
        if length - 1 > last:
            raise DTypeError(f"{self.name}: {dtype.name} cannot hold all positions among {length}; convert data with astype()")
        return data.with_shape(shape)

    def kernel(self, xp: Any, data: Array) -> Array:
        find = getattr(xp, self.name)  # NumPy has the same names
        return find(data, axis=self.axis).reshape(self.plan(data.shape)[2]).astype(data.dtype)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (None,)


@register("argmax")
class ArgMax(Position):
    pass


@register("argmin")
class ArgMin(Position):
    pass


@register("argmax_channel")
class ArgMaxChannel(Op):
    kind = Kind.REDUCTION
    saves_inputs = False
    saves_outputs = False

    def infer(self, data: Spec) -> Spec:
        normalize_axis(self, 1, data.ndim, "the channels' axis")
        return ArgMax(1).infer(data)

    def kernel(self, xp: Any, data: Array) -> Array:
        return ArgMax(1).kernel(xp, data)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (None,)


# ---- public functions. They take the names of built-in functions, so that nothing beneath may call those.


def sum(data: T, axis: Axes = None, keepdims: bool = False, exclude: bool = False, **how: Unpack[How]) -> T:
    """Sum of the elements along `axis`: `y = sum_axis data`.

    **Shapes** data (...); the result lacks `axis` (or has length 1 there with `keepdims`); (1,) if nothing remains. **Args**
    axis: an int, several, or None for all; exclude: sum over the other axes instead. Keeps the dtype; float16 is added up in
    float32. **Gradient** `g`, repeated. **Source** MXNet `sum`.
    """
    return apply(Sum(as_axes(axis), keepdims, exclude), data, **how)


sum_axis = also_called("sum_axis", sum)


def mean(data: T, axis: Axes = None, keepdims: bool = False, exclude: bool = False, **how: Unpack[How]) -> T:
    """Arithmetic mean along `axis`: `y = sum_axis data / n`; of integers, cut towards zero.

    **Shapes**, **Args** as in `sum`. **Gradient** `g / n`, repeated. **Source** MXNet `mean`.
    """
    return apply(Mean(as_axes(axis), keepdims, exclude), data, **how)


def prod(data: T, axis: Axes = None, keepdims: bool = False, exclude: bool = False, **how: Unpack[How]) -> T:
    """Product of the elements along `axis`.

    **Shapes**, **Args** as in `sum`. **Gradient** `g` times the product of the other elements; right at zeros, where MXNet's is
    NaN. **Source** MXNet `prod`.
    """
    return apply(Prod(as_axes(axis), keepdims, exclude), data, **how)


def nansum(data: T, axis: Axes = None, keepdims: bool = False, exclude: bool = False, **how: Unpack[How]) -> T:
    """Sum of the elements along `axis` that are numbers; NaN counts as 0.

    **Shapes**, **Args** as in `sum`. **Gradient** `g`, and 0 at NaN. **Source** MXNet `nansum`.
    """
    return apply(NanSum(as_axes(axis), keepdims, exclude), data, **how)


def nanprod(data: T, axis: Axes = None, keepdims: bool = False, exclude: bool = False, **how: Unpack[How]) -> T:
    """Product of the elements along `axis` that are numbers; NaN counts as 1.

    **Shapes**, **Args** as in `sum`. **Gradient** as in `prod`, and 0 at NaN. **Source** MXNet `nanprod`.
    """
    return apply(NanProd(as_axes(axis), keepdims, exclude), data, **how)


def max(data: T, axis: Axes = None, keepdims: bool = False, exclude: bool = False, **how: Unpack[How]) -> T:
    """Largest element along `axis`; NaN if there is a NaN.

    **Shapes**, **Args** as in `sum`. **Raises** ShapeError where an axis of length 0 has none. **Gradient** `g` for each element
    that equals the largest. **Source** MXNet `max`.
    """
    return apply(Max(as_axes(axis), keepdims, exclude), data, **how)


max_axis = also_called("max_axis", max)


def min(data: T, axis: Axes = None, keepdims: bool = False, exclude: bool = False, **how: Unpack[How]) -> T:
    """Smallest element along `axis`; NaN if there is a NaN.

    **Shapes**, **Args** as in `sum`. **Raises** ShapeError where an axis of length 0 has none. **Gradient** `g` for each element
    that equals the smallest. **Source** MXNet `min`.
    """
    return apply(Min(as_axes(axis), keepdims, exclude), data, **how)


min_axis = also_called("min_axis", min)


def norm(data: T, ord: int = 2, axis: Axes = None, out_dtype: DTypeLike = None, keepdims: bool = False, **how: Unpack[How]) -> T:
    """Norm along `axis`: `y = sum |data|` for ord 1, `y = sqrt(sum data ** 2)` for ord 2.

    **Shapes** as in `sum`. **Args** axis: several axes count as one long vector; out_dtype: of the result, that of data if None.
    **Gradient** `g * sign(data)`, or `g * data / y`, which is NaN where all numbers are 0. **Source** MXNet `norm`.
    """
    wanted = out_dtype
    return apply(Norm(ord, as_axes(axis), wanted, keepdims), data, **how)


def argmax(data: T, axis: int | None = None, keepdims: bool = False, **how: Unpack[How]) -> T:
    """Position of the largest element along `axis`, the first of equal ones, or of the first NaN; None: in the flattened array.

    **Shapes** as in `sum`. The result has the dtype of data (float32 as a rule). **Raises** DTypeError if that cannot hold every
    position. **Gradient** none. **Source** MXNet `argmax`.
    """
    return apply(ArgMax(axis, keepdims), data, **how)


def argmin(data: T, axis: int | None = None, keepdims: bool = False, **how: Unpack[How]) -> T:
    """Position of the smallest element along `axis`, the first of equal ones, or of the first NaN; None: in the flattened array.

    **Shapes**, dtype, **Raises**, **Gradient** as in `argmax`. **Source** MXNet `argmin`.
    """
    return apply(ArgMin(axis, keepdims), data, **how)


def argmax_channel(data: T, **how: Unpack[How]) -> T:
    """Position of the largest element along axis 1: the most likely class.

    **Shapes** data (N, C, ...), result (N, ...). **Gradient** none. **Source** MXNet `argmax_channel`.
    """
    return apply(ArgMaxChannel(), data, **how)
