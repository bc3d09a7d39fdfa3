"""Converters of operators for finding things in pictures: pooling of regions."""

from __future__ import annotations

from typing import Any

from .graph import Graph, UnsupportedError, Value, converts
from .shapes import sliced


@converts("ROIPooling")
def roi_pooling(graph: Graph, op: Any, data: Value, rois: Value) -> Any:
    return graph.node("MaxRoiPool", data, rois, pooled_shape=list(op.pooled_size), spatial_scale=float(op.spatial_scale))


@converts("_contrib_ROIAlign")
def roi_align(graph: Graph, op: Any, data: Value, rois: Value) -> Any:
    """MXNet has the number of the picture before the four corners, ONNX in a list of its own."""
    if op.position_sensitive or op.aligned:
        raise UnsupportedError(f"{graph.stem}: ROIAlign with position_sensitive or aligned has no form in ONNX here")
    numbers = graph.cast(graph.node("Squeeze", sliced(graph, rois, [1], [(0, 1, 1)]), graph.ints(1)), "int64")
    corners = sliced(graph, rois, [1], [(1, 5, 1)])
    height, width = op.pooled_size
    return graph.node(
        "RoiAlign", data, corners, numbers, output_height=height, output_width=width, spatial_scale=float(op.spatial_scale),
        sampling_ratio=max(op.sample_ratio, 0), mode="avg",
    )  # fmt: skip
