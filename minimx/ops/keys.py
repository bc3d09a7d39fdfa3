"""What stands between the brackets of `x[...]`: an index, understood from shapes alone.

A `Key` is a NumPy index made hashable, so that an operator can hold it, and free of shapes, so that one trace serves many.
`Key.on(shape)` says what it selects there: a `Basic` region (integers, slices, None, Ellipsis), which may lie in one piece in
memory and then is shared instead of copied, or an `Advanced` selection (with index arrays). No array's data is touched here.
Book: chapter 1.
"""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from ..base import ArgumentError, OutOfRangeError, ShapeError
from ..op import Shape


class Key:
    """An index as a tuple of int, slice, None, Ellipsis (at most one) and integer arrays, which nobody may change any more.

    Equal keys select equally. The text is a Python literal: `(1, (0, 3, 2), None, ..., {(2,): [5, 7]})` for
    `x[1, 0:3:2, None, ..., [5, 7]]`; an array stands as {shape: elements}.
    """

    __slots__ = ("_found", "_token", "items")

    def __init__(self, items: tuple[Any, ...]) -> None:
        self.items = items
        self._token: tuple[Any, ...] | None = None
        self._found: tuple[Shape, Basic | Advanced] | None = None  # the latest answer of `on`

    def on(self, shape: Shape) -> Basic | Advanced:
        """What the key selects in an array of `shape`. Raises OutOfRangeError where it reaches outside."""
        found = self._found
        if found is None or found[0] != shape:
            self._found = found = (shape, select(self, shape))
        return found[1]

    def numpy(self, xp: Any = np) -> tuple[Any, ...]:
        """The index for an array of the module `xp`. It ends in Ellipsis, so that the result is an array even of one element."""
        items = self.items if xp is np else tuple(xp.asarray(item) if is_array(item) else item for item in self.items)
        return items if any(item is Ellipsis for item in items) else (*items, Ellipsis)

    @property
    def token(self) -> tuple[Any, ...]:
        """What equality and hash go by: slices cannot be hashed before Python 3.12, arrays never."""
        if self._token is None:
            self._token = tuple(token_of(item) for item in self.items)
        return self._token

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Key) and self.token == other.token)

    def __hash__(self) -> int:
        return hash(self.token)

    def __reduce__(self) -> tuple[Any, ...]:
        return Key, (self.items,)

    def __str__(self) -> str:
        parts = [text_of(item) for item in self.items]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def __repr__(self) -> str:
        return f"Key{self}"

    @classmethod
    def parse(cls, text: str) -> Key:
        """The key whose text is `text`. Raises ArgumentError if it is none."""
        try:
            return cls(tuple(item_of(part) for part in ast.literal_eval(text)))
        except (ValueError, SyntaxError, TypeError):
            raise ArgumentError(f"{text!r} is not the text of an index") from None


WHOLE = slice(None)  # an axis of which everything is taken


def is_array(item: Any) -> bool:
    return isinstance(item, np.ndarray)


def token_of(item: Any) -> Any:
    """A hashable value for one item of a key."""
    if isinstance(item, slice):
        return "slice", item.start, item.stop, item.step
    return ("array", item.shape, item.tobytes()) if is_array(item) else item


def text_of(item: Any) -> str:
    """One item of a key as a Python literal."""
    if isinstance(item, slice):
        return str((item.start, item.stop, item.step))
    if is_array(item):
        return f"{{{item.shape}: {item.reshape(-1).tolist()}}}"
    return "..." if item is Ellipsis else str(item)


def item_of(part: Any) -> Any:
    """Undo `text_of`, given the literal's value."""
    if isinstance(part, tuple):
        return slice(*part)
    if isinstance(part, dict):
        ((shape, elements),) = part.items()
        return np.array(elements, np.intp).reshape(shape)
    if part is None or part is Ellipsis or type(part) is int:
        return part
    raise ValueError(part)


