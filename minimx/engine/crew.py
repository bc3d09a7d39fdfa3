"""The crew: threads that share the tiles of one large elementwise task, a core each.

A lane runs tasks beside each other; the crew splits a single task. It is one crew for the whole process, and it serves one
task at a time: a task that finds it busy runs alone, since then the cores are in use already.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import env_int
from ..kernels import threads
from ..op import sharing
from .interrupts import Opened, shield

#: How many threads work on one task, the caller included: MINIMX_CREW, else as many as a kernel of its own has.
SIZE = env_int("MINIMX_CREW", threads.FULL, 1)
_jobs: queue.SimpleQueue[Any] = queue.SimpleQueue()
_busy = threading.Lock()
_threads: list[threading.Thread] = []


def _work() -> None:
    """The life of a crew thread."""
    np.seterr(all="ignore")
    while True:
        function, part, done = _jobs.get()
        try:
            function(part)
            done.put(None)
        except BaseException as error:  # handed to the thread that shared the work out
            done.put(error)
        function = part = done = None  # a waiting thread must not keep arrays alive


def share_out(items: list[Any], function: Callable[[list[Any]], None]) -> None:
    """Call `function` on parts of `items`, one for each thread of the crew, and return when all are done.

    Raises the first error of any part, after all have ended.
    """
    workers = min(SIZE, len(items)) - 1
    if workers < 1:
        function(items)
        return
    with shield:  # the caller must not go on, after Ctrl-C, while others work on its arrays
        _share_out(items, function, workers)


def _share_out(items: list[Any], function: Callable[[list[Any]], None], workers: int) -> None:
    """The same. The calling thread is shielded from signals but where it works itself."""
    if not _busy.acquire(blocking=False):
        with Opened():
            function(items)
        return
    try:
        while len(_threads) < workers:
            thread = threading.Thread(target=_work, name=f"minimx-crew-{len(_threads)}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no threads here: the caller does it all
                with Opened():
                    function(items)
                return
            _threads.append(thread)
        share = -(-len(items) // (workers + 1))
        done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        parts = [items[low : low + share] for low in range(share, len(items), share)]
        for part in parts:
            _jobs.put((function, part, done))
        error: BaseException | None = None
        try:
            with Opened():
                function(items[:share])
        except BaseException as own:
            error = own
        for _ in parts:
            error = done.get() or error
        if error is not None:
            try:
                raise error
            finally:
                error = None  # it holds this frame by its traceback: together they would keep arrays alive
    finally:
        _busy.release()


sharing.append(share_out)  # for kernels that split their own work


def after_fork() -> None:
    """In a forked child: the threads did not come along."""
    global _jobs, _busy
    _threads.clear()
    _jobs, _busy = queue.SimpleQueue(), threading.Lock()
