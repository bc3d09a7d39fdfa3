"""Random numbers: eight distributions, each in three forms.

MXNet has a distribution such as the normal three times: `_random_normal` (parameters are numbers, the shape is an attribute),
`_random_normal_like` (numbers, the shape of an array) and `_sample_normal` (parameters are arrays, so many draws for each
element). Here a *distribution* says how numbers are drawn and what its parameters may be, a *form* says where parameters and
shape come from, and an operator is a class that inherits from one of each. The functions that need no array,
`nd.random.normal(...)` and the like, are in the front ends.

A kernel gets its key (seeds.py) from the call and draws from the generator of that key only: the numbers depend on the seed and
the order of calls, on nothing else. Book: chapter 1.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, DTypeError, MXNetError, ShapeError, as_dtype
from ..op import Array, How, Op, Shape, Spec, T, apply, register, same_dtype, same_shape
from .forms import require_kind
from .shape import as_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..seeds import Key

HALF, SINGLE, DOUBLE = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
FLOATS = (SINGLE, DOUBLE, HALF)  # the default first
NUMBER = (int, float)


# ---- distributions


class Distribution(Op):
    """How numbers are drawn, and what the parameters may be."""

    __slots__ = ()

    needs_key = True
    saves_inputs = False
    saves_outputs = False
    #: The parameters' names as attributes, and what each must be: a key of `REQUIREMENTS`.
    parameters: ClassVar[tuple[str, ...]]
    requirements: ClassVar[tuple[str, ...]]

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        """Numbers of `shape`, of at least the precision of `dtype`; in the memory `out` where it is given and fits."""
        raise MXNetError(f"{self.name} draws nothing")

    def check(self, names: tuple[str, ...], *parameters: Any) -> None:
        """Raise MXNetError unless the parameters, numbers or arrays, are what the distribution needs.

        This is done in the kernel, as in MXNet: the call returns, and the error waits in the array.
        """
        for name, wanted, value in zip(names, self.requirements, parameters):
            # An array may hold the limit too: with a scale of 0 the distribution is a point
            if wanted == "greater than 0" and not isinstance(value, NUMBER):
                wanted = "at least 0"
            if not everywhere(REQUIREMENTS[wanted](value)):
                shown = f"is {value}" if isinstance(value, NUMBER) else "has elements that are not"
                raise MXNetError(f"{self.name}: {name} {shown}; it must be {wanted}")

    def vjp(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        return (None,) * len(inputs)


REQUIREMENTS: dict[str, Any] = {  # NaN meets none but the first
    "a number": lambda value: True,
    "greater than 0": lambda value: value > 0,
    "at least 0": lambda value: value >= 0,
    "greater than 0 and at most 1": lambda value: (value > 0) & (value <= 1),
}


def everywhere(condition: Any) -> bool:
    """Whether `condition`, a bool or an array of them, is true throughout."""
    return condition if isinstance(condition, bool) else bool(condition.all())


def working(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype to draw in: there are no generators of float16."""
    return DOUBLE if dtype == DOUBLE else SINGLE


def scaled(numbers: Array, factor: Any, shift: Any) -> Array:
    """`numbers * factor + shift`, in place. Python numbers that change nothing cost nothing."""
    if not (isinstance(factor, NUMBER) and factor == 1):
        numbers *= factor
    if not (isinstance(shift, NUMBER) and shift == 0):
        numbers += shift
    return numbers


class Uniform(Distribution):
    __slots__ = ()

    parameters = ("low", "high")
    requirements = ("a number", "a number")

    def check(self, names: tuple[str, ...], *parameters: Any) -> None:
        low, high = parameters
        if not everywhere(low <= high):
            shown = f"({low} and {high})" if isinstance(low, NUMBER) else "throughout"
            raise MXNetError(f"{self.name}: low must not exceed high {shown}")

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        low, high = parameters
        numbers = scaled(generator.random(shape, working(dtype), out), high - low, low)
        if dtype == HALF or not (isinstance(low, NUMBER) and (low, high) == (0, 1)):
            # Rounding can carry a number up to `high`, which does not belong to the interval
            ends = xp.asarray(high).astype(dtype), xp.asarray(low).astype(dtype)
            numbers = numbers.astype(dtype, copy=False)
            xp.minimum(numbers, xp.nextafter(*ends), out=numbers)
        return numbers


class Normal(Distribution):
    __slots__ = ()

    parameters = ("loc", "scale")
    requirements = ("a number", "greater than 0")

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        loc, scale = parameters
        return scaled(generator.standard_normal(shape, working(dtype), out), scale, loc)


