"""States of a training as bytes: what an Updater saves and loads.

The bytes are those of a file of arrays (nd/serialize.py). One array, `json`, is text in UTF-8 that says how the others belong together:

    {"format": 1, "states": [[index, tree], ...], "optimizer": null or {"class": name, "attributes": [[name, tree], ...]}}

A tree is null, a number, text, {"array": number of an array}, {"tuple": [trees]}, {"list": [trees]}, {"dict": [[tree, tree], ...]},
{"scheduler": name, "attributes": [[name, tree], ...]}, or {"other": type}: something that has no place in a file, such as a function. When
the optimizer is loaded, that is taken from the optimizer which is there already. MXNet pickles its states, and a pickle can run anything;
here a file holds numbers and names only, and classes are chosen among those that are known.
"""

from __future__ import annotations

import copy
import json
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import nd
from ..base import DTypeError, FileFormatError
from ..lr_scheduler import LRScheduler
from ..nd import NDArray
from ..nd.serialize import encode, host_value
from .optimizer import Optimizer

__all__ = ["dump", "load"]

#: Attributes of optimizers that are made anew instead of being stored.
MADE_ANEW = ("param_dict", "_index_update_count", "_loaded_counts", "_loaded_schedule")


# ---- writing


class UnstorableError(Exception):
    """A value that has no place in a file; the text is its type."""


class Writer:
    """Turns values into trees, and keeps the arrays that it meets."""

    def __init__(self) -> None:
        self.arrays: list[NDArray] = []

    def tree(self, value: Any) -> Any:
        """What stands for `value` in the text."""
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real):
            return float(value)
        if isinstance(value, NDArray):
            self.arrays.append(value)
            return {"array": len(self.arrays) - 1}
        if isinstance(value, (tuple, list)):
            return {"tuple" if isinstance(value, tuple) else "list": [self.tree(each) for each in value]}
        if isinstance(value, Mapping):
            return {"dict": [[self.tree(key), self.tree(each)] for key, each in value.items()]}
        if isinstance(value, LRScheduler):
            return {"scheduler": type(value).__name__, "attributes": self.attributes(value)}
        raise UnstorableError(type(value).__name__)

    def attributes(self, owner: Any) -> list[Any]:
        """The attributes of an object, without those that are made anew."""
        return [[name, self.attribute(value)] for name, value in vars(owner).items() if name not in MADE_ANEW]

    def attribute(self, value: Any) -> Any:
        """What stands for an attribute; a note, if some part of it has no place in a file."""
        count = len(self.arrays)
        try:
            return self.tree(value)
        except UnstorableError as error:
            del self.arrays[count:]
            return {"other": str(error)}


def dump(states: Mapping[Any, Any], optimizer: Optimizer | None = None) -> bytes:
    """States by index, and the optimizer if it is given, as bytes. Waits for the arrays.

    **Raises** TypeError for states that are not made of arrays, numbers and text.
    """
    writer = Writer()
    described = None
    if optimizer is not None:
        described = {"class": type(optimizer).__name__.lower(), "attributes": writer.attributes(optimizer)}
    try:
        kept = [[writer.tree(index), writer.tree(state)] for index, state in states.items()]
    except UnstorableError as error:
        raise DTypeError(
            f"states: they hold a value of type {error}, which has no place in a file; an optimizer that is to be saved keeps NDArrays, "
            "numbers and text, in tuples, lists and dicts"
        ) from None
    text = {"format": 1, "states": kept, "optimizer": described}
    values = [np.frombuffer(json.dumps(text).encode(), np.uint8), *(host_value(array) for array in writer.arrays)]
    names = ["json", *map(str, range(len(writer.arrays)))]
    devices = [(1, 0), *((array.context.device_typeid, array.context.device_id) for array in writer.arrays)]
    return b"".join(encode(values, names, devices))


# ---- reading


