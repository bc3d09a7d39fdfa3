"""`mx.nd`: arrays, the functions on them, and their files.

The operators are the same functions as in `mx.sym`: ops/public.py lists them. What only arrays have is in this package.
"""

import sys

from .. import autograd
from ..base import LongNamed
from ..engine import waitall
from ..ops.fluent import Fluent
from ..ops.public import *
from ..ops.public import __all__ as _operators
from ..ops.readable import make_readable
from . import _internal, contrib, image, linalg, op, random, sparse, utils
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
from .custom import Custom
from .ndarray import NDArray
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
)  # fmt: skip
from .serialize import load, load_frombuffer, save

autograd.NDArray = NDArray  # type: ignore[attr-defined]  # MXNet scripts import this name from autograd, too
autograd.__all__ += ["NDArray"]

__all__ = [
    "Custom", "NDArray", "_internal", "arange", "array", "concatenate", "contrib", "empty", "eye", "from_dlpack", "from_numpy",
    "full", "image", "linalg", "linspace", "load", "load_frombuffer", "moveaxis", "normal", "ones", "op", "random",
    "random_exponential", "random_gamma", "random_generalized_negative_binomial", "random_negative_binomial", "random_normal",
    "random_poisson", "random_randint", "random_uniform", "save", "sparse", "to_dlpack_for_read", "to_dlpack_for_write",
    "uniform", "utils", "waitall", "zeros",
]  # fmt: skip
__all__ += _operators

for _names in (dict(globals()), *map(vars, (contrib, image, linalg, random, sparse, Fluent))):
    make_readable(_names.values())

LONG_NAME = "minimx.ndarray"
sys.modules[__name__].__class__ = LongNamed
