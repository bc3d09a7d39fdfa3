"""`mx.io`: iterators over batches, as MXNet's programs before Gluon feed them to a bound symbol, and as many after it still do.

A DataIter gives a DataBatch at a time - lists of arrays, `data` and `label` - and says beforehand what they will look like
(`provide_data`, `provide_label`). It passes through its data once, until `reset()`.
"""

from __future__ import annotations

from .arrays import NDArrayIter
from .batch import DataBatch, DataDesc, DataIter
from .detection import ImageDetRecordIter
from .file_iter import MXDataIter
from .images import ImageRecordInt8Iter, ImageRecordIter, ImageRecordUInt8Iter
from .libsvm import LibSVMIter
from .mnist import MNISTIter
from .tables import CSVIter
from .wrappers import PrefetchingIter, ResizeIter

__all__ = [
    "CSVIter", "DataBatch", "DataDesc", "DataIter", "ImageDetRecordIter", "ImageRecordInt8Iter", "ImageRecordIter", "ImageRecordUInt8Iter",
    "LibSVMIter", "MNISTIter", "MXDataIter", "NDArrayIter", "PrefetchingIter", "ResizeIter",
]  # fmt: skip
