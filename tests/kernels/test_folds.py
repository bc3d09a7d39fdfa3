"""Loops over rows: softmax, sums and maxima with what stands around them, against the operators one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from minimx import autograd, engine, gluon, kernels, nd, sym
from minimx.kernels import folds
from minimx.op import Spec, find
from minimx.sym import passes
from minimx.sym.passes.fusion import FOLDED

pytest.importorskip("llvmlite")

SHAPE = (60, 37)
x, y, index = sym.var("x"), sym.var("y"), sym.var("index")


def arrays(shape: tuple[int, ...] = SHAPE) -> dict[str, nd.NDArray]:
    random = np.random.default_rng(0)
    made = {name: nd.array(random.standard_normal(shape) * 3) for name in ("x", "y")}
    return {**made, "index": nd.array(random.integers(0, shape[-1], shape[:-1]))}


def values(net: sym.Symbol, given: dict[str, nd.NDArray]) -> tuple[list[np.ndarray], list[str]]:
    """What a graph gives, and the loops of its program."""
    cached = nd.CachedOp(net)
    got = cached(*[given[name] for name in net.list_arguments()])
    [program] = cached.graph.programs.values()
    assert program is not None
    got = got if isinstance(got, list) else [got]
    return [each.asnumpy() for each in got], [loop.title for loop in program.loops.values()]


def column() -> sym.Symbol:
    """A number for each row, which no loop makes."""
    return sym.slice_axis(y, axis=-1, begin=0, end=1)


def plain(net: sym.Symbol, given: dict[str, nd.NDArray]) -> list[np.ndarray]:
    """The same by NumPy, operator by operator."""
    before = kernels.set("numpy")
    try:
        with passes.without("fusion"):
            return values(net, given)[0]
    finally:
        kernels.set(before)


NETS: dict[str, tuple[Callable[[], sym.Symbol], list[str]]] = {
    "softmax": (lambda: sym.softmax(x), ["softmax"]),
    "log_softmax": (lambda: sym.log_softmax(x * 2), ["mul_scalar, log_softmax"]),
    "of what was computed": (lambda: sym.softmax(sym.tanh(x) * y) + 1, ["tanh, elemwise_mul, softmax, plus_scalar"]),
    "two": (lambda: sym.softmax(sym.log_softmax(x) * y), ["log_softmax, elemwise_mul, softmax"]),
    "kept": (lambda: sym.Group([sym.softmax(x), sym.log_softmax(sym.softmax(x))]), ["softmax, log_softmax"]),
    "loss": (
        lambda: sym.mean(-sym.pick(sym.log_softmax(x), index, axis=-1, keepdims=True), axis=1),
        ["log_softmax, pick, mul_scalar, mean"],
    ),
    "picked operand": (lambda: sym.pick(sym.softmax(x), index) - sym.pick(x, index), ["softmax, pick, pick, elemwise_sub"]),
    "norm": (
        lambda: sym.broadcast_div(
            sym.broadcast_sub(x, sym.mean(x, axis=1, keepdims=True)),
            sym.sqrt(
                sym.mean(sym.square(sym.broadcast_sub(x, sym.mean(x, axis=1, keepdims=True))), axis=1, keepdims=True) + 1e-5
            ),
        ),
        ["mean, broadcast_sub, square, mean, plus_scalar, sqrt, broadcast_div"],
    ),
    "extremes": (lambda: sym.max(x * y, axis=1) - sym.min(x * y, axis=-1), ["elemwise_mul, max, min, elemwise_sub"]),
    "sums": (lambda: sym.Group([sym.sum(sym.exp(x), axis=1), sym.exp(x)]), ["exp, sum"]),
    "numbers of rows that come before": (
        lambda: sym.softmax(sym.broadcast_mul(x, sym.tanh(column() * 2))),
        ["mul_scalar, tanh, broadcast_mul, softmax"],
    ),
    "numbers of rows that others read, too": (
        lambda: (lambda made: sym.Group([sym.softmax(sym.broadcast_mul(x, sym.tanh(made))), made]))(column() * 2),
        ["tanh, broadcast_mul, softmax"],
    ),
    "a pattern of columns": (
        lambda: sym.softmax(sym.broadcast_mul(x, sym.slice_axis(y, axis=0, begin=0, end=1))),
        ["broadcast_mul, softmax"],
    ),
}


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("shape", [SHAPE, (4, 15, 37), (16, 128), (600, 2)])
def test_a_group_is_what_its_operators_are(name: str, shape: tuple[int, ...]) -> None:
    make, titles = NETS[name]
    if len(shape) > 2 and name not in ("softmax", "log_softmax", "of what was computed", "two", "kept"):
        pytest.skip("made for two axes")
    given = arrays(shape)
    got, found = values(make(), given)
    assert found == titles
    for one, other in zip(got, plain(make(), given)):
        np.testing.assert_allclose(one, other, 3e-6, 1e-6)


def test_small_arrays_stay_with_numpy() -> None:
    assert np.prod((10, 10)) < FOLDED
    assert values(sym.softmax(x), arrays((9, 10)))[1] == []


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "extremes", "sums"])
def test_special_values(name: str, special: float) -> None:
    given = arrays()
    given["x"][3, 5] = special
    given["x"][7] = special
    for one, other in zip(values(NETS[name][0](), given)[0], plain(NETS[name][0](), given)):
        np.testing.assert_allclose(one, other, 3e-6, 1e-6)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_positions_are_limited_to_the_row(dtype: str) -> None:
    given = arrays()
    wild = np.resize([-5, -1, 0, 3, 36, 37, 1000], SHAPE[0])
    given["index"] = nd.array(wild, dtype=dtype)
    got, titles = values(NETS["loss"][0](), given)
    assert titles
    np.testing.assert_allclose(got[0], plain(NETS["loss"][0](), given)[0], 3e-6, 1e-6)
    if dtype == "float32":
        given["index"] = nd.array([np.nan, np.inf, -np.inf, 1.7, -0.5, 1e30] * 10)
        assert np.isfinite(values(NETS["loss"][0](), given)[0][0]).all()


def test_forward_and_backward_of_a_loss() -> None:
    loss = gluon.loss.SoftmaxCrossEntropyLoss()
    scores, classes = arrays()["x"], arrays()["index"]

    def run() -> tuple[np.ndarray, np.ndarray]:
        scores.attach_grad()
        with autograd.record():
            value = loss(scores, classes)
        value.backward()
        return value.asnumpy(), scores.grad.asnumpy()

    want = run()
    loss.hybridize()
    got = run()
    for one, other in zip(got, want):
        np.testing.assert_allclose(one, other, 3e-6, 1e-6)
    with autograd.record():
        titles = [loop.title for loop in loss.program(scores, classes).loops.values()]
    assert titles == [
        "log_softmax, pick, mul_scalar, mean",
        "backward_sum, mul_scalar, put_along_axis, exp, sum, broadcast_mul, broadcast_sub",
    ]


def test_the_crew_shares_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    given = arrays((2000, 300))
    results = []
    for threads in (1, 3):
        monkeypatch.setattr(engine.crew, "SIZE", threads)
        results.append(values(NETS["two"][0](), given)[0][0])
    np.testing.assert_array_equal(*results)


def test_what_does_not_fit() -> None:
    wide, narrow = Spec.of((60, 37), "float32"), Spec.of((60, 1), "float32")
    softmax, total = find("softmax"), find("sum")
    assert folds.fits(softmax(), [wide], wide, wide.shape)
    assert folds.fits(total(axis=(1,), keepdims=True), [wide], narrow, wide.shape)
    assert not folds.fits(softmax(axis=0), [wide], wide, wide.shape)
    assert not folds.fits(softmax(temperature=2.0), [wide], wide, wide.shape)
    assert not folds.fits(total(axis=(0,)), [wide], Spec.of((37,), "float32"), wide.shape)
    double = wide.with_dtype("float64")
    assert not folds.fits(softmax(), [double], double, wide.shape)
    long = Spec.of((2, folds.LONGEST + 1), "float32")
    assert not folds.fits(softmax(), [long], long, long.shape)
    square = Spec.of((40, 40), "float32")  # (40,) would be rows and columns
    assert not folds.fits(softmax(), [square], square, square.shape)
    assert not folds.fits(find("pick")(mode="wrap"), [wide, Spec.of((60,), "float32")], narrow, wide.shape)


def test_a_value_that_is_written_over_is_read_before() -> None:
    """x + 1 dies with its last reader, whose result may take its place, while a later stage still reads what came before."""
    made = sym.exp(x * 0.5)
    net = (
        sym.broadcast_add(sym.broadcast_mul(made, sym.sum(made, axis=1, keepdims=True)), sym.max(made, axis=1, keepdims=True))
        + made
    )
    given = arrays()
    for one, other in zip(values(net, given)[0], plain(net, given)):
        np.testing.assert_allclose(one, other, 3e-6, 1e-6)


def test_numpy_takes_over_when_kernels_are_off() -> None:
    given = arrays()
    net = NETS["loss"][0]()
    cached = nd.CachedOp(net)
    want = cached(given["x"], given["index"]).asnumpy()
    before = kernels.set("numpy")
    try:
        np.testing.assert_allclose(cached(given["x"], given["index"]).asnumpy(), want, 3e-6, 1e-6)
    finally:
        kernels.set(before)


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a deliberate fault: a sum is read in the stage that makes it")
def test_the_twin_that_does_not_wait_for_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    go_to: Any = folds._Text._go_to
    monkeypatch.setattr(folds._Text, "_go_to", lambda self, stage: go_to(self, 0))
    given = arrays((61, 37))
    np.testing.assert_allclose(values(NETS["sums"][0](), given)[0][0], plain(NETS["sums"][0](), given)[0], 3e-6)
