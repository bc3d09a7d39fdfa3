"""Resizing an image: its rows, and then its columns, as weighted sums of the old ones.

Every method but the nearest pixel is separable: along an axis, a new sample is a sum of a few old ones (`Taps`: which they are,
and how much each counts), and an image is resized along one axis after the other. The methods differ in their taps alone. Bilinear
has two, cubic four, Lanczos eight, around the place where the new pixel's centre falls among the old centres; pixels are squares,
so a centre is at i + 0.5, and samples beyond the edge repeat the edge. Area has the old pixels that the new one covers.

Numbers are OpenCV's, which MXNet calls: where bytes are resized, its weights are whole multiples of 1/2048, and bilinear
sums are integers. The operators are in image.py; MXNet's `image` package calls `resample` too. Nothing here is smoothed before
it is shrunk, unless by "area".
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base import ArgumentError, ShapeError, shown

NEAREST, LINEAR, CUBIC, AREA, LANCZOS, AUTOMATIC = 0, 1, 2, 3, 4, 9
METHODS = "0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 by the sizes"
BLOCK = 8  # new samples whose weights are one matrix
LARGE = 1 << 15  # numbers of a result that is worth making matrices
PRODUCT = 1 << 18  # multiplications up to which OpenBLAS stays in the calling thread
LARGEST = (1 << 15) - 1  # pixels to a side, of a result: as in OpenCV, and what no image needs
UNIT = 1 << 11  # bytes are weighted in whole multiples of 1 / UNIT

Pixels: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Taps(NamedTuple):
    """How samples along one axis become new ones: new[i] = scale * sum of weights[i, k] * old[places[i, k]] over k."""

    places: Pixels  # (new length, taps)
    weights: Pixels  # the same, float32
    scale: float


def resample(pixels: Pixels, height: int, width: int, interp: int = LINEAR) -> Pixels:
    """`pixels` in another size.

    **Shapes** pixels (H, W, C), result (height, width, C), of the same dtype.
    **Args** height, width: in pixels, at least 1. interp: 0 nearest, 1 bilinear, 2 cubic, 3 area (the mean of the old pixels that a new
    one covers; bilinear where it enlarges), 4 Lanczos, 9 cubic to enlarge, area to shrink, else bilinear.
    **Returns** a fresh array. Integers are rounded and kept inside their range.
    **Raises** ShapeError, ArgumentError. **Source** OpenCV's `resize`; bytes are equal, or 1 apart where a sum lies between two.
    """
    check_request(pixels.shape, height, width, interp)
    old_height, old_width, _ = pixels.shape
    if (height, width) == (old_height, old_width):
        return pixels.copy()
    method = resolved(interp, (old_height, old_width), (height, width))
    if method == NEAREST:
        return nearest(pixels, height, width)
    halved = (old_height, old_width) == (2 * height, 2 * width)
    if method == LINEAR and halved:
        method = AREA  # the same mean of four pixels, but rounded once
    shrinks = height <= old_height and width <= old_width
    taps_of = TAPS[method] if method != AREA or shrinks else cover_taps_enlarged
    vertical, horizontal = taps_of(old_height, height), taps_of(old_width, width)
    if pixels.dtype != np.uint8:
        return in_range(weighted(pixels, vertical, horizontal, accumulator(pixels.dtype)), pixels.dtype)
    if method == AREA and shrinks:
        sums = weighted(pixels, vertical, horizontal, np.dtype(np.float32))
        if halved and pixels.shape[2] != 2:
            return np.add(sums, 0.5).astype(np.uint8)  # a tie goes up here, and to the even neighbour elsewhere
        return in_range(sums, pixels.dtype)
    if method in (LINEAR, AREA):
        return bilinear_bytes(pixels, vertical, horizontal)
    return in_range(weighted(pixels, in_units(vertical), in_units(horizontal), np.dtype(np.float32)), pixels.dtype)


def check_request(shape: tuple[int, ...], height: int, width: int, interp: int) -> None:
    """Raise an error unless an image of `shape` can be resized to `height` x `width` by the method `interp`."""
    if len(shape) != 3 or 0 in shape:
        raise ShapeError(f"resize: an image of shape (height, width, channels) that is not empty is wanted, got {tuple(shape)}")
    if not (1 <= height <= LARGEST and 1 <= width <= LARGEST):
        raise ArgumentError(f"resize: {shown(height)} x {shown(width)} pixels were asked for; each must be from 1 to {LARGEST}")
    if interp not in (NEAREST, LINEAR, CUBIC, AREA, LANCZOS, AUTOMATIC):
        raise ArgumentError(f"resize: interp is {shown(interp)}; choose one of {METHODS}")


def resolved(interp: int, old: tuple[int, int], new: tuple[int, int]) -> int:
    """The method that `interp` stands for, between images of these heights and widths.

    >>> resolved(9, (10, 10), (20, 20)), resolved(9, (10, 10), (5, 5)), resolved(9, (10, 10), (20, 5))
    (2, 3, 1)
    """
    if interp != AUTOMATIC:
        return interp
    if new[0] > old[0] and new[1] > old[1]:
        return CUBIC
    return AREA if new[0] < old[0] and new[1] < old[1] else LINEAR


# ---- taps, by method


def nearest(pixels: Pixels, height: int, width: int) -> Pixels:
    """The old pixel in which the left upper corner of each new one lies."""
    old_height, old_width, channels = pixels.shape
    rows, columns = (
        np.minimum(np.floor(np.arange(new) * (1 / (new / old))).astype(np.intp), old - 1)
        for old, new in ((old_height, height), (old_width, width))
    )
    numbers = (columns[:, None] * channels + np.arange(channels)).ravel()
    flat = np.take(np.take(pixels.reshape(old_height, -1), rows, axis=0), numbers, axis=1)
    return flat.reshape(height, width, channels)


def centres(old: int, new: int) -> tuple[Pixels, Pixels]:
    """Where the new samples' centres fall among the old ones: the old sample before each, and how far it lies beyond that."""
    places = ((np.arange(new) + 0.5) * (1 / (new / old)) - 0.5).astype(np.float32)
    before = np.floor(places)
    return before.astype(np.intp), places - before


