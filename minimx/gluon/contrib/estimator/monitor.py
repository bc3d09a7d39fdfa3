"""A metric that decides: whether a network got better."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ....base import shown
from ....metric import CompositeEvalMetric, EvalMetric
from .events import EstimatorError

__all__ = ["Monitor"]


class Monitor:
    """Watches a metric for a handler. **Args** `owner`: the handler, for messages; `mode`: "max" or "min" is better, or "auto"."""

    def __init__(self, owner: str, metric: Any, mode: str) -> None:
        if not isinstance(metric, EvalMetric) or isinstance(metric, CompositeEvalMetric):
            raise EstimatorError(
                f"{owner}: monitor is {shown(metric)}; please provide one of the metric objects from estimator.train_metrics and "
                "estimator.val_metrics"
            )
        if mode not in ("auto", "min", "max"):
            warnings.warn(f"{owner}: mode {mode} is unknown, fallback to auto mode", RuntimeWarning, stacklevel=4)
            mode = "auto"
        name = metric.get()[0]
        if mode == "auto":
            mode = "max" if any(word in name.lower() for word in ("acc", "f1")) else "min"
            more = "`greater`" if mode == "max" else "`less`"
            warnings.warn(
                f"{owner}: the {more} operator will be used to determine if {name} has improved. Give mode='min' or mode='max' to choose, "
                "and to get no warning",
                stacklevel=4,
            )
        self.metric = metric
        self.sign = 1 if mode == "max" else -1
        self.worst = -math.inf * self.sign

    def is_better(self, value: float, best: float, least: float = 0) -> bool:
        """Whether `value` is better than `best`, by more than `least`."""
        return self.sign * value - least > self.sign * best

    def value(self) -> float | None:
        """The metric now; None, with a warning, if it was never updated."""
        name, value = self.metric.get()
        if math.isnan(value):
            warnings.warn(
                f"{name} is not updated, make sure you pass one of the metric objects from estimator.train_metrics and "
                "estimator.val_metrics as monitor",
                RuntimeWarning,
                stacklevel=4,
            )
            return None
        return float(value)
