"""Passes: what is done to a graph before it is written down as a program. A pass is a function from a graph to a graph.

`specialize` comes first and `split` in between, and before it `mirror`, on request; the others can be switched off, by `without`, or by
MINIMX_DISABLE_PASSES, a list of their names with commas. None changes a result beyond rounding. `PASSES` is all there is to the order.
Book: chapter 5.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from ...base import ArgumentError, env_text, shown
from .batchnorm import fold_batchnorm
from .deadcode import drop_dead_code
from .folding import fold_constants
from .fusion import fuse
from .layout import channels_last
from .subexpressions import share_subexpressions
from .typed import TypedGraph

Pass = Callable[[TypedGraph], TypedGraph]

#: On the whole graph, forward and backward together.
PASSES: dict[str, Pass] = {
    "batchnorm": fold_batchnorm,
    "folding": fold_constants,
    "subexpressions": share_subexpressions,
    "deadcode": drop_dead_code,
    "layout": channels_last,
}

#: On each part, forward and backward, when they have been split. The memory plan comes after them, always.
LATE_PASSES: dict[str, Pass] = {"fusion": fuse}


def checked_names(names: frozenset[str]) -> frozenset[str]:
    """`names` themselves. Raises ArgumentError if one is no pass."""
    unknown = names - PASSES.keys() - LATE_PASSES.keys()
    if unknown:
        raise ArgumentError(f"passes: {', '.join(sorted(unknown))}: unknown; there are {', '.join([*PASSES, *LATE_PASSES])}")
    return names


def first_off() -> frozenset[str]:
    """The passes that MINIMX_DISABLE_PASSES names. Raises ArgumentError if one is no pass."""
    text = env_text("MINIMX_DISABLE_PASSES", "")
    try:
        return checked_names(frozenset(filter(None, map(str.strip, text.split(",")))))
    except ArgumentError as error:
        raise ArgumentError(f"environment variable MINIMX_DISABLE_PASSES={shown(text)}: {error}") from None


FIRST_OFF = first_off()


class _Switches(threading.local):
    """The passes that are off in a thread."""

    def __init__(self) -> None:
        self.off = FIRST_OFF


switches = _Switches()


@contextlib.contextmanager
def without(*names: str) -> Iterator[None]:
    """A scope in which programs are made without some passes, those of `PASSES` and `LATE_PASSES`: to see what each one does.

    A program that was made outside the scope stays as it is. **Raises** ArgumentError for an unknown name.
    """
    before, switches.off = switches.off, switches.off | checked_names(frozenset(names))
    try:
        yield
    finally:
        switches.off = before
