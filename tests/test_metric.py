"""Metrics: values recorded from MXNet 1.9.1 and formulas in NumPy, local and global sums, names, and what is refused."""

from __future__ import annotations

import copy
import json
import math

import numpy as np
import pytest

from minimx import metric, nd
from minimx.base import MXNetError

SCORES = [[0.2, 0.3, 0.5], [0.6, 0.1, 0.3], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3]]
CLASSES = [2, 0, 0, 1]
BACK = CLASSES[::-1]
TWO_SCORES = [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.7, 0.3]]
TWO = [0, 1, 0, 1]
HALF = [(TWO, TWO_SCORES), (TWO[:2], TWO_SCORES[:2])]
A, B = np.array([[1.0, 2], [3, 5]]), np.array([[1.5, 1], [3, 2]])
NUMBERS = [(A, B), (B, 2 * A)]


def distance(label, pred):
    return np.abs(label - pred).sum()


def distance_and_count(label, pred):
    return np.abs(label - pred).sum(), label.size


#: Name, arguments, batches of labels and predictions; name and value of MXNet, and its value after the first batch alone.
RECORDED = [
    ("acc", {}, [(CLASSES, SCORES), (BACK, SCORES)], "accuracy", 0.5, 0.75),
    ("acc", {}, [(CLASSES, BACK)], "accuracy", 0.5, 0.5),
    ("accuracy", {"axis": 0}, [([1, 2, 3], SCORES)], "accuracy", 0.66667, 0.66667),
    ("top_k_acc", {"top_k": 2}, [(CLASSES, SCORES), (BACK, SCORES)], "top_k_accuracy_2", 0.75, 0.75),
    ("f1", {}, HALF, "f1", 0.75, 0.5),
    ("f1", {"average": "micro"}, HALF, "f1", 0.66667, 0.5),
    ("mcc", {}, HALF, "mcc", 0.5, 0.0),
    ("mcc", {"average": "micro"}, HALF, "mcc", 0.33333, 0.0),
    ("pcc", {}, [(CLASSES, SCORES), (BACK, SCORES)], "pcc", 0.3, 0.7),
    ("pcc", {}, [(TWO, TWO_SCORES)], "pcc", 0.0, 0.0),
    ("perplexity", {"ignore_label": None}, [(CLASSES, SCORES)], "perplexity", 3.02138, 3.02138),
    ("perplexity", {"ignore_label": 0}, [(CLASSES, SCORES), (BACK, SCORES)], "perplexity", 2.73012, 2.23607),
    ("perplexity", {"ignore_label": -1}, [([1, -1, -1, 0], SCORES)], "perplexity", 3.33333, 3.33333),
    ("ce", {}, [(CLASSES, SCORES), (BACK, SCORES)], "cross-entropy", 1.20553, 1.10571),
    ("crossentropy", {"eps": 0.1}, [(CLASSES, SCORES)], "cross-entropy", 0.79252, 0.79252),
    ("nll_loss", {}, [(CLASSES, SCORES)], "nll-loss", 1.10571, 1.10571),
    ("mae", {}, NUMBERS, "mae", 2.375, 1.125),
    ("mse", {}, NUMBERS, "mse", 11.5625, 2.5625),
    ("rmse", {}, NUMBERS, "rmse", 3.06769, 1.60078),
    ("mse", {}, [(A[0], B[0])], "mse", 0.625, 0.625),
    ("mae", {}, [(A[0], B[0].reshape(2, 1))], "mae", 0.75, 0.75),
    ("pearsonr", {}, [(A, B), (B, A**2)], "pearsonr", 0.38548, 0.42857),
    ("pearsonr", {"average": "micro"}, [(A, B), (B, A**2)], "pearsonr", -0.0331, 0.42857),
    ("loss", {}, [(A, B), (A, A)], "loss", 2.3125, 1.875),
    ("torch", {}, [(A, B)], "torch", 1.875, 1.875),
    ("caffe", {}, [(A, B)], "caffe", 1.875, 1.875),
    (distance, {}, [(A, B), (B, A)], "distance", 4.5, 4.5),
    (distance_and_count, {"name": "own"}, [(A, B)], "own", 1.125, 1.125),
]


def feed(made, batches):
    for label, pred in batches:
        made.update([nd.array(label)], [nd.array(pred)])
    return made


@pytest.mark.parametrize(("name", "arguments", "batches", "title", "value", "first"), RECORDED)
def test_recorded_from_mxnet(name, arguments, batches, title, value, first):
    made = metric.create(name, **arguments)
    assert made.get()[0] == title
    assert math.isnan(made.get()[1])
    assert math.isnan(made.get_global()[1])
    feed(made, batches)
    for found in (made.get(), made.get_global()):
        assert found == (title, pytest.approx(value, abs=1e-5))
    made.reset_local()  # the global sums stay
    assert math.isnan(made.get()[1])
    assert made.get_global()[1] == pytest.approx(value, abs=1e-5)
    feed(made, batches[:1])
    assert made.get()[1] == pytest.approx(first, abs=1e-5)
    made.reset()
    assert math.isnan(made.get_global()[1])
    feed(made, batches)
    assert made.get_global_name_value() == made.get_name_value() == [(title, pytest.approx(value, abs=1e-5))]


