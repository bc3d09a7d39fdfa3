"""The operators of object detection where MXNet's way is not the only one: values recorded from MXNet 1.9.1 on CPU, and edges of theirs.

Equal scores and overlaps, boxes on a threshold, rows that are left over, regions that are turned round, offsets of whole pixels: there the
order of steps decides. All numbers are such that they, and mostly the results, are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, nd
from minimx.base import MXNetError
from minimx.ops import suppression
from minimx.ops.boxes import edges_of
from minimx.ops.suppression import in_blocks, ranking, survivors

contrib = nd.contrib


def equal(got: Any, want: Any, rtol: float = 1e-6) -> None:
    """Equal numbers, in float32."""
    np.testing.assert_allclose(got.asnumpy(), np.array(want, np.float32), rtol, rtol)


def with_slopes(call: Any, *numbers: Any) -> tuple[Any, ...]:
    """The result, and the gradients of the inputs for the head 1, 2, 3, ..."""
    arrays = [nd.array(each) for each in numbers]
    for array in arrays:
        array.attach_grad()
    with autograd.record():
        result = call(*arrays)
    result.backward(nd.arange(1, 1 + result.size).reshape(result.shape))
    return result, *(array.grad for array in arrays)


# ---- suppression and matching

NUMBERED = [[float(6 * row + column + 1) for column in range(6)] for row in range(7)]  # the head of with_slopes
BOXES = [
    [0, 0.5, -0.25, 0, 0.75, 1], [0, 0.5, -0.25, 0, 0.75, 0.75], [1, 0.5, -0.25, 0, 0.75, 1], [0, 0.75, 0.5, 0.5, 1, 1],
    [0, 0.75, 0.5, 0.5, 1, 0.75], [2, 0.25, 0.25, 0.25, 0.5, 0.5], [1, 0.5, 0.5, 0, 1, 0.25],
]  # fmt: skip
NOTHING = [-1.0] * 6


def test_box_nms_of_equal_scores() -> None:
    """An overlap of just the threshold stays, equal scores keep their order, and a box that begins below 0 keeps its format."""
    result, slope = with_slopes(lambda x: contrib.box_nms(x, 0.5, id_index=0, topk=5, out_format="center"), BOXES)
    equal(result, [[0, 0.75, 0.75, 0.75, 0.5, 0.5], [0, 0.75, 0.75, 0.625, 0.5, 0.25], BOXES[0], BOXES[2], *[NOTHING] * 3])
    equal(slope, [NUMBERED[2], [0] * 6, NUMBERED[3], NUMBERED[0], NUMBERED[1], [0] * 6, [0] * 6])


def test_box_nms_of_all_classes() -> None:
    call = lambda x: contrib.box_nms(x, 0.5, id_index=0, force_suppress=True, background_id=2, valid_thresh=0.25)  # noqa: E731
    result, slope = with_slopes(call, BOXES)
    equal(result, [BOXES[3], BOXES[4], BOXES[0], BOXES[6], *[NOTHING] * 3])
    equal(slope, [NUMBERED[2], [0] * 6, [0] * 6, NUMBERED[0], NUMBERED[1], [0] * 6, NUMBERED[3]])


SCORES = [[0.5, 0.5, 0.25], [0.5, 0.5, 0.75], [0.5, 0.25, 0.75], [1, 0.125, 0]]


def test_bipartite_matching_of_equal_scores() -> None:
    """With topk=1 there are two matches; a score of just the threshold is none."""
    rows, columns = contrib.bipartite_matching(nd.array(SCORES), threshold=0.25, topk=1)
    equal(rows, [-1, 2, -1, 0])
    equal(columns, [3, -1, 1])
    rows, columns = contrib.bipartite_matching(nd.array(SCORES), True, 0.5)
    equal(rows, [-1, -1, 1, 2])
    equal(columns, [-1, 2, 3])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ranking_is_stable(dtype: str) -> None:
    """Equal scores keep their order, 0 and -0 are equal, and signs count."""
    scores = np.array([0.0, 2, -1, 2, -0.0, np.inf, -np.inf, -3, 0], dtype)
    assert ranking(np, scores).tolist() == [5, 1, 3, 0, 4, 8, 2, 7, 6]
    assert ranking(np, scores, 4).tolist() == [5, 1, 3, 0]
    assert ranking(np, scores, 0).tolist() == []
    assert ranking(np, scores[:0]).tolist() == []
    many = np.random.default_rng(0).integers(-5, 5, 1000).astype(dtype)
    assert ranking(np, many, 300).tolist() == np.argsort(-many, kind="stable")[:300].tolist()


def test_all_ways_of_suppression_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes by listed pairs, and as matrices; blocks of any length; and no more than are wanted."""
    rng = np.random.default_rng(1)
    corners = rng.integers(0, 40, (500, 2)).astype(np.float32)
    boxes = edges_of(np, np.concatenate([corners, corners + rng.integers(1, 20, (500, 2))], axis=1).astype(np.float32))
    classes = rng.integers(0, 9, 500)
    rule = suppression.Rule(0.25)
    listed = survivors(np, boxes, rule, classes).tolist()
    whole = in_blocks(np, boxes, rule).tolist()
    assert 0 < len(whole) < len(listed) < 500
    assert survivors(np, boxes, rule, np.zeros(500, int)).tolist() == whole
    for block in (1, 7, 1000):
        monkeypatch.setattr(suppression, "BLOCK", block)
        monkeypatch.setattr(suppression, "LISTED", 0)
        monkeypatch.setattr(suppression, "TOGETHER", 100)
        assert survivors(np, boxes, rule, classes).tolist() == listed
        assert in_blocks(np, boxes, rule).tolist() == whole
        assert in_blocks(np, boxes, rule, 5).tolist() == whole[:5]


