"""Groups with sums and maxima along rows: softmax, a loss, the statistics of a norm, in one pass over each row.

A softmax in NumPy goes over its array six times: the largest of a row, the difference, the exponential, the sum, the quotient. Here a loop
takes one row after the other, which stays in cache, and goes over it in *stages*: what depends on a sum over the row waits for the stage
after it. Between the stages stand the values that a row has once. Operators before and after the folding ones join in, so that the loss of
a batch is one loop, and its gradient another.

A value is *wide*, as long as the row, or *narrow*, one number a row. Sums add up in any order, so last digits may differ from NumPy's; they
are the same in each run. The elementwise part of the work is as in fused.py. Book: chapter 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..op import Kind, Op, Shape, Spec
from ..ops.indexing import Pick, PutAlongAxis
from ..ops.reduce import Max, Mean, Min, Reduction, Spread, Sum
from ..ops.softmax import LogSoftmax, Softmax
from . import fused
from .groups import TYPES, Step, line_of

INDICES = {"float32": "float", "int32": "int", "int64": "long"}
LONGEST = 1 << 16  # elements of a row: it is to stay in cache from one stage to the next
WIDE = "row * columns + i"


class Rows(NamedTuple):
    """Operators on `rows` times `columns` elements. Values have numbers: first the operands, then the steps' results."""

    rows: int
    columns: int
    operands: tuple[np.dtype[Any], ...]
    places: tuple[str, ...]  # which element of an operand belongs to (row, i)
    steps: tuple[Step, ...]
    wide: tuple[bool, ...]  # of each value
    wanted: tuple[int, ...]  # the numbers of the values that somebody will read


SOFTMAX = (Softmax, LogSoftmax)


def row_shape(op: Op, result: Spec, operand: Spec | None) -> Shape:
    """The shape of the wide values around an operator whose first operand is `operand`."""
    return operand.shape if operand is not None and isinstance(op, (Reduction, Pick)) else result.shape


def folds(op: Op) -> bool:
    """Whether an operator makes one number of a row on its way."""
    return isinstance(op, (Sum, Mean, Max, Min, Pick, *SOFTMAX))


def place(shape: Shape, operand: Shape) -> str | None:
    """Which element of an operand belongs to (row, i), where rows are the last axis of `shape`; None if that is not simple."""
    if len(operand) > len(shape):
        return None
    if operand == shape[:-1] and len(operand):
        return "row"
    found = fused.place(shape, (1,) * (len(shape) - len(operand)) + operand, len(shape) - 1)
    return None if found is None or found[1] else found[0]


def is_narrow(spec: Spec, shape: Shape) -> bool:
    return spec.shape in (shape[:-1], (*shape[:-1], 1))


def fits(op: Op, operands: Sequence[Spec], result: Spec, shape: Shape) -> bool:
    """Whether an operator can be part of a group whose wide values have `shape`."""
    if shape[:-1] == shape[1:]:  # one number a row without its axis would look like one a column
        return False
    if (
        len(shape) < 2
        or not 2 <= shape[-1] <= LONGEST
        or not math.prod(shape)
        or result.dtype != np.float32
        or operands[0].dtype != np.float32
    ):
        return False
    first, last = operands[0], len(shape) - 1
    if op.kind is Kind.ELEMENTWISE:
        if any(each.dtype != np.float32 for each in operands) or not fused.fits(op, operands, result):
            return False
        if result.shape == shape:
            return all(place(shape, each.shape) is not None for each in operands)
        return is_narrow(result, shape) and all(each.shape == result.shape or each.size == 1 for each in operands)
    if isinstance(op, SOFTMAX):
        plain = len(operands) == 1 and op.temperature is None and op.dtype is None and not op.use_length
        return plain and first.shape == shape and op.axis % len(shape) == last
    if isinstance(op, (Sum, Mean, Max, Min)):
        if first.shape == shape:
            return op.plan(shape)[0] == (last,)
        return is_narrow(first, shape) and is_narrow(result, shape) and first.size == result.size
    if isinstance(op, Spread):
        return is_narrow(first, shape) and (is_narrow(result, shape) or (result.shape == shape and op.axis == (last,)))
    if isinstance(op, Pick):
        along = op.axis is not None and op.axis % len(shape) == last and op.mode == "clip"
        return along and first.shape == shape and is_narrow(operands[1], shape) and operands[1].dtype.name in INDICES
    if isinstance(op, PutAlongAxis):
        along = op.axis == last and op.mode == "clip" and result.shape == shape
        return along and is_narrow(first, shape) and is_narrow(operands[1], shape) and operands[1].dtype.name in INDICES
    return False


