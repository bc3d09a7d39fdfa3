"""Pooling: the largest, the mean, the sum, or a norm of the elements under each window.

The largest of a window is the largest of its rows' largest: all kinds of pooling go over one axis after the other, so that a window of
3 x 3 costs six passes rather than nine, and the first axes, which are long in memory, are fast. The gradient of a sum goes the same way
back. That of the largest goes to the first element that equals it, for which the windows have to be looked at point by point, as in
windows.py. Book: chapter 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError
from ..op import Array, How, Op, Shape, Spec, T, apply, attributes, register
from ..rules import require_ndim, same_dtype
from .checks import accurate, on_all_cores, require_choice, require_float, require_shape
from .shape import as_shape
from .windows import WHOLE, Sliding, Window, axes_of, channels_first, channels_last, placed, split

if TYPE_CHECKING:
    from typing_extensions import Unpack

TOGETHER = 1 << 18  # elements of the data that are pooled together: they stay in cache from one axis to the next


# ---- on arrays with the channels as axis 1


def along(index: slice, axis: int) -> tuple[slice, ...]:
    """`index` on an axis, all of those before it."""
    return (*[slice(None)] * axis, index)


def gathered(xp: Any, data: Array, window: Window, counts: Shape, combine: Any, start: Any, out: Array) -> None:
    """Write all elements under each window combined by the ufunc `combine` into `out`; `start` where there are none."""
    for number, count in enumerate(counts):
        axis = number + 2
        shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
        result = out if axis == out.ndim - 1 else xp.empty(shape, data.dtype)
        taps = window.taps(number, data.shape[axis], count)
        inside = [data[along(place, axis)] for _, results, place in taps if results == slice(0, count)]  # for all results
        if len(inside) > 1:
            combine(inside[0], inside[1], out=result)
        else:
            result[...] = inside[0] if inside else start
        for each in inside[2:]:
            combine(result, each, out=result)
        for _, results, place in taps:
            if results != slice(0, count):
                target = result[along(results, axis)]
                combine(target, data[along(place, axis)], out=target)
        data = result


def scattered(xp: Any, head: Array, window: Window, lengths: Shape, out: Array) -> None:
    """Write each element of `head` added to all elements under its window into `out`: the transpose of summing by `gathered`."""
    for number in reversed(range(len(lengths))):
        axis = number + 2
        taps = window.taps(number, lengths[number], head.shape[axis])
        result = out if number == 0 else xp.empty((*head.shape[:axis], lengths[number], *head.shape[axis + 1 :]), head.dtype)
        apart = window.kernel[number] <= window.stride[number]  # no element is under two windows
        if not apart or sum(results.stop - results.start for _, results, _ in taps) < lengths[number]:
            result[...] = 0
        for _, results, place in taps:
            if apart:
                result[along(place, axis)] = head[along(results, axis)]
            else:
                result[along(place, axis)] += head[along(results, axis)]
        head = result


def first_hits(data: Array, result: Array, window: Window) -> Any:
    """For each point of the kernel: where it is in data and in results, and which results it is the first to equal."""
    is_open = result == result  # all, but for those that equal nothing
    for _, results, place in window.places(data.shape[2:], result.shape[2:]):
        inside = is_open[(*WHOLE, *results)]
        hit = data[(*WHOLE, *place)] == result[(*WHOLE, *results)]
        hit &= inside
        inside ^= hit
        yield (*WHOLE, *results), (*WHOLE, *place), hit


# ---- operators


@attributes
class PoolingBase(Sliding):
    """What the operators here share: the attributes of Pooling, and its geometry."""

    takes_out = True

    pool_type: str = "max"
    global_pool: bool = False
    cudnn_off: bool = False
    pooling_convention: str = "valid"
    p_value: int | None = None
    count_include_pad: bool | None = None
    layout: str | None = None

    @classmethod
    def ignored_attrs(cls) -> tuple[str, ...]:
        return (*Op.ignored_attrs(), "dilate")  # there is none; old files have it as (1, 1)

    def shared(self) -> dict[str, Any]:
        """The attributes, for an operator beside this one."""
        return {key: value for key, value in self.__dict__.items() if key != "lengths"}

    def check_data(self, what: str, data: Spec) -> tuple[int, int, Shape]:
        """(examples, channels, lengths) of an input. Raises unless it and the attributes fit each other."""
        require_choice(self, "pool_type", self.pool_type, "max", "avg", "sum", "lp")
        require_choice(self, "pooling_convention", self.pooling_convention, "valid", "full", "same")
        if self.pool_type == "lp" and self.p_value not in (1, 2, 3):
            raise ArgumentError(f"{self.name}: p_value={self.p_value}, pool_type='lp' wants 1, 2 or 3")
        require_float(self, data, what)
        if self.global_pool:
            require_ndim(self, what, data, 3, 4, 5, axes=("batch", "channels", "and those of the image"))
        else:
            self.check_window()
            ndim = len(self.kernel_size)
            if data.ndim != ndim + 2:
                require_ndim(self, what, data, ndim + 2, axes=axes_of(ndim, self.last(ndim + 2)))
            if self.pooling_convention == "same" and any(self.pad):
                raise ArgumentError(
                    f"{self.name}: pad={self.pad} is given, but pooling_convention='same' has no padding; leave it out"
                )
        return split(data.shape, channels_last(self, self.layout, data.ndim - 2))

    def last(self, ndim: int) -> bool:
        """Whether the channels of an array are the last axis."""
        return channels_last(self, self.layout, ndim - 2)

    def over(self, lengths: Shape) -> Window:
        """The window for data of these lengths: over all of it in global pooling."""
        if self.global_pool:
            return Window(lengths, (1,) * len(lengths), (1,) * len(lengths), (0,) * len(lengths))
        return self.window

    def counts(self, lengths: Shape) -> Shape:
        """How many results there are. Raises ShapeError if the window has no place."""
        window = self.over(lengths)
        if min(window.counts(lengths)) < 1 and self.pooling_convention != "same":
            raise self.too_small(lengths)
        if self.pooling_convention == "valid" or self.global_pool:
            return window.counts(lengths)
        if self.pooling_convention == "same":
            return tuple(-(-length // stride) for length, stride in zip(lengths, window.stride))
        steps = zip(lengths, window.pad, window.kernel, window.stride)
        return tuple(1 - (-(length + 2 * pad - kernel) // stride) for length, pad, kernel, stride in steps)

    def divisors(self, xp: Any, lengths: Shape, counts: Shape, dtype: Any) -> Any:
        """What the sums are divided by: the sizes of the windows, as far as they lie in the data or in its padding.

        An array to broadcast, or the number that all have in common.
        """
        window = self.over(lengths)
        sizes: list[Any] = []
        for axis, (length, count) in enumerate(zip(lengths, counts)):
            pad = window.pad[axis]
            start = np.arange(count) * window.stride[axis] - pad
            if self.count_include_pad is False:
                size = np.minimum(start + window.kernel[axis], length) - np.maximum(start, 0)
            else:
                size = np.minimum(start + window.kernel[axis], length + pad) - start
            size = np.maximum(size, 1)
            same = count > 0 and (size == size[0]).all()
            sizes.append(size[0] if same else size.reshape(-1, *[1] * (len(lengths) - 1 - axis)))
        product = math.prod(sizes)
        return dtype.type(product) if np.ndim(product) == 0 else xp.asarray(product.astype(dtype))

    def in_parts(self, xp: Any, function: Any, shape: Shape, out: Array | None, *arrays: Array) -> Array:
        """`out`, into which `function(*arrays, out=...)` writes: a few examples at a time, with the channels as axis 1, in float32 for
        float16.

        `shape` is that of the result with the channels as axis 1.
        """
        last = self.last(arrays[0].ndim)
        result = xp.empty(placed(shape, last), arrays[0].dtype) if out is None else out
        whole = channels_first(xp, result, last)
        step = max(1, TOGETHER // max(1, *(math.prod(array.shape[1:]) for array in arrays)))

        def some(starts: list[int]) -> None:
            for start in starts:
                parts = [accurate(xp, channels_first(xp, array, last)[start : start + step]) for array in arrays]
                target = whole[start : start + step]
                if parts[0].dtype == target.dtype:
                    function(*parts, out=target)
                else:
                    exact = xp.empty(target.shape, parts[0].dtype)
                    function(*parts, out=exact)
                    target[...] = exact

        on_all_cores(xp, list(range(0, shape[0], step)), some)
        return result


@register("Pooling")
class PoolingLayer(PoolingBase):
    @property
    def required(self) -> tuple[str, ...]:  # type: ignore[override]  # one window over all needs no lengths
        return () if self.global_pool else ("kernel_size",)

    @property
    def saves_inputs(self) -> bool:  # type: ignore[override]  # of sums and means, the gradient looks at no value
        return self.pool_type in ("max", "lp")

    @property
    def saves_outputs(self) -> bool:  # type: ignore[override]  # as above
        return self.pool_type in ("max", "lp")

    def infer(self, data: Spec) -> Spec:
        batch, channels, lengths = self.check_data("data", data)
        return data.with_shape(placed((batch, channels, *self.counts(lengths)), self.last(data.ndim)))

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        batch, channels, lengths = split(data.shape, self.last(data.ndim))
        window, counts = self.over(lengths), self.counts(lengths)
        axes = tuple(range(2, data.ndim))

        def combined(part: Array, combine: Any, start: Any, out: Array) -> None:
            if self.global_pool:
                (part.max if combine is xp.maximum else part.sum)(axes, keepdims=True, out=out)
            else:
                gathered(xp, part, window, counts, combine, start, out)

        def largest(part: Array, out: Array) -> None:
            combined(part, xp.maximum, np.finfo(data.dtype).min, out)

        def total(part: Array, out: Array) -> None:
            combined(part, xp.add, 0, out)
            if self.pool_type == "avg":
                xp.divide(out, self.divisors(xp, lengths, counts, part.dtype), out=out)

        def norm(part: Array, out: Array) -> None:
            if self.p_value == 1:
                combined(part, xp.add, 0, out)
            elif self.p_value == 2:
                combined(xp.square(part), xp.add, 0, out)
                xp.sqrt(out, out=out)
            else:
                combined(part * part * part, xp.add, 0, out)
                xp.cbrt(out, out=out)

        functions = {"max": largest, "sum": total, "avg": total, "lp": norm}
        return self.in_parts(xp, functions[self.pool_type], (batch, channels, *counts), out, data)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        if self.pool_type == "max":
            return (apply(PoolingFirst(**self.shared()), g, data, y),)
        lengths = split(data.shape, self.last(len(data.shape)))[2]
        if self.pool_type != "lp":
            return (apply(PoolingSpread(**self.shared(), lengths=lengths), g),)
        spread = PoolingSpread(**{**self.shared(), "pool_type": "sum"}, lengths=lengths)
        power = (self.p_value or 1) - 1
        if not power:
            return (apply(spread, g),)
        # Where all elements are 0 the norm has no slope; it counts as 0 there, as 0 divided by 0 would be NaN.
        return (apply(spread, g / (y + (y == 0)) ** power) * data**power,)


@register("_backward_Pooling")
class PoolingSpread(PoolingBase):
    """From the gradient of sums or means to that of the data, whose `lengths` do not follow from those of the results."""

    inputs: ClassVar = ("head",)
    saves_inputs = False
    saves_outputs = False

    lengths: tuple[int, ...] = ()

    def infer(self, head: Spec) -> Spec:
        batch, channels, _ = self.check_data("head", head)
        last = self.last(head.ndim)
        wanted = placed((batch, channels, *self.counts(self.lengths)), last)
        require_shape(self, "head", head, wanted, f"data of lengths {self.lengths}")
        return head.with_shape(placed((batch, channels, *self.lengths), last))

    def kernel(self, xp: Any, head: Array, out: Array | None = None) -> Array:
        batch, channels, counts = split(head.shape, self.last(head.ndim))
        window = self.over(self.lengths)

        def spread(part: Array, out: Array) -> None:
            if self.pool_type == "avg":
                part = part / self.divisors(xp, self.lengths, counts, part.dtype)
            if self.global_pool:
                out[...] = part  # a single number fits everywhere
            else:
                scattered(xp, part, window, self.lengths, out)

        return self.in_parts(xp, spread, (batch, channels, *self.lengths), out, head)

    def vjp(self, g: Any, y: Any, head: Any) -> tuple[Any, ...]:
        return (apply(PoolingLayer(**self.shared()), g),)


@attributes
class PoolingPlaces(PoolingBase):
    """What the operators share that know the places of the largest elements from the data and their pooled values."""

    inputs: ClassVar = ("head", "data", "result")
    saves_inputs = (1, 2)
    saves_outputs = False

    def check_places(self, data: Spec, result: Spec, *more: Spec) -> None:
        batch, channels, lengths = self.check_data("data", data)
        same_dtype(self, data, result, *more)
        wanted = placed((batch, channels, *self.counts(lengths)), self.last(data.ndim))
        require_shape(self, "result", result, wanted, f"data of shape {data.shape}")


@register("_backward_Pooling_max")
class PoolingFirst(PoolingPlaces):
    """From the gradient of maxima to that of the data: the first element that equals its window's largest gets it."""

    def infer(self, head: Spec, data: Spec, result: Spec) -> Spec:
        self.check_places(data, result, head)
        require_shape(self, "head", head, result.shape, f"data of shape {data.shape}")
        return data

    def kernel(self, xp: Any, head: Array, data: Array, result: Array, out: Array | None = None) -> Array:
        batch, channels, lengths = split(data.shape, self.last(data.ndim))
        window = self.over(lengths)

        apart = all(kernel <= stride for kernel, stride in zip(window.kernel, window.stride))  # no element is under two windows

        def first(head: Array, data: Array, result: Array, out: Array) -> None:
            out[...] = 0
            for results, place, hit in first_hits(data, result, window):
                if apart:
                    out[place] = xp.where(hit, head[results], 0)  # a product would make NaN of 0 and infinity
                else:
                    out[place] += xp.where(hit, head[results], 0)

        return self.in_parts(xp, first, (batch, channels, *lengths), out, head, data, result)

    def vjp(self, g: Any, y: Any, head: Any, data: Any, result: Any) -> tuple[Any, ...]:
        return apply(PoolingChosen(**self.shared()), g, data, result), None, None


