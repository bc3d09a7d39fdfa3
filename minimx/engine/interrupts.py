"""Ctrl-C while the main thread waits for the engine: it is put off to where it can do no harm.

Python raises KeyboardInterrupt between any two steps of the main thread. In the middle of the engine's bookkeeping, or of Python's own in
`Condition.wait`, that would leave a task half taken, half finished or half entered: its result would be lost, or wrong, or waited for for
ever. So a thread that waits is *shielded*: the signal is only noted, and handled as the program wants it (by default KeyboardInterrupt)
where nothing is half done: between two tasks that the thread runs as a helper, every `LATENCY` seconds while it sleeps, and when it
goes back to the user. A task that the thread runs is *open* to the signal at once: it may be a user's function that takes long. What it
was computing has failed then, and says so.

Only the main thread is sent signals, and only while it waits is the handler another one than the program's. Book: chapter 2.
"""

from __future__ import annotations

import signal
import sys
import threading
from typing import Any

LATENCY = 0.05  # seconds after which a sleeping thread looks for a signal


def in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


class Shield:
    """The main thread's. Used as a context manager around waiting, by any thread and nested: for others it does nothing."""

    def __init__(self) -> None:
        self.depth = 0  # of waiting in waiting: a task that the thread runs may wait, too
        self.pressed = False  # Ctrl-C was noted, and not handled yet
        self.open = False  # a task runs, into which it may come
        self.outer: list[bool] = []  # what `open` was outside of each level
        self.before: Any = None  # the program's handler

    def __enter__(self) -> bool:
        """Whether the calling thread is shielded."""
        if not in_main_thread():
            return False
        if self.depth == 0:
            before = signal.getsignal(signal.SIGINT)
            if not callable(before):  # the signal is ignored, or its handler is none of Python's
                return False
            self.before, self.pressed = before, False
            try:
                signal.signal(signal.SIGINT, self._note)
            except ValueError:  # the main thread of an interpreter that is not the main one
                return False
        self.depth += 1
        self.outer.append(self.open)
        self.open = False
        return True

    def __exit__(self, *error: object) -> None:
        if self.depth == 0 or not in_main_thread():
            return
        self.depth -= 1
        self.open = self.outer.pop()
        if self.depth == 0:
            signal.signal(signal.SIGINT, self.before)
        if self.pressed and (self.depth == 0 or self.open):
            self.deliver()

    def _note(self, number: int, frame: Any) -> None:
        """The handler of the signal while the thread waits."""
        if self.open:
            self.before(number, frame)
        else:
            self.pressed = True

    def deliver(self) -> None:
        """Handle a signal that was noted. Raises what the program's handler raises: KeyboardInterrupt, as a rule. No lock is held."""
        if self.pressed and in_main_thread():
            self.pressed = False
            self.before(signal.SIGINT, sys._getframe())

    @property
    def calls(self) -> bool:
        """Whether the calling thread should come to where `deliver` can be called."""
        return self.pressed and in_main_thread()

    @property
    def patience(self) -> float | None:
        """How long the calling thread may sleep at a time."""
        return LATENCY if self.depth and in_main_thread() else None


shield = Shield()


class Opened:
    """A scope for running a task: into it, a signal may come at once."""

    __slots__ = ("mine",)

    def __enter__(self) -> None:
        self.mine = shield.depth > 0 and in_main_thread()
        if self.mine:
            shield.open = True

    def __exit__(self, *error: object) -> None:
        if self.mine:
            shield.open = False
