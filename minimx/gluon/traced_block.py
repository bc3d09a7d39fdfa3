"""TracedBlock: the graphs of a block, which of them fits a call, and what they tell about its parameters.

A graph is kept for each answer that the block's code got from autograd's flags; all are dropped when something below the block has changed
(editions.py). From a graph and the shapes of arguments follow the shapes of parameters that wait for them. What a graph was made for is in
tracing.py; hybrid_block.py calls all this, and makes of it what users see. Book: chapter 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import autograd
from ..base import ArgumentError, ShapeError
from ..device import Context
from ..nd import NDArray
from ..sym import Symbol
from ..sym.backends import Options
from ..sym.cached_op import CachedOp
from . import tracing
from .editions import editions
from .parameter import Parameter, ParameterDict
from .plain_block import Block
from .structure import Format, flatten
from .tracing import Trace
from .weight import is_known, place_of


class TracedBlock(Block):
    """The part of a HybridBlock that has to do with its graphs."""

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix, params)
        self._traces: tuple[Trace, ...] = ()  # several if the code asks autograd's flags; the tuple is replaced, not changed
        self._active = False
        self._runs_graph = False  # whether `forward` runs a graph
        self._flags: list[tuple[str, Any]] = []
        self._backends: tuple[tuple[str, Options], ...] = ()  # names and options of what computes parts of the graph
        self._direct_at = -1  # the edition that remembered calls are good for
        self._edition = editions.next()  # when this block was changed last
        self._traced_at = self._checked_at = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_traces": ()}

    # ---- what a HybridBlock defines

    def _symbolic(self, *args: Any) -> Any:
        """The graph of its code for Symbols."""
        raise NotImplementedError

    def infer_shape(self, *args: Any) -> None:
        """Complete the shapes of all parameters from those of the arguments."""
        raise NotImplementedError

    def _set_active(self, active: bool) -> None:
        """Choose whether graphs are run."""
        raise NotImplementedError

    # ---- graphs

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
        below = (child._newest_edition() for child in self._children.values() if isinstance(child, TracedBlock))
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
            raise self._misfit(misfit, form)
        return None

    def _misfit(self, trace: Trace, form: Format) -> ArgumentError:
        """The error for arguments of another format than those that a graph was traced with."""
        return ArgumentError(
            f"The argument structure of HybridBlock {self.name} does not match the cached version. Stored format = {trace.in_format}, "
            f"input format = {form} (0 stands for an array, -1 for None). Call hybridize() again to trace it anew."
        )

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

    def _inputs_of(self, trace: Trace, args: Sequence[Any], flat: Sequence[Any], context: Context) -> list[NDArray]:
        """The values of a trace's variables on `context`; parameters that wait for their shapes are completed."""
        arrays = [each for each in flat if each is not None]
        if autograd.state.recording and trace.op is not None:
            trace.op.graph.several = trace.is_shared()
        values, place = [], place_of(context)
        for is_data, each in trace.sources:
            if is_data:
                values.append(arrays[each])
                continue
            if each._deferred_init:
                self._finish_deferred(args, [param for is_data, param in trace.sources if not is_data and param._deferred_init])
            held, number = each._data, each._ctx_map.get(place)
            # What `data` does where nothing is amiss: there may be hundreds of parameters.
            own = held is None or number is None or type(each) is not Parameter or "data" in each.__dict__
            values.append(each.data(context) if own else held[number])
        return values

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

    # ---- files

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
