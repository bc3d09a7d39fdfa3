"""Groups of recorded elementwise operations on a GPU: each is one kernel (minimx/kernels/cupy.py) rather than tile by tile.

On a CPU a group is worth while for arrays that fit no cache. On a GPU it always is: a small operation takes as long as its launch.
Operands may broadcast, since the kernel finds the element of each by itself. Book: chapter 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import device
from ..kernels.cupy import MOST_ARRAYS, MOST_OPERATORS, Fused, Group, Step, broadcasts, fits
from ..op import Shape
from .events import watch
from .var import Failure, window

if TYPE_CHECKING:
    from .segment import Operand, Record, Segment


def group_end(segment: Segment, records: list[Record], start: int) -> int:
    """The position after the longest group that begins at `start`; `start` itself if one operator alone has a kernel as good.

    While somebody watches operators there are no groups, so that each can be timed.
    """
    outputs = records[start].outputs
    shape = outputs[0].spec.shape if outputs else ()
    inside: set[int] = set()
    operands: set[Operand] = set()
    position = start
    while position < min(len(records), start + MOST_OPERATORS) and watch.operators is None:
        record = records[position]
        if not _fits_group(segment, record, shape, inside):
            break
        operands.update(each for each in record.inputs if each is not None and each.slot not in inside)
        if len(operands) + len(inside) >= MOST_ARRAYS:
            break
        inside.add(record.outputs[0].slot)
        position += 1
    return start if position == start + 1 and records[start].op.ufunc is not None else position


def _fits_group(segment: Segment, record: Record, shape: Shape, inside: set[int]) -> bool:
    """Whether a record can join a group over `shape`. `inside`: the slots that the group makes."""
    if len(record.outputs) != 1 or record.mutated or record.outputs[0].base >= 0 or record.outputs[0].spec.shape != shape:
        return False
    given = []
    for operand in record.inputs:
        if operand is None or not broadcasts(operand.spec.shape, shape):
            return False
        if operand.slot in inside:
            if operand.offset >= 0:  # a part cannot be read before the whole is there
                return False
        elif type(segment.values[operand.slot]) is Failure or segment.values[operand.slot] is None:
            return False
        given.append(operand.spec)
    return fits(record.op, given, record.outputs[0].spec)


def run_group(segment: Segment, records: list[Record], position: int, last_use: dict[int, int]) -> bool:
    """Run a group as one kernel. `position` is that of its first record among all, for `last_use`.

    False if it failed: nothing is changed then, and the records are to be run one by one.
    """
    values, end = segment.values, position + len(records)
    made = {record.outputs[0].slot for record in records}
    numbers: dict[Any, int] = {}  # operand from outside -> its number
    for record in records:
        for operand in record.inputs:
            if operand is not None and operand.slot not in made:
                numbers.setdefault(operand, len(numbers))
    slots: dict[int, int] = {}  # slot made here -> the number of its value
    steps = []
    for record in records:
        inputs = [operand for operand in record.inputs if operand is not None]
        sources = tuple(slots[operand.slot] if operand.slot in slots else numbers[operand] for operand in inputs)
        steps.append(Step(record.op, sources, record.outputs[0].spec.dtype))
        slots[record.outputs[0].slot] = len(numbers) + len(slots)
    wanted = [slot for slot in slots if last_use[slot] >= end]
    shape = records[0].outputs[0].spec.shape
    group = Group(shape, tuple(each.spec.dtype for each in numbers), tuple(steps), tuple(slots[slot] for slot in wanted))
    arrays = [window(values[each.slot], each.offset, each.spec) for each in numbers]
    try:
        outputs = Fused(group)(device.array_module(segment.context), *arrays)
    except Exception:  # of memory there may be enough when they run one by one; what fails again will say so
        return False
    for slot, output in zip(wanted, outputs):
        values[slot] = output
    return True
