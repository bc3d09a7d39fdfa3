"""The code cells of a notebook, run as plain Python: `python cells.py notebook.ipynb`, which notebooks.py starts without a kernel.

The cells share one namespace, that of `__main__`. A cell whose last line is an expression prints its value. Of IPython's magic commands
those are understood that need no IPython: `%matplotlib` (figures are drawn and not shown), `%time` and `%%time`, and those that have
no effect here (`%config`, `%load_ext`, `%autoreload`, `%reload_ext`). Anything else, such as `!wget`, is refused before the first cell
runs.

This file is run by its path and imports nothing of minimx: the notebook does, when it comes to that.
"""

from __future__ import annotations

import ast
import json
import linecache
import os
import re
import sys
import time
import traceback
from types import ModuleType, TracebackType
from typing import Any

WITHOUT_EFFECT = ("config", "load_ext", "reload_ext", "autoreload")
NEEDS = "that needs IPython; pip install 'minimx[book]'"


class Refused(Exception):
    """A notebook that cannot be run as plain Python."""


def code_cells(text: str) -> dict[int, str]:
    """The sources of the code cells, by their numbers in the notebook (from 1). Raises Refused for a file that is none."""
    try:
        notebook = json.loads(text)
        cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]  # the form before 2014
        found = {}
        for number, cell in enumerate(cells, 1):
            if cell["cell_type"] == "code":
                source = cell["source"] if "source" in cell else cell["input"]
                found[number] = source if isinstance(source, str) else "".join(source)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise Refused(f"it is no notebook: {type(error).__name__}: {error}") from None
    return found


def as_python(source: str, number: int) -> str:
    """A cell in which magic commands are calls of the functions of `Magic`. Raises Refused for those that are not understood."""
    if source.startswith("%%"):
        first, _, rest = source.partition("\n")
        if first.split()[0] != "%%time" or first.split()[1:]:
            raise Refused(f"cell {number}: {first}: {NEEDS}")
        return f"__magic__.begin()\n{as_python(rest, number)}\n__magic__.end()"
    if _parses(source):
        return source
    lines = [_line(line, number) for line in source.split("\n")]
    if not _parses("\n".join(lines)) and any(re.search(r"=\s*[!%]|\?\s*$", line) for line in lines):
        raise Refused(f"cell {number}: a command for IPython in the middle of a line: {NEEDS}")
    return "\n".join(lines)  # where it is still no Python, the error shows when the cell runs


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def _line(line: str, number: int) -> str:
    """A line of a cell; a magic command as Python."""
    found = re.match(r"(\s*)%(\w+)\s*(.*)", line)
    if found is None:
        if line.lstrip().startswith(("!", "?", "%")):
            raise Refused(f"cell {number}: {line.strip()}: {NEEDS}")
        return line
    indent, name, rest = found.groups()
    if name in WITHOUT_EFFECT:
        return f"{indent}pass  # {line.strip()}"
    if name == "matplotlib":
        return f"{indent}__magic__.matplotlib({rest.strip()!r})"
    if name == "time" and rest:
        return f"{indent}__magic__.begin(); {rest}; __magic__.end()"
    raise Refused(f"cell {number}: {line.strip()}: {NEEDS}")


class Magic:
    """What magic commands do here."""

    def __init__(self) -> None:
        self.begun: list[float] = []

    def matplotlib(self, backend: str) -> None:
        """Draw figures in memory, where the notebook would show them in its pages."""
        if backend in ("inline", "notebook", "widget", "ipympl", "agg", ""):
            import matplotlib

            matplotlib.use("agg")

    def begin(self) -> None:
        self.begun.append(time.perf_counter())

    def end(self) -> None:
        print(f"Wall time: {time.perf_counter() - self.begun.pop():.3g} s")


def run_cell(source: str, number: int, namespace: dict[str, Any]) -> None:
    """Run a cell; print the value of the expression it ends with, unless a semicolon follows."""
    name = f"<cell {number}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # for tracebacks
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";") else None
    exec(compile(tree, name, "exec"), namespace)
    if isinstance(last, ast.Expr):
        sys.displayhook(eval(compile(ast.Expression(last.value), name, "eval"), namespace))


def below_this_file(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this file, with which it begins."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def main() -> int:
    """Run the notebook that the first argument names; the exit status."""
    path = sys.argv[1]
    try:
        with open(path, encoding="utf-8") as file:
            cells = {number: as_python(source, number) for number, source in code_cells(file.read()).items()}
    except Refused as error:
        print(f"minimx run: {path}: {error}", file=sys.stderr)
        return 2
    sys.argv[:] = [path]
    sys.path[0] = os.path.dirname(path)  # as for a script
    main_module = sys.modules["__main__"] = ModuleType("__main__")
    main_module.__dict__.update(__magic__=Magic(), display=print, __builtins__=__builtins__)
    for number, source in cells.items():
        try:
            run_cell(source, number, main_module.__dict__)
        except Exception as error:
            print(f"cell {number}:", file=sys.stderr)
            traceback.print_exception(type(error), error, below_this_file(error.__traceback__))
            lent = sys.modules.get("minimx_lent")  # where it lends; see startup/sitecustomize.py
            if lent is not None and (said := lent.advice(type(error).__name__, str(error))):
                print(said, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
