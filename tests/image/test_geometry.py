"""Sizes and parts of images, with MXNet 1.9.1's random numbers: places and pixels were recorded from it."""

from __future__ import annotations

import random

import numpy as np
import pytest

import minimx as mx
from minimx.base import ArgumentError, ShapeError
from minimx.image import (
    center_crop,
    copyMakeBorder,
    fixed_crop,
    imresize,
    random_crop,
    random_size_crop,
    resize_short,
    scale_down,
)

from .pictures import RAMP


@pytest.fixture
def ramp():
    return mx.nd.array(RAMP, dtype="uint8")


def test_imresize(ramp):
    smaller = imresize(ramp, 8, 6, interp=0)
    np.testing.assert_array_equal(smaller.asnumpy(), RAMP[::2, ::2])
    assert imresize(ramp.astype("float32"), 30, 20).dtype == np.float32
    np.testing.assert_array_equal(imresize(ramp, 5, 9, interp=9).asnumpy(), imresize(ramp, 5, 9, interp=3).asnumpy())
    out = mx.nd.zeros((6, 8, 3), dtype="uint8")
    assert imresize(ramp, 8, 6, interp=0, out=out) is out
    np.testing.assert_array_equal(out.asnumpy(), RAMP[::2, ::2])
    np.testing.assert_array_equal(imresize(RAMP, 8, 6, 0).asnumpy(), RAMP[::2, ::2])  # a NumPy array will do


def test_a_method_at_random(ramp):
    random.seed(1)
    first, second = (resize_short(ramp, 3, 10).asnumpy()[0, :, 0].astype(int) for _ in range(2))
    np.testing.assert_allclose(first, [143, 75, 135, 131], atol=1)  # a sum may lie between two levels
    np.testing.assert_allclose(second, [146, 4, 136, 151], atol=1)


def test_resize_short(ramp):
    assert resize_short(ramp, 6).shape == (6, 8, 3)
    assert resize_short(ramp.transpose((1, 0, 2)), 6).shape == (8, 6, 3)
    assert resize_short(ramp, 5).shape == (5, 6, 3)
    assert resize_short(mx.nd.zeros((7, 7, 1)), 3).shape == (3, 3, 1)


def test_scale_down():
    assert scale_down((640, 480), (720, 120)) == (640, 106)
    assert scale_down((360, 1000), (480, 500)) == (360, 375)
    assert scale_down((300, 400), (0, 0)) == (0, 0)


def test_fixed_crop(ramp):
    part = fixed_crop(ramp, 3, 2, 5, 4)
    np.testing.assert_array_equal(part.asnumpy(), RAMP[2:6, 3:8])
    part[:] = 0  # a copy
    np.testing.assert_array_equal(ramp.asnumpy(), RAMP)
    assert fixed_crop(ramp, 3, 2, 5, 4, (10, 9)).shape == (9, 10, 3)
    assert fixed_crop(ramp, 10, 10, 50, 40).shape == (2, 6, 3)  # it ends at the edge, as in MXNet
    for place in ((-1, 0, 2, 2), (16, 0, 2, 2), (0, 12, 2, 2), (0, 0, 0, 2)):
        with pytest.raises(ShapeError, match=r"is not in an image of 16 x 12"):
            fixed_crop(ramp, *place)


@pytest.mark.parametrize(
    ("seed", "place", "total"), [(0, (6, 6, 6, 5), 10933), (1, (2, 1, 6, 5), 11965), (2, (0, 1, 6, 5), 11441)]
)
def test_random_crop(ramp, seed, place, total):
    random.seed(seed)
    part, where = random_crop(ramp, (6, 5))
    assert (where, part.shape, int(part.asnumpy().sum())) == (place, (5, 6, 3), total)


def test_crops_of_small_images(ramp):
    random.seed(0)
    part, where = random_crop(ramp, (20, 30))
    assert (where, part.shape) == ((6, 0, 8, 12), (30, 20, 3))
    assert center_crop(ramp, (20, 30))[1] == (4, 0, 8, 12)
    assert center_crop(ramp, (100, 1))[0].shape == (1, 100, 3)
    assert random_crop(mx.nd.zeros((1, 1, 3)), (7, 5))[0].shape == (5, 7, 3)
    assert random_size_crop(mx.nd.zeros((1, 1, 3)), (7, 5), 0.08, (0.75, 1.33))[0].shape == (5, 7, 3)


