"""`gluon.contrib.nn`: layers under the name that MXNet 1.x has for them; they are made in gluon/nn."""

from typing import Any

from ..nn import Concurrent, Embedding, HybridConcurrent, Identity
from ..nn.norm_layers import SyncBatchNorm
from ..nn.resampling import PixelShuffle1D, PixelShuffle2D, PixelShuffle3D

__all__ = [
    "Concurrent", "HybridConcurrent", "Identity", "PixelShuffle1D", "PixelShuffle2D", "PixelShuffle3D", "SparseEmbedding", "SyncBatchNorm",
]  # fmt: skip


class SparseEmbedding(Embedding):
    """An Embedding. Its table and gradient are dense here, as all arrays are. **Source** MXNet `gluon.contrib.nn.SparseEmbedding`."""

    def __init__(
        self, input_dim: int, output_dim: int, dtype: Any = "float32", weight_initializer: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(input_dim, output_dim, dtype, weight_initializer, **kwargs)
