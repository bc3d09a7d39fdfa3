"""Ctrl-C while the main thread waits: noted in the middle of bookkeeping, handled where nothing is half done."""

from __future__ import annotations

import signal
import threading
import time
from typing import Any

import pytest

from minimx import cpu, engine, gluon, nd
from minimx.base import MXNetError
from minimx.engine.interrupts import LATENCY, shield
from minimx.engine.lanes import Scheduler, scheduler
from minimx.engine.task import FunctionTask

from .helpers import LARGE, Gates, call, pending, until

pytestmark = pytest.mark.timeout(60)


def press(*_: Any) -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("place", ["_ready_ancestor", "_start", "_finish", "_retire", "demand", "close"])
def test_in_the_middle_of_bookkeeping_it_is_put_off(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gates = Gates()
    gates.hold(context=cpu(0))  # so that the main thread helps
    with engine.lazy():
        x = call(lambda: None, nd.ones((LARGE,)))
    y = x * 2
    right = getattr(Scheduler, place)
    once = [True]

    def pressed(self: Scheduler, *args: Any, **how: Any) -> Any:
        if once and threading.current_thread() is threading.main_thread() and shield.depth:
            once.clear()
            press()
        return right(self, *args, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Scheduler, place, pressed)
        with pytest.raises(KeyboardInterrupt):
            y.asnumpy()
    assert not once
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert y.asnumpy()[0] == 4  # nothing is lost
    assert not scheduler.waits
    for gate in gates.all:
        gate.set()
    engine.waitall()
    assert (scheduler.in_flight, scheduler.busy, scheduler.waiting) == ({}, set(), 0)


def test_a_sleeping_thread_hears_of_it_soon(gates: Gates) -> None:
    x, gate = pending(gates)
    thread = threading.Thread(target=lambda: (until(lambda: scheduler.waiting), signal.pthread_kill(main, signal.SIGINT)))
    main = threading.main_thread().ident or 0
    thread.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        x.wait_to_read()
    assert time.monotonic() - start < 100 * LATENCY
    thread.join()
    gate.set()
    assert x.asnumpy()[0] == 1


def test_a_handler_that_raises_nothing_lets_the_thread_wait_on(gates: Gates) -> None:
    x, gate = pending(gates)
    heard: list[int] = []

    def note(number: int, frame: Any) -> None:
        heard.append(number)
        gate.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        thread = threading.Thread(target=lambda: (until(lambda: scheduler.waiting), signal.pthread_kill(main, signal.SIGINT)))
        main = threading.main_thread().ident or 0
        thread.start()
        assert (x + 1).asnumpy()[0] == 2
        thread.join()
        assert heard == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is note
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("ignored", [signal.SIG_IGN, signal.SIG_DFL])
def test_what_is_not_pythons_to_handle_stays_as_it_is(ignored: Any) -> None:
    before = signal.signal(signal.SIGINT, ignored)
    try:
        assert (nd.ones((LARGE,)) + 1).asnumpy()[0] == 2
        assert signal.getsignal(signal.SIGINT) == ignored
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_task_that_waits_is_interrupted_and_says_so(gates: Gates) -> None:
    """The main thread runs a function that itself waits for an array: Ctrl-C ends that function."""
    x, gate = pending(gates, context=cpu(1))
    gates.hold(context=cpu(0))
    y = nd.zeros((4,))
    begun = threading.Event()

    def task(array: Any) -> None:
        begun.set()
        array[...] = x.asnumpy()

    engine.push(task, writes=[y])
    main = threading.main_thread().ident or 0
    thread = threading.Thread(
        target=lambda: (begun.wait(10), until(lambda: scheduler.waiting), signal.pthread_kill(main, signal.SIGINT))
    )
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        y.asnumpy()
    thread.join()
    gate.set()
    with pytest.raises(MXNetError, match="interrupted by Ctrl-C while it ran"):
        y.asnumpy()
    assert x.asnumpy()[0] == 1


def test_other_threads_are_not_shielded() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(shield.__enter__()))
    thread.start()
    thread.join()
    assert found == [False]
    assert shield.depth == 0


def test_an_array_whose_writer_never_heard_of_it_has_failed_and_can_be_written_again() -> None:
    """Ctrl-C between the two halves of entering a write: the task ends without this array."""
    x = nd.ones((4,))
    task = FunctionTask(cpu(0), "lost", lambda: None, [], [])
    with scheduler.lock:
        task.writes([x.var], scheduler)
        scheduler.close(task)
    nd.waitall()
    with pytest.raises(MXNetError, match="Ctrl-C came while it was queued"):
        x.asnumpy()
    x[:] = 3
    assert set(x.asnumpy()) == {3}


@pytest.mark.parametrize("large", [False, True])
def test_who_reads_what_nobody_computes_says_why_it_is_not_there(large: bool) -> None:
    """Ctrl-C before the task was entered: the array has neither a value nor a writer."""
    x, y = nd.ones((512, 512)), nd.ones((512, 512))
    nd.waitall()
    x.var.value, x.var.ready = None, False
    with pytest.raises(MXNetError, match="Ctrl-C came before it was computed; compute it again"):
        x.asnumpy()
    result = nd.dot(x, y) if large else (x + 1) * 2
    with pytest.raises(MXNetError, match="Ctrl-C came before it was computed; compute it again"):
        result.asnumpy()
    net = gluon.nn.Dense(512, in_units=512)
    net.initialize()
    net.hybridize()
    with pytest.raises(MXNetError, match="Ctrl-C came before it was computed; compute it again"):
        net(x).asnumpy()
