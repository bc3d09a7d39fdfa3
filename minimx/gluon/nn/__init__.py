"""`gluon.nn`: layers."""

from ..block import Block, HybridBlock, SymbolBlock
from .activations import ELU, GELU, SELU, Activation, LeakyReLU, PReLU, SiLU, Swish
from .basic_layers import Dense, Dropout, Embedding, Flatten, HybridLambda, Identity, Lambda
from .containers import Concurrent, HybridConcurrent, HybridSequential, Sequential
from .conv_layers import Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose
from .norm_layers import BatchNorm, BatchNormReLU, GroupNorm, InstanceNorm, LayerNorm
from .pool_layers import (  # fmt: skip
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    GlobalAvgPool1D,
    GlobalAvgPool2D,
    GlobalAvgPool3D,
    GlobalMaxPool1D,
    GlobalMaxPool2D,
    GlobalMaxPool3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
)
from .resampling import ReflectionPad2D

__all__ = [
    "ELU", "GELU", "SELU", "Activation", "AvgPool1D", "AvgPool2D", "AvgPool3D", "BatchNorm", "BatchNormReLU", "Block", "Concurrent",
    "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Dense", "Dropout", "Embedding", "Flatten",
    "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D", "GlobalMaxPool1D", "GlobalMaxPool2D", "GlobalMaxPool3D", "GroupNorm",
    "HybridBlock", "HybridConcurrent", "HybridLambda", "HybridSequential", "Identity", "InstanceNorm", "Lambda", "LayerNorm",
    "LeakyReLU", "MaxPool1D", "MaxPool2D", "MaxPool3D", "PReLU", "ReflectionPad2D", "Sequential", "SiLU", "Swish", "SymbolBlock",
]  # fmt: skip
