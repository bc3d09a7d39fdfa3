"""Steps of AdamW and LAMB for many weights in one operation: the lists of optim_multi.py, the steps of optim_adam.py."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ShapeError
from ..op import Array, How, Spec, T, apply, attributes, register
from .optim import require_count, updated
from .optim_adam import AdamWUpdate, LambUpdatePhase1, MPAdamWUpdate, MPLambUpdatePhase1, as_factor, stride, trust_ratio
from .optim_checks import euclidean
from .optim_multi import Multiple, count_of, flattened, floats, outputs_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


@attributes
class MultiAdamW(Multiple):
    tail: ClassVar = ("rescale_grad",)

    lrs: tuple[float, ...]
    wds: tuple[float, ...]
    etas: tuple[float, ...]
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    clip_gradient: float = -1.0
    num_weights: int = 1

    @property
    def count(self) -> int:
        return self.num_weights

    def infer(self, *data: Spec) -> Spec | tuple[Spec, ...]:
        self.require_lengths(lrs=self.lrs, wds=self.wds, etas=self.etas)
        weights = Multiple.infer(self, *data)
        if data[-1].size != 1:
            raise ShapeError(f"{self.name}: rescale_grad has shape {data[-1].shape}, wants a single number")
        return weights

    def kernel(self, xp: Any, *data: Array) -> Any:
        scale = float(data[-1].reshape(-1)[0])
        single = MPAdamWUpdate if self.group[-1] == "weight32" else AdamWUpdate
        results = []
        for arrays, lr, wd, eta in zip(self.groups(data), self.lrs, self.wds, self.etas):
            op = single(
                lr=lr, beta1=self.beta1, beta2=self.beta2, epsilon=self.epsilon, wd=wd, eta=eta, clip_gradient=self.clip_gradient
            )
            weight, grad, mean, var, *master = arrays
            results.append(op.advance(xp, weight, grad, [mean, var], master[0] if master else None, scale))
        return outputs_of(results)


@register("_multi_adamw_update")
class MultiAdamWUpdate(MultiAdamW):
    group: ClassVar = ("weight", "grad", "mean", "var")


@register("_multi_mp_adamw_update")
class MultiMPAdamWUpdate(MultiAdamW):
    group: ClassVar = ("weight", "grad", "mean", "var", "weight32")


def multi_adamw_update(
    weights: Sequence[T],
    grads: Sequence[T],
    mean: Sequence[T],
    var: Sequence[T],
    rescale_grad: T | float,
    lrs: Sequence[float],
    wds: Sequence[float],
    etas: Sequence[float],
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    clip_gradient: float = -1.0,
    size: int = 0,
    **how: Unpack[How],
) -> Any:
    """`adamw_update` of several weights. **Source** MXNet `contrib.multi_adamw_update`."""
    op = MultiAdamWUpdate(
        lrs=floats(lrs),
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wds=floats(wds),
        etas=floats(etas),
        clip_gradient=clip_gradient,
        num_weights=count_of("multi_adamw_update", size, weights),
    )
    return apply(op, *flattened(weights, grads, mean, var), as_factor(weights[0], rescale_grad), **how)


def multi_mp_adamw_update(
    weights: Sequence[T],
    grads: Sequence[T],
    mean: Sequence[T],
    var: Sequence[T],
    weights32: Sequence[T],
    rescale_grad: T | float,
    lrs: Sequence[float],
    wds: Sequence[float],
    etas: Sequence[float],
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    clip_gradient: float = -1.0,
    size: int = 0,
    **how: Unpack[How],
) -> Any:
    """`mp_adamw_update` of several weights. **Source** MXNet `contrib.multi_mp_adamw_update`."""
    op = MultiMPAdamWUpdate(
        lrs=floats(lrs),
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wds=floats(wds),
        etas=floats(etas),
        clip_gradient=clip_gradient,
        num_weights=count_of("multi_mp_adamw_update", size, weights),
    )
    return apply(op, *flattened(weights, grads, mean, var, weights32), as_factor(weights[0], rescale_grad), **how)


@attributes
class MultiLamb(Multiple):
    learning_rates: tuple[float, ...]
    wds: tuple[float, ...]
    step_count: tuple[int, ...]
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6
    rescale_grad: float = 1.0
    lower_bound: float = -1.0
    upper_bound: float = -1.0
    clip_gradient: float = -1.0
    bias_correction: bool = True
    num_tensors: int = 1

    @property
    def count(self) -> int:
        return self.num_tensors

    def infer(self, *data: Spec) -> Spec | tuple[Spec, ...]:
        self.require_lengths(learning_rates=self.learning_rates, wds=self.wds, step_count=self.step_count)
        for t in self.step_count:
            require_count(self, t)
        return Multiple.infer(self, *data)

    def kernel(self, xp: Any, *data: Array) -> Any:
        phase1 = MPLambUpdatePhase1 if self.group[-1] == "weight32" else LambUpdatePhase1
        results = []
        for arrays, lr, wd, t in zip(self.groups(data), self.learning_rates, self.wds, self.step_count):
            op = phase1(
                beta1=self.beta1,
                beta2=self.beta2,
                epsilon=self.epsilon,
                t=t,
                bias_correction=self.bias_correction,
                wd=wd,
                rescale_grad=self.rescale_grad,
                clip_gradient=self.clip_gradient,
            )
            direction = op.kernel(xp, *arrays)
            weight, _, _, _, *masters = arrays
            master = masters[0] if masters else None
            ratio = trust_ratio(
                euclidean(xp, weight if master is None else master), euclidean(xp, direction), self.lower_bound, self.upper_bound
            )
            length = lr * ratio
            results.append(updated(partial(stride, length), xp, weight, direction, (), master))
        return outputs_of(results)


@register("_multi_lamb_update")
class MultiLambUpdate(MultiLamb):
    group: ClassVar = ("weight", "grad", "mean", "var")


@register("_multi_mp_lamb_update")
class MultiMPLambUpdate(MultiLamb):
    group: ClassVar = ("weight", "grad", "mean", "var", "weight32")


def multi_lamb_update(
    weights: Sequence[T],
    grads: Sequence[T],
    mean: Sequence[T],
    var: Sequence[T],
    step_count: Sequence[int],
    lrs: Sequence[float],
    wds: Sequence[float],
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    rescale_grad: float = 1.0,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
    clip_gradient: float = -1.0,
    bias_correction: bool = True,
    num_tensors: int = 0,
    **how: Unpack[How],
) -> Any:
    """Both phases of LAMB for several weights: see lamb_update_phase1 and lamb_update_phase2.

    **Args** `step_count`: the number of the step, of each. **Source** MXNet `contrib.multi_lamb_update`.
    """
    op = MultiLambUpdate(
        learning_rates=floats(lrs),
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wds=floats(wds),
        rescale_grad=rescale_grad,
        lower_bound=lower_bound,
        upper_bound=upper_bound,
        clip_gradient=clip_gradient,
        bias_correction=bias_correction,
        step_count=step_count,  # type: ignore[arg-type]  # the operator makes it a tuple
        num_tensors=count_of("multi_lamb_update", num_tensors, weights),
    )
    return apply(op, *flattened(weights, grads, mean, var), **how)


def multi_mp_lamb_update(
    weights: Sequence[T],
    grads: Sequence[T],
    mean: Sequence[T],
    var: Sequence[T],
    weights32: Sequence[T],
    step_count: Sequence[int],
    lrs: Sequence[float],
    wds: Sequence[float],
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    rescale_grad: float = 1.0,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
    clip_gradient: float = -1.0,
    bias_correction: bool = True,
    num_tensors: int = 0,
    **how: Unpack[How],
) -> Any:
    """`multi_lamb_update` on float32 copies of the weights. **Source** MXNet `contrib.multi_mp_lamb_update`."""
    op = MultiMPLambUpdate(
        learning_rates=floats(lrs),
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wds=floats(wds),
        rescale_grad=rescale_grad,
        lower_bound=lower_bound,
        upper_bound=upper_bound,
        clip_gradient=clip_gradient,
        bias_correction=bias_correction,
        step_count=step_count,  # type: ignore[arg-type]  # the operator makes it a tuple
        num_tensors=count_of("multi_mp_lamb_update", num_tensors, weights),
    )
    return apply(op, *flattened(weights, grads, mean, var, weights32), **how)


__all__ = ["multi_adamw_update", "multi_lamb_update", "multi_mp_adamw_update", "multi_mp_lamb_update"]
