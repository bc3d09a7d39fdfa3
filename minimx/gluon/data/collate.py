"""From indices to a batch: the sample at each, handed to the batchify function; or, of plain arrays, the rows of all at once.

`for X, y in DataLoader(ArrayDataset(features, labels), 10, shuffle=True)` is the loop with which every course begins. To make ten arrays
of each batch and stack them again would cost more than the training step. So where a data set is nothing but arrays, and the batchify
function is the default one, whose result is then known, a batch is one `take` of each array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import storage
from ...autograd import place, state as autograd_state
from ...base import CODE_OF_DTYPE
from ...device import Context, current_context
from ...engine.front import value_of
from ...engine.var import Var
from ...nd import NDArray
from ...nd.entry import from_array
from ...op import Spec
from .batchify import default_batchify_fn
from .dataset import ArrayDataset, RecordFileDataset, SimpleDataset, _DownloadedDataset, _SampledDataset

Make = Callable[[Sequence[Any]], Any]  # indices -> batch


def maker(dataset: Any, batchify_fn: Callable[[list[Any]], Any]) -> Make:
    """The function that makes a batch of the samples at given indices."""
    one_by_one = _OneByOne(dataset, batchify_fn)
    if batchify_fn is default_batchify_fn:
        rows = _rows_of(dataset)
        if rows is not None:
            return _AllAtOnce(rows, one_by_one)
    return one_by_one


def runs_code(dataset: Any, batchify_fn: Callable[[list[Any]], Any]) -> bool:
    """Whether to make a batch may run code that is not ours, which may draw random numbers."""
    return batchify_fn is not default_batchify_fn or not _is_plain(dataset)


def _is_plain(dataset: Any) -> bool:
    """Whether `dataset` does nothing but look samples up."""
    kind = type(dataset)  # not isinstance: a subclass has code of its own
    if kind is ArrayDataset:
        return all(_is_plain(data) for data in dataset._data)
    if kind is SimpleDataset:
        return _is_plain(dataset._data)
    if kind is _SampledDataset:
        return _is_plain(dataset._dataset)
    if _is_in_memory(dataset):
        return True
    return kind in (list, tuple, range, np.ndarray, np.memmap, NDArray, RecordFileDataset)


def _is_in_memory(dataset: Any) -> bool:
    """Whether `dataset` is one of the well-known ones, as it is."""
    downloaded = isinstance(dataset, _DownloadedDataset) and type(dataset).__getitem__ is _DownloadedDataset.__getitem__
    return downloaded and dataset._transform is None


class _OneByOne:
    """Makes a batch as MXNet does: every sample, then `batchify_fn` of their list."""

    def __init__(self, dataset: Any, batchify_fn: Callable[[list[Any]], Any]) -> None:
        self.dataset = dataset
        self.batchify_fn = batchify_fn

    def __call__(self, indices: Sequence[Any]) -> Any:
        dataset, samples, index = self.dataset, [], None
        try:
            for index in indices:
                samples.append(dataset[index])
        except StopIteration as error:  # which would end the loop over the loader as if all were done
            raise RuntimeError(f"DataLoader: dataset[{index}] raised StopIteration") from error
        except Exception as error:
            if hasattr(error, "add_note"):  # Python 3.11
                error.add_note(f"in dataset[{index}], of which a DataLoader was making a batch")
            raise
        try:
            return self.batchify_fn(samples)
        except StopIteration as error:
            raise RuntimeError("DataLoader: batchify_fn raised StopIteration") from error


# ---- rows of arrays


class _Rows:
    """Rows of an array: those that `chosen` lists, or all."""

    def __init__(self, array: Any, chosen: Any = None) -> None:
        self.array = array
        self.chosen = chosen

    def __call__(self, index: np.ndarray[Any, Any]) -> NDArray | None:
        """A batch of the rows at `index`; None where only stacking them is right."""
        array = self.array
        if self.chosen is not None:
            index = self.chosen.take(index)
        if not isinstance(array, NDArray):
            return _taken(array, index, current_context())
        if not array.context.host or (autograd_state.recording and place(array)):
            return None
        return _taken(value_of(array), index, array.context)


def _taken(rows: np.ndarray[Any, Any], index: np.ndarray[Any, Any], context: Context) -> NDArray:
    """`rows[index]` on `context`, in memory of the pool: large memory that is new costs more than the copy into it."""
    spec = Spec.of((len(index), *rows.shape[1:]), rows.dtype)
    if not context.host:
        return from_array(rows.take(index, axis=0), context)
    memory = storage.empty(spec, context)
    rows.take(index, axis=0, out=memory, mode="wrap")  # the mode that needs no copy in between; indices have been checked
    return NDArray(Var(memory), spec, context)


class _AllAtOnce:
    """Makes a batch of rows of arrays."""

    def __init__(self, rows: list[_Rows] | _Rows, one_by_one: _OneByOne) -> None:
        self.rows = rows
        self.length = len(one_by_one.dataset)
        self.one_by_one = one_by_one  # for indices that are no plain numbers, and for errors

    def __call__(self, indices: Sequence[Any]) -> Any:
        index = np.asarray(indices)
        # NumPy's bool would select, and an empty list is of floats
        if index.dtype.kind not in "iu" or index.ndim != 1 or index.min() < -self.length or index.max() >= self.length:
            return self.one_by_one(indices)
        if isinstance(self.rows, _Rows):
            batch = self.rows(index)
            return self.one_by_one(indices) if batch is None else batch
        batches = [each(index) for each in self.rows]
        return self.one_by_one(indices) if any(batch is None for batch in batches) else batches


def _rows_of(dataset: Any, chosen: Any = None) -> list[_Rows] | _Rows | None:
    """The arrays whose rows are the samples: a list of them if a sample is a tuple of rows; None for other data sets."""
    kind = type(dataset)
    if kind is SimpleDataset:
        return _rows_of(dataset._data, chosen)
    if kind is _SampledDataset:
        indices, length = np.asarray(dataset._indices), len(dataset._dataset)
        if indices.dtype.kind not in "iu" or indices.ndim != 1 or indices.min() < -length or indices.max() >= length:
            return None
        return _rows_of(dataset._dataset, indices if chosen is None else indices.take(chosen))
    if kind is not ArrayDataset and not _is_in_memory(dataset):
        return _Rows(dataset, chosen) if _is_array(dataset) else None
    arrays = dataset._data if kind is ArrayDataset else [dataset._data, dataset._label]
    if not all(_is_array(data) for data in arrays):
        return None
    rows = [_Rows(data, chosen) for data in arrays]
    return rows[0] if len(rows) == 1 else rows


def _is_array(data: Any) -> bool:
    """Whether the rows of `data` may be taken together."""
    if type(data) is NDArray:
        return data.ndim > 1  # an element of one axis is an array of one, (1,)
    return type(data) in (np.ndarray, np.memmap) and data.ndim > 0 and data.dtype in CODE_OF_DTYPE and data.dtype.isnative
