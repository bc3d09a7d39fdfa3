"""NDArrayIter: batches of arrays that are in memory.

A pass is a list of examples, `idx`, in order or at random, and a cursor that moves over it by the size of a batch. How the last batch is
filled, and what a new pass begins with, is decided by numbers of examples alone (`_selected`); only then are the examples copied.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import nd
from ..base import MXNetError, ShapeError, shown
from ..device import current_context
from ..fields import converted
from ..nd import NDArray
from ..seeds import next_key
from .batch import BatchError, DataBatch, DataDesc, DataIter

__all__ = ["NDArrayIter"]

Indices = np.ndarray[Any, np.dtype[np.int64]]


class NDArrayIter(DataIter):
    """Batches of arrays that are in memory.

    **Args** `data`, `label`: an array (NDArray, NumPy or the like), a list of arrays, or a dictionary of arrays by name; the first axis is
    that of the examples, unless "N" stands elsewhere in `layout`. `shuffle`: in random order, another after each `reset`, as
    `mx.random.seed` has it. `last_batch_handle`: what becomes of examples that are too few for a last batch: "pad" fills it up from the
    beginning, "discard" leaves them out, "roll_over" puts them before the first batch after `reset`. `data_name`, `label_name`: names where
    no dictionary gives them; of several arrays `_0_data`, `_1_data`. **Raises** ValueError for arguments that make no batches; TypeError
    for what is no array. **Source** MXNet `io.NDArrayIter`, which draws the order from NumPy's global generator and leaves `index` None.

    >>> batches = NDArrayIter(np.arange(10), batch_size=4)
    >>> [(batch.data[0].asnumpy().tolist(), batch.pad) for batch in batches]
    [([0.0, 1.0, 2.0, 3.0], 0), ([4.0, 5.0, 6.0, 7.0], 0), ([8.0, 9.0, 0.0, 1.0], 2)]
    """

    def __init__(
        self,
        data: Any,
        label: Any = None,
        batch_size: int = 1,
        shuffle: bool = False,
        last_batch_handle: str = "pad",
        data_name: str = "data",
        label_name: str = "softmax_label",
        layout: str = "NCHW",
    ) -> None:
        super().__init__(converted("NDArrayIter", "batch_size", "int", batch_size))
        if self.batch_size < 1:
            raise BatchError(f"NDArrayIter: batch_size is {batch_size}; it must be 1 or more")
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise BatchError(f"NDArrayIter: last_batch_handle={last_batch_handle!r}; choose 'pad', 'discard' or 'roll_over'")
        if not isinstance(layout, str) or "N" not in layout:
            raise BatchError(f"NDArrayIter: layout={layout!r} does not say which axis is that of the examples; write an N for it")
        self.data = _named_arrays("data", data, data_name)
        self.label = [] if label is None else _named_arrays("label", label, label_name)
        if not self.data:
            raise BatchError("NDArrayIter: data has no arrays; at least one is needed")
        self.layout = layout
        self.shuffle = bool(shuffle)
        self.last_batch_handle = last_batch_handle
        self.num_data = self._count_examples()
        self.data_list = [array for _, array in self.data + self.label]
        self.num_source = len(self.data_list)
        self.idx: Indices = np.arange(self.num_data)
        self.cursor = (
            -self.batch_size
        )  # where in `idx` the current batch begins; before 0 if examples of the last pass come first
        self._rolled: Indices = self.idx[:0]  # those examples
        self.hard_reset()

    def _count_examples(self) -> int:
        """How many examples there are. Raises ShapeError, or warns, if the arrays do not agree."""
        axis = self.layout.find("N")
        for name, array in self.data + self.label:
            if array.ndim <= axis:
                raise ShapeError(
                    f"NDArrayIter: {name} has shape {array.shape}, which has no axis {axis}, N of layout={self.layout!r}"
                )
        first, count = self.data[0][0], self.data[0][1].shape[axis]
        for name, array in self.data + self.label:
            own = array.shape[axis]
            if own < count:
                raise ShapeError(f"NDArrayIter: {name} has {own} examples, {first} has {count}; there must be as many")
            if own > count:
                warnings.warn(
                    f"NDArrayIter: {name} has {own} examples; only {count} are used, as {first} has no more", stacklevel=4
                )
        return count

    @property
    def provide_data(self) -> list[DataDesc]:
        """Name, shape and dtype of each array in `data` of a batch."""
        return [self._described(name, array) for name, array in self.data]

    @property
    def provide_label(self) -> list[DataDesc]:
        """The same of `label`."""
        return [self._described(name, array) for name, array in self.label]

    def _described(self, name: str, array: NDArray) -> DataDesc:
        shape = list(array.shape)
        shape[self.layout.find("N")] = self.batch_size
        return DataDesc(name, tuple(shape), array.dtype, self.layout)

    def hard_reset(self) -> None:
        """Go back to the beginning, and forget examples that were to be rolled over."""
        self.cursor = -self.batch_size
        self._rolled = self._rolled[:0]
        self._mix()

    def reset(self) -> None:
        rolls = self.last_batch_handle == "roll_over" and self.num_data - self.batch_size < self.cursor < self.num_data
        # With `roll_over` the batch that is too small was announced by no `next`; it is the head of the first one to come.
        self._rolled = self._selected() if rolls else self._rolled[:0]
        self.cursor = -self.batch_size - len(self._rolled)
        self._mix()

    def _mix(self) -> None:
        """A new random order of the examples."""
        if self.shuffle:
            self.idx = self.idx[next_key(current_context()).permutation(np, self.num_data)]

    def iter_next(self) -> bool:
        self.cursor += self.batch_size
        return self.cursor < self.num_data

    def next(self) -> DataBatch:
        if not self.iter_next() or len(self._selected()) < self.batch_size:
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def _selected(self) -> Indices:
        """Which examples are in the current batch."""
        if not -self.batch_size < self.cursor < self.num_data:
            raise BatchError("NDArrayIter: there is no current batch; call next() or iter_next(), and reset() at the end")
        end = self.cursor + self.batch_size
        if self.cursor < 0:
            return np.concatenate([self._rolled, self.idx[:end]])
        missing = end - self.num_data
        if missing > 0 and self.last_batch_handle == "pad":
            return np.concatenate([self.idx[self.cursor :], np.resize(self.idx, missing)])
        return self.idx[self.cursor : end]

    def getdata(self) -> list[Any]:
        return self._parts(self.data)

    def getlabel(self) -> list[Any]:
        return self._parts(self.label)

    def _parts(self, source: list[tuple[str, NDArray]]) -> list[Any]:
        """The selected examples of each array: copies, so that whoever changes a batch does not change the data."""
        selected, axis = self._selected(), self.layout.find("N")
        begin = max(self.cursor, 0)
        if not self.shuffle and len(selected) and selected[0] == begin and selected[-1] == begin + len(selected) - 1:
            return [array.slice_axis(axis=axis, begin=begin, end=begin + len(selected)) for _, array in source]
        return [nd.take(array, nd.array(selected, ctx=array.context, dtype="int64"), axis=axis) for _, array in source]

    def getindex(self) -> Indices:
        return self._selected().copy()

    def getpad(self) -> int:
        """How many examples at the end are repeated ones; with "roll_over", as in MXNet, how many at the beginning were left over."""
        if self.last_batch_handle == "pad":
            return max(self.cursor + self.batch_size - self.num_data, 0)
        return max(-self.cursor, 0) if self.last_batch_handle == "roll_over" else 0


def _named_arrays(what: str, source: Any, name: str) -> list[tuple[str, NDArray]]:
    """The arrays that `source` has, or is, with their names. Those of a dictionary are sorted by name."""
    if isinstance(source, Mapping):
        named = sorted(source.items())
    elif isinstance(source, (list, tuple)):
        named = [(name if len(source) == 1 else f"_{number}_{name}", array) for number, array in enumerate(source)]
    elif hasattr(source, "shape"):
        named = [(name, source)]
    else:
        raise BatchError(f"NDArrayIter: {what} must be an array, or a list or dictionary of arrays, got {shown(source)}")
    return [(str(key), _as_array(str(key), array)) for key, array in named]


def _as_array(name: str, value: Any) -> NDArray:
    if isinstance(value, NDArray):
        return value
    try:
        return nd.array(value)
    except MXNetError as error:
        raise BatchError(f"NDArrayIter: {name} is {shown(value)}, which makes no array: {error}") from None
