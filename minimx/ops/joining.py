"""Several arrays made one, and one made several: concat, stack, split; and copies of one side by side: tile, repeat.

Splitting is the gradient of joining, and joining that of splitting; so both orders of derivative are single operators. `tile` and
`repeat` give the result two axes for each axis of data, one for the copies, so that NumPy's broadcasting does the work, and the
gradient is a sum over the axes of copies. Book: chapter 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, ShapeError
from ..fields import converted
from ..op import Array, How, Op, Shape, Spec, T, also_called, apply, beside, register
from ..rules import normalize_axis, same_dtype, same_shape, unified
from .products import joined
from .reduce import Sum
from .shape import as_shape, reshape_to
from .slicing import put_back

if TYPE_CHECKING:
    from typing_extensions import Unpack


# ---- concat, stack


@register("Concat", "concat")
class Concatenation(Op):
    inputs: ClassVar = ("data*",)
    saves_inputs = False
    saves_outputs = False
    takes_out = True

    dim: int = 1

    def infer(self, *data: Spec) -> Spec:
        dtype = same_dtype(self, *data)
        shape = list(data[0].shape)
        axis = normalize_axis(self, self.dim, len(shape), "dim")
        for position, spec in enumerate(data[1:], 1):
            if spec.ndim != len(shape) or any(n != shape[i] for i, n in enumerate(spec.shape) if i != axis):
                raise ShapeError(
                    f"{self.name}: input {position} has shape {spec.shape}, input 0 {data[0].shape}; only dim {axis} may differ"
                )
        shape[axis] = sum(spec.shape[axis] for spec in data)
        return Spec.of(shape, dtype)

    def fill(self, *data: Spec | None) -> tuple[Spec | None, ...]:
        ndim = next((spec.ndim for spec in data if spec is not None), 0)
        return unified(*data, free=self.dim + ndim if self.dim < 0 else self.dim)

    def kernel(self, xp: Any, *data: Array, out: Array | None = None) -> Array:
        return joined(xp, data, self.dim, out)

    def vjp(self, g: Any, y: Any, *data: Any) -> tuple[Any, ...]:
        if len(data) == 1:
            return (g,)
        lengths = (tensor.shape[self.dim] for tensor in data[:-1])
        return tuple(apply(PartsAt((0, *itertools.accumulate(lengths)), self.dim), g))


@register("_rnn_param_concat")
class RNNParamConcatenation(Concatenation):
    """Concat for the parameters of a recurrent layer.

    Unknown can only be those that depend on the length of the input: the first one, and one like it for the other direction.
    """

    def fill(self, *data: Spec | None) -> tuple[Spec | None, ...]:
        unknown = [position for position, spec in enumerate(data) if spec is None or not spec.size]
        first = data[0] if data else None
        if first is None or not first.size or len(unknown) != 1:
            return super().fill(*data)
        (other,) = unknown
        return *data[:other], first, *data[other + 1 :]


@register("stack")
class Stack(Op):
    inputs: ClassVar = ("data*",)
    saves_inputs = False
    saves_outputs = False
    takes_out = True

    axis: int = 0

    def infer(self, *data: Spec) -> Spec:
        same_dtype(self, *data)
        shape = same_shape(self, *data)
        axis = normalize_axis(self, self.axis, len(shape) + 1)
        return data[0].with_shape((*shape[:axis], len(data), *shape[axis:]))

    def fill(self, *data: Spec | None) -> tuple[Spec | None, ...]:
        return unified(*data)

    def kernel(self, xp: Any, *data: Array, out: Array | None = None) -> Array:
        if out is None:
            return xp.stack(data, axis=self.axis)
        axis = self.axis % out.ndim
        return joined(xp, [array.reshape(*array.shape[:axis], 1, *array.shape[axis:]) for array in data], axis, out)

    def vjp(self, g: Any, y: Any, *data: Any) -> tuple[Any, ...]:
        if len(data) == 1:
            return (reshape_to(g, data[0].shape),)
        return tuple(apply(EqualParts(len(data), self.axis, True), g))


def _check_count(name: str, data: Sequence[Any], num_args: int | None) -> None:
    """MXNet lets the caller say how many arrays follow."""
    num_args = converted(name, "num_args", "int | None", num_args)
    if num_args is not None and num_args != len(data):
        raise ArgumentError(f"{name}: num_args is {num_args}, but {len(data)} arrays were given; leave it out")


def concat(*data: T, dim: int = 1, num_args: int | None = None, **how: Unpack[How]) -> T:
    """Arrays joined along an axis that they have.

    **Shapes** data_i (..., L_i, ...), equal but along `dim`; result (..., sum L_i, ...). **Args** num_args: not needed.
    **Gradient** the parts of `g`. **Source** MXNet `Concat`.
    """
    _check_count("concat", data, num_args)
    return apply(Concatenation(dim), *data, **how)


Concat = concat


def rnn_param_concat(*data: T, dim: int = 1, num_args: int | None = None, **how: Unpack[How]) -> T:
    """The parameters of a recurrent layer joined into the one vector that RNN takes. **Source** MXNet `_rnn_param_concat`."""
    _check_count("rnn_param_concat", data, num_args)
    return apply(RNNParamConcatenation(dim), *data, **how)


def stack(*data: T, axis: int = 0, num_args: int | None = None, **how: Unpack[How]) -> T:
    """Arrays of one shape joined along a new axis.

    **Shapes** data_i (...), result with a new `axis` as long as there are arrays. **Args** num_args: not needed. **Gradient** the
    parts of `g`. **Source** MXNet `stack`.
    """
    _check_count("stack", data, num_args)
    return apply(Stack(axis), *data, **how)


# ---- split


class Parts(Op):
    """Cuts an array along an axis; `edges` says where."""

    saves_inputs = False
    saves_outputs = False

    axis: int
    squeeze_axis: bool

    def edges(self, length: int) -> list[int]:
        """Where the parts of an axis of `length` begin, and where the last one ends."""
        raise NotImplementedError

    def equal(self, length: int, parts: int) -> list[int]:
        """The edges of `parts` equal parts."""
        if length % parts:
            raise ShapeError(f"{self.name}: axis {self.axis} has length {length}, which does not divide into {parts} equal parts")
        return [length // parts * i for i in range(parts + 1)]

    def infer(self, data: Spec) -> Spec | tuple[Spec, ...]:
        axis = normalize_axis(self, self.axis, data.ndim)
        edges = self.edges(data.shape[axis])
        lengths = [high - low for low, high in itertools.pairwise(edges)]
        before, after = data.shape[:axis], data.shape[axis + 1 :]
        if not self.squeeze_axis:
            parts = tuple(data.with_shape((*before, length, *after)) for length in lengths)
        elif any(length != 1 for length in lengths):
            raise ShapeError(f"{self.name}: the parts of axis {axis} have lengths {lengths}; squeeze_axis=True needs length 1")
        else:
            parts = tuple(data.with_shape((*before, *after) or (1,)) for _ in lengths)
        return parts if len(parts) > 1 else parts[0]

    def kernel(self, xp: Any, data: Array) -> Array | tuple[Array, ...]:
        axis = self.axis % data.ndim
        around = (slice(None),) * axis
        parts = []
        for low, high in itertools.pairwise(self.edges(data.shape[axis])):
            part = data[(*around, low if self.squeeze_axis else slice(low, high))]
            parts.append(beside(xp, data, part.shape or (1,), data.dtype))
            parts[-1][...] = part
        return tuple(parts) if len(parts) > 1 else parts[0]

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        gradients = g if isinstance(g, (tuple, list)) else (g,)
        axis = self.axis % len(data.shape)
        if all(part is not None for part in gradients):
            if self.squeeze_axis and len(data.shape) > 1:
                return (apply(Stack(axis), *gradients),)
            return (apply(Concatenation(axis), *gradients),)
        total = None
        around = [slice(None)] * len(data.shape)
        for part, (low, high) in zip(gradients, itertools.pairwise(self.edges(data.shape[axis]))):
            if part is not None:
                around[axis] = slice(low, high, 1)
                whole = (*data.shape[:axis], high - low, *data.shape[axis + 1 :])
                placed = put_back(reshape_to(part, whole), tuple(around), data.shape)
                total = placed if total is None else total + placed
        return (total,)


@register("SliceChannel", "split")
class EqualParts(Parts):
    num_outputs: int = 0  # must be given; the default keeps the property of Op from being taken for one
    axis: int = 1
    squeeze_axis: bool = False

    def edges(self, length: int) -> list[int]:
        if self.num_outputs < 1:
            raise ArgumentError(f"{self.name}: num_outputs is {self.num_outputs}, wants 1 or more")
        return self.equal(length, self.num_outputs)


@register("_split_v2")
class PartsAt(Parts):
    indices: tuple[int, ...]
    axis: int = 1
    squeeze_axis: bool = False
    sections: int = 0

    @property
    def num_outputs(self) -> int:
        return self.sections or len(self.indices)

    def edges(self, length: int) -> list[int]:
        if self.sections > 0:
            return self.equal(length, self.sections)
        edges = [*self.indices, length]
        if edges[0] != 0 or any(low > high for low, high in itertools.pairwise(edges)):
            raise ShapeError(
                f"{self.name}: axis {self.axis} of length {length} cannot be cut into parts that begin at {self.indices}; "
                f"positions must ascend from 0 to {length}"
            )
        return edges


def split(data: T, num_outputs: int, axis: int = 1, squeeze_axis: bool = False, **how: Unpack[How]) -> Any:
    """Equal parts of data along `axis`.

    **Shapes** data (..., n L, ...), each result (..., L, ...), or (..., ...) with squeeze_axis, which needs L = 1. **Returns** a
    list of copies; the one copy if num_outputs is 1. **Raises** ShapeError if the axis does not divide. **Gradient** the parts
    joined. **Source** MXNet `SliceChannel`.
    """
    return apply(EqualParts(num_outputs, axis, squeeze_axis), data, **how)


SliceChannel = also_called("SliceChannel", split)


def split_v2(
    ary: T, indices_or_sections: int | Sequence[int], axis: int = 0, squeeze_axis: bool = False, **how: Unpack[How]
) -> Any:
    """Parts of an array along `axis`: equal ones, or cut at given positions.

    **Args** indices_or_sections: how many equal parts, or the positions at which all parts but the first begin, ascending.
    **Returns** a list of copies; the one copy if there is one part. **Raises** ShapeError if the axis does not divide, or for
    positions outside. **Gradient** the parts joined. **Source** MXNet `split_v2`.
    """
    if isinstance(indices_or_sections, Sequence):
        op = PartsAt((0, *as_shape(indices_or_sections)), axis, squeeze_axis)
    else:
        sections: int = converted("split_v2", "indices_or_sections", "int", indices_or_sections)
        if sections < 1:
            raise ArgumentError(f"split_v2: indices_or_sections is {sections}, wants 1 or more parts, or a tuple of positions")
        op = PartsAt((), axis, squeeze_axis, sections)
    return apply(op, ary, **how)


# ---- tile, repeat


class Copies(Op):
    """Repeats data: `factored` gives the shape of data with an axis of 1 wherever copies go, and the shape with their numbers
    there."""

    saves_inputs = False
    saves_outputs = False
    takes_out = True

    def factored(self, shape: Shape) -> tuple[Shape, Shape]:
        raise NotImplementedError

    def target(self, shape: Shape) -> Shape:
        raise NotImplementedError

    def infer(self, data: Spec) -> Spec:
        return data.with_shape(self.target(data.shape))

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        single, many = self.factored(data.shape)
        if out is None:
            out = xp.empty(self.target(data.shape), data.dtype)
        out.reshape(many)[...] = data.reshape(single)
        return out

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        single, many = self.factored(data.shape)
        copies = tuple(axis for axis, (one, number) in enumerate(zip(single, many)) if one != number)
        total = reshape_to(g, many)
        return (reshape_to(apply(Sum(copies, keepdims=True), total) if copies else total, data.shape),)


@register("tile")
class Tile(Copies):
    reps: tuple[int, ...]

    def aligned(self, shape: Shape) -> tuple[Shape, Shape]:
        """Lengths and numbers of copies of equally many axes: ones are added in front of the shorter."""
        if any(number < 1 for number in self.reps):
            raise ArgumentError(f"{self.name}: reps is {self.reps}, wants positive numbers")
        ndim = max(len(shape), len(self.reps))
        return (1,) * (ndim - len(shape)) + shape, (1,) * (ndim - len(self.reps)) + self.reps

    def target(self, shape: Shape) -> Shape:
        return tuple(length * number for length, number in zip(*self.aligned(shape)))

    def factored(self, shape: Shape) -> tuple[Shape, Shape]:
        lengths, numbers = self.aligned(shape)
        single = itertools.chain.from_iterable((1, length) for length in lengths)
        return tuple(single), tuple(itertools.chain.from_iterable(zip(numbers, lengths)))


@register("repeat")
class Repeat(Copies):
    repeats: int
    axis: int | None = None

    def target(self, shape: Shape) -> Shape:
        if self.repeats < 0:
            raise ArgumentError(f"{self.name}: repeats is {self.repeats}, wants 0 or more")
        if self.axis is None:
            return (math.prod(shape) * self.repeats,)
        axis = normalize_axis(self, self.axis, len(shape))
        return (*shape[:axis], shape[axis] * self.repeats, *shape[axis + 1 :])

    def factored(self, shape: Shape) -> tuple[Shape, Shape]:
        if self.axis is None:
            return (math.prod(shape), 1), (math.prod(shape), self.repeats)
        after = self.axis % len(shape) + 1
        return (*shape[:after], 1, *shape[after:]), (*shape[:after], self.repeats, *shape[after:])


def tile(data: T, reps: int | Sequence[int], **how: Unpack[How]) -> T:
    """Copies of the whole array side by side, `reps[i]` along axis i.

    **Shapes** data (..., L_i, ...), result (..., reps_i L_i, ...); axes of length 1 are put in front of the shorter of the two.
    **Raises** ArgumentError for a number that is not positive. **Gradient** the sum of `g` over the copies. **Source** MXNet
    `tile`.
    """
    return apply(Tile(as_shape(reps)), data, **how)


def repeat(data: T, repeats: int, axis: int | None = None, **how: Unpack[How]) -> T:
    """Each element `repeats` times in a row along `axis`; of the flattened array if that is None.

    **Gradient** the sum of `g` over the copies. **Source** MXNet `repeat`.
    """
    return apply(Repeat(repeats, axis), data, **how)
