"""Image files of every kind become the pixels that MXNet's OpenCV makes of them; what is no image is an error. Needs Pillow."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from minimx import codec
from minimx.base import ArgumentError, FileFormatError

from .image.pictures import CMYK_GREY, CMYK_JPEG, CMYK_PIXELS, JPEG, JPEG_GREY, JPEG_PIXELS, RAMP, file_of

NOISE = file_of(np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8))
ROUNDING = 3  # levels: JPEG's decoders may round colours differently


def test_jpeg_as_mxnet():
    np.testing.assert_allclose(codec.decode(JPEG)[::5, ::5].astype(int), JPEG_PIXELS, atol=ROUNDING)
    np.testing.assert_allclose(codec.decode(JPEG, 0)[::5, ::5, 0].astype(int), JPEG_GREY, atol=ROUNDING)
    np.testing.assert_allclose(codec.decode(CMYK_JPEG)[::5, ::5].astype(int), CMYK_PIXELS, atol=ROUNDING)
    np.testing.assert_allclose(codec.decode(CMYK_JPEG, 0)[::5, ::5, 0].astype(int), CMYK_GREY, atol=ROUNDING)


def test_grey_of_png_and_of_others():
    """libpng cuts off where OpenCV rounds. Recorded from MXNet 1.9.1."""
    assert codec.decode(file_of(RAMP), 0)[3, :6, 0].tolist() == [208, 93, 204, 59, 170, 101]
    assert codec.decode(file_of(RAMP, "BMP"), 0)[3, :6, 0].tolist() == [209, 93, 204, 59, 170, 102]


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF", "TIFF", "WEBP", "PPM", "JPEG2000"])
def test_kinds_of_files(kind):
    how = {"lossless": True} if kind == "WEBP" else {}
    pixels = codec.decode(file_of(RAMP // 128 * 128, kind, **how))  # eight colours, so that GIF loses none
    np.testing.assert_array_equal(pixels, RAMP // 128 * 128)
    assert pixels.flags.writeable
    assert pixels.flags.c_contiguous


def test_channels():
    grey, opacity = RAMP[:, :, 0], RAMP[:, :, 1:2]
    three = np.repeat(RAMP[:, :, :1], 3, axis=2)
    cases = [
        (file_of(grey), three, grey[:, :, None]),
        (file_of(np.dstack([RAMP, opacity])), RAMP, np.dstack([RAMP, opacity])),
        (file_of(la(grey, opacity)), three, np.dstack([three, opacity])),
        (file_of(grey > 100), np.where(three > 100, 255, 0), np.where(grey > 100, 255, 0)[:, :, None]),
        (file_of(Image.fromarray(RAMP // 128 * 128).quantize(8)), RAMP // 128 * 128, RAMP // 128 * 128),
    ]
    for data, colours, stored in cases:
        np.testing.assert_array_equal(codec.decode(data), colours)
        np.testing.assert_array_equal(codec.decode(data, -1), stored)
        assert codec.decode(data, 0).shape == (12, 16, 1)
    for data, _, stored in cases[0], cases[3]:
        np.testing.assert_array_equal(codec.decode(data, 0), stored)


def la(grey, opacity):
    return Image.merge("LA", [Image.fromarray(grey), Image.fromarray(opacity[:, :, 0])])


def test_sixteen_bits():
    """The upper eight count."""
    deep = (np.arange(12 * 16).reshape(12, 16) * 331 % 65536).astype(np.uint16)
    data = file_of(deep)
    np.testing.assert_array_equal(codec.decode(data, 0)[:, :, 0], deep >> 8)
    np.testing.assert_array_equal(codec.decode(data)[:, :, 2], deep >> 8)
    np.testing.assert_array_equal(codec.decode(data, -1)[:, :, 0], deep)
    assert codec.decode(data, -1).dtype == np.uint16
    np.testing.assert_array_equal(codec.decode(codec.encode(deep[:, :, None], ".png"), -1)[:, :, 0], deep)


def test_palette_with_a_transparent_colour():
    data = file_of(Image.fromarray(RAMP).quantize(7), transparency=3)
    assert codec.decode(data).shape == (12, 16, 3)
    assert codec.decode(data, -1).shape == (12, 16, 4)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_orientation_counts_where_it_is_asked_for(kind):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by a quarter
    data = file_of(RAMP, kind, exif=exif)
    assert codec.decode(data).shape == (12, 16, 3)
    turned = codec.decode(data, upright=True)
    np.testing.assert_array_equal(turned, np.rot90(codec.decode(data), -1))


def test_the_first_picture_of_an_animation():
    first, second = Image.new("RGB", (4, 3), (255, 0, 0)), Image.new("RGB", (4, 3), (0, 0, 255))
    buffer = io.BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=[second])
    assert codec.decode(buffer.getvalue())[0, 0].tolist() == [255, 0, 0]


# ---- what is no image


@pytest.mark.parametrize(("data", "message"), [
    (b"", "there are no bytes; the file is empty"),
    (b"hello world", "11 bytes that begin with b'hello wo' are no image that Pillow knows"),
    (bytes(100), "100 bytes that begin with"),
    (JPEG[:100], "is damaged or cut off"),
    (JPEG[:-20], "cut off: image file is truncated .*LOAD_TRUNCATED_IMAGES = True takes what there is"),
    (file_of(RAMP)[:-40], "is damaged or cut off"),
    (file_of(RAMP)[:30], "are no image that Pillow knows"),
    (NOISE[:300] + bytes(20) + NOISE[320:], "damaged or cut off: the check sum of the pixels at byte 33 is wrong"),
    (file_of(RAMP, "BMP")[:-40], "is damaged or cut off"),
    (file_of(RAMP[:, :, 0].astype(np.float32), "TIFF"), "floating point numbers for pixels"),
    (file_of(RAMP[:, :, 0].astype(np.int32) * 65536, "TIFF"), "32 bits a pixel"),
])  # fmt: skip
@pytest.mark.parametrize("color", [-1, 0, 1])
def test_damage(data, message, color):
    with pytest.raises(FileFormatError, match=f"holiday.jpg: .*{message}"):
        codec.decode(data, color, name="holiday.jpg")


def test_every_way_to_cut_a_file_off():
    for data in (JPEG, file_of(RAMP), file_of(RAMP, "GIF"), file_of(RAMP, "TIFF"), file_of(RAMP, "WEBP")):
        for end in range(0, len(data) - 12, 7):  # the last bytes of some formats say nothing about pixels
            try:
                codec.decode(data[:end])
            except FileFormatError:
                continue
            except Exception as error:
                raise AssertionError(f"{data[:4]!r}, {end} of {len(data)} bytes") from error


def test_a_bomb(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    with pytest.raises(
        FileFormatError, match=r"if the image is meant to be so large, raise the limit PIL\.Image\.MAX_IMAGE_PIXELS"
    ):
        codec.decode(file_of(RAMP))


def test_bad_arguments():
    with pytest.raises(ArgumentError, match="5 does not say which channels are wanted; choose 1 for colours, 0 for grey, -1"):
        codec.decode(JPEG, 5)


def test_without_pillow():
    """`import minimx` works; whatever needs Pillow says what to install."""
    program = """
import sys
sys.modules["PIL"] = None
import minimx as mx
assert mx.image.imresize(mx.nd.zeros((4, 4, 3)), 2, 2).shape == (2, 2, 3)
for use in (lambda: mx.image.imdecode(b"x"), lambda: mx.recordio.pack_img((0, 1, 0, 0), mx.nd.zeros((2, 2, 3), dtype="uint8"))):
    try:
        use()
    except ImportError as error:
        assert "pip install 'minimx[image]'" in str(error) and isinstance(error, mx.MXNetError)
    else:
        raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_importing_minimx_leaves_pillow_alone():
    program = "import sys, minimx; assert not any(name.startswith('PIL') for name in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
