"""`nd._internal`: operators that have no public function, by MXNet's names, for scripts that call them all the same.

`nd._internal._plus_scalar(x, scalar=2)` is `x + 2`. Three of MXNet's write into an array that is given as `out`; they are here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..op import Op, apply
from ..ops.by_name import function_for
from ..ops.indexing import onehot_encode
from ..ops.scatter import _backward_gather_nd as _backward_gather_nd, _scatter_set_nd as _scatter_set_nd
from .creation import as_context, require_array
from .ndarray import NDArray


def _set_value(src: float = 0.0, out: NDArray | None = None) -> NDArray | None:
    """Write the number `src` into each element of `out`."""
    if out is not None:
        out[:] = src
    return out


def _copyto(data: NDArray, out: NDArray) -> NDArray:
    """Write `data` into `out`, which may be on another device."""
    return data.copyto(out)


def _onehot_encode(lhs: NDArray, rhs: NDArray, out: NDArray | None = None) -> NDArray:
    """Rows of zeros with a 1 at the index in `lhs`, as many and as long as those of `rhs`; see `onehot_encode`."""
    return onehot_encode(lhs, rhs if out is None else out)


def _enter(op: Op, operands: Sequence[Any], how: dict[str, Any]) -> Any:
    if op.inputs:
        how.pop("ctx", None)
        return apply(op, *operands, **how)
    require_array(op.name, how.get("out"))
    with as_context(how.pop("ctx", None)):
        return NDArray._apply(op, (), how)


def __getattr__(name: str) -> Callable[..., Any]:
    return function_for(__name__, name, _enter)
