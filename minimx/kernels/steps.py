"""Steps of optimizers as loops in machine code: SGD, Adam and their relatives, each from the formula that NumPy computes.

An update operator's `step` (ops/optim.py) is a few lines of NumPy, each of which goes over the weight, the gradient or a state. Here such
a method is called once with arrays that compute nothing but note what is asked of them; what they have noted is the body of a loop that
goes over all once. So a formula is written once, and a new optimizer has its loop for nothing. Numbers, such as the learning rate, are
arguments of the loop: a schedule needs no other machine code.

The loop does the same operations in the same order, so its results are NumPy's to the bit; until it is compiled, NumPy serves. A method
that asks for something else than arithmetic, element by element, stays with NumPy. Book: chapter 5.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..op import Array
from ..ops import optim
from . import machine
from .expressions import CLIP, MAXIMUM, MINIMUM, ONE
from .fused import compiles

TYPES = {"float32": "float", "float64": "double"}
BINARY = {"add": "({0} + {1})", "subtract": "({0} - {1})", "multiply": "({0} * {1})", "divide": "({0} / {1})"}
#: NumPy's functions as expressions.
FUNCTIONS = {
    **BINARY, "maximum": MAXIMUM, "minimum": MINIMUM, "clip": CLIP.replace("{n0}", "{1}").replace("{n1}", "{2}"),
    **{name: ONE[name] for name in ("square", "sqrt", "sign", "abs", "negative")},
}  # fmt: skip


class UntraceableError(Exception):
    """A step asks for something that no loop has."""


class Noted:
    """An array in a step that is noted down: `value` is the name that the loop has for its elements at this point."""

    __array_ufunc__ = None  # a NumPy array must not take it for a number

    def __init__(self, notes: Notes, value: str) -> None:
        self.notes = notes
        self.value = value

    def __setitem__(self, key: Any, value: Any) -> None:
        if key is not Ellipsis:
            raise UntraceableError("only all of an array is set")
        self.value = self.notes.operand(value)

    def __getattr__(self, name: str) -> Any:
        raise UntraceableError(f"an attribute: {name}")

    def __bool__(self) -> bool:
        raise UntraceableError("a decision that depends on values")

    def __neg__(self) -> Noted:
        return self.notes.call("negative", self)


class Notes:
    """What was asked so far: `lines` of a loop, and its `numbers`. It is also the module `xp` that the step gets."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.lines: list[str] = []
        self.numbers: list[float] = []

    def operand(self, value: Any) -> str:
        """The name of an array's elements, or of a number."""
        if isinstance(value, Noted):
            return value.value
        if isinstance(value, (int, float, np.floating)):
            self.numbers.append(float(value))
            return f"s{len(self.numbers) - 1}"
        raise UntraceableError(f"an operand of type {type(value).__name__}")

    def call(self, name: str, *operands: Any, out: Noted | None = None) -> Noted:
        """Note a function; its result is `out`, if that is given."""
        value = f"v{len(self.lines)}"
        self.lines.append(f"{self.kind} {value} = {FUNCTIONS[name].format(*map(self.operand, operands), T=self.kind)};")
        if out is None:
            return Noted(self, value)
        out.value = value
        return out

    def empty_like(self, like: Noted) -> Noted:
        return Noted(self, "nothing")

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise UntraceableError(f"a function: {name}")
        return functools.partial(self.call, name)


def _operators() -> None:
    """Python's operators of arrays: `a + b`, `2 + b`, `a += b`."""

    def plain(name: str) -> Callable[..., Any]:
        return lambda self, other: self.notes.call(name, self, other)

    def reflected(name: str) -> Callable[..., Any]:
        return lambda self, other: self.notes.call(name, other, self)

    def in_place(name: str) -> Callable[..., Any]:
        return lambda self, other: self.notes.call(name, self, other, out=self)

    for symbol, name in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide")):
        setattr(Noted, f"__{symbol}__", plain(name))
        setattr(Noted, f"__r{symbol}__", reflected(name))
        setattr(Noted, f"__i{symbol}__", in_place(name))


