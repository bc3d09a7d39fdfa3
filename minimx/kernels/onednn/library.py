"""oneDNN's shared library: finding it, its functions, its numbers, and its threads.

oneDNN computes the layers of networks with code that it generates for the processor at hand. Its C API is a few dozen functions on opaque
pointers, which ctypes calls without any compiled code of ours. The library is loaded when the first operator asks for it. It is the one
of the package `onednn-cpu-gomp` (extra `fast`), which lies beside Python's own libraries, or the system's.

ctypes can call in two ways. `long` lets go of Python's lock meanwhile, for what computes; `quick` keeps it, for what returns at once:
who lets go of the lock has to wait for it afterwards, which takes longer than such a call. Book: chapter 5.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from ctypes import POINTER, c_float, c_int, c_int64, c_size_t, c_uint, c_void_p
from typing import Any

from ...base import MXNetError

# ---- the numbers of the C API, called as in dnnl_types.h; they are the same in all versions 3

F32, S32, U8 = 3, 4, 6
ANY = 1  # a layout of the library's choice
TRAINING, INFERENCE, BACKWARD = 64, 96, 128
DIRECT, DIRECT_TRANSPOSED = 1, 10  # ways to convolve
POOL_MAX, POOL_AVERAGE_PADDED, POOL_AVERAGE = 511, 767, 1023
SOFTMAX = 196608
USE_SCALE, USE_SHIFT = 2, 4  # of a normalization
SOURCE, RESULT, WEIGHTS, BIAS, MEAN, VARIANCE, SCALE, SHIFT, WORKSPACE, SCRATCHPAD = 1, 17, 33, 41, 49, 50, 51, 52, 64, 80
TO_SOURCE, TO_RESULT, TO_WEIGHTS, TO_BIAS = 129, 145, 161, 169  # gradients
LAYOUT_OF = {
    SOURCE: 129,
    TO_SOURCE: 130,
    WEIGHTS: 131,
    TO_WEIGHTS: 132,
    RESULT: 133,
    TO_RESULT: 134,
    WORKSPACE: 135,
    SCRATCHPAD: 136,
}
IMPLEMENTATION = 8  # the query for a primitive's name
CPU, USER_SCRATCHPAD = 1, 1
UNIMPLEMENTED = 3
MOST_AXES = 12
OPENMP, SEQUENTIAL = 2, 1  # what threads a library may be built with

Lengths = c_int64 * MOST_AXES

CALLED = ("dnnl_memory_set_data_handle", "dnnl_primitive_execute")
# OpenMP's functions, and what a compiler makes of a parallel loop.
TEAM = ("omp_set_num_threads", "omp_get_thread_num", "omp_get_num_threads", "GOMP_parallel")


class Argument(ctypes.Structure):
    """Which argument of a primitive, and its memory."""

    _fields_ = (("number", c_int), ("memory", c_void_p))


class _Version(ctypes.Structure):
    _fields_ = (("major", c_int), ("minor", c_int), ("patch", c_int), ("hash", c_void_p), ("runtime", c_uint), ("gpu", c_uint))


# ---- the library

_P, _I, _F, _U = c_void_p, c_int, c_float, c_uint
_NEW, _LENGTHS = POINTER(c_void_p), POINTER(c_int64)
_WINDOW = (_LENGTHS,) * 4  # strides, dilates, padding on both sides
#: The functions and the types of their arguments; those that make a primitive's description end in `attr`, the first is where to put it.
SIGNATURES: dict[str, tuple[Any, ...]] = {
    "engine_create": (_NEW, _I, c_size_t),
    "stream_create": (_NEW, _P, _U),
    "stream_destroy": (_P,),
    "memory_desc_create_with_strides": (_NEW, _I, _LENGTHS, _I, _LENGTHS),
    "memory_desc_create_with_tag": (_NEW, _I, _LENGTHS, _I, _I),
    "memory_desc_clone": (_NEW, _P),
    "memory_desc_destroy": (_P,),
    "memory_desc_equal": (_P, _P),
    "memory_create": (_NEW, _P, _P, _P),
    "memory_set_data_handle": (_P, _P),
    "memory_destroy": (_P,),
    "primitive_attr_create": (_NEW,),
    "primitive_attr_set_scratchpad_mode": (_P, _I),
    "primitive_attr_set_post_ops": (_P, _P),
    "primitive_attr_destroy": (_P,),
    "post_ops_create": (_NEW,),
    "post_ops_append_sum": (_P, _F, _I, _I),
    "post_ops_append_eltwise": (_P, _I, _F, _F),
    "post_ops_destroy": (_P,),
    "primitive_desc_query": (_P, _I, _I, _P),
    "primitive_desc_destroy": (_P,),
    "primitive_create": (_NEW, _P),
    "primitive_destroy": (_P,),
    "primitive_execute": (_P, _P, _I, POINTER(Argument)),
    "reorder_primitive_desc_create": (_NEW, _P, _P, _P, _P, _P),
    "convolution_forward_primitive_desc_create": (_NEW, _P, _I, _I, _P, _P, _P, _P, *_WINDOW, _P),
    "deconvolution_forward_primitive_desc_create": (_NEW, _P, _I, _I, _P, _P, _P, _P, *_WINDOW, _P),
    "convolution_backward_data_primitive_desc_create": (_NEW, _P, _I, _P, _P, _P, *_WINDOW, _P, _P),
    "convolution_backward_weights_primitive_desc_create": (_NEW, _P, _I, _P, _P, _P, _P, *_WINDOW, _P, _P),
    "pooling_forward_primitive_desc_create": (_NEW, _P, _I, _I, _P, _P, _LENGTHS, *_WINDOW, _P),
    "pooling_backward_primitive_desc_create": (_NEW, _P, _I, _P, _P, _LENGTHS, *_WINDOW, _P, _P),
    "batch_normalization_forward_primitive_desc_create": (_NEW, _P, _I, _P, _P, _F, _U, _P),
    "batch_normalization_backward_primitive_desc_create": (_NEW, _P, _I, _P, _P, _P, _F, _U, _P, _P),
    "layer_normalization_forward_primitive_desc_create": (_NEW, _P, _I, _P, _P, _P, _F, _U, _P),
    "layer_normalization_backward_primitive_desc_create": (_NEW, _P, _I, _P, _P, _P, _P, _F, _U, _P, _P),
    "matmul_primitive_desc_create": (_NEW, _P, _P, _P, _P, _P, _P),
    "inner_product_forward_primitive_desc_create": (_NEW, _P, _I, _P, _P, _P, _P, _P),
    "softmax_forward_primitive_desc_create": (_NEW, _P, _I, _I, _P, _P, _I, _P),
    "softmax_backward_primitive_desc_create": (_NEW, _P, _I, _P, _P, _P, _I, _P, _P),
}


class Library:
    """The loaded library: `quick` and `long` are its two ways to be called, `engine` its handle of the CPU."""

    def __init__(self, path: str) -> None:
        """Raises OSError if it cannot be loaded, or is not one that serves."""
        self.path = path
        self.quick = ctypes.PyDLL(path)
        self.long = ctypes.CDLL(path)
        self.quick.dnnl_version.restype = POINTER(_Version)
        version = self.quick.dnnl_version().contents
        self.version = f"{version.major}.{version.minor}.{version.patch}"
        if version.major != 3 or version.runtime not in (OPENMP, SEQUENTIAL):
            raise OSError(f"{path}: oneDNN {self.version} for threads of kind {version.runtime}; version 3 with OpenMP is wanted")
        for name, types in SIGNATURES.items():
            for way in (self.quick, self.long):
                getattr(way, f"dnnl_{name}").argtypes = types
        self.quick.dnnl_memory_desc_get_size.argtypes, self.quick.dnnl_memory_desc_get_size.restype = (_P,), c_size_t
        self.quick.dnnl_primitive_desc_query_md.argtypes, self.quick.dnnl_primitive_desc_query_md.restype = (_P, _I, _I), c_void_p
        self.execute = self.long.dnnl_primitive_execute
        self.execute_quickly = self.quick.dnnl_primitive_execute
        self.set_handle = self.quick.dnnl_memory_set_data_handle
        self.engine = self.new("engine_create", CPU, 0)
        self.is_parallel = version.runtime == OPENMP
        self.set_threads = self.quick.omp_set_num_threads if self.is_parallel else lambda number: None
        self.get_threads = self.quick.omp_get_max_threads if self.is_parallel else lambda: 1
        #: Where the functions lie that machine code calls (kernels/chain.py).
        self.addresses = {name: self._address(name) for name in (*CALLED, *(TEAM if self.is_parallel else ()))}

    def _address(self, function: str) -> int:
        return ctypes.cast(getattr(self.quick, function), c_void_p).value or 0

    def new(self, function: str, *arguments: Any) -> int:
        """The handle that `function` makes. Raises MXNetError."""
        found = self.made(function, *arguments)
        if found is None:
            raise MXNetError(f"oneDNN {self.version} has not what {function} was asked for")
        return found

    def made(self, function: str, *arguments: Any) -> int | None:
        """The same; None where the library has no implementation for the arguments."""
        handle = c_void_p()
        status = getattr(self.quick, f"dnnl_{function}")(ctypes.byref(handle), *arguments)
        if status == UNIMPLEMENTED:
            return None
        self.check(status, function)
        return handle.value

    def check(self, status: int, function: str) -> None:
        """Raise MXNetError for a status that is not success."""
        if status:
            raise MXNetError(f"oneDNN {self.version}: {function} failed with status {status}")


def _places() -> Iterator[str]:
    """Where the library may be, the likeliest first."""
    for folder in dict.fromkeys((sys.prefix, sys.base_prefix)):
        yield os.path.join(folder, "lib", "libdnnl.so.3")
    yield "libdnnl.so.3"  # wherever the system looks


def _load() -> Library | None:
    """The library, or None where there is none that serves.

    OpenMP's idle threads turn round and round for a while in case more work comes. Ours share the cores with the engine's threads and
    BLAS's, so they are to sleep soon; the setting is for this library only, which reads it when it is loaded.
    """
    given = os.environ.get("GOMP_SPINCOUNT"), os.environ.get("OMP_WAIT_POLICY")
    if given == (None, None):
        os.environ["GOMP_SPINCOUNT"] = SPIN
    try:
        for path in _places():
            if os.path.isabs(path) and not os.path.exists(path):
                continue
            try:
                return Library(path)
            except (OSError, AttributeError):  # AttributeError: it lacks a function
                continue
        return None
    finally:
        if given == (None, None):
            del os.environ["GOMP_SPINCOUNT"]


def troubles() -> list[str]:
    """Why the libraries that are there cannot be used, in words; for the report of an installation."""
    words = []
    for path in filter(os.path.exists, _places()):
        try:
            Library(path)
        except (OSError, AttributeError) as error:
            words.append(str(error))
    return words


SPIN = "5000"  # turns, less than 0.1 ms: the time from one primitive to the next, with the Python between them
_loading = threading.Lock()
_loaded: list[Library | None] = []


def find() -> Library | None:
    """The library, loaded at the first call; None if it is not installed."""
    if not _loaded:
        with _loading:
            if not _loaded:
                _loaded.append(_load())
    return _loaded[0]


@contextlib.contextmanager
def threads(number: int) -> Iterator[None]:
    """A scope in which what the calling thread makes or runs here uses so many threads."""
    lib = library()
    before = lib.get_threads()
    lib.set_threads(number)
    try:
        yield
    finally:
        lib.set_threads(before)


def library() -> Library:
    """The library, for code that runs only where it was found."""
    found = find()
    assert found is not None
    return found
