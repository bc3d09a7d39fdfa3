"""Steps of stochastic gradient descent for many weights in one operation.

The arrays of all weights come as one list, weight by weight: `w0, g0, mom0, w1, g1, mom1, ...`. One operation rather than a hundred
saves the engine's work for each. The steps themselves are those of optim.py. AdamW and LAMB are in optim_multi_adam.py.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, ShapeError, shown
from ..fields import converted
from ..op import Array, How, Op, Spec, T, apply, attributes, beside, register
from ..rules import same_dtype, same_shape
from .optim import MPSGDMomUpdate, MPSGDUpdate, SGDMomUpdate, SGDUpdate, Update, checked_update, joining, run

if TYPE_CHECKING:
    from typing_extensions import Unpack


def flattened(*lists: Sequence[T]) -> list[T]:
    """The elements of lists of equal length in the order that these operators want: all that belongs to the first weight
    first."""
    for each in lists:
        if not isinstance(each, (list, tuple)):
            raise ArgumentError(f"an update of many weights wants lists of arrays, got {shown(each)}")
    if len({len(each) for each in lists}) != 1:
        raise ArgumentError(
            f"an update of many weights wants lists of one length, got {', '.join(str(len(each)) for each in lists)}"
        )
    return [array for group in zip(*lists) for array in group]


def count_of(name: str, given: int, weights: Sequence[T]) -> int:
    """How many weights there are: `given`, or as many as the list has. Raises ArgumentError for no list, or an empty one."""
    if not isinstance(weights, (list, tuple)) or not weights:
        raise ArgumentError(f"{name}: weights must be a list of one array or more, got {shown(weights)}")
    return converted(name, "the number of weights", "int", given) or len(weights)


def floats(values: Any) -> tuple[float, ...]:
    """The rates of all weights, as an attribute. What is no list of numbers is left for the operator to refuse."""
    return tuple(values) if isinstance(values, list) else values


def outputs_of(results: Sequence[Any]) -> Any:
    """What a rule or a kernel gives for `results`: a tuple, but a single one as it is."""
    return results[0] if len(results) == 1 else tuple(results)


class Multiple(Op):
    """An operator on groups of arrays, a group a weight, perhaps with further inputs at the end."""

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
        if self.count < 1:
            raise ArgumentError(f"{self.name}: the number of weights is {self.count}, wants 1 or more")
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


# ---- any steps, in place


@functools.lru_cache(64)
def _positions(widths: tuple[int, ...], gradients: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of steps with so many arrays each, the positions of the weights, and of all arrays but the gradients."""
    firsts = tuple(itertools.accumulate(widths[:-1], initial=0))
    changed = [(first, *range(first + 1 + gradients, first + width)) for first, width in zip(firsts, widths)]
    return firsts, tuple(itertools.chain.from_iterable(changed))


