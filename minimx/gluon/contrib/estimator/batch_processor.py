"""What an Estimator does with a batch. A subclass does something else, for a network of several inputs, or several losses."""

from __future__ import annotations

from typing import Any

from .... import autograd
from ...utils import split_and_load

__all__ = ["BatchProcessor"]

Lists = tuple[list[Any], list[Any], list[Any], list[Any]]


class BatchProcessor:
    """Splits a batch over the devices, runs the network, computes the loss, and in training the gradients.

    **Source** MXNet `gluon.contrib.estimator.BatchProcessor`.
    """

    def _get_data_and_label(self, batch: Any, ctx: Any, batch_axis: int = 0) -> tuple[list[Any], list[Any]]:
        """Data and labels of a batch, a part for each device."""
        data, label = batch[0], batch[1]
        return split_and_load(data, ctx, batch_axis), split_and_load(label, ctx, batch_axis)

    def evaluate_batch(self, estimator: Any, val_batch: Any, batch_axis: int = 0) -> Lists:
        """Run `estimator.val_net` on a batch. **Returns** lists with an array for each device: data, labels, predictions, losses."""
        data, label = self._get_data_and_label(val_batch, estimator.context, batch_axis)
        pred = [estimator.val_net(part) for part in data]
        loss = [estimator.val_loss(part, wanted) for part, wanted in zip(pred, label)]
        return data, label, pred, loss

    def fit_batch(self, estimator: Any, train_batch: Any, batch_axis: int = 0) -> Lists:
        """Run `estimator.net` on a batch and compute gradients; a handler updates. **Returns** as `evaluate_batch`."""
        data, label = self._get_data_and_label(train_batch, estimator.context, batch_axis)
        with autograd.record():
            pred = [estimator.net(part) for part in data]
            loss = [estimator.loss(part, wanted) for part, wanted in zip(pred, label)]
        for each in loss:
            each.backward()
        return data, label, pred, loss
