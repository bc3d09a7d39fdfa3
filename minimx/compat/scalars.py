"""Arrays of one element as numbers: `float(loss.asnumpy())` and `"%f" % loss.asnumpy()`, which NumPy 2.4 refuses for the shape (1,).

MXNet's sums and means have that shape, so scripts of its years have such lines everywhere. `lend()` lets `asnumpy()` give what still
converts, for arrays of one element only; standard error says once what to write instead. `python -m minimx run` lends it where the script
imports mxnet. An array that has come from elsewhere, say `a[0]` of a larger one, is NumPy's own and cannot be helped: the error stays, and
lent.py says what to write.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from ..nd import NDArray
from . import lent

NOTE = "gone since NumPy 2.4 for the shape (1,): write x.asscalar()"


class array(np.ndarray[Any, Any]):  # its name is what repr() begins with, as that of NumPy's own does
    """A NumPy array that is a number if it has one element. What is computed with it is one, too; pickles hold NumPy's own."""

    def __array_wrap__(self, value: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return value[()] if return_scalar else value.view(array)

    def __reduce__(self) -> Any:
        return self.view(np.ndarray).__reduce__()

    def round(self, decimals: Any = 0, out: Any = None) -> Any:  # np.round() asks for it, and NumPy's own gives no `array`
        value = self.view(np.ndarray).round(decimals, out)
        return value.view(array) if out is None else value

    def __float__(self) -> float:
        return float(_only(self))

    def __int__(self) -> int:
        return int(_only(self))

    def __complex__(self) -> complex:
        return complex(_only(self))


def _only(value: array) -> Any:
    """The element of an array that has one only. **Raises** TypeError for another, as NumPy did."""
    if value.size != 1:
        raise TypeError(f"only an array of one element can be converted to a Python number, not one of shape {value.shape}")
    if value.ndim:
        lent.tell("float(x.asnumpy())", NOTE)
    return value.item()


def refused() -> bool:
    """Whether this NumPy converts no arrays of shape (1,)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy 1.25 to 2.3 warn of it
            float(np.ones(1))
    except TypeError:
        return True
    return False


def lend() -> None:
    """Let `asnumpy()` of one element give an `array`, until `take_back`; nothing changes where NumPy converts its own."""
    original = NDArray.asnumpy
    if not refused() or hasattr(original, "__wrapped__"):
        return

    @functools.wraps(original)
    def asnumpy(self: NDArray) -> np.ndarray[Any, Any]:
        value = original(self)
        return value.view(array) if value.size == 1 and value.ndim else value

    NDArray.asnumpy = asnumpy  # type: ignore[method-assign]


def take_back() -> None:
    """Undo `lend`. Arrays that it gave stay what they are."""
    NDArray.asnumpy = getattr(NDArray.asnumpy, "__wrapped__", NDArray.asnumpy)  # type: ignore[method-assign]
