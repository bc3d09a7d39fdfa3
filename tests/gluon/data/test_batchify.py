"""How samples become arrays."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import nd
from minimx.gluon.data import batchify
from minimx.gluon.data.dataloader import default_batchify_fn, default_mp_batchify_fn


@pytest.mark.parametrize(
    ("samples", "shape", "dtype"),
    [
        ([1, 2, 3], (3,), "int64"),
        ([1, 2.5], (2,), "float64"),
        ([True, False], (2,), "bool"),
        ([np.float32(1), np.int32(2)], (2,), "float64"),
        ([np.uint8(1), np.uint8(2)], (2,), "uint8"),
        ([[1, 2], [3, 4], [5, 6]], (3, 2), "int64"),
        ([np.ones((2, 3), np.float16)] * 4, (4, 2, 3), "float16"),
        ([nd.ones((2, 3)), nd.zeros((2, 3))], (2, 2, 3), "float32"),
        ([nd.ones((1,), dtype="int8")] * 2, (2, 1), "int8"),
    ],
)
def test_default(samples: list, shape: tuple, dtype: str) -> None:
    """As MXNet 1.9.1 has them."""
    for function, context in ((default_batchify_fn, mx.cpu()), (default_mp_batchify_fn, mx.cpu_shared())):
        batch = function(samples)
        assert (type(batch), batch.shape, np.dtype(batch.dtype).name, batch.context) == (nd.NDArray, shape, dtype, context)
        values = [sample.asnumpy() if isinstance(sample, nd.NDArray) else sample for sample in samples]
        np.testing.assert_array_equal(batch.asnumpy(), np.stack(values))


def test_default_of_tuples() -> None:
    first, (second, third) = default_batchify_fn([(1, (2, nd.ones(2))), (3, (4, nd.zeros(2)))])
    assert (first.asnumpy().tolist(), second.asnumpy().tolist(), third.asnumpy().tolist()) == ([1, 3], [2, 4], [[1, 1], [0, 0]])


def test_default_copies() -> None:
    array = np.arange(6).reshape(3, 2)
    batch = default_batchify_fn(array)
    array[:] = 0
    assert batch.asnumpy().tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    ("samples", "kind", "message"),
    [
        ([], ValueError, "without samples"),
        ([np.ones(2), np.ones(3)], ValueError, r"sample 0 of the batch has shape \(2,\), but sample 1 has \(3,\).*Pad"),
        ([nd.ones(2), nd.ones(3)], ValueError, r"sample 1 has \(3,\)"),
        ([[1, 2], [3]], ValueError, r"sample 1 has \(1,\)"),
        ([nd.ones(2), 3], TypeError, "sample 0 is an NDArray, but sample 1 is 3"),
        ([1, None], TypeError, "a sample is None, or has it as a part"),
        ([(1, 2), (3, object())], TypeError, "a sample is an object, or has it as a part"),
        (["a", "b"], TypeError, "dtype <U1 cannot be an NDArray.*AsList"),
        ([{"a": 1}] * 2, TypeError, "a sample is a dict, or"),
        ([np.uint16(1)] * 2, TypeError, "dtype uint16 cannot"),
        ([1 << 70], TypeError, "dtype object cannot"),
        ([(1, 2), (3,)], ValueError, "sample 0 has 2 parts, but sample 1 has 1"),
    ],
)
def test_default_refuses(samples: list, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        default_batchify_fn(samples)


def test_stack() -> None:
    assert batchify.Stack()([[1, 2], [3, 4]]).asnumpy().tolist() == [[1, 2], [3, 4]]
    assert batchify.Stack(use_shared_mem=True)([1, 2]).context == mx.cpu_shared()


@pytest.mark.parametrize("wrap", [list, np.array, nd.array])
def test_pad(wrap) -> None:
    samples = [wrap([1, 2, 3, 4]), wrap([4, 5, 6]), wrap([8, 2])]
    assert batchify.Pad()(samples).asnumpy().tolist() == [[1, 2, 3, 4], [4, 5, 6, 0], [8, 2, 0, 0]]
    batch, lengths = batchify.Pad(val=-1, round_to=3, ret_length=True, dtype="float16")(samples)
    assert (batch.shape, batch.dtype, batch.asnumpy()[2].tolist()) == ((3, 6), np.float16, [8, 2, -1, -1, -1, -1])
    assert (lengths.asnumpy().tolist(), lengths.dtype) == ([4, 3, 2], np.int32)


def test_pad_keeps_the_dtype() -> None:
    assert batchify.Pad()([[1], [2, 3]]).dtype == np.int64
    assert batchify.Pad()([np.ones(2, np.uint8), np.ones(1, np.uint8)]).dtype == np.uint8
    assert batchify.Pad()([nd.ones(2), nd.ones(1)]).dtype == np.float32


def test_pad_axes() -> None:
    samples = [np.ones((2, 3)), np.ones((2, 1))]
    assert batchify.Pad(axis=1)(samples).asnumpy()[1].tolist() == [[1, 0, 0], [1, 0, 0]]
    assert batchify.Pad(axis=-1, ret_length=True)(samples)[1].asnumpy().tolist() == [3, 1]
    assert batchify.Pad()([np.ones((2, 3)), np.ones((3, 1))]).shape == (2, 3, 3)
    with pytest.raises(ValueError, match=r"sample 1 has \(3, 1\); they may differ along axis 1, but not otherwise"):
        batchify.Pad(axis=1)([np.ones((2, 3)), np.ones((3, 1))])
    with pytest.raises(ValueError, match=r"sample 1 has \(2,\); they may differ along all axes"):
        batchify.Pad()([np.ones((2, 3)), np.ones(2)])
    with pytest.raises(ValueError, match="no axis 2"):
        batchify.Pad(axis=2)(samples)
    with pytest.raises(ValueError, match="no axis 0"):
        batchify.Pad()([1, 2])
    assert batchify.Pad()([[], [1.0]]).asnumpy().tolist() == [[0], [1]]


def test_append() -> None:
    arrays = batchify.Append()([[1, 2, 3], [4]])
    assert [array.shape for array in arrays] == [(1, 3), (1, 1)]
    assert [array.shape for array in batchify.Append(expand=False)([nd.ones((2, 3))])] == [(2, 3)]
    assert [array.shape for array in batchify.Append(batch_axis=1, use_shared_mem=True)([np.ones(3)])] == [(3, 1)]


def test_group() -> None:
    samples = [([1, 2, 3], 5, "a"), ([4], 6, "b")]
    for group in (
        batchify.Group(batchify.Pad(), batchify.Stack(), batchify.AsList()),
        batchify.Group([batchify.Pad(), batchify.Stack(), batchify.AsList()]),
    ):
        data, labels, names = group(samples)
        assert (data.asnumpy().tolist(), labels.asnumpy().tolist(), names) == ([[1, 2, 3], [4, 0, 0]], [5, 6], ["a", "b"])
    with pytest.raises(ValueError, match="2 functions, but sample 0 has 3 parts"):
        batchify.Group(len, len)(samples)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: batchify.Group(5), "argument 0 is 5"),
        (lambda: batchify.Group([len], len), "functions are wanted"),
        (lambda: batchify.Pad(round_to=0), "round_to is 0"),
        (lambda: batchify.Pad(val="x"), "val"),
        (lambda: batchify.Pad()([]), "got none"),
        (lambda: batchify.Pad()([(1, 2)]), "got tuples; use Group"),
        (lambda: batchify.Stack(use_shared_mem="yes"), "use_shared_mem"),
        (lambda: batchify.Append(batch_axis=None), "batch_axis"),
    ],
)
def test_wrong_arguments(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
