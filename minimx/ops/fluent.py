"""The operators as methods: `x.exp()` for `exp(x)`, `x + y` for `add(x, y)`. The common base of NDArray and Symbol.

Each method calls the function of the same name, whose docstring has the details. A method returns what `self` is, and says so with a
type variable, not with `Self`: so Jupyter's completion (jedi) knows what `(x * 2).sum()` is, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..op import T, Tensor
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


class Fluent(Tensor):
    """Operators as Python's operators and as methods."""

    __slots__ = ()

    # ---- Python's operators

    def __add__(self: T, other: Any) -> T:
        return binary.ADD.operator(self, other)

    def __radd__(self: T, other: Any) -> T:
        return binary.ADD.operator(other, self)

    def __sub__(self: T, other: Any) -> T:
        return binary.SUBTRACT.operator(self, other)

    def __rsub__(self: T, other: Any) -> T:
        return binary.SUBTRACT.operator(other, self)

    def __mul__(self: T, other: Any) -> T:
        return binary.MULTIPLY.operator(self, other)

    def __rmul__(self: T, other: Any) -> T:
        return binary.MULTIPLY.operator(other, self)

    def __truediv__(self: T, other: Any) -> T:
        return binary.DIVIDE.operator(self, other)

    def __rtruediv__(self: T, other: Any) -> T:
        return binary.DIVIDE.operator(other, self)

    def __mod__(self: T, other: Any) -> T:
        return binary.MODULO.operator(self, other)

    def __rmod__(self: T, other: Any) -> T:
        return binary.MODULO.operator(other, self)

    def __pow__(self: T, other: Any) -> T:
        return powers.POWER.operator(self, other)

    def __rpow__(self: T, other: Any) -> T:
        return powers.POWER.operator(other, self)

    def __neg__(self: T) -> T:
        return unary.negative(self)

    def __abs__(self: T) -> T:
        return unary.abs(self)

    def __gt__(self: T, other: Any) -> T:
        return logic.GREATER.operator(self, other)

    def __ge__(self: T, other: Any) -> T:
        return logic.GREATER_EQUAL.operator(self, other)

    def __lt__(self: T, other: Any) -> T:
        return logic.LESSER.operator(self, other)

    def __le__(self: T, other: Any) -> T:
        return logic.LESSER_EQUAL.operator(self, other)

    def __eq__(self: T, other: Any) -> T:  # type: ignore[override]  # elementwise, as in NumPy
        return logic.EQUAL.operator(self, other)

    def __ne__(self: T, other: Any) -> T:  # type: ignore[override]
        return logic.NOT_EQUAL.operator(self, other)

    # ---- elementwise mathematics

    def abs(self: T, **how: Any) -> T:
        """Absolute value, elementwise: `y = |data|`. See `nd.abs`."""
        return unary.abs(self, **how)

    def sign(self: T, **how: Any) -> T:
        """Sign, elementwise: 1, 0 or -1; NaN stays NaN. See `nd.sign`."""
        return unary.sign(self, **how)

    def round(self: T, **how: Any) -> T:
        """Nearest whole number, elementwise; halves go away from zero: 2.5 to 3, -2.5 to -3. See `nd.round`."""
        return unary.round(self, **how)

    def rint(self: T, **how: Any) -> T:
        """Nearest whole number, elementwise; halves go down: 2.5 to 2, -2.5 to -3. See `nd.rint`."""
        return unary.rint(self, **how)

    def fix(self: T, **how: Any) -> T:
        """Whole part of data, rounded towards zero (the same as `trunc`), elementwise. See `nd.fix`."""
        return unary.fix(self, **how)

    def floor(self: T, **how: Any) -> T:
        """Largest whole number not above data, elementwise. See `nd.floor`."""
        return unary.floor(self, **how)

    def ceil(self: T, **how: Any) -> T:
        """Smallest whole number not below data, elementwise. See `nd.ceil`."""
        return unary.ceil(self, **how)

    def trunc(self: T, **how: Any) -> T:
        """Whole part of data, rounded towards zero, elementwise. See `nd.trunc`."""
        return unary.trunc(self, **how)

    def sin(self: T, **how: Any) -> T:
        """Sine of an angle in radians, elementwise. See `nd.sin`."""
        return trigonometry.sin(self, **how)

    def cos(self: T, **how: Any) -> T:
        """Cosine of an angle in radians, elementwise. See `nd.cos`."""
        return trigonometry.cos(self, **how)

    def tan(self: T, **how: Any) -> T:
        """Tangent of an angle in radians, elementwise. See `nd.tan`."""
        return trigonometry.tan(self, **how)

    def arcsin(self: T, **how: Any) -> T:
        """Angle in [-pi/2, pi/2] whose sine is data, elementwise; NaN outside [-1, 1]. See `nd.arcsin`."""
        return trigonometry.arcsin(self, **how)

    def arccos(self: T, **how: Any) -> T:
        """Angle in [0, pi] whose cosine is data, elementwise; NaN outside [-1, 1]. See `nd.arccos`."""
        return trigonometry.arccos(self, **how)

    def arctan(self: T, **how: Any) -> T:
        """Angle in (-pi/2, pi/2) whose tangent is data, elementwise. See `nd.arctan`."""
        return trigonometry.arctan(self, **how)

    def degrees(self: T, **how: Any) -> T:
        """Radians to degrees, elementwise: `y = data * 180 / pi`. See `nd.degrees`."""
        return trigonometry.degrees(self, **how)

    def radians(self: T, **how: Any) -> T:
        """Degrees to radians, elementwise: `y = data * pi / 180`. See `nd.radians`."""
        return trigonometry.radians(self, **how)

    def sinh(self: T, **how: Any) -> T:
        """Hyperbolic sine, elementwise: `y = (e**data - e**-data) / 2`. See `nd.sinh`."""
        return trigonometry.sinh(self, **how)

    def cosh(self: T, **how: Any) -> T:
        """Hyperbolic cosine, elementwise: `y = (e**data + e**-data) / 2`. See `nd.cosh`."""
        return trigonometry.cosh(self, **how)

    def tanh(self: T, **how: Any) -> T:
        """Hyperbolic tangent, elementwise: `y = sinh(data) / cosh(data)`. See `nd.tanh`."""
        return trigonometry.tanh(self, **how)

    def arcsinh(self: T, **how: Any) -> T:
        """Number whose hyperbolic sine is data, elementwise. See `nd.arcsinh`."""
        return trigonometry.arcsinh(self, **how)

    def arccosh(self: T, **how: Any) -> T:
        """Number from 0 up whose hyperbolic cosine is data, elementwise; NaN below 1. See `nd.arccosh`."""
        return trigonometry.arccosh(self, **how)

    def arctanh(self: T, **how: Any) -> T:
        """Number whose hyperbolic tangent is data, elementwise; NaN outside [-1, 1]. See `nd.arctanh`."""
        return trigonometry.arctanh(self, **how)

    def exp(self: T, **how: Any) -> T:
        """Exponential, elementwise: `y = e ** data`. See `nd.exp`."""
        return unary.exp(self, **how)

    def expm1(self: T, **how: Any) -> T:
        """Exponential less one, elementwise: `y = e ** data - 1`, exact near 0 too. See `nd.expm1`."""
        return unary.expm1(self, **how)

    def log(self: T, **how: Any) -> T:
        """Natural logarithm, elementwise; NaN below 0. See `nd.log`."""
        return unary.log(self, **how)

    def log10(self: T, **how: Any) -> T:
        """Logarithm of base 10, elementwise; NaN below 0. See `nd.log10`."""
        return unary.log10(self, **how)

    def log2(self: T, **how: Any) -> T:
        """Logarithm of base 2, elementwise; NaN below 0. See `nd.log2`."""
        return unary.log2(self, **how)

    def log1p(self: T, **how: Any) -> T:
        """Natural logarithm of one more, elementwise: `y = log(1 + data)`, exact near 0 too. See `nd.log1p`."""
        return unary.log1p(self, **how)

    def sqrt(self: T, **how: Any) -> T:
        """Square root, elementwise; NaN below 0. See `nd.sqrt`."""
        return unary.sqrt(self, **how)

    def rsqrt(self: T, **how: Any) -> T:
        """Reciprocal of the square root, elementwise: `y = 1 / sqrt(data)`. See `nd.rsqrt`."""
        return unary.rsqrt(self, **how)

    def cbrt(self: T, **how: Any) -> T:
        """Cube root, elementwise; negative below 0. See `nd.cbrt`."""
        return unary.cbrt(self, **how)

    def rcbrt(self: T, **how: Any) -> T:
        """Reciprocal of the cube root, elementwise: `y = data ** (-1/3)`. See `nd.rcbrt`."""
        return unary.rcbrt(self, **how)

    def square(self: T, **how: Any) -> T:
        """Square, elementwise: `y = data * data`. See `nd.square`."""
        return unary.square(self, **how)

    def reciprocal(self: T, **how: Any) -> T:
        """Reciprocal, elementwise: `y = 1 / data`. See `nd.reciprocal`."""
        return unary.reciprocal(self, **how)

    def relu(self: T, **how: Any) -> T:
        """Rectified linear unit, elementwise: `y = max(data, 0)`. See `nd.relu`."""
        return activation.relu(self, **how)

    def sigmoid(self: T, **how: Any) -> T:
        """Logistic function, elementwise: `y = 1 / (1 + exp(-data))`. See `nd.sigmoid`."""
        return activation.sigmoid(self, **how)

    def zeros_like(self: T, **how: Any) -> T:
        """Zeros in the shape and dtype of data. See `nd.zeros_like`."""
        return casting.zeros_like(self, **how)

    def ones_like(self: T, **how: Any) -> T:
        """Ones in the shape and dtype of data. See `nd.ones_like`."""
        return casting.ones_like(self, **how)

    def clip(self: T, a_min: float, a_max: float, **how: Any) -> T:
        """Limit every element to the range from `a_min` to `a_max`. See `nd.clip`."""
        return unary.clip(self, a_min, a_max, **how)

    # ---- reductions

    def sum(self: T, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> T:
        """Sum of the elements along `axis`: `y = sum_axis data`. See `nd.sum`."""
        return reduce.sum(self, axis, keepdims, exclude, **how)

    def mean(self: T, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> T:
        """Arithmetic mean along `axis`: `y = sum_axis data / n`; of integers, cut towards zero. See `nd.mean`."""
        return reduce.mean(self, axis, keepdims, exclude, **how)

    def prod(self: T, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> T:
        """Product of the elements along `axis`. See `nd.prod`."""
        return reduce.prod(self, axis, keepdims, exclude, **how)

    def nansum(self: T, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> T:
        """Sum of the elements along `axis` that are numbers; NaN counts as 0. See `nd.nansum`."""
        return reduce.nansum(self, axis, keepdims, exclude, **how)

    def nanprod(self: T, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> T:
        """Product of the elements along `axis` that are numbers; NaN counts as 1. See `nd.nanprod`."""
        return reduce.nanprod(self, axis, keepdims, exclude, **how)

    def max(self: T, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> T:
        """Largest element along `axis`; NaN if there is a NaN. See `nd.max`."""
        return reduce.max(self, axis, keepdims, exclude, **how)

    def min(self: T, axis: int | Sequence[int] | None = None, keepdims: bool = False, exclude: bool = False, **how: Any) -> T:
        """Smallest element along `axis`; NaN if there is a NaN. See `nd.min`."""
        return reduce.min(self, axis, keepdims, exclude, **how)

    def norm(self: T, ord: int = 2, axis: int | Sequence[int] | None = None, keepdims: bool = False, **how: Any) -> T:
        """Norm along `axis`: `y = sum |data|` for ord 1, `y = sqrt(sum data ** 2)` for ord 2. See `nd.norm`."""
        return reduce.norm(self, ord=ord, axis=axis, keepdims=keepdims, **how)

    def argmax(self: T, axis: int | None = None, keepdims: bool = False, **how: Any) -> T:
        """Position of the largest element along `axis`; None: in the flattened array. See `nd.argmax`."""
        return reduce.argmax(self, axis, keepdims, **how)

    def argmin(self: T, axis: int | None = None, keepdims: bool = False, **how: Any) -> T:
        """Position of the smallest element along `axis`; None: in the flattened array. See `nd.argmin`."""
        return reduce.argmin(self, axis, keepdims, **how)

    def argmax_channel(self: T, **how: Any) -> T:
        """Position of the largest element along axis 1: the most likely class. See `nd.argmax_channel`."""
        return reduce.argmax_channel(self, **how)

    # ---- shapes

    def reshape_like(self: T, rhs: Any, **how: Any) -> T:
        """The elements in the shape of `rhs`. See `nd.reshape_like`."""
        return shape.reshape_like(self, rhs, **how)

    def transpose(self: T, *axes: Any, **how: Any) -> T:
        """The axes in another order: axis i of the result is axis `axes[i]`; reversed without `axes`. See `nd.transpose`."""
        chosen = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return layout.transpose(self, how.pop("axes", chosen), **how)

    def swapaxes(self: T, dim1: int = 0, dim2: int = 0, **how: Any) -> T:
        """Two axes change places. See `nd.swapaxes`."""
        return layout.swapaxes(self, dim1, dim2, **how)

    def flip(self: T, axis: int | Sequence[int], **how: Any) -> T:
        """The elements in reverse order along `axis`, an int or several. See `nd.flip`."""
        return padding.flip(self, axis, **how)

    def repeat(self: T, repeats: int, axis: int | None = None, **how: Any) -> T:
        """Each element `repeats` times in a row along `axis`; of the flattened array if that is None. See `nd.repeat`."""
        return joining.repeat(self, repeats, axis, **how)

    def tile(self: T, reps: int | Sequence[int], **how: Any) -> T:
        """Copies of the whole array side by side, `reps[i]` along axis i. See `nd.tile`."""
        return joining.tile(self, reps, **how)

    def pad(self: T, mode: str = "constant", pad_width: Sequence[int] = (), constant_value: float = 0.0, **how: Any) -> T:
        """A frame around data: of a constant, of copies of the nearest edge, or reflected at the edge. See `nd.pad`."""
        return padding.pad(self, mode, pad_width, constant_value, **how)

    def split(self, num_outputs: int, axis: int = 1, squeeze_axis: bool = False, **how: Any) -> Any:
        """Equal parts of data along `axis`. See `nd.split`."""
        return joining.split(self, num_outputs, axis, squeeze_axis, **how)

    def split_v2(self, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False, **how: Any) -> Any:
        """Parts of an array along `axis`: equal ones, or cut at given positions. See `nd.split_v2`."""
        return joining.split_v2(self, indices_or_sections, axis, squeeze_axis, **how)

    def slice(self: T, begin: Any, end: Any, step: Any = (), **how: Any) -> T:
        """The part from `begin` to `end` in steps of `step` along the first axes; as `data[b:e:s, ...]` in Python. See `nd.slice`."""
        return slicing.slice(self, begin, end, step, **how)

    def slice_axis(self: T, axis: int, begin: int, end: int | None, **how: Any) -> T:
        """The part of data from `begin` to `end` along one axis. See `nd.slice_axis`."""
        return slicing.slice_axis(self, axis, begin, end, **how)

    def slice_like(self: T, shape_like: Any, axes: Any = (), **how: Any) -> T:
        """The first part that has the lengths of `shape_like` along `axes` (all axes if there are none). See `nd.slice_like`."""
        return slicing.slice_like(self, shape_like, axes, **how)

    def broadcast_to(self: T, shape: int | Sequence[int], **how: Any) -> T:
        """Repeats data along axes where it has length 1, and along new ones in front. See `nd.broadcast_to`."""
        return _broadcast_to(self, shape, **how)

    def broadcast_like(self: T, rhs: Any, lhs_axes: Any = None, rhs_axes: Any = None, **how: Any) -> T:
        """Repeats data along axes where it has length 1, so that it has the shape of `rhs`. See `nd.broadcast_like`."""
        return broadcast.broadcast_like(self, rhs, lhs_axes, rhs_axes, **how)

    def broadcast_axes(self: T, axis: Any = (), size: Any = (), **how: Any) -> T:
        """Repeats data along `axis`, where it has length 1, `size` times. See `nd.broadcast_axes`."""
        return broadcast.broadcast_axes(self, axis, size, **how)

    def depth_to_space(self: T, block_size: int, **how: Any) -> T:
        """Channels become pixels: each pixel turns into a block of `block_size` by `block_size`. See `nd.depth_to_space`."""
        return layout.depth_to_space(self, block_size, **how)

    def space_to_depth(self: T, block_size: int, **how: Any) -> T:
        """Pixels become channels: each block of `block_size` by `block_size` turns into one pixel. See `nd.space_to_depth`."""
        return layout.space_to_depth(self, block_size, **how)

    def diag(self: T, k: int = 0, axis1: int = 0, axis2: int = 1, **how: Any) -> T:
        """The diagonal `k` of a matrix, or of those along axis1 and axis2; of a vector, the matrix that has it there. See `nd.diag`."""
        return padding.diag(self, k, axis1, axis2, **how)

    def shape_array(self: T, **how: Any) -> T:
        """The shape of data as an array of int64. See `nd.shape_array`."""
        return creation.shape_array(self, **how)

    def size_array(self: T, **how: Any) -> T:
        """The number of elements of data as an array (1,) of int64. See `nd.size_array`."""
        return creation.size_array(self, **how)

    # ---- indexing and sorting

    def take(self: T, indices: Any, axis: int = 0, mode: str = "clip", **how: Any) -> T:
        """Slices along `axis`: `result[i, ...] = data[indices[i], ...]`. See `nd.take`."""
        return indexing.take(self, indices, axis, mode, **how)

    def one_hot(self: T, depth: int, on_value: float = 1.0, off_value: float = 0.0, dtype: Any = "float32", **how: Any) -> T:
        """A vector of `depth` entries for each index: `on_value` at the index, `off_value` elsewhere. See `nd.one_hot`."""
        return indexing.one_hot(self, depth, on_value, off_value, dtype, **how)

    def pick(self: T, index: Any, axis: int | None = -1, keepdims: bool = False, mode: str = "clip", **how: Any) -> T:
        """One element a row: `result[i] = data[i, index[i]]`, for rows along any `axis`. See `nd.pick`."""
        return indexing.pick(self, index, axis=axis, keepdims=keepdims, mode=mode, **how)

    def sort(self: T, axis: int | None = -1, is_ascend: bool = True, **how: Any) -> T:
        """The elements in order along `axis`. See `nd.sort`."""
        return sorting.sort(self, axis, is_ascend, **how)

    def topk(self, axis: int | None = -1, k: int = 1, ret_typ: str = "indices", is_ascend: bool = False, **how: Any) -> Any:
        """The `k` greatest elements along `axis` (the least if `is_ascend`), in order. See `nd.topk`."""
        return sorting.topk(self, axis, k, ret_typ, is_ascend, **how)

    def argsort(self: T, axis: int | None = -1, is_ascend: bool = True, **how: Any) -> T:
        """The indices that sort `data` along `axis`; of equal elements the first comes first. See `nd.argsort`."""
        return sorting.argsort(self, axis, is_ascend, **how)

    # ---- products and probabilities

    def dot(self: T, other: Any, transpose_a: bool = False, transpose_b: bool = False, **how: Any) -> T:
        """Product over the last axis and the first of `other`: `y[i, j] = sum_k data[i, k] other[k, j]`. See `nd.dot`."""
        return linalg.dot(self, other, transpose_a, transpose_b, **how)

    def softmax(self: T, axis: int = -1, temperature: float | None = None, **how: Any) -> T:
        """Exponentials along `axis`, scaled to sum to 1: `exp(data / temperature) / sum exp(data / temperature)`. See `nd.softmax`."""
        return softmax.softmax(self, axis=axis, temperature=temperature, **how)

    def log_softmax(self: T, axis: int = -1, temperature: float | None = None, **how: Any) -> T:
        """Logarithm of the softmax along `axis`: `data - log sum exp(data)`, after division by `temperature`. See `nd.log_softmax`."""
        return softmax.log_softmax(self, axis=axis, temperature=temperature, **how)

    def softmin(self: T, axis: int = -1, temperature: float | None = None, **how: Any) -> T:
        """Softmax of the negated data along `axis`. See `nd.softmin`."""
        return softmax.softmin(self, axis=axis, temperature=temperature, **how)


_broadcast_to = broadcast.broadcast_to  # inside the method, `shape` is its argument
