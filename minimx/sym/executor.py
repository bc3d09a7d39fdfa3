"""Executing a graph: an Executor holds a graph's arrays and runs it forward and backward.

It is made by `bind` (bind.py), which has worked out the specs of all entries, so that nothing can fail to fit in the middle of a run.
`forward` runs the graph's program (compiled.py), on the tape of autograd if gradients are wanted; `backward` reads that tape. Outputs
are always written into the same arrays. Book: chapter 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import autograd
from ..autograd import Leaf, Node as TapeNode, OpNode
from ..base import ArgumentError, MXNetError, ShapeError, shown
from ..device import Context
from ..nd.creation import zeros
from ..nd.ndarray import NDArray
from ..op import Op, Shape, Spec
from . import infer, serialize, trial
from .compiled import CompiledGraph, ProgramNode
from .conventions import NO_GRADIENT, input_label, stored_outputs
from .graph import Entry, Node, inputs_of, topological_order
from .program import Program

if TYPE_CHECKING:
    from .symbol import Symbol

__all__ = ["Executor"]

Monitor = Callable[[str, NDArray], Any]


# ---- running


def placements(order: Sequence[Node], context: Context, groups: Mapping[str, Context]) -> dict[Node, Context]:
    """The device of each node: that of its `ctx_group`; a variable without one is where it is used first; all others on `context`."""
    found: dict[Node, Context] = {}
    for node in order:
        group = groups.get(node.attrs.get("__ctx_group__", ""))
        if group is not None:
            found[node] = group
        elif node.op is not None:
            found[node] = context
    for node in order:
        for entry in node.inputs:
            if entry is not None:
                found.setdefault(entry[0], found[node])
    for node in order:
        found.setdefault(node, context)
    return found


def require_differentiable(order: Sequence[Node], heads: Sequence[Entry], wanted: set[Node]) -> None:
    """Raise MXNetError if a gradient of `heads` for variables `wanted` would have to pass an operator that has none."""
    depends = set(wanted)
    for node in order:
        if any(entry is not None and entry[0] in depends for entry in node.inputs):
            depends.add(node)
    reached = {node for node, _ in heads}
    for node in reversed(order):
        if node.op is None or node not in reached or node not in depends or node.op.name == "BlockGrad":
            continue
        if type(node.op).vjp is Op.vjp or node.op.name in NO_GRADIENT:
            raise MXNetError(
                f"operator {node.op.name} (node {node.name}) is not differentiable; bind with grad_req='null', or put BlockGrad behind it"
            )
        reached.update(entry[0] for entry in node.inputs if entry is not None)


class Told(TapeNode):
    """A node of the tape that tells a monitor its gradients, as `<name>_backward_output`; those that nobody wants count as zero."""

    __slots__ = ("monitor", "name", "node")

    def __init__(self, node: OpNode, name: str, monitor: Monitor) -> None:
        super().__init__(node.parents, node.num_outputs)
        self.node = node
        self.name = name
        self.monitor = monitor

    def vjp(self, grads: list[Any]) -> Sequence[Any]:
        found = self.node.vjp(grads)
        inputs = [(index, array) for index, array in enumerate(self.node.inputs) if array is not None]
        for index, array in inputs:
            gradient: Any = found[index] if index < len(found) else None
            if gradient is None or self.parents[index] is None:
                gradient = zeros_of(array.spec, array.context)
            self.monitor(f"{self.name}_backward_output{index if len(inputs) > 1 else ''}", gradient)
        return found

    def free(self) -> None:
        super().free()
        self.node.free()


# ---- the executor


class Executor:
    """A graph bound to arrays.

    `arg_arrays`, `grad_arrays` (None where no gradient is wanted) and `aux_arrays` stand in the order of the symbol's lists; `arg_dict`
    and so on have them by name. `outputs` are overwritten by each `forward`. **Source** MXNet `executor.Executor`.
    """

    def __init__(
        self, symbol: Symbol, ctx: Context, specs: Mapping[Entry, Spec], args: list[NDArray], grads: list[NDArray | None], reqs: list[str],
        aux: list[NDArray], group2ctx: Mapping[str, Context] | None = None, outputs: list[NDArray] | None = None,
    ) -> None:  # fmt: skip
        self._symbol = symbol
        self._ctx = ctx
        self._specs = specs
        self._grad_req = reqs
        self._group2ctx = group2ctx
        self._arguments, self._states = inputs_of(symbol.entries)
        self._order = topological_order(symbol.entries)
        self._graph = CompiledGraph(symbol.name or "graph", symbol.entries, [*self._arguments, *self._states], static=True)
        self._graph.keep_states()
        self._contexts = placements(self._order, ctx, group2ctx or {})
        self._monitor: Monitor | None = None
        self._monitor_all = False
        self._heads: list[NDArray] = []  # the outputs of the last forward, on the tape
        self._leaves: list[Leaf] = []
        self.arg_arrays = args
        self.grad_arrays = grads
        self.aux_arrays = aux
        wanted = {node for node, grad, req in zip(self._arguments, grads, reqs) if grad is not None and req != "null"}
        require_differentiable(self._order, symbol.entries, wanted)
        if outputs is None:
            outputs = [zeros_of(specs[entry], self._contexts[entry[0]]) for entry in symbol.entries]
        self.outputs = outputs

    # ---- by name

    @property
    def arg_dict(self) -> dict[str, NDArray]:
        """Arguments by name. **Raises** ValueError if two have one name."""
        return by_name([node.name for node in self._arguments], self.arg_arrays)

    @property
    def grad_dict(self) -> dict[str, NDArray | None]:
        """Gradients by the name of their argument; None where none is wanted."""
        return by_name([node.name for node in self._arguments], self.grad_arrays)

    @property
    def aux_dict(self) -> dict[str, NDArray]:
        """Auxiliary states by name."""
        return by_name([node.name for node in self._states], self.aux_arrays)

    @property
    def output_dict(self) -> dict[str, NDArray]:
        """Outputs by name."""
        return by_name(self._symbol.list_outputs(), self.outputs)

    # ---- forward and backward

    def forward(self, is_train: bool = False, **kwargs: Any) -> list[NDArray]:
        """Compute the outputs; they are returned at once, and hold their values when those are read.

        **Args** `is_train`: whether layers such as Dropout behave as in training. `kwargs`: arrays or NumPy arrays by the argument's name,
        whose values are copied into the arguments first. **Raises** TypeError for an unknown name, ValueError for another shape.
        """
        self._feed(kwargs)
        arguments: list[NDArray] = []
        self._leaves = []
        for array, grad, req in zip(self.arg_arrays, self.grad_arrays, self._grad_req):
            argument = array.detach()  # a view of the same memory with a place on the tape of its own
            arguments.append(argument)
            if grad is not None and req != "null":
                leaf = Leaf(grad, req)
                argument.node = leaf
                self._leaves.append(leaf)
        with (autograd.record if self._leaves else autograd.pause)(train_mode=is_train):
            self._heads = self._run([*arguments, *self.aux_arrays])
        with autograd.pause(train_mode=is_train):
            for output, head in zip(self.outputs, self._heads):
                output[:] = head
        return self.outputs

    def _run(self, arrays: list[NDArray]) -> list[NDArray]:
        """The heads' values: by a program, or operator by operator if somebody watches, or if they are on several devices."""
        if self._monitor is None and not self._group2ctx:
            return self._graph(arrays, self._ctx)
        before = self._show_inputs if self._monitor is not None and self._monitor_all else None
        after = None if self._monitor is None else self._show_outputs
        return self._graph.interpret(arrays, self._ctx, before, after, self._contexts if self._group2ctx else None)

    def _show_inputs(self, node: Node, operands: Sequence[NDArray | None]) -> None:
        """Tell the monitor the inputs of a node: a variable by its own name first, and then each by the node's."""
        assert node.op is not None
        assert self._monitor is not None
        for index, (entry, operand) in enumerate(zip(node.inputs, operands)):
            if entry is not None and operand is not None:
                if entry[0].op is None:
                    self._monitor(entry[0].name, operand)
                self._monitor(input_label(node.op, node.name, index), operand)

    def _show_outputs(self, node: Node, outputs: Sequence[NDArray | None]) -> None:
        """Tell the monitor the outputs of a node, and let the tape tell it gradients."""
        assert self._monitor is not None
        told: dict[Any, Told] = {}
        for index, output in enumerate(outputs):
            if output is None:
                continue
            self._monitor(node.output_name(index), output)
            source = output.node
            if isinstance(source, OpNode) and source.op.name == getattr(node.op, "name", None):
                output.node = told.setdefault(source, Told(source, node.name, self._monitor))

    @property
    def program(self) -> Program:
        """The program of the last `forward` (before one: of inference), with its gradients if there are any: `source`, `report()`.

        **Raises** MXNetError for a graph that has none, since an operator depends on values.
        """
        found = self._program()
        return self._graph.program_of([*self.arg_arrays, *self.aux_arrays], self._ctx) if found is None else found

    def _program(self) -> Program | None:
        """The program that the last forward ran."""
        node = next((head.node for head in self._heads if isinstance(head.node, ProgramNode)), None)
        return None if node is None else node.program

    def _feed(self, values: Mapping[str, Any]) -> None:
        """Copy values into arguments."""
        if not values:
            return
        targets = self.arg_dict
        for name, value in values.items():
            if not isinstance(value, (NDArray, np.ndarray)):
                raise ArgumentError(f"forward: {name} must be an NDArray or a NumPy array, got {type(value).__name__}")
            if name not in targets:
                raise ArgumentError(f"forward: no argument is called {name!r}; the symbol has {', '.join(targets)}")
            if targets[name].shape != value.shape:
                raise ShapeError(
                    f"forward: argument {name} has shape {targets[name].shape}, got {value.shape}; reshape() makes another executor"
                )
            with autograd.pause():
                targets[name][:] = value

    def backward(self, out_grads: Any = None, is_train: bool = True) -> None:
        """Compute the gradients of the arguments from those of the outputs, `out_grads`: an array, a list, or a dict by output's name.

        Outputs of loss operators (SoftmaxOutput, make_loss, ...) need none; gradients beyond the outputs are not looked at. Several calls
        may follow one `forward`; without one, a forward pass of training comes first.
        **Raises** MXNetError if a gradient of an output is missing.
        """
        if not self._heads:
            self.forward(is_train=True)
        heads: list[NDArray] = []
        starts: list[NDArray | None] = []
        for (node, _), head, start in zip(self._symbol.entries, self._heads, self._head_gradients(out_grads)):
            is_odd = start is None or start.shape != head.shape  # which nobody minds where nothing flows back
            if head.node is None or (is_odd and _ignores_head_gradient(node, head)):
                continue
            if start is None and not (node.op is not None and node.op.is_loss):
                raise MXNetError(
                    f"backward: output {node.name} is no loss, so its gradient is needed: backward(out_grads). To minimize its "
                    "values, make it one with make_loss"
                )
            if start is not None and start.shape != head.shape:
                raise ShapeError(
                    f"backward: output {node.name} has shape {head.shape}, its gradient {start.shape}; they must be equal"
                )
            heads.append(head)
            starts.append(start)
        for leaf in self._leaves:
            leaf.fresh = False
        if heads:
            autograd.backward(heads, starts, retain_graph=True, train_mode=is_train)
        with autograd.pause():
            for leaf in self._leaves:
                if leaf.req == "write" and not leaf.fresh:  # no output depends on it
                    leaf.grad[:] = 0

    def _head_gradients(self, out_grads: Any) -> list[NDArray | None]:
        """One gradient for each output, None where it is missing."""
        names = self._symbol.list_outputs()
        if out_grads is None:
            listed = []
        elif isinstance(out_grads, dict):
            unknown = [name for name in out_grads if name not in names]
            if unknown:
                raise ArgumentError(f"backward: no output is called {', '.join(map(str, unknown))}; there are {', '.join(names)}")
            listed = [out_grads.get(name) for name in names]
        else:
            listed = list(out_grads) if isinstance(out_grads, (list, tuple)) else [out_grads]
        for gradient in listed:
            if gradient is not None and not isinstance(gradient, NDArray):
                raise ArgumentError(f"backward: gradients of outputs must be NDArrays, got {type(gradient).__name__}")
        return listed + [None] * (len(names) - len(listed))

    # ---- changes

    def copy_params_from(
        self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray] | None = None, allow_extra_params: bool = False
    ) -> None:
        """Copy values by name into arguments and auxiliary states. **Raises** ValueError for unknown names unless they are allowed."""
        for given, targets, what in (
            (arg_params, self.arg_dict, "argument"),
            (aux_params or {}, self.aux_dict, "auxiliary state"),
        ):
            for name, array in given.items():
                if name in targets:
                    array.astype(targets[name].dtype).copyto(targets[name])
                elif not allow_extra_params:
                    raise ArgumentError(
                        f"copy_params_from: no {what} is called {name!r}; the symbol has {', '.join(targets) or 'none'}"
                    )

    def set_monitor_callback(self, callback: Monitor | None, monitor_all: bool = False) -> None:
        """Have `callback(name, array)` called for each output of each node during `forward`; with `monitor_all` for inputs, too.

        None ends that.
        """
        if callback is not None and not callable(callback):
            raise ArgumentError(f"set_monitor_callback: a function is wanted, got {shown(callback)}")
        self._monitor, self._monitor_all = callback, monitor_all

    def reshape(self, partial_shaping: bool = False, allow_up_sizing: bool = False, **kwargs: Shape) -> Executor:
        """An executor of the same graph for other shapes of arguments. It shares the memory of what did not grow.

        **Args** `partial_shaping`: let arguments that are not given change their shapes, too. `allow_up_sizing`: let arrays grow, which
        gives them new memory. **Raises** MXNetError for either where it is not allowed.
        """
        specs = self._reshaped_specs(kwargs)
        args: list[NDArray] = []
        grads: list[NDArray | None] = []
        for node, array, grad in zip(self._arguments, self.arg_arrays, self.grad_arrays):
            shape = specs[node, 0].shape
            if shape != array.shape and node.name not in kwargs and not partial_shaping:
                raise ShapeError(
                    f"reshape: argument {node.name}, which is not given, would change from {array.shape} to {shape}; "
                    "partial_shaping=True allows that"
                )
            args.append(resized(node.name, array, shape, allow_up_sizing))
            grads.append(None if grad is None else resized(node.name, grad, shape, allow_up_sizing))
        aux = [
            resized(node.name, array, specs[node, 0].shape, allow_up_sizing) for node, array in zip(self._states, self.aux_arrays)
        ]
        outputs = [
            resized(node.name, array, specs[node, index].shape, True)
            for (node, index), array in zip(self._symbol.entries, self.outputs)
        ]
        other = Executor(self._symbol, self._ctx, specs, args, grads, self._grad_req, aux, self._group2ctx, outputs)
        other._monitor, other._monitor_all = self._monitor, self._monitor_all
        return other

    def _reshaped_specs(self, shapes: Mapping[str, Shape]) -> dict[Entry, Spec]:
        """Specs of all entries for new shapes of some arguments; those of which nothing follows keep theirs."""
        nodes = [*self._arguments, *self._states]
        given = infer.assigned(nodes, (), shapes, "reshape", self._arguments)
        known: infer.Facts = {(node, 0): infer.declared_shape(node) for node in nodes}
        known.update(((node, 0), infer.known_shape(node.name, shape)) for node, shape in given.items())
        order = self._order
        facts = infer.spread_shapes(order, known, {})
        for node in nodes:
            if not trial.is_whole(facts.get((node, 0))):
                known[node, 0] = self._specs[node, 0].shape
                facts = infer.spread_shapes(order, known, {})
        return infer.forward_specs(order, {node: self._specs[node, 0].with_shape(facts[node, 0]) for node in nodes}, facts)

    def debug_str(self) -> str:
        """The graph in words, and how much memory the outputs of its nodes take."""
        computed = sum(spec.nbytes for (node, _), spec in self._specs.items() if node.op is not None)
        return f"{serialize.describe(self._symbol.entries)}Total {computed >> 20} MB allocated\n"


