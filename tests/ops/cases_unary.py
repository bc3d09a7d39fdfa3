"""Rows of the elementwise operators of one array: ops/unary.py, trigonometry.py, activation.py, special.py, casting.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from minimx.base import ArgumentError, DTypeError, ShapeError
from minimx.op import apply
from minimx.ops import activation, casting, special, trigonometry, unary

from .harness import Bad, Case, distinct, integers, normal, uniform

COARSE = np.inf  # float16 has not the numbers of the row
CORNERS = (-2.5, -2.0, -1.5, -0.5, 0.0, 0.5, 1.5, 2.0, 2.5)


def given(*numbers: float) -> Callable[[np.random.Generator], np.ndarray]:
    """Just these numbers."""
    return lambda rng: np.array(numbers, dtype=np.float64)


def whole(dtype: str, *numbers: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Just these whole numbers, as `dtype`."""
    return lambda rng: np.array(numbers, dtype=dtype)


def at(function: Any, oracle: Any, label: str, *numbers: float, **fields: Any) -> Case:
    """A row for certain numbers: edges of the domain, corners, where there is no gradient to check."""
    return Case(
        fields.pop("op", None) or function.__name__, function, (given(*numbers),), oracle, grad=False, label=label, **fields
    )


def of_integers(function: Any, oracle: Any, dtype: str, *numbers: int, label: str = "integers", op: str = "") -> Case:
    """A row for whole numbers."""
    return Case(op or function.__name__, function, (whole(dtype, *numbers),), oracle, grad=False, label=label)


def floats_only(function: Callable[..., Any]) -> tuple[Bad, ...]:
    """A function whose values are fractions refuses integers."""
    return (Bad(lambda nd: function(nd.array([1, 2], dtype="int32")), DTypeError, r"is int32, a floating dtype is wanted"),)


def smooth(function: Any, oracle: Any, low: float = -2.0, high: float = 2.0) -> list[Case]:
    """A differentiable function of floating arrays on (low, high); of no elements, of one, and of an array without axes."""
    name = function.__name__
    return [
        Case(name, function, (uniform(low, high, 3, 4),), oracle, bad=floats_only(function)),
        Case(name, function, (uniform(low, high, 2, 0),), oracle, label="empty"),
        Case(name, function, (uniform(low, high, 1),), oracle, label="single"),
        Case(name, function, (lambda rng: np.asarray(rng.uniform(low, high)),), oracle, grad=False, label="no axes"),
    ]


def steps(function: Any, oracle: Any, *numbers: float) -> list[Case]:
    """A function that rounds: its gradient is zero; integers stay what they are. `numbers` are its corners."""
    name = function.__name__
    return [
        Case(name, function, (distinct(3, 4),), oracle),
        at(function, oracle, "corners", *CORNERS, *numbers, rtol={"float16": COARSE}),
        of_integers(function, oracle, "int64", -3, 0, 8),
    ]


def half_away(x: np.ndarray) -> np.ndarray:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def half_down(x: np.ndarray) -> np.ndarray:
    return np.where(x - np.floor(x) > 0.5, np.floor(x) + 1, np.floor(x))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return scipy.special.expit(x)


def smooth_l1(x: np.ndarray, s: float) -> np.ndarray:
    return np.where(np.abs(x) < 1 / s**2, 0.5 * (s * x) ** 2, np.abs(x) - 0.5 / s**2)


SIGNS = [
    Case("abs", unary.abs, (distinct(3, 4),), np.abs),
    Case("abs", lambda x: unary.abs(x) * x, (distinct(2, 3),), lambda x: np.abs(x) * x, label="times x"),
    of_integers(unary.abs, np.abs, "int32", -3, 0, 7),
    Case("sign", unary.sign, (distinct(3, 4),), np.sign),
    of_integers(unary.sign, np.sign, "int32", -3, 0, 7),
    Case("negative", unary.negative, (normal(3, 4),), np.negative),
    of_integers(unary.negative, np.negative, "int8", -3, 0, 7),
]

ROUNDING = [
    *steps(unary.floor, np.floor),
    *steps(unary.ceil, np.ceil),
    *steps(unary.trunc, np.trunc),
    *steps(unary.fix, np.trunc),
    *steps(unary.round, half_away, 0.499999, 1e6 + 0.5),
    *steps(unary.rint, half_down, 0.499999, 1e6 + 0.5),
    # beyond 2**23 every float32 is whole: adding a half would round to the even neighbour
    at(unary.round, np.asarray, "large", 8388609.0, -8388611.0, np.inf, rtol={"float16": COARSE}),
    at(unary.rint, np.asarray, "large", 8388609.0, -8388611.0, np.inf, rtol={"float16": COARSE}),
]

