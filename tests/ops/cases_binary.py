"""Rows of the elementwise operators of two operands: ops/binary.py, powers.py, logic.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, ShapeError
from minimx.op import REGISTRY, apply
from minimx.ops import binary, logic, powers

from .harness import Bad, Case, Maker, distinct, integers, normal, uniform

Oracle = Callable[..., Any]


def given(*numbers: float) -> Maker:
    return lambda rng: np.array(numbers, dtype=np.float64)


def whole(dtype: str, *numbers: int) -> Maker:
    return lambda rng: np.array(numbers, dtype=dtype)


def named(op: str, **attributes: Any) -> Callable[..., Any]:
    """The operator registered as `op`, which may have no function of its own."""
    return lambda *tensors: apply(REGISTRY[op](**attributes), *tensors)


def both(low: float, high: float, *shape: int) -> tuple[Maker, Maker]:
    return uniform(low, high, *shape), uniform(low, high, *shape)


def unequal(op: str) -> tuple[Bad, ...]:
    """Operands of different shapes and dtypes, for the form of equal shapes."""
    return (
        Bad(
            lambda nd: named(op)(nd.ones((2, 3)), nd.ones((3,))),
            ShapeError,
            r"lhs has shape \(2, 3\), rhs has \(3,\); they must be",
        ),
        Bad(
            lambda nd: named(op)(nd.ones((2,)), nd.ones((2,), dtype="int32")),
            DTypeError,
            r"lhs is float32 but rhs is int32; convert",
        ),
    )


def unfit(op: str) -> tuple[Bad, ...]:
    """Operands that do not broadcast, or differ in dtype."""
    return (
        Bad(lambda nd: named(op)(nd.ones((2, 3)), nd.ones((2,))), ShapeError, r"shapes \(2, 3\) and \(2,\) cannot be broadcast"),
        Bad(
            lambda nd: named(op)(nd.ones((2,)), nd.ones((2,), dtype="int32")),
            DTypeError,
            r"lhs is float32 but rhs is int32; convert",
        ),
    )


def no_integer(op: str) -> tuple[Bad, ...]:
    """Numbers that an integer array cannot hold: MXNet cuts them off without a word."""
    return (
        Bad(lambda nd: named(op, scalar=2.5)(nd.ones((2,), dtype="int32")), DTypeError, r"int32, which has no 2.5; .* astype"),
        Bad(lambda nd: named(op, scalar=300)(nd.ones((2,), dtype="uint8")), DTypeError, r"uint8, which has no 300; .* astype"),
    )


def forms(
    stem: str,
    elementwise: str,
    oracle: Oracle,
    function: Callable[..., Any],
    make: Callable[..., tuple[Maker, Maker]],
    *,
    number: float = 1.3,
    backwards: str | None = None,
    grad: bool = True,
    whole_numbers: bool = True,
) -> list[Case]:
    """Rows of a function in all its forms. `make(*shape)` gives inputs away from its kinks, `function` takes numbers too."""
    broadcast = f"broadcast_{stem}"
    scalar = f"_{ {'add': 'plus', 'sub': 'minus'}.get(stem, stem) }_scalar"

    def row(op: str, call: Callable[..., Any], *inputs: Maker, value: Oracle = oracle, **fields: Any) -> Case:
        return Case(op, call, inputs, value, grad, grad, **fields)

    spread = getattr(MODULE[stem], broadcast)
    refused = no_integer(scalar) if whole_numbers else ()
    return [
        row(elementwise, named(elementwise), *make(3, 4), bad=unequal(elementwise)),
        row(broadcast, spread, *make(3, 4), label="equal shapes", bad=unfit(broadcast)),
        row(broadcast, spread, make(2, 1, 4)[0], make(3, 1)[1], label="both stretch"),
        row(broadcast, spread, make(1)[0], make(2, 3)[1], label="missing axis"),
        row(broadcast, spread, make(0, 3)[0], make(1, 3)[1], label="empty"),
        row(broadcast, function, *make(2, 3), label="function"),
        Case(broadcast, function, make(), oracle, grad=False, label="no axes"),
        row(scalar, lambda x: function(x, number), make(3, 4)[0], value=lambda x: oracle(x, number), bad=refused),
        row(
            backwards or scalar,
            lambda y: function(number, y),
            make(3, 4)[1],
            value=lambda y: oracle(number, y),
            label="number left",
        ),
    ]


MODULE = {
    **dict.fromkeys(("add", "sub", "mul", "div", "mod"), binary),
    **dict.fromkeys(("power", "maximum", "minimum", "hypot"), powers),
    **dict.fromkeys(("equal", "not_equal", "greater", "greater_equal", "lesser", "lesser_equal"), logic),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), logic),
}


def plain(*shape: int) -> tuple[Maker, Maker]:
    return normal(*shape), normal(*shape)


def positive(*shape: int) -> tuple[Maker, Maker]:
    return both(0.5, 2.0, *shape)


def apart(*shape: int) -> tuple[Maker, Maker]:
    """Numbers of which none of the left equals one of the right: the left are at .37, the right at .42 of a tenth."""
    left = distinct(*shape)
    return left, lambda rng: left(rng) + 0.005


def ratios(*shape: int) -> tuple[Maker, Maker]:
    """Quotients that are no whole numbers, where modulo jumps."""
    return (lambda rng: rng.integers(-3, 4, shape) + rng.uniform(0.2, 0.5, shape)), lambda rng: rng.uniform(0.9, 1.0, shape)


def modulo(x: Any, y: Any) -> Any:
    return np.where(y == 0, 0.0, np.mod(x, np.where(y == 0, 1.0, y)))


ARITHMETIC = [
    *forms("add", "elemwise_add", np.add, binary.add, plain),
    *forms("sub", "elemwise_sub", np.subtract, binary.subtract, plain, backwards="_rminus_scalar"),
    *forms("mul", "elemwise_mul", np.multiply, binary.multiply, plain),
    *forms("div", "elemwise_div", np.divide, binary.divide, positive, backwards="_rdiv_scalar"),
    *forms("mod", "_mod", modulo, binary.modulo, ratios, number=0.95, backwards="_rmod_scalar"),
    *forms("power", "_power", np.power, powers.power, positive, backwards="_rpower_scalar"),
    *forms("maximum", "_maximum", np.maximum, powers.maximum, apart, number=0.02),
    *forms("minimum", "_minimum", np.minimum, powers.minimum, apart, number=0.02),
    *forms("hypot", "_hypot", np.hypot, powers.hypot, positive, whole_numbers=False),
]

COMPARISONS = [
    *forms("equal", "_equal", np.equal, logic.equal, apart, grad=False),
    *forms("not_equal", "_not_equal", np.not_equal, logic.not_equal, apart, grad=False),
    *forms("greater", "_greater", np.greater, logic.greater, apart, grad=False, backwards="_lesser_scalar"),
    *forms(
        "greater_equal",
        "_greater_equal",
        np.greater_equal,
        logic.greater_equal,
        apart,
        grad=False,
        backwards="_lesser_equal_scalar",
    ),
    *forms("lesser", "_lesser", np.less, logic.lesser, apart, grad=False, backwards="_greater_scalar"),
    *forms(
        "lesser_equal", "_lesser_equal", np.less_equal, logic.lesser_equal, apart, grad=False, backwards="_greater_equal_scalar"
    ),
    *forms("logical_and", "_logical_and", np.logical_and, logic.logical_and, plain, grad=False),
    *forms("logical_or", "_logical_or", np.logical_or, logic.logical_or, plain, grad=False),
    *forms("logical_xor", "_logical_xor", np.logical_xor, logic.logical_xor, plain, grad=False),
]

LEFT, RIGHT = given(0.0, 1.0, -1.0, np.nan, np.inf, 0.0), given(0.0, 2.0, -1.0, np.nan, np.inf, -3.0)
INTS = whole("int32", 7, -7, 7, -7, 0, 1, -1), whole("int32", 2, 2, -2, -2, 3, 5, 1)
TRUNCATED = np.array([3, -3, -3, 3, 0, 0, -1])


def at(op: str, oracle: Oracle, *inputs: Maker, label: str, call: Any = None) -> Case:
    return Case(op, call or named(op), inputs, oracle, grad=False, label=label)


def constant(*numbers: float) -> Oracle:
    return lambda *arrays: np.array(numbers)


TESTS = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "lesser": np.less,
    "lesser_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
EXTREMES = {"maximum": np.maximum, "minimum": np.minimum}
FLOATS = given(1, 0, 7.5, -7.5, 7.5, -7.5), given(0, 0, 2, 2, -2, -2)
BASES, EXPONENTS = whole("int64", 7, 7, -1, 1, 0, 3), whole("int64", 2, -2, -3, -9, 4, 39)


def truths(*values: bool) -> Maker:
    return lambda rng: np.array(values)


def chain(x: Any) -> Any:
    """Python's operators, with the tensor on either side."""
    return (1 - x) * (2 + x) / 3 - x % 7.5 + 2**x / x


