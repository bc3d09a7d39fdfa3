"""Functions that make Symbols: variables, groups, nodes without inputs (zeros, arange, ...), and graphs from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..attribute import AttrScope
from ..base import CODE_OF_DTYPE, ArgumentError, DTypeLike, as_dtype
from ..files import PathLike
from ..op import Op, is_node_key
from ..ops import creation as _ops, powers
from ..ops.forms import as_number
from . import serialize
from .conventions import attr_text
from .graph import Node, apply_node, given_attrs
from .symbol import Symbol

ShapeLike = int | Sequence[int]

__all__ = [
    "Group", "Variable", "arange", "eye", "full", "hypot", "linspace", "load", "load_json", "loads", "maximum", "minimum", "ones", "pow",
    "power", "var", "zeros",
]  # fmt: skip


def var(
    name: str,
    attr: dict[str, str] | None = None,
    shape: ShapeLike | None = None,
    lr_mult: float | None = None,
    wd_mult: float | None = None,
    dtype: DTypeLike = None,
    init: Any = None,
    stype: str | None = None,
    **kwargs: Any,
) -> Symbol:
    """A variable: a Symbol whose value is given when the graph is bound.

    **Args** `shape`, `dtype`: what it is expected to be; a length of 0 is unknown. `init`: an initializer, or its name or JSON. `lr_mult`,
    `wd_mult`: factors of the learning rate and weight decay. `kwargs`: further attributes of the form `__name__`.
    **Raises** TypeError for a name that is no string, ValueError for another keyword or an attribute that is no string.
    **Source** MXNet `sym.var`.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"var: name must be a string, got {type(name).__name__}")
    attrs = dict(AttrScope.current.get(attr))
    if shape is not None:
        lengths = as_lengths(f"var {name!r}", shape)
        attrs["__shape__"] = str(lengths[0] if isinstance(shape, int) else lengths)
    for key, factor in (("__lr_mult__", lr_mult), ("__wd_mult__", wd_mult)):
        if factor is not None:
            attrs[key] = str(factor)
    if dtype is not None:
        attrs["__dtype__"] = str(CODE_OF_DTYPE[as_dtype(dtype)])
    if init is not None:
        attrs["__init__"] = init if isinstance(init, str) else init.dumps()
    if stype is not None:
        if stype != "default":
            raise ArgumentError(f"var: storage type {stype!r} does not exist here; only 'default' (dense) does")
        attrs["__storage_type__"] = "0"
    for key, value in kwargs.items():
        if not (key.startswith("__") and key.endswith("__")):
            raise ArgumentError(f"var: unknown argument {key!r}; further attributes are called __{key}__")
        attrs[key] = str(value)
    node = Node(None, name, {})
    node.set_attrs(attrs)
    return Symbol([(node, 0)])


Variable = var


def Group(symbols: Sequence[Symbol], create_fn: type[Symbol] = Symbol) -> Symbol:
    """One Symbol with the outputs of several. **Raises** TypeError for anything but a list of Symbols. **Source** MXNet `sym.Group`."""
    if isinstance(symbols, Symbol) or not symbols or any(not isinstance(symbol, Symbol) for symbol in symbols):
        raise ArgumentError("Group: a list of Symbols is wanted")
    return create_fn([entry for symbol in symbols for entry in symbol.entries])


# ---- nodes without inputs


def created(op: Op, given: dict[str, Any], how: dict[str, Any]) -> Symbol:
    """A node of an operator without inputs, with the attributes `given` written down. `how`: name, attr, _hint, further attributes."""
    unknown = {key for key in how if not is_node_key(key)} - {"name", "attr", "ctx", "_hint"}
    if how.get("stype", "default") == "default":
        unknown -= {"stype"}
    if unknown:
        raise ArgumentError(f"{op.name}: unknown argument {', '.join(sorted(unknown))}; it takes {', '.join(given)}, name, attr")
    texts = {key: attr_text(value) for key, value in given.items()}
    return Symbol(apply_node(op, [], how.get("name"), how.get("_hint"), given_attrs(op, how), texts).outputs)


def as_lengths(name: str, shape: ShapeLike) -> tuple[int, ...]:
    """`shape` as a tuple. Raises ArgumentError for what is none."""
    try:
        return (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(length) for length in shape)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: shape must be an int or a tuple of int, got {shape!r}") from None


