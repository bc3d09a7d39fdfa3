"""Samplers: in which order the samples of a data set are visited, and which of them make a batch.

A sampler is gone through anew in each epoch, and yields indices; a BatchSampler groups those of another one into lists. A DataLoader asks
them in the parent process only, so that the order does not depend on the number of workers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ...base import ArgumentError, shown
from ...device import cpu
from ...fields import converted
from ...seeds import next_key

__all__ = ["BatchSampler", "FilterSampler", "IntervalSampler", "RandomSampler", "Sampler", "SequentialSampler"]


class SamplerArgumentError(ArgumentError, AssertionError):
    """An argument that makes no sampler. (MXNet asserts it: hence the second base.)"""


class Sampler:
    """The base of samplers: `__iter__` gives the indices of an epoch, `__len__` says how many they are."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__, which gives the indices of an epoch")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no __len__, which says how many indices an epoch has")


def _count(name: str, value: Any) -> int:
    """`value` as a number of samples. Raises ArgumentError."""
    count: int = converted(name, "length", "int", value)
    if count < 0:
        raise SamplerArgumentError(f"{name}: length is {count}; it must be 0 or more")
    return count


class SequentialSampler(Sampler):
    """`start`, `start + 1`, ..., `start + length - 1`. **Source** MXNet `gluon.data.SequentialSampler`.

    >>> list(SequentialSampler(3, start=5))
    [5, 6, 7]
    """

    def __init__(self, length: int, start: int = 0) -> None:
        self._length = _count("SequentialSampler", length)
        self._start: int = converted("SequentialSampler", "start", "int", start)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._start, self._start + self._length))

    def __len__(self) -> int:
        return self._length


class RandomSampler(Sampler):
    """The indices below `length` in random order, another one in each epoch, as `mx.random.seed` has it.

    **Source** MXNet `gluon.data.RandomSampler`, which draws the order from NumPy's global generator.
    """

    def __init__(self, length: int) -> None:
        self._length = _count("RandomSampler", length)

    def __iter__(self) -> Iterator[int]:
        order = next_key(cpu()).permutation(np, self._length)
        return iter(order.tolist())

    def __len__(self) -> int:
        return self._length


class FilterSampler(Sampler):
    """The indices of the samples of `dataset` for which `fn(sample)` is true; every sample is looked at once, when it is made.

    **Source** MXNet `gluon.data.FilterSampler`.

    >>> list(FilterSampler(lambda sample: sample > 2, [1, 5, 2, 4]))
    [1, 3]
    """

    def __init__(self, fn: Callable[[Any], Any], dataset: Any) -> None:
        if not callable(fn):
            raise ArgumentError(f"FilterSampler: fn must be a function of a sample, got {shown(fn)}")
        self._fn = fn
        self._dataset = dataset
        self._indices = [index for index in range(len(dataset)) if fn(dataset[index])]

    def __iter__(self) -> Iterator[int]:
        return iter(self._indices)

    def __len__(self) -> int:
        return len(self._indices)


class BatchSampler(Sampler):
    """The indices that `sampler` gives, in lists of `batch_size`.

    **Args** `last_batch`: what becomes of indices that are too few for a last batch: "keep" gives them as a shorter one, "discard" leaves
    them out, "rollover" puts them before the first ones of the next epoch. **Raises** ValueError for another word, or a size below 1.
    **Source** MXNet `gluon.data.BatchSampler`.

    >>> list(BatchSampler(SequentialSampler(5), 2, "keep"))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, last_batch: str = "keep") -> None:
        self._sampler = sampler
        self._batch_size: int = converted("BatchSampler", "batch_size", "int", batch_size)
        if self._batch_size < 1:
            raise ArgumentError(f"BatchSampler: batch_size is {batch_size}; it must be 1 or more")
        if last_batch not in ("keep", "discard", "rollover"):
            raise ArgumentError(f"last_batch must be one of 'keep', 'discard', or 'rollover', but got {shown(last_batch)}")
        self._last_batch = last_batch
        self._rolled: list[Any] = []  # what the last epoch left for the next one

    def __iter__(self) -> Iterator[list[Any]]:
        rolled, self._rolled = self._rolled, []
        indices = itertools.chain(rolled, self._sampler)
        while len(batch := list(itertools.islice(indices, self._batch_size))) == self._batch_size:
            yield batch
        if self._last_batch == "rollover":
            self._rolled = batch
        elif batch and self._last_batch == "keep":
            yield batch

    def __len__(self) -> int:
        count = len(self._rolled) + len(self._sampler)  # type: ignore[arg-type]  # one without a length has none either
        return -(-count // self._batch_size) if self._last_batch == "keep" else count // self._batch_size


class IntervalSampler(Sampler):
    """Every `interval`-th index below `length`: 0, `interval`, `2 * interval`, ...; then, with `rollover`, those that were left out.

    **Raises** ValueError for an interval below 1 or above `length`. **Source** MXNet `gluon.contrib.data.IntervalSampler`, whose `len` is
    `length` without rollover, too.

    >>> list(IntervalSampler(7, interval=3)), list(IntervalSampler(7, interval=3, rollover=False))
    ([0, 3, 6, 1, 4, 2, 5], [0, 3, 6])
    """

    def __init__(self, length: int, interval: int, rollover: bool = True) -> None:
        self._length = _count("IntervalSampler", length)
        self._interval: int = converted("IntervalSampler", "interval", "int", interval)
        if not 1 <= self._interval <= self._length:
            raise SamplerArgumentError(f"IntervalSampler: interval is {interval}; it must be from 1 to length, which is {length}")
        self._rollover: bool = converted("IntervalSampler", "rollover", "bool", rollover)

    def __iter__(self) -> Iterator[int]:
        starts = range(self._interval if self._rollover else 1)
        return itertools.chain.from_iterable(range(start, self._length, self._interval) for start in starts)

    def __len__(self) -> int:
        return self._length if self._rollover else -(-self._length // self._interval)
