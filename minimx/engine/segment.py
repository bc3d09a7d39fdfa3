"""A Segment: operations that one thread recorded one after the other, and that run as one task (bulking).

Recording writes down (operator, input slots, output slots) and returns. A *slot* is one value of one Var: each write gives the Var a
new slot, so inside a segment every slot is written once, and a slot whose Var is gone or has moved on is invisible: nobody can ever
ask for it. That is what allows the executor to keep dead intermediates in cache-sized tiles, and the lazy scope not to
compute them at all.

Only Vars from outside count as reads of the task; Vars born inside belong to it alone until it is closed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..device import Context
from ..op import Op, Spec
from . import execute
from .task import OPEN, Task
from .var import Failure, Var, View

if TYPE_CHECKING:
    from .lanes import Scheduler


class Operand(NamedTuple):
    """Part of a slot's array that an operation reads: see `View`."""

    slot: int
    offset: int
    spec: Spec


class Result(NamedTuple):
    """Where an operation's output goes: all of `slot`, or (`base` >= 0) the part of the memory of slot `base` that
    `offset` and `spec` name; `slot` is then the same memory after the write."""

    slot: int
    base: int
    offset: int
    spec: Spec


class Record(NamedTuple):
    """One operation of a segment."""

    op: Op
    inputs: tuple[Operand | None, ...]
    outputs: tuple[Result, ...]
    mutated: tuple[tuple[int, int], ...]  # (slot before, slot after) of inputs that the kernel changes in place
    key: Any  # of random numbers, or None
    where: tuple[str, int] | None  # the user's line


