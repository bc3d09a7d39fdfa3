"""Sizes and parts of images: resizing, cropping, framing.

Each public function takes and returns arrays; beside it stands what it does to pixels, which augmenters call too. Random numbers come from
Python's `random`, drawn as MXNet draws them: after `random.seed(n)` the same part is cut out. Sizes are (width, height) here, shapes
(height, width, channels). How pixels are resampled is in ops/resampling.py.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import ArgumentError, ShapeError, shown
from ..fields import converted
from ..nd import NDArray
from ..ops.image import copyMakeBorder
from ..ops.resampling import resample
from .arrays import ImageError, Pixels, context_of, delivered, pixels_of

__all__ = [
    "center_crop", "copyMakeBorder", "fixed_crop", "imresize", "random_crop", "random_size_crop", "resize_short", "scale_down",
]  # fmt: skip

Size = tuple[int, int]
Rectangle = tuple[int, int, int, int]  # x, y, width, height
RANDOM_METHOD = 10


def as_size(name: str, size: Any) -> Size:
    """A size (width, height) as two ints. Raises ArgumentError."""
    numbers = converted(name, "size", "tuple[int, ...]", size)
    if len(numbers) != 2:
        raise ArgumentError(f"{name}: size is {shown(size)}; (width, height) is wanted")
    return numbers


def as_range(name: str, what: str, bounds: Any) -> tuple[float, float]:
    """A pair of bounds, or one number for both ends up to 1. Raises ArgumentError."""
    numbers = converted(name, what, "tuple[float, ...]", bounds)
    low, high = (*numbers, 1.0) if len(numbers) == 1 else numbers if len(numbers) == 2 else (1.0, 0.0)
    if not 0 < low <= high:
        raise ArgumentError(f"{name}: {what} is {shown(bounds)}; a lower and an upper bound are wanted, both more than 0")
    return low, high


# ---- other sizes


def resized(pixels: Pixels, width: int, height: int, interp: int) -> Pixels:
    """`pixels` in another size. The method 10 is one of the methods 0 to 4, drawn at random."""
    return resample(pixels, height, width, random.randint(0, 4) if interp == RANDOM_METHOD else interp)


def imresize(src: NDArray, w: int, h: int, interp: int = 1, out: NDArray | None = None) -> NDArray:
    """An image in another size.

    **Shapes** src `(H, W, C)`, result `(h, w, C)` of the same dtype. **Args** `w`, `h`: pixels, at least 1. `interp`: 0 nearest pixel,
    1 bilinear, 2 cubic, 3 area (the mean of what a pixel covers), 4 Lanczos, 9 cubic to enlarge and area to shrink, 10 one of the first
    five at random. `out`: an array to write into. **Raises** ArgumentError, ShapeError. **Source** MXNet `image.imresize`, which is
    OpenCV's `resize`.
    """
    width, height, method = (
        converted("imresize", name, "int", value) for name, value in (("w", w), ("h", h), ("interp", interp))
    )
    return delivered(resized(pixels_of("imresize", src), width, height, method), context_of(src), out, "imresize")


def shorter_resized(pixels: Pixels, size: int, interp: int) -> Pixels:
    height, width, _ = pixels.shape
    if height > width:
        return resized(pixels, size, size * height // width, interp)
    return resized(pixels, size * width // height, size, interp)


def resize_short(src: NDArray, size: int, interp: int = 2) -> NDArray:
    """An image whose shorter side has `size` pixels, and whose longer side follows.

    **Args** `interp`: as of `imresize`. **Raises** ArgumentError, ShapeError. **Source** MXNet `image.resize_short`.

    >>> resize_short(nd.zeros((30, 40, 3)), 15).shape
    (15, 20, 3)
    """
    size, interp = converted("resize_short", "size", "int", size), converted("resize_short", "interp", "int", interp)
    return delivered(shorter_resized(pixels_of("resize_short", src), size, interp), context_of(src))


def scale_down(src_size: Sequence[int], size: Sequence[int]) -> Size:
    """The largest size with the ratio of `size` that is not larger than it, nor than `src_size`; all (width, height).
    **Source** MXNet `image.scale_down`.

    >>> scale_down((640, 480), (720, 120))
    (640, 106)
    """
    width, height = size
    most_width, most_height = src_size
    if most_height < height:
        width, height = width * most_height / height, most_height  # type: ignore[assignment]  # cut to a whole number at the end
    if most_width < width:
        width, height = most_width, height * most_width / width  # type: ignore[assignment]
    return int(width), int(height)


# ---- parts


def cropped(pixels: Pixels, rectangle: Rectangle, size: Size | None, interp: int, name: str = "fixed_crop") -> Pixels:
    """The part of `pixels` in `rectangle`, which ends at their edge at the latest; brought to `size`."""
    x, y, width, height = rectangle
    part = pixels[y : y + height, x : x + width] if min(x, y) >= 0 and min(width, height) > 0 else pixels[:0]
    if not part.size:
        raise ShapeError(
            f"{name}: a part of {width} x {height} pixels at ({x}, {y}) is not in an image of {pixels.shape[1]} x {pixels.shape[0]}"
        )
    return part if size is None or (width, height) == size else resized(part, *size, interp)


def fixed_crop(src: NDArray, x0: int, y0: int, w: int, h: int, size: Sequence[int] | None = None, interp: int = 2) -> NDArray:
    """The part of an image whose left upper corner is at column `x0` of row `y0`.

    **Args** `w`, `h`: its width and height in pixels. `size`: (width, height) to resize it to. `interp`: as of `imresize`. **Returns** a
    copy. **Raises** ShapeError if nothing of the part is in the image. **Source** MXNet `image.fixed_crop`.
    """
    rectangle = tuple(converted("fixed_crop", name, "int", value) for name, value in (("x0", x0), ("y0", y0), ("w", w), ("h", h)))
    wanted = None if size is None else as_size("fixed_crop", size)
    part = cropped(pixels_of("fixed_crop", src), rectangle, wanted, interp)
    return delivered(part, context_of(src))


def fitted(pixels: Pixels, size: Size) -> Size:
    """The size of a part of `pixels` with the ratio of `size`: as large as that, if possible."""
    width, height = scale_down((pixels.shape[1], pixels.shape[0]), size)
    return max(width, 1), max(height, 1)


def random_part(pixels: Pixels, size: Size, interp: int) -> tuple[Pixels, Rectangle]:
    width, height = fitted(pixels, size)
    x = random.randint(0, pixels.shape[1] - width)
    y = random.randint(0, pixels.shape[0] - height)
    return cropped(pixels, (x, y, width, height), size, interp), (x, y, width, height)


def random_crop(src: NDArray, size: Sequence[int], interp: int = 2) -> tuple[NDArray, Rectangle]:
    """A part of an image at a random place.

    **Args** `size`: (width, height) of the result; where the image is smaller, a part of the same ratio is enlarged. `interp`: as of
    `imresize`. **Returns** the part, and where it was: x, y, width, height. **Source** MXNet `image.random_crop`.
    """
    part, place = random_part(pixels_of("random_crop", src), as_size("random_crop", size), interp)
    return delivered(part, context_of(src)), place


def central_part(pixels: Pixels, size: Size, interp: int) -> tuple[Pixels, Rectangle]:
    width, height = fitted(pixels, size)
    x, y = (pixels.shape[1] - width) // 2, (pixels.shape[0] - height) // 2
    return cropped(pixels, (x, y, width, height), size, interp), (x, y, width, height)


def center_crop(src: NDArray, size: Sequence[int], interp: int = 2) -> tuple[NDArray, Rectangle]:
    """The middle of an image. Arguments and results are those of `random_crop`. **Source** MXNet `image.center_crop`.

    >>> part, place = center_crop(nd.zeros((30, 40, 3)), (20, 10))
    >>> part.shape, place
    ((10, 20, 3), (10, 10, 20, 10))
    """
    part, place = central_part(pixels_of("center_crop", src), as_size("center_crop", size), interp)
    return delivered(part, context_of(src)), place


def random_sized_part(
    pixels: Pixels, size: Size, area: tuple[float, float], ratio: tuple[float, float], interp: int
) -> tuple[Pixels, Rectangle]:
    """A part of random area and ratio, from ten attempts; then the middle."""
    height, width, _ = pixels.shape
    for _ in range(10):
        wanted = random.uniform(*area) * (height * width)
        shape = np.exp(
            random.uniform(np.log(ratio[0]), np.log(ratio[1]))
        )  # NumPy's logarithm: Python's may differ in the last bit
        part_width, part_height = round(np.sqrt(wanted * shape)), round(np.sqrt(wanted / shape))
        if 0 < part_width <= width and 0 < part_height <= height:
            x, y = random.randint(0, width - part_width), random.randint(0, height - part_height)
            place = (x, y, part_width, part_height)
            return cropped(pixels, place, size, interp), place
    return central_part(pixels, size, interp)


def random_size_crop(
    src: NDArray,
    size: Sequence[int],
    area: float | Sequence[float],
    ratio: Sequence[float],
    interp: int = 2,
    *,
    min_area: Any = None,
) -> tuple[NDArray, Rectangle]:
    """A part of an image with random place, area and ratio, brought to `size`.

    **Args** `size`: (width, height). `area`: lower and upper bound as fractions of the image's; one number is the lower. `ratio`: bounds of
    width / height. `interp`: as of `imresize`. `min_area`: the former name of `area`. **Returns** the part, and where it was: x, y, width,
    height; the middle of the image if ten attempts do not fit. **Source** MXNet `image.random_size_crop`.
    """
    bounds = as_range("random_size_crop", "area", renamed_area(area, min_area))
    ratios = as_range("random_size_crop", "ratio", ratio)
    pixels = pixels_of("random_size_crop", src)
    part, place = random_sized_part(pixels, as_size("random_size_crop", size), bounds, ratios, interp)
    return delivered(part, context_of(src)), place


def renamed_area(area: Any, min_area: Any) -> Any:
    """`area`, or `min_area` with a warning if that was given."""
    if min_area is None:
        return area
    warnings.warn("min_area is deprecated; write area", DeprecationWarning, stacklevel=3)
    return min_area


def require_together(condition: bool, message: str) -> None:
    """Raise ImageError, which is an AssertionError too, unless `condition`."""
    if not condition:
        raise ImageError(message)
