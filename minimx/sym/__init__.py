"""`mx.sym`: computations that are described before they are run.

The operators are the same functions as in `mx.nd`: ops/public.py lists them. What only Symbols have is in this package: the graph
(graph.py, symbol.py), shapes (trial.py, infer.py), files (serialize.py), and execution (executor.py). Book: chapter 3.
"""

import sys

from .. import autograd
from ..base import LongNamed
from ..ops.public import *
from ..ops.public import __all__ as _operators
from . import _internal, backends, contrib, image, linalg, op, random, sparse
from .creation import (  # type: ignore[assignment]  # maximum, minimum, power: of equal shapes here, as in MXNet
    Group,
    Variable,
    arange,
    eye,
    full,
    hypot,
    linspace,
    load,
    load_json,
    loads,
    maximum,
    minimum,
    ones,
    pow,
    power,
    var,
    zeros,
)
from .custom import Custom
from .op import normal, uniform
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
from .symbol import Symbol
from .tape import get_symbol

autograd.get_symbol_hook.append(get_symbol)

__all__ = [
    "Custom", "Group", "Symbol", "Variable", "_internal", "arange", "backends", "contrib", "eye", "full", "hypot", "image", "linalg",
    "linspace", "load", "load_json", "loads", "maximum", "minimum", "normal", "ones", "op", "pow", "power", "random",
    "random_exponential", "random_gamma", "random_generalized_negative_binomial", "random_negative_binomial", "random_normal",
    "random_poisson", "random_randint", "random_uniform", "sparse", "uniform", "var", "zeros",
]  # fmt: skip
__all__ += _operators

LONG_NAME = "minimx.symbol"
sys.modules[__name__].__class__ = LongNamed
