"""Runs of kernels in a program's source that may become one call: see kernels/chain.py.

    conv0_fwd = empty(float32_8x6x24x24)
    pool0_fwd = empty(float32_8x6x12x12)
    if not chain0(data, conv0_weight, conv0_fwd, pool0_fwd):
        conv0_fwd = convolution(np, data, conv0_weight, out=conv0_fwd)
        pool0_fwd = pooling(np, conv0_fwd, out=pool0_fwd)

The lines below the `if` say what the call does, and do it where it cannot. All memory is there before the call. Views of it, which need
no more than the memory, are made before the call, too. Book: chapter 5.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from .. import kernels
from ..device import Context
from ..kernels import Faster, chain, fused, sums
from ..kernels.slices import Memory, Value
from ..op import Op, Spec
from .graph import Entry
from .groups import GroupWriter
from .passes.memory import Where


class Small(NamedTuple):
    """A kernel for so little work that it is made for a chain only."""

    make: Callable[[], Any]


Kernel: TypeAlias = Faster | fused.Loop | Small


class RunWriter(GroupWriter):
    """The part of codegen.Writer that writes runs: `run` is the one that kernels join now."""

    context: Context
    number: int  # of the step that is written

    def _add(
        self, kernel: Kernel, arrays: list[str], plain: list[str], memory: list[str], otherwise: Callable[[], list[str]]
    ) -> None:
        """Write down a kernel, now or with others: see Run."""
        if self.chains:
            self.run.add(kernel, arrays, plain, memory, otherwise, self.number)
        else:
            self.lines += plain

    def _small(self, op: Op, inputs: Sequence[Spec | None], spec: Spec) -> Small | None:
        """What computes an operator in a chain that NumPy starts as quickly elsewhere: products, and elementwise operators."""
        if kernels.is_product(op, inputs):
            return Small(functools.partial(kernels.faster, op, inputs, self.context, small=True))
        if not self.run.links or None in inputs:
            return None
        operands = [each for each in inputs if each is not None]
        group = fused.single(op, operands, spec)
        return None if group is None else Small(functools.partial(fused.Loop.of, group, [each.shape for each in operands]))

    def _write_sum(
        self, op: Op, given: list[str], name: str, inputs: Sequence[Spec | None], spec: Spec, plain: list[str]
    ) -> bool:
        """Write a sum that a loop computes; False if none does. A small one is left to NumPy where it is in no chain."""
        if not sums.fits(op, inputs):
            return False
        find = functools.partial(sums.loop_of, op, inputs)
        large = inputs[0] is not None and inputs[0].size >= sums.LARGE
        if not large and not (self.chains and self.run.links):
            return False
        memory = [f"{name} = {self._fresh(spec)}  # {spec.shape}"]
        otherwise = [f"{name}[...] = {line.partition(' = ')[2]}" for line in plain]
        if not large:
            self._add(Small(find), [*given, name], plain, memory, lambda: otherwise)
            return True
        loop = find()
        called = self._enter_loop(self.number, loop)
        lines = [f"if not {called}({given[0]}, {name}):", *(f"    {line}" for line in otherwise)]
        self._add(loop, [*given, name], [*memory, *lines], memory, lambda: lines)
        return True

    def _end_run(self) -> None:
        """Write down the kernels that were waiting for others to form a chain with."""
        run, self.run = self.run, Run()
        links = run.as_links() if run.is_worth_a_call and chain.exists() else None
        if links is None:
            self.lines += run.plain
            return
        names = run.names
        given = [
            names.index(name) for name in map(self.values.get, ((node, 0) for node in self.graph.variables)) if name in names
        ]
        made = chain.Chain(links, given, self.context, self._values(run))
        number = sum(isinstance(each, chain.Chain) for each in self.loops.values())
        name = self._called(("chain", number), f"chain{number}", made)
        self.loops[name] = made
        otherwise = itertools.chain.from_iterable(lines() for lines in run.otherwise)
        self.lines += [*run.memory, f"if not {name}({', '.join(names)}):", *(f"    {line}" for line in otherwise), *run.later]

    def _values(self, run: Run) -> list[Value | None]:
        """What is known of the arrays of a run; None for one that nobody reads."""
        entries = {name: entry for entry, name in self.values.items()}
        return [self._value(entries[name], run) if name in entries else None for name in run.names]

    def _value(self, entry: Entry, run: Run) -> Value | None:
        spec, buffer = self.graph.specs[entry], self.plan.buffers[entry]
        if spec.nbytes != buffer.spec.nbytes:
            return None
        itself = Memory(buffer, 0, spec.nbytes)
        if buffer.where is not Where.ARENA:
            return Value(spec, itself)
        place = Memory(Where.ARENA, buffer.offset, buffer.offset + spec.nbytes)
        return Value(spec, place, itself if run.first <= buffer.first and buffer.last <= run.last else None)


class Run:
    """Kernels in order, each in two ways to be written, and what stands between them. `plain` are the lines without a chain."""

    def __init__(self) -> None:
        self.links: list[tuple[Kernel, tuple[int, ...]]] = []
        self.names: list[str] = []  # of the arrays that the chain is called with
        self.plain: list[str] = []
        self.memory: list[str] = []  # lines before the call: where results go, and views
        self.otherwise: list[Callable[[], list[str]]] = []  # for each kernel, lines that do the same
        self.later: list[str] = []  # lines after it
        self.first, self.last = sys.maxsize, -1  # steps of the plan

    def add(
        self,
        kernel: Kernel,
        arrays: Sequence[str],
        plain: list[str],
        memory: list[str],
        otherwise: Callable[[], list[str]],
        step: int,
    ) -> None:
        """A kernel that is called with `arrays`, the results last, for which the lines `memory` find a place. `step`: in the plan."""
        self.first = min(self.first, step)
        self.last = step
        self.names += [name for name in dict.fromkeys(arrays) if name not in self.names]
        self.links.append((kernel, tuple(map(self.names.index, arrays))))
        self.plain += plain
        self.memory += memory
        self.otherwise.append(otherwise)

    def beside(self, lines: list[str], views: list[str]) -> None:
        """Lines that make views: they do not end the run. `lines`: where they go if there is none."""
        if self.links:
            self.plain += views
            self.memory += views
        else:
            lines += views

    def after(self, lines: list[str], line: str) -> None:
        """A line that has to wait until what comes before has run."""
        if self.links:
            self.plain.append(line)
            self.later.append(line)
        else:
            lines.append(line)

    @property
    def is_worth_a_call(self) -> bool:
        """Whether a chain is sooner than the kernels one by one: not for products that NumPy starts as quickly."""
        large = (kernel for kernel, _ in self.links if not isinstance(kernel, (fused.Loop, Small)))
        return len(self.links) > 1 and any(not kernel.is_small for kernel in large)

    def as_links(self) -> list[chain.Link] | None:
        """The kernels as those of a chain, the small ones made; None if one is not to be had."""
        links = []
        for kernel, arrays in self.links:
            made = kernel.make() if isinstance(kernel, Small) else kernel
            if made is None or not chain.can_link(made):
                return None
            links.append(chain.Link(made, arrays))
        return links
