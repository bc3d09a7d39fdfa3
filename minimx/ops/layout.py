"""The same numbers in another order: transpose, swapaxes, depth_to_space, space_to_depth.

The result is a copy, because the next kernel reads its numbers in order; `transposed` makes all of them, block by block where
that saves cache. Book: chapter 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, also_called, apply, register
from ..rules import normalize_axis, require_ndim
from .shape import as_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack

BLOCK = 64  # places along the last axis of the result that are copied at once, so that both sides stay in cache


def transposed(xp: Any, data: Array, axes: Shape, out: Array | None = None) -> Array:
    """A C-contiguous copy of `data` with its axes in the order `axes`.

    NumPy copies along the last axis of the result. If neighbours there are far apart in `data`, each of them costs a cache line
    of which the rest is evicted before its turn comes; so large arrays are copied in blocks of that axis.
    """
    view = data.transpose(axes)
    if out is None:
        out = xp.empty(view.shape, view.dtype)
    if xp is np and view.nbytes >= 1 << 18 and view.shape[-1] > BLOCK and view.strides[-1] >= 1024:
        for start in range(0, view.shape[-1], BLOCK):
            out[..., start : start + BLOCK] = view[..., start : start + BLOCK]
    else:
        out[...] = view
    return out


@register("transpose")
class Transpose(Op):
    saves_inputs = False
    saves_outputs = False
    takes_out = True

    axes: tuple[int, ...] = ()

    def order(self, ndim: int) -> Shape:
        """The source of each axis of the result."""
        if not self.axes:
            return tuple(range(ndim))[::-1]
        axes = tuple(normalize_axis(self, axis, ndim) for axis in self.axes)
        if sorted(axes) != list(range(ndim)):
            raise ShapeError(f"{self.name}: axes {self.axes} do not name each of the {ndim} axes of data once")
        return axes

    def infer(self, data: Spec) -> Spec:
        return data.with_shape([data.shape[axis] for axis in self.order(data.ndim)])

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return transposed(xp, data, self.order(data.ndim), out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        order = self.order(len(data.shape))
        return (apply(Transpose(tuple(order.index(axis) for axis in range(len(order)))), g),)


def transpose(data: T, axes: Sequence[int] | None = (), **how: Unpack[How]) -> T:
    """The axes in another order: axis i of the result is axis `axes[i]` of data; reversed without `axes`.

    **Returns** a copy. **Raises** ShapeError if `axes` is no permutation. **Gradient** `g` with the axes put back. **Source**
    MXNet `transpose`.
    """
    return apply(Transpose(as_shape(axes)), data, **how)


@register("SwapAxis", "swapaxes")
class AxisSwap(Op):
    saves_inputs = False
    saves_outputs = False
    takes_out = True

    dim1: int = 0
    dim2: int = 0

    def order(self, ndim: int) -> Shape:
        axes = list(range(ndim))
        first, second = (normalize_axis(self, dim, ndim, what) for dim, what in ((self.dim1, "dim1"), (self.dim2, "dim2")))
        axes[first], axes[second] = second, first
        return tuple(axes)

    def infer(self, data: Spec) -> Spec:
        return data.with_shape([data.shape[axis] for axis in self.order(data.ndim)])

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return transposed(xp, data, self.order(data.ndim), out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(self, g),)


def swapaxes(data: T, dim1: int = 0, dim2: int = 0, **how: Unpack[How]) -> T:
    """Two axes change places.

    **Returns** a copy. **Gradient** `g` with the axes put back. **Source** MXNet `SwapAxis`.
    """
    return apply(AxisSwap(dim1, dim2), data, **how)


SwapAxis = also_called("SwapAxis", swapaxes)


class Blocks(Op):
    """Moves blocks of pixels between the depth of an image and its height and width: data (N, C, H, W)."""

    saves_inputs = False
    saves_outputs = False

    block_size: int

    def check(self, data: Spec) -> int:
        require_ndim(self, "data", data, 4, axes=("batch", "channels", "height", "width"))
        if self.block_size < 1:
            raise ArgumentError(f"{self.name}: block_size is {self.block_size}, wants a positive number")
        if 0 in data.shape:
            raise ShapeError(f"{self.name}: data has shape {data.shape}, which has no pixels")
        return self.block_size


@register("depth_to_space")
class DepthToSpace(Blocks):
    block_size: int

    def infer(self, data: Spec) -> Spec:
        block = self.check(data)
        examples, depth, height, width = data.shape
        if depth % block**2:
            raise ShapeError(f"{self.name}: data has {depth} channels, wants a multiple of block_size ** 2 = {block**2}")
        return data.with_shape((examples, depth // block**2, height * block, width * block))

    def kernel(self, xp: Any, data: Array) -> Array:
        block = self.block_size
        examples, depth, height, width = data.shape
        apart = data.reshape(examples, block, block, depth // block**2, height, width)
        return transposed(xp, apart, (0, 3, 4, 1, 5, 2)).reshape(examples, depth // block**2, height * block, width * block)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(SpaceToDepth(self.block_size), g),)


@register("space_to_depth")
class SpaceToDepth(Blocks):
    block_size: int

    def infer(self, data: Spec) -> Spec:
        block = self.check(data)
        examples, depth, height, width = data.shape
        if height % block or width % block:
            raise ShapeError(f"{self.name}: data has height {height} and width {width}, wants multiples of block_size = {block}")
        return data.with_shape((examples, depth * block**2, height // block, width // block))

    def kernel(self, xp: Any, data: Array) -> Array:
        block = self.block_size
        examples, depth, height, width = data.shape
        apart = data.reshape(examples, depth, height // block, block, width // block, block)
        return transposed(xp, apart, (0, 3, 5, 1, 2, 4)).reshape(examples, depth * block**2, height // block, width // block)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(DepthToSpace(self.block_size), g),)


def depth_to_space(data: T, block_size: int, **how: Unpack[How]) -> T:
    """Channels become pixels: each pixel turns into a block of `block_size` by `block_size`.

    **Shapes** data (N, C b b, H, W), result (N, C, H b, W b). **Gradient** `space_to_depth(g)`. **Source** MXNet
    `depth_to_space`.
    """
    return apply(DepthToSpace(block_size), data, **how)


def space_to_depth(data: T, block_size: int, **how: Unpack[How]) -> T:
    """Pixels become channels: each block of `block_size` by `block_size` turns into one pixel.

    **Shapes** data (N, C, H b, W b), result (N, C b b, H, W). **Gradient** `depth_to_space(g)`. **Source** MXNet
    `space_to_depth`.
    """
    return apply(SpaceToDepth(block_size), data, **how)
