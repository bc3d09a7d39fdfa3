"""Powers and extremes of two operands, elementwise: power, maximum, minimum, hypot; and a polynomial of one, quadratic.

Written like the arithmetic in binary.py: a function, its two partial derivatives, and MXNet's names for its forms. Where the two
operands of an extreme are equal, the whole gradient goes to the left one, as in MXNet. Book: chapter 1.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..op import Array, How, T, apply, register
from .binary import multiply
from .forms import FLOATS, Broadcast, Elementwise, Forms, Function, ReversedScalar, Scalar, Unary
from .logic import greater, greater_equal, lesser, lesser_equal

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Power(Function):
    """The power; of integers with a negative exponent it is cut off towards zero, so that all but 1 and -1 give 0."""

    ufunc = np.power
    saves_outputs = True

    def compute(self, xp: Any, lhs: Array, rhs: Array, out: Array | None) -> Array:
        if lhs.dtype.kind == "i" and (rhs < 0).any():
            lhs = xp.where((rhs < 0) & (xp.abs(lhs) > 1), lhs.dtype.type(0), lhs)
            rhs = xp.abs(rhs)
        return xp.power(lhs, rhs, out=out)

    def dlhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return multiply(g, multiply(rhs, POWER(lhs, rhs - 1)))

    def drhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return multiply(g * y, lhs.log())


@register("_power", "_Power")
class ElementwisePower(Power, Elementwise): ...


@register("broadcast_power")
class BroadcastPower(Power, Broadcast): ...


@register("_power_scalar", "_PowerScalar")
class ScalarPower(Power, Scalar):
    saves_outputs = False

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        # The common exponents have functions of their own, which are several times faster than the general power
        if self.scalar == 2:
            return xp.square(data, out=out)
        if data.dtype.kind == "f" and self.scalar in (0.5, -1):
            return (xp.sqrt if self.scalar == 0.5 else xp.reciprocal)(data, out=out)
        return self.compute(xp, data, data.dtype.type(self.scalar), out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        if self.scalar == 0:  # the formula would give 0 * inf at 0
            return (None,)
        if self.scalar == 1:
            return (g,)
        return (g * (data * 2 if self.scalar == 2 else data ** (self.scalar - 1) * self.scalar),)


@register("_rpower_scalar", "_RPowerScalar")
class ReversedScalarPower(Power, ReversedScalar):
    saves_inputs = False

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        base = self.scalar
        return (g * y * (math.log(base) if base > 0 else -math.inf if base == 0 else math.nan),)


class Maximum(Function):
    ufunc = np.maximum

    def dlhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return multiply(g, greater_equal(lhs, rhs))

    def drhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return multiply(g, lesser(lhs, rhs))


@register("_maximum", "_Maximum")
class ElementwiseMaximum(Maximum, Elementwise): ...


@register("broadcast_maximum")
class BroadcastMaximum(Maximum, Broadcast): ...


@register("_maximum_scalar", "_MaximumScalar")
class ScalarMaximum(Maximum, Scalar): ...


class Minimum(Function):
    ufunc = np.minimum

    def dlhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return multiply(g, lesser_equal(lhs, rhs))

    def drhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return multiply(g, greater(lhs, rhs))


@register("_minimum", "_Minimum")
class ElementwiseMinimum(Minimum, Elementwise): ...


@register("broadcast_minimum")
class BroadcastMinimum(Minimum, Broadcast): ...


@register("_minimum_scalar", "_MinimumScalar")
class ScalarMinimum(Minimum, Scalar): ...


class Hypot(Function):
    ufunc = np.hypot
    accepts = FLOATS
    saves_outputs = True

    def dlhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return multiply(g / y, lhs)

    def drhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return multiply(g / y, rhs)


@register("_hypot", "_Hypot")
class ElementwiseHypot(Hypot, Elementwise): ...


@register("broadcast_hypot")
class BroadcastHypot(Hypot, Broadcast): ...


@register("_hypot_scalar", "_HypotScalar")
class ScalarHypot(Hypot, Scalar): ...


POWER = Forms(BroadcastPower(), ElementwisePower(), ScalarPower, ReversedScalarPower, operator.pow, "power")
MAXIMUM = Forms(BroadcastMaximum(), ElementwiseMaximum(), ScalarMaximum, ScalarMaximum, max, "maximum")
MINIMUM = Forms(BroadcastMinimum(), ElementwiseMinimum(), ScalarMinimum, ScalarMinimum, min, "minimum")
HYPOT = Forms(BroadcastHypot(), ElementwiseHypot(), ScalarHypot, ScalarHypot, math.hypot, "hypot")


def broadcast_power(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """The power `lhs ** rhs` of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Gradient** `g * rhs * lhs**(rhs-1)` and `g * lhs**rhs * log(lhs)`, summed over stretched axes.
    **Source** MXNet `broadcast_power`.
    """
    return apply(BroadcastPower(), lhs, rhs, **how)


def power(base: T | float, exp: T | float, **how: Unpack[How]) -> T:
    """The power `base ** exp` of arrays that broadcast or numbers. Two Symbols need equal shapes.

    **Shapes**, **Gradient** as `broadcast_power`. **Source** MXNet `nd.power`.
    """
    return POWER.operator(base, exp, **how)


pow = power


def broadcast_maximum(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """The larger of `lhs` and `rhs`: two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Gradient** `g` of the larger, of lhs where they are equal, summed over stretched axes. **Source** MXNet `broadcast_maximum`.
    """
    return apply(BroadcastMaximum(), lhs, rhs, **how)


def maximum(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """The larger of `lhs` and `rhs`: arrays that broadcast or numbers. Two Symbols need equal shapes.

    **Shapes**, **Gradient** as `broadcast_maximum`. **Source** MXNet `nd.maximum`.
    """
    return MAXIMUM.operator(lhs, rhs, **how)


def broadcast_minimum(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """The smaller of `lhs` and `rhs`: two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Gradient** `g` of the smaller, of lhs where they are equal, summed over stretched axes.
    **Source** MXNet `broadcast_minimum`.
    """
    return apply(BroadcastMinimum(), lhs, rhs, **how)


def minimum(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """The smaller of `lhs` and `rhs`: arrays that broadcast or numbers. Two Symbols need equal shapes.

    **Shapes**, **Gradient** as `broadcast_minimum`. **Source** MXNet `nd.minimum`.
    """
    return MINIMUM.operator(lhs, rhs, **how)


def broadcast_hypot(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """The length `sqrt(lhs**2 + rhs**2)` of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Gradient** `g * lhs / y` and `g * rhs / y`, summed over stretched axes. **Source** MXNet `broadcast_hypot`.
    """
    return apply(BroadcastHypot(), lhs, rhs, **how)


def hypot(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """The length `sqrt(lhs**2 + rhs**2)` of arrays that broadcast or numbers. Two Symbols need equal shapes.

    **Shapes**, **Gradient** as `broadcast_hypot`. **Source** MXNet `sym.hypot`.
    """
    return HYPOT.operator(lhs, rhs, **how)


@register("_contrib_quadratic")
class Quadratic(Unary):
    saves_outputs: ClassVar = False

    a: float = 0.0
    b: float = 0.0
    c: float = 0.0

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        a, b, c = (data.dtype.type(each) for each in (self.a, self.b, self.c))
        inner = data * a
        inner += b
        result = xp.multiply(inner, data, out=out)
        result += c
        return result

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (data * (2 * self.a) + self.b),)


def quadratic(data: T, a: float = 0.0, b: float = 0.0, c: float = 0.0, **how: Unpack[How]) -> T:
    """The polynomial `a data**2 + b data + c`, elementwise.

    **Shapes** data and result (...). **Gradient** `g * (2 a data + b)`. **Source** MXNet `contrib.quadratic`.
    """
    return apply(Quadratic(a, b, c), data, **how)
