"""`mx.util`: environment variables, GPUs, and the switches of MXNet's NumPy interface, which are all off here.

MXNet 1.6 began a second interface, `mx.np` with `mx.npx`, and switches that change what shapes and arrays mean while it is used. minimx has
the first interface, of MXNet 1.x. Code that asks (`is_np_array()`) is told so, switching off is granted, and switching on is refused
with what to use instead.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

from . import device, storage
from .base import ArgumentError, DeviceError, MXNetError, shown
from .device import Context

__all__ = [
    "get_cuda_compute_capability", "get_gpu_count", "get_gpu_memory", "getenv", "is_np_array", "is_np_shape", "makedirs", "np_array",
    "np_shape", "reset_np", "set_module", "set_np", "set_np_shape", "setenv", "use_np", "use_np_array", "use_np_shape",
]  # fmt: skip

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

#: Why there is no NumPy interface, and what to write instead.
NO_NUMPY_INTERFACE = (
    "the NumPy interface that MXNet 1.6 added (mx.np, mx.npx) is not planned here. Write mx.nd for mx.np, nd functions for npx ones, "
    "and leave npx.set_np() out"
)


class NumPyInterfaceError(MXNetError, NotImplementedError):
    """MXNet's NumPy interface was switched on."""


def _refuse(what: str) -> NoReturn:
    raise NumPyInterfaceError(f"{what}: {NO_NUMPY_INTERFACE}")


# ---- environment and devices


def getenv(name: str) -> str | None:
    """The environment variable `name`, or None. **Source** MXNet `util.getenv`."""
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set the environment variable `name`, or remove it where `value` is None.

    The settings of minimx (MXNET_ENGINE_TYPE, MXNET_CPU_WORKER_NTHREADS, ...) are read when it is imported, or when a graph is made or a
    training begins.
    **Source** MXNet `util.setenv`.
    """
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def makedirs(d: str) -> None:
    """Make the folder `d` and those it lies in; one that is there already is left alone. **Source** MXNet 1.3 `util.makedirs`."""
    os.makedirs(os.path.expanduser(d), exist_ok=True)


def get_gpu_count() -> int:
    """How many GPUs there are, real or simulated. **Source** MXNet `util.get_gpu_count`."""
    return device.num_gpus()


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """Free and total bytes of a GPU. **Raises** DeviceError if it is not there. **Source** MXNet `util.get_gpu_memory`."""
    return storage.gpu_memory_info(gpu_dev_id)


def get_cuda_compute_capability(ctx: Context) -> int:
    """The compute capability of a CUDA device as one number: 70 for 7.0.

    **Raises** ArgumentError (a ValueError) for a context that is no GPU; DeviceError for a GPU that is absent or simulated.
    **Source** MXNet `util.get_cuda_compute_capability`.
    """
    if not isinstance(ctx, Context) or ctx.device_type != "gpu":
        raise ArgumentError(f"get_cuda_compute_capability: a GPU's context such as mx.gpu(0) is wanted, got {shown(ctx)}")
    cupy = device.array_module(ctx)
    if not hasattr(cupy, "cuda"):
        raise DeviceError(f"get_cuda_compute_capability: {ctx} is simulated in host memory and no CUDA device")
    return int(cupy.cuda.Device(ctx.device_id).compute_capability)


def set_module(module: str | None) -> Callable[[Decorated], Decorated]:
    """A decorator that enters `module` as the place where a function or class is from. **Source** MXNet `util.set_module`."""

    def enter(function: Decorated) -> Decorated:
        if module is not None:
            function.__module__ = module
        return function

    return enter


# ---- the switches of the NumPy interface


def is_np_shape() -> bool:
    """False: 0 in a shape means an unknown length, and reducing all axes gives the shape (1,), as ever in MXNet 1.x."""
    return False


def is_np_array() -> bool:
    """False: blocks make and take NDArrays."""
    return False


def set_np_shape(active: bool) -> bool:
    """Switch off what is off. **Returns** False, the state before. **Raises** NumPyInterfaceError if `active`."""
    if active:
        _refuse("set_np_shape(True)")
    return False


def set_np(shape: bool = True, array: bool = True) -> None:
    """Switch both off with `shape=False, array=False`. **Raises** NumPyInterfaceError otherwise."""
    if shape or array:
        _refuse("set_np()")


def reset_np() -> None:
    """Switch the NumPy interface off, which it is."""


def np_shape(active: bool = True) -> contextlib.AbstractContextManager[None]:
    """A scope with the switch `active`: nothing changes inside `np_shape(False)`. **Raises** NumPyInterfaceError if `active`."""
    return _scope("np_shape", active)


def np_array(active: bool = True) -> contextlib.AbstractContextManager[None]:
    """A scope with the switch `active`: nothing changes inside `np_array(False)`. **Raises** NumPyInterfaceError if `active`."""
    return _scope("np_array", active)


@contextlib.contextmanager
def _unchanged() -> Iterator[None]:
    yield


def _scope(name: str, active: bool) -> contextlib.AbstractContextManager[None]:
    if active:
        _refuse(f"{name}(True)")
    return _unchanged()  # also a decorator, as in MXNet


def use_np(func: Decorated) -> Decorated:
    """Mark a function or class that needs the NumPy interface: it can be defined here, and calling it raises NumPyInterfaceError.

    So a file of which only some functions need the interface can be imported. **Source** MXNet `util.use_np`.
    """
    return _marked(func, "use_np")


def use_np_shape(func: Decorated) -> Decorated:
    """Mark a function or class that needs NumPy's shapes: see `use_np`. **Source** MXNet `util.use_np_shape`."""
    return _marked(func, "use_np_shape")


def use_np_array(func: Decorated) -> Decorated:
    """Mark a function or class that needs NumPy's arrays: see `use_np`. **Source** MXNet `util.use_np_array`."""
    return _marked(func, "use_np_array")


def _marked(func: Decorated, by: str) -> Decorated:
    if not callable(func):
        raise ArgumentError(f"{by}: a function or a class is wanted, got {shown(func)}")
    what = f"{getattr(func, '__qualname__', func)} is marked with {by}"

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        _refuse(what)

    if isinstance(func, type):
        func.__init__ = refuse  # type: ignore[misc]  # the class stays one, for isinstance and subclasses
        return func
    wrapped: Any = functools.wraps(func)(refuse)
    return wrapped
