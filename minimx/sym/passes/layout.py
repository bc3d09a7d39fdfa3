"""Layout: images with the channels as the last axis, between the layers that are faster so.

MXNet's images are (N, C, H, W). A processor computes a convolution sooner where the channels of a pixel lie together: a register holds
some of them, whatever the window. oneDNN reorders images on the way into a convolution and back, each time; this pass does so once, where
they enter a chain of layers, and lets convolutions, pooling, normalizations and elementwise operators hand them on as (N, H, W, C). Where
another operator, or somebody outside, wants a value, it is put back. Filters stay as they are, for whoever reads their gradients.

Each value has an entry for either order at most, made when somebody first asks for it. It is done only where oneDNN is there: NumPy's
kernels are best as it was. Book: chapter 5.
"""

from __future__ import annotations

import dataclasses

from ... import kernels
from ...op import Kind, Op
from ...ops.batchnorm import BatchNormBackward, BatchNormLayer
from ...ops.conv import ConvolutionData, ConvolutionLayer, ConvolutionWeight, Convolving
from ...ops.joining import Concatenation
from ...ops.layout import Transpose
from ...ops.pool import PoolingBase, PoolingFirst, PoolingLayer, PoolingSpread
from ...ops.reduce import Sum
from ...ops.shape import Reshaping
from ...ops.slicing import SliceAxis
from ..graph import Entry, Node
from .typed import Builder, TypedGraph, counted, operator

TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
PLAIN = (None, "None", "NCHW")
POOLING = (PoolingLayer, PoolingSpread, PoolingFirst)
REGISTER = 16  # channels: the single-precision numbers of a register
PICTURE = 4  # channels
SAMPLES = 32  # numbers of a channel
FEW = 2  # convolutions, from which on there is something to hand on


def channels_last(graph: TypedGraph) -> TypedGraph:
    """Let layers hand on images with the channels last, if convolutions are oneDNN's."""
    if graph.on_gpu or not kernels.found():
        return graph.replaced(note="NumPy's kernels are best as it is")
    count = sum(is_image_convolution(graph, node) for node in graph.order)
    if count < FEW:
        return graph.replaced(note="nothing to hand on")
    if any(magnifies(graph, node) for node in graph.order):
        return graph.replaced(note="a normalization of few numbers would magnify rounding")
    return _Walk(graph).result()


def is_image_convolution(graph: TypedGraph, node: Node) -> bool:
    """Whether a node is a convolution of images that gains: in single precision, in the usual order, with channels to fill a register.

    A picture has few, but no layer before it: it is the filters that count.
    """
    op, result = operator(node), graph.specs[node, 0]
    if type(op) not in (ConvolutionLayer, ConvolutionData, ConvolutionWeight) or result.dtype.char != "f" or not result.size:
        return False
    assert isinstance(op, Convolving)
    if len(op.kernel_size) != 2 or op.layout not in PLAIN:
        return False
    entry = (node, 0) if op.makes_filters else node.inputs[1]
    assert entry is not None
    results, channels = graph.specs[entry].shape[:2]
    return results >= REGISTER and not PICTURE < channels * op.num_group < REGISTER


def magnifies(graph: TypedGraph, node: Node) -> bool:
    """Whether a node normalizes each channel over so few numbers of a batch that they are nearly equal now and then.

    Their differences, and with them rounding, become large then; the same net one operator after the other should give the same.
    """
    op = operator(node)
    if not isinstance(op, BatchNormLayer) or not op.of_batch:
        return False
    before, _, after = op.seen(graph.specs[node, 0].shape)
    return before * after < SAMPLES


