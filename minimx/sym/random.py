"""`sym.random`: nodes that draw random numbers. See `nd.random` for the distributions.

Each function takes numbers as parameters, and a shape; or Symbols, and then draws numbers for each of their elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..base import ArgumentError, DTypeLike, as_dtype
from ..op import also_called, is_node_key
from ..ops import random as _ops, sampling
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
from .creation import ShapeLike, as_open_shape, created
from .symbol import Symbol

__all__ = [
    "exponential", "exponential_like", "gamma", "gamma_like", "generalized_negative_binomial", "generalized_negative_binomial_like",
    "multinomial", "negative_binomial", "negative_binomial_like", "normal", "normal_like", "poisson", "poisson_like", "randint", "randn",
    "shuffle", "uniform", "uniform_like",
]  # fmt: skip

Parameter = float | Symbol
F = TypeVar("F", bound=Callable[..., Any])


def _draw(
    of_numbers: type[Random],
    of_symbols: Callable[..., Any] | None,
    parameters: dict[str, Any],
    shape: ShapeLike | None,
    dtype: DTypeLike,
    how: dict[str, Any],
) -> Symbol:
    """A node that draws from the distribution of the operator `of_numbers`, or of the function `of_symbols`."""
    symbols = [name for name, value in parameters.items() if isinstance(value, Symbol)]
    if symbols and of_symbols is not None:
        if len(symbols) < len(parameters):
            other = next(name for name in parameters if name not in symbols)
            raise ArgumentError(
                f"{of_numbers.name}: {symbols[0]} is a Symbol, {other} is not; wants both as Symbols or as numbers"
            )
        known = {key: value for key, value in how.items() if key in ("name", "attr") or is_node_key(key)}
        hint = f"_{of_symbols.__name__}"  # MXNet calls the operator, not the public function
        return of_symbols(*parameters.values(), shape=shape, dtype=dtype, _hint=hint, **known)
    numbers = {name: as_number(value, f"{of_numbers.name}: {name}") for name, value in parameters.items()}
    lengths = as_open_shape(of_numbers.name, 1 if shape is None else shape)
    kind = None if dtype is None else as_dtype(dtype)
    given: dict[str, Any] = {**numbers, "shape": lengths}
    if kind is not None:
        given["dtype"] = kind
    return created(of_numbers(lengths, kind, **numbers), given, how)


def uniform(
    low: Parameter = 0.0, high: Parameter = 1.0, shape: ShapeLike | None = None, dtype: DTypeLike = None, **how: Any
) -> Symbol:
    """Numbers from [low, high), each as likely as any other. **Source** MXNet `sym.random.uniform`."""
    return _draw(_ops.RandomUniform, _ops.sample_uniform, {"low": low, "high": high}, shape, dtype, how)


def normal(
    loc: Parameter = 0.0, scale: Parameter = 1.0, shape: ShapeLike | None = None, dtype: DTypeLike = None, **how: Any
) -> Symbol:
    """Normal (Gaussian) numbers with mean `loc` and standard deviation `scale`. **Source** MXNet `sym.random.normal`."""
    return _draw(_ops.RandomNormal, _ops.sample_normal, {"loc": loc, "scale": scale}, shape, dtype, how)


def randn(*shape: int, loc: Parameter = 0.0, scale: Parameter = 1.0, dtype: DTypeLike = None, **how: Any) -> Symbol:
    """`normal` with the shape as separate arguments: `randn(2, 3)`. **Source** MXNet `sym.random.randn`."""
    return _draw(_ops.RandomNormal, _ops.sample_normal, {"loc": loc, "scale": scale}, shape or None, dtype, how)


def poisson(lam: Parameter = 1.0, shape: ShapeLike | None = None, dtype: DTypeLike = None, **how: Any) -> Symbol:
    """Whole numbers from the Poisson distribution with mean `lam`. **Source** MXNet `sym.random.poisson`."""
    return _draw(_ops.RandomPoisson, _ops.sample_poisson, {"lam": lam}, shape, dtype, how)


def exponential(scale: Parameter = 1.0, shape: ShapeLike | None = None, dtype: DTypeLike = None, **how: Any) -> Symbol:
    """Numbers from the exponential distribution with mean `scale`. **Source** MXNet `sym.random.exponential`."""
    if not isinstance(scale, Symbol) and as_number(scale, "exponential: scale") == 0:
        raise ArgumentError("exponential: scale is 0; it must be greater than 0")
    return _draw(_ops.RandomExponential, _ops.sample_exponential, {"lam": 1.0 / scale}, shape, dtype, how)


def gamma(
    alpha: Parameter = 1.0, beta: Parameter = 1.0, shape: ShapeLike | None = None, dtype: DTypeLike = None, **how: Any
) -> Symbol:
    """Numbers from the gamma distribution of shape `alpha` and scale `beta`. **Source** MXNet `sym.random.gamma`."""
    return _draw(_ops.RandomGamma, _ops.sample_gamma, {"alpha": alpha, "beta": beta}, shape, dtype, how)


def negative_binomial(
    k: Any = 1, p: Parameter = 1.0, shape: ShapeLike | None = None, dtype: DTypeLike = None, **how: Any
) -> Symbol:
    """How many trials fail before the `k`-th that succeeds, each with probability `p`. **Source** MXNet `sym.random.negative_binomial`."""
    if not isinstance(k, Symbol):
        k = whole("negative_binomial: k", k)
    return _draw(_ops.RandomNegativeBinomial, _ops.sample_negative_binomial, {"k": k, "p": p}, shape, dtype, how)


def generalized_negative_binomial(
    mu: Parameter = 1.0, alpha: Parameter = 1.0, shape: ShapeLike | None = None, dtype: DTypeLike = None, **how: Any
) -> Symbol:
    """Whole numbers with mean `mu` and variance `mu + alpha * mu**2`. **Source** MXNet `sym.random.generalized_negative_binomial`."""
    cls, sample = _ops.RandomGeneralizedNegativeBinomial, _ops.sample_generalized_negative_binomial
    return _draw(cls, sample, {"mu": mu, "alpha": alpha}, shape, dtype, how)


def multinomial(
    data: Symbol, shape: ShapeLike | None = None, get_prob: bool = True, dtype: DTypeLike = "int32", **how: Any
) -> Symbol:
    """Numbers of classes, drawn with the probabilities `data` along the last axis; with `get_prob` their logarithms as a second output.

    **Source** MXNet `sym.random.multinomial`, where `get_prob` is True unless given, as it is not in `nd.random`.
    """
    return sampling.sample_multinomial(data, shape, get_prob, dtype, **{"_hint": "_sample_multinomial", **how})


def randint(low: int, high: int, shape: ShapeLike | None = None, dtype: DTypeLike = None, **how: Any) -> Symbol:
    """Whole numbers from `low` to `high - 1`, each as likely as any other. **Source** MXNet `sym.random.randint`."""
    parameters = {"low": whole("randint: low", low), "high": whole("randint: high", high)}
    return _draw(_ops.RandomRandint, None, parameters, shape, dtype, how)


def shuffle(data: Symbol, **how: Any) -> Symbol:
    """A copy with the elements along the first axis in random order. **Source** MXNet `sym.random.shuffle`."""
    return sampling.shuffle(data, **{"_hint": "_shuffle", **how})


# ---- MXNet's older names, with the arguments in another order; nodes are named after them


def _named(function: F) -> F:
    return also_called(function.__name__, function)


@_named
def random_uniform(
    low: Parameter = 0.0,
    high: Parameter = 1.0,
    shape: ShapeLike | None = None,
    ctx: Any = None,
    dtype: DTypeLike = None,
    **how: Any,
) -> Symbol:
    """`random.uniform` with a device before the dtype; a graph gets its device when it is bound."""
    return uniform(low, high, shape, dtype, **how)


@_named
def random_normal(
    loc: Parameter = 0.0,
    scale: Parameter = 1.0,
    shape: ShapeLike | None = None,
    ctx: Any = None,
    dtype: DTypeLike = None,
    **how: Any,
) -> Symbol:
    """`random.normal` with a device before the dtype; a graph gets its device when it is bound."""
    return normal(loc, scale, shape, dtype, **how)


@_named
def random_poisson(
    lam: Parameter = 1.0,
    shape: ShapeLike | None = None,
    ctx: Any = None,
    dtype: DTypeLike = None,
    **how: Any,
) -> Symbol:
    """`random.poisson` with a device before the dtype; a graph gets its device when it is bound."""
    return poisson(lam, shape, dtype, **how)


@_named
def random_gamma(
    alpha: Parameter = 1.0,
    beta: Parameter = 1.0,
    shape: ShapeLike | None = None,
    ctx: Any = None,
    dtype: DTypeLike = None,
    **how: Any,
) -> Symbol:
    """`random.gamma` with a device before the dtype; a graph gets its device when it is bound."""
    return gamma(alpha, beta, shape, dtype, **how)


@_named
def random_negative_binomial(
    k: Any = 1,
    p: Parameter = 1.0,
    shape: ShapeLike | None = None,
    ctx: Any = None,
    dtype: DTypeLike = None,
    **how: Any,
) -> Symbol:
    """`random.negative_binomial` with a device before the dtype; a graph gets its device when it is bound."""
    return negative_binomial(k, p, shape, dtype, **how)


@_named
def random_generalized_negative_binomial(
    mu: Parameter = 1.0,
    alpha: Parameter = 1.0,
    shape: ShapeLike | None = None,
    ctx: Any = None,
    dtype: DTypeLike = None,
    **how: Any,
) -> Symbol:
    """`random.generalized_negative_binomial` with a device before the dtype; a graph gets its device when it is bound."""
    return generalized_negative_binomial(mu, alpha, shape, dtype, **how)


@_named
def random_randint(
    low: int,
    high: int,
    shape: ShapeLike | None = None,
    ctx: Any = None,
    dtype: DTypeLike = None,
    **how: Any,
) -> Symbol:
    """`random.randint` with a device before the dtype; a graph gets its device when it is bound."""
    return randint(low, high, shape, dtype, **how)


@_named
def random_exponential(
    lam: Parameter = 1.0, shape: ShapeLike | None = None, ctx: Any = None, dtype: DTypeLike = None, **how: Any
) -> Symbol:
    """`exponential` by its rate `lam`, `1 / scale`. **Source** MXNet `sym.random_exponential`."""
    return _draw(_ops.RandomExponential, _ops.sample_exponential, {"lam": lam}, shape, dtype, how)
