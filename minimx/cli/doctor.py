"""`python -m minimx doctor`: is this installation whole, is it fast, and if not, what to type.

Each check (checks.py, places.py) looks at one thing and says what it found: all right, something that could be had, or a problem. What
could be had comes with the command that brings it, for this very Python; a problem with what mends it. Nothing is changed. The exit status
is 1 if there is a problem, so that a teacher's script, or the first cell of an assignment, can ask.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Iterator

from ..base import PACKAGE_FOLDER
from . import checks, info, places
from .finding import NOTE, OK, PROBLEM, Finding, install

CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    checks.versions, checks.arithmetic, checks.cores, checks.blas, checks.layers, checks.loops, checks.openmp, checks.gpus,
    places.folders, places.notebooks, places.processes, places.extras, places.settings,
)  # fmt: skip
WIDTH = 100
INDENT = 10  # of what stands beside a state


def findings() -> Iterator[Finding]:
    """What all checks find. A check that fails is a problem, not the end."""
    for check in CHECKS:
        try:
            yield from check()
        except Exception as error:
            yield Finding(PROBLEM, f"the check of {check.__name__} failed: {type(error).__name__}: {error}")


def shown(finding: Finding) -> str:
    """A finding in lines: the state, what was found, and what to type, which is never broken."""
    text = textwrap.fill(
        f"{finding.state:<{INDENT - 2}}{finding.text}",
        WIDTH,
        initial_indent="  ",
        subsequent_indent=" " * INDENT,
        break_on_hyphens=False,
    )
    return "\n".join([text, *(f"{'':{INDENT}}> {line}" for line in finding.remedy.splitlines())])


def summary(found: list[Finding]) -> str:
    """The last lines: how many problems there are, how many things could be had, and one command for all of them."""
    problems, notes = (sum(each.state == state for each in found) for state in (PROBLEM, NOTE))
    words = f"{problems} problem{'' if problems == 1 else 's'}" if problems else "No problem"
    words += f", {notes} note{'' if notes == 1 else 's'}. Nothing here needs a compiler: all that minimx uses comes as wheels."
    packages = dict.fromkeys(package for each in found for package in each.lacks)
    if len(packages) > 1:
        words += f"\nAll that could be had, at once:\n{'':{INDENT}}> {install(*packages)}"
    return words


def run(chosen: argparse.Namespace) -> int:
    """Print what is found, as it is found. **Returns** 1 if there is a problem, else 0."""
    print(f"{info.heading()}\nin {PACKAGE_FOLDER.rstrip('/')}, run by {os.path.normpath(sys.executable)}\n")
    found = []
    for finding in findings():
        print(shown(finding), flush=True)
        found.append(finding)
    print(f"\n{summary(found)}")
    return int(any(finding.state not in (OK, NOTE) for finding in found))
