"""NDArrayIter: batches, names, order and ends; expected numbers are those of MXNet 1.9.1."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import nd
from minimx.base import ArgumentError, ShapeError
from minimx.io import DataBatch, DataDesc, DataIter, NDArrayIter


def numbers(batches):
    return [batch.data[0].asnumpy().astype(int).tolist() for batch in batches]


# ---- what a batch is


def test_description():
    plain = DataDesc("data", (2, 3))
    assert plain == ("data", (2, 3))
    assert (plain.name, plain.shape, plain.dtype, plain.layout) == ("data", (2, 3), np.float32, "NCHW")
    assert repr(DataDesc("a", (4,), "int32", "N")) == "DataDesc[a,(4,),int32,N]"
    assert [DataDesc.get_batch_axis(layout) for layout in (None, "NCHW", "TNC", "C")] == [0, 0, 1, -1]
    (made,) = DataDesc.get_list([("a", (1, 2))], [("a", np.int8)])
    assert (made, made.dtype) == (("a", (1, 2)), np.int8)
    assert DataDesc.get_list([("a", (1, 2))], None)[0].dtype is np.float32


def test_batch():
    batch = DataBatch([nd.ones((2, 3))])
    assert str(batch) == "DataBatch: data shapes: [(2, 3)] label shapes: None"
    batch = DataBatch(data=[nd.ones((2, 3)), nd.ones((7, 8))], label=[nd.ones((4, 5))], pad=1)
    assert str(batch) == "DataBatch: data shapes: [(2, 3), (7, 8)] label shapes: [(4, 5)]"
    assert (batch.pad, batch.index, batch.bucket_key) == (1, None, None)
    with pytest.raises(ArgumentError, match=r"label must be a list of arrays.*write \[label\]"):
        DataBatch([nd.ones((2,))], nd.ones((2,)))


def test_an_iterator_of_ones_own():
    class Count(DataIter):
        at = 0

        def iter_next(self):
            self.at += 1
            return self.at < 3

        def getdata(self):
            return [nd.array([self.at])]

    count = Count(1)
    assert numbers(count) == [[1], [2]]
    assert count.batch_size == 1
    with pytest.raises(NotImplementedError, match="DataIter must override iter_next, or next"):
        DataIter().next()
    count.reset()  # does nothing unless it is overridden


# ---- the last batch


def test_pad():
    batches = NDArrayIter(np.arange(10), np.arange(10) * 2, 4)
    for _ in range(2):
        seen = list(batches)
        assert numbers(seen) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1]]
        assert [batch.pad for batch in seen] == [0, 0, 2]
        assert seen[2].label[0].asnumpy().tolist() == [16, 18, 0, 2]
        assert seen[2].index.tolist() == [8, 9, 0, 1]
        assert list(batches) == []  # until it is reset
        batches.reset()


def test_pad_that_is_longer_than_the_data():
    batches = NDArrayIter(np.arange(10), batch_size=205)
    np.testing.assert_array_equal(next(batches).data[0].asnumpy(), np.concatenate([np.tile(np.arange(10), 20), np.arange(5)]))
    assert batches.getpad() == 195


def test_discard():
    batches = NDArrayIter(np.arange(10), batch_size=4, last_batch_handle="discard")
    for _ in range(2):
        assert numbers(batches) == [[0, 1, 2, 3], [4, 5, 6, 7]]
        batches.reset()
    assert list(NDArrayIter(np.arange(3), batch_size=4, last_batch_handle="discard")) == []


def test_roll_over():
    batches = NDArrayIter(np.arange(10), np.arange(10) + 5, 3, last_batch_handle="roll_over")
    passes, pads = [], []
    for _ in range(5):
        seen = list(batches)
        passes.append(numbers(seen))
        pads.append([batch.pad for batch in seen])
        for batch in seen:
            np.testing.assert_array_equal(batch.label[0].asnumpy(), batch.data[0].asnumpy() + 5)
        batches.reset()
    assert passes == [
        [[0, 1, 2], [3, 4, 5], [6, 7, 8]],
        [[9, 0, 1], [2, 3, 4], [5, 6, 7]],
        [[8, 9, 0], [1, 2, 3], [4, 5, 6], [7, 8, 9]],
        [[0, 1, 2], [3, 4, 5], [6, 7, 8]],
        [[9, 0, 1], [2, 3, 4], [5, 6, 7]],
    ]
    assert pads[1:3] == [[1, 0, 0], [2, 0, 0, 0]]
    list(batches)
    batches.hard_reset()
    assert numbers(batches)[0] == [0, 1, 2]


def test_roll_over_of_batches_larger_than_the_data():
    batches = NDArrayIter(np.arange(3), batch_size=5, last_batch_handle="roll_over")
    found = []
    for _ in range(7):
        found += numbers(batches)
        batches.reset()
    assert found == [[0, 1, 2, 0, 1], [2, 0, 1, 2, 0], [1, 2, 0, 1, 2], [0, 1, 2, 0, 1]]


def test_roll_over_forgets_what_a_pass_that_was_left_early_had():
    batches = NDArrayIter(np.arange(5), batch_size=2, last_batch_handle="roll_over")
    next(batches)
    batches.reset()
    assert numbers(batches) == [[0, 1], [2, 3]]


# ---- order


def test_shuffle_follows_the_seed():
    def passes():
        mx.random.seed(5)
        batches = NDArrayIter(np.arange(12), np.arange(12), 4, shuffle=True)
        found = []
        for _ in range(2):
            for batch in batches:
                np.testing.assert_array_equal(batch.data[0].asnumpy(), batch.label[0].asnumpy())
                np.testing.assert_array_equal(batch.data[0].asnumpy(), batch.index)
                found.append(batch.index.tolist())
            batches.reset()
        return np.reshape(found, (2, 12))

    first, second = passes()
    assert sorted(first) == sorted(second) == list(range(12))
    assert first.tolist() != second.tolist() != list(range(12))
    np.testing.assert_array_equal(passes(), [first, second])


def test_shuffle_rolls_over_the_examples_that_were_left():
    mx.random.seed(1)
    batches = NDArrayIter(np.arange(7), batch_size=3, shuffle=True, last_batch_handle="roll_over")
    seen = np.ravel(numbers(batches)).tolist()
    (left,) = set(range(7)) - set(seen)
    batches.reset()
    assert numbers(batches)[0][0] == left


def test_order_of_the_attribute_idx():
    data = np.arange(20).reshape(10, 2)
    batches = NDArrayIter(data, batch_size=1, shuffle=True)
    for place, batch in zip(batches.idx.tolist(), batches):
        np.testing.assert_array_equal(batch.data[0].asnumpy(), data[place : place + 1])


# ---- names, shapes, kinds of data


def test_names_and_shapes():
    batches = NDArrayIter(np.zeros((10, 2, 2)), np.ones((10, 1)), 3)
    assert repr(batches.provide_data) == "[DataDesc[data,(3, 2, 2),<class 'numpy.float32'>,NCHW]]"
    assert repr(batches.provide_label) == "[DataDesc[softmax_label,(3, 1),<class 'numpy.float32'>,NCHW]]"
    assert (batches.num_data, batches.num_source, batches.cursor) == (10, 2, -3)
    several = NDArrayIter([np.zeros((4, 2)), np.ones(4)], batch_size=2, data_name="x")
    assert several.provide_data == [("_0_x", (2, 2)), ("_1_x", (2,))]
    assert several.provide_label == []
    assert next(several).label == []
    named = NDArrayIter({"b": np.zeros((4, 2)), "a": nd.ones((4,), dtype="int32")}, {"y": [1, 2, 3, 4]}, 2)
    assert named.provide_data == [("a", (2,)), ("b", (2, 2))]
    assert [each.dtype for each in named.provide_data] == [np.int32, np.float32]
    assert named.provide_label == [("y", (2,))]
    assert [array.shape for array in next(named).data] == [(2,), (2, 2)]


def test_layout():
    data = np.arange(24).reshape(2, 6, 2)
    batches = NDArrayIter(data, data[:1], 4, layout="TNC")
    assert batches.provide_data[0] == ("data", (2, 4, 2))
    assert batches.provide_data[0].layout == "TNC"
    first, second = batches
    np.testing.assert_array_equal(first.data[0].asnumpy(), data[:, :4])
    np.testing.assert_array_equal(second.data[0].asnumpy(), data[:, [4, 5, 0, 1]])
    np.testing.assert_array_equal(second.label[0].asnumpy(), data[:1, [4, 5, 0, 1]])


def test_a_batch_is_a_copy_on_the_device_of_its_data():
    data = nd.arange(6, ctx=mx.cpu(1))
    batches = NDArrayIter(data, batch_size=3)
    batch = next(batches)
    assert batch.data[0].context == mx.cpu(1)
    batch.data[0][:] = 7
    assert data.asnumpy().tolist() == list(range(6))
    assert next(NDArrayIter(data, batch_size=4, shuffle=True)).data[0].context == mx.cpu(1)


def test_the_other_way_to_read():
    batches = NDArrayIter(np.arange(5), np.arange(5), 3)
    with pytest.raises(ArgumentError, match=r"no current batch; call next\(\)"):
        batches.getdata()
    assert batches.iter_next()
    assert batches.getdata()[0].asnumpy().tolist() == batches.getlabel()[0].asnumpy().tolist() == [0, 1, 2]
    assert batches.getindex().tolist() == [0, 1, 2]
    assert batches.iter_next()
    assert batches.getpad() == 1
    assert not batches.iter_next()
    with pytest.raises(AssertionError, match=r"reset\(\) at the end"):
        batches.getlabel()


def test_unequal_lengths():
    with pytest.raises(ShapeError, match="softmax_label has 3 examples, data has 4; there must be as many"):
        NDArrayIter(np.zeros(4), np.zeros(3))
    with pytest.warns(UserWarning, match="data2 has 20 examples; only 10 are used, as data1 has no more"):
        batches = NDArrayIter({"data1": np.zeros((10, 2)), "data2": np.zeros((20, 2))}, batch_size=10)
    assert [array.shape for array in next(batches).data] == [(10, 2), (10, 2)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data": None}, "data must be an array, or a list or dictionary of arrays, got None"),
        ({"data": "abc"}, "data must be an array"),
        ({"data": []}, "data has no arrays"),
        ({"data": {"x": "abc"}}, "x is 'abc', which makes no array"),
        ({"data": np.zeros(3), "label": 7}, "label must be an array"),
        ({"data": np.zeros(3), "batch_size": 0}, "batch_size is 0; it must be 1 or more"),
        ({"data": np.zeros(3), "batch_size": 1.5}, "batch_size must be an int"),
        ({"data": np.zeros(3), "last_batch_handle": "keep"}, "last_batch_handle='keep'; choose 'pad', 'discard' or 'roll_over'"),
        ({"data": np.zeros(3), "layout": "TC"}, "layout='TC' does not say which axis"),
        ({"data": np.zeros(3), "layout": "TN"}, r"data has shape \(3,\), which has no axis 1"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        NDArrayIter(**arguments)


def test_absent_names():
    with pytest.raises(AttributeError, match="no attribute 'ImageRecordIter_v1'"):
        _ = mx.io.ImageRecordIter_v1
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = mx.io.Nothing
