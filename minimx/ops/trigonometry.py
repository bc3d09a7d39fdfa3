"""Trigonometric and hyperbolic functions, their inverses, and degrees to radians and back: elementwise, floating arrays only.

The kernels are NumPy's ufuncs; what this file says is their gradients. Book: chapter 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..op import How, T, apply, register
from .forms import Unary

if TYPE_CHECKING:
    from typing_extensions import Unpack


@register("sin")
class Sin(Unary):
    ufunc = np.sin
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * cos(data),)


def sin(data: T, **how: Unpack[How]) -> T:
    """Sine of an angle in radians, elementwise.

    **Shapes** data and result (...). **Gradient** `g * cos(data)`. **Source** MXNet `sin`.
    """
    return apply(Sin(), data, **how)


@register("cos")
class Cos(Unary):
    ufunc = np.cos
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (-g * sin(data),)


def cos(data: T, **how: Unpack[How]) -> T:
    """Cosine of an angle in radians, elementwise.

    **Shapes** data and result (...). **Gradient** `-g * sin(data)`. **Source** MXNet `cos`.
    """
    return apply(Cos(), data, **how)


@register("tan")
class Tan(Unary):
    ufunc = np.tan
    saves_inputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (y * y + 1),)


def tan(data: T, **how: Unpack[How]) -> T:
    """Tangent of an angle in radians, elementwise.

    **Shapes** data and result (...). **Gradient** `g * (y * y + 1)`. **Source** MXNet `tan`.
    """
    return apply(Tan(), data, **how)


@register("arcsin")
class Arcsin(Unary):
    ufunc = np.arcsin
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (1 - data * data).rsqrt(),)


def arcsin(data: T, **how: Unpack[How]) -> T:
    """Angle in [-pi/2, pi/2] whose sine is data, elementwise; NaN outside [-1, 1].

    **Shapes** data and result (...). **Gradient** `g / sqrt(1 - data**2)`. **Source** MXNet `arcsin`.
    """
    return apply(Arcsin(), data, **how)


@register("arccos")
class Arccos(Unary):
    ufunc = np.arccos
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (-g * (1 - data * data).rsqrt(),)


def arccos(data: T, **how: Unpack[How]) -> T:
    """Angle in [0, pi] whose cosine is data, elementwise; NaN outside [-1, 1].

    **Shapes** data and result (...). **Gradient** `-g / sqrt(1 - data**2)`. **Source** MXNet `arccos`.
    """
    return apply(Arccos(), data, **how)


@register("arctan")
class Arctan(Unary):
    ufunc = np.arctan
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g / (data * data + 1),)


def arctan(data: T, **how: Unpack[How]) -> T:
    """Angle in (-pi/2, pi/2) whose tangent is data, elementwise.

    **Shapes** data and result (...). **Gradient** `g / (data * data + 1)`. **Source** MXNet `arctan`.
    """
    return apply(Arctan(), data, **how)


@register("sinh")
class Sinh(Unary):
    ufunc = np.sinh
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * cosh(data),)


def sinh(data: T, **how: Unpack[How]) -> T:
    """Hyperbolic sine, elementwise: `y = (e**data - e**-data) / 2`.

    **Shapes** data and result (...). **Gradient** `g * cosh(data)`. **Source** MXNet `sinh`.
    """
    return apply(Sinh(), data, **how)


@register("cosh")
class Cosh(Unary):
    ufunc = np.cosh
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * sinh(data),)


def cosh(data: T, **how: Unpack[How]) -> T:
    """Hyperbolic cosine, elementwise: `y = (e**data + e**-data) / 2`.

    **Shapes** data and result (...). **Gradient** `g * sinh(data)`. **Source** MXNet `cosh`.
    """
    return apply(Cosh(), data, **how)


@register("tanh")
class Tanh(Unary):
    ufunc = np.tanh
    saves_inputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (1 - y * y),)


def tanh(data: T, **how: Unpack[How]) -> T:
    """Hyperbolic tangent, elementwise: `y = sinh(data) / cosh(data)`.

    **Shapes** data and result (...). **Gradient** `g * (1 - y * y)`. **Source** MXNet `tanh`.
    """
    return apply(Tanh(), data, **how)


@register("arcsinh")
class Arcsinh(Unary):
    ufunc = np.arcsinh
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (data * data + 1).rsqrt(),)


def arcsinh(data: T, **how: Unpack[How]) -> T:
    """Number whose hyperbolic sine is data, elementwise.

    **Shapes** data and result (...). **Gradient** `g / sqrt(data**2 + 1)`. **Source** MXNet `arcsinh`.
    """
    return apply(Arcsinh(), data, **how)


@register("arccosh")
class Arccosh(Unary):
    ufunc = np.arccosh
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (data * data - 1).rsqrt(),)


def arccosh(data: T, **how: Unpack[How]) -> T:
    """Number from 0 up whose hyperbolic cosine is data, elementwise; NaN below 1.

    **Shapes** data and result (...). **Gradient** `g / sqrt(data**2 - 1)`. **Source** MXNet `arccosh`.
    """
    return apply(Arccosh(), data, **how)


@register("arctanh")
class Arctanh(Unary):
    ufunc = np.arctanh
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g / (1 - data * data),)


def arctanh(data: T, **how: Unpack[How]) -> T:
    """Number whose hyperbolic tangent is data, elementwise; NaN outside [-1, 1].

    **Shapes** data and result (...). **Gradient** `g / (1 - data * data)`. **Source** MXNet `arctanh`.
    """
    return apply(Arctanh(), data, **how)


@register("degrees")
class Degrees(Unary):
    ufunc = np.degrees
    saves_inputs = False
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (180.0 / math.pi),)


def degrees(data: T, **how: Unpack[How]) -> T:
    """Radians to degrees, elementwise: `y = data * 180 / pi`.

    **Shapes** data and result (...). **Gradient** `g * (180.0 / math.pi)`. **Source** MXNet `degrees`.
    """
    return apply(Degrees(), data, **how)


@register("radians")
class Radians(Unary):
    ufunc = np.radians
    saves_inputs = False
    saves_outputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (math.pi / 180.0),)


def radians(data: T, **how: Unpack[How]) -> T:
    """Degrees to radians, elementwise: `y = data * pi / 180`.

    **Shapes** data and result (...). **Gradient** `g * (math.pi / 180.0)`. **Source** MXNet `radians`.
    """
    return apply(Radians(), data, **how)
