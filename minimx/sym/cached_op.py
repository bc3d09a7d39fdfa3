"""CachedOp: a graph that is called like an operator. It is what a hybridized block becomes.

A call runs a program for the shapes, dtypes and device of its arrays and for autograd's mode of the calling thread (compiled.py). One
CachedOp serves them all. While a hook watches, the operators run one by one instead, so that there is something to see. Book: chapter 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .. import nd
from ..base import ArgumentError, ShapeError, shown
from ..device import Context, current_context
from ..fields import converted
from ..nd.ndarray import NDArray
from .compiled import CompiledGraph
from .conventions import input_label
from .graph import Node
from .symbol import Symbol

__all__ = ["CachedOp"]

#: What `hybridize` may ask for. None changes a value.
FLAGS = frozenset({
    "backward_bulk_size", "data_indices", "forward_bulk_size", "inline_limit", "is_dynamic", "param_indices", "static_alloc",
    "static_shape",
})  # fmt: skip

#: Called as hook(name of the value, name of the operator, value).
Hook = Callable[[str, str, NDArray], Any]


class CachedOp:
    """A graph as a function of arrays.

    **Args** `sym`: the graph. `flags`: pairs of names and values, as `HybridBlock.hybridize` takes them: static_alloc, static_shape,
    inline_limit, ... ; they never change a result. `name`: what its programs are called. **Source** MXNet `ndarray.CachedOp`.

    >>> from minimx import sym
    >>> x = sym.var("x")
    >>> square = mx.nd.CachedOp(x * x)
    >>> square(mx.nd.array([1, 2, 3])).asnumpy().tolist()
    [1.0, 4.0, 9.0]
    """

    def __init__(self, sym: Symbol, flags: Iterable[tuple[str, Any]] | Mapping[str, Any] = (), name: str | None = None) -> None:
        if not isinstance(sym, Symbol):
            raise ArgumentError(f"CachedOp: sym must be a Symbol, got {shown(sym)}")
        self.flags = dict(flags)
        unknown = self.flags.keys() - FLAGS
        if unknown:
            raise ArgumentError(f"CachedOp: unknown flag {', '.join(sorted(unknown))}; it takes {', '.join(sorted(FLAGS))}")
        self.symbol = sym
        self.graph = CompiledGraph(name or sym.name or "graph", sym.entries, static=bool(self.flags.get("static_alloc")))
        self.graph.inline_limit = converted("CachedOp", "inline_limit", "int", self.flags.get("inline_limit", 2))
        self.graph.bulk = converted("CachedOp", "backward_bulk_size", "int | None", self.flags.get("backward_bulk_size"))
        if (self.graph.bulk or 0) < 0:
            raise ArgumentError(f"CachedOp: backward_bulk_size is {self.graph.bulk}; a number of operators is wanted, 0 or more")
        self.variables = self.graph.variables
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
        outputs = self.run(list(args), context)
        if out is not None:
            targets = list(out) if isinstance(out, (list, tuple)) else [out]
            if len(targets) != len(outputs):
                raise ArgumentError(f"CachedOp: out has {len(targets)} arrays, the graph {len(outputs)} outputs")
            for node, target, output in zip([node for node, _ in self.graph.heads], targets, outputs):
                if not isinstance(target, NDArray):
                    raise ArgumentError(f"CachedOp: out must hold NDArrays, got {shown(target)}")
                if target.spec != output.spec:
                    raise ShapeError(
                        f"CachedOp: out is {target.spec}, the output of {node.name} is {output.spec}; they must be equal"
                    )
                target[:] = output
            outputs = targets
        return outputs[0] if len(outputs) == 1 else outputs

    def run(self, arrays: list[NDArray], context: Context) -> list[NDArray]:
        """The outputs for as many arrays as there are variables."""
        if self._hook is None:
            return self.graph(arrays, context)
        return self.graph.interpret(arrays, context, self._show_inputs if self._monitor_all else None, self._show_outputs)

    # ---- watching

    def _register_op_hook(self, callback: Hook | None, monitor_all: bool = False) -> None:
        """Have `callback(name, operator, value)` called for each output of each operator; with `monitor_all` for inputs, too."""
        self._hook, self._monitor_all = callback, monitor_all

    def _show_inputs(self, node: Node, operands: Sequence[NDArray | None]) -> None:
        assert node.op is not None
        self._show(node, [input_label(node.op, node.name, index) for index in range(len(operands))], operands)

    def _show_outputs(self, node: Node, outputs: Sequence[NDArray | None]) -> None:
        assert node.op is not None
        self._show(node, [node.output_name(index) for index in range(node.op.num_visible)], outputs)

    def _show(self, node: Node, names: Sequence[str], values: Sequence[NDArray | None]) -> None:
        assert self._hook is not None
        assert node.op is not None
        for name, value in zip(names, values):
            if value is not None:
                self._hook(name, node.op.name, value)


nd.CachedOp = CachedOp  # type: ignore[attr-defined]  # MXNet has it there; nd itself needs no graphs
