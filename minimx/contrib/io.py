"""`mx.contrib.io`: a DataLoader of Gluon as an iterator over DataBatches, for programs that feed a bound symbol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from .. import nd
from ..base import as_dtype, shown
from ..io import DataDesc, DataIter
from ..io.batch import BatchError
from ..nd import NDArray

__all__ = ["DataLoaderIter"]


class DataLoaderIter(DataIter):
    """The batches of a `gluon.data.DataLoader`, or of anything that gives pairs of data and label.

    A last batch that is smaller is filled up with zeros, and says so by its `pad`. **Args** `loader`; `data_name`, `label_name`: what to
    call both; `dtype`: of both. **Raises** ValueError if the loader gives no pairs of arrays. **Source** MXNet
    `contrib.io.DataLoaderIter`.

    >>> batches = DataLoaderIter([(nd.ones((2, 3)), nd.ones(2)), (nd.ones((1, 3)), nd.ones(1))])
    >>> [(batch.data[0].shape, batch.pad) for batch in batches]
    [((2, 3), 0), ((2, 3), 1)]
    """

    def __init__(
        self, loader: Iterable[Any], data_name: str = "data", label_name: str = "softmax_label", dtype: Any = "float32"
    ) -> None:
        super().__init__()
        self._loader = loader
        self.dtype = dtype
        as_dtype(dtype)  # raises
        first = next(iter(loader), None)
        data, label = self._pair(first)
        self.batch_size = data.shape[0]
        self.provide_data = [DataDesc(data_name, data.shape, dtype)]
        self.provide_label = [DataDesc(label_name, label.shape, dtype)]
        self._current: tuple[NDArray, NDArray] | None = None
        self.reset()

    @staticmethod
    def _pair(batch: Any) -> tuple[NDArray, NDArray]:
        if isinstance(batch, (list, tuple)) and len(batch) == 2 and all(isinstance(each, NDArray) for each in batch):
            return batch[0], batch[1]
        raise BatchError(f"DataLoaderIter: the loader must give pairs of arrays, data and label, got {shown(batch)}")

    def reset(self) -> None:
        self._batches: Iterator[Any] = iter(self._loader)

    def iter_next(self) -> bool:
        batch = next(self._batches, None)
        self._current = None if batch is None else self._pair(batch)
        return batch is not None

    def _filled(self, number: int) -> list[NDArray]:
        if self._current is None:
            raise BatchError("DataLoaderIter: there is no current batch; call next() or iter_next()")
        array = self._current[number].astype(self.dtype)
        missing = self.batch_size - array.shape[0]
        if missing > 0:
            array = nd.concat(array, nd.zeros((missing, *array.shape[1:]), ctx=array.context, dtype=self.dtype), dim=0)
        return [array]

    def getdata(self) -> list[NDArray]:
        return self._filled(0)

    def getlabel(self) -> list[NDArray]:
        return self._filled(1)

    def getpad(self) -> int:
        return 0 if self._current is None else max(self.batch_size - self._current[0].shape[0], 0)
