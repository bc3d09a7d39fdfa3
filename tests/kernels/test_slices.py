"""Slices: links of a chain for some rows at a time give what they give for all rows, in any number of threads."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import minimx as mx
from minimx import gluon, kernels, nd
from minimx.gluon import nn
from minimx.kernels import calls, chain, machine, slices, threads
from minimx.kernels.onednn import library
from minimx.kernels.slices import ROWS, SUM, WHOLE, Memory, Value
from minimx.op import Spec
from minimx.ops.linalg import Dot

from .test_chain import chains, compare, gradients, images, lenet, one_by_one

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(not chain.exists(), reason="oneDNN is not installed (extra fast)")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int, int], None]]:
    """Slices of few rows, for so many bytes of cache, in so many threads."""

    def choose(cache: int, number: int) -> None:
        kernels.forget()
        monkeypatch.setattr(slices, "CACHE", cache)
        monkeypatch.setattr(slices, "LEAST", 2)
        monkeypatch.setattr(slices, "HEAVY", 0)
        monkeypatch.setattr(threads, "FULL", number)
        monkeypatch.setattr(threads, "WORTH_SHARING", 0.0)

    yield choose
    kernels.forget()


def sliced(net: gluon.HybridBlock, x: nd.NDArray) -> list[list[str]]:
    """The operators of each section."""
    return [
        [part.link.kernel.op.name if isinstance(part.link.kernel, kernels.Faster) else "loop" for part in section.parts]
        for each in chains(net, x)
        for section in each.sections
    ]


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("count", [128, 131, 1000])
def test_lenet_slice_by_slice(count: int, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "FULL", number)
    kernels.forget()
    net, x = lenet(), images(count)
    net.hybridize(static_alloc=True)
    got = gradients(net, x)
    forward, backward = sliced(net, x)
    assert forward.count("Convolution") == 2
    assert backward.count("_backward_Convolution_weight") == 2
    with pytest.MonkeyPatch.context() as patch:
        want = one_by_one(lambda: gradients(net, x), patch)
    np.testing.assert_array_equal(got[0], want[0])  # what has no sums is the same to the bit
    compare(got[1:], want[1:])
    again = gradients(net, x)
    for one, other in zip(got, again, strict=True):
        np.testing.assert_array_equal(one, other)
    kernels.forget()


def test_its_report_says_so() -> None:
    net, x = lenet(), images(512)
    net.hybridize(static_alloc=True)
    report = net.program(x).report()
    assert "in one call, 9 of them slice by slice" in report


def test_a_small_batch_is_computed_at_once() -> None:
    net, x = lenet(), images(24)
    net.hybridize(static_alloc=True)
    gradients(net, x)
    assert sliced(net, x) == []


def test_weights_that_are_heavier_than_the_rows_are_read_once() -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(2048, activation="relu"), nn.Dense(2048))
    net.initialize()
    x = nd.ones((1024, 2048))
    net.hybridize(static_alloc=True)
    net(x).wait_to_read()
    assert sliced(net, x) == []


class Crossed(gluon.HybridBlock):
    """Layers whose values meet again, one of them used whole after it was made row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2D(4, 3, padding=1), nn.Conv2D(4, 3, padding=1)
        self.pool, self.last = nn.MaxPool2D(2, 2), nn.Dense(6)

    def hybrid_forward(self, F, x):  # type: ignore[no-untyped-def]
        a = F.tanh(self.first(x))
        b = self.second(a) + a
        c = self.last(self.pool(F.sigmoid(b)) * 2 + self.pool(a))
        return F.dot(F.dot(c, c, transpose_b=True), c) + c.mean(axis=0, keepdims=True)


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("cache", [1 << 15, 1 << 17])
@pytest.mark.parametrize("count", [24, 37])
def test_values_that_meet_again(count: int, cache: int, number: int, small: Callable[[int, int], None]) -> None:
    small(cache, number)
    net, x = Crossed(), nd.array(np.random.default_rng(0).standard_normal((count, 2, 8, 8), np.float32))
    net.initialize(mx.init.Xavier())
    want = gradients(net, x)
    net.hybridize(static_alloc=True)
    got = gradients(net, x)
    assert sliced(net, x)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5 * max(1.0, float(np.abs(other).max())))


# ---- which links can be together


def value(shape: tuple[int, ...], home: object = None, low: int = 0) -> Value:
    spec = Spec.of(shape, "float32")
    return Value(spec, Memory(object() if home is None else home, low, low + spec.nbytes))


def product(values: list[Value], left: int, right: int, result: int, transpose_a: bool = False) -> chain.Link:
    op = Dot(transpose_a=transpose_a, transpose_b=False)
    kernel = kernels.Faster(op, (values[left].spec, values[right].spec), mx.cpu())
    return chain.Link(kernel, (left, right, result))


def test_how_a_product_goes_over_its_operands() -> None:
    values = [value((64, 8)), value((8, 8)), value((64, 8))]
    forth = slices.part_of(product(values, 0, 1, 2), values)
    assert forth is not None
    assert (forth.rows, forth.hows) == (64, (ROWS, WHOLE, ROWS))
    back = slices.part_of(product(values, 0, 2, 1, True), values)
    assert back is not None
    assert (back.rows, back.hows) == (64, (ROWS, ROWS, SUM))
    assert slices.part_of(product(values, 0, 1, 2), [*values[:2], None]) is None


def section_takes(values: list[Value], *links: chain.Link) -> bool:
    """Whether all links can be one section."""
    parts = [slices.part_of(link, values) for link in links]
    assert parts[0] is not None
    section = slices.Section(parts[0], values)
    return all(part is not None and section.takes(part) for part in parts[1:])


