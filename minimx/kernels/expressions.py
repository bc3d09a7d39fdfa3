"""What elementwise operators compute, as an expression in C: for kernels of a GPU, and for loops of a CPU.

An entry says for an operator's name what an element of the result is, given those of the operands `{0}`, `{1}`, of the numbers among its
attributes, `{n0}`, `{n1}`, and of the type `{T}` in which it computes: `float`, or `double`. They serve floating arrays only. An operator
without an entry runs its own kernel. The values are those of the operators' kernels up to the last digits, which other functions
of mathematics may round otherwise; where the kernels treat NaN, infinities and zeros in a certain way, the expressions do, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..op import Op


class Expression(NamedTuple):
    """The text with its gaps, and the numbers for `{n0}`, `{n1}`, ..."""

    text: str
    numbers: tuple[float, ...] = ()


MAXIMUM = "({0} > {1} || {0} != {0} ? {0} : {1})"
MINIMUM = "({0} < {1} || {0} != {0} ? {0} : {1})"
CLIP = "({0} < {n0} ? ({n0} > {n1} ? {n1} : {n0}) : {0} > {n1} ? {n1} : {0})"
MODULO = (
    "({1} == {T}(0) ? {T}(0) : fmod({0}, {1}) == {T}(0) ? copysign({T}(0), {1}) : "
    "(fmod({0}, {1}) < {T}(0)) != ({1} < {T}(0)) ? fmod({0}, {1}) + {1} : fmod({0}, {1}))"
)

#: Functions of two numbers: the name in "elemwise_NAME" or "_NAME", in "broadcast_NAME", "_NAME_scalar", and with the number first.
TWO: list[tuple[str, tuple[str | None, str | None, str | None, str | None]]] = [
    ("({0} + {1})", ("elemwise_add", "broadcast_add", "_plus_scalar", None)),
    ("({0} - {1})", ("elemwise_sub", "broadcast_sub", "_minus_scalar", "_rminus_scalar")),
    ("({0} * {1})", ("elemwise_mul", "broadcast_mul", "_mul_scalar", None)),
    ("({0} / {1})", ("elemwise_div", "broadcast_div", "_div_scalar", "_rdiv_scalar")),
    (MODULO, ("_mod", "broadcast_mod", "_mod_scalar", "_rmod_scalar")),
    (MAXIMUM, ("_maximum", "broadcast_maximum", "_maximum_scalar", None)),
    (MINIMUM, ("_minimum", "broadcast_minimum", "_minimum_scalar", None)),
    ("pow({0}, {1})", ("_power", "broadcast_power", None, "_rpower_scalar")),
    ("hypot({0}, {1})", ("_hypot", "broadcast_hypot", "_hypot_scalar", None)),
]
for _name, _test in (
    ("equal", "{0} == {1}"), ("not_equal", "{0} != {1}"), ("greater", "{0} > {1}"), ("greater_equal", "{0} >= {1}"),
    ("lesser", "{0} < {1}"), ("lesser_equal", "{0} <= {1}"), ("logical_and", "{0} != {T}(0) && {1} != {T}(0)"),
    ("logical_or", "{0} != {T}(0) || {1} != {T}(0)"), ("logical_xor", "({0} != {T}(0)) != ({1} != {T}(0))"),
):  # fmt: skip
    TWO.append((f"({_test} ? {{T}}(1) : {{T}}(0))", (f"_{_name}", f"broadcast_{_name}", f"_{_name}_scalar", None)))

RELU = "({0} > {T}(0) || {0} != {0} ? {0} : {T}(0))"
SIGMOID = "({T}(1) / ({T}(1) + exp(-{0})))"
SOFTSIGN = "({0} / ({T}(1) + fabs({0})))"
SOFTPLUS = "(" + RELU + " + log1p(exp(-fabs({0}))))"

#: Functions of one number.
ONE: dict[str, str] = {
    "abs": "fabs({0})", "negative": "(-{0})", "square": "({0} * {0})", "reciprocal": "({T}(1) / {0})", "sqrt": "sqrt({0})",
    "rsqrt": "({T}(1) / sqrt({0}))", "cbrt": "cbrt({0})", "rcbrt": "({T}(1) / cbrt({0}))",
    "sign": "({0} > {T}(0) ? {T}(1) : {0} < {T}(0) ? {T}(-1) : {0} != {0} ? {0} : {T}(0))",
    "floor": "floor({0})", "ceil": "ceil({0})", "trunc": "trunc({0})", "fix": "trunc({0})",
    "round": "(trunc({0}) + copysign(fabs({0} - trunc({0})) >= {T}(0.5) ? {T}(1) : {T}(0), {0}))",
    "rint": "(floor({0}) + ({0} - floor({0}) > {T}(0.5) ? {T}(1) : {T}(0)))",
    "exp": "exp({0})", "expm1": "expm1({0})", "log": "log({0})", "log2": "log2({0})", "log10": "log10({0})", "log1p": "log1p({0})",
    "sin": "sin({0})", "cos": "cos({0})", "tan": "tan({0})", "arcsin": "asin({0})", "arccos": "acos({0})", "arctan": "atan({0})",
    "sinh": "sinh({0})", "cosh": "cosh({0})", "tanh": "tanh({0})", "arcsinh": "asinh({0})", "arccosh": "acosh({0})",
    "arctanh": "atanh({0})", "erf": "erf({0})", "relu": RELU, "sigmoid": SIGMOID, "softsign": SOFTSIGN,
    "logical_not": "({0} == {T}(0) ? {T}(1) : {T}(0))", "BlockGrad": "{0}", "_copy": "{0}", "make_loss": "{0}", "cast_storage": "{0}",
    "_identity_with_attr_like_rhs": "{0}", "_contrib_gradientmultiplier": "{0}", "Cast": "{0}", "amp_cast": "{0}",
    "zeros_like": "{T}(0)", "ones_like": "{T}(1)", "_backward_relu": "({1} != {1} ? {1} : {0} * ({1} > {T}(0) ? {T}(1) : {T}(0)))",
}  # fmt: skip
ONE["_contrib_round_ste"], ONE["_contrib_sign_ste"] = ONE["round"], ONE["sign"]
ACTIVATIONS = {
    "relu": RELU, "sigmoid": SIGMOID, "tanh": ONE["tanh"], "softrelu": SOFTPLUS, "softsign": SOFTSIGN,
}  # fmt: skip


# ---- operators whose expression depends on their attributes


def power_of(op: Any) -> Expression:
    """The common exponents are functions of their own, as in the kernel."""
    text = {2.0: ONE["square"], 0.5: ONE["sqrt"], -1.0: ONE["reciprocal"]}.get(op.scalar)
    return Expression("pow({0}, {n0})", (op.scalar,)) if text is None else Expression(text)


def leaky(op: Any) -> Expression | None:
    if op.act_type == "leaky":
        scaled = "({0} * {n0})"
        text = (MAXIMUM if op.slope <= 1 else MINIMUM).replace("{1}", scaled)
        return Expression(text, (op.slope,))
    if op.act_type == "gelu":
        return Expression("((erf({0} * {n0}) + {T}(1)) * {0} * {T}(0.5))", (math.sqrt(0.5),))
    left = "expm1(" + MINIMUM.replace("{1}", "{T}(0)") + ") * {n0}"
    right = MAXIMUM.replace("{1}", "{T}(0)")
    if op.act_type == "elu":
        return Expression(f"({right} + {left})", (op.slope,))
    if op.act_type == "selu":
        return Expression(f"(({right} + {left}) * {{n1}})", (1.6732632423543772, 1.0507009873554805))
    return None


OTHERS: dict[str, Callable[[Any], Expression | None]] = {
    "Activation": lambda op: Expression(ACTIVATIONS[op.act_type]) if op.act_type in ACTIVATIONS else None,
    "LeakyReLU": leaky,
    "_power_scalar": power_of,
    "clip": lambda op: Expression(CLIP, (op.a_min, op.a_max)),
    "hard_sigmoid": lambda op: Expression(
        CLIP.replace("{0}", "({0} * {n2} + {n3})"), (0.0, 1.0, op.alpha, op.beta)
    ),
    "_contrib_quadratic": lambda op: Expression("(({0} * {n0} + {n1}) * {0} + {n2})", (op.a, op.b, op.c)),
    "degrees": lambda op: Expression("({0} * ({T}(180) / {n0}))", (math.pi,)),
    "radians": lambda op: Expression("({0} * {n0})", (math.pi / 180,)),
}  # fmt: skip


def _table() -> dict[str, Callable[[Any], Expression | None]]:
    found: dict[str, Callable[[Any], Expression | None]] = dict(OTHERS)

    def fixed(text: str) -> Callable[[Any], Expression]:
        return lambda op: Expression(text)

    def with_number(text: str) -> Callable[[Any], Expression]:
        return lambda op: Expression(text, (op.scalar,))

    for name, text in ONE.items():
        found[name] = fixed(text)
    for text, (elementwise, broadcast, scalar, reversed_) in TWO:
        for plain in (elementwise, broadcast):
            if plain is not None:
                found[plain] = fixed(text)
        if scalar is not None:
            found[scalar] = with_number(text.replace("{1}", "{n0}"))
        if reversed_ is not None:
            found[reversed_] = with_number(text.replace("{1}", "{2}").replace("{0}", "{n0}").replace("{2}", "{0}"))
    return found


TABLE = _table()


def expression_of(op: Op, operands: int) -> Expression | None:
    """The expression of an elementwise operator with so many operands; None if there is none."""
    if op.name == "add_n":
        return Expression("(" + " + ".join(f"{{{position}}}" for position in range(operands)) + ")")
    made = TABLE.get(op.name)
    return None if made is None else made(op)
