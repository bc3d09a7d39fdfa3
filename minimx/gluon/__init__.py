"""`mx.gluon`: networks made of blocks, written as Python code and run as graphs.

A block is a layer or a network of layers (plain_block.py, hybrid_block.py), or is made from a graph (symbol_block.py), with names
(scope.py) and parameters (weight.py, parameter.py). Layers are in `nn` and `rnn`, losses in `loss`, well-known networks in
`model_zoo`; a Trainer (trainer.py) makes the steps of an optimizer. Book: chapter 4.
"""

from typing import TYPE_CHECKING

from . import block, loss, nn, parameter, trainer, utils
from .block import Block, HybridBlock, SymbolBlock
from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict, tensor_types
from .trainer import Trainer

if TYPE_CHECKING:
    from . import contrib as contrib, data as data, model_zoo as model_zoo, rnn as rnn

#: Modules that are imported when they are first asked for (compat/differences.py).
LATER = ("contrib", "data", "model_zoo", "rnn")

__all__ = [
    "Block", "Constant", "DeferredInitializationError", "HybridBlock", "Parameter", "ParameterDict", "SymbolBlock", "Trainer", "block",
    "contrib", "data", "loss", "model_zoo", "nn", "parameter", "rnn", "tensor_types", "trainer", "utils",
]  # fmt: skip
