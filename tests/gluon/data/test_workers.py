"""Workers that fail, die, hang, are left alone or interrupted; that nothing is left behind, and nothing is printed."""

from __future__ import annotations

import contextlib
import copy
import gc
import mmap
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import nd
from minimx.base import MXNetError
from minimx.gluon import data
from minimx.gluon.data import processes
from minimx.gluon.data.team import BatchTimeoutError, WorkerError

from ...engine.helpers import ROOT, script

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(
        not hasattr(os, "fork"), reason="data sets of these tests live in their functions: workers must be forked"
    ),
]
PROCESSES = {"num_workers": 2}
THREADS = {"num_workers": 2, "thread_pool": True}
BOTH = [PROCESSES, THREADS]


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """After each test: no process, no thread, no open file more than before."""
    before = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
    yield
    gc.collect()
    assert multiprocessing.active_children() == []
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("minimx-data") and not _ends(thread)]
    with contextlib.suppress(ChildProcessError):
        assert os.waitpid(-1, os.WNOHANG) == (0, 0)  # no zombie either; multiprocessing may keep a process of its own
    assert len(os.listdir("/proc/self/fd") if before else []) <= len(before) + 1  # a lane may have been started


def _ends(thread: threading.Thread) -> bool:
    thread.join(5)
    return not thread.is_alive()


class Calls(data.Dataset):
    """`length` samples, their own indices; `call` is called at index `at`."""

    def __init__(self, call: Callable[[], Any], at: int = 9, length: int = 40) -> None:
        self.call, self.at, self.length = call, at, length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        if index == self.at:
            self.call()
        return index


def outcome(loader: data.DataLoader) -> tuple[list[list[int]], BaseException | None]:
    """The batches of a pass, and what ended it."""
    batches = []
    try:
        for batch in loader:
            batches.append(batch.asnumpy().tolist())
    except BaseException as error:
        return batches, error
    return batches, None


def gone(process: int, patience: float = 5.0) -> bool:
    """Whether a process, which is not our child, ends."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":  # its parent has gone, too, and nobody has looked yet
            return True
        time.sleep(0.01)
    return False


# ---- errors of the user's code


class OddError(Exception):
    """One that does not come out of a pickle: its arguments are not those that it is made with."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


def raises(make: Callable[[], BaseException]) -> Callable[[], None]:
    def call_that_fails() -> None:
        raise make()

    return call_that_fails


@pytest.mark.parametrize("options", [{}, *BOTH])
@pytest.mark.parametrize(
    "make", [lambda: KeyError("nine"), lambda: mx.base.ShapeError("9"), lambda: OSError(2, "gone", "nine.png")]
)
def test_errors_keep_their_class(options: dict[str, Any], make: Callable[[], BaseException]) -> None:
    loader = data.DataLoader(Calls(raises(make)), 4, **options)
    for _ in range(2):
        batches, error = outcome(loader)
        assert batches == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert (type(error), str(error)) == (type(make()), str(make()))
        text = "".join(traceback.format_exception(error))
        assert "call_that_fails" in text
        assert "test_workers.py" in text
        if options is PROCESSES:
            assert "worker process" in text
            assert "which made batch 2" in text
        if sys.version_info >= (3, 11):
            assert "in dataset[9]" in text
    del error


def test_errors_that_cannot_be_sent() -> None:
    class Local(Exception):
        pass

    for make in (lambda: OddError(4, 5), lambda: Local("here"), lambda: ValueError(lambda: 3)):
        _, error = outcome(data.DataLoader(Calls(raises(make)), 4, **PROCESSES))
        assert isinstance(error, RuntimeError)
        assert type(make()).__name__ in str(error)
        assert "call_that_fails" in str(error.__cause__)


@pytest.mark.parametrize("options", [{}, *BOTH])
def test_stop_iteration_does_not_end_the_loop(options: dict[str, Any]) -> None:
    def stop(*_: Any) -> None:
        raise StopIteration

    batches, error = outcome(data.DataLoader(Calls(stop), 4, **options))
    assert (len(batches), type(error)) == (2, RuntimeError)
    assert type(outcome(data.DataLoader([1, 2], 1, batchify_fn=stop, **options))[1]) is RuntimeError


