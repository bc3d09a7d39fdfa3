"""Every row of the operator table as a program: values, gradients and gradients of gradients are those of the operators one by one."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, nd, sym
from minimx.base import MXNetError
from minimx.op import REGISTRY
from minimx.sym.compiled import ProgramNode

from ..ops.harness import Case
from ..ops.test_cases import CASES, flat, floating, make, tensors


def traced(case: Case, count: int) -> Any:
    """The row's call as a graph."""
    try:
        outputs = flat(case.call(*[sym.var(f"x{number}") for number in range(count)]))
        graph = sym.Group([each for output in outputs for each in output])
    except (MXNetError, TypeError, AttributeError, ValueError, AssertionError, IndexError) as error:
        pytest.skip(f"the row's call is not for Symbols: {type(error).__name__}: {error}")
    return graph


def leaves(arrays: list[np.ndarray]) -> list[Any]:
    made = tensors(arrays)
    for array, given in zip(made, arrays):
        if floating(given):
            array.attach_grad()
    return made


def run(
    call: Any, arrays: list[np.ndarray], case: Case, name: str
) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Values, gradients for random head gradients, and gradients of the gradients' random projection."""
    inputs = leaves(arrays)
    wanted = [each for each, given in zip(inputs, arrays) if floating(given)]
    mx.random.seed(3)
    if not (case.grad and wanted):
        return [each.asnumpy() for each in flat(call(*inputs))], [], []
    rng = np.random.default_rng(zlib.crc32(name.encode()))

    def like(array: Any) -> Any:
        return nd.array(rng.standard_normal(array.shape), dtype=array.dtype)

    with autograd.record():
        outputs = list(flat(call(*inputs)))
        heads = [each for each in outputs if each.dtype in (np.float32, np.float64)]
        weights = [like(each) for each in heads]
        total = nd.add_n(*[(head * weight).sum().reshape((1,)).astype("float64") for head, weight in zip(heads, weights)])
        if not case.second:
            total.backward()
            return [each.asnumpy() for each in outputs], [each.grad.asnumpy() for each in wanted], []
        try:
            gradients = autograd.grad(total, wanted, create_graph=True, retain_graph=True)
        except MXNetError as error:
            if "do not depend" not in str(error):
                raise
            return [each.asnumpy() for each in outputs], [], []
        first = [each.asnumpy() for each in gradients]
        more = nd.add_n(*[(gradient * like(gradient)).sum().reshape((1,)) for gradient in gradients])
    if more.node is None:
        return [each.asnumpy() for each in outputs], first, []
    more.backward()
    return [each.asnumpy() for each in outputs], first, [each.grad.asnumpy() for each in wanted]


ROWS = [(name, case) for name, case in CASES.items() if not REGISTRY[case.op].data_dependent]


@pytest.mark.parametrize(("name", "case"), ROWS, ids=[name for name, _ in ROWS])
def test_a_program_gives_what_operators_give(name: str, case: Case) -> None:
    arrays = make(name, case, "float64" if "float64" in case.dtypes else case.dtypes[0])
    graph = traced(case, len(arrays))
    names = graph.list_inputs()
    order = [int(each[1:]) for each in names if each[1:].isdigit()]
    if len(order) < len(names):
        pytest.skip("the row's call leaves variables to be made")
    cached = nd.CachedOp(graph)
    ops = [node.op for node in cached.graph.order if node.op is not None]
    assert not cached.graph.interpreted or any(op.crosses_devices or op.composite for op in ops)
    want = run(case.call, arrays, case, name)
    got = run(lambda *inputs: cached(*[inputs[number] for number in order], default_ctx=mx.cpu()), arrays, case, name)
    rtol = 1e-10 if arrays and any(array.dtype == np.float64 for array in arrays) else 2e-5
    for what, mine, its in zip(("values", "gradients", "second gradients"), got, want):
        assert len(mine) == len(its), what
        for one, other in zip(mine, its):
            assert (one.shape, one.dtype) == (other.shape, other.dtype), what
            np.testing.assert_allclose(one, other, rtol, rtol, err_msg=what)


def test_a_program_leaves_one_node_on_the_tape() -> None:
    x = sym.var("x")
    data = nd.array([1, 2, 3])
    data.attach_grad()
    with autograd.record():
        y = nd.CachedOp(sym.exp(x * x) + x)(data)
    assert isinstance(y.node, ProgramNode)
