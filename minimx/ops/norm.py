"""Normalization within an example: LayerNorm, InstanceNorm, GroupNorm, L2Normalization.

The first three standardize groups of elements to mean 0 and variance 1 and then scale and shift them; they differ only in what a
group is: the elements along one axis, those of one channel, those of some channels. Mean and deviation are kept as further
outputs, because the gradient needs them. BatchNorm, whose statistics go over the examples of a batch, is another subject. Book:
chapter 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, beside, register
from ..rules import filled, normalize_axis, same_dtype
from .binary import broadcast_div, broadcast_mul, broadcast_sub
from .checks import accurate, along_axis, require_choice, require_float, require_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


def standardized(xp: Any, data: Array, axis: int, eps: float) -> tuple[Array, Array, Array]:
    """(standardized data, mean, deviation) along `axis`; the deviation is sqrt(variance + eps)."""
    mean = data.mean(axis, keepdims=True)
    centred = xp.subtract(data, mean, out=beside(xp, data, data.shape, data.dtype))
    squares = xp.square(centred, out=beside(xp, data, data.shape, data.dtype))
    deviation = xp.sqrt(squares.mean(axis, keepdims=True) + data.dtype.type(eps))
    centred /= deviation
    return centred, mean, deviation


def standardized_vjp(to_result: Any, to_mean: Any, to_deviation: Any, result: Any, deviation: Any, axis: int) -> Any:
    """Gradient of the data from those of the three values of `standardized`, any of which may be None.

    A standardized group keeps its mean and variance whatever its elements do, so the gradient has no part along 1 and along
    itself.
    """
    total = None
    if to_result is not None:
        along_one = to_result.mean(axis=axis, keepdims=True)
        along_itself = (to_result * result).mean(axis=axis, keepdims=True)
        total = broadcast_div(broadcast_sub(to_result, along_one) - broadcast_mul(result, along_itself), deviation)
    share = 1.0 / result.shape[axis]
    for part in (
        None if to_mean is None else (to_mean * share).broadcast_to(result.shape),
        None if to_deviation is None else broadcast_mul(result, to_deviation * share),
    ):
        if part is not None:
            total = part if total is None else total + part
    return total


class StandardizingLayer(Op):
    """What LayerNorm, InstanceNorm and GroupNorm share: the data seen as an array in which groups lie along `axis` and gamma and
    beta, in `shape`, broadcast."""

    inputs: ClassVar = ("data", "gamma", "beta")

    eps: float

    @property
    def num_outputs(self) -> int:
        return 3

    @property
    def num_visible(self) -> int:
        return 3 if getattr(self, "output_mean_var", False) else 1

    def layout(self, shape: Shape) -> tuple[Shape, int, Shape]:
        """(the shape to see data in, the axis of the groups there, the shape of gamma and beta there)."""
        raise NotImplementedError

    def parameters(self, shape: Shape) -> Shape:
        """The shape of gamma and beta for data of `shape`."""
        raise NotImplementedError

    def statistics(self, shape: Shape) -> Shape:
        """The shape of the outputs mean and deviation."""
        raise NotImplementedError

    def infer(self, data: Spec, gamma: Spec, beta: Spec) -> tuple[Spec, ...]:
        require_float(self, data)
        same_dtype(self, data, gamma, beta)
        for what, spec in (("gamma", gamma), ("beta", beta)):
            require_shape(self, what, spec, self.parameters(data.shape), f"data of shape {data.shape}")
        statistics = data.with_shape(self.statistics(data.shape))
        return data, statistics, statistics

    def fill(self, data: Spec | None, gamma: Spec | None, beta: Spec | None) -> tuple[Spec | None, ...]:
        if data is None or not data.ndim:
            return data, gamma, beta
        shape = self.parameters(data.shape)
        return data, filled(gamma, shape, data), filled(beta, shape, data)

    def kernel(self, xp: Any, data: Array, gamma: Array, beta: Array) -> tuple[Array, ...]:
        seen, axis, spread = self.layout(data.shape)
        result, mean, deviation = standardized(xp, accurate(xp, data).reshape(seen), axis, self.eps)
        result *= gamma.reshape(spread)
        result += beta.reshape(spread)
        statistics = self.statistics(data.shape)
        return (
            result.astype(data.dtype, copy=False).reshape(data.shape),
            mean.astype(data.dtype, copy=False).reshape(statistics),
            deviation.astype(data.dtype, copy=False).reshape(statistics),
        )

    def vjp(self, g: Any, y: Any, data: Any, gamma: Any, beta: Any) -> tuple[Any, ...]:
        seen, axis, spread = self.layout(data.shape)
        grouped = tuple(1 if position == axis else length for position, length in enumerate(seen))
        shared = tuple(position for position, length in enumerate(spread) if length == 1)
        mean, deviation = y[1].reshape(grouped), y[2].reshape(grouped)
        result = broadcast_div(broadcast_sub(data.reshape(seen), mean), deviation)
        to_result = to_gamma = to_beta = None
        if g[0] is not None:
            head = g[0].reshape(seen)
            to_result = broadcast_mul(head, gamma.reshape(spread))
            to_gamma = (head * result).sum(axis=shared).reshape(gamma.shape) if shared else head * result
            to_beta = head.sum(axis=shared).reshape(beta.shape) if shared else head
        to_mean, to_deviation = (None if each is None else each.reshape(grouped) for each in g[1:])
        to_data = standardized_vjp(to_result, to_mean, to_deviation, result, deviation, axis)
        return to_data.reshape(data.shape), to_gamma, to_beta


@register("LayerNorm")
class LayerNormLayer(StandardizingLayer):
    axis: int = -1
    eps: float = 1e-5
    output_mean_var: bool = False

    def layout(self, shape: Shape) -> tuple[Shape, int, Shape]:
        axis = normalize_axis(self, self.axis, len(shape))
        return shape, axis, along_axis(shape, axis)

    def parameters(self, shape: Shape) -> Shape:
        return (shape[normalize_axis(self, self.axis, len(shape))],)

    def statistics(self, shape: Shape) -> Shape:
        axis = normalize_axis(self, self.axis, len(shape))
        return (*shape[:axis], 1, *shape[axis + 1 :])


def LayerNorm(
    data: T,
    gamma: T | None = None,
    beta: T | None = None,
    axis: int = -1,
    eps: float = 1e-5,
    output_mean_var: bool = False,
    **how: Unpack[How],
) -> T:
    """Standardize along one axis, then scale and shift: `y = gamma (data - mean) / sqrt(variance + eps) + beta`.

    **Shapes** data and result (..., C), gamma and beta (C,), C the length of `axis`. **Returns** the result; with
    `output_mean_var` a list of it, the means and the deviations `sqrt(variance + eps)`, of length 1 along `axis`. **Gradient**
    `(h - mean(h) - z mean(h z)) / deviation` with h = gamma g and z the standardized data. **Source** MXNet `LayerNorm`; Ba et
    al., 2016.
    """
    return apply(LayerNormLayer(axis, eps, output_mean_var), data, gamma, beta, **how)


class ChannelGroups(StandardizingLayer):
    """Groups of whole channels: data (N, C, ...) is seen as (N, groups, all elements of a group)."""

    def groups(self, shape: Shape) -> int:
        raise NotImplementedError

    def layout(self, shape: Shape) -> tuple[Shape, int, Shape]:
        groups = self.groups(shape)
        return (shape[0], groups, math.prod(shape[1:]) // groups), 2, (1, groups, 1)

    def parameters(self, shape: Shape) -> Shape:
        if len(shape) < 3:
            raise ShapeError(f"{self.name}: data has shape {shape}, wants (N, C, ...) with at least 3 dimensions")
        return (self.groups(shape),)

    def statistics(self, shape: Shape) -> Shape:
        return shape[0], self.groups(shape)


@register("InstanceNorm")
class InstanceNormLayer(ChannelGroups):
    eps: float = 1e-3

    def groups(self, shape: Shape) -> int:
        return shape[1]


def InstanceNorm(data: T, gamma: T | None = None, beta: T | None = None, eps: float = 1e-3, **how: Unpack[How]) -> T:
    """Standardize each channel of each example, then scale and shift: `y = gamma (data - mean) / sqrt(variance + eps) + beta`.

    **Shapes** data and result (N, C, ...), gamma and beta (C,). **Gradient** as for LayerNorm. **Source** MXNet `InstanceNorm`;
    Ulyanov et al., 2016.
    """
    return apply(InstanceNormLayer(eps), data, gamma, beta, **how)


@register("GroupNorm")
class GroupNormLayer(ChannelGroups):
    num_groups: int = 1
    eps: float = 1e-5
    output_mean_var: bool = False

    def groups(self, shape: Shape) -> int:
        if self.num_groups < 1 or shape[1] % self.num_groups:
            raise ArgumentError(
                f"GroupNorm: num_groups={self.num_groups} does not divide the {shape[1]} channels of data {shape}"
            )
        return self.num_groups


def GroupNorm(
    data: T,
    gamma: T | None = None,
    beta: T | None = None,
    num_groups: int = 1,
    eps: float = 1e-5,
    output_mean_var: bool = False,
    **how: Unpack[How],
) -> T:
    """Standardize groups of channels of each example, then scale and shift: `y = gamma (data - mean) / sqrt(variance + eps) +
    beta`.

    **Shapes** data and result (N, C, ...), gamma and beta (num_groups,). **Returns** the result; with `output_mean_var` a list of
    it, the means and the deviations (N, num_groups). **Gradient** as for LayerNorm. **Source** MXNet 1.9 `GroupNorm`; Wu, He,
    2018 (where gamma and beta have an element for each channel).
    """
    return apply(GroupNormLayer(num_groups, eps, output_mean_var), data, gamma, beta, **how)


@register("L2Normalization")
class L2NormalizationLayer(Op):
    saves_inputs = False

    eps: float = 1e-10
    mode: str = "instance"

    @property
    def num_outputs(self) -> int:
        return 2

    @property
    def num_visible(self) -> int:
        return 1

    def _axes(self, ndim: int) -> tuple[int, ...]:
        return {"instance": tuple(range(1, ndim)), "channel": (1,), "spatial": tuple(range(2, ndim))}[self.mode]

    def infer(self, data: Spec) -> tuple[Spec, ...]:
        require_choice(self, "mode", self.mode, "instance", "channel", "spatial")
        require_float(self, data)
        least = 2 if self.mode == "instance" else 3
        if data.ndim < least:
            raise ShapeError(
                f"L2Normalization: data has shape {data.shape}, mode={self.mode!r} needs at least {least} dimensions"
            )
        axes = self._axes(data.ndim)
        return data, data.with_shape([1 if axis in axes else length for axis, length in enumerate(data.shape)])

    def kernel(self, xp: Any, data: Array) -> tuple[Array, ...]:
        wide = accurate(xp, data)
        norm = xp.sqrt(xp.square(wide).sum(self._axes(data.ndim), keepdims=True) + wide.dtype.type(self.eps))
        return (wide / norm).astype(data.dtype, copy=False), norm.astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        (head, to_norm), (result, norm) = g, y
        total = None
        if head is not None:
            along = (head * result).sum(axis=self._axes(len(data.shape)), keepdims=True)
            total = broadcast_div(head - broadcast_mul(result, along), norm)
        if to_norm is not None:
            part = broadcast_mul(result, to_norm)
            total = part if total is None else total + part
        return (total,)


def L2Normalization(data: T, eps: float = 1e-10, mode: str = "instance", **how: Unpack[How]) -> T:
    """Divide by the Euclidean norm: `y = data / sqrt(sum(data ** 2) + eps)`.

    **Shapes** data and result (N, C, ...). **Args** `mode`: what the sum goes over, "instance" all but the first axis, "channel"
    axis 1, "spatial" all axes from 2 on. **Gradient** `(g - y sum(g y)) / norm`. **Source** MXNet `L2Normalization`.
    """
    return apply(L2NormalizationLayer(eps, mode), data, **how)


__all__ = ["GroupNorm", "InstanceNorm", "L2Normalization", "LayerNorm"]
