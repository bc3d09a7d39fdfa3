"""`sym.Custom`: operators that users write, in graphs. ops/custom.py says what they are, nd/custom.py runs them.

A graph with one has no program: what the user's code does is not known before it runs, so the graph runs operator by operator.
"""

from __future__ import annotations

from typing import Any

from ..nd import custom
from ..op import Tensor
from .symbol import Symbol

__all__ = ["Custom"]


def Custom(*data: Any, op_type: str | None = None, **kwargs: Any) -> Any:
    """A node of the operator that `mx.operator.register` has entered as `op_type`. See `nd.Custom`; missing inputs become variables.

    **Source** MXNet `sym.Custom`.
    """
    if any(isinstance(each, Tensor) for each in (*data, *kwargs.values())):
        return custom.Custom(*data, op_type=op_type, **kwargs)
    op, operands, how = custom.called(data, op_type, kwargs)
    return Symbol._apply(op, operands, how)
