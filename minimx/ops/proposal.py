"""Proposal and MultiProposal: from what a region proposal network says to regions that a second network looks at.

The network says for every anchor, some around each pixel of a feature map, how likely it is to hold an object, and by what offsets that
object's box differs from it. Boxes too small, and those on padding, count as unlikely; the most likely ones are thinned out by
non-maximum suppression (suppression.py), and so many of those that remain are the regions. Unlike those of multibox.py, boxes here are in
pixels, of which the last belongs to the box: one from 3 to 3 has the width 1. Book: chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, OutOfRangeError, ShapeError
from ..op import Array, How, Op, Spec, T, apply, attributes, register
from ..rules import filled, require_ndim, same_dtype
from .boxes import Edges
from .checks import accurate, require_float, require_shape
from .suppression import Rule, ranking, survivors

if TYPE_CHECKING:
    from typing_extensions import Unpack

SCALES, RATIOS = (4.0, 8.0, 16.0, 32.0), (0.5, 1.0, 2.0)


@attributes
class Proposing(Op):
    """What both operators share; they differ in how many images they take."""

    on_host = True
    inputs: ClassVar = ("cls_prob", "bbox_pred", "im_info")
    saves_inputs = False
    saves_outputs = False

    rpn_pre_nms_top_n: int = 6000
    rpn_post_nms_top_n: int = 300
    threshold: float = 0.7
    rpn_min_size: int = 16
    scales: tuple[float, ...] = SCALES
    ratios: tuple[float, ...] = RATIOS
    feature_stride: int = 16
    output_score: bool = False
    iou_loss: bool = False

    @property
    def num_outputs(self) -> int:
        return 2

    @property
    def num_visible(self) -> int:
        return 2 if self.output_score else 1

    def fill(self, cls_prob: Spec | None, bbox_pred: Spec | None, im_info: Spec | None) -> tuple[Spec | None, ...]:
        if cls_prob is not None and cls_prob.ndim == 4:
            batch, channels, *lengths = cls_prob.shape
            bbox_pred = filled(bbox_pred, (batch, 2 * channels, *lengths), cls_prob)
            im_info = filled(im_info, (batch, 3), cls_prob)
        return cls_prob, bbox_pred, im_info

    def infer(self, cls_prob: Spec, bbox_pred: Spec, im_info: Spec) -> tuple[Spec, ...]:
        require_float(self, cls_prob, "cls_prob")
        same_dtype(self, cls_prob, bbox_pred, im_info)
        require_ndim(self, "cls_prob", cls_prob, 4, axes=("batch", "2 x anchors", "height", "width"))
        for what, value in (("rpn_post_nms_top_n", self.rpn_post_nms_top_n), ("feature_stride", self.feature_stride)):
            if value < 1:
                raise ArgumentError(f"{self.name}: {what}={value}, wants 1 or more")
        batch, channels, *lengths = cls_prob.shape
        anchors = len(self.ratios) * len(self.scales)
        if not anchors or channels != 2 * anchors:
            raise ShapeError(
                f"{self.name}: cls_prob has {channels} channels, {len(self.scales)} scales with {len(self.ratios)} ratios need "
                f"{2 * anchors}: background and object of each anchor"
            )
        require_shape(self, "bbox_pred", bbox_pred, (batch, 4 * anchors, *lengths), f"cls_prob of shape {cls_prob.shape}")
        require_shape(self, "im_info", im_info, (batch, 3), f"cls_prob of shape {cls_prob.shape}")
        count = batch * self.rpn_post_nms_top_n
        return cls_prob.with_shape((count, 5)), cls_prob.with_shape((count, 1))

    def kernel(self, xp: Any, cls_prob: Array, bbox_pred: Array, im_info: Array) -> tuple[Array, ...]:
        batch, channels, height, width = cls_prob.shape
        regions = xp.zeros((batch, self.rpn_post_nms_top_n, 5), cls_prob.dtype)
        scores = xp.zeros((batch, self.rpn_post_nms_top_n, 1), cls_prob.dtype)
        if height * width:
            score, deltas, info = (accurate(xp, array) for array in (cls_prob, bbox_pred, im_info))
            anchors = self.anchors(xp, height, width, score.dtype)
            real = self.real_lengths(xp, info, (height, width))
            for example in range(batch):
                moved = xp.ascontiguousarray(deltas[example].reshape(-1, 4, height, width).transpose(1, 2, 3, 0)).reshape(4, -1)
                likely = score[example, channels // 2 :].transpose(1, 2, 0).ravel()
                boxes, chosen = self.propose(xp, anchors, moved, likely, info[example], real[example], width)
                regions[example, :, 0] = example
                regions[example, :, 1:], scores[example, :, 0] = boxes, chosen
        return regions.reshape(-1, 5), scores.reshape(-1, 1)

    def anchors(self, xp: Any, height: int, width: int, dtype: np.dtype[Any]) -> Array:
        """The edges (4, height * width * anchors) of all anchors, the one at the first pixel shifted to each."""
        ratio, scale = (
            each.ravel() for each in np.meshgrid(*(np.array(each, dtype) for each in (self.ratios, self.scales)), indexing="ij")
        )
        middle, size = dtype.type(0.5 * (self.feature_stride - 1)), dtype.type(self.feature_stride**2)
        # Widths and heights are whole numbers before they are scaled.
        whole = np.floor(np.sqrt(np.floor(size / ratio)) + dtype.type(0.5))
        wide = whole * scale
        tall = np.floor(wide / scale * ratio + dtype.type(0.5)) * scale
        half_width, half_height = dtype.type(0.5) * (wide - 1), dtype.type(0.5) * (tall - 1)
        first = xp.asarray(np.stack([middle - half_width, middle - half_height, middle + half_width, middle + half_height]))
        right = xp.arange(width, dtype=dtype)[:, None] * dtype.type(self.feature_stride)
        down = xp.arange(height, dtype=dtype)[:, None, None] * dtype.type(self.feature_stride)
        result = xp.empty((4, height, width, len(wide)), dtype)
        result[0::2] = first[0::2, None, None] + right
        result[1::2] = first[1::2, None, None] + down
        return result.reshape(4, -1)

    def real_lengths(self, xp: Any, info: Array, lengths: tuple[int, int]) -> list[list[int]]:
        """How many rows and columns of the feature map each image fills; the others are padding."""
        if not xp.isfinite(info).all():
            raise OutOfRangeError(f"{self.name}: im_info has a number that is not finite")
        real = (info[:, :2] / self.feature_stride).clip(0, 1 << 31).astype(np.int64)
        if (real > xp.asarray(lengths)).any():
            raise ShapeError(
                f"{self.name}: im_info says that an image has {info[:, :2].max(axis=0).tolist()} pixels, which is more than feature maps "
                f"of {lengths} can have with feature_stride={self.feature_stride}"
            )
        return real.tolist()

    def propose(
        self, xp: Any, anchors: Array, deltas: Array, score: Array, info: Array, real: list[int], width: int
    ) -> tuple[Array, Array]:
        """The regions (n, 4) of one image and their scores (n)."""
        tall, wide, zoom = info.tolist()
        boxes = anchors + deltas if self.iou_loss else self.moved(xp, anchors, deltas)
        for edge, length in zip(boxes, (wide, tall, wide, tall)):
            xp.minimum(edge, edge.dtype.type(length - 1), out=edge)
            xp.maximum(edge, 0, out=edge)
        # Predictions beyond the image's end are about padding.
        grid = xp.fmax(score, -np.inf).reshape(-1, width, len(self.scales) * len(self.ratios))  # no NaN
        grid[real[0] :] = -1
        grid[:, real[1] :] = -1
        score = grid.ravel()
        least = score.dtype.type(self.rpn_min_size) * score.dtype.type(zoom)
        small = (boxes[2] - boxes[0] + 1 < least) | (boxes[3] - boxes[1] + 1 < least)
        boxes[:2, small] -= least / 2
        boxes[2:, small] += least / 2
        score[small] = -1
        count = len(score)
        order = ranking(xp, score, min(self.rpn_pre_nms_top_n, count) if self.rpn_pre_nms_top_n > 0 else None)
        left, top, right, bottom = boxes[:, order]
        edges = Edges(left, top, right, bottom, (right - left + 1) * (bottom - top + 1))
        kept = survivors(xp, edges, Rule(self.threshold, border=1), most=self.rpn_post_nms_top_n)
        # Where fewer remain than are wanted, they come again from the first on.
        chosen = order[kept[xp.arange(self.rpn_post_nms_top_n) % len(kept)]]
        return boxes[:, chosen].T, score[chosen]

    def moved(self, xp: Any, anchors: Array, deltas: Array) -> Array:
        """The edges of the boxes at `deltas` from `anchors`: middles move by parts of the lengths, lengths grow by exponentials."""
        result = xp.empty(anchors.shape, anchors.dtype)
        for axis in range(2):
            length = anchors[axis + 2] - anchors[axis] + 1
            # MXNet computes these sums in double precision.
            middle = (anchors[axis] + 0.5 * (length.astype(np.float64) - 1)).astype(length.dtype)
            place = (deltas[axis] * length + middle).astype(np.float64)
            half = 0.5 * ((xp.exp(deltas[axis + 2]) * length).astype(np.float64) - 1)
            result[axis], result[axis + 2] = place - half, place + half
        return result

    def vjp(self, g: Any, y: Any, cls_prob: Any, bbox_pred: Any, im_info: Any) -> tuple[Any, ...]:
        return None, None, None


@register("_contrib_Proposal")
class ProposalOfOne(Proposing):
    def infer(self, cls_prob: Spec, bbox_pred: Spec, im_info: Spec) -> tuple[Spec, ...]:
        found = super().infer(cls_prob, bbox_pred, im_info)
        if cls_prob.shape[0] != 1:
            raise ShapeError(f"{self.name}: cls_prob has {cls_prob.shape[0]} images, wants one; MultiProposal takes several")
        return found


@register("_contrib_MultiProposal")
class ProposalOfMany(Proposing):
    pass


def Proposal(
    cls_prob: T | None = None,
    bbox_pred: T | None = None,
    im_info: T | None = None,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    threshold: float = 0.7,
    rpn_min_size: int = 16,
    scales: tuple[float, ...] = SCALES,
    ratios: tuple[float, ...] = RATIOS,
    feature_stride: int = 16,
    output_score: bool = False,
    iou_loss: bool = False,
    **how: Unpack[How],
) -> T:
    """The regions of one image in which a region proposal network sees objects, the most likely first.

    **Shapes** cls_prob (1, 2 A, H, W) for A = len(ratios) len(scales) anchors at each pixel, first the background's, then the objects'
    probabilities; bbox_pred (1, 4 A, H, W), offsets; im_info (1, 3), height, width and scale of the image; result (P, 5) with rows (0,
    left, top, right, bottom), and (P, 1), their scores, if `output_score`; P is `rpn_post_nms_top_n`. **Args** `rpn_pre_nms_top_n`: so many
    of the most likely boxes take part, 0 or less for all; `threshold`: boxes strike out those whose overlap with them is above it;
    `rpn_min_size`: boxes with a shorter side, in pixels before the image was scaled, get the score -1; `scales`, `ratios`: the anchors, as
    multiples of `feature_stride`, and height divided by width; `feature_stride`: pixels of the image to one of the feature map; `iou_loss`:
    the offsets are those of edges. Where fewer than P boxes remain, they are repeated. **Raises** ShapeError for several images, and for
    an image larger than the feature map (when the result is read). **Gradient** 0. **Source** MXNet `contrib.Proposal`; Ren et al., 2015.
    """
    op = ProposalOfOne(
        rpn_pre_nms_top_n, rpn_post_nms_top_n, threshold, rpn_min_size, scales, ratios, feature_stride, output_score, iou_loss
    )
    return apply(op, cls_prob, bbox_pred, im_info, **how)


def MultiProposal(
    cls_prob: T | None = None,
    bbox_pred: T | None = None,
    im_info: T | None = None,
    rpn_pre_nms_top_n: int = 6000,
    rpn_post_nms_top_n: int = 300,
    threshold: float = 0.7,
    rpn_min_size: int = 16,
    scales: tuple[float, ...] = SCALES,
    ratios: tuple[float, ...] = RATIOS,
    feature_stride: int = 16,
    output_score: bool = False,
    iou_loss: bool = False,
    **how: Unpack[How],
) -> T:
    """The regions of several images in which a region proposal network sees objects.

    **Shapes** as Proposal for N images: cls_prob (N, 2 A, H, W), bbox_pred (N, 4 A, H, W), im_info (N, 3), result (N P, 5), whose rows
    begin with the number of the image, and (N P, 1) if `output_score`. **Args**, **Raises** and **Gradient** as Proposal. **Source** MXNet
    `contrib.MultiProposal`.
    """
    op = ProposalOfMany(
        rpn_pre_nms_top_n, rpn_post_nms_top_n, threshold, rpn_min_size, scales, ratios, feature_stride, output_score, iou_loss
    )
    return apply(op, cls_prob, bbox_pred, im_info, **how)


__all__ = ["MultiProposal", "Proposal"]
