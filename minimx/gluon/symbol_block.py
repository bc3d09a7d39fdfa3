"""SymbolBlock: a block made from a graph, such as one of MXNet's files, or a part of another network's graph.

Its inputs are some variables of the graph; all others become its parameters, under their full names. It always runs as a graph, and
fits wherever a HybridBlock does: in another network, under `hybridize()`, `export()` and `save_parameters()`. Book: chapter 6.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import nd, sym
from ..base import ArgumentError, MXNetError, as_dtype, shown
from ..files import PathLike, as_path
from ..op import input_names
from ..sym import Symbol
from ..sym.conventions import PARAMETERS
from ..sym.graph import topological_order
from .editions import editions
from .hybrid_block import HybridBlock
from .parameter import BY_PLACES, ParameterDict, is_exported, named_arrays
from .structure import Format, flatten, regroup
from .tracing import Trace
from .weight import Devices, Parameter, ParameterError

__all__ = ["SymbolBlock"]


class SymbolBlock(HybridBlock):
    """A block that computes `outputs` from `inputs`.

    **Args** `outputs`: a Symbol or a (nested) list of them. `inputs`: one or several variables of their graph. `params`: parameters that
    the graph uses, by the names of its variables; others are made. **Raises** AssertionError for an input that is no variable.
    **Source** MXNet `gluon.SymbolBlock`.

    >>> from minimx import gluon, sym
    >>> x = sym.var("x")
    >>> hidden = sym.FullyConnected(x, num_hidden=4, name="hidden")
    >>> block = gluon.SymbolBlock(sym.tanh(hidden), x)
    >>> list(block.collect_params())
    ['hidden_weight', 'hidden_bias']
    >>> block.initialize()
    >>> block(mx.nd.ones((2, 3))).shape
    (2, 4)
    """

    def __init__(self, outputs: Any, inputs: Any, params: ParameterDict | Mapping[str, Parameter] | None = None) -> None:
        super().__init__(prefix=None, params=None)
        self._prefix = ""
        shared = ParameterDict()
        shared.update(params or {})
        self._params = ParameterDict("", shared)
        variables = list(inputs) if isinstance(inputs, Symbol) else inputs
        if isinstance(outputs, (list, tuple)) and len(outputs) == 1:
            outputs = outputs[0]
        arguments, in_format = flatten(variables, "input")
        heads, out_format = flatten(outputs, "output")
        _require_variables(arguments)
        for each in heads:
            if not isinstance(each, Symbol):
                raise ArgumentError(f"SymbolBlock: outputs must be a Symbol or a (nested) list of them, got {shown(each)}")
        for name, param in shared.items():
            if not isinstance(param, Parameter):
                raise ArgumentError(f"SymbolBlock: params must hold Parameters, got {shown(param)} for {name}")
        graph = heads[0] if len(heads) == 1 else sym.Group(heads)
        _require_dense(graph)
        self._traces = (Trace(arguments, graph, in_format, out_format),)
        self._make_parameters()
        self._set_active(False)

    def _make_parameters(self) -> None:
        """A parameter for each variable that is no input: the shared one of that name, or a new one."""
        [trace] = self._traces
        numbered = {variable.name for variable in trace.inputs}
        states = set(trace.graph.list_auxiliary_states())
        dtypes = _dtypes(trace)
        for name in [*trace.graph.list_arguments(), *trace.graph.list_auxiliary_states()]:
            if name not in numbered and self.params._find(name) is None:
                grad_req = "null" if name in states else "write"
                self.params.get(name, grad_req=grad_req, allow_deferred_init=True, dtype=dtypes[name])
        common = len(os.path.commonprefix(list(self.params)))  # noqa: RUF071  # what save_parameters leaves out, as MXNet does
        self._reg_params = {name[common:]: param for name, param in self.params.items()}

    @staticmethod
    def imports(
        symbol_file: PathLike, input_names: str | Sequence[str], param_file: PathLike | None = None, ctx: Devices = None,
        allow_missing: bool = False, ignore_extra: bool = False,
    ) -> SymbolBlock:  # fmt: skip
        """The block in files that `HybridBlock.export` wrote, or MXNet's `export` or `save_checkpoint`.

        **Args** `input_names`: the variables that are inputs: "data", or ["data0", "data1"]. `param_file`: None: `initialize()` makes
        the parameters. `ctx`: devices for them, the CPU by default. `allow_missing`, `ignore_extra`: the file may lack parameters, or have
        more. Parameters have the dtypes that the file has. **Raises** AssertionError for a parameter that is missing or too many;
        MXNetError for files that cannot be read. **Source** MXNet `SymbolBlock.imports`.
        """
        graph = sym.load(symbol_file)
        names = [input_names] if isinstance(input_names, str) else input_names
        if not isinstance(names, (list, tuple)) or not all(isinstance(each, str) for each in names):
            raise ArgumentError(f"SymbolBlock.imports: input_names must be a str or a list of them, got {shown(names)}")
        block = SymbolBlock(graph, [sym.var(name, dtype=np.float32 if param_file is None else None) for name in names])
        if param_file is not None:
            path = as_path(param_file)
            loaded = named_arrays(nd.load(path), path)
            advice = None if allow_missing else _advice(graph, names, block.params, loaded)
            block.params.load_dict(
                loaded, ctx, allow_missing, ignore_extra, "", path, cast_dtype=True, dtype_source="saved", advice=advice
            )
        return block

    def __repr__(self) -> str:
        [trace] = self._traces
        return f"SymbolBlock(\n{trace.graph} : {len(trace.inputs)} -> {len(trace.graph)}\n)"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_direct": {}}  # with the graph

    def _set_active(self, active: bool) -> None:
        self._active = active
        self._runs_graph = True

    def _drop_traces(self) -> None:
        """There is no code to trace again: the graph stays, and what runs it is made anew."""
        [trace] = self._traces
        self._traces = (Trace(trace.inputs, trace.graph, trace.in_format, trace.out_format),)
        self._direct = {}

    def _forget_if_stale(self) -> None:
        """Nothing outside changes the graph."""
        self._checked_at = editions.latest

    def _misfit(self, trace: Trace, form: Format) -> ArgumentError:
        names = regroup([variable.name for variable in trace.inputs], trace.in_format)
        got = ", ".join(map(_in_words, form)) or "nothing"
        return ArgumentError(
            f"SymbolBlock: call it with its inputs, block({_listed(names)}); got {got}. The inputs are those that the block was made with "
            "(imports: input_names)."
        )

    def _save_graph(self) -> dict[str, Any]:
        return self._traces[0].described(self.params)

    def _load_graph(self, saved: Mapping[str, Any]) -> None:
        active = self._active
        super()._load_graph(saved)
        self._set_active(active)

    def _symbolic(self, *args: Any) -> Any:
        """The graph with other Symbols in the places of its inputs. Parameters stay the same variables, however often it is used."""
        [trace] = self._traces
        given, form = flatten(args, "input")
        if not trace.takes(form):
            self._found(form)  # raises
        entries = [each.entries[0] for each in given if each is not None]
        values = {variable.name: Symbol([entry]) for variable, entry in zip(trace.inputs, entries)}
        for node in topological_order(trace.graph.entries):
            if node.op is None:
                values.setdefault(node.name, Symbol([(node, 0)]))
        used = set(trace.graph.list_inputs())
        composed = trace.graph(**{name: value for name, value in values.items() if name in used})
        return regroup([Symbol([entry]) for entry in composed.entries], trace.out_format)

    def forward(self, x: Any = None, *args: Any) -> Any:
        """Compute with arrays, or put Symbols into the graph. **Raises** ArgumentError for other arguments than the graph's inputs."""
        if x is None and not args:
            raise self._misfit(self._traces[0], ())
        return super().forward(x, *args)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Not called: the graph is there already."""
        raise NotImplementedError("a SymbolBlock has a graph, and no hybrid_forward")

    def cast(self, dtype: Any) -> None:
        """Convert all parameters to `dtype`. Those of a BatchNorm stay float32 for float16, which is too little for sums."""
        super().cast(dtype)
        if as_dtype(dtype) == np.float16:
            for name in self._of_batchnorms():
                self.params[name].cast("float32")

    def _of_batchnorms(self) -> list[str]:
        """Names of the parameters that some BatchNorm reads beside its data."""
        [trace] = self._traces
        nodes = [node for node in topological_order(trace.graph.entries) if node.op is not None and "BatchNorm" in node.op.name]
        sources = [entry[0].name for node in nodes for entry in node.inputs[1:] if entry is not None]
        return [name for name in dict.fromkeys(sources) if name in self.params]

    def reset_ctx(self, ctx: Devices) -> None:
        """Move all parameters to other devices."""
        self.collect_params().reset_ctx(ctx)


def _require_variables(inputs: Sequence[Any]) -> None:
    for each in inputs:
        if not isinstance(each, Symbol) or len(each) != 1 or each.entries[0][0].op is not None:
            raise ParameterError(f"SymbolBlock: inputs must be variables, but {each!r} is an output of operators, or no Symbol")


def _require_dense(graph: Symbol) -> None:
    for name, attrs in graph.attr_dict().items():
        if attrs.get("__storage_type__", "0") not in ("0", "default"):
            raise ParameterError(f"SymbolBlock: variable {name} is sparse, and only dense arrays exist here")


def _listed(names: Sequence[Any]) -> str:
    """Nested names as the arguments of a call."""
    return ", ".join(each if isinstance(each, str) else f"[{_listed(each)}]" for each in names)


def _in_words(form: Format) -> str:
    """An argument of the format `form`, for an error."""
    if isinstance(form, int):
        return {-1: "None", 0: "an array"}.get(form, f"a Symbol of {form} outputs")
    return f"a {type(form).__name__} of {len(form)}"


def _advice(graph: Symbol, inputs: Sequence[str], params: ParameterDict, loaded: Mapping[str, Any]) -> str | None:
    """What may be wrong if variables of a graph are missing in a file: the names of the inputs, or the file."""
    known = {name[4:] if is_exported([name]) else name for name in loaded}
    missing = [name for name in params if name not in known]
    if len(missing) == len(list(params)) and not is_exported(loaded):
        return f"{BY_PLACES}, or for another graph: read it with the load_parameters of the network that wrote it."
    weights = {
        entry[0].name
        for node in topological_order(graph.entries)
        if node.op is not None
        for entry, called in zip(node.inputs, input_names(node.op, len(node.inputs)))
        if entry is not None and called in PARAMETERS
    }
    if weights.issuperset(missing) and set(inputs) <= set(graph.list_inputs()):
        return None  # the names of the inputs are good; the file is not
    listed = ", ".join(map(repr, missing))
    return f"The inputs given are {list(inputs)}; the graph's variables without a value in the file: {listed}."


def _dtypes(trace: Trace) -> dict[str, Any]:
    """Dtypes of all variables by name, as far as they follow from what the inputs say of themselves; float32 where nothing does."""
    graph = trace.graph
    declared = {variable.name: variable.infer_type_partial()[0][0] for variable in trace.inputs}
    known = {name: dtype for name, dtype in declared.items() if dtype is not None and name in graph.list_inputs()}
    names = [*graph.list_arguments(), *graph.list_auxiliary_states()]
    try:
        of_arguments, _, of_states = graph.infer_type_partial(**known)
    except MXNetError:
        return dict.fromkeys(names, np.float32)
    return {name: dtype or np.float32 for name, dtype in zip(names, [*of_arguments, *of_states])}
