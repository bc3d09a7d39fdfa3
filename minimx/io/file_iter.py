"""MXDataIter: what the iterators over files have in common.

A reader, which a subclass has, makes batches as NumPy arrays, in a thread that works ahead; here they become DataBatches. Each batch
comes with the places where a pass goes on after it and where the next one begins, so that `reset` in the middle of a pass, or a process
that was forked, does not depend on how far ahead the thread happened to be.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from .. import nd
from ..base import shown
from ..fields import converted
from ..nd import NDArray
from .ahead import Ahead
from .batch import BatchError, DataBatch, DataDesc, DataIter
from .passes import Place

__all__ = ["Loaded", "MXDataIter", "Reader", "whole"]

Array = np.ndarray[Any, Any]


class Loaded(NamedTuple):
    """A batch: its arrays, how many examples only fill it up, the numbers of its examples; and the places of `passes.Batched`."""

    data: Array
    label: Array
    pad: int
    numbers: Array | None
    resume: Place
    restart: Place


class Reader(Protocol):
    """What reads a file. It must not know the iterator, which would never be forgotten then."""

    def batches(self, start: Place) -> Iterator[Loaded]:
        """The batches of the pass that begins at `start`."""


class MXDataIter(DataIter):
    """The base of the iterators over files. They take keywords only; `provide_data` and `provide_label` are those of the first batch,
    which is read when the iterator is made. **Source** MXNet `io.MXDataIter`.

    `next` raises FileFormatError for a file that is damaged, with its name and the place.
    """

    def __init__(self, reader: Reader, start: Place, prefetch_buffer: int, data_name: str, label_name: str) -> None:
        super().__init__()
        self._reader = reader
        self._buffer = whole(type(self).__name__, "prefetch_buffer", prefetch_buffer, least=0)
        self._repeats = False
        self._current: Loaded | None = None
        self._arrays: tuple[NDArray, NDArray] | None = None
        self._begin(start)
        first = self._look()
        if first is None:
            raise BatchError(f"{type(self).__name__}: there are too few examples for a single batch")
        self.batch_size = len(first.data)
        self.provide_data = [DataDesc(data_name, first.data.shape, first.data.dtype.type)]
        self.provide_label = [DataDesc(label_name, first.label.shape, first.label.dtype.type)]

    def _begin(self, start: Place) -> None:
        """Begin a pass at `start`."""
        reader = self._reader
        self._ahead: Ahead[Loaded] = Ahead(lambda: reader.batches(start), self._buffer)
        self._next: Loaded | None = None  # a batch that was looked at before it is asked for
        self._resume = start
        self._restart: Place | None = None

    def _look(self) -> Loaded | None:
        """The batch that comes next, or None at the end of the pass."""
        if self._next is None:
            if not self._ahead.is_of_this_process:
                restart = self._restart
                self._begin(self._resume)
                self._restart = restart
            self._next = self._ahead.take()
        return self._next

    def reset(self) -> None:
        """Begin a new pass. With `round_batch`, after a whole pass, it begins behind the examples that filled up its last batch."""
        start = self._restart
        if start is None:  # nothing was used of this pass: it is left before its first batch
            first = self._look()
            if first is not None and first.restart.random is None and not self._resume.used:
                return  # it would begin with the very batch that is waiting
            start = self._resume if first is None else first.restart
        self._ahead.close()
        self._begin(start)

    def debug_skip_load(self) -> None:
        """Let `next` give the same batch again and again, to measure what reading costs."""
        self._repeats = True
        logging.getLogger().info("debug_skip_load: the first batch is given again and again")

    def iter_next(self) -> bool:
        if self._repeats and self._current is not None:
            return True
        found = self._look()
        if found is None:
            return False
        self._current, self._next, self._arrays = found, None, None
        self._resume, self._restart = found.resume, found.restart
        return True

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        return DataBatch([self.getdata()], [self.getlabel()], self.getpad(), self.getindex())

    def _batch(self) -> Loaded:
        if self._current is None:
            raise BatchError(f"{type(self).__name__}: there is no current batch; call next() or iter_next()")
        return self._current

    def _converted(self) -> tuple[NDArray, NDArray]:
        batch = self._batch()
        if self._arrays is None:
            self._arrays = nd.from_numpy(batch.data, zero_copy=True), nd.from_numpy(batch.label, zero_copy=True)
        return self._arrays

    def getdata(self) -> Any:
        return self._converted()[0]

    def getlabel(self) -> Any:
        return self._converted()[1]

    def getindex(self) -> Any:
        return self._batch().numbers

    def getpad(self) -> int:
        return self._batch().pad


# ---- options that several iterators have


def whole(owner: str, name: str, value: Any, least: int = 1) -> int:
    """`value` as a whole number that is at least `least`."""
    number: int = converted(owner, name, "int", value)
    if number < least:
        raise BatchError(f"{owner}: {name} is {shown(value)}; it must be {least} or more")
    return number


def check_part(owner: str, num_parts: Any, part_index: Any) -> tuple[int, int]:
    """Both as whole numbers that fit."""
    parts = whole(owner, "num_parts", num_parts)
    part = whole(owner, "part_index", part_index, least=0)
    if part >= parts:
        raise BatchError(f"{owner}: part_index is {part}; of num_parts={parts} it can be 0 to {parts - 1}")
    return parts, part


def check_ctx(owner: str, ctx: Any) -> None:
    """Raise an error unless `ctx` is one of MXNet's words for where batches are used, which makes no difference here."""
    if ctx not in ("cpu", "gpu"):
        raise BatchError(f"{owner}: ctx={shown(ctx)}; choose 'cpu' or 'gpu'. It makes no difference: batches are on cpu(0)")


def shape_of(owner: str, name: str, value: Any) -> tuple[int, ...]:
    """`value` as the shape of an example."""
    shape: tuple[int, ...] = converted(owner, name, "tuple[int, ...]", value)
    if not shape or min(shape) < 1:
        raise BatchError(f"{owner}: {name} is {shown(value)}; the shape of an example is wanted, with lengths of 1 or more")
    return shape


def one_axis(label: Array) -> Array:
    """Labels of one number each, (n, 1), as (n,)."""
    return label[:, 0] if label.ndim == 2 and label.shape[1] == 1 else label
