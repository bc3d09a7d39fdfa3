"""Drawing classes by their probabilities, drawing different numbers from a long list, and shuffling.

All three look up random numbers in something sorted or numbered, so that the work is done by a few NumPy calls whatever the
number of draws. Keys and generators: random.py, seeds.py. Book: chapter 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, MXNetError, ShapeError, as_dtype, shown
from ..fields import converted
from ..op import Array, How, Op, Shape, Spec, T, Tensor, apply, register
from .binary import multiply
from .distributions import DOUBLE, HALF, SINGLE, check_dtype, check_shape
from .forms import require_kind
from .indexing import one_hot
from .random import RandomUniform, sample_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..seeds import Key

INT32, INT64, UINT8 = np.dtype(np.int32), np.dtype(np.int64), np.dtype(np.uint8)


def largest_whole(dtype: np.dtype[Any]) -> int:
    """The largest number up to which `dtype` has all whole numbers."""
    return int(np.iinfo(dtype).max) if dtype.kind in "iu" else 2 ** (np.finfo(dtype).nmant + 1)


@register("_sample_multinomial", "sample_multinomial")
class SampleMultinomial(Op):
    shape: tuple[int, ...] = ()
    get_prob: bool = False
    dtype: np.dtype[Any] = INT32

    needs_key: ClassVar[bool] = True
    saves_inputs: ClassVar[bool] = False

    @property
    def num_outputs(self) -> int:
        return 2 if self.get_prob else 1

    def draws(self, data: Shape) -> Shape:
        """The shape of the result for probabilities of shape `data`."""
        return data[:-1] + self.shape or (1,)

    def infer(self, data: Spec) -> Spec | tuple[Spec, ...]:
        check_shape(self, self.shape, 0)
        dtype = check_dtype(self, self.dtype, (INT32, UINT8, HALF, SINGLE, DOUBLE))
        require_kind(self, data.dtype, "f")
        if data.ndim == 0 or data.shape[-1] == 0:
            raise ShapeError(f"{self.name}: data has shape {data.shape}; wants a last axis with a probability for each class")
        if data.shape[-1] - 1 > largest_whole(dtype):
            raise ArgumentError(f"{self.name}: dtype is {dtype.name}, too small to number the {data.shape[-1]} classes of data")
        shape = self.draws(data.shape)
        drawn = Spec.of(shape, dtype)
        return (drawn, data.with_shape(shape)) if self.get_prob else drawn

    def kernel(self, xp: Any, data: Array, *, key: Key) -> Any:
        shape, classes = self.draws(data.shape), data.shape[-1]
        weights = data.reshape(-1, classes)
        rows = len(weights)
        draws = math.prod(shape) // rows if rows else 0
        sums = xp.cumsum(weights, axis=1, dtype=np.float64)
        total = sums[:, -1:].copy()
        if not ((weights >= 0).all() and (total > 0).all() and xp.isfinite(total).all()):
            raise MXNetError(f"{self.name}: data has a negative probability, one that is no number, or only zeros in a row")
        sums /= total
        # Row r's sums, moved to (r, r + 1], make one sorted list of all rows, in which one search finds all classes
        offsets = xp.arange(rows, dtype=np.float64)[:, None]
        points = key.generator(xp).random((rows, draws)) + offsets
        found = xp.searchsorted((sums + offsets).reshape(-1), points.reshape(-1), side="right").reshape(rows, draws)
        found -= classes * xp.arange(rows)[:, None]
        # The addition can round a point up to the row's end, beyond the last class that can be drawn
        xp.minimum(found, (sums < 1).sum(axis=1, keepdims=True), out=found)
        drawn = found.reshape(shape).astype(self.dtype)
        if not self.get_prob:
            return drawn
        return drawn, xp.log(xp.take_along_axis(weights, found, axis=1)).reshape(shape)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        # d log(p[k]) / dp[k] = 1 / p[k] at the class k that was drawn, and the draws of a row add up
        if not self.get_prob or g[1] is None or 0 in y[1].shape:
            return (None,)
        drawn, log_probability = y
        rows = (*data.shape[:-1], -1)
        slope = (g[1] * (-log_probability).exp()).reshape(rows).expand_dims(-1)
        hits = one_hot(drawn.reshape(rows), data.shape[-1], dtype=data.dtype)
        return (multiply(hits, slope).sum(axis=-2),)


def sample_multinomial(data: T, shape: Any = (), get_prob: bool = False, dtype: Any = "int32", **how: Unpack[How]) -> Any:
    """Numbers of classes, drawn with the probabilities `data`; with `get_prob` also the logarithms of their probabilities.

    **Shapes** data (..., classes), shape (s1, s2, ...), result (..., s1, s2, ...); data of one axis and shape () give (1,).
    **Args** data: not negative, along the last axis with sum 1; another sum is divided out of the draws, not of the logarithms.
    shape: an int or a tuple. dtype: int32 (the default), uint8 or a floating dtype. **Raises** MXNetError, when the value is
    asked for, for negative probabilities or a row of zeros. **Gradient** of data: `g / data` at each drawn class, from the
    logarithms. **Source** MXNet `sample_multinomial`.
    """
    return apply(SampleMultinomial(sample_shape(shape), get_prob, as_dtype(dtype, INT32)), data, **how)


@register("_shuffle", "shuffle")
class Shuffle(Op):
    needs_key: ClassVar[bool] = True

    def infer(self, data: Spec) -> Spec:
        if data.ndim == 0:
            raise ShapeError(f"{self.name}: data has no axis to shuffle along")
        return data

    def kernel(self, xp: Any, data: Array, *, key: Key) -> Array:
        return data[key.permutation(xp, len(data))]


def shuffle(data: T, **how: Unpack[How]) -> T:
    """A copy with the elements along the first axis in random order; each element, a row for instance, stays whole.

    **Shapes** data and result (N, ...). **Gradient** none: MXNet calls it not differentiable. **Source** MXNet `shuffle`.
    """
    return apply(Shuffle(), data, **how)


@register("_sample_unique_zipfian")
class SampleUniqueZipfian(Op):
    on_host = True

    range_max: int
    shape: tuple[int, ...] = ()

    inputs: ClassVar[tuple[str, ...]] = ()
    needs_key: ClassVar[bool] = True

    @property
    def num_outputs(self) -> int:
        return 2

    def infer(self) -> tuple[Spec, Spec]:
        if len(check_shape(self, self.shape, 0)) != 2:
            raise ShapeError(f"{self.name}: shape is {self.shape}; wants (batch, classes to draw)")
        return Spec.of(self.shape, INT64), Spec.of(self.shape[:1], INT64)

    def kernel(self, xp: Any, *, key: Key) -> tuple[Array, Array]:
        batch, wanted = self.shape
        if wanted > self.range_max:
            raise MXNetError(f"{self.name}: {wanted} different classes are wanted, but there are {self.range_max} (range_max)")
        generator = key.generator(np)  # the number of tries depends on what is drawn: not for a GPU
        classes, tries = np.empty(self.shape, INT64), np.empty(batch, INT64)
        for row in range(batch):
            drawn = np.empty(0, INT64)
            first = drawn
            while len(first) < wanted:
                points = generator.random(2 * wanted)
                # Not beyond the end, where rounding could carry the largest
                found = np.minimum(np.exp(points * math.log1p(self.range_max)).astype(INT64) - 1, self.range_max - 1)
                drawn = np.concatenate([drawn, found])
                first = np.sort(np.unique(drawn, return_index=True)[1])  # where each class came first
            first = first[:wanted]
            classes[row] = drawn[first]
            tries[row] = first[-1] + 1 if wanted else 0
        return xp.asarray(classes), xp.asarray(tries)

    def vjp(self, g: Any, y: Any) -> tuple[Any, ...]:
        return ()


def rand_zipfian(true_classes: T, num_sampled: int, range_max: int, ctx: Any = None) -> tuple[T, T, T]:
    """Classes below `range_max` for a sampled softmax: class k has the probability `log((k + 2) / (k + 1)) / log(range_max + 1)`.

    **Shapes** true_classes (...). **Args** ctx: the device; that of true_classes without it (arrays only).
    **Returns** the classes (num_sampled,), int64, and how often the true classes (...) and these (num_sampled,) were to be expected in
    as many draws, float64. **Gradient** none. **Source** MXNet `contrib.rand_zipfian`.
    """
    if not isinstance(true_classes, Tensor):
        raise ArgumentError(f"rand_zipfian: true_classes must be an NDArray or a Symbol, got {shown(true_classes)}")
    range_max = converted("rand_zipfian", "range_max", "int", range_max)
    num_sampled = converted("rand_zipfian", "num_sampled", "int", num_sampled)
    if range_max < 1:
        raise ArgumentError(f"rand_zipfian: range_max is {range_max}, wants 1 or more")
    given: Any = true_classes
    if ctx is not None:
        given = given.as_in_context(ctx)
    log_range = math.log(range_max + 1)
    where = {} if not hasattr(given, "context") else {"ctx": given.context}
    op = RandomUniform(shape=(num_sampled,), dtype=DOUBLE, high=log_range)
    drawn = type(given)._apply(op, (), where).exp() - 1
    sampled = drawn.clip(0, range_max - 1).astype("int64")

    def expected(classes: Any) -> Any:
        numbers = classes.astype("float64")
        return ((numbers + 2) / (numbers + 1)).log() * (num_sampled / log_range)

    return sampled, expected(given), expected(sampled)
