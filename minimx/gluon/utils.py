"""`gluon.utils`: batches over several devices, gradients that are too large, checked files; and the small helpers that blocks share."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .. import nd
from ..base import ArgumentError, ShapeError
from ..device import Context
from ..nd import NDArray

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["HookHandle", "check_sha1", "clip_global_norm", "split_and_load", "split_data"]


def split_data(data: NDArray, num_slice: int, batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """`data` cut into `num_slice` parts along `batch_axis`, one for each device.

    **Args** `even_split`: all parts must be equal; else the first ones may be longer by 1. **Returns** a list; parts of the first axis
    share memory with `data`. **Raises** ValueError if equal parts are wanted and impossible. **Source** MXNet `gluon.utils.split_data`.

    >>> [part.shape for part in split_data(mx.nd.ones((5, 2)), 2, even_split=False)]
    [(3, 2), (2, 2)]
    """
    size = data.shape[batch_axis]
    if num_slice < 1:
        raise ArgumentError(f"split_data: num_slice={num_slice}; at least 1 is wanted")
    length, rest = divmod(size, num_slice)
    if even_split and rest:
        raise ShapeError(
            f"split_data: data of shape {data.shape} cannot be split evenly into {num_slice} slices along axis {batch_axis}. Use a batch "
            f"size that is a multiple of {num_slice}, or even_split=False for slices that differ by 1."
        )
    ends = [length * (i + 1) + min(i + 1, rest) for i in range(num_slice)]
    if batch_axis == 0:
        return [data[begin:end] for begin, end in zip([0, *ends], ends)]
    return [nd.slice_axis(data, axis=batch_axis, begin=begin, end=end) for begin, end in zip([0, *ends], ends)]


def split_and_load(data: Any, ctx_list: Sequence[Context], batch_axis: int = 0, even_split: bool = True) -> list[NDArray]:
    """`data`, an NDArray or what `nd.array` takes, in equal parts along `batch_axis`, each on one of the devices `ctx_list`.

    **Raises** as `split_data`. **Source** MXNet `gluon.utils.split_and_load`.
    """
    array = data if isinstance(data, NDArray) else nd.array(data, ctx=ctx_list[0])
    if len(ctx_list) == 1:
        return [array.as_in_context(ctx_list[0])]
    parts = split_data(array, len(ctx_list), batch_axis, even_split)
    return [part.as_in_context(context) for part, context in zip(parts, ctx_list)]


def clip_global_norm(arrays: Sequence[NDArray], max_norm: float, check_isfinite: bool = True) -> Any:
    """Scale `arrays` in place so that their norm, `sqrt(sum of all squares)`, is at most `max_norm`.

    **Args** `check_isfinite`: wait for the norm, and warn if it is infinite or no number. **Returns** the norm before: a number with
    `check_isfinite`, else an array (1,) that may be pending. **Source** MXNet `gluon.utils.clip_global_norm`.
    """
    if not arrays:
        raise ArgumentError("clip_global_norm: the list of arrays is empty")
    context = arrays[0].context
    squares = [nd.sum(nd.square(array)).as_in_context(context) for array in arrays]
    norm = nd.sqrt(nd.add_n(*squares))
    if check_isfinite and not math.isfinite(norm.asscalar()):
        warnings.warn("nan or inf is detected. Clipping results will be undefined.", UserWarning, stacklevel=2)
    scale = nd.minimum(max_norm / (norm + 1e-8), 1.0)
    for array in arrays:
        array *= scale.as_in_context(array.context)  # in place
    return norm.asscalar() if check_isfinite else norm


def check_sha1(filename: str, sha1_hash: str) -> bool:
    """Whether the contents of a file have the SHA-1 hash `sha1_hash`, in hexadecimal digits."""
    digest = hashlib.sha1()
    with open(filename, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest() == sha1_hash


# ---- what blocks share


class HookHandle:
    """What registering a hook returns: `detach()`, or leaving it as a `with` block, takes the hook off again."""

    def __init__(self) -> None:
        self._hooks: dict[int, Callable[..., Any]] | None = None
        self._id = 0

    def attach(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        """Enter `hook` into the hooks of a block."""
        if self._hooks is not None:
            raise ArgumentError("a handle cannot be attached twice")
        self._hooks, self._id = hooks, id(hook)
        hooks[self._id] = hook

    def detach(self) -> None:
        """Take the hook off. Doing it again changes nothing."""
        if self._hooks is not None:
            self._hooks.pop(self._id, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.detach()


def indented(text: str, spaces: int) -> str:
    """`text` with all lines but the first moved to the right."""
    return text.replace("\n", "\n" + " " * spaces)


def brief_list(names: Iterable[object], limit: int = 7) -> str:
    """At most `limit` of the names, in quotes: the first and the last ones."""
    listed = [f"'{name}'" for name in names]
    if len(listed) > limit:
        listed = [*listed[: limit // 2], "...", *listed[-(limit // 2) :]]
    return ", ".join(listed)
