"""Resizing images: values recorded from OpenCV 3.4 through MXNet 1.9.1's `image.imresize`, and what must hold for every size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from minimx.base import ArgumentError, ShapeError
from minimx.ops.resampling import resample

NEAREST, BILINEAR, CUBIC, AREA, LANCZOS = range(5)
METHODS = range(5)
RAMP = (np.arange(24).reshape(4, 6, 1) * 37 % 256).astype(np.uint8)
CURVE = (np.arange(12).reshape(3, 4, 1) ** 2 / 7).astype(np.float32)

# (method, height, width): RAMP in that size. Where a row of one pixel differs, the sum lies between two whole numbers.
OF_BYTES = {
    (NEAREST, 3, 4): [[0, 37, 111, 148], [222, 3, 77, 114], [188, 225, 43, 80]],
    (NEAREST, 5, 4): [[0, 37, 111, 148], [0, 37, 111, 148], [222, 3, 77, 114], [188, 225, 43, 80], [154, 191, 9, 46]],
    (BILINEAR, 3, 4): [[35, 59, 114, 170], [182, 46, 69, 125], [169, 192, 24, 79]],
    (BILINEAR, 2, 3): [[66, 76, 150], [190, 72, 82]],
    (BILINEAR, 7, 9): [[0, 18, 43, 68, 92, 117, 142, 166, 185], [79, 52, 31, 56, 80, 105, 129, 154, 173],
                       [206, 106, 12, 36, 61, 85, 110, 135, 153], [205, 160, 99, 38, 42, 66, 91, 116, 134],
                       [185, 204, 189, 55, 31, 47, 71, 96, 114], [166, 184, 194, 158, 85, 27, 52, 76, 95],
                       [154, 172, 197, 222, 118, 15, 40, 64, 83]],
    (CUBIC, 3, 4): [[30, 56, 118, 174], [207, 15, 74, 127], [168, 217, 1, 80]],
    (CUBIC, 5, 4): [[0, 66, 124, 180], [122, 28, 101, 157], [207, 15, 74, 127], [196, 110, 33, 97], [158, 255, 0, 74]],
    (AREA, 3, 4): [[46, 53, 115, 164], [175, 53, 72, 122], [175, 182, 30, 79]],
    (AREA, 2, 3): [[66, 76, 150], [190, 72, 82]],
    (AREA, 7, 9): [[0, 19, 37, 74, 93, 111, 148, 167, 185], [56, 42, 29, 66, 84, 103, 140, 158, 177],
                   [222, 113, 3, 40, 59, 77, 114, 133, 151], [205, 160, 114, 23, 42, 60, 97, 116, 134],
                   [188, 207, 225, 6, 25, 43, 80, 99, 117], [163, 181, 200, 173, 95, 18, 55, 73, 92],
                   [154, 173, 191, 228, 119, 9, 46, 65, 83]],
    (AREA, 5, 4): [[12, 62, 123, 173], [115, 36, 98, 147], [174, 53, 72, 122], [192, 113, 47, 96], [166, 216, 21, 71]],
    (LANCZOS, 3, 4): [[27, 60, 114, 175], [218, 5, 76, 126], [160, 224, 0, 86]],
    (LANCZOS, 5, 4): [[0, 67, 122, 180], [120, 32, 91, 157], [218, 5, 76, 126], [193, 113, 42, 100], [151, 255, 0, 82]],
}  # fmt: skip

# method: CURVE as 4 x 3
OF_FLOATS = {
    NEAREST: [[0.0, 0.14286, 0.57143], [0.0, 0.14286, 0.57143], [2.28571, 3.57143, 5.14286], [9.14286, 11.57143, 14.28571]],
    BILINEAR: [
        [0.02381, 0.35714, 1.16667],
        [1.57143, 2.85714, 4.61905],
        [5.14286, 7.57143, 10.47619],
        [9.54762, 12.92857, 16.78572],
    ],
    CUBIC: [
        [-0.16135, 0.01646, 0.79083],
        [0.79815, 1.92048, 3.63937],
        [5.23285, 7.83175, 11.02722],
        [9.94682, 13.49023, 17.63022],
    ],
    AREA: [[0.03571, 0.35714, 1.10714], [1.75, 3.02381, 4.72619], [4.9881, 7.21429, 9.86905], [9.75, 12.92857, 16.53572]],
    LANCZOS: [[0.01253, 0.21337, 1.0542], [0.68903, 1.78577, 3.5225], [5.21476, 7.83814, 11.1015], [9.85007, 13.36935, 17.52861]],
}


@pytest.mark.parametrize(("method", "height", "width"), OF_BYTES)
def test_bytes_as_opencv(method, height, width):
    np.testing.assert_array_equal(resample(RAMP, height, width, method)[:, :, 0], OF_BYTES[method, height, width])


@pytest.mark.parametrize("method", METHODS)
def test_floats_as_opencv(method):
    np.testing.assert_allclose(resample(CURVE, 4, 3, method)[:, :, 0], OF_FLOATS[method], atol=1e-5)


SIZES = st.integers(1, 12)


@given(
    SIZES,
    SIZES,
    st.integers(1, 5),
    SIZES,
    SIZES,
    st.sampled_from(METHODS),
    st.sampled_from(["uint8", "float32", "int32", "float16"]),
)
def test_every_size(old_height, old_width, channels, height, width, method, dtype):
    """The shape and the dtype are right, channels do not mix, and an image of one colour stays one."""
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 256, (old_height, old_width, channels)).astype(dtype)
    result = resample(pixels, height, width, method)
    assert result.shape == (height, width, channels)
    assert result.dtype == pixels.dtype
    assert result.flags.c_contiguous
    assert not np.shares_memory(result, pixels)
    apart = np.concatenate([resample(pixels[:, :, [channel]], height, width, method) for channel in range(channels)], axis=2)
    # two channels that are halved are rounded another way, by OpenCV too
    np.testing.assert_allclose(result.astype(float), apart.astype(float), atol=1 if pixels.dtype.kind in "iu" else 0.5)
    grey = np.full_like(pixels, 77)
    np.testing.assert_allclose(resample(grey, height, width, method).astype(float), 77, rtol=1e-3 if dtype == "float16" else 1e-6)


@given(SIZES, SIZES, SIZES, SIZES, st.sampled_from(METHODS))
def test_bytes_are_what_floats_are(old_height, old_width, height, width, method):
    """But for rounding: of 11 bits in the weights, and to whole numbers."""
    pixels = np.random.default_rng(2).integers(0, 256, (old_height, old_width, 3)).astype(np.uint8)
    exact = np.clip(resample(pixels.astype(np.float64), height, width, method), 0, 255)
    np.testing.assert_allclose(resample(pixels, height, width, method), exact, atol=1.2)


@given(SIZES, SIZES, SIZES, SIZES)
def test_area_keeps_the_mean(old_height, old_width, height, width):
    pixels = np.random.default_rng(3).normal(size=(old_height * height, old_width * width, 1)).astype(np.float32)
    np.testing.assert_allclose(resample(pixels, height, width, AREA).mean(), pixels.mean(), atol=1e-5)


def test_the_same_size_is_a_copy():
    again = resample(RAMP, 4, 6, LANCZOS)
    np.testing.assert_array_equal(again, RAMP)
    assert not np.shares_memory(again, RAMP)


@pytest.mark.parametrize("method", [CUBIC, AREA, LANCZOS])
@pytest.mark.parametrize(
    ("old", "new"), [((150, 200), (101, 137)), ((100, 90), (224, 130)), ((97, 400), (97, 113)), ((60, 70), (200, 60))]
)
def test_large_images_are_multiplied(monkeypatch, method, old, new):
    """By matrices, with the same result as one tap after the other; but for the order of sums."""
    pixels = np.random.default_rng(4).integers(0, 256, (*old, 3)).astype(np.uint8)
    multiplied = resample(pixels, *new, method).astype(int)
    monkeypatch.setattr("minimx.ops.resampling.LARGE", 1 << 60)
    difference = np.abs(multiplied - resample(pixels, *new, method))
    assert difference.max() <= 1
    assert difference.mean() < 1e-3
    monkeypatch.setattr("minimx.ops.resampling.LARGE", 0)
    monkeypatch.setattr("minimx.ops.resampling.PRODUCT", 3000)  # in several parts
    assert np.abs(multiplied - resample(pixels, *new, method)).mean() < 1e-3


def test_by_the_sizes():
    for height, width, method in ((8, 12, CUBIC), (2, 5, AREA), (8, 5, BILINEAR), (4, 12, BILINEAR)):
        np.testing.assert_array_equal(resample(RAMP, height, width, 9), resample(RAMP, height, width, method))


def test_integers_stay_in_their_range():
    edge = np.array([0, 0, 0, 255, 255, 255]).reshape(1, 6, 1)
    for dtype in ("int8", "int16", "int64", "uint16"):
        limits = np.iinfo(dtype)
        pixels = np.where(edge > 0, limits.max, limits.min).astype(dtype)
        row = resample(pixels, 1, 13, CUBIC)[0, :, 0]  # overshoots on both sides of the edge
        assert (np.diff(row.astype(float)) >= 0).all()
    assert resample(edge > 0, 1, 12, BILINEAR)[0, :, 0].tolist() == [False] * 6 + [True] * 6


@pytest.mark.parametrize(("shape", "size", "method", "error", "message"), [
    ((4, 6), (2, 2), 1, ShapeError, r"\(height, width, channels\) that is not empty is wanted, got \(4, 6\)"),
    ((0, 6, 1), (2, 2), 1, ShapeError, "not empty"),
    ((4, 6, 1), (0, 2), 1, ArgumentError, "0 x 2 pixels were asked for; each must be from 1 to 32767"),
    ((4, 6, 1), (2, 1 << 15), 1, ArgumentError, "2 x 32768 pixels"),
    ((4, 6, 1), (2, 2), 5, ArgumentError, "interp is 5; choose one of 0 nearest, 1 bilinear"),
    ((4, 6, 1), (2, 2), 10, ArgumentError, "interp is 10"),
])  # fmt: skip
def test_bad_requests(shape, size, method, error, message):
    with pytest.raises(error, match=message):
        resample(np.zeros(shape, np.uint8), *size, method)
