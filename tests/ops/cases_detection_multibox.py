"""Rows of ops/multibox.py, ops/multibox_target.py and ops/proposal.py. The oracles go box by box, as the papers say it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from minimx.ops.multibox import MultiBoxDetection, MultiBoxPrior
from minimx.ops.multibox_target import MultiBoxTarget
from minimx.ops.proposal import MultiProposal, Proposal

from .cases_detection_boxes import boxes, decode_oracle, encode_oracle, given, iou, matching_oracle
from .harness import Bad, Case, Maker, normal

APART = {"float16": np.inf}  # overlaps and probabilities may be in another order

# ---- MultiBoxPrior


def prior_oracle(
    data: np.ndarray,
    sizes: tuple[float, ...] = (1,),
    ratios: tuple[float, ...] = (1,),
    clip: bool = False,
    steps: tuple[float, float] = (-1, -1),
    offsets: tuple[float, float] = (0.5, 0.5),
) -> np.ndarray:
    height, width = data.shape[2:]
    kinds = [(size, ratios[0]) for size in sizes] + [(sizes[0], ratio) for ratio in ratios[1:]]
    down, across = steps if min(steps) > 0 else (1 / height, 1 / width)
    found = []
    for row, column in np.ndindex(height, width):
        y, x = (row + offsets[0]) * down, (column + offsets[1]) * across
        for size, ratio in kinds:
            w, h = size * math.sqrt(ratio) * height / width / 2, size / math.sqrt(ratio) / 2
            found.append((x - w, y - h, x + w, y + h))
    result = np.array(found, float).reshape(1, -1, 4)
    return result.clip(0, 1) if clip else result


def prior(label: str, **how: Any) -> Case:
    return Case(
        "_contrib_MultiBoxPrior",
        lambda x: MultiBoxPrior(x, **how),
        (normal(2, 3, 3, 5),),
        lambda x: prior_oracle(x, **how),
        grad=False,
        label=label,
    )


def bad_prior(match: str, **how: Any) -> Bad:
    return Bad(lambda nd: nd.contrib.MultiBoxPrior(nd.ones((1, 1, 2, 2)), **how), ArgumentError, match)


PRIORS = [
    prior("default"),
    prior("kinds", sizes=(0.75, 0.5, 0.25), ratios=(1, 2, 0.5)),
    prior("first ratio", sizes=(0.5, 0.2), ratios=(2, 1), clip=True),
    prior("steps", steps=(0.25, 0.125), offsets=(0.25, 1), sizes=(0.5,)),
    Case(
        "_contrib_MultiBoxPrior",
        lambda x: MultiBoxPrior(x, 0.5, 2),
        (normal(1, 1, 1, 1),),
        lambda x: prior_oracle(x, (0.5,), (2,)),
        grad=False,
        label="one",
        bad=(
            Bad(lambda nd: nd.contrib.MultiBoxPrior(nd.ones((1, 2, 2))), ShapeError, r"data needs 4 axes \(batch, channels"),
            Bad(lambda nd: nd.contrib.MultiBoxPrior(nd.ones((1, 1, 2, 2), dtype="int32")), DTypeError, "data is int32"),
            bad_prior("wants one number or more in each", sizes=()),
            bad_prior("wants 2 numbers: along y and along x", steps=(0.1,)),
            bad_prior("give both, or leave both to the data", steps=(0.1, -1)),
            bad_prior("wants numbers from 0 to 1", offsets=(0.5, 2)),
        ),
    ),
]

# ---- MultiBoxTarget


def labels(*shape: int, empty: bool = True) -> Maker:
    """Objects of 4 classes; each example has some, of the last one none."""

    def make(rng: np.random.Generator) -> np.ndarray:
        table = np.concatenate([rng.integers(0, 4, (*shape, 1)), boxes(*shape)(rng)], axis=-1)
        for example in range(shape[0]):
            table[example, rng.integers(1, shape[1] + 1) :] = -1
        if empty:
            table[-1] = -1
        return table

    return make


def target_oracle(anchor: np.ndarray, label: np.ndarray, prediction: np.ndarray, **how: Any) -> tuple[np.ndarray, ...]:
    threshold, ratio = how.get("overlap_threshold", 0.5), how.get("negative_mining_ratio", -1)
    batch, count = len(label), anchor.shape[1]
    offsets, mask = np.zeros((batch, count, 4)), np.zeros((batch, count, 4))
    classes = np.full((batch, count), how.get("ignore_label", -1.0))
    for example in range(batch):
        objects = [row for row in label[example] if row[0] != -1]
        if not objects:
            continue
        shares = np.array([[iou(each, row[1:5]) for row in objects] for each in anchor[0]])
        number = matching_oracle(shares, 1e-6)[0].astype(int)
        for place in range(count):
            if number[place] < 0 and 0 < threshold < shares[place].max():
                number[place] = shares[place].argmax()
        negative = [place for place in range(count) if number[place] < 0]
        if ratio > 0:
            e = np.exp(prediction[example])
            likely = e[0] / e.sum(axis=0)
            negative = [place for place in negative if shares[place].max() < how.get("negative_mining_thresh", 0.5)]
            negative.sort(key=lambda place: likely[place])
            wanted = max(int((number >= 0).sum() * ratio), how.get("minimum_negative_samples", 0))
            negative = negative[:wanted]
        classes[example, negative] = 0
        table = np.array(objects)[None]
        own = encode_oracle(
            (number >= 0)[None],
            number[None],
            anchor,
            table[..., 1:5],
            np.zeros(4),
            np.array(how.get("variances", (0.1, 0.1, 0.2, 0.2))),
        )
        offsets[example], mask[example] = own[0][0], own[1][0]
        classes[example, number >= 0] = table[0, number[number >= 0], 0] + 1
    return offsets.reshape(batch, -1), mask.reshape(batch, -1), classes


def target(name: str, makers: tuple[Maker, ...] = (boxes(1, 60), labels(4, 5), normal(4, 5, 60)), **how: Any) -> Case:
    return Case(
        "_contrib_MultiBoxTarget",
        lambda *tensors: MultiBoxTarget(*tensors, **how),
        makers,
        lambda *arrays: target_oracle(*arrays, **how),
        grad=False,
        rtol={**APART, "float32": 1e-4},  # offsets go up to 20, and are differences divided by lengths
        label=name,
    )


def bad_target(match: str, error: type[Exception] = ShapeError, change: dict[int, Any] | None = None, **how: Any) -> Bad:
    shapes = {0: (1, 3, 4), 1: (2, 1, 5), 2: (2, 2, 3), **(change or {})}
    return Bad(lambda nd: nd.contrib.MultiBoxTarget(*[nd.ones(shapes[position]) for position in range(3)], **how), error, match)


GRID = [[left / 4, top / 4, left / 4 + 0.25, top / 4 + 0.25] for top in range(4) for left in range(4)]

TARGETS = [
    target("default"),
    target("low threshold", overlap_threshold=0.2, variances=(1, 0.5, 0.25, 2)),
    target("best only", overlap_threshold=-1),
    target("mining", overlap_threshold=0.3, negative_mining_ratio=1.5, negative_mining_thresh=0.25, ignore_label=-7),
    target("at least", negative_mining_ratio=0.1, minimum_negative_samples=7),
    target("all there are", negative_mining_ratio=100),
    target("more numbers", (boxes(1, 9), lambda rng: np.pad(labels(2, 3)(rng), [(0, 0), (0, 0), (0, 2)]), normal(2, 2, 9))),
    target("more objects", (boxes(1, 3), labels(2, 7, empty=False), normal(2, 2, 3))),
    # Equal overlaps everywhere: objects between anchors, and one twice.
    target(
        "equal overlaps",
        (given([GRID]), given([[[1, 0.125, 0.125, 0.375, 0.375]] * 2 + [[0, 0.5, 0.125, 0.75, 0.375]]]), given(np.zeros((1, 3, 16)))),
        overlap_threshold=0.1,
        negative_mining_ratio=1,
    ),
    Case(
        "_contrib_MultiBoxTarget",
        MultiBoxTarget,
        (boxes(1, 4), given([[[-1] * 5] * 2] * 3), normal(3, 2, 4)),
        lambda *arrays: (np.zeros((3, 16)), np.zeros((3, 16)), np.full((3, 4), -1)),
        grad=False,
        label="no objects",
        bad=(
            bad_target(r"anchor has shape \(2, 3, 4\), one set of anchors", change={0: (2, 3, 4)}),
            bad_target(r"label has shape \(2, 1, 4\), wants \(N, M, 5 or more\)", change={1: (2, 1, 4)}),
            bad_target(r"cls_pred has shape \(1, 2, 3\)", change={2: (1, 2, 3)}),
            bad_target(r"cls_pred has shape \(2, 2, 4\)", change={2: (2, 2, 4)}),
            bad_target("wants 4 numbers", ArgumentError, variances=(0.1,)),
            bad_target("negative_mining_thresh=0, wants more than 0", ArgumentError, negative_mining_ratio=1, negative_mining_thresh=0),
            Bad(
                lambda nd: nd.contrib.MultiBoxTarget(nd.ones((1, 1, 4)), nd.array([[[-1, 0, 0, 1, 1]]]), nd.ones((1, 2, 1))),
                OutOfRangeError,
                r"label has a row \[-1.0, 0.0, 0.0, 1.0, 1.0\]",
            ),
        ),
    ),
]  # fmt: skip

# ---- MultiBoxDetection


def probabilities(*shape: int) -> Maker:
    def make(rng: np.random.Generator) -> np.ndarray:
        e = np.exp(3 * rng.standard_normal(shape))
        return e / e.sum(axis=1, keepdims=True)

    return make


def detection_oracle(probability: np.ndarray, offsets: np.ndarray, anchor: np.ndarray, **how: Any) -> np.ndarray:
    threshold, nms = how.get("threshold", 0.01), how.get("nms_threshold", 0.5)
    batch, count = len(probability), anchor.shape[1]
    result = np.full((batch, count, 6), -1.0)
    own = decode_oracle(offsets.reshape(batch, count, 4), anchor, *how.get("variances", (0.1, 0.1, 0.2, 0.2)), form="corner")
    own = own.clip(0, 1) if how.get("clip", True) else own
    for example in range(batch):
        classes = probability[example, 1:].argmax(axis=0)
        rows = [
            [classes[place], probability[example, 1 + classes[place], place], *own[example, place]]
            for place in range(count)
            if probability[example, 1 + classes[place], place] >= threshold
        ]
        for number, row in enumerate(rows):
            result[example, number] = row
        if not 0 < nms <= 1:
            continue
        best = sorted(rows, key=lambda row: -row[1])
        best = best[: how["nms_topk"]] if how.get("nms_topk", -1) > 0 else best
        result[example, len(best) : len(rows), 0] = -1
        kept: list[Any] = []
        for number, row in enumerate(best):
            result[example, number] = row
            rivals = [rival for rival in kept if how.get("force_suppress") or rival[0] == row[0]]
            if any(iou(rival[2:], row[2:]) >= nms for rival in rivals):
                result[example, number, 0] = -1
            else:
                kept.append(row)
    return result


def detection(
    label: str, makers: tuple[Maker, ...] = (probabilities(3, 4, 40), normal(3, 160), boxes(1, 40)), **how: Any
) -> Case:
    return Case(
        "_contrib_MultiBoxDetection",
        lambda *tensors: MultiBoxDetection(*tensors, **how),
        makers,
        lambda *arrays: detection_oracle(*arrays, **how),
        grad=False,
        rtol=APART,
        label=label,
    )


def bad_detection(match: str, error: type[Exception] = ShapeError, change: dict[int, Any] | None = None, **how: Any) -> Bad:
    shapes = {0: (2, 3, 5), 1: (2, 20), 2: (1, 5, 4), **(change or {})}
    return Bad(lambda nd: nd.contrib.MultiBoxDetection(*[nd.ones(shapes[place]) for place in range(3)], **how), error, match)


DETECTIONS = [
    detection("default"),
    detection("strict", nms_threshold=0.1, threshold=0.3, clip=False),
    detection("all classes", force_suppress=True, nms_threshold=0.3, variances=(0.2, 0.1, 0.3, 0.1)),
    detection("the best", nms_topk=15, nms_threshold=0.2),
    detection("no suppression", nms_threshold=0),
    detection("nothing likely", threshold=2),
    Case(
        "_contrib_MultiBoxDetection",
        MultiBoxDetection,
        (probabilities(2, 1, 3), normal(2, 12), boxes(1, 3)),
        lambda *arrays: np.full((2, 3, 6), -1),
        grad=False,
        label="background only",
    ),
    Case(
        "_contrib_MultiBoxDetection",
        MultiBoxDetection,
        # Equal probabilities: the first class, and the first anchor, come first.
        (given([[[0.2] * 3, [0.4] * 3, [0.4] * 3]]), given([[0] * 12]), given([[[0, 0, 1, 1], [0, 0, 1, 0.5], [0, 0.5, 1, 1]]])),
        lambda *arrays: np.array([[[0, 0.4, 0, 0, 1, 1], [-1, 0.4, 0, 0, 1, 0.5], [-1, 0.4, 0, 0.5, 1, 1]]]),
        grad=False,
        label="equal",
        bad=(
            bad_detection(r"cls_prob has shape \(2, 3, 6\)", change={0: (2, 3, 6)}),
            bad_detection(r"loc_pred has shape \(2, 5, 4\)", change={1: (2, 5, 4)}),
            bad_detection(r"anchor needs 3 axes", change={2: (5, 4)}),
            bad_detection("wants 4 numbers", ArgumentError, variances=(1, 2, 3)),
            bad_detection("class 0 is the background", ArgumentError, background_id=1),
        ),
    ),
]  # fmt: skip

# ---- proposals


def anchors_oracle(scales: Any, ratios: Any, stride: int) -> list[tuple[float, ...]]:
    found = []
    for ratio in ratios:
        for scale in scales:
            width = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5) * scale
            height = math.floor(width / scale * ratio + 0.5) * scale
            x = y = (stride - 1) / 2
            found.append((x - (width - 1) / 2, y - (height - 1) / 2, x + (width - 1) / 2, y + (height - 1) / 2))
    return found


def pixel_iou(one: np.ndarray, other: np.ndarray) -> float:
    """Of boxes to which their last row and column belong."""
    return iou(one + np.array([0, 0, 1, 1]), other + np.array([0, 0, 1, 1]))


def proposal_oracle(probability: np.ndarray, offsets: np.ndarray, info: np.ndarray, **how: Any) -> tuple[np.ndarray, np.ndarray]:
    stride, post, pre = how["feature_stride"], how["rpn_post_nms_top_n"], how.get("rpn_pre_nms_top_n", 6000)
    kinds = anchors_oracle(how["scales"], how["ratios"], stride)
    regions, chosen = [], []
    for example, (tall, wide, zoom) in enumerate(info):
        found = []
        for row, column in np.ndindex(probability.shape[2:]):
            for kind, anchor in enumerate(kinds):
                box = np.array(anchor) + np.array([column, row, column, row]) * stride
                deltas = offsets[example, 4 * kind : 4 * kind + 4, row, column]
                if how.get("iou_loss"):
                    box = box + deltas
                else:
                    lengths = box[2:] - box[:2] + 1
                    middle = box[:2] + (lengths - 1) / 2 + deltas[:2] * lengths
                    half = (lengths * np.exp(deltas[2:]) - 1) / 2
                    box = np.concatenate([middle - half, middle + half])
                box = np.clip(box, 0, np.array([wide, tall, wide, tall]) - 1)
                score = probability[example, len(kinds) + kind, row, column]
                if row >= int(tall / stride) or column >= int(wide / stride):
                    score = -1
                least = how["rpn_min_size"] * zoom
                if (box[2:] - box[:2] + 1 < least).any():
                    box, score = box + np.array([-1, -1, 1, 1]) * least / 2, -1
                found.append((score, box))
        found.sort(key=lambda pair: -pair[0])
        kept: list[Any] = []
        for score, box in found[:pre] if pre > 0 else found:
            if len(kept) < post and all(pixel_iou(other, box) <= how.get("threshold", 0.7) for _, other in kept):
                kept.append((score, box))
        for number in range(post):
            score, box = kept[number % len(kept)]
            regions.append([example, *box])
            chosen.append([score])
    return np.array(regions), np.array(chosen)


KINDS: dict[str, Any] = {"scales": (1, 2), "ratios": (0.5, 1.7), "feature_stride": 8, "rpn_post_nms_top_n": 12, "rpn_min_size": 6}


def proposal(label: str, batch: int = 1, spread: float = 0.3, **how: Any) -> Case:
    how = {**KINDS, **how}

    def likely(rng: np.random.Generator) -> np.ndarray:
        return rng.permutation(batch * 8 * 20).reshape(batch, 8, 4, 5) / 200  # apart, for an order without doubt

    function = MultiProposal if batch > 1 else Proposal
    infos = [[32, 40, 1], [20, 33, 1.5], [30, 25, 0.5]][:batch]
    return Case(
        f"_contrib_{function.__name__}",
        lambda *tensors: function(*tensors, output_score=True, **how),
        (likely, lambda rng: spread * rng.standard_normal((batch, 16, 4, 5)), given(infos)),
        lambda *arrays: proposal_oracle(*arrays, **how),
        grad=False,
        rtol=APART,
        label=label,
    )


def bad_proposal(match: str, error: type[Exception] = ShapeError, change: dict[int, Any] | None = None, **how: Any) -> Bad:
    shapes = {0: (1, 8, 2, 2), 1: (1, 16, 2, 2), 2: (1, 3), **(change or {})}

    def call(nd: Any) -> Any:
        return nd.contrib.Proposal(*[nd.ones(shapes[place]) for place in range(3)], **{**KINDS, **how})

    return Bad(call, error, match)


PROPOSALS = [
    proposal("default"),
    proposal("few", rpn_pre_nms_top_n=9, threshold=0.2),
    proposal("edges", iou_loss=True, spread=3, rpn_pre_nms_top_n=0),
    proposal("small ones", rpn_min_size=14, threshold=0.4),
    proposal("several images", batch=3, threshold=0.5),
    proposal("several images, edges", batch=2, iou_loss=True, spread=3),
    Case(
        "_contrib_Proposal",
        lambda *tensors: Proposal(*tensors, **KINDS),
        (normal(1, 8, 3, 3), normal(1, 16, 3, 3), given([[24, 24, 1]])),
        lambda *arrays: proposal_oracle(*arrays, **KINDS)[0],
        grad=False,
        rtol=APART,
        label="without scores",
        bad=(
            bad_proposal("cls_prob has 6 channels, 2 scales with 2 ratios need 8", change={0: (1, 6, 2, 2)}),
            bad_proposal(r"bbox_pred has shape \(1, 8, 2, 2\)", change={1: (1, 8, 2, 2)}),
            bad_proposal(r"im_info has shape \(1, 4\)", change={2: (1, 4)}),
            bad_proposal("MultiProposal takes several", change={0: (2, 8, 2, 2), 1: (2, 16, 2, 2), 2: (2, 3)}),
            bad_proposal("rpn_post_nms_top_n=0, wants 1 or more", ArgumentError, rpn_post_nms_top_n=0),
            bad_proposal("feature_stride=0, wants 1 or more", ArgumentError, feature_stride=0),
            Bad(
                lambda nd: nd.contrib.Proposal(nd.ones((1, 8, 2, 2)), nd.ones((1, 16, 2, 2)), nd.array([[99, 9, 1]]), **KINDS),
                ShapeError,
                r"an image has \[99.0, 9.0\] pixels, which is more than feature maps of \(2, 2\) can have with feature_stride=8",
            ),
            Bad(
                lambda nd: nd.contrib.Proposal(nd.ones((1, 8, 2, 2)), nd.ones((1, 16, 2, 2)), nd.array([[np.nan, 9, 1]]), **KINDS),
                OutOfRangeError,
                "im_info has a number that is not finite",
            ),
        ),
    ),
]  # fmt: skip

CASES = [*PRIORS, *TARGETS, *DETECTIONS, *PROPOSALS]
