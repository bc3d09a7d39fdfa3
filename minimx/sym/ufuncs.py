"""Operators that are written as NumPy's functions: the lines of a program in which no kernel of an operator appears.

`np.add(a, b, out=m0)` says more to a reader than the name of a kernel, and is called sooner. That is how those operators are written whose
kernel is nothing else than a function of NumPy, or a product of matrices. codegen.py and groups.py put the lines together. Book: chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..op import Kind, Op, Spec
from ..ops.activation import ACTIVATIONS, Activate, Relu
from ..ops.forms import Broadcast as BroadcastForm, Elementwise, Function, ReversedScalar, Scalar, Unary
from ..ops.linalg import Dot
from ..ops.nn import FullyConnectedLayer

FEW = 4096  # elements


Number = Callable[[float, Spec], str]


def literal(value: float, spec: Spec) -> str:
    """A Python number as it is written in source."""
    return repr(value)


def written(
    op: Op, name: str, arguments: list[str], inputs: Sequence[Spec | None], spec: Spec, out: str | None, number: Number = literal
) -> list[str] | None:
    """Lines that compute `name` from `arguments` with NumPy's own functions; None where the kernel does more than that.

    **Args** `out`: where the result is to be; "" for fresh memory, of which NumPy takes care; None if nothing was planned. `number`: how a
    number is written.
    """
    into = f", out={out}" if out else ""
    if op.aliases:
        return [f"{name} = {arguments[0]}.reshape({spec.shape})"]
    if spec.dtype.kind != "f" or any(each is None or each.dtype is not spec.dtype for each in inputs):
        return None
    if op.kind is Kind.ELEMENTWISE:
        called = ufunc_of(op, spec)
        if called is None or out is None:
            return None
        function, before, after = called
        if not out and function.types[-1].endswith("?"):  # a comparison, which gives bool
            return None
        numbers = [[number(float(value), spec) for value in values] for values in (before, after)]
        return [f"{name} = np.{function.__name__}({', '.join([*numbers[0], *arguments, *numbers[1]])}{into})"]
    if spec.dtype.itemsize == 2:
        return None  # half precision is computed in single, by the kernels
    shapes = [each.shape for each in inputs if each is not None]
    if isinstance(op, FullyConnectedLayer) and len(shapes[0]) == 2:
        lines = [f"{name} = {arguments[0]}.dot({arguments[1]}.T{into})"]
        # NumPy adds a row to rows sooner than a vector.
        return lines if len(arguments) == 2 else [*lines, f"{name} += {arguments[2]}[None]"]
    if isinstance(op, Dot) and len(shapes[0]) == len(shapes[1]) == 2:
        left = f"{arguments[0]}.T" if op.transpose_a else arguments[0]
        right = f"{arguments[1]}.T" if op.transpose_b else arguments[1]
        return [f"{name} = {left}.dot({right}{into})"]
    return None


def ufunc_of(op: Op, spec: Spec) -> tuple[np.ufunc, list[float], list[float]] | None:
    """The NumPy function that is all an elementwise operator does on floating arrays, and numbers that come before and after the arrays."""
    if isinstance(op, Activate):
        op = ACTIVATIONS[op.act_type]
    if isinstance(op, Relu) and spec.size <= FEW:  # with more numbers the kernel has a faster way
        return np.maximum, [], [0.0]
    if not isinstance(op.ufunc, np.ufunc):
        return None
    kind = type(op)
    function = op.ufunc
    if isinstance(op, Unary):
        return (function, [], []) if kind.kernel is Unary.kernel else None
    if not isinstance(op, Function):
        return None
    if isinstance(op, ReversedScalar):
        return (function, [op.scalar], []) if kind.kernel is ReversedScalar.kernel else None
    if isinstance(op, Scalar):
        return (function, [], [op.scalar]) if kind.kernel is Scalar.kernel else None
    if isinstance(op, (Elementwise, BroadcastForm)):
        return (function, [], []) if kind.kernel in (Elementwise.kernel, BroadcastForm.kernel) else None
    return None
