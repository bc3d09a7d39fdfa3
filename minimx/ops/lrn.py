"""LRN, local response normalization: each element divided by the size of those in the channels beside it.

It was part of the first deep networks, before BatchNorm. Book: chapter 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Spec, T, apply, register
from .checks import accurate, require_float
from .pool import PoolingLayer, gathered
from .windows import Window

if TYPE_CHECKING:
    from typing_extensions import Unpack


@register("LRN")
class LRNLayer(Op):
    required = ("nsize",)
    saves_outputs = (1,)

    alpha: float = 1e-4
    beta: float = 0.75
    knorm: float = 2
    nsize: int = 0

    @property
    def num_outputs(self) -> int:
        return 2

    @property
    def num_visible(self) -> int:
        return 1

    def infer(self, data: Spec) -> tuple[Spec, ...]:
        require_float(self, data)
        if self.nsize < 1 or self.nsize % 2 == 0:
            raise ArgumentError(f"LRN: nsize={self.nsize} must be an odd number: a channel and as many on either side")
        if data.ndim < 2:
            raise ShapeError(f"LRN: data has shape {data.shape}, wants (N, C, ...) with at least 2 dimensions")
        return data, data

    def kernel(self, xp: Any, data: Array) -> tuple[Array, ...]:
        wide = accurate(xp, data)
        seen = xp.square(wide).reshape(data.shape[0], 1, data.shape[1], math.prod(data.shape[2:]))
        window = Window((self.nsize, 1), (1, 1), (1, 1), (self.nsize // 2, 0))
        base = xp.empty_like(seen)
        gathered(xp, seen, window, seen.shape[2:], xp.add, 0, base)
        base = base.reshape(data.shape)
        base *= wide.dtype.type(self.alpha / self.nsize)
        base += wide.dtype.type(self.knorm)
        result = xp.power(base, wide.dtype.type(-self.beta))
        result *= wide
        return result.astype(data.dtype, copy=False), base.astype(data.dtype, copy=False)

    def neighbours(self, array: Any) -> Any:
        """The sums over the channels around each: a tensor of the same shape."""
        shape = array.shape
        seen = array.reshape((shape[0], 1, shape[1], math.prod(shape[2:])))
        return apply(PoolingLayer(kernel_size=(self.nsize, 1), pad=(self.nsize // 2, 0), pool_type="sum"), seen).reshape(shape)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        (head, to_base), base = g, y[1]
        total = None
        if head is not None:
            total = head * base**-self.beta
            part = head * data * base ** (-self.beta - 1) * -self.beta
            to_base = part if to_base is None else to_base + part
        part = self.neighbours(to_base) * data * (2 * self.alpha / self.nsize)
        return (part if total is None else total + part,)


def LRN(data: T, alpha: float = 1e-4, beta: float = 0.75, knorm: float = 2, nsize: int = 0, **how: Unpack[How]) -> T:
    """Divide by the size of neighbours: `y = data / (knorm + alpha / nsize * sum of squares over nsize channels) ** beta`.

    **Shapes** data and result (N, C, ...). **Args** `nsize`: an odd number of channels, of which each is in the middle. **Gradient**
    `g b ** -beta - 2 alpha beta / nsize x sum(g x b ** (-beta - 1))`, b the base of the power and the sum as above. **Source** MXNet
    `LRN`; Krizhevsky et al., 2012.
    """
    return apply(LRNLayer(alpha, beta, knorm, nsize), data, **how)


__all__ = ["LRN"]
