"""Mirrors, frames and diagonals: reverse, Pad, diag.

A frame copies some numbers several times, so its gradient adds those copies up again (`_backward_Pad`); a diagonal leaves most
numbers out, so its gradient is zeros around it (`_backward_diag`). Each is the adjoint of the other, so higher orders follow.
Book: chapter 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, also_called, apply, register
from ..rules import normalize_axis
from .shape import as_shape
from .slicing import Slices, Slicing, check_scalar, copied

if TYPE_CHECKING:
    from typing_extensions import Unpack


# ---- reverse


@register("reverse", "flip")
class Reverse(Op):
    saves_inputs = False
    saves_outputs = False
    takes_out = True

    axis: tuple[int, ...]

    def infer(self, data: Spec) -> Spec:
        axes = [normalize_axis(self, axis, data.ndim) for axis in self.axis]
        if len(set(axes)) != len(axes):
            raise ShapeError(f"{self.name}: axis {self.axis} names an axis twice")
        return data

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        slices = [slice(None)] * data.ndim
        for axis in self.axis:
            slices[axis] = slice(None, None, -1)
        return copied(data[tuple(slices)], out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(self, g),)


def reverse(data: T, axis: int | Sequence[int], **how: Unpack[How]) -> T:
    """The elements in reverse order along `axis`, an int or several.

    **Returns** a copy. **Gradient** `g` reversed. **Source** MXNet `reverse`.
    """
    return apply(Reverse(as_shape(axis)), data, **how)


flip = also_called("flip", reverse)


# ---- pad


class Frame(Op):
    """What Pad and its gradient share: the widths of the frame, two for each axis."""

    saves_inputs = False
    saves_outputs = False

    mode: str
    pad_width: tuple[int, ...]

    def widths(self) -> list[tuple[int, int]]:
        return list(zip(self.pad_width[::2], self.pad_width[1::2]))

    def framed(self, shape: Shape) -> Shape:
        """The shape of an array of `shape` within its frame. Raises if the frame does not fit it."""
        if self.mode not in ("constant", "edge", "reflect"):
            raise ArgumentError(f"{self.name}: mode is {self.mode!r}; choose 'constant', 'edge' or 'reflect'")
        if len(self.pad_width) != 2 * len(shape):
            raise ShapeError(
                f"{self.name}: pad_width has {len(self.pad_width)} numbers, data of shape {shape} needs {2 * len(shape)}: "
                "before and after each axis"
            )
        for axis, (length, (before, after)) in enumerate(zip(shape, self.widths())):
            if before < 0 or after < 0:
                raise ArgumentError(f"{self.name}: pad_width {self.pad_width} has a negative number; use slice to cut")
            needed = {"constant": 0, "edge": min(before + after, 1), "reflect": max(before, after) + 1}[self.mode]
            if before + after and length < needed:
                raise ShapeError(
                    f"{self.name}: axis {axis} has length {length}; mode {self.mode!r} and pad ({before}, {after}) need {needed}"
                )
        return tuple(length + before + after for length, (before, after) in zip(shape, self.widths()))

    def inside(self, shape: Shape) -> Slices:
        """Where the array of `shape` is within its frame."""
        return tuple(slice(before, before + length, 1) for length, (before, _) in zip(shape, self.widths()))


@register("Pad", "pad")
class Padding(Frame):
    mode: str
    pad_width: tuple[int, ...]
    constant_value: float = 0.0

    def infer(self, data: Spec) -> Spec:
        check_scalar(self, "constant_value", self.constant_value, data.dtype)
        return data.with_shape(self.framed(data.shape))

    def kernel(self, xp: Any, data: Array) -> Array:
        if self.mode != "constant":
            return xp.pad(data, self.widths(), mode=self.mode)
        framed = xp.full(self.framed(data.shape), self.constant_value, data.dtype)
        framed[self.inside(data.shape)] = data
        return framed

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        if self.mode == "constant":
            inside = self.inside(data.shape)
            return (apply(Slicing(tuple(each.start for each in inside), tuple(each.stop for each in inside)), g),)
        return (apply(PaddingBackward(self.mode, self.pad_width, data.shape), g),)


@register("_backward_Pad")
class PaddingBackward(Frame):
    """Adds the frame of an array to the places that it was copied from."""

    mode: str
    pad_width: tuple[int, ...]
    shape: tuple[int, ...]

    def infer(self, data: Spec) -> Spec:
        if self.framed(self.shape) != data.shape:
            raise ShapeError(f"{self.name}: data has shape {data.shape}, wants {self.framed(self.shape)}")
        return data.with_shape(self.shape)

    def kernel(self, xp: Any, data: Array) -> Array:
        if data.dtype == np.float16:
            return self.kernel(xp, data.astype(np.float32)).astype(np.float16)
        for axis, (length, (before, after)) in enumerate(zip(self.shape, self.widths())):
            first = xp.moveaxis(data, axis, 0)  # a view with this axis in front
            folded = first[before : before + length].copy()
            if self.mode == "edge":
                folded[:1] += first[:before].sum(axis=0)
                folded[length - 1 :] += first[before + length :].sum(axis=0)
            else:  # reflect: the edge itself is not repeated
                folded[1 : before + 1] += first[:before][::-1]
                folded[length - 1 - after : length - 1] += first[before + length :][::-1]
            data = xp.moveaxis(folded, 0, axis)
        return xp.ascontiguousarray(data)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(Padding(self.mode, self.pad_width), g),)


def pad(data: T, mode: str, pad_width: Sequence[int], constant_value: float = 0.0, **how: Unpack[How]) -> T:
    """A frame around data: of a constant, of copies of the nearest edge, or of the inside reflected at the edge.

    **Args** mode: 'constant', 'edge' or 'reflect'; pad_width: numbers before and after each axis, (before_0, after_0, before_1,
    ...). **Raises** ShapeError if pad_width does not fit data, or if data is too small to reflect so far. Unlike MXNet's, data
    may have any number of axes, any of which may be padded. **Gradient** `g` without the frame, whose copies are added to their
    sources. **Source** MXNet `Pad`.
    """
    return apply(Padding(mode, as_shape(pad_width), constant_value), data, **how)


Pad = pad


# ---- diag


@register("diag")
class Diag(Op):
    saves_inputs = False
    saves_outputs = False

    k: int = 0
    axis1: int = 0
    axis2: int = 1

    def axes(self, ndim: int) -> tuple[int, int]:
        """The two axes of the matrices, in an array of at least two dimensions."""
        first, second = normalize_axis(self, self.axis1, ndim, "axis1"), normalize_axis(self, self.axis2, ndim, "axis2")
        if first == second:
            raise ArgumentError(f"{self.name}: axis1 {self.axis1} and axis2 {self.axis2} are the same axis; a diagonal needs two")
        return first, second

    def infer(self, data: Spec) -> Spec:
        if data.ndim < 1:
            raise ShapeError(f"{self.name}: data has shape (), wants at least one dimension")
        if data.ndim == 1:
            return data.with_shape((data.size + abs(self.k),) * 2)
        first, second = self.axes(data.ndim)
        length = min(data.shape[first] + min(self.k, 0), data.shape[second] - max(self.k, 0))
        if length < 0:
            raise ShapeError(f"{self.name}: data has shape {data.shape}, in which diagonal k={self.k} does not exist")
        return data.with_shape([n for axis, n in enumerate(data.shape) if axis not in (first, second)] + [length])

    def kernel(self, xp: Any, data: Array) -> Array:
        if data.ndim == 1:
            return xp.diag(data, self.k)
        return xp.diagonal(data, self.k, self.axis1, self.axis2).copy()

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        if len(data.shape) == 1:
            return (apply(Diag(self.k), g),)
        return (apply(DiagBackward(self.k, self.axis1, self.axis2, data.shape), g),)


@register("_backward_diag")
class DiagBackward(Op):
    """An array of zeros of `shape` with the data on a diagonal."""

    saves_inputs = False
    saves_outputs = False

    k: int
    axis1: int
    axis2: int
    shape: tuple[int, ...]

    def infer(self, data: Spec) -> Spec:
        wanted = Diag(self.k, self.axis1, self.axis2).infer(data.with_shape(self.shape))
        if data != wanted:
            raise ShapeError(f"{self.name}: data has shape {data.shape}, wants {wanted.shape}")
        return data.with_shape(self.shape)

    def kernel(self, xp: Any, data: Array) -> Array:
        whole = xp.zeros(self.shape, data.dtype)
        matrices = xp.moveaxis(whole, (self.axis1, self.axis2), (-2, -1))  # a view
        places = xp.arange(data.shape[-1])
        matrices[..., places - min(self.k, 0), places + max(self.k, 0)] = data
        return whole

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(Diag(self.k, self.axis1, self.axis2), g),)


def diag(data: T, k: int = 0, axis1: int = 0, axis2: int = 1, **how: Unpack[How]) -> T:
    """The diagonal `k` of a matrix, or of those along axis1 and axis2; of a vector, the matrix that has it on this diagonal.

    **Shapes** data (M, N) to (K,); (..., M, ..., N, ...) to (..., K); (K,) to (K + |k|, K + |k|). **Args** k: 0 is the main
    diagonal, positive ones are above it. **Raises** ShapeError if there is no such diagonal. **Gradient** `g` on the diagonal, or
    the diagonal of `g`. **Source** MXNet `diag`.
    """
    return apply(Diag(k, axis1, axis2), data, **how)
