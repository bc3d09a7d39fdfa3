"""One computation in several ways: dtypes and devices, hybridized or not, one optimizer and another; the results must agree."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import autograd, nd
from ..base import ArgumentError, shown
from ..device import current_context
from ..gluon import HybridBlock
from ..nd import NDArray
from ..sym import Symbol
from ..sym.executor import Executor
from .comparison import Tolerance, assert_almost_equal, compare_ndarray_tuple, get_tols

__all__ = ["check_consistency", "check_gluon_hybridize_consistency", "compare_optimizer", "same_symbol_structure"]


# ---- dtypes and devices


def check_consistency(
    sym: Symbol | Sequence[Symbol], ctx_list: Sequence[Mapping[str, Any]], scale: float = 1.0, grad_req: Any = "write",
    arg_params: dict[str, Any] | None = None, aux_params: dict[str, Any] | None = None, rtol: Tolerance = None, atol: Tolerance = None,
    raise_on_err: bool = True, ground_truth: Mapping[str, Any] | None = None, equal_nan: bool = False, use_uniform: bool = False,
    rand_type: Any = np.float64,
) -> Mapping[str, Any]:  # fmt: skip
    """Compare a graph's outputs and gradients in several settings with those of the most precise one.

    **Args** `sym`: one symbol, or one for each setting; `ctx_list`: settings, what `simple_bind` takes by keyword: "ctx", "type_dict"
    and the shapes of the data; `scale`: the deviation of the random arguments (with `use_uniform` their largest size, nearly);
    `arg_params`, `aux_params`: values by name to use instead; `raise_on_err`: False prints what differs and goes on; `ground_truth`:
    values by name to compare with; `rand_type`: the dtype that random arguments are rounded to. **Returns** what was compared with.
    **Raises** AssertionError where results differ. **Source** MXNet `test_utils.check_consistency`.

    >>> sym = mx.sym.exp(mx.sym.Variable("x"), name="y")
    >>> settings = [{"ctx": mx.cpu(), "x": (2, 3), "type_dict": {"x": dtype}} for dtype in ("float64", "float32")]
    >>> sorted(check_consistency(sym, settings))
    ['x', 'y_output']
    """
    if len(ctx_list) < 2:
        raise ArgumentError(f"check_consistency: ctx_list has {len(ctx_list)} settings; at least 2 are wanted to compare")
    syms = [sym] * len(ctx_list) if isinstance(sym, Symbol) else list(sym)
    lists = [(each.list_arguments(), each.list_outputs()) for each in syms]
    if len(syms) != len(ctx_list) or any(each != lists[0] for each in lists):
        raise ArgumentError("check_consistency: a symbol for each setting is wanted, all with the same arguments and outputs")
    executors = [each.simple_bind(grad_req=grad_req, **settings) for each, settings in zip(syms, ctx_list)]
    _fill(executors, arg_params or {}, aux_params or {}, scale, grad_req, use_uniform, rand_type)
    dtypes = [np.dtype(each.outputs[0].dtype) for each in executors]
    best = dtypes.index(max(dtypes, key=lambda dtype: dtype.itemsize))
    for each in executors:
        each.forward(is_train=False)
    truth = ground_truth or _results(executors[best], grad_req)
    check = _Comparison(truth, rtol, atol, equal_nan, raise_on_err)
    names, arguments = lists[0][1], lists[0][0]
    for number, each in enumerate(executors):
        if number != best:
            for name, output in zip(names, each.outputs):
                check(f"prediction with setting {number} and {best}, {name}", name, output)
    if grad_req == "null":
        return truth
    _backward(executors)
    for number, each in enumerate(executors):
        if number != best:
            for name, array in zip([*names, *arguments], [*each.outputs, *each.grad_arrays]):
                check(f"training with setting {number} and {best}, {name}", name, array, (dtypes[number], dtypes[best]))
    return truth


def _results(executor: Executor, grad_req: Any) -> dict[str, Any]:
    """The arrays into which an executor writes, by name."""
    return {**executor.output_dict, **(executor.grad_dict if grad_req != "null" else {})}


def _fill(
    executors: Sequence[Executor], arg_params: dict[str, Any], aux_params: dict[str, Any], scale: float, grad_req: Any, uniform: bool,
    rand_type: Any,
) -> None:  # fmt: skip
    """The same values for the arguments of all executors: those given, and random ones."""
    for name, array in sorted(executors[0].arg_dict.items()):
        if name not in arg_params:
            if uniform:
                drawn = np.random.uniform(-0.92 * scale, 0.92 * scale, array.shape)
            else:
                drawn = np.random.normal(size=array.shape, scale=scale)
            arg_params[name] = drawn.astype(rand_type)
    for executor in executors:
        for name, array in executor.arg_dict.items():
            array[:] = arg_params[name]
        for name, array in executor.aux_dict.items():
            array[:] = aux_params.get(name, 0)
        if grad_req == "add":
            for grad in executor.grad_arrays:
                if grad is not None:
                    grad[:] = 0


def _backward(executors: Sequence[Executor]) -> None:
    """Run all forward and backward, with the first one's outputs as gradients, rounded as the least precise setting rounds them."""
    for executor in executors:
        executor.forward(is_train=True)
    coarse = [
        min((np.dtype(each.outputs[i].dtype) for each in executors), key=lambda dtype: dtype.itemsize)
        for i in range(len(executors[0].outputs))
    ]
    heads = [output.astype(dtype).asnumpy() for output, dtype in zip(executors[0].outputs, coarse)]
    for executor in executors:
        executor.backward([nd.array(head, ctx=out.context, dtype=out.dtype) for head, out in zip(heads, executor.outputs)])


