"""Whether a random generator draws from the distribution it says: mean, variance, and the chi-square test of counts in buckets.

A generator is a function of a number that returns so many independent samples. The chi-square test needs SciPy.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import ArgumentError, MXNetError
from .comparison import values

__all__ = ["chi_square_check", "gen_buckets_probs_with_ppf", "mean_check", "var_check", "verify_generator"]

Generator = Callable[[int], Any]


class MissingSciPyError(MXNetError, ImportError):
    """SciPy is not installed."""


def gen_buckets_probs_with_ppf(ppf: Callable[[float], float], nbuckets: int) -> tuple[list[tuple[float, float]], list[float]]:
    """`nbuckets` intervals of equal probability, and these probabilities. **Source** MXNet `test_utils`, like all names here.

    **Args** `ppf`: the quantile function of the distribution.

    >>> gen_buckets_probs_with_ppf(lambda p: 10 * p, 2)
    ([(0.0, 5.0), (5.0, 10.0)], [0.5, 0.5])
    """
    if nbuckets < 1:
        raise ArgumentError(f"gen_buckets_probs_with_ppf: nbuckets={nbuckets}; at least 1 is wanted")
    ends = [ppf(number / nbuckets) for number in range(nbuckets + 1)]
    return list(itertools.pairwise(ends)), [1 / nbuckets] * nbuckets


def mean_check(generator: Generator, mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the mean of samples is within three of its own deviations, `sigma / sqrt(nsamples)`, of `mu`."""
    return bool(abs(values(generator(nsamples)).mean() - mu) < 3 * sigma / np.sqrt(nsamples))


def var_check(generator: Generator, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the variance of samples is within three of its own deviations, for a normal distribution, of `sigma ** 2`."""
    variance = values(generator(nsamples)).var(ddof=1)
    return bool(abs(variance - sigma**2) < 3 * np.sqrt(2 * sigma**4 / (nsamples - 1)))


def chi_square_check(
    generator: Generator, buckets: Sequence[Any], probs: Sequence[float], nsamples: int = 1000000
) -> tuple[float, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The chi-square test of the numbers of samples in buckets.

    **Args** `buckets`: intervals (low, high) in rising order, or values of a discrete distribution; `probs`: the probability of each.
    **Returns** the p-value (below 0.05 a right generator gives one in twenty times), the numbers found, the numbers expected.
    **Raises** MissingSciPyError; ArgumentError.
    """
    if not buckets or len(buckets) != len(probs):
        raise ArgumentError(
            f"chi_square_check: {len(buckets)} buckets with {len(probs)} probabilities; a probability for each is wanted"
        )
    samples = values(generator(nsamples)).ravel()
    if isinstance(buckets[0], (list, tuple)):
        ends = np.array(buckets, dtype=np.float64).ravel()
        if (np.diff(ends) < 0).any():
            raise ArgumentError("chi_square_check: buckets must be intervals (low, high) in rising order that do not overlap")
        place = np.searchsorted(ends, samples, side="right")
        found = np.bincount(place[place % 2 == 1] // 2, minlength=len(buckets))
        # The last end belongs to no interval otherwise, and with it samples that are infinite.
        found[-1] += int((samples == ends[-1]).sum())
    else:
        found = np.array([(samples == value).sum() for value in buckets])
    expected = nsamples * np.asarray(probs, dtype=np.float64)
    return _p_value(found, expected), found, expected


def _p_value(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    try:
        special = importlib.import_module("scipy.special")
    except ImportError:
        raise MissingSciPyError("chi_square_check needs SciPy, which is not installed: pip install scipy") from None
    statistic = ((found - expected) ** 2 / expected).sum()
    return float(special.chdtrc(len(found) - 1, statistic))


def verify_generator(
    generator: Generator, buckets: Sequence[Any], probs: Sequence[float], nsamples: int = 1000000, nrepeat: int = 5,
    success_rate: float = 0.2, alpha: float = 0.05,
) -> list[float]:  # fmt: skip
    """Repeat the chi-square test `nrepeat` times. **Returns** the p-values.

    **Raises** AssertionError if less than the share `success_rate` of them is above `alpha`.
    """
    tests = [chi_square_check(generator, buckets, probs, nsamples) for _ in range(nrepeat)]
    found = [p for p, _, _ in tests]
    if sum(p > alpha for p in found) < nrepeat * success_rate:
        raise AssertionError(
            f"the generator does not draw from the distribution: p-values {found}, numbers in the buckets {tests[-1][1].tolist()} "
            f"where {tests[-1][2].tolist()} were expected"
        )
    return found
