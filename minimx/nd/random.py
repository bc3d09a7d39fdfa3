"""`nd.random`: arrays of random numbers.

Each function takes numbers as parameters, and then a shape and a device; or arrays, and then draws numbers for each of their
elements on their device. What is drawn depends on `mx.random.seed` and the order of calls on the device only (seeds.py). The
operators are in minimx/ops/random.py and sampling.py. Book: chapter 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base import ArgumentError, DTypeLike, as_dtype
from ..device import Context
from ..ops import random as _ops
from ..ops.distributions import Random
from ..ops.forms import as_number
from ..ops.random import (
    exponential_like,
    gamma_like,
    generalized_negative_binomial_like,
    negative_binomial_like,
    normal_like,
    poisson_like,
    uniform_like,
    whole,
)
from ..ops.sampling import SampleUniqueZipfian, sample_multinomial, shuffle
from .creation import ShapeLike, as_known_shape, create, require_array
from .ndarray import NDArray

__all__ = [
    "exponential", "exponential_like", "gamma", "gamma_like", "generalized_negative_binomial",
    "generalized_negative_binomial_like", "multinomial", "negative_binomial", "negative_binomial_like", "normal", "normal_like",
    "poisson", "poisson_like", "randint", "randn", "shuffle", "uniform", "uniform_like", "unique_zipfian",
]  # fmt: skip

Parameter = float | NDArray


def _draw(
    of_numbers: type[Random],
    of_arrays: Callable[..., Any] | None,
    parameters: dict[str, Any],
    shape: ShapeLike | None,
    dtype: DTypeLike,
    ctx: Context | None,
    out: NDArray | None,
) -> NDArray:
    """Numbers from the distribution that the operator `of_numbers` or the function `of_arrays` draws from.

    Without a shape one number comes for numbers, or as many as `out` has, and one for each element of arrays.
    """
    require_array(of_numbers.name, out)
    arrays = [name for name, value in parameters.items() if isinstance(value, NDArray)]
    if arrays and of_arrays is not None:
        if len(arrays) < len(parameters):
            other = next(name for name in parameters if name not in arrays)
            raise ArgumentError(
                f"{of_numbers.name}: {arrays[0]} is an NDArray, {other} is not; wants both as arrays or as numbers"
            )
        return of_arrays(*parameters.values(), shape=shape, dtype=dtype, out=out)
    if shape is None:
        shape = 1 if out is None else out.shape
    if dtype is None and out is not None:
        dtype = out.dtype
    numbers = {name: as_number(value, f"{of_numbers.name}: {name}") for name, value in parameters.items()}
    op = of_numbers(as_known_shape(of_numbers.name, shape), None if dtype is None else as_dtype(dtype), **numbers)
    return create(op, ctx, out)


def uniform(
    low: Parameter = 0.0,
    high: Parameter = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Numbers from [low, high), each as likely as any other.

    **Shapes** low and high are numbers: result `shape`, (1,) without one; they are arrays (...): result (..., s1, s2, ...) for a
    shape (s1, s2, ...). **Args** dtype: float32 (the default), float64 or float16. ctx: the device, for numbers; else the current
    one. out: an array that receives the result. **Raises** ArgumentError for a number beside an array; ShapeError, DTypeError for
    a bad shape or dtype; MXNetError, when the value is asked for, if low exceeds high. **Gradient** none. **Source** MXNet
    `random.uniform`.

    >>> uniform(1, 2, shape=(2, 3)).shape
    (2, 3)
    """
    return _draw(_ops.RandomUniform, _ops.sample_uniform, {"low": low, "high": high}, shape, dtype, ctx, out)


