"""Images with boxes: augmenters draw and move boxes as MXNet 1.9.1 (recorded values), ImageDetIter makes batches of them."""

from __future__ import annotations

import json
import logging
import random

import numpy as np
import pytest

import minimx as mx
from minimx import image
from minimx.base import ArgumentError, FileFormatError
from minimx.image import det

from .pictures import LARGE, colour, file_of

BOXES = np.array([[0, 0.1, 0.1, 0.4, 0.5], [1, 0.5, 0.5, 0.9, 0.95]], np.float32)


@pytest.fixture
def large():
    return mx.nd.array(LARGE, dtype="uint8")


def checked(augmenter, source):
    """Image and boxes after an augmenter, which must leave alone what it was given."""
    boxes = BOXES.copy()
    changed, moved = augmenter(source, boxes)
    np.testing.assert_array_equal(source.asnumpy(), LARGE)
    np.testing.assert_array_equal(boxes, BOXES)
    assert changed.dtype == np.uint8
    return changed.asnumpy(), moved


# ---- augmenters


@pytest.mark.parametrize(("seed", "shape", "total", "boxes"), [
    (0, (45, 59, 3), 1015779, [[0, 0, 0, 0.38983053, 0.4], [1, 0.5254237, 0.4, 1, 1]]),
    (1, (21, 17, 3), 136354, [[0, 0, 0, 1, 0.6666666]]),
    (2, (17, 22, 3), 143275, [[0, 0.13636364, 0.05882353, 1, 1]]),
])  # fmt: skip
def test_random_crop(large, seed, shape, total, boxes):
    random.seed(seed)
    part, moved = checked(det.DetRandomCropAug(0.3), large)
    assert (part.shape, int(part.astype(int).sum())) == (shape, total)
    np.testing.assert_allclose(moved, boxes, atol=1e-6)


@pytest.mark.parametrize(("seed", "shape", "total", "boxes"), [
    (0, (90, 112, 3), 3863136, [[0, 0.21428572, 0.07777778, 0.42857143, 0.34444445], [1, 0.5, 0.34444445, 0.78571427, 0.64444447]]),
    (1, (101, 84, 3), 3250272, [[0, 0.0952381, 0.21782178, 0.3809524, 0.45544556], [1, 0.4761905, 0.45544556, 0.85714287, 0.72277230]]),
    (2, (64, 83, 3), 2032224, [[0, 0.09638554, 0.09375, 0.38554215, 0.46875], [1, 0.4819277, 0.46875, 0.8674699, 0.890625]]),
])  # fmt: skip
def test_random_pad(large, seed, shape, total, boxes):
    random.seed(seed)
    padded, moved = checked(det.DetRandomPadAug(), large)
    assert (padded.shape, int(padded.astype(int).sum())) == (shape, total)
    np.testing.assert_allclose(moved, boxes, atol=1e-6)


def test_random_selection(large):
    chosen = det.DetRandomSelectAug([det.DetHorizontalFlipAug(1), det.DetRandomCropAug()], 0.3)
    shapes = []
    for seed in range(3):
        random.seed(seed)
        shapes.append(checked(chosen, large)[0].shape)
    assert shapes == [(60, 80, 3), (60, 80, 3), (40, 32, 3)]
    assert checked(det.DetRandomSelectAug([]), large)[0].shape == (60, 80, 3)
    assert det.DetRandomSelectAug(det.DetHorizontalFlipAug(1)).aug_list[0].p == 1


def test_mirror(large):
    mirrored, moved = checked(det.DetHorizontalFlipAug(1), large)
    np.testing.assert_array_equal(mirrored, LARGE[:, ::-1])
    np.testing.assert_allclose(moved, [[0, 0.6, 0.1, 0.9, 0.5], [1, 0.1, 0.5, 0.5, 0.95]], atol=1e-6)
    assert checked(det.DetHorizontalFlipAug(0), large)[1] is not None


