"""What a notebook needs beside plots: a progress bar, and library source shown in the text.

Both know that chapters are run by people and by programs (the site's build, nbval). A bar is drawn only where someone watches;
source is printed as plain text, so that a change in the library which the text does not know of shows as a difference.
Book: every chapter.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from ..base import ArgumentError, MXNetError

Item = TypeVar("Item")


class MissingPackageError(MXNetError, ImportError):
    """An optional package that is not installed; the message names the extra that brings it."""


def missing(package: str) -> MissingPackageError:
    """The error to raise where the book's `package` is not installed."""
    return MissingPackageError(f"{package} is not installed; the book's helpers need it: pip install 'minimx[book]'")


def ipython_shell() -> Any:
    """The running IPython shell, or None. IPython is never imported for this: where it runs, it is there."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def someone_watches() -> bool:
    """Whether a person sees the output as it comes: at a terminal, or in a notebook that is open in front of them.

    A front end with a person before it says that it can be asked for input; the programs that run notebooks (nbclient, nbval)
    say that they cannot. MINIMX_PROGRESS=0 or 1 decides otherwise.
    """
    decided = os.environ.get("MINIMX_PROGRESS")
    if decided in ("0", "1"):
        return decided == "1"
    kernel = getattr(ipython_shell(), "kernel", None)
    if kernel is not None:
        return bool(getattr(kernel, "_allow_stdin", False))
    return sys.stderr is not None and sys.stderr.isatty()


def progress(iterable: Iterable[Item], description: str | None = None, total: int | None = None) -> Iterator[Item]:
    """The items of `iterable`, with a bar (tqdm) on standard error while they are gone through.

    No bar where nobody watches (`someone_watches`) or where tqdm is not installed: the loop is the same.

    >>> sum(progress(range(4), "adding"))
    6
    """
    bar = _bar_class() if someone_watches() else None
    yield from iterable if bar is None else bar(iterable, desc=description, total=total)


def _bar_class() -> Callable[..., Iterable[Any]] | None:
    """tqdm's bar for the place where we run, or None where what it needs is not installed."""
    try:
        if getattr(ipython_shell(), "kernel", None) is None:
            return importlib.import_module("tqdm").tqdm
        importlib.import_module("ipywidgets")  # with which the bar of tqdm.notebook is drawn
        return importlib.import_module("tqdm.notebook").tqdm
    except ImportError:
        return None


def show_source(thing: Any, docstring: bool = True) -> None:
    """Print the source of a function, class, method, property or module of the library.

    **Args** docstring: False leaves the docstring out, where the text beside it says the same.
    **Raises** ArgumentError where there is no Python source: built-in functions, values.
    """
    if isinstance(thing, property):
        thing = thing.fget
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(thing) if callable(thing) else thing))
    except (TypeError, OSError):
        wanted = "a function, a class, a method or a module"
        raise ArgumentError(f"show_source: {thing!r} has no Python source; give {wanted}") from None
    print((source if docstring else _without_docstring(source)).rstrip())


def _without_docstring(source: str) -> str:
    """`source` of one function, class or module without its own docstring; those inside a class stay."""
    tree = ast.parse(source)
    node = tree.body[0] if len(tree.body) == 1 and hasattr(tree.body[0], "body") else tree
    text = node.body[0]
    if len(node.body) == 1 or not (isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)):
        return source
    lines = source.splitlines()
    del lines[text.lineno - 1 : text.end_lineno]
    return "\n".join(lines)
