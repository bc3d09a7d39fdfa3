"""Tracing: a block's Python code is run once with variables in the places of arrays, and what it returns is a graph.

A `Trace` is such a graph with all that it was made for. Most blocks have one, which serves every shape. Code that asks
`autograd.is_training()` or `is_recording()` may take another way when the answer differs, so the answer belongs to the trace, and a block
has one for each. traced_block.py decides when to trace; sym/cached_op.py runs the graph. Book: chapter 4.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from .. import autograd, nd, sym
from ..base import ArgumentError, FileFormatError, shown
from ..op import Shape
from ..sym import Symbol, backends as backend_registry
from ..sym.backends import Options
from ..sym.cached_op import CachedOp
from .broadcasting import broadcasting, fitted
from .parameter import ParameterDict, ParameterError
from .structure import Format, checked, fits, flatten, leaves, regroup, with_none

#: Held while a block is traced or its parameters are completed: several threads may make their first call at once.
lock = threading.RLock()


def _after_fork_in_child() -> None:
    global lock
    lock = threading.RLock()  # a thread that did not come along may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)

FLAGS = ("recording", "training")  # of autograd, for which code may ask


class Trace:
    """A graph that a block's code made, and what it was made for.

    `inputs` are the variables of the arguments, whose format `in_format` is; `answers` what the code was told of autograd's flags;
    `shapes` those of the first arguments, by name. `op` runs the graph on the values that `sources` name: (True, number of an argument) or
    (False, parameter). It is made by `prepare`.
    """

    def __init__(
        self,
        inputs: Sequence[Symbol],
        graph: Symbol,
        in_format: Format,
        out_format: Format,
        answers: Mapping[str, bool] | None = None,
    ) -> None:
        self.inputs = list(inputs)
        self.graph = graph
        self.in_format = in_format
        self.out_format = out_format
        self.answers = dict(answers or {})
        self.shapes: dict[Any, Shape] = {}
        self.backends: tuple[tuple[str, Options], ...] = ()  # what computes parts of it, in the order in which they choose
        self.op: CachedOp | None = None
        self.sources: list[tuple[bool, Any]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "op": None, "sources": []}  # a copy has parameters of its own

    def holds(self) -> bool:
        """Whether the code would be told the same now as when it was traced."""
        return not self.answers or all(getattr(autograd.state, flag) == answer for flag, answer in self.answers.items())

    def takes(self, form: Format) -> bool:
        """Whether it is made for arguments of this format."""
        return form == self.in_format or fits(form, self.in_format)

    def prepare(
        self, name: str, params: ParameterDict, flags: Sequence[tuple[str, Any]], backends: Sequence[tuple[str, Options]] = ()
    ) -> None:
        """Make the graph callable. `name`: of the block. `params`: where values come from that are no arguments."""
        self.backends = tuple(backends)
        numbers = {variable.name: number for number, variable in enumerate(self.inputs)}
        graph = self.partitioned(broadcasting(self.graph, self._known(params), self.shapes))
        wanted = graph.list_inputs()
        for each in wanted:
            if each not in numbers and each not in params:
                raise ParameterError(f"Unknown input to HybridBlock: {each}; values come from the arguments or from parameters")
        unused = [f"{number}-th" for each, number in numbers.items() if each not in wanted]
        if unused:
            _warn(f"The {', '.join(unused)} input to HybridBlock {name} is not used by any computation. Is this intended?")
        idle = [each for each in params if each not in wanted]
        if idle and not self.answers:  # else another trace may use them
            _warn(f"Parameter {', '.join(idle)} is not used by any computation. Is this intended?")
        self.sources = [(True, numbers[each]) if each in numbers else (False, params[each]) for each in wanted]
        positions = {
            kind: [i for i, (is_data, _) in enumerate(self.sources) if is_data == (kind == "data_indices")]
            for kind in ("data_indices", "param_indices")
        }
        self.op = CachedOp(graph, [*positions.items(), *flags], name)

    def partitioned(self, graph: Symbol) -> Symbol:
        """`graph` with parts for the backends as nodes of their own."""
        numbered = {variable.name for variable in self.inputs}
        for backend, options in self.backends:
            params = set(graph.list_inputs()) - numbered
            graph = Symbol(backend_registry.partition(graph.entries, backend_registry.find(backend), options, params)[0])
        return graph

    def is_shared(self) -> bool:
        """Whether gradients of its parameters are added over several devices or processes."""
        param = next((source for is_data, source in self.sources if not is_data), None)
        return param is not None and (len(param.list_ctx()) > 1 or bool(getattr(param._trainer, "_together", False)))

    def grouped(self, outputs: Sequence[Any]) -> Any:
        """Flat outputs as the code returned them, with None where it returned None."""
        if self.out_format == 0:
            return outputs[0]
        return regroup(with_none(outputs, self.out_format), self.out_format)

    def fitted(self, params: ParameterDict) -> Symbol:
        """The graph for other programs, which broadcasts only where the shapes of the arguments ask for it: see `fitted`.

        Parts for backends are nodes of it, with their operators inside.
        """
        return self.partitioned(fitted(self.graph, self._known(params), self.shapes))

    def write(self, params: ParameterDict, symbol_file: str, param_file: str, remove_amp_cast: bool) -> None:
        """Write the graph, and the values of its parameters, to files in MXNet's format."""
        graph = self.fitted(params)
        states = set(graph.list_auxiliary_states())
        numbered = {variable.name for variable in self.inputs}
        names = [name for name in dict.fromkeys(graph.list_inputs()) if name not in numbered]
        values = {("aux:" if name in states else "arg:") + name: params[name]._reduce() for name in names}
        graph.save(symbol_file, remove_amp_cast)
        nd.save(param_file, values)

    def described(self, params: ParameterDict) -> dict[str, Any]:
        """The trace as JSON can hold it, with the keys of MXNet's files of networks."""
        return {
            "in_format": self.in_format, "out_format": self.out_format, "inputs": [variable.tojson() for variable in self.inputs],
            "symbol": self.fitted(params).tojson(), "hybridized": True, "answers": self.answers,
        }  # fmt: skip

    @classmethod
    def from_description(cls, saved: Mapping[str, Any]) -> Trace:
        """The trace that was described; MXNet does not know `answers`. Raises FileFormatError if the parts do not belong together."""
        inputs = [sym.load_json(text) for text in saved["inputs"]]
        graph, answers = sym.load_json(saved["symbol"]), saved.get("answers") or {}
        given, made = (checked(saved[key]) for key in ("in_format", "out_format"))
        if sum(each != -1 for each in leaves(given)) != len(inputs) or any(each.entries[0][0].op is not None for each in inputs):
            raise FileFormatError(f"the arguments are built as {shown(given)}, which does not fit {len(inputs)} variables")
        if sum(max(each, 1) for each in leaves(made) if each != -1) != len(graph.entries):
            raise FileFormatError(f"the result is built as {shown(made)}, which does not fit {len(graph.entries)} outputs")
        if not isinstance(answers, dict) or not all(key in FLAGS and isinstance(flag, bool) for key, flag in answers.items()):
            raise FileFormatError(f"'answers' is {shown(answers)}, wants true or false for {' and '.join(FLAGS)}")
        return cls(inputs, graph, given, made, answers)

    def _known(self, params: ParameterDict) -> dict[str, Shape]:
        """Shapes of variables by name."""
        return {**{name: param.shape for name, param in params.items() if param.shape is not None}, **self.shapes}


