"""The error function, its inverse, the gamma function and its logarithm: functions that NumPy has not.

The first half computes them with arithmetic on whole arrays, from published approximations that are named beside the
coefficients; relative errors are below 1e-6 in float32 and 1e-12 in float64 (where the logarithm of gamma passes through 0, as at
1 and 2, 1e-14 is the *absolute* error). The second half makes them operators. The derivatives of gamma's logarithm, the polygamma
functions, are one more operator, which MXNet lacks; with it gamma can be differentiated any number of times. Book: chapter 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError
from ..op import Array, How, Spec, T, apply, register
from .forms import Unary, copy, require_kind

if TYPE_CHECKING:
    from typing_extensions import Unpack


def polynomial(x: Array, coefficients: Sequence[float]) -> Array:
    """Horner's rule: the polynomial whose coefficients, the highest first, are given. Fresh memory, in the dtype of x."""
    number = x.dtype.type
    result = x * number(coefficients[0])
    result += number(coefficients[1])
    for coefficient in coefficients[2:]:
        result *= x
        result += number(coefficient)
    return result


def float64(function: Any) -> Any:
    """Decorator: the function of an array, computed in float64 and returned in the array's dtype."""

    def computed(xp: Any, x: Array, *rest: Any) -> Array:
        return function(xp, x.astype(np.float64, copy=False), *rest).astype(x.dtype, copy=False)

    return computed


# ---- the error function

# In float32: an odd rational function on [-4, 4], outside of which erf is 1 to the last bit; from the Eigen library.
ERF32_ABOVE = (
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05, -7.34990630326855e-04,
    -2.95459980854025e-03, -1.60960333262415e-02,
)  # fmt: skip
ERF32_BELOW = (
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02,
)  # fmt: skip

# In float64: rational functions on three intervals. W. J. Cody, "Rational Chebyshev approximations for the error function",
# Mathematics of Computation 23 (1969), with the coefficients of his program CALERF.
NEAR_ABOVE = (
    1.85777706184603153e-1, 3.16112374387056560e00, 1.13864154151050156e02, 3.77485237685302021e02, 3.20937758913846947e03,
)  # fmt: skip
NEAR_BELOW = (1.0, 2.36012909523441209e01, 2.44024637934444173e02, 1.28261652607737228e03, 2.84423683343917062e03)
MIDDLE_ABOVE = (
    2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e00, 6.61191906371416295e01, 2.98635138197400131e02,
    8.81952221241769090e02, 1.71204761263407058e03, 2.05107837782607147e03, 1.23033935479799725e03,
)  # fmt: skip
MIDDLE_BELOW = (
    1.0, 1.57449261107098347e01, 1.17693950891312499e02, 5.37181101862009858e02, 1.62138957456669019e03, 3.29079923573345963e03,
    4.36261909014324716e03, 3.43936767414372164e03, 1.23033935480374942e03,
)  # fmt: skip


def erf_of(xp: Any, x: Array) -> Array:
    """The error function: `2 / sqrt(pi)` times the integral of `exp(-t**2)` from 0 to x."""
    if x.dtype != np.float64:
        z = xp.clip(x.astype(np.float32, copy=False), np.float32(-4), np.float32(4))
        square = z * z
        z *= polynomial(square, ERF32_ABOVE)
        z /= polynomial(square, ERF32_BELOW)
        return z.astype(x.dtype, copy=False)
    size = xp.minimum(xp.abs(x), 6.0)  # 1 - erf(6) is 2e-17
    square = size * size
    near = x * polynomial(square, NEAR_ABOVE) / polynomial(square, NEAR_BELOW)
    # Beyond 4 Cody has a third pair, for the *relative* error of 1 - erf; for erf the second is exact there
    tail = xp.exp(-square) * polynomial(size, MIDDLE_ABOVE) / polynomial(size, MIDDLE_BELOW)
    return xp.where(xp.abs(x) <= 0.46875, near, xp.copysign(1.0 - tail, x))


# Coefficients of M. J. Wichura's algorithm AS 241 (PPND16), "The percentage points of the normal distribution", Applied
# Statistics 37 (1988): the quantile of the normal distribution near its middle, in its tails, and far out in them.
CENTRAL_ABOVE = (
    2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4, 1.3731693765509461125e4,
    1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080e0,
)  # fmt: skip
CENTRAL_BELOW = (
    5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4, 5.3941960214247511077e3,
    6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
)  # fmt: skip
TAIL_ABOVE = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e0,
    3.64784832476320460504e0, 5.76949722146069140550e0, 4.63033784615654529590e0, 1.42343711074968357734e0,
)  # fmt: skip
TAIL_BELOW = (
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
    6.89767334985100004550e-1, 1.67638483018380384940e0, 2.05319162663775882187e0, 1.0,
)  # fmt: skip
FAR_ABOVE = (
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
    2.96560571828504891230e-1, 1.78482653991729133580e0, 5.46378491116411436990e0, 6.65790464350110377720e0,
)  # fmt: skip
FAR_BELOW = (
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
    1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
)  # fmt: skip


