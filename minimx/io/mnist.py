"""MNISTIter: batches of the images and labels in two files of MNIST's format, which idx.py reads.

The bytes stay bytes in memory; a batch becomes numbers from 0 to 1 when its turn comes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import files
from ..base import DTypeError, FileFormatError, MissingFileError, as_dtype, shown
from ..fields import converted
from ..idx import read_idx
from .batch import BatchError
from .file_iter import Loaded, MXDataIter, check_ctx, check_part, whole
from .passes import Place
from .shuffling import Shuffler

__all__ = ["MNISTIter"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class MNISTIter(MXDataIter):
    """Batches of images and labels from files of MNIST's format. Pixels are divided by 256. Examples that are too few for a last batch are
    left out.

    **Args** `image`, `label`: the files, which may be gzipped; `shuffle`: in a random order, the same in each pass, which `seed` decides as
    in MXNet; `flat`: images as (batch_size, rows * columns), else (batch_size, 1, rows, columns); `silent`: do not log what was read;
    `num_parts`, `part_index`: read one of so many parts of the file; `input_shape`, `data_shape`: the shape that an image should have,
    under either name; `prefetch_buffer`: how many batches are made ahead. `ctx` makes no difference; `dtype` can be float32. **Raises**
    MissingFileError, ArgumentError; FileFormatError for a file of another format, or one that is cut off. **Source** MXNet `io.MNISTIter`,
    which does not look at either shape.
    """

    def __init__(
        self,
        *,
        image: files.PathLike = "./train-images-idx3-ubyte",
        label: files.PathLike = "./train-labels-idx1-ubyte",
        batch_size: int = 128,
        shuffle: bool = True,
        flat: bool = False,
        seed: int = 0,
        silent: bool = False,
        num_parts: int = 1,
        part_index: int = 0,
        input_shape: Any = None,
        data_shape: Any = None,
        prefetch_buffer: int = 4,
        ctx: str = "gpu",
        dtype: Any = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
    ) -> None:
        check_ctx("MNISTIter", ctx)
        if as_dtype(None if dtype == "None" else dtype) != np.float32:
            raise DTypeError(f"MNISTIter: dtype is {shown(dtype)}; batches are float32, use astype() on them")
        size = whole("MNISTIter", "batch_size", batch_size)
        part = check_part("MNISTIter", num_parts, part_index)
        images = _read_part(image, 3, *part)
        labels = _read_part(label, 1, *part)
        if len(images) != len(labels):
            raise FileFormatError(f"MNISTIter: {shown(image)} has {len(images)} images, {shown(label)} {len(labels)} labels")
        self._check_shape("input_shape", input_shape, images)
        self._check_shape("data_shape", data_shape, images)
        if len(images) < size:
            raise BatchError(f"MNISTIter: batch_size is {size}, but there are {len(images)} images; they make no batch")
        order = list(range(len(images)))
        if converted("MNISTIter", "shuffle", "bool", shuffle):
            Shuffler(converted("MNISTIter", "seed", "int", seed)).shuffle(order)
        shape = (-1,) if converted("MNISTIter", "flat", "bool", flat) else (1, *images.shape[1:])
        if not converted("MNISTIter", "silent", "bool", silent):
            logging.getLogger().info("MNISTIter: load %d images, shuffle=%d, from %s", len(images), bool(shuffle), image)
        reader = _ImageReader(images, labels, np.array(order), size, shape)
        super().__init__(reader, Place(), prefetch_buffer, data_name, label_name)

    @staticmethod
    def _check_shape(name: str, shape: Any, images: Bytes) -> None:
        wanted = converted("MNISTIter", name, "tuple[int, ...] | None", shape)
        if wanted is not None and int(np.prod(wanted)) != images[0].size:
            raise BatchError(f"MNISTIter: {name} is {wanted}, but the images have {images.shape[1]} x {images.shape[2]} pixels")


class _ImageReader:
    """Makes batches of images in memory."""

    def __init__(self, images: Bytes, labels: Bytes, order: Any, batch_size: int, shape: tuple[int, ...]) -> None:
        self.images = images
        self.labels = labels
        self.order = order
        self.batch_size = batch_size
        self.shape = shape

    def batches(self, start: Place) -> Iterator[Loaded]:
        for begin in range(start.used, len(self.order) - self.batch_size + 1, self.batch_size):
            chosen = self.order[begin : begin + self.batch_size]
            data = np.multiply(self.images[chosen], np.float32(1 / 256), dtype=np.float32)
            label = self.labels[chosen].astype(np.float32)
            resume = Place(None, begin + self.batch_size)
            yield Loaded(data.reshape(self.batch_size, *self.shape), label, 0, chosen.astype(np.uint64), resume, Place())


def _read_part(path: files.PathLike, axes: int, num_parts: int, part_index: int) -> Bytes:
    """One of equal parts, along the first axis, of the bytes in an IDX file."""
    try:
        data = read_idx(path, limit=1 << 40)
    except MissingFileError as error:
        told = "mx.test_utils.get_mnist_ubyte() puts MNIST's four files, such as train-images-idx3-ubyte, into the folder data"
        raise MissingFileError(f"MNISTIter: {error}; {told}") from None
    if data.ndim != axes or data.dtype != np.uint8:
        raise FileFormatError(f"{files.as_path(path)}: bytes with {axes} axes are wanted, here are {data.dtype} with {data.ndim}")
    begin, end = (int(len(data) / num_parts * part) for part in (part_index, part_index + 1))
    return data[begin:end]
