"""DataLoader: batches of a data set, in order, made ahead of time by worker processes or threads.

What is in a batch is decided here, in the parent: the sampler says which samples (sampler.py), and each batch gets seeds of its own
(seeding.py). So batches are the same, and in the same order, however many workers make them (collate.py), and wherever they are made: in
this process while nobody else computes, or by a team (team.py) that is always a few batches ahead.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...base import ArgumentError, shown
from ...device import Context, cpu, cpu_pinned
from ...fields import converted
from ...keywords import name_unknown
from ...nd import NDArray
from .batchify import default_batchify_fn, default_mp_batchify_fn
from .collate import maker, runs_code
from .sampler import BatchSampler, RandomSampler, SequentialSampler
from .seeding import EpochSeeds

if TYPE_CHECKING:
    from .team import Team, Ticket

__all__ = ["DataLoader", "default_batchify_fn", "default_mp_batchify_fn"]


class TimeoutArgumentError(ArgumentError, AssertionError):
    """A timeout that is none. (MXNet asserts it: hence the second base.)"""


@name_unknown
class DataLoader:
    """Goes over `dataset` in batches, as often as wanted: `for X, y in loader`. Each pass is an epoch.

    **Args**
    `dataset`: a Dataset, a list, an array: anything with a length and samples at indices.
    `batch_size`: samples of a batch; `shuffle`: in random order, another one in each epoch, as `mx.random.seed` has it.
    `sampler`: gives the order instead of `shuffle`: a Sampler, or another iterable of indices.
    `last_batch`: what becomes of samples that are too few for a last batch: "keep" (as a smaller one), "discard", or "rollover".
    `batch_sampler`: gives lists of indices, instead of all of these.
    `batchify_fn`: makes a batch of a list of samples; `default_batchify_fn` stacks them. Of a worker process its result comes pickled, but
    for the arrays, which travel in shared memory; NDArrays arrive on cpu(0).
    `num_workers`: processes, or with `thread_pool` threads, that make batches; 0: the loop makes them itself. Batches do not depend on it,
    random transforms included: each starts `mx.random`, `numpy.random` and `random` from seeds of its own, which follow from those in this
    process. (Threads share the latter two; let transforms draw from `mx.random` there.) Processes begin with the first epoch, with the
    data set as it is then, by fork if possible: see `MINIMX_WORKER_START` in processes.py.
    `pin_memory`, `pin_device_id`: batches are on cpu_pinned(pin_device_id), which is plain memory here.
    `prefetch`: how many batches are ahead of the loop, at most; 2 for each worker unless given.
    `timeout`: seconds that the loop waits for one batch before it raises.
    `auto_reload`: begin with the first batches of the next epoch at the end of one, and of the first when the loader is made.

    **Raises** ValueError for arguments that exclude each other. The loop raises what a data set or `batchify_fn` raises, with the traceback
    of the worker as its cause; RuntimeError if a worker dies; TimeoutError. The loader can be gone through again after each.
    **Source** MXNet `gluon.data.DataLoader`, whose batches are on `cpu_shared(0)` if there are workers.

    >>> loader = DataLoader(mx.gluon.data.ArrayDataset(nd.arange(5), nd.arange(5) * 10), batch_size=2)
    >>> [(X.asnumpy().tolist(), y.asnumpy().tolist()) for X, y in loader]
    [([0.0, 1.0], [0.0, 10.0]), ([2.0, 3.0], [20.0, 30.0]), ([4.0], [40.0])]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = None,
        shuffle: bool = False,
        sampler: Any = None,
        last_batch: str | None = None,
        batch_sampler: Any = None,
        batchify_fn: Callable[[list[Any]], Any] | None = None,
        num_workers: int = 0,
        pin_memory: bool = False,
        pin_device_id: int = 0,
        prefetch: int | None = None,
        thread_pool: bool = False,
        timeout: float = 120,
        auto_reload: bool = False,
    ) -> None:
        if not hasattr(dataset, "__getitem__"):
            raise ArgumentError(
                f"DataLoader: a data set that has samples at indices is wanted, got {shown(dataset)}; a list will do"
            )
        if batchify_fn is not None and not callable(batchify_fn):
            raise ArgumentError(f"DataLoader: batchify_fn must be a function of a list of samples, got {shown(batchify_fn)}")
        self._dataset = dataset
        self._batchify_fn = default_batchify_fn if batchify_fn is None else batchify_fn
        self._batch_sampler = _batch_sampler(dataset, batch_size, shuffle, sampler, last_batch, batch_sampler)
        self._num_workers: int = max(0, converted("DataLoader", "num_workers", "int", num_workers))
        self._thread_pool: bool = converted("DataLoader", "thread_pool", "bool", thread_pool)
        self._timeout: float = converted("DataLoader", "timeout", "float", timeout)
        if not self._timeout > 0:
            raise TimeoutArgumentError(f"DataLoader: timeout must be positive, given {timeout}")
        wanted: int | None = converted("DataLoader", "prefetch", "int | None", prefetch)
        self._prefetch = 2 * self._num_workers if wanted is None else max(0, wanted)
        pinned: bool = converted("DataLoader", "pin_memory", "bool", pin_memory)
        self._context: Context | None = cpu_pinned(pin_device_id) if pinned else None
        self._lock = threading.RLock()  # guards the next two: threads may go over one loader
        self._team: Team | None = None
        self._iter: Iterator[Any] | None = None  # a pass that was begun ahead of time
        self.auto_reload: bool = converted("DataLoader", "auto_reload", "bool", auto_reload)
        if self.auto_reload:
            self.refresh()

    def __len__(self) -> int:
        return len(self._batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        with self._lock:
            batches, self._iter = self._iter, None
        yield from self._begun() if batches is None else batches
        if self._iter is None and self.auto_reload:
            self.refresh()

    def refresh(self) -> None:
        """Begin with the next epoch: with workers, its first batches are made from now on."""
        self._iter = self._begun()

    def _begun(self) -> Iterator[Any]:
        """A new pass."""
        return self._own_pass() if self._num_workers == 0 else _Pass(self)

    def clean(self) -> None:
        """Forget what `refresh` began."""
        self._iter = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_team": None, "_iter": None, "_lock": None}  # a copy has workers of its own

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def _own_pass(self) -> Iterator[Any]:
        """An epoch whose batches are made here."""
        make = maker(self._dataset, self._batchify_fn)
        seeds = EpochSeeds.draw() if runs_code(self._dataset, self._batchify_fn) else None
        for number, indices in enumerate(self._batch_sampler):
            if seeds is None:
                batch = make(indices)
            else:
                with seeds.batch(number).scope(alone=True):
                    batch = make(indices)
            yield batch if self._context is None else _placed(batch, self._context)

    def _workers(self) -> Team:
        """The team, a new one if there is none that works."""
        with self._lock:
            if self._team is None or self._team.closed:
                # Here, because multiprocessing takes longer to import than it takes to go over many a data set
                if self._thread_pool:
                    from .threads import Threads as Workers
                else:
                    from .processes import Processes as Workers  # type: ignore[assignment]  # both are a Team
                self._team = Workers(self._num_workers, self._dataset, self._batchify_fn)
            return self._team


def _batch_sampler(dataset: Any, batch_size: Any, shuffle: Any, sampler: Any, last_batch: Any, batch_sampler: Any) -> Any:
    """The sampler of batches that the arguments of a DataLoader describe."""
    if batch_sampler is not None:
        if batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise ArgumentError(
                "DataLoader: batch_size, shuffle, sampler and last_batch must not be specified if batch_sampler is specified."
            )
        return batch_sampler
    if batch_size is None:
        raise ArgumentError("DataLoader: batch_size must be specified unless batch_sampler is specified")
    if sampler is not None and shuffle:
        raise ArgumentError("DataLoader: shuffle must not be specified if sampler is specified")
    if sampler is None:
        shuffled: bool = converted("DataLoader", "shuffle", "bool", shuffle)
        sampler = RandomSampler(len(dataset)) if shuffled else SequentialSampler(len(dataset))
    return BatchSampler(sampler, batch_size, "keep" if last_batch is None else last_batch)


_pass_numbers = itertools.count()


class _Pass:
    """An epoch whose batches a team makes."""

    def __init__(self, loader: DataLoader) -> None:
        self.team = loader._workers()
        self.owner = next(_pass_numbers)
        self.timeout, self.prefetch, self.context = loader._timeout, loader._prefetch, loader._context
        self.tickets: deque[Ticket] = deque()  # batches that were asked for, in order
        self.seeds = EpochSeeds.draw() if runs_code(loader._dataset, loader._batchify_fn) else None
        self.batches: Iterator[tuple[int, Any]] = enumerate(loader._batch_sampler)
        self.error: Exception | None = None
        try:
            self._ask(self.prefetch)
        except Exception as error:  # it belongs to the first batch, which may not be wanted yet
            self.error = error

    def _ask(self, count: int) -> None:
        """Ask for batches until `count` of them are under way."""
        while len(self.tickets) < count:
            number, indices = next(self.batches, (-1, None))
            if number < 0:
                return
            seeds = None if self.seeds is None else self.seeds.batch(number)
            self.tickets.append(self.team.enter(self.owner, number, indices, seeds))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            if self.error is not None:
                raise self.error
            self._ask(1)
            if not self.tickets:
                raise StopIteration
            batch = self.team.result(self.tickets[0], self.timeout)
            self.tickets.popleft()
            self._ask(self.prefetch)
        except BaseException:
            self.close()
            raise
        return batch if self.context is None else _placed(batch, self.context)

    def close(self) -> None:
        """Forget what is under way. `yield from` calls it when a loop is left."""
        self.team.leave(self.owner, self.tickets)
        self.tickets.clear()
        self.batches, self.error = iter(()), None

    def __del__(self) -> None:
        if hasattr(self, "batches"):
            self.close()


def _placed(batch: Any, context: Context) -> Any:
    """The arrays of a batch on `context`. Those of host memory are there already, whatever it is called."""
    if isinstance(batch, NDArray):
        if batch.context.lane is cpu() and context.lane is cpu():
            return NDArray(batch.var, batch.spec, context, batch.offset)
        return batch.as_in_context(context)
    if isinstance(batch, (list, tuple)):
        placed = [_placed(part, context) for part in batch]
        return placed if isinstance(batch, list) else tuple(placed)
    if isinstance(batch, dict):
        return {key: _placed(part, context) for key, part in batch.items()}
    return batch
