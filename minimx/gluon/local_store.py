"""The store of one process: where a Trainer adds up the gradients of several devices, and perhaps updates the weights.

It has the methods of MXNet's KVStore that a Trainer calls, so that any object with them can take its place. It keeps no copy of the
weights: what is written into a parameter between two steps is what the next step starts from. Book: chapter 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import files, nd
from ..base import ArgumentError
from ..device import cpu
from ..nd import NDArray
from ..optimizer import Optimizer, Updater, get_updater

__all__ = ["KINDS", "LocalStore", "read_states", "write_states"]

#: The names of stores for one process. Those with "device" add on the first device, the others in host memory.
KINDS = ("device", "local", "local_allreduce_cpu", "local_allreduce_device", "local_update_cpu")


class LocalStore:
    """Sums over devices, and with `set_optimizer` updates too.

    **Args** `kind`: one of KINDS. **Source** MXNet `KVStore`, as far as a Trainer uses it.
    """

    def __init__(self, kind: str = "device") -> None:
        if kind not in KINDS:
            raise ArgumentError(f"there is no kvstore {kind!r} here; for one process there are {', '.join(map(repr, KINDS))}")
        self.type = kind
        self._updater: Updater | None = None

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Whether the store can do what `capability` names: "optimizer", update weights."""
        return capability == "optimizer"

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """Update weights with `optimizer` from now on."""
        self._updater = get_updater(optimizer)

    def broadcast(self, key: Any, value: NDArray, out: Sequence[NDArray], priority: int = 0) -> None:
        """Write `value` into all arrays of `out`."""
        for target in out:
            if target is not value:
                value.copyto(target)

    def pushpull(self, key: Any, value: Sequence[NDArray], out: Sequence[NDArray] | None = None, priority: int = 0) -> None:
        """Add the gradients `value` of all devices; write the sum into `out`, or into `value` without it.

        With an optimizer, `out` are the weights: the first one is updated by the sum, and written into the others.
        """
        total = self._total(value)
        if self._updater is None or out is None:
            self.broadcast(key, total, value if out is None else out)
            return
        self._updater(key, total.as_in_context(out[0].context), out[0])
        self.broadcast(key, out[0], out[1:])

    def _total(self, arrays: Sequence[NDArray]) -> NDArray:
        if len(arrays) == 1:
            return arrays[0]
        place = arrays[0].context if "device" in self.type else cpu()
        return nd.add_n(*(array.as_in_context(place) for array in arrays))

    def save_optimizer_states(self, fname: files.PathLike, dump_optimizer: bool = False) -> None:
        """Write the states of the updates to a file. **Raises** AssertionError without an optimizer."""
        write_states(fname, self._require_updater(), dump_optimizer)

    def load_optimizer_states(self, fname: files.PathLike) -> None:
        """Read states from a file of `save_optimizer_states`. **Raises** FileFormatError for another one."""
        self._require_updater().set_states(read_states(fname))

    def _require_updater(self) -> Updater:
        assert self._updater is not None, "this kvstore has no optimizer, so there are no states; call set_optimizer first"
        return self._updater


def write_states(fname: files.PathLike, updater: Updater, dump_optimizer: bool = True) -> None:
    """Write the states of an updater to a file, which is replaced when the new one is complete."""
    files.replace_file(fname, [updater.get_states(dump_optimizer)])


def read_states(fname: files.PathLike) -> bytes:
    """The bytes of a file. **Raises** MissingFileError if it is not there."""
    file, size = files.open_file(fname)
    with file:
        return file.read(size)
