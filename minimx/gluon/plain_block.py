"""Block: a layer, or a network of layers, that computes with arrays.

A Block has parameters and children, which are registered when they are assigned as attributes: that makes a tree. What is done to a
network - collecting parameters, initializing, saving, casting - is done by a walk over it. What it computes is its `forward`, which
runs like any Python code. hybrid_block.py has those that can also become a graph; block.py exports both. Book: chapter 4.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from .. import nd
from ..base import ArgumentError, shown
from ..keywords import name_unknown
from . import architecture
from .parameter import BY_EXPORT, Parameter, ParameterDict, ParameterError, is_exported, named_arrays
from .scope import _BlockScope
from .summary import summarize
from .utils import HookHandle, brief_list, indented
from .weight import Devices

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Block"]


@name_unknown
class Block:
    """The base of all layers and networks. A subclass makes its parameters and children in `__init__` and overrides `forward`.

    **Args** `prefix`: goes before the names of its parameters and, inside `name_scope()`, of its children; made from the class's name
    and a number by default; "" for none. `params`: parameters to share, such as `other.params`. **Source** MXNet `gluon.Block`.

    >>> from minimx import gluon
    >>> class Twice(gluon.Block):
    ...     def forward(self, x):
    ...         return x * 2
    >>> Twice()(mx.nd.ones((2,))).asnumpy().tolist()
    [2.0, 2.0]
    """

    #: A container of layers: it only calls its children, and has no line in a summary.
    is_container: ClassVar[bool] = False

    _forward_is_traced = False  # whether a call runs a graph of `forward` in its place: see HybridBlock

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name_unknown(cls)

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        if prefix is not None and not isinstance(prefix, str):
            raise ArgumentError(f"{type(self).__name__}: prefix must be a string, got {shown(prefix)}")
        self._empty_prefix = prefix == ""
        self._prefix, self._params = _BlockScope.create(prefix, params, self._alias())
        self._name = self._prefix.removesuffix("_")
        self._scope = _BlockScope(self)
        self._children: dict[str, Block] = {}
        self._reg_params: dict[str, Parameter] = {}  # by the attribute
        self._forward_hooks: dict[int, Callable[..., Any]] = {}
        self._forward_pre_hooks: dict[int, Callable[..., Any]] = {}

    def __repr__(self) -> str:
        return self._described((key, each) for key, each in self.__dict__.items() if isinstance(each, Block))

    def _described(self, children: Any) -> str:
        lines = "\n".join(f"  ({key}): {indented(repr(each), 2)}" for key, each in children)
        return f"{type(self).__name__}(\n{lines}\n)"

    def __setattr__(self, name: str, value: Any) -> None:
        """Blocks and parameters that become attributes are registered. **Raises** TypeError for another type in the place of one."""
        existing = self.__dict__.get(name)
        if isinstance(existing, (Parameter, Block)) and not isinstance(value, type(existing)):
            raise TypeError(f"Changing attribute type for {name} from {type(existing)} to {type(value)} is not allowed.")
        if isinstance(value, (Parameter, Block)) and "_children" not in self.__dict__:
            raise ArgumentError(f"{type(self).__name__}: call super().__init__() before blocks or parameters are assigned")
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            if name in self._reg_params:
                raise ParameterError(
                    f"Overriding Parameter attribute {name} is not allowed. If you want to share parameters between blocks, pass "
                    "'params' when the block is made."
                )
            self._reg_params[name] = value
        super().__setattr__(name, value)

    # ---- names

    def _alias(self) -> str:
        """What automatic prefixes begin with."""
        return type(self).__name__.lower()

    @property
    def prefix(self) -> str:
        """What goes before the names of parameters."""
        return self._prefix

    @property
    def name(self) -> str:
        """The prefix without the underscore at its end."""
        return self._name

    def name_scope(self) -> _BlockScope:
        """A `with` block in which blocks that are made, and nodes of graphs, have this one's prefix before their names."""
        return self._scope

    # ---- the tree

    def register_child(self, block: Block, name: str | None = None) -> None:
        """Make `block` a child, called by its number if it has no `name`. Assigning it as an attribute does the same.

        **Raises** ArgumentError if `block` is none, or if this block is in it: a network has no cycles.
        """
        if not isinstance(block, Block):
            raise ArgumentError(f"{self.name}: a child must be a block, got {shown(block)}{_instead_of(block)}")
        if self in below(block):
            raise ArgumentError(f"{self.name} cannot be a part of {block.name}, which would be a part of it")
        self._children[str(len(self._children)) if name is None else name] = block

    def apply(self, fn: Callable[[Block], Any]) -> Self:
        """Call `fn` with each block below this one, children first, and then with this one."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    @property
    def params(self) -> ParameterDict:
        """The block's own parameters, without those of its children."""
        return self._params

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """The parameters of this block, and then of all below it; `select`, a regular expression, must match the beginning of a name.

        Warns about blocks in lists and dicts, which are not registered.
        """
        self._check_container_with_block()
        found = ParameterDict(self._params.prefix)
        pattern = re.compile(select or "")
        found.update({name: param for name, param in self.params.items() if pattern.match(name)})
        for child in self._children.values():
            found.update(child.collect_params(select))
        return found

    def _check_container_with_block(self) -> None:
        """Warn about attributes that hold blocks which are no children."""
        children = set(self._children.values())
        for key, value in self.__dict__.items():
            if key != "_children" and isinstance(value, (list, tuple, dict)) and not children.issuperset(_blocks_in(value)):
                warnings.warn(
                    f'"{type(self).__name__}.{key}" is an unregistered container with Blocks. Blocks inside a list, tuple or dict are not '
                    "registered automatically, so their parameters are not found. Register them with register_child(), or use "
                    "nn.Sequential or nn.HybridSequential instead.",
                    stacklevel=3,
                )

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """All parameters by their place in the tree: `features.0.weight`."""
        start = prefix + "." if prefix else ""
        found = {start + key: param for key, param in self._reg_params.items()}
        for name, child in self._children.items():
            found.update(child._collect_params_with_prefix(start + name))
        return found

    def initialize(self, init: Any = None, ctx: Devices = None, verbose: bool = False, force_reinit: bool = False) -> None:
        """Initialize all parameters on the devices `ctx`. `init` (Uniform() by default) serves those that have none of their own."""
        self.collect_params().initialize(init, ctx, verbose, force_reinit)

    def cast(self, dtype: Any) -> None:
        """Convert all parameters to `dtype`."""
        for child in self._children.values():
            child.cast(dtype)
        for param in self.params.values():
            param.cast(dtype)

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Hybridize all children that can be: see `HybridBlock.hybridize`."""
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    # ---- calling

    def __call__(self, *args: Any) -> Any:
        if self._forward_pre_hooks:
            for hook in tuple(self._forward_pre_hooks.values()):
                hook(self, args)
        out = self._call_traced_forward(*args) if self._forward_is_traced else self.forward(*args)
        if self._forward_hooks:
            for hook in tuple(self._forward_hooks.values()):
                hook(self, args, out)
        return out

    def _call_traced_forward(self, *args: Any) -> Any:
        """Run `forward` as a graph."""
        raise NotImplementedError

    def forward(self, *args: Any) -> Any:
        """What the block computes; subclasses override it."""
        raise NotImplementedError(f"{type(self).__name__} must override forward")

    def register_forward_pre_hook(self, hook: Callable[[Block, tuple[Any, ...]], Any]) -> HookHandle:
        """Have `hook(block, inputs)` called before each forward. **Returns** a handle whose `detach()` ends that."""
        handle = HookHandle()
        handle.attach(self._forward_pre_hooks, hook)
        return handle

    def register_forward_hook(self, hook: Callable[[Block, tuple[Any, ...], Any], Any]) -> HookHandle:
        """Have `hook(block, inputs, outputs)` called after each forward. **Returns** a handle whose `detach()` ends that."""
        handle = HookHandle()
        handle.attach(self._forward_hooks, hook)
        return handle

    def register_op_hook(self, callback: Callable[[str, str, Any], Any] | None, monitor_all: bool = False) -> None:
        """Have `callback(name, operator, array)` called for each operator's outputs in hybridized blocks below this one.

        **Args** `monitor_all`: for the inputs, too.
        """
        for child in self._children.values():
            child.register_op_hook(callback, monitor_all)

    def summary(self, *inputs: Any) -> None:
        """Print a table of all layers, with the shapes of their outputs for `inputs` and the numbers of their parameters.

        **Raises** AssertionError if the network, or a part of it, is hybridized: then its layers are not called one by one.
        """
        summarize(self, inputs)

    # ---- files

    def save_parameters(self, filename: str, deduplicate: bool = False) -> None:
        """Write all parameters to a file, by their places in the tree: prefixes do not matter when they are loaded.

        **Args** `deduplicate`: write shared ones once. **Source** MXNet `Block.save_parameters`.
        """
        params = self._collect_params_with_prefix()
        if deduplicate:
            names = {param: name for name, param in params.items()}
            params = {name: param for param, name in names.items()}
        nd.save(filename, {name: param._reduce() for name, param in params.items()})

    def load_parameters(
        self, filename: str, ctx: Devices = None, allow_missing: bool = False, ignore_extra: bool = False, cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:  # fmt: skip
        """Read parameters from a file that `save_parameters`, or `ParameterDict.save`, wrote.

        **Args** `ctx`: devices of parameters that are not initialized yet, the CPU by default. `allow_missing`, `ignore_extra`: the
        file may lack parameters, or have more. `cast_dtype`: where dtypes differ, convert to that of the parameter (`dtype_source`
        "current") or take that of the file ("saved"). **Raises** AssertionError for a missing parameter, or one that does not fit;
        ValueError for one too many. **Source** MXNet `Block.load_parameters`.
        """
        loaded = named_arrays(nd.load(filename), filename)
        params = self._collect_params_with_prefix()
        if not loaded and not params:
            return
        advice = f"{BY_EXPORT}: read it with SymbolBlock.imports." if is_exported(loaded) else None
        if not any("." in name for name in loaded) and not loaded.keys() <= params.keys():
            # By full names, as ParameterDict.save writes them with the block's prefix taken off.
            self.collect_params().load_dict(
                loaded, ctx, allow_missing, ignore_extra, self.prefix, filename, cast_dtype, dtype_source, advice
            )
            return
        if not allow_missing:
            self._require_all(params, loaded, filename, advice or "")
        for name, array in loaded.items():
            if name in params:
                params[name]._load_init(array, ctx, cast_dtype, dtype_source)
            elif not ignore_extra:
                raise ParameterError(
                    f"Parameter '{name}' loaded from file '{filename}' is not present in the block, which has parameters "
                    f"{brief_list(params)}. Set ignore_extra=True to ignore. {advice or ''}".rstrip()
                )

    @staticmethod
    def _require_all(params: Mapping[str, Parameter], loaded: Mapping[str, Any], filename: str, advice: str) -> None:
        """Raise ParameterError for a parameter that the file has under none of its names: a shared one has several."""
        names = defaultdict(list)
        for name, param in params.items():
            names[param].append(name)
        for name, param in params.items():
            if not any(each in loaded for each in names[param]):
                raise ParameterError(
                    f"Parameter '{name}' is missing in file '{filename}', which contains parameters: {brief_list(loaded)}. "
                    f"Set allow_missing=True to ignore missing parameters. {advice}".rstrip()
                )

    def save_params(self, filename: str) -> None:
        """Deprecated: write all parameters by their full names, without this block's prefix."""
        warnings.warn(
            "save_params is deprecated; use save_parameters, or export for a SymbolBlock", DeprecationWarning, stacklevel=2
        )
        self.collect_params().save(filename, strip_prefix=self.prefix)

    def load_params(self, filename: str, ctx: Devices = None, allow_missing: bool = False, ignore_extra: bool = False) -> None:
        """Deprecated: the same as `load_parameters`."""
        warnings.warn("load_params is deprecated; use load_parameters", DeprecationWarning, stacklevel=2)
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)

    def save(self, prefix: str) -> None:
        """Write `prefix-model.json`, the tree with names and hybridized graphs, and `prefix-model.params`, its parameters."""
        architecture.save(self, f"{prefix}-model.json")
        self.save_parameters(f"{prefix}-model.params")

    def load(self, prefix: str) -> None:
        """Read what `save` wrote into a network that was made by the same code: names, graphs and parameters become those of the files.

        **Raises** FileFormatError if the tree is another one.
        """
        architecture.load(self, f"{prefix}-model.json")
        self.load_parameters(f"{prefix}-model.params")

    def _save_graph(self) -> dict[str, Any]:
        """What `save` has to remember of this block beyond its names."""
        return {}

    def _graph_in(self, saved: Mapping[str, Any]) -> Any:
        """The graph that `_save_graph` remembered; None without one. Raises for what cannot be one."""

    def _load_graph(self, saved: Mapping[str, Any]) -> None:
        """Take over what `_save_graph` remembered."""


def _instead_of(value: Any) -> str:
    """What to do with what was taken for a block, as the end of a message."""
    if isinstance(value, (list, tuple)):
        return "; layers are added one by one, as in add(*layers)"
    if isinstance(value, type):
        return f"; call it to make one: {value.__name__}(...)"
    return "; nn.Lambda and nn.HybridLambda make a block of a function" if callable(value) else ""


def below(block: Block) -> Iterator[Block]:
    """`block`, and all blocks that it consists of."""
    waiting = [block]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += each._children.values()


def _blocks_in(value: Any) -> Iterator[Block]:
    """All blocks in nested lists, tuples and dicts."""
    if isinstance(value, Block):
        yield value
    elif isinstance(value, (list, tuple, dict)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _blocks_in(each)
