"""Random numbers: the operators of eight distributions, each in three forms (distributions.py).

The functions that need no array, `nd.random.normal(...)` and the like, are in the front ends. Book: chapter 1.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, shown
from ..fields import as_int
from ..op import How, Shape, Spec, T, apply, register
from .distributions import (
    Exponential,
    Gamma,
    GeneralizedNegativeBinomial,
    Integers,
    Like,
    NegativeBinomial,
    Normal,
    Poisson,
    Random,
    Sample,
    Uniform,
)
from .shape import as_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


# ---- parameters are numbers


@register("_random_uniform", "random_uniform", "uniform")
class RandomUniform(Uniform, Random):
    low: float = 0.0
    high: float = 1.0


@register("_random_normal", "random_normal", "normal")
class RandomNormal(Normal, Random):
    loc: float = 0.0
    scale: float = 1.0


@register("_random_gamma", "random_gamma")
class RandomGamma(Gamma, Random):
    alpha: float = 1.0
    beta: float = 1.0


@register("_random_exponential", "random_exponential")
class RandomExponential(Exponential, Random):
    lam: float = 1.0


@register("_random_poisson", "random_poisson")
class RandomPoisson(Poisson, Random):
    lam: float = 1.0


@register("_random_negative_binomial", "random_negative_binomial")
class RandomNegativeBinomial(NegativeBinomial, Random):
    k: int = 1
    p: float = 1.0


@register("_random_generalized_negative_binomial", "random_generalized_negative_binomial")
class RandomGeneralizedNegativeBinomial(GeneralizedNegativeBinomial, Random):
    mu: float = 1.0
    alpha: float = 1.0


@register("_random_randint", "random_randint")
class RandomRandint(Integers, Random):
    low: int = field(kw_only=True)
    high: int = field(kw_only=True)

    dtypes: ClassVar[tuple[np.dtype[Any], ...]] = (np.dtype(np.int32), np.dtype(np.int64))

    def infer(self) -> Spec:
        spec = Random.infer(self)
        limits = np.iinfo(spec.dtype)
        if self.low < limits.min or self.high - 1 > limits.max:
            raise ArgumentError(
                f"{self.name}: low is {self.low} and high {self.high}, wants both between {limits.min} and {limits.max}; "
                "give dtype='int64'"
            )
        return spec


# ---- the shape of an array


@register("_random_uniform_like")
class UniformLike(Uniform, Like):
    low: float = 0.0
    high: float = 1.0


@register("_random_normal_like")
class NormalLike(Normal, Like):
    loc: float = 0.0
    scale: float = 1.0


@register("_random_gamma_like")
class GammaLike(Gamma, Like):
    alpha: float = 1.0
    beta: float = 1.0


@register("_random_exponential_like")
class ExponentialLike(Exponential, Like):
    lam: float = 1.0


@register("_random_poisson_like")
class PoissonLike(Poisson, Like):
    lam: float = 1.0


@register("_random_negative_binomial_like")
class NegativeBinomialLike(NegativeBinomial, Like):
    k: int = 1
    p: float = 1.0


@register("_random_generalized_negative_binomial_like")
class GeneralizedNegativeBinomialLike(GeneralizedNegativeBinomial, Like):
    mu: float = 1.0
    alpha: float = 1.0


def uniform_like(data: T, low: float = 0.0, high: float = 1.0, **how: Unpack[How]) -> T:
    """Numbers from [low, high), each as likely as any other.

    **Shapes** data and result (...), of one floating dtype; only the shape and dtype of data matter. **Raises** MXNetError, when
    the value is asked for, if low exceeds high. **Gradient** none. **Source** MXNet `random.uniform_like`.
    """
    return apply(UniformLike(low, high), data, **how)


def normal_like(data: T, loc: float = 0.0, scale: float = 1.0, **how: Unpack[How]) -> T:
    """Numbers from the normal distribution with mean `loc` and standard deviation `scale`, which must be greater than 0.

    **Shapes**, **Raises**, **Gradient** as `uniform_like`. **Source** MXNet `random.normal_like`.
    """
    return apply(NormalLike(loc, scale), data, **how)


def gamma_like(data: T, alpha: float = 1.0, beta: float = 1.0, **how: Unpack[How]) -> T:
    """Numbers from the gamma distribution of shape `alpha` and *scale* `beta`, both greater than 0; the mean is `alpha * beta`.

    **Shapes**, **Raises**, **Gradient** as `uniform_like`. **Source** MXNet `random.gamma_like`.
    """
    return apply(GammaLike(alpha, beta), data, **how)


def exponential_like(data: T, lam: float = 1.0, **how: Unpack[How]) -> T:
    """Numbers from the exponential distribution of *rate* `lam`, greater than 0; the mean is `1 / lam`.

    **Shapes**, **Raises**, **Gradient** as `uniform_like`. **Source** MXNet `random.exponential_like`.
    """
    return apply(ExponentialLike(lam), data, **how)


def poisson_like(data: T, lam: float = 1.0, **how: Unpack[How]) -> T:
    """Whole numbers, in a floating dtype, from the Poisson distribution with mean `lam`, at least 0.

    **Shapes**, **Raises**, **Gradient** as `uniform_like`. **Source** MXNet `random.poisson_like`.
    """
    return apply(PoissonLike(lam), data, **how)


def negative_binomial_like(data: T, k: int = 1, p: float = 1.0, **how: Unpack[How]) -> T:
    """How many trials fail before the `k`-th that succeeds, where each succeeds with probability `p` in (0, 1].

    **Shapes**, **Raises**, **Gradient** as `uniform_like`. **Source** MXNet `random.negative_binomial_like`.
    """
    return apply(NegativeBinomialLike(whole("negative_binomial_like: k", k), p), data, **how)


def generalized_negative_binomial_like(data: T, mu: float = 1.0, alpha: float = 1.0, **how: Unpack[How]) -> T:
    """Whole numbers from the negative binomial distribution with mean `mu` and variance `mu + alpha * mu**2`, both at least 0.

    **Shapes**, **Raises**, **Gradient** as `uniform_like`. **Source** MXNet `random.generalized_negative_binomial_like`.
    """
    return apply(GeneralizedNegativeBinomialLike(mu, alpha), data, **how)


def whole(what: str, value: Any) -> int:
    """`value` as an int. Raises ArgumentError for anything that is no whole number by type."""
    try:
        return as_int(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{what} is {shown(value)}, wants an int") from None


# ---- parameters are arrays


@register("_sample_uniform", "sample_uniform")
class SampleUniform(Uniform, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("low", "high")


@register("_sample_normal", "sample_normal")
class SampleNormal(Normal, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("mu", "sigma")


@register("_sample_gamma", "sample_gamma")
class SampleGamma(Gamma, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("alpha", "beta")


@register("_sample_exponential", "sample_exponential")
class SampleExponential(Exponential, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("lam",)


@register("_sample_poisson", "sample_poisson")
class SamplePoisson(Poisson, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("lam",)


@register("_sample_negative_binomial", "sample_negative_binomial")
class SampleNegativeBinomial(NegativeBinomial, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("k", "p")


@register("_sample_generalized_negative_binomial", "sample_generalized_negative_binomial")
class SampleGeneralizedNegativeBinomial(GeneralizedNegativeBinomial, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("mu", "alpha")


def _sampled(cls: type[Sample], parameters: tuple[Any, ...], shape: Any, dtype: Any, how: Any) -> Any:
    """Apply a sampling operator; `shape` and `dtype` as users write them."""
    return apply(cls(sample_shape(shape), dtype), *parameters, **how)


def sample_shape(shape: Any) -> Shape:
    """What the caller wrote for the shape of a draw: an int, a sequence, or None for the operator's default."""
    return () if shape is None else as_shape(shape)