class Gamma(Distribution):
    __slots__ = ()

    parameters = ("alpha", "beta")
    requirements = ("greater than 0", "greater than 0")

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        alpha, beta = parameters
        return scaled(generator.standard_gamma(alpha, shape, working(dtype), out), beta, 0)


class Exponential(Distribution):
    __slots__ = ()

    parameters = ("lam",)
    requirements = ("greater than 0",)

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        numbers = generator.standard_exponential(shape, working(dtype), out=out)
        numbers /= parameters[0]
        return numbers


def poisson(xp: Any, generator: Any, shape: Shape, lam: Any) -> Array:
    """Whole numbers from Poisson distributions. Expectations beyond what int64 holds are cut to it."""
    return generator.poisson(xp.minimum(lam, 9e18) if not isinstance(lam, NUMBER) else min(lam, 9e18), shape)


class Poisson(Distribution):
    __slots__ = ()

    parameters = ("lam",)
    requirements = ("at least 0",)

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        return poisson(xp, generator, shape, parameters[0])


class NegativeBinomial(Distribution):
    """Failures before the k-th success, where a trial succeeds with probability p: a Poisson with gamma-distributed
    expectation."""

    __slots__ = ()

    parameters = ("k", "p")
    requirements = ("at least 0", "greater than 0 and at most 1")

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        k, p = parameters
        return poisson(xp, generator, shape, generator.standard_gamma(k, shape) * ((1 - p) / p))


class GeneralizedNegativeBinomial(Distribution):
    """The negative binomial by its mean and dispersion: k is `1 / alpha`, not a whole number, p is `1 / (mu * alpha + 1)`."""

    __slots__ = ()

    parameters = ("mu", "alpha")
    requirements = ("at least 0", "at least 0")

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        mu, alpha = (xp.asarray(parameter, DOUBLE) for parameter in parameters)
        point = alpha == 0  # no dispersion beyond Poisson's own
        alpha = xp.where(point, 1.0, alpha)
        spread = generator.standard_gamma(1 / alpha, shape) * (alpha * mu)
        return poisson(xp, generator, shape, xp.where(point, mu, spread))


class Integers(Distribution):
    """Whole numbers from `low` to `high - 1`, each as likely as any other."""

    __slots__ = ()

    parameters = ("low", "high")
    requirements = ("a number", "a number")

    def check(self, names: tuple[str, ...], *parameters: Any) -> None:
        low, high = parameters
        if low >= high:
            raise MXNetError(f"{self.name}: low must be less than high ({low} and {high})")

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        low, high = parameters
        return generator.integers(low, high, shape, dtype)


# ---- forms


@dataclass(frozen=True, slots=True)
class Random(Distribution):
    """The form without inputs: parameters, shape and dtype are attributes."""

    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] | None = None

    inputs: ClassVar[tuple[str, ...]] = ()
    takes_out: ClassVar[bool] = True
    dtypes: ClassVar[tuple[np.dtype[Any], ...]] = FLOATS

    @classmethod
    def ignored_attrs(cls) -> tuple[str, ...]:
        return (*Op.ignored_attrs(), "ctx")  # the device is the caller's business

    def infer(self) -> Spec:
        return Spec.of(check_shape(self, self.shape, 1), check_dtype(self, self.dtype, self.dtypes))

    def kernel(self, xp: Any, *, key: Key, out: Array | None = None) -> Array:
        spec = self.infer()
        return drawn(self, xp, key, spec.shape, spec.dtype, out)


class Like(Distribution):
    """The form whose shape and dtype are those of an array; parameters are attributes."""

    __slots__ = ()

    takes_out = True

    def infer(self, data: Spec) -> Spec:
        require_kind(self, data.dtype, "f")
        return data

    def kernel(self, xp: Any, data: Array, *, key: Key, out: Array | None = None) -> Array:
        return drawn(self, xp, key, data.shape, data.dtype, out)


def drawn(op: Distribution, xp: Any, key: Key, shape: Shape, dtype: np.dtype[Any], out: Array | None) -> Array:
    """The result of an operator whose parameters are attributes: in `out` where the generator can write there."""
    parameters = [getattr(op, name) for name in op.parameters]
    op.check(op.parameters, *parameters)
    target = out if dtype in (SINGLE, DOUBLE) else None
    return op.draw(xp, key.generator(xp), shape, dtype, target, *parameters).astype(dtype, copy=False)


