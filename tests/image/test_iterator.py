"""ImageIter: order, batches and labels as MXNet 1.9.1's, and an error for whatever cannot be read."""

from __future__ import annotations

import logging
import random

import numpy as np
import pytest

import minimx as mx
from minimx.base import ArgumentError, FileFormatError, FolderError, MissingFileError, ShapeError
from minimx.image import CastAug, ForceResizeAug, ImageIter, listing

from .pictures import JPEG, colour, file_of

SHAPE = (3, 8, 10)


@pytest.fixture
def folder(tmp_path):
    """Five images of one colour each, as files, as a list, and as records with and without an index."""
    (tmp_path / "inner").mkdir()
    lines = []
    with (
        mx.recordio.MXIndexedRecordIO(tmp_path / "five.idx", tmp_path / "five.rec", "w") as record,
        mx.recordio.MXIndexedRecordIO(tmp_path / "two.idx", tmp_path / "two.rec", "w") as labelled,
    ):
        for number in range(5):
            data = file_of(colour(number))
            (tmp_path / "inner" / f"{number}.png").write_bytes(data)
            lines.append(f"{number * 2}\t{number}.5\tinner/{number}.png\n")
            record.write_idx(number * 2, mx.recordio.pack((0, float(number), number * 2, 0), data))
            labelled.write_idx(number, mx.recordio.pack((0, [number, -number], number, 0), data))
    (tmp_path / "five.lst").write_text("".join(lines) + "\n")
    return tmp_path


def listed(count=5):
    return [[float(number), f"inner/{number}.png"] for number in range(count)]


def passes(iterator, count=2):
    """For each pass the labels and the padding of each batch. Images and labels must belong together."""
    found = []
    for _ in range(count):
        found.append([])
        for batch in iterator:
            label, data = batch.label[0].asnumpy(), batch.data[0].asnumpy()
            assert (data.shape, data.dtype, label.dtype) == ((iterator.batch_size, *SHAPE), np.float32, np.float32)
            np.testing.assert_array_equal(data[:, :, 3, 4], [[10 * int(number), 100, 200] for number in label])
            found[-1].append((label.tolist(), batch.pad))
        iterator.reset()
    return found


def test_the_last_batch(folder):
    def made(handle, count=5):
        return ImageIter(2, SHAPE, imglist=listed(count), path_root=folder, last_batch_handle=handle)

    assert passes(made("pad")) == [[([0, 1], 0), ([2, 3], 0), ([4, 0], 1)]] * 2
    assert passes(made("discard")) == [[([0, 1], 0), ([2, 3], 0)]] * 2
    rolled = [[([0, 1], 0), ([2, 3], 0)], [([4, 0], 1), ([1, 2], 0), ([3, 4], 0)], [([0, 1], 0), ([2, 3], 0)]]
    assert passes(made("roll_over"), 3) == rolled
    for handle in ("pad", "discard", "roll_over"):
        assert passes(made(handle, 4)) == [[([0, 1], 0), ([2, 3], 0)]] * 2
    assert passes(made("pad", 1)) == [[([0, 0], 1)]] * 2
    assert passes(made("discard", 1)) == [[], []]
    assert passes(made("roll_over", 1), 3) == [[], [([0, 0], 1)], []]


def test_few_images_for_a_batch(folder):
    """They are taken again and again; in MXNet the batch's end is whatever was in memory."""
    assert passes(ImageIter(7, SHAPE, imglist=listed(2), path_root=folder)) == [[([0, 1, 0, 1, 0, 1, 0], 5)]] * 2


def test_hard_reset(folder):
    iterator = ImageIter(2, SHAPE, imglist=listed(3), path_root=folder, last_batch_handle="roll_over")
    assert [batch.label[0].asnumpy().tolist() for batch in iterator] == [[0, 1]]
    iterator.hard_reset()
    assert iterator.next().label[0].asnumpy().tolist() == [0, 1]


