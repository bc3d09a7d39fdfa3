"""Generated kernels: every expression against the operator's own kernel, groups of recorded operators, and groups of programs.

The stand-in reads the CUDA C and computes it with NumPy (tests/fake_cupy/language.py), types as in C.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gpu, nd
from minimx.kernels import cupy as kernels
from minimx.kernels.expressions import TABLE
from minimx.op import REGISTRY, Kind, Op

from ..fake_cupy import cupy as fake
from ..fake_cupy.fixture import fake_gpus
from ..fake_cupy.language import Program

SPECIAL = [0.0, -0.0, 1, -1, 0.5, -0.5, 2.5, -2.5, 1.5, 3, -3, 100, -100, 1e-30, np.inf, -np.inf, np.nan, 7.3, -7.3, 0.3]
HAVE_NO_EXPRESSION = {"smooth_l1", "erfinv", "gamma", "gammaln", "_polygamma"}


def operators() -> Iterator[Op]:
    """Every operator with an expression, with some attributes."""
    given: dict[str, list[tuple[Any, ...]]] = {
        "Activation": [("relu",), ("sigmoid",), ("tanh",), ("softrelu",), ("softsign",)],
        "LeakyReLU": [("leaky",), ("leaky", 1.5), ("elu",), ("selu",), ("gelu",)],
        "_power_scalar": [(2.0,), (0.5,), (-1.0,), (1.7,)],
        "clip": [(-1.0, 2.0)],
        "Cast": [("float32",), ("float64",)],
        "amp_cast": [("float32",), ("float64",)],
        "cast_storage": [("default",)],
        "_contrib_quadratic": [(1.0, 2.0, 3.0)],
    }
    for name in [*TABLE, "add_n"]:
        cls = REGISTRY[name]
        scalar = any(field.name == "scalar" for field in dataclasses.fields(cls))
        for attributes in given.get(name, [(0.75,)] if scalar else [()]):
            converted = [np.dtype(each) if each in ("float32", "float64") else each for each in attributes]
            yield cls(*converted)


OPERATORS = list(operators())


def operands_of(op: Op, dtype: str) -> list[np.ndarray]:
    count = 3 if op.name == "add_n" else len(op.inputs)
    first, second = (each.reshape(-1) for each in np.meshgrid(SPECIAL, SPECIAL))
    return [each.astype(dtype) for each in (first, second, first[::-1])[:count]]


def test_every_elementwise_operator_has_an_expression_or_is_known_to_have_none() -> None:
    elementwise = {cls.name for cls in REGISTRY.values() if cls.kind is Kind.ELEMENTWISE}
    assert set(TABLE) <= elementwise
    assert elementwise - set(TABLE) - {"add_n"} == HAVE_NO_EXPRESSION


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("op", OPERATORS, ids=[f"{op.name}-{number}" for number, op in enumerate(OPERATORS)])
def test_an_expression_computes_what_the_kernel_does(op: Op, dtype: str) -> None:
    with np.errstate(all="ignore"):
        arrays = operands_of(op, dtype)
        want = op.kernel(np, *arrays)
        steps = (kernels.Step(op, tuple(range(len(arrays))), want.dtype),)
        group = kernels.Group(want.shape, tuple(each.dtype for each in arrays), steps, (len(arrays),))
        parameters, _, source, numbers = kernels.written(group)
        names = [each.split()[1] for each in parameters.split(", ")]
        types = {
            "y0": want.dtype.type,
            **{name: np.dtype(each.split()[0]).type for name, each in zip(names, parameters.split(", "))},
        }
        got = Program(source, dict(zip(names, [*arrays, *numbers])), types).run()["y0"]
    rtol = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-12}[
        min(dtype, want.dtype.name, key=lambda name: np.dtype(name).itemsize)
    ]
    assert got.dtype == want.dtype
    np.testing.assert_allclose(np.broadcast_to(got, want.shape), want, rtol, 1e-3 if dtype == "float16" else 1e-7)


# ---- recorded operators


def launches(compute: Any) -> tuple[np.ndarray, list[str]]:
    """What `compute` gives on a GPU, and the names of the kernels that were queued for it."""
    with fake_gpus(1, 1) as machine:
        x = nd.array(np.linspace(-2, 2, 24).reshape(4, 6), ctx=gpu(0))
        nd.waitall()
        names: list[str] = []
        launch = machine.launch

        def noted(function: Any, reads: Any, writes: Any, name: str, stream: Any = None) -> None:
            names.append(name)
            launch(function, reads, writes, name, stream)

        machine.launch = noted  # type: ignore[method-assign]
        y = compute(x)
        y.wait_to_read()
        return y.asnumpy(), [name for name in names if not name.startswith("copy")]


def on_cpu(compute: Any) -> np.ndarray:
    return compute(nd.array(np.linspace(-2, 2, 24).reshape(4, 6))).asnumpy()


def test_a_chain_is_one_kernel() -> None:
    def compute(x: Any) -> Any:
        return nd.sigmoid(nd.relu(x * 2 + 1) - x) / 3

    got, names = launches(compute)
    assert names == ["minimx_mul_scalar_plus_scalar_relu_elemwise_sub_sigmoid_div_scalar"] or len(names) == 1
    np.testing.assert_allclose(got, on_cpu(compute), 1e-6)


def test_operands_broadcast_and_values_that_are_wanted_are_written() -> None:
    kept = []

    def compute(x: Any) -> Any:
        row, one = x[0:1] * 1, x[0:1, 0:1] * 1
        y = nd.broadcast_add(nd.exp(x), row)
        kept.append(y)
        return nd.broadcast_mul(y, one) + y

    got, names = launches(compute)
    assert len(names) <= 5
    np.testing.assert_allclose(got, on_cpu(compute), 1e-6)


def test_what_has_no_expression_runs_by_itself() -> None:
    def compute(x: Any) -> Any:
        return nd.gammaln(nd.abs(x) + 1) * 2 + nd.tanh(x)

    got, _ = launches(compute)
    np.testing.assert_allclose(got, on_cpu(compute), 1e-5)


def test_another_number_needs_no_other_kernel() -> None:
    kernels.kernel.cache_clear()

    def compute(x: Any) -> Any:
        for number in range(5):
            x = (x * (0.1 + number) + number).sigmoid()
            x.wait_to_read()
        return x

    before = fake.ElementwiseKernel.compiled
    got, _ = launches(compute)
    assert fake.ElementwiseKernel.compiled == before + 1
    np.testing.assert_allclose(got, on_cpu(compute), 1e-5)


def test_integers_and_half_precision() -> None:
    def compute(x: Any) -> Any:
        whole = (x * 10).astype("int32")
        half = x.astype("float16")
        return (whole + whole * 2).astype("float32") + (half * 2 - half.sigmoid()).astype("float32")

    got, _ = launches(compute)
    np.testing.assert_allclose(got, on_cpu(compute), 2e-3)


def test_a_kernel_that_fails_is_run_operator_by_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> Any:
        raise RuntimeError("the compiler is not there")

    monkeypatch.setattr(kernels, "kernel", refuse)

    def compute(x: Any) -> Any:
        return nd.relu(x * 2 + 1) - x

    got, names = launches(compute)
    assert len(names) > 1
    np.testing.assert_allclose(got, on_cpu(compute), 1e-6)


def test_a_group_has_bounds() -> None:
    def compute(x: Any) -> Any:
        with mx.engine.bulk(200):
            y = x
            for number in range(150):
                y = y * 0.9 + number % 3
            return y + nd.add_n(*[x + number for number in range(40)])

    got, names = launches(compute)
    assert 3 <= len(names) < 60
    np.testing.assert_allclose(got, on_cpu(compute), 1e-5)


# ---- programs


def test_a_program_calls_one_kernel_for_a_group() -> None:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(6, activation="relu"), mx.gluon.nn.ELU(0.3), mx.gluon.nn.Dense(3), mx.gluon.nn.LeakyReLU(0.2))
    net.initialize(mx.init.Xavier())
    data = nd.array(np.linspace(-1, 1, 24).reshape(4, 6))
    want = net(data).asnumpy()
    with fake_gpus(1, 2):
        net.collect_params().reset_ctx(gpu(0))
        net.hybridize()
        given = data.as_in_context(gpu(0))
        np.testing.assert_allclose(net(given).asnumpy(), want, 1e-5)
        source = net.program(given).source
        assert source.count("is one kernel of the GPU") == 2
        assert "is one kernel of the GPU: Activation, LeakyReLU" in source
        given.attach_grad()
        with autograd.record():
            total = (net(given) ** 2).sum()
        total.backward()
        assert np.isfinite(given.grad.asnumpy()).all()
        with mx.sym.passes.without("fusion"):
            assert "one kernel of the GPU" not in net.program(given).source


def test_a_watched_program_tells_of_its_kernels() -> None:
    with fake_gpus(1, 2):
        graph = mx.sym.sigmoid(mx.sym.var("x") * 2) + 1
        cached = nd.CachedOp(graph)
        x = nd.ones((3,), ctx=gpu(0))
        events: list[Any] = []
        from minimx.engine.events import watch

        watch.add(events.append, "operators", "programs")
        try:
            assert cached(x).asnumpy()[0] == pytest.approx(1.8807971)
        finally:
            watch.remove(events.append)
    assert any(event.kind == "program" for event in events)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a deliberate fault: the expression of exp is that of expm1")
def test_the_twin_with_a_wrong_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "exp", TABLE["expm1"])
    test_an_expression_computes_what_the_kernel_does(REGISTRY["exp"](), "float32")