_operators()


class Step:
    """A step as a loop: called as the method is, on flat arrays. `numpy`: the method itself, for what the loop cannot do."""

    def __init__(self, numpy: Callable[..., Array], arrays: int, dtype: np.dtype[Any]) -> None:
        self.numpy = numpy
        self.dtype = dtype
        notes = Notes(TYPES[dtype.name])
        given = [Noted(notes, f"x{number}") for number in range(arrays)]
        result = numpy(notes, *given, out=Noted(notes, "nothing"))
        if not isinstance(result, Noted) or given[1].value != "x1":
            raise UntraceableError("a result that is no array, or a gradient that is changed")
        self.numbers = notes.numbers
        self.source = written(notes, [each.value for each in given], result.value)
        kinds = (machine.POINTER,) * (arrays + 1) + (machine.NUMBERS[dtype.name],) * len(self.numbers)
        self.code = machine.code_of(self.source, (*kinds, machine.LONG, machine.LONG))

    def __call__(self, xp: Any, *arrays: Array, out: Array | None) -> Array:
        function = self.code.function
        if function is None or any(each.dtype is not self.dtype or not each.flags.c_contiguous for each in arrays):
            return self.numpy(xp, *arrays, out=out)
        result = np.empty_like(arrays[0]) if out is None else out
        pointers = [each.__array_interface__["data"][0] for each in (*arrays, result)]
        # Parts of one array: what is written for an element would be read for the next.
        if any(0 < abs(one - other) < result.nbytes for one in pointers for other in pointers[2:]):
            return self.numpy(xp, *arrays, out=out)
        function(*pointers, *self.numbers, 0, result.size)
        return result


def written(notes: Notes, after: list[str], result: str) -> str:
    """The loop's text. `after`: the values of the arrays that were given when all is done."""
    kind = notes.kind
    parameters = [f"{kind} *a{number}" for number in range(len(after))] + [f"{kind} *r"]
    parameters += [f"{kind} s{number}" for number in range(len(notes.numbers))] + ["long low", "long high"]
    inside = [f"{kind} x{number} = a{number}[i];" for number in range(len(after))]
    inside += notes.lines
    inside += [f"a{number}[i] = {value};" for number, value in enumerate(after) if number > 1 and value != f"x{number}"]
    inside.append(f"r[i] = {result};")
    lines = [f"        {line}" for line in inside]
    return "\n".join([f"void loop({', '.join(parameters)}) {{", "    for (long i = low; i < high; i++) {", *lines, "    }", "}"])


_made: dict[tuple[Any, ...], Step | None] = {}  # what was asked for -> its loop; None if it has none
MOST = 1024


def faster(step: Callable[..., Array], arrays: int, dtype: np.dtype[Any]) -> Callable[..., Array]:
    """A step that is called as `step` is, with so many arrays: its loop, or itself.

    `step` is a method of an operator, or a `functools.partial` of a function. Loops are kept by the operators' attributes.
    """
    if not compiles():
        return step
    if isinstance(step, functools.partial):
        key = (step.func, *step.args, arrays, dtype)
    else:
        op = step.__self__  # type: ignore[attr-defined]  # a method
        key = (type(op), *op.__dict__.values(), arrays, dtype)
    try:
        found = _made[key]
    except KeyError:
        found = _traced(step, arrays, dtype)
        if len(_made) >= MOST:  # of a schedule, each step has numbers of its own
            _made.clear()
        _made[key] = found
    except TypeError:  # an attribute that cannot be hashed
        return step
    return step if found is None else found


def _traced(step: Callable[..., Array], arrays: int, dtype: np.dtype[Any]) -> Step | None:
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)  # half precision is computed in single
    try:
        return Step(step, arrays, wide)
    except Exception:  # whatever it is that Noted cannot do; a real fault shows when NumPy makes the step
        return None


optim.compiling.append(faster)
