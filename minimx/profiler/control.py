"""Starting, stopping and writing: the functions of `mx.profiler`, around the one recording of the process.

The profiler listens (engine/events.py, storage.py) exactly while it runs and is not paused; at all other times nothing in minimx
knows of it. A forked child begins without one, so that it cannot overwrite its parent's file. Source: MXNet `mxnet.profiler`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

from .. import storage
from ..base import ArgumentError, MXNetError, UnknownNameError, env_int, shown
from ..engine.events import watch
from ..engine.front import block_shortcuts
from ..engine.lanes import scheduler
from ..fields import converted
from ..files import as_path, replace_file
from .chrome import trace_file
from .log import Contents, Log, Mark, Sample
from .statistics import FORMATS, SORTS, Statistics

BITS = {"symbolic": 1, "imperative": 2, "api": 4, "memory": 8}  # of MXNET_PROFILER_MODE, from 2 on
PATIENCE = 10.0  # a continuous dump takes a tenth of the time at most


@dataclass(frozen=True)
class Config:
    """What `set_config` can set, with what holds before it is called."""

    filename: str = "profile.json"
    profile_symbolic: bool = True
    profile_imperative: bool = True
    profile_memory: bool = True
    profile_api: bool = True
    continuous_dump: bool = False
    dump_period: float = 1.0
    aggregate_stats: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the engine is to tell."""
        wanted = {
            "programs": self.profile_symbolic, "operators": self.profile_imperative, "waits": self.profile_api,
            "tasks": self.profile_symbolic or self.profile_imperative,
        }  # fmt: skip
        return tuple(kind for kind, is_wanted in wanted.items() if is_wanted)


class Profiler:
    """The one of the process. `lock` guards all fields; it is held while the profiler starts and stops, not while anything is recorded."""

    def __init__(self) -> None:
        self.config = Config()
        self.running = self.paused = False
        self.statistics = Statistics()
        self.log: Log | None = None  # since the last start after a finished one
        self.lock = threading.RLock()
        self.writing = threading.Lock()  # one file after the other, so that the newest stays
        self.listening: Log | None = None  # the log that hears of things now
        self.writer: Writer | None = None
        self.written: Any = None  # what the newest file holds
        self.at_exit = False  # is registered

    def settle(self) -> None:
        """Listen, or do not, as state and configuration say. The lock is held."""
        wanted = self.log if self.running and not self.paused else None
        before, self.listening = self.listening, wanted
        if before is not None:
            watch.remove(before.note)
            storage.watcher = None
            block_shortcuts(-1)
        if wanted is not None:
            block_shortcuts(1)
            if self.config.profile_memory:
                storage.watcher = wanted.note_memory
                wanted.begin_memory()
            watch.add(wanted.note, *self.config.kinds)
        wants_writer = wanted is not None and self.config.continuous_dump
        if self.writer is not None and not wants_writer:
            self.writer.stop.set()
            self.writer = None
        elif self.writer is None and wants_writer:
            self.writer = Writer()

    def note(self, entry: Sample | Mark) -> None:
        """Enter what a user's object tells, if the profiler listens."""
        log = self.listening
        if log is not None:
            log.note_other(entry)

    def contents(self) -> Contents | None:
        """What has been recorded; None if the profiler never ran."""
        log = self.log
        return None if log is None else log.contents()

    def clear_statistics(self) -> None:
        """Begin the tables anew with what happens from now on."""
        log = self.log
        if log is None:
            self.statistics.clear()
            return
        with log.lock:
            log.fold()
            self.statistics.clear()

    def write(self, only_news: bool = False) -> None:
        """Write the file. Raises MXNetError if the profiler never ran, and what the file system raises.

        `only_news`: not if nothing has been recorded since it was written last.
        """
        with self.writing:
            contents = self.contents()
            if contents is None:
                raise MXNetError("profiler.dump: the profiler has not run; call profiler.set_state('run') before the work")
            state = (self.config.filename, contents.begin, contents.count)
            if not only_news or state != self.written:
                replace_file(self.config.filename, trace_file(contents))
                self.written = state


