"""Every row of the operator table on a stand-in for a GPU: the values and gradients that it has on the CPU, and nothing unordered.

The stand-in (tests/fake_cupy) refuses what CuPy refuses. Where there is a real GPU, the rows run on that, too.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, nd

from ..fake_cupy.fixture import fake_gpus
from .harness import Case
from .test_cases import CASES, RTOL, flat, floating, make, rows


def outcome(name: str, case: Case, context: Any, grad: bool) -> list[np.ndarray]:
    """The row's values on a device; and its gradients for random head gradients."""
    arrays = make(name, case, case.dtypes[0])
    mx.random.seed(1, context)  # devices seeded one by one with the same number draw the same
    with context:
        given = [nd.array(array, dtype=array.dtype) for array in arrays]
        if not grad:
            return [each.asnumpy() for each in flat(case.call(*given))]
        leaves = [each for each, array in zip(given, arrays) if floating(array)]
        for leaf in leaves:
            leaf.attach_grad()
        with autograd.record():
            outputs = [each for each in flat(case.call(*given)) if np.dtype(each.dtype).kind == "f" and each.node is not None]
        if not outputs:
            return []
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        autograd.backward(outputs, [nd.array(rng.standard_normal(each.shape), dtype=each.dtype) for each in outputs])
        return [each.asnumpy() for each in (*outputs, *(leaf.grad for leaf in leaves))]


def check(name: str, case: Case) -> None:
    """Both devices agree, or both refuse the row's gradient."""
    for grad in (False, True) if case.grad else (False,):
        want = outcome(name, case, mx.cpu(), grad)
        got = outcome(name, case, mx.gpu(0), grad)
        assert len(got) == len(want)
        rtol = max(10 * RTOL[case.dtypes[0]] if case.dtypes[0] in RTOL else 1e-5, (case.rtol or {}).get(case.dtypes[0], 0))
        for one, other in zip(got, want):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            finite = np.abs(other[np.isfinite(other)]) if floating(other) else np.zeros(0)
            scale = max(1.0, float(finite.max())) if finite.size else 1.0
            np.testing.assert_allclose(one, other, rtol, rtol * scale)


@rows()
def test_on_the_stand_in(name: str, case: Case) -> None:
    with fake_gpus(1, zlib.crc32(name.encode())):
        check(name, case)


@pytest.mark.parametrize(("name", "case"), list(CASES.items()) if mx.num_gpus() else [], ids=list(CASES) if mx.num_gpus() else [])
def test_on_a_gpu(name: str, case: Case) -> None:
    check(name, case)
