"""Sums over all axes but one, as the gradient of a bias is: a loop in machine code, which can be part of a chain (chain.py).

Where the axis that is kept is the last, rows are added up one after the other, as NumPy does it. Else each row is added up in a register,
and their totals in double precision, so last digits may differ from NumPy's: programs use it, which wait until it is compiled.
The operator is in minimx/ops/reduce.py. Book: chapter 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..op import Op, Spec
from ..ops.reduce import Sum
from .fused import Loop, compiles

LARGE = 1 << 12  # elements from which on a loop is sooner than NumPy by itself, and not only in a chain


class Sums(Loop):
    """A loop over the axis that is kept, which has `before` axes' elements before it and `after` behind it."""

    exact = False

    def __init__(self, before: int, channels: int, after: int) -> None:
        self.title = "sum"
        self.operators = 1
        self.lengths = (before, channels, after)
        self.numbers = []
        self.source = VECTORS if after == 1 and channels > 1 else IMAGES
        self.compile(2, ())
        self.share(channels, before * channels * after)


VECTORS = """\
void loop(float *x, float *r, long before, long channels, long after, long low, long high) {
    for (long i = low; i < high; i++) {
        r[i] = 0.0f;
    }
    for (long row = 0; row < before; row++) {
        for (long i = low; i < high; i++) {
            r[i] = r[i] + x[row * channels + i];
        }
    }
}
"""
IMAGES = """\
void loop(float *x, float *r, long before, long channels, long after, long low, long high) {
    for (long channel = low; channel < high; channel++) {
        double total = 0.0;
        for (long image = 0; image < before; image++) {
            for (long start = 0; start < (after + 4095) / 4096; start++) {
                float part = 0.0f;
                long end = start * 4096 + 4096 < after ? start * 4096 + 4096 : after;
                for (long i = start * 4096; i < end; i++) {
                    part += x[(image * channels + channel) * after + i];
                }
                total += double(part);
            }
        }
        r[channel] = float(total);
    }
}
"""


def fits(op: Op, specs: Sequence[Spec | None]) -> bool:
    """Whether an operator is a sum over all axes but one."""
    data = specs[0] if specs else None
    if type(op) is not Sum or data is None or data.dtype.name != "float32" or not data.size or not compiles():
        return False
    return len(op.plan(data.shape)[0]) == data.ndim - 1


def loop_of(op: Op, specs: Sequence[Spec | None]) -> Loop:
    """The loop of an operator that `fits`."""
    data = specs[0]
    assert isinstance(op, Sum)
    assert data is not None
    axes = op.plan(data.shape)[0]
    [kept] = [axis for axis in range(data.ndim) if axis not in axes]
    return Sums(math.prod(data.shape[:kept]), data.shape[kept], math.prod(data.shape[kept + 1 :]))