def test_boxes_stay_on_their_objects():
    """A white rectangle on black is where its box says, whatever is done to both."""
    pixels = np.zeros((60, 80, 3), np.uint8)
    pixels[12:36, 20:60] = 255
    box = np.array([[7, 20 / 80, 12 / 60, 60 / 80, 36 / 60]], np.float32)
    augmenters = det.CreateDetAugmenter(
        (3, 40, 50), rand_crop=0.5, rand_pad=0.7, rand_mirror=True, pad_val=0, min_object_covered=0.9, inter_method=0
    )
    random.seed(5)
    for _ in range(20):
        changed, moved = mx.nd.array(pixels, dtype="uint8"), box
        for augmenter in augmenters:
            changed, moved = augmenter(changed, moved)
        rows, columns = np.nonzero(changed.asnumpy()[:, :, 0])
        seen = [columns.min() / 50, rows.min() / 40, (columns.max() + 1) / 50, (rows.max() + 1) / 40]
        np.testing.assert_allclose(moved[0, 1:], seen, atol=0.05)  # a pixel, or two
        assert moved[0, 0] == 7


def test_dumps():
    assert det.CreateMultiRandCropAugmenter([0.1, 0.5], skip_prob=0.5).dumps() == ["detrandomselectaug", [
        '["detrandomcropaug", {"min_object_covered": 0.1, "aspect_ratio_range": [0.75, 1.33], "area_range": [0.05, 1.0], '
        '"min_eject_coverage": 0.3, "max_attempts": 50}]',
        '["detrandomcropaug", {"min_object_covered": 0.5, "aspect_ratio_range": [0.75, 1.33], "area_range": [0.05, 1.0], '
        '"min_eject_coverage": 0.3, "max_attempts": 50}]',
    ]]  # fmt: skip
    assert json.loads(det.DetRandomPadAug().dumps()) == [
        "detrandompadaug",
        {"aspect_ratio_range": [0.75, 1.33], "area_range": [1.0, 3.0], "max_attempts": 50, "pad_val": [128, 128, 128]},
    ]


def test_the_usual_list():
    augmenters = image.CreateDetAugmenter(
        (3, 30, 40), resize=64, rand_crop=1, rand_pad=0.5, rand_gray=0.1, rand_mirror=True, mean=True, std=True, brightness=0.1, hue=0.1,
        pca_noise=0.1,
    )  # fmt: skip
    kinds = [type(each.augmenter if isinstance(each, det.DetBorrowAug) else each).__name__ for each in augmenters]
    assert kinds == [
        "ResizeAug", "DetRandomSelectAug", "DetHorizontalFlipAug", "DetRandomSelectAug", "ForceResizeAug", "CastAug", "ColorJitterAug",
        "HueJitterAug", "LightingAug", "RandomGrayAug", "ColorNormalizeAug",
    ]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: det.DetAugmenter()(None, None), NotImplementedError, "DetAugmenter must override __call__"),
    (lambda: det.DetBorrowAug(3), TypeError, "an Augmenter is wanted, got 3"),
    (lambda: det.DetRandomSelectAug([image.CastAug()]), ValueError, "a CastAug is no DetAugmenter"),
    (lambda: det.DetRandomCropAug(area_range=(0.9, 0.1)), ArgumentError, r"area_range is \(0.9, 0.1\); a lower and an upper bound"),
    (lambda: det.DetRandomCropAug(aspect_ratio_range=(0, 1)), ArgumentError, r"width / height is more than 0"),
    (lambda: det.DetRandomCropAug(min_object_covered="all"), ArgumentError, "min_object_covered must be a number"),
    (lambda: det.DetRandomPadAug(area_range=(0.5, 1)), ArgumentError, "its upper end must be more than 1"),
    (lambda: det.DetRandomPadAug(area_range=(1, 2, 3)), ArgumentError, r"area_range is \(1, 2, 3\)"),
    (lambda: det.CreateMultiRandCropAugmenter([0.1, 0.2], [(1, 1)] * 3), AssertionError, "min_object_covered has 2 values, another .* 3"),
    (lambda: det.CreateDetAugmenter((30, 40)), ValueError, r"data_shape is \(30, 40\)"),
    (lambda: det.CreateDetAugmenter((3, 30, 40), rand_crop=1.5), ArgumentError, "skip_prob is -0.5; a probability"),
])  # fmt: skip
def test_bad_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_canvas_of_another_kind_of_image():
    pad = det.DetRandomPadAug(pad_val=(1, 2), area_range=(2, 4))
    with pytest.raises(ArgumentError, match=r"pad_val is \(1, 2\), an image of shape \(20, 24, 3\) needs 3 numbers"):
        pad(mx.nd.array(colour(1)), BOXES)


# ---- the iterator

SHAPE = (3, 8, 10)


def label(*boxes):
    return [2, 5, *(number for box in boxes for number in box)]


