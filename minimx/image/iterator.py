"""ImageIter: batches of images, read from a folder or a file of records, decoded, augmented.

A sample goes through `next_sample` (label and bytes), `imdecode`, `check_valid_image`, `augmentation_transform` and `postprocess_data`,
each of which a subclass may override. An image that cannot be read stops the iterator with an error that names it, as MXNet's; what
`check_valid_image` refuses by a RuntimeError is left out, and logged.

The last batch of a pass may lack samples. "discard" leaves it out, "pad" fills it up from the beginning of the data and then ends the pass,
and "roll_over" keeps it for the next pass, whose first batch it begins.
"""

from __future__ import annotations

import logging
import os
import random
from typing import Any, NamedTuple

import numpy as np

from .. import recordio
from ..base import FolderError, MissingFileError, MXNetError, ShapeError, shown
from ..fields import converted
from ..files import PathLike
from ..io import DataBatch, DataIter
from ..nd import NDArray
from .arrays import ImageError, Pixels, delivered, pixels_of
from .augment import as_augmenters, as_data_shape
from .listing import Entry, Labels, from_items, read_list
from .reading import imdecode
from .usual import CreateAugmenter

__all__ = ["ImageIter"]

log = logging.getLogger(__name__)

LABEL_DTYPES = ("float32", "float64", "int32", "int64")
LAST_BATCHES = ("pad", "discard", "roll_over")


class BrokenImageError(MXNetError, ValueError):
    """An image among many that cannot be read; the message names it."""


class Unfinished(NamedTuple):
    """A batch that waits for more samples: arrays, and how many of their rows are filled."""

    data: Pixels
    label: Labels
    filled: int


