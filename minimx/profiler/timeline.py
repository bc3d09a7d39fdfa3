"""`timeline`: what ran when, as a picture in a notebook with a table beneath it.

A row is a lane of the engine, or a thread of the user with its waits; or, at choice, an operator, or a scope of the profiler. svg.py draws
the picture, chrome.py writes the same events for other viewers. Book: chapter 2.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..base import ArgumentError, MXNetError, shown
from ..engine.events import OPERATOR, WAIT, Event
from ..fields import converted
from ..files import PathLike, as_path, replace_file
from .chrome import trace_file
from .control import profiler
from .layout import LOOKS, WORK, checked, in_words, placed, row_order
from .log import Contents
from .svg import Drawing, Legend, Row, escape

MOST_ROWS = 24  # of operators or scopes; the others share one
MOST_LINES = 12  # of a notebook's table
STYLE = "<style>body {font-family: system-ui, sans-serif} th, td {padding: 1px 8px}</style>"  # of a saved page; notebooks have their own
NO_SCOPE = "outside any scope"
BY: dict[str, Callable[[Event], str]] = {
    "lane": lambda event: event.row,
    "operator": lambda event: event.name,
    "scope": lambda event: event.origin.scope or NO_SCOPE,
}


def timeline(
    events: Iterable[Any] | None = None, by: str = "lane", title: str | None = None, start: float | None = None,
    end: float | None = None, lanes: Sequence[str] = (),
) -> Timeline:  # fmt: skip
    """What the profiler has recorded, or `events`, as a picture that a notebook shows.

    **Args** `events`: those of `engine.trace()`, tuples (lane, name, start, end) with seconds on one clock; None: the profiler's.
    `by`: what a row is, "lane", "operator" or "scope". `start` and `end`: the part to look at, in seconds from the first event.
    `lanes`: rows that are to be there even if nothing ran in them.
    **Returns** a Timeline: `.events`, `.table()`, `.save("name.svg")`. **Raises** MXNetError if the profiler never ran; ArgumentError if
    there are no events, or one is none.

    >>> timeline([("cpu(0)", "dot", 0.0, 0.002), ("gpu(0)", "conv", 0.001, 0.004)])
    <Timeline of 2 events by lane: cpu(0) 1, gpu(0) 1>
    """
    who = "profiler.timeline"
    if not isinstance(by, str) or by not in BY:
        raise ArgumentError(f"{who}: by is {shown(by)}; choose one of {', '.join(BY)}")
    if events is None:
        contents = profiler.contents()
        if contents is None:
            raise MXNetError(
                f"{who}: the profiler has not run; call profiler.set_state('run') before the work, and 'stop' after it"
            )
        if contents.left_out:
            warnings.warn(f"{who}: {contents.left_out} later events are in the tables of dumps() only", stacklevel=2)
        events = contents.events
    found = [event if type(event) is Event else _as_event(event) for event in checked(who, events)]
    first = found[0].start
    bounds = [
        None if each is None else first + converted(who, name, "float", each) for name, each in (("start", start), ("end", end))
    ]
    low = first if bounds[0] is None else bounds[0]
    high = max(event.end for event in found) if bounds[1] is None else bounds[1]
    if not low <= high:
        raise ArgumentError(f"{who}: start is {start}, end {end}; the part must not end before it starts")
    seen = [event for event in found if event.end >= low and event.start <= high]
    if not seen:
        raise ArgumentError(
            f"{who}: no event from {start} to {end} s; the last one ends at {max(e.end for e in found) - first:.6f} s"
        )
    return Timeline(seen, by, title, (low, high), first, lanes)


def _as_event(entry: tuple[Any, ...]) -> Event:
    """An event of a trace: of a kind that the picture shows as work."""
    return Event(str(entry[0]), str(entry[1]), entry[2], entry[3], OPERATOR)


class Timeline:
    """Events, and how they are shown: a picture with a table in a notebook, a line as text."""

    def __init__(
        self, events: Sequence[Event], by: str, title: str | None, span: tuple[float, float], origin: float, lanes: Sequence[str]
    ) -> None:
        self.events = list(events)
        self.by = by
        self.title = title
        self.span = span  # from when to when
        self.origin = origin  # what the axis calls 0
        names = sorted({event.row for event in events} | set(lanes), key=row_order)
        self.lanes = {row: placed([event for event in events if event.row == row]) for row in names}

    # ---- figures

    @functools.cached_property
    def leaves(self) -> list[Event]:
        """The events that hold no others."""
        return [bar.event for bars in self.lanes.values() for bar in bars if not bar.parent]

    @functools.cached_property
    def work(self) -> list[Event]:
        """Those that are work: no waits, and nothing that the program has marked itself."""
        return [event for event in self.leaves if event.kind in WORK]

    def busy(self, row: str) -> float:
        """Seconds for which something ran in a row; in that of a thread, for which it waited."""
        total, reached = 0.0, self.span[0]
        for bar in self.lanes[row]:
            if _is_thread(row) and bar.event.kind != WAIT:
                continue
            low, high = max(bar.event.start, reached), min(bar.event.end, self.span[1])
            total += max(0.0, high - low)
            reached = max(reached, high)
        return total

    def _totals(self, what: Callable[[Event], str], events: Iterable[Event]) -> dict[str, tuple[int, float]]:
        """Of each name how often, and how long; the longest first."""
        found: dict[str, tuple[int, float]] = {}
        for event in events:
            count, total = found.get(what(event), (0, 0.0))
            found[what(event)] = count + 1, total + event.end - event.start
        return dict(sorted(found.items(), key=lambda item: (-item[1][1], item[0])))

    def _lane_lines(self) -> list[tuple[str, ...]]:
        span = (self.span[1] - self.span[0]) or 1e-12
        return [
            (row, f"{sum(not bar.parent for bar in bars)}", in_words(self.busy(row)), f"{self.busy(row) / span:.0%}")
            for row, bars in self.lanes.items()
        ]

    def _name_lines(self) -> list[tuple[str, ...]]:
        work = self._totals(BY["scope"] if self.by == "scope" else BY["operator"], self.work)
        waits = self._totals(lambda event: f"wait: {event.name}", (event for event in self.leaves if event.kind == WAIT))
        whole = sum(total for _, total in work.values()) or 1e-12
        return [
            (name, f"{count}", in_words(total), in_words(total / count), f"{total / whole:.0%}" if totals is work else "")
            for totals in (work, waits)
            for name, (count, total) in totals.items()
        ]

    def _tables(self) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        """Two tables, each as its titles and lines."""
        name = "scope" if self.by == "scope" else "operator"
        return [
            (("lane", "events", "busy or waiting", "of the time"), self._lane_lines()),
            ((name, "events", "total", "mean", "of all work"), self._name_lines()),
        ]

    def table(self) -> str:
        """The figures as text: of each lane how long it was busy, of each operator (or scope) how often it ran, and how long."""
        lines: list[str] = []
        for titles, entries in self._tables():
            widths = [max(len(row[column]) for row in (titles, *entries)) for column in range(len(titles))]
            for row in (titles, *entries):
                cells = (
                    text.ljust(width) if not column else text.rjust(width)
                    for column, (text, width) in enumerate(zip(row, widths))
                )
                lines.append("  ".join(cells).rstrip())
            lines.append("")
        return "\n".join(lines)

    # ---- the picture

    def _rows(self) -> list[Row]:
        if self.by == "lane":
            shares = [("waits " if _is_thread(line[0]) else "busy ") + line[3] for line in self._lane_lines()]
            return [Row(row, share, bars) for (row, bars), share in zip(self.lanes.items(), shares)]
        what = BY[self.by]
        work = self.work
        totals = self._totals(what, work)
        rows = {name: [event for event in work if what(event) == name] for name in list(totals)[:MOST_ROWS]}
        left = [event for event in work if what(event) not in rows]
        if left:
            rows[f"{len(totals) - len(rows)} others"] = left
        return [Row(name, _counted(events), placed(events)) for name, events in rows.items()]

    def _legend(self) -> Legend:
        """Looks for the names that take most of the time; for lanes, where rows are not lanes already."""
        what = BY["operator"] if self.by == "lane" else BY["lane"]
        totals = self._totals(what, self.work)
        names = {name: f"({in_words(total)})" for name, (_, total) in list(totals.items())[: len(LOOKS)]}
        return Legend(names, what, _node_of if self.by == "operator" else BY["operator"])

    def describe(self) -> str:
        """The picture in words."""
        lanes = "; ".join(
            f"{row} has {count} events and {'waits' if _is_thread(row) else 'is busy'} for {busy}, {share} of the time"
            for row, count, busy, share in self._lane_lines()
        )
        names = ", ".join(f"{line[0]} {line[2]}" for line in self._name_lines()[:5])
        span = in_words(self.span[1] - self.span[0])
        return (
            f"Timeline of {len(self.leaves)} events over {span}, a row for each {self.by}. {lanes}. Most time went into: {names}."
        )

    def _repr_svg_(self) -> str:
        return Drawing(self._rows(), self.span, self.origin, self._legend(), self.title, self.describe()).svg()

    def _repr_html_(self) -> str:
        """The picture, and beneath it the same in figures."""
        return f'<div class="mx-timeline">\n{self._repr_svg_()}{self._html_tables()}</div>\n'

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        """All forms for a notebook, the picture with its alternative text: the lanes and how many events each had, not the times, so
        that it stays the same from run to run."""
        forms = {"image/svg+xml": self._repr_svg_(), "text/html": self._repr_html_(), "text/plain": repr(self)}
        return forms, {"image/svg+xml": {"alt": repr(self).strip("<>")}}

    def _html_tables(self) -> str:
        parts = []
        captions = ("How long each lane was busy", "What took the time")
        for caption, (titles, lines) in zip(captions, self._tables()):
            shown_lines = lines[:MOST_LINES]
            if len(lines) > MOST_LINES:
                shown_lines.append((f"and {len(lines) - MOST_LINES} more: see table()", *[""] * (len(titles) - 1)))
            head = "".join(f'<th scope="col">{title}</th>' for title in titles)
            body = "\n".join([*map(_html_line, shown_lines), ""])
            parts.append(f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>\n")
        return f"<details open='open'><summary>The timeline in figures</summary>\n{''.join(parts)}</details>\n"

    def save(self, path: PathLike) -> None:
        """Write it to a file, whole or not at all: `.svg` the picture, `.html` with the tables, `.json` a trace file for other viewers.

        **Raises** ArgumentError for another ending; MissingFileError if the folder is not there.
        """
        ending = os.path.splitext(as_path(path))[1].lower()
        if ending == ".svg":
            chunks: Iterable[bytes] = [self._repr_svg_().encode()]
        elif ending == ".html":
            title = escape(self.title or "Timeline")
            page = f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>{STYLE}</head><body>\n'
            chunks = [f"{page}{self._repr_html_()}</body></html>\n".encode()]
        elif ending == ".json":
            chunks = trace_file(Contents(self.span[0], self.events, [], [], 0))
        else:
            raise ArgumentError(f"Timeline.save: {shown(path)} must end in .svg, .html or .json")
        replace_file(path, chunks)

    def __repr__(self) -> str:
        """What does not change from run to run: which lanes there are, and how many events each had."""
        lanes = ", ".join(f"{line[0]} {line[1]}" for line in self._lane_lines())
        return f"<Timeline of {len(self.leaves)} events by {self.by}: {lanes}>"


def _html_line(line: tuple[str, ...]) -> str:
    """A line of a table, of which the first cell says what it is about."""
    cells = "".join(f'<td style="text-align: right">{escape(cell)}</td>' for cell in line[1:])
    return f'<tr><th scope="row" style="text-align: left">{escape(line[0])}</th>{cells}</tr>\n'


def _is_thread(row: str) -> bool:
    """Whether a row is a thread of the user, not a lane."""
    return row.startswith("thread ")


def _node_of(event: Event) -> str:
    """What a bar says in a row of its operator: the node of the graph that it was, or where it ran."""
    return event.node or event.row


def _counted(events: Sequence[Event]) -> str:
    total = in_words(sum(event.end - event.start for event in events))
    return f"{len(events)} in {total}"
