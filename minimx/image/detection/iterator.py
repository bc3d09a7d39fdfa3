"""ImageDetIter: batches of images with the boxes of their objects.

The label of a sample is a row of numbers: how many stand before the boxes, how many belong to one box, whatever else, and then the boxes,
each with class, left, top, right, bottom, and more. Images have different numbers of boxes; in a batch each has as many rows as the image
with most, those that are missing filled with -1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...base import FileFormatError, MXNetError, shown
from ...fields import converted
from ...files import PathLike
from ...nd import NDArray
from ..arrays import ImageError, Pixels, pixels_of
from ..augment import as_augmenters, as_data_shape
from ..iterator import ImageIter, log
from ..listing import Labels
from ..usual import MEAN, STD, colours
from .augment import BOTTOM, LEFT, RIGHT, TOP, Boxes, DetAugmenter
from .drawing import draw_boxes
from .usual import CreateDetAugmenter

__all__ = ["ImageDetIter"]

LEAST_WIDTH = 5  # class, left, top, right, bottom


class ImageDetIter(ImageIter):
    """Batches of images and boxes. Needs Pillow (`pip install 'minimx[image]'`).

    **Args** those of ImageIter; the labels of an image are `header width, box width, ..., boxes` (see this module). `aug_list`: augmenters
    of `mx.image.det`; or else further arguments are those of `CreateDetAugmenter`. A sample whose boxes are all cut away by augmenters is
    left out, and logged.

    **Shapes** data `(batch_size, C, H, W)` float32; label `(batch_size, most boxes, box width)`, with -1 where there is no box.
    **Raises** as ImageIter; FileFormatError, a RuntimeError, for an image without a valid box. All labels are read beforehand, to know how
    many boxes there are. **Source** MXNet `image.ImageDetIter`.
    """

    def __init__(
        self,
        batch_size: int,
        data_shape: tuple[int, int, int],
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
        label_name: str = "label",
        last_batch_handle: str = "pad",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            batch_size=batch_size,
            data_shape=data_shape,
            path_imgrec=path_imgrec,
            path_imglist=path_imglist,
            path_root=path_root,
            path_imgidx=path_imgidx,
            shuffle=shuffle,
            part_index=part_index,
            num_parts=num_parts,
            aug_list=aug_list,
            imglist=imglist,
            data_name=data_name,
            label_name=label_name,
            last_batch_handle=last_batch_handle,
            **kwargs,
        )
        self.label_shape = self._estimate_label_shape()
        self.provide_label = [(label_name, (self.batch_size, *self.label_shape))]

    def _usual_augmenters(self, **kwargs: Any) -> list[Any]:
        return list(CreateDetAugmenter(self.data_shape, **kwargs))

    def _checked_augmenters(self, aug_list: Any) -> list[Any]:
        return as_augmenters(self._name, aug_list, DetAugmenter)

    # ---- labels

    def _estimate_label_shape(self) -> tuple[int, int]:
        """The most boxes that an image has, and the numbers of a box."""
        most, width = 0, 0
        self.reset()
        for label in self._labels():
            boxes = self._parse_label(label)
            if width and boxes.shape[1] != width:
                raise ImageError(
                    f"{self._name}: image {self._where()} has boxes of {boxes.shape[1]} numbers, those before it {width}; all must be alike"
                )
            most, width = max(most, len(boxes)), boxes.shape[1]
        self.reset()
        if not most:
            raise ImageError(f"{self._name}: {self._source} has no images; there is nothing to make a batch of")
        return most, width

    def _labels(self) -> Iterator[Any]:
        """The labels of a pass. Images in files of their own are not read for it."""
        if self.imgrec is None and self.seq is not None and self.imglist is not None:
            for key in self.seq:
                self.cur += 1
                yield self.imglist[key].label
            return
        while True:
            try:
                yield self.next_sample()[0]
            except StopIteration:
                return

    def _parse_label(self, label: Any) -> Boxes:
        """The boxes `(objects, box width)` of a sample's label, without those that are empty. Raises FileFormatError."""
        numbers = np.asarray(label.asnumpy() if isinstance(label, NDArray) else label, np.float32).ravel()
        fault = "it has too few numbers for a box"
        if numbers.size >= 2 + LEAST_WIDTH:
            before, width = int(numbers[0]), int(numbers[1])
            if before < 2 or width < LEAST_WIDTH:
                fault = f"it begins with {before} and {width}; a header has at least 2 numbers, a box at least {LEAST_WIDTH}"
            elif (numbers.size - before) % width or numbers.size <= before:
                fault = f"{numbers.size - before} numbers after its header are not boxes of {width}"
            else:
                boxes: Boxes = numbers[before:].reshape(-1, width)
                boxes = boxes[(boxes[:, RIGHT] > boxes[:, LEFT]) & (boxes[:, BOTTOM] > boxes[:, TOP])]
                if len(boxes):
                    return boxes
                fault = "none of its boxes has right > left and bottom > top"
        raise FileFormatError(f"{self._name}: the label of image {self._where()} has shape {numbers.shape}: {fault}")

    def _check_valid_label(self, label: Boxes) -> None:
        """Raise RuntimeError unless `label` has a box that is not empty."""
        if label.ndim != 2 or label.shape[1] < LEAST_WIDTH:
            raise RuntimeError(f"boxes have shape (1 or more, {LEAST_WIDTH} or more), not {label.shape}")
        if not ((label[:, 0] >= 0) & (label[:, RIGHT] > label[:, LEFT]) & (label[:, BOTTOM] > label[:, TOP])).any():
            raise RuntimeError("no valid box is left")

    # ---- batches

    def _started(self) -> Any:
        started = super()._started()
        started.label[...] = -1
        return started

    def _put(self, data: Pixels, label: Labels, row: int, given: Any, image: bytes) -> bool:
        decoded = self.imdecode(image)
        try:
            self.check_valid_image([decoded])
            augmented, boxes = self.augmentation_transform(decoded, self._parse_label(given))
            self._check_valid_label(boxes)
        except MXNetError:
            raise
        except RuntimeError as error:
            log.debug("%s: %s is left out: %s", self._name, self._where(), error)
            return False
        if len(boxes) > label.shape[1]:
            raise ImageError(
                f"{self._name}: image {self._where()} has {len(boxes)} boxes, label_shape={self.label_shape} was announced; reshape() it"
            )
        label[row, : len(boxes)] = boxes
        label[row, len(boxes) :] = -1
        self._place(data, row, augmented)
        return True

    def augmentation_transform(self, data: NDArray, label: Boxes) -> tuple[Any, Boxes]:  # type: ignore[override]  # boxes go along, as in MXNet
        """Image and boxes after all augmenters."""
        for augmenter in self.auglist:
            data, label = augmenter(data, label)
        return data, label

    # ---- shapes

    def reshape(self, data_shape: tuple[int, int, int] | None = None, label_shape: tuple[int, int] | None = None) -> None:
        """Change `data_shape`, or `label_shape` (boxes, numbers of a box), of the batches to come. Augmenters are not changed by it.

        **Raises** ValueError for fewer boxes than an image has, or another number of numbers.
        """
        if data_shape is not None:
            self.check_data_shape(data_shape)
            self.data_shape = as_data_shape(self._name, data_shape)
            self.provide_data = [(self.provide_data[0][0], (self.batch_size, *self.data_shape))]
        if label_shape is not None:
            self.check_label_shape(label_shape)
            self.label_shape = (int(label_shape[0]), int(label_shape[1]))
            self.provide_label = [(self.provide_label[0][0], (self.batch_size, *self.label_shape))]

    def check_label_shape(self, label_shape: Any) -> None:
        """Raise ValueError unless `label_shape` can replace the present one."""
        lengths = converted(self._name, "label_shape", "tuple[int, ...]", label_shape)
        if len(lengths) != 2:
            raise ImageError(f"{self._name}: label_shape is {shown(label_shape)}; (boxes, numbers of a box) is wanted")
        if lengths[0] < self.label_shape[0]:
            raise ImageError(
                f"{self._name}: label_shape={lengths} has fewer boxes than {self.label_shape}, which an image may have"
            )
        if lengths[1] != self.label_shape[1]:
            raise ImageError(
                f"{self._name}: label_shape={lengths} has {lengths[1]} numbers a box, the data {self.label_shape[1]}"
            )

    def sync_label_shape(self, it: ImageDetIter, verbose: bool = False) -> ImageDetIter:
        """Give this iterator and `it` labels of the same shape, that of the one with more boxes. **Returns** `it`.

        **Args** `verbose`: log what changes. **Raises** ArgumentError if `it` is no ImageDetIter, or has other boxes.
        """
        if not isinstance(it, ImageDetIter):
            raise ImageError(f"sync_label_shape: another ImageDetIter is wanted, got {shown(it)}")
        if it.label_shape[1] != self.label_shape[1]:
            raise ImageError(
                f"sync_label_shape: boxes have {self.label_shape[1]} numbers here, {it.label_shape[1]} there; they must be alike"
            )
        most = max(self.label_shape[0], it.label_shape[0])
        for each in (self, it):
            if each.label_shape[0] < most:
                each.reshape(None, (most, each.label_shape[1]))
                if verbose:
                    log.info("%s: label_shape is %s now", self._name, each.label_shape)
        return it

    # ---- to look at

    def draw_next(
        self,
        color: Any = None,
        thickness: int = 2,
        mean: Any = None,
        std: Any = None,
        clip: bool = True,
        waitKey: int | None = None,
        window_name: str = "draw_next",
        id2labels: dict[int, str] | None = None,
    ) -> Iterator[Pixels]:
        """The images to come, augmented, with their boxes drawn: NumPy arrays `(H, W, 3)` of uint8 with blue first, as OpenCV has them.

        **Args** `color`: of the boxes, red, green, blue; None for random ones (from NumPy's global generator). `thickness`: of their lines,
        in pixels. `mean`, `std`: what augmenters normalized with, to undo it; True for ImageNet's. `clip`: cut off what is below 0 or above
        255. `id2labels`: names of classes, to write into the boxes. `waitKey` and `window_name` are for OpenCV's windows, which there are
        none of here. **Raises** ArgumentError unless `waitKey` is None. **Source** MXNet `image.ImageDetIter.draw_next`.
        """
        if waitKey is not None:
            raise ImageError(
                f"draw_next: waitKey={shown(waitKey)} would open a window of OpenCV's, named {shown(window_name)}; "
                "leave it out, and show the arrays, in matplotlib as image[:, :, ::-1]"
            )
        return self._drawn(
            color, thickness, colours("draw_next", "mean", mean, MEAN), colours("draw_next", "std", std, STD), clip, id2labels
        )

    def _drawn(
        self, color: Any, thickness: int, mean: Any, std: Any, clip: bool, id2labels: dict[int, str] | None
    ) -> Iterator[Pixels]:
        while True:
            try:
                label, image = self.next_sample()
            except StopIteration:
                return
            data, boxes = self.augmentation_transform(self.imdecode(image), self._parse_label(label))
            pixels = pixels_of("draw_next", data).astype(np.float32)
            pixels = pixels * (1 if std is None else np.asarray(std)) + (0 if mean is None else np.asarray(mean))
            if clip:
                pixels = pixels.clip(0, 255)
            yield draw_boxes(pixels.astype(np.int64).astype(np.uint8), boxes, color, thickness, id2labels or {})[:, :, ::-1]
