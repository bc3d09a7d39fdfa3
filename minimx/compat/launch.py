"""Starting a Python in which `import mxnet` means minimx: for the command `run`, and for the kernels of notebooks.

The new Python has one folder more on its path, startup/: there `import mxnet` finds a file that makes the name mean minimx, and Python,
when it starts, one that lends old names (lent.py). All that it starts in turn inherits the path.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

STARTUP = Path(__file__).parent / "startup"


def environment(lend: bool = True) -> dict[str, str]:
    """The environment variables with which Python finds minimx as mxnet; **Args** `lend`: and old names."""
    before = os.environ.get("PYTHONPATH")
    path = [os.path.abspath(each) for each in before.split(os.pathsep)] if before else []  # a notebook runs in another folder
    path = [str(STARTUP), *(each for each in path if each != str(STARTUP))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "MINIMX_LEND": "1" if lend else "0"}


def command(arguments: Sequence[str]) -> list[str]:
    """The command line of a new Python with this one's options."""
    if sys.flags.ignore_environment:
        raise SystemExit("minimx run: Python's options -E and -I hide the path on which mxnet is to be found; leave them out")
    return [sys.executable, *subprocess._args_from_interpreter_flags(), *arguments]  # type: ignore[attr-defined]


def start(arguments: Sequence[str], lend: bool = True, folder: str | None = None) -> int:
    """Run Python with `arguments`, in `folder`. It takes the place of this process where it can; else **returns** its exit status."""
    line, env = command(arguments), environment(lend)
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        if folder is not None:
            os.chdir(folder)
        os.execve(line[0], line, env)
    with subprocess.Popen(line, env=env, cwd=folder) as child:
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:  # the child has been told, too
                continue
