"""`sym.op`: the operators under the name that MXNet's generated module has."""

from ..op import also_called
from ..ops.public import *
from ..ops.public import __all__ as _operators
from .custom import Custom
from .random import (
    random_exponential,
    random_gamma,
    random_generalized_negative_binomial,
    random_negative_binomial,
    random_normal,
    random_poisson,
    random_randint,
    random_uniform,
)

normal = also_called("normal", random_normal, __name__)
uniform = also_called("uniform", random_uniform, __name__)

__all__ = [
    "Custom", "normal", "random_exponential", "random_gamma", "random_generalized_negative_binomial",
    "random_negative_binomial", "random_normal", "random_poisson", "random_randint", "random_uniform", "uniform",
]  # fmt: skip
__all__ += _operators
