"""ImageDetRecordIter: images and boxes are those of MXNet 1.9.1; boxes stay on their objects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import minimx as mx
from minimx.base import FileFormatError
from minimx.io.boxing import BoxAugmentation, Objects

from .image_cases import BOXES

pytest.importorskip("PIL")

FILES = Path(__file__).parents[1] / "data" / "io"
VALUES = np.load(FILES / "boxes.npz")


def opened(name="boxes", shape=(3, 12, 12), batch_size=5, **options):
    return mx.io.ImageDetRecordIter(
        path_imgrec=FILES / f"{name}.rec", data_shape=shape, batch_size=batch_size, verbose=False, **options
    )


@pytest.mark.parametrize("case", BOXES)
def test_images_and_labels_are_those_of_mxnet(case):
    batches = opened(**BOXES[case])
    batch = batches.next()
    np.testing.assert_array_equal(batch.data[0].asnumpy(), VALUES[case])
    np.testing.assert_array_equal(batch.label[0].asnumpy(), VALUES[f"{case}, labels"])
    np.testing.assert_array_equal(batch.index, [100, 101, 102, 103, 104])
    assert batches.provide_label == [("softmax_label", VALUES[f"{case}, labels"].shape)]


def test_passes():
    batches = opened(batch_size=2)
    assert [(batch.index.tolist(), batch.pad) for batch in batches] == [([100, 101], 0), ([102, 103], 0), ([104, 100], 1)]
    batches.reset()
    assert batches.next().index.tolist() == [101, 102]
    short = list(opened(batch_size=2, round_batch=False))[-1]
    assert short.pad == 1
    assert (short.label[0].asnumpy()[1] == -1).all()


def blank(labels, height=40, width=60):
    """An image that is 255 where an object is, and its objects."""
    objects = Objects(np.array(labels, np.float32), "image")
    image = np.zeros((height, width, 3), np.uint8)
    for row in objects.rows:
        left, top, right, bottom = (row[1:5] * [width, height, width, height]).astype(int)
        image[top:bottom, left:right] = 255
    return image, objects


@pytest.mark.parametrize(
    "options",
    [
        {"rand_mirror_prob": 1},
        {"rand_pad_prob": 1, "max_pad_scale": 2, "fill_value": 0},
        {"rand_crop_prob": 1, "min_crop_scales": (0.6,), "max_crop_scales": (0.9,), "min_crop_object_coverages": (0.95,)},
        {"rand_crop_prob": 1, "num_crop_sampler": 2, "min_crop_scales": (0.5, 0.7), "max_crop_trials": (50,), "crop_emit_mode": "overlap",
         "min_crop_aspect_ratios": (0.5,), "max_crop_aspect_ratios": (2.0,)},
    ],
)  # fmt: skip
def test_boxes_stay_on_their_objects(options):
    how = BoxAugmentation(**options)
    how.check("test")
    changed = 0
    for seed in range(20):
        image, objects = blank([2, 5, 1, 0.2, 0.3, 0.5, 0.6])
        result = how.applied(image, objects, (80, 120), np.random.Generator(np.random.Philox(seed)))
        assert result.shape == (80, 120, 3)
        _, left, top, right, bottom = objects.rows[0]
        changed += (left, top) != (np.float32(0.2), np.float32(0.3))
        rows, columns = np.nonzero(result[:, :, 0] > 128)
        found = [columns.min() / 120, rows.min() / 80, (columns.max() + 1) / 120, (rows.max() + 1) / 80]
        np.testing.assert_allclose(found, [left, top, right, bottom], atol=0.06)  # of a few old pixels
    assert changed > 10


def test_colours_and_random_numbers():
    options = {
        "max_random_hue": 20, "random_hue_prob": 0.5, "max_random_saturation": 50, "random_saturation_prob": 0.5,
        "max_random_illumination": 50, "random_illumination_prob": 0.5, "max_random_contrast": 0.5, "random_contrast_prob": 0.5,
        "rand_mirror_prob": 0.5, "rand_crop_prob": 0.5, "rand_pad_prob": 0.5, "max_pad_scale": 2, "inter_method": 10,
    }  # fmt: skip
    one, other = opened(preprocess_threads=1, **options), opened(**options)
    for _ in range(3):
        first, second = one.next(), other.next()
        np.testing.assert_array_equal(first.data[0].asnumpy(), second.data[0].asnumpy())
        np.testing.assert_array_equal(first.label[0].asnumpy(), second.label[0].asnumpy())
        one.reset()
        other.reset()


def test_wrong_labels():
    with pytest.raises(FileFormatError, match=r"png.rec, byte 0: 1 labels that begin with \[0.0\] describe no objects"):
        opened("png")
    with pytest.raises(FileFormatError, match=r"there is place for 8; make label_pad_width larger"):
        opened(label_pad_width=8)
    with pytest.raises(FileFormatError, match=r"has 7 labels, but label_width is 12"):
        opened(label_width=12)
    for labels in ([1, 5, 0, 0, 0, 1, 1], [2, 4, 0, 0, 0, 1, 1], [2, 5, 0, 0, 0, 1, 1, 1], [20, 5, 0, 0, 0, 1, 1]):
        with pytest.raises(FileFormatError, match="describe no objects"):
            Objects(np.array(labels, np.float32), "image")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rand_crop": True}, "there is no option 'rand_crop'; did you mean 'rand_crop_prob'"),
        ({"resize_mode": "stretch"}, "choose 'force', 'shrink' or 'fit'"),
        ({"crop_emit_mode": "all"}, "choose 'center' or 'overlap'"),
        ({"num_crop_sampler": 3, "min_crop_scales": (0.1, 0.2)}, "one number is wanted, or num_crop_sampler=3"),
        (
            {"min_crop_overlaps": (0.9,), "max_crop_overlaps": (0.1,)},
            "min_crop_overlaps is 0.9; it must be 0 or more, and not more",
        ),
        ({"max_crop_scales": (1.5,)}, "max_crop_scales is 1.5; more than the smallest is wanted, at most 1"),
        ({"aug_seq": "aug_default"}, "there is only 'det_aug_default'"),
        ({"dtype": "uint8"}, "batches are float32"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        opened(**options)
