"""How examples of a file become the batches of a pass.

A file is read again and again, epoch after epoch, perhaps in another order each time. A pass begins where the last one stopped and ends
with the first batch that reaches the end of an epoch. With `round_batch` that batch is filled up with the beginning of the next epoch,
and the next pass goes on behind what was used: no example is seen more often than another. Without, it stays short.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

__all__ = ["Batched", "Epoch", "Place", "Source", "batches"]

Examples = TypeVar("Examples", bound=Sequence[Any], covariant=True)


class Place(NamedTuple):
    """Where a pass begins: with which random numbers the epoch began, and how many examples of it were used before."""

    random: Any = None
    used: int = 0


class Epoch(Protocol[Examples]):
    """The examples of a file, once."""

    def take(self, count: int) -> Examples:
        """The next examples, `count` at most; fewer only at the end."""


class Source(Protocol[Examples]):
    """A file that can be read again and again."""

    random: Any  # the state of what puts the examples into order; None if they stay in that of the file

    def epoch(self) -> Epoch[Examples]:
        """Begin anew, in the next order."""


class Batched(NamedTuple):
    """The examples of a batch, in one part or several; how many are missing, or were taken from the next epoch; where a pass goes on after
    them; and where the next pass begins if this one is left, or ends, here."""

    parts: list[Any]
    pad: int
    resume: Place
    restart: Place


def batches(source: Source[Any], start: Place, size: int, round_batch: bool) -> Iterator[Batched]:
    """The batches of the pass that begins at `start`. An epoch without examples must raise an error by itself."""
    begun, used = start
    source.random = begun
    epoch = source.epoch()
    if used:
        epoch.take(used)
    while True:
        parts = [epoch.take(size)]
        if not parts[0] and used == start.used > 0:  # the last pass had used all of this epoch
            begun, used = source.random, 0
            epoch = source.epoch()
            start = Place()
            continue
        if not parts[0]:
            return
        used += len(parts[0])
        missing = pad = size - len(parts[0])
        while missing and round_batch:
            begun = source.random
            epoch = source.epoch()
            parts.append(epoch.take(missing))
            used = len(parts[-1])
            missing -= used
        resume = Place(begun, used)
        yield Batched(parts, pad, resume, resume if pad and round_batch else Place(source.random))
        if pad:
            return
