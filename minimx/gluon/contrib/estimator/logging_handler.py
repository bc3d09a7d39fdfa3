"""LoggingHandler: what a training prints."""

from __future__ import annotations

import math
import time
from typing import Any

from ....base import shown
from .events import BatchBegin, BatchEnd, EpochBegin, EpochEnd, EstimatorError, TrainBegin, TrainEnd
from .utils import as_metrics

__all__ = ["LoggingHandler"]


class LoggingHandler(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Logs how the training goes on, with `estimator.logger`.

    **Args** `log_interval`: "epoch", or after every so many batches too; `metrics`: whose values to log. **Source** MXNet `LoggingHandler`,
    whose lines are the same.
    """

    def __init__(self, log_interval: int | str = "epoch", metrics: Any = None, priority: float = math.inf) -> None:
        if log_interval != "epoch" and (not isinstance(log_interval, int) or log_interval < 1):
            raise EstimatorError(
                f"LoggingHandler: log_interval is {shown(log_interval)}; an int, 1 or more, or 'epoch' is wanted"
            )
        self.metrics = as_metrics(metrics)
        self.batch_index = 0
        self.current_epoch = 0
        self.processed_samples = 0
        self.priority = priority  # after all others, which may have changed what is logged
        self.log_interval = log_interval
        self.log_interval_time = 0.0
        self.train_start = self.epoch_start = self.batch_start = 0.0

    def _values(self) -> str:
        """Names and values of the metrics."""
        return ", ".join(f"{name}: {value:.4f}" for name, value in (metric.get() for metric in self.metrics))

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.train_start = time.time()
        estimator.logger.info(
            "Training begin: using optimizer %s with current learning rate %.4f ",
            type(estimator.trainer.optimizer).__name__, estimator.trainer.learning_rate,
        )  # fmt: skip
        if estimator.max_epoch:
            estimator.logger.info("Train for %d epochs.", estimator.max_epoch)
        else:
            estimator.logger.info("Train for %d batches.", estimator.max_batch)
        self.current_epoch = self.batch_index = self.processed_samples = 0
        self.log_interval_time = 0.0

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        seconds = time.time() - self.train_start
        estimator.logger.info("Train finished using total %ds with %d epochs. %s", seconds, self.current_epoch, self._values())

    def batch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.batch_start = time.time()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(self.log_interval, int):
            self.processed_samples += kwargs["batch"][0].shape[0]
            self.log_interval_time += time.time() - self.batch_start
            if self.batch_index % self.log_interval == 0:
                estimator.logger.info(
                    "[Epoch %d][Batch %d][Samples %s] time/interval: %.3fs %s",
                    self.current_epoch, self.batch_index, self.processed_samples, self.log_interval_time, self._values(),
                )  # fmt: skip
                self.log_interval_time = 0.0
        self.batch_index += 1

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.epoch_start = time.time()
        if any("training" in metric.name for metric in self.metrics):
            rate = estimator.trainer.learning_rate
            estimator.logger.info("[Epoch %d] Begin, current learning rate: %.4f", self.current_epoch, rate)
        else:
            estimator.logger.info("Validation Begin")

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        seconds = time.time() - self.epoch_start
        estimator.logger.info("[Epoch %d] Finished in %.3fs, %s", self.current_epoch, seconds, self._values())
        self.current_epoch += 1
        self.batch_index = 0