POWERS = [
    *smooth(unary.exp, np.exp),
    *smooth(unary.expm1, np.expm1),
    at(unary.expm1, np.expm1, "near 0", 1e-6, -1e-7),
    *smooth(unary.log, np.log, 0.1, 4),
    *smooth(unary.log2, np.log2, 0.1, 4),
    *smooth(unary.log10, np.log10, 0.1, 4),
    *smooth(unary.log1p, np.log1p, -0.9, 4),
    at(unary.log, np.log, "edges", 0.0, -1.0, np.inf, np.nan),
    *smooth(unary.sqrt, np.sqrt, 0.1, 4),
    *smooth(unary.rsqrt, lambda x: x**-0.5, 0.1, 4),
    at(unary.rsqrt, lambda x: x**-0.5, "edges", 4.0, 0.0, -1.0),
    *smooth(unary.cbrt, np.cbrt, 0.1, 4),
    at(unary.cbrt, np.cbrt, "negative", -8.0, 27.0, 0.0),
    *smooth(unary.rcbrt, lambda x: 1 / np.cbrt(x), 0.1, 4),
    at(unary.rcbrt, lambda x: 1 / np.cbrt(x), "negative", -8.0, 27.0, 0.0),
    *smooth(unary.reciprocal, np.reciprocal, 0.2, 4),
    at(unary.reciprocal, np.reciprocal, "edges", 0.0, -0.0, -2.0),
    Case("square", unary.square, (normal(3, 4),), np.square),
    of_integers(unary.square, np.square, "uint8", 3, 200, label="integers wrap"),
]

NO_BOUNDS = (
    Bad(lambda nd: nd.clip(nd.ones((2,)), math.nan, 1), ArgumentError, "clip: the range is nan to 1; NaN is no bound"),
    Bad(lambda nd: nd.clip(nd.ones((2,)), "a", 1), ArgumentError, "clip: .* a number is wanted, got 'a'"),
    Bad(lambda nd: nd.clip(nd.ones((2,), dtype="uint8"), 300, 400), DTypeError, "uint8, which has no number of 300 to 400"),
)


def clipped(low: float, high: float) -> Callable[[Any], Any]:
    return lambda x: unary.clip(x, low, high)


CLIP = [
    Case("clip", clipped(-0.52, 0.71), (distinct(4, 5),), lambda x: np.clip(x, -0.52, 0.71), bad=NO_BOUNDS),
    at(clipped(0, np.inf), lambda x: np.maximum(x, 0), "half open", np.nan, -1.0, 2.0, np.inf, op="clip"),
    of_integers(
        clipped(-2.5, 2.5), lambda x: np.clip(x, -2, 2), "int32", -9, -2, 0, 3, label="bounds between integers", op="clip"
    ),
    of_integers(clipped(-1, 300), lambda x: x, "uint8", 0, 255, label="bounds outside the dtype", op="clip"),
    of_integers(clipped(-math.inf, 9), lambda x: np.minimum(x, 9), "int64", -(2**62), 10, label="half open integers", op="clip"),
]

TRIGONOMETRY = [
    *smooth(trigonometry.sin, np.sin),
    *smooth(trigonometry.cos, np.cos),
    *smooth(trigonometry.tan, np.tan, -1.3, 1.3),
    *smooth(trigonometry.arcsin, np.arcsin, -0.9, 0.9),
    at(trigonometry.arcsin, np.arcsin, "edges", 1.0, -1.0, 1.5),
    *smooth(trigonometry.arccos, np.arccos, -0.9, 0.9),
    *smooth(trigonometry.arctan, np.arctan),
    *smooth(trigonometry.sinh, np.sinh),
    *smooth(trigonometry.cosh, np.cosh),
    *smooth(trigonometry.tanh, np.tanh),
    *smooth(trigonometry.arcsinh, np.arcsinh),
    *smooth(trigonometry.arccosh, np.arccosh, 1.1, 4),
    *smooth(trigonometry.arctanh, np.arctanh, -0.9, 0.9),
    *smooth(trigonometry.degrees, np.degrees),
    *smooth(trigonometry.radians, np.radians, -180, 180),
]


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def softsign(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.abs(x))


def softrelu(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0)


def activate(act_type: str) -> Callable[[Any], Any]:
    return lambda x: activation.Activation(x, act_type)


