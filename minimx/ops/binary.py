"""Arithmetic of two operands, elementwise: add, subtract, multiply, divide, modulo; and add_n, the sum of any number.

Each function is stated once, with its two partial derivatives, and then entered under MXNet's names in each form: two arrays of
one shape, two arrays that broadcast, an array and a number. (In MXNet the names with `_scatter_` skip what a sparse array does not
store; here arrays store everything.) The partial derivatives are written with the functions of this file, so that they can be
differentiated again. The forms are explained in forms.py; powers and extremes are in powers.py. Book: chapter 1.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..op import Array, How, Kind, Op, Spec, T, also_called, apply, register
from ..rules import same_dtype, same_shape, unified
from .forms import NUMBERS, Broadcast, Elementwise, Forms, Function, ReversedScalar, Scalar, copy, require_kind

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Add(Function):
    ufunc = np.add
    saves_inputs = False

    def dlhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return g

    def drhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return g


@register("elemwise_add", "_plus", "_Plus", "_add", "_grad_add")
class ElementwiseAdd(Add, Elementwise): ...


@register("broadcast_add", "broadcast_plus")
class BroadcastAdd(Add, Broadcast): ...


@register("_plus_scalar", "_PlusScalar", "_scatter_plus_scalar")
class ScalarAdd(Add, Scalar): ...


class Subtract(Function):
    ufunc = np.subtract
    saves_inputs = False

    def dlhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return g

    def drhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return -g


@register("elemwise_sub", "_minus", "_Minus", "_sub")
class ElementwiseSubtract(Subtract, Elementwise): ...


@register("broadcast_sub", "broadcast_minus")
class BroadcastSubtract(Subtract, Broadcast): ...


@register("_minus_scalar", "_MinusScalar", "_scatter_minus_scalar")
class ScalarSubtract(Subtract, Scalar): ...


@register("_rminus_scalar", "_RMinusScalar")
class ReversedScalarSubtract(Subtract, ReversedScalar): ...


class Multiply(Function):
    ufunc = np.multiply

    def dlhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return multiply(g, rhs)

    def drhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return multiply(g, lhs)


@register("elemwise_mul", "_mul", "_Mul")
class ElementwiseMultiply(Multiply, Elementwise): ...


@register("broadcast_mul")
class BroadcastMultiply(Multiply, Broadcast): ...


@register("_mul_scalar", "_MulScalar")
class ScalarMultiply(Multiply, Scalar):
    saves_inputs = False


class Divide(Function):
    """The quotient; of integers it is cut off towards zero, as in C, and 0 where the divisor is."""

    ufunc = np.true_divide

    def compute(self, xp: Any, lhs: Array, rhs: Array, out: Array | None) -> Array:
        if lhs.dtype.kind == "f":
            return xp.true_divide(lhs, rhs, out=out)
        # fmod takes the sign of lhs: without this remainder the division is exact, and floor_divide rounds nothing
        return xp.floor_divide(xp.subtract(lhs, xp.fmod(lhs, rhs)), rhs, out=out)

    def dlhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return divide(g, rhs)

    def drhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return -divide(multiply(g, lhs), multiply(rhs, rhs))


@register("elemwise_div", "_div", "_Div", "_scatter_elemwise_div")
class ElementwiseDivide(Divide, Elementwise): ...


@register("broadcast_div")
class BroadcastDivide(Divide, Broadcast): ...


@register("_div_scalar", "_DivScalar")
class ScalarDivide(Divide, Scalar):
    saves_inputs = False


@register("_rdiv_scalar", "_RDivScalar")
class ReversedScalarDivide(Divide, ReversedScalar): ...


class Modulo(Function):
    """The remainder, which has the sign of the divisor as in Python; 0 where the divisor is 0, as in MXNet."""

    def compute(self, xp: Any, lhs: Array, rhs: Array, out: Array | None) -> Array:
        undefined = rhs == 0  # before the result is written: out may be rhs
        result = xp.asarray(xp.remainder(lhs, rhs, out=out))  # of arrays without axes NumPy makes no array
        xp.copyto(result, 0, where=undefined)
        return result

    def dlhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return g

    def drhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return -multiply(g, divide(lhs, rhs).floor())


@register("_mod", "_Mod")
class ElementwiseModulo(Modulo, Elementwise): ...


@register("broadcast_mod")
class BroadcastModulo(Modulo, Broadcast): ...


@register("_mod_scalar", "_ModScalar")
class ScalarModulo(Modulo, Scalar):
    saves_inputs = False


@register("_rmod_scalar", "_RModScalar")
class ReversedScalarModulo(Modulo, ReversedScalar): ...


ADD = Forms(BroadcastAdd(), ElementwiseAdd(), ScalarAdd, ScalarAdd, operator.add, "plus")
SUBTRACT = Forms(BroadcastSubtract(), ElementwiseSubtract(), ScalarSubtract, ReversedScalarSubtract, operator.sub, "minus")
MULTIPLY = Forms(BroadcastMultiply(), ElementwiseMultiply(), ScalarMultiply, ScalarMultiply, operator.mul, "mul")
DIVIDE = Forms(BroadcastDivide(), ElementwiseDivide(), ScalarDivide, ReversedScalarDivide, operator.truediv, "div")
MODULO = Forms(BroadcastModulo(), ElementwiseModulo(), ScalarModulo, ReversedScalarModulo, operator.mod, "mod")


def elemwise_add(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """The sum `lhs + rhs` of two arrays of one shape.

    **Shapes** lhs, rhs and result (...). **Gradient** `g` for both. **Source** MXNet `elemwise_add`.
    """
    return apply(ElementwiseAdd(), lhs, rhs, **how)


def broadcast_add(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """The sum `lhs + rhs` of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Gradient** `g` for both, summed over stretched axes. **Source** MXNet `broadcast_add`.
    """
    return apply(BroadcastAdd(), lhs, rhs, **how)


broadcast_plus = also_called("broadcast_plus", broadcast_add)


def add(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """The sum `lhs + rhs` of arrays that broadcast or numbers.

    **Shapes**, **Gradient** as `broadcast_add`. **Source** MXNet `nd.add`.
    """
    return ADD(lhs, rhs, **how)


def elemwise_sub(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """The difference `lhs - rhs` of two arrays of one shape.

    **Shapes** lhs, rhs and result (...). **Gradient** `g` and `-g`. **Source** MXNet `elemwise_sub`.
    """
    return apply(ElementwiseSubtract(), lhs, rhs, **how)


def broadcast_sub(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """The difference `lhs - rhs` of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Gradient** `g` and `-g`, summed over stretched axes. **Source** MXNet `broadcast_sub`.
    """
    return apply(BroadcastSubtract(), lhs, rhs, **how)


broadcast_minus = also_called("broadcast_minus", broadcast_sub)


def subtract(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """The difference `lhs - rhs` of arrays that broadcast or numbers.

    **Shapes**, **Gradient** as `broadcast_sub`. **Source** MXNet `nd.subtract`.
    """
    return SUBTRACT(lhs, rhs, **how)


def elemwise_mul(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """The product `lhs * rhs` of two arrays of one shape.

    **Shapes** lhs, rhs and result (...). **Gradient** `g * rhs` and `g * lhs`. **Source** MXNet `elemwise_mul`.
    """
    return apply(ElementwiseMultiply(), lhs, rhs, **how)


def broadcast_mul(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """The product `lhs * rhs` of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Gradient** `g * rhs` and `g * lhs`, summed over stretched axes. **Source** MXNet `broadcast_mul`.
    """
    return apply(BroadcastMultiply(), lhs, rhs, **how)


def multiply(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """The product `lhs * rhs` of arrays that broadcast or numbers.

    **Shapes**, **Gradient** as `broadcast_mul`. **Source** MXNet `nd.multiply`.
    """
    return MULTIPLY(lhs, rhs, **how)


def elemwise_div(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """The quotient `lhs / rhs` of two arrays of one shape; of integers it is cut off towards zero.

    **Shapes** lhs, rhs and result (...). **Gradient** `g / rhs` and `-g * lhs / rhs**2`. **Source** MXNet `elemwise_div`.
    """
    return apply(ElementwiseDivide(), lhs, rhs, **how)


def broadcast_div(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """The quotient `lhs / rhs` of two arrays that broadcast; of integers it is cut off towards zero.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Gradient** `g / rhs` and `-g * lhs / rhs**2`, summed over stretched axes. **Source** MXNet `broadcast_div`.
    """
    return apply(BroadcastDivide(), lhs, rhs, **how)


def divide(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """The quotient `lhs / rhs` of arrays that broadcast or numbers; of integers it is cut off towards zero.

    **Shapes**, **Gradient** as `broadcast_div`. **Source** MXNet `nd.divide`.
    """
    return DIVIDE(lhs, rhs, **how)


true_divide = divide


def broadcast_mod(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """The remainder `lhs % rhs` of two arrays that broadcast, with the sign of rhs; 0 where rhs is 0.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Gradient** `g` and `-g * floor(lhs / rhs)`, summed over stretched axes. **Source** MXNet `broadcast_mod`.
    """
    return apply(BroadcastModulo(), lhs, rhs, **how)


def modulo(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """The remainder `lhs % rhs` of arrays that broadcast or numbers, with the sign of rhs; 0 where rhs is 0.

    **Shapes**, **Gradient** as `broadcast_mod`. **Source** MXNet `nd.modulo`.
    """
    return MODULO(lhs, rhs, **how)


@register("add_n", "ElementWiseSum")
class AddN(Op):
    kind = Kind.ELEMENTWISE
    inputs = ("args*",)
    saves_inputs = False
    saves_outputs = False

    def infer(self, *args: Spec) -> Spec:
        same_dtype(self, *args)
        same_shape(self, *args)
        require_kind(self, args[0].dtype, NUMBERS)
        return args[0]

    def fill(self, *args: Spec | None) -> tuple[Spec | None, ...]:
        return unified(*args)

    def kernel(self, xp: Any, *args: Array, out: Array | None = None) -> Array:
        if len(args) == 1:
            return copy(xp, args[0], out)
        if len(args) == 2:
            return xp.add(args[0], args[1], out=out)
        total = args[0] + args[1]  # not in out, which may be a later argument
        for arg in args[2:-1]:
            xp.add(total, arg, out=total)
        return xp.add(total, args[-1], out=total if out is None else out)

    def vjp(self, g: Any, y: Any, *args: Any) -> tuple[Any, ...]:
        return (g,) * len(args)


def add_n(*args: T, **how: Unpack[How]) -> T:
    """The sum of all arrays in `args`, from left to right.

    **Shapes** each and result (...), one dtype, which is the result's. **Gradient** `g` for each. **Source** MXNet `add_n`.
    """
    return apply(AddN(), *args, **how)


ElementWiseSum = also_called("ElementWiseSum", add_n)
