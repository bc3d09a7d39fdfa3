"""The scheduler: lanes, the threads that run tasks, and what happens when somebody has to wait.

A *lane* is a device's queue of ready tasks with the threads that serve it (MXNET_CPU_WORKER_NTHREADS each); a GPU has two more, for
the copies to it and from it. A task moves
from its segment to the lane's queue when its last predecessor finishes, and any thread may then run it: a worker of the
lane, or

  - a thread that waits for the task's result (*helping*): rather than sleep it runs the tasks that it waits for itself, so that a
    loop over small work never changes threads. It helps only with what it waits for, never with a stranger's long task.
  - a thread that pushes faster than the lanes work (*back-pressure*): beyond `MAX_BYTES` of results in flight, or `MAX_TASKS`
    tasks, a push first helps or waits until there is room.

A thread that sleeps is woken only when it has something to do: to wake one costs more than most tasks, and it takes a core away from
the task that runs. So a worker that finishes a task and takes the next one wakes nobody.

An idle worker also closes segments that their thread left open for `PATIENCE` seconds, so that recorded work starts without
a sync.

There is one lock. It guards the fields of all tasks and Vars, is held for a few microseconds at a time, and never while a
task runs (only an operation so small that it is no task may run under it: front.py). It is reentrant, because the garbage
collector may run a finalizer that uses arrays while a thread holds it: see `inside`.

Who runs what: `submit` and `wait_for` run on threads of the user (or inside a task); `_serve` on workers; `_finish` on
whichever thread ran the task. Functions whose name starts with "_" need the lock where their docstring says so. Book:
chapter 2.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
import weakref
from collections import deque
from typing import Any

import numpy as np

from .. import cuda, simulated
from ..base import MXNetError, env_int
from ..device import Context, CopyLane
from ..op import placing
from . import events, interrupts, streams
from .blas import BlasThreads
from .crew import after_fork as crew_after_fork
from .events import watch
from .interrupts import shield
from .segment import Segment
from .task import DONE, OPEN, QUEUED, READY, RUNNING, Task
from .var import Failure, Var, add_note, lost

PATIENCE = 0.0005  # seconds that a segment may stay open while its lane is idle
DOZE = 0.001  # seconds that a worker sleeps at a time while its lane is in use
IN_USE = 0.2  # seconds after its last work for which a lane counts as in use
#: Seconds for which a thread may keep Python's lock: as Python has it, and once there are several workers, unless the program has chosen
#: itself. While one waits for the lock a core may do nothing.
USUAL_TURN, TURN = 0.005, 0.0002
MAX_BYTES = env_int("MINIMX_MAX_BYTES_IN_FLIGHT", 1 << 30, 1)
MAX_TASKS = env_int("MINIMX_MAX_TASKS_IN_FLIGHT", 1024, 1)
# A thread that had to wait for room goes on when so much of these is in use at most, so that it does not wake for every task that ends; or,
# after so many seconds, when there is room at all: what is in flight may be waiting for this very thread.
AGAIN, HELD = 0.75, 0.2
WORKERS = env_int(("MXNET_CPU_WORKER_NTHREADS", "MINIMX_CPU_WORKERS"), 1, 1)


class Lane:
    """The ready tasks of a device, or of the copies to or from one, and its workers."""

    def __init__(self, name: str, lock: Any, workers: int) -> None:
        self.name = name
        self.ready: deque[Task] = deque()
        self.open: dict[Segment, None] = {}  # segments that an idle worker may close, oldest first
        self.wakeup = threading.Condition(lock)
        self.workers = workers
        self.threads: list[threading.Thread] = []
        self.idle = 0  # workers that sleep
        self.dozing = 0  # workers that sleep for a millisecond at most, because the lane was used lately
        self.used = 0.0  # when somebody last had work for it


class Running(threading.local):
    """The stack of tasks that the calling thread runs, outermost first, and the lane that it serves if it is a worker."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self.lane: Lane | None = None
        self.helps = False  # it runs a task because it waits for something
        self.left: list[Lane] = []  # what a helper's task made ready here has not been offered to others: it may want it itself


