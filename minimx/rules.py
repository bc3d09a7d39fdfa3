"""What the rules of shapes of operators share: axes counted from the front, shapes and dtypes that must agree, specs completed.

A rule (`Op.infer`, `Op.fill`) says what an operator makes of its inputs; these say the same things in the same words, and name the operator
and the input that is wrong. op.py explains what an operator is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import ArgumentError, DTypeError, RankError, ShapeError
from .fields import spelt
from .op import Op, Shape, Spec, input_names


def normalize_axis(op: Op | str, axis: int, ndim: int, what: str = "axis") -> int:
    """`axis` counted from the front. Raises ShapeError if the array has no such axis."""
    if not -ndim <= axis < ndim:
        name = op if isinstance(op, str) else op.name
        raise RankError(f"{name}: {what} {axis} is out of range for an array of {ndim} dimensions")
    return axis + ndim if axis < 0 else axis


def normalize_axes(op: Op | str, axes: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """Sorted axes counted from the front; None or () means all. Raises ShapeError for a bad or doubled one."""
    if axes is None or (not isinstance(axes, int) and len(axes) == 0):
        return tuple(range(ndim))
    listed = (axes,) if isinstance(axes, int) else tuple(axes)
    found = tuple(sorted(normalize_axis(op, axis, ndim) for axis in listed))
    if len(set(found)) != len(found):
        name = op if isinstance(op, str) else op.name
        raise ShapeError(f"{name}: axes {listed} name an axis twice")
    return found


def same_dtype(op: Op, *inputs: Spec) -> np.dtype[Any]:
    """The dtype that all `inputs` share. Raises DTypeError if they differ: MXNet 1.x promotes nothing."""
    first = inputs[0].dtype
    for i, spec in enumerate(inputs[1:], 1):
        if spec.dtype != first:
            names = input_names(op, len(inputs))
            raise DTypeError(
                f"{op.name}: {names[0]} is {first.name} but {names[i]} is {spec.dtype.name}; convert one with astype()"
            )
    return first


def same_shape(op: Op, *inputs: Spec) -> Shape:
    """The shape that all `inputs` share. Raises ShapeError if they differ."""
    first = inputs[0].shape
    for i, spec in enumerate(inputs[1:], 1):
        if spec.shape != first:
            names = input_names(op, len(inputs))
            raise ShapeError(f"{op.name}: {names[0]} has shape {first}, {names[i]} has {spec.shape}; they must be equal")
    return first


def broadcast_shape(op: Op, *inputs: Spec) -> Shape:
    """The shape to which all `inputs` broadcast. Raises ShapeError if they do not."""
    shapes = [spec.shape for spec in inputs]
    ndim = max(len(shape) for shape in shapes)
    lengths = [1] * ndim
    for shape in shapes:
        for axis, length in enumerate(shape, ndim - len(shape)):
            if length != 1 and lengths[axis] != length:
                if lengths[axis] != 1:
                    listed = " and ".join(str(each) for each in shapes)
                    raise ShapeError(f"{op.name}: shapes {listed} cannot be broadcast together")
                lengths[axis] = length
    return tuple(lengths)


def filled(spec: Spec | None, shape: Sequence[int], like: Spec) -> Spec:
    """`spec` with its unknown dimensions (0) taken from `shape`; all of `shape`, with the dtype of `like`, if it is None."""
    if spec is None:
        return Spec.of(shape, like.dtype)
    if len(spec.shape) != len(shape) or 0 not in spec.shape:
        return spec
    return spec.with_shape([known or other for known, other in zip(spec.shape, shape)])


def unified(*specs: Spec | None, free: int | None = None) -> tuple[Spec | None, ...]:
    """The specs of inputs that must have one shape, each with the dimensions that any of them knows; they may differ on axis `free`."""
    known = [spec for spec in specs if spec is not None]
    if not known or any(len(spec.shape) != len(known[0].shape) for spec in known):
        return specs
    common = [
        0 if axis == free else next(filter(None, lengths), 0) for axis, lengths in enumerate(zip(*(spec.shape for spec in known)))
    ]
    return tuple(filled(spec, common, known[0]) for spec in specs)


def require_ndim(op: Op, what: str, spec: Spec, *allowed: int, axes: Sequence[str] = ()) -> None:
    """Raise RankError unless `spec` has one of the `allowed` numbers of axes. `axes`: what they are, for the message."""
    if len(spec.shape) not in allowed:
        wanted = " or ".join(str(n) for n in allowed)
        named = f" ({', '.join(axes)})" if axes else ""
        raise RankError(f"{op.name}: {what} needs {wanted} axes{named}, got {spec.shape}")


def require_given(op: Op) -> None:
    """Raise ArgumentError if an attribute was left out that must be given."""
    for name in op.required:
        value = getattr(op, name)
        if not value:
            called = next(spelt(field) for field in dataclasses.fields(op) if field.name == name)
            raise ArgumentError(f"{op.name}: {called} is required, got {value!r}")
