"""How arrays on several devices become their sum on all of them: in one place, along a tree, or around a ring.

With n devices and m bytes, one place takes in (n - 1) m bytes over its one link. A tree has devices add in pairs, which all work at the
same time: ceil(log2 n) rounds of m bytes. In a ring each device only ever sends to its neighbour, a part of m / n bytes at a time:
2 (n - 1) rounds, in which every link carries 2 m (n - 1) / n bytes, however many devices there are. So small arrays take the tree, which
has fewest rounds, and large ones the ring, which uses all links all the time. P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce
algorithms" (2009).
Every sum is made in an order that does not depend on timing. Book: chapter 11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from .. import nd
from ..base import env_int
from ..device import Context
from ..nd import NDArray
from ..nd.entry import invoke
from ..op import Array, Kind, Op, Spec, attributes, beside
from ..rules import same_dtype, same_shape

#: Elements from which on a sum goes around the ring. (MXNet splits arrays of that size over several servers.)
LARGE = env_int("MXNET_KVSTORE_BIGARRAY_BOUND", 1_000_000, 1)


@attributes
class Several(Op):
    """An operator on the arrays of several keys, in one memory: `count` for each key, those of the first key first.

    One task for many small arrays: each by itself would take longer to hand over to a thread than to compute.
    """

    inputs: ClassVar[tuple[str, ...]] = ("data*",)
    kind = Kind.OPAQUE

    count: int
    keys: int = 1

    def by_key(self, data: Sequence[Any]) -> list[Sequence[Any]]:
        return [data[first : first + self.count] for first in range(0, len(data), self.count)]

    def check(self, *data: Spec) -> None:
        for specs in self.by_key(data):
            same_dtype(self, *specs)
            same_shape(self, *specs)


@attributes
class AddEverywhere(Several):
    """Every array of a key becomes the sum of all of that key."""

    name: ClassVar[str] = "add_everywhere"

    @property
    def mutates(self) -> tuple[int, ...]:  # type: ignore[override]  # as many as there are arrays
        return tuple(range(self.count * self.keys))

    @property
    def num_outputs(self) -> int:
        return 0

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        self.check(*data)
        return ()

    def kernel(self, xp: Any, *data: Array) -> tuple[Array, ...]:
        for total, *others in self.by_key(data):
            for array in others:
                total += array
            for array in others:
                array[...] = total
        return ()


@attributes
class SumEach(Several):
    """For each key a new array, the sum of its arrays."""

    name: ClassVar[str] = "sum_each"

    @property
    def num_outputs(self) -> int:
        return self.keys

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        self.check(*data)
        return tuple(data[:: self.count])

    def kernel(self, xp: Any, *data: Array) -> tuple[Array, ...]:
        totals = []
        for first, *others in self.by_key(data):
            total = first + others[0] if others else first.copy()
            for array in others[1:]:
                total += array
            totals.append(total)
        return tuple(totals)


@attributes
class CopyEach(Several):
    """A copy of each array."""

    name: ClassVar[str] = "copy_each"
    count: int = 1

    @property
    def num_outputs(self) -> int:
        return self.keys

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        return data

    def kernel(self, xp: Any, *data: Array) -> tuple[Array, ...]:
        copies = [beside(xp, array, array.shape, array.dtype) for array in data]
        for copy, array in zip(copies, data):
            copy[...] = array
        return tuple(copies)

    def vjp(self, g: Any, y: Any, *data: Any) -> tuple[Any, ...]:
        return g if type(g) is tuple else (g,)


def summed(arrays: Sequence[NDArray], place: Context) -> NDArray:
    """The sum of `arrays` as an array on `place`: the only one itself, if it is there; otherwise a fresh array."""
    if len(arrays) == 1:
        return arrays[0].as_in_context(place)
    return nd.add_n(*(array if one_memory((array.context, place)) else array.as_in_context(place) for array in arrays))


def by_tree(arrays: Sequence[NDArray]) -> NDArray:
    """The sum of `arrays` on the device of the first, added in pairs, then in pairs of pairs, each on one device of the pair."""
    partial = list(arrays)
    distance = 1
    while distance < len(partial):
        for first in range(0, len(partial) - distance, 2 * distance):
            partial[first] = summed((partial[first], partial[first + distance]), partial[first].context)
        distance *= 2
    return partial[0]


def spread(value: NDArray, targets: Sequence[NDArray]) -> None:
    """Write `value`, which lies where the first target does, into all targets: who has it sends it on, so that their number doubles."""
    targets = list({id(target): target for target in targets}.values())
    if value is not targets[0]:
        value.copyto(targets[0])
    reached = 1
    while reached < len(targets):
        for source in range(min(reached, len(targets) - reached)):
            targets[source].copyto(targets[reached + source])
        reached *= 2


def around_ring(arrays: Sequence[NDArray], targets: Sequence[NDArray]) -> None:
    """Write the sum of `arrays` into `targets`, one on each device: parts go around twice, first to be added, then to be copied."""
    count, size = len(arrays), arrays[0].size
    ends = [size * part // count for part in range(count + 1)]
    flat = [array.reshape((-1,)) for array in arrays]
    parts = [[each[ends[i] : ends[i + 1]] for i in range(count)] for each in flat]  # parts[device][part]
    for round_ in range(count - 1):
        for device in range(count):
            part, after = (device - round_) % count, (device + 1) % count
            parts[after][part] = summed((parts[after][part], parts[device][part]), arrays[after].context)
    whole = [target.reshape((-1,)) for target in targets]
    for round_ in range(count):
        for device in range(count):  # it has the whole sum of part `device + 1 - round_` now
            part, after = (device + 1 - round_) % count, (device + 1) % count
            whole[device][ends[part] : ends[part + 1]] = parts[device][part]
            if round_ < count - 1:
                parts[after][part] = parts[device][part].as_in_context(arrays[after].context)


def one_memory(contexts: Sequence[Context]) -> bool:
    """Whether arrays of these devices can be operands of one operation."""
    return all(context.host for context in contexts) or len(set(contexts)) == 1


def all_in_one_memory(several: Sequence[Sequence[NDArray]]) -> bool:
    """Whether the arrays of several keys, equally many each, are all different and in one memory, so that one task can add them."""
    every = [array for arrays in several for array in arrays]
    distinct = len({id(array.var) for array in every}) == len(every)
    return distinct and len({len(arrays) for arrays in several}) == 1 and one_memory([array.context for array in every])


def sum_each(several: Sequence[Sequence[NDArray]]) -> list[NDArray]:
    """The sum of each key's arrays, where the first of all lies, by one task. See `all_in_one_memory`."""
    return invoke(SumEach(len(several[0]), len(several)), [array for arrays in several for array in arrays])