@pytest.fixture
def listed(tmp_path):
    """Images 0, 1, 2, with one, two and three boxes of the class of their number."""
    items = []
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(file_of(colour(number)))
        items.append([*label(*[(number, 0.1, 0.2, 0.5 + box / 10, 0.9) for box in range(number + 1)]), f"{number}.png"])
    return items


def test_batches(tmp_path, listed):
    iterator = image.ImageDetIter(2, SHAPE, imglist=listed, path_root=tmp_path)
    assert (iterator.label_shape, iterator.provide_label) == ((3, 5), [("label", (2, 3, 5))])
    for _ in range(2):
        batches = [(batch.data[0].asnumpy(), batch.label[0].asnumpy(), batch.pad) for batch in iterator]
        assert [pad for _, _, pad in batches] == [0, 1]
        assert batches[0][1][:, :, 0].tolist() == [[0, -1, -1], [1, 1, -1]]
        assert batches[1][1][:, :, 0].tolist() == [[2, 2, 2], [0, -1, -1]]
        np.testing.assert_allclose(batches[0][1][1], [[1, 0.1, 0.2, 0.5, 0.9], [1, 0.1, 0.2, 0.6, 0.9], [-1] * 5], atol=1e-6)
        assert batches[1][0][:, 0, 0, 0].tolist() == [20, 0]
        iterator.reset()


@pytest.mark.parametrize(("handle", "counts"), [("pad", [2, 2]), ("discard", [1, 1]), ("roll_over", [1, 2])])
def test_the_last_batch(tmp_path, listed, handle, counts):
    iterator = image.ImageDetIter(2, SHAPE, imglist=listed, path_root=tmp_path, last_batch_handle=handle)
    found = []
    for _ in range(2):
        found.append(len(list(iterator)))
        iterator.reset()
    assert found == counts


def test_from_records(tmp_path, listed):
    with mx.recordio.MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "w") as record:
        for number, item in enumerate(listed):
            record.write_idx(number, mx.recordio.pack((0, item[:-1], number, 0), (tmp_path / item[-1]).read_bytes()))
    for how in ({}, {"path_imgidx": tmp_path / "a.idx", "shuffle": True}):
        iterator = image.ImageDetIter(3, SHAPE, path_imgrec=tmp_path / "a.rec", rand_crop=1, rand_pad=1, rand_mirror=True, **how)
        assert iterator.label_shape == (3, 5)
        assert sorted(iterator.next().label[0].asnumpy()[:, 0, 0].tolist()) == [0, 1, 2]


def test_header_and_more_numbers(tmp_path):
    (tmp_path / "a.png").write_bytes(file_of(colour(1)))
    given = [[4, 6, 77, 88, 3, 0.1, 0.2, 0.3, 0.4, 9, 4, 0.5, 0.5, 0.4, 0.9, 9], "a.png"]  # the second box is empty
    iterator = image.ImageDetIter(1, SHAPE, imglist=[given], path_root=tmp_path)
    np.testing.assert_allclose(iterator.next().label[0].asnumpy(), [[[3, 0.1, 0.2, 0.3, 0.4, 9]]], atol=1e-6)


@pytest.mark.parametrize(("numbers", "message"), [
    ([1, 2, 3], r"label of image filename: 0.png has shape \(3,\): it has too few numbers for a box"),
    ([2, 4, *range(8)], "it begins with 2 and 4; a header has at least 2 numbers, a box at least 5"),
    ([1, 5, *range(8)], "it begins with 1 and 5"),
    ([2, 5, *range(8)], "8 numbers after its header are not boxes of 5"),
    ([20, 5, *range(8)], "numbers after its header are not boxes"),
    ([2, 5, 0, 0.5, 0.5, 0.5, 0.6], "none of its boxes has right > left and bottom > top"),
])  # fmt: skip
def test_bad_labels(tmp_path, listed, numbers, message):
    with pytest.raises(FileFormatError, match=message):
        image.ImageDetIter(1, SHAPE, imglist=[[numbers, "0.png"]], path_root=tmp_path)


def test_boxes_must_be_alike(tmp_path, listed):
    wider = [[2, 6, 0, 0.1, 0.1, 0.2, 0.2, 0], "0.png"]
    with pytest.raises(ArgumentError, match="has boxes of 6 numbers, those before it 5; all must be alike"):
        image.ImageDetIter(1, SHAPE, imglist=[*listed, wider], path_root=tmp_path)


