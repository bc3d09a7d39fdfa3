"""Softmax and its kin: softmin, log_softmax, SoftmaxActivation.

All compute `exp(x - max(x))`, which cannot overflow, in at least float32, and their gradients need the results alone. Book: chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, DTypeError, DTypeLike, ShapeError
from ..op import NOT_GIVEN, Array, How, Op, Spec, T, apply, attributes, register
from ..rules import filled, normalize_axis
from .binary import broadcast_mul
from .checks import accurate, along_axis, require_choice, require_float, require_input, require_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


def softmax_of(xp: Any, data: Array, axis: int, out: Array | None = None) -> Array:
    """Exponentials of floating `data`, divided by their sum along `axis`; the largest is subtracted first, so that none
    overflows."""
    if not data.size:
        return xp.empty_like(data) if out is None else out
    exponentials = xp.subtract(data, data.max(axis, keepdims=True), out=out)
    xp.exp(exponentials, out=exponentials)
    exponentials /= exponentials.sum(axis, keepdims=True)
    return exponentials


@attributes
class Normalizer(Op):
    """What softmax, softmin and log_softmax have in common: attributes, the rule of shapes, preparation of the data."""

    takes_out = True
    saves_inputs = False

    axis: int = -1
    temperature: float | None = None
    dtype: np.dtype[Any] | None = None
    use_length: bool = False

    def infer(self, data: Spec, length: Spec | None = None) -> Spec:
        require_float(self, data)
        axis = normalize_axis(self, self.axis, data.ndim)
        if self.dtype is not None and self.dtype.kind != "f":
            raise ArgumentError(f"{self.name}: dtype={self.dtype.name} is not a floating dtype")
        if self.use_length and "length?" not in self.inputs:
            raise ArgumentError(f"{self.name}: use_length=True is not possible: it has no input of lengths; softmax has one")
        require_input(self, "length", length, self.use_length, "pass the lengths together with use_length=True")
        if length is not None:
            if length.dtype.kind not in "iu":
                raise DTypeError(f"{self.name}: length is {length.dtype.name}, wants integers; convert it with astype('int32')")
            require_shape(self, "length", length, data.shape[:axis] + data.shape[axis + 1 :], f"axis {axis} of data {data.shape}")
        return data if self.dtype is None else data.with_dtype(self.dtype)

    def prepare(self, xp: Any, data: Array) -> Array:
        """`data` in the dtype to compute in, divided by the temperature; `data` itself where nothing is to be done."""
        if self.dtype is None and self.temperature is None and data.dtype.char in "fd":  # most calls
            return data
        wanted = np.result_type(data.dtype, np.float32 if self.dtype is None else self.dtype, np.float32)
        logits = data.astype(wanted, copy=False)
        return logits if self.temperature in (None, 1.0) else logits / wanted.type(self.temperature)

    def finish(self, xp: Any, result: Array, data: Array, out: Array | None) -> Array:
        """`result` in the dtype that was promised, and where."""
        if out is not None and result is not out:
            out[...] = result
            return out
        return result.astype(data.dtype if self.dtype is None else self.dtype, copy=False)

    def target(self, logits: Array, data: Array, out: Array | None) -> Array | None:
        """`out` where the result can be computed in it: it has the dtype of `logits`."""
        return out if out is not None and out.dtype == logits.dtype else None

    def returned(self, gradient: Any, data: Any, length: tuple[Any, ...]) -> tuple[Any, ...]:
        """Gradients of the inputs from that of the logits: undo temperature and dtype."""
        if self.temperature not in (None, 1.0):
            gradient = gradient / self.temperature
        if self.dtype is not None and self.dtype != data.dtype:
            gradient = gradient.astype(data.dtype)
        return (gradient, *(None for _ in length))


def softmax_vjp(g: Any, y: Any, axis: int) -> Any:
    """Gradient of a softmax from its result: each y_i times how far g_i is above the mean of g that y weighs."""
    weighed = g * y
    return weighed - broadcast_mul(y, weighed.sum(axis=axis, keepdims=True))


@register("softmax")
class Softmax(Normalizer):
    inputs: ClassVar = ("data", "length?")

    def wants(self, name: str) -> bool:
        return name == "length" and self.use_length

    def fill(self, data: Spec | None, *length: Spec | None) -> tuple[Spec | None, ...]:
        if data is None or not length:
            return (data, *length)
        axis = normalize_axis(self, self.axis, data.ndim)
        return data, filled(length[0], data.shape[:axis] + data.shape[axis + 1 :], data.with_dtype("int32"))

    def kernel(self, xp: Any, data: Array, length: Array | None = None, out: Array | None = None) -> Array:
        logits = self.prepare(xp, data)
        if length is None:
            return self.finish(xp, softmax_of(xp, logits, self.axis, self.target(logits, data, out)), data, out)
        axis = self.axis % data.ndim
        positions = xp.arange(data.shape[axis]).reshape(along_axis(data.shape, axis))
        inside = positions < xp.expand_dims(length, axis)
        result = softmax_of(xp, xp.where(inside, logits, -xp.inf).astype(logits.dtype, copy=False), self.axis)
        return self.finish(xp, xp.where(inside, result, result.dtype.type(0)), data, out)

    def vjp(self, g: Any, y: Any, data: Any, *length: Any) -> tuple[Any, ...]:
        return self.returned(softmax_vjp(g, y, self.axis), data, length)


def softmax(
    data: T = NOT_GIVEN,
    length: T | None = None,
    axis: int = -1,
    temperature: float | None = None,
    dtype: DTypeLike = None,
    use_length: bool | None = False,
    **how: Unpack[How],
) -> T:
    """Exponentials along `axis`, scaled to sum to 1: `y_i = exp(data_i / temperature) / sum_j exp(data_j / temperature)`.

    **Shapes** data and result (...), length: the shape of data without `axis`. **Args** `use_length`: only the first `length`
    elements along the axis take part, the others give 0; `dtype`: of the result. **Gradient** `y (g - sum(g y))`. **Source**
    MXNet `softmax`.
    """
    op = Softmax(axis, temperature, dtype, False if use_length is None else use_length)
    return apply(op, data, *(() if length is None and not op.use_length else (length,)), **how)


@register("softmin")
class Softmin(Normalizer):
    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        logits = xp.negative(self.prepare(xp, data))
        return self.finish(xp, softmax_of(xp, logits, self.axis, logits), data, out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return self.returned(-softmax_vjp(g, y, self.axis), data, ())


def softmin(
    data: T = NOT_GIVEN,
    axis: int = -1,
    temperature: float | None = None,
    dtype: DTypeLike = None,
    use_length: bool | None = False,
    **how: Unpack[How],
) -> T:
    """Softmax of the negated data: `y_i = exp(-data_i / temperature) / sum_j exp(-data_j / temperature)`.

    **Shapes** data and result (...). **Gradient** `-y (g - sum(g y))`. **Source** MXNet `softmin`.
    """
    return apply(Softmin(axis, temperature, dtype, False if use_length is None else use_length), data, **how)


@register("log_softmax")
class LogSoftmax(Normalizer):
    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        logits = self.prepare(xp, data)
        if not data.size:
            return self.finish(xp, xp.empty_like(logits), data, out)
        shifted = xp.subtract(logits, logits.max(self.axis, keepdims=True), out=self.target(logits, data, out))
        shifted -= xp.log(xp.exp(shifted).sum(self.axis, keepdims=True))
        return self.finish(xp, shifted, data, out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        gradient = g - broadcast_mul(y.exp(), g.sum(axis=self.axis, keepdims=True))
        return self.returned(gradient, data, ())


def log_softmax(
    data: T = NOT_GIVEN,
    axis: int = -1,
    temperature: float | None = None,
    dtype: DTypeLike = None,
    use_length: bool | None = False,
    **how: Unpack[How],
) -> T:
    """Logarithm of the softmax along `axis`: `y_i = data_i - log sum_j exp(data_j)`, with data divided by `temperature` first.

    **Shapes** data and result (...). **Gradient** `g - exp(y) sum(g)`. **Source** MXNet `log_softmax`.
    """
    return apply(LogSoftmax(axis, temperature, dtype, False if use_length is None else use_length), data, **how)


@register("SoftmaxActivation")
class SoftmaxActivationLayer(Op):
    saves_inputs = False

    mode: str = "instance"

    def infer(self, data: Spec) -> Spec:
        require_choice(self, "mode", self.mode, "instance", "channel")
        require_float(self, data)
        if data.ndim < 2:
            raise ShapeError(f"SoftmaxActivation: data has shape {data.shape}, wants at least 2 dimensions")
        return data

    @property
    def axis(self) -> int:
        return 1 if self.mode == "channel" else -1

    def kernel(self, xp: Any, data: Array) -> Array:
        return softmax_of(xp, accurate(xp, data), self.axis).astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (softmax_vjp(g, y, self.axis),)


def SoftmaxActivation(data: T, mode: str = "instance", **how: Unpack[How]) -> T:
    """Softmax along the last axis (`mode` "instance") or along axis 1 ("channel").

    **Shapes** data and result (N, C, ...). **Gradient** `y (g - sum(g y))`. **Source** MXNet `SoftmaxActivation`, and what it really
    does: its documentation says that "instance" goes over all axes but the first.
    """
    return apply(SoftmaxActivationLayer(mode), data, **how)


__all__ = ["SoftmaxActivation", "log_softmax", "softmax", "softmin"]
