"""Checks and small helpers that the operators of layers share: dtypes, optional inputs, shapes, words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import ArgumentError, DTypeError, ShapeError
from ..op import Array, Op, Shape, Spec, share_out


def require_float(op: Op, spec: Spec, what: str = "data") -> None:
    """Raise DTypeError unless `spec` is floating."""
    if spec.dtype.kind != "f":
        raise DTypeError(f"{op.name}: {what} is {spec.dtype.name}, wants a floating dtype; convert it with astype('float32')")


def require_input(op: Op, what: str, spec: Spec | None, wanted: bool, advice: str) -> None:
    """Raise ArgumentError unless the optional input `what` is there exactly when it is `wanted`."""
    if (spec is not None) != wanted:
        raise ArgumentError(f"{op.name}: {what} is {'missing' if wanted else 'given but not used'}; {advice}")


def require_shape(op: Op, what: str, spec: Spec, shape: Shape, reason: str) -> None:
    """Raise ShapeError unless `spec` has `shape`, which follows from `reason`."""
    if spec.shape != shape:
        raise ShapeError(f"{op.name}: {what} has shape {spec.shape}, {reason} needs {shape}")


def require_choice(op: Op, what: str, value: str, *choices: str) -> None:
    """Raise ArgumentError unless the attribute `what` is one of `choices`."""
    if value not in choices:
        raise ArgumentError(f"{op.name}: {what}={value!r} is not known; choose one of {', '.join(choices)}")


def accurate(xp: Any, array: Array) -> Array:
    """`array` in a dtype to sum in: float16 becomes float32."""
    return array.astype(xp.float32) if array.dtype == xp.float16 else array


def along_axis(shape: Shape, axis: int) -> Shape:
    """The shape in which a vector lies along `axis` of an array of `shape`, to be combined with it by broadcasting."""
    return tuple(length if position == axis else 1 for position, length in enumerate(shape))


def on_all_cores(xp: Any, parts: list[Any], function: Callable[[list[Any]], None]) -> None:
    """`function` of `parts` of a kernel's work, of some of them on each core; each part is to take a tenth of a millisecond at least."""
    if xp is np and len(parts) > 1:
        share_out(parts, function)
    else:
        function(parts)
