"""The single-shot detector's anchors and detections: MultiBoxPrior and MultiBoxDetection.

The detector says for each of thousands of anchors, boxes of several sizes and shapes around each pixel of a feature map, what is in
it, and by what offsets the object's box differs from it. MultiBoxPrior makes the anchors. multibox_target.py tells in training what the
detector should have said of them. MultiBoxDetection makes of what it did say a list of objects. Coordinates are fractions of the image's
width and height. Book: chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Spec, T, apply, register
from ..rules import require_ndim, same_dtype
from .boxes import Edges
from .checks import accurate, on_all_cores, require_float, require_shape
from .suppression import Rule, ranking, survivors

if TYPE_CHECKING:
    from typing_extensions import Unpack

VARIANCES = (0.1, 0.1, 0.2, 0.2)


def require_variances(op: Op, variances: tuple[float, ...]) -> None:
    """Raise ArgumentError unless there is a variance for each coordinate."""
    if len(variances) != 4:
        raise ArgumentError(f"{op.name}: variances={variances}, wants 4 numbers: for x, y, width and height")


def require_anchors(op: Op, anchor: Spec) -> int:
    """How many anchors there are. Raises unless they are boxes, one set for all examples."""
    require_ndim(op, "anchor", anchor, 3, axes=("1", "anchors", "4"))
    require_shape(op, "anchor", anchor, (1, anchor.shape[1], 4), "one set of anchors for all examples")
    return anchor.shape[1]


# ---- anchors


@register("_contrib_MultiBoxPrior", "_npx_multibox_prior")
class MultiBoxAnchors(Op):
    saves_inputs = False
    saves_outputs = False

    sizes: tuple[float, ...] = (1.0,)
    ratios: tuple[float, ...] = (1.0,)
    clip: bool = False
    steps: tuple[float, ...] = (-1.0, -1.0)
    offsets: tuple[float, ...] = (0.5, 0.5)

    def infer(self, data: Spec) -> Spec:
        require_float(self, data)
        require_ndim(self, "data", data, 4, axes=("batch", "channels", "height", "width"))
        if not self.sizes or not self.ratios:
            raise ArgumentError(f"{self.name}: sizes={self.sizes} and ratios={self.ratios}, wants one number or more in each")
        for what, pair in (("steps", self.steps), ("offsets", self.offsets)):
            if len(pair) != 2:
                raise ArgumentError(f"{self.name}: {what}={pair}, wants 2 numbers: along y and along x")
        if self.steps[0] * self.steps[1] < 0:
            raise ArgumentError(f"{self.name}: steps={self.steps}: give both, or leave both to the data with -1")
        if not all(0 <= offset <= 1 for offset in self.offsets):
            raise ArgumentError(f"{self.name}: offsets={self.offsets}, wants numbers from 0 to 1")
        height, width = data.shape[2:]
        return data.with_shape((1, height * width * (len(self.sizes) + len(self.ratios) - 1), 4))

    def kernel(self, xp: Any, data: Array) -> Array:
        dtype = np.promote_types(data.dtype, np.float32).type
        height, width = data.shape[2:]
        # All sizes with the first ratio, then the first size with the other ratios.
        first, *others = self.ratios
        roots = xp.sqrt(xp.asarray([first] * len(self.sizes) + others, dtype))
        sizes = xp.asarray([*self.sizes, *[self.sizes[0]] * len(others)], dtype)
        half_width = sizes * height / max(width, 1) * roots / 2
        half_height = sizes / roots / 2
        step_y, step_x = (dtype(step) for step in self.steps)
        if step_y <= 0 or step_x <= 0:
            step_y, step_x = (dtype(1) / dtype(max(length, 1)) for length in (height, width))
        middle_y = ((xp.arange(height, dtype=dtype) + dtype(self.offsets[0])) * step_y)[:, None, None]
        middle_x = ((xp.arange(width, dtype=dtype) + dtype(self.offsets[1])) * step_x)[:, None]
        boxes = xp.empty((height, width, len(sizes), 4), dtype)
        boxes[..., 0], boxes[..., 1] = middle_x - half_width, middle_y - half_height
        boxes[..., 2], boxes[..., 3] = middle_x + half_width, middle_y + half_height
        if self.clip:
            xp.clip(boxes, 0, 1, out=boxes)
        return boxes.reshape(1, -1, 4).astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (None,)


def MultiBoxPrior(
    data: T,
    sizes: tuple[float, ...] = (1.0,),
    ratios: tuple[float, ...] = (1.0,),
    clip: bool = False,
    steps: tuple[float, ...] = (-1.0, -1.0),
    offsets: tuple[float, ...] = (0.5, 0.5),
    **how: Unpack[How],
) -> T:
    """The anchors around each pixel of a feature map: boxes of all `sizes` with the first ratio, and of the first size with all ratios.

    A box of size s and ratio r has the width `s sqrt(r) H / W` and the height `s / sqrt(r)`, as fractions of the image's.

    **Shapes** data (N, C, H, W), of which only the shape counts; result (1, H W A, 4) with A = len(sizes) + len(ratios) - 1: edges left,
    top, right, bottom. **Args** `clip`: cut the boxes off at the image's borders, 0 and 1; `steps`: from pixel to pixel along y and x, -1
    for 1 / H and 1 / W; `offsets`: where in a pixel the middle is, along y and x. **Gradient** 0. **Source** MXNet `contrib.MultiBoxPrior`;
    Liu et al., 2016.

    **Example**

    >>> from minimx import nd
    >>> nd.contrib.MultiBoxPrior(nd.zeros((1, 3, 1, 2)), sizes=(0.5,)).asnumpy().tolist()
    [[[0.125, 0.25, 0.375, 0.75], [0.625, 0.25, 0.875, 0.75]]]
    """
    return apply(MultiBoxAnchors(sizes, ratios, clip, steps, offsets), data, **how)


# ---- detections


@register("_contrib_MultiBoxDetection", "_npx_multibox_detection")
class MultiBoxObjects(Op):
    on_host = True
    inputs: ClassVar = ("cls_prob", "loc_pred", "anchor")
    saves_inputs = False
    saves_outputs = False

    clip: bool = True
    threshold: float = 0.01
    background_id: int = 0
    nms_threshold: float = 0.5
    force_suppress: bool = False
    variances: tuple[float, ...] = VARIANCES
    nms_topk: int = -1

    def infer(self, cls_prob: Spec, loc_pred: Spec, anchor: Spec) -> Spec:
        require_float(self, cls_prob, "cls_prob")
        same_dtype(self, cls_prob, loc_pred, anchor)
        require_variances(self, self.variances)
        if self.background_id != 0:
            raise ArgumentError(f"{self.name}: background_id={self.background_id}; class 0 is the background, move it there")
        require_ndim(self, "cls_prob", cls_prob, 3, axes=("batch", "classes", "anchors"))
        count = require_anchors(self, anchor)
        batch, classes, _ = cls_prob.shape
        if not classes:
            raise ShapeError(f"{self.name}: cls_prob has shape {cls_prob.shape}, wants a class for the background at least")
        require_shape(self, "cls_prob", cls_prob, (batch, classes, count), f"anchor of shape {anchor.shape}")
        require_shape(self, "loc_pred", loc_pred, (batch, 4 * count), f"anchor of shape {anchor.shape}")
        return cls_prob.with_shape((batch, count, 6))

    def kernel(self, xp: Any, cls_prob: Array, loc_pred: Array, anchor: Array) -> Array:
        result = xp.full((len(cls_prob), anchor.shape[1], 6), -1, cls_prob.dtype)
        wide = accurate(xp, anchor)[0]

        scores = xp.empty(cls_prob.shape[::2], wide.dtype)

        def some(examples: list[int]) -> None:
            for example in examples:  # the best class but the background; a NaN is no probability, and -1 none that counts
                xp.fmax.reduce(accurate(xp, cls_prob[example, 1:]), axis=0, initial=-1, out=scores[example])

        on_all_cores(xp, list(range(len(cls_prob))), some)
        for example, rows in enumerate(result):
            offsets = accurate(xp, loc_pred[example]).reshape(-1, 4)
            self.detect(xp, accurate(xp, cls_prob[example, 1:]), scores[example], offsets, wide, rows)
        return result

    def detect(self, xp: Any, probability: Array, score: Array, offsets: Array, anchor: Array, rows: Array) -> None:
        """Write the objects of an example into `rows` (N, 6), which hold -1. `score`: each anchor's best `probability` (C - 1, N)."""
        found = xp.flatnonzero((score > -1) & (score >= score.dtype.type(self.threshold)))
        score = score[found]
        boxes = self.decoded(xp, offsets[found], anchor[found])
        rows[: len(found), 1], rows[: len(found), 2:] = score, boxes.T
        order = xp.arange(len(found))
        suppressing = 0 < self.nms_threshold <= 1
        if suppressing:
            order = ranking(xp, score, self.nms_topk if self.nms_topk > 0 else None)
        # Of equal classes the first. Rows behind those in `order` stay as they are, but for the class: so it is in MXNet.
        best, score, boxes = found[order], score[order], boxes[:, order]
        number = (probability[:, best] == score).argmax(axis=0) if len(probability) else order
        own = rows[: len(best)]
        own[:, 1], own[:, 2:] = score, boxes.T
        if suppressing:
            left, top, right, bottom = boxes
            edges = Edges(left, top, right, bottom, (right - left) * (bottom - top))
            classes = None if self.force_suppress else number
            kept = survivors(xp, edges, Rule(self.nms_threshold, reaching=True), classes)
            own[kept, 0] = number[kept]  # those that are struck out keep their rows, too
        else:
            own[:, 0] = number

    def decoded(self, xp: Any, offsets: Array, anchor: Array) -> Array:
        """The edges (4, n) of the boxes that `offsets` (n, 4) from `anchor` (n, 4) mean."""
        x, y, width, height = xp.ascontiguousarray(offsets.T)
        left, top, right, bottom = xp.ascontiguousarray(anchor.T)
        dtype = offsets.dtype.type
        result = xp.empty((4, len(offsets)), offsets.dtype)
        for axis, (place, growth, low, high) in enumerate(((x, width, left, right), (y, height, top, bottom))):
            length = high - low
            middle = place * dtype(self.variances[axis]) * length + (low + high) / 2
            half = xp.exp(growth * dtype(self.variances[axis + 2])) * length / 2
            xp.subtract(middle, half, out=result[axis])
            xp.add(middle, half, out=result[axis + 2])
        if self.clip:
            xp.clip(result, 0, 1, out=result)
        return result

    def vjp(self, g: Any, y: Any, cls_prob: Any, loc_pred: Any, anchor: Any) -> tuple[Any, ...]:
        return None, None, None


