"""`sym.op`: the operators under the name that MXNet's generated module has."""

from ..ops.public import *
from ..ops.public import __all__ as _operators
from .custom import Custom
from .random import (
    random_exponential,
    random_gamma,
    random_generalized_negative_binomial,
    random_negative_binomial,
    random_normal,
    random_normal as normal,
    random_poisson,
    random_randint,
    random_uniform,
    random_uniform as uniform,
)

__all__ = [
    "Custom", "normal", "random_exponential", "random_gamma", "random_generalized_negative_binomial",
    "random_negative_binomial", "random_normal", "random_poisson", "random_randint", "random_uniform", "uniform",
]  # fmt: skip
__all__ += _operators
