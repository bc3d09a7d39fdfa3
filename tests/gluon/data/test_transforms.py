"""Transforms of images: each against the functions that it is made of, in a row, and in a DataLoader."""

from __future__ import annotations

import random

import numpy as np
import pytest

import minimx as mx
from minimx import nd
from minimx.base import ArgumentError, DTypeError, ShapeError
from minimx.gluon import nn
from minimx.gluon.data import ArrayDataset, DataLoader
from minimx.gluon.data.vision import transforms

PHOTO = np.random.default_rng(1).integers(0, 256, (12, 16, 3)).astype(np.uint8)


def photo(dtype="uint8"):
    return nd.array(PHOTO, dtype=dtype)


def seeded(function, *args):
    """The value of a function that draws from any generator."""
    mx.random.seed(7)
    random.seed(7)
    np.random.seed(7)
    return function(*args).asnumpy()


FUNCTIONS = {
    "Cast": (transforms.Cast("float16"), lambda x: x.astype("float16")),
    "ToTensor": (transforms.ToTensor(), nd.image.to_tensor),
    "Resize": (transforms.Resize(5), lambda x: nd.image.resize(x, 5)),
    "Resize pair": (transforms.Resize((5, 9), interpolation=2), lambda x: nd.image.resize(x, (5, 9), interp=2)),
    "Resize short": (transforms.Resize(6, keep_ratio=True), lambda x: nd.image.resize(x, (8, 6))),
    "CropResize": (transforms.CropResize(2, 1, 5, 7), lambda x: x[1:8, 2:7]),
    "CropResize to": (transforms.CropResize(2, 1, 5, 7, (3, 2), 1), lambda x: nd.image.resize(x[1:8, 2:7], (3, 2))),
    "CenterCrop": (transforms.CenterCrop((6, 4)), lambda x: x[4:8, 5:11]),
    "CenterCrop larger": (transforms.CenterCrop(20), lambda x: nd.image.resize(x[:, 2:14], 20)),
    "RandomResizedCrop": (transforms.RandomResizedCrop(8, (0.3, 0.5), (1, 2), 2),
                          lambda x: mx.image.random_size_crop(x, (8, 8), (0.3, 0.5), (1, 2), 2)[0]),
    "RandomFlipLeftRight": (transforms.RandomFlipLeftRight(), nd.image.random_flip_left_right),
    "RandomFlipTopBottom": (transforms.RandomFlipTopBottom(), nd.image.random_flip_top_bottom),
    "RandomBrightness": (transforms.RandomBrightness(0.3), lambda x: nd.image.random_brightness(x, 0.7, 1.3)),
    "RandomContrast": (transforms.RandomContrast(1.5), lambda x: nd.image.random_contrast(x, 0, 2.5)),
    "RandomSaturation": (transforms.RandomSaturation(0.5), lambda x: nd.image.random_saturation(x, 0.5, 1.5)),
    "RandomHue": (transforms.RandomHue(0.25), lambda x: nd.image.random_hue(x, 0.75, 1.25)),
    "RandomColorJitter": (transforms.RandomColorJitter(0.1, 0.2, 0.3, 0.4),
                          lambda x: nd.image.random_color_jitter(x, 0.1, 0.2, 0.3, 0.4)),
    "RandomLighting": (transforms.RandomLighting(0.1), lambda x: nd.image.random_lighting(x, 0.1)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_images(name):
    transform, function = FUNCTIONS[name]
    want = seeded(function, photo())
    got = seeded(transform, photo())
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", [name for name, (block, _) in FUNCTIONS.items() if isinstance(block, mx.gluon.HybridBlock)])
def test_hybridized(name):
    """The same as a program, with the same random numbers."""
    transform, function = FUNCTIONS[name]
    program = nn.HybridSequential()
    program.add(transform)
    program.hybridize()
    for dtype in ("uint8", "float32"):
        want, got = seeded(function, photo(dtype)), seeded(program, photo(dtype))
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-6)


TENSOR = PHOTO.transpose(2, 0, 1).astype(np.float32) / 255


def test_tensors():
    x = nd.array(TENSOR)
    np.testing.assert_allclose(transforms.Normalize(0.5, 0.25)(x).asnumpy(), (TENSOR - 0.5) / 0.25, rtol=1e-5)
    mean, std = np.array([0.1, 0.2, 0.3]), np.array([1, 2, 4])
    for given in (mean.tolist(), tuple(mean), mean, nd.array(mean)):
        got = transforms.Normalize(given, std.tolist())(nd.stack(x, x)).asnumpy()
        np.testing.assert_allclose(got[1], (TENSOR - mean.reshape(3, 1, 1)) / std.reshape(3, 1, 1), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(transforms.Rotate(30)(x).asnumpy(), mx.image.imrotate(x, 30).asnumpy())
    turned = seeded(transforms.RandomRotation((-20, 20), zoom_in=True), x)
    assert turned.shape == TENSOR.shape
    assert not np.array_equal(turned, TENSOR)
    np.testing.assert_array_equal(transforms.RandomRotation((-20, 20), rotate_with_proba=0)(x).asnumpy(), TENSOR)


# ---- several


def test_compose_makes_programs_of_hybrid_neighbours():
    steps = [transforms.Resize(14), transforms.CenterCrop(10), transforms.RandomFlipLeftRight(), transforms.ToTensor()]
    given = list(steps)
    composed = transforms.Compose(given)
    assert given == steps  # MXNet adds None to the list
    assert [type(block).__name__ for block in composed] == ["Resize", "CenterCrop", "HybridSequential"]
    assert composed[2]._active
    one_by_one = seeded(lambda x: steps[3](steps[2](steps[1](steps[0](x)))), photo())
    np.testing.assert_array_equal(seeded(composed, photo()), one_by_one)
    assert one_by_one.shape == (3, 10, 10)


def test_compose_of_nothing_changes_nothing():
    x = photo()
    assert transforms.Compose([])(x) is x


def test_compose_serves_all_sizes():
    composed = transforms.Compose([transforms.Resize(8, keep_ratio=True), transforms.ToTensor()])
    for height, width in ((12, 16), (16, 12), (8, 8), (9, 40)):
        x = nd.zeros((height, width, 3), dtype="uint8")
        short = min(height, width)
        assert composed(x).shape == (3, height * 8 // short, width * 8 // short)


def test_random_apply():
    random.seed(1)
    shrink = transforms.Compose([transforms.Resize(4), transforms.Cast("float32")])
    for transform in (
        transforms.RandomApply(shrink, 0.25),
        transforms.RandomApply([transforms.Resize(4), transforms.Cast()], 0.25),
    ):
        small = sum(transform(photo()).shape == (4, 4, 3) for _ in range(400))
        assert 60 < small < 140
    assert transforms.RandomApply(shrink, 0)(photo()).shape == (12, 16, 3)
    assert transforms.RandomApply(shrink, 1)(photo()).shape == (4, 4, 3)
    assert transforms.Compose([transforms.RandomApply(shrink)])(photo()).shape[2] == 3


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_data_loader_draws_does_not_depend_on_its_workers(workers):
    composed = transforms.Compose([
        transforms.RandomResizedCrop(6), transforms.RandomFlipLeftRight(), transforms.RandomColorJitter(0.3, 0.3, 0.3, 0.3),
        transforms.ToTensor(), transforms.RandomApply(transforms.Normalize(1, 2)),
    ])  # fmt: skip
    images = ArrayDataset(nd.array(np.stack([PHOTO] * 6), dtype="uint8"), np.arange(6))

    def batches(count):
        mx.random.seed(1)
        random.seed(1)
        np.random.seed(1)
        loader = DataLoader(images.transform_first(composed), 2, num_workers=count)
        return np.concatenate([x.asnumpy() for x, _ in loader])

    alone = batches(0)
    assert len({image.tobytes() for image in alone}) == 6  # no two images get the same numbers
    np.testing.assert_array_equal(batches(workers), alone)


# ---- errors


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda: transforms.Compose([nd.image.to_tensor]), ArgumentError, "a list of blocks is wanted, such as transforms.ToTensor"),
    (lambda: transforms.Cast("float99"), DTypeError, "float99"),
    (lambda: transforms.Normalize("grey"), ArgumentError, "Normalize: mean must be a number or a tuple of numbers, got 'grey'"),
    (lambda: transforms.CenterCrop((3, 4, 5)), ArgumentError, r"CenterCrop: size is \(3, 4, 5\), wants an int or \(width, height\)"),
    (lambda: transforms.RandomResizedCrop(0), ArgumentError, "RandomResizedCrop: size is 0, wants .* at least 1"),
    (lambda: transforms.RandomRotation((10, -10)), ValueError, r"angle_limits must be \(smaller, larger\) in degrees"),
    (lambda: transforms.RandomRotation((-1, 1), rotate_with_proba=1.1), ValueError, "between 0 and 1; got 1.1"),
    (lambda: transforms.RandomApply(transforms.Resize(2), -0.1), ValueError, "RandomApply: p is a probability"),
    (lambda: transforms.RandomApply(3), ArgumentError, "RandomApply: a block or a list of blocks is wanted, got 3"),
    (lambda: transforms.RandomBrightness(-1), ArgumentError, "RandomBrightness: brightness is -1; it must be at least 0"),
    (lambda: transforms.RandomHue(float("nan")), ArgumentError, "RandomHue: hue is nan"),
    (lambda: transforms.RandomColorJitter(saturation="much"), ArgumentError, "saturation must be a number, got 'much'"),
    (lambda: transforms.RandomLighting(-0.1), ArgumentError, "alpha is -0.1"),
])  # fmt: skip
def test_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(("transform", "error", "message"), [
    (transforms.Rotate(10), TypeError, "x is uint8; This transformation only supports float32: put it after ToTensor"),
    (transforms.RandomRotation((-10, 10)), TypeError, "only supports float32"),
    (transforms.Normalize(), DTypeError, "call to_tensor first"),
    (transforms.Compose([transforms.ToTensor(), transforms.ToTensor(), transforms.Normalize()]), ShapeError, "1 or 3 channels on axis 0"),
    (transforms.Resize(-2), ArgumentError, "size is .-2,., wants"),
    (transforms.CropResize(0, 0, 17, 3), ArgumentError, "x=0 and width=17 must select a part"),
])  # fmt: skip
def test_bad_images(transform, error, message):
    with pytest.raises(error, match=message):
        transform(photo()).wait_to_read()
