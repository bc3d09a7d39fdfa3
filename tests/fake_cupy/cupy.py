"""The names of the stand-in: those of CuPy 14 that minimx uses, with the parameters that CuPy's functions have.

A keyword that CuPy does not know is a TypeError here too, and a function that is not in the lists is missing. `installed` puts it in
CuPy's place.
"""

from __future__ import annotations

import builtins  # some of whose names stand for arrays' functions here
import contextlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .arrays import SCALARS, _ones, add_operators, here, launch, ndarray, operands_of, replaced, require_here  # noqa: F401
from .cuda import Pool, cuda, start  # noqa: F401  # names of CuPy's
from .language import ElementwiseKernel  # noqa: F401
from .machine import Machine

__version__ = "14.0.0 (stand-in)"
inf, nan, newaxis, pi = np.inf, np.nan, None, np.pi
bool_, float16, float32, float64 = np.bool_, np.float16, np.float32, np.float64
int8, int16, int32, int64, intp = np.int8, np.int16, np.int32, np.int64, np.intp
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64
dtype, finfo, iinfo, promote_types, can_cast = np.dtype, np.finfo, np.iinfo, np.promote_types, np.can_cast


# ---- NumPy's ufuncs

UFUNCS = [
    "abs", "absolute", "add", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "bitwise_and",
    "bitwise_or", "bitwise_xor", "cbrt", "ceil", "copysign", "cos", "cosh", "deg2rad", "degrees", "divide", "equal", "exp",
    "exp2", "expm1", "fabs", "floor", "floor_divide", "fmax", "fmin", "fmod", "greater", "greater_equal", "hypot", "invert",
    "isfinite", "isinf", "isnan", "left_shift", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply", "negative",
    "nextafter", "not_equal", "positive", "power", "rad2deg", "radians", "reciprocal", "remainder", "right_shift", "rint",
    "sign", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "true_divide", "trunc",
]  # fmt: skip
AT = {"add": "ilefdILQqLl", "maximum": "ilqfdILQ", "minimum": "ilqfdILQ"}  # what its atomic additions take


