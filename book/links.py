"""Links and references that lead nowhere, without a network: what Markdown links to, files that prose names, chapters it counts.

A link within the project has to lead to a file, and behind `#` to a heading or a label there; an address has to look like one. In the
pages and in the code, `roi.py` or `book/index.md` has to be the name of a file of the project, and `chapter 7` has to be there.

    python book/links.py
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spelling import ROOT, sources
from translation import BOOK, chapters, notebook, originals, pages, path_of, read, source, untranslated
from translation_lint import tokens

FILE = re.compile(r"(?<![\w./*<{-])((?:[\w-]+/)*[\w-]+\.(?:py|md))\b(?![*(])")
CHAPTER = re.compile(r"(?<!-)\b[Cc]hapters? ((?:\d+|, | and | to )+)|\b[Aa]ppendix ([A-Z])\b|第 (\d+) 章|附录 ([A-Z])")
#: Files that readers have, that MXNet has, and that the build of the site writes.
ELSEWHERE = {"script.py", "tools/im2rec.py", "logging.py", "names.md", "operators.md"}
LABEL = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)


@cache
def files() -> frozenset[str]:
    """The names of the project's files, each with any number of the folders that it lies in."""
    folders = ("minimx", "book", "benchmarks", "tests")
    paths = [*ROOT.glob("*.*"), *(path for folder in folders for path in (ROOT / folder).rglob("*.*"))]
    parts = [path.relative_to(ROOT).parts for path in paths if path.suffix in (".py", ".md")]
    return frozenset("/".join(each[start:]) for each in parts for start in range(len(each)))


@cache
def anchors(path: Path) -> frozenset[str]:
    """Where a link to a page can lead: its headings, as myst and GitHub name them, and labels."""
    texts = markdown_in(path)
    headings = [re.sub(r"[^\w\s-]", "", line).strip() for text in texts for line in re.findall(r"(?m)^#{1,3} (.*)$", text)]
    return frozenset(
        [re.sub(r"\s", "-", each.lower()) for each in headings] + [each for text in texts for each in LABEL.findall(text)]
    )


def markdown_in(path: Path) -> list[str]:
    """The Markdown texts of a page or a notebook."""
    if path.suffix == ".ipynb":
        return [source(cell) for cell in notebook(path.stem, path.parent)["cells"] if cell["cell_type"] == "markdown"]
    return [path.read_text(encoding="utf-8")]


def wrong_link(link: str, page: Path) -> str | None:
    """What is wrong with a link on a page, if something is."""
    parts = urlsplit(link)
    if parts.scheme:
        right = parts.scheme == "https" and re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc) and not re.search(r"\s", link)
        return None if right else f"no address of the form https://host/path: {link}"
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if path.parent == BOOK / "reference":  # the build of the site writes it, and checks its links
        return None
    if not path.exists():
        return f"a link to nothing: {link}"
    if parts.fragment and path.suffix in (".md", ".ipynb") and unquote(parts.fragment) not in anchors(path):
        return f"no such heading or label there: {link}"
    return None


def faults(text: str, page: Path) -> Iterator[str]:
    """What is wrong with the links and references in a Markdown text on a page, a sentence each."""
    for token in tokens(text):
        link = token.attrs.get("href") if token.type == "link_open" else token.attrs.get("src") if token.type == "image" else None
        fault = wrong_link(str(link), page) if link else None
        if fault:
            yield fault
    yield from unknown(re.sub(r"\]\([^)]*\)", "]", text))


def unknown(text: str) -> Iterator[str]:
    """Sentences about names of files and numbers of chapters that do not exist."""
    yield from (f"no file is called {name}" for name in FILE.findall(text) if name not in files() | ELSEWHERE)
    known = {path.stem.split("-")[0].lstrip("0") for path in BOOK.glob("chapters/*.ipynb")}
    for found in CHAPTER.finditer(text):
        numbers = re.findall(r"\d+|[A-Z]", "".join(filter(None, found.groups())))
        yield from (f"there is no such chapter: {found[0]}" for number in numbers if number not in known)


def texts() -> Iterator[tuple[str, str, Path]]:
    """The Markdown texts of the project: where each stands, and the page from which its links lead."""
    for path in [*ROOT.glob("*.md"), *(ROOT / "minimx").rglob("*.md")]:
        yield path.name, path.read_text(encoding="utf-8"), path
    for name in pages():
        page = BOOK / "chapters" / f"{name}.ipynb" if name in chapters() else BOOK / f"{name}.md"
        yield from ((f"{name}: {key}", text, page) for key, text in originals(name).items())
        if name not in untranslated("zh"):
            blocks = read(path_of("zh", name))
            yield from ((f"zh/{name}: {key}", block.text, page) for key, block in blocks.items())


def all_faults() -> list[str]:
    found = [f"{place}: {fault}" for place, text, page in texts() for fault in faults(text, page)]
    for path in sources():
        found += [f"{path.relative_to(ROOT)}: {fault}" for fault in unknown(path.read_text(encoding="utf-8"))]
    return found


if __name__ == "__main__":
    everything = all_faults()
    print("\n".join(everything))
    print(f"{len(everything)} faults")
    sys.exit(bool(everything))
