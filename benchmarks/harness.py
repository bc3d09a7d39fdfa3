"""How a workload is measured: every peer in a process of its own, taking turns, medians of several rounds.

A workload is a file beside this one that makes a `Workload` and enters a function for each peer and variant of it with `@work.peer(...)`.
The function does set-up and warm-up, and returns another that does one unit of work and returns {metric: seconds}; a metric that ends in
"(ratio)" has no unit. A peer that cannot be imported is left out, and said to be. `Bar` is what minimx is held to.

    python benchmarks/w2_dispatch.py                              one workload, with the peers of this interpreter
    python benchmarks/w2_dispatch.py --python mxnet=PATH/python   an interpreter of its own for one of them
    python benchmarks/run.py                                      all workloads; see there
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Unit = Callable[[], dict[str, float]]
now = time.perf_counter

SETUP = 400  # seconds that a peer may take for set-up: PyTorch and JAX compile
FILES = "MINIMX_BENCH_FILES"  # names the folder of files that a workload prepared for its peers


def timed(function: Callable[[], Any]) -> float:
    """Seconds that one call takes."""
    start = now()
    function()
    return now() - start


def prepared(name: str) -> str:
    """Path of a file that the workload prepared. Raises ImportError where it could not, so that the peer is left out."""
    path = Path(os.environ[FILES], name)
    if not path.exists():
        raise ImportError(f"{name} could not be written")
    return str(path)


@dataclass(frozen=True)
class Bar:
    """minimx takes at most `limit` times what others take, or, with `absolute`, at most `limit` itself.

    `variants` are those of minimx that count, `against` the peers (with or without variant) that do; all frameworks, if nothing is said:
    a program in NumPy by hand is shown, and counts where a bar names it.
    """

    metric: str
    limit: float
    variants: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    absolute: bool = False


@dataclass
class Row:
    """What was measured of a metric of one peer: seconds of each round, and the most memory that its process had, in MB."""

    workload: str
    metric: str
    peer: str
    variant: str
    samples: list[float]
    memory: float

    @property
    def title(self) -> str:
        return f"{self.peer} {self.variant}".strip()

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


@dataclass
class Workload:
    """A workload: its file, what it is in a few words, what minimx is held to; `quick` ones are those for a classroom."""

    file: str
    title: str
    bars: tuple[Bar, ...] = ()
    quick: bool = False
    setups: dict[tuple[str, str], tuple[Callable[[], Unit], dict[str, str]]] = field(default_factory=dict)
    prepare: Callable[[Path], None] | None = None

    @property
    def name(self) -> str:
        """W6 of the file w6_mlp_step.py."""
        return Path(self.file).stem.split("_")[0].upper()

    def peer(self, name: str, variant: str = "", **environment: str) -> Callable[[Callable[[], Unit]], Callable[[], Unit]]:
        """Decorator: the set-up of a peer's variant, and variables of the environment that it needs."""

        def enter(setup: Callable[[], Unit]) -> Callable[[], Unit]:
            self.setups[name, variant] = (setup, environment)
            return setup

        return enter

    def files(self, function: Callable[[Path], None]) -> Callable[[Path], None]:
        """Decorator: what writes the files that `prepared` finds, into a folder, with minimx, before the peers start."""
        self.prepare = function
        return function

    def main(self) -> None:
        """The command line of the workload's file."""
        if sys.argv[1:2] == ["--serve"]:
            self._serve(*sys.argv[2:4])
        else:
            import run

            run.main([self.name, *sys.argv[1:]])

    def _serve(self, name: str, variant: str) -> None:
        """The process of a peer: set up, say so, then measure for so many seconds as each line on standard input says."""
        try:
            unit = self.setups[name, variant][0]()
            unit()
        except ImportError as error:
            print(json.dumps({"absent": str(error)}), flush=True)
            return
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            samples: list[dict[str, float]] = []
            start = now()
            while not samples or (now() - start < float(line) and len(samples) < 20):
                samples.append(unit())
            medians = {key: statistics.median(sample[key] for sample in samples) for key in samples[0]}
            print(json.dumps({"metrics": medians, "memory": peak_memory()}), flush=True)


