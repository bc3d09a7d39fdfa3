"""Turned images: values recorded from MXNet 1.9.1."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx.base import ArgumentError, DTypeError, ShapeError
from minimx.image import imrotate, random_rotate

SMALL = np.arange(2 * 4 * 5).reshape(2, 1, 4, 5).astype(np.float32)

# zoom_in, zoom_out: the second row of the first image turned by 30 degrees, and of the second by -90
TURNED = {
    (False, False): ([0.8529, 4.2189, 7.5849, 10.951, 14.3170], [18.25, 34.0, 29.0, 24.0, 10.75]),
    (True, False): ([3.7006, 5.9581, 8.2156, 10.4731, 12.7307], [32.94, 33.1, 29.1, 25.1, 19.44]),
    (False, True): ([0, 1.6258, 6.6446, 11.6634, 0.7032], [0, 35.125, 28.875, 22.625, 0]),
}


@pytest.mark.parametrize("zoom", TURNED)
def test_as_mxnet(zoom):
    turned = imrotate(mx.nd.array(SMALL), mx.nd.array([30, -90]), *zoom)
    np.testing.assert_allclose(turned.asnumpy()[:, 0, 1], TURNED[zoom], atol=2e-3)
    one = imrotate(mx.nd.array(SMALL[0]), 30, *zoom)
    np.testing.assert_allclose(one.asnumpy()[0, 1], TURNED[zoom][0], atol=2e-3)


def test_a_quarter_turn_goes_counterclockwise():
    square = np.arange(9).reshape(1, 3, 3).astype(np.float32)
    np.testing.assert_allclose(imrotate(mx.nd.array(square), 90).asnumpy()[0], np.rot90(square[0]), atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 1, 7), (2, 3, 5, 1)])
def test_thin_images(shape):
    assert np.isfinite(imrotate(mx.nd.ones(shape), 33, zoom_in=True).asnumpy()).all()


def test_gradient():
    images = mx.nd.array(SMALL)
    images.attach_grad()
    with mx.autograd.record():
        total = imrotate(images, 90, zoom_out=True).sum()
    total.backward()
    assert images.grad.asnumpy().sum() > 0


def test_random_rotate_as_mxnet():
    np.random.seed(1)
    two = random_rotate(mx.nd.array(SMALL), (-20, 20)).asnumpy()[:, 0, 1]
    np.testing.assert_allclose(two[0], [5.4403, 6.2664, 6.9752, 7.6841, 8.3929], atol=2e-3)
    np.testing.assert_allclose(two[1], [23.5976, 25.3519, 27.1061, 28.8604, 28.9421], atol=2e-3)
    np.random.seed(1)
    np.testing.assert_allclose(random_rotate(mx.nd.array(SMALL[0]), (-20, 20)).asnumpy()[0, 1], two[0], atol=1e-4)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: imrotate(x, 1, True, True), ValueError, "zoom_in and zoom_out exclude each other"),
    (lambda x: imrotate(x.astype("float64"), 1), TypeError, r"dtype float64; use astype\('float32'\)"),
    (lambda x: imrotate(x[0], mx.nd.array([1])), TypeError, "of one image the angle is a number, got an NDArray"),
    (lambda x: imrotate(x[0, 0], 1), ValueError, r"shape \(4, 5\); \(C, H, W\) or \(N, C, H, W\) is wanted"),
    (lambda x: imrotate(x, mx.nd.array([1, 2, 3])), ValueError, r"an NDArray of shape \(3,\); 2 images take a number"),
    (lambda x: imrotate(x, "1"), ShapeError, "the angles are '1'; 2 images"),
    (lambda x: imrotate(SMALL, 1), ArgumentError, "src must be an NDArray"),
    (lambda x: random_rotate(x, 20), ArgumentError, r"angle_limits is 20; \(lower, upper\), in degrees"),
    (lambda x: random_rotate(x.astype("int32"), (0, 1)), DTypeError, "int32"),
])  # fmt: skip
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call(mx.nd.array(SMALL))