def clamped(first: Pixels, weights: Pixels, old: int) -> Taps:
    """Taps at `first` and the samples that follow; those beyond the edge repeat the edge."""
    places = first[:, None] + np.arange(weights.shape[1])
    return Taps(np.clip(places, 0, old - 1), weights.astype(np.float32), 1.0)


@functools.lru_cache(maxsize=256)
def linear_taps(old: int, new: int) -> Taps:
    """Straight lines between old samples."""
    before, beyond = centres(old, new)
    return clamped(before, np.stack([1 - beyond, beyond], axis=1), old)


@functools.lru_cache(maxsize=256)
def cubic_taps(old: int, new: int) -> Taps:
    """Cubic convolution (Keys) with a = -0.75: the weight of a sample is a piecewise cubic of its distance."""
    a = np.float32(-0.75)
    before, beyond = centres(old, new)
    near = [((a + 2) * x - (a + 3)) * x * x + 1 for x in (beyond, 1 - beyond)]
    far = ((a * (beyond + 1) - 5 * a) * (beyond + 1) + 8 * a) * (beyond + 1) - 4 * a
    return clamped(before - 1, np.stack([far, *near, 1 - far - near[0] - near[1]], axis=1), old)


@functools.lru_cache(maxsize=256)
def lanczos_taps(old: int, new: int) -> Taps:
    """The eight nearest samples, weighted by sinc(x) * sinc(x / 4) of their distance x, scaled to sum to 1."""
    before, beyond = centres(old, new)
    distance = beyond[:, None].astype(np.float64) - np.arange(-3, 5)
    weights = np.sinc(distance) * np.sinc(distance / 4)
    return clamped(before - 3, weights / weights.sum(axis=1, keepdims=True), old)


