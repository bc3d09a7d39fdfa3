"""The memory plan: where each value of a program lies.

Fresh memory costs more than computing on memory that is there (storage.py), and memory that was just used is in cache. All is known
beforehand here: sizes, and for each value the steps between which it lives. So values are put into *buffers*: an elementwise operator
writes over an operand that dies with it; buffers whose lives do not overlap share bytes of one *arena*, which is kept from run to run.
Outputs leave the program, so each run takes fresh memory for them; but what becomes an output is computed in its memory from the first
operator on. Values of kernels that make their own memory are freed when they die. Book: chapter 5.
"""

from __future__ import annotations

import bisect
import enum
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...op import Kind, Spec
from ..graph import Entry, Node
from .constant import Constant
from .typed import TypedGraph, counted, operator

ALIGNMENT = 64  # bytes: a cache line


class Where(enum.Enum):
    """Whose the memory of a value is."""

    GIVEN = "given"  # an input's, or a constant's: not to be written
    ARENA = "arena"
    OUTPUT = "output"  # made for this run, and handed out
    KERNEL = "kernel"  # the kernel made it
    TILE = "tile"  # a tile of it at a time


@dataclass(eq=False)
class Buffer:
    """Memory that one value after the other lies in, and the views of it."""

    where: Where
    spec: Spec
    first: int  # the step that makes it
    last: int = -1  # the last step that reads it
    offset: int = -1  # in the arena
    values: list[Entry] = field(default_factory=list)


@dataclass
class Plan:
    """Steps in order (one node, or the nodes of a group), the buffer of each value, and the size of the arena in bytes."""

    steps: list[tuple[Node, ...]]
    buffers: dict[Entry, Buffer]
    written_over: dict[Entry, Entry]  # value -> the operand in whose place it is written
    copied: set[int]  # positions of heads that must be copied: two may not share memory, nor one be an input
    arena: int = 0

    @functools.cached_property
    def deaths(self) -> dict[int, list[Buffer]]:
        """For each step, the buffers that no later one reads."""
        found: dict[int, list[Buffer]] = {}
        for buffer in dict.fromkeys(self.buffers.values()):
            found.setdefault(buffer.last, []).append(buffer)
        return found


def plan_memory(graph: TypedGraph) -> TypedGraph:
    """Find a place for each value."""
    steps = steps_of(graph)
    plan = _Planner(graph, steps).plan
    inner = [buffer for buffer in dict.fromkeys(plan.buffers.values()) if buffer.where is Where.ARENA]
    plan.arena = arrange(inner)
    values = sum(graph.specs[entry].nbytes for entry, buffer in plan.buffers.items() if buffer.where is Where.ARENA)
    return graph.replaced(
        plan=plan,
        note=f"{len(plan.written_over)} in place, {counted(len(inner), 'buffer')}; {values} bytes of values in an arena of {plan.arena}",
    )


def steps_of(graph: TypedGraph) -> list[tuple[Node, ...]]:
    """The nodes in order, those of a group together."""
    group_of = {node: group for group in graph.groups for node in group}
    return list(dict.fromkeys(group_of.get(node, (node,)) for node in graph.order))


class _Planner:
    """Goes over the steps once. `last` is the last step that reads a value or a view of it."""

    def __init__(self, graph: TypedGraph, steps: list[tuple[Node, ...]]) -> None:
        self.graph = graph
        self.plan = Plan(steps, {}, {}, set())
        self.end = len(steps)
        self.last: dict[Entry, int] = {}
        for number, step in enumerate(steps):
            for node in step:
                self.last.update((entry, number) for entry in node.inputs if entry is not None)
        self.last.update((entry, self.end) for entry in graph.heads)
        for node in graph.variables:
            self._place((node, 0), Buffer(Where.GIVEN, graph.specs[node, 0], -1, self.end))
        for number, step in enumerate(steps):
            self._plan_step(number, step)
        self._hand_out()

    def _place(self, entry: Entry, buffer: Buffer) -> None:
        self.plan.buffers[entry] = buffer
        buffer.values.append(entry)
        buffer.last = max(buffer.last, self.last.get(entry, buffer.first))

    def _plan_step(self, number: int, step: tuple[Node, ...]) -> None:
        inside = {(node, 0) for node in step}
        users = {entry: node for node in step for entry in node.inputs if entry is not None}  # the last one in the step
        for node in step:
            op = operator(node)
            for index in range(op.num_outputs):
                entry = (node, index)
                spec = self.graph.specs[entry]
                if len(step) > 1 and self.last.get(entry, number) <= number:
                    self._place(entry, Buffer(Where.TILE, spec, number))
                    continue
                operand = self._operand_to_write_over(number, node, entry, inside, users)
                if operand is not None:
                    self.plan.written_over[entry] = operand
                    self._place(entry, self.plan.buffers[operand])
                elif op.aliases and node.inputs[0] is not None:
                    self._place(entry, self.plan.buffers[node.inputs[0]])
                else:
                    self._place(entry, Buffer(self._kind(entry), spec, number))

    def _kind(self, entry: Entry) -> Where:
        node, index = entry
        if isinstance(node.op, Constant):
            return Where.GIVEN
        return Where.ARENA if index == 0 and takes_out(node) else Where.KERNEL

    def _operand_to_write_over(
        self, number: int, node: Node, entry: Entry, inside: set[Entry], users: dict[Entry, Node]
    ) -> Entry | None:
        """An operand of an elementwise node that dies here, whose memory nobody else sees; None if there is none."""
        if operator(node).kind is not Kind.ELEMENTWISE or not takes_out(node):
            return None
        spec = self.graph.specs[entry]
        for operand in node.inputs:
            if operand is None or operand in inside or self.graph.specs[operand] is not spec:
                continue
            buffer = self.plan.buffers[operand]
            dies = buffer.where in (Where.ARENA, Where.KERNEL) and buffer.last == number and buffer.spec is spec
            if dies and (
                len(inside) == 1 or all(users.get(value, node) is node for value in buffer.values)
            ):  # nor later in a group
                return operand
        return None

    def _hand_out(self) -> None:
        """Give outputs memory that can leave the program."""
        taken: set[Buffer] = set()
        for position, entry in enumerate(self.graph.heads):
            buffer = self.plan.buffers[entry]
            if buffer.where is Where.GIVEN or buffer in taken:
                self.plan.copied.add(position)
                continue
            taken.add(buffer)
            if buffer.where is Where.ARENA:
                buffer.where = Where.OUTPUT


def takes_out(node: Node) -> bool:
    """Whether the kernel of a node writes its first output where it is told to."""
    op = operator(node)
    return op.takes_out or (op.kind is Kind.ELEMENTWISE and op.num_outputs == 1)


def arrange(buffers: Sequence[Buffer]) -> int:
    """Give each buffer an offset such that those that live at the same time do not overlap; the bytes that are needed in all.

    The largest come first, each at the lowest place where it fits. Finding the least size is as hard as packing boxes; this is near it.
    """
    placed: list[tuple[int, int, int, int]] = []  # (first byte, end, first step, last step), in the order of the bytes
    total = 0
    for buffer in sorted(buffers, key=lambda buffer: -buffer.spec.nbytes):
        nbytes, offset = buffer.spec.nbytes, 0
        for low, end, first, last in placed:
            if first <= buffer.last and last >= buffer.first:
                if offset + nbytes <= low:
                    break
                offset = max(offset, end)
        buffer.offset = offset
        end = -(-(offset + nbytes) // ALIGNMENT) * ALIGNMENT
        bisect.insort(placed, (offset, end, buffer.first, buffer.last))
        total = max(total, offset + nbytes)
    return total