@pytest.mark.parametrize(("name", "arguments"), [row[:2] for row in RECORDED if isinstance(row[0], str)])
def test_a_config_makes_an_equal_metric(name, arguments):
    made = metric.create(name, **arguments)
    again = metric.create(json.dumps(made.get_config()))
    assert type(again) is type(made)
    assert again.get_config() == made.get_config()


def test_random_batches_against_numpy():
    random = np.random.default_rng(0)
    label, scores = random.integers(0, 5, size=60), random.random((60, 5))
    chosen = scores[np.arange(60), label]
    ranks = (scores > chosen[:, None]).sum(axis=1)
    found = scores.argmax(axis=1)
    one_hot = np.eye(5)
    deviations = [(rows - rows.mean(axis=0)) for rows in (one_hot[label], one_hot[found])]
    covariance = [[(x * y).sum() for y in deviations] for x in deviations]
    wanted = {
        "acc": (ranks == 0).mean(),
        "ce": -np.log(chosen).mean(),
        "perplexity": np.exp(-np.log(chosen).mean()),
        "pcc": covariance[0][1] / np.sqrt(covariance[0][0] * covariance[1][1]),
    }
    for name, value in wanted.items():
        arguments = {"ignore_label": None} if name == "perplexity" else {}
        made = feed(metric.create(name, **arguments), [(label[:40], scores[:40]), (label[40:], scores[40:])])
        assert made.get()[1] == pytest.approx(value, rel=1e-5)
    for k in (2, 3, 9):
        made = feed(metric.TopKAccuracy(top_k=k), [(label, scores)])
        assert made.get()[1] == pytest.approx((ranks < k).mean())
    pairs = random.normal(size=(2, 50))
    together = feed(
        metric.PearsonCorrelation(average="micro"), [(part[0], part[1]) for part in np.split(pairs, [10, 11], axis=1)]
    )
    assert together.get()[1] == pytest.approx(np.corrcoef(pairs)[0, 1], rel=1e-5)


def test_several_arrays_in_a_batch():
    made = metric.Accuracy()
    made.update([nd.array(CLASSES), nd.array(TWO)], [nd.array(SCORES), nd.array(TWO_SCORES)])
    assert made.get() == ("accuracy", 5 / 8)
    macro = metric.F1()
    macro.update([nd.array([1, 0]), nd.array([1, 0])], [nd.array([[0.1, 0.9], [0.5, 0.5]]), nd.array([[0.85, 0.15], [1.0, 0.0]])])
    assert macro.num_inst == 1  # the batch counts once
    assert macro.get()[1] == pytest.approx(2 / 3)


def test_labels_in_another_shape():
    made = metric.Accuracy()
    made.update([nd.array([[2, 0], [0, 1]])], [nd.array(SCORES)])
    assert made.get()[1] == 0.75
    ids = metric.TopKAccuracy(top_k=2)
    ids.update([nd.array(CLASSES)], [nd.array(BACK)])
    assert ids.get()[1] == 0.5


def test_undefined_values_are_zero_or_nan():
    nothing = [([0, 0], [[0.9, 0.1], [0.8, 0.2]])]
    assert feed(metric.F1(), nothing).get()[1] == 0
    assert feed(metric.MCC(), nothing).get()[1] == 0
    assert math.isnan(feed(metric.PCC(), nothing).get()[1])
    assert math.isnan(feed(metric.PearsonCorrelation(), [(np.ones(3), np.arange(3))]).get()[1])


def test_composite():
    made = metric.create(["acc", metric.F1(), distance])
    feed(made, [(TWO, TWO)][:0])
    assert made.get()[0] == ["accuracy", "f1", "distance"]
    pair = metric.CompositeEvalMetric(["acc", "mcc"])
    pair.add("f1")
    feed(pair, HALF)
    names, values = pair.get()
    assert names == ["accuracy", "mcc", "f1"]
    np.testing.assert_allclose(values, [4 / 6, 0.5, 0.75], rtol=1e-6)
    assert pair.get_global() == pair.get()
    assert str(pair).startswith("EvalMetric: {'accuracy': 0.66")
    pair.reset_local()
    assert math.isnan(pair.get()[1][0])
    assert pair.get_global()[1] == values
    again = metric.create(json.dumps(pair.get_config()))
    assert [type(each) for each in again.metrics] == [metric.Accuracy, metric.MCC, metric.F1]
    assert isinstance(pair.get_metric(1), metric.MCC)
    with pytest.raises(ValueError, match="Metric index 3 is out of range 0 and 3"):
        pair.get_metric(3)


