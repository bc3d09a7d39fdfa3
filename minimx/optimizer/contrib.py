"""`mx.optimizer.contrib`: what MXNet kept apart as not settled yet."""

from __future__ import annotations

from typing import Any

from .. import nd
from ..base import ShapeError
from ..nd import NDArray
from .optimizer import Optimizer, OptimizerArgumentError, register

__all__ = ["GroupAdaGrad"]


class GroupShapeError(ShapeError, AssertionError):
    """A weight that is no matrix. (MXNet asserts: hence the second base.)"""


@register
class GroupAdaGrad(Optimizer):
    """AdaGrad with one step length for each row, as for the vectors of an embedding: `g = clip(rescale_grad grad)`,
    `h = h + mean(g ** 2)` of the row, `w = w - lr g / sqrt(h + eps)`.

    **Shapes** weight (N, D), state (N, 1). **Raises** AssertionError for another shape, and for weight decay, which it has not.
    **Source** MXNet `optimizer.contrib.GroupAdaGrad`.
    """

    def __init__(self, eps: float = 1e-5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index: Any, weight: NDArray) -> Any:
        if len(weight.shape) != 2:
            raise GroupShapeError(f"GroupAdaGrad: weight {index} has shape {weight.shape}; 2 axes are wanted")
        return nd.zeros((weight.shape[0], 1), weight.context, weight.dtype)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd, _ = self._begin(index)
        if wd:
            raise OptimizerArgumentError(f"GroupAdaGrad: weight decay is not supported, but it is {wd} for parameter {index}")
        nd.contrib.group_adagrad_update(weight, grad, state, out=weight, lr=lr, epsilon=self.float_stable_eps, **self._limits())
