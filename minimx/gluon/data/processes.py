"""A team of processes: the parent's side of a DataLoader's workers. What they do is in worker.py, how batches travel in transport.py.

Nothing here runs by itself. Pipes are read and written by the threads that go over the loader, one at a time: whoever waits for a batch
reads whatever answers come, and hands out the next tasks. So there is no thread that could be left behind.

*Ends.* A team is closed when nobody can see it any more, when the interpreter exits, when a worker has died or been too slow, or when an
interrupt may have torn a message in two. Closing leaves no process behind. The next pass over the loader begins with a new team.

*Fork.* A forked child gets a copy of the team, but its workers are the parent's: it closes its copies of the pipes, so that the workers
see their parent end, and makes a team of its own when it needs one.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from ...base import ArgumentError, MXNetError, as_sentence, env_choice
from .pipe import pair
from .seeding import BatchSeeds
from .team import Ticket, WorkerError, too_slow
from .transport import Inbox, memory_file
from .worker import Answer, Order, Problem, Task, serve

MOST = 32  # tasks that a worker has at a time: their answers fit into its pipe, so that neither side ever waits for the other to read
GRACE = 1.0  # seconds that processes have to end by themselves, then when told to, then when killed
LOOK = 0.5  # seconds after which it is looked whether workers live, where their pipes say nothing


class WorkerTraceback(Exception):
    """The cause of an error that came from a worker: the traceback there, as text."""

    def __init__(self, who: str, trace: str) -> None:
        super().__init__(f"in {who}:\n\n{trace}")


# ---- one worker


class Worker:
    """A worker process, its pipe and its outbox."""

    def __init__(self, number: int, method: str, dataset: Any, batchify_fn: Callable[[list[Any]], Any]) -> None:
        self.number = number
        self.tickets: deque[Ticket] = deque()  # sent and not answered; oldest first
        self.answers = 0  # that were read
        self.left: set[int] = set()  # passes that have ended, which it has not been told yet
        self.method = method
        self.pipe, self._their_pipe = pair()
        self._their_file = memory_file()
        self.inbox = Inbox(None if self._their_file is None else self._their_file.twin())
        self.most = 1 if self._their_file is None else MOST  # one answer that holds arrays may fill a pipe
        context: Any = multiprocessing.get_context(method)
        arguments = (self._their_pipe, self._their_file, dataset, batchify_fn)
        self.process = context.Process(target=serve, args=arguments, name=f"minimx-data-{number}", daemon=True)

    def __str__(self) -> str:
        return f"worker process {self.number} (pid {self.process.pid})"

    def start(self) -> None:
        try:
            with _uninterrupted(self.method != "forkserver"), _without_fork_warning():
                self.process.start()
        finally:
            self._their_pipe.close()
            if self._their_file is not None:
                self._their_file.close()

    def send(self, ticket: Ticket) -> None:
        """Hand a task over. Raises OSError if the worker has ended."""
        self.pipe.send(Order(self.answers, frozenset(self.left), ticket.task))
        self.left.clear()
        self.tickets.append(ticket)

    def receive(self) -> None:
        """Read one answer. Raises EOFError or OSError if the worker has ended."""
        answer: Answer = self.pipe.receive()
        ticket = self.tickets.popleft()
        try:
            if isinstance(answer, Problem):
                ticket.error = _as_raised(answer, f"{self}, which made batch {ticket.task.number}")
            elif answer is not None and not ticket.left:
                ticket.value = self.inbox.unpack(answer)
        except Exception as error:  # no memory, or a value that does not come out of its pickle
            ticket.error = error
        self.answers += 1
        ticket.done = True

    def obituary(self) -> WorkerError:
        """What to say about a worker that has ended."""
        end = time.monotonic() + GRACE
        while (code := self.process.exitcode) is None and time.monotonic() < end:
            time.sleep(0.01)  # join() may miss it where other threads start processes: they look after all of them
        how, why = f"ended with exit status {code}", "Does a transform call os._exit?"
        if code is None:
            how, why = "closed its pipe", "Does a transform close files that it has not opened?"
        elif code < 0:
            how, why = f"was ended by {_name_of(-code)}", "Has code in C crashed that the data set calls? num_workers=0 shows it."
            if code == -getattr(signal, "SIGKILL", 0):
                why = "Memory may have run out: use smaller batches, fewer workers, or a smaller `prefetch`."
        elif not self.answers and self.method != "fork":
            why = "Where processes are not forked, a program needs `if __name__ == '__main__':` around its main part."
        task = f" while it had to make batch {self.tickets[0].task.number}" if self.tickets else ""
        return WorkerError(f"DataLoader: {self} {how}{task}. {why} The loader can be gone through again, with new workers.")

    def let_go(self) -> None:
        """Close what this process has of it. A worker that waits for a task sees that, and ends."""
        self.pipe.close()
        self.inbox.close()


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextlib.contextmanager
def _uninterrupted(possible: bool) -> Iterator[None]:
    """Ctrl-C waits until the scope ends, and in a process that starts in it until that is ready. (A fork server would wait for ever.)"""
    if not possible or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _without_fork_warning() -> Iterator[None]:
    """Python 3.12 warns of forks beside other threads, which may hold locks. The engine's threads take part in forks (engine/lanes.py)."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
        yield


