"""From what a user writes between brackets to a `Key`: lists, arrays, masks and NumPy's integers become plain indices.

NDArray's `__getitem__` and `__setitem__` call `classify`; what the key then selects is worked out in ops/keys.py. Only shapes
and the indices themselves are looked at here, never the array's data. Book: chapter 1.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import ArgumentError, DTypeError, OutOfRangeError, ShapeError, shown
from ..op import Shape
from ..ops.keys import Advanced, Basic, Key, first_axis

__all__ = ["Advanced", "Basic", "Key", "classify", "parse", "region", "slices_are_contiguous"]


def read_array(index: Any) -> Any:
    """The values of an index that is an NDArray, which waits for them."""
    return index.asnumpy()


def classify(key: Any, shape: Shape, to_numpy: Callable[[Any], Any] = read_array) -> Basic | Advanced:
    """What `x[key]` selects in an array of `shape`.

    **Args** `key`: anything NumPy takes: int, slice, Ellipsis, None, lists, arrays of integers or bools, tuples of these; a tuple
    inside a tuple is a list. Float arrays count if their numbers are whole. `to_numpy` reads an index with a method `asnumpy`.
    **Raises** OutOfRangeError for an index outside the array or too many of them, ArgumentError (a TypeError and ValueError) for
    what is no index, DTypeError for fractions, ShapeError for masks and index arrays that do not fit.
    """
    if shape and (type(key) is int or (type(key) is slice and key.step is None and is_plain(key))):
        return first_axis(key, shape)
    return parse(key, shape, to_numpy).on(shape)


def parse(key: Any, shape: Shape, to_numpy: Callable[[Any], Any] = read_array) -> Key:
    """The Key that the user's `key` means. `shape` is needed to check masks, and stays out of the Key."""
    items: list[Any] = []
    ellipses, masks = 0, False
    for item in key if isinstance(key, tuple) else (key,):
        found = item if type(item) is int else plain(item, to_numpy)
        ellipses += found is Ellipsis
        masks = masks or type(found) is Mask
        items.append(found)
    if ellipses > 1:
        raise OutOfRangeError("index: more than one Ellipsis (...); one stands for all axes that are left over")
    return Key(tuple(without_masks(items, shape) if masks else items))


class Mask:
    """An array of bools that stands in an index."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array


def without_masks(items: list[Any], shape: Shape) -> list[Any]:
    """`items` with each mask replaced by index arrays."""
    left_over = len(shape) - sum(axes_of(item) for item in items)
    result: list[Any] = []
    axis = 0
    for item in items:
        if isinstance(item, Mask):
            result += places_of(item, shape, axis)
        else:
            result.append(item)
        axis += left_over if item is Ellipsis else axes_of(item)
    return result


def axes_of(item: Any) -> int:
    """How many axes of the array an item of an index consumes, an Ellipsis not counted."""
    if isinstance(item, Mask):
        return int(item.array.ndim)
    return 0 if item is None or item is Ellipsis else 1


def places_of(mask: Mask, shape: Shape, axis: int) -> tuple[Any, ...]:
    """The index arrays of the places where the mask is True, one for each of its axes, of which the first is `axis`."""
    covered = shape[axis : axis + mask.array.ndim] if axis >= 0 else ()
    if mask.array.shape != covered:
        raise ShapeError(f"index: a mask of shape {mask.array.shape} does not fit axes of shape {covered}; they must be equal")
    return tuple(places.astype(np.intp, copy=False) for places in mask.array.nonzero())


def plain(item: Any, to_numpy: Callable[[Any], Any]) -> Any:
    """One item of an index as an int, slice, None, Ellipsis, an array of integers of its own, or a Mask."""
    if item is None or item is Ellipsis:
        return item
    if isinstance(item, slice):
        return plain_slice(item)
    if isinstance(item, (bool, np.bool_, float, complex, np.inexact, str, bytes)):
        raise ArgumentError(
            f"index: {shown(item)} is a {type(item).__name__}; use an int, a slice, None, ... or an array of ints"
        )
    if hasattr(item, "asnumpy"):
        return plain_array(np.asarray(to_numpy(item)))
    if isinstance(item, (list, tuple, range, np.ndarray)):
        try:
            array = np.asarray(item)
        except ValueError:
            raise ArgumentError(f"index: {shown(item)}, a list of unequal lists, is no array of ints") from None
        return plain_array(array)
    try:
        return operator.index(item)
    except TypeError:
        raise ArgumentError(
            f"index: {shown(item)} cannot be an index; use an int, a slice, None, ... or an array of ints"
        ) from None


def plain_slice(item: slice) -> slice:
    """A slice of Python's integers and None, whose step is not 0."""
    if item.step is None and is_plain(item):
        return item
    try:
        parts = [None if part is None else operator.index(part) for part in (item.start, item.stop, item.step)]
    except TypeError:
        bounds = ", ".join(shown(part) for part in (item.start, item.stop, item.step))
        raise ArgumentError(f"index: slice({bounds}) has a part that is no integer; convert it with int()") from None
    if parts[2] == 0:
        raise ArgumentError("index: the step of a slice cannot be zero")
    return slice(*parts)


def is_plain(item: slice) -> bool:
    """Whether the ends of a slice are Python's integers or None."""
    start, stop = item.start, item.stop
    return (start is None or type(start) is int) and (stop is None or type(stop) is int)


def plain_array(array: Any) -> Any:
    """An array that stands in an index as integers of its own, because the operator runs later and the user may change theirs."""
    if array.dtype == np.bool_:
        if array.ndim == 0:
            raise ArgumentError("index: a single bool cannot be an index; use 0 or 1, or a mask of the shape of the axes")
        return Mask(array)
    if array.dtype.kind == "f":  # MXNet's index arrays are float32 unless told otherwise
        if not np.all(array == np.floor(array)):
            raise DTypeError(
                "index: a float array with fractions or NaN cannot be an index; round it and convert with astype('int64')"
            )
        check_size(array, -LARGEST)
    elif array.dtype.kind not in "iu":
        raise ArgumentError(f"index: an array of {array.dtype} cannot be an index; use integers or bools")
    elif array.dtype == np.uint64:
        check_size(array, 0)
    return int(array) if array.ndim == 0 else array.astype(np.intp)


LARGEST = 1 << 62  # beyond any axis, and safe to convert to an integer of 64 bits


def check_size(array: Any, smallest: int) -> None:
    """Raise OutOfRangeError for numbers that would become others as integers of 64 bits."""
    wrong = array[(array > LARGEST) | (array < smallest)]
    if wrong.size:
        raise OutOfRangeError(f"index {wrong.reshape(-1)[0]} is out of bounds for every axis")


def slices_are_contiguous(key: tuple[slice, ...], shape: Shape) -> bool:
    """Whether the region that one slice an axis selects lies in memory in one piece and in order."""
    found = classify(key, shape)
    return found.contiguous


def region(begin: Any, end: Any, step: Any, shape: Shape) -> tuple[slice, ...]:
    """The key for MXNet's way to name a region: a begin, end and step (None: whatever is natural) for each of the first axes."""
    begins, ends = as_tuple(begin), as_tuple(end)
    steps = as_tuple(step) or (None,) * len(begins)
    if not len(begins) == len(ends) == len(steps) <= len(shape):
        raise ArgumentError(
            f"slice: begin {begin}, end {end} and step {step} must be as long as each other, at most {len(shape)}"
        )
    return tuple(slice(*parts) for parts in zip(begins, ends, steps))


def as_tuple(value: Any) -> tuple[Any, ...]:
    """A number as a tuple of one, None as none."""
    if value is None:
        return ()
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