class Writer:
    """A thread that writes the file again and again while the profiler runs."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._serve, name="minimx-profiler", daemon=True)
        with contextlib.suppress(RuntimeError):  # no threads here: the file is written when the profiler stops
            self.thread.start()

    def _serve(self) -> None:
        pause = profiler.config.dump_period
        while not self.stop.wait(pause):
            start = time.monotonic()
            try:
                profiler.write(only_news=True)
            except Exception as error:
                print(f"minimx: the profiler cannot write its file, and stops trying: {error}", file=sys.stderr)
                return
            pause = max(profiler.config.dump_period, PATIENCE * (time.monotonic() - start))


profiler = Profiler()


# ---- what users call


def set_config(**kwargs: Any) -> None:
    """Choose what is recorded, and where it is written. What is not given has its default again.

    **Args** `filename`: of the trace file, "profile.json". `profile_symbolic`: operators inside hybridized blocks and executors;
    `profile_imperative`: operators that are called one by one, and pushed functions; `profile_memory`: the bytes that arrays of 32 KiB and
    more take on each device; `profile_api`: calls that wait, such as `asnumpy` (each True), `profile_all`: all of these (False).
    `aggregate_stats`: keep the tables that `dumps` gives (False). `continuous_dump`: write the file every `dump_period` (1.0) seconds
    while the profiler runs (True); of a long recording less often, so that it takes a tenth of the time at most. `profile_process`:
    "worker", the only kind of process there is.
    **Raises** ArgumentError for anything else. **Source** MXNet `profiler.set_config`.
    """
    who = "profiler.set_config"
    known = ("profile_all", *Config.__dataclass_fields__, "profile_process")
    for key in kwargs:
        if key not in known:
            raise ArgumentError(f"{who}: there is no option {key!r}; the options are {', '.join(known)}")
    _check_process(who, kwargs.pop("profile_process", "worker"))
    given: dict[str, Any] = {"continuous_dump": True}
    for key, value in kwargs.items():
        if key == "filename":
            given[key] = as_path(value)
        else:
            given[key] = converted(who, key, "float" if key == "dump_period" else "bool", value)
    if given.pop("profile_all", False):
        given.update(dict.fromkeys((f"profile_{part}" for part in BITS), True))
    if given["continuous_dump"] and not 0 < given.get("dump_period", 1.0) < float("inf"):
        raise ArgumentError(f"{who}: dump_period is {given['dump_period']}; a number of seconds above 0 is wanted")
    with profiler.lock:
        before, profiler.config = profiler.config, Config(**given)
        if not before.aggregate_stats:
            profiler.clear_statistics()
        profiler.settle()


def _check_process(who: str, process: Any) -> None:
    """Raise ArgumentError for a process that there is not."""
    if process == "server":
        raise ArgumentError(
            f"{who}: profile_process='server': minimx has no servers, as its processes talk to each other directly; run the "
            "profiler in each of them, with a filename of its own"
        )
    if process != "worker":
        raise UnknownNameError(f"{who}: profile_process is {shown(process)}; 'worker' is the only kind of process")


def set_state(state: str = "stop", profile_process: str = "worker") -> None:
    """Start recording ("run"), or wait for the work that is queued and stop ("stop").

    After a finished `dump` a start begins a new recording; otherwise it goes on with the old one.
    **Raises** UnknownNameError (a KeyError, as in MXNet) for another word. **Source** MXNet `profiler.set_state`, which stops at once.
    """
    _check_process("profiler.set_state", profile_process)
    if state not in ("run", "stop"):
        raise UnknownNameError(f"profiler.set_state: state is {shown(state)}; choose 'run' or 'stop'")
    if state == "run":
        _run()
    else:
        _stop()


def _run() -> None:
    with profiler.lock:
        if profiler.log is None or profiler.log.finished:
            profiler.log = Log(profiler.statistics)
        profiler.running, profiler.paused = True, False
        profiler.settle()
        if not profiler.at_exit:
            profiler.at_exit = True
            atexit.register(_at_exit)


def _stop() -> None:
    if not profiler.running:
        return
    log = profiler.listening
    if log is not None and not scheduler.inside():
        watch.add(log.note, *(kind for kind in profiler.config.kinds if kind != "waits"))  # this wait is the profiler's own
        scheduler.drain()
    with profiler.lock:
        profiler.running = False
        profiler.settle()
    if profiler.config.continuous_dump and log is not None and not log.finished:
        profiler.write()


def pause(profile_process: str = "worker") -> None:
    """Record nothing until `resume`. Does not wait: work that is queued already is not recorded either, if it runs later."""
    _check_process("profiler.pause", profile_process)
    with profiler.lock:
        profiler.paused = True
        profiler.settle()


def resume(profile_process: str = "worker") -> None:
    """Go on recording after `pause`. It does not start a profiler that has been stopped."""
    _check_process("profiler.resume", profile_process)
    with profiler.lock:
        profiler.paused = False
        profiler.settle()


def dump(finished: bool = True, profile_process: str = "worker") -> None:
    """Write all that was recorded as a trace file, for chrome://tracing and ui.perfetto.dev.

    The file is written whole or not at all, and can be read at any time. **Args** `finished`: stop the profiler first, and let its next
    start begin a new recording.
    **Raises** MXNetError if the profiler never ran; MissingFileError if the file's folder is not there. **Source** MXNet `profiler.dump`.
    """
    _check_process("profiler.dump", profile_process)
    finished = converted("profiler.dump", "finished", "bool", finished)
    log = profiler.log
    if finished and log is not None:
        log.finished = True
        _stop()
    profiler.write()


def dumps(reset: bool = False, format: str = "table", sort_by: str = "total", ascending: bool = False) -> str:
    """Statistics of what was recorded: for each operator how often it ran, and its total, least, largest and mean time.

    **Args** `reset`: begin the statistics anew. `format`: "table", or "json": {"Time": {"operator": {name: {"Count": ..}}}, "Memory": ..,
    "Unit": ..}. `sort_by`: "total", "avg", "min", "max" or "count", the largest first unless `ascending`.
    **Returns** text; an empty one, with a warning, if set_config was not told to keep statistics. **Raises** ArgumentError.
    **Source** MXNet `profiler.dumps`.
    """
    who = "profiler.dumps"
    reset, ascending = converted(who, "reset", "bool", reset), converted(who, "ascending", "bool", ascending)
    for name, value, choices in (("format", format, FORMATS), ("sort_by", sort_by, SORTS)):
        if not isinstance(value, str) or value not in choices:
            raise ArgumentError(f"{who}: {name} is {shown(value)}; choose one of {', '.join(choices)}")
    if not profiler.config.aggregate_stats:
        warnings.warn(f"{who}: there are no statistics; call set_config(aggregate_stats=True) before the work", stacklevel=2)
        return ""
    log = profiler.log or Log(profiler.statistics)
    with log.lock:
        log.fold()
        make = profiler.statistics.table if format == "table" else profiler.statistics.json
        text = make(sort_by, ascending)
        if reset:
            profiler.statistics.clear()
    return text


# ---- deprecated names


def profiler_set_config(mode: str = "symbolic", filename: str = "profile.json") -> None:
    """`set_config(filename=filename)`, as it was once called. **Args** `mode`: "symbolic", "imperative", "api", "memory" or "all"."""
    warnings.warn("profiler.profiler_set_config is deprecated; call profiler.set_config", stacklevel=2)
    if mode not in (*BITS, "all"):
        raise ArgumentError(f"profiler_set_config: mode is {shown(mode)}; choose one of {', '.join(BITS)}, all")
    set_config(**{f"profile_{mode}": True, "filename": filename})


def profiler_set_state(state: str = "stop") -> None:
    """`set_state`, as it was once called."""
    warnings.warn("profiler.profiler_set_state is deprecated; call profiler.set_state", stacklevel=2)
    set_state(state)


def dump_profile() -> None:
    """`dump`, as it was once called."""
    warnings.warn("profiler.dump_profile is deprecated; call profiler.dump", stacklevel=2)
    dump(True)


# ---- the process


def _at_exit() -> None:
    """Write what a program that ends without `dump` has recorded, if it still runs."""
    if profiler.running and profiler.log is not None:
        try:
            dump()
        except Exception as error:
            print(f"minimx: at exit, the profiler cannot write its file: {error}", file=sys.stderr)


def _after_fork_in_child() -> None:
    if profiler.listening is not None:
        watch.remove(profiler.listening.note)
        block_shortcuts(-1)
    storage.watcher = None
    profiler.__init__()  # type: ignore[misc]  # a new one, with locks that nobody holds


def autostart() -> None:
    """Start if the environment says so: MXNET_PROFILER_AUTOSTART=1. The file is written when the program ends.

    MXNET_PROFILER_MODE says what is recorded: 0 operators in graphs only, 1 (the default here) everything, and from 2 on the sum of 1 for
    operators in graphs, 2 for those called one by one, 4 for calls that wait, 8 for memory. Processes that multiprocessing has made do not
    start: they would write to the same file.
    """
    mode = env_int("MXNET_PROFILER_MODE", 1, 0, 15)
    bits = {0: BITS["symbolic"], 1: 15}.get(mode, mode)
    wanted: dict[str, Any] = {f"profile_{part}": bool(bits & bit) for part, bit in BITS.items()}
    profiler.config = replace(profiler.config, **wanted)
    if env_int("MXNET_PROFILER_AUTOSTART", 0, 0, 1):
        processes = sys.modules.get("multiprocessing.process")
        if processes is None or processes.parent_process() is None:
            _run()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
autostart()
