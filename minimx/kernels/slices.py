"""Links of a chain for some images at a time, so that what lies between two of them is still in a core's cache.

A layer of LeNet makes 14 MB of 1,024 images, which the next layer reads from memory. Of 64 images it is 0.9 MB, which a core's own cache
holds. So links that go image by image are made for a *slice* of the batch, one after the other, then for the next slice. Each thread of a
team has slices of its own, and waits for no other until all are done. Here stands which links can be part of such a *section*.

An array of a link is read or written row by row of its first axis, is read as a whole, as weights are, or is a sum over all rows, as
their gradients are. Sums are made for each slice, and added up, so that last digits differ from those of all rows at once.
"""

from __future__ import annotations

import enum
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..op import Op, Spec
from ..ops.binary import ElementwiseAdd
from ..ops.linalg import Dot
from .calls import Calls, Place
from .fused import Loop, single
from .onednn.primitive import Routine
from .sums import Sums

if TYPE_CHECKING:
    from .chain import Link

CACHE = 2 << 20  # bytes of all that a slice reads and writes by rows; at any time half of it is in use
LEAST = 16  # rows of a slice: with fewer, to call a kernel takes too long
HEAVY = 4  # weights are read again for each slice: they must be so many times less than its rows


class How(enum.Enum):
    """How a link goes over an array."""

    ROWS = "row by row"
    WHOLE = "all of it for each row"
    SUM = "as a sum over the rows"


ROWS, WHOLE, SUM = How
#: For operators that a library computes: how they go over their inputs, and over their output.
PATTERNS: dict[str, tuple[tuple[How, ...], How]] = {
    "Convolution": ((ROWS, WHOLE, WHOLE), ROWS),
    "Convolution_v1": ((ROWS, WHOLE, WHOLE), ROWS),
    "Deconvolution": ((ROWS, WHOLE, WHOLE), ROWS),
    "_backward_Convolution_data": ((ROWS, WHOLE), ROWS),
    "_backward_Convolution_weight": ((ROWS, ROWS), SUM),
    "Pooling": ((ROWS,), ROWS),
    "_backward_Pooling": ((ROWS,), ROWS),
    "_backward_Pooling_max": ((ROWS, ROWS, ROWS), ROWS),
    "FullyConnected": ((ROWS, WHOLE, WHOLE), ROWS),
    "batch_dot": ((ROWS, ROWS), ROWS),
}
Made: TypeAlias = "Loop | Routine"


class Memory(NamedTuple):
    """Where an array lies: in the bytes from `low` to `high` of something."""

    home: Any
    low: int
    high: int

    @property
    def nbytes(self) -> int:
        return self.high - self.low

    def overlaps(self, other: Memory) -> bool:
        return self.home == other.home and self.low < other.high and other.low < self.high


class Value(NamedTuple):
    """An array of a chain, as it is known beforehand. `passing`: it is made in the chain, and nobody reads it later."""

    spec: Spec
    memory: Memory
    passing: Memory | None = None  # memory of its own, and of those that lie in the same place


class Part(NamedTuple):
    """A link that can be made for some rows: of how many there are, and how it goes over each of its arrays."""

    link: Link
    rows: int
    hows: tuple[How, ...]


def part_of(link: Link, values: Sequence[Value | None]) -> Part | None:
    """A link as one that can be made for some rows; None if it cannot."""
    found = [values[number] for number in link.arrays]
    specs = [value.spec for value in found if value is not None]
    if len(specs) < len(found) or not specs[0].ndim:
        return None
    if isinstance(link.kernel, Loop):
        hows = hows_of_loop(link.kernel, specs)
    else:
        hows = hows_of_operator(link.kernel.op, link.kernel.specs)
    if hows is None or ROWS not in hows:
        return None
    lengths = {spec.shape[0] if spec.ndim else 1 for spec, how in zip(specs, hows, strict=True) if how is ROWS}
    return Part(link, lengths.pop(), tuple(hows)) if len(lengths) == 1 else None


def hows_of_loop(loop: Loop, specs: Sequence[Spec]) -> list[How] | None:
    """How a loop goes over its arrays, of which the last are its results."""
    if isinstance(loop, Sums):
        return [ROWS, SUM] if loop.axes[0] > 1 else None
    if type(loop) is not Loop:
        return None
    shape = specs[-1].shape
    padded = [(1,) * (len(shape) - spec.ndim) + spec.shape for spec in specs]
    return [ROWS if other[:1] == shape[:1] else WHOLE for other in padded]


