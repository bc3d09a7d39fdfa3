"""DataLoader: which batches come, in which order, and that they do not depend on who makes them."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, nd
from minimx.gluon import data
from minimx.gluon.data import collate
from minimx.gluon.data.batchify import default_batchify_fn
from minimx.gluon.data.dataset import _DownloadedDataset

WORKERS = [
    {"num_workers": 0},
    {"num_workers": 1},
    {"num_workers": 2},
    {"num_workers": 4},
    {"num_workers": 1, "thread_pool": True},
    {"num_workers": 3, "thread_pool": True},
]
SOME_WORKERS = [WORKERS[0], WORKERS[2], WORKERS[5]]


def values(batch: Any) -> Any:
    """A batch with its arrays as lists."""
    if isinstance(batch, nd.NDArray):
        return batch.asnumpy().tolist()
    return [values(part) for part in batch] if isinstance(batch, (list, tuple)) else batch


class Noisy(data.Dataset):
    """Samples that are random in all ways that there are, or only by `mx.random`."""

    def __init__(self, all_ways: bool) -> None:
        self.all_ways = all_ways

    def __len__(self) -> int:
        return 23

    def __getitem__(self, index: int) -> Any:
        own = nd.random.uniform(shape=(2, 300)) + nd.array([[index], [0]])
        return (own, np.random.rand(3), random.random()) if self.all_ways else (own, nd.random.randint(0, 99))


# ---- equal batches


@pytest.mark.parametrize("all_ways", [True, False])
def test_random_transforms_do_not_depend_on_workers(all_ways: bool) -> None:
    def run(options: dict[str, Any]) -> Any:
        mx.random.seed(5), np.random.seed(6), random.seed(7)
        loader = data.DataLoader(Noisy(all_ways), 4, shuffle=True, **options)
        epochs = [values(list(loader)) for _ in range(2)]
        assert epochs[0] != epochs[1]
        # What the program draws afterwards does not depend on them either
        return epochs, np.random.rand(), random.random(), nd.random.uniform().asscalar()

    wanted = run(WORKERS[0])
    for options in WORKERS[1:4] if all_ways else WORKERS[1:]:
        assert run(options) == wanted


def test_batches_differ_from_each_other() -> None:
    """The classical fault: workers that were all copied from one parent, and draw the same."""
    for options in SOME_WORKERS:
        firsts = [batch[0].asnumpy()[0, 0, 1] for batch in data.DataLoader(Noisy(False), 4, **options)]
        assert len(set(firsts)) == len(firsts)


def test_each_generators_seed_counts() -> None:
    loader = data.DataLoader(Noisy(True), 23, num_workers=1)
    before = None
    for reseed in (lambda: mx.random.seed(1), lambda: np.random.seed(1), lambda: random.seed(1)):
        mx.random.seed(0), np.random.seed(0), random.seed(0)
        zero = values(next(iter(loader)))
        assert before in (None, zero)
        before = zero
        mx.random.seed(0), np.random.seed(0), random.seed(0)
        reseed()
        one = values(next(iter(loader)))
        assert sum(part != other for part, other in zip(zero, one)) == 1


def test_other_generators_of_numpy() -> None:
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(3))
    try:
        batch = next(iter(data.DataLoader(Noisy(True), 2)))
        assert batch[1].shape == (2, 3)
    finally:
        np.random.set_bit_generator(before)


class InMemory(_DownloadedDataset):
    def _get_data(self) -> None:
        self._data, self._label = nd.random.uniform(shape=(11, 4, 3, 1)), np.arange(11, dtype=np.int32)


DATASETS = {
    "downloaded": lambda: InMemory("folder", None),
    "downloaded and transformed": lambda: InMemory("folder", lambda x, y: (x * 2, y)),
    "numpy": lambda: data.ArrayDataset(np.random.rand(11, 3), np.arange(11)),
    "one": lambda: data.ArrayDataset(np.random.rand(11, 3, 2).astype("float16")),
    "nd": lambda: data.ArrayDataset(nd.random.uniform(shape=(11, 3)), nd.arange(11)),
    "views": lambda: data.ArrayDataset(nd.random.uniform(shape=(12, 3))[1:], np.arange(22)[::-2], np.asfortranarray(np.eye(11))),
    "bool": lambda: data.ArrayDataset(np.arange(11) > 5, np.arange(11, dtype=np.uint8)),
    "mixed": lambda: data.ArrayDataset(np.random.rand(11, 3), list(range(11))),
    "lists": lambda: data.ArrayDataset([[1, 2]] * 11, list(range(11))),
    "big-endian": lambda: data.ArrayDataset(np.arange(11).astype(">i4")),
    "array": lambda: np.random.rand(11, 4),
    "NDArray": lambda: nd.random.uniform(shape=(11, 4)),
    "flat NDArray": lambda: nd.arange(11),
    "simple": lambda: data.SimpleDataset(np.arange(11)),
    "list": lambda: [(1, 2.5, np.ones(2))] * 11,
    "taken": lambda: data.ArrayDataset(np.random.rand(11, 3), np.arange(11)).take(7),
    "sampled": lambda: (
        data.ArrayDataset(nd.random.uniform(shape=(11, 3)), np.arange(11)).sample(data.IntervalSampler(11, 4)).shard(2, 1)
    ),
    "negative": lambda: data.SimpleDataset(np.arange(11)).sample(data.BatchSampler([-1, 3, -11], 3)),
    "filtered": lambda: data.SimpleDataset(np.arange(11)).filter(lambda x: x % 3 == 0),
    "transformed": lambda: data.ArrayDataset(np.random.rand(11, 3), np.arange(11)).transform_first(lambda x: x[::-1]),
    "subclass": lambda: type("Twice", (data.ArrayDataset,), {"__getitem__": lambda self, i: 2 * self._data[0][i]})(np.arange(11)),
}


@pytest.mark.parametrize("name", DATASETS)
def test_rows_are_what_stacking_gives(name: str) -> None:
    """Batches that are cut out of arrays at once are those of MXNet's way, sample by sample."""
    dataset = DATASETS[name]()

    def stack(samples: list[Any]) -> Any:
        return default_batchify_fn(samples)

    for size in (1, 4):
        plain = list(data.DataLoader(dataset, size, batchify_fn=stack))
        for options in SOME_WORKERS if size == 4 else [{}]:
            loader = data.DataLoader(dataset, size, **options)
            assert len(loader) == len(plain)
            for batch, wanted in zip(loader, plain, strict=True):
                assert type(batch) is type(wanted)
                for part, other in zip(
                    *([each] if isinstance(each, nd.NDArray) else each for each in (batch, wanted)), strict=True
                ):
                    assert (part.shape, part.dtype, part.context) == (other.shape, other.dtype, mx.cpu())
                    np.testing.assert_array_equal(part.asnumpy(), other.asnumpy())


