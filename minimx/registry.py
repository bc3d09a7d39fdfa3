"""Classes that are chosen by name: `"xavier"` for an initializer, `"adam"` for an optimizer, `"acc"` for a metric.

Each family of classes has a Registry, whose classes say of a keyword that they do not know which one was meant (keywords.py). It also
understands the JSON in which MXNet writes a choice down with its arguments, `'["xavier", {"magnitude": 2}]'`, so that files which name
an initializer can be read.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from .base import ArgumentError, did_you_mean
from .keywords import name_unknown, require_known

__all__ = ["Registry", "get_alias_func", "get_create_func", "get_register_func", "get_registry"]

Base = TypeVar("Base")
Class = TypeVar("Class", bound=type)


_families: dict[type, Registry[Any]] = {}


class Registry(Generic[Base]):
    """The classes of a family by their names, in lower case.

    **Args** `base`: the class that all are derived from; `nickname`: what one is called in messages ("initializer").
    """

    def __init__(self, base: type[Base], nickname: str) -> None:
        self.base = name_unknown(base)
        self.nickname = nickname
        self.classes: dict[str, type[Base]] = {}
        _families.setdefault(base, self)  # a second one, of a test, is not that of the family

    def register(self, klass: Class, name: str | None = None) -> Class:
        """Class decorator: enter `klass` under `name`, or under its own name. A name that is taken is taken over, with a warning."""
        if not (isinstance(klass, type) and issubclass(klass, self.base)):
            raise ArgumentError(f"only subclasses of {self.base.__name__} can be registered as {self.nickname}, got {klass!r}")
        entered: Any = klass  # checkers took it for any class of the family, and no more for the one that is returned
        key = (name or klass.__name__).lower()
        before = self.classes.get(key)
        if before is not None and before is not klass:
            warnings.warn(
                f"the new {self.nickname} {klass.__module__}.{klass.__name__}, registered as {key!r}, replaces "
                f"{before.__module__}.{before.__name__}",
                UserWarning,
                stacklevel=2,
            )
        if klass not in self.classes.values():
            name_unknown(klass)
        self.classes[key] = klass
        return entered

    def alias(self, *names: str) -> Callable[[Class], Class]:
        """Class decorator: enter a class under further `names`."""

        def enter(klass: Class) -> Class:
            for name in names:
                self.register(klass, name)
            return klass

        return enter

    def create(self, *args: Any, **kwargs: Any) -> Base:
        """An instance of the class that the first argument names; the other arguments go to the class.

        The name may be JSON, `'["name", {arguments}]'`, or a dict with the name under the family's nickname. An instance is
        returned as it is. **Raises** ArgumentError for an unknown name, or arguments beside an instance.
        """
        name, *rest = args or (kwargs.pop(self.nickname if self.nickname in kwargs else "name", None),)
        if isinstance(name, self.base):
            if rest or kwargs:
                raise ArgumentError(f"{self.nickname}: {name!r} is an instance already; it takes no arguments any more")
            return name
        if isinstance(name, dict):
            return self.create(**name)
        if not isinstance(name, str):
            raise ArgumentError(
                f"{self.nickname}: a name or an instance of {self.base.__name__} is wanted, got {type(name).__name__}"
            )
        if name[:1] in ("[", "{"):
            return self._from_json(name, rest, kwargs)
        found = self.classes.get(name.lower())
        if found is None:
            hint = did_you_mean(name, self.classes)
            raise ArgumentError(
                f"no {self.nickname} is called {name!r}{f'{hint} There' if hint else '; there'} are {', '.join(sorted(self.classes))}. "
                f"A class of your own is entered with {self.nickname}.register"
            )
        try:
            return found(*rest, **kwargs)
        except TypeError as error:
            require_known(found, error, kwargs)
            raise

    def _from_json(self, text: str, rest: list[Any], kwargs: dict[str, Any]) -> Base:
        if rest or kwargs:
            raise ArgumentError(f"{self.nickname}: {text} has its arguments inside; no others can be given")
        try:
            config = json.loads(text)
        except json.JSONDecodeError as error:
            raise ArgumentError(f"{self.nickname}: {text!r} is no JSON: {error}") from None
        if isinstance(config, dict):
            return self.create(**config)
        if not (len(config) == 2 and isinstance(config[0], str) and isinstance(config[1], dict)):
            raise ArgumentError(f'{self.nickname}: {text!r} must have the form ["name", {{"argument": value}}]')
        return self.create(config[0], **config[1])


# ---- MXNet's functions, for a user's own families and for those that there are


def _family(base_class: type, nickname: str) -> Registry[Any]:
    return _families[base_class] if base_class in _families else Registry(base_class, nickname)


def get_registry(base_class: type) -> dict[str, type]:
    """A copy of the classes that were registered for `base_class`, by name. **Source** MXNet `registry`, as the functions below."""
    return dict(_family(base_class, base_class.__name__.lower()).classes)


def get_register_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A decorator that enters subclasses of `base_class` under their names."""
    return _family(base_class, nickname).register


def get_alias_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A function of names that returns a decorator, which enters a subclass of `base_class` under them."""
    return _family(base_class, nickname).alias


def get_create_func(base_class: type, nickname: str) -> Callable[..., Any]:
    """A function of a name and arguments that makes an instance of the class of that name."""
    return _family(base_class, nickname).create