def test_augmenters_that_lose_all_boxes(tmp_path, listed, caplog):
    class Lose(det.DetAugmenter):
        def __call__(self, src, label):
            return src, label[:0] if label[0, 0] == 1 else label

    chosen = [Lose(), det.DetBorrowAug(image.ForceResizeAug((10, 8)))]
    with caplog.at_level(logging.DEBUG, "minimx.image"):
        iterator = image.ImageDetIter(1, SHAPE, imglist=listed, path_root=tmp_path, aug_list=chosen)
        assert [batch.label[0].asnumpy()[0, 0, 0] for batch in iterator] == [0, 2]
    assert "filename: 1.png is left out: no valid box is left" in caplog.text

    class LoseAll(det.DetAugmenter):
        def __call__(self, src, label):
            return src, label[:0]

    with pytest.raises(ArgumentError, match="imglist has no image that could be used"):
        image.ImageDetIter(2, SHAPE, imglist=listed, path_root=tmp_path, aug_list=[LoseAll()]).next()


def test_a_fault_in_an_augmenter_is_no_bad_sample(tmp_path, listed):
    chosen = [det.DetBorrowAug(image.HueJitterAug(0.1))]  # of bytes
    with pytest.raises(TypeError, match="dtype uint8"):
        image.ImageDetIter(1, SHAPE, imglist=listed, path_root=tmp_path, aug_list=chosen).next()


def test_reshape_and_sync(tmp_path, listed, caplog):
    many = image.ImageDetIter(1, SHAPE, imglist=listed, path_root=tmp_path)
    few = image.ImageDetIter(1, SHAPE, imglist=listed[:2], path_root=tmp_path)
    with caplog.at_level(logging.INFO, "minimx.image"):
        assert many.sync_label_shape(few, verbose=True) is few
    assert few.label_shape == many.label_shape == (3, 5)
    assert "label_shape is (3, 5) now" in caplog.text
    assert few.next().label[0].shape == (1, 3, 5)
    few.reshape(data_shape=(3, 4, 6), label_shape=(7, 5))
    assert (few.provide_data, few.provide_label) == ([("data", (1, 3, 4, 6))], [("label", (1, 7, 5))])
    for shape, message in (
        ((2, 5), "fewer boxes"),
        ((9, 6), "6 numbers a box, the data 5"),
        ((9,), r"\(boxes, numbers of a box\) is wanted"),
    ):
        with pytest.raises(ValueError, match=message):
            few.reshape(label_shape=shape)
    with pytest.raises(ValueError, match="3 channels"):
        few.reshape(data_shape=(1, 4, 6))
    with pytest.raises(AssertionError, match="another ImageDetIter is wanted, got 3"):
        many.sync_label_shape(3)


def test_draw_next(tmp_path, listed):
    iterator = image.ImageDetIter(1, (3, 40, 50), imglist=listed, path_root=tmp_path, mean=True, std=True)
    drawn = list(iterator.draw_next(color=(255, 0, 0), thickness=1, mean=True, std=True, id2labels={2: "cat"}))
    assert len(drawn) == 3
    for number, picture in enumerate(drawn):
        assert (picture.shape, picture.dtype) == ((40, 50, 3), np.uint8)
        np.testing.assert_allclose(picture[0, 0], [200, 100, 10 * number], atol=1)  # blue first
        assert picture[8, 5].tolist() == [0, 0, 255]  # the corner of the box
        assert (picture[20, 5] == [0, 0, 255]).all()
    assert (drawn[2] == 255).all(axis=2).any()  # letters are white
    assert not (drawn[1] == 255).all(axis=2).any()
    iterator.reset()
    np.random.seed(0)
    assert next(iterator.draw_next(thickness=1))[8, 5].tolist() != [0, 0, 255]
    with pytest.raises(ArgumentError, match=r"waitKey=1 would open a window .* leave it out, and show the arrays"):
        iterator.draw_next(waitKey=1)
    with pytest.raises(ArgumentError, match=r"color is 3; \(red, green, blue\)"):
        next(iterator.draw_next(color=3))


def test_no_images(tmp_path):
    with pytest.raises(ArgumentError, match="imglist has no images"):
        image.ImageDetIter(1, SHAPE, imglist=[], path_root=tmp_path)
    (tmp_path / "empty.rec").write_bytes(b"")
    with pytest.raises(ArgumentError, match=r"empty\.rec has no images"):
        image.ImageDetIter(1, SHAPE, path_imgrec=tmp_path / "empty.rec")
