"""A recording as a trace file: the JSON that chrome://tracing and ui.perfetto.dev read.

Each row of the picture (a lane, a thread of the user) is a "thread" of the file, with its name; a lane for which two threads worked at the
same time has two. Durations are complete events ("ph": "X"), which nest by time; counters are "C", marks "i". Times are microseconds from
the beginning of the recording.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from typing import Any

from ..base import described
from ..engine.events import Event, Place
from .layout import placed, row_order
from .log import Contents

CHUNK = 1000  # entries that are written at a time


def trace_file(contents: Contents) -> Iterator[bytes]:
    """The bytes of the file, in parts. All text is ASCII: what else a name has is escaped."""
    before = '{"traceEvents": [\n'
    entries = _Writer(contents).entries()
    while part := list(itertools.islice(entries, CHUNK)):
        yield (before + ",\n".join(part)).encode()
        before = ",\n"
    yield f'\n], "displayTimeUnit": "ms", "otherData": {{"left_out": {contents.left_out}}}}}\n'.encode()


class _Writer:
    """Writes entries. What many of them share, names and lines, is written once and kept."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.process = os.getpid()
        self.quoted: dict[str, str] = {}
        self.about: dict[Any, str] = {}
        self.lines: dict[Place, str] = {}

    def entries(self) -> Iterator[str]:
        """All of them: names of rows before what happened in the row, then counters and marks."""
        rows: dict[str, list[Event]] = {}
        for event in self.contents.events:
            rows.setdefault(event.row, []).append(event)
        for mark in self.contents.marks:
            rows.setdefault(mark.row, [])
        yield self._named("process_name", 0, {"name": "minimx"})
        number = 0
        first_tracks: dict[str, int] = {}
        for row in sorted(rows, key=row_order):
            bars = placed(rows[row])
            first = first_tracks[row] = number + 1
            for track in range(max((bar.track for bar in bars), default=0) + 1):
                number += 1
                yield self._named("thread_name", number, {"name": f"{row} ({track + 1})" if track else row})
                yield self._named("thread_sort_index", number, {"sort_index": number})
            for bar in bars:
                yield self._bar(bar.event, first + bar.track)
        for sample in self.contents.samples:
            name = self._quote(sample.name)
            yield f'{self._head(sample.name, sample.category, "C", sample.time, 0)}, "args": {{{name}: {json.dumps(sample.value)}}}}}'
        for mark in self.contents.marks:
            head = self._head(mark.name, mark.category, "i", mark.time, first_tracks[mark.row])
            yield f'{head}, "s": "{mark.scope}", "args": {json.dumps(self._line(mark.where))}}}'

    def _named(self, what: str, number: int, arguments: dict[str, Any]) -> str:
        return json.dumps({"ph": "M", "name": what, "pid": self.process, "tid": number, "args": arguments})

    def _head(self, name: str, category: str, phase: str, time: float, number: int) -> str:
        """The beginning of an entry, which is still open. Times are microseconds."""
        since = max(0.0, time - self.contents.begin) * 1e6
        return (
            f'{{"name": {self._quote(name)}, "cat": {self._quote(category)}, "ph": "{phase}", "ts": {since:.3f}, "pid": {self.process}, '
            f'"tid": {number}'
        )

    def _bar(self, event: Event, number: int) -> str:
        head = self._head(event.name, event.kind, "X", event.start, number)
        return f'{head}, "dur": {(event.end - event.start) * 1e6:.3f}, "args": {self._arguments(event)}}}'

    def _quote(self, text: str) -> str:
        found = self.quoted.get(text)
        if found is None:
            found = self.quoted[text] = json.dumps(text)
        return found

    def _line(self, where: Place | None) -> dict[str, str]:
        """A line of the user's code in words."""
        if where is None:
            return {}
        if where not in self.lines:
            self.lines[where] = described(where)
        return {"line": self.lines[where]}

    def _arguments(self, event: Event) -> str:
        """What is told of an event beside its name and time."""
        key = (event.where, tuple(event.specs), event.node, event.about, event.operators, event.origin.scope)
        found = self.about.get(key)
        if found is None:
            told = {
                **self._line(event.where), "result": ", ".join(map(str, event.specs)), "node": event.node, "about": event.about,
                "operators": f"{event.operators or ''}", "scope": event.origin.scope,
            }  # fmt: skip
            found = self.about[key] = json.dumps({name: text for name, text in told.items() if text})
        return found
