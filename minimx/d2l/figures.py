"""The book's figures beyond plain curves: timelines of what ran where, and alternative text for all.

The style is that of `plots`: at most 6.4 x 3.2 inches, readable without colour. matplotlib and IPython are imported when a figure is
drawn or shown. A chapter says `from minimx.d2l import figures`. Book: chapter 2.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import Any

from ..base import ArgumentError
from ..profiler.layout import LOOKS, checked, unit_of
from .notebook import missing
from .plots import TALLEST, WIDEST, pyplot

#: What tells bars apart, as in the profiler's own pictures: shade first, then hatching, so that a print in grey shows it too.
FILLS: tuple[dict[str, Any], ...] = tuple(
    {"facecolor": color, "hatch": hatch} if hatch else {"facecolor": color} for color, hatch in LOOKS
)

Event = tuple[str, str, float, float]  # lane, name of the work, start and end in seconds


def gantt(events: Iterable[Event], title: str | None = None, lanes: Sequence[str] | None = None, ax: Any = None) -> Any:
    """A timeline: a row a lane, a bar an event, from the earliest start.

    **Args** events: (lane, name, start, end) with times in seconds on one clock. Bars of one name look alike; beyond six names
    looks repeat, and a bar's own label tells. lanes: the rows, from the top, for lanes that had no work too.
    **Returns** the matplotlib figure; `show` displays it with a text.
    **Raises** ArgumentError where there is no event, or one ends before it starts.
    """
    events = checked("gantt", events)
    rows = list(dict.fromkeys([*(lanes or ()), *sorted({event[0] for event in events})]))
    names = list(dict.fromkeys(event[1] for event in events))
    origin, end = events[0][2], max(event[3] for event in events)
    unit, scale = unit_of(end - origin)
    if ax is None:
        height = min(TALLEST, 0.8 + 0.35 * len(rows) + 0.25 * (title is not None) + 0.25 * (len(names) > 1))
        _, ax = pyplot().subplots(figsize=(WIDEST, height), layout="constrained")
    for name_index, name in enumerate(names):
        fill = FILLS[name_index % len(FILLS)]
        for row, lane in enumerate(rows):
            bars = [((e[2] - origin) * scale, (e[3] - e[2]) * scale) for e in events if e[0] == lane and e[1] == name]
            if bars:
                ax.broken_barh(bars, (row - 0.4, 0.8), edgecolor="black", linewidth=0.6, **fill)
    _label_bars(ax, events, rows, origin, end, scale)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(0, max((end - origin) * scale, 1e-9))
    ax.set_xlabel(f"time in {unit}")
    ax.grid(axis="y", visible=False)
    if 1 < len(names) <= len(FILLS):
        _legend(ax, names)
    if title:
        ax.set_title(title)
    return ax.figure


def _legend(ax: Any, names: list[str]) -> None:
    """The names beneath the axes. matplotlib would leave out those that begin with "_", so it gets to know them last."""
    patch = importlib.import_module("matplotlib.patches").Patch
    handles = [patch(edgecolor="black", linewidth=0.6, **fill) for _, fill in zip(names, FILLS)]
    numbers = [f"{number}" for number in range(len(names))]
    legend = ax.figure.legend(handles, numbers, loc="outside lower center", ncols=len(names))
    for text, name in zip(legend.get_texts(), names):
        text.set_text(name)


def _label_bars(ax: Any, events: list[Event], rows: list[str], origin: float, end: float, scale: float) -> None:
    """Write the name into each bar that has room for it, at about 0.075 inches a letter of an axis 5.5 inches wide."""
    for lane, name, start, stop in events:
        if (stop - start) / max(end - origin, 1e-12) * 5.5 > 0.075 * len(name):
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
            middle = ((start + stop) / 2 - origin) * scale
            ax.text(middle, rows.index(lane), name, ha="center", va="center", fontsize=7, bbox=box)


def alt_of_gantt(events: Iterable[Event]) -> str:
    """Alternative text of a timeline, of what does not change from run to run: lanes, and how many events each had."""
    counts: dict[str, int] = {}
    for lane, *_ in events:
        counts[lane] = counts.get(lane, 0) + 1
    lanes = ", ".join(f"{lane} {counts[lane]}" for lane in sorted(counts))
    return f"Timeline of {sum(counts.values())} events by lane: {lanes}"


def show(figure: Any, alt: str) -> None:
    """Display a figure once, with `alt`, what a reader who does not see it should know. It stands in the output as text, too."""
    if not alt.strip():
        raise ArgumentError("show: say in `alt` what the figure shows")
    try:
        print_figure = importlib.import_module("IPython.core.pylabtools").print_figure
        display = importlib.import_module("IPython.display").display
    except ImportError:
        raise missing("IPython") from None
    pyplot().close(figure)  # or the notebook would show it again at the end of the cell
    picture = print_figure(figure, fmt="svg", metadata={"Date": None})
    display({"image/svg+xml": picture, "text/plain": f"[Figure: {alt}]"}, metadata={"image/svg+xml": {"alt": alt}}, raw=True)


__all__ = ["FILLS", "TALLEST", "WIDEST", "Event", "alt_of_gantt", "gantt", "show"]
