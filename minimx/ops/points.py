"""Values between the pixels of an image, at any points: looked up, their gradients, and their slopes.

A point has four pixels around it, its `Corners`, each of which counts the more the nearer it is (bilinear interpolation). Images are
*tables* here: a row for each pixel, with its channels, and at the end a row of zeros for whatever lies outside. Many points are then four
picks of rows, the gradient goes back to the same rows, and how a value changes when its point moves is told by the differences between
the four. Rotated and moved regions (roi_points.py) and deformable convolution (deformable.py) are made of these. Book: chapter 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..op import Array, Shape
from .checks import accurate, on_all_cores

TOGETHER = 1 << 18  # numbers to look up, or to put back, at a time: they stay in cache


class Corners(NamedTuple):
    """Of n points: the rows of a table around each (upper left, upper right, lower left, lower right), and how far it is from the upper
    and from the left ones, 0 to 1."""

    rows: tuple[Array, ...]
    down: Array
    across: Array

    def weights(self) -> tuple[Array, ...]:
        """How much each of the four rows counts."""
        up, aside = 1 - self.down, 1 - self.across
        return up * aside, up * self.across, self.down * aside, self.down * self.across

    def part(self, place: slice) -> Corners:
        """Some of the points."""
        return Corners(tuple(rows[place] for rows in self.rows), self.down[place], self.across[place])


def corners_of(
    xp: Any, y: Array, x: Array, lengths: Shape, inside: Array, framed: bool = False, on_pixels: bool = False
) -> Corners:
    """The corners of points in an image of `lengths`; those of points not `inside` are all outside, the row after the last pixel.

    Beyond an edge the edge's pixels count, or, if the image is `framed` with zeros, nothing does. `on_pixels`: a point on a pixel has that
    one alone, so that no slope is seen there; otherwise the next ones are its corners, too.
    """
    height, width = lengths
    nothing = height * width
    ends, shares = [], []
    for place, length in ((y, height), (x, width)):
        place = xp.where(inside, place if framed else place.clip(0, length - 1), 0)
        low = xp.floor(place)
        share = place - low
        low = low.astype(np.int64)
        high = low + (share > 0) if on_pixels else low + 1
        ends.append((low, high if framed else xp.minimum(high, length - 1)))
        shares.append(share)
    rows = []
    for row in ends[0]:
        for column in ends[1]:
            there = inside
            if framed:
                there = there & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            rows.append(xp.where(there, row * width + column, nothing))
    return Corners(tuple(rows), *shares)


def table_of(xp: Any, images: Array) -> Array:
    """Images (..., pixels, channels) with a pixel of zeros at the end, a copy, in float32 for float16."""
    wide = accurate(xp, images)
    table = xp.zeros((*wide.shape[:-2], wide.shape[-2] + 1, wide.shape[-1]), wide.dtype)
    table[..., :-1, :] = wide
    return table


def parts_of(points: int, channels: int) -> list[slice]:
    """Ranges of points that are worked on together."""
    step = max(1, TOGETHER // max(channels, 1))
    return [slice(start, start + step) for start in range(0, points, step)]


def look_up(xp: Any, table: Array, corners: Corners, out: Array) -> None:
    """Write the values of points in a `table` (rows, C) into `out` (n, C)."""

    def some(parts: list[slice]) -> None:
        for part in parts:
            own, target = corners.part(part), out[part]
            (first, *rows), (weight, *weights) = own.rows, own.weights()
            xp.multiply(table[first], weight[:, None], out=target)
            for each, weight in zip(rows, weights):
                pixels = table[each]
                pixels *= weight[:, None]
                target += pixels

    on_all_cores(xp, parts_of(*out.shape), some)


def put_back(xp: Any, table: Array, corners: Corners, values: Array) -> None:
    """Add what `values` (n, C), the gradients of points, give to the pixels in `table` (rows, C)."""
    channels = table.shape[1]
    flat, column = table.reshape(-1), xp.arange(channels)
    for part in parts_of(*values.shape):
        own = corners.part(part)
        for rows, weights in zip(own.rows, own.weights()):
            xp.add.at(flat, ((rows * channels)[:, None] + column).ravel(), (values[part] * weights[:, None]).ravel())


def slopes(xp: Any, table: Array, corners: Corners, values: Array) -> tuple[Array, Array, Array]:
    """Sums over channels of `values` (n, C) times: the slope of each point's value along y, that along x, and the value itself."""
    found = xp.empty((3, len(values)), table.dtype)

    def some(parts: list[slice]) -> None:
        for part in parts:
            own = corners.part(part)
            sums = [xp.einsum("nc,nc->n", table[rows], values[part]) for rows in own.rows]
            upper_left, upper_right, lower_left, lower_right = sums
            found[0, part] = (lower_left - upper_left) * (1 - own.across) + (lower_right - upper_right) * own.across
            found[1, part] = (upper_right - upper_left) * (1 - own.down) + (lower_right - lower_left) * own.down
            found[2, part] = sum(weight * each for weight, each in zip(own.weights(), sums))

    on_all_cores(xp, parts_of(*values.shape), some)
    return found[0], found[1], found[2]
