"""How blocks get their names: the scope inside `with net.name_scope():`.

A block made inside the scope of another one has that one's prefix before its own, `net0_dense0_`, and is counted there. Outside any
scope the thread's NameManager counts. The scope also puts the prefix before the names of operators, so that a graph says which layer
a node belongs to. Book: chapter 4.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ..name import NameManager, Prefix
from .parameter import ParameterDict

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["_BlockScope"]


class _BlockScope:
    """The scope of a block: the names of its children. A `with` block makes it the current one of the thread; it may be entered again."""

    _current = threading.local()  # .value: the innermost scope of the thread; .outer: what was current around each scope entered

    def __init__(self, block: Any) -> None:
        self._block = block
        self._counter: dict[str, int] = {}

    @staticmethod
    def create(prefix: str | None, params: ParameterDict | None, hint: str) -> tuple[str, ParameterDict]:
        """The full prefix of a new block, and the dict for its parameters.

        **Args** `prefix`: the one that was asked for; None: `hint` and a number. `params`: parameters to share, found by their full
        names; None: those that the surrounding block shares.
        """
        current = getattr(_BlockScope._current, "value", None)
        if current is None:
            if prefix is None:
                prefix = NameManager.current.get(None, hint) + "_"
            return prefix, ParameterDict(prefix) if params is None else ParameterDict(params.prefix, params)
        if prefix is None:
            number = current._counter.get(hint, 0)
            current._counter[hint] = number + 1
            prefix = f"{hint}{number}_"
        if params is None:
            around = current._block.params
            params = ParameterDict(around.prefix + prefix, around._shared)
        else:
            params = ParameterDict(params.prefix, params)
        return current._block.prefix + prefix, params

    def __enter__(self) -> Self:
        if self._block._empty_prefix:
            return self  # such a block does not show in names
        here = _BlockScope._current
        names = Prefix(self._block.prefix)
        if not hasattr(here, "outer"):
            here.outer = []
        here.outer.append((getattr(here, "value", None), names))
        here.value = self
        names.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._block._empty_prefix:
            return
        here = _BlockScope._current
        here.value, names = here.outer.pop()
        names.__exit__(*exc)