class Basic:
    """A region that integers, slices, None and Ellipsis select.

    `begin`, `end`, `step`: for each axis of the array, as of `range` (`end` is -1 for "before the first" if `step` is negative).
    `dropped`: the axes that an integer removes. `new_axes`: where the result has the axes of None. `shape`: the result's; (1,)
    for a single element, because MXNet 1.x has no arrays without axes. `contiguous`: the region lies in one piece, in order, from
    element `offset` on. `whole`: it is all of the array.
    """

    __slots__ = ("begin", "contiguous", "dropped", "end", "key", "new_axes", "offset", "shape", "step", "whole")

    key: Key
    begin: Shape
    end: Shape
    step: Shape
    dropped: tuple[int, ...]
    new_axes: tuple[int, ...]
    shape: Shape
    contiguous: bool
    offset: int
    whole: bool

    @property
    def numpy_key(self) -> tuple[Any, ...]:
        return self.key.numpy()

    def assignment(self, value: Shape) -> tuple[Key, Shape]:
        """The key and the value's new shape with which a value of shape `value` can be written here. Raises ShapeError."""
        return fit(self, value)


class Advanced:
    """A selection by index arrays, always a copy. `shape` is the result's, `new_axes` are where it has the axes of None."""

    __slots__ = ("key", "new_axes", "shape")

    contiguous = False
    whole = False

    def __init__(self, key: Key, shape: Shape, new_axes: tuple[int, ...]) -> None:
        self.key = key
        self.shape = shape
        self.new_axes = new_axes

    @property
    def numpy_key(self) -> tuple[Any, ...]:
        return self.key.numpy()

    def assignment(self, value: Shape) -> tuple[Key, Shape]:
        """As of `Basic`."""
        return fit(self, value)


def select(key: Key, shape: Shape) -> Basic | Advanced:
    """What `key` selects in an array of `shape`."""
    items: tuple[Any, ...] = () if not shape and key.items == (WHOLE,) else key.items  # MXNet takes x[:] of an array without axes
    used, has_arrays, where = 0, False, len(items)
    for place, item in enumerate(items):
        if item is Ellipsis:
            where = place
        elif item is not None:
            used += 1
            has_arrays = has_arrays or is_array(item)
    if used > len(shape):
        raise OutOfRangeError(f"index: {used} indices for an array of {len(shape)} dimensions and shape {shape}; leave some out")
    # The Ellipsis stays: in NumPy it parts index arrays even where it stands for no axis.
    expanded = (*items[:where], Ellipsis, *(WHOLE,) * (len(shape) - used), *items[where + 1 :])
    return select_advanced(key, expanded, shape) if has_arrays else select_basic(key, expanded, shape)


def select_basic(key: Key, items: tuple[Any, ...], shape: Shape) -> Basic:
    """`select` for a key without arrays, with an item for each axis."""
    spans: list[tuple[int, int, int]] = []
    counts: list[int] = []
    result: list[int] = []
    dropped: list[int] = []
    new_axes: list[int] = []
    for item in items:
        if item is WHOLE:
            length = shape[len(spans)]
            spans.append((0, length, 1))
            counts.append(length)
            result.append(length)
        elif isinstance(item, slice):
            span = item.indices(shape[len(spans)])
            counts.append(len(range(*span)))
            result.append(counts[-1])
            spans.append(span)
        elif item is None:
            new_axes.append(len(result))
            result.append(1)
        elif item is not Ellipsis:
            place = check_place(item, len(spans), shape)
            dropped.append(len(spans))
            spans.append((place, place + 1, 1))
            counts.append(1)
    found = Basic()
    found.key = key
    found.begin, found.end, found.step = zip(*spans) if spans else ((), (), ())
    found.dropped, found.new_axes = tuple(dropped), tuple(new_axes)
    found.shape = tuple(result) if result or not shape else (1,)
    found.contiguous, found.offset = one_piece(spans, counts, shape)
    found.whole = found.contiguous and math.prod(counts) == math.prod(shape)
    return found


def first_axis(item: int | slice, shape: Shape) -> Basic:
    """`select_basic` for an integer or a slice of step 1 alone: loops over rows or batches ask for these, so the way is short."""
    found = Basic()
    found.key = Key((item,))
    rest = shape[1:]
    zeros = (0,) * len(rest)
    if isinstance(item, slice):
        begin, end, _ = item.indices(shape[0])
        end = max(begin, end)
        found.dropped, found.shape = (), (end - begin, *rest)
    else:
        begin = check_place(item, 0, shape)
        end = begin + 1
        found.dropped, found.shape = (0,), rest or (1,)
    found.begin, found.end, found.step = (begin, *zeros), (end, *rest), (1,) * len(shape)
    found.new_axes = ()
    found.contiguous, found.offset = True, begin * math.prod(rest) if end > begin else 0
    found.whole = end - begin == shape[0]
    return found


