"""A batch shared out among devices: data parallel training begins here. Book: chapter 9."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import nd
from ..base import ArgumentError, ShapeError, shown
from ..device import Context
from ..fields import converted
from ..nd import NDArray

__all__ = ["split_and_load", "split_data"]


def split_data(data: NDArray, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """`data` cut into `num_slice` parts along `batch_axis`, one for each device.

    **Args** `even_split`: all parts must be equal; else the first ones may be longer by 1, and the last ones are empty if there are fewer
    rows than parts. **Returns** a list; parts of the first axis share memory with `data`. **Raises** ValueError if equal parts are wanted
    and impossible. **Source** MXNet `gluon.utils.split_data`.

    >>> [part.shape for part in split_data(mx.nd.ones((5, 2)), 2, even_split=False)]
    [(3, 2), (2, 2)]
    """
    num_slice = converted("split_data", "num_slice", "int", num_slice)
    batch_axis = converted("split_data", "batch_axis", "int", batch_axis)
    if num_slice < 1:
        raise ArgumentError(f"split_data: num_slice={num_slice}; at least 1 is wanted")
    if not -data.ndim <= batch_axis < data.ndim:
        raise ShapeError(f"split_data: data of shape {data.shape} has no axis {batch_axis} to be split along")
    size = data.shape[batch_axis]
    length, rest = divmod(size, num_slice)
    if even_split and rest:
        raise ShapeError(
            f"split_data: data of shape {data.shape} cannot be split evenly into {num_slice} slices along axis {batch_axis}. Use a batch "
            f"size that is a multiple of {num_slice}, or even_split=False for slices that differ by 1."
        )
    ends = [length * (i + 1) + min(i + 1, rest) for i in range(num_slice)]
    parts = [slice(begin, end) for begin, end in zip([0, *ends], ends)]
    before = (slice(None),) * (batch_axis % data.ndim)
    return [data[(*before, part) if before else part] for part in parts]


def split_and_load(data: Any, ctx_list: Sequence[Context], batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """`data`, an NDArray or what `nd.array` takes, in equal parts along `batch_axis`, each on one of the devices `ctx_list`.

    **Raises** as `split_data`. **Source** MXNet `gluon.utils.split_and_load`.
    """
    if not isinstance(ctx_list, Sequence) or not all(isinstance(each, Context) for each in ctx_list):
        raise ArgumentError(f"split_and_load: a list of devices is wanted, such as [mx.cpu(0), mx.cpu(1)], got {shown(ctx_list)}")
    if not ctx_list:
        raise ArgumentError("split_and_load: the list of devices is empty")
    array = data if isinstance(data, NDArray) else nd.array(data)
    if len(ctx_list) == 1:
        return [array.as_in_context(ctx_list[0])]
    parts = split_data(array, len(ctx_list), batch_axis, even_split)
    return [part.as_in_context(context) for part, context in zip(parts, ctx_list)]
