"""`mx.lr_scheduler`: a learning rate that follows the number of updates.

An optimizer asks its scheduler before each update, `scheduler(num_update)`. All can *warm up*: for the first `warmup_steps` updates the
rate grows from `warmup_begin_lr` to `base_lr`. Schedulers remember how far they are, in `base_lr`, so that a rate that the user sets in
the middle is what later steps continue from. Book: chapter 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from .base import ArgumentError
from .keywords import name_unknown
from .log import root_logger

__all__ = ["CosineScheduler", "FactorScheduler", "LRScheduler", "MultiFactorScheduler", "PolyScheduler"]


class ScheduleError(ArgumentError, AssertionError):
    """Arguments of a schedule that do not fit. (MXNet asserts some of them: hence the second base.)"""


@name_unknown
class LRScheduler:
    """The base of all schedulers. A subclass overrides `__call__(num_update)`, the learning rate at that update.

    **Args** `base_lr`: the rate to begin with; `warmup_steps`: for how many updates it grows to that, from `warmup_begin_lr`;
    `warmup_mode`: "linear", or "constant" for a rate that stays there and then jumps. **Source** MXNet `lr_scheduler.LRScheduler`.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name_unknown(cls)

    def __init__(
        self, base_lr: float = 0.01, warmup_steps: int = 0, warmup_begin_lr: float = 0, warmup_mode: str = "linear"
    ) -> None:
        kind = type(self).__name__
        if not isinstance(warmup_steps, int) or warmup_steps < 0:
            raise ScheduleError(f"{kind}: warmup_steps={warmup_steps!r}; an int of at least 0 is wanted")
        if warmup_begin_lr > base_lr:
            raise ScheduleError(
                f"{kind}: warmup_begin_lr={warmup_begin_lr} is more than base_lr={base_lr}, to which it must grow"
            )
        if warmup_mode not in ("linear", "constant"):
            raise ScheduleError(f"{kind}: warmup_mode={warmup_mode!r}; choose 'linear' or 'constant'")
        self.base_lr = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_final_lr = base_lr
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_mode = warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """The rate during the warm-up. **Raises** AssertionError after it."""
        if num_update >= self.warmup_steps:
            raise ScheduleError(f"{type(self).__name__}: update {num_update} is after the warm-up of {self.warmup_steps} updates")
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        return self.warmup_begin_lr + (self.warmup_final_lr - self.warmup_begin_lr) * num_update / self.warmup_steps

    def __call__(self, num_update: int) -> float:
        """The learning rate for update number `num_update`, counted from 1."""
        raise NotImplementedError(f"{type(self).__name__} must override __call__")


def check_factor(kind: str, factor: float) -> None:
    if factor > 1.0:
        raise ScheduleError(f"{kind}: factor={factor} lets the learning rate grow; at most 1 is wanted")


def log_change(num_update: int, rate: float) -> None:
    """Log a new learning rate, in MXNet's words, which tools look for in logs."""
    root_logger().info("Update[%d]: Change learning rate to %0.5e", num_update, rate)


