"""What a backend keeps of parameters: weights in another layout, a session that has them as constants.

A parameter changes seldom, and what is made of it may be costly, so it is made once. But a parameter does change, in training or by
`set_data`, and a value made of an old one must never be used. The engine replaces an array's memory when the whole is written, which
shows; and counts the writes into memory that somebody follows (engine/writes.py). So asking whether something has changed costs no look
at the data.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from ...engine import writes

V = TypeVar("V")


class Prepared(Generic[V]):
    """`prepare(*arrays)`, made anew only when the arrays have changed.

    >>> packed = Prepared(lambda weight: weight.T.copy())
    >>> weight = np.ones((2, 3), "float32")
    >>> packed(weight) is packed(weight)
    True
    """

    def __init__(self, prepare: Callable[..., V]) -> None:
        self.prepare = prepare
        self.lock = threading.Lock()
        _all.add(self)
        self.kept: _Kept[V] | None = None

    def __call__(self, *arrays: Any) -> V:
        """What `prepare` gives for these arrays. Several threads may call it at once; one prepares."""
        kept = self.kept
        if kept is not None and kept.holds(arrays):
            return kept.value
        with self.lock:
            kept = self.kept
            if kept is None or not kept.holds(arrays):
                followed = writes.Following(arrays)  # before the values are read, so that no write is missed
                kept = self.kept = _Kept(followed, arrays, self.prepare(*arrays))
            return kept.value

    def __reduce__(self) -> Any:
        return Prepared, (self.prepare,)


class _Kept(Generic[V]):
    """A value, and the arrays of which it was made, as they were."""

    def __init__(self, following: writes.Following, arrays: Sequence[Any], value: V) -> None:
        self.following = following
        self.value = value
        self.copies: list[Any] | None = None
        if following.blind:  # somebody outside may write into them unseen, so only their contents tell
            self.copies = [array.copy() for array in arrays]

    def holds(self, arrays: Sequence[Any]) -> bool:
        """Whether the value is still good for `arrays`."""
        if self.copies is None and self.following.unchanged(arrays):
            return True
        if self.copies is None:
            return False
        return len(arrays) == len(self.copies) and all(
            array.shape == copy.shape and array.dtype == copy.dtype and np.array_equal(_bits(array), _bits(copy))
            for array, copy in zip(arrays, self.copies)
        )


_all: weakref.WeakSet[Prepared[Any]] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for each in list(_all):
        each.lock = threading.Lock()  # a thread that did not come along may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _bits(array: Any) -> Any:
    """The bytes of an array: two NaNs may be equal, and 0.0 is not -0.0."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8)