@pytest.mark.parametrize("options", BOTH)
def test_exit_in_a_worker_does_not_end_the_program(options: dict[str, Any]) -> None:
    _, error = outcome(data.DataLoader(Calls(lambda: sys.exit(5)), 4, **options))
    assert isinstance(error, RuntimeError)
    assert "SystemExit" in str(error)


@pytest.mark.parametrize("options", BOTH)
def test_errors_of_the_engine(options: dict[str, Any]) -> None:
    """They wait in arrays, and must show in the batch that they concern."""
    dataset = data.SimpleDataset(range(8)).transform(lambda x: nd.random.normal(0, -1 if x == 5 else 1, (2, 2)))
    batches, error = outcome(data.DataLoader(dataset, 2, **options))
    assert len(batches) == 2
    assert isinstance(error, MXNetError)
    assert "scale" in str(error)


@pytest.mark.parametrize("options", BOTH)
def test_errors_of_samplers_and_loops(options: dict[str, Any]) -> None:
    def sampler() -> Iterator[list[int]]:
        yield [0]
        raise LookupError("sampler")

    batches, error = outcome(data.DataLoader([1, 2], batch_sampler=sampler(), **options, prefetch=1))
    assert (batches, type(error)) == ([], LookupError)


@pytest.mark.parametrize("options", BOTH)
def test_errors_wait_for_the_loop(options: dict[str, Any]) -> None:
    """What is begun ahead of time fails when it is wanted."""

    def sampler() -> Iterator[list[int]]:
        raise LookupError("sampler")
        yield [0]

    loader = data.DataLoader([1, 2], batch_sampler=sampler(), auto_reload=True, **options)
    assert type(outcome(loader)[1]) is LookupError
    loader = data.DataLoader(Calls(lambda: os.kill(os.getpid(), 9)), 4, num_workers=2, auto_reload=True)
    time.sleep(0.2)
    assert isinstance(outcome(loader)[1], WorkerError)


def test_batches_that_cannot_be_sent() -> None:
    _, error = outcome(data.DataLoader([1, 2], 1, batchify_fn=lambda samples: lambda: samples, **PROCESSES))
    assert error is not None
    text = "".join(traceback.format_exception(error))
    assert "lambda" in text
    if sys.version_info >= (3, 11):
        assert "cannot be sent from a worker process" in text


# ---- workers that die or hang


def _die(number: int) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def _orphan() -> None:
    """Leave a child behind that holds copies of all pipes open, and die."""
    if os.fork() == 0:
        time.sleep(3)
        os._exit(0)
    os._exit(7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (_die(signal.SIGKILL), "was ended by SIGKILL while it had to make batch 2. Memory may have run out"),
        (_die(signal.SIGUSR1), "was ended by SIGUSR1 while it had to make batch 2. Has code in C crashed"),
        (_die(signal.SIGTERM), "was ended by SIGTERM"),
        (lambda: os._exit(3), "ended with exit status 3"),
        (lambda: os.closerange(3, 100), "worker process"),
        pytest.param(_orphan, "ended with exit status 7", marks=pytest.mark.filterwarnings("ignore::DeprecationWarning")),
    ],
)
def test_workers_that_die(call: Callable[[], None], message: str) -> None:
    loader = data.DataLoader(Calls(call), 4, **PROCESSES)
    for _ in range(2):
        start = time.monotonic()
        batches, error = outcome(loader)
        assert time.monotonic() - start < 4
        assert isinstance(error, RuntimeError)
        assert message in str(error)
        assert batches == [[0, 1, 2, 3], [4, 5, 6, 7]][: len(batches)]


def test_a_worker_that_is_killed_while_it_has_nothing_to_do() -> None:
    loader = data.DataLoader(list(range(8)), 2, **PROCESSES)
    assert len(list(loader)) == 4
    for process in multiprocessing.active_children():
        process.kill()
        process.join()
    assert isinstance(outcome(loader)[1], WorkerError)
    assert len(list(loader)) == 4


