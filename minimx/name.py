"""Names for what the user does not name: `NameManager`, which counts, and `Prefix`, which also prepends.

Each thread has a current manager, the one of the innermost `with` block; a node of a graph asks it for its name. Gluon's blocks use
the same mechanism with a manager of their own. Book: chapter 3.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["NameManager", "Prefix"]


class PerThread(type):
    """Gives a family of scopes the class attribute `current`: the innermost one of the calling thread. It can be set, too."""

    _threads: threading.local  # .scope: the innermost one; each family has a `threading.local` of its own

    @property
    def current(cls) -> Any:
        try:
            return cls._threads.scope
        except AttributeError:
            cls._threads.scope = scope = cls.outermost()
            return scope

    @current.setter
    def current(cls, scope: Any) -> None:
        cls._threads.scope = scope

    def outermost(cls) -> Any:
        """What is current in a thread that has entered nothing."""
        raise NotImplementedError


class _Managers(PerThread):
    def outermost(cls) -> Any:
        return NameManager()


class NameManager(metaclass=_Managers):
    """Makes names such as `fullyconnected0` and `fullyconnected1`: the operator, and how many of it had no name before.

    As a `with` block it is the current manager of the thread; a new one counts from 0. Subclasses override `get`.
    **Source** MXNet `name.NameManager`.

    >>> with NameManager():
    ...     print(NameManager.current.get(None, "exp"), NameManager.current.get(None, "exp"), NameManager.current.get("mine", "exp"))
    exp0 exp1 mine
    """

    _threads: ClassVar[threading.local] = threading.local()

    def __init__(self) -> None:
        self._counter: dict[str, int] = {}
        self._outer: list[Any] = []

    def get(self, name: str | None, hint: str) -> str:
        """`name` if there is one, else `hint` with the next number."""
        if name:
            return name
        number = self._counter.get(hint, 0)
        self._counter[hint] = number + 1
        return f"{hint}{number}"

    def __enter__(self) -> Self:
        self._outer.append(NameManager.current)
        NameManager.current = self
        return self

    def __exit__(self, *exc: object) -> None:
        NameManager.current = self._outer.pop()


class Prefix(NameManager):
    """A manager that puts `prefix` before every name of an operator, given or made. Variables keep theirs.

    **Source** MXNet `name.Prefix`.

    >>> Prefix("net_").get("fc1", "fullyconnected")
    'net_fc1'
    """

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        return self._prefix + super().get(name, hint)
