"""`mx.contrib`: what MXNet keeps apart as contributed.

Operators (`contrib.nd`, `contrib.sym`, which are `nd.contrib` and `sym.contrib`), words as numbers and vectors (`text`), the first edition
of autograd, a DataLoader as a DataIter (`io`), curves in TensorBoard, the functions of mixed precision (`amp`), and files of ONNX (`onnx`).
"""

from ..nd import contrib as nd, contrib as ndarray
from ..sym import contrib as sym, contrib as symbol
from . import amp, autograd, io, tensorboard, text

#: Modules that are imported when they are first asked for.
LATER = ("onnx",)

__all__ = ["amp", "autograd", "io", "nd", "ndarray", "sym", "symbol", "tensorboard", "text"]
