"""Arrays that come from no data: zeros, ones, full, eye, arange, linspace; and what is known of an array without its data: its
shape, size and indices.

Operators without inputs take their shape from their attributes; the functions `nd.zeros(...)` and `sym.zeros(...)`, which also
say on which device, are in the front ends. Book: chapter 1.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, DTypeError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, register
from ..rules import normalize_axis
from .reduce import Axes, as_axes, float32
from .shape import as_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


# ---- without inputs


class Creation(Op):
    """Makes an array from attributes alone."""

    inputs: ClassVar = ()
    saves_outputs = False

    @classmethod
    def ignored_attrs(cls) -> tuple[str, ...]:
        return (*Op.ignored_attrs(), "ctx")  # the device is the caller's business

    def vjp(self, g: Any, y: Any) -> tuple[Any, ...]:
        return ()

    def of_shape(self, shape: Shape) -> Op:
        """The operator that makes an array of this shape, for one whose `shape` has open lengths, zeros."""
        return dataclasses.replace(self, shape=shape)

    def filled(self, shape: Shape, dtype: np.dtype[Any]) -> Spec:
        if any(length < 0 for length in shape):
            raise ShapeError(f"{self.name}: shape is {shape}; lengths cannot be negative")
        return Spec.of(shape, dtype)


@register("_zeros", "_zeros_without_dtype")
class Zeros(Creation):
    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] = float32

    def infer(self) -> Spec:
        return self.filled(self.shape, self.dtype)

    def kernel(self, xp: Any) -> Array:
        return xp.zeros(self.shape, self.dtype)


@register("_ones")
class Ones(Creation):
    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] = float32

    def infer(self) -> Spec:
        return self.filled(self.shape, self.dtype)

    def kernel(self, xp: Any) -> Array:
        return xp.ones(self.shape, self.dtype)


def require_storable(name: str, value: Any, dtype: np.dtype[Any]) -> None:
    """Raise DTypeError unless integers of `dtype` reach to the number `value`; a fraction is cut off, as NumPy and MXNet do."""
    limits = np.iinfo(dtype)
    if not limits.min - 1 < value < limits.max + 1:
        raise DTypeError(f"{name}: value is {value}, which {dtype.name} cannot hold; it has {limits.min} to {limits.max}")


@register("_full")
class Full(Creation):
    value: float
    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] = float32

    def infer(self) -> Spec:
        if self.dtype.kind in "iu":
            require_storable(self.name, self.value, self.dtype)
        return self.filled(self.shape, self.dtype)

    def kernel(self, xp: Any) -> Array:
        return xp.full(self.shape, xp.asarray(self.value).astype(self.dtype), self.dtype)


@register("_eye")
class Eye(Creation):
    N: int
    M: int = 0
    k: int = 0
    dtype: np.dtype[Any] = float32

    def infer(self) -> Spec:
        return self.filled((self.N, self.M if self.M > 0 else self.N), self.dtype)

    def kernel(self, xp: Any) -> Array:
        return xp.eye(self.N, self.M if self.M > 0 else self.N, self.k, dtype=self.dtype)


def ramp(xp: Any, start: float, step: float, repeat: int, count: int, dtype: np.dtype[Any]) -> Array:
    """`count` numbers that grow by `step` from `start`, each `repeat` times in a row."""
    repeat = min(repeat, max(count, 1))
    if dtype.kind == "f":
        steps = xp.arange(-(-count // repeat), dtype=np.float64) * step + start
    else:  # whole numbers, cut before they are multiplied as in NumPy and MXNet
        steps = xp.arange(-(-count // repeat), dtype=np.int64) * int(step) + int(start)
    steps = steps.astype(dtype)
    return xp.repeat(steps, repeat)[:count].copy() if repeat > 1 else steps


@register("_arange")
class Arange(Creation):
    start: float
    stop: float | None = None
    step: float = 1.0
    repeat: int = 1
    infer_range: bool = False
    dtype: np.dtype[Any] = float32

    @property
    def shape(self) -> Shape:
        """(0,) where the length is left open."""
        return (0,) if self.infer_range and self.stop is None else ()

    def of_shape(self, shape: Shape) -> Op:
        if len(shape) != 1 or shape[0] % self.repeat:
            raise ShapeError(f"{self.name}: numbers that come {self.repeat} times each cannot be an array of shape {shape}")
        # Half a step before the next number, so that rounding adds none.
        return dataclasses.replace(self, stop=self.start + self.step * (shape[0] // self.repeat - 0.5), infer_range=False)

    def bounds(self) -> tuple[float, float]:
        """Where the numbers start and before which they end; a single bound is the end."""
        return (0.0, self.start) if self.stop is None else (self.start, self.stop)

    def infer(self) -> Spec:
        if self.step == 0 or self.repeat < 1:
            raise ArgumentError(
                f"{self.name}: step is {self.step} and repeat {self.repeat}; step must not be 0, repeat be positive"
            )
        if self.shape:
            return self.filled(self.shape, self.dtype)
        start, stop = self.bounds()
        span = (stop - start) / self.step
        if not math.isfinite(span):
            raise ArgumentError(f"{self.name}: from {start} to {stop} in steps of {self.step} there is no number of numbers")
        count = math.ceil(span)
        if count < 1:
            raise ArgumentError(f"{self.name}: from {start} to {stop} in steps of {self.step} there are no numbers")
        return Spec.of((count * self.repeat,), self.dtype)

    def kernel(self, xp: Any) -> Array:
        if self.shape:
            raise ShapeError(
                f"{self.name}: infer_range leaves the length to what the result is combined with, which does not say it; give stop instead"
            )
        return ramp(xp, self.bounds()[0], self.step, self.repeat, self.infer().shape[0], self.dtype)


@register("_linspace")
class Linspace(Creation):
    start: float
    stop: float
    num: int
    endpoint: bool = True
    dtype: np.dtype[Any] = float32

    def infer(self) -> Spec:
        if self.num < 0:
            raise ArgumentError(f"{self.name}: num is {self.num}, wants 0 or more")
        return Spec.of((self.num,), self.dtype)

    def kernel(self, xp: Any) -> Array:
        return xp.linspace(self.start, self.stop, self.num, endpoint=self.endpoint).astype(self.dtype)


# ---- from the shape of an array


class OfShape(Op):
    """Looks at the shape of its input alone. It has no gradient."""

    saves_inputs = False
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (None,)


@register("shape_array")
class ShapeArray(OfShape):
    def infer(self, data: Spec) -> Spec:
        return Spec.of((data.ndim,), np.int64)

    def kernel(self, xp: Any, data: Array) -> Array:
        return xp.array(data.shape, np.int64)


@register("size_array")
class SizeArray(OfShape):
    def infer(self, data: Spec) -> Spec:
        return Spec.of((1,), np.int64)

    def kernel(self, xp: Any, data: Array) -> Array:
        return xp.array([data.size], np.int64)


@register("_contrib_arange_like")
class ArangeLike(OfShape):
    start: float = 0.0
    step: float = 1.0
    repeat: int = 1
    axis: int | None = None

    @classmethod
    def ignored_attrs(cls) -> tuple[str, ...]:
        return (*Op.ignored_attrs(), "ctx")

    def infer(self, data: Spec) -> Spec:
        if self.repeat < 1:
            raise ArgumentError(f"{self.name}: repeat is {self.repeat}, wants 1 or more")
        return data if self.axis is None else data.with_shape((data.shape[normalize_axis(self, self.axis, data.ndim)],))

    def kernel(self, xp: Any, data: Array) -> Array:
        shape = data.shape if self.axis is None else (data.shape[self.axis],)
        return ramp(xp, self.start, self.step, self.repeat, math.prod(shape), data.dtype).reshape(shape)


@register("_contrib_index_array")
class IndexArray(OfShape):
    axes: tuple[int, ...] | None = None

    def chosen(self, ndim: int) -> Shape:
        axes = range(ndim) if self.axes is None else self.axes
        return tuple(normalize_axis(self, axis, ndim) for axis in axes)

    def infer(self, data: Spec) -> Spec:
        return Spec.of((*data.shape, len(self.chosen(data.ndim))), np.int64)

    def kernel(self, xp: Any, data: Array) -> Array:
        axes = self.chosen(data.ndim)
        result = xp.empty((*data.shape, len(axes)), np.int64)
        for position, axis in enumerate(axes):
            along = [-1 if each == axis else 1 for each in range(data.ndim)]
            result[..., position] = xp.arange(data.shape[axis]).reshape(along)
        return result


def shape_array(data: T, **how: Unpack[How]) -> T:
    """The shape of data as an array of int64.

    **Shapes** data of n dimensions, result (n,). **Gradient** none. **Source** MXNet `shape_array`.
    """
    return apply(ShapeArray(), data, **how)


def size_array(data: T, **how: Unpack[How]) -> T:
    """The number of elements of data as an array (1,) of int64.

    **Gradient** none. **Source** MXNet `size_array`.
    """
    return apply(SizeArray(), data, **how)


def arange_like(
    data: T, start: float = 0.0, step: float = 1.0, repeat: int = 1, ctx: Any = None, axis: int | None = None, **how: Unpack[How]
) -> T:
    """Numbers that grow by `step` from `start`: as many as data has along `axis`, or in the shape of data if that is None.

    **Args** repeat: each number comes so often in a row; ctx: not needed, the result is where data is. The result has the dtype
    of data. **Gradient** none. **Source** MXNet `contrib.arange_like`.
    """
    return apply(ArangeLike(start, step, repeat, axis), data, **how)


def index_array(data: T, axes: Axes = None, **how: Unpack[How]) -> T:
    """The index of every element: `y[i, j] = (i, j)`; with `axes`, only along these.

    **Shapes** data (...) of n dimensions, result (..., n) of int64. **Gradient** none. **Source** MXNet `contrib.index_array`.
    """
    return apply(IndexArray(as_axes(axes)), data, **how)


# ---- positions in an array and in its memory


class Positions(Op):
    """What ravel_multi_index and unravel_index share: the shape of the array that they count in. They have no gradient."""

    saves_inputs = False
    saves_outputs = False

    shape: tuple[int, ...]

    def strides(self) -> Shape:
        """How far apart neighbours along each axis are. The first length does not matter and may be -1."""
        if not self.shape or any(length < 1 for length in self.shape[1:]):
            raise ArgumentError(f"{self.name}: shape is {self.shape}, wants positive lengths, of which the first may be -1")
        return tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (None,)


@register("_ravel_multi_index", "ravel_multi_index")
class RavelMultiIndex(Positions):
    shape: tuple[int, ...] = ()

    def infer(self, data: Spec) -> Spec:
        if data.ndim != 2 or data.shape[0] != len(self.strides()):
            raise ShapeError(
                f"{self.name}: data has shape {data.shape}, wants ({len(self.shape)}, N): a row for each axis of {self.shape}"
            )
        return data.with_shape(data.shape[1:])

    def kernel(self, xp: Any, data: Array) -> Array:
        strides = xp.array(self.strides(), np.int64)
        return (data.astype(np.int64) * strides[:, None]).sum(axis=0).astype(data.dtype)


@register("_unravel_index", "unravel_index")
class UnravelIndex(Positions):
    shape: tuple[int, ...] = ()

    def infer(self, data: Spec) -> Spec:
        return data.with_shape((len(self.strides()), *data.shape))

    def kernel(self, xp: Any, data: Array) -> Array:
        rest = data.astype(np.int64)
        result = xp.empty((len(self.shape), *data.shape), data.dtype)
        for axis, stride in enumerate(self.strides()):
            result[axis] = rest // stride
            rest = rest % stride
        return result


def ravel_multi_index(data: T, shape: int | tuple[int, ...] = (), **how: Unpack[How]) -> T:
    """Positions in the flattened array of `shape`, of elements whose indices are the columns of data.

    **Shapes** data (n, N) for n dimensions, result (N,). **Args** shape: the first length may be -1, it does not matter. Keeps
    the dtype. **Gradient** none. **Source** MXNet `ravel_multi_index`.
    """
    return apply(RavelMultiIndex(as_shape(shape)), data, **how)


def unravel_index(data: T, shape: int | tuple[int, ...] = (), **how: Unpack[How]) -> T:
    """Indices, along each axis of an array of `shape`, of the elements that have the positions `data` in the flattened array.

    **Shapes** data (...), result (n, ...) for n dimensions. **Args** shape: the first length may be -1, it does not matter. Keeps
    the dtype. **Gradient** none. **Source** MXNet `unravel_index`.
    """
    return apply(UnravelIndex(as_shape(shape)), data, **how)
