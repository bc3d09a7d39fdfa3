"""Running the records of a segment: one by one, or a chain of elementwise operations tile by tile.

A chain of elementwise operations over arrays of one shape is limited by memory if each operation goes over whole arrays. So
neighbouring ones form a *group*: the executor walks over the data in tiles that fit a core's cache and applies all operations of the
group to a tile before it goes on to the next. A value that nobody sees after the group exists only as a tile. The tiles are shared out
among the cores. Book: chapter 2; the same idea compiled is chapter 5.
"""

from __future__ import annotations

import operator
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import cuda, device, kernels, storage
from ..base import DeviceError, MXNetError, env_int
from ..op import Kind, Op, Spec
from . import crew, fused, writes
from .events import GroupClock, Member, watch, watched
from .var import Failure, window

if TYPE_CHECKING:
    from .segment import Operand, Record, Segment

TILE = env_int("MINIMX_TILE", 1 << 18, 1)  # elements: a tile of float32 fits a second-level cache
GROUPED = 1 << 15  # elements: smaller arrays stay in cache anyway


def call_kernel(op: Op, xp: Any, arrays: list[Any], key: Any = None, **out: Any) -> tuple[Any, ...]:
    """The outputs of `op` on `arrays`, as a tuple."""
    if key is not None:
        out["key"] = key
    if op.on_host and xp is not np:
        return call_on_host(op, xp, arrays, **out)
    result = op.kernel(xp, *arrays, **out)
    return result if type(result) is tuple else (result,)


def call_on_host(op: Op, xp: Any, arrays: list[Any], **how: Any) -> tuple[Any, ...]:
    """The outputs of an operator for arrays on a GPU, computed by NumPy: the calling thread waits for its inputs."""
    given = [array if array is None else array.get() for array in arrays]
    result = op.kernel(np, *given, **how)
    for position in op.mutates:
        arrays[position][...] = xp.asarray(given[position])
    return tuple(xp.asarray(each) for each in (result if type(result) is tuple else (result,)))


def checked(op: Op, xp: Any, results: tuple[Any, ...], specs: list[Spec], arrays: list[Any]) -> list[Any]:
    """The results as arrays of exactly `specs`, contiguous and with memory of their own."""
    if len(results) != len(specs):
        raise MXNetError(f"{op.name}: the kernel gave {len(results)} outputs, {len(specs)} were inferred")
    good = []
    for value, spec in zip(results, specs):
        if type(value) is not xp.ndarray:
            value = xp.asarray(value)  # a NumPy scalar
        if value.shape != spec.shape or value.dtype != spec.dtype:
            raise MXNetError(
                f"{op.name}: the kernel gave {value.dtype.name}{list(value.shape)}, {spec} was inferred: a fault of minimx"
            )
        if not value.flags.c_contiguous or (op.aliases and arrays and xp.may_share_memory(value, arrays[0])):
            value = value.copy()
        good.append(value)
    return good


def run_now(
    op: Op, arrays: list[Any], specs: list[Spec], key: Any, context: device.Context, where: tuple[str, int] | None = None
) -> list[Any]:
    """Run one operation on arrays that are there, in the calling thread; the output arrays. Raises what the kernel raises.

    `where`: the user's line that queued it, if it was queued.
    """
    if context.host:
        with np.errstate(all="ignore"):
            if watch.direct:
                return compute(op, np, arrays, specs, key, context)
            return watched(compute, op, np, arrays, specs, key, context, where)
    with device.activate(context), np.errstate(all="ignore"):
        if watch.direct:
            return compute(op, device.array_module(context), arrays, specs, key, context)
        return watched(compute, op, device.array_module(context), arrays, specs, key, context, where)