@attributes
class Steps(Op):
    """Steps of any operators of optim.py, one for each weight, which change the weights in place, like the states.

    It is what an optimizer's `update` of several weights is, and not one of MXNet's operators: no name finds it. The arrays of the first
    step come first, then those of the second, and so on. For training on several devices in one memory, each weight has as many
    gradients, which are added: weight, gradients, states; and the results are so many `copies` of each new weight.
    """

    name = "update"
    inputs: ClassVar = ("data*",)
    saves_inputs = False
    saves_outputs = False
    reuses = True

    steps: tuple[Update, ...]
    gradients: int = 1
    copies: int = 0

    @property
    def num_outputs(self) -> int:
        return self.copies * len(self.steps)

    @functools.cached_property
    def widths(self) -> tuple[int, ...]:
        """How many arrays belong to each step."""
        return tuple([len(step.inputs) + self.gradients - 1 for step in self.steps])

    @property
    def firsts(self) -> tuple[int, ...]:
        """The position of each weight."""
        return _positions(self.widths, self.gradients)[0]

    @property
    def mutates(self) -> tuple[int, ...]:  # type: ignore[override]  # how many there are depends on the attributes
        """Everything but the gradients, which come second."""
        return _positions(self.widths, self.gradients)[1]

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        made: list[Spec] = []
        fits: set[tuple[int, int]] = set()  # steps, with a dtype, that take a weight whose other arrays are all like it
        for step, arrays in self.each(data):
            weight = arrays[0]
            alike = arrays.count(weight) == len(arrays)
            if not alike or (id(step), id(weight.dtype)) not in fits:
                operands, others = self.parted(arrays)
                step.infer(*operands)
                for other in others:
                    same_dtype(self, operands[1], other)
                    same_shape(self, operands[1], other)
                if alike:
                    fits.add((id(step), id(weight.dtype)))
            made += [weight] * self.copies
        return tuple(made)

    def parted(self, arrays: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """The arrays of a step as its operands, and further gradients."""
        return (*arrays[:2], *arrays[1 + self.gradients :]), arrays[2 : 1 + self.gradients]

    def each(self, data: Sequence[Any]) -> Iterator[tuple[Update, Sequence[Any]]]:
        """The steps, and of `data` what belongs to each."""
        for step, first, width in zip(self.steps, self.firsts, self.widths):
            yield step, data[first : first + width]

    def kernel(self, xp: Any, *data: Array) -> tuple[Array, ...]:
        count = sum(self.widths)
        data, memory = data[:count], data[count:]
        weights = [data[first] for first in self.firsts for _ in range(self.copies)]
        copies = [
            beside(xp, weight, weight.shape, weight.dtype) if place is None else place
            for weight, place in itertools.zip_longest(weights, memory)
        ]
        if xp is np and joining and joining[0](self, data, copies):
            return tuple(copies)
        work: list[Any] = []
        for step, arrays in self.each(data):
            (weight, gradient, *states), others = self.parted(arrays)
            for other in others:
                gradient = gradient + other
            work += step.work(xp, weight, weight, gradient, *states)
        run(xp, work)
        for copy, weight in zip(copies, weights):
            copy[...] = weight
        return tuple(copies)

    def vjp(self, g: Any, y: Any, *data: Any) -> tuple[Any, ...]:
        return (None,) * len(data)  # a step is no part of what is differentiated


# ---- stochastic gradient descent


class MultiDescent(Multiple):
    """Steps of SGD. With `preloaded`, learning rates and weight decays are the last two inputs, arrays; otherwise attributes."""

    momentum: float
    rescale_grad: float
    clip_gradient: float
    num_weights: int

    @property
    def count(self) -> int:
        return self.num_weights

    def rates(self, data: Sequence[Array]) -> tuple[Sequence[float], Sequence[float]]:
        """(learning rates, weight decays)."""
        raise NotImplementedError

    def single(self, lr: float, wd: float) -> Update:
        """The operator for one weight."""
        common: dict[str, Any] = {
            "lr": lr,
            "wd": wd,
            "rescale_grad": self.rescale_grad,
            "clip_gradient": self.clip_gradient,
        }
        mixed = self.group[-1] == "weight32"
        if "mom" in self.group:
            return (MPSGDMomUpdate if mixed else SGDMomUpdate)(momentum=self.momentum, **common)
        return (MPSGDUpdate if mixed else SGDUpdate)(**common)

    def kernel(self, xp: Any, *data: Array) -> Any:
        work: list[Any] = []
        results = []
        for arrays, lr, wd in zip(self.groups(data), *self.rates(data)):
            results.append(xp.empty_like(arrays[0]))
            work += self.single(lr, wd).work(xp, results[-1], *arrays)
        run(xp, work)
        return outputs_of(results)


@attributes
class GivenRates(MultiDescent):
    lrs: tuple[float, ...]
    wds: tuple[float, ...]
    momentum: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0
    num_weights: int = 1

    def infer(self, *data: Spec) -> Spec | tuple[Spec, ...]:
        self.require_lengths(lrs=self.lrs, wds=self.wds)
        return MultiDescent.infer(self, *data)

    def rates(self, data: Sequence[Array]) -> tuple[Sequence[float], Sequence[float]]:
        return self.lrs, self.wds


@attributes
class PreloadedRates(MultiDescent):
    tail: ClassVar = ("lrs", "wds")

    momentum: float = 0.0
    rescale_grad: float = 1.0
    clip_gradient: float = -1.0
    num_weights: int = 1

    def infer(self, *data: Spec) -> Spec | tuple[Spec, ...]:
        weights = MultiDescent.infer(self, *data)
        for name, spec in zip(self.tail, data[-2:]):
            if spec.shape != (self.count,):
                raise ShapeError(f"{self.name}: {name} has shape {spec.shape}, {self.count} weights need {(self.count,)}")
        return weights

    def rates(self, data: Sequence[Array]) -> tuple[Sequence[float], Sequence[float]]:
        return data[-2].tolist(), data[-1].tolist()


@register("multi_sgd_update")
class MultiSGDUpdate(GivenRates):
    group: ClassVar = ("weight", "grad")


@register("multi_sgd_mom_update")
class MultiSGDMomUpdate(GivenRates):
    group: ClassVar = ("weight", "grad", "mom")


@register("multi_mp_sgd_update")
class MultiMPSGDUpdate(GivenRates):
    group: ClassVar = ("weight", "grad", "weight32")


@register("multi_mp_sgd_mom_update")
class MultiMPSGDMomUpdate(GivenRates):
    group: ClassVar = ("weight", "grad", "mom", "weight32")


@register("preloaded_multi_sgd_update")
class PreloadedMultiSGDUpdate(PreloadedRates):
    group: ClassVar = ("weight", "grad")


@register("preloaded_multi_sgd_mom_update")
class PreloadedMultiSGDMomUpdate(PreloadedRates):
    group: ClassVar = ("weight", "grad", "mom")


@register("preloaded_multi_mp_sgd_update")
class PreloadedMultiMPSGDUpdate(PreloadedRates):
    group: ClassVar = ("weight", "grad", "weight32")


@register("preloaded_multi_mp_sgd_mom_update")
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
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
        num_weights=num_weights,
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
        momentum=momentum,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
        num_weights=num_weights,
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
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
        num_weights=num_weights,
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
        momentum=momentum,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
        num_weights=num_weights,
    )
    return apply(op, *data, **how)