def power(exponent: float) -> Case:
    return Case(
        "_power_scalar", lambda x: x**exponent, (uniform(0.5, 2, 2, 3),), lambda x: x**exponent, label=f"exponent {exponent}"
    )


CORNERS = [
    *[at(f"broadcast_{name}", oracle, LEFT, RIGHT, label="corners") for name, oracle in {**TESTS, **EXTREMES}.items()],
    at("broadcast_div", np.divide, given(1.0, -1.0, 0.0), given(0.0, 0.0, 0.0), label="by 0"),
    at("broadcast_mod", constant(0, 0, 1.5, 0.5, -0.5, -1.5), *FLOATS, label="signs"),
    at("_mod_scalar", constant(0, 0), given(1.0, -2.0), label="by 0", call=named("_mod_scalar", scalar=0)),
    at("broadcast_power", np.power, given(-8.0, 0.0, 0.0, -2.0), given(0.5, -1.0, 0.0, 3.0), label="corners"),
    # integers: `/` is cut off towards zero, `%` has the sign of the divisor, and by 0 both give 0
    at("broadcast_div", constant(*TRUNCATED), *INTS, label="integers"),
    at("broadcast_div", constant(0, 0), whole("int32", 5, -5), whole("int32", 0, 0), label="integers by 0"),
    at("_div_scalar", constant(3, -3), whole("int8", 7, -7), label="integers", call=lambda x: x / 2),
    at("_rdiv_scalar", constant(3, -3), whole("int32", 2, -2), label="integers", call=lambda x: 7 / x),
    at("broadcast_mod", np.mod, *INTS, label="integers"),
    at("broadcast_mod", constant(0, 0), whole("int32", 5, -5), whole("int32", 0, 0), label="integers by 0"),
    at("broadcast_add", np.add, whole("uint8", 250), whole("uint8", 10), label="integers wrap"),
    at("broadcast_power", constant(49, 0, -1, 1, 0, 3**39), BASES, EXPONENTS, label="integers"),
    at("_power_scalar", constant(0, 1, -1), whole("int32", 2, 1, -1), label="integers", call=lambda x: x**-3),
    at("_rpower_scalar", constant(8, 0), whole("int32", 3, -3), label="integers", call=lambda x: 2**x),
    at("_greater_scalar", lambda x: x > 2, whole("uint8", 1, 2, 3), label="integers", call=lambda x: x > 2.0),
    at("_equal_scalar", lambda x: x == 1, truths(True, False), label="bool", call=lambda x: x == 1),
    at("broadcast_logical_xor", np.logical_xor, truths(True, False), truths(True, True), label="bool"),
    *map(power, (0, 1, 2, 3, 0.5, -1, -0.5)),  # some have a kernel or a gradient of their own
    Case("_rminus_scalar", chain, (uniform(0.5, 2, 4),), chain, label="chain"),
]