class Reader:
    """Turns trees into values again. `present`: the optimizer that gives what no file holds."""

    def __init__(self, arrays: Mapping[str, NDArray], present: Optimizer | None) -> None:
        self.arrays = arrays
        self.present = present

    def value(self, tree: Any, present: Any = None) -> Any:
        """The value that `tree` stands for; `present` for something that no file holds."""
        if not isinstance(tree, dict):
            return tree
        kind = next(iter(tree))
        content = tree[kind]
        if kind == "array":
            return self.arrays[str(content)]
        if kind == "tuple":
            return tuple(self.value(each) for each in content)
        if kind == "list":
            return [self.value(each) for each in content]
        if kind == "dict":
            return {self.value(key): self.value(each) for key, each in content}
        if kind == "scheduler":
            return self.filled(self.scheduler(content, present), tree["attributes"])
        if kind == "other":
            return present
        raise FileFormatError(f"states: there is no kind of value called {kind!r}")

    def scheduler(self, name: str, present: Any) -> LRScheduler:
        """A fresh scheduler of the class `name`: that of the present one, or one of those that are known."""
        if isinstance(present, LRScheduler) and type(present).__name__ == name:
            return copy.copy(present)
        for klass in descendants(LRScheduler):
            if klass.__name__ == name:
                made: LRScheduler = klass.__new__(klass)
                return made
        raise FileFormatError(f"states: no lr_scheduler is called {name!r}; import its class before the states are loaded")

    def optimizer(self, tree: Mapping[str, Any]) -> Optimizer:
        """The optimizer that was saved."""
        name = tree["class"]
        if self.present is not None and type(self.present).__name__.lower() == name:
            made = copy.copy(self.present)
        else:
            klass = Optimizer.opt_registry.get(name)
            if klass is None:
                raise FileFormatError(f"states: no optimizer is called {name!r}; import its class before the states are loaded")
            made = klass.__new__(klass)
        made.param_dict = {}
        made._loaded_counts = {}
        self.filled(made, tree["attributes"])
        made._resume()
        return made

    def filled(self, owner: Any, attributes: Any) -> Any:
        """Set the attributes of an optimizer or a scheduler; only such as objects have, never what a class defines."""
        for name, tree in attributes:
            if not name.isidentifier() or name.startswith("__") or callable(getattr(type(owner), name, None)):
                raise FileFormatError(f"states: {type(owner).__name__} can have no attribute {name!r}")
            there = getattr(self.present, name, None) if isinstance(owner, Optimizer) else None
            vars(owner)[name] = self.value(tree, vars(owner).get(name, there))
        return owner


def descendants(klass: type[LRScheduler]) -> list[type[LRScheduler]]:
    """All classes derived from `klass`."""
    found: list[type[LRScheduler]] = []
    for child in klass.__subclasses__():
        found += [child, *descendants(child)]
    return found


def load(data: bytes, present: Optimizer | None = None) -> tuple[dict[Any, Any], Optimizer | None]:
    """The states in `data`, by index, and the optimizer if it was saved with them.

    **Raises** FileFormatError for anything but what `dump` wrote, and for classes that are not known here.
    """
    if bytes(data[:1]) == b"\x80":
        raise FileFormatError(
            "states: this is a pickle, as MXNet writes it. Pickles are not read, because they can run anything; load the parameters "
            "and begin with fresh states (Module.load without load_optimizer_states=True)"
        )
    loaded = nd.load_frombuffer(data)
    if not isinstance(loaded, dict) or "json" not in loaded:
        raise FileFormatError(
            "states: these are arrays without the text that says how they belong together; are they parameters?"
        )
    try:
        text = json.loads(loaded["json"].asnumpy().tobytes())
        if text["format"] != 1:
            raise FileFormatError(f"states: format {text['format']} is not known here; this is format 1")
        reader = Reader(loaded, present)
        states = {reader.value(index): reader.value(state) for index, state in text["states"]}
        described = text["optimizer"]
        return states, None if described is None else reader.optimizer(described)
    except FileFormatError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError) as error:
        raise FileFormatError(f"states: the text is damaged: {type(error).__name__} {error}") from error
