"""What an augmenter for detection is: it takes an image and its boxes and returns both, which stay as they are themselves."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base import ArgumentError, shown
from ...nd import NDArray
from ..arrays import context_of, delivered, pixels_of
from ..augment import Augmenter, as_augmenters, as_probability, listed

__all__ = ["DetAugmenter", "DetBorrowAug", "DetHorizontalFlipAug", "DetRandomSelectAug"]

Boxes = np.ndarray[Any, np.dtype[Any]]  # (objects, 5 or more): class, left, top, right, bottom, ...
LEFT, TOP, RIGHT, BOTTOM = 1, 2, 3, 4


class DetAugmenter:
    """The base of augmenters for detection: a subclass overrides `__call__`. **Source** MXNet `image.DetAugmenter`."""

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = {key: listed(value) for key, value in kwargs.items()}

    def dumps(self) -> Any:
        """The augmenter as text, JSON: its class and what it was made with. A list of such texts where it consists of others."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src: NDArray, label: Boxes) -> tuple[NDArray, Boxes]:
        raise NotImplementedError(f"{type(self).__name__} must override __call__, which takes image and boxes and returns both")


class DetBorrowAug(DetAugmenter):
    """An Augmenter that moves no box. **Source** MXNet `image.DetBorrowAug`.

    >>> from minimx.image import CastAug
    >>> DetBorrowAug(CastAug()).dumps()
    ['detborrowaug', '["castaug", {"type": "float32"}]']
    """

    def __init__(self, augmenter: Augmenter) -> None:
        if not isinstance(augmenter, Augmenter):
            raise ArgumentError(f"DetBorrowAug: an Augmenter is wanted, got {shown(augmenter)}")
        super().__init__(augmenter=augmenter.dumps())
        self.augmenter = augmenter

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), self.augmenter.dumps()]

    def __call__(self, src: NDArray, label: Boxes) -> tuple[NDArray, Boxes]:
        return self.augmenter(src), label


class DetRandomSelectAug(DetAugmenter):
    """One of the augmenters `aug_list`, chosen at random each time; none with probability `skip_prob`, or if there are none.
    **Source** MXNet `image.DetRandomSelectAug`."""

    def __init__(self, aug_list: Sequence[DetAugmenter] | DetAugmenter, skip_prob: float = 0) -> None:
        super().__init__(skip_prob=skip_prob)
        given = aug_list if isinstance(aug_list, (list, tuple)) else [aug_list]
        self.aug_list: list[DetAugmenter] = as_augmenters("DetRandomSelectAug", given, DetAugmenter)
        self.skip_prob = as_probability("DetRandomSelectAug", "skip_prob", skip_prob) if self.aug_list else 1.0

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), [each.dumps() for each in self.aug_list]]

    def __call__(self, src: NDArray, label: Boxes) -> tuple[NDArray, Boxes]:
        if random.random() < self.skip_prob:
            return src, label
        random.shuffle(self.aug_list)
        return self.aug_list[0](src, label)


class DetHorizontalFlipAug(DetAugmenter):
    """Mirror image and boxes, left to right, with probability `p`. **Source** MXNet `image.DetHorizontalFlipAug`."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = as_probability("DetHorizontalFlipAug", "p", p)

    def __call__(self, src: NDArray, label: Boxes) -> tuple[NDArray, Boxes]:
        if random.random() >= self.p:
            return src, label
        mirrored = label.copy()
        mirrored[:, [LEFT, RIGHT]] = 1.0 - label[:, [RIGHT, LEFT]]
        return delivered(pixels_of("DetHorizontalFlipAug", src)[:, ::-1], context_of(src)), mirrored


def areas(boxes: Boxes) -> Boxes:
    """The area of each box, 0 where it is empty."""
    widths = np.maximum(0, boxes[:, RIGHT] - boxes[:, LEFT])
    heights = np.maximum(0, boxes[:, BOTTOM] - boxes[:, TOP])
    return widths * heights


def random_height(lowest: int, highest: int) -> int:
    """A random height in a range, or its upper end if the range is empty; a random number is drawn only where there is a choice."""
    return random.randint(lowest, highest) if lowest < highest else highest
