"""`sym._internal`: operators that have no public function, by MXNet's names, for scripts that call them all the same.

`sym._internal._plus_scalar(x, scalar=2)` is `x + 2`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..op import Op, also_called, apply
from ..ops.by_name import function_for
from .creation import created


def _enter(op: Op, operands: Sequence[Any], how: dict[str, Any]) -> Any:
    if op.inputs:
        how.pop("ctx", None)
        return apply(op, *operands, **how)
    return created(op, op.attrs(), how)


def __getattr__(name: str) -> Callable[..., Any]:
    return also_called(name, function_for(__name__, name, _enter))