@functools.lru_cache(maxsize=256)
def cover_taps(old: int, new: int) -> Taps:
    """The old samples that a new one covers, each by the part of it that is covered. For shrinking."""
    ratio = old / new
    if old % new == 0:  # whole samples: their sum is exact, so it is scaled at the end
        places = np.arange(old).reshape(new, old // new)
        return Taps(places, np.ones(places.shape, np.float32), 1 / (old // new))
    start = np.arange(new) * ratio
    end = np.minimum(start + ratio, old)
    places = np.floor(start).astype(np.intp)[:, None] + np.arange(math.ceil(ratio) + 1)
    covered = np.minimum(end[:, None], places + 1) - np.maximum(start[:, None], places)
    weights = np.where(covered > 1e-3, covered, 0) / (end - start)[:, None]
    return Taps(np.minimum(places, old - 1), weights.astype(np.float32), 1.0)


@functools.lru_cache(maxsize=256)
def cover_taps_enlarged(old: int, new: int) -> Taps:
    """The same for enlarging: one old sample, or two where the new one lies across the border between them."""
    ratio = 1 / (new / old)
    first = np.floor(np.arange(new) * ratio)
    beyond = (np.arange(1, new + 1) - (first + 1) * (new / old)).astype(np.float32)
    beyond = np.where(beyond > 0, beyond - np.floor(beyond), np.float32(0))
    return clamped(first.astype(np.intp), np.stack([1 - beyond, beyond], axis=1), old)


TAPS = {LINEAR: linear_taps, CUBIC: cubic_taps, AREA: cover_taps, LANCZOS: lanczos_taps}


# ---- weighted sums


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The floating dtype in which images of `dtype` are summed: one that holds their values."""
    return np.dtype(np.float32) if np.can_cast(dtype, np.float32) else np.dtype(np.float64)


def in_range(sums: Pixels, dtype: np.dtype[Any]) -> Pixels:
    """`sums`, whose memory may be used, in `dtype`: whole numbers are rounded, and stay inside what the dtype can hold."""
    if dtype.kind == "f":
        return sums.astype(dtype, copy=False)
    if dtype.kind == "b":
        return sums >= 0.5
    limits = np.iinfo(dtype)
    whole = np.rint(sums, out=sums)
    # float64 has no 2**63 - 1, and what it has next to it would overflow
    most = float(limits.max) if dtype.itemsize < 8 else np.nextafter(float(limits.max), 0.0)
    return np.clip(whole, float(limits.min), most, out=whole).astype(dtype)


def weighted(pixels: Pixels, vertical: Taps, horizontal: Taps, dtype: np.dtype[Any]) -> Pixels:
    """`pixels` (H, W, C) resized along both axes, in the floating `dtype`; along that axis first which leaves less to do."""
    old_height, old_width, channels = pixels.shape
    # Many channels, or pixels that do not count, would make the matrices large; what is not finite would spread in a block.
    dense = channels <= 4 and vertical.places.size >= old_height and horizontal.places.size >= old_width
    if pixels.dtype.kind in "ui" and dense and len(vertical.places) * len(horizontal.places) * channels >= LARGE:
        return multiplied(pixels, vertical, horizontal, dtype)
    rows, vertical = of_used(pixels, vertical)
    horizontal = by_channel(horizontal, channels)
    height, width = len(vertical.places), len(horizontal.places)
    if height * rows.shape[1] < len(rows) * width:
        sums = summed(summed(rows, vertical, dtype, axis=0), horizontal, dtype, axis=1)
    else:
        sums = summed(summed(rows, horizontal, dtype, axis=1), vertical, dtype, axis=0)
    return sums.reshape(height, -1, channels)


def multiplied(pixels: Pixels, vertical: Taps, horizontal: Taps, dtype: np.dtype[Any]) -> Pixels:
    """`weighted`, by products of small matrices: BLAS is faster than what fetches old samples, though most of the weights are 0."""
    old_height, old_width, channels = pixels.shape
    rows = pixels.astype(dtype).reshape(old_height, -1)
    height, width = len(vertical.places), len(horizontal.places)
    if height * old_width < old_height * width:
        sums = across(down(rows, vertical), horizontal, channels)
    else:
        sums = down(across(rows, horizontal, channels), vertical)
    return sums.reshape(height, width, channels)


def blocks(taps: Taps, old: int, dtype: np.dtype[Any]) -> tuple[list[int], Pixels]:
    """For BLOCK new samples each: the first of the old ones that they need, and the weights of these (blocks, BLOCK, as many as needed)."""
    count = -(-len(taps.places) // BLOCK)
    padded = [(0, count * BLOCK - len(taps.places)), (0, 0)]
    places, weights = np.pad(taps.places, padded, "edge"), np.pad(taps.weights * taps.scale, padded)
    first, last = (end(places.reshape(count, -1), axis=1) for end in (np.min, np.max))
    span = int((last - first).max()) + 1
    first = np.minimum(first, old - span)
    matrices = np.zeros((count * BLOCK, span), dtype)
    numbers = np.arange(count * BLOCK)
    for place, weight in zip((places - np.repeat(first, BLOCK)[:, None]).T, weights.T):
        matrices[numbers, place] += weight
    return first.tolist(), matrices.reshape(count, BLOCK, span)


def down(rows: Pixels, taps: Taps) -> Pixels:
    """The weighted sums of rows."""
    first, matrices = blocks(taps, len(rows), rows.dtype)
    sums = np.empty((len(matrices) * BLOCK, rows.shape[1]), rows.dtype)
    step = max(1, PRODUCT // matrices[0].size)
    for left in range(0, rows.shape[1], step):
        columns = slice(left, left + step)
        for number, (start, matrix) in enumerate(zip(first, matrices)):
            new, old = slice(number * BLOCK, (number + 1) * BLOCK), slice(start, start + matrix.shape[1])
            np.matmul(matrix, rows[old, columns], out=sums[new, columns])
    return sums[: len(taps.places)]


def across(rows: Pixels, taps: Taps, channels: int) -> Pixels:
    """The weighted sums of pixels in each row, whose numbers are those of one pixel's channels after the other's."""
    first, matrices = blocks(taps, rows.shape[1] // channels, rows.dtype)
    count, _, span = matrices.shape
    apart = np.zeros((count, span, channels, BLOCK, channels), rows.dtype)  # a channel does not count for another
    for channel in range(channels):
        apart[:, :, channel, :, channel] = matrices.swapaxes(1, 2)
    apart = apart.reshape(count, span * channels, BLOCK * channels)
    width = BLOCK * channels
    sums = np.empty((len(rows), count * width), rows.dtype)
    step = max(1, PRODUCT // apart[0].size)
    for top in range(0, len(rows), step):
        part = slice(top, top + step)
        for number, (start, matrix) in enumerate(zip(first, apart)):
            new, old = slice(number * width, (number + 1) * width), slice(start * channels, (start + span) * channels)
            np.matmul(rows[part, old], matrix, out=sums[part, new])
    return sums[:, : len(taps.places) * channels]


def of_used(pixels: Pixels, taps: Taps) -> tuple[Pixels, Taps]:
    """The rows of an image (H, W, C) that `taps` refer to, as a matrix of numbers, and taps that refer to these."""
    flat = pixels.reshape(len(pixels), -1)
    if taps.places.size >= len(flat):
        return flat, taps
    rows = np.unique(taps.places)
    return np.take(flat, rows, axis=0), taps._replace(places=np.searchsorted(rows, taps.places))


def by_channel(taps: Taps, channels: int) -> Taps:
    """Taps for a row of pixels, as taps for its numbers. A pixel's channels lie side by side, and each is fetched by itself:
    NumPy fetches single numbers several times faster than triples.
    """
    count = taps.places.shape[1]
    places = taps.places[:, None] * channels + np.arange(channels)[:, None]
    return Taps(places.reshape(-1, count), np.repeat(taps.weights, channels, axis=0), taps.scale)


def summed(samples: Pixels, taps: Taps, dtype: np.dtype[Any], axis: int) -> Pixels:
    """The weighted sums along an axis of a matrix."""
    result: Pixels | None = None
    for places, weights in zip(taps.places.T, taps.weights.T):
        term = np.take(samples, places, axis=axis)
        if taps.scale == 1:
            term = np.multiply(term, weights[:, None] if axis == 0 else weights, dtype=dtype)
        result = term.astype(dtype, copy=False) if result is None else np.add(result, term, out=result)
    assert result is not None
    return result if taps.scale == 1 else np.multiply(result, dtype.type(taps.scale), out=result)


# ---- bytes


def in_units(taps: Taps) -> Taps:
    """Taps whose weights are multiples of 1 / UNIT."""
    return taps._replace(weights=np.rint(taps.weights * UNIT) / np.float32(UNIT))


def bilinear_bytes(pixels: Pixels, vertical: Taps, horizontal: Taps) -> Pixels:
    """Two taps an axis, in integers as OpenCV's: columns first, whose sums are cut to 16 bits, and so are the rows' products."""
    channels = pixels.shape[2]
    rows, vertical = of_used(pixels, vertical)
    horizontal = by_channel(horizontal, channels)
    sums = two_products(rows, horizontal, axis=1, shift=0)
    sums >>= 4
    result = two_products(sums, vertical, axis=0, shift=16)
    result += 2
    result >>= 2
    return result.astype(np.uint8).reshape(len(vertical.places), -1, channels)


def two_products(samples: Pixels, taps: Taps, axis: int, shift: int) -> Pixels:
    """The sum of two taps along an axis of a matrix, in units, each shifted to the right before they are added."""
    total: Pixels | None = None
    for places, weights in zip(taps.places.T, np.rint(taps.weights.T * UNIT).astype(np.int32)):
        product = np.take(samples, places, axis=axis).astype(np.int32, copy=False)
        product *= weights[:, None] if axis == 0 else weights
        if shift:
            product >>= shift
        total = product if total is None else np.add(total, product, out=total)
    assert total is not None
    return total
