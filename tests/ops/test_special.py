"""The approximations of ops/special.py against SciPy, over their whole domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

from minimx.ops import special


def between(low: float, high: float, count: int = 20_001) -> np.ndarray:
    return np.linspace(low, high, count)


NEAR_ENDS = np.concatenate([1 - 10.0 ** -between(0, 15.5, 2000), 10.0 ** -between(0, 15.5, 2000) - 1])
SMALL = 10.0 ** -between(0, 30, 2000)

DOMAINS = {
    "erf": (special.erf_of, scipy.special.erf, [between(-7, 7), SMALL, -SMALL]),
    "erfinv": (special.erfinv_of, scipy.special.erfinv, [between(-0.999, 0.999), NEAR_ENDS, SMALL, -SMALL]),
    "gamma": (special.gamma_of, scipy.special.gamma, [between(-20, 171.3), SMALL]),
    "gammaln": (special.gammaln_of, scipy.special.gammaln, [between(2.01, 200), 10.0 ** between(1, 30), SMALL]),
    "digamma": (lambda xp, x: special.polygamma_of(xp, x, 0), scipy.special.digamma, [between(1.5, 200), 10.0 ** between(1, 30)]),
    "trigamma": (
        lambda xp, x: special.polygamma_of(xp, x, 1),
        lambda x: scipy.special.polygamma(1, x),
        [between(0.01, 200), SMALL],
    ),
    "order 4": (lambda xp, x: special.polygamma_of(xp, x, 4), lambda x: scipy.special.polygamma(4, x), [between(0.01, 50)]),
}


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 1e-6), ("float64", 1e-12)])
@pytest.mark.parametrize("name", DOMAINS)
def test_relative_error(name: str, dtype: str, limit: float) -> None:
    function, oracle, parts = DOMAINS[name]
    with np.errstate(all="ignore"):
        x = np.concatenate(parts).astype(dtype)
        got, want = function(np, x), oracle(x.astype(np.float64))
        # poles, and what overflows the dtype, are in the table of cases
        inside = np.isfinite(want.astype(dtype)) & (x != 0) & ~((x < 0) & (x == np.round(x)) & (name == "gamma"))
    assert got.dtype == x.dtype
    assert inside.mean() > 0.3
    tiny = np.finfo(dtype).tiny
    np.testing.assert_allclose(got[inside].astype(np.float64), want[inside], rtol=limit, atol=tiny)


@pytest.mark.parametrize(
    ("function", "oracle", "low", "high"),
    [
        (special.gammaln_of, scipy.special.gammaln, 0.4, 2.6),  # it is 0 at 1 and 2
        (special.gammaln_of, scipy.special.gammaln, -9.9, -0.1),
        (lambda xp, x: special.polygamma_of(xp, x, 0), scipy.special.digamma, 0.4, 2.6),  # 0 at 1.46
    ],
)
def test_absolute_error_near_zeros(function: Callable[..., Any], oracle: Callable[..., Any], low: float, high: float) -> None:
    x = between(low, high)
    x = x[np.abs(x - np.round(x)) > 1e-3] if low < 0 else x
    np.testing.assert_allclose(function(np, x), oracle(x), rtol=1e-13, atol=1e-13)
