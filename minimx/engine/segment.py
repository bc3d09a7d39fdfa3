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

from ..device import Context, CopyLane
from ..op import Op, Spec
from . import execute
from .task import Task
from .var import Failure, Var, View, as_error, lost, without_arrays

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

    __slots__ = (
        "records", "table", "handed_on", "lazy", "limit", "deadline", "touches_memory", "values", "failures", "__weakref__",
    )  # fmt: skip

    def __init__(self, context: Context, limit: int, lazy: bool = False, lane: Context | CopyLane | None = None) -> None:
        super().__init__(context, "segment", lane)
        self.records: list[Record] = []
        self.table: list[Any] = []  # slot -> Var from outside, or weak reference to the Var that has this slot now
        self.handed_on: dict[int, Var] = {}  # slot -> Var that a later task writes next; others may read this value before that
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
            self.reads((var,), scheduler)
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
            self.writes((var,), scheduler)
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
        if var is not None and var.writer is self and var.slot == slot:
            return var
        return self.handed_on.get(slot)  # looked up last: `hand_on` comes before the Var gets its next writer

    def hand_on(self, var: Var) -> None:
        self.handed_on[var.slot] = var

    # ---- running

    def written_vars(self) -> list[Var]:
        found = []
        for slot, entry in enumerate(self.table):
            var = entry() if type(entry) is weakref.ref else entry
            if var is not None and self.read.get(var) != slot:
                found.append(var)
        return found

    @property
    def operators(self) -> int:
        return len(self.records)

    @property
    def queued_by(self) -> tuple[str, int] | None:
        return self.records[0].where if self.records else None

    def run(self) -> None:
        self._take_inputs()
        records = self.needed() if self.lazy else self.records
        if records:
            more = len(records) - 1
            self.name = records[0].op.name + (f" and {more} more" if more else "")
        try:
            execute.run_records(self, records)
        except BaseException as error:  # not in an operation: the device is not there, or Ctrl-C
            self.abandon(error)

    def abandon(self, error: BaseException) -> None:
        """`error` was raised between two operations: what has no value yet has failed."""
        failure = self.failed(error, "segment", self.records[0].where if self.records else None)
        values = self.values or [None] * len(self.table)
        self.values = [failure if value is None else value for value in values]

    def _take_inputs(self) -> None:
        """Fill the slots of Vars from outside. Nothing that could change those runs before this task has finished."""
        self.values = [None] * len(self.table)
        for var, slot in self.read.items():
            value = var.failure if var.failure is not None else var.value
            self.values[slot] = self._lost() if value is None else value

    def failed(self, error: BaseException, what: str, where: tuple[str, int] | None) -> Failure:
        """A new failure: `error` was raised by the operation `what`, which the line `where` called."""
        failure = super().failed(as_error(without_arrays(error), what), what, where)
        self.failures.append(failure)
        return failure

    def _lost(self) -> Failure:
        """Why there is no value: Ctrl-C came in the middle of writing it down, or in the middle of queueing what computes it."""
        return self.failed(lost(), "segment", None)

    def publish(self) -> list[Failure]:
        for slot in range(len(self.table)):
            var = self.visible(slot)
            if var is None:
                continue
            value = self.values[slot]
            if value is None:
                value = self._lost()
            if isinstance(value, Failure):
                self.release(var, value)
            else:
                before, var.value = var.value, value
                self.release(var, None)
                self.values[slot] = before  # dies with this list, later: not while the engine's lock is held
        return self.failures

    def forget(self) -> None:
        super().forget()
        self.values.clear()  # rather than another list: the traceback of a failure, which may live long, has this one
        self.records, self.table, self.failures, self.handed_on = [], [], [], {}

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

        What stays behind, in this segment, which stays open, reads the values of the part that was taken from Vars, like anything from
        outside. A segment that writes memory in place is not split, because the order of its records then matters beyond what slots say.
        """
        taken = self.needed([var.slot])
        if self.touches_memory or len(taken) == len(self.records):
            return self
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
        self.records, self.table, self.read, self.predecessors, self.nbytes = [], [], {}, set(), 0
        first = Segment(self.context, self.limit, lazy=True)
        for segment, records in ((first, taken), (self, rest)):
            for record in records:
                for result in record.outputs:
                    made = vars_of[result.slot]
                    made.writer, made.ready = segment, False
                inputs = [
                    None if operand is None else View(vars_of[operand.slot], operand.spec, self.context, operand.offset)
                    for operand in record.inputs
                ]
                segment._again(record, inputs, [vars_of[result.slot] for result in record.outputs], scheduler)
            if segment is first:
                scheduler.close(first)
        return first

    def _again(self, record: Record, inputs: list[View | None], made: list[Var], scheduler: Scheduler) -> None:
        """Record an operation of another segment, or of this one before it was split, here, with its Vars."""
        operands = tuple(
            None if view is None else Operand(self.slot_of(view.var, scheduler), view.offset, view.spec) for view in inputs
        )
        results = tuple(Result(self._new_slot(var), -1, -1, old.spec) for var, old in zip(made, record.outputs))
        self.nbytes += sum(result.spec.nbytes for result in results)
        self.records.append(Record(record.op, operands, results, (), record.key, record.where))

    @property
    def full(self) -> bool:
        return len(self.records) >= self.limit