def compute(op: Op, xp: Any, arrays: list[Any], specs: list[Spec], key: Any, context: device.Context) -> list[Any]:
    """The outputs of `op`, large ones in memory of the device's pool where the kernel can be told where to write."""
    if not context.host and cuda.state.in_use:
        require_there(op, xp, arrays, context)
    if op.kind is Kind.PROGRAM:
        return list(call_kernel(op, xp, arrays, key))
    if op.reuses:
        results = call_kernel(op, xp, arrays, key)
        if all(map(operator.is_, results, arrays[len(arrays) - len(results) :])):  # it is the memory that was there
            return list(results)
        return [storage.adopt(output, context) for output in checked(op, xp, results, specs, arrays)]
    if xp is np and op.name in kernels.NAMES:
        return compute_faster(op, arrays, specs, key, context)
    if xp is np and specs and specs[0].nbytes >= storage.SMALL:
        if (op.kind is Kind.ELEMENTWISE and len(specs) == 1) or op.takes_out:
            out = storage.empty(specs[0], context)
            results = call_kernel(op, xp, arrays, key, out=out)
            return list(results) if results[0] is out else checked(op, xp, results, specs, arrays)
        outputs = checked(op, xp, call_kernel(op, xp, arrays, key), specs, arrays)
        return [storage.adopt(output, context) for output in outputs]
    return checked(op, xp, call_kernel(op, xp, arrays, key), specs, arrays)


def compute_faster(op: Op, arrays: list[Any], specs: list[Spec], key: Any, context: device.Context) -> list[Any]:
    """The outputs of an operator that may have a faster kernel than its own."""
    kernel = kernels.kernel_of(op, arrays, context)
    how = {"out": storage.empty(specs[0], context)} if op.takes_out else {} if key is None else {"key": key}
    results = kernel(np, *arrays, **how)
    outputs = checked(op, np, results if type(results) is tuple else (results,), specs, arrays)
    return [storage.adopt(output, context) for output in outputs]


def require_there(op: Op, xp: Any, arrays: list[Any], context: device.Context) -> None:
    """Raise DeviceError for arrays of a GPU that others hide now: simulated ones real ones, or real ones those that were simulated."""
    wrong = [array for array in arrays if array is not None and isinstance(array, np.ndarray) != (xp is np)]
    if wrong and not op.crosses_devices:
        made, now = ("real", "simulated") if xp is np else ("simulated", "real")
        raise DeviceError(
            f"{op.name}: an array on {context} was made on a {made} GPU, and {context} is a {now} one now; copy it to mx.cpu() before "
            "GPUs are simulated, or no more"
        )


def run_records(segment: Segment, records: list[Record]) -> None:
    """Run `records` on `segment.values`. A failure takes the place of a value, spreads to what reads it, and is noted in the segment."""
    xp = device.array_module(segment.context)
    last_use = last_uses(segment, records)
    with device.activate(segment.context), np.errstate(all="ignore"):
        position = 0
        while position < len(records):
            end = (group_end if xp is np else fused.group_end)(segment, records, position)
            run_together = run_group if xp is np else fused.run_group
            if end > position and run_together(segment, records[position:end], position, last_use):
                for record in records[position:end]:
                    forget(segment, record, end - 1, last_use)
                position = end
                continue
            for record in records[position : max(end, position + 1)]:
                run_one(segment, record, xp)
                forget(segment, record, position, last_use)
                position += 1


def last_uses(segment: Segment, records: list[Record]) -> dict[int, int]:
    """Slot -> position of the last record that makes or reads it; visible slots are never done with."""
    last: dict[int, int] = {}
    for position, record in enumerate(records):
        for operand in record.inputs:
            if operand is not None:
                last[operand.slot] = position
        for result in record.outputs:
            last[result.slot] = position
            if result.base >= 0:
                last[result.base] = position
        for before, after in record.mutated:
            last[before] = last[after] = position
    for slot in last:
        if segment.visible(slot) is not None:
            last[slot] = len(records)
    return last


def forget(segment: Segment, record: Record, position: int, last_use: dict[int, int]) -> None:
    """Let go of the values that no later record reads, so that their memory can serve the next."""
    for operand in record.inputs:
        if operand is not None and last_use[operand.slot] <= position:
            segment.values[operand.slot] = None
    for result in record.outputs:
        if last_use[result.slot] <= position:
            segment.values[result.slot] = None


