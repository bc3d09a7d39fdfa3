"""BatchNorm: each channel brought to mean 0 and variance 1 over the examples of a batch.

In training the statistics are those of the batch, and the data's gradient goes through them, too. Otherwise they are the running means
of those, two *auxiliary states*: arrays that no gradient changes, but, as in MXNet, the backward pass of training, so that a forward pass
without a backward one leaves them alone. All work goes a few examples at a time, so that the passes over the data after the first find it
in cache, and on all cores. Normalizations within an example are in norm.py. Book: chapter 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import DTypeError, ShapeError
from ..op import NOT_GIVEN, Array, How, Op, Shape, Spec, T, apply, attributes, beside, hidden, register
from ..rules import filled, normalize_axis, same_dtype
from .binary import broadcast_mul, broadcast_sub
from .checks import along_axis, on_all_cores, require_float, require_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack

TOGETHER = 1 << 17  # elements of the data that are worked on together
FEW = 64  # elements of a channel in an example, below which runs are too short to be added up one by one
MANY = 1 << 13  # and beyond which BLAS would use threads of its own


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


def parts(shape: Shape) -> list[tuple[int, slice]]:
    """Ranges of the first of the three axes of data that are worked on together, numbered."""
    step = max(1, TOGETHER // max(1, shape[1] * shape[2]))
    return [(number, slice(start, start + step)) for number, start in enumerate(range(0, shape[0], step))]


def across(xp: Any, seen: Array, *vectors: Array) -> list[Array]:
    """Vectors of one number for each channel in a shape that broadcasts to data, `seen` as (before, channels, after)."""
    columns = [vector[:, None] for vector in vectors]
    if math.prod(seen.shape[1:]) > TOGETHER:
        return columns
    # A pass with two arrays takes half the time of one with an array and a number for each of its runs.
    repeated = [beside(xp, seen, seen.shape[1:], vector.dtype) for vector in vectors]
    for memory, column in zip(repeated, columns):
        memory[...] = column
    return repeated


def products(xp: Any, lhs: Array, rhs: Array) -> Array:
    """The sum of products of each channel."""
    length = lhs.shape[2]
    if length < FEW:
        return xp.einsum("ncp,ncp->cp", lhs, rhs).sum(axis=1)
    if length > MANY:
        return xp.einsum("ncp,ncp->c", lhs, rhs)
    # A product of vectors in BLAS for each example and channel, which is twice as fast.
    return xp.matmul(lhs[:, :, None], rhs[:, :, :, None])[:, :, 0, 0].sum(axis=0)


def sums(xp: Any, array: Array) -> Array:
    """The sum of each channel."""
    length = array.shape[2]
    if length < FEW:
        return array.sum(axis=0).sum(axis=1)
    if length > MANY:
        return array.sum(axis=(0, 2))
    return products(xp, array, xp.ones((1, 1, length), array.dtype))


@register("BatchNorm")
class BatchNormLayer(Channels):
    inputs: ClassVar = ("data", "gamma", "beta", "moving_mean", "moving_var")
    aux: ClassVar = (3, 4)
    takes_out = True
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

    def kernel(
        self, xp: Any, data: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array, out: Array | None = None
    ) -> tuple[Array, ...]:
        shape = self.seen(data.shape)
        seen, exact = data.reshape(shape), xp.promote_types(data.dtype, xp.float32)
        mean, variance = moving_mean.astype(exact), moving_var.astype(exact)
        if self.of_batch:
            mean, variance = self.statistics(xp, seen, exact)
        scale = 1 / xp.sqrt(variance + exact.type(self.eps))
        result = beside(xp, data, shape, data.dtype) if out is None else out.reshape(shape)
        centre, slope, shift = across(xp, seen, mean, scale if self.fix_gamma else scale * gamma, beta)

        def some(work: list[tuple[int, slice]]) -> None:
            for _, part in work:
                standardized = xp.subtract(seen[part], centre, dtype=exact, out=result[part] if exact == data.dtype else None)
                standardized *= slope
                standardized += shift
                if exact != data.dtype:
                    result[part] = standardized

        on_all_cores(xp, parts(shape), some)
        made = result.reshape(data.shape) if out is None else out
        return made, mean.astype(gamma.dtype, copy=False), scale.astype(gamma.dtype, copy=False)

    def statistics(self, xp: Any, seen: Array, exact: Any) -> tuple[Array, Array]:
        """Mean and variance of each channel of the batch."""
        return statistics(xp, seen, exact)

    def backward(self) -> BatchNormBackward:
        """The operator of its gradient."""
        return BatchNormBackward(self.axis, self.eps, self.momentum, self.fix_gamma)

    def vjp(self, g: Any, y: Any, data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any) -> tuple[Any, ...]:
        (head, to_mean, to_scale), (_, mean, scale) = g, y
        if not self.of_batch:
            return *self._frozen(head, data, gamma, mean, scale), None, None
        to_data = to_gamma = to_beta = None
        if head is not None:
            to_data, to_gamma, to_beta = apply(self.backward(), head, data, gamma, mean, scale, moving_mean, moving_var)
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
    """Mean and variance of each channel of data seen as (before, channels, after).

    The variance is the mean square about a guess less the square of how far the guess is off. The guess is the mean of the first examples:
    it is so near that no digits are lost in the difference, and one pass over the data is enough.
    """
    count = exact.type(max(seen.shape[0] * seen.shape[2], 1))
    ranges = parts(seen.shape)
    if not seen.size:
        return xp.zeros(seen.shape[1], exact), xp.zeros(seen.shape[1], exact)
    first = seen[ranges[0][1]]
    guess = sums(xp, first.astype(exact, copy=False)) / exact.type(first.shape[0] * first.shape[2])
    (centre,) = across(xp, seen, guess)
    found = xp.empty((len(ranges), 2, seen.shape[1]), exact)

    def some(work: list[tuple[int, slice]]) -> None:
        memory = beside(xp, seen, first.shape, exact)
        for number, part in work:
            centred = xp.subtract(seen[part], centre, out=memory[: len(seen[part])])
            found[number, 0], found[number, 1] = sums(xp, centred), products(xp, centred, centred)

    on_all_cores(xp, ranges, some)
    off, square = found.sum(axis=0) / count
    return guess + off, xp.maximum(square - off * off, 0)


@register("_backward_BatchNorm")
class BatchNormBackward(Channels):
    """From the gradient of the result to those of data, gamma and beta, in training; the running means are moved on the way.

    With `z = (data - mean) scale` the gradient of data is `gamma scale (g - mean(g) - z mean(g z))`: it has no part along 1 and along
    z, as z keeps its mean and variance whatever the data does. Here mean and scale are inputs in their own right.
    """

    inputs: ClassVar = ("head", "data", "gamma", "mean", "scale", "moving_mean", "moving_var")
    mutates: ClassVar = (5, 6)
    takes_out = True
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
        out: Array | None = None,
    ) -> tuple[Array, ...]:
        shape = self.seen(data.shape)
        seen, heads = data.reshape(shape), head.reshape(shape)
        exact = xp.promote_types(data.dtype, xp.float32)
        mean, scale = mean.astype(exact, copy=False), scale.astype(exact, copy=False)
        self.move(moving_mean, mean)
        self.move(moving_var, 1 / (scale * scale) - exact.type(self.eps))
        (centre,), ranges = across(xp, seen, mean), parts(shape)
        found = xp.zeros((max(len(ranges), 1), 2, shape[1]), exact)
        result = beside(xp, data, shape, data.dtype) if out is None else out.reshape(shape)

        def summed_up(work: list[tuple[int, slice]]) -> None:
            if not work:  # no example at all
                return
            memory = beside(xp, seen, seen[ranges[0][1]].shape, exact)
            for number, part in work:
                centred = xp.subtract(seen[part], centre, out=memory[: len(seen[part])])
                given = heads[part].astype(exact, copy=False)
                found[number, 0], found[number, 1] = sums(xp, given), products(xp, centred, given)

        on_all_cores(xp, ranges, summed_up)
        to_beta, to_gamma = found.sum(axis=0)
        to_gamma *= scale
        of_ones, of_itself = self.averages(xp, to_beta, to_gamma, shape[0] * shape[2])
        one, itself, slope = across(
            xp,
            seen,
            of_ones,
            scale * of_itself,
            scale if self.fix_gamma else scale * gamma.astype(exact, copy=False),
        )

        def some(work: list[tuple[int, slice]]) -> None:
            for _, part in work:
                total = xp.subtract(seen[part], centre, dtype=exact, out=result[part] if exact == data.dtype else None)
                total *= itself
                xp.subtract(heads[part], total, out=total)
                total -= one
                total *= slope
                if exact != data.dtype:
                    result[part] = total

        on_all_cores(xp, ranges, some)
        if self.fix_gamma:
            to_gamma = xp.zeros_like(to_gamma)
        made = result.reshape(data.shape) if out is None else out
        return made, to_gamma.astype(gamma.dtype, copy=False), to_beta.astype(gamma.dtype, copy=False)

    def move(self, state: Array, value: Array) -> None:
        """Move a running statistic towards that of the batch."""
        state *= state.dtype.type(self.momentum)
        state += (value * value.dtype.type(1 - self.momentum)).astype(state.dtype, copy=False)

    def averages(self, xp: Any, to_beta: Array, to_gamma: Array, count: int) -> tuple[Array, Array]:
        """mean(g) and mean(g z) of each channel over the batch, of whose sums are given those over `count` numbers a channel."""
        share = to_beta.dtype.type(1 / max(count, 1))
        return to_beta * share, to_gamma * share

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
    data: T | None = NOT_GIVEN,
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
    `fix_gamma`: gamma counts as 1, and gets no gradient; `output_mean_var`: see below; `cudnn_off` and the ranges for quantization change
    nothing. **Returns** the result; with `output_mean_var` a list of it, the means, and `1 / sqrt(variance + eps)`. **Gradient**
    `(h - mean(h) - z mean(h z)) / sqrt(variance + eps)` with h = gamma g and z the standardized data. **Source** MXNet `BatchNorm` (which
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

    def kernel(self, xp: Any, *arrays: Array, **out: Any) -> tuple[Array, ...]:
        result, mean, scale = super().kernel(xp, *arrays, **out)
        return xp.maximum(result, result.dtype.type(0), out=result), mean, scale

    def vjp(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        head = None if g[0] is None else g[0] * (y[0] > 0)
        return super().vjp((head, *g[1:]), y, *inputs)


def BatchNormWithReLU(
    data: T | None = NOT_GIVEN,
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
