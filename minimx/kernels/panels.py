"""Products of matrices as loops in machine code: a whole product, and one of a few rows as a part of a longer loop.

A recurrent layer multiplies its state with the same weights at each step, and between two such products stands what the gates do. A call
of BLAS for each would cost more than its arithmetic: it has to arrange the weights anew, and to wake its threads. So the product is written
into the loop of the steps (recurrent_loops.py). BLAS would be as good for the few large products after them; but its threads wait for more
work for some milliseconds, turning round and round, on the cores where the next loop should run. So those are here, too.

The right factor is arranged beforehand in *panels* of as many columns as fit in registers: first row 0 of a panel, then its row 1, and so
on. The innermost loop takes a row of a panel and `ROWS` numbers of the left factor, and adds their products to `ROWS` times `VECTORS`
registers, each of `LANES` sums. A whole product first copies a block of the left factor, as large as half a second-level cache, in the
order in which the innermost loop reads it. Book: chapter 5.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..op import Array, beside, share_out
from . import machine, threads

# Half or more of the registers are sums: enough that each addition is done when its next one comes. AVX-512 has 32, AVX2 16.
ROWS, VECTORS, LANES = (4, 4, 16) if machine.is_wide() else (4, 3, 8)
WIDTH = VECTORS * LANES
# Rows and columns of a block of the left factor; no power of 2, so that its tiles do not share their places in caches.
TALL, DEEP = 128, 500
VECTOR = f"float{LANES}"
NS_PER_PRODUCT = 0.012  # on one core
NS_PER_NUMBER = 0.5  # to arrange it


def panels(columns: int) -> int:
    """In how many panels so many columns lie."""
    return -(-columns // WIDTH)


def shares(units: int, least: int, nanoseconds: float) -> list[tuple[int, int]]:
    """The parts in which threads do so many units, each but the last a multiple of `least`: one if there is little work."""
    whole = math.ceil(units / least)
    each = math.ceil(whole / threads.share(nanoseconds)) * least
    return [(low, min(low + each, units)) for low in range(0, units, each)]


class Job(NamedTuple):
    """A run of a loop: what it is given, by name, and in what parts it is done."""

    given: dict[str, Any]  # arrays and numbers
    bounds: list[tuple[int, int]]
    scratch: dict[str, int]  # arrays that each part has for itself, of so many numbers


class Loop:
    """A loop in machine code: a function of arrays of float32, or int64, of floats and of whole numbers, by their names."""

    def __init__(
        self, arrays: Sequence[str], lengths: Sequence[str], body: Sequence[str], numbers: Sequence[str] = (), before: str = ""
    ) -> None:
        self.arrays, self.numbers, self.lengths = tuple(arrays), tuple(numbers), (*lengths, "low", "high")
        parameters = [f"{'long' if name == 'ends' else 'float'} *{name}" for name in arrays]
        parameters += [f"float {name}" for name in numbers] + [f"long {name}" for name in self.lengths]
        self.source = f"{before}\n" + indented([f"void loop({', '.join(parameters)}) {{", *body, "}"])
        kinds = [machine.POINTER] * len(arrays) + [machine.NUMBERS["float32"]] * len(self.numbers)
        self.code = machine.code_of(self.source, (*kinds, *[machine.LONG] * len(self.lengths)))

    def is_compiled(self) -> bool:
        """Whether it can be called. It waits for that."""
        machine.wait(self.code)
        return self.code.function is not None

    def __call__(self, *jobs: Job) -> None:
        """Run all parts of the jobs, at once as far as there are cores."""
        parts = [(place / len(job.bounds), job, *bounds) for job in jobs for place, bounds in enumerate(job.bounds)]
        parts.sort(key=lambda part: part[0])  # each thread has a part of each job
        if len(parts) == len(jobs):  # too little to wake a thread for
            self._run(parts)
        else:
            share_out(parts, self._run)

    def _run(self, parts: list[tuple[float, Job, int, int]]) -> None:
        """Some parts, in the calling thread."""
        for _, job, low, high in parts:
            scratch = {name: np.empty(size, np.float32) for name, size in job.scratch.items()}
            given = {**job.given, **scratch, "low": low, "high": high}
            pointers = [machine.address(given[name]) for name in self.arrays]
            self.code.function(*pointers, *[given[name] for name in (*self.numbers, *self.lengths)])


def indented(lines: Sequence[str]) -> str:
    """Lines as a text, in which blocks stand further right."""
    depth, text = 0, []
    for line in lines:
        depth -= line.startswith("}")
        text.append("    " * depth + line)
        depth += line.endswith("{")
    return "\n".join(text) + "\n"


# ---- arranging the right factor


@functools.cache
def _packing(transposed: bool) -> Loop:
    """`w`: panels `low` to `high` of a matrix (inner, columns), whose rows are `step` numbers apart; if transposed, its columns."""
    copy = f"w[(panel * inner + k) * {WIDTH} + i] = b[{place('k', f'(panel * {WIDTH} + i)', transposed)}];"
    body = [
        "for (long panel = low; panel < high; panel++) {", f"long width = columns - panel * {WIDTH};",
        f"for (long n = 0; n < (width < {WIDTH} ? 0 : 1); n++) {{",  # an `if`: a row of a whole panel has a constant length
        "for (long k = 0; k < inner; k++) {", f"for (long i = 0; i < {WIDTH}; i++) {{", copy, "}", "}", "}",
        f"for (long n = 0; n < (width < {WIDTH} ? 1 : 0); n++) {{",
        "for (long k = 0; k < inner; k++) {", "for (long i = 0; i < width; i++) {", copy, "}",
        f"for (long i = width; i < {WIDTH}; i++) {{", f"w[(panel * inner + k) * {WIDTH} + i] = 0.0f;", "}", "}", "}", "}",
    ]  # fmt: skip
    return Loop(("b", "w"), ("inner", "columns", "step"), body)


def place(row: str, column: str, transposed: bool) -> str:
    """Where an element of a matrix is, of which `step` says how far rows, or columns, are from each other."""
    return f"{column} * step + {row}" if transposed else f"{row} * step + {column}"


def laid(matrix: Array) -> tuple[Array, int, bool]:
    """A matrix with rows or columns of numbers that follow each other, how far those are apart, and whether it is columns."""
    (rows, columns), (down, along) = matrix.shape, matrix.strides
    if along == 4 or columns == 1:
        return matrix, down // 4, False
    return (matrix, along // 4, True) if down == 4 or rows == 1 else (np.ascontiguousarray(matrix), columns, False)


def packed(*matrices: Array) -> list[Array]:
    """Each matrix (K, columns) as panels, (panels, K, WIDTH); columns that are missing at the end are 0."""
    results = [beside(np, each, (panels(each.shape[1]), len(each), WIDTH), np.float32) for each in matrices]
    arrange(matrices, results)
    return results


def arrange(matrices: Sequence[Array], results: Sequence[Array]) -> None:
    """Write each matrix as panels into its result."""
    jobs: dict[bool, list[Job]] = {}
    for matrix, result in zip(matrices, results):
        array, step, transposed = laid(matrix)
        given = {"b": array, "w": result, "inner": len(array), "columns": array.shape[1], "step": step}
        jobs.setdefault(transposed, []).append(Job(given, shares(len(result), 1, NS_PER_NUMBER * matrix.size), {}))
    for transposed, listed in jobs.items():
        _packing(transposed)(*listed)


# ---- products


def product(source: str, weights: str, target: str, inner: str, count: str, rows: str = "(high - low)") -> list[str]:
    """Lines that write the product of so many rows with `count` panels into `target`, whose rows are as long as all panels.

    **Args** `source`: an element of the left factor, in terms of `{row}`, which counts from 0, and of `k`, which goes up to `inner`.
    """
    place = f"{target}[({{row}} * {count} + panel) * {WIDTH} + {{at}} : {LANES}]"
    lines = [f"for (long panel = 0; panel < {count}; panel++) {{"]
    for tall, number, first in tiles(rows):
        factor = [source.format(row=f"({first} + {row})") for row in range(tall)]
        places = [place.format(row=f"({first} + {row})", at="{at}") for row in range(tall)]
        lines += [f"for (long tile = 0; tile < {number}; tile++) {{"]
        lines += _tile(factor, f"{weights}[(panel * {inner} + k) * {WIDTH}", places, inner, "") + ["}"]
    return [*lines, "}"]


def tiles(rows: str) -> list[tuple[int, str, str]]:
    """How rows are taken: so many at a time, how often, and the first of the tile `tile`."""
    return [(ROWS, f"{rows} / {ROWS}", f"tile * {ROWS}"), (1, f"{rows} % {ROWS}", f"{rows} / {ROWS} * {ROWS} + tile")]


def _tile(factor: Sequence[str], weight: str, places: Sequence[str], inner: str, before: str) -> list[str]:
    """Lines for a tile: sums of `inner` products, which begin with what is at their `places` where `before` is true."""
    lines = []
    sums = [(row, vector, place.format(at=vector * LANES)) for row, place in enumerate(places) for vector in range(VECTORS)]
    for row, vector, place in sums:
        zero = f"{VECTOR}(0.0f)"
        lines.append(f"{VECTOR} sum{row}_{vector} = {f'{before} ? {place} : {zero}' if before else zero};")
    lines.append(f"for (long k = 0; k < {inner}; k++) {{")
    lines += [f"{VECTOR} w{vector} = {weight} + {vector * LANES} : {LANES}];" for vector in range(VECTORS)]
    for row, each in enumerate(factor):
        lines.append(f"{VECTOR} x{row} = {VECTOR}({each});")
        lines += [f"sum{row}_{vector} = fma(x{row}, w{vector}, sum{row}_{vector});" for vector in range(VECTORS)]
    return [*lines, "}", *[f"{place} = sum{row}_{vector};" for row, vector, place in sums]]


@functools.cache
def _multiplying(transposed: bool) -> Loop:
    """Rows `low` to `high` of the product of `a` with panels. The rows of `a` are `step` numbers apart; if transposed, its columns.

    The first `split` panels make `y`, (rows, columns), and the others `v`, (rows, more).
    """
    body = [
        f"for (long block = 0; block < (high - low + {TALL - 1}) / {TALL}; block++) {{",
        f"long first = low + block * {TALL};", f"long tall = high - first < {TALL} ? high - first : {TALL};",
        f"for (long section = 0; section < (inner + {DEEP - 1}) / {DEEP}; section++) {{",
        f"long start = section * {DEEP};", f"long deep = inner - start < {DEEP} ? inner - start : {DEEP};",
    ]  # fmt: skip
    for rows, number, begin in tiles("tall"):
        walks = [f"for (long tile = 0; tile < {number}; tile++) {{", "for (long k = 0; k < deep; k++) {"]
        body += walks[::-1] if transposed else walks  # along the memory
        together = f" : {rows}" if transposed and rows > 1 else ""
        for row in range(1 if together else rows):
            element = place(f"(first + {begin} + {row})", "(start + k)", transposed)
            body.append(f"t[({begin}) * deep + k * {rows} + {row}{together}] = a[{element}{together}];")
        body += ["}", "}"]
    body.append("for (long panel = 0; panel < count; panel++) {")
    for rows, number, begin in tiles("tall"):
        factor = [f"t[({begin}) * deep + k * {rows} + {row}]" for row in range(rows)]
        places = [f"u[(({begin} + {row}) * count + panel) * {WIDTH} + {{at}} : {LANES}]" for row in range(rows)]
        body.append(f"for (long tile = 0; tile < {number}; tile++) {{")
        body += [*_tile(factor, f"w[(panel * inner + start + k) * {WIDTH}", places, "deep", "section > 0"), "}"]
    body += ["}", "}", "for (long row = 0; row < tall; row++) {"]
    for target, columns, start in (("y", "columns", "0"), ("v", "more", "split")):
        element = f"u[(row * count + {start}) * {WIDTH} + i]"
        body += [f"for (long i = 0; i < {columns}; i++) {{", f"{target}[(first + row) * {columns} + i] = {element};", "}"]
    return Loop(("a", "w", "y", "v", "t", "u"), ("step", "inner", "count", "columns", "split", "more"), [*body, "}", "}"])


def products(left: Array, *pairs: tuple[Array, Array]) -> None:
    """The products of a matrix with one or two others, each written into the array that stands beside it: `left` is read once."""
    ends = list(itertools.accumulate(panels(right.shape[1]) for right, _ in pairs))
    both = beside(np, left, (ends[-1], left.shape[1], WIDTH), np.float32)
    arrange([right for right, _ in pairs], np.split(both, ends[:-1]))
    array, step, transposed = laid(left)
    (_, first), (_, last) = pairs[0], pairs[-1]
    given = {"a": array, "w": both, "y": first, "v": last, "step": step, "inner": left.shape[1], "count": ends[-1]}
    given.update(split=ends[0], columns=first.shape[1], more=last.shape[1] if len(pairs) > 1 else 0)
    parts = shares(len(left), ROWS, NS_PER_PRODUCT * len(left) * both.size)
    _multiplying(transposed)(Job(given, parts, {"t": TALL * DEEP, "u": TALL * ends[-1] * WIDTH}))


def loops() -> list[Loop]:
    """The loops of this file, which must be compiled before they are used."""
    return [make(transposed) for make in (_packing, _multiplying) for transposed in (False, True)]
