"""The three maps of convolution (correlation.py) where each channel has filters of its own.

There is too little to do for products of matrices, so a pass goes over the data for each point of the kernel. Book: chapter 4.
"""

from __future__ import annotations

import math
from typing import Any

from ..op import Array, Shape
from .checks import on_all_cores
from .windows import WHOLE, Window

TOGETHER = 1 << 17  # elements of the data that are worked on together: they stay in cache


def _expanded(array: Array, groups: int) -> Array:
    """(N, M, ...) as (N, groups, M / groups, ...)."""
    return array.reshape(array.shape[0], groups, array.shape[1] // groups, *array.shape[2:])


def _filters(weight: Array, groups: int, point: Shape) -> Array:
    """The elements of all filters at one point of the kernel, to multiply (N, groups, M / groups, ...) with."""
    return weight[(slice(None), 0, *point)].reshape(groups, -1, *[1] * len(point))


def _parts(batch: int, each: int) -> list[slice]:
    """Ranges of examples that are worked on together."""
    step = max(1, TOGETHER // max(each, 1))
    return [slice(start, start + step) for start in range(0, batch, step)]


def correlate_depthwise(xp: Any, data: Array, weight: Array, window: Window, groups: int, out: Array) -> None:
    results = _expanded(out, groups)

    def some(parts: list[slice]) -> None:
        for rows in parts:
            out[rows] = 0
            for point, inside, place in window.places(data.shape[2:], out.shape[2:]):
                results[(rows, *WHOLE, *inside)] += data[(rows, slice(None), None, *place)] * _filters(weight, groups, point)

    on_all_cores(xp, _parts(len(data), math.prod(out.shape[1:])), some)


def spread_depthwise(xp: Any, head: Array, weight: Array, window: Window, groups: int, out: Array) -> None:
    heads = _expanded(head, groups)

    def some(parts: list[slice]) -> None:
        for rows in parts:
            out[rows] = 0
            for point, inside, place in window.places(out.shape[2:], head.shape[2:]):
                shares = heads[(rows, *WHOLE, *inside)] * _filters(weight, groups, point)
                out[(rows, slice(None), *place)] += shares[:, :, 0] if shares.shape[2] == 1 else shares.sum(axis=2)

    on_all_cores(xp, _parts(len(head), math.prod(head.shape[1:])), some)


def relate_depthwise(xp: Any, data: Array, head: Array, window: Window, groups: int, out: Array) -> None:
    heads = _expanded(head, groups)
    summed = (0, *range(3, heads.ndim))
    out[...] = 0
    for rows in _parts(len(data), math.prod(head.shape[1:])):
        for point, inside, place in window.places(data.shape[2:], head.shape[2:]):
            shares = heads[(rows, *WHOLE, *inside)] * data[(rows, slice(None), None, *place)]
            out[(slice(None), 0, *point)] += shares.sum(axis=summed).reshape(-1)
