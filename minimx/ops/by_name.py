"""Any operator by the name that MXNet registers it under, for `nd._internal` and `sym._internal`.

Most operators have a function of their own, which says what it does. Those that MXNet has for itself (`_plus_scalar`, `_zeros`) need none
here, for nobody calls them but by Python's operators and other functions. Scripts that name them all the same get one that takes what the
operator takes: the inputs first or by name, attributes by name or, where there are inputs, in their order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from ..base import ArgumentError
from ..fields import spelt
from ..op import KNOWN, REGISTRY, Op, Tensor, is_node_key
from .distributions import Random

Enter = Callable[[Op, Sequence[Any], dict[str, Any]], Any]  # an operator, its operands, and the keywords of a call


def function_for(module: str, name: str, enter: Enter) -> Callable[..., Any]:
    """The function for the operator `name`. Raises AttributeError if there is none, as modules do. `enter`: what applies it."""
    cls = REGISTRY.get(name)
    if cls is None or cls.composite:
        raise AttributeError(f"module {module!r} has no attribute {name!r}: no operator of this name can be called")

    def call(*args: Any, **kwargs: Any) -> Any:
        operands, rest = operands_of(cls, args, kwargs)
        names = attributes_of(cls)
        if len(rest) > len(names) or (rest and "value" in names):  # MXNet has that of _full after what we have no place for
            raise ArgumentError(
                f"{name}: {len(args)} arguments are given by position; name those that are no inputs: {', '.join(names)}"
            )
        attrs = dict(zip(names, rest))
        for key in [key for key in kwargs if key not in KNOWN and key != "ctx" and not is_node_key(key)]:
            attrs[key] = kwargs.pop(key)
        return enter(cls.from_attrs(attrs), operands, kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"MXNet's operator `{name}`. **Args** inputs {', '.join(cls.inputs) or 'none'}; attributes by name."
    return call


def attributes_of(cls: type[Op]) -> list[str]:
    """The names of the attributes in MXNet's order: the parameters of a distribution come before shape and dtype."""
    names = [spelt(field) for field in dataclasses.fields(cls) if not field.metadata.get("hidden")]
    return sorted(names, key=("shape", "dtype").__contains__) if issubclass(cls, Random) else names


def operands_of(cls: type[Op], args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], Sequence[Any]]:
    """The operands among the arguments of a call, which are taken out of `kwargs`, and what else was given by position."""
    if cls.inputs and cls.inputs[-1].endswith("*"):
        return list(args), ()
    known = [name.rstrip("?") for name in cls.inputs]
    count = next((number for number, each in enumerate(args) if not (isinstance(each, Tensor) or each is None)), len(args))
    count = min(count, len(known))
    operands = list(args[:count])
    operands += [kwargs.pop(name, None) for name in known[count:]]
    return operands, args[count:]
