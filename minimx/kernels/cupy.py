"""Groups of elementwise operators as one generated kernel for a GPU.

A kernel of a chain of elementwise operators would spend its time on reading and writing the GPU's memory, and a small one on being
launched. So neighbouring operators over one shape become a single `cupy.ElementwiseKernel`: each thread reads the operands of an element
once, computes all operators in registers, and writes what somebody will read. The source is put together of the operators' expressions
(groups.py). Kernels are kept by their source, and CuPy keeps what it has compiled on disk.

Both who run operators use it: the engine for recorded operators (engine/execute.py), and programs (sym/codegen.py). Book: chapter 7.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..op import Array, Op, Spec
from . import groups
from .groups import MOST_ARRAYS, MOST_OPERATORS, Group, Step, body_of, broadcasts


def fits(op: Op, operands: Sequence[Spec], result: Spec) -> bool:
    """Whether an operator can be part of a group: see groups.py. CuPy defines `float16` for kernels that have it among their arguments."""
    if result.dtype == np.float16 and any(spec.dtype != np.float16 for spec in operands):
        return False
    return groups.fits(op, operands, result)


@functools.lru_cache(maxsize=4096)
def kernel(xp: Any, parameters: str, results: str, source: str, name: str) -> Any:
    """The kernel of a source."""
    return xp.ElementwiseKernel(parameters, results, source, name)


def written(group: Group) -> tuple[str, str, str, list[Any]]:
    """The kernel's parameters, results and source, and the numbers that it is called with."""
    lines, numbers = body_of(group)
    parameters = [f"{dtype.name} x{number}" for number, dtype in enumerate(group.operands)]
    parameters += [f"{value.dtype.name} s{number}" for number, value in enumerate(numbers)]
    results = [f"{dtype.name} y{position}" for position, dtype in enumerate(group.made)]
    lines += [f"y{position} = x{number};" for position, number in enumerate(group.wanted)]
    return ", ".join(parameters), ", ".join(results), "\n".join(lines), numbers


class Fused:
    """A group as a function of its operands: called like a kernel, it gives the values that are wanted, in fresh memory."""

    def __init__(self, group: Group) -> None:
        self.shape = group.shape
        self.parameters, self.results, self.source, self.numbers = written(group)
        self.made = group.made
        names = dict.fromkeys(step.op.name.strip("_") for step in group.steps)
        self.name = "_".join(["minimx", *names])[:80]

    def __call__(self, xp: Any, *operands: Array) -> list[Array]:
        outputs = [xp.empty(self.shape, dtype) for dtype in self.made]
        kernel(xp, self.parameters, self.results, self.source, self.name)(*operands, *self.numbers, *outputs)
        return outputs


__all__ = ["MOST_ARRAYS", "MOST_OPERATORS", "Fused", "Group", "Step", "broadcasts", "fits", "kernel", "written"]
