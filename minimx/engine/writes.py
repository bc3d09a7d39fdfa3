"""Who writes into memory in place, for those who keep something that they made of its values.

Most writes give an array new memory, which anybody sees who compares the memory by identity. Some write into memory that stays: an
operator that changes its input (an optimizer's update), a part of an array, what `push` was told it writes. Here those memories are counted
that somebody follows; while nobody does, a write costs one look at an empty table. Memory that is shared with others outside can be written
at any time without the engine's knowledge: it is marked as such.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

_lock = threading.Lock()
_counts: dict[int, list[int]] = {}  # id of an array that is followed, and so lives: writes into it, and followers
_ended: deque[list[tuple[int, list[int]]]] = deque()  # what was followed by those who are gone
_shared: dict[int, Any] = {}  # ids of living arrays whose memory somebody outside has -> what hears of their end


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()  # a thread that did not come along may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def noted(array: Any) -> None:
    """A write into the memory of `array` is about to happen, or has happened, before anything later may read it."""
    if _counts:
        entry = _counts.get(id(array))
        if entry is not None:
            entry[0] += 1


def all_noted(arrays: Iterable[Any]) -> None:
    """The same for several."""
    if _counts:
        for array in arrays:
            noted(array)


def shared(array: Any) -> None:
    """The memory of `array` is somebody's outside from now on."""
    number = id(array)

    def ended(reference: Any) -> None:
        if _shared.get(number) is reference:
            del _shared[number]

    try:
        _shared[number] = weakref.ref(array, ended)
    except TypeError:  # it tells nobody of its end: its id counts for whoever has it next, too
        _shared[number] = None
    noted(array)


def forget_ended() -> None:
    """Count no longer for those who follow no longer. The collector of garbage may end one at any moment, so it only writes that down."""
    while _ended:
        for number, entry in _ended.popleft():
            entry[1] -= 1
            if not entry[1] and _counts.get(number) is entry:
                del _counts[number]


class Following:
    """Follows the memories of `arrays` as long as it lives: `unchanged(arrays)` says whether these are they, and nobody wrote into them.

    `blind`: some of them can be written without the engine's knowledge, so that there is no telling.
    """

    def __init__(self, arrays: Sequence[Any]) -> None:
        self.arrays = tuple(arrays)  # alive, so that their ids stay theirs
        self.blind = any(id(array) in _shared for array in arrays)
        with _lock:
            forget_ended()
            self.entries = [_counts.setdefault(id(array), [0, 0]) for array in self.arrays]
            for entry in self.entries:
                entry[1] += 1
        self.seen = [entry[0] for entry in self.entries]
        followed = list(zip(map(id, self.arrays), self.entries))
        weakref.finalize(self, _ended.append, followed).atexit = False

    def unchanged(self, arrays: Sequence[Any]) -> bool:
        if len(arrays) != len(self.arrays):
            return False
        for array, mine, entry, seen in zip(arrays, self.arrays, self.entries, self.seen):
            if array is not mine or entry[0] != seen or id(array) in _shared:
                return False
        return True
