"""Iterators over the batches of others: ResizeIter makes a pass longer or shorter, PrefetchingIter has a thread fetch the next batch while
the program works on this one."""

from __future__ import annotations

import os
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any

from ..base import shown
from ..fields import converted
from .batch import BatchError, DataBatch, DataDesc, DataIter

__all__ = ["PrefetchingIter", "ResizeIter"]


class ResizeIter(DataIter):
    """Passes of `size` batches, however many `data_iter` has: it begins anew when it ends. With `reset_internal=False` a pass goes on where
    the last one stopped. **Source** MXNet `io.ResizeIter`.

    >>> from minimx import io
    >>> twice = ResizeIter(io.NDArrayIter(mx.nd.arange(4), batch_size=2), 4)
    >>> [batch.data[0].asnumpy().tolist() for batch in twice]
    [[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [2.0, 3.0]]
    """

    current_batch: DataBatch

    def __init__(self, data_iter: DataIter, size: int, reset_internal: bool = True) -> None:
        super().__init__(data_iter.batch_size)
        self.data_iter = data_iter
        self.size = converted("ResizeIter", "size", "int", size)
        if self.size < 0:
            raise BatchError(f"ResizeIter: size is {self.size}; it must be 0 or more")
        self.reset_internal = reset_internal
        self.cur = 0
        self.provide_data = data_iter.provide_data
        self.provide_label = data_iter.provide_label
        if hasattr(data_iter, "default_bucket_key"):
            self.default_bucket_key = data_iter.default_bucket_key

    def reset(self) -> None:
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def iter_next(self) -> bool:
        if self.cur >= self.size:
            return False
        try:
            self.current_batch = self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            self.current_batch = self.data_iter.next()
        self.cur += 1
        return True

    def getdata(self) -> Any:
        return self.current_batch.data

    def getlabel(self) -> Any:
        return self.current_batch.label

    def getindex(self) -> Any:
        return self.current_batch.index

    def getpad(self) -> Any:
        return self.current_batch.pad


class _Ahead:
    """A thread that calls `fetch` once for each `start()`; `take()` waits for the result.

    The thread knows the two queues only, so that it ends when this object is forgotten.
    """

    def __init__(self, fetch: Callable[[], Any]) -> None:
        self._process = os.getpid()
        self._orders: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self._fetch = fetch
        thread = threading.Thread(target=_serve, args=(self._orders, self._results), name="minimx-prefetch", daemon=True)
        thread.start()
        weakref.finalize(self, self._orders.put, None)

    def start(self) -> None:
        self._orders.put(self._fetch)

    def take(self) -> tuple[Any, BaseException | None]:
        if self._process != os.getpid():
            raise BatchError(
                "PrefetchingIter: it was made before this process was forked, and its threads did not come along; make it after the fork"
            )
        return self._results.get()


def _serve(orders: Any, results: Any) -> None:
    """What the thread of an _Ahead does."""
    while (fetch := orders.get()) is not None:
        try:
            results.put((fetch(), None))
        except BaseException as error:  # raised again in the thread that asks for the batch
            results.put((None, error))
        del fetch  # the iterator must not live on while the thread waits


class PrefetchingIter(DataIter):
    """The batches of `iters`, each fetched by a thread while the one before is worked on. Several iterators are read side by side: a batch
    has the arrays of all.

    **Args** `rename_data`, `rename_label`: for each iterator a dictionary from its names to new ones. **Raises** in `next` what the
    iterators raised; ValueError if they have not equally many batches. **Source** MXNet `io.PrefetchingIter`.
    """

    current_batch: DataBatch

    def __init__(
        self,
        iters: DataIter | list[DataIter],
        rename_data: list[dict[str, str]] | None = None,
        rename_label: list[dict[str, str]] | None = None,
    ) -> None:
        super().__init__()
        self.iters = list(iters) if isinstance(iters, (list, tuple)) else [iters]
        if not self.iters:
            raise BatchError("PrefetchingIter: iters has no iterator; at least one is needed")
        for each in self.iters:
            if not getattr(each, "provide_data", None):
                raise BatchError(
                    f"PrefetchingIter: an iterator needs provide_data, the names and shapes of its arrays; got {shown(each)}"
                )
        for what, names in (("rename_data", rename_data), ("rename_label", rename_label)):
            if names is not None and len(names) != len(self.iters):
                raise BatchError(f"PrefetchingIter: {what} has {len(names)} dictionaries for {len(self.iters)} iterators")
        self.n_iter = len(self.iters)
        self.rename_data = rename_data
        self.rename_label = rename_label
        self.batch_size = self.provide_data[0][1][0]
        self._ahead = [_Ahead(each.next) for each in self.iters]
        self._ended = False
        self._start()

    @property
    def provide_data(self) -> list[DataDesc]:
        return self._renamed([each.provide_data for each in self.iters], self.rename_data)

    @property
    def provide_label(self) -> list[DataDesc]:
        return self._renamed([each.provide_label for each in self.iters], self.rename_label)

    @staticmethod
    def _renamed(descriptions: list[list[DataDesc]], names: list[dict[str, str]] | None) -> list[DataDesc]:
        if names is None:
            return [each for listed in descriptions for each in listed]
        found = [
            (new, DataDesc(*each) if not isinstance(each, DataDesc) else each)
            for listed, new in zip(descriptions, names)
            for each in listed
        ]
        return [DataDesc(new[each.name], each.shape, each.dtype, each.layout) for new, each in found]

    def _start(self) -> None:
        for each in self._ahead:
            each.start()

    def reset(self) -> None:
        if not self._ended:
            for each in self._ahead:
                each.take()  # the batch that was fetched ahead is of the pass that ends here
        for iterator in self.iters:
            iterator.reset()
        self._ended = False
        self._start()

    def iter_next(self) -> bool:
        if self._ended:
            return False
        results = [each.take() for each in self._ahead]
        self._ended = True
        failures = [error for _, error in results if error is not None and not isinstance(error, StopIteration)]
        if failures:
            raise failures[0]
        batches = [batch for batch, error in results if error is None]
        if not batches:
            return False
        if len(batches) < self.n_iter or len({batch.pad for batch in batches}) > 1:
            raise BatchError("PrefetchingIter: the iterators do not end at the same time; they must have equally many examples")
        self.current_batch = DataBatch(
            [array for batch in batches for array in batch.data],
            [array for batch in batches for array in batch.label or ()],
            batches[0].pad,
            batches[0].index,
            provide_data=self.provide_data,
            provide_label=self.provide_label,
        )
        self._ended = False
        self._start()
        return True

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        return self.current_batch

    def getdata(self) -> Any:
        return self.current_batch.data

    def getlabel(self) -> Any:
        return self.current_batch.label

    def getindex(self) -> Any:
        return self.current_batch.index

    def getpad(self) -> Any:
        return self.current_batch.pad
