"""Binding: an Executor for a graph, on the caller's arrays (`bind`) or on arrays that are made for it (`simple_bind`).

Both work out the specs of all entries first: whatever does not fit is an error here, with the node's name. Book: chapter 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..autograd import GRAD_REQS
from ..base import ArgumentError, MXNetError, ShapeError, as_dtype
from ..device import Context, current_context
from ..nd.ndarray import NDArray
from ..op import Spec
from . import infer
from .executor import Executor, placements, resized, zeros_of
from .graph import Node, inputs_of, topological_order

if TYPE_CHECKING:
    from .symbol import Symbol


def bind(
    symbol: Symbol,
    ctx: Context,
    args: Any,
    args_grad: Any,
    grad_req: Any,
    aux_states: Any,
    group2ctx: Mapping[str, Context] | None,
) -> Executor:
    """See `Symbol.bind`."""
    require_context(ctx)
    arguments, states = inputs_of(symbol.entries)
    arrays = _arrays("args", args, arguments, complete=True)
    aux = _arrays("aux_states", [] if aux_states is None else aux_states, states, complete=True)
    grads = _arrays("args_grad", {} if args_grad is None else args_grad, arguments, complete=False)
    for node, array, grad in zip(arguments, arrays, grads):
        if grad is not None and grad.shape != array.shape:
            raise ShapeError(
                f"bind: {node.name} has shape {array.shape}, its array in args_grad {grad.shape}; they must be equal"
            )
    reqs = [req if grad is not None else "null" for req, grad in zip(_requests(grad_req, arguments), grads)]
    order = topological_order(symbol.entries)
    specs = {node: array.spec for node, array in zip([*arguments, *states], [*arrays, *aux])}
    known = {(node, 0): spec.shape for node, spec in specs.items()}
    facts = infer.spread_shapes(order, known, {}) if any(not node.inputs and node.op is not None for node in order) else None
    return Executor(symbol, ctx, infer.forward_specs(order, specs, facts), arrays, grads, reqs, aux, group2ctx)


def require_context(ctx: Any) -> None:
    if not isinstance(ctx, Context):
        raise ArgumentError(f"bind: ctx must be a Context such as mx.cpu(), got {type(ctx).__name__}")


def _arrays(what: str, values: Any, nodes: Sequence[Node], complete: bool) -> list[Any]:
    """The array of each variable, from a list or a dict; None for a missing one, unless all are wanted."""
    if isinstance(values, dict):
        missing = [node.name for node in nodes if node.name not in values]
        if missing and complete:
            raise ArgumentError(f"bind: {what} lacks {', '.join(missing)}")
        listed = [values.get(node.name) for node in nodes]
    elif isinstance(values, list):
        if len(values) != len(nodes):
            raise ArgumentError(
                f"bind: {what} has {len(values)} arrays, the symbol needs {len(nodes)}: {', '.join(node.name for node in nodes)}"
            )
        listed = values
    else:
        raise ArgumentError(f"bind: {what} must be a list or a dict of NDArrays, got {type(values).__name__}")
    for node, value in zip(nodes, listed):
        if not isinstance(value, NDArray) and not (value is None and not complete):
            raise ArgumentError(f"bind: {what} must hold NDArrays, got {type(value).__name__} for {node.name}")
    return listed


def _requests(grad_req: Any, nodes: Sequence[Node]) -> list[str]:
    """What is to be done with each argument's gradient: "write", "add" or "null"."""
    if isinstance(grad_req, str):
        listed = [grad_req] * len(nodes)
    elif isinstance(grad_req, dict):
        listed = [grad_req.get(node.name, "null") for node in nodes]
    elif isinstance(grad_req, (list, tuple)):
        listed = list(grad_req)
    else:
        raise ArgumentError(f"grad_req must be a string, a list or a dict, got {type(grad_req).__name__}")
    if len(listed) != len(nodes):
        raise ArgumentError(
            f"grad_req has {len(listed)} entries, the symbol {len(nodes)} arguments: {', '.join(node.name for node in nodes)}"
        )
    for each in listed:
        if not isinstance(each, str) or each not in GRAD_REQS:
            raise ArgumentError(f"grad_req is {each!r}, must be one of {', '.join(GRAD_REQS)}")
    return listed