def test_which_data_sets_are_rows() -> None:
    rows = {name for name, make in DATASETS.items() if isinstance(collate.maker(make(), default_batchify_fn), collate._AllAtOnce)}
    assert rows == {
        "downloaded",
        "numpy",
        "one",
        "nd",
        "views",
        "bool",
        "array",
        "NDArray",
        "simple",
        "taken",
        "sampled",
        "filtered",
    }


def test_rows_are_copies() -> None:
    features = nd.ones((4, 2))
    batch, _ = next(iter(data.DataLoader(data.ArrayDataset(features, features), 2)))
    batch[:] = 5
    assert features.asnumpy().tolist() == [[1, 1]] * 4


def test_rows_see_what_is_queued() -> None:
    features = nd.ones((1000, 1000))
    for _ in range(3):
        features += 1
    batch = next(iter(data.DataLoader(features, 10)))
    assert (batch.asnumpy() == 4).all()


@pytest.mark.parametrize("index", [7, -8, 1 << 40])
@pytest.mark.parametrize("dataset", [np.arange(7), nd.ones((7, 2)), data.ArrayDataset(np.arange(7)).take(5)])
def test_indices_that_are_not_there(dataset: Any, index: int) -> None:
    with pytest.raises(IndexError):
        list(data.DataLoader(dataset, batch_sampler=[[0, 1], [index]]))


