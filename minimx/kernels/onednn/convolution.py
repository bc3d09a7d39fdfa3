"""Convolution and its gradients by oneDNN. The operators are in minimx/ops/conv.py; what their maps are is in ops/correlation.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...device import Context
from ...op import Shape, Spec
from .layout import Layout, contiguous, image, moved, split
from .library import (
    BIAS,
    DIRECT,
    DIRECT_TRANSPOSED,
    INFERENCE,
    RESULT,
    SOURCE,
    TO_RESULT,
    TO_SOURCE,
    TO_WEIGHTS,
    WEIGHTS,
    Lengths,
)
from .primitive import PostOps, Primitive, Routine, primitive

if TYPE_CHECKING:
    from ...ops.conv import ConvolutionData, ConvolutionLayer, ConvolutionWeight, Convolving
    from ...ops.deconv import DeconvolutionLayer


class Geometry:
    """What the three maps of a convolution have in common, in oneDNN's terms. Shapes are the arrays' own."""

    def __init__(self, op: Convolving, data: Shape, head: Shape, pad: Shape | None = None) -> None:
        self.last, self.filters_last, self.groups = op.last, op.filters_last, op.num_group
        self.data, self.head = data, head
        _, channels, lengths = split(data, self.last)
        _, results, counts = split(head, self.last)
        window = op.window
        pad = window.pad if pad is None else pad
        self.weight = op.filters(results, channels)
        # oneDNN's dilation counts what is left out; the padding behind is what the last window reaches beyond the end.
        ends = (
            (count - 1) * stride + span - length - begin
            for count, stride, span, length, begin in zip(counts, window.stride, window.spans, lengths, pad)
        )
        self.window = [Lengths(*each) for each in (window.stride, [d - 1 for d in window.dilate], pad, ends)]

    def images(self, shape: Shape, free: bool) -> Layout:
        """The layout of data or results: as the array has it, or the library's choice, if that may be worth a reorder.

        With the channels last the library has good code for images as they are. Otherwise it is faster on its own layouts.
        """
        return Layout.free(moved(shape, self.last)) if free and not self.last else image(shape, self.last)

    def filters(self, free: bool, swapped: bool = False) -> Layout:
        """The same of the filters, in which groups are an axis of their own; with results and channels `swapped` for the way back."""
        shape = moved(self.weight, self.filters_last)
        strides = moved(contiguous(self.weight), self.filters_last)
        if self.groups > 1:
            shape = [self.groups, shape[0] // self.groups, *shape[1:]]
            strides = [strides[0] * shape[1], *strides]
        if swapped:
            first = int(self.groups > 1)
            for each in (shape, strides):
                each[first], each[first + 1] = each[first + 1], each[first]
        return Layout.free(shape) if free else Layout.plain(shape, strides)

    def forward(self, bias: bool, free: bool, post: PostOps = ()) -> Primitive | None:
        """The primitive from data to results."""
        shift = Layout.plain((split(self.head, self.last)[1],)) if bias else None
        return primitive(
            "convolution_forward", INFERENCE, DIRECT, self.images(self.data, free), self.filters(True), shift,
            self.images(self.head, free), *self.window, post=post,
        )  # fmt: skip


def forward(op: ConvolutionLayer, context: Context, data: Spec, weight: Spec, bias: Spec | None = None) -> Routine | None:
    head = op.infer(data, weight, bias)
    geometry = Geometry(op, data.shape, head.shape)
    code = geometry.forward(bias is not None, free=True)
    if code is None:
        return None
    run = Routine(context)
    values = {
        SOURCE: run.read(geometry.images(data.shape, False), code, SOURCE),
        WEIGHTS: run.read(geometry.filters(False), code, WEIGHTS),
    }
    if bias is not None:
        values[BIAS] = run.array(Layout.plain(bias.shape))
    result = run.write(geometry.images(head.shape, False), code, RESULT)
    run.add(code, {**values, RESULT: result[1]})
    run.finish(result)
    return run


def layer(
    op: ConvolutionLayer, context: Context, data: Spec, weight: Spec, bias: Spec | None, post: PostOps
) -> tuple[Routine, Routine] | None:
    """A convolution with `post` in one, whose filters lie as it likes best; and what brings them there, into as many bytes.

    **Returns** a routine of data, filters, bias if there is one, and result; and one of filters and filters.
    """
    head = op.infer(data, weight, bias)
    geometry = Geometry(op, data.shape, head.shape)
    code = geometry.forward(bias is not None, free=False, post=post)
    if code is None:
        return None
    run, reorder = Routine(context), Routine(context)
    values = {SOURCE: run.array(geometry.images(data.shape, False)), WEIGHTS: run.array(code.layout(WEIGHTS))}
    if bias is not None:
        values[BIAS] = run.array(Layout.plain(bias.shape))
    run.add(code, {**values, RESULT: run.array(geometry.images(head.shape, False))})
    reorder.move(reorder.array(geometry.filters(False)), reorder.array(code.layout(WEIGHTS)))
    return run, reorder


def backward_data(op: ConvolutionData, context: Context, head: Spec, weight: Spec) -> Routine | None:
    data = op.infer(head, weight)
    geometry = Geometry(op, data.shape, head.shape)
    hint = geometry.forward(False, free=True)
    code = hint and primitive(
        "convolution_backward_data", DIRECT, geometry.images(data.shape, True), geometry.filters(True), geometry.images(head.shape, True),
        *geometry.window, hint,
    )  # fmt: skip
    if code is None:
        return None
    run = Routine(context)
    values = {
        TO_RESULT: run.read(geometry.images(head.shape, False), code, TO_RESULT),
        WEIGHTS: run.read(geometry.filters(False), code, WEIGHTS),
    }
    result = run.write(geometry.images(data.shape, False), code, TO_SOURCE)
    run.add(code, {**values, TO_SOURCE: result[1]})
    run.finish(result)
    return run


def backward_weight(op: ConvolutionWeight, context: Context, data: Spec, head: Spec) -> Routine | None:
    geometry = Geometry(op, data.shape, head.shape)
    hint = geometry.forward(False, free=True)
    code = hint and primitive(
        "convolution_backward_weights", DIRECT, geometry.images(data.shape, True), geometry.filters(True), None,
        geometry.images(head.shape, True), *geometry.window, hint,
    )  # fmt: skip
    if code is None:
        return None
    run = Routine(context)
    values = {
        SOURCE: run.read(geometry.images(data.shape, False), code, SOURCE),
        TO_RESULT: run.read(geometry.images(head.shape, False), code, TO_RESULT),
    }
    result = run.write(geometry.filters(False), code, TO_WEIGHTS)
    run.add(code, {**values, TO_WEIGHTS: result[1]})
    run.finish(result)
    return run


def transposed(op: DeconvolutionLayer, context: Context, data: Spec, weight: Spec, bias: Spec | None = None) -> Routine | None:
    """A deconvolution: from the results of a convolution to its data."""
    result = op.infer(data, weight, bias)
    geometry = Geometry(op, result.shape, data.shape, op.lengths_and_pad(split(data.shape, op.last)[2])[1])
    shift = None if bias is None else Layout.plain(bias.shape)
    source, target = geometry.images(data.shape, True), geometry.images(result.shape, True)
    code = primitive(
        "deconvolution_forward",
        INFERENCE,
        DIRECT_TRANSPOSED,
        source,
        geometry.filters(True, True),
        shift,
        target,
        *geometry.window,
    )
    if code is None:
        return None
    run = Routine(context)
    values = {
        SOURCE: run.read(geometry.images(data.shape, False), code, SOURCE),
        WEIGHTS: run.read(geometry.filters(False, True), code, WEIGHTS),
    }
    if shift is not None:
        values[BIAS] = run.array(shift)
    written = run.write(geometry.images(result.shape, False), code, RESULT)
    run.add(code, {**values, RESULT: written[1]})
    run.finish(written)
    return run
