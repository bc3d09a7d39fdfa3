"""The short way of a small operator: its kernel at once, in the calling thread, without entering the engine.

`submit` runs an operation whose inputs are there and that is cheaper than writing it down in the calling thread, too. But it is made
for all operations, and what it must ask of each costs more than a small one takes. Here is what is left of it for those that only make one
new small array of arrays in host memory. Whatever is not as simple, or fails, goes the long way. Book: chapter 2.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import kernels
from ..device import Context
from ..engine import execute, writes
from ..engine.events import watch, watched
from ..engine.front import INLINE, LAZY, NS_PER_ELEMENT, NS_PER_PRODUCT, quiet_run, this_thread
from ..engine.lanes import scheduler
from ..engine.var import View, window
from ..op import Kind, Op, Spec
from ..storage import SMALL

FEW = 4096  # elements in and out with which every operator takes less than INLINE


class _Quiet(threading.local):
    """`run` calls a function without floating-point warnings, in the thread that asks."""

    def __init__(self) -> None:
        self.run = quiet_run()


quiet = _Quiet()


def computed(op: Op, arrays: list[Any], spec: Spec, elements: int, context: Context) -> Any:
    """What `op` makes of `arrays`: an array of `spec` on `context`, in host memory; or None if it must go the long way.

    **Args** `op`: pure, and has one output. `elements`: how many are read and written.
    """
    if (elements > FEW and not _cheap(op, arrays, spec, elements)) or spec.nbytes >= SMALL or this_thread.mode is LAZY:
        return None
    try:
        if watch.direct:
            value = quiet.run(kernels.kernel_of(op, arrays, context) if op.name in kernels.LAYERS else op.kernel, np, *arrays)
        elif watch.recorder is not None:
            return None  # it hears of what enters the engine
        else:
            value = watched(_quietly, op, np, arrays, [spec], None, context)
        if (
            type(value) is np.ndarray
            and value.dtype is spec.dtype
            and value.shape == spec.shape
            and value.flags.c_contiguous
            and not op.aliases
        ):
            return value
        return execute.checked(op, np, value if type(value) is tuple else (value,), [spec], arrays)[0]
    except Exception:  # it will fail again on the long way, where the error is kept for whoever reads the result
        return None


def outcome(op: Op, operands: Sequence[View], specs: Sequence[Spec], key: Any, context: Context) -> Any:
    """All outputs of `op`, of `specs` on `context`; it is cheap and changes nothing. None if it must go the long way."""
    if this_thread.mode is LAZY:
        return None
    arrays = []
    for view in operands:
        if not view.var.ready:
            return None
        arrays.append(view.var.value if view.offset < 0 else window(view.var.value, view.offset, view.spec))
    try:
        if watch.direct:
            return quiet.run(op.kernel, np, *arrays, key=key)
        if watch.recorder is not None:
            return None
        return watched(_quietly, op, np, arrays, specs, key, context)
    except Exception:  # see above
        return None


def _quietly(op: Op, xp: Any, arrays: list[Any], specs: Sequence[Spec], key: Any, context: Context) -> Any:
    """What `op` makes of `arrays`, for those who watch."""
    kernel = kernels.kernel_of(op, arrays, context) if op.name in kernels.LAYERS and op.kind is not Kind.PROGRAM else op.kernel
    return quiet.run(kernel, xp, *arrays) if key is None else quiet.run(kernel, xp, *arrays, key=key)


def _cheap(op: Op, arrays: list[Any], spec: Spec, elements: int) -> bool:
    """Whether running `op` costs less than recording it: what `work` says, asked with less. A product that another library makes goes the
    long way: its last digits must not depend on whether the operands were there already.
    """
    if op.kind is Kind.GEMM and len(arrays) > 1:
        products = math.sqrt(float(arrays[0].size) * arrays[1].size * spec.size)
        return NS_PER_PRODUCT * products <= INLINE and (products <= kernels.SMALL_PRODUCT or op.name not in kernels.NAMES)
    return NS_PER_ELEMENT.get(op.kind, 4.0) * elements <= INLINE


def copied(source: View, target: View) -> bool:
    """Copy the value of `source` to `target`, of the same spec, if that can be done at once: whether it was."""
    if (
        source.spec.nbytes >= SMALL
        or not source.var.ready
        or not target.context.host
        or this_thread.mode is LAZY
        or not watch.direct
    ):
        return False
    with scheduler.lock:  # or a thread that adds to the target could write its own result over this one
        var = target.var
        if var.readers or not var.ready or not source.var.ready:
            return False
        value = window(source.var.value, source.offset, source.spec)
        if target.offset >= 0 or var.shared:
            writes.noted(var.value)
            window(var.value, target.offset, target.spec)[...] = value
        else:
            var.value = value.copy()
    return True
