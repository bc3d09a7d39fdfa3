"""Elementwise functions of one array: sign and rounding, exponentials and logarithms, roots and powers, clip.

Each operator is a class of a few lines. Where NumPy has the function, the kernel is that ufunc, which writes into `out`, so that
a fused group can run tile by tile in place; otherwise it is a few such calls. The gradient is the formula of a textbook, written
with tensors, so that it can be differentiated again. The function beneath the class is what people call.

Functions whose values are fractions take floating arrays only (see forms.py); the others take integers too. Trigonometry is in
trigonometry.py, activations of neural networks in activation.py, erf and gamma in special.py. Book: chapter 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, DTypeError
from ..op import Array, How, Spec, T, apply, register
from .forms import NUMBERS, Unary, as_number, copy, require_kind, scratch

if TYPE_CHECKING:
    from typing_extensions import Unpack


@register("abs")
class Abs(Unary):
    ufunc = np.absolute
    accepts = NUMBERS
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * data.sign(),)


def abs(data: T, **how: Unpack[How]) -> T:
    """Absolute value, elementwise: `y = |data|`.

    **Shapes** data and result (...). **Gradient** `g * sign(data)`: 0 at 0. **Source** MXNet `abs`.
    """
    return apply(Abs(), data, **how)


@register("sign")
class Sign(Unary):
    ufunc = np.sign
    accepts = NUMBERS
    saves_inputs = False
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (None,)


def sign(data: T, **how: Unpack[How]) -> T:
    """Sign, elementwise: 1, 0 or -1; NaN stays NaN.

    **Shapes** data and result (...). **Gradient** 0. **Source** MXNet `sign`.
    """
    return apply(Sign(), data, **how)


@register("negative")
class Negative(Unary):
    ufunc = np.negative
    accepts = NUMBERS
    saves_inputs = False
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (-g,)


def negative(data: T, **how: Unpack[How]) -> T:
    """Negative, elementwise: `y = -data`.

    **Shapes** data and result (...). **Gradient** `-g`. **Source** MXNet `negative`.
    """
    return apply(Negative(), data, **how)


class Rounding(Unary):
    """A function that rounds to whole numbers: integers stay what they are, and the gradient is zero wherever there is one."""

    accepts = NUMBERS
    saves_inputs = False
    saves_outputs = False

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return self.rounded(xp, data, out) if data.dtype.kind == "f" else copy(xp, data, out)

    def rounded(self, xp: Any, data: Array, out: Array | None) -> Array:
        return self.ufunc(data, out=out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (None,)


@register("floor")
class Floor(Rounding):
    ufunc = np.floor


def floor(data: T, **how: Unpack[How]) -> T:
    """Largest whole number not above data, elementwise.

    **Shapes** data and result (...). **Gradient** 0. **Source** MXNet `floor`.
    """
    return apply(Floor(), data, **how)


@register("ceil")
class Ceil(Rounding):
    ufunc = np.ceil


def ceil(data: T, **how: Unpack[How]) -> T:
    """Smallest whole number not below data, elementwise.

    **Shapes** data and result (...). **Gradient** 0. **Source** MXNet `ceil`.
    """
    return apply(Ceil(), data, **how)


@register("trunc")
class Trunc(Rounding):
    ufunc = np.trunc


def trunc(data: T, **how: Unpack[How]) -> T:
    """Whole part of data, rounded towards zero, elementwise.

    **Shapes** data and result (...). **Gradient** 0. **Source** MXNet `trunc`.
    """
    return apply(Trunc(), data, **how)


@register("fix")
class Fix(Rounding):
    ufunc = np.trunc


def fix(data: T, **how: Unpack[How]) -> T:
    """Whole part of data, rounded towards zero (the same as `trunc`), elementwise.

    **Shapes** data and result (...). **Gradient** 0. **Source** MXNet `fix`.
    """
    return apply(Fix(), data, **how)


@register("round")
class Round(Rounding):
    def rounded(self, xp: Any, data: Array, out: Array | None) -> Array:
        whole = xp.trunc(data)
        return xp.add(whole, xp.copysign(xp.abs(data - whole) >= 0.5, data), out=out)


def round(data: T, **how: Unpack[How]) -> T:
    """Nearest whole number, elementwise; halves go away from zero: 2.5 to 3, -2.5 to -3.

    **Shapes** data and result (...). **Gradient** 0. **Source** MXNet `round`.
    """
    return apply(Round(), data, **how)


@register("rint")
class Rint(Rounding):
    def rounded(self, xp: Any, data: Array, out: Array | None) -> Array:
        whole = xp.floor(data)
        return xp.add(whole, data - whole > 0.5, out=out)


def rint(data: T, **how: Unpack[How]) -> T:
    """Nearest whole number, elementwise; halves go down: 2.5 to 2, -2.5 to -3 (MXNet's rule, not that of `numpy.rint`).

    **Shapes** data and result (...). **Gradient** 0. **Source** MXNet `rint`.
    """
    return apply(Rint(), data, **how)


@register("exp")
class Exp(Unary):
    ufunc = np.exp
    saves_inputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * y,)


def exp(data: T, **how: Unpack[How]) -> T:
    """Exponential, elementwise: `y = e ** data`.

    **Shapes** data and result (...). **Gradient** `g * y`. **Source** MXNet `exp`.
    """
    return apply(Exp(), data, **how)


@register("expm1")
class Expm1(Unary):
    ufunc = np.expm1
    saves_inputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (y + 1),)


def expm1(data: T, **how: Unpack[How]) -> T:
    """Exponential less one, elementwise: `y = e ** data - 1`, exact near 0 too.

    **Shapes** data and result (...). **Gradient** `g * (y + 1)`. **Source** MXNet `expm1`.
    """
    return apply(Expm1(), data, **how)


@register("log")
class Log(Unary):
    ufunc = np.log
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g / data,)


def log(data: T, **how: Unpack[How]) -> T:
    """Natural logarithm, elementwise; NaN below 0.

    **Shapes** data and result (...). **Gradient** `g / data`. **Source** MXNet `log`.
    """
    return apply(Log(), data, **how)


@register("log2")
class Log2(Unary):
    ufunc = np.log2
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g / (data * math.log(2.0)),)


def log2(data: T, **how: Unpack[How]) -> T:
    """Logarithm of base 2, elementwise; NaN below 0.

    **Shapes** data and result (...). **Gradient** `g / (data * math.log(2.0))`. **Source** MXNet `log2`.
    """
    return apply(Log2(), data, **how)


@register("log10")
class Log10(Unary):
    ufunc = np.log10
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g / (data * math.log(10.0)),)


def log10(data: T, **how: Unpack[How]) -> T:
    """Logarithm of base 10, elementwise; NaN below 0.

    **Shapes** data and result (...). **Gradient** `g / (data * math.log(10.0))`. **Source** MXNet `log10`.
    """
    return apply(Log10(), data, **how)


@register("log1p")
class Log1p(Unary):
    ufunc = np.log1p
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g / (data + 1),)


def log1p(data: T, **how: Unpack[How]) -> T:
    """Natural logarithm of one more, elementwise: `y = log(1 + data)`, exact near 0 too.

    **Shapes** data and result (...). **Gradient** `g / (data + 1)`. **Source** MXNet `log1p`.
    """
    return apply(Log1p(), data, **how)


@register("square")
class Square(Unary):
    ufunc = np.square
    accepts = NUMBERS
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (data * 2),)


def square(data: T, **how: Unpack[How]) -> T:
    """Square, elementwise: `y = data * data`.

    **Shapes** data and result (...). **Gradient** `g * (data * 2)`. **Source** MXNet `square`.
    """
    return apply(Square(), data, **how)


@register("sqrt")
class Sqrt(Unary):
    ufunc = np.sqrt
    saves_inputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g / (y * 2),)


def sqrt(data: T, **how: Unpack[How]) -> T:
    """Square root, elementwise; NaN below 0.

    **Shapes** data and result (...). **Gradient** `g / (y * 2)`. **Source** MXNet `sqrt`.
    """
    return apply(Sqrt(), data, **how)


@register("rsqrt")
class Rsqrt(Unary):
    saves_inputs = False

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        root = xp.sqrt(data, out=scratch(xp, data, out))
        return xp.reciprocal(root, out=root)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (y * y * y) * -0.5,)


def rsqrt(data: T, **how: Unpack[How]) -> T:
    """Reciprocal of the square root, elementwise: `y = 1 / sqrt(data)`.

    **Shapes** data and result (...). **Gradient** `g * y**3 * -0.5`. **Source** MXNet `rsqrt`.
    """
    return apply(Rsqrt(), data, **how)


@register("cbrt")
class Cbrt(Unary):
    ufunc = np.cbrt
    saves_inputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g / (y * y * 3),)


def cbrt(data: T, **how: Unpack[How]) -> T:
    """Cube root, elementwise; negative below 0.

    **Shapes** data and result (...). **Gradient** `g / (y * y * 3)`. **Source** MXNet `cbrt`.
    """
    return apply(Cbrt(), data, **how)


@register("rcbrt")
class Rcbrt(Unary):
    saves_inputs = False

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        root = xp.cbrt(data, out=scratch(xp, data, out))
        return xp.reciprocal(root, out=root)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (y * y).square() * (-1.0 / 3.0),)


def rcbrt(data: T, **how: Unpack[How]) -> T:
    """Reciprocal of the cube root, elementwise: `y = data ** (-1/3)`.

    **Shapes** data and result (...). **Gradient** `g * y**4 / -3`. **Source** MXNet `rcbrt`.
    """
    return apply(Rcbrt(), data, **how)


@register("reciprocal")
class Reciprocal(Unary):
    ufunc = np.reciprocal
    saves_inputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (-g * (y * y),)


def reciprocal(data: T, **how: Unpack[How]) -> T:
    """Reciprocal, elementwise: `y = 1 / data`.

    **Shapes** data and result (...). **Gradient** `-g * (y * y)`. **Source** MXNet `reciprocal`.
    """
    return apply(Reciprocal(), data, **how)


@register("clip")
class Clip(Unary):
    a_min: float
    a_max: float

    accepts: ClassVar = NUMBERS
    saves_outputs: ClassVar = False

    def infer(self, data: Spec) -> Spec:
        require_kind(self, data.dtype, self.accepts)
        if math.isnan(self.a_min) or math.isnan(self.a_max):
            raise ArgumentError(f"clip: the range is {self.a_min} to {self.a_max}; NaN is no bound")
        if data.dtype.kind != "f":
            limits = np.iinfo(data.dtype)
            if self.a_min > limits.max or self.a_max < limits.min:
                raise DTypeError(f"clip: data is {data.dtype.name}, which has no number of {self.a_min} to {self.a_max}")
        return data

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        low, high = self.a_min, self.a_max
        if data.dtype.kind != "f":  # the whole numbers between the bounds that the dtype has
            limits = np.iinfo(data.dtype)
            low, high = math.ceil(max(low, limits.min)), math.floor(min(high, limits.max))
        return data.clip(data.dtype.type(low), data.dtype.type(high), out=out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * ((data >= self.a_min) * (data <= self.a_max)),)


def clip(data: T, a_min: float, a_max: float, **how: Unpack[How]) -> T:
    """Limit every element to the range from `a_min` to `a_max`.

    **Shapes** data and result (...). **Gradient** `g` inside the range and at its ends, else 0. **Source** MXNet `clip`.
    """
    return apply(Clip(as_number(a_min, "clip"), as_number(a_max, "clip")), data, **how)
