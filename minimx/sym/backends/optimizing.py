"""What `Symbol.optimize_for` does: check what is given, and partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...base import ArgumentError, as_dtype, shown
from ...device import Context
from ...nd.ndarray import NDArray
from .. import infer
from ..graph import Entry, inputs_of
from . import backend as registry
from .partition import partition


def optimized(
    heads: Sequence[Entry], backend: Any, args: Mapping[str, NDArray] | None, aux: Mapping[str, NDArray] | None, ctx: Context | None,
    shape_dict: Mapping[str, Any] | None, type_dict: Mapping[str, Any] | None, stype_dict: Mapping[str, str] | None, skip_infer: bool,
    options: Mapping[str, Any],
) -> list[Entry]:  # fmt: skip
    """The heads of the graph with parts for `backend`. See `Symbol.optimize_for`."""
    found = registry.find(backend)
    chosen = found.chosen(options)
    found.require()
    if ctx is not None and not isinstance(ctx, Context):
        raise ArgumentError(f"optimize_for: ctx must be a Context such as mx.cpu(), got {shown(ctx)}")
    for what, values in (
        ("args", args),
        ("aux", aux),
        ("shape_dict", shape_dict),
        ("type_dict", type_dict),
        ("stype_dict", stype_dict),
    ):
        if values is not None and not isinstance(values, Mapping):
            raise ArgumentError(f"optimize_for: {what} must be a dict by names of variables, got {shown(values)}")
    odd = {name: stype for name, stype in (stype_dict or {}).items() if stype != "default"}
    if odd:
        raise ArgumentError(f"optimize_for: stype_dict has {odd}; arrays are dense here, 'default'")
    arguments, states = inputs_of(heads)
    arrays = {**_arrays("args", args, [node.name for node in arguments]), **_arrays("aux", aux, [node.name for node in states])}
    if not skip_infer and (arrays or shape_dict):
        shapes = {name: tuple(shape) for name, shape in (shape_dict or {}).items()}
        shapes.update((name, array.shape) for name, array in arrays.items())
        infer.infer_shape(heads, True, (), shapes)
        dtypes: dict[str, Any] = {name: as_dtype(dtype) for name, dtype in (type_dict or {}).items()}
        dtypes.update((name, array.dtype) for name, array in arrays.items())
        infer.infer_type(heads, True, (), dtypes)
    return partition(heads, found, chosen)[0]


def _arrays(what: str, values: Mapping[str, NDArray] | None, known: Sequence[str]) -> dict[str, NDArray]:
    """The arrays of variables of this graph; others may be there, for another graph."""
    for name, value in (values or {}).items():
        if not isinstance(value, NDArray):
            raise ArgumentError(f"optimize_for: {what} must hold NDArrays, got {shown(value)} for {name}")
    return {name: value for name, value in (values or {}).items() if name in known}