def test_odd_batch_samplers() -> None:
    numbers = np.arange(10)
    assert values(list(data.DataLoader(numbers, batch_sampler=[(1, 2), np.array([3]), range(4, 6)]))) == [[1, 2], [3], [4, 5]]
    assert values(list(data.DataLoader(numbers, 2, sampler=[5, 1, 5]))) == [[5, 1], [5]]
    assert values(list(data.DataLoader(numbers, batch_sampler=[[slice(0, 2), slice(2, 4)]]))) == [[[0, 1], [2, 3]]]
    assert values(list(data.DataLoader({"a": 1, "b": 2}, batch_sampler=[["b", "a"]], num_workers=1))) == [[2, 1]]
    with pytest.raises(ValueError, match="without samples"):
        list(data.DataLoader(numbers, batch_sampler=[[]]))


def test_gradients_through_rows() -> None:
    features = nd.ones((4, 2))
    features.attach_grad()
    with autograd.record():
        total = sum(batch.sum() * (number + 1) for number, batch in enumerate(data.DataLoader(features, 2)))
    total.backward()
    assert features.grad.asnumpy().tolist() == [[1, 1], [1, 1], [2, 2], [2, 2]]


# ---- epochs


@pytest.mark.parametrize("options", SOME_WORKERS)
def test_epochs(options: dict[str, Any]) -> None:
    loader = data.DataLoader(list(range(10)), 4, last_batch="rollover", **options)
    assert [len(loader), *values(list(loader))] == [2, [0, 1, 2, 3], [4, 5, 6, 7]]
    assert [len(loader), *values(list(loader))] == [3, [8, 9, 0, 1], [2, 3, 4, 5], [6, 7, 8, 9]]
    assert list(data.DataLoader([], 4, **options)) == []


@pytest.mark.parametrize("options", SOME_WORKERS)
def test_passes_beside_each_other(options: dict[str, Any]) -> None:
    loader = data.DataLoader(list(range(9)), 2, **options)
    wanted = [[0, 1], [2, 3], [4, 5], [6, 7], [8]]
    assert [(values(a), values(b)) for a, b in zip(loader, loader)] == list(zip(wanted, wanted))
    first = iter(loader)
    assert values(next(first)) == [0, 1]
    assert values(list(loader)) == wanted  # a whole one in between
    assert values(list(first)) == wanted[1:]
    assert next(first, "no more") == "no more"


@pytest.mark.parametrize("options", SOME_WORKERS)
def test_left_loops(options: dict[str, Any]) -> None:
    loader = data.DataLoader(list(range(40)), 2, **options)
    for _ in range(5):
        for batch in loader:
            assert values(batch) == [0, 1]
            break
    with contextlib.suppress(ZeroDivisionError):
        for _ in loader:
            1 / 0  # noqa: B018
    assert values(list(loader)) == [[n, n + 1] for n in range(0, 40, 2)]


@pytest.mark.parametrize("options", SOME_WORKERS)
def test_a_pass_keeps_its_loader(options: dict[str, Any]) -> None:
    batches = iter(data.DataLoader(nd.ones(5), 2, batchify_fn=list, **options))
    assert len(next(batches)) == 2
    assert len(list(batches)) == 2


@pytest.mark.parametrize("options", SOME_WORKERS)
def test_auto_reload(options: dict[str, Any]) -> None:
    loader = data.DataLoader(list(range(6)), 2, auto_reload=True, **options)
    for _ in range(3):
        assert values(list(loader)) == [[0, 1], [2, 3], [4, 5]]
    loader.clean()
    loader.refresh()
    assert values(list(loader)) == [[0, 1], [2, 3], [4, 5]]


def test_seeds_and_auto_reload() -> None:
    mx.random.seed(0)
    loader = data.DataLoader(list(range(20)), 20, shuffle=True, num_workers=1, auto_reload=True)
    ahead = values(list(loader))
    mx.random.seed(0)
    assert values(list(data.DataLoader(list(range(20)), 20, shuffle=True))) == ahead


# ---- where batches are, and what they may hold


