"""Activation functions of neural networks, elementwise: relu, sigmoid, softsign, hard_sigmoid, softrelu; Activation; smooth_l1.

`Activation` is MXNet's layer that chooses one of them by name; it computes nothing of its own. Most gradients need the output
only, so that the input's memory is free again as soon as the layer is done. LeakyReLU and its kin are with the layers.
Book: chapter 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError
from ..op import Array, How, Kind, Op, Spec, T, apply, attributes, register
from ..rules import same_dtype, same_shape
from .forms import FLOATS, NUMBERS, Unary, as_number, require_kind, scratch
from .trigonometry import Tanh

if TYPE_CHECKING:
    from typing_extensions import Unpack


_ZEROS = {np.dtype(name): np.zeros((), name) for name in ("float16", "float32", "float64")}


@register("relu")
class Relu(Unary):
    accepts = NUMBERS
    saves_inputs = False

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        if data.size <= 4096 and xp is np and (zero := _ZEROS.get(data.dtype)) is not None:
            return np.maximum(data, zero, out=out)  # soonest begun
        if data.dtype.kind == "f":
            return data.clip(data.dtype.type(0), data.dtype.type(math.inf), out=out)  # soonest done with many numbers
        return xp.maximum(data, data.dtype.type(0), out=out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(ReluGradient(), g, y),)


@register("_backward_relu")
class ReluGradient(Op):
    """The gradient that arrived, where the result is above 0; 0 elsewhere, and NaN where the result is NaN."""

    kind = Kind.ELEMENTWISE
    inputs: ClassVar = ("head", "result")
    saves_inputs = (1,)
    saves_outputs = False

    def infer(self, head: Spec, result: Spec) -> Spec:
        same_dtype(self, head, result)
        same_shape(self, head, result)
        return head

    def kernel(self, xp: Any, head: Array, result: Array, out: Array | None = None) -> Array:
        if result.dtype.kind == "f":
            unknown = xp.isnan(result)
            above = xp.greater(result, 0)
            out = xp.multiply(head, above, out=out)
            if unknown.any():
                xp.copyto(out, result.dtype.type(math.nan), where=unknown)
            return out
        return xp.multiply(head, xp.greater(result, 0), out=out)

    def vjp(self, g: Any, y: Any, head: Any, result: Any) -> tuple[Any, ...]:
        return apply(ReluGradient(), g, result), None


def relu(data: T, **how: Unpack[How]) -> T:
    """Rectified linear unit, elementwise: `y = max(data, 0)`.

    **Shapes** data and result (...). **Gradient** `g` where data is above 0, else 0; NaN stays. **Source** MXNet `relu`.
    """
    return apply(Relu(), data, **how)


@register("sigmoid")
class Sigmoid(Unary):
    saves_inputs = False

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        result = xp.negative(data, out=scratch(xp, data, out))
        xp.exp(result, out=result)  # infinite for large negative data, whose sigmoid is then 0, as it should be
        one = data.dtype.type(1)
        xp.add(result, one, out=result)
        return xp.divide(one, result, out=result)  # NumPy is slower at reciprocals

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (y * (1 - y)),)


def sigmoid(data: T, **how: Unpack[How]) -> T:
    """Logistic function, elementwise: `y = 1 / (1 + exp(-data))`.

    **Shapes** data and result (...). **Gradient** `g * (y * (1 - y))`. **Source** MXNet `sigmoid`.
    """
    return apply(Sigmoid(), data, **how)


@register("softsign")
class Softsign(Unary):
    saves_inputs = False

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        scale = xp.abs(data, out=xp.empty_like(data))
        xp.add(scale, data.dtype.type(1), out=scale)
        return xp.divide(data, scale, out=scale if out is None else out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (1 - y.abs()).square(),)


def softsign(data: T, **how: Unpack[How]) -> T:
    """Softsign, elementwise: `y = data / (1 + |data|)`.

    **Shapes** data and result (...). **Gradient** `g * (1 - |y|)**2`. **Source** MXNet `softsign`.
    """
    return apply(Softsign(), data, **how)


@attributes
class SoftRelu(Unary):
    """`log(1 + exp(data))`, as `max(data, 0) + log(1 + exp(-|data|))`, which overflows nowhere. Part of Activation only."""

    name = "softrelu"
    saves_inputs = False

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        tail = xp.abs(data, out=xp.empty_like(data))
        xp.negative(tail, out=tail)
        xp.log1p(xp.exp(tail, out=tail), out=tail)
        return xp.add(xp.maximum(data, data.dtype.type(0)), tail, out=tail if out is None else out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (-g * (-y).expm1(),)


@register("hard_sigmoid")
class HardSigmoid(Unary):
    alpha: float = 0.2
    beta: float = 0.5

    saves_inputs: ClassVar = False

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        number = data.dtype.type
        result = xp.multiply(data, number(self.alpha), out=scratch(xp, data, out))
        xp.add(result, number(self.beta), out=result)
        return result.clip(number(0), number(1), out=result)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * ((y > 0) * (y < 1)) * self.alpha,)


def hard_sigmoid(data: T, alpha: float = 0.2, beta: float = 0.5, **how: Unpack[How]) -> T:
    """Sigmoid of straight pieces, elementwise: `y = min(max(alpha * data + beta, 0), 1)`.

    **Shapes** data and result (...). **Gradient** `g * alpha` where y is inside (0, 1), else 0. **Source** MXNet `hard_sigmoid`.
    """
    return apply(HardSigmoid(as_number(alpha, "hard_sigmoid"), as_number(beta, "hard_sigmoid")), data, **how)


ACTIVATIONS: dict[str, Unary] = {
    "relu": Relu(),
    "sigmoid": Sigmoid(),
    "softrelu": SoftRelu(),
    "softsign": Softsign(),
    "tanh": Tanh(),
}


@register("Activation")
class Activate(Unary):
    act_type: str

    saves_inputs: ClassVar = False

    def infer(self, data: Spec) -> Spec:
        if self.act_type not in ACTIVATIONS:
            raise ArgumentError(f"Activation: act_type is {self.act_type!r}; choose one of {', '.join(ACTIVATIONS)}")
        if data.dtype.kind not in FLOATS:
            require_kind(self, data.dtype, FLOATS)
        return data

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return ACTIVATIONS[self.act_type].kernel(xp, data, out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return ACTIVATIONS[self.act_type].vjp(g, y, data)


def Activation(data: T, act_type: str, **how: Unpack[How]) -> T:
    """The activation function named `act_type`, elementwise: relu, sigmoid, softrelu (`log(1 + exp(data))`), softsign or tanh.

    **Shapes** data and result (...). **Gradient** that of the function. **Source** MXNet `Activation`.
    """
    return apply(Activate(act_type), data, **how)


@register("smooth_l1")
class SmoothL1(Unary):
    scalar: float = 1.0

    saves_outputs: ClassVar = False

    @classmethod
    def ignored_attrs(cls) -> tuple[str, ...]:
        return (*Op.ignored_attrs(), "is_int")

    def square(self, dtype: Any) -> float:
        """The square of `scalar`, or the largest number of `dtype` if that is less."""
        return float(np.minimum(float(self.scalar) * float(self.scalar), np.finfo(dtype).max))

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        number = data.dtype.type
        square = number(self.square(data.dtype))
        if square == np.finfo(data.dtype).max:  # the square piece is narrower than numbers are apart
            return xp.abs(data, out=out)
        size = xp.abs(data, out=xp.empty_like(data))
        near = xp.minimum(size, number(1) / square)  # with it both pieces are one formula: near * (size - near / 2) * square
        xp.subtract(size, near * number(0.5), out=size)
        xp.multiply(size, square, out=size)
        return xp.multiply(size, near, out=size if out is None else out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (data * self.square(data.dtype)).clip(-1.0, 1.0),)


def smooth_l1(data: T, scalar: float = 1.0, **how: Unpack[How]) -> T:
    """Square near 0 and absolute value far away, elementwise, for `s = scalar`: `(s * data)**2 / 2` where `|data| < 1 / s**2`,
    else `|data| - 1 / (2 * s**2)`.

    **Shapes** data and result (...). **Gradient** `g * clip(data * s**2, -1, 1)`. **Source** MXNet `smooth_l1`.
    """
    return apply(SmoothL1(as_number(scalar, "smooth_l1")), data, **how)