@dataclass(frozen=True, slots=True)
class Sample(Distribution):
    """The form whose parameters are arrays: numbers of `shape` for each of their elements."""

    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] | None = None

    def fill(self, *specs: Spec | None) -> tuple[Spec | None, ...]:
        known = next((spec for spec in specs if spec is not None), None)
        return tuple(spec or known for spec in specs)

    def infer(self, *parameters: Spec) -> Spec:
        same_dtype(self, *parameters)
        shape = same_shape(self, *parameters) + check_shape(self, self.shape, 0)
        return Spec.of(shape, check_dtype(self, self.dtype, FLOATS))

    def kernel(self, xp: Any, *parameters: Array, key: Key) -> Array:
        dtype = SINGLE if self.dtype is None else self.dtype
        columns = [each.reshape(each.shape + (1,) * len(self.shape)).astype(working(dtype)) for each in parameters]
        self.check(self.inputs, *columns)
        shape = parameters[0].shape + self.shape
        return self.draw(xp, key.generator(xp), shape, dtype, None, *columns).astype(dtype, copy=False)


def check_shape(op: Op, shape: Shape, least: int) -> Shape:
    """`shape`, of at least `least` axes. Raises ShapeError otherwise."""
    if len(shape) < least or any(length < 0 for length in shape):
        raise ShapeError(f"{op.name}: shape is {shape}; wants a tuple of lengths that are not negative, such as (2, 3)")
    return shape


def check_dtype(op: Op, dtype: np.dtype[Any] | None, allowed: tuple[np.dtype[Any], ...]) -> np.dtype[Any]:
    """`dtype`, or the first of `allowed` for None. Raises DTypeError for one that is not allowed."""
    if dtype is None:
        return allowed[0]
    if dtype not in allowed:
        raise DTypeError(f"{op.name}: dtype is {dtype.name}, wants one of {', '.join(each.name for each in allowed)}")
    return dtype


# ---- parameters are numbers


@register("_random_uniform", "random_uniform", "uniform")
@dataclass(frozen=True, slots=True)
class RandomUniform(Uniform, Random):
    low: float = 0.0
    high: float = 1.0


@register("_random_normal", "random_normal", "normal")
@dataclass(frozen=True, slots=True)
class RandomNormal(Normal, Random):
    loc: float = 0.0
    scale: float = 1.0


@register("_random_gamma", "random_gamma")
@dataclass(frozen=True, slots=True)
class RandomGamma(Gamma, Random):
    alpha: float = 1.0
    beta: float = 1.0


@register("_random_exponential", "random_exponential")
@dataclass(frozen=True, slots=True)
class RandomExponential(Exponential, Random):
    lam: float = 1.0


@register("_random_poisson", "random_poisson")
@dataclass(frozen=True, slots=True)
class RandomPoisson(Poisson, Random):
    lam: float = 1.0


@register("_random_negative_binomial", "random_negative_binomial")
@dataclass(frozen=True, slots=True)
class RandomNegativeBinomial(NegativeBinomial, Random):
    k: int = 1
    p: float = 1.0


@register("_random_generalized_negative_binomial", "random_generalized_negative_binomial")
@dataclass(frozen=True, slots=True)
class RandomGeneralizedNegativeBinomial(GeneralizedNegativeBinomial, Random):
    mu: float = 1.0
    alpha: float = 1.0


@register("_random_randint", "random_randint")
@dataclass(frozen=True, slots=True)
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
@dataclass(frozen=True, slots=True)
class UniformLike(Uniform, Like):
    low: float = 0.0
    high: float = 1.0


@register("_random_normal_like")
@dataclass(frozen=True, slots=True)
class NormalLike(Normal, Like):
    loc: float = 0.0
    scale: float = 1.0


@register("_random_gamma_like")
@dataclass(frozen=True, slots=True)
class GammaLike(Gamma, Like):
    alpha: float = 1.0
    beta: float = 1.0


@register("_random_exponential_like")
@dataclass(frozen=True, slots=True)
class ExponentialLike(Exponential, Like):
    lam: float = 1.0


@register("_random_poisson_like")
@dataclass(frozen=True, slots=True)
class PoissonLike(Poisson, Like):
    lam: float = 1.0


@register("_random_negative_binomial_like")
@dataclass(frozen=True, slots=True)
class NegativeBinomialLike(NegativeBinomial, Like):
    k: int = 1
    p: float = 1.0


@register("_random_generalized_negative_binomial_like")
@dataclass(frozen=True, slots=True)
class GeneralizedNegativeBinomialLike(GeneralizedNegativeBinomial, Like):
    mu: float = 1.0
    alpha: float = 1.0


def uniform_like(data: T, low: float = 0.0, high: float = 1.0, **how: Unpack[How]) -> T:
    """Numbers from [low, high), each as likely as any other.

    **Shapes** data and result (...), of one floating dtype; only the shape and dtype of data matter. **Raises** MXNetError, when
    the value is asked for, if low exceeds high. **Gradient** none. **Source** MXNet `random.uniform_like`.
    """
    return apply(UniformLike(float(low), float(high)), data, **how)


