"""Regions of interest as weighted sums of their pixels: what ROIAlign (roi_align.py) and PSROIPooling (roi_position.py) compute.

In both the weight of a pixel in a bin is the product of one number for its row and one for its column. So a region is two products of
matrices, `rows @ pixels @ columns`, with a line for each row and each column of bins (`Weights`), and the gradient the same with the
matrices transposed. Usually all bins have the same channels; then a region goes at a time, and of its image only the pixels that it needs.
In position-sensitive pooling each bin has channels of its own; then a bin goes at a time, for all regions. Book: chapter 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..op import Array, Shape
from .checks import accurate, on_all_cores
from .correlation import QUICK
from .roi import channels_last

CHANNELS = 128  # to work on together


class Weights(NamedTuple):
    """What the pixels along one axis weigh in each bin, (regions, bins, pixels), and which pixels weigh anything in a region at all."""

    matrix: Array
    first: list[int]
    end: list[int]


def weighed(xp: Any, matrix: Array) -> Weights:
    """The weights `matrix` with the range of the pixels that they need."""
    used = (matrix != 0).any(axis=1)
    first = used.argmax(axis=1)
    end = xp.where(used.any(axis=1), used.shape[1] - used[:, ::-1].argmax(axis=1), first)
    return Weights(matrix, first.tolist(), end.tolist())


# ---- the two products, and back


def pooled(xp: Any, data: Array, images: Array, rows: Weights, columns: Weights) -> Array:
    """The bins (regions, C, bins, bins) of images (N, C, H, W); regions of image -1 are 0."""
    result = xp.zeros((len(images), data.shape[1], rows.matrix.shape[1], columns.matrix.shape[1]), accurate(xp, data[:0]).dtype)
    places = places_of(xp, images, rows, columns)

    def some(parts: list[slice]) -> None:
        for channels in parts:
            for image, regions, place in places:
                part = channels_last(xp, data[image, channels][:, place[0], place[1]])
                for region in regions:
                    down, across, inner = inside(region, rows, columns, place)
                    # A product for each column of pixels, and for each row of bins: small ones, which BLAS computes in one thread.
                    lines = down @ part[inner].swapaxes(0, 1)
                    result[region, channels] = (across @ lines.swapaxes(0, 1)).transpose(2, 0, 1)

    on_all_cores(xp, channel_parts(data.shape[1]), some)
    return result


def spread(xp: Any, head: Array, images: Array, rows: Weights, columns: Weights, shape: Shape) -> Array:
    """What the gradient `head` of `pooled` gives to the images, of `shape`."""
    wide = accurate(xp, head)
    result = xp.zeros(shape, wide.dtype)
    places = places_of(xp, images, rows, columns)

    def some(parts: list[slice]) -> None:
        for channels in parts:
            for image, regions, place in places:
                target = result[image, channels][:, place[0], place[1]]
                part = xp.zeros((*target.shape[1:], target.shape[0]), wide.dtype)
                for region in regions:
                    down, across, inner = inside(region, rows, columns, place)
                    lines = across.T @ wide[region, channels].transpose(1, 2, 0)
                    part[inner] += (down.T @ lines.swapaxes(0, 1)).swapaxes(0, 1)
                target[...] = part.transpose(2, 0, 1)

    on_all_cores(xp, channel_parts(shape[1]), some)
    return result


def channel_parts(count: int) -> list[slice]:
    """Ranges of channels that are worked on together."""
    return [slice(start, start + CHANNELS) for start in range(0, count, CHANNELS)]


def places_of(xp: Any, images: Array, rows: Weights, columns: Weights) -> list[tuple[int, list[int], tuple[slice, slice]]]:
    """For each image with regions that have pixels: its number, those regions, and the part of it in which they lie."""
    found: dict[int, list[int]] = {}
    for region, image in enumerate(images.tolist()):
        if image >= 0 and rows.first[region] < rows.end[region] and columns.first[region] < columns.end[region]:
            found.setdefault(image, []).append(region)
    return [(image, regions, (span_of(rows, regions), span_of(columns, regions))) for image, regions in found.items()]


def span_of(axis: Weights, regions: list[int]) -> slice:
    """The pixels along an axis that any of `regions` needs."""
    return slice(min(axis.first[region] for region in regions), max(axis.end[region] for region in regions))


def inside(region: int, rows: Weights, columns: Weights, place: tuple[slice, slice]) -> tuple[Array, Array, tuple[slice, slice]]:
    """The two matrices of a region for the pixels that it needs, and where those are in the part `place` of its image."""
    down, across = (span_of(axis, [region]) for axis in (rows, columns))
    inner = (
        slice(down.start - place[0].start, down.stop - place[0].start),
        slice(across.start - place[1].start, across.stop - place[1].start),
    )
    return rows.matrix[region][:, down], columns.matrix[region][:, across], inner


# ---- the same with channels for each bin


def pooled_by_position(xp: Any, data: Array, images: Array, rows: Weights, columns: Weights, channels: Array) -> Array:
    """As `pooled`, with channels for each bin: `channels` (results, bins, bins) says which."""
    result = xp.zeros((len(images), *channels.shape), accurate(xp, data[:0]).dtype)
    parts = region_parts(xp, images, channels.shape[0] * data.shape[2] * data.shape[3])

    def some(bins: list[tuple[int, int]]) -> None:
        for row, column in bins:
            for image, regions in parts:
                pixels = accurate(xp, data[image, channels[:, row, column]]).swapaxes(0, 1)  # (H, results, W)
                down, across = rows.matrix[regions, row], columns.matrix[regions, column]
                lines = (down @ pixels.reshape(len(pixels), -1)).reshape(len(down), *pixels.shape[1:])
                result[regions, :, row, column] = (lines @ across[:, :, None])[:, :, 0]

    on_all_cores(xp, list(np.ndindex(channels.shape[1:])), some)
    return result


def spread_by_position(
    xp: Any, head: Array, images: Array, rows: Weights, columns: Weights, channels: Array, shape: Shape
) -> Array:
    """What the gradient `head` of `pooled_by_position` gives to the images, of `shape`."""
    wide = accurate(xp, head)
    result = xp.zeros(shape, wide.dtype)
    parts = region_parts(xp, images, channels.shape[0] * shape[2] * shape[3])
    sharing: dict[int, list[tuple[int, int]]] = {}  # bins with the same channels
    for row, column in np.ndindex(channels.shape[1:]):
        sharing.setdefault(int(channels[0, row, column]), []).append((row, column))

    def some(groups: list[list[tuple[int, int]]]) -> None:
        for bins in groups:
            for row, column in bins:
                for image, regions in parts:
                    down, across = rows.matrix[regions, row], columns.matrix[regions, column]
                    lines = wide[regions, :, row, column][:, :, None] * across[:, None]
                    pixels = (down.T @ lines.reshape(len(lines), -1)).reshape(shape[2], len(channels), shape[3])
                    result[image, channels[:, row, column]] += pixels.swapaxes(0, 1)

    on_all_cores(xp, list(sharing.values()), some)
    return result


def region_parts(xp: Any, images: Array, work: int) -> list[tuple[int, Array]]:
    """For each image some of its regions at a time: so few that BLAS, for `work` multiplications a region, uses one thread."""
    step = max(1, QUICK // max(work, 1))
    parts = []
    for image in sorted({*images.tolist()} - {-1}):
        regions = xp.flatnonzero(images == image)
        parts += [(image, regions[start : start + step]) for start in range(0, len(regions), step)]
    return parts
