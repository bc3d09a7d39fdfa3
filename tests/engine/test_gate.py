"""The gate (minimx/engine/gate.py): nothing begins behind it while it is shut, and nobody can hang there."""

from __future__ import annotations

import contextlib
import os
import threading

import numpy as np
import pytest

import minimx as mx
from minimx import engine, nd
from minimx.engine import gate as gates
from minimx.engine.events import watch
from minimx.engine.gate import Gate
from minimx.engine.lanes import scheduler


class Holding:
    """A recorder that does nothing but hold."""

    def __init__(self):
        self.gate = Gate()
        self.held = []

    def closed(self, task):
        self.held.append(self.gate.hold(task))

    def ran(self, task, start, end):
        pass

    def at_once(self, op, inputs, outputs, start):
        pass

    def waited(self, task, start, end):
        pass


@contextlib.contextmanager
def holding():
    nd.waitall()
    recorder = Holding()
    watch.record(recorder)
    try:
        yield recorder
    finally:
        recorder.gate.open()
        watch.record(None)
        nd.waitall()


def test_nothing_begins_before_it_opens():
    began = threading.Event()
    with holding() as recorder:
        engine.push(began.set)
        engine.push(began.set, context=mx.cpu(1))
        assert not began.wait(0.05)
        recorder.gate.open()
        assert began.wait(20)
    assert recorder.held == [True, True]


def test_who_waits_opens_it():
    x = nd.ones((200, 200))
    x.wait_to_read()
    with holding():
        y = nd.dot(x, x)
        assert y.asnumpy()[0, 0] == 200
        z = nd.dot(y, x)  # after it has opened
        nd.waitall()
        assert z.asnumpy()[0, 0] == 40_000


@pytest.mark.parametrize("how", ["another thread", "inside a task"])
def test_others_who_wait_open_it(how):
    found = []
    x = nd.ones((200, 200))
    x.wait_to_read()
    with holding():
        y = nd.dot(x, x)

        def read(*_):
            found.append(float(y.asnumpy()[0, 0]))

        if how == "another thread":
            thread = threading.Thread(target=read)
            thread.start()
            thread.join(20)
        else:
            done = engine.Var()
            engine.push(read, writes=[done])
            engine.wait(done)
    assert found == [200.0]


def test_too_many_tasks_open_it(monkeypatch):
    monkeypatch.setattr(gates, "MAX_TASKS", 40)
    count = []
    with holding() as recorder:
        for _ in range(100):
            engine.push(lambda: count.append(1))
    assert len(count) == 100
    assert recorder.held[:18] == [True] * 18
    assert not all(recorder.held)


def test_a_full_engine_does_not_hang_behind_it():
    with holding():
        for _ in range(3000):  # more than may be in flight
            engine.push(lambda: None)
    assert not scheduler.in_flight


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_opens_it():
    x = nd.ones((200, 200))
    x.wait_to_read()
    with holding():
        y = nd.dot(x, x)
        child = os.fork()
        if child == 0:
            os._exit(0 if np.all(y.asnumpy() == 200) else 1)
        assert os.waitpid(child, 0)[1] == 0
