"""The arrays of the stand-in, and how NumPy's functions are queued on them.

A result's shape and dtype must be known before anything has run. They are found by calling NumPy's function on arrays of ones that take
no memory; the call on the real values is queued. What CuPy refuses is refused: NumPy arrays among the operands, an implicit
conversion to NumPy, arrays of another device than the current one. What a GPU does not promise is made to show: elements that are
written twice are written in a random order, and a kernel may not write over a shifted part of what it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .machine import Block, Machine, Stream

SCALARS = (bool, int, float, complex, np.generic)


class Here:
    """The machine that is installed."""

    machine: Machine


here = Here()


class _DeviceOf(NamedTuple):
    """What `array.device` is."""

    id: int


class Pointer:
    """What `array.data` is: an address, and copies to and from it."""

    def __init__(self, array: ndarray) -> None:
        self.array = array
        self.ptr = array.view_.ctypes.data
        self.device_id = array.block.device

    def copy_from_device_async(self, source: Pointer, size: int, stream: Stream | None = None) -> None:
        """Copy bytes of the same device or of another one."""
        target, other = _flat_bytes(self.array), _flat_bytes(source.array)
        assert size <= min(target.size, other.size)

        def copy() -> None:
            target[:size] = other[:size]

        here.machine.launch(copy, [source.array.block], [self.array.block], "memcpy", stream)


def _flat_bytes(array: ndarray) -> np.ndarray:
    assert array.view_.flags.c_contiguous, "bytes are copied of contiguous arrays only"
    return array.view_.reshape(-1).view(np.uint8)


class ndarray:
    """An array on a GPU: a NumPy array on the bytes of a block, which only queued kernels read and write."""

    __slots__ = ("block", "view_", "owns", "__weakref__")
    __array_priority__ = 100

    block: Block
    view_: np.ndarray
    owns: bool

    def __init__(self, shape: Any, dtype: Any = float, memptr: Any = None) -> None:
        assert memptr is None
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(map(int, shape))
        dtype = np.dtype(dtype)
        if dtype.kind not in "?biufc":
            raise ValueError(f"Unsupported dtype {dtype}")
        machine = here.machine
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        allocator = getattr(machine.local, "allocator", None)
        self.block = machine.take(nbytes, machine.device, machine.current()) if allocator is None else allocator(nbytes)
        self.view_ = self.block.bytes[:nbytes].view(dtype).reshape(shape)
        self.owns = True

    @classmethod
    def of(cls, block: Block, view: np.ndarray) -> ndarray:
        made = object.__new__(cls)
        made.block, made.view_, made.owns = block, view, False
        return made

    # ---- what is known without waiting

    shape = property(lambda self: self.view_.shape)
    dtype = property(lambda self: self.view_.dtype)
    size = property(lambda self: self.view_.size)
    ndim = property(lambda self: self.view_.ndim)
    nbytes = property(lambda self: self.view_.nbytes)
    itemsize = property(lambda self: self.view_.itemsize)
    strides = property(lambda self: self.view_.strides)
    flags = property(lambda self: self.view_.flags)
    data = property(Pointer)
    device = property(lambda self: _DeviceOf(self.block.device))
    T = property(lambda self: ndarray.of(self.block, self.view_.T))
    real = property(lambda self: ndarray.of(self.block, self.view_.real))
    imag = property(lambda self: ndarray.of(self.block, self.view_.imag))

    def __len__(self) -> int:
        return len(self.view_)

    def __iter__(self) -> Any:
        return (self[number] for number in range(len(self)))

    # ---- views, which need no kernel

    def reshape(self, *shape: Any, order: str = "C") -> ndarray:
        asked = shape[0] if len(shape) == 1 else shape
        view = self.view_.reshape(asked)  # of a copy, if it must be one
        if view.size and not np.shares_memory(view, self.view_):
            return self.copy().reshape(asked)
        return ndarray.of(self.block, view)

    def ravel(self, order: str = "C") -> ndarray:
        return self.reshape(-1)

    def flatten(self, order: str = "C") -> ndarray:
        return self.copy().reshape(-1)

    @property
    def base(self) -> ndarray | None:
        """Something, if it is a view; None if it has memory of its own."""
        return None if self.owns else self

    def view(self, dtype: Any = None) -> ndarray:
        return ndarray.of(self.block, self.view_.view() if dtype is None else self.view_.view(dtype))

    def transpose(self, *axes: Any) -> ndarray:
        return ndarray.of(self.block, self.view_.transpose(*axes))

    def swapaxes(self, first: int, second: int) -> ndarray:
        return ndarray.of(self.block, self.view_.swapaxes(first, second))

    def squeeze(self, axis: Any = None) -> ndarray:
        return ndarray.of(self.block, self.view_.squeeze(axis))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ndarray:
        view = self.view_.diagonal(offset, axis1, axis2)
        return ndarray.of(self.block, np.lib.stride_tricks.as_strided(view, view.shape, view.strides))

    # ---- to the host, which waits

    def get(
        self, stream: Stream | None = None, order: str = "C", out: np.ndarray | None = None, blocking: bool = True
    ) -> np.ndarray:
        """The values as a NumPy array."""
        result = np.empty(self.shape, self.dtype) if out is None else out
        view, stream = self.view_, here.machine.current(self.block.device) if stream is None else stream

        def copy() -> None:
            result[...] = view

        here.machine.launch(copy, [self.block], [], "copy to the host", stream)
        if blocking:
            stream.synchronize()
        return result

    def tobytes(self) -> bytes:
        return self.get().tobytes()

    def item(self) -> Any:
        return self.get().item()

    def tolist(self) -> Any:
        return self.get().tolist()

    __bool__ = lambda self: bool(self.get())  # noqa: E731
    __int__ = lambda self: int(self.get())  # noqa: E731
    __float__ = lambda self: float(self.get())  # noqa: E731
    __repr__ = lambda self: repr(self.get())  # noqa: E731

    def __index__(self) -> int:
        raise TypeError("only integer scalar arrays can be converted to a scalar index")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly."
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.block.device

    def __dlpack__(self, **how: Any) -> Any:
        return self

    # ---- kernels

    def copy(self, order: str = "C") -> ndarray:
        return launch(np.array, self)

    def astype(self, dtype: Any, order: str = "K", casting: Any = None, subok: Any = None, copy: bool = True) -> ndarray:
        if not copy and self.dtype == np.dtype(dtype):
            return self
        return launch(np.array, self, dtype=np.dtype(dtype))

    def fill(self, value: Any) -> None:
        if isinstance(value, np.ndarray):
            if value.shape:
                raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
            value = value.item()
        if not isinstance(value, SCALARS):
            raise TypeError(f"Unsupported type {type(value)}")
        view = self.view_
        here.machine.launch(lambda: view.fill(value), [], [self.block], "fill")

    def __getitem__(self, key: Any) -> ndarray:
        keys = key if isinstance(key, tuple) else (key,)
        if all(each is None or each is Ellipsis or isinstance(each, (slice, int, np.integer)) for each in keys):
            view = self.view_[key]
            if isinstance(view, np.generic):  # all axes are gone: an array without axes, as in CuPy
                view = self.view_[(*keys, ...)]
            return ndarray.of(self.block, view)
        ready, operands = _indices(self, keys)
        return launch(lambda data, *arrays: data[ready(arrays)], self, *operands, name="getitem")

    def __setitem__(self, key: Any, value: Any) -> None:
        keys = key if isinstance(key, tuple) else (key,)
        if isinstance(value, np.ndarray) and value.ndim:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        if isinstance(value, (list, tuple)):
            raise TypeError("Unsupported type <class 'tuple'>")
        if all(each is None or each is Ellipsis or isinstance(each, (slice, int, np.integer)) for each in keys):
            self[key]._write(value)
            return
        ready, operands = _indices(self, keys)
        values = [value] if isinstance(value, ndarray) else []
        view, random = self.view_, here.machine.random

        def write() -> None:
            places = np.arange(view.size).reshape(view.shape)[ready([each.view_ for each in operands])]
            given = np.asarray(sources[0] if sources else value)
            source = np.broadcast_to(given.reshape(given.shape[max(0, given.ndim - places.ndim) :]), places.shape)
            order = np.array(random.sample(range(places.size), places.size), np.intp)  # who writes last is not promised
            view[np.unravel_index(places.reshape(-1)[order], view.shape)] = source.reshape(-1)[order]

        sources = [each.view_ for each in values]
        require_here(self, *operands, *values)
        here.machine.launch(write, [each.block for each in (*operands, *values)], [self.block], "setitem")

    def _write(self, value: Any) -> None:
        if isinstance(value, ndarray):
            value = value.reshape(value.shape[max(0, value.ndim - self.ndim) :])  # leading axes of length 1 are let go
            np.broadcast_to(_ones(value), self.shape)
            launch(np.copyto, value, into=self, casting="unsafe")
        else:
            self.fill(value)

    def dot(self, b: ndarray, out: ndarray | None = None) -> ndarray:
        return launch(np.dot, self, b, out=out)

    # ---- NumPy's protocols

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, out: Any = None, **how: Any) -> Any:
        from . import cupy  # the functions need this class

        called = getattr(cupy, function.__name__, None)
        if called is None:
            return NotImplemented
        if out is not None:
            how["out"] = out[0]
        return (called if method == "__call__" else getattr(called, method))(*inputs, **how)

    def __array_function__(self, function: Any, types: Any, args: Any, how: Any) -> Any:
        from . import cupy

        called = getattr(cupy, function.__name__, None)
        return NotImplemented if called is None else called(*args, **how)


def _ones(array: Any) -> np.ndarray:
    """An array of ones with the shape and dtype of `array`, which takes no memory."""
    return np.broadcast_to(np.ones((), array.dtype), array.shape)


def _indices(array: ndarray, keys: Sequence[Any]) -> tuple[Callable[[Sequence[Any]], Any], list[ndarray]]:
    """A function that makes NumPy's key of the values of the index arrays; and those, on the GPU. Indices wrap around."""
    from . import cupy

    operands: list[ndarray] = []
    shape: list[Any] = []
    axis = 0
    masks = 0
    taken = sum(_axes_of(each) for each in keys)
    for each in keys:
        if isinstance(each, (list, np.ndarray, ndarray)):
            index = each if isinstance(each, ndarray) else cupy.asarray(np.asarray(each, None if np.size(each) else np.intp))
            if index.dtype.kind == "b":
                masks += 1
                if masks > 1:
                    raise ValueError("Currently, CuPy only supports one boolean array as index")
                index_values = index.get()  # the shape of the result depends on it: the host waits
                shape.append(("mask", index_values))
            elif index.dtype.kind in "iu":
                shape.append(("index", len(operands), array.shape[axis]))
                operands.append(index)
            else:
                raise IndexError("arrays used as indices must be of integer or boolean type")
            axis += _axes_of(each)
            continue
        shape.append(each)
        axis += array.ndim - taken if each is Ellipsis else _axes_of(each)

    def ready(values: Sequence[Any]) -> Any:
        made = []
        for each in shape:
            if not isinstance(each, tuple):
                made.append(each)
            elif each[0] == "mask":
                made.append(each[1])
            else:
                made.append(values[each[1]] % max(each[2], 1))
        return tuple(made)

    return ready, operands


