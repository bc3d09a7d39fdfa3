"""A number that grows with each change of any block or parameter.

Who has worked something out about a network, its graph or where its parameters lie, remembers the number. If it is still the same,
nothing at all has changed, and one comparison was enough to know. Training changes values, which is no change in this sense.
"""

from __future__ import annotations

import os
import threading


class Editions:
    """Numbers the changes of all blocks and parameters."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.latest = 0

    def next(self) -> int:
        with self._lock:  # the numbers must not go back, whatever threads do
            self.latest += 1
            return self.latest


editions = Editions()


def _after_fork_in_child() -> None:
    editions._lock = threading.Lock()  # a thread that did not come along may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
