"""oneDNN's kernels: equal to NumPy's over the operator table and beyond it; threads, forks, the switch. Skipped without oneDNN."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import kernels, nd
from minimx.kernels import threads
from minimx.kernels.onednn import products
from minimx.kernels.onednn.primitive import Routine
from minimx.op import REGISTRY, Op, Spec
from minimx.ops.conv import ConvolutionData, ConvolutionLayer, ConvolutionWeight
from minimx.ops.deconv import DeconvolutionLayer
from minimx.ops.linalg import BatchDot, Dot
from minimx.ops.nn import FullyConnectedLayer
from minimx.ops.norm import LayerNormLayer
from minimx.ops.pool import PoolingFirst, PoolingLayer, PoolingSpread
from minimx.ops.softmax import Softmax

from ..ops.harness import Case
from ..ops.test_cases import CASES, calls, make, run

pytestmark = pytest.mark.skipif(not kernels.found(), reason="oneDNN is not installed (extra fast)")

ROWS = [(name, case) for name, case in CASES.items() if REGISTRY[case.op].name in kernels.ONEDNN]


@pytest.fixture(autouse=True)
def all_sizes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small products, and what the library has slow code for, are left to NumPy, max pooling to loops; here they are not."""
    monkeypatch.setattr(products, "SMALL", 0)
    monkeypatch.setattr(Routine, "is_reference", False)
    monkeypatch.setattr(kernels, "WRITTEN", {})
    kernels.forget()
    yield
    kernels.forget()


def spec(array: np.ndarray | None) -> Spec | None:
    return None if array is None else Spec.of(array.shape, array.dtype)


def both(op: Op, *arrays: Any) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
    """The results of oneDNN's kernel and of NumPy's, each on arrays of its own; None if oneDNN has none."""
    fast = kernels.faster(op, [spec(array) for array in arrays], mx.cpu())
    if fast is None:
        return None
    found = []
    for kernel in (fast, op.kernel):
        own = [array if array is None else array.copy() for array in arrays]
        with np.errstate(all="ignore"):
            result = kernel(np, *own)
        changed = [own[position] for position in op.mutates]
        found.append([*(result if isinstance(result, tuple) else (result,)), *changed])
    return found[0], found[1]


