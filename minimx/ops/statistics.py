"""Statistics that are no plain reductions: moments (mean and variance together), sums of squares, running sums,
histograms, closeness.

Book: chapter 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, DTypeLike, ShapeError
from ..op import Array, How, Kind, Op, Shape, Spec, T, Tensor, apply, hidden, register
from ..rules import normalize_axis, same_dtype, same_shape
from .reduce import Axes, Reduction, accumulator, as_axes, float32, float64, reduced, spread

if TYPE_CHECKING:
    from typing_extensions import Unpack


# ---- moments


@register("moments")
class Moments(Op):
    kind = Kind.REDUCTION

    axes: tuple[int, ...] | None = None
    keepdims: bool = False

    @property
    def num_outputs(self) -> int:
        return 2

    def plan(self, shape: Shape) -> tuple[Shape, Shape, Shape]:
        return reduced(self.name, self.axes, False, self.keepdims, shape)

    def infer(self, data: Spec) -> tuple[Spec, Spec]:
        if not self.axes:
            raise ArgumentError(f"{self.name}: axes is {self.axes}; name at least one axis, or all of them for global moments")
        result = data.with_shape(self.plan(data.shape)[2])
        return result, result

    def kernel(self, xp: Any, data: Array) -> tuple[Array, Array]:
        axes, _, shape = self.plan(data.shape)
        wide = accumulator(data.dtype) if data.dtype.kind == "f" else float64
        mean = data.mean(axis=axes, dtype=wide, keepdims=True)
        variance = xp.square(data - mean).mean(axis=axes, keepdims=True)
        return mean.reshape(shape).astype(data.dtype, copy=False), variance.reshape(shape).astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        axes, _, _ = self.plan(data.shape)
        count = math.prod(data.shape[axis] for axis in axes) or 1
        to_mean, to_variance = g
        total = None
        if to_mean is not None:
            total = spread(to_mean / count, axes, data.shape)
        if to_variance is not None:
            centred = data - spread(y[0], axes, data.shape)
            part = centred * spread(to_variance * (2 / count), axes, data.shape)
            total = part if total is None else total + part
        return (total,)


def moments(data: T, axes: Axes = None, keepdims: bool = False, **how: Unpack[How]) -> Any:
    """Mean and variance along `axes`: `m = sum data / n`, `v = sum (data - m) ** 2 / n`.

    **Shapes** data (...); both results lack `axes`, or have length 1 there with `keepdims`. **Returns** a list of two. **Raises**
    ArgumentError without axes. **Gradient** `g_m / n + 2 g_v (data - m) / n`. **Source** MXNet `moments`.
    """
    return apply(Moments(as_axes(axes), keepdims), data, **how)


# ---- sums of squares


@register("_square_sum")
class SquareSum(Reduction):
    saves_outputs = False

    def fold(self, xp: Any, data: Array, axes: Shape) -> Array:
        return xp.square(data, dtype=accumulator(data.dtype)).sum(axis=axes, keepdims=True)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (data * 2 * spread(g, self.plan(data.shape)[0], data.shape),)


def square_sum(data: T, axis: Axes = None, keepdims: bool = False, exclude: bool = False, **how: Unpack[How]) -> T:
    """The sum of squares along `axis`, as `sum(square(data), axis)`.

    **Shapes**, **Args** as `sum`. **Gradient** `2 g data`. **Source** MXNet `_square_sum` (for sparse arrays only).
    """
    return apply(SquareSum(as_axes(axis), keepdims, exclude), data, **how)


# ---- running sums


@register("_np_cumsum", "cumsum")
class CumSum(Op):
    kind = Kind.REDUCTION
    inputs: ClassVar = ("a",)
    saves_inputs = False
    saves_outputs = False

    axis: int | None = None
    dtype: np.dtype[Any] | None = None
    #: Sum from the end: the gradient of a running sum.
    reverse: bool = hidden(default=False)

    def infer(self, a: Spec) -> Spec:
        if self.axis is not None:
            normalize_axis(self, self.axis, a.ndim)
        dtype = self.dtype or (np.dtype(np.int64) if a.dtype.kind == "b" else a.dtype)
        return Spec.of((a.size,) if self.axis is None else a.shape, dtype)

    def kernel(self, xp: Any, a: Array) -> Array:
        spec = self.infer(Spec.of(a.shape, a.dtype))
        axis = 0 if self.axis is None else self.axis
        source = a.reshape(spec.shape)
        source = xp.flip(source, axis) if self.reverse else source
        running = xp.cumsum(source, axis=axis, dtype=accumulator(spec.dtype))
        return xp.ascontiguousarray((xp.flip(running, axis) if self.reverse else running).astype(spec.dtype, copy=False))

    def vjp(self, g: Any, y: Any, a: Any) -> tuple[Any, ...]:
        back = apply(CumSum(0 if self.axis is None else self.axis, None, not self.reverse), g)
        back = spread(back, (), a.shape)
        return (back if back.dtype == a.dtype else back.astype(a.dtype),)


def cumsum(a: T, axis: int | None = None, dtype: DTypeLike = None, **how: Unpack[How]) -> T:
    """Running sum along `axis`: `y[i] = a[0] + ... + a[i]`; of the flattened array if axis is None.

    **Shapes** a (...), result the same, or (size,) without axis. **Args** dtype: of the result and of the sums; that of `a` if
    None (int64 for bool). **Gradient** the running sum of `g` from the end. **Source** MXNet `cumsum`.
    """
    wanted = dtype
    return apply(CumSum(axis, wanted), a, **how)


# ---- histogram


@register("_histogram")
class Histogram(Op):
    inputs: ClassVar = ("data", "bins?")
    saves_inputs = False
    saves_outputs = False

    bin_cnt: int | None = None
    range: tuple[float, float] | None = None

    @property
    def num_outputs(self) -> int:
        return 2

    def infer(self, data: Spec, bins: Spec | None = None) -> tuple[Spec, Spec]:
        if bins is not None:
            same_dtype(self, data, bins)
            if bins.ndim != 1 or bins.size < 2:
                raise ShapeError(f"{self.name}: bins has shape {bins.shape}, wants at least two edges in one dimension")
            return Spec.of((bins.size - 1,), np.int64), bins
        if self.bin_cnt is None or self.bin_cnt < 1:
            raise ArgumentError(f"{self.name}: the number of bins is {self.bin_cnt}; 1 or more are needed")
        if self.range is not None and not (len(self.range) == 2 and self.range[0] <= self.range[1]):
            raise ArgumentError(f"{self.name}: range is {self.range}, wants (low, high) with low <= high")
        # edges between whole numbers are no whole numbers
        return Spec.of((self.bin_cnt,), np.int64), Spec.of((self.bin_cnt + 1,), data.dtype if data.dtype.kind == "f" else float32)

    def kernel(self, xp: Any, data: Array, bins: Array | None = None) -> tuple[Array, Array]:
        dtype = data.dtype if data.dtype.kind == "f" or bins is not None else float32
        values = data.reshape(-1).astype(accumulator(data.dtype), copy=False)
        if bins is not None:
            counts, edges = xp.histogram(values, bins=bins.astype(values.dtype, copy=False))
        else:
            counts, edges = xp.histogram(values, bins=self.bin_cnt, range=self.range)
        return counts.astype(np.int64, copy=False), edges.astype(dtype)  # a copy: `edges` may be the input

    def vjp(self, g: Any, y: Any, data: Any, bins: Any = None) -> tuple[Any, ...]:
        return (None,) if bins is None else (None, None)


def histogram(a: T, bins: int | T = 10, range: Sequence[float] | None = None, **how: Unpack[How]) -> Any:
    """How many elements of `a` fall between the edges of each bin; the last bin includes its upper edge.

    **Shapes** a (...), bins (B + 1,); the counts have (B,), the edges (B + 1,). **Args** bins: a number of bins of equal width,
    or the edges in ascending order; range: the first and last edge, the smallest and largest element if None. **Returns** a list
    of counts (int64; float32 if the range was left open, as in MXNet) and edges. **Raises** ValueError if bins is neither;
    ArgumentError for a range that descends. **Gradient** none. **Source** MXNet `histogram`.
    """
    if isinstance(bins, Tensor):
        return apply(Histogram(), a, bins, **how)
    if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)):
        raise ArgumentError(f"histogram: bins is a {type(bins).__name__}, wants an int, or an NDArray or Symbol of edges")
    if range is not None:
        return apply(Histogram(bins, range), a, **how)  # type: ignore[arg-type]  # the operator makes it a tuple
    counts, edges = apply(Histogram(bins), a, **how)
    return [counts.astype("float32"), edges]


# ---- closeness


@register("_contrib_allclose")
class AllClose(Op):
    kind = Kind.REDUCTION
    inputs: ClassVar[tuple[str, ...]] = ("a", "b")

    rtol: float = 1e-5
    atol: float = 1e-8
    equal_nan: bool = True

    def infer(self, a: Spec, b: Spec) -> Spec:
        same_dtype(self, a, b)
        same_shape(self, a, b)
        return Spec.of((), np.uint8)

    def kernel(self, xp: Any, a: Array, b: Array) -> Array:
        return xp.asarray(xp.allclose(a, b, self.rtol, self.atol, self.equal_nan), np.uint8)

    def vjp(self, g: Any, y: Any, a: Any, b: Any) -> tuple[Any, ...]:
        return None, None


def allclose(a: T, b: T, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = True, **how: Unpack[How]) -> T:
    """1 if `|a - b| <= atol + rtol |b|` for all elements, else 0, as uint8.

    **Shapes** a and b equal, result (). **Args** `equal_nan`: whether two NaN are close. **Gradient** none.
    **Source** MXNet `_contrib_allclose`.
    """
    return apply(AllClose(rtol, atol, equal_nan), a, b, **how)
