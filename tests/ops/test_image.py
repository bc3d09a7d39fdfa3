"""Functions of images: what random ones draw, what bytes become, and gradients. Values and errors are rows of cases_image.py."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, nd
from minimx.base import MXNetError
from minimx.ops.image_color import turned

RNG = np.random.default_rng(5)
PHOTO = RNG.integers(0, 256, (7, 9, 3)).astype(np.uint8)


def photo(dtype="uint8"):
    return nd.array(PHOTO, dtype=dtype)


RANDOM = {
    "flip_left_right": lambda x: nd.image.random_flip_left_right(x),
    "flip_top_bottom": lambda x: nd.image.random_flip_top_bottom(x),
    "brightness": lambda x: nd.image.random_brightness(x, 0.5, 1.5),
    "contrast": lambda x: nd.image.random_contrast(x, 0.5, 1.5),
    "saturation": lambda x: nd.image.random_saturation(x, 0.5, 1.5),
    "hue": lambda x: nd.image.random_hue(x, 0.5, 1.5),
    "color_jitter": lambda x: nd.image.random_color_jitter(x, 0.4, 0.4, 0.4, 0.4),
    "lighting": lambda x: nd.image.random_lighting(x, 1),
}


@pytest.mark.parametrize("name", RANDOM)
def test_what_is_drawn_depends_on_the_seed_alone(name):
    def draws():
        return [RANDOM[name](photo()).asnumpy().tobytes() for _ in range(12)]

    mx.random.seed(3)
    first = draws()
    mx.random.seed(3)
    assert draws() == first
    assert len(set(draws())) > 1


@pytest.mark.parametrize(("flip", "axis"), [(nd.image.random_flip_left_right, 1), (nd.image.random_flip_top_bottom, 0)])
def test_every_second_image_is_flipped(flip, axis):
    mx.random.seed(1)
    flipped = 0
    for _ in range(400):
        result = flip(photo()).asnumpy()
        turned_around = bool((result == np.flip(PHOTO, axis)).all())
        assert turned_around or (result == PHOTO).all()
        flipped += turned_around
    assert 160 < flipped < 240  # four standard deviations


def test_factors_fill_their_interval():
    mx.random.seed(1)
    ones = nd.ones((1, 1, 3))
    factors = [float(nd.image.random_brightness(ones, 0.5, 2).asnumpy()[0, 0, 0]) for _ in range(300)]
    assert 0.5 <= min(factors) < 0.55
    assert 1.95 < max(factors) < 2


def test_jitter_never_turns_an_image_to_its_negative():
    """A factor is at least 0, whatever amount is asked for."""
    mx.random.seed(1)
    for _ in range(50):
        assert nd.image.random_color_jitter(photo("float32"), 5, 0, 0, 0).asnumpy().min() >= 0


def test_bytes_are_cut_to_whole_numbers_and_kept_in_their_range():
    row = nd.array([[[0, 99, 101], [1, 200, 255]]], dtype="uint8")  # results recorded from MXNet 1.9.1
    assert nd.image.random_brightness(row, 1.3, 1.3).asnumpy().tolist() == [[[0, 128, 131], [1, 255, 255]]]
    assert nd.image.random_contrast(row, 3, 3).asnumpy().tolist() == [[[0, 80, 86], [0, 255, 255]]]
    assert nd.image.adjust_lighting(row, (1, 0, 0)).asnumpy().tolist() == [[[0, 66, 68], [0, 167, 222]]]
    assert nd.image.adjust_lighting(row.astype("int32"), (1, 0, 0)).asnumpy().tolist() == [[[-31, 66, 68], [-30, 167, 222]]]


def test_hue():
    """Recorded from MXNet 1.9.1 for a turn of a quarter, which computes in another order: up to 1 apart."""
    image = nd.array((np.arange(12) * 20).reshape(2, 2, 3), dtype="uint8")
    recorded = [[[40, 0, 39], [100, 60, 99]], [[160, 120, 159], [220, 180, 219]]]
    np.testing.assert_allclose(nd.image.random_hue(image, 0.25, 0.25).asnumpy(), recorded, atol=1)
    for whole in (0, 1, 3):
        np.testing.assert_array_equal(nd.image.random_hue(photo(), whole, whole).asnumpy(), PHOTO)


def test_a_third_of_the_circle_permutes_the_channels():
    planes = PHOTO.transpose(2, 0, 1).astype(np.float64)
    np.testing.assert_allclose(turned(np, planes.copy(), 1 / 3), planes[[2, 0, 1]], atol=1e-9)
    np.testing.assert_allclose(turned(np, planes.copy(), -1 / 3), planes[[1, 2, 0]], atol=1e-9)


# ---- gradients


def gradient(function, x, head=None):
    x.attach_grad()
    with autograd.record():
        y = function(x)
    y.backward(head)
    return x.grad.asnumpy()


def test_gradient_of_to_tensor():
    head = RNG.normal(size=(3, 7, 9)).astype(np.float32)
    for dtype in ("float32", "float64"):
        got = gradient(nd.image.to_tensor, photo(dtype), nd.array(head))
        assert got.dtype == dtype
        np.testing.assert_allclose(got, head.transpose(1, 2, 0) / 255, rtol=1e-6)
    head = RNG.normal(size=(2, 1, 3, 4)).astype(np.float32)
    np.testing.assert_allclose(
        gradient(nd.image.to_tensor, nd.ones((2, 3, 4, 1)), nd.array(head)), head.transpose(0, 2, 3, 1) / 255, rtol=1e-6
    )


@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation", "hue", "color_jitter", "lighting"])
def test_gradients_pass_colours_unchanged(name):
    head = RNG.normal(size=PHOTO.shape).astype(np.float32)
    np.testing.assert_array_equal(gradient(RANDOM[name], photo("float32"), nd.array(head)), head)


@pytest.mark.parametrize(("function", "message"), [
    (lambda x: nd.image.resize(x, 4), "_image_resize has no gradient, in MXNet neither"),
    (nd.image.random_flip_left_right, "flip with nd.image.flip_left_right, which has one"),
    (nd.image.random_flip_top_bottom, "flip with nd.image.flip_top_bottom, which has one"),
])  # fmt: skip
def test_functions_without_a_gradient_say_so(function, message):
    with pytest.raises(MXNetError, match=message):
        gradient(function, photo("float32"))
    x = photo("float32")
    with autograd.record():  # where nobody asks for the image's gradient
        function(x)


# ---- graphs


def test_in_graphs():
    x = mx.sym.Variable("x")
    with mx.name.NameManager():
        y = mx.sym.image.normalize(mx.sym.image.to_tensor(x), mean=(0.5, 0.25, 0), std=0.5)
    assert y.name == "normalize0"
    assert '"mean": "(0.5, 0.25, 0)"' in y.tojson()
    again = mx.sym.load_json(y.tojson())
    want = (PHOTO.transpose(2, 0, 1) / 255 - np.array([0.5, 0.25, 0]).reshape(3, 1, 1)) / 0.5
    np.testing.assert_allclose(again.eval(x=photo())[0].asnumpy(), want, rtol=1e-5, atol=1e-6)
    assert y.infer_shape(x=(2, 4, 5, 3))[1] == [(2, 3, 4, 5)]