def peak_memory() -> float:
    """The most memory that this process has had, in MB; 0 where the system does not say."""
    try:
        with open("/proc/self/status") as file:  # getrusage would count what the parent had before it became this program
            return next(int(line.split()[1]) / 1e3 for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        pass
    if sys.platform == "win32":
        return windows_peak_memory()
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1e6 if sys.platform == "darwin" else 1e3)


def windows_peak_memory() -> float:
    """The same by Windows' PROCESS_MEMORY_COUNTERS: two numbers of 32 bits, and eight sizes, of which the first is the peak."""
    counters = (ctypes.c_size_t * 9)()
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]  # on Windows
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    kernel.K32GetProcessMemoryInfo.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
    found = kernel.K32GetProcessMemoryInfo(kernel.GetCurrentProcess(), ctypes.byref(counters), ctypes.sizeof(counters))
    return counters[1] / 1e6 if found else 0.0


class Peer:
    """A live process that measures when it is asked to."""

    def __init__(self, work: Workload, name: str, variant: str, interpreter: str, folder: str) -> None:
        self.name, self.variant = name, variant
        self.title = f"{name} {variant}".strip()
        self.rows: dict[str, Row] = {}
        self._work = work
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed by `close`; a pipe that nobody reads may fill up
        self._process = subprocess.Popen(
            [interpreter, work.file, "--serve", name, variant],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **work.setups[name, variant][1], FILES: folder},
        )
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Hand on what the process writes, and an empty line at its end. In a thread: Windows cannot wait for a pipe with a limit."""
        assert self._process.stdout is not None
        with self._process.stdout as stdout:
            for line in stdout:
                self._lines.put(line)
        self._lines.put("")

    def answer(self, seconds: float) -> dict[str, Any]:
        """The next line of JSON. A peer that dies or stays silent for `seconds` gives {"absent": why}."""
        end = now() + seconds
        while True:
            try:
                line = self._lines.get(timeout=max(end - now(), 0))
            except queue.Empty:
                return {"absent": f"no answer in {seconds} s"}
            if line.startswith("{"):
                return json.loads(line)  # type: ignore[no-any-return]  # what `_serve` prints
            if not line:
                status = self._process.wait()
                self._errors.seek(0)
                return {"absent": (self._errors.read().strip().splitlines() or [f"it ended with status {status}"])[-1]}

    def measure(self, seconds: float) -> str:
        """Let it measure for so long. Returns why it could not, or an empty string."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has died, and `answer` says of what
        answer = self.answer(120)
        for metric, each in answer.get("metrics", {}).items():
            row = self.rows.setdefault(metric, Row(self._work.name, metric, self.name, self.variant, [], 0.0))
            row.samples.append(each)
            row.memory = answer["memory"]
        return str(answer.get("absent", ""))

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # what it was not told any more
            self._process.stdin.close()
        self._reader.join(5)  # a process that the peer left behind may hold the other end
        self._errors.close()


def measure(
    work: Workload, wanted: list[tuple[str, str]], interpreters: dict[str, str], rounds: int, seconds: float,
    tell: Callable[[str], None], limit: float = math.inf,
) -> list[Row]:  # fmt: skip
    """Measure variants of peers in turns, `seconds` a turn; `tell` hears, in words, of each step.

    All are set up at the same time, and then one measures while the others wait. One that fails is left out. After `limit` seconds,
    set-up included, no further round of turns begins; one there always is.
    """
    peers: list[Peer] = []
    begun = now()
    with tempfile.TemporaryDirectory() as folder:
        try:
            if work.prepare is not None:
                try:
                    work.prepare(Path(folder))
                except Exception as error:
                    tell(f"its files: left out ({error})")
            for name, variant in wanted:
                peers.append(Peer(work, name, variant, interpreters.get(name, sys.executable), folder))
            live = []
            for peer in peers:
                why = peer.answer(SETUP).get("absent", "")
                if not why:
                    live.append(peer)
                tell(f"{peer.title}: left out ({why})" if why else f"{peer.title} is set up")
            for turn in range(rounds):
                if turn and now() - begun > limit:
                    break
                start = turn % max(len(live), 1)
                for peer in live[start:] + live[:start]:
                    why = peer.measure(seconds)
                    if why:
                        live.remove(peer)
                        peer.rows.clear()
                    tell(f"{peer.title}: left out ({why})" if why else peer.title)
            return [row for peer in live for row in peer.rows.values()]
        finally:
            for peer in peers:
                peer.close()