class Scheduler:
    """All lanes, the lock, and the account of what is in flight."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.finished = threading.Condition(self.lock)  # a task finished
        self.lanes: dict[Context | CopyLane, Lane] = {}
        self.lazy: weakref.WeakSet[Segment] = weakref.WeakSet()  # open lazy segments
        self.in_flight: dict[Task, None] = {}  # closed, and not done or still holding on to arrays
        self.bytes_in_flight = 0
        self.waiting = 0  # threads that sleep on `finished`
        self.awaited: dict[Task, int] = {}  # how many of them sleep until this task is done,
        self.draining = 0  # how many until nothing is in flight,
        self.watching = 0  # how many until less is in flight,
        self.crowded = 0  # and how many until there is room for more
        self.waits: dict[Task, Task] = {}  # running task -> the task for which the thread that runs it sleeps
        self.failures: dict[Failure, None] = {}  # nobody has seen them yet
        self.running = Running()
        self.blas = BlasThreads()
        self.busy: set[Task] = set()  # tasks that run now
        self.threads_work = True  # False where threads cannot be started: then whoever closes a task runs it
        self.alone: int | None = None  # the only thread that may push, while it forks or ends the process

    # ---- lanes; the lock is held

    def lane(self, key: Context | CopyLane) -> Lane:
        lane = self.lanes.get(key)
        if lane is None:
            lane = self.lanes[key] = Lane(
                str(key), self.lock, WORKERS if isinstance(key, Context) and key.device_typeid != 2 else 1
            )
        return lane

    def _rouse(self, lane: Lane, soon: bool = False) -> bool:
        """See to it that a worker looks at `lane`: at once, or within a millisecond if `soon` is enough. False if all are busy.

        To wake a thread costs more than all else that a push does; a worker that dozes comes by itself.
        """
        lane.used = time.monotonic()
        if lane.dozing and soon:
            return True
        if lane.idle or lane.dozing:
            lane.wakeup.notify()
            return True
        if len(lane.threads) < lane.workers and self.threads_work:
            number = len(lane.threads)
            thread = threading.Thread(target=self._serve, args=(lane,), name=f"minimx-{lane.name}-{number}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no threads here (Pyodide, or the interpreter is shutting down)
                self.threads_work = bool(lane.threads)
                return False
            lane.threads.append(thread)
            if sum(len(each.threads) for each in self.lanes.values()) == 2 and sys.getswitchinterval() == USUAL_TURN:
                sys.setswitchinterval(TURN)
            return True
        return False

    def opened(self, segment: Segment, patience: float = PATIENCE) -> None:
        """A segment was begun. An idle worker will close it after `patience` seconds, if its thread does not."""
        if segment.lazy:
            self.lazy.add(segment)
            return
        lane = self.lane(segment.lane)
        segment.deadline = time.monotonic() + patience
        lane.open[segment] = None
        self._rouse(lane, soon=True)

    def close(self, task: Task) -> None:
        """No more is recorded into `task`; it runs when its predecessors have finished."""
        if task.state is not OPEN:
            return
        if isinstance(task, Segment):
            self.lanes[task.lane].open.pop(task, None) if task.lane in self.lanes else None
            self.lazy.discard(task)
        task.state = QUEUED
        self.in_flight[task] = None
        self.bytes_in_flight += task.nbytes
        if watch.recorder is not None:
            watch.recorder.closed(task)
        if not task.predecessors:
            self._make_ready(task, soon=True)

    def _make_ready(self, task: Task, soon: bool = False, served: Lane | None = None, helping: bool = False) -> None:
        """Enter a task into its lane. `served` is the lane that the calling worker looks at next; a thread that is `helping` looks at
        all, and then offers what is left. The lock is held.
        """
        lane = self.lane(task.lane)
        task.state = READY
        place = len(lane.ready)
        while place and lane.ready[place - 1].priority < task.priority:
            place -= 1
        lane.ready.insert(place, task)
        if lane is served or helping:
            lane.used = time.monotonic()
            if lane is not served:
                self.running.left.append(lane)
        else:
            self._offer(lane, soon)

    def _offer(self, lane: Lane, soon: bool = False) -> None:
        """Find somebody for what is ready in `lane`: a worker, or a thread that sleeps, which may want to help."""
        if not self._rouse(lane, soon) and self.waiting:
            self.finished.notify_all()

    def _pass_on(self) -> None:
        """Offer others what the tasks of this helping thread made ready and it does not run itself."""
        if self.running.left:
            with self.lock:
                for lane in dict.fromkeys(self.running.left):
                    if lane.ready:
                        self._offer(lane)
                self.running.left = []

    # ---- running; the lock is not held unless it says so

    def _start(self, task: Task) -> None:
        """`task` is READY and this thread takes it. The lock is held."""
        self.busy.add(task)
        with contextlib.suppress(ValueError):  # Ctrl-C kept it from its lane, see `_is_lost`
            self.lane(task.lane).ready.remove(task)
        task.state = RUNNING
        if task.uses_blas:
            self.blas.share(sum(each.uses_blas for each in self.busy))

    def _run(self, task: Task) -> None:
        """Run a task that `_start` took, and finish it."""
        stack = self._stack()
        stack.append(task)
        before = events.entered(task) if watch.on else None
        try:
            with interrupts.Opened():
                if cuda.state.in_use:
                    streams.run(task)
                else:
                    task.run()
        except BaseException as error:  # Ctrl-C before it began, or when it had ended; or the GPU is not there
            task.abandon(error)
        self._end(task, 0.0 if before is None else before[0])
        if before is not None:
            events.left(before)
        stack.pop()

    def _end(self, task: Task, start: float = 0.0) -> None:
        """Finish a task that has run. Doing so again, after Ctrl-C came in the middle of it, does what is left."""
        with self.lock:
            if task.state is not DONE:
                self._finish(task, start)
        task.forget()
        with self.lock:
            if task in self.in_flight:
                self._retire(task)

    def _help(self, task: Task) -> None:
        """Run a task that is READY, if no other thread has begun to. Raises KeyboardInterrupt if Ctrl-C came meanwhile."""
        stack = self._stack()
        depth, helped = len(stack), self.running.helps
        self.running.helps = True
        try:
            with self.lock:
                if task.state is not READY:
                    return
                self._start(task)
                self._pass_on()
            self._run(task)
        except KeyboardInterrupt as error:  # in the engine's own code: no task may be left behind half-way
            del stack[depth:]
            if task.state is RUNNING:
                task.abandon(error)
            if task.state is not READY:
                self._end(task)
            raise
        finally:
            self.running.helps = helped
        if task.interrupt is not None:
            raise task.interrupt

    def _stack(self) -> list[Task]:
        """The tasks that the calling thread runs, outermost first."""
        return self.running.tasks

    def _finish(self, task: Task, start: float) -> None:
        """Publish results and release successors. The lock is held."""
        for failure in task.publish():
            self.failures[failure] = None
        for var in task.read:
            if var.readers is not None:
                var.readers.pop(task, None)
        served = self.running.lane if len(self._stack()) == 1 else None  # a worker takes the next task when it has ended this one
        for successor in task.successors:
            successor.predecessors.discard(task)
            if not successor.predecessors and successor.state is QUEUED:
                self._make_ready(successor, served=served, helping=self.running.helps)
        task.successors = []
        task.state = DONE
        if start:
            events.finished(task, start)
        if task in self.awaited:
            self.finished.notify_all()

    def _retire(self, task: Task) -> None:
        """`task` is done and holds on to nothing any more: it is not in flight. The lock is held."""
        self.bytes_in_flight -= task.nbytes
        del self.in_flight[task]
        self.busy.discard(task)
        if not self.busy:
            self.blas.share(1)  # what the user calls outside the engine has all cores again
        if self.watching or (self.draining and not self.in_flight) or (self.crowded and self._has_room(AGAIN)):
            self.finished.notify_all()

    def _serve(self, lane: Lane) -> None:
        """The life of a worker."""
        np.seterr(all="ignore")
        self.running.lane = lane
        while True:
            with self.lock:
                while not lane.ready:
                    if lane.open:
                        oldest = next(iter(lane.open))
                        patience = oldest.deadline - time.monotonic()
                        if patience <= 0:
                            self.close(oldest)
                            continue
                    elif time.monotonic() - lane.used < IN_USE:
                        patience = DOZE
                    else:
                        lane.idle += 1
                        lane.wakeup.wait()
                        lane.idle -= 1
                        continue
                    lane.dozing += 1
                    lane.wakeup.wait(patience)
                    lane.dozing -= 1
                task = lane.ready[0]
                self._start(task)
                if lane.ready:
                    self._offer(lane)
            self._run(task)
            del task  # a sleeping worker must not keep arrays alive

    # ---- waiting

    def _ready_ancestor(self, task: Task, own: list[Task]) -> Task | None:
        """A READY task that `task` waits for (or itself); None if all that could run are running. The lock is held.

        A running task may itself wait, inside its function: then `task` waits for that too.
        Raises MXNetError if `task` waits for a task that this very thread is running.
        """
        seen = {task}
        pending = [task]
        while pending:
            each = pending.pop()
            if each.state is READY or self._is_lost(each):
                return each
            if each in own:
                raise MXNetError(
                    f"{each.name} waits for an array that it, or work queued behind it, writes: it would wait for ever"
                )
            for before in (*each.predecessors, self.waits.get(each)):
                if before is not None and before not in seen:
                    seen.add(before)
                    pending.append(before)
        return None

    def wait_for(self, task: Task) -> None:
        """Return when `task` is done; run it, or what it waits for, in this thread where no other thread has begun to.

        Raises MXNetError in a task that waits for what waits for it.
        """
        self._outside()
        start = events.clock()
        try:
            with shield:
                self._until(self._wait_for, task)
        finally:
            if watch.on:
                events.waited(start, task=task)

    def _wait_for(self, task: Task) -> None:
        own = self._stack()
        while True:
            shield.deliver()
            helped = None
            with self.lock:
                self.close(task)
                while not shield.calls:
                    if task.state is DONE:
                        return
                    helped = self._ready_ancestor(task, own)
                    if helped is not None:
                        break
                    self.waits.update(dict.fromkeys(own, task))
                    self.awaited[task] = self.awaited.get(task, 0) + 1
                    try:
                        self._sleep()
                    finally:
                        for each in own:
                            self.waits.pop(each, None)
                        self.awaited[task] -= 1
                        if not self.awaited[task]:
                            del self.awaited[task]
            if helped is not None:
                self._help(helped)

    def inside(self) -> bool:
        """Whether the calling thread holds the lock already.

        Then it has been called in the middle of the engine's own work, by a finalizer, or by a small operation's kernel: it
        can compute, but neither record nor wait, since what is half done may be what it would wait for.
        """
        return bool(self.lock._is_owned())  # type: ignore[attr-defined]  # every RLock has it; typeshed does not know

    def _outside(self) -> None:
        """Raise MXNetError where nobody may wait."""
        if self.inside():
            raise MXNetError("a finalizer (__del__) that runs in the middle of the engine's work cannot wait for an array")

    def _until(self, wait: Any, *of: Task) -> None:
        """Call a function that waits and helps. Whatever ends it, others hear of what it leaves to them."""
        try:
            wait(*of)
        finally:
            self._pass_on()

    def _sleep(self, most: float | None = None) -> None:
        """Wait for what `awaited`, `draining`, `watching` or `crowded` says, or for a task that no worker takes, so many seconds at `most`.
        The lock is held.
        """
        self._pass_on()
        self.waiting += 1
        patience = shield.patience
        try:
            self.finished.wait(patience if most is None else most if patience is None else min(most, patience))
        finally:
            self.waiting -= 1

    def demand(self, var: Var) -> Task | None:
        """The task that computes `var`, closed; of an open lazy segment only what `var` needs. The lock is held."""
        writer = var.writer
        if isinstance(writer, Segment) and writer.lazy and writer.state is OPEN:
            writer = writer.split(var, self)
        if writer is not None and writer.state is DONE:  # Ctrl-C came while `var` was entered: it does not know of it
            error = MXNetError("Ctrl-C came while it was queued; compute it again")
            writer.release(var, Failure(error, writer.name, writer.queued_by))
            return None
        if writer is not None:
            self.close(writer)
        return writer

    def wait_to_read(self, var: Var) -> None:
        """Return when `var` holds its value. Raises the failure that prevented it."""
        while not var.ready:
            if var.writer is not None:
                self._outside()
            with shield, self.lock:
                writer = self.demand(var)
            if writer is None:
                if not var.ready and var.failure is None:
                    raise lost()
                break
            self.wait_for(writer)
        failure = var.failure
        if failure is None and cuda.state.in_use:
            start = events.clock()
            failure = streams.finish(var)
            if watch.waits is not None:
                events.waited(start, about="for a GPU")
        if failure is not None:
            with self.lock:
                self.failures.pop(failure, None)
            failure.deliver()

    def wait_to_write(self, var: Var) -> None:
        """Return when nothing that is queued reads or writes `var`."""
        while True:
            with self.lock:
                waited_for = (var.writer, *(var.readers or ()))
                task = next((each for each in waited_for if each is not None and each.state is not DONE), None)
            if task is None:
                return
            self.wait_for(task)

    def make_room(self) -> None:
        """Back-pressure: return when what is in flight is within its bounds.

        Inside a task at once: what is in flight may wait for that task, and what is ready may be a function that waits for
        it.
        """
        if (self.alone is None and self._has_room()) or self._stack():
            return
        start = events.clock()
        try:
            with shield:
                self._until(self._make_room)
        finally:
            if watch.on:
                events.waited(start, "back-pressure", "too much is in flight")

    def _has_room(self, share: float = 1.0) -> bool:
        """Whether what is in flight is within this share of its bounds."""
        return self.bytes_in_flight <= share * MAX_BYTES and len(self.in_flight) <= share * MAX_TASKS

    def _make_room(self) -> None:
        until = time.monotonic() + HELD
        while True:
            shield.deliver()
            helped = None
            with self.lock:
                while not shield.calls:
                    left = until - time.monotonic()
                    choosy = left > 0
                    if self.alone in (None, threading.get_ident()) and self._has_room(AGAIN if choosy else 1.0):
                        return
                    helped = self._any_ready()
                    if helped is not None:
                        break
                    self.crowded += choosy
                    self.watching += not choosy
                    try:
                        self._sleep(left if choosy else None)
                    finally:
                        self.crowded -= choosy
                        self.watching -= not choosy
            if helped is not None:
                self._help(helped)

    def _any_ready(self) -> Task | None:
        """The oldest ready task of any lane. The lock is held."""
        return next((lane.ready[0] for lane in self.lanes.values() if lane.ready), None)

    def _is_lost(self, task: Task) -> bool:
        """Whether `task` waits for nothing and yet is in no lane: Ctrl-C came between `close` and `_make_ready`. It is READY then: whoever
        would have waited runs it. The lock is held."""
        if task.state is not QUEUED or task.predecessors:
            return False
        task.state = READY
        return True

    def wait_all(self) -> None:
        """Return when everything that was pushed has finished. Raises the failures that nobody has seen, as one error."""
        self.drain()
        lost = streams.finish_all() if cuda.state.in_use else None
        with self.lock:
            if lost is not None:
                self.failures[lost] = None
            self._raise_unseen()

    def drain(self) -> None:
        """Return when everything that was pushed has finished; failures stay where they are.

        Inside a task it cannot wait for that task, nor for what waits for it.
        """
        self._outside()
        start = events.clock()
        try:
            with shield:
                self._until(self._drain)
        finally:
            if watch.on:
                events.waited(start)

    def _drain(self) -> None:
        own = self._stack()
        while True:
            shield.deliver()
            helped = None
            with self.lock:
                while not shield.calls:
                    for segment in [*self.lazy, *(each for lane in self.lanes.values() for each in lane.open)]:
                        self.close(segment)
                    helped = self._any_ready()
                    if helped is None:  # what is ready now is in no lane
                        helped = next((task for task in self.in_flight if task.state is READY or self._is_lost(task)), None)
                    if helped is not None:
                        break
                    if self._only_waits_for(own):
                        return
                    inside = bool(own)  # then it is not to wait until nothing is in flight
                    self.draining += not inside
                    self.watching += inside
                    try:
                        self._sleep()
                    finally:
                        self.draining -= not inside
                        self.watching -= inside
            if helped is not None:
                self._help(helped)

    def _only_waits_for(self, own: list[Task]) -> bool:
        """Whether all that is in flight is among the tasks `own` or waits for one of them. The lock is held."""
        held_up = set(own)
        for task in self.in_flight:  # a task is closed, and so enters, after its predecessors
            if task not in held_up:
                if held_up.isdisjoint(task.predecessors):
                    return False
                held_up.add(task)
        return True

    def _raise_unseen(self) -> None:
        """Raise the oldest failure that nobody has seen, with a word on the others; all count as seen. The lock is held."""
        unseen = [failure for failure in self.failures if not failure.seen]
        self.failures.clear()
        for failure in unseen[1:]:
            failure.seen = True
            add_note(unseen[0].error, f"and another task failed: {type(failure.error).__name__}: {failure.error}")
        if unseen:
            unseen[0].deliver()

    # ---- fork and exit

    def before_fork(self) -> None:
        """Finish what is queued, so that parent and child both have it, and hold the lock while the process is copied.

        A fork inside a task leaves that task, and what waits for it, to both.
        """
        while True:
            self.alone = threading.get_ident()  # or threads that push all the time would hold this one up for ever
            try:
                self.drain()
            finally:
                self.lock.acquire()
            if self._only_waits_for(self._stack()) and not any(lane.open for lane in self.lanes.values()):
                return
            self.lock.release()  # another thread pushed meanwhile

    def after_fork_in_parent(self) -> None:
        self.alone = None
        self.finished.notify_all()
        self.lock.release()

    def after_fork_in_child(self) -> None:
        """A new lock and no threads: only the calling thread came along."""
        self.lock = threading.RLock()
        self.finished = threading.Condition(self.lock)
        self.waiting, self.waits, self.busy = 0, {}, set(self._stack())
        self.awaited, self.draining, self.watching, self.crowded, self.running.lane = {}, 0, 0, 0, None
        self.lanes, self.alone = {}, None
        watch.after_fork_in_child()
        crew_after_fork()
        util = sys.modules.get("multiprocessing.util")
        if util is not None:  # its processes end without atexit, but call finalizers that were made after this
            util.register_after_fork(self, lambda self: util.Finalize(None, self.at_exit, exitpriority=10))

    def at_exit(self) -> None:
        """Finish what is queued. A failure that nobody has seen is reported, since nobody will."""
        self.alone = threading.get_ident()
        try:
            self.wait_all()
        except Exception as error:
            notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
            print(f"minimx: at exit, a failure that nobody had seen: {type(error).__name__}: {error}{notes}", file=sys.stderr)
        finally:
            with self.lock:
                self.alone = None
                self.finished.notify_all()


scheduler = Scheduler()
placing.append(lambda: str(scheduler.running.tasks[-1].context) if scheduler.running.tasks else None)
simulated.finish.append(scheduler.drain)
atexit.register(scheduler.at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=scheduler.before_fork,
        after_in_parent=scheduler.after_fork_in_parent,
        after_in_child=scheduler.after_fork_in_child,
    )


__all__ = ["Lane", "Scheduler", "scheduler"]
