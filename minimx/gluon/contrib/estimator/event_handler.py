"""`gluon.contrib.estimator.event_handler`: the events, and the handlers that an Estimator comes with.

Here are those that update, measure and stop; logging.py and checkpoint.py have the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....metric import Loss
from .checkpoint import CheckpointHandler
from .events import BatchBegin, BatchEnd, EpochBegin, EpochEnd, EventHandler, TrainBegin, TrainEnd
from .logging_handler import LoggingHandler
from .monitor import Monitor
from .utils import as_metrics

__all__ = [
    "TrainBegin", "TrainEnd", "EpochBegin", "EpochEnd", "BatchBegin", "BatchEnd", "StoppingHandler", "MetricHandler", "ValidationHandler",
    "LoggingHandler", "CheckpointHandler", "EarlyStoppingHandler", "GradientUpdateHandler", "EventHandler",
]  # fmt: skip


class StoppingHandler(TrainBegin, BatchEnd, EpochEnd):
    """Stops after `max_epoch` epochs or `max_batch` batches; when a training begins, these are those of the Estimator.

    **Source** MXNet `StoppingHandler`.
    """

    def __init__(self, max_epoch: int | None = None, max_batch: int | None = None) -> None:
        self.max_epoch = max_epoch
        self.max_batch = max_batch
        self.current_batch = 0
        self.current_epoch = 0
        self.stop_training = False

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.max_epoch = estimator.max_epoch
        self.max_batch = estimator.max_batch
        self.current_batch = 0
        self.current_epoch = 0
        self.stop_training = False

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        self.current_batch += 1
        if self.current_batch == self.max_batch:
            self.stop_training = True
        return self.stop_training

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        self.current_epoch += 1
        if self.current_epoch == self.max_epoch:
            self.stop_training = True
        return self.stop_training


class MetricHandler(EpochBegin, BatchEnd):
    """Updates `metrics` with each batch, and resets them before each epoch. A `metric.Loss` gets the losses, the others labels and
    predictions.

    **Source** MXNet `MetricHandler`.
    """

    def __init__(self, metrics: Any, priority: float = -1000) -> None:
        self.metrics = as_metrics(metrics)
        self.priority = priority  # before those that read the metrics

    def epoch_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        for metric in self.metrics:
            metric.reset()

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        for metric in self.metrics:
            if isinstance(metric, Loss):
                metric.update(0, kwargs["loss"])
            else:
                metric.update(kwargs["label"], kwargs["pred"])


class ValidationHandler(TrainBegin, BatchEnd, EpochEnd):
    """Evaluates on other data after every `epoch_period` epochs, and every `batch_period` batches if that is given.

    **Args** `val_data`: a DataLoader; `eval_fn`: what evaluates, usually `estimator.evaluate`; `event_handlers`: what is called at its
    events. **Source** MXNet `ValidationHandler`.
    """

    def __init__(
        self,
        val_data: Any,
        eval_fn: Callable[..., Any],
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        priority: float = -1000,
        event_handlers: Any = None,
    ) -> None:
        self.val_data = val_data
        self.eval_fn = eval_fn
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.current_batch = 0
        self.current_epoch = 0
        self.priority = priority  # before those that read the metrics
        self.event_handlers = event_handlers

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_batch = 0
        self.current_epoch = 0

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_batch += 1
        if self.batch_period and self.current_batch % self.batch_period == 0:
            self._evaluate(estimator)

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_epoch += 1
        if self.epoch_period and self.current_epoch % self.epoch_period == 0:
            self._evaluate(estimator)

    def _evaluate(self, estimator: Any) -> None:
        self.eval_fn(val_data=self.val_data, batch_axis=estimator.batch_axis, event_handlers=self.event_handlers)


class EarlyStoppingHandler(TrainBegin, EpochEnd, TrainEnd):
    """Stops when a metric gets no better.

    **Args** `monitor`: the metric, one of the Estimator's; `min_delta`: how much better it must get; `patience`: for so many epochs it may
    get no better; `mode`: "max" or "min" is better, "auto": by the metric's name; `baseline`: what it must be better than at first.
    **Source** MXNet `EarlyStoppingHandler`, whose "auto" always is "max".
    """

    def __init__(
        self, monitor: Any, min_delta: float = 0, patience: int = 0, mode: str = "auto", baseline: float | None = None
    ) -> None:
        self._watched = Monitor("EarlyStoppingHandler", monitor, mode)
        self.monitor = monitor
        self.monitor_op = self._watched.is_better
        self.baseline = baseline
        self.patience = patience
        self.min_delta = min_delta
        self.best = self._watched.worst if baseline is None else baseline
        self.wait = 0
        self.stopped_epoch = 0
        self.current_epoch = 0
        self.stop_training = False

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.wait = 0
        self.stopped_epoch = 0
        self.current_epoch = 0
        self.stop_training = False
        self.best = self._watched.worst if self.baseline is None else self.baseline

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> bool:
        value = self._watched.value()
        if value is not None and self._watched.is_better(value, self.best, self.min_delta):
            self.best = value
            self.wait = 0
        elif value is not None:
            self.wait += 1
            if self.wait >= self.patience:
                self.stopped_epoch = self.current_epoch
                self.stop_training = True
        self.current_epoch += 1
        return self.stop_training

    def train_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.stop_training:
            estimator.logger.info(
                "[Epoch %d] EarlyStoppingHandler: early stopping due to %s not improving",
                self.stopped_epoch,
                self.monitor.get()[0],
            )


class GradientUpdateHandler(BatchEnd):
    """Makes the Trainer's step after each batch, before all other handlers. **Source** MXNet `GradientUpdateHandler`."""

    def __init__(self, priority: float = -2000) -> None:
        self.priority = priority

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        loss = kwargs["loss"]
        estimator.trainer.step(sum(each.shape[0] for each in (loss if isinstance(loss, list) else [loss])))