def test_other_passes_hear_of_a_death() -> None:
    loader = data.DataLoader(Calls(_die(signal.SIGKILL)), 2, prefetch=1, **PROCESSES)
    first, second = iter(loader), iter(loader)
    assert (next(first).asnumpy().tolist(), next(second).asnumpy().tolist()) == ([0, 1], [0, 1])
    with pytest.raises(WorkerError, match="SIGKILL"):
        list(first)
    with pytest.raises(WorkerError, match="SIGKILL"):
        list(second)


@pytest.mark.parametrize("options", BOTH)
def test_timeout(options: dict[str, Any]) -> None:
    wake = mmap.mmap(-1, 1)

    def hang() -> None:
        while not wake[0]:
            time.sleep(0.01)

    loader = data.DataLoader(Calls(hang), 4, timeout=0.2, **options)
    start = time.monotonic()
    batches, error = outcome(loader)
    assert 0.2 < time.monotonic() - start < 3
    assert len(batches) == 2
    assert isinstance(error, BatchTimeoutError)
    assert isinstance(error, (TimeoutError, RuntimeError))
    assert isinstance(error, multiprocessing.TimeoutError)
    assert "batch 2 was not there after 0.2 seconds" in str(error)
    assert "larger `timeout`" in str(error)
    wake[0] = 1
    assert outcome(loader)[1] is None


# ---- what is left behind: nothing (see the fixture)


@pytest.mark.parametrize("options", BOTH)
def test_loaders_that_are_dropped(options: dict[str, Any]) -> None:
    for _ in range(3):
        loader = data.DataLoader(np.ones((99, 100)), 8, **options)
        batches = iter(loader)
        next(batches)
        del loader
        next(batches)
        del batches
    assert multiprocessing.active_children() == []  # without the garbage collector's help


def test_an_error_keeps_no_processes() -> None:
    loader = data.DataLoader(Calls(raises(KeyError)), 4, **PROCESSES)
    with pytest.raises(KeyError):
        list(loader)
    gc.disable()
    try:
        del loader
        assert multiprocessing.active_children() == []
    finally:
        gc.enable()


def test_work_of_a_loop_that_was_left_is_not_done() -> None:
    made = mmap.mmap(-1, 100)

    def slow(x: int) -> int:
        time.sleep(0.02)
        made[x] += 1
        return x

    loader = data.DataLoader(data.SimpleDataset(range(30)).transform(slow), 1, num_workers=1, prefetch=20)
    assert next(iter(loader)).asscalar() == 0
    assert next(iter(loader)).asscalar() == 0
    assert sum(made[:]) < 10


@pytest.mark.parametrize("options", BOTH)
@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_prefetch_bounds_what_is_ahead(options: dict[str, Any], prefetch: int) -> None:
    made = mmap.mmap(-1, 100)

    def count(x: int) -> int:
        made[x] = 1
        return x

    batches = iter(data.DataLoader(data.SimpleDataset(range(60)).transform(count), 2, prefetch=prefetch, **options))
    for number in range(1, 6):
        next(batches)
        time.sleep(0.02)
        assert 2 * number <= sum(made[:]) <= 2 * (number + prefetch)
    batches.close()


def test_much_ahead() -> None:
    """More tasks, and larger ones, than a pipe holds."""
    indices = list(range(20_000)) * 2
    loader = data.DataLoader([0] * 20_000, batch_sampler=[indices] * 100, batchify_fn=len, num_workers=2, prefetch=100)
    assert list(loader) == [40_000] * 100
    loader = data.DataLoader([0] * 2000, 1, batchify_fn=lambda samples: "x" * 3000, num_workers=2, prefetch=2000)
    assert sum(len(text) for text in loader) == 3000 * 2000


# ---- threads and forks


