"""minimx: a small, complete and readable re-implementation of the system that Apache MXNet 1.x made famous.

    import minimx as mx
    x = mx.nd.ones((2, 3))

The order of the system, from the ground up, is in ARCHITECTURE.md.
"""

import importlib
import sys
from typing import TYPE_CHECKING

__version__ = "0.1.0"

from . import (
    attribute,
    autograd,
    base,
    context,
    device,
    engine,
    gluon,
    initializer,
    kernels,
    kvstore,
    libinfo,
    log,
    lr_scheduler,
    metric,
    name,
    nd,
    operator,
    optimizer,
    parallel,
    profiler,
    random,
    registry,
    runtime,
    storage,
    sym,
    util,
)
from .attribute import AttrScope
from .base import MXNetError
from .compat import differences
from .context import Context, cpu, cpu_pinned, cpu_shared, current_context, gpu, gpu_memory_info, num_gpus
from .sym import Symbol, executor
from .util import is_np_array, is_np_shape, np_array, np_shape, set_np_shape, use_np, use_np_array, use_np_shape

if TYPE_CHECKING:  # `__getattr__` below, in a form that editors understand
    from . import (
        callback as callback,
        contrib as contrib,
        d2l as d2l,
        image as image,
        image as img,
        io as io,
        model as model,
        module as mod,
        module as module,
        monitor as mon,
        monitor as monitor,
        onnx as onnx,
        recordio as recordio,
        rnn as rnn,
        test_utils as test_utils,
        visualization as visualization,
        visualization as viz,
    )

init = initializer  # MXNet's second names of modules
kv = kvstore
ndarray = nd
opt = optimizer
rnd = random
symbol = sym

#: Modules that are imported when they are first asked for: together they would take as long as all the others.
LATER = (
    "callback", "contrib", "d2l", "image", "io", "model", "module", "monitor", "onnx", "recordio", "rnn", "test_utils", "visualization",
)  # fmt: skip
SECOND_NAMES = {"img": "image", "mod": "module", "mon": "monitor", "viz": "visualization"}

__all__ = [
    "AttrScope", "Context", "MXNetError", "Symbol", "attribute", "autograd", "base", "callback", "context", "contrib", "cpu",
    "cpu_pinned", "cpu_shared", "current_context", "device", "engine", "executor", "gluon", "gpu", "gpu_memory_info", "image",
    "img", "init", "initializer", "io", "is_np_array", "is_np_shape", "kernels", "kv", "kvstore", "libinfo", "log", "lr_scheduler",
    "metric", "mod", "model", "module", "mon", "monitor", "name", "nd", "ndarray", "np_array", "np_shape", "num_gpus",
    "operator", "opt", "optimizer", "parallel", "profiler", "random", "recordio", "registry", "rnd", "rnn", "runtime", "set_np_shape",
    "storage", "sym", "symbol", "use_np", "use_np_array", "use_np_shape", "util", "visualization", "viz",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """A module that was not needed before; and what to use instead of a name that MXNet has and minimx lacks."""
    full = SECOND_NAMES.get(name, name)
    if full not in LATER:
        raise differences.missing(__name__, name, sys._getframe(1))
    module = globals()[name] = importlib.import_module(f"{__name__}.{full}")
    differences.teach()
    return module


for _backend in ("ONNXRuntime", "TVM", "TensorRT"):
    sym.backends.provide(_backend, "minimx.onnx.backends")
differences.teach()