class _Walk:
    """Goes over the nodes once, and makes new ones. `first` and `last` have the entry of a value in either order, by its old entry."""

    def __init__(self, graph: TypedGraph) -> None:
        self.graph = graph
        self.builder = Builder(graph.specs, graph.draws)
        self.first: dict[Entry, Entry] = {}
        self.last: dict[Entry, Entry] = {}
        self.changed = self.turned = 0
        self.successor: dict[Node, Node] = {}  # of nodes with effects
        self.variables = set(graph.variables)
        for node in graph.nodes:
            self._visit(node)

    def result(self) -> TypedGraph:
        heads = tuple(self.as_first(entry) for entry in self.graph.heads)
        return self.graph.replaced(
            nodes=tuple(self.builder.made),
            heads=heads,
            effects=tuple(self.successor.get(node, node) for node in self.graph.effects),
            note=f"{counted(self.changed, 'operator')} with the channels last, {counted(self.turned, 'transpose')}",
        )

    # ---- values in either order

    def as_first(self, entry: Entry) -> Entry:
        """A value as it was: (N, C, H, W)."""
        if entry not in self.first and entry in self.last:
            self.first[entry] = self._turned(self.last[entry], TO_FIRST, f"{entry[0].name}_first")
        return self.first.get(entry, entry)

    def as_last(self, entry: Entry) -> Entry:
        """A value as (N, H, W, C); a single number as it is."""
        spec = self.graph.specs[entry]
        if spec.ndim != 4:
            return self.as_first(entry)
        if entry not in self.last:
            self.last[entry] = self._turned(self.as_first(entry), TO_LAST, f"{entry[0].name}_last")
        return self.last[entry]

    def _turned(self, entry: Entry, order: tuple[int, ...], name: str) -> Entry:
        shape = self.builder.specs[entry].shape
        wanted = tuple(shape[axis] for axis in order)
        long = [axis for axis in order if shape[axis] != 1]
        stays = long == sorted(long)  # only axes of length 1 change places
        op: Op = Reshaping(wanted, exact=True) if stays else Transpose(order)
        self.turned += not stays
        return self._made(op, [entry], name), 0

    def _made(self, op: Op, inputs: list[Entry | None], name: str) -> Node:
        node = self.builder.node(op, inputs)
        node.name = name
        return node

    # ---- operators

    def _visit(self, node: Node) -> None:
        op = operator(node)
        changed = self._changed(node, op)
        if changed is None:
            inputs = [None if entry is None else self.as_first(entry) for entry in node.inputs]
            if inputs == node.inputs:
                self.builder.made.append(node)
                return
            made = self.builder.copy(node, inputs)
            self.first.update(((node, index), (made, index)) for index in range(op.num_outputs))
        else:
            turned, images = changed
            inputs = [
                None if entry is None else (self.as_last if position in images else self.as_first)(entry)
                for position, entry in enumerate(node.inputs)
            ]
            made = self._made(turned, inputs, node.name)
            made.attrs = node.attrs
            self.changed += 1
            for index in range(op.num_outputs):
                is_image = self.graph.specs[node, index].ndim == 4 and not (isinstance(op, Convolving) and op.makes_filters)
                (self.last if is_image else self.first)[node, index] = (made, index)
        self.successor[node] = made

    def _changed(self, node: Node, op: Op) -> tuple[Op, set[int]] | None:
        """The operator for channels last and the positions of the images among its inputs; None for one that is to stay."""
        if is_image_convolution(self.graph, node):
            turned = dataclasses.replace(op, layout="NHWC", filters_first=True)
            return turned, {0, 1} if isinstance(op, ConvolutionWeight) else {0}
        if self.graph.specs[node, 0].dtype.char != "f":
            return None
        if type(op) in POOLING:
            return self._pooling(node, op)
        if type(op) in (BatchNormLayer, BatchNormBackward):
            return self._normalization(node, op)
        if op.kind is Kind.ELEMENTWISE and op.num_outputs == 1 and not (op.mutates or op.needs_key):
            return (op, set(range(len(node.inputs)))) if self._hands_on(node) else None
        if not node.inputs or node.inputs[0] not in self.last:
            return None
        if type(op) is Sum and not op.keepdims and op.plan(self.graph.specs[node.inputs[0]].shape)[0] == (0, 2, 3):
            return dataclasses.replace(op, axis=(0, 1, 2), exclude=False), {0}
        if type(op) is Concatenation and op.dim == 1 and all(entry in self.last for entry in node.inputs):
            return dataclasses.replace(op, dim=3), set(range(len(node.inputs)))
        if type(op) is SliceAxis and op.axis == 1:
            return dataclasses.replace(op, axis=3), {0}
        return None

    def _pooling(self, node: Node, op: Op) -> tuple[Op, set[int]] | None:
        """Pooling of images that are in the chain, and all its gradients: they go on into it."""
        assert isinstance(op, PoolingBase)
        data = node.inputs[0]
        assert data is not None
        in_chain = data in self.last or not isinstance(op, PoolingLayer)
        if self.graph.specs[data].ndim != 4 or op.layout not in PLAIN or not in_chain:
            return None
        return dataclasses.replace(op, layout="NHWC"), set(range(len(node.inputs)))

    def _normalization(self, node: Node, op: Op) -> tuple[Op, set[int]] | None:
        assert isinstance(op, (BatchNormLayer, BatchNormBackward))
        images = (0,) if isinstance(op, BatchNormLayer) else (0, 1)
        data = node.inputs[images[-1]]
        assert data is not None
        if data not in self.last or op.axis not in (1, -3):
            return None
        return dataclasses.replace(op, axis=3), set(images)

    def _hands_on(self, node: Node) -> bool:
        """Whether an elementwise operator has images in the chain for operands, and none that broadcast in another way."""
        result = self.graph.specs[node, 0]
        specs = [None if entry is None else self.graph.specs[entry] for entry in node.inputs]
        fits = all(spec is not None and (spec.ndim == 4 or spec.size == 1) for spec in specs)
        return fits and result.ndim == 4 and any(entry in self.last for entry in node.inputs)
