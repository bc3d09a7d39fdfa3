"""The forms of an elementwise operator, each written once: of one array, of two arrays, of an array and a number.

MXNet has a function such as subtraction four times: `elemwise_sub` (two arrays of one shape), `broadcast_sub` (shapes that
stretch to fit), `_minus_scalar` (an array and a number) and `_rminus_scalar` (a number and an array). Here a *function* says what
is computed and its two partial derivatives, a *form* says where the operands come from and what shapes they may have, and an
operator is a class that inherits from one of each:
    class BroadcastSubtract(Subtract, Broadcast): ...

`Forms` ties the four together, so that `a + b`, `a + 2`, `2 + a` and `nd.add(a, b)` choose the right one in one place.
Used by every other file of elementwise operators. Book: chapter 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..base import ArgumentError, DTypeError, shown
from ..fields import WORD, as_float
from ..op import Array, Kind, Op, Spec, Tensor, advice_on_list, apply, attributes
from ..rules import broadcast_shape, same_dtype, same_shape, unified

# Which dtypes a function takes, by NumPy's letters of their kinds: b bool, i and u integers, f floating.
FLOATS = "f"
NUMBERS = "iuf"
ANY = "biuf"


def require_kind(op: Op, dtype: np.dtype[Any], kinds: str) -> None:
    """Raise DTypeError unless `dtype` is of one of the `kinds`.

    A function whose results are fractions takes no integers: they would be cut off without a word.
    """
    if dtype.kind not in kinds:
        wanted = "floating" if kinds == FLOATS else "numeric"
        raise DTypeError(f"{op.name}: data is {dtype.name}, a {wanted} dtype is wanted; convert it with astype('float32')")


def copy(xp: Any, data: Array, out: Array | None) -> Array:
    """The elements of `data`, converted, in `out`; in fresh memory without one."""
    if out is None:
        return data.copy()
    xp.copyto(out, data, casting="unsafe")
    return out


def scratch(xp: Any, data: Array, out: Array | None) -> Array:
    """Memory like `data` to compute in: `out` where it is given. It may be `data` itself, so read before writing."""
    return xp.empty_like(data) if out is None else out


def unbroadcast(g: Any, like: Any) -> Any:
    """Sum the gradient `g` of a broadcast result down to the shape of `like`, the operand that was stretched.

    A value that was used many times gets the sum of the gradients of its uses.
    """
    if g.shape == like.shape:
        return g
    extra = len(g.shape) - len(like.shape)
    if extra:
        g = g.sum(axis=tuple(range(extra)))
    stretched = tuple(axis for axis, length in enumerate(like.shape) if length == 1 and g.shape[axis] != 1)
    return g.sum(axis=stretched, keepdims=True) if stretched else g


class Unary(Op):
    """An elementwise function of one array; the result has its shape and dtype."""

    kind = Kind.ELEMENTWISE
    accepts: ClassVar[str] = FLOATS

    def infer(self, data: Spec) -> Spec:
        if data.dtype.kind not in self.accepts:
            require_kind(self, data.dtype, self.accepts)
        return data

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return self.ufunc(data, out=out)


class Function(Op):
    """A function of two numbers. `dlhs` and `drhs` are `g` times the partial derivatives: None where they are zero everywhere.

    They are written with functions that broadcast and that take numbers too, so that one formula serves all forms.
    """

    kind = Kind.ELEMENTWISE
    saves_outputs = False
    accepts: ClassVar[str] = NUMBERS

    def compute(self, xp: Any, lhs: Array, rhs: Array, out: Array | None) -> Array:
        return self.ufunc(lhs, rhs, out=out)

    def dlhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return None

    def drhs(self, g: Any, y: Any, lhs: Any, rhs: Any) -> Any:
        return None


class Elementwise(Function):
    """The form of two arrays of one shape."""

    inputs = ("lhs", "rhs")

    def infer(self, lhs: Spec, rhs: Spec) -> Spec:
        if lhs is not rhs:  # specs are interned: usually the same object
            same_dtype(self, lhs, rhs)
            same_shape(self, lhs, rhs)
        require_kind(self, lhs.dtype, self.accepts)
        return lhs

    def fill(self, lhs: Spec | None, rhs: Spec | None) -> tuple[Spec | None, ...]:
        return unified(lhs, rhs)

    def kernel(self, xp: Any, lhs: Array, rhs: Array, out: Array | None = None) -> Array:
        return self.compute(xp, lhs, rhs, out)

    def vjp(self, g: Any, y: Any, lhs: Any, rhs: Any) -> tuple[Any, ...]:
        return self.dlhs(g, y, lhs, rhs), self.drhs(g, y, lhs, rhs)


class Broadcast(Function):
    """The form of two arrays whose axes of length 1, and missing ones in front, are stretched to fit."""

    inputs = ("lhs", "rhs")

    def infer(self, lhs: Spec, rhs: Spec) -> Spec:
        require_kind(self, lhs.dtype, self.accepts)
        return lhs if lhs is rhs else Spec.of(broadcast_shape(self, lhs, rhs), same_dtype(self, lhs, rhs))

    def kernel(self, xp: Any, lhs: Array, rhs: Array, out: Array | None = None) -> Array:
        return self.compute(xp, lhs, rhs, out)

    def vjp(self, g: Any, y: Any, lhs: Any, rhs: Any) -> tuple[Any, ...]:
        pair = (self.dlhs(g, y, lhs, rhs), lhs), (self.drhs(g, y, lhs, rhs), rhs)
        return tuple(None if partial is None else unbroadcast(partial, operand) for partial, operand in pair)

    @classmethod
    def ignored_attrs(cls) -> tuple[str, ...]:
        return (*Op.ignored_attrs(), "axis")  # CosineEmbeddingLoss of MXNet gives one, and so do files made from it


@attributes
class Scalar(Function):
    """The form of an array and a number, which is converted to the array's dtype."""

    scalar: float

    @classmethod
    def ignored_attrs(cls) -> tuple[str, ...]:
        return (*Op.ignored_attrs(), "is_int")  # MXNet's note whether the number was an int

    def infer(self, data: Spec) -> Spec:
        dtype = data.dtype
        if dtype.kind != "f":
            require_kind(self, dtype, self.accepts)
            low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            if not low <= self.scalar <= high or self.scalar != int(self.scalar):
                raise DTypeError(
                    f"{self.name}: data is {dtype.name}, which has no {self.scalar}; convert data first, astype('float32')"
                )
        return data

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return self.compute(xp, data, data.dtype.type(self.scalar), out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (self.dlhs(g, y, data, self.scalar),)


@attributes
class ReversedScalar(Scalar):
    """The form of a number and an array, in this order."""

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return self.compute(xp, data.dtype.type(self.scalar), data, out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (self.drhs(g, y, self.scalar, data),)


def as_number(value: Any, name: str = "scalar") -> float:
    """`value` as a Python int or float. Raises ArgumentError if it is no real number."""
    if type(value) is float or (type(value) is int and -WORD <= value <= WORD):
        return value
    try:
        if isinstance(value, str):
            raise TypeError
        return as_float(value)
    except OverflowError:
        raise ArgumentError(f"{name}: {shown(value)} is beyond all floating numbers") from None
    except (TypeError, ValueError):
        advice = (
            "; nd.array(...) makes an NDArray of it, in a block params.get_constant()"
            if isinstance(value, np.ndarray)
            else advice_on_list(value)
        )
        raise ArgumentError(f"{name}: an NDArray, a Symbol or a number is wanted, got {shown(value)}{advice}") from None


@dataclass(frozen=True)
class Forms:
    """One function in all its forms. Calling it applies the form that fits the operands; two tensors broadcast.

    `operator` is the same for Python's `+`, `>` and so on: there two Symbols want equal shapes, as in MXNet.
    """

    broadcast: Op
    elementwise: Op
    scalar: type[Scalar]
    reversed: type[Scalar]
    numbers: Callable[[float, float], float]  # two Python numbers need no operator
    hint: str | None = None  # what MXNet calls nodes made by Python's operators where that is not the operator's name

    def __call__(self, lhs: Any, rhs: Any, **how: Any) -> Any:
        if isinstance(lhs, Tensor):
            if isinstance(rhs, Tensor):
                return apply(self.broadcast, lhs, rhs, **how)
            return apply(self.scalar(as_number(rhs, self.scalar.name)), lhs, **how)
        if isinstance(rhs, Tensor):
            return apply(self.reversed(as_number(lhs, self.reversed.name)), rhs, **how)
        return self.numbers(as_number(lhs, self.scalar.name), as_number(rhs, self.scalar.name))

    def operator(self, lhs: Any, rhs: Any, **how: Any) -> Any:
        """`lhs <operator> rhs`, of which at least one is a tensor, or both numbers."""
        tensor = lhs if isinstance(lhs, Tensor) else rhs
        if not isinstance(tensor, Tensor) or tensor.broadcasts:
            return self(lhs, rhs, **how)
        op: Op
        if lhs is not tensor:
            op, operands, prefix = self.reversed(as_number(lhs, self.reversed.name)), [rhs], "_"
            if self.reversed is not self.scalar:
                prefix = "_r"
        elif isinstance(rhs, Tensor):
            op, operands, prefix = self.elementwise, [lhs, rhs], "_"
            how["broadcast"] = self.broadcast
        else:
            op, operands, prefix = self.scalar(as_number(rhs, self.scalar.name)), [lhs], "_"
        if self.hint is not None:
            how["_hint"] = prefix + self.hint + ("scalar" if len(operands) == 1 else "")
        return tensor._apply(op, operands, how)  # type: ignore[arg-type]  # `_hint` and `broadcast` are for Symbol alone
