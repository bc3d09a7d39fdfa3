"""`import minimx.compat.mxnet`: from then on `import mxnet` means minimx in this process. See alias.py.

import minimx.compat.mxnet
import mxnet as mx
from mxnet.gluon import nn
"""

from .alias import install, uninstall

__all__ = ["install", "uninstall"]

install()