NO_ACTIVATION = (
    Bad(
        lambda nd: nd.Activation(nd.ones((2,)), act_type="mish"),
        ArgumentError,
        "Activation: act_type is 'mish'; choose one of relu, sigmoid, softrelu, softsign, tanh",
    ),
    *floats_only(activate("relu")),
)

ACTIVATIONS = [
    Case("relu", activation.relu, (distinct(3, 4),), relu),
    Case(
        "_backward_relu",
        lambda head, result: apply(activation.ReluGradient(), head, result),
        (normal(3, 4), distinct(3, 4)),
        lambda head, result: np.where(np.isnan(result), np.nan, head * (result > 0)),
    ),
    Case(
        "_backward_relu",
        lambda head, result: apply(activation.ReluGradient(), head, result),
        (normal(4), given(np.nan, np.inf, 0.0, -1.0)),
        lambda head, result: np.array([np.nan, head[1], 0, 0]),
        label="edges",
        grad=False,
    ),
    of_integers(activation.relu, relu, "int32", -3, 0, 7),
    at(activation.relu, relu, "edges", np.nan, -np.inf, np.inf),
    *smooth(activation.sigmoid, sigmoid, -4, 4),
    at(activation.sigmoid, sigmoid, "far out", -1e4, 1e4, -20.0, rtol={"float16": COARSE}),
    *smooth(activation.softsign, softsign),
    *smooth(activation.hard_sigmoid, lambda x: np.clip(0.2 * x + 0.5, 0, 1), -3, 3),
    Case(
        "hard_sigmoid", lambda x: activation.hard_sigmoid(x, 0.7, 0.1), (distinct(3, 9),), lambda x: np.clip(0.7 * x + 0.1, 0, 1)
    ),
    Case("Activation", activate("relu"), (distinct(3, 4),), relu, label="relu", bad=NO_ACTIVATION),
    Case("Activation", activate("sigmoid"), (normal(3, 4),), sigmoid, label="sigmoid"),
    Case("Activation", activate("tanh"), (normal(3, 4),), np.tanh, label="tanh"),
    Case("Activation", activate("softsign"), (normal(3, 4),), softsign, label="softsign"),
    Case("Activation", activate("softrelu"), (normal(3, 4),), softrelu, label="softrelu"),
    at(activate("softrelu"), softrelu, "softrelu far out", -200.0, 200.0, -20.0, op="Activation"),
    *smooth(activation.smooth_l1, lambda x: smooth_l1(x, 1.0)),
    Case("smooth_l1", lambda x: activation.smooth_l1(x, scalar=2.0), (distinct(3, 4),), lambda x: smooth_l1(x, 2.0)),
    # Beyond float16 with its square, or beyond all numbers: the absolute value is left.
    Case("smooth_l1", lambda x: activation.smooth_l1(x, 1e3), (distinct(3, 4),), lambda x: smooth_l1(x, 1e3), label="narrow"),
    Case("smooth_l1", lambda x: activation.smooth_l1(x, 1e200), (distinct(3, 4),), np.abs, second=False, label="none"),
    at(lambda x: activation.smooth_l1(x, 2), lambda x: smooth_l1(x, 2.0), "corners", 0.0, -0.0, 0.25, -0.25, op="smooth_l1"),
]

NO_ORDER = (
    Bad(
        lambda nd: special.polygamma(nd.ones((2,)), -1),
        ArgumentError,
        "_polygamma: order is -1; it counts derivatives, from 0 up",
    ),
)
POLES = np.array([np.nan] * 3 + [np.inf] * 2)


def trigamma_slope(x: np.ndarray) -> np.ndarray:
    return scipy.special.polygamma(2, x)


SPECIAL = [
    *smooth(special.erf, scipy.special.erf, -3, 3),
    at(special.erf, scipy.special.erf, "edges", 0.0, 5.0, -5.0, 1e-6, np.inf, -np.inf, np.nan),
    *smooth(special.erfinv, scipy.special.erfinv, -0.9, 0.9),
    at(special.erfinv, scipy.special.erfinv, "edges", 0.0, 1.0, -1.0, 1e-6, 2.0, np.nan),
    at(special.erfinv, scipy.special.erfinv, "far out", *(1 - 10.0 ** -np.arange(1, 16)), dtypes=("float64",)),
    *smooth(special.gamma, scipy.special.gamma, 0.2, 5),
    Case("gamma", special.gamma, (uniform(-3.9, -3.1, 5),), scipy.special.gamma, label="negative"),
    at(special.gamma, lambda x: POLES, "edges", -1.0, -2.0, np.nan, np.inf, 1e4),
    *smooth(special.gammaln, scipy.special.gammaln, 0.2, 9),
    Case("gammaln", special.gammaln, (uniform(-3.9, -3.1, 5),), scipy.special.gammaln, label="negative"),
    at(special.gammaln, scipy.special.gammaln, "edges", 0.0, -1.0, np.nan, np.inf, 1e4, rtol={"float16": COARSE}),
    Case("_polygamma", special.polygamma, (uniform(0.2, 9, 5),), scipy.special.digamma, label="digamma", bad=NO_ORDER),
    Case("_polygamma", special.polygamma, (uniform(-3.9, -3.1, 5),), scipy.special.digamma, label="digamma of negative"),
    Case("_polygamma", lambda x: special.polygamma(x, 2), (uniform(0.5, 9, 5),), trigamma_slope, label="order 2"),
]


