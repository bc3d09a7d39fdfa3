"""Losses: values against formulas in NumPy and numbers recorded from MXNet 1.9.1, and each as a graph against itself as Python code."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, nd
from minimx.base import ArgumentError, ShapeError
from minimx.gluon import loss as losses

RANDOM = np.random.default_rng(3)
PRED = RANDOM.normal(size=(3, 4)).astype("float32")
OTHER = RANDOM.normal(size=(3, 4)).astype("float32")
BINARY = (OTHER > 0).astype("float32")
SIGNED = 2 * BINARY - 1
SAMPLES = np.array([[0.5], [2.0], [0.0]], "float32")
POSITIVE = np.array([[1.0, 2.0, 0.5, 3.0]], "float32")
CLASSES = np.array([1, 0, 3], "float32")
COUNTS = np.array([[0, 1, 2, 3]] * 3, "float32")


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


PROBABILITIES = softmax(OTHER)
SIGMOID = 1 / (1 + np.exp(-PRED))
LOG = np.log(softmax(PRED))


def rows(x, factor=1.0):
    """The mean for each sample."""
    return (x * factor).mean(axis=1)


def entropy(label, p, positive=1.0):
    return -(positive * label * np.log(p) + (1 - label) * np.log(1 - p))


def huber(d, rho):
    return np.where(d > rho, d - rho / 2, d * d / (2 * rho))


def cosine(x, y):
    return (x * y).sum(1, keepdims=True) / np.sqrt((x * x).sum(1, keepdims=True) * (y * y).sum(1, keepdims=True))


def stirling(t):
    safe = np.maximum(t, 1)
    return np.where(t > 1, safe * np.log(safe) - safe + 0.5 * np.log(2 * np.pi * safe), 0)


def sdml(x, y, smoothing):
    logarithm = np.log(softmax(-((x[:, None] - y[None]) ** 2).sum(2), 1))
    labels = np.full((3, 3), smoothing / 2)
    np.fill_diagonal(labels, 1 - smoothing)
    return (labels * (np.log(labels) - logarithm)).sum(1)


DIFFERENCE = np.abs(OTHER - PRED)
SIDES = np.array([[1.0], [-1.0], [1.0]], "float32")
COS = cosine(PRED, OTHER)
MARGIN = np.maximum(0, 1 - PRED * SIGNED)

#: loss, its inputs, what NumPy says
CASES = [
    (losses.L2Loss(), [PRED, OTHER], rows(DIFFERENCE**2 / 2)),
    (losses.L2Loss(3, batch_axis=1), [PRED, OTHER], (DIFFERENCE**2 * 1.5).mean(axis=0)),
    (losses.L2Loss(), [PRED, OTHER, SAMPLES], rows(DIFFERENCE**2 / 2, SAMPLES)),
    (losses.L2Loss(weight=None), [PRED, OTHER], rows(DIFFERENCE**2 / 2)),
    (losses.L2Loss(), [PRED, OTHER.reshape(2, 6)], rows(DIFFERENCE**2 / 2)),
    (losses.L1Loss(), [PRED, OTHER], rows(DIFFERENCE)),
    (losses.L1Loss(weight=2), [PRED, OTHER, SAMPLES], rows(DIFFERENCE, 2 * SAMPLES)),
    (losses.HuberLoss(), [PRED, OTHER, SAMPLES], rows(huber(DIFFERENCE, 1), SAMPLES)),
    (losses.HuberLoss(rho=0.7), [PRED, OTHER], rows(huber(DIFFERENCE, 0.7))),
    (losses.SigmoidBCELoss(), [PRED, BINARY], rows(entropy(BINARY, SIGMOID))),
    (losses.SigmoidBCELoss(), [PRED, BINARY, None, POSITIVE], rows(entropy(BINARY, SIGMOID, POSITIVE))),
    (losses.SigmoidBCELoss(from_sigmoid=True), [SIGMOID, BINARY], rows(entropy(BINARY, SIGMOID))),
    (
        losses.SigmoidBCELoss(True, weight=2), [SIGMOID, BINARY, SAMPLES, POSITIVE],
        rows(entropy(BINARY, SIGMOID, POSITIVE), 2 * SAMPLES),
    ),
    (losses.SoftmaxCELoss(), [PRED, CLASSES], -LOG[[0, 1, 2], [1, 0, 3]]),
    (losses.SoftmaxCELoss(), [PRED, CLASSES, SAMPLES], -LOG[[0, 1, 2], [1, 0, 3]] * SAMPLES[:, 0]),
    (losses.SoftmaxCELoss(from_logits=True), [PRED, CLASSES], -PRED[[0, 1, 2], [1, 0, 3]]),
    (losses.SoftmaxCELoss(sparse_label=False), [PRED, PROBABILITIES], -(LOG * PROBABILITIES).sum(1)),
    (
        losses.SoftmaxCELoss(axis=0, batch_axis=1), [PRED, CLASSES[[0, 1, 1, 0]]],
        -np.log(softmax(PRED, 0))[[1, 0, 0, 1], np.arange(4)],
    ),
    (losses.KLDivLoss(), [LOG, PROBABILITIES], (PROBABILITIES * (np.log(PROBABILITIES) - LOG)).sum(1)),
    (
        losses.KLDivLoss(from_logits=False, weight=0.5), [PRED, PROBABILITIES, SAMPLES],
        (PROBABILITIES * (np.log(PROBABILITIES) - LOG) * SAMPLES / 2).sum(1),
    ),
    (losses.HingeLoss(), [PRED, SIGNED], rows(MARGIN)),
    (losses.SquaredHingeLoss(), [PRED, SIGNED, SAMPLES], rows(MARGIN**2, SAMPLES)),
    (losses.LogisticLoss(), [PRED, SIGNED], rows(np.log1p(np.exp(-PRED * SIGNED)))),
    (losses.LogisticLoss(label_format="binary"), [PRED, BINARY], rows(np.log1p(np.exp(-PRED * SIGNED)))),
    (
        losses.TripletLoss(margin=2, weight=3), [PRED, OTHER, PROBABILITIES],
        3 * np.maximum(0, (DIFFERENCE**2 - (PROBABILITIES - PRED) ** 2).sum(1) + 2),
    ),
    (losses.PoissonNLLLoss(), [PRED, COUNTS], [(np.exp(PRED) - COUNTS * PRED).mean()]),
    (
        losses.PoissonNLLLoss(from_logits=False, compute_full=True), [np.exp(PRED), COUNTS],
        [(np.exp(PRED) - COUNTS * PRED + stirling(COUNTS)).mean()],
    ),
    (losses.CosineEmbeddingLoss(), [PRED, OTHER, SIDES[:, 0]], np.where(SIDES == 1, 1 - COS, np.maximum(0, COS))),
    (
        losses.CosineEmbeddingLoss(weight=2, margin=-0.9), [PRED, OTHER, SIDES[:, 0], SAMPLES],
        2 * SAMPLES * np.where(SIDES == 1, 1 - COS, np.maximum(0, COS + 0.9)),
    ),
    (losses.SDMLLoss(), [PRED, OTHER], sdml(PRED, OTHER, 0.3)),
    (losses.SDMLLoss(smoothing_parameter=0.1, weight=2), [PRED, OTHER], 2 * sdml(PRED, OTHER, 0.1)),
]  # fmt: skip


def step(loss, inputs):
    """The loss and the gradient of its first input."""
    arrays = [None if each is None else nd.array(each) for each in inputs]
    arrays[0].attach_grad()
    with autograd.record():
        value = loss(*arrays)
    value.backward()
    return value.asnumpy(), arrays[0].grad.asnumpy()


@pytest.mark.parametrize(("loss", "inputs", "wanted"), CASES, ids=[type(case[0]).__name__ for case in CASES])
def test_value_and_graph(loss, inputs, wanted):
    loss.hybridize(False)
    value, gradient = step(loss, inputs)
    assert value.dtype == np.float32
    assert value.shape == np.shape(wanted)
    np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-5)
    loss.hybridize()
    for _ in range(2):  # the second call runs without a trace
        in_graph, slope = step(loss, inputs)
        np.testing.assert_allclose(in_graph, value, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(slope, gradient, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("loss", "inputs"), [case[:2] for case in CASES], ids=[type(case[0]).__name__ for case in CASES])
def test_gradient(loss, inputs):
    """Along a random direction, against a difference. float32 leaves about three digits."""
    loss.hybridize(False)
    _, gradient = step(loss, inputs)
    direction = np.random.default_rng(0).normal(size=gradient.shape).astype("float32") * 2e-3
    first, *others = inputs
    high, low = (step(loss, [first + sign * direction, *others])[0].astype("float64").sum() for sign in (1, -1))
    assert abs((high - low) / 2 - (gradient * direction).sum()) < 1e-5


def test_recorded_from_mxnet():
    output, label = nd.array([[0, 2], [1, 4]]), nd.array([0, 1])
    loss = losses.SoftmaxCrossEntropyLoss()
    np.testing.assert_allclose(loss(output, label).asnumpy(), [2.12692809, 0.04858733], rtol=1e-5)
    weighted = loss(output, label, nd.array([[0.5], [1.0]]))
    np.testing.assert_allclose(weighted.asnumpy(), [1.06346405, 0.04858733], rtol=1e-5)
    x = nd.array([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_allclose(losses.KLDivLoss()(x, nd.softmax(x)).asnumpy(), [-3.4076056, -6.407605], rtol=1e-5)
    by_column = losses.KLDivLoss(from_logits=False, axis=0)(x, nd.softmax(x))
    np.testing.assert_allclose(by_column.asnumpy(), [2.2161913, -0.7838083], rtol=1e-5)


UNIFORM = [18.82820702, 16.50581741]  # a label of two classes in 20 steps of 4 equal probabilities, and one with a repetition


@pytest.mark.parametrize("hybrid", [False, True])
def test_ctc_recorded_from_mxnet(hybrid):
    label = nd.array([[1, 0, -1, -1], [2, 1, 1, -1]])
    for layout, label_layout, shape in (("NTC", "NT", (2, 20, 4)), ("TNC", "TN", (20, 2, 4))):
        loss = losses.CTCLoss(layout, label_layout, weight=2)
        loss.hybridize(hybrid)
        found = loss(nd.ones(shape), label if label_layout == "NT" else label.T)
        np.testing.assert_allclose(found.asnumpy() / 2, UNIFORM, rtol=1e-5)
    loss = losses.CTCLoss()
    loss.hybridize(hybrid)
    longer, lengths = nd.ones((2, 25, 4)), nd.array([20, 20])
    found = loss(longer, nd.array([[2, 1, 3, 3], [0, 2, 2, 3]]), lengths, nd.array([2, 3]), nd.array([1, 0.5]))
    np.testing.assert_allclose(found.asnumpy() * [1, 2], UNIFORM, rtol=1e-5)


def test_ctc_trains():
    mx.random.seed(3)
    net, loss = gluon.nn.Dense(5, flatten=False, in_units=6), losses.CTCLoss()
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    data, label = nd.random.normal(shape=(4, 12, 6)), nd.array([[0, 1, 2], [3, 3, -1], [2, -1, -1], [1, 0, 1]])
    first = None
    for _ in range(60):
        with autograd.record():
            value = loss(net(data), label)
        value.backward()
        trainer.step(4)
        first = first or value.mean().asscalar()
    assert value.mean().asscalar() < first / 3


def test_large_numbers_do_not_overflow():
    pred, label = nd.array([1e4, -1e4]), nd.array([0, 1])
    np.testing.assert_array_equal(losses.SigmoidBCELoss()(pred, label).asnumpy(), [1e4, 1e4])
    np.testing.assert_array_equal(losses.LogisticLoss()(pred, 2 * label - 1).asnumpy(), [1e4, 1e4])


def test_poisson_counts_of_zero_have_no_term():
    """MXNet gives NaN here."""
    loss = losses.PoissonNLLLoss(compute_full=True)
    assert loss(nd.zeros((2,)), nd.zeros((2,))).asscalar() == 1


def test_names():
    assert gluon.loss is losses
    assert losses.SigmoidBCELoss is losses.SigmoidBinaryCrossEntropyLoss
    assert losses.SoftmaxCELoss is losses.SoftmaxCrossEntropyLoss
    assert repr(losses.L2Loss()) == "L2Loss(batch_axis=0, w=1.0)"


def test_symbols():
    loss = losses.L1Loss()(mx.sym.var("data"), mx.sym.var("label"))
    assert loss.list_arguments() == ["label", "data"]
    (value,) = loss.eval(data=nd.array(PRED), label=nd.array(OTHER))
    np.testing.assert_allclose(value.asnumpy(), rows(DIFFERENCE), rtol=1e-5)


def test_a_loss_of_ones_own():
    class Quartic(losses.Loss):
        def hybrid_forward(self, F, pred, label, sample_weight=None):
            loss = losses._apply_weighting(F, (pred - losses._reshape_like(F, label, pred)) ** 4, self._weight, sample_weight)
            return F.mean(loss, axis=self._batch_axis, exclude=True)

    value, _ = step(Quartic(2, 0), [PRED, OTHER, SAMPLES])
    np.testing.assert_allclose(value, rows(DIFFERENCE**4, 2 * SAMPLES), rtol=1e-4)


SHAPES = r"pred has shape \(2, 3\), label has shape \(2, 4\)"


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize(
    ("loss", "shapes", "message"),
    [
        *(
            (losses.__dict__[name](), ((2, 3), (2, 4)), rf"^{name}: {SHAPES}: ")
            for name in ("L1Loss", "L2Loss", "HuberLoss", "SigmoidBinaryCrossEntropyLoss", "SoftmaxCrossEntropyLoss", "KLDivLoss",
                         "HingeLoss", "SquaredHingeLoss", "LogisticLoss", "CTCLoss")
        ),
        (losses.PoissonNLLLoss(), ((2, 3), (2, 4)), r"^PoissonNLLLoss: pred has shape \(2, 3\), target has shape \(2, 4\): "),
        (losses.TripletLoss(), ((2, 3), (2, 3), (2, 4)), r"^TripletLoss: pred .*, positive .*, negative has shape \(2, 4\): "),
        (losses.CosineEmbeddingLoss(), ((2, 3), (2, 4), (2,)), r"^CosineEmbeddingLoss: input1 .*, input2 has shape \(2, 4\), label"),
        (losses.L2Loss(), ((2, 3), (2, 3), (4,)), r"^L2Loss: .*, sample_weight has shape \(4,\): "),
        (losses.SoftmaxCrossEntropyLoss(), ((2, 3), (2, 3)),
         r"label has shape \(2, 3\); .* one-hot .*SoftmaxCrossEntropyLoss\(sparse_label=False\)"),
        (losses.SoftmaxCrossEntropyLoss(sparse_label=False), ((2, 3), (2,)), r"label has shape \(2,\); .*\(sparse_label=True\)"),
        (losses.SoftmaxCrossEntropyLoss(), ((2,), (2, 3)), r"; the prediction comes first: loss\(pred, label\): "),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit(loss, shapes, message, hybrid):
    loss.hybridize(hybrid)
    with pytest.raises(ShapeError, match=message):
        loss(*map(nd.ones, shapes))


def test_errors():
    with pytest.raises(AssertionError, match="weight of a loss must be a number"):
        losses.L1Loss(weight=nd.ones((1,)))(nd.ones((1,)), nd.ones((1,)))
    with pytest.raises(ArgumentError, match="label_format='both'"):
        losses.LogisticLoss(label_format="both")
    for layouts in (("NCT",), ("NTC", "NTC")):
        with pytest.raises((ValueError, AssertionError), match=r"CTCLoss: (label_)?layout=.*; choose"):
            losses.CTCLoss(*layouts)
    with pytest.raises(ShapeError, match="SDMLLoss: x1 has shape"):
        losses.SDMLLoss()(nd.ones((2, 3)), nd.ones((3, 3)))
    with pytest.raises(NotImplementedError, match="Loss must override hybrid_forward"):
        losses.Loss(None, 0)(nd.ones((1,)))
