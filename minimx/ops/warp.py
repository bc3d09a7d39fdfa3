"""Images read at places that data says: GridGenerator, BilinearSampler, and both in one, SpatialTransformer.

A *grid* has, for each pixel of the result, the place in the image that it is read from: x along the rows and y along the columns, both
from -1, the first pixel, to 1, the last. Between pixels the sampler interpolates; beyond the image there are zeros. So a result is a sum
of the four pixels around its place, the *corners* of a cell of the image, each times a weight that depends on where in the cell the place
is. Corners are gathered by an operator of its own (`_corners`), and weights are written with public functions, so that gradients of all
orders follow from those. Jaderberg et al., 2015.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, attributes, is_constant, register
from ..rules import require_ndim, same_dtype
from .binary import broadcast_mul
from .checks import accurate, on_all_cores, require_choice, require_float, require_shape
from .indexing import add_rows
from .joining import concat
from .shape import as_shape
from .windows import axes_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

SHARED = 1 << 17  # pixels to read, from which on all cores share in it


# ---- grids


def coordinates(xp: Any, size: Shape, dtype: Any) -> Array:
    """The places (3, H W) of all pixels of an image: x, y, and 1, with which a matrix can shift them."""
    y, x = (xp.linspace(-1, 1, length) for length in size)
    return xp.stack([xp.tile(x, size[0]), xp.repeat(y, size[1]), xp.ones(size[0] * size[1])]).astype(dtype)


def half_lengths(xp: Any, size: Shape, dtype: Any) -> Array:
    """(2, 1, 1): how many pixels a step of 1 in a grid is, along x and along y."""
    height, width = size
    return xp.array([(width - 1) / 2, (height - 1) / 2], dtype).reshape(2, 1, 1)


@attributes
class GridTransform(Op):
    """What GridGenerator and its gradient share: the attributes, and the size of the grid."""

    saves_inputs: ClassVar = False
    saves_outputs: ClassVar = False

    transform_type: str
    target_shape: tuple[int, ...] = (0, 0)

    def check_size(self, size: Shape, what: str) -> None:
        """Raise ArgumentError unless the grid has two lengths along which places from -1 to 1 can be."""
        if len(size) != 2 or min(size) < 2:
            raise ArgumentError(
                f"{self.name}: {what}={size}, wants a height and a width of 2 or more, as the first pixel is at -1, the last at 1"
            )


@register("GridGenerator")
class GridOfTransform(GridTransform):
    def infer(self, data: Spec) -> Spec:
        require_choice(self, "transform_type", self.transform_type, "affine", "warp")
        require_float(self, data)
        if self.transform_type == "warp":
            require_ndim(self, "data", data, 4, axes=axes_of(2))
            require_shape(
                self, "data", data, (data.shape[0], 2, *data.shape[2:]), "transform_type='warp', with x and y of a flow,"
            )
            self.check_size(data.shape[2:], "height and width of data")
            return data
        require_ndim(self, "data", data, 2, axes=("batch", "six numbers of an affine map"))
        require_shape(self, "data", data, (data.shape[0], 6), "transform_type='affine'")
        self.check_size(self.target_shape, "target_shape")
        return data.with_shape((data.shape[0], 2, *self.target_shape))

    def kernel(self, xp: Any, data: Array) -> Array:
        exact = accurate(xp, data)
        if self.transform_type == "affine":
            grid = exact.reshape(-1, 3) @ coordinates(xp, self.target_shape, exact.dtype)
            return grid.reshape(len(data), 2, *self.target_shape).astype(data.dtype, copy=False)
        height, width = data.shape[2:]
        pixels = xp.empty((2, height, width), exact.dtype)
        pixels[0], pixels[1] = xp.arange(width), xp.arange(height)[:, None]
        grid = exact + pixels
        grid /= half_lengths(xp, data.shape[2:], exact.dtype)
        grid -= 1
        return grid.astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(GridBackward(self.transform_type, self.target_shape), g),)


@register("_backward_GridGenerator")
class GridBackward(GridTransform):
    """From the gradient of the grid to that of the affine maps, or of the flow."""

    def infer(self, data: Spec) -> Spec:
        return data if self.transform_type == "warp" else data.with_shape((data.shape[0], 6))

    def kernel(self, xp: Any, data: Array) -> Array:
        exact = accurate(xp, data)
        if self.transform_type == "affine":
            pixels = coordinates(xp, self.target_shape, exact.dtype)
            result = exact.reshape(2 * len(data), pixels.shape[1]) @ pixels.T
            return result.reshape(len(data), 6).astype(data.dtype, copy=False)
        return (exact / half_lengths(xp, data.shape[2:], exact.dtype)).astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(self if self.transform_type == "warp" else GridOfTransform("affine", self.target_shape), g),)


def GridGenerator(data: T, transform_type: str, target_shape: int | Sequence[int] = (0, 0), **how: Unpack[How]) -> T:
    """A grid for BilinearSampler: from affine maps, or from a flow.

    **Shapes** for `transform_type="affine"` data (N, 6), result (N, 2, *target_shape): the matrices (2, 3) map the places (x, y, 1) of the
    result to those in the image. For "warp" data and result (N, 2, H, W): `data` says by how many pixels along x and y each place is
    shifted; `target_shape` is not looked at. **Raises** ArgumentError for a grid of only one row or column, of which MXNet makes NaN.
    **Gradient** of the maps: the sum over places of g times (x, y, 1); of the flow: g divided by half the lengths. **Source** MXNet
    `GridGenerator`.
    """
    return apply(GridOfTransform(transform_type, as_shape(target_shape)), data, **how)


# ---- cells and corners, on arrays


class Cells(NamedTuple):
    """Where the places of a grid are: for each, the numbers of four corners in its framed image, and how far from the first it is."""

    corners: tuple[Array, Array, Array, Array]  # (N, h w): top left, top right, bottom left, bottom right
    right: Array  # (N, h w): in [0, 1)
    down: Array


def cells(xp: Any, grid: Array, size: Shape) -> Cells:
    """The cells of images of `size` that the places of `grid` (N, 2, h, w) are in.

    A frame of zeros, one pixel wide, stands for all that is outside an image.
    """
    found, count = [], grid.shape[2] * grid.shape[3]
    for number, length in ((1, size[0]), (0, size[1])):
        place = (grid[:, number].reshape(len(grid), count) + 1) * grid.dtype.type((length - 1) / 2)
        low = xp.floor(place)
        inside = xp.clip(low, -2, length)  # beyond that it makes no difference; NaN is left to the weights
        whole = xp.where(inside == inside, inside, -2).astype(xp.intp)
        found.append((xp.maximum(whole, -1) + 1, xp.minimum(whole + 1, length) + 1, place - low))
    (top, bottom, down), (left, right, across) = found
    top, bottom = top * (size[1] + 2), bottom * (size[1] + 2)
    return Cells((top + left, top + right, bottom + left, bottom + right), across, down)


def framed(xp: Any, data: Array) -> Array:
    """Images (N, C, H, W) within frames of zeros, as (N, C, pixels)."""
    batch, channels, height, width = data.shape
    result = xp.zeros((batch, channels, height + 2, width + 2), data.dtype)
    result[:, :, 1:-1, 1:-1] = data
    return result.reshape(batch, channels, (height + 2) * (width + 2))


def each_example(xp: Any, shape: Shape, function: Any) -> None:
    """Call `function` with the number of each example of results of `shape`, on all cores if there is much to do."""

    def some(numbers: list[int]) -> None:
        for number in numbers:
            function(number)

    numbers = list(range(shape[0]))
    if shape[0] and shape[1] * shape[2] * shape[3] >= SHARED // 4 and shape[0] * shape[1] * shape[2] * shape[3] >= SHARED:
        on_all_cores(xp, numbers, some)
    else:
        some(numbers)


def check_sampling(op: Op, data: Spec, grid: Spec) -> Spec:
    """The spec of what is read from `data` at the places of `grid`. Raises ShapeError or DTypeError if they do not fit."""
    require_float(op, data)
    same_dtype(op, data, grid)
    require_ndim(op, "data", data, 4, axes=axes_of(2))
    require_ndim(op, "grid", grid, 4, axes=("batch", "x and y", "height", "width"))
    require_shape(op, "grid", grid, (data.shape[0], 2, *grid.shape[2:]), f"data of shape {data.shape}")
    if min(data.shape[2:]) < 1:
        raise ShapeError(f"{op.name}: data has shape {data.shape}; there are no pixels to read")
    return data.with_shape((*data.shape[:2], *grid.shape[2:]))


# ---- operators


@register("BilinearSampler")
class BilinearSampling(Op):
    inputs: ClassVar = ("data", "grid")
    saves_outputs: ClassVar = False

    cudnn_off: bool | None = None

    def infer(self, data: Spec, grid: Spec) -> Spec:
        return check_sampling(self, data, grid)

    def kernel(self, xp: Any, data: Array, grid: Array) -> Array:
        exact, where = accurate(xp, data), cells(xp, accurate(xp, grid), data.shape[2:])
        shape = (*data.shape[:2], *grid.shape[2:])
        images, result = framed(xp, exact), xp.empty(shape, exact.dtype)
        up, left = 1 - where.down, 1 - where.right
        shares = (up * left, up * where.right, where.down * left, where.down * where.right)

        def sample(number: int) -> None:
            total = result[number].reshape(shape[1], shape[2] * shape[3])
            total[...] = 0
            for corner, share in zip(where.corners, shares):
                total += images[number].take(corner[number], axis=1) * share[number]

        each_example(xp, shape, sample)
        return result.astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any, grid: Any) -> tuple[Any, ...]:
        to_data = None if is_constant(data) else gradient_of_images(g, data, grid)
        return to_data, None if is_constant(grid) else gradient_of_grid(g, data, grid)


def in_single(function: Callable[..., Any]) -> Callable[[Any, Any, Any], Any]:
    """`function` of tensors, in float32 where they are float16: else a place near a border would be in one cell here, in another there."""

    @functools.wraps(function)
    def computed(g: Any, data: Any, grid: Any) -> Any:
        if g.dtype != np.float16:
            return function(g, data, grid)
        return function(*(each.astype("float32") for each in (g, data, grid))).astype("float16")

    return computed


def within_cells(grid: Any, size: Shape) -> tuple[Any, ...]:
    """How far the places of `grid` are from the left, the right, the upper and the lower border of their cells: four times (N, 1, h, w)."""
    distances = []
    for number, length in enumerate(reversed(size)):
        place = (grid.slice_axis(axis=1, begin=number, end=number + 1) + 1) * ((length - 1) / 2)
        past = place - place.floor()
        distances += [past, 1 - past]
    return tuple(distances)


@in_single
def gradient_of_images(g: Any, data: Any, grid: Any) -> Any:
    """`g`, what was read at the places of `grid`, shared out to the pixels of `data`."""
    left, right, up, down = within_cells(grid, data.shape[2:])
    shares = concat(down * right, down * left, up * right, up * left, dim=1)
    parts = broadcast_mul(shares.expand_dims(axis=2), g.expand_dims(axis=1))
    return apply(CornersBackward(*data.shape[2:]), parts, grid)


@in_single
def gradient_of_grid(g: Any, data: Any, grid: Any) -> Any:
    """`g` times the slopes of the images at the places of `grid`."""
    height, width = data.shape[2:]
    left, right, up, down = within_cells(grid, (height, width))
    # What the loss gains from a larger weight of each corner, and how these grow along x and y.
    to_shares = broadcast_mul(apply(Corners(), data, grid), g.expand_dims(axis=1)).sum(axis=2)
    along_x = to_shares * concat(-down, down, -up, up, dim=1)
    along_y = to_shares * concat(-right, -left, right, left, dim=1)
    return concat(
        along_x.sum(axis=1, keepdims=True) * ((width - 1) / 2), along_y.sum(axis=1, keepdims=True) * ((height - 1) / 2), dim=1
    )


@register("_corners")
class Corners(Op):
    """The four pixels around each place: (N, 4, C, h, w). Between the borders of cells they do not depend on the grid."""

    inputs: ClassVar = ("data", "grid")
    saves_inputs = (1,)
    saves_outputs = False

    def infer(self, data: Spec, grid: Spec) -> Spec:
        spec = check_sampling(self, data, grid)
        return spec.with_shape((spec.shape[0], 4, *spec.shape[1:]))

    def kernel(self, xp: Any, data: Array, grid: Array) -> Array:
        images, where = framed(xp, data), cells(xp, accurate(xp, grid), data.shape[2:])
        shape = (*data.shape[:2], *grid.shape[2:])
        result = xp.empty((shape[0], 4, shape[1], shape[2] * shape[3]), data.dtype)

        def gather(number: int) -> None:
            for target, corner in zip(result[number], where.corners):
                target[...] = images[number].take(corner[number], axis=1)

        each_example(xp, shape, gather)
        return result.reshape(shape[0], 4, *shape[1:])

    def vjp(self, g: Any, y: Any, data: Any, grid: Any) -> tuple[Any, ...]:
        return apply(CornersBackward(*data.shape[2:]), g, grid), None


@register("_backward_corners")
class CornersBackward(Op):
    """What was read at the corners, added to the pixels of images of `height` and `width`: the transpose of Corners."""

    inputs: ClassVar = ("data", "grid")
    saves_inputs: ClassVar = (1,)
    saves_outputs: ClassVar = False

    height: int
    width: int

    def infer(self, data: Spec, grid: Spec) -> Spec:
        batch, _, channels = data.shape[:3]
        require_shape(self, "data", data, (batch, 4, channels, *grid.shape[2:]), f"grid of shape {grid.shape}")
        return data.with_shape((batch, channels, self.height, self.width))

    def kernel(self, xp: Any, data: Array, grid: Array) -> Array:
        size = (self.height, self.width)
        where = cells(xp, accurate(xp, grid), size)
        batch, _, channels = data.shape[:3]
        pixels = (size[0] + 2) * (size[1] + 2)
        places = xp.stack(where.corners, axis=1)  # (N, 4, h w)
        # An image at a time: its pixels are the rows of a table that has as many columns as there are channels.
        result = xp.empty((batch, channels, *size), data.dtype)
        for number in range(batch):
            rows = data[number].reshape(4, channels, places.shape[2]).transpose(0, 2, 1).reshape(4 * places.shape[2], channels)
            image = add_rows(xp, pixels, places[number], rows).reshape(size[0] + 2, size[1] + 2, channels)
            result[number] = image[1:-1, 1:-1].transpose(2, 0, 1)
        return result

    def vjp(self, g: Any, y: Any, data: Any, grid: Any) -> tuple[Any, ...]:
        return apply(Corners(), g, grid), None


def BilinearSampler(data: T, grid: T, cudnn_off: bool | None = None, **how: Unpack[How]) -> T:
    """Images read at the places of a grid, interpolated between the four pixels around each.

    **Shapes** data (N, C, H, W), grid (N, 2, h, w) with x and y from -1 to 1, result (N, C, h, w). Beyond the image there are zeros.
    **Args** `cudnn_off` changes nothing. **Gradient** of data: g shared out to the four pixels; of the grid: g times the slopes between
    them, times half the lengths. **Source** MXNet `BilinearSampler`.
    """
    return apply(BilinearSampling(cudnn_off), data, grid, **how)


@register("SpatialTransformer")
class SpatialTransform(Op):
    inputs: ClassVar = ("data", "loc")
    saves_outputs: ClassVar = False

    target_shape: tuple[int, ...] = (0, 0)
    transform_type: str = ""
    sampler_type: str = ""
    cudnn_off: bool | None = None

    @property
    def grid(self) -> GridOfTransform:
        return GridOfTransform("affine", self.target_shape)

    def infer(self, data: Spec, loc: Spec) -> Spec:
        require_choice(self, "transform_type", self.transform_type, "affine")
        require_choice(self, "sampler_type", self.sampler_type, "bilinear")
        same_dtype(self, data, loc)
        return check_sampling(self, data, self.grid.infer(loc))

    def kernel(self, xp: Any, data: Array, loc: Array) -> Array:
        # The grid in float32 at least: half of it would be too coarse for images of more than a few pixels.
        grid = self.grid.kernel(xp, accurate(xp, loc))
        return BilinearSampling().kernel(xp, accurate(xp, data), grid).astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any, loc: Any) -> tuple[Any, ...]:
        is_half = data.dtype == np.float16  # see `in_single`; here the grid, too, is made in float32
        head, images, maps = (each.astype("float32") if is_half else each for each in (g, data, loc))
        grid = apply(self.grid, maps)
        to_data = None if is_constant(data) else gradient_of_images(head, images, grid)
        to_loc = None if is_constant(loc) else self.grid.vjp(gradient_of_grid(head, images, grid), None, maps)[0]
        return tuple(each.astype("float16") if is_half and each is not None else each for each in (to_data, to_loc))


def SpatialTransformer(
    data: T,
    loc: T,
    target_shape: int | Sequence[int] = (0, 0),
    transform_type: str = "",
    sampler_type: str = "",
    cudnn_off: bool | None = None,
    **how: Unpack[How],
) -> T:
    """Images read through affine maps: `BilinearSampler(data, GridGenerator(loc, "affine", target_shape))`.

    **Shapes** data (N, C, H, W), loc (N, 6), result (N, C, *target_shape). **Args** `transform_type` must be "affine", `sampler_type`
    "bilinear"; `cudnn_off` changes nothing. **Gradient** that of the two. **Source** MXNet `SpatialTransformer`.
    """
    return apply(SpatialTransform(as_shape(target_shape), transform_type, sampler_type, cudnn_off), data, loc, **how)


__all__ = ["BilinearSampler", "GridGenerator", "SpatialTransformer"]