@register("_backward_Pooling_chosen")
class PoolingChosen(PoolingPlaces):
    """Of an array like the data, the elements at the places of the maxima: the transpose of PoolingFirst."""

    def infer(self, head: Spec, data: Spec, result: Spec) -> Spec:
        self.check_places(data, result, head)
        require_shape(self, "head", head, data.shape, "data")
        return result

    def kernel(self, xp: Any, head: Array, data: Array, result: Array, out: Array | None = None) -> Array:
        batch, channels, lengths = split(data.shape, self.last(data.ndim))
        counts = split(result.shape, self.last(data.ndim))[2]
        window = self.over(lengths)

        def chosen(head: Array, data: Array, result: Array, out: Array) -> None:
            out[...] = 0
            for results, place, hit in first_hits(data, result, window):
                out[results] += xp.where(hit, head[place], 0)

        return self.in_parts(xp, chosen, (batch, channels, *counts), out, head, data, result)

    def vjp(self, g: Any, y: Any, head: Any, data: Any, result: Any) -> tuple[Any, ...]:
        return apply(PoolingFirst(**self.shared()), g, data, result), None, None


def Pooling(
    data: T,
    kernel: tuple[int, ...] = (),
    pool_type: str = "max",
    global_pool: bool = False,
    cudnn_off: bool = False,
    pooling_convention: str = "valid",
    stride: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
    p_value: int | None = None,
    count_include_pad: bool | None = None,
    layout: str | None = None,
    **how: Unpack[How],
) -> T:
    """The elements under each window that slides over one, two or three axes become one: their largest, mean, sum or norm.

    **Shapes** data (N, C, ...), result (N, C, ...) with lengths `(length + 2 pad - kernel) / stride + 1`, rounded down.
    **Args** `pool_type`: "max", "avg", "sum", or "lp", `(sum of x ** p_value) ** (1 / p_value)` (for
    an odd `p_value` with the elements' signs, as MXNet has it); `global_pool`: one window over all,
    whatever `kernel` says; `pooling_convention`: "full" rounds lengths up, so that windows may reach beyond the end, "same" gives `length /
    stride` rounded up; `count_include_pad`: False divides by the number of real elements; `layout`: "NCW", "NCHW", "NCDHW", or
    "NWC", "NHWC", "NDHWC". **Raises** ShapeError if the window does not fit into the data. **Gradient** of the largest: to the first
    that equals it; of the others: g divided among the elements, by their part. **Source** MXNet `Pooling` (where "same" is for max).
    """
    op = PoolingLayer(
        kernel_size=as_shape(kernel), pool_type=pool_type, global_pool=global_pool, cudnn_off=cudnn_off, stride=as_shape(stride),
        pooling_convention=pooling_convention, pad=as_shape(pad), p_value=p_value, count_include_pad=count_include_pad, layout=layout,
    )  # fmt: skip
    return apply(op, data, **how)


__all__ = ["Pooling"]
