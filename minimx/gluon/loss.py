"""`gluon.loss`: how far predictions are from what they should be, as blocks that give one number for each sample.

Each is called with predictions and labels, and most with `sample_weight`, factors that must broadcast to the predictions. A label may
have another shape than its prediction if it has as many elements. The result has shape (batch,): all axes but `batch_axis` are averaged
(or summed, where the formula says so), and `weight` is a factor for all. Trainer's `step(batch_size)` divides by the size of the batch,
so nothing is averaged over samples here. Book: chapter 4.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import nd
from ..base import ArgumentError, ShapeError
from ..op import Shape
from .block import HybridBlock

__all__ = [
    "CTCLoss", "CosineEmbeddingLoss", "HingeLoss", "HuberLoss", "KLDivLoss", "L1Loss", "L2Loss", "LogisticLoss", "Loss", "PoissonNLLLoss",
    "SDMLLoss", "SigmoidBCELoss", "SigmoidBinaryCrossEntropyLoss", "SoftmaxCELoss", "SoftmaxCrossEntropyLoss", "SquaredHingeLoss",
    "TripletLoss",
]  # fmt: skip


def _apply_weighting(F: Any, loss: Any, weight: float | None = None, sample_weight: Any = None) -> Any:
    """`loss` times `sample_weight`, which broadcasts to it, times the number `weight`. (Losses outside this package use it too.)"""
    if sample_weight is not None:
        loss = F.broadcast_mul(loss, sample_weight)
    if weight is not None:
        if not isinstance(weight, (int, float, np.generic)):
            raise LossWeightError(f"weight of a loss must be a number, got {weight!r}; give factors for samples as sample_weight")
        loss = loss * weight
    return loss


def _reshape_like(F: Any, x: Any, y: Any) -> Any:
    """`x` in the shape of `y`, which has as many elements."""
    return F.reshape_like(x, y)


class LossWeightError(ArgumentError, AssertionError):
    """A factor of a loss that is no number. (MXNet asserts: hence the second base.)"""


class LossLayoutError(ArgumentError, AssertionError):
    """An order of axes that a loss does not know. (MXNet asserts.)"""


class Loss(HybridBlock):
    """The base of all losses. A subclass overrides `hybrid_forward(F, pred, label, ...)`.

    **Args** `weight`: a factor for the whole loss, None for none; `batch_axis`: the axis along which samples lie. **Source** MXNet
    `gluon.loss.Loss`.
    """

    def __init__(self, weight: float | None, batch_axis: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._weight = weight
        self._batch_axis = batch_axis

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch_axis={self._batch_axis}, w={self._weight})"

    def __call__(self, *args: Any) -> Any:
        """The loss of each sample. **Raises** ValueError for shapes that do not fit, which names the arguments."""
        try:
            return super().__call__(*args)
        except ShapeError as error:
            names = list(inspect.signature(self.hybrid_forward).parameters)[1:]
            given = {name: each.shape for name, each in zip(names, args) if isinstance(each, nd.NDArray)}
            shapes = ", ".join(f"{name} has shape {shape}" for name, shape in given.items())
            raise type(error)(f"{type(self).__name__}: {shapes}{self._advice(given)}: {error}" if given else str(error)) from None

    def _advice(self, shapes: Mapping[str, Shape]) -> str:
        """What to do about arguments of these shapes, which do not fit, as a part of a message."""
        return ""

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """The loss of each sample."""
        raise NotImplementedError(f"{type(self).__name__} must override hybrid_forward")

    def _averaged(self, F: Any, loss: Any, sample_weight: Any, weight: float | None) -> Any:
        """The weighted loss of elements as the mean for each sample."""
        return F.mean(_apply_weighting(F, loss, weight, sample_weight), axis=self._batch_axis, exclude=True)


# ---- numbers


class L2Loss(Loss):
    """Half the mean squared difference: `weight / 2 mean((label - pred) ** 2)`.

    **Shapes** pred (N, ...), label as many elements, result (N,). **Source** MXNet `gluon.loss.L2Loss`.

    >>> from minimx import gluon
    >>> gluon.loss.L2Loss()(mx.nd.array([1, 2]), mx.nd.array([1, 5])).asnumpy().tolist()
    [0.0, 4.5]
    """

    def __init__(self, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        loss = F.square(_reshape_like(F, label, pred) - pred)
        return self._averaged(F, loss, sample_weight, 0.5 if self._weight is None else self._weight / 2)


class L1Loss(Loss):
    """The mean absolute difference: `mean(|label - pred|)`.

    **Shapes** pred (N, ...), label as many elements, result (N,). **Source** MXNet `gluon.loss.L1Loss`.
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        return self._averaged(F, F.abs(_reshape_like(F, label, pred) - pred), sample_weight, self._weight)


