"""`import minimx.ndarray`: MXNet's long name for `mx.nd`, and the same module."""

import sys

from . import nd

sys.modules[__name__] = nd
