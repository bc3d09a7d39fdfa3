"""Metrics for TensorBoard, written by whichever package is there."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

import minimx as mx
from minimx.contrib import tensorboard


class Writer:
    def __init__(self, folder):
        self.folder = folder
        self.lines = []

    def add_scalar(self, name, value, global_step):
        self.lines.append((name, value, global_step))


def test_values_are_written(monkeypatch):
    package = ModuleType("tensorboardX")
    package.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "mxboard", None)
    monkeypatch.setitem(sys.modules, "tensorboardX", package)
    callback = tensorboard.LogMetricsCallback("logs", prefix="train")
    metric = mx.metric.Accuracy()
    metric.update([mx.nd.array([1, 0])], [mx.nd.array([[0, 1], [0, 1]])])
    callback(SimpleNamespace(eval_metric=metric, epoch=3))
    callback(SimpleNamespace(eval_metric=None, epoch=4))
    assert callback.summary_writer.folder == "logs"
    assert callback.summary_writer.lines == [("train-accuracy", 0.5, 3)]


def test_without_a_package(monkeypatch):
    for name in ("mxboard", "tensorboardX", "torch", "torch.utils", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="pip install tensorboardX"):
        tensorboard.LogMetricsCallback("logs")
