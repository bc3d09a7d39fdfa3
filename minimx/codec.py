"""Compressed images to pixels and back, by Pillow, with the results of OpenCV, by which MXNet does it.

Pixels are NumPy arrays `(height, width, channels)` with red first. What a format leaves open is settled as in the OpenCV of MXNet 1.9.1:
opacity is dropped, of 16 bits the upper 8 are kept, grey is weighted as the format's library does it, and the orientation that a camera
notes is ignored unless asked for. (TIFF alone differs: Pillow turns it upright, and mixes CMYK by one level otherwise.)

Pillow is an optional package (extra `image`), imported when it is needed: `import minimx` works without. recordio, image and
gluon.data build on this module.
"""

from __future__ import annotations

import functools
import io
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from . import formats
from .base import ArgumentError, DTypeError, FileFormatError, MXNetError, ShapeError, shown

if TYPE_CHECKING:
    from PIL.Image import Image

    Bytes = bytes | bytearray | memoryview

Pixels = np.ndarray[Any, Any]

AS_STORED, GREY, COLOUR = -1, 0, 1
# Weights of red, green and blue, what rounds, and the shift that divides: of libpng, and of OpenCV for the other formats.
PNG_GREY = (9797, 19234, 3737), 0, 15
OPENCV_GREY = (4899, 9617, 1868), 1 << 13, 14
# What Pillow raises for damaged files, its decoders' slips included, and warnings where the user has made errors of them.
DAMAGE = (OSError, SyntaxError, ValueError, TypeError, EOFError, KeyError, IndexError, OverflowError, struct.error, Warning)
PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


class MissingPillowError(MXNetError, ImportError):
    """Pillow is needed, and not there."""


@functools.cache
def pillow() -> Any:
    """The module PIL.Image. Raises MissingPillowError without it."""
    try:
        import PIL.Image
    except ImportError:
        raise MissingPillowError(
            "images are read and written by Pillow, which is not installed: pip install 'minimx[image]'"
        ) from None
    return PIL.Image


# ---- reading


def decode(data: Bytes, color: int = COLOUR, upright: bool = False, name: str = "imdecode") -> Pixels:
    """The pixels of what is in an image file: a fresh array `(H, W, C)` of uint8.

    **Args** `color`: 1 for three channels, red, green, blue; 0 for one, grey; -1 for those that the image has (opacity is kept, and grey of
    16 bits stays uint16). Of an animation the first picture counts. `upright`: turn the image as its camera noted. `name`: who asks, or
    the file, for errors. **Raises** FileFormatError for what is no image, or is damaged or cut off; ImportError without Pillow.
    """
    if color not in (AS_STORED, GREY, COLOUR):
        raise ArgumentError(
            f"{name}: {shown(color)} does not say which channels are wanted; choose 1 for colours, 0 for grey, -1 for all that are stored"
        )
    library = pillow()
    if not len(data):
        raise FileFormatError(f"{name}: there are no bytes; the file is empty")
    try:
        image = library.open(io.BytesIO(data))
        if color == GREY and image.format == "JPEG":
            image.draft("L", image.size)  # the brightness that is stored, without the way over colours
        if image.format == "PNG":
            check_png(data)
        image.load()
    except library.UnidentifiedImageError:
        start = bytes(data[:8])
        told = formats.looks_like(memoryview(data)[: formats.HEAD], own="picture")
        raise FileFormatError(
            f"{name}: {len(data)} bytes that begin with {start!r} are no image that Pillow knows{told}"
        ) from None
    except library.DecompressionBombError as error:
        raise FileFormatError(
            f"{name}: {error}; if the image is meant to be so large, raise the limit PIL.Image.MAX_IMAGE_PIXELS"
        ) from None
    except DAMAGE as error:
        hint = "; PIL.ImageFile.LOAD_TRUNCATED_IMAGES = True takes what there is" if "truncated" in str(error) else ""
        raise FileFormatError(f"{name}: the image of {len(data)} bytes is damaged or cut off: {error}{hint}") from None
    if upright:
        image = turned(image)
    return converted(image, color, name)


def check_png(data: Bytes) -> None:
    """Raise ValueError for a PNG file in which a check sum of pixels is wrong: libpng refuses it, Pillow takes what comes."""
    at = len(PNG_SIGNATURE)
    view = memoryview(data)
    while at + 12 <= len(view):  # length, name, contents, check sum
        length, name = struct.unpack_from(">I4s", view, at)
        end = at + 8 + length
        if name == b"IDAT" and end + 4 <= len(view) and zlib.crc32(view[at + 4 : end]) != struct.unpack_from(">I", view, end)[0]:
            raise ValueError(f"the check sum of the pixels at byte {at} is wrong")
        at = end + 4


def turned(image: Image) -> Image:
    """`image` as its camera was held."""
    from PIL import ImageOps

    return ImageOps.exif_transpose(image)


