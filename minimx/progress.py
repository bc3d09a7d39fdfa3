"""Progress of work that takes long: whether a person watches, and a bar for them.

Bars are for people: a program that is run by another one (a test, a notebook that is executed for a site) prints none. tqdm draws them
where it is installed; else a line on standard error is written over and over.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

LATE = 0.5  # seconds that something must take before it is worth a bar
OFTEN = 0.2  # seconds between two looks of the line


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


def bar_class() -> Callable[..., Any] | None:
    """tqdm's bar for the place where we run, or None where what it needs is not installed."""
    try:
        if getattr(ipython_shell(), "kernel", None) is None:
            return importlib.import_module("tqdm").tqdm
        importlib.import_module("ipywidgets")  # with which the bar of tqdm.notebook is drawn
        return importlib.import_module("tqdm.notebook").tqdm
    except ImportError:
        return None


class Bytes:
    """A bar that counts bytes, in a `with` block; it draws nothing if nobody watches, or if all is done soon.

    **Args** `what`: a word in front of it; `total`: how many there will be, None if that is not known; `quiet`: never draw it.
    """

    def __init__(self, what: str, total: int | None, done: int = 0, quiet: bool = False) -> None:
        self.what, self.total, self.done = what, total, done
        self.bar: Any = None
        self.line = False  # one has been written
        self.next = time.monotonic() + LATE  # when to write the line
        self.drawn = not quiet and someone_watches()
        if self.drawn:
            bar = bar_class()
            if bar is not None:
                self.bar = bar(desc=what, total=total, initial=done, unit="B", unit_scale=True, delay=LATE)

    def add(self, count: int) -> None:
        """So many more are done."""
        self.done += count
        if self.bar is not None:
            self.bar.update(count)
        elif self.drawn and time.monotonic() >= self.next:
            self._write("\r")
            self.next = time.monotonic() + OFTEN

    def _write(self, begin: str, end: str = "") -> None:
        share = f" of {_megabytes(self.total)}, {100 * self.done // max(self.total, 1)} %" if self.total is not None else ""
        sys.stderr.write(f"{begin}{self.what}: {_megabytes(self.done)}{share}{end}")
        sys.stderr.flush()
        self.line = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.bar is not None:
            self.bar.close()
        elif self.line:
            self._write("\r", "\n")


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