def test_what_a_slice_must_not_see() -> None:
    arena = "arena"
    square = [value((64, 64)) for _ in range(6)]
    assert section_takes(square, product(square, 0, 1, 2), product(square, 2, 3, 4))
    # A value that was made row by row, as a whole; a sum that is not complete yet; a sum in place of an operand.
    assert not section_takes(square, product(square, 0, 1, 2), product(square, 3, 2, 4))
    assert not section_takes(square, product(square, 0, 1, 2, True), product(square, 2, 3, 4))
    assert not section_takes(square, product(square, 0, 1, 2), product(square, 2, 3, 1, True))
    # Other numbers of rows.
    mixed = [value((64, 8)), value((8, 8)), value((64, 8)), value((32, 8)), value((32, 8))]
    assert not section_takes(mixed, product(mixed, 0, 1, 2), product(mixed, 3, 1, 4))
    # Memory that is used again: in its place where rows are as long, and not otherwise.
    again = [value((64, 8), arena), value((8, 8)), value((64, 8), arena, 2048), value((64, 8), arena), value((8, 8))]
    assert section_takes(again, product(again, 0, 1, 2), product(again, 2, 4, 3))
    longer = [value((64, 8), arena), value((8, 8)), value((64, 8), arena, 2048), value((64, 4), arena), value((8, 4))]
    assert not section_takes(longer, product(longer, 0, 1, 2), product(longer, 2, 4, 3))
    later = [value((64, 8), arena), value((8, 8)), value((64, 8), arena, 2048), value((64, 8), arena, 32), value((8, 8))]
    assert not section_takes(later, product(later, 0, 1, 2), product(later, 2, 4, 3))


def test_slices_are_as_even_as_can_be() -> None:
    values = [value((1000, 2048)), value((2048, 8)), value((1000, 8))]
    part = slices.part_of(product(values, 0, 1, 2), values)
    assert part is not None
    section = slices.Section(part, values)
    for number in (1, 2, 3):
        bounds = section.bounds(number)
        assert len(bounds) % number == 0
        assert (bounds[0][0], bounds[-1][1]) == (0, 1000)
        assert all(end == begin for (_, end), (begin, _) in itertools.pairwise(bounds))
        assert {high - low for low, high in bounds} <= {1000 // len(bounds), 1000 // len(bounds) + 1}
        assert max(high - low for low, high in bounds) * section.nbytes <= slices.CACHE


def test_more_threads_than_rows(small: Callable[[int, int], None]) -> None:
    small(1 << 10, 64)
    net, x = Crossed(), nd.ones((24, 2, 8, 8))
    net.initialize(mx.init.Xavier())
    want = gradients(net, x)
    net.hybridize(static_alloc=True)
    for one, other in zip(gradients(net, x), want, strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5 * max(1.0, float(np.abs(other).max())))


@pytest.mark.parametrize("number", [1, 2, 3, 5])
def test_a_team_of_any_size_plays_all_lists(number: int) -> None:
    """OpenMP may give fewer threads than were asked for."""
    lib = library.library()
    total, one = np.zeros((3, 4), np.float32), np.ones(4, np.float32)
    adding = slices.adding(Spec.of((4,), "float32"))
    adding.wait()
    machine.wait(calls.player())
    lists = []
    for row in total:
        lists.append(calls.Calls(lib))
        lists[-1].add_loop(adding, [calls.Place(0)] * 3, 1)
        for (field, _), array in zip(lists[-1].fields, (row, one, row)):
            ctypes.c_int64.from_address(field).value = machine.address(array)
    team = calls.Team(lists, lib)
    rows = [np.array(each.rows, np.int64) for each in lists]
    team.table[:] = [(machine.address(each), len(each), -1) for each in rows]
    with library.threads(number):
        parallel = lib.quick.GOMP_parallel
        parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        parallel(calls.player().part, machine.address(team.arguments), number, 0)
    assert team.table[:, 2].tolist() == [0, 0, 0]
    np.testing.assert_array_equal(total, 1)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        ({}, 8), ({"OMP_NUM_THREADS": "4"}, 4), ({"OMP_NUM_THREADS": "2,1"}, 2), ({"OMP_NUM_THREADS": "many"}, 8),
        ({"OMP_THREAD_LIMIT": "3"}, 3), ({"OMP_NUM_THREADS": "2", "OMP_THREAD_LIMIT": "3"}, 2), ({"OMP_THREAD_LIMIT": "0"}, 8),
        ({"OMP_DYNAMIC": "TRUE", "OMP_NUM_THREADS": "4"}, 1), ({"OMP_DYNAMIC": "false"}, 8),
    ],
)  # fmt: skip
def test_as_many_threads_as_openmp_will_give(given: dict[str, str], want: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "processors", lambda: 8)
    for name in ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OMP_DYNAMIC"):
        monkeypatch.delenv(name, raising=False)
    for name, text in given.items():
        monkeypatch.setenv(name, text)
    assert threads.cores() == want


def test_a_primitive_that_fails_in_a_team_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "FULL", 2)
    kernels.forget()
    net, x = lenet(), images(512)
    net.hybridize(static_alloc=True)
    net(x).wait_to_read()
    found = next(each for each in net.program(x).loops.values() if isinstance(each, chain.Chain))
    frame = found.frames[2][0]
    execute = frame.lib.addresses["dnnl_primitive_execute"]
    rows = [each for each in frame.alive if isinstance(each, np.ndarray) and each.ndim == 2 and each.shape[1] == 6][-1]
    rows[int(np.flatnonzero(rows[:, 0] == execute)[0]), 1] = 0  # no primitive, in the last thread's list
    with pytest.raises(mx.MXNetError, match="primitive_execute failed with status"):
        net(x).wait_to_read()
    kernels.forget()
