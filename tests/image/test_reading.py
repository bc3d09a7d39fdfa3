"""imread and imdecode: arrays of images, and errors for what is none."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx.base import ArgumentError, DTypeError, FileFormatError, MissingFileError, ShapeError

from .pictures import JPEG, JPEG_GREY, RAMP, file_of

PNG = file_of(RAMP)


def test_names():
    """As in MXNet."""
    assert mx.img is mx.image
    assert mx.image.image.imread is mx.image.imread
    assert mx.image.det is mx.image.detection
    assert mx.image.det.ImageDetIter is mx.image.ImageDetIter


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8),
                                  lambda data: mx.nd.array(np.frombuffer(data, np.uint8), dtype="uint8")])  # fmt: skip
def test_what_bytes_may_be_in(form):
    image = mx.image.imdecode(form(PNG))
    assert (image.shape, image.dtype, image.context) == ((12, 16, 3), np.uint8, mx.cpu())
    np.testing.assert_array_equal(image.asnumpy(), RAMP)
    image[:] = 0  # its memory is its own


def test_channels():
    np.testing.assert_array_equal(mx.image.imdecode(PNG, to_rgb=0).asnumpy(), RAMP[:, :, ::-1])
    grey = mx.image.imdecode(JPEG, flag=0)
    assert grey.shape == (12, 16, 1)
    np.testing.assert_allclose(grey.asnumpy()[::5, ::5, 0].astype(int), JPEG_GREY, atol=3)


def test_out():
    out = mx.nd.zeros((12, 16, 3), dtype="uint8")
    assert mx.image.imdecode(PNG, out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), RAMP)
    with pytest.raises(ShapeError, match=r"out has shape \(12, 16, 3\) and dtype uint8, the result \(12, 16, 1\) and uint8"):
        mx.image.imdecode(PNG, flag=0, out=out)
    with pytest.raises(ArgumentError, match="out must be an NDArray"):
        mx.image.imdecode(PNG, out=np.zeros((12, 16, 3), np.uint8))


def test_imread(tmp_path):
    (tmp_path / "ramp.png").write_bytes(PNG)
    for name in (tmp_path / "ramp.png", str(tmp_path / "ramp.png")):
        np.testing.assert_array_equal(mx.image.imread(name).asnumpy(), RAMP)
    (tmp_path / "broken.jpg").write_bytes(JPEG[:300])
    with pytest.raises(FileFormatError, match=r"broken\.jpg: the image of 300 bytes is damaged or cut off"):
        mx.image.imread(tmp_path / "broken.jpg")
    with pytest.raises(MissingFileError, match="there is no file"):
        mx.image.imread("/139810923jadjsajlskd.___adskj/blah.jpg")


@pytest.mark.parametrize(("buf", "how", "error", "message"), [
    ("a.jpg", {}, ValueError, r"buf must be bytes, bytearray or an array of uint8, got 'a.jpg'; imread\(\) takes a file's name"),
    (None, {}, ValueError, "got None"),
    (mx.nd.zeros((4,)), {}, DTypeError, "buf has dtype float32; the bytes of a file are uint8"),
    (b"", {}, mx.MXNetError, "imdecode: there are no bytes"),
    (b"clearly not image content", {}, mx.MXNetError, "no image that Pillow knows"),
    (PNG, {"flag": 2}, ArgumentError, "flag is 2; choose 1 for colours or 0 for grey"),
    (PNG, {"flag": -1}, ArgumentError, "flag is -1"),
    (PNG, {"flag": "colour"}, ArgumentError, "flag must be an int, got 'colour'"),
    (PNG, {"to_rgb": 7}, ArgumentError, "to_rgb must be True or False, got 7"),
])  # fmt: skip
def test_bad_input(buf, how, error, message):
    with pytest.raises(error, match=message):
        mx.image.imdecode(buf, **how)
