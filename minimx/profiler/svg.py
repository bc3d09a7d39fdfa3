"""A timeline as SVG, without any library for drawing: it is text, and so can be read, searched, and styled.

Readable without colour: bars of the commonest names differ in shade and pattern, all that have room bear their names, and every bar tells
its name and time to whoever points at it. For those who cannot see it the picture has a title and a description, and the notebook a table
beneath it (timeline.py).
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ..base import described
from ..engine.events import WAIT, Event
from .layout import LOOKS, WORK, Placed, in_words, ticks, unit_of

WIDTH = 880
LETTER = 6.3  # the width of a letter of the text, which is 11 high; wide enough for most
BAR, STRIP, GAP = 22, 15, 10  # heights: of a bar, of what holds other bars, between rows
NARROW = 1.5  # of bars: neighbours that are narrower are drawn as one
MARGIN = 8
OTHERS = "#BDD7C6"  # of names for which there is no look of their own
MARKED = "#FFF7DC"  # of what the program has marked itself
NO_TEXT = "[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"  # characters that XML has no way to write
_numbers = itertools.count(1)


def escape(text: str) -> str:
    """`text` as it is written in SVG and HTML."""
    return html.escape(re.sub(NO_TEXT, "\ufffd", text))


@dataclass
class Row:
    """A row: its title, what is said beside it, and its bars. What holds other bars is drawn as a strip above them."""

    title: str
    note: str
    bars: Sequence[Placed]
    tops: dict[tuple[int, int], float] = field(default_factory=dict)  # (track, depth) -> distance from the row's top
    height: float = 0.0

    def __post_init__(self) -> None:
        strips: dict[int, int] = {}  # track -> how many strips stand above its bars
        for bar in self.bars:
            strips.setdefault(bar.track, 0)
            if bar.parent:
                strips[bar.track] = max(strips[bar.track], bar.depth + 1)
        for track in sorted(strips):
            for depth in range(strips[track]):
                self.tops[track, depth] = self.height
                self.height += STRIP
            self.tops[track, -1] = self.height
            self.height += BAR + 2
        self.height = self.height or BAR  # one without bars

    def top(self, bar: Placed) -> float:
        return self.tops[bar.track, bar.depth if bar.parent else -1]


class Legend:
    """The names that have a look of their own, with what is said of each.

    `what` is the name of an event in the legend, `label` what stands in its bar.
    """

    def __init__(self, names: dict[str, str], what: Callable[[Event], str], label: Callable[[Event], str]) -> None:
        self.names = names
        self.what = what
        self.label = label
        self.numbers = {name: f"{number}" for number, name in enumerate(names)}

    def look(self, event: Event) -> str:
        """The name of an event's pattern; "" for a name without one."""
        return "wait" if event.kind == WAIT else self.numbers.get(self.what(event), "")