def by_name(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    if len(set(names)) != len(names):
        raise ArgumentError(f"several have one name, so they cannot be listed by name: {', '.join(names)}")
    return dict(zip(names, values))


def zeros_of(spec: Spec, context: Context) -> NDArray:
    return zeros(spec.shape, context, spec.dtype)


def resized(name: str, array: NDArray, shape: Shape, may_grow: bool) -> NDArray:
    """An array of `shape` in the memory of `array` if that is large enough, else in new memory."""
    if shape == array.shape:
        return array
    wanted = Spec.of(shape, array.dtype)
    if wanted.size <= array.size:
        return array.reshape(-1)[: wanted.size].reshape(shape)
    if not may_grow:
        raise ShapeError(
            f"reshape: {name} would grow from {array.shape} to {shape}; allow_up_sizing=True allows that, with new memory"
        )
    return zeros_of(wanted, array.context)


def _ignores_head_gradient(node: Node, head: NDArray) -> bool:
    """Whether nothing flows back from an output, whatever its gradient."""
    if node.op is None or node.op.is_loss:
        return False
    if node.op.name == "BlockGrad":
        return True
    source = head.node.node if isinstance(head.node, Told) else head.node
    if isinstance(source, ProgramNode):
        gradients = source.program.gradients
        return gradients is not None and not gradients.flows[head.index]
    if source is None or stored_outputs(node.op) > 1 or source.num_outputs > 1:
        return False
    with autograd.pause():
        return all(gradient is None for gradient in source.vjp([head.ones_like()]))
