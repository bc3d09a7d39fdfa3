"""Deformable convolutions as layers: a convolution says, for each window, where its points are, and a second one takes the values there."""

from __future__ import annotations

from typing import Any, ClassVar

from ...block import HybridBlock
from ...nn.activations import activation_of
from ...nn.pool_layers import Numbers, numbers_for
from ...weight import ParameterError, require_length

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]


class _Deformable(HybridBlock):
    """What both have in common: parameters of the convolution that makes offsets, and of the deformed one."""

    _per_point: ClassVar[int]  # numbers that the first convolution makes for each point of the kernel
    _offset_first: ClassVar[bool]  # whether its parameters come first

    deformable_conv_weight: Any
    deformable_conv_bias: Any

    def __init__(
        self, channels: int, kernel_size: Numbers = (1, 1), strides: Numbers = (1, 1), padding: Numbers = (0, 0),
        dilation: Numbers = (1, 1), groups: int = 1, num_deformable_group: int = 1, layout: str = "NCHW", use_bias: bool = True,
        in_channels: int = 0, activation: str | None = None, weight_initializer: Any = None, bias_initializer: Any = "zeros",
        offset_weight_initializer: Any = "zeros", offset_bias_initializer: Any = "zeros", offset_use_bias: bool = True,
        prefix: str | None = None, params: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(prefix=prefix, params=params)
        name = type(self).__name__
        if layout != "NCHW":
            raise ParameterError(f"{name}: layout={layout!r}; only NCHW is valid here")
        require_length(self, "channels", channels)
        kernel = numbers_for(f"{name}: kernel_size", kernel_size, 2)
        common = {
            "kernel": kernel, "stride": numbers_for(f"{name}: strides", strides, 2),
            "dilate": numbers_for(f"{name}: dilation", dilation, 2), "pad": numbers_for(f"{name}: padding", padding, 2),
        }  # fmt: skip
        self._points = num_deformable_group * kernel[0] * kernel[1]
        offsets = self._per_point * self._points
        self._kwargs_offset = {
            **common, "num_filter": offsets, "num_group": groups, "no_bias": not offset_use_bias, "layout": layout
        }  # fmt: skip
        self._kwargs_deformable_conv = {
            **common, "num_filter": channels, "num_group": groups, "num_deformable_group": num_deformable_group,
            "no_bias": not use_bias, "layout": layout,
        }  # fmt: skip
        inputs = in_channels // groups
        wanted = [
            ("offset", (offsets, inputs, *kernel), offset_use_bias, offset_weight_initializer, offset_bias_initializer),
            ("deformable_conv", (channels, inputs, *kernel), use_bias, weight_initializer, bias_initializer),
        ]
        with self.name_scope():
            for each in wanted if self._offset_first else reversed(wanted):
                self._parameters(*each)
            self.act = activation_of(self, activation)

    def _parameters(self, name: str, shape: tuple[int, ...], use_bias: bool, weight_init: Any, bias_init: Any) -> None:
        """Make the weight and perhaps the bias of a convolution: the attributes NAME_weight and NAME_bias."""
        weight = self.params.get(f"{name}_weight", shape=shape, init=weight_init, allow_deferred_init=True)
        setattr(self, f"{name}_weight", weight)
        bias = self.params.get(f"{name}_bias", shape=shape[:1], init=bias_init, allow_deferred_init=True) if use_bias else None
        setattr(self, f"{name}_bias", bias)

    def _offsets(self, F: Any, x: Any, weight: Any, bias: Any) -> Any:
        given = (x, weight) if bias is None else (x, weight, bias)
        return F.Convolution(*given, cudnn_off=True, **self._kwargs_offset)

    def _activated(self, result: Any) -> Any:
        return result if self.act is None else self.act(result)

    def __repr__(self) -> str:
        given = self._kwargs_deformable_conv
        shape = self.deformable_conv_weight.shape
        parts = [f"{shape[1] or None} -> {shape[0]}", f"kernel_size={given['kernel']}", f"stride={given['stride']}"]
        parts += [f"padding={given['pad']}"] * (given["pad"] != (0, 0))
        parts += [f"dilation={given['dilate']}"] * (given["dilate"] != (1, 1))
        parts += [f"groups={given['num_group']}"] * (given["num_group"] != 1)
        parts += ["bias=False"] * (self.deformable_conv_bias is None)
        parts += [str(self.act)] * (self.act is not None)
        return f"{type(self).__name__}({', '.join(parts)})"


class DeformableConvolution(_Deformable):
    """A convolution whose points move: each point of the kernel by an offset, in every window by another, that is learned.

    **Shapes** data (N, C, H, W), result (N, channels, H', W') as Conv2D. **Args** `num_deformable_group`: channels are cut into so many
    groups with offsets of their own; `offset_...`: of the convolution that makes the offsets, which begins with zeros, so that points are
    where those of Conv2D are; the others as Conv2D. `layout` can be "NCHW". **Source** MXNet `gluon.contrib.cnn.DeformableConvolution`;
    Dai et al., "Deformable Convolutional Networks", https://arxiv.org/abs/1703.06211.
    """

    _per_point = 2
    _offset_first = True

    def hybrid_forward(
        self,
        F: Any,
        x: Any,
        offset_weight: Any,
        deformable_conv_weight: Any,
        offset_bias: Any = None,
        deformable_conv_bias: Any = None,
    ) -> Any:
        offset = self._offsets(F, x, offset_weight, offset_bias)
        bias = {} if deformable_conv_bias is None else {"bias": deformable_conv_bias}
        return self._activated(
            F.contrib.DeformableConvolution(
                data=x, offset=offset, weight=deformable_conv_weight, **bias, name="fwd", **self._kwargs_deformable_conv
            )
        )

    def _alias(self) -> str:
        return "deformable_conv"


class ModulatedDeformableConvolution(_Deformable):
    """A DeformableConvolution in which each point has a factor, too, between 0 and 2, 1 at first.

    **Shapes**, **Args** as DeformableConvolution. **Source** MXNet `gluon.contrib.cnn.ModulatedDeformableConvolution`; Zhu et al.,
    "Deformable ConvNets v2", https://arxiv.org/abs/1811.11168.
    """

    _per_point = 3
    _offset_first = False

    def hybrid_forward(
        self,
        F: Any,
        x: Any,
        offset_weight: Any,
        deformable_conv_weight: Any,
        offset_bias: Any = None,
        deformable_conv_bias: Any = None,
    ) -> Any:
        made = self._offsets(F, x, offset_weight, offset_bias)
        offset = F.slice_axis(made, axis=1, begin=0, end=2 * self._points)
        mask = F.sigmoid(F.slice_axis(made, axis=1, begin=2 * self._points, end=None)) * 2
        bias = {} if deformable_conv_bias is None else {"bias": deformable_conv_bias}
        return self._activated(
            F.contrib.ModulatedDeformableConvolution(
                data=x,
                offset=offset,
                mask=mask,
                weight=deformable_conv_weight,
                **bias,
                name="fwd",
                **self._kwargs_deformable_conv,
            )
        )

    def _alias(self) -> str:
        return "modulated_deformable_conv"
