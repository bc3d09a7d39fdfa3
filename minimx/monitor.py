"""`mx.mon`: watching the values inside a network while it trains, to find where they explode or vanish.

    monitor = mx.mon.Monitor(100, pattern=".*weight|.*output")
    monitor.install(executor)
    monitor.tic(); executor.forward(); monitor.toc_print()

`tic` begins a batch, `toc` ends it. In every batch that is watched each value that an operator computes is reduced to a number, and at the
end the parameters and states are, too. While a monitor is installed a graph runs operator by operator, which is slower than its program.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from .base import ArgumentError, shown
from .log import root_logger
from .nd import NDArray

__all__ = ["Monitor"]

Statistic = Callable[[NDArray], Any]


def root_mean_square(x: NDArray) -> NDArray:
    """The norm of an array by the square root of its size."""
    return x.norm() / math.sqrt(x.size)


class Monitor:
    """Collects statistics of the arrays of executors and blocks, in one of `interval` batches.

    **Args** `stat_func`: from an array to an array, or a list of them; by default the root of the mean square. `pattern`: a regular
    expression that a name must begin with. `sort`: by name. `monitor_all`: inputs of operators, too. **Source** MXNet `monitor.Monitor`.
    """

    def __init__(
        self,
        interval: int,
        stat_func: Statistic | None = None,
        pattern: str = ".*",
        sort: bool = False,
        monitor_all: bool = False,
    ) -> None:
        if interval < 1:
            raise ArgumentError(f"Monitor: interval is {shown(interval)}, wants 1 or more batches")
        self.interval = interval
        self.stat_func = stat_func or root_mean_square
        self.re_prog = re.compile(pattern)
        self.sort = sort
        self.monitor_all = monitor_all
        self.activated = False
        self.queue: list[tuple[int, str, Any]] = []  # batch, name, statistics
        self.step = 0
        self.exes: list[Any] = []

    def stat_helper(self, name: str, array: NDArray) -> None:
        """Take in an array, if this batch is watched and its name is wanted."""
        if self.activated and self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(array)))

    def install(self, exe: Any) -> None:
        """Watch an executor, or a block that is called as part of none. Several can be watched."""
        if hasattr(exe, "set_monitor_callback"):
            exe.set_monitor_callback(self.stat_helper, self.monitor_all)
        elif hasattr(exe, "register_op_hook"):
            exe.register_op_hook(lambda name, op, array: self.stat_helper(name, array), self.monitor_all)
        else:
            raise ArgumentError(f"Monitor.install: an Executor or a HybridBlock is wanted, got {shown(exe)}")
        self.exes.append(exe)

    def tic(self) -> None:
        """A batch begins: watch it if its turn has come."""
        if self.step % self.interval == 0:
            self.queue = []
            self.activated = True
        self.step += 1

    def toc(self) -> list[tuple[int, str, str]]:
        """The batch has ended: its number, name and statistics of each array, as text. [] if it was not watched. Waits for the values."""
        if not self.activated:
            return []
        for exe in self.exes:
            for name, array in _own_arrays(exe):
                self.stat_helper(name, array)
        self.activated = False
        found, self.queue = self.queue, []
        if self.sort:
            found.sort(key=lambda entry: entry[1])
        return [(step, name, "".join(f"{text}\t" for text in _texts(values))) for step, name, values in found]

    def toc_print(self) -> None:
        """`toc`, to the log."""
        for step, name, text in self.toc():
            root_logger().info("Batch: %7d %-30s %s", step, name, text)


def _own_arrays(exe: Any) -> Iterator[tuple[str, NDArray]]:
    """The parameters and states of what is watched, by name."""
    if hasattr(exe, "arg_dict"):
        yield from exe.arg_dict.items()
        yield from exe.aux_dict.items()
        return
    for name, parameter in exe.collect_params().items():
        yield name, parameter.list_data()[0]


def _texts(values: Any) -> Iterator[str]:
    for value in values if isinstance(values, (list, tuple)) else [values]:
        if not isinstance(value, NDArray):
            raise ArgumentError(f"Monitor: stat_func must give an NDArray, or a list of them, got {shown(value)}")
        yield str(value.asscalar() if value.size == 1 else value.asnumpy())
