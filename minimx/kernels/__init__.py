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
from ..base import ArgumentError, env_choice, shown
from ..device import Context
from ..op import Array, Kind, Op, Spec, share_out
from . import threads
from .onednn import axiswise, convolution, library, normalization, pooling, products, reorder
from .onednn.primitive import Routine, Several

Maker: TypeAlias = Callable[
    ..., "Routine | Several | None"
]  # maker(op, context, *specs); None: the operator's own kernel is as good

CHOICES = ("auto", "numpy")

#: oneDNN's kernels of operators on a CPU, by the operators' names: first the layers, for which it is faster than NumPy at any size,
LAYERS: dict[str, Maker] = {
    "Convolution": convolution.forward,
    "_backward_Convolution_data": convolution.backward_data,
    "_backward_Convolution_weight": convolution.backward_weight,
    "Pooling": pooling.forward,
    "_backward_Pooling": pooling.spread,
    "_backward_Pooling_max": pooling.first,
    "BatchNorm": normalization.forward,
    "_backward_BatchNorm": normalization.backward,
    "Deconvolution": convolution.transposed,
    "softmax": axiswise.softmax,
    "LayerNorm": axiswise.layer_norm,
}
#: and then products and transposes, where only large ones are in question.
ONEDNN: dict[str, Maker] = {
    **LAYERS,
    "transpose": reorder.transpose,
    "FullyConnected": products.fully_connected,
    "dot": products.dot,
    "batch_dot": products.batch_dot,
}

_choice = env_choice("MINIMX_KERNELS", "auto", CHOICES)


def set(choice: str) -> str:
    """Choose the kernels from now on: "auto", the fastest that are installed, or "numpy", the operators' own. Returns the choice before.

    It is for the whole process, and for programs that are compiled already, too.
    """
    global _choice
    if not isinstance(choice, str) or choice not in CHOICES:
        raise ArgumentError(f"kernels {shown(choice)}: choose one of {', '.join(CHOICES)}")
    before, _choice = _choice, choice
    return before


def enabled() -> bool:
    """Whether other kernels than the operators' own may be used."""
    return _choice != "numpy"


def found() -> dict[str, str]:
    """The libraries that the table uses, and their versions: {"oneDNN": "3.2.0"}."""
    lib = library.find() if enabled() else None
    return {} if lib is None else {"oneDNN": lib.version}


runtime.onednn.append(lambda: library.find() is not None)


class Faster:
    """A library's kernel of an operator for arrays of given specs, in place of the operator's own. It is called as that is.

    Code is generated for a number of threads. There may be several routines, therefore: for all cores, and for a share of them.
    """

    __slots__ = ("op", "specs", "spec", "context", "work", "_made")

    def __init__(self, op: Op, specs: tuple[Spec | None, ...], context: Context) -> None:
        self.op = op
        self.specs = specs  # of the inputs
        inferred = op.infer(*specs)
        self.spec = inferred if isinstance(inferred, Spec) else inferred[0]  # of the first output
        self.context = context
        self.work = work_of(op, specs, self.spec)
        self._made: dict[int, Routine | Several | None] = {}  # by the number of threads

    def made(self, number: int) -> Routine | Several | None:
        """What the library has for so many threads, made when it is first wanted."""
        if number not in self._made:
            with library.threads(number):
                made = ONEDNN[self.op.name](self.op, self.context, *self.specs)
            if made is not None:
                (made.run if isinstance(made, Several) else made).brief = self.work < BRIEF
            self._made[number] = made
        return self._made[number]

    @property
    def exists(self) -> bool:
        """Whether the library has anything."""
        return self.made(threads.share(self.work)) is not None

    def __call__(self, xp: Any, *arrays: Array | None, out: Array | None = None) -> Any:
        """The output, in `out` if it is given; or a tuple of outputs."""
        made = self.made(threads.share(self.work)) if enabled() else None
        if made is None or (isinstance(made, Routine) and made.ordinary is not None and is_odd(arrays[made.ordinary])):
            return self.op.kernel(xp, *arrays, **({} if out is None else {"out": out}))
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
    def implementation(self) -> str:
        """What the library calls its code for this processor."""
        made = self.made(threads.share(self.work))
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


def faster(op: Op, specs: Sequence[Spec | None], context: Context) -> Faster | None:
    """A faster kernel of `op` for inputs of `specs` in host memory on `context`; None if there is none.

    **Args** `specs`: None for an input that is left out. **Returns** a function that is called as `op.kernel` is.
    """
    if op.name not in ONEDNN or not enabled():
        return None
    for spec in specs:
        if spec is not None and (spec.dtype.char != "f" or not spec.size):
            return None
    return _made(op, tuple(specs), context)


def kernel_of(op: Op, arrays: Sequence[Array | None], context: Context) -> Callable[..., Any]:
    """The fastest kernel of `op` for `arrays` in host memory on `context`: its own, if there is no other."""
    if op.name not in ONEDNN:
        return op.kernel
    return faster(op, [None if each is None else Spec.of(each.shape, each.dtype) for each in arrays], context) or op.kernel


def forget() -> None:
    """Let go of all kernels that were made; those that programs hold stay."""
    _made.cache_clear()


@functools.lru_cache(maxsize=1024)
def _made(op: Op, specs: tuple[Spec | None, ...], context: Context) -> Faster | None:
    """What `faster` gives: code is generated once for the same operator and specs."""
    if library.find() is None:
        return None
    made = Faster(op, specs, context)
    return made if made.exists else None
