"""The short way for arithmetic on tiny arrays: NumPy at once, without the engine.

Scheduling an addition of two numbers costs many times what it takes. So where nothing forbids it (see `Shortcuts` in
engine/front.py), Python's operators on arrays that are tiny and whose values are there call NumPy's function in the calling
thread: the same as the engine would do a few microseconds later. Book: chapter 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import FLOAT32
from ..engine.front import shortcuts
from ..engine.var import Var
from ..op import Tensor
from ..ops.forms import Forms, as_number
from .direct import quiet
from .entry import from_array, host_numbers

_numbers: dict[float, Any] = {}  # Python numbers as float32 arrays without axes: NumPy is faster with those


def _number(value: float) -> Any:
    """`value` as a float32 array without axes. Zeros are not kept: 0.0 and -0.0 would share an entry."""
    array = np.array(as_number(value, "arithmetic with a number"), np.float32)
    if value and len(_numbers) < 1000:
        _numbers[value] = array
    return array


def operator_method(ufunc: Any, forms: Forms) -> Callable[[Any, Any], Any]:
    """The method for one of Python's operators.

    For arrays so small that scheduling costs more than computing, and whose values are there, it calls NumPy's `ufunc` at
    once: the same as `submit` would do a few microseconds later. It applies where nothing records, traces or asks for
    another mode.
    """

    def method(self: Any, other: Any) -> Any:
        spec = self.spec
        if spec.small and ufunc is not None and not shortcuts.blocked and self.offset < 0 and self.context.host:
            var = self.var
            kind = type(other)
            if kind is type(self):
                if other.spec is spec and other.offset < 0 and other.context is self.context and var.ready and other.var.ready:
                    return kind(Var(quiet.run(ufunc, var.value, other.var.value)), spec, self.context)
            elif (kind is float or kind is int) and spec.dtype is FLOAT32 and var.ready:
                number = _numbers.get(other)
                if number is None:
                    number = _number(other)
                return type(self)(Var(quiet.run(ufunc, var.value, number)), spec, self.context)
        if isinstance(other, np.ndarray):
            other = from_array(host_numbers(other, spec.dtype, "arithmetic with a NumPy array"), self.context)
        elif not isinstance(other, (Tensor, int, float, np.generic)):
            return NotImplemented
        return forms.operator(self, other)

    return method