class ImageIter(DataIter):
    """Batches of images and labels. Needs Pillow (`pip install 'minimx[image]'`).

    **Args** The images are those of `path_imgrec`, a file of records; or those of a list, below the folder `path_root`: `path_imglist`, a
    file with lines `number <tab> labels <tab> path`, or `imglist`, a Python list of [label, path]. With a file of records, a list
    replaces the labels in it. `data_shape`: (3, height, width). `label_width`: labels of an image. `path_imgidx`: the index of the
    records, which `shuffle` (a new order for each pass, from Python's `random`) and parts need. `part_index`, `num_parts`: read only that
    of so many equal parts. `aug_list`: augmenters; or else further arguments are those of `CreateAugmenter`. `dtype`: in which labels are
    kept until they go into the batch, which is float32. `last_batch_handle`: "pad", "discard" or "roll_over".

    **Shapes** data `(batch_size, C, H, W)` float32; label `(batch_size,)` or `(batch_size, label_width)`. **Raises** MissingFileError,
    FileFormatError; RuntimeError that names the image for one that is broken; ArgumentError for arguments that do not fit, and where there
    is no image at all. **Source** MXNet `image.ImageIter`.
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: tuple[int, int, int],
        label_width: int = 1,
        path_imgrec: PathLike | None = None,
        path_imglist: PathLike | None = None,
        path_root: PathLike | None = None,
        path_imgidx: PathLike | None = None,
        shuffle: bool = False,
        part_index: int = 0,
        num_parts: int = 1,
        aug_list: list[Any] | None = None,
        imglist: list[Any] | None = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
        dtype: str = "float32",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self._name = type(self).__name__
        self.batch_size = self._positive("batch_size", batch_size)
        self.label_width = self._positive("label_width", label_width)
        self.check_data_shape(data_shape)
        self.data_shape = as_data_shape(self._name, data_shape)
        if dtype not in LABEL_DTYPES:
            raise ImageError(f"{self._name}: dtype is {shown(dtype)}; labels are one of {', '.join(LABEL_DTYPES)}")
        if last_batch_handle not in LAST_BATCHES:
            raise ImageError(
                f"{self._name}: last_batch_handle is {shown(last_batch_handle)}; choose one of {', '.join(LAST_BATCHES)}"
            )
        if aug_list is not None and kwargs:
            raise ImageError(
                f"{self._name}: {', '.join(kwargs)} would make augmenters, but aug_list has them already; give one or the other"
            )
        self.auglist = self._usual_augmenters(**kwargs) if aug_list is None else self._checked_augmenters(aug_list)
        self.path_root = path_root
        self.shuffle = bool(shuffle)
        self.last_batch_handle = last_batch_handle
        labels = (self.batch_size, self.label_width) if self.label_width > 1 else (self.batch_size,)
        self.provide_data = [(data_name, (self.batch_size, *self.data_shape))]
        self.provide_label = [(label_name, labels)]
        self.imgrec: Any = None
        self._open_source(path_imgrec, path_imgidx, path_imglist, imglist, np.dtype(dtype))
        self._take_part(part_index, num_parts)
        self.num_image = None if self.seq is None else len(self.seq)
        self.cur = 0
        self._allow_read = True
        self._rest: Unfinished | None = None
        self._taken = 0  # samples that this pass has put into batches
        self.reset()

    # ---- what is read

    def _positive(self, what: str, value: Any) -> int:
        number: int = converted(self._name, what, "int", value)
        if number < 1:
            raise ImageError(f"{self._name}: {what} is {number}; it must be 1 or more")
        return number

    def _usual_augmenters(self, **kwargs: Any) -> list[Any]:
        return list(CreateAugmenter(self.data_shape, **kwargs))

    def _checked_augmenters(self, aug_list: Any) -> list[Any]:
        return as_augmenters(self._name, aug_list)

    def _open_source(
        self,
        path_imgrec: PathLike | None,
        path_imgidx: PathLike | None,
        path_imglist: PathLike | None,
        imglist: list[Any] | None,
        dtype: np.dtype[Any],
    ) -> None:
        """Set `imgrec`, the records; `imglist`, what the list says; and `seq`, the keys in order, or None if records are read in theirs."""
        self.imglist: dict[Any, Entry] | None = None
        if path_imglist:
            log.info("%s: reading the list of images %s", self._name, path_imglist)
            self.imglist = dict(read_list(path_imglist, dtype))
        elif imglist is not None:
            if not isinstance(imglist, (list, tuple)):
                raise ImageError(f"{self._name}: imglist must be a list of [label, path], got {shown(imglist)}")
            self.imglist = dict(from_items(self._name, imglist, dtype))
        self.seq: list[Any] | None
        self._source = str(path_imgrec or path_imglist or "imglist")
        if path_imgrec:
            log.info("%s: reading the records of %s", self._name, path_imgrec)
            if path_imgidx:
                self.imgrec = recordio.MXIndexedRecordIO(path_imgidx, path_imgrec, "r")
            else:
                self.imgrec = recordio.MXRecordIO(path_imgrec, "r")
            self.seq = list(self.imgrec.keys) if path_imgidx else None
        elif self.imglist is None:
            raise ImageError(f"{self._name}: there is nothing to read; give path_imgrec, path_imglist or imglist")
        elif path_imgidx:
            raise ImageError(f"{self._name}: path_imgidx is the index of records; give path_imgrec as well")
        else:
            self.seq = list(self.imglist)

    def _take_part(self, part_index: int, num_parts: int) -> None:
        """Leave in `seq` what is to be read here."""
        parts, part = self._positive("num_parts", num_parts), converted(self._name, "part_index", "int", part_index)
        if not 0 <= part < parts:
            raise ImageError(f"{self._name}: part_index is {part}; of {parts} parts it is 0 to {parts - 1}")
        if self.seq is None:
            if self.shuffle or parts > 1:
                what = "shuffle" if self.shuffle else "num_parts"
                raise ImageError(f"{self._name}: {what} needs to know where each record is; give path_imgidx as well")
            return
        length = len(self.seq) // parts
        self.seq = self.seq[part * length : (part + 1) * length]
        if not self.seq:
            where = f"{self._source} has no images" if parts == 1 else f"{self._source} has too few images for {parts} parts"
            raise ImageError(f"{self._name}: {where}; there is nothing to make a batch of")

    def reset(self) -> None:
        """Begin a new pass; what is rolled over comes first in it."""
        if self.seq is not None and self.shuffle:
            random.shuffle(self.seq)
        if self.last_batch_handle != "roll_over" or self._rest is None:
            self._rewind()
        self._taken = 0

    def hard_reset(self) -> None:
        """Begin a new pass, and forget what was to be rolled over."""
        self._rest = None
        self.reset()

    def _rewind(self) -> None:
        if self.imgrec is not None:
            self.imgrec.reset()
        self.cur = 0
        self._allow_read = True

    # ---- one sample

    def next_sample(self) -> tuple[Any, bytes]:
        """The label and the bytes of the next image. Raises StopIteration at the end of the data."""
        if not self._allow_read:
            raise StopIteration
        if self.seq is None:
            record = self.imgrec.read()
            if record is None:
                if self.last_batch_handle != "discard":
                    self.imgrec.reset()
                    self.cur = 0
                raise StopIteration
            self.cur += 1
            return self._unpacked(record, None)
        if self.cur >= len(self.seq):
            if self.last_batch_handle != "discard":
                self.cur = 0
            raise StopIteration
        key = self.seq[self.cur]
        self.cur += 1
        if self.imgrec is not None:
            return self._unpacked(self.imgrec.read_idx(key), key)
        assert self.imglist is not None
        entry = self.imglist[key]
        return entry.label, self.read_image(entry.path)

    def _unpacked(self, record: bytes, key: Any) -> tuple[Any, bytes]:
        try:
            header, image = recordio.unpack(record)
        except MXNetError as error:
            raise BrokenImageError(f"Broken image {self._where()}: {error}") from None
        if self.imglist is None:
            return header.label, image
        number = header.id if key is None else key
        if number not in self.imglist:
            raise ImageError(
                f"{self._name}: {self._source} has an image of number {shown(number)}, which the list of labels lacks"
            )
        return self.imglist[number].label, image

    def read_image(self, fname: str) -> bytes:
        """The bytes of the file `fname` below the root folder."""
        path = os.path.join(self.path_root or "", fname)
        try:
            with open(path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            raise MissingFileError(f"{self._name}: there is no file {path}, which {self._source} names") from None
        except IsADirectoryError:
            raise FolderError(f"{self._name}: {path}, which {self._source} names, is a folder") from None
        except ValueError:  # a character that no name can have
            raise ImageError(f"{self._name}: {self._source} names {shown(path)}, which cannot be a file's name") from None

    def imdecode(self, s: bytes) -> NDArray:
        """The image whose file has the bytes `s`. Raises RuntimeError that names the image."""
        try:
            return imdecode(s)
        except ImportError:
            raise
        except MXNetError as error:
            raise BrokenImageError(f"Broken image {self._where()}: {error}") from None

    def _where(self) -> str:
        """Which image was read last, in words."""
        key = self.cur - 1 if self.seq is None else self.seq[self.cur - 1]
        if self.imgrec is None and self.imglist is not None:
            return f"filename: {self.imglist[key].path}"
        return f"index: {key} in {self._source}"

    def check_valid_image(self, data: Any) -> None:
        """Raise RuntimeError if the image `data[0]` is to be left out."""
        if not data[0].shape:
            raise RuntimeError("the image has no shape")

    def augmentation_transform(self, data: NDArray) -> Any:
        """The image after all augmenters."""
        for augmenter in self.auglist:
            data = augmenter(data)
        return data

    def postprocess_data(self, datum: NDArray) -> NDArray:
        """The image (H, W, C) as it goes into the batch, (C, H, W)."""
        return delivered(pixels_of(self._name, datum).transpose(2, 0, 1))

    # ---- batches

    def next(self) -> DataBatch:
        data, label, count = self._rest or self._started()
        if self._rest is None:
            count = self._filled(data, label, 0)
        missing = self.batch_size - count
        if missing:
            if not count:
                self._end()
            if self.last_batch_handle == "discard":
                raise StopIteration
            if self.last_batch_handle == "roll_over" and self._rest is None:
                self._rest = Unfinished(data, label, count)
                raise StopIteration
            self._fill_up(data, label, count)
            self._rest = None
            self._allow_read = self.last_batch_handle == "roll_over"
        return DataBatch([delivered(data)], [delivered(label)], pad=missing)

    def _started(self) -> Unfinished:
        """Arrays for a batch without any sample in it."""
        return Unfinished(np.zeros(self.provide_data[0][1], np.float32), np.zeros(self.provide_label[0][1], np.float32), 0)

    def _filled(self, data: Pixels, label: Labels, start: int) -> int:
        """Put samples into the rows from `start` on, until these or the data end; how many rows are filled then."""
        count = start
        try:
            while count < self.batch_size:
                given, image = self.next_sample()
                if self._put(data, label, count, given, image):
                    count += 1
                    self._taken += 1
        except StopIteration:
            pass
        return count

    def _fill_up(self, data: Pixels, label: Labels, count: int) -> None:
        """Fill the rows from `count` on with samples from the beginning of the data, again and again if there are few."""
        while count < self.batch_size:
            filled = self._filled(data, label, count)
            if filled == count:  # all were refused this time: what is in the batch already must do
                for array in (data, label):
                    array[count:] = np.resize(array[:count], array[count:].shape)
                return
            count = filled

    def _end(self) -> None:
        """End the pass; or raise an error if it had no sample at all, which MXNet would pass over in silence."""
        if not self._taken and self._allow_read:
            raise ImageError(f"{self._name}: {self._source} has no image that could be used; there is nothing to make a batch of")
        raise StopIteration

    def _put(self, data: Pixels, label: Labels, row: int, given: Any, image: bytes) -> bool:
        """Put a sample into a row of the batch; False if it is refused."""
        decoded = self.imdecode(image)
        try:
            self.check_valid_image([decoded])
        except RuntimeError as error:
            log.debug("%s: %s is left out: %s", self._name, self._where(), error)
            return False
        numbers = np.asarray(given.asnumpy() if hasattr(given, "asnumpy") else given)
        if numbers.size != self.label_width:
            raise ImageError(
                f"{self._name}: image {self._where()} has {numbers.size} labels, label_width={self.label_width} was announced"
            )
        label[row] = numbers.reshape(label.shape[1:])
        self._place(data, row, self.augmentation_transform(decoded))
        return True

    def _place(self, data: Pixels, row: int, image: Any) -> None:
        """Put an augmented image into a row of the batch."""
        ready = self.postprocess_data(image)
        if ready.shape != data.shape[1:]:
            raise ShapeError(
                f"{self._name}: image {self._where()} has shape {ready.shape} after all augmenters, data_shape is {data.shape[1:]}; "
                "does aug_list crop or resize to it?"
            )
        data[row] = pixels_of(self._name, ready)

    def check_data_shape(self, data_shape: Any) -> None:
        """Raise ValueError unless `data_shape` is (3, height, width)."""
        if as_data_shape(self._name, data_shape)[0] != 3:
            raise ImageError(f"{self._name}: data_shape is {shown(data_shape)}; images have 3 channels here: (3, height, width)")
