"""Slides from the chapters: `make slides`, or `python book/slides.py FOLDER [CHAPTER ...]`.

No chapter says how it is to be shown; the slides follow from its form. A section is a slide, and what belongs to it goes on below it: a
subsection, and whatever finds no room any more, begins a page of its own. Solutions of exercises are left out. nbconvert writes
the pages with the template beside the pages for teachers; reveal.js and MathJax come out of packages that carry them and are copied into
the folder, so that a lecture needs no network. A page shows the outputs that are stored in the notebook.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import SlidesExporter

BOOK = Path(__file__).parent
ROOM = 24  # lines of a page
WIDTH = 95  # letters of a line of text
PICTURE = 14  # lines that a picture takes
HEADING = re.compile(r"(#+) ")
Cell = Any  # nbformat's NotebookNode


def lines_of(text: str) -> int:
    """Lines that a text takes on a page, wrapped."""
    return sum(max(1, math.ceil(len(line) / WIDTH)) for line in text.splitlines())


def height(cell: Cell) -> int:
    """About how many lines a cell takes, with what it prints."""
    if cell.cell_type == "markdown":  # lines of a paragraph are joined
        return sum(1 + lines_of(" ".join(each.splitlines())) for each in re.split(r"\n\s*\n", cell.source))
    total = 1 + lines_of(cell.source)
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        if any(kind.startswith("image/") for kind in data) or "<svg" in data.get("text/html", ""):
            total += PICTURE
        else:
            total += lines_of(output.get("text", "") or data.get("text/plain", "") or "\n".join(output.get("traceback", ())[-3:]))
    return total


def unit(cells: Sequence[Cell], start: int) -> int:
    """About how many lines a text takes with the code that it leads to, from cell `start` to the first cell of code."""
    total = 0
    for cell in cells[start:]:
        total += height(cell)
        if cell.cell_type == "code":
            break
    return total


def kinds(cells: Sequence[Cell]) -> Iterator[str]:
    """What each cell is to reveal.js: "slide", a "subslide", "skip", or "-" for one that goes on.

    A text stays with its code, if there is a page on which both find room.
    """
    used, after_code = 0, True
    for place, cell in enumerate(cells):
        if "hide-cell" in cell.metadata.get("tags", ()) or cell.cell_type == "raw":
            yield "skip"
            continue
        heading = HEADING.match(cell.source) if cell.cell_type == "markdown" else None
        together = unit(cells, place) if after_code else 0
        need = together if together <= ROOM else height(cell)
        if heading:
            used, kind = 0, "slide" if len(heading[1]) <= 2 else "subslide"
        elif used and used + max(need, height(cell)) > ROOM:
            used, kind = 0, "subslide"
        else:
            kind = "-"
        used += height(cell)
        after_code = cell.cell_type == "code"
        yield kind


def page(path: Path) -> tuple[str, str]:
    """A chapter's title, and its slides as HTML."""
    notebook = nbformat.read(path, as_version=4)
    for cell, kind in zip(notebook.cells, list(kinds(notebook.cells))):
        cell.metadata["slideshow"] = {"slide_type": kind}
    title = notebook.cells[0].source.splitlines()[0].lstrip("# ")
    notebook.metadata["title"] = title
    exporter = SlidesExporter(
        template_name="slides_template", extra_template_basedirs=[str(BOOK / "teaching")], reveal_url_prefix="reveal.js",
        reveal_theme="white", exclude_input_prompt=True, exclude_output_prompt=True,
    )  # fmt: skip
    return title, exporter.from_notebook_node(notebook)[0]


def package(name: str, command: str) -> Path:
    """The folder of a package that carries scripts. Ends the program, with how to get it, if it is not there."""
    found = find_spec(name)
    if found is None or not found.submodule_search_locations:
        sys.exit(f"slides: the package {name} is not here, which carries scripts of the slides: {command}")
    return Path(next(iter(found.submodule_search_locations)))


def copy_scripts(folder: Path) -> None:
    """Put reveal.js and MathJax into the folder."""
    reveal = package("sphinx_revealjs", f"{sys.executable} -m pip install --no-deps sphinx-revealjs")
    mathjax = package("sphinx-mathjax-offline", f"{sys.executable} -m pip install sphinx-mathjax-offline")
    for part in ("dist", "plugin/notes", "LICENSE"):
        source, target = reveal / "_static" / "revealjs" / part, folder / "reveal.js" / part
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.map"))
        else:
            shutil.copy(source, target)
    shutil.copy(mathjax / "static" / "mathjax" / "tex-svg.js", folder)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where to write them")
    parser.add_argument("chapters", nargs="*", type=Path, help="notebooks; all chapters if none is named")
    chosen = parser.parse_args()
    paths = chosen.chapters or sorted((BOOK / "chapters").glob("*.ipynb"))
    (chosen.folder / "reveal.js").mkdir(parents=True, exist_ok=True)
    copy_scripts(chosen.folder)
    links = []
    for path in paths:
        title, text = page(path)
        (chosen.folder / f"{path.stem}.html").write_text(text, encoding="utf-8")
        links.append(f'<li><a href="{path.stem}.html">{escape(title)}</a></li>')
    heading = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>minimx: slides</title><h1>Slides</h1>'
    (chosen.folder / "index.html").write_text(f"{heading}<ol>{''.join(links)}</ol></html>\n", encoding="utf-8")
    print(
        f"{len(paths)} chapters; open {chosen.folder / 'index.html'} (keys: arrows, space; S for the speaker's view; ?print-pdf prints)"
    )


if __name__ == "__main__":
    main()
