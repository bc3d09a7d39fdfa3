"""Data sets, and how others are made of them. Expected values as MXNet 1.9.1 gives them."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

from minimx import nd, recordio
from minimx.gluon import data
from minimx.gluon.data.dataset import _DownloadedDataset


def double(x: int) -> int:
    return 2 * x


def test_simple() -> None:
    numbers = data.SimpleDataset([5, 6, 7])
    assert (len(numbers), numbers[1], numbers[-1], list(numbers)) == (3, 6, 7, [5, 6, 7])


def test_transform_passes_the_parts_of_a_tuple() -> None:
    pairs = data.SimpleDataset([(1, 10), (2, 20)])
    assert list(pairs.transform(lambda x, y: x + y)) == [11, 22]
    assert list(pairs.transform_first(double)) == [(2, 10), (4, 20)]
    assert list(data.SimpleDataset([1, 2]).transform_first(double)) == [2, 4]
    assert list(data.SimpleDataset([[1, 2]]).transform(len)) == [2]  # a list is one thing
    with pytest.raises(TypeError):
        pairs.transform(double)[0]


def test_lazy_transforms_run_for_each_look() -> None:
    runs = []

    def count(x: int) -> int:
        runs.append(x)
        return x

    lazy = data.SimpleDataset([1, 2]).transform(count)
    assert runs == []
    assert (lazy[0], lazy[0], runs) == (1, 1, [1, 1])
    eager = data.SimpleDataset([3, 4]).transform(count, lazy=False)
    assert (list(eager), eager[0], runs) == ([3, 4], 3, [1, 1, 3, 4])


def test_shard() -> None:
    numbers = data.SimpleDataset(range(9))
    shards = [list(numbers.shard(4, index)) for index in range(4)]
    assert shards == [[0, 1, 2], [3, 4], [5, 6], [7, 8]]
    assert list(data.SimpleDataset([1]).shard(2, 1)) == []


def test_take_and_sample() -> None:
    numbers = data.SimpleDataset(range(10))
    assert list(numbers.take(3)) == [0, 1, 2]
    assert list(numbers.take(None)) == list(numbers.take(1000)) == list(range(10))
    assert list(numbers.take(0)) == []
    assert list(numbers.sample(data.IntervalSampler(10, 5))) == [0, 5, 1, 6, 2, 7, 3, 8, 4, 9]
    assert list(numbers.sample(data.SequentialSampler(2, 4)).transform(double)) == [8, 10]


def test_filter_of_transformed() -> None:
    tens = data.SimpleDataset(range(30)).transform(lambda x: x + 1).filter(lambda x: x % 10 == 0)
    assert (list(tens), len(tens)) == ([10, 20, 30], 3)


def test_array_dataset() -> None:
    x, y = np.arange(6.0).reshape(3, 2), [7, 8, 9]
    assert data.ArrayDataset(y)[1] == 8
    first, second = data.ArrayDataset(x, y)[1]
    assert (first.tolist(), second) == ([2, 3], 8)
    label = data.ArrayDataset(nd.array([1, 2]))[0]
    assert type(label) is np.float32  # an NDArray of one axis is of numbers
    assert data.ArrayDataset(nd.ones((2, 3)), y[:2])[0][0].shape == (3,)
    inner = data.ArrayDataset(data.SimpleDataset(y).transform(double), range(3))
    assert list(inner) == [(14, 0), (16, 1), (18, 2)]
    assert [part.tolist() for part in data.ArrayDataset(x, np.array(y))[1:]] == [[[2, 3], [4, 5]], [8, 9]]


def test_record_file(tmp_path: Path) -> None:
    path = tmp_path / "some.rec"
    with recordio.MXIndexedRecordIO(tmp_path / "some.idx", path, "w") as file:
        for number in range(5):
            file.write_idx(10 * number, b"record %d" % number)
    records = data.RecordFileDataset(path)
    assert (len(records), records[3], records[-1]) == (5, b"record 3", b"record 4")
    with pytest.raises(IndexError, match="has 5 records; there is none at index 5"):
        records[5]
    again = pickle.loads(pickle.dumps(records))
    assert list(again) == list(records)
    with pytest.raises(FileNotFoundError):
        data.RecordFileDataset(tmp_path / "other.rec")


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 3, "thread_pool": True}])
def test_workers_share_a_record_file(tmp_path: Path, options: dict) -> None:
    path = str(tmp_path / "some.rec")
    with recordio.MXIndexedRecordIO(tmp_path / "some.idx", path, "w") as file:
        for number in range(60):
            file.write_idx(number, bytes([number]) * (1000 + number))
    records = data.RecordFileDataset(path)
    assert records[0] == bytes(1000)  # it is open already
    numbers = records.transform(lambda record: (record[0], len(record)))
    batches = list(data.DataLoader(numbers, 4, **options))
    assert [value for first, _ in batches for value in first.asnumpy()] == list(range(60))
    assert [value for _, second in batches for value in second.asnumpy()] == list(range(1000, 1060))


def test_downloaded(tmp_path: Path) -> None:
    class Squares(_DownloadedDataset):
        def _get_data(self) -> None:
            self._data, self._label = np.arange(4) ** 2, np.arange(4)

    assert Squares(tmp_path, None)[3] == (9, 3)
    assert Squares(tmp_path, lambda x, y: x - y)[3] == 6
    assert len(Squares(str(tmp_path), None)) == 4
    with pytest.raises(TypeError, match="Squares: transform must be a function"):
        Squares(tmp_path, 5)


def test_copies() -> None:
    numbers = data.ArrayDataset(np.arange(4), [1, 2, 3, 4]).transform_first(double)
    for made in (copy.deepcopy(numbers), pickle.loads(pickle.dumps(numbers))):
        assert list(made) == list(numbers)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: data.ArrayDataset(), AssertionError, "at least 1"),
        (lambda: data.ArrayDataset([1, 2], [1]), AssertionError, r"array\[0\] has length 2 while array\[1\] has 1"),
        (lambda: data.ArrayDataset([1, 2], np.ones((3, 2))), ValueError, "same length"),
        (lambda: data.ArrayDataset(5), TypeError, "argument 0 has no length"),
        (lambda: data.SimpleDataset(iter([1])), TypeError, "make a list"),
        (lambda: data.SimpleDataset([1, 2]).shard(2, 2), AssertionError, "no part 2 of 2"),
        (lambda: data.SimpleDataset([1, 2]).shard(2, -1), ValueError, "no part -1"),
        (lambda: data.SimpleDataset([1, 2]).shard(0, 0), ValueError, "no part 0 of 0"),
        (lambda: data.SimpleDataset([1, 2]).take(-1), ValueError, "count is -1"),
        (lambda: data.SimpleDataset([1, 2]).take("all"), TypeError, "count"),
        (lambda: data.SimpleDataset([1, 2]).sample([0]), TypeError, "Sampler is wanted"),
        (lambda: data.SimpleDataset([1, 2]).transform(3), TypeError, "function"),
        (lambda: data.SimpleDataset([1, 2]).transform_first(None), TypeError, "function"),
        (lambda: data.SimpleDataset([1, 2]).filter("x"), TypeError, "function"),
        (lambda: data.Dataset()[0], NotImplementedError, "no __getitem__"),
        (lambda: len(data.Dataset()), NotImplementedError, "no __len__"),
    ],
)
def test_wrong_arguments(make, kind, message) -> None:
    with pytest.raises(kind, match=message):
        make()
