"""`mx.callback`: what a training calls at the end of a batch or an epoch, to log and to save.

At the end of a batch a callback gets a BatchEndParam (checkpoint.py), at the end of an epoch `(epoch, symbol, arg_params, aux_params)`.
Messages go to the root logger: `logging.basicConfig(level=logging.INFO)` shows them, or a level that is set (log.py).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from .base import ArgumentError, shown
from .checkpoint import BatchEndParam, save_checkpoint
from .log import root_logger
from .nd import NDArray
from .sym import Symbol

__all__ = [
    "LogValidationMetricsCallback", "ProgressBar", "Speedometer", "do_checkpoint", "log_train_metric", "module_checkpoint"
]  # fmt: skip


def _is_due(epoch: int, period: float) -> bool:
    """Whether an epoch, counted from 0, ends a period of so many."""
    return (epoch + 1) % int(max(1, period)) == 0


def module_checkpoint(mod: Any, prefix: str, period: int = 1, save_optimizer_states: bool = False) -> Callable[..., None]:
    """A callback for the end of an epoch: `mod.save_checkpoint` every `period` epochs, with `save_optimizer_states` those, too.

    **Source** MXNet `callback.module_checkpoint`.
    """

    def save(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if _is_due(iter_no, period):
            mod.save_checkpoint(prefix, iter_no + 1, **({"save_optimizer_states": True} if save_optimizer_states else {}))

    return save


def do_checkpoint(prefix: str, period: int = 1) -> Callable[..., None]:
    """A callback for the end of an epoch: `save_checkpoint` every `period` epochs. **Source** MXNet `callback.do_checkpoint`."""

    def save(iter_no: int, sym: Symbol, arg: Mapping[str, NDArray], aux: Mapping[str, NDArray]) -> None:
        if _is_due(iter_no, period):
            save_checkpoint(prefix, iter_no + 1, sym, arg, aux)

    return save


def log_train_metric(period: int, auto_reset: bool = False) -> Callable[[BatchEndParam], None]:
    """A callback for the end of a batch: log the metric every `period` batches, and with `auto_reset` begin it anew.

    **Source** MXNet `callback.log_train_metric`.
    """
    if period < 1:
        raise ArgumentError(f"log_train_metric: period is {shown(period)}, wants 1 or more")

    def log(param: BatchEndParam) -> None:
        if param.nbatch % period == 0 and param.eval_metric is not None:
            for name, value in param.eval_metric.get_name_value():
                root_logger().info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
            if auto_reset:
                param.eval_metric.reset_local()

    return log


class Speedometer:
    """A callback for the end of a batch: log examples per second, and the metric, every `frequent` batches.

    **Args** `batch_size`: examples in a batch; `auto_reset`: begin the metric anew each time, so that a line tells of its own batches.
    **Source** MXNet `callback.Speedometer`.
    """

    def __init__(self, batch_size: int, frequent: int = 50, auto_reset: bool = True) -> None:
        if frequent < 1:
            raise ArgumentError(f"Speedometer: frequent is {shown(frequent)}, wants 1 or more")
        self.batch_size = batch_size
        self.frequent = frequent
        self.auto_reset = auto_reset
        self.init = False  # whether the clock runs
        self.tic = 0.0
        self.last_count = 0

    def __call__(self, param: BatchEndParam) -> None:
        count = param.nbatch
        if count < self.last_count:  # another epoch has begun
            self.init = False
        self.last_count = count
        if not self.init:
            self.init, self.tic = True, time.time()
        elif count % self.frequent == 0:
            seconds = time.time() - self.tic
            speed = self.frequent * self.batch_size / seconds if seconds else math.inf
            self._log(param, speed)
            self.tic = time.time()

    def _log(self, param: BatchEndParam, speed: float) -> None:
        metric, count = param.eval_metric, param.nbatch
        if metric is None:
            root_logger().info("Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec", param.epoch, count, speed)
            return
        begin = count - self.frequent if self.auto_reset else 0
        pairs = metric.get_name_value()
        if self.auto_reset:
            metric.reset_local()
        values = "".join(f"\t{name}={value:f}" for name, value in pairs)
        root_logger().info("Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec%s", param.epoch, begin, count, speed, values)


class ProgressBar:
    """A callback for the end of a batch: log a bar that shows which part of the epoch's `total` batches is done.

    **Args** `length`: of the bar, in characters. **Source** MXNet `callback.ProgressBar`.
    """

    def __init__(self, total: int, length: int = 80) -> None:
        if total < 1:
            raise ArgumentError(f"ProgressBar: total is {shown(total)}, wants 1 or more")
        self.total = total
        self.bar_len = length

    def __call__(self, param: BatchEndParam) -> None:
        done = round(self.bar_len * param.nbatch / self.total)
        percent = math.ceil(100.0 * param.nbatch / self.total)
        root_logger().info("[%s] %s%s\r", "=" * done + "-" * (self.bar_len - done), percent, "%")


class LogValidationMetricsCallback:
    """A callback for the end of an evaluation: log the metric. **Source** MXNet `callback.LogValidationMetricsCallback`."""

    def __call__(self, param: BatchEndParam) -> None:
        if param.eval_metric is not None:
            for name, value in param.eval_metric.get_name_value():
                root_logger().info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)
