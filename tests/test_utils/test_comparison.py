"""Comparing arrays: tolerances by dtype, and messages that show where two arrays differ."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import nd
from minimx.base import ShapeError
from minimx.test_utils import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_almost_equal_ignore_nan,
    assert_almost_equal_with_err,
    checkShapes,
    compare_ndarray_tuple,
    default_atols,
    default_dtype,
    default_numeric_eps,
    default_rtols,
    effective_dtype,
    get_atol,
    get_etol,
    get_rtol,
    get_tolerance,
    get_tols,
    locationError,
    same,
    same_array,
)


def test_defaults_of_mxnet():
    assert default_dtype() is np.float32
    names = ("float16", "float32", "float64", "int32", "bool")
    assert [default_rtols()[np.dtype(name)] for name in names] == [1e-2, 1e-4, 1e-5, 0, 0]
    assert [default_atols()[np.dtype(name)] for name in names] == [1e-1, 1e-3, 1e-20, 0, 0]
    assert [default_numeric_eps()[np.dtype(name)] for name in names[:3]] == [1 / 64, 1 / 512, 1 / 16384]
    assert (get_rtol(), get_atol(), get_etol()) == (1e-5, 1e-20, 0)
    assert (get_rtol(0.5), get_atol(0.25), get_etol(0.1)) == (0.5, 0.25, 0.1)
    assert (get_rtol(dtype=np.float16), get_atol(dtype="float32")) == (1e-2, 1e-3)
    assert effective_dtype(nd.ones((1,), dtype="float16")) == np.float16


def test_the_looser_tolerance_counts():
    half, double = np.ones(2, np.float16), np.ones(2)
    assert get_tols(half, double, None, None) == (1e-2, 1e-1)
    assert get_tols(double, 1, None, None) == (1e-5, 1e-20)
    assert get_tols(half, double, 1e-7, None) == (1e-7, 1e-1)
    assert get_tols(half, double, {np.float16: 0.5}, {np.dtype("float64"): 2}) == (0.5, 2)
    assert get_tolerance(np.ones(1, np.int16), None, default_rtols()) == 1e-5  # a dtype of which nothing is said


def test_yes_or_no():
    assert same(np.array([1, 2]), nd.array([1, 2]))
    assert not same(np.array([1, 2]), [[1, 2]])
    assert almost_equal(np.array([1.0]), np.array([1.0 + 5e-6]))
    assert not almost_equal(np.array([1.0]), np.array([1.0 + 5e-5]))
    assert almost_equal(np.ones((2, 2)), np.ones(2))
    with pytest.raises(AssertionError, match=r"shapes differ: \(2, 2\) and \(2,\)"):
        almost_equal(np.ones((2, 2)), np.ones(2), use_broadcast=False)
    assert almost_equal(np.array([np.nan]), np.array([np.nan]), equal_nan=True)
    with pytest.raises(ShapeError):
        checkShapes(np.ones(2), np.ones(3))


@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        (nd.ones((2,)), np.ones(2) + 5e-4, {}),
        (nd.ones((2,)), nd.ones((2,)), {}),
        (np.float16(1), np.float64(1.05), {}),
        ([1, 2], (1, 2), {}),
        (3, 3, {}),
        (np.zeros((0, 3)), np.zeros((0, 3)), {}),
        (np.array([np.inf, -np.inf]), np.array([np.inf, -np.inf]), {}),
        (np.array([np.nan]), np.array([np.nan]), {"equal_nan": True}),
        (np.array([True]), np.array([True]), {}),
        (np.ones(3), np.ones(3) * 1.5, {"rtol": 0.4}),
        (np.ones(3), np.ones(3) * 1.5, {"rtol": {np.float64: 0.4}}),
        (np.ones((2, 3)), np.ones(3), {}),
    ],
)
def test_close_enough(a, b, options):
    assert_almost_equal(a, b, **options)


@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        (nd.ones((2,)), np.ones(2) + 2e-3, {}),
        (np.ones(2), np.ones(2) + 2e-3, {}),
        (np.ones(2, np.int32), np.array([1, 2], np.int32), {}),
        (np.array([np.nan]), np.array([np.nan]), {}),
        (np.array([np.nan]), np.array([1.0]), {"equal_nan": True}),
        (np.array([np.inf]), np.array([-np.inf]), {}),
        (np.array([True]), np.array([False]), {}),
        (np.ones((2, 3)), np.ones(3), {"use_broadcast": False}),
        (3, 4, {}),
    ],
)
def test_not_close_enough(a, b, options):
    with pytest.raises(AssertionError):
        assert_almost_equal(a, b, **options)


def test_the_message_shows_the_worst_places():
    a = np.zeros((3, 4))
    b = a.copy()
    b[1, 2], b[2, 3] = 1e-3, -5
    with pytest.raises(AssertionError) as caught:
        assert_almost_equal(a, b, rtol=0, atol=1e-4, names=("got", "wanted"))
    lines = str(caught.value).splitlines()
    assert lines[0] == (
        "got float64[3, 4] and wanted float64[3, 4] differ in 2 of 12 elements by more than rtol=0, atol=0.0001; "
        "the largest error is 50000 times the tolerance. The places, the worst first:"
    )
    assert lines[1].startswith("  (2, 3): got=")
    assert lines[2].startswith("  (1, 2): got=")
    assert len(lines) == 3


def test_how_many_places_are_listed_and_counted():
    with pytest.raises(AssertionError) as caught:
        assert_almost_equal(np.zeros(50), np.ones(50), mismatches=(3, 20))
    assert "differ in at least 20 of 50 elements" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 4
    with pytest.raises(AssertionError, match="differ in 50 of 50 elements"):
        assert_almost_equal(np.zeros(50), np.ones(50), mismatches=(3, 0))


def test_printing_of_numpy_is_left_alone():
    before = np.get_printoptions()
    with pytest.raises(AssertionError):
        assert_almost_equal(np.zeros(3), np.ones(3))
    assert np.get_printoptions() == before


def test_the_other_assertions():
    assert_allclose(np.array([1.0, np.nan]), np.array([1.0 + 1e-8, np.nan]))
    with pytest.raises(AssertionError):
        assert_allclose(np.array([1.0]), np.array([1.0 + 1e-6]))
    far = np.array([0.0, 0, 0, 1])
    assert_almost_equal_with_err(far, np.zeros(4), etol=0.25)
    with pytest.raises(AssertionError, match="1 of 4"):
        assert_almost_equal_with_err(far, np.zeros(4), etol=0.2)
    with pytest.raises(AssertionError):
        assert_almost_equal_with_err(far, np.zeros(4))
    assert_almost_equal_ignore_nan(np.array([np.nan, 1, 2]), np.array([5, np.nan, 2]))
    with pytest.raises(AssertionError):
        assert_almost_equal_ignore_nan(np.array([np.nan, 1, 2]), np.array([5, np.nan, 3]))
    compare_ndarray_tuple((nd.ones((2,)), (nd.zeros((1,)), None)), (nd.ones((2,)), (nd.zeros((1,)), None)))
    compare_ndarray_tuple(None, nd.ones((2,)))
    with pytest.raises(AssertionError):
        compare_ndarray_tuple((nd.ones((2,)),), (nd.zeros((2,)),))
    place = locationError(np.array([[1.0, 2]]), np.array([[1.0, 3]]), (0, 1), ("a", "b"), maxError=True)
    assert place == "largest error at (0, 1): a=2.00000000, b=3.00000000"


def test_sharing_memory():
    x = nd.arange(6)
    assert same_array(x, x.reshape((6,)))
    assert same_array(x, x.detach())
    assert not same_array(x, x.copy())
    large = nd.array([1e30, 1])  # adding 1 changes nothing here, and must not be taken for sharing
    assert not same_array(large, nd.array([1e30, 2]))
    assert x.asnumpy().tolist() == [0, 1, 2, 3, 4, 5]


def test_it_is_found_from_the_package():
    assert mx.test_utils.same is same
    assert {"assert_almost_equal", "rand_ndarray", "check_consistency"} <= set(mx.test_utils.__all__)
    assert len(set(mx.test_utils.__all__)) == len(mx.test_utils.__all__)


def test_what_test_files_take_from_it_by_a_star():
    found: dict[str, object] = {}
    exec("from minimx.test_utils import *", found)
    assert found["mx"] is mx
    assert found["np"] is np
    assert found["rnd"] is np.random
    assert found["array"] is nd.array
    assert found["assert_almost_equal"] is assert_almost_equal
