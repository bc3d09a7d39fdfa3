"""Operators that keep the values: cast to another dtype, copy, stop the gradient, mark a loss; and zeros_like, ones_like.

They compute next to nothing. What matters is what they do to dtypes and gradients. Book: chapter 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import FLOAT32, ArgumentError, DTypeLike, as_dtype
from ..op import Array, How, Kind, Op, Spec, T, also_called, apply, register
from ..rules import same_dtype, same_shape, unified
from .forms import ANY, Unary, copy, scratch

if TYPE_CHECKING:
    from typing_extensions import Unpack


@register("Cast", "cast")
class CastTo(Op):
    dtype: np.dtype[Any]

    kind: ClassVar = Kind.ELEMENTWISE
    saves_inputs: ClassVar = False
    saves_outputs: ClassVar = False

    def infer(self, data: Spec) -> Spec:
        return data.with_dtype(self.dtype)

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return data.astype(self.dtype) if out is None else copy(xp, data, out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (cast(g, data.dtype),)


def cast(data: T, dtype: DTypeLike, **how: Unpack[How]) -> T:
    """The elements of data as `dtype`; fractions are cut off when it is an integer type.

    **Shapes** data and result (...). **Raises** DTypeError if MXNet has no arrays of `dtype`. **Gradient** `g` in data's dtype.
    **Source** MXNet `Cast`.
    """
    return apply(CastTo(wanted(dtype)), data, **how)


Cast = cast


def wanted(dtype: DTypeLike) -> np.dtype[Any]:
    """`dtype` as a supported one; it must be given."""
    if dtype is None:
        raise ArgumentError("cast: dtype is None; name one, such as 'float32'")
    return as_dtype(dtype)


@register("amp_cast")
class AmpCast(Op):
    dtype: np.dtype[Any]

    kind: ClassVar = Kind.ELEMENTWISE
    saves_inputs: ClassVar = False
    saves_outputs: ClassVar = False

    def infer(self, data: Spec) -> Spec:
        return data.with_dtype(self.dtype) if data.dtype.kind == "f" else data

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return data.astype(self.infer(Spec.of((), data.dtype)).dtype) if out is None else copy(xp, data, out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (cast(g, data.dtype),)


def amp_cast(data: T, dtype: DTypeLike, **how: Unpack[How]) -> T:
    """Floating elements as `dtype`, others as they are: what mixed precision puts in front of an operator.

    **Shapes** data and result (...). **Gradient** `g` in data's dtype. **Source** MXNet `amp_cast`.
    """
    return apply(AmpCast(wanted(dtype)), data, **how)


@register("amp_multicast")
class AmpMulticast(Op):
    num_outputs: int = 0
    cast_narrow: bool = False

    inputs: ClassVar = ("data*",)
    saves_inputs: ClassVar = False
    saves_outputs: ClassVar = False

    def common(self, *data: Any) -> np.dtype[Any]:
        """The widest of the floating dtypes (the narrowest with `cast_narrow`)."""
        floating = [each.dtype for each in data if each.dtype.kind == "f"] or [FLOAT32]
        return (min if self.cast_narrow else max)(floating, key=lambda dtype: dtype.itemsize)

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        if len(data) != self.num_outputs:
            raise ArgumentError(f"amp_multicast: num_outputs is {self.num_outputs}, but {len(data)} arrays are given")
        dtype = self.common(*data)
        return tuple(spec.with_dtype(dtype) if spec.dtype.kind == "f" else spec for spec in data)

    def kernel(self, xp: Any, *data: Array) -> tuple[Array, ...]:
        dtype = self.common(*data)
        return tuple(each.astype(dtype if each.dtype.kind == "f" else each.dtype) for each in data)

    def vjp(self, g: Any, y: Any, *data: Any) -> tuple[Any, ...]:
        return tuple(None if part is None else cast(part, each.dtype) for part, each in zip(g, data))


def amp_multicast(*data: T, num_outputs: int, cast_narrow: bool = False, **how: Unpack[How]) -> list[T]:
    """Floating arrays as the widest of their dtypes, or the narrowest if `cast_narrow`; others as they are.

    **Shapes** each (...), and its result the same. **Args** num_outputs: how many arrays are given.
    **Gradient** `g` in the dtype of each. **Source** MXNet `amp_multicast`.
    """
    return apply(AmpMulticast(num_outputs, cast_narrow), *data, **how)


class Same(Unary):
    """The identity. Its result is fresh memory, so that writing into it leaves data alone."""

    accepts = ANY
    saves_inputs = False
    saves_outputs = False

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return copy(xp, data, out)


@register("_copy", "identity")
class Identity(Same):
    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g,)


def identity(data: T, **how: Unpack[How]) -> T:
    """A copy of data.

    **Shapes** data and result (...). **Gradient** `g`. **Source** MXNet `_copy`.
    """
    return apply(Identity(), data, **how)


@register("cast_storage")
class CastStorage(Same):
    stype: str

    def infer(self, data: Spec) -> Spec:
        if self.stype != "default":
            raise ArgumentError(
                f"cast_storage: stype is {self.stype!r}; arrays here store all their elements, stype='default', and no others are planned"
            )
        return super().infer(data)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g,)


def cast_storage(data: T, stype: str, **how: Unpack[How]) -> T:
    """A copy of data that is stored in the way `stype`. There is one: "default", with all elements in memory.

    **Shapes** data and result (...). **Raises** ArgumentError for "csr" and "row_sparse". **Gradient** `g`. **Source** MXNet
    `cast_storage`.
    """
    return apply(CastStorage(stype), data, **how)


@register("BlockGrad", "stop_gradient")
class StopGradient(Same):
    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (None,)


def stop_gradient(data: T, **how: Unpack[How]) -> T:
    """A copy of data through which no gradient flows back.

    **Shapes** data and result (...). **Gradient** 0. **Source** MXNet `BlockGrad`.
    """
    return apply(StopGradient(), data, **how)


BlockGrad = also_called("BlockGrad", stop_gradient)


@register("make_loss")
class Loss(Same):
    is_loss = True

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (ones_like(g),)


def make_loss(data: T, **how: Unpack[How]) -> T:
    """A copy of data, marked as a loss: backward starts here with ones, whatever the head gradient.

    **Shapes** data and result (...). **Gradient** 1. **Source** MXNet `make_loss`.
    """
    return apply(Loss(), data, **how)


@register("_identity_with_attr_like_rhs")
class IdentityLike(Op):
    """The left operand; the right one only says what shape and dtype it has, for inference in graphs."""

    kind = Kind.ELEMENTWISE
    inputs = ("lhs", "rhs")
    saves_inputs = False
    saves_outputs = False

    def infer(self, lhs: Spec, rhs: Spec) -> Spec:
        same_dtype(self, lhs, rhs)
        same_shape(self, lhs, rhs)
        return lhs

    def fill(self, lhs: Spec | None, rhs: Spec | None) -> tuple[Spec | None, ...]:
        return unified(lhs, rhs)

    def kernel(self, xp: Any, lhs: Array, rhs: Array, out: Array | None = None) -> Array:
        return copy(xp, lhs, out)

    def vjp(self, g: Any, y: Any, lhs: Any, rhs: Any) -> tuple[Any, ...]:
        return g, None


class Filled(Unary):
    """An array like data, all of whose elements are `value`."""

    accepts = ANY
    saves_inputs = False
    saves_outputs = False
    value: ClassVar[int]

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        result = scratch(xp, data, out)
        result.fill(self.value)
        return result

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (None,)


@register("zeros_like")
class ZerosLike(Filled):
    value = 0


def zeros_like(data: T, **how: Unpack[How]) -> T:
    """Zeros in the shape and dtype of data.

    **Shapes** data and result (...). **Gradient** 0. **Source** MXNet `zeros_like`.
    """
    return apply(ZerosLike(), data, **how)


@register("ones_like")
class OnesLike(Filled):
    value = 1


def ones_like(data: T, **how: Unpack[How]) -> T:
    """Ones in the shape and dtype of data.

    **Shapes** data and result (...). **Gradient** 0. **Source** MXNet `ones_like`.
    """
    return apply(OnesLike(), data, **how)