def test_by_name():
    made = metric.Accuracy(output_names=["softmax"], label_names=["class"])
    made.update_dict({"other": nd.array([1]), "class": nd.array(CLASSES)}, {"softmax": nd.array(SCORES), "hidden": nd.array([0])})
    assert made.get()[1] == 0.75
    with pytest.raises(KeyError, match="there is no label called class; there are other"):
        made.update_dict({"other": nd.array([1])}, {"softmax": nd.array(SCORES)})
    both = metric.CompositeEvalMetric(["acc"], output_names=["softmax"], label_names=["class"])
    both.update_dict({"class": nd.array(CLASSES), "x": nd.array([1])}, {"softmax": nd.array(SCORES), "y": nd.array([0])})
    assert both.get() == (["accuracy"], [0.75])
    everything = metric.MAE()
    everything.update_dict({"l": nd.array(A)}, {"p": nd.array(B)})
    assert everything.get()[1] == 1.125


def test_functions():
    assert metric.create(lambda label, pred: 1.0).name == "custom(<lambda>)"
    assert metric.np(distance).name == "distance"
    extra = metric.CustomMetric(distance, allow_extra_outputs=True)
    extra.update([nd.array(A)], [nd.array(B), nd.array(B)])
    assert extra.get()[1] == 4.5
    with pytest.raises(NotImplementedError, match="cannot be serialized"):
        extra.get_config()


def test_losses_need_no_labels():
    one, two = metric.Loss(), metric.Loss()
    one.update(None, [nd.array(B)])
    two.update(None, nd.array(B))
    assert one.get() == two.get() == ("loss", 1.875)


def test_a_metric_of_ones_own():
    @metric.alias("sz")
    @metric.register
    class Size(metric.EvalMetric):
        def update(self, labels, preds):
            self.sum_metric += sum(pred.size for pred in preds)
            self.num_inst += 1

    made = metric.create("sz", "size")
    made.update([], [nd.ones((2, 3))])
    assert made.get() == made.get_global() == ("size", 6.0)
    assert copy.deepcopy(made).get() == ("size", 6.0)
    for name in ("sz", "size"):
        del metric.metric._registry.classes[name]


@pytest.mark.parametrize(
    "made",
    [
        metric.Accuracy(), metric.TopKAccuracy(2), metric.F1(), metric.MCC(), metric.PCC(), metric.CrossEntropy(),
        metric.NegativeLogLikelihood(), metric.Perplexity(None), metric.PearsonCorrelation(),
    ],
    ids=lambda made: type(made).__name__,
)  # fmt: skip
def test_swapped_arguments(made):
    labels, preds = nd.array([0, 1, 1]), nd.array([[0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    text = rf"^{type(made).__name__}.update\(labels, preds\): .*; labels have shapes \[\(3, 2\)\], preds \[\(3,\)\]; the labels come first"
    for swapped in ((preds, labels), ([preds], [labels])):
        with pytest.raises(ValueError, match=text):
            made.update(*swapped)
    with pytest.raises(ValueError, match=r"MAE.update\(labels, preds\): .*; labels have shapes \[\(3,\)\], preds \[\(2,\)\]$"):
        metric.MAE().update([labels], [nd.ones((2,))])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: metric.create("accurate"), ValueError, "no metric is called 'accurate'"),
        (lambda: metric.TopKAccuracy(), AssertionError, "Please use Accuracy if top_k is no more than 1"),
        (lambda: metric.F1(average="mean"), ValueError, "average='mean'"),
        (lambda: metric.PearsonCorrelation(average="mean"), ValueError, "average='mean'"),
        (lambda: feed(metric.F1(), [(CLASSES, SCORES)]), ValueError, "labels have 3 classes"),
        (lambda: feed(metric.Accuracy(), [(CLASSES, SCORES[:3])]), ValueError, "Shape of labels 4 does not match shape of"),
        (lambda: metric.Accuracy().update([nd.ones((2,))], []), ValueError, "Shape of labels 1 does not match"),
        (lambda: feed(metric.CrossEntropy(), [(CLASSES, SCORES[:3])]), AssertionError, "does not match shape of predictions"),
        (lambda: feed(metric.Perplexity(None), [(CLASSES, SCORES[:3])]), AssertionError, "shape mismatch"),
        (lambda: feed(metric.PearsonCorrelation(), [(A, A[0])]), ValueError, "Shape of labels"),
        (lambda: feed(metric.TopKAccuracy(2), [(A, A.reshape(2, 2, 1))]), AssertionError, "no more than 2 dims"),
        (lambda: metric.EvalMetric("x").update([], []), NotImplementedError, "EvalMetric must override update"),
        (lambda: metric.create(3), MXNetError, "a name or an instance of EvalMetric is wanted"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
