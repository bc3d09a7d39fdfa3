"""CachedOp: a graph that is called like an operator. It is what a hybridized block becomes.

The graph is put into a list of steps once: which operator, on which values, and which values nobody needs after it. A call then runs
the steps one after the other under autograd's mode of the calling thread, so that the tape, the training flag and random keys are
those of the caller. One CachedOp serves all shapes, dtypes and devices. Book: chapter 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .. import nd
from ..base import ArgumentError, DTypeError, ShapeError
from ..device import Context, current_context
from ..nd.ndarray import NDArray, invoke
from ..op import Op
from . import infer
from .conventions import in_node, input_label
from .graph import Entry, Node, topological_order
from .symbol import Symbol

__all__ = ["CachedOp"]

#: What `hybridize` may ask for. None changes a value.
FLAGS = frozenset({
    "backward_bulk_size", "data_indices", "forward_bulk_size", "inline_limit", "is_dynamic", "param_indices", "static_alloc",
    "static_shape",
})  # fmt: skip

#: Called as hook(name of the value, name of the operator, value).
Hook = Callable[[str, str, NDArray], Any]


class Step:
    """One operator of the list. Values are numbered: the variables first, and then the outputs of all steps in order."""

    __slots__ = ("node", "op", "inputs", "count", "dropped")

    def __init__(self, node: Node, op: Op, inputs: list[int | None]) -> None:
        self.node = node
        self.op = op
        self.inputs = inputs
        self.count = op.num_visible  # outputs that others may read; in training there may be more, for the gradient
        self.dropped: list[int] = []  # values that no later step reads


class CachedOp:
    """A graph as a function of arrays.

    **Args** `sym`: the graph. `flags`: pairs of names and values, as `HybridBlock.hybridize` takes them: static_alloc, static_shape,
    inline_limit, ... ; they never change a result. **Source** MXNet `ndarray.CachedOp`.

    >>> from minimx import sym
    >>> x = sym.var("x")
    >>> square = mx.nd.CachedOp(x * x)
    >>> square(mx.nd.array([1, 2, 3])).asnumpy().tolist()
    [1.0, 4.0, 9.0]
    """

    def __init__(self, sym: Symbol, flags: Iterable[tuple[str, Any]] | Mapping[str, Any] = ()) -> None:
        self.flags = dict(flags)
        unknown = self.flags.keys() - FLAGS
        if unknown:
            raise ArgumentError(f"CachedOp: unknown flag {', '.join(sorted(unknown))}; it takes {', '.join(sorted(FLAGS))}")
        self.symbol = sym
        self.order = topological_order(sym.entries)
        self.variables = [node for node in self.order if node.op is None]
        self._steps, self._outputs = steps_of(self.order, sym.entries)
        self._has_open_shapes = any(is_open(step.op) for step in self._steps)
        self._hook: Hook | None = None
        self._monitor_all = False

    def __call__(self, *args: NDArray, out: Any = None, default_ctx: Context | None = None) -> Any:
        """The outputs for arrays in the order of `Symbol.list_inputs()`: one array, or a list if there are several.

        **Args** `out`: arrays that receive the outputs. `default_ctx`: where to compute; by default on the device of the first array.
        **Raises** MXNetError for a wrong number of arrays, and what the operators raise, with the node's name.
        """
        if len(args) != len(self.variables):
            names = ", ".join(node.name for node in self.variables)
            raise ArgumentError(f"CachedOp: {len(args)} arrays are given, the graph has {len(self.variables)} inputs: {names}")
        for node, array in zip(self.variables, args):
            if not isinstance(array, NDArray):
                raise ArgumentError(f"CachedOp: input {node.name} must be an NDArray, got {type(array).__name__}")
        context = default_ctx or (args[0].context if args else current_context())
        outputs = self._run(list(args), context)
        if out is not None:
            targets = list(out) if isinstance(out, (list, tuple)) else [out]
            if len(targets) != len(outputs):
                raise ArgumentError(f"CachedOp: out has {len(targets)} arrays, the graph {len(outputs)} outputs")
            for target, output in zip(targets, outputs):
                target[:] = output
            outputs = targets
        return outputs[0] if len(outputs) == 1 else outputs

    def _run(self, arrays: list[NDArray], context: Context) -> list[NDArray]:
        """Apply the operators to the arrays of the variables, one after the other."""
        values: list[Any] = [*arrays]
        settled = self._settled(arrays)
        for step in self._steps:
            operands = [None if number is None else values[number] for number in step.inputs]
            if self._hook is not None and self._monitor_all:
                self._show(step, [input_label(step.op, step.node.name, i) for i in range(len(operands))], operands)
            try:
                outputs = invoke(settled.get(step, step.op), operands, None, context)[: step.count]
            except (ShapeError, DTypeError, ArgumentError) as error:
                raise in_node(step.node.name, error) from None
            if self._hook is not None:
                self._show(step, [step.node.output_name(i) for i in range(step.count)], outputs)
            values += outputs
            for number in step.dropped:
                values[number] = None
        return [values[number] for number in self._outputs]

    def _settled(self, arrays: Sequence[NDArray]) -> dict[Step, Op]:
        """Operators that make arrays of a shape that is open in the graph, zeros((0, 8)), with the lengths that these inputs ask for."""
        if not self._has_open_shapes:
            return {}
        known = {(node, 0): array.shape for node, array in zip(self.variables, arrays)}
        dtypes = {(node, 0): array.spec.dtype for node, array in zip(self.variables, arrays)}
        shapes = infer.spread_shapes(self.order, known, dtypes)
        return {step: infer.settled(step.node, shapes) for step in self._steps if is_open(step.op)}

    # ---- watching

    def _register_op_hook(self, callback: Hook | None, monitor_all: bool = False) -> None:
        """Have `callback(name, operator, value)` called for each output of each operator; with `monitor_all` for inputs, too."""
        self._hook, self._monitor_all = callback, monitor_all

    def _show(self, step: Step, names: Sequence[str], values: Sequence[NDArray | None]) -> None:
        assert self._hook is not None
        for name, value in zip(names, values):
            if value is not None:
                self._hook(name, step.op.name, value)


def steps_of(order: Sequence[Node], heads: Sequence[Entry]) -> tuple[list[Step], list[int]]:
    """The operators of a graph as a list of steps, and the numbers of its outputs."""
    numbers: dict[Entry, int] = {}
    for node in order:
        if node.op is None:
            numbers[node, 0] = len(numbers)
    steps = []
    last: dict[int, Step] = {}
    for node in order:
        if node.op is not None:
            inputs = [None if entry is None else numbers[entry] for entry in node.inputs]
            step = Step(node, node.op, inputs)
            steps.append(step)
            for index in range(step.count):
                numbers[node, index] = len(numbers)
            last.update((number, step) for number in inputs if number is not None)
    outputs = [numbers[entry] for entry in heads]
    for number, step in last.items():
        if number not in outputs:
            step.dropped.append(number)
    return steps, outputs


def is_open(op: Op) -> bool:
    """Whether an operator without inputs makes an array of a shape that is not known completely."""
    shape = getattr(op, "shape", None)
    return not op.inputs and isinstance(shape, tuple) and 0 in shape


nd.CachedOp = CachedOp  # type: ignore[attr-defined]  # MXNet has it there; nd itself needs no graphs