NO_BOOL = (
    Bad(
        lambda nd: nd.ones((2,)).astype("bool") + nd.ones((2,)).astype("bool"),
        DTypeError,
        "data is bool, a numeric dtype is wanted",
    ),
    Bad(lambda nd: nd.ones((2,)) + "x", TypeError, "NDArray.* and .*str|number is wanted, got 'x'"),
    Bad(lambda nd: nd.add(nd.ones((2,)), "x"), ArgumentError, "a number is wanted, got 'x'"),
    Bad(lambda nd: nd.add(nd.ones((2,)), 1j), ArgumentError, "a number is wanted, got 1j"),
    Bad(lambda nd: nd.add(nd.ones((2,)), 1, axis=0), ArgumentError, "_plus_scalar: unknown argument axis; it takes"),
    Bad(lambda nd: nd.broadcast_add(1, 2), ArgumentError, "an NDArray or a Symbol is wanted, got int, int"),
)

LOGIC = [
    Case("logical_not", logic.logical_not, (given(0.0, 1.0, np.nan, -0.0),), np.logical_not, grad=False),
    Case("logical_not", logic.logical_not, (integers(0, 2, 2, 3),), np.logical_not, grad=False, label="integers"),
    Case(
        "_not_equal_scalar",
        lambda x: logic.not_equal(x, np.float32(2)),
        (given(2.0, 1.0),),
        lambda x: x != 2,
        grad=False,
        bad=NO_BOOL,
    ),
    at("broadcast_not_equal", np.isnan, LEFT, label="isnan", call=logic.isnan),
    at("_equal_scalar", np.isfinite, LEFT, label="isfinite", call=logic.isfinite),
    at("broadcast_greater", np.isinf, LEFT, label="isinf", call=logic.isinf),
]