def read(segment: Segment, operand: Operand) -> Any:
    return window(segment.values[operand.slot], operand.offset, operand.spec)


def failure_of(segment: Segment, record: Record) -> Failure | None:
    """The failure of an input of `record`, or of memory that it writes a part of."""
    values = segment.values
    for operand in record.inputs:
        if operand is not None and type(values[operand.slot]) is Failure:
            return values[operand.slot]
    for result in record.outputs:
        if result.offset >= 0 and type(values[result.base]) is Failure:
            return values[result.base]
    return None


def run_one(segment: Segment, record: Record, xp: Any) -> None:
    """Run one record. Its failure, or that of an input, becomes the value of all its outputs."""
    failure = failure_of(segment, record)
    if failure is None:
        try:
            compute_one(segment, record, xp)
            return
        except BaseException as error:  # whatever it is, whoever reads the result must see it
            failure = segment.failed(error, record.op.name, record.where)
    for result in record.outputs:
        segment.values[result.slot] = failure
    for _, after in record.mutated:
        segment.values[after] = failure


def compute_one(segment: Segment, record: Record, xp: Any) -> None:
    """Run one record whose inputs are there. Raises what its kernel raises."""
    values = segment.values
    arrays = [None if operand is None else read(segment, operand) for operand in record.inputs]
    specs = [result.spec for result in record.outputs]
    for before, _ in record.mutated:
        writes.noted(values[before])
    if watch.direct:
        outputs = compute(record.op, xp, arrays, specs, record.key, segment.context)
    else:
        outputs = watched(compute, record.op, xp, arrays, specs, record.key, segment.context, record.where)
    for result, output in zip(record.outputs, outputs):
        if result.base < 0:
            values[result.slot] = output
            continue
        memory = values[result.base]
        if type(memory) is Failure:  # all of shared memory is overwritten, which ends the failure
            memory = segment.table[result.base].value
        writes.noted(memory)
        window(memory, result.offset, result.spec)[...] = output
        values[result.slot] = memory
    for before, after in record.mutated:
        values[after] = values[before]


# ---- groups of elementwise operations


def group_end(segment: Segment, records: list[Record], start: int) -> int:
    """The position after the longest group that begins at `start`; `start` itself if there is none."""
    first = records[start]
    if first.op.kind is not Kind.ELEMENTWISE or not first.outputs or first.outputs[0].spec.size < GROUPED:
        return start
    size = first.outputs[0].spec.size
    inside: set[int] = set()
    position = start
    while position < len(records) and _fits_group(segment, records[position], size, inside):
        inside.add(records[position].outputs[0].slot)
        position += 1
    return position


def _fits_group(segment: Segment, record: Record, size: int, inside: set[int]) -> bool:
    """Whether a record can run on tiles of flat arrays of `size` elements: its operands are such arrays, or single numbers.

    `inside` holds the slots that the group itself makes: a part of one of those cannot be read before it is whole.
    """
    if record.op.kind is not Kind.ELEMENTWISE or len(record.outputs) != 1 or record.mutated or record.key is not None:
        return False
    result = record.outputs[0]
    if result.spec.size != size or result.base >= 0:
        return False
    for operand in record.inputs:
        if operand is None:
            return False
        if operand.slot in inside:
            if operand.spec.size != size:
                return False
        elif (
            type(segment.values[operand.slot]) is Failure
            or segment.values[operand.slot] is None
            or (operand.spec.size != 1 and operand.spec.shape != result.spec.shape)
        ):
            return False
    return True


