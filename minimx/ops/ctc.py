"""Connectionist temporal classification: CTCLoss, for labels that come in the order of the data but without their times.

A network says at each of T steps how likely each class is; one class is the blank, "nothing new". A path, a class for each step, spells
the label that remains when repeated classes are merged and then blanks are removed: `a a - b b` and `- a b - -` both spell `ab`. The
loss is minus the logarithm of the probability of all paths that spell the label. There are exponentially many, but they meet in 2 L + 1
states: the label with a blank before, between and after its L classes. Sums over the paths into a state (alpha) and out of it (beta)
follow from those of its neighbours at the step before or after, so that one loop over time serves all states of all sequences at once.
Logarithms keep products of many probabilities from vanishing. Book: chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import MXNetError, OutOfRangeError, ShapeError
from ..op import NOT_GIVEN, Array, How, Op, Spec, T, also_called, apply, attributes, register
from ..rules import filled, require_ndim
from .checks import accurate, require_choice, require_float, require_input, require_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


@attributes
class Alignment(Op):
    """What CTCLoss and its gradient share: the attributes, and how labels become states."""

    use_data_lengths: bool = False
    use_label_lengths: bool = False
    blank_label: str = "first"

    def log_probabilities(self, xp: Any, data: Array) -> Array:
        """The logarithm of the softmax over classes."""
        wide = accurate(xp, data)
        shifted = wide - wide.max(axis=2, keepdims=True)
        return shifted - xp.log(xp.exp(shifted).sum(axis=2, keepdims=True))

    def steps(self, xp: Any, data: Array, data_lengths: Array | None) -> Array:
        """How many steps of each sequence count."""
        return _lengths(xp, "data_lengths", data_lengths, *data.shape[:2])

    def states(self, xp: Any, data: Array, label: Array, label_lengths: Array | None) -> tuple[Array, Array, Array]:
        """The class of each state (N, 2 L + 1), where a path may jump over the blank before it (N, 2 L - 1), and the labels' lengths.

        The jump is a term of a sum of logarithms: 0 where it is allowed, else minus infinity.
        """
        batch, longest = label.shape
        classes = data.shape[2]
        blank, padding = (0, 0) if self.blank_label == "first" else (classes - 1, -1)
        number = label.astype(np.int64)
        if self.use_label_lengths:
            length = _lengths(xp, "label_lengths", label_lengths, longest, batch)
        else:
            length = (number != padding).cumprod(axis=1).sum(axis=1)
        used = xp.arange(longest) < length[:, None]
        wrong = used & ((number < 0) | (number >= classes))
        if wrong.any():
            raise OutOfRangeError(
                f"CTCLoss: label has {int(number[wrong][0])}, which is no class; data has {classes}, of which {blank} is the blank, and "
                f"{padding} fills up labels that are shorter"
            )
        state = xp.full((batch, 2 * longest + 1), blank, np.int64)
        state[:, 1::2] = xp.where(used, number, blank)
        jump = xp.full((batch, max(2 * longest - 1, 0)), -np.inf, accurate(xp, data).dtype)
        classes_differ = (state[:, 3::2] != state[:, 1:-2:2]) & (state[:, 3::2] != blank)
        jump[:, 1::2][classes_differ] = 0
        return state, jump, length

    def possible(self, xp: Any, state: Array, length: Array, steps: Array) -> Array:
        """Which labels fit into the steps: equal neighbours need a blank between them."""
        second = xp.arange(1, max(state.shape[1] // 2, 1))
        repeated = (state[:, 3::2] == state[:, 1:-2:2]) & (second < length[:, None])
        return length + repeated.sum(axis=1) <= steps


def _lengths(xp: Any, what: str, lengths: Array | None, most: int, batch: int) -> Array:
    """Lengths as integers, `most` where none are given. Raises OutOfRangeError for an impossible one."""
    if lengths is None:
        return xp.full(batch, most, np.int64)
    number = lengths.astype(np.int64)
    wrong = (number < 0) | (number > most)
    if wrong.any():
        raise OutOfRangeError(f"CTCLoss: {what} has {int(number[wrong][0])}; 0 to {most} are possible")
    return number


@register("CTCLoss", "ctc_loss", "_contrib_CTCLoss", "_contrib_ctc_loss")
class TemporalClassificationLoss(Alignment):
    """Besides the loss it keeps alpha, from which the gradient goes on."""

    inputs: ClassVar = ("data", "label", "data_lengths?", "label_lengths?")

    @property
    def num_outputs(self) -> int:
        return 2

    @property
    def num_visible(self) -> int:
        return 1

    def wants(self, name: str) -> bool:
        return (name == "data_lengths" and self.use_data_lengths) or (name == "label_lengths" and self.use_label_lengths)

    def fill(
        self, data: Spec | None, label: Spec | None, data_lengths: Spec | None = None, label_lengths: Spec | None = None
    ) -> tuple[Spec | None, ...]:
        if data is None or data.ndim != 3:
            return data, label, data_lengths, label_lengths
        batch = (data.shape[1],)
        if label is not None and label.ndim == 2:
            label = filled(label, (data.shape[1], label.shape[1]), label)
        return (
            data,
            label,
            filled(data_lengths, batch, data) if self.use_data_lengths else data_lengths,
            filled(label_lengths, batch, label or data) if self.use_label_lengths else label_lengths,
        )

    def infer(
        self, data: Spec, label: Spec, data_lengths: Spec | None = None, label_lengths: Spec | None = None
    ) -> tuple[Spec, ...]:
        require_choice(self, "blank_label", self.blank_label, "first", "last")
        require_float(self, data)
        require_ndim(self, "data", data, 3, axes=("steps", "batch", "classes"))
        require_ndim(self, "label", label, 2, axes=("batch", "labels"))
        steps, batch, classes = data.shape
        require_shape(self, "label", label, (batch, label.shape[1]), f"data {data.shape} of {batch} sequences")
        for what, spec in (("data_lengths", data_lengths), ("label_lengths", label_lengths)):
            require_input(self, what, spec, self.wants(what), f"it goes together with use_{what}=True")
            if spec is not None:
                require_shape(self, what, spec, (batch,), f"data {data.shape} of {batch} sequences")
        if label.shape[1] > steps:
            raise ShapeError(
                f"CTCLoss: label has {label.shape[1]} classes a sequence, data has {steps} steps; there must be as many"
            )
        if not classes:
            raise ShapeError(f"CTCLoss: data has shape {data.shape}, in which there is not even a class for the blank")
        exact = np.promote_types(data.dtype, np.float32)
        return data.with_shape((batch,)), Spec.of((steps, batch, 2 * label.shape[1] + 1), exact)

    def kernel(
        self, xp: Any, data: Array, label: Array, data_lengths: Array | None = None, label_lengths: Array | None = None
    ) -> tuple[Array, ...]:
        steps = self.steps(xp, data, data_lengths)
        state, jump, length = self.states(xp, data, label, label_lengths)
        alpha = xp.full((len(data), *state.shape), -np.inf, jump.dtype)
        if not data.size:
            return xp.zeros(len(label), data.dtype), alpha
        of_state = xp.take_along_axis(self.log_probabilities(xp, data), state[None], axis=2)
        alpha[0, :, :2] = of_state[0, :, :2]  # a path begins with a blank or with the first class
        for before, now, emitted in zip(alpha, alpha[1:], of_state[1:]):
            now[:, 0] = before[:, 0]
            xp.logaddexp(before[:, 1:], before[:, :-1], out=now[:, 1:])
            xp.logaddexp(now[:, 2:], before[:, :-2] + jump, out=now[:, 2:])
            now += emitted
        # ... and ends with a blank or with the last class.
        everyone = xp.arange(len(label))
        final = alpha[steps - 1, everyone, 2 * length]
        last = alpha[steps - 1, everyone, xp.maximum(2 * length - 1, 0)]
        total = xp.where(length > 0, xp.logaddexp(final, last), final)
        loss = xp.where(self.possible(xp, state, length, steps) & (steps > 0), 0 - total, 0)
        return loss.astype(data.dtype), alpha

    def vjp(self, g: Any, y: Any, data: Any, label: Any, data_lengths: Any = None, label_lengths: Any = None) -> tuple[Any, ...]:
        backward = TemporalClassificationGradient(self.use_data_lengths, self.use_label_lengths, self.blank_label)
        return apply(backward, g[0], *y, data, label, data_lengths, label_lengths), None, None, None


@register("_backward_ctc_loss")
class TemporalClassificationGradient(Alignment):
    """Probabilities of the classes as the network sees them, minus those among the paths that spell the label."""

    inputs: ClassVar = ("head", "loss", "alpha", "data", "label", "data_lengths?", "label_lengths?")

    def infer(self, head: Spec, loss: Spec, alpha: Spec, data: Spec, *others: Spec | None) -> Spec:
        return data

    def kernel(
        self,
        xp: Any,
        head: Array,
        loss: Array,
        alpha: Array,
        data: Array,
        label: Array,
        data_lengths: Array | None = None,
        label_lengths: Array | None = None,
    ) -> Array:
        if not data.size:
            return xp.zeros_like(data)
        steps = self.steps(xp, data, data_lengths)
        state, jump, length = self.states(xp, data, label, label_lengths)
        logarithm = self.log_probabilities(xp, data)
        of_state = xp.take_along_axis(logarithm, state[None], axis=2)
        number = xp.arange(state.shape[1])
        ends = (number == 2 * length[:, None]) | (number == 2 * length[:, None] - 1)
        at_end = xp.where(ends, 0, -np.inf).astype(jump.dtype)
        beta, through = at_end, xp.empty_like(alpha)
        for step in reversed(range(len(data))):
            if step + 1 < len(data):
                after = beta + of_state[step + 1]
                beta = after.copy()
                xp.logaddexp(after[:, :-1], after[:, 1:], out=beta[:, :-1])
                xp.logaddexp(beta[:, :-2], after[:, 2:] + jump, out=beta[:, :-2])
                beta = xp.where((step + 1 < steps)[:, None], beta, at_end)
            xp.add(alpha[step], beta, out=through[step])  # all paths that pass through a state
        most = xp.maximum(through.max(axis=2, keepdims=True), np.finfo(through.dtype).min)  # finite, where there is no path, too
        # Minus the loss, unrounded: the same at all steps
        total = xp.log(xp.exp(through - most).sum(axis=2, keepdims=True)) + most
        counted = (xp.arange(len(data))[:, None] < steps) & self.possible(xp, state, length, steps)
        share = xp.where(counted[:, :, None] & (total > -np.inf), xp.exp(through - total), 0)
        gradient = xp.exp(logarithm) - self._of_classes(xp, share, state, data.shape)
        gradient *= head.astype(gradient.dtype, copy=False)[None, :, None]
        return xp.where(counted[:, :, None], gradient, 0).astype(data.dtype, copy=False)

    def _of_classes(self, xp: Any, share: Array, state: Array, shape: tuple[int, ...]) -> Array:
        """The sums of the `share` of all states that are of one class, in the `shape` of the data."""
        steps, batch, classes = shape
        row = xp.arange(steps * batch).reshape(steps, batch, 1) * classes
        labels = (row + state[:, 1::2]).ravel()
        result = xp.bincount(labels, share[:, :, 1::2].ravel(), steps * batch * classes).astype(share.dtype).reshape(shape)
        result[:, :, 0 if self.blank_label == "first" else classes - 1] += share[:, :, ::2].sum(axis=2)
        return result

    def vjp(self, *tensors: Any) -> tuple[Any, ...]:
        raise MXNetError("CTCLoss has a first derivative only; its gradient cannot be differentiated again")


def CTCLoss(
    data: T | None = NOT_GIVEN,
    label: T | None = None,
    data_lengths: T | None = None,
    label_lengths: T | None = None,
    use_data_lengths: bool = False,
    use_label_lengths: bool = False,
    blank_label: str = "first",
    **how: Unpack[How],
) -> T:
    """Minus the logarithm of the probability that the classes of `data`, softmax of which is taken here, spell `label`.

    A class may last several steps and blanks may stand between classes; see the head of this file.

    **Shapes** data (T, N, C), label (N, L) with L at most T, result (N,) of data's dtype; data_lengths and label_lengths (N,). **Args**
    `blank_label`: "first", class 0 is the blank and 0 fills up short labels; "last", class C - 1 is the blank and -1 fills up;
    `use_data_lengths`, `use_label_lengths`: lengths are given, so that the later steps or classes do not count. **Raises** OutOfRangeError
    for a class or a length that there cannot be (when the result is read). **Gradient** softmax minus the probabilities of the classes
    among the paths that spell the label, first derivative only. As in MXNet a label that is too long for its steps has a loss of 0 and no
    gradient, and a blank in a label is a step like a class. **Source** MXNet `CTCLoss`, which takes float32 only and checks neither
    classes nor lengths; Graves et al., 2006.
    """
    return apply(
        TemporalClassificationLoss(use_data_lengths, use_label_lengths, blank_label),
        data,
        label,
        data_lengths,
        label_lengths,
        **how,
    )


ctc_loss = also_called("ctc_loss", CTCLoss)

__all__ = ["CTCLoss", "ctc_loss"]
