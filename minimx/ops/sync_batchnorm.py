"""SyncBatchNorm: BatchNorm whose statistics are those of all parts of a batch that lie on several devices.

In training the kernels of all devices meet (meeting.py), twice: with their means and variances on the way forward, with their sums on the
way back. Then what a device computes is its part of BatchNorm of the whole batch, forward and backward. Where the running statistics are
used nothing has to be exchanged. Book: chapters 4 and 10.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import ArgumentError
from ..op import NOT_GIVEN, Array, How, Spec, T, apply, register
from .batchnorm import BatchNormBackward, BatchNormLayer
from .meeting import meet

if TYPE_CHECKING:
    from typing_extensions import Unpack


class OwnVariance(BatchNormLayer):
    """BatchNorm whose third output is the variance, where BatchNorm has `1 / sqrt(variance + eps)`."""

    def kernel(self, xp: Any, *arrays: Array, **out: Any) -> tuple[Array, ...]:
        result, mean, scale = super().kernel(xp, *arrays, **out)
        return result, mean, 1 / (scale * scale) - scale.dtype.type(self.eps)

    def vjp(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        (head, to_mean, to_variance), (result, mean, variance) = g, y
        scale = (variance + self.eps).rsqrt()
        to_scale = None if to_variance is None else to_variance * -2 / (scale * scale * scale)
        return super().vjp((head, to_mean, to_scale), (result, mean, scale), *inputs)


@register("_contrib_SyncBatchNorm")
class SyncBatchNormLayer(OwnVariance):
    ndev: int = 1
    key: str = ""

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        if not self.key:
            raise ArgumentError(
                f"{self.name}: key is missing; pass a text that this layer shares with its copies on other devices"
            )
        if self.ndev < 1:
            raise ArgumentError(f"{self.name}: ndev is {self.ndev}; it must be 1 or more")
        return super().infer(*inputs)

    @property
    def meets(self) -> bool:
        return self.ndev > 1 and self.of_batch

    def statistics(self, xp: Any, seen: Array, exact: Any) -> tuple[Array, Array]:
        mean, variance = super().statistics(xp, seen, exact)
        if self.ndev == 1:
            return mean, variance
        weight = xp.full_like(mean, seen.shape[0] * seen.shape[2])
        weights, means, variances = xp.stack(meet(xp, self.name, self.key, self.ndev, xp.stack([weight, mean, variance])), axis=1)
        share = weights / xp.maximum(weights.sum(axis=0), 1)
        total = (share * means).sum(axis=0)
        return total, (share * (variances + (means - total) ** 2)).sum(axis=0)

    def backward(self) -> BatchNormBackward:
        own = super().backward()
        return (
            own if self.ndev == 1 else SyncBatchNormBackward(own.axis, own.eps, own.momentum, own.fix_gamma, self.ndev, self.key)
        )

    def vjp(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        if self.ndev > 1 and self.of_batch and (g[1] is not None or g[2] is not None):
            raise ArgumentError(f"{self.name}: means and variances have no gradient where they are those of several devices")
        return super().vjp(g, y, *inputs)


@register("_backward_SyncBatchNorm")
class SyncBatchNormBackward(BatchNormBackward):
    """The gradient of a device's part, in which the averages are those of all parts."""

    ndev: int = 1
    key: str = ""

    @property
    def meets(self) -> bool:
        return self.ndev > 1

    def averages(self, xp: Any, to_beta: Array, to_gamma: Array, count: int) -> tuple[Array, Array]:
        part = xp.stack([to_beta, to_gamma, xp.full_like(to_beta, count)])
        if self.ndev > 1:
            part = xp.stack(meet(xp, self.name, self.key, self.ndev, part)).sum(axis=0)
        total = xp.maximum(part[2], 1)
        return part[0] / total, part[1] / total

    def vjp(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        if self.ndev > 1:
            raise ArgumentError(f"{self.name}: there is no second gradient over several devices; use BatchNorm, or one device")
        return super().vjp(*args, **kwargs)


def SyncBatchNorm(
    data: T | None = NOT_GIVEN,
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
    """BatchNorm over axis 1, with one mean and variance for the parts of a batch on `ndev` devices.

    In training it is to be called for the parts on all devices before any result is read: each waits for the others. **Shapes** and
    **Args** as BatchNorm; `key`: a text that is the same for the layer on all devices. **Returns** the result; with `output_mean_var` a
    list of it, the means and the variances. **Raises** ArgumentError without a key; a result raises MXNetError if other devices did not
    come (in MINIMX_MEETING_TIMEOUT seconds, 60), or under NaiveEngine. **Gradient** that of BatchNorm of the whole batch; the gradients
    of gamma and beta are a device's share, to be added. **Source** MXNet `contrib.SyncBatchNorm`; Zhang et al., 2018.
    """
    op = SyncBatchNormLayer(
        eps=eps, momentum=momentum, fix_gamma=fix_gamma, use_global_stats=use_global_stats, output_mean_var=output_mean_var, ndev=ndev,
        key=key,
    )  # fmt: skip
    return apply(op, data, gamma, beta, moving_mean, moving_var, **how)


__all__ = ["SyncBatchNorm"]
