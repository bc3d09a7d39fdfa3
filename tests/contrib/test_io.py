"""DataLoaderIter: what a DataLoader gives, as DataBatches of equal size."""

from __future__ import annotations

import numpy as np
import pytest

from minimx import gluon, nd
from minimx.contrib.io import DataLoaderIter


def loader(count=5, size=2):
    data = np.arange(3 * count).reshape(count, 3).astype(np.float32)
    return gluon.data.DataLoader(gluon.data.ArrayDataset(data, np.arange(count, dtype=np.float32)), size)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_batches(dtype):
    batches = DataLoaderIter(loader(), data_name="x", label_name="y", dtype=dtype)
    assert batches.provide_data == [("x", (2, 3))]
    assert batches.provide_label == [("y", (2,))]
    for _ in range(2):
        found = list(batches)
        assert [batch.pad for batch in found] == [0, 0, 1]
        assert all(batch.data[0].shape == (2, 3) and batch.data[0].dtype == np.dtype(dtype) for batch in found)
        assert found[2].data[0].asnumpy().tolist() == [[12, 13, 14], [0, 0, 0]]
        assert [batch.label[0].asnumpy().tolist() for batch in found] == [[0, 1], [2, 3], [4, 0]]
        batches.reset()
    assert batches.next().index is None


def test_what_is_no_loader_of_pairs():
    with pytest.raises(ValueError, match="the loader must give pairs of arrays, data and label, got None"):
        DataLoaderIter([])
    with pytest.raises(ValueError, match="must give pairs"):
        DataLoaderIter([nd.ones(3)])
    batches = DataLoaderIter(loader())
    with pytest.raises(ValueError, match="there is no current batch"):
        batches.getdata()
    with pytest.raises(TypeError, match="dtype 'words' is not supported"):
        DataLoaderIter(loader(), dtype="words")
