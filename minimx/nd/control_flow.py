"""Loops and branches on arrays: `foreach`, `while_loop`, `cond`.

On arrays they are Python's own `for`, `while` and `if`, and the tape records what their functions do. The functions of the same names in
`sym` (sym/loops.py) make one node of a graph of each, so that a hybridized block keeps its loops, whatever their lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import autograd
from ..base import ArgumentError, ShapeError, shown
from ..device import Context
from ..op import Shape
from ..ops.joining import concat, split, stack
from .creation import zeros
from .entry import from_array
from .ndarray import NDArray
from .nesting import Format, StructureError, called, flatten, pair, regroup

__all__ = ["cond", "foreach", "while_loop"]


def foreach(body: Callable[..., Any], data: Any, init_states: Any, name: str | None = None) -> tuple[Any, Any]:
    """Run `outputs, states = body(data[i], states)` for i = 0, 1, ...: the outputs of all steps, stacked, and the last states.

    **Shapes** data (T, ...), or a (nested) list of such; body gets (...) of it, (1,) where data is (T,). An output (...) of body becomes
    (T, ...). **Args** `init_states`: the states of the first step, an array or a (nested) list. `name` is for Symbols.
    **Returns** a pair built as what body returns; [] where it gives no outputs. **Raises** AssertionError for anything but arrays and lists
    of them, ValueError if data differ in their lengths, have the length 0, or an output changes its shape. **Gradient** that of the steps.
    **Source** MXNet `contrib.foreach`, which takes data of different lengths without a word.

    >>> sums, last = mx.nd.contrib.foreach(lambda x, total: (x + total, x + total), mx.nd.array([1, 2, 3]), mx.nd.zeros((1,)))
    >>> sums.asnumpy().tolist(), last.asnumpy().tolist()
    ([[1.0], [3.0], [6.0]], [6.0])
    """
    arrays, form = flatten(data, NDArray, "foreach: data")
    flatten(init_states, NDArray, "foreach: init_states")
    length = common_length("foreach", arrays)
    if length == 0:
        raise ShapeError("foreach: data has length 0, so body is never called, and nothing tells what it would give")
    columns = [slices(each) for each in arrays]
    states = init_states
    given: list[list[NDArray]] = []
    given_form: Format = None
    for step in range(length):
        outputs, states = pair(
            "foreach: body", called("foreach: body", body, regroup([each[step] for each in columns], form), states)
        )
        flat, found = flatten(outputs, NDArray, "foreach: the outputs of body")
        if step and found != given_form:
            raise StructureError(f"foreach: body gives outputs of another structure in step {step} than before")
        given_form = found
        given.append(flat)
    return regroup([stacked("foreach", number, column) for number, column in enumerate(zip(*given))], given_form), states


def while_loop(
    cond: Callable[..., Any], func: Callable[..., Any], loop_vars: Any, max_iterations: Any = None, name: str | None = None
) -> tuple[Any, Any]:
    """Run `outputs, loop_vars = func(*loop_vars)` while `cond(*loop_vars)` holds, at most `max_iterations` times.

    **Args** `loop_vars`: an array or a (nested) list; cond and func get its elements as arguments. `cond` returns an array of one element,
    which each step waits for. `name` is for Symbols and means nothing here.
    **Returns** the outputs of all steps, stacked and filled up with zeros to `max_iterations`, and the last loop_vars; [] for the outputs
    if there was no step, as nothing tells what they would be. **Raises** ValueError without max_iterations or loop_vars, for a condition
    that is no scalar, or if func returns another number of loop_vars. **Gradient** that of the steps. **Source** MXNet
    `contrib.while_loop`, where the rows after the last step are not initialized.

    >>> start = [mx.nd.array([0]), mx.nd.array([1])]
    >>> rows, (i, x) = mx.nd.contrib.while_loop(lambda i, x: i < 3, lambda i, x: (x, [i + 1, x * 2]), start, max_iterations=4)
    >>> rows.asnumpy().tolist(), x.asnumpy().tolist()
    ([[1.0], [2.0], [4.0], [0.0]], [8.0])
    """
    limit = iterations(max_iterations)
    single = isinstance(loop_vars, NDArray)
    values = _listed("while_loop: loop_vars", loop_vars)
    if not values:
        raise ArgumentError("while_loop: loop_vars should contain at least one element")
    given: list[list[NDArray]] = []
    form: Format = []
    while len(given) < limit and truth("while_loop: the result of cond", called("while_loop: cond", cond, *values)):
        outputs, following = pair("while_loop: func", called("while_loop: func", func, *values))
        following = _listed("while_loop: the loop_vars of func", [] if following is None else following)
        if len(following) != len(values):
            raise ArgumentError(
                f"while_loop: func returns {len(following)} loop_vars, it got {len(values)}; their number must stay the same"
            )
        values = following
        flat, found = flatten([] if outputs is None else outputs, NDArray, "while_loop: the outputs of func")
        if given and found != form:
            raise StructureError(f"while_loop: func gives outputs of another structure in step {len(given)} than before")
        form = found
        given.append(flat)
    columns = [padded(stacked("while_loop", number, column), limit) for number, column in enumerate(zip(*given))]
    return regroup(columns, form), values[0] if single else values


def cond(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any], name: str | None = None) -> Any:
    """`then_func()` if `pred` holds, else `else_func()`. The other function is not called.

    **Args** `pred`: an array of one element, which is waited for, or a number. `name` is for Symbols and means nothing here.
    **Returns** what the function returns. **Raises** ValueError if pred is no scalar. **Gradient** that of the function that was called.
    **Source** MXNet `contrib.cond`.

    >>> x = mx.nd.array([3])
    >>> mx.nd.contrib.cond(x > 2, lambda: x * 10, lambda: x + 1).asnumpy().tolist()
    [30.0]
    """
    chosen, what = (then_func, "then_func") if truth("cond: pred", pred) else (else_func, "else_func")
    return called(f"cond: {what}", chosen)


# ---- also for loops in graphs


def common_length(who: str, arrays: Sequence[NDArray]) -> int:
    """The length that all `arrays` have in common. Raises StructureError if there are none, ShapeError if they differ."""
    if not arrays:
        raise StructureError(f"{who}: data is empty, so nothing tells how often to run")
    shapes = [each.shape for each in arrays]
    if not all(shapes) or len({shape[0] for shape in shapes if shape}) > 1:
        listed = ", ".join(str(shape) for shape in shapes)
        raise ShapeError(f"{who}: data has the shapes {listed}; all must be equally long in the first axis")
    return shapes[0][0]


def slices(array: NDArray) -> NDArray | list[NDArray]:
    """`array[0]`, `array[1]`, ... Where a gradient is wanted it is cut by one operator, so that the gradient is put together once."""
    if not autograd.state.recording or not autograd.place(array) or array.shape[0] == 0:
        return array
    parts = split(array, array.shape[0], axis=0, squeeze_axis=array.ndim > 1)
    return [parts] if isinstance(parts, NDArray) else parts


def stacked(who: str, number: int, column: Sequence[NDArray]) -> NDArray:
    """What all steps gave for output `number`, along a new first axis."""
    for step, each in enumerate(column):
        if each.shape != column[0].shape:
            raise ShapeError(
                f"{who}: output {number} has shape {column[0].shape} in the first step and {each.shape} in step {step}; they must be equal"
            )
    return stack(*column, axis=0)


def padded(array: NDArray, length: int) -> NDArray:
    """`array` with zeros after its rows, up to `length` of them."""
    missing = length - array.shape[0]
    if missing == 0:
        return array
    return concat(array, blank((missing, *array.shape[1:]), array.context, array.dtype), dim=0)


def blank(shape: Shape, context: Context, dtype: np.dtype[Any]) -> NDArray:
    """Zeros, of which there may be none: `nd.zeros` takes a length of 0 for an unknown one."""
    if 0 in shape:
        return from_array(np.zeros(shape, dtype), context)
    return zeros(shape, context, dtype)


def truth(what: str, value: Any) -> bool:
    """Whether a condition holds: that of an array is waited for. Raises ShapeError for an array of several elements."""
    if isinstance(value, NDArray):
        if value.size != 1:
            raise ShapeError(f"{what} has shape {value.shape}; an array of one element is wanted")
        return bool(value.asscalar())
    if value is not None and not isinstance(value, (bool, int, float, np.bool_, np.number)):
        raise ArgumentError(f"{what} must be an NDArray of one element or a number, got {shown(value)}")
    return bool(value)


def iterations(value: Any) -> int:
    """The number of steps that a loop may take at most. Raises ArgumentError if it is none."""
    if value is None:
        raise ArgumentError("while_loop: max_iterations should be specified")
    if isinstance(value, NDArray):
        value = value.asscalar()
    try:
        if isinstance(value, np.complexfloating):
            raise TypeError  # NumPy would drop a part, with a warning
        if isinstance(value, np.ndarray):
            if value.size != 1:
                raise TypeError
            value = value.item()
        limit = int(value)
        if not isinstance(value, str) and limit != value:
            raise ValueError("it has a fraction")
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise ArgumentError(f"while_loop: max_iterations must be a whole number, got {shown(value)}") from None
    if limit < 0:
        raise ArgumentError(f"while_loop: max_iterations is {limit}, wants 0 or more")
    return limit


def _listed(what: str, values: Any) -> list[Any]:
    """The arguments of a loop's functions: arrays, numbers and nested lists of them."""
    if isinstance(values, NDArray):
        return [values]
    if not isinstance(values, (list, tuple)):
        raise StructureError(f"{what} must be an NDArray or a (nested) list of them, got {shown(values)}")
    for each in values:
        if not isinstance(each, (NDArray, int, float, np.number)):
            _listed(what, each)
    return list(values)
