"""The processes that `mpiexec -n 4 python train.py` starts together, and what they do in common.

Every process has a *rank*, 0 to n - 1, and all call the same *collectives* in the same order: a sum over all of them, a value that rank
0 gives to all. Messages are MPI's (mpi4py); what this file adds is that nobody waits for the dead. A collective is started, not waited
for, and while it is under way its process looks whether the others still live: whoever is gone, or has said goodbye before this
collective, will never come, and waiting becomes an error that names the rank. (MPI would wait for ever, or end without a word.)
Book: chapter 11.

A process manager kills all processes as soon as one of them is killed, before the others could say why. So each process that it
started becomes a *guardian*, which forks the one that works and outlives it by a moment (`guarded`).
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import platform
import signal
import sys
import threading
import time
from typing import Any, NoReturn

import numpy as np

from ..base import DeviceError, MXNetError
from ..engine.lanes import scheduler

GRACE = 1.0  # seconds for which what a dead process still sent may be on its way
LAST_WORDS = 2.0  # seconds for which a guardian outlives a process that failed: the others tell of it meanwhile
LOOK = 0.1  # seconds between two looks at the others
GUARDED = "MINIMX_GUARDED"  # set in a process that has a guardian: the file to which it writes when somebody is lost


class PeerError(MXNetError, ConnectionError):
    """Another process of the same run is gone."""


class World:
    """All processes of this run. Made once a process, by `world()`; its collectives are called by one thread at a time."""

    def __init__(self) -> None:
        self.mpi = _mpi()
        self.comm = self.mpi.COMM_WORLD.Dup()  # for collectives,
        self.goodbyes = self.mpi.COMM_WORLD.Dup()  # and for the last message of each process
        self.rank, self.size = self.comm.rank, self.comm.size
        self.peers: list[tuple[str, int]] = self.comm.allgather((platform.node(), os.getpid()))
        self.done = 0  # collectives that this process has finished
        self.left: dict[int, int] = {}  # rank that said goodbye -> collectives that it had finished
        self.broken: PeerError | None = None  # nothing can be sent any more
        atexit.register(self._leave)

    # ---- collectives

    def all_reduce(self, array: np.ndarray[Any, Any]) -> None:
        """`array`, contiguous, becomes the sum of those of all processes."""
        if self.size > 1:
            self._finish(self.comm.Iallreduce(self.mpi.IN_PLACE, array), "the sum of gradients")

    def broadcast(self, array: np.ndarray[Any, Any]) -> None:
        """`array`, contiguous, becomes that of rank 0."""
        if self.size > 1:
            self._finish(self.comm.Ibcast(array, root=0), "the values of rank 0")

    def gather(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The arrays of all processes, stacked in the order of ranks."""
        found = np.empty((self.size, *array.shape), array.dtype)
        if self.size > 1:
            self._finish(self.comm.Iallgather(np.ascontiguousarray(array), found), "the gradients of all")
        else:
            found[0] = array
        return found

    def barrier(self) -> None:
        """Return when all processes have come here."""
        if self.size > 1:
            self._finish(self.comm.Ibarrier(), "the barrier")

    # ---- waiting

    def _finish(self, request: Any, what: str) -> None:
        """Return when `request` is done. Raises PeerError if a process that has to take part never will."""
        if self.broken is not None:
            raise PeerError(str(self.broken))
        pause, look, missing_since = 0.0, time.monotonic() + LOOK, 0.0
        while not request.Test():
            time.sleep(pause)
            pause = min(pause + 2e-5, 1e-3)
            if time.monotonic() < look:
                continue
            look = time.monotonic() + LOOK
            missing = self._missing()
            if missing is None:
                missing_since = 0.0
            elif not missing_since:
                missing_since = time.monotonic()
            elif time.monotonic() - missing_since > GRACE:
                self._break(f"rank {self.rank} of {self.size} waits for {what}, but {missing}")
                raise PeerError(str(self.broken))
        self.done += 1

    def _break(self, why: str) -> None:
        """Nothing is sent from now on, and the run has failed, whatever this process makes of it."""
        self.broken = PeerError(why)
        if GUARDED in os.environ:
            with contextlib.suppress(OSError):  # in a process that was started from one with a guardian
                os.write(int(os.environ[GUARDED]), b"!")

    def _missing(self) -> str | None:
        """Why the collective that is under way cannot end; None if nothing speaks against it."""
        status = self.mpi.Status()
        while self.goodbyes.Iprobe(status=status):
            self.left[status.source] = self.goodbyes.recv(source=status.source)
        for rank, done in self.left.items():
            if done <= self.done:
                return (
                    f"rank {rank} has ended after {done} messages, and this is number {self.done + 1} here; every rank must make the same "
                    "number of steps"
                )
        for rank, (host, pid) in enumerate(self.peers):
            if rank not in self.left and host == self.peers[self.rank][0] and not alive(pid):
                return f"rank {rank} (process {pid}) is dead; restart all ranks from the last checkpoint"
        return None

    def _leave(self) -> None:
        """At exit: finish what is queued, say goodbye, and end MPI together with the others, if they are still there."""
        scheduler.drain()
        if self.broken is None and self.size > 1:
            with contextlib.suppress(PeerError):
                sent = [self.goodbyes.isend(self.done, dest=rank) for rank in range(self.size) if rank != self.rank]
                self._farewell(sent)
        if self.broken is None:
            self.mpi.Finalize()

    def _farewell(self, sent: list[Any]) -> None:
        """Return when all have said goodbye. Sets `broken` if somebody died instead."""
        while len(self.left) < self.size - 1 or not all(request.Test() for request in sent):
            self.done = -1  # whoever left has left after that: only the dead are missing
            missing = self._missing()
            if missing is not None:
                self._break(missing)
                return
            time.sleep(1e-3)


