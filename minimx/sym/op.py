"""`sym.op`: the operators under the name that MXNet's generated module has."""

from ..ops.public import *
from ..ops.public import __all__ as __all__
