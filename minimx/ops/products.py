"""Products of matrices, and arrays joined, in such a way that other threads can run meanwhile.

NumPy lets go of Python's one lock while `dot` runs, but `matmul` keeps it if there is just one product to make, and `concatenate` always
does: then lanes that should compute beside each other wait for each other. Book: chapter 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..op import Array

LARGE = 1 << 12  # elements: joining fewer takes less time than to hand Python's lock to another thread


def matmul(xp: Any, lhs: Array, rhs: Array, out: Array | None = None) -> Array:
    """What `xp.matmul` gives for two matrices or two stacks of equally many; in `out` where it is given."""
    if math.prod(lhs.shape[:-2]) * math.prod(rhs.shape[:-2]) != 1 or not (out is None or out.flags.c_contiguous):
        return xp.matmul(lhs, rhs, out=out)
    lhs_only, rhs_only = lhs[(0,) * (lhs.ndim - 2)], rhs[(0,) * (rhs.ndim - 2)]
    if out is not None:
        xp.dot(lhs_only, rhs_only, out=out[(0,) * (out.ndim - 2)])
        return out
    stack = max(lhs.shape[:-2], rhs.shape[:-2], key=len)
    product = xp.dot(lhs_only, rhs_only)
    return product.reshape((*stack, *product.shape)) if stack else product


def joined(xp: Any, arrays: Sequence[Array], axis: int, out: Array | None) -> Array:
    """What `xp.concatenate` gives for arrays of one dtype; in `out` where it is given."""
    if out is None or out.size < LARGE:
        return xp.concatenate(arrays, axis=axis, out=out)
    before = (slice(None),) * (axis % out.ndim)
    end = 0
    for array in arrays:
        start, end = end, end + array.shape[axis]
        out[(*before, slice(start, end))] = array
    return out