# ---- the single-shot detector

QUARTERS = [[left / 2, top / 2, left / 2 + 0.5, top / 2 + 0.5] for top in range(2) for left in range(2)]
MIDDLE = [0.25, 0.25, 0.75, 0.75]
NONE = [-1.0] * 5


def test_prior_boxes() -> None:
    boxes = contrib.MultiBoxPrior(nd.zeros((1, 1, 1, 2)), (0.5, 0.25), (1, 4), True, offsets=(0, 0.5))
    equal(
        boxes,
        [[[0.125, 0, 0.375, 0.25], [0.1875, 0, 0.3125, 0.125], [0, 0, 0.5, 0.125],
          [0.625, 0, 0.875, 0.25], [0.6875, 0, 0.8125, 0.125], [0.5, 0, 1, 0.125]]],
    )  # fmt: skip


def test_targets_of_equal_overlaps() -> None:
    """The first anchor for the first object; anchors that mining leaves out, and images without objects, are ignored."""
    labels = [
        [[1, *MIDDLE], [0, 0, 0, 1, 1], NONE], [[2, 0, 0, 0.5, 0.5], [2, 0, 0, 0.5, 0.5], [0, 0.5, 0.25, 1, 0.75]], [NONE] * 3,
    ]  # fmt: skip
    offsets, mask, classes = contrib.MultiBoxTarget(
        nd.array([[*QUARTERS, MIDDLE]]), nd.array(labels), nd.zeros((3, 3, 5)), 0.25, ignore_label=-2, negative_mining_ratio=1
    )
    equal(classes, [[1, 0, 0, -2, 2], [3, 1, 0, 1, 3], [-2] * 5])
    positive = np.repeat([[1, 0, 0, 0, 1], [1, 1, 0, 1, 1], [0] * 5], 4, axis=1)
    equal(mask, positive)
    want = np.zeros((3, 5, 4))
    want[0, 0] = 5, 5, 3.465735912322998, 3.465735912322998
    want[1, 1], want[1, 3], want[1, 4] = (0, 5, 0, 0), (0, -5, 0, 0), (-5, -5, 0, 0)
    equal(offsets, want.reshape(3, 20))


