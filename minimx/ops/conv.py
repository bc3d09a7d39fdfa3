"""Convolution as an operator, and its gradients.

A convolution computes every result as the product of a filter with the elements under its window. There are three linear maps: from
data to results (`correlate`), from results back to data (`spread`, its transpose), and from data and results to filters (`relate`). Each
is the gradient of the other two, so that three operators are closed under differentiation; Deconvolution (deconv.py) is `spread` as a
layer of its own. How the maps are computed is in correlation.py. Book: chapter 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, ShapeError
from ..op import NOT_GIVEN, Array, How, Kind, Shape, Spec, T, apply, attributes, hidden, is_constant, register
from ..rules import filled, require_ndim, same_dtype
from .checks import require_float, require_input, require_shape
from .correlation import correlate, relate, spread
from .shape import as_shape
from .windows import Windowed, axes_of, channels_first, channels_last, placed, split

if TYPE_CHECKING:
    from typing_extensions import Unpack

# ---- operators


@attributes
class Convolving(Windowed):
    """What the operators here share: window, groups, and where the channels stand.

    Here `data` is what the window slides over, `head` what comes of it; Deconvolution goes from the latter to the former.
    """

    kind = Kind.GEMM
    takes_out = True
    saves_outputs = False

    makes_filters: ClassVar[bool] = False  # the result are filters, not images

    num_group: int = 1
    layout: str | None = None
    filters_first: bool = hidden(default=False)  # filters have the channels as axis 1 in any layout: see sym/passes/layout.py

    @property
    def last(self) -> bool:
        """Whether the channels are the last axis of images."""
        return channels_last(self, self.layout, len(self.kernel_size))

    @property
    def filters_last(self) -> bool:
        """Whether they are that of filters."""
        return self.last and not self.filters_first

    def geometry(self) -> dict[str, Any]:
        """The attributes that all operators here have."""
        names = ("kernel_size", "stride", "dilate", "pad", "num_group", "layout", "filters_first")
        return {name: getattr(self, name) for name in names}

    def check_input(self, what: str, spec: Spec) -> tuple[int, int, Shape]:
        """(examples, channels, lengths) of an input. Raises unless it is floating, of the right rank, and in whole groups."""
        self.check_window()
        require_float(self, spec, what)
        self.check_axes(what, spec)
        batch, channels, lengths = split(spec.shape, self.last)
        self.check_groups(f"the channels of {what} {spec.shape}", channels)
        return batch, channels, lengths

    def check_axes(self, what: str, spec: Spec) -> None:
        """Raise RankError unless an input has as many axes as the kernel asks for."""
        ndim = len(self.kernel_size)
        if spec.ndim != ndim + 2:
            require_ndim(self, what, spec, ndim + 2, axes=axes_of(ndim, self.last))

    def check_groups(self, what: str, count: int) -> None:
        if self.num_group < 1 or count % self.num_group:
            raise ArgumentError(f"{self.name}: num_group={self.num_group} does not divide {what}: {count}")

    def filters(self, results: int, channels: int) -> Shape:
        """The shape of the weight between `channels` of data and `results` of head; 0 for an unknown number."""
        return placed((results, channels // max(self.num_group, 1), *self.kernel_size), self.filters_last)

    def run(
        self,
        xp: Any,
        function: Callable[..., None],
        first: Array,
        second: Array,
        shape: Shape,
        bias: Array | None = None,
        out: Array | None = None,
    ) -> Array:
        """The result, of `shape` (channels as axis 1), of one of the three maps, in float32 for float16; plus `bias`, if it is given."""
        narrow = first.dtype == xp.float16
        second_last, last = (self.last, self.filters_last) if self.makes_filters else (self.filters_last, self.last)
        if out is None:
            out = xp.empty(placed(shape, last), first.dtype)
        dtype = xp.float32 if narrow else first.dtype
        result = xp.empty(shape, dtype) if last or narrow else out
        operands = (
            channels_first(xp, array, at_end).astype(dtype, copy=False)
            for array, at_end in ((first, self.last), (second, second_last))
        )
        biases = () if bias is None else (bias.astype(dtype, copy=False),)
        function(xp, *operands, self.window, self.num_group, result, *biases)
        if result is not out:
            channels_first(xp, out, last)[...] = result
        return out


@attributes
class ConvolvingLayer(Convolving):
    """A layer with filters and perhaps a bias."""

    inputs: ClassVar = ("data", "weight", "bias?")
    required = ("kernel_size", "num_filter")
    saves_inputs = (0, 1)

    num_filter: int = 0
    no_bias: bool = False
    workspace: int = 1024
    cudnn_tune: str | None = None
    cudnn_off: bool = False

    def wants(self, name: str) -> bool:
        return name == "bias" and not self.no_bias

    def weight_shape(self, channels: int) -> Shape:
        """The shape of the weight for data with `channels`, 0 if they are unknown."""
        raise NotImplementedError

    def channels_for(self, weight: Shape) -> int:
        """How many channels the data must have for a weight of this shape."""
        raise NotImplementedError

    def check_layer(self, data: Spec, weight: Spec, bias: Spec | None) -> tuple[int, Shape]:
        """(examples, lengths) of data. Raises unless the inputs fit."""
        if self.num_filter < 1:
            raise ArgumentError(f"{self.name}: num_filter={self.num_filter} is not positive; give the number of output channels")
        batch, channels, lengths = self.check_input("data", data)
        self.check_groups("num_filter", self.num_filter)
        advice = "pass it with no_bias=False, or leave it out with no_bias=True"
        require_input(self, "bias", bias, not self.no_bias, advice)
        same_dtype(self, data, weight) if bias is None else same_dtype(self, data, weight, bias)
        require_shape(self, "weight", weight, self.weight_shape(channels), f"data of shape {data.shape}")
        if bias is not None:
            require_shape(self, "bias", bias, (self.num_filter,), f"num_filter={self.num_filter}")
        return batch, lengths

    def fill(self, data: Spec | None, weight: Spec | None, *bias: Spec | None) -> tuple[Spec | None, ...]:
        ndim = len(self.kernel_size) + 2
        if data is not None and 1 <= ndim - 2 <= 3:  # else `infer` will say what is wrong with the window
            self.check_axes("data", data)
            weight = filled(weight, self.weight_shape(split(data.shape, self.last)[1]), data)
        if data is not None and data.ndim == ndim and weight is not None and weight.ndim == ndim:
            channels = self.channels_for(weight.shape)
            data = filled(data, placed((0, channels, *[0] * (ndim - 2)), self.last), data)
        like = weight or data
        return (data, weight, *(filled(spec, (self.num_filter,), like) if like is not None else spec for spec in bias))

    def to_bias(self, g: Any, bias: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradient of the bias, if there is one."""
        axes = tuple(axis for axis in range(len(g.shape)) if axis != (len(g.shape) - 1 if self.last else 1))
        return tuple(None if each is None else g.sum(axis=axes) for each in bias)


