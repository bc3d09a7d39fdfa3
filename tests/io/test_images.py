"""ImageRecordIter: images, orders and labels are those of MXNet 1.9.1; what is random depends on seeds alone; broken files are errors."""

from __future__ import annotations

import gc
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import minimx as mx
from minimx.base import DTypeError, FileFormatError, MissingFileError, ShapeError
from minimx.io.records import CHUNK, DealtSource, Records, RecordSource

from .image_cases import CASES

pytest.importorskip("PIL")

FILES = Path(__file__).parents[1] / "data" / "io"
VALUES = np.load(FILES / "images.npz")

#: Those of JPEG depend on the library behind Pillow, and cubic and Lanczos sums on the order of additions.
CLOSE = {"jpeg": 4, "jpeg to grey": 4, "turned, method 2": 1, "turned, method 4": 1}


def opened(name="png", shape=(3, 12, 12), batch_size=5, **options):
    return mx.io.ImageRecordIter(
        path_imgrec=FILES / f"{name}.rec", data_shape=shape, batch_size=batch_size, verbose=False, **options
    )


def labels(batches):
    return [(batch.label[0].asnumpy().astype(int).tolist(), batch.pad) for batch in batches]


@pytest.mark.parametrize("case", CASES)
def test_images_are_those_of_mxnet(case):
    name, shape, options = CASES[case]
    batches = opened(name, shape, **options)
    batch = batches.next()
    assert batch.data[0].dtype == np.dtype(options.get("dtype", "float32"))
    assert batches.provide_data == [("data", (5, *shape))]
    assert batches.provide_data[0].dtype == batch.data[0].dtype
    np.testing.assert_allclose(batch.data[0].asnumpy(), VALUES[case], rtol=0, atol=CLOSE.get(case, 0))
    np.testing.assert_array_equal(batch.label[0].asnumpy(), [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(batch.index, [100, 101, 102, 103, 104])


# ---- orders


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """23 images of one pixel, whose label and number is their place in the file."""
    folder = tmp_path_factory.mktemp("many")
    with mx.recordio.MXIndexedRecordIO(str(folder / "many.idx"), str(folder / "many.rec"), "w") as file:
        for number in range(23):
            header = mx.recordio.IRHeader(0, float(number), number, 0)
            file.write_idx(number, mx.recordio.pack_img(header, np.full((1, 1, 3), number, np.uint8), img_fmt=".png", quality=1))
    return folder / "many.rec"


def of_many(many, indexed=False, batch_size=5, **options):
    how = {"path_imgidx": str(many.with_suffix(".idx"))} if indexed else {}
    return mx.io.ImageRecordIter(
        path_imgrec=str(many), data_shape=(3, 1, 1), batch_size=batch_size, verbose=False, **how, **options
    )


@pytest.mark.parametrize("indexed", [False, True])
def test_a_pass_goes_on_behind_what_filled_up_the_last_batch(many, indexed):
    batches = of_many(many, indexed)
    first = labels(batches)
    assert first[0] == ([0, 1, 2, 3, 4], 0)
    assert first[4:] == [([20, 21, 22, 0, 1], 2)]
    with pytest.raises(StopIteration):
        batches.next()
    batches.reset()
    second = labels(batches)
    assert second[0] == ([2, 3, 4, 5, 6], 0)
    assert second[4:] == [([22, 0, 1, 2, 3], 4)]
    batches.reset()
    batches.reset()  # nothing was used: from the beginning
    assert batches.next().label[0].asnumpy().tolist() == [0, 1, 2, 3, 4]


def test_without_round_batch_the_last_one_is_short(many):
    batches = of_many(many, round_batch=False)
    for _ in range(2):
        found = list(batches)
        assert labels(found)[4] == ([20, 21, 22, 0, 0], 2)
        assert found[4].data[0].asnumpy()[3:].max() == 0
        batches.reset()


@pytest.mark.parametrize(
    ("indexed", "options", "epochs"),
    [
        (False, {}, [[13, 11, 22, 2, 17, 6, 19, 0, 5, 14, 16, 4, 9, 18, 8, 7, 1, 10, 3, 20, 15, 21, 12], [3, 15, 9, 16, 12, 11, 5]]),
        (True, {}, [[13, 11, 22, 2, 17, 6, 19, 0, 5, 14, 16, 4, 9, 18, 8, 7, 1, 10, 3, 20, 15, 21, 12], [3, 15, 9, 16, 12, 11, 5]]),
        (True, {"seed": 3}, [[10, 13, 1, 14, 19, 5, 22, 21, 15, 4, 16, 20, 18, 0, 7, 6, 8, 11, 17, 12, 3, 9, 2], [19, 0, 13, 4, 17]]),
        (True, {"num_parts": 2, "part_index": 1}, [[15, 16, 21, 14, 22, 18, 19, 12, 17, 20, 13], [15, 19, 17, 21, 18, 13, 20]]),
    ],
)  # fmt: skip
def test_random_orders_are_those_of_mxnet(many, indexed, options, epochs):
    batches = of_many(many, indexed, shuffle=True, **options)
    found = []
    for _ in range(2):
        for batch in batches:
            found += batch.label[0].asnumpy().astype(int).tolist()
        batches.reset()
    wanted = [number for epoch in epochs for number in epoch]
    assert found[: len(wanted)] == wanted


@pytest.mark.parametrize("indexed", [False, True])
def test_parts_are_those_of_mxnet(many, indexed):
    parts = [labels(of_many(many, indexed, num_parts=2, part_index=part)) for part in (0, 1)]
    assert parts[0][2] == ([10, 11, 0, 1, 2], 3)
    assert parts[1][0] == ([12, 13, 14, 15, 16], 0)
    assert parts[1][2] == ([22, 12, 13, 14, 15], 4)


def test_reset_in_the_middle_takes_the_next_order(many):
    found = []
    for ahead in (0, 4):
        batches = of_many(many, shuffle=True, prefetch_buffer=ahead)
        batches.next()
        batches.next()
        batches.reset()
        found.append(labels(batches))
    assert found[0] == found[1]  # however far ahead the thread was
    assert found[0][0][0] == [3, 15, 9, 16, 12]


def test_reset_waits_for_the_thread_that_reads_ahead(many, monkeypatch):
    """Both would take orders from the same generator."""
    epoch, begun = RecordSource.epoch, []

    def slow(self):
        begun.append(threading.get_ident())
        place = len(begun)
        if place == 2:  # the last batch of the first pass is filled up
            time.sleep(0.1)
        found = epoch(self)
        if place == 3:
            time.sleep(0.2)
        return found

    monkeypatch.setattr(RecordSource, "epoch", slow)
    batches = of_many(many, shuffle=True)
    batches.next()
    while len(begun) < 2:
        time.sleep(0.001)
    batches.reset()
    assert labels(batches)[0][0] == [3, 15, 9, 16, 12]


def test_more_examples_in_a_batch_than_in_the_file(many):
    batch = of_many(many, batch_size=50).next()
    assert batch.pad == 27
    assert batch.label[0].asnumpy().astype(int).tolist() == [*range(23), *range(23), *range(4)]


def test_a_large_file_is_mixed_chunk_by_chunk(tmp_path):
    """Records of 100 kB, of which 80 and a bit fit into a chunk; its last one belongs to the next."""
    path = tmp_path / "large.rec"
    noise = np.random.RandomState(0).randint(0, 256, (180, 185, 3)).astype(np.uint8)
    record = mx.recordio.pack_img((0, 0.0, 0, 0), noise, img_fmt=".png", quality=0)
    count = 200
    with mx.recordio.MXRecordIO(str(path), "w") as file:
        for number in range(count):
            file.write(mx.recordio.pack((0, float(number), number, 0), record[24:]))
    size = path.stat().st_size // count
    fit = CHUNK // size  # the records that begin in a chunk but for the last
    source = RecordSource(Records([str(path)], None, 1, 0), 111)
    order = [image.number for image, _, _ in source.epoch().take(count)]
    assert sorted(order[:fit]) == list(range(fit))
    assert order[:fit] != list(range(fit))
    assert sorted(order) == list(range(count))
    dealt = DealtSource(Records([str(path)], None, 1, 0), 111, 5, 0)
    order = [image.number for image, _, _ in dealt.epoch().take(count)]
    assert sorted(order) == list(range(count))
    begins = [min(order[i : i + 20]) for i in range(0, count, count // 5)]
    assert begins != sorted(begins)  # the parts are mixed, too


# ---- labels and options


def test_labels_of_a_list(tmp_path):
    path = tmp_path / "images.lst"
    path.write_text("".join(f"{number + 100}\t{number * 2}\t{number * 3}\tfolder/{number}.png\n" for number in range(5)))
    batches = opened(path_imglist=path, label_width=2)
    assert batches.provide_label == [("softmax_label", (5, 2))]
    np.testing.assert_array_equal(batches.next().label[0].asnumpy(), [[0, 0], [2, 3], [4, 6], [6, 9], [8, 12]])
    np.testing.assert_array_equal(opened(path_imglist=path).next().label[0].asnumpy(), [0, 2, 4, 6, 8])
    path.write_text("100\t1\tx.png\n")
    with pytest.raises(
        FileFormatError, match=r"png.rec, byte \d+: the image has the number 101, which .*images.lst has no line for"
    ):
        opened(path_imglist=path)
    path.write_text("100\t1\tx.png\n101\tone\ty.png\n")
    with pytest.raises(FileFormatError, match=r"images.lst, line 2: `number <tab> 1 labels <tab> path` is wanted"):
        opened(path_imglist=path)


def test_wrong_number_of_labels():
    with pytest.raises(FileFormatError, match=r"png.rec, byte 0: the record has 1 labels, but label_width is 3"):
        opened(label_width=3)


def test_mean_image_is_made_and_used(tmp_path):
    path = str(tmp_path / "mean.bin")
    plain = opened().next().data[0].asnumpy()
    first = opened(mean_img=path).next().data[0].asnumpy()
    mean = mx.nd.load(path)["mean_img"].asnumpy()
    np.testing.assert_allclose(mean, plain.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(first, plain - mean, rtol=1e-6, atol=1e-4)
    np.testing.assert_array_equal(opened(mean_img=path).next().data[0].asnumpy(), first)
    with pytest.raises(ValueError, match="must have one array of shape"):
        opened(mean_img=path, shape=(3, 10, 10))


RANDOM = {
    "rand_crop": True, "rand_mirror": True, "max_rotate_angle": 10, "max_shear_ratio": 0.2, "max_random_scale": 1.3,
    "min_random_scale": 0.8, "brightness": 0.3, "contrast": 0.3, "saturation": 0.3, "pca_noise": 0.1, "random_h": 10, "random_s": 40,
    "random_l": 50, "max_random_contrast": 0.2, "max_random_illumination": 20,
}  # fmt: skip


def test_random_images_depend_on_the_seed_and_not_on_threads():
    first, second = (opened(preprocess_threads=threads, seed_aug=5, **RANDOM) for threads in (1, 4))
    for _ in range(2):
        for one, other in zip(first, second):
            np.testing.assert_array_equal(one.data[0].asnumpy(), other.data[0].asnumpy())
        first.reset()
        second.reset()
    again = opened(seed_aug=5, **RANDOM)
    before = again.next().data[0].asnumpy()
    again.reset()
    assert (again.next().data[0].asnumpy() != before).any()  # another epoch
    assert (opened(seed_aug=6, **RANDOM).next().data[0].asnumpy() != before).any()


@pytest.mark.parametrize("shape", [(1, 12, 12), (3, 12, 12)])
@pytest.mark.parametrize(
    "options",
    [
        RANDOM,
        {"random_resized_crop": True, "min_random_area": 0.1, "max_aspect_ratio": 1.3, "min_aspect_ratio": 0.7},
        {"min_crop_size": 2, "max_crop_size": 5, "rand_crop": True, "inter_method": 10},
        {"rotate_list": (0, 90), "max_aspect_ratio": 0.2},
    ],
)
def test_random_images_stay_in_range(shape, options):
    how = {**options, "max_random_contrast": 0, "max_random_illumination": 0}
    batches = opened(shape=shape, **how)
    for _ in range(3):
        data = batches.next().data[0].asnumpy()
        assert data.min() >= 0
        assert data.max() <= 255
        assert np.ptp(data) > 20
        batches.reset()


def test_half_of_the_images_are_mirrored(many):
    path = str(FILES / "png.rec")
    plain = opened().next().data[0].asnumpy()
    batches = mx.io.ImageRecordIter(path_imgrec=path, data_shape=(3, 12, 12), batch_size=200, rand_mirror=True, verbose=False)
    data = batches.next().data[0].asnumpy()
    flipped = sum((data[i] == plain[i % 5, :, :, ::-1]).all() for i in range(200))
    unchanged = sum((data[i] == plain[i % 5]).all() for i in range(200))
    assert flipped + unchanged == 200
    assert 70 < flipped < 130


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rand_corp": True}, "there is no option 'rand_corp'; did you mean 'rand_crop'"),
        ({"inter_method": 7}, "inter_method is 7; choose 0 nearest"),
        ({"shape": (2, 8, 8)}, r"data_shape is \(2, 8, 8\); \(channels, height, width\) is wanted"),
        ({"shape": (3, 8)}, r"data_shape is \(3, 8\)"),
        ({"num_parts": 2, "part_index": 2}, "part_index is 2; of num_parts=2 it can be 0 to 1"),
        ({"random_resized_crop": True, "rand_crop": True}, "cannot be together with rand_crop"),
        ({"aug_seq": "mine"}, "there is only 'aug_default'"),
        ({"std_r": 0}, "std_r is 0; a number to divide by is wanted"),
        ({"batch_size": 0}, "batch_size is 0; it must be 1 or more"),
        ({"preprocess_threads": 0}, "preprocess_threads is 0"),
        ({"shuffle_chunk_size": 3}, "needs shuffle=True"),
        ({"resize": 0}, "resize is 0; -1 or a length"),
        ({"fill_value": 300}, "fill_value is 300; a byte"),
        ({"min_random_scale": 2}, "min_random_scale is 2; it must not be more than the largest, 1"),
        ({"max_aspect_ratio": 1}, "max_aspect_ratio is 1"),
        ({"rotate": 5, "inter_method": 0}, "inter_method is 0; an image that is turned"),
        ({"ctx": "tpu"}, "ctx is 'tpu'; choose 'cpu' or 'gpu'"),
        ({"batch_size": "many"}, "batch_size must be an int, got 'many'"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        opened(**options)


def test_other_wrong_arguments():
    with pytest.raises(DTypeError, match="dtype is float64; choose float32, uint8 or int8"):
        opened(dtype="float64")
    with pytest.raises(ShapeError, match=r"png.rec, byte 0: the image has 16 x 20 pixels, which is less than max_crop_size=100"):
        opened(max_crop_size=100)
    with pytest.raises(FileFormatError, match="the image has 3 channels, 4 are wanted"):
        opened(shape=(4, 12, 12))
    with pytest.raises(MissingFileError, match=r"there is no file .*nosuch\.rec"):
        opened("nosuch")
    with pytest.raises(MissingFileError, match=r"there is no file nosuch\.idx"):
        opened(path_imgidx="nosuch.idx")
    with pytest.raises(DTypeError, match="choose uint8, or take ImageRecordIter"):
        mx.io.ImageRecordUInt8Iter(path_imgrec=FILES / "png.rec", data_shape=(3, 8, 8), batch_size=1, dtype="float32")


def test_iterators_of_bytes():
    given = {"path_imgrec": FILES / "png.rec", "data_shape": (3, 12, 12), "batch_size": 5}
    np.testing.assert_array_equal(mx.io.ImageRecordUInt8Iter(**given).next().data[0].asnumpy(), VALUES["bytes"])
    signed = mx.io.ImageRecordInt8Iter(mean_r=123.5, mean_g=116.4, mean_b=-3.5, **given).next().data[0]
    assert signed.dtype == np.int8
    np.testing.assert_array_equal(signed.asnumpy(), VALUES["signed bytes"])
    with pytest.raises(AttributeError, match=r"ImageRecordIter_v1.*: .*ImageRecordIter"):
        _ = mx.io.ImageRecordIter_v1


# ---- broken files, threads


def test_a_file_that_is_cut_off(many, tmp_path):
    path = tmp_path / "cut.rec"
    data = many.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    batches = of_many(path)
    found = []
    for _ in range(3):  # every whole batch comes
        found += batches.next().label[0].asnumpy().astype(int).tolist()
    assert found == list(range(15))
    with pytest.raises(FileFormatError, match=r"cut.rec: byte \d+: a record of \d+ bytes begins here, but \d+ are left"):
        batches.next()
    with pytest.raises(FileFormatError):  # and the error comes again
        batches.next()
    batches.reset()
    assert batches.next().label[0].asnumpy().tolist() == [0, 1, 2, 3, 4]


def test_a_broken_image_is_named(many, tmp_path):
    path = tmp_path / "broken.rec"
    data = bytearray(many.read_bytes())
    at = len(data) // 2
    at = data.index(b"IDAT", at) + 6
    data[at : at + 4] = b"\0\0\0\0"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"broken.rec, byte \d+: the image of \d+ bytes is damaged or cut off"):
        list(of_many(path))
    path.write_bytes(b"no records at all")
    with pytest.raises(FileFormatError, match=r"broken\.rec"):
        of_many(path)


def test_an_index_of_another_file(many, tmp_path):
    index = tmp_path / "other.idx"
    index.write_text("0\t0\n1\t40\n")
    with pytest.raises(FileFormatError, match=r"many.rec: byte 40: a record begins with"):
        mx.io.ImageRecordIter(path_imgrec=str(many), path_imgidx=str(index), data_shape=(3, 1, 1), batch_size=2)
    index.write_text("")
    with pytest.raises(FileFormatError, match=r"other.idx has no entries"):
        mx.io.ImageRecordIter(path_imgrec=str(many), path_imgidx=str(index), data_shape=(3, 1, 1), batch_size=2)


def test_no_thread_is_left_behind():
    before = set(threading.enumerate())
    batches = opened(batch_size=2, preprocess_threads=2)
    own = set(threading.enumerate()) - before
    assert "minimx-ahead" in {thread.name for thread in own}
    del batches
    gc.collect()
    for thread in own:
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns of forks beside threads
def test_a_forked_process_goes_on_by_itself(many):
    batches, other = of_many(many, shuffle=True), of_many(many, shuffle=True)
    batches.next()
    other.next()
    expected = labels(other)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, repr(labels(batches)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        assert pipe.read() == repr(expected)
    os.waitpid(child, 0)
    assert labels(batches) == expected


def test_iterating_by_hand_and_measuring(many):
    batches = of_many(many)
    with pytest.raises(ValueError, match="there is no current batch"):
        batches.getdata()
    assert batches.iter_next()
    assert batches.getlabel().asnumpy().tolist() == [0, 1, 2, 3, 4]
    assert batches.getdata().shape == (5, 3, 1, 1)
    assert batches.getpad() == 0
    assert isinstance(batches, mx.io.MXDataIter)
    batches.debug_skip_load()
    assert [batches.next().label[0].asnumpy().tolist() for _ in range(9)] == [[0, 1, 2, 3, 4]] * 9


def test_without_threads(many, monkeypatch):
    """As in Pyodide: everything is made where it is asked for."""

    def cannot(thread):
        raise RuntimeError("can't start new thread")

    expected = labels(of_many(many, shuffle=True))
    monkeypatch.setattr(threading.Thread, "start", cannot)
    assert labels(of_many(many, shuffle=True, preprocess_threads=1)) == expected