def test_detections_that_are_left_over() -> None:
    """Of those that are not among the best the rows stay as they were before the order was made, without a class."""
    probability = [[[0.1, 0.1, 0.7, 0.1, 0.5], [0.6, 0.45, 0.1, 0.45, 0.25], [0.3, 0.45, 0.2, 0.45, 0.25]]]
    offsets = np.zeros((1, 20))
    offsets[0, 2], offsets[0, 4], offsets[0, 16:] = 1.5, -1, (1, 1, -1, -1)
    found = contrib.MultiBoxDetection(
        nd.array(probability), nd.array(offsets), nd.array([[*QUARTERS, [0, 0, 0.5, 0.5]]]), nms_topk=3, variances=(0.5,) * 4
    )
    equal(
        found,
        [[[0, 0.6, 0, 0, 0.7792500257492065, 0.5], [-1, 0.45, 0.25, 0, 0.75, 0.5], [0, 0.45, 0.5, 0.5, 1, 1],
          [-1, 0.45, 0.5, 0.5, 1, 1], [-1, 0.25, 0.3483673334121704, 0.3483673334121704, 0.6516326665878296, 0.6516326665878296]]],
    )  # fmt: skip


def test_detections_without_numbers() -> None:
    """A NaN is no probability."""
    probability = nd.array([[[np.nan, 0.1], [np.nan, 0.6], [0.2, np.nan]]])
    found = contrib.MultiBoxDetection(probability, nd.zeros((1, 8)), nd.array([QUARTERS[:2]])).asnumpy()
    assert found[0, :, 0].tolist() == [0, 1]


def test_proposals_are_repeated() -> None:
    probability, offsets = np.zeros((1, 4, 2, 2)), np.zeros((1, 8, 2, 2))
    probability[0, 2], probability[0, 3] = [[0.5, 0.75], [0.75, 0.25]], [[0.75, 0.5], [0.25, 0.75]]
    offsets[0, 0, 0, 1], offsets[0, 7, 1, 1] = 0.5, 1
    regions, scores = contrib.Proposal(
        nd.array(probability), nd.array(offsets), nd.array([[16, 13, 1]]),
        rpn_post_nms_top_n=5, scales=(1,), ratios=(1, 2), feature_stride=8, rpn_min_size=4, threshold=0.3, output_score=True,
    )  # fmt: skip
    first = [0, 1, 0, 6, 9]
    equal(regions, [first, [0, 0, 8, 7, 15], [0, 10, -2, 14, 9], [0, 8, 8, 12, 15], first])
    equal(scores, [[0.75], [0.75], [-1], [-1], [0.75]])


# ---- regions of interest


def test_roi_pooling_of_odd_regions() -> None:
    data = (np.arange(24) % 7).reshape(1, 1, 4, 6)
    rois = [[0, 1, 1, 5, 5], [0, -1, 3, 9, 3], [0, 7, 5, 4, 2], [3, 0, 0, 1, 1]]
    result, slope, to_rois = with_slopes(lambda x, r: nd.ROIPooling(x, r, (2, 2), 0.5), data, rois)
    equal(result, [[[[6, 2], [6, 6]]], [[[6, 3], [6, 3]]], [[[1, 1], [1, 1]]], [[[0, 0], [0, 0]]]])
    equal(slope, [[[[0] * 6, [0, 0, 0, 2, 0, 0], [0, 16, 0, 0, 0, 14], [0, 0, 4, 0, 42, 0]]]])
    equal(to_rois, np.zeros((4, 5)))


def test_roi_pooling_passes_over_what_is_no_number() -> None:
    data = nd.array([[[[np.nan, 1], [-np.inf, np.nan]]]])
    result = nd.ROIPooling(data, nd.array([[0, 0, 0, 1, 1], [0, 0, 1, 1, 1]]), (1, 1), 1.0)
    equal(result, [[[[1]]], [[[np.finfo(np.float32).min]]]])


