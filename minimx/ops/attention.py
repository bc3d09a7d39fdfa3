"""Attention of a Transformer in two products: scores of queries and keys, and sums of values weighted by them.

The projections of all heads lie in one array (steps, batch, heads x parts x size): for each head its query, key and value (three *parts*)
or, where queries come from elsewhere, its key and value (two), side by side, as one layer makes them from one input. So one product reads
each part with strides, and no array is copied to take it out. Scores are divided by the root of the size, so that they do not grow with it.
Vaswani et al., 2017.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Kind, Op, Shape, Spec, T, apply, attributes, register
from ..rules import require_ndim, same_dtype
from .checks import accurate, require_float, require_shape
from .joining import stack
from .linalg import batch_dot

if TYPE_CHECKING:
    from typing_extensions import Unpack

AXES = ("steps", "batch", "heads with their parts")


@register("_contrib_div_sqrt_dim")
class DivideByRoot(Op):
    takes_out = True
    saves_inputs = False
    saves_outputs = False

    def infer(self, data: Spec) -> Spec:
        require_float(self, data)
        if not data.ndim:
            raise ShapeError(f"{self.name}: data has no axis, wants at least 1 dimension")
        return data

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        return xp.divide(data, data.dtype.type(math.sqrt(data.shape[-1])), out=out)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (apply(self, g),)


def div_sqrt_dim(data: T, **how: Unpack[How]) -> T:
    """`data / sqrt(D)`, where D is the length of the last axis.

    **Shapes** data and result (..., D). **Gradient** `g / sqrt(D)`. **Source** MXNet `contrib.div_sqrt_dim`.
    """
    return apply(DivideByRoot(), data, **how)


# ---- products of parts


@attributes
class Heads(Op):
    """Operators on projections in which each of `heads` has so many parts side by side."""

    kind = Kind.GEMM
    saves_outputs = False
    required = ("heads",)

    heads: int = 0

    def check(self, what: str, spec: Spec, parts: int) -> Shape:
        """(steps, batch x heads, size) of a part. Raises ShapeError unless `spec` is `parts` of them for each head."""
        require_float(self, spec, what)
        require_ndim(self, what, spec, 3, axes=AXES)
        if self.heads < 1:
            raise ArgumentError(f"{self.name}: heads={self.heads}, wants the number of heads, 1 or more")
        steps, batch, width = spec.shape
        if not width or width % (parts * self.heads):
            raise ShapeError(
                f"{self.name}: {what} has shape {spec.shape}, whose last axis is not {parts} x heads={self.heads} parts"
            )
        return steps, batch * self.heads, width // (parts * self.heads)

    def part(self, array: Array, parts: int, number: int) -> Array:
        """One part of all heads: a view (batch x heads, steps, size)."""
        steps, batch, width = array.shape
        size = width // (parts * self.heads)
        return array.reshape(steps, batch * self.heads, parts, size)[:, :, number].transpose(1, 0, 2)

    def taken(self, tensor: Any, parts: int, number: int) -> Any:
        """`part` of a tensor, for gradients."""
        steps, batch, width = tensor.shape
        size = width // (parts * self.heads)
        apart = tensor.reshape((steps, batch * self.heads, parts, size)).slice_axis(axis=2, begin=number, end=number + 1)
        return apart.reshape((steps, batch * self.heads, size)).transpose((1, 0, 2))

    def put_together(self, tensor: Any, *parts: Any) -> Any:
        """The gradient of `tensor` from those of its parts (batch x heads, steps, size); None is no gradient."""
        some = next(part for part in parts if part is not None)
        each = [some.zeros_like() if part is None else part for part in parts]
        return stack(*(part.transpose((1, 0, 2)) for part in each), axis=2).reshape(tensor.shape)

    def scores(self, xp: Any, queries: Array, keys: Array, dtype: Any) -> Array:
        result = xp.matmul(accurate(xp, queries), accurate(xp, keys).transpose(0, 2, 1))
        result *= result.dtype.type(1 / math.sqrt(queries.shape[2]))
        return result.astype(dtype, copy=False)

    def weighted(self, xp: Any, weights: Array, values: Array, dtype: Any) -> Array:
        heads, steps, _ = weights.shape
        exact = accurate(xp, values)
        result = xp.empty((steps, heads, values.shape[2]), exact.dtype)
        xp.matmul(accurate(xp, weights), exact, out=result.transpose(1, 0, 2))
        return result.reshape(steps, heads // self.heads, self.heads * values.shape[2]).astype(dtype, copy=False)

    def check_weights(self, attention: Spec, values: Shape) -> Shape:
        """The shape of values (steps, batch x heads, size), weighted. Raises unless there are weights for them all."""
        require_ndim(self, "attention", attention, 3, axes=("batch x heads", "steps of queries", "steps of values"))
        steps, heads, size = values
        require_shape(self, "attention", attention, (heads, attention.shape[1], steps), "as many heads and steps of values")
        return attention.shape[1], heads // self.heads, self.heads * size


@register("_contrib_interleaved_matmul_selfatt_qk")
class SelfAttentionScores(Heads):
    inputs: ClassVar = ("queries_keys_values",)

    def infer(self, queries_keys_values: Spec) -> Spec:
        steps, heads, _ = self.check("queries_keys_values", queries_keys_values, 3)
        return queries_keys_values.with_shape((heads, steps, steps))

    def kernel(self, xp: Any, queries_keys_values: Array) -> Array:
        queries, keys = (self.part(queries_keys_values, 3, number) for number in (0, 1))
        return self.scores(xp, queries, keys, queries_keys_values.dtype)

    def vjp(self, g: Any, y: Any, queries_keys_values: Any) -> tuple[Any, ...]:
        queries, keys = (self.taken(queries_keys_values, 3, number) for number in (0, 1))
        g = g / math.sqrt(queries.shape[2])
        to_queries, to_keys = batch_dot(g, keys), batch_dot(g, queries, transpose_a=True)
        return (self.put_together(queries_keys_values, to_queries, to_keys, None),)


@register("_contrib_interleaved_matmul_selfatt_valatt")
class SelfAttentionValues(Heads):
    inputs: ClassVar = ("queries_keys_values", "attention")

    def infer(self, queries_keys_values: Spec, attention: Spec) -> Spec:
        values = self.check("queries_keys_values", queries_keys_values, 3)
        same_dtype(self, queries_keys_values, attention)
        return attention.with_shape(self.check_weights(attention, values))

    def kernel(self, xp: Any, queries_keys_values: Array, attention: Array) -> Array:
        return self.weighted(xp, attention, self.part(queries_keys_values, 3, 2), attention.dtype)

    def vjp(self, g: Any, y: Any, queries_keys_values: Any, attention: Any) -> tuple[Any, ...]:
        g, values = self.taken(g, 1, 0), self.taken(queries_keys_values, 3, 2)
        to_values = batch_dot(attention, g, transpose_a=True)
        return self.put_together(queries_keys_values, None, None, to_values), batch_dot(g, values, transpose_b=True)


@register("_contrib_interleaved_matmul_encdec_qk")
class EncoderDecoderScores(Heads):
    inputs: ClassVar = ("queries", "keys_values")

    def infer(self, queries: Spec, keys_values: Spec) -> Spec:
        steps, heads, size = self.check("queries", queries, 1)
        keys = self.check("keys_values", keys_values, 2)
        same_dtype(self, queries, keys_values)
        if keys[1:] != (heads, size):
            raise ShapeError(
                f"{self.name}: queries have shape {queries.shape}, keys_values {keys_values.shape}; their batch must be equal and the "
                "last axis twice as long"
            )
        return queries.with_shape((heads, steps, keys[0]))

    def kernel(self, xp: Any, queries: Array, keys_values: Array) -> Array:
        return self.scores(xp, self.part(queries, 1, 0), self.part(keys_values, 2, 0), queries.dtype)

    def vjp(self, g: Any, y: Any, queries: Any, keys_values: Any) -> tuple[Any, ...]:
        apart, keys = self.taken(queries, 1, 0), self.taken(keys_values, 2, 0)
        g = g / math.sqrt(keys.shape[2])
        to_queries, to_keys = batch_dot(g, keys), batch_dot(g, apart, transpose_a=True)
        return self.put_together(queries, to_queries), self.put_together(keys_values, to_keys, None)


@register("_contrib_interleaved_matmul_encdec_valatt")
class EncoderDecoderValues(Heads):
    inputs: ClassVar = ("keys_values", "attention")

    def infer(self, keys_values: Spec, attention: Spec) -> Spec:
        values = self.check("keys_values", keys_values, 2)
        same_dtype(self, keys_values, attention)
        return attention.with_shape(self.check_weights(attention, values))

    def kernel(self, xp: Any, keys_values: Array, attention: Array) -> Array:
        return self.weighted(xp, attention, self.part(keys_values, 2, 1), attention.dtype)

    def vjp(self, g: Any, y: Any, keys_values: Any, attention: Any) -> tuple[Any, ...]:
        g, values = self.taken(g, 1, 0), self.taken(keys_values, 2, 1)
        to_values = batch_dot(attention, g, transpose_a=True)
        return self.put_together(keys_values, None, to_values), batch_dot(g, values, transpose_b=True)


def interleaved_matmul_selfatt_qk(queries_keys_values: T, heads: int = 0, **how: Unpack[How]) -> T:
    """The scores of self-attention: for each head, products of queries and keys divided by the root of their size D.

    **Shapes** queries_keys_values (L, N, 3 H D), result (N H, L, L), for L steps and H `heads`. **Gradient** that of the products, 0 for
    the values. **Source** MXNet `contrib.interleaved_matmul_selfatt_qk` (float32 on CPU).
    """
    return apply(SelfAttentionScores(heads), queries_keys_values, **how)


def interleaved_matmul_selfatt_valatt(queries_keys_values: T, attention: T, heads: int = 0, **how: Unpack[How]) -> T:
    """The result of self-attention: for each head, sums of values with the weights `attention`.

    **Shapes** queries_keys_values (L, N, 3 H D), attention (N H, M, L), result (M, N, H D). **Gradient** that of the products, 0 for
    queries and keys. **Source** MXNet `contrib.interleaved_matmul_selfatt_valatt` (float32 on CPU).
    """
    return apply(SelfAttentionValues(heads), queries_keys_values, attention, **how)


def interleaved_matmul_encdec_qk(queries: T, keys_values: T, heads: int = 0, **how: Unpack[How]) -> T:
    """The scores of attention to other steps: for each head, products of queries and keys divided by the root of their size D.

    **Shapes** queries (M, N, H D), keys_values (L, N, 2 H D), result (N H, M, L). **Gradient** that of the products, 0 for the values.
    **Source** MXNet `contrib.interleaved_matmul_encdec_qk` (float32 on CPU).
    """
    return apply(EncoderDecoderScores(heads), queries, keys_values, **how)


def interleaved_matmul_encdec_valatt(keys_values: T, attention: T, heads: int = 0, **how: Unpack[How]) -> T:
    """The result of attention to other steps: for each head, sums of values with the weights `attention`.

    **Shapes** keys_values (L, N, 2 H D), attention (N H, M, L), result (M, N, H D). **Gradient** that of the products, 0 for the keys.
    **Source** MXNet `contrib.interleaved_matmul_encdec_valatt` (float32 on CPU).
    """
    return apply(EncoderDecoderValues(heads), keys_values, attention, **how)


__all__ = [
    "div_sqrt_dim", "interleaved_matmul_encdec_qk", "interleaved_matmul_encdec_valatt", "interleaved_matmul_selfatt_qk",
    "interleaved_matmul_selfatt_valatt",
]  # fmt: skip
