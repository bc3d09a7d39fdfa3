"""Densities: the probability of a sample under a distribution with given parameters, and its logarithm.

Each operator is two formulas of a textbook: the logarithm of the density, and its slopes with respect to sample and parameters.
The sample may have more axes than the parameters: element i of a parameter belongs to all of sample[i]. For whole numbers the
density is a probability, and has no slope with respect to the sample. Parameters mean what they mean in distributions.py, except
that gamma's `beta` is a *rate* here, in MXNet and so in minimx. Book: chapter 1.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, attributes, register
from ..rules import same_dtype, same_shape
from .forms import require_kind
from .special import gammaln_of, polygamma

if TYPE_CHECKING:
    from typing_extensions import Unpack


@attributes
class Density(Op):
    """The density of `sample`, or its logarithm (`is_log`)."""

    is_log: bool = False

    def log_density(self, xp: Any, sample: Array, *parameters: Array) -> Array:
        """The logarithm, of float64 arrays whose shapes broadcast."""
        raise NotImplementedError

    def slopes(self, sample: Any, *parameters: Any) -> tuple[Any, ...]:
        """Derivatives of the logarithm, of tensors of one shape: with respect to the sample (None: constant), then the
        parameters."""
        raise NotImplementedError

    def fill(self, sample: Spec | None, *parameters: Spec | None) -> tuple[Spec | None, ...]:
        known = next((spec for spec in parameters if spec is not None), None)
        return (sample, *(spec or known for spec in parameters))

    def infer(self, sample: Spec, *parameters: Spec) -> Spec:
        require_kind(self, same_dtype(self, sample, *parameters), "f")
        shape = same_shape(self, *parameters)
        if sample.shape[: len(shape)] != shape:
            raise ShapeError(
                f"{self.name}: sample has shape {sample.shape}, wants the parameters' {shape}, or that and more axes"
            )
        return sample

    def kernel(self, xp: Any, sample: Array, *parameters: Array) -> Array:
        columns = [each.reshape(each.shape + (1,) * (sample.ndim - each.ndim)).astype(np.float64) for each in parameters]
        result = xp.broadcast_to(self.log_density(xp, sample.astype(np.float64), *columns), sample.shape)
        return (result if self.is_log else xp.exp(result)).astype(sample.dtype)

    def vjp(self, g: Any, y: Any, sample: Any, *parameters: Any) -> tuple[Any, ...]:
        shape, extra = parameters[0].shape, len(sample.shape) - len(parameters[0].shape)
        full = [each.reshape(shape + (1,) * extra).broadcast_to(sample.shape) if extra else each for each in parameters]
        scale = g if self.is_log else g * y
        first, *rest = self.slopes(sample, *full)
        axes = tuple(range(len(shape), len(sample.shape)))
        sums = [(scale * slope).sum(axis=axes) if extra else scale * slope for slope in rest]
        return (sample.zeros_like() if first is None else scale * first, *sums)


@register("_random_pdf_uniform", "random_pdf_uniform")
class PdfUniform(Density):
    inputs: ClassVar[tuple[str, ...]] = ("sample", "low", "high")

    def log_density(self, xp: Any, sample: Array, *parameters: Array) -> Array:
        low, high = parameters
        return -xp.log(high - low)  # MXNet does not look whether the sample is inside

    def slopes(self, sample: Any, *parameters: Any) -> tuple[Any, ...]:
        low, high = parameters
        return None, 1 / (high - low), 1 / (low - high)


@register("_random_pdf_normal", "random_pdf_normal")
class PdfNormal(Density):
    inputs: ClassVar[tuple[str, ...]] = ("sample", "mu", "sigma")

    def log_density(self, xp: Any, sample: Array, *parameters: Array) -> Array:
        mu, sigma = parameters
        return -0.5 * ((sample - mu) / sigma) ** 2 - xp.log(math.sqrt(2 * math.pi) * sigma)

    def slopes(self, sample: Any, *parameters: Any) -> tuple[Any, ...]:
        mu, sigma = parameters
        distance = (sample - mu) / sigma
        return -distance / sigma, distance / sigma, (distance**2 - 1) / sigma


@register("_random_pdf_gamma", "random_pdf_gamma")
class PdfGamma(Density):
    inputs: ClassVar[tuple[str, ...]] = ("sample", "alpha", "beta")

    def log_density(self, xp: Any, sample: Array, *parameters: Array) -> Array:
        alpha, beta = parameters
        return alpha * xp.log(beta) + (alpha - 1) * xp.log(sample) - beta * sample - gammaln_of(xp, alpha)

    def slopes(self, sample: Any, *parameters: Any) -> tuple[Any, ...]:
        alpha, beta = parameters
        return (alpha - 1) / sample - beta, beta.log() + sample.log() - polygamma(alpha), alpha / beta - sample


@register("_random_pdf_exponential", "random_pdf_exponential")
class PdfExponential(Density):
    inputs: ClassVar[tuple[str, ...]] = ("sample", "lam")

    def log_density(self, xp: Any, sample: Array, *parameters: Array) -> Array:
        (lam,) = parameters
        return xp.log(lam) - lam * sample

    def slopes(self, sample: Any, *parameters: Any) -> tuple[Any, ...]:
        (lam,) = parameters
        return -lam, 1 / lam - sample


@register("_random_pdf_poisson", "random_pdf_poisson")
class PdfPoisson(Density):
    inputs: ClassVar[tuple[str, ...]] = ("sample", "lam")

    def log_density(self, xp: Any, sample: Array, *parameters: Array) -> Array:
        (lam,) = parameters
        return sample * xp.log(lam) - gammaln_of(xp, sample + 1) - lam

    def slopes(self, sample: Any, *parameters: Any) -> tuple[Any, ...]:
        (lam,) = parameters
        return None, sample / lam - 1


def log_negative_binomial(xp: Any, sample: Array, k: Array, p: Array) -> Array:
    """The logarithm of the probability of `sample` failures before the k-th success."""
    ways = gammaln_of(xp, sample + k) - gammaln_of(xp, sample + 1) - gammaln_of(xp, k)
    return ways + k * xp.log(p) + sample * xp.log(1 - p)


def negative_binomial_slopes(sample: Any, k: Any, p: Any) -> tuple[Any, Any]:
    """Its derivatives with respect to k and p."""
    return polygamma(sample + k) - polygamma(k) + p.log(), k / p - sample / (1 - p)


@register("_random_pdf_negative_binomial", "random_pdf_negative_binomial")
class PdfNegativeBinomial(Density):
    inputs: ClassVar[tuple[str, ...]] = ("sample", "k", "p")

    def log_density(self, xp: Any, sample: Array, *parameters: Array) -> Array:
        return log_negative_binomial(xp, sample, *parameters)

    def slopes(self, sample: Any, *parameters: Any) -> tuple[Any, ...]:
        return None, *negative_binomial_slopes(sample, *parameters)


@register("_random_pdf_generalized_negative_binomial", "random_pdf_generalized_negative_binomial")
class PdfGeneralizedNegativeBinomial(Density):
    inputs: ClassVar[tuple[str, ...]] = ("sample", "mu", "alpha")

    def log_density(self, xp: Any, sample: Array, *parameters: Array) -> Array:
        mu, alpha = parameters
        return log_negative_binomial(xp, sample, 1 / alpha, 1 / (mu * alpha + 1))

    def slopes(self, sample: Any, *parameters: Any) -> tuple[Any, ...]:
        mu, alpha = parameters
        p = 1 / (mu * alpha + 1)
        dk, dp = negative_binomial_slopes(sample, 1 / alpha, p)
        # The chain rule, with dk/dalpha = -1 / alpha**2, dp/dmu = -alpha * p**2 and dp/dalpha = -mu * p**2
        return None, -dp * alpha * p**2, -dk / alpha**2 - dp * mu * p**2


@register("_random_pdf_dirichlet", "random_pdf_dirichlet")
class PdfDirichlet(Density):
    """A sample is a vector along the last axis; so is the parameter."""

    inputs: ClassVar[tuple[str, ...]] = ("sample", "alpha")

    def draws(self, sample: Shape, alpha: Shape) -> Shape:
        """The shape of alpha, with axes of length 1 put in front of its last for those that only the sample has."""
        return (*alpha[:-1], *(1,) * (len(sample) - len(alpha)), alpha[-1])

    def infer(self, sample: Spec, *parameters: Spec) -> Spec:
        (alpha,) = parameters
        require_kind(self, same_dtype(self, sample, alpha), "f")
        lead = alpha.shape[:-1]
        if not alpha.shape or not sample.shape or (*sample.shape[: len(lead)], sample.shape[-1]) != alpha.shape:
            raise ShapeError(
                f"{self.name}: sample has shape {sample.shape}, wants alpha's {alpha.shape}, or that with axes before the last"
            )
        return sample.with_shape(sample.shape[:-1] or (1,))

    def kernel(self, xp: Any, sample: Array, *parameters: Array) -> Array:
        (alpha,) = parameters
        alpha = alpha.reshape(self.draws(sample.shape, alpha.shape)).astype(np.float64)
        weights = gammaln_of(xp, alpha.sum(axis=-1)) - gammaln_of(xp, alpha).sum(axis=-1)
        result = ((alpha - 1) * xp.log(sample.astype(np.float64))).sum(axis=-1) + weights
        return (result if self.is_log else xp.exp(result)).astype(sample.dtype).reshape(sample.shape[:-1] or (1,))

    def vjp(self, g: Any, y: Any, sample: Any, *parameters: Any) -> tuple[Any, ...]:
        (alpha,) = parameters
        lead, extra = len(alpha.shape) - 1, len(sample.shape) - len(alpha.shape)
        full = alpha.reshape(self.draws(sample.shape, alpha.shape)).broadcast_to(sample.shape) if extra else alpha
        scale = g if self.is_log else g * y
        if len(sample.shape) > 1:
            scale = scale.expand_dims(-1)
        scale = scale.broadcast_to(sample.shape)
        total = polygamma(full.sum(axis=-1, keepdims=True)).broadcast_to(sample.shape)
        slope = scale * (sample.log() + total - polygamma(full))
        if extra:
            slope = slope.sum(axis=tuple(range(lead, lead + extra)))
        return scale * (full - 1) / sample, slope


def random_pdf_uniform(sample: T, low: T, high: T, is_log: bool = False, **how: Unpack[How]) -> T:
    """Density of the uniform distribution, `1 / (high - low)`, not looking whether the sample lies inside.

    **Shapes** sample and result (..., s1, s2, ...), parameters (...). **Args** is_log: give the logarithm. **Gradient** of the
    sample, where it is no whole number, and of the parameters. **Source** MXNet `random_pdf_uniform`.
    """
    return apply(PdfUniform(is_log), sample, low, high, **how)


def random_pdf_normal(sample: T, mu: T, sigma: T, is_log: bool = False, **how: Unpack[How]) -> T:
    """Density of the normal distribution, `exp(-((sample - mu) / sigma)**2 / 2) / (sqrt(2 pi) * sigma)`.

    **Shapes**, **Args**, **Gradient** as `random_pdf_uniform`. **Source** MXNet `random_pdf_normal`.
    """
    return apply(PdfNormal(is_log), sample, mu, sigma, **how)


def random_pdf_gamma(sample: T, alpha: T, beta: T, is_log: bool = False, **how: Unpack[How]) -> T:
    """Density of the gamma distribution of rate beta, `beta**alpha * sample**(alpha - 1) * exp(-beta * sample) / gamma(alpha)`.

    **Shapes**, **Args**, **Gradient** as `random_pdf_uniform`. **Source** MXNet `random_pdf_gamma`.
    """
    return apply(PdfGamma(is_log), sample, alpha, beta, **how)


def random_pdf_exponential(sample: T, lam: T, is_log: bool = False, **how: Unpack[How]) -> T:
    """Density of the exponential distribution, `lam * exp(-lam * sample)`.

    **Shapes**, **Args**, **Gradient** as `random_pdf_uniform`. **Source** MXNet `random_pdf_exponential`.
    """
    return apply(PdfExponential(is_log), sample, lam, **how)


def random_pdf_poisson(sample: T, lam: T, is_log: bool = False, **how: Unpack[How]) -> T:
    """Probabilities of the Poisson distribution, `lam**sample * exp(-lam) / sample!`.

    **Shapes**, **Args**, **Gradient** as `random_pdf_uniform`. **Source** MXNet `random_pdf_poisson`.
    """
    return apply(PdfPoisson(is_log), sample, lam, **how)


def random_pdf_negative_binomial(sample: T, k: T, p: T, is_log: bool = False, **how: Unpack[How]) -> T:
    """Probabilities of `sample` failures before the k-th success, `gamma(sample + k) / (sample! gamma(k)) * p**k * (1 -
    p)**sample`.

    **Shapes**, **Args**, **Gradient** as `random_pdf_uniform`. **Source** MXNet `random_pdf_negative_binomial`.
    """
    return apply(PdfNegativeBinomial(is_log), sample, k, p, **how)


def random_pdf_generalized_negative_binomial(sample: T, mu: T, alpha: T, is_log: bool = False, **how: Unpack[How]) -> T:
    """The same by mean and dispersion: `k = 1 / alpha` and `p = 1 / (mu * alpha + 1)`.

    **Shapes**, **Args**, **Gradient** as `random_pdf_uniform`. **Source** MXNet `random_pdf_generalized_negative_binomial`.
    """
    return apply(PdfGeneralizedNegativeBinomial(is_log), sample, mu, alpha, **how)


def random_pdf_dirichlet(sample: T, alpha: T, is_log: bool = False, **how: Unpack[How]) -> T:
    """Density of the Dirichlet distribution, the product of `sample**(alpha - 1)` times `gamma(sum(alpha))`, over the product of
    `gamma(alpha)`.

    **Shapes** sample (..., s1, s2, ..., K), alpha (..., K), result (..., s1, s2, ...), (1,) if that is empty. **Args** is_log:
    give the logarithm. **Gradient** of both. **Source** MXNet `random_pdf_dirichlet`.
    """
    return apply(PdfDirichlet(is_log), sample, alpha, **how)
