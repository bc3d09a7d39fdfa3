"""HybridBlock: a block whose computation can also become a graph.

Its `hybrid_forward(F, x, ...)` is written once for arrays, where F is `mx.nd`, and for Symbols, where F is `mx.sym`. As long as it is not
hybridized it runs like any Python code. After `hybridize()` the first call *traces* it: it is run once with variables in the places of
the inputs, which gives a graph of the whole network below. Later calls run that graph, whatever their shapes, and the Python code is not
entered again. The graph is dropped when something below changes: children, dtypes, or `hybridize()` is called again. What a graph was
made for is in tracing.py. `export()` writes it to files, which a SymbolBlock reads. Book: chapter 4.
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
from ..sym import Symbol, backends
from ..sym.backends import Options
from ..sym.cached_op import CachedOp
from ..sym.direct import DirectCall
from ..sym.program import Program
from . import tracing
from .editions import editions
from .parameter import Parameter, ParameterDict
from .plain_block import Block
from .structure import Format, flatten, survey
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


class HybridBlock(Block):
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
        self._traces: tuple[Trace, ...] = ()  # several if the code asks autograd's flags; the tuple is replaced, not changed
        self._active = False
        self._runs_graph = False  # whether `forward` runs a graph
        self._flags: list[tuple[str, Any]] = []
        self._backends: tuple[tuple[str, Options], ...] = ()  # names and options of what computes parts of the graph
        self._callback: Callable[[str, str, Any], Any] | None = None
        self._monitor_all = False
        self._direct: dict[int, DirectCall] = {}  # by the identity of the argument's spec
        self._direct_at = -1  # the edition that they are good for
        self._edition = editions.next()  # when this block was changed last
        self._traced_at = self._checked_at = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_traces": (), "_direct": {}}

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
        keep the memory of values within the graph from call to call, however much it is. `inline_limit`: `autograd.get_symbol` shows a
        graph of at most so many operators in full, a larger one as a single node. `backward_bulk_size`: gradients are computed in tasks of
        at most so many operators, so that those of the last layers can be sent while others are computed; by default in one task, or in
        four if the parameters are on several devices. `static_shape`, `forward_bulk_size`: accepted, and without effect, as a graph is one
        task for known shapes. None of them changes a result.
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

    def _finish_deferred(self, args: Sequence[Any], params: Sequence[Parameter]) -> None:
        """Infer shapes from the arguments, and initialize those of `params` that waited for them."""
        with tracing.lock:
            waiting = [param for param in params if param._deferred_init]  # another thread may have been faster
            if waiting:
                self._deferred_infer_shape(*args)
            for param in waiting:
                if not is_known(param.shape):
                    raise ShapeError(
                        f"Deferred initialization failed because shape cannot be inferred. Nothing that {self.name} computes tells the "
                        f"shape of {param.name}, of which {param.shape} is known"
                    )
                param._finish_deferred_init()

    def _deferred_infer_shape(self, *args: Any) -> None:
        try:
            self.infer_shape(*args)
        except Exception as error:  # whatever the user's code raised while it was traced
            raise ShapeError(f"Deferred initialization failed because shape cannot be inferred. {error}") from error

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

    def _inferred(self, question: str, attribute: str, args: Sequence[Any]) -> dict[Parameter, Any]:
        """What a Symbol's method `question` answers about parameters, given an attribute of the arguments."""
        flat, form = flatten(args, "input")
        params = self.collect_params()
        with tracing.lock:
            trace = self._graph_for(flat, form)
        arrays = [each for each in flat if each is not None]
        known = {variable.name: getattr(array, attribute) for variable, array in zip(trace.inputs, arrays)}

        def ask(graph: Symbol) -> dict[Parameter, Any]:
            given = {name: known[name] for name in graph.list_inputs() if name in known}
            of_arguments, _, of_states = getattr(graph, question)(**given)
            answers = dict(zip([*graph.list_arguments(), *graph.list_auxiliary_states()], [*of_arguments, *of_states]))
            return {param: answers[name] for name, param in params.items() if name in answers}

        try:
            return ask(trace.graph)
        except ShapeError:
            fitted = trace.fitted(params)  # perhaps shapes differ that broadcast
            if fitted is trace.graph:
                raise
            return ask(fitted)

    # ---- the graph

    @property
    def _cached_graph(self) -> tuple[Any, ...]:
        """The variables of the inputs, and the graph that was traced last; () if there is none. (MXNet's tools read it.)"""
        return (self._traces[-1].inputs, self._traces[-1].graph) if self._traces else ()

    @property
    def _cached_op(self) -> CachedOp | None:
        """What runs the graph that was traced last."""
        return self._traces[-1].op if self._traces else None

    def _clear_cached_op(self) -> None:
        """Forget the graphs, as those must that contain this block."""
        self._drop_traces()
        self._edition = editions.next()

    def _drop_traces(self) -> None:
        self._traces = ()
        self._direct_at = -1

    def _newest_edition(self) -> int:
        """When this block or one below it was changed last."""
        below = (child._newest_edition() for child in self._children.values() if isinstance(child, HybridBlock))
        return max(self._edition, max(below, default=0))

    def _forget_if_stale(self) -> None:
        """Drop the graphs if a block below was changed after they were traced."""
        self._checked_at = editions.latest
        if self._traces and self._newest_edition() > self._traced_at:
            self._drop_traces()

    def _found(self, form: Format) -> Trace | None:
        """The trace for arguments of the format `form`, and for what autograd's flags are now. Raises ArgumentError for another format."""
        if self._checked_at != editions.latest:
            self._forget_if_stale()
        misfit = None
        for trace in self._traces:
            if trace.holds():
                if trace.takes(form):
                    return trace
                misfit = trace
        if misfit is not None and self._runs_graph:
            raise ArgumentError(
                f"The argument structure of HybridBlock {self.name} does not match the cached version. Stored format = {misfit.in_format}, "
                f"input format = {form} (0 stands for an array, -1 for None). Call hybridize() again to trace it anew."
            )
        return None

    def _traced(self, form: Format) -> Trace:
        """A new trace for arguments of the format `form`. The caller holds `tracing.lock`."""
        code = self.forward if self._forward_is_traced else self._symbolic
        with self.name_scope():
            trace = tracing.trace(self.name, code, form, self.collect_params().keys())
        self._traced_at = self._newest_edition()
        self._traces = (*self._traces, trace)
        return trace

    def _graph_for(self, flat: Sequence[Any], form: Format) -> Trace:
        """The trace for these arguments, made if there is none. The caller holds `tracing.lock`."""
        trace = self._found(form) or self._traced(form)
        if not trace.shapes:
            arrays = [each for each in flat if each is not None]
            trace.shapes = {variable.name: each.shape for variable, each in zip(trace.inputs, arrays)}
        return trace

    def _trace_for(self, flat: Sequence[Any], form: Format) -> Trace:
        """The trace for these arguments, ready to be called."""
        trace = self._found(form)
        if trace is None or trace.op is None:
            with tracing.lock:
                trace = self._graph_for(flat, form)  # another thread may have been faster
                if trace.op is None:
                    trace.prepare(self.name, self.collect_params(), self._flags, self._backends)
        return trace

    def _call_cached_op(self, args: tuple[Any, ...], context: Context) -> Any:
        """Run the graph for `args` on them."""
        flat, form = flatten(args, "input")
        trace = self._trace_for(flat, form)
        op = trace.op
        assert op is not None
        if self._callback is not None or op._hook is not None:
            op._register_op_hook(self._callback, self._monitor_all)
        inputs = self._inputs_of(trace, args, flat, context)
        outputs = op(*inputs, default_ctx=context)
        if not isinstance(outputs, NDArray):
            return trace.grouped(outputs)
        if len(args) == 1 and flat[0] is args[0]:
            self._note_direct(trace, op, inputs, context)
        return trace.grouped([outputs])

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

    def _inputs_of(self, trace: Trace, args: Sequence[Any], flat: Sequence[Any], context: Context) -> list[NDArray]:
        """The values of a trace's variables on `context`; parameters that wait for their shapes are completed."""
        arrays = [each for each in flat if each is not None]
        waiting = [each for is_data, each in trace.sources if not is_data and each._deferred_init]
        if waiting:
            self._finish_deferred(args, waiting)
        if autograd.state.recording and trace.op is not None:
            trace.op.graph.several = trace.is_shared()
        return [arrays[each] if is_data else each.data(context) for is_data, each in trace.sources]

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

    def _for_inference(self) -> Trace:
        """The trace for neither training nor recording; made from the last one if that was told otherwise."""
        last = self._traces[-1]
        with tracing.lock, autograd.pause():
            found = next((trace for trace in self._traces if trace.holds() and trace.takes(last.in_format)), None)
            if found is None:
                found = self._traced(last.in_format)
                found.shapes = last.shapes
            return found

    def _save_graph(self) -> dict[str, Any]:
        """The graph, in the form of MXNet's file."""
        if not (self._active and self._traces):
            return {"hybridized": False}
        return self._for_inference().described(self.collect_params())

    def _graph_in(self, saved: Mapping[str, Any]) -> Trace | None:
        """The graph in a file, if there is one. Raises FileFormatError for what is none."""
        return Trace.from_description(saved) if saved["hybridized"] else None

    def _load_graph(self, saved: Mapping[str, Any]) -> None:
        """Take over the graph of a file."""
        trace = self._graph_in(saved)
        if trace is None:
            return
        self._clear_cached_op()
        self._traces = (trace,)
        self._set_active(True)
        self._traced_at = editions.latest
