"""ImageDetRecordIter: batches of images and of the objects in them, from a file of records.

Images have different numbers of objects, so that labels are padded: a row is `channels, height, width, n`, the n numbers that boxing.py
describes, and as many times `label_pad_value` as the longest labels in the file need.
"""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import numpy as np

from .. import codec, files
from ..base import DTypeError, FileFormatError, as_dtype, shown
from ..seeds import WORD, Key
from .boxing import BoxAugmentation, BoxNormalization, Objects
from .file_iter import MXDataIter, whole
from .images import STREAM, ImageReader, decoded, mean_image
from .labels import LabelList
from .options import parse, require
from .passes import Place
from .reading import Reading, shape_of_image
from .records import Image, Records
from .tables import paths_of

__all__ = ["ImageDetRecordIter"]

Array = np.ndarray[Any, Any]

#: What MXNet adds to the seed of the order.
ORDER_SEED = 233

#: What stands before the labels of an image: channels, height, width, how many labels there are.
BEFORE = 4


@dataclasses.dataclass(frozen=True)
class BoxReading(Reading):
    """Options of reading that ImageDetRecordIter adds."""

    label_width: int = -1  # labels of an image; -1: any number
    label_pad_width: int = 0  # how many there is place for; 0 or -1: as many as the longest labels in the file have
    label_pad_value: float = -1.0  # what fills the place


class ImageDetRecordIter(MXDataIter):
    """Batches of images and their objects from files of records, as im2rec packs them. Needs Pillow (`pip install 'minimx[image]'`).

    **Args** `path_imgrec`, `data_shape`, `batch_size`, `prefetch_buffer`, `data_name`, `label_name`: as ImageRecordIter; `dtype` can be
    float32. Further options, each described where it stands: those of reading (`shuffle`, `label_pad_width` ...) in `io.reading.Reading`
    and `io.detection.BoxReading`, those of images and boxes (`rand_crop_prob`, `rand_mirror_prob`, `resize_mode` ...) in
    `io.boxing.BoxAugmentation`, those of numbers (`mean_r`, `std_r`, `scale` ...) in `io.boxing.BoxNormalization`. Records are mixed
    within 8 MB. Without `label_pad_width` the file is read once to find the longest labels.

    **Shapes** data `(batch_size, *data_shape)`, label `(batch_size, 4 + label_pad_width)`. An image that `resize_mode` left smaller is in
    the left upper corner of a black one. **Raises** as ImageRecordIter. **Source** MXNet `io.ImageDetRecordIter`, with the same order and
    the same labels; what is random in an image is not the same as there.
    """

    def __init__(
        self, *, path_imgrec: files.PathLike = "./data/imgrec.rec", data_shape: Any, batch_size: int, prefetch_buffer: int = 4,
        dtype: Any = None, data_name: str = "data", label_name: str = "softmax_label", **options: Any,
    ) -> None:  # fmt: skip
        owner = type(self).__name__
        reading, augmentation, normalization = parse(owner, options, BoxReading, BoxAugmentation, BoxNormalization)
        reading.check(owner, "det_aug_default")
        augmentation.check(owner)
        if as_dtype(None if dtype == "None" else dtype) != np.float32:
            raise DTypeError(f"{owner}: dtype is {shown(dtype)}; batches are float32, use astype() on them")
        paths = paths_of(owner, "path_imgrec", path_imgrec)
        source = reading.source(paths, "", ORDER_SEED)
        listed = LabelList(reading.path_imglist, max(reading.label_width, 0)) if reading.path_imglist else None
        room = _room(owner, reading, source.records, listed)
        loader = _BoxLoader(shape_of_image(owner, data_shape), room, listed, augmentation, normalization, reading)
        reader = ImageReader(source, loader, whole(owner, "batch_size", batch_size), reading, np.dtype(np.float32))
        codec.pillow()  # or an error that says how to get it
        if reading.verbose:
            logging.getLogger().info(
                "%s: %s, %d threads decode images, %d labels", owner, ", ".join(paths), reading.threads, room
            )
        if normalization.mean_img:
            loader.mean = mean_image(owner, normalization.mean_img, reader)
        super().__init__(reader, Place(source.random), prefetch_buffer, data_name, label_name)


def _room(owner: str, reading: BoxReading, records: Records, listed: LabelList | None) -> int:
    """How many labels there must be place for. Raises ArgumentError if it was said, and is too little."""
    asked = reading.label_pad_width
    if listed is not None:
        longest = max((len(labels) for labels in listed.labels.values()), default=0)
    elif reading.label_width > 0:
        longest = reading.label_width
    elif asked > 0:
        return asked  # whether it is enough, each image will show
    else:
        longest = max((len(image.labels) for image, _, _ in records.in_order()), default=0)
    require(
        asked <= 0 or longest <= asked,
        owner,
        "label_pad_width",
        asked,
        f"there are images with {longest} labels; 0 makes place for all",
    )
    return max(asked, longest)


class _BoxLoader:
    """Makes an image of a batch, and the row of its labels, from a record."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        room: int,
        label_list: LabelList | None,
        augmentation: BoxAugmentation,
        normalization: BoxNormalization,
        reading: BoxReading,
    ) -> None:
        self.shape = shape
        self.room = room
        self.label_list = label_list
        self.augmentation = augmentation
        self.normalization = normalization
        self.reading = reading
        self.mean: Array | None = None

    def labels(self, count: int) -> Array:
        """Place for the labels of a batch."""
        return np.full((count, BEFORE + self.room), self.reading.label_pad_value, np.float32)

    def load(self, image: Image, epoch: int, number: int, data: Array, label: Array) -> None:
        """Write an image and its labels into a batch."""
        found = image.labels if self.label_list is None else self.label_list.of(image)
        if (self.reading.label_width > 0 and len(found) != self.reading.label_width) or len(found) > self.room:
            wanted = (
                f"label_width is {self.reading.label_width}"
                if self.reading.label_width > 0
                else f"there is place for {self.room}; make label_pad_width larger"
            )
            raise FileFormatError(f"{image.place}: the record has {len(found)} labels, but {wanted}")
        objects = Objects(found, image.place)
        draw = Key(self.reading.seed & WORD, STREAM, epoch << 32 | number).generator(np)
        pixels = self.augmentation.applied(decoded(image, self.shape[0]), objects, self.shape[1:], draw)
        height, width, channels = pixels.shape
        if (height, width) != self.shape[1:]:
            self.normalization.write(np.zeros((*self.shape[1:], channels), np.uint8), data, self.mean)
        self.normalization.write(pixels, data[:, :height, :width], self.mean)
        labels = objects.labels()
        label[:BEFORE] = channels, height, width, len(labels)
        label[BEFORE : BEFORE + len(labels)] = labels
