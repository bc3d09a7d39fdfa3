"""How the samples of a batch become arrays: functions for a DataLoader's `batchify_fn`.

`default_batchify_fn` stacks samples that are equal in shape. Where they are not, as sentences are, `Pad` fills them up; `Group` treats each
part of a sample in a way of its own: `Group(Pad(), Stack())` for sentences with labels. Any function of a list of samples will do instead;
what it returns may hold NDArrays, NumPy arrays and other values in tuples, lists and dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import nd
from ...base import CODE_OF_DTYPE, ArgumentError, DTypeError, DTypeLike, ShapeError, as_dtype, shown
from ...device import Context, cpu_shared, current_context
from ...fields import converted
from ...nd import NDArray
from ...nd.entry import from_array

__all__ = ["Append", "AsList", "Group", "Pad", "Stack", "default_batchify_fn", "default_mp_batchify_fn"]

Numbers = np.ndarray[Any, Any]


# ---- stacking


def default_batchify_fn(data: Sequence[Any]) -> Any:
    """The samples `data` as one array, with an axis in front that is theirs; a list of arrays if each is a tuple, one for each part.

    NDArrays are stacked as they are; anything else is a number or an array to NumPy, whose dtype the result has. **Raises** ShapeError
    (a ValueError) for shapes that differ; TypeError for what is no number. **Source** MXNet `gluon.data.dataloader.default_batchify_fn`.

    >>> default_batchify_fn([(nd.ones(2), 5), (nd.zeros(2), 6)])[1].asnumpy()
    array([5, 6])
    """
    return _stacked(data, None)


def default_mp_batchify_fn(data: Sequence[Any]) -> Any:
    """`default_batchify_fn`, with arrays on `cpu_shared(0)`.

    Not needed here: whatever a worker process makes travels through shared memory, and arrives on `cpu(0)`.
    """
    return _stacked(data, cpu_shared())


def _stacked(data: Sequence[Any], context: Context | None) -> Any:
    """The samples stacked, on `context`; None: where NDArrays are, and else on the default device."""
    if not len(data):
        raise ArgumentError("a batch without samples cannot be made an array; does the batch_sampler give empty lists?")
    first = data[0]
    if isinstance(first, NDArray):
        return _stacked_arrays(data, context)
    if isinstance(first, tuple):
        _check_parts(data, len(first))
        return [_stacked(part, context) for part in zip(*data)]
    return _placed(_joined(data), context)


def _stacked_arrays(data: Sequence[Any], context: Context | None) -> NDArray:
    """NDArrays stacked."""
    shape = data[0].shape
    for number, sample in enumerate(data):
        if not isinstance(sample, NDArray):
            raise ArgumentError(f"batchify: sample 0 is an NDArray, but sample {number} is {shown(sample)}; all must be alike")
        if sample.shape != shape:
            raise _unequal(number, sample.shape, shape)
    stacked = nd.stack(*data)
    return stacked if context is None else stacked.as_in_context(context)


def _joined(data: Sequence[Any]) -> Numbers:
    """Numbers, nested lists or NumPy arrays as one NumPy array, with an axis in front."""
    try:
        return np.array(data)
    except ValueError:  # unequal shapes
        shapes = [np.shape(sample) for sample in data]
        for number, shape in enumerate(shapes):
            if shape != shapes[0]:
                raise _unequal(number, shape, shapes[0]) from None
        raise


def _placed(value: Numbers, context: Context | None) -> NDArray:
    """A fresh NumPy array as an NDArray of the same dtype."""
    odd = [each for each in value.flat if not isinstance(each, (int, float))] if value.dtype == object else []
    if odd:
        raise DTypeError(
            f"batchify: a sample is {shown(odd[0])}, or has it as a part; numbers, arrays, and tuples or lists of them can be stacked. "
            "Does the data set return something for every index? gluon.data.batchify.AsList() as batchify_fn leaves samples as they are."
        )
    if value.dtype not in CODE_OF_DTYPE:
        known = ", ".join(dtype.name for dtype in CODE_OF_DTYPE)
        raise DTypeError(
            f"batchify: samples of NumPy's dtype {value.dtype} cannot be an NDArray, whose dtypes are {known}. Convert them in a "
            "transform, or give a batchify_fn such as gluon.data.batchify.AsList(), which leaves samples as they are."
        )
    return from_array(value, current_context() if context is None else context)


def _check_parts(data: Sequence[Any], parts: int) -> None:
    """Raise ShapeError unless every sample has as many parts as the first."""
    for number, sample in enumerate(data):
        if len(sample) != parts:
            raise ShapeError(f"batchify: sample 0 has {parts} parts, but sample {number} has {len(sample)}; all must be alike")


def _unequal(number: int, shape: tuple[int, ...], first: tuple[int, ...]) -> ShapeError:
    return ShapeError(
        f"batchify: sample 0 of the batch has shape {first}, but sample {number} has {shape}; only equal shapes can be stacked. Make them "
        "equal in a transform, or give a batchify_fn such as gluon.data.batchify.Pad()."
    )


# ---- as objects, to be combined


class _Batchify:
    """What they share: whether results are on `cpu_shared(0)`."""

    def __init__(self, use_shared_mem: bool = False) -> None:
        shared = converted(type(self).__name__, "use_shared_mem", "bool", use_shared_mem)
        self._context = cpu_shared() if shared else None


class Stack(_Batchify):
    """`default_batchify_fn` as an object. **Source** MXNet 2 `gluon.data.batchify.Stack`.

    >>> Stack()([[1, 2], [3, 4]]).shape
    (2, 2)
    """

    def __call__(self, data: Sequence[Any]) -> Any:
        return _stacked(data, self._context)


class Pad(_Batchify):
    """Stacks arrays, NDArrays or lists of numbers of different lengths: each is filled up at its end with `val`.

    **Args** `val`: a number, 0 unless given; `dtype`: that of the first sample unless given; `round_to`: lengths of the result are
    multiples of this; `axis`: the only axis along which samples may differ (None: all of them); `ret_length`: return the lengths along it
    (along axis 0 if `axis` is None), too, as an int32 array. **Returns** an array (N, ...); with `ret_length` a tuple.
    **Raises** ShapeError for shapes that differ otherwise. **Source** MXNet 2 `gluon.data.batchify.Pad`; `axis` and `ret_length` from
    GluonNLP.

    >>> Pad(val=-1)([[1, 2, 3], [4]]).asnumpy().tolist()
    [[1, 2, 3], [4, -1, -1]]
    """

    def __init__(
        self,
        val: float | None = None,
        dtype: DTypeLike = None,
        round_to: int | None = None,
        use_shared_mem: bool = False,
        *,
        axis: int | None = None,
        ret_length: bool = False,
    ) -> None:
        super().__init__(use_shared_mem)
        self._value: float = converted("Pad", "val", "float", 0 if val is None else val)
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._round_to: int = converted("Pad", "round_to", "int", 1 if round_to is None else round_to)
        if self._round_to < 1:
            raise ArgumentError(f"Pad: round_to is {round_to}; it must be 1 or more")
        self._axis: int | None = converted("Pad", "axis", "int | None", axis)
        self._ret_length: bool = converted("Pad", "ret_length", "bool", ret_length)

    def __call__(self, data: Sequence[Any]) -> Any:
        if not len(data) or isinstance(data[0], tuple):
            raise ArgumentError(
                "Pad: arrays or lists of numbers are wanted, got "
                + ("tuples; use Group(Pad(), ...) with a function for each part" if len(data) else "none")
            )
        arrays = [sample.asnumpy() if isinstance(sample, NDArray) else np.asarray(sample) for sample in data]
        lengths = self._lengths([array.shape for array in arrays])
        padded = np.full((len(arrays), *lengths), self._value, arrays[0].dtype if self._dtype is None else self._dtype)
        for row, array in zip(padded, arrays):
            row[tuple(slice(length) for length in array.shape)] = array
        batch = _placed(padded, self._context)
        if not self._ret_length:
            return batch
        return batch, _placed(np.array([array.shape[self._axis or 0] for array in arrays], np.int32), self._context)

    def _lengths(self, shapes: list[tuple[int, ...]]) -> list[int]:
        """The shape into which all samples fit."""
        axes = len(shapes[0])
        if not axes or not -axes <= (self._axis or 0) < axes:
            raise ShapeError(f"Pad: samples have shape {shapes[0]}; there is no axis {self._axis or 0} that could be padded")
        padded = range(axes) if self._axis is None else [self._axis % axes]
        lengths = list(shapes[0])
        for axis in padded:
            longest = max((shape[axis] for shape in shapes if len(shape) == axes), default=0)
            lengths[axis] = -(-longest // self._round_to) * self._round_to
        for number, shape in enumerate(shapes):
            if len(shape) != axes or any(shape[axis] != lengths[axis] for axis in range(axes) if axis not in padded):
                raise ShapeError(
                    f"Pad: sample 0 has shape {shapes[0]}, but sample {number} has {shape}; they may differ along "
                    + ("all axes" if self._axis is None else f"axis {self._axis}")
                    + ", but not otherwise"
                )
        return lengths


class Append(_Batchify):
    """Each sample as an NDArray of its own, in a list, with an axis of length 1 at `batch_axis` if `expand`.

    **Source** MXNet 2 `gluon.data.batchify.Append`.

    >>> [array.shape for array in Append()([[1, 2, 3], [4]])]
    [(1, 3), (1, 1)]
    """

    def __init__(self, expand: bool = True, batch_axis: int = 0, use_shared_mem: bool = False) -> None:
        super().__init__(use_shared_mem)
        self._expand: bool = converted("Append", "expand", "bool", expand)
        self._batch_axis: int = converted("Append", "batch_axis", "int", batch_axis)

    def __call__(self, data: Sequence[Any]) -> list[NDArray]:
        arrays = [nd.array(sample, ctx=self._context) for sample in data]
        return [array.expand_dims(axis=self._batch_axis) for array in arrays] if self._expand else arrays


class Group:
    """A function for each part of the samples: `Group(a, b)` of samples `(x, y)` gives `(a(all x), b(all y))`.

    **Raises** ShapeError for samples with another number of parts. **Source** MXNet 2 `gluon.data.batchify.Group`.

    >>> data, names = Group(Pad(), AsList())([([1, 2], "a"), ([3], "b")])
    >>> data.shape, names
    ((2, 2), ['a', 'b'])
    """

    def __init__(self, fn: Callable[..., Any] | Sequence[Callable[..., Any]], *args: Callable[..., Any]) -> None:
        listed: list[Callable[..., Any]] = [*fn] if isinstance(fn, (list, tuple)) else [fn]  # type: ignore[list-item]  # no sequence
        self._functions = [*listed, *args]
        for number, function in enumerate(self._functions):
            if not callable(function) or (args and isinstance(fn, (list, tuple))):
                raise ArgumentError(
                    f"Group: functions are wanted, as in Group(a, b) or Group([a, b]); argument {number} is {shown(function)}"
                )

    def __call__(self, data: Sequence[Any]) -> tuple[Any, ...]:
        for number, sample in enumerate(data):
            if len(sample) != len(self._functions):
                raise ShapeError(f"Group: {len(self._functions)} functions, but sample {number} has {len(sample)} parts")
        return tuple(function([sample[part] for sample in data]) for part, function in enumerate(self._functions))


class AsList:
    """The samples as they are, in a list: for texts. **Source** MXNet 2 `gluon.data.batchify.AsList`."""

    def __call__(self, data: Sequence[Any]) -> list[Any]:
        return list(data)
