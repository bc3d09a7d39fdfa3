"""Batches of sequences of different lengths: SequenceMask, SequenceLast, SequenceReverse.

`data` has a time axis (0, or 1 where allowed), a batch axis (the other of the two), and any others. `sequence_length` says how
many steps of each sequence count; without `use_sequence_length` all do. All three are linear in `data`, so their gradients are
of their own kind. Book: chapter 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, OutOfRangeError, ShapeError
from ..op import Array, How, Op, Spec, T, apply, register
from .indexing import check_scalar

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Sequence(Op):
    """What the operators on sequences share: the arguments' checks, and lengths as integers."""

    inputs: ClassVar[tuple[str, ...]] = ("data", "sequence_length?")
    saves_outputs: ClassVar[bool] = False
    axes: ClassVar[tuple[int, ...]] = (0, 1)  # where time may be

    axis: int
    use_sequence_length: bool

    def wants(self, name: str) -> bool:
        return name == "sequence_length" and self.use_sequence_length

    def fill(self, data: Spec | None, sequence_length: Spec | None = None) -> tuple[Spec | None, ...]:
        if self.use_sequence_length and sequence_length is None and data is not None:
            sequence_length = Spec.of(data.shape[1 - self.axis : 2 - self.axis], np.float32)
        return data, sequence_length

    def check(self, data: Spec, sequence_length: Spec | None) -> None:
        """Raise ArgumentError or ShapeError unless the inputs fit the attributes."""
        if self.axis not in self.axes:
            raise ArgumentError(f"{self.name}: axis is {self.axis}; time must be axis {' or '.join(map(str, self.axes))}")
        if data.ndim < 2:
            raise ShapeError(f"{self.name}: data has shape {data.shape}; at least 2 dimensions, time and batch, are needed")
        if self.use_sequence_length != (sequence_length is not None):
            advice = "pass the lengths" if self.use_sequence_length else "pass use_sequence_length=True with them"
            state = "is missing" if self.use_sequence_length else "is given but not used"
            raise ArgumentError(f"{self.name}: sequence_length {state}; {advice}")
        batch = data.shape[1 - self.axis]
        if sequence_length is not None and sequence_length.shape != (batch,):
            raise ShapeError(f"{self.name}: sequence_length has shape {sequence_length.shape}; ({batch},), the batch, is needed")

    def time_and_batch(self, xp: Any, ndim: int, steps: int, lengths: Array) -> tuple[Array, Array]:
        """The numbers of the steps and the integer lengths, shaped to broadcast against data of `ndim` dimensions."""
        time, batch = [1] * ndim, [1] * ndim
        time[self.axis], batch[1 - self.axis] = steps, lengths.size
        return xp.arange(steps).reshape(time), lengths.astype(np.intp, copy=False).reshape(batch)


@register("SequenceMask")
class MaskSequence(Sequence):
    use_sequence_length: bool = False
    value: float = 0.0
    axis: int = 0

    def infer(self, data: Spec, sequence_length: Spec | None = None) -> Spec:
        self.check(data, sequence_length)
        check_scalar(self, "value", self.value, data.dtype)
        return data

    def kernel(self, xp: Any, data: Array, sequence_length: Array | None = None) -> Array:
        if sequence_length is None:
            return data.copy()
        step, length = self.time_and_batch(xp, data.ndim, data.shape[self.axis], sequence_length)
        return xp.where(step < length, data, data.dtype.type(self.value))

    def vjp(self, g: Any, y: Any, data: Any, sequence_length: Any = None) -> tuple[Any, ...]:
        return SequenceMask(g, sequence_length, self.use_sequence_length, axis=self.axis), None


def SequenceMask(
    data: T,
    sequence_length: T | None = None,
    use_sequence_length: bool = False,
    value: float = 0.0,
    axis: int = 0,
    **how: Unpack[How],
) -> T:
    """`data`, with `value` in place of the steps past the end of each sequence.

    **Shapes** data and result (T, N, ...), or (N, T, ...) with `axis=1`; sequence_length (N,).
    **Gradient** `g` with zeros past the end. **Source** MXNet `SequenceMask`.
    """
    return apply(MaskSequence(use_sequence_length, value, axis), data, sequence_length, **how)


