"""Groups of options: dataclasses whose fields are the keywords that an iterator takes, with their defaults.

The iterators over images have some sixty options. Each group has one subject and stands beside the code that it steers; an iterator hands
its keywords over, and an unknown one is an error that names those that are meant most likely.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from ..base import did_you_mean, shown
from ..fields import KINDS, converted, split
from .batch import BatchError

__all__ = ["parse", "require"]

Group = TypeVar("Group")


def parse(owner: str, given: dict[str, Any], *groups: type[Any]) -> list[Any]:
    """An instance of each of `groups` from the keywords `given`, converted to what the fields' annotations say.

    **Args** `owner`: the iterator, for errors. **Raises** ArgumentError.
    """
    known = [field.name for group in groups for field in dataclasses.fields(group)]
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known, 3) or "; see help() for those that there are"
            raise BatchError(f"{owner}: there is no option {name!r}{hint}")
    return [_made(owner, given, group) for group in groups]


def _made(owner: str, given: dict[str, Any], group: type[Any]) -> Any:
    values = {}
    for field in dataclasses.fields(group):
        if field.name in given:
            value, kind = given[field.name], str(field.type)
            values[field.name] = converted(owner, field.name, kind, value) if split(kind)[0] in KINDS else value
    return group(**values)


def require(condition: bool, owner: str, name: str, value: Any, wanted: str) -> None:
    """Raise an error unless `condition` holds of the option `name`."""
    if not condition:
        raise BatchError(f"{owner}: {name} is {shown(value)}; {wanted}")
