"""HybridBlock: a block whose computation can also become a graph.

Its `hybrid_forward(F, x, ...)` is written once for arrays, where F is `mx.nd`, and for Symbols, where F is `mx.sym`. As long as it is not
hybridized it runs like any Python code. After `hybridize()` the first call *traces* it: it is run once with variables in the places of
the inputs, which gives a graph of the whole network below. Later calls run that graph, whatever their shapes, and the Python code is not
entered again. The graph is dropped when something below changes: children, dtypes, or `hybridize()` is called again. Which graphs
there are is in traced_block.py. `export()` writes one to files, which a SymbolBlock reads. Book: chapter 4.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import autograd, nd, sym
from ..base import ArgumentError, MXNetError, ShapeError, shown
from ..device import Context, current_context
from ..fields import converted
from ..files import PathLike, as_path
from ..nd import NDArray
from ..sym import backends
from ..sym.backends import Options
from ..sym.cached_op import CachedOp
from ..sym.direct import DirectCall
from ..sym.program import Program
from .editions import editions
from .parameter import Parameter, ParameterDict
from .plain_block import Block
from .structure import flatten, survey
from .traced_block import TracedBlock
from .tracing import Trace
from .utils import HookHandle
from .weight import is_known

__all__ = ["HybridBlock"]

MOST_DIRECT = 64  # shapes of arguments for which a block remembers a small program


def _chosen(name: str, given: Mapping[str, Any]) -> tuple[str, Options]:
    """The backend `name`, which must be there and installed, and its options."""
    backend = backends.find(name)
    options = backend.chosen(given)
    backend.require()
    return backend.name, options


def fits(signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a function with this signature can be called with these arguments."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


class HybridBlock(TracedBlock):
    """The base of all layers and networks that can be hybridized. A subclass overrides `hybrid_forward`.

    It may override `forward(self, x, ...)` instead, with functions and methods that arrays and Symbols have, and without parameters of its
    own: that becomes a graph, too. If it needs a value or a shape, a warning says so, and it stays Python code.

    **Args** as Block. **Source** MXNet `gluon.HybridBlock`.

    >>> from minimx import gluon
    >>> class Twice(gluon.HybridBlock):
    ...     def hybrid_forward(self, F, x):
    ...         print("in Python, with", F.__name__)
    ...         return F.relu(x) * 2
    >>> net = Twice()
    >>> net.hybridize()
    >>> first, second = net(mx.nd.ones((2,))), net(mx.nd.ones((3,)))
    in Python, with minimx.sym
    >>> second.asnumpy().tolist()
    [2.0, 2.0, 2.0]
    """

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix, params)
        self._callback: Callable[[str, str, Any], Any] | None = None
        self._monitor_all = False
        self._direct: dict[int, DirectCall] = {}  # by the identity of the argument's spec

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_direct": {}}

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make `block` a child. **Raises** ValueError if it is no HybridBlock."""
        if isinstance(block, Block) and not isinstance(block, HybridBlock):
            raise ArgumentError(
                f"Children of HybridBlock must also be HybridBlock, but {block!r} has type {type(block)}. If you are using Sequential, "
                "please try HybridSequential instead."
            )
        super().register_child(block, name)
        self._clear_cached_op()

    def hybridize(
        self, active: bool = True, backend: str | None = None, clear: bool = True, static_alloc: bool = False,
        static_shape: bool = False, inline_limit: int = 2, forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None, backend_opts: Mapping[str, Any] | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        """Run this block and all below it as graphs (`active=True`), or as Python code again.

        **Args** `backend`: what computes parts of the graph in inference, one of `sym.backends.names()`, for this block alone; None: this
        package. `kwargs`, or `backend_opts`: its options. `clear`: forget graphs that were traced before, and backends. `static_alloc`:
        keep the memory of values within the graph from call to call, however much it is; outputs, values for the gradients, and what
        kernels need on the way come from the device's pool, so that calls after the first few take no memory from the system but for
        outputs that somebody still holds, and small arrays (kernels of NumPy alone may take some for each call). `inline_limit`:
        `autograd.get_symbol` shows a graph of at most so many operators in full, a larger one as a single node. `backward_bulk_size`:
        gradients are computed in tasks of at most so many operators, so that those of the last layers can be sent while others are
        computed; by default in one task, or in four if the parameters are on several devices. `static_shape`, `forward_bulk_size`:
        accepted, and without effect, as a graph is one task for known shapes. None of them changes a result.
        **Raises** ValueError for an unknown backend. **Source** MXNet `HybridBlock.hybridize`.
        """
        given = {**(backend_opts or {}), **kwargs}
        if given and backend is None:
            raise ArgumentError(
                f"{self.name}: options {', '.join(sorted(given))} are given without a backend; hybridize takes active, backend, "
                "clear, static_alloc, static_shape, inline_limit, forward_bulk_size and backward_bulk_size"
            )
        chosen = () if backend is None else (_chosen(backend, given),)
        active, clear, static_alloc, static_shape = (
            converted(f"{self.name}.hybridize", name, "bool", value)
            for name, value in (
                ("active", active), ("clear", clear), ("static_alloc", static_alloc), ("static_shape", static_shape)
            )
        )  # fmt: skip
        inline_limit = converted(f"{self.name}.hybridize", "inline_limit", "int", inline_limit)
        self._set_active(active)
        options = {
            "static_alloc": static_alloc, "static_shape": static_shape, "inline_limit": inline_limit,
            "forward_bulk_size": forward_bulk_size, "backward_bulk_size": backward_bulk_size,
        }  # fmt: skip
        self._flags = [(name, value) for name, value in options.items() if value is not None]
        if clear or chosen:
            self._clear_cached_op()
        self._backends = chosen if clear else (*self._backends, *chosen)
        if active and (self._forward_hooks or self._forward_pre_hooks):
            warnings.warn(
                f'"{self.name}" is being hybridized while still having forward hook/pre-hook. If "{self.name}" is a child of '
                "HybridBlock, the hooks will not take effect.",
                stacklevel=2,
            )
        super().hybridize(active, **options, **({} if clear else {"clear": False}))

    def optimize_for(
        self, x: NDArray, *args: Any, backend: str | None = None, clear: bool = False, static_alloc: bool = False,
        static_shape: bool = False, inline_limit: int = 2, forward_bulk_size: int | None = None,
        backward_bulk_size: int | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        """Hybridize this block with `backend` for arguments like these, at once: it is traced, and the backend compiles its parts.

        What the backend computes is inference; with gradients or in training mode the operators run as ever. `export` writes the graph with
        parts, which other minimx programs read with or without the backend; MXNet does not know their operator, `_subgraph_op`.
        **Args** `x`, `args`: arguments, whose values are not used. `clear`: forget the backends of earlier calls; else this one gets what
        they leave. `kwargs`: options of the backend. The others as in `hybridize`.
        **Raises** ValueError for an unknown backend or option, MXNetError if the backend's package is not installed.
        **Source** MXNet `HybridBlock.optimize_for`. **Book** chapter 13.
        """
        if not backend:
            raise ArgumentError(f"{self.name}: must specify backend to optimize_for, one of {', '.join(backends.names())}")
        found = survey((x, *args))
        if not found.contexts:
            raise ArgumentError(f"{self.name}.optimize_for: there must be one NDArray in the arguments, got {shown(x)}")
        self.hybridize(
            True, backend, clear, static_alloc, static_shape, inline_limit, forward_bulk_size, backward_bulk_size, kwargs
        )
        flat, form = flatten((x, *args), "input")
        with found.only_context(self.name) as context, autograd.pause():
            trace = self._trace_for(flat, form)
            assert trace.op is not None
            inputs = self._inputs_of(trace, (x, *args), flat, context)
            if not trace.op.graph.interpreted:
                trace.op.graph.program_for(inputs, context)

    def _set_active(self, active: bool) -> None:
        """Choose who runs the graph: `forward` itself, or, where a subclass has another one, whoever would call it."""
        own = type(self).forward is not HybridBlock.forward
        self._active = active
        self._direct_at = -1
        self._runs_graph, self._forward_is_traced = active and not own, active and own

    def cast(self, dtype: Any) -> None:
        """Convert all parameters to `dtype`; graphs are dropped."""
        self._clear_cached_op()
        super().cast(dtype)

    def register_op_hook(self, callback: Callable[[str, str, Any], Any] | None, monitor_all: bool = False) -> None:
        """Have `callback(name, operator, array)` called for each operator's outputs when this block runs as a graph.

        **Args** `monitor_all`: for the inputs, too. Names are `<node>_output`, `<node>_data`, `<node>_weight`, ...
        """
        self._callback, self._monitor_all = callback, monitor_all
        self._direct_at = -1
        super().register_op_hook(callback, monitor_all)

    # ---- calling

    def __call__(self, *args: Any) -> Any:
        if self._direct_at == editions.latest and len(args) == 1 and isinstance(args[0], NDArray):
            found = self._direct.get(id(args[0].spec))
            if found is not None:
                output = found(args[0])
                if output is not None:
                    return output
        if self._forward_hooks or self._forward_pre_hooks or self._forward_is_traced:
            return super().__call__(*args)
        return self.forward(*args)

    def register_forward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        self._direct_at = -1
        return super().register_forward_hook(hook)

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        self._direct_at = -1
        return super().register_forward_pre_hook(hook)

    def forward(self, x: Any, *args: Any) -> Any:
        """Compute with arrays, or make a graph of Symbols, by `hybrid_forward`.

        **Raises** ValueError for arrays beside Symbols, no tensor at all, and, when hybridized, arrays on several devices, or
        arguments built in another way than at the first call.
        """
        try:
            if (
                not self._runs_graph and not args and isinstance(x, NDArray) and x.context is current_context()
            ):  # most eager calls
                return self.hybrid_forward(nd, x, **(self._values(x.context, (x,)) if self._reg_params else {}))
            found = survey((x, *args))
            if found.symbols and found.contexts:
                raise ArgumentError(f"{self.name}: NDArrays and Symbols cannot be mixed in the arguments of a block")
            if found.symbols:
                with self.name_scope():
                    return self._symbolic(x, *args)
            if not found.contexts:
                raise ArgumentError(
                    f"{self.name}: there must be one NDArray or one Symbol in the arguments of a block, got "
                    f"{', '.join(map(shown, (x, *args)))}; make an NDArray with nd.array(x)"
                )
            if self._runs_graph:
                with found.only_context(self.name) as context:
                    return self._call_cached_op((x, *args), context)
            with found.contexts[0] as context:
                return self.hybrid_forward(nd, x, *args, **self._values(context, (x, *args)))
        except TypeError as error:
            self._explain(error, x, *args)
            raise

    def _symbolic(self, *args: Any) -> Any:
        """The graph of `hybrid_forward` for Symbols."""
        try:
            return self.hybrid_forward(sym, *args, **{name: param.var() for name, param in self._reg_params.items()})
        except TypeError as error:
            self._explain(error, *args)
            raise

    def _explain(self, error: TypeError, *args: Any) -> None:
        """Raise ArgumentError if arguments and parameters do not fit `hybrid_forward`, so that Python refused the call with `error`."""
        if isinstance(error, MXNetError):
            return
        signature = inspect.signature(self.hybrid_forward)
        try:
            signature.bind(nd, *args, **self._reg_params)
        except TypeError as misfit:
            takes = f"{type(self).__name__}.hybrid_forward takes {signature}"
            if next(iter(signature.parameters), None) != "F" and fits(signature, args, self._reg_params):
                raise ArgumentError(
                    f"{self.name}: {takes}; its first argument must be F, which is mx.nd or mx.sym: hybrid_forward(self, F, x, ...)"
                ) from None
            odd = [name for name in self._reg_params if name not in signature.parameters]
            if odd:
                raise ArgumentError(
                    f"{self.name}: the parameter {self._reg_params[odd[0]].name!r}, which is the attribute {odd[0]!r}, has no argument "
                    f"to come in: {takes}; its arguments after the inputs must be called like the attributes that hold the parameters"
                ) from None
            raise ArgumentError(
                f"{self.name}: {takes}, which does not fit {len(args)} inputs and the parameters {list(self._reg_params)}: {misfit}"
            ) from None

    def _call_traced_forward(self, *args: Any) -> Any:
        """What `__call__` does where a subclass that is hybridized overrides `forward`: run that as a graph, if it can become one."""
        found = survey(args)
        if found.symbols or not found.contexts:
            return self.forward(*args)
        with found.only_context(self.name) as context:
            try:
                self._trace_for(*flatten(args, "input"))
            except Exception as error:  # whatever the user's code raised; if the fault is there without a trace, it shows again
                self._forward_is_traced = False
                warnings.warn(
                    f"{self.name}: forward() of {type(self).__name__} cannot become a graph ({error}). It runs as Python code, and the "
                    "blocks in it as graphs. Let it work on Symbols, too, or write hybrid_forward(self, F, x).",
                    stacklevel=3,
                )
                return self.forward(*args)
            return self._call_cached_op(args, context)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """What the block computes with the functions of `F`: `mx.nd` for arrays, `mx.sym` for Symbols. Parameters come by their names."""
        raise NotImplementedError(f"{type(self).__name__} must override hybrid_forward")

    def _values(self, context: Context, args: Sequence[Any]) -> dict[str, NDArray]:
        """The own parameters' values on `context`; those that wait for their shapes are completed."""
        values = {}
        for name, param in self._reg_params.items():
            arrays = param._data
            if arrays is None or len(arrays) > 1 or type(param) is not Parameter or arrays[0].context is not context:
                break
            values[name] = arrays[0]
        else:
            return values  # the common case: each is there, on this device only
        waiting = [param for param in self._reg_params.values() if param._deferred_init]
        if waiting:
            self._finish_deferred(args, waiting)
        return {name: param.data(context) for name, param in self._reg_params.items()}

    # ---- completing parameters

    def infer_shape(self, *args: Any) -> None:
        """Complete the shapes of all parameters from those of the arguments. **Raises** ValueError for those that do not follow."""
        found = self._inferred("infer_shape_partial", "shape", args)
        unknown = [f"{param.name}: {shape}" for param, shape in found.items() if not is_known(shape)]
        if unknown:
            raise ShapeError(
                f"{self.name}: these do not follow from the arguments: {', '.join(unknown)} (0 stands for an unknown length)"
            )
        for param, shape in found.items():
            param.shape = shape

    def infer_type(self, *args: Any) -> None:
        """Cast all parameters to the dtypes that follow from those of the arguments. **Raises** MXNetError if they contradict them."""
        for param, dtype in self._inferred("infer_type_partial", "dtype", args).items():
            if dtype is not None:
                param.dtype = dtype

    # ---- the graph

    def _call_cached_op(self, args: tuple[Any, ...], context: Context) -> Any:
        """Run the graph for `args` on them."""
        flat, form = flatten(args, "input")
        trace = self._trace_for(flat, form)
        op = trace.op
        assert op is not None
        if self._callback is not None or op._hook is not None:
            op._register_op_hook(self._callback, self._monitor_all)
        inputs = self._inputs_of(trace, args, flat, context)
        outputs = op.run(inputs, context)
        if len(outputs) == 1 and len(args) == 1 and flat[0] is args[0]:
            self._note_direct(trace, op, inputs, context)
        return trace.grouped(outputs)

    def _note_direct(self, trace: Trace, op: CachedOp, inputs: list[NDArray], context: Context) -> None:
        """Remember a small program, of one argument and one output, for the next call like this one."""
        if trace.out_format != 0 or op._hook is not None or self._forward_hooks or self._forward_pre_hooks:
            return
        if not DirectCall.serves(op.graph, inputs, context):
            return
        if self._direct_at != editions.latest:
            self._direct, self._direct_at = {}, editions.latest
        position = next((number for number, (is_data, _) in enumerate(trace.sources) if is_data), None)
        if position is not None and len(self._direct) < MOST_DIRECT:
            self._direct[id(inputs[position].spec)] = DirectCall(op.graph, inputs, position, context)

    def program(self, *args: Any) -> Program:
        """The program that a call with these arguments runs as a graph: `source`, `report()`; inside `autograd.record()` with gradients.

        **Raises** MXNetError if the graph has none, since what it does depends on values. **Book** chapter 5.
        """
        found = survey(args)
        if not found.contexts:
            raise ArgumentError(f"{self.name}.program: there must be one NDArray in the arguments")
        context = found.contexts[0]
        flat, form = flatten(args, "input")
        with context:
            trace = self._trace_for(flat, form)
            assert trace.op is not None
            return trace.op.graph.program_of(self._inputs_of(trace, args, flat, context), context)

    # ---- files

    def export(self, path: PathLike, epoch: int = 0, remove_amp_cast: bool = True) -> tuple[str, str]:
        """Write the graph to `path-symbol.json` and its parameters to `path-0000.params` (the number is `epoch`), for SymbolBlock.imports.

        Other programs that read MXNet's files take them, too. Inputs are called `data`, or `data0`, `data1`, ... if there are several
        (with an underscore more where a parameter has that name).
        Where the code asked `autograd.is_training()`, the graph of inference is written. **Args** `remove_amp_cast`: without the casts of
        automatic mixed precision. **Returns** the names of both files. **Raises** RuntimeError before `hybridize()` and a first call.
        **Source** MXNet `HybridBlock.export`.
        """
        if not any(trace.op is not None for trace in self._traces):
            raise MXNetError(
                f"{self.name}: there is no graph to export. Please first call block.hybridize() and then run forward with this block at "
                "least once before calling export."
            )
        number = converted(f"{self.name}.export", "epoch", "int", epoch)
        if number < 0:
            raise ArgumentError(f"{self.name}.export: epoch is {number}, wants 0 or more")
        start = as_path(path)
        files = f"{start}-symbol.json", f"{start}-{number:04d}.params"
        self._for_inference().write(self.collect_params(), *files, remove_amp_cast)
        return files