def _axes_of(key: Any) -> int:
    """How many axes a part of a key takes."""
    if key is None or key is Ellipsis:
        return 0
    return key.ndim if isinstance(key, (np.ndarray, ndarray)) and key.dtype.kind == "b" else 1


def require_here(*arrays: ndarray) -> None:
    """Raise ValueError for an array of another device than the current one."""
    for array in arrays:
        if array.block.device != here.machine.device:
            raise ValueError(
                "Array device must be same as the current device: "
                f"array device = {array.block.device} while current = {here.machine.device}"
            )


def operands_of(value: Any) -> list[ndarray]:
    """The arrays in an argument, which may be a list of them. Raises TypeError for NumPy's."""
    if isinstance(value, ndarray):
        return [value]
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, (list, tuple)):
        return [each for part in value for each in operands_of(part)]
    return []


def replaced(value: Any, by: Callable[[ndarray], Any]) -> Any:
    """The argument with each array replaced by what `by` makes of it."""
    if isinstance(value, ndarray):
        return by(value)
    if type(value) in (list, tuple):
        return type(value)(replaced(each, by) for each in value)
    return value


def launch(
    function: Callable[..., Any],
    *args: Any,
    out: Any = None,
    into: ndarray | None = None,
    name: str = "",
    shapes: Any = None,
    **how: Any,
) -> Any:
    """Queue `function`, one of NumPy's, on arrays; its results, which are not there yet.

    **Args** `out`: where the result goes. `into`: what the function changes, its first argument. `shapes`: finds the results' shapes in
    place of `function`, where that needs sensible values.
    """
    name = name or getattr(function, "__name__", "kernel")
    reads = operands_of(list(args)) + operands_of(list(how.values()))
    require_here(*reads, *([out] if out is not None else []), *([into] if into is not None else []))
    if into is not None:
        _require_apart(name, reads, into)
        target, given, named = into.view_, _values(args), _values(how)
        here.machine.launch(lambda: function(target, *given, **named), [each.block for each in reads], [into.block], name)
        return None
    with np.errstate(all="ignore"):
        found = (shapes or function)(*replaced(args, _ones), **{key: replaced(value, _ones) for key, value in how.items()})
    listed = list(found) if isinstance(found, (tuple, list)) else [found]
    if out is not None:
        (spec,) = listed
        if np.broadcast_shapes(out.shape, np.shape(spec)) != out.shape:
            raise ValueError(f"{name}: out has the shape {out.shape}, the result {np.shape(spec)}")
        if not np.can_cast(np.asarray(spec).dtype, out.dtype, how.get("casting", "same_kind")):
            raise TypeError(
                f"{name}: output (typecode {np.asarray(spec).dtype.char!r}) could not be coerced to {out.dtype.char!r}"
            )
        _require_apart(name, reads, out)
        made = [out]
    else:
        made = [ndarray(np.shape(each), np.asarray(each).dtype) for each in listed]
    targets = [each.view_ for each in made]
    given, named = _values(args), _values(how)

    def run() -> None:
        results = function(*given, **named)
        for target, result in zip(targets, results if isinstance(results, (tuple, list)) else [results]):
            target[...] = result

    here.machine.launch(run, [each.block for each in reads], [each.block for each in made], name)
    return made[0] if not isinstance(found, (tuple, list)) else tuple(made)