class _Comparison:
    """Compares arrays with the true ones by name."""

    def __init__(self, truth: Mapping[str, Any], rtol: Tolerance, atol: Tolerance, equal_nan: bool, strict: bool) -> None:
        self.truth, self.rtol, self.atol, self.equal_nan, self.strict = truth, rtol, atol, equal_nan, strict

    def __call__(self, what: str, name: str, array: NDArray | None, coarse: Sequence[Any] = ()) -> None:
        """**Args** `coarse`: dtypes of the two graphs' data: no gradient can be more precise than these."""
        if name not in self.truth:
            return
        true = self.truth[name]
        if true is None or array is None:
            if true is not array:
                raise AssertionError(f"{what}: one setting has a gradient, the other has none")
            return
        rtol, atol = self.rtol, self.atol
        if coarse:
            rounded = [
                each.astype(min(np.dtype(each.dtype), dtype, key=lambda one: one.itemsize))
                for each, dtype in zip((array, true), coarse)
            ]
            rtol, atol = get_tols(rounded[0], rounded[1], rtol, atol)
        try:
            assert_almost_equal(array, true, rtol, atol, ("got", "most precise"), equal_nan=self.equal_nan)
        except AssertionError as error:
            if self.strict:
                raise AssertionError(f"{what}: {error}") from None
            print(f"{what}: {error}")


# ---- hybridized or not


def check_gluon_hybridize_consistency(
    net_builder: Callable[..., HybridBlock], data_l: Sequence[NDArray], numpy_func: Callable[..., Any] | None = None,
    test_grad: bool = True, rtol: Tolerance = 1e-4, atol: Tolerance = 1e-4,
) -> None:  # fmt: skip
    """Compare the outputs, and gradients for the data, of a block as it is and hybridized, recorded and not.

    **Args** `net_builder`: makes the block, and takes `prefix`; `data_l`: its inputs, float arrays; `numpy_func`: gives the right
    output for NumPy arrays. **Raises** AssertionError where results differ. **Source** MXNet
    `test_utils.check_gluon_hybridize_consistency`, which wants arrays of the NumPy interface.
    """
    params: dict[str, NDArray] = {}
    outputs, grads = [], []
    for hybrid in (False, True):
        for recorded in (False, True) if test_grad else (False,):
            net = net_builder(prefix="net_")
            net.initialize()
            net(*data_l)  # after this all shapes are known
            for name, param in net.collect_params().items():
                param.set_data(params.setdefault(name, param.data()))
            if hybrid:
                net.hybridize()
            data = [each.copy() for each in data_l]
            for each in data:
                each.attach_grad()
            with autograd.record() if recorded else autograd.pause():
                output = net(*data)
            outputs.append(output.asnumpy())
            assert_almost_equal(outputs[-1], outputs[0], rtol=rtol, atol=atol)
            if recorded:
                output.backward(output)
                grads.append([each.grad.asnumpy() for each in data if each.grad is not None])
                compare_ndarray_tuple(tuple(grads[-1]), tuple(grads[0]), rtol, atol)
    if numpy_func is not None:
        assert_almost_equal(outputs[0], numpy_func(*(each.asnumpy() for each in data_l)), rtol=rtol, atol=atol)


# ---- optimizers and symbols


def compare_optimizer(
    opt1: Any, opt2: Any, shape: Any, dtype: Any, w_stype: str = "default", g_stype: str = "default", rtol: Tolerance = 1e-4,
    atol: Tolerance = 1e-5, compare_states: bool = True, ntensors: int = 1,
) -> None:  # fmt: skip
    """Compare one step of two optimizers from the same random weights and gradients: the weights after it, and the states.

    **Args** `shape`: of the weight; or a list of `ntensors` shapes, and then `opt1` updates one weight after the other and `opt2` all of
    them at once. **Raises** ArgumentError for a sparse storage type; AssertionError where results differ.
    **Source** MXNet `test_utils.compare_optimizer`.
    """
    if (w_stype, g_stype) != ("default", "default"):
        raise ArgumentError(
            f"compare_optimizer: w_stype={shown(w_stype)}, g_stype={shown(g_stype)}: arrays are dense here, use 'default'"
        )
    several = isinstance(shape, list)
    shapes = shape if several else [shape]
    if len(shapes) != ntensors:
        raise ArgumentError(f"compare_optimizer: ntensors={ntensors}, but shape has {len(shapes)}")
    weights, gradients = (
        tuple(nd.random.uniform(shape=each, ctx=current_context(), dtype=dtype) for each in shapes) for _ in range(2)
    )
    others = copy.deepcopy(weights)
    states = [opt2.create_state_multi_precision(0, each) for each in others]
    if several:
        opt2.update_multi_precision(list(range(ntensors)), others, copy.deepcopy(gradients), states)
    else:
        opt2.update_multi_precision(0, others[0], gradients[0].copy(), states[0])
    for number, (weight, gradient) in enumerate(zip(weights, gradients)):
        state = opt1.create_state_multi_precision(number, weight)
        opt1.update_multi_precision(number, weight, gradient, state)
        if compare_states:
            compare_ndarray_tuple(state, states[number], rtol, atol)
        assert_almost_equal(weight, others[number], rtol=rtol, atol=atol)


def same_symbol_structure(sym1: Symbol, sym2: Symbol) -> bool:
    """Whether two graphs have the same operators in the same order.

    >>> same_symbol_structure(mx.sym.Variable("a") + 1, mx.sym.Variable("b") + 2)
    True
    """
    first, second = ([node["op"] for node in json.loads(each.tojson())["nodes"]] for each in (sym1, sym2))
    return first == second
