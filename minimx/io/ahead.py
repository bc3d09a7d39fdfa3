"""A thread that works ahead: it takes items from an iterator while the program uses those before.

The thread knows the queue and the iterator only, not the object that the program holds, so that it ends when that is forgotten, and at the
end of the program. It never makes more than `buffer` items that nobody has taken. An error in it is raised where the item is asked for.
What it reads from is its own until `close` returns.
"""

from __future__ import annotations

import os
import queue
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

__all__ = ["Ahead"]

Item = TypeVar("Item")

END = object()


class _Shared:
    """What the thread and the program have in common."""

    def __init__(self, buffer: int) -> None:
        self.process = os.getpid()
        self.results: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()
        self.room = threading.Semaphore(buffer)
        self.stopped = False
        self.ended = threading.Event()  # nothing uses the iterator any more

    def stop(self) -> None:
        """Let the thread end. In a forked process there is none, and the semaphore may be locked for ever."""
        if self.process == os.getpid():
            self.stopped = True
            self.room.release()


class Ahead(Generic[Item]):
    """Iterates over what `make()` iterates over, in a thread of its own, `buffer` items ahead; with 0 items in the calling thread.

    **Raises** what the iterator raised, at its place, and again whenever it is asked after that.
    """

    def __init__(self, make: Callable[[], Iterator[Item]], buffer: int) -> None:
        self._shared = _Shared(buffer)
        self._here: Iterator[Item] | None = None
        self._last: tuple[Any, BaseException | None] | None = None  # the end, or the error that ended it
        if buffer == 0 or not _started(make, self._shared):
            self._here = make()
            self._shared.ended.set()
        self._stop = weakref.finalize(self, self._shared.stop)

    @property
    def is_of_this_process(self) -> bool:
        """Whether the thread can be here: a forked process has no threads of its parent."""
        return self._shared.process == os.getpid()

    def close(self) -> None:
        """Make no more items. Waits for the one that is being made, so that the next to read from the same source has it alone."""
        self._stop()
        if self.is_of_this_process:
            self._shared.ended.wait()

    def take(self) -> Item | None:
        """The next item; waits for it. None at the end."""
        if self._last is None:
            if self._here is not None:
                result = _next(self._here)
            else:
                result = self._shared.results.get()
                self._shared.room.release()
            if result[0] is not END and result[1] is None:
                return result[0]
            self._last = result
        if self._last[1] is not None:
            raise self._last[1]
        return None


def _started(make: Callable[[], Iterator[Any]], shared: _Shared) -> bool:
    """Start the thread. Says whether that is possible: there are systems without threads."""
    try:
        threading.Thread(target=_work, args=(make, shared), name="minimx-ahead", daemon=True).start()
    except RuntimeError:
        return False
    return True


def _next(iterator: Iterator[Any]) -> tuple[Any, BaseException | None]:
    try:
        return next(iterator, END), None
    except BaseException as error:
        return None, error


def _work(make: Callable[[], Iterator[Any]], shared: _Shared) -> None:
    """What the thread does."""
    iterator: Any = None
    try:
        iterator = make()
        while shared.room.acquire() and not shared.stopped:
            result = _next(iterator)
            shared.results.put(result)
            if result[0] is END or result[1] is not None:
                return
            del result  # nobody should wait for this thread to let go of a batch
    except BaseException as error:  # raised again in the thread that asks
        shared.results.put((None, error))
    finally:
        try:
            if hasattr(iterator, "close"):
                iterator.close()
        finally:
            shared.ended.set()
