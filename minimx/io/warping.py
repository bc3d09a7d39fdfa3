"""An image turned, sheared and scaled at once: each new pixel is taken from where an affine map says, between the old ones.

Numbers are OpenCV's (`warpAffine`), which MXNet calls: places are multiples of 1/32 of a pixel, and bilinear sums are integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.resampling import AREA, CUBIC, LANCZOS, LINEAR

__all__ = ["warped"]

Pixels = np.ndarray[Any, Any]

STEPS = 32  # to a pixel
FINE = 1024  # to a pixel, before places are rounded to STEPS


def warped(pixels: Pixels, matrix: Pixels, height: int, width: int, method: int, fill: int) -> Pixels:
    """`pixels` (H, W, C), bytes, moved to where `matrix` (2, 3) says: a new pixel (x, y) is what the old one was at M^-1 (x, y).

    **Args** `method`: of interpolation; `fill`: what is beyond the old image, in its first three channels. **Returns** (height, width, C).
    """
    columns, rows = _places(matrix.astype(np.float64), height, width)
    first = {LINEAR: 0, AREA: 0, CUBIC: 1, LANCZOS: 3}[method]
    weights = _weights(method)  # (STEPS, taps)
    left, above = (columns >> 5) - first, (rows >> 5) - first
    across, down = weights[columns & STEPS - 1], weights[rows & STEPS - 1]
    total = np.zeros((height, width, pixels.shape[2]), np.float64)
    border = np.array([fill, fill, fill, 0][: pixels.shape[2]], np.float64)
    for i in range(weights.shape[1]):
        inside_rows = (above + i >= 0) & (above + i < pixels.shape[0])
        for k in range(weights.shape[1]):
            inside = inside_rows & (left + k >= 0) & (left + k < pixels.shape[1])
            old = pixels[np.where(inside, above + i, 0), np.where(inside, left + k, 0)]
            total += np.where(inside[:, :, None], old, border) * (down[:, :, i] * across[:, :, k])[:, :, None]
    # Bilinear sums are exact: whole multiples of 1/1024. OpenCV rounds ties up.
    return np.clip(np.floor(total + 0.5), 0, 255).astype(np.uint8)


def _places(matrix: Pixels, height: int, width: int) -> tuple[Pixels, Pixels]:
    """Column and row of the old image for each new pixel, in STEPS of a pixel."""
    determinant = matrix[0, 0] * matrix[1, 1] - matrix[0, 1] * matrix[1, 0]
    factor = 1 / determinant if determinant else 0.0
    inverse = np.array([[matrix[1, 1], -matrix[0, 1]], [-matrix[1, 0], matrix[0, 0]]]) * factor
    shift = -inverse @ matrix[:, 2]
    found = []
    for axis in range(2):
        by_column = np.rint(inverse[axis, 0] * np.arange(width) * FINE).astype(np.int64)
        by_row = np.rint((inverse[axis, 1] * np.arange(height) + shift[axis]) * FINE).astype(np.int64)
        found.append((by_row[:, None] + by_column + FINE // STEPS // 2) >> 5)
    return found[0], found[1]


def _weights(method: int) -> Pixels:
    """What each neighbour counts, for each place within a pixel."""
    beyond = np.arange(STEPS) / STEPS
    if method in (LINEAR, AREA):
        return np.stack([1 - beyond, beyond], axis=1)
    if method == LANCZOS:
        distance = beyond[:, None] - np.arange(-3, 5)
        weights = np.sinc(distance) * np.sinc(distance / 4)
        return weights / weights.sum(axis=1, keepdims=True)
    a = -0.75
    near = [((a + 2) * x - (a + 3)) * x * x + 1 for x in (beyond, 1 - beyond)]
    far = ((a * (beyond + 1) - 5 * a) * (beyond + 1) + 8 * a) * (beyond + 1) - 4 * a
    return np.stack([far, *near, 1 - far - near[0] - near[1]], axis=1)
