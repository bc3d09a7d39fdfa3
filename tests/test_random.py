"""Random numbers: that they follow their distributions, and what they may depend on. Book: chapters 1 and 2.

Seeds are fixed, so that a test either passes always or never. A distribution passes if numbers at least this far from it would
come in more than one of a thousand seeds.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.stats as stats

import minimx as mx
from minimx import engine, nd
from minimx.base import ArgumentError
from minimx.seeds import Key, next_key

RARE = 1e-3
COUNT = 20_000
FLOATS = ("float16", "float32", "float64")


@pytest.fixture(autouse=True)
def _fixed_seed() -> Iterator[None]:
    mx.random.seed(7)
    yield
    mx.random.seed(0)


def fits(numbers: np.ndarray, distribution: Any) -> None:
    """Fail unless `numbers` could come from `distribution`: Kolmogorov and Smirnov's test, Pearson's for whole numbers; and
    moments."""
    numbers = np.asarray(numbers, np.float64).reshape(-1)
    error = distribution.std() / np.sqrt(numbers.size)
    assert abs(numbers.mean() - distribution.mean()) < 4 * error
    assert abs(numbers.std() / distribution.std() - 1) < 0.1
    if hasattr(distribution.dist, "pdf"):
        assert stats.kstest(numbers, distribution.cdf).pvalue > RARE
        return
    # Values that are expected at least 20 times each, and what lies below and above
    values = np.arange(distribution.ppf(1e-9), distribution.ppf(1 - 1e-9) + 1)
    common = values[distribution.pmf(values) * numbers.size > 20]
    edges = np.concatenate([[-np.inf], common[:-1], [np.inf]])
    counts = [np.count_nonzero((numbers > low) & (numbers <= high)) for low, high in itertools.pairwise(edges)]
    assert stats.chisquare(counts, np.diff(distribution.cdf(edges)) * numbers.size).pvalue > RARE
    assert np.all(numbers == np.rint(numbers))


def binomial(mu: float, alpha: float) -> Any:
    return stats.nbinom(1 / alpha, 1 / (mu * alpha + 1))


DISTRIBUTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[float, ...], ...], Callable[..., Any]]] = {
    "uniform": (nd.random.uniform, ((0, 1), (-1.5, 3)), lambda low, high: stats.uniform(low, high - low)),
    "normal": (nd.random.normal, ((0, 1), (1, 5)), stats.norm),
    "gamma": (nd.random.gamma, ((0.5, 1), (9, 0.5)), lambda alpha, beta: stats.gamma(alpha, scale=beta)),
    "exponential": (nd.random.exponential, ((1,), (0.1,)), lambda scale: stats.expon(scale=scale)),
    "poisson": (nd.random.poisson, ((1,), (30,)), stats.poisson),
    "negative_binomial": (nd.random.negative_binomial, ((2, 0.2), (3, 0.4)), stats.nbinom),
    "generalized": (nd.random.generalized_negative_binomial, ((2, 0.3), (8, 0.5)), binomial),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_numbers_as_parameters(name: str, dtype: str) -> None:
    function, parameters, distribution = DISTRIBUTIONS[name]
    for given in parameters:
        drawn = function(*given, shape=COUNT, dtype=dtype)
        assert drawn.dtype == np.dtype(dtype)
        # float16 has 2048 numbers in [1, 2), and neighbours of 0.001 apart: a step function, which the test takes for a fault
        rounded = dtype == "float16" and name in ("uniform", "normal", "gamma", "exponential")
        numbers = drawn.asnumpy()[: COUNT // 10 if rounded else COUNT]
        fits(numbers, distribution(*given))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_arrays_as_parameters(name: str) -> None:
    """Each pair of elements gets numbers of its own distribution; the parameters' dtype does not matter."""
    function, parameters, distribution = DISTRIBUTIONS[name]
    columns = [nd.array(column, dtype="float64") for column in zip(*parameters)]
    drawn = function(*columns, shape=(COUNT // 10, 10))
    assert drawn.shape == (2, COUNT // 10, 10)
    assert drawn.dtype == np.float32
    for given, numbers in zip(parameters, drawn.asnumpy()):
        fits(numbers, distribution(*given))


@pytest.mark.parametrize("name", ["uniform", "normal", "gamma", "poisson", "negative_binomial"])
def test_like(name: str) -> None:
    _, (_, given), distribution = DISTRIBUTIONS[name]
    drawn = getattr(nd.random, f"{name}_like")(nd.ones((COUNT, 1)), *given)
    assert drawn.shape == (COUNT, 1)
    fits(drawn.asnumpy(), distribution(*given))


def test_limits_of_parameters() -> None:
    """Arrays may hold the limits at which a distribution is a point."""
    zeros, ones = nd.zeros(3), nd.ones(3)
    assert (nd.random.normal(ones, zeros).asnumpy() == 1).all()
    assert (nd.random.uniform(ones, ones).asnumpy() == 1).all()
    assert (nd.random.gamma(zeros, ones).asnumpy() == 0).all()
    assert (nd.random.exponential(zeros).asnumpy() == 0).all()
    assert (nd.random.poisson(zeros).asnumpy() == 0).all()
    assert (nd.random.negative_binomial(ones, ones).asnumpy() == 0).all()
    fits(nd.random.generalized_negative_binomial(5, 0, COUNT).asnumpy(), stats.poisson(5))
    assert nd.random.poisson(1e30, dtype="float64").asscalar() == 1e30  # int64 holds no such number: the expectation itself


def test_uniform_excludes_its_end() -> None:
    """Numbers lie in [low, high), also where rounding would carry the largest to high."""
    for dtype, low, high in [("float16", 0, 1), ("float16", 1, 3), ("float32", 1, 1 + 2**-20)]:
        drawn = nd.random.uniform(low, high, shape=COUNT, dtype=dtype)
        assert low <= drawn.min().asscalar() <= drawn.max().asscalar() < high
        ends = nd.array([low], dtype=dtype), nd.array([high], dtype=dtype)
        assert nd.random.uniform(*ends, shape=COUNT, dtype=dtype).max().asscalar() < high


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 3), (50_000_000, 50_001_000), (-500, 199)])
def test_randint(low: int, high: int, dtype: str) -> None:
    drawn = nd.random.randint(low, high, COUNT, dtype=dtype)
    assert drawn.dtype == np.dtype(dtype)
    numbers = drawn.asnumpy()
    assert low <= numbers.min() <= numbers.max() < high
    if 1 < high - low < 100:
        fits(numbers, stats.randint(low, high))
    assert nd.random.randint(low, high).dtype == np.int32