def cast_to(dtype: Any) -> Callable[[Any], Any]:
    return lambda x: casting.cast(x, dtype)


def amp_cast_to(dtype: Any) -> Callable[[Any], Any]:
    return lambda x: casting.amp_cast(x, dtype)


def mixed(x: Any, y: Any, **how: Any) -> Any:
    return casting.amp_multicast(casting.cast(x, "float32"), casting.cast(y, "float16"), num_outputs=2, **how)


def like(x: Any, y: Any) -> Any:
    return apply(casting.IdentityLike(), x, y)


NO_DTYPE = (
    Bad(
        lambda nd: nd.cast(nd.ones((2,)), dtype="complex64"), DTypeError, "dtype 'complex64' is not supported; use one of float32"
    ),
    Bad(lambda nd: nd.cast(nd.ones((2,)), dtype=None), ArgumentError, "cast: dtype is None; name one"),
)
NO_COUNT = (
    Bad(lambda nd: nd.amp_multicast(nd.ones((2,)), num_outputs=3), ArgumentError, "num_outputs is 3, but 1 arrays are given"),
)
NO_SHAPE = (Bad(lambda nd: like(nd.ones((2,)), nd.ones((3,))), ShapeError, r"lhs has shape \(2,\), rhs has \(3,\)"),)
HALF = {"float32": 1e-3, "float64": 1e-3}  # the second operand goes through float16

CASTING = [
    Case("Cast", cast_to("float64"), (normal(3, 4),), lambda x: x, bad=NO_DTYPE),
    at(cast_to(np.int32), np.trunc, "cut off", -1.5, 2.7, 0.0, op="Cast"),
    at(cast_to("bool"), lambda x: x != 0, "bool", -1.5, 0.0, op="Cast"),
    of_integers(cast_to("uint8"), lambda x: x.astype("uint8"), "int32", 3, 300, -1, label="wrap", op="Cast"),
    Case("amp_cast", amp_cast_to("float64"), (normal(3, 4),), lambda x: x),
    of_integers(amp_cast_to("float16"), lambda x: x, "int32", 3, -1, op="amp_cast"),
    Case("amp_multicast", mixed, (normal(3), normal(2)), lambda x, y: (x, y), grad=False, rtol=HALF, bad=NO_COUNT),
    Case(
        "amp_multicast",
        lambda x, y: mixed(x, y, cast_narrow=True),
        (normal(3), normal(2)),
        lambda x, y: (x, y),
        grad=False,
        rtol=HALF,
    ),
    Case(
        "amp_multicast",
        lambda x, y: casting.amp_multicast(x, y, num_outputs=2),
        (normal(3), integers(0, 9, 2)),
        lambda x, y: (x, y),
        label="with integers",
    ),
    Case("_copy", casting.identity, (normal(3, 4),), lambda x: x),
    Case("_copy", casting.identity, (normal(0, 4),), lambda x: x, label="empty"),
    Case("BlockGrad", casting.stop_gradient, (normal(3, 4),), lambda x: x, grad=False),
    Case("make_loss", casting.make_loss, (normal(3, 4),), lambda x: x, grad=False),
    Case("zeros_like", casting.zeros_like, (normal(3, 4),), np.zeros_like),
    Case("ones_like", casting.ones_like, (integers(0, 9, 3, 4),), np.ones_like, grad=False),
    Case("_identity_with_attr_like_rhs", like, (normal(3, 4), normal(3, 4)), lambda x, y: x, bad=NO_SHAPE),
]

CASES: list[Case] = [*SIGNS, *ROUNDING, *POWERS, *CLIP, *TRIGONOMETRY, *ACTIVATIONS, *SPECIAL, *CASTING]
