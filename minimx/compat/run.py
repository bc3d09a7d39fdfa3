"""`python -m minimx run`: a script, a module or a notebook as it is, with `import mxnet` meaning minimx.

    python -m minimx run train.py --epochs 2      python -m minimx run -m package.train       python -m minimx run notebook.ipynb
    python -m minimx run --simulate-gpus 2 train.py    on a machine without GPUs, for a script that uses mx.gpu(1)

The command does not run the code itself: it starts Python anew (launch.py). So `sys.argv`, `sys.path[0]`, the exit status, tracebacks,
signals, worker processes, and environment variables that the script sets before it imports mxnet, are what they are for
`python train.py`. On POSIX the new Python takes the place of this one. Notebooks go to notebooks.py.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from .. import simulated
from . import launch, notebooks

EPILOG = """\
What stands after a script goes to it; after a notebook, it goes to this command. What NumPy and Python had then is lent (np.float,
collections.Mapping, float() of an array of shape (1,), ...), and MXNet's version; standard error says which. `python -m minimx names
PATTERN` tells what minimx has otherwise than MXNet.
"""
VALUED = ("--output", "--simulate-gpus")  # options behind which a value stands


# ---- the command


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m minimx run", usage="%(prog)s [options] (script.py | -m module | notebook.ipynb) [arguments]", epilog=EPILOG,
        description="Run a script, a module or a notebook in which `import mxnet` means minimx.",
    )  # fmt: skip
    made.add_argument(
        "--no-lend",
        dest="lend",
        action="store_false",
        help="do not lend what NumPy and Python have dropped, nor a version of MXNet",
    )
    made.add_argument(
        "--simulate-gpus", metavar="N", type=int, help="make gpu(0) to gpu(N - 1) of host memory, for a script that wants GPUs"
    )
    made.add_argument("--output", metavar="FILE", help="write the executed notebook to FILE")
    made.add_argument("--inplace", action="store_true", help="write the executed notebook over the old one")
    return made


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The command's own options, and what Python is to run with its arguments."""
    position = 0
    while position < len(arguments) and arguments[position].startswith("-") and arguments[position] not in ("-", "-m", "-c"):
        position += 2 if arguments[position] in VALUED else 1
    return list(arguments[:position]), list(arguments[position:])


def main(arguments: Sequence[str]) -> int:
    """The command; **returns** the exit status."""
    own, target = split(arguments)
    options = parser().parse_args(own)
    if not target or (target[0] in ("-m", "-c") and len(target) < 2):
        parser().error("a script, a notebook, or -m and a module is wanted")
    if target[0] not in ("-", "-m", "-c") and not os.path.exists(target[0]):
        parser().error(f"there is no file {target[0]}")
    if not target[0].endswith(".ipynb"):
        _simulate(options)
        if options.output or options.inplace:
            parser().error("--output and --inplace are for notebooks")
        return launch.start(target, options.lend)
    options, rest = parser().parse_known_args(target[1:], options)  # what stands behind a notebook can only be for the command
    if rest:
        parser().error(f"a notebook takes no arguments, got {' '.join(rest)}; set them in a cell, or in environment variables")
    if options.output and options.inplace:
        parser().error("--output and --inplace exclude each other")
    _simulate(options)
    return notebooks.run(target[0], target[0] if options.inplace else options.output, options.lend)


def _simulate(options: argparse.Namespace) -> None:
    """Let the new Python, which inherits the variable, begin with simulated GPUs."""
    count = options.simulate_gpus
    if count is not None:
        if not 0 <= count <= simulated.MOST:
            parser().error(f"--simulate-gpus {count}: a number from 0 to {simulated.MOST} is wanted")
        os.environ[simulated.VARIABLE] = str(count)
