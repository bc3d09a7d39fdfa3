"""What a notebook needs beside plots: a progress bar, and library source shown in the text.

Both know that chapters are run by people and by programs (the site's build, nbval). A bar is drawn only where someone watches;
source is printed as plain text, so that a change in the library which the text does not know of shows as a difference.
Book: every chapter.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from ..base import ArgumentError, MXNetError
from ..progress import bar_class, someone_watches

Item = TypeVar("Item")


class MissingPackageError(MXNetError, ImportError):
    """An optional package that is not installed; the message names the extra that brings it."""


def missing(package: str) -> MissingPackageError:
    """The error to raise where the book's `package` is not installed."""
    return MissingPackageError(f"{package} is not installed; the book's helpers need it: pip install 'minimx[book]'")


def progress(iterable: Iterable[Item], description: str | None = None, total: int | None = None) -> Iterator[Item]:
    """The items of `iterable`, with a bar (tqdm) on standard error while they are gone through.

    No bar where nobody watches (`someone_watches`) or where tqdm is not installed: the loop is the same.

    >>> sum(progress(range(4), "adding"))
    6
    """
    bar = bar_class() if someone_watches() else None
    yield from iterable if bar is None else bar(iterable, desc=description, total=total)


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
