"""What the widgets share: which form a notebook gets, and tables in HTML.

The static form needs no JavaScript and no kernel: pictures are SVG with a text, figures stand in tables with headings, and colours are
those of the page around them, light or dark. ipywidgets is imported only where controls are shown.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Sequence
from typing import Any

from ...profiler.svg import escape
from ...progress import ipython_shell, someone_watches
from ..notebook import missing

CELL = "text-align: left; vertical-align: top; padding: 1px 8px"
LONG = f"{CELL}; overflow-wrap: anywhere"  # of the second column, which has a line of code, or a queue
SMALL = "font-size: 85%; max-width: 100%"


class Widget:
    """Something that a notebook shows, with controls where somebody can use them."""

    def controls(self) -> Any:
        """The ipywidgets form, to be put among others. **Raises** MissingPackageError if ipywidgets is not installed."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """All forms: the static one always, so that what is saved can be read later, and that with controls for who can use it."""
        live = self.controls()._repr_mimebundle_() if can_control() else {}
        return {**live, "text/html": self._repr_html_(), "text/plain": repr(self)}


def can_control() -> bool:
    """Whether a person sits before a notebook in which buttons work."""
    in_notebook = getattr(ipython_shell(), "kernel", None) is not None
    return in_notebook and someone_watches() and importlib.util.find_spec("ipywidgets") is not None


def ipywidgets() -> Any:
    """The package. Raises MissingPackageError if it is not installed."""
    try:
        return importlib.import_module("ipywidgets")
    except ImportError:
        raise missing("ipywidgets") from None


def table(caption: str, titles: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in HTML. What is given is text; the first cell of a line says what the line is about."""
    head = "".join(f'<th scope="col" style="{CELL}">{escape(title)}</th>' for title in titles)
    body = "\n".join(
        f'<tr><th scope="row" style="{CELL}">{escape(line[0])}</th>'
        + "".join(f'<td style="{CELL if number else LONG}">{escape(cell)}</td>' for number, cell in enumerate(line[1:]))
        + "</tr>"
        for line in lines
    )
    top = f'<caption style="{CELL}; color: inherit"><b>{escape(caption)}</b></caption><thead><tr>{head}</tr></thead>'
    return f"<table style='{SMALL}'>{top}\n<tbody>{body}</tbody></table>\n"


def text_table(titles: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """The same for a terminal.

    >>> print(text_table(("lane", "runs"), [("cpu(0)", "dot")]))
    lane    runs
    cpu(0)  dot
    """
    widths = [max(len(line[column]) for line in (titles, *lines)) for column in range(len(titles))]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in (titles, *lines))


__all__ = ["Widget", "can_control", "ipywidgets", "table", "text_table"]
