"""DetRandomPadAug: the image at a random place on a larger canvas, so that its objects become small."""

from __future__ import annotations

import random
from math import sqrt
from typing import Any

import numpy as np

from ...base import shown
from ...fields import converted
from ...nd import NDArray
from ..arrays import ImageError, Pixels, context_of, delivered, pixels_of
from ..geometry import Rectangle
from .augment import BOTTOM, LEFT, RIGHT, TOP, Boxes, DetAugmenter, random_height
from .crop import as_bounds

__all__ = ["DetRandomPadAug"]


class DetRandomPadAug(DetAugmenter):
    """Put the image on a larger canvas.

    **Args** `aspect_ratio_range`: bounds of the canvas's width / height. `area_range`: bounds of its area, as multiples of the image's, the
    upper one more than 1. `max_attempts`: canvases that are tried; if none exceeds the image by two pixels both ways, it stays as it is.
    `pad_val`: the colour of the canvas, or a number for all channels. **Raises** ArgumentError. **Source** MXNet `image.DetRandomPadAug`.
    """

    def __init__(
        self,
        aspect_ratio_range: Any = (0.75, 1.33),
        area_range: Any = (1.0, 3.0),
        max_attempts: int = 50,
        pad_val: Any = (128, 128, 128),
    ) -> None:
        name = "DetRandomPadAug"
        self.aspect_ratio_range = as_bounds(name, "aspect_ratio_range", aspect_ratio_range)
        self.area_range = as_bounds(name, "area_range", area_range)
        if self.aspect_ratio_range[0] <= 0:
            raise ImageError(f"{name}: aspect_ratio_range is {shown(aspect_ratio_range)}; width / height is more than 0")
        if self.area_range[1] <= 1:
            raise ImageError(
                f"{name}: area_range is {shown(area_range)}; a canvas is larger than the image: its upper end must be more than 1"
            )
        self.max_attempts = converted(name, "max_attempts", "int", max_attempts)
        self.pad_val = converted(name, "pad_val", "tuple[float, ...]", pad_val)
        super().__init__(
            aspect_ratio_range=self.aspect_ratio_range,
            area_range=self.area_range,
            max_attempts=max_attempts,
            pad_val=self.pad_val,
        )

    def __call__(self, src: NDArray, label: Boxes) -> tuple[NDArray, Boxes]:
        pixels = pixels_of("DetRandomPadAug", src)
        for _ in range(self.max_attempts):
            canvas = self._drawn(pixels.shape[0], pixels.shape[1])
            if canvas is not None:
                return delivered(self._padded(pixels, canvas), context_of(src)), self._moved(label, canvas, *pixels.shape[:2])
        return src, label

    def _drawn(self, height: int, width: int) -> Rectangle | None:
        """Where the image is on a random canvas, x and y, and its width and height; None if it hardly exceeds the image."""
        least, most = (bound * height * width for bound in self.area_range)
        ratio = random.uniform(*self.aspect_ratio_range)
        lowest, highest = round(sqrt(least / ratio)), round(sqrt(most / ratio))
        if round(lowest * ratio) < width:
            lowest = int((width + 0.499999) / ratio)
        canvas_height = random_height(min(max(lowest, height), highest), highest)
        canvas_width = round(canvas_height * ratio)
        if canvas_height - height < 2 or canvas_width - width < 2:
            return None
        y = random.randint(0, canvas_height - height)
        x = random.randint(0, canvas_width - width)
        return x, y, canvas_width, canvas_height

    def _padded(self, pixels: Pixels, canvas: Rectangle) -> Pixels:
        x, y, width, height = canvas
        if len(self.pad_val) not in (1, pixels.shape[2]):
            raise ImageError(
                f"DetRandomPadAug: pad_val is {self.pad_val}, an image of shape {pixels.shape} needs {pixels.shape[2]} numbers"
            )
        colour = np.asarray(self.pad_val, np.float64)
        if pixels.dtype.kind != "f":
            limits = np.iinfo(pixels.dtype)
            colour = np.rint(colour).clip(limits.min, limits.max)
        padded = np.empty((height, width, pixels.shape[2]), pixels.dtype)
        padded[...] = colour.astype(pixels.dtype)
        padded[y : y + pixels.shape[0], x : x + pixels.shape[1]] = pixels
        return padded

    def _moved(self, label: Boxes, canvas: Rectangle, height: int, width: int) -> Boxes:
        """The boxes as fractions of the canvas."""
        moved = label.copy()
        moved[:, [LEFT, RIGHT]] = (label[:, [LEFT, RIGHT]] * width + canvas[0]) / canvas[2]
        moved[:, [TOP, BOTTOM]] = (label[:, [TOP, BOTTOM]] * height + canvas[1]) / canvas[3]
        return moved
