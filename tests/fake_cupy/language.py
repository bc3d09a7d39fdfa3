"""`ElementwiseKernel`: the part of CUDA C that generated kernels are written in, computed with NumPy.

    declaration or assignment:  float v0 = exp(x) * s0;   y = v0 > 0.0f ? v0 : 0.0f;
    expressions:  numbers (1, 2.0f, 1.5, 7ULL), names, calls, ?:, ||, &&, |, ^, &, comparisons, shifts, + - * / %, unary - ! ~,
                  casts float(x)

Types are C's: an `int` with a `float` is a `float`, a comparison a `bool`, and half-precision numbers must be converted to `float` first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .arrays import SCALARS, here, launch, ndarray, operands_of

TYPES = {
    "bool": np.bool_, "signed char": np.int8, "unsigned char": np.uint8, "short": np.int16, "unsigned short": np.uint16,
    "int": np.int32, "unsigned int": np.uint32, "long long": np.int64, "unsigned long long": np.uint64, "float16": np.float16,
    "float": np.float32, "double": np.float64,
}  # fmt: skip
TOKEN = re.compile(
    r"\s*(?:(?P<number>0x[0-9a-fA-F]+(?:ULL|LL|U)?|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?:ULL|LL|U|f)?)"
    r"|(?P<type>(?:unsigned |signed )?(?:long long|char|int|short)\b|bool\b|float16\b|float\b|double\b)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<op>\|\||&&|<<|>>|<=|>=|==|!=|[-+*/%<>!~?:(),&|^=;]))"
)
LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", "<=", ">", ">="], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]]


def _by_number(function: Callable[..., float]) -> Callable[..., Any]:
    """A function of Python's `math` for arrays."""

    def one(*numbers: Any) -> float:
        try:
            return function(*map(float, numbers))
        except (ValueError, OverflowError):
            return math.nan if any(map(math.isnan, numbers)) else math.inf

    def call(*arrays: Any) -> Any:
        return np.vectorize(one, otypes=[float])(*arrays).astype(np.asarray(arrays[0]).dtype)

    return call


def _umul64hi(left: Any, right: Any) -> Any:
    """The upper half of the product of two numbers of 64 bits."""
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b, c, d = left >> shift, left & low, right >> shift, right & low
    middle = a * d + ((b * d) >> shift)
    other = (middle & low) + b * c
    return a * c + (middle >> shift) + (other >> shift)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh", "cosh", "tanh",
                 "floor", "ceil", "trunc", "rint", "fmod", "hypot", "copysign", "fmax", "fmin", "isnan", "isfinite", "isinf",
                 "signbit", "nextafter")
}  # fmt: skip
FUNCTIONS.update(
    asin=np.arcsin, acos=np.arccos, atan=np.arctan, asinh=np.arcsinh, acosh=np.arccosh, atanh=np.arctanh, atan2=np.arctan2,
    fabs=np.abs, abs=np.abs, pow=np.power, erf=_by_number(math.erf), erfc=_by_number(math.erfc), lgamma=_by_number(math.lgamma),
    tgamma=_by_number(math.gamma), __umul64hi=_umul64hi, min=np.minimum, max=np.maximum,
)  # fmt: skip


def _tokens(source: str) -> list[tuple[str, str]]:
    found, position = [], 0
    source = source.rstrip()
    while position < len(source):
        match = TOKEN.match(source, position)
        assert match, f"this is not of the language: {source[position : position + 40]!r}"
        assert match.lastgroup
        found.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return [*found, ("end", "")]


