"""The operators as methods: `x.exp()` for `exp(x)`, `x + y` for `add(x, y)`. The common base of NDArray and Symbol.

Each method calls the function of the same name, whose docstring has the details.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..op import Tensor
from . import (
    activation,
    binary,
    broadcast,
    casting,
    creation,
    indexing,
    joining,
    layout,
    linalg,
    logic,
    padding,
    powers,
    reduce,
    shape,
    slicing,
    softmax,
    sorting,
    trigonometry,
    unary,
)

if TYPE_CHECKING:
    from typing_extensions import Self


class Fluent(Tensor):
    """Operators as Python's operators and as methods."""

    __slots__ = ()

    # ---- Python's operators

    def __add__(self, other: Any) -> Self:
        return binary.ADD.operator(self, other)

    def __radd__(self, other: Any) -> Self:
        return binary.ADD.operator(other, self)

    def __sub__(self, other: Any) -> Self:
        return binary.SUBTRACT.operator(self, other)

    def __rsub__(self, other: Any) -> Self:
        return binary.SUBTRACT.operator(other, self)

    def __mul__(self, other: Any) -> Self:
        return binary.MULTIPLY.operator(self, other)

    def __rmul__(self, other: Any) -> Self:
        return binary.MULTIPLY.operator(other, self)

    def __truediv__(self, other: Any) -> Self:
        return binary.DIVIDE.operator(self, other)

    def __rtruediv__(self, other: Any) -> Self:
        return binary.DIVIDE.operator(other, self)

    def __mod__(self, other: Any) -> Self:
        return binary.MODULO.operator(self, other)

    def __rmod__(self, other: Any) -> Self:
        return binary.MODULO.operator(other, self)

    def __pow__(self, other: Any) -> Self:
        return powers.POWER.operator(self, other)

    def __rpow__(self, other: Any) -> Self:
        return powers.POWER.operator(other, self)

    def __neg__(self) -> Self:
        return unary.negative(self)

    def __abs__(self) -> Self:
        return unary.abs(self)

    def __gt__(self, other: Any) -> Self:
        return logic.GREATER.operator(self, other)

    def __ge__(self, other: Any) -> Self:
        return logic.GREATER_EQUAL.operator(self, other)

    def __lt__(self, other: Any) -> Self:
        return logic.LESSER.operator(self, other)

    def __le__(self, other: Any) -> Self:
        return logic.LESSER_EQUAL.operator(self, other)

    def __eq__(self, other: Any) -> Self:  # type: ignore[override]  # elementwise, as in NumPy
        return logic.EQUAL.operator(self, other)

    def __ne__(self, other: Any) -> Self:  # type: ignore[override]
        return logic.NOT_EQUAL.operator(self, other)

    # ---- elementwise mathematics

    def abs(self, **how: Any) -> Self:
        return unary.abs(self, **how)

    def sign(self, **how: Any) -> Self:
        return unary.sign(self, **how)

    def round(self, **how: Any) -> Self:
        return unary.round(self, **how)

    def rint(self, **how: Any) -> Self:
        return unary.rint(self, **how)

    def fix(self, **how: Any) -> Self:
        return unary.fix(self, **how)

    def floor(self, **how: Any) -> Self:
        return unary.floor(self, **how)

    def ceil(self, **how: Any) -> Self:
        return unary.ceil(self, **how)

    def trunc(self, **how: Any) -> Self:
        return unary.trunc(self, **how)

    def sin(self, **how: Any) -> Self:
        return trigonometry.sin(self, **how)

    def cos(self, **how: Any) -> Self:
        return trigonometry.cos(self, **how)

    def tan(self, **how: Any) -> Self:
        return trigonometry.tan(self, **how)

    def arcsin(self, **how: Any) -> Self:
        return trigonometry.arcsin(self, **how)

    def arccos(self, **how: Any) -> Self:
        return trigonometry.arccos(self, **how)

    def arctan(self, **how: Any) -> Self:
        return trigonometry.arctan(self, **how)

    def degrees(self, **how: Any) -> Self:
        return trigonometry.degrees(self, **how)

    def radians(self, **how: Any) -> Self:
        return trigonometry.radians(self, **how)

    def sinh(self, **how: Any) -> Self:
        return trigonometry.sinh(self, **how)

    def cosh(self, **how: Any) -> Self:
        return trigonometry.cosh(self, **how)

    def tanh(self, **how: Any) -> Self:
        return trigonometry.tanh(self, **how)

    def arcsinh(self, **how: Any) -> Self:
        return trigonometry.arcsinh(self, **how)

    def arccosh(self, **how: Any) -> Self:
        return trigonometry.arccosh(self, **how)

    def arctanh(self, **how: Any) -> Self:
        return trigonometry.arctanh(self, **how)

    def exp(self, **how: Any) -> Self:
        return unary.exp(self, **how)

    def expm1(self, **how: Any) -> Self:
        return unary.expm1(self, **how)

    def log(self, **how: Any) -> Self:
        return unary.log(self, **how)

    def log10(self, **how: Any) -> Self:
        return unary.log10(self, **how)

    def log2(self, **how: Any) -> Self:
        return unary.log2(self, **how)

    def log1p(self, **how: Any) -> Self:
        return unary.log1p(self, **how)

    def sqrt(self, **how: Any) -> Self:
        return unary.sqrt(self, **how)

    def rsqrt(self, **how: Any) -> Self:
        return unary.rsqrt(self, **how)

    def cbrt(self, **how: Any) -> Self:
        return unary.cbrt(self, **how)

    def rcbrt(self, **how: Any) -> Self:
        return unary.rcbrt(self, **how)

    def square(self, **how: Any) -> Self:
        return unary.square(self, **how)

    def reciprocal(self, **how: Any) -> Self:
        return unary.reciprocal(self, **how)

    def relu(self, **how: Any) -> Self:
        return activation.relu(self, **how)

    def sigmoid(self, **how: Any) -> Self:
        return activation.sigmoid(self, **how)

    def zeros_like(self, **how: Any) -> Self:
        return casting.zeros_like(self, **how)

    def ones_like(self, **how: Any) -> Self:
        return casting.ones_like(self, **how)

    def clip(self, a_min: float, a_max: float, **how: Any) -> Self:
        return unary.clip(self, a_min, a_max, **how)

    # ---- reductions

    def sum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> Self:
        return reduce.sum(self, axis, keepdims, exclude, **how)

    def mean(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> Self:
        return reduce.mean(self, axis, keepdims, exclude, **how)

    def prod(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> Self:
        return reduce.prod(self, axis, keepdims, exclude, **how)

    def nansum(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> Self:
        return reduce.nansum(self, axis, keepdims, exclude, **how)

    def nanprod(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> Self:
        return reduce.nanprod(self, axis, keepdims, exclude, **how)

    def max(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> Self:
        return reduce.max(self, axis, keepdims, exclude, **how)

    def min(self, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> Self:
        return reduce.min(self, axis, keepdims, exclude, **how)

    def norm(self, ord: int = 2, axis: int | Sequence[int] | None = None, keepdims: bool = False, **how: Any) -> Self:
        return reduce.norm(self, ord=ord, axis=axis, keepdims=keepdims, **how)

    def argmax(self, axis: int | None = None, keepdims: bool = False, **how: Any) -> Self:
        return reduce.argmax(self, axis, keepdims, **how)

    def argmin(self, axis: int | None = None, keepdims: bool = False, **how: Any) -> Self:
        return reduce.argmin(self, axis, keepdims, **how)

    def argmax_channel(self, **how: Any) -> Self:
        return reduce.argmax_channel(self, **how)

    # ---- shapes

    def reshape_like(self, rhs: Any, **how: Any) -> Self:
        return shape.reshape_like(self, rhs, **how)

    def transpose(self, *axes: Any, **how: Any) -> Self:
        chosen = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return layout.transpose(self, how.pop("axes", chosen), **how)

    def swapaxes(self, dim1: int = 0, dim2: int = 0, **how: Any) -> Self:
        return layout.swapaxes(self, dim1, dim2, **how)

    def flip(self, axis: int | Sequence[int], **how: Any) -> Self:
        return padding.flip(self, axis, **how)

    def repeat(self, repeats: int, axis: int | None = None, **how: Any) -> Self:
        return joining.repeat(self, repeats, axis, **how)

    def tile(self, reps: int | Sequence[int], **how: Any) -> Self:
        return joining.tile(self, reps, **how)

    def pad(self, mode: str = "constant", pad_width: Sequence[int] = (), constant_value: float = 0.0, **how: Any) -> Self:
        return padding.pad(self, mode, pad_width, constant_value, **how)

    def split(self, num_outputs: int, axis: int = 1, squeeze_axis: bool = False, **how: Any) -> Any:
        return joining.split(self, num_outputs, axis, squeeze_axis, **how)

    def split_v2(self, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False, **how: Any) -> Any:
        return joining.split_v2(self, indices_or_sections, axis, squeeze_axis, **how)

    def slice(self, begin: Any, end: Any, step: Any = (), **how: Any) -> Self:
        return slicing.slice(self, begin, end, step, **how)

    def slice_axis(self, axis: int, begin: int, end: int | None, **how: Any) -> Self:
        return slicing.slice_axis(self, axis, begin, end, **how)

    def slice_like(self, shape_like: Any, axes: Any = (), **how: Any) -> Self:
        return slicing.slice_like(self, shape_like, axes, **how)

    def broadcast_to(self, shape: int | Sequence[int], **how: Any) -> Self:
        return _broadcast_to(self, shape, **how)

    def broadcast_like(self, rhs: Any, lhs_axes: Any = None, rhs_axes: Any = None, **how: Any) -> Self:
        return broadcast.broadcast_like(self, rhs, lhs_axes, rhs_axes, **how)

    def broadcast_axes(self, axis: Any = (), size: Any = (), **how: Any) -> Self:
        return broadcast.broadcast_axes(self, axis, size, **how)

    def depth_to_space(self, block_size: int, **how: Any) -> Self:
        return layout.depth_to_space(self, block_size, **how)

    def space_to_depth(self, block_size: int, **how: Any) -> Self:
        return layout.space_to_depth(self, block_size, **how)

    def diag(self, k: int = 0, axis1: int = 0, axis2: int = 1, **how: Any) -> Self:
        return padding.diag(self, k, axis1, axis2, **how)

    def shape_array(self, **how: Any) -> Self:
        return creation.shape_array(self, **how)

    def size_array(self, **how: Any) -> Self:
        return creation.size_array(self, **how)

    # ---- indexing and sorting

    def take(self, indices: Any, axis: int = 0, mode: str = "clip", **how: Any) -> Self:
        return indexing.take(self, indices, axis, mode, **how)

    def one_hot(self, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: Any = "float32", **how: Any) -> Self:
        return indexing.one_hot(self, depth, on_value, off_value, dtype, **how)

    def pick(self, index: Any, axis: int | None = -1, keepdims: bool = False, mode: str = "clip", **how: Any) -> Self:
        return indexing.pick(self, index, axis=axis, keepdims=keepdims, mode=mode, **how)

    def sort(self, axis: int | None = -1, is_ascend: bool = True, **how: Any) -> Self:
        return sorting.sort(self, axis, is_ascend, **how)

    def topk(self, axis: int | None = -1, k: int = 1, ret_typ: str = "indices", is_ascend: bool = False, **how: Any) -> Any:
        return sorting.topk(self, axis, k, ret_typ, is_ascend, **how)

    def argsort(self, axis: int | None = -1, is_ascend: bool = True, **how: Any) -> Self:
        return sorting.argsort(self, axis, is_ascend, **how)

    # ---- products and probabilities

    def dot(self, other: Any, transpose_a: bool = False, transpose_b: bool = False, **how: Any) -> Self:
        return linalg.dot(self, other, transpose_a, transpose_b, **how)

    def softmax(self, axis: int = -1, temperature: float | None = None, **how: Any) -> Self:
        return softmax.softmax(self, axis=axis, temperature=temperature, **how)

    def log_softmax(self, axis: int = -1, temperature: float | None = None, **how: Any) -> Self:
        return softmax.log_softmax(self, axis=axis, temperature=temperature, **how)

    def softmin(self, axis: int = -1, temperature: float | None = None, **how: Any) -> Self:
        return softmax.softmin(self, axis=axis, temperature=temperature, **how)


_broadcast_to = broadcast.broadcast_to  # inside the method, `shape` is its argument
