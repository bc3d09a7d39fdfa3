"""minimx: a small, complete and readable re-implementation of the system that Apache MXNet 1.x made famous.

    import minimx as mx
    x = mx.nd.ones((2, 3))

The order of the system, from the ground up, is in ARCHITECTURE.md.
"""

from . import (
    attribute,
    autograd,
    base,
    context,
    device,
    engine,
    gluon,
    initializer,
    lr_scheduler,
    metric,
    name,
    nd,
    optimizer,
    random,
    storage,
    sym,
    symbol,
)
from .attribute import AttrScope
from .base import MXNetError
from .context import Context, cpu, cpu_pinned, cpu_shared, current_context, gpu, gpu_memory_info, num_gpus
from .sym import Symbol

ndarray = nd  # MXNet's long name for the same module
init = initializer  # and its short names for these two
opt = optimizer

__version__ = "0.1.0"

__all__ = [
    "AttrScope", "Context", "MXNetError", "Symbol", "attribute", "autograd", "base", "context", "cpu", "cpu_pinned",
    "cpu_shared", "current_context", "device", "engine", "gluon", "gpu", "gpu_memory_info", "init", "initializer",
    "lr_scheduler", "metric", "name", "nd", "ndarray", "num_gpus", "opt", "optimizer", "random", "storage", "sym", "symbol",
]  # fmt: skip