def MultiBoxDetection(
    cls_prob: T | None = None,
    loc_pred: T | None = None,
    anchor: T | None = None,
    clip: bool = True,
    threshold: float = 0.01,
    background_id: int = 0,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: tuple[float, ...] = VARIANCES,
    nms_topk: int = -1,
    **how: Unpack[How],
) -> T:
    """The objects that a detector sees: each anchor's best class and its box, thinned out by non-maximum suppression.

    **Shapes** cls_prob (N, C, A), class 0 is the background; loc_pred (N, 4 A); anchor (1, A, 4); result (N, A, 6) with rows (class,
    probability, left, top, right, bottom), where classes count from 0 without the background. **Args** `clip`: cut boxes off at 0 and 1;
    `threshold`: anchors whose best class is less probable have no object; `background_id`: 0; `nms_threshold`: an object strikes out those
    of its class, less probable, whose overlap with it reaches this; 0 for no suppression and no order; `force_suppress`: those of other
    classes, too; `variances`: what the offsets are multiplied by; `nms_topk`: so many of the best take part, the others are dropped, -1
    for all. Rows whose class is -1 are no objects, whatever else they hold. **Raises** ArgumentError for another background, which MXNet
    takes and ignores. **Gradient** 0. **Source** MXNet `contrib.MultiBoxDetection`.
    """
    op = MultiBoxObjects(clip, threshold, background_id, nms_threshold, force_suppress, variances, nms_topk)
    return apply(op, cls_prob, loc_pred, anchor, **how)


__all__ = ["MultiBoxDetection", "MultiBoxPrior"]
