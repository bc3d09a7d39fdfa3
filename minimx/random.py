"""`mx.random`: the seed, and the functions of `nd.random` under a shorter name.

The keys with which every draw begins are in seeds.py: `nd` needs those, and this module needs `nd`.
"""

from __future__ import annotations

from .nd.random import (  # fmt: skip
    exponential,
    exponential_like,
    gamma,
    gamma_like,
    generalized_negative_binomial,
    generalized_negative_binomial_like,
    multinomial,
    negative_binomial,
    negative_binomial_like,
    normal,
    normal_like,
    poisson,
    poisson_like,
    randint,
    randn,
    shuffle,
    uniform,
    uniform_like,
)
from .seeds import seed

__all__ = [
    "exponential", "exponential_like", "gamma", "gamma_like", "generalized_negative_binomial",
    "generalized_negative_binomial_like", "multinomial", "negative_binomial", "negative_binomial_like", "normal", "normal_like",
    "poisson", "poisson_like", "randint", "randn", "seed", "shuffle", "uniform", "uniform_like",
]  # fmt: skip
