"""hawkesll: how likely the times of events are, if each makes more of its kind likely for a while (a Hawkes process).

There are K kinds of events, *marks*. The intensity of mark k is `lda[k] + alpha[k] beta[k] state[k]`, where the state sums up past events:
each adds 1 to that of its mark, and all decay with the rate `beta[k]`. The logarithm of the likelihood is the sum, over events, of the
logarithm of their intensity, less the *compensator*, the integral of all intensities over the time observed. An event changes its mark
only, so a step goes through one event of each sequence, and all sequences go together. Bacry et al., 2015.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import DTypeError
from ..op import Array, How, Op, Spec, T, apply, register
from ..rules import require_ndim, same_dtype
from .checks import accurate, require_float, require_shape
from .indexing import resolve

if TYPE_CHECKING:
    from typing_extensions import Unpack

INPUTS = ("lda", "alpha", "beta", "state", "lags", "marks", "valid_length", "max_time")


class History:
    """The sequences up to a step, with the derivatives by beta on demand: what likelihood and gradient are computed from."""

    def __init__(self, xp: Any, op: Op, *inputs: Array) -> None:
        self.xp = xp
        self.lda, self.alpha, self.beta, state, self.lags, marks, self.valid_length, self.max_time = (
            accurate(xp, each) for each in inputs
        )
        self.state = state.copy()
        self.slope = xp.zeros_like(self.state)  # the derivative of the state by beta
        self.last = xp.zeros_like(self.state)  # when each mark was last seen
        self.time = xp.zeros(len(self.lags), self.lda.dtype)
        used = xp.arange(self.lags.shape[1]) < self.valid_length[:, None]
        self.marks = resolve(xp, op, xp.where(used, marks, 0), self.lda.shape[1], "raise")

    def events(self) -> Any:
        """For each step: which sequences have an event, its marks there, the time since the last of its mark, and the decay since."""
        for step in range(self.lags.shape[1]):
            rows = self.xp.flatnonzero(step < self.valid_length)
            if not len(rows):
                return
            marks = self.marks[rows, step]
            self.time[rows] += self.lags[rows, step]
            since = self.time[rows] - self.last[rows, marks]
            yield rows, marks, since, self.xp.exp(-self.beta[marks] * since)
            self.last[rows, marks] = self.time[rows]

    def intensity(self, rows: Array, marks: Array, decay: Array) -> Array:
        return self.lda[rows, marks] + self.alpha[marks] * self.beta[marks] * self.state[rows, marks] * decay

    def rest(self) -> tuple[Array, Array]:
        """After the last event of each mark: the time that is left, and the decay in it."""
        left = self.max_time[:, None] - self.last
        return left, self.xp.exp(-self.beta * left)


@register("_contrib_hawkesll")
class HawkesLogLikelihood(Op):
    on_host = True
    inputs: ClassVar = INPUTS
    saves_outputs = False

    @property
    def num_outputs(self) -> int:
        return 2

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        lda, alpha, beta, state, lags, marks, valid_length, max_time = inputs
        require_float(self, lda, "lda")
        same_dtype(self, lda, alpha, beta, state, lags)
        for what, spec in (("valid_length", valid_length), ("max_time", max_time)):
            if spec.dtype != lda.dtype:
                raise DTypeError(
                    f"{self.name}: lda is {lda.dtype.name} but {what} is {spec.dtype.name}; convert one with astype()"
                )
        if marks.dtype != np.int32:
            raise DTypeError(f"{self.name}: marks are {marks.dtype.name}, int32 is wanted; convert them with astype('int32')")
        require_ndim(self, "lda", lda, 2, axes=("batch", "marks"))
        require_ndim(self, "lags", lags, 2, axes=("batch", "steps"))
        batch, kinds = lda.shape
        reason = f"lda of shape {lda.shape}"
        for what, spec in (("alpha", alpha), ("beta", beta)):
            require_shape(self, what, spec, (kinds,), reason)
        require_shape(self, "state", state, (batch, kinds), reason)
        require_shape(self, "lags", lags, (batch, lags.shape[1]), reason)
        require_shape(self, "marks", marks, lags.shape, "lags")
        for what, spec in (("valid_length", valid_length), ("max_time", max_time)):
            require_shape(self, what, spec, (batch,), reason)
        return max_time, state

    def kernel(self, xp: Any, *inputs: Array) -> tuple[Array, ...]:
        past = History(xp, self, *inputs)
        total = xp.zeros_like(past.time)
        for rows, marks, since, decay in past.events():
            state = past.state[rows, marks]
            compensator = past.lda[rows, marks] * since + past.alpha[marks] * state * (1 - decay)
            total[rows] += xp.log(past.intensity(rows, marks, decay)) - compensator
            past.state[rows, marks] = 1 + state * decay
        left, decay = past.rest()
        total -= (past.lda * left + past.alpha * past.state * (1 - decay)).sum(axis=1)
        dtype = inputs[0].dtype
        return total.astype(dtype, copy=False), (past.state * decay).astype(dtype, copy=False)

    def vjp(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        if g[0] is None:
            return (None,) * 8
        return *apply(HawkesBackward(), g[0], *inputs), *[None] * 5


@register("_contrib_backward_hawkesll")
class HawkesBackward(Op):
    """The gradients of lda, alpha and beta; those of the events and of the state at the start are none, as in MXNet."""

    on_host = True
    inputs: ClassVar = ("head", *INPUTS)

    @property
    def num_outputs(self) -> int:
        return 3

    def infer(self, head: Spec, lda: Spec, alpha: Spec, beta: Spec, *rest: Spec) -> tuple[Spec, ...]:
        return lda, alpha, beta

    def kernel(self, xp: Any, head: Array, *inputs: Array) -> tuple[Array, ...]:
        past = History(xp, self, *inputs)
        to_lda, to_alpha, to_beta = (xp.zeros_like(past.state) for _ in range(3))
        for rows, marks, since, decay in past.events():
            state, slope = past.state[rows, marks], past.slope[rows, marks]
            alpha, beta, intensity = past.alpha[marks], past.beta[marks], past.intensity(rows, marks, decay)
            to_lda[rows, marks] += 1 / intensity - since
            to_alpha[rows, marks] += beta * state * decay / intensity - state * (1 - decay)
            to_beta[rows, marks] += alpha * decay * (state * (1 - beta * since) + beta * slope) / intensity
            to_beta[rows, marks] -= alpha * (slope * (1 - decay) + state * since * decay)
            past.slope[rows, marks] = decay * (slope - since * state)
            past.state[rows, marks] = 1 + state * decay
        left, decay = past.rest()
        to_lda -= left
        to_alpha -= past.state * (1 - decay)
        to_beta -= past.alpha * (past.slope * (1 - decay) + past.state * left * decay)
        heads = accurate(xp, head)[:, None]
        results = heads * to_lda, (heads * to_alpha).sum(axis=0), (heads * to_beta).sum(axis=0)
        return tuple(result.astype(head.dtype, copy=False) for result in results)


def hawkesll(lda: T, alpha: T, beta: T, state: T, lags: T, marks: T, valid_length: T, max_time: T, **how: Unpack[How]) -> list[T]:
    """The logarithm of the likelihood of events under a Hawkes process, and the state at the end.

    **Shapes** for N sequences of up to L events of K marks: lda (N, K), alpha and beta (K,), state (N, K), lags and marks (N, L),
    valid_length and max_time (N,); results (N,) and (N, K). **Args** lda: the intensity without events; alpha: how many events an event
    makes, less than 1; beta: the rate at which that decays; state: the sum of `exp(-beta t)` over events before, t ago; lags: the time from
    event to event; marks: whole numbers in int32, from 0 to K - 1; valid_length: how many events of a sequence count; max_time: how long it
    was observed. **Raises** OutOfRangeError, when the value is read, for a mark that is not there. **Gradient** of lda, alpha and beta by
    the likelihood (once only); none for the others and by the state. **Source** MXNet `contrib.hawkesll`.
    """
    return apply(HawkesLogLikelihood(), lda, alpha, beta, state, lags, marks, valid_length, max_time, **how)


__all__ = ["hawkesll"]
