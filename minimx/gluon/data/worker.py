"""A worker process of a DataLoader: it makes batches, one after the other, until its parent wants no more.

It gets a message for each batch through a pipe, and answers each, in order: with a batch, with an error, or not at all to speak of if the
loop over the loader has been left meanwhile. It ends when the pipe is closed, be it because the parent has ended, and never speaks to
anyone else: no queue, lock or semaphore is shared, so that a worker that dies, at any point, holds nobody up.
"""

from __future__ import annotations

import contextlib
import gc
import pickle
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import threadpoolctl

from ... import autograd
from ...device import cpu
from ...engine import crew, naive
from .collate import maker
from .pipe import End
from .seeding import BatchSeeds, renew_lock
from .transport import MemoryFile, Outbox, Parcel


class Task(NamedTuple):
    """A batch to be made."""

    owner: int  # the number of the pass over the loader that it belongs to
    number: int  # its place in that
    indices: Any
    seeds: BatchSeeds | None  # None if no code of the user's runs


class Order(NamedTuple):
    """A message to a worker."""

    read: int  # how many of its answers the parent has read
    left: frozenset[int]  # passes that have ended: their batches need not be made
    task: Task


class Problem(NamedTuple):
    """An answer: the error that a worker met instead of a batch."""

    pickled: bytes | None  # the exception, if it can be pickled and is the same afterwards
    text: str  # its class and message
    trace: str  # the worker's traceback


Answer = Parcel | Problem | None  # None: the pass had ended


def serve(pipe: End, file: MemoryFile | None, dataset: Any, batchify_fn: Callable[[list[Any]], Any]) -> None:
    """The life of a worker process."""
    _settle_in()
    outbox = Outbox(file)
    try:
        make = maker(dataset, batchify_fn)
        with naive(), autograd.pause(), cpu():
            tasks: deque[Task | None] = deque()
            while True:
                _receive(pipe, outbox, tasks)
                task = tasks.popleft()
                answer = None if task is None else _answer(make, outbox, task)
                if not isinstance(answer, Parcel):
                    outbox.nothing()
                _flush()
                pipe.send(answer)
    except (EOFError, ConnectionError):  # the parent has closed the pipe
        pass


def _settle_in() -> None:
    """Let go of what was copied from the parent, and of what is the parent's business."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes of a terminal; the parent decides what follows
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])  # it was blocked until here
    renew_lock()
    gc.freeze()  # the parent's objects stay as they are, or the collector would have their memory copied
    crew.SIZE = 1  # workers share the cores already
    threadpoolctl.threadpool_limits(1)


def _receive(pipe: End, outbox: Outbox, tasks: deque[Task | None]) -> None:
    """Read all messages that are there; wait for one if there is nothing to do. Tasks that nobody wants any more become None."""
    while not tasks or pipe.ready():
        order: Order = pipe.receive()
        outbox.forget(order.read)
        for place, task in enumerate(tasks):
            if task is not None and task.owner in order.left:
                tasks[place] = None
        tasks.append(order.task)


def _answer(make: Callable[[Any], Any], outbox: Outbox, task: Task) -> Answer:
    """Make a batch and lay it out."""
    try:
        if task.seeds is not None:
            task.seeds.start()
        batch = make(task.indices)
        try:
            return outbox.pack(batch)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            if hasattr(error, "add_note"):
                error.add_note(
                    "The batch cannot be sent from a worker process. Let batchify_fn return arrays, numbers, texts and containers of "
                    "them; or use threads, with thread_pool=True."
                )
            raise
    except BaseException as error:  # sys.exit() in a transform is an error, too
        return problem(error)


def problem(error: BaseException) -> Problem:
    """`error` as something that can be sent."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") in (__name__, maker.__module__) and trace.tb_next:
        trace = trace.tb_next  # our own frames tell the user nothing
    text = "".join(traceback.format_exception(type(error), error, trace))
    pickled = None
    with contextlib.suppress(Exception):
        pickled = pickle.dumps(error)
        if type(pickle.loads(pickled)) is not type(error):
            pickled = None
    return Problem(pickled, traceback.format_exception_only(type(error), error)[0].strip(), text)


def _flush() -> None:
    """Let what the user's code printed be seen now: a worker may be ended at any time."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
