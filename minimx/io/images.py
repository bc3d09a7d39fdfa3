"""ImageRecordIter: batches of images from a file of records, decoded and augmented by several threads.

One thread reads records in order and gives each, with its place in the batch, to those that decode (Pillow does it without Python's lock);
it waits for the images of a batch only when those of the next one are under way. What is random is drawn from a key of the image, and the
batches come in order, so that results do not depend on how many threads there are.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import codec, files, nd, storage
from ..base import ArgumentError, DTypeError, FileFormatError, as_dtype
from ..device import cpu
from ..op import Spec
from ..seeds import WORD, Key
from .augmenting import Augmentation, Normalization
from .file_iter import Loaded, MXDataIter, one_axis, whole
from .labels import LabelList
from .options import parse
from .passes import Batched, Place, batches
from .reading import Reading, shape_of_image
from .records import Image, RecordSource
from .tables import paths_of

__all__ = ["ImageRecordInt8Iter", "ImageRecordIter", "ImageRecordUInt8Iter"]

Array = np.ndarray[Any, Any]

#: What MXNet adds to the seed of the order.
ORDER_SEED = 111

#: The stream of random numbers that images have; those of the devices' streams have small numbers.
STREAM = 1 << 40


@dataclasses.dataclass(frozen=True)
class ImageReading(Reading):
    """Options of reading that ImageRecordIter adds."""

    path_imgidx: files.PathLike = ""  # the index of the records
    label_width: int = 1  # labels of an image
    seed_aug: int | None = None  # of all that is random in images; None: `seed`
    device_id: int = 0  # makes no difference


class ImageRecordIter(MXDataIter):
    """Batches of images from files of records, as im2rec packs them. Needs Pillow (`pip install 'minimx[image]'`).

    **Args** `path_imgrec`: a file, a folder of files, or several of them with `;` between; `data_shape`: of an image in a batch,
    (channels, height, width), with 1, 3 or 4 channels; `batch_size`; `prefetch_buffer`: how many batches are made ahead; `dtype`: float32,
    or uint8 or int8, which are not scaled; `data_name`, `label_name`. Further options, each described where it stands: those of reading
    (`path_imgidx`, `label_width`, `shuffle`, `seed`, `num_parts`, `round_batch`, `preprocess_threads` ...) in `io.reading.Reading` and
    `io.images.ImageReading`, those of shape and colours (`resize`, `rand_crop`, `pad`, `brightness` ...) in `io.augmenting.Augmentation`,
    those of numbers (`rand_mirror`, `mean_r`, `std_r`, `scale` ...) in `io.augmenting.Normalization`.

    Without an index, records are mixed within 8 MB only. The last batch of a pass is filled up with the beginning of the next one, which
    goes on behind that; with `round_batch=False` with zeros.

    **Shapes** data `(batch_size, *data_shape)`, label `(batch_size,)` or `(batch_size, label_width)`; `index` of a batch has the numbers
    in the images' headers. **Raises** ArgumentError for options that do not fit or are not there; MissingFileError; FileFormatError, with
    the file and the byte, for a file that is cut off, a record that is no image, or a broken image. **Source** MXNet `io.ImageRecordIter`,
    with the same order; what is random in an image is not the same as there. MXNet fills a short batch with whatever is in memory, and
    calls it whole.
    """

    _dtype = "float32"

    def __init__(
        self, *, path_imgrec: files.PathLike, data_shape: Any, batch_size: int, prefetch_buffer: int = 4, dtype: Any = None,
        data_name: str = "data", label_name: str = "softmax_label", **options: Any,
    ) -> None:  # fmt: skip
        owner = type(self).__name__
        reading, augmentation, normalization = parse(owner, options, ImageReading, Augmentation, Normalization)
        reading.check(owner, "aug_default")
        augmentation.check(owner)
        normalization.check(owner)
        width = whole(owner, "label_width", reading.label_width)
        listed = LabelList(reading.path_imglist, width) if reading.path_imglist else None
        seed = reading.seed if reading.seed_aug is None else reading.seed_aug
        loader = _Loader(shape_of_image(owner, data_shape), width, listed, augmentation, normalization, seed)
        paths = paths_of(owner, "path_imgrec", path_imgrec)
        source = reading.source(paths, reading.path_imgidx, ORDER_SEED)
        reader = ImageReader(source, loader, whole(owner, "batch_size", batch_size), reading, self._kind(owner, dtype))
        codec.pillow()  # or an error that says how to get it
        if reading.verbose:
            logging.getLogger().info("%s: %s, %d threads decode images", owner, ", ".join(paths), reading.threads)
        if normalization.mean_img and reader.dtype != np.uint8:
            loader.mean = mean_image(owner, normalization.mean_img, reader)
        super().__init__(reader, Place(source.random), prefetch_buffer, data_name, label_name)

    @classmethod
    def _kind(cls, owner: str, dtype: Any) -> np.dtype[Any]:
        """The dtype of batches. Raises DTypeError for one that there is not."""
        kind = as_dtype(cls._dtype if dtype in (None, "None") else dtype)
        if kind not in (np.float32, np.uint8, np.int8) or (cls._dtype != "float32" and kind != cls._dtype):
            choice = "float32, uint8 or int8" if cls._dtype == "float32" else f"{cls._dtype}, or take ImageRecordIter"
            raise DTypeError(f"{owner}: dtype is {kind.name}; choose {choice}")
        return kind


class ImageRecordUInt8Iter(ImageRecordIter):
    """ImageRecordIter with `dtype="uint8"`: pixels as they are in the images, from 0 to 255. **Source** MXNet `io.ImageRecordUInt8Iter`."""

    _dtype = "uint8"


class ImageRecordInt8Iter(ImageRecordIter):
    """ImageRecordIter with `dtype="int8"`: pixels less the mean, from -128 to 127. **Source** MXNet `io.ImageRecordInt8Iter`."""

    _dtype = "int8"


# ---- batches


class ImageReader:
    """Makes batches: `load(image, epoch, number, data, label)` writes each image into its places."""

    def __init__(self, source: RecordSource, loader: Any, batch_size: int, reading: Reading, dtype: np.dtype[Any]) -> None:
        self.source = source
        self.loader = loader
        self.batch_size = batch_size
        self.reading = reading
        self.dtype = dtype

    def batches(self, start: Place) -> Iterator[Loaded]:
        from concurrent.futures import ThreadPoolExecutor  # here, as `import minimx` should not take long

        pool = ThreadPoolExecutor(self.reading.threads, "minimx-decode") if self.reading.threads > 1 else None
        waiting: deque[Callable[[], Loaded]] = deque()
        planned = batches(self.source, start, self.batch_size, self.reading.round_batch)
        try:
            while True:
                try:
                    plan = next(planned, None)
                except Exception:
                    while waiting:  # an error has its place behind the batches before it
                        yield waiting.popleft()()
                    raise
                if plan is None:
                    break
                waiting.append(self._started(pool, plan))
                if len(waiting) > 1:
                    yield waiting.popleft()()
            while waiting:
                yield waiting.popleft()()
        finally:
            if pool is not None:
                pool.shutdown(wait=True, cancel_futures=True)

    def _started(self, pool: Any, plan: Batched) -> Callable[[], Loaded]:
        """Let `pool` make a batch; without one it will be made when it is asked for. Returns what waits for it."""
        chosen = list(itertools.chain.from_iterable(plan.parts))
        data: Array = storage.empty(Spec.of((self.batch_size, *self.loader.shape), self.dtype), cpu())
        data[len(chosen) :] = 0
        label = self.loader.labels(self.batch_size)
        numbers = np.zeros(self.batch_size, np.uint64)
        numbers[: len(chosen)] = [image.number for image, _, _ in chosen]
        tasks: list[Callable[[], None]] = []
        for row, (image, epoch, number) in enumerate(chosen):
            task = functools.partial(self.loader.load, image, epoch, number, data[row], label[row])
            tasks.append(task if pool is None else pool.submit(task).result)

        def finished() -> Loaded:
            for task in tasks:
                task()
            return Loaded(data, one_axis(label), plan.pad, numbers, plan.resume, plan.restart)

        return finished


class _Loader:
    """Makes an image of a batch from a record."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        label_width: int,
        label_list: LabelList | None,
        augmentation: Augmentation,
        normalization: Normalization,
        seed: int,
    ) -> None:
        self.shape = shape
        self.label_width = label_width
        self.label_list = label_list
        self.augmentation = augmentation
        self.normalization = normalization
        self.seed = seed
        self.mean: Array | None = None

    def labels(self, count: int) -> Array:
        """Place for the labels of a batch."""
        return np.zeros((count, self.label_width), np.float32)

    def load(self, image: Image, epoch: int, number: int, data: Array, label: Array) -> None:
        """Write an image and its labels into a batch."""
        found = image.labels if self.label_list is None else self.label_list.of(image)
        if len(found) != self.label_width:
            raise FileFormatError(f"{image.place}: the record has {len(found)} labels, but label_width is {self.label_width}")
        label[:] = found
        pixels = decoded(image, self.shape[0])
        draw = Key(self.seed & WORD, STREAM, epoch << 32 | number).generator(np)
        pixels = self.augmentation.applied(pixels, self.shape[1:], draw, image.place)
        self.normalization.write(pixels, data, draw, self.mean)