def _values(arguments: Any) -> Any:
    """What the kernel will find in place of the arrays: memory, not the arrays, so that these can die first."""
    if isinstance(arguments, dict):
        return {key: replaced(value, lambda array: array.view_) for key, value in arguments.items()}
    return replaced(arguments, lambda array: array.view_)


def _require_apart(name: str, reads: Sequence[ndarray], written: ndarray) -> None:
    """A kernel must not write over a shifted part of what it reads: its threads run in any order."""
    for each in reads:
        if each.block is written.block and np.shares_memory(each.view_, written.view_):
            same = each.view_.ctypes.data == written.view_.ctypes.data and each.strides == written.strides
            assert same, f"{name} writes over another part of an array that it reads"


def add_operators(functions: Any) -> None:
    """Give the class Python's operators, which are CuPy's functions."""
    names = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder",
        "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
        "matmul": "matmul",
    }  # fmt: skip
    for name, called in names.items():
        function = getattr(functions, called)
        setattr(ndarray, f"__{name}__", lambda self, other, f=function: _or_not(f, self, other))
        setattr(ndarray, f"__r{name}__", lambda self, other, f=function: _or_not(f, other, self))
        setattr(ndarray, f"__i{name}__", lambda self, other, f=function: f(self, other, out=self))
    for name, called in (
        ("lt", "less"),
        ("le", "less_equal"),
        ("gt", "greater"),
        ("ge", "greater_equal"),
        ("eq", "equal"),
        ("ne", "not_equal"),
    ):
        function = getattr(functions, called)
        setattr(ndarray, f"__{name}__", lambda self, other, f=function: _or_not(f, self, other))
    for name, called in (("neg", "negative"), ("invert", "invert"), ("abs", "absolute"), ("pos", "positive")):
        function = getattr(functions, called)
        setattr(ndarray, f"__{name}__", lambda self, f=function: f(self))
    ndarray.__hash__ = None  # type: ignore[assignment,method-assign]
    for name in ("all", "any", "argmax", "argmin", "argsort", "clip", "cumprod", "cumsum", "max", "mean", "min", "nonzero", "prod",
                 "repeat", "round", "std", "sum", "take", "trace", "var"):  # fmt: skip
        setattr(ndarray, name, _method(getattr(functions, name)))
    ndarray.sort = _sort  # type: ignore[attr-defined]


def _sort(self: ndarray, axis: int = -1, kind: Any = None) -> None:
    view = self.view_
    here.machine.launch(lambda: view.sort(axis), [self.block], [self.block], "sort")


def _or_not(function: Any, left: Any, right: Any) -> Any:
    known = (*SCALARS, ndarray, np.ndarray)
    return function(left, right) if isinstance(left, known) and isinstance(right, known) else NotImplemented


def _method(function: Any) -> Any:
    return lambda self, *args, **how: function(self, *args, **how)