def compare(got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """Equal up to 1e-5 of the largest number."""
    for one, other in zip(got, wanted, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        largest = np.abs(other[np.isfinite(other)]).max(initial=0.0)
        np.testing.assert_allclose(one, other, 1e-5, 1e-5 * max(1.0, largest))


def agree(op: Op, *arrays: Any) -> None:
    """oneDNN has a kernel of `op` for `arrays`, and it gives what NumPy's gives."""
    found = both(op, *arrays)
    assert found is not None
    compare(*found)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


def test_rows_are_there() -> None:
    assert len(ROWS) > 50


@pytest.mark.parametrize(("name", "case"), ROWS, ids=[name for name, _ in ROWS])
def test_row(name: str, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the row's operators compute in NumPy, oneDNN computes, too, wherever it has a kernel."""
    with calls(monkeypatch) as log:
        run(case, make(name, case, "float32"))
    for call in log:
        if call.op.name in kernels.ONEDNN:
            found = both(call.op, *call.arrays)
            if found is not None:
                compare(*found)


WINDOWS = [
    ((5,), (2,), (1,), (2,)),
    ((3,), (1,), (2,), (0,)),
    ((3, 3), (1, 1), (1, 1), (1, 1)),
    ((1, 1), (1, 1), (1, 1), (0, 0)),
    ((1, 1), (2, 3), (1, 1), (0, 0)),
    ((2, 5), (3, 2), (2, 1), (1, 4)),
    ((2, 2, 3), (1, 2, 1), (1, 1, 2), (0, 1, 2)),
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize(("groups", "channels", "filters"), [(1, 1, 1), (1, 3, 5), (2, 4, 6), (8, 8, 16), (17, 17, 17)])
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_convolution(window: Any, groups: int, channels: int, filters: int, last: bool) -> None:
    kernel, stride, dilate, pad = window
    lengths = (13, 11, 9)[: len(kernel)]
    layout = {1: "NWC", 2: "NHWC", 3: "NDHWC"}[len(kernel)] if last else None
    how = {"kernel_size": kernel, "stride": stride, "dilate": dilate, "pad": pad, "num_group": groups, "layout": layout}
    data = random(2, *lengths, channels) if last else random(2, channels, *lengths)
    weight, bias = random(*ConvolutionLayer(**how).filters(filters, channels)), random(filters)
    op = ConvolutionLayer(**how, num_filter=filters)
    agree(op, data, weight, bias)
    agree(ConvolutionLayer(**how, num_filter=filters, no_bias=True), data, weight)
    head = random(*op.infer(*map(spec, (data, weight, bias))).shape)
    back = DeconvolutionLayer(**how, num_filter=channels, no_bias=False)
    for each, *arrays in (
        (ConvolutionData(**how, lengths=lengths), head, weight),
        (ConvolutionWeight(**how), data, head),
        (back, head, weight, random(channels)),
        (replace(back, no_bias=True, adj=tuple(length - 1 for length in stride)), head, weight),
    ):
        found = both(each, *arrays)
        if found is not None:
            compare(*found)


@pytest.mark.parametrize("kind", ["max", "avg", "avg-inside", "sum"])
@pytest.mark.parametrize("convention", ["valid", "full"])
@pytest.mark.parametrize(
    ("kernel", "stride", "pad"),
    [((2, 2), (2, 2), (0, 0)), ((3, 2), (2, 3), (1, 1)), ((4,), (1,), (2,)), ((2, 3, 2), (1, 2, 2), (1, 0, 0))],
)
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_pooling(kind: str, convention: str, kernel: Any, stride: Any, pad: Any, last: bool) -> None:
    lengths = (11, 10, 7)[: len(kernel)]
    layout = {1: "NWC", 2: "NHWC", 3: "NDHWC"}[len(kernel)] if last else None
    name, _, inside = kind.partition("-")
    op = PoolingLayer(
        kernel_size=kernel,
        stride=stride,
        pad=pad,
        pool_type=name,
        pooling_convention=convention,
        layout=layout,
        count_include_pad=not inside,
    )
    data = random(3, *lengths, 5) if last else random(3, 5, *lengths)
    result = op.kernel(np, data)
    head = random(*result.shape)
    back = (
        (PoolingFirst(**op.shared()), head, data, result)
        if name == "max"
        else (PoolingSpread(**op.shared(), lengths=lengths), head)
    )
    for each, *arrays in (op, data), back:
        found = both(each, *arrays)
        assert found is not None or name != "max" or convention == "full" or "Layer" in type(each).__name__
        if found is not None:
            compare(*found)


def test_nan_is_seen() -> None:
    op = PoolingLayer(kernel_size=(3, 3), stride=(1, 1))
    data = random(2, 3, 9, 9)
    data[1, 2, 4, 4] = np.nan
    found = both(op, data)
    assert found is not None
    np.testing.assert_array_equal(*map(np.isnan, (found[0][0], found[1][0])))
    assert np.isnan(found[0][0]).sum() == 9


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax(axis: int) -> None:
    agree(Softmax(axis), random(7, 33, 5))
    agree(Softmax(axis), random(64, 3, 130) * 50)


def test_softmax_of_numbers_that_are_none() -> None:
    """Rows with masked places, and rows without any that counts."""
    data = random(6, 20)
    data[0, 3:7] = -np.inf
    data[4] = 1e38
    agree(Softmax(), data)
    data[1] = -np.inf
    agree(Softmax(), data)
    data[2, 4] = np.inf
    data[3, 5] = np.nan
    found = both(Softmax(), data)
    assert found is not None
    for row, (got, wanted) in enumerate(zip(found[0][0], found[1][0])):
        np.testing.assert_allclose(got, wanted, 1e-5, 1e-6, err_msg=f"row {row}")


def test_layer_norm() -> None:
    for shape in ((5, 33), (2, 3, 64), (1, 1)):
        agree(LayerNormLayer(), random(*shape) * 3 + 2, random(shape[-1]), random(shape[-1]))


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 65, 33), (7, 5, 3), (64, 31, 130), (129, 1, 2)])
def test_products(sizes: tuple[int, int, int], transpose_a: bool, transpose_b: bool) -> None:
    rows, inner, columns = sizes
    lhs = (inner, rows) if transpose_a else (rows, inner)
    rhs = (columns, inner) if transpose_b else (inner, columns)
    agree(Dot(transpose_a, transpose_b), random(*lhs), random(*rhs))
    agree(BatchDot(transpose_a, transpose_b), random(2, 3, *lhs), random(2, 3, *rhs))
    agree(FullyConnectedLayer(columns), random(rows, inner), random(columns, inner), random(columns))
    agree(FullyConnectedLayer(columns, no_bias=True, flatten=False), random(2, rows, inner), random(columns, inner))


def test_small_products_are_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "SMALL", 1 << 18)
    kernels.forget()
    assert kernels.faster(Dot(), [Spec.of((64, 64), "float32")] * 2, mx.cpu()) is None
    assert kernels.faster(Dot(), [Spec.of((65, 65), "float32")] * 2, mx.cpu()) is not None


