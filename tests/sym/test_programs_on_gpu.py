"""Every row of the operator table as a program on a stand-in for a GPU: values and gradients are those of the CPU."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, nd

from ..fake_cupy.fixture import fake_gpus
from ..ops.harness import Case
from ..ops.test_cases import flat, floating, make
from .test_program_cases import ROWS, traced


def outcome(graph: Any, name: str, case: Case, context: Any) -> list[np.ndarray]:
    """What the program gives on a device: values, and gradients for random head gradients if the row has some."""
    arrays = make(name, case, case.dtypes[0])
    names = graph.list_inputs()
    order = [int(each[1:]) for each in names if each[1:].isdigit()]
    if len(order) < len(names):
        pytest.skip("the row's call leaves variables to be made")
    mx.random.seed(1, context)
    with context:
        given = [nd.array(array, dtype=array.dtype) for array in arrays]
        leaves = [each for each, array in zip(given, arrays) if case.grad and floating(array)]
        for leaf in leaves:
            leaf.attach_grad()
        cached = nd.CachedOp(graph)
        with autograd.record(train_mode=bool(leaves)):
            outputs = flat(cached(*[given[number] for number in order], default_ctx=context))
        tracked = [each for each in outputs if each.node is not None and np.dtype(each.dtype).kind == "f"]
        if tracked:
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            autograd.backward(tracked, [nd.array(rng.standard_normal(each.shape), dtype=each.dtype) for each in tracked])
        return [each.asnumpy() for each in (*outputs, *(leaf.grad for leaf in leaves if tracked))]


def check(name: str, case: Case) -> None:
    graph = traced(case, len(case.inputs))
    want = outcome(graph, name, case, mx.cpu())
    with fake_gpus(1, zlib.crc32(name.encode())):
        got = outcome(graph, name, case, mx.gpu(0))
    assert len(got) == len(want)
    loose = max((case.rtol or {}).get(case.dtypes[0], 0), 1e-10 if case.dtypes[0] == "float64" else 1e-4)
    for one, other in zip(got, want):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        finite = np.abs(other[np.isfinite(other)]) if floating(other) else np.zeros(0)
        np.testing.assert_allclose(one, other, loose, loose * max(1.0, float(finite.max()) if finite.size else 1.0))


@pytest.mark.parametrize(("name", "case"), ROWS, ids=[name for name, _ in ROWS])
def test_on_the_stand_in(name: str, case: Case) -> None:
    check(name, case)