def as_open_shape(name: str, shape: ShapeLike) -> tuple[int, ...]:
    """`shape` as a tuple. Lengths of 0 are unknown: they follow from what the node is combined with. MXNet writes -1 for them, too."""
    return tuple(0 if length == -1 else length for length in as_lengths(name, shape))


def zeros(shape: ShapeLike, dtype: DTypeLike = None, **kwargs: Any) -> Symbol:
    """Zeros of `shape`, in which 0 is a length that follows from the node's use. **Source** MXNet `sym.zeros`."""
    lengths, kind = as_open_shape("sym.zeros", shape), as_dtype(dtype)
    return created(_ops.Zeros(lengths, kind), {"shape": lengths, "dtype": kind}, kwargs)


def ones(shape: ShapeLike, dtype: DTypeLike = None, **kwargs: Any) -> Symbol:
    """Ones of `shape`, in which 0 is a length that follows from the node's use. **Source** MXNet `sym.ones`."""
    lengths, kind = as_open_shape("sym.ones", shape), as_dtype(dtype)
    return created(_ops.Ones(lengths, kind), {"shape": lengths, "dtype": kind}, kwargs)


def full(shape: ShapeLike, val: float, dtype: DTypeLike = None, **kwargs: Any) -> Symbol:
    """`val` in each element of `shape`. **Source** MXNet `sym.full`."""
    lengths, kind = as_open_shape("sym.full", shape), as_dtype(dtype)
    value = float(as_number(val, "sym.full: val"))
    return created(_ops.Full(value, lengths, kind), {"value": value, "shape": lengths, "dtype": kind}, kwargs)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    name: str | None = None,
    dtype: DTypeLike = None,
) -> Symbol:
    """Numbers from `start` (0 if only one bound is given) to `stop`, which is left out. **Source** MXNet `sym.arange`."""
    kind = as_dtype(dtype)
    op = _ops.Arange(start, stop, step, int(repeat), bool(infer_range), kind)
    given = {"start": start, "stop": stop, "step": step, "repeat": repeat, "infer_range": infer_range, "dtype": kind}
    return created(op, given, {"name": name})


def linspace(
    start: float, stop: float, num: int, endpoint: bool = True, name: str | None = None, dtype: DTypeLike = None
) -> Symbol:
    """`num` numbers at equal distances from `start` to `stop`, which is the last if `endpoint`. **Source** MXNet `sym.linspace`."""
    kind = as_dtype(dtype)
    op = _ops.Linspace(start, stop, int(num), bool(endpoint), kind)
    return created(op, {"start": start, "stop": stop, "num": num, "endpoint": endpoint, "dtype": kind}, {"name": name})


def eye(N: int, M: int = 0, k: int = 0, dtype: DTypeLike = None, **kwargs: Any) -> Symbol:
    """N x M (M = 0: square) zeros with ones on the `k`-th diagonal. **Source** MXNet `sym.eye`."""
    kind = as_dtype(dtype)
    return created(_ops.Eye(int(N), int(M), int(k), kind), {"N": N, "M": M, "k": k, "dtype": kind}, kwargs)


# ---- of two Symbols of equal shapes, or a Symbol and a number


def maximum(left: Any, right: Any) -> Any:
    """The larger of two, elementwise: Symbols of equal shapes, or one of them a number. See `broadcast_maximum` for other shapes."""
    return powers.MAXIMUM.operator(left, right)


def minimum(left: Any, right: Any) -> Any:
    """The smaller of two, elementwise: Symbols of equal shapes, or one of them a number. See `broadcast_minimum` for other shapes."""
    return powers.MINIMUM.operator(left, right)


def power(base: Any, exp: Any) -> Any:
    """`base ** exp`, elementwise: Symbols of equal shapes, or one of them a number. See `broadcast_power` for other shapes."""
    return powers.POWER.operator(base, exp)


pow = power


def hypot(left: Any, right: Any) -> Any:
    """`sqrt(left**2 + right**2)`, elementwise: Symbols of equal shapes, or one of them a number. See `broadcast_hypot` for other shapes."""
    return powers.HYPOT.operator(left, right)


# ---- files


def load(fname: PathLike) -> Symbol:
    """The graph in a JSON file that MXNet (from 0.8 on) or `Symbol.save` wrote. **Raises** MXNetError if it cannot be read."""
    return Symbol(serialize.read_file(fname))


def load_json(json_str: str) -> Symbol:
    """The graph in a JSON string, as `Symbol.tojson` gives it. **Raises** MXNetError if it is none, TypeError for no string."""
    return Symbol(serialize.from_json(json_str))


loads = load_json
