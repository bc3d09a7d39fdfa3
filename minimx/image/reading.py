"""Images from files and from bytes. How they are decoded is in codec.py."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import codec, files
from ..base import ArgumentError, DTypeError, shown
from ..fields import converted
from ..nd import NDArray
from .arrays import delivered

__all__ = ["imdecode", "imread"]


def imread(filename: files.PathLike, flag: int = 1, to_rgb: bool = True, out: NDArray | None = None) -> NDArray:
    """The image in the file `filename`, as an array `(H, W, C)` of uint8. Needs Pillow (`pip install 'minimx[image]'`).

    **Args** as `imdecode`. **Raises** MissingFileError; FileFormatError, with the file's name, for what is no whole image.
    **Source** MXNet `image.imread`.
    """
    file, _ = files.open_file(filename)
    with file:
        return _decoded(file.read(), flag, to_rgb, out, os.fspath(filename))


def imdecode(
    buf: bytes | bytearray | memoryview | np.ndarray[Any, Any] | NDArray,
    flag: int = 1,
    to_rgb: bool = True,
    out: NDArray | None = None,
) -> NDArray:
    """The image in `buf`, the bytes of an image file, as an array `(H, W, C)` of uint8. Needs Pillow (`pip install 'minimx[image]'`).

    The orientation that a camera noted is ignored, opacity dropped, and of 16 bits the upper 8 are kept, as MXNet does; of an animation the
    first picture counts.

    **Args** `flag`: 1 for three channels, 0 for one, grey. `to_rgb`: red first; False puts blue first, as OpenCV has it. `out`: an array to
    write into. **Raises** FileFormatError for what is no image, or is damaged or cut off (MXNet takes some JPEG files that are cut off).
    **Source** MXNet `image.imdecode`.
    """
    if isinstance(buf, NDArray):
        if buf.dtype != np.uint8:
            raise DTypeError(f"imdecode: buf has dtype {np.dtype(buf.dtype).name}; the bytes of a file are uint8")
        buf = buf.asnumpy()
    if isinstance(buf, np.ndarray):
        buf = buf.tobytes()
    if not isinstance(buf, (bytes, bytearray, memoryview)):
        hint = "; imread() takes a file's name" if isinstance(buf, str) else ""
        raise ArgumentError(f"imdecode: buf must be bytes, bytearray or an array of uint8, got {shown(buf)}{hint}")
    return _decoded(buf, flag, to_rgb, out, "imdecode")


def _decoded(data: bytes | bytearray | memoryview, flag: int, to_rgb: bool, out: NDArray | None, name: str) -> NDArray:
    color = converted(name, "flag", "int", flag)
    if color not in (codec.GREY, codec.COLOUR):
        raise ArgumentError(f"{name}: flag is {color}; choose 1 for colours or 0 for grey")
    pixels = codec.decode(data, color, name=name)
    if not converted(name, "to_rgb", "bool", to_rgb):
        pixels = codec.swapped(pixels)
    return delivered(pixels, None, out, name)
