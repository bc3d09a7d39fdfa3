"""The first editions of three layers, which old graphs and scripts still name: BatchNorm_v1, Convolution_v1, Pooling_v1.

Today's layers do their work. BatchNorm_v1 differs in what it returns beside the result, and knows no axis but the second. To Pooling_v1
the zeros around the data are elements like all others, so that a window full of negative numbers at the border has 0 as its largest; and
a mean is always over as many elements as the kernel has points. Convolution_v1 differs in its name only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..op import NOT_GIVEN, Array, How, Shape, Spec, T, also_called, apply, register
from .checks import require_choice
from .conv import Convolution, ConvolutionLayer
from .padding import pad
from .pool import PoolingLayer
from .shape import as_shape
from .slicing import slice
from .sync_batchnorm import OwnVariance

if TYPE_CHECKING:
    from typing_extensions import Unpack


@register("BatchNorm_v1")
class BatchNormFirstEdition(OwnVariance): ...


def BatchNorm_v1(
    data: T | None = NOT_GIVEN,
    gamma: T | None = None,
    beta: T | None = None,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    moving_mean: T | None = None,
    moving_var: T | None = None,
    **how: Unpack[How],
) -> T:
    """BatchNorm over axis 1.

    **Shapes**, **Args** and **Gradient** as BatchNorm; moving_mean and moving_var come last. **Returns** the result; with
    `output_mean_var` a list of it, the means and the variances. **Source** MXNet `BatchNorm_v1` (for Symbols only).
    """
    op = BatchNormFirstEdition(
        eps=eps, momentum=momentum, fix_gamma=fix_gamma, use_global_stats=use_global_stats, output_mean_var=output_mean_var
    )
    return apply(op, data, gamma, beta, moving_mean, moving_var, **how)


@register("Convolution_v1")
class ConvolutionFirstEdition(ConvolutionLayer): ...


Convolution_v1 = also_called("Convolution_v1", Convolution, __name__, ConvolutionFirstEdition)


@register("Pooling_v1")
class PoolingFirstEdition(PoolingLayer):
    """Today's pooling of data within a frame of zeros."""

    def infer(self, data: Spec) -> Spec:
        require_choice(self, "pool_type", self.pool_type, "max", "avg", "sum")
        require_choice(self, "pooling_convention", self.pooling_convention, "valid", "full")
        return super().infer(data)

    @property
    def inner(self) -> PoolingLayer:
        """The pooling of framed data; sums, of which means are made here."""
        kind = "sum" if self.pool_type == "avg" else self.pool_type
        return PoolingLayer(**{**self.shared(), "pad": (), "pool_type": kind})

    def frame(self, ndim: int) -> list[tuple[int, int]]:
        """How many zeros there are before and after each axis."""
        pad = (0,) * (ndim - 2) if self.global_pool or not any(self.pad) else self.pad
        return [(width, width) for width in (0, 0, *pad)]

    def points(self, shape: Shape) -> float:
        """What a sum is divided by."""
        return math.prod(shape[2:] if self.global_pool else self.kernel_size) if self.pool_type == "avg" else 1

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        result = self.inner.kernel(xp, xp.pad(data, self.frame(data.ndim)), out)
        result /= result.dtype.type(self.points(data.shape))
        return result

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        frame = self.frame(len(data.shape))
        framed = pad(data, mode="constant", pad_width=tuple(width for pair in frame for width in pair)) if any(self.pad) else data
        to_framed = self.inner.vjp(g / self.points(data.shape), y, framed)[0]
        ends = [before + length for (before, _), length in zip(frame, data.shape)]
        return (slice(to_framed, tuple(before for before, _ in frame), tuple(ends)),)


def Pooling_v1(
    data: T,
    kernel: tuple[int, ...] = (),
    pool_type: str = "max",
    global_pool: bool = False,
    pooling_convention: str = "valid",
    stride: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
    **how: Unpack[How],
) -> T:
    """Pooling in which the zeros of the padding count as elements.

    **Shapes**, **Args** as Pooling, where they are the same. **Gradient** of the largest: to the first that equals it (MXNet gives it to
    all of them); of sums and means: as Pooling. **Source** MXNet `Pooling_v1`.
    """
    op = PoolingFirstEdition(
        kernel_size=as_shape(kernel), pool_type=pool_type, global_pool=global_pool, pooling_convention=pooling_convention,
        stride=as_shape(stride), pad=as_shape(pad),
    )  # fmt: skip
    return apply(op, data, **how)


__all__ = ["BatchNorm_v1", "Convolution_v1", "Pooling_v1"]