@pytest.mark.parametrize("options", SOME_WORKERS)
def test_context(options: dict[str, Any]) -> None:
    features = data.ArrayDataset(np.ones((5, 2)), np.arange(5))
    for x, y in data.DataLoader(features, 2, pin_memory=True, pin_device_id=1, **options):
        assert x.context == y.context == mx.cpu_pinned(1)
        assert (x + y.reshape((-1, 1)).astype("float64")).shape == x.shape
    batch = next(iter(data.DataLoader(features, 2, batchify_fn=tuple, pin_memory=True, **options)))
    assert type(batch) is tuple


@pytest.mark.parametrize("options", SOME_WORKERS)
def test_structures(options: dict[str, Any]) -> None:
    def batchify(samples: list[int]) -> Any:
        return {"x": nd.array(samples), "names": [str(sample) for sample in samples], "nested": (np.array(samples), [None, 1.5])}

    first, second = data.DataLoader([1, 2, 3], 2, batchify_fn=batchify, **options)
    assert first["x"].asnumpy().tolist() == [1, 2]
    assert (first["names"], second["names"]) == (["1", "2"], ["3"])
    assert (type(first["nested"][0]), first["nested"][0].tolist(), first["nested"][1]) == (np.ndarray, [1, 2], [None, 1.5])
    first["nested"][0][:] = 7  # it is the receiver's own
    first["x"][:] = 7


def test_workers_deliver_on_the_cpu() -> None:
    with mx.device.simulate_gpus(1), mx.gpu(0):
        for options in SOME_WORKERS:
            batch = next(iter(data.DataLoader([1, 2], 2, batchify_fn=nd.array, **options)))
            assert batch.context == (mx.cpu() if options["num_workers"] else mx.gpu(0))


@pytest.mark.parametrize("options", SOME_WORKERS)
def test_recording_is_the_callers(options: dict[str, Any]) -> None:
    weight = nd.ones((1,))
    weight.attach_grad()
    dataset = data.SimpleDataset([1.0, 2.0]).transform(lambda x: nd.array([x]) * 2)
    with autograd.record():
        (batch,) = data.DataLoader(dataset, 2, **options)
        loss = (batch * weight).sum()
    loss.backward()
    assert weight.grad.asscalar() == 6


# ---- wrong arguments


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: data.DataLoader([1]), ValueError, "batch_size must be specified unless"),
        (lambda: data.DataLoader([1], 1, shuffle=True, sampler=[0]), ValueError, "shuffle must not be specified"),
        (lambda: data.DataLoader([1], 1, batch_sampler=[[0]]), ValueError, "must not be specified if batch_sampler"),
        (lambda: data.DataLoader([1], last_batch="keep", batch_sampler=[[0]]), ValueError, "must not be specified"),
        (lambda: data.DataLoader([1], 1, last_batch="x"), ValueError, "but got 'x'"),
        (lambda: data.DataLoader([1], 0), ValueError, "batch_size is 0"),
        (lambda: data.DataLoader([1], 1, timeout=0), AssertionError, "timeout must be positive"),
        (lambda: data.DataLoader([1], 1, timeout="long"), TypeError, "timeout"),
        (lambda: data.DataLoader([1], 1, num_workers="many"), TypeError, "num_workers"),
        (lambda: data.DataLoader([1], 1, num_workers=1.5), TypeError, "num_workers"),
        (lambda: data.DataLoader([1], 1, prefetch="all"), TypeError, "prefetch"),
        (lambda: data.DataLoader([1], 1, batchify_fn=3), TypeError, "batchify_fn must be a function"),
        (lambda: data.DataLoader(iter([1]), 1), TypeError, "samples at indices"),
        (lambda: data.DataLoader([1], 1, pin_memory=True, pin_device_id=-1), ValueError, "negative"),
        (lambda: data.DataLoader([1], 1, thread_pool="yes"), TypeError, "thread_pool"),
    ],
)
def test_wrong_arguments(make, kind, message) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_odd_numbers_of_workers() -> None:
    assert values(list(data.DataLoader([1, 2], 1, num_workers=-1))) == [[1], [2]]  # as in MXNet
    assert values(list(data.DataLoader([1, 2], 1, num_workers=np.int64(1), prefetch=0))) == [[1], [2]]
    assert values(list(data.DataLoader([1, 2], 1, num_workers=1, prefetch=-5))) == [[1], [2]]
