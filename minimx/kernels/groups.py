"""Groups of elementwise operators, written as the body of a loop: what a group's kernel on a GPU and its loop on a CPU have in common.

Each operator has an expression in C (expressions.py); a group is a line for each, which declares the operator's result. A GPU computes the
lines in many threads (cupy.py), a CPU in a loop (fused.py). Numbers among the attributes are arguments, so that another learning rate needs
no other machine code. Book: chapters 5 and 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..op import Kind, Op, Shape, Spec
from .expressions import expression_of

TYPES = {"float16": "float16", "float32": "float", "float64": "double"}  # NumPy's names, and CUDA's
MOST_OPERATORS = 64
MOST_ARRAYS = 24  # operands and results: the arguments of a kernel have some kilobytes


class Step(NamedTuple):
    """An operator of a group. Values have numbers: first the group's operands, then the steps' results, in order."""

    op: Op
    operands: tuple[int, ...]
    dtype: np.dtype[Any]  # of the result


class Group(NamedTuple):
    """Operators whose results all have the shape `shape`, to which the operands broadcast."""

    shape: Shape
    operands: tuple[np.dtype[Any], ...]
    steps: tuple[Step, ...]
    wanted: tuple[int, ...]  # the numbers of the values that somebody will read

    @property
    def title(self) -> str:
        """What is in it: the operators' names."""
        return ", ".join(step.op.name.strip("_") for step in self.steps)

    @property
    def made(self) -> list[np.dtype[Any]]:
        """The dtypes of the values that are wanted."""
        return [self.steps[number - len(self.operands)].dtype for number in self.wanted]


def fits(op: Op, operands: Sequence[Spec], result: Spec) -> bool:
    """Whether an operator can be part of a group: it is elementwise, on floating arrays, and has an expression."""
    if op.kind is not Kind.ELEMENTWISE or op.num_outputs != 1 or op.mutates or op.needs_key or not operands or not result.size:
        return False
    if any(spec.dtype.name not in TYPES for spec in (*operands, result)):
        return False
    return len(operands) < MOST_ARRAYS and expression_of(op, len(operands)) is not None


def broadcasts(shape: Shape, to: Shape) -> bool:
    """Whether an operand of `shape` can be read by a kernel over the shape `to`."""
    return len(shape) <= len(to) and all(length in (1, wanted) for length, wanted in zip(reversed(shape), reversed(to)))


class Body(NamedTuple):
    """The lines that declare the results `x2`, `x3`, ... of the steps from the operands `x0`, `x1`, and from numbers `s0`, `s1`, ..."""

    lines: list[str]
    numbers: list[Any]  # NumPy's, in the dtype in which they are declared


def body_of(group: Group) -> Body:
    """The lines of a group."""
    dtypes = [*group.operands, *(step.dtype for step in group.steps)]
    numbers: list[Any] = []
    return Body([line_of(step, number, dtypes, numbers) for number, step in enumerate(group.steps, len(group.operands))], numbers)


def line_of(step: Step, number: int, dtypes: Sequence[np.dtype[Any]], numbers: list[Any]) -> str:
    """The line that declares value `number`, given the dtypes of all values; its numbers are appended to `numbers`."""
    found = expression_of(step.op, len(step.operands))
    assert found is not None
    working = np.dtype(np.float64) if any(dtypes[each] == np.float64 for each in step.operands) else np.dtype(np.float32)
    kind = TYPES[working.name]
    names = {}
    for position, value in enumerate(found.numbers):
        # A number is converted to the dtype of the array first, as in the operator's own kernel.
        dtype = dtypes[step.operands[0]]
        names[f"n{position}"] = _as(kind, f"s{len(numbers)}", dtype)
        numbers.append(dtype.type(value))
    operands = [_as(kind, f"x{each}", dtypes[each]) for each in step.operands]
    text = found.text.format(*operands, T=kind, **names)
    made = TYPES[step.dtype.name]
    return f"{made} x{number} = {text if made == kind else f'{made}({text})'};"


def _as(kind: str, name: str, dtype: np.dtype[Any]) -> str:
    """The value `name` in the type in which is computed."""
    return name if TYPES[dtype.name] == kind else f"{kind}({name})"
