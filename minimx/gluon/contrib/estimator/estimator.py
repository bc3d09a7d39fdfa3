"""Estimator: the loop of a training, written once, with handlers called at its events."""

from __future__ import annotations

import copy
import logging
import sys
import warnings
from typing import Any

from ....base import shown
from ....device import Context, cpu, gpu, num_gpus
from ....metric import EvalMetric, Loss as LossMetric
from ...data import DataLoader
from ...loss import Loss
from ...trainer import Trainer
from .batch_processor import BatchProcessor
from .event_handler import GradientUpdateHandler, LoggingHandler, MetricHandler, StoppingHandler, ValidationHandler
from .events import BatchBegin, BatchEnd, EpochBegin, EpochEnd, EstimatorError, TrainBegin, TrainEnd, as_handlers
from .utils import as_metrics, check_metrics_known, suggested_metric

__all__ = ["Estimator"]


class Estimator:
    """Trains and evaluates a network.

    **Args** `net`; `loss`: a `gluon.loss.Loss`; `train_metrics`, `val_metrics`: metrics, by default the one that is usual with the loss,
    and the loss, and copies of them; `initializer`: for parameters that are not initialized; `trainer`: by default SGD with rate 0.001,
    with a warning; `context`: the devices, by default one GPU, or else the CPU; `val_net`, `val_loss`: others to evaluate with, which
    share parameters with `net`; `batch_processor`: what is done with a batch. `logger` prints to the standard output. **Raises**
    ValueError for anything else, AssertionError (both are) for a GPU that is not there. **Source** MXNet
    `gluon.contrib.estimator.Estimator`.
    """

    logger: Any = None

    def __init__(
        self,
        net: Any,
        loss: Loss,
        train_metrics: Any = None,
        val_metrics: Any = None,
        initializer: Any = None,
        trainer: Trainer | None = None,
        context: Context | list[Context] | None = None,
        val_net: Any = None,
        val_loss: Loss | None = None,
        batch_processor: Any = None,
    ) -> None:
        self.net = net
        self.loss = self._check_loss(loss)
        self._train_metrics = as_metrics(train_metrics) or self._default_metrics()
        for metric in self._train_metrics:
            metric.name = f"training {metric.name}"  # by which handlers know them
        self._val_metrics = as_metrics(val_metrics) or copy.deepcopy(self._train_metrics)
        for metric in self._val_metrics:
            name = metric.name
            metric.name = name.replace("training", "validation") if "training" in name else f"validation {name}"
        self.val_loss = self.loss if val_loss is None else self._check_loss(val_loss)
        self.val_net = net if val_net is None else val_net
        self.logger = logging.Logger("Estimator", logging.INFO)
        self.logger.addHandler(logging.StreamHandler(sys.stdout))
        self.context = self._check_context(context)
        self._initialize(initializer)
        self.trainer = self._check_trainer(trainer)
        self.batch_processor = self._check_batch_processor(batch_processor)
        self.max_epoch: int | None = None
        self.max_batch: int | None = None
        self.batch_axis = 0

    @property
    def train_metrics(self) -> list[EvalMetric]:
        """The metrics of training; their names begin with "training"."""
        return self._train_metrics

    @property
    def val_metrics(self) -> list[EvalMetric]:
        """The metrics of evaluation; their names begin with "validation"."""
        return self._val_metrics

    # ---- what it is made of

    @staticmethod
    def _check_loss(loss: Any) -> Loss:
        if not isinstance(loss, Loss):
            raise EstimatorError(f"Estimator: loss must be a gluon.loss.Loss, got {shown(loss)}")
        return loss

    def _default_metrics(self) -> list[EvalMetric]:
        usual = suggested_metric(self.loss)
        own = LossMetric(self.loss.name.rstrip("1234567890"))
        return [own] if usual is None else [usual, own]

    @staticmethod
    def _check_context(context: Any) -> list[Context]:
        """The devices as a list."""
        gpus = [gpu(number) for number in range(num_gpus())]
        if not context:
            if len(gpus) > 1:
                warnings.warn(
                    "You have multiple GPUs, gpu(0) will be used by default. To utilize all your GPUs, specify context as a list of gpus, "
                    "e.g. context=[mx.gpu(0), mx.gpu(1)] ",
                    stacklevel=3,
                )
            return gpus[:1] or [cpu()]
        listed = [context] if isinstance(context, Context) else context
        if not isinstance(listed, list) or not all(isinstance(each, Context) for each in listed):
            raise EstimatorError(f"Estimator: context must be a Context or a list of Context, got {shown(context)}")
        for each in listed:
            if each not in gpus and not each.device_type.startswith("cpu"):
                there = ", ".join(map(str, [cpu(), *gpus]))
                raise EstimatorError(f"Estimator: {each} is not available, please make sure your context is in one of: {there}")
        return listed

    def _initialize(self, initializer: Any) -> None:
        """Initialize what is not initialized yet."""
        if not self._is_initialized():
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*already initialized")  # those that are stay as they are
                self.net.initialize(ctx=self.context, **({"init": initializer} if initializer else {}))
        elif initializer:
            warnings.warn(
                "Network already fully initialized, skipping initialization. You don't need to pass initializer if you already initialized "
                "your net. You can use net.initialize(init=your_initializer, force_reinit=True) to force re-initialize.",
                stacklevel=3,
            )

    def _is_initialized(self) -> bool:
        try:
            for param in self.net.collect_params().values():
                param.list_ctx()
        except RuntimeError:
            return False
        return True

    def _check_trainer(self, trainer: Any) -> Trainer:
        if not trainer:
            warnings.warn("No trainer specified, default SGD optimizer with learning rate 0.001 is used.", stacklevel=3)
            return Trainer(self.net.collect_params(), "sgd", {"learning_rate": 0.001})
        if not isinstance(trainer, Trainer):
            raise EstimatorError(f"Estimator: trainer must be a gluon.Trainer, got {shown(trainer)}")
        return trainer

    @staticmethod
    def _check_batch_processor(processor: Any) -> Any:
        if processor is None:
            return BatchProcessor()
        if not all(callable(getattr(processor, name, None)) for name in ("fit_batch", "evaluate_batch")):
            raise EstimatorError(
                f"Estimator: batch_processor must have the methods fit_batch and evaluate_batch, got {shown(processor)}"
            )
        return processor

    # ---- evaluating and training

    def evaluate(self, val_data: DataLoader, batch_axis: int = 0, event_handlers: Any = None) -> None:
        """Run the network on all of `val_data`; the results are in `val_metrics`. **Args** `batch_axis`: along which batches are split over
        the devices; `event_handlers`: one or several; a MetricHandler and a LoggingHandler are added if there are none."""
        self._require_loader(val_data)
        handlers = self._prepare_default_validation_handlers(event_handlers)
        _, epoch_begin, batch_begin, batch_end, epoch_end, _ = self._categorize_handlers(handlers)
        for handler in epoch_begin:
            handler.epoch_begin(self)
        for batch in val_data:
            for handler in batch_begin:
                handler.batch_begin(self, batch=batch)
            _, label, pred, loss = self.batch_processor.evaluate_batch(self, batch, batch_axis)
            for handler in batch_end:
                handler.batch_end(self, batch=batch, pred=pred, label=label, loss=loss)
        for handler in epoch_end:
            handler.epoch_end(self)

    def fit(
        self,
        train_data: DataLoader,
        val_data: DataLoader | None = None,
        epochs: int | None = None,
        event_handlers: Any = None,
        batches: int | None = None,
        batch_axis: int = 0,
    ) -> None:
        """Train for so many `epochs`, or so many `batches`.

        **Args** `val_data`: what to evaluate on after each epoch; `event_handlers`: one or several; those that update, measure, evaluate,
        log and stop are added if there are none; `batch_axis`: as `evaluate`. **Raises** ValueError for other data than a DataLoader, or
        unless one of `epochs` and `batches` is given.
        """
        self._require_loader(train_data)
        if (not epochs) == (not batches):
            raise EstimatorError(f"Estimator.fit: epochs is {shown(epochs)}, batches {shown(batches)}; give one of them")
        self.max_epoch, self.max_batch, self.batch_axis = epochs, batches, batch_axis
        handlers = self._prepare_default_handlers(val_data, event_handlers)
        train_begin, epoch_begin, _, _, epoch_end, train_end = self._categorize_handlers(handlers)
        for handler in train_begin:
            handler.train_begin(self)
        stopped = False
        while not stopped:
            for handler in epoch_begin:
                handler.epoch_begin(self)
            self._train_epoch(train_data, handlers, batch_axis)
            answers = [handler.epoch_end(self) for handler in epoch_end]  # all of them are called, whoever wants to stop
            stopped = any(answers)
        for handler in train_end:
            handler.train_end(self)

    def _train_epoch(self, train_data: DataLoader, handlers: list[Any], batch_axis: int) -> None:
        """The batches of an epoch, until a handler says to stop."""
        _, _, batch_begin, batch_end, _, _ = self._categorize_handlers(handlers)
        empty = True
        for batch in train_data:
            empty = False
            for handler in batch_begin:
                handler.batch_begin(self, batch=batch)
            _, label, pred, loss = self.batch_processor.fit_batch(self, batch, batch_axis)
            answers = [handler.batch_end(self, batch=batch, pred=pred, label=label, loss=loss) for handler in batch_end]
            if any(answers):
                return
        if empty and self.max_batch:
            raise EstimatorError(
                f"Estimator.fit: train_data gives no batches, so that {self.max_batch} batches are never reached"
            )

    @staticmethod
    def _require_loader(data: Any) -> None:
        if not isinstance(data, DataLoader):
            raise EstimatorError(
                f"Estimator: data must be a gluon.data.DataLoader, got {shown(data)}; make one from arrays or a data set"
            )

    # ---- handlers

    def _prepare_default_handlers(self, val_data: Any, event_handlers: Any) -> list[Any]:
        """The handlers of a training, in the order in which they are called."""
        handlers = as_handlers(event_handlers)
        added: list[Any] = [StoppingHandler(self.max_epoch, self.max_batch)]
        if not _has(handlers, GradientUpdateHandler):
            added.append(GradientUpdateHandler())
        if not _has(handlers, MetricHandler):
            added.append(MetricHandler(self.train_metrics))
        if val_data is not None and not _has(handlers, ValidationHandler):
            added.append(ValidationHandler(val_data, self.evaluate))
        if not _has(handlers, LoggingHandler):
            added.append(LoggingHandler(metrics=self.train_metrics))
        return self._ordered(handlers, added, self.train_metrics + self.val_metrics)

    def _prepare_default_validation_handlers(self, event_handlers: Any) -> list[Any]:
        """The handlers of an evaluation, in the order in which they are called."""
        handlers = as_handlers(event_handlers)
        added: list[Any] = []
        if not _has(handlers, MetricHandler):
            added.append(MetricHandler(self.val_metrics))
        if not _has(handlers, LoggingHandler):
            added.append(LoggingHandler(metrics=self.val_metrics))
        return self._ordered(handlers, added, self.val_metrics)

    @staticmethod
    def _ordered(handlers: list[Any], added: list[Any], known: list[EvalMetric]) -> list[Any]:
        """All handlers, by their priority. Those of users and those that were added must be about the same metrics."""
        found = handlers + added
        if handlers and added:
            for handler in found:
                check_metrics_known(handler, known)
        return sorted(found, key=lambda handler: getattr(handler, "priority", 0))

    def _categorize_handlers(self, event_handlers: list[Any]) -> tuple[list[Any], ...]:
        """The handlers of each event."""
        kinds = (TrainBegin, EpochBegin, BatchBegin, BatchEnd, EpochEnd, TrainEnd)
        return tuple([handler for handler in event_handlers if isinstance(handler, kind)] for kind in kinds)


def _has(handlers: list[Any], kind: type[Any]) -> bool:
    return any(isinstance(handler, kind) for handler in handlers)
