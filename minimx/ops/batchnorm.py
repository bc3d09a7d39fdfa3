"""BatchNorm: each channel brought to mean 0 and variance 1 over the examples of a batch.

In training the statistics are those of the batch, and the data's gradient goes through them, too. Otherwise they are the running means
of those, two *auxiliary states*: arrays that no gradient changes, but, as in MXNet, the backward pass of training, so that a forward pass
without a backward one leaves them alone. All work goes a few examples at a time, so that the passes over the data after the first find it
in cache. Normalisations within an example are in norm.py. Book: chapter 3.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import DTypeError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, attributes, filled, hidden, normalize_axis, register, same_dtype
from .binary import broadcast_mul, broadcast_sub
from .checks import along_axis, require_float, require_shape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Unpack

TOGETHER = 1 << 17  # elements of the data that are worked on together


@attributes
class Channels(Op):
    """What the operators here share: where the channels are, and the data seen as (before, channels, after)."""

    axis: int = 1

    def channels(self, shape: Shape) -> int:
        return shape[normalize_axis(self, self.axis, len(shape))]

    def seen(self, shape: Shape) -> Shape:
        axis = normalize_axis(self, self.axis, len(shape))
        return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])

    def others(self, shape: Shape) -> tuple[int, ...]:
        """The axes that statistics go over."""
        axis = normalize_axis(self, self.axis, len(shape))
        return tuple(position for position in range(len(shape)) if position != axis)

    def spread(self, shape: Shape) -> Shape:
        """The shape in which a vector of one number for each channel broadcasts."""
        return along_axis(shape, normalize_axis(self, self.axis, len(shape)))


def parts(shape: Shape) -> Iterator[slice]:
    """Ranges of the first of the three axes of data that are worked on together."""
    step = max(1, TOGETHER // max(1, shape[1] * shape[2]))
    return (slice(start, start + step) for start in range(0, shape[0], step))


@register("BatchNorm")
class BatchNormLayer(Channels):
    inputs: ClassVar = ("data", "gamma", "beta", "moving_mean", "moving_var")
    aux: ClassVar = (3, 4)
    needs_training = True
    saves_inputs = (0, 1, 3, 4)
    saves_outputs: ClassVar[bool | tuple[int, ...]] = (1, 2)

    eps: float = 1e-3
    momentum: float = 0.9
    fix_gamma: bool = True
    use_global_stats: bool = False
    output_mean_var: bool = False
    axis: int = 1
    cudnn_off: bool = False
    min_calib_range: float | None = None
    max_calib_range: float | None = None
    training: bool = hidden(default=False)

    @property
    def num_outputs(self) -> int:
        return 3

    @property
    def num_visible(self) -> int:
        return 3 if self.output_mean_var else 1

    @property
    def of_batch(self) -> bool:
        """Whether the statistics are those of the batch rather than the running ones."""
        return self.training and not self.use_global_stats

    def infer(self, data: Spec, gamma: Spec, beta: Spec, moving_mean: Spec, moving_var: Spec) -> tuple[Spec, ...]:
        require_float(self, data)
        if not data.ndim:
            raise ShapeError(f"{self.name}: data has no axis, wants at least 1 dimension")
        channels = (self.channels(data.shape),)
        vectors = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
        for what, spec in vectors.items():
            require_shape(self, what, spec, channels, f"axis {self.axis} of data {data.shape}")
            if spec.dtype != gamma.dtype:
                raise DTypeError(
                    f"{self.name}: gamma is {gamma.dtype.name} but {what} is {spec.dtype.name}; convert one with astype()"
                )
        if not (data.dtype == "float16" and gamma.dtype == "float32"):  # half precision is too little for statistics
            same_dtype(self, data, gamma)
        return data, gamma, gamma

    def fill(self, data: Spec | None, *vectors: Spec | None) -> tuple[Spec | None, ...]:
        known = next((spec for spec in vectors if spec is not None and spec.ndim == 1 and spec.size), None)
        if data is None or not data.ndim:
            return (data, *vectors) if known is None else (data, *(filled(spec, known.shape, known) for spec in vectors))
        if known is not None:
            data = filled(data, [known.size if length != 1 else 0 for length in self.spread((2,) * data.ndim)], data)
        like = data.with_dtype("float32") if data.dtype == "float16" else data
        return (data, *(filled(spec, (self.channels(data.shape),), like) for spec in vectors))

    def kernel(self, xp: Any, data: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array) -> tuple[Array, ...]:
        shape = self.seen(data.shape)
        seen, exact = data.reshape(shape), xp.promote_types(data.dtype, xp.float32)
        mean, variance = moving_mean.astype(exact), moving_var.astype(exact)
        if self.of_batch:
            mean, variance = statistics(xp, seen, exact)
        scale = 1 / xp.sqrt(variance + exact.type(self.eps))
        slope = scale if self.fix_gamma else scale * gamma
        result = xp.empty(shape, data.dtype)
        for part in parts(shape):
            standardized = xp.subtract(seen[part], mean[:, None], dtype=exact, out=result[part] if exact == data.dtype else None)
            standardized *= slope[:, None]
            standardized += beta[:, None]
            if exact != data.dtype:
                result[part] = standardized
        return result.reshape(data.shape), mean.astype(gamma.dtype, copy=False), scale.astype(gamma.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any) -> tuple[Any, ...]:
        (head, to_mean, to_scale), (_, mean, scale) = g, y
        if not self.of_batch:
            return *self._frozen(head, data, gamma, mean, scale), None, None
        to_data = to_gamma = to_beta = None
        if head is not None:
            update = BatchNormBackward(self.axis, self.eps, self.momentum, self.fix_gamma)
            to_data, to_gamma, to_beta = apply(update, head, data, gamma, mean, scale, moving_mean, moving_var)
        # What a higher derivative, or a user with output_mean_var, asks of the statistics.
        spread, count = self.spread(data.shape), math.prod(data.shape) / gamma.shape[0]
        wide = data if data.dtype == gamma.dtype else data.astype(gamma.dtype)
        for part in (
            None if to_mean is None else (to_mean / count).reshape(spread).broadcast_to(data.shape),
            None
            if to_scale is None
            else broadcast_mul(
                broadcast_sub(wide, mean.reshape(spread)), (to_scale * scale * scale * scale / -count).reshape(spread)
            ),
        ):
            if part is not None:
                narrow = part if data.dtype == gamma.dtype else part.astype(data.dtype)
                to_data = narrow if to_data is None else to_data + narrow
        return to_data, to_gamma, to_beta, None, None

    def _frozen(self, head: Any, data: Any, gamma: Any, mean: Any, scale: Any) -> tuple[Any, ...]:
        """Gradients of data, gamma and beta where the statistics are constant."""
        if head is None:
            return None, None, None
        spread, others = self.spread(data.shape), self.others(data.shape)
        if data.dtype != gamma.dtype:
            to_data, *rest = self._frozen(head.astype(gamma.dtype), data.astype(gamma.dtype), gamma, mean, scale)
            return to_data.astype(data.dtype), *rest
        slope = scale if self.fix_gamma else scale * gamma
        standardized = broadcast_mul(broadcast_sub(data, mean.reshape(spread)), scale.reshape(spread))
        return (
            broadcast_mul(head, slope.reshape(spread)),
            gamma.zeros_like() if self.fix_gamma else summed(head * standardized, others),
            summed(head, others),
        )


def summed(array: Any, axes: tuple[int, ...]) -> Any:
    """The sum over `axes`; over none, the array."""
    return array.sum(axis=axes) if axes else array


def statistics(xp: Any, seen: Array, exact: Any) -> tuple[Array, Array]:
    """Mean and variance of each channel of data seen as (before, channels, after)."""
    count = max(seen.shape[0] * seen.shape[2], 1)
    mean = xp.add.reduce(seen, (0, 2), dtype=exact) / exact.type(count)
    total = xp.zeros_like(mean)
    for part in parts(seen.shape):
        centred = xp.subtract(seen[part], mean[:, None], dtype=exact)
        total += xp.einsum("ncp,ncp->c", centred, centred)
    return mean, total / exact.type(count)


@register("_backward_BatchNorm")
class BatchNormBackward(Channels):
    """From the gradient of the result to those of data, gamma and beta, in training; the running means are moved on the way.

    With `z = (data - mean) scale` the gradient of data is `gamma scale (g - mean(g) - z mean(g z))`: it has no part along 1 and along
    z, as z keeps its mean and variance whatever the data does. Here mean and scale are inputs in their own right.
    """

    inputs: ClassVar = ("head", "data", "gamma", "mean", "scale", "moving_mean", "moving_var")
    mutates: ClassVar = (5, 6)
    saves_inputs = (0, 1, 2, 3, 4)
    saves_outputs = False

    axis: int = 1
    eps: float = 1e-3
    momentum: float = 0.9
    fix_gamma: bool = True

    @property
    def num_outputs(self) -> int:
        return 3

    def infer(self, head: Spec, data: Spec, gamma: Spec, *vectors: Spec) -> tuple[Spec, ...]:
        require_shape(self, "head", head, data.shape, "data")
        same_dtype(self, head, data)
        return data, gamma, gamma

    def kernel(
        self,
        xp: Any,
        head: Array,
        data: Array,
        gamma: Array,
        mean: Array,
        scale: Array,
        moving_mean: Array,
        moving_var: Array,
    ) -> tuple[Array, ...]:
        shape = self.seen(data.shape)
        seen, heads = data.reshape(shape), head.reshape(shape)
        exact = xp.promote_types(data.dtype, xp.float32)
        mean, scale = mean.astype(exact, copy=False), scale.astype(exact, copy=False)
        for state, value in ((moving_mean, mean), (moving_var, 1 / (scale * scale) - exact.type(self.eps))):
            state *= state.dtype.type(self.momentum)
            state += (value * exact.type(1 - self.momentum)).astype(state.dtype, copy=False)
        to_beta = xp.add.reduce(heads, (0, 2), dtype=exact)
        to_gamma = xp.zeros_like(to_beta)
        for part in parts(shape):
            centred = xp.subtract(seen[part], mean[:, None], dtype=exact)
            to_gamma += xp.einsum("ncp,ncp->c", centred, heads[part].astype(exact, copy=False))
        to_gamma *= scale
        slope = scale if self.fix_gamma else scale * gamma
        share = exact.type(1 / max(shape[0] * shape[2], 1))
        along_itself, along_one = slope * scale * to_gamma * share, slope * to_beta * share
        result = xp.empty(shape, data.dtype)
        for part in parts(shape):
            total = xp.subtract(seen[part], mean[:, None], dtype=exact, out=result[part] if exact == data.dtype else None)
            total *= -along_itself[:, None]
            total += heads[part] * slope[:, None]
            total -= along_one[:, None]
            if exact != data.dtype:
                result[part] = total
        if self.fix_gamma:
            to_gamma = xp.zeros_like(to_gamma)
        return result.reshape(data.shape), to_gamma.astype(gamma.dtype, copy=False), to_beta.astype(gamma.dtype, copy=False)

    def vjp(self, g: Any, y: Any, head: Any, data: Any, gamma: Any, mean: Any, scale: Any, *states: Any) -> tuple[Any, ...]:
        if data.dtype != gamma.dtype:
            wide = [each if each is None else each.astype(gamma.dtype) for each in (g[0], head, data)]
            found = self.vjp((wide[0], *g[1:]), y, wide[1], wide[2], gamma, mean, scale, *states)
            return (*(each if each is None else each.astype(data.dtype) for each in found[:2]), *found[2:])
        spread, others = self.spread(data.shape), self.others(data.shape)
        count = math.prod(data.shape) / gamma.shape[0]

        def across(vector: Any) -> Any:
            return vector.reshape(spread)

        def average(array: Any) -> Any:
            return summed(array, others) / count

        centred = broadcast_sub(data, across(mean))
        z = broadcast_mul(centred, across(scale))
        one, itself = average(head), average(head * z)
        to_head = to_z = to_gamma = to_scale = None
        if g[0] is not None:
            slope = scale if self.fix_gamma else scale * gamma
            remainder = broadcast_sub(head, across(one)) - broadcast_mul(z, across(itself))  # head without its two parts
            along = average(g[0] * z)
            both = broadcast_sub(g[0], across(average(g[0]))) - broadcast_mul(z, across(along))
            to_head = broadcast_mul(both, across(slope))
            to_z = broadcast_mul(broadcast_mul(g[0], across(itself)) + broadcast_mul(head, across(along)), across(-slope))
            product = summed(g[0] * remainder, others)
            to_gamma = None if self.fix_gamma else product * scale
            to_scale = product if self.fix_gamma else product * gamma
        if g[1] is not None and not self.fix_gamma:
            part = broadcast_mul(z, across(g[1]))
            to_head = part if to_head is None else to_head + part
            part = broadcast_mul(head, across(g[1]))
            to_z = part if to_z is None else to_z + part
        if g[2] is not None:
            part = across(g[2]).broadcast_to(data.shape)
            to_head = part if to_head is None else to_head + part
        if to_z is None:
            return (to_head, *[None] * 6)
        to_data = broadcast_mul(to_z, across(scale))
        part = summed(to_z * centred, others)
        to_scale = part if to_scale is None else to_scale + part
        return to_head, to_data, to_gamma, -summed(to_data, others), to_scale, None, None


def BatchNorm(
    data: T | None = None,
    gamma: T | None = None,
    beta: T | None = None,
    moving_mean: T | None = None,
    moving_var: T | None = None,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    axis: int = 1,
    cudnn_off: bool = False,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    **how: Unpack[How],
) -> T:
    """Bring each channel to mean 0 and variance 1, then scale and shift: `y = gamma (data - mean) / sqrt(variance + eps) + beta`.

    In training, mean and variance are those of the batch; the backward pass moves the running ones towards them, `moving = momentum
    moving + (1 - momentum) of the batch`. Otherwise, and with `use_global_stats`, they are the running ones.

    **Shapes** data and result (..., C, ...) with C at `axis`, the others (C,); they are float32 where data is float16. **Args**
    `fix_gamma`: gamma counts as 1, and gets no gradient; `output_mean_var`: see below; `cudnn_off` and the ranges for quantisation change
    nothing. **Returns** the result; with `output_mean_var` a list of it, the means, and `1 / sqrt(variance + eps)`. **Gradient**
    `(h - mean(h) - z mean(h z)) / sqrt(variance + eps)` with h = gamma g and z the standardised data. **Source** MXNet `BatchNorm` (which
    also overwrites gamma with 1 if `fix_gamma`); Ioffe and Szegedy, 2015.
    """
    op = BatchNormLayer(
        eps=eps, momentum=momentum, fix_gamma=fix_gamma, use_global_stats=use_global_stats, output_mean_var=output_mean_var, axis=axis,
        cudnn_off=cudnn_off, min_calib_range=min_calib_range, max_calib_range=max_calib_range,
    )  # fmt: skip
    return apply(op, data, gamma, beta, moving_mean, moving_var, **how)


# ---- with relu in one operator


@register("_contrib_BatchNormWithReLU")
class BatchNormReLULayer(BatchNormLayer):
    saves_outputs = True

    def kernel(self, xp: Any, *arrays: Array) -> tuple[Array, ...]:
        result, mean, scale = super().kernel(xp, *arrays)
        return xp.maximum(result, result.dtype.type(0), out=result), mean, scale

    def vjp(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        head = None if g[0] is None else g[0] * (y[0] > 0)
        return super().vjp((head, *g[1:]), y, *inputs)


def BatchNormWithReLU(
    data: T | None = None,
    gamma: T | None = None,
    beta: T | None = None,
    moving_mean: T | None = None,
    moving_var: T | None = None,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    axis: int = 1,
    cudnn_off: bool = False,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    **how: Unpack[How],
) -> T:
    """`max(BatchNorm(data, ...), 0)` in one operator, which saves a pass over the data.

    **Shapes**, **Args** and **Returns** as BatchNorm. **Gradient** that of BatchNorm where the result is above 0, else 0. **Source** MXNet
    `contrib.BatchNormWithReLU`.
    """
    op = BatchNormReLULayer(
        eps=eps, momentum=momentum, fix_gamma=fix_gamma, use_global_stats=use_global_stats, output_mean_var=output_mean_var, axis=axis,
        cudnn_off=cudnn_off, min_calib_range=min_calib_range, max_calib_range=max_calib_range,
    )  # fmt: skip
    return apply(op, data, gamma, beta, moving_mean, moving_var, **how)


__all__ = ["BatchNorm", "BatchNormWithReLU"]
