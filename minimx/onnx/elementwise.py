"""Converters of elementwise operators: functions of one array, of one and a number, of two, and comparisons.

Most have one name there and one here. MXNet's comparisons give 0 and 1 in the dtype of what is compared, ONNX's give bool.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .graph import C, Graph, Operand, UnsupportedError, Value, converts

SMALL = 1 << 12  # elements of an array of equal numbers that is written down

UNARY = {
    "abs": "Abs", "arccos": "Acos", "arccosh": "Acosh", "arcsin": "Asin", "arcsinh": "Asinh", "arctan": "Atan", "arctanh": "Atanh",
    "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf", "exp": "Exp", "floor": "Floor", "log": "Log", "negative": "Neg",
    "reciprocal": "Reciprocal", "relu": "Relu", "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh",
    "softsign": "Softsign", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip

BINARY = {
    "elemwise_add": "Add", "broadcast_add": "Add", "elemwise_sub": "Sub", "broadcast_sub": "Sub",
    "elemwise_mul": "Mul", "broadcast_mul": "Mul", "elemwise_div": "Div", "broadcast_div": "Div", "_power": "Pow",
    "broadcast_power": "Pow", "_maximum": "Max", "broadcast_maximum": "Max", "_minimum": "Min", "broadcast_minimum": "Min",
}  # fmt: skip

SCALAR = {
    "_plus_scalar": "Add", "_minus_scalar": "Sub", "_mul_scalar": "Mul", "_div_scalar": "Div", "_power_scalar": "Pow",
    "_maximum_scalar": "Max", "_minimum_scalar": "Min",
}  # fmt: skip
REVERSED = {"_rminus_scalar": "Sub", "_rdiv_scalar": "Div", "_rpower_scalar": "Pow"}

COMPARISONS = {
    "equal": "Equal",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "lesser": "Less",
    "lesser_equal": "LessOrEqual",
}
LOGIC = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}


def _named(table: dict[str, str]) -> Callable[[C], C]:
    """Decorator: the function converts all operators of a table, and is told what each is called in ONNX."""

    def enter(function: C) -> C:
        for name, kind in table.items():

            def convert(graph: Graph, op: Any, *operands: Any, kind: str = kind) -> Any:
                return function(graph, kind, op, *operands)

            converts(name)(convert)
        return function

    return enter


WHOLE = ("Ceil", "Floor")  # of whole numbers themselves; ONNX wants floating ones


@_named(UNARY)
def unary(graph: Graph, kind: str, op: Any, data: Value) -> Any:
    if not data.is_float and kind in WHOLE:
        return data
    if not data.is_float and kind == "Relu":
        return graph.node("Max", data, graph.number(0, data))
    return graph.node(kind, data)


@converts("rint")
def rint(graph: Graph, op: Any, data: Value) -> Any:
    """Halves go down in MXNet, and to even in ONNX's Round."""
    return graph.node("Ceil", graph.node("Sub", data, graph.number(0.5, data))) if data.is_float else data


@_named(BINARY)
def binary(graph: Graph, kind: str, op: Any, lhs: Value, rhs: Value) -> Any:
    return graph.node(kind, lhs, rhs)


def scalar_of(graph: Graph, op: Any, data: Value) -> str:
    """The number of an operator as a constant of the array's dtype."""
    if not data.is_float and op.scalar != int(op.scalar):
        raise UnsupportedError(
            f"{graph.stem}: {op.name} of {data.dtype.name} with {op.scalar} has no form in ONNX; cast it first"
        )
    return graph.number(op.scalar, data)


@_named(SCALAR)
def scalar(graph: Graph, kind: str, op: Any, data: Value) -> Any:
    return graph.node(kind, data, scalar_of(graph, op, data))


@_named(REVERSED)
def reversed_scalar(graph: Graph, kind: str, op: Any, data: Value) -> Any:
    return graph.node(kind, scalar_of(graph, op, data), data)


# ---- comparisons and logic