def alive(pid: int) -> bool:
    """Whether the process `pid` of this machine is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


# ---- the one world of this process

_world: World | None = None
_lock = threading.Lock()


def world() -> World:
    """The processes of this run. **Raises** DeviceError without mpi4py."""
    global _world
    with _lock:
        if _world is None:
            guarded()
            _world = World()
        return _world


def _mpi() -> Any:
    """mpi4py's module MPI, initialized. It is finalized by `World._leave`."""
    try:
        import mpi4py

        mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py is there, and no library of MPI
        raise DeviceError(
            f"several processes need MPI, which is not there ({error}): pip install 'minimx[dist]' brings mpi4py and mpiexec"
        ) from None
    return MPI


# ---- guardians


def guarded() -> None:
    """Continue in a fork of this process, which becomes its guardian: where MPICH's mpiexec started it, and a fork does no harm."""
    if "PMI_RANK" not in os.environ or int(os.environ.get("PMI_SIZE", "1")) < 2 or GUARDED in os.environ:
        return
    others = [
        thread
        for thread in threading.enumerate()
        if thread is not threading.current_thread() and not thread.name.startswith("minimx-")
    ]
    children = "multiprocessing" in sys.modules and sys.modules["multiprocessing"].active_children()
    if (
        "mpi4py.MPI" in sys.modules
        or not hasattr(os, "fork")
        or others
        or children
        or threading.current_thread() is not threading.main_thread()
    ):
        return
    sys.stdout.flush()
    sys.stderr.flush()
    reading, writing = os.pipe()
    worker = os.fork()
    if worker:
        os.close(writing)
        _guard(worker, reading, os.environ["PMI_RANK"])
    os.close(reading)
    os.environ[GUARDED] = str(writing)
    if sys.platform == "linux":  # when the process manager kills the guardian, it means this process
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1: PR_SET_PDEATHSIG


def _guard(worker: int, news: int, rank: str) -> NoReturn:
    """The life of a guardian: hand signals on, wait for the end, and end alike; or with 1, if there is news that somebody was lost."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT):
        signal.signal(number, lambda number, frame: os.kill(worker, number))
    _, status = os.waitpid(worker, 0)
    lost = False
    if os.WIFSIGNALED(status):
        code = 128 + os.WTERMSIG(status)
        print(f"minimx: rank {rank} (process {worker}) was killed by signal {os.WTERMSIG(status)}", file=sys.stderr, flush=True)
    else:
        os.set_blocking(news, False)
        with contextlib.suppress(BlockingIOError):
            lost = bool(os.read(news, 1))
        code = os.WEXITSTATUS(status) or int(lost)
    if code:
        time.sleep(LAST_WORDS)
    os._exit(code)
