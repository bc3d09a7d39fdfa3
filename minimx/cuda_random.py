"""Random numbers on a GPU: the same as on the CPU.

What a draw gives is a function of its key alone (seeds.py), so it need not depend on the device either. Uniform numbers, of which every
dropout layer takes a mask at every step, are computed on the GPU: element i asks the cipher Philox for the word that NumPy's
generator would give it, since with a counter no element has to wait for the one before. The other distributions reject some words and
try again, each after the other; NumPy draws those, and they are copied: they make initial weights and samples, where it matters less.

J. Salmon and others, "Parallel random numbers: as easy as 1, 2, 3" (2011): Philox 4x64 with ten rounds.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

ROUNDS = 10
MULTIPLIERS = ("0xD2E7470EE14C6C93ULL", "0xCA5A826395121157ULL")
STEPS = ("0x9E3779B97F4A7C15ULL", "0xBB67AE8584CAA73BULL")  # from round to round, added to the key
WORD = "unsigned long long"


def cipher() -> str:
    """CUDA C that enciphers the counter (block, 0, draw, 0) with the key (key0, key1) into (a10, b10, c10, d10)."""
    lines = [f"{WORD} a0 = block; {WORD} b0 = 0ULL; {WORD} c0 = draw; {WORD} d0 = 0ULL; {WORD} p0 = key0; {WORD} q0 = key1;"]
    for old in range(ROUNDS):
        new = old + 1
        lines += [
            f"{WORD} a{new} = __umul64hi({MULTIPLIERS[1]}, c{old}) ^ b{old} ^ p{old};",
            f"{WORD} b{new} = {MULTIPLIERS[1]} * c{old};",
            f"{WORD} c{new} = __umul64hi({MULTIPLIERS[0]}, a{old}) ^ d{old} ^ q{old};",
            f"{WORD} d{new} = {MULTIPLIERS[0]} * a{old};",
            f"{WORD} p{new} = p{old} + {STEPS[0]}; {WORD} q{new} = q{old} + {STEPS[1]};",
        ]
    return "\n".join(lines)


def source(dtype: np.dtype[Any]) -> str:
    """CUDA C for element `i` of uniform numbers in [0, 1), as NumPy makes them of words: 53 bits of each, or 24 of each half."""
    if dtype == np.float64:
        first = f"{WORD} index = i; {WORD} word = taken + index;"
        last = "y = double(chosen >> 11) * 1.1102230246251565e-16;"
    else:  # the lower half of a word comes first; `kept` is 1 + the word whose upper half was left over by the draw before
        first = (
            f"{WORD} index = i; {WORD} place = index - (kept > 0ULL ? 1ULL : 0ULL); bool left = kept > 0ULL && i == 0;"
            f"{WORD} word = left ? kept - 1ULL : taken + (place >> 1);"
        )
        last = (
            f"{WORD} piece = left || (place & 1ULL) == 1ULL ? chosen >> 32 : chosen & 0xFFFFFFFFULL; "
            "y = float(piece >> 8) * 5.9604644775390625e-8f;"
        )
    choice = (
        f"{WORD} lane = word & 3ULL; "
        f"{WORD} chosen = lane == 0ULL ? a{ROUNDS} : lane == 1ULL ? b{ROUNDS} : lane == 2ULL ? c{ROUNDS} : d{ROUNDS};"
    )
    return "\n".join([first, f"{WORD} block = (word >> 2) + 1ULL;", cipher(), choice, last])


@functools.cache
def uniform(xp: Any, name: str) -> Any:
    """The kernel that fills an array of dtype `name`."""
    parameters = "uint64 key0, uint64 key1, uint64 draw, uint64 taken, uint64 kept"
    return xp.ElementwiseKernel(parameters, f"{name} y", source(np.dtype(name)), f"minimx_uniform_{name}")


class Generator:
    """Stands for NumPy's generator at the beginning of a key's numbers; what it gives lies on the current GPU."""

    def __init__(self, xp: Any, key: tuple[int, int, int], host: Callable[[], np.random.Generator]) -> None:
        self.xp = xp
        self.key = tuple(map(np.uint64, key))
        self._begin = host
        self._host: np.random.Generator | None = None  # once the numbers come from there
        self.taken = 0  # words
        self.kept = 0  # 1 + the number of the word of which a half is left

    @property
    def host(self) -> np.random.Generator:
        """NumPy's generator, where this one stands."""
        if self._host is None:
            self._host = self._begin()
            if self.kept:
                self._host.bit_generator.random_raw(self.kept - 1, output=False)
                self._host.random(dtype=np.float32)  # takes a half, and leaves the other
                self._host.bit_generator.random_raw(self.taken - self.kept, output=False)
            elif self.taken:
                self._host.bit_generator.random_raw(self.taken, output=False)
        return self._host

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Uniform numbers in [0, 1): an array, or without a size a number."""
        if size is None and out is None:
            return self.host.random(dtype=dtype)
        dtype = np.dtype(dtype)
        if self._host is not None:
            return self._copied("random", size, dtype, out=out)
        y = self.xp.empty(size, dtype) if out is None else out
        if y.size:
            uniform(self.xp, dtype.name)(*self.key, np.uint64(self.taken), np.uint64(self.kept), y)
            self._advance(y.size, dtype)
        return y

    def _advance(self, count: int, dtype: np.dtype[Any]) -> None:
        if dtype == np.float64:
            self.taken += count
            return
        fresh = count - (self.kept > 0)
        self.taken += math.ceil(fresh / 2)
        self.kept = self.taken if fresh % 2 else 0

    def _copied(self, name: str, *args: Any, out: Any = None, **how: Any) -> Any:
        """What NumPy's generator gives for arguments that are numbers or arrays of a GPU, on the GPU."""
        args = tuple(each.get() if isinstance(each, self.xp.ndarray) else each for each in args)
        made = getattr(self.host, name)(*args, **how)
        if out is None:
            return self.xp.asarray(made)
        out[...] = self.xp.asarray(made)
        return out

    def standard_normal(self, size: Any, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._copied("standard_normal", size, dtype, out=out)

    def standard_exponential(self, size: Any, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._copied("standard_exponential", size, dtype, out=out)

    def standard_gamma(self, shape: Any, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return self._copied("standard_gamma", shape, size, dtype, out=out)

    def poisson(self, lam: Any, size: Any = None) -> Any:
        return self._copied("poisson", lam, size)

    def integers(self, low: Any, high: Any, size: Any = None, dtype: Any = np.int64) -> Any:
        return self._copied("integers", low, high, size, dtype)

    def permutation(self, length: int) -> Any:
        return self._copied("permutation", length)