def check_place(place: int, axis: int, shape: Shape) -> int:
    """`place` counted from the front of the axis. Raises OutOfRangeError if the array has no such place."""
    length = shape[axis]
    if not -length <= place < length:
        raise OutOfRangeError(f"index {place} is out of bounds for axis {axis} with size {length}")
    return place + length if place < 0 else place


def one_piece(spans: list[tuple[int, int, int]], counts: list[int], shape: Shape) -> tuple[bool, int]:
    """Whether the region lies in memory in one piece and in order, and the number of its first element.

    From the last axis on: once an axis is not taken whole, the axes before it may have one place each.
    """
    if 0 in counts:
        return True, 0
    offset, stride, partial = 0, 1, False
    for axis in range(len(shape) - 1, -1, -1):
        count, length = counts[axis], shape[axis]
        begin, _, step = spans[axis]
        if count > 1 and (step != 1 or partial):
            return False, 0
        partial = partial or count != length
        offset += begin * stride
        stride *= length
    return True, offset


def select_advanced(key: Key, items: tuple[Any, ...], shape: Shape) -> Advanced:
    """`select` for a key with arrays: integers join them. They form a block of axes in the result: in their place if they stand
    side by side in the key, otherwise in front.
    """
    arrays: list[Shape] = []
    before: list[int] = []  # lengths of the result's other axes
    after: list[int] = []
    new_before: list[int] = []  # which of them are new
    new_after: list[int] = []
    axis = 0
    together = True
    previous_advanced = False
    for item in items:
        advanced = is_array(item) or isinstance(item, int)
        if advanced:
            together = together and (previous_advanced or not arrays)
            arrays.append(item.shape if is_array(item) else ())
            check_places(item, axis, shape)
            axis += 1
        elif item is not Ellipsis:
            lengths, new = (after, new_after) if arrays else (before, new_before)
            if item is None:
                new.append(len(lengths))
                lengths.append(1)
            else:
                lengths.append(len(range(*item.indices(shape[axis]))))
                axis += 1
        previous_advanced = advanced
    try:
        block = np.broadcast_shapes(*arrays)
    except ValueError:
        listed = " and ".join(str(each) for each in arrays)
        raise ShapeError(f"index: arrays of shapes {listed} cannot be broadcast together") from None
    lead = before if together else []
    tail = after if together else before + after
    start = len(lead) + len(block)
    moved = new_after if together else new_before + [place + len(before) for place in new_after]
    new_axes = (*(new_before if together else ()), *(place + start for place in moved))
    return Advanced(key, (*lead, *block, *tail) or (1,), new_axes)


def check_places(item: Any, axis: int, shape: Shape) -> None:
    """Raise OutOfRangeError if an index (an integer or an array of them) reaches outside the axis."""
    if not is_array(item):
        check_place(item, axis, shape)
    elif item.size:
        length, low, high = shape[axis], int(item.min()), int(item.max())
        if low < -length or high >= length:
            wrong = high if high >= length else low
            raise OutOfRangeError(f"index {wrong} is out of bounds for axis {axis} with size {length}")


def fit(found: Basic | Advanced, value: Shape) -> tuple[Key, Shape]:
    """Key and shape for writing a value. NumPy's rule first; if it refuses, MXNet's, which ignores the axes of None."""
    stripped = strip(value, len(found.shape))
    if broadcasts(stripped, found.shape):
        return found.key, stripped
    if found.new_axes and len(value) <= len(found.shape) - len(found.new_axes):
        missing = len(found.shape) - len(found.new_axes) - len(value)
        lengths = iter((1,) * missing + value)
        spread = tuple(1 if axis in found.new_axes else next(lengths) for axis in range(len(found.shape)))
        if broadcasts(spread, found.shape):
            return found.key, spread
    raise ShapeError(f"index: a value of shape {value} cannot be broadcast to the {found.shape} that are written")


def strip(shape: Shape, ndim: int) -> Shape:
    """`shape` without the leading ones that are too many for `ndim` dimensions."""
    while len(shape) > ndim and shape[0] == 1:
        shape = shape[1:]
    return shape


def broadcasts(shape: Shape, target: Shape) -> bool:
    """Whether an array of `shape` can be stretched to `target`."""
    return len(shape) <= len(target) and all(n in (1, m) for n, m in zip(reversed(shape), reversed(target), strict=False))