def hows_of_operator(op: Op, inputs: Sequence[Spec | None]) -> list[How] | None:
    """How a library's kernel goes over the inputs that there are, and over the output."""
    if isinstance(op, Dot):
        left, right = inputs
        if left is None or right is None or left.ndim != 2 or right.ndim != 2 or (op.transpose_a and op.transpose_b):
            return None
        return [ROWS, ROWS, SUM] if op.transpose_a else [ROWS, WHOLE, ROWS]
    if op.name not in PATTERNS or op.num_outputs != 1:
        return None
    given, result = PATTERNS[op.name]
    return [*(how for how, spec in zip(given, inputs) if spec is not None), result]


class Section:
    """Links in order that can be made for some rows at a time. It begins with one, and `takes` the next.

    A value that is passed on from link to link, and that nobody else reads, has memory for the rows of a slice only. **Args** `elsewhere`:
    where those values would lie that links outside read, too.
    """

    def __init__(self, part: Part, values: Sequence[Value | None], elsewhere: frozenset[Memory] = frozenset()) -> None:
        self.values = values
        self.elsewhere = elsewhere
        self.rows = part.rows
        self.parts: list[Part] = []
        self.seen: dict[int, How] = {}  # by the arrays' numbers
        self.kernels: dict[int, list[Made] | None] = {}  # what `made` has found, by the number of rows
        self.takes(part)

    @property
    def links(self) -> list[Link]:
        return [part.link for part in self.parts]

    def value(self, number: int) -> Value:
        found = self.values[number]
        assert found is not None
        return found

    def memory(self, number: int) -> Memory:
        """Where an array lies."""
        value = self.value(number)
        return value.memory if value.passing is None or value.passing in self.elsewhere else value.passing

    @property
    def passing(self) -> dict[int, Memory]:
        """Where the values are that pass from link to link, by the arrays' numbers."""
        return {number: memory for number in self.seen if (memory := self.memory(number)) is self.value(number).passing}

    def takes(self, part: Part) -> bool:
        """Whether a link can be the next: then it is."""
        arrays = list(zip(part.link.arrays, part.hows))
        if part.rows != self.rows or not all(self._agrees(number, how) for number, how in arrays):
            return False
        self.parts.append(part)
        self.seen.update(arrays)
        return True

    def _agrees(self, number: int, how: How) -> bool:
        """Whether a slice that uses an array in such a way sees nothing that another slice writes."""
        memory = self.memory(number)
        for other, seen in self.seen.items():
            met = self.memory(other)
            if memory.overlaps(met) and (how is SUM or seen is not how or (how is ROWS and memory != met)):
                return False
        return True

    # ---- slices

    @functools.cached_property
    def nbytes(self) -> int:
        """Bytes that a row has in all arrays."""
        memories = {self.memory(number) for number, how in self.seen.items() if how is ROWS}
        return sum(memory.nbytes for memory in memories) // self.rows

    @property
    def sums(self) -> list[int]:
        """The arrays that are sums over the rows."""
        return [number for number, how in self.seen.items() if how is SUM]

    @property
    def is_worth_it(self) -> bool:
        """Whether all rows at a time would not stay in cache, and some do."""
        most = CACHE // max(1, self.nbytes)
        weights = sum(self.value(number).spec.nbytes for number, how in self.seen.items() if how is not ROWS)
        return len(self.parts) > 1 and self.rows > most >= LEAST and HEAVY * weights <= most * self.nbytes

    def bounds(self, number: int) -> list[tuple[int, int]]:
        """The slices, as many for each of so many threads. None has more rows than fit the cache, and they differ by one row at most."""
        least = -(-self.rows // (CACHE // self.nbytes))
        count = -(-least // number) * number
        edges = [self.rows * position // count for position in range(count + 1)]
        return list(itertools.pairwise(edges))

    def made(self, rows: int) -> list[Made] | None:
        """What computes each link for so many rows, in one thread; None if a library has not all of it."""
        if rows not in self.kernels:
            found = [each for each in (_made(part, rows) for part in self.parts) if each is not None]
            self.kernels[rows] = found if len(found) == len(self.parts) else None
        return self.kernels[rows]

    @functools.cached_property
    def adding(self) -> dict[int, Loop]:
        """For each sum, the loop that adds that of a slice to it."""
        return {number: adding(self.value(number).spec) for number in self.sums}

    def write(self, calls: Calls, number: int, take: Callable[[int], Place]) -> bool:
        """Have so many threads run the slices. False, and nothing is done, if all rows must be computed at once.

        **Args** `take`: a place for so many bytes: for sums of one slice, and of a thread's slices, and for what passes from link to link.
        """
        bounds = self.bounds(number)
        lengths = {high - low for low, high in bounds}
        if min(lengths) < LEAST:  # too few for so many threads
            return False
        made = {rows: self.made(rows) for rows in lengths}
        if None in made.values():
            return False
        many = len(bounds) // number
        team: list[Calls] = []
        totals = [{each: Place(each) for each in self.sums}, *(self._places(take) for _ in range(number - 1))]
        for thread, total in enumerate(totals):
            mine, own = Calls(calls.lib), self._places(take)
            passing = {memory: take(max(lengths) * memory.nbytes // self.rows) for memory in self.passing.values()}
            kept = {number: passing[memory] for number, memory in self.passing.items()}
            for position, (low, high) in enumerate(bounds[thread * many : (thread + 1) * many]):
                self._write_slice(mine, made[high - low] or [], low, high, {**kept, **(own if position else total)})
                if position:
                    self._write_sums(mine, total, own)
            team.append(mine)
        calls.add_team(team)
        for total in totals[1:]:
            self._write_sums(calls, totals[0], total)
        return True

    def _places(self, take: Callable[[int], Place]) -> dict[int, Place]:
        """Memory for a sum of each kind."""
        return {number: take(self.value(number).spec.nbytes) for number in self.sums}

    def _write_slice(self, calls: Calls, made: list[Made], low: int, high: int, own: dict[int, Place]) -> None:
        """The calls for some rows. `own`: where those arrays begin that the slice has for itself."""
        for part, kernel in zip(self.parts, made):
            places = [
                own.get(number) or Place(number, low * self.value(number).spec.nbytes // self.rows if how is ROWS else 0)
                for number, how in zip(part.link.arrays, part.hows)
            ]
            if isinstance(kernel, Loop):  # that of all rows can be told to go over some only
                units = kernel.units * (high - low) // self.rows if kernel is part.link.kernel else kernel.units
                calls.add_loop(kernel, places, 1, units)
            else:
                calls.add(kernel, places, 1)

    def _write_sums(self, calls: Calls, totals: dict[int, Place], sums: dict[int, Place]) -> None:
        """The calls that add to `totals`."""
        for number, place in sums.items():
            calls.add_loop(self.adding[number], [totals[number], place, totals[number]], 1)


def _made(part: Part, rows: int) -> Made | None:
    """What computes a link for so many rows, in one thread."""
    kernel = part.link.kernel
    if isinstance(kernel, Sums):
        return _compiled(kernel.sliced(rows, part.rows))
    if isinstance(kernel, Loop):
        return kernel
    hows = iter(part.hows)
    sliced = kernel.like([spec and (some(spec, rows) if next(hows) is ROWS else spec) for spec in kernel.specs])
    wanted = some(kernel.spec, rows) if part.hows[-1] is ROWS else kernel.spec
    made = sliced.made(1) if sliced.spec is wanted else None
    if isinstance(made, Loop):
        return _compiled(made)
    return made if isinstance(made, Routine) and made.ordinary is None else None


def _compiled(loop: Loop) -> Loop | None:
    """A loop that may be another one for fewer rows, when it is compiled; None if it cannot be."""
    loop.wait()
    return loop if loop.code.part else None


def adding(spec: Spec) -> Loop:
    """The loop that adds two arrays, of float32 like all that is summed here."""
    group = single(ElementwiseAdd(), (spec, spec), spec)
    assert group is not None
    return Loop.of(group, (spec.shape, spec.shape))


def some(spec: Spec, rows: int) -> Spec:
    """The spec of some rows."""
    return Spec.of((rows, *spec.shape[1:]), spec.dtype)


def sections(links: Sequence[Link], values: Sequence[Value | None]) -> list[Link | Section]:
    """The same links, in order, those that are worth it together in sections."""
    parts = [part_of(link, values) for link in links]
    users: dict[Memory, set[int]] = {}  # of each value that passes on, the links
    for position, link in enumerate(links):
        for value in (values[number] for number in link.arrays):
            if value is not None and value.passing is not None:
                users.setdefault(value.passing, set()).add(position)
    found: list[Link | Section] = []
    begin = 0
    while begin < len(links):
        section = _section(parts, begin, values, users)
        if section is None:
            found.append(links[begin])
            begin += 1
        else:
            found += [section] if section.is_worth_it else section.links
            begin += len(section.parts)
    return found


def _section(
    parts: Sequence[Part | None], begin: int, values: Sequence[Value | None], users: dict[Memory, set[int]]
) -> Section | None:
    """The longest section from a link on; None if that cannot be made for some rows."""
    first = parts[begin]
    if first is None:
        return None
    elsewhere: frozenset[Memory] = frozenset()
    while True:
        section = Section(first, values, elsewhere)
        for part in parts[begin + 1 :]:
            if part is None or not section.takes(part):
                break
        inside = range(begin, begin + len(section.parts))
        outside = {memory for memory in section.passing.values() if not users[memory] <= set(inside)}
        if not outside:
            return section
        elsewhere |= outside