def test_sources(folder):
    for how in (
        {"path_imgrec": folder / "five.rec"},
        {"path_imgrec": str(folder / "five.rec"), "path_imgidx": str(folder / "five.idx")},
        {"imglist": listed(), "path_root": str(folder)},
    ):
        assert passes(ImageIter(2, SHAPE, **how)) == [[([0, 1], 0), ([2, 3], 0), ([4, 0], 1)]] * 2
    halves = [[([0.5, 1.5], 0), ([2.5, 3.5], 0), ([4.5, 0.5], 1)]]
    for how in (
        {"path_imglist": folder / "five.lst", "path_root": folder},
        {"path_imgrec": folder / "five.rec", "path_imgidx": folder / "five.idx", "path_imglist": folder / "five.lst"},
        {"path_imgrec": folder / "five.rec", "path_imglist": folder / "five.lst"},  # by the number in the record
    ):
        assert passes(ImageIter(2, SHAPE, **how), 1) == halves


def test_paths_without_a_root(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert passes(ImageIter(2, SHAPE, imglist=listed(2)), 1) == [[([0, 1], 0)]]


def test_shuffle_and_parts(folder):
    expected = [0, 1, 2, 3, 4]
    for how in (
        {"imglist": listed(), "path_root": folder},
        {"path_imgrec": folder / "five.rec", "path_imgidx": folder / "five.idx"},
    ):
        random.seed(3)
        order = [label for batch, _ in passes(ImageIter(1, SHAPE, shuffle=True, **how), 1)[0] for label in batch]
        assert sorted(order) == expected
        random.seed(3)
        shuffled = list(expected)
        random.shuffle(shuffled)  # as MXNet draws it
        assert order == shuffled
        parts = [passes(ImageIter(1, SHAPE, part_index=part, num_parts=2, **how), 1)[0] for part in range(2)]
        assert parts == [[([0], 0), ([1], 0)], [([2], 0), ([3], 0)]]  # equal ones; what is left over is nobody's, as in MXNet


def test_labels(folder):
    two = ImageIter(2, SHAPE, label_width=2, path_imgrec=folder / "two.rec")
    assert two.provide_label == [("softmax_label", (2, 2))]
    assert two.next().label[0].asnumpy().tolist() == [[0, 0], [1, -1]]
    forms = [
        [1, 2, "inner/0.png"],
        [[3, 4], "inner/1.png"],
        [np.array([5, 6]), "inner/2.png"],
        [mx.nd.array([7, 8]), "inner/3.png"],
    ]
    of_list = ImageIter(4, SHAPE, label_width=2, imglist=forms, path_root=folder, dtype="int64")
    assert of_list.next().label[0].asnumpy().tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]


def test_what_is_provided(folder):
    iterator = ImageIter(2, SHAPE, imglist=listed(), path_root=folder, data_name="x", label_name="y")
    assert (iterator.provide_data, iterator.provide_label) == ([("x", (2, *SHAPE))], [("y", (2,))])
    assert (iterator.batch_size, iterator.data_shape, iterator.num_image, iterator.seq) == (
        2,
        SHAPE,
        5,
        ["1", "2", "3", "4", "5"],
    )
    label, data = iterator.next_sample()
    assert (label.tolist(), iterator.imdecode(data).shape) == ([0], (20, 24, 3))


def test_augmenters(folder):
    iterator = ImageIter(2, SHAPE, imglist=listed(), path_root=folder, resize=9, rand_mirror=True, mean=np.array([0.0, 100, 200]))
    assert [type(each).__name__ for each in iterator.auglist][-1] == "ColorNormalizeAug"
    assert iterator.next().data[0].asnumpy()[1, :, 0, 0].tolist() == [10, 0, 0]
    for chosen in ([ForceResizeAug((10, 8))], [ForceResizeAug((10, 8)), CastAug()], [lambda image: image[:8, :10]]):
        passes(ImageIter(2, SHAPE, imglist=listed(), path_root=folder, aug_list=chosen))