@pytest.mark.parametrize("options", BOTH)
def test_threads_with_loaders(options: dict[str, Any]) -> None:
    """Threads that share a loader, each with a pass of its own, and threads with their own loaders."""
    shared = data.DataLoader(data.SimpleDataset(range(40)).transform(lambda x: x + 1), 3, **options)
    results: list[Any] = []

    def run(loader: data.DataLoader | None) -> None:
        for _ in range(3):
            results.append(outcome(loader or data.DataLoader(list(range(1, 41)), 3, **options)))

    threads = [threading.Thread(target=run, args=(shared if number < 3 else None,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    wanted = [list(range(low, min(low + 3, 41))) for low in range(1, 41, 3)]
    assert results == [(wanted, None)] * 15


def test_loaders_in_workers() -> None:
    def inner(**options: Any) -> Callable[[int], int]:
        return lambda x: sum(int(batch.sum().asscalar()) for batch in data.DataLoader(list(range(x)), 2, **options))

    for options in ({}, THREADS):
        loader = data.DataLoader(data.SimpleDataset([3, 4]).transform(inner(**options)), 2, num_workers=1)
        assert next(iter(loader)).asnumpy().tolist() == [3, 6]
    loader = data.DataLoader(data.SimpleDataset([3, 4]).transform(inner(num_workers=1)), 2, **THREADS)
    assert next(iter(loader)).asnumpy().tolist() == [3, 6]
    _, error = outcome(data.DataLoader(data.SimpleDataset([3]).transform(inner(num_workers=1)), 2, num_workers=1))
    assert "a worker process cannot have worker processes of its own" in str(error)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12: a fork beside other threads; it is what is tested
@pytest.mark.parametrize("options", BOTH)
def test_a_forked_child_has_workers_of_its_own(options: dict[str, Any]) -> None:
    loader = data.DataLoader(list(range(20)), 2, **options)
    batches = iter(loader)
    next(batches)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(20)
            try:
                list(batches)  # some may have arrived before
            except WorkerError as error:
                code = 0 if "fork" in str(error) and len(list(loader)) == 10 else 2
            del loader, batches
            gc.collect()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(batches)) == 9
    assert len(list(loader)) == 10


def test_workers_do_not_wait_for_threads_that_did_not_come_along() -> None:
    """A thread of the parent may hold the lock of NumPy's generator at the moment of the fork."""
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with np.random.get_bit_generator().lock:
            held.set()
            release.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    loader = data.DataLoader(data.SimpleDataset(range(4)).transform(lambda x: np.random.rand()), 2, num_workers=1, timeout=5)
    loader._workers()
    release.set()
    thread.join()
    assert len(list(loader)) == 2


def test_interrupt_while_waiting() -> None:
    pressed: list[bool] = []

    def interrupt(number: int, frame: Any) -> None:
        if not pressed:
            pressed.append(True)
            raise KeyboardInterrupt

    before, here = signal.signal(signal.SIGALRM, interrupt), os.getpid()

    def press() -> None:
        """In a worker, when the main thread has begun to wait."""
        time.sleep(0.1)
        os.kill(here, signal.SIGALRM)
        time.sleep(0.1)

    try:
        for options in BOTH:
            pressed.clear()
            loader = data.DataLoader(Calls(press, at=7, length=8), 4, **options)
            assert isinstance(outcome(loader)[1], KeyboardInterrupt)
            assert outcome(loader)[0] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    finally:
        signal.signal(signal.SIGALRM, before)


def test_without_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "memory_file", lambda: None)
    loader = data.DataLoader(np.ones((40, 1000, 100)), 10, num_workers=2, prefetch=4)
    assert [batch.sum().asscalar() for batch in loader] == [1_000_000] * 4


def test_copies_have_workers_of_their_own() -> None:
    loader = data.DataLoader(list(range(4)), 2, **PROCESSES)
    for made in (copy.copy(loader), pickle.loads(pickle.dumps(loader))):
        assert outcome(loader) == outcome(made) == ([[0, 1], [2, 3]], None)
        assert made._team is not loader._team


def test_starting_processes_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0

    def start(self: Any) -> None:
        nonlocal count
        count += 1
        if count > 1:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        original(self)

    original = multiprocessing.process.BaseProcess.start
    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", start)
    loader = data.DataLoader([1, 2, 3], 1, num_workers=3)
    with pytest.raises(WorkerError, match="of 3 worker processes, number 2 could not be started"):
        list(loader)
    monkeypatch.undo()
    assert len(list(loader)) == 3


def test_a_pass_hears_that_its_team_was_closed() -> None:
    wake = threading.Event()
    loader = data.DataLoader(Calls(wake.wait, at=1), 1, timeout=0.3, num_workers=1, thread_pool=True, prefetch=1)
    first = iter(loader)
    next(first)
    loader._timeout = 50
    errors: list[Any] = []
    thread = threading.Thread(target=lambda: errors.append(outcome(loader)))
    thread.start()
    with pytest.raises(BatchTimeoutError):
        next(first)
    thread.join(10)
    wake.set()
    assert isinstance(errors[0][1], WorkerError)


# ---- start methods


def test_start_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform == "linux":
        assert processes.start_method() == "fork"
    monkeypatch.setenv("MINIMX_WORKER_START", "spawn")
    assert processes.start_method() == "spawn"
    monkeypatch.setenv("MINIMX_WORKER_START", "quick")
    with pytest.raises(ValueError, match="choose one of"):
        processes.start_method()


def test_what_cannot_be_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINIMX_WORKER_START", "spawn")
    loader = data.DataLoader(data.SimpleDataset([1]).transform(lambda x: x), 1, num_workers=1)
    with pytest.raises(ValueError, match=r"started by 'spawn' here.*must be picklable.*lambda.*without lambda"):
        list(loader)


PROGRAM = """
import sys, os, time, signal, threading
import numpy as np, minimx as mx
from minimx import nd
from minimx.gluon import data
where = sys.argv[1]
class Images(data.Dataset):
    def __len__(self): return 40
    def __getitem__(self, index): return nd.full((100, 100), index), np.random.rand()
def main():
    threads = where.startswith("threads")
    loader = data.DataLoader(Images(), 4, num_workers=2, thread_pool=threads)
    for number, (x, noise) in enumerate(loader):
        assert x.asnumpy()[:, 0, 0].tolist() == [4 * number + i for i in range(4)]
        if "mid" in where and number == 2:
            sys.exit(0)
        if "error" in where and number == 2:
            raise SystemExit(0) from ValueError("in the loop")
    other = iter(data.DataLoader(Images(), 4, num_workers=1, thread_pool=threads))
    next(other)
    if "cycle" in where:
        mx.loop = [other]; mx.loop.append(mx.loop)
    print(len(loader))
if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("where", ["end", "mid", "error", "cycle", "threads", "threads mid"])
def test_programs_end_quietly(where: str) -> None:
    printed = script(PROGRAM, where, timeout=20)
    assert printed == ("" if "mid" in where or "error" in where else "10\n")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_programs_that_do_not_fork(method: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    environment = {**os.environ, "MINIMX_WORKER_START": method, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", file, "end"], env=environment, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.stderr == ""
    assert (done.returncode, done.stdout) == (0, "10\n")


INTERRUPTED = """
import os, sys, time, signal
from minimx.gluon import data
def slow(x):
    time.sleep(0.05)
    return x
loader = data.DataLoader(data.SimpleDataset(range(1000)).transform(slow), 2, num_workers=2)
for number, batch in enumerate(loader):
    if number == 2:
        from multiprocessing import active_children
        print(*(process.pid for process in active_children()), flush=True)
"""


def started(code: str) -> tuple[subprocess.Popen[str], list[int]]:
    """A program, in a terminal's process group of its own, that has printed the numbers of its workers."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    workers = [int(word) for word in process.stdout.readline().split()]
    if len(workers) != 2:
        process.kill()
        pytest.fail(process.communicate()[1])
    return process, workers


def test_ctrl_c_of_a_program() -> None:
    process, workers = started(INTERRUPTED)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert all(gone(worker) for worker in workers)


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="this system has no /proc")
def test_workers_end_with_a_parent_that_is_killed() -> None:
    process, workers = started(INTERRUPTED)
    process.kill()
    _, errors = process.communicate(timeout=20)
    assert all(gone(worker) for worker in workers)
    assert errors == ""
