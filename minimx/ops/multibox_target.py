"""MultiBoxTarget: what a single-shot detector should have said of its anchors, given the objects in the images.

First each object gets the anchor that overlaps with it most, the best pair of all first (matching.py); then each anchor that is left gets
the object with which it overlaps most, if that is enough. Those anchors are positive: their class is the object's, and their offsets lead
to its box. All others are negative, they show the background; or only so many of them as there are positive ones, times a ratio, those
that the detector finds hardest (hard negative mining), and the rest does not count. How anchors come about is in multibox.py. Book:
chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, OutOfRangeError, ShapeError
from ..op import Array, How, Op, Spec, T, apply, register
from ..rules import require_ndim, same_dtype
from .boxes import Edges, overlap
from .checks import accurate, on_all_cores, require_float, require_shape
from .matching import greedy_matches
from .multibox import VARIANCES, require_anchors, require_variances

if TYPE_CHECKING:
    from typing_extensions import Unpack

LEAST = 1e-6  # the overlap above which an anchor can be the one that an object gets in any case


@register("_contrib_MultiBoxTarget", "_npx_multibox_target")
class MultiBoxTraining(Op):
    on_host = True
    inputs: ClassVar = ("anchor", "label", "cls_pred")
    saves_inputs = False
    saves_outputs = False

    overlap_threshold: float = 0.5
    ignore_label: float = -1.0
    negative_mining_ratio: float = -1.0
    negative_mining_thresh: float = 0.5
    minimum_negative_samples: int = 0
    variances: tuple[float, ...] = VARIANCES

    @property
    def num_outputs(self) -> int:
        return 3

    def infer(self, anchor: Spec, label: Spec, cls_pred: Spec) -> tuple[Spec, ...]:
        require_float(self, anchor, "anchor")
        same_dtype(self, anchor, label, cls_pred)
        require_variances(self, self.variances)
        if self.negative_mining_ratio > 0 and not self.negative_mining_thresh > 0:
            raise ArgumentError(
                f"{self.name}: negative_mining_thresh={self.negative_mining_thresh}, wants more than 0; it is the overlap with an object "
                "up to which an anchor can be a negative sample"
            )
        count = require_anchors(self, anchor)
        require_ndim(self, "label", label, 3, axes=("batch", "objects", "class and edges"))
        if label.shape[2] < 5:
            raise ShapeError(
                f"{self.name}: label has shape {label.shape}, wants (N, M, 5 or more): class, left, top, right, bottom"
            )
        require_ndim(self, "cls_pred", cls_pred, 3, axes=("batch", "classes", "anchors"))
        wanted = (label.shape[0], cls_pred.shape[1], count)
        require_shape(self, "cls_pred", cls_pred, wanted, f"label {label.shape} with anchor {anchor.shape}")
        offsets = anchor.with_shape((label.shape[0], 4 * count))
        return offsets, offsets, anchor.with_shape((label.shape[0], count))

    def kernel(self, xp: Any, anchor: Array, label: Array, cls_pred: Array) -> tuple[Array, ...]:
        batch, count = len(label), anchor.shape[1]
        offsets = xp.zeros((batch, count, 4), anchor.dtype)
        mask = xp.zeros((batch, count, 4), anchor.dtype)
        classes = xp.full((batch, count), self.ignore_label, anchor.dtype)
        own = accurate(xp, anchor)[0]
        edges = proper_edges(xp, own)

        def some(examples: list[int]) -> None:
            for example in examples:
                objects = self.objects(xp, accurate(xp, label[example]))
                if not len(objects) or not count:
                    continue  # nothing to learn from: all anchors are ignored
                places, numbers, negative = self.assigned(xp, edges, objects, accurate(xp, cls_pred[example]))
                classes[example, negative] = 0
                classes[example, places] = objects[numbers, 0] + 1  # 0 is the background
                offsets[example, places] = self.encoded(xp, own[places], objects[numbers, 1:5])
                mask[example, places] = 1

        on_all_cores(xp, list(range(batch)), some)
        return offsets.reshape(batch, -1), mask.reshape(batch, -1), classes

    def objects(self, xp: Any, label: Array) -> Array:
        """The rows of `label` before the first whose class is -1."""
        end = xp.flatnonzero(label[:, 0] == -1)[:1]
        if len(end) and (label[end[0], :5] != -1).any():
            row = label[end[0], :5].tolist()
            raise OutOfRangeError(
                f"{self.name}: label has a row {row}; where the class is -1, which ends the list, so must be the edges"
            )
        return label[: int(end[0])] if len(end) else label

    def assigned(self, xp: Any, anchors: Edges, objects: Array, prediction: Array) -> tuple[Array, Array, Array]:
        """The positive anchors, the numbers of their objects, and which anchors are negative, for one example."""
        shares = overlap(xp, proper_edges(xp, objects[:, 1:5]), anchors)
        best = shares.max(axis=0)
        if xp.isnan(best).any():  # it is no overlap
            shares[xp.isnan(shares)] = -1
            best = shares.max(axis=0)
        number = xp.full(len(best), -1, np.int64)
        matches = greedy_matches(xp, shares.copy(), shares.dtype.type(LEAST))
        for each, place in matches:
            number[place] = each
        if self.overlap_threshold > 0:
            enough = xp.flatnonzero((best > best.dtype.type(self.overlap_threshold)) & (number < 0))
            number[enough] = shares[:, enough].argmax(axis=0)
        free = number < 0
        places = xp.flatnonzero(~free)
        if self.negative_mining_ratio > 0:
            wanted = int(np.float32(len(places)) * np.float32(self.negative_mining_ratio))
            wanted = max(wanted, self.minimum_negative_samples)
            free = self.hardest(xp, prediction, free & (best < best.dtype.type(self.negative_mining_thresh)), wanted)
        return places, number[places], free

    def hardest(self, xp: Any, prediction: Array, free: Array, wanted: int) -> Array:
        """The places of the `wanted` anchors among those `free` in which the background seems least likely; of equal ones the first."""
        places = xp.flatnonzero(free)
        if wanted >= len(places):
            return places
        if wanted < 1:
            return places[:0]
        exponential = xp.exp(prediction - prediction.max(axis=0))
        background = (exponential[0] / exponential.sum(axis=0))[places]
        bound = xp.partition(background, wanted - 1)[wanted - 1]
        chosen = background < bound
        chosen[xp.flatnonzero(background == bound)[: wanted - int(chosen.sum())]] = True
        return places[chosen]

    def encoded(self, xp: Any, anchors: Array, boxes: Array) -> Array:
        """The offsets (n, 4) from `anchors` to `boxes`."""
        (middle, length), (own_middle, own_length) = (
            ((each[:, :2] + each[:, 2:]) / 2, each[:, 2:] - each[:, :2]) for each in (boxes, anchors)
        )
        offsets = xp.concatenate([(middle - own_middle) / own_length, xp.log(length / own_length)], axis=1)
        return offsets / xp.asarray(self.variances, boxes.dtype)

    def vjp(self, g: Any, y: Any, anchor: Any, label: Any, cls_pred: Any) -> tuple[Any, ...]:
        return None, None, None


def proper_edges(xp: Any, boxes: Array) -> Edges:
    """Boxes (n, 4), given by their edges, to be compared: areas are what the edges make, negative where they are turned inside out."""
    left, top, right, bottom = xp.ascontiguousarray(boxes.T)
    return Edges(left, top, right, bottom, (right - left) * (bottom - top))


def MultiBoxTarget(
    anchor: T | None = None,
    label: T | None = None,
    cls_pred: T | None = None,
    overlap_threshold: float = 0.5,
    ignore_label: float = -1.0,
    negative_mining_ratio: float = -1.0,
    negative_mining_thresh: float = 0.5,
    minimum_negative_samples: int = 0,
    variances: tuple[float, ...] = VARIANCES,
    **how: Unpack[How],
) -> list[T]:
    """What a single-shot detector should say of its anchors: offsets, which of them count, and classes.

    **Shapes** anchor (1, A, 4), by edges; label (N, M, 5 or more), rows of (class, left, top, right, bottom), filled up with rows of -1;
    cls_pred (N, C, A), scores before softmax, for mining; results: offsets (N, 4 A), mask (N, 4 A), 1 for positive anchors and 0 for the
    others, and classes (N, A), 0 for the background and the label's plus 1. **Args** `overlap_threshold`: the overlap with an object from
    which on an anchor is positive even if another is that object's best; `ignore_label`: the class of anchors that do not count: all of an
    image without objects, and those that mining leaves out; `negative_mining_ratio`: so many negative anchors for each positive one, those
    in which the background seems least likely, -1 for all; `negative_mining_thresh`: anchors with more overlap are not among them;
    `minimum_negative_samples`: so many at least; `variances`: what the offsets are divided by. **Raises** OutOfRangeError for a row that
    only begins with -1 (when a result is read). **Gradient** 0. **Source** MXNet `contrib.MultiBoxTarget`, which on CPUs ignores
    `minimum_negative_samples`, and fails where there are fewer anchors to choose from than are wanted; here all of them are taken.
    """
    op = MultiBoxTraining(
        overlap_threshold, ignore_label, negative_mining_ratio, negative_mining_thresh, minimum_negative_samples, variances
    )
    return apply(op, anchor, label, cls_pred, **how)


__all__ = ["MultiBoxTarget"]
