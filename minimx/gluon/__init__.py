"""`mx.gluon`: networks made of blocks, written as Python code and run as graphs.

A block is a layer or a network of layers (plain_block.py, hybrid_block.py), with names (scope.py) and parameters (weight.py,
parameter.py). Layers are in `nn`, losses in `loss`; a Trainer (trainer.py) makes the steps of an optimizer. Book: chapter 3.
"""

from . import block, contrib, loss, nn, parameter, trainer, utils
from .block import Block, HybridBlock
from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict, tensor_types
from .trainer import Trainer

__all__ = [
    "Block", "Constant", "DeferredInitializationError", "HybridBlock", "Parameter", "ParameterDict", "Trainer", "block", "contrib",
    "loss", "nn", "parameter", "tensor_types", "trainer", "utils",
]  # fmt: skip