@register("Convolution")
class ConvolutionLayer(ConvolvingLayer):
    def weight_shape(self, channels: int) -> Shape:
        return self.filters(self.num_filter, channels)

    def channels_for(self, weight: Shape) -> int:
        return split(weight, self.filters_last)[1] * self.num_group

    def infer(self, data: Spec, weight: Spec, bias: Spec | None = None) -> Spec:
        batch, lengths = self.check_layer(data, weight, bias)
        return data.with_shape(placed((batch, self.num_filter, *self.check_counts(lengths)), self.last))

    def kernel(self, xp: Any, data: Array, weight: Array, bias: Array | None = None, out: Array | None = None) -> Array:
        batch, _, lengths = split(data.shape, self.last)
        shape = (batch, self.num_filter, *self.window.counts(lengths))
        return self.run(xp, correlate, data, weight, shape, bias, out)

    def vjp(self, g: Any, y: Any, data: Any, weight: Any, *bias: Any) -> tuple[Any, ...]:
        lengths = split(data.shape, self.last)[2]
        to_data = None if is_constant(data) else apply(ConvolutionData(**self.geometry(), lengths=lengths), g, weight)
        to_weight = None if is_constant(weight) else apply(ConvolutionWeight(**self.geometry()), data, g)
        return to_data, to_weight, *self.to_bias(g, bias)


