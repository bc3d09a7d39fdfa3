"""`mx.callback`: what is logged, and when something is saved."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest

import minimx as mx
from minimx import nd, sym
from minimx.base import ArgumentError
from minimx.callback import (
    LogValidationMetricsCallback,
    ProgressBar,
    Speedometer,
    do_checkpoint,
    log_train_metric,
    module_checkpoint,
)
from minimx.checkpoint import BatchEndParam


@pytest.fixture(autouse=True)
def all_messages(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)


def metric(right: int = 1) -> Any:
    """An accuracy of so many in two."""
    found = mx.metric.Accuracy()
    found.update([nd.array([1, 1])], [nd.array([[0, 1], [0, 1] if right == 2 else [1, 0]])])
    return found


def at(nbatch: int, epoch: int = 0, eval_metric: Any = None) -> BatchEndParam:
    return BatchEndParam(epoch, nbatch, eval_metric, None)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_speedometer(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    tell, value = Speedometer(batch_size=10, frequent=2), metric()
    for nbatch in range(5):
        tell(at(nbatch, eval_metric=value))
        value.update([nd.array([1])], [nd.array([[0, 1]])])
    assert messages(caplog) == [
        "Epoch[0] Batch [0-2]\tSpeed: 20.00 samples/sec\taccuracy=0.750000",
        "Epoch[0] Batch [2-4]\tSpeed: 20.00 samples/sec\taccuracy=1.000000",
    ]
    tell(at(0, epoch=1, eval_metric=value))  # another epoch: the clock starts anew
    assert len(messages(caplog)) == 2
    tell(at(2, epoch=1))
    assert messages(caplog)[-1] == "Iter[1] Batch [2]\tSpeed: 20.00 samples/sec"


def test_speedometer_that_does_not_reset(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 3.0)  # a clock too coarse for a batch
    tell, value = Speedometer(10, 1, auto_reset=False), metric()
    tell(at(0, eval_metric=value))
    tell(at(1, eval_metric=value))
    assert messages(caplog) == ["Epoch[0] Batch [0-1]\tSpeed: inf samples/sec\taccuracy=0.500000"]
    assert value.get()[1] == 0.5


def test_log_train_metric(caplog: pytest.LogCaptureFixture) -> None:
    tell, value = log_train_metric(2, auto_reset=True), metric()
    for nbatch in range(3):
        tell(at(nbatch, 4, value))
    tell(at(2, 4))
    assert messages(caplog) == ["Iter[4] Batch[0] Train-accuracy=0.500000", "Iter[4] Batch[2] Train-accuracy=nan"]


def test_progress_bar(caplog: pytest.LogCaptureFixture) -> None:
    tell = ProgressBar(total=3, length=6)
    for nbatch in (1, 2, 3):
        tell(at(nbatch))
    assert messages(caplog) == ["[==----] 34%\r", "[====--] 67%\r", "[======] 100%\r"]


def test_validation(caplog: pytest.LogCaptureFixture) -> None:
    LogValidationMetricsCallback()(at(3, 2, metric(2)))
    LogValidationMetricsCallback()(at(3, 2))
    assert messages(caplog) == ["Epoch[2] Validation-accuracy=1.000000"]


def test_do_checkpoint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    save, graph = do_checkpoint(str(tmp_path / "net"), period=2), sym.var("x") * 2
    for epoch in range(4):
        save(epoch, graph, {"w": nd.ones((1,)) * epoch}, {"m": nd.zeros((1,))})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net-0002.params", "net-0004.params", "net-symbol.json"]
    symbol, args, aux = mx.model.load_checkpoint(str(tmp_path / "net"), 4)
    assert symbol.tojson() == graph.tojson()
    assert (args["w"].asscalar(), aux["m"].asscalar()) == (3, 0)
    assert messages(caplog) == [f'Saved checkpoint to "{tmp_path}/net-000{epoch}.params"' for epoch in (2, 4)]


def test_module_checkpoint(tmp_path: Path) -> None:
    module = mx.mod.Module(sym.SoftmaxOutput(sym.FullyConnected(sym.var("data"), num_hidden=2), name="softmax"))
    data = mx.io.NDArrayIter(nd.ones((4, 3)), nd.zeros((4,)), batch_size=2)
    prefix = str(tmp_path / "net")
    module.fit(
        data, num_epoch=2, epoch_end_callback=[module_checkpoint(module, prefix, 1, True), module_checkpoint(module, prefix)]
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "net-0001.params", "net-0001.states", "net-0002.params", "net-0002.states", "net-symbol.json",
    ]  # fmt: skip


@pytest.mark.parametrize("make", [lambda: Speedometer(1, 0), lambda: ProgressBar(0), lambda: log_train_metric(0)])
def test_periods_are_at_least_one(make: Any) -> None:
    with pytest.raises(ArgumentError, match="0, wants 1 or more"):
        make()