class ufunc:
    """A function of CuPy that works element by element."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.name = name
        self.function = getattr(np, name)

    def __call__(self, *args: Any, out: Any = None, dtype: Any = None, casting: str = "same_kind", where: Any = True) -> Any:
        if len(args) == self.function.nin + 1:
            *args, out = args  # type: ignore[assignment]
        operands_of(list(args))  # raises for NumPy's arrays
        if not builtins.all(isinstance(each, (ndarray, *SCALARS)) for each in args):
            raise TypeError(f"Unsupported type {[type(each) for each in args]}")
        if not builtins.any(isinstance(each, ndarray) for each in args) and out is None:
            args = tuple(asarray(each) for each in args)
        how = {} if dtype is None else {"dtype": dtype}
        if where is not True:
            return launch(lambda *values, where: self._masked(values, where), *args, out=out, where=where, name=self.name)
        return launch(self.function, *args, out=out, name=self.name, casting=casting, **how)

    def _masked(self, values: Any, where: Any) -> Any:
        return self.function(*values, where=where)

    def at(self, a: ndarray, indices: Any, b: Any = None) -> None:
        if self.name not in AT:
            raise NotImplementedError(f"`cupy_{self.name}.at` is not supported yet")
        if a.dtype.char not in AT[self.name]:
            raise TypeError(f"cupy.{self.name}.at does not support {a.dtype}")
        keys = indices if isinstance(indices, tuple) else (indices,)
        keys = tuple(asarray(each) if isinstance(each, (np.ndarray, list)) else each for each in keys)
        function, random, shape = self.function, here.machine.random, a.shape

        def add(view: np.ndarray, *values: Any) -> None:
            key, value = values[:-1], values[-1]
            key = tuple(each % builtins.max(axis, 1) if isinstance(each, np.ndarray) else each for each, axis in zip(key, shape))
            places = np.arange(view.size).reshape(view.shape)[key]
            order = np.array(random.sample(range(places.size), places.size), np.intp)  # atomic additions come in any order
            source = np.broadcast_to(np.asarray(value), places.shape)
            chosen = np.unravel_index(places.reshape(-1)[order], view.shape)
            function.at(view, chosen, source.reshape(-1)[order].astype(view.dtype))

        operands_of(b)
        launch(add, *keys, b, into=a, name=f"{self.name}.at")

    def reduce(self, array: ndarray, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if self.name not in ("add", "multiply"):
            raise NotImplementedError(f"`cupy_{self.name}.reduce` is not supported yet")
        return _here["sum" if self.name == "add" else "prod"](array, axis, dtype, out, keepdims)

    def accumulate(self, array: ndarray, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.name not in ("add", "multiply"):
            raise NotImplementedError(f"`cupy_{self.name}.accumulate` is not supported yet")
        return _here["cumsum" if self.name == "add" else "cumprod"](array, axis, dtype, out)


# ---- functions whose results' shapes follow from the operands'

FUNCTIONS = """
all(a, axis=None, out=None, keepdims=False)
amax(a, axis=None, out=None, keepdims=False)
amin(a, axis=None, out=None, keepdims=False)
any(a, axis=None, out=None, keepdims=False)
append(arr, values, axis=None)
argmax(a, axis=None, dtype=None, out=None, keepdims=False)
argmin(a, axis=None, dtype=None, out=None, keepdims=False)
argpartition(a, kth, axis=-1)
argsort(a, axis=-1, kind=None)
around(a, decimals=0, out=None)
clip(a, a_min, a_max, out=None)
concatenate(tup, axis=0, out=None, *, dtype=None, casting='same_kind')
count_nonzero(a, axis=None)
cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None)
cumprod(a, axis=None, dtype=None, out=None)
cumsum(a, axis=None, dtype=None, out=None)
diag(v, k=0)
diff(a, n=1, axis=-1, prepend=None, append=None)
dot(a, b, out=None)
hstack(tup, *, dtype=None, casting='same_kind')
inner(a, b)
kron(a, b)
max(a, axis=None, out=None, keepdims=False)
mean(a, axis=None, dtype=None, out=None, keepdims=False)
min(a, axis=None, out=None, keepdims=False)
nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None)
nanprod(a, axis=None, dtype=None, out=None, keepdims=False)
nansum(a, axis=None, dtype=None, out=None, keepdims=False)
outer(a, b, out=None)
packbits(a, axis=None, bitorder='big')
partition(a, kth, axis=-1)
prod(a, axis=None, dtype=None, out=None, keepdims=False)
roll(a, shift, axis=None)
round(a, decimals=0, out=None)
searchsorted(a, v, side='left', sorter=None)
sort(a, axis=-1, kind=None)
stack(tup, axis=0, out=None, *, dtype=None, casting='same_kind')
std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False)
sum(a, axis=None, dtype=None, out=None, keepdims=False)
take(a, indices, axis=None, out=None)
take_along_axis(a, indices, axis)
tensordot(a, b, axes=2)
tile(A, reps)
trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None)
tril(m, k=0)
triu(m, k=0)
unpackbits(a, axis=None, bitorder='big')
var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False)
vstack(tup, *, dtype=None, casting='same_kind')
"""


def _make(signature: str, call: Callable[..., Any]) -> Any:
    """A function with CuPy's parameters that hands those that are not the defaults on."""
    name, _, rest = signature.partition("(")
    scope: dict[str, Any] = {"call": call, "name": name}
    exec(f"def {name}({rest}:\n    return call(name, locals())", scope)
    function = scope[name]
    defaults = function.__defaults__ or ()
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    known = dict(zip(names[len(names) - len(defaults) :], defaults)) | (function.__kwdefaults__ or {})
    required = [each for each in names if each not in known]

    def checked(*args: Any, **how: Any) -> Any:
        given = function(*args, **how)  # raises for parameters that are not CuPy's
        return call(
            name, [given[each] for each in required], {each: given[each] for each in known if given[each] is not known[each]}
        )

    scope["call"] = lambda name, values: values
    return checked


def _queued(name: str, args: list[Any], how: dict[str, Any]) -> Any:
    operands_of(args)
    if name in ("take", "take_along_axis"):  # indices wrap around, rather than be refused
        return _taken(name, args, how)
    if name in ("dot", "inner", "tensordot") and not all_arrays(args[:2]):
        raise TypeError(f"{name}: arrays are wanted")
    kind = how.pop("kind", None)
    if kind not in (None, "stable"):
        raise ValueError("kind can only be None or 'stable'")
    if name in ("argsort", "sort"):
        how["kind"] = "stable"
    return launch(getattr(np, name), *args, **how, name=name)


def all_arrays(values: list[Any]) -> bool:
    return builtins.all(isinstance(each, ndarray) for each in values)


def _taken(name: str, args: list[Any], how: dict[str, Any]) -> Any:
    data, indices = args[0], args[1] if isinstance(args[1], ndarray) else asarray(args[1])
    axis = how.get("axis") if name == "take" else args[2]
    length = data.size if axis is None else data.shape[axis]

    def run(values: Any, places: Any) -> Any:
        function = getattr(np, name)
        return function(values, places % builtins.max(length, 1), axis)

    # The dummy that stands for the indices holds ones, which may be beyond the end.
    def shapes(values: Any, places: Any) -> Any:
        return (
            getattr(np, name)(values, np.zeros_like(places), axis)
            if length
            else np.empty(_shape_of_take(values, places, axis, name), values.dtype)
        )

    return launch(run, data, indices, shapes=shapes, name=name, out=how.get("out"))


