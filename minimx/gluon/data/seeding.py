"""Seeds of batches: what random transforms draw does not depend on who makes a batch, nor when.

If workers went on drawing from generators that they got when they began, what an image looks like would depend on the number of workers
and on which was free first. So each epoch takes a number from each of the three generators that Python code may use (`mx.random`,
`numpy.random`, `random`), and before each batch all three are started from that number and the batch's place in the epoch. Seeding them
in the parent fixes everything; leaving them alone gives other numbers in every epoch. (Worker processes that all draw the same, since
they were copied from one parent, are the classical fault that this avoids, too.)
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ... import seeds
from ...device import cpu

WORD = 1 << 64
_others = threading.RLock()  # held while `numpy.random` and `random` are used for a batch; nobody ever waits for it


class BatchSeeds(NamedTuple):
    """From where the three generators start before a batch."""

    mx: int
    numpy: tuple[int, int, int]
    python: int

    def start(self) -> None:
        """Start the generators of this process, which makes nothing but batches."""
        seeds.seed(self.mx)
        self._start_others()

    @contextlib.contextmanager
    def scope(self, alone: bool) -> Iterator[None]:
        """A scope in which the calling thread draws from these seeds; after it, all generators are where they were.

        `numpy.random` and `random` are one generator for all threads, so they take part only if the thread makes batches `alone`. Where
        another thread does so at this moment, too, they cannot.
        """
        with seeds.seeded(self.mx):
            if not (alone and _others.acquire(blocking=False)):
                yield
                return
            try:
                numpy_state, python_state = np.random.get_state(legacy=False), random.getstate()
                self._start_others()
                try:
                    yield
                finally:
                    np.random.set_state(numpy_state)
                    random.setstate(python_state)
            finally:
                _others.release()

    def _start_others(self) -> None:
        random.seed(self.python)
        with contextlib.suppress(TypeError):  # the user has given NumPy another kind of generator, which cannot be seeded
            np.random.seed(self.numpy)


def renew_lock() -> None:
    """In a forked process: let NumPy's generator forget its lock, which a thread that did not come along may have held."""
    numbers: Any = np.random  # whose types do not name these two
    numbers.set_bit_generator(type(numbers.get_bit_generator())())


class EpochSeeds(NamedTuple):
    """What an epoch took from each of the generators."""

    mx: int
    numpy: int
    python: int

    @classmethod
    def draw(cls) -> EpochSeeds:
        """Take the next number from each."""
        generator: Any = seeds.next_key(cpu()).generator(np)
        number = int(np.random.randint(1 << 63, dtype=np.int64))
        return cls(int(generator.integers(1 << 63)), number, random.getrandbits(64))

    def batch(self, number: int) -> BatchSeeds:
        """The seeds of the epoch's batch `number`."""
        low, high = self.numpy & 0xFFFFFFFF, self.numpy >> 32
        return BatchSeeds((self.mx + number) % WORD, (low, high, number & 0xFFFFFFFF), self.python * WORD + number)
