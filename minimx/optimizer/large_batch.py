"""Optimizers for large batches, which choose the length of a step for each layer: LARS, LBSGD and LAMB.

With many samples in a batch the learning rate should be large, and then layers whose gradients are large beside their weights diverge.
So the step is scaled by `|w| / |g|` of the layer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

from .. import nd
from ..base import ArgumentError
from ..nd import NDArray
from .descent import SGD
from .optimizer import Optimizer, aggregation, as_lists, register, zeros_like

__all__ = ["LAMB", "LARS", "LBSGD"]


@register
class LARS(SGD):
    """SGD with the learning rate `lr eta |w| / (|rescale_grad grad| + wd |w| + eps)` for each weight.

    Parameters named gamma, beta or bias keep `lr`. **Args** `momentum_correction`: when the learning rate changes, scale the momentum
    with it. **Source** MXNet `optimizer.LARS`; You et al., 2017.
    """

    def __init__(
        self, momentum: float = 0.0, lazy_update: bool = True, eta: float = 0.001, eps: float = 0,
        momentum_correction: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(momentum, lazy_update, **kwargs)
        self.momentum_correction = momentum_correction
        self.aggregate_num = aggregation(4)
        self.eta = eta
        self.eps = eps
        self.skip = 0
        self.last_lr: Any = None
        self.cur_lr: Any = None

    def _decays(self, name: str) -> bool:
        return name.endswith("_weight")

    def _get_lrs(self, indices: Sequence[Any]) -> list[float]:
        lr = self.learning_rate
        self.last_lr = lr if self.cur_lr is None else self.cur_lr
        self.cur_lr = lr
        return [lr * self._mult(index, self.lr_mult, "lr_mult") for index in indices]

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._step(False, *as_lists(index, weight, grad, state))

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        indices, weights, grads, states = as_lists(index, weight, grad, state)
        self._step(self._is_mixed(weights[0]), indices, weights, grads, states)

    def _step(self, mixed: bool, indices: list[Any], weights: list[Any], grads: list[Any], states: list[Any]) -> None:
        """Update several weights. The scaled learning rates stay on the device: nothing waits for the norms."""
        self._update_count(indices)
        lrs, wds = self._get_lrs(indices), self._get_wds(indices)
        given = self._limits()
        if self.momentum:
            corrected = self.momentum_correction and self.last_lr
            given["momentum"] = self.momentum * (self.cur_lr / self.last_lr) if corrected else self.momentum
        plain = [str(self.idx2name.get(index, index)).endswith(("gamma", "beta", "bias")) for index in indices]
        for scaled in (True, False):
            chosen = [i for i, is_plain in enumerate(plain) if is_plain != scaled]
            if not chosen:
                continue
            arrays = [weights[i] for i in chosen]
            rates, decays = (
                nd.array([values[i] for i in chosen], ctx=arrays[0].context, dtype="float32") for values in (lrs, wds)
            )
            if scaled:
                rates = self._scaled(rates, arrays, [grads[i] for i in chosen], decays)
            states_of = [self._inputs(states[i], mixed) for i in chosen]
            inputs = chain.from_iterable((weights[i], grads[i], *rest) for i, rest in zip(chosen, states_of))
            multi_update(mixed, bool(self.momentum))(*inputs, rates, decays, out=arrays, num_weights=len(arrays), **given)

    def _scaled(self, rates: NDArray, weights: list[Any], grads: list[Any], decays: NDArray) -> NDArray:
        sizes, slopes = (nd.multi_sum_sq(*arrays, num_arrays=len(arrays)) for arrays in (weights, grads))
        return nd.multi_lars(rates, sizes, slopes, decays, eta=self.eta, eps=self.eps, rescale_grad=self.rescale_grad)

    def _inputs(self, state: Any, mixed: bool) -> list[NDArray]:
        """The states that an update operator takes: momentum and float32 copy, as far as there are any."""
        return [array for array in (state if mixed else [state]) if array is not None]


def multi_update(mixed: bool, with_momentum: bool) -> Any:
    """The operator that updates many weights with learning rates in an array."""
    if mixed:
        return nd.preloaded_multi_mp_sgd_mom_update if with_momentum else nd.preloaded_multi_mp_sgd_update
    return nd.preloaded_multi_sgd_mom_update if with_momentum else nd.preloaded_multi_sgd_update


@register
class LBSGD(Optimizer):
    """SGD that adds up the gradients of `batch_scale` batches for one step, with a learning rate that warms up to `batch_scale lr`.

    **Args** `warmup_strategy`: "linear", "power2" or "sqrt" in the number of batches, over `warmup_epochs updates_per_epoch` of them;
    "lars" for `sqrt(|w| ** 2 / (|g| ** 2 + wd |w| ** 2))`, from 0.01 to 100, instead. **Raises** ValueError for another strategy.
    **Source** MXNet `optimizer.LBSGD`.
    """

    STRATEGIES = ("linear", "power2", "sqrt", "lars")

    def __init__(
        self, momentum: float = 0.0, multi_precision: bool = False, warmup_strategy: str = "linear", warmup_epochs: int = 5,
        batch_scale: int = 1, updates_per_epoch: int = 32, begin_epoch: int = 0, num_epochs: int = 60, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(multi_precision=multi_precision, **kwargs)
        if warmup_strategy not in self.STRATEGIES:
            raise ArgumentError(f"LBSGD: warmup_strategy={warmup_strategy!r}; choose one of {', '.join(self.STRATEGIES)}")
        if batch_scale < 1:
            raise ArgumentError(f"LBSGD: batch_scale={batch_scale}; at least 1 batch is wanted")
        self.momentum = momentum
        self.warmup_strategy = warmup_strategy
        self.warmup_epochs = warmup_epochs
        self.batch_scale = batch_scale
        self.updates_per_epoch = updates_per_epoch
        self.init_updates = begin_epoch * updates_per_epoch
        self.num_epochs = num_epochs
        self.counts: dict[Any, int] = {}  # batches so far, by index
        self.cumgrads: dict[Any, NDArray] = {}  # sums of gradients, by index

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight) if self.momentum else None

    def _get_lbmult(self, nup: int) -> float:
        """The factor of the learning rate after `nup` batches."""
        batches = self.warmup_epochs * self.updates_per_epoch
        if nup >= batches:
            return float(self.batch_scale)
        if batches <= 1:
            return 1.0
        done = nup / batches
        grown = {"linear": done, "power2": done * done, "sqrt": math.sqrt(done)}[self.warmup_strategy]
        return 1.0 + (self.batch_scale - 1) * grown

    def _get_lars(self, weight: NDArray, grad: NDArray, wd: float) -> float:
        """The factor of the learning rate from the sizes of weight and gradient. Waits for both."""
        weights, slopes = (float((array * array).sum().asscalar()) for array in (weight, grad))
        return min(max(math.sqrt(weights / (slopes + wd * weights + 1e-18)), 0.01), 100.0)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        lr, wd = self._get_lr(index), self._get_wd(index)
        self._update_count(index)
        count = self.counts.get(index, self.init_updates) + 1
        self.counts[index] = count
        before = self.cumgrads.pop(index, None)
        total = grad if before is None else before + grad
        if count % self.batch_scale:
            self.cumgrads[index] = total.copy() if before is None else total  # the next backward overwrites grad
            return
        mean = total / self.batch_scale
        lr *= self._get_lars(weight, mean, wd) if self.warmup_strategy == "lars" else self._get_lbmult(count)
        if state is None:
            nd.sgd_update(weight, mean, out=weight, lr=lr, wd=wd, **self._limits())
        else:
            nd.sgd_mom_update(weight, mean, state, out=weight, lr=lr, wd=wd, momentum=self.momentum, **self._limits())


@register
class LAMB(Optimizer):
    """Adam's direction `d = m / (sqrt(v) + epsilon) + wd w`, both averages corrected for their beginning, with the step length of the
    layer: `w = w - lr |w| / |d| d`.

    **Args** `lower_bound`, `upper_bound`: of `|w|`; `bias_correction`: False takes the averages as they are. `update` also takes lists.
    **Source** MXNet `optimizer.LAMB`; You et al., 2019.
    """

    def __init__(
        self, learning_rate: float | None = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6,
        lower_bound: float | None = None, upper_bound: float | None = None, bias_correction: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1 = beta1
        self.beta2 = beta2
        self.epsilon = epsilon
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        self.bias_correction = bias_correction
        self.aggregate_num = min(45, aggregation(45))

    def create_state(self, index: Any, weight: NDArray) -> Any:
        return zeros_like(weight), zeros_like(weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        self._step(False, *as_lists(index, weight, grad, state))

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        indices, weights, grads, states = as_lists(index, weight, grad, state)
        self._step(self._is_mixed(weights[0]), indices, weights, grads, states)

    def _step(self, mixed: bool, indices: list[Any], weights: list[Any], grads: list[Any], states: list[Any]) -> None:
        """Update several weights."""
        rates = [self._begin(index) for index in indices]
        masters = [state[0] for state in states] if mixed else []
        means, variances = zip(*(state[1] if mixed else state for state in states))
        given: dict[str, Any] = {
            "lrs": [lr for lr, _, _ in rates], "wds": [wd for _, wd, _ in rates], "step_count": [t for _, _, t in rates],
            "beta1": self.beta1, "beta2": self.beta2, "epsilon": self.epsilon, "bias_correction": self.bias_correction,
            "lower_bound": self.lower_bound or -1.0, "upper_bound": self.upper_bound or -1.0, **self._limits(),
        }  # fmt: skip
        if mixed:
            nd.contrib.multi_mp_lamb_update(weights, grads, means, variances, masters, out=weights, **given)
        else:
            nd.contrib.multi_lamb_update(weights, grads, means, variances, out=weights, **given)
