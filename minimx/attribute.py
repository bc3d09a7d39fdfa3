"""Attributes for all nodes that are made inside a `with` block: `AttrScope`.

    with mx.AttrScope(ctx_group="first"):
        hidden = mx.sym.FullyConnected(data, num_hidden=8)

Each thread has a current scope. Inner scopes add to outer ones and win over them; what is given with a node wins over both.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Any, ClassVar

from .base import ArgumentError
from .name import PerThread

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["AttrScope"]


class _Scopes(PerThread):
    def outermost(cls) -> Any:
        return AttrScope()


class AttrScope(metaclass=_Scopes):
    """A scope whose keywords become attributes of the nodes made in it.

    **Args** names of operators' attributes must be of the form `__name__`, or one of ctx_group, lr_mult, wd_mult, force_mirroring,
    mirror_stage. **Raises** ValueError for a value that is no string. **Source** MXNet `attribute.AttrScope`.
    """

    _threads: ClassVar[threading.local] = threading.local()
    _subgraph_names: ClassVar[defaultdict[str, int]] = defaultdict(int)  # how many loops and branches were named so

    def __init__(self, **kwargs: str) -> None:
        for key, value in kwargs.items():
            if not isinstance(value, str):
                raise ArgumentError(f"AttrScope: {key}={value!r}: a string is wanted")
        self._attr = kwargs
        self._outer: list[
            tuple[Any, dict[str, str]]
        ] = []  # for each time it was entered: the scope around, and its own attributes

    def get(self, attr: dict[str, str] | None) -> dict[str, str]:
        """The scope's attributes, with those of `attr` added and preferred: a new dict."""
        return {**self._attr, **(attr or {})}

    def __enter__(self) -> Self:
        around = AttrScope.current
        self._outer.append((around, self._attr))
        self._attr = around.get(self._attr)
        AttrScope.current = self
        return self

    def __exit__(self, *exc: object) -> None:
        AttrScope.current, self._attr = self._outer.pop()
