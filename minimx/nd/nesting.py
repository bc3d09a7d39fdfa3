"""Tensors, and lists of them, nested: what the functions that a loop or a branch runs take and give.

A loop works on a flat list. `flatten` takes a nested value apart and says how it was built, `regroup` builds it again, always of lists.
The format is 0 for a tensor, and a list of formats for a list or a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from ..base import ArgumentError, shown
from ..op import Tensor

Format: TypeAlias = Any  # 0, or a list of formats
V = TypeVar("V", bound=Tensor)


class StructureError(ArgumentError, AssertionError):
    """What a loop or a branch got, or its functions gave, is not built of tensors as it should be. (MXNet asserts it.)"""


def flatten(value: Any, kind: type[V], what: str) -> tuple[list[V], Format]:
    """The tensors in `value`, and its format. Raises StructureError for anything but a `kind` or (nested) lists of them."""
    if isinstance(value, kind):
        return [value], 0
    if not isinstance(value, (list, tuple)):
        raise StructureError(f"{what} must be {a_or_an(kind.__name__)} or a (nested) list of them, got {shown(value)}")
    flat: list[V] = []
    formats: list[Format] = []
    for each in value:
        parts, form = flatten(each, kind, what)
        flat += parts
        formats.append(form)
    return flat, formats


def regroup(flat: Sequence[V], form: Format) -> Any:
    """The nested value of the format `form` from its flat parts."""
    rest = iter(flat)

    def build(form: Format) -> Any:
        return next(rest) if form == 0 else [build(each) for each in form]

    return build(form)


def a_or_an(name: str) -> str:
    return f"{'an' if name.startswith('ND') else 'a'} {name}"


def called(what: str, function: Callable[..., Any], *args: Any) -> Any:
    """`function(*args)`. Raises ArgumentError if it is no function of so many arguments; its own errors are the caller's."""
    if not callable(function):
        raise ArgumentError(f"{what} must be a function, got {shown(function)}")
    try:
        return function(*args)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:  # raised by the call, not in the function
            raise ArgumentError(f"{what} cannot be called with {len(args)} arguments: {error}") from error
        raise


def pair(what: str, result: Any) -> tuple[Any, Any]:
    """The two things that a loop's function returns. Raises ArgumentError unless there are two."""
    if not isinstance(result, (list, tuple)) or len(result) != 2:
        raise ArgumentError(
            f"{what} must return a pair: what a step gives, and what the next step begins with; got {shown(result)}"
        )
    return result[0], result[1]
