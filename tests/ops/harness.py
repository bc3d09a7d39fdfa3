"""The table of operator cases: what a row says. The rows are in cases_*.py beside this file, a family a file.

From one row `test_cases.py` derives: the forward value against a NumPy oracle in every dtype, the rule of shapes against the real
result, first and second gradients by random projection in float64, equality of the asynchronous engine, the lazy scope and
NaiveEngine, and the errors of bad inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Maker = Callable[[np.random.Generator], np.ndarray]  # makes an input of a row


def normal(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Standard normal numbers."""
    return lambda rng: rng.standard_normal(shape)


def uniform(low: float, high: float, *shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Uniform numbers of [low, high): for functions with a bounded domain, or to keep away from a kink."""
    return lambda rng: rng.uniform(low, high, shape)


def integers(low: int, high: int, *shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Whole numbers of [low, high): indices, labels. They get no gradient."""
    return lambda rng: rng.integers(low, high, shape)


def distinct(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Numbers at least 0.1 apart in random order, none near 0: for max, sort and whatever has kinks at ties."""

    def make(rng: np.random.Generator) -> np.ndarray:
        size = int(np.prod(shape))
        return (rng.permutation(size) - size / 2 + 0.37).reshape(shape) * 0.1 if size else np.zeros(shape)

    return make


@dataclass(frozen=True)
class Bad:
    """A call that must raise `error` with a message matching the regular expression `match`."""

    call: Callable[[Any], Any]  # lambda nd: nd.dot(nd.ones((2, 3)), nd.ones((2, 3)))
    error: type[Exception]
    match: str


@dataclass(frozen=True)
class Case:
    """One row: an operator, called in one way."""

    op: str  # the registered name
    call: Callable[..., Any]  # tensors -> tensor or list of tensors, through the public function
    inputs: tuple[Callable[[np.random.Generator], np.ndarray], ...]
    oracle: Callable[..., Any] | None  # NumPy arrays -> array or tuple of arrays; None: only shapes are checked (random numbers)
    grad: bool = True  # has a gradient for its floating inputs
    second: bool = True  # ... which has a gradient again
    dtypes: tuple[str, ...] = ("float32", "float64")  # of the floating inputs
    rtol: dict[str, float] | None = None  # dtype -> tolerance where the usual one is too strict; the reason stands beside it
    bad: tuple[Bad, ...] = ()
    label: str = ""  # tells two rows of an operator apart
