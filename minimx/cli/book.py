"""`python -m minimx book`: the chapters, copied into a folder of the reader's, and JupyterLab on it.

The chapters are beside the package in a clone, and inside it where it was installed from a wheel. What a reader has written is never
written over: a file that is there stays, and is said to. `--teaching` copies the material for teachers, too.
"""

from __future__ import annotations

import argparse
import importlib.util
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from .. import files
from ..base import PACKAGE_FOLDER
from .finding import install, python
from .places import BOOK

FOLDER = "minimx-book"
#: In the wheel the book is inside the package.
PLACES = [folder / "book" for folder in (Path(PACKAGE_FOLDER), Path(PACKAGE_FOLDER).parent)]
LEFT_OUT = {"__pycache__", ".ipynb_checkpoints", "slides_template"}  # of no use to a reader


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path(FOLDER), help=f"where to copy them, {FOLDER} if it is not said"
    )
    parser.add_argument("--teaching", action="store_true", help="and the assignment, its checks and the pages for teachers")
    parser.add_argument("--no-open", dest="open", action="store_false", help="copy only, do not start JupyterLab")
    parser.set_defaults(other_options="an option of JupyterLab is given as in --jupyter=--no-browser")
    parser.add_argument(
        "--jupyter", metavar="OPTION", action="append", default=[], help="an option for JupyterLab, as in --jupyter=--no-browser"
    )


def sources(book: Path, teaching: bool) -> Iterator[tuple[Path, Path]]:
    """The files to copy, and their places in the reader's folder: chapters at the top, what is for teachers in a folder of its own."""
    for path in sorted((book / "chapters").glob("*.ipynb")):
        yield path, Path(path.name)
    for path in sorted((book / "teaching").rglob("*")) if teaching else ():
        place = path.relative_to(book)
        if path.is_file() and not LEFT_OUT & set(place.parts):
            yield path, place


def copy(book: Path, folder: Path, teaching: bool) -> tuple[list[Path], list[Path]]:
    """Copy what is not there. **Returns** the places that were written, and those of files that are there and otherwise."""
    written, kept = [], []
    for source, place in sources(book, teaching):
        target, contents = folder / place, source.read_bytes()
        if not target.exists() and not target.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            files.replace_file(target, [contents])
            written.append(place)
        elif not target.is_file() or target.read_bytes() != contents:
            kept.append(place)
    return written, kept


def tell(folder: Path, written: list[Path], kept: list[Path]) -> None:
    """Say what was copied, and what was not."""
    count = f"{len(written)} file{'' if len(written) == 1 else 's'}"
    print(f"copied {count} into {folder}" if written else f"nothing to copy: all files are in {folder}")
    for place in kept:
        print(f"kept {folder / place}: it differs from the copy that comes with minimx; rename it to get that one")


def run(chosen: argparse.Namespace) -> int:
    """Copy the chapters and open them. **Returns** the exit status: 1 if something was not to be had."""
    folder: Path = chosen.folder
    book = next((place for place in PLACES if (place / "chapters").is_dir()), None)
    if book is None:
        print(f"minimx book: {PLACES[0]} is missing; install minimx again", file=sys.stderr)
        return 1
    try:
        tell(folder, *copy(book, folder, chosen.teaching))
    except OSError as error:  # a file in the folder's place, or no permission
        print(f"minimx book: {folder} cannot be written to: {error.strerror or error}; name another folder", file=sys.stderr)
        return 1
    return open_in_jupyter(folder, chosen.jupyter) if chosen.open else 0


def open_in_jupyter(folder: Path, options: Sequence[str]) -> int:
    """Start JupyterLab with some options, and stay until it ends. **Returns** its exit status."""
    if importlib.util.find_spec("jupyterlab") is None:
        print(
            "JupyterLab is not installed beside this Python. The chapters open in any Jupyter that has minimx, or type\n"
            f"    {install(*BOOK)}\n    {python()} -m jupyterlab {shlex.quote(str(folder))}",
            file=sys.stderr,
        )
        return 1
    print("starting JupyterLab; Ctrl-C ends it", flush=True)
    with subprocess.Popen([sys.executable, "-m", "jupyterlab", str(folder), *options]) as child:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:  # JupyterLab has been told, too, and asks whether that was meant
                continue
