"""`mx.contrib`: MXNet's second way to the operators of `nd.contrib` and `sym.contrib`."""

from .nd import contrib as nd, contrib as ndarray
from .sym import contrib as sym, contrib as symbol

__all__ = ["nd", "ndarray", "sym", "symbol"]
