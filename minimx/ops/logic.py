"""Comparisons and logic, elementwise: equal, greater, logical_and, logical_not; and where, which chooses by a condition.

MXNet 1.x has no separate type for truth: the answer is 1 or 0 *in the operands' dtype*, so that `x * (x > 0)` is a product of
arrays of one dtype. Any number but 0 counts as true (NaN too). Nothing here has a gradient but `where`: an answer does not change
when its operands change a little. Built on the forms of forms.py. Book: chapter 1.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, DTypeError, ShapeError, shown
from ..op import Array, How, Op, Spec, T, Tensor, advice_on_list, apply, register
from .forms import ANY, Broadcast, Elementwise, Forms, Function, Scalar, Unary

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Truth(Function):
    """A function whose value is true or false, written as 1 or 0 in the dtype of its operands."""

    saves_inputs = False
    accepts = ANY
    test: ClassVar[Any]  # the NumPy function, whose value is boolean

    def compute(self, xp: Any, lhs: Array, rhs: Array, out: Array | None) -> Array:
        answer = self.test(lhs, rhs)
        if out is None:
            return answer.astype(lhs.dtype)
        xp.copyto(out, answer)
        return out


class Equal(Truth):
    test = np.equal


@register("_equal", "_Equal")
class ElementwiseEqual(Equal, Elementwise): ...


@register("broadcast_equal")
class BroadcastEqual(Equal, Broadcast): ...


@register("_equal_scalar", "_EqualScalar")
class ScalarEqual(Equal, Scalar): ...


class NotEqual(Truth):
    test = np.not_equal


@register("_not_equal", "_Not_Equal")
class ElementwiseNotEqual(NotEqual, Elementwise): ...


@register("broadcast_not_equal")
class BroadcastNotEqual(NotEqual, Broadcast): ...


@register("_not_equal_scalar", "_NotEqualScalar")
class ScalarNotEqual(NotEqual, Scalar): ...


class Greater(Truth):
    test = np.greater


@register("_greater", "_Greater")
class ElementwiseGreater(Greater, Elementwise): ...


@register("broadcast_greater")
class BroadcastGreater(Greater, Broadcast): ...


@register("_greater_scalar", "_GreaterScalar")
class ScalarGreater(Greater, Scalar): ...


class GreaterEqual(Truth):
    test = np.greater_equal


@register("_greater_equal", "_Greater_Equal")
class ElementwiseGreaterEqual(GreaterEqual, Elementwise): ...


@register("broadcast_greater_equal")
class BroadcastGreaterEqual(GreaterEqual, Broadcast): ...


@register("_greater_equal_scalar", "_GreaterEqualScalar")
class ScalarGreaterEqual(GreaterEqual, Scalar): ...


class Lesser(Truth):
    test = np.less


@register("_lesser", "_Lesser")
class ElementwiseLesser(Lesser, Elementwise): ...


@register("broadcast_lesser")
class BroadcastLesser(Lesser, Broadcast): ...


@register("_lesser_scalar", "_LesserScalar")
class ScalarLesser(Lesser, Scalar): ...


class LesserEqual(Truth):
    test = np.less_equal


@register("_lesser_equal", "_Lesser_Equal")
class ElementwiseLesserEqual(LesserEqual, Elementwise): ...


@register("broadcast_lesser_equal")
class BroadcastLesserEqual(LesserEqual, Broadcast): ...


@register("_lesser_equal_scalar", "_LesserEqualScalar")
class ScalarLesserEqual(LesserEqual, Scalar): ...


class LogicalAnd(Truth):
    test = np.logical_and


@register("_logical_and", "_Logical_And")
class ElementwiseLogicalAnd(LogicalAnd, Elementwise): ...


@register("broadcast_logical_and")
class BroadcastLogicalAnd(LogicalAnd, Broadcast): ...


@register("_logical_and_scalar", "_LogicalAndScalar")
class ScalarLogicalAnd(LogicalAnd, Scalar): ...


class LogicalOr(Truth):
    test = np.logical_or


@register("_logical_or", "_Logical_Or")
class ElementwiseLogicalOr(LogicalOr, Elementwise): ...


@register("broadcast_logical_or")
class BroadcastLogicalOr(LogicalOr, Broadcast): ...


@register("_logical_or_scalar", "_LogicalOrScalar")
class ScalarLogicalOr(LogicalOr, Scalar): ...


class LogicalXor(Truth):
    test = np.logical_xor


@register("_logical_xor", "_Logical_Xor")
class ElementwiseLogicalXor(LogicalXor, Elementwise): ...


@register("broadcast_logical_xor")
class BroadcastLogicalXor(LogicalXor, Broadcast): ...


@register("_logical_xor_scalar", "_LogicalXorScalar")
class ScalarLogicalXor(LogicalXor, Scalar): ...


# Each comparison with the number on the left is another one with it on the right: `2 < x` is `x > 2`.
EQUAL = Forms(BroadcastEqual(), ElementwiseEqual(), ScalarEqual, ScalarEqual, operator.eq)
NOT_EQUAL = Forms(BroadcastNotEqual(), ElementwiseNotEqual(), ScalarNotEqual, ScalarNotEqual, operator.ne)
GREATER = Forms(BroadcastGreater(), ElementwiseGreater(), ScalarGreater, ScalarLesser, operator.gt)
GREATER_EQUAL = Forms(BroadcastGreaterEqual(), ElementwiseGreaterEqual(), ScalarGreaterEqual, ScalarLesserEqual, operator.ge)
LESSER = Forms(BroadcastLesser(), ElementwiseLesser(), ScalarLesser, ScalarGreater, operator.lt)
LESSER_EQUAL = Forms(BroadcastLesserEqual(), ElementwiseLesserEqual(), ScalarLesserEqual, ScalarGreaterEqual, operator.le)
LOGICAL_AND = Forms(
    BroadcastLogicalAnd(), ElementwiseLogicalAnd(), ScalarLogicalAnd, ScalarLogicalAnd, lambda lhs, rhs: bool(lhs and rhs)
)
LOGICAL_OR = Forms(
    BroadcastLogicalOr(), ElementwiseLogicalOr(), ScalarLogicalOr, ScalarLogicalOr, lambda lhs, rhs: bool(lhs or rhs)
)
LOGICAL_XOR = Forms(
    BroadcastLogicalXor(), ElementwiseLogicalXor(), ScalarLogicalXor, ScalarLogicalXor, lambda lhs, rhs: bool(lhs) != bool(rhs)
)


def broadcast_equal(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """1 where `lhs == rhs`, else 0, of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Source** MXNet `broadcast_equal`.
    """
    return apply(BroadcastEqual(), lhs, rhs, **how)


def equal(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """1 where `lhs == rhs`, else 0, of arrays that broadcast or numbers.

    **Shapes** as `broadcast_equal`. **Source** MXNet `nd.equal`.
    """
    return EQUAL(lhs, rhs, **how)


def broadcast_not_equal(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """1 where `lhs != rhs`, else 0, of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Source** MXNet `broadcast_not_equal`.
    """
    return apply(BroadcastNotEqual(), lhs, rhs, **how)


def not_equal(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """1 where `lhs != rhs`, else 0, of arrays that broadcast or numbers.

    **Shapes** as `broadcast_not_equal`. **Source** MXNet `nd.not_equal`.
    """
    return NOT_EQUAL(lhs, rhs, **how)


def broadcast_greater(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """1 where `lhs > rhs`, else 0, of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Source** MXNet `broadcast_greater`.
    """
    return apply(BroadcastGreater(), lhs, rhs, **how)


def greater(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """1 where `lhs > rhs`, else 0, of arrays that broadcast or numbers.

    **Shapes** as `broadcast_greater`. **Source** MXNet `nd.greater`.
    """
    return GREATER(lhs, rhs, **how)


def broadcast_greater_equal(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """1 where `lhs >= rhs`, else 0, of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Source** MXNet `broadcast_greater_equal`.
    """
    return apply(BroadcastGreaterEqual(), lhs, rhs, **how)


def greater_equal(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """1 where `lhs >= rhs`, else 0, of arrays that broadcast or numbers.

    **Shapes** as `broadcast_greater_equal`. **Source** MXNet `nd.greater_equal`.
    """
    return GREATER_EQUAL(lhs, rhs, **how)


def broadcast_lesser(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """1 where `lhs < rhs`, else 0, of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Source** MXNet `broadcast_lesser`.
    """
    return apply(BroadcastLesser(), lhs, rhs, **how)


def lesser(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """1 where `lhs < rhs`, else 0, of arrays that broadcast or numbers.

    **Shapes** as `broadcast_lesser`. **Source** MXNet `nd.lesser`.
    """
    return LESSER(lhs, rhs, **how)


def broadcast_lesser_equal(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """1 where `lhs <= rhs`, else 0, of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Source** MXNet `broadcast_lesser_equal`.
    """
    return apply(BroadcastLesserEqual(), lhs, rhs, **how)


def lesser_equal(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """1 where `lhs <= rhs`, else 0, of arrays that broadcast or numbers.

    **Shapes** as `broadcast_lesser_equal`. **Source** MXNet `nd.lesser_equal`.
    """
    return LESSER_EQUAL(lhs, rhs, **how)


def broadcast_logical_and(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """1 where `lhs and rhs`, else 0, of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Source** MXNet `broadcast_logical_and`.
    """
    return apply(BroadcastLogicalAnd(), lhs, rhs, **how)


def logical_and(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """1 where `lhs and rhs`, else 0, of arrays that broadcast or numbers.

    **Shapes** as `broadcast_logical_and`. **Source** MXNet `nd.logical_and`.
    """
    return LOGICAL_AND(lhs, rhs, **how)


def broadcast_logical_or(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """1 where `lhs or rhs`, else 0, of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Source** MXNet `broadcast_logical_or`.
    """
    return apply(BroadcastLogicalOr(), lhs, rhs, **how)


def logical_or(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """1 where `lhs or rhs`, else 0, of arrays that broadcast or numbers.

    **Shapes** as `broadcast_logical_or`. **Source** MXNet `nd.logical_or`.
    """
    return LOGICAL_OR(lhs, rhs, **how)


def broadcast_logical_xor(lhs: T, rhs: T, **how: Unpack[How]) -> T:
    """1 where `lhs xor rhs`, else 0, of two arrays that broadcast.

    **Shapes** lhs, rhs: any that broadcast to the result's; one dtype.
    **Source** MXNet `broadcast_logical_xor`.
    """
    return apply(BroadcastLogicalXor(), lhs, rhs, **how)


def logical_xor(lhs: T | float, rhs: T | float, **how: Unpack[How]) -> T:
    """1 where `lhs xor rhs`, else 0, of arrays that broadcast or numbers.

    **Shapes** as `broadcast_logical_xor`. **Source** MXNet `nd.logical_xor`.
    """
    return LOGICAL_XOR(lhs, rhs, **how)


@register("logical_not")
class LogicalNot(Unary):
    accepts = ANY
    saves_inputs = False
    saves_outputs = False

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        answer = data == 0
        if out is None:
            return answer.astype(data.dtype)
        xp.copyto(out, answer)
        return out

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (None,)


def logical_not(data: T, **how: Unpack[How]) -> T:
    """1 where `data` is 0, else 0.

    **Shapes** data and result (...); the result has the dtype of data. **Source** MXNet `logical_not`.
    """
    return apply(LogicalNot(), data, **how)


def isnan(data: T) -> T:
    """1 where `data` is NaN, else 0: NaN alone differs from itself.

    **Shapes** data and result (...). **Source** MXNet `contrib.isnan`.
    """
    return not_equal(data, data)


def isfinite(data: T) -> T:
    """1 where `data` is neither NaN nor infinite, else 0: what is taken from itself leaves 0, or NaN.

    **Shapes** data and result (...). **Source** MXNet `contrib.isfinite`.
    """
    if not isinstance(data, Tensor):
        advice = advice_on_list(data) or "; make one with nd.array(...)"
        raise ArgumentError(f"isfinite: data must be an NDArray or a Symbol, got {shown(data)}{advice}")
    return equal(data - data, 0)  # type: ignore[operator]  # every Tensor has `-`


def isinf(data: T) -> T:
    """1 where `data` is plus or minus infinity, else 0: no NaN, and not finite.

    **Shapes** data and result (...). **Source** MXNet `contrib.isinf`.
    """
    return greater(equal(data, data), isfinite(data))


@register("where")
class Where(Op):
    # Not of kind ELEMENTWISE: a condition of one axis is aligned with the *first* axis of x, unlike broadcasting.
    inputs = ("condition", "x", "y")
    saves_outputs = False

    def infer(self, condition: Spec, x: Spec, y: Spec) -> Spec:
        if x.dtype != y.dtype:
            raise DTypeError(f"where: x is {x.dtype.name} but y is {y.dtype.name}; convert one with astype()")
        if x.shape != y.shape:
            raise ShapeError(f"where: x has shape {x.shape}, y has {y.shape}; they must be equal")
        if condition.shape not in (x.shape, x.shape[:1]):
            raise ShapeError(f"where: condition has shape {condition.shape}; it must be that of x, {x.shape}, or {x.shape[:1]}")
        return x

    def fill(self, condition: Spec | None, x: Spec | None, y: Spec | None) -> tuple[Spec | None, ...]:
        return condition, x or y, y or x

    def kernel(self, xp: Any, condition: Array, x: Array, y: Array) -> Array:
        if condition.ndim < x.ndim:
            condition = condition.reshape(condition.shape + (1,) * (x.ndim - 1))
        return xp.where(condition, x, y)

    def vjp(self, g: Any, y: Any, condition: Any, if_true: Any, if_false: Any) -> tuple[Any, ...]:
        zero = g.zeros_like()
        return None, where(condition, g, zero), where(condition, zero, g)


def where(condition: T, x: T, y: T, **how: Unpack[How]) -> T:
    """`x` where the condition is true (not 0), else `y`.

    **Shapes** x, y, result (N, ...); condition the same, or (N,): whole rows then. x and y share a dtype.
    **Gradient** of x: `g` where the condition is true, else 0; of y the other way round. **Source** MXNet `where`.
    """
    return apply(Where(), condition, x, y, **how)
