"""Where bars stand in a timeline, however it is drawn: rows, tracks of a row, the unit of its axis, and how bars are told apart.

It knows no drawing: svg.py draws what this works out, d2l/figures.py does so with matplotlib, and chrome.py makes the rows of a trace
file of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from ..base import ArgumentError, shown
from ..engine.events import CUSTOM, FUNCTION, GROUP, OPERATOR, PROGRAM, TASK, Event

SCOPE = "scope"  # the kind of what profiler.scope() marks
WORK = (OPERATOR, CUSTOM, PROGRAM, GROUP, TASK, FUNCTION)  # the kinds of what runs in lanes
UNITS = (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))

#: What tells bars apart: a shade that survives a print in grey, and a pattern. (Colours: M. Okabe, K. Ito, for all kinds of sight.)
LOOKS: tuple[tuple[str, str], ...] = (
    ("#D9D9D9", ""),
    ("#56B4E9", "///"),
    ("#E69F00", "\\\\\\"),
    ("#737373", ""),
    ("#009E73", "xx"),
    ("#FFFFFF", "---"),
)
Row = TypeVar("Row", bound="tuple[object, ...]")


def checked(who: str, events: Iterable[Row]) -> list[Row]:
    """The events (row, name, start, end, ...) by start. Raises ArgumentError where there is none, or one ends before it starts."""
    found: list[Row] = []
    for event in events:
        if not isinstance(event, tuple) or len(event) < 4 or not all(isinstance(time, (int, float)) for time in event[2:4]):
            raise ArgumentError(f"{who}: an event is (lane, name, start, end) with times in seconds, got {shown(event)}")
        if not (math.isfinite(event[2]) and math.isfinite(event[3])):  # type: ignore[arg-type]  # they are numbers
            raise ArgumentError(f"{who}: {shown(event[:4])} has a time that is no number")
        if event[3] < event[2]:  # type: ignore[operator]
            raise ArgumentError(f"{who}: {shown(event[:4])} ends before it starts")
        found.append(event)
    if not found:
        raise ArgumentError(f"{who}: no events; were they logged before the work was done?")
    found.sort(key=lambda event: (event[2], -event[3]))  # type: ignore[operator]
    return found


def unit_of(span: float) -> tuple[str, float]:
    """The unit in which `span` seconds are read easily, and how many of it a second has."""
    return next(((unit, scale) for unit, scale in UNITS if span * scale >= 1), UNITS[-1])


def in_words(seconds: float) -> str:
    """A duration with its unit, to three figures.

    >>> in_words(0.00123), in_words(0.0)
    ('1.23 ms', '0 ns')
    """
    unit, scale = unit_of(seconds)
    value = seconds * scale
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f} {unit}" if value >= 1e-3 else "0 ns"


def ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round numbers from `low` to `high`, about `most` of them.

    >>> ticks(0.0, 1.0, 5), ticks(130.0, 150.0, 5)
    ([0.0, 0.5, 1.0], [130.0, 135.0, 140.0, 145.0, 150.0])
    """
    if not high > low:
        return [low]
    rough = (high - low) / (most - 1)
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * number for number in range(first, last + 1)]


def row_order(row: str) -> tuple[int, list[tuple[int, int, str]]]:
    """A key that sorts rows as a reader looks for them: devices by number, a GPU's copies beside it, threads of the user last."""
    rank = 1 if row.startswith("thread ") else 0
    direction = {" in": 0, "": 1, " out": 2}
    stem = re.sub(r" (in|out)$", "", row)
    natural = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", stem)]
    return rank, [*natural, (0, direction.get(row[len(stem) :], 1), "")]


class Placed(NamedTuple):
    """An event with its place in its row: which track, how deep inside other events, and whether it holds others itself."""

    event: Event
    track: int
    depth: int
    parent: bool


def placed(events: Sequence[Event]) -> list[Placed]:
    """The events of one row on as few tracks as can be: those of a track follow one another, or are one in the other.

    What is inside another event stands on its track, if the same thread did both. Two threads that work for a lane need two tracks.
    """
    order = sorted(range(len(events)), key=lambda number: (events[number].start, -events[number].end, -number))
    tracks: list[list[int]] = []  # of each, the events that have begun and not ended, outermost first
    place: dict[int, tuple[int, int]] = {}
    holds: set[int] = set()
    for number in order:
        event = events[number]
        chosen = -1
        for track, open_ones in enumerate(tracks):
            while open_ones and events[open_ones[-1]].end <= event.start:
                open_ones.pop()
            if open_ones:
                outer = events[open_ones[-1]]
                if outer.thread == event.thread and outer.end >= event.end:
                    chosen = track
                    break
            elif chosen < 0:
                chosen = track
        if chosen < 0:
            chosen = len(tracks)
            tracks.append([])
        open_ones = tracks[chosen]
        if open_ones:
            holds.add(open_ones[-1])
        place[number] = (chosen, len(open_ones))
        open_ones.append(number)
    return [Placed(events[number], *place[number], number in holds) for number in order]