def _as_raised(problem: Problem, who: str) -> BaseException:
    """The error that a worker sent, with its traceback as the cause."""
    error: BaseException | None = None
    if problem.pickled is not None:
        with contextlib.suppress(Exception):
            error = pickle.loads(problem.pickled)
    if not isinstance(error, Exception):  # sys.exit() of a worker does not end this process
        error = WorkerError(f"DataLoader: {who}: {problem.text}")
    error.__cause__ = WorkerTraceback(who, problem.trace)
    return error


def start_method() -> str:
    """How processes are started: as MINIMX_WORKER_START says, or multiprocessing was told; else by fork where that is usual.

    Forked workers have the data set as it is, be it made of lambdas and of classes of a notebook; others must get it in a pickle.
    """
    methods = multiprocessing.get_all_start_methods()  # the default is the first one
    chosen = env_choice("MINIMX_WORKER_START", multiprocessing.get_start_method(allow_none=True) or methods[0], tuple(methods))
    if sys.platform == "linux" and chosen == methods[0] and "MINIMX_WORKER_START" not in os.environ:
        return "fork"  # since Python 3.14 not the default
    return chosen


# ---- the team


class Processes:
    """A team of processes."""

    def __init__(self, count: int, dataset: Any, batchify_fn: Callable[[list[Any]], Any]) -> None:
        if multiprocessing.current_process().daemon:
            raise MXNetError(
                "DataLoader: a worker process cannot have worker processes of its own; use num_workers=0 or thread_pool=True there"
            )
        self.closed = False
        self.turn = threading.Condition()  # guards what follows
        self.reading = False  # a thread waits for pipes, without the lock
        self.failure = ""  # why it is closed
        self.backlog: deque[Ticket] = deque()  # not sent yet
        self.left: deque[int] = deque()  # passes that have ended, which workers have not been told
        self.workers: list[Worker] = []
        # Holds no reference to the team: it runs when that has gone, or at exit
        self._end = weakref.finalize(self, _end, self.workers, os.getpid())
        _teams.add(self)
        try:
            self._start(count, dataset, batchify_fn)
        except BaseException:
            self.close()
            raise

    def _start(self, count: int, dataset: Any, batchify_fn: Callable[[list[Any]], Any]) -> None:
        method = start_method()
        try:
            for number in range(count):
                worker = Worker(number, method, dataset, batchify_fn)
                self.workers.append(worker)  # before it starts: a forked one must know which pipes it has to close
                worker.start()
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ArgumentError(
                f"DataLoader: worker processes are started by {method!r} here, for which the data set and batchify_fn must be picklable: "
                f"{as_sentence(error)} Define their classes and functions at the top of a module, without lambda; or use threads, with "
                "thread_pool=True; or num_workers=0."
            ) from error
        except OSError as error:
            raise WorkerError(
                f"DataLoader: of {count} worker processes, number {len(self.workers)} could not be started: {error}; use fewer"
            ) from error

    # ---- what a pass asks for

    def enter(self, owner: int, number: int, indices: Any, seeds: BatchSeeds | None) -> Ticket:
        ticket = Ticket(Task(owner, number, indices, seeds))
        with self._attempt():
            self.backlog.append(ticket)
            if not self.reading:
                self._read(0)
            self._send()
        return ticket

    def result(self, ticket: Ticket, timeout: float) -> Any:
        end = time.monotonic() + timeout
        if not ticket.done:
            with self._attempt():
                while not ticket.done:
                    left = end - time.monotonic()
                    if left <= 0:
                        raise too_slow(timeout, ticket.task, "find out with num_workers=0 where")
                    if self.reading:
                        self.turn.wait(left)
                    else:
                        self._read(min(left, LOOK))
                        self._send()
                    self._require_open()
        return ticket.taken()

    def leave(self, owner: int, tickets: deque[Ticket]) -> None:
        for ticket in tickets:
            ticket.left = True
        if tickets:
            self.left.append(owner)

    def close(self) -> None:
        self.closed = True
        self._end()

    # ---- pipes; the lock is held

    @contextlib.contextmanager
    def _attempt(self) -> Iterator[None]:
        """Hold the lock. Whatever goes wrong inside may have torn a message in two: then the team is closed."""
        with self.turn:
            self._require_open()
            try:
                yield
            except BaseException as error:
                self.failure = self.failure or (
                    str(error) if isinstance(error, MXNetError) else f"DataLoader: {error!r} came between"
                )
                self.turn.notify_all()
                self.close()
                raise

    def _require_open(self) -> None:
        if self.failure:
            raise WorkerError(self.failure)

    def _read(self, patience: float) -> None:
        """Read the answers that are there; wait up to `patience` seconds for one. The lock is not held while it waits."""
        by_pipe: dict[Any, Worker] = {worker.pipe: worker for worker in self.workers}
        if patience:
            self.reading = True
            self.turn.release()
            try:
                ready = multiprocessing.connection.wait(by_pipe, patience)
            finally:
                self.turn.acquire()
                self.reading = False
                self.turn.notify_all()
            self._require_open()
            if not ready:
                self._look()
        else:
            ready = multiprocessing.connection.wait(by_pipe, 0)
        for pipe in ready:
            worker = by_pipe[pipe]
            try:
                while worker.pipe.ready():
                    worker.receive()
            except (EOFError, OSError):
                raise worker.obituary() from None

    def _look(self) -> None:
        """Raise WorkerError if a worker has died, though its pipe is open: a process that it had started may have a copy."""
        for worker in self.workers:
            if worker.tickets and not worker.process.is_alive() and not worker.pipe.ready():
                raise worker.obituary()

    def _send(self) -> None:
        """Hand tasks to the workers that have the fewest."""
        while self.left:
            owner = self.left.popleft()
            for worker in self.workers:
                worker.left.add(owner)
        while self.backlog:
            worker = min(self.workers, key=lambda worker: len(worker.tickets))
            if len(worker.tickets) >= worker.most:
                break
            ticket = self.backlog.popleft()
            if ticket.left:
                continue
            try:
                worker.send(ticket)
            except OSError:
                raise worker.obituary() from None

    def disown(self) -> None:
        """In a forked child: the workers are another process's."""
        self.closed = True
        self.failure = "DataLoader: a pass that was begun before a fork cannot go on in the child; begin another one"
        self.turn, self.reading = threading.Condition(), False
        self._end.detach()
        for worker in self.workers:
            worker.let_go()


def _end(workers: list[Worker], owner: int) -> None:
    """End processes: those that are at work at once, the others by themselves, first kindly and then not."""
    if os.getpid() != owner:
        return
    started = [worker for worker in workers if worker.process.pid is not None]
    for worker in workers:
        worker.let_go()
    for worker in started:
        if worker.tickets:
            worker.process.terminate()
    for urge in (None, "terminate", "kill"):
        end = time.monotonic() + GRACE
        for worker in started:
            if worker.process.is_alive():
                if urge is not None:
                    getattr(worker.process, urge)()
                worker.process.join(max(0.0, end - time.monotonic()))
    workers.clear()


_teams: weakref.WeakSet[Processes] = weakref.WeakSet()  # of this process


def _after_fork_in_child() -> None:
    for team in list(_teams):
        team.disown()
    _teams.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
