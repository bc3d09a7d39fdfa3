"""The book's scoreboard: one LeNet on the same images, trained and asked in the manner of each chapter, and how long that takes.

    runs = scoreboard.race({"by hand": make_by_hand, "hybridized": make_hybridized})
    scoreboard.add("hybridized", runs["hybridized"])
    scoreboard.show()

A *manner* is a function without arguments that makes everything anew and returns a step: `step(X, y)` gives the mean loss of a training
step, or the scores of an answer. `race` runs manners by turns over the same batches; a row of the board has to compute what chapter 1
computes, or `add` refuses it. Rows are kept in a folder of the user's, a file a chapter, so that chapters may run in any order and at
the same time. A row that was measured on another machine, or with another version of minimx, counts as missing; the table then names
the chapter that makes it. Book: a section near the end of each chapter, and all rows in chapter 12.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl

from .. import engine, nd
from ..base import ArgumentError, shown
from ..files import replace_file
from ..kernels import choice as kernel_choice
from .datasets import cache_folder
from .network import BATCH, lenet, lenet_batches, lenet_params, lenet_step

TRAINING = f"a training step of {BATCH} images"
ANSWER = f"the scores of {BATCH} images"
TOLERANCE = 1e-3  # of losses near 2, after ten steps in float32 whose sums are added in different orders
ROUNDS = 5
PATIENCE = 4.0  # seconds after which a race on a busy machine ends, if every manner has had two rounds
NAME_WIDTH = 30  # of the table's column


class Row(NamedTuple):
    """A row that the book makes: what is timed, in which chapter, and whether the time is computed from a model, not measured."""

    name: str
    what: str
    chapter: int
    computed: bool = False


#: All rows, in the order of the table. The first of its kind is what gains are reckoned from.
ROWS = (
    Row("by hand, waiting", TRAINING, 1),
    Row("by hand, never waiting", TRAINING, 2),
    Row("symbol and executor", TRAINING, 3),
    Row("hybridized", TRAINING, 4),
    Row("one program, static memory", TRAINING, 5),
    Row("simulated GPU, copies ahead", TRAINING, 7),
    Row("the roofline of one core", TRAINING, 8, computed=True),
    Row("two GPUs by hand", TRAINING, 9),
    Row("two GPUs with Gluon", TRAINING, 10),
    Row("two V100s, simulated", TRAINING, 11, computed=True),
    Row("other kernels", TRAINING, 12),
    Row("asked by hand", ANSWER, 1),
    Row("exported and loaded", ANSWER, 6),
    Row("asked, other kernels", ANSWER, 12),
    Row("a backend of our own", ANSWER, 13),
)
BY_NAME = {row.name: row for row in ROWS}

Step = Callable[[Any, Any], Any]
unwritten: dict[str, float] = {}  # rows for which there is no file, because the folder cannot be written


class Run(NamedTuple):
    """What a manner did in its best round: the losses or scores of each batch, and the seconds of one."""

    seconds: float  # until it is computed
    written: float  # until the step has returned
    results: np.ndarray[Any, np.dtype[Any]]


def race(manners: Mapping[str, Callable[[], Step]], rounds: int = ROUNDS, kernels: str = "numpy") -> dict[str, Run]:
    """Run all manners by turns over the same batches, and keep the best round of each.

    Each round makes a manner anew, so that every one begins with the same weights. The first batch, at which programs are compiled,
    is not timed; the clock stops when all arrays are there. A product of matrices gets one core, which is enough for those of LeNet;
    threads that wait for each other would make a busy machine many times slower.
    **Args** manners: by name, functions that return a step. rounds: at least 1, and fewer than wanted where they take long.
    kernels: whose, as in `minimx.kernels.set`; the operators' own, so that rows differ in nothing but the manner, until chapter 12
    brings others.
    **Raises** ArgumentError where there is no manner or no round; whatever a step raises.
    """
    if not manners or rounds < 1:
        raise ArgumentError(f"race: {len(manners)} manners in {rounds} rounds; give at least one of each")
    batches = lenet_batches()
    best: dict[str, Run] = {}
    end = time.perf_counter() + PATIENCE
    with _kernels(kernels), threadpoolctl.threadpool_limits(1):
        for number in range(rounds):
            if number >= 2 and time.perf_counter() > end:
                break
            for name, make in manners.items():
                run = _run(make(), batches)
                if name not in best or run.seconds < best[name].seconds:
                    best[name] = run
    return best


@contextlib.contextmanager
def _kernels(choice: str) -> Iterator[None]:
    """Kernels of this choice, and afterwards those of before."""
    before = kernel_choice.set(choice)
    try:
        yield
    finally:
        kernel_choice.set(before)


def _run(step: Step, batches: list[tuple[Any, Any]]) -> Run:
    """One pass over the batches, whose results are read after the clock has stopped."""
    (X, y), *rest = batches
    results = [step(X, y)]
    nd.waitall()
    start = time.perf_counter()
    results += [step(X, y) for X, y in rest]
    returned = time.perf_counter()
    nd.waitall()
    done = time.perf_counter()
    values = np.stack([np.asarray(_as_numpy(each), "float64").reshape(-1) for each in results])
    return Run((done - start) / len(rest), (returned - start) / len(rest), values)


def _as_numpy(value: Any) -> Any:
    return value.asnumpy() if hasattr(value, "asnumpy") else value


@functools.cache
def expected(what: str) -> np.ndarray[Any, np.dtype[Any]]:
    """The losses or scores that every row has to have: those of chapter 1's functions, with the engine taken away."""
    params = lenet_params()

    def train(X: Any, y: Any) -> Any:
        return lenet_step(params, X, y)

    with engine.naive(), _kernels("numpy"):
        return _run(train if what == TRAINING else lambda X, y: lenet(X, params), lenet_batches()).results


