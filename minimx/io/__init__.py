"""`mx.io`: iterators over batches, as MXNet's programs before Gluon feed them to a bound symbol, and as many after it still do.

A DataIter gives a DataBatch at a time - lists of arrays, `data` and `label` - and says beforehand what they will look like
(`provide_data`, `provide_label`). It passes through its data once, until `reset()`.
"""

from __future__ import annotations

from typing import NoReturn

from .arrays import NDArrayIter
from .batch import DataBatch, DataDesc, DataIter
from .wrappers import PrefetchingIter, ResizeIter

__all__ = ["DataBatch", "DataDesc", "DataIter", "NDArrayIter", "PrefetchingIter", "ResizeIter"]


_ABSENT = {
    "CSVIter": "NDArrayIter(numpy.loadtxt(file, delimiter=','), ...) reads a table",
    "MNISTIter": "minimx.d2l reads files of this format (read_idx)",
    **dict.fromkeys(("ImageRecordIter", "ImageDetRecordIter", "ImageRecordUInt8Iter", "ImageRecordInt8Iter"),
                    "record files are not read yet"),
    "LibSVMIter": "there are no sparse arrays",
    "MXDataIter": "derive from DataIter",
}  # fmt: skip


def __getattr__(name: str) -> NoReturn:
    """Say of a name that MXNet has and minimx lacks what to use instead."""
    reason = f": {_ABSENT[name]}" if name in _ABSENT else ""
    raise AttributeError(f"module 'minimx.io' has no attribute {name!r}{reason}")
