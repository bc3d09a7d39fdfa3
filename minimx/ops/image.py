"""Images as arrays: tensors of them, parts of them, other sizes, mirrors, frames. What changes their colours is in image_color.py.

An *image* is an array (H, W, C) of bytes, rows from the top, with channels last as image files have them; a *tensor* is (C, H, W), of
float32 in [0, 1], as convolutions want it. `to_tensor` makes one of the other. Where a batch is taken too, it is (N, H, W, C), and all
its images are treated alike; what draws random numbers takes one image, so that each gets numbers of its own.

The functions are in the namespaces `nd.image` and `sym.image`; gluon.data.vision.transforms makes blocks of them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, DTypeError, MXNetError, ShapeError, shown
from ..op import Array, How, Op, Shape, Spec, T, apply, attributes, called, register
from ..rules import require_ndim
from .checks import on_all_cores
from .resampling import check_request, resample
from .slicing import Selection, Slices, copied

if TYPE_CHECKING:
    from typing_extensions import Unpack

IMAGE, TENSOR = ("height", "width", "channels"), ("channels", "height", "width")
SINGLE = np.dtype(np.float32)
LARGE = 1 << 15  # numbers in an image that it takes a tenth of a millisecond to resize


def require_image(op: Op, data: Spec, *ndims: int) -> None:
    """Raise RankError unless data is an image; with `ndims` (3, 4), an image or a batch of them."""
    allowed = ndims or (3,)
    require_ndim(op, "data", data, *allowed, axes=("batch", *IMAGE) if 4 in allowed else IMAGE)


def truncated(values: Array, dtype: np.dtype[Any]) -> Array:
    """Floating `values` in `dtype`, as C++ casts them: integers are cut towards zero, and here also kept inside their range."""
    if dtype.kind == "f":
        return values.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    return values.clip(limits.min, limits.max, out=values).astype(dtype)


# ---- tensors


@register("_image_to_tensor")
class ToTensor(Op):
    saves_inputs = False
    saves_outputs = False

    def infer(self, data: Spec) -> Spec:
        require_image(self, data, 3, 4)
        height, width, channels = data.shape[-3:]
        return Spec.of((*data.shape[:-3], channels, height, width), SINGLE)

    def kernel(self, xp: Any, data: Array) -> Array:
        axes = (2, 0, 1) if data.ndim == 3 else (0, 3, 1, 2)
        planes = xp.ascontiguousarray(data.transpose(axes))  # before they grow to float32
        scaled = planes.astype(SINGLE if data.dtype.itemsize <= 4 else np.float64)
        scaled /= 255
        return scaled.astype(SINGLE, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        if np.dtype(data.dtype).kind != "f":
            return (None,)
        axes = (1, 2, 0) if len(data.shape) == 3 else (0, 2, 3, 1)
        return ((g.transpose(axes) / 255).astype(data.dtype),)


def to_tensor(data: T, **how: Unpack[How]) -> T:
    """An image as a tensor: channels first, and values of [0, 255] scaled to [0, 1].

    **Shapes** data (H, W, C) or (N, H, W, C) of any dtype, result (C, H, W) or (N, C, H, W) of float32. **Gradient** g, turned back and
    scaled likewise (MXNet has none). **Source** MXNet `image.to_tensor`.
    """
    return apply(ToTensor(), data, **how)


@register("_image_normalize")
class Normalize(Op):
    saves_inputs = False
    saves_outputs = False
    takes_out = True

    mean: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)

    def infer(self, data: Spec) -> Spec:
        require_ndim(self, "data", data, 3, 4, axes=("batch", *TENSOR))
        if data.dtype.kind != "f":
            raise DTypeError(
                f"{self.name}: data is {data.dtype.name}, wants a floating dtype; call to_tensor first, or astype('float32')"
            )
        channels = data.shape[-3]
        if channels not in (1, 3):
            raise ShapeError(
                f"{self.name}: data has shape {data.shape}, wants 1 or 3 channels on axis {data.ndim - 3}; "
                "to_tensor makes a tensor with channels first of an image"
            )
        for name, values, default in (("mean", self.mean, type(self).mean), ("std", self.std, type(self).std)):
            if len(values) not in (1, channels) and values != default:
                raise ShapeError(
                    f"{self.name}: {name} has {len(values)} values, data of shape {data.shape} needs 1 or {channels}"
                )
        return data

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        working = np.result_type(data.dtype, SINGLE)
        mean, std = (xp.asarray(column(values, working, data.shape[-3])) for values in (self.mean, self.std))
        target = out if out is not None and out.dtype == working else None
        values = xp.subtract(data, mean, out=target, dtype=working)
        xp.true_divide(values, std, out=values)
        if values is out:
            return out
        return values.astype(data.dtype, copy=False) if out is None else copied(values, out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(Normalize((0.0,), self.std), g),)


@functools.lru_cache(maxsize=64)
def column(values: tuple[float, ...], dtype: np.dtype[Any], channels: int) -> Array:
    """A number for each channel, or one for all, to be combined with a tensor by broadcasting."""
    return np.array(values[:channels] if len(values) > 1 else values, dtype).reshape(-1, 1, 1)


def normalize(
    data: T, mean: float | Sequence[float] | None = None, std: float | Sequence[float] | None = None, **how: Unpack[How]
) -> T:
    """`(data - mean) / std`, channel by channel.

    **Shapes** data and result (C, H, W) or (N, C, H, W), C 1 or 3, floating. **Args** a number, or one for each channel; 0 and 1 if left
    out. **Gradient** `g / std`. **Source** MXNet `image.normalize`.
    """
    given = {name: value for name, value in (("mean", mean), ("std", std)) if value is not None}
    return apply(Normalize(**given), data, **how)  # type: ignore[arg-type]  # the operator makes tuples of them


# ---- parts and sizes


@register("_image_crop")
class Crop(Selection):
    x: int
    y: int
    width: int
    height: int

    def select(self, shape: Shape, *like: Shape) -> tuple[Slices, Shape]:
        require_image(self, Spec.of(shape, SINGLE), 3, 4)
        for start, name, length, called_, axis in (
            (self.y, "y", self.height, "height", -3),
            (self.x, "x", self.width, "width", -2),
        ):
            if start < 0 or length < 1 or start + length > shape[axis]:
                raise ArgumentError(
                    f"{self.name}: {name}={start} and {called_}={length} must select a part of data of shape {shape}, "
                    f"whose {called_} is {shape[axis]}"
                )
        rows, columns = slice(self.y, self.y + self.height, 1), slice(self.x, self.x + self.width, 1)
        whole = slice(0, shape[0], 1)
        slices = (*([whole] if len(shape) == 4 else []), rows, columns, slice(0, shape[-1], 1))
        return slices, (*shape[:-3], self.height, self.width, shape[-1])


def crop(data: T, x: int, y: int, width: int, height: int, **how: Unpack[How]) -> T:
    """The part of an image whose left upper corner is at column `x` of row `y`.

    **Shapes** data (H, W, C) or (N, H, W, C), result with `height` and `width` in the place of H and W. **Raises** ArgumentError if the
    part is not inside the image. **Gradient** zeros around g. **Source** MXNet `image.crop`.
    """
    return apply(Crop(x, y, width, height), data, **how)


class Resampled(Op):
    """The image in another size."""

    saves_inputs = False
    saves_outputs = False

    def target(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the result."""
        raise NotImplementedError

    def method(self) -> int:
        raise NotImplementedError

    def infer(self, data: Spec) -> Spec:
        require_image(self, data, 3, 4)
        height, width, channels = data.shape[-3:]
        new = self.target(height, width)
        check_request((height, width, channels), *new, self.method())
        return data.with_shape((*data.shape[:-3], *new, channels))

    def kernel(self, xp: Any, data: Array) -> Array:
        if xp is not np:  # what is resized comes from files, and a GPU would have to wait for it anyway
            return xp.asarray(self.kernel(np, xp.asnumpy(data)))
        height, width = self.target(*data.shape[-3:-1])
        if data.ndim == 3:
            return resample(data, height, width, self.method())
        result = np.empty((len(data), height, width, data.shape[-1]), data.dtype)

        def resample_some(images: list[int]) -> None:
            for number in images:
                result[number] = resample(data[number], height, width, self.method())

        large = result[:1].size >= LARGE or data[:1].size >= LARGE
        if large:
            on_all_cores(xp, list(range(len(data))), resample_some)
        else:
            resample_some(list(range(len(data))))
        return result

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        raise MXNetError(f"{self.name} has no gradient, in MXNet neither; resize images before they enter the computation")


