"""A gate: what is queued while it is shut waits behind it, so that a queue can be looked at before it runs.

It is a task without work that comes before the tasks it holds, and that lies in no lane. Therefore nothing can hang: whoever has to wait
for something behind the gate finds it as the one thing that can be run, and so opens it, as does a push that finds too much in flight.
The book's EngineStepper uses it.
"""

from __future__ import annotations

from ..device import cpu
from .lanes import MAX_BYTES, MAX_TASKS, scheduler
from .task import QUEUED, Task
from .var import Failure, Var


class Gate(Task):
    """Shut when made, and open for ever once it is `open`ed."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(cpu(), "gate")
        with scheduler.lock:
            self.state = QUEUED
            scheduler.in_flight[self] = None

    def hold(self, task: Task) -> bool:
        """Let `task`, which is just being closed, wait until the gate opens. False if it is open already. The lock is held."""
        if self.state is not QUEUED:
            return False
        task.after(self, scheduler)
        if len(scheduler.in_flight) >= MAX_TASKS // 2 or scheduler.bytes_in_flight >= MAX_BYTES // 2:
            self.open()  # or the front end would soon wait until there is room
        return True

    def open(self) -> None:
        """Let all go that waits here."""
        with scheduler.lock:
            if self.state is QUEUED:
                scheduler._make_ready(self)

    def written_vars(self) -> list[Var]:
        return []

    def run(self) -> None:
        pass

    def abandon(self, error: BaseException) -> None:
        pass

    def publish(self) -> list[Failure]:
        return []


__all__ = ["Gate"]
