"""Metrics of an Estimator: which there are, and which belong to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ....base import shown
from ....metric import Accuracy, CompositeEvalMetric, EvalMetric
from ...loss import SoftmaxCrossEntropyLoss
from .events import EstimatorError

__all__ = ["as_metrics", "check_metrics_known", "suggested_metric"]


def as_metrics(metrics: Any) -> list[EvalMetric]:
    """A list of simple metrics from one, several, or a composite one. Raises ValueError for anything else."""
    if isinstance(metrics, CompositeEvalMetric):
        return [each for metric in metrics.metrics for each in as_metrics(metric)]
    listed = [metrics] if isinstance(metrics, EvalMetric) else list(metrics or [])
    for metric in listed:
        if not isinstance(metric, EvalMetric):
            raise EstimatorError(f"metrics must be an EvalMetric or a list of them, got {shown(metrics)}")
    return listed


def check_metrics_known(handler: Any, known: Iterable[EvalMetric]) -> None:
    """Raise ValueError if an attribute of `handler` that is called something with "metric" has one that is not among `known`."""
    known = list(known)
    for name in dir(handler):
        value = getattr(handler, name) if "metric" in name else None
        for metric in value if isinstance(value, list) else [value]:
            if isinstance(metric, EvalMetric) and all(metric is not each for each in known):
                raise EstimatorError(
                    f"Event handler {type(handler).__name__} refers to a metric instance {metric} outside of the known training and "
                    "validation metrics. Please use the metrics from estimator.train_metrics and estimator.val_metrics instead."
                )


def suggested_metric(loss: Any) -> EvalMetric | None:
    """The metric that people want with this loss."""
    return Accuracy() if isinstance(loss, SoftmaxCrossEntropyLoss) else None