class FactorScheduler(LRScheduler):
    """Every `step` updates the rate is multiplied by `factor`, until it is `stop_factor_lr`: `base_lr factor ** ((n - 1) // step)`.

    **Raises** ValueError for a step below 1, or a factor above 1. **Source** MXNet `lr_scheduler.FactorScheduler`.

    >>> from minimx import lr_scheduler
    >>> schedule = lr_scheduler.FactorScheduler(step=2, factor=0.5, base_lr=1.0)
    >>> [schedule(n) for n in (1, 2, 3, 4, 5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, step: int, factor: float = 1, stop_factor_lr: float = 1e-8, base_lr: float = 0.01, warmup_steps: int = 0,
        warmup_begin_lr: float = 0, warmup_mode: str = "linear",
    ) -> None:  # fmt: skip
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if step < 1:
            raise ScheduleError(f"FactorScheduler: step={step}; at least 1 update is wanted")
        check_factor("FactorScheduler", factor)
        self.step = step
        self.factor = factor
        self.stop_factor_lr = stop_factor_lr
        self.count = 0  # updates up to the last change

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while num_update > self.count + self.step:  # several steps at once when a training is continued
            self.count += self.step
            before, self.base_lr = self.base_lr, max(self.base_lr * self.factor, self.stop_factor_lr)
            if not math.isclose(self.base_lr, before):  # it has stopped
                log_change(num_update, self.base_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """After each of the updates in the list `step` the rate is multiplied by `factor`.

    **Raises** ValueError for steps that are not increasing numbers from 1 on, or a factor above 1. **Source** MXNet
    `lr_scheduler.MultiFactorScheduler`.
    """

    def __init__(
        self, step: Sequence[int], factor: float = 1, base_lr: float = 0.01, warmup_steps: int = 0, warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:  # fmt: skip
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        steps = list(step) if isinstance(step, (list, tuple)) else []
        if not steps or steps[0] < 1 or any(after <= before for before, after in pairwise(steps)):
            raise ScheduleError(f"MultiFactorScheduler: step={step!r}; a list of increasing numbers from 1 on is wanted")
        check_factor("MultiFactorScheduler", factor)
        self.step = steps
        self.cur_step_ind = 0
        self.factor = factor
        self.count = 0

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.count = self.step[self.cur_step_ind]
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            log_change(num_update, self.base_lr)
        return self.base_lr


class _Descent(LRScheduler):
    """A rate that goes from `base_lr` to `final_lr` along a curve, which a subclass gives, until update `max_update`."""

    def __init__(
        self, max_update: int, base_lr: float, final_lr: float, warmup_steps: int, warmup_begin_lr: float, warmup_mode: str
    ) -> None:
        super().__init__(base_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        if not isinstance(max_update, int) or max_update < 1:
            raise ScheduleError(f"{type(self).__name__}: max_update={max_update!r}; an int of at least 1 is wanted")
        if max_update <= warmup_steps:
            raise ScheduleError(
                f"{type(self).__name__}: max_update={max_update} must be more than the warm-up, warmup_steps={warmup_steps}"
            )
        self.base_lr_orig = base_lr
        self.max_update = max_update
        self.final_lr = final_lr
        self.max_steps = max_update - warmup_steps

    def _remaining(self, done: float) -> float:
        """What is left, from 1 to 0, when the part `done` of the way is gone."""
        raise NotImplementedError

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        done = min((num_update - self.warmup_steps) / self.max_steps, 1.0)
        self.base_lr = self.final_lr + (self.base_lr_orig - self.final_lr) * self._remaining(done)
        return self.base_lr


class PolyScheduler(_Descent):
    """`final_lr + (base_lr - final_lr) (1 - n / max_update) ** pwr`, then `final_lr`; n counts from the end of the warm-up.

    **Raises** ValueError if `max_update` is no number above `warmup_steps`. **Source** MXNet `lr_scheduler.PolyScheduler`, whose rate
    stops where it was last asked for when a training jumps beyond `max_update`.
    """

    def __init__(
        self, max_update: int, base_lr: float = 0.01, pwr: float = 2, final_lr: float = 0, warmup_steps: int = 0,
        warmup_begin_lr: float = 0, warmup_mode: str = "linear",
    ) -> None:  # fmt: skip
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)
        self.power = pwr

    def _remaining(self, done: float) -> float:
        return float((1 - done) ** self.power)


class CosineScheduler(_Descent):
    """`final_lr + (base_lr - final_lr) (1 + cos(pi n / max_update)) / 2`, then `final_lr`; n counts from the end of the warm-up.

    **Raises** ValueError if `max_update` is no number above `warmup_steps`. **Source** MXNet `lr_scheduler.CosineScheduler`;
    Loshchilov, Hutter, 2017.
    """

    def __init__(
        self, max_update: int, base_lr: float = 0.01, final_lr: float = 0, warmup_steps: int = 0, warmup_begin_lr: float = 0,
        warmup_mode: str = "linear",
    ) -> None:  # fmt: skip
        super().__init__(max_update, base_lr, final_lr, warmup_steps, warmup_begin_lr, warmup_mode)

    def _remaining(self, done: float) -> float:
        return (1 + math.cos(math.pi * done)) / 2