@_named(
    {
        **{f"_{name}": kind for name, kind in COMPARISONS.items()},
        **{f"broadcast_{name}": kind for name, kind in COMPARISONS.items()},
    }
)
def comparison(graph: Graph, kind: str, op: Any, lhs: Value, rhs: Value) -> Any:
    return graph.cast(graph.node(kind, lhs, rhs), graph.outputs[0].dtype)


@_named({f"_{name}_scalar": kind for name, kind in COMPARISONS.items()})
def scalar_comparison(graph: Graph, kind: str, op: Any, data: Value) -> Any:
    return graph.cast(graph.node(kind, data, scalar_of(graph, op, data)), graph.outputs[0].dtype)


@converts("_not_equal", "broadcast_not_equal")
def not_equal(graph: Graph, op: Any, lhs: Value, rhs: Value) -> Any:
    return graph.cast(graph.node("Not", graph.node("Equal", lhs, rhs)), graph.outputs[0].dtype)


@converts("_not_equal_scalar")
def not_equal_scalar(graph: Graph, op: Any, data: Value) -> Any:
    return graph.cast(graph.node("Not", graph.node("Equal", data, scalar_of(graph, op, data))), graph.outputs[0].dtype)


@_named({**{f"_{name}": kind for name, kind in LOGIC.items()}, **{f"broadcast_{name}": kind for name, kind in LOGIC.items()}})
def logic(graph: Graph, kind: str, op: Any, lhs: Value, rhs: Value) -> Any:
    return graph.cast(graph.node(kind, graph.cast(lhs, bool), graph.cast(rhs, bool)), graph.outputs[0].dtype)


@_named({f"_{name}_scalar": kind for name, kind in LOGIC.items()})
def scalar_logic(graph: Graph, kind: str, op: Any, data: Value) -> Any:
    given = graph.array(bool(op.scalar))
    return graph.cast(graph.node(kind, graph.cast(data, bool), given), graph.outputs[0].dtype)


@converts("logical_not")
def logical_not(graph: Graph, op: Any, data: Value) -> Any:
    return graph.cast(graph.node("Not", graph.cast(data, bool)), graph.outputs[0].dtype)


# ---- functions that ONNX has as several


