"""What a check of `doctor` finds, and how to write the commands that mend it."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
from typing import NamedTuple

OK, NOTE, PROBLEM = "ok", "note", "problem"


class Finding(NamedTuple):
    """`state`: OK, NOTE for what could be had, or PROBLEM; `text`: in words; `remedy`: commands, one a line; `lacks`: packages."""

    state: str
    text: str
    remedy: str = ""
    lacks: tuple[str, ...] = ()


def lacking(text: str, *packages: str) -> Finding:
    """A note on packages that are not there, with the command that installs them."""
    return Finding(NOTE, text, install(*packages), packages)


def python() -> str:
    """How to call this Python in a shell: by its short name where that means this one."""
    for name in ("python", "python3"):
        found = shutil.which(name)
        # A venv's python is a link to another; links must be the same, not what they lead to.
        if found and os.path.abspath(found) == os.path.abspath(sys.executable):
            return name
    return shlex.quote(os.path.normpath(sys.executable))


def install(*packages: str, options: str = "") -> str:
    """The command that installs packages beside this Python, also where that has no pip (venvs of uv)."""
    names = " ".join(shlex.quote(package) for package in packages)
    flags = f"{options} " if options else ""
    if importlib.util.find_spec("pip") is None:
        return f"uv pip install --python {shlex.quote(os.path.normpath(sys.executable))} {flags}{names}"
    return f"{python()} -m pip install {flags}{names}"


def setting(name: str, value: str | None) -> str:
    """The command of the shell that sets an environment variable, or, for None, removes it."""
    if sys.platform == "win32":
        return f"set {name}={value or ''}"
    return f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"
