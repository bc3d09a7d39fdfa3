"""Tests of random generators, with generators that are right and wrong."""

from __future__ import annotations

import numpy as np
import pytest

from minimx import nd
from minimx.base import ArgumentError
from minimx.test_utils import chi_square_check, gen_buckets_probs_with_ppf, mean_check, var_check, verify_generator

scipy_stats = pytest.importorskip("scipy.stats")


def generator(seed, *parameters):
    rng = np.random.default_rng(seed)
    return lambda count: rng.normal(*parameters, size=count)


def test_mean_and_variance():
    assert mean_check(generator(0), 0, 1, nsamples=10000)
    assert not mean_check(generator(0, 0.1), 0, 1, nsamples=10000)
    assert var_check(generator(0), 1, nsamples=10000)
    assert not var_check(generator(0, 0, 1.1), 1, nsamples=10000)


def test_intervals():
    buckets, probs = gen_buckets_probs_with_ppf(scipy_stats.norm.ppf, 5)
    assert buckets[0][0] == -np.inf
    assert buckets[-1][1] == np.inf
    assert probs == [0.2] * 5
    p, found, expected = chi_square_check(generator(1), buckets, probs, nsamples=10000)
    assert p > 0.05
    assert found.sum() == 10000
    assert expected.tolist() == [2000] * 5
    statistic, right = scipy_stats.chisquare(found, expected)
    assert p == pytest.approx(right)
    assert statistic > 0
    assert chi_square_check(generator(1, 0.1), buckets, probs, nsamples=10000)[0] < 1e-6


def test_values_of_a_discrete_distribution():
    rng = np.random.default_rng(2)
    draw = lambda count: nd.array(rng.choice([1, 3], count, p=[0.25, 0.75]))  # noqa: E731  # an NDArray will do, too
    p, found, expected = chi_square_check(draw, [1, 3], [0.25, 0.75], nsamples=4000)
    assert p > 0.01
    assert found.sum() == 4000
    assert expected.tolist() == [1000, 3000]


def test_verification():
    buckets, probs = gen_buckets_probs_with_ppf(scipy_stats.norm.ppf, 4)
    assert len(verify_generator(generator(3), buckets, probs, nsamples=2000, nrepeat=3)) == 3
    with pytest.raises(AssertionError, match="does not draw from the distribution: p-values"):
        verify_generator(generator(3, 0.5), buckets, probs, nsamples=2000, nrepeat=3)


def test_bad_input():
    with pytest.raises(ArgumentError, match="2 buckets with 1 probabilities"):
        chi_square_check(generator(0), [1, 2], [1.0])
    with pytest.raises(ArgumentError, match="rising order"):
        chi_square_check(generator(0), [(0, 2), (1, 3)], [0.5, 0.5], nsamples=10)
    with pytest.raises(ArgumentError, match="nbuckets=0"):
        gen_buckets_probs_with_ppf(lambda p: p, 0)
