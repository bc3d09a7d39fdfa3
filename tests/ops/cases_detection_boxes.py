"""Rows of ops/boxes.py, ops/matching.py and ops/suppression.py. The oracles go pair by pair."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from minimx.op import apply
from minimx.ops.boxes import box_decode, box_encode, box_iou
from minimx.ops.matching import bipartite_matching
from minimx.ops.suppression import BoxSuppression, SuppressionGradient, box_nms

from .harness import Bad, Case, Maker, normal, uniform

# ---- makers


def boxes(*shape: int, center: bool = False) -> Maker:
    """Boxes around the unit square, of sides up to 0.5, some of them beyond it."""

    def make(rng: np.random.Generator) -> np.ndarray:
        middle, length = rng.uniform(0, 1, (*shape, 2)), rng.uniform(0.05, 0.5, (*shape, 2))
        return np.concatenate([middle, length] if center else [middle - length / 2, middle + length / 2], axis=-1)

    return make


def given(numbers: Any) -> Maker:
    """Just these numbers, floating."""
    return lambda rng: np.array(numbers, float)


def whole(*shape: int, low: int = 0, high: int = 4) -> Maker:
    """Whole numbers of [low, high), but floating."""
    return lambda rng: rng.integers(low, high, shape).astype(float)


def beside(*makers: Maker) -> Maker:
    """Columns beside each other."""
    return lambda rng: np.concatenate([make(rng) for make in makers], axis=-1)


# ---- the oracles


def edges(box: np.ndarray, form: str) -> tuple[float, ...]:
    a, b, c, d = box
    return (a, b, c, d) if form == "corner" else (a - c / 2, b - d / 2, a + c / 2, b + d / 2)


def iou(one: np.ndarray, other: np.ndarray, form: str = "corner") -> float:
    (left, top, right, bottom), (l, t, r, b) = edges(one, form), edges(other, form)
    common = max(min(right, r) - max(left, l), 0) * max(min(bottom, b) - max(top, t), 0)
    total = max(right - left, 0) * max(bottom - top, 0) + max(r - l, 0) * max(b - t, 0) - common
    return common / total if total > 0 else 0.0


def iou_oracle(lhs: np.ndarray, rhs: np.ndarray, form: str = "corner") -> np.ndarray:
    found = [iou(one, other, form) for one in lhs.reshape(-1, 4) for other in rhs.reshape(-1, 4)]
    return np.array(found, float).reshape(*lhs.shape[:-1], *rhs.shape[:-1])


def matching_oracle(
    scores: np.ndarray, threshold: float, is_ascend: bool = False, topk: int = -1
) -> tuple[np.ndarray, np.ndarray]:
    """Sorts all pairs."""
    rows = np.full(scores.shape[:-1], -1.0)
    columns = np.full((*scores.shape[:-2], scores.shape[-1]), -1.0)
    sign = -1 if is_ascend else 1
    for place in np.ndindex(scores.shape[:-2]):
        pairs = sorted(np.ndindex(scores.shape[-2:]), key=lambda pair: -sign * scores[place][pair])
        count = 0
        for row, column in pairs:
            if rows[place][row] < 0 and columns[place][column] < 0:
                if sign * scores[place][row, column] <= sign * threshold or (topk > 0 and count > topk):
                    break
                rows[place][row], columns[place][column] = column, row
                count += 1
    return rows, columns


def encode_oracle(
    samples: np.ndarray, matches: np.ndarray, anchors: np.ndarray, refs: np.ndarray, means: np.ndarray, stds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    targets, mask = np.zeros(anchors.shape), np.zeros(anchors.shape)
    for example, number in np.ndindex(samples.shape):
        if samples[example, number] <= 0.5:
            continue
        mask[example, number] = 1
        left, top, right, bottom = anchors[example, number]
        l, t, r, b = refs[example, int(matches[example, number])]
        offsets = (
            ((l + r) / 2 - (left + right) / 2) / (right - left),
            ((t + b) / 2 - (top + bottom) / 2) / (bottom - top),
            math.log((r - l) / (right - left)),
            math.log((b - t) / (bottom - top)),
        )
        targets[example, number] = (np.array(offsets) - means) / stds
    return targets, mask


def decode_oracle(data: np.ndarray, anchors: np.ndarray, *stds: float, clip: float = -1, form: str = "center") -> np.ndarray:
    result = np.empty(data.shape)
    for example, number in np.ndindex(data.shape[:2]):
        x, y, width, height = anchors[0, number]
        if form == "corner":
            width, height = width - x, height - y
            x, y = x + width / 2, y + height / 2
        dx, dy, dw, dh = data[example, number] * np.array(stds)
        if clip > 0:
            dw, dh = min(dw, clip), min(dh, clip)
        w, h = width * math.exp(dw), height * math.exp(dh)
        x, y = x + dx * width, y + dy * height
        result[example, number] = x - w / 2, y - h / 2, x + w / 2, y + h / 2
    return result


def places_oracle(data: np.ndarray, **how: Any) -> list[list[int]]:
    """For every example which boxes remain, in order."""
    op = BoxSuppression(**how)
    start, found = op.coord_start, []
    for example in data.reshape(-1, *data.shape[-2:]):
        valid = [
            number
            for number, box in enumerate(example)
            if box[op.score_index] > op.valid_thresh and (op.id_index < 0 or box[op.id_index] != op.background_id)
        ]
        valid.sort(key=lambda number: -example[number, op.score_index])
        valid = valid[: op.topk] if op.topk >= 0 else valid
        kept: list[int] = []
        for number in valid:
            box = example[number]
            rivals = [
                example[other]
                for other in kept
                if op.force_suppress or op.id_index < 0 or int(example[other][op.id_index]) == int(box[op.id_index])
            ]
            shares = [iou(rival[start : start + 4], box[start : start + 4], op.in_format) for rival in rivals]
            if all(share <= op.overlap_thresh for share in shares):
                kept.append(number)
        found.append(kept)
    return found


def nms_oracle(data: np.ndarray, **how: Any) -> np.ndarray:
    result = np.full(data.shape, -1.0)
    examples, rows = data.reshape(-1, *data.shape[-2:]), result.reshape(-1, *data.shape[-2:])
    for example, row, kept in zip(examples, rows, places_oracle(data, **how)):
        row[: len(kept)] = example[kept]
    return result


def record_of(data: np.ndarray, **how: Any) -> np.ndarray:
    """From where each row came, counted over all examples."""
    count = data.shape[-2]
    kept = [[number + example * count for number in places] for example, places in enumerate(places_oracle(data, **how))]
    return np.array([places + [-1] * (count - len(places)) for places in kept], np.int32).reshape(*data.shape[:-1], 1)


def put_back_oracle(head: np.ndarray, record: np.ndarray) -> np.ndarray:
    result = np.zeros(head.shape)
    rows, heads = result.reshape(-1, head.shape[-1]), head.reshape(-1, head.shape[-1])
    for place, row in zip(record.ravel(), heads):
        if place >= 0:
            rows[place] = row
    return result


# ---- rows

OVERLAPS = [
    Case(
        "_contrib_box_iou",
        box_iou,
        (boxes(5), boxes(2, 3)),
        iou_oracle,
        grad=False,
        bad=(
            Bad(lambda nd: nd.contrib.box_iou(nd.ones((4,)), nd.ones((2, 4))), ShapeError, r"lhs has shape \(4,\), wants \(\.\.\., 4\)"),
            Bad(lambda nd: nd.contrib.box_iou(nd.ones((2, 4)), nd.ones((2, 5))), ShapeError, r"rhs has shape \(2, 5\)"),
            Bad(lambda nd: nd.contrib.box_iou(nd.ones((1, 4)), nd.ones((1, 4)), format="x"), ArgumentError, "choose one of corner, center"),
            Bad(lambda nd: nd.contrib.box_iou(nd.ones((1, 4)), nd.ones((1, 4), dtype="float64")), DTypeError, "lhs is float32 but rhs is"),
            Bad(lambda nd: nd.contrib.box_iou(nd.ones((1, 4), dtype="int32"), nd.ones((1, 4))), DTypeError, "lhs is int32"),
        ),
    ),
    Case(
        "_contrib_box_iou",
        lambda a, b: box_iou(a, b, format="center"),
        (boxes(40, center=True), boxes(3, center=True)),
        lambda a, b: iou_oracle(a, b, "center"),
        grad=False,
        label="center",
    ),
    # No area, turned inside out, the same, touching, apart.
    Case(
        "_contrib_box_iou",
        box_iou,
        (given([[0, 0, 0, 0], [2, 2, 0, 0], [0, 0, 1, 1]]), given([[0, 0, 1, 1], [1, 0, 2, 1], [0, 0, 0, 0], [5, 5, 6, 6]])),
        iou_oracle,
        grad=False,
        label="edge cases",
    ),
    Case("_contrib_box_iou", box_iou, (boxes(0), boxes(3)), iou_oracle, grad=False, label="no boxes"),
]  # fmt: skip

MATCHINGS = [
    Case(
        "_contrib_bipartite_matching",
        lambda x, threshold=threshold, ascend=ascend, topk=topk: bipartite_matching(x, ascend, threshold, topk),
        (make,),
        lambda x, threshold=threshold, ascend=ascend, topk=topk: matching_oracle(x, threshold, ascend, topk),
        grad=False,
        label=label,
    )
    for label, make, threshold, ascend, topk in (
        ("tall", uniform(0, 1, 2, 6, 4), 0.3, False, -1),
        ("wide", uniform(0, 1, 3, 5), 0.3, True, -1),
        ("limited", uniform(0, 1, 2, 2, 4, 5), 0.1, False, 2),
        ("equal scores, tall", whole(3, 7, 4, high=3), 0.5, False, -1),
        ("equal scores, wide", whole(3, 4, 7, high=3), 1.5, True, 1),
    )
] + [
    Case(
        "_contrib_bipartite_matching",
        lambda x: bipartite_matching(x, threshold=0.5),
        (lambda rng: np.zeros((2, 0, 3)),),
        lambda x: (np.zeros((2, 0)), np.full((2, 3), -1.0)),
        grad=False,
        label="no rows",
        bad=(
            Bad(lambda nd: nd.contrib.bipartite_matching(nd.ones((2, 2))), ArgumentError, "threshold must be a number, got None"),
            Bad(lambda nd: nd.contrib.bipartite_matching(nd.ones((2,)), threshold=0.1), ShapeError, r"wants \(\.\.\., N, M\)"),
        ),
    )
]


def bad_encode(change: dict[int, Any]) -> Any:
    def call(nd: Any) -> Any:
        shapes = {0: (2, 3), 1: (2, 3), 2: (2, 3, 4), 3: (2, 1, 4), 4: (4,), 5: (4,), **change}
        return nd.contrib.box_encode(*[nd.ones(shapes[position]) for position in range(6)])

    return call


ENCODINGS = [
    Case(
        "_contrib_box_encode",
        box_encode,
        (whole(2, 9, low=-1, high=2), whole(2, 9), boxes(2, 9), boxes(2, 4), normal(4), uniform(0.5, 2, 4)),
        encode_oracle,
        grad=False,
        bad=(
            Bad(bad_encode({0: (3, 2)}), ShapeError, r"samples has shape \(3, 2\), anchors of shape \(2, 3, 4\) needs \(2, 3\)"),
            Bad(bad_encode({2: (3, 4)}), ShapeError, "anchors needs 3 axes"),
            Bad(bad_encode({3: (1, 1, 4)}), ShapeError, r"refs has shape \(1, 1, 4\)"),
            Bad(bad_encode({4: (3,)}), ShapeError, r"means has shape \(3,\)"),
            Bad(bad_encode({}), OutOfRangeError, "matches has a number that is none of the 1 boxes of refs"),
        ),
    ),
    # Anchors that are no samples may have any match.
    Case(
        "_contrib_box_encode",
        box_encode,
        (given([[-1, 0, 0.5]]), given([[-1, 7, 3]]), boxes(1, 3), boxes(1, 2), given([0] * 4), given([1] * 4)),
        encode_oracle,
        grad=False,
        label="no samples",
    ),
    *[
        Case(
            "_contrib_box_decode",
            lambda x, anchors, clip=clip, form=form: box_decode(x, anchors, 0.1, 0.2, 0.3, 0.4, clip=clip, format=form),
            (normal(2, 5, 4), boxes(1, 5, center=form == "center")),
            lambda x, anchors, clip=clip, form=form: decode_oracle(x, anchors, 0.1, 0.2, 0.3, 0.4, clip=clip, form=form),
            grad=False,
            label=f"{form} {clip}",
        )
        for clip, form in itertools.product((-1, 0.2), ("corner", "center"))
    ],
    Case(
        "_contrib_box_decode",
        box_decode,
        (normal(1, 5, 4), boxes(1, 5, center=True)),
        lambda x, anchors: decode_oracle(x, anchors, 1, 1, 1, 1),
        grad=False,
        bad=(
            Bad(lambda nd: nd.contrib.box_decode(nd.ones((2, 5, 4)), nd.ones((2, 5, 4))), ShapeError, r"anchors has shape \(2, 5, 4\)"),
            Bad(lambda nd: nd.contrib.box_decode(nd.ones((5, 4)), nd.ones((1, 5, 4))), ShapeError, "data needs 3 axes"),
            Bad(lambda nd: nd.contrib.box_decode(nd.ones((1, 5, 4)), nd.ones((1, 5, 4)), format="x"), ArgumentError, "format='x'"),
        ),
    ),
]  # fmt: skip


def scores(*shape: int) -> Maker:
    """Scores that lie apart, for all dtypes to see the same order, and not on a threshold."""
    return lambda rng: (rng.permutation(int(np.prod(shape))).reshape(shape) - 4.5) / 64


def classes(*shape: int) -> Maker:
    """Classes between whole numbers: MXNet compares what is left of them when the fraction is dropped, and small steps change nothing."""
    return lambda rng: rng.integers(0, 3, shape) + 0.5


DETECTIONS = beside(classes(2, 30, 1), scores(2, 30, 1), boxes(2, 30))
WITH_BACKGROUND = beside(whole(2, 30, 1, low=-1, high=3), scores(2, 30, 1), boxes(2, 30))


def suppression(label: str, make: Maker = DETECTIONS, grad: bool = True, **how: Any) -> Case:
    return Case(
        "_contrib_box_nms",
        lambda x: box_nms(x, **how),
        (make,),
        lambda x: nms_oracle(x, **how),
        grad=grad,
        rtol={"float16": np.inf},  # its overlaps may lie on the other side of the threshold
        label=label,
    )


def bad_nms(match: str, error: type[Exception] = ShapeError, shape: tuple[int, ...] = (3, 6), **how: Any) -> Bad:
    return Bad(lambda nd: nd.contrib.box_nms(nd.ones(shape), **how), error, match)


SUPPRESSIONS = [
    suppression("default"),
    suppression("by class", id_index=0, overlap_thresh=0.2),
    suppression("all classes", WITH_BACKGROUND, False, id_index=0, overlap_thresh=0.2, force_suppress=True, background_id=1),
    suppression("background", WITH_BACKGROUND, False, id_index=0, overlap_thresh=0.1, background_id=2, valid_thresh=0.2),
    suppression("the best", id_index=0, overlap_thresh=0.2, topk=9, valid_thresh=-1),
    suppression("nothing valid", valid_thresh=5),
    suppression(
        "other columns", beside(boxes(4, 12, center=True), classes(4, 12, 1), scores(4, 12, 1)),
        coord_start=0, score_index=5, id_index=4, in_format="center", out_format="center", overlap_thresh=0.1,
    ),
    suppression("many", beside(classes(400, 1), scores(400, 1), boxes(400)), id_index=0, overlap_thresh=0.3),
    suppression("as matrices", beside(scores(300, 1), boxes(300)), coord_start=1, score_index=0),
    Case("_contrib_box_nms", box_nms, (lambda rng: np.zeros((2, 0, 6)),), lambda x: x, label="no boxes"),
    Case(
        "_contrib_box_nms",
        lambda x: box_nms(x, topk=0),
        (normal(2, 3, 6),),
        lambda x: x,
        label="topk 0",
        bad=(
            bad_nms("coord_start=3, but data .* has 6 numbers", coord_start=3),
            bad_nms("coord_start=-1, but data", coord_start=-1),
            bad_nms("score_index=9, but data", score_index=9),
            bad_nms("id_index=6, but data", id_index=6),
            bad_nms("score_index=4 is among the coordinates, 2 to 5", ArgumentError, score_index=4),
            bad_nms("id_index and score_index are both 1", ArgumentError, id_index=1),
            bad_nms("in_format='x' is not known", ArgumentError, in_format="x"),
            bad_nms("wants .*boxes, numbers of a box", shape=(6,)),
        ),
    ),
    Case(
        "_backward_contrib_box_nms",
        lambda head, record: apply(SuppressionGradient(), head, record),
        (normal(2, 30, 6), lambda rng: record_of(DETECTIONS(np.random.default_rng(3)), id_index=0, overlap_thresh=0.2)),
        put_back_oracle,
    ),
]  # fmt: skip

CASES = [*OVERLAPS, *MATCHINGS, *ENCODINGS, *SUPPRESSIONS]