def _warn(message: str) -> None:
    warnings.warn(message, stacklevel=7)  # the call of the block


def trace(name: str, code: Callable[..., Any], form: Format, taken: Collection[str] = ()) -> Trace:
    """Run `code`, of the block `name`, with variables for arguments of the format `form`, called `data`, or `data0`, `data1`, ...

    **Args** `taken`: names of parameters; an input that would have one of them gets an underscore more.
    """
    present = [each != -1 for each in leaves(form)]
    numbers = itertools.count()
    variables = [
        sym.var(_untaken(f"data{next(numbers)}" if sum(present) > 1 else "data", taken)) if each else None for each in present
    ]
    inputs = [each for each in variables if each is not None]
    with noting() as answers:
        result = code(*regroup(variables, form))
    flat, out_format = flatten(result, "output")
    outputs = [each for each in flat if each is not None]
    method = "forward" if code.__name__ == "forward" else "hybrid_forward"
    if not outputs:
        raise ArgumentError(f"{name}: {method} must return a Symbol, or a (nested) list of them; it returned {shown(result)}")
    if not all(isinstance(each, Symbol) for each in outputs):
        raise ArgumentError(
            f"{name}: {method} must return a Symbol, or a (nested) list of them, for Symbols; it returned an NDArray. Make it with F, "
            "which is mx.sym when a block is traced, or keep it as a constant, params.get_constant()"
        )
    return Trace(inputs, sym.Group(outputs), form, out_format, answers)


def _untaken(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "_"
    return name


@contextlib.contextmanager
def noting() -> Iterator[dict[str, bool]]:
    """Note which of autograd's flags are asked for inside, and what they were at the beginning: what is inside may set them itself."""
    state = autograd.state
    around, state.asked = state.asked, set()
    flags = {flag: getattr(state, flag) for flag in FLAGS}
    answers: dict[str, bool] = {}
    try:
        yield answers
    finally:
        asked, state.asked = state.asked, around
        answers.update((flag, flags[flag]) for flag in sorted(asked))
        if around is not None:
            around.update(asked)
