"""Groups of elementwise operators as one generated kernel for a GPU.

A kernel of a chain of elementwise operators would spend its time on reading and writing the GPU's memory, and a small one on being
launched. So neighbouring operators over one shape become a single `cupy.ElementwiseKernel`: each thread reads the operands of an element
once, computes all operators in registers, and writes what somebody will read. The source is put together of the operators' expressions
(expressions.py). Numbers among the attributes are arguments of the kernel, so that another learning rate needs no other kernel; kernels
are kept by their source, and CuPy keeps what it has compiled on disk.

Both who run operators use it: the engine for recorded operators (engine/execute.py), and programs (sym/codegen.py). Book: chapter 7.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..op import Array, Kind, Op, Shape, Spec
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


def fits(op: Op, operands: Sequence[Spec], result: Spec) -> bool:
    """Whether an operator can be part of a group: it is elementwise, on floating arrays, and has an expression."""
    if op.kind is not Kind.ELEMENTWISE or op.num_outputs != 1 or op.mutates or op.needs_key or not operands or not result.size:
        return False
    if any(spec.dtype.name not in TYPES for spec in (*operands, result)):
        return False
    if result.dtype == np.float16 and any(spec.dtype != np.float16 for spec in operands):
        return False  # CuPy defines the type for kernels that have it among their arguments
    return len(operands) < MOST_ARRAYS and expression_of(op, len(operands)) is not None


def broadcasts(shape: Shape, to: Shape) -> bool:
    """Whether an operand of `shape` can be read by a kernel over the shape `to`."""
    return len(shape) <= len(to) and all(length in (1, wanted) for length, wanted in zip(reversed(shape), reversed(to)))


@functools.lru_cache(maxsize=4096)
def kernel(xp: Any, parameters: str, results: str, source: str, name: str) -> Any:
    """The kernel of a source."""
    return xp.ElementwiseKernel(parameters, results, source, name)


def written(group: Group) -> tuple[str, str, str, list[Any]]:
    """The kernel's parameters, results and source, and the numbers that it is called with."""
    dtypes = [*group.operands, *(step.dtype for step in group.steps)]
    count = len(group.operands)
    parameters = [f"{dtype.name} x{number}" for number, dtype in enumerate(group.operands)]
    numbers: list[Any] = []
    lines = []
    for number, step in enumerate(group.steps, count):
        found = expression_of(step.op, len(step.operands))
        assert found is not None
        working = np.dtype(np.float64) if any(dtypes[each] == np.float64 for each in step.operands) else np.dtype(np.float32)
        kind = TYPES[working.name]
        names = {}
        for position, value in enumerate(found.numbers):
            # A number is converted to the dtype of the array first, as in the operator's own kernel.
            dtype = dtypes[step.operands[0]]
            names[f"n{position}"] = _as(kind, f"s{len(numbers)}", dtype)
            parameters.append(f"{dtype.name} s{len(numbers)}")
            numbers.append(dtype.type(value))
        operands = [_as(kind, f"x{each}", dtypes[each]) for each in step.operands]
        text = found.text.format(*operands, T=kind, **names)
        lines.append(f"{TYPES[step.dtype.name]} x{number} = {TYPES[step.dtype.name]}({text});")
    results = [f"{dtypes[number].name} y{position}" for position, number in enumerate(group.wanted)]
    lines += [f"y{position} = x{number};" for position, number in enumerate(group.wanted)]
    return ", ".join(parameters), ", ".join(results), "\n".join(lines), numbers


def _as(kind: str, name: str, dtype: np.dtype[Any]) -> str:
    """The value `name` in the type in which is computed."""
    return name if TYPES[dtype.name] == kind else f"{kind}({name})"


class Fused:
    """A group as a function of its operands: called like a kernel, it gives the values that are wanted, in fresh memory."""

    def __init__(self, group: Group) -> None:
        self.shape = group.shape
        self.parameters, self.results, self.source, self.numbers = written(group)
        self.dtypes = [step.dtype for step in group.steps]
        self.made = [self.dtypes[number - len(group.operands)] for number in group.wanted]
        names = dict.fromkeys(step.op.name.strip("_") for step in group.steps)
        self.name = "_".join(["minimx", *names])[:80]

    def __call__(self, xp: Any, *operands: Array) -> list[Array]:
        outputs = [xp.empty(self.shape, dtype) for dtype in self.made]
        kernel(xp, self.parameters, self.results, self.source, self.name)(*operands, *self.numbers, *outputs)
        return outputs
