"""How random numbers are drawn: eight distributions, and the three forms in which MXNet has each.

A *distribution* says how numbers are drawn and what its parameters may be. A *form* says where parameters and shape come from:
numbers and a shape (`_random_normal`), numbers and an array whose shape it is (`_random_normal_like`), or arrays, with so many
draws for each element (`_sample_normal`). An operator (random.py) is a class that inherits from one of each.

A kernel gets its key (seeds.py) from the call and draws from the generator of that key only: the numbers depend on the seed and
the order of calls, on nothing else. Book: chapter 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import DTypeError, MXNetError, ShapeError
from ..op import Array, Op, Shape, Spec, attributes
from ..rules import same_dtype, same_shape
from .forms import require_kind

if TYPE_CHECKING:
    from ..seeds import Key

HALF, SINGLE, DOUBLE = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
FLOATS = (SINGLE, DOUBLE, HALF)  # the default first
NUMBER = (int, float)


# ---- distributions


class Distribution(Op):
    """How numbers are drawn, and what the parameters may be."""

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
                shown = f"is {value}" if isinstance(value, NUMBER) else "has elements out of its range"
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
    parameters = ("loc", "scale")
    requirements = ("a number", "greater than 0")

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        loc, scale = parameters
        return scaled(generator.standard_normal(shape, working(dtype), out), scale, loc)


class Gamma(Distribution):
    parameters = ("alpha", "beta")
    requirements = ("greater than 0", "greater than 0")

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        alpha, beta = parameters
        return scaled(generator.standard_gamma(alpha, shape, working(dtype), out), beta, 0)


class Exponential(Distribution):
    parameters = ("lam",)
    requirements = ("greater than 0",)

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        numbers = generator.standard_exponential(shape, working(dtype), out=out)
        numbers /= parameters[0]
        return numbers


def poisson(xp: Any, generator: Any, shape: Shape, lam: Any) -> Array:
    """Whole numbers from Poisson distributions. Beyond what int64 holds it is the expectation itself, exact to nine digits."""
    expected = xp.asarray(lam, DOUBLE)
    counts = generator.poisson(xp.minimum(expected, 9e18), shape)
    return xp.where(expected > 9e18, expected, counts) if (expected > 9e18).any() else counts


class Poisson(Distribution):
    parameters = ("lam",)
    requirements = ("at least 0",)

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        return poisson(xp, generator, shape, parameters[0])


class NegativeBinomial(Distribution):
    """Failures before the k-th success, where a trial succeeds with probability p: a Poisson with gamma-distributed
    expectation."""

    parameters = ("k", "p")
    requirements = ("at least 0", "greater than 0 and at most 1")

    def draw(self, xp: Any, generator: Any, shape: Shape, dtype: np.dtype[Any], out: Array | None, *parameters: Any) -> Array:
        k, p = parameters
        return poisson(xp, generator, shape, generator.standard_gamma(k, shape) * ((1 - p) / p))


class GeneralizedNegativeBinomial(Distribution):
    """The negative binomial by its mean and dispersion: k is `1 / alpha`, not a whole number, p is `1 / (mu * alpha + 1)`."""

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


@attributes
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


@attributes
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
