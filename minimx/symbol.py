"""`import minimx.symbol`: MXNet's long name for `mx.sym`, and the same module."""

import sys

from . import sym

sys.modules[__name__] = sym