def add(name: str, run: Run | float) -> None:
    """Keep a row: a Run of `race`, or, in the rows that are computed from a model, the seconds.

    **Raises** ArgumentError for a name that is not in `ROWS`; for results that are not those of chapter 1; for a number of seconds
    where a Run is wanted, or that is none.
    """
    row = BY_NAME.get(name) if isinstance(name, str) else None
    if row is None:
        raise ArgumentError(f"scoreboard.add: there is no row {shown(name)}; the rows are {', '.join(BY_NAME)}")
    if row.computed != isinstance(run, (int, float)):
        wanted = "the seconds that the model computed" if row.computed else "a Run, as race() returns it"
        raise ArgumentError(f"scoreboard.add({name!r}): {wanted} is wanted, got {shown(run)}")
    seconds = run.seconds if isinstance(run, Run) else float(run)
    if not 0 < seconds < math.inf:
        raise ArgumentError(f"scoreboard.add({name!r}): {seconds} seconds is no time")
    if isinstance(run, Run):
        _compare(name, run.results, expected(row.what))
    path = _path(row.chapter)
    kept = _read(path) | {name: seconds}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, [json.dumps({"where": _where(), "rows": kept}).encode()])
        unwritten.pop(name, None)
    except OSError as error:
        unwritten[name] = seconds
        print(f"{name}: kept until this program ends, since {path} cannot be written ({error.strerror})")


def _compare(name: str, results: Any, wanted: Any) -> None:
    """Raise ArgumentError unless a run computed what it should."""
    if results.shape != wanted.shape:
        raise ArgumentError(f"scoreboard.add({name!r}): results of shape {results.shape}, wanted {wanted.shape}")
    off = np.abs(results - wanted).max(axis=1)
    if not (off <= TOLERANCE).all():
        batch = int(np.argmax(~(off <= TOLERANCE)))
        raise ArgumentError(
            f"scoreboard.add({name!r}): at batch {batch} the results are {off[batch]:.2g} from those of chapter 1; "
            "a row has to train the same network on the same batches"
        )


def rows() -> dict[str, float]:
    """The rows that were measured on this machine, by name, in seconds, in the order of `ROWS`."""
    chapters = {row.chapter for row in ROWS}
    found = {name: seconds for chapter in chapters for name, seconds in _read(_path(chapter)).items()} | unwritten
    return {row.name: found[row.name] for row in ROWS if row.name in found}


def show() -> None:
    """Print the table: milliseconds, and the gain over the first row of its kind. A missing row names the chapter that makes it."""
    found = rows()
    for what in (TRAINING, ANSWER):
        kind = [row for row in ROWS if row.what == what]
        first = found.get(kind[0].name, math.nan)
        print(f"{what + ', chapter':{NAME_WIDTH + 6}}{'ms':>8}{'gain':>7}")
        for row in kind:
            head = f"{row.name:{NAME_WIDTH}}{row.chapter:6}"
            if row.name in found:
                gain = f"{first / found[row.name]:7.2f}" if kind[0].name in found else f"{'':7}"
                print(f"{head}{found[row.name] * 1e3:8.3f}{gain}{'  (computed)' if row.computed else ''}")
            else:
                print(f"{head}       -  run chapter {row.chapter}")


def folder() -> Path:
    """Where the rows are kept: `scoreboard` in the folder that MINIMX_HOME names, or in ~/.cache/minimx."""
    return cache_folder().parent.parent / "scoreboard"


def _path(chapter: int) -> Path:
    """The file of a chapter, which only that chapter writes."""
    return folder() / f"chapter-{chapter:02}.json"


@functools.cache
def _where() -> str:
    """What has to be equal for two rows to be comparable."""
    try:
        version = importlib.metadata.version("minimx")
    except importlib.metadata.PackageNotFoundError:  # it runs from its sources
        version = "of the sources"
    return f"{platform.node()}, {os.cpu_count()} cores, minimx {version}"


def _read(path: Path) -> dict[str, float]:
    """The rows in a file; none if it is missing, damaged, or from elsewhere."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        if kept["where"] != _where():
            return {}
        return {str(name): float(seconds) for name, seconds in kept["rows"].items() if name in BY_NAME and seconds > 0}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
