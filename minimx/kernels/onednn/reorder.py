"""Transposes by oneDNN: of images between the two places where their channels may be. The operator is in minimx/ops/layout.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...device import Context
from ...op import Spec
from .layout import Layout, contiguous
from .library import RESULT, SOURCE
from .primitive import Routine, primitive

if TYPE_CHECKING:
    from ...ops.layout import Transpose

FEW = 1 << 14  # elements, below which NumPy is as fast


def transpose(op: Transpose, context: Context, data: Spec) -> Routine | None:
    order = op.order(data.ndim)
    if data.size < FEW or data.ndim > 5 or order == tuple(range(data.ndim)):
        return None
    steps = contiguous(data.shape)
    shape = [data.shape[axis] for axis in order]
    source, target = Layout.plain(shape, [steps[axis] for axis in order]), Layout.plain(shape)
    code = primitive("reorder", source, target)
    if code is None:
        return None
    run = Routine(context)
    run.add(code, {SOURCE: run.array(source), RESULT: run.array(target)})
    return run
