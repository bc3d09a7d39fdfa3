"""Convolutions as layers, and their transposes, over one, two or three axes. Pooling is in pool_layers.py."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from ..block import HybridBlock
from ..weight import ParameterError, require_length
from .activations import activation_of
from .pool_layers import (
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    GlobalAvgPool1D,
    GlobalAvgPool2D,
    GlobalAvgPool3D,
    GlobalMaxPool1D,
    GlobalMaxPool2D,
    GlobalMaxPool3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    Numbers,
    numbers_for,
    require_layout,
)
from .resampling import ReflectionPad2D

__all__ = [
    "AvgPool1D", "AvgPool2D", "AvgPool3D", "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose",
    "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalAvgPool3D", "GlobalMaxPool1D", "GlobalMaxPool2D", "GlobalMaxPool3D", "MaxPool1D",
    "MaxPool2D", "MaxPool3D", "ReflectionPad2D",
]  # fmt: skip

Shape: TypeAlias = "tuple[int, ...]"


class _Conv(HybridBlock):
    """What all of them share: a weight, perhaps a bias, and perhaps an activation behind it."""

    _ndim: ClassVar[int]  # axes of an image
    _op_name: ClassVar[str] = "Convolution"

    def __init__(
        self, channels: int, kernel_size: Numbers, strides: Numbers, padding: Numbers, dilation: Numbers, groups: int, layout: str,
        activation: str | None, use_bias: bool, weight_initializer: Any, bias_initializer: Any, in_channels: int, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        require_layout(type(self).__name__, layout, self._ndim)
        require_length(self, "channels", channels)
        self._channels = channels
        self._in_channels = in_channels
        self._kwargs: dict[str, Any] = {
            "kernel": self._numbers("kernel_size", kernel_size), "stride": self._numbers("strides", strides),
            "dilate": self._numbers("dilation", dilation), "pad": self._numbers("padding", padding),
            "num_filter": channels, "num_group": groups, "no_bias": not use_bias, "layout": layout,
        }  # fmt: skip
        if groups < 1 or channels % groups or in_channels % groups:
            raise ParameterError(
                f"{type(self).__name__}: groups={groups} must divide channels={channels} and in_channels={in_channels}"
            )
        with self.name_scope():
            shape = self._weight_shape()
            self.weight = self.params.get("weight", shape=shape, init=weight_initializer, allow_deferred_init=True)
            self.bias = (
                self.params.get("bias", shape=(channels,), init=bias_initializer, allow_deferred_init=True) if use_bias else None
            )
            self.act = activation_of(self, activation)

    def _numbers(self, what: str, value: Numbers) -> Shape:
        return numbers_for(f"{type(self).__name__}: {what}", value, self._ndim)

    def _filters(self, results: int, inputs: int) -> Shape:
        """The shape of filters that make `results` of `inputs` in each group, with the latter where the layout has the channels."""
        kernel = self._kwargs["kernel"]
        return (results, inputs, *kernel) if self._kwargs["layout"][1] == "C" else (results, *kernel, inputs)

    def _weight_shape(self) -> Shape:
        return self._filters(self._channels, self._in_channels // self._kwargs["num_group"])

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        given = (x, weight) if bias is None else (x, weight, bias)
        result = getattr(F, self._op_name)(*given, name="fwd", **self._kwargs)
        return result if self.act is None else self.act(result)

    def _alias(self) -> str:
        return "conv"

    def _mapping(self) -> str:
        """The numbers of channels, from input to output, for repr."""
        shape = self.weight.shape or ()
        inputs = shape[1] if self._kwargs["layout"][1] == "C" else shape[-1]
        return f"{inputs or None} -> {shape[0]}"

    def __repr__(self) -> str:
        given = self._kwargs
        parts = [self._mapping(), f"kernel_size={given['kernel']}", f"stride={given['stride']}"]
        parts += [f"padding={given['pad']}"] * any(given["pad"])
        parts += [f"dilation={given['dilate']}"] * any(number != 1 for number in given["dilate"])
        parts += [f"output_padding={given.get('adj')}"] * any(given.get("adj", ()))
        parts += [f"groups={given['num_group']}"] * (given["num_group"] != 1)
        parts += ["bias=False"] * (self.bias is None)
        parts += [str(self.act)] * (self.act is not None)
        return f"{type(self).__name__}({', '.join(parts)})"


class _ConvTranspose(_Conv):
    """The same for transposed convolutions, which have filters for each channel of the input."""

    _op_name = "Deconvolution"

    def __init__(self, output_padding: Numbers, **given: Any) -> None:
        super().__init__(**given)
        self.outpad = self._numbers("output_padding", output_padding)
        self._kwargs["adj"] = self.outpad

    def _weight_shape(self) -> Shape:
        return self._filters(self._in_channels, self._channels // self._kwargs["num_group"])

    def _mapping(self) -> str:
        return f"{self._channels} -> {(self.weight.shape or (0,))[0]}"  # in this order, as MXNet prints it


class Conv1D(_Conv):
    """A convolution over one axis: `activation(sum of weight times the elements under each window + bias)`.

    **Shapes** data (N, C, W), weight (channels, C / groups, kernel_size), bias (channels,), result (N, channels, (W + 2 padding -
    dilation (kernel_size - 1) - 1) // strides + 1). **Args** `in_channels`: C; 0 to learn it from the first batch. `groups`: the
    channels are cut into so many parts, each of which makes its share of the results. `layout`: "NCW", or "NWC" for channels in the last
    place, in the weight too. **Source** MXNet `nn.Conv1D`. **Book** chapter 4.

    >>> from minimx.gluon import nn
    >>> nn.Conv1D(4, kernel_size=3, in_channels=2, activation="relu")
    Conv1D(2 -> 4, kernel_size=(3,), stride=(1,), Activation(relu))
    """

    _ndim = 1

    def __init__(
        self, channels: int, kernel_size: Numbers, strides: Numbers = 1, padding: Numbers = 0, dilation: Numbers = 1, groups: int = 1,
        layout: str = "NCW", activation: str | None = None, use_bias: bool = True, weight_initializer: Any = None,
        bias_initializer: Any = "zeros", in_channels: int = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, activation, use_bias, weight_initializer,
            bias_initializer, in_channels, **kwargs,
        )  # fmt: skip


class Conv2D(_Conv):
    """A convolution over two axes.

    **Shapes** data (N, C, H, W), weight (channels, C / groups, *kernel_size), bias (channels,), result (N, channels, ...). **Args** as
    Conv1D, each a number or one for each axis; `layout`: "NCHW" or "NHWC". **Source** MXNet `nn.Conv2D`.

    >>> from minimx.gluon import nn
    >>> layer = nn.Conv2D(6, kernel_size=5, padding=2)
    >>> layer.initialize()
    >>> layer(mx.nd.ones((2, 1, 28, 28))).shape
    (2, 6, 28, 28)
    """

    _ndim = 2

    def __init__(
        self, channels: int, kernel_size: Numbers, strides: Numbers = (1, 1), padding: Numbers = (0, 0), dilation: Numbers = (1, 1),
        groups: int = 1, layout: str = "NCHW", activation: str | None = None, use_bias: bool = True, weight_initializer: Any = None,
        bias_initializer: Any = "zeros", in_channels: int = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, activation, use_bias, weight_initializer,
            bias_initializer, in_channels, **kwargs,
        )  # fmt: skip


class Conv3D(_Conv):
    """A convolution over three axes.

    **Shapes** data (N, C, D, H, W), weight (channels, C / groups, *kernel_size), bias (channels,), result (N, channels, ...). **Args** as
    Conv1D, each a number or one for each axis; `layout`: "NCDHW" or "NDHWC". **Source** MXNet `nn.Conv3D`.
    """

    _ndim = 3

    def __init__(
        self, channels: int, kernel_size: Numbers, strides: Numbers = (1, 1, 1), padding: Numbers = (0, 0, 0),
        dilation: Numbers = (1, 1, 1), groups: int = 1, layout: str = "NCDHW", activation: str | None = None, use_bias: bool = True,
        weight_initializer: Any = None, bias_initializer: Any = "zeros", in_channels: int = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            channels, kernel_size, strides, padding, dilation, groups, layout, activation, use_bias, weight_initializer,
            bias_initializer, in_channels, **kwargs,
        )  # fmt: skip


class Conv1DTranspose(_ConvTranspose):
    """A transposed convolution over one axis, which makes data longer: each element puts a filter where a window would be.

    **Shapes** data (N, C, W), weight (C, channels / groups, kernel_size), bias (channels,), result (N, channels, strides (W - 1) +
    dilation (kernel_size - 1) + 1 - 2 padding + output_padding). **Args** as Conv1D; `output_padding`: less than `strides`. **Source**
    MXNet `nn.Conv1DTranspose`.
    """

    _ndim = 1

    def __init__(
        self, channels: int, kernel_size: Numbers, strides: Numbers = 1, padding: Numbers = 0, output_padding: Numbers = 0,
        dilation: Numbers = 1, groups: int = 1, layout: str = "NCW", activation: str | None = None, use_bias: bool = True,
        weight_initializer: Any = None, bias_initializer: Any = "zeros", in_channels: int = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            output_padding, channels=channels, kernel_size=kernel_size, strides=strides, padding=padding, dilation=dilation,
            groups=groups, layout=layout, activation=activation, use_bias=use_bias, weight_initializer=weight_initializer,
            bias_initializer=bias_initializer, in_channels=in_channels, **kwargs,
        )  # fmt: skip


class Conv2DTranspose(_ConvTranspose):
    """A transposed convolution over two axes.

    **Shapes** data (N, C, H, W), weight (C, channels / groups, *kernel_size), bias (channels,), result (N, channels, ...). **Args** as
    Conv1DTranspose, each a number or one for each axis; `layout`: "NCHW" or "NHWC". **Source** MXNet `nn.Conv2DTranspose`.
    """

    _ndim = 2

    def __init__(
        self, channels: int, kernel_size: Numbers, strides: Numbers = (1, 1), padding: Numbers = (0, 0),
        output_padding: Numbers = (0, 0), dilation: Numbers = (1, 1), groups: int = 1, layout: str = "NCHW",
        activation: str | None = None, use_bias: bool = True, weight_initializer: Any = None, bias_initializer: Any = "zeros",
        in_channels: int = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            output_padding, channels=channels, kernel_size=kernel_size, strides=strides, padding=padding, dilation=dilation,
            groups=groups, layout=layout, activation=activation, use_bias=use_bias, weight_initializer=weight_initializer,
            bias_initializer=bias_initializer, in_channels=in_channels, **kwargs,
        )  # fmt: skip


class Conv3DTranspose(_ConvTranspose):
    """A transposed convolution over three axes.

    **Shapes** data (N, C, D, H, W), weight (C, channels / groups, *kernel_size), bias (channels,), result (N, channels, ...). **Args**
    as Conv1DTranspose, each a number or one for each axis; `layout`: "NCDHW" or "NDHWC". **Source** MXNet `nn.Conv3DTranspose`.
    """

    _ndim = 3

    def __init__(
        self, channels: int, kernel_size: Numbers, strides: Numbers = (1, 1, 1), padding: Numbers = (0, 0, 0),
        output_padding: Numbers = (0, 0, 0), dilation: Numbers = (1, 1, 1), groups: int = 1, layout: str = "NCDHW",
        activation: str | None = None, use_bias: bool = True, weight_initializer: Any = None, bias_initializer: Any = "zeros",
        in_channels: int = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            output_padding, channels=channels, kernel_size=kernel_size, strides=strides, padding=padding, dilation=dilation,
            groups=groups, layout=layout, activation=activation, use_bias=use_bias, weight_initializer=weight_initializer,
            bias_initializer=bias_initializer, in_channels=in_channels, **kwargs,
        )  # fmt: skip
