"""The steps of a story as a picture: a row a task, a column a step, and how the task stands as shade and pattern.

The columns are steps, not times, so that what is short can be seen beside what is long. Waiting is white with a broken outline, ready
light, running dark with the name of who runs it: that is readable without colour, and on a dark page, since the picture brings its own
ground. Book: chapter 7.
"""

from __future__ import annotations

from ...profiler.svg import LETTER, escape
from .recording import AT_ONCE, GOES_ON, QUEUED, WAITS
from .story import FAILED, FINISHED, FRONT, READY, RUNNING, WAITING, Story

WIDTH, ROW, BAR, HEAD = 880.0, 24, 18, 26
MOST_ROWS = 60  # tasks beyond are in the table only
LOOKS = {  # state -> fill, dashes, colour of letters
    WAITING: ("#FFFFFF", ' stroke-dasharray="3 2"', "#333"),
    READY: ("#BFDDF0", "", "#111"),
    RUNNING: ("#00598C", "", "#FFF"),
    FAILED: ("#FFFFFF", "", "#A00"),
}
SIGNS = {QUEUED: "queues", AT_ONCE: "computes"}


class Chart:
    """The picture of a story; `step` marks a column."""

    def __init__(self, story: Story, step: int | None = None) -> None:
        self.story = story
        self.step = step
        self.rows = story.acts[:MOST_ROWS]
        titles = [FRONT, *(act.title for act in self.rows)]
        self.left = min(230.0, max(len(title) for title in titles) * LETTER + 16)
        self.column = min(44.0, (WIDTH - self.left - 16) / max(len(story), 1))
        self.parts: list[str] = []

    def svg(self, alt: str) -> str:
        """The picture's text."""
        height = HEAD + ROW * (len(self.rows) + 1) + 40
        self._head(height - 40)
        self._front_end()
        for number, act in enumerate(self.rows):
            self._title(act.title, number + 1)
            self._row(act.number, HEAD + ROW * (number + 1))
        if self.step:  # once more, above what is drawn since
            self._mark(height - 40, "none")
        self._legend(height - 22)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height}" width="{WIDTH:.0f}" height="{height}" '
            f'role="img" aria-label="{escape(alt)}" style="max-width: 100%; height: auto" font-family="system-ui, sans-serif" '
            f'font-size="11" fill="#111"><title>{escape(alt)}</title><rect width="100%" height="100%" fill="#FFF"/>\n'
            + "\n".join(self.parts)
            + "\n</svg>\n"
        )

    def _x(self, step: int) -> float:
        """Where the column after `step` moments begins."""
        return self.left + (step - 1) * self.column

    def _title(self, text: str, row: int) -> None:
        letters = int((self.left - 12) / LETTER)
        cut = text if len(text) <= letters else text[: letters - 1] + "…"
        self.parts.append(f'<text x="{self.left - 8:.1f}" y="{HEAD + ROW * row + 13}" text-anchor="end">{escape(cut)}</text>')

    def _head(self, bottom: float) -> None:
        """The numbers of the steps, and the mark of the one that is looked at."""
        every = next(each for each in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10**9) if each * self.column >= 22)
        if self.step:
            self._mark(bottom, "#FFF3C4")
        for step in range(1, len(self.story) + 1):
            if step % every == 0:
                x = self._x(step) + self.column / 2
                self.parts.append(f'<text x="{x:.1f}" y="16" text-anchor="middle" fill="#333">{step}</text>')

    def _mark(self, bottom: float, fill: str) -> None:
        place = f'x="{self._x(self.step or 1):.1f}" y="2" width="{self.column:.1f}" height="{bottom:.0f}"'
        self.parts.append(f'<rect {place} fill="{fill}" stroke="#8A6D00" stroke-width="2"/>')

    def _front_end(self) -> None:
        """What the front end does: it queues, computes small things, waits."""
        self._title(FRONT, 0)
        waiting = 0
        for step, moment in enumerate(self.story.moments, 1):
            if moment.kind == WAITS:
                waiting = step
            elif moment.kind == GOES_ON and waiting:
                self._bar(waiting, step, HEAD, "#D9D9D9", "", "#111", "waits", f"waits: {moment.what}")
                waiting = 0
            elif moment.kind in SIGNS:
                x = self._x(step) + self.column / 2
                sign = "q" if moment.kind == QUEUED else "c"
                tip = f"<title>step {step}: {SIGNS[moment.kind]} {escape(moment.what)}</title>"
                self.parts.append(f'<g>{tip}<text x="{x:.1f}" y="{HEAD + 13}" text-anchor="middle">{sign}</text></g>')

    def _row(self, number: int, top: float) -> None:
        """A task: runs of columns in which its state is the same."""
        begin, state = 1, ""
        for step in range(1, len(self.story) + 2):
            now = self.story.states[step].get(number, "") if step <= len(self.story) else ""
            if now == state:
                continue
            if state and state != FINISHED:
                fill, dashes, ink = LOOKS[state]
                act = self.story.acts[number]
                label = (FRONT if act.by_front else act.lane) if state == RUNNING else state
                self._bar(begin, step, top, fill, dashes, ink, label, f"{act.title}: {state}")
            begin, state = step, now

    def _bar(self, begin: int, end: int, top: float, fill: str, dashes: str, ink: str, label: str, tip: str) -> None:
        """A bar over the columns from `begin` up to `end`."""
        width = max((end - begin) * self.column, 1.0)
        text = ""
        if width > len(label) * LETTER + 2:
            text = f'<text x="{self._x(begin) + width / 2:.1f}" y="{top + 13}" text-anchor="middle" fill="{ink}">{escape(label)}</text>'
        steps = f"step {begin}" if end == begin + 1 else f"steps {begin} to {end - 1}"
        self.parts.append(
            f'<g><title>{escape(tip)}, {steps}</title><rect x="{self._x(begin):.1f}" y="{top}" width="{width:.1f}" height="{BAR}" '
            f'fill="{fill}" stroke="#333"{dashes}/>{text}</g>'
        )

    def _legend(self, top: float) -> None:
        x = self.left
        for state in (WAITING, READY, RUNNING, FAILED):
            if any(state in states.values() for states in self.story.states):
                fill, dashes, _ = LOOKS[state]
                self.parts.append(
                    f'<rect x="{x:.1f}" y="{top}" width="18" height="12" fill="{fill}" stroke="#333"{dashes}/>'
                    f'<text x="{x + 23:.1f}" y="{top + 10}">{state}</text>'
                )
                x += len(state) * LETTER + 40
        text = "front end: q queues, c computes itself" if x > self.left else "no task was queued"
        self.parts.append(f'<text x="{x:.1f}" y="{top + 10}">{text}</text>')


__all__ = ["Chart"]