@register("_backward_Convolution_data")
class ConvolutionData(Convolving):
    """From the gradient of a convolution's results to that of its data, whose `lengths` do not follow from those of the results."""

    inputs: ClassVar = ("head", "weight")

    lengths: tuple[int, ...] = ()

    def infer(self, head: Spec, weight: Spec) -> Spec:
        batch, results, counts = self.check_input("head", head)
        same_dtype(self, head, weight)
        if self.check_counts(self.lengths) != counts:
            wanted = self.window.counts(self.lengths)
            raise ShapeError(f"{self.name}: head has shape {head.shape}, data of lengths {self.lengths} needs {wanted}")
        channels = split(weight.shape, self.filters_last)[1] * self.num_group
        require_shape(self, "weight", weight, self.filters(results, channels), f"head of shape {head.shape}")
        return head.with_shape(placed((batch, channels, *self.lengths), self.last))

    def kernel(self, xp: Any, head: Array, weight: Array, out: Array | None = None) -> Array:
        channels = split(weight.shape, self.filters_last)[1] * self.num_group
        return self.run(xp, spread, head, weight, (head.shape[0], channels, *self.lengths), None, out)

    def vjp(self, g: Any, y: Any, head: Any, weight: Any) -> tuple[Any, ...]:
        to_head = apply(ConvolutionLayer(**self.geometry(), num_filter=split(head.shape, self.last)[1], no_bias=True), g, weight)
        return to_head, apply(ConvolutionWeight(**self.geometry()), g, head)


@register("_backward_Convolution_weight")
class ConvolutionWeight(Convolving):
    """From the data of a convolution and the gradient of its results to that of its weight."""

    inputs: ClassVar = ("data", "head")
    makes_filters = True

    def infer(self, data: Spec, head: Spec) -> Spec:
        batch, channels, lengths = self.check_input("data", data)
        also, results, counts = self.check_input("head", head)
        same_dtype(self, data, head)
        if (also, counts) != (batch, self.check_counts(lengths)):
            wanted = placed((batch, results, *self.window.counts(lengths)), self.last)
            raise ShapeError(f"{self.name}: head has shape {head.shape}, data of shape {data.shape} needs {wanted}")
        return data.with_shape(self.filters(results, channels))

    def kernel(self, xp: Any, data: Array, head: Array, out: Array | None = None) -> Array:
        channels, results = (split(array.shape, self.last)[1] for array in (data, head))
        shape = (results, channels // self.num_group, *self.kernel_size)
        return self.run(xp, relate, data, head, shape, None, out)

    def vjp(self, g: Any, y: Any, data: Any, head: Any) -> tuple[Any, ...]:
        _, results, _ = split(head.shape, self.last)
        to_data = apply(ConvolutionData(**self.geometry(), lengths=split(data.shape, self.last)[2]), head, g)
        return to_data, apply(ConvolutionLayer(**self.geometry(), num_filter=results, no_bias=True), data, g)


def Convolution(
    data: T | None = NOT_GIVEN,
    weight: T | None = None,
    bias: T | None = None,
    kernel: tuple[int, ...] = (),
    stride: tuple[int, ...] = (),
    dilate: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
    num_filter: int = 0,
    num_group: int = 1,
    workspace: int = 1024,
    no_bias: bool = False,
    cudnn_tune: str | None = None,
    cudnn_off: bool = False,
    layout: str | None = None,
    **how: Unpack[How],
) -> T:
    """Convolution over one, two or three axes: `y[n, m, p] = sum over c, k of data[n, c, p stride + k dilate - pad] weight[m, c, k]
    + bias[m]`.

    **Shapes** data (N, C, ...), weight (M, C / num_group, *kernel), bias (M,), result (N, M, ...) with lengths `(length + 2 pad -
    dilate (kernel - 1) - 1) // stride + 1`. **Args** `kernel`: 1 to 3 lengths; `num_filter`: M; `num_group`: the channels are cut into
    so many groups, and each makes its share of the results; `layout`: "NCW", "NCHW" or "NCDHW", or with the channels last "NWC", "NHWC",
    "NDHWC", in weight too; `workspace`, `cudnn_tune`, `cudnn_off` change nothing. **Raises** ShapeError if the window does not fit into the
    data. **Gradient** of data: the transposed convolution of g; of weight: the sum over all windows of g times the elements under them.
    **Source** MXNet `Convolution`.
    """
    op = ConvolutionLayer(
        kernel_size=as_shape(kernel), stride=as_shape(stride), dilate=as_shape(dilate), pad=as_shape(pad), num_group=num_group,
        layout=layout, num_filter=num_filter, no_bias=no_bias, workspace=workspace, cudnn_tune=cudnn_tune, cudnn_off=cudnn_off,
    )  # fmt: skip
    return apply(op, data, weight, *(() if bias is None and op.no_bias else (bias,)), **how)


__all__ = ["Convolution"]