class Drawing:
    """The picture: rows from the top, an axis beneath, the legend last."""

    def __init__(
        self, rows: Sequence[Row], span: tuple[float, float], origin: float, legend: Legend, title: str | None, description: str
    ) -> None:
        self.rows = rows
        self.low, self.high = span
        self.origin = origin  # the time that the axis calls 0
        self.legend = legend
        self.title = title
        self.description = description
        self.mark = f"mx-timeline-{next(_numbers)}"  # several pictures stand in one page
        longest = max([*(len(row.title) for row in rows), *(len(row.note) for row in rows), 4])
        self.left = min(220.0, longest * LETTER + 2 * MARGIN)
        self.scale = (WIDTH - self.left - MARGIN) / ((self.high - self.low) or 1e-9)
        self.parts: list[str] = []

    def svg(self) -> str:
        """The picture's text."""
        top = 26.0 if self.title else 8.0
        begin = top
        for row in self.rows:
            self._row(row, top)
            top += row.height + GAP
        self._axis(begin, top)
        bottom = self._legend(top + 38)
        mark = self.mark
        title = escape(self.title or "Timeline")
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom:.0f}" width="{WIDTH}" height="{bottom:.0f}" '
            f'role="img" aria-labelledby="{mark}-title {mark}-text" style="max-width: 100%; height: auto" '
            'font-family="system-ui, sans-serif" font-size="11" fill="#111">'
            f'<title id="{mark}-title">{title}</title><desc id="{mark}-text">{escape(self.description)}</desc>'
            f'<defs>{self._patterns()}</defs><rect width="{WIDTH}" height="{bottom:.0f}" fill="white"/>'
        )
        if self.title:
            head += f'<text x="{self.left:.0f}" y="17" font-size="13" font-weight="bold">{title}</text>'
        return f"{head}\n{chr(10).join(self.parts)}\n</svg>\n"

    def _x(self, time: float) -> float:
        return self.left + (min(max(time, self.low), self.high) - self.low) * self.scale

    def _row(self, row: Row, top: float) -> None:
        middle = top + row.height / 2
        up = middle - 2 if row.note else middle + 4
        width = int((self.left - 2 * MARGIN) / LETTER)
        self.parts.append(
            f'<rect x="{self.left:.1f}" y="{top - 3:.1f}" width="{WIDTH - self.left - MARGIN:.1f}" height="{row.height + 4:.1f}" '
            'fill="#F6F6F6"/>'
            f'<text x="{self.left - MARGIN:.1f}" y="{up:.1f}" text-anchor="end">{escape(_cut(row.title, width))}</text>'
        )
        if row.note:
            place = f'x="{self.left - MARGIN:.1f}" y="{up + 13:.1f}"'
            self.parts.append(f'<text {place} text-anchor="end" fill="#555" font-size="10">{escape(row.note)}</text>')
        places: dict[float, list[Placed]] = {}
        for bar in row.bars:
            if bar.event.end >= self.low and bar.event.start <= self.high:
                places.setdefault(row.top(bar), []).append(bar)
        for above, bars in sorted(places.items()):
            height = STRIP - 2 if bars[0].parent else BAR
            for run in self._runs(sorted(bars, key=lambda bar: bar.event.start)):
                self._bar(run, top + above, height)

    def _runs(self, bars: Iterable[Placed]) -> list[list[Placed]]:
        """Bars one by one, but those together that would be too narrow to be seen apart."""
        runs: list[list[Placed]] = []
        for bar in bars:
            event = bar.event
            if runs and self._x(event.end) - self._x(event.start) < NARROW:
                first, last = runs[-1][0].event, runs[-1][-1].event
                narrow = len(runs[-1]) > 1 or self._x(last.end) - self._x(last.start) < NARROW
                if narrow and self._x(event.start) - self._x(last.end) < 0.5 and self._x(event.end) - self._x(first.start) < 40:
                    runs[-1].append(bar)
                    continue
            runs.append([bar])
        return runs

    def _bar(self, run: list[Placed], top: float, height: float) -> None:
        event = run[0].event
        left, right = self._x(event.start), self._x(run[-1].event.end)
        width = max(right - left, 0.7)
        strip = run[0].parent
        if len(run) > 1:
            fill, name = self._fill(max(run, key=lambda bar: bar.event.end - bar.event.start).event), f"{len(run)} short ones"
            tip = f"{len(run)} events from {self._clock(event.start)} to {self._clock(run[-1].event.end)}: {_counted(run)}"
        else:
            fill, name = "white" if strip else self._fill(event), self.legend.label(event)
            tip = self._tip(event)
        dashed = ' stroke-dasharray="3 2"' if event.kind == WAIT else ""
        line = 0.4 if width < 4 else 0.8
        parts = [
            f'<g><title>{escape(tip)}</title><rect x="{left:.2f}" y="{top:.1f}" width="{width:.2f}" height="{height}" fill="{fill}" '
            f'stroke="{"#888" if strip else "#333"}" stroke-width="{line}"{dashed}/>'
        ]
        room = int((width - 4) / LETTER)
        if room >= min(3, len(name)):
            style = ' font-style="italic"' if event.kind == WAIT or len(run) > 1 else ""
            parts.append(
                f'<text x="{left + width / 2:.1f}" y="{top + height / 2 + 4:.1f}" text-anchor="middle"{style} stroke="white" '
                f'stroke-width="3" paint-order="stroke" stroke-linejoin="round">{escape(_cut(name, room))}</text>'
            )
        self.parts.append("".join([*parts, "</g>"]))

    def _fill(self, event: Event) -> str:
        if event.kind not in (*WORK, WAIT):
            return MARKED
        look = self.legend.look(event)
        return f"url(#{self.mark}-{look})" if look else OTHERS

    def _tip(self, event: Event) -> str:
        """What a bar tells to whoever points at it."""
        lines = [
            f"{event.name}: {in_words(event.end - event.start)}",
            f"from {self._clock(event.start)} to {self._clock(event.end)}",
        ]
        if event.specs:
            lines.append(f"result {', '.join(map(str, event.specs))}")
        if event.node:
            lines.append(f"node {event.node}")
        if event.about:
            lines.append(event.about)
        if event.origin.scope:
            lines.append(f"scope {event.origin.scope}")
        if event.where is not None:
            lines.append(described(event.where))
        return "\n".join(lines)

    def _clock(self, time: float) -> str:
        """A time as it stands on the axis."""
        unit, scale = unit_of(self.high - self.low)
        return f"{(time - self.origin) * scale:.2f} {unit}"

    def _axis(self, top: float, bottom: float) -> None:
        span = self.high - self.low
        unit, scale = unit_of(span)
        right = WIDTH - MARGIN
        self.parts.append(f'<line x1="{self.left:.1f}" y1="{bottom}" x2="{right}" y2="{bottom}" stroke="#333"/>')
        for tick in ticks(self.low - self.origin, self.high - self.origin):
            x = self._x(self.origin + tick)
            self.parts.append(
                f'<line x1="{x:.1f}" y1="{top - 3}" x2="{x:.1f}" y2="{bottom + 4}" stroke="#999" stroke-width="0.5" '
                'stroke-dasharray="2 3"/>'
                f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{tick * scale:.10g}</text>'
            )
        self.parts.append(f'<text x="{(self.left + right) / 2:.1f}" y="{bottom + 29}" text-anchor="middle">time in {unit}</text>')

    def _legend(self, top: float) -> float:
        """The legend in as many lines as it needs; where it ends."""
        events = [bar.event for row in self.rows for bar in row.bars if not bar.parent]
        entries = [
            (f"url(#{self.mark}-{number})", f"{name} {note}".strip())
            for number, (name, note) in enumerate(self.legend.names.items())
        ]
        if any(event.kind in WORK and not self.legend.look(event) for event in events):
            entries.append((OTHERS, "others"))
        if any(event.kind not in (*WORK, WAIT) for event in events):
            entries.append((MARKED, "marked by the program"))
        if any(event.kind == WAIT for event in events):
            entries.append((f"url(#{self.mark}-wait)", "the front end waits"))
        x = self.left
        for fill, text in entries:
            width = len(text) * LETTER + 34
            if x + width > WIDTH and x > self.left:
                x, top = self.left, top + 20
            self.parts.append(
                f'<rect x="{x:.1f}" y="{top}" width="18" height="12" fill="{fill}" stroke="#333" stroke-width="0.8"/>'
                f'<text x="{x + 23:.1f}" y="{top + 10}">{escape(text)}</text>'
            )
            x += width
        return top + (24 if entries else 4)

    def _patterns(self) -> str:
        """The looks, as patterns that bars are filled with."""
        lines = {
            "": "", "///": "M-1,1 l2,-2 M0,7 l7,-7 M6,8 l2,-2", "\\\\\\": "M-1,6 l2,2 M0,0 l7,7 M6,-1 l2,2",
            "xx": "M-1,1 l2,-2 M0,7 l7,-7 M6,8 l2,-2 M-1,6 l2,2 M0,0 l7,7 M6,-1 l2,2", "---": "M0,3.5 h7",
        }  # fmt: skip
        looks = [(f"{number}", color, lines[hatch]) for number, (color, hatch) in enumerate(LOOKS)]
        return "".join(
            f'<pattern id="{self.mark}-{name}" width="7" height="7" patternUnits="userSpaceOnUse">'
            f'<rect width="7" height="7" fill="{color}"/><path d="{path}" stroke="#333" stroke-width="0.7" fill="none"/></pattern>'
            for name, color, path in [*looks, ("wait", "#FFFFFF", "M3.5,3 v1")]
        )


def _counted(run: list[Placed]) -> str:
    """The names of events with how many there are of each."""
    counts: dict[str, int] = {}
    for bar in run:
        counts[bar.event.name] = counts.get(bar.event.name, 0) + 1
    listed = [f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1])]
    return ", ".join(listed[:6]) + (", ..." if len(listed) > 6 else "")


def _cut(text: str, letters: int) -> str:
    """`text` in at most `letters` letters."""
    return text if len(text) <= letters else text[: max(1, letters - 1)] + "…"
