"""Estimator: what happens in a training, and who is called at it."""

from __future__ import annotations

import logging
import re
import sys

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, nd
from minimx.base import FileFormatError, MissingFileError
from minimx.gluon import nn
from minimx.gluon.contrib.estimator import (
    BatchBegin,
    BatchEnd,
    BatchProcessor,
    CheckpointHandler,
    EarlyStoppingHandler,
    EpochBegin,
    EpochEnd,
    Estimator,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
)


def loader(count=12, size=4):
    random = np.random.RandomState(0)
    data = random.normal(size=(count, 3)).astype(np.float32)
    return gluon.data.DataLoader(gluon.data.ArrayDataset(data, data.sum(axis=1, keepdims=True)), size)


def estimator(rate=0.1, hybrid=False, **options):
    """A network of one layer; the default handlers print nothing."""
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(1, in_units=3))
    if hybrid:
        net.hybridize()
    net.initialize(mx.init.Zero())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": rate})
    made = Estimator(net, gluon.loss.L2Loss(), trainer=trainer, context=mx.cpu(), **options)
    made.logger.handlers.clear()
    made.logger.addHandler(logging.NullHandler())
    return made


class Diary(TrainBegin, TrainEnd, EpochBegin, EpochEnd, BatchBegin, BatchEnd):
    """Writes down what happens."""

    def __init__(self, stop_at=None):
        self.events = []
        self.stop_at = stop_at

    def train_begin(self, estimator, *args, **kwargs):
        self.events.append("train_begin")

    def train_end(self, estimator, *args, **kwargs):
        self.events.append("train_end")

    def epoch_begin(self, estimator, *args, **kwargs):
        self.events.append("epoch_begin")

    def epoch_end(self, estimator, *args, **kwargs):
        self.events.append("epoch_end")
        return self.stop_at == "epoch"

    def batch_begin(self, estimator, *args, **kwargs):
        assert kwargs["batch"][0].shape == (4, 3)
        self.events.append("batch_begin")

    def batch_end(self, estimator, *args, **kwargs):
        assert [part.shape for part in kwargs["pred"] + kwargs["label"]] == [(4, 1), (4, 1)]
        assert kwargs["loss"][0].shape == (4,)
        self.events.append("batch_end")
        return self.stop_at == "batch"


BATCH = ["batch_begin", "batch_end"]


def test_events():
    diary = Diary()
    estimator().fit(loader(), epochs=2, event_handlers=diary)
    assert diary.events == ["train_begin", *["epoch_begin", *BATCH * 3, "epoch_end"] * 2, "train_end"]
    diary = Diary()
    estimator().fit(loader(), batches=4, event_handlers=[diary])
    assert diary.events == [
        "train_begin",
        "epoch_begin",
        *BATCH * 3,
        "epoch_end",
        "epoch_begin",
        *BATCH,
        "epoch_end",
        "train_end",
    ]
    for stop_at, events in (("batch", BATCH), ("epoch", BATCH * 3)):
        diary = Diary(stop_at)
        estimator().fit(loader(), epochs=1 if stop_at == "batch" else 5, event_handlers=[diary])
        assert diary.events == ["train_begin", "epoch_begin", *events, "epoch_end", "train_end"]
    diary = Diary()
    estimator().evaluate(loader(), event_handlers=[diary])
    assert diary.events == ["epoch_begin", *BATCH * 3, "epoch_end"]


def test_training_is_what_a_loop_does():
    made = estimator(val_metrics=mx.metric.MAE())
    made.fit(loader(), val_data=loader(), epochs=3)
    net = nn.Dense(1, in_units=3)
    net.initialize(mx.init.Zero())
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(3):
        losses = []
        for data, label in loader():
            with autograd.record():
                loss = gluon.loss.L2Loss()(net(data), label)
            loss.backward()
            trainer.step(4)
            losses.append(loss.asnumpy())
    np.testing.assert_array_equal(made.net[0].weight.data().asnumpy(), net.weight.data().asnumpy())
    assert [metric.name for metric in made.train_metrics] == ["training l2loss"]
    np.testing.assert_allclose(made.train_metrics[0].get()[1], np.mean(losses), rtol=1e-6)
    error = np.mean([np.abs(net(data).asnumpy() - label.asnumpy()).mean() for data, label in loader()])
    assert made.val_metrics[0].name == "validation mae"
    np.testing.assert_allclose(made.val_metrics[0].get()[1], error, rtol=1e-5)