def add_everywhere(several: Sequence[Sequence[NDArray]]) -> None:
    """All arrays of each key become their sum, by one task. See `all_in_one_memory`."""
    invoke(AddEverywhere(len(several[0]), len(several)), [array for arrays in several for array in arrays])


def copy_each(sources: Sequence[NDArray], targets: Sequence[Sequence[NDArray]]) -> None:
    """Write each key's source into its targets, all of them in one memory, by one task where the first source is."""
    pairs = {
        id(target): (source, target) for source, listed in zip(sources, targets) for target in listed if target is not source
    }
    if pairs:
        ours, theirs = zip(*pairs.values())
        invoke(CopyEach(1, len(pairs)), ours, list(theirs), sources[0].context)


def all_reduce(arrays: Sequence[NDArray], targets: Sequence[NDArray]) -> None:
    """Write the sum of `arrays` into all `targets`, of which the first lie where the arrays do; they may be the arrays themselves."""
    contexts = [array.context for array in arrays]
    in_place = len(targets) == len(arrays) and all(target is array for target, array in zip(targets, arrays))
    if in_place and len(arrays) > 1 and one_memory(contexts) and len({id(array.var) for array in arrays}) == len(arrays):
        invoke(AddEverywhere(len(arrays)), list(arrays))
    elif len(arrays) > 2 and math.prod(arrays[0].shape) >= LARGE and [target.context for target in targets] == contexts:
        around_ring(arrays, targets)
    else:
        total = by_tree(arrays)
        spread(total if total.context is targets[0].context else total.as_in_context(targets[0].context), targets)
