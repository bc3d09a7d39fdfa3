"""Faster kernels than the operators' own, where they are installed. Operators know nothing of them.

An operator says what it computes in NumPy, once, and that always works. A library may compute the same sooner: here stands which, in a
table by operator and kind of device. Who runs an operator asks for it with what is known beforehand, `kernels.faster(op, specs, context)`,
and gets a function with the signature of the operator's own kernel, or None where NumPy's is as good: for small arrays, other dtypes than
float32, attributes that the library does not have. Programs ask when they are compiled, so that their source says what they use; the
engine asks for each operation that it runs, and answers are kept.

MINIMX_KERNELS=numpy, or `minimx.kernels.set("numpy")`, turns all of it off. Groups of elementwise operators are not in the table, but
kernels of their own: fused.py on a CPU, cupy.py on a GPU. Book: chapters 4 and 5.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from .. import runtime, storage
from ..device import Context
from ..op import Array, Kind, Op, Spec, share_out
from . import batchnorm, recurrent, threads, windows
from .choice import enabled, set as set
from .fused import Loop
from .onednn import axiswise, convolution, library, pooling, products, reorder
from .onednn.primitive import Routine, Several

__all__ = ["enabled", "forget", "found", "set"]

Made: TypeAlias = "Routine | Several | Loop | batchnorm.Norm | recurrent.Layers | None"
Maker: TypeAlias = Callable[..., Made]  # maker(op, context, *specs); None: the operator's own kernel is as good

#: oneDNN's kernels of operators on a CPU, by the operators' names: first the layers, for which it is faster than NumPy at any size,
LAYERS: dict[str, Maker] = {
    "Convolution": convolution.forward,
    "Convolution_v1": convolution.forward,
    "_backward_Convolution_data": convolution.backward_data,
    "_backward_Convolution_weight": convolution.backward_weight,
    "Pooling": pooling.forward,
    "_backward_Pooling": pooling.spread,
    "_backward_Pooling_max": pooling.first,
    "Deconvolution": convolution.transposed,
    "softmax": axiswise.softmax,
    "LayerNorm": axiswise.layer_norm,
}
#: and then products and transposes, where only large ones are in question.
PRODUCTS: dict[str, Maker] = {
    "FullyConnected": products.fully_connected,
    "dot": products.dot,
    "batch_dot": products.batch_dot,
}
ONEDNN: dict[str, Maker] = {**LAYERS, **PRODUCTS, "transpose": reorder.transpose}

#: Loops in machine code, which need no library and are asked for first. Until they are compiled NumPy serves, if its bits are the same;
#: else they are waited for.
WRITTEN: dict[str, Maker] = {
    "Pooling": windows.largest,
    "_backward_Pooling_max": windows.first,
    "BatchNorm": batchnorm.forward,
    "_backward_BatchNorm": batchnorm.backward,
    "RNN": recurrent.layers,
    "_backward_RNN": recurrent.layers,
}
NAMES = frozenset((*ONEDNN, *WRITTEN))
SMALL_PRODUCT = products.SMALL  # multiplications, up to which NumPy makes a product


def found() -> dict[str, str]:
    """The libraries that the table uses, and their versions: {"oneDNN": "3.2.0"}."""
    lib = library.find() if enabled() else None
    return {} if lib is None else {"oneDNN": lib.version}


runtime.onednn.append(lambda: library.find() is not None)


class Faster:
    """A library's kernel of an operator for arrays of given specs, in place of the operator's own. It is called as that is.

    Code is generated for a number of threads. There may be several routines, therefore: for all cores, and for a share of them.
    """

    __slots__ = ("op", "specs", "spec", "context", "work", "loop", "_made")

    def __init__(self, op: Op, specs: tuple[Spec | None, ...], context: Context) -> None:
        self.op = op
        self.specs = specs  # of the inputs
        inferred = op.infer(*specs)
        self.spec = inferred if isinstance(inferred, Spec) else inferred[0]  # of the first output
        self.context = context
        self.work = work_of(op, specs, self.spec)
        self.loop = WRITTEN[op.name](op, context, *specs) if op.name in WRITTEN else None
        self._made: dict[int, Made] = {}  # by the number of threads

    def like(self, specs: Sequence[Spec | None]) -> Faster:
        """The same operator's for inputs of other specs."""
        return Faster(self.op, tuple(specs), self.context)

    def made(self, number: int) -> Made:
        """What the library has for so many threads, made when it is first wanted."""
        if self.loop is not None:
            return self.loop
        if number not in self._made:
            self._made.setdefault(number, self._from_library(number))  # of two threads, both get what the first has made
        return self._made[number]

    def _from_library(self, number: int) -> Routine | Several | None:
        if self.op.name not in ONEDNN or library.find() is None:
            return None
        with library.threads(number):
            made: Any = ONEDNN[self.op.name](self.op, self.context, *self.specs)
        if made is None:
            return None
        run = made.run if isinstance(made, Several) else made
        if run.is_reference:
            return None
        run.brief = self.work < BRIEF
        return made

    @property
    def exists(self) -> bool:
        """Whether the library has anything."""
        return self.made(threads.share(self.work)) is not None

    @property
    def is_small(self) -> bool:
        """Whether NumPy starts so little work sooner than the library does."""
        made = self.made(threads.share(self.work))
        return isinstance(made, Routine) and made.small

    def __call__(self, xp: Any, *arrays: Array | None, out: Array | None = None, **key: Any) -> Any:
        """The output, in `out` if it is given; or a tuple of outputs. `key`: of random numbers, for an operator that needs it."""
        made = self.made(threads.share(self.work)) if enabled() else None
        if isinstance(made, batchnorm.Norm):
            return made(xp, *arrays, out=out)
        if isinstance(made, recurrent.Layers):
            return made(xp, *arrays, **key)
        if isinstance(made, Loop):
            target = out if out is not None else storage.empty(self.spec, self.context)
            if made(*arrays, target):
                return target
            made = None
        if made is None or (isinstance(made, Routine) and made.ordinary is not None and is_odd(arrays[made.ordinary])):
            return self.op.kernel(xp, *arrays, **key, **({} if out is None else {"out": out}))
        given = [each if each.flags.c_contiguous else np.ascontiguousarray(each) for each in arrays if each is not None]
        if isinstance(made, Several):
            return made.kernel(*given)
        result = out if out is not None and out.flags.c_contiguous else storage.empty(self.spec, self.context)
        made(*given, result)
        if out is not None and out is not result:
            out[...] = result
            return out
        return result

    @property
    def library(self) -> str:
        """Who computes."""
        return "oneDNN" if self.loop is None else "loops in machine code"

    @property
    def implementation(self) -> str:
        """What the library calls its code for this processor."""
        made = self.made(threads.share(self.work))
        if isinstance(made, Loop):
            return "a loop in machine code"
        return made.implementation if made is not None else "none"


