"""Boxes: how much two of them have in common, and how a network writes one down beside an anchor.

A box is four numbers along the last axis: its edges, left, top, right and bottom ("corner"), or its middle and its lengths, x, y, width
and height ("center"). Detectors compare all boxes of one kind with all of another, so boxes go through the kernels here as `Edges`, the
four numbers of all of them as four rows, and what pairs have in common is a matrix.

`overlap` (intersection over union) is the measure by which boxes are matched (matching.py, multibox.py) and thinned out
(suppression.py). `encode` and `decode` go from a box to its offsets from an anchor, which a network learns, and back. Book: chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..base import OutOfRangeError, ShapeError
from ..op import Array, How, Op, Spec, T, apply, register
from ..rules import filled, require_ndim, same_dtype
from .checks import accurate, require_choice, require_float, require_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack

FORMATS = ("corner", "center")
TOGETHER = 1 << 15  # pairs to compute at a time: few enough to stay in cache


# ---- many boxes against many


class Edges(NamedTuple):
    """Boxes as rows of numbers, (n,) each, and their areas."""

    left: Array
    top: Array
    right: Array
    bottom: Array
    area: Array

    def at(self, places: Any) -> Edges:
        """Some of the boxes, chosen by an index."""
        return Edges(*(row[places] for row in self))


def edges_of(xp: Any, boxes: Array, form: str = "corner") -> Edges:
    """`boxes` (n, 4) in the form that pairs are computed in. A box turned inside out has no area."""
    first, second, third, fourth = xp.ascontiguousarray(boxes.T)
    if form == "corner":
        width, height = third - first, fourth - second
        rows = (first, second, third, fourth)
    else:
        width, height = third, fourth
        rows = (first - width / 2, second - height / 2, first + width / 2, second + height / 2)
    return Edges(*rows, xp.where((width < 0) | (height < 0), 0, width * height))


def intersection(xp: Any, one: Edges, other: Edges, border: int = 0) -> Array:
    """The areas that boxes have in common, whose rows of numbers are broadcast against each other. `border`: see `overlap`."""
    width = xp.minimum(one.right, other.right)
    width -= xp.maximum(one.left, other.left)
    height = xp.minimum(one.bottom, other.bottom)
    height -= xp.maximum(one.top, other.top)
    if border:
        width += border
        height += border
    xp.maximum(width, 0, out=width)
    xp.maximum(height, 0, out=height)
    width *= height
    return width


def overlap(xp: Any, one: Edges, other: Edges, border: int = 0, pairs: bool = False) -> Array:
    """Intersection over union of each box of `one` (n) with each of `other` (m): (n, m); or of `pairs` (n). 0 where there is no area.

    `border`: 1 where the edges are pixels inside the box.
    """
    if not pairs:
        one = Edges(*(row[:, None] for row in one))
    common = intersection(xp, one, other, border)
    union = one.area + other.area
    union -= common
    xp.maximum(union, xp.finfo(union.dtype).smallest_subnormal, out=union)
    common /= union
    return common


@register("_contrib_box_iou")
class BoxOverlap(Op):
    inputs: ClassVar = ("lhs", "rhs")
    saves_inputs = False
    saves_outputs = False

    format: str = "corner"

    def infer(self, lhs: Spec, rhs: Spec) -> Spec:
        require_choice(self, "format", self.format, *FORMATS)
        for what, spec in (("lhs", lhs), ("rhs", rhs)):
            require_boxes(self, what, spec)
        return Spec.of((*lhs.shape[:-1], *rhs.shape[:-1]), same_dtype(self, lhs, rhs))

    def kernel(self, xp: Any, lhs: Array, rhs: Array) -> Array:
        one, other = (edges_of(xp, accurate(xp, boxes).reshape(-1, 4), self.format) for boxes in (lhs, rhs))
        result = xp.empty((len(one.left), len(other.left)), lhs.dtype)
        # Parts that stay in cache, with the longer side along their rows.
        turned = result.shape[0] > result.shape[1]
        few, many, target = (other, one, result.T) if turned else (one, other, result)
        width = min(max(len(many.left), 1), TOGETHER // 8)
        height = TOGETHER // width
        for start in range(0, len(many.left), width):
            columns = slice(start, start + width)
            for line in range(0, len(few.left), height):
                rows = slice(line, line + height)
                target[rows, columns] = overlap(xp, few.at(rows), many.at(columns))
        return result.reshape(*lhs.shape[:-1], *rhs.shape[:-1])

    def vjp(self, g: Any, y: Any, lhs: Any, rhs: Any) -> tuple[Any, ...]:
        return None, None


def require_boxes(op: Op, what: str, spec: Spec) -> None:
    """Raise unless `spec` has boxes along its last axis, and one axis or more before it."""
    require_float(op, spec, what)
    if spec.ndim < 2 or spec.shape[-1] != 4:
        raise ShapeError(f"{op.name}: {what} has shape {spec.shape}, wants (..., 4): boxes of four numbers along the last axis")


def box_iou(lhs: T | None = None, rhs: T | None = None, format: str = "corner", **how: Unpack[How]) -> T:
    """Intersection over union of each box with each other one: the area that they have in common, divided by that which they cover.

    **Shapes** lhs (..., 4), rhs (..., 4), result (all axes of lhs but the last, all of rhs but the last). **Args** `format`: "corner",
    boxes are (left, top, right, bottom), or "center", (x, y, width, height). Boxes without an area have 0 in common with all.
    **Gradient** 0, as in MXNet. **Source** MXNet `contrib.box_iou`.

    **Example**

    >>> from minimx import nd
    >>> nd.contrib.box_iou(nd.array([[0, 0, 2, 2], [0, 0, 1, 1]]), nd.array([[1, 0, 3, 2]])).asnumpy().tolist()
    [[0.3333333432674408], [0.0]]
    """
    return apply(BoxOverlap(format), lhs, rhs, **how)


# ---- boxes as offsets from anchors


def middles(boxes: Array) -> tuple[Array, Array, Array, Array]:
    """(x, y, width, height) of boxes (..., 4) given by their edges."""
    left, top = boxes[..., 0], boxes[..., 1]
    width, height = boxes[..., 2] - left, boxes[..., 3] - top
    return left + width / 2, top + height / 2, width, height


@register("_contrib_box_encode")
class BoxEncode(Op):
    inputs: ClassVar = ("samples", "matches", "anchors", "refs", "means", "stds")
    saves_inputs = False
    saves_outputs = False

    @property
    def num_outputs(self) -> int:
        return 2

    def fill(self, *inputs: Spec | None) -> tuple[Spec | None, ...]:
        like = next((spec for spec in inputs if spec is not None), None)
        if like is None:
            return inputs
        return (*inputs[:4], *(filled(spec, (4,), like) for spec in inputs[4:]))

    def infer(self, samples: Spec, matches: Spec, anchors: Spec, refs: Spec, means: Spec, stds: Spec) -> tuple[Spec, ...]:
        same_dtype(self, samples, matches, anchors, refs, means, stds)
        require_boxes(self, "anchors", anchors)
        require_boxes(self, "refs", refs)
        require_ndim(self, "anchors", anchors, 3, axes=("batch", "anchors", "4"))
        require_ndim(self, "refs", refs, 3, axes=("batch", "objects", "4"))
        for what, spec in (("samples", samples), ("matches", matches)):
            require_shape(self, what, spec, anchors.shape[:2], f"anchors of shape {anchors.shape}")
        require_shape(self, "refs", refs, (anchors.shape[0], *refs.shape[1:]), f"anchors of shape {anchors.shape}")
        require_shape(self, "means", means, (4,), "a number for each coordinate")
        require_shape(self, "stds", stds, (4,), "a number for each coordinate")
        return anchors, anchors

    def kernel(
        self, xp: Any, samples: Array, matches: Array, anchors: Array, refs: Array, means: Array, stds: Array
    ) -> tuple[Array, ...]:
        positive = samples > 0.5
        mask = xp.empty(anchors.shape, anchors.dtype)
        mask[...] = positive[..., None]
        number = xp.where(positive, matches, 0).astype(np.int64)
        if (positive & ~((number >= 0) & (number < refs.shape[1]))).any():
            raise OutOfRangeError(f"{self.name}: matches has a number that is none of the {refs.shape[1]} boxes of refs")
        if not positive.any():
            return xp.zeros(anchors.shape, anchors.dtype), mask
        matched = xp.take_along_axis(accurate(xp, refs), number[..., None], axis=1)
        (x, y, width, height), (own_x, own_y, own_width, own_height) = middles(matched), middles(accurate(xp, anchors))
        offsets = ((x - own_x) / own_width, (y - own_y) / own_height, xp.log(width / own_width), xp.log(height / own_height))
        targets = (xp.stack(offsets, axis=-1) - means) / stds
        return xp.where(positive[..., None], targets, 0).astype(anchors.dtype, copy=False), mask

    def vjp(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        return (None,) * 6


def box_encode(
    samples: T | None = None,
    matches: T | None = None,
    anchors: T | None = None,
    refs: T | None = None,
    means: T | None = None,
    stds: T | None = None,
    **how: Unpack[How],
) -> list[T]:
    """What a network should say about its anchors: the offsets to the boxes that they are matched with, and which of them count.

    The offsets of a box from an anchor are `(dx / anchor width, dy / anchor height, log of the widths' ratio, log of the heights' ratio)`,
    minus `means` and divided by `stds`; dx and dy are the way from middle to middle.

    **Shapes** samples and matches (B, N), anchors (B, N, 4) and refs (B, M, 4) by their edges, means and stds (4,); two results (B, N, 4),
    offsets and mask. **Args** `samples`: 1 for a positive anchor; for the others, which have -1 or 0, both results are 0; `matches`: the
    number of the box among refs. **Raises** OutOfRangeError for another number at a positive anchor (when a result is read; MXNet reads
    other memory). **Gradient** 0. **Source** MXNet `contrib.box_encode`.
    """
    return apply(BoxEncode(), samples, matches, anchors, refs, means, stds, **how)


@register("_contrib_box_decode")
class BoxDecode(Op):
    inputs: ClassVar = ("data", "anchors")
    saves_inputs = False
    saves_outputs = False

    std0: float = 1.0
    std1: float = 1.0
    std2: float = 1.0
    std3: float = 1.0
    clip: float = -1.0
    format: str = "center"

    def fill(self, data: Spec | None, anchors: Spec | None) -> tuple[Spec | None, ...]:
        if data is not None and data.ndim == 3:
            anchors = filled(anchors, (1, *data.shape[1:]), data)
        return data, anchors

    def infer(self, data: Spec, anchors: Spec) -> Spec:
        require_choice(self, "format", self.format, *FORMATS)
        same_dtype(self, data, anchors)
        require_boxes(self, "data", data)
        require_ndim(self, "data", data, 3, axes=("batch", "anchors", "4"))
        require_shape(self, "anchors", anchors, (1, *data.shape[1:]), f"data of shape {data.shape}")
        return data

    def kernel(self, xp: Any, data: Array, anchors: Array) -> Array:
        own = accurate(xp, anchors)
        x, y, width, height = middles(own) if self.format == "corner" else (own[..., 0], own[..., 1], own[..., 2], own[..., 3])
        wide = accurate(xp, data)
        result = xp.empty(data.shape, data.dtype)
        for axis, (middle, length, std, std_of_length) in enumerate(
            ((x, width, self.std0, self.std2), (y, height, self.std1, self.std3))
        ):
            place = wide[..., axis] * std * length + middle
            growth = wide[..., axis + 2] * std_of_length
            if self.clip > 0:
                growth = xp.minimum(growth, self.clip)
            half = xp.exp(growth) * length / 2
            result[..., axis] = place - half
            result[..., axis + 2] = place + half
        return result

    def vjp(self, g: Any, y: Any, data: Any, anchors: Any) -> tuple[Any, ...]:
        return None, None


def box_decode(
    data: T | None = None,
    anchors: T | None = None,
    std0: float = 1.0,
    std1: float = 1.0,
    std2: float = 1.0,
    std3: float = 1.0,
    clip: float = -1.0,
    format: str = "center",
    **how: Unpack[How],
) -> T:
    """The boxes, by their edges, that a network means by offsets from its anchors: the way back from `box_encode`.

    **Shapes** data (B, N, 4), anchors (1, N, 4), result (B, N, 4). **Args** `std0` to `std3`: what the four offsets are multiplied by;
    `clip`: if more than 0, the logarithms of lengths go no higher; `format`: that of the anchors, "corner" or "center". **Gradient** 0, as
    in MXNet. **Source** MXNet `contrib.box_decode`.
    """
    return apply(BoxDecode(std0, std1, std2, std3, clip, format), data, anchors, **how)


__all__ = ["box_decode", "box_encode", "box_iou"]