def normal(
    loc: Parameter = 0.0,
    scale: Parameter = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Normal (Gaussian) numbers with mean `loc` and standard deviation `scale`, greater than 0 (an array may hold 0).

    **Shapes** loc and scale are numbers: result `shape`, (1,) without one; they are arrays (...): result (..., s1, s2, ...) for a
    shape (s1, s2, ...). **Args** dtype: float32 (the default), float64 or float16. ctx: the device, for numbers; else the current
    one. out: an array that receives the result. **Raises** ArgumentError for a number beside an array; ShapeError, DTypeError for
    a bad shape or dtype; MXNetError, when the value is asked for, if scale is not above 0. **Gradient** none. **Source**
    MXNet `random.normal`.
    """
    return _draw(_ops.RandomNormal, _ops.sample_normal, {"loc": loc, "scale": scale}, shape, dtype, ctx, out)


def randn(
    *shape: int,
    loc: Parameter = 0.0,
    scale: Parameter = 1.0,
    dtype: DTypeLike = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Normal (Gaussian) numbers, as `normal`, with the shape as separate arguments: `randn(2, 3)`.

    **Args** loc, scale: mean and standard deviation, numbers or arrays. dtype: float32 (the default), float64 or float16. ctx: the
    device, for numbers; else the current one. out: an array that receives the result. **Source** MXNet `random.randn`.
    """
    return _draw(_ops.RandomNormal, _ops.sample_normal, {"loc": loc, "scale": scale}, shape or None, dtype, ctx, out)


def poisson(
    lam: Parameter = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Whole numbers, in a floating dtype, from the Poisson distribution with mean `lam`, at least 0.

    **Shapes** lam is a number: result `shape`, (1,) without one; it is an array (...): result (..., s1, s2, ...) for a shape (s1,
    s2, ...). **Args** dtype: float32 (the default), float64 or float16. ctx: the device, for numbers; else the current one. out:
    an array that receives the result. **Raises** ShapeError, DTypeError for a bad shape or dtype; MXNetError, when the value is
    asked for, if lam is below 0. **Gradient** none. **Source** MXNet `random.poisson`.
    """
    return _draw(_ops.RandomPoisson, _ops.sample_poisson, {"lam": lam}, shape, dtype, ctx, out)


def exponential(
    scale: Parameter = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Numbers from the exponential distribution with mean `scale`, greater than 0; its rate is `1 / scale`.

    **Shapes** scale is a number: result `shape`, (1,) without one; it is an array (...): result (..., s1, s2, ...) for a shape
    (s1, s2, ...). **Args** dtype: float32 (the default), float64 or float16. ctx: the device, for numbers; else the current one.
    out: an array that receives the result. **Raises** ShapeError, DTypeError for a bad shape or dtype; MXNetError, when the value
    is asked for, if scale is below 0; ArgumentError if it is 0. **Gradient** none. **Source** MXNet `random.exponential`.
    """
    if not isinstance(scale, NDArray):
        scale = as_number(scale, "exponential: scale")
        if scale == 0:
            raise ArgumentError("exponential: scale is 0; it must be greater than 0")
    return _draw(_ops.RandomExponential, _ops.sample_exponential, {"lam": 1.0 / scale}, shape, dtype, ctx, out)


def gamma(
    alpha: Parameter = 1.0,
    beta: Parameter = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Numbers from the gamma distribution of shape `alpha` and *scale* `beta`, both greater than 0; the mean is `alpha * beta`.

    **Shapes** alpha and beta are numbers: result `shape`, (1,) without one; they are arrays (...): result (..., s1, s2, ...) for
    a shape (s1, s2, ...). **Args** dtype: float32 (the default), float64 or float16. ctx: the device, for numbers; else the
    current one. out: an array that receives the result. **Raises** ArgumentError for a number beside an array; ShapeError,
    DTypeError for a bad shape or dtype; MXNetError, when the value is asked for, if alpha or beta is not above 0. **Gradient**
    none. **Source** MXNet `random.gamma`.
    """
    return _draw(_ops.RandomGamma, _ops.sample_gamma, {"alpha": alpha, "beta": beta}, shape, dtype, ctx, out)


def negative_binomial(
    k: int | NDArray = 1,
    p: Parameter = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """How many trials fail before the `k`-th that succeeds, where each succeeds with probability `p` in (0, 1].

    MXNet calls p the probability of a failure and k the limit of failures, and counts the successes: the numbers are the same.
    **Shapes** k and p are numbers: result `shape`, (1,) without one; they are arrays (...): result (..., s1, s2, ...) for a shape
    (s1, s2, ...). **Args** dtype: float32 (the default), float64 or float16. ctx: the device, for numbers; else the current one.
    out: an array that receives the result. **Raises** ArgumentError for a number beside an array; ShapeError, DTypeError for a
    bad shape or dtype; MXNetError, when the value is asked for, if p is not in (0, 1]. **Gradient** none. **Source** MXNet
    `random.negative_binomial`.
    """
    if not isinstance(k, NDArray):
        k = whole("negative_binomial: k", k)
    return _draw(_ops.RandomNegativeBinomial, _ops.sample_negative_binomial, {"k": k, "p": p}, shape, dtype, ctx, out)


def generalized_negative_binomial(
    mu: Parameter = 1.0,
    alpha: Parameter = 1.0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Whole numbers from the negative binomial distribution with mean `mu` and variance `mu + alpha * mu**2`, both at least 0.

    **Shapes** mu and alpha are numbers: result `shape`, (1,) without one; they are arrays (...): result (..., s1, s2, ...) for a
    shape (s1, s2, ...). **Args** dtype: float32 (the default), float64 or float16. ctx: the device, for numbers; else the current
    one. out: an array that receives the result. **Raises** ArgumentError for a number beside an array; ShapeError, DTypeError for
    a bad shape or dtype; MXNetError, when the value is asked for, if mu or alpha is below 0. **Gradient** none. **Source** MXNet
    `random.generalized_negative_binomial`.
    """
    cls, sample = _ops.RandomGeneralizedNegativeBinomial, _ops.sample_generalized_negative_binomial
    return _draw(cls, sample, {"mu": mu, "alpha": alpha}, shape, dtype, ctx, out)


def multinomial(
    data: NDArray,
    shape: ShapeLike | None = None,
    get_prob: bool = False,
    out: NDArray | None = None,
    dtype: DTypeLike = "int32",
) -> Any:
    """Numbers of classes, drawn with the probabilities `data` along the last axis: see `sample_multinomial`.

    **Returns** an array; with `get_prob` a list of it and the logarithms of the probabilities. **Source** MXNet
    `random.multinomial`.
    """
    return sample_multinomial(data, shape, get_prob, dtype, out=out)


def randint(
    low: int,
    high: int,
    shape: ShapeLike | None = None,
    dtype: DTypeLike = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Whole numbers from `low` to `high - 1`, each as likely as any other.

    **Shapes** result `shape`, (1,) without one. **Args** dtype: int32 (the default) or int64. **Raises** ArgumentError for a
    bound that is no int or outside the dtype; MXNetError, when the value is asked for, unless low is less than high. **Source**
    MXNet `random.randint`.
    """
    parameters = {"low": whole("randint: low", low), "high": whole("randint: high", high)}
    return _draw(_ops.RandomRandint, None, parameters, shape, dtype, ctx, out)


def unique_zipfian(range_max: int, shape: ShapeLike) -> list[NDArray]:
    """Different classes below `range_max`, where class k comes with a probability that falls as `log((k + 2) / (k + 1))`.

    **Shapes** shape (N, count). **Returns** int64 arrays: the classes (N, count), none twice in a row, and how many numbers (N,)
    were drawn until there were so many. **Raises** MXNetError, when the value is asked for, if count exceeds range_max.
    **Source** MXNet `_internal._sample_unique_zipfian`.
    """
    op = SampleUniqueZipfian(whole("unique_zipfian: range_max", range_max), as_known_shape("unique_zipfian", shape))
    return NDArray._apply(op, (), {})


# ---- MXNet's older names, with the arguments in another order


def random_uniform(
    low: Parameter = 0.0,
    high: Parameter = 1.0,
    shape: ShapeLike | None = None,
    ctx: Context | None = None,
    dtype: DTypeLike = None,
    out: NDArray | None = None,
) -> NDArray:
    """`random.uniform` with the device before the dtype, as in MXNet."""
    return uniform(low, high, shape, dtype, ctx, out)


def random_normal(
    loc: Parameter = 0.0,
    scale: Parameter = 1.0,
    shape: ShapeLike | None = None,
    ctx: Context | None = None,
    dtype: DTypeLike = None,
    out: NDArray | None = None,
) -> NDArray:
    """`random.normal` with the device before the dtype, as in MXNet."""
    return normal(loc, scale, shape, dtype, ctx, out)


def random_poisson(
    lam: Parameter = 1.0,
    shape: ShapeLike | None = None,
    ctx: Context | None = None,
    dtype: DTypeLike = None,
    out: NDArray | None = None,
) -> NDArray:
    """`random.poisson` with the device before the dtype, as in MXNet."""
    return poisson(lam, shape, dtype, ctx, out)


def random_gamma(
    alpha: Parameter = 1.0,
    beta: Parameter = 1.0,
    shape: ShapeLike | None = None,
    ctx: Context | None = None,
    dtype: DTypeLike = None,
    out: NDArray | None = None,
) -> NDArray:
    """`random.gamma` with the device before the dtype, as in MXNet."""
    return gamma(alpha, beta, shape, dtype, ctx, out)


def random_negative_binomial(
    k: int | NDArray = 1,
    p: Parameter = 1.0,
    shape: ShapeLike | None = None,
    ctx: Context | None = None,
    dtype: DTypeLike = None,
    out: NDArray | None = None,
) -> NDArray:
    """`random.negative_binomial` with the device before the dtype, as in MXNet."""
    return negative_binomial(k, p, shape, dtype, ctx, out)


def random_generalized_negative_binomial(
    mu: Parameter = 1.0,
    alpha: Parameter = 1.0,
    shape: ShapeLike | None = None,
    ctx: Context | None = None,
    dtype: DTypeLike = None,
    out: NDArray | None = None,
) -> NDArray:
    """`random.generalized_negative_binomial` with the device before the dtype, as in MXNet."""
    return generalized_negative_binomial(mu, alpha, shape, dtype, ctx, out)


def random_randint(
    low: int,
    high: int,
    shape: ShapeLike | None = None,
    ctx: Context | None = None,
    dtype: DTypeLike = None,
    out: NDArray | None = None,
) -> NDArray:
    """`random.randint` with the device before the dtype, as in MXNet."""
    return randint(low, high, shape, dtype, ctx, out)


def random_exponential(
    lam: Parameter = 1.0,
    shape: ShapeLike | None = None,
    ctx: Context | None = None,
    dtype: DTypeLike = None,
    out: NDArray | None = None,
) -> NDArray:
    """`exponential` by its rate `lam`, `1 / scale`. **Source** MXNet `nd.random_exponential`."""
    return _draw(_ops.RandomExponential, _ops.sample_exponential, {"lam": lam}, shape, dtype, ctx, out)
