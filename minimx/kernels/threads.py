"""How many threads a kernel may use: the cores, shared among the tasks that run at the same time.

BLAS has a number of threads for the whole process, which the engine sets (engine/blas.py). OpenMP has one for each thread that calls it,
so a kernel that uses OpenMP asks here before each call. Book: chapter 2.
"""

from __future__ import annotations

import os

WORTH_SHARING = 50_000.0  # nanoseconds of work, below which other cores would hardly have begun when it is over

running = 1  # tasks that compute now; the engine keeps it
forked = False  # OpenMP's threads do not come along into a forked process


def cores() -> int:
    """The threads that a computation alone may have: OMP_NUM_THREADS, else the processors of this process.

    OpenMP allows a list there, a number a level of nesting; ours is the first. What it cannot be is left to OpenMP to say. Code is made for
    a number of threads, so there may be no more than OMP_THREAD_LIMIT says, and one where OMP_DYNAMIC allows OpenMP to give fewer.
    """
    if os.environ.get("OMP_DYNAMIC", "").strip().lower() == "true":
        return 1
    wanted = _number(os.environ.get("OMP_NUM_THREADS", "").split(",")[0]) or processors()
    return min(wanted, _number(os.environ.get("OMP_THREAD_LIMIT", "")) or wanted)


def _number(text: str) -> int:
    """A whole number above 0; 0 for anything else."""
    return int(text) if text.strip().isdecimal() else 0


def processors() -> int:
    """Those that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


FULL = cores()
SPARE = processors() > FULL  # whether a computation alone leaves cores free


def share(work: float) -> int:
    """The number of threads for so many nanoseconds of work on one core: all, a half, a quarter, and so on, for there is code for each."""
    if forked or work < WORTH_SHARING:
        return 1
    return max(1, FULL >> (max(1, running) - 1).bit_length())


def _after_fork_in_child() -> None:
    global forked, running
    forked, running = True, 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