def test_subclasses_override_steps(folder, caplog):
    class Picky(ImageIter):
        def check_valid_image(self, data):
            if data[0].asnumpy()[0, 0, 0] in (10, 30):
                raise RuntimeError("not this one")

        def augmentation_transform(self, data):
            return super().augmentation_transform(data) + 1

        def postprocess_data(self, datum):
            return super().postprocess_data(datum) * 2

    with caplog.at_level(logging.DEBUG, "minimx.image"):
        iterator = Picky(2, SHAPE, imglist=listed(), path_root=folder)
        batches = [
            (batch.label[0].asnumpy().tolist(), batch.pad, batch.data[0].asnumpy()[:, 0, 0, 0].tolist()) for batch in iterator
        ]
    assert batches == [([0, 2], 0, [2, 42]), ([4, 0], 1, [82, 2])]
    assert "Picky: filename: inner/1.png is left out: not this one" in caplog.text

    class Hopeless(ImageIter):
        def check_valid_image(self, data):
            raise RuntimeError("none is good enough")

    for handle in ("pad", "discard", "roll_over"):
        iterator = Hopeless(2, SHAPE, imglist=listed(), path_root=folder, last_batch_handle=handle)
        with pytest.raises(ArgumentError, match="imglist has no image that could be used"):
            iterator.next()

    class Whimsical(Hopeless):
        taken = 0

        def check_valid_image(self, data):
            self.taken += 1
            if self.taken > 3:
                raise RuntimeError

    assert passes(Whimsical(4, SHAPE, imglist=listed(), path_root=folder), 1) == [[([0, 1, 2, 0], 1)]]


# ---- what cannot be read


@pytest.mark.parametrize("contents", [b"", b"hello world", JPEG[:-40], JPEG[:50], file_of(colour(1))[:60]])
@pytest.mark.parametrize("handle", ["pad", "discard", "roll_over"])
def test_broken_images(folder, contents, handle):
    """The batches before it come; then an error names it, as in MXNet; the one after it can be had."""
    (folder / "inner" / "2.png").write_bytes(contents)
    iterator = ImageIter(2, SHAPE, imglist=listed(), path_root=folder, last_batch_handle=handle)
    assert iterator.next().label[0].asnumpy().tolist() == [0, 1]
    with pytest.raises(RuntimeError, match=r"Broken image filename: inner/2\.png: imdecode: .*(cut off|empty|no image)"):
        iterator.next()
    assert iterator.next().label[0].asnumpy().tolist() == [3, 4]


def test_broken_images_in_records(folder):
    path = str(folder / "broken.rec")
    with mx.recordio.MXIndexedRecordIO(path + ".idx", path, "w") as record:
        record.write_idx(7, mx.recordio.pack((0, 1, 7, 0), b"no image"))
        record.write_idx(9, b"no header")
    for how, places in (({}, ("0", "1")), ({"path_imgidx": path + ".idx"}, ("7", "9"))):
        iterator = ImageIter(1, SHAPE, path_imgrec=path, **how)
        for place, message in zip(places, ("no image that Pillow knows", "the record has 9 bytes")):
            with pytest.raises(RuntimeError, match=rf"Broken image index: {place} in .*broken\.rec: .*{message}"):
                iterator.next()


def test_truncated_records(folder):
    whole = (folder / "five.rec").read_bytes()
    (folder / "five.rec").write_bytes(whole[:-30])
    for how in ({}, {"path_imgidx": folder / "five.idx"}):
        iterator = ImageIter(2, SHAPE, path_imgrec=folder / "five.rec", **how)
        assert [iterator.next().label[0].asnumpy().tolist() for _ in range(2)] == [[0, 1], [2, 3]]
        with pytest.raises(FileFormatError, match=r"five\.rec: byte \d+: .*the file is cut off"):
            iterator.next()


