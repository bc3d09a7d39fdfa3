"""Non-maximum suppression: of boxes that cover much of each other only the best stays. And box_nms, the operator.

A detector finds every object many times, in boxes that hardly differ. From the best box to the worst, each that still stands strikes out
those after it that overlap with it too much, and if there are classes, that are of its own. That is a loop in which every step needs the
one before, over pairs of which there may be millions. Here it goes in blocks: the boxes of a block are compared with each other as one
matrix, in whose rows, taken as bits of whole numbers, the loop is short; and those that stay are compared with all later boxes as another
matrix. Only boxes that still stand are compared at all. Where classes leave few pairs, these are listed and compared at once. Book:
chapter 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, also_called, apply, register
from .boxes import FORMATS, TOGETHER, Edges, edges_of, overlap
from .checks import accurate, require_choice, require_float

if TYPE_CHECKING:
    from typing_extensions import Unpack

BLOCK = 64  # boxes
LISTED = 1 << 14  # pairs of boxes of one class, up to which they are listed rather than compared as matrices

# ---- the order of scores


def ranking(xp: Any, scores: Array, most: int | None = None) -> Array:
    """Where the `most` highest of `scores` (n,) are, the highest first; equal ones in their order. There must be no NaN."""
    count = len(scores)
    if most is not None and most < count:
        bound = xp.partition(scores, count - most)[count - most] if most else np.inf
        chosen = scores > bound
        chosen[xp.flatnonzero(scores == bound)[: most - int(chosen.sum())]] = True
        places = xp.flatnonzero(chosen)
        return places[ranking(xp, scores[places])]
    if scores.dtype != np.float32:
        return xp.argsort(-scores, kind="stable")
    # NumPy sorts whole numbers much faster than it sorts stably. The bits of floating numbers, read as a whole number, are in their order
    # as far as they are positive, and in reverse below. They come first, and behind them the places; 0 - x, for -0 must be 0.
    bits = (0 - scores).view(np.int32)
    keys = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).astype(np.int64)
    keys <<= 32
    keys |= xp.arange(count)
    keys.sort()
    keys &= 0xFFFFFFFF
    return keys


# ---- suppression


class Rule(NamedTuple):
    """When a box strikes out another: if their overlap is above `threshold`, or, with `reaching`, equal to it."""

    threshold: float
    reaching: bool = False
    border: int = 0  # 1 where edges are pixels inside the box

    def hits(self, xp: Any, one: Edges, other: Edges, pairs: bool = False) -> Array:
        """Which boxes of `one` overlap too much with which of `other`: a matrix of truth values, or a row, if they come as `pairs`."""
        shares = overlap(xp, one, other, self.border, pairs)
        return (xp.greater_equal if self.reaching else xp.greater)(shares, shares.dtype.type(self.threshold))


def survivors(xp: Any, boxes: Edges, rule: Rule, classes: Array | None = None, most: int | None = None) -> Array:
    """Which of `boxes`, the best first, remain: their places, in order; at most the first `most`.

    With `classes` boxes strike out those of their own class only.
    """
    if classes is None:
        return in_blocks(xp, boxes, rule, most)
    order = xp.argsort(classes, kind="stable")
    starts = xp.flatnonzero(xp.concatenate([xp.ones(min(len(order), 1), bool), classes[order][1:] != classes[order][:-1]]))
    sizes = xp.diff(xp.append(starts, len(order)))
    if int((sizes * (sizes - 1) // 2).sum()) <= LISTED:
        kept = order[by_pairs(xp, boxes.at(order), rule, sizes)]
    else:
        parts = [order[start : start + size] for start, size in zip(starts.tolist(), sizes.tolist())]
        kept = xp.concatenate([part[in_blocks(xp, boxes.at(part), rule)] for part in parts])
    return xp.sort(kept)[:most]


def by_pairs(xp: Any, boxes: Edges, rule: Rule, sizes: Array) -> Array:
    """Which of `boxes` remain that lie class by class, `sizes` of each, the best of a class first. All pairs are listed."""
    after = xp.concatenate([xp.arange(size - 1, -1, -1) for size in sizes.tolist()]) if len(sizes) else sizes
    one = xp.repeat(xp.arange(len(after)), after)
    other = one + 1 + xp.arange(len(one)) - xp.repeat(xp.cumsum(after) - after, after)
    hit = rule.hits(xp, boxes.at(one), boxes.at(other), pairs=True)
    stands = [True] * len(after)
    for first, second in zip(one[hit].tolist(), other[hit].tolist()):
        if stands[first]:  # which is settled: whoever could strike it out came earlier
            stands[second] = False
    return xp.flatnonzero(xp.asarray(stands, bool))


def in_blocks(xp: Any, boxes: Edges, rule: Rule, most: int | None = None) -> Array:
    """Which of `boxes`, the best first, remain; at most the first `most`."""
    kept: list[Array] = [xp.zeros(0, np.intp)]
    standing, number = xp.arange(len(boxes.left)), 0
    while len(standing) and (most is None or number < most):
        block, standing = standing[:BLOCK], standing[BLOCK:]
        edges = boxes.at(block)
        first = first_come(xp, rule.hits(xp, edges, edges))
        kept.append(block[first])
        number += len(first)
        edges, rest = edges.at(first), boxes.at(standing)
        step = max(1, TOGETHER // len(first))
        stands = xp.empty(len(standing), bool)
        for start in range(0, len(standing), step):
            part = slice(start, start + step)
            xp.logical_not(rule.hits(xp, edges, rest.at(part)).any(axis=0), out=stands[part])
        standing = standing[stands]
    return xp.concatenate(kept)[:most]


def first_come(xp: Any, hits: Array) -> list[int]:
    """Which lines of a square matrix remain, from the first on, if each that remains strikes out those whose columns it hits."""
    packed = xp.packbits(hits, axis=1, bitorder="little")
    text, width = packed.tobytes(), packed.shape[1]
    struck, found = 0, []
    for number in range(len(hits)):
        if not struck >> number & 1:
            found.append(number)
            struck |= int.from_bytes(text[number * width : (number + 1) * width], "little")
    return found


# ---- the operator


@register("_contrib_box_nms", "_contrib_box_non_maximum_suppression")
class BoxSuppression(Op):
    """Its second output says from where each row of the first came, counted over all examples; -1 where none did."""

    on_host = True
    saves_inputs = False
    saves_outputs = (1,)

    overlap_thresh: float = 0.5
    valid_thresh: float = 0.0
    topk: int = -1
    coord_start: int = 2
    score_index: int = 1
    id_index: int = -1
    background_id: int = -1
    force_suppress: bool = False
    in_format: str = "corner"
    out_format: str = "corner"

    @property
    def num_outputs(self) -> int:
        return 2

    @property
    def num_visible(self) -> int:
        return 1

    def infer(self, data: Spec) -> tuple[Spec, ...]:
        require_choice(self, "in_format", self.in_format, *FORMATS)
        require_choice(self, "out_format", self.out_format, *FORMATS)
        require_float(self, data)
        if data.ndim < 2:
            raise ShapeError(f"{self.name}: data has shape {data.shape}, wants (..., boxes, numbers of a box)")
        self.check_columns(data.shape)
        return data, Spec.of((*data.shape[:-1], 1), np.int32)

    def check_columns(self, shape: Shape) -> None:
        """Raise unless coordinates, score and class are different numbers of a box."""
        width, start = shape[-1], self.coord_start
        named = {"score_index": self.score_index, **({"id_index": self.id_index} if self.id_index >= 0 else {})}
        if not 0 <= start <= width - 4:
            raise ShapeError(
                f"{self.name}: coord_start={start}, but data {shape} has {width} numbers for each box; four must begin there"
            )
        for what, column in named.items():
            if not 0 <= column < width:
                raise ShapeError(f"{self.name}: {what}={column}, but data {shape} has {width} numbers for each box")
            if start <= column < start + 4:
                raise ArgumentError(f"{self.name}: {what}={column} is among the coordinates, {start} to {start + 3}")
        if self.id_index == self.score_index:
            raise ArgumentError(f"{self.name}: id_index and score_index are both {self.id_index}")

    def kernel(self, xp: Any, data: Array) -> tuple[Array, ...]:
        count, width = data.shape[-2:]
        number = data.size // max(count * width, 1)
        examples = accurate(xp, data).reshape(number, count, width)
        if self.topk == 0:  # as in MXNet: no suppression, not even an order
            return data.copy(), xp.arange(number * count, dtype=np.int32).reshape(*data.shape[:-1], 1)
        result = xp.full(data.shape, -1, data.dtype)
        record = xp.full((*data.shape[:-1], 1), -1, np.int32)
        rows, places = result.reshape(examples.shape), record.reshape(number, count)

        for example in range(number):
            kept = self.kept(xp, examples[example])
            rows[example, : len(kept)] = examples[example][kept]
            places[example, : len(kept)] = kept + example * count
        if self.in_format != self.out_format:
            start = self.coord_start
            turn(xp, rows[..., start : start + 4], self.out_format)
        return result, record

    def kept(self, xp: Any, boxes: Array) -> Array:
        """Which boxes of an example (n, numbers of a box) remain, the best first."""
        scores = boxes[:, self.score_index]
        valid = scores > scores.dtype.type(self.valid_thresh)
        if self.id_index >= 0:
            valid &= boxes[:, self.id_index] != self.background_id
        places = xp.flatnonzero(valid)
        chosen = places[ranking(xp, scores[places], self.topk if self.topk > 0 else None)]
        best = boxes[chosen]
        edges = edges_of(xp, best[:, self.coord_start : self.coord_start + 4], self.in_format)
        # MXNet compares classes as whole numbers.
        classes = None if self.force_suppress or self.id_index < 0 else best[:, self.id_index].astype(np.int32)
        return chosen[survivors(xp, edges, Rule(self.overlap_thresh), classes)]

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(SuppressionGradient(), g[0], y[1]),)


def turn(xp: Any, boxes: Array, form: str) -> None:
    """Bring `boxes` (..., 4) from the other format into `form`, in place; as in MXNet not those whose first number is negative."""
    first, second, third, fourth = (xp.array(boxes[..., number]) for number in range(4))
    if form == "center":
        turned = ((first + third) / 2, (second + fourth) / 2, third - first, fourth - second)
    else:
        turned = (first - third / 2, second - fourth / 2, first + third / 2, second + fourth / 2)
    for number, row in enumerate(turned):
        xp.copyto(boxes[..., number], row, where=first >= 0)


@register("_backward_contrib_box_nms")
class SuppressionGradient(Op):
    """Each row of `head` goes back to where its box came from, by `record`."""

    inputs: ClassVar = ("head", "record")
    saves_inputs = (1,)
    saves_outputs = False

    def infer(self, head: Spec, record: Spec) -> Spec:
        return head

    def kernel(self, xp: Any, head: Array, record: Array) -> Array:
        result = xp.zeros(head.shape, head.dtype)
        places = record.reshape(-1)
        chosen = places >= 0
        result.reshape(-1, head.shape[-1])[places[chosen]] = head.reshape(-1, head.shape[-1])[chosen]
        return result

    def vjp(self, g: Any, y: Any, head: Any, record: Any) -> tuple[Any, ...]:
        count, width = math.prod(head.shape[:-1]), head.shape[-1]
        if not count:
            return g, None
        places = record.reshape((count,))
        rows = g.reshape((count, width)).take(places, axis=0, mode="clip")
        came = (places >= 0).astype(head.dtype).reshape((count, 1)).broadcast_to((count, width))
        return (rows * came).reshape(head.shape), None


def box_nms(
    data: T,
    overlap_thresh: float = 0.5,
    valid_thresh: float = 0.0,
    topk: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = -1,
    background_id: int = -1,
    force_suppress: bool = False,
    in_format: str = "corner",
    out_format: str = "corner",
    **how: Unpack[How],
) -> T:
    """The boxes that remain when each strikes out those of lower scores that overlap with it too much: the best first, then rows of -1.

    **Shapes** data and result (..., N, K): N boxes of K numbers, for every example. **Args** `overlap_thresh`: of the overlap (intersection
    over union); `valid_thresh`: boxes with scores up to it are dropped; `topk`: so many of the best take part, the others are dropped, -1
    for all (0: data as it is); `coord_start`: where the four coordinates begin; `score_index`; `id_index`: where the class is, -1 if there
    is none; `background_id`: the class whose boxes are dropped; `force_suppress`: boxes strike out those of other classes, too;
    `in_format`, `out_format`: "corner" or "center". **Raises** ShapeError or ArgumentError for columns that there are not, or that are one.
    **Gradient** each row's goes back to the box that it is, unchanged, even if its format is not; the others get 0. **Source** MXNet
    `contrib.box_nms`, whose change of format leaves out boxes whose first number is negative, as does ours.

    **Example**

    >>> from minimx import nd
    >>> boxes = nd.array([[0.5, 0, 0, 10, 10], [0.9, 1, 1, 10, 10], [0.6, 20, 20, 30, 30]])
    >>> nd.contrib.box_nms(boxes, coord_start=1, score_index=0)[:, 0].asnumpy().tolist()
    [0.8999999761581421, 0.6000000238418579, -1.0]
    """
    op = BoxSuppression(
        overlap_thresh,
        valid_thresh,
        topk,
        coord_start,
        score_index,
        id_index,
        background_id,
        force_suppress,
        in_format,
        out_format,
    )
    return apply(op, data, **how)


box_non_maximum_suppression = also_called("box_non_maximum_suppression", box_nms)

__all__ = ["box_nms", "box_non_maximum_suppression"]
