"""`mx.operator`: operators that users write, and what is known about all operators.

`register` enters a CustomOpProp; `mx.nd.Custom`, `mx.sym.Custom` and `F.Custom` in a block call it (ops/custom.py, nd/custom.py).
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from .fields import spelt, split
from .op import REGISTRY, find
from .ops.custom import CustomOp, CustomOpProp, UserDefined, register

__all__ = ["CustomOp", "CustomOpProp", "OperatorArguments", "get_all_registered_operators", "get_operator_arguments", "register"]

# What MXNet calls the kinds of attributes.
WORDS = {
    "bool": "boolean", "float": "float", "int": "int", "str": "string", "tuple[float, ...]": "tuple of <float>",
    "tuple[int, ...]": "Shape(tuple)", "tuple[int | None, ...]": "Shape(tuple)",
}  # fmt: skip


class OperatorArguments(NamedTuple):
    """What an operator takes: how many arguments, their names, and in words what each is."""

    narg: int
    names: list[str]
    types: list[str]


def get_all_registered_operators() -> list[str]:
    """The names of all operators, as files know them, in alphabetical order. **Source** MXNet `operator.get_all_registered_operators`.

    >>> "FullyConnected" in get_all_registered_operators()
    True
    """
    return sorted(REGISTRY)


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """The arguments of the operator `op_name`: inputs, then attributes. **Raises** ArgumentError if there is no such operator.

    **Source** MXNet `operator.get_operator_arguments`, which also lists the words that an attribute may be.

    >>> get_operator_arguments("Flatten")
    OperatorArguments(narg=1, names=['data'], types=['NDArray-or-Symbol'])
    """
    cls = find(op_name)
    if issubclass(cls, UserDefined):
        return OperatorArguments(2, ["data", "op_type"], ["NDArray-or-Symbol[]", "string, required"])
    found = [(each.rstrip("?*"), "NDArray-or-Symbol" + "[]" * each.endswith("*")) for each in cls.inputs]
    found += [
        (spelt(field), _words(field, field.name in cls.required))
        for field in dataclasses.fields(cls)
        if not field.metadata.get("hidden")
    ]
    return OperatorArguments(len(found), [name for name, _ in found], [kind for _, kind in found])


def _words(field: dataclasses.Field[Any], required: bool) -> str:
    kind, optional = split(str(field.type))
    word = WORDS.get(kind, kind.removeprefix("np.").removesuffix("[Any]")) + " or None" * optional
    if required or field.default is dataclasses.MISSING:
        return f"{word}, required"
    default = int(field.default) if isinstance(field.default, bool) else field.default
    return f"{word}, optional, default={list(default) if isinstance(default, tuple) else default!r}"
