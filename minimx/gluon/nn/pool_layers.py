"""Pooling as layers: the largest or the mean of the elements under each window, or of the whole of each channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ..block import HybridBlock
from ..weight import ParameterError

__all__ = [
    "AvgPool1D", "AvgPool2D", "AvgPool3D", "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D", "GlobalMaxPool1D",
    "GlobalMaxPool2D", "GlobalMaxPool3D", "MaxPool1D", "MaxPool2D", "MaxPool3D",
]  # fmt: skip

Numbers: TypeAlias = "int | Sequence[int]"  # one for all axes of an image, or one each

LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def numbers_for(what: str, value: Numbers, ndim: int) -> tuple[int, ...]:
    """One number for each of `ndim` axes. Raises ParameterError (an AssertionError, as in MXNet) for another count."""
    found = (int(value),) * ndim if isinstance(value, (int, np.integer)) else tuple(int(number) for number in value)
    if len(found) != ndim:
        raise ParameterError(f"{what} must be a number or a list of {ndim} ints, got {value}")
    return found


def require_layout(name: str, layout: str, ndim: int) -> None:
    """Raise ParameterError unless `layout` is one for `ndim` axes."""
    if layout not in LAYOUTS[ndim]:
        raise ParameterError(f"{name}: layout={layout!r}; only {' and '.join(LAYOUTS[ndim])} are valid here")


class _Pooling(HybridBlock):
    """What they share: the attributes of the operator."""

    _ndim: ClassVar[int]  # axes of an image
    _pool_type: ClassVar[str]

    def __init__(
        self, pool_size: Numbers, strides: Numbers | None, padding: Numbers, ceil_mode: bool, layout: str | None,
        global_pool: bool = False, count_include_pad: bool | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        name = type(self).__name__
        layout = LAYOUTS[self._ndim][0] if layout is None else layout
        require_layout(name, layout, self._ndim)
        kernel = numbers_for(f"{name}: pool_size", pool_size, self._ndim)
        self._kwargs: dict[str, Any] = {
            "kernel": kernel, "stride": kernel if strides is None else numbers_for(f"{name}: strides", strides, self._ndim),
            "pad": numbers_for(f"{name}: padding", padding, self._ndim), "global_pool": global_pool, "pool_type": self._pool_type,
            "layout": layout, "pooling_convention": "full" if ceil_mode else "valid",
        }  # fmt: skip
        if count_include_pad is not None:
            self._kwargs["count_include_pad"] = count_include_pad

    def _alias(self) -> str:
        return "pool"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Pooling(x, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        given = self._kwargs
        return (
            f"{type(self).__name__}(size={given['kernel']}, stride={given['stride']}, padding={given['pad']}, "
            f"ceil_mode={given['pooling_convention'] == 'full'}, global_pool={given['global_pool']}, pool_type={given['pool_type']}, "
            f"layout={given['layout']})"
        )


class MaxPool1D(_Pooling):
    """The largest element under each window over one axis.

    **Shapes** data (N, C, W), result (N, C, (W + 2 padding - pool_size) / strides + 1), rounded down, with `ceil_mode` up. **Args**
    `strides`: None for windows side by side. `layout`: "NCW", or "NWC" for channels in the last place. **Source** MXNet `nn.MaxPool1D`.
    """

    _ndim, _pool_type = 1, "max"

    def __init__(
        self, pool_size: Numbers = 2, strides: Numbers | None = None, padding: Numbers = 0, layout: str = "NCW", ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(pool_size, strides, padding, ceil_mode, layout, **kwargs)


class MaxPool2D(_Pooling):
    """The largest element under each window over two axes.

    **Shapes** data and result (N, C, H, W). **Args** as MaxPool1D, each a number or one for each axis. **Source** MXNet `nn.MaxPool2D`.

    >>> from minimx.gluon import nn
    >>> nn.MaxPool2D()(mx.nd.ones((2, 3, 9, 8))).shape
    (2, 3, 4, 4)
    """

    _ndim, _pool_type = 2, "max"

    def __init__(
        self, pool_size: Numbers = (2, 2), strides: Numbers | None = None, padding: Numbers = 0, layout: str = "NCHW",
        ceil_mode: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(pool_size, strides, padding, ceil_mode, layout, **kwargs)


class MaxPool3D(_Pooling):
    """The largest element under each window over three axes. **Args** as MaxPool2D. **Source** MXNet `nn.MaxPool3D`."""

    _ndim, _pool_type = 3, "max"

    def __init__(
        self, pool_size: Numbers = (2, 2, 2), strides: Numbers | None = None, padding: Numbers = 0, ceil_mode: bool = False,
        layout: str = "NCDHW", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(pool_size, strides, padding, ceil_mode, layout, **kwargs)


class AvgPool1D(_Pooling):
    """The mean of the elements under each window over one axis.

    **Args** as MaxPool1D; `count_include_pad`: whether the zeros of the padding count. **Source** MXNet `nn.AvgPool1D`.
    """

    _ndim, _pool_type = 1, "avg"

    def __init__(
        self, pool_size: Numbers = 2, strides: Numbers | None = None, padding: Numbers = 0, layout: str = "NCW", ceil_mode: bool = False,
        count_include_pad: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(pool_size, strides, padding, ceil_mode, layout, False, count_include_pad, **kwargs)


class AvgPool2D(_Pooling):
    """The mean of the elements under each window over two axes. **Args** as AvgPool1D. **Source** MXNet `nn.AvgPool2D`."""

    _ndim, _pool_type = 2, "avg"

    def __init__(
        self, pool_size: Numbers = (2, 2), strides: Numbers | None = None, padding: Numbers = 0, ceil_mode: bool = False,
        layout: str = "NCHW", count_include_pad: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(pool_size, strides, padding, ceil_mode, layout, False, count_include_pad, **kwargs)


class AvgPool3D(_Pooling):
    """The mean of the elements under each window over three axes. **Args** as AvgPool1D. **Source** MXNet `nn.AvgPool3D`."""

    _ndim, _pool_type = 3, "avg"

    def __init__(
        self, pool_size: Numbers = (2, 2, 2), strides: Numbers | None = None, padding: Numbers = 0, ceil_mode: bool = False,
        layout: str = "NCDHW", count_include_pad: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(pool_size, strides, padding, ceil_mode, layout, False, count_include_pad, **kwargs)


class _GlobalPooling(_Pooling):
    """One window over everything. Size and stride say nothing, but stand in files as in MXNet's."""

    def __init__(self, layout: str | None = None, **kwargs: Any) -> None:
        super().__init__(1, None, 0, True, layout, True, **kwargs)


