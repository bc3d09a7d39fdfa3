"""The operators behind brackets: `x[key]`, and `x[key] = value` as a function that returns a changed copy.

NDArray shares memory where it can and calls these where it must copy or record. The key says what is selected (keys.py); an
operator holds it as its attribute. Reading and adding back are each other's gradient. Book: chapter 1.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np

from ..base import ShapeError
from ..op import Array, Op, Shape, Spec, T, apply, register
from ..rules import same_dtype
from .forms import unbroadcast
from .indexing import add_rows, check_scalar
from .keys import WHOLE, Advanced, Key, broadcasts, is_array


class Subscript(Op):
    """What these operators share: the attribute `key`, which is read from text by a parser of its own."""

    saves_inputs: ClassVar[bool] = False
    saves_outputs: ClassVar[bool] = False

    @classmethod
    def from_attrs(cls, attrs: dict[str, str]) -> Op:
        found = super().from_attrs({**attrs, "key": "()"})
        return dataclasses.replace(found, key=Key.parse(attrs.get("key", "()")))


@register("_index")
class Index(Subscript):
    key: Key
    last_only: bool = False  # zero for all but the last of several readings of one element: the gradient of an assignment

    def infer(self, data: Spec) -> Spec:
        return data.with_shape(self.key.on(data.shape).shape)

    def kernel(self, xp: Any, data: Array) -> Array:
        shape = self.key.on(data.shape).shape
        found = data[self.key.numpy(xp)]
        if self.last_only:
            found = xp.where(xp.asarray(last_writes(self.key, data.shape)), found, data.dtype.type(0))
        return found.reshape(shape) if found.base is None else found.copy().reshape(shape)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(IndexAdjoint(self.key, data.shape, self.last_only), g),)


@register("_backward_index")
class IndexAdjoint(Subscript):
    """Zeros of `shape`, to which `grad` is added at `key`."""

    key: Key
    shape: tuple[int, ...]
    last_only: bool = False

    inputs: ClassVar[tuple[str, ...]] = ("grad",)

    def infer(self, grad: Spec) -> Spec:
        wanted = self.key.on(self.shape).shape
        if grad.shape != wanted:
            raise ShapeError(f"{self.name}: grad has shape {grad.shape}, wants {wanted}")
        return grad.with_shape(self.shape)

    def kernel(self, xp: Any, grad: Array) -> Array:
        selected = self.key.numpy(xp)
        if not isinstance(self.key.on(self.shape), Advanced):  # no element is named twice
            result = xp.zeros(self.shape, grad.dtype)
            region = result[selected]
            region[...] = grad.reshape(region.shape)
            return result
        if self.last_only:
            mask = last_writes(self.key, self.shape)
            grad = xp.where(xp.asarray(mask), grad.reshape(mask.shape), grad.dtype.type(0))
        rows, axes = row_numbers(xp, self.key, self.shape)
        width = math.prod(self.shape[axes:])
        values = grad.reshape(rows.size, width)
        return add_rows(xp, math.prod(self.shape[:axes]), rows, values).reshape(self.shape)

    def vjp(self, g: Any, y: Any, grad: Any) -> tuple[Any, ...]:
        return (apply(Index(self.key, self.last_only), g),)


def row_numbers(xp: Any, key: Key, shape: Shape) -> tuple[Array, int]:
    """The rows that `key` selects, by number, where a row is all that lies behind the first so many axes.

    Axes behind the last array or integer are taken whole, so that gradients are added a row, not an element, at a time.
    """
    items, axes = key.items, len(shape)
    while items and (items[-1] is None or items[-1] is Ellipsis or (isinstance(items[-1], slice) and items[-1] == WHOLE)):
        items = items[:-1]
    if any(item is Ellipsis for item in items):
        items = key.items
    else:
        axes = sum(1 for item in items if item is not None)
    numbers = xp.arange(math.prod(shape[:axes])).reshape(shape[:axes])
    return numbers[Key(items).numpy(xp)], axes


def last_writes(key: Key, shape: Shape) -> Any:
    """For `x[key] = value`: True for the elements of value that stay, False for those that a later one overwrites."""
    places = np.arange(math.prod(shape)).reshape(shape)[key.numpy()]
    order = np.arange(places.size).reshape(places.shape)
    writer = np.full(math.prod(shape), -1)
    writer[places] = order
    return writer[places] == order


def write(xp: Any, data: Array, key: Key, value: Array) -> None:
    """`data[key] = value`. Of several values for an element the last stays: on a GPU, too, whose threads write in any order."""
    if xp is not np and isinstance(key.on(data.shape), Advanced):
        last = last_writes(key, data.shape)
        if not last.all():
            places = np.arange(math.prod(data.shape)).reshape(data.shape)[key.numpy()]
            kept = xp.broadcast_to(value, places.shape).reshape(-1)[xp.asarray(np.flatnonzero(last))]
            data.reshape(-1)[xp.asarray(places[last])] = kept
            return
    data[key.numpy(xp)] = value


@register("_index_assign")
class IndexAssign(Subscript):
    key: Key

    inputs: ClassVar[tuple[str, ...]] = ("data", "value")

    def infer(self, data: Spec, value: Spec) -> Spec:
        region = self.key.on(data.shape).shape
        if not broadcasts(value.shape, region):
            raise ShapeError(
                f"{self.name}: value has shape {value.shape}; it cannot be broadcast to the {region} that are written"
            )
        same_dtype(self, data, value)
        return data

    def kernel(self, xp: Any, data: Array, value: Array) -> Array:
        result = data.copy()
        write(xp, result, self.key, value)
        return result

    def vjp(self, g: Any, y: Any, data: Any, value: Any) -> tuple[Any, ...]:
        twice = any(is_array(item) for item in self.key.items)
        return apply(IndexAssignScalar(self.key), g), unbroadcast(apply(Index(self.key, twice), g), value)


@register("_index_assign_scalar")
class IndexAssignScalar(Subscript):
    key: Key
    scalar: float = 0.0

    def infer(self, data: Spec) -> Spec:
        self.key.on(data.shape)
        check_scalar(self, "the value", self.scalar, data.dtype)
        return data

    def kernel(self, xp: Any, data: Array) -> Array:
        result = data.copy()
        result[self.key.numpy(xp)] = self.scalar
        return result

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(IndexAssignScalar(self.key), g),)


def index(data: T, key: Key) -> T:
    """A copy of `data[key]`.

    **Shapes** as of NumPy's indexing; (1,) for a single element. **Gradient** `g` added at the key.
    **Source** NumPy; MXNet `slice`, `gather_nd`.
    """
    return apply(Index(key), data)


def index_assign(data: T, key: Key, value: T | float) -> T:
    """A copy of `data` with `value`, a tensor or a number, written at `key`; of several values for an element the last stays.

    **Shapes** value broadcasts to the shape of `data[key]`. **Gradient** of `data`: `g` with the written elements zeroed; of
    `value`: `g` at the key. **Source** NumPy; MXNet `_slice_assign`, `_scatter_set_nd`.
    """
    if isinstance(value, (int, float)):
        return apply(IndexAssignScalar(key, value), data)
    return apply(IndexAssign(key), data, value)