def test_metrics():
    made = estimator(train_metrics=mx.metric.CompositeEvalMetric(["mae", "mse"]))
    assert [metric.name for metric in made.train_metrics] == ["training mae", "training mse"]
    assert [metric.name for metric in made.val_metrics] == ["validation mae", "validation mse"]
    assert all(one is not other for one, other in zip(made.train_metrics, made.val_metrics))
    net = nn.Dense(2, in_units=3)
    net.initialize()
    with pytest.warns(UserWarning, match="No trainer specified, default SGD optimizer with learning rate 0.001 is used"):
        made = Estimator(net, gluon.loss.SoftmaxCrossEntropyLoss(), context=mx.cpu())
    assert [type(metric).__name__ for metric in made.train_metrics] == ["Accuracy", "Loss"]
    assert made.trainer.learning_rate == 0.001


def test_several_devices():
    net = nn.Dense(1, in_units=3)
    net.initialize(mx.init.Zero(), ctx=[mx.cpu(0), mx.cpu(1)])
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    made = Estimator(net, gluon.loss.L2Loss(), trainer=trainer, context=[mx.cpu(0), mx.cpu(1)])
    made.logger.handlers.clear()
    made.fit(loader(), epochs=2)
    single = estimator()
    single.fit(loader(), epochs=2)
    np.testing.assert_allclose(net.weight.data(mx.cpu(1)).asnumpy(), single.net[0].weight.data().asnumpy(), rtol=1e-5)


def test_networks_that_are_not_initialized():
    net = nn.Dense(1)
    with pytest.warns(UserWarning, match="No trainer specified"):
        made = Estimator(net, gluon.loss.L2Loss(), initializer=mx.init.One(), context=mx.cpu())
    assert made._is_initialized()
    with pytest.warns(UserWarning, match="Network already fully initialized"):
        Estimator(net, gluon.loss.L2Loss(), initializer=mx.init.One(), trainer=made.trainer, context=mx.cpu())
    partly = nn.Sequential()
    partly.add(nn.Dense(2, in_units=3), nn.Dense(1, in_units=2))
    partly[0].initialize(mx.init.One())
    with pytest.warns(UserWarning, match="No trainer specified"):
        Estimator(partly, gluon.loss.L2Loss(), initializer=mx.init.Zero(), context=mx.cpu())
    assert partly[0].weight.data().asnumpy().min() == 1
    assert partly[1].weight.data().asnumpy().max() == 0


def test_other_networks_losses_and_batches_to_evaluate_with():
    class Doubled(BatchProcessor):
        def evaluate_batch(self, estimator, val_batch, batch_axis=0):
            data, label, pred, loss = super().evaluate_batch(estimator, val_batch, batch_axis)
            return data, label, pred, [each * 2 for each in loss]

    net = nn.Dense(1, in_units=3)
    net.initialize(mx.init.One())
    made = estimator(val_net=net, val_loss=gluon.loss.L1Loss(), val_metrics=mx.metric.Loss("mine"), batch_processor=Doubled())
    made.evaluate(loader())
    assert made.val_metrics[0].get() == ("validation mine", pytest.approx(0, abs=1e-6))


# ---- handlers


def test_order_and_defaults():
    made = estimator()
    made.max_epoch, made.max_batch = 1, None
    diary = Diary()
    handlers = made._prepare_default_handlers(loader(), [diary])
    kinds = [GradientUpdateHandler, MetricHandler, ValidationHandler, Diary, StoppingHandler, LoggingHandler]
    assert [type(handler) for handler in handlers] == kinds
    own = [LoggingHandler(metrics=made.train_metrics), MetricHandler(made.train_metrics), GradientUpdateHandler()]
    assert len(made._prepare_default_handlers(None, own)) == 4
    assert len(own) == 3  # the user's list is not changed
    with pytest.raises(ValueError, match=r"LoggingHandler refers to a metric instance .* outside of the known"):
        made._prepare_default_handlers(None, [LoggingHandler(metrics=mx.metric.MAE())])
    with pytest.raises(ValueError, match="must be an EventHandler or a list of them, got 'log'"):
        made.fit(loader(), epochs=1, event_handlers=["log"])


def test_validation_by_epochs_and_batches():
    calls = []
    for options, count in (
        ({}, 4),
        ({"epoch_period": 2}, 2),
        ({"epoch_period": None, "batch_period": 5}, 2),
        ({"epoch_period": None}, 0),
    ):
        calls.clear()
        made = estimator()
        handler = ValidationHandler(loader(), lambda **given: calls.append(given), **options)
        made.fit(loader(), epochs=4, event_handlers=[handler])
        assert len(calls) == count
    assert all(given["batch_axis"] == 0 for given in calls)


