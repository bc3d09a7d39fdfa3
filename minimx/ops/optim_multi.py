"""Steps for many weights in one operation, and what belongs to such training: norms, layerwise rates, checks for overflow.

The arrays of all weights come as one list, weight by weight: `w0, g0, mom0, w1, g1, mom1, ...`. One operation rather than a
hundred saves the engine's work for each. The steps themselves are those of optim.py and optim_adaptive.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, DTypeError, ShapeError
from ..op import Array, How, Op, Spec, T, Tensor, apply, register, same_shape
from .optim import MPSGDMomUpdate, MPSGDUpdate, SGDMomUpdate, SGDUpdate, Update, checked_update, updated
from .optim_adaptive import (
    AdamWUpdate,
    LambUpdatePhase1,
    MPAdamWUpdate,
    MPLambUpdatePhase1,
    as_factor,
    require_count,
    trust_ratio,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack


def flattened(*lists: Sequence[T]) -> list[T]:
    """The elements of lists of equal length in the order that these operators want: all that belongs to the first weight
    first."""
    if len({len(each) for each in lists}) != 1:
        raise ArgumentError(
            f"an update of many weights wants lists of one length, got {', '.join(str(len(each)) for each in lists)}"
        )
    return [array for group in zip(*lists) for array in group]


def floats(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in values)


def outputs_of(results: Sequence[Any]) -> Any:
    """What a rule or a kernel gives for `results`: a tuple, but a single one as it is."""
    return results[0] if len(results) == 1 else tuple(results)


class Multiple(Op):
    """An operator on groups of arrays, a group a weight, perhaps with further inputs at the end."""

    __slots__ = ()

    inputs: ClassVar = ("data*",)
    saves_inputs = False
    saves_outputs = False
    #: The names of a group's arrays.
    group: ClassVar[tuple[str, ...]] = ()
    #: The names of the inputs after the last group.
    tail: ClassVar[tuple[str, ...]] = ()

    @property
    def count(self) -> int:
        """The number of weights."""
        raise NotImplementedError

    @property
    def num_outputs(self) -> int:
        return self.count

    @property
    def mutates(self) -> tuple[int, ...]:  # type: ignore[override]  # how many there are depends on the attributes
        """Everything but weights, gradients and the inputs at the end."""
        size = len(self.group)
        return tuple(first * size + position for first in range(self.count) for position in range(2, size))

    def groups(self, data: Sequence[Any]) -> list[Sequence[Any]]:
        """`data` cut into groups; the inputs at the end are left out."""
        size = len(self.group)
        return [data[first * size : (first + 1) * size] for first in range(self.count)]

    def infer(self, *data: Spec) -> Spec | tuple[Spec, ...]:
        wanted = self.count * len(self.group) + len(self.tail)
        if len(data) != wanted:
            names = ", ".join(self.group) + (f"; then {', '.join(self.tail)}" if self.tail else "")
            raise ArgumentError(
                f"{self.name}: {len(data)} arrays are given, {wanted} are wanted: for each of {self.count} weights {names}"
            )
        return outputs_of([checked_update(self, self.group, *specs) for specs in self.groups(data)])

    def require_lengths(self, **lists: tuple[Any, ...]) -> None:
        """Raise ArgumentError unless each list has an element for every weight."""
        for name, values in lists.items():
            if len(values) != self.count:
                raise ArgumentError(f"{self.name}: {name} has {len(values)} elements for {self.count} weights; give one each")


# ---- stochastic gradient descent


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiDescent(Multiple):
    """Steps of SGD. With `preloaded`, learning rates and weight decays are the last two inputs, arrays; otherwise attributes."""

    momentum: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0
    num_weights: int = 1

    @property
    def count(self) -> int:
        return self.num_weights

    def rates(self, data: Sequence[Array]) -> tuple[Sequence[float], Sequence[float]]:
        """(learning rates, weight decays)."""
        raise NotImplementedError

    def single(self, lr: float, wd: float) -> Update:
        """The operator for one weight."""
        common = {"lr": float(lr), "wd": float(wd), "rescale_grad": self.rescale_grad, "clip_gradient": self.clip_gradient}
        mixed = self.group[-1] == "weight32"
        if "mom" in self.group:
            return (MPSGDMomUpdate if mixed else SGDMomUpdate)(momentum=self.momentum, **common)
        return (MPSGDUpdate if mixed else SGDUpdate)(**common)

    def kernel(self, xp: Any, *data: Array) -> Any:
        steps = zip(self.groups(data), *self.rates(data))
        return outputs_of([self.single(lr, wd).kernel(xp, *arrays) for arrays, lr, wd in steps])


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenRates(MultiDescent):
    lrs: tuple[float, ...]
    wds: tuple[float, ...]

    def infer(self, *data: Spec) -> Spec | tuple[Spec, ...]:
        self.require_lengths(lrs=self.lrs, wds=self.wds)
        return MultiDescent.infer(self, *data)

    def rates(self, data: Sequence[Array]) -> tuple[Sequence[float], Sequence[float]]:
        return self.lrs, self.wds


@dataclass(frozen=True, slots=True, kw_only=True)
class PreloadedRates(MultiDescent):
    tail: ClassVar = ("lrs", "wds")

    def infer(self, *data: Spec) -> Spec | tuple[Spec, ...]:
        weights = MultiDescent.infer(self, *data)
        for name, spec in zip(self.tail, data[-2:]):
            if spec.shape != (self.count,):
                raise ShapeError(f"{self.name}: {name} has shape {spec.shape}, {self.count} weights need {(self.count,)}")
        return weights

    def rates(self, data: Sequence[Array]) -> tuple[Sequence[float], Sequence[float]]:
        return data[-2].tolist(), data[-1].tolist()


@register("multi_sgd_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiSGDUpdate(GivenRates):
    group: ClassVar = ("weight", "grad")


@register("multi_sgd_mom_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiSGDMomUpdate(GivenRates):
    group: ClassVar = ("weight", "grad", "mom")


@register("multi_mp_sgd_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiMPSGDUpdate(GivenRates):
    group: ClassVar = ("weight", "grad", "weight32")


@register("multi_mp_sgd_mom_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiMPSGDMomUpdate(GivenRates):
    group: ClassVar = ("weight", "grad", "mom", "weight32")


@register("preloaded_multi_sgd_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class PreloadedMultiSGDUpdate(PreloadedRates):
    group: ClassVar = ("weight", "grad")


@register("preloaded_multi_sgd_mom_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class PreloadedMultiSGDMomUpdate(PreloadedRates):
    group: ClassVar = ("weight", "grad", "mom")


@register("preloaded_multi_mp_sgd_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class PreloadedMultiMPSGDUpdate(PreloadedRates):
    group: ClassVar = ("weight", "grad", "weight32")


@register("preloaded_multi_mp_sgd_mom_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class PreloadedMultiMPSGDMomUpdate(PreloadedRates):
    group: ClassVar = ("weight", "grad", "mom", "weight32")


def multi_sgd_update(
    *data: T,
    lrs: Sequence[float],
    wds: Sequence[float],
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    **how: Unpack[How],
) -> Any:
    """`sgd_update` of `num_weights` weights: data is `w0, g0, w1, g1, ...`. Pass `out=[w0, w1, ...]`.

    **Args** `lrs`, `wds`: learning rate and weight decay of each. **Source** MXNet `multi_sgd_update`.
    """
    op = MultiSGDUpdate(
        lrs=floats(lrs),
        wds=floats(wds),
        rescale_grad=float(rescale_grad),
        clip_gradient=float(clip_gradient),
        num_weights=int(num_weights),
    )
    return apply(op, *data, **how)


def multi_sgd_mom_update(
    *data: T,
    lrs: Sequence[float],
    wds: Sequence[float],
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    **how: Unpack[How],
) -> Any:
    """`sgd_mom_update` of `num_weights` weights: data is `w0, g0, mom0, w1, ...`. **Source** MXNet `multi_sgd_mom_update`."""
    op = MultiSGDMomUpdate(
        lrs=floats(lrs),
        wds=floats(wds),
        momentum=float(momentum),
        rescale_grad=float(rescale_grad),
        clip_gradient=float(clip_gradient),
        num_weights=int(num_weights),
    )
    return apply(op, *data, **how)


def multi_mp_sgd_update(
    *data: T,
    lrs: Sequence[float],
    wds: Sequence[float],
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    **how: Unpack[How],
) -> Any:
    """`mp_sgd_update` of `num_weights` weights: data is `w0, g0, weight32_0, w1, ...`. **Source** MXNet `multi_mp_sgd_update`."""
    op = MultiMPSGDUpdate(
        lrs=floats(lrs),
        wds=floats(wds),
        rescale_grad=float(rescale_grad),
        clip_gradient=float(clip_gradient),
        num_weights=int(num_weights),
    )
    return apply(op, *data, **how)


def multi_mp_sgd_mom_update(
    *data: T,
    lrs: Sequence[float],
    wds: Sequence[float],
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    **how: Unpack[How],
) -> Any:
    """`mp_sgd_mom_update` of `num_weights` weights: data is `w0, g0, mom0, weight32_0, w1, ...`. **Source** MXNet
    `multi_mp_sgd_mom_update`."""
    op = MultiMPSGDMomUpdate(
        lrs=floats(lrs),
        wds=floats(wds),
        momentum=float(momentum),
        rescale_grad=float(rescale_grad),
        clip_gradient=float(clip_gradient),
        num_weights=int(num_weights),
    )
    return apply(op, *data, **how)


def preloaded_multi_sgd_update(
    *data: T, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1, **how: Unpack[How]
) -> Any:
    """`multi_sgd_update` whose rates are arrays: data is `w0, g0, w1, g1, ..., lrs, wds`. **Source** MXNet
    `preloaded_multi_sgd_update`."""
    op = PreloadedMultiSGDUpdate(
        rescale_grad=float(rescale_grad), clip_gradient=float(clip_gradient), num_weights=int(num_weights)
    )
    return apply(op, *data, **how)


def preloaded_multi_sgd_mom_update(
    *data: T,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    **how: Unpack[How],
) -> Any:
    """`multi_sgd_mom_update` whose rates are arrays: data is `w0, g0, mom0, ..., lrs, wds`. **Source** MXNet
    `preloaded_multi_sgd_mom_update`."""
    op = PreloadedMultiSGDMomUpdate(
        momentum=float(momentum),
        rescale_grad=float(rescale_grad),
        clip_gradient=float(clip_gradient),
        num_weights=int(num_weights),
    )
    return apply(op, *data, **how)


def preloaded_multi_mp_sgd_update(
    *data: T, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1, **how: Unpack[How]
) -> Any:
    """`multi_mp_sgd_update` whose rates are arrays: data is `w0, g0, weight32_0, ..., lrs, wds`. **Source** MXNet
    `preloaded_multi_mp_sgd_update`."""
    op = PreloadedMultiMPSGDUpdate(
        rescale_grad=float(rescale_grad), clip_gradient=float(clip_gradient), num_weights=int(num_weights)
    )
    return apply(op, *data, **how)


def preloaded_multi_mp_sgd_mom_update(
    *data: T,
    momentum: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    num_weights: int = 1,
    **how: Unpack[How],
) -> Any:
    """`multi_mp_sgd_mom_update` whose rates are arrays: data is `w0, g0, mom0, weight32_0, ..., lrs, wds`.

    **Source** MXNet `preloaded_multi_mp_sgd_mom_update`.
    """
    op = PreloadedMultiMPSGDMomUpdate(
        momentum=float(momentum),
        rescale_grad=float(rescale_grad),
        clip_gradient=float(clip_gradient),
        num_weights=int(num_weights),
    )
    return apply(op, *data, **how)


# ---- AdamW and LAMB


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiAdamW(Multiple):
    tail: ClassVar = ("rescale_grad",)

    lrs: tuple[float, ...]
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    wds: tuple[float, ...]
    etas: tuple[float, ...]
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
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiAdamWUpdate(MultiAdamW):
    group: ClassVar = ("weight", "grad", "mean", "var")


@register("_multi_mp_adamw_update")
@dataclass(frozen=True, slots=True, kw_only=True)
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
        beta1=float(beta1),
        beta2=float(beta2),
        epsilon=float(epsilon),
        wds=floats(wds),
        etas=floats(etas),
        clip_gradient=float(clip_gradient),
        num_weights=size or len(weights),
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
        beta1=float(beta1),
        beta2=float(beta2),
        epsilon=float(epsilon),
        wds=floats(wds),
        etas=floats(etas),
        clip_gradient=float(clip_gradient),
        num_weights=size or len(weights),
    )
    return apply(op, *flattened(weights, grads, mean, var, weights32), as_factor(weights[0], rescale_grad), **how)


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiLamb(Multiple):
    learning_rates: tuple[float, ...]
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6
    wds: tuple[float, ...]
    rescale_grad: float = 1.0
    lower_bound: float = -1.0
    upper_bound: float = -1.0
    clip_gradient: float = -1.0
    bias_correction: bool = True
    step_count: tuple[int, ...]
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
            results.append(updated(lambda xp, old, move, by=length: old - move * by, xp, weight, direction, (), master))
        return outputs_of(results)


def euclidean(xp: Any, array: Array) -> float:
    """The Euclidean norm of all elements."""
    flat = array.reshape(-1).astype(xp.float32, copy=False) if array.dtype == xp.float16 else array.reshape(-1)
    return math.sqrt(float(xp.dot(flat, flat)))


@register("_multi_lamb_update")
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiLambUpdate(MultiLamb):
    group: ClassVar = ("weight", "grad", "mean", "var")


@register("_multi_mp_lamb_update")
@dataclass(frozen=True, slots=True, kw_only=True)
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
        beta1=float(beta1),
        beta2=float(beta2),
        epsilon=float(epsilon),
        wds=floats(wds),
        rescale_grad=float(rescale_grad),
        lower_bound=float(lower_bound),
        upper_bound=float(upper_bound),
        clip_gradient=float(clip_gradient),
        bias_correction=bool(bias_correction),
        step_count=tuple(int(t) for t in step_count),
        num_tensors=num_tensors or len(weights),
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
        beta1=float(beta1),
        beta2=float(beta2),
        epsilon=float(epsilon),
        wds=floats(wds),
        rescale_grad=float(rescale_grad),
        lower_bound=float(lower_bound),
        upper_bound=float(upper_bound),
        clip_gradient=float(clip_gradient),
        bias_correction=bool(bias_correction),
        step_count=tuple(int(t) for t in step_count),
        num_tensors=num_tensors or len(weights),
    )
    return apply(op, *flattened(weights, grads, mean, var, weights32), **how)


# ---- norms of many arrays, and the rates that follow from them


def require_arrays(op: Op, wanted: int, data: Sequence[Spec]) -> None:
    """Raise unless there are `wanted` floating arrays of one dtype."""
    if len(data) != wanted or not data:
        raise ArgumentError(f"{op.name}: {len(data)} arrays are given, num_arrays={wanted}")
    for i, spec in enumerate(data):
        if spec.dtype.kind != "f" or spec.dtype != data[0].dtype:
            raise DTypeError(
                f"{op.name}: data{i} is {spec.dtype.name}, data0 is {data[0].dtype.name}; one floating dtype is wanted"
            )


@register("multi_sum_sq")
@dataclass(frozen=True, slots=True)
class MultiSumSq(Op):
    inputs: ClassVar = ("data*",)
    saves_inputs = False
    saves_outputs = False

    num_arrays: int

    def infer(self, *data: Spec) -> Spec:
        require_arrays(self, self.num_arrays, data)
        return Spec.of((self.num_arrays,), "float32")

    def kernel(self, xp: Any, *data: Array) -> Array:
        return xp.asarray([euclidean(xp, array) ** 2 for array in data], dtype=xp.float32)


def multi_sum_sq(*data: T, num_arrays: int, **how: Unpack[How]) -> T:
    """The sum of squares of each array: `y_i = sum(data_i ** 2)`.

    **Shapes** data any, result (num_arrays,), float32. **Source** MXNet `multi_sum_sq`.
    """
    return apply(MultiSumSq(int(num_arrays)), *data, **how)


@register("multi_lars")
@dataclass(frozen=True, slots=True, kw_only=True)
class MultiLars(Op):
    inputs: ClassVar = ("lrs", "weights_sum_sq", "grads_sum_sq", "wds")
    saves_inputs = False
    saves_outputs = False

    eta: float
    eps: float
    rescale_grad: float = 1.0

    def infer(self, lrs: Spec, weights_sum_sq: Spec, grads_sum_sq: Spec, wds: Spec) -> Spec:
        same_shape(self, lrs, weights_sum_sq, grads_sum_sq, wds)
        return lrs

    def kernel(self, xp: Any, lrs: Array, weights_sum_sq: Array, grads_sum_sq: Array, wds: Array) -> Array:
        weight_norm = xp.sqrt(weights_sum_sq)
        grad_norm = xp.sqrt(grads_sum_sq) * self.rescale_grad
        scaled = lrs * (self.eta * weight_norm / (grad_norm + wds * weight_norm + self.eps))
        return xp.where((weight_norm > 0) & (grad_norm > 0), scaled, lrs).astype(lrs.dtype, copy=False)


def multi_lars(
    lrs: T, weights_sum_sq: T, grads_sum_sq: T, wds: T, eta: float, eps: float, rescale_grad: float = 1.0, **how: Unpack[How]
) -> T:
    """Learning rates of LARS, a rate a layer: `lr eta |w| / (|rescale_grad g| + wd |w| + eps)`; `lr` where a norm is 0.

    **Shapes** lrs, weights_sum_sq, grads_sum_sq, wds and result (N,). **Source** MXNet `multi_lars`; You et al., 2017.
    """
    op = MultiLars(eta=float(eta), eps=float(eps), rescale_grad=float(rescale_grad))
    return apply(op, lrs, weights_sum_sq, grads_sum_sq, wds, **how)


# ---- overflow, and clearing


@register("multi_all_finite")
@dataclass(frozen=True, slots=True)
class MultiAllFinite(Op):
    """Whether all elements of all arrays are finite, as 1 or 0. Without `init_output` the last input is an earlier answer, which
    must have been 1 too."""

    inputs: ClassVar = ("data*",)
    saves_inputs = False
    saves_outputs = False

    num_arrays: int = 1
    init_output: bool = True

    def infer(self, *data: Spec) -> Spec:
        require_arrays(self, self.num_arrays, data if self.init_output else data[:-1])
        return Spec.of((1,), "float32")

    def kernel(self, xp: Any, *data: Array) -> Array:
        answer = all(bool(xp.isfinite(array).all()) for array in data)
        if not self.init_output:
            answer = answer and bool(data[-1].all())
        return xp.full((1,), answer, dtype=xp.float32)


@register("all_finite")
@dataclass(frozen=True, slots=True)
class AllFinite(Op):
    inputs: ClassVar = ("data", "previous?")
    saves_inputs = False
    saves_outputs = False

    init_output: bool = True

    def infer(self, data: Spec, previous: Spec | None = None) -> Spec:
        require_arrays(self, 1, (data,))
        return Spec.of((1,), "float32")

    def kernel(self, xp: Any, data: Array, previous: Array | None = None) -> Array:
        answer = bool(xp.isfinite(data).all()) and (previous is None or bool(previous.all()))
        return xp.full((1,), answer, dtype=xp.float32)


def _earlier(init_output: bool, how: Any) -> tuple[Any, ...]:
    """The earlier answer, which is in `out`, where it counts."""
    before = how.get("out")
    return (before,) if not init_output and isinstance(before, Tensor) else ()


def all_finite(data: T, init_output: bool = True, **how: Unpack[How]) -> T:
    """1 if no element is infinite or NaN, else 0.

    **Shapes** data (...), result (1,), float32. **Args** `init_output`: False keeps a 0 that is in `out` already.
    **Source** MXNet `all_finite`.
    """
    earlier = _earlier(init_output, how)
    return apply(AllFinite(not earlier), data, *earlier, **how)


def multi_all_finite(*data: T, num_arrays: int = 1, init_output: bool = True, **how: Unpack[How]) -> T:
    """1 if no element of any array is infinite or NaN, else 0.

    **Shapes** data any, result (1,), float32. **Args** `init_output`: False keeps a 0 that is in `out` already, so that many
    arrays can be checked in several calls. **Source** MXNet `multi_all_finite`.
    """
    earlier = _earlier(init_output, how)
    return apply(MultiAllFinite(int(num_arrays), not earlier), *data, *earlier, **how)


@register("reset_arrays")
@dataclass(frozen=True, slots=True)
class ResetArrays(Op):
    inputs: ClassVar = ("data*",)
    saves_inputs = False
    saves_outputs = False

    num_arrays: int

    @property
    def num_outputs(self) -> int:
        return 0

    @property
    def mutates(self) -> tuple[int, ...]:  # type: ignore[override]  # how many there are depends on the attributes
        return tuple(range(self.num_arrays))

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        if len(data) != self.num_arrays:
            raise ArgumentError(f"reset_arrays: {len(data)} arrays are given, num_arrays={self.num_arrays}")
        return ()

    def kernel(self, xp: Any, *data: Array) -> tuple[Array, ...]:
        for array in data:
            array[...] = 0
        return ()


def reset_arrays(*data: T, num_arrays: int, **how: Unpack[How]) -> Any:
    """Set all elements of all arrays to 0, in place. **Returns** an empty list. **Source** MXNet `reset_arrays`."""
    return apply(ResetArrays(int(num_arrays)), *data, **how)


__all__ = [
    "all_finite", "multi_adamw_update", "multi_all_finite", "multi_lamb_update", "multi_lars", "multi_mp_adamw_update",
    "multi_mp_lamb_update", "multi_mp_sgd_mom_update", "multi_mp_sgd_update", "multi_sgd_mom_update", "multi_sgd_update",
    "multi_sum_sq", "preloaded_multi_mp_sgd_mom_update", "preloaded_multi_mp_sgd_update", "preloaded_multi_sgd_mom_update",
    "preloaded_multi_sgd_update", "reset_arrays",
]  # fmt: skip
