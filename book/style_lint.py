"""The numbers that a chapter keeps to, so that it stays readable: how many cells, how long, how much text beside them.

A chapter has some dozens of code cells, short ones, with text between them. Solutions of exercises are hidden until somebody asks, so they
count for the length of a cell, and for nothing else. What does not fit has its reason in `EXCEPTIONS`, with the number as it is now: it
may come nearer to the limit, and an exception that is no longer needed has to go.

    python book/style_lint.py
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterator
from typing import NamedTuple

from translation import Notebook, chapters, notebook, source

#: By measure, the least and the most that is allowed.
LIMITS: dict[str, tuple[float, float]] = {
    "cells": (25, 45),  # of code
    "median": (4, 6),  # lines of such a cell
    "longest": (1, 30),  # lines of any cell
    "columns": (1, 79),
    "words": (6, 12),  # of text for a line of code
    "exercises": (4, 6),
}


class Allowed(NamedTuple):
    """A number beyond a limit, and why it may be."""

    value: float
    reason: str


WHOLE = "a function, a class or a measurement stands in one cell, or it could not run"
CELLS = "a section more than planned: the scoreboard"
MUSEUM = "twelve exhibits, each of which is an exercise with a program that is small but whole"
PROJECT = "the reader writes an engine: classes and their tests are read as a whole, the text is in the tests' messages"
SOURCES = "a backend is built in the open, with its reference and its test for each part"

#: By chapter and measure.
EXCEPTIONS: dict[str, dict[str, Allowed]] = {
    "01": {"cells": Allowed(47, CELLS)},
    "02": {"median": Allowed(7, WHOLE)},
    "03": {"median": Allowed(7, WHOLE)},
    "04": {"median": Allowed(8, WHOLE)},
    "05": {"median": Allowed(8, WHOLE)},
    "07": {"median": Allowed(9, WHOLE), "cells": Allowed(47, CELLS)},
    "08": {"median": Allowed(8, WHOLE)},
    "09": {"median": Allowed(8.5, WHOLE)},
    "10": {"median": Allowed(9, WHOLE)},
    "11": {"median": Allowed(7, WHOLE)},
    "12": {"median": Allowed(7, WHOLE)},
    "13": {"median": Allowed(8, WHOLE), "cells": Allowed(56, SOURCES), "words": Allowed(5.6, SOURCES)},
    "14": {
        "median": Allowed(12, PROJECT),
        "cells": Allowed(49, PROJECT),
        "words": Allowed(4.8, PROJECT),
        "exercises": Allowed(10, PROJECT),
    },
    "15": {"median": Allowed(10, MUSEUM), "exercises": Allowed(16, MUSEUM)},
}


def lines_of(text: str) -> int:
    """The lines of a cell that are not empty."""
    return sum(bool(line.strip()) for line in text.splitlines())


def measures(chapter: Notebook) -> dict[str, float]:
    """What is measured of a chapter, by the names of `LIMITS`."""
    code = [cell for cell in chapter["cells"] if cell["cell_type"] == "code"]
    hidden = [cell for cell in code if "hide-cell" in cell["metadata"].get("tags", [])]
    lengths = [lines_of(source(cell)) for cell in code]
    words = sum(len(source(cell).split()) for cell in chapter["cells"] if cell["cell_type"] == "markdown")
    return {
        "cells": len(code) - len(hidden),
        "median": statistics.median(lines_of(source(cell)) for cell in code if cell not in hidden),
        "longest": max(lengths),
        "columns": max(len(line) for cell in code for line in source(cell).splitlines()),
        "words": round(words / sum(lengths), 1),
        "exercises": len(hidden),
    }


def faults(found: dict[str, float], allowed: dict[str, Allowed]) -> Iterator[str]:
    """Sentences about measures that are beyond their limits, and about exceptions that are not needed."""
    for measure, value in found.items():
        least, most = LIMITS[measure]
        exception = allowed.get(measure)
        if least <= value <= most:
            if exception is not None:
                yield f"{measure}: {value:g} is within {least:g} to {most:g} now; take the exception out"
        elif exception is None:
            yield f"{measure}: {value:g}, and {least:g} to {most:g} are wanted"
        elif not (value <= exception.value if value > most else value >= exception.value):
            yield f"{measure}: {value:g}, further from {least:g} to {most:g} than the exception says ({exception.value:g})"


def numbered() -> list[str]:
    """The chapters; the preface and the appendices are other things."""
    return [name for name in chapters() if name[:2].isdigit() and not name.startswith("00")]


def main() -> None:
    found = [f"{name}: {each}" for name in numbered() for each in faults(measures(notebook(name)), EXCEPTIONS.get(name[:2], {}))]
    print("\n".join(found))
    print(f"{len(found)} faults in {len(numbered())} chapters")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
