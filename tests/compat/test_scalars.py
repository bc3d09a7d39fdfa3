"""Arrays of one element that convert to numbers, for scripts that were written before NumPy 2.4."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from minimx import nd
from minimx.compat import lent, scalars


@pytest.fixture
def lending(monkeypatch):
    monkeypatch.setattr(scalars, "refused", lambda: True)  # a NumPy that converts is no other for what is lent
    monkeypatch.setattr(lent, "_told", set())
    scalars.lend()
    yield
    scalars.take_back()


def test_one_element_is_a_number(lending):
    one = nd.array([1.75]).asnumpy()
    assert (float(one), int(one), complex(one)) == (1.75, 1, 1.75 + 0j)
    assert "%.1f %d" % (one, one) == "1.8 1"  # noqa: UP031  # as scripts write it
    assert math.sqrt(nd.array([[4.0]]).asnumpy()) == 2
    assert int(nd.array([7], dtype="int64").asnumpy()) == 7
    # and so is what is computed with it
    assert float((one + 1) / 2) == 1.375
    assert float(np.sqrt(nd.array([4.0]).asnumpy())) == 2
    assert (float(np.round(one)), float(one.round(2))) == (2, 1.75)
    assert one.round(out=np.zeros(1, np.float32)).tolist() == [2]


def test_it_is_told_once_with_the_line(lending, capsys):
    one = nd.array([2.0]).asnumpy()
    assert capsys.readouterr().err == ""
    assert [float(one) for _ in range(3)] == [2, 2, 2]
    said = capsys.readouterr().err
    assert said.startswith(f"minimx lends float(x.asnumpy()), {scalars.NOTE} (")
    assert said.count("\n") == 1
    assert "test_scalars.py, line " in said


def test_it_is_numpys_array_for_all_else(lending):
    one = nd.array([2.0]).asnumpy()
    assert isinstance(one, np.ndarray)
    assert (repr(one), str(one)) == ("array([2.], dtype=float32)", "[2.]")
    for value in (one.sum(), one.mean(), one.max(), one[0], np.mean(one), np.dot(one, one), one.argmax()):
        assert type(value).__module__ == "numpy"
        assert np.ndim(value) == 0
        assert not isinstance(value, np.ndarray)
    assert type(pickle.loads(pickle.dumps(one))) is np.ndarray
    assert one.tolist() == [2.0]
    assert nd.array(one).asscalar() == 2
    with pytest.raises(TypeError, match=r"only an array of one element .* not one of shape \(2,\)"):
        float(one + np.ones(2))


def test_other_arrays_are_numpys_own(lending):
    assert type(nd.ones((2,)).asnumpy()) is np.ndarray
    assert type(nd.ones((2, 1)).asnumpy()) is np.ndarray


def test_taking_back():
    before = nd.NDArray.asnumpy
    scalars.lend()
    scalars.lend()
    assert (nd.NDArray.asnumpy is before) == (not scalars.refused())
    scalars.take_back()
    assert nd.NDArray.asnumpy is before
    assert type(nd.ones((1,)).asnumpy()) is np.ndarray
