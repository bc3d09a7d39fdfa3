"""Samplers: which indices, in which order, in which batches."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx.gluon import data
from minimx.gluon.contrib import data as contrib_data


def test_sequential() -> None:
    assert list(data.SequentialSampler(4)) == [0, 1, 2, 3]
    assert list(data.SequentialSampler(2, start=7)) == [7, 8]
    assert list(data.SequentialSampler(0)) == []
    assert len(data.SequentialSampler(5, 3)) == 5


def test_random_is_a_permutation_that_the_seed_fixes() -> None:
    sampler = data.RandomSampler(50)
    mx.random.seed(3)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    mx.random.seed(3)
    assert list(sampler) == first
    assert type(first[0]) is int
    assert len(sampler) == 50


def test_filter_looks_at_each_sample_once() -> None:
    looked = []

    def even(sample: int) -> bool:
        looked.append(sample)
        return sample % 2 == 0

    sampler = data.FilterSampler(even, [3, 4, 5, 6])
    assert list(sampler) == list(sampler) == [1, 3]
    assert len(sampler) == 2
    assert looked == [3, 4, 5, 6]


@pytest.mark.parametrize(
    ("last_batch", "epochs"),
    [
        ("keep", [(4, [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]])] * 2),
        ("discard", [(3, [[0, 1, 2], [3, 4, 5], [6, 7, 8]])] * 2),
        # Recorded from MXNet 1.9.1
        (
            "rollover",
            [
                (3, [[0, 1, 2], [3, 4, 5], [6, 7, 8]]),
                (3, [[9, 0, 1], [2, 3, 4], [5, 6, 7]]),
                (4, [[8, 9, 0], [1, 2, 3], [4, 5, 6], [7, 8, 9]]),
            ],
        ),
    ],
)
def test_batches(last_batch: str, epochs: list[tuple[int, list[list[int]]]]) -> None:
    sampler = data.BatchSampler(data.SequentialSampler(10), 3, last_batch)
    for length, batches in epochs:
        assert len(sampler) == length
        assert list(sampler) == batches


def test_batches_of_any_iterable() -> None:
    assert list(data.BatchSampler(["a", "b", "c"], 2)) == [["a", "b"], ["c"]]


def test_interval() -> None:
    whole, some = data.IntervalSampler(7, 3), data.IntervalSampler(7, 3, rollover=False)
    assert (list(whole), len(whole)) == ([0, 3, 6, 1, 4, 2, 5], 7)
    assert (list(some), len(some)) == ([0, 3, 6], 3)
    assert contrib_data.IntervalSampler is contrib_data.sampler.IntervalSampler is data.IntervalSampler


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: data.SequentialSampler(-1), ValueError, "length is -1"),
        (lambda: data.SequentialSampler("many"), TypeError, "length"),
        (lambda: data.SequentialSampler(3, 0.5), TypeError, "start"),
        (lambda: data.RandomSampler(-2), ValueError, "length is -2"),
        (lambda: data.FilterSampler(5, [1]), TypeError, "function of a sample"),
        (lambda: data.BatchSampler([1], 0), ValueError, "batch_size is 0"),
        (lambda: data.BatchSampler([1], None), TypeError, "batch_size"),
        (lambda: data.BatchSampler([1], 1, "drop"), ValueError, "'keep', 'discard', or 'rollover', but got 'drop'"),
        (lambda: data.IntervalSampler(3, 4), AssertionError, "interval is 4"),
        (lambda: data.IntervalSampler(3, 0), ValueError, "interval is 0"),
        (lambda: iter(data.Sampler()), NotImplementedError, "no __iter__"),
        (lambda: len(data.Sampler()), NotImplementedError, "no __len__"),
    ],
)
def test_wrong_arguments(make, kind, message) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_order_does_not_touch_numpys_generator() -> None:
    np.random.seed(1)
    wanted = np.random.rand()
    np.random.seed(1)
    list(data.RandomSampler(10))
    assert np.random.rand() == wanted