@float64
def erfinv_of(xp: Any, x: Array) -> Array:
    """The number whose error function is x: the normal quantile of `(1 + x) / 2`, over `sqrt(2)`. NaN outside [-1, 1]."""
    half = x * 0.5
    centre = 0.180625 - half * half
    central = half * polynomial(centre, CENTRAL_ABOVE) / polynomial(centre, CENTRAL_BELOW)
    depth = xp.sqrt(-xp.log(0.5 - xp.abs(half)))  # NaN outside [-1, 1], infinite at the ends
    tail = polynomial(depth - 1.6, TAIL_ABOVE) / polynomial(depth - 1.6, TAIL_BELOW)
    far = polynomial(depth - 5.0, FAR_ABOVE) / polynomial(depth - 5.0, FAR_BELOW)
    outside = xp.where(depth == math.inf, math.inf, xp.where(depth <= 5.0, tail, far))
    return xp.where(xp.abs(half) <= 0.425, central, xp.copysign(outside, x)) * math.sqrt(0.5)


# ---- the gamma function

# Lanczos' series with g = 607/128 and 15 terms, coefficients by P. Godfrey (2001), https://www.numericana.com/answer/info/godfrey.htm
LANCZOS_G = 607.0 / 128.0
LANCZOS = (
    0.99999999999999709182, 57.156235665862923517, -59.597960355475491248, 14.136097974741747174, -0.49191381609762019978,
    0.33994649984811888699e-4, 0.46523628927048575665e-4, -0.98374475304879564677e-4, 0.15808870322491248884e-3,
    -0.21026444172410488319e-3, 0.21743961811521264320e-3, -0.16431810653676389022e-3, 0.84418223983852743293e-4,
    -0.26190838401581408670e-4, 0.36899182659531622704e-5,
)  # fmt: skip


def lanczos(xp: Any, x: Array) -> Array:
    """The series S(x) in gamma(x) = t**(x - 1/2) * exp(-t) * S(x) with t = x + g - 1/2, for x of at least 1/2."""
    total = LANCZOS[1] / x
    for i, coefficient in enumerate(LANCZOS[2:], 1):
        total += coefficient / (x + i)
    total += LANCZOS[0]
    total *= math.sqrt(2.0 * math.pi)
    return total


def reflected(xp: Any, x: Array) -> tuple[Array, Array]:
    """Where x is below 1/2, and 1 - x there, so that a formula for large arguments can be used on both sides of 1/2."""
    below = x < 0.5
    return below, xp.where(below, 1.0 - x, x)


def sin_pi(xp: Any, x: Array) -> Array:
    """sin(pi * x): exact where x is large, and 0 at whole numbers, because whole turns are taken off first."""
    nearest = xp.rint(x)
    return xp.sin(math.pi * (x - nearest)) * (1.0 - 2.0 * xp.abs(xp.remainder(nearest, 2.0)))


@float64
def gamma_of(xp: Any, x: Array) -> Array:
    """The gamma function, `(x - 1)!`. Infinite at 0, NaN at the negative whole numbers, where it has poles."""
    below, z = reflected(xp, x)
    t = z + (LANCZOS_G - 0.5)
    root = xp.power(t, 0.5 * z - 0.25)  # in two halves: the power alone overflows before gamma does
    above = xp.where(z > 180.0, math.inf, root * xp.exp(-t) * root * lanczos(xp, z))
    result = xp.where(below, math.pi / (sin_pi(xp, x) * above), above)
    result = xp.where((x < 0) & (x == xp.floor(x)), math.nan, result)
    return xp.where(x == 0, xp.copysign(math.inf, x), result)


@float64
def gammaln_of(xp: Any, x: Array) -> Array:
    """The natural logarithm of the absolute value of gamma. Infinite at 0 and the negative whole numbers."""
    below, z = reflected(xp, x)
    t = z + (LANCZOS_G - 0.5)
    above = (z - 0.5) * (xp.log(t) - 1.0) - LANCZOS_G + xp.log(lanczos(xp, z))
    above = xp.where(z == math.inf, math.inf, above)
    result = xp.where(below, math.log(math.pi) - xp.log(xp.abs(sin_pi(xp, x))) - above, above)
    return xp.where(xp.abs(x) == math.inf, math.inf, result)


# Bernoulli's numbers B(2), B(4), ...
BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330, 854513 / 138,
    -236364091 / 2730,
)  # fmt: skip


