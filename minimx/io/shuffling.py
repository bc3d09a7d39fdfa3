"""The random orders of MXNet's iterators over files, number for number.

MXNet shuffles with C++'s `std::shuffle` and the generator MT19937, as GNU's library has them. The generator is NumPy's, too; what the
library makes of its numbers is here, so that a seed gives the order that it gives in MXNet and training scripts see the same batches.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import Any

import numpy as np

__all__ = ["Shuffler"]

RANGE = (1 << 32) - 1  # the generator's largest number


class Shuffler:
    """A generator that shuffles. **Args** `seed`: as C++ takes it, of 32 bits."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.MT19937()
        self._generator._legacy_seeding(seed & RANGE)  # the seeding that C++ has, too

    @property
    def state(self) -> Any:
        """Where the generator stands; it can be set back there."""
        return self._generator.state

    @state.setter
    def state(self, state: Any) -> None:
        self._generator.state = state

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Put `items` into a random order, in place."""
        for place in range(1, len(items)):
            other = self._below(place + 1)
            items[place], items[other] = items[other], items[place]

    def _below(self, limit: int) -> int:
        """A random number from 0 to `limit` - 1."""
        width = RANGE // limit
        while True:
            number = int(self._generator.random_raw())
            if number < width * limit:
                return number // width