def test_roi_align_at_edges() -> None:
    rois = [[0, -2, -2, 0, 0], [0, 3, 2, 5, 4], [0, 0, 0, 3, 2], [0, 2, 2, 1, 1]]
    result, slope, _ = with_slopes(lambda x, r: contrib.ROIAlign(x, r, (1, 2), 1.0, 2), np.arange(12).reshape(1, 1, 3, 4), rois)
    equal(result, np.reshape([0, 0, 5.5, 0, 4.75, 6.25, 10.25, 10.75], (4, 1, 1, 2)))
    equal(
        slope,
        [[[[1.390625, 0.875, 1.015625, 0.46875], [0.78125, 1.75, 2.03125, 0.9375], [0.390625, 0.875, 8.265625, 9.71875]]]],
    )  # fmt: skip


def test_roi_align_of_no_image_is_zero() -> None:
    """MXNet leaves most of it as the memory was."""
    result = contrib.ROIAlign(nd.ones((1, 3, 4, 4)), nd.array([[-1, 0, 0, 3, 3], [0, 0, 0, 3, 3]]), (2, 2), 1.0)
    equal(result, np.repeat([0.0, 1.0], 12).reshape(2, 3, 2, 2))


def test_rotated_regions() -> None:
    data = nd.arange(12).reshape((1, 1, 3, 4))
    rois = nd.array([[0, 1.5, 1, 2, 1, 0], [0, 1.5, 1, 2, 1, 90], [0, 1.5, 1, 2, 2, 45]])
    result = contrib.RROIAlign(data, rois, (1, 2), 1.0, 1)
    equal(result, np.reshape([5, 6, 7.5, 3.5, 6.560660362243652, 4.439340114593506], (3, 1, 1, 2)))


PLANES = np.arange(32).reshape(1, 8, 2, 2)


def test_position_sensitive_pooling() -> None:
    rois = [[0, 0, 0, 1, 1], [0, -1, 0.5, 1, 2]]
    result, slope, _ = with_slopes(lambda x, r: contrib.PSROIPooling(x, r, 1.0, 2, 2), PLANES, rois)
    equal(result, [[[[0, 5], [10, 15]], [[16, 21], [26, 31]]], [[[2, 6.5], [0, 0]], [[18, 22.5], [0, 0]]]])
    equal(
        slope,
        [[[[1, 0], [9, 0]], [[0, 2], [5, 5]], [[0, 0], [3, 0]], [[0, 0], [0, 4]],
          [[5, 0], [13, 0]], [[0, 6], [7, 7]], [[0, 0], [7, 0]], [[0, 0], [0, 8]]]],
    )  # fmt: skip


def test_moved_bins_on_pixels() -> None:
    """A point that lies on a pixel sees no slope."""
    trans = [[[[0.5]], [[-0.25]]], [[[0]], [[1]]]]
    rois = [[0, 0, 0, 1, 1], [0, -1, 0, 1, 2]]
    call = lambda x, r, t: contrib.DeformablePSROIPooling(x, r, t, 1.0, 2, 2, 2, 1, 2, 0.5)  # noqa: E731
    result, slope, _, to_trans = with_slopes(call, PLANES, rois, trans)
    equal(result, [[[[0.25, 5], [9.25, 14]], [[16.25, 21], [25.25, 30]]], [[[0, 6.375], [0, 0]], [[0, 22.375], [0, 0]]]])
    equal(
        slope,
        [[[[0.75, 0.25], [0, 0]], [[0, 2], [6.25, 3.75]], [[1.125, 0.375], [1.125, 0.375]], [[0, 2], [0, 2]],
          [[3.75, 1.25], [0, 0]], [[0, 6], [8.75, 5.25]], [[2.625, 0.875], [2.625, 0.875]], [[0, 4], [0, 4]]]],
    )  # fmt: skip
    equal(to_trans, [[[[8]], [[44]]], [[[18]], [[0]]]])