@float64
def polygamma_of(xp: Any, x: Array, order: int) -> Array:
    """The derivative of order `order + 1` of gammaln: digamma for 0, trigamma for 1. NaN at whole numbers from 0 down.

    Abramowitz and Stegun, Handbook of Mathematical Functions: the recurrence 6.4.6 moves x up to where the asymptotic series
    6.4.11 is exact; the reflection formula 6.4.7 serves x below 1/2.
    """
    below, z = reflected(xp, x)
    sign = -1.0 if order % 2 == 0 else 1.0
    factorial = math.factorial(order)
    total = xp.zeros_like(z)
    shift = 16 + 2 * order
    for i in range(shift):
        total += (z + i) ** -(order + 1.0)
    total *= sign * factorial
    far = z + shift
    if order == 0:
        total += xp.log(far) - 0.5 / far
    else:
        total += sign * (math.factorial(order - 1) * far**-order + 0.5 * factorial * far ** -(order + 1.0))
    for k, bernoulli in enumerate(BERNOULLI, 1):
        total += sign * bernoulli * math.factorial(2 * k + order - 1) / math.factorial(2 * k) * far ** -(2.0 * k + order)
    total = xp.where(z == math.inf, math.inf if order == 0 else 0.0, total)
    # pi * cot(pi x), differentiated `order` times: a polynomial in cot, because cot' = -pi * (1 + cot**2)
    slope = np.polynomial.Polynomial([0.0, math.pi])
    for _ in range(order):
        slope = slope.deriv() * np.polynomial.Polynomial([-math.pi, 0.0, -math.pi])
    turn = math.pi * (x - xp.rint(x))
    cot = xp.cos(turn) / xp.sin(turn)
    mirrored = (total if order % 2 == 0 else -total) - polynomial(cot, tuple(float(c) for c in slope.coef[::-1]))
    result = xp.where(below, mirrored, total)
    return xp.where((x <= 0) & (x == xp.floor(x)), math.nan, result)


# ---- the operators


class Special(Unary):
    """A function of this file as an operator."""

    def compute(self, xp: Any, data: Array) -> Array:
        raise NotImplementedError

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        result = self.compute(xp, data)
        return result if out is None else copy(xp, result, out)


@register("erf")
class Erf(Special):
    saves_outputs = False

    def compute(self, xp: Any, data: Array) -> Array:
        return erf_of(xp, data)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (-(data * data)).exp() * (2.0 / math.sqrt(math.pi)),)


def erf(data: T, **how: Unpack[How]) -> T:
    """Error function, elementwise: `2 / sqrt(pi)` times the integral of `exp(-t**2)` from 0 to data.

    **Shapes** data and result (...). **Gradient** `g * exp(-data**2) * 2 / sqrt(pi)`. **Source** MXNet `erf`; formula: Cody 1969.
    """
    return apply(Erf(), data, **how)


@register("erfinv")
class Erfinv(Special):
    saves_inputs = False

    def compute(self, xp: Any, data: Array) -> Array:
        return erfinv_of(xp, data)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * (y * y).exp() * (0.5 * math.sqrt(math.pi)),)


def erfinv(data: T, **how: Unpack[How]) -> T:
    """Number whose error function is data, elementwise; infinite at -1 and 1, NaN outside.

    **Shapes** data and result (...). **Gradient** `g * exp(y**2) * sqrt(pi) / 2`. **Source** MXNet `erfinv`; formula: AS 241.
    """
    return apply(Erfinv(), data, **how)


@register("gamma")
class Gamma(Special):
    def compute(self, xp: Any, data: Array) -> Array:
        return gamma_of(xp, data)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * y * polygamma(data),)


def gamma(data: T, **how: Unpack[How]) -> T:
    """Gamma function, elementwise: `(data - 1)!` at whole numbers. Infinite at 0, NaN at negative whole numbers.

    **Shapes** data and result (...). **Gradient** `g * y * digamma(data)`. **Source** MXNet `gamma`; formula: Lanczos.
    """
    return apply(Gamma(), data, **how)


@register("gammaln")
class Gammaln(Special):
    saves_outputs = False

    def compute(self, xp: Any, data: Array) -> Array:
        return gammaln_of(xp, data)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * polygamma(data),)


def gammaln(data: T, **how: Unpack[How]) -> T:
    """Natural logarithm of the absolute value of the gamma function, elementwise. Infinite at whole numbers from 0 down.

    **Shapes** data and result (...). **Gradient** `g * digamma(data)`. **Source** MXNet `gammaln`; formula as `gamma`.
    """
    return apply(Gammaln(), data, **how)


@register("_polygamma")
class Polygamma(Special):
    order: int = 0

    saves_outputs: ClassVar = False

    def infer(self, data: Spec) -> Spec:
        if self.order < 0:
            raise ArgumentError(f"_polygamma: order is {self.order}; it counts derivatives, from 0 up")
        require_kind(self, data.dtype, self.accepts)
        return data

    def compute(self, xp: Any, data: Array) -> Array:
        return polygamma_of(xp, data, self.order)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g * polygamma(data, self.order + 1),)


def polygamma(data: T, order: int = 0, **how: Unpack[How]) -> T:
    """Derivative of order `order + 1` of `gammaln`, elementwise: digamma for 0, trigamma for 1. NaN at whole numbers from 0 down.

    **Shapes** data and result (...). **Gradient** `g * polygamma(data, order + 1)`. **Source** Abramowitz and Stegun, chapter 6;
    MXNet has it inside the gradient of `gammaln` only.
    """
    return apply(Polygamma(order), data, **how)
