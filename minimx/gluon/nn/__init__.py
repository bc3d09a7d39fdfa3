"""`gluon.nn`: layers."""

from ..block import Block, HybridBlock
from .activations import ELU, GELU, SELU, Activation, LeakyReLU, PReLU, SiLU, Swish
from .basic_layers import Dense, Dropout, Embedding, Flatten, HybridLambda, Identity, Lambda
from .containers import Concurrent, HybridConcurrent, HybridSequential, Sequential
from .norm_layers import GroupNorm, InstanceNorm, LayerNorm

__all__ = [
    "ELU", "GELU", "SELU", "Activation", "Block", "Concurrent", "Dense", "Dropout", "Embedding", "Flatten", "GroupNorm", "HybridBlock",
    "HybridConcurrent", "HybridLambda", "HybridSequential", "Identity", "InstanceNorm", "Lambda", "LayerNorm", "LeakyReLU", "PReLU",
    "Sequential", "SiLU", "Swish",
]  # fmt: skip
