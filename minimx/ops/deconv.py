"""Deconvolution: a convolution run backwards, as a layer.

Where a convolution makes one result of the elements under a window, here each element puts a filter, weighed by it, where the window
would be. That is how a convolution's gradient goes to its data, so that the operator is made of the maps of correlation.py, with the roles
of data and results exchanged: weight is that of the convolution from the result here to the data here. Book: chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import ArgumentError, ShapeError
from ..op import NOT_GIVEN, Array, How, Shape, Spec, T, apply, is_constant, register
from .conv import ConvolutionLayer, ConvolutionWeight, ConvolvingLayer
from .correlation import spread
from .shape import as_shape
from .windows import Window, placed, split

if TYPE_CHECKING:
    from typing_extensions import Unpack


@register("Deconvolution")
class DeconvolutionLayer(ConvolvingLayer):
    no_bias: bool = True
    workspace: int = 512
    adj: tuple[int, ...] = ()
    target_shape: tuple[int, ...] = ()

    def weight_shape(self, channels: int) -> Shape:
        return self.filters(channels, self.num_filter)

    def channels_for(self, weight: Shape) -> int:
        return weight[0]

    @property
    def is_targeted(self) -> bool:
        """Whether the lengths of the result are given, so that padding follows from them."""
        return any(self.target_shape)

    def check_window(self) -> Window:
        window = super().check_window()
        for what, value in (("adj", self.adj), ("target_shape", self.target_shape)):
            if value and len(value) != len(self.kernel_size):
                raise ArgumentError(
                    f"{self.name}: {what}={value} has {len(value)} lengths, kernel={self.kernel_size} has {len(self.kernel_size)}"
                )
            if min(value, default=0) < 0:
                raise ArgumentError(f"{self.name}: {what}={value} must not be less than 0")
        if not self.is_targeted and any(adj >= stride for adj, stride in zip(self.adj, window.stride)):
            raise ArgumentError(f"{self.name}: adj={self.adj} must be less than stride={window.stride}")
        return window

    def lengths_and_pad(self, counts: Shape) -> tuple[Shape, Shape]:
        """The lengths of the result, and the padding, for data of lengths `counts`. Raises ShapeError if there are none."""
        window = self.check_window()
        full = tuple(stride * (count - 1) + span for stride, count, span in zip(window.stride, counts, window.spans))
        if self.is_targeted:
            if any(target > length for target, length in zip(self.target_shape, full)):
                raise ShapeError(
                    f"{self.name}: target_shape={self.target_shape}, the results for data of lengths {counts} end at {full}"
                )
            pads = tuple((length - target + 1) // 2 for target, length in zip(self.target_shape, full))
            if any(
                stride == 1 and (length - target) % 2 for stride, target, length in zip(window.stride, self.target_shape, full)
            ):
                raise ShapeError(
                    f"{self.name}: target_shape={self.target_shape} leaves an odd number of {full} results over, of which stride 1 cannot "
                    "take half on each side"
                )
            return self.target_shape, pads
        adj = self.adj or (0,) * len(full)
        lengths = tuple(length - 2 * pad + extra for length, pad, extra in zip(full, window.pad, adj))
        if min(lengths) < 1:
            raise ShapeError(f"{self.name}: nothing is left of {full} results without pad={window.pad} on both sides")
        return lengths, window.pad

    def of_convolution(self, pad: Shape) -> dict[str, Any]:
        """The geometry of the convolution that this one is the transpose of."""
        return {**self.geometry(), "pad": pad}

    def infer(self, data: Spec, weight: Spec, bias: Spec | None = None) -> Spec:
        batch, counts = self.check_layer(data, weight, bias)
        return data.with_shape(placed((batch, self.num_filter, *self.lengths_and_pad(counts)[0]), self.last))

    def kernel(self, xp: Any, data: Array, weight: Array, bias: Array | None = None, out: Array | None = None) -> Array:
        batch, _, counts = split(data.shape, self.last)
        lengths, pad = self.lengths_and_pad(counts)
        window = Window(self.kernel_size, self.window.stride, self.window.dilate, pad)

        def transposed(xp: Any, head: Array, weight: Array, _: Window, groups: int, out: Array, *biases: Array) -> None:
            spread(xp, head, weight, window, groups, out)
            for each in biases:
                out += each.reshape(-1, *[1] * len(lengths))

        return self.run(xp, transposed, data, weight, (batch, self.num_filter, *lengths), bias, out)

    def vjp(self, g: Any, y: Any, data: Any, weight: Any, *bias: Any) -> tuple[Any, ...]:
        _, channels, counts = split(data.shape, self.last)
        geometry = self.of_convolution(self.lengths_and_pad(counts)[1])
        layer = ConvolutionLayer(**geometry, num_filter=channels, no_bias=True)
        to_data = None if is_constant(data) else apply(layer, g, weight)
        to_weight = None if is_constant(weight) else apply(ConvolutionWeight(**geometry), g, data)
        return to_data, to_weight, *self.to_bias(g, bias)


def Deconvolution(
    data: T | None = NOT_GIVEN,
    weight: T | None = None,
    bias: T | None = None,
    kernel: tuple[int, ...] = (),
    stride: tuple[int, ...] = (),
    dilate: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
    adj: tuple[int, ...] = (),
    target_shape: tuple[int, ...] = (),
    num_filter: int = 0,
    num_group: int = 1,
    workspace: int = 512,
    no_bias: bool = True,
    cudnn_tune: str | None = None,
    cudnn_off: bool = False,
    layout: str | None = None,
    **how: Unpack[How],
) -> T:
    """Transposed convolution over one, two or three axes: `y[n, m, p stride + k dilate - pad] += data[n, c, p] weight[c, m, k]`, and
    `bias[m]` added.

    **Shapes** data (N, C, ...), weight (C, M / num_group, *kernel), bias (M,), result (N, M, ...) with lengths `stride (length - 1) +
    dilate (kernel - 1) + 1 - 2 pad + adj`. **Args** `kernel`: 1 to 3 lengths; `adj`: so much longer is the result, less than `stride`;
    `target_shape`: its lengths, from which `pad` and `adj` then follow; `num_filter`: M; `num_group`, `layout` as in Convolution;
    `workspace`, `cudnn_tune`, `cudnn_off` change nothing. **Raises** ShapeError for a target that is too long. **Gradient** of data:
    the convolution of g with weight; of weight: the sum over all windows of data times g. **Source** MXNet `Deconvolution`.
    """
    op = DeconvolutionLayer(
        kernel_size=as_shape(kernel), stride=as_shape(stride), dilate=as_shape(dilate), pad=as_shape(pad), num_group=num_group,
        layout=layout, num_filter=num_filter, no_bias=no_bias, workspace=workspace, cudnn_tune=cudnn_tune, cudnn_off=cudnn_off,
        adj=as_shape(adj), target_shape=as_shape(target_shape),
    )  # fmt: skip
    return apply(op, data, weight, *(() if bias is None and op.no_bias else (bias,)), **how)


__all__ = ["Deconvolution"]
