"""Stores over several processes: every process has the values, and they stay equal because all add the same sums.

MXNet's dist_sync sends gradients to servers, which add, update, and send weights back. Here there are no servers: a sum over all
processes (world.py) gives everyone what a server would have, and everyone makes the same update. What goes over the network, several
keys at a time, is a task of the engine in a lane of its own, so that it overlaps with what is still computed. Tasks there run in the
order in which they were pushed, which must be the same in all processes. Book: chapter 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import engine
from ..device import CopyLane, cpu
from ..engine import Var
from ..nd import NDArray
from .base import KVStoreBase, asked, factories
from .kvstore import KVStore
from .reduction import by_tree, spread, summed
from .world import world

__all__ = ["DIST", "DistStore", "Horovod"]

#: The names of stores over processes. Those with "device" add on the devices before they send, the others in host memory.
DIST = ("dist_sync", "dist_device_sync", "dist_sync_device", "dist")

NETWORK = CopyLane(cpu(), "network")
BUCKET = 4 << 20  # bytes that travel together


class DistStore(KVStore):
    """`dist_sync`: the sum of all devices of all processes; updates, too, once in each process.

    **Source** MXNet `kvstore`, type dist_sync. States of the optimizer can be saved, unlike those on MXNet's servers: any process has them.
    """

    together = True

    def __init__(self, kind: str = "dist_sync") -> None:
        super().__init__(kind)
        self._world = world()
        self._turn = Var()  # written by every task that sends: they go one after the other

    @property
    def rank(self) -> int:
        return self._world.rank

    @property
    def num_workers(self) -> int:
        return self._world.size

    def init(self, key: Any, value: Any) -> None:
        """Enter keys with their first values, those of rank 0. **Raises** as `KVStore.init`."""
        super().init(key, value)
        self._send(self._world.broadcast, [self._value(each) for each, _ in self._pairs("init", key, value)])

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        pairs = list(self._pairs("broadcast", key, value))
        self._send(self._world.broadcast, [arrays[0] for _, arrays in pairs])
        super().broadcast(key, value, out, priority)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        if self._updater is not None:
            super().pushpull(key, value, out, priority)
            return
        pairs = list(self._pairs("pushpull", key, value))
        targets = dict(self._pairs("pushpull", key, value if out is None else out))
        for each, arrays in pairs:
            self._check(each, arrays[0], [*arrays, *targets[each]])
        for (each, _), total in zip(pairs, self._totals(pairs)):
            spread(total.as_in_context(targets[each][0].context), targets[each])

    def _barrier(self) -> None:
        engine.push(self._world.barrier, writes=[self._turn], context=NETWORK, name="barrier")
        engine.wait(self._turn)

    # ---- sums over all processes

    def _totals(self, pairs: Sequence[tuple[Any, list[NDArray]]]) -> list[NDArray]:
        """The sum over devices and processes of each key's arrays, in host memory."""
        own = []
        for _, arrays in pairs:
            total = by_tree(arrays) if "device" in self._type else summed(arrays, cpu())
            moved = total.as_in_context(cpu())
            own.append(moved.copy() if any(moved is array for array in arrays) else moved)
        if self._compression is not None:
            return [self._all_compressed(key, total) for (key, _), total in zip(pairs, own)]
        self._send(self._world.all_reduce, own)
        return own

    def _all_compressed(self, key: Any, total: NDArray) -> NDArray:
        """The sum over processes of `total`, of which two bits a number travel."""
        compression = self._compression
        assert compression is not None
        bits = compression.sent(key, 0, total)
        gathered = [bits.zeros_like() for _ in range(self.num_workers)]

        def gather(mine: Any, *everyone: Any) -> None:
            for target, found in zip(everyone, self._world.gather(mine)):
                target[...] = found

        engine.push(gather, reads=[bits], writes=[*gathered, self._turn], context=NETWORK, name="gather")
        return summed([compression.received(each, total.shape, total.dtype) for each in gathered], cpu())

    def _send(self, collective: Any, arrays: Sequence[NDArray]) -> None:
        """Have every process do `collective` with `arrays`, which it changes in place; small ones of one dtype travel together."""
        bucket: list[NDArray] = []
        for array in arrays:
            if bucket and (
                array.dtype != bucket[0].dtype or sum(each.size for each in (*bucket, array)) * array.dtype().itemsize > BUCKET
            ):
                self._send_bucket(collective, bucket)
                bucket = []
            bucket.append(array)
        if bucket:
            self._send_bucket(collective, bucket)

    def _send_bucket(self, collective: Any, arrays: list[NDArray]) -> None:
        def send(*values: np.ndarray[Any, Any]) -> None:
            if len(values) == 1 and values[0].flags.c_contiguous:
                collective(values[0])
                return
            joined = np.concatenate([value.reshape(-1) for value in values])
            collective(joined)
            begin = 0
            for value in values:
                value[...] = joined[begin : begin + value.size].reshape(value.shape)
                begin += value.size

        engine.push(send, writes=[*arrays, self._turn], context=NETWORK, name=collective.__name__)


@KVStoreBase.register
class Horovod(KVStoreBase):
    """`horovod`: begin with equal weights, and add gradients; updates are the Trainer's. **Source** MXNet `kvstore.Horovod`.

    It needs no Horovod: the messages are MPI's.
    """

    together = True

    def __init__(self) -> None:
        self._store = DistStore("dist_device_sync")

    @property
    def type(self) -> str:
        return "horovod"

    @property
    def rank(self) -> int:
        return self._store.rank

    @property
    def num_workers(self) -> int:
        return self._store.num_workers

    @property
    def local_rank(self) -> int:
        """The number of this process among those of its machine."""
        peers = self._store._world.peers
        return sum(host == peers[self.rank][0] for host, _ in peers[: self.rank])

    @staticmethod
    def is_capable(capability: str) -> bool:
        return asked(capability) and False

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        for each, arrays in self._store._pairs("broadcast", key, value):
            targets = dict(self._store._pairs("broadcast", key, out))[each]
            value = arrays[0].as_in_context(cpu())
            value = value.copy() if value is arrays[0] else value
            self._store._send(self._store._world.broadcast, [value])
            for target in targets:
                value.copyto(target)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        self._store.pushpull(key, value, out, priority)


factories.update(dict.fromkeys(DIST, DistStore))
