"""Rows of the operators that draw: ops/distributions.py, random.py, sampling.py; and of the densities: ops/density.py.

What is drawn has no oracle here: rows check shapes, dtypes, errors and equality of the engines. The distributions themselves are
tested in tests/test_random.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.stats

from minimx import nd
from minimx.base import ArgumentError, DTypeError, MXNetError, ShapeError
from minimx.ops import density

from .harness import Bad, Case, integers, normal, uniform

CASES: list[Case] = []


def shuffled(values: Any) -> Callable[[np.random.Generator], np.ndarray]:
    """Just these values."""
    return lambda rng: np.array(values)


# ---- parameters are numbers

RANGE = "wants one of float32, float64, float16"


def numbers(name: str, function: Any, *parameters: float, bad: tuple[Bad, ...] = ()) -> None:
    """Rows of `_random_<name>`: the default dtype, each dtype, no elements beyond one, an array to write into."""
    op = f"_random_{name}"
    kind = "int32" if name == "randint" else "float32"
    shape = (
        Bad(lambda nd: function(*parameters, shape=(2, -1)), ShapeError, "at least 1"),
        Bad(lambda nd: function(*parameters, shape="wide"), ArgumentError, "shape must be an int or a tuple"),
        Bad(lambda nd: function(*parameters, ctx="cpu"), ArgumentError, "ctx must be a Context"),
        Bad(lambda nd: function(*parameters, out=nd.ones(3, dtype=kind), shape=2), ShapeError, r"out has shape \(3,\)"),
    )
    CASES.append(drawing(op, lambda: function(*parameters, shape=(3, 4)), bad=(*shape, *bad)))
    CASES.append(drawing(op, lambda: function(*parameters), label="one"))
    CASES.append(drawing(op, lambda: function(*parameters, out=nd.ones((2, 3), dtype=kind)), label="out"))
    for dtype in ("int64",) if name == "randint" else ("float16", "float64"):
        CASES.append(drawing(op, partial(function, *parameters, shape=5, dtype=dtype), label=dtype))


def drawing(op: str, call: Callable[[], Any], **fields: Any) -> Case:
    """A row without inputs."""
    return Case(op, call, (), fields.pop("oracle", None), grad=False, dtypes=("float32",), **fields)


rnd = nd.random
numbers(
    "uniform", rnd.uniform, -1.0, 3.0,
    bad=(
        Bad(lambda nd: rnd.uniform(1, 0), MXNetError, r"low must not exceed high \(1 and 0\)"),
        Bad(lambda nd: rnd.uniform(float("nan"), 1), MXNetError, "low must not exceed high"),
        Bad(lambda nd: rnd.uniform(0, 1, 2, dtype="int32"), DTypeError, f"dtype is int32, {RANGE}"),
        Bad(lambda nd: rnd.uniform(0, nd.ones(2)), ArgumentError, "high is an NDArray, low is not"),
        Bad(lambda nd: rnd.uniform("0", 1), ArgumentError, "low: an NDArray, a Symbol or a number is wanted, got '0'"),
    ),
)  # fmt: skip
numbers("normal", rnd.normal, 1.0, 2.0, bad=(
    Bad(lambda nd: rnd.normal(0, -1, (2, 2)), MXNetError, "scale is -1; it must be greater than 0"),
    Bad(lambda nd: rnd.normal(0, 0), MXNetError, "scale is 0; it must be greater than 0"),
))  # fmt: skip
numbers("gamma", rnd.gamma, 0.5, 2.0, bad=(
    Bad(lambda nd: rnd.gamma(0, 1), MXNetError, "alpha is 0; it must be greater than 0"),
    Bad(lambda nd: rnd.gamma(1, -1), MXNetError, "beta is -1; it must be greater than 0"),
))  # fmt: skip
numbers("exponential", rnd.exponential, 0.25, bad=(
    Bad(lambda nd: rnd.exponential(0), ArgumentError, "scale is 0; it must be greater than 0"),
    Bad(lambda nd: rnd.exponential(-1), MXNetError, r"lam is -1.0; it must be greater than 0"),
    Bad(lambda nd: nd.random_exponential(lam=0), MXNetError, "lam is 0; it must be greater than 0"),
))  # fmt: skip
numbers("poisson", rnd.poisson, 4.0, bad=(
    Bad(lambda nd: rnd.poisson(-1), MXNetError, "lam is -1; it must be at least 0"),
    Bad(lambda nd: rnd.poisson(float("nan")), MXNetError, "lam is nan; it must be at least 0"),
))  # fmt: skip
numbers("negative_binomial", rnd.negative_binomial, 3, 0.4, bad=(
    Bad(lambda nd: rnd.negative_binomial(1.5, 0.5), ArgumentError, "k is 1.5, wants an int"),
    Bad(lambda nd: rnd.negative_binomial(-1, 0.5), MXNetError, "k is -1; it must be at least 0"),
    Bad(lambda nd: rnd.negative_binomial(1, 0), MXNetError, "p is 0; it must be greater than 0 and at most 1"),
    Bad(lambda nd: rnd.negative_binomial(1, 1.5), MXNetError, "p is 1.5; it must be greater than 0 and at most 1"),
))  # fmt: skip
numbers("generalized_negative_binomial", rnd.generalized_negative_binomial, 2.0, 0.3, bad=(
    Bad(lambda nd: rnd.generalized_negative_binomial(-1, 1), MXNetError, "mu is -1; it must be at least 0"),
    Bad(lambda nd: rnd.generalized_negative_binomial(1, -1), MXNetError, "alpha is -1; it must be at least 0"),
))  # fmt: skip
numbers("randint", rnd.randint, -1, 3, bad=(
    Bad(lambda nd: rnd.randint(0, 5.0), ArgumentError, "high is 5.0, wants an int"),
    Bad(lambda nd: rnd.randint(5, 3), MXNetError, r"low must be less than high \(5 and 3\)"),
    Bad(lambda nd: rnd.randint(0, 2**40), ArgumentError, "give dtype='int64'"),
    Bad(lambda nd: rnd.randint(0, 5, dtype="float32"), DTypeError, "dtype is float32, wants one of int32, int64"),
))  # fmt: skip


# ---- the shape of an array


def like(name: str, function: Any, **parameters: float) -> None:
    op = f"_random_{name}_like"
    bad = (
        Bad(lambda nd: function(nd.ones(2, dtype="int32")), DTypeError, "data is int32, a floating dtype is wanted"),
        Bad(lambda nd: function(2.0), ArgumentError, "an NDArray or a Symbol is wanted, got float"),
    )
    for label, shape in ("", (3, 4)), ("single", (1,)), ("empty", (2, 0)):
        CASES.append(Case(op, lambda x: function(x, **parameters), (normal(*shape),), None, grad=False, bad=bad, label=label))
        bad = ()


like("uniform", rnd.uniform_like, low=-1.0, high=3.0)
like("normal", rnd.normal_like, loc=1.0, scale=2.0)
like("gamma", rnd.gamma_like, alpha=0.5, beta=2.0)
like("exponential", rnd.exponential_like, lam=4.0)
like("poisson", rnd.poisson_like, lam=4.0)
like("negative_binomial", rnd.negative_binomial_like, k=3, p=0.4)
like("generalized_negative_binomial", rnd.generalized_negative_binomial_like, mu=2.0, alpha=0.3)


# ---- parameters are arrays


def sample(name: str, *ranges: tuple[float, float], wrong: tuple[float, ...]) -> None:
    """Rows of `_sample_<name>` with parameters drawn from `ranges`; `wrong` are parameters of which one is not allowed."""
    op, function = f"_sample_{name}", getattr(nd, f"sample_{name}")
    inputs = [uniform(low, high, 2, 3) for low, high in ranges]
    bad = [
        Bad(lambda nd: function(*(nd.array([value, value]) for value in wrong), 2), MXNetError, "must"),
        Bad(lambda nd: function(*(nd.ones(2) for _ in ranges), shape=(2, -1)), ShapeError, "that are not negative"),
        Bad(lambda nd: function(*(nd.ones(2) for _ in ranges), dtype="int32"), DTypeError, f"dtype is int32, {RANGE}"),
        Bad(lambda nd: function(*(1.0 for _ in ranges)), ArgumentError, "an NDArray or a Symbol is wanted"),
    ]
    if len(ranges) == 2:
        bad += [
            Bad(lambda nd: function(nd.ones(2), nd.ones(3)), ShapeError, "they must be equal"),
            Bad(lambda nd: function(nd.ones(2), nd.ones(2, dtype="float64")), DTypeError, "convert one with astype"),
        ]
    for label, call in {
        "": lambda *parameters: function(*parameters, shape=(4, 2)),
        "none": function,
        "int": lambda *parameters: function(*parameters, shape=3),
        "float16": lambda *parameters: function(*parameters, shape=3, dtype="float16"),
        "zero": lambda *parameters: function(*parameters, shape=0),
    }.items():
        CASES.append(Case(op, call, tuple(inputs), None, grad=False, bad=tuple(bad), label=label))
        bad = []
    CASES.append(Case(op, function, tuple(uniform(low, high, 0, 2) for low, high in ranges), None, grad=False, label="empty"))
    CASES.append(Case(op, function, tuple(integers(1, 2, 3) for _ in ranges), None, grad=False, label="integers"))


sample("uniform", (-2, 0), (1, 3), wrong=(1, 0))
sample("normal", (-2, 2), (0.5, 3), wrong=(0, -1))
sample("gamma", (0.2, 3), (0.5, 3), wrong=(-1, 1))
sample("exponential", (0.2, 3), wrong=(-1,))
sample("poisson", (0, 30), wrong=(-1,))
sample("negative_binomial", (1, 5), (0.2, 1), wrong=(1, 0))
sample("generalized_negative_binomial", (0, 5), (0, 1), wrong=(1, -1))


# ---- classes, shuffling

multinomial = rnd.multinomial
weights = uniform(0.1, 1, 2, 4)
CASES += [
    Case("_sample_multinomial", multinomial, (weights,), None, grad=False, bad=(
        Bad(lambda nd: multinomial(nd.ones((2, 2), dtype="int32")), DTypeError, "data is int32, a floating dtype is wanted"),
        Bad(lambda nd: multinomial(nd.ones(2), dtype="int64"), DTypeError, "dtype is int64, wants one of int32, uint8"),
        Bad(lambda nd: multinomial(nd.array([-1, 2])), MXNetError, "negative probability"),
        Bad(lambda nd: multinomial(nd.array([[1, 2], [0, 0]])), MXNetError, "only zeros in a row"),
        Bad(lambda nd: multinomial(nd.array([1, float("nan")])), MXNetError, "that is no number"),
        Bad(lambda nd: multinomial(nd.ones((2, 257)), dtype="uint8"), ArgumentError, "too small to number the 257 classes"),
        Bad(lambda nd: multinomial(nd.ones(2), shape=(-1,)), ShapeError, "that are not negative"),
        Bad(lambda nd: multinomial(nd.array(np.zeros((2, 0)))), ShapeError, "a probability for each class"),
    )),
    Case("_sample_multinomial", lambda x: multinomial(x, shape=(3, 2), get_prob=True), (weights,), None, label="prob"),
    Case("_sample_multinomial", lambda x: multinomial(x, get_prob=True), (weights,), None, label="prob-one"),
    Case("_sample_multinomial", lambda x: multinomial(x, 5, True), (uniform(0.1, 1, 4),), None, label="prob-vector"),
    Case("_sample_multinomial", lambda x: multinomial(x, get_prob=True), (uniform(0.1, 1, 4),), None, label="prob-vector-one"),
    Case("_sample_multinomial", lambda x: multinomial(x, 3, True, dtype="uint8"), (uniform(0.1, 1, 2, 2, 3),), None),
    Case("_sample_multinomial", lambda x: multinomial(x, 0, True), (weights,), None, grad=False, label="zero"),
    Case("_sample_multinomial", lambda x: multinomial(x, 2), (uniform(0, 1, 0, 3),), None, grad=False, label="empty"),
    Case("_sample_multinomial", lambda x: multinomial(x, 2, True), (shuffled([[0, 0, 1.0], [1, 0, 0]]),),
         lambda x: (np.array([[2, 2], [0, 0]]), np.zeros((2, 2))), grad=False, label="certain"),
    Case("_shuffle", rnd.shuffle, (normal(1, 3),), lambda x: x, grad=False, label="single", bad=(
        Bad(lambda nd: rnd.shuffle(nd.array(np.array(1.0))), ShapeError, "no axis to shuffle along"),
        Bad(lambda nd: rnd.shuffle(3), ArgumentError, "an NDArray or a Symbol is wanted"),
    )),
    Case("_shuffle", rnd.shuffle, (normal(0, 3),), lambda x: x, grad=False, label="empty"),
    Case("_shuffle", lambda x: rnd.shuffle(x).sort(axis=0), (integers(0, 9, 7),), lambda x: np.sort(x, axis=0), grad=False),
    Case("_shuffle", lambda x: rnd.shuffle(x).sum(axis=0), (normal(5, 3),), lambda x: x.sum(0), grad=False, label="rows",
         dtypes=("float64",)),
]  # fmt: skip


zipfian = rnd.unique_zipfian
CASES += [
    drawing("_sample_unique_zipfian", lambda: zipfian(20, (3, 8)), bad=(
        Bad(lambda nd: zipfian(3, (2, 4)), MXNetError, r"4 different classes are wanted, but there are 3 \(range_max\)"),
        Bad(lambda nd: zipfian(3, (2,)), ShapeError, r"wants \(batch, classes to draw\)"),
        Bad(lambda nd: zipfian(3.5, (2, 2)), ArgumentError, "range_max is 3.5, wants an int"),
    )),
    drawing("_sample_unique_zipfian", lambda: zipfian(5, (2, 5))[0].sort(axis=1), label="all",
            oracle=lambda: np.tile(np.arange(5), (2, 1))),
]  # fmt: skip


# ---- densities


def spread(parameter: np.ndarray, sample: np.ndarray) -> np.ndarray:
    """`parameter` with axes of length 1 behind, so that it broadcasts to `sample`."""
    return parameter.reshape(parameter.shape + (1,) * (sample.ndim - parameter.ndim))


def logged(function: Any) -> Any:
    """The logarithm of a density."""

    def of(*arrays: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.log(function(*arrays))

    return of


def pdf(name: str, oracle: Any, sample: tuple[float, float], *ranges: tuple[float, float], discrete: bool = False) -> None:
    """Rows of `_random_pdf_<name>`: sample and parameters of one shape, a sample of more axes, logarithms, edges."""
    op, function = f"_random_pdf_{name}", getattr(density, f"random_pdf_{name}")
    log = lambda *arrays: function(*arrays, is_log=True)  # noqa: E731

    def expected(x: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        return oracle(x, *(spread(each, x) for each in parameters))

    def inputs(shape: tuple[int, ...], lead: int) -> tuple[Any, ...]:
        first = integers(int(sample[0]), int(sample[1]), *shape) if discrete else uniform(*sample, *shape)
        # A whole number in a floating dtype: the input must have the dtype of the parameters
        floats = (lambda rng: first(rng).astype(np.float64)) if discrete else first
        return floats, *(uniform(*each, *shape[:lead]) for each in ranges)

    # The slope by a sample of whole numbers is none, which finite differences would not find
    gradient = {"grad": not discrete, "rtol": {"float32": 2e-6 if name == "normal" else 1e-5}}
    count = len(ranges)
    CASES.extend(
        [
            Case(op, function, inputs((2, 3), 2), expected, **gradient, bad=(
                Bad(lambda nd: function(nd.ones(3), *[nd.ones(2)] * count), ShapeError, "sample has shape"),
                Bad(lambda nd: function(*[nd.ones(2, dtype="int32")] * (count + 1)), DTypeError, "floating dtype is wanted"),
                Bad(lambda nd: function(nd.ones(2, dtype="float64"), *[nd.ones(2)] * count), DTypeError, "convert one with"),
            )),
            Case(op, function, inputs((2, 3, 2, 2), 2), expected, **gradient, label="more"),
            Case(op, log, inputs((2, 3), 1), logged(expected), **gradient, label="log"),
            Case(op, log, inputs((1,), 1), logged(expected), **gradient, label="log-single"),
            Case(op, function, inputs((2, 0), 1), expected, grad=False, label="empty"),
        ]
    )  # fmt: skip
    if discrete:  # gradients by the parameters alone
        first = inputs((2, 3), 1)[0](np.random.default_rng(1))
        for label, of in ("by-parameters", function), ("log-by-parameters", log):
            call = lambda *p, of=of: of(nd.array(first, dtype=p[0].dtype), *p)  # noqa: E731
            wanted = expected if of is function else logged(expected)
            oracle_of = lambda *p, wanted=wanted: wanted(first, *p)  # noqa: E731
            CASES.append(Case(op, call, tuple(uniform(*each, 2) for each in ranges), oracle_of, label=label))


stats = scipy.stats
pdf("uniform", lambda x, low, high: np.broadcast_to(1 / (high - low), x.shape), (0, 1), (-2, 0), (1, 3))
pdf("normal", stats.norm.pdf, (-2, 2), (-1, 1), (0.5, 2))
pdf("gamma", lambda x, alpha, beta: stats.gamma.pdf(x, alpha, 0, 1 / beta), (0.2, 4), (0.5, 5), (0.5, 2))
pdf("exponential", lambda x, lam: stats.expon.pdf(x, 0, 1 / lam), (0.1, 3), (0.5, 3))
pdf("poisson", stats.poisson.pmf, (0, 9), (0.5, 8), discrete=True)
pdf("negative_binomial", stats.nbinom.pmf, (0, 9), (0.5, 5), (0.2, 0.8), discrete=True)
pdf("generalized_negative_binomial", lambda x, mu, alpha: stats.nbinom.pmf(x, 1 / alpha, 1 / (mu * alpha + 1)), (0, 9), (0.5, 3),
    (0.2, 1), discrete=True)  # fmt: skip


def dirichlet(x: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """The density, vector by vector. SciPy wants a sum of exactly 1, so the formula is written out."""
    from scipy.special import gammaln

    alpha = np.broadcast_to(alpha.reshape(alpha.shape[:-1] + (1,) * (x.ndim - alpha.ndim) + alpha.shape[-1:]), x.shape)
    return np.exp(gammaln(alpha.sum(-1)) - gammaln(alpha).sum(-1) + ((alpha - 1) * np.log(x)).sum(-1))


def log_dirichlet(*arrays: np.ndarray) -> Any:
    return density.random_pdf_dirichlet(*arrays, is_log=True)


pdf_dirichlet = density.random_pdf_dirichlet
part, whole = uniform(0.1, 0.9, 2, 4, 3), uniform(0.5, 3, 2, 3)
integer = nd.ones(2, dtype="int32")
CASES += [
    Case("_random_pdf_dirichlet", pdf_dirichlet, (part, whole), dirichlet, bad=(
        Bad(lambda nd: pdf_dirichlet(nd.ones((2, 3)), nd.ones(2)), ShapeError, r"shape \(2, 3\), wants alpha's \(2,\)"),
        Bad(lambda nd: pdf_dirichlet(nd.ones((2, 3)), nd.ones((1, 3))), ShapeError, r"wants alpha's \(1, 3\)"),
        Bad(lambda nd: pdf_dirichlet(integer, integer), DTypeError, "floating dtype is wanted"),
    )),
    Case("_random_pdf_dirichlet", log_dirichlet, (part, whole), logged(dirichlet), label="log"),
    Case("_random_pdf_dirichlet", pdf_dirichlet, (uniform(0.1, 0.9, 2, 3), whole), dirichlet, label="same"),
    Case("_random_pdf_dirichlet", log_dirichlet, (part, uniform(0.5, 3, 3)), logged(dirichlet), label="one"),
    Case("_random_pdf_dirichlet", pdf_dirichlet, (uniform(0.1, 0.9, 3), uniform(0.5, 3, 3)), dirichlet, label="vector"),
    Case("_random_pdf_dirichlet", pdf_dirichlet, (normal(0, 3), uniform(0.5, 3, 3)), dirichlet, grad=False, label="empty"),
]  # fmt: skip