def test_missing_files(folder):
    iterator = ImageIter(2, SHAPE, imglist=[*listed(), [9.0, "inner/none.png"]], path_root=folder)
    with pytest.raises(MissingFileError, match=r"there is no file .*none\.png, which imglist names"):
        list(iterator)
    (folder / "five.lst").write_text("0\t1\tnone.png\n")
    with pytest.raises(FileNotFoundError, match=r"none\.png, which .*five\.lst names"):
        ImageIter(1, SHAPE, path_imglist=folder / "five.lst", path_root=folder).next()
    with pytest.raises(FolderError, match=r"inner, which imglist names, is a folder"):
        ImageIter(1, SHAPE, imglist=[[9.0, "inner"]], path_root=folder).next()
    (folder / "five.lst").write_bytes(b"0\t1\tinner/0\0.png\n")
    with pytest.raises(ArgumentError, match=r"five\.lst names .*0\\x00\.png', which cannot be a file's name"):
        ImageIter(1, SHAPE, path_imglist=folder / "five.lst", path_root=folder).next()


@pytest.mark.parametrize(("line", "message"), [
    ("3\tinner/0.png", "it has no label"),
    ("inner/0.png", "it has no label"),
    ("x\t1\tinner/0.png", "invalid literal for int"),
    ("3\tcat\tinner/0.png", "could not convert string to float"),
    ("2\t1\tinner/0.png", "the number 2 was there before"),
    ("3\t1.5\tinner/0.png", "labels of dtype int32 are whole numbers"),
])  # fmt: skip
def test_malformed_lists(folder, line, message):
    (folder / "bad.lst").write_text(f"2\t1\tinner/0.png\n{line}\n")
    with pytest.raises(
        FileFormatError, match=rf"bad\.lst: line 2: number, labels, path with tabs between are wanted, got .*{message}"
    ):
        ImageIter(1, SHAPE, path_imglist=folder / "bad.lst", path_root=folder, dtype="int32")


def test_names_of_files_in_lists(tmp_path):
    (tmp_path / "a.lst").write_bytes("1\t0\tü ö/日本.png\r\n".encode())
    assert listing.read_list(tmp_path / "a.lst", np.dtype("float32"))[1].path == "ü ö/日本.png"


@pytest.mark.parametrize(("how", "error", "message"), [
    ({}, AssertionError, "there is nothing to read; give path_imgrec, path_imglist or imglist"),
    ({"imglist": []}, ArgumentError, "imglist has no images; there is nothing to make a batch of"),
    ({"imglist": 3}, ArgumentError, r"imglist must be a list of \[label, path\], got 3"),
    ({"imglist": [["a.png"]]}, ArgumentError, r"imglist\[0\] is \['a.png'\]; \[label, path\] or"),
    ({"imglist": [[1, 2]]}, ArgumentError, r"imglist\[0\] is \[1, 2\]"),
    ({"imglist": ["a.png"]}, ArgumentError, r"imglist\[0\] is 'a.png'"),
    ({"imglist": [[[], "a.png"]]}, ArgumentError, r"imglist\[0\] has no label; give a number, or 0"),
    ({"imglist": [["cat", "a.png"]]}, ArgumentError, r"imglist\[0\] has the label 'cat'; numbers of dtype float32 are wanted"),
    ({"imglist": [[1.5, "a.png"]], "dtype": "int32"}, ArgumentError, "numbers of dtype int32"),
    ({"imglist": listed(), "dtype": "float16"}, AssertionError, "dtype is 'float16'; labels are one of float32, float64, int32, int64"),
    ({"imglist": listed(), "last_batch_handle": "keep"}, ArgumentError, "last_batch_handle is 'keep'; choose one of pad, discard"),
    ({"imglist": listed(), "batch_size": 0}, ArgumentError, "batch_size is 0; it must be 1 or more"),
    ({"imglist": listed(), "label_width": 0}, ArgumentError, "label_width is 0"),
    ({"imglist": listed(), "data_shape": (3, 8)}, ValueError, r"data_shape is \(3, 8\); \(channels, height, width\)"),
    ({"imglist": listed(), "data_shape": (1, 8, 8)}, ValueError, "images have 3 channels here"),
    ({"imglist": listed(), "num_parts": 2, "part_index": 2}, AssertionError, "part_index is 2; of 2 parts it is 0 to 1"),
    ({"imglist": listed(), "num_parts": 6}, ArgumentError, "imglist has too few images for 6 parts"),
    ({"imglist": listed(), "path_imgidx": "five.idx"}, ArgumentError, "path_imgidx is the index of records; give path_imgrec"),
    ({"imglist": listed(), "aug_list": [], "resize": 8}, ArgumentError, "resize would make augmenters, but aug_list has them"),
    ({"imglist": listed(), "aug_list": [3]}, ArgumentError, "3 is no Augmenter"),
    ({"imglist": listed(), "rezise": 8}, TypeError, "rezise"),
    ({"path_imgrec": "five.rec", "shuffle": True}, AssertionError, "shuffle needs to know where each record is; give path_imgidx"),
    ({"path_imgrec": "five.rec", "num_parts": 2}, AssertionError, "num_parts needs to know where each record is"),
    ({"path_imgrec": "none.rec"}, FileNotFoundError, "there is no file none.rec"),
    ({"path_imglist": "none.lst"}, FileNotFoundError, "there is no file none.lst"),
])  # fmt: skip
def test_bad_arguments(folder, monkeypatch, how, error, message):
    monkeypatch.chdir(folder)
    with pytest.raises(error, match=message):
        ImageIter(**{"batch_size": 2, "data_shape": SHAPE, "path_root": folder, **how})


