"""Augmenters: what they do after a seed is what MXNet 1.9.1 does after it, from which values were recorded."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import minimx as mx
from minimx import image
from minimx.base import ArgumentError, DTypeError

from .pictures import RAMP

EIGENVALUES = np.array([55.46, 4.794, 1.148])
EIGENVECTORS = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])


def seed(number):
    random.seed(number)
    np.random.seed(number)


@pytest.fixture
def ramp():
    return mx.nd.array(RAMP)


@pytest.fixture
def ramp_of_bytes():
    return mx.nd.array(RAMP, dtype="uint8")


# augmenter: pixel (3, 4) and the mean of RAMP after it, with seed 1
COLOURED = {
    "brightness": (image.BrightnessJitterAug(0.3), [109.286598, 138.169479, 167.052368], 99.00845),
    "contrast": (image.ContrastJitterAug(0.4), [136.166671, 162.343856, 188.521026], 126.85137),
    "saturation": (image.SaturationJitterAug(0.5), [151.025756, 174.497222, 197.968704], 126.85587),
    "hue": (image.HueJitterAug(0.3), [162.412201, 160.984542, 237.741577], 126.63919),
    "lighting": (image.LightingAug(0.2, EIGENVALUES, EIGENVECTORS), [129.304748, 166.636932, 203.841705], 116.42782),
    "normalize": (image.ColorNormalizeAug(np.array([1, 2, 3]), [3, 2, 1]), [46.333332, 87.5, 211], 75.990746),
    "gray": (image.RandomGrayAug(1), [171.820007, 171.820007, 171.820007], 126.880005),
    "jitter": (image.ColorJitterAug(0.1, 0.2, 0.3), [137.388534, 170.335938, 203.283310], 125.55821),
}


@pytest.mark.parametrize("name", COLOURED)
def test_colours(ramp, name):
    augmenter, pixel, mean = COLOURED[name]
    seed(1)
    changed = augmenter(ramp)
    assert (changed.shape, changed.dtype) == (RAMP.shape, np.float32)
    np.testing.assert_allclose(changed.asnumpy()[3, 4], pixel, rtol=1e-5)
    np.testing.assert_allclose(changed.asnumpy().mean(), mean, rtol=1e-5)
    np.testing.assert_array_equal(ramp.asnumpy(), RAMP)  # what was given stays


@pytest.mark.parametrize("name", COLOURED)
def test_colours_of_bytes(ramp_of_bytes, name):
    with pytest.raises(
        DTypeError, match=r"the image has dtype uint8, floating numbers are wanted; use astype\('float32'\) or CastAug"
    ):
        COLOURED[name][0](ramp_of_bytes)


def test_color_normalize_writes_into_its_image(ramp):
    assert image.color_normalize(ramp, mx.nd.array([1, 2, 3]), mx.nd.array([3, 2, 1])) is ramp
    np.testing.assert_allclose(ramp.asnumpy(), (RAMP - np.array([1.0, 2, 3])) / [3, 2, 1], rtol=1e-5)
    image.color_normalize(ramp, None)
    image.color_normalize(ramp, 1.0, 2.0)
    with pytest.raises(ArgumentError, match="src must be an NDArray"):
        image.color_normalize(RAMP, 1)


def test_normalize_by_one_of_both(ramp):
    np.testing.assert_allclose(image.ColorNormalizeAug(None, [2, 2, 2])(ramp).asnumpy(), RAMP / 2)
    np.testing.assert_allclose(image.ColorNormalizeAug([2.0], None)(ramp).asnumpy(), RAMP - 2.0)
    assert image.ColorNormalizeAug(None, None)(ramp) is ramp
    with pytest.raises(ArgumentError, match=r"mean has shape \(2,\), an image of shape \(12, 16, 3\) needs \(3,\)"):
        image.ColorNormalizeAug([1, 2], None)(ramp)


def test_sizes(ramp_of_bytes):
    for augmenter, shape in [
        (image.ResizeAug(6), (6, 8, 3)),
        (image.ForceResizeAug((5, 7)), (7, 5, 3)),
        (image.RandomCropAug((5, 7)), (7, 5, 3)),
        (image.CenterCropAug((5, 7)), (7, 5, 3)),
        (image.RandomSizedCropAug((5, 7), 0.1, (0.5, 2)), (7, 5, 3)),
    ]:
        assert augmenter(ramp_of_bytes).shape == shape
    np.testing.assert_array_equal(image.CenterCropAug((4, 4))(ramp_of_bytes).asnumpy(), RAMP[4:8, 6:10])


def test_mirror(ramp_of_bytes):
    np.testing.assert_array_equal(image.HorizontalFlipAug(1)(ramp_of_bytes).asnumpy(), RAMP[:, ::-1])
    assert image.HorizontalFlipAug(0)(ramp_of_bytes) is ramp_of_bytes


def test_cast(ramp_of_bytes):
    assert image.CastAug()(ramp_of_bytes).dtype == np.float32
    assert image.CastAug("float16")(ramp_of_bytes).dtype == np.float16
    assert json.loads(image.CastAug(np.int32).dumps()) == ["castaug", {"type": "int32"}]


def test_several(ramp):
    calls = []

    class Note(image.Augmenter):
        def __init__(self, number):
            super().__init__(number=number)
            self.number = number

        def __call__(self, src):
            calls.append(self.number)
            return src

    notes = [Note(number) for number in range(3)]
    assert image.SequentialAug(notes)(ramp) is ramp
    assert calls == [0, 1, 2]
    calls.clear()
    seed(3)
    image.RandomOrderAug(list(notes))(ramp)
    expected = [0, 1, 2]
    random.seed(3)
    random.shuffle(expected)
    assert calls == expected
    assert image.SequentialAug(notes[:1]).dumps() == ["sequentialaug", ['["note", {"number": 0}]']]


def test_dumps():
    assert image.RandomSizedCropAug((5, 7), 0.1, (0.5, 2)).dumps() == (
        '["randomsizedcropaug", {"size": [5, 7], "area": 0.1, "ratio": [0.5, 2], "interp": 2}]'
    )
    assert json.loads(image.ColorNormalizeAug(mx.nd.array([1, 2, 3]), None).dumps()) == [
        "colornormalizeaug", {"mean": [1, 2, 3], "std": None},
    ]  # fmt: skip
    assert image.ColorJitterAug(0, 0.2, 0).dumps() == ["colorjitteraug", ['["contrastjitteraug", {"contrast": 0.2}]']]


def test_the_usual_list(ramp_of_bytes):
    everything = {
        "resize": 8, "rand_crop": True, "rand_mirror": True, "mean": True, "std": True, "brightness": 0.1, "contrast": 0.2,
        "saturation": 0.3, "hue": 0.1, "pca_noise": 0.1, "rand_gray": 0.2,
    }  # fmt: skip
    assert [type(each).__name__ for each in image.CreateAugmenter((3, 6, 5), rand_resize=True, **everything)] == [
        "ResizeAug", "RandomSizedCropAug", "HorizontalFlipAug", "CastAug", "ColorJitterAug", "HueJitterAug", "LightingAug",
        "RandomGrayAug", "ColorNormalizeAug",
    ]  # fmt: skip
    seed(2)
    changed = ramp_of_bytes
    for augmenter in image.CreateAugmenter((3, 6, 5), inter_method=1, **everything):
        changed = augmenter(changed)
    np.testing.assert_allclose(changed.asnumpy()[2, 3], [0.358424, 1.005268, 1.543554], atol=1e-4)
    np.testing.assert_allclose(changed.asnumpy().mean(), 0.114738, atol=1e-4)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: image.Augmenter()(x), NotImplementedError, "Augmenter must override __call__"),
    (lambda x: image.CreateAugmenter((3, 6)), ValueError, r"data_shape is \(3, 6\); \(channels, height, width\)"),
    (lambda x: image.CreateAugmenter((3, 6, 5), rand_resize=True), AssertionError, "give rand_crop=True as well"),
    (lambda x: image.CreateAugmenter((3, 6, 5), mean=[1, 2, 3]), AssertionError, "mean must be True, or an array of 3 numbers, or of 1"),
    (lambda x: image.CreateAugmenter((3, 6, 5), std=np.ones(2)), AssertionError, r"got a NumPy array of shape \(2,\)"),
    (lambda x: image.HorizontalFlipAug(2), ArgumentError, "p is 2; a probability, from 0 to 1, is wanted"),
    (lambda x: image.RandomGrayAug("often"), ArgumentError, "p must be a number, got 'often'"),
    (lambda x: image.ResizeAug("big"), ArgumentError, "size must be an int"),
    (lambda x: image.SequentialAug(3), ArgumentError, "a list of augmenters is wanted, got 3"),
    (lambda x: image.RandomOrderAug([3]), ArgumentError, "3 is no Augmenter"),
    (lambda x: image.LightingAug(0.1, [1, 2], EIGENVECTORS), ArgumentError, r"eigval must be an array of shape \(3,\)"),
    (lambda x: image.LightingAug(0.1, EIGENVALUES, "x"), ArgumentError, r"eigvec must be an array of shape \(3, 3\)"),
    (lambda x: image.CastAug("float31"), DTypeError, "float31"),
    (lambda x: image.HueJitterAug(0.1)(x[:, :, :1]), ArgumentError, r"shape \(12, 16, 1\); three channels"),
    (lambda x: image.ContrastJitterAug(0.1)(x[:, :, :1]), ArgumentError, "three channels, red, green, blue"),
])  # fmt: skip
def test_bad_input(ramp, call, error, message):
    with pytest.raises(error, match=message):
        call(ramp)