def sample_uniform(low: T, high: T, shape: Any = (), dtype: Any = None, **how: Unpack[How]) -> T:
    """For each pair of elements, numbers from [low, high).

    **Shapes** low and high (...), shape (s1, s2, ...), result (..., s1, s2, ...): `shape` numbers for each element, one if it is
    (). **Args** shape: an int or a tuple; dtype: float32 (the default), float64 or float16, whatever that of the parameters.
    **Raises** MXNetError, when the value is asked for, if a parameter is outside its range. **Gradient** none. **Source** MXNet
    `sample_uniform`.
    """
    return _sampled(SampleUniform, (low, high), shape, dtype, how)


def sample_normal(mu: T, sigma: T, shape: Any = (), dtype: Any = None, **how: Unpack[How]) -> T:
    """For each pair of elements, normal numbers with mean `mu` and standard deviation `sigma`, at least 0.

    **Shapes**, **Args**, **Raises**, **Gradient** as `sample_uniform`. **Source** MXNet `sample_normal`.
    """
    return _sampled(SampleNormal, (mu, sigma), shape, dtype, how)


def sample_gamma(alpha: T, beta: T, shape: Any = (), dtype: Any = None, **how: Unpack[How]) -> T:
    """For each pair of elements, gamma numbers of shape `alpha` and scale `beta`, both at least 0.

    **Shapes**, **Args**, **Raises**, **Gradient** as `sample_uniform`. **Source** MXNet `sample_gamma`.
    """
    return _sampled(SampleGamma, (alpha, beta), shape, dtype, how)


def sample_exponential(lam: T, shape: Any = (), dtype: Any = None, **how: Unpack[How]) -> T:
    """For each element, exponential numbers of rate `lam`, at least 0.

    **Shapes**, **Args**, **Raises**, **Gradient** as `sample_uniform`. **Source** MXNet `sample_exponential`.
    """
    return _sampled(SampleExponential, (lam,), shape, dtype, how)


def sample_poisson(lam: T, shape: Any = (), dtype: Any = None, **how: Unpack[How]) -> T:
    """For each element, whole numbers from the Poisson distribution with mean `lam`, at least 0.

    **Shapes**, **Args**, **Raises**, **Gradient** as `sample_uniform`. **Source** MXNet `sample_poisson`.
    """
    return _sampled(SamplePoisson, (lam,), shape, dtype, how)


def sample_negative_binomial(k: T, p: T, shape: Any = (), dtype: Any = None, **how: Unpack[How]) -> T:
    """For each pair of elements, failures before the `k`-th success of trials that succeed with probability `p` in (0, 1].

    **Shapes**, **Args**, **Raises**, **Gradient** as `sample_uniform`. **Source** MXNet `sample_negative_binomial`.
    """
    return _sampled(SampleNegativeBinomial, (k, p), shape, dtype, how)


def sample_generalized_negative_binomial(mu: T, alpha: T, shape: Any = (), dtype: Any = None, **how: Unpack[How]) -> T:
    """For each pair of elements, negative binomial numbers with mean `mu` and dispersion `alpha`, both at least 0.

    **Shapes**, **Args**, **Raises**, **Gradient** as `sample_uniform`. **Source** MXNet `sample_generalized_negative_binomial`.
    """
    return _sampled(SampleGeneralizedNegativeBinomial, (mu, alpha), shape, dtype, how)
