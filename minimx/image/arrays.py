"""Between arrays and pixels: what is done to images here is done by NumPy, at once, in the thread that asks for it.

An image is an NDArray `(height, width, channels)`, as in MXNet. The operations on one are short; entering each into the engine would
take as long as some of them do. So every function takes the pixels out of the array (`pixels_of`), works on these, and makes an array of
the result (`delivered`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import ArgumentError, DTypeError, ShapeError, shown
from ..codec import Pixels
from ..device import Context, array_module, cpu
from ..engine.front import value_of
from ..nd import NDArray
from ..nd.entry import from_array

__all__ = ["Pixels", "delivered", "pixels_of", "require_floating"]


class ImageError(ArgumentError, AssertionError):
    """Arguments that do not fit together. (MXNet asserts some of it: hence the second base.)"""


def pixels_of(name: str, image: Any) -> Pixels:
    """The pixels of an image `(H, W, C)`, to be read only. Waits for them.

    **Raises** ShapeError, ArgumentError, in the name of the function `name`, for what is no image.
    """
    if isinstance(image, NDArray):
        value = value_of(image) if array_module(image.context) is np else image.asnumpy()
    elif isinstance(image, np.ndarray):
        value = image
    else:
        raise ArgumentError(f"{name}: an image is an NDArray (height, width, channels), got {shown(image)}")
    if value.ndim != 3 or not value.size:
        raise ShapeError(f"{name}: an image (height, width, channels) with at least one pixel is wanted, got shape {image.shape}")
    return value


def delivered(pixels: Pixels, context: Context | None = None, out: NDArray | None = None, name: str = "image") -> NDArray:
    """`pixels` as an NDArray, which gets memory of its own; or written into the array `out`. **Returns** the array."""
    if out is not None:
        if not isinstance(out, NDArray):
            raise ArgumentError(f"{name}: out must be an NDArray, got {shown(out)}; make one with nd.empty(...)")
        if out.shape != pixels.shape or out.dtype != pixels.dtype.type:
            raise ShapeError(
                f"{name}: out has shape {out.shape} and dtype {np.dtype(out.dtype).name}, "
                f"the result {pixels.shape} and {pixels.dtype.name}; they must be equal"
            )
        out[:] = pixels
        return out
    if not (pixels.flags.owndata and pixels.flags.c_contiguous):
        pixels = pixels.copy()
    return from_array(pixels, cpu() if context is None else context)


def context_of(image: Any) -> Context:
    """Where the result of an operation on `image` belongs."""
    return image.context if isinstance(image, NDArray) else cpu()


def require_floating(name: str, pixels: Pixels) -> None:
    """Raise DTypeError for whole numbers, in which colours that are scaled would be cut off."""
    if pixels.dtype.kind != "f":
        raise DTypeError(
            f"{name}: the image has dtype {pixels.dtype.name}, floating numbers are wanted; use astype('float32') or CastAug()"
        )
