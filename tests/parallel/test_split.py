"""A batch shared out among devices."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import gluon, nd
from minimx.base import ArgumentError, ShapeError
from minimx.parallel import split_and_load, split_data


@pytest.mark.parametrize("rows", range(9))
@pytest.mark.parametrize("parts", [1, 2, 3, 5])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_parts_differ_by_one_row_at_most(rows: int, parts: int, axis: int) -> None:
    shape = (rows, 2) if axis == 0 else (2, rows)
    data = np.arange(2.0 * rows).reshape(shape)
    found = split_data(nd.array(data), parts, axis, even_split=False)
    lengths = [part.shape[axis] for part in found]
    assert len(found) == parts
    assert max(lengths) - min(lengths) <= 1
    assert lengths == sorted(lengths, reverse=True)
    np.testing.assert_array_equal(np.concatenate([part.asnumpy() for part in found], axis), data)


def test_loaded_on_devices() -> None:
    with mx.device.simulate_gpus(3):
        devices = [mx.gpu(i) for i in range(3)]
        parts = split_and_load(np.arange(8.0).reshape(4, 2), devices, even_split=False)
        assert [part.context for part in parts] == devices
        assert [part.asnumpy().tolist() for part in parts] == [[[0, 1], [2, 3]], [[4, 5]], [[6, 7]]]
        (whole,) = split_and_load([1, 2], [mx.gpu(2)])
        assert whole.context == mx.gpu(2)
        assert whole.asnumpy().tolist() == [1, 2]
    assert gluon.utils.split_and_load is split_and_load


def test_what_cannot_be_split() -> None:
    x = nd.ones((3, 2))
    with pytest.raises(ShapeError, match=r"\(3, 2\) cannot be split evenly into 2 slices along axis 0"):
        split_data(x, 2)
    with pytest.raises(ShapeError, match="has no axis 2"):
        split_data(x, 2, 2)
    with pytest.raises(ArgumentError, match="at least 1"):
        split_data(x, 0)
    with pytest.raises(ArgumentError, match="num_slice"):
        split_data(x, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="the list of devices is empty"):
        split_and_load(x, [])
    with pytest.raises(ArgumentError, match=r"a list of devices is wanted, such as \[mx.cpu\(0\), mx.cpu\(1\)\], got a Context"):
        split_and_load(x, mx.cpu(0))  # type: ignore[arg-type]