def test_randint_whole_range() -> None:
    drawn = nd.random.randint(-(2**31), 2**31, COUNT).asnumpy()
    assert drawn.min() < -(2**30) < 2**30 < drawn.max()
    wide = nd.random.randint(-(2**63), 2**63, COUNT, dtype="int64").asnumpy()
    assert wide.min() < -(2**62) < 2**62 < wide.max()


# ---- classes


@pytest.mark.parametrize("dtype", FLOATS)
def test_multinomial(dtype: str) -> None:
    """Classes come as often as their probabilities say: with zeros among them, and where the sum is not 1."""
    table = np.array([[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [0, 0, 1, 0, 0], [1, 0, 0, 0, 1]]) / 16
    drawn = nd.random.multinomial(nd.array(table, dtype=dtype), shape=(COUNT // 4, 4))
    assert drawn.shape == (4, COUNT // 4, 4)
    assert drawn.dtype == np.int32
    for row, weights in zip(drawn.asnumpy(), table):
        counts = np.bincount(row.reshape(-1), minlength=5)
        possible = weights > 0
        assert not counts[~possible].any()
        if possible.sum() > 1:
            assert stats.chisquare(counts[possible], COUNT * (weights / weights.sum())[possible]).pvalue > RARE


def test_multinomial_of_many_rows() -> None:
    """One draw for each of many rows, as when a language model samples."""
    drawn = nd.random.multinomial(nd.array(np.tile([0, 0.2, 0.3, 0.5, 0], (COUNT, 1))))
    counts = np.bincount(drawn.asnumpy(), minlength=5)
    assert not counts[[0, 4]].any()
    assert stats.chisquare(counts[1:4], COUNT * np.array([0.2, 0.3, 0.5])).pvalue > RARE


def test_multinomial_probabilities() -> None:
    """The logarithms belong to what was drawn, and their gradient is that of the estimator REINFORCE."""
    p = nd.array([[0, 0.25, 0.75], [0.5, 0.5, 0]])
    p.attach_grad()
    with mx.autograd.record():
        drawn, logarithms = nd.random.multinomial(p, shape=1000, get_prob=True)
        loss = 5 * logarithms
    loss.backward()
    chosen = drawn.asnumpy()
    np.testing.assert_allclose(logarithms.asnumpy(), np.log(np.take_along_axis(p.asnumpy(), chosen, 1)), rtol=1e-6)
    for row, slope, probability in zip(chosen, p.grad.asnumpy(), p.asnumpy()):
        counts = np.bincount(row, minlength=3)
        want = np.divide(5 * counts, probability, out=np.zeros(3), where=probability > 0)
        np.testing.assert_allclose(slope, want, rtol=1e-5)


def test_multinomial_returns() -> None:
    p = nd.array([0.5, 0.5])
    assert isinstance(nd.random.multinomial(p), nd.NDArray)
    pair = nd.random.multinomial(p, get_prob=True, dtype="float32")
    assert isinstance(pair, list)
    assert [each.shape for each in pair] == [(1,), (1,)]
    assert pair[0].dtype == np.float32


def test_multinomial_refuses_a_small_dtype() -> None:
    """A class beyond the whole numbers of the dtype would come out as another: MXNet's test pins the error."""
    p = nd.ones(2**12)
    for dtype, fits_in in [("uint8", 2**8), ("float16", 2**11 + 1)]:
        with pytest.raises(ArgumentError, match="too small to number"):
            nd.random.multinomial(p[: fits_in + 1], dtype=dtype)
        nd.random.multinomial(p[:fits_in], dtype=dtype).wait_to_read()


# ---- shuffling


@pytest.mark.parametrize("shape", [(3,), (3, 3), (3, 2, 3)])
def test_shuffle(shape: tuple[int, ...]) -> None:
    """Every order comes equally often; rows stay whole; the input stays as it is."""
    data = nd.arange(0, int(np.prod(shape))).reshape(shape)
    before = data.asnumpy()
    counts: dict[tuple[float, ...], int] = {}
    for _ in range(6000):
        drawn = nd.random.shuffle(data).asnumpy().reshape(3, -1)
        order = tuple(drawn[:, 0])
        np.testing.assert_array_equal(np.diff(drawn, axis=1), 1)
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > RARE
    np.testing.assert_array_equal(data.asnumpy(), before)


def test_shuffle_of_many() -> None:
    data = nd.arange(0, 10000).astype("int32").reshape((1000, 10))
    drawn = nd.random.shuffle(data)
    assert (drawn != data).sum().asscalar() > 9000
    np.testing.assert_array_equal(np.sort(drawn.asnumpy(), axis=0), data.asnumpy())


# ---- many classes


def test_unique_zipfian() -> None:
    """Tries as counted by other libraries for the same sampler."""
    classes, tries = nd.random.unique_zipfian(793472, (4, 8192))
    assert (classes.dtype, tries.dtype) == (np.int64, np.int64)
    for row in classes.asnumpy():
        assert np.unique(row).size == 8192
        assert 0 <= row.min() < row.max() < 793472
    assert ((tries.asnumpy() > 14500) & (tries.asnumpy() < 17000)).all()


def test_rand_zipfian() -> None:
    true = nd.array([0, 3, 19], dtype="int32")
    sampled, expected_true, expected_sampled = nd.contrib.rand_zipfian(true, COUNT, 20)
    expected = COUNT * np.log((np.arange(20) + 2) / (np.arange(20) + 1)) / np.log(21)
    np.testing.assert_allclose(expected_true.asnumpy(), expected[[0, 3, 19]], rtol=1e-12)
    np.testing.assert_allclose(expected_sampled.asnumpy(), expected[sampled.asnumpy()], rtol=1e-12)
    assert stats.chisquare(np.bincount(sampled.asnumpy(), minlength=20), expected).pvalue > RARE


# ---- what the numbers depend on


def several() -> list[np.ndarray]:
    """Draws of many kinds, in a fixed order."""
    p = nd.array([[0.1, 0.9], [0.5, 0.5]])
    drawn = [
        nd.random.uniform(shape=(3, 4)),
        nd.random.normal(shape=100_000),
        nd.random.gamma(2, 3, shape=(5,), dtype="float64"),
        nd.random.poisson(p, shape=3),
        nd.random.multinomial(p, shape=7),
        nd.random.shuffle(nd.arange(50)),
        nd.random.randint(0, 100, 9),
        nd.random.uniform_like(p),
        nd.Dropout(nd.ones((4, 5)), p=0.5, mode="always"),
    ]
    return [each.asnumpy() for each in drawn]


def equal(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_same_seed_same_numbers() -> None:
    mx.random.seed(3)
    first, next_ones = several(), several()
    assert not equal(first, next_ones)
    mx.random.seed(3)
    assert equal(several(), first)
    assert equal(several(), next_ones)
    mx.random.seed(4)
    assert not equal(several(), first)


@pytest.mark.parametrize("scope", [engine.naive, engine.lazy, lambda: engine.bulk(1), lambda: engine.bulk(50)])
def test_engine_settings_do_not_matter(scope: Any) -> None:
    usual = several()
    mx.random.seed(7)
    with scope():
        assert equal(several(), usual)


PROGRAM = """
import hashlib, minimx as mx
from minimx import nd
mx.random.seed(11)
arrays = [nd.random.normal(shape=70_000) for _ in range(20)] + [nd.random.shuffle(nd.arange(1000)) for _ in range(5)]
print(hashlib.sha256(b"".join(array.asnumpy().tobytes() for array in arrays)).hexdigest())
"""


def test_workers_do_not_matter() -> None:
    """The same program prints the same with other engines and numbers of workers."""
    settings = [{}, {"MXNET_ENGINE_TYPE": "NaiveEngine"}, {"MXNET_CPU_WORKER_NTHREADS": "4"}, {"MINIMX_LAZY": "1"}]
    printed = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, **extra}, capture_output=True, text=True, check=True
        ).stdout
        for extra in settings
    }
    assert len(printed) == 1


def test_out_gets_the_same_numbers() -> None:
    """Writing into an array, of a pool's memory or not, changes no number."""
    for size in (10, 100_000):
        mx.random.seed(5)
        want = nd.random.normal(1, 2, shape=size).asnumpy()
        mx.random.seed(5)
        out = nd.zeros(size)
        assert nd.random.normal(1, 2, out=out) is out
        np.testing.assert_array_equal(out.asnumpy(), want)


def test_other_devices_do_not_matter() -> None:
    """A device's numbers depend on the calls on that device; devices differ."""
    alone = [nd.random.uniform(shape=5, ctx=mx.cpu(0)).asnumpy() for _ in range(3)]
    mx.random.seed(7)
    beside = []
    for _ in range(3):
        beside.append(nd.random.uniform(shape=5, ctx=mx.cpu(0)).asnumpy())
        other = nd.random.uniform(shape=5, ctx=mx.cpu(1)).asnumpy()
        assert not np.array_equal(other, beside[-1])
    assert equal(alone, beside)


def test_seed_of_one_device() -> None:
    """Devices that are seeded one by one draw the same; the others go on."""
    nd.random.uniform(ctx=mx.cpu(2))
    mx.random.seed(7)
    nd.random.uniform(ctx=mx.cpu(2))
    want = nd.random.uniform(ctx=mx.cpu(2)).asscalar()
    mx.random.seed(7)
    nd.random.uniform(ctx=mx.cpu(2))
    mx.random.seed(1, ctx=mx.cpu(0))
    mx.random.seed(1, ctx=mx.cpu(1))
    first, second = (nd.random.normal(shape=9, ctx=mx.cpu(i)).asnumpy() for i in (0, 1))
    np.testing.assert_array_equal(first, second)
    assert nd.random.uniform(ctx=mx.cpu(2)).asscalar() == want
    mx.random.seed(1, ctx="cpu")
    np.testing.assert_array_equal(nd.random.normal(shape=9).asnumpy(), first)
    mx.random.seed(1)
    np.testing.assert_array_equal(nd.random.normal(shape=9).asnumpy(), first)


def test_simulated_gpus() -> None:
    with mx.device.simulate_gpus(2):
        mx.random.seed(7, ctx=mx.gpu(0))
        mx.random.seed(7, ctx=mx.gpu(1))
        zero, one = (nd.random.uniform(shape=8, ctx=mx.gpu(i)) for i in range(2))
        assert (zero.context, one.context) == (mx.gpu(0), mx.gpu(1))
        np.testing.assert_array_equal(zero.asnumpy(), one.asnumpy())
        mx.random.seed(7)
        zero, one = (nd.random.uniform(shape=8, ctx=mx.gpu(i)) for i in range(2))
        assert not np.array_equal(zero.asnumpy(), one.asnumpy())


def test_seed_arguments() -> None:
    for number in (-1, 2**40, 2**70, np.int64(3), 0):
        mx.random.seed(number)
        first = nd.random.uniform(shape=3).asnumpy()
        mx.random.seed(number)
        np.testing.assert_array_equal(nd.random.uniform(shape=3).asnumpy(), first)
    for bad in (1.5, None, "1"):
        with pytest.raises(ValueError, match="seed_state must be int"):
            mx.random.seed(bad)
    with pytest.raises(KeyError):
        mx.random.seed(1, ctx="xyz")


def test_keys() -> None:
    """A key is a value: from equal keys come equal numbers, in any order and thread."""
    keys = [next_key(mx.cpu()) for _ in range(4)]
    assert len(set(keys)) == 4
    assert keys[0] == Key(7, 0, 1)
    want = [key.generator(np).random(5) for key in keys]
    got: dict[int, np.ndarray] = {}

    def draw(i: int) -> None:
        keys[(i + 1) % 4].generator(np).random(3, dtype=np.float32)  # leaves half a word in the generator
        got[i] = keys[i].generator(np).random(5)

    threads = [threading.Thread(target=draw, args=(i,)) for i in (3, 1, 0, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        np.testing.assert_array_equal(got[i], want[i])
    fresh = np.random.Generator(np.random.Philox(key=np.array([7, 0], np.uint64), counter=np.array([0, 0, 1, 0], np.uint64)))
    np.testing.assert_array_equal(fresh.random(5), want[0])


def test_keys_from_many_threads() -> None:
    """Each draw gets a key of its own, whichever threads ask."""
    taken: list[Key] = []

    def take() -> None:
        taken.extend([next_key(mx.cpu(3)) for _ in range(500)])

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(key.counter for key in taken) == list(range(1, 2001))


def test_streams_are_independent() -> None:
    """Neighbouring seeds, streams and counters have nothing in common."""
    rows = [Key(seed, stream, count).generator(np).random(500) for seed, stream, count in itertools.product(range(3), repeat=3)]
    correlations = np.corrcoef(rows)[np.triu_indices(len(rows), 1)]
    assert abs(correlations).max() < 4.5 / np.sqrt(500)
    fits(np.concatenate(rows), stats.uniform())


def test_failure_is_asynchronous() -> None:
    """MXNet's own example: the call returns, the error waits in the array."""
    bad = nd.random.normal(0, -1, (2, 2))
    assert bad.shape == (2, 2)
    with pytest.raises(mx.MXNetError, match="scale is -1; it must be greater than 0"):
        bad.asnumpy()


def test_names() -> None:
    """MXNet's other names for the same functions."""
    assert mx.random.uniform is nd.random.uniform
    assert nd.uniform is nd.random_uniform  # the operator: here ctx comes before dtype
    assert mx.random.normal is nd.random.normal
    assert nd.normal is nd.random_normal
    assert nd.random_exponential(lam=4.0, shape=(2, 3)).shape == (2, 3)
    assert nd.random.randn(2, 3, loc=5, dtype="float64").dtype == np.float64
    assert nd.random.randn().shape == (1,)
    assert nd.shuffle is nd.random.shuffle
