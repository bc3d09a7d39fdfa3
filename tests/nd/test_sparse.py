"""`nd.sparse`: dense arrays go through, sparse ones are refused with advice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import nd
from minimx.base import ArgumentError


def test_functions_on_dense_arrays() -> None:
    x = nd.array([[1, 2], [3, 4]])
    assert nd.sparse.dot is nd.dot
    assert mx.sym.sparse.FullyConnected is mx.sym.FullyConnected
    np.testing.assert_array_equal(nd.sparse.add(x, 1).asnumpy(), [[2, 3], [4, 5]])
    np.testing.assert_array_equal(nd.sparse.zeros("default", (2,), dtype="int32").asnumpy(), np.zeros(2, "int32"))
    assert nd.sparse.empty("default", (2, 3)).shape == (2, 3)
    np.testing.assert_array_equal(nd.cast_storage(x, "default").asnumpy(), x.asnumpy())
    np.testing.assert_array_equal(nd.zeros((2,), stype="default").asnumpy(), [0, 0])
    assert nd.empty((2,), stype="default").shape == (2,)
    assert x.stype == "default"
    assert not isinstance(x, nd.sparse.BaseSparseNDArray)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda x: nd.sparse.csr_matrix((x, x, x), shape=(2, 2)),
            r"nd.sparse.csr_matrix: sparse arrays do not exist here, .*toarray",
        ),
        (lambda x: nd.sparse.row_sparse_array(x), r"write the rows into zeros"),
        (lambda x: nd.sparse.array(x), r"nd.array\(matrix.toarray\(\)\)"),
        (lambda x: nd.sparse.retain(x, x), r"nd.take\(data, indices\)"),
        (lambda x: mx.sym.sparse.retain(mx.sym.var("x"), mx.sym.var("i")), "sparse arrays do not exist here"),
        (lambda x: nd.sparse.zeros("csr", (2, 2)), r"stype is 'csr', use nd.zeros\(shape\)"),
        (lambda x: nd.sparse.empty("row_sparse", (2, 2)), r"use nd.empty\(shape\)"),
        (lambda x: nd.sparse.CSRNDArray(), "nd.sparse.CSRNDArray: sparse arrays do not exist"),
        (lambda x: nd.zeros((2, 2), stype="csr"), "storage type 'csr' does not exist here"),
        (lambda x: nd.empty((2, 2), stype="csr"), "storage type 'csr' does not exist here"),
        (lambda x: x.tostype("csr"), "csr"),
        (lambda x: nd.cast_storage(x, "row_sparse"), "stype is 'row_sparse'"),
    ],
)
def test_sparse_arrays_are_refused(call: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        call(nd.ones((2, 2)))


@pytest.mark.parametrize("module", [nd.contrib, mx.sym.contrib])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("quantize_v2", "8-bit integers are not planned"),
        ("quantized_conv", "8-bit integers"),
        ("dgl_subgraph", "graphs as sparse matrices are not planned"),
        ("getnnz", "counts the elements that are not 0"),
        ("SparseEmbedding", "Embedding has the same values"),
        ("nothing", "has no attribute 'nothing'$"),
    ],
)
def test_absent_names_say_what_to_use(module: Any, name: str, text: str) -> None:
    with pytest.raises(AttributeError, match=text):
        getattr(module, name)
