"""The book's pictures of programs: graphs, and the memory that values take while they live.

Both are drawn from what the chapter's own code found: edges as pairs of names, lives as intervals of steps with a place in memory.
Their style is that of `plots`; `figures.show` displays them with a text. matplotlib is imported when a picture is drawn.
Book: chapters 3 and 5.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..base import ArgumentError
from ..visualization.layered import arrange
from .figures import FILLS
from .plots import TALLEST, WIDEST, pyplot

MOST_ROWS = 16  # of boxes above each other in a graph; more are too small to read
LETTER = 5.4  # the width of a letter of a label, in points


class Life(NamedTuple):
    """A value in memory: its name, the first and the last step at which it is needed, its first byte, and its bytes."""

    name: str
    first: int
    last: int
    offset: int
    nbytes: int


# ---- graphs


def graph(*drawings: Iterable[tuple[str, str]], titles: Sequence[str] = ()) -> Any:
    """Graphs beside each other, each from its edges, pairs (from, to) of names; inputs stand at the top, arrows point down.

    What nothing points to has a round outline, everything else a square one. An edge that comes twice is drawn once, with "2" beside it.
    A name may end in spaces, which are not shown, to tell two boxes of one label apart.
    **Returns** the matplotlib figure. **Raises** ArgumentError for a graph without edges or with a cycle, or too deep to be read.
    """
    listed = [list(edges) for edges in drawings]
    if not listed or not all(listed):
        raise ArgumentError("graph: there are no edges to draw; give pairs (from, to)")
    figure, axes = pyplot().subplots(1, len(listed), figsize=(WIDEST, TALLEST), layout="constrained", squeeze=False)
    for ax, edges, title in zip(axes[0], listed, [*titles, *[""] * len(listed)]):
        _draw_graph(ax, edges, WIDEST * 72 / len(listed))
        ax.set_title(title)
    return figure


def _draw_graph(ax: Any, edges: list[tuple[str, str]], room: float) -> None:
    """One graph on axes that are `room` points wide."""
    names = in_order(edges)
    number = {name: position for position, name in enumerate(names)}
    once = list(dict.fromkeys(edges))
    widths = [LETTER * len(name.rstrip()) + 10 for name in names]
    layout = arrange(widths, [(number[start], number[end]) for start, end in once])
    if layout.layers > MOST_ROWS:
        raise ArgumentError(f"graph: {layout.layers} rows of boxes, more than the {MOST_ROWS} that can be read; draw a part")
    size = max(5.0, 8 * min(1.0, room / (layout.width + 10)))
    for (start, end), path in zip(once, layout.paths):
        for lower, upper in itertools.pairwise(path[:-1]):
            ax.plot(*zip(lower, upper), "-", color="0.4", linewidth=0.9)
        shrink = size * 0.9
        arrow = {"arrowstyle": "->", "color": "0.4", "shrinkB": shrink, "shrinkA": shrink if len(path) == 2 else 0}
        ax.annotate("", path[-1], path[-2], arrowprops=arrow)
        if edges.count((start, end)) > 1:
            middle = [(one + other) / 2 for one, other in zip(path[-2], path[-1])]
            ax.text(*middle, f" {edges.count((start, end))}", fontsize=size, va="center")
    made = {end for _, end in edges}
    for name, (x, y) in zip(names, layout.places):
        look = ("square", "white") if name in made else ("round,rounding_size=0.8", "0.88")
        box = {"boxstyle": look[0], "facecolor": look[1], "edgecolor": "black", "linewidth": 0.7}
        ax.text(x, y, name.rstrip(), ha="center", va="center", fontsize=size, bbox=box)
    half = max(layout.width + 10, room) / 2
    ax.set_xlim(layout.width / 2 - half, layout.width / 2 + half)
    ax.set_ylim(layout.layers - 0.5, -0.5)
    ax.axis("off")


def in_order(edges: Iterable[tuple[str, str]]) -> list[str]:
    """The names in `edges`, each after those that point to it. Raises ArgumentError if they go in a circle."""
    before: dict[str, set[str]] = {}
    for start, end in edges:
        before.setdefault(start, set())
        before.setdefault(end, set()).add(start)
    order: dict[str, None] = {}
    while len(order) < len(before):
        free = [name for name, sources in before.items() if name not in order and sources <= order.keys()]
        if not free:
            circle = ", ".join(name for name in before if name not in order)
            raise ArgumentError(f"graph: {circle}: these depend on each other in a circle; a graph of a computation has none")
        order.update(dict.fromkeys(free))
    return list(order)


def alt_of_graph(edges: Iterable[tuple[str, str]]) -> str:
    """Alternative text of a graph: what is computed from what."""
    sources: dict[str, list[str]] = {}
    for start, end in edges:
        sources.setdefault(end.rstrip(), []).append(start.rstrip())
    return "; ".join(f"{end} from {' and '.join(starts)}" for end, starts in sources.items())


# ---- lives


def lives(drawings: Mapping[str, Iterable[Life | tuple[str, int, int, int, int]]]) -> Any:
    """What lies where and when: steps to the right, bytes upward, a box for each value; drawings beside each other, on one scale.

    **Args** drawings: lives by the title of the drawing; a life is (name, first, last, offset, nbytes), see `Life`.
    **Returns** the matplotlib figure. **Raises** ArgumentError where there is no life, one ends before it begins, or two that live at the
    same time share bytes.
    """
    listed = {title: [Life(*each) for each in given] for title, given in drawings.items()}
    if not listed or not all(listed.values()):
        raise ArgumentError("lives: there are no values to draw; give (name, first, last, offset, nbytes)")
    every = [life for given in listed.values() for life in given]
    backwards = [life for life in every if life.last < life.first or life.nbytes <= 0 or life.offset < 0]
    if backwards:
        raise ArgumentError(f"lives: {backwards[0]} ends before it begins, or has no place in memory")
    for given in listed.values():
        clash = overlap(given)
        if clash:
            raise ArgumentError(f"lives: {clash[0].name} and {clash[1].name} live at the same time and share bytes")
    top = max(life.offset + life.nbytes for life in every)
    units = (("MiB", 1 << 20), ("KiB", 1 << 10), ("bytes", 1))
    unit, divisor = next((unit, size) for unit, size in units if top >= 2 * size or size == 1)
    figure, axes = pyplot().subplots(1, len(listed), figsize=(WIDEST, 2.8), layout="constrained", sharey=True, squeeze=False)
    for ax, (title, given) in zip(axes[0], listed.items()):
        _draw_lives(ax, given, divisor, top, (WIDEST - 0.9) * 72 / len(listed))
        ax.set(title=title, xlabel="step", ylim=(0, top / divisor * 1.03))
    axes[0, 0].set_ylabel(unit)
    return figure


def _draw_lives(ax: Any, given: list[Life], divisor: int, top: int, room: float) -> None:
    """One drawing on axes that are `room` points wide; a box has its name where that fits into it."""
    begin, end = min(life.first for life in given), max(life.last for life in given)
    for position, (name, first, last, offset, nbytes) in enumerate(given):
        fill = FILLS[position % len(FILLS)]
        width, height = (first - 0.45, last - first + 0.9), (offset / divisor, nbytes / divisor)
        ax.broken_barh([width], height, edgecolor="black", linewidth=0.7, **fill)
        if nbytes > top / 25 and (last - first + 0.9) / (end - begin + 1.2) * room > 0.8 * LETTER * len(name):
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
            ax.text((first + last) / 2, (offset + nbytes / 2) / divisor, name, ha="center", va="center", fontsize=7, bbox=box)
    ax.set_xlim(begin - 0.6, end + 0.6)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.grid(axis="x", visible=False)


def overlap(given: Sequence[Life]) -> tuple[Life, Life] | None:
    """The first two lives that need the same bytes at the same time; None if there are none."""
    for position, one in enumerate(given):
        for other in given[:position]:
            at_once = one.first <= other.last and other.first <= one.last
            if at_once and one.offset < other.offset + other.nbytes and other.offset < one.offset + one.nbytes:
                return other, one
    return None


def alt_of_lives(drawings: Mapping[str, Iterable[Life | tuple[str, int, int, int, int]]]) -> str:
    """Alternative text: for each drawing its values and the bytes that they take together."""
    texts = []
    for title, given in drawings.items():
        listed = [Life(*each) for each in given]
        top = max(life.offset + life.nbytes for life in listed)
        texts.append(f"{title}: {len(listed)} values in {top:,} bytes")
    return "; ".join(texts)


__all__ = ["Life", "alt_of_graph", "alt_of_lives", "graph", "in_order", "lives", "overlap"]
