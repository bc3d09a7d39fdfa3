"""Checks of a graph: its outputs and gradients against expected values, and its gradients against finite differences.

The checks bind a Symbol to arrays, run it forward and backward, and compare. For finite differences the outputs are first multiplied by
a random array and summed, so that one number depends on every output and one backward pass gives all gradients to compare with; each
element of each argument is then moved a little to either side. What the book says about this is in chapter 1.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import nd, sym as symbols
from ..base import ArgumentError, ShapeError, shown
from ..device import Context, current_context
from ..nd import NDArray, waitall
from ..sym import Symbol
from ..sym.executor import Executor
from .comparison import Tolerance, assert_almost_equal, default_numeric_eps, get_tolerance, values

__all__ = [
    "check_numeric_gradient",
    "check_speed",
    "check_symbolic_backward",
    "check_symbolic_forward",
    "numeric_grad",
    "simple_forward",
]

Arrays = Mapping[str, Any] | Sequence[Any]  # by name, or in the order of the symbol's list
FLOATING = (np.float16, np.float32, np.float64)
PROJECTION = "__random_proj"


# ---- what the checks are given


def simple_forward(sym: Symbol, ctx: Context | None = None, is_train: bool = False, **inputs: Any) -> Any:
    """The outputs of a graph for NumPy arrays by name: one NumPy array, or a list. **Source** MXNet `test_utils`, like all names here.

    >>> simple_forward(mx.sym.Variable("x") * 2, x=np.ones(2)).tolist()
    [2.0, 2.0]
    """
    executor = sym.bind(ctx or current_context(), {name: nd.array(value, ctx=ctx) for name, value in inputs.items()})
    outputs = [output.asnumpy() for output in executor.forward(is_train=is_train)]
    return outputs[0] if len(outputs) == 1 else outputs


def _checked_dtype(dtype: Any, who: str, as_given: bool = True) -> None:
    if not (as_given and isinstance(dtype, str) and dtype == "asnumpy") and dtype not in FLOATING:
        more = ', or "asnumpy" for that of each array' if as_given else ""
        raise ArgumentError(f"{who}: dtype must be np.float16, np.float32 or np.float64{more}, got {shown(dtype)}")


def _arrays(who: str, given: Arrays, names: Sequence[str], ctx: Context | None, dtype: Any) -> dict[str, NDArray]:
    """An NDArray for each of `names`, from values by name or in order."""
    if isinstance(given, Mapping):
        if set(given) != set(names):
            raise ArgumentError(f"{who}: values are given for {_listed(given)}; the symbol has {_listed(names)}")
    elif not isinstance(given, (list, tuple)) or len(given) != len(names):
        raise ArgumentError(
            f"{who}: a dict, or a list of {len(names)} arrays is wanted, for {_listed(names)}; got {shown(given)}"
        )
    by_name = dict(given) if isinstance(given, Mapping) else dict(zip(names, given))
    return {name: _array(by_name[name], ctx, dtype) for name in names}


def _array(value: Any, ctx: Context | None, dtype: Any) -> NDArray:
    if isinstance(value, NDArray):
        return value
    value = np.asarray(value)
    return nd.array(value, ctx=ctx, dtype=value.dtype if isinstance(dtype, str) else dtype)


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names)) or "nothing"


def _location(who: str, sym: Symbol, location: Arrays, ctx: Context, dtype: Any) -> dict[str, NDArray]:
    return _arrays(f"{who}: location", location, sym.list_arguments(), ctx, dtype)


def _states(who: str, sym: Symbol, aux_states: Arrays | None, ctx: Context, dtype: Any) -> dict[str, NDArray] | None:
    if aux_states is None:
        return None
    return _arrays(f"{who}: aux_states", aux_states, sym.list_auxiliary_states(), ctx, dtype)


def _only_dense(who: str, stypes: Mapping[str, str | None] | None) -> None:
    other = {name: stype for name, stype in (stypes or {}).items() if stype not in (None, "default")}
    if other:
        raise ArgumentError(f"{who}: the storage type {shown(next(iter(other.values())))}: arrays are dense here, use 'default'")


# ---- against expected values


def check_symbolic_forward(
    sym: Symbol, location: Arrays, expected: Arrays, rtol: Tolerance = None, atol: Tolerance = None, aux_states: Arrays | None = None,
    ctx: Context | None = None, equal_nan: bool = False, dtype: Any = np.float32,
) -> list[NDArray]:  # fmt: skip
    """Compare the outputs of `sym` with `expected`, in inference mode.

    **Args** `location`: the arguments' values, by name or in order; `expected`: the outputs', by name or in order; `aux_states`: alike;
    `dtype`: of the arguments, "asnumpy" for that of each array. **Returns** the outputs. **Raises** AssertionError where they differ.

    >>> a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    >>> check_symbolic_forward(mx.sym.dot(a, b), [np.eye(2), np.ones((2, 1))], [np.ones((2, 1))])[0].shape
    (2, 1)
    """
    who = "check_symbolic_forward"
    _checked_dtype(dtype, who)
    ctx = ctx or current_context()
    names = sym.list_outputs()
    wanted = [expected[name] for name in names] if isinstance(expected, Mapping) else list(expected)
    arguments = _location(who, sym, location, ctx, dtype)
    executor = sym.bind(ctx, arguments, grad_req="null", aux_states=_states(who, sym, aux_states, ctx, dtype))
    outputs = executor.forward(is_train=False)
    for name, value, output in zip(names, wanted, outputs):
        assert_almost_equal(value, output, rtol, atol, (f"EXPECTED_{name}", f"FORWARD_{name}"), equal_nan=equal_nan)
    return outputs


def check_symbolic_backward(
    sym: Symbol, location: Arrays, out_grads: Arrays | None, expected: Arrays, rtol: Tolerance = None, atol: Tolerance = None,
    aux_states: Arrays | None = None, grad_req: Any = "write", ctx: Context | None = None,
    grad_stypes: Mapping[str, str | None] | None = None, equal_nan: bool = False, dtype: Any = np.float32,
) -> dict[str, NDArray]:  # fmt: skip
    """Compare the gradients of `sym` with `expected`, in training mode.

    **Args** `out_grads`: gradients of the outputs, in order or by name; None for losses; `expected`: gradients of arguments, by name or
    in order; `grad_req`: what is done with each gradient ("write", "add", "null"): one for all, in order, or by name. The gradients'
    memory holds random numbers before, which "add" adds to and "null" leaves. The other arguments are those of
    `check_symbolic_forward`. **Returns** the gradients by name. **Raises** AssertionError where they differ.
    """
    who = "check_symbolic_backward"
    _checked_dtype(dtype, who)
    _only_dense(who, grad_stypes)
    ctx = ctx or current_context()
    names = sym.list_arguments()
    wanted = dict(expected) if isinstance(expected, Mapping) else dict(zip(names, expected))
    before = {name: np.random.normal(size=values(wanted[name]).shape) for name in sorted(wanted)}
    grads = {
        name: nd.array(before[name], ctx=ctx, dtype=values(wanted[name]).dtype if isinstance(dtype, str) else dtype)
        for name in wanted
    }
    reqs = dict.fromkeys(names, grad_req) if isinstance(grad_req, str) else grad_req
    reqs = dict(reqs) if isinstance(reqs, Mapping) else dict(zip(names, reqs))
    arguments = _location(who, sym, location, ctx, dtype)
    executor = sym.bind(ctx, arguments, grads, reqs, _states(who, sym, aux_states, ctx, dtype))
    executor.forward(is_train=True)
    if isinstance(out_grads, Mapping):
        executor.backward({name: _array(each, ctx, dtype) for name, each in out_grads.items()})
    else:
        executor.backward(None if out_grads is None else [_array(each, ctx, dtype) for each in out_grads])
    for name, value in wanted.items():
        _compare_gradient(name, reqs[name], value, grads[name], before[name], rtol, atol, "EXPECTED", equal_nan)
    return grads


def _compare_gradient(
    name: str, req: str, wanted: Any, got: NDArray, before: np.ndarray[Any, Any], rtol: Tolerance, atol: Tolerance, what: str,
    equal_nan: bool = False,
) -> None:  # fmt: skip
    """Compare a gradient with what it should be after its memory held `before`."""
    labels = (f"{what}_{name}", f"BACKWARD_{name}")
    if req == "null":
        wanted = before
    found = got.asnumpy() - before.astype(got.dtype) if req == "add" else got
    assert_almost_equal(wanted, found, rtol, atol, labels, equal_nan=equal_nan)


# ---- against finite differences


def numeric_grad(
    executor: Executor, location: Mapping[str, Any], aux_states: Mapping[str, Any] | None = None, eps: float = 1e-4,
    use_forward_train: bool = True, dtype: Any = np.float32,
) -> dict[str, np.ndarray[Any, Any]]:  # fmt: skip
    """The gradients of the sum of an executor's first output by central differences: `(f(x + eps/2) - f(x - eps/2)) / eps`.

    **Args** `location`: the arguments' values by name; `aux_states`: the auxiliary states', which each run begins with;
    `use_forward_train`: whether layers behave as in training. **Returns** an array for each argument, of zeros for integers.
    """
    _checked_dtype(dtype, "numeric_grad", as_given=False)
    location = {name: np.array(values(value), order="C") for name, value in location.items()}
    arguments, states = executor.arg_dict, executor.aux_dict

    def run(name: str, value: np.ndarray[Any, Any]) -> float:
        arguments[name][:] = value.astype(dtype)
        for state, given in (aux_states or {}).items():
            states[state][:] = given
        return float(executor.forward(is_train=use_forward_train)[0].asnumpy().sum(dtype=np.float64))

    for name, value in location.items():
        arguments[name][:] = value.astype(dtype)
    found = {}
    for name, value in location.items():
        found[name] = np.zeros(value.shape, dtype)
        if value.dtype.kind != "f":
            continue
        moved = value.copy()
        for index in np.ndindex(value.shape):
            moved[index] = value[index] + eps / 2
            above = run(name, moved)
            moved[index] = value[index] - eps / 2
            found[name][index] = (above - run(name, moved)) / eps
            moved[index] = value[index]
        arguments[name][:] = value.astype(dtype)
    return found


def check_numeric_gradient(
    sym: Symbol, location: Arrays, aux_states: Arrays | None = None, numeric_eps: Any = None, rtol: Tolerance = None,
    atol: Tolerance = None, grad_nodes: Any = None, use_forward_train: bool = True, ctx: Context | None = None,
    grad_stype_dict: Mapping[str, str | None] | None = None, dtype: Any = np.float32,
) -> None:  # fmt: skip
    """Compare the gradients of `sym`, which has one output, with finite differences.

    **Args** `location`, `aux_states`: values by name or in order; `numeric_eps`: the step, by default one that fits the dtype;
    `grad_nodes`: names of the arguments to check (None: all), or what is done with the gradient of each ("write", "add", "null") by
    name; `use_forward_train`: whether layers behave as in training while differences are taken. **Raises** AssertionError where
    gradients differ.

    >>> check_numeric_gradient(mx.sym.Variable("x") ** 2, [np.array([1.0, -2.0])])
    """
    who = "check_numeric_gradient"
    _checked_dtype(dtype, who, as_given=False)
    _only_dense(who, grad_stype_dict)
    ctx = ctx or current_context()
    if grad_nodes is not None and not isinstance(grad_nodes, (list, tuple, dict)):
        raise ArgumentError(
            f"{who}: grad_nodes must be a list of names, or a dict of what is done with gradients, got {shown(grad_nodes)}"
        )
    nodes = sym.list_arguments() if grad_nodes is None else grad_nodes
    reqs = dict(nodes) if isinstance(nodes, Mapping) else dict.fromkeys(nodes, "write")
    arguments = _location(who, sym, location, ctx, dtype)
    states = _states(who, sym, aux_states, ctx, dtype)
    numbers = {name: array.asnumpy() for name, array in arguments.items()}
    state_numbers = None if states is None else {name: array.asnumpy() for name, array in states.items()}
    shapes = sym.infer_shape(**{name: array.shape for name, array in arguments.items()})[1]
    if shapes is None or len(shapes) != 1:
        raise ShapeError(f"{who}: a symbol with one output is wanted; its outputs are {_listed(sym.list_outputs())}")
    weights = np.random.rand(*shapes[0]) + 0.1  # not too small, or differences would be lost in rounding
    arguments[PROJECTION] = nd.array(weights, ctx=ctx, dtype=dtype)
    before = {name: np.random.normal(0, 0.01, arguments[name].shape) for name in reqs}
    grads = {name: nd.array(value, ctx=ctx, dtype=dtype) for name, value in before.items()}
    grads[PROJECTION] = nd.zeros(shapes[0], ctx=ctx, dtype=dtype)
    head = symbols.make_loss(sym * symbols.Variable(PROJECTION))
    executor = head.bind(ctx, arguments, grads, {**reqs, PROJECTION: "write"}, states)
    output = executor.forward(is_train=True)[0]
    executor.backward()
    eps = get_tolerance(output, numeric_eps, default_numeric_eps())
    numeric = numeric_grad(executor, numbers, state_numbers, eps, use_forward_train, dtype)
    for name, req in reqs.items():
        _compare_gradient(name, req, numeric[name], grads[name], before[name], rtol, atol, "NUMERICAL")


# ---- speed


def check_speed(
    sym: Symbol, location: Mapping[str, Any] | None = None, ctx: Context | None = None, N: int = 20, grad_req: Any = None,
    typ: str = "whole", **kwargs: Any,
) -> float:  # fmt: skip
    """Seconds that a run of a graph takes, the mean of `N` after one that is not counted.

    **Args** `location`: the arguments' values by name; None: random ones, and `kwargs` are what `simple_bind` takes; `typ`: "whole" for
    forward and backward, "forward".
    """
    if typ not in ("whole", "forward"):
        raise ArgumentError(f'check_speed: typ can only be "whole" or "forward", got {shown(typ)}')
    shapes = kwargs if location is None else {name: value.shape for name, value in location.items()}
    executor = sym.simple_bind(ctx or current_context(), grad_req=grad_req or "write", **shapes)
    for name, array in executor.arg_dict.items():
        value = np.random.normal(size=array.shape) if location is None else values(location[name])
        array[:] = value.astype(array.dtype)
    whole = typ == "whole"

    def run() -> None:
        outputs = executor.forward(is_train=whole)
        if whole:
            executor.backward(outputs)

    run()
    waitall()
    begin = time.perf_counter()
    for _ in range(N):
        run()
    waitall()
    return (time.perf_counter() - begin) / N
