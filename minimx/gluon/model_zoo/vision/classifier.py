"""What the networks of the zoo share: they are `features` and then `output`, and are made of chains and branches of layers."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...block import HybridBlock

__all__ = ["Classifier", "branches", "chain"]


class Classifier(HybridBlock):
    """A network for images (N, 3, H, W): `features` makes features of them, and `output` scores (N, classes) of these."""

    features: nn.HybridSequential
    output: HybridBlock

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.output(self.features(x))


def chain(*layers: HybridBlock) -> nn.HybridSequential:
    """The layers one after the other. It does not show in the names of parameters."""
    result = nn.HybridSequential(prefix="")
    result.add(*layers)
    return result


def branches(*parts: HybridBlock) -> nn.HybridConcurrent:
    """Parts that get the same input; their channels are joined. It does not show in the names of parameters."""
    result = nn.HybridConcurrent(axis=1, prefix="")
    result.add(*parts)
    return result
