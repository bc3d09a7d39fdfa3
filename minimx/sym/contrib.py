"""`sym.contrib`: functions that MXNet keeps apart as contributed; the same ones as in `nd.contrib`, but for loops and branches."""

from ..nd.contrib import *
from ..nd.contrib import __all__ as __all__
from .loops import cond as cond, foreach as foreach, while_loop as while_loop  # type: ignore[assignment]  # they make nodes
