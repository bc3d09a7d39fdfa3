"""Data sets: anything with a length and an element at every index; and how others are made of one.

A sample is whatever `dataset[i]` gives, often a tuple of data and label. The methods of Dataset (`transform`, `filter`, `shard`, ...) make
data sets that look samples up in the first one only when they are asked for them, so that they cost nothing beforehand. A DataLoader
(dataloader.py) makes batches of samples.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from ... import files
from ...base import ArgumentError, OutOfRangeError, ShapeError, shown
from ...fields import converted
from ...nd import NDArray
from ...recordio import MXIndexedRecordIO
from .sampler import FilterSampler, Sampler, SequentialSampler

__all__ = ["ArrayDataset", "Dataset", "RecordFileDataset", "SimpleDataset"]


class ShardError(ArgumentError, AssertionError):
    """A part of a data set that there is not. (MXNet asserts it: hence the second base.)"""


class LengthsError(ShapeError, AssertionError):
    """Arrays that have no samples, or not equally many. (MXNet asserts it: hence the second base.)"""


class Dataset:
    """The base of data sets. One of your own has `__getitem__`, which gives the sample at an index, and `__len__`.

    Lists, NumPy arrays and NDArrays can be used where a data set is wanted. **Source** MXNet `gluon.data.Dataset`.

    >>> squares = SimpleDataset(range(6)).transform(lambda x: x * x)
    >>> squares[3], list(squares.filter(lambda x: x % 2 == 0)), list(squares.shard(2, 1)), list(squares.take(2))
    (9, [0, 4, 16], [9, 16, 25], [0, 1])
    """

    def __getitem__(self, idx: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no __getitem__, which gives the sample at an index")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no __len__, which says how many samples there are")

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def filter(self, fn: Callable[[Any], Any]) -> Dataset:
        """The samples for which `fn(sample)` is true. Each is looked at once, now; transforms run again when one is asked for."""
        return _SampledDataset(self, FilterSampler(fn, self))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """The part `index` (from 0) of `num_shards` parts, whose lengths differ by at most 1: for one of several machines.

        **Raises** ValueError if there is no such part.
        """
        count: int = converted("shard", "num_shards", "int", num_shards)
        number: int = converted("shard", "index", "int", index)
        if count < 1 or not 0 <= number < count:
            raise ShardError(f"shard: there is no part {index} of {num_shards}; index goes from 0 to num_shards - 1")
        length, rest = divmod(len(self), count)
        start = length * number + min(number, rest)
        return _SampledDataset(self, SequentialSampler(length + (number < rest), start))

    def take(self, count: int | None) -> Dataset:
        """The first `count` samples; all if there are fewer, or if `count` is None."""
        wanted: int | None = converted("take", "count", "int | None", count)
        if wanted is not None and wanted < 0:
            raise ArgumentError(f"take: count is {count}; it must be 0 or more, or None for all samples")
        return _SampledDataset(self, SequentialSampler(len(self) if wanted is None else min(wanted, len(self))))

    def sample(self, sampler: Sampler) -> Dataset:
        """The samples that `sampler` gives, in its order, which is asked for once, now. **Raises** TypeError for what is no Sampler."""
        if not isinstance(sampler, Sampler):
            raise ArgumentError(f"sample: a gluon.data.Sampler is wanted, got {shown(sampler)}")
        return _SampledDataset(self, sampler)

    def transform(self, fn: Callable[..., Any], lazy: bool = True) -> Dataset:
        """Each sample as `fn` makes it: `fn(*sample)` of a tuple, `fn(sample)` of anything else.

        **Args** `lazy`: transform a sample whenever it is asked for, at random anew each time; False: transform all of them once, now.
        """
        if not callable(fn):
            raise ArgumentError(f"transform: fn must be a function of a sample, got {shown(fn)}")
        transformed = _LazyTransformDataset(self, fn)
        return transformed if lazy else SimpleDataset(list(transformed))

    def transform_first(self, fn: Callable[[Any], Any], lazy: bool = True) -> Dataset:
        """Each sample with its first part as `fn(part)` makes it: the data, while the label stays. `lazy`: see `transform`."""
        if not callable(fn):
            raise ArgumentError(f"transform_first: fn must be a function of a sample's first part, got {shown(fn)}")
        return self.transform(_TransformFirstClosure(fn), lazy)


class SimpleDataset(Dataset):
    """A list, an array, or anything else with a length and indices, as a data set. **Source** MXNet `gluon.data.SimpleDataset`."""

    def __init__(self, data: Any) -> None:
        if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
            raise ArgumentError(f"SimpleDataset: data with a length and indices is wanted, got {shown(data)}; make a list of it")
        self._data = data

    def __getitem__(self, idx: Any) -> Any:
        return self._data[idx]

    def __len__(self) -> int:
        return len(self._data)


class _LazyTransformDataset(Dataset):
    """`fn` of the samples of `data`."""

    def __init__(self, data: Any, fn: Callable[..., Any]) -> None:
        self._data = data
        self._fn = fn

    def __getitem__(self, idx: Any) -> Any:
        sample = self._data[idx]
        return self._fn(*sample) if isinstance(sample, tuple) else self._fn(sample)

    def __len__(self) -> int:
        return len(self._data)


class _TransformFirstClosure:
    """A function of samples that changes the first part; an object, so that it can be pickled."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self._fn = fn

    def __call__(self, first: Any, *others: Any) -> Any:
        return (self._fn(first), *others) if others else self._fn(first)