def group_of(
    shape: Shape, operands: Sequence[Spec], steps: Sequence[Step], results: Sequence[Spec], wanted: Sequence[int]
) -> Rows:
    """A group whose wide values have `shape`. `results`: the specs of what the steps give."""
    places = [place(shape, each.shape) for each in operands]
    assert all(places)
    wide = [each in (WIDE, "i") for each in places] + [each.shape == shape for each in results]
    return Rows(
        math.prod(shape[:-1]), shape[-1], tuple(each.dtype for each in operands), tuple(map(str, places)), tuple(steps),
        tuple(wide), tuple(wanted),
    )  # fmt: skip


class RowLoop(fused.Loop):
    """A group with folds as a function that is called with its operands and the arrays for its results."""

    def __init__(self, group: Rows) -> None:
        text = _Text(group)
        self.title = ", ".join(step.op.name.strip("_") for step in group.steps)
        self.operators = len(group.steps)
        self.exact = False
        self.lengths = (group.columns,)
        self.scratch = text.saved * group.columns
        self.numbers = [float(number) for number in text.numbers]
        self.source = text.source
        self.compile(len(group.operands) + len(group.wanted) + bool(text.saved), text.numbers)
        self.share(group.rows, group.rows * group.columns * len(group.steps))


class _Text:
    """Writes the loop of a group: `source`. `saved` is the number of rows of memory that it needs for itself."""

    def __init__(self, group: Rows) -> None:
        self.group = group
        self.numbers: list[Any] = []
        self.saved = 0
        self.stage = 0
        self.before: list[list[str]] = [[]]  # lines before each stage
        self.inside: list[list[str]] = [[]]  # lines of each stage
        self.loads: list[dict[str, str]] = [{}]
        self.stores: list[list[str]] = [[]]
        self.ready: dict[str, int] = {}  # narrow value -> the stage before which it is there
        self.made: dict[str, int] = {}  # wide value -> the stage that computes it
        self.home: dict[str, str] = {}  # wide value -> where it can be read
        self.types: dict[str, str] = {}
        for number, (dtype, where) in enumerate(zip(group.operands, group.places)):
            self._operand(f"x{number}", INDICES.get(dtype.name, ""), f"a{number}[{where}]", where)
        self.results = {f"x{number}": f"r{position}" for position, number in enumerate(group.wanted)}
        for number, step in enumerate(group.steps, len(group.operands)):
            self._step(number, step)
        self.source = self._source()

    def _operand(self, name: str, kind: str, element: str, where: str) -> None:
        self.types[name] = kind
        if where in (WIDE, "i"):
            self.made[name], self.home[name] = -1, element
        else:
            self.before[0].append(f"{kind} {name} = {element};")
            self.ready[name] = 0

    # ---- lines and stages

    def _go_to(self, stage: int) -> None:
        """Write in this stage, or the present one if that is later: the order of the steps is kept."""
        self.stage = max(stage, self.stage)
        while len(self.inside) <= self.stage:
            self.before.append([])
            self.inside.append([])
            self.loads.append({})
            self.stores.append([])

    def _wide(self, name: str, line: str, operands: Sequence[str]) -> None:
        """A line that computes a wide value."""
        self._go_to(max([self.ready.get(each, 0) for each in operands], default=0))
        for each in operands:
            self._read(each)
        self.inside[self.stage].append(line)
        self.made[name], self.types[name] = self.stage, "float"
        if name in self.results:
            self.home[name] = f"{self.results[name]}[{WIDE}]"
            self.stores[self.stage].append(f"{self.home[name]} = {name};")

    def _narrow(self, name: str, line: str, operands: Sequence[str]) -> None:
        """A line that computes a narrow value from narrow ones."""
        self._go_to(max([self.ready[each] for each in operands], default=0))
        self.before[self.stage].append(line)
        self._is_ready(name, self.stage)

    def _is_ready(self, name: str, stage: int) -> None:
        self.ready[name], self.types[name] = stage, "float"
        if name in self.results:
            self._go_to(stage)
            self.before[stage].append(f"{self.results[name]}[row] = {name};")

    def _fold(self, name: str, value: str, first: str, line: str) -> None:
        """A narrow value that `line` computes from all of a wide one, beginning with `first`."""
        self._go_to(self.made[value])
        self._read(value)
        self.before[self.stage].append(f"float {name} = {first};")
        self.inside[self.stage].append(line)
        self.ready[name], self.types[name] = self.stage + 1, "float"

    def _read(self, name: str) -> None:
        """Have a wide value at hand in the present stage."""
        if name in self.made and self.made[name] != self.stage:
            self.loads[self.stage].setdefault(name, f"float {name} = {self._home(name)};")

    def _home(self, name: str) -> str:
        """Where a wide value of an earlier stage can be read."""
        if name not in self.home:
            self.home[name] = f"t[{self.saved} * columns + i]"
            self.stores[self.made[name]].append(f"{self.home[name]} = {name};")
            self.saved += 1
        return self.home[name]

    # ---- operators

    def _step(self, number: int, step: Step) -> None:
        name, operands = f"x{number}", [f"x{each}" for each in step.operands]
        first = operands[0]
        if step.op.kind is Kind.ELEMENTWISE:
            dtypes = [np.dtype(np.float32)] * (number + 1)
            line = line_of(step, number, dtypes, self.numbers)
            (self._wide if self.group.wide[number] else self._narrow)(name, line, operands)
        elif isinstance(step.op, SOFTMAX):
            self._softmax(name, first, isinstance(step.op, LogSoftmax))
        elif isinstance(step.op, Pick):
            self._pick(name, first, operands[1])
        elif isinstance(step.op, PutAlongAxis):
            self._position(f"{name}_at", operands[1])
            self._wide(name, f"float {name} = i == {name}_at ? {first} : 0.0f;", [first, f"{name}_at"])
        elif first in self.made:
            self._reduce(name, first, step.op)
        else:  # a sum over one element, or a number repeated
            (self._wide if self.group.wide[number] else self._narrow)(name, f"float {name} = {first};", [first])

    def _reduce(self, name: str, value: str, op: Op) -> None:
        if isinstance(op, (Max, Min)):
            function, first = ("fmaximum", "-INFINITY") if isinstance(op, Max) else ("fminimum", "INFINITY")
            self._fold(name, value, first, f"{name} = {function}({name}, {value});")
        else:
            self._fold(name, value, "0.0f", f"{name} += {value};")
        self._go_to(self.ready[name])
        if isinstance(op, Mean):
            self.before[self.stage].append(f"{name} = {name} / float(columns);")
        self._is_ready(name, self.stage)

    def _softmax(self, name: str, value: str, logarithm: bool) -> None:
        most, shifted, power, total = (f"{name}_{what}" for what in ("most", "shifted", "power", "total"))
        self._fold(most, value, "-INFINITY", f"{most} = fmaximum({most}, {value});")
        self._wide(shifted, f"float {shifted} = {value} - {most};", [value, most])
        self._wide(power, f"float {power} = exp({shifted});", [shifted])
        self._fold(total, power, "0.0f", f"{total} += {power};")
        if logarithm:
            self._narrow(f"{name}_log", f"float {name}_log = log({total});", [total])
            self._wide(name, f"float {name} = {shifted} - {name}_log;", [shifted, f"{name}_log"])
        else:
            self._wide(name, f"float {name} = {power} / {total};", [power, total])

    def _position(self, name: str, index: str) -> None:
        """The whole number that an index stands for, within the row. It is limited first: what is out of range has no whole number."""
        if self.types[index] == "float":
            line = f"long {name} = long({index} > 0.0f ? ({index} < float(columns - 1) ? {index} : float(columns - 1)) : 0.0f);"
        else:
            line = f"long {name} = {index} > 0 ? ({index} < columns - 1 ? {index} : columns - 1) : 0;"
        self._narrow(name, line, [index])
        self.types[name] = "long"

    def _pick(self, name: str, value: str, index: str) -> None:
        """One element of a wide value, which must be in memory for it."""
        self._position(f"{name}_at", index)
        self._go_to(self.made[value] + 1)
        element = self._home(value).replace("+ i]", f"+ {name}_at]").replace("[i]", f"[{name}_at]")
        self._narrow(name, f"float {name} = {element};", [f"{name}_at"])

    # ---- the text

    def _source(self) -> str:
        group = self.group
        parameters = [f"{INDICES[dtype.name]} *a{number}" for number, dtype in enumerate(group.operands)]
        parameters += [f"float *r{position}" for position in range(len(group.wanted))] + ["float *t"][: self.saved]
        parameters += [f"{TYPES[number.dtype.name]} s{position}" for position, number in enumerate(self.numbers)]
        lines = [f"void loop({', '.join([*parameters, 'long columns', 'long low', 'long high'])}) {{"]
        lines.append("    for (long row = low; row < high; row++) {")
        for before, loads, inside, stores in zip(self.before, self.loads, self.inside, self.stores):
            lines += [f"        {line}" for line in before]
            if inside or stores:
                lines.append("        for (long i = 0; i < columns; i++) {")
                lines += [f"            {line}" for line in (*loads.values(), *inside, *stores)]
                lines.append("        }")
        return "\n".join([*lines, "    }", "}"]) + "\n"
