"""MNISTIter: batches and random orders are those of MXNet 1.9.1."""

from __future__ import annotations

import gzip
import hashlib
import struct

import numpy as np
import pytest

import minimx as mx
from minimx.base import DTypeError, FileFormatError, FolderError, MissingFileError
from minimx.io.shuffling import Shuffler

IMAGES = np.random.RandomState(0).randint(0, 256, (11, 3, 4)).astype(np.uint8)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "images").write_bytes(struct.pack(">IIII", 0x803, 11, 3, 4) + IMAGES.tobytes())
    (tmp_path / "labels").write_bytes(struct.pack(">II", 0x801, 11) + bytes(range(11)))
    return {"image": tmp_path / "images", "label": tmp_path / "labels"}


def labels(batches):
    return [batch.label[0].asnumpy().astype(int).tolist() for batch in batches]


def test_batches(files):
    batches = mx.io.MNISTIter(batch_size=4, shuffle=False, **files)
    assert batches.provide_data == [("data", (4, 1, 3, 4))]
    assert batches.provide_label == [("softmax_label", (4,))]
    for _ in range(2):
        first, second = list(batches)  # the last three make no batch
        np.testing.assert_array_equal(first.data[0].asnumpy(), IMAGES[:4, None] / np.float32(256))
        assert first.pad == 0
        assert second.index.tolist() == [4, 5, 6, 7]
        batches.reset()
    batches.next()
    batches.reset()
    assert labels(batches) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    flat = mx.io.MNISTIter(batch_size=4, shuffle=False, flat=True, input_shape=(12,), data_shape=(12,), **files)
    np.testing.assert_array_equal(flat.next().data[0].asnumpy(), IMAGES[:4].reshape(4, 12) / np.float32(256))


def test_random_orders_and_parts(files):
    assert labels(mx.io.MNISTIter(batch_size=4, **files)) == [[0, 2, 3, 5], [9, 1, 10, 8]]
    batches = mx.io.MNISTIter(batch_size=4, seed=10, **files)
    for _ in range(2):
        assert labels(batches) == [[3, 1, 4, 6], [9, 7, 10, 8]]
        batches.reset()
    assert labels(mx.io.MNISTIter(batch_size=4, shuffle=False, num_parts=2, part_index=0, **files)) == [[0, 1, 2, 3]]
    assert labels(mx.io.MNISTIter(batch_size=4, shuffle=False, num_parts=2, part_index=1, **files)) == [[5, 6, 7, 8]]
    assert labels(mx.io.MNISTIter(batch_size=2, num_parts=3, part_index=1, seed=5, **files)) == [[5, 3], [4, 6]]


def test_a_long_random_order():
    """The order in which MXNet puts 70000 images with seed 42."""
    order = list(range(70000))
    Shuffler(42).shuffle(order)
    assert order[:5] == [67453, 53608, 43891, 25566, 61703]
    assert hashlib.sha1(np.array(order, "<u4").tobytes()).hexdigest() == "685b11d7470e4141953d1a10924e59c002c02b5f"


def test_gzipped_files_are_read_too(files, tmp_path):
    packed = tmp_path / "images.gz"
    packed.write_bytes(gzip.compress(files["image"].read_bytes()))
    batch = mx.io.MNISTIter(image=packed, label=files["label"], batch_size=11, shuffle=False).next()
    np.testing.assert_array_equal(batch.data[0].asnumpy(), IMAGES[:, None] / np.float32(256))


def test_wrong_files_and_arguments(files, tmp_path):
    with pytest.raises(ValueError, match="batch_size is 12, but there are 11 images"):
        mx.io.MNISTIter(batch_size=12, **files)
    with pytest.raises(ValueError, match="part_index is 2; of num_parts=2 it can be 0 to 1"):
        mx.io.MNISTIter(batch_size=1, num_parts=2, part_index=2, **files)
    with pytest.raises(ValueError, match=r"input_shape is \(28, 28\), but the images have 3 x 4 pixels"):
        mx.io.MNISTIter(batch_size=1, input_shape=(28, 28), **files)
    with pytest.raises(ValueError, match=r"data_shape is \(784,\), but the images have 3 x 4 pixels"):  # as many scripts call it
        mx.io.MNISTIter(batch_size=1, data_shape=(784,), **files)
    with pytest.raises(DTypeError, match="batches are float32"):
        mx.io.MNISTIter(batch_size=1, dtype="uint8", **files)
    with pytest.raises(FileFormatError, match="bytes with 3 axes are wanted, here are uint8 with 1"):
        mx.io.MNISTIter(batch_size=1, image=files["label"], label=files["label"])
    cut = tmp_path / "cut"
    cut.write_bytes(files["image"].read_bytes()[:-1])
    with pytest.raises(FileFormatError, match="ends at offset 147"):
        mx.io.MNISTIter(batch_size=1, image=cut, label=files["label"])
    few = tmp_path / "few"
    few.write_bytes(struct.pack(">II", 0x801, 10) + bytes(10))
    with pytest.raises(FileFormatError, match=r"has 11 images, .* 10 labels"):
        mx.io.MNISTIter(batch_size=1, image=files["image"], label=few)


def test_files_that_are_not_there(files, tmp_path):
    with pytest.raises(MissingFileError, match=r"MNISTIter: there is no file .*none; mx\.test_utils\.get_mnist_ubyte\(\) puts"):
        mx.io.MNISTIter(image=tmp_path / "none", label=files["label"])
    with pytest.raises(FolderError, match="it is a folder"):
        mx.io.MNISTIter(image=files["image"], label=tmp_path)
