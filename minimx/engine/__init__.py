"""The engine: it runs operations asynchronously, in parallel, and as if they had run line by line.

Design note
-----------
*What is scheduled.* Every array has a `Var` (var.py). An operation reads some Vars and writes others; that is all the engine knows of it.
Operations that one thread pushes in a row are recorded into a `Segment`, which runs as one `Task` (segment.py, task.py).

*When it may run.* A task runs after the last task that writes what it reads, and after the last writer and all readers of what it
writes. These edges are built when it is recorded, from two fields of each Var, and counted down when tasks finish:

    x = nd.ones(...)        writes x
    y = x + 1               reads x, writes y        after x
    z = x * 2               reads x, writes z        after x; beside y
    x[:] = 0                writes x                 after y and z

*Who runs it.* The lane of its device (lanes.py), or a thread that would otherwise sleep until it is done, or the thread that records it, if
running costs less than recording (front.py). Elementwise neighbours run tile by tile on all cores (execute.py, crew.py).

*What can go wrong.* An error in a task becomes the value of everything that depends on it, until it is overwritten (`Failure` in var.py).
It is raised, with the line that queued the work, by every read, and by `waitall` once.

*Who may watch.* Tasks, operators, programs and waits are told to whoever listens (events.py): `trace`, and the profiler. While nobody
does, it costs nothing.

The contract, each point a test in tests/engine: sequential consistency; asynchrony; helping; bulking; every operation runs unless the
scope is lazy; parallelism; back-pressure; failures; threads, fork and exit. Book: chapter 2.
"""

from .front import bulk, lazy, naive, one_task, priority, push, set_bulk_size, trace, wait, waitall
from .var import Failure, Var, View

__all__ = [
    "Failure",
    "Var",
    "View",
    "bulk",
    "lazy",
    "naive",
    "one_task",
    "priority",
    "push",
    "set_bulk_size",
    "trace",
    "wait",
    "waitall",
]
