"""HybridBlock: a block whose computation can also become a graph.

Its `hybrid_forward(F, x, ...)` is written once for arrays, where F is `mx.nd`, and for Symbols, where F is `mx.sym`. As long as it is not
hybridized it runs like any Python code. After `hybridize()` the first call *traces* it: it is run once with variables in the places of
the inputs, which gives a graph of the whole network below. Later calls run that graph, whatever their shapes, and the Python code is not
entered again. The graph is dropped when something below changes: children, dtypes, or `hybridize()` is called again. Book: chapter 3.
"""

from __future__ import annotations

import itertools
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from .. import nd, sym
from ..base import ArgumentError, DeviceError, ShapeError
from ..device import Context
from ..nd import NDArray
from ..sym import Symbol
from ..sym.cached_op import CachedOp
from .parameter import Parameter, ParameterDict, ParameterError
from .plain_block import Block
from .structure import Format, fits, flatten, regroup, survey
from .weight import is_known

__all__ = ["HybridBlock"]

#: Held while a block is traced or its parameters are completed: several threads may make their first call at once.
_tracing = threading.RLock()


class _Editions:
    """Numbers the changes of all blocks, so that a network sees with one comparison that nothing at all has changed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.latest = 0

    def next(self) -> int:
        with self._lock:  # the numbers must not go back, whatever threads do
            self.latest += 1
            return self.latest


_editions = _Editions()


class HybridBlock(Block):
    """The base of all layers and networks that can be hybridized. A subclass overrides `hybrid_forward`.

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

    #: What must be made anew in a copy (deepcopy, pickle), with the value it begins with.
    _CACHE: ClassVar[dict[str, Any]] = {"_cached_graph": (), "_cached_op": None, "_cached_op_args": ()}

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        super().__init__(prefix, params)
        self._cached_graph: tuple[Any, ...] = ()  # the variables of the inputs, and the graph
        self._cached_op: CachedOp | None = None
        self._cached_op_args: Sequence[tuple[bool, Any]] = ()  # for each input of the graph: (True, number) or (False, parameter)
        self._in_format: Format = None
        self._out_format: Format = None
        self._active = False
        self._flags: list[tuple[str, Any]] = []
        self._callback: Callable[[str, str, Any], Any] | None = None
        self._monitor_all = False
        self._edition = _editions.next()  # when this block was changed last
        self._traced_at = self._checked_at = 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, **self._CACHE}

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make `block` a child. **Raises** ValueError if it is no HybridBlock."""
        if not isinstance(block, HybridBlock):
            raise ArgumentError(
                f"Children of HybridBlock must also be HybridBlock, but {block!r} has type {type(block)}. If you are using Sequential, "
                "please try HybridSequential instead."
            )
        super().register_child(block, name)
        self._clear_cached_op()

    def hybridize(  # type: ignore[override]  # Block hands the keywords on, here they have names
        self, active: bool = True, *, clear: bool = True, static_alloc: bool = False, static_shape: bool = False, inline_limit: int = 2,
        forward_bulk_size: int | None = None, backward_bulk_size: int | None = None,
    ) -> None:  # fmt: skip
        """Run this block and all below it as graphs (`active=True`), or as Python code again.

        **Args** `clear`: forget graphs that were traced before. `static_alloc`, `static_shape`: plan memory for the shapes in use.
        `inline_limit`: a graph of at most so many operators is recorded operator by operator. `forward_bulk_size`,
        `backward_bulk_size`: how many operators go to the engine at once. None of them changes a result. **Source** MXNet
        `HybridBlock.hybridize`.
        """
        self._active = active
        options = {
            "static_alloc": static_alloc, "static_shape": static_shape, "inline_limit": inline_limit,
            "forward_bulk_size": forward_bulk_size, "backward_bulk_size": backward_bulk_size,
        }  # fmt: skip
        self._flags = [(name, value) for name, value in options.items() if value is not None]
        if clear:
            self._clear_cached_op()
        if active and (self._forward_hooks or self._forward_pre_hooks):
            warnings.warn(
                f'"{self.name}" is being hybridized while still having forward hook/pre-hook. If "{self.name}" is a child of '
                "HybridBlock, the hooks will not take effect.",
                stacklevel=2,
            )
        super().hybridize(active, **options, **({} if clear else {"clear": False}))

    def cast(self, dtype: Any) -> None:
        """Convert all parameters to `dtype`; graphs are dropped."""
        self._clear_cached_op()
        super().cast(dtype)

    def register_op_hook(self, callback: Callable[[str, str, Any], Any] | None, monitor_all: bool = False) -> None:
        """Have `callback(name, operator, array)` called for each operator's outputs when this block runs as a graph.

        **Args** `monitor_all`: for the inputs, too. Names are `<node>_output`, `<node>_data`, `<node>_weight`, ...
        """
        self._callback, self._monitor_all = callback, monitor_all
        super().register_op_hook(callback, monitor_all)

    # ---- calling

    def forward(self, x: Any, *args: Any) -> Any:
        """Compute with arrays, or make a graph of Symbols; not to be overridden, `hybrid_forward` is.

        **Raises** ValueError for arrays beside Symbols, no tensor at all, and, when hybridized, arrays on several devices, or
        arguments built in another way than at the first call.
        """
        found = survey((x, *args))
        if found.symbols and found.contexts:
            raise ArgumentError(f"{self.name}: NDArrays and Symbols cannot be mixed in the arguments of a block")
        if found.symbols:
            params = {name: param.var() for name, param in self._reg_params.items()}
            with self.name_scope():
                return self.hybrid_forward(sym, x, *args, **params)
        if not found.contexts:
            raise ArgumentError(f"{self.name}: there must be one NDArray or one Symbol in the arguments of a block")
        context = found.contexts[0]
        if not self._active:
            with context:
                return self.hybrid_forward(nd, x, *args, **self._values(context, (x, *args)))
        if len({each.lane for each in found.contexts}) > 1:
            raise DeviceError(
                f"{self.name}: the arguments are on several contexts, {found.contexts}; a hybridized block computes on one. "
                "Copy them with as_in_context()."
            )
        with context:
            return self._call_cached_op((x, *args), context)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """What the block computes with the functions of `F`: `mx.nd` for arrays, `mx.sym` for Symbols. Parameters come by their names."""
        raise NotImplementedError(f"{type(self).__name__} must override hybrid_forward")

    def _values(self, context: Context, args: Sequence[Any]) -> dict[str, NDArray]:
        """The own parameters' values on `context`; those that wait for their shapes are completed."""
        waiting = [param for param in self._reg_params.values() if param._deferred_init]
        if waiting:
            self._finish_deferred(args, waiting)
        return {name: param.data(context) for name, param in self._reg_params.items()}

    # ---- completing parameters

    def _finish_deferred(self, args: Sequence[Any], params: Sequence[Parameter]) -> None:
        """Infer shapes from the arguments, and initialize those of `params` that waited for them."""
        with _tracing:
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
        inputs, graph = self._get_graph(*args)
        arrays = [each for each in flatten(args, "input")[0] if each is not None]
        known = {variable.name: getattr(array, attribute) for variable, array in zip(inputs, arrays)}
        of_arguments, _, of_states = getattr(graph, question)(
            **{name: known[name] for name in graph.list_inputs() if name in known}
        )
        answers = dict(zip([*graph.list_arguments(), *graph.list_auxiliary_states()], [*of_arguments, *of_states]))
        return {param: answers[name] for name, param in self.collect_params().items() if name in answers}

    # ---- the graph

    def _clear_cached_op(self) -> None:
        """Forget the graph, as those must that contain this block."""
        self.__dict__.update(self._CACHE)
        self._edition = _editions.next()

    def _newest_edition(self) -> int:
        """When this block or one below it was changed last."""
        below = (child._newest_edition() for child in self._children.values() if isinstance(child, HybridBlock))
        return max(self._edition, max(below, default=0))

    def _forget_if_stale(self) -> None:
        """Drop the graph if a block below was changed after it was traced."""
        self._checked_at = _editions.latest
        if self._cached_graph and self._newest_edition() > self._traced_at:
            self.__dict__.update(self._CACHE)

    def _get_graph(self, *args: Any) -> tuple[Any, ...]:
        """The variables of the inputs, called `data`, or `data0`, `data1`, ...; and the graph, traced if there is none."""
        self._forget_if_stale()
        if not self._cached_graph:
            flat, in_format = flatten(args, "input")
            count = sum(each is not None for each in flat)
            numbers = itertools.count()
            inputs = [None if each is None else sym.var(f"data{next(numbers)}" if count > 1 else "data") for each in flat]
            params = {name: param.var() for name, param in self._reg_params.items()}
            with self.name_scope():
                result = self.hybrid_forward(sym, *regroup(inputs, in_format), **params)
            outputs, self._out_format = flatten(result, "output")
            present = [each for each in outputs if each is not None]
            if not all(isinstance(each, Symbol) for each in present) or not present:
                raise ArgumentError(f"{self.name}: hybrid_forward must return a Symbol, or a (nested) list of them, for a Symbol")
            self._in_format = in_format
            self._traced_at = self._newest_edition()
            self._cached_graph = [each for each in inputs if each is not None], sym.Group(present)
        return self._cached_graph

    def _build_cache(self, *args: Any) -> None:
        """Trace the block for `args` if need be, and make the graph callable."""
        data, graph = self._get_graph(*args)
        numbers = {variable.name: number for number, variable in enumerate(data)}
        params = self.collect_params()
        names = graph.list_inputs()
        for name in names:
            if name not in numbers and name not in params:
                raise ParameterError(f"Unknown input to HybridBlock: {name}; values come from the arguments or from parameters")
        unused = [f"{number}-th" for name, number in numbers.items() if name not in names]
        if unused:
            warnings.warn(
                f"The {', '.join(unused)} input to HybridBlock {self.name} is not used by any computation. Is this intended?",
                stacklevel=5,
            )
        idle = [name for name in params if name not in names]
        if idle:
            warnings.warn(f"Parameter {', '.join(idle)} is not used by any computation. Is this intended?", stacklevel=5)
        self._cached_op_args = [(True, numbers[name]) if name in numbers else (False, params[name]) for name in names]
        positions = {
            kind: [i for i, (is_data, _) in enumerate(self._cached_op_args) if is_data == (kind == "data_indices")]
            for kind in ("data_indices", "param_indices")
        }
        self._cached_op = CachedOp(graph, [*positions.items(), *self._flags])

    def _call_cached_op(self, args: tuple[Any, ...], context: Context) -> Any:
        """Run the graph on `args`."""
        if self._checked_at != _editions.latest:
            self._forget_if_stale()
        cached = self._cached_op
        if cached is None:
            with _tracing:
                if self._cached_op is None:
                    self._build_cache(*args)
                cached = self._cached_op
                assert cached is not None
        if self._callback is not None or cached._hook is not None:
            cached._register_op_hook(self._callback, self._monitor_all)
        flat, form = flatten(args, "input")
        if form != self._in_format and not fits(form, self._in_format):
            raise ArgumentError(
                f"The argument structure of HybridBlock {self.name} does not match the cached version. Stored format = {self._in_format}, "
                f"input format = {form} (0 stands for an array, -1 for None). Call hybridize() again to trace it anew."
            )
        arrays = [each for each in flat if each is not None]
        waiting = [each for is_data, each in self._cached_op_args if not is_data and each._deferred_init]
        if waiting:
            self._finish_deferred(args, waiting)
        values = [arrays[each] if is_data else each.data(context) for is_data, each in self._cached_op_args]
        outputs = cached(*values, default_ctx=context)
        listed = [outputs] if isinstance(outputs, NDArray) else outputs
        return regroup(self._with_none(listed), self._out_format)

    def _with_none(self, outputs: list[NDArray]) -> list[NDArray | None]:
        """The outputs with None where the trace returned None, which is no output of the graph."""
        return list(outputs) if self._out_format == 0 else _insert_none(outputs, self._out_format)

    # ---- files

    def _save_graph(self) -> dict[str, Any]:
        """The graph, in the form of MXNet's file."""
        if not (self._active and self._cached_graph):
            return {"hybridized": False}
        inputs, graph = self._cached_graph
        return {
            "in_format": self._in_format, "out_format": self._out_format, "inputs": [variable.tojson() for variable in inputs],
            "symbol": graph.tojson(), "hybridized": True,
        }  # fmt: skip

    def _load_graph(self, saved: Mapping[str, Any]) -> None:
        """Take over the graph of a file."""
        if not saved["hybridized"]:
            return
        self._clear_cached_op()
        self._in_format, self._out_format = saved["in_format"], saved["out_format"]
        self._cached_graph = [sym.load_json(text) for text in saved["inputs"]], sym.load_json(saved["symbol"])
        self._active = True
        self._traced_at = _editions.latest


def _insert_none(outputs: Sequence[NDArray], form: Format) -> list[NDArray | None]:
    """Flat outputs with None at the places that the format says."""
    rest = iter(outputs)

    def expand(each: Format) -> list[NDArray | None]:
        if isinstance(each, int):
            return [None] if each == -1 else list(itertools.islice(rest, max(each, 1)))
        return [value for part in each for value in expand(part)]

    return expand(form)