def run_group(segment: Segment, records: list[Record], position: int, last_use: dict[int, int]) -> bool:
    """Run a group tile by tile. `position` is that of its first record among all, for `last_use`.

    False if a kernel failed: nothing is changed then, and the records are to be run one by one, so that only those fail that must.
    """
    values, size = segment.values, records[0].outputs[0].spec.size
    end = position + len(records)
    inputs: dict[Any, Any] = {}  # operand -> flat array or single number
    made: dict[int, Any] = {}  # slot -> flat output array; None: only a tile of it is ever there
    outputs: dict[
        int, Any
    ] = {}  # slot -> output array; values of the segment when they are whole, for Ctrl-C may come at any time
    for record in records:
        for operand in record.inputs:
            if operand is not None and operand.slot not in made and operand not in inputs:
                inputs[operand] = read(segment, operand).reshape(-1 if operand.spec.size == size else ())
        result = record.outputs[0]
        made[result.slot] = None
        if last_use[result.slot] >= end:
            try:
                outputs[result.slot] = storage.empty(result.spec, segment.context)
            except MXNetError:  # run one by one, dead values make room for the next
                return False
            made[result.slot] = outputs[result.slot].reshape(-1)

    # What is done to each tile, worked out once: (kernel, sources, slots whose tiles are free then, slot made, its dtype, its whole array
    # or None, whether nobody reads it). A source is (slot made in this group, -, -) or (-1, input, whether it is cut into tiles).
    plan: list[tuple[Any, ...]] = []
    for step, record in enumerate(records, position):
        operands = [operand for operand in record.inputs if operand is not None]
        sources = [
            (operand.slot, None, False) if operand.slot in made else (-1, inputs[operand], inputs[operand].ndim > 0)
            for operand in operands
        ]
        inside = dict.fromkeys(operand.slot for operand in operands if operand.slot in made)
        dying = [slot for slot in inside if made[slot] is None and last_use[slot] <= step]
        result = record.outputs[0]
        whole = made[result.slot]
        dead = whole is None and last_use[result.slot] <= step
        plan.append((record.op.kernel, sources, dying, result.slot, result.spec.dtype, whole, dead))

    tell = watch.operators
    group = None if tell is None else GroupClock([_member(record) for record in records])

    def run_tiles(bounds: list[tuple[int, int]]) -> None:
        lap = None if group is None else group.lap()
        for low, high in bounds:
            tiles: dict[int, Any] = {}  # slot -> the tile of it that is made now
            for number, (kernel, sources, dying, slot, dtype, whole, dead) in enumerate(plan):
                arrays = [tiles[source] if source >= 0 else array[low:high] if cut else array for source, array, cut in sources]
                for free in dying:
                    _scratch.give_back(tiles.pop(free))  # the result may go where this input is
                out = _scratch.take(dtype, high - low) if whole is None else whole[low:high]
                kernel(np, *arrays, out=out)
                if lap is not None:
                    lap(number)
                if dead:
                    _scratch.give_back(out)
                else:
                    tiles[slot] = out

    tiles = [(low, min(low + TILE, size)) for low in range(0, size, TILE)]
    try:
        crew.share_out(tiles, run_tiles)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            segment.interrupt = error  # for the thread that runs the segment, when it has
        return False
    for slot, output in outputs.items():
        values[slot] = output
    if tell is not None and group is not None:
        group.tell(tell, segment.context)
    return True


def _member(record: Record) -> Member:
    """What is told of an operator of a group."""
    return record.op.name, [record.outputs[0].spec], record.where, ""


class Scratch(threading.local):
    """Tiles of memory for values that nobody sees. Each thread that runs groups keeps a few, since fresh memory costs page faults."""

    def __init__(self) -> None:
        self.free: dict[np.dtype[Any], list[Any]] = {}

    def take(self, dtype: np.dtype[Any], length: int) -> Any:
        """A tile of `length` elements, at most TILE; its values are arbitrary."""
        idle = self.free.get(dtype)
        return (idle.pop() if idle else np.empty(TILE, dtype))[:length]

    def give_back(self, tile: Any) -> None:
        idle = self.free.setdefault(tile.dtype, [])
        if len(idle) < 8:
            idle.append(tile.base)  # what the tile was cut from


_scratch = Scratch()


def take_tile(dtype: str) -> Any:
    """A tile of TILE elements with arbitrary values, for the calling thread until it gives it back."""
    return _scratch.take(np.dtype(dtype), TILE)


def give_back_tile(tile: Any) -> None:
    """See `take_tile`."""
    _scratch.give_back(tile)
