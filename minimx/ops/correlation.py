"""The three maps of convolution, on arrays with the channels as axis 1.

`correlate` goes from data to results, `spread`, its transpose, from results back to data, and `relate` from data and results to filters.
Each result is the product of a filter with the elements under its window. With those elements as the *columns* of a matrix, all results
are a product of matrices, which is where the time should go; but there are as many columns as results, each as long as a filter, and to
copy all that together can take longer. Three things keep it short:

- Windows that are one row apart share all but one of their rows. So columns are made for the kernel's points within a row only, and those
  of whole windows are views of that memory (`Columns`).
- A few examples go together, in memory that stays in cache and serves the next few, too. In it the examples may be the last axis, so that
  tiny images are copied in long runs.
- The transpose is itself a convolution, of the results with the filters turned round: no result is added up element by element.

Where each channel has filters of its own there is too little to do for products: depthwise.py. Book: chapter 4.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from ..op import Array, Shape
from .checks import on_all_cores
from .depthwise import correlate_depthwise, relate_depthwise, spread_depthwise
from .products import matmul
from .windows import Window, fold

COLUMNS = 1 << 18  # elements of columns to make at a time, if these are enough columns for a good product
FEW, MANY = 128, 512  # columns of a product: as many as make it good, and as many as make it no better
FEW_SUMMED, MANY_SUMMED = 1 << 10, 1 << 14  # the same for results that a gradient of filters sums over
QUICK = 10**6  # multiplications: up to so many, OpenBLAS has a way without preparations, which is best where filters are few
SHORT = 16  # elements: where runs along the last axis are shorter, and copied more than once, the examples become the last axis
REORDER = 4  # results for each filter from which on it pays to put the filters in another order
LONG_ROW = 32  # results in a row from which on products for each row of the kernel are best,
LONG_PRODUCT = 64  # with so many elements of a filter in it
SHARED = 1 << 22  # multiplications: all cores share in so many
SUMS = 8  # sums to make side by side for a gradient of filters


# ---- columns


class Columns:
    """The columns of a few examples.

    Along the first axis of an image, that of *rows*, windows overlap: the memory has, for each row of the data, the elements under the
    kernel's points within it. *Positions* are the places of windows within a row, in all examples. Outside the data there are zeros.

    `stacked`: (groups, rows, points and channels, positions), so that what is under the windows of one row of results is one matrix.
    Otherwise (groups, channels and points, rows and positions): what is under one row of the kernel, for all windows, is one matrix.
    """

    def __init__(self, xp: Any, data: Array, window: Window, counts: Shape, groups: int, examples: int, stacked: bool) -> None:
        self.window, self.counts, self.groups, self.examples, self.stacked = window, counts, groups, examples, stacked
        self.channels = data.shape[1] // groups
        self.rows = (counts[0] - 1) * window.stride[0] + window.spans[0]
        self.positions = examples * math.prod(counts[1:])
        self.examples_last = examples > 1 and counts[-1] < SHORT and math.prod(window.kernel[1:]) > 1
        points = [f"point {axis}" for axis in range(1, len(counts))]
        order = ["row", *points, "channel"] if stacked else ["channel", *points, "row"]
        lengths = {"channel": self.channels, "row": self.rows, **dict(zip(points, window.kernel[1:]))}
        # Zeros: where windows reach beyond the data nothing is ever written.
        self.memory, view = self._memory(xp.zeros, order, ["channel", "row", *points], lengths, data.dtype)
        pad, free = window.pad[0], slice(None)  # a pad less than 0: so many rows of the data are under no window
        low = max(pad, 0)
        high = max(low, min(self.rows, pad + data.shape[2]))
        inner = Window(window.kernel[1:], window.stride[1:], window.dilate[1:], window.pad[1:])
        self.targets = [  # for each point of the kernel within a row: the place in memory, and what of the data belongs there
            (
                view[(free, free, free, slice(low, high), *point, *results)],
                (free, free, free, slice(low - pad, high - pad), *place),
            )
            for point, results, place in inner.places(data.shape[3:], counts[1:])
        ]

    def _memory(self, make: Any, order: list[str], wanted: list[str], lengths: dict[str, int], dtype: Any) -> tuple[Array, Array]:
        """Memory with the axes (groups, *order, positions), and a view of it: (examples, groups, *wanted, *results within a row)."""
        within = [f"result {axis}" for axis in range(1, len(self.counts))]
        order = ["group", *order, *([*within, "example"] if self.examples_last else ["example", *within])]
        lengths = {**lengths, "group": self.groups, "example": self.examples, **dict(zip(within, self.counts[1:]))}
        memory = make([lengths[axis] for axis in order], dtype)
        return memory, memory.transpose([order.index(axis) for axis in ("example", "group", *wanted, *within)])

    def fill(self, xp: Any, data: Array) -> None:
        """Make the columns of `data`, of as many examples as there is memory for."""
        data = data.reshape(self.examples, self.groups, self.channels, *data.shape[2:])
        if self.examples_last:
            last = (*range(1, data.ndim), 0)
            data = xp.ascontiguousarray(data.transpose(last)).transpose(-1, *range(data.ndim - 1))
        for target, place in self.targets:
            target[...] = data[place]

    def under_rows(self, xp: Any) -> Array:
        """A view of what is stacked: (groups, rows of results, elements under a window, positions)."""
        rows = self.memory.reshape(self.groups, self.rows, -1, self.positions)
        group, row, element, position = rows.strides
        shape = (self.groups, self.counts[0], self.window.kernel[0] * rows.shape[2], self.positions)
        return xp.lib.stride_tricks.as_strided(rows, shape, (group, row * self.window.stride[0], element, position))

    def at_row(self, number: int) -> Array:
        """A view of what is not: (groups, elements in a row under a window, positions in all rows of results), for a row of the kernel."""
        start, flat = number * self.window.dilate[0], self.memory.reshape(self.groups, -1, self.rows * self.positions)
        return flat[:, :, start * self.positions : (start + self.counts[0]) * self.positions]

    def results(self, xp: Any, filters: int, dtype: Any) -> tuple[Array, Array]:
        """Memory for results or their gradients, as matrices to go with those above, and a view: (examples, groups, filters, *counts)."""
        lengths = {"channel": filters, "row": self.counts[0]}
        order = ["row", "channel"] if self.stacked else ["channel", "row"]
        memory, view = self._memory(xp.empty, order, ["channel", "row"], lengths, dtype)
        shape = (self.counts[0], filters, self.positions) if self.stacked else (filters, self.counts[0] * self.positions)
        return memory.reshape(self.groups, *shape), view

    def in_place(self, array: Array) -> Array:
        """The contiguous results of one example, (1, groups, filters, *counts), as matrices to go with those above: a view."""
        shape = array.shape[1:3]
        return array.reshape(*shape, self.counts[0], -1).swapaxes(1, 2) if self.stacked else array.reshape(*shape, -1)


def with_row(window: Window, *arrays: Array) -> tuple[Window, list[Array]]:
    """A first axis of length 1 added: along it no windows overlap, so that the columns are those of whole windows."""
    more = Window((1, *window.kernel), (1, *window.stride), (1, *window.dilate), (0, *window.pad))
    return more, [array.reshape(*array.shape[:2], 1, *array.shape[2:]) for array in arrays]


def overlap_pays(window: Window, batch: int, counts: Shape, filters: int) -> bool:
    """Whether to make columns within rows only: less to copy, but the filters are wanted in another order."""
    return len(counts) > 1 and window.kernel[0] > window.stride[0] and batch * math.prod(counts) > REORDER * filters


def ranges(batch: int, columns: int, memory: int, work: int, few: int, many: int) -> list[tuple[int, int]]:
    """Ranges of examples to work on together, about equal. Each example has so many `columns` in a product, for which it needs so many
    elements of `memory`, and a column takes `work` multiplications; `few` columns are a good product, `many` no better one."""
    if is_quick(work, few):
        many = min(many, QUICK // max(work, 1))
    together = min(max(COLUMNS // max(memory, 1), -(-few // max(columns, 1))), many // max(columns, 1))
    number = -(-batch // max(together, 1))
    each, rest = divmod(batch, max(number, 1))  # the first `rest` ranges have one more: there are two sizes of columns at most
    return list(itertools.pairwise(part * each + min(part, rest) for part in range(number + 1)))


def is_quick(work: int, few: int) -> bool:
    """Whether products are so small that BLAS has no use for more than one thread; parts of the examples can then go side by side."""
    return work * few <= QUICK


def memory_for(channels: int, window: Window, counts: Shape) -> int:
    """The elements of memory for the columns of one example."""
    rows = (counts[0] - 1) * window.stride[0] + window.spans[0]
    return channels * rows * math.prod(window.kernel[1:]) * math.prod(counts[1:])


# ---- the maps


def correlate(xp: Any, data: Array, weight: Array, window: Window, groups: int, out: Array, bias: Array | None = None) -> None:
    """Write the convolution of `data` (N, C, ...) with `weight` (M, C / groups, *kernel), plus `bias` (M,), into `out` (N, M, ...)."""
    depthwise, whole = groups == data.shape[1] > 1, out.flags.c_contiguous
    if depthwise or (window.is_point and whole and out.shape[2:] == data.shape[2:]):
        (correlate_depthwise if depthwise else correlate_points)(xp, data, weight, window, groups, out)
        if bias is not None:
            out += bias.reshape(-1, *[1] * (out.ndim - 2))
        return
    batch, filters, counts = len(data), weight.shape[0] // groups, out.shape[2:]
    # Products for each row of the kernel, which are added up; for each row of results; or of whole windows.
    overlap = overlap_pays(window, batch, counts, filters)
    in_row = weight.shape[1] * math.prod(window.kernel[1:])
    by_row = overlap and window.stride[0] == 1 and counts[-1] >= LONG_ROW and in_row >= LONG_PRODUCT
    stacked = overlap and not by_row and window.dilate[0] == 1 and 2 * batch * math.prod(counts[1:]) >= FEW
    if not by_row and not stacked:
        window, (data, weight, out) = with_row(window, data, weight, out)
        counts = out.shape[2:]
    # The filters in the order of the columns: all their elements together, or a matrix for each row of the kernel.
    ordered = xp.ascontiguousarray(xp.moveaxis(weight, 1, -1) if stacked else xp.moveaxis(weight, 2, 0))
    matrices = ordered.reshape(groups, 1, filters, -1) if stacked else ordered.reshape(len(ordered), groups, filters, -1)
    shift = None if bias is None else bias.reshape(groups, *[1] * stacked, filters, 1)

    def some(parts: list[tuple[int, int]]) -> None:
        columns: Columns | None = None
        for start, stop in parts:
            if columns is None or columns.examples != stop - start:
                columns = Columns(xp, data, window, counts, groups, stop - start, stacked)
                product, view = columns.results(xp, filters, out.dtype)
            columns.fill(xp, data[start:stop])
            target = out[start:stop].reshape(stop - start, groups, filters, *counts)
            if whole and stop - start == 1:
                product, view = columns.in_place(target), target
            if stacked:
                matmul(xp, matrices, columns.under_rows(xp), out=product)
            else:
                matmul(xp, matrices[0], columns.at_row(0), out=product)
                for number in range(1, len(matrices)):
                    product += matmul(xp, matrices[number], columns.at_row(number))
            if shift is not None:
                product += shift
            if view is not target:
                target[...] = view

    work = math.prod(matrices.shape[-2:])
    parts = ranges(batch, math.prod(counts[stacked:]), memory_for(data.shape[1], window, counts), work, FEW, MANY)
    is_shared = is_quick(work, FEW) and work * batch * math.prod(counts) >= SHARED
    on_all_cores(xp, parts, some) if is_shared else some(parts)


def correlate_points(xp: Any, data: Array, weight: Array, window: Window, groups: int, out: Array) -> None:
    """`correlate` where each window is one element: the data themselves are the columns."""
    matrix = weight.reshape(groups, weight.shape[0] // groups, -1)
    stacked = data.reshape(len(data), groups, matrix.shape[2], math.prod(data.shape[2:]))
    matmul(xp, matrix, stacked, out=out.reshape(len(data), groups, matrix.shape[1], stacked.shape[3]))


def relate(xp: Any, data: Array, head: Array, window: Window, groups: int, out: Array) -> None:
    """Write what `head` (N, M, ...) gives to the filters of a convolution of `data` (N, C, ...) into `out` (M, C / groups, *kernel)."""
    if groups == data.shape[1] > 1:
        return relate_depthwise(xp, data, head, window, groups, out)
    batch, filters = len(data), head.shape[1] // groups
    if not (overlap_pays(window, batch, head.shape[2:], filters) and window.stride[0] == 1):
        window, (data, head, out) = with_row(window, data, head, out)
    counts, in_row = head.shape[2:], math.prod(out.shape[1:]) // window.kernel[0]
    work, memory = filters * in_row, memory_for(data.shape[1], window, counts)
    quick = is_quick(work, FEW_SUMMED)
    parts = ranges(batch, math.prod(counts), memory, work, FEW_SUMMED, MANY_SUMMED if quick else FEW_SUMMED)
    # Sums of as many parts whoever works on them, so that rounding is always the same.
    number = SUMS if quick and work * window.kernel[0] * batch * math.prod(counts) >= SHARED else 1
    in_place = number == window.kernel[0] == 1
    # Otherwise transposed: OpenBLAS is faster at that, and the sums are to be put in another order in any case.
    sums = (
        out.reshape(1, 1, groups, filters, in_row)
        if in_place
        else xp.empty((number, *window.kernel[:1], groups, in_row, filters), out.dtype)
    )

    def some(shares: list[tuple[Array, list[tuple[int, int]]]]) -> None:
        columns: Columns | None = None
        for totals, own in shares:
            if not own:
                totals[...] = 0
            for start, stop in own:
                if columns is None or columns.examples != stop - start:
                    columns = Columns(xp, data, window, counts, groups, stop - start, stacked=False)
                    heads, view = columns.results(xp, filters, head.dtype)
                columns.fill(xp, data[start:stop])
                part = head[start:stop].reshape(stop - start, groups, filters, *counts)
                if stop - start == 1:
                    heads = columns.in_place(part)
                else:
                    view[...] = part
                for row, total in enumerate(totals):
                    under = columns.at_row(row)
                    lhs, rhs = (heads, under) if in_place else (under, heads)
                    if start == own[0][0]:
                        matmul(xp, lhs, rhs.swapaxes(1, 2), out=total)
                    else:
                        total += matmul(xp, lhs, rhs.swapaxes(1, 2))

    cut = [len(parts) * share // number for share in range(number + 1)]
    on_all_cores(xp, [(totals, parts[low:high]) for totals, (low, high) in zip(sums, itertools.pairwise(cut))], some)
    if not in_place:
        total = sums[0] if number == 1 else sums.sum(axis=0)
        total = total.reshape(window.kernel[0], groups, out.shape[1], *window.kernel[1:], filters)
        order = (1, total.ndim - 1, 2, 0, *range(3, total.ndim - 1))
        out.reshape(groups, filters, out.shape[1], *window.kernel)[...] = total.transpose(order)


def spread(xp: Any, head: Array, weight: Array, window: Window, groups: int, out: Array) -> None:
    """Write what `head` (N, M, ...) gives to the data of the convolution with `weight` into `out` (N, C, ...)."""
    if groups == out.shape[1] > 1:
        return spread_depthwise(xp, head, weight, window, groups, out)
    if math.prod(out.shape[2:]) > 2 * math.prod(head.shape[2:]) * math.prod(window.stride):
        return spread_by_columns(xp, head, weight, window, groups, out)
    filters, channels = weight.shape[0] // groups, weight.shape[1]
    turned = weight.reshape(groups, filters, channels, *window.kernel).swapaxes(1, 2).reshape(-1, filters, *window.kernel)
    # With a stride, the elements of the data fall into classes, by which points of the kernel can lie on them.
    axes = [transposed(window, axis, length) for axis, length in enumerate(out.shape[2:])]
    for classes in itertools.product(*axes):
        elements, points, dilates, pads = zip(*classes)
        target = out[(slice(None), slice(None), *elements)]
        kernel = tuple(len(range(window.kernel[axis])[each]) for axis, each in enumerate(points))
        if 0 in kernel or not target.size:
            target[...] = 0
        else:
            back = Window(kernel, (1,) * len(kernel), dilates, pads)
            correlate(xp, head, turned[(slice(None), slice(None), *points)], back, groups, target)


def transposed(window: Window, axis: int, length: int) -> list[tuple[slice, slice, int, int]]:
    """The transpose along an axis as convolutions with stride 1: (elements of the data, points of the kernel, dilate, pad) of each."""
    stride, dilate, pad, kernel = (each[axis] for each in (window.stride, window.dilate, window.pad, window.kernel))
    found = []
    step = stride // math.gcd(stride, dilate)  # points of the kernel so far apart lie on the same class of elements
    for first in range(min(stride, length)):
        points = [point for point in range(kernel) if (first + pad - point * dilate) % stride == 0]
        # The last point of the kernel is the first of the filter turned round: it takes the result `offset` before an element.
        last = points[-1] if points else 0
        offset = (last * dilate - pad - first) // stride
        chosen = slice(last, None if points and points[0] < step else 0, -step) if points else slice(0, 0)
        found.append((slice(first, None, stride), chosen, step * dilate // stride, offset))
    return found


def spread_by_columns(xp: Any, head: Array, weight: Array, window: Window, groups: int, out: Array) -> None:
    """`spread` where a convolution would go over many zeros: the columns' gradients are added up at their places."""
    (batch, filters), counts = head.shape[:2], head.shape[2:]
    matrix = weight.reshape(groups, filters // groups, -1).swapaxes(1, 2)
    stacked = head.reshape(batch, groups, filters // groups, math.prod(counts))
    out[...] = 0
    for start, stop in ranges(batch, 1, math.prod((out.shape[1], *window.kernel, *counts)), 0, 1, batch):
        columns = matmul(xp, matrix, stacked[start:stop])
        fold(out[start:stop], columns.reshape(stop - start, out.shape[1], *window.kernel, *counts), window)
