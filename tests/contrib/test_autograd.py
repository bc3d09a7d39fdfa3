"""The first edition of autograd gives the same gradients as the present one."""

from __future__ import annotations

import numpy as np
import pytest

from minimx import autograd as present, nd
from minimx.contrib import autograd


def test_gradients_and_loss():
    x, y = nd.array([[1.0, 2], [3, 4]]), nd.array([[5.0, 6], [7, 8]])
    gradients, result = autograd.grad_and_loss(lambda a, b: a + a * b)(x, y)
    np.testing.assert_array_equal(result.asnumpy(), (x + x * y).asnumpy())
    np.testing.assert_array_equal(gradients[0].asnumpy(), (y + 1).asnumpy())
    np.testing.assert_array_equal(gradients[1].asnumpy(), x.asnumpy())
    for argnum in (0, [0]):
        (only,) = autograd.grad(lambda a, length: a * length, argnum)(x, 3)
        assert (only.asnumpy() == 3).all()
    with pytest.raises(AssertionError, match="gradients are those of NDArrays, got 3"):
        autograd.grad(lambda a, length: a * length)(x, 3)


def test_sections():
    x = nd.ones(3)
    gradient = nd.zeros(3)
    autograd.mark_variables([x], [gradient])
    with autograd.train_section():
        assert present.is_recording()
        assert present.is_training()
        y = x * 2
        with autograd.test_section():
            assert not present.is_recording()
            assert not present.is_training()
        assert present.is_recording()
    assert not present.is_recording()
    autograd.compute_gradient([y])
    assert gradient.asnumpy().tolist() == [2, 2, 2]
    assert autograd.set_is_training(True) is False
    assert autograd.set_is_training(False) is True


def test_backward_of_several_outputs():
    x = nd.arange(3)
    gradient = nd.zeros(3)
    autograd.mark_variables([x], [gradient])
    with autograd.train_section():
        outputs = [x * 2, x * 3]
    autograd.backward(outputs, [None, nd.array([1, 2, 3])])
    assert gradient.asnumpy().tolist() == [5, 8, 11]
    with pytest.raises(AssertionError, match="outputs must be a list"):
        autograd.backward(x)
    with pytest.raises(AssertionError, match="there are 2 outputs, but 1 out_grads"):
        autograd.backward(outputs, [None])
