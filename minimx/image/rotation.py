"""Turning images by any angle: each pixel of the result is read, bilinearly, where the rotation takes it from.

Images are (C, H, W) here, and may be batches (N, C, H, W), each image with an angle of its own. The reading is BilinearSampler's
(ops/warp.py), so that gradients flow to the images.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from ..base import ArgumentError, DTypeError, ShapeError, shown
from ..nd import NDArray, array
from ..ops.warp import BilinearSampler

__all__ = ["imrotate", "random_rotate"]

Numbers = np.ndarray[Any, np.dtype[np.float32]]


def imrotate(src: NDArray, rotation_degrees: float | NDArray, zoom_in: bool = False, zoom_out: bool = False) -> NDArray:
    """An image turned counterclockwise around its middle; what comes from beyond its edges is 0.

    **Shapes** src and result `(C, H, W)` or `(N, C, H, W)`. **Args** `rotation_degrees`: a number, or of a batch a number for each image,
    `(N,)`. `zoom_in`: enlarge, so that nothing from beyond the edges shows. `zoom_out`: shrink, so that the whole image shows. **Raises**
    ValueError, TypeError for shapes, dtypes and angles that do not fit. **Gradient** to src. **Source** MXNet `image.imrotate`.
    """
    if zoom_in and zoom_out:
        raise ArgumentError("imrotate: zoom_in and zoom_out exclude each other; choose one")
    if not isinstance(src, NDArray):
        raise ArgumentError(f"imrotate: src must be an NDArray, got {shown(src)}")
    if src.dtype != np.float32:
        raise DTypeError(f"imrotate: the image has dtype {np.dtype(src.dtype).name}; use astype('float32')")
    if src.ndim not in (3, 4):
        raise ShapeError(f"imrotate: the image has shape {src.shape}; (C, H, W) or (N, C, H, W) is wanted")
    if src.ndim == 3 and not isinstance(rotation_degrees, Real):
        raise ArgumentError(f"imrotate: of one image the angle is a number, got {shown(rotation_degrees)}")
    images = src.expand_dims(axis=0) if src.ndim == 3 else src
    height, width = src.shape[-2:]
    grid = _grid(_radians(rotation_degrees, len(images)), height, width, zoom_in, zoom_out)
    turned = BilinearSampler(images, array(grid, ctx=src.context))
    return turned[0] if src.ndim == 3 else turned


def _radians(degrees: Any, count: int) -> Numbers:
    """The angle of each of `count` images."""
    if isinstance(degrees, Real):
        return np.full(count, np.pi * degrees / 180, np.float32)  # type: ignore[operator]  # real numbers are multiplied as floats are
    values = degrees.asnumpy() if isinstance(degrees, NDArray) else degrees
    if not isinstance(values, np.ndarray) or values.shape != (count,):
        shape = f" of shape {values.shape}" if hasattr(values, "shape") else ""
        raise ShapeError(
            f"imrotate: the angles are {shown(degrees)}{shape}; {count} images take a number, or an array of shape ({count},)"
        )
    return (np.pi * values / 180).astype(np.float32)


def _grid(angles: Numbers, height: int, width: int, zoom_in: bool, zoom_out: bool) -> Numbers:
    """Where each pixel comes from, (N, 2, H, W): x and y, from -1 to 1 inside the image."""
    half_height, half_width = (height - 1) / 2, (width - 1) / 2
    y = (np.arange(height, dtype=np.float32) - half_height)[:, None]
    x = (np.arange(width, dtype=np.float32) - half_width)[None, :]
    cosine, sine = np.cos(angles)[:, None, None], np.sin(angles)[:, None, None]
    # Scaled after the rotation, so that the sides keep their ratio. A side of one pixel has no extent to scale.
    grid = np.stack([(x * cosine - y * sine) / (half_width or 1), (x * sine + y * cosine) / (half_height or 1)], axis=1)
    if zoom_in or zoom_out:
        grid *= _zoom(angles, height, width, zoom_in)[:, None, None, None]
    return grid.astype(np.float32, copy=False)


def _zoom(angles: Numbers, height: int, width: int, zoom_in: bool) -> Numbers:
    """By how much the turned image's frame exceeds the old one, or the old one that."""
    diagonal, corner = np.hypot(height, width), np.arctan2(height, width)
    corners = corner + np.abs(angles), corner - np.abs(angles)
    widest = diagonal * np.max([np.abs(np.cos(each)) for each in corners], axis=0)
    highest = diagonal * np.max([np.abs(np.sin(each)) for each in corners], axis=0)
    return np.minimum(width / widest, height / highest) if zoom_in else np.maximum(widest / width, highest / height)


def random_rotate(src: NDArray, angle_limits: tuple[float, float], zoom_in: bool = False, zoom_out: bool = False) -> NDArray:
    """An image turned by a random angle, each image of a batch by its own.

    **Args** `angle_limits`: lower and upper bound, in degrees; drawn from NumPy's global generator. The others are those of `imrotate`.
    **Source** MXNet `image.random_rotate`.
    """
    if not isinstance(angle_limits, (tuple, list)) or len(angle_limits) != 2:
        raise ArgumentError(f"random_rotate: angle_limits is {shown(angle_limits)}; (lower, upper), in degrees, is wanted")
    if isinstance(src, NDArray) and src.ndim == 4:
        return imrotate(src, array(np.random.uniform(*angle_limits, size=len(src))), zoom_in, zoom_out)
    return imrotate(src, np.random.uniform(*angle_limits), zoom_in, zoom_out)
