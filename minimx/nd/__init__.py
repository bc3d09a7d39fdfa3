"""`mx.nd`: arrays, the functions on them, and their files.

The operators are the same functions as in `mx.sym`: ops/public.py lists them. What only arrays have is in this package.
"""

from .. import autograd
from ..engine import waitall
from ..ops.public import *
from ..ops.public import __all__ as _operators
from . import contrib, linalg, op, random, utils
from .creation import (
    arange,
    array,
    concatenate,
    empty,
    eye,
    from_dlpack,
    from_numpy,
    full,
    linspace,
    moveaxis,
    ones,
    to_dlpack_for_read,
    to_dlpack_for_write,
    zeros,
)  # fmt: skip
from .ndarray import NDArray
from .random import (
    normal,
    random_exponential,
    random_gamma,
    random_generalized_negative_binomial,
    random_negative_binomial,
    random_normal,
    random_poisson,
    random_randint,
    random_uniform,
    uniform,
)  # fmt: skip
from .serialize import load, load_frombuffer, save

autograd.NDArray = NDArray  # type: ignore[attr-defined]  # MXNet scripts import this name from autograd, too

__all__ = [
    "NDArray", "arange", "array", "concatenate", "contrib", "empty", "eye", "from_dlpack", "from_numpy", "full", "linalg",
    "linspace", "load", "load_frombuffer", "moveaxis", "normal", "ones", "op", "random", "random_exponential", "random_gamma",
    "random_generalized_negative_binomial", "random_negative_binomial", "random_normal", "random_poisson", "random_randint",
    "random_uniform", "save", "to_dlpack_for_read", "to_dlpack_for_write", "uniform", "utils", "waitall", "zeros",
]  # fmt: skip
__all__ += _operators