LAYER = ConvolutionLayer(kernel_size=(3, 3), num_filter=4, no_bias=True)


def test_what_it_does_not_have() -> None:
    """Other dtypes, arrays without elements, and arrays that are not contiguous or written elsewhere than wished."""
    for dtype in ("float16", "float64"):
        assert kernels.faster(LAYER, [Spec.of((2, 3, 8, 8), dtype), Spec.of((4, 3, 3, 3), dtype)], mx.cpu()) is None
    assert kernels.faster(LAYER, [Spec.of((0, 3, 8, 8), "float32"), Spec.of((4, 3, 3, 3), "float32")], mx.cpu()) is None
    assert nd.Convolution(nd.zeros((1, 3, 8, 8)), nd.zeros((4, 3, 3, 3)), kernel=(3, 3), num_filter=4, no_bias=True).shape == (
        1,
        4,
        6,
        6,
    )
    data, weight = random(8, 8, 3, 2).T, random(4, 3, 3, 3)
    fast = kernels.faster(LAYER, [spec(data), spec(weight)], mx.cpu())
    assert fast is not None
    out = np.zeros((6, 6, 4, 2), np.float32).T
    assert fast(np, data, weight, out=out) is out
    compare([out], [LAYER.kernel(np, data, weight)])


def test_huge_batch() -> None:
    agree(PoolingLayer(kernel_size=(2, 2), pool_type="avg"), random(70_000, 1, 2, 2))
    agree(LAYER, random(20_000, 1, 3, 3), random(4, 1, 3, 3))


def test_threads_at_the_same_time() -> None:
    """Several threads run the same primitive on arrays of their own."""
    arrays = [(random(4, 8, 20, 20 + number), random(4, 8, 3, 3)) for number in (0, 0, 1, 1)]
    wanted = [LAYER.kernel(np, *each) for each in arrays]
    failures: list[BaseException] = []

    def work(given: Any, right: np.ndarray) -> None:
        try:
            for _ in range(20):
                fast = kernels.faster(LAYER, [spec(each) for each in given], mx.cpu())
                assert fast is not None
                compare([fast(np, *given)], [right])
        except BaseException as error:  # threads keep it to themselves
            failures.append(error)

    workers = [threading.Thread(target=work, args=pair) for pair in zip(arrays, wanted)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_fork() -> None:
    """OpenMP's threads do not come along: a child works with one, also where its parent has used several."""
    data, weight = random(8, 16, 40, 40), random(4, 16, 3, 3)
    agree(LAYER, data, weight)
    child = os.fork()
    if not child:
        status = 1
        try:
            agree(LAYER, data, weight)
            agree(LAYER, data[:3], weight)
            status = 0 if threads.share(1e9) == 1 else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    agree(LAYER, data, weight)


def test_switch() -> None:
    """What is compiled already turns to NumPy, too."""
    with pytest.raises(mx.base.ArgumentError, match="choose one of auto, numpy"):
        kernels.set("fast")
    data, weight = random(2, 3, 8, 8), random(4, 3, 3, 3)
    fast = kernels.faster(LAYER, [spec(data), spec(weight)], mx.cpu())
    assert fast is not None
    before = kernels.set("numpy")
    try:
        assert not kernels.enabled()
        assert kernels.faster(LAYER, [spec(data), spec(weight)], mx.cpu()) is None
        np.testing.assert_array_equal(fast(np, data, weight), LAYER.kernel(np, data, weight))
    finally:
        assert kernels.set(before) == "numpy"


def test_programs_say_what_they_use() -> None:
    net = mx.gluon.nn.Conv2D(4, 3, in_channels=3)
    net.initialize()
    net.hybridize()
    assert "by oneDNN" in net.program(nd.zeros((2, 3, 8, 8))).source


def test_share() -> None:
    """Little work gets one thread; tasks that run at the same time share the cores."""
    assert threads.share(threads.WORTH_SHARING / 2) == 1
    assert threads.share(1e9) == threads.FULL
    threads.running = 2
    try:
        assert threads.share(1e9) == max(1, threads.FULL // 2)
    finally:
        threads.running = 1