@register("_image_resize")
class Resize(Resampled):
    size: tuple[int, ...] = ()
    keep_ratio: bool = False
    interp: int = 1

    def target(self, height: int, width: int) -> tuple[int, int]:
        if len(self.size) not in (1, 2) or min(self.size) < 1:
            raise ArgumentError(f"{self.name}: size is {shown(self.size)}, wants an int or (width, height), each at least 1")
        if len(self.size) == 2:
            return self.size[1], self.size[0]
        (size,) = self.size
        if not self.keep_ratio or not height or not width:
            return size, size
        return (height * size // width, size) if height > width else (size, width * size // height)

    def method(self) -> int:
        return self.interp


def resize(data: T, size: int | Sequence[int], keep_ratio: bool = False, interp: int = 1, **how: Unpack[How]) -> T:
    """An image in another size.

    **Shapes** data (H, W, C) or (N, H, W, C), result with the new lengths in the place of H and W. **Args** size: (width, height), or an
    int for both; with `keep_ratio` the int is for the shorter side, and the other follows. interp: 0 nearest, 1 bilinear, 2 cubic,
    3 area, 4 Lanczos, 9 by the sizes (resampling.py). **Gradient** none. **Source** MXNet `image.resize`.
    """
    return apply(Resize(size, keep_ratio, interp), data, **how)  # type: ignore[arg-type]  # the operator makes a tuple of it


@register("_cvimresize")
class ImageResize(Resampled):
    inputs: ClassVar[tuple[str, ...]] = ("src",)

    w: int
    h: int
    interp: int = 1

    def target(self, height: int, width: int) -> tuple[int, int]:
        return self.h, self.w

    def method(self) -> int:
        return self.interp


def imresize(src: T, w: int, h: int, interp: int = 1, **how: Unpack[How]) -> T:
    """An image in another size, as `resize`.

    **Shapes** src (H, W, C), result (h, w, C). **Gradient** none. **Source** MXNet `image.imresize`.
    """
    return apply(ImageResize(w, h, interp), src, **how)


# ---- mirrors


@attributes
class Mirror(Op):
    """The image with its columns (axis 1) or its rows (axis 0) in reverse order."""

    saves_inputs = False
    saves_outputs = False
    takes_out = True
    axis: ClassVar[int]

    def infer(self, data: Spec) -> Spec:
        require_image(self, data, 3, 4)
        return data

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return mirrored(xp, data, self.axis, out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(self, g),)


def mirrored(xp: Any, data: Array, axis: int, out: Array | None) -> Array:
    """A copy of an image, or of a batch of them, in reverse order along `axis` of an image, in `out` if that is given."""
    if axis == 0 or xp is not np or not data.size:
        return copied(xp.flip(data, axis - 3), out)
    result = np.empty_like(data) if out is None else out
    pixel = f"V{data.shape[-1] * data.itemsize}"  # a pixel moves as a whole: twice as fast
    np.ndarray(data.shape[:-1], pixel, result)[...] = np.ndarray(data.shape[:-1], pixel, data)[..., ::-1]
    return result


@register("_image_flip_left_right")
class FlipLeftRight(Mirror):
    axis = 1


@register("_image_flip_top_bottom")
class FlipTopBottom(Mirror):
    axis = 0


@attributes
class RandomMirror(Mirror):
    """The same for one of two images; the others stay."""

    needs_key = True

    def infer(self, data: Spec) -> Spec:
        require_image(self, data)
        return data

    def kernel(self, xp: Any, data: Array, out: Array | None = None, *, key: Any = None) -> Array:
        return mirrored(xp, data, self.axis, out) if key.generator(xp).random() < 0.5 else copied(data, out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        turn = "flip_left_right" if self.axis else "flip_top_bottom"
        raise MXNetError(f"{self.name} has no gradient, for what was drawn is not kept; flip with nd.image.{turn}, which has one")


@register("_image_random_flip_left_right")
class RandomFlipLeftRight(RandomMirror):
    axis = 1


@register("_image_random_flip_top_bottom")
class RandomFlipTopBottom(RandomMirror):
    axis = 0


def flip_left_right(data: T, **how: Unpack[How]) -> T:
    """An image as in a mirror: its columns in reverse order.

    **Shapes** data and result (H, W, C) or (N, H, W, C). **Gradient** g, flipped back. **Source** MXNet `image.flip_left_right`, whose
    gradient is g as it is.
    """
    return apply(FlipLeftRight(), data, **how)


def flip_top_bottom(data: T, **how: Unpack[How]) -> T:
    """An image upside down: its rows in reverse order.

    **Shapes** data and result (H, W, C) or (N, H, W, C). **Gradient** g, flipped back. **Source** MXNet `image.flip_top_bottom`, whose
    gradient is g as it is.
    """
    return apply(FlipTopBottom(), data, **how)


def random_flip_left_right(data: T, **how: Unpack[How]) -> T:
    """With probability 1/2 the image with its columns in reverse order, else as it is.

    **Shapes** data and result (H, W, C). **Gradient** none. **Source** MXNet `image.random_flip_left_right`.
    """
    return apply(RandomFlipLeftRight(), data, **how)


def random_flip_top_bottom(data: T, **how: Unpack[How]) -> T:
    """With probability 1/2 the image with its rows in reverse order, else as it is.

    **Shapes** data and result (H, W, C). **Gradient** none. **Source** MXNet `image.random_flip_top_bottom`.
    """
    return apply(RandomFlipTopBottom(), data, **how)


# ---- frames

BORDERS = ("constant", "edge", "symmetric", "wrap", "reflect")  # OpenCV's kinds of border, by its numbers, as NumPy calls them


@register("_cvcopyMakeBorder")
class MakeBorder(Op):
    inputs: ClassVar[tuple[str, ...]] = ("src",)
    saves_inputs = False
    saves_outputs = False

    top: int
    bot: int
    left: int
    right: int
    kind_of_border: int = called("type", default=0)
    value: float = 0.0
    color: tuple[float, ...] = called("values", default=())  # a name that the code of `fields` has for itself

    def infer(self, src: Spec) -> Spec:
        require_image(self, src)
        margins = (self.top, self.bot, self.left, self.right)
        if min(margins) < 0:
            raise ArgumentError(f"{self.name}: top, bot, left, right are {shown(margins)}; none may be negative")
        if not 0 <= self.kind_of_border < len(BORDERS):
            kinds = ", ".join(f"{number} {name}" for number, name in enumerate(BORDERS))
            raise ArgumentError(f"{self.name}: type is {self.kind_of_border}; choose one of {kinds}")
        if self.color and len(self.color) < src.shape[-1]:
            raise ArgumentError(
                f"{self.name}: values has {len(self.color)} numbers, an image of shape {src.shape} needs {src.shape[-1]}"
            )
        height, width, channels = src.shape
        if not src.size and self.kind_of_border:
            raise ShapeError(f"{self.name}: src has shape {src.shape}, which has no pixels to repeat")
        return src.with_shape((height + self.top + self.bot, width + self.left + self.right, channels))

    def kernel(self, xp: Any, src: Array) -> Array:
        margins = ((self.top, self.bot), (self.left, self.right), (0, 0))
        if self.kind_of_border:
            return xp.pad(src, margins, mode=BORDERS[self.kind_of_border])
        height, width, channels = src.shape
        framed = xp.empty((height + self.top + self.bot, width + self.left + self.right, channels), src.dtype)
        filling = xp.asarray(self.color[:channels] or [self.value] * channels, np.float64)
        framed[...] = truncated(xp.rint(filling) if src.dtype.kind != "f" else filling, src.dtype)
        framed[self.top : self.top + height, self.left : self.left + width] = src
        return framed


def copyMakeBorder(
    src: T,
    top: int,
    bot: int,
    left: int,
    right: int,
    type: int = 0,
    value: float = 0.0,
    values: Sequence[float] = (),
    **how: Unpack[How],
) -> T:
    """An image with a frame around it.

    **Shapes** src (H, W, C), result (H + top + bot, W + left + right, C). **Args** the margins in pixels. type: 0 one color, 1 the pixel
    at the edge, 2 and 4 the image mirrored, with or without the edge itself, 3 the image again. values: the color, a number for each
    channel; value: one number for all. **Gradient** none. **Source** MXNet `image.copyMakeBorder`.
    """
    return apply(MakeBorder(top, bot, left, right, type, value, values), src, **how)  # type: ignore[arg-type]  # it makes a tuple of values


__all__ = [
    "copyMakeBorder", "crop", "flip_left_right", "flip_top_bottom", "imresize", "normalize", "random_flip_left_right",
    "random_flip_top_bottom", "resize", "to_tensor",
]  # fmt: skip
