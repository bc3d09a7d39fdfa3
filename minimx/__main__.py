"""The command line: `python -m minimx`.

    python -m minimx doctor               is this installation whole, is it fast, and if not, what to type
    python -m minimx info                 versions, devices, and which optional packages are there
    python -m minimx book [FOLDER]        the chapters, copied into a folder, in JupyterLab
    python -m minimx bench [WORKLOAD ...] the benchmarks: minimx beside what else is installed (--quick: a minute or two)
    python -m minimx run SCRIPT [...]     a script, `-m` module or notebook written for MXNet, unchanged
    python -m minimx names PATTERN ...    how minimx has what MXNet calls so (--different: only what is otherwise)
    python -m minimx im2rec PREFIX ROOT   a folder of images as lists (--list), and as files of records

`doctor` is what to type when something is slow or does not work, `info` what a question about it should begin with. Each command is a
file: in cli/, or in the part of minimx that it belongs to.
"""

from __future__ import annotations

import argparse
import os
import sys

import minimx

from .cli import bench, book, doctor, info
from .compat import names as compat_names, run
from .image import im2rec

#: Commands to which all that follows belongs.
WHOLE = {"bench": bench.main, "run": run.main}


def parser() -> argparse.ArgumentParser:
    """The commands and what they take; `work` of what is parsed does it, and `parser` is that of the command."""
    made = argparse.ArgumentParser(prog="python -m minimx", description="Arrays, networks and a book: see README.md.")
    made.add_argument("--version", action="version", version=f"minimx {minimx.__version__}")
    commands = made.add_subparsers(dest="command", metavar="COMMAND")
    doctors = commands.add_parser("doctor", help="is this installation whole and fast, and if not, what to type")
    doctors.set_defaults(work=doctor.run)
    commands.add_parser("info", help="versions, devices, optional packages").set_defaults(work=info.run)
    books = commands.add_parser("book", help="the chapters, copied into a folder, in JupyterLab")
    book.add_arguments(books)
    books.set_defaults(work=book.run)
    commands.add_parser("bench", help="run the benchmarks", add_help=False)
    commands.add_parser("run", help="run a script, module or notebook in which `import mxnet` means minimx", add_help=False)
    names = commands.add_parser("names", help="MXNet's names, and what minimx has otherwise")
    names.add_argument("pattern", nargs="+", help="a part of a name such as nd.topk, or a pattern such as 'gluon.rnn.*'")
    names.add_argument("-d", "--different", action="store_true", help="leave out what is as in MXNet")
    names.set_defaults(work=lambda chosen: compat_names.main(chosen.pattern, chosen.different))
    images = commands.add_parser("im2rec", help="lists and files of records of a folder of images")
    im2rec.add_arguments(images)
    images.set_defaults(work=im2rec.run)
    for each in commands.choices.values():
        each.set_defaults(parser=each)
    return made


def main() -> int:
    """Run the command that the arguments name; the exit status. Where nobody reads on, as with `| head`, it ends without a word."""
    try:
        try:
            status = work()
        finally:
            sys.stdout.flush()  # here, as what is left would be written, and fail, while Python ends
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = UNREAD
    return status


UNREAD = 128 + 13  # the exit status of a program that the signal of a closed pipe has ended


def work() -> int:
    """Do what the arguments say; the exit status."""
    if sys.argv[1:2] and sys.argv[1] in WHOLE:
        return WHOLE[sys.argv[1]](sys.argv[2:])
    chosen, unknown = parser().parse_known_args()
    if unknown:  # whose usage is the command's, not that of all commands
        options = getattr(chosen, "other_options", "")
        hint = f"; {options}" if options and unknown[0].startswith("-") else ""
        getattr(chosen, "parser", parser()).error(f"unrecognized arguments: {' '.join(unknown)}{hint}")
    if chosen.command is None:
        parser().print_help()
        return 2
    status: int = chosen.work(chosen)
    return status


if __name__ == "__main__":
    sys.exit(main())