class Program:
    """The statements of a kernel, run on arrays."""

    def __init__(self, source: str, scope: dict[str, Any], types: dict[str, Any]) -> None:
        self.tokens, self.at, self.scope, self.types = _tokens(source), 0, scope, dict(types)

    def run(self) -> dict[str, Any]:
        while self.tokens[self.at][0] != "end":
            if self._take(";"):
                continue
            kind, text = self._next()
            if kind == "type":
                _, name = self._next()
                assert name not in self.types, f"{name} is declared twice"
                self.types[name] = TYPES[text]
            else:
                name = text
                assert name in self.types, f"{name} is not declared"
            assert self._take("="), f"= is wanted after {name}"
            self.scope[name] = self._cast(self._expression(), self.types[name])
            assert self._take(";"), f"; is wanted after {name} = ..."
        return self.scope

    def _next(self) -> tuple[str, str]:
        self.at += 1
        return self.tokens[self.at - 1]

    def _take(self, text: str) -> bool:
        if self.tokens[self.at] == ("op", text):
            self.at += 1
            return True
        return False

    @staticmethod
    def _cast(value: Any, kind: Any) -> Any:
        value = np.asarray(value)
        if np.dtype(kind).kind == "b":
            return value != 0
        return value.astype(kind)

    def _expression(self) -> Any:
        condition = self._binary(0)
        if not self._take("?"):
            return condition
        yes = self._expression()
        assert self._take(":")
        no = self._expression()
        yes, no = self._alike(yes, no)
        return np.where(condition, yes, no)

    @staticmethod
    def _alike(left: Any, right: Any) -> tuple[Any, Any]:
        """Two operands, converted as C does: floating before whole, at least an int."""
        left, right = np.asarray(left), np.asarray(right)
        assert left.dtype != np.float16, "arithmetic with float16: convert to float first"
        assert right.dtype != np.float16, "arithmetic with float16: convert to float first"
        floats = [each.dtype for each in (left, right) if each.dtype.kind == "f"]
        if floats:
            common = max(floats, key=lambda dtype: dtype.itemsize)
        else:
            wide = [
                np.promote_types(each.dtype, np.int32) if each.dtype.itemsize < 4 or each.dtype.kind == "b" else each.dtype
                for each in (left, right)
            ]
            common = max(wide, key=lambda dtype: (dtype.itemsize, dtype.kind == "u"))
        return left.astype(common), right.astype(common)

    def _binary(self, level: int) -> Any:
        if level == len(LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self.tokens[self.at][0] == "op" and self.tokens[self.at][1] in LEVELS[level]:
            _, op = self._next()
            left = self._apply(op, left, self._binary(level + 1))
        return left

    def _apply(self, op: str, left: Any, right: Any) -> Any:
        if op in ("||", "&&"):
            return (np.logical_or if op == "||" else np.logical_and)(left, right)
        if op in ("<<", ">>"):
            left = np.asarray(left)
            return (np.left_shift if op == "<<" else np.right_shift)(left, np.asarray(right).astype(left.dtype))
        left, right = self._alike(left, right)
        if op == "/" and left.dtype.kind in "iu":
            return np.trunc(left / right).astype(left.dtype)
        if op == "%":
            return np.fmod(left, right)
        functions = {
            "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "<": np.less, "<=": np.less_equal, ">": np.greater,
            ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor,
        }  # fmt: skip
        return functions[op](left, right)

    def _unary(self) -> Any:
        if self._take("-"):
            value = np.asarray(self._unary())
            assert value.dtype != np.float16
            return -(value.astype(np.int32) if value.dtype.itemsize < 4 else value)
        if self._take("!"):
            return np.logical_not(self._unary())
        if self._take("~"):
            return np.invert(self._unary())
        if self._take("("):
            inside = self._expression()
            assert self._take(")")
            return inside
        kind, text = self._next()
        if kind == "number":
            return self._number(text)
        if kind == "type":
            assert " " not in text, f"{text} is two words: C++ has no cast {text}(x)"
            (value,) = self._arguments()
            return self._cast(value, TYPES[text])
        assert kind == "name", text
        if self.tokens[self.at] == ("op", "("):
            assert text in FUNCTIONS, f"{text} is not known to the stand-in"
            values = self._arguments()
            if len(values) > 1 and text != "__umul64hi":
                values = list(self._alike(*values))
            else:
                assert all(np.asarray(each).dtype != np.float16 for each in values), f"{text} of float16: convert to float first"
            return FUNCTIONS[text](*values)
        assert text in self.scope, f"{text} has no value"
        return self.scope[text]

    def _arguments(self) -> list[Any]:
        assert self._take("(")
        values = [self._expression()]
        while self._take(","):
            values.append(self._expression())
        assert self._take(")")
        return values

    @staticmethod
    def _number(text: str) -> Any:
        if text.startswith("0x") or re.fullmatch(r"\d+(ULL|LL|U)?", text):
            digits = re.sub("[UL]+$", "", text)
            kind = {"ULL": np.uint64, "LL": np.int64, "U": np.uint32}.get(text[len(digits) :], np.int32)
            return kind(int(digits, 0))
        return np.float32(text[:-1]) if text.endswith("f") else np.float64(text)


class ElementwiseKernel:
    """A kernel from source, called with all its inputs and outputs."""

    compiled = 0  # how many were made

    def __init__(self, in_params: str, out_params: str, operation: str, name: str = "kernel", **how: Any) -> None:
        def parsed(text: str) -> list[tuple[np.dtype[Any], str]]:
            pairs = [each.split() for each in text.split(",") if each.strip()]
            return [(np.dtype(kind), name) for kind, name in pairs]

        self.inputs, self.outputs = parsed(in_params), parsed(out_params)
        self.operation, self.name = operation, name
        ElementwiseKernel.compiled += 1

    def __call__(self, *args: Any, size: int | None = None) -> None:
        assert len(args) == len(self.inputs) + len(self.outputs), (
            f"{self.name} takes {len(self.inputs) + len(self.outputs)} arguments"
        )
        operands_of(list(args))
        for value, (dtype, name) in zip(args, (*self.inputs, *self.outputs)):
            if isinstance(value, ndarray):
                if value.dtype != dtype:
                    raise TypeError(f"Type is mismatched. {name} {value.dtype} {dtype}")
            elif not isinstance(value, SCALARS):
                raise TypeError(f"Unsupported type {type(value)}")
        outputs = args[len(self.inputs) :]
        shape = outputs[0].shape
        for value in args:
            if isinstance(value, ndarray) and np.broadcast_shapes(value.shape, shape) != shape:
                raise ValueError(f"Array has a shape that does not fit: {value.shape}, {shape}")
        views = [value.view_ for value in outputs]
        types = {name: dtype.type for dtype, name in (*self.inputs, *self.outputs)}
        names = [name for _, name in self.inputs]
        given = [dtype.type(value) if not isinstance(value, ndarray) else value for value, (dtype, _) in zip(args, self.inputs)]

        def run(*values: Any) -> None:
            scope: dict[str, Any] = dict(zip(names, values))
            scope["i"] = np.arange(views[0].size).reshape(views[0].shape)
            found = Program(self.operation, scope, types).run()
            for view, (_, name) in zip(views, self.outputs):
                view[...] = found[name]

        # Queued as one kernel that writes all outputs.
        arrays = [each for each in given if isinstance(each, ndarray)]
        values = [each.view_ if isinstance(each, ndarray) else each for each in given]
        for each in arrays:
            for output in outputs:
                if each.block is output.block and np.shares_memory(each.view_, output.view_):
                    assert each.view_.ctypes.data == output.view_.ctypes.data, (
                        "a kernel writes over another part of what it reads"
                    )
        from .arrays import require_here

        require_here(*arrays, *outputs)
        here.machine.launch(lambda: run(*values), [each.block for each in arrays], [each.block for each in outputs], self.name)


__all__ = ["ElementwiseKernel", "launch"]