def normal_like(data: T, loc: float = 0.0, scale: float = 1.0, **how: Unpack[How]) -> T:
    """Numbers from the normal distribution with mean `loc` and standard deviation `scale`, which must be greater than 0.

    **Shapes**, **Raises**, **Gradient** as `uniform_like`. **Source** MXNet `random.normal_like`.
    """
    return apply(NormalLike(float(loc), float(scale)), data, **how)


def gamma_like(data: T, alpha: float = 1.0, beta: float = 1.0, **how: Unpack[How]) -> T:
    """Numbers from the gamma distribution of shape `alpha` and *scale* `beta`, both greater than 0; the mean is `alpha * beta`.

    **Shapes**, **Raises**, **Gradient** as `uniform_like`. **Source** MXNet `random.gamma_like`.
    """
    return apply(GammaLike(float(alpha), float(beta)), data, **how)


def exponential_like(data: T, lam: float = 1.0, **how: Unpack[How]) -> T:
    """Numbers from the exponential distribution of *rate* `lam`, greater than 0; the mean is `1 / lam`.

    **Shapes**, **Raises**, **Gradient** as `uniform_like`. **Source** MXNet `random.exponential_like`.
    """
    return apply(ExponentialLike(float(lam)), data, **how)


def poisson_like(data: T, lam: float = 1.0, **how: Unpack[How]) -> T:
    """Whole numbers, in a floating dtype, from the Poisson distribution with mean `lam`, at least 0.

    **Shapes**, **Raises**, **Gradient** as `uniform_like`. **Source** MXNet `random.poisson_like`.
    """
    return apply(PoissonLike(float(lam)), data, **how)


def negative_binomial_like(data: T, k: int = 1, p: float = 1.0, **how: Unpack[How]) -> T:
    """How many trials fail before the `k`-th that succeeds, where each succeeds with probability `p` in (0, 1].

    **Shapes**, **Raises**, **Gradient** as `uniform_like`. **Source** MXNet `random.negative_binomial_like`.
    """
    return apply(NegativeBinomialLike(whole("negative_binomial_like: k", k), float(p)), data, **how)


def generalized_negative_binomial_like(data: T, mu: float = 1.0, alpha: float = 1.0, **how: Unpack[How]) -> T:
    """Whole numbers from the negative binomial distribution with mean `mu` and variance `mu + alpha * mu**2`, both at least 0.

    **Shapes**, **Raises**, **Gradient** as `uniform_like`. **Source** MXNet `random.generalized_negative_binomial_like`.
    """
    return apply(GeneralizedNegativeBinomialLike(float(mu), float(alpha)), data, **how)


def whole(what: str, value: Any) -> int:
    """`value` as an int. Raises ArgumentError for anything that is no whole number by type."""
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentError(f"{what} is {value!r}, wants an int") from None


# ---- parameters are arrays


@register("_sample_uniform", "sample_uniform")
@dataclass(frozen=True, slots=True)
class SampleUniform(Uniform, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("low", "high")


@register("_sample_normal", "sample_normal")
@dataclass(frozen=True, slots=True)
class SampleNormal(Normal, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("mu", "sigma")


@register("_sample_gamma", "sample_gamma")
@dataclass(frozen=True, slots=True)
class SampleGamma(Gamma, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("alpha", "beta")


@register("_sample_exponential", "sample_exponential")
@dataclass(frozen=True, slots=True)
class SampleExponential(Exponential, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("lam",)


@register("_sample_poisson", "sample_poisson")
@dataclass(frozen=True, slots=True)
class SamplePoisson(Poisson, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("lam",)


@register("_sample_negative_binomial", "sample_negative_binomial")
@dataclass(frozen=True, slots=True)
class SampleNegativeBinomial(NegativeBinomial, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("k", "p")


@register("_sample_generalized_negative_binomial", "sample_generalized_negative_binomial")
@dataclass(frozen=True, slots=True)
class SampleGeneralizedNegativeBinomial(GeneralizedNegativeBinomial, Sample):
    inputs: ClassVar[tuple[str, ...]] = ("mu", "alpha")


def _sampled(cls: type[Sample], parameters: tuple[Any, ...], shape: Any, dtype: Any, how: Any) -> Any:
    """Apply a sampling operator; `shape` and `dtype` as users write them."""
    return apply(cls(sample_shape(shape), None if dtype is None else as_dtype(dtype)), *parameters, **how)


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
