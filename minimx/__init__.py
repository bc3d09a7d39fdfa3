"""minimx: a small, complete and readable re-implementation of the system that Apache MXNet 1.x made famous.

    import minimx as mx
    x = mx.nd.ones((2, 3))

The order of the system, from the ground up, is in ARCHITECTURE.md.
"""

import importlib
import sys

__version__ = "0.1.0"

from . import (
    attribute,
    autograd,
    base,
    callback,
    context,
    contrib,
    device,
    engine,
    gluon,
    image,
    initializer,
    io,
    kvstore,
    libinfo,
    log,
    lr_scheduler,
    metric,
    model,
    module,
    monitor,
    name,
    nd,
    operator,
    optimizer,
    parallel,
    profiler,
    random,
    recordio,
    rnn,
    runtime,
    storage,
    sym,
    util,
    visualization,
)
from .attribute import AttrScope
from .base import MXNetError
from .compat import differences
from .context import Context, cpu, cpu_pinned, cpu_shared, current_context, gpu, gpu_memory_info, num_gpus
from .sym import Symbol, executor
from .util import is_np_array, is_np_shape, np_array, np_shape, set_np_shape, use_np, use_np_array, use_np_shape

init = initializer  # MXNet's second names of modules
img = image
kv = kvstore
mod = module
mon = monitor
ndarray = nd
opt = optimizer
rnd = random
symbol = sym
viz = visualization

__all__ = [
    "AttrScope", "Context", "MXNetError", "Symbol", "attribute", "autograd", "base", "callback", "context", "contrib", "cpu",
    "cpu_pinned", "cpu_shared", "current_context", "device", "engine", "executor", "gluon", "gpu", "gpu_memory_info", "image",
    "img", "init", "initializer", "io", "is_np_array", "is_np_shape", "kv", "kvstore", "libinfo", "log", "lr_scheduler",
    "metric", "mod", "model", "module", "mon", "monitor", "name", "nd", "ndarray", "np_array", "np_shape", "num_gpus",
    "operator", "opt", "optimizer", "parallel", "profiler", "random", "recordio", "rnd", "rnn", "runtime", "set_np_shape", "storage", "sym",
    "symbol", "use_np", "use_np_array", "use_np_shape", "util", "visualization", "viz",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """The module for tests, which few programs need; and what to use instead of a name that MXNet has and minimx lacks."""
    if name == "test_utils":
        module = importlib.import_module("minimx.test_utils")
        differences.teach()
        return module
    raise differences.missing(__name__, name, sys._getframe(1))


differences.teach()