def test_logging(capsys):
    made = estimator()
    made.logger.handlers.clear()
    made.logger.addHandler(logging.StreamHandler(sys.stdout))
    made.fit(loader(), val_data=loader(), epochs=1, event_handlers=[LoggingHandler(2, made.train_metrics + made.val_metrics)])
    lines = capsys.readouterr().out.splitlines()
    wanted = [
        r"Training begin: using optimizer SGD with current learning rate 0\.1000 ",
        r"Train for 1 epochs\.",
        r"\[Epoch 0\] Begin, current learning rate: 0\.1000",
        r"\[Epoch 0\]\[Batch 0\]\[Samples 4\] time/interval: \d+\.\d{3}s training l2loss: \d+\.\d{4}, validation l2loss: nan",
        r"\[Epoch 0\]\[Batch 2\]\[Samples 12\] time/interval: \d+\.\d{3}s training l2loss: \d+\.\d{4}, validation l2loss: nan",
        r"Validation Begin",
        r"\[Epoch 0\] Finished in \d+\.\d{3}s, validation l2loss: \d+\.\d{4}",
        r"\[Epoch 0\] Finished in \d+\.\d{3}s, training l2loss: \d+\.\d{4}, validation l2loss: \d+\.\d{4}",
        r"Train finished using total \d+s with 1 epochs\. training l2loss: \d+\.\d{4}, validation l2loss: \d+\.\d{4}",
    ]
    assert len(lines) == len(wanted), lines
    for line, pattern in zip(lines, wanted):
        assert re.fullmatch(pattern, line), line
    for wrong in (0, "batch", 1.5):
        with pytest.raises(ValueError, match="log_interval is"):
            LoggingHandler(wrong)


class Fixed(mx.metric.EvalMetric):
    """A metric that says what it is told."""

    def __init__(self, name, values):
        super().__init__(name)
        self.values = list(values)

    def update(self, labels, preds):
        pass

    def reset(self):
        pass

    def get(self):
        return self.name, self.values[0]


class Silent:
    """As much of an Estimator as a handler needs that stops."""

    logger = logging.Logger("test")


def run(handler, values):
    """In which epoch a handler stops, if the metric has these values after each."""
    for number, value in enumerate(values):
        handler.monitor.values = [value]
        if handler.epoch_end(Silent):
            return number
    return None


@pytest.mark.parametrize(
    ("options", "values", "stopped"),
    [
        ({"mode": "max"}, [1, 2, 3, 2], 3),
        ({"mode": "max", "patience": 2}, [1, 2, 1, 3, 2, 2], 5),
        ({"mode": "min"}, [3, 2, 1, 1], 3),
        ({"mode": "min", "min_delta": 0.5}, [3, 2, 1.6], 2),
        ({"mode": "max", "baseline": 5}, [4], 0),
        ({"mode": "max"}, [1, 2, 3], None),
    ],
)
def test_early_stopping(options, values, stopped):
    handler = EarlyStoppingHandler(Fixed("score", [0]), **options)
    handler.train_begin(Silent)
    assert run(handler, values) == stopped
    handler.train_end(Silent)
    assert handler.stopped_epoch == (stopped or 0)
    handler.train_begin(Silent)
    assert not handler.stop_training


def test_what_is_better_by_name():
    for name, values in (("accuracy", [1, 2, 1]), ("my F1 score", [1, 2, 1]), ("loss", [2, 1, 2])):
        with pytest.warns(UserWarning, match=r"operator will be used to determine if .* has improved"):
            handler = EarlyStoppingHandler(Fixed(name, [0]))
        handler.train_begin(Silent)
        assert run(handler, values) == 2
    with pytest.warns(RuntimeWarning, match="is not updated"):
        run(handler, [float("nan")])
    for wrong in ("accuracy", mx.metric.CompositeEvalMetric()):
        with pytest.raises(ValueError, match="please provide one of the metric objects"):
            EarlyStoppingHandler(wrong)


def files_of(folder):
    return sorted(path.name for path in folder.iterdir())


def test_checkpoints_by_batches(tmp_path):
    made = estimator(hybrid=True)
    handler = CheckpointHandler(tmp_path, "net", epoch_period=None, batch_period=2, max_checkpoints=2)
    made.fit(loader(), batches=7, event_handlers=[handler])
    assert files_of(tmp_path) == [
        "net-epoch1batch3.params", "net-epoch1batch3.states", "net-epoch1batch5.params", "net-epoch1batch5.states", "net-symbol.json"
    ]  # fmt: skip
    again = gluon.SymbolBlock(mx.sym.load(str(tmp_path / "net-symbol.json")), mx.sym.var("data"))
    assert set(again.collect_params()) == {"net_dense0_weight", "net_dense0_bias"}


