"""`gluon.contrib.nn`: layers under the name that MXNet 1.x has for them; they are made in gluon/nn."""

from ..nn import Concurrent, HybridConcurrent, Identity
from ..nn.norm_layers import SyncBatchNorm
from ..nn.resampling import PixelShuffle1D, PixelShuffle2D, PixelShuffle3D

__all__ = ["Concurrent", "HybridConcurrent", "Identity", "PixelShuffle1D", "PixelShuffle2D", "PixelShuffle3D", "SyncBatchNorm"]
