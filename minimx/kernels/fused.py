"""A group of elementwise operators as one loop in machine code.

NumPy goes over an array once for each operator; even tile by tile, each tile is read and written again and again, and each call of a
function costs Python's time. A loop of its own reads an element's operands once, computes all operators in registers, 8 or 16 elements at a
time, and writes what somebody will read. Here the group's expressions (groups.py) become the text of such a loop; machine.py makes machine
code of it while the program already runs on NumPy.

Results are those of NumPy's kernels: to the bit where the operators are arithmetic, to a few units in the last place where there are
functions of vectormath.py. Arrays of integers and of float16, and functions that are not there, stay with NumPy. Book: chapter 5.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..op import Array, Op, Shape, Spec, share_out
from . import groups, machine
from .choice import enabled
from .expressions import expression_of
from .groups import TYPES, Body, Group, Step, body_of
from .vectormath import SIMPLE, calls, computes

SHARED = 1 << 18  # elements times operators: with fewer, a second thread would have hardly begun when the first is done
NS_PER_OPERATION = 0.2
MOST_SHARES = 16
FEWEST_COLUMNS = 16  # of a loop in a loop


def compiles() -> bool:
    """Whether groups become loops at all."""
    return machine.MODE != "off" and enabled() and machine.installed()


def fits(op: Op, operands: Sequence[Spec], result: Spec) -> bool:
    """Whether an operator can be part of a loop: all is float32 or float64, and its expression is one that LLVM computes side by side."""
    if not groups.fits(op, operands, result) or any(spec.dtype.itemsize < 4 for spec in (*operands, result)):
        return False
    found = expression_of(op, len(operands))
    assert found is not None
    kind = "double" if any(spec.dtype.itemsize == 8 for spec in operands) else "float"
    return computes(found.text.replace("{T}", kind), kind)


class Walk(NamedTuple):
    """How a loop goes over a group's arrays: `rows` times `columns` elements; 1 row where all arrays are alike, or single numbers.

    `places` says for each operand which element it gives, in the loop's terms, and `lengths` what those count with.
    """

    rows: int
    columns: int
    places: tuple[str, ...]
    lengths: tuple[int, ...] = ()


def walk_of(shape: Shape, operands: Sequence[Shape]) -> Walk | None:
    """The walk for operands that broadcast to `shape`; None if they do in a way that two loops cannot follow."""
    size = math.prod(shape)
    if all(other == shape or math.prod(other) == 1 for other in operands):
        return Walk(1, size, tuple("i" if other == shape else "0" for other in operands))
    padded = [(1,) * (len(shape) - len(other)) + tuple(other) for other in operands]
    for split in range(len(shape) - 1, 0, -1):
        rows, columns = math.prod(shape[:split]), math.prod(shape[split:])
        found = [place(shape, other, split) for other in padded]
        if columns >= FEWEST_COLUMNS and all(found):
            periods = [period for _, period in filter(None, found) if period]
            numbers = itertools.count()
            places = tuple(f"row % period{next(numbers)}" if period else place for place, period in filter(None, found))
            return Walk(rows, columns, places, (columns, *periods))
    return None


def place(shape: Shape, operand: Shape, split: int) -> tuple[str, int] | None:
    """Which element of an operand with as many axes as `shape` belongs to (row, i), and the number of rows after which it begins anew.

    The first `split` axes are the rows. None: to find the element takes more than that.
    """
    front, back = operand[:split], operand[split:]
    if operand == shape:
        return "row * columns + i", 0
    if math.prod(operand) == 1:
        return "0", 0
    if back == shape[split:] and math.prod(front) == 1:
        return "i", 0
    if math.prod(back) == 1:
        if front == shape[:split]:
            return "row", 0
        first = next(axis for axis, length in enumerate(front) if length != 1)
        if front[first:] == shape[first:split]:
            return "row", math.prod(front)
    return None


def single(op: Op, operands: Sequence[Spec], result: Spec) -> Group | None:
    """A group of one operator; None if it is not a loop's, or if its loop would give other last digits than NumPy."""
    if not fits(op, operands, result) or walk_of(result.shape, [each.shape for each in operands]) is None:
        return None
    count = len(operands)
    group = Group(result.shape, tuple(each.dtype for each in operands), (Step(op, tuple(range(count)), result.dtype),), (count,))
    return group if is_exact(body_of(group)) else None


def is_exact(body: Body) -> bool:
    """Whether results are NumPy's to the bit."""
    return all(calls(line) <= SIMPLE for line in body.lines)


