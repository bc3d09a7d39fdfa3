"""The stores of one process: values by key, each the sum of what several devices push.

A store may update: then a push is a gradient, and the value a weight that the optimizer changes. Nothing here waits: sums and copies are
pushed to the engine like everything else, and start when the last operand is ready, beside what the devices still compute. A `priority`
orders those that are ready: a Trainer gives the first layers the highest, since the next forward pass asks for them first.
What comes in one call, in one memory, is added, updated and copied by one task. Book: chapters 9 and 11.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from .. import engine, files
from ..base import ArgumentError, FileFormatError, MXNetError, ShapeError, shown
from ..device import cpu
from ..nd import NDArray
from ..optimizer import Optimizer, Updater, get_updater
from .base import KVStoreBase, asked, factories
from .compression import Compression
from .reduction import add_everywhere, all_in_one_memory, all_reduce, by_tree, copy_each, one_memory, spread, sum_each, summed

__all__ = ["LOCAL", "KVStore", "in_file", "read_states", "write_states"]

#: The names of stores for one process. Those with "device" add on the devices, the others in host memory.
LOCAL = ("local", "device", "local_allreduce_cpu", "local_allreduce_device", "local_update_cpu")

Pairs = Sequence[tuple[Any, list[NDArray]]]  # keys, each with its arrays


class Exchange(NamedTuple):
    """A push and pull that is one operation: what it comes to when all checks are made."""

    updater: Updater
    optimizer: Optimizer
    keys: list[Any]
    grads: list[list[NDArray]]
    stored: list[NDArray]
    copies: list[list[NDArray]]

    def run(self) -> None:
        self.updater.update_copies(self.keys, self.grads, self.stored, self.copies)


class Known(NamedTuple):
    """An Exchange, with the arrays for which it was asked, those that are pushed and then those that are pulled."""

    arrays: list[NDArray]
    exchange: Exchange

    def serves(self, updater: Any, key: list[Any], arrays: list[NDArray]) -> bool:
        """Whether the same is asked again."""
        made = self.exchange
        if made.updater is not updater or made.optimizer is not updater.optimizer or made.keys != key:
            return False
        return len(arrays) == len(self.arrays) and all(map(operator.is_, arrays, self.arrays))


class KVStore(KVStoreBase):
    """Values by key. Keys are whole numbers or strings, one kind a store.

    Every method takes one key with an NDArray or a list of them, one for each device, or a list of keys with a list of those.
    **Source** MXNet `kvstore.KVStore`. It differs where a value is broadcast to itself: the store then shares that array instead of
    copying it, so that what is written into a weight between two steps counts.
    """

    #: Bytes of values that a Trainer had better send in one call: enough to be worth a task, and not so many that adding them must wait
    #: for much of the backward pass.
    bucket: ClassVar[int] = 4 << 20
    at_once: ClassVar[bool] = True  # arrays of several keys that are in one memory are added by one task
    together: ClassVar[bool] = False  # sums are over several processes, which all take part in each

    def __init__(self, kind: str = "local") -> None:
        self._type = kind
        self._values: dict[Any, NDArray] = {}
        self._updater: Callable[[Any, Any, Any], None] | None = None
        self._compression: Compression | None = None
        self._keys: type | None = None  # int or str, from the first key on
        self._known: dict[Any, Known] = {}  # by the first key: see `pushpull_again`

    # ---- what it is

    @property
    def type(self) -> str:
        return self._type

    @staticmethod
    def is_capable(capability: str) -> bool:
        """True for "optimizer": it updates weights. **Raises** ValueError for a name that no store knows."""
        return asked(capability)

    # ---- values

    def init(self, key: Any, value: Any) -> None:
        """Enter keys with their first values. **Raises** MXNetError for a key that is there already."""
        for each, arrays in self._pairs("init", key, value):
            self._enter(each, arrays[0].copy())

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Add the arrays of all devices; the sum becomes the value of the key or, with an updater, changes it.

        **Returns** at once. **Raises** MXNetError for a key that was not entered; ShapeError for arrays of another shape.
        """
        pairs = self._checked("push", key, value)
        with engine.priority(priority):
            self._push(pairs)

    def pull(self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Write the values of keys into the arrays `out`. **Returns** at once. **Raises** as `push`."""
        if out is None:
            raise ArgumentError("kvstore.pull: arrays that take the values are wanted: pull(key, out=...)")
        pairs = self._checked("pull", key, out)
        with engine.priority(priority):
            self._pull(pairs)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """`push`, and `pull` into `out`, or into the pushed arrays without it. Without an updater the key need not be entered."""
        if self._updater is not None:
            pairs, targets = self._checked("push", key, value), self._checked("pull", key, value if out is None else out)
            with engine.priority(priority):
                exchange = self._exchange(pairs, targets)
                if exchange is not None:
                    exchange.run()
                    return
                with self._one_after_the_other(pairs, targets):
                    self._push(pairs)
                    self._pull(targets)
            return
        pairs = list(self._pairs("pushpull", key, value))
        wanted = dict(pairs if out is None else self._pairs("pushpull", key, out))
        for each, arrays in pairs:
            self._check(each, arrays[0], [*arrays, *wanted[each]])
        in_place = all(list(map(id, wanted[each])) == list(map(id, arrays)) for each, arrays in pairs)
        with engine.priority(priority):
            if in_place and self._can_add_at_once(pairs):
                add_everywhere([arrays for _, arrays in pairs])
                return
            for each, arrays in pairs:
                self._reduce(each, arrays, wanted[each])

    def pushpull_again(self, key: list[Any], value: list[list[NDArray]], out: list[list[NDArray]], priority: int = 0) -> None:
        """`pushpull` of lists, for a caller who comes with the same arrays step after step: these are checked once, and kept."""
        if getattr(self.pushpull, "__func__", None) is not _pushpull:  # somebody has put another one in its place
            self.pushpull(key, value, out, priority)
            return
        arrays = [array for arrays in (*value, *out) for array in arrays]
        known = self._known.get(key[0])
        if known is not None and known.serves(self._updater, key, arrays):
            with engine.priority(priority):
                known.exchange.run()
            return
        self.pushpull(key, value, out, priority)
        self._known.pop(key[0], None)
        exchange = self._exchange(list(zip(key, map(list, value))), list(zip(key, map(list, out))))
        if exchange is not None:
            self._known[key[0]] = Known(arrays, exchange)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Enter keys with their first values, and write these into the arrays `out`. **Raises** as `init`."""
        targets = dict(self._pairs("broadcast", key, out))
        with engine.priority(priority):
            for each, arrays in self._pairs("broadcast", key, value):
                chosen = targets[each]
                shared = next((target for target in chosen if target is arrays[0]), None)
                stored = arrays[0].copy() if shared is None else shared
                self._enter(each, stored)
                self._check(each, stored, chosen)
                spread(stored, [stored, *(target for target in chosen if target is not stored)])

    def row_sparse_pull(self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None) -> None:
        """Refused: there are dense arrays only. **Raises** MXNetError."""
        raise MXNetError("kvstore.row_sparse_pull: there are no sparse arrays here; pull the whole value with pull(key, out=...)")

    # ---- updates

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Update values with `optimizer` whenever a gradient is pushed. **Raises** ArgumentError for anything else."""
        if not isinstance(optimizer, Optimizer):
            raise ArgumentError(
                f"kvstore.set_optimizer: an Optimizer such as mx.optimizer.SGD() is wanted, got {shown(optimizer)}"
            )
        self._updater = get_updater(optimizer)

    def _set_updater(self, updater: Callable[[Any, Any, Any], None]) -> None:
        """Call `updater(key, pushed, stored)` at every push: it changes `stored` in place. MXNet's code calls it by this name."""
        if not callable(updater):
            raise ArgumentError(f"kvstore: an updater is a function of key, pushed and stored array, got {shown(updater)}")
        self._updater = updater

    def set_gradient_compression(self, compression_params: Any) -> None:
        """Send gradients of 2 bits a number from device to device: {"type": "2bit", "threshold": 0.5}.

        **Raises** ArgumentError for other parameters, and in a store that adds in host memory, where nothing would be gained.
        """
        if "device" not in self._type and "dist" not in self._type:
            raise ArgumentError(
                f"Gradient compression is not supported for this type of kvstore, {self._type!r}; use 'device' or 'dist_sync'"
            )
        chosen = Compression(compression_params)
        self._compression = chosen if chosen.type != "none" else None
        self._known.clear()

    def save_optimizer_states(self, fname: files.PathLike, dump_optimizer: bool = False) -> None:
        """Write the states of the updates to a file, replaced when the new one is whole. **Raises** AssertionError without an optimizer."""
        write_states(fname, self._require_updater(), dump_optimizer)

    def load_optimizer_states(self, fname: files.PathLike) -> None:
        """Read states from a file of `save_optimizer_states`. **Raises** FileFormatError for another one."""
        updater = self._require_updater()
        with in_file(fname):
            updater.set_states(read_states(fname))

    def _require_updater(self) -> Updater:
        assert isinstance(self._updater, Updater), (
            "this kvstore has no optimizer, so there are no states; call set_optimizer first"
        )
        return self._updater

    # ---- processes: there is one

    def _barrier(self) -> None:
        """Return when all processes have come here."""

    # ---- what is added, updated and copied

    def _push(self, pairs: Pairs) -> None:
        """Add what is pushed; the sums become the values, or go to the updater."""
        totals = self._totals(pairs)
        if isinstance(self._updater, Updater):  # it takes several keys at once
            stored = [self._value(each) for each, _ in pairs]
            moved = [total.as_in_context(value.context) for total, value in zip(totals, stored)]
            self._updater([each for each, _ in pairs], moved, stored)
            return
        for (each, _), total in zip(pairs, totals):
            value = self._value(each)
            if self._updater is None:
                total.copyto(value)
            else:
                self._updater(each, total.as_in_context(value.context), value)

    def _pull(self, pairs: Pairs) -> None:
        """Copy the values into the arrays beside their keys."""
        stored = [self._value(each) for each, _ in pairs]
        every = [(array, value) for (_, targets), value in zip(pairs, stored) for array in (value, *targets)]
        alike = all(array.dtype is value.dtype for array, value in every)
        if len(pairs) > 1 and alike and one_memory([array.context for array, _ in every]):
            copy_each(stored, [targets for _, targets in pairs])
            return
        for (_, targets), value in zip(pairs, stored):
            spread(value, [value, *(target for target in targets if target is not value)])

    def _exchange(self, pairs: Pairs, targets: Pairs) -> Exchange | None:
        """`_push` and `_pull` as one operation, where the optimizer has one; None where it has not."""
        if type(self._updater) is not Updater or not self._can_add_at_once(pairs) or self.together:
            return None
        keys, stored = [each for each, _ in pairs], [self._value(each) for each, _ in pairs]
        copies = [[target for target in listed if target is not value] for (_, listed), value in zip(targets, stored)]
        several = [[value, *arrays, *others] for value, (_, arrays), others in zip(stored, pairs, copies)]
        if keys != [each for each, _ in targets] or not all_in_one_memory(several) or not self._updater.joins(stored):
            return None
        if any(array.dtype is not each[0].dtype for each in several for array in each):
            return None
        return Exchange(self._updater, self._updater.optimizer, keys, [arrays for _, arrays in pairs], stored, copies)

    def _one_after_the_other(self, *several: Pairs) -> contextlib.AbstractContextManager[None]:
        """A scope in which sum, update and copies are one task, where all are in host memory: each waits for the one before."""
        places = {array.context for pairs in several for key, arrays in pairs for array in (self._value(key), *arrays)}
        if self.together or not places or not all(place.host for place in places):
            return contextlib.nullcontext()
        return engine.one_task(self._value(several[0][0][0]).context)

    def _can_add_at_once(self, pairs: Pairs) -> bool:
        several = [arrays for _, arrays in pairs]
        return self.at_once and len(pairs) > 1 and self._compression is None and all_in_one_memory(several)

    def _totals(self, pairs: Pairs) -> list[NDArray]:
        """The sum of each key's arrays, fresh or the only one of them."""
        if self._can_add_at_once(pairs) and len(pairs[0][1]) > 1:
            return sum_each([arrays for _, arrays in pairs])
        return [self._total(each, arrays) for each, arrays in pairs]

    def _total(self, key: Any, arrays: Sequence[NDArray]) -> NDArray:
        """The sum of `arrays`, fresh or the only one of them."""
        if self._compression is not None and len(arrays) > 1:
            arrays = self._compressed(key, arrays)
        return by_tree(arrays) if "device" in self._type else summed(arrays, cpu())

    def _reduce(self, key: Any, arrays: Sequence[NDArray], targets: Sequence[NDArray]) -> None:
        """Write the sum of `arrays` into `targets`."""
        if "device" in self._type and self._compression is None:
            all_reduce(arrays, targets)
        else:
            total = self._total(key, arrays).as_in_context(targets[0].context)
            spread(total, targets)

    def _compressed(self, key: Any, arrays: Sequence[NDArray]) -> list[NDArray]:
        """What arrives of `arrays` on the first device, after two bits of each number have travelled there."""
        compression, place = self._compression, arrays[0].context
        assert compression is not None
        bits = [compression.sent(key, number, array) for number, array in enumerate(arrays)]
        return [compression.received(each.as_in_context(place), array.shape, array.dtype) for each, array in zip(bits, arrays)]

    # ---- keys

    def _enter(self, key: Any, value: NDArray) -> None:
        if key in self._values:
            raise MXNetError(
                f"duplicate init of key {key!r}: it has a value already, from init or broadcast; change it with push"
            )
        self._values[key] = value

    def _value(self, key: Any) -> NDArray:
        if key not in self._values:
            raise MXNetError(f"key {key!r} has not been inited: call init or broadcast with its first value")
        return self._values[key]

    def _checked(self, what: str, key: Any, value: Any) -> list[tuple[Any, list[NDArray]]]:
        """`_pairs`, of keys that have values of these shapes."""
        pairs = list(self._pairs(what, key, value))
        for each, arrays in pairs:
            self._check(each, self._value(each), arrays)
        return pairs

    def _check(self, key: Any, value: NDArray, arrays: Sequence[NDArray]) -> None:
        for array in arrays:
            if array.shape != value.shape:
                raise ShapeError(
                    f"kvstore: the value of key {key!r} has shape {value.shape}, an array {array.shape}; they must be equal"
                )

    def _pairs(self, what: str, key: Any, value: Any) -> Iterator[tuple[Any, list[NDArray]]]:
        """Each key with its arrays: those of all its places, if it comes several times. Raises MXNetError for mixed kinds of keys."""
        if not isinstance(key, (list, tuple)):
            key, value = [key], [value]
        values = list(value) if isinstance(value, (list, tuple)) else [value] * len(key)
        if len(values) != len(key):
            raise ArgumentError(
                f"kvstore.{what}: there are {len(key)} keys and {len(values)} arrays or lists of arrays; there must be one a key"
            )
        found: dict[Any, list[NDArray]] = {}
        for each, arrays in zip(key, values):
            self._require_key(what, each)
            listed = list(arrays) if isinstance(arrays, (list, tuple)) else [arrays]
            for array in listed:
                if not isinstance(array, NDArray):
                    raise ArgumentError(
                        f"kvstore.{what}: key {each!r} comes with {shown(array)}; an NDArray, or a list of them, is wanted"
                    )
            found.setdefault(each, []).extend(listed)
        for each, listed in found.items():
            if not listed:
                raise ArgumentError(f"kvstore.{what}: key {each!r} comes with no array")
        return iter(found.items())

    def _require_key(self, what: str, key: Any) -> None:
        kind = str if isinstance(key, str) else int if isinstance(key, int) and not isinstance(key, bool) else None
        if kind is None:
            raise ArgumentError(f"kvstore.{what}: a key is a whole number or a string, got {shown(key)}")
        if self._keys not in (None, kind):
            raise MXNetError(f"kvstore.{what}: Mixed key types are not allowed: {key!r} after keys of type {self._keys.__name__}")
        self._keys = kind


_pushpull = KVStore.pushpull


def write_states(fname: files.PathLike, updater: Updater, dump_optimizer: bool = True) -> None:
    """Write the states of an updater to a file, which is replaced when the new one is complete."""
    files.replace_file(fname, [updater.get_states(dump_optimizer)])


def read_states(fname: files.PathLike) -> bytes:
    """The bytes of a file. **Raises** MissingFileError if it is not there."""
    file, size = files.open_file(fname)
    with file:
        return file.read(size)


@contextlib.contextmanager
def in_file(fname: files.PathLike) -> Iterator[None]:
    """Errors about the bytes of a file name it."""
    try:
        yield
    except FileFormatError as error:
        raise FileFormatError(f"{files.as_path(fname)}: {error}") from error


factories.update(dict.fromkeys(LOCAL, KVStore))
