"""Boxes drawn into an image, by Pillow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...base import ArgumentError, shown
from ...codec import pillow
from ..arrays import Pixels
from .augment import BOTTOM, LEFT, RIGHT, TOP, Boxes

WHITE = (255, 255, 255)


def draw_boxes(pixels: Pixels, boxes: Boxes, color: Any, thickness: int, names: Mapping[int, str]) -> Pixels:
    """`pixels` (H, W, 3) of uint8, red first, with the frame of each box, and the name of its class where there is one.

    **Args** `color`: red, green, blue; None for random ones. `thickness`: of the frames' lines, which lie half outside.
    """
    if color is not None and (not isinstance(color, (tuple, list)) or len(color) != 3):
        raise ArgumentError(f"draw_next: color is {shown(color)}; (red, green, blue) is wanted, or None for random colours")
    image = pillow().fromarray(np.ascontiguousarray(pixels))
    from PIL import ImageDraw

    draw = ImageDraw.Draw(image)
    height, width, _ = pixels.shape
    for box in boxes:
        if box[LEFT] < 0:  # no box
            continue
        left, right = int(box[LEFT] * width), int(box[RIGHT] * width)
        top, bottom = int(box[TOP] * height), int(box[BOTTOM] * height)
        chosen = np.random.rand(3) * 255 if color is None else color
        half = (thickness - 1) // 2
        draw.rectangle(
            (left - half, top - half, right + half, bottom + half), outline=tuple(int(each) for each in chosen), width=thickness
        )
        if int(box[0]) in names:
            draw.text((left + 5, top + 5), names[int(box[0])], fill=WHITE)
    return np.array(image)
