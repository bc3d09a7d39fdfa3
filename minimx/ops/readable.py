"""Signatures for people: `help(nd.relu)` and Shift-Tab say `NDArray | Symbol` where the source says T, and which keywords `**how` takes.

Type checkers read the source, where a type variable says more: the result is of the operand's class. Only the texts of annotations change.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from types import FunctionType

from ..op import How

EITHER = "NDArray | Symbol"
KEYWORDS = ", ".join(f"{name}=None" for name in How.__annotations__)


def make_readable(functions: Iterable[object]) -> None:
    """Write the annotations of those among `functions` that are functions of this package, in place; twice is as good as once."""
    for function in functions:
        if isinstance(function, FunctionType) and function.__module__.startswith(__package__):
            annotations = function.__annotations__
            for name, text in annotations.items():
                annotations[name] = KEYWORDS if name == "how" else _spelt(text)


@functools.cache
def _spelt(text: str) -> str:
    return re.sub(r"\bT\b", EITHER, text)
