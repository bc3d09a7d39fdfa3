"""SyncBatchNorm: BatchNorm whose statistics are those of all parts of a batch that lie on several devices.

With one device (`ndev=1`) it is BatchNorm over axis 1, which is all that there is so far: several devices are refused, rather than each
given the statistics of its part. Where the running statistics are used nothing has to be exchanged, and any number will do. Book:
chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import ArgumentError
from ..op import Array, How, Spec, T, apply, register
from .batchnorm import BatchNormLayer

if TYPE_CHECKING:
    from typing_extensions import Unpack


@register("_contrib_SyncBatchNorm")
class SyncBatchNormLayer(BatchNormLayer):
    """Its third output is the variance, where BatchNorm has `1 / sqrt(variance + eps)`."""

    ndev: int = 1
    key: str = ""

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        if not self.key:
            raise ArgumentError(
                f"{self.name}: key is missing; pass a text that this layer shares with its copies on other devices"
            )
        if self.ndev < 1:
            raise ArgumentError(f"{self.name}: ndev is {self.ndev}; it must be 1 or more")
        if self.ndev > 1 and self.of_batch:
            raise ArgumentError(
                f"{self.name}: ndev is {self.ndev}, but statistics over several devices are not there yet; use ndev=1 (num_devices=1 "
                "in Gluon), with which each device has the statistics of its own part of the batch"
            )
        return super().infer(*inputs)

    def kernel(self, xp: Any, data: Array, *vectors: Array) -> tuple[Array, ...]:
        result, mean, scale = super().kernel(xp, data, *vectors)
        return result, mean, 1 / (scale * scale) - scale.dtype.type(self.eps)

    def vjp(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        (head, to_mean, to_variance), (result, mean, variance) = g, y
        scale = (variance + self.eps).rsqrt()
        to_scale = None if to_variance is None else to_variance * -2 / (scale * scale * scale)
        return super().vjp((head, to_mean, to_scale), (result, mean, scale), *inputs)


def SyncBatchNorm(
    data: T | None = None,
    gamma: T | None = None,
    beta: T | None = None,
    moving_mean: T | None = None,
    moving_var: T | None = None,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    ndev: int = 1,
    key: str = "",
    **how: Unpack[How],
) -> T:
    """BatchNorm over axis 1, with one mean and variance for the parts of a batch on `ndev` devices. Only `ndev=1` is there so far.

    **Shapes** and **Args** as BatchNorm; `key`: a text that is the same for the layer on all devices. **Returns** the result; with
    `output_mean_var` a list of it, the means and the variances. **Raises** ArgumentError without a key, and for the statistics of more
    devices than one. **Gradient** that of BatchNorm. **Source** MXNet `contrib.SyncBatchNorm`; Zhang et al., 2018.
    """
    op = SyncBatchNormLayer(
        eps=eps, momentum=momentum, fix_gamma=fix_gamma, use_global_stats=use_global_stats, output_mean_var=output_mean_var, ndev=ndev,
        key=key,
    )  # fmt: skip
    return apply(op, data, gamma, beta, moving_mean, moving_var, **how)


__all__ = ["SyncBatchNorm"]