def test_center_crop(ramp):
    part, where = center_crop(ramp, (5, 3))
    assert where == (5, 4, 5, 3)
    np.testing.assert_array_equal(part.asnumpy(), RAMP[4:7, 5:10])


@pytest.mark.parametrize(("seed", "place", "red"), [
    (0, (3, 0, 13, 11), [[156, 177, 141, 22], [144, 152, 97, 202], [100, 108, 149, 158], [56, 161, 105, 114]]),
    (1, (1, 2, 7, 6), [[116, 55, 81, 187], [92, 31, 225, 163], [68, 231, 201, 139], [164, 207, 177, 115]]),
    (2, (0, 0, 15, 11), [[139, 43, 203, 107], [94, 223, 159, 123], [110, 179, 115, 115], [167, 139, 103, 71]]),
    (3, (5, 4, 8, 7), [[156, 122, 88, 182], [128, 94, 188, 154], [100, 178, 160, 126], [152, 166, 132, 98]]),
])  # fmt: skip
def test_random_size_crop(ramp, seed, place, red):
    random.seed(seed)
    part, where = random_size_crop(ramp, (4, 4), (0.1, 0.9), (0.75, 1.33), interp=1)
    assert where == place
    np.testing.assert_array_equal(part.asnumpy()[:, :, 0], red)


def test_random_size_crop_that_does_not_fit(ramp):
    """Ten attempts, then the middle."""
    random.seed(0)
    assert random_size_crop(ramp, (4, 4), 0.5, (0.75, 1.33), interp=1)[1] == (1, 0, 14, 12)
    assert random_size_crop(ramp, (4, 4), (1.0, 1.0), (100.0, 100.0), interp=1)[1] == (6, 4, 4, 4)
    with pytest.warns(DeprecationWarning, match="min_area is deprecated; write area"):
        random_size_crop(ramp, (4, 4), 0.1, (0.75, 1.33), min_area=0.5)


def test_copy_make_border(ramp):
    np.testing.assert_array_equal(
        copyMakeBorder(ramp, 1, 2, 3, 4, type=1).asnumpy(), np.pad(RAMP, ((1, 2), (3, 4), (0, 0)), "edge")
    )
    framed = copyMakeBorder(ramp, 1, 0, 0, 0, values=(1, 2, 3)).asnumpy()
    assert framed[0, 0].tolist() == [1, 2, 3]


def test_where_the_result_is():
    assert imresize(mx.nd.zeros((4, 4, 3), ctx=mx.cpu(1)), 2, 2).context == mx.cpu(1)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: imresize(x, 0, 2), ArgumentError, "2 x 0 pixels were asked for; each must be from 1 to 32767"),
    (lambda x: imresize(x, 2.5, 2), ArgumentError, "imresize: w must be an int, got 2.5"),
    (lambda x: imresize(x, 2, 2, 7), ArgumentError, "interp is 7; choose one of"),
    (lambda x: imresize([[1]], 2, 2), ArgumentError, r"an image is an NDArray \(height, width, channels\), got"),
    (lambda x: imresize(mx.nd.zeros((4, 4)), 2, 2), ShapeError, r"at least one pixel is wanted, got shape \(4, 4\)"),
    (lambda x: imresize(x, 2, 2, out=mx.nd.zeros((2, 2, 3))), ShapeError, "out has shape .* and dtype float32, the result .* and uint8"),
    (lambda x: resize_short(x, "big"), ArgumentError, "resize_short: size must be an int, got 'big'"),
    (lambda x: center_crop(x, 4), ArgumentError, r"center_crop: size is 4; \(width, height\) is wanted"),
    (lambda x: random_crop(x, (1, 2, 3)), ArgumentError, r"size is \(1, 2, 3\)"),
    (lambda x: center_crop(x, (0, 0)), ArgumentError, "0 x 0 pixels"),
    (lambda x: random_size_crop(x, (4, 4), (0.9, 0.1), (1, 1)), ArgumentError, "area is .*; a lower and an upper bound are wanted"),
    (lambda x: random_size_crop(x, (4, 4), 0.1, (-1, 1)), ArgumentError, "ratio is .*both more than 0"),
])  # fmt: skip
def test_bad_input(ramp, call, error, message):
    with pytest.raises(error, match=message):
        call(ramp)


def test_a_failed_image_says_why():
    """The error of the operation that should have made the image, not one about the image."""
    with pytest.raises(mx.MXNetError, match="scale"):
        imresize(mx.nd.random.normal(0, -1, (4, 4, 3)), 2, 2)