def is_odd(array: Array) -> bool:
    """Whether NaN or an infinite number is among the elements of a contiguous array: NumPy's largest is NaN or infinite then."""
    flat = array.reshape(-1)
    found: list[Any] = []
    parts = [flat[start : start + LOOKED_THROUGH] for start in range(0, flat.size, LOOKED_THROUGH)]
    share_out(parts, lambda some: found.extend(part.max() for part in some))
    return not np.isfinite(found).all()


def work_of(op: Op, specs: Sequence[Spec | None], spec: Spec) -> float:
    """About how many nanoseconds an operator takes on one core."""
    sizes = [each.size for each in specs if each is not None]
    elements = sum(sizes) + spec.size
    if op.kind is not Kind.GEMM:
        return NS_PER_ELEMENT * elements
    # (M, K) by (K, N) to (M, N): the square root of the three sizes' product is M K N. A window of K elements meets each element K times.
    points = math.prod(getattr(op, "kernel_size", ()))
    return NS_PER_PRODUCT * math.sqrt(float(sizes[0]) * sizes[1] * spec.size * points) + NS_PER_OPERAND * elements


NS_PER_PRODUCT = 0.01
NS_PER_OPERAND = 0.1  # of a product
NS_PER_ELEMENT = 0.5  # of other operators
LOOKED_THROUGH = 1 << 18  # elements at a time
BRIEF = 30_000.0  # nanoseconds, in which another thread has hardly taken over Python's lock


def faster(op: Op, specs: Sequence[Spec | None], context: Context, small: bool = False) -> Faster | None:
    """A faster kernel of `op` for inputs of `specs` in host memory on `context`; None if there is none.

    **Args** `specs`: None for an input that is left out; `small`: even one that would be called too late for so little work.
    **Returns** a function that is called as `op.kernel` is.
    """
    if op.name not in NAMES or not enabled():
        return None
    for spec in specs:
        if spec is not None and (spec.dtype.char != "f" or not spec.size):
            return None
    made = _made(op, tuple(specs), context)
    return None if made is None or (made.is_small and not small) else made


def is_product(op: Op, specs: Sequence[Spec | None]) -> bool:
    """Whether an operator is a product that the library has for inputs of `specs`."""
    return op.name in PRODUCTS and all(spec is None or (spec.dtype.char == "f" and spec.size > 0) for spec in specs)


def kernel_of(op: Op, arrays: Sequence[Array | None], context: Context) -> Callable[..., Any]:
    """The fastest kernel of `op` for `arrays` in host memory on `context`: its own, if there is no other."""
    if op.name not in NAMES:
        return op.kernel
    return faster(op, [None if each is None else Spec.of(each.shape, each.dtype) for each in arrays], context) or op.kernel


def forget() -> None:
    """Let go of all kernels that were made; those that programs hold stay."""
    _made.cache_clear()


@functools.lru_cache(maxsize=1024)
def _made(op: Op, specs: tuple[Spec | None, ...], context: Context) -> Faster | None:
    """What `faster` gives: code is generated once for the same operator and specs."""
    made = Faster(op, specs, context)
    return made if made.exists else None
