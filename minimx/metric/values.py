"""Metrics of probabilities and of numbers: logarithms of probabilities, differences, correlation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import ArgumentError
from .metric import EvalMetric, MetricShapeError, Values, alias, as_values, check_label_shapes, naming_shapes, register

__all__ = ["MAE", "MSE", "RMSE", "CrossEntropy", "NegativeLogLikelihood", "PearsonCorrelation", "Perplexity"]


# ---- probabilities


@register
class Perplexity(EvalMetric):
    """`exp` of the mean of `-log(p[label])`: among how many classes the prediction hesitates.

    **Shapes** label (N, ...), prediction (N, ..., C). **Args** `ignore_label`: samples with this label do not count, None for none;
    `axis`: that of the classes, the last one. **Source** MXNet `metric.Perplexity`.
    """

    def __init__(
        self, ignore_label: int | None, axis: int = -1, name: str = "perplexity", output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, output_names, label_names, ignore_label=ignore_label, axis=axis, has_global_stats=True)
        self.ignore_label = ignore_label
        self.axis = axis

    @naming_shapes
    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds):
            values, wanted = np.moveaxis(as_values(pred), self.axis, -1), as_values(label).ravel().astype(np.int64)
            classes = values.shape[-1]
            if wanted.size * classes != values.size:
                raise MetricShapeError(f"shape mismatch: {label.shape} vs. {pred.shape}")
            rows = values.reshape(-1, classes)
            chosen = rows[np.arange(wanted.size), wanted.clip(0, classes - 1)]
            if self.ignore_label is not None:
                chosen = chosen[wanted != self.ignore_label]
            self._add(float(-np.log(np.maximum(1e-10, chosen.astype(np.float64))).sum()), chosen.size)

    def _value(self, total: Any, count: float) -> Any:
        return math.exp(total / count)


@alias("ce")
@register
class CrossEntropy(EvalMetric):
    """The mean of `-log(p[label] + eps)`.

    **Shapes** label (N,), prediction (N, C), probabilities. **Source** MXNet `metric.CrossEntropy`.
    """

    def __init__(
        self, eps: float = 1e-12, name: str = "cross-entropy", output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, output_names, label_names, eps=eps, has_global_stats=True)
        self.eps = eps

    @naming_shapes
    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds):
            wanted, probabilities = as_values(label).ravel().astype(np.int64), as_values(pred)
            if len(wanted) != len(probabilities):
                raise MetricShapeError(f"Shape of labels {label.shape} does not match shape of predictions {pred.shape}")
            chosen = probabilities[np.arange(len(wanted)), wanted]
            self._add(float(-np.log(chosen + self.eps).sum()), len(wanted))


@alias("nll_loss")
@register
class NegativeLogLikelihood(CrossEntropy):
    """The same as CrossEntropy, under another name. **Source** MXNet `metric.NegativeLogLikelihood`."""

    def __init__(
        self, eps: float = 1e-12, name: str = "nll-loss", output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(eps, name, output_names, label_names)


# ---- numbers


class DifferenceMetric(EvalMetric):
    """The mean over batches of a function of the differences between labels and predictions."""

    def _of(self, difference: Values) -> Any:
        raise NotImplementedError

    @naming_shapes
    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds):
            wanted, found = (column(as_values(each)) for each in (label, pred))
            self._add(float(self._of(wanted - found)), 1)


def column(values: Values) -> Values:
    """A vector as a matrix of one column, others as they are."""
    return values.reshape(-1, 1) if values.ndim == 1 else values


@register
class MAE(DifferenceMetric):
    """The mean absolute difference, averaged over batches. **Source** MXNet `metric.MAE`."""

    def __init__(
        self, name: str = "mae", output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def _of(self, difference: Values) -> Any:
        return np.abs(difference).mean()


@register
class MSE(DifferenceMetric):
    """The mean squared difference, averaged over batches. **Source** MXNet `metric.MSE`."""

    def __init__(
        self, name: str = "mse", output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def _of(self, difference: Values) -> Any:
        return (difference**2.0).mean()


@register
class RMSE(DifferenceMetric):
    """The root of the mean squared difference of each batch, averaged over batches. **Source** MXNet `metric.RMSE`."""

    def __init__(
        self, name: str = "rmse", output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def _of(self, difference: Values) -> Any:
        return np.sqrt((difference**2.0).mean())


@alias("pearsonr")
@register
class PearsonCorrelation(EvalMetric):
    """The correlation coefficient of labels and predictions.

    **Args** `average`: "macro", the mean over batches, or "micro", of all samples together. **Source** MXNet
    `metric.PearsonCorrelation`.
    """

    def __init__(
        self, name: str = "pearsonr", output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None,
        average: str = "macro",
    ) -> None:  # fmt: skip
        if average not in ("macro", "micro"):
            raise ArgumentError(f"PearsonCorrelation: average={average!r}; choose 'macro' or 'micro'")
        self.average = average
        super().__init__(name, output_names, label_names, average=average, has_global_stats=True)

    def reset(self) -> None:
        self.global_moments = Moments()
        super().reset()

    def reset_local(self) -> None:
        self.moments = Moments()
        super().reset_local()

    @naming_shapes
    def update(self, labels: Any, preds: Any) -> None:
        labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds):
            check_label_shapes(label, pred, False, True)
            batch = Moments(*(as_values(each).ravel().astype(np.float64) for each in (label, pred)))
            if self.average == "macro":
                self._add(batch.correlation(), 1)
                continue
            self.moments, self.global_moments = self.moments.joined(batch), self.global_moments.joined(batch)
            self._add(0.0, 1)
            self.sum_metric = self.moments.correlation() * self.num_inst
            self.global_sum_metric = self.global_moments.correlation() * self.global_num_inst


class Moments:
    """Number, means, and sums of products of deviations of pairs of numbers; those of two sets give those of both together."""

    def __init__(self, label: Values | None = None, pred: Values | None = None) -> None:
        self.count = 0
        self.means: Values = np.zeros(2)
        self.products: Values = np.zeros((2, 2))
        if label is not None and pred is not None and label.size:
            both = np.stack([label, pred])
            self.count, self.means = both.shape[1], both.mean(axis=1)
            deviations = both - self.means[:, None]
            self.products = deviations @ deviations.T

    def joined(self, other: Moments) -> Moments:
        """The moments of both sets. (Chan, Golub, LeVeque, 1979.)"""
        both = Moments()
        both.count = self.count + other.count
        if both.count:
            apart = other.means - self.means
            both.means = self.means + apart * (other.count / both.count)
            both.products = self.products + other.products + np.outer(apart, apart) * (self.count * other.count / both.count)
        return both

    def correlation(self) -> float:
        """The correlation coefficient; NaN if one of the two never changes."""
        spread = float(self.products[0, 0] * self.products[1, 1])
        return float(self.products[0, 1]) / math.sqrt(spread) if spread > 0 else math.nan
