"""Metrics of classification: how many samples are right, and how well classes are told apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import ArgumentError
from .metric import (
    EvalMetric,
    MetricArgumentError,
    MetricShapeError,
    Values,
    alias,
    as_values,
    check_label_shapes,
    naming_shapes,
    register,
)

__all__ = ["F1", "MCC", "PCC", "Accuracy", "TopKAccuracy"]


@alias("acc")
@register
class Accuracy(EvalMetric):
    """The part of samples whose class is right: that with the largest value along `axis`, or the prediction itself if it has the label's
    shape.

    **Source** MXNet `metric.Accuracy`.
    """

    def __init__(
        self, axis: int = 1, name: str = "accuracy", output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, output_names, label_names, axis=axis, has_global_stats=True)
        self.axis = axis

    @naming_shapes
    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds):
            if pred.shape != label.shape:
                pred = pred.argmax(axis=self.axis)
            found, wanted = (as_values(each).astype(np.int32).ravel() for each in (pred, label))
            check_label_shapes(wanted, found)
            self._add(int((found == wanted).sum()), len(found))


@alias("top_k_accuracy", "top_k_acc")
@register
class TopKAccuracy(EvalMetric):
    """The part of samples whose class is among the `top_k` with the largest values.

    **Shapes** label (N,), prediction (N, C), or (N,) with numbers of classes. **Raises** AssertionError if `top_k` is not above 1, and
    for other shapes. **Source** MXNet `metric.TopKAccuracy`.
    """

    def __init__(
        self, top_k: int = 1, name: str = "top_k_accuracy", output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        if top_k <= 1:
            raise MetricArgumentError("Please use Accuracy if top_k is no more than 1")
        super().__init__(f"{name}_{top_k}", output_names, label_names, top_k=top_k, has_global_stats=True)
        self.top_k = top_k

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "name": self.name.removesuffix(f"_{self.top_k}")}

    @naming_shapes
    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds):
            scores, wanted = as_values(pred), as_values(label).astype(np.int32).ravel()
            if scores.ndim > 2:
                raise MetricShapeError(f"Predictions should be no more than 2 dims, got shape {scores.shape}")
            check_label_shapes(wanted, scores)
            if scores.ndim == 2:
                count = min(self.top_k, scores.shape[1])
                best = np.argpartition(scores.astype(np.float32), -count, axis=1)[:, -count:]
                right = (best == wanted[:, None]).any(axis=1)
            else:
                right = scores.astype(np.int32) == wanted
            self._add(int(right.sum()), len(wanted))


class Counts:
    """How often each of two classes was predicted for each: what F1 and MCC are made of."""

    def __init__(self) -> None:
        self.table = np.zeros((2, 2), np.int64)  # label, prediction

    def add(self, label: Values, pred: Values) -> None:
        """Count a batch. **Raises** ValueError for more than two classes."""
        check_label_shapes(label, pred)
        wanted, found = label.astype(np.int32).ravel(), pred.argmax(axis=1).ravel()
        if len(np.unique(wanted)) > 2:
            raise MetricShapeError(f"only binary classification is supported, labels have {len(np.unique(wanted))} classes")
        np.add.at(self.table, ((wanted == 1).astype(int), (found == 1).astype(int)), 1)

    @property
    def total(self) -> int:
        return int(self.table.sum())

    @property
    def fscore(self) -> float:
        """`2 precision recall / (precision + recall)`; 0 where that is undefined."""
        (_, false_positive), (false_negative, true_positive) = self.table.tolist()
        wrong = false_positive + false_negative
        return 2 * true_positive / (2 * true_positive + wrong) if true_positive else 0.0

    @property
    def matthewscc(self) -> float:
        """The correlation of labels and predictions; sums that are 0 are left out of the denominator."""
        (true_negative, false_positive), (false_negative, true_positive) = self.table.tolist()
        sums = [*self.table.sum(axis=0).tolist(), *self.table.sum(axis=1).tolist()]
        denominator = math.prod(float(each) for each in sums if each)
        return (true_positive * true_negative - false_positive * false_negative) / math.sqrt(denominator)


class BinaryMetric(EvalMetric):
    """A metric from the counts of two classes: the mean over batches ("macro"), or from all counts together ("micro")."""

    def __init__(self, name: str, output_names: Sequence[str] | None, label_names: Sequence[str] | None, average: str) -> None:
        if average not in ("macro", "micro"):
            raise ArgumentError(f"{type(self).__name__}: average={average!r}; choose 'macro' or 'micro'")
        self.average = average
        super().__init__(name, output_names, label_names, average=average, has_global_stats=True)

    def _score(self, counts: Counts) -> float:
        raise NotImplementedError

    def reset(self) -> None:
        self.global_counts = Counts()
        super().reset()

    def reset_local(self) -> None:
        self.counts = Counts()
        super().reset_local()

    @naming_shapes
    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        batch = Counts()
        for label, pred in zip(labels, preds):
            batch.add(as_values(label), as_values(pred))
        if self.average == "macro":
            self._add(self._score(batch) if batch.total else 0.0, 1)
            return
        self.counts.table += batch.table
        self.global_counts.table += batch.table
        self.num_inst, self.global_num_inst = self.counts.total, self.global_counts.total
        self.sum_metric = self._score(self.counts) * self.num_inst
        self.global_sum_metric = self._score(self.global_counts) * self.global_num_inst


@register
class F1(BinaryMetric):
    """`2 precision recall / (precision + recall)` of class 1 among two.

    **Shapes** label (N,), prediction (N, 2). **Args** `average`: "macro", the mean over batches, or "micro", of all samples together.
    **Raises** ValueError for more than two classes. **Source** MXNet `metric.F1`.
    """

    def __init__(
        self, name: str = "f1", output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None,
        average: str = "macro",
    ) -> None:  # fmt: skip
        super().__init__(name, output_names, label_names, average)

    def _score(self, counts: Counts) -> float:
        return counts.fscore


@register
class MCC(BinaryMetric):
    """The correlation coefficient of Matthews, of two classes: 1 if all is right, 0 for guesses, -1 if all is wrong.

    **Shapes**, **Args**, **Raises** as F1. **Source** MXNet `metric.MCC`.
    """

    def __init__(
        self, name: str = "mcc", output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None,
        average: str = "macro",
    ) -> None:  # fmt: skip
        super().__init__(name, output_names, label_names, average)

    def _score(self, counts: Counts) -> float:
        return counts.matthewscc if counts.total else 0.0


@register
class PCC(EvalMetric):
    """MCC for any number of classes.

    **Shapes** label (N,), prediction (N, C), or (N,) with numbers of classes. **Source** MXNet `metric.PCC`; Gorodkin, 2004.
    """

    def __init__(
        self, name: str = "pcc", output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None,
        has_global_stats: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(name, output_names, label_names, has_global_stats=has_global_stats)

    def reset(self) -> None:
        self.gcm: Values = np.zeros((2, 2))  # counts of prediction and label
        super().reset()

    def reset_local(self) -> None:
        self.lcm: Values = np.zeros((2, 2))
        super().reset_local()

    @naming_shapes
    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds):
            wanted, found = as_values(label).astype(np.int32), as_values(pred)
            found = found.argmax(axis=1) if found.shape != wanted.shape else found.astype(np.int32)
            check_label_shapes(wanted.ravel(), found.ravel())
            size = max(int(found.max(initial=0)), int(wanted.max(initial=0)), len(self.gcm) - 1) + 1
            batch = np.zeros((size, size))
            np.add.at(batch, (found.ravel(), wanted.ravel()), 1)
            self.lcm, self.gcm = grown(self.lcm, size) + batch, grown(self.gcm, size) + batch
        self._add(0.0, 1)
        self.sum_metric = correlation(self.lcm) * self.num_inst
        self.global_sum_metric = correlation(self.gcm) * self.global_num_inst


def grown(table: Values, size: int) -> Values:
    """A square table with more rows and columns of 0."""
    more = size - len(table)
    return np.pad(table, ((0, more), (0, more)))


def correlation(table: Values) -> float:
    """The correlation of rows and columns of a table of counts; NaN if there is only one class of either."""
    count, rows, columns = table.sum(), table.sum(axis=1), table.sum(axis=0)
    spread = float((rows * (count - rows)).sum() * (columns * (count - columns)).sum())
    return float((table.diagonal() * count - rows * columns).sum()) / math.sqrt(spread) if spread else math.nan
