"""minimx and MXNet as peers: the same program, for either library."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from harness import Unit, Workload

STATIC = {"static_alloc": True, "static_shape": True}
#: What is done to a block, by the variant's name: nothing, or `hybridize` with these options.
MODES: dict[str, dict[str, bool] | None] = {"eager": None, "hybridized": {}, "static": STATIC}


def enter(work: Workload, setup: Callable[[Any, dict[str, bool] | None], Unit], *modes: str, **environment: str) -> None:
    """Enter `setup(library, options of hybridize or None)` for both libraries in these modes, or all; `environment` is for MXNet."""

    def starting(name: str, how: dict[str, bool] | None) -> Callable[[], Unit]:
        return lambda: setup(importlib.import_module(name), how)

    for variant in modes or MODES:
        work.peer("minimx", variant)(starting("minimx", MODES[variant]))
        work.peer("mxnet", variant, **environment)(starting("mxnet", MODES[variant]))


def function_block(mx: Any, function: Callable[[Any, Any], Any]) -> Any:
    """A function of F and x as a block, which can be hybridized."""

    class Function(mx.gluon.HybridBlock):  # type: ignore[misc]  # either library's
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return function(F, x)

    return Function()


def hybridized(block: Any, how: dict[str, bool] | None) -> Any:
    """The block itself, hybridized with the options `how` unless that is None."""
    if how is not None:
        block.hybridize(**how)
    return block