class Segment(Task):
    """Recorded operations. Every method is called with the engine's lock held, but `run`."""

    __slots__ = ("records", "table", "lazy", "limit", "deadline", "touches_memory", "values", "failures", "__weakref__")

    def __init__(self, context: Context, limit: int, lazy: bool = False) -> None:
        super().__init__(context, "segment")
        self.records: list[Record] = []
        self.table: list[Any] = []  # slot -> Var from outside, or weak reference to the Var that has this slot now
        self.lazy = lazy
        self.limit = limit  # records after which it is closed
        self.deadline = 0.0  # when an idle lane may close it
        self.touches_memory = False  # a record changes memory in place, so that the order of records matters beyond slots
        self.values: list[Any] = []  # slot -> array or Failure, while it runs
        self.failures: list[Failure] = []

    # ---- recording

    def slot_of(self, var: Var, scheduler: Scheduler) -> int:
        """The slot that holds the value of `var` now; a Var from outside is entered as a read."""
        if var.writer is self:
            return var.slot
        slot = self.read.get(var)
        if slot is None:
            self.reads(var, scheduler)
            slot = len(self.table)
            self.table.append(var)
            self.read[var] = slot
        return slot

    def _new_slot(self, var: Var) -> int:
        """A new slot that holds the value of `var` from here on."""
        var.slot = len(self.table)
        self.table.append(var if var.shared else weakref.ref(var))
        return var.slot

    def _claim(self, var: Var, scheduler: Scheduler) -> None:
        """Become the writer of `var`, a Var that exists already."""
        if var.writer is not self:
            self.writes(var, scheduler)
            self.touches_memory = True

    def record(
        self,
        op: Op,
        inputs: Sequence[View | None],
        out_specs: Sequence[Spec],
        targets: Sequence[View | None],
        key: Any,
        where: tuple[str, int] | None,
        scheduler: Scheduler,
    ) -> list[Var]:
        """Write down one operation; the Vars of its outputs."""
        operands = tuple(
            None if view is None else Operand(self.slot_of(view.var, scheduler), view.offset, view.spec) for view in inputs
        )
        mutated = []
        for position in op.mutates:
            view = inputs[position]
            if view is not None:
                before = self.slot_of(view.var, scheduler)
                self._claim(view.var, scheduler)
                mutated.append((before, self._new_slot(view.var)))
                self.touches_memory = True
        results, variables = [], []
        for spec, target in zip(out_specs, targets):
            if target is None:
                var = Var()
                var.ready = False
                var.writer = self
                results.append(Result(self._new_slot(var), -1, -1, spec))
                self.nbytes += spec.nbytes
            elif target.offset < 0 and not target.var.shared:
                var = target.var
                self._claim(var, scheduler)
                results.append(Result(self._new_slot(var), -1, -1, spec))
            else:
                var = target.var
                base = self.slot_of(var, scheduler)
                self._claim(var, scheduler)
                results.append(Result(self._new_slot(var), base, target.offset, spec))
                self.touches_memory = True
            variables.append(var)
        self.records.append(Record(op, operands, tuple(results), tuple(mutated), key, where))
        return variables

    def visible(self, slot: int) -> Var | None:
        """The Var that will hold `slot` when the segment has run; None if nobody can ask for it any more."""
        entry = self.table[slot]
        var = entry() if type(entry) is weakref.ref else entry
        return var if var is not None and var.writer is self and var.slot == slot else None

    # ---- running

    def run(self) -> None:
        outside = {slot: var for var, slot in self.read.items()}
        self.values = [None] * len(self.table)
        for slot, var in outside.items():
            # Nothing that could change `var` runs before this task has finished.
            self.values[slot] = var.failure if var.failure is not None else var.value
        records = self.needed() if self.lazy else self.records
        self.failures = execute.run_records(self, records)

    def publish(self) -> list[Failure]:
        for record in self.records:
            for slot in (*(result.slot for result in record.outputs), *(after for _, after in record.mutated)):
                var = self.visible(slot)
                if var is None:
                    continue
                value = self.values[slot]
                if isinstance(value, Failure):
                    self.release(var, value)
                else:
                    var.value = value
                    self.release(var, None)
        if self.records:
            more = len(self.records) - 1
            self.name = self.records[0].op.name + (f" and {more} more" if more else "")
        fresh, self.failures = self.failures, []
        self.records, self.table, self.values = [], [], []
        return fresh

    # ---- lazy evaluation

    def needed(self, slots: Iterable[int] | None = None) -> list[Record]:
        """The records that `slots` (default: all visible ones) depend on, in order."""
        wanted = set(slots or ())
        kept = []
        for record in reversed(self.records):
            made = [result.slot for result in record.outputs] + [after for _, after in record.mutated]
            if wanted.intersection(made) or (slots is None and any(self.visible(slot) is not None for slot in made)):
                kept.append(record)
                wanted.update(operand.slot for operand in record.inputs if operand is not None)
                wanted.update(result.base for result in record.outputs if result.base >= 0)
        kept.reverse()
        return kept

    def split(self, var: Var, scheduler: Scheduler) -> Segment:
        """Take the records that `var` needs out of this open lazy segment, into a new one, which is closed and returned.

        What stays behind reads the values of the part that was taken from Vars, like anything from outside. A segment that writes
        memory in place is not split, because the order of its records then matters beyond what slots say.
        """
        if self.touches_memory:
            return self
        taken = self.needed([var.slot])
        chosen = set(map(id, taken))
        rest = [record for record in self.records if id(record) not in chosen]
        vars_of: dict[int, Var] = {slot: var for var, slot in self.read.items()}
        for slot, entry in enumerate(self.table):
            if slot not in vars_of:
                alive = entry() if type(entry) is weakref.ref else entry
                # A slot that nobody sees may still be needed by what stays behind.
                vars_of[slot] = alive if alive is not None and alive.slot == slot else Var()
        for outside in self.read:
            if outside.readers is not None:
                outside.readers.pop(self, None)
        parts = []
        for records in (taken, rest):
            part = Segment(self.context, self.limit, lazy=True)
            for record in records:
                for result in record.outputs:
                    made = vars_of[result.slot]
                    made.writer, made.ready = part, False
                inputs = [
                    None if operand is None else View(vars_of[operand.slot], operand.spec, self.context, operand.offset)
                    for operand in record.inputs
                ]
                part._again(record, inputs, [vars_of[result.slot] for result in record.outputs], scheduler)
            parts.append(part)
            if records is taken:
                scheduler.close(part)
        scheduler.replace_lazy(self, parts[1])
        self.records, self.table, self.read = [], [], {}
        return parts[0]

    def _again(self, record: Record, inputs: list[View | None], made: list[Var], scheduler: Scheduler) -> None:
        """Record an operation of another segment here, with its Vars. A read of an open lazy part closes that part."""
        operands = tuple(
            None if view is None else Operand(self.slot_of(view.var, scheduler), view.offset, view.spec) for view in inputs
        )
        results = tuple(Result(self._new_slot(var), -1, -1, old.spec) for var, old in zip(made, record.outputs))
        self.nbytes += sum(result.spec.nbytes for result in results)
        self.records.append(Record(record.op, operands, results, (), record.key, record.where))

    @property
    def full(self) -> bool:
        return len(self.records) >= self.limit

    @property
    def is_open(self) -> bool:
        return self.state is OPEN