# ---- deformable convolution

OFFSETS = np.zeros((1, 8, 2, 2))
OFFSETS[0, 0, 0, 0], OFFSETS[0, 1, 1, 1], OFFSETS[0, 5, 0, 1], OFFSETS[0, 6, 1, 1], OFFSETS[0, 7, 0, 0] = 1, -1, 0.5, 0.5, -0.25
SQUARES = (np.arange(9) ** 2).reshape(1, 1, 3, 3)
FILTER = [[[[1, 2], [3, 4]]]]


def test_offsets_of_whole_pixels() -> None:
    """Training begins with offsets of 0; there the slope is that towards the next pixel, and at the last one there is none."""
    call = lambda x, o, w: contrib.DeformableConvolution(x, o, w, kernel=(2, 2), num_filter=1, no_bias=True)  # noqa: E731
    result, to_data, to_offset, to_weight = with_slopes(call, SQUARES, OFFSETS, FILTER)
    equal(result, [[[[95, 170.5], [345, 462]]]])
    equal(to_data, [[[[0, 4, 4], [12, 12, 19], [9, 24, 16]]]])
    equal(
        to_offset,
        [[[[27, 30], [81, 108]], [[7, 6], [21, 28]], [[30, 84], [198, 312]], [[6, 0], [54, 0]],
          [[81, 216], [0, 0]], [[21, 54], [117, 180]], [[126, 312], [0, 0]], [[28, 0], [180, 0]]]],
    )  # fmt: skip
    equal(to_weight, [[[[74, 157], [354, 467.25]]]])


def test_modulated_points_around_the_image() -> None:
    moved = OFFSETS.copy()
    moved[0, 2, 1, 0], moved[0, 3, 0, 0] = -1.5, 1.5
    mask = nd.arange(16).reshape((1, 4, 2, 2)) / 4
    result = contrib.ModulatedDeformableConvolution(
        nd.array(SQUARES), nd.array(moved), mask, nd.array(FILTER), kernel=(2, 2), num_filter=1, no_bias=True
    )
    equal(result, [[[[229, 473.625], [962, 978.5]]]])


def test_without_offsets_it_is_a_convolution() -> None:
    rng = np.random.default_rng(2)
    data, weight, bias = (nd.array(rng.standard_normal(shape)) for shape in ((2, 6, 7, 8), (4, 3, 3, 3), (4,)))
    how = {"kernel": (3, 3), "stride": (2, 1), "pad": (1, 2), "num_filter": 4, "num_group": 2}
    plain = nd.Convolution(data, weight, bias, **how)
    counts = plain.shape[2:]
    framed = contrib.ModulatedDeformableConvolution(
        data, nd.zeros((2, 18, *counts)), nd.ones((2, 9, *counts)), weight, bias, **how
    )
    equal(framed, plain.asnumpy(), 1e-5)
    equal(contrib.DeformableConvolution(data, nd.zeros((2, 18, *counts)), weight, bias, **how), plain.asnumpy(), 1e-5)


def test_offsets_that_are_no_numbers_lie_outside() -> None:
    offsets = nd.array(np.full((1, 2, 2, 2), np.nan))
    result = contrib.DeformableConvolution(
        nd.ones((1, 1, 2, 2)), offsets, nd.ones((1, 1, 1, 1)), kernel=(1, 1), num_filter=1, no_bias=True
    )
    equal(result, np.zeros((1, 1, 2, 2)))