def _shape_of_take(values: Any, places: Any, axis: Any, name: str) -> Any:
    return places.shape if name != "take" or axis is None else (*values.shape[:axis], *places.shape, *values.shape[axis + 1 :])


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None:
        return _here["nonzero"](condition)
    return launch(np.where, condition, x, y)


def copyto(dst: ndarray, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    operands_of([src, where])
    launch(np.copyto, src, into=dst, casting=casting, **({} if where is None else {"where": where}))


def einsum(*operands: Any, **how: Any) -> Any:
    return launch(np.einsum, *operands, **how)


def matmul(a: Any, b: Any, *, dtype: Any = None, out: Any = None) -> Any:
    return launch(np.matmul, a, b, out=out, **({} if dtype is None else {"dtype": dtype}))


def pad(array: ndarray, pad_width: Any, mode: str = "constant", **how: Any) -> Any:
    return launch(np.pad, array, pad_width, mode, **how)


def repeat(a: ndarray, repeats: Any, axis: Any = None) -> Any:
    if isinstance(repeats, ndarray):
        raise ValueError("cupy.ndarray cannot be specified as `repeats` argument.")
    return launch(np.repeat, a, repeats, axis)


# ---- views


def broadcast_to(array: Any, shape: Any) -> ndarray:
    array = asarray(array)
    view = np.broadcast_to(array.view_, shape)
    return ndarray.of(array.block, np.lib.stride_tricks.as_strided(view, view.shape, view.strides))


def _view(name: str) -> Any:
    function = getattr(np, name)

    def call(array: ndarray, *args: Any, **how: Any) -> Any:
        operands_of(array)
        made = function(array.view_, *args, **how)
        if isinstance(made, (list, tuple)):
            return [ndarray.of(array.block, each) for each in made]
        return ndarray.of(array.block, made)

    return call


def reshape(a: ndarray, newshape: Any, order: str = "C", *, copy: Any = None) -> ndarray:
    return a.reshape(newshape)


def ravel(a: ndarray, order: str = "C") -> ndarray:
    return a.reshape(-1)


def diagonal(a: ndarray, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
    return a.diagonal(offset, axis1, axis2)


def as_strided(x: ndarray, shape: Any = None, strides: Any = None) -> ndarray:
    return ndarray.of(x.block, np.lib.stride_tricks.as_strided(x.view_, shape, strides))


# ---- new arrays


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: bool = False) -> ndarray:
    if isinstance(a, ndarray):
        return a.astype(dtype, copy=False) if dtype is not None else a
    return array(a, dtype)


def array(
    obj: Any,
    dtype: Any = None,
    copy: Any = True,
    order: str = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> Any:
    """A new array. NumPy's memory is read before the call returns, unless it is pinned: then the GPU reads it when it comes to it."""
    if isinstance(obj, ndarray):
        made = obj if not copy and (dtype is None or obj.dtype == dtype) else obj.astype(obj.dtype if dtype is None else dtype)
        return made[(None,) * (ndmin - made.ndim)] if made.ndim < ndmin else made
    if isinstance(obj, (list, tuple)) and operands_of(obj):
        return _here["stack"]([asarray(each) for each in obj])
    values = (
        np.array(obj, dtype, copy=None, ndmin=ndmin)
        if np.lib.NumpyVersion(np.__version__) >= "2.0.0"
        else np.array(obj, dtype, copy=False, ndmin=ndmin)
    )
    made = ndarray(values.shape, values.dtype)
    staged = values if values.ndim and here.machine.is_pinned(values) else values.copy()
    view = made.view_

    def upload() -> None:
        view[...] = staged

    here.machine.launch(upload, [], [made.block], "copy from the host")
    return made


def ascontiguousarray(a: Any, dtype: Any = None) -> ndarray:
    a = asarray(a, dtype)
    return a if a.flags.c_contiguous else a.copy()


def empty(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return ndarray(shape, dtype)


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = float, order: str = "C") -> ndarray:
    return full(shape, 1, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> ndarray:
    if isinstance(fill_value, ndarray):
        made = ndarray(shape, fill_value.dtype if dtype is None else dtype)
        copyto(made, fill_value, casting="unsafe")
        return made
    made = ndarray(shape, np.array(fill_value).dtype if dtype is None else dtype)
    made.fill(fill_value)
    return made


def empty_like(prototype: ndarray, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    operands_of(prototype)
    return ndarray(prototype.shape if shape is None else shape, prototype.dtype if dtype is None else dtype)


def zeros_like(a: ndarray, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    made = empty_like(a, dtype, shape=shape)
    made.fill(0)
    return made


def ones_like(a: ndarray, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    return full_like(a, 1, dtype, shape=shape)


def full_like(a: ndarray, fill_value: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None) -> ndarray:
    made = empty_like(a, dtype, shape=shape)
    made.fill(fill_value)
    return made


def _numbers(function: Any) -> Any:
    """A function of numbers alone: what NumPy makes of them."""

    def call(*args: Any, **how: Any) -> Any:
        for each in (*args, *how.values()):
            if isinstance(each, ndarray):
                raise TypeError("a number is wanted")
        made = function(*args, **how)
        return tuple(map(array, made)) if isinstance(made, tuple) else array(made)

    return call


# ---- functions whose results' shapes depend on values: the host waits


def _waiting(name: str, most: int | None = None) -> Any:
    function = getattr(np, name)

    def call(*args: Any, **how: Any) -> Any:
        operands_of(list(args))
        made = function(
            *replaced(args, lambda each: each.get()),
            **{key: replaced(each, lambda each: each.get()) for key, each in how.items()},
        )
        return tuple(map(asarray, made)) if isinstance(made, tuple) else asarray(made) if isinstance(made, np.ndarray) else made

    return call


def asnumpy(a: Any, stream: Any = None, order: str = "C", out: Any = None, *, blocking: bool = True) -> np.ndarray:
    return a.get(stream, order, out, blocking) if isinstance(a, ndarray) else np.asarray(a)


def result_type(*values: Any) -> Any:
    return np.result_type(*replaced(values, lambda each: each.dtype))


def may_share_memory(a: ndarray, b: ndarray, max_work: Any = None) -> bool:
    return a.block is b.block and np.may_share_memory(a.view_, b.view_)


def from_dlpack(array: Any, *, device: Any = None, copy: Any = None) -> ndarray:
    return array.__dlpack__()


# ---- linear algebra


def _linalg(name: str) -> Any:
    function = getattr(np.linalg, name)

    def call(*args: Any, **how: Any) -> Any:
        for each in operands_of(list(args)):
            if each.dtype.char not in "fdFD":
                raise TypeError(f"unsupported dtype {each.dtype}, only single/double precision is supported")

        def shapes(*values: Any, **how: Any) -> Any:
            sensible = [np.broadcast_to(np.eye(*each.shape[-2:], dtype=each.dtype), each.shape) for each in values[:1]]
            return function(*sensible, *values[1:], **how)

        return launch(function, *args, shapes=shapes, name=name, **how)

    return call


# ---- put together

_here = globals()
_here.update({name: ufunc(name) for name in UFUNCS})
_here.update({line.partition("(")[0]: _make(line, _queued) for line in FUNCTIONS.split("\n") if line})
_here.update(
    {
        name: _view(name)
        for name in ("expand_dims", "flip", "moveaxis", "split", "array_split", "squeeze", "swapaxes", "transpose")
    }
)
_here.update(
    {
        name: _waiting(name)
        for name in ("argwhere", "bincount", "flatnonzero", "histogram", "nonzero", "unique", "allclose", "array_equal")
    }
)
_here.update(
    {
        "arange": _numbers(
            lambda start, stop=None, step=1, dtype=None: (
                np.arange(start, dtype=dtype) if stop is None else np.arange(start, stop, step, dtype)
            )
        ),
        "eye": _numbers(lambda N, M=None, k=0, dtype=float, order="C": np.eye(N, M, k, dtype)),
        "tri": _numbers(lambda N, M=None, k=0, dtype=float: np.tri(N, M, k, dtype)),
        "linspace": _numbers(
            lambda start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0: (
                np.linspace(start, stop, num, endpoint, False, dtype)
            )
        ),
        "tril_indices": _numbers(lambda n, k=0, m=None: np.tril_indices(n, k, m)),
        "indices": _numbers(lambda dimensions, dtype=int: np.indices(dimensions, dtype)),
    }
)  # fmt: skip
get_default_memory_pool = Pool
linalg = types.SimpleNamespace(
    **{name: _linalg(name) for name in ("cholesky", "det", "eigh", "inv", "qr", "slogdet", "solve", "svd", "norm")}
)
fft = types.SimpleNamespace(
    fft=lambda a, n=None, axis=-1, norm=None: launch(np.fft.fft, a, n, axis, norm),
    ifft=lambda a, n=None, axis=-1, norm=None: launch(np.fft.ifft, a, n, axis, norm),
)
lib = types.SimpleNamespace(stride_tricks=types.SimpleNamespace(as_strided=as_strided))
add_operators(types.SimpleNamespace(**_here))


@contextlib.contextmanager
def installed(count: int = 2, seed: int = 0, capacity: int = 1 << 34) -> Iterator[Machine]:
    """A scope in which `import cupy` finds this module, with `count` GPUs."""
    before = sys.modules.get("cupy")
    machine = start(count, seed, capacity)
    sys.modules["cupy"] = sys.modules[__name__]
    try:
        yield machine
    finally:
        if before is None:
            del sys.modules["cupy"]
        else:
            sys.modules["cupy"] = before