def test_best_checkpoint(tmp_path):
    made = estimator(train_metrics=Fixed("score", [0]))
    score = made.train_metrics[0]
    weights = {}

    class Script(EpochEnd):
        priority = -1

        def epoch_end(self, estimator, *args, **kwargs):
            score.values = [[1, 3, 2][handler.current_epoch]]
            weights[handler.current_epoch] = estimator.net[0].weight.data().asnumpy()

    handler = CheckpointHandler(tmp_path / "new" / "folder", "net", monitor=score, save_best=True, mode="max", verbose=1)
    made.fit(loader(), epochs=3, event_handlers=[Script(), handler, LoggingHandler(metrics=made.train_metrics)])
    assert handler.best == 3
    names = files_of(tmp_path / "new" / "folder")
    assert [name for name in names if name.endswith(".params")] == [
        "net-best.params", "net-epoch0batch3.params", "net-epoch1batch6.params", "net-epoch2batch9.params"
    ]  # fmt: skip
    best = nd.load(str(tmp_path / "new" / "folder" / "net-best.params"))
    np.testing.assert_array_equal(best["0.weight"].asnumpy(), weights[1])


def test_going_on(tmp_path):
    whole = estimator()
    whole.fit(loader(), epochs=5)
    first = estimator()
    first.fit(loader(), epochs=2, event_handlers=[CheckpointHandler(tmp_path, max_checkpoints=1)])
    second = estimator()
    second.fit(loader(), epochs=5, event_handlers=[CheckpointHandler(tmp_path, max_checkpoints=1, resume_from_checkpoint=True)])
    assert second.max_epoch == 3
    np.testing.assert_array_equal(second.net[0].weight.data().asnumpy(), whole.net[0].weight.data().asnumpy())
    assert files_of(tmp_path) == ["model-epoch4batch15.params", "model-epoch4batch15.states"]
    with pytest.raises(ValueError, match="maximum number of epoch 5 reached"):
        estimator().fit(loader(), epochs=5, event_handlers=[CheckpointHandler(tmp_path, resume_from_checkpoint=True)])
    with pytest.raises(AssertionError, match="needs batch_period, and epoch_period=None"):
        estimator().fit(loader(), batches=5, event_handlers=[CheckpointHandler(tmp_path, resume_from_checkpoint=True)])
    (tmp_path / "model-epoch4batch15.states").unlink()
    with pytest.raises(MissingFileError, match=r"model-epoch4batch15.states does not exist"):
        estimator().fit(loader(), epochs=9, event_handlers=[CheckpointHandler(tmp_path, resume_from_checkpoint=True)])
    (tmp_path / "model-epochten.params").write_text("")
    with pytest.raises(FileFormatError, match="Error parsing checkpoint file"):
        estimator().fit(loader(), epochs=9, event_handlers=[CheckpointHandler(tmp_path, resume_from_checkpoint=True)])
    with pytest.raises(ValueError, match="please provide one of the metric objects"):
        CheckpointHandler(tmp_path, save_best=True)


def test_going_on_from_nothing_and_by_batches(tmp_path):
    how = {"epoch_period": None, "batch_period": 2, "resume_from_checkpoint": True}
    first = estimator()
    first.fit(loader(), batches=4, event_handlers=[CheckpointHandler(tmp_path, **how)])
    second = estimator()
    second.fit(loader(), batches=8, event_handlers=[CheckpointHandler(tmp_path, **how)])
    assert second.max_batch == 4
    assert files_of(tmp_path)[-2:] == ["model-epoch3batch7.params", "model-epoch3batch7.states"]


# ---- wrong arguments


def test_wrong_arguments():
    net, loss = nn.Dense(1, in_units=3), gluon.loss.L2Loss()
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd")
    for options, message in (
        ({"loss": "mse"}, "loss must be a gluon.loss.Loss, got 'mse'"),
        ({"train_metrics": "acc"}, "metrics must be an EvalMetric or a list of them, got 'acc'"),
        ({"trainer": "sgd"}, "trainer must be a gluon.Trainer, got 'sgd'"),
        ({"context": "cpu"}, "context must be a Context or a list of Context, got 'cpu'"),
        ({"context": [mx.gpu(100)]}, r"gpu\(100\) is not available"),
        ({"batch_processor": Diary()}, "must have the methods fit_batch and evaluate_batch"),
    ):
        with pytest.raises(ValueError, match=message):
            Estimator(**{"net": net, "loss": loss, "trainer": trainer, **options})
    made = estimator()
    for data in (mx.io.NDArrayIter(np.zeros((4, 3)), np.zeros(4)), [nd.zeros((4, 3))]):
        with pytest.raises(ValueError, match=r"data must be a gluon.data.DataLoader"):
            made.fit(data, epochs=1)
        with pytest.raises(ValueError, match=r"data must be a gluon.data.DataLoader"):
            made.evaluate(data)
    for options in ({}, {"epochs": 1, "batches": 1}):
        with pytest.raises(ValueError, match="give one of them"):
            made.fit(loader(), **options)
    empty = gluon.data.DataLoader(gluon.data.ArrayDataset(nd.zeros((2, 3)), nd.zeros((2, 1))), 4, last_batch="discard")
    with pytest.raises(ValueError, match="train_data gives no batches, so that 3 batches are never reached"):
        made.fit(empty, batches=3)
