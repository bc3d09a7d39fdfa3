"""Functions that make arrays: from Python and NumPy values, from numbers, and from other libraries' memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import device, storage
from ..base import ArgumentError, DTypeLike, ShapeError, as_dtype, shown
from ..device import Context, current_context
from ..engine import writes
from ..engine.var import Var
from ..fields import are_ints, converted
from ..op import Op, Spec, is_node_key
from ..ops import creation, joining, layout
from ..ops.forms import as_number
from ..rules import normalize_axis
from .entry import from_array, host_numbers, invoke
from .ndarray import NDArray

ShapeLike = int | Sequence[int]


def as_context(ctx: Context | None) -> Context:
    """`ctx`, or the default device. Raises ArgumentError for something else."""
    if ctx is None:
        return current_context()
    if not isinstance(ctx, Context):
        hint = "; a shape is one tuple, as in nd.ones((2, 3))" if isinstance(ctx, int) else ""
        raise ArgumentError(f"ctx must be a Context such as mx.cpu(), got {shown(ctx)}{hint}")
    return ctx


def as_known_shape(name: str, shape: ShapeLike) -> tuple[int, ...]:
    """`shape` as a tuple. Raises ShapeError for lengths below 1: in MXNet 1.x, 0 stands for a length that is not known."""
    known: tuple[int, ...] = shape if are_ints(shape) else converted(name, "shape", "tuple[int, ...]", shape)  # type: ignore[assignment]
    if not known or any(length < 1 for length in known):
        raise ShapeError(f"{name}: shape {shown(known)} is not known completely; every length must be at least 1")
    return known


def create(op: Op, ctx: Context | None, out: NDArray | None = None) -> NDArray:
    """The result of an operator without inputs, on a device."""
    require_array(op.name, out)
    return invoke(op, [], out, out.context if out is not None and ctx is None else as_context(ctx))[0]


def require_array(name: str, out: Any) -> None:
    """Raise ArgumentError unless `out` is an NDArray or None."""
    if out is not None and not isinstance(out, NDArray):
        raise ArgumentError(f"{name}: out must be an NDArray, got {shown(out)}; make one with nd.empty(...)")


def array(source_array: Any, ctx: Context | None = None, dtype: DTypeLike = None) -> NDArray:
    """A copy of `source_array` (numbers, nested lists, a NumPy array, an NDArray) as an NDArray.

    **Args** `dtype`: float32 unless given, whatever a NumPy array's dtype is; that of an NDArray is kept. **Raises** ArgumentError for
    lists of unequal lengths or values that are no numbers. **Source** MXNet `nd.array`.

    >>> array([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    context = as_context(ctx)
    if isinstance(source_array, NDArray):
        copied = source_array.copyto(context)
        return copied if dtype is None else copied.astype(dtype, copy=False)
    value = host_numbers(source_array, as_dtype(dtype), "nd.array")
    if value.ndim == 0 and not isinstance(source_array, np.ndarray):
        value = value.reshape(1)
    return from_array(value, context)


def empty(shape: ShapeLike, ctx: Context | None = None, dtype: DTypeLike = None, stype: str | None = None) -> NDArray:
    """An array of `shape` whose values are arbitrary until they are written. **Args** stype: there is "default" only."""
    _only_dense("nd.empty", {"stype": stype})
    spec = Spec.of(as_known_shape("nd.empty", shape), as_dtype(dtype))
    context = as_context(ctx)
    return NDArray(Var(storage.empty(spec, context)), spec, context)


def zeros(
    shape: ShapeLike,
    ctx: Context | None = None,
    dtype: DTypeLike = None,
    stype: str | None = None,
    *,
    out: NDArray | None = None,
    **kwargs: Any,
) -> NDArray:
    """An array of `shape` filled with 0. **Args** stype: there is "default" only. **Raises** ShapeError for lengths below 1."""
    _only_dense("nd.zeros", {"stype": stype, **kwargs})
    return create(creation.Zeros(as_known_shape("nd.zeros", shape), as_dtype(dtype)), ctx, out)


def ones(
    shape: ShapeLike, ctx: Context | None = None, dtype: DTypeLike = None, *, out: NDArray | None = None, **kwargs: Any
) -> NDArray:
    """An array of `shape` filled with 1. **Raises** ShapeError for lengths below 1."""
    _only_dense("nd.ones", kwargs)
    return create(creation.Ones(as_known_shape("nd.ones", shape), as_dtype(dtype)), ctx, out)


def full(
    shape: ShapeLike, val: float, ctx: Context | None = None, dtype: DTypeLike = None, out: NDArray | None = None
) -> NDArray:
    """An array of `shape` filled with `val`. **Raises** ShapeError for lengths below 1."""
    return create(creation.Full(as_number(val, "nd.full: val"), as_known_shape("nd.full", shape), as_dtype(dtype)), ctx, out)


def _only_dense(name: str, kwargs: dict[str, Any]) -> None:
    stype = kwargs.pop("stype", None)
    if stype is not None and not (isinstance(stype, str) and stype == "default"):
        raise ArgumentError(f"{name}: storage type {shown(stype)} does not exist here; only dense arrays do")
    # Recurrent cells ask for their states with a name and a layout, which only a graph has a place for.
    unknown = [key for key in kwargs if key != "name" and not is_node_key(key)]
    if unknown:
        raise ArgumentError(f"{name}: unknown argument {', '.join(unknown)}; it takes shape, ctx, dtype, out")


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool | None = None,
    ctx: Context | None = None,
    dtype: DTypeLike = None,
) -> NDArray:
    """Numbers from `start` (included; 0 if only one bound is given) to `stop` (left out), `step` apart, each `repeat` times."""
    low, high = (0.0, start) if stop is None else (start, stop)
    return create(creation.Arange(low, high, step, repeat, dtype=dtype), ctx)


def linspace(
    start: float, stop: float, num: int, endpoint: bool = True, ctx: Context | None = None, dtype: DTypeLike = None
) -> NDArray:
    """`num` numbers at equal distances from `start` to `stop`, which is the last if `endpoint`."""
    return create(creation.Linspace(start, stop, num, endpoint, dtype=dtype), ctx)


def eye(N: int, M: int = 0, k: int = 0, ctx: Context | None = None, dtype: DTypeLike = None, **kwargs: Any) -> NDArray:
    """N x M (M = 0: square) zeros with ones on the `k`-th diagonal."""
    _only_dense("nd.eye", kwargs)
    return create(creation.Eye(N, M, k, dtype), ctx)


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """The arrays one after the other along `axis`; a single one itself unless `always_copy`."""
    if not isinstance(arrays, (list, tuple)) or not arrays:
        raise ArgumentError(f"nd.concatenate: a list of one array or more is wanted, got {shown(arrays)}")
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    return joining.concat(*arrays, dim=axis)


def moveaxis(tensor: NDArray, source: int | Sequence[int], destination: int | Sequence[int]) -> NDArray:
    """The axes `source` moved to the places `destination`; the others keep their order. **Raises** ValueError as NumPy does."""
    sources: Sequence[int] = converted("moveaxis", "source", "tuple[int, ...]", source)
    places: Sequence[int] = converted("moveaxis", "destination", "tuple[int, ...]", destination)
    if not isinstance(tensor, NDArray):
        raise ArgumentError(f"moveaxis: tensor must be an NDArray, got {shown(tensor)}; make one with nd.array(...)")
    if len(sources) != len(places):
        raise ShapeError(f"moveaxis: {len(sources)} sources and {len(places)} destinations; one each is wanted")
    moved = [normalize_axis("moveaxis", axis, tensor.ndim, "source") for axis in sources]
    goals = [normalize_axis("moveaxis", axis, tensor.ndim, "destination") for axis in places]
    if len(set(moved)) != len(moved) or len(set(goals)) != len(goals):
        raise ShapeError(f"moveaxis: source {source} or destination {destination} names an axis twice")
    order = [axis for axis in range(tensor.ndim) if axis not in moved]
    for goal, axis in sorted(zip(goals, moved)):
        order.insert(goal, axis)
    return layout.transpose(tensor, order)


def from_numpy(ndarray: np.ndarray[Any, Any], zero_copy: bool = True, array_cls: type[NDArray] = NDArray) -> NDArray:
    """An NDArray on cpu(0) that shares the memory of a NumPy array, which becomes read-only; with `zero_copy=False` a copy.

    **Raises** ValueError if the array is not C-contiguous or not writeable and `zero_copy` is asked for.
    """
    if not isinstance(ndarray, np.ndarray):
        raise ArgumentError(f"from_numpy: a NumPy array is wanted, got {shown(ndarray)}; use nd.array() for other things")
    if not (isinstance(array_cls, type) and issubclass(array_cls, NDArray)):
        raise ArgumentError(f"from_numpy: array_cls must be NDArray or a class made from it, got {shown(array_cls)}")
    spec = Spec.of(ndarray.shape, as_dtype(ndarray.dtype))
    if not converted("from_numpy", "zero_copy", "bool", zero_copy):
        return array(ndarray, dtype=ndarray.dtype)
    if not ndarray.flags.c_contiguous:
        raise ShapeError("from_numpy: only C-contiguous arrays can share memory; use zero_copy=False")
    if ndarray.flags.writeable:
        shared = ndarray.view(np.ndarray)  # np.matrix, for one, has rules of its own
    elif ndarray.flags.owndata:  # read-only because it was shared before: the memory itself can be written
        shared = np.asarray(_Writeable(ndarray))
    else:
        raise ShapeError("from_numpy: the memory of a read-only array cannot be shared; use zero_copy=False")
    ndarray.flags.writeable = False
    var = Var(shared)
    var.shared = True
    writes.shared(shared)
    return array_cls(var, spec, device.cpu())


def from_dlpack(dlpack: Any) -> NDArray:
    """An NDArray that shares memory with another library's array: an object with `__dlpack__`, or a DLPack capsule.

    **Raises** ArgumentError for what is neither, a capsule that was used before, or memory that cannot be shared; DTypeError;
    ShapeError if it is not C-contiguous.
    """
    if not hasattr(dlpack, "__dlpack__") and type(dlpack).__name__ != "PyCapsule":
        raise ArgumentError(f"from_dlpack: an array with __dlpack__ or a DLPack capsule is wanted, got {shown(dlpack)}")
    source = dlpack if hasattr(dlpack, "__dlpack__") else _Capsule(dlpack)
    kind, number = source.__dlpack_device__()
    if kind == 1:
        try:
            value = np.from_dlpack(source)
        except (ValueError, TypeError, RuntimeError, BufferError) as error:
            raise ArgumentError(f"from_dlpack: {shown(dlpack)} cannot be shared: {error}") from None
        if int(np.__version__.split(".")[0]) < 2:  # which marks all that it imports as read-only
            value = np.asarray(_Writeable(value))
        context = device.cpu()
    elif kind == 2:
        context = device.gpu(number)
        value = device.cupy().from_dlpack(source)
    else:
        raise ArgumentError(f"from_dlpack: memory of device type {kind} cannot be shared; only CPU (1) and CUDA (2) can")
    spec = Spec.of(value.shape, as_dtype(value.dtype))
    if not value.flags.c_contiguous:
        raise ShapeError("from_dlpack: only C-contiguous arrays can share memory")
    var = Var(value)
    var.shared = True
    writes.shared(value)
    return NDArray(var, spec, context)


class _Writeable:
    """NumPy's protocol for the memory of an array, without the array's own ban on writing."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array  # keeps the memory alive
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


class _Capsule:
    """A bare capsule in the form that NumPy asks for: capsules of CPU memory only tell their device to C."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _require_data(name: str, data: Any) -> None:
    if not isinstance(data, NDArray):
        raise ArgumentError(f"{name}: data must be an NDArray, got {shown(data)}")


def to_dlpack_for_read(data: NDArray) -> Any:
    """A DLPack capsule that shares the memory of `data`, when its value is there."""
    _require_data("to_dlpack_for_read", data)
    return data.to_dlpack_for_read()


def to_dlpack_for_write(data: NDArray) -> Any:
    """A DLPack capsule that shares the memory of `data`, when nothing queued uses it."""
    _require_data("to_dlpack_for_write", data)
    return data.to_dlpack_for_write()
