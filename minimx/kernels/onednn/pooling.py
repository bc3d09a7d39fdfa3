"""Pooling and its gradients by oneDNN. The operators are in minimx/ops/pool.py.

The gradient of a largest element goes to its place, which oneDNN remembers on the way forward in memory of its own. Our operators know
data and result only, so that the way forward is run again for the places: that is still sooner than to search for them.

The largest of some numbers and NaN is NaN, but oneDNN overlooks NaN. So it is looked for first, which takes half as long as pooling, and
NumPy pools where it is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...device import Context
from ...op import Shape, Spec
from .layout import image, split
from .library import (
    INFERENCE,
    POOL_AVERAGE,
    POOL_AVERAGE_PADDED,
    POOL_MAX,
    RESULT,
    SOURCE,
    TO_RESULT,
    TO_SOURCE,
    TRAINING,
    WORKSPACE,
    Lengths,
)
from .primitive import Primitive, Routine, primitive

if TYPE_CHECKING:
    from ...ops.pool import PoolingBase, PoolingFirst, PoolingLayer, PoolingSpread


class Geometry:
    """The layouts and the window of a pooling, in oneDNN's terms."""

    def __init__(self, op: PoolingBase, data: Shape, result: Shape) -> None:
        last = op.last(len(data))
        self.data, self.result = image(data, last), image(result, last)
        lengths, counts = split(data, last)[2], split(result, last)[2]
        window = op.over(lengths)
        # What the last window reaches beyond the end; less than nothing where it ends before.
        ends = [
            (count - 1) * stride + kernel - length - pad
            for count, stride, kernel, length, pad in zip(counts, window.stride, window.kernel, lengths, window.pad)
        ]
        self.fits = all(end < kernel and pad < kernel for end, pad, kernel in zip(ends, window.pad, window.kernel))
        self.beyond = any(end > pad for end, pad in zip(ends, window.pad))
        self.padded = any(window.pad) or any(end > 0 for end in ends)
        self.window = [Lengths(*each) for each in (window.stride, window.kernel, (0,) * len(counts), window.pad, ends)]
        self.algorithm = self._algorithm(op)
        # Windows side by side along rows: NumPy takes the largest as soon as NaN is found.
        self.is_simple = not last and not op.global_pool and all(k <= s for k, s in zip(window.kernel, window.stride))

    def _algorithm(self, op: PoolingBase) -> int | None:
        """oneDNN's number of the kind of pooling; None if it has none that does the same."""
        if not self.fits:
            return None
        if op.pool_type == "max":
            return POOL_MAX
        if op.pool_type != "avg":
            return None
        if not self.padded or op.count_include_pad is False:
            return POOL_AVERAGE
        return None if self.beyond else POOL_AVERAGE_PADDED  # it would count what lies beyond the padding, too

    def forward(self, kind: int) -> Primitive | None:
        if self.algorithm is None:
            return None
        return primitive("pooling_forward", kind, self.algorithm, self.data, self.result, *self.window)

    def backward(self, hint: Primitive) -> Primitive | None:
        return primitive("pooling_backward", self.algorithm, self.data, self.result, *self.window, hint)


def forward(op: PoolingLayer, context: Context, data: Spec) -> Routine | None:
    geometry = Geometry(op, data.shape, op.infer(data).shape)
    code = geometry.forward(INFERENCE)
    if code is None or (op.pool_type == "max" and geometry.is_simple):
        return None
    run = Routine(context)
    run.add(code, {SOURCE: run.array(geometry.data), RESULT: run.array(geometry.result)})
    run.ordinary = 0 if op.pool_type == "max" else None
    return run


def spread(op: PoolingSpread, context: Context, head: Spec) -> Routine | None:
    if op.global_pool:
        return None  # a number for a whole image, which NumPy fills in as fast as memory can be written
    data = op.infer(head)
    geometry = Geometry(op, data.shape, head.shape)
    hint = geometry.forward(TRAINING)
    code = hint and geometry.backward(hint)
    if code is None:
        return None
    run = Routine(context)
    run.add(code, {TO_RESULT: run.array(geometry.result), TO_SOURCE: run.array(geometry.data)})
    return run


def first(op: PoolingFirst, context: Context, head: Spec, data: Spec, result: Spec) -> Routine | None:
    geometry = Geometry(op, data.shape, result.shape)
    again = geometry.forward(TRAINING)
    code = again and geometry.backward(again)
    if again is None or code is None:
        return None
    run = Routine(context)
    to_result, source, target = run.array(geometry.result), run.array(geometry.data), run.array(geometry.result)
    places = run.own(again.layout(WORKSPACE))
    run.add(again, {SOURCE: source, RESULT: run.own(geometry.result), WORKSPACE: places})
    run.add(code, {TO_RESULT: to_result, TO_SOURCE: run.array(geometry.data), WORKSPACE: places})
    del target  # the third array of a call, which is looked at for NaN only
    run.ordinary = 2
    return run
