"""NumPy's universal functions on NDArrays: `np.exp(x)` and `numpy_array + x` give NDArrays.

NumPy asks the class of an operand (`__array_ufunc__`) before it computes; here it is told to use our operator of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import ArgumentError
from ..engine.front import value_of
from ..ops import binary, logic, powers, trigonometry, unary
from .entry import Array, from_array, host_numbers


def array_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A NumPy ufunc applied to NDArrays among others: by our operator of that name, else by NumPy on the values.

    **Returns** an NDArray on the device of the first one (NumPy's result for methods such as `reduce`).
    """
    if method == "at":
        raise ArgumentError(f"np.{ufunc.__name__}.at would write into an NDArray past the engine; write x[...] = ... instead")
    first = next(each for each in (*inputs, *(kwargs.get("out") or ())) if isinstance(each, Array))
    function = UFUNCS.get(ufunc.__name__)
    if method == "__call__" and function is not None and not kwargs:
        # A NumPy array takes the dtype of the NDArray that it meets: MXNet 1.x promotes nothing.
        return function(
            *[
                from_array(host_numbers(each, first.spec.dtype, f"np.{ufunc.__name__}"), first.context)
                if isinstance(each, np.ndarray)
                else each
                for each in inputs
            ]
        )
    if kwargs.get("out") is not None:
        return NotImplemented
    result = getattr(ufunc, method)(*[value_of(each) if isinstance(each, Array) else each for each in inputs], **kwargs)
    if method != "__call__" or not isinstance(result, np.ndarray):
        return result
    return from_array(result, first.context)


UFUNCS: dict[str, Callable[..., Any]] = {
    "add": binary.add, "subtract": binary.subtract, "multiply": binary.multiply, "divide": binary.divide,
    "true_divide": binary.divide, "remainder": binary.modulo, "power": powers.power, "maximum": powers.maximum,
    "minimum": powers.minimum, "hypot": powers.hypot, "equal": logic.equal, "not_equal": logic.not_equal,
    "greater": logic.greater, "greater_equal": logic.greater_equal, "less": logic.lesser, "less_equal": logic.lesser_equal,
    "negative": unary.negative, "absolute": unary.abs, "sign": unary.sign, "exp": unary.exp, "expm1": unary.expm1,
    "log": unary.log, "log2": unary.log2, "log10": unary.log10, "log1p": unary.log1p, "sqrt": unary.sqrt, "cbrt": unary.cbrt,
    "square": unary.square, "reciprocal": unary.reciprocal, "sin": trigonometry.sin, "cos": trigonometry.cos,
    "tan": trigonometry.tan, "arcsin": trigonometry.arcsin, "arccos": trigonometry.arccos, "arctan": trigonometry.arctan,
    "sinh": trigonometry.sinh, "cosh": trigonometry.cosh, "tanh": trigonometry.tanh, "arcsinh": trigonometry.arcsinh,
    "arccosh": trigonometry.arccosh, "arctanh": trigonometry.arctanh, "floor": unary.floor, "ceil": unary.ceil,
    "trunc": unary.trunc, "rint": unary.rint, "degrees": trigonometry.degrees, "radians": trigonometry.radians,
}  # fmt: skip
