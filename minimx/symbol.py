"""`mx.symbol`: MXNet's long name for `mx.sym`."""

from .sym import *
from .sym import __all__ as __all__
