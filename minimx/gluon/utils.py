"""`gluon.utils`: batches over several devices, gradients that are too large, checked files; and the small helpers that blocks share."""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .. import nd
from ..base import ArgumentError, ShapeError
from ..fields import converted
from ..files import PathLike, as_path
from ..nd import NDArray
from ..parallel import split_and_load, split_data
from .downloading import check_sha1, download

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "HookHandle", "check_sha1", "clip_global_norm", "download", "replace_file", "shape_is_known", "split_and_load", "split_data",
]  # fmt: skip


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


def replace_file(src: PathLike, dst: PathLike) -> None:
    """Give the file `src` the name `dst`, whatever has it now: whoever looks finds the old file or the new one.

    **Raises** OSError if that fails, and `src` is deleted. **Source** MXNet `gluon.utils.replace_file`.
    """
    source, target = as_path(src), as_path(dst)
    try:
        os.replace(source, target)
    except OSError:
        with contextlib.suppress(OSError):
            os.remove(source)
        raise


def shape_is_known(shape: Sequence[int] | None) -> bool:
    """Whether a shape is known completely: neither it, nor a length in it, is None or 0. An empty one is not known.

    **Raises** ValueError for a length below 0. **Source** MXNet `gluon.utils.shape_is_known`.

    >>> shape_is_known((2, 3)), shape_is_known((2, 0)), shape_is_known(())
    (True, False, False)
    """
    if shape is None:
        return False
    lengths: tuple[int, ...] = converted("shape_is_known", "shape", "tuple[int, ...]", shape)
    if any(length < 0 for length in lengths):
        raise NegativeLengthError(f"shape_is_known: shape {shape} has a negative length")
    return bool(lengths) and all(lengths)


class NegativeLengthError(ShapeError, AssertionError):
    """A length below 0. (MXNet asserts it: hence the second base.)"""


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