class HuberLoss(Loss):
    """Squares for small differences, absolute values for large ones: `d ** 2 / (2 rho)` where `d = |label - pred|` is at most
    `rho`, else `d - rho / 2`; the mean.

    **Shapes** pred (N, ...), label as many elements, result (N,). **Source** MXNet `gluon.loss.HuberLoss`.
    """

    def __init__(self, rho: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._rho = rho

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        apart = F.abs(_reshape_like(F, label, pred) - pred)
        loss = F.where(apart > self._rho, apart - 0.5 * self._rho, (0.5 / self._rho) * F.square(apart))
        return self._averaged(F, loss, sample_weight, self._weight)


class PoissonNLLLoss(Loss):
    """Minus the logarithm of the probability of the count `target` under Poisson's distribution, without the term `log(target!)`:
    `exp(pred) - target pred` if `pred` is the logarithm of the rate, else `pred - target log(pred + epsilon)`.

    **Shapes** pred (N, ...), target as many elements, result (1,): the mean over everything, samples too. **Args** `from_logits`: `pred`
    is a logarithm; `compute_full`: add Stirling's approximation of `log(target!)`, `t log(t) - t + log(2 pi t) / 2`, where t > 1.
    **Source** MXNet `gluon.loss.PoissonNLLLoss`, which gives NaN for `compute_full` and a target of 0; here that term is 0.
    """

    def __init__(
        self,
        weight: float | None = None,
        from_logits: bool = True,
        batch_axis: int = 0,
        compute_full: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._compute_full = compute_full

    def hybrid_forward(self, F: Any, pred: Any, target: Any, sample_weight: Any = None, epsilon: float = 1e-08) -> Any:
        target = _reshape_like(F, target, pred)
        loss = F.exp(pred) - target * pred if self._from_logits else pred - target * F.log(pred + epsilon)
        if self._compute_full:
            logarithm = F.log(F.maximum(target, 1.0))  # where the target is less than 1, the whole term is 0
            stirling = target * logarithm - target + 0.5 * (logarithm + math.log(2 * math.pi))
            loss = loss + stirling * (target > 1)
        return F.mean(_apply_weighting(F, loss, self._weight, sample_weight))


# ---- classes and probabilities


def _log_odds_loss(F: Any, pred: Any, label: Any) -> Any:
    """`-label log(p) - (1 - label) log(1 - p)` for `p = sigmoid(pred)`, in a form that never overflows."""
    return F.relu(pred) - pred * label + F.Activation(-F.abs(pred), act_type="softrelu")


class SigmoidBinaryCrossEntropyLoss(Loss):
    """The cross-entropy of two classes: `-mean(pos_weight label log(p) + (1 - label) log(1 - p))`, with `p = sigmoid(pred)`.

    **Shapes** pred (N, ...), label as many elements with values in [0, 1], pos_weight broadcasts to pred, result (N,). **Args**
    `from_sigmoid`: `pred` is p itself; less exact. **Source** MXNet `gluon.loss.SigmoidBinaryCrossEntropyLoss`, short SigmoidBCELoss.
    """

    def __init__(self, from_sigmoid: bool = False, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_sigmoid = from_sigmoid

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None, pos_weight: Any = None) -> Any:
        label = _reshape_like(F, label, pred)
        if self._from_sigmoid:
            tiny = 1e-12
            hit = F.log(pred + tiny) * label
            if pos_weight is not None:
                hit = F.broadcast_mul(hit, pos_weight)
            loss = -(hit + F.log(1.0 - pred + tiny) * (1.0 - label))
        elif pos_weight is None:
            loss = _log_odds_loss(F, pred, label)
        else:
            factor = 1 + F.broadcast_mul(label, pos_weight - 1)
            loss = pred - pred * label + factor * (F.Activation(-F.abs(pred), act_type="softrelu") + F.relu(-pred))
        return self._averaged(F, loss, sample_weight, self._weight)


class SoftmaxCrossEntropyLoss(Loss):
    """The cross-entropy of several classes: `-log(p[label])`, or `-sum(label log(p))`, with `p = softmax(pred)` along `axis`.

    **Shapes** pred (N, ..., C) with C along `axis`; label (N, ...) without that axis holds numbers of classes, or, with
    `sparse_label=False`, has the shape of pred and holds probabilities; result (N,). **Args** `from_logits`: `pred` is `log(p)`.
    `sample_weight` broadcasts to pred with C = 1. **Source** MXNet `gluon.loss.SoftmaxCrossEntropyLoss`, short SoftmaxCELoss.

    >>> from minimx import gluon
    >>> gluon.loss.SoftmaxCrossEntropyLoss()(mx.nd.array([[0, 0], [0, 9]]), mx.nd.array([0, 1])).asnumpy().round(3).tolist()
    [0.6930000185966492, 0.0]
    """

    def __init__(
        self, axis: int = -1, sparse_label: bool = True, from_logits: bool = False, weight: float | None = None,
        batch_axis: int = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(weight, batch_axis, **kwargs)
        self._axis = axis
        self._sparse_label = sparse_label
        self._from_logits = from_logits

    def _advice(self, shapes: Mapping[str, Shape]) -> str:
        pred, label = shapes.get("pred", ()), shapes.get("label", ())
        name = type(self).__name__
        if self._sparse_label and label and label == pred:
            return f"; a label in the shape of pred, such as a one-hot one, wants {name}(sparse_label=False)"
        if not self._sparse_label and len(label) < len(pred):
            return f"; a label that holds numbers of classes wants {name}(sparse_label=True)"
        if len(label) > len(pred):
            return "; the prediction comes first: loss(pred, label)"
        return ""

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        logarithm = pred if self._from_logits else F.log_softmax(pred, axis=self._axis)
        if self._sparse_label:
            loss = -F.pick(logarithm, label, axis=self._axis, keepdims=True)
        else:
            loss = -F.sum(logarithm * _reshape_like(F, label, logarithm), axis=self._axis, keepdims=True)
        return self._averaged(F, loss, sample_weight, self._weight)


SigmoidBCELoss = SigmoidBinaryCrossEntropyLoss
SoftmaxCELoss = SoftmaxCrossEntropyLoss


class KLDivLoss(Loss):
    """The divergence of Kullback and Leibler: the sum of `label (log(label) - pred)`, `pred` being logarithms of probabilities.

    **Shapes** pred, label (N, ...), result (N,). **Args** `from_logits`: False makes logarithms of probabilities from `pred`, with
    log_softmax along `axis`. **Source** MXNet `gluon.loss.KLDivLoss`.
    """

    def __init__(
        self, from_logits: bool = True, axis: int = -1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._from_logits = from_logits
        self._axis = axis

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        if not self._from_logits:
            pred = F.log_softmax(pred, axis=self._axis)
        loss = _apply_weighting(F, label * (F.log(label + 1e-12) - pred), self._weight, sample_weight)
        return F.sum(loss, axis=self._batch_axis, exclude=True)


# ---- two classes, labels of -1 and 1


class HingeLoss(Loss):
    """`mean(max(0, margin - pred label))`, labels being -1 or 1.

    **Shapes** pred (N, ...), label as many elements, result (N,). **Source** MXNet `gluon.loss.HingeLoss`.
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        missing = F.relu(self._margin - pred * _reshape_like(F, label, pred))
        return self._averaged(F, missing, sample_weight, self._weight)


class SquaredHingeLoss(Loss):
    """`mean(max(0, margin - pred label) ** 2)`, labels being -1 or 1.

    **Shapes** pred (N, ...), label as many elements, result (N,). **Source** MXNet `gluon.loss.SquaredHingeLoss`.
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        missing = F.relu(self._margin - pred * _reshape_like(F, label, pred))
        return self._averaged(F, F.square(missing), sample_weight, self._weight)


class LogisticLoss(Loss):
    """`mean(log(1 + exp(-pred label)))`, labels being -1 or 1.

    **Shapes** pred (N, ...), label as many elements, result (N,). **Args** `label_format`: "signed", or "binary" for labels of 0 and 1.
    **Raises** ValueError for another format. **Source** MXNet `gluon.loss.LogisticLoss`.
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, label_format: str = "signed", **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        if label_format not in ("signed", "binary"):
            raise ArgumentError(f"LogisticLoss: label_format={label_format!r}; choose 'signed' (-1, 1) or 'binary' (0, 1)")
        self._label_format = label_format

    def hybrid_forward(self, F: Any, pred: Any, label: Any, sample_weight: Any = None) -> Any:
        label = _reshape_like(F, label, pred)
        if self._label_format == "signed":
            label = (label + 1.0) / 2.0
        return self._averaged(F, _log_odds_loss(F, pred, label), sample_weight, self._weight)


# ---- sequences


class CTCLoss(Loss):
    """For classes that come in the order of the steps, but without their times: minus the logarithm of the probability of all ways in which
    the steps can spell the label (`nd.CTCLoss`). The last class is the blank; -1 fills up labels that are shorter.

    **Shapes** pred (N, T, C), label (N, L), result (N,); pred_lengths and label_lengths, if not all steps or classes count, (N,). **Args**
    `layout`: of pred, "NTC" or "TNC"; `label_layout`: "NT" or "TN". **Raises** ValueError for other layouts. **Source** MXNet
    `gluon.loss.CTCLoss`.
    """

    def __init__(self, layout: str = "NTC", label_layout: str = "NT", weight: float | None = None, **kwargs: Any) -> None:
        for what, value, known in (("layout", layout, ("NTC", "TNC")), ("label_layout", label_layout, ("NT", "TN"))):
            if value not in known:
                raise LossLayoutError(f"CTCLoss: {what}={value!r}; choose {known[0]!r} or {known[1]!r}")
        super().__init__(weight, label_layout.find("N"), **kwargs)
        self._layout = layout
        self._label_layout = label_layout

    def hybrid_forward(
        self, F: Any, pred: Any, label: Any, pred_lengths: Any = None, label_lengths: Any = None, sample_weight: Any = None
    ) -> Any:
        if self._layout == "NTC":
            pred = F.swapaxes(pred, 0, 1)
        if self._label_layout == "TN":
            label = F.swapaxes(label, 0, 1)
        loss = F.CTCLoss(
            pred, label, pred_lengths, label_lengths, use_data_lengths=pred_lengths is not None,
            use_label_lengths=label_lengths is not None, blank_label="last",
        )  # fmt: skip
        return _apply_weighting(F, loss, self._weight, sample_weight)


# ---- samples compared with each other


class TripletLoss(Loss):
    """`max(0, |positive - pred| ** 2 - |negative - pred| ** 2 + margin)`: predictions shall be nearer to the positive than to the
    negative sample.

    **Shapes** pred (N, ...), positive and negative as many elements, result (N,). **Source** MXNet `gluon.loss.TripletLoss`.
    """

    def __init__(self, margin: float = 1, weight: float | None = None, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, pred: Any, positive: Any, negative: Any) -> Any:
        nearer = F.square(_reshape_like(F, positive, pred) - pred) - F.square(_reshape_like(F, negative, pred) - pred)
        loss = F.relu(F.sum(nearer, axis=self._batch_axis, exclude=True) + self._margin)
        return _apply_weighting(F, loss, self._weight)


class CosineEmbeddingLoss(Loss):
    """`1 - cos` where the label is 1, `max(0, cos - margin)` where it is -1; cos is that of the angle between two vectors.

    **Shapes** input1 and input2 (N, D), label (N,), result (N, 1). **Source** MXNet `gluon.loss.CosineEmbeddingLoss`.
    """

    def __init__(self, weight: float | None = None, batch_axis: int = 0, margin: float = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self._margin = margin

    def hybrid_forward(self, F: Any, input1: Any, input2: Any, label: Any, sample_weight: Any = None) -> Any:
        input1 = _reshape_like(F, input1, input2)
        label = F.reshape(label, shape=(-1, 1))
        lengths = F.norm(input1, axis=-1) * F.norm(input2, axis=-1)
        cosine = F.reshape(F.sum(input1 * input2, axis=-1) / F.maximum(lengths, 1e-12), shape=(-1, 1))
        loss = (1 - cosine) * (label == 1) + F.relu((label == -1) * (cosine - self._margin))
        return _apply_weighting(F, loss, self._weight, sample_weight)


class SDMLLoss(Loss):
    """Smoothed deep metric learning: row i of `x1` belongs to row i of `x2`, all other rows of the batch are wrong answers. The
    divergence (KLDivLoss) from smoothed labels to the softmax of minus the squared distances.

    **Shapes** x1, x2 (N, D), result (N,). **Args** `smoothing_parameter`: what of a label is spread over the wrong answers. **Source**
    MXNet `gluon.loss.SDMLLoss`, which ignores `weight`; Bonadiman et al., 2019.
    """

    def __init__(self, smoothing_parameter: float = 0.3, weight: float | None = 1.0, batch_axis: int = 0, **kwargs: Any) -> None:
        super().__init__(weight, batch_axis, **kwargs)
        self.kl_loss = KLDivLoss(from_logits=True)
        self.smoothing_parameter = smoothing_parameter

    def hybrid_forward(self, F: Any, x1: Any, x2: Any) -> Any:
        if F is nd and (x1.shape != x2.shape or len(x1.shape) != 2):
            raise ShapeError(f"SDMLLoss: x1 has shape {x1.shape}, x2 {x2.shape}; they must be equal, (N, D)")
        apart = F.square(F.broadcast_sub(F.expand_dims(x1, axis=1), F.expand_dims(x2, axis=0)))
        logarithm = F.log_softmax(-F.sum(apart, axis=2), axis=1)
        right = F.diag(F.diag(F.ones_like(logarithm)))
        wrong = F.broadcast_div(1 - right, F.maximum(F.sum(1 - right, axis=1, keepdims=True), 1.0))
        labels = right * (1 - self.smoothing_parameter) + wrong * self.smoothing_parameter
        return _apply_weighting(F, self.kl_loss(logarithm, labels), self._weight)