class Loop:
    """A group as a function that is called with its operands and the arrays for its results, as soon as it is compiled."""

    scratch = 0  # elements of float32 that each thread needs for itself

    def __init__(self, group: Group, walk: Walk) -> None:
        body = body_of(group)
        self.title = group.title
        self.operators = len(group.steps)
        self.exact = is_exact(body)  # whether results are NumPy's to the bit
        self.lengths = walk.lengths
        self.numbers = [float(number) for number in body.numbers]
        self.source = written(group, walk, body)
        self.compile(len(group.operands) + len(group.wanted), body.numbers)
        units = walk.columns if walk.rows == 1 else walk.rows
        self.share(units, walk.rows * walk.columns * len(group.steps))

    @classmethod
    def of(cls, group: Group, operands: Sequence[Shape]) -> Loop:
        """The loop of a group whose operands have shapes that two loops can follow."""
        walk = walk_of(group.shape, operands)
        assert walk is not None
        return cls(group, walk)

    def compile(self, arrays: int, numbers: Sequence[Any]) -> None:
        """Have the source compiled, a function of so many arrays, of numbers, and of lengths."""
        kinds = [machine.POINTER] * arrays + [machine.NUMBERS[number.dtype.name] for number in numbers]
        self.code = machine.code_of(self.source, (*kinds, *[machine.LONG] * (len(self.lengths) + 2)))

    def share(self, units: int, work: int) -> None:
        """Divide so many units, elements or rows, among threads, if all of them take so many operations."""
        self.units = units
        self.bounds = shares(units, work)
        self.work = NS_PER_OPERATION * work

    def __call__(self, *arrays: Array) -> bool:
        """Compute the results; False, and nothing is done, while there is no machine code, or none is wanted."""
        if self.code.function is None or not enabled() or not all(array.flags.c_contiguous for array in arrays):
            return False
        self.start([machine.address(array) for array in arrays])
        return True

    def start(self, pointers: list[int]) -> None:
        """Run all of it, on all cores if there is much to do, on arrays that begin there."""
        if len(self.bounds) == 1:
            self.run(pointers, self.bounds)
        else:
            share_out(self.bounds, functools.partial(self.run, pointers))

    def run(self, pointers: list[int], bounds: list[tuple[int, int]]) -> None:
        """Some parts of the loop, in the calling thread."""
        function = self.code.function
        if self.scratch:
            scratch = np.empty(self.scratch, np.float32)
            pointers = [*pointers, machine.address(scratch)]
        for low, high in bounds:
            function(*pointers, *self.numbers, *self.lengths, low, high)

    def wait(self) -> None:
        """Return when it is compiled, or never will be."""
        machine.wait(self.code)

    @property
    def state(self) -> str:
        """Whether it is compiled, in words."""
        if self.code.function is not None:
            return "compiled"
        return "not compiled yet" if self.code.error is None else f"not compiled: {self.code.error}"


def shares(units: int, work: int) -> list[tuple[int, int]]:
    """The parts in which the crew does so many units, elements or rows: one if there is little work."""
    if work < SHARED:
        return [(0, units)]
    length = -(-units // MOST_SHARES)
    if units >= 64 * MOST_SHARES:
        length = -(-length // 64) * 64  # cores write to cache lines of their own
    return [(low, min(low + length, units)) for low in range(0, units, length)]


def written(group: Group, walk: Walk, body: Body) -> str:
    """The text of a loop."""
    dtypes = [*group.operands, *(step.dtype for step in group.steps)]
    parameters = [f"{TYPES[dtype.name]} *a{number}" for number, dtype in enumerate(group.operands)]
    parameters += [f"{TYPES[dtypes[number].name]} *r{position}" for position, number in enumerate(group.wanted)]
    parameters += [f"{TYPES[number.dtype.name]} s{position}" for position, number in enumerate(body.numbers)]
    nested = walk.rows > 1
    parameters += ["long columns", *(f"long period{number}" for number in range(len(walk.lengths) - 1))] if nested else []
    here = "row * columns + i" if nested else "i"
    inside = [f"{TYPES[dtype.name]} x{number} = a{number}[{walk.places[number]}];" for number, dtype in enumerate(group.operands)]
    inside += body.lines
    inside += [f"r{position}[{here}] = x{number};" for position, number in enumerate(group.wanted)]
    loops = ["for (long i = low; i < high; i++) {"]
    if nested:
        loops = ["for (long row = low; row < high; row++) {", "for (long i = 0; i < columns; i++) {"]
    text = [f"void loop({', '.join([*parameters, 'long low', 'long high'])}) {{"]
    text += ["    " * depth + line for depth, line in enumerate(loops, 1)]
    text += ["    " * (len(loops) + 1) + line for line in inside]
    text += ["    " * depth + "}" for depth in range(len(loops), -1, -1)]
    return "\n".join(text) + "\n"
