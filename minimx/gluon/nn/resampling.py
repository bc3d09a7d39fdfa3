"""Layers that give an image other lengths without computing anything: reflections at its edges, and channels turned into pixels."""

from __future__ import annotations

from typing import Any, ClassVar

from ..block import HybridBlock
from ..weight import ParameterError
from .pool_layers import Numbers, numbers_for

__all__ = ["PixelShuffle1D", "PixelShuffle2D", "PixelShuffle3D", "ReflectionPad2D"]


class ReflectionPad2D(HybridBlock):
    """A frame of `padding` reflected pixels around an image: (N, C, H, W) becomes (N, C, H + 2 padding, W + 2 padding).

    **Args** `padding`: a number, or eight: before and after each axis. **Source** MXNet `nn.ReflectionPad2D`.
    """

    def __init__(self, padding: Numbers = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        widths = (0, 0, 0, 0, *[padding] * 4) if isinstance(padding, int) else padding
        self._padding = numbers_for("ReflectionPad2D: padding", widths, 8)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.pad(x, mode="reflect", pad_width=self._padding)


class _PixelShuffle(HybridBlock):
    """Groups of channels become blocks of pixels. `factor`: the lengths of a block."""

    _ndim: ClassVar[int]

    def __init__(self, factor: Numbers) -> None:
        super().__init__()
        self._factors = numbers_for(f"{type(self).__name__}: factor", factor, self._ndim)
        if min(self._factors) < 1:
            raise ParameterError(f"{type(self).__name__}: factor={factor} must not be less than 1")

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        block = 1
        for factor in self._factors:
            block *= factor
        rest = (0,) * self._ndim
        x = F.reshape(x, (0, -4, -1, block, *rest))  # (N, C, f1 f2 f3, D, H, W)
        for number, factor in enumerate(self._factors[:-1]):
            block //= factor
            x = F.reshape(x, (*(0,) * (2 + number), -4, factor, block, *rest))  # (N, C, f1, f2 f3, D, H, W), ...
        order = [0, 1]
        for axis in range(self._ndim):
            order += [2 + self._ndim + axis, 2 + axis]
        return F.reshape(F.transpose(x, order), (0, 0, *(-3,) * self._ndim))  # (N, C, D, f1, H, f2, W, f3) with pairs joined

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._factors if self._ndim > 1 else self._factors[0]})"


class PixelShuffle1D(_PixelShuffle):
    """Channels become pixels: (N, f C, W) becomes (N, C, f W). **Source** MXNet `gluon.contrib.nn.PixelShuffle1D`."""

    _ndim = 1


class PixelShuffle2D(_PixelShuffle):
    """Channels become pixels: (N, f1 f2 C, H, W) becomes (N, C, f1 H, f2 W).

    **Args** `factor`: a number, or one for each axis. **Source** MXNet `gluon.contrib.nn.PixelShuffle2D`; Shi et al., 2016.
    """

    _ndim = 2


class PixelShuffle3D(_PixelShuffle):
    """Channels become pixels: (N, f1 f2 f3 C, D, H, W) becomes (N, C, f1 D, f2 H, f3 W).

    **Args** `factor`: a number, or one for each axis. **Source** MXNet `gluon.contrib.nn.PixelShuffle3D`.
    """

    _ndim = 3

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """The same axis by axis, in the steps that stand in MXNet's files."""
        first, second, third = self._factors
        x = F.reshape(x, (0, -4, -1, first * second * third, 0, 0, 0))  # (N, C, f1 f2 f3, D, H, W)
        x = F.reshape(F.swapaxes(x, 2, 3), (0, 0, 0, -4, first, second * third, 0, 0))  # (N, C, D, f1, f2 f3, H, W)
        x = F.swapaxes(F.reshape(x, (0, 0, -3, 0, 0, 0)), 3, 4)  # (N, C, f1 D, H, f2 f3, W)
        x = F.reshape(x, (0, 0, 0, 0, -4, second, third, 0))  # (N, C, f1 D, H, f2, f3, W)
        x = F.swapaxes(F.reshape(x, (0, 0, 0, -3, 0, 0)), 4, 5)  # (N, C, f1 D, f2 H, W, f3)
        return F.reshape(x, (0, 0, 0, 0, -3))