def converted(image: Image, color: int, name: str) -> Pixels:
    """The pixels of a loaded image, with the channels that `color` asks for."""
    mode = image.mode
    if mode == "F":
        raise FileFormatError(f"{name}: the image has floating point numbers for pixels; read it with another library")
    if mode == "I" or mode.startswith("I;16"):
        pixels = upper_bits(np.array(image), color, name)
    elif mode in ("1", "L"):
        pixels = np.array(image if mode == "L" else image.convert("L"))[:, :, None]
    elif mode == "CMYK":
        pixels = mixed(np.array(image))
    elif mode == "RGB":
        pixels = np.array(image)
    elif mode in ("LA", "La") and color != AS_STORED:
        pixels = np.array(image)[:, :, :1].copy()
    elif color == AS_STORED and image.has_transparency_data:
        return np.array(image.convert("RGBA"))
    else:
        pixels = np.array(image.convert("RGB"))
    if color == GREY and pixels.shape[2] == 3:
        return weighted(pixels, *(PNG_GREY if image.format == "PNG" else OPENCV_GREY))
    return pixels if color != COLOUR or pixels.shape[2] == 3 else pixels.repeat(3, axis=2)


def upper_bits(pixels: Pixels, color: int, name: str) -> Pixels:
    """Grey of 16 bits as 8, or as uint16 if channels are wanted as they are stored."""
    if pixels.dtype.itemsize > 2:  # older versions of Pillow have 32 bits for it
        if pixels.size and not 0 <= pixels.min() <= pixels.max() < 1 << 16:
            raise FileFormatError(f"{name}: the image has 32 bits a pixel; read it with another library")
        pixels = pixels.astype(np.uint16)
    native = pixels.astype(np.uint16, copy=False)[:, :, None]
    return native if color == AS_STORED else (native >> 8).astype(np.uint8)


def mixed(ink: Pixels) -> Pixels:
    """Red, green, blue from cyan, magenta, yellow and black, as OpenCV mixes them."""
    paper = 255 - ink.astype(np.int32)
    return (paper[:, :, 3:] - ((255 - paper[:, :, :3]) * paper[:, :, 3:] >> 8)).astype(np.uint8)


def weighted(pixels: Pixels, weights: tuple[int, int, int], rounding: int, shift: int) -> Pixels:
    """Grey from red, green, blue."""
    red, green, blue = (pixels[:, :, channel : channel + 1].astype(np.int32) * weight for channel, weight in enumerate(weights))
    return (red + green + blue + rounding >> shift).astype(np.uint8)


# ---- writing


def as_pixels(name: str, image: Any) -> Pixels:
    """`image`, an NDArray or NumPy array `(H, W)`, `(H, W, 1)`, `(H, W, 3)` or `(H, W, 4)`, as an array of three axes.

    **Raises** ShapeError, DTypeError for anything that cannot be stored.
    """
    pixels = image.asnumpy() if hasattr(image, "asnumpy") else image
    if not isinstance(pixels, np.ndarray):
        raise DTypeError(f"{name}: an image is an array, got {shown(image)}")
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3, 4) or not pixels.size:
        raise ShapeError(
            f"{name}: the image has shape {pixels.shape}; (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) is wanted, with at least one pixel"
        )
    if pixels.dtype != np.uint8 and not (pixels.dtype == np.uint16 and pixels.shape[2] == 1):
        raise DTypeError(f"{name}: the image has dtype {pixels.dtype}; files have uint8, from 0 to 255: use astype('uint8')")
    return pixels


def swapped(pixels: Pixels) -> Pixels:
    """`pixels` with red and blue exchanged: OpenCV has blue first. Grey is left as it is."""
    if pixels.ndim < 3 or pixels.shape[2] < 3:
        return pixels
    return np.ascontiguousarray(pixels[:, :, [2, 1, 0, 3][: pixels.shape[2]]])


def encode(pixels: Pixels, img_fmt: str = ".jpg", quality: int = 95) -> bytes:
    """What a file has for `pixels (H, W, C)`: as JPEG (".jpg", without opacity) or PNG (".png").

    **Args** `quality`: of JPEG, 0 to 100; for PNG, how hard to compress, 0 to 9 (9 for more). **Raises** ArgumentError for another format.
    """
    kind = {".jpg": "JPEG", ".jpeg": "JPEG", ".png": "PNG"}.get(img_fmt.lower() if isinstance(img_fmt, str) else "")
    if kind is None:
        raise ArgumentError(f"an image cannot be written as {shown(img_fmt)}; choose '.jpg' or '.png'")
    if isinstance(quality, bool) or not isinstance(quality, (int, np.integer)) or not 0 <= quality <= 100:
        raise ArgumentError(f"quality is {shown(quality)}; it is a whole number from 0 to 100 for JPEG, to 9 for PNG")
    if kind == "JPEG" and pixels.dtype != np.uint8:
        raise DTypeError("JPEG has 8 bits a channel, the image 16; choose '.png', or use astype('uint8')")
    if kind == "JPEG" and pixels.shape[2] == 4:
        pixels = pixels[:, :, :3]
    image = pillow().fromarray(np.ascontiguousarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels))
    file = io.BytesIO()
    how = {"quality": int(quality)} if kind == "JPEG" else {"compress_level": min(int(quality), 9)}
    image.save(file, kind, **how)
    return file.getvalue()