def rows_of(condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(condition[:, None] != 0, x, y)


NO_WHERE = (
    Bad(
        lambda nd: nd.where(nd.ones((3,)), nd.ones((2, 3)), nd.ones((2, 3))),
        ShapeError,
        r"condition has shape \(3,\); it must be",
    ),
    Bad(
        lambda nd: nd.where(nd.ones((2,)), nd.ones((2,)), nd.ones((3,))),
        ShapeError,
        r"x has shape \(2,\), y has \(3,\); they must",
    ),
    Bad(
        lambda nd: nd.where(nd.ones((2,)), nd.ones((2,)), nd.ones((2,), dtype="int32")), DTypeError, "x is float32 but y is int32"
    ),
)
NO_SUM = (
    Bad(lambda nd: nd.add_n(), ArgumentError, "add_n: an NDArray or a Symbol is wanted, got nothing"),
    Bad(lambda nd: nd.add_n(nd.ones((2,)), nd.ones((3,))), ShapeError, r"args0 has shape \(2,\), args1 has \(3,\)"),
    Bad(lambda nd: nd.add_n(nd.ones((2,)), nd.ones((2,), dtype="int32")), DTypeError, "args0 is float32 but args1 is int32"),
)

OTHERS = [
    Case("where", logic.where, (integers(0, 2, 3, 4), normal(3, 4), normal(3, 4)), np.where, bad=NO_WHERE),
    Case("where", logic.where, (integers(0, 2, 3), normal(3, 4), normal(3, 4)), rows_of, label="whole rows"),
    Case("where", logic.where, (given(0.0, np.nan, -1.0), normal(3), normal(3)), np.where, grad=False, label="NaN is true"),
    Case("where", logic.where, (integers(0, 2, 0, 2), normal(0, 2), normal(0, 2)), np.where, label="empty"),
    Case("add_n", binary.add_n, (normal(2, 3),), lambda x: x, label="one", bad=NO_SUM),
    Case("add_n", binary.add_n, (normal(2, 3), normal(2, 3)), np.add, label="two"),
    Case("add_n", binary.add_n, tuple(normal(2, 3) for _ in range(5)), lambda *arrays: sum(arrays), label="five"),
]

CASES: list[Case] = [*ARITHMETIC, *COMPARISONS, *CORNERS, *LOGIC, *OTHERS]