def decoded(image: Image, channels: int) -> Array:
    """The pixels of an image, with so many channels. Raises FileFormatError."""
    color = {1: codec.GREY, 3: codec.COLOUR, 4: codec.AS_STORED}[channels]
    pixels = codec.decode(image.content, color, name=image.place)
    if pixels.shape[2] != channels:
        raise FileFormatError(f"{image.place}: the image has {pixels.shape[2]} channels, {channels} are wanted")
    return pixels


def mean_image(owner: str, path: str, reader: ImageReader) -> Array:
    """The mean image in a file; if it is not there, that of one epoch, which is written to it."""
    shape = reader.loader.shape
    if os.path.exists(path):
        loaded = nd.load(path)
        found = list(loaded.values()) if isinstance(loaded, dict) else loaded
        if len(found) != 1 or found[0].shape != shape:
            raise ArgumentError(f"{owner}: mean_img={path!r} must have one array of shape {shape}, the mean image")
        mean: Array = found[0].asnumpy().astype(np.float32)
        return mean
    logging.getLogger().info("%s: there is no file %s; the mean image is made from all images", owner, path)
    short = dataclasses.replace(reader.reading, round_batch=False)
    once = ImageReader(reader.source, reader.loader, reader.batch_size, short, reader.dtype)
    total, count, before = np.zeros(shape, np.float64), 0, reader.source.random
    for batch in once.batches(Place(before)):
        used = len(batch.data) - batch.pad
        total += batch.data[:used].sum(axis=0, dtype=np.float64)
        count += used
    reader.source.random = before
    mean = (total / max(count, 1)).astype(np.float32)
    nd.save(path, {"mean_img": nd.array(mean)})
    return mean
