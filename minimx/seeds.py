"""Where random numbers come from: a seed and a count of draws for each device, and the key of each draw.

A generator that is passed from draw to draw would tie their order together: what a program gets would depend on which lane runs
first. So random numbers are *counter-based* here. Each call of a random operator takes a `Key` at once, in the order of the
program: the seed, the device's stream, and how many draws that stream has seen. Whenever and wherever the call runs, its numbers
are a function of the key alone (the block cipher Philox, applied to 0, 1, 2, ...), so they do not depend on the number of workers
or lanes, nor on what runs beside. J. Salmon and others, "Parallel random numbers: as easy as 1, 2, 3" (2011). Book: chapter 2.
"""

from __future__ import annotations

import contextlib
import operator
import os
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from . import cuda_random
from .base import ArgumentError
from .device import Context

WORD = (1 << 64) - 1  # Philox takes words of 64 bits


class Key(NamedTuple):
    """What the random numbers of one draw are a function of."""

    seed: int
    stream: int
    counter: int

    def generator(self, xp: Any) -> Any:
        """A generator that stands at the beginning of this key's numbers: NumPy's, or one for the current GPU with the same numbers.

        Use it before the calling thread asks for another: a thread has one NumPy generator, which is moved to where the key says,
        because that is ten times faster than making one.
        """
        if xp is np:
            return _own.at(self)
        return cuda_random.Generator(xp, self, lambda: _own.at(self))

    def permutation(self, xp: Any, length: int) -> Any:
        """The whole numbers below `length` in random order."""
        return self.generator(xp).permutation(length)


class _ThreadGenerator(threading.local):
    """The NumPy generator of a thread, and the state that is written into it for each key.

    It is made when the thread first draws: NumPy imports its generators only when somebody asks for them.
    """

    start: Any = None  # nothing drawn, nothing buffered; NumPy's types call it a mapping of anything

    def _make(self) -> None:
        self.philox = np.random.Philox(key=0)
        self.numbers = np.random.Generator(self.philox)
        self.start = self.philox.state

    def at(self, key: Key) -> np.random.Generator:
        if self.start is None:
            self._make()
        words = self.start["state"]
        words["key"][:] = key.seed, key.stream
        # The lower two words count the numbers of this draw: 2**128 blocks before the next draw's begin
        words["counter"][2] = key.counter
        self.philox.state = self.start
        return self.numbers


_own = _ThreadGenerator()


class _Stream:
    """The draws of one device."""

    __slots__ = ("seed", "number", "count")

    def __init__(self, seed: int, number: int) -> None:
        self.seed = seed
        self.number = number
        self.count = 0


class _Streams:
    """The draws of all devices since a seed."""

    __slots__ = ("seed", "of")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.of: dict[Context, _Stream] = {}

    def next(self, lane: Context) -> Key:
        stream = self.of.get(lane)
        if stream is None:
            # cpu(0) has stream 0, so that seed(n) and seed(n, cpu(0)) mean the same there
            stream = self.of[lane] = _Stream(self.seed, 2 * lane.device_id + (lane.device_type == "gpu"))
        stream.count += 1
        return Key(stream.seed, stream.number, stream.count)


class _ThreadStreams(threading.local):
    """What a thread draws from instead of what all draw from: see `seeded`."""

    value: _Streams | None = None


_lock = threading.Lock()  # guards the next one
_shared = _Streams(0)  # MXNet starts from a fixed seed as well
_own_streams = _ThreadStreams()


def next_key(device: Context) -> Key:
    """The key of the next draw on `device`. May be called from any thread."""
    own = _own_streams.value
    if own is not None:
        return own.next(device.lane)
    with _lock:
        return _shared.next(device.lane)


def seed(seed_state: int, ctx: Context | str = "all") -> None:
    """Start the random numbers of all devices, or of the one device `ctx`, from `seed_state`.

    The same program draws the same numbers after it: initial parameters, dropout masks, shuffled batches. Devices differ from
    each other, unless they are seeded one by one with the same number.

    **Args** seed_state: any whole number. **Raises** ArgumentError if it is none; KeyError for an unknown device type.
    **Source** MXNet `random.seed`; the numbers themselves are others than MXNet's.
    """
    try:
        value = operator.index(seed_state) & WORD
    except TypeError:
        raise ArgumentError(f"random.seed: seed_state must be int, got {type(seed_state).__name__}") from None
    with _lock:
        streams = _own_streams.value or _shared
        if isinstance(ctx, str) and ctx == "all":
            streams.seed = value
            streams.of.clear()
        else:
            streams.of[Context(ctx).lane] = _Stream(value, 0)


@contextlib.contextmanager
def seeded(seed_state: int) -> Iterator[None]:
    """A scope in which the calling thread draws as after `seed(seed_state)`. Other threads, and what follows, do not notice.

    Batches of data are made in it, each with a seed of its own, so that they are the same whoever makes them, and when.
    """
    before, _own_streams.value = _own_streams.value, _Streams(seed_state & WORD)
    try:
        yield
    finally:
        _own_streams.value = before


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()  # a thread that did not come along may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