def preloaded_multi_sgd_update(
    *data: T, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1, **how: Unpack[How]
) -> Any:
    """`multi_sgd_update` whose rates are arrays: data is `w0, g0, w1, g1, ..., lrs, wds`. **Source** MXNet
    `preloaded_multi_sgd_update`."""
    op = PreloadedMultiSGDUpdate(rescale_grad=rescale_grad, clip_gradient=clip_gradient, num_weights=num_weights)
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
        momentum=momentum,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
        num_weights=num_weights,
    )
    return apply(op, *data, **how)


def preloaded_multi_mp_sgd_update(
    *data: T, rescale_grad: float = 1.0, clip_gradient: float = -1.0, num_weights: int = 1, **how: Unpack[How]
) -> Any:
    """`multi_mp_sgd_update` whose rates are arrays: data is `w0, g0, weight32_0, ..., lrs, wds`. **Source** MXNet
    `preloaded_multi_mp_sgd_update`."""
    op = PreloadedMultiMPSGDUpdate(rescale_grad=rescale_grad, clip_gradient=clip_gradient, num_weights=num_weights)
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
        momentum=momentum,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
        num_weights=num_weights,
    )
    return apply(op, *data, **how)


__all__ = [
    "multi_mp_sgd_mom_update", "multi_mp_sgd_update", "multi_sgd_mom_update", "multi_sgd_update", "preloaded_multi_mp_sgd_mom_update",
    "preloaded_multi_mp_sgd_update", "preloaded_multi_sgd_mom_update", "preloaded_multi_sgd_update",
]  # fmt: skip