class _SampledDataset(Dataset):
    """The samples of `dataset` whose indices `sampler` gave when this was made."""

    def __init__(self, dataset: Any, sampler: Sampler) -> None:
        self._dataset = dataset
        self._sampler = sampler
        self._indices = list(sampler)

    def __getitem__(self, idx: Any) -> Any:
        return self._dataset[self._indices[idx]]

    def __len__(self) -> int:
        return len(self._indices)


class ArrayDataset(Dataset):
    """Samples `(a[i], b[i], ...)` of several arrays, lists or data sets of equal length; `a[i]` of a single one.

    Batches of NumPy arrays and NDArrays are cut out of these at once, without making each sample. **Raises** ValueError for unequal
    lengths. **Source** MXNet `gluon.data.ArrayDataset`.

    >>> ArrayDataset([1, 2, 3], [10, 20, 30])[1]
    (2, 20)
    """

    def __init__(self, *args: Any) -> None:
        if not args:
            raise LengthsError("ArrayDataset: Needs at least 1 arrays")
        for number, data in enumerate(args):
            if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
                raise ArgumentError(f"ArrayDataset: argument {number} has no length and indices; it is {shown(data)}")
            if len(data) != len(args[0]):
                raise LengthsError(
                    f"ArrayDataset: All arrays must have the same length; array[0] has length {len(args[0])} while array[{number}] "
                    f"has {len(data)}."
                )
        self._length = len(args[0])
        # A sample of numbers is a number, not an array of one
        self._data = [data.asnumpy() if isinstance(data, NDArray) and data.ndim == 1 else data for data in args]

    def __getitem__(self, idx: Any) -> Any:
        if len(self._data) == 1:
            return self._data[0][idx]
        return tuple(data[idx] for data in self._data)

    def __len__(self) -> int:
        return self._length


class RecordFileDataset(Dataset):
    """The records of a file, as bytes, in the order of its index (`x.idx` beside `x.rec`): see `mx.recordio`.

    Threads and worker processes may use it at the same time. **Raises** FileNotFoundError if one of the two is not there.
    **Source** MXNet `gluon.data.RecordFileDataset`.
    """

    def __init__(self, filename: files.PathLike) -> None:
        self.filename = files.as_path(filename)
        self.idx_file = os.path.splitext(self.filename)[0] + ".idx"
        self._record = MXIndexedRecordIO(self.idx_file, self.filename, "r")

    def __getitem__(self, idx: Any) -> bytes:
        keys = self._record.keys
        try:
            key = keys[idx]
        except IndexError:
            raise OutOfRangeError(f"{self.filename} has {len(keys)} records; there is none at index {shown(idx)}") from None
        return self._record.read_idx(key)

    def __len__(self) -> int:
        return len(self._record.keys)


class _DownloadedDataset(Dataset):
    """The base of data sets that are in files of a folder, `root`, and in memory as `_data` and `_label`, which `_get_data` fills."""

    def __init__(self, root: files.PathLike, transform: Callable[..., Any] | None) -> None:
        if transform is not None and not callable(transform):
            raise ArgumentError(f"{type(self).__name__}: transform must be a function of data and label, got {shown(transform)}")
        self._transform = transform
        self._data: Any = None
        self._label: Any = None
        self._root = os.path.expanduser(files.as_path(root))
        self._get_data()

    def __getitem__(self, idx: Any) -> Any:
        if self._transform is not None:
            return self._transform(self._data[idx], self._label[idx])
        return self._data[idx], self._label[idx]

    def __len__(self) -> int:
        return len(self._label)

    def _get_data(self) -> None:
        """Fill `_data` and `_label`, from the folder or by a download into it."""
        raise NotImplementedError(f"{type(self).__name__} has no _get_data, which reads the data set from its folder")