def test_faults_that_show_with_the_image(folder):
    with pytest.raises(ArgumentError, match=r"image filename: inner/0\.png has 1 labels, label_width=2 was announced"):
        ImageIter(2, SHAPE, label_width=2, imglist=listed(), path_root=folder).next()
    with pytest.raises(
        ShapeError, match=r"has shape \(3, 20, 24\) after all augmenters, data_shape is \(3, 8, 10\); does aug_list crop"
    ):
        ImageIter(2, SHAPE, imglist=listed(), path_root=folder, aug_list=[]).next()
    (folder / "five.lst").write_text("0\t1\tinner/0.png\n")
    with pytest.raises(ArgumentError, match=r"five\.rec has an image of number 2, which the list of labels lacks"):
        ImageIter(2, SHAPE, path_imgrec=folder / "five.rec", path_imglist=folder / "five.lst").next()
    (folder / "empty.rec").write_bytes(b"")
    with pytest.raises(ArgumentError, match=r"empty\.rec has no image that could be used"):
        ImageIter(2, SHAPE, path_imgrec=folder / "empty.rec").next()


def test_images_of_every_kind(folder):
    """Grey, with opacity, of 16 bits, with a palette: all have three channels in a batch."""
    pixels = colour(3)
    kinds = {
        "grey.png": file_of(pixels, mode="L"),
        "opaque.png": file_of(pixels, mode="RGBA"),
        "palette.gif": file_of(pixels, "GIF"),
        "deep.png": file_of(np.full((20, 24), 30 * 256, np.uint16)),
        "ink.jpg": file_of(pixels, "JPEG", mode="CMYK"),
        "tiny.png": file_of(pixels[:2, :3]),
        "wide.png": file_of(pixels[:1]),
    }
    for name, data in kinds.items():
        (folder / name).write_bytes(data)
    iterator = ImageIter(len(kinds), SHAPE, imglist=[[0, name] for name in kinds], path_root=folder)
    pictures = iterator.next().data[0].asnumpy()
    assert (pictures[0] == pictures[0, 0, 0, 0]).all()
    for number in (1, 2, 5, 6):
        np.testing.assert_array_equal(pictures[number][:, 0, 0], [30, 100, 200])
    assert (pictures[3] == 30).all()
    np.testing.assert_allclose(pictures[4][:, 4, 4], [30, 100, 200], atol=4)
