"""`mx.contrib`: what MXNet keeps apart as contributed.

Operators (`contrib.nd`, `contrib.sym`, which are `nd.contrib` and `sym.contrib`), words as numbers and vectors (`text`), the first edition
of autograd, a DataLoader as a DataIter (`io`), curves in TensorBoard, and the functions of mixed precision (`amp`).
"""

from ..nd import contrib as nd, contrib as ndarray
from ..sym import contrib as sym, contrib as symbol
from . import amp, autograd, io, tensorboard, text

__all__ = ["amp", "autograd", "io", "nd", "ndarray", "sym", "symbol", "tensorboard", "text"]