def simple_bind(
    symbol: Symbol, ctx: Context, grad_req: Any, type_dict: Mapping[str, Any] | None, stype_dict: Mapping[str, str] | None,
    group2ctx: Mapping[str, Context] | None, shared_arg_names: list[str] | None, shared_exec: Executor | None,
    shared_buffer: dict[str, NDArray] | None, shapes: Mapping[str, Any],
) -> Executor:  # fmt: skip
    """See `Symbol.simple_bind`."""
    try:
        require_context(ctx)
        if any(stype != "default" for stype in (stype_dict or {}).values()):
            raise ArgumentError("storage types other than 'default' (dense) do not exist here")
        arguments, states = inputs_of(symbol.entries)
        if isinstance(grad_req, (list, dict)) and not grad_req:
            raise ArgumentError("grad_req is empty")
        reqs = _requests(grad_req, arguments)
        nodes = [*arguments, *states]
        known = {node: infer.known_shape(node.name, shapes[node.name]) for node in nodes if shapes.get(node.name) is not None}
        dtypes = {node: as_dtype(type_dict[node.name]) for node in nodes if type_dict is not None and node.name in type_dict}
        specs = infer.complete(symbol.entries, {node: shape for node, shape in known.items() if shape}, dtypes)
        sources = _Sources(shared_arg_names, shared_exec, shared_buffer)
        contexts = placements(topological_order(symbol.entries), ctx, group2ctx or {})
        args = [sources.argument(node, specs[node, 0], contexts[node]) for node in arguments]
        grads = [
            None if req == "null" else sources.gradient(node, specs[node, 0], contexts[node])
            for node, req in zip(arguments, reqs)
        ]
        aux = [sources.state(node, specs[node, 0], contexts[node]) for node in states]
        return Executor(symbol, ctx, specs, args, grads, reqs, aux, group2ctx)
    except MXNetError as error:
        listed = "".join(f"{name}: {shape}\n" for name, shape in shapes.items())
        raise MXNetError(f"simple_bind error. Arguments:\n{listed}{error}") from error


class _Sources:
    """Where simple_bind takes arrays from: another executor, a buffer by name, or fresh zeros."""

    def __init__(self, names: list[str] | None, executor: Executor | None, buffer: dict[str, NDArray] | None) -> None:
        if names is not None and not isinstance(names, list):
            raise ArgumentError(f"shared_arg_names must be a list, got {type(names).__name__}")
        if buffer is not None and not isinstance(buffer, dict):
            raise ArgumentError(f"shared_buffer must be a dict, got {type(buffer).__name__}")
        self.names = set(names or ())
        self.buffer = buffer
        self.args: Mapping[str, Any] = executor.arg_dict if executor is not None else {}
        self.grads: Mapping[str, Any] = executor.grad_dict if executor is not None else {}
        self.states: Mapping[str, Any] = executor.aux_dict if executor is not None else {}

    def argument(self, node: Node, spec: Spec, context: Context) -> NDArray:
        return self._fitting(node.name, spec, context, node.name in self.names, self.args.get(node.name))

    def gradient(self, node: Node, spec: Spec, context: Context) -> NDArray:
        return self._fitting(f"grad of {node.name}", spec, context, node.name in self.names, self.grads.get(node.name))

    def state(self, node: Node, spec: Spec, context: Context) -> NDArray:
        shared = self.states.get(node.name)
        return shared if shared is not None and shared.spec == spec else zeros_of(spec, context)

    def _fitting(self, name: str, spec: Spec, context: Context, is_shared: bool, other: NDArray | None) -> NDArray:
        """An array for `name`: if it `is_shared` the `other` executor's, if there is one, and else one of the buffer."""
        if is_shared and other is not None:
            if other.spec != spec:
                raise ShapeError(f"{name} is shared with another executor, where it is {other.spec}; here it is {spec}")
            return other
        if self.buffer is None or is_shared:
            return zeros_of(spec, context)
        kept = self.buffer.get(name)
        if kept is None or kept.spec.dtype != spec.dtype or kept.size < spec.size:
            kept = self.buffer[name] = zeros_of(spec, context)
        return resized(name, kept, spec.shape, False)


def evaluate(symbol: Symbol, ctx: Context | None, values: Mapping[str, NDArray]) -> list[NDArray]:
    """See `Symbol.eval`."""
    states = inputs_of(symbol.entries)[1]
    return bind(
        symbol, ctx or current_context(), dict(values), None, "null", {node.name: values.get(node.name) for node in states}, None
    ).forward()