@pytest.mark.parametrize("call", [
    lambda x, r: contrib.DeformablePSROIPooling(x, r, spatial_scale=1.0, output_dim=1, group_size=1, pooled_size=1, no_trans=True),
    lambda x, r: contrib.DeformableConvolution(
        x, nd.zeros((1, 2, 3, 3)), nd.ones((1, 1, 1, 1)), kernel=(1, 1), num_filter=1, no_bias=True
    ),
])  # fmt: skip
def test_a_second_derivative_is_refused(call: Any) -> None:
    data, rois = nd.ones((1, 1, 3, 3)), nd.zeros((1, 5))
    data.attach_grad()
    with autograd.record():
        slope = autograd.grad(call(data, rois).square(), data, create_graph=True)
    with pytest.raises(MXNetError, match="has a first derivative only"):
        slope.backward()


# ---- together


class Detector(gluon.HybridBlock):
    """A single-shot detector with one feature map: the usual chain of operators."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        with self.name_scope():
            self.body = gluon.nn.Conv2D(8, 3, strides=2, padding=1)
            self.classes = gluon.nn.Conv2D(3 * 4, 3, padding=1)
            self.offsets = gluon.nn.Conv2D(4 * 4, 3, padding=1)

    def hybrid_forward(self, F: Any, x: Any) -> tuple[Any, ...]:
        features = F.relu(self.body(x))
        anchors = F.contrib.MultiBoxPrior(features, sizes=(0.3, 0.2), ratios=(1, 2, 0.5))
        scores = F.reshape(F.transpose(self.classes(features), (0, 2, 3, 1)), (0, -1, 3))
        offsets = F.flatten(F.transpose(self.offsets(features), (0, 2, 3, 1)))
        found = F.contrib.MultiBoxDetection(F.transpose(F.softmax(scores), (0, 2, 1)), offsets, anchors, nms_topk=20)
        regions = F.clip(
            F.slice_axis(F.reshape(found, (-1, 6)), axis=1, begin=1, end=6), 0, 1
        )  # the score is a number of an image, too
        pooled = F.ROIPooling(features, F.BlockGrad(regions) * 8, (2, 2), 1.0)
        return anchors, F.transpose(scores, (0, 2, 1)), offsets, F.contrib.box_nms(found, topk=5, id_index=0), pooled


def test_a_detector_trains_and_travels(tmp_path: Any) -> None:
    """One by one, hybridized, and exported and read again: the same values and gradients."""
    mx.random.seed(4)
    net = Detector(prefix="detector_")
    net.initialize(mx.init.Xavier())
    x = nd.random.normal(shape=(2, 3, 16, 16))
    label = nd.array([[[0, 0.1, 0.1, 0.4, 0.5], [1, 0.5, 0.4, 0.9, 0.8]], [[1, 0.2, 0.3, 0.6, 0.6], NONE]])

    def step() -> tuple[list[np.ndarray], list[np.ndarray]]:
        with autograd.record():
            anchors, scores, offsets, found, pooled = net(x)
            wanted, mask, classes = contrib.MultiBoxTarget(anchors, label, scores, negative_mining_ratio=3)
            likely = nd.pick(nd.log_softmax(scores, axis=1), classes, axis=1) * (classes >= 0)
            loss = nd.smooth_l1((offsets - wanted) * mask, scalar=1.0).sum() - likely.sum() + pooled.sum()
        loss.backward()
        slopes = [parameter.grad().asnumpy() for parameter in net.collect_params().values()]
        return [each.asnumpy() for each in (anchors, scores, offsets, found, pooled)], slopes

    values, slopes = step()
    assert all(np.abs(slope).sum() > 0 for slope in slopes)
    net.hybridize()
    for mine, its in zip([each for part in step() for each in part], values + slopes):
        np.testing.assert_allclose(mine, its, 1e-4, 1e-5)
    net.export(str(tmp_path / "detector"))
    again = gluon.SymbolBlock.imports(str(tmp_path / "detector-symbol.json"), ["data"], str(tmp_path / "detector-0000.params"))
    for mine, its in zip(again(x), values):
        np.testing.assert_allclose(mine.asnumpy(), its, 1e-4, 1e-5)
