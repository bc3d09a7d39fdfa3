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
    contrib,
    device,
    engine,
    gluon,
    initializer,
    io,
    lr_scheduler,
    metric,
    name,
    nd,
    optimizer,
    random,
    storage,
    sym,
    symbol,
    visualization,
)
from .attribute import AttrScope
from .base import MXNetError
from .context import Context, cpu, cpu_pinned, cpu_shared, current_context, gpu, gpu_memory_info, num_gpus
from .sym import Symbol

ndarray = nd  # MXNet's long name for the same module
init = initializer  # and its short names for these two
opt = optimizer
viz = visualization

__version__ = "0.1.0"

__all__ = [
    "AttrScope", "Context", "MXNetError", "Symbol", "attribute", "autograd", "base", "context", "contrib", "cpu", "cpu_pinned",
    "cpu_shared", "current_context", "device", "engine", "gluon", "gpu", "gpu_memory_info", "init", "initializer", "io",
    "lr_scheduler", "metric", "name", "nd", "ndarray", "num_gpus", "opt", "optimizer", "random", "storage", "sym", "symbol",
    "visualization", "viz",
]  # fmt: skip


_ABSENT = {
    "np": "the NumPy interface is not planned here; mx.nd has the arrays of MXNet 1.x",
    "npx": "the NumPy interface is not planned here; mx.nd has the operators of MXNet 1.x",
    "image": "image functions are not written yet",
    "recordio": "record files are not written yet",
    "kv": "key-value stores are not written yet; gluon.Trainer sums gradients over the devices of one process",
    "kvstore": "key-value stores are not written yet; gluon.Trainer sums gradients over the devices of one process",
    "mod": "mx.mod.Module is not planned; use gluon, or symbol.simple_bind",
    "module": "mx.mod.Module is not planned; use gluon, or symbol.simple_bind",
    "model": "mx.model is not written yet",
    "profiler": "the profiler is not written yet; engine.trace() logs tasks",
    "rnn": "the old cells for Symbols are not planned; gluon.rnn has recurrent layers and cells, for Symbols too",
}


def __getattr__(name: str) -> object:
    """Say of a name that MXNet has and minimx lacks what to use instead."""
    if name in _ABSENT:
        raise AttributeError(f"module 'minimx' has no attribute {name!r}: {_ABSENT[name]}")
    raise AttributeError(f"module 'minimx' has no attribute {name!r}")
