"""A program that tells what each of its operators takes: the same source, with a clock between the lines of one operator and the next.

A program is one operation to the engine, which cannot see inside. So while somebody watches (engine/events.py), a part runs another
compilation of its graph, made when it is first wanted: after the lines of a node stands `tick(3)`, and in a group that runs tile by tile
`lap(0)` after each operator of a tile; a loop in machine code is timed as a whole. The function that runs otherwise knows nothing of this.
Book: chapter 5.
"""

from __future__ import annotations

import functools

import numpy as np

from .. import device
from ..device import Context
from ..engine.events import OPERATOR, GroupClock, Listener, Member, clock, synchronize, told, watch
from .codegen import Writer
from .graph import Entry, Node
from .passes.constant import Constant
from .passes.typed import operator

LOOP = "    for low, high in tiles:"  # of a group's function


class TimedWriter(Writer):
    """Writes the function with the clock. It takes the same arguments and the same arena as the one without."""

    chains = False  # inside one no operator can be timed
    looped = False  # whether the group that is written is a loop in machine code: inside it no operator can be timed

    def _write(self) -> str:
        self.names.taken.update(("started", "tick", "group", "lap"))
        self.members: list[Member] = []
        self.namespace["started"] = functools.partial(Ticker, self.members, self.context)
        self.lines.append("tick = started()")
        return super()._write()

    def _number_of(self, node: Node) -> int:
        """The number by which the function calls an operator."""
        op = operator(node)
        specs = [self.graph.specs[node, index] for index in range(op.num_visible)]
        self.members.append((op.name, specs, None, node.name))
        return len(self.members) - 1

    def _write_node(self, node: Node) -> None:
        super()._write_node(node)
        if not isinstance(operator(node), Constant):
            self.lines.append(f"tick({self._number_of(node)})")

    def _write_group(self, number: int, step: tuple[Node, ...]) -> None:
        before = len(self.lines)
        first = len(self.members)
        for node in step:
            self._number_of(node)
        super()._write_group(number, step)
        if self.looped or not self._is_tiled(step):
            how = "one loop in machine code" if self.looped else "one operator after the other"
            self.lines.append(f"tick.whole({first}, {len(step)}, {how!r})")
        else:
            self.lines.insert(before, f"group = tick.group({first}, {len(step)})")
            self.lines.insert(self.lines.index(LOOP, before), "    lap = group.lap()")
            self.lines.append("tick.end(group)")

    def _loop(self, number: int, step: tuple[Node, ...], operands: list[Entry], made: list[Entry]) -> str | None:
        name = super()._loop(number, step, operands, made)
        self.looped = name is not None
        return name

    def _write_fused(self, number: int, step: tuple[Node, ...]) -> None:
        first = len(self.members)
        for node in step:
            self._number_of(node)
        super()._write_fused(number, step)
        self.lines.append(f"tick.whole({first}, {len(step)}, 'one kernel of the GPU')")

    def after_tile(self, node: Node, step: tuple[Node, ...]) -> list[str]:
        return [] if self.looped else [f"lap({step.index(node)})"]


class Ticker:
    """The clock of one run: each call tells of the operator whose lines have just run."""

    __slots__ = ("members", "context", "on_gpu", "tell", "before")

    def __init__(self, members: list[Member], context: Context) -> None:
        self.members = members
        self.context = context
        self.on_gpu = device.array_module(context) is not np
        self.tell: Listener = watch.programs or _nobody
        self.before = clock()

    def __call__(self, number: int) -> None:
        if self.on_gpu:
            synchronize()
        end = clock()
        name, specs, where, node = self.members[number]
        told(self.tell, name, self.before, end, OPERATOR, self.context, where, specs, node)
        self.before = clock()  # to tell took time that is no operator's

    def group(self, first: int, count: int) -> GroupClock:
        """Begin a group of `count` operators, which has an operator each for the numbers from `first`."""
        return GroupClock(self.members[first : first + count])

    def whole(self, first: int, count: int, how: str) -> None:
        """A group that is one loop, or one kernel of a GPU, has run or been queued."""
        if self.on_gpu:
            synchronize()
        self.end(GroupClock(self.members[first : first + count], self.before, how))

    def end(self, group: GroupClock) -> None:
        """A group has run."""
        group.tell(self.tell, self.context)
        self.before = clock()


def _nobody(event: object) -> None:
    """Listens where the last listener has gone."""
