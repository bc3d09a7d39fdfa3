"""`mx.contrib.autograd`: the first edition of autograd, under the names that scripts from before MXNet 1.0 use.

Recording and training are one switch here. Everything is done by minimx/autograd.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import autograd, nd
from ..autograd import mark_variables
from ..base import ArgumentError, shown
from ..nd import NDArray

__all__ = [
    "TrainingStateScope", "backward", "compute_gradient", "grad", "grad_and_loss", "mark_variables", "set_is_training", "test_section",
    "train_section",
]  # fmt: skip


class GradientError(ArgumentError, AssertionError):
    """Arguments of which no gradient can be computed. (MXNet asserts: hence the second base.)"""


def set_is_training(is_train: bool) -> bool:
    """Switch recording and training mode on or off. **Returns** whether it was recording before."""
    autograd.set_training(bool(is_train))
    return autograd.set_recording(bool(is_train))


class TrainingStateScope:
    """A `with` block in which `set_is_training(enter_state)` holds."""

    def __init__(self, enter_state: bool) -> None:
        self._enter_state = bool(enter_state)
        self._before = (False, False)

    def __enter__(self) -> None:
        self._before = (autograd.set_recording(self._enter_state), autograd.set_training(self._enter_state))

    def __exit__(self, *exc: object) -> None:
        recording, training = self._before
        autograd.set_recording(recording)
        autograd.set_training(training)


def train_section() -> TrainingStateScope:
    """A `with` block that records, in training mode: now `autograd.record()`."""
    return TrainingStateScope(True)


def test_section() -> TrainingStateScope:
    """A `with` block that does not, inside of one that does: now `autograd.pause()`."""
    return TrainingStateScope(False)


test_section.__test__ = False  # type: ignore[attr-defined]  # its name makes pytest take it for a test


def backward(outputs: Sequence[NDArray], out_grads: Sequence[NDArray | None] | None = None, retain_graph: bool = False) -> None:
    """Write the gradients of the marked variables. **Args** `outputs`: a list of arrays; `out_grads`: of each the gradient, or None."""
    if not isinstance(outputs, (list, tuple)):
        raise GradientError(f"contrib.autograd.backward: outputs must be a list of arrays, got {shown(outputs)}")
    if out_grads is not None and len(out_grads) != len(outputs):
        raise GradientError(f"contrib.autograd.backward: there are {len(outputs)} outputs, but {len(out_grads)} out_grads")
    autograd.backward(list(outputs), None if out_grads is None else list(out_grads), retain_graph)


def compute_gradient(outputs: Sequence[NDArray]) -> None:
    """The older name of `backward`."""
    backward(outputs)


def grad_and_loss(func: Callable[..., Any], argnum: int | list[int] | None = None) -> Callable[..., tuple[list[NDArray], Any]]:
    """A function that returns the gradients of `func`'s arguments, a list, and its result.

    **Args** `argnum`: the argument, or a list of those, that gradients are wanted of; None: all. The arguments' own `grad` is replaced.

    >>> gradients, result = grad_and_loss(lambda x: x * x)(nd.array([3.0]))
    >>> gradients[0].asscalar(), result.asscalar()
    (np.float32(6.0), np.float32(9.0))
    """

    @functools.wraps(func)
    def wrapped(*args: Any) -> tuple[list[NDArray], Any]:
        chosen = range(len(args)) if argnum is None else [argnum] if isinstance(argnum, int) else argnum
        variables = [args[number] for number in chosen]
        for variable in variables:
            if not isinstance(variable, NDArray):
                raise GradientError(f"contrib.autograd: gradients are those of NDArrays, got {shown(variable)}")
        gradients = [nd.zeros_like(variable) for variable in variables]
        mark_variables(variables, gradients)
        with train_section():
            outputs = func(*args)
        compute_gradient([outputs] if isinstance(outputs, NDArray) else outputs)
        return gradients, outputs

    return wrapped


def grad(func: Callable[..., Any], argnum: int | list[int] | None = None) -> Callable[..., list[NDArray]]:
    """A function that returns the gradients of `func`'s arguments, a list. **Args** as `grad_and_loss`."""
    both = grad_and_loss(func, argnum)

    @functools.wraps(both)
    def wrapped(*args: Any) -> list[NDArray]:
        return both(*args)[0]

    return wrapped
