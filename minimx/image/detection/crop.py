"""DetRandomCropAug: a random part of an image in which enough of its objects can be seen."""

from __future__ import annotations

import random
from math import sqrt
from typing import Any

import numpy as np

from ...base import shown
from ...fields import converted
from ...nd import NDArray
from ..arrays import ImageError, context_of, delivered, pixels_of
from ..geometry import Rectangle, cropped
from .augment import BOTTOM, LEFT, RIGHT, TOP, Boxes, DetAugmenter, areas, random_height

__all__ = ["DetRandomCropAug"]


def as_bounds(name: str, what: str, value: Any) -> tuple[float, float]:
    """A pair of bounds; one number is both. Raises ImageError."""
    numbers = converted(name, what, "tuple[float, ...]", value)
    low, high = numbers * 2 if len(numbers) == 1 else numbers if len(numbers) == 2 else (1.0, 0.0)
    if low > high or high <= 0:
        raise ImageError(f"{name}: {what} is {shown(value)}; a lower and an upper bound are wanted, the upper one more than 0")
    return low, high


class DetRandomCropAug(DetAugmenter):
    """Cut a random part out of the image.

    **Args** `min_object_covered`: every object that the part touches must be covered to more than this fraction. `aspect_ratio_range`:
    bounds of the part's width / height. `area_range`: bounds of its area, as fractions of the image's. `min_eject_coverage`: objects of
    which not more than this fraction is left are dropped. `max_attempts`: parts that are tried; if none fits, the image stays whole.
    **Raises** ArgumentError for bounds that are none. **Source** MXNet `image.DetRandomCropAug`.
    """

    def __init__(
        self,
        min_object_covered: float = 0.1,
        aspect_ratio_range: Any = (0.75, 1.33),
        area_range: Any = (0.05, 1.0),
        min_eject_coverage: float = 0.3,
        max_attempts: int = 50,
    ) -> None:
        name = "DetRandomCropAug"
        self.aspect_ratio_range = as_bounds(name, "aspect_ratio_range", aspect_ratio_range)
        self.area_range = as_bounds(name, "area_range", area_range)
        if self.aspect_ratio_range[0] <= 0:
            raise ImageError(f"{name}: aspect_ratio_range is {shown(aspect_ratio_range)}; width / height is more than 0")
        super().__init__(
            min_object_covered=min_object_covered,
            aspect_ratio_range=self.aspect_ratio_range,
            area_range=self.area_range,
            min_eject_coverage=min_eject_coverage,
            max_attempts=max_attempts,
        )
        self.min_object_covered = converted(name, "min_object_covered", "float", min_object_covered)
        self.min_eject_coverage = converted(name, "min_eject_coverage", "float", min_eject_coverage)
        self.max_attempts = converted(name, "max_attempts", "int", max_attempts)

    def __call__(self, src: NDArray, label: Boxes) -> tuple[NDArray, Boxes]:
        pixels = pixels_of("DetRandomCropAug", src)
        height, width, _ = pixels.shape
        for _ in range(self.max_attempts):
            part = self._drawn(height, width)
            if part is None or not self._covers(part, label, height, width):
                continue
            kept = self._moved(label, part, height, width)
            if len(kept):
                return delivered(cropped(pixels, part, None, 0), context_of(src)), kept
        return src, label

    def _drawn(self, height: int, width: int) -> Rectangle | None:
        """A random part, or None if what was drawn does not fit into the image."""
        least, most = (bound * height * width for bound in self.area_range)
        ratio = random.uniform(*self.aspect_ratio_range)
        highest = round(sqrt(most / ratio))
        if round(highest * ratio) > width:
            highest = int((width + 0.4999999) / ratio)  # the largest that is not too wide when its width is rounded
        highest = min(highest, height)
        part_height = random_height(min(round(sqrt(least / ratio)), highest), highest)
        part_width = round(part_height * ratio)
        # Rounding may have missed the bounds of the area by a row.
        if part_width * part_height < least:
            part_height += 1
            part_width = round(part_height * ratio)
        if part_width * part_height > most:
            part_height -= 1
            part_width = round(part_height * ratio)
        if not (least <= part_width * part_height <= most and part_width <= width and part_height <= height):
            return None
        y = random.randint(0, height - part_height)
        x = random.randint(0, width - part_width)
        return x, y, part_width, part_height

    def _covers(self, part: Rectangle, label: Boxes, height: int, width: int) -> bool:
        """Whether the part touches an object, and shows enough of each that it touches."""
        x, y, part_width, part_height = part
        if part_width * part_height < 2:
            return False
        whole = areas(label)
        large = whole * width * height > 2  # pixels
        if not large.any():
            return False
        seen = label[large]
        seen[:, [LEFT, RIGHT]] = np.clip(seen[:, [LEFT, RIGHT]], x / width, (x + part_width) / width)
        seen[:, [TOP, BOTTOM]] = np.clip(seen[:, [TOP, BOTTOM]], y / height, (y + part_height) / height)
        coverage = areas(seen) / whole[large]
        touched = coverage[coverage > 0]
        return bool(touched.size and touched.min() > self.min_object_covered)

    def _moved(self, label: Boxes, part: Rectangle, height: int, width: int) -> Boxes:
        """The boxes in the part, as fractions of it; without those of which too little is left."""
        left, top, part_width, part_height = part[0] / width, part[1] / height, part[2] / width, part[3] / height
        moved = label.copy()
        moved[:, [LEFT, RIGHT]] = np.clip((label[:, [LEFT, RIGHT]] - left) / part_width, 0, 1)
        moved[:, [TOP, BOTTOM]] = np.clip((label[:, [TOP, BOTTOM]] - top) / part_height, 0, 1)
        whole = areas(label)
        seen = areas(moved) * part_width * part_height
        coverage = np.divide(seen, whole, out=np.zeros_like(seen), where=whole > 0)
        kept: Boxes = moved[(areas(moved) > 0) & (coverage > self.min_eject_coverage)]
        return kept
