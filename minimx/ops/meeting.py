"""Kernels on several devices that need something of each other: they meet, each with its part, and each leaves with all parts.

The kernel of a device waits for those of the others, in its lane. So an operator that meets is never run by the thread that calls it
(`Op.meets`): that thread is yet to call it for the other devices. Book: chapter 10.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from ..base import MXNetError, env_int
from ..op import Array, placing

PATIENCE = env_int("MINIMX_MEETING_TIMEOUT", 60, 1)  # seconds that a kernel waits for those of other devices


class Round:
    """One meeting: the part of each device, by its name."""

    def __init__(self) -> None:
        self.parts: dict[str, Array] = {}
        self.whole = threading.Event()


_rounds: dict[tuple[str, int], list[Round]] = {}  # (key, devices) -> the meetings that are not complete, oldest first
_lock = threading.Lock()


def meet(xp: Any, who: str, key: str, count: int, part: Array) -> list[Array]:
    """The parts of all `count` devices whose kernels meet under `key`, in the order of the devices' names.

    GPUs meet in host memory: a part is small, and each device gets copies of all.

    **Raises** MXNetError if they do not all come.
    """
    if xp is not np:
        return [xp.asarray(each) for each in meet(np, who, key, count, part.get())]
    device = placing[0]() if placing else None
    if device is None:
        raise MXNetError(f"{who}: devices cannot meet where every operation runs at once; use the asynchronous engine")
    with _lock:
        rounds = _rounds.setdefault((key, count), [])
        mine = next(
            (each for each in rounds if device not in each.parts), None
        )  # a device that is ahead waits for the next meeting
        if mine is None:
            mine = Round()
            rounds.append(mine)
        mine.parts[device] = part
        if len(mine.parts) == count:
            rounds.remove(mine)
            if not rounds:
                del _rounds[key, count]
            mine.whole.set()
    deadline = time.monotonic() + PATIENCE
    while not mine.whole.wait(max(0.0, min(1.0, deadline - time.monotonic()))):
        if time.monotonic() >= deadline:
            return _give_up(who, key, count, mine)
    return [mine.parts[name] for name in sorted(mine.parts)]


def _give_up(who: str, key: str, count: int, mine: Round) -> Any:
    """Raise for a device whose others did not come; those that still wait give up, too, each in its time."""
    with _lock:
        if mine.whole.is_set():
            return [mine.parts[name] for name in sorted(mine.parts)]
        came = sorted(mine.parts)
        rounds = _rounds.get((key, count), [])
        if mine in rounds:
            rounds.remove(mine)
            if not rounds:
                del _rounds[key, count]
    raise MXNetError(
        f"{who}: only {', '.join(came)} came for {key!r} in {PATIENCE} s, and {count} devices are to meet. Run the forward pass on all of "
        "them before a result is read, or set the number of devices to those that are used."
    )
