"""`mx.gluon`: networks made of blocks, written as Python code and run as graphs.

A block is a layer or a network of layers (plain_block.py, hybrid_block.py), with names (scope.py) and parameters (weight.py,
parameter.py). Layers are in `nn`. Book: chapter 3.
"""

from . import block, contrib, nn, parameter, utils
from .block import Block, HybridBlock
from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict, tensor_types

__all__ = [
    "Block", "Constant", "DeferredInitializationError", "HybridBlock", "Parameter", "ParameterDict", "block", "contrib", "nn",
    "parameter", "tensor_types", "utils",
]  # fmt: skip
