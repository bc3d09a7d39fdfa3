"""BatchNorm folding: in inference a normalization after a convolution becomes part of its weights.

With constant statistics BatchNorm is one factor and one addend for each channel, and so is the output of a convolution or of a fully
connected layer for each of its filters: `slope (w * x + b) + shift = (slope w) * x + (slope b + shift)`. Two passes over the data become
none, at the price of one over the weights, so it is done where the data are larger, or where the weights are parameters of a part for a
backend, which computes with them once. Results differ by rounding.
"""

from __future__ import annotations

import dataclasses

from ...ops.batchnorm import BatchNormLayer
from ...ops.binary import broadcast_mul
from ...ops.conv import ConvolutionLayer
from ...ops.nn import FullyConnectedLayer
from ..graph import Entry, Node
from .typed import Builder, TypedGraph, operator, rewritten


def fold_batchnorm(graph: TypedGraph) -> TypedGraph:
    """Put normalizations with constant statistics into the weights of the layer before."""
    folded = 0

    def rule(builder: Builder, node: Node, inputs: list[Entry | None]) -> list[Entry] | None:
        nonlocal folded
        if not foldable(graph, node):
            return None
        folded += 1
        return [folded_layer(builder, node, inputs)]

    return rewritten(graph, rule).replaced(note=f"{folded} folded")


def foldable(graph: TypedGraph, node: Node) -> bool:
    """Whether a node is a BatchNorm of constant statistics, of which only the data are used, behind a layer that nothing else reads."""
    op = operator(node)
    if type(op) is not BatchNormLayer or op.of_batch or graph.uses.get((node, 1)) or graph.uses.get((node, 2)):
        return False
    data, gamma = node.inputs[:2]
    assert data is not None
    assert gamma is not None
    layer = data[0].op
    if not isinstance(layer, (ConvolutionLayer, FullyConnectedLayer)) or graph.uses[data] != 1:
        return False
    if graph.specs[data].dtype != graph.specs[gamma].dtype:
        return False
    channels = op.axis % len(graph.specs[data].shape)
    last = len(graph.specs[data].shape) - 1
    weight = data[0].inputs[1]
    assert weight is not None
    is_cheap = graph.specs[weight].size <= graph.specs[data].size or weight[0] in graph.parameters
    return channels == (1 if isinstance(layer, ConvolutionLayer) else last) and is_cheap


def folded_layer(builder: Builder, node: Node, inputs: list[Entry | None]) -> Entry:
    """The layer before with weights that normalize."""
    op, data = operator(node), inputs[0]
    assert isinstance(op, BatchNormLayer)
    assert data is not None
    gamma, beta, mean, variance = (builder.tensor(entry) for entry in inputs[1:] if entry is not None)
    layer = operator(data[0])
    source, weight, *bias = (None if entry is None else builder.tensor(entry) for entry in data[0].inputs)
    assert source is not None
    assert weight is not None
    slope = (variance + op.eps).rsqrt()
    if not op.fix_gamma:
        slope = slope * gamma
    shift = beta - mean * slope
    if bias and bias[0] is not None:
        shift = shift + bias[0] * slope
    scaled = broadcast_mul(weight, slope.reshape((-1,) + (1,) * (weight.ndim - 1)))
    assert isinstance(layer, (ConvolutionLayer, FullyConnectedLayer))
    folded = builder.node(dataclasses.replace(layer, no_bias=False), [source.entry, scaled.entry, shift.entry])
    folded.name = data[0].name
    return folded, 0
