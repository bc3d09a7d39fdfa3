"""Slides from the chapters: `make slides`, or `python book/slides.py FOLDER [CHAPTER ...]`.

No chapter says how it is to be shown; the slides follow from its form. A section is a slide, and what belongs to it goes on below it: a
subsection, and whatever finds no room any more, begins a page of its own. Solutions of exercises are left out, and of an assignment all
that nbgrader or Otter-Grader keep from students. nbconvert writes the pages with the template beside the pages for teachers; reveal.js
and MathJax come out of packages that carry them and are copied into the folder, so that a lecture needs no network. A page shows the
outputs that are stored in the notebook. The index lists all decks of the folder.
"""

from __future__ import annotations

import argparse
import math
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from html import escape, unescape
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nbformat
from nbconvert.exporters import SlidesExporter

BOOK = Path(__file__).parent
ROOM = 24  # lines of a page
WIDTH = 95  # letters of a line of text
PICTURE = 14  # lines that a picture takes
HEADING = re.compile(r"(#+) ")
#: What begins and ends lines that students do not see: `# BEGIN SOLUTION`, `### END HIDDEN TESTS`.
MARK = re.compile(r"#+ *(BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)\b")
SOLUTION_LINE = re.compile(r"#+ *SOLUTION\b")  # Otter's mark behind a single line
ANSWER = "...  # your answer"
Cell = Any  # nbformat's NotebookNode


# ---- what students see


def cut(text: str) -> str:
    """Code without the lines that students do not see; `...` in the place of a solution. A mark without its end holds to the last line."""
    kept, inside = [], ""
    for line in text.splitlines():
        answer = line[: len(line) - len(line.lstrip())] + ANSWER
        mark = MARK.search(line)
        if mark and mark[1] == "BEGIN" and not inside:
            inside = mark[2]
            kept += [answer] if inside == "SOLUTION" else []
        elif mark and mark[1] == "END":
            inside = "" if inside == mark[2] else inside
        elif not inside:
            kept.append(answer if SOLUTION_LINE.search(line) else line)
    return "\n".join(kept)


def for_students(cells: Sequence[Cell]) -> list[Cell]:
    """The cells that a class may see: without solutions, hidden checks, and the raw cells that say so to a tool.

    A cell is a solution where a chapter hides it, where nbgrader's metadata say `solution`, and between Otter's raw cells
    `# BEGIN SOLUTION` and `# END SOLUTION`. Code with marks of its own loses what is between them, and what it printed.
    """
    seen, solution = [], False
    for cell in cells:
        if cell.cell_type == "raw":
            mark = MARK.search(cell.source)
            if mark and mark[2] == "SOLUTION":
                solution = mark[1] == "BEGIN"
            continue
        text = cut(cell.source) if cell.cell_type == "code" else cell.source
        marked = text != cell.source.rstrip("\n")
        whole = (solution or cell.metadata.get("nbgrader", {}).get("solution")) and not marked
        hidden = cell.cell_type == "code" and re.match(r"\s*# *HIDDEN *$", cell.source, re.M)  # Otter's mark of a check
        if whole or hidden or "hide-cell" in cell.metadata.get("tags", ()) or (marked and not text.strip()):
            continue
        if marked:
            cell.source, cell.outputs = text, []
        seen.append(cell)
    return seen


# ---- pages


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
    """What each cell is to reveal.js: "slide", a "subslide", or "-" for one that goes on.

    A text stays with its code, if there is a page on which both find room.
    """
    used, after_code = 0, True
    for place, cell in enumerate(cells):
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


def title_of(cells: Sequence[Cell], otherwise: str) -> str:
    """The first heading, as plain text."""
    texts = (re.sub(r"```.*?```", "", cell.source, flags=re.S) for cell in cells if cell.cell_type == "markdown")
    return next((found[1].strip() for found in (re.search(r"^#+ +(.+)", text, re.M) for text in texts) if found), otherwise)


def page(path: Path) -> tuple[str, str]:
    """A chapter's title, and its slides as HTML. Ends the program, with a sentence, if there is no such notebook."""
    try:
        notebook = nbformat.read(path, as_version=4)
    except OSError as error:
        sys.exit(f"slides: {path} cannot be read: {error.strerror}")
    except Exception:  # of many kinds, as is what a file may hold
        sys.exit(f"slides: {path} is no notebook")
    notebook.cells = for_students(notebook.cells)
    for cell, kind in zip(notebook.cells, list(kinds(notebook.cells))):
        cell.metadata["slideshow"] = {"slide_type": kind}
    title = title_of(notebook.cells, path.stem)
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


def index(folder: Path) -> str:
    """A page that lists the decks of a folder by their titles, in the order of their files."""
    links = []
    for path in sorted(folder.glob("*.html")):
        title = re.search(r"<title>(.*?)</title>", path.read_text(encoding="utf-8"), re.S)
        if path.name != "index.html":
            name = unescape(title[1]).strip().removesuffix(" slides") if title else path.stem  # nbconvert adds the word
            links.append(f'<li><a href="{quote(path.name)}">{escape(name)}</a></li>')
    heading = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>minimx: slides</title><h1>Slides</h1>'
    return f"{heading}<ol>{''.join(links)}</ol></html>\n"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where to write them")
    parser.add_argument("chapters", nargs="*", type=Path, help="notebooks; all chapters if none is named")
    chosen = parser.parse_args()
    paths = chosen.chapters or sorted((BOOK / "chapters").glob("*.ipynb"))
    made = {path.stem: page(path)[1] for path in paths}
    (chosen.folder / "reveal.js").mkdir(parents=True, exist_ok=True)
    copy_scripts(chosen.folder)
    for name, text in made.items():
        (chosen.folder / f"{name}.html").write_text(text, encoding="utf-8")
    (chosen.folder / "index.html").write_text(index(chosen.folder), encoding="utf-8")
    print(
        f"{len(made)} chapter{'' if len(made) == 1 else 's'}; open {chosen.folder / 'index.html'} "
        "(keys: arrows, space; S for the speaker's view; ?print-pdf prints)"
    )


if __name__ == "__main__":
    main()
