"""Stopwatch, benchmark and running sums: the small instruments of the book's loops. Book: chapters 1 and 2."""

from __future__ import annotations

import time
from itertools import accumulate
from typing import SupportsFloat

from ..base import ArgumentError
from ..fields import converted


class Timer:
    """A stopwatch that keeps every time it took; it starts when it is made. Times are wall-clock seconds.

    minimx computes asynchronously: what has been queued before `stop` may not be done. Wait for it (`wait_to_read`,
    `nd.waitall`) where the time of the computation is wanted.
    """

    def __init__(self) -> None:
        self.times: list[float] = []
        self.start()

    def start(self) -> None:
        """Start, or start again."""
        self._since = time.perf_counter()

    def stop(self) -> float:
        """Seconds since the last start; they are kept in `times`."""
        self.times.append(time.perf_counter() - self._since)
        return self.times[-1]

    def avg(self) -> float:
        """Mean of the times taken. Raises ArgumentError if there is none."""
        if not self.times:
            raise ArgumentError("Timer: avg() before the first stop(); there is no time to average")
        return sum(self.times) / len(self.times)

    def sum(self) -> float:
        """Sum of the times taken."""
        return sum(self.times)

    def cumsum(self) -> list[float]:
        """Running sums of the times taken."""
        return list(accumulate(self.times))


class Benchmark:
    """`with Benchmark("ten products"): ...` prints how long the body took, and keeps it in `seconds`.

    >>> with Benchmark("nothing") as run:  # doctest: +ELLIPSIS
    ...     pass
    nothing: 0.0... s
    >>> run.seconds < 1
    True
    """

    def __init__(self, description: str = "done") -> None:
        self.description = description
        self.seconds = 0.0

    def __enter__(self) -> Benchmark:
        self._timer = Timer()
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self.seconds = self._timer.stop()
        if error_type is None:
            print(f"{self.description}: {self.seconds:.4f} s")


class Accumulator:
    """Running sums of `count` quantities.

    >>> metric = Accumulator(2)
    >>> metric.add(0.5, 10); metric.add(0.25, 10)
    >>> metric[0] / metric[1]
    0.0375
    """

    def __init__(self, count: int) -> None:
        count = converted("Accumulator", "count", "int", count)
        if not 1 <= count <= 1 << 20:
            raise ArgumentError(f"Accumulator: count is {count}; give at least 1, for the number of sums")
        self.data = [0.0] * count

    def add(self, *amounts: SupportsFloat) -> None:
        """Add one amount to each sum. An NDArray of one element is waited for."""
        if len(amounts) != len(self.data):
            raise ArgumentError(f"Accumulator: add() got {len(amounts)} amounts, wants {len(self.data)}, one for each sum")
        self.data = [total + float(amount) for total, amount in zip(self.data, amounts)]

    def reset(self) -> None:
        """All sums back to 0."""
        self.data = [0.0] * len(self.data)

    def __getitem__(self, index: int) -> float:
        return self.data[index]
