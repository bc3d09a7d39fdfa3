"""How the elements of an array lie in memory: oneDNN's memory descriptors.

A `Layout` is a shape with either strides, as NumPy has them, or an order of oneDNN's own, in which the channels come in blocks of as many
as a register holds. What the library chooses is known by asking a primitive (primitive.py); between two layouts of the same shape there is
a reorder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .library import ANY, F32, Lengths, Library, library


class Layout:
    """A memory descriptor, which it owns."""

    __slots__ = ("handle", "_destroy")

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self._destroy = library().quick.dnnl_memory_desc_destroy

    def __del__(self) -> None:
        self._destroy(self.handle)

    @property
    def nbytes(self) -> int:
        return int(library().quick.dnnl_memory_desc_get_size(self.handle))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and bool(library().quick.dnnl_memory_desc_equal(self.handle, other.handle))

    __hash__ = None  # type: ignore[assignment]  # nobody looks one up

    @classmethod
    def copy(cls, lib: Library, borrowed: int) -> Layout:
        """One of its own like that which a primitive's description owns."""
        return cls(lib.new("memory_desc_clone", borrowed))

    @classmethod
    def plain(cls, shape: Sequence[int], strides: Sequence[int] | None = None, dtype: int = F32) -> Layout:
        """`shape` in NumPy's order, or with `strides`, in elements."""
        steps = contiguous(shape) if strides is None else strides
        return cls(library().new("memory_desc_create_with_strides", len(shape), Lengths(*shape), dtype, Lengths(*steps)))

    @classmethod
    def free(cls, shape: Sequence[int], dtype: int = F32) -> Layout:
        """`shape` in whatever order a primitive likes best: for descriptions of primitives only."""
        return cls(library().new("memory_desc_create_with_tag", len(shape), Lengths(*shape), dtype, ANY))


def contiguous(shape: Sequence[int]) -> list[int]:
    """The strides, in elements, of an array in NumPy's order."""
    steps, step = [], 1
    for length in reversed(shape):
        steps.append(step)
        step *= max(length, 1)
    return steps[::-1]


def moved(values: Sequence[Any], last: bool, axis: int = 1) -> list[Any]:
    """Lengths or strides of an array whose channels may be the last axis, as of one that has them as `axis`."""
    values = list(values)
    if last:
        values.insert(axis, values.pop())
    return values


def split(shape: Sequence[int], last: bool) -> tuple[int, int, tuple[int, ...]]:
    """(examples, channels, lengths of the other axes) of an array's shape."""
    batch, channels, *lengths = moved(shape, last)
    return batch, channels, tuple(lengths)


def image(shape: Sequence[int], last: bool) -> Layout:
    """The layout of images (N, C, ...) that have the array's `shape`, in which the channels may be the last axis."""
    return Layout.plain(moved(shape, last), moved(contiguous(shape), last))