@register("SequenceReverse")
class ReverseSequence(Sequence):
    use_sequence_length: bool = False
    axis: int = 0

    axes: ClassVar[tuple[int, ...]] = (0,)

    def infer(self, data: Spec, sequence_length: Spec | None = None) -> Spec:
        self.check(data, sequence_length)
        return data

    def kernel(self, xp: Any, data: Array, sequence_length: Array | None = None) -> Array:
        if sequence_length is None:
            return data[::-1].copy()
        steps, batch = data.shape[:2]
        step, length = self.time_and_batch(xp, 2, steps, xp.clip(sequence_length, 0, steps))
        return data[xp.where(step < length, length - 1 - step, step), xp.arange(batch)]

    def vjp(self, g: Any, y: Any, data: Any, sequence_length: Any = None) -> tuple[Any, ...]:
        return SequenceReverse(g, sequence_length, self.use_sequence_length), None


def SequenceReverse(
    data: T, sequence_length: T | None = None, use_sequence_length: bool = False, axis: int = 0, **how: Unpack[How]
) -> T:
    """`data` with the first `sequence_length[n]` steps of sequence n in reverse order; the steps past its end stay.

    **Shapes** data and result (T, N, ...), sequence_length (N,). **Gradient** the same reversal of `g`.
    **Source** MXNet `SequenceReverse`.
    """
    return apply(ReverseSequence(use_sequence_length, axis), data, sequence_length, **how)


@register("SequenceLast")
class LastOfSequence(Sequence):
    use_sequence_length: bool = False
    axis: int = 0

    def infer(self, data: Spec, sequence_length: Spec | None = None) -> Spec:
        self.check(data, sequence_length)
        return data.with_shape(data.shape[1 - self.axis : 2 - self.axis] + data.shape[2:])

    def kernel(self, xp: Any, data: Array, sequence_length: Array | None = None) -> Array:
        place = last_step(xp, self, data.shape[self.axis], self.axis, data.shape[1 - self.axis], sequence_length)
        return data[place].copy()

    def vjp(self, g: Any, y: Any, data: Any, sequence_length: Any = None) -> tuple[Any, ...]:
        adjoint = LastOfSequenceAdjoint(self.use_sequence_length, self.axis, data.shape[self.axis])
        return apply(adjoint, g, sequence_length), None


@register("_backward_SequenceLast")
class LastOfSequenceAdjoint(Op):
    """Zeros of `steps` steps, with `grad` in the last step of each sequence."""

    use_sequence_length: bool
    axis: int
    steps: int

    inputs: ClassVar[tuple[str, ...]] = ("grad", "sequence_length?")
    saves_outputs: ClassVar[bool] = False

    def infer(self, grad: Spec, sequence_length: Spec | None = None) -> Spec:
        return grad.with_shape((*grad.shape[: self.axis], self.steps, *grad.shape[self.axis :]))

    def kernel(self, xp: Any, grad: Array, sequence_length: Array | None = None) -> Array:
        result = xp.zeros((*grad.shape[: self.axis], self.steps, *grad.shape[self.axis :]), grad.dtype)
        result[last_step(xp, self, self.steps, self.axis, len(grad), sequence_length)] = grad
        return result

    def vjp(self, g: Any, y: Any, grad: Any, sequence_length: Any = None) -> tuple[Any, ...]:
        return SequenceLast(g, sequence_length, self.use_sequence_length, self.axis), None


def last_step(xp: Any, op: Op, steps: int, axis: int, batch: int, lengths: Array | None) -> tuple[Any, ...]:
    """The index of the last step of each sequence, into an array whose time is `axis`."""
    if lengths is None:
        return (slice(None),) * axis + (steps - 1,)
    last = lengths.astype(np.intp, copy=False) - 1
    low, high = (int(last.min()), int(last.max())) if last.size else (0, 0)
    if low < 0 or high >= steps:
        wrong = low + 1 if low < 0 else high + 1
        raise OutOfRangeError(f"{op.name}: sequence_length has {wrong}; with {steps} steps, 1 to {steps} can be a length")
    return (last, xp.arange(batch)) if axis == 0 else (xp.arange(batch), last)


def SequenceLast(
    data: T, sequence_length: T | None = None, use_sequence_length: bool = False, axis: int = 0, **how: Unpack[How]
) -> T:
    """The last step of each sequence: `result[n] = data[sequence_length[n] - 1, n]`.

    **Shapes** data (T, N, ...), or (N, T, ...) with `axis=1`; sequence_length (N,), result (N, ...).
    **Raises** OutOfRangeError when the value is read, for a length outside [1, T]. **Gradient** zeros with `g` in the last steps.
    **Source** MXNet `SequenceLast`.
    """
    return apply(LastOfSequence(use_sequence_length, axis), data, sequence_length, **how)
