"""`sym.contrib`: functions that MXNet keeps apart as contributed; the same ones as in `nd.contrib`."""

from ..nd.contrib import *
from ..nd.contrib import __all__ as __all__
