"""Symbol: a computation that is described before it is run.

A Symbol is a list of entries of a graph (graph.py) with the operators as methods. Operators on Symbols make nodes; nothing is
computed until the graph is bound to arrays (executor.py). What a Symbol can be asked - its arguments, shapes, attributes, its JSON -
is answered here or in the file beside this one that the method names. Book: chapter 3.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import autograd
from ..base import ArgumentError, NotImplementedForSymbol, OutOfRangeError, as_dtype, did_you_mean, shown
from ..op import NODE_KEYS, Op, Tensor, advice_on_list, open_calls
from ..ops import casting as _casting_ops, shape as _shape_ops
from ..ops.fluent import Fluent
from . import infer, serialize
from .backends.optimizing import optimized
from .bind import bind, evaluate, simple_bind
from .conventions import listed, stored_key
from .graph import Entry, Node, apply_node, copied, given_attrs, inputs_of, topological_order

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..device import Context
    from ..nd.ndarray import NDArray
    from .executor import Executor

__all__ = ["Symbol"]

#: Attributes of an array that a Symbol has not, and what to do without.
VALUES_ONLY = {
    "shape": "Use the codes 0, -1, -2, -3 and -4 of reshape, or functions such as reshape_like, slice_like, broadcast_like, shape_array",
    "size": "Use size_array, or a mean rather than a sum",
    "ndim": "Use negative axes, and the code -2 of reshape",
    "dtype": "Use zeros_like and ones_like, or name the dtype, astype('float32')",
    "context": "A graph computes on the device of its inputs", "ctx": "A graph computes on the device of its inputs",
    "T": "Use transpose()", "grad": "Gradients belong to arrays",
}  # fmt: skip

#: What `numpy_number + symbol` means: NumPy asks the Symbol by the name of its own function.
OPERATORS = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv, "true_divide": operator.truediv,
    "remainder": operator.mod, "power": operator.pow, "equal": operator.eq, "not_equal": operator.ne, "greater": operator.gt,
    "greater_equal": operator.ge, "less": operator.lt, "less_equal": operator.le,
}  # fmt: skip


class Symbol(Fluent):
    """One or several outputs of a graph. Made by `sym.var`, and by operators on Symbols.

    **Source** MXNet `symbol.Symbol`. **Book** chapter 3.

    >>> from minimx import sym
    >>> net = sym.FullyConnected(sym.var("data"), num_hidden=4, name="fc")
    >>> net.list_arguments(), net.list_outputs()
    (['data', 'fc_weight', 'fc_bias'], ['fc_output'])
    """

    __slots__ = ("entries",)

    broadcasts: ClassVar[bool] = False
    module: ClassVar[str] = "sym"
    plural: ClassVar[str] = "symbols"

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = tuple(entries)

    # ---- making nodes

    @classmethod
    def _apply(cls, op: Op, operands: Sequence[Any], how: Any) -> Any:
        """A node that applies `op`: a Symbol of its outputs. Missing inputs become variables."""
        if how.get("out") is not None:
            raise ArgumentError(f"{op.name}: out= receives a value, and a Symbol has none")
        attr = given_attrs(op, how)
        entries = [_single(op, position, operand) for position, operand in enumerate(operands)]
        node = apply_node(op, entries, how.get("name"), how.get("_hint"), attr)
        node.broadcast = how.get("broadcast")
        return cls(node.outputs)

    # ---- Python's operators that differ from an array's

    __hash__ = object.__hash__  # by identity: == makes a node

    def __neg__(self) -> Self:
        return self * -1.0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """`numpy_number + symbol` makes a node. **Raises** TypeError for a NumPy array, NotImplementedForSymbol for NumPy's functions."""
        called = OPERATORS.get(ufunc.__name__)
        if called is None or method != "__call__" or kwargs:
            raise NotImplementedForSymbol(f"numpy.{ufunc.__name__}", "the functions of F, which is mx.sym here, such as F.tanh")
        if any(isinstance(each, np.ndarray) and each.ndim for each in inputs):  # NumPy makes numbers arrays without axes at times
            raise ArgumentError(
                f"numpy.{ufunc.__name__}: a NumPy array and a Symbol cannot be mixed. In a block, params.get_constant() makes an array "
                "part of the graph"
            )
        return called(*[each.item() if isinstance(each, (np.generic, np.ndarray)) else each for each in inputs])

    # ---- what only a value could be: Python and NumPy ask for it

    def __bool__(self) -> bool:
        raise NotImplementedForSymbol(
            "bool(), which `if`, `while`, `and` and `in` ask for,",
            "F.where, which chooses element by element, or F.contrib.cond, which chooses what is computed",
        )

    __nonzero__ = __bool__

    def __float__(self) -> float:
        raise NotImplementedForSymbol("float()", "the Symbol itself")

    def __int__(self) -> int:
        raise NotImplementedForSymbol("int()", "F.floor, F.cast, or for a number of steps F.contrib.while_loop")

    def __complex__(self) -> complex:
        raise NotImplementedForSymbol("complex()")

    def __index__(self) -> int:
        raise NotImplementedForSymbol("a whole number, as for range() or an index,", "F.take, F.pick or F.contrib.foreach")

    def __round__(self, digits: int | None = None) -> Any:
        raise NotImplementedForSymbol("round()", "F.round")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedForSymbol("a NumPy array of it", "the functions of F, which is mx.sym here")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise NotImplementedForSymbol("x[...] = value", "F.where or F.concat")

    def _in_place(self, other: Any) -> Self:
        raise NotImplementedForSymbol("assignment in place (+=, -=, ...)", "y = x + 1")

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __imod__ = __ipow__ = _in_place

    def __copy__(self) -> Self:
        return type(self)(copied(self.entries))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_json, (type(self), self.tojson(remove_amp_cast=False))

    def __repr__(self) -> str:
        name = self.name
        return f"<Symbol {name}>" if name is not None else f"<Symbol group [{', '.join(node.name for node, _ in self.entries)}]>"

    # ---- its outputs, as a sequence

    def __len__(self) -> int:
        _warn_of_elements(self)
        return len(self.entries)

    def __iter__(self) -> Iterator[Self]:
        _warn_of_elements(self)
        return (type(self)([entry]) for entry in self.entries)

    def __getitem__(self, index: int | str | slice) -> Self:
        """An output by its number or its name (`fc_output`), or several by a slice. Elements are selected by `slice_axis` and `split`.

        **Raises** ValueError if no output or several have the name, IndexError for a number out of range, TypeError for another index.
        """
        _warn_of_elements(self)
        if isinstance(index, str):
            found = [entry for entry in self.entries if entry[0].output_name(entry[1]) == index]
            if len(found) != 1:
                many = "several outputs are" if found else "no output is"
                raise ArgumentError(f"{many} called {index!r}; the symbol has {', '.join(self.list_outputs())}")
            return type(self)(found)
        if isinstance(index, slice):
            chosen = self.entries[index]
            if not chosen:
                raise ArgumentError(f"{index} selects none of the {len(self.entries)} outputs")
            return type(self)(chosen)
        if not isinstance(index, (int, np.integer)):
            raise ArgumentError(
                f"[...] selects an output of a Symbol, by its number or its name, got {shown(index)}. Elements are selected by "
                "slice_axis(axis=, begin=, end=), slice(), take() and split()"
            )
        if not 0 <= index < len(self.entries):
            raise OutOfRangeError(
                f"output {index} is asked for; the symbol has {len(self.entries)}. Elements are selected by slice_axis() and split()"
            )
        return type(self)([self.entries[index]])

    # ---- names

    @property
    def name(self) -> str | None:
        """The node's name; None for outputs of several nodes."""
        first = self.entries[0][0]
        return first.name if all(node is first for node, _ in self.entries) else None

    def list_arguments(self) -> list[str]:
        """Names of the variables that must be given, depth first. Auxiliary states are not among them."""
        return [node.name for node in inputs_of(self.entries)[0]]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the variables that operators keep their state in, such as `bn_moving_mean`."""
        return [node.name for node in inputs_of(self.entries)[1]]

    def list_inputs(self) -> list[str]:
        """Names of all variables."""
        return [node.name for node in topological_order(self.entries) if node.op is None]

    def list_outputs(self) -> list[str]:
        """Names of the outputs: `<node>_output`, or `<node>_output0` and so on if a node has several."""
        return [node.output_name(index) for node, index in self.entries]

    # ---- parts of the graph

    def get_internals(self) -> Self:
        """All outputs of all nodes, in topological order: `net.get_internals()["relu1_output"]` cuts the graph there."""
        return type(self)([entry for node in topological_order(self.entries) for entry in node.outputs])

    def get_children(self) -> Self | None:
        """The direct inputs; None for a variable."""
        nodes = dict.fromkeys(node for node, _ in self.entries)
        found = [entry for node in nodes for entry in node.inputs if entry is not None]
        return type(self)(found) if found else None

    def __call__(self, *args: Any, **kwargs: Any) -> Self:
        """A copy in which other Symbols stand in the places of variables: `net(data=other)`. `name=` renames the output's node.

        **Raises** TypeError for positional arguments beside named ones or for no Symbols, MXNetError for a name that no variable has.
        """
        name = kwargs.pop("name", None)
        if args:
            mixed = " beside named ones" if kwargs else ""
            raise ArgumentError(
                f"composition: inputs are given by name, {', '.join(self.list_inputs())}; got positional ones{mixed}"
            )
        values: dict[Node, Entry] = {}
        found = [node for node in topological_order(self.entries) if node.op is None]
        for key, value in kwargs.items():
            if not isinstance(value, Symbol):
                raise ArgumentError(f"composition: {key} must be a Symbol, got {type(value).__name__}")
            nodes = [node for node in found if node.name == key]
            if not nodes:
                raise ArgumentError(f"composition: no input is called {key!r}; the symbol has {', '.join(self.list_inputs())}")
            if len(value.entries) != 1:
                raise ArgumentError(f"composition: {key} has {len(value.entries)} outputs, one is wanted; select it with [0]")
            values.update((node, value.entries[0]) for node in nodes)
        entries = copied(self.entries, values)
        if name is not None and self.name is not None and entries[0] not in values.values():
            entries[0][0].name = name
        return type(self)(entries)

    # ---- attributes

    def attr(self, key: str) -> str | None:
        """An attribute of the node, its own or its operator's; None if it has none of that name. `lr_mult` finds `__lr_mult__`, too."""
        if self.name is None:
            return None
        attrs = self.entries[0][0].attrs
        found = attrs.get(key)
        return attrs.get(stored_key(key)) if found is None and key in NODE_KEYS else found

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """All attributes of the node. **Raises** ArgumentError for `recursive`: that is `attr_dict()`."""
        if recursive:
            raise ArgumentError("list_attr: attributes of all nodes are given by attr_dict()")
        return listed(self.entries[0][0].attrs)

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Attributes of all nodes that have any, by the node's name."""
        return {node.name: listed(node.attrs) for node in topological_order(self.entries) if node.attrs}

    def _set_attr(self, **kwargs: str) -> None:
        """Set attributes of the node. **Raises** ValueError for a value that is no string."""
        if self.name is None:
            raise ArgumentError("_set_attr: the symbol has outputs of several nodes; select one with [...]")
        self.entries[0][0].set_attrs(kwargs)

    # ---- shapes and dtypes (infer.py)

    def infer_shape(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Shapes of all arguments, outputs and auxiliary states from those of some arguments, given in order or by name.

        **Returns** three lists of tuples; (None, None, None), with a warning, if some shape does not follow. A length of 0 is unknown.
        **Raises** MXNetError if shapes contradict each other or a name is unknown, TypeError for a shape that is no tuple.
        **Source** MXNet `Symbol.infer_shape`.

        >>> from minimx import sym
        >>> sym.FullyConnected(sym.var("data"), num_hidden=4).infer_shape(data=(2, 3))
        ([(2, 3), (4, 3), (4,)], [(2, 4)], [])
        """
        return infer.infer_shape(self.entries, False, args, kwargs)

    def infer_shape_partial(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """`infer_shape` that tells what it knows: () for an unknown shape, 0 for an unknown length."""
        return infer.infer_shape(self.entries, True, args, kwargs)

    def infer_type(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """Dtypes of all arguments, outputs and auxiliary states from those of some arguments, given in order or by name.

        **Returns** three lists of NumPy's classes; (None, None, None), with a warning, if some dtype does not follow.
        **Raises** MXNetError if dtypes contradict each other or a name is unknown. **Source** MXNet `Symbol.infer_type`.
        """
        return infer.infer_type(self.entries, False, args, kwargs)

    def infer_type_partial(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, Any]:
        """`infer_type` that tells what it knows: None for an unknown dtype."""
        return infer.infer_type(self.entries, True, args, kwargs)

    # ---- text (serialize.py)

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """The graph in MXNet's JSON."""
        return serialize.to_json(self.entries, remove_amp_cast)

    def save(self, fname: str, remove_amp_cast: bool = True) -> None:
        """Write the graph in MXNet's JSON to the file `fname`."""
        serialize.save(self.entries, fname, remove_amp_cast)

    def debug_str(self) -> str:
        """The graph in words, node by node."""
        return serialize.describe(self.entries)

    # ---- execution (bind.py, executor.py)

    def bind(
        self,
        ctx: Context,
        args: Any,
        args_grad: Any = None,
        grad_req: Any = "write",
        aux_states: Any = None,
        group2ctx: Mapping[str, Context] | None = None,
        shared_exec: Executor | None = None,
    ) -> Executor:
        """An executor of this graph on the arrays `args`: a list in the order of `list_arguments()`, or a dict by name.

        **Args** `args_grad`: arrays that receive gradients, a list or a dict, which may leave some out; None for no gradients. `grad_req`:
        "write", "add" or "null", for all, or a list or dict. `aux_states`: arrays of the auxiliary states. `group2ctx`: devices by the
        attribute `ctx_group` of nodes.
        **Raises** ValueError for a missing array or a wrong number of them, TypeError for something else than arrays, MXNetError for
        shapes or dtypes that do not fit. **Source** MXNet `Symbol.bind`.
        """
        return bind(self, ctx, args, args_grad, grad_req, aux_states, group2ctx)

    def simple_bind(
        self,
        ctx: Context,
        grad_req: Any = "write",
        type_dict: Mapping[str, Any] | None = None,
        stype_dict: Mapping[str, str] | None = None,
        group2ctx: Mapping[str, Context] | None = None,
        shared_arg_names: list[str] | None = None,
        shared_exec: Executor | None = None,
        shared_buffer: dict[str, NDArray] | None = None,
        **kwargs: Any,
    ) -> Executor:
        """An executor with arrays of its own, filled with zeros. Their shapes follow from those given: `simple_bind(ctx, data=(2, 3))`.

        **Args** `grad_req` as in `bind`; a dict means "null" for those left out. `type_dict`: dtypes by name; float32 where nothing else
        follows. `shared_buffer`: arrays by name that are used where they are large enough, and that receives new ones. `shared_exec`:
        its arrays are used where name, shape and dtype are equal, those of `shared_arg_names` among the arguments.
        **Raises** RuntimeError "simple_bind error. ..." for anything that does not fit. **Source** MXNet `Symbol.simple_bind`.
        """
        return simple_bind(
            self, ctx, grad_req, type_dict, stype_dict, group2ctx, shared_arg_names, shared_exec, shared_buffer, kwargs
        )

    def eval(self, ctx: Context | None = None, **kwargs: NDArray) -> list[NDArray]:
        """The outputs for the given arrays, as a list. **Source** MXNet `Symbol.eval`."""
        return evaluate(self, ctx, kwargs)

    def optimize_for(
        self, backend: str, args: Mapping[str, NDArray] | None = None, aux: Mapping[str, NDArray] | None = None,
        ctx: Context | None = None, shape_dict: Mapping[str, Any] | None = None, type_dict: Mapping[str, Any] | None = None,
        stype_dict: Mapping[str, str] | None = None, skip_infer: bool = False, **kwargs: Any,
    ) -> Self:  # fmt: skip
        """The same graph with the parts that `backend` can compute as single nodes, which it computes in inference.

        Arguments and auxiliary states stay as they are, and gradients are those of the operators.
        **Args** `backend`: the name of one of `sym.backends.names()`. `args`, `aux`, `shape_dict`, `type_dict`: arrays, shapes and dtypes
        by the names of variables, which are checked against the graph unless `skip_infer`. `kwargs`: options of the backend.
        **Raises** ValueError for an unknown backend or option, MXNetError if the backend's package is not installed.
        **Source** MXNet `Symbol.optimize_for`.
        """
        return type(self)(optimized(self.entries, backend, args, aux, ctx, shape_dict, type_dict, stype_dict, skip_infer, kwargs))

    def get_backend_symbol(self, backend: str) -> Self:
        """`optimize_for(backend)` without anything else. **Source** MXNet `Symbol.get_backend_symbol`."""
        return self.optimize_for(backend)

    # ---- methods that an array has in another form

    def reshape(self, *shape: Any, **kwargs: Any) -> Self:
        """The same elements in another shape: `x.reshape((2, -1))` or `x.reshape(2, -1)`. See `sym.reshape` for the codes."""
        codes = kwargs.pop("shape", shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
        return _shape_ops.reshape(self, codes, **kwargs)

    def flatten(self, inplace: bool = False, **how: Any) -> Self:
        """All axes but the first joined into one. `inplace` is accepted and means nothing here."""
        return _shape_ops.flatten(self, **how)

    def expand_dims(self, axis: int, inplace: bool = False, **how: Any) -> Self:
        """A new axis of length 1 before `axis`. `inplace` is accepted and means nothing here."""
        return _shape_ops.expand_dims(self, axis, **how)

    def squeeze(self, axis: Any = None, inplace: bool = False, **how: Any) -> Self:
        """Axes of length 1 left out. `inplace` is accepted and means nothing here."""
        return _shape_ops.squeeze(self, axis, **how)

    def astype(self, dtype: Any, **how: Any) -> Self:
        """The elements converted to `dtype`."""
        return _casting_ops.cast(self, as_dtype(dtype), **how)

    def as_nd_ndarray(self) -> Self:
        return self

    # ---- what needs a value

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say of an array's attribute why a Symbol has none."""
            instead = VALUES_ONLY.get(name)
            if instead is None:
                said = "" if name.startswith("_") else did_you_mean(name, (each for each in dir(self) if each[0] != "_"))
                raise AttributeError(f"'Symbol' object has no attribute {name!r}{said}", name=name)
            raise AttributeError(f"a Symbol has no {name}: one graph serves all shapes, dtypes and devices. {instead}")

    def asnumpy(self) -> Any:
        raise NotImplementedForSymbol("asnumpy")

    def asscalar(self) -> Any:
        raise NotImplementedForSymbol("asscalar")

    def item(self) -> Any:
        raise NotImplementedForSymbol("item")

    def wait_to_read(self) -> None:
        raise NotImplementedForSymbol("wait_to_read")

    def copy(self) -> Any:
        raise NotImplementedForSymbol("copy", "sym.identity")

    def copyto(self, other: Any = None) -> Any:
        raise NotImplementedForSymbol("copyto")

    def as_in_context(self, context: Any = None) -> Any:
        raise NotImplementedForSymbol("as_in_context")

    def detach(self) -> Any:
        raise NotImplementedForSymbol("detach", "sym.BlockGrad")

    def attach_grad(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedForSymbol("attach_grad")

    def backward(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedForSymbol("backward")


def _single(op: Op, position: int, operand: Any) -> Entry | None:
    """The entry that is an operand; None for an absent one. Raises ArgumentError for anything but a Symbol of one output."""
    if operand is None:
        return None
    name = op.inputs[min(position, len(op.inputs) - 1)].rstrip("?*")
    if not isinstance(operand, Symbol):
        advice = "they cannot be mixed. In a block, make it with F, or as a constant with params.get_constant()"
        array = isinstance(operand, (Tensor, np.ndarray))
        mixed = f" and another operand a Symbol; {advice}" if array else f", a Symbol is wanted{advice_on_list(operand, op)}"
        raise ArgumentError(f"{op.name}: {name} is {shown(operand)}{mixed}")
    if len(operand.entries) != 1:
        raise ArgumentError(f"{op.name}: {name} is a Symbol of {len(operand.entries)} outputs, one is wanted; select it with [0]")
    return operand.entries[0]


def _warn_of_elements(symbol: Symbol) -> None:
    """Warn if a block is being traced: for an array the same code would mean its elements. Not if the node can have several outputs."""
    op = symbol.entries[0][0].op
    if autograd.state.asked is not None and len(symbol.entries) == 1 and (op is None or type(op).num_outputs is Op.num_outputs):
        warnings.warn(
            f"[...], len() and iteration mean the outputs of {symbol!r} while a block is traced, of which it has one; for an array they "
            "mean elements. Use F.slice_axis, F.split or F.take for elements, F.contrib.foreach for a loop over them",
            stacklevel=3,
        )


def _from_json(kind: type[Symbol], text: str) -> Symbol:
    return kind(serialize.from_json(text))


open_calls.append(Symbol._apply)