class GlobalMaxPool1D(_GlobalPooling):
    """The largest element of each channel: (N, C, W) becomes (N, C, 1). **Source** MXNet `nn.GlobalMaxPool1D`."""

    _ndim, _pool_type = 1, "max"


class GlobalMaxPool2D(_GlobalPooling):
    """The largest element of each channel: (N, C, H, W) becomes (N, C, 1, 1). **Source** MXNet `nn.GlobalMaxPool2D`."""

    _ndim, _pool_type = 2, "max"


class GlobalMaxPool3D(_GlobalPooling):
    """The largest element of each channel: (N, C, D, H, W) becomes (N, C, 1, 1, 1). **Source** MXNet `nn.GlobalMaxPool3D`."""

    _ndim, _pool_type = 3, "max"


class GlobalAvgPool1D(_GlobalPooling):
    """The mean of each channel: (N, C, W) becomes (N, C, 1). **Source** MXNet `nn.GlobalAvgPool1D`."""

    _ndim, _pool_type = 1, "avg"


class GlobalAvgPool2D(_GlobalPooling):
    """The mean of each channel: (N, C, H, W) becomes (N, C, 1, 1). **Source** MXNet `nn.GlobalAvgPool2D`."""

    _ndim, _pool_type = 2, "avg"


class GlobalAvgPool3D(_GlobalPooling):
    """The mean of each channel: (N, C, D, H, W) becomes (N, C, 1, 1, 1). **Source** MXNet `nn.GlobalAvgPool3D`."""

    _ndim, _pool_type = 3, "avg"