@converts("square")
def square(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Mul", data, data)


@converts("rsqrt")
def rsqrt(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Reciprocal", graph.node("Sqrt", data))


@converts("log2")
def log2(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Div", graph.node("Log", data), graph.number(math.log(2), data))


@converts("log10")
def log10(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Div", graph.node("Log", data), graph.number(math.log(10), data))


@converts("log1p")
def log1p(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Log", graph.node("Add", data, graph.number(1, data)))


@converts("expm1")
def expm1(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Sub", graph.node("Exp", data), graph.number(1, data))


@converts("degrees")
def degrees(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Mul", data, graph.number(180 / math.pi, data))


@converts("radians")
def radians(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Mul", data, graph.number(math.pi / 180, data))


@converts("trunc", "fix")
def trunc(graph: Graph, op: Any, data: Value) -> Any:
    if not data.is_float:
        return data
    return graph.node("Mul", graph.node("Sign", data), graph.node("Floor", graph.node("Abs", data)))


@converts("round")
def round_away(graph: Graph, op: Any, data: Value) -> Any:
    """Halves go away from zero here, and to even in ONNX's Round."""
    if not data.is_float:
        return data
    larger = graph.node("Add", graph.node("Abs", data), graph.number(0.5, data))
    return graph.node("Mul", graph.node("Sign", data), graph.node("Floor", larger))


@converts("clip")
def clip(graph: Graph, op: Any, data: Value) -> Any:
    return clipped(graph, data, data, op.a_min, op.a_max)


def clipped(graph: Graph, operand: Operand, like: Value, low: float, high: float) -> str:
    if not like.is_float:
        limits = np.iinfo(like.dtype)
        low, high = (min(max(bound, limits.min), limits.max) for bound in (low, high))
        low, high = math.ceil(low), math.floor(high)
    return graph.node("Clip", operand, graph.number(low, like), graph.number(high, like))


@converts("_hypot", "broadcast_hypot")
def hypot(graph: Graph, op: Any, lhs: Value, rhs: Value) -> Any:
    return graph.node("Sqrt", graph.node("Add", graph.node("Mul", lhs, lhs), graph.node("Mul", rhs, rhs)))


@converts("_mod", "broadcast_mod")
def mod(graph: Graph, op: Any, lhs: Value, rhs: Value) -> Any:
    return modulo(graph, lhs, rhs, lhs)


@converts("_mod_scalar")
def mod_scalar(graph: Graph, op: Any, data: Value) -> Any:
    return modulo(graph, data, scalar_of(graph, op, data), data)


@converts("_rmod_scalar")
def rmod_scalar(graph: Graph, op: Any, data: Value) -> Any:
    return modulo(graph, scalar_of(graph, op, data), data, data)


def modulo(graph: Graph, lhs: Operand, rhs: Operand, like: Value) -> str:
    """The remainder with the sign of the divisor, which ONNX has for integers only; 0 where the divisor is 0."""
    zero, one = graph.number(0, like), graph.number(1, like)
    nothing = graph.node("Equal", rhs, zero)
    divisor = graph.node("Where", nothing, one, rhs)
    if like.is_float:
        rest = graph.node("Sub", lhs, graph.node("Mul", divisor, graph.node("Floor", graph.node("Div", lhs, divisor))))
    else:
        rest = graph.node("Mod", lhs, divisor)
    return graph.node("Where", nothing, zero, rest)


@converts("smooth_l1")
def smooth_l1(graph: Graph, op: Any, data: Value) -> Any:
    with np.errstate(all="ignore"):
        squared = np.float64(op.scalar) ** 2
    size = graph.node("Abs", data)
    near = graph.node("Mul", graph.node("Mul", data, data), graph.number(0.5 * squared, data))
    far = graph.node("Sub", size, graph.number(np.divide(0.5, squared), data))
    return graph.node("Where", graph.node("Less", size, graph.number(np.divide(1, squared), data)), near, far)


@converts("add_n")
def add_n(graph: Graph, op: Any, *args: Value) -> Any:
    return graph.node("Sum", *args)


@converts("where")
def where(graph: Graph, op: Any, condition: Value, x: Value, y: Value) -> Any:
    chosen: Operand = graph.cast(condition, bool)
    if condition.ndim < x.ndim:  # a row of conditions for rows
        chosen = graph.node("Unsqueeze", chosen, graph.ints(*range(1, x.ndim)))
    return graph.node("Where", chosen, x, y)


# ---- values that stay what they are


@converts("BlockGrad", "_copy", "make_loss", "MakeLoss")
def same(graph: Graph, op: Any, data: Value) -> Any:
    return data


@converts("Dropout")
def dropout(graph: Graph, op: Any, data: Value) -> Any:
    if op.mode == "always":
        raise UnsupportedError(f"{graph.stem}: a Dropout that drops in inference, mode='always', has no form in ONNX here")
    return data


@converts("Cast", "amp_cast")
def cast(graph: Graph, op: Any, data: Value) -> Any:
    wanted = graph.outputs[0].dtype
    return data if wanted == data.dtype else graph.cast(data, wanted)


@converts("zeros_like")
def zeros_like(graph: Graph, op: Any, data: Value) -> Any:
    return filled_like(graph, data, 0)


@converts("ones_like")
def ones_like(graph: Graph, op: Any, data: Value) -> Any:
    return filled_like(graph, data, 1)


def filled_like(graph: Graph, data: Value, value: float) -> str:
    lengths = [length for length in data.shape if isinstance(length, int)]
    if len(lengths) == data.ndim and math.prod(lengths) <= SMALL:
        return graph.array(np.full(lengths, value, data.dtype))
    return graph.node("ConstantOfShape", graph.node("Shape", data), value=np.full((1,), value, data.dtype))
